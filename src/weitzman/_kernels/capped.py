r"""Arithmetic of capped values: the heart of the package.

A *value* is a random variable :math:`\kappa_{|y}` for every state :math:`y` of a conditioning box.
It is held as breakpoints ``b[0] > b[1] > ... > b[m-1]``, from the top down, and tails
``t[j, y] = P(kappa_y >= b[j])``. Mass missing from ``t[m-1, y]`` lies at minus infinity (no reward,
or below a floor that nobody looks under). Tails rather than distribution functions, so that rare
prizes keep all their digits.

Two operations build every value from others:

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

``[m, room, ...(8), err (K), top (K), rows ((room + 1) * K), b (room + 2)]``

where K is k padded and ``top[y]`` the highest breakpoint that state y can reach. To spare the loops
their special cases, ``b`` starts with plus infinity, whose row is zero, and ends with minus
infinity.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from .lanes import (
    LANES,
    above,
    add,
    at_least,
    both,
    div,
    either,
    larger,
    load,
    madd,
    mul,
    smaller,
    some,
    splat,
    splat_at,
    store,
    sub,
    where,
)  # fmt: skip

BOX, JOIN = 0, 1
# columns of the integer table of operations
KIND, LEFT, RIGHT, LAW, REWARD, COST, STATES, USER = range(8)
MIXED_USERS, OUTSIDE_USER = -1, -2  # in USER, besides the row of rewards of the only user
_SIZES = 64  # size classes of the allocator: powers of two
TOP = _SIZES  # slot of the allocator state that holds the first never-used position
_HEAD = 8  # floats at the start of a block: how many breakpoints, and room for how many
_GROUP = 4  # breakpoints that a matrix product takes at a time

_JIT = {"cache": True, "nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}
_INLINE = {**_JIT, "forceinline": True}


# Blocks


@njit(**_INLINE)
def padded(k):
    """Number of states with padding: the next multiple of eight."""
    return (k + LANES - 1) & -LANES


@njit(**_INLINE)
def _block_size(room, lanes):
    return _HEAD + (room + 3) * lanes + room + 2


@njit(**_INLINE)
def _rows_at(at, lanes):
    """Where the rows of a block start: first that of plus infinity, then the breakpoints'."""
    return at + _HEAD + 2 * lanes


@njit(**_INLINE)
def _grid_at(heap, at, lanes):
    """Where the breakpoints of a block start: first plus infinity."""
    return at + _HEAD + (np.int64(heap[at + 1]) + 3) * lanes


@njit(**_JIT)
def extent(heap, at, k):
    """Number of floats in the block at ``at`` of a value conditioned on k states."""
    return _block_size(np.int64(heap[at + 1]), padded(k))


@njit(**_INLINE)
def count(heap, at):
    """Number of breakpoints."""
    return np.int64(heap[at])


@njit(**_INLINE)
def breakpoint(heap, at, k, j):
    """The j-th breakpoint from the top, j = 0, ..., count - 1."""
    return heap[_grid_at(heap, at, padded(k)) + 1 + j]


@njit(**_INLINE)
def tail(heap, at, k, y, j):
    """P(value >= breakpoint j) in state y."""
    return heap[_rows_at(at, padded(k)) + (j + 1) * padded(k) + y]


@njit(**_INLINE)
def error(heap, at, y):
    """Bound on how far thinning has raised E max(x, value) in state y."""
    return heap[at + _HEAD + y]


@njit(**_JIT)
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
    b = _grid_at(heap, at, lanes)
    i, span = 0, count(heap, at)  # the lowest breakpoint not below x, by bisection without branches
    while span > 0:
        half = (span + 1) >> 1
        i += half * (heap[b + i + half] >= x)
        span -= half
    return heap[_rows_at(at, lanes) + i * lanes + y]


@njit(**_JIT)
def _aligned(size):
    """Uninitialised floats that start on a cache line, so that a row of eight lies in one."""
    raw = np.empty(size + LANES)
    skip = -(raw.ctypes.data >> 3) & (LANES - 1)
    return raw[skip : skip + size]


def new_heap(size: int) -> tuple[np.ndarray, np.ndarray]:
    """An empty heap and the state of its allocator (heads of the free lists, then the top)."""
    state = np.full(_SIZES + 1, -1, np.int64)
    state[TOP] = 0
    return _aligned(size), state


