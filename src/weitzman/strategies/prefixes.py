"""What a fixed beginning of an order earns, with optimal stopping.

After a beginning, a situation is what was seen of the boxes that still have closed children, and
the rewards in hand. Values are computed backward from all situations at its end. There the search
either stops (a value that can be reached) or goes on freely (a value that no order with this
beginning can exceed).
"""

from __future__ import annotations

import sys
from functools import cached_property

import numpy as np

from .._common.arrays import FloatArray
from ..engine.solution import Solution, mean_cost
from ..engine.weights import Weights
from .copies import parents_first, places
from .rewards_in_hand import Hand, OnePrize, SeveralPrizes

States = tuple[int, ...]
Pair = tuple[float, float]  # stopping at the end; going on freely


class OutOfWork(Exception):
    """The limit is reached."""


class Prefixes:
    """Values of beginnings of orders on a forest without copies; higher is better.

    With discounting, laws are weighed with the factors; with a risk tolerance all numbers are
    utilities (sections 11 to 13 of the theory page).

    Attributes
    ----------
    weights : Weights
        The numbers as they are looked at.
    order : list of int
        All boxes, parents before children.
    parent : list of int
    children : list of lists of int
    work, limit : int
        Situations looked at so far, and at most.
    """

    def __init__(self, solution: Solution, limit: int = sys.maxsize) -> None:
        f = solution.forest
        policy = solution.policy()
        self.policy = policy
        self.weights = weights = Weights.of(f)
        self.outside = weights.outside
        where = places(f)
        self.hand: OnePrize | SeveralPrizes = OnePrize(self.outside)
        if f.prizes > 1:
            self.hand = SeveralPrizes(self.outside, where.prizes, where.tree)
        self.order = parents_first(policy)
        self.parent: list[int] = f.parent.tolist()
        at, child = policy.child_at.tolist(), policy.child.tolist()
        self.children: list[list[int]] = [child[at[v] : at[v + 1]] for v in range(len(f))]
        self.roots = [v for v in range(len(f)) if self.parent[v] < 0]
        self.index: list[list[float]] = [self._indices(v).tolist() for v in range(len(f))]
        additive = weights.tolerance == 0  # costs are factors of utilities
        self.cost: list[list[float]] = [
            (additive * mean_cost(f, v)).tolist() for v in range(len(f))
        ]
        starts = f.rewards.start[f.reward].tolist()
        states = f.rewards.shape[f.reward, 1].tolist()
        self.reward: list[list[float]] = [
            weights.rewards[a : a + k].tolist() for a, k in zip(starts, states, strict=True)
        ]
        laws = [weights.laws[int(i)] for i in weights.law]
        self.outcomes = [
            [[(y, p) for y, p in enumerate(row) if p > 0] for row in law.tolist()] for law in laws
        ]
        # an index below the outside option counts as that: no cost however large widens the range
        index = np.concatenate([np.array(row) for row in self.index])
        self.grid = np.unique(np.concatenate([weights.rewards, index, [self.outside]]))
        self.laws = laws
        self.free: dict[tuple[frozenset[int], States, Hand], float] = {}
        self.work, self.limit = 0, limit

    def _indices(self, v: int) -> FloatArray:
        f = self.policy.forest
        at = int(self.policy.index_at[v])
        found = self.policy.index[at : at + int(f.laws.shape[f.law[v], 0])]
        return self.weights.written(np.maximum(found, self.policy.outside))

    @cached_property
    def below(self) -> list[FloatArray]:
        """Distribution functions, on the grid, of the capped value of each box in each state."""
        laws = self.laws
        below: list[FloatArray] = [np.empty(0)] * len(laws)
        for v in reversed(self.order):
            after = (self.grid >= np.array(self.reward[v])[:, None]).astype(np.float64)
            for u in self.children[v]:
                after = after * below[u]
            capped = self.grid >= np.array(self.index[v])[:, None]
            below[v] = np.where(capped, 1.0, laws[v] @ after)
        return below

    def values(self, prefix: tuple[int, ...]) -> Pair:
        """Open these boxes in this order, stopping when best; then stop, or go on freely."""
        return _Run(self, prefix).value_at(0, (), self.hand.start)

    def going_on(self, opened: frozenset[int], seen: list[tuple[int, int]], hand: Hand) -> float:
        """The optimal value of going on where anything may be done."""
        key = (opened, tuple(s for _, s in seen), hand)
        if key not in self.free:
            self.work += 1
            ready = self.closed(opened, seen)
            self.free[key] = self.hand.going_on(hand, ready, self.below, self.grid)
        return self.free[key]

    def closed(self, opened: frozenset[int], seen: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Boxes that can be opened now, each with the state of its parent."""
        ready = [(v, 0) for v in self.roots if v not in opened]
        return ready + [(u, s) for v, s in seen for u in self.children[v] if u not in opened]


class _Run:
    """One beginning, step by step."""

    def __init__(self, boxes: Prefixes, prefix: tuple[int, ...]) -> None:
        self.boxes, self.prefix = boxes, prefix
        self.opened = [frozenset(prefix[:i]) for i in range(len(prefix) + 1)]
        self.open_ended = [
            tuple(v for v in prefix[:i] if not self.opened[i].issuperset(boxes.children[v]))
            for i in range(len(prefix) + 1)
        ]  # of which boxes the states still matter
        self.memo: dict[tuple[int, States, Hand], Pair] = {}

    def value_at(self, i: int, states: States, hand: Hand) -> Pair:
        """From here on, with ``i`` boxes opened."""
        key = (i, states, hand)
        if key not in self.memo:
            self.memo[key] = self._value(i, states, hand)
        return self.memo[key]

    def _value(self, i: int, states: States, hand: Hand) -> Pair:
        boxes = self.boxes
        boxes.work += 1
        if boxes.work > boxes.limit:
            raise OutOfWork
        seen = list(zip(self.open_ended[i], states, strict=True))
        ready, best = boxes.closed(self.opened[i], seen), boxes.hand.stop(hand)
        if boxes.hand.done(hand, ready, boxes.index):
            return best, best  # nothing is worth opening, in this order or any other
        if i == len(self.prefix):
            return best, boxes.going_on(self.opened[i], seen, hand)
        v, now = self.prefix[i], dict(seen)
        s = now[boxes.parent[v]] if boxes.parent[v] >= 0 else 0
        stop = free = -boxes.cost[v][s]
        for y, p in boxes.outcomes[v][s]:
            now[v] = y
            after = tuple(now[u] for u in self.open_ended[i + 1])
            x, z = self.value_at(i + 1, after, boxes.hand.with_reward(hand, v, boxes.reward[v][y]))
            stop += p * x
            free += p * z
        return max(best, stop), max(best, free)
