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
neighbors), which can only raise that function, by at most ``eps`` anywhere. So every value
carries, per state, a bound ``err[y]`` with
:math:`0 \le E\max(x, \tilde\kappa_y) - E\max(x, \kappa_y) \le err[y]` for all x above the outside
option. The bounds add along the recursion, weighted by the probability that they matter.

Only what a user of the value looks at must be right: a box with reward r(y) looks at X_y above
r(y). So each state has a *floor*, and mass at or below it is free to move.

Values lie in blocks (:mod:`.blocks`, which also joins values and drops what does not matter);
:mod:`.boxes` makes the value of a box; here the operations are carried out in turn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._common.arrays import FloatArray, IntArray
from . import boxes
from .blocks import (
    TOP,
    Draft,
    Operand,
    aligned,
    allocate,
    block_size,
    count,
    grid_of,
    join,
    padded,
    powers_of,
    release,
    thin,
    tops_of,
    write_nothing,
)  # fmt: skip
from .jit import copy, count_up, lane_helper, lane_kernel
from .lanes import LANES, keep, pointer, prefetch, splat, store
from .structure import (
    BOX,
    COLUMNS,
    COST,
    GIVEN,
    JOIN,
    KIND,
    LAW,
    LEFT,
    OUTSIDE_USER,
    REWARD,
    RIGHT,
    STATES,
    USER,
)  # fmt: skip

ZERO = np.int64(0)
_AHEAD = 256  # floats of the next law to ask for in advance


class Program(NamedTuple):
    """All that the operations read: what is asked for, and where it lies."""

    ops: np.ndarray  # the table of operations
    powers: np.ndarray  # (operations, 2) copies of the left and of the right operand
    laws: np.ndarray
    law_at: np.ndarray
    reward: np.ndarray  # minus infinity: none
    reward_at: np.ndarray
    levels: np.ndarray  # the rewards of each row once more, sorted and without doubles
    level_at: np.ndarray
    costs: np.ndarray
    cost_at: np.ndarray
    cost_shape: np.ndarray
    defect: np.ndarray  # what is missing from each row of weights to one; empty if nothing is
    defect_at: np.ndarray
    known: np.ndarray  # values that are known: falling breakpoints, then a row of tails for each
    known_at: np.ndarray  # by operation: where its known value starts
    known_size: np.ndarray  # by operation: how many breakpoints that has
    outside: float
    eps: float
    given: bool  # the indices are given rather than looked for
    weighed: bool  # rows of the laws need not sum to one


class Outputs(NamedTuple):
    """What the operations write."""

    loc: np.ndarray  # by operation: where its value lies in the heap; -1 - place if in `shared`
    refs: np.ndarray  # by operation: how often its value is still needed
    sigma: np.ndarray  # the indices
    sigma_at: np.ndarray  # by operation: where its indices start
    width: np.ndarray  # by operation: columns of its matrix product
    clear: np.ndarray  # if indices are given: P(no child reaches the reward), by state
    stop: np.ndarray  # one integer; not zero: end after the operation under way


class Workspace(NamedTuple):
    """Places to work on ``most`` breakpoints and ``widest`` states; [j, y] are rows of states."""

    after: np.ndarray  # [j, y] tails of max(reward, children), by own state
    rows: np.ndarray  # [j, s] tails of the result before it is capped
    law: np.ndarray  # [y, s] the law, transposed
    grid: np.ndarray  # [j] breakpoints of max(reward, children)
    x: np.ndarray  # [j] breakpoints of the result
    sigma: np.ndarray  # [s] and so on
    caps: np.ndarray
    rank: np.ndarray
    errors: np.ndarray
    tops: np.ndarray
    floor: np.ndarray
    price: np.ndarray
    reward: np.ndarray
    nothing: np.ndarray  # a block for what is minus infinity for sure
    numbers: np.ndarray  # [j] 0, 1, 2, ...
    pos: np.ndarray  # [j] numbers of rows
    source: np.ndarray
    active: np.ndarray  # [y] numbers of states
    most: int
    widest: int


@lane_helper()
def _workspace(floats, ints, most, widest):
    """Share out what `sweep` has made room for; the integers are 0, 1, 2, ..."""
    room, table = most + 1 + LANES, (most + 1 + boxes.GROUP) * widest
    law = pointer(floats, 2 * table)
    grid = pointer(law, widest * widest)
    x = pointer(grid, padded(room))
    by_state = pointer(x, padded(room))
    return Workspace(
        floats, pointer(floats, table), law, grid, x, by_state, pointer(by_state, widest),
        pointer(by_state, 2 * widest), pointer(by_state, 3 * widest), pointer(by_state, 4 * widest),
        pointer(by_state, 5 * widest), pointer(by_state, 6 * widest), pointer(by_state, 7 * widest),
        pointer(by_state, 8 * widest), ints, pointer(ints, room), pointer(ints, 2 * room),
        pointer(ints, 3 * room), most, widest,
    )  # fmt: skip


@lane_helper()
def _block_of(op, loc, heap, shared, nothing):
    """The block of an operand."""
    if op < 0:
        return nothing
    at = loc[op]
    return pointer(heap, at) if at >= 0 else pointer(shared, -1 - at)


