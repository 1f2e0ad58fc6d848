"""Forests with copies: parts of them, and all copies written out."""

from __future__ import annotations

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._kernels.orders import PrizePlaces, Ready
from .._kernels.structure import postorder
from ..engine.indices import Policy
from ..engine.weights import reject_quotas
from ..forest.builder import expand
from ..forest.model import Forest

WRITE_OUT = 5000  # boxes that are written out, at most


def parents_first(policy: Policy) -> list[int]:
    """All boxes, each after its parent and right before what hangs on it (depth first)."""
    child_at, child = policy.child_at.tolist(), policy.child.tolist()
    order: list[int] = []
    stack = policy.root[::-1].tolist()
    while stack:
        v = stack.pop()
        order.append(v)
        stack += child[child_at[v] : child_at[v + 1]][::-1]
    return order


def likely_part(forest: Forest, opened: FloatArray) -> tuple[Forest, bool]:
    """The forest without copies, or a part of it, and whether it is the whole forest.

    If the whole forest is too large, the result is the part that the optimal policy is most likely
    to open: what can be earned there can be earned in the whole. ``opened`` says how often each box
    is opened.
    """
    if forest.boxes <= WRITE_OUT:
        return expand(forest), True
    often = np.zeros(len(forest), np.int64)
    often[np.argsort(-opened, kind="stable")[: WRITE_OUT // 2]] = 1
    often = closed(forest, np.where(opened > 0, often, 0))
    if not often.any():
        often[0 if forest.parent[0] < 0 else forest.roots[0]] = 1
    for most in (1000, 300, 100, 30, 10, 3, 1):
        cut = part(forest, np.minimum(forest.count, most) * often)
        if cut.boxes <= WRITE_OUT:
            break
    return expand(cut), False


def closed(forest: Forest, copies: IntArray) -> IntArray:
    """Leave out boxes whose parents are left out."""
    while True:
        lost = (copies > 0) & (forest.parent >= 0) & (copies[forest.parent] == 0)
        if not lost.any():
            return copies
        copies = np.where(lost, 0, copies)


def part(forest: Forest, copies: IntArray) -> Forest:
    """The boxes with a positive number of ``copies``; the parent of each box must be among them.

    There are at most as many prizes as trees left: see :func:`places_lost`.
    """
    kept = np.flatnonzero(copies)
    prizes = forest.prizes - places_lost(forest, copies)
    return forest.take(kept, count=copies[kept], prizes=prizes)


def places_lost(forest: Forest, copies: IntArray) -> int:
    """Prizes for which no tree is left: each place is worth the outside option."""
    if forest.prizes == 1:
        return 0
    trees = min(float(np.sum(copies[forest.roots], dtype=float)), 1e18)
    return max(0, int(forest.prizes) - max(1, int(trees)))


def ready_room(forest: Forest, where: PrizePlaces) -> Ready:
    """Room for one episode after the other of a fixed or random order."""
    n, trees = len(forest), int(where.tree.max()) + 1
    return Ready(np.zeros(n, np.int64), np.empty(n, np.int64), np.empty(trees))


def places(forest: Forest) -> PrizePlaces:
    """How many prizes there are, and the tree of each box; with one prize, all are one tree."""
    reject_quotas(forest, "a strategy of another kind")
    tree = np.zeros(len(forest), np.int64)
    if forest.prizes > 1:
        tree[forest.roots] = np.arange(len(forest.roots))
        for v in postorder(forest.parent)[0][::-1].tolist():
            if forest.parent[v] >= 0:
                tree[v] = tree[forest.parent[v]]
    return PrizePlaces(int(forest.prizes), tree)
