"""What people do instead: index rules of thumb, a list worked through once, no order at all.

A fixed *order* may stop but never skip: in a search with stages that is a weak rival. A priority
*list* skips a box that is not worth its cost after what was seen, and continues with the next.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray, check_counts
from .._kernels.episodes import (
    COST_AT,
    COST_ROW,
    COST_STEP,
    FACTOR_AT,
    FACTOR_ROW,
    FACTOR_STEP,
    INDEX_AT,
    LAW_AT,
    REWARD_AT,
    STATES,
)
from ..engine.indices import Policy
from ..engine.solution import Solution, mean_cost
from ..engine.solver import solve
from ..engine.weights import Weights
from ..errors import InvalidForest
from ..forest.builder import expand
from ..forest.model import Forest
from ..policy.simulation import (
    Simulation,
    box_draws,
    episode_stream,
    run_episodes,
    stream_key,
    tabulate,
    uniform,
)
from .parts import WRITE_OUT, children_first, places

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

    The paper reads the index off a table over the rewards (and the outside option) only. That is
    the true index rounded up to the next reward. It stops correctly on a single line, but is too
    coarse to rank boxes.
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
    most = int(forest.laws.shape[forest.law, 0].max())
    index: FloatArray = np.full(most, forest.sign * np.inf)
    return Policy.of(forest, np.zeros(len(forest), np.int64), index)


MOST_DRAWS = 20_000_000  # boxes times episodes
_TOGETHER = 2_000_000  # the same at a time
_SITUATIONS = 3000  # that are all looked at


def by_expected_value(forest: Forest) -> Policy:
    """Rank every box by its expected net value, if pursued to the end and dropped where it fails.

    In drug development this is the risk-adjusted net present value: the chance-weighted reward
    less the costs of the stages that are reached, discounted if the forest is. What fails leaves
    the outside option. It ignores that the search may stop with another box, and risk tolerance.

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
    floor = f.sign * f.outside  # what is left where a box fails
    if not np.isfinite(floor):
        floor = float(np.min((f.sign * f.rewards.data)[np.isfinite(f.rewards.data)], initial=0.0))
    sizes = f.laws.shape[f.law, 0]
    at = np.cumsum(sizes) - sizes
    behind: dict[int, FloatArray] = {}  # gains over the floor, by the states of a box
    index = np.empty(int(sizes.sum()))
    for v in children_first(f):
        law, rewards = weights.laws[int(weights.law[v])], f.sign * f.rewards[int(f.reward[v])][0]
        unlocked = behind.pop(v, np.zeros(len(rewards)))
        own = np.where(np.isfinite(rewards), rewards - floor, 0.0)
        value = law @ (floor + np.maximum(own, unlocked)) - mean_cost(f, v)
        index[at[v] : at[v] + sizes[v]] = value
        up = int(f.parent[v])
        if up >= 0:
            more = float(f.count[v]) * np.maximum(value - floor, 0.0)
            behind[up] = behind.get(up, np.zeros(len(more))) + more
    return Policy.of(f, at, f.sign * index)


def priority_list(solution: Solution) -> IntArray:
    """Boxes by the highest index that each may have; what is behind a box, after it."""
    f = solution.forest
    rank = np.array([np.max(f.sign * solution.indices(v)) for v in range(len(f))])
    depth, tree = np.zeros(len(f), np.int64), np.arange(len(f))
    for v in children_first(f)[::-1]:
        up = int(f.parent[v])
        if up >= 0:
            rank[v], depth[v], tree[v] = min(rank[v], rank[up]), depth[up] + 1, tree[up]
    return np.lexsort((np.arange(len(f)), depth, tree, -rank))