@lane_helper()
def _take_known(known, m, k, w):
    """Breakpoints and rows of a known value."""
    lanes = padded(k)
    for s in range(lanes):
        w.tops[s], w.errors[s] = -np.inf, 0.0
    for n in range(m):
        w.x[n] = known[n]
        for s in range(lanes):
            t = known[m + n * k + s] if s < k else 0.0
            w.rows[n * lanes + s] = t
            if t > 0.0 and w.tops[s] == -np.inf:
                w.tops[s] = w.x[n]


@lane_helper()
def _mixture(op, row, own, children, program, w):
    """W_s = max(reward, children) mixed by the law: its tails, and behind them its errors."""
    k, law, r = row[STATES], row[LAW], row[REWARD]
    lanes, across = padded(k), padded(own)
    if row[LEFT] < 0:
        write_nothing(children.block, across)
    boxes.transpose(pointer(program.laws, program.law_at[law]), k, own, w.law)
    bare, start = False, program.reward_at[r]  # bare: a state without a reward
    for y in range(across):
        w.reward[y] = program.reward[start + y] if y < own else -np.inf
        bare |= (y < own) & (w.reward[y] == -np.inf)
    levels, distinct = program.level_at[r], program.level_at[r + 1] - program.level_at[r]
    grid = boxes.Listing(w.grid, w.pos, w.numbers)
    n = boxes.box_grid(
        grid_of(children.block, across), pointer(program.levels, levels), distinct, bare, grid
    )
    boxes.lift(powers_of(children, across, w.rows), across, w.reward, grid, n, w.after)
    boxes.lift_error(children, own, w.reward, program.outside, pointer(w.after, n * across))
    done = ZERO
    if own > boxes.FEW:
        spans = boxes.Spans(own, w.rank, w.price, w.sigma, w.active, w.caps)
        boxes.find_spans(tops_of(children.block, across), w.reward, w.grid, n, spans)
        done = boxes.mix_between(w.after, spans, w.law, lanes, n, w.rows)
    # one row more than there are breakpoints: the errors are mixed like tails
    boxes.mix(
        pointer(w.after, done * across), own, w.law, lanes, n + 1 - done,
        pointer(w.rows, done * lanes),
    )  # fmt: skip
    if program.weighed:  # what is missing from each row of weights lies above all breakpoints
        defect = pointer(program.defect, program.defect_at[law])
        for j in range(n):
            for s in range(k):
                w.rows[j * lanes + s] += defect[s]
    return boxes.Tails(w.grid, n, w.rows, lanes)


@lane_helper()
def _box(op, row, own, children, program, out, w):
    """The capped value of a box, and its indices."""
    k, law, c = row[STATES], row[LAW], row[COST]
    tails = _mixture(op, row, own, children, program, w)
    lanes, n = tails.lanes, tails.n
    out.width[op] = n
    sigma = pointer(out.sigma, out.sigma_at[op])
    if program.given:
        clear = pointer(out.clear, program.reward_at[row[REWARD]])
        boxes.take_indices(sigma, tails, k, w.after, w.reward, own, clear, w.sigma)
    else:
        cost, shape = pointer(program.costs, program.cost_at[c]), program.cost_shape
        weights = pointer(program.laws, program.law_at[law])
        boxes.prices(cost, shape[2 * c], shape[2 * c + 1], weights, k, own, w.price)
        if program.weighed and n > 0:
            defect = pointer(program.defect, program.defect_at[law])
            for s in range(k):
                w.price[s] += defect[s] * w.grid[0]
        boxes.indices(tails, w.price, w.sigma)
        for s in range(k):
            sigma[s] = w.sigma[s]
    boxes.sort_down(w.sigma, lanes, w.rank, w.caps)
    m = boxes.cap_grid(w.grid, w.caps, lanes, boxes.Listing(w.x, w.source, w.numbers))
    # no tail reaches above an index: it is the highest breakpoint of its state
    errors = pointer(w.rows, n * lanes)
    return Draft(w.x, w.source, m, w.rows, lanes, w.sigma, w.floor, errors, w.sigma)


