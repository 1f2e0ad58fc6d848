r"""What a fixed set of boxes earns, what every other box would add to it, and every line of boxes.

With all boxes of a closed set opened, whatever they show, the costs add up to a fixed sum, and the
best reward M has a distribution function that is a product over the forest. Passing it up and then
down the forest gives :math:`P(Y_v = y, M \le x)` for every box v, and with it the gain
:math:`E(r(Y_v) - M)^+` of adding v, for all v at once. E[M] is submodular, so these gains bound
what any larger set can earn.

Counting in the rewards on the way down from the set to v gives what the whole line down to v adds.
From the empty set these are all lines that begin at a root: the paper's search for the best one.

Boxes that are not in the set and have the same laws and rewards all the way down from it have the
same tables. On a forest of one transition matrix that leaves one table for each depth below each
box of the set, however many boxes there are and whatever they cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .._common.arrays import FloatArray, IntArray
from ..engine.indices import Policy
from ..engine.solution import mean_costs
from ..forest.model import Forest
from .copies import parents_first
from .thumb_rules import everything

_TABLE = 15_000  # nanoseconds for each table, however few its entries
_BOX = 200  # and for each box that shares one
_MEMBERS = 10  # of a typical set


class LineGains(NamedTuple):
    """What adding each box together with all that is missing above it earns, costs included."""

    net: FloatArray  # minus infinity for members, and where nothing can be as good as the best
    looked_at: int  # boxes


class Gains:
    """A forest without copies, laid out for gains; signs such that higher is better.

    Attributes
    ----------
    levels : list of arrays of int
        The boxes at each depth.
    depth : (n,) array of int
    parent : (n,) array of int
    cost : (n,) array of float
        Expected cost of opening each box, its ancestors being open.
    nothing : float
        What the empty set earns.
    work : int
        Roughly how many nanoseconds it takes to examine one set.
    """

    def __init__(self, forest: Forest) -> None:
        policy = everything(forest)
        self.parent = forest.parent
        self.levels = _levels(policy)
        self.depth = np.empty(len(forest), np.int64)
        for d, boxes in enumerate(self.levels):
            self.depth[boxes] = d
        self.law, self.reward = forest.law.tolist(), forest.reward.tolist()
        self.laws = [forest.laws[i] for i in range(len(forest.laws))]
        _, self.kind = np.unique(
            forest.law * len(forest.rewards) + forest.reward, return_inverse=True
        )
        self.cost = self._costs(forest)
        self.nothing = policy.outside
        self.grid = self._grid(policy.rewards)
        self.width = np.diff(self.grid)
        at = forest.rewards.start.tolist()
        rows = [policy.rewards[a:b] for a, b in pairwise(at)]
        self.not_above = [(self.grid[:-1] >= r[:, None]).astype(np.float64) for r in rows]
        self.work = self._work(forest)

    def _costs(self, forest: Forest) -> FloatArray:
        mean, at = mean_costs(forest)
        cost = np.empty(len(forest))
        chance: dict[int, FloatArray] = {-1: np.ones(1)}  # of the states of boxes of one past
        past = np.full(len(forest) + 1, -1)  # the last entry stands above all roots
        for boxes in self.levels:
            for group, above in self._alike(boxes, past, forest.law):
                before = chance[above]
                rows = at[group][:, None] + np.arange(len(before))
                cost[group] = mean[rows] @ before
                past[group] = len(chance)
                chance[len(chance)] = before @ forest.laws[int(forest.law[group[0]])]
        return cost

    def _grid(self, rewards: FloatArray) -> FloatArray:
        finite = rewards[np.isfinite(rewards)]
        if np.isfinite(self.nothing):
            floor = self.nothing
        else:  # far below all that can be had: the empty set is then never the best
            floor = finite.min() - 2 * (np.ptp(finite) + self.cost.sum()) - 1
        return np.unique(np.append(finite[finite > floor], floor))

    def _work(self, forest: Forest) -> int:
        past = np.full(len(forest) + 1, -1)
        tables, entries = 0, 0
        for boxes in self.levels:
            for group, _ in self._alike(boxes, past, self.kind):
                tables += 1
                past[group] = tables
                entries += self.laws[self.law[group[0]]].size
        per_set = min(_MEMBERS, len(forest) / tables)  # every member has tables of its own below it
        fixed = tables * _TABLE + 5 * len(self.grid) * entries
        return int(per_set * fixed) + len(forest) * _BOX

    def _alike(
        self, boxes: IntArray, past: IntArray, kind: IntArray
    ) -> Iterator[tuple[IntArray, int]]:
        """Boxes of one depth by kind and past, and the past of each such group."""
        if len(boxes) == 0:
            return
        above = past[self.parent[boxes]]
        key = (above + 1) * (int(kind.max()) + 1) + kind[boxes]
        order = np.argsort(key, kind="stable")
        cuts = np.flatnonzero(np.diff(key[order])) + 1
        for places in np.split(order, cuts):
            yield boxes[places], int(above[places[0]])

    def value_at(self, members: Iterable[int]) -> float:
        """What opening the members earns, whatever they show."""
        inside = list(members)
        return self._worth(inside, self._upward(inside)[0])

    def share_of_work(self, members: Sized) -> int:
        """What finding the value of these members counts for, in sets examined."""
        return max(1, len(members) * _TABLE // self.work)

    def of(self, members: Iterable[int]) -> tuple[float, FloatArray]:
        """What opening the members earns, and the gain of each other box, costs not counted."""
        inside = list(members)
        whole, joint = self._passed(inside)
        gain, past = np.zeros(len(self.cost)), self._past(inside)
        for boxes in self.levels:
            for group, above in self._alike(boxes[past[boxes] < 0], past, self.kind):
                law, not_above = self._matrices(group)
                here = law.T @ joint[above]
                gain[group] = (here * (1 - not_above)).sum(axis=0) @ self.width
                past[group] = table = len(self.cost) + int(group[0])
                joint[table] = here
        return self._worth(inside, whole), gain

    def lines(self, members: Iterable[int], *, depth: int | None = None) -> LineGains:
        """What the line down to each other box adds; only ``depth`` boxes deep, if given.

        A line is followed no further once even finding the top reward right there would not make
        up for the costs. So lines end by themselves where the top is likely to have been seen.
        """
        inside = list(members)
        whole, joint = self._passed(inside)
        now = float(self.width @ whole)  # how far the best reward is below the top, on average
        net, past = np.full(len(self.cost), -np.inf), self._past(inside)
        spent, left = np.zeros(len(past)), np.full(len(past), now)
        go_on = past >= 0
        go_on[-1] = True
        best, looked_at = 0.0, 0
        for boxes in self.levels[:depth]:
            near = boxes[go_on[self.parent[boxes]] & (past[boxes] < 0)]
            spent[near] = spent[self.parent[near]] + self.cost[near]
            near = near[now - spent[near] > best]
            for group, above in self._alike(near, past, self.kind):
                law, not_above = self._matrices(group)
                here = (law.T @ joint[above]) * not_above
                left[group] = self.width @ here.sum(axis=0)
                past[group] = table = len(self.cost) + int(group[0])
                joint[table] = here
            net[near] = now - left[near] - spent[near]
            best = max(best, net[near].max(initial=0.0))
            go_on[near] = True
            looked_at += len(near)
        return LineGains(net, looked_at)

    def _past(self, inside: list[int]) -> IntArray:
        """The table of each member: its own. The last entry stands above all roots."""
        past = np.full(len(self.cost) + 1, -1)
        past[inside] = inside
        return past

    def _matrices(self, group: IntArray) -> tuple[FloatArray, FloatArray]:
        v = int(group[0])
        return self.laws[self.law[v]], self.not_above[self.reward[v]]

    def _worth(self, inside: list[int], whole: FloatArray) -> float:
        return float(self.grid[-1] - self.width @ whole - self.cost[inside].sum())

    def _upward(
        self, inside: list[int]
    ) -> tuple[FloatArray, dict[int, FloatArray], dict[int, FloatArray]]:
        """P(M <= x); P(no member from v down exceeds x) given v's state, and its parent's."""
        inner = {v: self.not_above[self.reward[v]] for v in inside}
        up: dict[int, FloatArray] = {}
        whole = np.ones(len(self.width))
        for v in sorted(inside, key=lambda v: -self.depth[v]):
            up[v] = self.laws[self.law[v]] @ inner[v]
            above = int(self.parent[v])
            if above < 0:
                whole = whole * up[v][0]
            else:
                inner[above] = inner[above] * up[v]
        return whole, inner, up

    def _passed(self, inside: list[int]) -> tuple[FloatArray, dict[int, FloatArray]]:
        """P(M <= x), and P(state of v, M <= x) for every member v; above all roots it is -1."""
        whole, inner, up = self._upward(inside)
        joint = {-1: whole[None, :]}
        for v in sorted(inside, key=lambda v: self.depth[v]):
            above = joint[int(self.parent[v])]
            without = np.divide(above, up[v], out=np.zeros_like(above), where=up[v] > 0)
            joint[v] = (self.laws[self.law[v]].T @ without) * inner[v]
        return whole, joint


def _levels(policy: Policy) -> list[IntArray]:
    """The boxes at each depth."""
    parent = policy.forest.parent.tolist()
    depth = np.zeros(len(parent) + 1, np.int64).tolist()
    depth[-1] = -1
    for v in parents_first(policy):
        depth[v] = depth[parent[v]] + 1
    deep = np.array(depth[:-1])
    order = np.argsort(deep, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(deep[order])) + 1)
