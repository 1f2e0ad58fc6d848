"""Capped values: random numbers that each describe one way to go on searching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._common.arrays import FloatArray
from .._kernels.roots import roots
from ..errors import InvalidArgument


@dataclass(frozen=True, slots=True, eq=False)
class Capped:
    """A capped value: a random number that fully describes one way to go on searching.

    Attributes
    ----------
    index : float
        Go on here while no other index is higher and the best so far is lower.
    breakpoints : (m,) array, ascending
    tails : (m,) array
        ``tails[j]`` = P(kappa >= breakpoints[j]).
    """

    index: float
    breakpoints: FloatArray
    tails: FloatArray

    def value_at(self, outside: float = 0.0) -> float:
        """Expected payoff of searching here alone, with the outside option in hand."""
        return float(above(self.breakpoints, self.tails, np.array([outside]))[0])


def value_together(
    parts: Sequence[Capped], outside: float = 0.0, copies: Sequence[float] | None = None
) -> float:
    """Expected payoff of searching several independent lines at once.

    Parameters
    ----------
    parts : Capped values
        As from :meth:`EndlessLine.start`.
    outside : float
    copies : numbers, optional
        How many independent copies of each part. Infinity: endlessly many copies, which together
        are worth their index with certainty, since some copy does as well as possible.

    Examples
    --------
    >>> from weitzman.chains import Chain, solve_line
    >>> line = solve_line(Chain([[0.9, 0.1], [0.2, 0.8]], rewards=[0, 10]), cost=0.5)
    >>> value_together([line.start(0), line.start(1)])
    8.5
    >>> value_together([line.start(1)], copies=[np.inf])
    9.375
    """
    count = np.ones(len(parts)) if copies is None else np.asarray(copies, np.float64)
    if len(count) != len(parts) or not (count >= 1).all():
        raise InvalidArgument(f"`copies` must be one number from 1 on for each part, not {copies}.")
    if not parts:
        return float(outside)
    points = np.unique(np.concatenate([p.breakpoints for p in parts]))
    below = np.zeros(len(points))  # logarithm of the probability that all are lower
    for part, n in zip(parts, count, strict=True):
        tails = np.append(part.tails, 0.0)[np.searchsorted(part.breakpoints, points)]
        with np.errstate(divide="ignore"):
            below += np.where(tails > 0, n * np.log1p(-np.maximum(tails, 5e-324)), 0.0)
    return float(above(points, -np.expm1(below), np.array([outside]))[0])


def _gains(points: FloatArray, tails: FloatArray) -> FloatArray:
    """E (kappa - b)^+ at each breakpoint b."""
    steps = tails[1:] * np.diff(points)
    return np.append(np.cumsum(steps[::-1])[::-1], 0.0)


def above(points: FloatArray, tails: FloatArray, y: FloatArray) -> FloatArray:
    """E max(y, kappa) for each y, from the tail probabilities of kappa."""
    gains = _gains(points, tails)
    j = np.minimum(np.searchsorted(points, y), len(points) - 1)
    lift = np.where(y < points[-1], gains[j] + tails[j] * (points[j] - y), 0.0)
    with np.errstate(invalid="ignore"):
        found = np.where(y == -np.inf, y, y + lift)
    if tails[0] == 1.0:  # then y below all breakpoints plays no part
        found = np.where(y <= points[0], points[0] + gains[0], found)
    return np.asarray(found)


def root(points: FloatArray, tails: FloatArray, cost: float) -> float:
    """The y with E (W - y)^+ = cost; at cost 0 the largest value of W."""
    down = np.arange(len(points) - 1, -1, -1)
    found = roots(points[down], down, tails[None, :], np.array([cost]), True)
    return float(found[0])
