r"""Logged runs as states: a run goes on as those of the log that it resembles.

After segment r the states are the logged runs j that were seen that far, each worth its best score
:math:`b_{jr}` there. A run of which :math:`x` is known moves to state j with the probability
:math:`w_r(x, j)` that trees give. With capped values K as in the theory of lines,

.. math:: C_r(x, s) = \sum_j w_r(x, j)\, E(K_{jr} - s)^+, \qquad C_r(x, \sigma) = c_r(x)

is what segment r promises beyond a worth s in hand, and the index :math:`\sigma`. A state that goes
on has, with :math:`y = \max(s, b_{jr})`,

.. math:: E(K_{jr} - s)^+ = (b_{jr} - s)^+ + (C_{r+1}(j, y) - c_{r+1}(j))^+ .

All functions of s are kept on one grid and are linear between its points. They are convex, so a
coarse grid can only make an index too high. The best scores are grid points one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .known import Encoder, features, is_category
from .ladder import Ladder
from .laws import cost_levels, usual_cost
from .trees import Trees

_GRID = 256
_OWN = 96  # points of the grid that are the best scores one by one
_FAR = 3.0  # beyond a factor of 20 costs are not scaled further
_ALIKE = 0.1  # standard deviation of log costs below which runs are taken to cost the same
_COST = 0.5  # what a standard deviation of cost counts against one of scores when trees split
_SEED = 20160  # of the trees, so that the same log gives the same model


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One segment of a line.

    Attributes
    ----------
    trees : Trees
        Grown from the runs that were seen to its end.
    runs : (n,) array of int
        These runs, as numbers in the ladder.
    cost, level : (n,) arrays of float
        What the segment cost each run, and how dear the one before it was.
    states : (k,) array of int
        The runs that serve as states at its end, as numbers in the ladder.
    stands : (n,) array of int
        The state that stands for each run.
    """

    trees: Trees
    runs: IntArray
    cost: FloatArray
    level: FloatArray
    states: IntArray
    stands: IntArray

    def law(
        self, known: FloatArray, level: FloatArray, own: IntArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Rows over the states, and mean costs, for runs so known whose last segment was so dear.

        ``own`` says which runs of the ladder these are, if they are any.
        """
        place = np.full(len(known), -1)
        if own is not None:
            at = np.minimum(np.searchsorted(self.runs, own), len(self.runs) - 1)
            place = np.where(self.runs[at] == own, at, -1)
        row = self.trees.rows(known, place)
        scale = np.exp(np.clip(level[:, None] - self.level, -_FAR, _FAR))
        return self.folded(row), (row * scale) @ self.cost

    def usual(self) -> tuple[FloatArray, FloatArray]:
        """The same for a run of which nothing is known: one row and its cost."""
        row = (self.trees.weight / self.trees.weight.sum())[None]
        return self.folded(row), row @ self.cost

    def folded(self, row: FloatArray) -> FloatArray:
        """Rows over runs as rows over states."""
        if len(self.states) == len(self.runs):
            return row
        out = np.zeros((len(self.states), len(row)))
        np.add.at(out, self.stands, row.T)
        return out.T


@dataclass(frozen=True, slots=True, eq=False)
class Kin:
    """The stages of a line, and the runs that they were learnt from.

    Attributes
    ----------
    ladder : Ladder
    encoder : Encoder
    levels : (n, R) array of float
        How dear each segment of each run was; 0 where runs cost about the same.
    stages : list of Stage
    """

    ladder: Ladder
    encoder: Encoder
    levels: FloatArray
    stages: list[Stage]

    @classmethod
    def of(cls, ladder: Ladder, encoder: Encoder, *, trees: int, leaf: int, states: int) -> Kin:
        """Grow trees for every segment that a run was seen to finish."""
        levels = levels_of(ladder, usual_cost(ladder))
        random = np.random.default_rng(_SEED)
        stages = []
        for r in range(int(ladder.seen.max())):
            runs = np.flatnonzero(ladder.seen > r)
            mine, level = ladder.select(runs), levels[runs]
            grown = Trees.grown(
                features(mine, r, level), is_category(encoder, r), _target(mine, r, level),
                mine.weight, trees=trees, leaf=leaf, random=random,
            )  # fmt: skip
            kept, stands = _thinned(mine.best[:, r], states)
            before = level[:, r - 1] if r else np.zeros(len(runs))
            stages.append(Stage(grown, runs, mine.cost[:, r], before, runs[kept], stands))
        return cls(ladder, encoder, levels, stages)

    def law(
        self, r: int, runs: Ladder, levels: FloatArray, own: IntArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Rows and mean costs of segment r for these runs, by what they had shown before it."""
        before = levels[:, r - 1] if r else np.zeros(len(runs))
        return self.stages[r].law(features(runs, r, levels), before, own)

    def logged_law(self, r: int, own: IntArray) -> tuple[FloatArray, FloatArray]:
        """The same for runs of the log, each by what the others teach."""
        return self.law(r, self.ladder.select(own), self.levels[own], own)

    def goes_on(self, r: int) -> np.ndarray:
        """Which states at the end of segment r can go on."""
        states = self.stages[r].states
        over = self.ladder.gone[states] & (self.ladder.seen[states] == r + 1)
        return ~over if r + 1 < len(self.stages) else np.zeros(len(states), bool)


def levels_of(ladder: Ladder, usual: FloatArray) -> FloatArray:
    """How dear each segment of each run was; 0 where runs cost about the same."""
    level = cost_levels(ladder.cost, usual)
    seen = np.arange(level.shape[1]) < ladder.seen[:, None]
    alike = not seen.any() or float(np.std(level[seen])) <= _ALIKE
    return np.zeros_like(level) if alike else level


def _target(ladder: Ladder, r: int, level: FloatArray) -> FloatArray:
    """What trees tell apart: the score at the end of a segment, the last score, and the cost."""
    final = ladder.best[np.arange(len(ladder)), ladder.seen - 1]
    columns = [_upper(ladder.best[:, r]), _upper(final)]
    if level.any():
        columns.append(_COST * _standard(level[:, r]))
    return np.column_stack(columns)


def _upper(score: FloatArray) -> FloatArray:
    """Scores as they differ above the median: how bad a bad run is does not matter."""
    return _standard(np.maximum(score, np.median(score)))


def _standard(x: FloatArray) -> FloatArray:
    """Without mean, in standard deviations."""
    width = float(x.std())
    return (x - x.mean()) / width if width > 0 else np.zeros_like(x)


def _thinned(score: FloatArray, states: int) -> tuple[IntArray, IntArray]:
    """The runs that serve as states, all if possible, and which of them stands for each run.

    A third of them are the best runs; the others are spread evenly by rank. A run that is not among
    them is represented by the one that is nearest in score.
    """
    n = len(score)
    if n <= states:
        return np.arange(n), np.arange(n)
    down = np.argsort(-score, kind="stable")
    own = states // 3
    rest = np.linspace(own, n - 1, states - own).round().astype(np.int64)
    kept = np.concatenate([down[:own], down[rest]])[::-1]
    middle = (score[kept][1:] + score[kept][:-1]) / 2
    stands = np.searchsorted(middle, score)
    stands[kept] = np.arange(states)
    return kept, stands


@dataclass(frozen=True, slots=True, eq=False)
class Gains:
    """What states promise beyond a worth in hand, on a grid.

    Attributes
    ----------
    grid : (G,) array of float
        Worths s, ascending.
    gain : list of (k, G) arrays
        For each stage and state at its end :math:`E(K - s)^+`.
    """

    grid: FloatArray
    gain: list[FloatArray]

    @classmethod
    def of(cls, kin: Kin, price: float) -> Gains:
        """Backward from the last segment to the first."""
        stages, best = kin.stages, price * kin.ladder.best
        grid = _grid(np.concatenate([best[s.states, r] for r, s in enumerate(stages)]))
        gain: list[FloatArray] = []
        for r in reversed(range(len(stages))):
            states = stages[r].states
            reward = best[states, r]
            found = np.maximum(reward[:, None] - grid, 0.0)
            going = kin.goes_on(r)
            if going.any():
                row, cost = kin.logged_law(r + 1, states[going])
                found[going] += _beyond(grid, row @ gain[-1], cost, reward[going])
            gain.append(found)
        return cls(grid, gain[::-1])

    def index(self, r: int, row: FloatArray, cost: FloatArray) -> FloatArray:
        """The index of going through stage r with these rows and costs."""
        return _roots(self.grid, row @ self.gain[r], cost)

    def tails(self, r: int, row: FloatArray, index: FloatArray) -> FloatArray:
        """The chance that the capped value exceeds each worth, between grid points: (rows, G - 1).

        The part of an interval above the index counts as a part of its chance.
        """
        chance = -np.diff(row @ self.gain[r], axis=1) / np.diff(self.grid)
        below = (index[:, None] - self.grid[:-1]) / np.diff(self.grid)
        return np.asarray(chance * np.clip(below, 0.0, 1.0))


def _beyond(
    grid: FloatArray, ahead: FloatArray, cost: FloatArray, reward: FloatArray
) -> FloatArray:
    """What going on adds at each worth, given that the reward is in hand."""
    place = np.clip(np.searchsorted(grid, reward, "right") - 1, 0, len(grid) - 2)
    part = (reward - grid[place]) / (grid[place + 1] - grid[place])
    each = np.arange(len(reward))
    there = ahead[each, place] * (1 - part) + ahead[each, place + 1] * part
    held = np.where(grid >= reward[:, None], ahead, there[:, None])
    return np.asarray(np.maximum(held - cost[:, None], 0.0))


def _roots(grid: FloatArray, ahead: FloatArray, cost: FloatArray) -> FloatArray:
    """Where each falling function, linear between grid points, comes down to its cost."""
    above = (ahead > cost[:, None]).sum(axis=1)
    k = np.clip(above, 1, len(grid) - 1)
    each = np.arange(len(cost))
    high, low = ahead[each, k - 1], ahead[each, k]
    part = (high - cost) / np.maximum(high - low, 1e-300)
    inside = grid[k - 1] + part * (grid[k] - grid[k - 1])
    return np.asarray(np.where(above == 0, grid[0] + ahead[:, 0] - cost, inside))


def _grid(worth: FloatArray) -> FloatArray:
    """Where functions of a worth are kept: the best worths one by one, then every so many.

    Both ends, some points between neighbors where there are few, and one point above all.
    """
    down = np.unique(worth)[::-1]
    if len(down) > _GRID:
        rest = np.linspace(_OWN, len(down) - 1, _GRID - _OWN).round().astype(np.int64)
        down = down[np.concatenate([np.arange(_OWN), rest])]
    width = max(float(down[0] - down[-1]), abs(float(down[0])) * 1e-9, 1e-9)
    grid = np.append(down[::-1], down[0] + width)
    between = np.arange(0, len(grid) - 1, 1.0 / -(-_GRID // len(grid)))
    return np.append(np.interp(between, np.arange(len(grid)), grid), grid[-1])
