"""Finite forests and endless lines as lazy forests, expanded on demand."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weitzman import Forest, LazyForest, Node


def nodes_of(forest: Forest, boxes: Any) -> list[Node]:
    """Boxes of a forest as nodes that remember their number."""
    out = []
    for v in np.asarray(boxes).tolist():
        law = forest.laws[int(forest.law[v])]
        out.append(
            Node(
                law=law[0] if forest.parent[v] < 0 else law,
                rewards=forest.rewards[int(forest.reward[v])][0],
                cost=forest.costs[int(forest.cost[v])],
                name="" if forest.endless[v] else forest.name(v), data=v,
                count=int(forest.count[v]),
                states=forest.state_names[int(forest.reward[v])],
            )
        )  # fmt: skip
    return out


def lazily(forest: Forest, **options: Any) -> LazyForest:
    """The same forest, to be expanded on demand; by default bounded by its best reward."""
    if not options:
        finite = forest.rewards.data[np.isfinite(forest.rewards.data)]
        options["bound"] = float((min if forest.minimize else max)(finite, default=0.0))
    return LazyForest(
        nodes_of(forest, forest.roots),
        lambda node: nodes_of(forest, _below(forest, node.data)),
        outside=forest.outside, minimize=forest.minimize, **options,
    )  # fmt: skip


def _below(forest: Forest, v: int) -> NDArray[np.int64]:
    """The boxes after this one: its children, and along an endless line itself once more."""
    below = np.flatnonzero(forest.parent == v)
    return np.append(below, v) if forest.endless[v] else below
