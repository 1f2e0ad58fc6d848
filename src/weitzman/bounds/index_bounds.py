r"""Bounds on what is still to come: boxes that are worth at least as much as all below a node.

One random value dominates another if :math:`E\max(x, \cdot)` is at least as large for every x.
Joining independent values, mixing them, and capping at the index all keep that order (Lemma 1 of
the theory: :math:`\varphi_\kappa(x) = \max(x, \varphi_W(x) - c)` rises with
:math:`\varphi_W`). So if all that lies below a node is replaced by one box whose capped value
dominates, no index and no value falls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import FloatArray
from .._common.law import Law
from ..engine.plan import Plan
from ..errors import InvalidArgument, InvalidForest
from ..forest.columns import matrix_of
from ..forest.model import Forest
from .lazy_tree import LazyTree, Node

Bound = float | Callable[[Node], ArrayLike | Node]
"""A number, or a function of a node that gives a number, one for each state, or a box."""

_EPS = 1e-13  # merged breakpoints, as a share of the range of the rewards
_SETTLED = 1e-10  # a change that ends the descent to the endless tree, as the same share
_DEEPEST = 2**12
_ROUNDING = 1e-12  # by which an average may fall short


@dataclass(frozen=True, slots=True, eq=False)
class StandIn:
    """A box that is worth at least as much as all below a node."""

    law: FloatArray  # (states of the node, levels)
    rewards: FloatArray
    cost: FloatArray
    count: int = 1


class GivenBound:
    """A bound given by the user: a number, or a function of the node."""

    def __init__(self, bound: Bound, minimize: bool) -> None:
        self._bound, self._minimize = bound, minimize
        self._found: dict[int, StandIn] = {}

    def below(self, tree: LazyTree, v: int) -> StandIn:
        """The box that dominates all below node v."""
        if v not in self._found:
            node = tree.nodes[v]
            self._found[v] = self._as_box(node, tree.own_rewards(v))
        return self._found[v]

    def added(self, tree: LazyTree, children: range) -> None:
        """New nodes are known; nothing is checked, since the user vouches for the bound."""

    def _as_box(self, node: Node, own: FloatArray) -> StandIn:
        given = self._bound(node) if callable(self._bound) else self._bound
        if isinstance(given, Node):
            title = f"(bound below {node.name})"
            return StandIn(
                matrix_of("law", given.law, False, title, "law"),
                matrix_of("rewards", given.rewards, False, title, "rewards"),
                matrix_of("opening", given.cost, False, title, "cost"), given.count,
            )  # fmt: skip
        try:
            levels = np.asarray(given, np.float64)
            levels = np.broadcast_to(levels, own.shape) if levels.ndim == 0 else levels
        except (TypeError, ValueError):
            levels = np.empty(0)
        if levels.shape != own.shape or np.isnan(levels).any():
            raise InvalidArgument(
                f"a bound must be a number, one for each state of the node, or a Node, but for "
                f"{node.name!r}, which has {len(own)} states, it is {given!r}."
            )
        better = np.minimum if self._minimize else np.maximum
        return StandIn(np.eye(len(own)), better(levels, own)[None, :], np.zeros((1, 1)))


class StaticBound:
    """All children are of one kind: the endless tree of that kind with the least cost."""

    def __init__(
        self, least_cost: FloatArray, branching: int, outside: float, minimize: bool
    ) -> None:
        self._least, self._branching = least_cost, branching
        self._outside, self._minimize = outside, minimize
        self._kind: tuple[int, int] | None = None
        self._box: StandIn | None = None

    def below(self, tree: LazyTree, v: int) -> StandIn:
        """The box that dominates all below node v."""
        if self._box is None:
            self._box = self._found(tree)
        if len(tree.own_rewards(v)) != len(self._box.law):
            raise InvalidForest(
                f"with `least_cost` and `branching` all nodes must have the same states, but "
                f"{tree.nodes[v].name!r} has {len(tree.own_rewards(v))} and others have "
                f"{len(self._box.law)}. Give `bound` instead."
            )
        return self._box

    def added(self, tree: LazyTree, children: range) -> None:
        """New nodes are known: reject what would make the bound wrong."""
        copies = sum(tree.count[u] for u in children)
        above = tree.nodes[tree.parent[children[0]]].name if children else ""
        if copies > self._branching:
            raise InvalidForest(
                f"`branching` must be the most children that a node has, but it is "
                f"{self._branching} and {above!r} has {copies}."
            )
        for u in children:
            kind = (tree.law[u], tree.reward[u])
            if self._kind is None:
                self._kind = kind
            if kind != self._kind:
                raise InvalidForest(
                    f"with `least_cost` and `branching` all nodes but the roots must share law and "
                    f"rewards, but those of {tree.nodes[u].name!r} are different. Give `bound` "
                    f"instead."
                )
            if u not in tree.costs and tree.cost[u] >= self._least.max():
                continue
            law, cost = tree.laws.all[tree.law[u]], tree.costs.get(u, np.array([[tree.cost[u]]]))
            mean, least = (law * cost).sum(axis=1), np.broadcast_to(self._least, len(law))
            bad = np.flatnonzero(mean < least * (1 - _ROUNDING))
            if len(bad):
                raise InvalidForest(
                    f"no node may cost less than `least_cost`, but {tree.nodes[u].name!r} costs "
                    f"{mean[bad[0]]:.6g} on average where the least cost is {least[bad[0]]:.6g}."
                )

    def _found(self, tree: LazyTree) -> StandIn:
        for v in range(tree.roots):  # the kind is that of the first child there is
            if self._kind is None:
                self.added(tree, tree.expand(v))
        if self._kind is None:  # no root has a child, so nothing lies below
            own = tree.own_rewards(0)
            return StandIn(np.eye(len(own)), own[None, :], np.zeros((1, 1)))
        law, own = tree.laws.all[self._kind[0]], tree.rewards.all[self._kind[1]][0]
        if law.shape[0] != law.shape[1]:
            raise InvalidForest(
                f"with `least_cost` and `branching` all nodes must have the same states, but the "
                f"law of the children has shape {law.shape}. Give `bound` instead."
            )
        if self._least.shape not in ((), (len(law),)):
            raise InvalidArgument(
                f"`least_cost` must be one number, or one for each of the {len(law)} states of the "
                f"parent, but there are {len(self._least)}."
            )
        sign = -1.0 if self._minimize else 1.0
        box = endless_tree(law, sign * own, self._least, self._branching, sign * self._outside)
        return StandIn(box.law, sign * box.rewards, box.cost)


def endless_tree(
    law: FloatArray, rewards: FloatArray, cost: FloatArray, branching: int, outside: float
) -> StandIn:
    """A free box that dominates an endless tree: each node has ``branching`` equal children.

    A tree of d levels that gives the top reward for free below its last level dominates the endless
    tree for every d, and its value falls as d grows: d is doubled until the value stays the same.
    Equal siblings are one box with a count, so a tree of d levels is a line of d boxes.
    """
    finite = rewards[np.isfinite(rewards)]
    floor = outside if np.isfinite(outside) else float(finite.min())
    span = max(float(finite.max(initial=floor)) - floor, 0.0)
    if span == 0.0:
        return StandIn(np.ones((len(law), 1)), np.array([[floor]]), np.zeros((1, 1)))
    depth, before = 1, np.inf
    while True:
        box = _cut_off(law, rewards, cost, branching, floor, depth)
        now = float((box.law @ box.rewards[0]).sum())
        if before - now <= _SETTLED * span or depth >= _DEEPEST:
            return box
        depth, before = 2 * depth, now


def _cut_off(
    law: FloatArray, rewards: FloatArray, cost: FloatArray, branching: int, floor: float, depth: int
) -> StandIn:
    """The tree of ``depth`` levels with the top reward for free below the last one."""
    top = rewards.max()
    k, costs = len(law), np.broadcast_to(cost, len(law))
    found = []
    for y in range(k):
        forest = Forest.from_arrays(
            parent=range(-1, depth), law=[law[y], *[law] * (depth - 1), np.ones((k, 1))],
            rewards=[*[rewards] * depth, np.array([top])], count=[branching] * depth + [1],
            cost=[costs[y], *[costs] * (depth - 1), np.zeros(())], outside=floor,
        )  # fmt: skip
        found.append(Law(*Plan.of(forest).run(_EPS * (top - floor), 1).tail))
    levels = np.unique(np.concatenate([[floor], *(law.points for law in found)]))
    levels = levels[levels >= floor]
    reach = np.array([law.tail(levels) for law in found])
    reach[:, 0] = 1.0  # nobody looks below the floor
    chance = np.maximum(Law(levels, reach).chances(), 0.0)
    return StandIn(chance, levels[None, :], np.zeros((1, 1)))