@lane_helper()
def _carry_out(step, order, program, out, shared, heap, size, state, w):
    """Carry out operations from ``step`` on, as long as there is room.

    Returns the first step not done, and the breakpoints and states that it needs room for.
    """
    while step < order.size:
        if out.stop[0] != 0:
            return order.size, ZERO, ZERO
        op = order[step]
        row = pointer(program.ops, op * COLUMNS)
        k, r, user = row[STATES], row[REWARD], row[USER]
        own, room = k, ZERO
        if row[KIND] == BOX:
            own = program.reward_at[r + 1] - program.reward_at[r]
            room = program.level_at[r + 1] - program.level_at[r] + k
        elif row[KIND] == GIVEN:
            room = program.known_size[op]
        left = _block_of(row[LEFT], out.loc, heap, shared, w.nothing)
        right = _block_of(row[RIGHT], out.loc, heap, shared, w.nothing)
        room += count(left) if row[LEFT] >= 0 else ZERO
        room += count(right) if row[RIGHT] >= 0 else ZERO
        lanes, widest = padded(k), max(padded(k), padded(own))
        if room > w.most or widest > w.widest or state[TOP] + 2 * block_size(room, lanes) > size:
            return step, room, widest
        step += 1
        if step < order.size:  # ask for the next law, which else would have to be waited for
            law = program.ops[order[step] * COLUMNS + LAW]
            if law >= 0:
                start = program.law_at[law]
                for i in range(start, min(program.law_at[law + 1], start + _AHEAD), LANES):
                    prefetch(program.laws, i)

        # below its floor nobody looks at a state: where its only user has as good a reward
        base = program.outside if user == OUTSIDE_USER else -np.inf
        least, at = np.inf, program.reward_at[max(user, ZERO)]
        for s in range(k):
            w.floor[s] = max(base, program.reward[at + s]) if user >= 0 else base
            least = min(least, w.floor[s])
        for s in range(k, lanes):  # the padding looks nowhere
            w.floor[s] = np.inf

        if row[KIND] == BOX:
            draft = _box(op, row, own, Operand(left, program.powers[2 * op]), program, out, w)
        else:
            m = ZERO
            draft = Draft(w.x, w.source, m, w.rows, lanes, w.sigma, w.floor, w.errors, w.tops)
            if row[KIND] == JOIN:
                a = Operand(left, program.powers[2 * op])
                b = Operand(right, program.powers[2 * op + 1])
                m = join(a, b, k, least, w.pos, w.source, w.after, draft)
            else:
                known = pointer(program.known, program.known_at[op])
                _take_known(known, room, k, w)
                m = room
            for u in range(0, lanes, LANES):  # nothing is cut off
                store(w.sigma, u, splat(np.inf))
            for j in range(m):
                w.source[j] = j
            draft = Draft(w.x, w.source, m, w.rows, lanes, w.sigma, w.floor, w.errors, w.tops)

        for side in range(LEFT, RIGHT + 1):  # after the last use of an operand its block is free
            x = row[side]
            if x >= 0 and out.loc[x] >= 0:
                out.refs[x] -= 1
                if out.refs[x] == 0:
                    block = pointer(heap, out.loc[x])
                    across = padded(own if side == LEFT else k)
                    release(block, state, out.loc[x], block_size(np.int64(block[1]), across))
        at = allocate(heap, state, block_size(draft.m, lanes))
        out.loc[op] = at
        thin(draft, program.eps, pointer(heap, at))
    return step, ZERO, ZERO


@lane_kernel()
def sweep(
    order: IntArray,
    program: Program,
    out: Outputs,
    shared: FloatArray,
    heap: FloatArray,
    state: IntArray,
) -> FloatArray:
    """Carry out the operations ``order`` in turn; returns the heap, which may have moved.

    The value of an operation is the block at ``loc``. An operand with ``loc < 0`` lies in
    ``shared`` at ``-1 - loc``; all others in ``heap``, where a block is freed after its last
    use. A raised flag ``stop`` ends it early.
    """
    # pointers in place of arrays: those would be counted at every step
    p, o = program, out
    read = Program(
        pointer(p.ops, 0), pointer(p.powers, 0), pointer(p.laws, 0), pointer(p.law_at, 0),
        pointer(p.reward, 0), pointer(p.reward_at, 0), pointer(p.levels, 0), pointer(p.level_at, 0),
        pointer(p.costs, 0), pointer(p.cost_at, 0), pointer(p.cost_shape, 0), pointer(p.defect, 0),
        pointer(p.defect_at, 0), pointer(p.known, 0), pointer(p.known_at, 0),
        pointer(p.known_size, 0), p.outside, p.eps, p.given, p.weighed,
    )  # fmt: skip
    written = Outputs(
        pointer(o.loc, 0), pointer(o.refs, 0), pointer(o.sigma, 0), pointer(o.sigma_at, 0),
        pointer(o.width, 0), pointer(o.clear, 0), pointer(o.stop, 0),
    )  # fmt: skip
    step, most, widest = ZERO, np.int64(64), np.int64(LANES)  # breakpoints, states: room for
    while step < order.size:
        room, table = most + 1 + LANES, (most + 1 + boxes.GROUP) * widest
        by_state = 8 * widest + padded(block_size(ZERO, widest))
        floats = aligned(2 * table + widest * widest + by_state + 2 * padded(room))
        ints = count_up(3 * room + widest)
        w = _workspace(pointer(floats, 0), pointer(ints, 0), most, widest)
        step, extra, lanes = _carry_out(
            step, order, read, written, pointer(shared, 0), pointer(heap, 0), heap.size,
            pointer(state, 0), w,
        )  # fmt: skip
        keep(floats)
        keep(ints)
        most, widest = 2 * extra if extra > most else most, max(lanes, widest)
        end = state[TOP] + 2 * block_size(extra, lanes)
        if end > heap.size:
            bigger = aligned(max(end, 2 * heap.size))
            copy(heap, ZERO, heap.size, bigger, ZERO)
            heap = bigger
    return heap
