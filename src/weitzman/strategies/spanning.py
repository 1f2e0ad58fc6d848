"""Graphs too large to be solved: an index policy on a spanning forest, and a bound on the rest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass

import numpy as np

from .._common.arrays import FloatArray, IntArray, error_of_mean
from .._common.text import as_html
from .._kernels import worlds as kernel
from ..engine.solution import Solution
from ..engine.solver import solve
from ..errors import InvalidArgument
from ..forest.model import Forest
from ..policy.simulation import two_sided
from .dags import Dag


@dataclass(frozen=True, slots=True, eq=False)
class Worlds:
    """Worlds: the states of all boxes of a graph, either all possible ones or a random sample.

    Attributes
    ----------
    dag : Dag
    states : (worlds, n) array of int
    weight : (worlds,) array of float
        Their probabilities.
    complete : bool
        Whether these are all possible worlds.
    """

    dag: Dag
    states: IntArray
    weight: FloatArray
    complete: bool

    @classmethod
    def of(cls, dag: Dag, most: int, rng: np.random.Generator | int) -> Worlds:
        """All worlds if there are at most ``most``, otherwise ``most`` worlds drawn at random."""
        return cls._all(dag, most) or cls._drawn(dag, most, np.random.default_rng(rng))

    @classmethod
    def _all(cls, dag: Dag, most: int) -> Worlds | None:
        found = cls(dag, np.zeros((1, len(dag)), np.int64), np.ones(1), True)
        for i in dag.order:
            law = found.law(i)
            row, y = np.nonzero(law)
            if len(row) > most:
                return None
            states = found.states[row]
            states[:, i] = y
            found = cls(dag, states, found.weight[row] * law[row, y], True)
        return found

    @classmethod
    def _drawn(cls, dag: Dag, number: int, rng: np.random.Generator) -> Worlds:
        states = np.zeros((number, len(dag)), np.int64)
        found = cls(dag, states, np.full(number, 1 / number), False)
        for i in dag.order:
            chances = np.cumsum(found.law(i), axis=1)
            u = rng.random(number) * chances[:, -1]
            states[:, i] = (chances <= u[:, None]).sum(axis=1)
        return found

    def _above(self, i: int) -> tuple[IntArray, ...]:
        return tuple(self.states[:, p] for p in self.dag.parents[i])

    def law(self, i: int) -> FloatArray:
        """(worlds, own states): the law of box i given its parents."""
        shape = (len(self.states), len(self.dag.rewards[i]))
        return np.broadcast_to(self.dag.law[i][self._above(i)], shape)

    def rewards(self) -> FloatArray:
        """(worlds, n): the reward of each box, signed so that higher is better."""
        each = [row[self.states[:, i]] for i, row in enumerate(self.dag.rewards)]
        return np.asarray(self.dag.sign * np.column_stack(each))

    def costs(self) -> FloatArray:
        """(worlds, n): what each box costs."""
        n = len(self.dag)
        each = [self.dag.cost[i][(*self._above(i), self.states[:, i])] for i in range(n)]
        return np.column_stack(each)

    def expected_costs(self) -> FloatArray:
        """(worlds, n): the expected cost of each box given its parents."""
        out = np.empty(self.states.shape)
        for i in range(len(self.dag)):
            out[:, i] = self.dag.mean_cost(i)[self._above(i)]
        return out

    def given(self, p: int, rows: FloatArray) -> FloatArray:
        """(states of box p, ...): the sum of a row of each world, by the state of box p."""
        k, state = len(self.dag.rewards[p]), self.states[:, p]
        return np.array([(self.weight * (state == s)) @ rows for s in range(k)])

    def mean(self, x: FloatArray) -> tuple[float, float]:
        """Expectation of a number that each world has, and its standard error."""
        error = 0.0 if self.complete else error_of_mean(x)
        return float(self.weight @ x), error


@dataclass(frozen=True, slots=True, eq=False)
class Spanning:
    """A strategy for a graph of boxes, what it earns, and what no strategy can exceed.

    Attributes
    ----------
    dag : Dag
    parent : tuple of int
        For each box the parent that was kept, the most informative one; -1 for a root.
    solution : Solution
        The solution of the forest that these parents make.
    value, error : float
        What the strategy earns on the graph itself, and the standard error of that.
    bound, bound_error : float
        What a searcher who knows all states beforehand earns, and its standard error. No strategy
        earns more (less, when minimizing).
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
        value, bound = f"value={self.value:.6g}", f"bound={self.bound:.6g}"
        if self.exact:
            return f"Spanning({value}, {bound})"
        errors = f"error={self.error:.2g}", f"bound_error={self.bound_error:.2g}"
        return f"Spanning({value}, {errors[0]}, {bound}, {errors[1]})"

    _repr_html_ = as_html


