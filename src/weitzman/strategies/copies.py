"""Forests with copies: parts of them, and all copies written out."""

from __future__ import annotations

import numpy as np

from .._common.arrays import FloatArray, IntArray
from ..engine.indices import Policy
from ..forest.combining import expand
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
    """A forest without copies, and whether it is the whole of the one given.

    If the whole is too large, the part of it that the optimal policy is most likely to open: what
    can be earned there can be earned in the whole. ``opened`` says how often each box is opened.
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
    """The boxes of which there are ``copies``; with a box its parent must be there."""
    kept = np.flatnonzero(copies)
    return forest.take(kept, count=copies[kept])
