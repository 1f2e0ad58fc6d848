"""The known part of a lazy forest, and the stand-ins for what lies below it.

A *situation* is what can be opened now and the best reward so far. Some of the nodes below it are
*in play*; *tips* are nodes in play whose children are not in play. Without the children, the nodes
are worth at most the true value; with stand-ins for the children, at least the true value.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, Protocol

import numpy as np

from .._common.arrays import FloatArray, IntArray
from ..engine.solution import Solution
from ..engine.solver import solve
from ..errors import InvalidForest
from ..forest.columns import Pool, stack_pool, take_pools
from ..forest.model import Forest
from .bracket import Bracket, span
from .index_bounds import StandIn
from .lazy_tree import LazyTree


class Bounds(Protocol):
    """Where stand-ins come from."""

    def below(self, tree: LazyTree, v: int) -> StandIn:
        """A box that is worth at least as much as all below node v."""

    def added(self, tree: LazyTree, children: range) -> None:
        """New nodes are known."""


class Closed(NamedTuple):
    """A node that can be opened: what its parent showed, and how many copies are closed."""

    node: int
    state: int
    copies: int


class Situation(NamedTuple):
    """What can be opened now, and the best reward so far."""

    closed: Sequence[Closed]
    best: float


class InPlay:
    """The nodes in play, those of the situation first, numbered in the order of arrival.

    So the result depends on the situation, not on earlier questions.
    """

    def __init__(self, tree: LazyTree, bounds: Bounds, situation: Situation) -> None:
        self.tree, self.bounds, self.situation = tree, bounds, situation
        self.node = array("q", [c.node for c in situation.closed])
        self.parent = array("q", [-1] * len(self.node))
        self.tip = array("b", [1] * len(self.node))

    def __len__(self) -> int:
        return len(self.node)

    def expand(self, i: int) -> None:
        """Bring the children of a tip into play."""
        children = self.tree.expand(self.node[i])
        self.bounds.added(self.tree, children)
        self.node.extend(children)
        self.parent.extend([i] * len(children))
        self.tip.extend([1] * len(children))
        self.tip[i] = 0

    def lower_forest(self) -> Forest:
        """What is in play alone."""
        return self.forest()

    def upper_forest(self) -> Forest:
        """The same with a stand-in below each tip."""
        tips = self.tips()
        boxes = [self.bounds.below(self.tree, self.node[i]) for i in tips.tolist()]
        return self._forest(self._columns().with_boxes(tips, boxes), named=False)

    def tips(self) -> IntArray:
        """The places of the tips."""
        return np.flatnonzero(np.array(self.tip))

    def forest(self, *, named: bool = False) -> Forest:
        """The nodes in play as a forest; names are only needed for error messages."""
        return self._forest(self._columns(), named)

    def _columns(self) -> PlayColumns:
        t, roots = self.tree, self.situation.closed
        node = np.array(self.node, np.int64)
        after = np.full(len(node), -1)
        after[: len(roots)] = [c.state for c in roots]
        count = np.array(t.count)[node]
        count[: len(roots)] = [c.copies for c in roots]
        (laws,), law, _ = take_pools([t.laws.pool()], np.array(t.law)[node], after)
        costs, cost = self._costs(node)
        (costs,), cost, _ = take_pools([costs], cost, after)
        return PlayColumns(
            np.array(self.parent, np.int64), law, np.array(t.reward)[node], cost, count, laws,
            t.rewards.pool(), costs,
        )  # fmt: skip

    def _costs(self, node: IntArray) -> tuple[Pool, IntArray]:
        """The costs of nodes, for all states of their parents."""
        amount = np.array(self.tree.cost)[node]
        matrices = np.flatnonzero(np.isnan(amount))
        costs, cost = stack_pool(np.where(np.isnan(amount), 0.0, amount).reshape(-1, 1, 1))
        cost = cost.copy()
        cost[matrices] = len(costs) + np.arange(len(matrices))
        none = np.array([[np.nan]])
        return _more(costs, [self.tree.costs.get(v, none) for v in node[matrices].tolist()]), cost

    def _forest(self, c: PlayColumns, named: bool) -> Forest:
        given = {name: getattr(c, name) for name in PlayColumns.__dataclass_fields__}
        given |= {"outside": self.situation.best, "minimize": self.tree.minimize}
        names = self.tree.state_names
        given["state_names"] = (*names, *[None] * (len(c.rewards) - len(names)))
        try:
            if not named:
                return Forest(**given)
        except InvalidForest:
            pass
        titles = [self.tree.nodes[v].name for v in self.node]
        titles += [f"(bound below {titles[i]})" for i in c.parent[len(titles) :]]
        return Forest(**given, names=tuple(titles))


@dataclass(frozen=True, slots=True, eq=False)
class PlayColumns:
    """Columns and pools of a forest to be, as in :class:`~weitzman.Forest`."""

    parent: IntArray
    law: IntArray
    reward: IntArray
    cost: IntArray
    count: IntArray
    laws: Pool
    rewards: Pool
    costs: Pool

    def with_boxes(self, tips: IntArray, boxes: Sequence[StandIn]) -> PlayColumns:
        """The same with one more box below each tip."""
        kinds = list({id(b): b for b in boxes}.values())
        place = {id(b): i for i, b in enumerate(kinds)}
        kind = np.array([place[id(b)] for b in boxes], np.int64)
        return PlayColumns(
            np.concatenate([self.parent, tips]),
            np.concatenate([self.law, len(self.laws) + kind]),
            np.concatenate([self.reward, len(self.rewards) + kind]),
            np.concatenate([self.cost, len(self.costs) + kind]),
            np.concatenate([self.count, np.array([b.count for b in kinds], np.int64)[kind]]),
            _more(self.laws, [b.law for b in kinds]),
            _more(self.rewards, [b.rewards for b in kinds]),
            _more(self.costs, [b.cost for b in kinds]),
        )


class PlayBracket(Bracket):
    """Bounds on the value of a situation and on the index of each node that can be opened.

    All are signed so that higher is better.
    """

    def __init__(self, play: InPlay, tolerance: float, threads: int | None) -> None:
        super().__init__(play, partial(solve, tolerance=tolerance, threads=threads))
        self.play, self.tolerance, self.tips = play, tolerance, play.tips()
        self.sign = -1.0 if play.tree.minimize else 1.0

    @property
    def best(self) -> float:
        """The best reward so far."""
        return self.sign * self.play.situation.best

    @cached_property
    def span(self) -> float:
        """The range of the rewards, those of the stand-ins and the best so far among them."""
        return span(self.high.forest)

    @cached_property
    def low_index(self) -> FloatArray:
        """No index of the situation is lower."""
        return self._indices(self.low)

    @cached_property
    def high_index(self) -> FloatArray:
        """No index of the situation is higher."""
        return self._indices(self.high)

    def _indices(self, solution: Solution) -> FloatArray:
        at, index = solution.index_columns()
        return self.sign * index[at[: len(self.play.situation.closed)]]

    def relevant(self, wanted: int) -> IntArray:
        """The first tips below which something could be worth opening, up to a number of them."""
        at, index = self.high.index_columns()
        found: list[int] = []
        for j, tip in enumerate(self.tips.tolist()):
            own = self.sign * self.play.tree.own_rewards(self.play.node[tip])
            ahead = self.sign * index[at[len(self.low.forest) + j] :][: len(own)]
            if len(found) < wanted and (ahead > np.maximum(own, self.best)).any():
                found.append(tip)
        return np.array(found, np.int64)


def _more(pool: Pool, matrices: Sequence[FloatArray]) -> Pool:
    return pool.with_more(matrices) if matrices else pool