@njit(**_INLINE)
def _size_class(size):
    return max(math.frexp(size - 1.0)[1], 3)


@njit(**_JIT)
def _grow(heap, used, size):
    bigger = _aligned(size)
    bigger[:used] = heap[:used]
    return bigger


@njit(**_INLINE)
def allocate(heap, state, size):
    """Position of a block of at least ``size`` floats; the heap is replaced when it must grow."""
    c = _size_class(size)
    at = state[c]
    if at >= 0:
        state[c] = np.int64(heap[at])
        return heap, at
    at = state[TOP]
    end = at + (1 << c)
    if end > heap.size:
        heap = _grow(heap, at, max(end, 2 * heap.size))
    state[TOP] = end
    return heap, at


@njit(**_INLINE)
def release(heap, state, at, size):
    c = _size_class(size)
    heap[at] = state[c]
    state[c] = at


@njit(**_INLINE)
def _begin(heap, at, room, lanes):
    """Write what every block has: the room, and the row of plus infinity."""
    heap[at], heap[at + 1] = 0.0, room
    for u in range(0, lanes, LANES):
        store(heap, _rows_at(at, lanes) + u, splat(0.0))
    heap[_grid_at(heap, at, lanes)] = np.inf


@njit(**_INLINE)
def _end(heap, at, m, lanes):
    """Close a block with m breakpoints."""
    heap[at] = m
    heap[_grid_at(heap, at, lanes) + m + 1] = -np.inf


@njit(**_JIT)
def _nothing(heap, lanes):
    """Write a value that is minus infinity for sure, at the start of ``heap``."""
    _begin(heap, 0, 0, lanes)
    for u in range(0, lanes, LANES):
        store(heap, _HEAD + u, splat(0.0))
        store(heap, _HEAD + lanes + u, splat(-np.inf))
    _end(heap, 0, 0, lanes)


# Copies


@njit(**_INLINE)
def _power(tail, copies):
    """P(max of ``copies`` independent values >= x) from P(one >= x)."""
    if copies == 1.0:
        return tail
    return -math.expm1(copies * math.log1p(-min(tail, 1.0)))


@njit(**_JIT)
def _raise(heap, at, k, copies, out):
    """Rows of the largest of ``copies`` independent values, that of plus infinity first."""
    lanes = padded(k)
    rows = _rows_at(at, lanes)
    for i in range((count(heap, at) + 1) * lanes):
        out[i] = _power(heap[rows + i], copies)


@njit(**_JIT)
def _copy_errors(heap, at, k, copies, err):
    """Errors of the largest of ``copies`` independent values.

    Replacing the copies one at a time by their thinned versions: an error in one matters only while
    those before it stay below the top of its support. That sums to P(max >= top) / P(one >= top).
    """
    lanes = padded(k)
    for u in range(0, lanes, LANES):
        store(err, u, load(heap, at + _HEAD + u))
    if copies != 1.0:
        for y in range(k):
            t = tail_from(heap, at, k, y, heap[at + _HEAD + lanes + y])
            if t > 0.0:
                err[y] *= _power(t, copies) / t


# The value of a box


@njit(**_INLINE)
def _transpose(laws, at, k, own, out):
    """out[y, s] = P(s, y), with zeros for the padding of s."""
    lanes = padded(k)
    if lanes != k:
        for i in range(0, own * lanes, LANES):
            store(out, i, splat(0.0))
    for s in range(k):
        for y in range(own):
            out[y * lanes + s] = laws[at + s * own + y]


@njit(**_INLINE)
def _box_grid(x, b, m, levels, start, end, bare, low, grid, pos):
    """Breakpoints of max(reward, X), from the top: the rewards, and those of X above the lowest.

    ``x[b:]`` are the breakpoints of X, ``levels[start:end]`` the rewards in rising order. ``pos[j]``
    is the row of X for ``grid[j]``: that of its lowest breakpoint not below. ``bare``: some state
    has no reward, so that all of X counts. Nobody looks below ``low``.
    """
    i, q, n = 1, end - 1, 0
    while q >= start and levels[q] >= low:
        level = levels[q]
        while x[b + i] > level:
            grid[n], pos[n] = x[b + i], i
            n += 1
            i += 1
        i += x[b + i] == level
        grid[n], pos[n] = level, i - 1
        n += 1
        q -= 1
    if bare or q >= start:
        while i <= m and x[b + i] >= low:
            grid[n], pos[n] = x[b + i], i
            n += 1
            i += 1
    grid[n] = -np.inf
    return n


