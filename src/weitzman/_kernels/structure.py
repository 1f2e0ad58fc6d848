"""From boxes to operations: order, equal subtrees, balanced joins, independent parts.

Boxes whose numbers are equal and whose children are equal, with equal counts, form one *class*:
they have the same capped value, which is computed once. Classes become a list of operations, a
``BOX`` each and a balanced tree of ``JOIN`` for the children of a box, in topological order.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .operations import (
    BOX,
    COST,
    GIVEN,
    JOIN,
    KIND,
    LAW,
    LEFT,
    MIXED_USERS,
    OUTSIDE_USER,
    REWARD,
    RIGHT,
    STATES,
    USER,
)  # fmt: skip

_INNER = {"nogil": True}
_JIT = {**_INNER, "cache": True}
UNUSED, SHARED, FINAL = -3, -2, -1  # owners of operations besides the parts 0, 1, ...


# plain loops below where NumPy has a function: those take seconds to compile


@njit(**_INNER)
def _filled(n, x):
    out = np.empty(n, np.int64)
    for i in range(n):
        out[i] = x
    return out


@njit(**_INNER)
def _copied(x, n):
    out = np.empty(n, x.dtype)
    for i in range(n):
        out[i] = x[i]
    return out


@njit(**_INNER)
def _sort(keys, others, lo, hi):
    """Sort ``keys[lo:hi]``, and ``others`` along with it, by Shell's method."""
    gap = 1
    while gap < (hi - lo) // 2:
        gap = 2 * gap + 1
    while gap > 0:
        for i in range(lo + gap, hi):
            key, other, j = keys[i], others[i], i
            while j >= lo + gap and keys[j - gap] > key:
                keys[j], others[j] = keys[j - gap], others[j - gap]
                j -= gap
            keys[j], others[j] = key, other
        gap //= 2


@njit(**_JIT)
def postorder(parent):
    """Boxes with children first, and lists of children; boxes on a cycle are left out."""
    n = parent.size
    first, after = _filled(n, -1), _filled(n, -1)
    roots = np.empty(n, np.int64)
    top = 0
    for v in range(n - 1, -1, -1):
        if parent[v] >= 0:
            after[v] = first[parent[v]]
            first[parent[v]] = v
    for v in range(n):
        if parent[v] < 0:
            roots[top] = v
            top += 1
    order, stack, done = np.empty(n, np.int64), np.empty(n, np.int64), 0
    for r in range(top):
        # a reversed preorder (children right to left) is a postorder: fill from the end
        stack[0], depth, start = roots[r], 1, done
        while depth > 0:
            depth -= 1
            v = stack[depth]
            order[done] = v
            done += 1
            u = first[v]
            while u >= 0:
                stack[depth] = u
                depth += 1
                u = after[u]
        i, j = start, done - 1
        while i < j:
            order[i], order[j] = order[j], order[i]
            i, j = i + 1, j - 1
    return _copied(order, done), first, after


@njit(inline="always", **_JIT)
def _scramble(h, x):
    h ^= np.uint64(x)
    h *= np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(29))


@njit(**_JIT)
def intern_rows(data, start):
    """Number equal rows alike: ``data[start[i]:start[i + 1]]`` are the integers of row i.

    Returns the number of each row and, for each number, the first row that has it.
    """
    n = start.size - 1
    size = 16
    while size < 2 * n:
        size *= 2
    table = _filled(size, -1)
    number, first, count = np.empty(n, np.int64), np.empty(n, np.int64), 0
    for i in range(n):
        lo, length = start[i], start[i + 1] - start[i]
        h = np.uint64(length)
        for j in range(length):
            h = _scramble(h, data[lo + j])
        slot = np.int64(h & np.uint64(size - 1))
        while True:
            c = table[slot]
            if c < 0:
                table[slot] = count
                first[count] = i
                number[i] = count
                count += 1
                break
            other = start[first[c]]
            same = start[first[c] + 1] - other == length
            j = 0
            while same and j < length:
                same = data[lo + j] == data[other + j]
                j += 1
            if same:
                number[i] = c
                break
            slot = (slot + 1) & (size - 1)
    return number, _copied(first, count)