class _Lists:
    """Goes through a list of boxes once, in many episodes at the same time.

    A box is opened if its parent is open and its index, after what the parent showed, is above the
    best reward so far; otherwise it is skipped. With several prizes the best reward of its tree
    counts, and a place must be left for it. With a ``budget`` that many boxes are opened, whatever
    they show. Without an ``order``, one is drawn for each episode. There are no copies.
    """

    def __init__(
        self, solution: Solution, rng: np.random.Generator | int, order: IntArray | None = None,
        budget: int | None = None,
    ) -> None:  # fmt: skip
        self.policy, self.order, self.budget = solution.policy(), order, budget
        self.forest, self.where = solution.forest, places(solution.forest)
        self.tables, self.parent = tabulate(self.policy), solution.forest.parent
        generator = np.random.default_rng(rng)
        self.stream, self.seed = stream_key(generator), generator.integers(0, 2**63)
        self.downward = children_first(self.forest)[::-1]
        self.draws = np.zeros(len(self.parent) + 1, np.uint64)  # the spare entry is above all roots
        for v in self.downward:
            self.draws[v] = box_draws(self.draws[self.parent[v]], v)

    def _drawn(self, first: int, last: int) -> IntArray:
        """An order for each episode; the next box is any of those that can be opened.

        It is that of the times of opening if every box waits for an exponential time.
        """
        times = np.random.default_rng([int(self.seed), first]).exponential(
            size=(len(self.forest), last - first)
        )
        for v in self.downward:
            times[v] += times[self.parent[v]] if self.parent[v] >= 0 else 0.0
        return np.argsort(times, axis=0)

    def __call__(self, first: int, last: int, out: FloatArray, opened: IntArray) -> None:
        """Play episodes, as for :func:`~weitzman.policy.simulation.run_episodes`."""
        boxes, n, episodes = self.tables.boxes, len(self.forest), np.arange(last - first)
        stream = episode_stream(self.stream, first, last)
        order = self._drawn(first, last) if self.order is None else self.order[:, None]
        hand = np.full((int(self.where.tree.max()) + 1, last - first), self.policy.outside)
        shown = np.full((n, last - first), -1, np.int32)
        spend, openings, time = np.zeros((3, last - first))
        worth = np.ones(last - first)
        for box in order:
            v = np.broadcast_to(box, episodes.shape)
            state = np.where(self.parent[v] < 0, 0, shown[self.parent[v], episodes])
            left = np.inf if self.budget is None else self.budget - openings
            go = np.flatnonzero((state >= 0) & (left > 0))
            at, s = boxes[v[go]], state[go]
            if self.budget is None:
                index = self.tables.index[at[:, INDEX_AT] + s]
                pays = _pays(index, hand[:, go], self.where.tree[v[go]], self.where.prizes)
                go, at, s = go[pays], at[pays], s[pays]
            if not len(go):
                continue
            u, y = uniform(stream[go] + self.draws[v[go]]), np.zeros(len(go), np.int64)
            start = at[:, LAW_AT] + s * at[:, STATES]
            for j in range(int(at[:, STATES].max())):  # the last entries of a law are above 1
                place = np.minimum(j, at[:, STATES] - 1)
                y += self.tables.chances[start + place] <= u
            costs, factors = self.tables.costs, self.tables.factors
            paid = costs[at[:, COST_AT] + s * at[:, COST_ROW] + y * at[:, COST_STEP]]
            spend[go] += worth[go] * paid
            if len(factors):
                entry = at[:, FACTOR_AT] + s * at[:, FACTOR_ROW] + y * at[:, FACTOR_STEP]
                worth[go] *= factors[entry]
                time[go] += self.tables.durations[entry]
            tree = self.where.tree[v[go]]
            reward = self.tables.rewards[at[:, REWARD_AT] + y]
            hand[tree, go] = np.maximum(hand[tree, go], reward)
            shown[v[go], go] = y
            openings[go] += 1
            np.add.at(opened, v[go], 1)
        best = worth * np.sort(hand, axis=0)[-self.where.prizes :].sum(axis=0)
        out[:] = best - spend, best, spend, openings, openings, time


def work_through(
    solution: Solution, order: IntArray, episodes: int, rng: np.random.Generator | int
) -> Simulation:
    """Go through a list once, in many episodes. Copies are written out by the caller."""
    play = _Lists(solution, rng, order)
    return run_episodes(play, solution.forest, episodes, chunk=_chunk(solution.forest))


