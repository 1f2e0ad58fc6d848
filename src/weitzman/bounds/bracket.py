"""Two finite forests around one without an end: what is known alone, and with stand-ins below it.

A *situation* is what can be opened now and the best reward so far. Some of the nodes below it are
*in play*; of these, the *tips* are those whose children are not. Without their children they are
worth at most the truth; with stand-ins in place of the children, at least.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from .._common.arrays import FloatArray, IntArray
from ..engine.solution import Solution
from ..engine.solver import solve
from ..errors import InvalidForest
from ..forest.model import Forest
from ..forest.pools import Pool, stack_pool
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
    """The nodes in play, those of the situation first; numbered anew, in the order of coming in.

    So what is found depends on the situation, not on what was asked for before.
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

    def columns(self) -> PlayColumns:
        """What is in play as the columns of a forest."""
        t, roots = self.tree, self.situation.closed
        node = np.array(self.node, np.int64)
        law, count = np.array(t.law)[node], np.array(t.count)[node]
        laws = t.laws.pool()
        rows: dict[tuple[int, int], int] = {}
        for i, (_, state, copies) in enumerate(roots):
            if laws.shape[law[i], 0] > 1:
                law[i] = rows.setdefault((law[i], state), len(laws) + len(rows))
            count[i] = copies
        laws = _more(laws, [laws[m][s : s + 1] for m, s in rows])
        costs, cost = self._costs(node)
        return PlayColumns(
            np.array(self.parent, np.int64), law, np.array(t.reward)[node], cost, count, laws,
            t.rewards.pool(), costs,
        )  # fmt: skip

    def _costs(self, node: IntArray) -> tuple[Pool, IntArray]:
        t = self.tree
        amount = np.array(t.cost)[node]
        special = np.flatnonzero(np.isnan(amount)).tolist()
        costs, cost = stack_pool(np.where(np.isnan(amount), 0.0, amount).reshape(-1, 1, 1))
        matrices = []
        for i in special:
            matrix = t.costs.get(int(node[i]), np.array([[np.nan]]))
            if i < len(self.situation.closed) and len(matrix) > 1:
                state = self.situation.closed[i].state
                matrix = matrix[state : state + 1]
            matrices.append(matrix)
        cost = cost.copy()
        cost[special] = len(costs) + np.arange(len(special))
        return _more(costs, matrices), cost


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


@dataclass(frozen=True, slots=True, eq=False)
class Bracket:
    """The solved pair of forests. All numbers are signed so that higher is better.

    Attributes
    ----------
    low, high : Solution
        Of what is known alone, and with stand-ins.
    lower, upper : float
        The value of the situation lies between them.
    low_index, high_index : arrays
        The same for the index of each node of the situation.
    """

    play: InPlay
    sign: float
    tolerance: float
    low: Solution
    high: Solution
    tips: IntArray
    lower: float
    upper: float
    low_index: FloatArray
    high_index: FloatArray

    @classmethod
    def around(cls, play: InPlay, minimize: bool, tolerance: float, threads: int | None) -> Bracket:
        """Solve both."""
        sign = -1.0 if minimize else 1.0
        tips = np.flatnonzero(np.array(play.tip))
        boxes = [play.bounds.below(play.tree, play.node[i]) for i in tips.tolist()]
        columns = play.columns()  # after the bounds, which may have asked for the first children
        low = solve(forest_of(play, columns, minimize), tolerance=tolerance, threads=threads)
        more = columns.with_boxes(tips, boxes)
        high = solve(forest_of(play, more, minimize), tolerance=tolerance, threads=threads)
        roots = len(play.situation.closed)
        return cls(
            play, sign, tolerance, low, high, tips, sign * low.value - low.gap, sign * high.value,
            sign * _first_indices(low, roots), sign * _first_indices(high, roots),
        )  # fmt: skip

    @property
    def best(self) -> float:
        """The best reward so far."""
        return self.sign * self.play.situation.best

    @property
    def span(self) -> float:
        """The range of the rewards, those of the stand-ins and the best so far among them."""
        f = self.high.forest
        levels = np.append(f.rewards.data, f.outside)
        levels = levels[np.isfinite(levels)]
        return float(np.ptp(levels)) if len(levels) else 0.0

    def relevant(self, wanted: int) -> IntArray:
        """The first tips below which something could be worth opening, at most so many."""
        at, index = self.high.index_columns()
        found: list[int] = []
        for j, tip in enumerate(self.tips.tolist()):
            own = self.sign * self.play.tree.own_rewards(self.play.node[tip])
            ahead = self.sign * index[at[len(self.play) + j] :][: len(own)]
            if len(found) < wanted and (ahead > np.maximum(own, self.best)).any():
                found.append(tip)
        return np.array(found, np.int64)


def _more(pool: Pool, matrices: Sequence[FloatArray]) -> Pool:
    return pool.with_more(matrices) if matrices else pool


def _first_indices(solution: Solution, roots: int) -> FloatArray:
    at, index = solution.index_columns()
    return index[at[:roots]]


def forest_of(play: InPlay, c: PlayColumns, minimize: bool, *, named: bool = False) -> Forest:
    """The forest of these columns; on the way, names are only needed for complaints."""
    given = {name: getattr(c, name) for name in PlayColumns.__dataclass_fields__}
    given |= {"outside": play.situation.best, "minimize": minimize}
    names = play.tree.state_names
    given["state_names"] = (*names, *[None] * (len(c.rewards) - len(names)))
    try:
        if not named:
            return Forest(**given)
    except InvalidForest:
        pass
    titles = [play.tree.nodes[v].name for v in play.node]
    titles += [f"(bound below {titles[i]})" for i in c.parent[len(titles) :]]
    return Forest(**given, names=tuple(titles))
