"""Numbers of boxes that are looked up by the names of the boxes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common.arrays import FloatArray, IntArray
from ..forest.model import Forest


class ByBox(np.ndarray[Any, np.dtype[np.float64]]):
    """(n,) array of float; a name as the key gives the number of that box.

    Results of arithmetic and slices are plain arrays.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, names=["chest"])
    >>> opened = weitzman.evaluate(weitzman.solve(chest)).opened
    >>> float(opened["chest"]), float(opened[0]), opened + 1
    (1.0, 1.0, array([2.]))
    """

    _forest: Forest | None

    def __new__(cls, values: FloatArray, forest: Forest) -> ByBox:
        found = np.asarray(values, np.float64).view(cls)
        found._forest = forest
        return found

    def __array_finalize__(self, source: object) -> None:
        self._forest = None

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else np.asarray(array)

    def __getitem__(self, key: Any) -> Any:
        plain = self.view(np.ndarray)
        return plain[self._forest.box(key) if isinstance(key, str) and self._forest else key]

    def __reduce__(self) -> Any:
        if self._forest is None:
            return super().__reduce__()
        return ByBox, (np.array(self), self._forest)

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))

    def __str__(self) -> str:
        return str(self.view(np.ndarray))


@dataclass(frozen=True, slots=True, eq=False)
class PerBox:
    """A short array for every box, looked up by its name or number."""

    forest: Forest
    data: FloatArray
    start: IntArray

    def __getitem__(self, box: str | int) -> FloatArray:
        v = self.forest.box(box)
        return self.data[self.start[v] : self.start[v + 1]]

    def __len__(self) -> int:
        return len(self.forest)

    def __iter__(self) -> Iterator[FloatArray]:
        return (self[v] for v in range(len(self)))

    def totals(self) -> FloatArray:
        """(n,) sum of each array."""
        return np.asarray(np.add.reduceat(self.data, self.start[:-1]))
