"""Step functions of all states of a box, side by side: the arithmetic of the way back.

A step function has a value from each of its points on, and is zero below the first. The states of
a point lie side by side, padded to a multiple of eight with states whose function is zero, as in
the blocks of values (:mod:`.blocks`). In a heap a block is ``[rows (n * lanes), x (n)]``.

Points are ranks, whole numbers. Half a rank above a point is a point of its own where copies tie.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .blocks import TOP, aligned, allocate, count, grid_of, padded, rows_of
from .copying import copy
from .jit import lane_helper, lane_kernel
from .lanes import (
    LANES,
    above,
    either,
    exp,
    expm1,
    keep,
    larger,
    load,
    log1p,
    mul,
    pointer,
    some,
    splat,
    store,
    sub,
)

_ZERO = np.int64(0)


class Steps(NamedTuple):
    """``rows[j * lanes + y]`` from x[j] on in state y, for j < n; zero below x[0]."""

    x: np.ndarray
    rows: np.ndarray
    n: int
    lanes: int


class MergedPoints(NamedTuple):
    """Points of two lists, and how many points of each list are not above."""

    points: np.ndarray
    mine: np.ndarray
    theirs: np.ndarray


@lane_helper()
def below(x, n, v):
    """Number of entries of rising x[:n] that are smaller than v."""
    lo, hi = np.int64(0), n
    while lo < hi:
        mid = (lo + hi) >> 1
        if x[mid] < v:
            lo = mid + 1
        else:
            hi = mid
    return lo


@lane_helper()
def at_rank(steps, rank, y):
    """The value of state y at a rank, not yet half a rank above."""
    i = below(steps.x, steps.n, rank + 0.25) - 1
    return steps.rows[i * steps.lanes + y] if i >= 0 else 0.0


@lane_helper()
def unite(x, n, y, m, out):
    """The union of two rising lists; how many points there are."""
    i, j, size = np.int64(0), np.int64(0), np.int64(0)
    while i < n or j < m:
        v = x[i] if j >= m or (i < n and x[i] <= y[j]) else y[j]
        i += i < n and x[i] == v
        j += j < m and y[j] == v
        out.points[size], out.mine[size], out.theirs[size] = v, i, j
        size += 1
    return size


@lane_helper()
def select(union, size, wanted):
    """Keep the points that are wanted; how many there are."""
    kept = np.int64(0)
    for j in range(size):
        if wanted[j] != 0:
            union.points[kept] = union.points[j]
            union.mine[kept], union.theirs[kept] = union.mine[j], union.theirs[j]
            kept += 1
    return kept


@lane_helper()
def want(points, n, rank, wanted):
    """Mark the points that tell the value at a rank, and half a rank above."""
    i = below(points, n, rank + 0.25)
    if i > 0:
        wanted[i - 1] = 1
    if i < n and points[i] < rank + 0.75:
        wanted[i] = 1


@lane_helper()
def rising(block, lanes, out):
    """The breakpoints of a value, the lowest first; how many there are."""
    m, grid = count(block, 0), grid_of(block, lanes)
    for i in range(m):
        out[i] = grid[m - i]
    return m


@lane_helper()
def _factors(block, lanes, copies, spare):
    """P(the largest of ``copies`` of a value is below breakpoint j - 1), by j and state."""
    tails = rows_of(block, lanes)
    size = (count(block, 0) + 1) * lanes
    if copies == 1.0:
        for i in range(0, size, LANES):
            store(spare, i, larger(sub(splat(1.0), load(tails, i)), splat(0.0)))
    else:
        for i in range(size):
            spare[i] = exp(copies * log1p(-tails[i])) if tails[i] < 1.0 else 0.0


@lane_helper()
def times_value(steps, union, size, block, copies, out):
    """Multiply by the distribution function of the largest of ``copies`` of a value."""
    lanes, m = steps.lanes, count(block, 0)
    factors = aligned((m + 1) * lanes)
    _factors(block, lanes, copies, pointer(factors, 0))
    other = pointer(factors, 0)
    for j in range(size):
        i, over = union.mine[j] - 1, m - union.theirs[j]
        for u in range(0, lanes, LANES):
            row = splat(0.0)
            if i >= 0:
                row = larger(load(steps.rows, i * lanes + u), splat(0.0))
                row = mul(row, load(other, over * lanes + u))
            store(out, j * lanes + u, row)
    keep(factors)


@lane_helper()
def _copies(above_, least, m):
    """sum_{j < m} F(x^-)^j F(x)^(m - 1 - j), from the tails P(> x) <= P(>= x)."""
    if above_ >= 1.0:
        return 1.0 if m == 1.0 else 0.0
    power = exp((m - 1.0) * log1p(-above_))
    share = (least - above_) / (1.0 - above_)
    d = log1p(-share) if share < 1.0 else -np.inf
    if d == 0.0:
        return m * power
    return power * (expm1(m * d) / expm1(d))


@lane_helper()
def copies_room(n, block):
    """Room for the points of step functions and of several copies of a value."""
    return n + 2 * count(block, 0)


@lane_helper()
def times_copies(steps, block, k, copies, union, out):
    """Multiply by the chance that the other copies of a value stay below; how many points.

    At a breakpoint of the value the copies before must be strictly below; just after it (half a
    rank) all of them may be there.
    """
    m, lanes = count(block, 0), steps.lanes
    grid, tails = grid_of(block, lanes), rows_of(block, lanes)
    own = np.empty(2 * m)
    for i in range(m):
        own[2 * i], own[2 * i + 1] = grid[m - i], grid[m - i] + 0.5
    size = unite(steps.x, steps.n, pointer(own, 0), 2 * m, union)
    for j in range(size):
        i, passed = union.mine[j] - 1, union.theirs[j]
        over = m - ((passed + 1) >> 1)
        least = over + (passed & 1)  # at a breakpoint itself
        for y in range(lanes):
            g = steps.rows[i * lanes + y] if i >= 0 and y < k else 0.0
            if g > 0.0:
                g *= _copies(
                    min(tails[over * lanes + y], 1.0), min(tails[least * lanes + y], 1.0), copies
                )
            out[j * lanes + y] = max(g, 0.0)
    keep(own)
    return size


@lane_helper()
def _mark_steps(steps, least, wanted):
    """Mark the points at which some state steps by more than ``least``; how many there are."""
    kept = np.int64(0)
    for j in range(steps.n):
        found = False
        for u in range(0, steps.lanes, LANES):
            now, last = load(steps.rows, j * steps.lanes + u), splat(0.0)
            if j > 0:
                last = load(steps.rows, (j - 1) * steps.lanes + u)
            limit = splat(least)
            found |= some(either(above(sub(now, last), limit), above(sub(last, now), limit)))
        wanted[j] = found
        kept += found
    return kept


@lane_kernel()
def claim(heap, state, size):
    """Position of a block of at least ``size`` floats; the heap is replaced when it must grow."""
    if state[TOP] + 2 * size > heap.size:
        bigger = aligned(2 * (heap.size + size))
        copy(heap, _ZERO, heap.size, bigger, _ZERO)
        heap = bigger
    return heap, allocate(pointer(heap, 0), pointer(state, 0), size)


@lane_helper()
def put(steps, least, heap, state, wanted):
    """Write step functions to the heap, without steps that do not matter: heap, place, points."""
    n, lanes = _mark_steps(steps, least, wanted), steps.lanes
    if n == 0:  # never reached
        return heap, _ZERO, _ZERO
    heap, at = claim(heap, state, n * (lanes + 1))
    kept = np.int64(0)
    for j in range(steps.n):
        if wanted[j] != 0:
            for u in range(0, lanes, LANES):
                store(pointer(heap, at), kept * lanes + u, load(steps.rows, j * lanes + u))
            heap[at + n * lanes + kept] = steps.x[j]
            kept += 1
    return heap, at, n


@lane_helper()
def taken(heap, at, n, lanes):
    """The step functions in a block of the heap."""
    return Steps(pointer(heap, at + n * lanes), pointer(heap, at), n, lanes)


@lane_kernel()
def pack(heap, state, x, rows):
    """Write step functions given as points and rows of states: the heap and the place."""
    n, k = rows.shape
    lanes = padded(k)
    heap, at = claim(heap, state, max(n * (lanes + 1), 1))
    for j in range(n):
        for y in range(lanes):
            heap[at + j * lanes + y] = rows[j, y] if y < k else 0.0
        heap[at + n * lanes + j] = x[j]
    return heap, at


@lane_kernel()
def unpack(heap, at, n, k):
    """Points and rows of states of a block."""
    lanes = padded(k)
    x, rows = np.empty(n), np.empty((n, k))
    for j in range(n):
        x[j] = heap[at + n * lanes + j]
        for y in range(k):
            rows[j, y] = heap[at + j * lanes + y]
    return x, rows


@lane_kernel()
def root_copies(x, rows, heap, at, copies):
    """Step functions (n, 1) times the chance that other copies of a root's value stay below."""
    lanes, block = padded(np.int64(1)), pointer(heap, at)
    n = x.size
    mine = np.zeros(n * lanes)
    for j in range(n):
        mine[j * lanes] = rows[j, 0]
    room = copies_room(n, block)
    points, numbers = np.empty(room), np.empty(2 * room, np.int64)
    union = MergedPoints(pointer(points, 0), pointer(numbers, 0), pointer(numbers, room))
    out = np.empty(room * lanes)
    steps = Steps(pointer(x, 0), pointer(mine, 0), n, lanes)
    size = times_copies(steps, block, np.int64(1), copies, union, pointer(out, 0))
    keep(mine)
    keep(numbers)
    found = np.empty((size, 1))
    for j in range(size):
        found[j, 0] = out[j * lanes]
    return points[:size].copy(), found
