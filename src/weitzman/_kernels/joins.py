"""The larger of several independent values: of copies, and of two."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .blocks import count, error, padded, rows_of, tail_from, tops_of
from .jit import lane_helper
from .lanes import LANES, expm1, larger, load, log1p, madd, splat, store, sub


class Operand(NamedTuple):
    """The largest of so many independent copies of the value in a block."""

    block: np.ndarray
    copies: float


class Side(NamedTuple):
    """Rows of tails of a value, and which of them belongs to each breakpoint of a join."""

    tails: np.ndarray
    rows: np.ndarray


@lane_helper()
def power(tail, copies):
    """P(max of ``copies`` independent values >= x) from P(one >= x)."""
    if copies == 1.0:
        return tail
    return -expm1(copies * log1p(-min(tail, 1.0)))


@lane_helper()
def powers_of(x, lanes, spare):
    """Rows of the tails of an operand, in ``spare`` where they are new."""
    rows = rows_of(x.block, lanes)
    if x.copies == 1.0:
        return rows
    for i in range((count(x.block, 0) + 1) * lanes):
        spare[i] = power(rows[i], x.copies)
    return spare


@lane_helper()
def power_error(x, k, y):
    """Error of an operand, in state y.

    Replacing the copies one at a time by their thinned versions: an error in one matters only while
    those before it stay below the top of its support. That sums to P(max >= top) / P(one >= top).
    """
    err, lanes = error(x.block, 0, k, y), padded(k)
    if x.copies != 1.0 and err > 0.0:
        t = tail_from(x.block, 0, k, y, tops_of(x.block, lanes)[y])
        err *= power(t, x.copies) / t if t > 0.0 else x.copies
    return err


@lane_helper()
def join_grid(a, b, low, grid, left, right):
    """Breakpoints of max(A, B), from the top down to ``low``; returns how many.

    ``a`` and ``b`` are those of A and B, ``left[j]`` and ``right[j]`` their rows for ``grid[j]``.
    """
    i, j, n = 1, 1, 0
    x = max(a[1], b[1])
    while x >= low and x > -np.inf:
        i += a[i] == x
        j += b[j] == x
        grid[n], left[n], right[n] = x, i - 1, j - 1
        n += 1
        x = max(a[i], b[j])
    return n


@lane_helper()
def join_rows(a, b, lanes, n, rows):
    """P(max(A, B) >= x) = P(A >= x) + P(B >= x) P(A < x), from the two sides."""
    for j in range(n):
        for u in range(0, lanes, LANES):
            s, t = load(a.tails, a.rows[j] * lanes + u), load(b.tails, b.rows[j] * lanes + u)
            store(rows, j * lanes + u, madd(t, sub(splat(1.0), s), s))


@lane_helper()
def join_error(a, b, k, err, top):
    """Errors of the larger of two operands, and the highest breakpoints, per state.

    An error in the one with the lower top matters only while the other stays below that.
    """
    lanes = padded(k)
    for u in range(0, lanes, LANES):
        store(err, u, splat(0.0))
        store(top, u, larger(load(tops_of(a.block, lanes), u), load(tops_of(b.block, lanes), u)))
    for y in range(k):
        ea, eb = power_error(a, k, y), power_error(b, k, y)
        pa, pb = tops_of(a.block, lanes)[y], tops_of(b.block, lanes)[y]
        if eb > 0.0 and pa >= pb:
            eb *= 1.0 - power(tail_from(a.block, 0, k, y, pb), a.copies)
        if ea > 0.0 and pa < pb:
            ea *= 1.0 - power(tail_from(b.block, 0, k, y, pa), b.copies)
        err[y] = ea + eb
