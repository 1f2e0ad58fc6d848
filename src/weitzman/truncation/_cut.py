"""The boxes above a depth as a forest of their own, and the same with more to win at the cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._kernels import bounds, structure
from .._pool import Pool, starts
from .._types import IntArray
from ..model import Forest
from ._ceiling import Ceiling


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """A forest with what is needed to cut it at any depth."""

    forest: Forest
    depth: IntArray  # boxes above each box
    childless: NDArray[np.bool_]  # whether nothing follows a box
    ceiling: Ceiling

    @classmethod
    def of(cls, forest: Forest) -> Levels:
        order, first, _ = structure.postorder(forest.parent)
        depth = bounds.depths(forest.parent, order)
        return cls(forest, depth, first < 0, Ceiling.of(forest, order))

    @property
    def height(self) -> int:
        """Boxes on the longest way down."""
        return int(self.depth.max()) + 1

    def above(self, t: int) -> IntArray:
        """Numbers of the boxes on the first t levels."""
        return np.flatnonzero(self.depth < t)

    def cut(self, t: int) -> Forest:
        """The first t levels: what can be had there, the whole forest has too."""
        keep = self.above(t)
        return _part(self.forest, keep, self.forest.reward[keep], self.forest.rewards)

    def raised(self, t: int) -> Forest:
        """The first t levels, worth at least as much as the whole forest.

        A box at the cut receives, for free, the most that anything below it can come to.
        """
        f, c = self.forest, self.ceiling
        keep = self.above(t)
        last = np.flatnonzero((self.depth[keep] == t - 1) & ~self.childless[keep])
        kinds, which = np.unique(c.kind[keep[last]], return_inverse=True)
        _, first = np.unique(which, return_index=True)
        sign = -1.0 if f.minimise else 1.0
        rows = [
            sign * np.maximum(sign * f.rewards[int(r)], c.below[c.at[q] : c.at[q + 1]])
            for q, r in zip(kinds, f.reward[keep[last[first]]], strict=True)
        ]
        reward = f.reward[keep]
        reward[last] = len(f.rewards) + which
        return _part(f, keep, reward, f.rewards.with_more(rows) if rows else f.rewards)


def _part(forest: Forest, keep: IntArray, reward: IntArray, rewards: Pool) -> Forest:
    """Some boxes, with all above them, and only the matrices that they need.

    Boxes keep their names; where they had none, their numbers become names if they change.
    """
    f = forest
    parent = np.where(f.parent[keep] < 0, -1, np.searchsorted(keep, f.parent[keep]))
    laws, law, _ = _used(f.laws, f.law[keep])
    costs, cost, _ = _used(f.costs, f.cost[keep])
    own, shown, rows = _used(rewards, reward)
    names = f.names
    if names is not None:
        names = tuple(names[v] for v in keep.tolist())
    elif keep[-1] >= len(keep):
        names = tuple(map(str, keep.tolist()))
    return Forest(
        parent=parent, law=law, reward=shown, cost=cost, laws=laws, rewards=own, costs=costs,
        count=f.count[keep], outside=f.outside, minimise=f.minimise, names=names,
        state_names=tuple(f.state_names[r] if r < len(f.rewards) else None for r in rows.tolist()),
    )  # fmt: skip


def _used(pool: Pool, column: IntArray) -> tuple[Pool, IntArray, IntArray]:
    """The matrices that a column points to, its new numbers, and the old number of each matrix."""
    rows, number = np.unique(column, return_inverse=True)
    shape = pool.shape[rows]
    at = starts(shape)
    take = np.repeat(pool.start[rows] - at[:-1], np.diff(at)) + np.arange(at[-1])
    return Pool(pool.data[take], at, shape), number, rows
