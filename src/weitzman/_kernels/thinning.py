"""Dropping breakpoints that do not matter, with a bound on what that changes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .blocks import begin, errors_of, finish, grid_of, rows_of, tops_of
from .jit import lane_helper
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

_FIRST, _SECOND = np.int64(0), np.int64(LANES)  # groups of eight states


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
