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

from typing import NamedTuple

import numpy as np

from . import efforts
from .blocks import TOP, aligned, allocate, breakpoint, count, release, tail
from .copying import copy
from .jit import helper, kernel
from .lanes import exp, expm1, log1p, pointer
from .operations import BOX, GIVEN, KIND, LAW, LEFT, REWARD, RIGHT, STATES
from .structure import sort

_ZERO = np.int64(0)


class Steps(NamedTuple):
    """Step functions of all states: ``rows[y, j]`` from x[j] on, for j < n; zero below x[0]."""

    x: np.ndarray
    rows: np.ndarray
    n: int


class Value(NamedTuple):
    """The value in a block, conditioned on so many states."""

    block: np.ndarray
    states: int


class Route(NamedTuple):
    """What was done on the way forward, over which the way back leads."""

    ops: np.ndarray
    powers: np.ndarray
    laws: np.ndarray
    law_at: np.ndarray
    ranks: np.ndarray  # rewards of each box as ranks; minus infinity: none
    rank_at: np.ndarray
    clear: np.ndarray  # the probability that no child reaches them
    sigma: np.ndarray
    sigma_at: np.ndarray
    loc: np.ndarray  # where operands of joins and of several copies lie; see Operands
    least: float  # steps not above this are left out
    stop: np.ndarray  # one integer; not zero: end after the operation under way


class Operands(NamedTuple):
    """The values of operands: at ``own[loc]``, or at ``shared[-1 - loc]``."""

    own: np.ndarray
    shared: np.ndarray


class Found(NamedTuple):
    """What the way back finds."""

    opened: np.ndarray  # like sigma
    chosen: np.ndarray  # like ranks
    seen: np.ndarray  # by operation: the place of its G in the heap; what is given keeps it
    seen_n: np.ndarray  # and its length


@helper()
def _copies(above, least, m):
    """sum_{j < m} F(x^-)^j F(x)^(m - 1 - j), from the tails P(> x) <= P(>= x)."""
    if above >= 1.0:
        return 1.0 if m == 1.0 else 0.0
    power = exp((m - 1.0) * log1p(-above))
    share = (least - above) / (1.0 - above)
    d = log1p(-share) if share < 1.0 else -np.inf
    if d == 0.0:
        return m * power
    return power * (expm1(m * d) / expm1(d))


@helper()
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


@helper()
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


@helper()
def _above(value, v):
    """Number of breakpoints of a value that lie above v, and whether v is one itself."""
    m = count(value.block, 0)
    lo, hi = 0, m
    while lo < hi:
        mid = (lo + hi) >> 1
        if breakpoint(value.block, 0, value.states, mid) > v:
            lo = mid + 1
        else:
            hi = mid
    return lo, lo < m and breakpoint(value.block, 0, value.states, lo) == v


@helper()
def _exceeds(value, y, above):
    """P(value is among its first ``above`` breakpoints from the top) in state y."""
    return min(tail(value.block, 0, value.states, y, above - 1), 1.0) if above > 0 else 0.0


@kernel()
def none_above(heap, at, v, copies):
    """P(all of ``copies`` values of a root are at most v)."""
    value = Value(pointer(heap, at), np.int64(1))
    t = _exceeds(value, 0, _above(value, v)[0])
    return exp(copies * log1p(-t)) if t < 1.0 else 0.0


@kernel()
def keep_steps(steps, least):
    """Leave out columns that no row enters with a step above ``least``; how many stay."""
    x, rows, n = steps
    step = np.zeros(n)
    for y in range(len(rows)):
        last = 0.0
        for j in range(n):
            step[j] = max(step[j], abs(rows[y, j] - last))
            last = rows[y, j]
    kept = 0
    for j in range(n):
        if step[j] > least:
            x[kept] = x[j]
            kept += 1
    for y in range(len(rows)):
        i = 0
        for j in range(n):
            if step[j] > least:
                rows[y, i] = rows[y, j]
                i += 1
    return kept


@kernel()
def claim(heap, state, size):
    """Position of a block of at least ``size`` floats; the heap is replaced when it must grow."""
    if state[TOP] + 2 * size > heap.size:
        bigger = aligned(2 * (heap.size + size))
        copy(heap, _ZERO, heap.size, bigger, _ZERO)
        heap = bigger
    return heap, allocate(pointer(heap, 0), pointer(state, 0), size)


@helper()
def _put(steps, least, heap, state):
    n, k = keep_steps(steps, least), len(steps.rows)
    if n == 0:  # never reached
        return heap, 0, 0
    heap, at = claim(heap, state, n * (k + 1))
    copy(steps.x, _ZERO, n, heap, at)
    for y in range(k):
        copy(steps.rows[y], _ZERO, n, heap, at + n * (y + 1))
    return heap, at, n


