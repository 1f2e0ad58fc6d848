"""What a method is, and the methods that choose their options on the log.

A rule advances runs on the bench and yields whenever the search might stop. When to stop and, for
most methods, which options to use are chosen on the log: by playing searches among its runs and
taking the choice with the highest mean payoff.

The second half are the rules: successive halving and its relatives. Resources are counted in rows
of a curve, from 1; ``most`` is the length of a full run. Runs are ranked by the last score seen.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

import numpy as np

from .._common.arrays import FloatArray, IntArray
from ..errors import InvalidArgument
from ..learn.curves import Curves
from ..learn.ladder import top_excess
from .bench import Bench, Table

Rule = Callable[[Bench], Iterator[None]]
REHEARSALS = 32  # searches made up from each log


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
        For each of k rehearsals the runs that are searched, as many as in the searches to come.
    rehearsed : Table
        The runs that ``orders`` name: those of the log and imagined ones; None: those of the log.
    """

    given: Curves | None
    table: Table
    orders: IntArray
    rehearsed: Table | None = None

    @classmethod
    def of(cls, curves: Curves, runs: int, rng: np.random.Generator) -> Log:
        """The log of searches among this many runs.

        A rehearsal searches each run of the log once, in random order. Further runs repeat runs of
        the log at random; but after j runs the next one is the best so far with probability
        1 / (j + 1), as for any exchangeable runs. Then it exceeds the best by an exponential
        excess, whose mean is that of the best runs of the log, as in models of a log.
        """
        # on the bench a run ends with its rows, whatever became of it elsewhere
        curves = replace(curves, ended=np.ones(len(curves), bool))
        table, n = Table.of(curves), len(curves)
        last = table.top[:, -1]
        best, excess = top_excess(last, np.ones(n))
        like = np.argsort(last, kind="stable")[-max(n // 10, 1) :]  # imagined runs learn as these
        orders: list[list[int]] = []
        parents: list[int] = []
        heights: list[float] = []
        for _ in range(REHEARSALS):
            order = rng.permutation(n)[:runs].tolist()
            height = best
            for j in range(len(order), runs):
                if rng.random() < 1.0 / (j + 1):
                    height += excess * rng.exponential()
                    order.append(n + len(parents))
                    parents.append(int(rng.choice(like)))
                    heights.append(height)
                else:
                    order.append(int(rng.integers(n)))
            orders.append(order)
        rehearsed = table.extended(np.array(parents, np.int64), np.array(heights, np.float64))
        return cls(curves, table, np.array(orders), rehearsed)

    @property
    def curves(self) -> Curves:
        """The runs of the log, which must be there."""
        if self.given is None:
            raise InvalidArgument("this method learns from a log, so the log must have runs.")
        return self.given

    def rehearsals(self, most: int) -> Iterator[Bench]:
        """Searches among the runs of the log."""
        return (Bench(self.rehearsed or self.table, order) for order in self.orders[:most])

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

    ``rules(log)`` returns all settings to choose from: a description of each, and its rule. Each is
    played in so many ``rehearsals``, with at most ``longest`` stops.
    """

    name: str
    rules: Callable[[Log], dict[str, Rule]]
    rehearsals: int = REHEARSALS
    longest: int | None = None

    def learn(self, log: Log, prices: Sequence[float]) -> list[MethodPlan]:
        """The setting and the stop with the highest mean payoff in the rehearsals."""
        _ = log.curves  # there must be some
        settings = self.rules(log)
        means = []  # mean score and spend of each rule, one row for each stop
        for rule in settings.values():
            played = [trace(rule, bench, self.longest) for bench in log.rehearsals(self.rehearsals)]
            stops = max(map(len, played))  # a search that has ended stays as it is
            padded = [np.pad(x, ((0, stops - len(x)), (0, 0)), "edge") for x in played]
            means.append(np.mean(padded, axis=0))
        plans = []
        for price in prices:
            payoffs = [price * mean[:, 0] - mean[:, 1] for mean in means]
            best = int(np.argmax([p.max() for p in payoffs]))
            told, rule = list(settings.items())[best]
            plans.append(MethodPlan(rule, int(payoffs[best].argmax()) + 1, told))
        return plans


@dataclass(frozen=True, slots=True, eq=False)
class Documented:
    """A method whose options are the defaults of its authors or its package.

    ``rule(log)`` returns the rule; without a log it may use only the length of runs. The rule may
    yield so many ``stops``: for rules that yield after each run, the number of runs.
    """

    name: str
    rule: Callable[[Log], Rule]
    stops: int | None = None

    def learn(self, log: Log, prices: Sequence[float]) -> list[MethodPlan]:
        """The same rule at every price."""
        return [MethodPlan(self.rule(log), self.stops, "as documented")] * len(prices)


def trace(rule: Rule, bench: Bench, stops: int | None) -> FloatArray:
    """Best score and spend each time that a rule yields, up to a number of times."""
    return np.array([(bench.best, bench.spent) for _ in islice(rule(bench), stops)])


def top_k(bench: Bench, runs: int, keep: int) -> Iterator[None]:
    """Train some runs for one epoch and the best K of them to the end (arXiv 2307.15422).

    An epoch is the first step that costs something.
    """
    started = np.arange(min(runs, len(bench)))
    if len(best := _best(started, bench.first_epoch(started), keep)):
        bench.advance_all(best, bench.longest)
    yield


def successive_halving(bench: Bench, runs: int, rate: int, least: int, most: int) -> Iterator[None]:
    """Successive halving (Jamieson and Talwalkar, 2016): one synchronous bracket.

    All runs see ``least`` rows. Then, and whenever the remaining runs have seen ``rate`` times as
    many, the best ``ceil(runs / rate**k)`` continue. Runs on the last rung go to their ends.
    """
    alive = np.arange(min(runs, len(bench)))
    size, k, rows = len(alive), 0, least
    while rows < most and len(alive) > 1:
        score = bench.advance_all(alive, rows)
        k, rows = k + 1, rows * rate
        alive = _best(alive, score, -(-size // rate**k))
    if len(alive):
        bench.advance_all(alive, bench.longest)
    yield


def hyperband(bench: Bench, runs: int, rate: int, least: int, most: int) -> Iterator[None]:
    """Hyperband (Li et al., 2018, algorithm 1): brackets from bold to cautious, over and over.

    It ends when this many runs have been started; the last bracket may be short of runs. Yields
    after each bracket.
    """
    deepest = int(np.log(most / least) / np.log(rate) + 1e-9)
    begun, s, limit = 0, deepest, min(runs, len(bench))
    while begun < limit:
        size = -(-(deepest + 1) * rate**s // (s + 1))
        alive = np.arange(begun, min(begun + size, limit))
        begun += len(alive)
        size = len(alive)
        for i in range(s):
            if len(alive) > 1:
                score = bench.advance_all(alive, max(round(most / rate ** (s - i)), least))
                alive = _best(alive, score, max(size // rate ** (i + 1), 1))
        if len(alive):
            bench.advance_all(alive, bench.longest)
        s = s - 1 if s > 0 else deepest
        yield


def asha(bench: Bench, rate: int, least: int, most: int) -> Iterator[None]:
    """Asynchronous successive halving (Li et al., 2020, algorithm 2) with one worker.

    A run that is among the best ``1 / rate`` of its rung is promoted, from the highest rung that
    has one; if there is none, a new run is started. Yields before each new run.
    """
    levels = [least]
    while levels[-1] < most:
        levels.append(min(levels[-1] * rate, most))
    # all runs that have reached a rung, best first, and those of them that were not promoted
    rungs: list[tuple[list[tuple[float, int]], ...]] = [([], []) for _ in levels]

    def reach(k: int, run: int) -> None:
        score = bench.advance(run, levels[k])
        insort(rungs[k][0], (-score, run))
        if score > -np.inf:  # a run that has diverged is never promoted
            insort(rungs[k][1], (-score, run))

    for new in range(len(bench)):
        reach(0, new)
        k = len(levels) - 2
        while k >= 0:
            every, waiting = rungs[k]
            if waiting and bisect_left(every, waiting[0]) < len(every) // rate:
                reach(k + 1, waiting.pop(0)[1])
                k = len(levels) - 1
            k -= 1
        yield


def _best(runs: IntArray, score: FloatArray, keep: int) -> IntArray:
    """The runs with the highest scores, earlier runs first among equals, no diverged runs."""
    order = np.argsort(-score, kind="stable")[:keep]
    return runs[order[score[order] > -np.inf]]
