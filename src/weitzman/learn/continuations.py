r"""How runs that were cut off may go on, where few runs have been seen to their ends.

Segment by segment, the score of a run is forecast by a regression among the better half of the runs
that went through the segment. The average score of these runs is :math:`x` before the segment and
:math:`y` after it:

.. math:: b_s = y_s + k_s\, (b_{s-1} - x_s) + e_s\, \varepsilon_s.

The share :math:`k_s` of a lead that lasts, and the error :math:`e_s`, begin with a stated prior
that counts for a few runs: in units of how much runs differ before and after, a lead fades by a
tenth, and chance moves runs by 0.3. Runs that went through the segment outweigh the prior. Where
no run did, scores stay the same.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._common.arrays import BoolArray, FloatArray
from .ladder import Ladder, usual_cost

_NORMAL = np.array([-1.2711, -0.3246, 0.3246, 1.2711])  # means of its four equally likely parts
_LASTS = 0.9  # share of a lead that lasts through a segment, by the prior,
_LASTS_RUNS = 2.0  # which counts for so many runs
_STEEPEST = 1.5  # times a lead that a segment can make of it
_CHANCE = 0.3  # what chance adds in a segment, by the prior, in spreads at its end,
_CHANCE_RUNS = 4.0  # which counts for so many runs


def completed(runs: Ladder) -> Ladder:
    """Runs that are over, and four continuations of each other run, which share its weight."""
    over = runs.gone | (runs.seen == runs.best.shape[1])
    return runs.select(over).joined(continued(runs, np.flatnonzero(~over)))


def continued(runs: Ladder, cut: np.ndarray) -> Ladder:
    """Four equally likely continuations of some runs, based on how the other runs went on."""
    size = runs.best.shape[1]
    out = runs.select(np.repeat(cut, len(_NORMAL)))
    ahead = np.arange(size) >= out.seen[:, None]
    mean, error = _forecast(out, ahead, regressions(runs))
    best = mean + np.tile(_NORMAL, len(cut))[:, None] * error
    best = np.maximum.accumulate(np.where(ahead, best, out.best), axis=1)
    shown, average = (np.where(ahead, best, x) for x in (out.last, out.mean))
    return replace(
        out, best=best, last=shown, mean=average, cost=_costs(runs, out, ahead),
        seen=np.full(len(out), size), gone=np.ones(len(out), bool),
        weight=out.weight / len(_NORMAL),
    )  # fmt: skip


class Regressions(NamedTuple):
    """By segment: mean scores before and after, the share of a lead that lasts, and the error."""

    before: FloatArray
    after: FloatArray
    lasts: FloatArray
    error: FloatArray


def regressions(runs: Ladder) -> Regressions:
    """What the better half of the runs that went through each segment teach."""
    seen = np.arange(runs.best.shape[1]) < runs.seen[:, None]
    spread = spreads(runs.best, seen)
    found = Regressions(*(np.zeros(len(spread)) for _ in Regressions._fields))
    for s in range(1, len(spread)):
        before, after = runs.best[seen[:, s], s - 1], runs.best[seen[:, s], s]
        better = before >= (np.median(before) if len(before) else 0.0)
        grown = spread[s] / spread[s - 1] if spread[s - 1] > 0 else 1.0
        line = _line(before[better], after[better], _LASTS * grown, spread[s - 1 : s + 1])
        for column, x in zip(found, line, strict=True):
            column[s] = x
    return found


def _line(
    before: FloatArray, after: FloatArray, usual: float, spread: FloatArray
) -> tuple[float, float, float, float]:
    """A regression through runs; the prior says what share of a lead usually lasts."""
    n = len(before)
    if not n:
        return 0.0, 0.0, 1.0, _CHANCE * float(spread[1])
    x, y = before - before.mean(), after - after.mean()
    prior = _LASTS_RUNS * max(float(spread[0]) ** 2, 1e-300)
    lasts = min(max(float((x @ y + prior * usual) / (x @ x + prior)), 0.0), _STEEPEST)
    squares = _CHANCE_RUNS * (_CHANCE * float(spread[1])) ** 2 + float(
        np.square(y - lasts * x).sum()
    )
    error = math.sqrt(squares / (_CHANCE_RUNS + n - 1.0))
    return float(before.mean()), float(after.mean()), lasts, error


def _forecast(runs: Ladder, ahead: BoolArray, by: Regressions) -> tuple[FloatArray, FloatArray]:
    """Mean scores and errors of runs at the rungs ahead."""
    mean, square = runs.best.copy(), np.zeros(ahead.shape)
    for s in range(1, ahead.shape[1]):
        going = ahead[:, s]
        lead = mean[going, s - 1] - by.before[s]
        mean[going, s] = by.after[s] + by.lasts[s] * lead
        square[going, s] = by.lasts[s] ** 2 * square[going, s - 1] + by.error[s] ** 2
    return mean, np.sqrt(square)


def spreads(best: FloatArray, seen: BoolArray) -> FloatArray:
    """The standard deviation of the better half at each rung; one run takes the rung before."""
    out = np.zeros(best.shape[1])
    for r in range(len(out)):
        there = np.sort(best[seen[:, r], r])
        top = there[len(there) // 2 :]
        out[r] = np.std(top, ddof=1) if len(top) > 1 else out[max(r - 1, 0)]
    return out


def _costs(runs: Ladder, out: Ladder, ahead: BoolArray) -> FloatArray:
    """What segments cost: the usual cost, scaled by the relative cost of the run's last segment."""
    usual, last = usual_cost(runs), out.seen - 1
    relative = out.cost[np.arange(len(out)), last] / np.where(usual[last] > 0, usual[last], 1.0)
    return np.where(ahead, usual * relative[:, None], out.cost)
