"""The boxes above a depth as a forest of their own, and the same with more to win at the cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._common.arrays import IntArray
from .._kernels import ceilings, structure
from ..forest.model import Forest
from ..forest.pools import Pool, runs
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
        if not names:
            return f.take(keep, names=None)
        if f.names is None and keep[-1] >= len(keep):  # numbers change: the old ones become names
            return f.take(keep, names=tuple(map(str, keep.tolist())))
        return f.take(keep)

    def raised(self, t: int) -> Forest:
        """The first t levels, worth at least as much as the whole forest, without names.

        A box at the cut receives, for free, the most that anything below it can come to. With
        discounting that is at least 0: waiting shrinks losses, too.
        """
        keep, f, c = self.above(t), self.forest, self.ceiling
        last = (self.depth[keep] == t - 1) & ~self.childless[keep]
        row = np.where(last, len(f.rewards) + c.kind[keep], f.reward[keep])
        rows, number = np.unique(row, return_inverse=True)
        plain = int(np.searchsorted(rows, len(f.rewards)))
        kinds = rows[plain:] - len(f.rewards)
        own = f.rewards.take(np.concatenate([rows[:plain], c.reward[kinds]]))
        sign, higher = f.sign, own.data.copy()
        at, size = own.start[plain], own.shape[plain:, 1]
        below = c.below[runs(c.at[kinds], size)]
        if f.factors is not None:
            below = np.maximum(below, 0.0)
        higher[at:] = sign * np.maximum(sign * higher[at:], below)
        more = Pool(higher, own.start, own.shape)
        return f.take(keep, names=None, state_names=(), reward=number, rewards=more)
