"""Stopping only: runs are trained to their end, and the question is whether to start another.

A full run is then one box. Its reward is the best that the run shows anywhere, its cost the total
cost on average, and its index the worth at which further runs stop paying. This index is lower than
the index of a new run that may be given up early.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..engine.solution import mean_cost
from ..engine.solver import solve
from ..errors import InvalidArgument
from ..forest.builder import line
from ..learn.run_model import RunModel


def full_run_index(model: RunModel) -> float:
    """The worth at which further full runs stop paying.

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
    >>> full_run_index(Two())                               # 0.5 * (12 - 8) = 2
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
        mass = forest.laws[int(forest.law[box])].T @ mass
        for state, found in enumerate(forest.rewards[int(forest.reward[box])][0]):
            if np.isfinite(found):  # raise what is below the reward of the state to that reward
                level = 1 + int(np.searchsorted(levels, found))
                mass[state, level] += mass[state, :level].sum()
                mass[state, :level] = 0.0
    return one_box(mass.sum(axis=0), np.concatenate([[-np.inf], levels]), cost)


def one_box(weight: ArrayLike, worth: ArrayLike, cost: float) -> float:
    """The index of a full run with these worths, their weights and its mean cost.

    Examples
    --------
    >>> one_box([1, 1], [8.0, 12.0], 2.0)
    8.0
    """
    chance = np.asarray(weight, np.float64)
    return float(solve(line([chance / chance.sum()], rewards=worth, cost=cost)).index(0))
