r"""Logged runs as states: the law of a run is its resemblance to runs of the log.

After segment r the states are the logged runs j that were seen that far, each worth its best score
:math:`b_{jr}` there. A run of which :math:`x` is known moves to state j with the probability
:math:`w_r(x, j)` that trees give. With capped values K as in the theory of lines,

.. math:: C_r(x, s) = \sum_j w_r(x, j)\, E(K_{jr} - s)^+, \qquad C_r(x, \sigma) = c_r(x),

and for :math:`y = \max(s, b_{jr})`

.. math:: E(K_{jr} - s)^+ = (b_{jr} - s)^+ + (C_{r+1}(j, y) - c_{r+1}(j))^+ .

All functions of s are kept on one grid and are linear between its points. They are convex, so an
index is never too low for it; the grid has the best scores one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._types import BoolArray, FloatArray, IntArray
from ._known import Encoder, features, is_category
from ._ladder import Ladder
from ._laws import cost_levels, usual_cost
from ._trees import Trees

MODE = "exp"
_GRID = 256
_OWN = 96  # points of the grid that are the best scores one by one
_FAR = 3.0  # beyond a factor of 20 costs are not scaled further
_ALIKE = 0.1  # standard deviation of log costs below which runs are taken to cost the same
_COST = 0.5  # what a standard deviation of cost counts against one of scores when trees split


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One segment of a line.

    Attributes
    ----------
    trees : Trees
        Grown from the runs that were seen to its end.
    runs : (n,) array of int
        These runs, as numbers in the ladder.
    fold : (n, k) array of float
        Which states stand for them: the identity, unless there are fewer states than runs.
    state : (k,) array of int
        The states at its end, as numbers in the ladder.
    cost, level : (n,) arrays of float
        What the segment cost each run, and how dear the one before it was.
    """

    trees: Trees
    runs: IntArray
    keep: IntArray
    near: IntArray
    cost: FloatArray
    level: FloatArray

    def law(
        self, known: FloatArray, level: FloatArray, own: IntArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """The rows of the law over the states, and the mean costs, of runs so known."""
        row = self.trees.rows(known, own)
        scale = np.exp(np.clip(level[:, None] - self.level, -_FAR, _FAR))
        cost = (row * scale) @ self.cost
        return self.folded(row), cost

    def folded(self, row: FloatArray) -> FloatArray:
        """Rows over runs as rows over states."""
        if len(self.keep) == len(self.runs):
            return row
        out = np.zeros((len(row), len(self.keep)))
        np.add.at(out.T, self.near, row.T)
        return out


def stages(
    ladder: Ladder, encoder: Encoder, *, trees: int, least: int, states: int, seed: int
) -> tuple[list[Stage], FloatArray]:
    """The stages of a line, and how dear each segment of each run was."""
    level = cost_levels(ladder.cost, usual_cost(ladder))
    seen = np.arange(level.shape[1]) < ladder.seen[:, None]
    if float(np.std(level[seen])) <= _ALIKE:
        level = np.zeros_like(level)
    random = np.random.default_rng(seed)
    out = []
    for r in range(int(ladder.seen.max())):
        runs = np.flatnonzero(ladder.seen > r)
        mine = ladder.select(runs)
        grown = Trees.grown(
            features(mine, r, level[runs]), is_category(encoder, r), _target(mine, r, level[runs]),
            mine.weight, trees=trees, least=least, random=random,
        )  # fmt: skip
        keep, near = _thinned(mine.best[:, r], states)
        before = level[runs, r - 1] if r else np.zeros(len(runs))
        out.append(Stage(grown, runs, keep, near, mine.cost[:, r], before))
    return out, level


def _target(ladder: Ladder, r: int, level: FloatArray) -> FloatArray:
    """What trees tell apart: the score at the end of a segment, the last score, and the cost."""
    final = ladder.best[np.arange(len(ladder)), ladder.seen - 1]
    columns = [_standard(ladder.best[:, r]), _standard(final)]
    if level.any():
        columns.append(_COST * _standard(level[:, r]))
    return np.column_stack(columns)


def _standard(x: FloatArray) -> FloatArray:
    rank = x.argsort().argsort()  # ties by number
    order = np.unique(x, return_inverse=True)[1]
    mean = np.bincount(order, rank) / np.bincount(order)
    u = (mean[order] + 0.5) / len(x)
    if MODE == "raw":
        return (x - x.mean()) / max(x.std(), 1e-12)
    if MODE == "half":
        z = np.maximum(x, np.median(x))
        return (z - z.mean()) / max(z.std(), 1e-12)
    if MODE == "rank":
        return u
    return -np.log1p(-u)


def _thinned(score: FloatArray, states: int) -> tuple[IntArray, IntArray]:
    """The runs that serve as states, all if possible, and which of them stands for each run."""
    n = len(score)
    if n <= states:
        return np.arange(n), np.arange(n)
    down = np.argsort(-score, kind="stable")
    own = states // 3
    rest = np.linspace(own, n - 1, states - own).round().astype(np.int64)
    keep = np.concatenate([down[:own], down[rest]])[::-1]
    middle = (score[keep][1:] + score[keep][:-1]) / 2
    return keep, np.searchsorted(middle, score)


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """Expected gains of all states on a grid.

    Attributes
    ----------
    grid : (G,) array of float
        Ascending worths s.
    gain : list of (k, G) arrays
        For each stage and state at its end :math:`E(K - s)^+`.
    """

    grid: FloatArray
    gain: list[FloatArray]

    def index(self, r: int, row: FloatArray, cost: FloatArray) -> FloatArray:
        """The index of going through stage r with these rows and costs."""
        return _roots(self.grid, _ahead(self.grid, row, self.gain[r]), cost)


def solve_stages(
    parts: list[Stage], ladder: Ladder, encoder: Encoder, level: FloatArray, price: float
) -> Solved:
    """Backward from the last segment to the first."""
    grid = _grid(price * np.concatenate([ladder.best[s.runs, r] for r, s in enumerate(parts)]))
    gain: list[FloatArray] = []
    for r in reversed(range(len(parts))):
        here = parts[r]
        state = here.runs[here.keep]
        reward = price * ladder.best[state, r]
        found = np.maximum(reward[:, None] - grid, 0.0)
        going = ~(ladder.gone[state] & (ladder.seen[state] == r + 1))
        if r + 1 < len(parts) and going.any():
            row, cost = logged_law(parts[r + 1], ladder, encoder, level, r + 1, state[going])
            found[going] += _beyond(grid, row @ gain[-1], cost, reward[going])
        gain.append(found)
    return Solved(grid, gain[::-1])


TOP = 3.0
def _ahead(grid, row, gain):
    c = row @ gain
    if not TOP: return c
    alpha = np.minimum(TOP * np.square(row).sum(axis=1), 0.5)
    p = -np.diff(c, axis=1) / np.diff(grid)
    k = (p > alpha[:, None]).sum(axis=1)
    k = np.minimum(k, p.shape[1] - 1)
    each = np.arange(len(c))
    at, mass = c[each, k], p[each, k]
    with np.errstate(all="ignore"):
        rate = np.where(at > 0, mass / at, 0.0)
    tail = at[:, None] * np.exp(-np.maximum(grid - grid[k][:, None], 0.0) * rate[:, None])
    return np.where(np.arange(len(grid)) > k[:, None], tail, c)


def logged_law(
    stage: Stage, ladder: Ladder, encoder: Encoder, level: FloatArray, r: int, runs: IntArray
) -> tuple[FloatArray, FloatArray]:
    """The law of segment r and its mean cost after what logged runs had shown, each by others."""
    place = np.full(len(ladder), -1)
    place[stage.runs] = np.arange(len(stage.runs))
    mine = ladder.select(runs)
    before = level[runs, r - 1] if r else np.zeros(len(runs))
    return stage.law(features(mine, r, level[runs]), before, place[runs])


def _beyond(
    grid: FloatArray, ahead: FloatArray, cost: FloatArray, reward: FloatArray
) -> FloatArray:
    """What going on adds at each worth, given that the reward is in hand."""
    place = np.clip(np.searchsorted(grid, reward, "right") - 1, 0, len(grid) - 2)
    part = (reward - grid[place]) / (grid[place + 1] - grid[place])
    each = np.arange(len(reward))
    there = ahead[each, place] * (1 - part) + ahead[each, place + 1] * part
    held = np.where(grid >= reward[:, None], ahead, there[:, None])
    return np.maximum(held - cost[:, None], 0.0)


def _roots(grid: FloatArray, ahead: FloatArray, cost: FloatArray) -> FloatArray:
    """Where each falling function, linear between grid points, comes down to its cost."""
    above = (ahead > cost[:, None]).sum(axis=1)
    k = np.clip(above, 1, len(grid) - 1)
    each = np.arange(len(cost))
    high, low = ahead[each, k - 1], ahead[each, k]
    part = (high - cost) / np.maximum(high - low, 1e-300)
    inside = grid[k - 1] + part * (grid[k] - grid[k - 1])
    return np.where(above == 0, grid[0] + ahead[:, 0] - cost, inside)


def _grid(worth: FloatArray) -> FloatArray:
    """The best worths one by one, then ever fewer; both ends, and some room above."""
    down = np.unique(worth)[::-1]
    places = np.arange(len(down))
    if len(down) > _GRID:
        rest = np.linspace(_OWN, len(down) - 1, _GRID - _OWN).round().astype(np.int64)
        places = np.concatenate([np.arange(_OWN), rest])
    grid = down[places][::-1]
    width = max(float(grid[-1] - grid[0]), abs(float(grid[-1])) * 1e-9, 1e-12)
    return np.append(grid, grid[-1] + width * np.array([.005,.01,.015,.02,.03,.04,.06,.08,.1,.13,.16,.2,.25,.3,.4,.5,.7,1.,2.]))
