r"""What a fixed set of boxes earns, and what every other box or line of boxes would add to it.

With all boxes of a closed set opened, whatever they show, the costs add up to a fixed sum, and the
best reward M has a distribution function that is a product over the forest. Passing it up and then
down the forest gives :math:`P(Y_v = y, M \le x)` for every box v, and with it the gain
:math:`E(r(Y_v) - M)^+` of adding v, for all v at once. E[M] is submodular, so these gains bound
what any larger set can earn.

Counting in the rewards on the way down from the set to v gives what the whole line down to v adds.
From the empty set these are all lines that begin at a root: the paper's search for the best one.

Boxes outside the set with the same laws and rewards on the whole way down from it have the same
tables. On a forest of one transition matrix that leaves one table for each depth below each box of
the set, however many boxes there are and whatever they cost.

A distribution function jumps at the rewards that were opened and nowhere else. So a table has a
column for each reward of the set and of the line down to its box, not for each reward of the
forest, unless the forest has few rewards. Tables are kept while boxes below still need them. Where
the boxes of one depth need too many tables, the boxes are visited part by part, each part to its
end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from functools import cached_property
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
_FEW = 256  # rewards of a whole forest that every table has a column for
_ROOM = 2**26  # bytes of the tables that the boxes of one depth may take at a time
_MOST_ROOM = 2**28  # and of those of one set


class LineGains(NamedTuple):
    """What adding each box together with all that is missing above it earns, costs included."""

    net: FloatArray  # minus infinity for members, and where nothing can be as good as the best
    looked_at: int  # boxes


class JointLaw(NamedTuple):
    """P(state of a box, M <= x), a step function of x that jumps at the points."""

    points: FloatArray  # rising from the floor, below which M never is
    below: FloatArray  # (k, points): from each point up to the next

    def cut(self, rewards: FloatArray) -> JointLaw:
        """The same with these rewards among the points, as far as they are above the floor."""
        some = np.union1d(self.points, rewards[rewards > self.points[0]])
        return JointLaw(some, self.below[:, np.searchsorted(self.points, some, side="right") - 1])


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
    """

    def __init__(self, forest: Forest) -> None:
        policy = everything(forest)
        self.forest = forest
        self.parent = forest.parent
        self.child_at, self.child = policy.child_at, policy.child
        self.levels = _levels(policy)
        self.depth = np.empty(len(forest), np.int64)
        for d, boxes in enumerate(self.levels):
            self.depth[boxes] = d
        self.rewards = policy.rewards
        _, self.kind = np.unique(
            forest.law * len(forest.rewards) + forest.reward, return_inverse=True
        )
        self.cost = self._costs(forest)
        self.nothing = policy.outside
        self.grid = self._grid(policy.rewards)

    def _law(self, box: int) -> FloatArray:
        return self.forest.laws[int(self.forest.law[box])]

    def _reward(self, box: int) -> FloatArray:
        start, row = self.forest.rewards.start, int(self.forest.reward[box])
        return self.rewards[start[row] : start[row + 1]]

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
        else:  # far below every value: the empty set is then never the best
            floor = finite.min() - 2 * (np.ptp(finite) + self.cost.sum()) - 1
        return np.unique(np.append(finite[finite > floor], floor))

    @cached_property
    def work(self) -> int:
        """Roughly how many nanoseconds it takes to examine one set."""
        past = np.full(len(self.cost) + 1, -1)
        states = self.forest.laws.shape[self.forest.law]
        wide = [self._columns(_MEMBERS * int(states[:, 1].max()))]  # by table; of the set the last
        tables, entries = 0, 0
        for boxes in self.levels:
            for group, above in self._alike(boxes, past, self.kind):
                s, k = states[group[0]].tolist()
                wide.insert(-1, self._columns(wide[above] + k))
                past[group] = tables
                tables += 1
                entries += s * k * wide[-2]
        per_set = min(_MEMBERS, len(self.cost) / tables)  # every member has tables below it
        return int(per_set * (tables * _TABLE + 5 * entries)) + len(self.cost) * _BOX

    def room(self, members: Sized) -> int:
        """How many bytes the tables of these members take, at most."""
        k = int(self.forest.laws.shape[:, 1].max())
        return 4 * 8 * k * len(members) * self._columns(k * len(members))

    def too_many(self, members: Sized) -> bool:
        """Whether the tables of these members would take too much room."""
        return self.room(members) > _MOST_ROOM

    def _columns(self, rewards: int) -> int:
        return len(self.grid) if len(self.grid) <= _FEW else min(1 + rewards, len(self.grid))

    def _alike(
        self, boxes: IntArray, past: IntArray, kind: IntArray
    ) -> Iterator[tuple[IntArray, int]]:
        """Boxes of one depth by kind and past, and the past of each such group."""
        if len(boxes) == 0:
            return
        above = past[self.parent[boxes]]
        key = (above + 1) * (int(kind[boxes].max()) + 1) + kind[boxes]
        order = np.argsort(key, kind="stable")
        cuts = np.flatnonzero(np.diff(key[order])) + 1
        for places in np.split(order, cuts):
            yield boxes[places], int(above[places[0]])

    def value_at(self, members: Iterable[int]) -> float:
        """What opening the members earns, whatever they show."""
        inside = list(members)
        points = self._points(inside)
        return self._worth(inside, points, self._upward(inside, points)[0])

    def share_of_work(self, members: Sized) -> int:
        """What finding the value of these members counts for, in sets examined."""
        return max(1, len(members) * _TABLE // self.work)

    def of(self, members: Iterable[int]) -> tuple[float, FloatArray]:
        """What opening the members earns, and the gain of each other box, costs not counted."""
        inside = list(members)
        points, whole, joint = self._passed(inside)
        gain = np.zeros(len(self.cost))

        def visit(group: IntArray, above: JointLaw) -> JointLaw:
            v = int(group[0])
            here = JointLaw(above.points, self._law(v).T @ above.below)
            gain[group] = _area_up_to(self._reward(v), here)
            return here

        self._descend(inside, joint, visit)
        return self._worth(inside, points, whole), gain

    def lines(self, members: Iterable[int], *, depth: int | None = None) -> LineGains:
        """What the line down to each other box adds; at most ``depth`` boxes, if given.

        A line is followed no further once even finding the top reward right there would not make
        up for the costs. So lines end by themselves where the top is likely to have been seen.
        """
        inside = list(members)
        points, whole, joint = self._passed(inside)
        now = float(self._width(points) @ whole)  # how far M is below the top, on average
        net, spent = np.full(len(self.cost), -np.inf), np.zeros(len(self.cost) + 1)
        length = np.zeros(len(spent), np.int64)
        best, looked_at = 0.0, 0

        def worth_it(boxes: IntArray) -> IntArray:
            spent[boxes] = spent[self.parent[boxes]] + self.cost[boxes]
            length[boxes] = length[self.parent[boxes]] + 1
            near = boxes[now - spent[boxes] > best]
            return near if depth is None else near[length[near] <= depth]

        def visit(group: IntArray, above: JointLaw) -> JointLaw:
            nonlocal best, looked_at
            v = int(group[0])
            if len(self.grid) > _FEW:
                above = above.cut(self._reward(v))
            here = (self._law(v).T @ above.below) * self._not_above(v, above.points)
            left = float(self._width(above.points) @ here.sum(axis=0))
            net[group] = now - left - spent[group]
            best = max(best, float(net[group].max()))
            looked_at += len(group)
            return JointLaw(above.points, here)

        self._descend(inside, joint, visit, worth_it)
        return LineGains(net, looked_at)

    def _descend(
        self,
        inside: list[int],
        joint: dict[int, JointLaw],
        visit: Callable[[IntArray, JointLaw], JointLaw],
        chosen: Callable[[IntArray], IntArray] = np.asarray,
    ) -> None:
        """Visit the boxes below a set, alike ones at once, each with the table of its parent.

        Depth by depth; where the tables of one depth would take too much room, part by part.
        """
        past = np.full(len(self.cost) + 1, -1)  # the last entry stands above all roots
        past[inside] = inside
        stack: list[tuple[IntArray, list[int]]] = [(self._around(inside), [])]
        while stack:
            boxes, spare = stack.pop()
            for table in spare:  # all below has been visited
                del joint[table]
            near = chosen(boxes)
            groups = list(self._alike(near, past, self.kind))
            few = self._fitting(groups, joint)
            kept: list[int] = []
            for group, above in groups[:few]:
                here = visit(group, joint[above])
                if (self.child_at[group + 1] > self.child_at[group]).any():
                    kept.append(len(self.cost) + int(group[0]))
                    past[group], joint[kept[-1]] = kept[-1], here
            rest, seen = groups[few:], [group for group, _ in groups[:few]]
            if rest:
                stack.append((np.concatenate([group for group, _ in rest]), []))
            if kept:
                stack.append((np.empty(0, np.int64), kept))
                stack.append((self._children(np.concatenate(seen)), []))

    def _around(self, inside: list[int]) -> IntArray:
        """The boxes outside a set that hang on it, and the roots outside it."""
        member = np.zeros(len(self.cost) + 1, np.bool_)
        member[[*inside, -1]] = True
        return np.flatnonzero(member[self.parent] & ~member[:-1])

    def _children(self, boxes: IntArray) -> IntArray:
        start = self.child_at[boxes]
        many = self.child_at[boxes + 1] - start
        place = np.arange(many.sum()) + np.repeat(start - (np.cumsum(many) - many), many)
        return np.asarray(self.child[place])

    def _fitting(self, groups: list[tuple[IntArray, int]], joint: dict[int, JointLaw]) -> int:
        """How many groups to visit at a time: one at least."""
        used = 0
        for i, (group, above) in enumerate(groups):
            k = int(self.forest.laws.shape[self.forest.law[group[0]], 1])
            used += 8 * k * self._columns(len(joint[above].points) + k)
            if used > _ROOM and i > 0:
                return i
        return len(groups)

    def _points(self, inside: list[int]) -> FloatArray:
        """The floor and the rewards of a set, as far as they are above it; or all, if few."""
        if len(self.grid) <= _FEW:
            return self.grid
        floor = self.grid[:1]
        found = np.concatenate([floor, *(self._reward(v) for v in inside)])
        return np.unique(found[found >= floor])

    def _width(self, points: FloatArray) -> FloatArray:
        return np.diff(points, append=self.grid[-1])

    def _not_above(self, box: int, points: FloatArray) -> FloatArray:
        return (points >= self._reward(box)[:, None]).astype(np.float64)

    def _worth(self, inside: list[int], points: FloatArray, whole: FloatArray) -> float:
        below_top = float(self._width(points) @ whole)
        return float(self.grid[-1]) - below_top - float(self.cost[inside].sum())

    def _upward(
        self, inside: list[int], points: FloatArray
    ) -> tuple[FloatArray, dict[int, FloatArray], dict[int, FloatArray]]:
        """P(M <= x); P(no member from v down exceeds x) given v's state, and its parent's."""
        inner = {v: self._not_above(v, points) for v in inside}
        up: dict[int, FloatArray] = {}
        whole = np.ones(len(points))
        for v in sorted(inside, key=lambda v: -self.depth[v]):
            up[v] = self._law(v) @ inner[v]
            above = int(self.parent[v])
            if above < 0:
                whole = whole * up[v][0]
            else:
                inner[above] = inner[above] * up[v]
        return whole, inner, up

    def _passed(self, inside: list[int]) -> tuple[FloatArray, FloatArray, dict[int, JointLaw]]:
        """Points, P(M <= x), and the table of every member; of what is above all roots it is -1."""
        points = self._points(inside)
        whole, inner, up = self._upward(inside, points)
        joint = {-1: JointLaw(points, whole[None, :])}
        for v in sorted(inside, key=lambda v: self.depth[v]):
            above = joint[int(self.parent[v])].below
            without = np.divide(above, up[v], out=np.zeros_like(above), where=up[v] > 0)
            joint[v] = JointLaw(points, (self._law(v).T @ without) * inner[v])
        return points, whole, joint


def _area_up_to(rewards: FloatArray, here: JointLaw) -> float:
    """The sum over states y of the integral of P(y, M <= x) over x from the floor to r(y)."""
    y = np.flatnonzero(rewards > here.points[0])
    below = np.cumsum(here.below[y, :-1] * np.diff(here.points), axis=1)
    below = np.column_stack([np.zeros(len(y)), below])
    last = np.searchsorted(here.points, rewards[y], side="right") - 1
    rows = np.arange(len(y))
    rest = (rewards[y] - here.points[last]) * here.below[y, last]
    return float((below[rows, last] + rest).sum())


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
