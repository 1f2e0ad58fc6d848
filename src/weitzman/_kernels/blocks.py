"""Where values lie, the larger of several, and dropping breakpoints that do not matter.

Values live in one growing ``heap`` of floats, each in a block that :func:`count`, :func:`grid_of`,
:func:`rows_of` and :func:`errors_of` read. The states of a breakpoint lie side by side, padded to a
multiple of eight with states of probability zero, so that every step is a short loop over
breakpoints whose body works on eight states at once (see :mod:`.lanes`):

``[m, room, ...(8), err (K), top (K), rows ((room + 1) * K), b (room + 2), ...(8)]``

where K is k padded and ``top[y]`` the highest breakpoint that state y can reach. To spare the loops
their special cases, ``b`` starts with plus infinity, whose row is zero, and ends with minus
infinity.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .jit import lane_helper, lane_kernel
from .lanes import (
    LANES,
    above,
    at_least,
    bit_length,
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
)  # fmt: skip

_SIZES = 256  # size classes of the allocator: four to each power of two, so that little is lost
_SMALLEST = 64
TOP = _SIZES  # slot of the allocator state that holds the first never-used position
_HEAD = 8  # floats at the start of a block: how many breakpoints, and room for how many
_FIRST, _SECOND = np.int64(0), np.int64(LANES)  # groups of eight states


class Operand(NamedTuple):
    """The largest of so many independent copies of the value in a block."""

    block: np.ndarray
    copies: float


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


@lane_helper()
def padded(k):
    """Number of states with padding: the next multiple of eight."""
    return (k + LANES - 1) & -LANES


@lane_helper()
def block_size(room, lanes):
    return _HEAD + (room + 3) * lanes + room + 2 + LANES


@lane_helper()
def errors_of(x):
    """The errors of a block, by state."""
    return pointer(x, _HEAD)


@lane_helper()
def tops_of(x, lanes):
    """The highest breakpoints that the states of a block can reach."""
    return pointer(x, _HEAD + lanes)


@lane_helper()
def rows_of(x, lanes):
    """The rows of a block: first that of plus infinity, then the breakpoints'."""
    return pointer(x, _HEAD + 2 * lanes)


@lane_helper()
def grid_of(x, lanes):
    """The breakpoints of a block: first plus infinity."""
    return pointer(x, _HEAD + (np.int64(x[1]) + 3) * lanes)


@lane_helper()
def count(block):
    """Number of breakpoints of a value."""
    return np.int64(block[0])


@lane_kernel()
def extent(heap: FloatArray, at: int, k: int) -> int:
    """Number of floats in the block at ``at`` of a value conditioned on k states."""
    return block_size(np.int64(heap[at + 1]), padded(k))


class Distributions(NamedTuple):
    """Of some values of one state: how many breakpoints, these in rising order, their tails.

    Also by value its error, which bounds how far thinning has raised E max(x, value).
    """

    size: np.ndarray
    points: np.ndarray
    tails: np.ndarray
    error: np.ndarray


@lane_kernel()
def distributions(heap: FloatArray, at: IntArray) -> Distributions:
    """The distributions of the values of one state at some places."""
    size, error, n = np.empty(at.size, np.int64), np.empty(at.size), np.int64(0)
    for i in range(at.size):
        size[i] = count(pointer(heap, at[i]))
        n += size[i]
    grid, tails, n = np.empty(n), np.empty(n), np.int64(0)
    for i in range(at.size):
        block = pointer(heap, at[i])
        b, rows = grid_of(block, LANES), rows_of(block, LANES)
        for j in range(size[i], 0, -1):
            grid[n], tails[n] = b[j], rows[j * LANES]
            n += 1
        error[i] = errors_of(block)[0]
    return Distributions(size, grid, tails, error)


@lane_kernel()
def aligned(size: int) -> FloatArray:
    """Uninitialised floats that start on a cache line, so that a row of eight lies in one."""
    raw = np.empty(size + LANES)
    skip = -(raw.ctypes.data >> 3) & (LANES - 1)
    return raw[skip : skip + size]


def new_heap(size: int) -> tuple[FloatArray, IntArray]:
    """An empty heap and the state of its allocator (heads of the free lists, then the top)."""
    state = np.full(_SIZES + 1, -1, np.int64)
    state[TOP] = 0
    return aligned(size), state


