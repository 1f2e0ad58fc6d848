"""Index policies that people use instead of the optimal one."""

from __future__ import annotations

import numpy as np

from .._common.arrays import FloatArray, IntArray
from ..engine.indices import Policy
from ..engine.solution import Solution
from ..engine.solver import solve
from ..forest.model import Forest

_SLACK = 1e-9  # how far above a reward an index may lie by rounding, as a share of the range


def myopic(forest: Forest) -> Policy:
    """Rank every box by its own reservation value, blind to what it unlocks.

    The index of a box after its parent showed s is the root of E[(reward - x)^+] = cost, as if
    the box were the only one. Right where no box has children.

    Examples
    --------
    >>> import weitzman
    >>> door = weitzman.Builder().add("door", cost=1, outcomes={0: 1.0})
    >>> door = door.add("room", parent="door", cost=1, outcomes={0: {0: 0.5, 10: 0.5}})
    >>> float(myopic(door.build()).index[0])  # the door by itself is worth nothing
    -1.0
    """
    alone, at = _apart(forest)
    start, index = solve(alone, exact=True).index_columns()
    return Policy.of(forest, at, index[start])


def _apart(f: Forest) -> tuple[Forest, IntArray]:
    """A root for every box and state of its parent; and where those of each box start."""
    sizes = f.laws.shape[f.law, 0]
    box = np.repeat(np.arange(len(f)), sizes)
    at = np.cumsum(sizes) - sizes
    state = np.arange(len(box)) - at[box]
    each = np.ones(len(box), np.int64)
    alone = f.take(
        box, parent=-each, after=state, count=each, endless=each == 0, names=None, prizes=1
    )
    return alone, at


def on_reward_grid(solution: Solution) -> Policy:
    """The paper's index as its table gives it: the least reward x at which opening does not pay.

    The paper reads the index off a table over the rewards (and the outside option) only: the least
    x among them with Phi(x) = x. That is the true index rounded up to the next reward. It stops
    correctly on a single line, but is too coarse to rank boxes.
    """
    f = solution.forest
    sign = f.sign
    at, index = solution.index_columns()
    levels = np.unique(sign * np.append(f.rewards.data, f.outside))
    levels = levels[np.isfinite(levels)]
    slack = _SLACK * float(np.ptp(levels))
    place = np.searchsorted(levels, sign * index - slack)
    rounded = levels[np.minimum(place, len(levels) - 1)]
    return Policy.of(f, at, sign * np.where(np.isfinite(index), rounded, sign * index))


def everything(forest: Forest) -> Policy:
    """Open all boxes, whatever they show."""
    return same_index(forest, np.inf)


def same_index(forest: Forest, index: float) -> Policy:
    """One index for all boxes, higher being better also when minimizing."""
    sign = forest.sign
    most = int(forest.laws.shape[forest.law, 0].max())
    one: FloatArray = np.full(most, sign * index)
    return Policy.of(forest, np.zeros(len(forest), np.int64), one)
