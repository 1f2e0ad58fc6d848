r"""Arithmetic of capped values: the heart of the package.

A *value* is a random variable :math:`\kappa_{|y}` for every state :math:`y` of a conditioning box.
It is held as breakpoints ``b[0] > b[1] > ... > b[m-1]``, from the top down, and tails
``t[j, y] = P(kappa_y >= b[j])``. Mass missing from ``t[m-1, y]`` lies at minus infinity (no reward,
or below a floor that nobody looks under). Tails rather than distribution functions, so that rare
prizes keep all their digits.

Two operations build every value from others (a third, ``GIVEN``, takes one that is known):

* ``box``: :math:`W_s = \sum_y P(s, y)\,\max(r(y), X_y^{(m)})`, the index as the root of
  :math:`E(W_s - \sigma)^+ = c(s)`, and the capped value :math:`\min(W_s, \sigma)`;
* ``join``: the larger of two independent values, each taken to a power (identical copies).

Breakpoints that do not matter are dropped by linear interpolation of
:math:`x \mapsto E\max(x, \kappa)` (a mean-preserving split of the dropped atom over its
neighbours), which can only raise that function, by at most ``eps`` anywhere. So every value
carries, per state, a bound ``err[y]`` with
:math:`0 \le E\max(x, \tilde\kappa_y) - E\max(x, \kappa_y) \le err[y]` for all x above the outside
option. The bounds add along the recursion, weighted by the probability that they matter.

Only what a user of the value looks at must be right: a box with reward r(y) looks at X_y above
r(y). So each state has a *floor*, and mass at or below it is free to move.

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

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from .lanes import (
    LANES,
    above,
    add,
    at_least,
    bit_length,
    both,
    div,
    either,
    keep,
    larger,
    leading,
    load,
    madd,
    mul,
    pointer,
    prefetch,
    smaller,
    some,
    splat,
    splat_at,
    store,
    sub,
    where,
)  # fmt: skip

BOX, JOIN, GIVEN = 0, 1, 2
# columns of the integer table of operations
KIND, LEFT, RIGHT, LAW, REWARD, COST, STATES, USER = range(8)
MIXED_USERS, OUTSIDE_USER = -1, -2  # in USER, besides the row of rewards of the only user
_SIZES = 64  # size classes of the allocator: powers of two
TOP = _SIZES  # slot of the allocator state that holds the first never-used position
_HEAD = 8  # floats at the start of a block: how many breakpoints, and room for how many
_GROUP = 4  # breakpoints that a matrix product takes at a time
_AHEAD = 256  # floats of the next law to ask for in advance

_JIT = {"nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}
_ENTRY = {**_JIT, "cache": True}  # called from Python


class Columns(NamedTuple):
    """All that the operations read: what is asked for, and where it lies."""

    ops: np.ndarray
    powers: np.ndarray
    laws: np.ndarray
    law_at: np.ndarray
    reward: np.ndarray
    reward_at: np.ndarray
    levels: np.ndarray
    level_at: np.ndarray
    costs: np.ndarray
    cost_at: np.ndarray
    cost_shape: np.ndarray
    known: np.ndarray  # values that are known: falling breakpoints, then a row of tails for each
    known_at: np.ndarray  # by operation: where its known value starts
    known_size: np.ndarray  # by operation: how many breakpoints that has
    low: float
    outside: float
    eps: float
    given: bool


# Blocks


@njit(**_JIT)
def padded(k):
    """Number of states with padding: the next multiple of eight."""
    return (k + LANES - 1) & -LANES


@njit(**_JIT)
def _block_size(room, lanes):
    return _HEAD + (room + 3) * lanes + room + 2 + LANES


@njit(**_JIT)
def _errors(x):
    """The errors of a block, by state."""
    return pointer(x, _HEAD)


@njit(**_JIT)
def _tops(x, lanes):
    """The highest breakpoints that the states of a block can reach."""
    return pointer(x, _HEAD + lanes)


@njit(**_JIT)
def _rows(x, lanes):
    """The rows of a block: first that of plus infinity, then the breakpoints'."""
    return pointer(x, _HEAD + 2 * lanes)


@njit(**_JIT)
def _grid(x, lanes):
    """The breakpoints of a block: first plus infinity."""
    return pointer(x, _HEAD + (np.int64(x[1]) + 3) * lanes)


