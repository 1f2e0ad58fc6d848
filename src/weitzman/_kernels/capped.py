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

Values lie in blocks (:mod:`.blocks`); :mod:`.boxes` makes the value of a box, :mod:`.joins` the
larger of two, and drops what does not matter; here they are carried out in turn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .blocks import (
    TOP,
    aligned,
    allocate,
    block_size,
    count,
    extent,
    grid_of,
    padded,
    release,
    tops_of,
    write_nothing,
)
from .boxes import (
    FEW,
    GROUP,
    Cost,
    Listing,
    Spans,
    Tails,
    add_defect,
    box_grid,
    cap_grid,
    clear_chances,
    copy_rewards,
    find_spans,
    given_indices,
    indices,
    lift,
    lift_error,
    mix,
    mix_between,
    prices,
    sort_down,
    transpose,
)
from .copying import copy, count_up
from .jit import lane_helper, lane_kernel
from .joins import Draft, Operand, Side, join_error, join_grid, join_rows, powers_of, thin
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
)

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
    low: float  # what lies below is left out
    outside: float
    eps: float
    given: bool  # the indices are given rather than looked for
    weighed: bool  # rows of the laws need not sum to one


class Slate(NamedTuple):
    """What the operations write."""

    loc: np.ndarray  # by operation: where its value lies in the heap; -1 - place if in `shared`
    refs: np.ndarray  # by operation: how often its value is still needed
    sigma: np.ndarray  # the indices
    sigma_at: np.ndarray  # by operation: where its indices start
    width: np.ndarray  # by operation: columns of its matrix product
    clear: np.ndarray  # if indices are given: P(no child reaches the reward), by state
    stop: np.ndarray  # one integer; not zero: end after the operation under way


class Store(NamedTuple):
    """Where values lie: the heap, its size, the state of its allocator, and what others made."""

    heap: np.ndarray
    size: int
    state: np.ndarray
    shared: np.ndarray


class Task(NamedTuple):
    """One operation: its number, its row in the table, its operands, and what it needs."""

    op: int
    row: np.ndarray
    states: int  # that its value is conditioned on
    own: int  # states of the box itself; for a join those of its operands
    left: np.ndarray
    right: np.ndarray
    room: int  # breakpoints that there must be room for


class Desk(NamedTuple):
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
def desk_size(most, widest):
    """Floats, and integers, to work on ``most`` breakpoints and ``widest`` states."""
    room, by_state = most + 1 + LANES, 8 * widest + padded(block_size(0, widest))
    table = (most + 1 + GROUP) * widest
    return 2 * table + widest * widest + by_state + 2 * padded(room), 3 * room + widest


@lane_helper()
def set_desk(floats, ints, most, widest):
    """Share out floats and the integers 0, 1, 2, ..., as many as `desk_size` says."""
    room, table = most + 1 + LANES, (most + 1 + GROUP) * widest
    law = pointer(floats, 2 * table)
    grid = pointer(law, widest * widest)
    x = pointer(grid, padded(room))
    by_state = pointer(x, padded(room))
    return Desk(
        floats, pointer(floats, table), law, grid, x, by_state, pointer(by_state, widest),
        pointer(by_state, 2 * widest), pointer(by_state, 3 * widest), pointer(by_state, 4 * widest),
        pointer(by_state, 5 * widest), pointer(by_state, 6 * widest), pointer(by_state, 7 * widest),
        pointer(by_state, 8 * widest), ints, pointer(ints, room), pointer(ints, 2 * room),
        pointer(ints, 3 * room), most, widest,
    )  # fmt: skip


@lane_helper(inline=True)
def _floors(user, reward, k, program, floor):
    """Below what the user of a value does not look, per state; the padding looks nowhere.

    ``reward`` are those of the user, where there is one only. Returns the least of the floors.
    """
    least = np.inf
    for s in range(k, padded(k)):
        floor[s] = np.inf
    base = max(program.low, program.outside) if user == OUTSIDE_USER else program.low
    for s in range(k):
        floor[s] = max(base, reward[s]) if user >= 0 else base
        least = min(least, floor[s])
    return least


@lane_helper(inline=True)
def _fetch_law(program, op):
    """Ask for the law of an operation to come, which else would have to be waited for."""
    at = program.ops[op * COLUMNS + LAW]
    if at >= 0:
        start = program.law_at[at]
        for i in range(start, min(program.law_at[at + 1], start + _AHEAD), LANES):
            prefetch(program.laws, i)


@lane_helper(inline=True)
def _operand(op, slate, store_, nothing):
    """The block of an operand."""
    if op < 0:
        return nothing
    at = slate.loc[op]
    return pointer(store_.heap, at) if at >= 0 else pointer(store_.shared, -1 - at)


@lane_helper(inline=True)
def _read(op, program, slate, store_, nothing):
    """What an operation is about."""
    row = pointer(program.ops, op * COLUMNS)
    k, r = row[STATES], row[REWARD]
    own, room = k, 0
    if row[KIND] == BOX:
        own = program.reward_at[r + 1] - program.reward_at[r]
        room = program.level_at[r + 1] - program.level_at[r] + k
    elif row[KIND] == GIVEN:
        room = program.known_size[op]
    left = _operand(row[LEFT], slate, store_, nothing)
    right = _operand(row[RIGHT], slate, store_, nothing)
    room += count(left, 0) if row[LEFT] >= 0 else 0
    room += count(right, 0) if row[RIGHT] >= 0 else 0
    return Task(op, row, k, own, left, right, room)