@njit(**_INLINE)
def _lift(x, rows, lanes, reward, grid, pos, n, after):
    """after[j, y] = P(max(reward(y), X_y) >= grid[j]): one up to the reward, then the tail of X."""
    for u in range(0, lanes, LANES):
        r, one = load(reward, u), splat(1.0)
        for j in range(n):
            t = load(x, rows + pos[j] * lanes + u)
            store(after, j * lanes + u, where(at_least(r, splat_at(grid, j)), one, t))


@njit(**_INLINE)
def _lift_error(err, x, top, lanes, reward, outside, after, to):
    """Errors of X where X can still matter: its top lies above what is at hand."""
    for u in range(0, lanes, LANES):
        matters = above(load(x, top + u), larger(load(reward, u), splat(outside)))
        store(after, to + u, where(matters, load(err, u), splat(0.0)))


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


@njit(**_INLINE)
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
            right, left = where(open_, splat_at(grid, j), right), where(open_, splat_at(grid, j + 1), left)
            area = madd(t, splat(grid[j] - grid[j + 1]), area)
            open_ = both(open_, either(above(c, area), at_least(splat(0.0), t)))
            if not some(open_):
                break
        x = larger(sub(right, div(sub(c, before), height)), left)
        x = where(above(height, splat(0.0)), x, never)
        store(sigma, u, where(above(splat(low), x), never, x))


@njit(**_INLINE)
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
        out[np.uint64(rank[i])] = v[i]


@njit(**_INLINE)
def _cap_grid(grid, n, caps, lanes, x, source):
    """Breakpoints of min(W, sigma), from the top: the indices, and those of W below the largest.

    ``source[j]`` is the row of W for ``x[j]``: that of its lowest breakpoint not below.
    """
    i, m = 0, 0
    while grid[i] > caps[0]:
        i += 1
    for q in range(lanes):
        cap = caps[q]
        if cap == np.inf:
            continue
        if cap == -np.inf:
            break
        while grid[i] > cap:
            x[m], source[m] = grid[i], i
            m += 1
            i += 1
        i += grid[i] == cap
        x[m], source[m] = cap, i - 1
        m += 1
    if m > 0:
        while i < n:
            x[m], source[m] = grid[i], i
            m += 1
            i += 1
    return m


# Thinning


@njit(**_INLINE)
def _capped_tail(x, source, rows, lanes, u, cap, j):
    """P(min(W_s, sigma_s) >= x[j]) for eight states s, whose indices are ``cap``."""
    t = load(rows, source[j] * lanes + u)
    return where(at_least(cap, splat_at(x, j)), t, splat(0.0))


@njit(**_INLINE)
def _fits(x, source, rows, lanes, sigma, floor, c, a, bound):
    """May all breakpoints strictly between c and a + 1 be dropped, if those down to a - 1 may?

    That moves x -> E max(x, kappa_s) up by at most a quarter of the mass of s between, times the
    distance; what lies at or below the floor does not count.
    """
    for u in range(0, lanes, LANES):
        cap, bottom = load(sigma, u), load(floor, u)
        mass = sub(
            _capped_tail(x, source, rows, lanes, u, cap, a),
            _capped_tail(x, source, rows, lanes, u, cap, c),
        )
        move = mul(mass, sub(splat_at(x, c), larger(splat_at(x, a + 1), bottom)))
        if some(both(above(splat_at(x, a), bottom), above(move, splat(bound)))):
            return False
    return True