@njit(**_ENTRY)
def extent(heap, at, k):
    """Number of floats in the block at ``at`` of a value conditioned on k states."""
    return _block_size(np.int64(heap[at + 1]), padded(k))


@njit(**_JIT)
def count(heap, at):
    """Number of breakpoints of the value at ``at``."""
    return np.int64(heap[at])


@njit(**_JIT)
def breakpoint(heap, at, k, j):
    """The j-th breakpoint from the top, j = 0, ..., count - 1."""
    return _grid(pointer(heap, at), padded(k))[j + 1]


@njit(**_JIT)
def tail(heap, at, k, y, j):
    """P(value >= breakpoint j) in state y."""
    return _rows(pointer(heap, at), padded(k))[(j + 1) * padded(k) + y]


@njit(**_ENTRY)
def error(heap, at, k, y):
    """Bound on how far thinning has raised E max(x, value) in state y."""
    return _errors(pointer(heap, at))[y]


@njit(**_ENTRY)
def distribution(heap, at, k, y):
    """Breakpoints in rising order, and the tails of state y."""
    m = count(heap, at)
    grid, tails = np.empty(m), np.empty(m)
    for j in range(m):
        grid[m - 1 - j] = breakpoint(heap, at, k, j)
        tails[m - 1 - j] = tail(heap, at, k, y, j)
    return grid, tails


@njit(**_JIT)
def tail_from(heap, at, k, y, x):
    """P(value >= x) in state y."""
    lanes = padded(k)
    b = _grid(pointer(heap, at), lanes)
    i, span = 0, count(heap, at)  # the lowest breakpoint not below x, by bisection without branches
    while span > 0:
        half = (span + 1) >> 1
        i += half * (b[i + half] >= x)
        span -= half
    return _rows(pointer(heap, at), lanes)[i * lanes + y]


@njit(**_ENTRY)
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


@njit(**_JIT)
def _size_class(size):
    return bit_length(size - 1)


@njit(**_JIT)
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


@njit(**_JIT)
def release(x, state, at, size):
    """Put the block x, which lies at ``at``, on the list of its size."""
    c = _size_class(size)
    x[0] = state[c]
    state[c] = at


@njit(**_JIT)
def _begin(x, room, lanes):
    """Write what every block has: the room, and the row of plus infinity."""
    x[0], x[1] = 0.0, room
    for u in range(0, lanes, LANES):
        store(_rows(x, lanes), u, splat(0.0))
    _grid(x, lanes)[0] = np.inf


@njit(**_JIT)
def _end(x, m, lanes):
    """Close a block with m breakpoints."""
    x[0] = m
    _grid(x, lanes)[m + 1] = -np.inf


@njit(**_JIT)
def _write_nothing(x, lanes):
    """A block for what is minus infinity for sure."""
    _begin(x, 0, lanes)
    for u in range(0, lanes, LANES):
        store(_errors(x), u, splat(0.0))
        store(_tops(x, lanes), u, splat(-np.inf))
    _end(x, 0, lanes)


# Copies


@njit(**_JIT)
def _power(tail, copies):
    """P(max of ``copies`` independent values >= x) from P(one >= x)."""
    if copies == 1.0:
        return tail
    return -math.expm1(copies * math.log1p(-min(tail, 1.0)))


@njit(**_JIT)
def _powers(x, lanes, copies, spare):
    """Rows of the largest of ``copies`` independent values, in ``spare`` where they are new."""
    rows = _rows(x, lanes)
    if copies == 1.0:
        return rows
    for i in range((count(x, 0) + 1) * lanes):
        spare[i] = _power(rows[i], copies)
    return spare


@njit(**_JIT)
def _power_error(x, k, copies, y):
    """Error of the largest of ``copies`` independent values, in state y.

    Replacing the copies one at a time by their thinned versions: an error in one matters only while
    those before it stay below the top of its support. That sums to P(max >= top) / P(one >= top).
    """
    err, lanes = error(x, 0, k, y), padded(k)
    if copies != 1.0 and err > 0.0:
        t = tail_from(x, 0, k, y, _tops(x, lanes)[y])
        err *= _power(t, copies) / t if t > 0.0 else copies
    return err


# The value of a box


