"""What users give, made into columns of numbers and pools of matrices, equal ones stored once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from numbers import Real
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._common.arrays import BoolArray, FloatArray, IntArray, frozen
from .._common.numbers import counted, such
from .._kernels.structure import Matrices, intern_rows
from ..errors import InvalidForest

_SHAPE, _DTYPE, _NDIM = attrgetter("shape"), attrgetter("dtype"), attrgetter("ndim")
_STACK = {"law": 3, "rewards": 2, "opening": 1}  # dimensions of an array with an entry for each box


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
        return self.data[self.start[i] : self.start[i + 1]].reshape(*self.shape[i])

    def with_more(self, matrices: Sequence[FloatArray]) -> Pool:
        """This pool with matrices added at its end."""
        if not matrices:
            return self
        shape = np.concatenate([self.shape, [m.shape for m in matrices]])
        data = [self.data[self.start[0] :], *(m.reshape(-1) for m in matrices)]
        return Pool(np.concatenate(data), starts(shape), shape)

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
        return runs(self.start[:-1], self.shape[:, 0], self.shape[:, 1]), owner


def runs(start: IntArray, size: IntArray, step: IntArray | None = None) -> IntArray:
    """The numbers start[0], start[0] + step[0], ..., size[0] of them, then start[1], ...

    >>> runs(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    end = np.cumsum(size)
    if step is None:
        return np.repeat(start - end + size, size) + np.arange(end[-1] if len(end) else 0)
    within = runs(np.zeros_like(size), size)
    return np.repeat(start, size) + within * np.repeat(step, size)


def starts(shape: IntArray) -> IntArray:
    """Where matrices of these shapes start when they are laid out one after the other."""
    return np.concatenate([[0], np.cumsum(shape[:, 0] * shape[:, 1])]).astype(np.int64)


# -- equal matrices once ------------------------------------------------------------------------


def stack_pool(stack: NDArray[Any]) -> tuple[Pool, IntArray]:
    """Pool of the matrices ``stack[i]`` and the place of each in it."""
    shape = np.full((len(stack), 2), stack.shape[1:], np.int64)
    return own_pool(np.concatenate([np.asarray(stack, np.float64)], axis=None), shape)


def own_pool(data: FloatArray, shape: IntArray) -> tuple[Pool, IntArray]:
    """The same for the numbers of the matrices one after the other, which are nobody else's."""
    data += 0.0  # -0.0 and 0.0 are one number
    pool, number, _ = _interned(data, starts(shape), shape)
    return pool, number


def list_pool(
    items: Sequence[Any], root: Sequence[bool] | None, convert: Callable[[int], FloatArray]
) -> tuple[Pool, IntArray]:
    """Pool of ``convert(i)`` for all items, one object of roots, or of others, converted once.

    Without ``root``, the items are arrays of floats and are taken as they are.
    """
    alive = list(items)  # so that no two of them can have the same id
    key = np.fromiter(map(id, alive), np.int64, len(alive))
    if root is not None:
        key = 2 * key + np.fromiter(root, np.int64, len(alive))
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    new = np.zeros(len(alive), bool)
    new[first] = True  # in the order of the items: that of ids means nothing
    each = np.flatnonzero(new).tolist()
    matrices = [alive[i] for i in each] if root is None else [convert(i) for i in each]
    shapes = list(map(_SHAPE, matrices))
    kinds = {shape: i for i, shape in enumerate(dict.fromkeys(shapes))}
    which = np.fromiter(map(kinds.__getitem__, shapes), np.int64, len(shapes))
    shape = np.array([(1, *shape)[-2:] for shape in kinds], np.int64).reshape(-1, 2)[which]
    pool, number = own_pool(np.concatenate(matrices or [np.empty(0)], axis=None), shape)
    return pool, number[(np.cumsum(new) - 1)[first[place]]]


def take_pools(
    pools: Sequence[Pool], column: IntArray, row: IntArray | None = None
) -> tuple[list[Pool], IntArray, IntArray]:
    """Only the matrices that a column points to, in pools that lie beside each other.

    ``row`` gives, for each entry of the column, the only row to keep; -1 keeps all rows. Returns
    these pools, the column that points into them, and where each matrix was before.
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


def intern_pool(pool: Pool) -> tuple[Pool, IntArray, IntArray]:
    """Store equal matrices once.

    Returns the smaller pool, the place in it of each matrix, and the first matrix at each place.
    """
    return _interned(pool.data + 0.0, pool.start, pool.shape)  # -0.0 and 0.0 are one number


def _interned(
    data: FloatArray, start: IntArray, shape: IntArray
) -> tuple[Pool, IntArray, IntArray]:
    """The same for numbers that are nobody else's, without -0.0."""
    data.flags.writeable = False  # ours already: no copy needed
    number, first = intern_rows(frozen(data.view(np.int64)), frozen(start))
    if len(first) < len(shape):  # equal numbers may have different shapes
        number, first = intern_keys(np.column_stack([number, shape]))
    pool = Pool(data, start, shape)
    return (pool if len(first) == len(pool) else pool.take(first)), number, first


def intern_keys(key: IntArray) -> tuple[IntArray, IntArray]:
    """The number of each row of a table, equal rows numbered once, and the first row of each."""
    at = np.arange(len(key) + 1, dtype=np.int64) * key.shape[1]
    rows = np.ascontiguousarray(key, np.int64).reshape(-1)
    number, first = intern_rows(frozen(rows), frozen(at))
    return number, first


# -- names and numbers --------------------------------------------------------------------------


def label(x: object) -> str:
    """The name that a key stands for: 900, 900.0 and "900" are one state."""
    if type(x) is str:
        return x
    if isinstance(x, (float, np.floating)):
        number = float(x)
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
    if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        return str(int(x))
    return str(x)


def default_outside(outside: float | None, minimize: bool) -> float:
    """0 when maximizing; when minimizing there is no default, since 0 would beat every loss."""
    if outside is None and minimize:
        raise InvalidForest(
            "minimizing needs an outside option, since the default 0 would beat every loss. Give "
            "the loss of opening nothing, or outside=inf if something must be taken."
        )
    return 0.0 if outside is None else outside


def no_reward(minimize: bool) -> float:
    """The reward of a state that has none, and the outside option where something must be taken."""
    return np.inf if minimize else -np.inf


def whole_numbers(x: ArrayLike, name: str) -> IntArray:
    try:
        return np.array(np.asarray(x, dtype=None)).astype(np.int64, casting="same_kind")
    except (TypeError, ValueError) as error:
        if np.asarray(x).size == 0:
            return np.empty(0, np.int64)
        raise InvalidForest(
            f"`{name}` must hold whole numbers, but got {short(x)}. Give one integer per box."
        ) from error


def short(x: object) -> str:
    text = repr(x)
    return text if len(text) <= 60 else text[:57] + "..."


def _numbers(x: object, what: str) -> FloatArray:
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise InvalidForest(
            f"{what} must be one table of numbers, but its rows differ in length: {short(x)}."
        ) from error
    plain = array.dtype.kind in "iuf"
    if plain or all(isinstance(v, Real) and not isinstance(v, bool) for v in array.flat):
        return array.astype(np.float64)
    raise InvalidForest(f"{what} must be numbers, but got {short(x)}.")


# -- the forms of `Forest.from_arrays` ----------------------------------------------------------


def reward_columns(
    rewards: Any, states: Any, parent: IntArray, title: Sequence[object]
) -> tuple[Pool, IntArray, tuple[tuple[str, ...] | None, ...]]:
    """Rewards and names of states."""
    n = len(parent)
    if not isinstance(rewards, (Sequence, np.ndarray, range)):
        raise InvalidForest(
            f"`rewards` must be one vector, or one per box, but got {short(rewards)}."
        )
    if len(rewards) and not isinstance(rewards, np.ndarray) and not _nested(rewards[0]):
        rewards = _numbers(rewards, "`rewards`")
    if isinstance(rewards, np.ndarray) and rewards.ndim == 1 and rewards.dtype.kind in "iuf":
        pool, number = stack_pool(rewards.reshape(1, 1, -1))[0], np.zeros(n, np.int64)
    else:
        pool, number = matrix_columns("rewards", rewards, parent, title, "rewards")
    if states is None:
        return pool, number, (None,) * len(pool)
    if len(states) == 0 or not _nested(states[0]):  # one list for all boxes
        return pool, number, (tuple(map(label, states)),) * len(pool)
    _check_length(states, n, "states")
    lists = [None if s is None else tuple(map(label, s)) for s in states]
    rows: dict[tuple[int, tuple[str, ...] | None], int] = {}
    pairs = zip(number.tolist(), lists, strict=True)
    place = np.array([rows.setdefault(pair, len(rows)) for pair in pairs])
    return pool.take(np.array([r for r, _ in rows])), place, tuple(s for _, s in rows)


def matrix_columns(
    form: str, x: Any, parent: IntArray, title: Sequence[object], what: str
) -> tuple[Pool, IntArray]:
    """Laws, rewards, costs and the like, with one entry per box: as one array, or as a list."""
    n, root, stack = len(parent), parent < 0, _STACK[form]
    if form == "opening":  # also one number for all boxes
        x = np.full(n, float(x)) if isinstance(x, (int, float, np.number)) else x
        with suppress(ValueError):  # ragged
            array = np.asarray(x)
            x = array if array.shape == (n,) and array.dtype.kind in "iuf" else x
    if isinstance(x, np.ndarray) and (x.ndim, x.shape[:1]) == (stack, (n,)) and (
        x.dtype.kind in "iuf"
    ):  # fmt: skip
        return stack_pool(x.reshape(n, 1, -1)) if form != "law" else _stacked_laws(x, root, title)
    _check_length(x, n, what)
    # arrays of floats are taken as they are
    plain = isinstance(x, (list, tuple)) and set(map(type, x)) == {np.ndarray}
    if plain and form != "opening" and set(map(_DTYPE, x)) == {np.dtype(np.float64)}:
        ndim = np.fromiter(map(_NDIM, x), np.int64, n)
        plain = bool(((ndim == stack - 1) | ((ndim == 1) & root)).all())
    else:
        plain = False
    roots = root.tolist()
    return list_pool(
        x, None if plain else roots, lambda i: matrix_of(form, x[i], roots[i], title[i], what)
    )


def _stacked_laws(
    law: NDArray[Any], root: BoolArray, title: Sequence[object]
) -> tuple[Pool, IntArray]:
    n, rows, cols = law.shape
    uneven = np.flatnonzero(root)[(law[root] != law[root, :1]).any(axis=(1, 2))]
    if len(uneven):
        raise InvalidForest(
            f"a root's law must have equal rows in an array (n, k, k), but the rows of "
            f"law[{uneven[0]}] (box {title[uneven[0]]!r}) differ ({such(len(uneven), 'box')}). "
            f"Give a list with a vector for each root."
        )
    if not root.any() or rows == 1:
        return stack_pool(law)
    height = np.where(root, 1, rows)
    data = np.empty(int(height.sum()) * cols)  # filled without a copy in between
    flat = np.ascontiguousarray(law, np.float64).reshape(-1, cols)
    which = runs(np.arange(n) * rows, height)
    np.take(flat, which, axis=0, out=data.reshape(-1, cols), mode="clip")
    return own_pool(data, np.column_stack([height, np.full(n, cols)]))


def opening_matrix(entry: object, root: bool, called: str) -> FloatArray:
    """A number, a list or a matrix as a matrix; ``called`` is its name in messages."""
    c = _numbers(entry, called)
    if c.ndim > 2:
        raise InvalidForest(
            f"{called} must be a number, a vector or a matrix, but it has {c.ndim} dimensions."
        )
    return c if c.ndim == 2 else c.reshape((1, -1) if root or c.ndim == 0 else (-1, 1))


def matrix_of(form: str, x: object, root: bool, title: object, what: str) -> FloatArray:
    """A law, the rewards, or a cost and the like of one box as a matrix."""
    called = f"the {what} of box {title!r}"
    if form == "opening":
        return opening_matrix(x, root, called)
    m = _numbers(x, called)
    if m.ndim == 1 and (root or form == "rewards"):
        return m.reshape(1, -1)
    if form == "law" and m.ndim == 2:
        return m
    rule = f"the {what} of a box must be one vector"
    if form == "law":
        rule = "a root's law is a vector and a child's a matrix with a row for each state of the "
        rule += "parent"
    kind = "root" if root else "child"
    raise InvalidForest(
        f"{rule}, but box {title!r} (a {kind}) has a {what} of {m.ndim} dimensions."
    )


def _nested(x: object) -> bool:
    return x is None or (not isinstance(x, str) and np.ndim(x) > 0)  # type: ignore[arg-type]


def _check_length(x: Sequence[object], n: int, what: str) -> None:
    has = len(x) if hasattr(x, "__len__") else None
    if has != n:
        found = f"got {short(x)}" if has is None else f"there are {has} for {counted(n, 'box')}"
        raise InvalidForest(f"`{what}` must have one entry per box, but {found}.")
