"""An index policy as columns: what to open next is a lookup.

The rule, for the optimal policy and for any other that ranks boxes by a number: open the available
box with the highest index while that exceeds the best reward so far; otherwise stop. Ties: among
equal indices, the box of lowest number comes first; among its copies, the one whose parent showed
the state of lowest number, then the first copy. If an index equals the best reward, stop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import FloatArray, IntArray
from .._common.numbers import such
from .._common.text import ROWS, columns_html
from ..errors import InvalidArgument
from ..forest.model import Forest

Indices = (
    float
    | Mapping[str | int, float | Mapping[str | int | float, float]]
    | Callable[[str, str | None], float]
)
"""Indices in the forms in which people have them."""


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

    def _repr_html_(self) -> str:
        """The indices for a notebook, one row for each box and state of its parent."""
        f, rows = self.forest, []
        for v in range(min(len(f), ROWS)):
            up, at = int(f.parent[v]), int(self.index_at[v])
            for s, state in enumerate(("",) if up < 0 else f.states(up)):
                after = f"{f.name(up)} = {state}" if state else ""
                rows.append((f.name(v), after, f.amounts(f.sign * float(self.index[at + s]))))
        head = f"Open the box with the {'lowest' if f.minimize else 'highest'} index."
        columns = zip(*rows, strict=True) if rows else ((), (), ())
        return columns_html(head, dict(zip(("box", "after", "index"), columns, strict=True)))

    @classmethod
    def of(
        cls, forest: Forest, indices: Indices | ArrayLike, index: ArrayLike | None = None
    ) -> Policy:
        """A policy from any indices, in the user's sign: lower is better when minimizing.

        Parameters
        ----------
        forest : Forest
        indices : number, {box: number}, {box: {state: number}}, function, or array of int
            A number for all boxes; a number for each box, by its name or number; a number for each
            box and state of its parent; or a function of the name of a box and the name of its
            parent's state (None for a root). With ``index``: where the numbers of each box start.
        index : array of float, optional
            One number for each box and state of its parent.

        Examples
        --------
        >>> import weitzman
        >>> boxes = weitzman.Builder().add("A", cost=1, outcomes={"good": 0.5, "bad": 0.5},
        ...                                rewards={"good": 5, "bad": 0})
        >>> boxes = boxes.add("B", parent="A", cost=1, outcomes={0: 0.5, 9: 0.5}).build()
        >>> cautious = Policy.of(boxes, {"A": 3.0, "B": {"good": 2.0, "bad": 6.0}})
        >>> round(weitzman.evaluate(cautious).reward, 3)
        4.75
        """
        sign = forest.sign
        index_at, index = _listed(forest, indices) if index is None else (indices, index)
        index_at, signed = _checked(forest, index_at, index)
        signed = sign * signed
        roots = forest.roots
        by = np.argsort(-signed[index_at[roots]], kind="stable")
        above, below = forest.parent, np.arange(len(forest))
        if forest.endless.any():
            again = np.flatnonzero(forest.endless)
            above, below = np.concatenate([above, again]), np.concatenate([below, again])
        by_parent = np.argsort(above, kind="stable")
        sizes = np.bincount(above + 1, minlength=len(forest) + 1)
        columns: dict[str, Any] = {
            "index_at": index_at,
            "index": signed,
            "rewards": sign * forest.rewards.data,
            "root": roots[by],
            "child_at": np.concatenate([[0], np.cumsum(sizes[1:])]).astype(np.int64),
            "child": below[by_parent[len(roots) :]],
        }
        for column in columns.values():
            column.flags.writeable = False
        return cls(forest=forest, outside=sign * forest.outside, **columns)


def _listed(forest: Forest, given: Any) -> tuple[IntArray, FloatArray]:
    """Indices given by box and state, one after the other."""
    rows = forest.laws.shape[forest.law, 0]
    at = np.cumsum(rows) - rows
    if callable(given):
        found = [
            given(forest.name(v), None if up < 0 else state)
            for v, up in enumerate(forest.parent.tolist())
            for state in (forest.states(up) if up >= 0 else ("",))
        ]
        return at, _numbers(found, "the function")
    if not isinstance(given, Mapping):
        if np.iterable(given) and not isinstance(given, str):
            raise InvalidArgument(
                f"`indices` must be a number, a mapping by box or a function, but it is a "
                f"{type(given).__name__}. Give one number for each box as dict(enumerate(numbers))."
            )
        return at, np.repeat(_numbers([given], "`indices`"), int(rows.sum()))
    listed = np.full(int(rows.sum()), np.nan)
    for box, numbers in given.items():
        v = forest.box(box)
        own = listed[at[v] : at[v] + rows[v]]
        if not isinstance(numbers, Mapping):
            own[:] = _numbers([numbers], f"box {forest.name(v)!r}")
        elif forest.parent[v] < 0:
            raise InvalidArgument(f"box {forest.name(v)!r} has no parent: give it one number.")
        else:
            states = [forest.state(int(forest.parent[v]), state) for state in numbers]
            own[states] = _numbers(list(numbers.values()), f"box {forest.name(v)!r}")
    left = np.flatnonzero(np.add.reduceat(np.isnan(listed), at))
    if len(left):
        raise InvalidArgument(
            f"every box needs an index after every state of its parent, but "
            f"{forest.name(int(left[0]))!r} lacks one ({such(len(left), 'box')}). Give -inf (inf "
            f"when minimizing) to a box that is never opened."
        )
    return at, listed


def _numbers(given: Any, whose: str) -> FloatArray:
    try:
        found = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(f"indices must be numbers, but those of {whose} are not.") from None
    if np.isnan(found).any():
        raise InvalidArgument(f"indices must be numbers, but {whose} gives nan.")
    return found


def _checked(forest: Forest, index_at: Any, index: Any) -> tuple[IntArray, FloatArray]:
    """Indices in the form of columns."""
    at, numbers = np.array(index_at), _numbers(index, "`index`")
    if at.dtype.kind not in "iu" or at.shape != (len(forest),) or numbers.ndim != 1:
        raise InvalidArgument(
            f"`index_at` must have a whole number for each of {len(forest)} boxes and `index` one "
            f"dimension, but their shapes are {at.shape} ({at.dtype}) and {numbers.shape}."
        )
    rows = forest.laws.shape[forest.law, 0]
    wrong = np.flatnonzero((at < 0) | (at + rows > len(numbers)))
    if len(wrong):
        v = int(wrong[0])
        raise InvalidArgument(
            f"`index` must have a number for each state of the parent of each box: "
            f"{rows[v]} of box {forest.name(v)!r} from place {at[v]} on, but it has "
            f"{len(numbers)} in all ({such(len(wrong), 'box')})."
        )
    return at.astype(np.int64), numbers
