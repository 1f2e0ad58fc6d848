"""Turning what users give into the columns of a forest."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from numbers import Real
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._common.arrays import BoolArray, FloatArray, IntArray
from .._common.numbers import counted, such
from ..errors import InvalidForest
from .pools import Pool, list_pool, own_pool, runs, stack_pool

_DTYPE, _NDIM = attrgetter("dtype"), attrgetter("ndim")
_STACK = {"law": 3, "rewards": 2, "opening": 1}  # dimensions of an array with an entry for each box


def label(x: object) -> str:
    """The name that a key stands for: 900, 900.0 and "900" are one state."""
    if isinstance(x, str):
        return x
    if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        return str(int(x))
    if isinstance(x, (float, np.floating)):
        number = float(x)
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
    return str(x)


def default_outside(outside: float | None, minimize: bool) -> float:
    """0 when maximizing; when minimizing there is no default, since 0 would beat every loss."""
    if outside is not None:
        return outside
    if minimize:
        raise InvalidForest(
            "minimizing needs an outside option, since the default 0 would beat every loss. Give "
            "the loss of opening nothing, or outside=inf if something must be taken."
        )
    return 0.0


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


def titles(names: Sequence[object] | None, n: int) -> Sequence[object]:
    """What to call the boxes in messages, before the names themselves are checked."""
    return names if names is not None and len(names) == n else range(n)


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


def reward_columns(
    rewards: Any, states: Any, parent: IntArray, title: Sequence[object]
) -> tuple[Pool, IntArray, tuple[tuple[str, ...] | None, ...]]:
    """Rewards and names of states in any of the forms of `Forest.from_arrays`."""
    n = len(parent)
    if not isinstance(rewards, (Sequence, np.ndarray, range)):
        raise InvalidForest(
            f"`rewards` must be one vector, or one per box, but got {short(rewards)}."
        )
    if len(rewards) and not isinstance(rewards, np.ndarray) and not _nested(rewards[0]):
        rewards = _numbers(rewards, "`rewards`")
    if isinstance(rewards, np.ndarray) and rewards.ndim == 1 and rewards.dtype.kind in "iuf":
        pool, _ = stack_pool(rewards.reshape(1, 1, -1))
        number = np.zeros(n, np.int64)
    else:
        pool, number = matrix_columns("rewards", rewards, parent, title, "rewards")
    if states is None:
        return pool, number, (None,) * len(pool)
    if len(states) == 0 or not _nested(states[0]):  # one list for all boxes
        return pool, number, (tuple(map(label, states)),) * len(pool)
    _check_length(states, n, "states")
    lists = [None if s is None else tuple(map(label, s)) for s in states]
    rows: dict[tuple[int, tuple[str, ...] | None], int] = {}
    place = np.array(
        [rows.setdefault((int(r), s), len(rows)) for r, s in zip(number, lists, strict=True)]
    )
    return pool.take(np.array([r for r, _ in rows])), place, tuple(s for _, s in rows)


def matrix_columns(
    form: str, x: Any, parent: IntArray, title: Sequence[object], what: str
) -> tuple[Pool, IntArray]:
    """Laws, rewards, costs and the like, with one entry per box: as one array, or as a list."""
    n, root = len(parent), parent < 0
    if form == "opening":  # also one number for all boxes
        x = np.full(n, float(x)) if isinstance(x, (int, float, np.number)) else x
        with suppress(ValueError):  # ragged
            array = np.asarray(x)
            x = array if array.shape == (n,) and array.dtype.kind in "iuf" else x
    if (
        isinstance(x, np.ndarray)
        and x.ndim == _STACK[form]
        and len(x) == n
        and x.dtype.kind in "iuf"
    ):
        return stack_pool(x.reshape(n, 1, -1)) if form != "law" else _stacked_laws(x, root, title)
    _check_length(x, n, what)
    # arrays of floats are taken as they are
    plain = isinstance(x, (list, tuple)) and set(map(type, x)) == {np.ndarray}
    if plain and form != "opening" and set(map(_DTYPE, x)) == {np.dtype(np.float64)}:
        ndim = np.fromiter(map(_NDIM, x), np.int64, n)
        plain = bool(((ndim == _STACK[form] - 1) | ((ndim == 1) & root)).all())
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
    shape = np.column_stack([height, np.full(n, cols)])
    data = np.empty(int(height.sum()) * cols)  # filled without a copy in between
    flat = np.ascontiguousarray(law, np.float64).reshape(-1, cols)
    which = runs(np.arange(n) * rows, height)
    np.take(flat, which, axis=0, out=data.reshape(-1, cols), mode="clip")
    return own_pool(data, shape)


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
    if form == "rewards":
        raise InvalidForest(
            f"the {what} of a box must be one vector, but box {title!r} has {m.ndim} dimensions."
        )
    if m.ndim == 2:
        return m
    raise InvalidForest(
        f"a root's law is a vector and a child's a matrix with a row for each state of the "
        f"parent, but box {title!r} (a {'root' if root else 'child'}) has a law of {m.ndim} "
        f"dimensions."
    )


def _nested(x: object) -> bool:
    return x is None or (not isinstance(x, str) and np.ndim(x) > 0)  # type: ignore[arg-type]


def _check_length(x: Sequence[object], n: int, what: str) -> None:
    if not hasattr(x, "__len__"):
        raise InvalidForest(f"`{what}` must have one entry per box, but got {short(x)}.")
    if len(x) != n:
        raise InvalidForest(
            f"`{what}` must have one entry per box, but there are {len(x)} for {counted(n, 'box')}."
        )
