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
are left out before anything is computed at them. The arithmetic is in :mod:`.step_functions`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .blocks import aligned, count, padded, release, rows_of
from .boxes import FEW, GROUP, Spans, mix, mix_between
from .jit import lane_helper, lane_kernel
from .lanes import (
    LANES,
    above,
    at_least,
    either,
    exp,
    keep,
    load,
    log1p,
    pointer,
    splat,
    splat_at,
    store,
    where,
)
from .step_functions import (
    MergedPoints,
    Steps,
    at_rank,
    below,
    copies_room,
    put,
    rising,
    select,
    taken,
    times_copies,
    times_value,
    unite,
    want,
)
from .structure import BOX, GIVEN, JOIN, KIND, LAW, LEFT, REWARD, RIGHT, STATES

_ZERO = np.int64(0)
_PRICE_OF_A_QUESTION = 64  # looking for a rank among points, in products of a number


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
    loc: np.ndarray  # where operands of joins and of several copies lie; see Operands
    asks: np.ndarray  # by operation: how many ranks lie at it and below
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
def none_above(heap, at, v, copies):
    """P(all of ``copies`` values of a root are at most v)."""
    block, lanes = pointer(heap, at), padded(np.int64(1))
    m = count(block, 0)
    grid = np.empty(m)
    rising(block, lanes, pointer(grid, 0))
    over = m - below(pointer(grid, 0), m, v + 0.25)
    tail = rows_of(block, lanes)[over * lanes]
    keep(grid)
    return exp(copies * log1p(-tail)) if tail < 1.0 else 0.0


@lane_kernel()
def count_ranks(ops, rank_at):
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
def reachable(order, paths, least):
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
                    want(points, n, route.sigma[i], wanted)
            for i in range(route.level_at[r], route.level_at[r + 1]):
                want(points, n, route.levels[i], wanted)
        for side in (LEFT, RIGHT):
            if route.ops[o, side] >= 0:
                stack[depth] = route.ops[o, side]
                depth += 1


@lane_helper()
def _few(op, route, size, lanes):
    """Whether so few ranks lie below that it pays to look which points they need."""
    asks = route.asks[op]
    return asks < size and asks * _PRICE_OF_A_QUESTION <= size * lanes


@lane_helper()
def _needed(op, route, size, lanes, union, wanted):
    """Keep the points that an operand looks at, where those are few; how many there are."""
    if not _few(op, route, size, lanes):
        return size
    for j in range(size):
        wanted[j] = 0
    _ask(op, route, union.points, size, wanted)
    return select(union, size, wanted)


@lane_helper()
def _needed_in_box(child, route, box, size, union, wanted):
    """The same for a box: its own rewards, and what its children look at."""
    if child >= 0 and not _few(child, route, size, max(padded(box.k), padded(box.own))):
        return size
    for j in range(size):
        wanted[j] = 0
    for i in range(box.levels):
        want(union.points, size, box.level[i], wanted)
    if child >= 0:
        _ask(child, route, union.points, size, wanted)
    return select(union, size, wanted)


@lane_helper()
def _up_to_index(steps, box, union, size, opened, spare, out):
    """out[j, s] = G_s(min(x[j], sigma(s))), and the chance to be opened after s."""
    lanes = steps.lanes
    cap, most = spare, pointer(spare, lanes)
    for s in range(lanes):
        most[s], cap[s] = 0.0, -np.inf
        if s < box.k:
            opened[s] = at_rank(steps, box.sigma[s], s)
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
def _padded_law(box, out):
    """The law with rows of full lanes."""
    across = padded(box.own)
    for s in range(box.k):
        for y in range(across):
            out[s * across + y] = box.law[s * box.own + y] if y < box.own else 0.0


@lane_helper()
def _rises(capped, lanes, n, out):
    """The first row in which each column is not zero."""
    for u in range(0, lanes, LANES):
        row = splat(np.float64(n))
        for i in range(n):
            j = n - 1 - i
            t, zero = load(capped, j * lanes + u), splat(0.0)
            row = where(either(above(t, zero), above(zero, t)), splat(np.float64(j)), row)
        store(out, u, row)


@lane_helper()
def _mix_capped(capped, caps, union, k, law, across, size, out):
    """The product with a law of what `_up_to_index` wrote: constant from an index on, once zero."""
    lanes, done = padded(k), _ZERO
    if k > FEW:
        numbers, room = np.empty(k, np.int64), aligned(2 * lanes + across)
        first, end = pointer(room, 0), pointer(room, lanes)
        _rises(capped, lanes, size, first)
        for s in range(k):
            end[s] = below(union.points, size, caps[s])
        spans = Spans(
            k, first, end, pointer(caps, lanes), pointer(numbers, 0), pointer(room, 2 * lanes)
        )
        done = mix_between(capped, spans, law, across, size, out)
        keep(numbers)
        keep(room)
    left = pointer(capped, done * lanes)
    mix(left, k, law, across, size - done, pointer(out, done * across))


@lane_helper()
def _choose(h, box, clear, chosen, spare):
    """The chance of each state to be chosen; what lies below its reward no longer matters."""
    lanes = h.lanes
    for y in range(lanes):
        spare[y] = box.reward[y] if y < box.own else np.inf
    for y in range(box.own):
        if spare[y] > -np.inf:
            j = below(h.x, h.n, spare[y])
            chosen[y] = h.rows[j * lanes + y] * clear[y]
    for j in range(h.n):
        for u in range(0, lanes, LANES):
            above = at_least(splat_at(h.x, j), load(spare, u))
            store(h.rows, j * lanes + u, where(above, load(h.rows, j * lanes + u), splat(0.0)))


