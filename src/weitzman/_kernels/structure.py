"""From boxes to operations: order, equal subtrees, balanced joins, independent parts.

Boxes whose numbers are equal and whose children are equal, with equal counts, form one *class*:
they have the same capped value, which is computed once. Classes become a list of operations, a
``BOX`` each and a balanced tree of ``JOIN`` for the children of a box, in topological order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from .jit import helper, kernel

# kinds of operations
BOX, JOIN, GIVEN = 0, 1, 2
# columns of the integer table of operations
KIND, LEFT, RIGHT, LAW, REWARD, COST, STATES, USER = range(8)
COLUMNS = 8
MIXED_USERS, OUTSIDE_USER = -1, -2  # in USER, besides the row of rewards of the only user
_NONE = np.int64(-1)
_FEW_ROWS = 4_000  # among which a dictionary is as fast as waiting for a compiler is slow
UNUSED, SHARED, FINAL = -3, -2, -1  # owners of operations besides the parts 0, 1, ...


class Matrices(NamedTuple):
    """Matrix i has the shape ``shape[i]`` and starts at ``data[start[i]]``."""

    data: np.ndarray
    start: np.ndarray
    shape: np.ndarray


class Postorder(NamedTuple):
    """Boxes with children first, and lists of children."""

    order: np.ndarray
    first: np.ndarray  # child of each box, -1 for none
    after: np.ndarray  # the next child of the same parent, -1 for none


class Marks(NamedTuple):
    """What makes a box different from others, as numbers: its law, its rewards and its cost."""

    law: np.ndarray
    reward: np.ndarray
    cost: np.ndarray


class Classes(NamedTuple):
    """Classes of equal subtrees, children before parents."""

    of: np.ndarray  # each box; -1 for one that is left out
    member: np.ndarray  # a box for each class
    at: np.ndarray  # the children of class c are child[at[c]:at[c + 1]], in rising order
    child: np.ndarray
    copies: np.ndarray  # of each child, as floats: sums of copies may exceed any integer


class Tops(NamedTuple):
    """The classes of the roots, with copies, in the parts ``top[cuts[p]:cuts[p + 1]]``."""

    top: np.ndarray
    copies: np.ndarray
    cuts: np.ndarray


class Values(NamedTuple):
    """Values to be joined: the operations that give them, and how many copies of each."""

    op: np.ndarray
    copies: np.ndarray


# plain loops below where NumPy has a function: those take seconds to compile


@helper()
def _filled(n, x):
    out = np.empty(n, np.int64)
    for i in range(n):
        out[i] = x
    return out


@helper()
def sort(keys, others, lo, hi):
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


@kernel()
def postorder(parent: IntArray) -> Postorder:
    """Boxes with children first, and lists of children; boxes on a cycle are left out."""
    n = parent.size
    first, after = _filled(n, _NONE), _filled(n, _NONE)
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
    return Postorder(order[:done], first, after)


@helper()
def _scramble(h, x):
    h ^= np.uint64(x)
    h *= np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(29))


def intern_rows(data: IntArray, start: IntArray) -> tuple[IntArray, IntArray]:
    """Number equal rows alike: ``data[start[i]:start[i + 1]]`` are the integers of row i.

    Returns the number of each row and, for each number, the first row that has it.
    """
    if start.size > _FEW_ROWS:
        return _intern_rows(data, start)
    known: dict[bytes, int] = {}
    ends = start.tolist()
    first: list[int] = []
    number = np.empty(len(ends) - 1, np.int64)
    for i in range(len(number)):
        number[i] = known.setdefault(data[ends[i] : ends[i + 1]].tobytes(), len(known))
        if len(known) > len(first):
            first.append(i)
    return number, np.array(first, np.int64)


@kernel()
def _intern_rows(data: IntArray, start: IntArray) -> tuple[IntArray, IntArray]:
    """Number equal rows alike: ``data[start[i]:start[i + 1]]`` are the integers of row i.

    Returns the number of each row and, for each number, the first row that has it.
    """
    n = start.size - 1
    size = 16
    while size < 2 * n:
        size *= 2
    table, hashes = _filled(size, _NONE), np.empty(size, np.uint64)
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
                table[slot], hashes[slot] = count, h
                first[count] = i
                number[i] = count
                count += 1
                break
            # rows far away in memory are looked at only where they are most likely equal
            same = hashes[slot] == h
            if same:
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
    return number, first[:count]


def sort_levels(rewards: FloatArray, start: IntArray) -> tuple[FloatArray, IntArray]:
    """Sorted rewards of each row without doubles and minus infinity; where those of a row start."""
    sizes, out = np.diff(start), np.empty(start[-1])
    for size in np.unique(sizes).tolist():  # rows of one size are sorted at once
        rows = start[:-1][sizes == size, None] + np.arange(size)
        out[rows] = np.sort(rewards[rows], axis=1)
    new = np.ones(len(out), bool)
    new[1:] = out[1:] != out[:-1]
    new[start[:-1][sizes > 0]] = True
    new &= out > -np.inf
    return out[new], np.concatenate([[0], np.cumsum(new)])[start]


@kernel()
def classify(tree: Postorder, marks: Marks, count: IntArray) -> Classes:
    """Classes of equal subtrees."""
    order, first, after = tree
    law, reward, cost = marks
    n = order.size
    size = 16
    while size < 2 * n:
        size *= 2
    table = _filled(size, _NONE)
    class_of, member = _filled(law.size, _NONE), np.empty(n, np.int64)
    at, child = _filled(n + 1, np.int64(0)), np.empty(n, np.int64)
    copies = np.empty(n)
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
            sort(child, copies, lo, end)
            last, end = end, lo
            for j in range(lo, last):
                if end > lo and child[j] == child[end - 1]:
                    copies[end - 1] += copies[j]
                else:
                    child[end], copies[end] = child[j], copies[j]
                    end += 1
        h = _scramble(_scramble(_scramble(np.uint64(end - lo), law[v]), reward[v]), cost[v])
        for j in range(lo, end):
            # numbers of copies are whole, but some exceed any integer
            h = _scramble(_scramble(h, child[j]), np.int64(min(copies[j], 1e18)))
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
    return Classes(class_of, member[:classes], at[: classes + 1], child[:end], copies[:end])


@helper()
def _balance(values, n, states, ops, powers, used):
    """Join ``values[:n]`` pairwise until one is left; returns it, its copies and the ops used."""
    while n > 1:
        half = 0
        for i in range(0, n - 1, 2):
            ops[used, KIND], ops[used, STATES] = JOIN, states
            ops[used, LEFT], ops[used, RIGHT] = values.op[i], values.op[i + 1]
            powers[used, 0], powers[used, 1] = values.copies[i], values.copies[i + 1]
            values.op[half], values.copies[half] = used, 1.0
            half += 1
            used += 1
        if n % 2 == 1:
            values.op[half], values.copies[half] = values.op[n - 1], values.copies[n - 1]
            half += 1
        n = half
    return values.op[0], values.copies[0], used


@kernel()
def build_operations(
    classes: Classes,
    marks: Marks,
    known: BoolArray,
    states: IntArray,
    tops: Tops,
    ops: IntArray,
    powers: FloatArray,
) -> tuple[IntArray, IntArray, int, float]:
    """Operations for all classes, then for the roots part by part, then for the whole.

    The value of a class whose box is ``known`` is given, all others are computed. ``states[c]`` is
    the number of states that class c is conditioned on. The caller has made room: ``ops`` and
    ``powers`` have a row for each class and for as many joins as there are values, less one.
    """
    member, at, child, copies = classes.member, classes.at, classes.child, classes.copies
    top, cuts = tops.top, tops.cuts
    parts = cuts.size - 1
    widest = max(top.size, parts, 1)
    for c in range(member.size):
        widest = max(widest, at[c + 1] - at[c])
    values = Values(np.empty(widest, np.int64), np.empty(widest))  # that are joined at a time
    op_of, used = np.empty(member.size, np.int64), np.int64(0)
    for c in range(member.size):
        v, n = member[c], at[c + 1] - at[c]
        left, times = -1, 1.0
        if n > 0:
            for j in range(n):
                values.op[j], values.copies[j] = op_of[child[at[c] + j]], copies[at[c] + j]
            k = states[child[at[c]]]
            left, times, used = _balance(values, n, k, ops, powers, used)
        ops[used, KIND] = GIVEN if known[v] else BOX
        ops[used, STATES], ops[used, LEFT] = states[c], left
        ops[used, LAW], ops[used, REWARD] = marks.law[v], marks.reward[v]
        ops[used, COST], powers[used, 0] = marks.cost[v], times
        op_of[c] = used
        used += 1
    part_op, part_power = np.empty(parts, np.int64), np.empty(parts)
    for p in range(parts):
        n = cuts[p + 1] - cuts[p]
        for j in range(n):
            values.op[j], values.copies[j] = op_of[top[cuts[p] + j]], tops.copies[cuts[p] + j]
        part_op[p], part_power[p], used = _balance(values, n, np.int64(1), ops, powers, used)
    for p in range(parts):
        values.op[p], values.copies[p] = part_op[p], part_power[p]
    last, times, used = _balance(values, parts, np.int64(1), ops, powers, used)
    return op_of, part_op, last, times


@kernel()
def assign_users(ops: IntArray, part_op: IntArray, last: int) -> tuple[IntArray, IntArray]:
    """Who uses each operation: fills in USER, the row of rewards that its value is compared with.

    Returns the part that alone needs each operation, or SHARED, or FINAL; and the number of uses.
    """
    n = ops.shape[0]
    owner, refs = _filled(n, np.int64(UNUSED)), _filled(n, np.int64(0))
    ops[last, USER], refs[last] = OUTSIDE_USER, 1
    owner[last] = FINAL
    for p in range(part_op.size):
        owner[part_op[p]] = p
    for op in range(n - 1, -1, -1):
        user = ops[op, USER] if ops[op, KIND] == JOIN else ops[op, REWARD]
        for side in (LEFT, RIGHT):
            x = ops[op, side]
            if x < 0:
                continue
            if refs[x] == 0:
                ops[x, USER] = user
            elif ops[x, USER] != user:
                ops[x, USER] = MIXED_USERS
            refs[x] += 1
            if owner[op] == FINAL:
                if owner[x] == UNUSED:
                    owner[x] = FINAL
            elif owner[x] == UNUSED:
                owner[x] = owner[op]
            elif owner[x] != owner[op]:
                owner[x] = SHARED
    refs[last] -= 1
    return owner, refs


@kernel()
def schedule(ops: IntArray, owner: IntArray, mine: int, tops: IntArray) -> IntArray:
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
    return order[:n].copy()
