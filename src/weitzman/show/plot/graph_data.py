"""Where the boxes of a graph stand in a picture, and the numbers of endless and lazy problems."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._common.arrays import FloatArray, IntArray
from ...bounds.lazy_forest import LazySolution
from ...chains.endless import EndlessLine
from ...errors import InvalidArgument
from ...strategies.dags import Dag

_SWEEPS = 6  # rounds of ordering rows by their neighbors; more rounds change little


@dataclass(frozen=True, slots=True, eq=False)
class GraphPlaces:
    """The boxes of a graph in columns and rows.

    Attributes
    ----------
    depth : (n,) array of int
        The column of each box: one more than the highest column of its parents.
    row : (n,) array of float
        The row of each box. Boxes of one column have different rows.
    cost : (n, 2) array of float
        Least and largest mean cost over the states of the parents.
    edges : list of (int, int)
        From a parent to a child.
    rows : int
        Boxes in the fullest column.
    """

    depth: IntArray
    row: FloatArray
    cost: FloatArray
    edges: list[tuple[int, int]]
    rows: int


def graph_places(dag: Dag) -> GraphPlaces:
    """Put the boxes of a graph in columns, and near their neighbors.

    Examples
    --------
    >>> agree = [[[0, 1], [1, 0]], [[1, 0], [0, 1]]]
    >>> coins = Dag(parents=[[], [], [0, 1]], cost=[1, 1, 1], law=[[0.5, 0.5], [0.5, 0.5], agree],
    ...             rewards=[[0, 0], [0, 0], [0, 16]])
    >>> places = graph_places(coins)
    >>> places.depth.tolist(), places.row.tolist()
    ([0, 0, 1], [0.0, 1.0, 0.5])
    """
    if not isinstance(dag, Dag) or not len(dag):
        got = "an empty one" if isinstance(dag, Dag) else f"a {type(dag).__name__}"
        raise InvalidArgument(f"the picture of a graph needs a Dag with boxes, but got {got}.")
    depth = np.zeros(len(dag), np.int64)
    for i in dag.order:
        depth[i] = max((depth[p] + 1 for p in dag.parents[i]), default=0)
    edges = [(p, i) for i in range(len(dag)) for p in dag.parents[i]]
    means = [dag.mean_cost(i) for i in range(len(dag))]
    cost = np.array([(float(np.min(m)), float(np.max(m))) for m in means])
    row = _rows(depth, edges)
    return GraphPlaces(depth, row, cost, edges, int(np.bincount(depth).max()))


def _rows(depth: IntArray, edges: list[tuple[int, int]]) -> FloatArray:
    """Rows of centered columns. A column is sorted by the mean row of the neighbors."""
    columns = [np.flatnonzero(depth == d).tolist() for d in range(int(depth.max()) + 1)]
    most = max(map(len, columns))
    near: list[list[int]] = [[] for _ in depth]
    for p, i in edges:
        near[p].append(i)
        near[i].append(p)
    row = np.zeros(len(depth))

    def settle() -> None:
        for column in columns:
            row[column] = (most - len(column)) / 2 + np.arange(len(column))

    settle()
    for _ in range(_SWEEPS):
        for column in columns:
            column.sort(key=lambda v: float(np.mean(row[near[v]])) if near[v] else row[v])
        settle()
    return row


@dataclass(frozen=True, slots=True, eq=False)
class EndlessIndices:
    """Rewards and indices of an endless line, by rising reward.

    Attributes
    ----------
    states : list of str
    reward, index : (k,) arrays of float
        A state without a reward has minus infinity.
    go_on : (k,) array of bool
        Whether to open the next box when the state just seen is the best so far.
    """

    states: list[str]
    reward: FloatArray
    index: FloatArray
    go_on: NDArray[np.bool_]


def endless_data(line: EndlessLine) -> EndlessIndices:
    """The indices after each state of an endless line.

    Examples
    --------
    >>> from weitzman.chains import Chain, solve_line
    >>> d = endless_data(solve_line(Chain([[0.5, 0.5], [0.5, 0.5]], rewards=[0, 8]), cost=1))
    >>> d.index.tolist(), d.go_on.tolist()
    ([6.0, 6.0], [True, False])
    """
    if not isinstance(line, EndlessLine):
        raise InvalidArgument(
            f"the picture of an endless line needs the result of solve_line, but got a "
            f"{type(line).__name__}."
        )
    reward = np.asarray(line.chain.rewards, np.float64)
    by = np.argsort(reward, kind="stable")
    names = [f"state {s}" for s in by]
    return EndlessIndices(names, reward[by], line.index[by], line.index[by] > reward[by])


def bounds_data(found: LazySolution) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Nodes expanded, lower and upper bound after each round of a lazy solve."""
    if not isinstance(found, LazySolution):
        raise InvalidArgument(
            f"the picture of bounds needs the result of solve(lazy_forest), but got a "
            f"{type(found).__name__}."
        )
    rounds = np.array([*found.history, (found.expanded, found.lower, found.upper)], np.float64)
    return rounds[:, 0], rounds[:, 1], rounds[:, 2]
