"""Graphs too large to be solved: an index policy on a spanning forest, and a bound on all others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass

import numpy as np

from ._kernels import worlds as kernel
from ._sample import two_sided
from ._types import FloatArray, IntArray
from .dag import Dag
from .model import Forest
from .policy import Policy
from .simulate import InvalidArgument
from .solution import Solution
from .solve import solve


@dataclass(frozen=True, slots=True, eq=False)
class Spanning:
    """A strategy for a graph of boxes, what it earns, and what no strategy can exceed.

    Attributes
    ----------
    dag : Dag
    parent : tuple of int
        For each box the parent that was kept, the most informative one; -1 for a root.
    solution : Solution
        That of the forest which these parents make.
    value, error : float
        What the strategy earns on the graph itself, and the standard error of that.
    bound, bound_error : float
        What one would earn who knew all states beforehand, and the standard error of that. No
        strategy earns more (less, when minimising).
    exact : bool
        Whether all worlds were looked at rather than drawn: then there are no errors.
    """

    dag: Dag
    parent: tuple[int, ...]
    solution: Solution
    value: float
    error: float
    bound: float
    bound_error: float
    exact: bool

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The optimum lies in here; each end holds with at least this confidence."""
        z = two_sided(level) * self.dag.sign
        ends = (self.value - z * self.error, self.bound + z * self.bound_error)
        return min(ends), max(ends)

    def __repr__(self) -> str:
        return (
            f"Spanning(value={self.value:.6g} ± {self.error:.2g}, "
            f"bound={self.bound:.6g} ± {self.bound_error:.2g})"
        )


def spanning_policy(
    dag: Dag, *, worlds: int = 100_000, rng: np.random.Generator | int = 0
) -> Spanning:
    """A good strategy on a graph where boxes depend on several others, with bounds.

    Of the parents of each box the most informative one is kept (that shares most information with
    it); the states of the others are averaged out, and what it costs to open them first is added
    to the cost of the box. The index policy of this forest is then followed on the graph itself:
    to open the box of highest index, first open what must be open before it. Once all parents of a
    box are open, its index is that of its law given all of them.

    Parameters
    ----------
    dag : Dag
    worlds : int
        Draw so many worlds (the states of all boxes); if there are no more, look at them all.
    rng : Generator or int

    Examples
    --------
    >>> agree = [[[0, 1], [1, 0]], [[1, 0], [0, 1]]]
    >>> coins = Dag(parents=[[], [], [0, 1]], cost=[1, 1, 1], law=[[0.5, 0.5], [0.5, 0.5], agree],
    ...             rewards=[[0, 0], [0, 0], [0, 16]])
    >>> spanning_policy(coins)
    Spanning(value=5.5 ± 0, bound=6.5 ± 0)
    """
    if worlds < 2:
        raise InvalidArgument(f"`worlds` must be at least 2, but it is {worlds}.")
    every = worlds.all_worlds(dag, worlds)
    exact = every is not None
    states, weight = every if every is not None else worlds.drawn_worlds(dag, worlds, rng)
    parent, forest = _span(dag, states, weight)
    solution = solve(forest)
    payoff = _follow(dag, solution, parent, states)
    value, error = _mean(payoff, weight, exact)
    bound, bound_error = _mean(_hindsight(dag, states), weight, exact)
    sign = dag.sign
    return Spanning(
        dag, tuple(parent), solution, sign * value, error, sign * bound, bound_error, exact
    )


def _mean(x: FloatArray, weight: FloatArray, exact: bool) -> tuple[float, float]:
    mean = float(weight @ x)
    return mean, 0.0 if exact else float(np.std(x, ddof=1)) / math.sqrt(len(x))


# -- the forest, the strategy and the bound ------------------------------------------------------


def _span(dag: Dag, states: IntArray, weight: FloatArray) -> tuple[list[int], Forest]:
    """The most informative parent of each box, and the forest that they make."""
    ancestors, costs = dag.ancestors(), worlds.costs(dag, states, expected=True)
    parent, law, cost = [-1] * len(dag), list(dag.law), [dag.mean_cost(i) for i in range(len(dag))]
    for i, above in enumerate(dag.parents):
        if not above:
            continue
        likely = worlds.law(dag, i, states)
        given = {p: _joint(states[:, p], len(dag.rewards[p]), likely, weight) for p in above}
        p = parent[i] = max(above, key=lambda p: _information(given[p]))
        first = ancestors[i] - ancestors[p] - {p}
        price = costs[:, [i, *sorted(first)]].sum(axis=1, keepdims=True)
        law[i] = _rows(given[p])
        both = _joint(states[:, p], len(given[p]), np.hstack([np.ones_like(price), price]), weight)
        cost[i] = _rows(both, 1)[:, 1]
    forest = Forest.from_arrays(
        parent=parent, cost=cost, rewards=list(dag.rewards), law=law, names=dag.names,
        outside=dag.outside, minimise=dag.minimise,
    )  # fmt: skip
    return parent, forest