@lane_helper(inline=True)
def _uncapped(m, lanes, desk):
    """Nothing is cut off, and every breakpoint has a row of its own."""
    for u in range(0, lanes, LANES):
        store(desk.sigma, u, splat(np.inf))
    for j in range(m):
        desk.source[j] = j


@lane_helper(inline=True)
def _take_known(task, program, desk):
    """Breakpoints and rows of a known value, those not below ``low``; how many there are."""
    known, m, k = pointer(program.known, program.known_at[task.op]), task.room, task.states
    lanes, n = padded(k), 0
    for s in range(lanes):
        desk.tops[s], desk.errors[s] = -np.inf, 0.0
    while n < m and known[n] >= program.low:
        desk.x[n] = known[n]
        for s in range(lanes):
            t = known[m + n * k + s] if s < k else 0.0
            desk.rows[n * lanes + s] = t
            if t > 0.0 and desk.tops[s] == -np.inf:
                desk.tops[s] = desk.x[n]
        n += 1
    _uncapped(n, lanes, desk)
    return Draft(
        desk.x, desk.source, n, desk.rows, lanes, desk.sigma, desk.floor, desk.errors, desk.tops
    )


@lane_helper(inline=True)
def _join(task, program, least, desk):
    """The larger of two values, each to a power."""
    a = Operand(task.left, program.powers[2 * task.op])
    b = Operand(task.right, program.powers[2 * task.op + 1])
    lanes = padded(task.states)
    m = join_grid(
        grid_of(a.block, lanes), grid_of(b.block, lanes), least, desk.x, desk.pos, desk.source
    )
    ra = powers_of(a, lanes, desk.after)
    rb = powers_of(b, lanes, pointer(desk.after, (count(a.block, 0) + 1) * lanes))
    join_rows(Side(ra, desk.pos), Side(rb, desk.source), lanes, m, desk.rows)
    join_error(a, b, task.states, desk.errors, desk.tops)
    _uncapped(m, lanes, desk)
    return Draft(
        desk.x, desk.source, m, desk.rows, lanes, desk.sigma, desk.floor, desk.errors, desk.tops
    )


@lane_helper(inline=True)
def _mixture(task, program, slate, desk):
    """W_s = max(reward, children) mixed by the law: its tails, and behind them its errors."""
    k, own, r = task.states, task.own, task.row[REWARD]
    lanes, across = padded(k), padded(own)
    children = Operand(task.left, program.powers[2 * task.op])
    if task.row[LEFT] < 0:
        write_nothing(task.left, across)
    transpose(pointer(program.laws, program.law_at[task.row[LAW]]), k, own, desk.law)
    bare = copy_rewards(pointer(program.reward, program.reward_at[r]), own, desk.reward)
    levels, distinct = program.level_at[r], program.level_at[r + 1] - program.level_at[r]
    grid = Listing(desk.grid, desk.pos, desk.numbers)
    n = box_grid(
        grid_of(task.left, across), pointer(program.levels, levels), distinct, bare, program.low,
        grid,
    )  # fmt: skip
    slate.width[task.op] = n
    lift(powers_of(children, across, desk.rows), across, desk.reward, grid, n, desk.after)
    lift_error(children, own, desk.reward, program.outside, pointer(desk.after, n * across))
    done = ZERO
    if own > FEW:
        spans = Spans(own, desk.rank, desk.price, desk.sigma, desk.active, desk.caps)
        find_spans(tops_of(task.left, across), desk.reward, desk.grid, n, spans)
        done = mix_between(desk.after, spans, desk.law, lanes, n, desk.rows)
    mix(
        pointer(desk.after, done * across), own, desk.law, lanes, n + 1 - done,
        pointer(desk.rows, done * lanes),
    )  # fmt: skip
    tails = Tails(desk.grid, n, desk.rows, lanes)
    if program.weighed:
        add_defect(pointer(program.defect, program.defect_at[task.row[LAW]]), k, tails)
    return tails


@lane_helper(inline=True)
def _find_indices(task, program, slate, tails, desk):
    """The indices of a box, from the tails of W or as they are given."""
    k, c, out = task.states, task.row[COST], pointer(slate.sigma, slate.sigma_at[task.op])
    if program.given:
        clear = pointer(slate.clear, program.reward_at[task.row[REWARD]])
        given_indices(out, k, tails.points, tails.n, desk.sigma)
        clear_chances(desk.after, desk.reward, task.own, tails.points, tails.n, clear)
    else:
        law, shape = pointer(program.laws, program.law_at[task.row[LAW]]), program.cost_shape
        cost = Cost(pointer(program.costs, program.cost_at[c]), shape[2 * c], shape[2 * c + 1])
        prices(cost, law, k, task.own, desk.price)
        if program.weighed and tails.n > 0:
            defect = pointer(program.defect, program.defect_at[task.row[LAW]])
            for s in range(k):
                desk.price[s] += defect[s] * tails.points[0]
        indices(tails, desk.price, program.low, desk.sigma)
        for s in range(k):
            out[s] = desk.sigma[s]


