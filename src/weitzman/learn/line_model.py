"""A line learnt from curves: what the next run will probably do, and what that is worth."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from .._common.arrays import FloatArray, IntArray
from ..engine.solver import solve
from ..errors import InvalidArgument
from ..forest.model import Forest
from .curves import Curves
from .known import Config
from .ladder import Ladder, climb
from .laws import Segment, Settings, cost_levels, segments
from .live import at_live_costs
from .run_model import RunModel, Shown, gain_of


class LineModel(RunModel):
    """The law of a run, learnt from a log, with the index of every state.

    Made by :func:`weitzman.learn.fit`, :func:`~weitzman.learn.load` or
    :func:`~weitzman.learn.transfer`.

    Attributes
    ----------
    price : float
        What one point of score is worth, in units of cost.
    minimize : bool
        Lower scores are better.
    settings : Settings
    rungs : (R,) array of int
        The steps at which it is decided whether a run goes on.
    ladder : Ladder
        The runs that it was learnt from, as seen from the rungs.
    value : float
        What one new run is worth if it is continued as long as that pays.
    """

    def __init__(self, ladder: Ladder, *, price: float, minimize: bool, settings: Settings) -> None:
        check_price(price)
        self.price, self.minimize, self.settings = float(price), minimize, settings
        self.ladder = ladder
        check_limit(ladder, settings.limit, minimize)
        self._segments = segments(ladder, settings, ceiling_of(settings.limit, minimize))
        self.rungs = ladder.rungs[: len(self._segments)]
        solution = solve(self.lines(), threads=1)
        self.value = float(solution.value)
        self._indices = [
            solution.indices(r)[: self._segments[r - 1].alive.shape[1] if r else 1]
            for r in range(len(self._segments))
        ]

    def __repr__(self) -> str:
        return (
            f"LineModel({len(self.ladder)} runs, {len(self.rungs)} rungs up to step "
            f"{self.rungs[-1]}, {priced(self)}{', minimize' if self.minimize else ''})"
        )

    def lines(self, n: int = 1) -> Forest:
        """A forest of n new runs, in worth and cost; box r of a line goes on to ``rungs[r]``."""
        return _forest(self._segments, self.price, [(0, None, n)], self.rungs)

    def rest(self, runs: Sequence[Sequence[Any]], fresh: int) -> Forest | None:
        """What can still be opened: the rest of some runs, and new ones; None if nothing.

        Parameters
        ----------
        runs : sequence of (steps, scores) or (steps, scores, costs)
            What each run under way has shown. A run at its end leaves nothing.
        fresh : int
            New runs, as copies of one line.

        Returns
        -------
        Forest or None
            The new runs first. The first box of the rest of a run is a root, with the law that
            follows from what the run has shown.
        """
        parts: list[tuple[int, FloatArray | None, int]] = [(0, None, fresh)] if fresh else []
        for history in runs:
            reached, before = self._state(*history)
            if before is not None:
                parts.append((reached, before, 1))
            elif reached == 0:
                parts.append((0, None, 1))
        return _forest(self._segments, self.price, parts, self.rungs) if parts else None

    @property
    def fresh_index(self) -> float:
        """The index of starting a new run, in worth."""
        return float(self._indices[0][0])

    def next_index(
        self,
        steps: Sequence[int],
        scores: Sequence[float],
        costs: Sequence[float] | None = None,
        settings: Config | None = None,
    ) -> float:
        """The index of going on with a run that has shown these scores, in units of cost.

        Minus infinity at its end, and where its last score is NaN: it has diverged.

        Parameters
        ----------
        steps, scores : sequences of equal length
            All that was seen of the run, by ascending step.
        costs : sequence, optional
            What each row cost. Where runs differ in cost, those of a run tell what its next steps
            will cost; without them the usual cost is taken.
        settings : mapping, optional
            Not looked at: to this model all runs are alike until they start.

        Examples
        --------
        >>> from weitzman import learn
        >>> model = learn.fit(learn.sample().of_task("letter"), price=1000)
        >>> good, bad = model.next_index([0, 1], [0.3, 0.4]), model.next_index([0, 1], [0.1, 0.1])
        >>> good > bad
        True
        """
        reached, before = self._state(steps, scores, costs)
        if before is None:
            return self.fresh_index if reached == 0 else -np.inf
        return float(before @ self._indices[reached])

    def gain(self, best: float, runs: Sequence[Shown], fresh: int) -> float:
        """What going on adds to a worth in hand, after costs, with these runs and new ones."""
        begun = [run[:3] for run in runs if len(run.steps)]
        going = [run for run in begun if self.next_index(*run) > best]  # the others add nothing
        new = fresh + len(runs) - len(begun) if self.fresh_index > best else 0
        return gain_of(self.rest(going, new) if going or new else None, best)

    def rows(self, r: int) -> FloatArray:
        """The number of runs that each row of the law of segment r rests on."""
        return self._segments[r].runs

    def indices_of(self, runs: Ladder) -> FloatArray:
        """The index of each segment of these runs, given what they had shown before."""
        size = len(self._segments)
        out = np.full((len(runs), size), self.fresh_index)
        level = cost_levels(runs.cost[:, :size], np.array([s.usual for s in self._segments]))
        for r in range(1, size):
            before = self._segments[r - 1].places(runs.best[:, r - 1], level[:, r - 1])
            out[:, r] = before @ self._indices[r]
        return out

    def updated(self, curves: Curves) -> LineModel:
        """The model learnt from these curves too, with the same rungs and settings.

        For runs of a search under way: they are cut off where they stand, unless they have ended.
        If they clearly cost more or less than the log says, its costs are scaled, with a warning.
        """
        if curves.minimize != self.minimize:
            raise InvalidArgument("the model and the curves must both maximize or both minimize.")
        new = climb(curves, self.ladder.rungs)
        return self.relearnt(at_live_costs(self.ladder, new).joined(new))

    def relearnt(self, ladder: Ladder) -> LineModel:
        """The same kind of model, learnt from other runs."""
        return LineModel(ladder, price=self.price, minimize=self.minimize, settings=self.settings)

    def _state(
        self,
        steps: Sequence[float],
        scores: Sequence[float],
        costs: Sequence[float] | None = None,
    ) -> tuple[int, FloatArray | None]:
        """Segments done, and the weights of the states it is in; None if it cannot go on."""
        if len(scores) != len(steps) or (costs is not None and len(costs) != len(steps)):
            raise InvalidArgument("a run has as many scores and costs as steps.")
        if not len(steps):
            return 0, None
        reached = int(np.searchsorted(self.rungs, steps[-1], "right"))
        if np.isnan(scores[-1]):
            return max(reached, 1), None
        if reached in (0, len(self.rungs)):
            return reached, None
        best = -np.nanmin(scores) if self.minimize else np.nanmax(scores)
        level = 0.0
        if costs is not None and len(self._segments[reached - 1].levels) > 1:
            level = self._level(np.asarray(steps), np.asarray(costs), reached)
        return reached, self._segments[reached - 1].places(best, level)[0]

    def _level(self, steps: IntArray, costs: FloatArray, reached: int) -> float:
        """How dear the run was in its last whole segment that cost anything."""
        segment = np.searchsorted(self.rungs, steps)
        paid = np.bincount(segment, costs, reached).astype(np.float64)[None, :reached]
        usual = np.array([s.usual for s in self._segments[:reached]])
        return float(cost_levels(paid, usual)[0, -1])


def full_run_cost(ladder: Ladder, price: float) -> float:
    """What a run that goes to its end costs on average, in points of score."""
    over = ladder.gone if ladder.gone.any() else np.ones(len(ladder), bool)
    seen = np.arange(ladder.cost.shape[1]) < ladder.seen[:, None]
    paid = (ladder.cost * seen).sum(axis=1)[over]
    return float(np.average(paid, weights=ladder.weight[over])) / price


def priced(model: Any) -> str:
    """The price in words: of a point in units of cost, and of a full run in points."""
    points = full_run_cost(model.ladder, model.price)
    return f"price {model.price:.6g}: a full run costs {points:.3g} points"


def ceiling_of(limit: float | None, minimize: bool) -> float:
    """The limit of scores, turned so that higher is better."""
    if limit is None:
        return np.inf
    return -limit if minimize else limit


def check_price(price: object) -> None:
    """Raise InvalidArgument unless a price is positive and finite."""
    if not isinstance(price, Real) or not 0 < float(price) < np.inf:
        raise InvalidArgument(f"the price must be positive and finite, but it is {price!r}.")


def check_limit(ladder: Ladder, limit: float | None, minimize: bool) -> None:
    """Raise InvalidArgument if a run is better than the limit."""
    if limit is None:
        return
    if not np.isfinite(limit):
        raise InvalidArgument(f"the limit must be finite, or None, but it is {limit!r}.")
    best = float(ladder.best.max())
    if best > ceiling_of(limit, minimize):
        raise InvalidArgument(
            f"no score may be better than the limit of {limit:g}, but a run showed "
            f"{-best if minimize else best:g}. Give the best score that there can be, or none."
        )


def _forest(
    parts: Sequence[Segment],
    price: float,
    starts: Sequence[tuple[int, FloatArray | None, int]],
    rungs: IntArray,
) -> Forest:
    """Lines that begin at a segment, with the weights of the states before it, in some number.

    A box has the states of a run that is alive, then those of one that is gone. What follows a run
    that is gone shows its lowest score and costs so much that it never beats the lowest of all,
    which is held by then: no policy opens it.
    """
    parent: list[int] = []
    cost: list[FloatArray | float] = []
    rewards, law, count, names = [], [], [], []
    for number, (first, before, copies) in enumerate(starts):
        for r in range(first, len(parts)):
            s = parts[r]
            matrix, paid = np.hstack([s.alive, s.gone]), s.cost
            if r == first and before is not None:
                matrix, paid = before[None] @ matrix, before[None] @ paid
            elif r > first:
                nothing = np.zeros((len(parts[r - 1].grid), matrix.shape[1]))
                nothing[:, s.alive.shape[1]] = 1.0
                matrix = np.vstack([matrix, nothing])
                dear = paid.max() + price * (s.grid[0] - parts[0].grid[0])
                paid = np.concatenate([paid, np.full(len(nothing), dear)])
            parent.append(len(parent) - 1 if r > first else -1)
            law.append(matrix / matrix.sum(axis=1, keepdims=True))
            cost.append(paid if r > first else float(paid[0]))
            rewards.append(price * np.concatenate([np.repeat(s.grid, len(s.levels)), s.grid]))
            count.append(copies if r == first else 1)
            names.append(f"{number}:{rungs[r]}")
    return Forest.from_arrays(
        parent=parent, cost=cost, rewards=rewards, law=law, count=count, names=names,
        outside=-np.inf,
    )  # fmt: skip
