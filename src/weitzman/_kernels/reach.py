r"""The way back: how likely each box is opened, and each state chosen, under an index policy.

For an operation of the plan let :math:`G_y(x)` be the probability that the box it hangs under has
been opened and showed y, and that everything else (what was found above it, and the capped values
of all alternatives) is at most x. Then for a box v with index :math:`\sigma(s)`:

* it is opened after s with probability :math:`q_s = G_s(\sigma(s))`;
* what lies below it competes with :math:`H_y(x) = \sum_s P(s, y)\,G_s(\min(x, \sigma(s)))`: once
  opened, at least everything below its index stays closed for good;
* its state y is chosen with probability :math:`H_y(r(y))\,P(X_y < r(y))`, X its children;
* its children see :math:`G_y(x) = H_y(x)\,1[x \ge r(y)]`, and each of two joined values the
  distribution function of the other.

This holds for any indices, optimal or not. Everything is compared by *ranks* in one total order of
all indices and rewards, in which no two are equal: so ties are broken as the policy breaks them.
Of ``m`` copies, those before the one looked at must stay strictly below, the others may tie:
:math:`\sum_{j<m} F(x^-)^j F(x)^{m-1-j}`.

A block of G is ``[x (n), rows (k * n)]``: a step function that has the value of column j from x[j]
on, and zero below x[0].
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from .blocks import TOP, aligned, allocate, breakpoint, count, release, tail
from .lanes import pointer
from .operations import BOX, GIVEN, KIND, LAW, LEFT, REWARD, RIGHT, STATES

_JIT = {"cache": True, "nogil": True, "error_model": "numpy"}


@njit(**_JIT)
def _copies(above, least, m):
    """sum_{j < m} F(x^-)^j F(x)^(m - 1 - j), from the tails P(> x) <= P(>= x)."""
    if above >= 1.0:
        return 1.0 if m == 1.0 else 0.0
    power = math.exp((m - 1.0) * math.log1p(-above))
    share = (least - above) / (1.0 - above)
    d = math.log1p(-share) if share < 1.0 else -np.inf
    if d == 0.0:
        return m * power
    return power * (math.expm1(m * d) / math.expm1(d))


@njit(**_JIT)
def _merge(x, n, y, m, out):
    """Sorted union of two sorted lists, without doubles."""
    i, j, size = 0, 0, 0
    while i < n or j < m:
        if j >= m or (i < n and x[i] <= y[j]):
            v = x[i]
            i += 1
            if j < m and y[j] == v:
                j += 1
        else:
            v = y[j]
            j += 1
        out[size] = v
        size += 1
    return size


@njit(**_JIT)
def _below(x, n, v):
    """Number of entries of sorted x[:n] that are smaller than v."""
    lo, hi = 0, n
    while lo < hi:
        mid = (lo + hi) >> 1
        if x[mid] < v:
            lo = mid + 1
        else:
            hi = mid
    return lo


@njit(**_JIT)
def _above(a, at, k, v):
    """Number of breakpoints of a value that lie above v, and whether v is one itself."""
    lo, hi = 0, count(a, at)
    while lo < hi:
        mid = (lo + hi) >> 1
        if breakpoint(a, at, k, mid) > v:
            lo = mid + 1
        else:
            hi = mid
    return lo, lo < count(a, at) and breakpoint(a, at, k, lo) == v


@njit(**_JIT)
def _exceeds(a, at, k, y, above):
    """P(value is among its first ``above`` breakpoints from the top) in state y."""
    return min(tail(a, at, k, y, above - 1), 1.0) if above > 0 else 0.0


@njit(**_JIT)
def none_above(a, at, v, copies):
    """P(all of ``copies`` values of a root are at most v)."""
    t = _exceeds(a, at, 1, 0, _above(a, at, 1, v)[0])
    return math.exp(copies * math.log1p(-t)) if t < 1.0 else 0.0


@njit(**_JIT)
def keep_steps(x, rows, n, k, least):
    """Leave out columns that no row enters with a step above ``least``; how many stay."""
    step = np.zeros(n)
    for y in range(k):
        last = 0.0
        for j in range(n):
            step[j] = max(step[j], abs(rows[y, j] - last))
            last = rows[y, j]
    kept = 0
    for j in range(n):
        if step[j] > least:
            x[kept] = x[j]
            kept += 1
    for y in range(k):
        i = 0
        for j in range(n):
            if step[j] > least:
                rows[y, i] = rows[y, j]
                i += 1
    return kept


@njit(**_JIT)
def claim(heap, state, size):
    """Position of a block of at least ``size`` floats; the heap is replaced when it must grow."""
    if state[TOP] + 2 * size > heap.size:
        bigger = aligned(2 * (heap.size + size))
        bigger[: heap.size] = heap
        heap = bigger
    return heap, allocate(pointer(heap, 0), pointer(state, 0), size)


@njit(**_JIT)
def _put(x, rows, n, k, least, heap, state):
    n = keep_steps(x, rows, n, k, least)
    if n == 0:  # never reached
        return heap, 0, 0
    heap, at = claim(heap, state, n * (k + 1))
    heap[at : at + n] = x[:n]
    for y in range(k):
        heap[at + n * (y + 1) : at + n * (y + 2)] = rows[y, :n]
    return heap, at, n


@njit(**_JIT)
def times_copies(x, rows, n, k, a, at, copies):
    """Multiply by the chance that the other copies of a value stay below, on a finer grid.

    At a breakpoint of the value the copies before must be strictly below; just after it (half a
    rank) all of them may be there.
    """
    m = count(a, at)
    own = np.empty(2 * m)
    for i in range(m):
        own[2 * i] = breakpoint(a, at, k, m - 1 - i)
        own[2 * i + 1] = own[2 * i] + 0.5
    finer = np.empty(n + 2 * m)
    size = _merge(x, n, own, 2 * m, finer)
    out = np.zeros((k, size))
    for j in range(size):
        i = _below(x, n, finer[j] + 0.25) - 1
        if i >= 0:
            above, here = _above(a, at, k, finer[j])
            for y in range(k):
                if rows[y, i] > 0.0:
                    over = _exceeds(a, at, k, y, above)
                    least = _exceeds(a, at, k, y, above + 1) if here else over
                    out[y, j] = rows[y, i] * _copies(over, least, copies)
    return finer, out, size


@njit(**_JIT)
def _times_other(x, rows, n, k, a, at, copies):
    """Multiply by the distribution function of the larger of ``copies`` of another value."""
    m = count(a, at)
    other = np.empty(m)
    for i in range(m):
        other[i] = breakpoint(a, at, k, m - 1 - i)
    finer = np.empty(n + m)
    size = _merge(x, n, other, m, finer)
    out = np.zeros((k, size))
    i = -1
    for j in range(size):
        while i + 1 < n and x[i + 1] <= finer[j]:
            i += 1
        if i >= 0:
            above, _ = _above(a, at, k, finer[j])
            for y in range(k):
                over = _exceeds(a, at, k, y, above)
                if rows[y, i] > 0.0 and over < 1.0:
                    out[y, j] = rows[y, i] * math.exp(copies * math.log1p(-over))
    return finer, out, size


@njit(**_JIT)
def _pass_box(x, rows, n, k, sigma, reward, laws, law, own, opened):
    """From what competes with a box to what competes below it: H, and the chance to be opened."""
    marks = np.empty(k + own)
    marks[:k] = sigma
    marks[k:] = reward
    marks.sort()
    skip = 0
    while skip < k + own and marks[skip] == -np.inf:
        skip += 1
    finer = np.empty(n + k + own)
    size = _merge(x, n, marks[skip:], k + own - skip, finer)
    out, g = np.zeros((own, size)), np.empty(size)
    for s in range(k):
        i = _below(x, n, sigma[s] + 0.25) - 1  # at the index: only copies of the box share its rank
        opened[s] = rows[s, i] if i >= 0 else 0.0
        if opened[s] <= 0.0:
            continue
        i = -1
        for j in range(size):
            while i + 1 < n and x[i + 1] <= finer[j]:
                i += 1
            g[j] = opened[s] if finer[j] >= sigma[s] else (rows[s, i] if i >= 0 else 0.0)
        for y in range(own):
            p = laws[law + s * own + y]
            if p > 0.0:
                for j in range(size):
                    out[y, j] += p * g[j]
    return finer, out, size


@njit(**_JIT)
def retrace(
    order, ops, powers, laws, law_at, ranks, rank_at, clear, loc, values, shared, sigma, sigma_at,
    opened, chosen, least, seen, seen_n, heap, state,
):  # fmt: skip
    """Go back through ``order`` from its end, where the G of the last operation lies in ``heap``.

    ``ranks`` are the rewards of each box as ranks (minus infinity: none), ``clear`` the probability
    that no child reaches them. Operands of joins and of several copies lie in ``values``, or in
    ``shared`` at ``-1 - loc``. ``seen[op]`` is the place of the G of an operation in ``heap``,
    ``seen_n[op]`` its length; what is given keeps its own. Fills ``opened`` (like ``sigma``) and
    ``chosen`` (like ``ranks``). Returns the heap, which may have moved.
    """
    for step in range(order.size - 1, -1, -1):
        op = order[step]
        k, at, n = ops[op, STATES], seen[op], seen_n[op]
        left, right = ops[op, LEFT], ops[op, RIGHT]
        if n == 0:
            for child in (left, right):
                if child >= 0:
                    seen_n[child] = 0
            continue
        if ops[op, KIND] == GIVEN:  # the caller goes on from here
            continue
        x, rows = heap[at : at + n].copy(), np.empty((k, n))
        for y in range(k):
            rows[y] = heap[at + n * (y + 1) : at + n * (y + 2)]
        release(pointer(heap, at), pointer(state, 0), at, n * (k + 1))
        if ops[op, KIND] == BOX:
            r = ops[op, REWARD]
            own = rank_at[r + 1] - rank_at[r]
            reward, law = ranks[rank_at[r] : rank_at[r + 1]], law_at[ops[op, LAW]]
            o = sigma_at[op]
            x, rows, n = _pass_box(
                x, rows, n, k, sigma[o : o + k], reward, laws, law, own, opened[o : o + k]
            )
            for y in range(own):
                j = _below(x, n, reward[y])
                if reward[y] > -np.inf:
                    chosen[rank_at[r] + y] = rows[y, j] * clear[rank_at[r] + y]
                for i in range(j):
                    rows[y, i] = 0.0
            if left >= 0:
                if powers[op, 0] != 1.0:
                    x, rows, n = times_copies(x, rows, n, own, values, loc[left], powers[op, 0])
                heap, seen[left], seen_n[left] = _put(x, rows, n, own, least, heap, state)
        else:
            for side in range(2):
                me, other = (left, right) if side == 0 else (right, left)
                a = values if loc[me] >= 0 else shared
                b = values if loc[other] >= 0 else shared
                ma = loc[me] if loc[me] >= 0 else -1 - loc[me]
                mb = loc[other] if loc[other] >= 0 else -1 - loc[other]
                fx, frows, fn = _times_other(x, rows, n, k, b, mb, powers[op, 1 - side])
                if powers[op, side] != 1.0:
                    fx, frows, fn = times_copies(fx, frows, fn, k, a, ma, powers[op, side])
                heap, seen[me], seen_n[me] = _put(fx, frows, fn, k, least, heap, state)
    return heap