@lane_helper(inline=True)
def _box(task, program, slate, desk):
    """The capped value of a box, and its indices."""
    tails = _mixture(task, program, slate, desk)
    _find_indices(task, program, slate, tails, desk)
    lanes = tails.lanes
    sort_down(desk.sigma, lanes, desk.rank, desk.caps)
    m = cap_grid(desk.grid, desk.caps, lanes, Listing(desk.x, desk.source, desk.numbers))
    errors = pointer(desk.rows, tails.n * lanes)
    return Draft(
        desk.x, desk.source, m, desk.rows, lanes, desk.sigma, desk.floor, errors, desk.sigma
    )


@lane_helper(inline=True)
def _give_back(op, block, k, slate, state):
    """One use less of an operand; after the last its block is free."""
    if op >= 0 and slate.loc[op] >= 0:
        slate.refs[op] -= 1
        if slate.refs[op] == 0:
            release(block, state, slate.loc[op], extent(block, 0, k))


@lane_helper()
def _carry_out(step, order, program, slate, store_, desk):
    """Carry out operations from ``step`` on, as long as there is room.

    Returns the first step not done, and the breakpoints and states that it needs room for.
    """
    while step < order.size:
        if slate.stop[0] != 0:
            return order.size, ZERO, ZERO
        task = _read(order[step], program, slate, store_, desk.nothing)
        row, lanes = task.row, padded(task.states)
        widest = max(lanes, padded(task.own))
        end = store_.state[TOP] + 2 * block_size(task.room, lanes)
        if task.room > desk.most or widest > desk.widest or end > store_.size:
            return step, task.room, widest
        step += 1
        if step < order.size:
            _fetch_law(program, order[step])

        user = pointer(program.reward, program.reward_at[max(row[USER], 0)])
        least = _floors(row[USER], user, task.states, program, desk.floor)
        if row[KIND] == GIVEN:
            draft = _take_known(task, program, desk)
        elif row[KIND] == JOIN:
            draft = _join(task, program, least, desk)
        else:
            draft = _box(task, program, slate, desk)

        _give_back(row[LEFT], task.left, task.own, slate, store_.state)
        _give_back(row[RIGHT], task.right, task.states, slate, store_.state)
        at = allocate(store_.heap, store_.state, block_size(draft.m, lanes))
        slate.loc[task.op] = at
        thin(draft, program.eps, pointer(store_.heap, at))
    return step, ZERO, ZERO


@lane_helper()
def _program_at(p):
    """A program with pointers in place of arrays: those cost no counting of references."""
    return Program(
        pointer(p.ops, 0), pointer(p.powers, 0), pointer(p.laws, 0), pointer(p.law_at, 0),
        pointer(p.reward, 0), pointer(p.reward_at, 0), pointer(p.levels, 0), pointer(p.level_at, 0),
        pointer(p.costs, 0), pointer(p.cost_at, 0), pointer(p.cost_shape, 0), pointer(p.defect, 0),
        pointer(p.defect_at, 0), pointer(p.known, 0), pointer(p.known_at, 0),
        pointer(p.known_size, 0), p.low, p.outside, p.eps, p.given, p.weighed,
    )  # fmt: skip


@lane_helper()
def _slate_at(s):
    """A slate with pointers in place of arrays."""
    return Slate(
        pointer(s.loc, 0), pointer(s.refs, 0), pointer(s.sigma, 0), pointer(s.sigma_at, 0),
        pointer(s.width, 0), pointer(s.clear, 0), pointer(s.stop, 0),
    )  # fmt: skip


@lane_kernel()
def sweep(order, program, slate, shared, heap, state):
    """Carry out the operations ``order`` in turn; returns the heap, which may have moved.

    The value of an operation is the block at ``loc``. An operand with ``loc < 0`` lies in
    ``shared`` at ``-1 - loc``; all others in ``heap``, where a block is given back after its last
    use. A raised flag ``stop`` ends it early.
    """
    step, most, widest = ZERO, np.int64(64), np.int64(LANES)  # breakpoints, states: room for
    while step < order.size:
        size, numbers = desk_size(most, widest)
        floats, ints = aligned(size), count_up(numbers)
        desk = set_desk(pointer(floats, 0), pointer(ints, 0), most, widest)
        where = Store(pointer(heap, 0), heap.size, pointer(state, 0), pointer(shared, 0))
        step, extra, lanes = _carry_out(
            step, order, _program_at(program), _slate_at(slate), where, desk
        )
        keep(floats)
        keep(ints)
        most, widest = 2 * extra if extra > most else most, max(lanes, widest)
        end = state[TOP] + 2 * block_size(extra, lanes)
        if end > heap.size:
            bigger = aligned(max(end, 2 * heap.size))
            copy(heap, ZERO, heap.size, bigger, ZERO)
            heap = bigger
    return heap
