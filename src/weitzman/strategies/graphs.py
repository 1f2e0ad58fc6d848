"""Boxes that depend on several others: the general problem, solved by enumeration if it is small.

For forests :func:`~weitzman.solve` gives the optimum at once. On a graph where boxes depend on
several others the problem is NP-hard.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import FloatArray, frozen
from .._common.numbers import counted, such
from .._common.text import ResultTable
from ..errors import InvalidArgument, InvalidForest, TooLarge
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
        ``parents``, and perhaps a last axis for the own states, if the cost is random.
    rewards : one shared vector, or n vectors
        The reward of each state; minus infinity (plus, when minimizing) for a signal.
    law : n arrays
        ``law[i][s1, s2, ..., y]`` is the probability of state y of box i once its parents show
        s1, s2, ...; a vector for a root.
    names, outside, minimize
        As for a forest.

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
        "small problems."
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
        self, *, parents: Sequence[Sequence[int]], cost: Sequence[ArrayLike],
        rewards: Sequence[ArrayLike] | ArrayLike, law: Sequence[ArrayLike],
        names: Sequence[object] | None = None, outside: float | None = None, minimize: bool = False,
    ) -> None:  # fmt: skip
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
            "parents": above, "rewards": tuple(map(_numbers, each)),
            "law": tuple(map(_numbers, law)), "names": titles,
            "outside": float(default_outside(outside, minimize)), "minimize": minimize,
            "order": _parents_first(above, titles),
        }  # fmt: skip
        for name, column in columns.items():
            object.__setattr__(self, name, column)
        full = tuple(_checked_cost(self, i, _numbers(cost[i])) for i in range(n))
        object.__setattr__(self, "cost", full)

    @classmethod
    def of(cls, forest: Forest, limit: int = 1000) -> Dag:
        """A forest as a graph, all copies written out."""
        forest.must_be_plain("a graph of boxes")
        f = expand(forest, limit)
        roots = f.parent < 0
        costs = [
            np.broadcast_to(f.costs[int(f.cost[v])], f.laws.shape[f.law[v]]) for v in range(len(f))
        ]
        laws = [f.laws[int(i)] for i in f.law]
        return cls(
            parents=[[] if p < 0 else [p] for p in f.parent.tolist()],
            cost=[x[0] if root else x for x, root in zip(costs, roots, strict=True)],
            rewards=[f.rewards[int(r)][0] for r in f.reward],
            law=[x[0] if root else x for x, root in zip(laws, roots, strict=True)],
            names=[f.name(v) for v in range(len(f))], outside=f.outside, minimize=f.minimize,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.parents)

    def __repr__(self) -> str:
        size = f"{counted(len(self), 'box')}, {counted(sum(map(len, self.parents)), 'edge')}"
        return f"Dag({size}, outside {self.outside:g})"

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

    def mean_cost(self, i: int) -> FloatArray:
        """Expected cost of box i, with an axis for each parent."""
        return np.asarray((self.cost[i] * self.law[i]).sum(axis=-1))


def _numbers(x: ArrayLike) -> FloatArray:
    try:
        return frozen(np.array(x, np.float64))
    except (TypeError, ValueError) as error:
        raise InvalidForest(
            f"costs, rewards and laws must be numbers, but got {repr(x)[:60]}."
        ) from error


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
    try:
        return tuple(TopologicalSorter(dict(enumerate(parents))).static_order())
    except CycleError as error:
        raise InvalidForest(
            f"parents must not form a cycle, but {names[min(error.args[1])]!r} is on one. Take an "
            f"edge out."
        ) from None


def _checked_cost(dag: Dag, i: int, cost: FloatArray) -> FloatArray:
    """Check a box; its cost with an axis for each parent and one for the own states."""
    name, law, reward = dag.names[i], dag.law[i], dag.rewards[i]
    none = np.inf if dag.minimize else -np.inf
    shape = tuple(np.size(dag.rewards[p]) for p in (*dag.parents[i], i))
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
    if cost.shape not in ((), shape[:-1], shape):
        raise InvalidForest(
            f"a cost is one number, or has an entry for the states of the parents {shape[:-1]}, or "
            f"also for the own states {shape}, but that of box {name!r} has shape {cost.shape}."
        )
    if not ((cost >= 0).all() and np.isfinite(cost).all()):
        raise InvalidForest(
            f"costs must be finite and not negative, but box {name!r} has {cost.min():.6g}."
        )
    return frozen(np.broadcast_to(cost[..., None] if cost.shape == shape[:-1] else cost, shape))


Seen = tuple[tuple[int, int], ...]  # open boxes with closed children, and what they showed
Situation = tuple[int, Seen, float]  # closed boxes, what was seen, best reward so far


@dataclass(frozen=True, slots=True, eq=False)
class Exhaustive(ResultTable):
    """The optimum, and how it begins.

    Attributes
    ----------
    value : float
        Expected payoff of the best of all strategies.
    first_box : str or None
        The box to open first; None if it is best to open nothing.
    situations : int
        Situations that were looked at.
    """

    value: float
    first_box: str | None
    situations: int


def exhaustive(problem: Dag | Forest, *, limit: int = 50_000) -> Exhaustive:
    """The best adaptive strategy on any small graph of boxes.

    A situation is which boxes are closed, what the open ones with closed children showed, and the
    best reward so far. The optimum is a maximum over all actions in every situation.

    Parameters
    ----------
    problem : Dag or Forest
        Copies of a forest are written out.
    limit : int
        Give up after this many situations; the default takes some seconds.

    Raises
    ------
    TooLarge
        With an upper bound on the number of situations.

    Examples
    --------
    >>> agree = [[[0, 1], [1, 0]], [[1, 0], [0, 1]]]
    >>> coins = Dag(parents=[[], [], [0, 1]], cost=[1, 1, 1], law=[[0.5, 0.5], [0.5, 0.5], agree],
    ...             rewards=[[0, 0], [0, 0], [0, 16]])
    >>> exhaustive(coins).value
    5.5
    """
    if not isinstance(problem, Dag | Forest):
        raise InvalidArgument(
            f"exhaustive needs a Dag or a Forest, but got a {type(problem).__name__}."
        )
    dag = Dag.of(problem) if isinstance(problem, Forest) else problem
    search = _Enumeration(dag, limit)
    try:
        value, first = search.start()
    except (_Enough, RecursionError) as error:
        states = count_situations(dag)
        raise TooLarge(
            f"after {search.states} situations there is no end yet, and there may be up to "
            f"{states:.1e} of them; the limit is {limit}. Raise `limit` if you can wait.",
            states,
        ) from error
    name = None if first is None else dag.names[first]
    return Exhaustive(dag.sign * value, name, search.states)


def count_situations(dag: Dag) -> float:
    """An upper bound on the number of situations.

    Every box is closed or in one of its states, and closed below a closed parent (one of them).
    """
    ways = [1.0] * len(dag)
    for i in reversed(dag.order):
        ways[i] = 1.0 + min(1e300, len(dag.rewards[i]) * ways[i])
        if dag.parents[i]:
            p = max(dag.parents[i], key=dag.order.index)
            ways[p] = min(1e300, ways[p] * ways[i])
    return min(1e300, math.prod(min(1e300, ways[i]) for i in dag.order if not dag.parents[i]))


class _Enough(Exception):
    """The limit is reached."""


class _Enumeration:
    """Dynamic program over situations; signs are such that higher is better.

    Sets of boxes are the bits of a number.
    """

    def __init__(self, dag: Dag, limit: int) -> None:
        self.dag, self.limit = dag, limit
        below = dag.children()
        self.parents, self.children = list(map(_bits, dag.parents)), list(map(_bits, below))
        self.reward = [(dag.sign * row).tolist() for row in dag.rewards]
        self.cost = [dag.mean_cost(i) for i in range(len(dag))]
        self.hope = [0.0] * len(dag)  # the best reward that each box, or one below, can ever hold
        for i in reversed(dag.order):
            possible = dag.law[i].reshape(-1, len(self.reward[i])).max(axis=0) > 0
            own = dag.sign * dag.rewards[i][possible]
            self.hope[i] = max([float(own.max()), *(self.hope[c] for c in below[i])])
        self.alive: dict[float, int] = {}
        self.memo: dict[Situation, float] = {}
        self.states = 0  # situations looked at

    def start(self) -> tuple[float, int | None]:
        """Optimal value, and the first box to open."""
        every, best = _bits(range(len(self.dag))), self.dag.sign * self.dag.outside
        value, closed = self.value_at(every, (), best), every & self._worth(best)
        actions = [(self._opening(closed, (), best, i), -i) for i in self._ready(closed)]
        top, number = max(actions, default=(-math.inf, 0))
        return value, -number if top > best else None

    def value_at(self, closed: int, seen: Seen, best: float) -> float:
        """The best of stopping now and of opening any box that can be opened."""
        closed &= self._worth(best)
        seen = tuple(pair for pair in seen if self.children[pair[0]] & closed)
        key = (closed, seen, best)
        if key not in self.memo:
            if self.states >= self.limit:
                raise _Enough
            self.states += 1
            actions = (self._opening(closed, seen, best, i) for i in self._ready(closed))
            self.memo[key] = max(best, max(actions, default=best))
        return self.memo[key]

    def _worth(self, best: float) -> int:
        """Boxes that can lead to a better reward; with one of them all its ancestors."""
        if best not in self.alive:
            self.alive[best] = _bits(i for i, hope in enumerate(self.hope) if hope > best)
        return self.alive[best]

    def _ready(self, closed: int) -> list[int]:
        """Closed boxes whose parents are all open."""
        n = closed.bit_length()
        return [i for i in range(n) if closed >> i & 1 and not self.parents[i] & closed]

    def _opening(self, closed: int, seen: Seen, best: float, i: int) -> float:
        shown = dict(seen)
        above = tuple(shown[p] for p in self.dag.parents[i])
        total = -float(self.cost[i][above])
        rest = closed & ~(1 << i)
        for y, p in enumerate(self.dag.law[i][above].tolist()):
            if p > 0:
                now = max(best, self.reward[i][y])
                total += p * self.value_at(rest, tuple(sorted((*seen, (i, y)))), now)
        return total


def _bits(boxes: Iterable[int]) -> int:
    return sum(1 << i for i in boxes)