@njit(**_JIT)
def _average(x, source, rows, lanes, sigma, floor, c, a, err, heap, to, row):
    """Give the breakpoint c the mass of the dropped ones between it and a.

    Its new tail is the average over the interval (a, c], or that part of it above the floor.
    """
    zero = splat(0.0)
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
        store(heap, row + u, mean)
        e, top = to + _HEAD + u, to + _HEAD + lanes + u
        moved = mul(mul(sub(first, last), span), splat(0.25))
        store(heap, e, larger(load(heap, e), add(load(err, u), moved)))
        reached = where(above(mean, zero), splat_at(x, c), splat(-np.inf))
        store(heap, top, larger(load(heap, top), reached))


@njit(**_INLINE)
def _thin(x, source, m, rows, lanes, sigma, floor, err, top, eps, heap, to):
    """Write the value to a block, without the breakpoints that do not matter.

    Each kept breakpoint is followed by the lowest one such that those between may go.
    """
    for u in range(0, lanes, LANES):
        store(heap, to + _HEAD + u, load(err, u))
        store(heap, to + _HEAD + lanes + u, load(top, u))
    grid, row = _grid_at(heap, to, lanes), _rows_at(to, lanes)
    c, kept = 0, 0
    while c < m:
        kept += 1
        row += lanes
        heap[grid + kept] = x[c]
        for u in range(0, lanes, LANES):
            store(heap, row + u, _capped_tail(x, source, rows, lanes, u, load(sigma, u), c))
        a = c + 1
        while a + 1 < m and _fits(x, source, rows, lanes, sigma, floor, c, a, 4.0 * eps):
            a += 1
        if a > c + 1:
            _average(x, source, rows, lanes, sigma, floor, c, a, err, heap, to, row)
        c = a
    _end(heap, to, kept, lanes)


# The larger of two values


@njit(**_INLINE)
def _join_grid(a, p, b, q, low, grid, left, right):
    """Breakpoints of max(A, B), from the top down to ``low``; returns how many.

    ``a[p:]`` and ``b[q:]`` are those of A and B, ``left[j]`` and ``right[j]`` their rows for
    ``grid[j]``.
    """
    i, j, n = 1, 1, 0
    x = max(a[p + 1], b[q + 1])
    while x >= low and x > -np.inf:
        i += a[p + i] == x
        j += b[q + j] == x
        grid[n], left[n], right[n] = x, i - 1, j - 1
        n += 1
        x = max(a[p + i], b[q + j])
    return n


@njit(**_INLINE)
def _join_rows(a, p, left, b, q, right, lanes, n, rows):
    """P(max(A, B) >= x) = P(A >= x) + P(B >= x) P(A < x), from the rows at ``a[p:]``, ``b[q:]``."""
    for j in range(n):
        for u in range(0, lanes, LANES):
            s, t = load(a, p + left[j] * lanes + u), load(b, q + right[j] * lanes + u)
            store(rows, j * lanes + u, madd(t, sub(splat(1.0), s), s))


@njit(**_JIT)
def _join_error(a, at, ca, ea, b, bt, cb, eb, k, err):
    """Errors of max(A^ca, B^cb), per state, from those of A^ca and B^cb.

    An error in the one with the lower top matters only while the other stays below that.
    """
    lanes = padded(k)
    for y in range(k):
        pa, pb = a[at + _HEAD + lanes + y], b[bt + _HEAD + lanes + y]
        if pa >= pb:
            err[y] = ea[y] + eb[y] * (1.0 - _power(tail_from(a, at, k, y, pb), ca))
        else:
            err[y] = eb[y] + ea[y] * (1.0 - _power(tail_from(b, bt, k, y, pa), cb))


# All operations in turn


@njit(**_INLINE)
def _floors(user, k, reward, reward_at, outside, low, floor):
    """Below what the user of a value does not look, per state; the padding looks nowhere.

    Returns the least of these.
    """
    lanes, least = padded(k), np.inf
    for s in range(k, lanes):
        floor[s] = np.inf
    base = max(low, outside) if user == OUTSIDE_USER else low
    for s in range(k):
        floor[s] = max(base, reward[reward_at[user] + s]) if user >= 0 else base
        least = min(least, floor[s])
    return least


@njit(**_INLINE)
def _price(costs, at, rows, cols, laws, law, own, s):
    """Expected cost after the parent showed s."""
    i = at + (s if rows > 1 else 0) * cols
    if cols == 1:
        return costs[i]
    mean = 0.0
    for y in range(own):
        mean += laws[law + s * own + y] * costs[i + y]
    return mean


