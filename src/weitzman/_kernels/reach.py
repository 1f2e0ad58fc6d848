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

What lies below an operation looks at G only at its own ranks. Where those are few, the other points
are left out before anything is computed at them.

A step function has a value from each of its points on, and is zero below the first. The states of
a point lie side by side, padded to a multiple of eight with states whose function is zero, as in
the blocks of values (:mod:`.blocks`). In a heap a block is ``[rows (n * lanes), x (n)]``. Points
are ranks, whole numbers. Half a rank above a point is a point of its own where copies tie.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from .blocks import TOP, aligned, allocate, count, grid_of, padded, release, rows_of
from .boxes import FEW, GROUP, Spans, mix, mix_between
from .jit import copy, lane_helper, lane_kernel
from .lanes import (
    LANES,
    above,
    at_least,
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
    splat_at,
    store,
    sub,
    where,
)  # fmt: skip
from .structure import BOX, GIVEN, JOIN, KIND, LAW, LEFT, REWARD, RIGHT, STATES

_ZERO = np.int64(0)
_PRICE_OF_A_QUESTION = 64  # looking for a rank among points, in products of a number


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


class Route(NamedTuple):
    """What was done on the way forward, over which the way back leads."""

    ops: np.ndarray
    powers: np.ndarray
    laws: np.ndarray
    law_at: np.ndarray
    ranks: np.ndarray  # rewards of each box as ranks; minus infinity: none
    rank_at: np.ndarray
    levels: np.ndarray  # the same in rising order, without those that are none
    level_at: np.ndarray
    clear: np.ndarray  # the probability that no child reaches them
    sigma: np.ndarray
    sigma_at: np.ndarray
    loc: np.ndarray  # where operands of joins and of several copies lie among the values
    asks: np.ndarray  # by operation: how many ranks lie at it and below
    least: float  # steps not above this are left out
    stop: np.ndarray  # one integer; not zero: end after the operation under way


class Found(NamedTuple):
    """What the way back finds."""

    opened: np.ndarray  # like sigma
    chosen: np.ndarray  # like ranks
    seen: np.ndarray  # by operation: the place of its G in the heap; what is given keeps it
    seen_n: np.ndarray  # and its length


class OneBox(NamedTuple):
    """The columns of one box: its indices, its rewards as they are and sorted, its law."""

    sigma: np.ndarray
    reward: np.ndarray
    level: np.ndarray
    law: np.ndarray
    k: int
    own: int
    levels: int


@lane_kernel()
def count_ranks(ops: IntArray, rank_at: IntArray) -> IntArray:
    """How many ranks lie at each operation and below; operands come before what uses them."""
    out = np.zeros(len(ops), np.int64)
    for op in range(len(ops)):
        if ops[op, KIND] != JOIN:
            r = ops[op, REWARD]
            out[op] = ops[op, STATES] + rank_at[r + 1] - rank_at[r]
        for side in (LEFT, RIGHT):
            if ops[op, side] >= 0:
                out[op] += out[ops[op, side]]
    return out


class Paths(NamedTuple):
    """A forest with the indices of a policy, by box."""

    parent: np.ndarray
    count: np.ndarray
    laws: np.ndarray
    law_at: np.ndarray  # of each box
    index: np.ndarray
    index_at: np.ndarray
    rewards: np.ndarray
    reward_at: np.ndarray
    own_at: np.ndarray  # where the states of each box start, and one more for the end
    outside: float


@lane_kernel()
def reachable(order: IntArray, paths: Paths, least: float) -> BoolArray:
    """Which boxes of a postorder may be opened more than ``least`` times on average.

    Looks only at the boxes on the way to each: a box is opened after s only if its index exceeds
    the outside option and what those boxes have shown at least. Roots always count.
    """
    states = paths.own_at[paths.parent.size]
    often, held = np.zeros(states), np.empty(states)
    out = np.zeros(paths.parent.size, np.bool_)
    for i in range(order.size - 1, -1, -1):
        v = order[i]
        up = paths.parent[v]
        if up >= 0 and not out[up]:
            continue
        at, own = paths.own_at[v], paths.own_at[v + 1] - paths.own_at[v]
        above = paths.own_at[up] if up >= 0 else _ZERO
        k = paths.own_at[up + 1] - above if up >= 0 else np.int64(1)
        total, in_hand = 0.0, np.inf
        for s in range(k):
            had = held[above + s] if up >= 0 else paths.outside
            times = (often[above + s] if up >= 0 else 1.0) * paths.count[v]
            if times > 0.0 and paths.index[paths.index_at[v] + s] > had:
                total += times
                in_hand = min(in_hand, had)
                row = paths.law_at[v] + s * own
                for y in range(own):
                    if paths.laws[row + y] > 0.0:
                        often[at + y] += times * paths.laws[row + y]
        for y in range(own):
            held[at + y] = max(in_hand, paths.rewards[paths.reward_at[v] + y])
        out[v] = up < 0 or total > least
    return out


