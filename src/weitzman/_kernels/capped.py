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

Values live in one growing ``heap`` of floats as blocks ``[b (m), err (k), t (k * m)]``.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

BOX, JOIN = 0, 1
# columns of the integer table of operations
KIND, LEFT, RIGHT, LAW, REWARD, COST, STATES = range(7)
_SIZES = 64  # size classes of the allocator: powers of two
TOP = _SIZES  # slot of the allocator state that holds the first never-used position

_JIT = {"cache": True, "nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}


def new_heap(size: int) -> tuple[np.ndarray, np.ndarray]:
    """An empty heap and the state of its allocator (heads of the free lists, then the top)."""
    state = np.full(_SIZES + 1, -1, np.int64)
    state[TOP] = 0
    return np.empty(size), state


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
def reservation(grid, tail, m, cost):
    """Root in x of E[(W - x)^+] = cost, where ``tail[j]`` = P(W >= grid[j]).

    Areas under the tail are summed from the top, so that nothing cancels. A free box gets the
    smallest solution: the top of the support. Minus infinity when W never is a number.
    """
    if cost <= 0.0:
        for j in range(m - 1, -1, -1):
            if tail[j] > 0.0:
                return grid[j]
        return -np.inf
    area = 0.0
    for j in range(m - 1, 0, -1):
        grown = area + tail[j] * (grid[j] - grid[j - 1])
        if grown >= cost:
            return max(grid[j] - (cost - area) / tail[j], grid[j - 1])
        area = grown
    if m == 0 or tail[0] <= 0.0:
        return -np.inf
    return grid[0] - (cost - area) / tail[0]


@njit(**_JIT)
def _mix(law, at, rows, cols, after, m, out):
    """out[s, :m] = sum_y law[s, y] * after[y, :m], eight states y at a time."""
    for s in range(rows):
        p = law[at + s * cols : at + (s + 1) * cols]
        o = out[s]
        y = 0
        if cols >= 8:
            p0, p1, p2, p3, p4, p5, p6, p7 = p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]
            a0, a1, a2, a3 = after[0], after[1], after[2], after[3]
            a4, a5, a6, a7 = after[4], after[5], after[6], after[7]
            for j in range(m):
                o[j] = (
                    p0 * a0[j] + p1 * a1[j] + p2 * a2[j] + p3 * a3[j]
                    + p4 * a4[j] + p5 * a5[j] + p6 * a6[j] + p7 * a7[j]
                )  # fmt: skip
            y = 8
        else:
            p0, a0 = p[0], after[0]
            for j in range(m):
                o[j] = p0 * a0[j]
            y = 1
        while y + 8 <= cols:
            p0, p1, p2, p3 = p[y], p[y + 1], p[y + 2], p[y + 3]
            p4, p5, p6, p7 = p[y + 4], p[y + 5], p[y + 6], p[y + 7]
            a0, a1, a2, a3 = after[y], after[y + 1], after[y + 2], after[y + 3]
            a4, a5, a6, a7 = after[y + 4], after[y + 5], after[y + 6], after[y + 7]
            for j in range(m):
                o[j] += (
                    p0 * a0[j] + p1 * a1[j] + p2 * a2[j] + p3 * a3[j]
                    + p4 * a4[j] + p5 * a5[j] + p6 * a6[j] + p7 * a7[j]
                )  # fmt: skip
            y += 8
        while y < cols:
            p0, a0 = p[y], after[y]
            for j in range(m):
                o[j] += p0 * a0[j]
            y += 1


@njit(**_JIT)
def _thin(grid, tail, m, k, eps, weight, keep):
    """Choose the breakpoints to keep; returns how many.

    Dropping those strictly between two kept ones, a and c, moves x -> E max(x, kappa_s) up by at
    most (mass_s between a and c) * (c - a) / 4. ``weight`` is room for the largest mass over the
    states at each breakpoint.
    """
    if m <= 2:
        for j in range(m):
            keep[j] = j
        return m
    weight[:m] = 0.0
    for s in range(k):
        t = tail[s]
        for j in range(m - 1):
            weight[j] = max(weight[j], t[j] - t[j + 1])
    keep[0] = 0
    n, last, mass = 1, 0, 0.0
    for j in range(1, m - 1):
        more = mass + weight[j]
        if more * (grid[j + 1] - grid[last]) <= 4.0 * eps:
            mass = more
        else:
            keep[n] = j
            n, last, mass = n + 1, j, 0.0
    keep[n] = m - 1
    return n + 1