@lane_helper()
def _size_class(size):
    """The class of blocks with room for ``size`` floats, and how many its blocks have."""
    most = max(size, _SMALLEST) - 1
    bits = bit_length(most)
    quarter = (most >> (bits - 3)) & 3
    return 4 * bits + quarter, (5 + quarter) << (bits - 3)


@lane_helper()
def allocate(heap, state, size):
    """Position of a block of at least ``size`` floats."""
    c, room = _size_class(size)
    at = state[c]
    if at >= 0:  # a free block holds the position of the next free one
        state[c] = np.int64(heap[at])
    else:
        at = state[TOP]
        state[TOP] = at + room
    return at


@lane_helper()
def release(x, state, at, size):
    """Put the block x, which lies at ``at``, on the list of its size."""
    c, _ = _size_class(size)
    x[0] = state[c]
    state[c] = at


@lane_helper()
def begin(x, room, lanes):
    """Write what every block has: the room, and the row of plus infinity."""
    x[0], x[1] = 0.0, room
    for u in range(0, lanes, LANES):
        store(rows_of(x, lanes), u, splat(0.0))
    grid_of(x, lanes)[0] = np.inf


@lane_helper()
def write_nothing(x, lanes):
    """A block for what is minus infinity for sure."""
    nothing = np.int64(0)
    begin(x, nothing, lanes)
    for u in range(0, lanes, LANES):
        store(errors_of(x), u, splat(0.0))
        store(tops_of(x, lanes), u, splat(-np.inf))
    grid_of(x, lanes)[1] = -np.inf


# -- the larger of several -----------------------------------------------------------------------


@lane_helper()
def power(tail, copies):
    """P(max of ``copies`` independent values >= x) from P(one >= x)."""
    if copies == 1.0:
        return tail
    # not 1 - (1 - tail)^copies, which would lose the digits of a small tail
    return -expm1(copies * log1p(-min(tail, 1.0)))


@lane_helper()
def powers_of(x, lanes, spare):
    """Rows of the tails of an operand, in ``spare`` where they are new."""
    rows = rows_of(x.block, lanes)
    if x.copies == 1.0:
        return rows
    for i in range((count(x.block) + 1) * lanes):
        spare[i] = power(rows[i], x.copies)
    return spare


@lane_helper()
def _tail_from(x, lanes, y, v):
    """P(operand >= v) in state y."""
    b = grid_of(x.block, lanes)
    i, span = 0, count(x.block)  # the lowest breakpoint not below v: bisection without branches
    while span > 0:
        half = (span + 1) >> 1
        i += half * (b[i + half] >= v)
        span -= half
    return power(rows_of(x.block, lanes)[i * lanes + y], x.copies)


@lane_helper()
def power_error(x, k, y):
    """Error of an operand, in state y.

    Replacing the copies one at a time by their thinned versions: an error in one matters only while
    those before it stay below the top of its support. That sums to P(max >= top) / P(one >= top).
    """
    err, lanes = errors_of(x.block)[y], padded(k)
    if x.copies != 1.0 and err > 0.0:
        t = _tail_from(Operand(x.block, 1.0), lanes, y, tops_of(x.block, lanes)[y])
        err *= power(t, x.copies) / t if t > 0.0 else x.copies
    return err


