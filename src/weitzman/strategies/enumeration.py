"""The fully adaptive optimum by looking at everything that can happen.

For forests :func:`~weitzman.solve` gives the same value at once. On a graph where boxes depend on
several others the problem is NP-hard, and enumeration solves small graphs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from .._common.text import as_html
from ..errors import TooLarge
from ..forest.model import Forest
from .dags import Dag

_SETS = 20_000  # of open boxes that are counted

Seen = tuple[tuple[int, int], ...]  # open boxes with closed children, and what they showed
Situation = tuple[int, Seen, float]  # closed boxes, what was seen, best reward so far


@dataclass(frozen=True, slots=True, eq=False)
class Exhaustive:
    """The optimum, and how it begins.

    Attributes
    ----------
    value : float
        Expected payoff of the best of all strategies.
    first_box : str or None
        The name of the box to open first; None if it is best to open nothing.
    situations : int
        Situations that were looked at.
    """

    value: float
    first_box: str | None
    situations: int

    _repr_html_ = as_html


def exhaustive(problem: Dag | Forest, *, limit: int = 50_000) -> Exhaustive:
    """The best adaptive strategy on any small graph of boxes.

    A situation is which boxes are closed, what the open ones with closed children showed, and the
    best reward so far; boxes that can no longer lead to a better reward are left out. The optimum
    is a maximum over all actions in every situation.

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
    dag = Dag.of(problem) if isinstance(problem, Forest) else problem
    search = _Enumeration(dag, limit)
    try:
        value, first = search.start()
    except (_Enough, RecursionError) as error:
        states = count_situations(dag)
        raise TooLarge(
            f"after {search.states} situations there is no end yet, and there may be "
            f"{_about(states)} of them; the limit is {limit}. Raise `limit` if you can wait, or "
            f"use spanning_policy for a strategy and bounds.",
            states,
        ) from error
    name = None if first is None else dag.names[first]
    return Exhaustive(dag.sign * value, name, search.states)


def count_situations(dag: Dag) -> float:
    """An upper bound on the number of situations, by two ways of counting."""
    return min(_by_assignments(dag), _by_sets(dag))


def _by_assignments(dag: Dag) -> float:
    """Every box closed or in one of its states, closed below a closed parent (one of them)."""
    ways = [1.0] * len(dag)
    for i in reversed(dag.order):
        ways[i] = 1.0 + min(1e300, len(dag.rewards[i]) * ways[i])
        if dag.parents[i]:
            p = max(dag.parents[i], key=dag.order.index)
            ways[p] = min(1e300, ways[p] * ways[i])
    return min(1e300, math.prod(min(1e300, ways[i]) for i in dag.order if not dag.parents[i]))


def _by_sets(dag: Dag) -> float:
    """Sets of open boxes, times the states that matter, times the rewards in hand."""
    children = dag.children()
    sets = [frozenset[int]()]
    for i in dag.order:
        sets += [s | {i} for s in sets if s.issuperset(dag.parents[i])]
        if len(sets) > _SETS:
            return math.inf
    levels = len({r for row in dag.rewards for r in row.tolist()}) + 1
    matter = ([i for i in s if not s.issuperset(children[i])] for s in sets)
    return float(levels * sum(math.prod(len(dag.rewards[i]) for i in m) for m in matter))


def _about(x: float) -> str:
    return f"up to {x:.0f}" if x < 1e6 else f"up to {x:.1e}" if x < 1e300 else "endlessly many"


class _Enough(Exception):
    """The limit is reached."""


class _Enumeration:
    """Dynamic program over situations; signs are such that higher is better.

    Sets of boxes are the bits of a number.
    """

    def __init__(self, dag: Dag, limit: int) -> None:
        self.dag, self.limit = dag, limit
        self.parents = [_bits(above) for above in dag.parents]
        self.children = [_bits(below) for below in dag.children()]
        self.reward = [[dag.sign * r for r in row.tolist()] for row in dag.rewards]
        self.cost = [dag.mean_cost(i) for i in range(len(dag))]
        self.hope = self._hopes()
        self.alive: dict[float, int] = {}
        self.memo: dict[Situation, float] = {}
        self.states = 0  # situations looked at

    def _hopes(self) -> list[float]:
        """The best reward that each box, or one below it, can ever hold."""
        hope = [0.0] * len(self.dag)
        below = self.dag.children()
        for i in reversed(self.dag.order):
            possible = self.dag.law[i].reshape(-1, len(self.reward[i])).max(axis=0) > 0
            own = max(r for r, p in zip(self.reward[i], possible, strict=True) if p)
            hope[i] = max([own, *(hope[c] for c in below[i])])
        return hope

    def start(self) -> tuple[float, int | None]:
        """Optimal value, and the first box to open."""
        everything = _bits(range(len(self.dag)))
        best = self.dag.sign * self.dag.outside
        value = self.value_at(everything, (), best)
        closed = everything & self._worth(best)
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
