"""Curves as seen from a few rungs: the steps at which to decide whether to continue.

What is known about a run at a rung is a row of numbers for trees to split by: its curve so far, and
its settings.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from .._common.numbers import counted
from ..errors import InvalidArgument
from .curves import Curves
from .log_tables import NO_SETTINGS, Encoder

CURVE = 8  # features of a curve
_EXCESS = np.array([0.35, 1.0, 2.2])  # imagined runs, in mean excesses above the best,
_CHANCE = np.array([0.5, 0.35, 0.15])  # and their shares: an exponential tail in three points
_LEAST_LEVEL = -6.0  # log of the least relative cost: cheaper runs are as cheap as that
_FACTOR = 2.0  # a difference in costs is believed if it is larger than this,
_SURE = 2.0  # by so many standard errors
_NEWS = 1.5  # a ratio of costs that differs from the one in the last warning by this is news
_PAIRS = 20  # pairs of successive changes that say something about noise
_NORMAL = 1.4826  # the standard deviation of a normal law over its median distance to the median
_BESIDE = 2  # steps before and after one that help to say how much runs differ in their changes
_FAR = 4.0  # changes further out, in standard deviations, are not noise


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """What was seen of n runs between one of R rungs and the next."""

    rungs: IntArray  # segment r of a run goes from the rung before (or the start) to rungs[r]
    # (n, R) arrays: the best score up to the end of the segment, turned so that higher is better;
    # its last score and the mean of its scores, turned too, NaN where there is none; and its cost
    best: FloatArray
    last: FloatArray
    mean: FloatArray
    cost: FloatArray
    config: FloatArray  # (n, D): the settings of each run as numbers, by an Encoder
    seen: IntArray  # segments that were seen to their end; later entries of best and cost are void
    gone: BoolArray  # whether nothing can follow: the run ended or diverged, and was not cut off
    weight: FloatArray  # how much a run counts; 1 for a run that was seen

    def __len__(self) -> int:
        return len(self.seen)

    @property
    def final(self) -> FloatArray:
        """The best score that each run has shown."""
        return np.asarray(self.best[np.arange(len(self)), self.seen - 1])

    @property
    def within(self) -> BoolArray:
        """Which segments of each run were seen to their end."""
        return np.arange(self.cost.shape[1]) < self.seen[:, None]

    def select(self, runs: IntArray | BoolArray) -> Ladder:
        """Some of the runs."""
        columns = (getattr(self, f.name)[runs] for f in fields(self)[1:])
        return Ladder(self.rungs, *columns)

    def joined(self, other: Ladder) -> Ladder:
        """These runs and others seen at the same rungs."""
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self)[1:])
        return Ladder(self.rungs, *map(np.concatenate, pairs))


def features(ladder: Ladder, r: int, level: FloatArray) -> FloatArray:
    """What is known about each run before segment r: its curve so far, then its settings.

    ``level`` is the cost level of its segments. Before anything was seen (r is 0) there are only
    settings.
    """
    if r == 0:
        return ladder.config
    best, last, mean = ladder.best[:, r - 1], ladder.last[:, r - 1], ladder.mean[:, r - 1]
    nothing = np.full(len(best), np.nan)
    before = [x[:, r - 2] if r > 1 else nothing for x in (ladder.best, ladder.last, ladder.mean)]
    columns = [
        best, last, mean, best - before[0], last - before[1], mean - before[2], best - last,
        level[:, r - 1],
    ]  # fmt: skip
    return np.column_stack([*columns, ladder.config])


def is_category(encoder: Encoder, r: int) -> BoolArray:
    """Which columns of :func:`features` are categories."""
    return np.concatenate([np.zeros(CURVE if r else 0, bool), encoder.is_category])


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
    paid = ladder.within & (ladder.cost > 0)
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
    like = np.argsort(ladder.final, kind="stable")[-len(_EXCESS) :]
    better = ladder.select(np.resize(like, len(_EXCESS)))
    rise = scores - better.best
    shown = {"best": scores, "last": better.last + rise, "mean": better.mean + rise}
    return replace(better, weight=tail * _CHANCE, **shown)


# -- runs of a search compared with the log: do they cost what the log says? ---------------------


class CostRatio(NamedTuple):
    """How the costs of a search compare with the costs in the log."""

    ratio: float  # the geometric mean of what runs cost over what the log says; 1 if unsure
    runs: int  # how many were compared
    paid: float  # what they cost together,
    expected: float  # and what the log says about the same segments

    def warned(self, named: float) -> float:
        """Warn of scaled costs, unless the last warning named about this ratio; the one named."""
        ratio, runs, paid, expected = self
        if ratio == 1.0 or abs(math.log(ratio / named)) < math.log(_NEWS):
            return named
        warnings.warn(
            f"the runs of this search cost {ratio:.3g} times what the log says (mean of "
            f"{counted(runs, 'run')}: {paid:.4g} instead of {expected:.4g} for the same steps), so "
            f"the costs of the log were scaled. Are costs and steps in the same units?",
            UserWarning,
            stacklevel=4,
        )
        return ratio


def compared_costs(known: Ladder, new: Ladder, level: FloatArray | float = 1.0) -> CostRatio:
    """Compare what new runs cost with the usual cost of the segments that they finished.

    That is multiplied by ``level``, the relative cost of runs with these settings. Where costs vary
    a lot in the log, they must differ a lot here.
    """
    usual = usual_cost(known)

    def apart_of(runs: Ladder, level: FloatArray | float) -> tuple[FloatArray, float, float]:
        """The logarithm of what each run cost over the usual cost, and both sums."""
        # a last segment without a score does not count: a run that crashes has not paid for it all
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


# -- noise of scores -------------------------------------------------------------------------------


class Belief(NamedTuple):
    """What a run is thought to show on average when it is evaluated again, and the variance."""

    mean: float
    variance: float
    step: int = 0  # of the last score that the belief rests on


@dataclass(frozen=True, slots=True, eq=False)
class ScoreNoise:
    r"""How noisy scores are: what a re-evaluation of a run should show.

    The best of many noisy scores is too high. Let :math:`y_t` be the score that a run showed at
    step t and :math:`x_t` what re-evaluations would show on average:

    .. math:: y_t = x_t + \sigma\,\varepsilon_t, \qquad x_t = x_{t-1} + \mu_t + q_t\,\eta_t,

    with independent standard normal :math:`\varepsilon` and :math:`\eta`, and a first score that
    differs between runs. The mean of :math:`x_t`, given all scores up to step t, follows by the
    filter of Kalman (1960): it needs no later scores, so that logged runs and runs under way are
    treated alike. The noise :math:`\sigma` shows in the log as changes that are reversed at the
    next step: the covariance of two successive changes is :math:`-\sigma^2`. The later halves of
    curves say how large it is.
    """

    noise: float  # the standard deviation of a score about the mean of re-evaluations
    first: Belief  # first scores without noise: their mean, and the variance between runs
    step: IntArray  # (m,): the steps of the log after the first ones
    rise: FloatArray  # (m,): the usual change up to each step,
    drift: FloatArray  # (m,): and its standard deviation between runs

    @classmethod
    def of(cls, curves: Curves, noise: float | None = None) -> ScoreNoise:
        """Learned from a log; ``noise`` may be stated, if it is known from elsewhere."""
        row = np.arange(1, len(curves.score))
        change = np.diff(curves.score)
        inside = (np.diff(curves.run_of_row) == 0) & np.isfinite(change)
        row, change = row[inside], change[inside]
        steps, place = np.unique(curves.step[row], return_inverse=True)
        rise = _medians(change, place)
        odd = change - rise[place]
        wide = _NORMAL * _medians(np.abs(odd), place)  # a few runs far out do not change it
        near = np.abs(odd) <= _FAR * wide[place]
        if noise is None:
            square = _noise(curves, row, odd, near)
        elif isinstance(noise, bool) or not 0 <= noise < np.inf:
            raise InvalidArgument(
                f"the noise of scores must be a number, finite and at least 0, but it is {noise!r}."
            )
        else:
            square = float(noise) ** 2
        begun = curves.score[curves.start[:-1]]
        begun = begun[np.isfinite(begun)]
        mean = float(np.median(begun)) if len(begun) else 0.0
        spread = _NORMAL * float(np.median(np.abs(begun - mean))) if len(begun) else 0.0
        between = Belief(mean, max(spread**2 - square, 0.0))
        drift = _drift(odd[near], place[near], len(steps), square)
        return cls(math.sqrt(square), between, steps, rise, drift)

    def updated(self, belief: Belief | None, step: int, score: float) -> Belief:
        """The belief after one more score of a run; None before the first score."""
        if belief is None:
            mean, variance, _ = self.first
        else:
            mean, variance, before = belief
            # all that changes at the logged steps since the last score: a run may skip some
            first, end = np.searchsorted(self.step, (before, step), "right").tolist()
            since = slice(min(first, len(self.step) - 1), end)  # beyond the log, as at its end
            mean += float(self.rise[since].sum())
            variance += float(np.square(self.drift[since]).sum())
        total = variance + self.noise**2
        share = variance / total if total > 0 else 1.0
        return Belief(mean + share * (score - mean), (1.0 - share) * variance, step)

    def without(self, curves: Curves) -> Curves:
        """The curves with the mean of re-evaluations instead of each score."""
        score = curves.score.copy()
        for first, end in zip(curves.start[:-1].tolist(), curves.start[1:].tolist(), strict=True):
            belief: Belief | None = None
            for i in range(first, end):
                if math.isfinite(score[i]):
                    belief = self.updated(belief, int(curves.step[i]), float(score[i]))
                    score[i] = belief.mean
        return replace(curves, score=score)


def _medians(x: FloatArray, place: IntArray) -> FloatArray:
    """The median of the numbers of each step, by one sort: logs may have thousands of steps."""
    count = np.bincount(place)
    first, up = np.cumsum(count) - count, x[np.lexsort((x, place))]
    return np.asarray((up[first + (count - 1) // 2] + up[first + count // 2]) / 2)


def _drift(odd: FloatArray, place: IntArray, size: int, square: float) -> FloatArray:
    """By step and its neighbors, how much runs differ in their changes beyond noise."""
    # twice the error of the variance is taken off: else chance alone would look like change
    window = np.ones(min(2 * _BESIDE + 1, size))
    total = np.convolve(np.bincount(place, np.square(odd), size), window, "same")
    count = np.convolve(np.bincount(place, minlength=size), window, "same")
    variance = total / np.maximum(count, 1.0)
    sure = variance * (1.0 - 2.0 * np.sqrt(2.0 / np.maximum(count, 1.0))) - 2.0 * square
    return np.asarray(np.sqrt(np.maximum(sure, 0.0)))


def _noise(curves: Curves, row: IntArray, odd: FloatArray, near: BoolArray) -> float:
    """The variance of noise: minus the covariance of successive changes in later halves."""
    length = np.diff(curves.start)[curves.run_of_row[row]]
    near = near & (2 * (row - curves.start[curves.run_of_row[row]]) >= length)
    pair = np.flatnonzero((np.diff(row) == 1) & near[1:] & near[:-1])
    same = curves.run_of_row[row[pair]] == curves.run_of_row[row[pair + 1]]
    pair = pair[same]
    if len(pair) < _PAIRS:
        raise InvalidArgument(
            f"the noise of scores is learned from curves of several steps, at least {_PAIRS} "
            f"pairs of successive changes, but the log has {len(pair)}. State the noise as a "
            f"number: its standard deviation in points of score."
        )
    return max(-float(np.mean(odd[pair] * odd[pair + 1])), 0.0)
