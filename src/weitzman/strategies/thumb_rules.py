"""What people do instead: index rules of thumb, a list worked through once, no order at all.

A fixed *order* may stop but never skip: in a search with stages that is a weak rival. A priority
*list* skips a box that is not worth its cost after what was seen, and goes on with the next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._common.arguments import check_counts
from .._common.arrays import FloatArray, IntArray
from .._kernels import orders
from .._kernels.episodes import Game, Tally
from .._kernels.structure import postorder
from ..engine.indices import Policy
from ..engine.solution import Solution, mean_cost
from ..engine.solver import solve
from ..engine.weights import Weights
from ..errors import InvalidForest
from ..forest.builder import expand
from ..forest.model import Forest
from ..policy.simulation import Simulation, run_episodes, stream_key, tabulate
from .copies import WRITE_OUT, places, ready_room

_SLACK = 1e-9  # how far above a reward an index may lie by rounding, as a share of the range


def myopic(forest: Forest) -> Policy:
    """Rank every box by its own reservation value, blind to what it unlocks.

    The index of a box after its parent showed s is the root of E[(reward - x)^+] = cost, as if
    the box were the only one. Optimal where no box has children.

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
    """The index from the paper's table: the least reward x at which opening does not pay.

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


class Worked(NamedTuple):
    """What going through a list came to, one number for each episode."""

    payoff: FloatArray
    spend: FloatArray
    openings: FloatArray


MOST_DRAWS = 20_000_000  # boxes times episodes
MOST_BOXES = 5_000


def by_expected_value(forest: Forest) -> Policy:
    """Rank every box by its expected net value, if pursued to the end and dropped where it fails.

    In drug development this is the risk-adjusted net present value: the chance-weighted reward
    less the costs of the stages that are reached, discounted if the forest is. It counts what a box
    unlocks, but ignores that the search may stop with another box, and ignores risk tolerance.

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


def _few_enough(f: Forest) -> Forest:
    """The forest with copies written out, or an error that says what has no such limit."""
    f.must_end("a random order")
    if f.boxes > WRITE_OUT:
        raise InvalidForest(
            f"a random order can be played with at most {WRITE_OUT} boxes, but this forest has "
            f"{f.boxes}, all copies counted. Use fewer boxes or copies, or play "
            f"simulate(solution, episodes, rng, budget=...), which has no such limit."
        )
    return expand(f, WRITE_OUT)


def random_order(
    solution: Solution,
    episodes: int,
    rng: np.random.Generator | int,
    *,
    budget: int | None = None,
    threads: int | None = None,
) -> Simulation:
    """Open one of the available boxes at random, each with the same probability.

    Parameters
    ----------
    solution : Solution
        Copies are written out: there may be 5000 boxes at most.
    episodes : int
    rng : Generator or int
    budget : int, optional
        Open this many boxes, whatever they show. Without it, boxes whose index does not exceed the
        best reward so far are left closed: only the order is random, not the stopping.
    threads : int, optional

    Examples
    --------
    >>> import weitzman
    >>> box = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=3)
    >>> random_order(weitzman.solve(box), 1000, rng=1, budget=2).openings.mean
    2.0
    """
    check_counts(budget=budget)
    f = _few_enough(solution.forest)
    policy = (solution if f is solution.forest else solve(f)).policy()
    tables, most = tabulate(policy), len(f) if budget is None else budget
    where = places(f)
    game = Game(len(policy.root), policy.outside, 1, most, budget is None, stream_key(rng))

    def play(first: int, last: int, out: FloatArray, opened: IntArray) -> None:
        room = ready_room(f, where)
        orders.play_random(tables, game, where, f.parent, (first, last), Tally(out, opened), room)

    return run_episodes(play, f, episodes, threads=threads)
