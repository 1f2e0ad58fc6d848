r"""Arithmetic of capped values: the heart of the package.

A *value* is a random variable :math:`\kappa_{|y}` for every state :math:`y` of a conditioning box.
It is held as breakpoints ``b[0] < ... < b[m-1]`` and tails ``t[y, j] = P(kappa_y >= b[j])``. Mass
missing from ``t[y, 0]`` lies at minus infinity (no reward, or below a floor that nobody looks
under). Tails rather than distribution functions, so that rare prizes keep all their digits.

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

Values live in one growing ``heap`` of floats. To save copying, a block keeps the rows as they were
computed and, for each breakpoint, the column that holds its tails:
``[rows (k * w), b (w), column (w), err (k), reach (k)]``, where w is the room for columns and state
y reaches the first ``reach[y]`` breakpoints only.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

BOX, JOIN = 0, 1
# columns of the integer table of operations
KIND, LEFT, RIGHT, LAW, REWARD, COST, STATES, USER = range(8)
MIXED_USERS, OUTSIDE_USER = -1, -2  # in USER, besides the row of rewards of the only user
_SIZES = 64  # size classes of the allocator: powers of two
TOP = _SIZES  # slot of the allocator state that holds the first never-used position

_JIT = {"cache": True, "nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}


def new_heap(size: int) -> tuple[np.ndarray, np.ndarray]:
    """An empty heap and the state of its allocator (heads of the free lists, then the top)."""
    state = np.full(_SIZES + 1, -1, np.int64)
    state[TOP] = 0
    return np.empty(size), state


@njit(inline="always", **_JIT)
def block_size(w, k):
    return k * w + 2 * w + 2 * k


@njit(inline="always", **_JIT)
def _size_class(size):
    c = 3
    while (1 << c) < size:
        c += 1
    return c


@njit(**_JIT)
def _allocate(heap, state, size):
    """Position of a block of at least ``size`` floats; the heap is replaced when it must grow."""
    c = _size_class(size)
    at = state[c]
    if at >= 0:
        state[c] = np.int64(heap[at])
        return heap, at
    at = state[TOP]
    end = at + (1 << c)
    if end > heap.size:
        bigger = np.empty(max(end, 2 * heap.size))
        bigger[:at] = heap[:at]
        heap = bigger
    state[TOP] = end
    return heap, at


@njit(**_JIT)
def _release(heap, state, at, size):
    c = _size_class(size)
    heap[at] = state[c]
    state[c] = at


@njit(inline="always", **_JIT)
def _power(tail, copies):
    """P(max of ``copies`` independent values >= x) from P(one >= x)."""
    if copies == 1.0:
        return tail
    return -math.expm1(copies * math.log1p(-tail))


@njit(**_JIT)
def reservation(grid, tails, s, m, cost):
    """Root in x of E[(W - x)^+] = cost, where ``tails[s, j]`` = P(W >= grid[j]).

    Also the number of breakpoints below the root. Areas under the tail are summed from the top, so
    that nothing cancels. A free box gets the smallest solution: the top of the support. Minus
    infinity when W never is a number.
    """
    if cost <= 0.0:
        for j in range(m - 1, -1, -1):
            if tails[s, j] > 0.0:
                return grid[j], j
        return -np.inf, 0
    area = 0.0
    for j in range(m - 1, 0, -1):
        grown = area + tails[s, j] * (grid[j] - grid[j - 1])
        if grown >= cost:
            x = grid[j] - (cost - area) / tails[s, j]
            return (x, j) if x > grid[j - 1] else (grid[j - 1], j - 1)
        area = grown
    if m == 0 or tails[s, 0] <= 0.0:
        return -np.inf, 0
    return grid[0] - (cost - area) / tails[s, 0], 0


@njit(**_JIT)
def mix(law, at, rows, cols, after, m, out):
    """out[s, :m] = sum_y law[s, y] * after[y, :m], two rows and eight columns at a time.

    Two-dimensional views rather than slices of rows: a slice costs a reference count.
    """
    p = law[at : at + rows * cols].reshape((rows, cols))
    s = 0
    while s + 2 <= rows:
        u, y = s + 1, 0
        while y + 8 <= cols:
            p0, p1, p2, p3 = p[s, y], p[s, y + 1], p[s, y + 2], p[s, y + 3]
            p4, p5, p6, p7 = p[s, y + 4], p[s, y + 5], p[s, y + 6], p[s, y + 7]
            q0, q1, q2, q3 = p[u, y], p[u, y + 1], p[u, y + 2], p[u, y + 3]
            q4, q5, q6, q7 = p[u, y + 4], p[u, y + 5], p[u, y + 6], p[u, y + 7]
            y1, y2, y3, y4, y5, y6, y7 = y + 1, y + 2, y + 3, y + 4, y + 5, y + 6, y + 7
            if y == 0:
                for j in range(m):
                    b0, b1, b2, b3 = after[y, j], after[y1, j], after[y2, j], after[y3, j]
                    b4, b5, b6, b7 = after[y4, j], after[y5, j], after[y6, j], after[y7, j]
                    out[s, j] = p0*b0 + p1*b1 + p2*b2 + p3*b3 + p4*b4 + p5*b5 + p6*b6 + p7*b7  # fmt: skip
                    out[u, j] = q0*b0 + q1*b1 + q2*b2 + q3*b3 + q4*b4 + q5*b5 + q6*b6 + q7*b7  # fmt: skip
            else:
                for j in range(m):
                    b0, b1, b2, b3 = after[y, j], after[y1, j], after[y2, j], after[y3, j]
                    b4, b5, b6, b7 = after[y4, j], after[y5, j], after[y6, j], after[y7, j]
                    out[s, j] += p0*b0 + p1*b1 + p2*b2 + p3*b3 + p4*b4 + p5*b5 + p6*b6 + p7*b7  # fmt: skip
                    out[u, j] += q0*b0 + q1*b1 + q2*b2 + q3*b3 + q4*b4 + q5*b5 + q6*b6 + q7*b7  # fmt: skip
            y += 8
        while y < cols:
            p0, q0 = p[s, y], p[u, y]
            if y == 0:
                for j in range(m):
                    out[s, j] = p0 * after[y, j]
                    out[u, j] = q0 * after[y, j]
            else:
                for j in range(m):
                    out[s, j] += p0 * after[y, j]
                    out[u, j] += q0 * after[y, j]
            y += 1
        s += 2
    if s < rows:
        for y in range(cols):
            p0 = p[s, y]
            if y == 0:
                for j in range(m):
                    out[s, j] = p0 * after[y, j]
            else:
                for j in range(m):
                    out[s, j] += p0 * after[y, j]


@njit(**_JIT)
def _floors(user, k, levels, level_at, rank, rank_at, outside, low, floor):
    """Below what the user of a value does not look, per state, and the least of these."""
    least = np.inf
    for s in range(k):
        f = low
        if user >= 0:
            r = rank[rank_at[user] + s]
            if r >= 0:
                f = max(f, levels[level_at[user] + r])
        elif user == OUTSIDE_USER:
            f = max(f, outside)
        floor[s] = f
        least = min(least, f)
    return least


@njit(**_JIT)
def _masses(grid, n, tails, k, floor, below, weight):
    """weight[j] = largest P(kappa_s = grid[j]) over the states s whose floor lies under it.

    Only the first ``below[s]`` breakpoints carry mass of state s in this way; the rest is capped.
    """
    weight[:n] = 0.0
    for s in range(k):
        lo, span = 0, below[s]  # first breakpoint above the floor, by bisection without branches
        while span > 0:
            half = (span + 1) >> 1
            lo += half * (grid[lo + half - 1] <= floor[s])
            span -= half
        hi = below[s]
        for i in range(n - 1):
            step = tails[s, i] - tails[s, i + 1]
            step = step if lo <= i and i < hi else 0.0
            weight[i] = step if step > weight[i] else weight[i]


@njit(**_JIT)
def _cap(grid, n, tails, sigma, below, order, k, floor, weight, capped, mass, source, limit):
    """Breakpoints of min(W, sigma): those of W below the largest index, and the indices.

    ``source[j]`` is the first breakpoint of W not below ``capped[j]``, ``mass[j]`` the largest
    mass there; state s reaches up to ``limit[s]`` (-1: nowhere).
    """
    if k <= 32:
        for s in range(k):  # rank by counting: no branches to guess wrongly
            x, i = sigma[s], 0
            for u in range(k):
                i += (sigma[u] < x) | ((sigma[u] == x) & (u < s))
            order[i] = s
    else:
        order[:k] = np.argsort(sigma[:k], kind="mergesort")
    q = 0
    while q < k and sigma[order[q]] == -np.inf:
        limit[order[q]] = -1
        q += 1
    i, m = 0, 0
    while q < k:
        s = order[q]
        x = sigma[s]
        while i < below[s]:
            capped[m], source[m], mass[m] = grid[i], i, weight[i]
            m += 1
            i += 1
        capped[m], source[m], mass[m] = x, i, 0.0
        if i < n and grid[i] == x:
            mass[m] = weight[i]
            i += 1
        while q < k and sigma[order[q]] == x:
            s = order[q]
            if x > floor[s]:
                mass[m] = max(mass[m], tails[s, source[m]])
            limit[s] = m
            q += 1
        m += 1
    return m


@njit(**_JIT)
def _thin(grid, mass, m, eps, keep, rank):
    """Choose the breakpoints to keep; returns how many. ``rank[j]``: kept ones up to j.

    Dropping those strictly between two kept ones, a and c, moves x -> E max(x, kappa_s) up by at
    most (mass_s between a and c) * (c - a) / 4.
    """
    if m == 0:
        return 0
    keep[0], rank[0] = 0, 1
    n, last, dropped, bound = 1, 0, 0.0, 4.0 * eps
    for j in range(1, m - 1):
        more = dropped + mass[j]
        if more * (grid[j + 1] - grid[last]) <= bound:
            dropped = more
        else:
            keep[n] = j
            n, last, dropped = n + 1, j, 0.0
        rank[j] = n
    if m > 1:
        keep[n] = m - 1
        n += 1
        rank[m - 1] = n
    return n


@njit(**_JIT)
def _store(grid, source, n, k, floor, limit, keep, rank, kept, err, heap, to, w):
    """Finish a block whose rows are in place: breakpoints, columns, errors, reach.

    A breakpoint that takes over dropped ones gets new tails: the average over the interval below
    it. They go to its own column, or to a fresh one where another breakpoint uses the same.
    """
    b, column, e, reach = to + k * w, to + k * w + w, to + k * w + 2 * w, to + k * w + 2 * w + k
    for s in range(k):
        heap[e + s] = err[s]
        heap[reach + s] = rank[limit[s]] if limit[s] >= 0 else 0
    free = n
    for t in range(kept):
        c = keep[t]
        heap[b + t] = grid[c]
        heap[column + t] = source[c]
        if t == 0 or c - keep[t - 1] == 1:
            continue
        a, to_column = keep[t - 1], source[c]
        if source[a] == to_column or (t + 1 < kept and source[keep[t + 1]] == to_column):
            to_column = free
            free += 1
            for s in range(k):
                heap[to + s * w + to_column] = heap[to + s * w + source[c]]
        heap[column + t] = to_column
        for s in range(k):  # plain arithmetic: what is capped or below the floor counts as zero
            row, bottom = to + s * w, max(grid[a], floor[s])
            area, first, last, left = 0.0, 0.0, 0.0, grid[a]
            for j in range(a + 1, c + 1):
                last = heap[row + source[j]] * (j <= limit[s])
                step = max(grid[j] - max(left, bottom), 0.0)
                area += last * step
                first = max(first, last * (step > 0.0))
                left = grid[j]
            span = max(grid[c] - bottom, 0.0)
            average = area / span if span > 0.0 else last
            average = min(max(average, last), max(first, last))
            heap[row + to_column] = average
            heap[e + s] = max(heap[e + s], err[s] + (first - last) * span * 0.25)
            heap[reach + s] = max(heap[reach + s], (t + 1.0) * (average > 0.0))


@njit(**_JIT)
def _box_grid(x, at, own, w, mx, rewards, bare, low, grid, pos, where, place):
    """Breakpoints of max(reward, X): the rewards, and those of X above the lowest of them.

    ``pos[j]`` is the column of X for ``grid[j]``, that of its first breakpoint not below;
    ``where[q]`` the place of the q-th reward, -1 when it lies below ``low`` and nobody looks;
    ``place[i]`` the place of the i-th breakpoint of X. ``bare``: some state has no reward, so that
    all of X counts.
    """
    b, column = at + own * w, at + own * w + w
    i, q, n = 0, 0, 0
    while q < rewards.size and rewards[q] < low:
        where[q] = -1
        q += 1
    floor = rewards[0] if q == 0 and not bare else low
    while i < mx and x[b + i] < floor:
        place[i] = -1
        i += 1
    while i < mx:
        here = x[b + i]
        c = np.uint64(x[column + i])
        while q < rewards.size and rewards[q] < here:
            grid[n], pos[n], where[q] = rewards[q], c, n
            q += 1
            n += 1
        grid[n], pos[n], place[i] = here, c, n
        if q < rewards.size and rewards[q] == here:
            where[q] = n
            q += 1
        n += 1
        i += 1
    while q < rewards.size:
        grid[n], pos[n], where[q] = rewards[q], np.uint64(0), n
        q += 1
        n += 1
    return n


@njit(**_JIT)
def _lift(x, y, pos, copies, ones, top, n, after):
    """P(max(reward, X^copies) >= grid[j]): one up to the reward, then the tail of X, then zero."""
    if copies == 1.0:  # one loop over all, since short loops with odd ends cost more than they save
        for j in range(n):
            t = x[y, pos[j]] if j < top else 0.0
            after[y, j] = 1.0 if j < ones else t
    else:
        for j in range(n):
            t = _power(x[y, pos[j]], copies) if j < top else 0.0
            after[y, j] = 1.0 if j < ones else t


@njit(inline="always", **_JIT)
def _highest(a, at, k, w, y):
    """The highest breakpoint that state y can reach, and its probability; (-inf, 0) if none."""
    i = np.int64(a[at + k * w + 2 * w + k + y]) - 1
    if i < 0:
        return -np.inf, 0.0
    return a[at + k * w + i], a[at + y * w + np.int64(a[at + k * w + w + i])]


@njit(inline="always", **_JIT)
def _tail(a, at, k, w, y, x):
    """P(value >= x) in state y."""
    lo, hi = 0, np.int64(a[at + k * w + 2 * w + k + y])
    reach = hi
    while lo < hi:
        mid = (lo + hi) >> 1
        if a[at + k * w + mid] < x:
            lo = mid + 1
        else:
            hi = mid
    return a[at + y * w + np.int64(a[at + k * w + w + lo])] if lo < reach else 0.0


@njit(inline="always", **_JIT)
def points(a, at, k, w):
    """Where the breakpoints of a value start."""
    return at + k * w


@njit(inline="always", **_JIT)
def tail_at(a, at, k, w, y, i):
    """P(value >= breakpoint i) in state y."""
    if i >= a[at + k * w + 2 * w + k + y]:
        return 0.0
    return a[at + y * w + np.int64(a[at + k * w + w + i])]


@njit(**_JIT)
def _mix_error(a, at, w, own, copies, ranks, levels, outside, laws, law, k, err):
    """Errors of X per own state, weighted by the law where X can still matter."""
    for y in range(own):
        e = a[at + own * w + 2 * w + y]
        if e > 0.0:
            least = outside if ranks[y] < 0 else max(outside, levels[ranks[y]])
            x, t = _highest(a, at, own, w, y)
            if x > least:
                e *= _power(t, copies) / t
                for s in range(k):
                    err[s] += laws[law + s * own + y] * e


@njit(**_JIT)
def _join_error(a, at, wa, ca, b, bt, wb, cb, k, err):
    """Error bounds of the larger of A^ca and B^cb, per state.

    Replacing the values one at a time, best first, by their thinned versions: an error in a value
    matters only while those before it stay below the top of its support. For ``copies`` of one
    value that sums to P(max >= top) / P(one >= top).
    """
    for y in range(k):
        ea, eb = a[at + k * wa + 2 * wa + y], b[bt + k * wb + 2 * wb + y]
        xa, ta = _highest(a, at, k, wa, y)
        xb, tb = _highest(b, bt, k, wb, y)
        if ta > 0.0:
            ea *= _power(ta, ca) / ta
        if tb > 0.0:
            eb *= _power(tb, cb) / tb
        if xa >= xb:
            eb *= 1.0 - _power(_tail(a, at, k, wa, y, xb), ca)
        else:
            ea *= 1.0 - _power(_tail(b, bt, k, wb, y, xa), cb)
        err[y] = ea + eb


@njit(**_JIT)
def _join(a, at, wa, ma, ca, b, bt, wb, mb, cb, k, low, grid, out, to, w):
    """Breakpoints and tails of max(A^ca, B^cb), from ``low`` up; returns how many."""
    xa, xb = at + k * wa, bt + k * wb
    i, j, n = 0, 0, 0
    while i < ma and a[xa + i] < low:
        i += 1
    while j < mb and b[xb + j] < low:
        j += 1
    while i < ma or j < mb:
        x = a[xa + i] if j >= mb or (i < ma and a[xa + i] <= b[xb + j]) else b[xb + j]
        grid[n] = x
        for y in range(k):
            ta = tb = 0.0
            if i < a[xa + 2 * wa + k + y]:
                ta = _power(a[at + y * wa + np.int64(a[xa + wa + i])], ca)
            if j < b[xb + 2 * wb + k + y]:
                tb = _power(b[bt + y * wb + np.int64(b[xb + wb + j])], cb)
            out[to + y * w + n] = ta + tb * (1.0 - ta)
        if i < ma and a[xa + i] == x:
            i += 1
        if j < mb and b[xb + j] == x:
            j += 1
        n += 1
    return n


@njit(inline="always", **_JIT)
def _price(costs, at, rows, cols, laws, law, own, s):
    """Expected cost after the parent showed s."""
    i = at + (s if rows > 1 else 0) * cols
    if cols == 1:
        return costs[i]
    price = 0.0
    for y in range(own):
        price += laws[law + s * own + y] * costs[i + y]
    return price


@njit(**_JIT)
def mean_costs(law, cost, laws, law_at, law_shape, costs, cost_at, cost_shape, start):
    """Expected cost of each box after each state of its parent; those of box i at ``start[i]``."""
    out = np.empty(start[-1])
    for i in range(law.size):
        c, rows, own = cost[i], law_shape[law[i], 0], law_shape[law[i], 1]
        for s in range(rows):
            out[start[i] + s] = _price(
                costs, cost_at[c], cost_shape[c, 0], cost_shape[c, 1], laws, law_at[law[i]], own, s
            )
    return out


@njit(**_JIT)
def sweep(
    order, ops, powers, laws, law_at, rewards, rank, rank_at, level_at, costs, cost_at, cost_shape,
    low, outside, eps, given, clear, loc, size, room, refs, shared, sigma, sigma_at, width, heap,
    state,
):  # fmt: skip
    """Carry out the operations ``order`` in turn; returns the heap, which may have moved.

    The value of an operation has ``size`` breakpoints in a block with ``room`` columns at ``loc``.
    An operand with ``loc < 0`` lies in ``shared`` at ``-1 - loc``; all others in ``heap``, where a
    block is given back after its last use. Rewards come as sorted levels and a rank per state
    (-1: none). ``width`` receives the number of columns of each matrix product, ``sigma`` the
    indices. If the indices are ``given`` instead, ``clear`` receives the probability that no child
    reaches the reward of each state. What lies below ``low`` is left out.
    """
    most, kmax = 0, 0
    grid, capped, weight, mass = np.empty(0), np.empty(0), np.empty(0), np.empty(0)
    err, sig, floor = np.empty(0), np.empty(0), np.empty(0)
    pos, source, place = np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64)
    keep, kept_to = np.empty(0, np.int64), np.empty(0, np.int64)
    limit, where = np.empty(0, np.int64), np.empty(0, np.int64)
    byindex, below = np.empty(0, np.int64), np.empty(0, np.int64)
    after = np.empty((0, 0))
    nothing = np.zeros(8)
    for step in range(order.size):
        op = order[step]
        k = ops[op, STATES]
        left, right = ops[op, LEFT], ops[op, RIGHT]
        a, at, ma, wa, b, bt, mb, wb = nothing, 0, 0, 0, nothing, 0, 0, 0
        own, extra = k, 0  # states of the box itself; for a join those of its operands
        r = ops[op, REWARD]
        if ops[op, KIND] == BOX:
            own = rank_at[r + 1] - rank_at[r]
            extra = level_at[r + 1] - level_at[r] + k
        if left >= 0:
            at, ma, wa = loc[left], size[left], room[left]
            a = heap if at >= 0 else shared
            at = at if at >= 0 else -1 - at
        if right >= 0:
            bt, mb, wb = loc[right], size[right], room[right]
            b = heap if bt >= 0 else shared
            bt = bt if bt >= 0 else -1 - bt
        w = ma + mb + extra
        if w > most or max(own, k, extra) > kmax:
            most, kmax = max(2 * w, most), max(own, k, extra, kmax)
            grid, capped = np.empty(most), np.empty(most)
            weight, mass = np.empty(most), np.empty(most)
            err, sig, floor = np.empty(kmax), np.empty(kmax), np.empty(kmax)
            pos, source = np.empty(most, np.uint64), np.empty(most, np.int64)
            place = np.empty(most, np.int64)
            keep, kept_to = np.empty(most, np.int64), np.empty(most, np.int64)
            limit, where = np.empty(kmax, np.int64), np.empty(kmax, np.int64)
            byindex, below = np.empty(kmax, np.int64), np.empty(kmax, np.int64)
            after = np.empty((kmax, most))
        least = _floors(ops[op, USER], k, rewards, level_at, rank, rank_at, outside, low, floor)
        heap, to = _allocate(heap, state, block_size(w, k))
        rows = heap[to : to + k * w].reshape((k, w))
        err[:k] = 0.0

        if ops[op, KIND] == JOIN:
            ca, cb = powers[op, 0], powers[op, 1]
            m = _join(a, at, wa, ma, ca, b, bt, wb, mb, cb, k, least, capped, heap, to, w)
            n = m
            for y in range(k):
                limit[y] = m - 1
                while limit[y] >= 0 and heap[to + y * w + limit[y]] <= 0.0:
                    limit[y] -= 1
                below[y] = m - 1
            _masses(capped, m, rows, k, floor, below, mass)
            for j in range(m):
                source[j] = j
            if eps > 0.0:
                _join_error(a, at, wa, ca, b, bt, wb, cb, k, err)
        else:
            law, c, copies = law_at[ops[op, LAW]], ops[op, COST], powers[op, 0]
            levels = rewards[level_at[r] : level_at[r + 1]]
            ranks = rank[rank_at[r] : rank_at[r + 1]]
            bare = False
            for y in range(own):
                bare = bare or ranks[y] < 0
            n = _box_grid(a, at, own, wa, ma, levels, bare, low, grid, pos, where, place)
            width[op] = n
            x = a[at : at + own * wa].reshape((own, wa))
            for y in range(own):
                ones, top = where[ranks[y]] + 1 if ranks[y] >= 0 else 0, 0
                if left >= 0:
                    reach = np.int64(a[at + own * wa + 2 * wa + own + y])
                    top = place[reach - 1] + 1 if reach > 0 else 0
                _lift(x, y, pos, copies, ones, top, n, after)
                if given:
                    clear[rank_at[r] + y] = 1.0 - after[y, ones] if ones < n else 1.0
            mix(laws, law, k, own, after, n, rows)
            if eps > 0.0 and left >= 0:
                _mix_error(a, at, wa, own, copies, ranks, levels, outside, laws, law, k, err)
            per_parent, per_own = cost_shape[c, 0], cost_shape[c, 1]
            for s in range(k):
                if given:
                    found = sigma[sigma_at[op] + s]
                    below[s] = np.searchsorted(grid[:n], found)
                    if below[s] == n:  # above everything: no cap at all
                        found, below[s] = (grid[n - 1], n - 1) if n > 0 else (-np.inf, 0)
                else:
                    price = _price(costs, cost_at[c], per_parent, per_own, laws, law, own, s)
                    found, below[s] = reservation(grid, rows, s, n, price)
                if found < low:
                    found, below[s] = -np.inf, 0
                sig[s] = found
                if not given:
                    sigma[sigma_at[op] + s] = found
            _masses(grid, n, rows, k, floor, below, weight)
            m = _cap(
                grid, n, rows, sig, below, byindex, k, floor, weight, capped, mass, source, limit
            )

        kept = _thin(capped, mass, m, eps, keep, kept_to)
        _store(capped, source, n, k, floor, limit, keep, kept_to, kept, err, heap, to, w)
        loc[op], size[op], room[op] = to, kept, w
        if left >= 0 and loc[left] >= 0:
            refs[left] -= 1
            if refs[left] == 0:
                _release(heap, state, loc[left], block_size(wa, own))
        if right >= 0 and loc[right] >= 0:
            refs[right] -= 1
            if refs[right] == 0:
                _release(heap, state, loc[right], block_size(wb, k))
    return heap