@njit(**_JIT)
def _transpose(law, k, own, out):
    """out[y, s] = P(s, y), with zeros for the padding of s."""
    lanes = padded(k)
    if lanes != k:
        for i in range(0, own * lanes, LANES):
            store(out, i, splat(0.0))
    for s in range(k):
        for y in range(own):
            out[y * lanes + s] = law[s * own + y]


@njit(**_JIT)
def _copy_above(x, i, level, numbers, grid, n, pos):
    """Copy from falling ``x[i:]`` to ``grid[n:]`` what lies above ``level``; where both then stand.

    ``pos[n:]`` receives the places in x. Eight at a time: what is copied too much will be written
    over.
    """
    more = True
    while more:
        eight = load(x, i)
        store(grid, n, eight)
        store(pos, n, load(numbers, i))
        c = leading(above(eight, splat(level)))
        i, n, more = i + c, n + c, c == LANES
    return i, n


@njit(**_JIT)
def _box_grid(x, levels, distinct, bare, low, numbers, grid, pos):
    """Breakpoints of max(reward, X), from the top: the rewards, and those of X above the lowest.

    ``x`` are the breakpoints of X, ``levels[:distinct]`` the rewards in rising order. ``pos[j]`` is
    the row of X for ``grid[j]``: that of its lowest breakpoint not below. ``bare``: some state has
    no reward, so that all of X counts. Nobody looks below ``low``.
    """
    i, q, n = 1, distinct - 1, 0
    while q >= 0 and levels[q] >= low:
        i, n = _copy_above(x, i, levels[q], numbers, grid, n, pos)
        i += x[i] == levels[q]
        grid[n], pos[n] = levels[q], i - 1
        n += 1
        q -= 1
    if bare or q >= 0:
        i, n = _copy_above(x, i, low, numbers, grid, n, pos)
        n += (x[i] == low) & (low > -np.inf)
    grid[n] = -np.inf
    return n


@njit(**_JIT)
def _lift(rows, lanes, reward, grid, pos, n, after):
    """after[j, y] = P(max(reward(y), X_y) >= grid[j]): one up to the reward, then the tail of X."""
    for u in range(0, lanes, LANES):
        r, one = load(reward, u), splat(1.0)
        for j in range(n):
            t = load(rows, pos[j] * lanes + u)
            store(after, j * lanes + u, where(at_least(r, splat_at(grid, j)), one, t))


@njit(**_JIT)
def _lift_error(x, own, copies, reward, outside, out):
    """Errors of X where it can still matter: where its top lies above what is at hand."""
    lanes = padded(own)
    if copies == 1.0:
        for u in range(0, lanes, LANES):
            matters = above(load(_tops(x, lanes), u), larger(load(reward, u), splat(outside)))
            store(out, u, where(matters, load(_errors(x), u), splat(0.0)))
    else:
        for y in range(own):
            matters = _tops(x, lanes)[y] > max(reward[y], outside)
            out[y] = _power_error(x, own, copies, y) if matters else 0.0


@njit(**_JIT)
def mix(after, own, law, lanes, n, out):
    """out[j, s] = sum_y after[j, y] * law[y, s], for j < n rounded up to a multiple of four."""
    across = padded(own)
    for j in range(0, n, _GROUP):
        i = j * across
        for u in range(0, lanes, LANES):
            a = b = c = d = splat(0.0)
            for y in range(own):
                p = load(law, y * lanes + u)
                a = madd(splat_at(after, i + y), p, a)
                b = madd(splat_at(after, i + across + y), p, b)
                c = madd(splat_at(after, i + 2 * across + y), p, c)
                d = madd(splat_at(after, i + 3 * across + y), p, d)
            to = j * lanes + u
            store(out, to, a)
            store(out, to + lanes, b)
            store(out, to + 2 * lanes, c)
            store(out, to + 3 * lanes, d)


