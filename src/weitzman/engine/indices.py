"""An index policy as columns: what to open next is a lookup.

The rule, for the optimal policy and for any other that ranks boxes by a number: open the available
box of highest index while that index exceeds the best reward so far; otherwise stop. Ties: among
equal indices, the box of lowest number comes first; among its copies, the one whose parent showed
the state of lowest number, then the first copy. If an index equals the best reward, stop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import FloatArray, IntArray
from ..forest.model import Forest


def choose(index: ArrayLike, best: float) -> int | None:
    """The rule for a list of indices: the place of the first highest one; None: stop.

    Parameters
    ----------
    index : sequence of float
        Higher is better.
    best : float
        The best so far, which an index must exceed.

    Examples
    --------
    >>> choose([1.0, 3.0, 3.0], best=2.0)
    1
    >>> choose([1.0, 3.0, 3.0], best=3.0)
    """
    numbers = np.asarray(index)
    place = int(np.argmax(numbers))
    return place if numbers[place] > best else None


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """An index for every box and state of its parent; immutable, shared by any number of runs.

    Attributes
    ----------
    forest : Forest
    index_at : (n,) array of int
        The indices of box i start at ``index[index_at[i]]``, one for each state of its parent
        (one for a root). Boxes that are alike may share them.
    index : array of float
        Signed so that higher is better, also when minimizing; as :attr:`rewards`.
    rewards : array of float
        The rewards of ``forest.rewards.data``, signed in the same way.
    outside : float
        The outside option, signed in the same way.
    root : array of int
        The roots, highest index first, equal ones by number.
    child_at, child : arrays of int
        ``child[child_at[i]:child_at[i + 1]]`` are the children of box i, lowest number first; an
        endless box is its own child.
    """

    forest: Forest
    index_at: IntArray
    index: FloatArray
    rewards: FloatArray
    outside: float
    root: IntArray
    child_at: IntArray
    child: IntArray

    @classmethod
    def of(cls, forest: Forest, index_at: IntArray, index: FloatArray) -> Policy:
        """A policy from any indices (in the user's sign; lower is better when minimizing)."""
        sign = forest.sign
        signed = sign * np.asarray(index, np.float64)
        roots = forest.roots
        by = np.argsort(-signed[index_at[roots]], kind="stable")
        above, below = forest.parent, np.arange(len(forest))
        if forest.endless.any():
            again = np.flatnonzero(forest.endless)
            above, below = np.concatenate([above, again]), np.concatenate([below, again])
        by_parent = np.argsort(above, kind="stable")
        sizes = np.bincount(above + 1, minlength=len(forest) + 1)
        columns: dict[str, Any] = {
            "index_at": np.array(index_at, np.int64),
            "index": signed,
            "rewards": sign * forest.rewards.data,
            "root": roots[by],
            "child_at": np.concatenate([[0], np.cumsum(sizes[1:])]).astype(np.int64),
            "child": below[by_parent[len(roots) :]],
        }
        for column in columns.values():
            column.flags.writeable = False
        return cls(forest=forest, outside=sign * forest.outside, **columns)
