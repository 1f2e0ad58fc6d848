"""Indices of many boxes whose prizes are the same and whose chances differ."""

from __future__ import annotations

import numpy as np

from .jit import helper, kernel


@helper()
def _reservation(value, owner, row, cost):
    """The root in s of the sum over k of ``row[owner[k]] (value[k] - s)^+ = cost``.

    The left side is the highest of the lines that its first terms make, so the root is the highest
    of their roots; terms below it do not count. Measured from the top to keep digits.
    """
    mass, gain, best = 0.0, -cost, -np.inf
    for k in range(value.size):
        below = value[k] - value[0]
        if below < best:
            break
        chance = row[owner[k]]
        if chance > 0.0:
            mass += chance
            gain += chance * below
            best = max(best, gain / mass)
    return value[0] + best


@kernel()
def reservations(value, owner, rows, cost):
    """The index of every row: see `_reservation`. Values descend, and no row is empty."""
    out = np.empty(len(rows))
    for i in range(len(rows)):
        out[i] = _reservation(value, owner, rows[i], cost[i])
    return out
