"""Methods to compare: each method learns from the log and then searches a bench.

To play is to advance runs on the bench and to yield whenever the search might stop. When to stop
and, for most methods, which options to use are chosen on the log: by playing searches among its
runs and taking the choice with the highest mean payoff.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import numpy as np

from .._common.arrays import FloatArray, IntArray
from ..errors import InvalidArgument
from ..learn.curves import Curves
from .bench import Bench, Table

Rule = Callable[[Bench], Iterator[None]]


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """What a method may learn from: the runs of the log, and searches among them.

    Parameters
    ----------
    given : Curves or None
        All runs are taken to have ended with their last row, as on the bench; None if no log.
    table : Table
        The same runs; without a log, the searched runs, of which only the length counts.
    orders : (k, m) array of int
        For each of k rehearsals m runs of the log, drawn with replacement: as many as the searches
        to come will have.
    """

    given: Curves | None
    table: Table
    orders: IntArray

    @property
    def curves(self) -> Curves:
        """The runs of the log, which must be there."""
        if self.given is None:
            raise InvalidArgument("this method learns from a log, so the log must have runs.")
        return self.given

    def rehearsals(self, most: int) -> Iterator[Bench]:
        """Searches among the runs of the log."""
        return (Bench(self.table, order) for order in self.orders[:most])

    @property
    def most(self) -> int:
        """The length of the longest run."""
        return int(self.table.length.max())


@dataclass(frozen=True, slots=True, eq=False)
class MethodPlan:
    """What a method does at one price: play a rule, and stop after it has yielded ``stops`` times.

    With None, the rule is played to its end. ``told`` says how options were chosen.
    """

    rule: Rule
    stops: int | None = None
    told: str = ""


class Method(Protocol):
    """One way to search."""

    @property
    def name(self) -> str:
        """The name of the method in tables."""

    def learn(self, log: Log, prices: Sequence[float]) -> list[MethodPlan]:
        """What to do at each price. Only the log may be used to find out."""


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """A method with options, which are chosen by playing rehearsals on the log.

    Parameters
    ----------
    name : str
    rules : function
        Returns all settings to choose from for a log: a description of each, and its rule.
    rehearsals : int
        How many searches among the runs of the log each setting plays.
    longest : int
        At most this many stops of a rule are tried.
    """

    name: str
    rules: Callable[[Log], dict[str, Rule]]
    rehearsals: int = 32
    longest: int = 400

    def learn(self, log: Log, prices: Sequence[float]) -> list[MethodPlan]:
        """The setting and the stop with the highest mean payoff in the rehearsals."""
        if log.given is None:
            raise InvalidArgument(
                f"{self.name!r} chooses its options on a log, so the log must have runs."
            )
        settings = self.rules(log)
        means = [self._means(log, rule) for rule in settings.values()]
        return best_plans(settings, means, prices)

    def _means(self, log: Log, rule: Rule) -> FloatArray:
        """Mean score and spend at each stop."""
        played = [trace(rule, bench, self.longest) for bench in log.rehearsals(self.rehearsals)]
        return np.asarray(np.mean(played, axis=0))


def best_plans(
    rules: Mapping[str, Rule], means: Sequence[FloatArray], prices: Sequence[float]
) -> list[MethodPlan]:
    """For each price, the rule and the stop with the highest payoff.

    ``means`` has the mean score and spend of each rule, one row for each stop.
    """
    plans = []
    for price in prices:
        payoffs = [price * mean[:, 0] - mean[:, 1] for mean in means]
        best = int(np.argmax([p.max() for p in payoffs]))
        told, rule = list(rules.items())[best]
        plans.append(MethodPlan(rule, int(payoffs[best].argmax()) + 1, told))
    return plans


@dataclass(frozen=True, slots=True, eq=False)
class Documented:
    """A method without a log: its options are the defaults of its authors or its package.

    Parameters
    ----------
    name : str
    rule : function
        Returns the rule for runs of at most this many rows.
    stops : int, optional
        How often the rule may yield: for rules that yield after each run, the number of runs.
    """

    name: str
    rule: Callable[[int], Rule]
    stops: int | None = None

    def learn(self, log: Log, prices: Sequence[float]) -> list[MethodPlan]:
        """The same rule at every price."""
        return [MethodPlan(self.rule(log.most), self.stops, "as documented")] * len(prices)


def trace(rule: Rule, bench: Bench, stops: int | None) -> FloatArray:
    """Best score and spend each time that a rule yields, up to a number of times."""
    return np.array([(bench.best, bench.spent) for _ in islice(rule(bench), stops)])
