"""The best line from a root where time or risk weighs what is seen."""

from __future__ import annotations

import math

import numpy as np

from ..engine.indices import Policy
from ..engine.solution import mean_cost
from ..engine.weights import Weights
from ..forest.model import Forest
from .thumb_rules import everything


def best_weighed_line(forest: Forest, depth: int | None) -> tuple[list[int], int]:
    """The best line to open as a whole, and how many boxes were looked at.

    Lines are followed down each tree with the weighed law of the last state and the best reward. No
    line is followed further once even the top reward, free of charge and of time, would not make it
    the best.
    """
    f, w = forest, Weights.of(forest)
    policy: Policy = everything(f)
    finite = w.rewards[np.isfinite(w.rewards) & (w.rewards > w.outside)]
    grid = np.unique(np.append(finite, w.outside))
    timed = w.tolerance == 0
    top = max(float(grid[-1]), 0.0) if timed else float(grid[-1])
    best, end, looked_at = w.outside, -1, 0
    stack = [(v, np.ones((1, len(grid))), 0.0, 1) for v in policy.root.tolist()]
    while stack:
        v, joint, spent, length = stack.pop()
        paid = spent + (float(mean_cost(f, v) @ joint[:, -1]) if timed else 0.0)
        if top * float(joint[:, -1].sum()) - paid <= best:
            continue
        looked_at += 1
        a, k = int(f.rewards.start[f.reward[v]]), int(f.rewards.shape[f.reward[v], 1])
        here = (w.laws[int(w.law[v])].T @ joint) * (grid >= w.rewards[a : a + k, None])
        mass = np.diff(here.sum(axis=0), prepend=0.0)
        value = float(grid[mass > 0] @ mass[mass > 0]) - paid
        if value > best:
            best, end = value, v
        if length < (math.inf if depth is None else depth):
            below = policy.child[policy.child_at[v] : policy.child_at[v + 1]].tolist()
            stack += [(u, here, paid, length + 1) for u in below]
    line: list[int] = []
    while end >= 0:
        line.append(end)
        end = int(f.parent[end])
    return line[::-1], looked_at
