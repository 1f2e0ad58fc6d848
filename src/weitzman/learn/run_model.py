"""What every model of a run offers to races, back-tests, pictures and reports."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from .._common.arrays import FloatArray, IntArray
from ..errors import InvalidArgument
from ..forest.model import Forest
from .curves import Curves
from .log_tables import Config


class Shown(NamedTuple):
    """What a run has shown so far, and what it was started with."""

    steps: Sequence[int]  # all that was seen, by ascending step
    scores: Sequence[float]  # NaN where the run had diverged
    costs: Sequence[float] | None = None  # of each row; without costs, the usual cost is taken
    settings: Config | None = None


@runtime_checkable
class RunModel(Protocol):
    """The law of a run, with a price on its scores.

    :func:`weitzman.learn.fit` makes one. To write another model, derive from this class and
    override ``next_index`` or ``next_indices``, and what has no body here; the other methods suit
    runs that are alike until they start.

    Attributes
    ----------
    price : float
        What one point of score is worth, in units of cost.
    minimize : bool
        Lower scores are better.
    rungs : (R,) array of int
        The steps at which to decide whether a run continues; ``lines`` has one box for each.
    """

    price: float
    minimize: bool
    rungs: IntArray

    @property
    def fresh_index(self) -> float:
        """The index of starting a run about which nothing is known."""
        ...

    def lines(self, n: int = 1) -> Forest:
        """A forest of n new runs."""
        ...

    def worth(self, score: float) -> float:
        """What a score is worth, in units of cost; higher is better, also when minimizing."""
        return -self.price * score if self.minimize else self.price * score

    def next_rung(self, step: int | None) -> int | None:
        """The step of the next decision; None where the line ends."""
        place = 0 if step is None else int(np.searchsorted(self.rungs, step, "right"))
        return int(self.rungs[place]) if place < len(self.rungs) else None

    def next_index(
        self, steps: Sequence[int], scores: Sequence[float],
        costs: Sequence[float] | None = None, settings: Config | None = None,
    ) -> float:  # fmt: skip
        """The index of continuing a run that has shown this, in units of cost.

        Minus infinity at the end of a run, and if its last score is NaN: such a run has diverged.

        Parameters
        ----------
        steps, scores : sequences of equal length
            All that was seen of the run, by ascending step.
        costs : sequence, optional
            What each row cost. Where runs differ in cost, the costs so far tell what the next steps
            will cost; without costs, the usual cost is taken.
        settings : mapping, optional
            What the run was started with, for a model that was learned from runs with settings.

        Examples
        --------
        >>> from weitzman import learn
        >>> model = learn.fit(learn.sample().of_task("letter"), price=1000)
        >>> good, bad = model.next_index([0, 1], [0.3, 0.4]), model.next_index([0, 1], [0.1, 0.1])
        >>> good > bad
        True
        """
        return float(self.next_indices([Shown(steps, scores, costs, settings)])[0])

    def gain(self, best: float, runs: Sequence[Shown], fresh: int) -> float:
        """What continuing adds to a worth in hand, after costs, with these runs and new ones."""
        ...

    def next_indices(self, runs: Sequence[Shown]) -> FloatArray:
        """The index of continuing each of several runs."""
        return np.array([self.next_index(*run) for run in runs])

    def start_indices(self, settings: Sequence[Config]) -> FloatArray:
        """The index of starting a run with each of these settings."""
        return np.full(len(settings), self.fresh_index)


def check_model(model: object) -> None:
    """Raise InvalidArgument if an object is not a model of a run."""
    if isinstance(model, RunModel):
        return
    what = type(model).__name__
    members = sorted(x for x in (*vars(RunModel), *RunModel.__annotations__) if x[0] != "_")
    lacking = [name for name in members if not hasattr(model, name)]
    raise InvalidArgument(
        f"the model of a run must be one that `learn.fit(curves, price=...)` returns, or have all "
        f"that `learn.RunModel` has, but it is a {what} without {', '.join(lacking[:3])}"
        f"{' and more' if len(lacking) > 3 else ''}."
    )


def check_stated(price: float | None, full_run_cost: float | None) -> None:
    """Raise InvalidArgument unless either is given, and the cost of a full run is positive."""
    if (price is None) == (full_run_cost is None):
        raise InvalidArgument("give either `price` or `full_run_cost`.")
    if full_run_cost is not None and not 0 < full_run_cost < np.inf:
        raise InvalidArgument(
            f"`full_run_cost` must be above 0 and finite, but it is {full_run_cost!r}."
        )


def price_of(curves: Curves, price: float | None, full_run_cost: float | None) -> float:
    """What a point of score is worth, given directly or by the points that a full run costs."""
    check_stated(price, full_run_cost)
    if full_run_cost is None:
        assert price is not None
        return price
    whole = curves.ended if curves.ended.any() else np.ones(len(curves), bool)
    mean = float(curves.total_cost[whole].mean())
    if not mean > 0:
        raise InvalidArgument("the runs of the log cost nothing: state `price` instead.")
    return mean / full_run_cost


def as_curves(runs: Sequence[Shown], minimize: bool) -> Curves:
    """Runs under way as curves. A run without costs, or with no costs above 0, costs the usual."""
    paid = [np.zeros(len(run.steps)) if run.costs is None else run.costs for run in runs]
    for run, costs in zip(runs, paid, strict=True):
        if not len(run.steps) == len(run.scores) == len(costs):
            raise InvalidArgument("a run must have one score and one cost per step.")
    return Curves(
        runs=tuple(map(str, range(len(runs)))), task=("",) * len(runs),
        start=np.cumsum([0, *(len(run.steps) for run in runs)]),
        step=np.concatenate([np.asarray(run.steps, np.int64) for run in runs]),
        score=np.concatenate([np.asarray(run.scores, np.float64) for run in runs]),
        cost=np.concatenate([np.asarray(x, np.float64) for x in paid]),
        ended=np.zeros(len(runs), bool), minimize=minimize,
    )  # fmt: skip


def check_price(price: object) -> float:
    """A price as a number; an InvalidArgument unless it is positive and finite."""
    if not isinstance(price, Real) or not 0 < float(price) < np.inf:
        raise InvalidArgument(f"the price must be positive and finite, but it is {price!r}.")
    return float(price)


def ceiling_of(limit: float | None, minimize: bool) -> float:
    """The limit of scores, turned so that higher is better; an error if it is not finite."""
    if limit is None:
        return np.inf
    if not np.isfinite(limit):
        raise InvalidArgument(f"the limit must be finite, or None, but it is {limit!r}.")
    return -limit if minimize else limit
