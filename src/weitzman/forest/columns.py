"""Turning what users give into the columns of a forest."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import BoolArray, FloatArray, IntArray
from .._common.numbers import counted, such
from ..errors import InvalidForest
from .pools import Pool, joined_pool, list_pool, stack_pool

_DTYPE, _NDIM, _SHAPE = attrgetter("dtype"), attrgetter("ndim"), attrgetter("shape")


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


def _is_stack(x: object, ndim: int, n: int) -> bool:
    return isinstance(x, np.ndarray) and x.ndim == ndim and len(x) == n and x.dtype.kind in "iuf"


def reward_columns(
    rewards: Any, states: Any, n: int, title: Sequence[object]
) -> tuple[Pool, IntArray, tuple[tuple[str, ...] | None, ...]]:
    if not isinstance(rewards, (Sequence, np.ndarray, range)):
        raise InvalidForest(
            f"`rewards` must be one vector, or one per box, but got {short(rewards)}."
        )
    if len(rewards) and not isinstance(rewards, np.ndarray) and not _nested(rewards[0]):
        rewards = np.asarray(_numbers(rewards, "`rewards`"))
    if isinstance(rewards, np.ndarray) and rewards.ndim == 1 and rewards.dtype.kind in "iuf":
        pool, _ = stack_pool(rewards.astype(np.float64).reshape(1, 1, -1))
        number = np.zeros(n, np.int64)
    elif _is_stack(rewards, 2, n):
        pool, number = stack_pool(rewards.astype(np.float64)[:, None, :])
    else:
        _check_length(rewards, n, "rewards")
        pool, number = list_pool(
            rewards,
            [False] * n,
            lambda i: matrix_of("rewards", rewards[i], False, title[i], "rewards"),
        )
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


def law_columns(
    law: Any, parent: IntArray, n: int, title: Sequence[object]
) -> tuple[Pool, IntArray]:
    """Laws in any of the forms of `Forest.from_arrays`."""
    roots = parent < 0
    if _is_stack(law, 3, n):
        uneven = np.flatnonzero(roots)[(law[roots] != law[roots, :1]).any(axis=(1, 2))]
        if len(uneven):
            raise InvalidForest(
                f"a root's law must have equal rows in an array (n, k, k), but the rows of "
                f"law[{uneven[0]}] (box {title[uneven[0]]!r}) differ ({such(len(uneven), 'box')}). "
                f"Give a list with a vector for each root."
            )
        if not roots.any() or law.shape[1] == 1:
            return stack_pool(law)
        stems, branches = law[roots, :1], law[~roots]
        shape = np.repeat([stems.shape[1:], branches.shape[1:]], [len(stems), len(branches)], 0)
        pool, place = joined_pool([stems, branches], shape)
        number = np.empty(n, np.int64)
        number[roots], number[~roots] = place[: len(stems)], place[len(stems) :]
        return pool, number
    _check_length(law, n, "law")
    if _all_arrays(law, roots):  # taken as they are, each object once
        once = {id(m): m for m in law}
        distinct = law if len(once) == n else list(once.values())
        kinds = {shape: i for i, shape in enumerate(dict.fromkeys(map(_SHAPE, distinct)))}
        which = np.fromiter(map(kinds.__getitem__, map(_SHAPE, distinct)), np.int64, len(distinct))
        rows_and_columns = np.array([(1, *shape)[-2:] for shape in kinds], np.int64)
        pool, number = joined_pool(distinct, rows_and_columns[which])
        if distinct is law:
            return pool, number
        place_of = {key: i for i, key in enumerate(once)}
        return pool, number[np.fromiter(map(place_of.__getitem__, map(id, law)), np.int64, n)]
    root = roots.tolist()
    return list_pool(law, root, lambda i: matrix_of("law", law[i], root[i], title[i], "law"))


def _all_arrays(law: Any, roots: BoolArray) -> bool:
    """Whether all laws are arrays of floats with the right number of dimensions."""
    if not isinstance(law, (list, tuple)):
        return False
    if set(map(type, law)) != {np.ndarray} or set(map(_DTYPE, law)) != {np.dtype(np.float64)}:
        return False
    ndim = np.fromiter(map(_NDIM, law), np.int64, len(law))
    return bool(((ndim == 2) | ((ndim == 1) & roots)).all())


def opening_columns(
    entries: Any, parent: IntArray, n: int, title: Sequence[object], what: str = "cost"
) -> tuple[Pool, IntArray]:
    """Costs, factors or durations: a number for all, or one entry per box."""
    if isinstance(entries, (int, float, np.number)):
        entries = np.full(n, float(entries))
    try:
        plain = np.asarray(entries)
        is_plain = plain.shape == (n,) and plain.dtype.kind in "iuf"
    except ValueError:  # ragged
        is_plain = False
    if is_plain:
        return stack_pool(plain.astype(np.float64).reshape(n, 1, 1))
    _check_length(entries, n, what)

    root = (parent < 0).tolist()
    return list_pool(
        entries, root, lambda i: matrix_of("opening", entries[i], root[i], title[i], what)
    )


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
