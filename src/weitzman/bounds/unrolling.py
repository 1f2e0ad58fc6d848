"""Endless lines written down for some boxes, the last of which is endless again."""

from __future__ import annotations

import numpy as np

from .._common.arrays import IntArray
from .._kernels import ceilings, structure
from ..forest.model import Forest


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
    """0, 1, ... anew for each size."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
