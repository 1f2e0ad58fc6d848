"""Dropping breakpoints that do not matter, with a bound on what that changes."""

from __future__ import annotations

import numpy as np
from numba import njit

from .blocks import begin, errors_of, finish, grid_of, rows_of, tops_of
from .lanes import (
    LANES,
    above,
    add,
    at_least,
    both,
    div,
    larger,
    load,
    madd,
    mul,
    pointer,
    smaller,
    some,
    splat,
    splat_at,
    store,
    sub,
    where,
)
from .settings import JIT


@njit(**JIT)
def _capped_tail(x, source, rows, lanes, u, cap, j):
    """P(min(W_s, sigma_s) >= x[j]) for eight states s, whose indices are ``cap``."""
    t = load(rows, source[j] * lanes + u)
    return where(at_least(cap, splat_at(x, j)), t, splat(0.0))


@njit(**JIT)
def _matters(above_, here, right, at, left, bottom, bound):
    """Would it raise E max(x, kappa_s) by more than a quarter of ``bound`` to drop breakpoints?

    Those between ``right`` and ``left``, of which ``at`` is the lowest; the tails at ``right`` and
    at ``at`` are ``above_`` and ``here``. The bound is a quarter of the mass between, times the
    distance; what lies at or below the floor ``bottom`` does not count.
    """
    move = mul(sub(here, above_), sub(right, larger(left, bottom)))
    return both(above(at, bottom), above(move, splat(bound)))


@njit(**JIT)
def _candidates(x, source, m, rows, lanes, sigma, floor, bound, out):
    """The breakpoints that may be dropped alone, between their neighbors, and then m.

    The first eight states rule out most of them, so that the others have little to look at. The
    highest and the lowest breakpoint stay.
    """
    found = max(m - 2, 0)
    for i in range(found):
        out[i] = i + 1
    for u in range(0, lanes, LANES):
        cap, bottom = load(sigma, u), load(floor, u)
        left, found = found, 0
        for i in range(left):
            j = out[i]
            s = _capped_tail(x, source, rows, lanes, u, cap, j - 1)
            t = _capped_tail(x, source, rows, lanes, u, cap, j)
            p, q, r = splat_at(x, j - 1), splat_at(x, j), splat_at(x, j + 1)
            out[found] = j
            found += not some(_matters(s, t, p, q, r, bottom, bound))
    out[found] = m


@njit(**JIT)
def _fits(x, source, rows, lanes, sigma, floor, c, a, bound):
    """May all breakpoints strictly between c and a + 1 be dropped, if those down to a - 1 may?"""
    for u in range(0, lanes, LANES):
        cap, bottom = load(sigma, u), load(floor, u)
        s = _capped_tail(x, source, rows, lanes, u, cap, c)
        t = _capped_tail(x, source, rows, lanes, u, cap, a)
        p, q, r = splat_at(x, c), splat_at(x, a), splat_at(x, a + 1)
        if some(_matters(s, t, p, q, r, bottom, bound)):
            return False
    return True


@njit(**JIT)
def _average(x, source, rows, lanes, sigma, floor, c, a, base, value, row):
    """Give the breakpoint c the mass of the dropped ones between it and a.

    Its new tail is the average over the interval (a, c], or that part of it above the floor. The
    errors of ``value`` become at least those from before, ``base``, plus what this adds.
    """
    zero, errors, tops = splat(0.0), errors_of(value), tops_of(value, lanes)
    for u in range(0, lanes, LANES):
        cap, bottom = load(sigma, u), load(floor, u)
        last = _capped_tail(x, source, rows, lanes, u, cap, c)
        area, first = zero, last
        for j in range(c, a):
            t = _capped_tail(x, source, rows, lanes, u, cap, j)
            right = splat_at(x, j)
            area = madd(t, larger(sub(right, larger(splat_at(x, j + 1), bottom)), zero), area)
            first = where(above(right, bottom), t, first)
        span = sub(splat_at(x, c), larger(splat_at(x, a), bottom))
        mean = where(above(span, zero), div(area, span), last)
        mean = smaller(larger(mean, last), first)
        store(row, u, mean)
        moved = mul(mul(sub(first, last), span), splat(0.25))
        store(errors, u, larger(load(errors, u), add(load(base, u), moved)))
        reached = where(above(mean, zero), splat_at(x, c), splat(-np.inf))
        store(tops, u, larger(load(tops, u), reached))


@njit(**JIT)
def thin(x, source, m, rows, lanes, sigma, floor, base, top, eps, loose, value):
    """Write the value to a block, without the breakpoints that do not matter.

    From the top down, as many as possible are dropped after each one that is kept.
    """
    begin(value, m, lanes)
    for u in range(0, lanes, LANES):
        store(errors_of(value), u, load(base, u))
        store(tops_of(value, lanes), u, load(top, u))
    bound = 4.0 * eps
    _candidates(x, source, m, rows, lanes, sigma, floor, bound, loose)
    grid, row = pointer(grid_of(value, lanes), 1), rows_of(value, lanes)
    c, kept, i = 0, 0, 0
    while c < m:
        for j in range(c, loose[i]):
            grid[kept] = x[j]
            kept += 1
            row = pointer(row, lanes)
            for u in range(0, lanes, LANES):
                store(row, u, _capped_tail(x, source, rows, lanes, u, load(sigma, u), j))
        c, a = loose[i] - 1, loose[i] + 1
        if a > m:
            break
        i += 1
        while loose[i] == a and _fits(x, source, rows, lanes, sigma, floor, c, a, bound):
            a, i = a + 1, i + 1
        _average(x, source, rows, lanes, sigma, floor, c, a, base, value, row)
        i += loose[i] == a  # that one stays
        c = a
    finish(value, kept, lanes)