@lane_helper()
def join(a, b, k, low, left, right, spare, draft):
    """Write max(A, B) down to ``low`` into a draft with room for both; returns how many points.

    ``left[j]`` and ``right[j]`` become the rows of A and B for breakpoint j.
    """
    lanes, n, i, j = draft.lanes, 0, 1, 1
    p, q = grid_of(a.block, lanes), grid_of(b.block, lanes)
    x = max(p[1], q[1])
    while x >= low and x > -np.inf:
        i += p[i] == x
        j += q[j] == x
        draft.x[n], left[n], right[n] = x, i - 1, j - 1
        n += 1
        x = max(p[i], q[j])
    one = powers_of(a, lanes, spare)
    other = powers_of(b, lanes, pointer(spare, (count(a.block) + 1) * lanes))
    for j in range(n):
        for u in range(0, lanes, LANES):
            # P(A >= x) + P(B >= x) P(A < x), a sum of positive terms
            s, t = load(one, left[j] * lanes + u), load(other, right[j] * lanes + u)
            store(draft.rows, j * lanes + u, madd(t, sub(splat(1.0), s), s))
    top_a, top_b = tops_of(a.block, lanes), tops_of(b.block, lanes)
    for u in range(0, lanes, LANES):
        store(draft.errors, u, splat(0.0))
        store(draft.tops, u, larger(load(top_a, u), load(top_b, u)))
    for y in range(k):
        # an error in the one with the lower top matters only while the other stays below that
        ea, eb = power_error(a, k, y), power_error(b, k, y)
        if eb > 0.0 and top_a[y] >= top_b[y]:
            eb *= 1.0 - _tail_from(a, lanes, y, top_b[y])
        if ea > 0.0 and top_a[y] < top_b[y]:
            ea *= 1.0 - _tail_from(b, lanes, y, top_a[y])
        draft.errors[y] = ea + eb
    return n


# -- dropping breakpoints ------------------------------------------------------------------------


@lane_helper()
def _capped_tail(draft, u, j):
    """P(min(W_s, sigma_s) >= x[j]) for the eight states s from u on."""
    t = load(draft.rows, draft.source[j] * draft.lanes + u)
    return where(at_least(load(draft.sigma, u), splat_at(draft.x, j)), t, splat(0.0))


@lane_helper()
def _moves(draft, u, mass, right, at, bound):
    """Would it raise E max(x, kappa_s) by more than a quarter of ``bound`` to drop breakpoints?

    Those after the one at ``right`` down to ``at``, with ``mass`` on them, for one of the eight
    states from u on. The bound is a quarter of the mass, times the distance to the next one that
    stays; what lies at or below the floor does not count.
    """
    floor = load(draft.floor, u)
    way = sub(splat_at(draft.x, right), larger(splat_at(draft.x, at + 1), floor))
    return some(both(above(splat_at(draft.x, at), floor), above(mul(mass, way), splat(bound))))


@lane_helper()
def _may_go(draft, right, at, bound, first):
    """May all breakpoints after the one at ``right`` down to ``at`` go, for states from ``first``?

    If those down to the one before ``at`` may.
    """
    for u in range(first, draft.lanes, LANES):
        mass = sub(_capped_tail(draft, u, at), _capped_tail(draft, u, right))
        if _moves(draft, u, mass, right, at, bound):
            return False
    return True


@lane_helper()
def _copy_kept(draft, j, bound, grid, row):
    """Write breakpoints from j on, until one may be dropped alone, between its neighbors.

    The first eight states rule that out for most of them. Returns where that is. The highest and
    the lowest breakpoint stay, and so does that at j.
    """
    lanes, start = draft.lanes, j
    tail = _capped_tail(draft, _FIRST, j)
    while True:
        grid[j - start] = draft.x[j]
        store(row, (j - start) * lanes, tail)
        for u in range(_SECOND, lanes, LANES):
            store(row, (j - start) * lanes + u, _capped_tail(draft, u, j))
        j += 1
        if j >= draft.m:
            return j
        last, tail = tail, _capped_tail(draft, _FIRST, j)
        stays = _moves(draft, _FIRST, sub(tail, last), j - 1, j, bound)
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
        bottom, last = load(draft.floor, u), _capped_tail(draft, u, c)
        area, first = zero, last
        for j in range(c, a):
            t = _capped_tail(draft, u, j)
            right = splat_at(x, j)
            area = madd(t, larger(sub(right, larger(splat_at(x, j + 1), bottom)), zero), area)
            first = where(above(right, bottom), t, first)
        span = sub(splat_at(x, c), larger(splat_at(x, a), bottom))
        mean = where(above(span, zero), div(area, span), last)
        mean = smaller(larger(mean, last), first)  # rounding must not leave the range
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
            # each must be small alone and all together, so that no chain of small moves adds up
            while (
                j < m - 1
                and _may_go(draft, j - 1, j, bound, _FIRST)
                and _may_go(draft, c, j, bound, _FIRST)
            ):
                j += 1
            _average(draft, c, j, value, pointer(rows, (kept - 1) * lanes))
    value[0] = kept
    grid[kept] = -np.inf