def spanning_policy(
    dag: Dag, *, worlds: int = 100_000, rng: np.random.Generator | int = 0
) -> Spanning:
    """A good strategy on a graph where boxes depend on several others, with bounds.

    Each box keeps its most informative parent (the one with the most mutual information). The
    states of the other parents are averaged out, and the cost of opening them first is added to the
    cost of the box. The index policy of this forest is then followed on the graph itself: to open
    the box of highest index, first open what must be open before it. Once all parents of a box are
    open, its index follows from its law given all of them.

    Parameters
    ----------
    dag : Dag
    worlds : int
        Draw this many worlds (the states of all boxes) to fit the strategy, and as many others to
        judge it; if there are fewer, use all of them.
    rng : Generator or int

    Examples
    --------
    >>> agree = [[[0, 1], [1, 0]], [[1, 0], [0, 1]]]
    >>> coins = Dag(parents=[[], [], [0, 1]], cost=[1, 1, 1], law=[[0.5, 0.5], [0.5, 0.5], agree],
    ...             rewards=[[0, 0], [0, 0], [0, 16]])
    >>> spanning_policy(coins)
    Spanning(value=5.5, bound=6.5)
    """
    if worlds < 2:
        raise InvalidArgument(f"`worlds` must be at least 2, but it is {worlds}.")
    draw = np.random.default_rng(rng)
    found = Worlds.of(dag, worlds, draw)
    forest = _span(found)
    solution = solve(forest)
    if not found.complete:  # worlds that the strategy was not fitted to
        found = Worlds.of(dag, worlds, draw)
    value, error = found.mean(_follow(found, solution))
    bound, bound_error = found.mean(_hindsight(found))
    return Spanning(
        dag=dag,
        parent=tuple(forest.parent.tolist()),
        solution=solution,
        value=dag.sign * value,
        error=error,
        bound=dag.sign * bound,
        bound_error=bound_error,
        exact=found.complete,
    )


# -- the forest ----------------------------------------------------------------------------------


def _span(worlds: Worlds) -> Forest:
    """The forest of the most informative parents."""
    dag, ancestors, costs = worlds.dag, worlds.dag.ancestors(), worlds.expected_costs()
    parent = [-1] * len(dag)
    law, cost = list(dag.law), [dag.mean_cost(i) for i in range(len(dag))]
    for i, above in enumerate(dag.parents):
        if not above:
            continue
        joint = {p: worlds.given(p, worlds.law(i)) for p in above}
        p = parent[i] = max(above, key=lambda q: _information(joint[q]))
        first = ancestors[i] - ancestors[p] - {p}
        price = costs[:, [i, *sorted(first)]].sum(axis=1)
        law[i] = _rows(joint[p], joint[p].sum(axis=1))
        chance = worlds.given(p, np.ones((len(price), 1)))
        cost[i] = _rows(worlds.given(p, price[:, None]), chance[:, 0])[:, 0]
    return Forest.from_arrays(
        parent=parent, cost=cost, rewards=list(dag.rewards), law=law, names=dag.names,
        outside=dag.outside, minimize=dag.minimize,
    )  # fmt: skip


def _rows(joint: FloatArray, chance: FloatArray) -> FloatArray:
    """Rows divided by the chances of their states; for a state that never occurs, the mean row."""
    some = (chance > 0)[:, None]
    mean = joint.sum(axis=0) / chance.sum()
    return np.asarray(np.where(some, joint / np.where(some, chance[:, None], 1.0), mean))


def _information(joint: FloatArray) -> float:
    """Mutual information of the row and the column of a joint distribution."""
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    some = joint > 0
    return float((joint[some] * np.log(joint[some] / apart[some])).sum())