@njit(**_JIT)
def _store(grid, tail, k, keep, n, err, heap, at):
    """Write the kept breakpoints to the heap; add what thinning cost to the error per state."""
    for t in range(n):
        heap[at + t] = grid[keep[t]]
    e, body = at + n, at + n + k
    heap[e : e + k] = err[:k]
    for s in range(k):
        row = tail[s]
        o = body + s * n
        worst = 0.0
        heap[o] = row[keep[0]]
        for t in range(1, n):
            a, c = keep[t - 1], keep[t]
            if c - a == 1:
                heap[o + t] = row[c]
            else:
                area = 0.0
                for j in range(a + 1, c + 1):
                    area += row[j] * (grid[j] - grid[j - 1])
                span = grid[c] - grid[a]
                heap[o + t] = min(max(area / span, row[c]), row[a + 1])
                worst = max(worst, (row[a + 1] - row[c]) * span * 0.25)
        heap[e + s] += worst


@njit(inline="always", **_JIT)
def _top(heap, body, m, y):
    """Position of the highest breakpoint that state y can reach, or -1."""
    j = m - 1
    while j >= 0 and heap[body + y * m + j] <= 0.0:
        j -= 1
    return j


@njit(**_JIT)
def _box_grid(x, at, mx, rewards, bare, low, grid, pos, where):
    """Breakpoints of max(reward, X): the rewards and those of X above them all.

    ``pos[j]`` is the first breakpoint of X not below ``grid[j]``; ``where[q]`` the place of the
    q-th reward, -1 when it lies below ``low`` and nobody looks. ``bare``: some state has no
    reward, so that all of X counts.
    """
    i, q, n = 0, 0, 0
    while q < rewards.size and rewards[q] < low:
        where[q] = -1
        q += 1
    if q == 0 and not bare:  # what lies under the lowest reward is never reached
        floor = rewards[0]
    else:
        floor = low
    while i < mx and x[at + i] < floor:
        i += 1
    while i < mx or q < rewards.size:
        pos[n] = i
        if q < rewards.size and (i >= mx or rewards[q] <= x[at + i]):
            grid[n] = rewards[q]
            if i < mx and x[at + i] == rewards[q]:
                i += 1
            where[q] = n
            q += 1
        else:
            grid[n] = x[at + i]
            i += 1
        n += 1
    return n


@njit(**_JIT)
def _cap_grid(grid, n, sigma, order, k, low, capped, source, limit):
    """Breakpoints of min(W, sigma): those of W below the largest index, and the indices.

    ``source[j]`` is the first breakpoint of W not below ``capped[j]``; state s reaches up to
    ``limit[s]`` (-1: nowhere).
    """
    if k <= 32:
        for s in range(k):
            i = s
            while i > 0 and sigma[order[i - 1]] > sigma[s]:
                order[i] = order[i - 1]
                i -= 1
            order[i] = s
    else:
        order[:k] = np.argsort(sigma[:k], kind="mergesort")
    q = 0
    while q < k and sigma[order[q]] < low or q < k and sigma[order[q]] == -np.inf:
        limit[order[q]] = -1
        q += 1
    i, m = 0, 0
    while q < k:
        s = order[q]
        while i < n and grid[i] < sigma[s]:
            capped[m] = grid[i]
            source[m] = i
            m += 1
            i += 1
        capped[m] = sigma[s]
        source[m] = i
        if i < n and grid[i] == sigma[s]:
            i += 1
        while q < k and sigma[order[q]] == sigma[s]:
            limit[order[q]] = m
            q += 1
        m += 1
    return m