def _chunk(forest: Forest) -> int:
    return max(1, _TOGETHER // len(forest))


def _pays(index: FloatArray, hand: FloatArray, tree: int | IntArray, prizes: int) -> BoolArray:
    """Whether an index is above what its tree holds, and a place is left for it."""
    above = index > hand[tree, np.arange(len(index))]
    if prizes > 1:
        above &= np.sum(hand >= index, axis=0) < prizes  # its own tree is not among them
    return np.asarray(above)


class Exactly(NamedTuple):
    """What a rule comes to."""

    value: float
    openings: float
    spend: float


def by_situation(solution: Solution, rule: str, budget: int) -> Exactly | None:
    """What a rule earns, by looking at all situations; None: there are too many.

    Rules are "priority_list"; "budget", the boxes with the highest index whatever they show;
    "random_order", one of the boxes that are worth opening; "random_budget", any boxes. The forest
    is without copies.
    """
    f = solution.forest
    w, where, outside = Weights.of(f), places(f), f.sign * f.outside
    states, parent = f.rewards.shape[f.reward, 1].tolist(), f.parent.tolist()
    ways = [1.0] * (len(f) + 1)  # situations at and below each box; the last entry is above all
    for v in children_first(f):
        ways[parent[v]] *= min(1e300, 1.0 + states[v] * ways[v])
    if ways[-1] > _SITUATIONS or not np.isfinite(outside):
        return None
    index = [(f.sign * solution.indices(v)).tolist() for v in range(len(f))]
    rewards = [(f.sign * f.rewards[int(r)][0]).tolist() for r in f.reward]
    cost = [mean_cost(f, v) for v in range(len(f))]
    timed = Weights.of(replace(f, risk_tolerance=None)) if w.tolerance > 0 else w
    laws = [  # for the payoff, the openings and the spend
        np.stack([w.laws[int(w.law[v])], f.laws[int(f.law[v])], timed.laws[int(timed.law[v])]])
        for v in range(len(f))
    ]
    rank = {v: i for i, v in enumerate(priority_list(solution).tolist())}
    known: dict[tuple[int, ...], FloatArray] = {}

    def chosen(seen: tuple[int, ...], hand: list[float]) -> list[int]:
        ready = [v for v, up in enumerate(parent) if seen[v] < 0 and (up < 0 or seen[up] >= 0)]
        if "budget" in rule and sum(s >= 0 for s in seen) >= budget:
            return []
        if rule == "random_budget" or not ready:
            return ready
        at = {v: index[v][seen[parent[v]] if parent[v] >= 0 else 0] for v in ready}
        if rule == "budget":
            return [max(ready, key=lambda v: (at[v], -v))]
        hands = np.array(hand)[:, None]
        worth = [v for v in ready if _pays(np.array([at[v]]), hands, where.tree[v], where.prizes)]
        return worth if rule == "random_order" else sorted(worth, key=rank.__getitem__)[:1]

    def go(seen: tuple[int, ...], hand: list[float]) -> FloatArray:
        if seen not in known:
            boxes, total = chosen(seen, hand), np.zeros(3)
            if not boxes:
                best = np.sort(w.written(np.array(hand)))[-where.prizes :]
                total[0] = best.sum()
            for v in boxes:
                s, t = seen[parent[v]] if parent[v] >= 0 else 0, int(where.tree[v])
                price = float(cost[v][s])
                total += np.array([-price if w.tolerance == 0 else 0.0, 1.0, price]) / len(boxes)
                for y in np.flatnonzero(f.laws[int(f.law[v])][s]).tolist():
                    held = [*hand[:t], max(hand[t], rewards[v][y]), *hand[t + 1 :]]
                    after = go((*seen[:v], y, *seen[v + 1 :]), held)
                    total += laws[v][:, s, y] * after / len(boxes)
            known[seen] = total
        return known[seen]

    value, openings, spend = go((-1,) * len(f), [outside] * (int(where.tree.max()) + 1))
    return Exactly(f.sign * float(w.read_back(value)), float(openings), float(spend))


def random_order(
    solution: Solution, episodes: int, rng: np.random.Generator | int, *, budget: int | None = None
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

    Examples
    --------
    >>> import weitzman
    >>> box = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=3)
    >>> random_order(weitzman.solve(box), 1000, rng=1, budget=2).openings.mean
    2.0
    """
    check_counts(budget=budget)
    forest = solution.forest
    forest.must_end("a random order")
    if forest.boxes > WRITE_OUT:
        raise InvalidForest(
            f"a random order can be played with at most {WRITE_OUT} boxes, but this forest has "
            f"{forest.boxes}, all copies counted. Use fewer boxes or copies, or play "
            f"simulate(solution, episodes, rng, budget=...), which has no such limit."
        )
    f = expand(forest, WRITE_OUT)
    play = _Lists(solution if f is forest else solve(f), rng, None, budget)
    return run_episodes(play, f, episodes, chunk=_chunk(f))
