"""The larger of several independent values: of copies, and of two."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from .blocks import count, error, padded, rows_of, tail_from, tops_of
from .lanes import LANES, larger, load, madd, splat, store, sub
from .settings import JIT


@njit(**JIT)
def power(tail, copies):
    """P(max of ``copies`` independent values >= x) from P(one >= x)."""
    if copies == 1.0:
        return tail
    return -math.expm1(copies * math.log1p(-min(tail, 1.0)))


@njit(**JIT)
def powers_of(x, lanes, copies, spare):
    """Rows of the largest of ``copies`` independent values, in ``spare`` where they are new."""
    rows = rows_of(x, lanes)
    if copies == 1.0:
        return rows
    for i in range((count(x, 0) + 1) * lanes):
        spare[i] = power(rows[i], copies)
    return spare


@njit(**JIT)
def power_error(x, k, copies, y):
    """Error of the largest of ``copies`` independent values, in state y.

    Replacing the copies one at a time by their thinned versions: an error in one matters only while
    those before it stay below the top of its support. That sums to P(max >= top) / P(one >= top).
    """
    err, lanes = error(x, 0, k, y), padded(k)
    if copies != 1.0 and err > 0.0:
        t = tail_from(x, 0, k, y, tops_of(x, lanes)[y])
        err *= power(t, copies) / t if t > 0.0 else copies
    return err


@njit(**JIT)
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


@njit(**JIT)
def join_rows(a, left, b, right, lanes, n, rows):
    """P(max(A, B) >= x) = P(A >= x) + P(B >= x) P(A < x), from the rows ``a`` and ``b``."""
    for j in range(n):
        for u in range(0, lanes, LANES):
            s, t = load(a, left[j] * lanes + u), load(b, right[j] * lanes + u)
            store(rows, j * lanes + u, madd(t, sub(splat(1.0), s), s))


@njit(**JIT)
def join_error(a, ca, b, cb, k, err, top):
    """Errors of max(A^ca, B^cb), and the highest breakpoints, per state.

    An error in the one with the lower top matters only while the other stays below that.
    """
    lanes = padded(k)
    for u in range(0, lanes, LANES):
        store(err, u, splat(0.0))
        store(top, u, larger(load(tops_of(a, lanes), u), load(tops_of(b, lanes), u)))
    for y in range(k):
        ea, eb = power_error(a, k, ca, y), power_error(b, k, cb, y)
        pa, pb = tops_of(a, lanes)[y], tops_of(b, lanes)[y]
        if eb > 0.0 and pa >= pb:
            eb *= 1.0 - power(tail_from(a, 0, k, y, pb), ca)
        if ea > 0.0 and pa < pb:
            ea *= 1.0 - power(tail_from(b, 0, k, y, pa), cb)
        err[y] = ea + eb
