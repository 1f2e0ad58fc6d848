"""A chain in the long run: its classes, and how fast the stationary distribution is reached."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from ..errors import InvalidArgument

_PAIRS = 300  # states up to which all pairs of rows are compared
_SMALL = 1e-3  # spread at which larger powers are no longer tried
_EPS = float(np.finfo(np.float64).eps)
_TOO_SLOW = "the chain mixes so slowly that rounding hides it: its distances cannot be computed."


class CommunicatingClass(NamedTuple):
    """A maximal set of states that all lead to each other."""

    states: IntArray
    recurrent: bool
    """Whether the chain stays once it is there."""
    period: int
    """Greatest common divisor of the lengths of all ways back; 0 if there is none."""


def classes(law: FloatArray) -> tuple[CommunicatingClass, ...]:
    """The communicating classes of a chain, by their first state."""
    ways = (np.eye(len(law)) + law > 0).astype(np.float32)  # in at most 1, 2, 4, ... steps
    while True:
        more = np.minimum(ways @ ways, 1)
        if (more == ways).all():
            break
        ways = more
    label = (ways * ways.T).argmax(axis=1)  # the first state that a state meets
    found = []
    for first in np.unique(label):
        states = np.flatnonzero(label == first)
        recurrent = int(ways[first].sum()) == len(states)
        found.append(
            CommunicatingClass(states, recurrent, _period(law[np.ix_(states, states)] > 0))
        )
    return tuple(found)


def _period(edges: BoolArray) -> int:
    """The greatest common divisor of level(i) + 1 - level(j) over the edges i -> j of a class.

    The level of a state is the number of steps to it from the first one.
    """
    level, here = np.zeros(len(edges), np.int64), np.arange(len(edges)) == 0
    seen, steps = here, 0
    while here.any():
        level[here], steps = steps, steps + 1
        here = edges[here].any(axis=0) & ~seen
        seen = seen | here
    i, j = edges.nonzero()
    return int(np.gcd.reduce(np.abs(level[i] + 1 - level[j])))


def must_converge(period: int) -> None:
    """Refuse a periodic chain: its law of box t does not converge."""
    if period > 1:
        raise InvalidArgument(
            f"the law of box t must converge, but the chain has period {period}. A chain that "
            f"sometimes stays where it is has period 1."
        )


def leading_to(law: FloatArray, target: BoolArray, avoid: BoolArray | None = None) -> BoolArray:
    """States with a way into the target that never enters ``avoid``; states of the target count.

    The arguments are masks over the states; so is the result.
    """
    edges = law > 0
    if avoid is not None:
        edges[:, avoid] = False
    found, new = target.copy(), target
    while new.any():
        new = edges[:, new].any(axis=1) & ~found
        found |= new
    return found


class Rate(NamedTuple):
    """Constants with max over s of the distance of P^t(s, .) to pi at most C alpha^t, all t."""

    C: float
    alpha: float


def variation(rows: FloatArray, pi: FloatArray) -> float:
    """Largest total-variation distance of a row to pi."""
    return float(np.abs(rows - pi).sum(axis=1).max() / 2)


def later(rows: FloatArray, law: FloatArray, t: int) -> FloatArray:
    """Distributions t steps later."""
    if t * len(rows) > 2 * len(law) * t.bit_length():
        while t:
            rows = rows @ law if t % 2 else rows
            law, t = _square(law) if t > 1 else law, t // 2
    for _ in range(t):
        rows = rows @ law
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