@njit(**_INLINE)
def _prices(costs, at, rows, cols, laws, law, k, own, price):
    """Expected cost after the parent showed s; the padding can never afford it."""
    for s in range(k, padded(k)):
        price[s] = np.inf
    for s in range(k):
        price[s] = _price(costs, at, rows, cols, laws, law, own, s)


@njit(**_INLINE)
def _rewards(reward, at, own, out):
    """Copy the rewards of a box, and minus infinity for the padding; is some of them that?"""
    bare = False
    for y in range(own, padded(own)):
        out[y] = -np.inf
    for y in range(own):
        out[y] = reward[at + y]
        bare |= out[y] == -np.inf
    return bare


@njit(**_JIT)
def _given_indices(sigma, at, k, grid, n, sig):
    """Copy indices that are given; one above everything caps nothing, so the top will do."""
    top = grid[0] if n > 0 else -np.inf
    for s in range(padded(k)):
        sig[s] = min(sigma[at + s], top) if s < k else -np.inf


@njit(**_JIT)
def _clear(after, across, reward, own, grid, n, clear, at):
    """P(X_y < reward(y)) for each own state y, from the row just above the reward."""
    for y in range(own):
        lo, hi = 0, n  # number of breakpoints above the reward
        while lo < hi:
            mid = (lo + hi) >> 1
            if grid[mid] > reward[y]:
                lo = mid + 1
            else:
                hi = mid
        clear[at + y] = 1.0 - after[(lo - 1) * across + y] if lo > 0 else 1.0


@njit(**_JIT)
def mean_costs(law, cost, laws, law_at, law_shape, costs, cost_at, cost_shape, start):
    """Expected cost of each box after each state of its parent; those of box i at ``start[i]``."""
    out = np.empty(start[-1])
    for i in range(law.size):
        c, own = cost[i], law_shape[law[i], 1]
        for s in range(law_shape[law[i], 0]):
            out[start[i] + s] = _price(
                costs, cost_at[c], cost_shape[c, 0], cost_shape[c, 1], laws, law_at[law[i]], own, s
            )
    return out


