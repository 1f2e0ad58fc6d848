"""Stopping only: runs are trained to their end, and the question is whether to start another.

A whole run is then one box. Its reward is the best that the run shows anywhere, its cost the total
cost on average, and its index the worth at which further runs stop paying. This index is lower than
the index of a new run that may be given up early.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import FloatArray
from ..engine.solution import mean_cost
from ..engine.solver import solve
from ..errors import InvalidArgument
from ..forest.builder import line
from ..learn.run_model import RunModel


def whole_index(model: RunModel) -> float:
    """The worth at which further whole runs stop paying.

    Parameters
    ----------
    model : RunModel

    Examples
    --------
    A run has two steps, each at a cost of 1: first 0 or 8, and then the same or 4 more.

    >>> import weitzman
    >>> class Two:
    ...     def lines(self, n=1):
    ...         return weitzman.line([[0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]]], count=n,
    ...                              rewards=[[0, 8], [4, 12]], cost=1)
    >>> whole_index(Two())                                  # 0.5 * (12 - 8) = 2
    8.0
    """
    forest = model.lines(1)
    if forest.boxes != len(forest) or (forest.parent != np.arange(-1, len(forest) - 1)).any():
        raise InvalidArgument("the model of a run must be a line of boxes, but it is not.")
    levels = np.unique(forest.rewards.data[np.isfinite(forest.rewards.data)])
    mass = np.zeros((1, len(levels) + 1))  # of each state, and the highest level so far
    mass[0, 0] = 1.0
    cost = 0.0
    for box in range(len(forest)):
        cost += float(mass.sum(axis=1) @ mean_cost(forest, box))
        reward = forest.rewards[int(forest.reward[box])][0]
        mass = _raised(forest.laws[int(forest.law[box])].T @ mass, levels, reward)
    return one_box(mass.sum(axis=0), np.concatenate([[-np.inf], levels]), cost)


def one_box(weight: ArrayLike, worth: ArrayLike, cost: float) -> float:
    """The index of a whole run with these worths, their weights and its mean cost.

    Examples
    --------
    >>> one_box([1, 1], [8.0, 12.0], 2.0)
    8.0
    """
    chance = np.asarray(weight, np.float64)
    return float(solve(line([chance / chance.sum()], rewards=worth, cost=cost)).index(0))


def _raised(mass: FloatArray, levels: FloatArray, reward: FloatArray) -> FloatArray:
    """Raise what is below the reward of its state to that reward."""
    for state, found in enumerate(reward):
        if np.isfinite(found):
            level = 1 + int(np.searchsorted(levels, found))
            mass[state, level] += mass[state, :level].sum()
            mass[state, :level] = 0.0
    return mass