def _known(dag: Dag, solution: Solution) -> list[FloatArray]:
    """Indices of each box by the states of all its parents, with the kept forest below it.

    A box with several parents becomes the child of one box that shows all their states at once.
    """
    known = [solution.indices(i) for i in range(len(dag))]
    several = _Several(dag, solution.forest)
    if several.place:
        solved = solve(several.forest())
        for i, v in several.place.items():
            known[i] = solved.indices(v)
    return known


class _Several:
    """For each box with several parents a tree: all parents in one, the box, and what is below."""

    def __init__(self, dag: Dag, forest: Forest) -> None:
        self.dag = dag
        self.parent: list[int] = []
        self.cost: list[FloatArray] = []
        self.rewards: list[FloatArray] = []
        self.law: list[FloatArray] = []
        self.place: dict[int, int] = {}
        for i in range(len(dag)):
            if len(dag.parents[i]) > 1:
                self._tree(forest, i)

    def _add(self, parent: int, cost: FloatArray, rewards: FloatArray, law: FloatArray) -> int:
        self.parent.append(parent)
        self.cost.append(cost)
        self.rewards.append(rewards)
        self.law.append(law)
        return len(self.parent) - 1

    def _tree(self, f: Forest, i: int) -> None:
        rows = self.dag.law[i].reshape(-1, len(self.dag.rewards[i]))
        k = len(rows)
        top = self._add(-1, np.zeros(()), np.zeros(k), np.full(k, 1 / k))
        cost = self.dag.mean_cost(i).reshape(-1)
        self.place[i] = self._add(top, cost, self.dag.rewards[i], rows)
        below = {i: self.place[i]}
        for v in self.dag.order:
            up = int(f.parent[v])
            if up in below:
                law, cost = f.laws[int(f.law[v])], f.costs[int(f.cost[v])]
                below[v] = self._add(below[up], cost, self.dag.rewards[v], law)

    def forest(self) -> Forest:
        return Forest.from_arrays(
            parent=self.parent, cost=self.cost, rewards=self.rewards, law=self.law,
            outside=self.dag.outside, minimize=self.dag.minimize,
        )  # fmt: skip


# -- the strategy and the bound ------------------------------------------------------------------


def _follow(worlds: Worlds, solution: Solution) -> FloatArray:
    """Payoff of the policy in each world."""
    dag, policy = worlds.dag, solution.policy()
    known = _known(dag, solution)
    place = {v: j for j, v in enumerate(dag.order)}
    before = [sorted(found, key=place.__getitem__) for found in dag.ancestors()]
    graph = kernel.Graph(
        up=solution.forest.parent,
        index_at=policy.index_at,
        index=policy.index,
        above_at=_starts(dag.parents),
        above=_flat(dag.parents),
        step=_flat([_steps(law.shape[:-1]) for law in dag.law]),
        known_at=_starts(known),
        known=dag.sign * np.concatenate(known),
        before_at=_starts(before),
        before=_flat(before),
    )
    best, spend, _ = kernel.follow(
        graph, worlds.states, worlds.rewards(), worlds.costs(), policy.outside
    )
    return np.asarray(best - spend)


def _steps(shape: tuple[int, ...]) -> list[int]:
    """How far apart the entries of an array of this shape are along each axis, in row order."""
    return [math.prod(shape[j + 1 :]) for j in range(len(shape))]


def _starts(lists: Sequence[Sized]) -> IntArray:
    return np.cumsum([0, *map(len, lists)])


def _flat(lists: Iterable[Iterable[int]]) -> IntArray:
    return np.array([x for found in lists for x in found], np.int64)


def _hindsight(worlds: Worlds) -> FloatArray:
    """Payoff of a searcher who knows the world: the best box, with all boxes before it.

    Costs are the expected ones, not those in the world: any strategy pays the same on average, and
    knowing the costs beforehand would only weaken the bound.
    """
    dag = worlds.dag
    needed = np.eye(len(dag))
    for i, found in enumerate(dag.ancestors()):
        needed[sorted(found), i] = 1.0
    best = (worlds.rewards() - worlds.expected_costs() @ needed).max(axis=1)
    return np.asarray(np.maximum(best, dag.sign * dag.outside))