@helper()
def _times_copies(steps, value, copies):
    """Multiply by the chance that the other copies of a value stay below, on a finer grid.

    At a breakpoint of the value the copies before must be strictly below; just after it (half a
    rank) all of them may be there.
    """
    x, rows, n = steps
    m, k = count(value.block, 0), value.states
    own = np.empty(2 * m)
    for i in range(m):
        own[2 * i] = breakpoint(value.block, 0, k, m - 1 - i)
        own[2 * i + 1] = own[2 * i] + 0.5
    finer = np.empty(n + 2 * m)
    size = _merge(x, n, own, 2 * m, finer)
    out = np.zeros((k, size))
    for j in range(size):
        i = _below(x, n, finer[j] + 0.25) - 1
        if i >= 0:
            above, here = _above(value, finer[j])
            for y in range(k):
                if rows[y, i] > 0.0:
                    over = _exceeds(value, y, above)
                    least = _exceeds(value, y, above + 1) if here else over
                    out[y, j] = rows[y, i] * _copies(over, least, copies)
    return Steps(finer, out, size)


@kernel()
def times_copies(steps, heap, at, copies):
    """The same for the value of a root, in a heap."""
    return _times_copies(steps, Value(pointer(heap, at), np.int64(1)), copies)


@helper()
def _times_other(steps, value, copies):
    """Multiply by the distribution function of the larger of ``copies`` of another value."""
    x, rows, n = steps
    m, k = count(value.block, 0), value.states
    other = np.empty(m)
    for i in range(m):
        other[i] = breakpoint(value.block, 0, k, m - 1 - i)
    finer = np.empty(n + m)
    size = _merge(x, n, other, m, finer)
    out = np.zeros((k, size))
    i = -1
    for j in range(size):
        while i + 1 < n and x[i + 1] <= finer[j]:
            i += 1
        if i >= 0:
            above, _ = _above(value, finer[j])
            for y in range(k):
                over = _exceeds(value, y, above)
                if rows[y, i] > 0.0 and over < 1.0:
                    out[y, j] = rows[y, i] * exp(copies * log1p(-over))
    return Steps(finer, out, size)


@helper()
def _pass_box(steps, sigma, reward, law, opened):
    """From what competes with a box to what competes below it: H, and the chance to be opened."""
    x, rows, n = steps
    k, own = sigma.size, reward.size
    marks = np.empty(k + own)
    copy(sigma, _ZERO, k, marks, _ZERO)
    copy(reward, _ZERO, own, marks, k)
    sort(marks, marks, _ZERO, k + own)
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
            p = law[s * own + y]
            if p > 0.0:
                for j in range(size):
                    out[y, j] += p * g[j]
    return Steps(finer, out, size)


@helper()
def _choose(steps, reward, clear, chosen):
    """The chance of each state to be chosen; what lies below its reward no longer matters."""
    for y in range(reward.size):
        j = _below(steps.x, steps.n, reward[y])
        if reward[y] > -np.inf:
            chosen[y] = steps.rows[y, j] * clear[y]
        for i in range(j):
            steps.rows[y, i] = 0.0


@helper()
def _take_out(heap, state, at, n, k):
    """Copy a G out of the heap and give its block back."""
    x, rows = np.empty(n), np.empty((k, n))
    copy(heap, at, n, x, _ZERO)
    for y in range(k):
        copy(heap, at + n * (y + 1), n, rows[y], _ZERO)
    release(pointer(heap, at), pointer(state, 0), at, n * (k + 1))
    return Steps(x, rows, n)


@helper()
def _value(operands, loc, k):
    """The value of an operand."""
    if loc >= 0:
        return Value(pointer(operands.own, loc), k)
    return Value(pointer(operands.shared, -1 - loc), k)


@kernel(work=efforts.retrace)
def retrace(order, route, found, operands, heap, state):
    """Go back through ``order`` from its end, where the G of the last operation lies in ``heap``.

    Returns the heap, which may have moved.
    """
    ops, powers, laws, law_at, ranks, rank_at, clear, sigma, sigma_at, loc, least, stop = route
    opened, chosen, seen, seen_n = found
    for step in range(order.size - 1, -1, -1):
        if stop[0] != 0:
            break
        op = order[step]
        k, n = ops[op, STATES], seen_n[op]
        left, right = ops[op, LEFT], ops[op, RIGHT]
        if n == 0:
            for child in (left, right):
                if child >= 0:
                    seen_n[child] = 0
            continue
        if ops[op, KIND] == GIVEN:  # the caller goes on from here
            continue
        g = _take_out(heap, state, seen[op], n, k)
        if ops[op, KIND] == BOX:
            r, p, o = ops[op, REWARD], law_at[ops[op, LAW]], sigma_at[op]
            start, end = rank_at[r], rank_at[r + 1]
            reward, law = ranks[start:end], laws[p : p + k * (end - start)]
            h = _pass_box(g, sigma[o : o + k], reward, law, opened[o : o + k])
            _choose(h, reward, clear[start:end], chosen[start:end])
            if left >= 0:
                if powers[op, 0] != 1.0:
                    h = _times_copies(h, _value(operands, loc[left], end - start), powers[op, 0])
                heap, seen[left], seen_n[left] = _put(h, least, heap, state)
        else:
            for side in range(2):
                me, other = (left, right) if side == 0 else (right, left)
                h = _times_other(g, _value(operands, loc[other], k), powers[op, 1 - side])
                if powers[op, side] != 1.0:
                    h = _times_copies(h, _value(operands, loc[me], k), powers[op, side])
                heap, seen[me], seen_n[me] = _put(h, least, heap, state)
    return heap
