"""Cutting a forest by its columns, and comparing what two forests describe."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import IntArray
from .columns import whole_numbers
from .pools import concat_pools, intern_pool, take_pools

if TYPE_CHECKING:
    from .model import Forest

BY_BOX = ("law", "reward", "cost", "count", "endless")  # columns with an entry for each box
POOLS = {  # and what some of them point into
    "law": ("laws",),
    "reward": ("rewards",),
    "cost": ("costs", "factors", "durations"),
}
_STORED = {"parent", "state_names", *BY_BOX, *(p for pools in POOLS.values() for p in pools)}


def fields_of(forest: Any) -> list[str]:
    """The fields that describe a forest."""
    return [f for f in forest.__dataclass_fields__ if not f.startswith("_")]


def taken(
    forest: Forest,
    boxes: ArrayLike,
    parent: ArrayLike | None,
    after: ArrayLike | None,
    given: Container[str],
) -> dict[str, Any]:
    """The fields of a forest made of boxes of this one; see :meth:`Forest.take`.

    Pools keep only what is needed, if boxes are left out; what is ``given`` is left as it is.
    """
    which = whole_numbers(boxes, "boxes")
    fewer = len(which) < len(forest) or after is not None
    fields: dict[str, Any] = {name: getattr(forest, name) for name in fields_of(forest)}
    for name in BY_BOX:
        fields[name] = fields[name][which]
    if forest.names is not None and "names" not in given:
        fields["names"] = tuple(forest.names[v] for v in which.tolist())
    for name in POOLS if fewer else ():
        there = [p for p in POOLS[name] if fields[p] is not None]
        if name not in given:
            rows = None if after is None or name == "reward" else np.asarray(after)
            found, fields[name], kept = take_pools([fields[p] for p in there], fields[name], rows)
            fields |= dict(zip(there, found, strict=True))
            if name == "reward":
                fields["state_names"] = tuple(forest.state_names[i] for i in kept.tolist())
    fields["parent"] = places_of_parents(forest, which) if parent is None else parent
    return fields


def places_of_parents(forest: Forest, boxes: IntArray) -> IntArray:
    """The places in ``boxes`` of their own parents; -1 for those that are not there."""
    place = np.full(len(forest) + 1, -1, np.int64)
    place[boxes] = np.arange(len(boxes))
    return np.asarray(place[forest.parent[boxes]])  # -1 looks at the spare entry


def same(one: Forest, other: Forest) -> bool:
    """Whether two forests describe the same boxes, however they are stored."""
    plain = [f for f in fields_of(one) if f not in _STORED]
    columns = [f for f in ("parent", *BY_BOX) if f not in POOLS]
    return (
        len(one) == len(other)
        and all(getattr(one, f) == getattr(other, f) for f in plain)
        and all(np.array_equal(getattr(one, f), getattr(other, f)) for f in columns)
        and all(_alike(one, other, column) for column in POOLS)
    )


def _alike(one: Forest, other: Forest, column: str) -> bool:
    """Whether a column points at equal matrices (and equally named states) in two forests."""
    a, b = getattr(one, column), getattr(other, column)
    for name in POOLS[column]:
        pools = [getattr(one, name), getattr(other, name)]
        if pools[0] is None or pools[1] is None:
            if pools[0] is not pools[1]:
                return False
            continue
        _, number, _ = intern_pool(concat_pools(pools))
        if (number[a] != number[len(pools[0]) + b]).any():
            return False
    if column != "reward":
        return True
    pairs = np.unique(np.column_stack([a, b]), axis=0).tolist()
    return all(one.state_names[i] == other.state_names[j] for i, j in pairs)