@lane_helper()
def _value(operands, loc):
    """The block of an operand."""
    if loc >= 0:
        return pointer(operands.own, loc)
    return pointer(operands.shared, -1 - loc)


@lane_helper()
def _leave(h, block, k, copies, least, heap, state):
    """Write what competes with an operand, of which there are several copies: heap, place, n."""
    if copies == 1.0:
        wanted = np.empty(h.n, np.uint8)
        heap, at, n = put(h, least, heap, state, wanted)
        return heap, at, n
    room = copies_room(h.n, block)
    points, numbers = np.empty(room), np.empty(2 * room, np.int64)
    union = MergedPoints(pointer(points, 0), pointer(numbers, 0), pointer(numbers, room))
    rows, wanted = aligned(room * h.lanes), np.empty(room, np.uint8)
    size = times_copies(h, block, k, copies, union, pointer(rows, 0))
    h = Steps(union.points, pointer(rows, 0), size, h.lanes)
    heap, at, n = put(h, least, heap, state, wanted)
    keep(points)
    keep(numbers)
    keep(rows)
    return heap, at, n


@lane_helper()
def _back_box(op, route, found, operands, heap, state):
    """From what competes with a box to what competes below it."""
    ops, n = route.ops, found.seen_n[op]
    r, p, o = ops[op, REWARD], route.law_at[ops[op, LAW]], route.sigma_at[op]
    start, end, level = route.rank_at[r], route.rank_at[r + 1], route.level_at[r]
    k, child = ops[op, STATES], ops[op, LEFT]
    box = OneBox(
        pointer(route.sigma, o), pointer(route.ranks, start), pointer(route.levels, level),
        pointer(route.laws, p), k, end - start, route.level_at[r + 1] - level,
    )  # fmt: skip
    lanes, across = padded(k), padded(box.own)
    g = taken(heap, found.seen[op], n, lanes)
    room = n + box.levels
    points, numbers = np.empty(room), np.empty(2 * room, np.int64)
    wanted = np.empty(room, np.uint8)
    union = MergedPoints(pointer(points, 0), pointer(numbers, 0), pointer(numbers, room))
    size = unite(g.x, n, box.level, box.levels, union)
    size = _needed_in_box(child, route, box, size, union, wanted)
    rows, capped = aligned((size + GROUP) * across), aligned((size + GROUP) * lanes)
    law, spare = aligned(k * across), aligned(2 * max(lanes, across))
    _up_to_index(
        g, box, union, size, pointer(found.opened, o), pointer(spare, 0), pointer(capped, 0)
    )
    release(pointer(heap, found.seen[op]), pointer(state, 0), found.seen[op], n * (lanes + 1))
    _padded_law(box, pointer(law, 0))
    _mix_capped(
        pointer(capped, 0), pointer(spare, 0), union, k, pointer(law, 0), across, size,
        pointer(rows, 0),
    )  # fmt: skip
    h = Steps(union.points, pointer(rows, 0), size, across)
    _choose(h, box, pointer(route.clear, start), pointer(found.chosen, start), pointer(spare, 0))
    if child >= 0:
        copies = route.powers[op, 0]
        block = pointer(heap, _ZERO) if copies == 1.0 else _value(operands, route.loc[child])
        heap, found.seen[child], found.seen_n[child] = _leave(
            h, block, box.own, copies, route.least, heap, state
        )
    keep(points)
    keep(numbers)
    keep(rows)
    keep(capped)
    keep(law)
    keep(spare)
    return heap


@lane_helper()
def _back_join(op, route, found, operands, heap, state):
    """From what competes with the larger of two values to what competes with each of them."""
    ops, n, k = route.ops, found.seen_n[op], route.ops[op, STATES]
    lanes, at = padded(k), found.seen[op]
    for side in range(2):
        me, other = ops[op, LEFT], ops[op, RIGHT]
        if side == 1:
            me, other = other, me
        block = _value(operands, route.loc[other])
        g, m = taken(heap, at, n, lanes), count(block, 0)
        theirs = np.empty(m)
        rising(block, lanes, pointer(theirs, 0))
        points, numbers = np.empty(n + m), np.empty(2 * (n + m), np.int64)
        wanted = np.empty(n + m, np.uint8)
        union = MergedPoints(pointer(points, 0), pointer(numbers, 0), pointer(numbers, n + m))
        size = unite(g.x, n, pointer(theirs, 0), m, union)
        size = _needed(me, route, size, lanes, union, wanted)
        rows = aligned(size * lanes)
        times_value(g, union, size, block, route.powers[op, 1 - side], pointer(rows, 0))
        h = Steps(union.points, pointer(rows, 0), size, lanes)
        heap, found.seen[me], found.seen_n[me] = _leave(
            h, _value(operands, route.loc[me]), k, route.powers[op, side], route.least, heap, state
        )
        keep(theirs)
        keep(points)
        keep(numbers)
        keep(rows)
    release(pointer(heap, at), pointer(state, 0), at, n * (lanes + 1))
    return heap


@lane_kernel()
def retrace(order, route, found, operands, heap, state):
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
            heap = _back_box(op, route, found, operands, heap, state)
        elif ops[op, KIND] != GIVEN:  # from what is given the caller goes on
            heap = _back_join(op, route, found, operands, heap, state)
    return heap
