"""Forests cut at a depth; and endless lines written down, so that they can be cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._common.arrays import IntArray
from .._kernels import ceilings, structure
from ..forest.model import Forest
from ..forest.pools import Pool, runs
from ..forest.rules import MAX_AMOUNT
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

    def at(self, t: int) -> CutForest:
        """The forest cut below its first t levels."""
        return CutForest(self, t)


@dataclass(frozen=True, slots=True, eq=False)
class CutForest:
    """The first levels of a forest: a part whose rest is worth no more than its ceiling."""

    levels: Levels
    depth: int

    @property
    def whole(self) -> bool:
        """Whether nothing is cut off."""
        return self.depth >= self.levels.height

    def boxes(self) -> IntArray:
        """Numbers of the boxes kept."""
        return np.flatnonzero(self.levels.depth < self.depth)

    def forest(self) -> Forest:
        """The boxes kept, with their names; numbers that change become names."""
        f, keep = self.levels.forest, self.boxes()
        if self.whole:
            return f
        if f.names is None and keep[-1] >= len(keep):
            return f.take(keep, names=tuple(map(str, keep.tolist())))
        return f.take(keep)

    def lower_forest(self) -> Forest:
        """The boxes kept, without names: worth at most as much as the whole forest."""
        f = self.levels.forest
        return f if self.whole else f.take(self.boxes(), names=None)

    def upper_forest(self) -> Forest | None:
        """The boxes kept, raised so that they are worth at least as much as the whole forest.

        A box at the cut receives, for free, the most that anything below it can come to. With
        discounting that is at least 0: waiting shrinks losses, too.
        """
        if self.whole:
            return None
        keep, f, c = self.boxes(), self.levels.forest, self.levels.ceiling
        last = (self.levels.depth[keep] == self.depth - 1) & ~self.levels.childless[keep]
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
        # A forest holds no amounts below this one, and what is higher still bounds from above.
        below = np.where(np.isfinite(below), np.maximum(below, -MAX_AMOUNT), below)
        higher[at:] = sign * np.maximum(sign * higher[at:], below)
        more = Pool(higher, own.start, own.shape)
        return f.take(keep, names=None, state_names=(), reward=number, rewards=more)


def unrolled(forest: Forest, levels: int) -> tuple[Forest, IntArray]:
    """The same forest with its endless lines written down to so many levels.

    Parameters
    ----------
    forest : Forest
    levels : int
        The boxes of a line on these levels are written down one by one; all further ones are the
        endless box that follows, which is on the next level or deeper.

    Returns
    -------
    forest : Forest
        The boxes along line B are called ``"B#1"``, ``"B#2"`` and so on.
    box : array of int
        The box of the old forest that each is, or belongs to.
    """
    f, lines = forest, np.flatnonzero(forest.endless)
    depth = ceilings.depths(f.parent, structure.postorder(f.parent)[0])
    more = np.maximum(levels - depth[lines], 0)  # boxes added to each line
    box = np.concatenate([np.arange(len(f)), np.repeat(lines, more)])
    last = len(f) + np.cumsum(more) - 1
    parent = np.concatenate([f.parent, np.arange(len(f), len(box)) - 1])
    parent[(last - more + 1)[more > 0]] = lines[more > 0]
    endless = np.zeros(len(box), bool)
    endless[np.where(more > 0, last, lines)] = True
    place = np.concatenate([np.ones(len(f), np.int64), 2 + _ranges(more)])
    names = tuple(
        f"{f.name(v)}#{i}" if f.endless[v] else f.name(v)
        for v, i in zip(box.tolist(), place.tolist(), strict=True)
    )
    return f.take(box, parent=parent, endless=endless, names=names), box


def _ranges(sizes: IntArray) -> IntArray:
    """0, 1, ... starting again for each size."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
