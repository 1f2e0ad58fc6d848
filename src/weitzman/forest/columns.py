"""Turning what users give into the columns of a forest."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import FloatArray, IntArray
from .._common.numbers import counted, such
from ..errors import InvalidForest
from .pools import Pool, concat_pools, joined_pool, list_pool, stack_pool

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
    shared_states = states is not None and (len(states) == 0 or not _nested(states[0]))
    if len(rewards) and not isinstance(rewards, np.ndarray) and not _nested(rewards[0]):
        rewards = np.asarray(_numbers(rewards, "`rewards`"))
    if isinstance(rewards, np.ndarray) and rewards.ndim == 1 and rewards.dtype.kind in "iuf":
        pool, place = stack_pool(rewards.astype(np.float64).reshape(1, 1, -1))
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
    if shared_states:
        given = tuple(label(x) for x in states)
        return pool, number, (given,) * len(pool)
    _check_length(states, n, "states")
    lists = [None if s is None else tuple(label(x) for x in s) for s in states]
    rows: dict[tuple[int, tuple[str, ...] | None], int] = {}
    place = np.array(
        [rows.setdefault((int(r), s), len(rows)) for r, s in zip(number, lists, strict=True)]
    )
    stacked = [pool[r] for r, _ in rows]
    shape = np.array([m.shape for m in stacked], np.int64)
    start = np.concatenate([[0], np.cumsum(shape[:, 1])])
    data = np.concatenate([m.reshape(-1) for m in stacked])
    return Pool(data, start, shape), place, tuple(s for _, s in rows)


def law_columns(
    law: Any, parent: IntArray, n: int, title: Sequence[object], initial: Any = None
) -> tuple[Pool, IntArray]:
    """Laws in any of the forms of `Forest.from_arrays`."""
    if initial is not None:
        return _with_initial(law, parent, _numbers(initial, "`initial`"))
    if _is_stack(law, 3, n):
        roots = np.flatnonzero(parent < 0)
        uneven = roots[(law[roots] != law[roots, :1]).any(axis=(1, 2))]
        if len(uneven):
            raise InvalidForest(
                f"a root's law must have equal rows in an array (n, k, k), but the rows of "
                f"law[{uneven[0]}] (box {title[uneven[0]]!r}) differ ({such(len(uneven), 'box')}). "
                f"Give a list with a vector for each root."
            )
        if len(roots) == 0 or law.shape[1] == 1:
            return stack_pool(law)
        return _side_by_side(law[roots, :1], law[parent >= 0], parent)
    _check_length(law, n, "law")
    if _all_arrays(law, parent):
        return _array_pool(law)

    root = (parent < 0).tolist()
    return list_pool(law, root, lambda i: matrix_of("law", law[i], root[i], title[i], "law"))


def _side_by_side(
    stems: FloatArray, branches: FloatArray, parent: IntArray
) -> tuple[Pool, IntArray]:
    """The laws of the roots (r, 1, k), and of all other boxes (n - r, k, k)."""
    shape = np.repeat([stems.shape[1:], branches.shape[1:]], [len(stems), len(branches)], axis=0)
    pool, place = joined_pool([stems, branches], shape)
    number = np.empty(len(parent), np.int64)
    number[parent < 0], number[parent >= 0] = place[: len(stems)], place[len(stems) :]
    return pool, number


def _with_initial(law: Any, parent: IntArray, initial: FloatArray) -> tuple[Pool, IntArray]:
    """One vector for all roots, or one for each; one matrix for all other boxes, or a stack."""
    roots, n = int((parent < 0).sum()), len(parent)
    stems = np.tile(initial, (roots, 1)) if initial.ndim == 1 else initial
    if stems.ndim != 2 or len(stems) != roots:
        raise InvalidForest(
            f"`initial` must be one vector, or one for each of the {roots} roots, but its shape is "
            f"{initial.shape}."
        )
    matrices = _numbers(law, "`law`, with `initial` given,")
    if matrices.ndim == 3 and len(matrices) == n:
        branches = matrices[parent >= 0]
    elif matrices.ndim == 2:
        branches = np.broadcast_to(matrices, (n - roots, *matrices.shape))
    else:
        raise InvalidForest(
            f"with `initial`, `law` must be one matrix for all boxes below a root, or an array "
            f"of shape ({n}, k, k), in which roots are not looked at, but its shape is "
            f"{matrices.shape}."
        )
    if matrices.ndim == 2 and n > roots:  # kept once
        pool, number = stack_pool(stems[:, None])
        whole = concat_pools([pool, stack_pool(matrices[None])[0]])
        column = np.full(n, len(pool))
        column[parent < 0] = number
        return whole, column
    return _side_by_side(stems[:, None], branches, parent)


def _all_arrays(law: Any, parent: IntArray) -> bool:
    """Whether all laws are arrays of floats with the right number of dimensions."""
    if not isinstance(law, (list, tuple)):
        return False
    if set(map(type, law)) != {np.ndarray} or set(map(_DTYPE, law)) != {np.dtype(np.float64)}:
        return False
    ndim = np.fromiter(map(_NDIM, law), np.int64, len(law))
    return bool(((ndim == 2) | ((ndim == 1) & (parent < 0))).all())


def _array_pool(law: Sequence[FloatArray]) -> tuple[Pool, IntArray]:
    """The laws as they are, each object once."""
    if len(set(map(id, law))) == len(law):
        return joined_pool(law, _shapes(law))
    once = {id(m): m for m in law}
    distinct = list(once.values())
    pool, number = joined_pool(distinct, _shapes(distinct))
    place = {key: i for i, key in enumerate(once)}
    return pool, number[np.fromiter(map(place.__getitem__, map(id, law)), np.int64, len(law))]


def _shapes(matrices: Sequence[FloatArray]) -> IntArray:
    """Rows and columns of matrices, of which few have different shapes; a vector is one row."""
    every = list(map(_SHAPE, matrices))
    kinds = list(dict.fromkeys(every))
    place = {kind: i for i, kind in enumerate(kinds)}
    which = np.fromiter(map(place.__getitem__, every), np.int64, len(every))
    return np.array([(1, *kind)[-2:] for kind in kinds], np.int64)[which]


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

    def convert(i: int) -> FloatArray:
        return as_entry(entries[i], parent[i] < 0, title[i], what)

    return list_pool(entries, (parent < 0).tolist(), convert)


def as_entry(entry: object, root: bool, title: object, what: str = "cost") -> FloatArray:
    """A cost, factor or duration of a box as a matrix."""
    return opening_matrix(entry, root, f"the {what} of box {title!r}")


def opening_matrix(entry: object, root: bool, called: str) -> FloatArray:
    """A number, a list or a matrix as a matrix; ``called`` is its name in messages."""
    c = _numbers(entry, called)
    if c.ndim == 0:
        return c.reshape(1, 1)
    if c.ndim == 1:
        return c.reshape(1, -1) if root else c.reshape(-1, 1)
    if c.ndim == 2:
        return c
    raise InvalidForest(
        f"{called} must be a number, a vector or a matrix, but it has {c.ndim} dimensions."
    )


def matrix_of(form: str, x: object, root: bool, title: object, what: str) -> FloatArray:
    """A law, the rewards, or a cost and the like of one box as a matrix."""
    if form == "opening":
        return as_entry(x, root, title, what)
    m = _numbers(x, f"the {what} of box {title!r}")
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
