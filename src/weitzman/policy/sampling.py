"""What a number came to in many episodes: mean, error, quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from .._common.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One number per episode.

    Attributes
    ----------
    values : array of float
        Its value in each episode, or in the first ones where only those were kept.
    episodes : int
        How many episodes there were; the mean is over all of them.
    mean : float
    deviation : float
        The standard deviation; NaN with one episode.
    """

    values: FloatArray
    episodes: int
    mean: float
    deviation: float

    @property
    def standard_error(self) -> float:
        """The standard error of the mean."""
        return self.deviation / math.sqrt(self.episodes)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval for the expectation, by the normal approximation."""
        half = two_sided(level) * self.standard_error
        return self.mean - half, self.mean + half

    def quantile(self, q: float | Sequence[float]) -> FloatArray:
        """The least value that at least a share ``q`` of the kept episodes does not exceed."""
        shares = np.asarray(q, np.float64)
        return np.asarray(np.quantile(self.values, shares, method="inverted_cdf"), np.float64)

    def certainty(self, tolerance: float, sign: float) -> tuple[float, float]:
        """The certainty equivalent of the kept episodes, and its standard error.

        That of a payoff, the higher the better, times ``sign``, for a utility -exp(-z / tolerance).
        """
        z = sign * self.values
        low = float(z.min())
        utility = np.exp((low - z) / tolerance)
        mean, n = float(utility.mean()), len(z)
        error = float(utility.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
        return sign * (low - tolerance * math.log(mean)), tolerance * error / mean

    def __repr__(self) -> str:
        return f"Sample(mean={self.mean:.6g}, standard_error={self.standard_error:.2g})"


def two_sided(level: float) -> float:
    """How many standard errors to either side hold a share ``level`` of a normal law."""
    return NormalDist().inv_cdf((1 + level) / 2)


def share_interval(share: float, n: int, level: float) -> tuple[float, float]:
    """Wilson's confidence interval for a probability of which ``share`` was seen in n trials."""
    z2 = two_sided(level) ** 2 / n
    center = share + z2 / 2
    half = math.sqrt(z2 * share * (1 - share) + z2 * z2 / 4)
    return max(0.0, (center - half) / (1 + z2)), min(1.0, (center + half) / (1 + z2))


def merge(size: IntArray, mean: FloatArray, square: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the whole from those of its parts.

    Parameters
    ----------
    size : (m,) array of int
        How many numbers each part has.
    mean, square : (m, r) arrays of float
        Mean of each part, and its sum of squares around that mean.
    """
    total = int(size.sum())
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # squares of 1e200: inf
        center = size @ mean / total
        spread = square.sum(axis=0) + size @ (mean - center) ** 2
        return center, np.sqrt(spread / (total - 1) if total > 1 else np.full_like(spread, np.nan))