@njit(**_JIT)
def _indices(grid, n, rows, lanes, price, low, sigma):
    """Root in x of E[(W_s - x)^+] = price[s], where ``rows[j, s]`` = P(W_s >= grid[j]).

    Areas under the tail are summed from the top, so that nothing cancels. A free box gets the
    smallest solution: the top of the support. Minus infinity when W never is a number, or when the
    root lies below ``low``. ``grid[n]`` is minus infinity: down to there any area can be had.
    """
    for u in range(0, lanes, LANES):
        c, never = load(price, u), splat(-np.inf)
        area = before = height = splat(0.0)
        left = right = never
        open_ = above(splat(np.inf), c)  # not yet found: those see every breakpoint
        for j in range(n):
            t = load(rows, j * lanes + u)
            height, before = where(open_, t, height), where(open_, area, before)
            p, q = splat_at(grid, j), splat_at(grid, j + 1)
            right, left = where(open_, p, right), where(open_, q, left)
            area = madd(t, sub(p, q), area)
            open_ = both(open_, either(above(c, area), at_least(splat(0.0), t)))
            if not some(open_):
                break
        x = larger(sub(right, div(sub(c, before), height)), left)
        x = where(above(height, splat(0.0)), x, never)
        store(sigma, u, where(above(splat(low), x), never, x))


@njit(**_JIT)
def _sort_down(v, lanes, rank, out):
    """The distinct numbers of ``v``, the largest first, with plus infinity in the gaps between.

    Sorted by counting the larger ones, since a comparison sort guesses wrongly at every branch.
    """
    for u in range(0, lanes, LANES):
        x, larger_ones = load(v, u), splat(0.0)
        for i in range(lanes):
            one = where(above(splat_at(v, i), x), splat(1.0), splat(0.0))
            larger_ones = add(larger_ones, one)
        store(rank, u, larger_ones)
        store(out, u, splat(np.inf))
    for i in range(lanes):
        out[np.int64(rank[i])] = v[i]


@njit(**_JIT)
def _cap_grid(grid, n, caps, lanes, numbers, x, source):
    """Breakpoints of min(W, sigma), from the top: the indices, and those of W below the largest.

    ``source[j]`` is the row of W for ``x[j]``: that of its lowest breakpoint not below.
    """
    if caps[0] == -np.inf:
        return 0
    i, _ = _copy_above(grid, 0, caps[0], numbers, x, 0, source)
    m = 0
    for q in range(lanes):
        if caps[q] == np.inf:
            continue
        if caps[q] == -np.inf:
            break
        i, m = _copy_above(grid, i, caps[q], numbers, x, m, source)
        i += grid[i] == caps[q]
        x[m], source[m] = caps[q], i - 1
        m += 1
    _, m = _copy_above(grid, i, -np.inf, numbers, x, m, source)
    return m


# Thinning


@njit(**_JIT)
def _capped_tail(x, source, rows, lanes, u, cap, j):
    """P(min(W_s, sigma_s) >= x[j]) for eight states s, whose indices are ``cap``."""
    t = load(rows, source[j] * lanes + u)
    return where(at_least(cap, splat_at(x, j)), t, splat(0.0))


@njit(**_JIT)
def _matters(above_, here, right, at, left, bottom, bound):
    """Would it raise E max(x, kappa_s) by more than a quarter of ``bound`` to drop breakpoints?

    Those between ``right`` and ``left``, of which ``at`` is the lowest; the tails at ``right`` and
    at ``at`` are ``above_`` and ``here``. The bound is a quarter of the mass between, times the
    distance; what lies at or below the floor ``bottom`` does not count.
    """
    move = mul(sub(here, above_), sub(right, larger(left, bottom)))
    return both(above(at, bottom), above(move, splat(bound)))