# -- step functions ------------------------------------------------------------------------------


@lane_helper()
def _below(x, n, v):
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
def _unite(x, n, y, m, out):
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
def _want(points, n, rank, wanted):
    """Mark the points that tell the value at a rank, and half a rank above."""
    i = _below(points, n, rank + 0.25)
    if i > 0:
        wanted[i - 1] = 1
    if i < n and points[i] < rank + 0.75:
        wanted[i] = 1


@lane_helper()
def _times_value(g, union, size, block, copies, out):
    """Multiply by the distribution function of the largest of ``copies`` of a value."""
    lanes, m, tails = g.lanes, count(block), rows_of(block, g.lanes)
    room = aligned((m + 1) * lanes)
    factors = pointer(room, 0)  # P(the largest is below breakpoint j - 1), by j and state
    if copies == 1.0:
        for i in range(0, (m + 1) * lanes, LANES):
            store(factors, i, larger(sub(splat(1.0), load(tails, i)), splat(0.0)))
    else:
        for i in range((m + 1) * lanes):
            factors[i] = exp(copies * log1p(-tails[i])) if tails[i] < 1.0 else 0.0
    for j in range(size):
        i, over = union.mine[j] - 1, m - union.theirs[j]
        for u in range(0, lanes, LANES):
            row = splat(0.0)
            if i >= 0:
                row = larger(load(g.rows, i * lanes + u), splat(0.0))
                row = mul(row, load(factors, over * lanes + u))
            store(out, j * lanes + u, row)
    keep(room)


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
def _times_copies(g, block, k, copies, union, out):
    """Multiply by the chance that the other copies of a value stay below; how many points.

    At a breakpoint of the value the copies before must be strictly below; just after it (half a
    rank) all of them may be there.
    """
    m, lanes = count(block), g.lanes
    grid, tails = grid_of(block, lanes), rows_of(block, lanes)
    own = np.empty(2 * m)
    for i in range(m):
        own[2 * i], own[2 * i + 1] = grid[m - i], grid[m - i] + 0.5
    size = _unite(g.x, g.n, pointer(own, 0), 2 * m, union)
    for j in range(size):
        i, passed = union.mine[j] - 1, union.theirs[j]
        over = m - ((passed + 1) >> 1)
        least = over + (passed & 1)  # at a breakpoint itself
        for y in range(lanes):
            x = g.rows[i * lanes + y] if i >= 0 and y < k else 0.0
            if x > 0.0:
                x *= _copies(
                    min(tails[over * lanes + y], 1.0), min(tails[least * lanes + y], 1.0), copies
                )
            out[j * lanes + y] = max(x, 0.0)
    keep(own)
    return size


@lane_helper()
def _put(g, least, heap, state):
    """Write step functions to the heap, which may grow: heap, place, points.

    Points at which no state steps by more than ``least`` are left out.
    """
    kept, lanes, limit = np.int64(0), g.lanes, splat(least)
    wanted = np.empty(g.n, np.uint8)
    for j in range(g.n):
        found = False
        for u in range(0, lanes, LANES):
            now, last = load(g.rows, j * lanes + u), splat(0.0)
            if j > 0:
                last = load(g.rows, (j - 1) * lanes + u)
            found |= some(either(above(sub(now, last), limit), above(sub(last, now), limit)))
        wanted[j] = found
        kept += found
    if kept == 0:  # never reached
        return heap, _ZERO, _ZERO
    room = kept * (lanes + 1)
    if state[TOP] + 2 * room + LANES * LANES > heap.size:
        bigger = aligned(2 * (heap.size + room) + LANES * LANES)
        copy(heap, _ZERO, heap.size, bigger, _ZERO)
        heap = bigger
    at = allocate(pointer(heap, 0), pointer(state, 0), room)
    n = np.int64(0)
    for j in range(g.n):
        if wanted[j] != 0:
            for u in range(0, lanes, LANES):
                store(pointer(heap, at), n * lanes + u, load(g.rows, j * lanes + u))
            heap[at + kept * lanes + n] = g.x[j]
            n += 1
    return heap, at, n


# -- the way back --------------------------------------------------------------------------------


@lane_helper()
def _ask(op, route, points, n, wanted):
    """Mark the points that an operation and all below it look at."""
    stack = np.empty(route.asks[op] + 1, np.int64)
    stack[0], depth = op, 1
    while depth > 0:
        depth -= 1
        o = stack[depth]
        if route.ops[o, KIND] != JOIN:
            r, at = route.ops[o, REWARD], route.sigma_at[o]
            for i in range(at, at + route.ops[o, STATES]):
                if route.sigma[i] > -np.inf:
                    _want(points, n, route.sigma[i], wanted)
            for i in range(route.level_at[r], route.level_at[r + 1]):
                _want(points, n, route.levels[i], wanted)
        for side in (LEFT, RIGHT):
            if route.ops[o, side] >= 0:
                stack[depth] = route.ops[o, side]
                depth += 1


