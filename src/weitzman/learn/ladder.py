"""Curves as seen from a few rungs: the steps at which to decide whether to go on."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from .curves import Curves
from .features import NO_SETTINGS, Encoder

_EXCESS = np.array([0.35, 1.0, 2.2])  # imagined runs, in mean excesses above the best,
_CHANCE = np.array([0.5, 0.35, 0.15])  # and their shares: an exponential tail in three points
_LEAST_LEVEL = -6.0  # log of the least relative cost: cheaper runs are as cheap as that


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """What was seen of each run between one rung and the next.

    Attributes
    ----------
    rungs : (R,) array of int
        Segment r of a run goes from the rung before (or the start) to step ``rungs[r]``.
    best : (n, R) array of float
        The best score up to the end of the segment, turned so that higher is better.
    last, mean : (n, R) arrays of float
        The last score of the segment and the mean of its scores, turned in the same way; NaN where
        there is no score.
    cost : (n, R) array of float
        What the segment cost.
    config : (n, D) array of float
        The settings of the run, as numbers; see :class:`~weitzman.learn.features.Encoder`.
    seen : (n,) array of int
        How many segments were seen to their end. What follows is padding in ``best`` and ``cost``.
    gone : (n,) array of bool
        Whether nothing can follow: the run ended or diverged. If False, the run was cut off.
    weight : (n,) array of float
        How much a run counts; 1 for a run that was seen.
    """

    rungs: IntArray
    best: FloatArray
    last: FloatArray
    mean: FloatArray
    cost: FloatArray
    config: FloatArray
    seen: IntArray
    gone: BoolArray
    weight: FloatArray

    def __len__(self) -> int:
        return len(self.seen)

    def select(self, runs: IntArray | BoolArray) -> Ladder:
        """Some of the runs."""
        columns = (getattr(self, f.name)[runs] for f in fields(self)[1:])
        return Ladder(self.rungs, *columns)

    def joined(self, other: Ladder) -> Ladder:
        """These runs and others seen at the same rungs."""
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self)[1:])
        return Ladder(self.rungs, *map(np.concatenate, pairs))


def choose_rungs(curves: Curves, ratio: float) -> IntArray:
    """Steps such that a run that goes on to the next has paid about ``ratio`` times as much.

    The first one is the first step that costs anything; the last one is the last step of all.
    """
    steps, place = np.unique(curves.step, return_inverse=True)
    each = np.bincount(place, curves.cost) / np.bincount(place)
    paid = np.cumsum(each)
    chosen = [int(np.searchsorted(paid, 0.0, "right"))]
    while chosen[-1] < len(steps) - 1:
        enough = int(np.searchsorted(paid, ratio * paid[chosen[-1]]))
        chosen.append(min(max(enough, chosen[-1] + 1), len(steps) - 1))
    # a last rung too close to the rung before replaces that rung
    if len(chosen) > 2 and paid[chosen[-1]] < (1 + ratio) / 2 * paid[chosen[-2]]:
        del chosen[-2]
    return steps[np.minimum(chosen, len(steps) - 1)]


def climb(curves: Curves, rungs: IntArray, encoder: Encoder = NO_SETTINGS) -> Ladder:
    """The curves as seen from the rungs, without the runs that did not finish a segment."""
    ladder = climb_all(curves, rungs, encoder)
    return ladder.select(ladder.seen > 0)


def climb_all(curves: Curves, rungs: IntArray, encoder: Encoder = NO_SETTINGS) -> Ladder:
    """All curves as seen from the rungs."""
    n, size = len(curves), len(rungs)
    run, segment = curves.run_of_row, np.searchsorted(rungs, curves.step)
    score = -curves.score if curves.minimize else curves.score
    inside = segment < size
    at = run[inside], segment[inside]
    best = np.full((n, size), -np.inf)
    np.fmax.at(best, at, score[inside])
    best = np.maximum.accumulate(best, axis=1)
    last, mean = _shown(score[inside], at, (n, size))
    cost = np.zeros((n, size))
    np.add.at(cost, at, curves.cost[inside])

    end = curves.start[1:] - 1
    final = np.minimum(segment[end], size - 1)
    whole = curves.ended | (curves.step[end] >= rungs[final])
    seen, gone = final + whole, curves.ended | (final + whole == size)
    lost = _diverged(np.isnan(score[inside]), at, (n, size))
    cut = lost < seen
    seen, gone = np.where(cut, lost + 1, seen), gone | cut
    some = np.isfinite(best)
    floor = best[some].min() if some.any() else 0.0
    config = encoder.numbers(curves.settings, n)
    best = np.maximum(best, floor)
    return Ladder(rungs, best, last, mean, cost, config, seen, gone, np.ones(n))


def _shown(
    score: FloatArray, at: tuple[IntArray, IntArray], shape: tuple[int, int]
) -> tuple[FloatArray, FloatArray]:
    """The last score and the mean score of each segment; NaN where there is none."""
    good = ~np.isnan(score)
    place = at[0][good], at[1][good]
    last, total, count = np.full(shape, np.nan), np.zeros(shape), np.zeros(shape)
    last[place] = score[good]  # rows ascend, so the last one of a segment stays
    np.add.at(total, place, score[good])
    np.add.at(count, place, 1.0)
    return last, np.where(count > 0, total / np.maximum(count, 1.0), np.nan)


def _diverged(bad: BoolArray, at: tuple[IntArray, IntArray], shape: tuple[int, int]) -> IntArray:
    """The first segment that each run ended without a score; a large number if there is none."""
    state = np.zeros(shape, bool)
    state[at] = bad  # rows ascend, so the last one of a segment stays
    return np.where(state.any(axis=1), state.argmax(axis=1), np.iinfo(np.int64).max)


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
    return np.maximum(level, _LEAST_LEVEL)


def imagined(ladder: Ladder, *, tail: float, least: float, ceiling: float) -> Ladder:
    """Runs better than all at every rung; none may exceed the ceiling.

    The best run of a log is not the best possible. After n runs of the same law the next run is the
    best of all with probability 1 / (n + 1). So imagined runs, which count for ``tail`` runs
    together, are better than all by multiples of the mean excess of the best few, which is at least
    ``least``.
    """
    best = ladder.best
    size = best.shape[1]
    top, excess = np.zeros(size), np.zeros(size)
    for r in range(int(ladder.seen.max())):
        top[r], mean = top_excess(best[ladder.seen > r, r], ladder.weight[ladder.seen > r])
        excess[r] = max(mean, least)
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
        weight=tail * _CHANCE,
    )


def top_excess(score: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """The best score, and by how much the best few are above the next one on average.

    Parts of runs count as parts. Runs with the same score count once.
    """
    up, place = np.unique(score, return_inverse=True)
    down, runs = up[::-1], np.minimum(np.bincount(place, weight), 1.0)[::-1]
    enough = max(3, int(np.cbrt(runs.sum() + 1e-9)))
    few = min(int(np.searchsorted(np.cumsum(runs), enough - 1e-9)) + 1, len(down) - 1)
    excess = float(np.average(down[:few] - down[few], weights=runs[:few])) if few else 0.0
    return float(down[0]), excess
