"""Worlds: the states of all boxes of a graph, either all possible ones or a random sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._common.estimates import error_of_mean
from .dags import Dag


@dataclass(frozen=True, slots=True, eq=False)
class Worlds:
    """Many worlds.

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
        """All worlds if they are no more than ``most``, else so many drawn at random."""
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
