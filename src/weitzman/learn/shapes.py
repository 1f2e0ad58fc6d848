"""How runs of other tasks, or of none, may look in a new one: a prior that its first runs outweigh.

A *shape* is a set of curves without units: how runs stand to the mean run, at fractions of the cost
of a full run, in units of how much the mean run has risen lately (since it had paid a quarter). At
the first rung the unit is a standard deviation. So where scores of a new task have come near to
what they tend to, runs are not expected to differ much, and where scores still rise, they are.

The stated default knows no task. Runs stand by a level, drawn from 1 minus an exponential law:
bad runs lie further from the mean than good runs. Early they stand between this level and another,
drawn
independently; late the level counts alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._common.arrays import FloatArray
from .curves import Curves
from .ladder import Ladder
from .laws import usual_cost

_RUNS = 48  # of the default
_STEPS = (0.7548776662466927, 0.5698402909980532)  # that spread runs evenly
_EARLY = 0.5  # weight of the last level in the first standing of a run of the default
_VARIES = 0.6  # standard deviation of standings
_LATELY = 4.0  # a late rise is one since this many times less was paid
_FURTHEST = 5.0  # standing that counts
_RISES = np.array([0.0, 0.5, 1.0, 2.0])  # of a run that was cut off, in its last rises,
_SLOWEST = 0.9  # and each of which is at most this share of the one before
_MOST = 100  # runs taken from another task
_POINTS = 40  # at which a shape is kept


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """Runs without units, at fractions of the cost of a full run.

    Attributes
    ----------
    at : (m,) array of float
        Fractions, ascending, up to 1.
    standing : (n, m) array of float
        How each run stands to the mean run, in late rises of the mean run.
    """

    at: FloatArray
    standing: FloatArray

    @classmethod
    def of(cls, curves: Curves) -> Shape:
        """The shape of the runs of a task that came to their ends; of all if none did."""
        whole = np.flatnonzero(curves.ended)
        runs = curves.select(whole if len(whole) else np.arange(len(curves)))
        runs = runs.select(np.linspace(0, len(runs) - 1, min(len(runs), _MOST)).astype(np.int64))
        at = np.geomspace(0.01, 1.0, _POINTS)
        best = np.array([_at(runs, i, at) for i in range(len(runs))])
        unit = _unit(best.mean(axis=0), at, float(best[:, 0].std()))
        gap = best - best.mean(axis=0)
        return cls(at, np.clip(gap / np.where(unit > 0, unit, 1.0), -_FURTHEST, _FURTHEST))

    @classmethod
    def default(cls) -> Shape:
        """The stated default."""
        level, early = (_skewed(_spread(step)) for step in _STEPS)
        at = np.geomspace(0.001, 1.0, _POINTS)
        share = _EARLY + (1.0 - _EARLY) * np.sqrt(at)
        return cls(at, _VARIES * (level[:, None] * share + early[:, None] * (1.0 - share)))

    def fitted(self, new: Ladder, paid: FloatArray) -> Ladder:
        """The runs of the shape as runs of a new task, of which some were seen.

        ``paid`` is what a full run costs on average up to each rung.
        """
        place = np.searchsorted(self.at, paid / paid[-1] - 1e-12)
        standing = self.standing[:, np.minimum(place, len(self.at) - 1)]
        course = _course(new)
        best = course + _unit(course, paid, float(new.best[:, 0].std())) * standing
        # as a best score so far it never falls: no early one exceeds what it leads to
        best = np.minimum.accumulate(best[:, ::-1], axis=1)[:, ::-1]
        n, size = best.shape
        config = new.config[np.arange(n) % len(new)]  # as if settings told nothing
        cost = np.tile(np.diff(paid, prepend=0.0), (n, 1))
        seen, gone = np.full(n, size), np.ones(n, bool)
        return Ladder(new.rungs, best, best, best, cost, config, seen, gone, np.full(n, 1.0 / n))


def _unit(course: FloatArray, paid: FloatArray, first: float) -> FloatArray:
    """How much a course has risen since a quarter was paid; at first a number of its own."""
    before = np.searchsorted(paid, paid / _LATELY, "right") - 1
    rise = course - course[np.maximum(before, 0)]
    rise[0] = first
    return np.asarray(np.maximum(rise, 0.0))


def _at(curves: Curves, run: int, at: FloatArray) -> FloatArray:
    """The best score of a run at fractions of its cost; the first one before it."""
    rows = slice(curves.start[run], curves.start[run + 1])
    score = -curves.score[rows] if curves.minimize else curves.score[rows]
    lowest = np.nanmin(score) if np.isfinite(score).any() else 0.0
    best = np.maximum.accumulate(np.where(np.isnan(score), lowest, score))
    paid = np.cumsum(curves.cost[rows])
    part = paid / paid[-1] if paid[-1] > 0 else np.arange(1, len(paid) + 1) / len(paid)
    return np.asarray(best[np.maximum(np.searchsorted(part, at + 1e-12, "right") - 1, 0)])


def _spread(step: float) -> FloatArray:
    """Numbers between 0 and 1, evenly spread, in an order of their own."""
    return np.asarray((0.5 + step * np.arange(_RUNS)) % 1.0)


def _skewed(u: FloatArray) -> FloatArray:
    """Quantiles of 1 minus an exponential law: bad runs lie further out than good runs."""
    inside = (np.argsort(np.argsort(u)) + 0.5) / len(u)
    return np.asarray(1.0 + np.log(inside))


def _course(new: Ladder) -> FloatArray:
    """The mean score at the first rung, and its rises in the runs that got further."""
    seen = np.arange(new.best.shape[1]) < new.seen[:, None]
    rise = np.diff(new.best, axis=1, prepend=0.0)
    count = np.maximum(seen.sum(axis=0), 1)
    return np.asarray(np.cumsum((rise * seen).sum(axis=0) / count))


def mixture(shapes: Sequence[Shape], new: Ladder, paid: FloatArray, weight: float) -> Ladder:
    """Runs of all shapes, fitted to the new runs; together they count for ``weight`` runs.

    A shape counts the more the better it tells how the new runs rose: by the mean error of saying
    the last score that was seen of a run from its first one.
    """
    ladders = [shape.fitted(new, paid) for shape in shapes]
    error = np.array([_error(ladder, new) for ladder in ladders])
    told = int((new.seen > 1).sum())
    floor = max(float(error.min()), 1e-12)
    share = (error + floor) ** -float(told) if told else np.ones(len(error))
    share = (
        share / share.sum()
        if np.isfinite(share).all() and share.sum() > 0
        else ((error == error.min()) / (error == error.min()).sum())
    )
    out = None
    for ladder, part in zip(ladders, share.tolist(), strict=True):
        scaled = ladder.weighted(max(part, 1e-9) * weight)
        out = scaled if out is None else out.joined(scaled)
    assert out is not None
    return out


def continued(runs: Ladder, weight: float) -> Ladder:
    """Runs that were cut off, as they may go on: with no, half, the same or twice their last rise.

    What a run that is ahead of all others will show is seen in no other run. Rises fade as the last
    one was smaller than the one before; runs that have shown fewer than three segments are left
    out. Each run counts for ``weight`` runs.
    """
    cut = np.flatnonzero(~runs.gone & (runs.seen > 2) & (runs.seen < runs.best.shape[1]))
    out = runs.select(np.repeat(cut, len(_RISES)))
    n, size = out.best.shape
    rows, last = np.arange(n), out.seen - 1
    rise, before = (out.best[rows, last - k] - out.best[rows, last - k - 1] for k in (0, 1))
    fading = np.clip(rise / np.where(before > 0, before, 1.0), 0.0, _SLOWEST)[:, None]
    fading = np.where(before[:, None] > 0, fading, _SLOWEST)
    ahead = np.maximum(np.arange(size) - last[:, None], 0)
    gained = fading * (1.0 - fading**ahead) / (1.0 - fading) * rise[:, None]
    best = out.best[rows, last][:, None] + gained * np.tile(_RISES, len(cut))[:, None]
    usual = usual_cost(runs)
    dear = out.cost[rows, last] / np.where(usual[last] > 0, usual[last], 1.0)
    cost = np.where(ahead > 0, usual * dear[:, None], out.cost)
    best, shown, mean = (np.where(ahead > 0, best, x) for x in (out.best, out.last, out.mean))
    return replace(
        out, best=best, last=shown, mean=mean, cost=cost, seen=np.full(n, size),
        gone=np.ones(n, bool), weight=out.weight * (weight / len(_RISES)),
    )  # fmt: skip


def _error(known: Ladder, new: Ladder) -> float:
    """The mean error of the last score of each new run, as told by the runs nearest at first."""
    errors = []
    for i in np.flatnonzero(new.seen > 1).tolist():
        last = int(new.seen[i]) - 1
        gap = np.abs(known.best[:, 0] - new.best[i, 0])
        near = np.argsort(gap, kind="stable")[: max(3, len(known) // 8)]
        errors.append(abs(float(np.mean(known.best[near, last])) - float(new.best[i, last])))
    return float(np.mean(errors)) if errors else 0.0
