"""What opening a box costs on average, after each state of its parent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._kernels import boxes
from ..forest.model import Forest
from ..forest.pools import Pool


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


def mean_durations(forest: Forest) -> FloatArray:
    """Expected time that each box takes after each state of its parent, as :func:`mean_costs`."""
    f = forest
    if f.durations is not None:
        pool = f.durations
    else:
        assert f.factors is not None, "a forest with discounting"
        pool = Pool(-np.log(f.factors.data), f.factors.start, f.factors.shape)
    return mean_costs(replace(f, costs=pool, factors=None, durations=None, rate=None))[0]
