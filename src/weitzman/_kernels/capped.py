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
larger of two, :mod:`.thinning` drops what does not matter; here they are carried out in turn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

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
    write_nothing,
)
from .boxes import (
    GROUP,
    add_defect,
    box_grid,
    cap_grid,
    clear_chances,
    copy_rewards,
    given_indices,
    indices,
    lift,
    lift_error,
    mix,
    prices,
    sort_down,
    transpose,
)
from .joins import join_error, join_grid, join_rows, powers_of
from .lanes import LANES, keep, pointer, prefetch, splat, store
from .operations import (
    BOX,
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
from .settings import ENTRY, JIT
from .thinning import thin

_AHEAD = 256  # floats of the next law to ask for in advance


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
    defect: np.ndarray  # what is missing from each row of weights to one; empty if nothing is
    defect_at: np.ndarray
    known: np.ndarray  # values that are known: falling breakpoints, then a row of tails for each
    known_at: np.ndarray  # by operation: where its known value starts
    known_size: np.ndarray  # by operation: how many breakpoints that has
    low: float
    outside: float
    eps: float
    given: bool


@njit(**JIT)
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


@njit(**JIT)
def _desk_size(most, widest):
    """Floats, and integers, to work on ``most`` breakpoints and ``widest`` states."""
    room, by_state = most + 1 + LANES, 8 * widest + padded(block_size(0, widest))
    table = (most + 1 + GROUP) * widest
    return 2 * table + widest * widest + by_state + 2 * padded(room), 4 * room


@njit(**JIT)
def _fetch_law(order, step, ops, laws, law_at):
    """Ask for the law of an operation to come, which else would have to be waited for."""
    if step < order.size and ops[order[step], LAW] >= 0:
        at = ops[order[step], LAW]
        for i in range(law_at[at], min(law_at[at + 1], law_at[at] + _AHEAD), LANES):
            prefetch(pointer(laws, 0), i)


@njit(**JIT)
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


@njit(**JIT)
def _carry_out(
    step, order, columns, clear, loc, refs, shared, sigma, sigma_at, width, heap, size, state, most,
    widest, floats, ints,
):  # fmt: skip
    """Carry out operations from ``step`` on, as long as there is room.

    Returns the first step not done, and the breakpoints and states that it needs room for.
    """
    (
        ops, powers, laws, law_at, reward, reward_at, levels, level_at, costs, cost_at, cost_shape,
        defect, defect_at, known, known_at, known_size, low, outside, eps, given,
    ) = columns  # fmt: skip
    room, table = most + 1 + LANES, (most + 1 + GROUP) * widest
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
            or state[TOP] + 2 * block_size(extra, lanes) > size
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
            m = join_grid(grid_of(a, lanes), grid_of(b, lanes), least, x, pos, source)
            ra = powers_of(a, lanes, ca, after)
            rb = powers_of(b, lanes, cb, pointer(after, (count(a, 0) + 1) * lanes))
            join_rows(ra, pos, rb, source, lanes, m, rows)
            err, top = errors, tops
            join_error(a, ca, b, cb, k, err, top)
            for u in range(0, lanes, LANES):
                store(sig, u, splat(np.inf))
            for j in range(m):
                source[j] = j
        else:
            copies, c, p = powers[op, 0], this[COST], pointer(laws, law_at[this[LAW]])
            if left < 0:
                write_nothing(a, across)
            transpose(p, k, own, law)
            bare = copy_rewards(pointer(reward, reward_at[r]), own, mine)
            n = box_grid(
                grid_of(a, across), pointer(levels, level_at[r]), level_at[r + 1] - level_at[r],
                bare, low, numbers, grid, pos,
            )  # fmt: skip
            width[op] = n
            lift(powers_of(a, across, copies, rows), across, mine, grid, pos, n, after)
            lift_error(a, own, copies, mine, outside, pointer(after, n * across))
            mix(after, own, law, lanes, n + 1, rows)
            if defect.size > 0:
                add_defect(pointer(defect, defect_at[this[LAW]]), k, n, lanes, rows)
            if given:
                given_indices(pointer(sigma, sigma_at[op]), k, grid, n, sig)
                clear_chances(after, across, mine, own, grid, n, pointer(clear, reward_at[r]))
            else:
                cost = pointer(costs, cost_at[c])
                prices(cost, cost_shape[c, 0], cost_shape[c, 1], p, k, own, price)
                if defect.size > 0 and n > 0:
                    for s in range(k):
                        price[s] += defect[defect_at[this[LAW]] + s] * grid[0]
                indices(grid, n, rows, lanes, price, low, sig)
                for s in range(k):
                    sigma[sigma_at[op] + s] = sig[s]
            err, top = pointer(rows, n * lanes), sig
            sort_down(sig, lanes, rank, caps)
            m = cap_grid(grid, n, caps, lanes, numbers, x, source)

        if left >= 0 and loc[left] >= 0:
            refs[left] -= 1
            if refs[left] == 0:
                release(a, state, loc[left], extent(a, 0, own))
        if right >= 0 and loc[right] >= 0:
            refs[right] -= 1
            if refs[right] == 0:
                release(b, state, loc[right], extent(b, 0, k))
        loc[op] = allocate(heap, state, block_size(m, lanes))
        value = pointer(heap, loc[op])
        thin(x, source, m, rows, lanes, sig, floor, err, top, eps, loose, value)
    return step, 0, 0


@njit(**ENTRY)
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
        end = state[TOP] + 2 * block_size(extra, lanes)
        if end > heap.size:
            bigger = aligned(max(end, 2 * heap.size))
            bigger[: heap.size] = heap
            heap = bigger
    return heap
