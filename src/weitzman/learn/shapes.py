"""How runs of other tasks may look in a new one: a prior that its first runs outweigh.

A *shape* is a set of curves without units: how runs stand to the mean run, at fractions of the cost
of a full run, in units of how much the mean run has risen lately (since it had paid a quarter). At
the first rung the unit is a standard deviation. So where scores of a new task have come near to
their limits, runs are expected to differ little; where scores still rise, to differ more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._common.arrays import FloatArray
from .curves import Curves
from .ladder import Ladder

_LATELY = 4.0  # a late rise is one since this many times less was paid
_FURTHEST = 5.0  # standing that counts
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
        """The shape of the runs of a task that came to their ends; of all runs if none did."""
        whole = np.flatnonzero(curves.ended)
        runs = curves.select(whole if len(whole) else np.arange(len(curves)))
        runs = runs.select(np.linspace(0, len(runs) - 1, min(len(runs), _MOST)).astype(np.int64))
        at = np.geomspace(0.01, 1.0, _POINTS)
        best = np.array([_at(runs, i, at) for i in range(len(runs))])
        unit = _unit(best.mean(axis=0), at, float(best[:, 0].std()))
        gap = best - best.mean(axis=0)
        return cls(at, np.clip(gap / np.where(unit > 0, unit, 1.0), -_FURTHEST, _FURTHEST))

    def fitted(self, new: Ladder, paid: FloatArray) -> Ladder:
        """The runs of the shape as runs of a new task, fitted to the runs seen so far.

        ``paid`` is what a full run costs on average up to each rung.
        """
        place = np.searchsorted(self.at, paid / paid[-1] - 1e-12)
        standing = self.standing[:, np.minimum(place, len(self.at) - 1)]
        course = _course(new)
        best = course + _unit(course, paid, float(new.best[:, 0].std())) * standing
        # as a best score so far it never falls: no early one exceeds what it leads to
        best = np.minimum.accumulate(best[:, ::-1], axis=1)[:, ::-1]
        n, size = best.shape
        config = new.config[np.arange(n) % len(new)]  # settings are ignored
        cost = np.tile(np.diff(paid, prepend=0.0), (n, 1))
        seen, gone = np.full(n, size), np.ones(n, bool)
        return Ladder(new.rungs, best, best, best, cost, config, seen, gone, np.full(n, 1.0 / n))


def _unit(course: FloatArray, paid: FloatArray, first: float) -> FloatArray:
    """How much a course has risen since a quarter was paid; a separate number at the start."""
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


def _course(new: Ladder) -> FloatArray:
    """The mean score at the first rung, and its rises in the runs that got further."""
    seen = np.arange(new.best.shape[1]) < new.seen[:, None]
    rise = np.diff(new.best, axis=1, prepend=0.0)
    count = np.maximum(seen.sum(axis=0), 1)
    return np.asarray(np.cumsum((rise * seen).sum(axis=0) / count))


def mixture(shapes: Sequence[Shape], new: Ladder, paid: FloatArray, weight: float) -> Ladder:
    """Runs of all shapes, fitted to the new runs; together they count for ``weight`` runs.

    The better a shape predicts how the new runs rose, the more it counts. The measure is the mean
    error of predicting the last score seen of a run from its first score.
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


def _error(known: Ladder, new: Ladder) -> float:
    """The mean error of the last score of each new run, as predicted by the nearest runs."""
    errors = []
    for i in np.flatnonzero(new.seen > 1).tolist():
        last = int(new.seen[i]) - 1
        gap = np.abs(known.best[:, 0] - new.best[i, 0])
        near = np.argsort(gap, kind="stable")[: max(3, len(known) // 8)]
        errors.append(abs(float(np.mean(known.best[near, last])) - float(new.best[i, last])))
    return float(np.mean(errors)) if errors else 0.0
