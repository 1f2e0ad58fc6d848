"""A line learned from curves: what the next run will probably do, and what that is worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._common.arrays import FloatArray, IntArray
from ..engine.solver import solve
from ..errors import InvalidArgument
from ..forest.model import Forest
from .ladder import Ladder
from .laws import Segment, Settings, cost_levels, segments
from .log_model import LearnedModel, ceiling_of, check_limit, check_price
from .run_model import Shown, gain_of


class LineModel(LearnedModel):
    """A model whose states are best scores so far, by what runs in such a state showed next.

    Made by :func:`weitzman.learn.fit` or :func:`~weitzman.learn.load`. In this model all
    runs are alike until they start.

    Attributes
    ----------
    settings : Settings
    value : float
        What one new run is worth if it is continued as long as that pays.
    """

    settings: Settings

    def __init__(self, ladder: Ladder, *, price: float, minimize: bool, settings: Settings) -> None:
        self.price, self.minimize, self.settings = check_price(price), minimize, settings
        self.ladder = ladder
        check_limit(ladder, settings.limit, minimize)
        self._segments = segments(ladder, settings, ceiling_of(settings.limit, minimize))
        self.rungs = ladder.rungs[: len(self._segments)]
        self._line = _line(self._segments, self.price, self.rungs)
        solution = solve(self._line, threads=1)
        self.value = float(solution.value)
        self._indices = [
            solution.indices(r)[: self._segments[r - 1].alive.shape[1] if r else 1]
            for r in range(len(self._segments))
        ]

    def lines(self, n: int = 1) -> Forest:
        """A forest of n new runs, in worth and cost; box r of a line goes on to ``rungs[r]``."""
        return self._line.take(range(len(self.rungs)), count=[n] + [1] * (len(self.rungs) - 1))

    def rest(self, runs: Sequence[Sequence[Any]], fresh: int) -> Forest | None:
        """What can still be opened: the rest of some runs, and new runs; None if there is nothing.

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
        states = [self._state(*history) for history in runs]
        new = fresh + sum(reached == 0 for reached, _ in states)
        going = [(reached, before) for reached, before in states if before is not None]
        return self._taken(new, going) if new or going else None

    def _taken(self, new: int, going: Sequence[tuple[int, FloatArray]]) -> Forest:
        """New runs, and runs that have gone through some segments, by the weights of their states.

        A run between states goes on as a mixture of them, so that its first box has a law of its
        own; all other boxes are those of the line.
        """
        line, size = self._line, len(self.rungs)
        firsts = [*([0] if new else []), *(reached for reached, _ in going)]
        boxes = np.concatenate([np.arange(first, size) for first in firsts])
        tops = np.cumsum([0, *(size - first for first in firsts[:-1])])
        parent = np.arange(-1, len(boxes) - 1)
        parent[tops] = -1
        law, cost, count = line.law[boxes], line.cost[boxes], np.ones(len(boxes), np.int64)
        laws = [_mixed(before, line.laws[int(line.law[first])]) for first, before in going]
        costs = [_mixed(before, line.costs[int(line.cost[first])]) for first, before in going]
        own = tops[bool(new) :]
        law[own] = len(line.laws) + np.arange(len(own))
        cost[own] = len(line.costs) + np.arange(len(own))
        count[tops[: bool(new)]] = new
        numbers = np.searchsorted(tops, np.arange(len(boxes)), "right") - 1
        names = [f"{i}:{self.rungs[r]}" for i, r in zip(numbers, boxes, strict=True)]
        return line.take(
            boxes, parent=parent, law=law, laws=line.laws.with_more(laws), cost=cost,
            costs=line.costs.with_more(costs), count=count, names=tuple(names),
        )  # fmt: skip

    @property
    def fresh_index(self) -> float:
        """The index of starting a new run, in worth."""
        return float(self._indices[0][0])

    def next_indices(self, runs: Sequence[Shown]) -> FloatArray:
        """The index of going on with each of several runs."""
        return np.array([self._index(*self._state(*run[:3])) for run in runs])

    def _index(self, reached: int, before: FloatArray | None) -> float:
        if before is None:
            return self.fresh_index if reached == 0 else -np.inf
        return float(before @ self._indices[reached])

    def gain(self, best: float, runs: Sequence[Shown], fresh: int) -> float:
        """What going on adds to a worth in hand, after costs, with these runs and new ones."""
        begun = [run[:3] for run in runs if len(run.steps)]
        index = self.next_indices([Shown(*run) for run in begun])
        going = [run for run, x in zip(begun, index, strict=True) if x > best]  # others add nothing
        new = fresh + len(runs) - len(begun) if self.fresh_index > best else 0
        return gain_of(self.rest(going, new) if going or new else None, best)

    def promised(self, runs: Ladder) -> float:
        """What a search among these runs is expected to earn; only their number counts."""
        return float(solve(self.lines(len(runs)), threads=1).value)

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

    def at_price(self, price: float) -> LineModel:
        """The model with another price of a score."""
        other = LineModel(self.ladder, price=price, minimize=self.minimize, settings=self.settings)
        other.noise = self.noise
        return other

    def relearned(self, ladder: Ladder, last: LearnedModel | None = None) -> LineModel:
        """A model of the same kind, learned from other runs."""
        return LineModel(ladder, price=self.price, minimize=self.minimize, settings=self.settings)

    def _state(
        self,
        steps: Sequence[float],
        scores: Sequence[float],
        costs: Sequence[float] | None = None,
    ) -> tuple[int, FloatArray | None]:
        """Segments done, and the weights of the states of a run; None if the run cannot go on."""
        if len(scores) != len(steps) or (costs is not None and len(costs) != len(steps)):
            raise InvalidArgument("a run must have one score and one cost per step.")
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
        """The cost level of the run's last whole segment that cost anything."""
        segment = np.searchsorted(self.rungs, steps)
        paid = np.bincount(segment, costs, reached).astype(np.float64)[None, :reached]
        usual = np.array([s.usual for s in self._segments[:reached]])
        return float(cost_levels(paid, usual)[0, -1])


def _mixed(weight: FloatArray, matrix: FloatArray) -> FloatArray:
    """The mean of the first rows of a matrix; one row if all are alike."""
    return matrix if len(matrix) == 1 else weight[None] @ matrix[: len(weight)]


def _line(parts: Sequence[Segment], price: float, rungs: IntArray) -> Forest:
    """A new run as boxes in a line, one for each segment.

    A box has the states of a run that is alive, then the states of a run that is gone. A box after
    a run that is gone shows the lowest score and costs so much that no policy opens it: a better
    score is in hand by then.
    """
    cost: list[FloatArray | float] = []
    rewards, law = [], []
    for r, s in enumerate(parts):
        matrix, paid = np.hstack([s.alive, s.gone]), s.cost
        if r:
            nothing = np.zeros((len(parts[r - 1].grid), matrix.shape[1]))
            nothing[:, s.alive.shape[1]] = 1.0
            matrix = np.vstack([matrix, nothing])
            high = paid.max() + price * (s.grid[0] - parts[0].grid[0])
            paid = np.concatenate([paid, np.full(len(nothing), high)])
        law.append(matrix / matrix.sum(axis=1, keepdims=True))
        cost.append(paid if r else float(paid[0]))
        rewards.append(price * np.concatenate([np.repeat(s.grid, len(s.levels)), s.grid]))
    return Forest.from_arrays(
        parent=np.arange(-1, len(parts) - 1), cost=cost, rewards=rewards, law=law,
        names=[f"0:{step}" for step in rungs], outside=-np.inf,
    )  # fmt: skip
