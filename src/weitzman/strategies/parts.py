"""What sets and orders share: forests without copies, parts of them, and the rewards in hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._common.numbers import counted
from .._common.text import ResultTable
from .._kernels.structure import postorder
from ..engine.weights import reject_quotas
from ..forest.builder import expand
from ..forest.model import Forest


@dataclass(frozen=True, slots=True, eq=False)
class FixedPlan(ResultTable):
    """Boxes in an order that is fixed in advance, and what they earn."""

    forest: Forest
    order: tuple[int, ...]
    value: float

    @property
    def boxes(self) -> tuple[str, ...]:
        """Names of the boxes in the order of opening."""
        return tuple(self.forest.name(v) for v in self.order)

    def _said(self, more: str) -> str:
        size = counted(len(self.order), "box")
        return f"{type(self).__name__}({size}, value={self.value:.8g}, {more})"

    def columns(self) -> dict[str, list[Any]]:
        """The boxes in the order of opening."""
        return {"number": list(self.order), "box": list(self.boxes)}

    def __str__(self) -> str:
        return repr(self)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoundedPlan(FixedPlan):
    """A plan and what no other plan of its kind exceeds."""

    bound: float
    exact: bool

    def __repr__(self) -> str:
        return self._said("best of all" if self.exact else f"none earns more than {self.bound:.8g}")


WRITE_OUT = 5000  # boxes that are written out, at most
NOTHING = -1e300  # stands for an outside option of minus infinity, where 0 times that must be 0


def in_turn(forest: Forest, members: Iterable[int], rank: Sequence[float] = ()) -> tuple[int, ...]:
    """The members of a set in an order of opening: of those that can be opened, the lowest rank.

    Without ranks, the lowest number: this is how boxes with equal indices are opened.
    """
    below: dict[int, list[tuple[float, int]]] = {}
    for v in members:
        below.setdefault(int(forest.parent[v]), []).append((rank[v] if len(rank) else 0.0, v))
    ready, out = below.get(-1, []), list[int]()
    heapify(ready)
    while ready:
        _, v = heappop(ready)
        out.append(v)
        for entry in below.get(v, []):
            heappush(ready, entry)
    return tuple(out)


def children_first(forest: Forest) -> list[int]:
    """All boxes, each after what hangs on it."""
    order: list[int] = postorder(forest.parent)[0].tolist()
    return order


def likely_part(forest: Forest, opened: FloatArray) -> tuple[Forest, bool]:
    """The forest without copies and True; or, if it is large, a part of it and False.

    The part is what the optimal policy is most likely to open; ``opened`` says how often it is.
    """
    if forest.boxes <= WRITE_OUT:
        return expand(forest), True
    often = np.zeros(len(forest), np.int64)
    often[np.argsort(-opened, kind="stable")[: WRITE_OUT // 2]] = 1
    often = closed(forest, np.where(opened > 0, often, 0))
    if not often.any():
        often[0 if forest.parent[0] < 0 else forest.roots[0]] = 1
    for most in (1000, 300, 100, 30, 10, 3, 1):
        cut = part(forest, np.minimum(forest.count, most) * often)
        if cut.boxes <= WRITE_OUT:
            break
    return expand(cut), False


def likely_first(forest: Forest, opened: FloatArray) -> list[int]:
    """The boxes by how often the optimal policy opens them, each after its parent."""
    likely = opened.copy()
    order = children_first(forest)[::-1]
    for v in order:
        if forest.parent[v] >= 0:  # rounding may say otherwise
            likely[v] = min(likely[v], likely[forest.parent[v]])
    place = {v: i for i, v in enumerate(order)}
    return sorted(order, key=lambda v: (-likely[v], place[v]))


def closed(forest: Forest, copies: IntArray) -> IntArray:
    """Leave out boxes whose parents are left out."""
    while True:
        lost = (copies > 0) & (forest.parent >= 0) & (copies[forest.parent] == 0)
        if not lost.any():
            return copies
        copies = np.where(lost, 0, copies)


def part(forest: Forest, copies: IntArray) -> Forest:
    """The boxes with a positive number of ``copies``; the parent of each box must be among them.

    There are at most as many prizes as trees left: see :func:`places_lost`.
    """
    kept = np.flatnonzero(copies)
    prizes = forest.prizes - places_lost(forest, copies)
    return forest.take(kept, count=copies[kept], prizes=prizes)


def places_lost(forest: Forest, copies: IntArray) -> int:
    """Prizes for which no tree is left: each place is worth the outside option."""
    if forest.prizes == 1:
        return 0
    trees = min(float(np.sum(copies[forest.roots], dtype=float)), 1e18)
    return max(0, int(forest.prizes) - max(1, int(trees)))


class PrizePlaces(NamedTuple):
    """How many prizes may be taken, and from which tree each box has its reward."""

    prizes: int
    tree: IntArray


def places(forest: Forest) -> PrizePlaces:
    """How many prizes there are, and the tree of each box; with one prize, all are one tree."""
    reject_quotas(forest, "a strategy of another kind")
    tree = np.zeros(len(forest), np.int64)
    if forest.prizes > 1:
        tree[forest.roots] = np.arange(len(forest.roots))
        for v in children_first(forest)[::-1]:
            if forest.parent[v] >= 0:
                tree[v] = tree[forest.parent[v]]
    return PrizePlaces(int(forest.prizes), tree)


def sum_of_largest(
    none: Sequence[FloatArray], grid: FloatArray, outside: float, prizes: int
) -> FloatArray:
    r"""The expected sum of the largest of independent numbers, each at least ``outside``.

    ``none[i][..., j]`` is the probability that number i is at most ``grid[j]``; all other axes are
    broadcast. By Theorem 3 of the theory page the sum is
    :math:`K x_0 + \int_{x_0}^\infty E\min(K, N(x))\,dx` with N(x) the numbers above x.
    """
    none_yet = [np.ones(len(grid)), *[np.zeros(len(grid))] * prizes]
    exactly: list[FloatArray] = none_yet  # P(exactly i exceed x); the last: i or more
    for row in none:
        more = [(1.0 - row) * p for p in exactly]
        exactly = [row * p for p in exactly]
        for i in range(prizes):
            exactly[i + 1] = exactly[i + 1] + more[i]
        exactly[-1] = exactly[-1] + more[-1]
    mean = sum(i * p for i, p in enumerate(exactly))
    if outside == NOTHING:  # too far below the rest to be added to it
        if len(grid) == 1:
            return np.full(np.shape(mean)[:-1], NOTHING)
        sure = prizes * grid[1] + np.asarray(mean)[..., 1:-1] @ np.diff(grid[1:])
        return np.where(np.asarray(mean)[..., 0] < prizes, NOTHING, sure)
    widths = np.where(grid[:-1] >= outside, np.diff(grid), 0.0)
    return np.asarray(prizes * outside + np.asarray(mean)[..., :-1] @ widths)
