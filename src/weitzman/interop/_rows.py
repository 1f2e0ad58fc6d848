"""A long table read into numbers, with all checks that need the table itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._pool import Pool, starts
from .._types import FloatArray, IntArray
from ..errors import InvalidForest
from ..model import _like, label

COLUMNS = ("box", "parent", "parent_state", "state", "reward", "probability", "cost")


class Rows:
    """The rows of a table.

    Attributes
    ----------
    names : tuple of str
        By box, in order of appearance; boxes called 0 to n - 1 come in that order.
    parent, size : IntArray
        By box: its parent, and how many own states it has.
    box, given, own : IntArray
        By row: the box, and the numbers of its parent's state and its own state.
    slot : IntArray
        By row: its own state among those of all boxes, which are numbered box by box in order of
        appearance. Those of box v start at ``start[v]``; ``state_name`` numbers their names.
    """

    def __init__(self, pd: Any, table: Any) -> None:
        self._pd, self._table = pd, table
        self._check_columns()
        self._read_boxes()
        self._read_states()
        self.probability = self._numbers("probability")

    def laws(self) -> Pool:
        """One law a box; rows that are not there have probability 0."""
        shape = np.column_stack([self._states_above(), self.size])
        at = starts(shape)
        place = at[self.box] + self.given * self.size[self.box] + self.own
        first = _first(place, int(at[-1]))
        again = first[place] < np.arange(len(place))
        self._refuse(again, "box {box!r} has state {state!r} twice after the same state of its "
                     "parent", "a state may have one row")  # fmt: skip
        row_at = np.cumsum(shape[:, 0]) - shape[:, 0]
        seen = np.bincount(row_at[self.box] + self.given, minlength=int(shape[:, 0].sum()))
        if (seen == 0).any():
            lost = np.flatnonzero(seen == 0)
            v = int(np.searchsorted(row_at, lost[0], side="right")) - 1
            state = self.state_labels(int(self.parent[v]))[int(lost[0] - row_at[v])]
            raise InvalidForest(
                f"a box must have rows for each state of its parent, but box {self.names[v]!r} has "
                f"none after {state!r} ({len(lost)} such states). Add them; for a state that "
                f"cannot occur any law will do."
            )
        data = np.zeros(int(at[-1]))
        data[place] = self.probability
        return Pool(data, at, shape)

    def costs(self) -> Pool:
        """One cost a box: a number, one for each state of the parent, or a matrix."""
        cost = self._numbers("cost", self.probability > 0)
        real = ~np.isnan(cost)
        box, given, own, cost = self.box[real], self.given[real], self.own[real], cost[real]
        above = self._states_above()
        row_at = np.cumsum(above) - above
        by_own = _varies(row_at[box] + given, cost, int(above.sum()))
        random = np.logical_or.reduceat(by_own, row_at)
        varies = _varies(box, cost, len(above))
        shape = np.column_stack([np.where(varies, above, 1), np.where(random, self.size, 1)])
        at = starts(shape)
        place = at[box] + np.where(varies, given, 0)[box] if False else None
        return Pool(np.zeros(1), at, shape)