@njit(**_JIT)
def sweep(
    order, ops, powers, laws, law_at, reward, reward_at, levels, level_at, costs, cost_at,
    cost_shape, low, outside, eps, given, clear, loc, refs, shared, sigma, sigma_at, width,
    heap, state,
):  # fmt: skip
    """Carry out the operations ``order`` in turn; returns the heap, which may have moved.

    The value of an operation is the block at ``loc``. An operand with ``loc < 0`` lies in
    ``shared`` at ``-1 - loc``; all others in ``heap``, where a block is given back after its last
    use. Rewards come as they are (minus infinity: none) and as sorted levels. ``width`` receives
    the number of columns of each matrix product, ``sigma`` the indices. If the indices are
    ``given`` instead, ``clear`` receives the probability that no child reaches the reward of each
    state. What lies below ``low`` is left out.
    """
    most, widest = 0, 0  # breakpoints and states that there is room for
    grid, x, after, rows, law = np.empty(0), np.empty(0), np.empty(0), np.empty(0), np.empty(0)
    pos, source = np.empty(0, np.int64), np.empty(0, np.int64)
    err, floor, price, own_reward = np.empty(0), np.empty(0), np.empty(0), np.empty(0)
    sig, caps, rank, top, nothing = np.empty(0), np.empty(0), np.empty(0), np.empty(0), np.empty(0)
    for step in range(order.size):
        op = order[step]
        k, left, right, r = ops[op, STATES], ops[op, LEFT], ops[op, RIGHT], ops[op, REWARD]
        own, extra = k, 0  # states of the box itself; for a join those of its operands
        if ops[op, KIND] == BOX:
            own = reward_at[r + 1] - reward_at[r]
            extra = level_at[r + 1] - level_at[r] + k
        lanes, across = padded(k), padded(own)

        a, at, b, bt = nothing, 0, nothing, 0
        if left >= 0:
            at = loc[left]
            a, at = (heap, at) if at >= 0 else (shared, -1 - at)
            extra += count(a, at)
        if right >= 0:
            bt = loc[right]
            b, bt = (heap, bt) if bt >= 0 else (shared, -1 - bt)
            extra += count(b, bt)
        if extra > most or max(lanes, across) > widest:
            most, widest = max(2 * extra, most), max(lanes, across, widest)
            grid, x = np.empty(most + 1), np.empty(most + 1)
            pos, source = np.empty(most, np.int64), np.empty(most, np.int64)
            after = _aligned((most + 1 + _GROUP) * widest)
            rows = _aligned((most + 1 + _GROUP) * widest)
            law = _aligned(widest * widest)
            err, floor, price = _aligned(widest), _aligned(widest), _aligned(widest)
            sig, caps, rank = _aligned(widest), _aligned(widest), _aligned(widest)
            own_reward, top = _aligned(widest), _aligned(widest)
            nothing = _aligned(_block_size(0, widest))
        if left < 0:
            a = nothing
            _nothing(a, across)

        least = _floors(ops[op, USER], k, reward, reward_at, outside, low, floor)
        if ops[op, KIND] == JOIN:
            ca, cb = powers[op, 0], powers[op, 1]
            p, q, at_a, at_b = a, b, _rows_at(at, lanes), _rows_at(bt, lanes)
            if ca != 1.0:
                p, at_a = after, 0
                _raise(a, at, k, ca, p)
            if cb != 1.0:
                q, at_b = after, (count(a, at) + 1) * lanes
                _raise(b, bt, k, cb, q[at_b:])
            m = _join_grid(
                a, _grid_at(a, at, lanes), b, _grid_at(b, bt, lanes), least, grid, pos, source
            )
            _join_rows(p, at_a, pos, q, at_b, source, lanes, m, rows)
            _copy_errors(a, at, k, ca, price)
            _copy_errors(b, bt, k, cb, caps)
            _join_error(a, at, ca, price, b, bt, cb, caps, k, err)
            for u in range(0, lanes, LANES):
                one, two = load(a, at + _HEAD + lanes + u), load(b, bt + _HEAD + lanes + u)
                store(top, u, larger(one, two))
                store(sig, u, splat(np.inf))
            for j in range(m):
                x[j], source[j] = grid[j], j
        else:
            copies, c, matrix = powers[op, 0], ops[op, COST], law_at[ops[op, LAW]]
            _transpose(laws, matrix, k, own, law)
            bare = _rewards(reward, reward_at[r], own, own_reward)
            n = _box_grid(
                a, _grid_at(a, at, across), count(a, at), levels, level_at[r], level_at[r + 1],
                bare, low, grid, pos,
            )  # fmt: skip
            width[op] = n
            p, at_p = a, _rows_at(at, across)
            if copies != 1.0:
                p, at_p = rows, 0
                _raise(a, at, own, copies, p)
            _lift(p, at_p, across, own_reward, grid, pos, n, after)
            _copy_errors(a, at, own, copies, err)
            _lift_error(err, a, at + _HEAD + across, across, own_reward, outside, after, n * across)
            mix(after, own, law, lanes, n + 1, rows)
            if given:
                _given_indices(sigma, sigma_at[op], k, grid, n, sig)
                _clear(after, across, own_reward, own, grid, n, clear, reward_at[r])
            else:
                shape = cost_shape[c]
                _prices(costs, cost_at[c], shape[0], shape[1], laws, matrix, k, own, price)
                _indices(grid, n, rows, lanes, price, low, sig)
                for s in range(k):
                    sigma[sigma_at[op] + s] = sig[s]
            for u in range(0, lanes, LANES):
                store(err, u, load(rows, n * lanes + u))
                store(top, u, load(sig, u))
            _sort_down(sig, lanes, rank, caps)
            m = _cap_grid(grid, n, caps, lanes, x, source)

        for operand, states in ((left, own), (right, k)):
            if operand >= 0 and loc[operand] >= 0:
                refs[operand] -= 1
                if refs[operand] == 0:
                    release(heap, state, loc[operand], extent(heap, loc[operand], states))
        heap, to = allocate(heap, state, _block_size(m, lanes))
        _begin(heap, to, m, lanes)
        _thin(x, source, m, rows, lanes, sig, floor, err, top, eps, heap, to)
        loc[op] = to
    return heap
