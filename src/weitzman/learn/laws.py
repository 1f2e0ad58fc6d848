"""From a ladder to the laws of a line: states chosen by the data, rows smoothed over neighbors.

The state of a run at a rung is its best score so far and, where runs differ in cost, the level of
its last segment's cost (the logarithm of that cost over the usual one). States lie on a grid of
each rung: every score near the top, fewer further down, and a few levels of cost.

The law of the next state rests on the runs that were nearest at that rung, weighted by how near:
what they showed next is what may come, on the grid, and what falls between two grid points is split
so that the mean is kept. A run that ended within a segment leads to a state that is *gone*. A run
that was cut off counts as far as it was seen, so that a row rests on the runs at risk.

The best run of the log is not the best possible. After n runs of the same law the next run is the
best of all with probability 1 / (n + 1). So the model adds a few imagined runs that are better than
all at every rung, by multiples of the mean excess of the best few; ``tail`` says how many runs they
count for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import FloatArray, IntArray
from ..errors import InvalidArgument
from .ladder import Ladder

_EXCESS = np.array([0.35, 1.0, 2.2])  # imagined runs, in mean excesses above the best,
_CHANCE = np.array([0.5, 0.35, 0.15])  # and their shares: an exponential tail in three points
_OWN = 0.4  # share of the grid that holds the best scores one by one
_FEWEST = 4.0  # runs that a row rests on at least, where there are as many
_FAINT = 1e-4  # weight of a run with a very different cost, so that no row is empty
_FAR = 3.0  # beyond a factor of 20 costs are not scaled further
_ALIKE = 0.1  # standard deviation of log costs below which runs are taken to cost the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How curves become a model of any kind: see :class:`Settings` and :class:`Resemblance`.

    Attributes
    ----------
    ratio : float
        A rung is set where a run has paid this many times what it had paid at the rung before.
    tail : float
        How many runs of the log the imagined runs count for, which are better than all.
    least : float
        The least average distance of imagined runs above the best, in points of score.
    limit : float or None
        The best possible score, such as 1 for an accuracy or 0 for a loss, if known.
    """

    ratio: float = 1.4
    tail: float = 0.3
    least: float = 0.0
    limit: float | None = None

    def __post_init__(self) -> None:
        for rule, kept in self._rules().items():
            if not kept:
                raise InvalidArgument(f"{rule}, but it is {getattr(self, rule.split()[0])!r}.")

    def _rules(self) -> dict[str, bool]:
        """The rules, which begin with a name, and whether they are kept."""
        return {
            "ratio must be above 1": self.ratio > 1,
            "tail must be at least 0": self.tail >= 0,
            "least must be at least 0": self.least >= 0,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Recipe):
    """How curves become the laws of a :class:`LineModel`; see :class:`Recipe` for the rest.

    Attributes
    ----------
    neighbors : float
        A row of a law rests on this many times the square root of the number of runs at its rung.
    points : int
        Scores on the grid of a rung.
    levels : int
        Levels of cost on that grid, where costs differ.
    """

    neighbors: float = 1.0
    points: int = 20
    levels: int = 4

    def _rules(self) -> dict[str, bool]:
        return Recipe._rules(self) | {
            "neighbors must be above 0": self.neighbors > 0,
            "points must be at least 5": self.points >= 5,
            "levels must be at least 1": self.levels >= 1,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """The law of one segment of a line.

    States are numbered by score and then by level: state ``i * len(levels) + j``.

    Attributes
    ----------
    grid, levels : arrays of float
        Scores, and levels of cost, of the states at its end.
    usual : float
        The cost that level 0 stands for.
    alive : (states before, points * levels) array
        The probabilities of going on from each state.
    gone : (states before, points) array
        The probabilities of ending there.
    cost, runs : (states before,) arrays
        The mean cost of the segment, and the number of runs that a row rests on.
    """

    grid: FloatArray
    levels: FloatArray
    usual: float
    alive: FloatArray
    gone: FloatArray
    cost: FloatArray
    runs: FloatArray

    def places(self, score: ArrayLike, level: ArrayLike) -> FloatArray:
        """The weights of states for scores and levels that lie between states, one row for each."""
        x, z = (np.asarray(v, np.float64).reshape(-1, 1) for v in (score, level))
        return _spread(self.grid, self.levels, x, z, np.ones_like(x))


def segments(ladder: Ladder, settings: Settings, ceiling: float = np.inf) -> list[Segment]:
    """The laws of all segments that any run was seen to finish; no score above the ceiling."""
    usual = usual_cost(ladder)
    last = int(ladder.seen.max())
    if settings.tail > 0:
        ladder = ladder.joined(imagined(ladder, settings, ceiling))
    level = cost_levels(ladder.cost, usual)
    seen = np.arange(level.shape[1]) < ladder.seen[:, None]
    count = settings.levels if float(np.std(level[seen])) > _ALIKE else 1
    out: list[Segment] = []
    for r in range(last):
        grid = _grid(ladder.best[ladder.seen > r, r], settings.points)
        levels = _levels(level[ladder.seen > r, r], count)
        before = out[-1] if out else None
        law = _law(ladder, level, r, before, grid, levels, settings.neighbors)
        out.append(Segment(grid, levels, float(usual[r]), *law))
    return out


def _law(
    ladder: Ladder,
    level: FloatArray,
    r: int,
    before: Segment | None,
    grid: FloatArray,
    levels: FloatArray,
    share: float,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The last four fields of a segment: a row for each state before it."""
    runs = np.flatnonzero(ladder.seen > r)
    weight, score, here = ladder.weight[runs][None], ladder.best[runs, r], level[runs, r]
    shift = np.zeros((1, len(runs)))
    if before is not None:
        # one row per state: (x, z) is its score and level; `shift` is its distance to each run
        x = np.repeat(before.grid, len(before.levels))[:, None]
        z = np.tile(before.levels, len(before.grid))[:, None]
        shift = z - level[runs, r - 1] if len(before.levels) > 1 else np.zeros((len(x), len(runs)))
        alike = weight * _same_level(shift, before.levels)
        weight = alike * near(np.abs(x - ladder.best[runs, r - 1]), alike, share)
        score = np.maximum(score, x)
    weight = weight / weight.sum(axis=1, keepdims=True)
    end = ladder.gone[runs] & (ladder.seen[runs] == r + 1)
    alive = _spread(grid, levels, score, here + shift, weight * ~end)
    gone = _spread(grid, np.zeros(1), score, 0.0 * shift, weight * end)
    cost = weight * ladder.cost[runs, r] * np.exp(np.clip(shift, -_FAR, _FAR))
    return alive, gone, cost.sum(axis=1), 1.0 / np.square(weight).sum(axis=1)


def usual_cost(ladder: Ladder) -> FloatArray:
    """The geometric mean cost of each segment among the runs that paid for it."""
    paid = (np.arange(ladder.cost.shape[1]) < ladder.seen[:, None]) & (ladder.cost > 0)
    logs = np.log(np.where(paid, ladder.cost, 1.0))
    return np.asarray(np.exp(logs.sum(axis=0) / np.maximum(paid.sum(axis=0), 1)))


def cost_levels(cost: FloatArray, usual: FloatArray) -> FloatArray:
    """The log of each segment's relative cost; for a free segment, that of the segment before."""
    level = np.log(np.where(cost > 0, cost / usual, 1.0))
    for r in range(1, level.shape[1]):
        level[:, r] = np.where(cost[:, r] > 0, level[:, r], level[:, r - 1])
    return np.maximum(level, -2 * _FAR)


def imagined(ladder: Ladder, recipe: Recipe, ceiling: float) -> Ladder:
    """Runs better than all at every rung; none may exceed the ceiling."""
    best = ladder.best
    size = best.shape[1]
    top, excess = np.zeros(size), np.zeros(size)
    for r in range(int(ladder.seen.max())):
        top[r], mean = _top(best[ladder.seen > r, r], ladder.weight[ladder.seen > r])
        excess[r] = max(mean, recipe.least)
    last = int(ladder.seen.max()) - 1
    top[last + 1 :], excess[last + 1 :] = top[last], excess[last]
    # early scores are spread wider than late ones: none may exceed what it leads to
    ahead = (top + _EXCESS[:, None] * excess)[:, ::-1]
    scores = np.minimum(np.minimum.accumulate(ahead, axis=1)[:, ::-1], ceiling)
    # each lasts and costs as one of the best runs did, the furthest out as the very best
    final = best[np.arange(len(best)), ladder.seen - 1]
    like = np.argsort(final, kind="stable")[-len(_EXCESS) :]
    like = np.resize(like, len(_EXCESS))
    runs = ladder.select(like)
    rise = scores - runs.best
    return replace(
        runs,
        best=scores,
        last=runs.last + rise,
        mean=runs.mean + rise,
        weight=recipe.tail * _CHANCE,
    )


def _top(score: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """The best score, and by how much the best few are above the next one on average.

    Parts of runs count as parts. Runs with the same score count once.
    """
    up, place = np.unique(score, return_inverse=True)
    down, runs = up[::-1], np.minimum(np.bincount(place, weight), 1.0)[::-1]
    enough = max(3, int(np.cbrt(runs.sum() + 1e-9)))
    few = min(int(np.searchsorted(np.cumsum(runs), enough - 1e-9)) + 1, len(down) - 1)
    excess = float(np.average(down[:few] - down[few], weights=runs[:few])) if few else 0.0
    return float(down[0]), excess


def _grid(score: FloatArray, points: int) -> FloatArray:
    """Scores that serve as states, ascending: all of the best few, fewer below, and both ends."""
    down = np.unique(score)[::-1]
    own = int(_OWN * points)
    sparse = np.geomspace(own, max(len(down), own), points - own).round().astype(np.int64) - 1
    places = np.union1d(np.arange(own), sparse)
    return down[places[places < len(down)]][::-1]


def _levels(level: FloatArray, count: int) -> FloatArray:
    """Levels of cost that serve as states: the middles of equally many runs."""
    if count == 1:
        return np.zeros(1)
    return np.unique(np.quantile(level, (np.arange(count) + 0.5) / count))


def _same_level(shift: FloatArray, levels: FloatArray) -> FloatArray:
    """How much a run counts for a state with a different level of cost."""
    if len(levels) == 1:
        return np.ones_like(shift)
    width = (levels[-1] - levels[0]) / (len(levels) - 1)
    return np.asarray(np.exp(-0.5 * np.square(shift / width)) + _FAINT)


def near(gap: FloatArray, alike: FloatArray, share: float) -> FloatArray:
    """How much a run counts for a state whose score differs by ``gap``.

    Falls from 1 to 0 where enough runs lie within: ``share`` times the root of their number, so
    that a row rests on more runs and on nearer ones as the log grows.
    """
    order = np.argsort(gap, axis=1)
    within = np.cumsum(np.take_along_axis(alike, order, axis=1), axis=1)
    enough = np.minimum(max(_FEWEST, share * np.sqrt(gap.shape[1])), 0.999 * within[:, -1])
    place = np.sum(within < enough[:, None], axis=1, keepdims=True)
    reach = np.take_along_axis(np.take_along_axis(gap, order, axis=1), place, axis=1)
    # the last one counts a little; where enough runs are at the very score, only they count
    with np.errstate(over="ignore"):  # infinitely far is far enough
        away = gap / np.where(reach > 0, 1.001 * reach, 1.0)
        return np.where(reach > 0, np.maximum(1.0 - np.square(away), 0.0), gap == 0)


def _spread(
    grid: FloatArray, levels: FloatArray, score: FloatArray, level: FloatArray, weight: FloatArray
) -> FloatArray:
    """Weights of each row put on the states; what falls between two points is split."""
    rows, states = len(weight), len(grid) * len(levels)
    i, part = _cell(grid, np.broadcast_to(score, weight.shape))
    j, side = _cell(levels, level)
    first = i * len(levels) + j + states * np.arange(rows)[:, None]
    mass = np.zeros(rows * states)
    for up, share in ((0, 1.0 - part), (len(levels), part)):
        for right, half in ((0, 1.0 - side), (1, side)):
            moved = np.where(weight * share * half > 0, first + up + right, 0)
            mass += np.bincount(moved.ravel(), (weight * share * half).ravel(), rows * states)
    return mass.reshape(rows, states)


def _cell(grid: FloatArray, value: FloatArray) -> tuple[IntArray, FloatArray]:
    """The grid point below each value, and how far the value is on the way to the next one."""
    if len(grid) == 1:
        return np.zeros(value.shape, np.int64), np.zeros(value.shape)
    inside = np.clip(value, grid[0], grid[-1])
    left = np.clip(np.searchsorted(grid, inside, "right") - 1, 0, len(grid) - 2)
    return left, np.clip((inside - grid[left]) / (grid[left + 1] - grid[left]), 0.0, 1.0)
