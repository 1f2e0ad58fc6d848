"""Random trees whose leaves say which runs resemble each other.

A tree splits runs by what is known of them (``x``, a row a run) so that what came of them (``y``)
differs little within a leaf. Each split is the best of a few drawn at random: a feature, and two
runs of the node that differ in it. A number splits at the lower of the two, so only the order of
values matters; a category splits off the value of the first run. A missing value (NaN) is below
every number, and never equal to a category. A tree is grown from a part of the runs, its *bag*; the
other runs fall through it without having shaped it.

Node k of tree t is at ``begin[t] + k``. Its children are nodes ``left`` and ``left + 1`` of the
same tree; a leaf has a feature of -1.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_JIT = {"cache": True, "nogil": True, "error_model": "numpy"}
_DRAWS = 2  # for each feature at each node


@njit(inline="always", **_JIT)
def _draw(state):
    """The next number of a linear congruence modulo 2^31 - 1."""
    return state * 48271 % 2147483647


@njit(inline="always", **_JIT)
def _goes_left(value, split, category):
    """Whether a value goes to the left of a split."""
    if category:
        return value == split
    return np.isnan(value) or value <= split


@njit(**_JIT)
def _sums(y, weight, runs, out):
    """The weight of some runs, and the weighted sums of what came of them into ``out``."""
    mass = 0.0
    out[:] = 0.0
    for i in runs:
        mass += weight[i]
        for o in range(y.shape[1]):
            out[o] += weight[i] * y[i, o]
    return mass


@njit(**_JIT)
def _separation(x, y, weight, runs, f, at, category, least, total, mass, part):
    """How well a split tells the runs apart: the sum over both sides of squared sums by weight.

    It is 0 if a side has fewer than ``least`` runs.
    """
    count, heavy = 0, 0.0
    part[:] = 0.0
    for i in runs:
        if _goes_left(x[i, f], at, category):
            count += 1
            heavy += weight[i]
            for o in range(y.shape[1]):
                part[o] += weight[i] * y[i, o]
    if count < least or runs.size - count < least:
        return 0.0
    found = 0.0
    for o in range(y.shape[1]):
        found += part[o] ** 2 / heavy + (total[o] - part[o]) ** 2 / (mass - heavy)
    return found


@njit(**_JIT)
def _best_split(x, category, y, weight, runs, state, least, total, part):
    """The best of some random splits: its feature, -1 if none helps, its place, and the state."""
    mass = _sums(y, weight, runs, total)
    best, chosen, where = (total**2).sum() / mass * (1.0 + 1e-9) + 1e-12, -1, 0.0
    for f in range(x.shape[1]):
        for _ in range(_DRAWS):
            a = _draw(state)
            b = state = _draw(a)
            u, v = x[runs[a % runs.size], f], x[runs[b % runs.size], f]
            if u == v or (np.isnan(u) and (np.isnan(v) or category[f])):
                continue
            at = u
            if not category[f]:
                at = -np.inf if np.isnan(u) or np.isnan(v) else min(u, v)
            found = _separation(x, y, weight, runs, f, at, category[f], least, total, mass, part)
            if found > best:
                best, chosen, where = found, f, at
    return chosen, where, state


@njit(**_JIT)
def _parted(x, f, at, category, runs, spare):
    """Put the runs that go left first; how many there are."""
    a, b = 0, 0
    for k in range(runs.size):
        i = runs[k]
        if _goes_left(x[i, f], at, category):
            runs[a] = i
            a += 1
        else:
            spare[b] = i
            b += 1
    runs[a:] = spare[:b]
    return a


@njit(**_JIT)
def grow(x, category, y, weight, bags, seeds, least):
    """Grow a tree for each bag: features, splits and left children of nodes, where trees begin.

    A leaf keeps ``least`` runs of its bag. Weights are positive, and no bag is empty.
    """
    trees, n = bags.shape
    room = trees * (2 * n + 1)
    feature, split = np.full(room, -1, np.int64), np.zeros(room)
    left, begin = np.zeros(room, np.int64), np.zeros(trees + 1, np.int64)
    spare = np.empty(n, np.int64)
    first, last = np.empty(2 * n + 1, np.int64), np.empty(2 * n + 1, np.int64)
    total, part = np.empty(y.shape[1]), np.empty(y.shape[1])
    for t in range(trees):
        base, state = begin[t], seeds[t]
        mine = np.flatnonzero(bags[t])
        first[0], last[0] = 0, mine.size
        nodes, node = 1, 0
        while node < nodes:
            runs = mine[first[node] : last[node]]
            if runs.size >= 2 * least:
                f, at, state = _best_split(x, category, y, weight, runs, state, least, total, part)
                if f >= 0:
                    middle = first[node] + _parted(x, f, at, category[f], runs, spare)
                    feature[base + node], split[base + node] = f, at
                    left[base + node] = nodes
                    first[nodes], last[nodes] = first[node], middle
                    first[nodes + 1], last[nodes + 1] = middle, last[node]
                    nodes += 2
            node += 1
        begin[t + 1] = base + nodes
    used = begin[trees]
    return feature[:used].copy(), split[:used].copy(), left[:used].copy(), begin


@njit(**_JIT)
def fall(x, category, feature, split, left, begin):
    """The leaf of every tree that each row falls into, as the place of a node: (trees, rows)."""
    out = np.empty((begin.size - 1, len(x)), np.int64)
    for t in range(begin.size - 1):
        for i in range(len(x)):
            node = begin[t]
            while feature[node] >= 0:
                f = feature[node]
                right = not _goes_left(x[i, f], split[node], category[f])
                node = begin[t] + left[node] + right
            out[t, i] = node
    return out


@njit(**_JIT)
def resemblance(leaf, own, known, bags, weight, nodes):
    """How much each run of the trees resembles each row: (rows, runs), every row sums to 1.

    ``leaf`` says where rows fall and ``known`` where the runs did, of which those in the bag of a
    tree share its leaves by weight. ``own[i]`` is the run that row i is, or -1: such a row is
    compared by those trees alone that it did not help to shape. If there is none, all runs count.
    """
    trees, n = known.shape
    rows = leaf.shape[1]
    out = np.zeros((rows, n))
    mass, newest = np.zeros(nodes), np.full(nodes, -1, np.int64)
    before = np.empty(n, np.int64)  # in the same leaf: a linked list
    for t in range(trees):
        for j in range(n):
            if bags[t, j]:
                at = known[t, j]
                mass[at] += weight[j]
                before[j] = newest[at]
                newest[at] = j
        for i in range(rows):
            if own[i] >= 0 and bags[t, own[i]]:
                continue
            at = leaf[t, i]
            j = newest[at]
            while j >= 0:
                out[i, j] += weight[j] / mass[at]
                j = before[j]
    for i in range(rows):
        total = out[i].sum()
        out[i] = out[i] / total if total > 0 else weight / weight.sum()
    return out
