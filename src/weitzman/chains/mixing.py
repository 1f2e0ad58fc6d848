"""Powers of a dense law, and their distance to the stationary distribution."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import FloatArray
from ..errors import InvalidArgument

_PAIRS = 300  # states up to which all pairs of rows are compared
_SMALL = 1e-3  # spread at which larger powers are no longer tried
_EPS = float(np.finfo(np.float64).eps)
_TOO_SLOW = "the chain mixes so slowly that rounding hides it: its distances cannot be computed."


class Rate(NamedTuple):
    """Constants with max over s of the distance of P^t(s, .) to pi at most C alpha^t, all t."""

    C: float
    alpha: float


def variation(rows: FloatArray, pi: FloatArray) -> float:
    """Largest total-variation distance of a row to pi."""
    return float(np.abs(rows - pi).sum(axis=1).max() / 2)


def later(rows: FloatArray, law: Any, t: int) -> FloatArray:
    """Distributions t steps later; the law may be sparse."""
    if isinstance(law, np.ndarray) and t * len(rows) > 2 * len(law) * t.bit_length():
        while t:
            rows = rows @ law if t % 2 else rows
            law, t = _square(law) if t > 1 else law, t // 2
    for _ in range(t):
        rows = np.asarray(rows @ law)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def mixing_time(law: FloatArray, pi: FloatArray, eps: float) -> int:
    """Least t with a distance of at most eps, for a chain that converges."""
    if 1 - pi.min() <= eps:
        return 0
    powers = [law]
    while variation(powers[-1], pi) > eps:
        if _rounding(law, 2 ** len(powers)) > eps:
            raise InvalidArgument(_TOO_SLOW)
        powers.append(_square(powers[-1]))
    rows, t = np.eye(len(law)), 0  # a time that is too early, digit by digit
    for j in range(len(powers) - 2, -1, -1):
        later = rows @ powers[j]
        if variation(later, pi) > eps:
            rows, t = later, t + 2**j
    return t + 1


def rate(law: FloatArray, pi: FloatArray) -> Rate:
    """See :meth:`weitzman.chains.Chain.rate`."""
    d, power, m, best = [1 - float(pi.min())], law, 1, Rate(np.inf, 0.0)
    while True:
        slack = _rounding(law, m)
        if slack > _SMALL:
            if best.alpha > 0:
                return best
            raise InvalidArgument(_TOO_SLOW)
        now = min(1.0, variation(power, pi) + slack)
        spread = min(1.0, 2 * now, _spread(power) + slack)
        if spread < 1:
            alpha = spread ** (1 / m)
            # for r from 2^j to before 2^(j + 1), d(r) is at most d(2^j)
            last = [min(2 ** (j + 1), m) - 1 for j in range(len(d) - 1)]
            C = max([d[0]] + [x * alpha**-r for x, r in zip(d[1:], last, strict=True)])
            if C / (1 - alpha) < best.C / (1 - best.alpha):
                best = Rate(C, alpha)
            if spread < _SMALL:
                return best
        d.append(now)
        power, m = _square(power), 2 * m


def _rounding(law: FloatArray, m: int) -> float:
    """More than rounding can have moved a row of the m-th power, m reached by squaring."""
    return 4 * len(law) * m * _EPS


def _square(law: FloatArray) -> FloatArray:
    twice = law @ law
    return np.asarray(twice / twice.sum(axis=1, keepdims=True))


def _spread(rows: FloatArray) -> float:
    """Largest distance between two rows; 1 if there are too many to compare."""
    if len(rows) > _PAIRS:
        return 1.0
    return max(variation(rows, row) for row in rows)
