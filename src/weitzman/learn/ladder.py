"""Curves as seen from a few rungs: the steps at which to decide whether to continue."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from .curves import Curves
from .features import NO_SETTINGS, Encoder

_EXCESS = np.array([0.35, 1.0, 2.2])  # imagined runs, in mean excesses above the best,
_CHANCE = np.array([0.5, 0.35, 0.15])  # and their shares: an exponential tail in three points
_LEAST_LEVEL = -6.0  # log of the least relative cost: cheaper runs are as cheap as that
_FACTOR = 2.0  # a difference in costs is believed if it is larger than this,
_SURE = 2.0  # by so many standard errors
_NEWS = 1.5  # a ratio of costs that differs from the one in the last warning by this is news
_FEWEST = 3  # runs whose first scores are compared
_AWAY = 3.0  # scores this many widths of the log's scores away are in other units


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
    """Steps such that a run that continues to the next has paid about ``ratio`` times as much.

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
    # the last score and the mean score of each segment, NaN where there is none
    good = ~np.isnan(score[inside])
    place = at[0][good], at[1][good]
    last, total, count = np.full((n, size), np.nan), np.zeros((n, size)), np.zeros((n, size))
    last[place] = score[inside][good]  # rows ascend, so the last one of a segment stays
    np.add.at(total, place, score[inside][good])
    np.add.at(count, place, 1.0)
    mean = np.where(count > 0, total / np.maximum(count, 1.0), np.nan)
    cost = np.zeros((n, size))
    np.add.at(cost, at, curves.cost[inside])

    end = curves.start[1:] - 1
    final = np.minimum(segment[end], size - 1)
    whole = curves.ended | (curves.step[end] >= rungs[final])
    seen, gone = final + whole, curves.ended | (final + whole == size)
    blank = np.zeros((n, size), bool)
    blank[at] = ~good  # whether the last row of a segment is blank: the run diverged there
    lost = np.where(blank.any(axis=1), blank.argmax(axis=1), size)
    cut = lost < seen
    seen, gone = np.where(cut, lost + 1, seen), gone | cut
    some = np.isfinite(best)
    floor = best[some].min() if some.any() else 0.0
    config = encoder.numbers(curves.settings, n)
    best = np.maximum(best, floor)
    return Ladder(rungs, best, last, mean, cost, config, seen, gone, np.ones(n))


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
    # rounded, so that the same costs in another unit make the same splits
    return np.maximum(level, _LEAST_LEVEL).round(12)


