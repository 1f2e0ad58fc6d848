"""Chains and endless lines in exact rational arithmetic: slow, plain, no code shared with src."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np

Row = list[Fraction]
Law = list[Row]


def solve(matrix: Law, right: Row) -> Row:
    """Gauss and Jordan."""
    n = len(matrix)
    rows = [[*matrix[i], right[i]] for i in range(n)]
    for j in range(n):
        p = next(i for i in range(j, n) if rows[i][j] != 0)
        rows[j], rows[p] = rows[p], rows[j]
        rows[j] = [x / rows[j][j] for x in rows[j]]
        for i in range(n):
            if i != j and rows[i][j] != 0:
                factor = rows[i][j]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[j], strict=True)]
    return [row[-1] for row in rows]


def stationary(law: Law) -> Row:
    n = len(law)
    matrix = [[law[j][i] - (i == j) for j in range(n)] for i in range(n - 1)]
    return solve([*matrix, [Fraction(1)] * n], [Fraction(0)] * (n - 1) + [Fraction(1)])


class ExactLine:
    """The gain of going on at any x, by policy iteration; indices by Newton's method.

    ``rewards`` may hold None: a state without a reward.
    """

    def __init__(self, law: Law, rewards: list[Fraction | None], cost: Row) -> None:
        self.law, self.rewards, self.cost = law, rewards, cost
        self.worth: dict[int, Fraction] = {}  # reward and all that may follow, for each state
        for x in sorted({r for r in rewards if r is not None}, reverse=True):
            gain, _ = self.gain(x)
            for y, r in enumerate(rewards):
                if r == x:
                    self.worth[y] = x + max(gain[y], Fraction(0))

    def gain(self, x: Fraction) -> tuple[Row, Row]:
        """Gain of going on with x in hand after each state, and how fast it falls with x."""
        k = len(self.law)
        higher = [y for y, r in enumerate(self.rewards) if r is not None and r > x]
        rest = [y for y in range(k) if y not in higher]
        base = [
            sum((self.law[s][y] * (self.worth[y] - x) for y in higher), -self.cost[s])
            for s in range(k)
        ]
        mass = [sum((self.law[s][y] for y in higher), Fraction(0)) for s in range(k)]
        going: list[int] = []
        while True:
            matrix = [[(s == y) - self.law[s][y] for y in going] for s in going]
            h = dict(zip(going, solve(matrix, [base[s] for s in going]), strict=True))
            w = dict(zip(going, solve(matrix, [mass[s] for s in going]), strict=True))
            gain = [base[s] + sum(self.law[s][y] * h[y] for y in going) for s in range(k)]
            fall = [mass[s] + sum(self.law[s][y] * w[y] for y in going) for s in range(k)]
            better = [s for s in rest if gain[s] > 0]
            if better == going:
                return gain, fall
            going = better

    def index(self, s: int) -> Fraction | None:
        """The x where the gain is 0, from the left: tangents of a convex function; None: none."""
        x = Fraction(-(10**6))
        for _ in range(200):
            gain, fall = self.gain(x)
            if fall[s] == 0:
                return None
            if gain[s] == 0:
                return x
            assert gain[s] > 0
            x += gain[s] / fall[s]
        raise AssertionError("Newton's method did not end")

    def phi(self, x: Fraction, s: int) -> Fraction:
        return x + max(self.gain(x)[0][s], Fraction(0))


def paths(
    law: Law, s: int, t: int, seen: Callable[[tuple[int, ...]], object]
) -> dict[object, Fraction]:
    """The distribution of what is seen of the t states after s, over all paths."""
    found: dict[object, Fraction] = {}
    for path in product(range(len(law)), repeat=t):
        p, at = Fraction(1), s
        for y in path:
            p, at = p * law[at][y], y
        found[seen(path)] = found.get(seen(path), Fraction(0)) + p
    return found


def as_floats(law: Law) -> np.ndarray:
    return np.array([[float(p) for p in row] for row in law])
