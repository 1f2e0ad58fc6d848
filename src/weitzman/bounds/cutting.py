"""The boxes above a depth as a forest of their own, and the same with more to win at the cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._common.arrays import IntArray
from .._kernels import ceilings, structure
from ..forest.model import Forest
from ..forest.pools import Pool, starts
from .ceiling import Ceiling


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
        depth = ceilings.depths(forest.parent, order)
        return cls(forest, depth, first < 0, Ceiling.of(forest, order))

    @property
    def height(self) -> int:
        """Boxes on the longest way down."""
        return int(self.depth.max()) + 1

    def above(self, t: int) -> IntArray:
        """Numbers of the boxes on the first t levels."""
        return np.flatnonzero(self.depth < t)

    def cut(self, t: int, *, names: bool = True) -> Forest:
        """The first t levels: what can be had there, the whole forest has too."""
        keep, f = self.above(t), self.forest
        rows, number = np.unique(f.reward[keep], return_inverse=True)
        part = _part(f, keep, number, _take(f.rewards, rows))
        if not names:
            return Forest(**part)
        given = f.names
        if given is not None:
            given = tuple(given[v] for v in keep.tolist())
        elif keep[-1] >= len(keep):  # numbers change: the old ones become names
            given = tuple(map(str, keep.tolist()))
        states = tuple(f.state_names[r] for r in rows.tolist())
        return Forest(**part, names=given, state_names=states)

    def raised(self, t: int) -> Forest:
        """The first t levels, worth at least as much as the whole forest, without names.

        A box at the cut receives, for free, the most that anything below it can come to.
        """
        keep, f, c = self.above(t), self.forest, self.ceiling
        last = (self.depth[keep] == t - 1) & ~self.childless[keep]
        row = np.where(last, len(f.rewards) + c.kind[keep], f.reward[keep])
        rows, number = np.unique(row, return_inverse=True)
        plain = int(np.searchsorted(rows, len(f.rewards)))
        kinds = rows[plain:] - len(f.rewards)
        own = _take(f.rewards, np.concatenate([rows[:plain], c.reward[kinds]]))
        sign, higher = f.sign, own.data.copy()
        at, size = own.start[plain], own.shape[plain:, 1]
        higher[at:] = sign * np.maximum(sign * higher[at:], c.below[_runs(c.at[kinds], size)])
        return Forest(**_part(f, keep, number, Pool(higher, own.start, own.shape)))


def _part(forest: Forest, keep: IntArray, reward: IntArray, rewards: Pool) -> dict[str, Any]:
    """The columns of some boxes, with all above them, and only the matrices that they need."""
    f = forest
    law, laws = np.unique(f.law[keep], return_inverse=True)
    cost, costs = np.unique(f.cost[keep], return_inverse=True)
    return {
        "parent": np.where(f.parent[keep] < 0, -1, np.searchsorted(keep, f.parent[keep])),
        "law": laws,
        "laws": _take(f.laws, law),
        "reward": reward,
        "rewards": rewards,
        "cost": costs,
        "costs": _take(f.costs, cost),
        "count": f.count[keep],
        "endless": f.endless[keep],
        "outside": f.outside,
        "minimize": f.minimize,
        "unit": f.unit,
    }


def _take(pool: Pool, rows: IntArray) -> Pool:
    """Some matrices of a pool."""
    shape = pool.shape[rows]
    return Pool(pool.data[_runs(pool.start[rows], shape.prod(axis=1))], starts(shape), shape)


def _runs(start: IntArray, size: IntArray) -> IntArray:
    """The numbers start[0], start[0] + 1, ..., so many as size[0] says, then start[1], ..."""
    end = np.cumsum(size)
    return np.repeat(start - end + size, size) + np.arange(end[-1] if len(end) else 0)