@njit(**_JIT)
def sort_levels(rewards, start):
    """Sorted rewards of each row without doubles and minus infinity; where those of a row start."""
    n = start.size - 1
    out, at, used = _copied(rewards, rewards.size), _filled(n + 1, 0), 0
    for r in range(n):
        _sort(out, out, start[r], start[r + 1])
        first = used
        for j in range(start[r], start[r + 1]):
            if out[j] > -np.inf and (used == first or out[used - 1] != out[j]):
                out[used] = out[j]
                used += 1
        at[r + 1] = used
    return out[:used], at


@njit(**_JIT)
def order_ties(by, values):
    """Make a sorting order stable: among equal values, the first position first."""
    start = 0
    for end in range(1, by.size + 1):
        if end == by.size or values[by[end]] != values[by[start]]:
            if end - start > 1:
                _sort(by, by, start, end)
            start = end


@njit(**_JIT)
def classify(order, first, after, law, reward, cost, count):
    """Classes of equal subtrees, children before parents.

    Returns the class of each box, one box for each class, and the children of each class as
    ``child[at[c]:at[c + 1]]`` in rising order with their ``copies``.
    """
    n = order.size
    size = 16
    while size < 2 * n:
        size *= 2
    table = _filled(size, -1)
    class_of, member = _filled(law.size, -1), np.empty(n, np.int64)
    at, child = _filled(n + 1, 0), np.empty(n, np.int64)
    copies = np.empty(n)  # as floats: sums of copies may exceed any integer
    bits = copies.view(np.int64)
    classes = 0
    for i in range(n):
        v = order[i]
        lo = at[classes]
        end = lo
        u = first[v]
        while u >= 0:
            child[end], copies[end] = class_of[u], count[u]
            end += 1
            u = after[u]
        if end - lo > 1:
            _sort(child, copies, lo, end)
            last, end = end, lo
            for j in range(lo, last):
                if end > lo and child[j] == child[end - 1]:
                    copies[end - 1] += copies[j]
                else:
                    child[end], copies[end] = child[j], copies[j]
                    end += 1
        h = _scramble(_scramble(_scramble(np.uint64(end - lo), law[v]), reward[v]), cost[v])
        for j in range(lo, end):
            h = _scramble(_scramble(h, child[j]), bits[j])
        slot = np.int64(h & np.uint64(size - 1))
        while True:
            c = table[slot]
            if c < 0:
                table[slot] = classes
                member[classes] = v
                class_of[v] = classes
                classes += 1
                at[classes] = end
                break
            w = member[c]
            same = law[w] == law[v] and reward[w] == reward[v] and cost[w] == cost[v]
            same = same and at[c + 1] - at[c] == end - lo
            j = 0
            while same and j < end - lo:
                same = child[at[c] + j] == child[lo + j] and copies[at[c] + j] == copies[lo + j]
                j += 1
            if same:
                class_of[v] = c
                break
            slot = (slot + 1) & (size - 1)
    end = at[classes]
    return (
        class_of,
        _copied(member, classes),
        _copied(at, classes + 1),
        _copied(child, end),
        _copied(copies, end),
    )


@njit(**_JIT)
def _balance(items, powers_in, n, states, ops, powers, used):
    """Join ``items[:n]`` pairwise until one is left; returns it, its power and the ops used."""
    while n > 1:
        half = 0
        for i in range(0, n - 1, 2):
            ops[used, KIND], ops[used, STATES] = JOIN, states
            ops[used, LEFT], ops[used, RIGHT] = items[i], items[i + 1]
            powers[used, 0], powers[used, 1] = powers_in[i], powers_in[i + 1]
            items[half], powers_in[half] = used, 1.0
            half += 1
            used += 1
        if n % 2 == 1:
            items[half], powers_in[half] = items[n - 1], powers_in[n - 1]
            half += 1
        n = half
    return items[0], powers_in[0], used


