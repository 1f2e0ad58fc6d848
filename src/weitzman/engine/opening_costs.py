"""What opening a box costs on average, after each state of its parent."""

from __future__ import annotations

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._kernels import boxes
from ..forest.model import Forest


def mean_costs(forest: Forest) -> tuple[FloatArray, IntArray]:
    """Expected cost of opening each box after each state of its parent, and where each starts."""
    f = forest
    start = np.concatenate([[0], np.cumsum(f.laws.shape[f.law, 0])]).astype(np.int64)
    return boxes.mean_costs(f.law, f.cost, f.laws.matrices, f.costs.matrices, start), start


def mean_cost(forest: Forest, box: int) -> FloatArray:
    """Expected cost of opening one box, for each state of its parent."""
    law = forest.laws[int(forest.law[box])]
    cost = forest.costs[int(forest.cost[box])]
    return np.asarray((law * cost).sum(axis=1) if cost.shape[1] > 1 else cost[:, 0] + 0 * law[:, 0])
