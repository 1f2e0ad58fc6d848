"""Worlds: the states of all boxes of a graph, all of them or drawn at random."""

from __future__ import annotations

import numpy as np

from ._types import FloatArray, IntArray
from .dag import Dag


def law(dag: Dag, i: int, states: IntArray) -> FloatArray:
    """(worlds, own states): the law of box i in each world."""
    return np.broadcast_to(
        dag.law[i][tuple(states[:, p] for p in dag.parents[i])],
        (len(states), len(dag.rewards[i])),
    )


def all_worlds(dag: Dag, most: int) -> tuple[IntArray, FloatArray] | None:
    """Every world that can be and its probability; None if there are more than ``most``."""
    states, weight = np.zeros((1, len(dag)), np.int64), np.ones(1)
    for i in dag.order:
        law = law(dag, i, states)
        row, y = np.nonzero(law)
        if len(row) > most:
            return None
        weight = weight[row] * law[row, y]
        states = states[row]
        states[:, i] = y
    return states, weight


def drawn_worlds(
    dag: Dag, worlds: int, rng: np.random.Generator | int
) -> tuple[IntArray, FloatArray]:
    generator = np.random.default_rng(rng)
    states = np.zeros((worlds, len(dag)), np.int64)
    for i in dag.order:
        chances = np.cumsum(law(dag, i, states), axis=1)
        u = generator.random(worlds) * chances[:, -1]
        states[:, i] = (chances <= u[:, None]).sum(axis=1)
    return states, np.full(worlds, 1 / worlds)


def costs(dag: Dag, states: IntArray, expected: bool) -> FloatArray:
    """(worlds, n): what each box costs, or is expected to cost once its parents are seen."""
    out = np.empty(states.shape)
    for i in range(len(dag)):
        above = tuple(states[:, p] for p in dag.parents[i])
        out[:, i] = dag.mean_cost(i)[above] if expected else dag.cost[i][(*above, states[:, i])]
    return out


def rewards(dag: Dag, states: IntArray) -> FloatArray:
    columns = [dag.sign * dag.rewards[i][states[:, i]] for i in range(len(dag))]
    return np.column_stack(columns)
