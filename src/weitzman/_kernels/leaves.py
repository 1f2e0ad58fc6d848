"""Random trees whose leaves say which runs resemble each other.

A tree splits runs by what is known of them so that what came of them differs little within a leaf.
Each split is the best of a few drawn at random: a feature, and two runs of the node that differ in
it. A number splits at the lower of the two, so only the order of values matters; a category splits
off the value of the first run. A missing value (NaN) is below every number and a category of its
own. A tree is grown from a random part of the runs, its *bag*; the other runs fall through it
without having shaped it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .._types import BoolArray, FloatArray, IntArray


_JIT = {"cache": True, "nogil": True, "error_model": "numpy"}


@njit(**_JIT)
def _next(state: int) -> int:
    """The next number of a linear congruence modulo 2^31 - 1."""
    return state * 48271 % 2147483647


@njit(**_JIT)
def _left(value: float, split: float, category: bool) -> bool:
    """Whether a value goes to the left of a split."""
    if np.isnan(value):
        return not category or np.isnan(split)
    return value == split if category else value <= split


@njit(**_JIT)
def grow(
    x: FloatArray,
    category: BoolArray,
    y: FloatArray,
    weight: FloatArray,
    bags: BoolArray,
    seeds: IntArray,
    least: int,
    draws: int,
) -> tuple[IntArray, FloatArray, IntArray, IntArray]:
    """Grow a tree for each bag: features, splits and left children of nodes, and where trees begin.

    Node k of tree t is at ``begin[t] + k``; its children are at ``left`` and ``left + 1``, and a
    leaf has a feature of -1. ``x`` holds what is known, ``y`` what came of it, both a row a run. A
    leaf keeps ``least`` runs of its bag, and each split is the best of ``draws`` for each feature.
    """
    trees, n, wide, outputs = len(bags), len(x), x.shape[1], y.shape[1]
    room = trees * (2 * n + 1)
    feature, split = np.full(room, -1, np.int64), np.zeros(room)
    left, begin = np.zeros(room, np.int64), np.zeros(trees + 1, np.int64)
    mine, spare = np.empty(n, np.int64), np.empty(n, np.int64)
    first, last = np.empty(2 * n + 1, np.int64), np.empty(2 * n + 1, np.int64)
    total, part = np.empty(outputs), np.empty(outputs)
    used = 0
    for t in range(trees):
        begin[t] = used
        state = seeds[t]
        size = 0
        for i in range(n):
            if bags[t, i]:
                mine[size] = i
                size += 1
        first[0], last[0] = 0, size
        nodes, node = 1, 0
        while node < nodes:
            low, high = first[node], last[node]
            if high - low >= 2 * least:
                mass = 0.0
                total[:] = 0.0
                for k in range(low, high):
                    i = mine[k]
                    mass += weight[i]
                    for o in range(outputs):
                        total[o] += weight[i] * y[i, o]
                best, chosen, where = 0.0, -1, 0.0
                for o in range(outputs):
                    best += total[o] * total[o]
                best = best / mass * (1.0 + 1e-9) + 1e-12
                for f in range(wide):
                    for _ in range(draws):
                        a = _next(state)
                        b = state = _next(a)
                        u = x[mine[low + a % (high - low)], f]
                        v = x[mine[low + b % (high - low)], f]
                        if u == v or (np.isnan(u) and np.isnan(v)):
                            continue
                        at = u
                        if not category[f]:
                            at = -np.inf if np.isnan(u) or np.isnan(v) else min(u, v)
                        count, heavy = 0, 0.0
                        part[:] = 0.0
                        for k in range(low, high):
                            i = mine[k]
                            if _left(x[i, f], at, category[f]):
                                count += 1
                                heavy += weight[i]
                                for o in range(outputs):
                                    part[o] += weight[i] * y[i, o]
                        if count < least or high - low - count < least:
                            continue
                        found = 0.0
                        for o in range(outputs):
                            rest = total[o] - part[o]
                            found += part[o] * part[o] / heavy + rest * rest / (mass - heavy)
                        if found > best:
                            best, chosen, where = found, f, at
                if chosen >= 0:
                    a, b = low, 0
                    for k in range(low, high):
                        if _left(x[mine[k], chosen], where, category[chosen]):
                            mine[a] = mine[k]
                            a += 1
                        else:
                            spare[b] = mine[k]
                            b += 1
                    mine[a:high] = spare[:b]
                    feature[used + node], split[used + node] = chosen, where
                    left[used + node] = nodes
                    first[nodes], last[nodes] = low, a
                    first[nodes + 1], last[nodes + 1] = a, high
                    nodes += 2
            node += 1
        used += nodes
    begin[trees] = used
    return feature[:used], split[:used], left[:used], begin


@njit(**_JIT)
def fall(
    x: FloatArray,
    category: BoolArray,
    feature: IntArray,
    split: FloatArray,
    left: IntArray,
    begin: IntArray,
) -> IntArray:
    """The leaf of every tree that each row falls into, as the number of a node: (trees, rows)."""
    trees, n = len(begin) - 1, len(x)
    out = np.empty((trees, n), np.int64)
    for t in range(trees):
        for i in range(n):
            node = begin[t]
            while feature[node] >= 0:
                f = feature[node]
                side = 0 if _left(x[i, f], split[node], category[f]) else 1
                node = begin[t] + left[node] + side
            out[t, i] = node
    return out


@njit(**_JIT)
def resemblance(
    leaf: IntArray, own: IntArray, known: IntArray, bags: BoolArray, weight: FloatArray, nodes: int
) -> FloatArray:
    """How much each run of the trees resembles each row: (rows, runs), every row sums to 1.

    ``leaf`` says where rows fall and ``known`` where the runs did. ``own[i]`` is the run that row i
    is, or -1: a run is compared by those trees alone that it did not help to shape.
    """
    trees, rows, n = len(leaf), leaf.shape[1], known.shape[1]
    out = np.zeros((rows, n))
    mass, head, tail = np.zeros(nodes), np.full(nodes, -1, np.int64), np.empty(n, np.int64)
    for t in range(trees):
        for j in range(n):
            if bags[t, j]:
                at = known[t, j]
                mass[at] += weight[j]
                tail[j] = head[at]
                head[at] = j
        for i in range(rows):
            if own[i] >= 0 and bags[t, own[i]]:
                continue
            j = head[leaf[t, i]]
            while j >= 0:
                out[i, j] += weight[j] / mass[leaf[t, i]]
                j = tail[j]
    for i in range(rows):
        out[i] /= out[i].sum()
    return out
