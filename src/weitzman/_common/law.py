r"""Laws of random numbers as step functions: the arithmetic of capped values in NumPy.

A :class:`Law` holds rising points and *tails*, the chance to be at least each point. Tails rather
than distribution functions, so that rare prizes keep all their digits. What is missing from the
first tail lies at minus infinity: nothing is found then. A law may have one row of tails, or
several on the same points: a law for each state of a box, say. Every operation works row by row.

Risk aversion makes the other end matter as well, since a payoff far below all others can outweigh
its small chance. A law may therefore also keep the complements, the chances to be *below* each
point, which then are computed without subtraction.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from .arrays import FloatArray

__all__ = ["Law"]

_ROUNDING = float(np.finfo(np.float64).eps)


class Law:
    """The law of a random number W, or one law for each row. Immutable; nothing is checked.

    Attributes
    ----------
    points : (m,) array
        Rising.
    tails : (m,) or (rows, m) array
        P(W >= point), from 1 (or less: W may be minus infinity) downward.
    below : array like ``tails``, or None
        P(W < point), where the complement of a tail near 1 must keep its digits.

    Examples
    --------
    >>> die = Law.of([1, 2, 3, 4, 5, 6], np.full(6, 1 / 6))
    >>> round(float(die.mean()), 12), round(float(die.largest(die).mean()), 12)
    (3.5, 4.472222222222)
    >>> float(Law.of([0, 10], [0.5, 0.5]).root(1.0))  # of E(W - x)^+ = 1
    8.0
    """

    __slots__ = ("below", "points", "tails")

    def __init__(self, points: FloatArray, tails: FloatArray, below: FloatArray | None = None):
        self.points, self.tails, self.below = points, tails, below

    @classmethod
    def of(cls, values: ArrayLike, chances: ArrayLike, *, exact_below: bool = False) -> Law:
        """The law of a number with these values; one row of chances for each row of the law.

        The values may come in any order and more than once. Minus infinity stands for nothing.
        """
        value, chance = np.asarray(values, np.float64), np.asarray(chances, np.float64)
        by = value.argsort(kind="stable")
        points, start = np.unique(value[by], return_index=True)
        mass = np.add.reduceat(chance[..., by], start, axis=-1) if len(by) else chance
        tails = mass[..., ::-1].cumsum(axis=-1)[..., ::-1]  # from the top: rare prizes first
        below = np.zeros_like(tails) if exact_below else None
        if below is not None:
            below[..., 1:] = mass[..., :-1].cumsum(axis=-1)
        none = int(len(points) > 0 and points[0] == -np.inf)
        return cls(points[none:], tails[..., none:], None if below is None else below[..., none:])

    @classmethod
    def sure(cls, values: FloatArray, *, exact_below: bool = False) -> Law:
        """A row for each value, which W has for certain; minus infinity for nothing at all."""
        points = np.unique(values)
        points = points[points > -np.inf]
        tails = (values[:, None] >= points).astype(np.float64)
        return cls(points, tails, 1.0 - tails if exact_below else None)

    # -- reading ---------------------------------------------------------------------------------

    def tail(self, x: ArrayLike) -> FloatArray:
        """P(W >= x) for each x."""
        return np.asarray(_padded(self.tails, 0.0)[..., self.points.searchsorted(x)])

    def head(self, x: ArrayLike) -> FloatArray:
        """P(W < x) for each x."""
        if self.below is None:
            return np.asarray(1.0 - self.tail(x))
        return np.asarray(_padded(self.below, 1.0)[..., self.points.searchsorted(x)])

    def chances(self) -> FloatArray:
        """P(W = point), taken from the smaller of tail and complement."""
        falls = -np.diff(_padded(self.tails, 0.0))
        if self.below is None:
            return falls
        rises = np.diff(_padded(self.below, 1.0))
        return np.where(self.tails < self.below, falls, rises)

    def nothing(self) -> FloatArray:
        """P(W = minus infinity)."""
        if not len(self.points):
            return np.ones(self.tails.shape[:-1])
        if self.below is not None:
            return np.asarray(self.below[..., 0])
        missing = 1.0 - self.tails[..., 0]
        # chances that are summed one by one miss 1 by roundings, which are no chance of nothing
        return np.where(np.abs(missing) <= _ROUNDING * len(self.points), 0.0, missing)

    def excesses(self) -> FloatArray:
        """E (W - x)^+ at each point x; the area under the tail is summed from the top."""
        out = np.zeros_like(self.tails)
        steps = self.tails[..., 1:] * np.diff(self.points)
        out[..., :-1] = steps[..., ::-1].cumsum(axis=-1)[..., ::-1]
        return out

    def excess(self, x: ArrayLike) -> FloatArray:
        """E (W - x)^+ for each x."""
        at = np.asarray(x, np.float64)
        if not len(self.points):
            return np.zeros((*self.tails.shape[:-1], *at.shape))
        j = self.points.searchsorted(at)
        inside = np.minimum(j, len(self.points) - 1)
        more = self.tails[..., inside] * (self.points[inside] - at)
        return np.where(j < len(self.points), self.excesses()[..., inside] + more, 0.0)

    def with_fallback(self, x: ArrayLike) -> FloatArray:
        """E max(x, W) for each x."""
        at = np.asarray(x, np.float64)
        if not len(self.points):
            return np.broadcast_to(at, (*self.tails.shape[:-1], *at.shape))
        # minus infinity has no excess: a point in its place, so that no sum overflows
        there = np.where(at == -np.inf, self.points[0], at)
        found = np.where(at == -np.inf, at, there + self.excess(there))
        # up to what W reaches for certain x plays no part; adding it, or steps of what is capped
        # far below, would cost digits
        j = np.maximum((self.tails >= 1.0 - _ROUNDING * len(self.points)).sum(axis=-1) - 1, 0)
        low, sure = self.points[j], self.nothing() == 0.0
        lowest = low + np.take_along_axis(self.excesses(), j[..., None], axis=-1)[..., 0]
        if np.ndim(x):
            low, sure, lowest = low[..., None], sure[..., None], lowest[..., None]
        return np.where(sure & (at <= low), lowest, found)

    def mean(self) -> FloatArray:
        """E W; minus infinity where W may be nothing."""
        return np.asarray(self.with_fallback(-np.inf))

    def quantile(self, share: float) -> FloatArray:
        """The least x with P(W <= x) >= share; minus infinity while nothing is that likely."""
        reached = _padded(self.below if self.below is not None else 1.0 - self.tails, 1.0)
        j = (reached < share).sum(axis=-1)
        return np.asarray(np.concatenate([[-np.inf], self.points])[np.minimum(j, len(self.points))])

    # -- building --------------------------------------------------------------------------------

    def largest(self, *others: Law) -> Law:
        """The maximum of independent numbers, row by row."""
        if not others:
            return self
        laws = (self, *others)
        points = np.sort(np.concatenate([law.points for law in laws]))
        keep = np.ones(len(points), bool)
        np.not_equal(points[1:], points[:-1], out=keep[1:])
        points = points[keep]
        # a + b - ab written as a sum of positive terms: small tails keep their digits
        tails = reduce(lambda a, b: a + b * (1.0 - a), (law.tail(points) for law in laws))
        if any(law.below is None for law in laws):
            return Law(points, tails)
        below: FloatArray = reduce(np.multiply, (law.head(points) for law in laws))
        # where the complement is small, 1 minus it is the better tail
        return Law(points, np.where(below < 0.5, 1.0 - below, tails), below)

    def power(self, copies: float) -> Law:
        """The maximum of many independent copies; infinitely many are as good as the best point."""
        if copies == 1:
            return self
        if copies == np.inf:
            tails = (self.tails > 0).astype(np.float64)
            return Law(self.points, tails, None if self.below is None else 1.0 - tails)
        with np.errstate(divide="ignore"):
            tails = -np.expm1(copies * np.log1p(-np.minimum(self.tails, 1.0)))
        return Law(self.points, tails, None if self.below is None else self.below**copies)

    def mixture(self, weights: FloatArray) -> Law:
        """Row s of the result is the mixture of all rows with ``weights[s]``.

        Weights need not sum to 1: the tails, or slopes, are then those of a weighed sum.
        """
        below = None if self.below is None else weights @ self.below
        return Law(self.points, weights @ self.tails, below)

    def cap(self, level: ArrayLike) -> Law:
        """The law of min(W, level), with a level for each row; minus infinity leaves nothing."""
        top = np.asarray(level, np.float64)
        levels = top.reshape(-1)
        points = np.sort(np.concatenate([self.points, levels[levels > -np.inf]]))
        points = points[points <= levels.max(initial=-np.inf)]
        keep = np.ones(len(points), bool)
        np.not_equal(points[1:], points[:-1], out=keep[1:])
        points = points[keep]
        held = points <= top[..., None]
        below = None if self.below is None else np.where(held, self.head(points), 1.0)
        return Law(points, np.where(held, self.tail(points), 0.0), below)

    def root(self, cost: ArrayLike) -> FloatArray:
        """The x with E (W - x)^+ = cost, for each row; at cost 0 the highest value of W.

        The area under the tail is summed from the top, where nothing cancels, down to the point
        at which it exceeds the cost. Minus infinity where W is always nothing.
        """
        price = np.asarray(cost, np.float64)
        if not len(self.points):
            return np.full(np.broadcast_shapes(self.tails.shape[:-1], price.shape), -np.inf)
        area = self.excesses()
        j = (area > price[..., None]).sum(axis=-1)  # the lowest point with an area within the cost
        at = (j,) if area.ndim == 1 else (np.arange(len(area)), j)
        height = self.tails[at]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.points[j] - (price - area[at]) / height
        # rounding must not carry the root past the next point below
        found = np.where(j > 0, np.maximum(found, self.points[j - 1]), found)
        return np.where(height > 0, found, -np.inf)

    def __repr__(self) -> str:
        return f"Law(points={self.points!r}, tails={self.tails!r})"


def _padded(rows: FloatArray, end: float) -> FloatArray:
    """Rows with one more entry: what holds above all points."""
    out = np.empty((*rows.shape[:-1], rows.shape[-1] + 1))
    out[..., :-1], out[..., -1] = rows, end
    return out
