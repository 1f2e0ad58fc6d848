"""Nodes, and the known part of a lazy forest as columns that grow."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import FloatArray
from ..errors import InvalidForest
from ..forest.columns import Pool, label, matrix_of, starts
from ..forest.model import Forest
from ..forest.rules import SUM_TOLERANCE

ROOT = -1  # instead of a parent
UNKNOWN = -1  # instead of children that were not asked for


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Node:
    """A box, without the boxes behind it.

    Parameters
    ----------
    law : array
        A vector for a root; for a child a matrix with a row for each state of its parent. Nodes of
        one kind should share one array.
    rewards : array
        The reward of each state; minus infinity (plus, when minimizing) marks a signal without
        a reward.
    cost : number or array
        As in :meth:`Forest.from_arrays <weitzman.Forest.from_arrays>`: a number; for a child one
        number per state of its parent; or a matrix where it depends on what is found.
    name : str
        A name that no other node has. By default the way from the root: "0.2.1" is the second
        child of the third child of the first root.
    data : object
        Anything that the function for the children needs. Nothing else reads it.
    count : int
        Number of copies, each with its own copy of all boxes behind it.
    states : names, optional
        Of the states; otherwise they have numbers.
    """

    law: ArrayLike
    rewards: ArrayLike
    cost: ArrayLike
    name: str = ""
    data: Any = None
    count: int = 1
    states: Sequence[object] | None = None

    def __repr__(self) -> str:
        return f"Node({self.name!r})"


Expand = Callable[[Node], Iterable[Node]]
"""The children of a node, in an order that is always the same; none if it has no children."""


class GrowingPool:
    """Matrices, each different one stored once."""

    def __init__(self) -> None:
        self.all: list[FloatArray] = []
        self._number: dict[Hashable, int] = {}
        self._pool: Pool | None = None

    def number(self, matrix: FloatArray, tag: Hashable = None) -> int:
        """The place of a matrix; matrices with different tags are kept apart."""
        found = self._number.setdefault((tag, matrix.shape, matrix.tobytes()), len(self.all))
        if found == len(self.all):
            self.all.append(matrix)
            self._pool = None
        return found

    def cut(self, size: int) -> None:
        """Forget the last ones."""
        self._number = {key: i for key, i in self._number.items() if i < size}
        del self.all[size:]
        self._pool = None

    def pool(self) -> Pool:
        """All of them."""
        if self._pool is None:
            shape = np.array([m.shape for m in self.all], np.int64).reshape(-1, 2)
            data = np.concatenate([np.empty(0), *(m.reshape(-1) for m in self.all)])
            self._pool = Pool(data, starts(shape), shape)
        return self._pool


class _Row(NamedTuple):
    """A node and its entries in the columns."""

    node: Node
    law: int
    reward: int
    cost: float
    costs: FloatArray | None
    copies: int


class LazyTree:
    """The nodes known so far, ``roots`` of them roots; those of one parent lie side by side."""

    def __init__(self, roots: Iterable[Node], expand: Expand, minimize: bool) -> None:
        self._expand, self.minimize = expand, minimize
        self.nodes: list[Node] = []
        self.law, self.reward = array("q"), array("q")  # places in `laws` and `rewards`
        self.parent, self.count = array("q"), array("q")
        self.first, self.children = array("q"), array("q")  # the first child, and how many
        self.cost = array("d")  # nan where `costs` has a matrix
        self.costs: dict[int, FloatArray] = {}
        self.laws, self.rewards = GrowingPool(), GrowingPool()
        self.state_names: list[tuple[str, ...] | None] = []
        self.place: dict[str, int] = {}  # the numbers of nodes by their names
        self._add(_listed(roots, "the roots"), ROOT)
        self.roots = len(self.nodes)
        if self.roots == 0:
            raise InvalidForest("a forest needs at least one box, but there are no roots.")

    def __len__(self) -> int:
        return len(self.nodes)

    def expand(self, v: int) -> range:
        """The numbers of the children of a node; they are asked for once."""
        if self.first[v] == UNKNOWN:
            node, first = self.nodes[v], len(self.nodes)
            self._add(_listed(self._expand(node), f"the children of {node.name!r}"), v)
            self.first[v], self.children[v] = first, len(self.nodes) - first
        return range(self.first[v], self.first[v] + self.children[v])

    def own_rewards(self, v: int) -> FloatArray:
        """The reward of each state of a node."""
        return np.asarray(self.rewards.all[self.reward[v]][0])

    def _add(self, nodes: Sequence[Node], parent: int) -> None:
        """Check all nodes before adding any, so that a failed call can be repeated."""
        kinds = len(self.laws.all), len(self.rewards.all)
        rows = [self._row(node, parent, i) for i, node in enumerate(nodes)]
        self._check_names([row.node.name for row in rows])
        if kinds != (len(self.laws.all), len(self.rewards.all)):
            try:
                self._check_kinds(rows, parent)
            except InvalidForest:
                self.laws.cut(kinds[0])
                self.rewards.cut(kinds[1])
                del self.state_names[kinds[1] :]
                raise
        for row in rows:
            here = len(self.nodes)
            self.place[row.node.name] = here
            self.nodes.append(row.node)
            self.parent.append(parent)
            self.law.append(row.law)
            self.reward.append(row.reward)
            self.cost.append(row.cost)
            self.count.append(row.copies)
            self.first.append(UNKNOWN)
            self.children.append(UNKNOWN)
            if row.costs is not None:
                self.costs[here] = row.costs

    def _row(self, node: Node, parent: int, place: int) -> _Row:
        root, name = parent == ROOT, node.name
        if not name:
            name = str(place) if root else f"{self.nodes[parent].name}.{place}"
            node = replace(node, name=name)
        count = node.count
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)):
            raise InvalidForest(
                f"a count must be a whole number, but that of {name!r} is {count!r}."
            )
        law, reward = self._law(node, root), self._reward(node)
        cost: Any = node.cost
        if not isinstance(cost, float):  # the usual case is quick: there may be very many
            cost = matrix_of("opening", cost, root, name, "cost")
            if cost.size > 1:
                return _Row(node, law, reward, np.nan, cost, int(count))
            cost = cost[0, 0]
        return _Row(node, law, reward, float(cost), None, int(count))

    def _check_names(self, names: list[str]) -> None:
        if len(set(names)) < len(names) or not self.place.keys().isdisjoint(names):
            twice = next(x for i, x in enumerate(names) if x in self.place or x in names[:i])
            raise InvalidForest(
                f"names of nodes must differ, but {twice!r} appears twice. Leave names out, or "
                f"make the way to the node part of them."
            )

    def _check_kinds(self, rows: Sequence[_Row], parent: int) -> None:
        """Let the rules of a forest look at nodes of a new kind, where they have names."""
        above = [] if parent == ROOT else [self.own_rewards(parent)]
        laws = [self.laws.all[row.law] for row in rows]
        rewards = [self.rewards.all[row.reward][0] for row in rows]
        given = len(above[0]) if above else 1
        if all(
            law.shape == (given, len(own)) and law.size > 0 and law.min() >= 0
            and np.abs(law.sum(axis=1) - 1).max() <= SUM_TOLERANCE and np.isfinite(own).all()
            for law, own in zip(laws, rewards, strict=True)
        ):  # fmt: skip
            return  # which is quick
        Forest.from_arrays(
            parent=[*[-1] * len(above), *[len(above) - 1] * len(rows)],
            law=[*(np.full(len(x), 1 / len(x)) for x in above), *laws],
            rewards=[*above, *rewards], cost=0.0, outside=0.0, minimize=self.minimize,
            names=[*(self.nodes[parent].name for _ in above), *(row.node.name for row in rows)],
        )  # fmt: skip

    def _law(self, node: Node, root: bool) -> int:
        law = _plain(node.law)
        if law is not None and law.ndim == 1 and root:
            law = law.reshape(1, -1)
        if law is None or law.ndim != 2:  # converts what can be, complains about what cannot
            law = matrix_of("law", node.law, root, node.name, "law")
        return self.laws.number(law)

    def _reward(self, node: Node) -> int:
        rewards = _plain(node.rewards)
        if rewards is None or rewards.ndim != 1:
            rewards = matrix_of("rewards", node.rewards, False, node.name, "rewards")
        states = None if node.states is None else tuple(label(x) for x in node.states)
        found = self.rewards.number(rewards.reshape(1, -1), states)
        if found == len(self.state_names):
            self.state_names.append(states)
        return found


def _plain(x: object) -> FloatArray | None:
    """Numbers as a new array; None if they are not plain numbers in rows of one length."""
    try:
        found = np.asarray(x)
    except ValueError:
        return None
    return found.astype(np.float64) + 0.0 if found.dtype.kind in "iuf" else None  # no -0.0


def _listed(nodes: Iterable[Node], what: str) -> list[Node]:
    found = list(nodes) if isinstance(nodes, Iterable) else [nodes]
    for node in found:
        if not isinstance(node, Node):
            raise InvalidForest(
                f"{what} must be a list of Nodes, but there is a {type(node).__name__}. Give an "
                f"empty list where there are none."
            )
    return found
