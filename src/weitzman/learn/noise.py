r"""Noise of scores: what a re-evaluation of a run should show.

The best of many noisy scores is too high. Let :math:`y_t` be the score that a run showed at step t
and :math:`x_t` what re-evaluations would show on average:

.. math:: y_t = x_t + \sigma\,\varepsilon_t, \qquad x_t = x_{t-1} + \mu_t + q_t\,\eta_t,

with independent standard normal :math:`\varepsilon` and :math:`\eta`, and a first score that
differs between runs. The usual rise :math:`\mu_t` and its spread :math:`q_t` belong to the step.
The mean of :math:`x_t`, given all scores up to step t, follows by the filter of Kalman (1960): it
needs no later scores, so that logged runs and runs under way are treated alike. The noise
:math:`\sigma` shows in the log as changes that are reversed at the next step: the covariance of
two successive changes is :math:`-\sigma^2`. The later halves of curves say how large it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from ..errors import InvalidArgument
from .curves import Curves

_FEWEST = 20  # pairs of successive changes that say something about noise
_NORMAL = 1.4826  # the standard deviation of a normal law over its median distance to the median
_BESIDE = 2  # steps before and after one that help to say how much runs differ in their changes
_FAR = 4.0  # changes further out, in standard deviations, are not noise


class Belief(NamedTuple):
    """What a run is thought to show on average when it is evaluated again, and the variance.

    ``step`` is the step of the last score that the belief rests on.
    """

    mean: float
    variance: float
    step: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class ScoreNoise:
    """How noisy scores are, and how they change from step to step.

    Attributes
    ----------
    noise : float
        The standard deviation of a score about the mean of re-evaluations.
    first : Belief
        The first scores of runs without noise: their mean, and the variance between runs.
    step : (m,) array of int
        The steps of the log after the first ones.
    rise, drift : (m,) arrays of float
        The usual change up to each step, and its standard deviation between runs.
    """

    noise: float
    first: Belief
    step: IntArray
    rise: FloatArray
    drift: FloatArray

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
        return cls(
            math.sqrt(square),
            Belief(mean, max(spread**2 - square, 0.0)),
            steps,
            rise,
            _drift(odd[near], place[near], len(steps), square),
        )

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


def noise_of(curves: Curves) -> float:
    """The noise of scores that a log shows; NaN if its curves are too short to tell."""
    try:
        return ScoreNoise.of(curves).noise
    except InvalidArgument:
        return math.nan


def _medians(x: FloatArray, place: IntArray) -> FloatArray:
    """The median of the numbers of each step, by one sort: logs may have thousands of steps."""
    count = np.bincount(place)
    first, up = np.cumsum(count) - count, x[np.lexsort((x, place))]
    return np.asarray((up[first + (count - 1) // 2] + up[first + count // 2]) / 2)


def _drift(odd: FloatArray, place: IntArray, size: int, square: float) -> FloatArray:
    """By step, how much runs differ in their changes beyond noise, as far as that is sure.

    Steps that follow each other are taken together, and twice the error of the variance is taken
    off: otherwise chance alone would look like change, and noise would be believed.
    """
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
    if len(pair) < _FEWEST:
        raise InvalidArgument(
            f"the noise of scores is learned from curves of several steps, at least {_FEWEST} "
            f"pairs of successive changes, but the log has {len(pair)}. State the noise as a "
            f"number: its standard deviation in points of score."
        )
    return max(-float(np.mean(odd[pair] * odd[pair + 1])), 0.0)
