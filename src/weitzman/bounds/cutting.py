"""Forests cut at a depth, with a ceiling on what lies below the cut; endless lines written down.

The ceiling comes from one look at the columns. Boxes are of one kind if they share a law and a row
of rewards. Forests that are worth cutting have few kinds (a static line has one), so the ceiling
costs little, however long the lines are. See :mod:`weitzman._kernels.ceilings` for the proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._common.arrays import FloatArray, IntArray, frozen
from .._kernels import ceilings, structure
from ..forest.columns import Pool, runs
from ..forest.model import Forest
from ..forest.rules import MAX_AMOUNT

_ROUNDS = 10_000  # at most: every round ends with valid bounds
_WORK = 5e7  # products of all rounds together: some tenths of a second
_STEADY = 1e-9  # stop when a round lowers the bounds by less, as a share of the range


@dataclass(frozen=True, slots=True, eq=False)
class Ceiling:
    """No capped value below a box of kind q that shows y exceeds ``below[at[q] + y]``."""

    kind: IntArray  # of each box
    reward: IntArray  # row of rewards of each kind
    below: FloatArray  # as if maximizing
    at: IntArray

    @classmethod
    def of(cls, forest: Forest, order: IntArray) -> Ceiling:
        """For all boxes of a forest; ``order`` has children before parents."""
        f = forest
        kind, law, reward = _kinds(f, order)
        start, at = _starts(f.laws.shape[law, 0]), _starts(f.laws.shape[law, 1])
        cost = ceilings.least_costs(kind, f.law, f.cost, f.laws.matrices, f.costs.matrices, start)
        edge_at, edge = _edges(f, kind, len(law))
        rewards = -f.rewards.data if f.minimize else f.rewards.data
        finite = rewards[np.isfinite(rewards)]
        index = np.full(start[-1], finite.max(initial=-np.inf))
        below, span = np.empty(at[-1]), float(np.ptp(finite)) if len(finite) else 0.0
        work = float(f.laws.shape[law].prod(axis=1).sum() + len(edge))
        circles = (edge >= np.repeat(np.arange(len(law)), np.diff(edge_at))).any()
        rounds = max(1, int(min(_ROUNDS, _WORK / work))) if circles else 1
        ceilings.settle(
            f.laws.matrices, f.rewards.matrices._replace(data=frozen(rewards)),
            ceilings.Kinds(law, reward, cost, start, edge_at, edge),
            ceilings.Ceilings(index, below, at), rounds, _STEADY * span,
        )  # fmt: skip
        return cls(kind, reward, below, at)


def _kinds(forest: Forest, order: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The kind of each box, and law and rewards of each kind; kinds come in the order of boxes."""
    law, reward = forest.law[order], forest.reward[order]
    new = np.flatnonzero((np.diff(law) != 0) | (np.diff(reward) != 0)) + 1
    run = np.concatenate([[0], new])  # most boxes are of the kind of the one before
    number, first = _number(np.column_stack([law[run], reward[run]]))
    kind = np.empty(len(order), np.int64)
    kind[order] = np.repeat(number, np.diff(np.append(run, len(order))))
    return kind, law[run[first]], reward[run[first]]


def _number(rows: IntArray) -> tuple[IntArray, IntArray]:
    """A number for each row, the same for equal rows; and the first row of each number."""
    at = np.arange(len(rows) + 1, dtype=np.int64) * rows.shape[1]
    number, first = structure.intern_rows(
        frozen(np.ascontiguousarray(rows).reshape(-1)), frozen(at)
    )
    return number, first


def _edges(forest: Forest, kind: IntArray, kinds: int) -> tuple[IntArray, IntArray]:
    """The kinds that follow each kind: ``edge[edge_at[q]:edge_at[q + 1]]``."""
    pairs = ceilings.follow_ups(forest.parent, kind, kinds).reshape(-1, 2)
    again = np.unique(kind[forest.endless])  # an endless box follows itself
    pairs = np.concatenate([pairs, np.column_stack([again, again])])
    if len(pairs):
        pairs = pairs[_number(pairs)[1]]
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    return _starts(np.bincount(pairs[:, 0], minlength=kinds)), np.ascontiguousarray(pairs[:, 1])


def _starts(sizes: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


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

        A box at the cut receives, for free, the ceiling of all that lies below it. With
        discounting the ceiling is at least 0, because waiting also shrinks losses.
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
        # A forest holds no amounts below this one, and a higher number is still an upper bound.
        below = np.where(np.isfinite(below), np.maximum(below, -MAX_AMOUNT), below)
        higher[at:] = sign * np.maximum(sign * higher[at:], below)
        more = Pool(higher, own.start, own.shape)
        return f.take(keep, names=None, state_names=(), reward=number, rewards=more)


def unrolled(forest: Forest, levels: int) -> tuple[Forest, IntArray]:
    """The same forest with its endless lines written down to a number of levels.

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
        For each new box, the box of the old forest that it comes from.
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