def top_excess(score: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """The best score, and the mean excess of the best few over the next one.

    Parts of runs count as parts. Runs with the same score count once.
    """
    up, place = np.unique(score, return_inverse=True)
    down, runs = up[::-1], np.minimum(np.bincount(place, weight), 1.0)[::-1]
    enough = max(3, int(np.cbrt(runs.sum() + 1e-9)))
    few = min(int(np.searchsorted(np.cumsum(runs), enough - 1e-9)) + 1, len(down) - 1)
    excess = float(np.average(down[:few] - down[few], weights=runs[:few])) if few else 0.0
    return float(down[0]), excess


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
    last = int(ladder.seen.max()) - 1
    for r in range(last + 1):
        there = ladder.seen > r
        top[r], mean = top_excess(best[there, r], ladder.weight[there])
        excess[r] = max(mean, least)
    top[last + 1 :], excess[last + 1 :] = top[last], excess[last]
    # early scores are spread wider than late ones: none may exceed what it leads to
    ahead = (top + _EXCESS[:, None] * excess)[:, ::-1]
    scores = np.minimum(np.minimum.accumulate(ahead, axis=1)[:, ::-1], ceiling)
    # each lasts and costs as one of the best runs did, the furthest out as the very best
    final = best[np.arange(len(best)), ladder.seen - 1]
    like = np.argsort(final, kind="stable")[-len(_EXCESS) :]
    better = ladder.select(np.resize(like, len(_EXCESS)))
    rise = scores - better.best
    return replace(
        better,
        best=scores,
        last=better.last + rise,
        mean=better.mean + rise,
        weight=tail * _CHANCE,
    )


# -- runs of a search compared with the log: do they cost, and score, what the log says? -----------


class CostRatio(NamedTuple):
    """How the costs of a search compare with the costs in the log.

    Attributes
    ----------
    ratio : float
        The geometric mean of what runs cost over what the log says; 1 if the evidence is weak.
    runs : int
        How many runs were compared.
    paid, expected : float
        What these runs cost together, and what the log says about the same segments.
    """

    ratio: float
    runs: int
    paid: float
    expected: float


def compared_costs(known: Ladder, new: Ladder, level: FloatArray | float = 1.0) -> CostRatio:
    """Compare the costs of new runs with the costs of known runs, from the first segment on.

    Each new run is compared with the usual cost of the segments that it was seen to finish, times
    ``level``, the relative cost of runs with these settings. A last segment without a score does
    not count: a run that crashes has not paid for all of it. The log shows how much evidence a
    single run is: where costs vary a lot in the log, they must differ a lot here.
    """
    usual = usual_cost(known)

    def apart_of(runs: Ladder, level: FloatArray | float) -> tuple[FloatArray, float, float]:
        """The logarithm of what each run cost over the usual cost, and both sums."""
        done = runs.seen - np.isnan(runs.last[np.arange(len(runs)), runs.seen - 1])
        seen = np.arange(runs.cost.shape[1]) < done[:, None]
        paid = (runs.cost * seen).sum(axis=1)
        expected = (usual * seen).sum(axis=1) * level
        both = (paid > 0) & (expected > 0)
        paid, expected = paid[both], expected[both]
        return np.log(paid / expected), float(paid.sum()), float(expected.sum())

    apart, paid, expected = apart_of(new, level)
    if not len(apart):
        return CostRatio(1.0, 0, 0.0, 0.0)
    varies = max(float(apart_of(known, 1.0)[0].std()), float(apart.std()))
    sure = math.log(_FACTOR) + _SURE * varies / math.sqrt(len(apart))
    mean = float(apart.mean())
    return CostRatio(math.exp(mean) if abs(mean) >= sure else 1.0, len(apart), paid, expected)


def say_costs_differ(found: CostRatio, named: float) -> float:
    """Warn that costs were scaled, unless the last warning named about the same ratio.

    Returns the ratio named last.
    """
    ratio, runs, paid, expected = found
    if ratio == 1.0 or abs(math.log(ratio / named)) < math.log(_NEWS):
        return named
    warnings.warn(
        f"the runs of this search cost {ratio:.3g} times what the log says (mean of {runs} "
        f"run{'s' * (runs > 1)}: {paid:.4g} instead of {expected:.4g} for the same steps), so the "
        f"costs of the log were scaled. Are costs and steps in the same units?",
        UserWarning,
        stacklevel=4,
    )
    return ratio


def check_scores_alike(known: Ladder, new: Ladder, minimize: bool) -> None:
    """Warn if the first scores of a search lie far from all that the log has shown there.

    The check compares the scores of the first few runs at the first rung. It detects a log and a
    search in different units (percent and shares, for example).
    """
    first = new.best[new.seen > 0, 0]
    there = known.best[known.seen > 0, 0]
    if len(first) < _FEWEST or not len(there):
        return
    low, high = float(there.min()), float(there.max())
    ends = np.quantile(known.best[np.arange(len(known)), known.seen - 1], (0.05, 0.95))
    room = _AWAY * max(high - low, float(ends[1]) - low)
    if float(first.min()) <= high + room and float(first.max()) >= low - room:
        return
    sign = -1.0 if minimize else 1.0
    there_are = (float(first.min()), float(first.max())), (low, high)
    found, logged = (sorted(sign * x for x in pair) for pair in there_are)
    warnings.warn(
        f"the first scores of this search, at step {new.rungs[0]}, go from {found[0]:.4g} to "
        f"{found[1]:.4g} ({len(first)} runs), but those of the log from {logged[0]:.4g} to "
        f"{logged[1]:.4g}. Are both in the same unit?",
        UserWarning,
        stacklevel=4,
    )