@lane_helper()
def _needed(op, route, level, levels, size, lanes, union):
    """Keep the points that are looked at, where those are few; how many there are.

    Looked at by an operand and all below it, -1 for none, and at some levels.
    """
    wanted = np.zeros(size, np.uint8)
    if op >= 0:
        asks = route.asks[op]
        if asks >= size or asks * _PRICE_OF_A_QUESTION > size * lanes:
            return size  # to find out would take longer than to compute them all
        _ask(op, route, union.points, size, wanted)
    for i in range(levels):
        _want(union.points, size, level[i], wanted)
    kept = np.int64(0)
    for j in range(size):
        if wanted[j] != 0:
            union.points[kept] = union.points[j]
            union.mine[kept], union.theirs[kept] = union.mine[j], union.theirs[j]
            kept += 1
    return kept


@lane_helper()
def _up_to_index(steps, box, union, size, opened, spare, out):
    """out[j, s] = G_s(min(x[j], sigma(s))), and the chance to be opened after s."""
    lanes = steps.lanes
    cap, most = spare, pointer(spare, lanes)
    for s in range(lanes):
        most[s], cap[s] = 0.0, -np.inf
        if s < box.k:
            i = _below(steps.x, steps.n, box.sigma[s] + 0.25) - 1
            opened[s] = steps.rows[i * lanes + s] if i >= 0 else 0.0
            if opened[s] > 0.0:
                most[s], cap[s] = opened[s], box.sigma[s]
    for j in range(size):
        i, x = union.mine[j] - 1, splat_at(union.points, j)
        for u in range(0, lanes, LANES):
            row = splat(0.0)
            if i >= 0:
                row = load(steps.rows, i * lanes + u)
            store(out, j * lanes + u, where(at_least(x, load(cap, u)), load(most, u), row))


@lane_helper()
def _mix_capped(capped, caps, union, k, law, across, size, out):
    """The product with a law of what `_up_to_index` wrote: constant from an index on, once zero."""
    lanes, done = padded(k), _ZERO
    if k > FEW:
        numbers, room = np.empty(k, np.int64), aligned(2 * lanes + across)
        first, end = pointer(room, 0), pointer(room, lanes)
        for u in range(0, lanes, LANES):  # the first row in which each column is not zero
            row, zero = splat(np.float64(size)), splat(0.0)
            for i in range(size):
                j = size - 1 - i
                t = load(capped, j * lanes + u)
                row = where(either(above(t, zero), above(zero, t)), splat(np.float64(j)), row)
            store(first, u, row)
        for s in range(k):
            end[s] = _below(union.points, size, caps[s])
        spans = Spans(
            k, first, end, pointer(caps, lanes), pointer(numbers, 0), pointer(room, 2 * lanes)
        )
        done = mix_between(capped, spans, law, across, size, out)
        keep(numbers)
        keep(room)
    left = pointer(capped, done * lanes)
    mix(left, k, law, across, size - done, pointer(out, done * across))


@lane_helper()
def _leave(h, block, k, copies, least, heap, state):
    """Write what competes with an operand, of which there are several copies: heap, place, n."""
    if copies == 1.0:
        return _put(h, least, heap, state)
    room = h.n + 2 * count(block)
    points, numbers = np.empty(room), np.empty(2 * room, np.int64)
    union = MergedPoints(pointer(points, 0), pointer(numbers, 0), pointer(numbers, room))
    rows = aligned(room * h.lanes)
    size = _times_copies(h, block, k, copies, union, pointer(rows, 0))
    more = Steps(union.points, pointer(rows, 0), size, h.lanes)
    heap, at, n = _put(more, least, heap, state)
    keep(points)
    keep(numbers)
    keep(rows)
    return heap, at, n


