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

from typing import NamedTuple

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from .jit import add_up, helper, kernel

_DRAWS = 16  # splits tried at a node, and at least 2 for each feature
_CALLS = 100  # a model is learned by many calls, which are small only if they are so together


class Known(NamedTuple):
    """What is known of runs: features ``x``, a row a run, and which of them are categories."""

    x: np.ndarray
    category: np.ndarray


class Outcomes(NamedTuple):
    """What came of runs: targets ``y``, a row a run, and how much each run counts."""

    y: np.ndarray
    weight: np.ndarray


class Nodes(NamedTuple):
    """The nodes of all trees, and where each tree begins; one more for the end."""

    feature: np.ndarray
    split: np.ndarray
    left: np.ndarray
    begin: np.ndarray


class Fallen(NamedTuple):
    """Where the runs of the trees fell, (trees, runs), which shaped which, and what they count."""

    leaf: np.ndarray
    bags: np.ndarray
    weight: np.ndarray


@helper()
def _draw(state):
    """The next number of a linear congruence modulo 2^31 - 1."""
    return state * 48271 % 2147483647


@helper()
def _goes_left(value, split, category):
    """Whether a value goes to the left of a split."""
    if category:
        return value == split
    return np.isnan(value) or value <= split


@helper()
def _sums(came, runs, out):
    """The weight of some runs, and the weighted sums of what came of them into ``out``."""
    mass = 0.0
    out[:] = 0.0
    for i in runs:
        mass += came.weight[i]
        for o in range(out.size):
            out[o] += came.weight[i] * came.y[i, o]
    return mass


@helper()
def _separation(known, came, runs, f, at, least, total, mass, part):
    """How well a split tells the runs apart: the sum over both sides of squared sums by weight.

    It is 0 if a side has fewer than ``least`` runs.
    """
    count, heavy = 0, 0.0
    part[:] = 0.0
    for i in runs:
        if _goes_left(known.x[i, f], at, known.category[f]):
            count += 1
            heavy += came.weight[i]
            for o in range(part.size):
                part[o] += came.weight[i] * came.y[i, o]
    if count < least or runs.size - count < least:
        return 0.0
    found = 0.0
    for o in range(part.size):
        other = total[o] - part[o]
        found += part[o] * part[o] / heavy + other * other / (mass - heavy)
    return found


@helper()
def _best_split(known, came, runs, state, least, total, part):
    """The best of some random splits: its feature, -1 if none helps, its place, and the state."""
    mass = _sums(came, runs, total)
    squares = 0.0
    for x in total:
        squares += x * x
    best, chosen, where = squares / mass * (1.0 + 1e-9) + 1e-12, -1, 0.0
    for f in range(known.x.shape[1]):
        for _ in range(max(2, _DRAWS // known.x.shape[1])):
            a = _draw(state)
            b = state = _draw(a)
            u, v = known.x[runs[a % runs.size], f], known.x[runs[b % runs.size], f]
            if u == v or (np.isnan(u) and (np.isnan(v) or known.category[f])):
                continue
            at = u
            if not known.category[f]:
                at = -np.inf if np.isnan(u) or np.isnan(v) else min(u, v)
            found = _separation(known, came, runs, f, at, least, total, mass, part)
            if found > best:
                best, chosen, where = found, f, at
    return chosen, where, state


@helper()
def _parted(known, f, at, runs, spare):
    """Put the runs that go left first; how many there are."""
    a, b = 0, 0
    for k in range(runs.size):
        i = runs[k]
        if _goes_left(known.x[i, f], at, known.category[f]):
            runs[a] = i
            a += 1
        else:
            spare[b] = i
            b += 1
    runs[a:] = spare[:b]
    return a


@kernel(work=lambda known, came, bags, seeds, least: _CALLS * _DRAWS * bags.size)
def grow(known: Known, came: Outcomes, bags: BoolArray, seeds: IntArray, least: int) -> Nodes:
    """Grow a tree for each bag. A leaf keeps ``least`` runs; weights are positive, no bag empty."""
    trees, n = bags.shape
    room = trees * (2 * n + 1)
    feature, split = np.full(room, -1, np.int64), np.zeros(room)
    left, begin = np.zeros(room, np.int64), np.zeros(trees + 1, np.int64)
    spare = np.empty(n, np.int64)
    first, last = np.empty(2 * n + 1, np.int64), np.empty(2 * n + 1, np.int64)
    total, part = np.empty(came.y.shape[1]), np.empty(came.y.shape[1])
    for t in range(trees):
        base, state = begin[t], seeds[t]
        mine = np.flatnonzero(bags[t])
        first[0], last[0] = 0, mine.size
        nodes, node = 1, 0
        while node < nodes:
            runs = mine[first[node] : last[node]]
            if runs.size >= 2 * least:
                f, at, state = _best_split(known, came, runs, state, least, total, part)
                if f >= 0:
                    middle = first[node] + _parted(known, f, at, runs, spare)
                    feature[base + node], split[base + node] = f, at
                    left[base + node] = nodes
                    first[nodes], last[nodes] = first[node], middle
                    first[nodes + 1], last[nodes + 1] = middle, last[node]
                    nodes += 2
            node += 1
        begin[t + 1] = base + nodes
    used = begin[trees]
    return Nodes(feature[:used].copy(), split[:used].copy(), left[:used].copy(), begin)


@kernel(work=lambda known, nodes: _CALLS * len(known.x) * nodes.begin.size)
def fall(known: Known, nodes: Nodes) -> IntArray:
    """The leaf of every tree that each row falls into, as the place of a node: (trees, rows)."""
    trees, rows = nodes.begin.size - 1, len(known.x)
    out = np.empty((trees, rows), np.int64)
    for t in range(trees):
        for i in range(rows):
            node = nodes.begin[t]
            while nodes.feature[node] >= 0:
                f = nodes.feature[node]
                stays = _goes_left(known.x[i, f], nodes.split[node], known.category[f])
                node = nodes.begin[t] + nodes.left[node] + (0 if stays else 1)
            out[t, i] = node
    return out


@kernel(work=lambda leaf, own, runs, nodes: _CALLS * (leaf.size + runs.leaf.size))
def resemblance(leaf: IntArray, own: IntArray, runs: Fallen, nodes: int) -> FloatArray:
    """How much each run of the trees resembles each row: (rows, runs), every row sums to 1.

    ``leaf`` says where rows fall; the runs in the bag of a tree share its leaves by weight.
    ``own[i]`` is the run that row i is, or -1: such a row is compared by those trees alone that it
    did not help to shape. If there is none, all runs count.
    """
    trees, n = runs.leaf.shape
    rows = leaf.shape[1]
    out = np.zeros((rows, n))
    mass, newest = np.zeros(nodes), np.full(nodes, -1, np.int64)
    before = np.empty(n, np.int64)  # in the same leaf: a linked list
    for t in range(trees):
        for j in range(n):
            if runs.bags[t, j]:
                at = runs.leaf[t, j]
                mass[at] += runs.weight[j]
                before[j] = newest[at]
                newest[at] = j
        for i in range(rows):
            if own[i] >= 0 and runs.bags[t, own[i]]:
                continue
            at = leaf[t, i]
            j = newest[at]
            while j >= 0:
                out[i, j] += runs.weight[j] / mass[at]
                j = before[j]
    for i in range(rows):
        total = add_up(out[i])
        out[i] = out[i] / total if total > 0 else runs.weight / add_up(runs.weight)
    return out
