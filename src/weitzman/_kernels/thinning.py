"""Dropping breakpoints that do not matter, with a bound on what that changes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .blocks import begin, errors_of, finish, grid_of, rows_of, tops_of
from .jit import helper
from .lanes import (
    LANES,
    above,
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


@helper()
def _eight(draft, u):
    return Eight(u, load(draft.sigma, u), load(draft.floor, u))


@helper()
def _capped_tail(draft, states, j):
    """P(min(W_s, sigma_s) >= x[j]) for eight states s."""
    t = load(draft.rows, draft.source[j] * draft.lanes + states.first)
    return where(at_least(states.sigma, splat_at(draft.x, j)), t, splat(0.0))


@helper()
def _matters(draft, states, right, at, bound):
    """Would it raise E max(x, kappa_s) by more than a quarter of ``bound`` to drop breakpoints?

    Those after the one at ``right`` down to ``at``, for one of eight states. The bound is a quarter
    of the mass between, times the distance to the next one that stays; what lies at or below the
    floor does not count.
    """
    mass = sub(_capped_tail(draft, states, at), _capped_tail(draft, states, right))
    way = sub(splat_at(draft.x, right), larger(splat_at(draft.x, at + 1), states.floor))
    moved = above(mul(mass, way), splat(bound))
    return some(both(above(splat_at(draft.x, at), states.floor), moved))


@helper()
def _candidates(draft, bound, out):
    """The breakpoints that may be dropped alone, between their neighbors, and then m.

    The first eight states rule out most of them, so that the others have little to look at. The
    highest and the lowest breakpoint stay.
    """
    found = max(draft.m - 2, 0)
    for i in range(found):
        out[i] = i + 1
    for u in range(0, draft.lanes, LANES):
        states, left, found = _eight(draft, u), found, 0
        for i in range(left):
            j = out[i]
            out[found] = j
            found += not _matters(draft, states, j - 1, j, bound)
    out[found] = draft.m


@helper()
def _fits(draft, c, a, bound):
    """May all breakpoints strictly between c and a + 1 be dropped, if those down to a - 1 may?"""
    for u in range(0, draft.lanes, LANES):
        if _matters(draft, _eight(draft, u), c, a, bound):
            return False
    return True


@helper()
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


@helper()
def thin(draft, eps, loose, value):
    """Write the value to a block, without the breakpoints that do not matter.

    From the top down, as many as possible are dropped after each one that is kept.
    """
    m, lanes = draft.m, draft.lanes
    begin(value, m, lanes)
    for u in range(0, lanes, LANES):
        store(errors_of(value), u, load(draft.errors, u))
        store(tops_of(value, lanes), u, load(draft.tops, u))
    bound = 4.0 * eps
    _candidates(draft, bound, loose)
    grid, row = pointer(grid_of(value, lanes), 1), rows_of(value, lanes)
    c, kept, i = np.int64(0), np.int64(0), 0
    while c < m:
        for j in range(c, loose[i]):
            grid[kept] = draft.x[j]
            kept += 1
            row = pointer(row, lanes)
            for u in range(0, lanes, LANES):
                store(row, u, _capped_tail(draft, _eight(draft, u), j))
        c, a = loose[i] - 1, loose[i] + 1
        if a > m:
            break
        i += 1
        while loose[i] == a and _fits(draft, c, a, bound):
            a, i = a + 1, i + 1
        _average(draft, c, a, value, row)
        i += loose[i] == a  # that one stays
        c = a
    finish(value, kept, lanes)
