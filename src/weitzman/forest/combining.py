"""Forests out of forests: several side by side, and copies written out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from .._common.arrays import IntArray
from .._common.numbers import such
from .._kernels.structure import postorder
from ..errors import InvalidForest
from .columns import whole_numbers
from .model import Forest
from .pools import Pool, concat_pools, intern_pool
from .rules import MAX_COUNT


def side_by_side(
    *forests: Forest | Iterable[Forest],
    counts: Sequence[int] | None = None,
    outside: float | None = None,
) -> Forest:
    """Several lines, or any forests, side by side in one.

    Parameters
    ----------
    *forests : Forest or iterable of Forest
    counts : optional
        How many copies of each.
    outside : float, optional
        Needed where the outside options of the forests differ.

    Returns
    -------
    Forest
        The boxes keep their order. Names stay if they all differ; otherwise each name begins with
        the number of its forest: ``"1/B"`` is box B of the second forest.

    Examples
    --------
    >>> import weitzman
    >>> one = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> two = weitzman.line([[0.5, 0.5]], rewards=[0, 20], cost=1)
    >>> weitzman.solve(weitzman.side_by_side(one, two)).value
    11.0
    """
    parts = list(chain.from_iterable([f] if isinstance(f, Forest) else f for f in forests))
    if not parts:
        raise InvalidForest("a forest needs at least one box, but no forests were given.")
    number: dict[int, int] = {}
    which = [number.setdefault(id(f), len(number)) for f in parts]  # a forest given twice: once
    distinct = list({id(f): f for f in parts}.values())
    size = np.array([len(f) for f in parts])
    parent = np.concatenate([f.parent for f in parts])
    offset = np.repeat(np.cumsum(size) - size, size)
    laws, law, _ = _merge([f.laws for f in distinct], [f.law for f in distinct], which)
    terms, beside = _common_terms(distinct)
    costs, cost, kept = _merge(
        [f.costs for f in distinct], [f.cost for f in distinct], which,
        None if beside is None else intern_pool(beside)[1],
    )  # fmt: skip
    if beside is not None:
        terms["factors" if terms["rate"] is None else "durations"] = beside.take(kept)
    state_names = list(chain.from_iterable(f.state_names for f in distinct))
    known: dict[tuple[str, ...] | None, int] = {}
    tag = np.array([known.setdefault(names, len(known)) for names in state_names])
    rewards, reward, first = _merge(
        [f.rewards for f in distinct], [f.reward for f in distinct], which, tag
    )
    return Forest(
        parent=np.where(parent < 0, -1, parent + offset),
        law=law,
        reward=reward,
        cost=cost,
        laws=laws,
        rewards=rewards,
        costs=costs,
        count=_multiply(parts, counts),
        endless=np.concatenate([f.endless for f in parts]),
        outside=_common_outside(parts, outside),
        minimize=_common_sense(parts),
        unit=parts[0].unit if len({f.unit for f in parts}) == 1 else "",
        stated_error=_common_error(parts, counts),
        names=_join_names(parts),
        state_names=tuple(state_names[i] for i in first),
        **terms,
    )


def expand(forest: Forest, limit: int = 100_000) -> Forest:
    """The same forest with every copy written out as a box of its own.

    Parameters
    ----------
    forest : Forest
    limit : int
        Refuse to make more boxes than this.

    Returns
    -------
    Forest
        All counts are 1. Copies of box B are called ``"B#1"``, ``"B#2"`` and so on.

    Examples
    --------
    >>> import weitzman
    >>> three = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=3)
    >>> len(three), len(weitzman.forest.expand(three))
    (1, 3)
    """
    forest.must_end("writing out copies")
    boxes = forest.boxes
    if boxes > limit:
        raise InvalidForest(
            f"with all copies written out this forest has {boxes} boxes, more than the limit of "
            f"{limit}. Raise `limit`, or leave the copies as counts: solving needs nothing else."
        )
    if boxes == len(forest):
        return forest
    copies = np.ones(len(forest), np.int64)
    for v in postorder(forest.parent)[0][::-1]:
        up = forest.parent[v]
        copies[v] = forest.count[v] * (copies[up] if up >= 0 else 1)
    start = np.cumsum(copies) - copies
    box = np.repeat(np.arange(len(forest)), copies)
    copy = np.arange(boxes) - start[box]
    up = forest.parent[box]
    return forest.take(
        box,
        parent=np.where(up < 0, -1, start[up] + copy // forest.count[box]),
        count=np.ones(boxes, np.int64),
        names=None if forest.names is None else _copy_names(forest.names, copies, box, copy),
    )


def _copy_names(
    names: tuple[str, ...], copies: IntArray, box: IntArray, copy: IntArray
) -> tuple[str, ...]:
    several = (copies > 1).tolist()
    pairs = list(zip(box.tolist(), copy.tolist(), strict=True))
    mark = "#"
    while True:  # until no box was called so before
        new = tuple(f"{names[v]}{mark}{c + 1}" if several[v] else names[v] for v, c in pairs)
        if len(set(new)) == len(new):
            return new
        mark += "#"


# -- parts of `side_by_side` ------------------------------------------------------------------


def _merge(
    pools: Sequence[Pool],
    columns: Sequence[IntArray],
    which: Sequence[int],
    tag: IntArray | None = None,
) -> tuple[Pool, IntArray, IntArray]:
    """One pool for all, the column that points into it, and where each matrix came from.

    ``which[j]`` is the pool and column of part j.
    """
    pool, number, first = intern_pool(concat_pools(pools), tag)
    at = np.cumsum([0, *map(len, pools)])
    moved = [number[column + a] for column, a in zip(columns, at, strict=False)]
    return pool, np.concatenate([moved[i] for i in which]), first


def _multiply(parts: Sequence[Forest], counts: Sequence[int] | None) -> IntArray:
    count = np.concatenate([f.count for f in parts])
    if counts is None:
        return count
    times = whole_numbers(counts, "counts")
    if times.shape != (len(parts),):
        raise InvalidForest(
            f"`counts` must have one entry per forest, but has {times.size} for {len(parts)}."
        )
    bad = np.flatnonzero((times < 1) | (times > MAX_COUNT))
    if len(bad):
        raise InvalidForest(
            f"a count must be from 1 to {MAX_COUNT}, but that of forest {bad[0]} is "
            f"{times[bad[0]]} "
            f"({such(len(bad), 'count')}). Leave out a forest of which there are none."
        )
    root = np.concatenate([f.parent for f in parts]) < 0
    copies = np.where(root, np.repeat(times, [len(f) for f in parts]), 1)
    if (count > MAX_COUNT // copies).any():
        raise InvalidForest(
            f"there may be at most {MAX_COUNT} copies of a root, but `counts` makes them "
            f"{float(np.max(count.astype(float) * copies)):.3g}."
        )
    return count * copies


def _common_outside(parts: Sequence[Forest], outside: float | None) -> float:
    if outside is not None:
        return outside
    options = np.array([f.outside for f in parts])
    other = np.flatnonzero(options != options[0])
    if len(other):
        raise InvalidForest(
            f"the forests must have one outside option, but that of the first is {options[0]:g} "
            f"and that of forest {other[0]} is {options[other[0]]:g} "
            f"({such(len(other), 'forest')}). Give `outside`."
        )
    return float(options[0])


def _common_error(parts: Sequence[Forest], counts: Sequence[int] | None) -> float:
    """The errors of all parts, each counted once per copy of the part."""
    copies = [1] * len(parts) if counts is None else list(counts)
    return float(sum(n * f.stated_error for n, f in zip(copies, parts, strict=True)))


def _common_terms(parts: Sequence[Forest]) -> tuple[dict[str, Any], Pool | None]:
    """Rate, risk tolerance and prizes that all share, and the factors or durations of all."""
    terms: dict[str, Any] = {}
    for name in ("rate", "risk_tolerance", "prizes"):
        each = [getattr(f, name) for f in parts]
        other = [i for i, x in enumerate(each) if x != each[0]]
        if other:
            raise InvalidForest(
                f"the forests must have one `{name}`, but that of the first is {each[0]} and that "
                f"of forest {other[0]} is {each[other[0]]} ({such(len(other), 'forest')})."
            )
        terms[name] = each[0]
    pools = [f.factors if terms["rate"] is None else f.durations for f in parts]
    there = [p for p in pools if p is not None]
    if not there:
        return terms, None
    plain = [
        p or Pool(np.ones(n), np.arange(n + 1), np.ones((n, 2), np.int64))
        for p, n in zip(pools, (len(f.costs) for f in parts), strict=True)
    ]
    return terms, concat_pools(plain)


def _common_sense(parts: Sequence[Forest]) -> bool:
    other = [i for i, f in enumerate(parts) if f.minimize != parts[0].minimize]
    if other:
        raise InvalidForest(
            f"the forests must all maximize or all minimize, but forest {other[0]} does not do as "
            f"the first ({such(len(other), 'forest')}). Change the signs of its rewards."
        )
    return parts[0].minimize


def _join_names(parts: Sequence[Forest]) -> tuple[str, ...] | None:
    if all(f.names is None for f in parts):
        return None
    each = [f.names or tuple(map(str, range(len(f)))) for f in parts]
    names = tuple(chain.from_iterable(each))
    if len(set(names)) == len(names):
        return names
    return tuple(f"{i}/{name}" for i, own in enumerate(each) for name in own)
