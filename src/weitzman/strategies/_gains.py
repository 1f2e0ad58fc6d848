r"""What a fixed set of boxes earns, and what every other box would add to it.

With all boxes of a closed set opened, whatever they show, the costs add up to a fixed sum, and the
best reward M has a distribution function that is a product over the forest. Passing it up and then
down the forest gives :math:`P(Y_v = y, M \le x)` for every box v, and with it the gain
:math:`E(r(Y_v) - M)^+` of adding v, for all v at once. E[M] is submodular, so these gains bound
what any larger set can earn.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .._types import FloatArray, IntArray
from ..model import Forest
from ..policy import Policy
from ..solution import mean_cost
from .copies import parents_first
from .rules import everything

_OVERHEAD = 20_000  # nanoseconds for each box, however few its states


class Gains:
    """A forest without copies, laid out for gains; signs such that higher is better.

    Attributes
    ----------
    order : list of int
        All boxes, parents before children.
    parent : list of int
    children : list of lists of int
    cost : (n,) array of float
        Expected cost of opening each box, its ancestors being open.
    nothing : float
        What the empty set earns.
    work : int
        Roughly how many nanoseconds it takes to examine one set.
    """

    def __init__(self, forest: Forest) -> None:
        policy = everything(forest)
        self.order = parents_first(policy)
        self.parent: list[int] = forest.parent.tolist()
        self.children = [_children(policy, v) for v in range(len(forest))]
        self.laws = [forest.laws[int(i)] for i in forest.law]
        self.cost = self._costs(forest)
        self.nothing = policy.outside
        finite = policy.rewards[np.isfinite(policy.rewards)]
        if np.isfinite(self.nothing):
            floor = self.nothing
        else:  # far below all that can be had: the empty set is then never the best
            floor = finite.min() - 2 * (np.ptp(finite) + self.cost.sum()) - 1
        self.grid = np.unique(np.append(finite[finite > floor], floor))
        self.width = np.diff(self.grid)
        rows = [policy.rewards[_row(forest, v)] for v in range(len(forest))]
        self.not_above = [(self.grid[:-1] >= r[:, None]).astype(np.float64) for r in rows]
        products = len(self.grid) * sum(m.size for m in self.laws)
        self.work = len(forest) * _OVERHEAD + 5 * products

    def _costs(self, forest: Forest) -> FloatArray:
        chance: dict[int, FloatArray] = {-1: np.ones(1)}
        cost = np.empty(len(forest))
        for v in self.order:
            before = chance[self.parent[v]]
            cost[v] = before @ mean_cost(forest, v)
            chance[v] = before @ self.laws[v]
        return cost

    def of(self, members: Iterable[int]) -> tuple[float, FloatArray]:
        """What opening the members earns, and the gain of each other box, costs not counted."""
        inside = set(members)
        inner, up = self._upward(inside)
        whole = np.ones(len(self.width))
        for v in inside:
            if self.parent[v] < 0:
                whole = whole * up[v][0]
        best = self.grid[-1] - float(self.width @ whole)
        value = best - float(self.cost[list(inside)].sum())
        return value, self._downward(inside, whole, inner, up)

    def _upward(self, inside: set[int]) -> tuple[dict[int, FloatArray], dict[int, FloatArray]]:
        """P(no member from v down exceeds x), given v's own state, and given its parent's."""
        inner: dict[int, FloatArray] = {}
        up: dict[int, FloatArray] = {}
        for v in reversed(self.order):
            if v in inside:
                inner[v] = self.not_above[v]
                for u in self.children[v]:
                    if u in inside:
                        inner[v] = inner[v] * up[u]
                up[v] = self.laws[v] @ inner[v]
        return inner, up

    def _downward(
        self,
        inside: set[int],
        whole: FloatArray,
        inner: dict[int, FloatArray],
        up: dict[int, FloatArray],
    ) -> FloatArray:
        joint: dict[int, FloatArray] = {-1: whole[None, :]}  # P(state, M <= x)
        gain = np.zeros(len(self.order))
        for v in self.order:
            above = joint[self.parent[v]]
            if v in inside:
                without = np.divide(above, up[v], out=np.zeros_like(above), where=up[v] > 0)
                joint[v] = (self.laws[v].T @ without) * inner[v]
            else:
                joint[v] = self.laws[v].T @ above
                gain[v] = float((joint[v] * (1 - self.not_above[v])).sum(axis=0) @ self.width)
        return gain


def _children(policy: Policy, v: int) -> list[int]:
    found: list[int] = policy.child[policy.child_at[v] : policy.child_at[v + 1]].tolist()
    return found


def _row(forest: Forest, v: int) -> IntArray:
    row = int(forest.reward[v])
    return np.arange(forest.rewards.start[row], forest.rewards.start[row + 1])