@njit(**_JIT)
def _join_grid(a, at, ma, b, bt, mb, low, grid, pos_a, pos_b):
    i, j, n = 0, 0, 0
    while i < ma and a[at + i] < low:
        i += 1
    while j < mb and b[bt + j] < low:
        j += 1
    while i < ma or j < mb:
        pos_a[n] = i
        pos_b[n] = j
        if j >= mb or (i < ma and a[at + i] <= b[bt + j]):
            grid[n] = a[at + i]
            if j < mb and a[at + i] == b[bt + j]:
                j += 1
            i += 1
        else:
            grid[n] = b[bt + j]
            j += 1
        n += 1
    return n


@njit(**_JIT)
def _join_error(a, at, ma, ca, b, bt, mb, cb, k, err):
    """Error bounds of the larger of A^ca and B^cb, per state.

    Replacing the values one at a time, best first, by their thinned versions: an error in a value
    matters only while those before it stay below the top of its support. For ``copies`` of one
    value that sums to P(max >= top) / P(one >= top).
    """
    for y in range(k):
        ra, rb = at + ma + k, bt + mb + k
        ja, jb = _top(a, ra, ma, y), _top(b, rb, mb, y)
        ea, eb = a[at + ma + y], b[bt + mb + y]
        if ja >= 0:
            t = a[ra + y * ma + ja]
            ea *= _power(t, ca) / t
        if jb >= 0:
            t = b[rb + y * mb + jb]
            eb *= _power(t, cb) / t
        if ja >= 0 and jb >= 0:
            xa, xb = a[at + ja], b[bt + jb]
            if xa >= xb:
                j = np.searchsorted(a[at : at + ma], xb)
                eb *= 1.0 - _power(a[ra + y * ma + j], ca)
            else:
                j = np.searchsorted(b[bt : bt + mb], xa)
                ea *= 1.0 - _power(b[rb + y * mb + j], cb)
        err[y] = ea + eb


