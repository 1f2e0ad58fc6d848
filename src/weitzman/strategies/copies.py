"""Policies on a forest with copies, written out so that every box is there by itself."""

from __future__ import annotations

import numpy as np

from .._types import IntArray
from ..combine import expand
from ..policy import Policy


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


def origin(policy: Policy) -> IntArray:
    """For each box of the forest with all copies written out, the box that it is a copy of."""
    f = policy.forest
    copies = f.count.copy()
    for v in parents_first(policy):
        if f.parent[v] >= 0:
            copies[v] *= copies[f.parent[v]]
    return np.repeat(np.arange(len(f)), copies)


def written_out(policy: Policy, limit: int = 100_000) -> Policy:
    """The same policy on the forest with all copies written out."""
    forest = expand(policy.forest, limit)
    if forest is policy.forest:
        return policy
    sign = -1.0 if forest.minimise else 1.0
    return Policy.of(forest, policy.index_at[origin(policy)], sign * policy.index)
