"""Many small matrices in one flat array, equal ones stored once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._common.arrays import FloatArray, IntArray, frozen
from .._kernels.structure import Matrices, intern_rows

_SHAPE = attrgetter("shape")


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """A read-only list of matrices.

    ``data[start[i]:start[i + 1]]`` are the entries of matrix i in row order, ``shape[i]`` its rows
    and columns.
    """

    data: FloatArray
    start: IntArray
    shape: IntArray

    def __post_init__(self) -> None:
        for name, dtype in (("data", np.float64), ("start", np.int64), ("shape", np.int64)):
            column = np.ascontiguousarray(getattr(self, name), dtype)
            if column.flags.writeable or column.base is not None:
                column = column.copy()  # our own, so that what was checked stays true
                column.flags.writeable = False
            object.__setattr__(self, name, column)

    def __reduce__(self) -> tuple[type[Pool], tuple[FloatArray, IntArray, IntArray]]:
        return Pool, (self.data, self.start, self.shape)

    def __len__(self) -> int:
        return len(self.shape)

    @property
    def matrices(self) -> Matrices:
        """The columns, as kernels read them."""
        return Matrices(self.data, self.start, self.shape)

    def __getitem__(self, i: int) -> FloatArray:
        rows, cols = self.shape[i]
        return self.data[self.start[i] : self.start[i + 1]].reshape(rows, cols)

    def with_more(self, matrices: Sequence[FloatArray]) -> Pool:
        """This pool with matrices added at its end."""
        if not matrices:
            return self
        sizes = [m.size for m in matrices]
        return Pool(
            np.concatenate([self.data, *(m.reshape(-1) for m in matrices)]),
            np.concatenate([self.start, self.start[-1] + np.cumsum(sizes)]),
            np.concatenate([self.shape, [m.shape for m in matrices]]),
        )

    def take(self, which: IntArray, row: IntArray | None = None) -> Pool:
        """The matrices ``which``, in that order; where ``row`` is not negative, that row alone.

        A matrix of one row stands for all rows and stays as it is.
        """
        shape, start = self.shape[which], self.start[which]
        if row is not None:
            one = (row >= 0) & (shape[:, 0] > 1)
            start = start + np.where(one, row * shape[:, 1], 0)
            shape = np.column_stack([np.where(one, 1, shape[:, 0]), shape[:, 1]])
        return Pool(self.data[runs(start, shape.prod(axis=1))], starts(shape), shape)

    def entries(self, which: IntArray, row: IntArray, column: IntArray) -> FloatArray:
        """Entries of matrices; one row, or one column, stands for all."""
        rows, cols = self.shape[which].T
        at = np.where(rows > 1, row, 0) * cols + np.where(cols > 1, column, 0)
        return np.asarray(self.data[self.start[which] + at])

    def rows(self) -> tuple[IntArray, IntArray]:
        """For each row of each matrix: where it starts, and which matrix it belongs to."""
        owner = np.repeat(np.arange(len(self)), self.shape[:, 0])
        first = np.cumsum(self.shape[:, 0]) - self.shape[:, 0]
        within = np.arange(len(owner)) - first[owner]
        return self.start[owner] + within * self.shape[owner, 1], owner


def stack_pool(stack: NDArray[Any]) -> tuple[Pool, IntArray]:
    """Pool of the matrices ``stack[i]`` and the place of each in it."""
    shape = np.full((len(stack), 2), stack.shape[1:], np.int64)
    return joined_pool([np.asarray(stack, np.float64)], shape)


def list_pool(
    items: Sequence[Any], root: Sequence[bool] | None, convert: Callable[[int], FloatArray]
) -> tuple[Pool, IntArray]:
    """Pool of ``convert(i)`` for all items, one object of roots, or of others, converted once.

    Without ``root``, the items are arrays of floats and are taken as they are.
    """
    alive = list(items)  # so that no two of them can have the same id
    key: list[Any] = list(
        map(id, alive) if root is None else zip(map(id, alive), root, strict=True)
    )
    first: dict[Any, int] = {}
    if len(set(key)) < len(key):
        for i, one in enumerate(key):
            first.setdefault(one, i)
    distinct = first.values() if first else range(len(alive))
    if root is None:
        matrices = [alive[i] for i in distinct] if first else alive
    else:
        matrices = [convert(i) for i in distinct]
    shapes = list(map(_SHAPE, matrices))
    kinds = {shape: i for i, shape in enumerate(dict.fromkeys(shapes))}
    rows_and_columns = np.array([(1, *shape)[-2:] for shape in kinds], np.int64).reshape(-1, 2)
    which = np.fromiter(map(kinds.__getitem__, shapes), np.int64, len(shapes))
    pool, number = joined_pool(matrices, rows_and_columns[which])
    if not first:
        return pool, number
    place = {one: i for i, one in enumerate(first)}
    return pool, number[np.fromiter(map(place.__getitem__, key), np.int64, len(key))]


def joined_pool(matrices: Sequence[FloatArray], shape: IntArray) -> tuple[Pool, IntArray]:
    """Pool of matrices of these shapes, and the place of each in it."""
    return own_pool(np.concatenate(matrices or [np.empty(0)], axis=None), shape)


def own_pool(data: FloatArray, shape: IntArray) -> tuple[Pool, IntArray]:
    """The same for the numbers of the matrices one after the other, which are nobody else's."""
    data += 0.0  # -0.0 and 0.0 are one number
    pool, number, _ = _interned(data, starts(shape), shape)
    return pool, number