@njit(**_JIT)
def build_operations(
    member, at, child, copies, law, reward, cost, known, states, top, top_copies, cuts
):
    """Operations for all classes, then for the roots ``top`` in parts ``top[cuts[p]:cuts[p + 1]]``.

    The value of a class whose box is ``known`` is given, all others are computed. ``states[c]`` is
    the number of states that class c is conditioned on. Returns the table, the powers, the
    operation of each class, the operation of each part, and that of the whole with its power.
    """
    classes, parts = member.size, cuts.size - 1
    room = classes + max(parts - 1, 0)  # and as many joins as there are values, less one each
    for c in range(classes):
        room += max(at[c + 1] - at[c] - 1, 0)
    for p in range(parts):
        room += cuts[p + 1] - cuts[p] - 1
    ops, powers = np.empty((room, 8), np.int64), np.empty((room, 2))
    for i in range(room):
        for j in range(8):
            ops[i, j] = -1
        powers[i, 0] = powers[i, 1] = 1.0
    op_of = np.empty(classes, np.int64)
    widest = top.size
    for c in range(classes):
        widest = max(widest, at[c + 1] - at[c])
    items, power = np.empty(max(widest, parts, 1), np.int64), np.empty(max(widest, parts, 1))
    used = 0
    for c in range(classes):
        v, n = member[c], at[c + 1] - at[c]
        left, times = -1, 1.0
        if n > 0:
            for j in range(n):
                items[j], power[j] = op_of[child[at[c] + j]], copies[at[c] + j]
            k = states[child[at[c]]]
            left, times, used = _balance(items, power, n, k, ops, powers, used)
        ops[used, KIND] = GIVEN if known[v] else BOX
        ops[used, STATES], ops[used, LEFT] = states[c], left
        ops[used, LAW], ops[used, REWARD], ops[used, COST] = law[v], reward[v], cost[v]
        powers[used, 0] = times
        op_of[c] = used
        used += 1
    part_op, part_power = np.empty(parts, np.int64), np.empty(parts)
    for p in range(parts):
        n = cuts[p + 1] - cuts[p]
        for j in range(n):
            items[j], power[j] = op_of[top[cuts[p] + j]], top_copies[cuts[p] + j]
        part_op[p], part_power[p], used = _balance(items, power, n, 1, ops, powers, used)
    for p in range(parts):
        items[p], power[p] = part_op[p], part_power[p]
    last, times, used = _balance(items, power, parts, 1, ops, powers, used)
    _set_users(ops, used, last)
    return ops, powers, op_of, part_op, last, times


@njit(**_JIT)
def _set_users(ops, used, last):
    """Whose rewards each value is compared with, where that is one row of rewards."""
    unset = -9
    for op in range(used):
        ops[op, USER] = unset
    ops[last, USER] = OUTSIDE_USER
    for op in range(used - 1, -1, -1):
        user = ops[op, USER] if ops[op, KIND] == JOIN else ops[op, REWARD]
        for side in (LEFT, RIGHT):
            x = ops[op, side]
            if x >= 0:
                if ops[x, USER] == unset:
                    ops[x, USER] = user
                elif ops[x, USER] != user:
                    ops[x, USER] = MIXED_USERS


@njit(**_JIT)
def assign_owners(ops, part_op, last):
    """The part that alone needs each operation, or SHARED, or FINAL; and the number of uses."""
    n = ops.shape[0]
    owner, refs = _filled(n, UNUSED), _filled(n, 0)
    owner[last] = FINAL
    for p in range(part_op.size):
        owner[part_op[p]] = p
    for op in range(n - 1, -1, -1):
        for side in (LEFT, RIGHT):
            x = ops[op, side]
            if x >= 0:
                refs[x] += 1
                if owner[op] == FINAL:
                    if owner[x] == UNUSED:
                        owner[x] = FINAL
                elif owner[x] == UNUSED:
                    owner[x] = owner[op]
                elif owner[x] != owner[op]:
                    owner[x] = SHARED
    return owner, refs


@njit(**_JIT)
def schedule(ops, owner, mine, tops):
    """Order of the operations owned by ``mine`` under ``tops``: depth first, so few stay alive."""
    done = np.zeros(ops.shape[0], np.uint8)
    order, n = np.empty(ops.shape[0], np.int64), 0
    stack = np.empty(2 * ops.shape[0] + 1, np.int64)
    for t in range(tops.size):
        stack[0], depth = tops[t], 1
        while depth > 0:
            op = stack[depth - 1]
            if done[op] == 2 or owner[op] != mine:
                depth -= 1
            elif done[op] == 1:
                done[op] = 2
                order[n] = op
                n += 1
                depth -= 1
            else:
                done[op] = 1
                for side in (RIGHT, LEFT):
                    x = ops[op, side]
                    if x >= 0 and done[x] == 0 and owner[x] == mine:
                        stack[depth] = x
                        depth += 1
    return _copied(order, n)
