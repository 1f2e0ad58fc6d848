"""Boxes that depend on several others: the general problem. Forests are the easy case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import FloatArray
from .._common.numbers import counted, such
from ..errors import InvalidForest
from ..forest.builder import expand
from ..forest.columns import default_outside, label
from ..forest.model import Forest
from ..forest.rules import SUM_TOLERANCE


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Dag:
    """Boxes on a directed graph without cycles; a box can be opened when all its parents are.

    Parameters
    ----------
    parents : n sequences of int
        The parents of each box; empty for a root. Boxes may come in any order.
    cost : n entries
        A number; or an array with an axis for each parent (its states), in the order of
        ``parents``; or such an array with a last axis for the own states, if the cost is random.
    rewards : one shared vector, or n vectors
        The reward of each state; minus infinity (plus, when minimizing) for a signal without a
        reward.
    law : n arrays
        ``law[i][s1, s2, ..., y]`` is the probability of state y of box i once its parents show
        s1, s2, ...; a vector for a root.
    names : n names, optional
    outside : float, optional
        0 by default when maximizing; required when minimizing.
    minimize : bool

    Examples
    --------
    Two coins, and a box that is full when they agree:

    >>> agree = [[[0, 1], [1, 0]], [[1, 0], [0, 1]]]
    >>> coins = Dag(parents=[[], [], [0, 1]], cost=[1, 1, 1], law=[[0.5, 0.5], [0.5, 0.5], agree],
    ...             rewards=[[0, 0], [0, 0], [0, 16]])
    >>> len(coins)
    3
    """

    hint: ClassVar[str] = (
        "Boxes with several parents have no indices: weitzman.strategies.exhaustive(dag) solves "
        "small problems, spanning_policy(dag) gives a policy for larger ones."
    )

    parents: tuple[tuple[int, ...], ...]
    cost: tuple[FloatArray, ...]
    rewards: tuple[FloatArray, ...]
    law: tuple[FloatArray, ...]
    names: tuple[str, ...]
    outside: float
    minimize: bool
    order: tuple[int, ...]

    def __init__(
        self,
        *,
        parents: Sequence[Sequence[int]],
        cost: Sequence[ArrayLike],
        rewards: Sequence[ArrayLike] | ArrayLike,
        law: Sequence[ArrayLike],
        names: Sequence[object] | None = None,
        outside: float | None = None,
        minimize: bool = False,
    ) -> None:
        n = len(parents)
        each: Any = rewards
        if len(each) and np.ndim(each[0]) == 0:
            each = [rewards] * n
        titles = tuple(map(label, range(n) if names is None else names))
        for what, column in (("cost", cost), ("rewards", each), ("law", law), ("names", titles)):
            if len(column) != n:
                raise InvalidForest(
                    f"`{what}` must have one entry per box, but there are {len(column)} for {n}."
                )
        above = tuple(tuple(map(int, p)) for p in parents)
        columns: dict[str, Any] = {
            "parents": above,
            "rewards": tuple(_numbers(r) for r in each),
            "law": tuple(_numbers(p) for p in law),
            "names": titles,
            "outside": float(default_outside(outside, minimize)),
            "minimize": minimize,
            "order": _parents_first(above, titles),
        }
        for name, column in columns.items():
            object.__setattr__(self, name, column)
        shapes = [self._shape(i) for i in range(n)]
        for i in range(n):
            _check_box(self, i, shapes[i])
        full = tuple(_full_cost(self, i, _numbers(cost[i]), shapes[i]) for i in range(n))
        object.__setattr__(self, "cost", full)

    def _shape(self, i: int) -> tuple[int, ...]:
        """States of the parents, then own states."""
        return tuple(len(self.rewards[p]) for p in (*self.parents[i], i))

    @classmethod
    def of(cls, forest: Forest, limit: int = 1000) -> Dag:
        """A forest as a graph, all copies written out."""
        forest.must_be_plain("a graph of boxes")
        f = expand(forest, limit)
        laws = [f.laws[int(i)] for i in f.law]
        root = (f.parent < 0).tolist()
        return cls(
            parents=[[] if p < 0 else [p] for p in f.parent.tolist()],
            cost=[_forest_cost(f, v) for v in range(len(f))],
            rewards=[f.rewards[int(r)][0] for r in f.reward],
            law=[law[0] if top else law for law, top in zip(laws, root, strict=True)],
            names=[f.name(v) for v in range(len(f))],
            outside=f.outside,
            minimize=f.minimize,
        )

    def __len__(self) -> int:
        return len(self.parents)

    def __repr__(self) -> str:
        edges = sum(map(len, self.parents))
        return (
            f"Dag({counted(len(self), 'box')}, {counted(edges, 'edge')}, outside {self.outside:g})"
        )

    @property
    def sign(self) -> float:
        """The factor of rewards that makes higher ones better."""
        return -1.0 if self.minimize else 1.0

    def children(self) -> list[list[int]]:
        """The children of each box."""
        below: list[list[int]] = [[] for _ in self.parents]
        for i, above in enumerate(self.parents):
            for p in above:
                below[p].append(i)
        return below

    def ancestors(self) -> list[frozenset[int]]:
        """All boxes to be opened before each box."""
        found: list[frozenset[int]] = [frozenset()] * len(self)
        for i in self.order:
            found[i] = frozenset(self.parents[i]).union(*(found[p] for p in self.parents[i]))
        return found

    def mean_cost(self, i: int) -> FloatArray:
        """Expected cost of box i, with an axis for each parent."""
        return np.asarray((self.cost[i] * self.law[i]).sum(axis=-1))


def _numbers(x: ArrayLike) -> FloatArray:
    try:
        column = np.array(x, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidForest(
            f"costs, rewards and laws must be numbers, but got {repr(x)[:60]}."
        ) from error
    column.flags.writeable = False
    return column


def _forest_cost(f: Forest, v: int) -> FloatArray:
    cost = f.costs[int(f.cost[v])]
    if f.parent[v] < 0:
        return cost[0] if cost.shape[1] > 1 else cost[0, 0]  # type: ignore[no-any-return]
    wide = np.broadcast_to(cost, f.laws.shape[f.law[v]])
    return np.array(wide)


def _parents_first(parents: tuple[tuple[int, ...], ...], names: tuple[str, ...]) -> tuple[int, ...]:
    n = len(parents)
    if n == 0:
        raise InvalidForest("there must be at least one box, but there is none. Add a root.")
    bad = [i for i, above in enumerate(parents) if any(not 0 <= p < n for p in above)]
    if bad:
        raise InvalidForest(
            f"a parent must be the number of a box (0 to {n - 1}), but box {names[bad[0]]!r} has "
            f"{parents[bad[0]]} ({such(len(bad), 'box')})."
        )
    missing = [len(set(above)) for above in parents]
    below: list[list[int]] = [[] for _ in parents]
    for i, above in enumerate(parents):
        for p in set(above):
            below[p].append(i)
    order = [i for i in range(n) if not parents[i]]
    for i in order:  # grows while it is read
        for c in below[i]:
            missing[c] -= 1
            if missing[c] == 0:
                order.append(c)
    if len(order) < n:
        lost = sorted(set(range(n)) - set(order))
        raise InvalidForest(
            f"parents must not form a cycle, but {names[lost[0]]!r} is on one or below one "
            f"({such(len(lost), 'box')}). Take an edge out."
        )
    return tuple(order)


def _check_box(dag: Dag, i: int, shape: tuple[int, ...]) -> None:
    name, law, reward = dag.names[i], dag.law[i], dag.rewards[i]
    none = np.inf if dag.minimize else -np.inf
    if len(set(dag.parents[i])) < len(dag.parents[i]):
        raise InvalidForest(f"parents must differ, but box {name!r} has {dag.parents[i]}.")
    if reward.ndim != 1 or len(reward) == 0 or not (np.isfinite(reward) | (reward == none)).all():
        raise InvalidForest(
            f"the rewards of a box must be a vector of finite numbers ({none} for a signal), but "
            f"those of {name!r} are {reward.tolist()}."
        )
    if law.shape != shape:
        raise InvalidForest(
            f"the law of box {name!r} must have shape {shape} (states of its parents, own states), "
            f"but it has {law.shape}."
        )
    off = np.abs(law.sum(axis=-1) - 1)
    if not ((law >= 0).all() and (off <= SUM_TOLERANCE).all()):
        raise InvalidForest(
            f"probabilities must not be negative and must sum to 1, but the law of box {name!r} "
            f"has {law.min():.6g}, and a sum that is off by {off.max():.6g}. Rescale its rows."
        )


def _full_cost(dag: Dag, i: int, cost: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """The cost with an axis for each parent and one for the own states."""
    if cost.shape not in ((), shape[:-1], shape):
        raise InvalidForest(
            f"a cost is one number, or has an entry for the states of the parents {shape[:-1]}, or "
            f"also for the own states {shape}, but that of box {dag.names[i]!r} has shape "
            f"{cost.shape}."
        )
    if cost.shape == shape[:-1]:
        cost = cost[..., None]
    if not ((cost >= 0).all() and np.isfinite(cost).all()):
        raise InvalidForest(
            f"costs must be finite and not negative, but box {dag.names[i]!r} has {cost.min():.6g}."
        )
    full = np.array(np.broadcast_to(cost, shape))
    full.flags.writeable = False
    return full
