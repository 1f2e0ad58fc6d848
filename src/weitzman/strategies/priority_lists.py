"""A list that is worked through once, and ranking by expected net value: rivals that people use.

A fixed *order* may stop but never skip: in a search with stages that is a weak rival. A priority
*list* skips a box that is not worth its cost after what was seen, and goes on with the next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._common.arrays import FloatArray, IntArray
from .._kernels.structure import postorder
from ..engine.indices import Policy
from ..engine.solution import Solution, mean_cost
from ..engine.solver import solve
from ..engine.weights import Weights
from ..forest.combining import expand
from ..forest.model import Forest
from .copies import places


class Worked(NamedTuple):
    """What going through a list came to, one number for each episode."""

    payoff: FloatArray
    spend: FloatArray
    openings: FloatArray


MOST_DRAWS = 20_000_000  # boxes times episodes
MOST_BOXES = 5_000


def by_expected_value(forest: Forest) -> Policy:
    """Rank every box by its expected net value, pursued to the end and dropped where it fails.

    In drug development this is the risk-adjusted net present value: the chance-weighted reward
    less the costs of the stages that are reached, discounted if the forest is. It sees what a box
    unlocks, but not that the search may stop with another one, and no risk tolerance.

    Examples
    --------
    >>> import weitzman
    >>> door = weitzman.Forest.from_arrays(
    ...     parent=[-1, 0], cost=[1, 1], rewards=[[0], [0, 10]], law=[[1], [[0.5, 0.5]]])
    >>> by_expected_value(door).index.tolist()  # of the door, and of the room behind it
    [3.0, 4.0]
    """
    f = forest
    f.must_end("ranking by expected value")
    weights = Weights.plain(f) if f.factors is None else Weights.of(f)
    sizes = f.laws.shape[f.law, 0]
    at = np.cumsum(sizes) - sizes
    behind: dict[int, FloatArray] = {}
    index = np.empty(int(sizes.sum()))
    for v in _children_first(f.parent):
        law, rewards = weights.laws[int(weights.law[v])], f.sign * f.rewards[int(f.reward[v])][0]
        unlocked = behind.pop(v, np.zeros(len(rewards)))
        taken = np.maximum(np.where(np.isfinite(rewards), rewards, 0.0), unlocked)
        value = law @ taken - mean_cost(f, v)
        index[at[v] : at[v] + sizes[v]] = value
        up = int(f.parent[v])
        if up >= 0:
            more = float(f.count[v]) * np.maximum(value, 0.0)
            behind[up] = behind.get(up, np.zeros(len(more))) + more
    return Policy.of(f, at, f.sign * index)


def priority_list(solution: Solution) -> IntArray:
    """Boxes by the highest index that each may have; what is behind a box, after it."""
    f = solution.forest
    rank = np.array([np.max(f.sign * solution.indices(v)) for v in range(len(f))])
    depth, tree = np.zeros(len(f), np.int64), np.arange(len(f))
    for v in _children_first(f.parent)[::-1]:
        up = int(f.parent[v])
        if up >= 0:
            rank[v], depth[v], tree[v] = min(rank[v], rank[up]), depth[up] + 1, tree[up]
    return np.lexsort((np.arange(len(f)), depth, tree, -rank))


def work_through(
    solution: Solution, order: IntArray, episodes: int, rng: np.random.Generator
) -> Worked:
    """Payoff, spend and openings, in each episode, of going through a list once.

    A box is opened if its parent is open and its index, after what the parent showed, is above the
    best reward so far; otherwise it is skipped. With several prizes the best reward of its tree
    counts, and a place must be left for it. Copies are written out by the caller.
    """
    f, where = solution.forest, places(solution.forest)
    hand = np.full((int(where.tree.max()) + 1, episodes), f.sign * f.outside)
    spend, openings, worth = np.zeros(episodes), np.zeros(episodes), np.ones(episodes)
    shown = np.full((len(f), episodes), -1, np.int16 if _narrow(f) else np.int64)
    for v in order.tolist():
        up = int(f.parent[v])
        state = np.zeros(episodes, np.int64) if up < 0 else shown[up].astype(np.int64)
        index = f.sign * solution.indices(v)
        tree = int(where.tree[v])
        pays = _pays(index[np.maximum(state, 0)], hand, tree, where.prizes)
        go = np.flatnonzero((state >= 0) & pays)
        if not len(go):
            continue
        reach = np.cumsum(f.laws[int(f.law[v])], axis=1)[state[go]]
        found = np.sum(rng.random(len(go))[:, None] * reach[:, -1:] >= reach, axis=1)
        found = np.minimum(found, reach.shape[1] - 1)
        which = np.full(len(go), f.cost[v])
        spend[go] += worth[go] * f.costs.entries(which, state[go], found)
        if f.factors is not None:
            worth[go] *= f.factors.entries(which, state[go], found)
        hand[tree, go] = np.maximum(hand[tree, go], f.sign * f.rewards[int(f.reward[v])][0][found])
        shown[v, go] = found
        openings[go] += 1
    best = worth * np.sort(hand, axis=0)[-where.prizes :].sum(axis=0)
    return Worked(f.sign * (best - spend), spend, openings)


def _pays(index: FloatArray, hand: FloatArray, tree: int, prizes: int) -> NDArray[np.bool_]:
    """Whether an index is above what its tree holds, and a place is left for it."""
    above = index > hand[tree]
    if prizes > 1:
        above &= np.sum(hand >= index, axis=0) < prizes  # its own tree is not among them
    return np.asarray(above)


def listed(solution: Solution) -> Solution | None:
    """The solution with copies written out, if there are few enough boxes."""
    f = solution.forest
    if f.boxes > MOST_BOXES or not np.isfinite(f.outside):
        return None
    if f.count.max() == 1:
        return solution
    return solve(expand(f, MOST_BOXES))


def _children_first(parent: IntArray) -> list[int]:
    order, _, _ = postorder(parent)
    return [int(v) for v in order]


def _narrow(f: Forest) -> bool:
    return int(f.rewards.shape[:, 1].max()) < 2**15