def take_pools(
    pools: Sequence[Pool], column: IntArray, row: IntArray | None = None
) -> tuple[list[Pool], IntArray, IntArray]:
    """Only the matrices that a column points to, in pools that lie beside each other.

    ``row`` gives, for each entry of the column, the only row to keep; -1 keeps all rows.

    Returns
    -------
    pools : list of Pool
    column : array of int
        The same column for these.
    which : array of int
        Where each matrix was before.
    """
    if row is None:
        which, place = np.unique(column, return_inverse=True)
        return [p.take(which) for p in pools], place, which
    height = np.max([p.shape[:, 0] for p in pools], axis=0)
    most = int(height.max()) + 1
    cut = np.where(height[column] > 1, row, -1)
    keys, place = np.unique(column * most + cut + 1, return_inverse=True)
    which, left = keys // most, keys % most - 1
    return [p.take(which, left) for p in pools], place, which


def concat_pools(pools: Sequence[Pool]) -> Pool:
    """The matrices of all pools one after the other, none left out."""
    shape = np.concatenate([p.shape for p in pools])
    return Pool(np.concatenate([p.data for p in pools]), starts(shape), shape)


def intern_pool(pool: Pool, tag: IntArray | None = None) -> tuple[Pool, IntArray, IntArray]:
    """Store equal matrices with equal tags once.

    Returns the smaller pool, the place in it of each matrix, and the first matrix at each place.
    """
    return _interned(pool.data + 0.0, pool.start, pool.shape, tag)  # -0.0 and 0.0 are one number


def _interned(
    data: FloatArray, start: IntArray, shape: IntArray, tag: IntArray | None = None
) -> tuple[Pool, IntArray, IntArray]:
    """The same for numbers that are nobody else's, without -0.0."""
    data.flags.writeable = False  # ours already: no copy needed
    number, first = intern_rows(frozen(data.view(np.int64)), frozen(start))
    if len(first) < len(shape):  # equal numbers may have different shapes, or tags
        number, first = intern_keys(
            np.column_stack([number, shape] if tag is None else [number, shape, tag])
        )
    pool = Pool(data, start, shape)
    return (pool if len(first) == len(pool) else pool.take(first)), number, first


def intern_keys(key: IntArray) -> tuple[IntArray, IntArray]:
    """The number of each row of a table, equal rows numbered once, and the first row of each."""
    at = np.arange(len(key) + 1, dtype=np.int64) * key.shape[1]
    rows = np.ascontiguousarray(key, np.int64).reshape(-1)
    number, first = intern_rows(frozen(rows), frozen(at))
    return number, first


def runs(start: IntArray, size: IntArray) -> IntArray:
    """The numbers start[0], start[0] + 1, ..., as many as size[0] says, then start[1], ..."""
    end = np.cumsum(size)
    return np.repeat(start - end + size, size) + np.arange(end[-1] if len(end) else 0)


def starts(shape: IntArray) -> IntArray:
    """Where matrices of these shapes start when they are laid out one after the other."""
    return np.concatenate([[0], np.cumsum(shape[:, 0] * shape[:, 1])]).astype(np.int64)
