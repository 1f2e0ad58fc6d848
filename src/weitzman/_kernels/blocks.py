"""Where values lie: blocks in a heap, and how to read them.

Values live in one growing ``heap`` of floats, each in a block that :func:`count`,
:func:`breakpoint`, :func:`tail` and :func:`error` read. The states of a breakpoint lie side by
side, padded to a multiple of eight with states of probability zero, so that every step is a short
loop over breakpoints whose body works on eight states at once (see :mod:`.lanes`):

``[m, room, ...(8), err (K), top (K), rows ((room + 1) * K), b (room + 2), ...(8)]``

where K is k padded and ``top[y]`` the highest breakpoint that state y can reach. To spare the loops
their special cases, ``b`` starts with plus infinity, whose row is zero, and ends with minus
infinity.
"""

from __future__ import annotations

import numpy as np

from .jit import lane_helper, lane_kernel
from .lanes import LANES, bit_length, pointer, splat, store

_SIZES = 64  # size classes of the allocator: powers of two
TOP = _SIZES  # slot of the allocator state that holds the first never-used position
_HEAD = 8  # floats at the start of a block: how many breakpoints, and room for how many


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


@lane_kernel()
def extent(heap, at, k):
    """Number of floats in the block at ``at`` of a value conditioned on k states."""
    return block_size(np.int64(heap[at + 1]), padded(k))


@lane_helper()
def count(heap, at):
    """Number of breakpoints of the value at ``at``."""
    return np.int64(heap[at])


@lane_helper()
def breakpoint(heap, at, k, j):
    """The j-th breakpoint from the top, j = 0, ..., count - 1."""
    return grid_of(pointer(heap, at), padded(k))[j + 1]


@lane_helper()
def tail(heap, at, k, y, j):
    """P(value >= breakpoint j) in state y."""
    return rows_of(pointer(heap, at), padded(k))[(j + 1) * padded(k) + y]


@lane_kernel()
def error(heap, at, k, y):
    """Bound on how far thinning has raised E max(x, value) in state y."""
    return errors_of(pointer(heap, at))[y]


@lane_kernel()
def distribution(heap, at, k, y):
    """Breakpoints in rising order, and the tails of state y."""
    m = count(heap, at)
    grid, tails = np.empty(m), np.empty(m)
    for j in range(m):
        grid[m - 1 - j] = breakpoint(heap, at, k, j)
        tails[m - 1 - j] = tail(heap, at, k, y, j)
    return grid, tails


@lane_helper()
def tail_from(heap, at, k, y, x):
    """P(value >= x) in state y."""
    lanes = padded(k)
    b = grid_of(pointer(heap, at), lanes)
    i, span = 0, count(heap, at)  # the lowest breakpoint not below x, by bisection without branches
    while span > 0:
        half = (span + 1) >> 1
        i += half * (b[i + half] >= x)
        span -= half
    return rows_of(pointer(heap, at), lanes)[i * lanes + y]


@lane_kernel()
def aligned(size):
    """Uninitialised floats that start on a cache line, so that a row of eight lies in one."""
    raw = np.empty(size + LANES)
    skip = -(raw.ctypes.data >> 3) & (LANES - 1)
    return raw[skip : skip + size]


def new_heap(size: int) -> tuple[np.ndarray, np.ndarray]:
    """An empty heap and the state of its allocator (heads of the free lists, then the top)."""
    state = np.full(_SIZES + 1, -1, np.int64)
    state[TOP] = 0
    return aligned(size), state


@lane_helper()
def _size_class(size):
    return bit_length(size - 1)


@lane_helper()
def allocate(heap, state, size):
    """Position of a block of at least ``size`` floats."""
    c = _size_class(size)
    at = state[c]
    if at >= 0:
        state[c] = np.int64(heap[at])
    else:
        at = state[TOP]
        state[TOP] = at + (1 << c)
    return at


@lane_helper()
def release(x, state, at, size):
    """Put the block x, which lies at ``at``, on the list of its size."""
    c = _size_class(size)
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
def finish(x, m, lanes):
    """Close a block with m breakpoints."""
    x[0] = m
    grid_of(x, lanes)[m + 1] = -np.inf


@lane_helper()
def write_nothing(x, lanes):
    """A block for what is minus infinity for sure."""
    nothing = np.int64(0)
    begin(x, nothing, lanes)
    for u in range(0, lanes, LANES):
        store(errors_of(x), u, splat(0.0))
        store(tops_of(x, lanes), u, splat(-np.inf))
    finish(x, nothing, lanes)