@njit(**_JIT)
def sweep(
    order, ops, powers, floors, laws, law_at, rewards, rank, rank_at, level_at, costs, cost_at,
    cost_shape, low, outside, eps, loc, size, refs, shared, sigma, sigma_at, width, heap, state,
):  # fmt: skip
    """Carry out the operations ``order`` in turn; returns the heap, which may have moved.

    An operand with ``loc < 0`` lies in ``shared`` at ``-1 - loc``; all others in ``heap``, where a
    block is given back after its last use. Rewards come as sorted levels and a rank per state
    (-1: none). ``width`` receives the number of columns of each matrix product, ``sigma`` the
    indices.
    """
    room, kmax = 256, 1
    grid, capped, weight = np.empty(room), np.empty(room), np.empty(room)
    pos, source, keep = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    after, mixed = np.empty((kmax, room)), np.empty((kmax, room))
    err, sig = np.empty(kmax), np.empty(kmax)
    limit, where, byindex = np.empty(1, np.int64), np.empty(1, np.int64), np.empty(1, np.int64)
    nothing = np.empty(0)
    for step in range(order.size):
        op = order[step]
        k = ops[op, STATES]
        left, right = ops[op, LEFT], ops[op, RIGHT]
        a, at, ma, b, bt, mb = nothing, 0, 0, nothing, 0, 0
        if left >= 0:
            at, ma = loc[left], size[left]
            a = heap if at >= 0 else shared
            at = at if at >= 0 else -1 - at
        own = k  # states of the box itself, for a join those of its operands
        need, extra = ma, 0
        if ops[op, KIND] == BOX:
            r = ops[op, REWARD]
            own = rank_at[r + 1] - rank_at[r]
            extra = level_at[r + 1] - level_at[r]
            need += extra + k
        else:
            bt, mb = loc[right], size[right]
            b = heap if bt >= 0 else shared
            bt = bt if bt >= 0 else -1 - bt
            need += mb
        if need > room or max(own, k, extra) > kmax:
            room, kmax = max(need + need // 2, room), max(own, k, extra, kmax)
            grid, capped, weight = np.empty(room), np.empty(room), np.empty(room)
            pos, source = np.empty(room, np.int64), np.empty(room, np.int64)
            keep = np.empty(room, np.int64)
            after, mixed = np.empty((kmax, room)), np.empty((kmax, room))
            err, sig = np.empty(kmax), np.empty(kmax)
            limit, where = np.empty(kmax, np.int64), np.empty(kmax, np.int64)
            byindex = np.empty(kmax, np.int64)

        if ops[op, KIND] == JOIN:
            ca, cb = powers[op, 0], powers[op, 1]
            m = _join_grid(a, at, ma, b, bt, mb, max(low, floors[op]), capped, pos, source)
            for y in range(k):
                ra, rb, o = at + ma + k + y * ma, bt + mb + k + y * mb, after[y]
                for j in range(m):
                    ta = _power(a[ra + pos[j]], ca) if pos[j] < ma else 0.0
                    tb = _power(b[rb + source[j]], cb) if source[j] < mb else 0.0
                    o[j] = ta + tb * (1.0 - ta)
            if eps > 0.0:
                _join_error(a, at, ma, ca, b, bt, mb, cb, k, err)
            else:
                err[:k] = 0.0
        else:
            law, c = law_at[ops[op, LAW]], ops[op, COST]
            levels = rewards[level_at[r] : level_at[r + 1]]
            ranks = rank[rank_at[r] : rank_at[r + 1]]
            copies = powers[op, 0]
            bare = False
            for y in range(own):
                bare = bare or ranks[y] < 0
            n = _box_grid(a, at, ma, levels, bare, low, grid, pos, where)
            width[op] = n
            for y in range(own):
                o = after[y]
                j0 = where[ranks[y]] + 1 if ranks[y] >= 0 else 0
                for j in range(j0):
                    o[j] = 1.0
                body = at + ma + own + y * ma
                for j in range(j0, n):
                    o[j] = _power(a[body + pos[j]], copies) if pos[j] < ma else 0.0
            _mix(laws, law, k, own, after, n, mixed)
            err[:k] = 0.0
            if eps > 0.0 and left >= 0:
                for y in range(own):
                    body = at + ma + own
                    j = _top(a, body, ma, y)
                    least = outside
                    if ranks[y] >= 0:
                        least = max(outside, levels[ranks[y]])
                    if j >= 0 and a[at + j] > least:
                        t = a[body + y * ma + j]
                        e = a[at + ma + y] * _power(t, copies) / t
                        if e > 0.0:
                            for s in range(k):
                                err[s] += laws[law + s * own + y] * e
            rows, cols = cost_shape[c, 0], cost_shape[c, 1]
            for s in range(k):
                i = cost_at[c] + (s if rows > 1 else 0) * cols
                price = costs[i]
                if cols > 1:
                    price = 0.0
                    for y in range(own):
                        price += laws[law + s * own + y] * costs[i + y]
                found = reservation(grid, mixed[s], n, price)
                sig[s] = found if found >= low else -np.inf
                sigma[sigma_at[op] + s] = sig[s]
            m = _cap_grid(grid, n, sig, byindex, k, low, capped, source, limit)
            for s in range(k):
                w, o = mixed[s], after[s]
                for j in range(limit[s] + 1):
                    o[j] = w[source[j]]
                for j in range(limit[s] + 1, m):
                    o[j] = 0.0

        kept = _thin(capped, after, m, k, eps, weight, keep)
        heap, place = _allocate(heap, state, kept + k + k * kept)
        if kept > 0:
            _store(capped, after, k, keep, kept, err, heap, place)
        else:
            heap[place : place + k] = err[:k]
        loc[op], size[op] = place, kept
        if left >= 0 and loc[left] >= 0:
            refs[left] -= 1
            if refs[left] == 0:
                _release(heap, state, loc[left], ma + own + own * ma)
        if right >= 0 and loc[right] >= 0:
            refs[right] -= 1
            if refs[right] == 0:
                _release(heap, state, loc[right], size[right] + k + k * size[right])
    return heap