def _joint(state: IntArray, k: int, rows: FloatArray, weight: FloatArray) -> FloatArray:
    """(k, ...): the weighted sum of the rows of all worlds with each state of a parent."""
    return np.array([(weight * (state == s)) @ rows for s in range(k)])


def _rows(joint: FloatArray, columns: int | None = None) -> FloatArray:
    """Each row divided by the sum of its first columns; where that is 0, the average row."""
    total = joint[:, :columns].sum(axis=1, keepdims=True)
    return np.where(total > 0, joint, joint.sum(axis=0)) / np.where(total > 0, total, total.sum())


def _information(joint: FloatArray) -> float:
    """Mutual information of the row and the column of a joint distribution."""
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    some = joint > 0
    return float((joint[some] * np.log(joint[some] / apart[some])).sum())


def _known(dag: Dag, solution: Solution) -> list[FloatArray]:
    """Indices of each box by the states of all its parents, the forest being right below it.

    A box with several parents becomes the child of one box that shows all their states at once.
    """
    f = solution.forest
    known = [solution.indices(i) for i in range(len(dag))]
    parent: list[int] = []
    cost, rewards, law = [], [], []
    place: dict[int, int] = {}
    for i in range(len(dag)):
        if len(dag.parents[i]) < 2:
            continue
        rows = dag.law[i].reshape(-1, len(dag.rewards[i]))
        parent += [-1, len(parent)]
        place[i] = len(parent) - 1
        law += [np.full(len(rows), 1 / len(rows)), rows]
        cost += [0.0, dag.mean_cost(i).reshape(-1)]
        rewards += [np.zeros(len(rows)), dag.rewards[i]]
        below = {i: place[i]}
        for v in dag.order:
            up = int(f.parent[v])
            if up in below:
                below[v] = len(parent)
                parent.append(below[up])
                law.append(f.laws[int(f.law[v])])
                cost.append(f.costs[int(f.cost[v])])
                rewards.append(dag.rewards[v])
    if parent:
        several = solve(
            Forest.from_arrays(
                parent=parent, cost=cost, rewards=rewards, law=law, outside=dag.outside,
                minimise=dag.minimise,
            )
        )  # fmt: skip
        for i, v in place.items():
            known[i] = several.indices(v)
    return known


def _follow(dag: Dag, solution: Solution, parent: list[int], states: IntArray) -> FloatArray:
    """Payoff of the policy in each world."""
    policy, known = Policy.optimal(solution), _known(dag, solution)
    place = {v: j for j, v in enumerate(dag.order)}
    before = [sorted(found, key=place.__getitem__) for found in dag.ancestors()]
    steps = [_steps(dag.law[i].shape[:-1]) for i in range(len(dag))]
    graph = kernel.Graph(
        up=np.array(parent),
        index_at=policy.index_at,
        index=policy.index,
        above_at=_starts(dag.parents),
        above=_flat(dag.parents),
        step=_flat(steps),
        known_at=_starts(known),
        known=dag.sign * np.concatenate(known),
        before_at=_starts(before),
        before=_flat(before),
    )
    best, spend, _ = kernel.follow(
        graph, states, worlds.rewards(dag, states), worlds.costs(dag, states, expected=False), policy.outside
    )
    return np.asarray(best - spend)


def _steps(shape: tuple[int, ...]) -> list[int]:
    """How far apart the entries of an array of this shape are along each axis, in row order."""
    return [math.prod(shape[j + 1 :]) for j in range(len(shape))]


def _starts(lists: Sequence[Sized]) -> IntArray:
    return np.cumsum([0, *map(len, lists)])


def _flat(lists: Iterable[Iterable[int]]) -> IntArray:
    return np.array([x for found in lists for x in found], np.int64)


def _hindsight(dag: Dag, states: IntArray) -> FloatArray:
    """Payoff of one who knows the world: the best box with all that must be opened before it.

    With expected costs instead of those in the world: what any strategy pays is the same on
    average, and knowing them beforehand would only make the bound worse.
    """
    costs = worlds.costs(dag, states, expected=True)
    needed = np.eye(len(dag))
    for i, found in enumerate(dag.ancestors()):
        needed[sorted(found), i] = 1.0
    best = (worlds.rewards(dag, states) - costs @ needed).max(axis=1)
    return np.maximum(best, dag.sign * dag.outside)
