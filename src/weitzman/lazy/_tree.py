"""What has been asked for so far of a forest without an end, as columns that grow."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from .._columns import as_cost, label, law_columns, reward_columns
from .._pool import Pool, starts
from .._types import FloatArray
from ..errors import InvalidForest
from ..model import Forest
from .node import Expand, Node

ROOT = -1  # instead of a parent
UNKNOWN = -1  # instead of children that were not asked for


class Matrices:
    """Matrices that are told apart by what they hold, each stored once."""

    def __init__(self) -> None:
        self.all: list[FloatArray] = []
        self._number: dict[Hashable, int] = {}
        self._pool: Pool | None = None

    def known(self, key: Hashable) -> int | None:
        """The place of the matrix that has this key; the key says all about it."""
        return self._number.get(key)

    def add(self, key: Hashable, matrix: FloatArray) -> int:
        """Store a matrix that is not there yet."""
        self._number[key] = len(self.all)
        self.all.append(matrix)
        self._pool = None
        return len(self.all) - 1

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
    """A node with all that the columns hold of it."""

    node: Node
    law: int
    reward: int
    cost: float
    costs: FloatArray | None
    copies: int


class Tree:
    """The nodes known so far; those of one parent lie side by side.

    Attributes
    ----------
    nodes : list of Node
    law, reward, count : arrays of int
        Of each node; law and reward are places in ``laws`` and ``rewards``.
    cost : array of float
        Of each node; nan where ``costs`` has a matrix for it.
    parent, first, children : arrays of int
        The parent of each node, its first child, and how many there are; UNKNOWN if not asked for.
    roots : int
        How many roots there are; they come first.
    """

    def __init__(self, roots: Iterable[Node], expand: Expand, minimise: bool) -> None:
        self._expand, self._minimise = expand, minimise
        self.nodes: list[Node] = []
        self.parent, self.law, self.reward = array("q"), array("q"), array("q")
        self.count, self.first, self.children = array("q"), array("q"), array("q")
        self.cost = array("d")
        self.costs: dict[int, FloatArray] = {}
        self.laws, self.rewards = Matrices(), Matrices()
        self.state_names: list[tuple[str, ...] | None] = []
        self._place: dict[str, int] = {}
        self._add(_listed(roots, "the roots"), ROOT)
        self.roots = len(self.nodes)
        if self.roots == 0:
            raise InvalidForest("a forest needs at least one box, but there are no roots.")

    def __len__(self) -> int:
        return len(self.nodes)

    def number(self, name: str) -> int | None:
        """The number of a node by its name, if it is known."""
        return self._place.get(name)

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
        """Check all and then add all, so that what fails can be tried again."""
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
            self._place[row.node.name] = here
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
            node = Node(
                law=node.law, rewards=node.rewards, cost=node.cost, name=name, data=node.data,
                count=node.count, states=node.states,
            )  # fmt: skip
        count = node.count
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)):
            raise InvalidForest(
                f"a count must be a whole number, but that of {name!r} is {count!r}."
            )
        cost, costs = node.cost, None
        if type(cost) is not float:  # the usual case first: there may be very many
            costs = as_cost(cost, root, name)
            cost, costs = (float(costs[0, 0]), None) if costs.size == 1 else (np.nan, costs)
        return _Row(node, self._law(node, root), self._reward(node), cost, costs, int(count))

    def _check_names(self, names: list[str]) -> None:
        if len(set(names)) < len(names) or not self._place.keys().isdisjoint(names):
            twice = next(x for i, x in enumerate(names) if x in self._place or x in names[:i])
            raise InvalidForest(
                f"names of nodes must differ, but {twice!r} is there twice. Leave names out, or "
                f"make the way to the node part of them."
            )

    def _check_kinds(self, rows: Sequence[_Row], parent: int) -> None:
        """Let the rules of a forest look at nodes of a new kind, where they have names."""
        above = [] if parent == ROOT else [self.own_rewards(parent)]
        Forest.from_arrays(
            parent=[*[-1] * len(above), *[len(above) - 1] * len(rows)],
            law=[*(np.full(len(x), 1 / len(x)) for x in above),
                 *(self.laws.all[row.law] for row in rows)],
            rewards=[*above, *(self.rewards.all[row.reward][0] for row in rows)],
            cost=0.0,
            outside=0.0,
            minimise=self._minimise,
            names=[*(self.nodes[parent].name for _ in above), *(row.node.name for row in rows)],
        )  # fmt: skip

    def _law(self, node: Node, root: bool) -> int:
        key = (root, *_content(node.law))
        found = self.laws.known(key)
        if found is None:
            pool, _ = law_columns([node.law], np.array([-1 if root else 0]), 1, [node.name])
            found = self.laws.add(key, pool[0].copy())
        return found

    def _reward(self, node: Node) -> int:
        states = None if node.states is None else tuple(label(x) for x in node.states)
        key = (states, *_content(node.rewards))
        found = self.rewards.known(key)
        if found is None:
            pool, _, _ = reward_columns([node.rewards], None, 1, [node.name])
            found = self.rewards.add(key, pool[0].copy())
            self.state_names.append(states)
        return found


def _content(x: object) -> tuple[Hashable, ...]:
    """All that an array holds, as a key."""
    try:
        found = np.asarray(x)
    except ValueError:  # rows of different lengths, to be complained about elsewhere
        return (repr(x),)
    if found.dtype.kind not in "iuf":
        return (repr(x),)
    return found.shape, found.dtype.str, found.tobytes()


def _listed(nodes: Iterable[Node], what: str) -> list[Node]:
    found = list(nodes) if isinstance(nodes, Iterable) else [nodes]
    for node in found:
        if not isinstance(node, Node):
            raise InvalidForest(
                f"{what} must be a list of Nodes, but there is a {type(node).__name__}. Give an "
                f"empty list where there are none."
            )
    return found