@njit(**_JIT)
def _candidates(x, source, m, rows, lanes, sigma, floor, bound, out):
    """The breakpoints that may be dropped alone, between their neighbours, and then m.

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


@njit(**_JIT)
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


@njit(**_JIT)
def _average(x, source, rows, lanes, sigma, floor, c, a, base, value, row):
    """Give the breakpoint c the mass of the dropped ones between it and a.

    Its new tail is the average over the interval (a, c], or that part of it above the floor. The
    errors of ``value`` become at least those from before, ``base``, plus what this adds.
    """
    zero, errors, tops = splat(0.0), _errors(value), _tops(value, lanes)
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


@njit(**_JIT)
def _thin(x, source, m, rows, lanes, sigma, floor, base, top, eps, loose, value):
    """Write the value to a block, without the breakpoints that do not matter.

    From the top down, as many as possible are dropped after each one that is kept.
    """
    _begin(value, m, lanes)
    for u in range(0, lanes, LANES):
        store(_errors(value), u, load(base, u))
        store(_tops(value, lanes), u, load(top, u))
    bound = 4.0 * eps
    _candidates(x, source, m, rows, lanes, sigma, floor, bound, loose)
    grid, row = pointer(_grid(value, lanes), 1), _rows(value, lanes)
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
    _end(value, kept, lanes)


# The larger of two values


@njit(**_JIT)
def _join_grid(a, b, low, grid, left, right):
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


@njit(**_JIT)
def _join_rows(a, left, b, right, lanes, n, rows):
    """P(max(A, B) >= x) = P(A >= x) + P(B >= x) P(A < x), from the rows ``a`` and ``b``."""
    for j in range(n):
        for u in range(0, lanes, LANES):
            s, t = load(a, left[j] * lanes + u), load(b, right[j] * lanes + u)
            store(rows, j * lanes + u, madd(t, sub(splat(1.0), s), s))


@njit(**_JIT)
def _join_error(a, ca, b, cb, k, err, top):
    """Errors of max(A^ca, B^cb), and the highest breakpoints, per state.

    An error in the one with the lower top matters only while the other stays below that.
    """
    lanes = padded(k)
    for u in range(0, lanes, LANES):
        store(err, u, splat(0.0))
        store(top, u, larger(load(_tops(a, lanes), u), load(_tops(b, lanes), u)))
    for y in range(k):
        ea, eb = _power_error(a, k, ca, y), _power_error(b, k, cb, y)
        pa, pb = _tops(a, lanes)[y], _tops(b, lanes)[y]
        if eb > 0.0 and pa >= pb:
            eb *= 1.0 - _power(tail_from(a, 0, k, y, pb), ca)
        if ea > 0.0 and pa < pb:
            ea *= 1.0 - _power(tail_from(b, 0, k, y, pa), cb)
        err[y] = ea + eb


# All operations in turn


@njit(**_JIT)
def _floors(user, reward, k, outside, low, floor):
    """Below what the user of a value does not look, per state; the padding looks nowhere.

    ``reward`` are those of the user, where there is one only. Returns the least of the floors.
    """
    least = np.inf
    for s in range(k, padded(k)):
        floor[s] = np.inf
    base = max(low, outside) if user == OUTSIDE_USER else low
    for s in range(k):
        floor[s] = max(base, reward[s]) if user >= 0 else base
        least = min(least, floor[s])
    return least


@njit(**_JIT)
def _price(cost, rows, cols, law, own, s):
    """Expected cost after the parent showed s."""
    i = (s if rows > 1 else 0) * cols
    if cols == 1:
        return cost[i]
    mean = 0.0
    for y in range(own):
        mean += law[s * own + y] * cost[i + y]
    return mean


@njit(**_JIT)
def _prices(cost, rows, cols, law, k, own, price):
    """Expected costs for all states of the parent; the padding can never afford it."""
    for s in range(k):
        price[s] = _price(cost, rows, cols, law, own, s)
    for s in range(k, padded(k)):
        price[s] = np.inf


@njit(**_ENTRY)
def mean_costs(law, cost, laws, law_at, law_shape, costs, cost_at, cost_shape, start):
    """Expected cost of each box after each state of its parent; those of box i at ``start[i]``."""
    out = np.empty(start[-1])
    for i in range(law.size):
        p, c = pointer(laws, law_at[law[i]]), cost[i]
        price, own = pointer(costs, cost_at[c]), law_shape[law[i], 1]
        for s in range(law_shape[law[i], 0]):
            out[start[i] + s] = _price(price, cost_shape[c, 0], cost_shape[c, 1], p, own, s)
    return out


@njit(**_JIT)
def _given_indices(sigma, k, grid, n, out):
    """Copy indices that are given; one above everything caps nothing, so the top will do."""
    top = grid[0] if n > 0 else -np.inf
    for s in range(padded(k)):
        out[s] = min(sigma[s], top) if s < k else -np.inf


@njit(**_JIT)
def _clear(after, across, reward, own, grid, n, clear):
    """P(X_y < reward(y)) for each own state y, from the row just above the reward."""
    for y in range(own):
        lo, hi = 0, n  # number of breakpoints above the reward
        while lo < hi:
            mid = (lo + hi) >> 1
            if grid[mid] > reward[y]:
                lo = mid + 1
            else:
                hi = mid
        clear[y] = 1.0 - after[(lo - 1) * across + y] if lo > 0 else 1.0


@njit(**_JIT)
def _rewards(reward, own, out):
    """Copy the rewards of a box, and minus infinity for the padding; is some of them that?"""
    bare = False
    for y in range(own, padded(own)):
        out[y] = -np.inf
    for y in range(own):
        out[y] = reward[y]
        bare |= out[y] == -np.inf
    return bare


@njit(**_JIT)
def _desk_size(most, widest):
    """Floats, and integers, to work on ``most`` breakpoints and ``widest`` states."""
    room, by_state = most + 1 + LANES, 8 * widest + padded(_block_size(0, widest))
    table = (most + 1 + _GROUP) * widest
    return 2 * table + widest * widest + by_state + 2 * padded(room), 4 * room


@njit(**_JIT)
def _fetch_law(order, step, ops, laws, law_at):
    """Ask for the law of an operation to come, which else would have to be waited for."""
    if step < order.size and ops[order[step], LAW] >= 0:
        at = ops[order[step], LAW]
        for i in range(law_at[at], min(law_at[at + 1], law_at[at] + _AHEAD), LANES):
            prefetch(pointer(laws, 0), i)


@njit(**_JIT)
def _copy_known(known, m, k, low, x, rows, top):
    """Breakpoints and rows of a known value, those at or above ``low``; how many there are."""
    lanes, n = padded(k), 0
    for s in range(lanes):
        top[s] = -np.inf
    while n < m and known[n] >= low:
        x[n] = known[n]
        for s in range(lanes):
            t = known[m + n * k + s] if s < k else 0.0
            rows[n * lanes + s] = t
            if t > 0.0 and top[s] == -np.inf:
                top[s] = x[n]
        n += 1
    return n


@njit(**_JIT)
def _carry_out(
    step, order, columns, clear, loc, refs, shared, sigma, sigma_at, width, heap, size, state, most,
    widest, floats, ints,
):  # fmt: skip
    """Carry out operations from ``step`` on, as long as there is room.

    Returns the first step not done, and the breakpoints and states that it needs room for.
    """
    (
        ops, powers, laws, law_at, reward, reward_at, levels, level_at, costs, cost_at, cost_shape,
        known, known_at, known_size, low, outside, eps, given,
    ) = columns  # fmt: skip
    room, table = most + 1 + LANES, (most + 1 + _GROUP) * widest
    after, rows, law = floats, pointer(floats, table), pointer(floats, 2 * table)
    grid = pointer(law, widest * widest)
    x = pointer(grid, padded(room))
    sig = pointer(x, padded(room))
    caps, rank = pointer(sig, widest), pointer(sig, 2 * widest)
    errors, tops = pointer(sig, 3 * widest), pointer(sig, 4 * widest)
    floor, price = pointer(sig, 5 * widest), pointer(sig, 6 * widest)
    mine, nothing = pointer(sig, 7 * widest), pointer(sig, 8 * widest)
    numbers, pos = ints, pointer(ints, room)
    source, loose = pointer(ints, 2 * room), pointer(ints, 3 * room)
    while step < order.size:
        op = order[step]
        this = pointer(ops, op * ops.shape[1])
        k, left, right, r = this[STATES], this[LEFT], this[RIGHT], this[REWARD]
        own, extra = k, 0  # states of the box itself; for a join those of its operands
        if this[KIND] == BOX:
            own = reward_at[r + 1] - reward_at[r]
            extra = level_at[r + 1] - level_at[r] + k
        elif this[KIND] == GIVEN:
            extra = known_size[op]
        lanes, across = padded(k), padded(own)
        a = b = nothing
        if left >= 0:
            a = pointer(heap, loc[left]) if loc[left] >= 0 else pointer(shared, -1 - loc[left])
            extra += count(a, 0)
        if right >= 0:
            b = pointer(heap, loc[right]) if loc[right] >= 0 else pointer(shared, -1 - loc[right])
            extra += count(b, 0)
        if (
            extra > most
            or max(lanes, across) > widest
            or state[TOP] + 2 * _block_size(extra, lanes) > size
        ):
            return step, extra, max(lanes, across)
        step += 1
        _fetch_law(order, step, ops, laws, law_at)

        user = pointer(reward, reward_at[max(this[USER], 0)])
        least = _floors(this[USER], user, k, outside, low, floor)
        if this[KIND] == GIVEN:
            m = _copy_known(pointer(known, known_at[op]), extra, k, low, x, rows, tops)
            err, top = errors, tops
            for u in range(0, lanes, LANES):
                store(sig, u, splat(np.inf))
                store(err, u, splat(0.0))
            for j in range(m):
                source[j] = j
        elif this[KIND] == JOIN:
            ca, cb = powers[op, 0], powers[op, 1]
            m = _join_grid(_grid(a, lanes), _grid(b, lanes), least, x, pos, source)
            ra = _powers(a, lanes, ca, after)
            rb = _powers(b, lanes, cb, pointer(after, (count(a, 0) + 1) * lanes))
            _join_rows(ra, pos, rb, source, lanes, m, rows)
            err, top = errors, tops
            _join_error(a, ca, b, cb, k, err, top)
            for u in range(0, lanes, LANES):
                store(sig, u, splat(np.inf))
            for j in range(m):
                source[j] = j
        else:
            copies, c, p = powers[op, 0], this[COST], pointer(laws, law_at[this[LAW]])
            if left < 0:
                _write_nothing(a, across)
            _transpose(p, k, own, law)
            bare = _rewards(pointer(reward, reward_at[r]), own, mine)
            n = _box_grid(
                _grid(a, across), pointer(levels, level_at[r]), level_at[r + 1] - level_at[r],
                bare, low, numbers, grid, pos,
            )  # fmt: skip
            width[op] = n
            _lift(_powers(a, across, copies, rows), across, mine, grid, pos, n, after)
            _lift_error(a, own, copies, mine, outside, pointer(after, n * across))
            mix(after, own, law, lanes, n + 1, rows)
            if given:
                _given_indices(pointer(sigma, sigma_at[op]), k, grid, n, sig)
                _clear(after, across, mine, own, grid, n, pointer(clear, reward_at[r]))
            else:
                cost = pointer(costs, cost_at[c])
                _prices(cost, cost_shape[c, 0], cost_shape[c, 1], p, k, own, price)
                _indices(grid, n, rows, lanes, price, low, sig)
                for s in range(k):
                    sigma[sigma_at[op] + s] = sig[s]
            err, top = pointer(rows, n * lanes), sig
            _sort_down(sig, lanes, rank, caps)
            m = _cap_grid(grid, n, caps, lanes, numbers, x, source)

        if left >= 0 and loc[left] >= 0:
            refs[left] -= 1
            if refs[left] == 0:
                release(a, state, loc[left], extent(a, 0, own))
        if right >= 0 and loc[right] >= 0:
            refs[right] -= 1
            if refs[right] == 0:
                release(b, state, loc[right], extent(b, 0, k))
        loc[op] = allocate(heap, state, _block_size(m, lanes))
        value = pointer(heap, loc[op])
        _thin(x, source, m, rows, lanes, sig, floor, err, top, eps, loose, value)
    return step, 0, 0


@njit(**_ENTRY)
def sweep(
    order, columns, clear, loc, refs, shared, sigma, sigma_at, width, heap, state
):  # fmt: skip
    """Carry out the operations ``order`` in turn; returns the heap, which may have moved.

    The value of an operation is the block at ``loc``. An operand with ``loc < 0`` lies in
    ``shared`` at ``-1 - loc``; all others in ``heap``, where a block is given back after its last
    use. Rewards come as they are (minus infinity: none) and as sorted levels. ``width`` receives
    the number of columns of each matrix product, ``sigma`` the indices. If the indices are
    ``given`` instead, ``clear`` receives the probability that no child reaches the reward of each
    state. What lies below ``low`` is left out.
    """
    step, most, widest = 0, 64, LANES  # breakpoints and states that there is room for
    while step < order.size:
        size, numbers = _desk_size(most, widest)
        floats, ints = aligned(size), np.arange(numbers)
        step, extra, lanes = _carry_out(
            step, order, columns, clear, loc, refs, pointer(shared, 0), sigma, sigma_at, width,
            pointer(heap, 0), heap.size, pointer(state, 0), most, widest, pointer(floats, 0),
            pointer(ints, 0),
        )  # fmt: skip
        keep(floats)
        keep(ints)
        most, widest = 2 * extra if extra > most else most, max(lanes, widest)
        end = state[TOP] + 2 * _block_size(extra, lanes)
        if end > heap.size:
            bigger = aligned(max(end, 2 * heap.size))
            bigger[: heap.size] = heap
            heap = bigger
    return heap