@lane_helper()
def _back_box(op, route, found, values, heap, state):
    """From what competes with a box to what competes below it."""
    ops, n, at = route.ops, found.seen_n[op], found.seen[op]
    r, p, o = ops[op, REWARD], route.law_at[ops[op, LAW]], route.sigma_at[op]
    start, end, level = route.rank_at[r], route.rank_at[r + 1], route.level_at[r]
    k, child = ops[op, STATES], ops[op, LEFT]
    box = OneBox(
        pointer(route.sigma, o), pointer(route.ranks, start), pointer(route.levels, level),
        pointer(route.laws, p), k, end - start, route.level_at[r + 1] - level,
    )  # fmt: skip
    lanes, across, own = padded(k), padded(box.own), box.own
    g = Steps(pointer(heap, at + n * lanes), pointer(heap, at), n, lanes)
    room = n + box.levels
    points, numbers = np.empty(room), np.empty(2 * room, np.int64)
    union = MergedPoints(pointer(points, 0), pointer(numbers, 0), pointer(numbers, room))
    size = _unite(g.x, n, box.level, box.levels, union)
    size = _needed(child, route, box.level, box.levels, size, max(lanes, across), union)
    rows, capped = aligned((size + GROUP) * across), aligned((size + GROUP) * lanes)
    law, spare = aligned(k * across), aligned(2 * max(lanes, across))
    _up_to_index(
        g, box, union, size, pointer(found.opened, o), pointer(spare, 0), pointer(capped, 0)
    )
    release(pointer(heap, at), pointer(state, 0), at, n * (lanes + 1))
    for s in range(k):  # the law with rows of full lanes
        for y in range(across):
            law[s * across + y] = box.law[s * own + y] if y < own else 0.0
    _mix_capped(
        pointer(capped, 0), pointer(spare, 0), union, k, pointer(law, 0), across, size,
        pointer(rows, 0),
    )  # fmt: skip
    h, bar = Steps(union.points, pointer(rows, 0), size, across), pointer(spare, 0)
    for y in range(across):
        bar[y] = box.reward[y] if y < own else np.inf
    for y in range(own):  # the chance of each state to be chosen
        if bar[y] > -np.inf:
            j = _below(h.x, size, bar[y])
            found.chosen[start + y] = h.rows[j * across + y] * route.clear[start + y]
    for j in range(size):  # what lies below its reward no longer matters
        for u in range(0, across, LANES):
            stays = at_least(splat_at(h.x, j), load(bar, u))
            store(h.rows, j * across + u, where(stays, load(h.rows, j * across + u), splat(0.0)))
    if child >= 0:
        copies = route.powers[op, 0]
        block = pointer(heap, _ZERO) if copies == 1.0 else pointer(values, route.loc[child])
        heap, found.seen[child], found.seen_n[child] = _leave(
            h, block, own, copies, route.least, heap, state
        )
    keep(points)
    keep(numbers)
    keep(rows)
    keep(capped)
    keep(law)
    keep(spare)
    return heap


@lane_helper()
def _back_join(op, route, found, values, heap, state):
    """From what competes with the larger of two values to what competes with each of them."""
    ops, n, k = route.ops, found.seen_n[op], route.ops[op, STATES]
    lanes, at, none = padded(k), found.seen[op], pointer(route.levels, _ZERO)
    for side in range(2):
        me, other = ops[op, LEFT + side], ops[op, RIGHT - side]
        block = pointer(values, route.loc[other])
        g, m = Steps(pointer(heap, at + n * lanes), pointer(heap, at), n, lanes), count(block)
        theirs, grid = np.empty(m), grid_of(block, lanes)
        for i in range(m):  # its breakpoints, the lowest first
            theirs[i] = grid[m - i]
        points, numbers = np.empty(n + m), np.empty(2 * (n + m), np.int64)
        union = MergedPoints(pointer(points, 0), pointer(numbers, 0), pointer(numbers, n + m))
        size = _unite(g.x, n, pointer(theirs, 0), m, union)
        size = _needed(me, route, none, _ZERO, size, lanes, union)
        rows = aligned(size * lanes)
        _times_value(g, union, size, block, route.powers[op, 1 - side], pointer(rows, 0))
        heap, found.seen[me], found.seen_n[me] = _leave(
            Steps(union.points, pointer(rows, 0), size, lanes), pointer(values, route.loc[me]), k,
            route.powers[op, side], route.least, heap, state,
        )  # fmt: skip
        keep(theirs)
        keep(points)
        keep(numbers)
        keep(rows)
    release(pointer(heap, at), pointer(state, 0), at, n * (lanes + 1))
    return heap


@lane_kernel()
def retrace(
    order: IntArray,
    route: Route,
    found: Found,
    values: FloatArray,
    heap: FloatArray,
    state: IntArray,
) -> FloatArray:
    """Go back through ``order`` from its end, where the G of the last operation lies in ``heap``.

    Returns the heap, which may have moved.
    """
    ops, seen_n = route.ops, found.seen_n
    for step in range(order.size - 1, -1, -1):
        if route.stop[0] != 0:
            break
        op = order[step]
        if seen_n[op] == 0:
            for side in (LEFT, RIGHT):
                if ops[op, side] >= 0:
                    seen_n[ops[op, side]] = 0
        elif ops[op, KIND] == BOX:
            heap = _back_box(op, route, found, values, heap, state)
        elif ops[op, KIND] != GIVEN:  # from what is given the caller continues
            heap = _back_join(op, route, found, values, heap, state)
    return heap
