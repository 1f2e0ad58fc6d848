"""Where the boxes of a forest stand in a picture, and which are folded away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from ..._common.arrays import FloatArray, IntArray
from ...engine.evaluation import evaluate
from ...engine.indices import Policy
from ...engine.solution import Solution, mean_cost
from ...forest.model import Forest
from ...policy.simulation import at_least_one
from .boxes_data import check_solution


@dataclass(frozen=True, slots=True, eq=False)
class TreeLayout:
    """The boxes that are shown, a parent always before its children.

    Attributes
    ----------
    box : (m,) array of int
    above : (m,) array of int
        Place of the parent in ``box``; -1 for a root.
    depth, row : (m,) arrays of float
        Columns count from the roots; every leaf has a row of its own and a parent stands in the
        middle of its children.
    opened : (m,) array of float
        Expected openings; without copies, the probability.
    cost, index : (m, 2) arrays of float
        Least and largest over the states of the parent.
    hidden : (m,) array of int
        How many boxes are folded below each box.
    hidden_row : (m,) array of float
        The row of the note about the folded boxes; NaN where nothing is folded.
    rest, rest_row
        Boxes in trees that are folded whole, and the row of the note about them.
    rows : int
    """

    box: IntArray
    above: IntArray
    depth: FloatArray
    row: FloatArray
    opened: FloatArray
    cost: FloatArray
    index: FloatArray
    hidden: IntArray
    hidden_row: FloatArray
    rest: int
    rest_row: float
    rows: int


def tree(solution: Solution, limit: int = 30, levels: int = 7) -> TreeLayout:
    """The boxes that the optimal policy opens most often, those above them, and their places.

    Parameters
    ----------
    solution : Solution
    limit : int
        Show at most this many boxes.
    levels : int
        Show at most this many levels, from the root on.

    Examples
    --------
    >>> import weitzman
    >>> boxes = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, names=["A"])
    >>> more = weitzman.line([[1.0]], rewards=[1], cost=2)
    >>> t = tree(weitzman.solve(weitzman.side_by_side(boxes, more)))
    >>> t.row.tolist(), t.opened.tolist()
    ([0.0, 1.0], [1.0, 0.0])
    """
    check_solution(solution, "the picture of a forest")
    at_least_one(limit=limit, levels=levels)
    f, policy, below = solution.forest, solution.policy(), children(solution.forest)
    opened = evaluate(policy).opened
    box, above, depth = _most_opened(f, below, opened, limit, levels)
    sizes, place = _sizes(f, below), {int(v): i for i, v in enumerate(box)}
    hidden = np.array([sizes[v] - 1 for v in box], np.int64)
    for i, up in enumerate(above):
        if up >= 0:
            hidden[up] -= sizes[box[i]]
    rest = len(f) - int(sum(sizes[v] for v in box[above < 0]))
    row, hidden_row, rows = _rows(policy, below, box, place, hidden)
    ends = [(_ends(mean_cost(f, int(v))), _ends(solution.indices(int(v)))) for v in box]
    cost, index = (np.array(column) for column in zip(*ends, strict=True))
    return TreeLayout(
        box, above, depth, row, opened[box], cost, index, hidden, hidden_row, rest,
        float(rows) if rest else np.nan, rows + (rest > 0),
    )  # fmt: skip


Below = Callable[[int], list[int]]
"""The children of a box, lowest number first."""


def children(forest: Forest) -> Below:
    """The children as they are written down, so that an endless box is not its own child."""
    order = np.argsort(forest.parent, kind="stable")
    start = np.searchsorted(forest.parent[order], np.arange(len(forest) + 1))
    return lambda box: order[start[box] : start[box + 1]].tolist()


def _most_opened(
    f: Forest, below: Below, opened: FloatArray, limit: int, levels: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Boxes by falling number of openings, each after its parent; then in forest order."""
    heap = [(-opened[v], 0, int(v), -1) for v in f.roots]
    heap.sort()
    chosen: list[tuple[int, int, int]] = []
    while heap and len(chosen) < limit:
        _, depth, v, up = heappop(heap)
        if depth + 1 < levels:
            for u in below(v):
                heappush(heap, (-opened[u], depth + 1, u, v))
        chosen.append((depth, v, up))
    chosen.sort()  # by depth, then number: parents come first
    place = {v: i for i, (_, v, _) in enumerate(chosen)}
    place[-1] = -1
    return (
        np.array([v for _, v, _ in chosen], np.int64),
        np.array([place[up] for _, _, up in chosen], np.int64),
        np.array([float(d) for d, _, _ in chosen]),
    )


def _sizes(f: Forest, below: Below) -> IntArray:
    """Boxes (as described) of the subtree of each box, itself included."""
    order, parent = f.roots.tolist(), f.parent
    for v in order:  # grows as it goes: parents before children
        order.extend(below(v))
    sizes = np.ones(len(parent), np.int64)
    for v in reversed(order):
        if parent[v] >= 0:
            sizes[parent[v]] += sizes[v]
    return sizes


def _rows(
    policy: Policy, below: Below, box: IntArray, place: dict[int, int], hidden: IntArray
) -> tuple[FloatArray, FloatArray, int]:
    """A row for each leaf in the order of the forest, and for what is folded beside others."""
    row, note = np.full(len(box), np.nan), np.full(len(box), np.nan)
    rows = 0
    roots = [
        place[v] for v in policy.root.tolist() if v in place
    ]  # the tree to open first is on top
    waiting = [(i, False) for i in reversed(roots)]
    while waiting:
        i, children_done = waiting.pop()
        shown = [place[u] for u in below(int(box[i])) if u in place]
        if not children_done:
            waiting += [(i, True), *((j, False) for j in reversed(shown))]
            continue
        if shown and hidden[i]:
            note[i], rows = rows, rows + 1
        if not shown:
            row[i], rows = rows, rows + 1
            note[i] = row[i] if hidden[i] else np.nan
        else:
            row[i] = (row[shown[0]] + row[shown[-1]]) / 2
    return row, note, rows


def _ends(x: FloatArray) -> tuple[float, float]:
    return float(np.min(x)), float(np.max(x))
