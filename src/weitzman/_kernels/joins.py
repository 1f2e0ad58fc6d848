"""The larger of several independent values, and dropping breakpoints that do not matter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .blocks import (
    begin,
    count,
    error,
    errors_of,
    finish,
    grid_of,
    padded,
    rows_of,
    tail_from,
    tops_of,
)
from .jit import lane_helper
from .lanes import (
    LANES,
    above,
    at_least,
    both,
    div,
    expm1,
    larger,
    load,
    log1p,
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

_FIRST, _SECOND = np.int64(0), np.int64(LANES)  # groups of eight states


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


class Draft(NamedTuple):
    """A value min(W, sigma) before it is written to a block."""

    x: np.ndarray  # falling breakpoints
    source: np.ndarray  # the row of W for each
    m: int
    rows: np.ndarray
    lanes: int
    sigma: np.ndarray
    floor: np.ndarray  # where nobody looks, by state
    errors: np.ndarray
    tops: np.ndarray


class Eight(NamedTuple):
    """Eight states: the number of the first, their indices and their floors."""

    first: int
    sigma: np.ndarray
    floor: np.ndarray


@lane_helper()
def _eight(draft, u):
    return Eight(u, load(draft.sigma, u), load(draft.floor, u))


@lane_helper()
def _capped_tail(draft, states, j):
    """P(min(W_s, sigma_s) >= x[j]) for eight states s."""
    t = load(draft.rows, draft.source[j] * draft.lanes + states.first)
    return where(at_least(states.sigma, splat_at(draft.x, j)), t, splat(0.0))


@lane_helper()
def _moves(draft, states, mass, right, at, bound):
    """Would it raise E max(x, kappa_s) by more than a quarter of ``bound`` to drop breakpoints?

    Those after the one at ``right`` down to ``at``, with ``mass`` on them, for one of eight states.
    The bound is a quarter of the mass, times the distance to the next one that stays; what lies at
    or below the floor does not count.
    """
    way = sub(splat_at(draft.x, right), larger(splat_at(draft.x, at + 1), states.floor))
    moved = above(mul(mass, way), splat(bound))
    return some(both(above(splat_at(draft.x, at), states.floor), moved))


@lane_helper()
def _may_go(draft, right, at, bound, first):
    """May all breakpoints after the one at ``right`` down to ``at`` go, for states from ``first``?

    If those down to the one before ``at`` may.
    """
    for u in range(first, draft.lanes, LANES):
        states = _eight(draft, u)
        mass = sub(_capped_tail(draft, states, at), _capped_tail(draft, states, right))
        if _moves(draft, states, mass, right, at, bound):
            return False
    return True


@lane_helper()
def _also_goes(draft, c, j, bound):
    """May the breakpoint j go as well, alone and together with all those after c?"""
    return _may_go(draft, j - 1, j, bound, _FIRST) and _may_go(draft, c, j, bound, _FIRST)


@lane_helper()
def _copy_row(draft, j, tail, row):
    """Write the capped tails at a breakpoint; those of the first eight states are known."""
    store(row, 0, tail)
    for u in range(_SECOND, draft.lanes, LANES):
        store(row, u, _capped_tail(draft, _eight(draft, u), j))


@lane_helper()
def _copy_kept(draft, j, bound, grid, row):
    """Write breakpoints from j on, until one may be dropped alone, between its neighbors.

    The first eight states rule that out for most of them. Returns where that is. The highest and
    the lowest breakpoint stay, and so does that at j.
    """
    states, lanes, start = _eight(draft, _FIRST), draft.lanes, j
    tail = _capped_tail(draft, states, j)
    while True:
        grid[j - start] = draft.x[j]
        _copy_row(draft, j, tail, pointer(row, (j - start) * lanes))
        j += 1
        if j >= draft.m:
            return j
        last, tail = tail, _capped_tail(draft, states, j)
        stays = _moves(draft, states, sub(tail, last), j - 1, j, bound)
        if not stays and j < draft.m - 1 and _may_go(draft, j - 1, j, bound, _SECOND):
            return j


@lane_helper()
def _average(draft, c, a, value, row):
    """Give the breakpoint c the mass of the dropped ones between it and a.

    Its new tail is the average over the interval (a, c], or that part of it above the floor. The
    errors of ``value`` become at least those from before plus what this adds.
    """
    x, lanes = draft.x, draft.lanes
    zero, errors, tops = splat(0.0), errors_of(value), tops_of(value, lanes)
    for u in range(0, lanes, LANES):
        states = _eight(draft, u)
        bottom, last = states.floor, _capped_tail(draft, states, c)
        area, first = zero, last
        for j in range(c, a):
            t = _capped_tail(draft, states, j)
            right = splat_at(x, j)
            area = madd(t, larger(sub(right, larger(splat_at(x, j + 1), bottom)), zero), area)
            first = where(above(right, bottom), t, first)
        span = sub(splat_at(x, c), larger(splat_at(x, a), bottom))
        mean = where(above(span, zero), div(area, span), last)
        mean = smaller(larger(mean, last), first)
        store(row, u, mean)
        moved = madd(mul(sub(first, last), span), splat(0.25), load(draft.errors, u))
        store(errors, u, larger(load(errors, u), moved))
        reached = where(above(mean, zero), splat_at(x, c), splat(-np.inf))
        store(tops, u, larger(load(tops, u), reached))


@lane_helper()
def thin(draft, eps, value):
    """Write the value to a block, without the breakpoints that do not matter.

    From the top down, as many as possible are dropped after each one that is kept.
    """
    m, lanes = draft.m, draft.lanes
    begin(value, m, lanes)
    for u in range(0, lanes, LANES):
        store(errors_of(value), u, load(draft.errors, u))
        store(tops_of(value, lanes), u, load(draft.tops, u))
    bound, kept, j = 4.0 * eps, np.int64(0), np.int64(0)
    grid, rows = pointer(grid_of(value, lanes), 1), pointer(rows_of(value, lanes), lanes)
    while j < m:
        a = _copy_kept(draft, j, bound, pointer(grid, kept), pointer(rows, kept * lanes))
        kept, c, j = kept + a - j, a - 1, a
        if j < m:
            j += 1
            while j < m - 1 and _also_goes(draft, c, j, bound):
                j += 1
            _average(draft, c, j, value, pointer(rows, (kept - 1) * lanes))
    finish(value, kept, lanes)
