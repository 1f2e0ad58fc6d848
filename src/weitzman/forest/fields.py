"""What a field of a problem is, and everything that is done with a field whatever it means.

:class:`~weitzman.Forest` declares each of its fields once. The loops over these declarations are
here (take boxes, lay forests side by side, compare) and in the package ``files``. None of them
names a field, so a field that is added to the class survives all of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import IntArray
from .._common.numbers import such
from ..errors import InvalidForest
from .columns import (
    Pool,
    concat_pools,
    intern_keys,
    intern_pool,
    label,
    short,
    take_pools,
    whole_numbers,
)

MAX_COUNT = 2**53 - 1  # the last number up to which floats are exact

if TYPE_CHECKING:
    from .model import Forest

Form = Literal["parent", "names", "states", "law", "rewards", "opening", "entry", "setting"]
"""How the values of a field lie.

A ``law`` is a matrix (states of the parent, own states), ``rewards`` a row with an entry for each
own state, and an ``opening`` such as the cost a number, a column or a matrix of these shapes: all
are matrices in a pool. ``names`` and ``states`` are texts. An ``entry`` is one value for each box,
a ``setting`` one value for the whole problem.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Field:
    """The declaration of one field."""

    name: str  # in Python, and the attribute of a node or graph in NetworkX
    form: Form
    meaning: str  # in a sentence or two, for people
    stored: str = ""  # the attribute of the forest that holds it
    type: type = float  # of one value: int, float, bool, str or dict
    default: Any = None  # of a box or problem that does not say; None: nothing is said
    needed: bool = False  # every problem must say it
    key: str = ""  # in JSON documents
    words: Mapping[Any, str] = dataclasses.field(default_factory=dict)  # values as files write them
    headings: tuple[str, ...] = ()  # of its column, or its setting above a table; one is written
    schema: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of one value
    none: str | None = None  # what null in a file says, where Python has infinity
    term: str | None = None  # of a problem that says it, in messages: some functions reject it
    pointer: str = ""  # the column that tells which matrix belongs to each box
    implied_by: str = ""  # an attribute from which the values follow: then they are not written
    default_of: Callable[[Forest], Any] | None = None  # from a forest with the other settings
    always: bool = False  # files say it even if it has its default
    by_tree: bool = False  # all boxes of a tree have one value; the root alone may say it
    ranged: bool = False  # a spreadsheet may give a range or a distribution
    convert: Callable[[Any], Any] | None = None  # from what people give to what the forest stores
    # the setting where only some boxes are kept, from its value and the new columns
    kept: Callable[[Any, Mapping[str, Any]], Any] | None = None
    # the value for forests side by side, from the field, the forests and their counts
    join: Callable[[Field, Sequence[Forest], Sequence[int]], Any] | None = None
    # raises InvalidForest, or returns a value that replaces that of the forest (None: it stays)
    check: Callable[[Forest], Any] | None = None

    def given(self, forest: Forest) -> Any:
        """The stored value, or None where the forest says nothing beyond the default."""
        value = getattr(forest, self.stored)
        if value is None or (self.implied_by and getattr(forest, self.implied_by) is not None):
            return None
        if self.form == "entry" and not self.always and self.is_default(value):
            return None
        if self.form == "setting" and not self.always:
            default = self.default if self.default_of is None else self.default_of(forest)
            return None if value == default else value
        return value

    def is_default(self, column: Any) -> bool:
        """Whether all boxes have the default."""
        if isinstance(column, tuple):
            return set(column) <= {self.default}
        return bool((column == self.default).all())

    def normal(self, value: Any, n: int) -> Any:
        """A value as the forest holds it: read-only columns of n entries, settings of one type."""
        if self.form == "setting":
            if self.convert is not None:
                return self.convert(value)
            if (value is None and self.default is None) or self.type is not float:
                return value
            if not isinstance(value, (bool, np.bool_)):  # which float() would take for 0 or 1
                with suppress(TypeError, ValueError):
                    return float(value)
            raise InvalidForest(f"the {self.headings[0]} must be a number, but it is {value!r}.")
        if self.type is str:
            if isinstance(value, str) or not isinstance(value, Collection | None):
                raise InvalidForest(
                    f"`{self.name}` must have one text per box, not {short(value)}."
                )
            texts = value if value is None or type(value) is tuple else tuple(map(label, value))
            plain = texts is not None and self.form == "entry" and self.is_default(texts)
            return None if plain else texts
        if value is None or (self.default is not None and np.size(value) == 0):
            column: Any = np.full(n, self.default, self.type)
        elif self.type is int:
            column = whole_numbers(value, self.stored)
        else:
            column, kinds = np.array(value), "b" if self.type is bool else "iuf"
            if column.dtype.kind not in kinds:
                what = "True or False" if kinds == "b" else "a number"
                raise InvalidForest(
                    f"`{self.name}` must hold {what} per box, but got {short(value)}."
                )
            column = column.astype(self.type)
        column.flags.writeable = False
        return column

    def shown(self, value: Any) -> str:
        """A value for messages."""
        if self.type is dict:
            return ", ".join(f"{key}: {x}" for key, x in value) or "none"
        return f"{value:g}" if isinstance(value, float) else str(self.words.get(value, value))

    def plain(self, value: Any) -> Any:
        """A value of an entry or a setting as files write it."""
        if self.words:
            return self.words[value]
        if self.none is not None and not np.isfinite(value):
            return None
        return self.type(value)

    def taken(self, value: Any, boxes: IntArray) -> Any:
        """The values of some boxes."""
        if isinstance(value, tuple):
            return tuple(map(value.__getitem__, boxes.tolist()))
        return None if value is None else value[boxes]

    def replaced(self, forest: Forest, values: Mapping[int, Any]) -> list[Any]:
        """The column of a forest with new values for some boxes."""
        column = getattr(forest, self.stored)
        new = [self.default] * len(forest) if column is None else list(column)
        if self.by_tree:  # other boxes of these trees follow
            top = tops(forest.parent)
            for v in np.flatnonzero(np.isin(top, top[list(values)])).tolist():
                new[v] = self.default
        for b, x in values.items():
            new[b] = x
        return new


def per_box(name: str, meaning: str, *, form: Form = "entry", **more: Any) -> Any:
    """Declare a field with a value for each box."""
    return _declared(Field(name=name, form=form, meaning=meaning, **more))


def setting(meaning: str, default: Any, **more: Any) -> Any:
    """Declare a field with one value for the whole problem; its name is that of the attribute."""
    return _declared(Field(name="", form="setting", meaning=meaning, default=default, **more))


def _declared(field: Field) -> Any:
    at_first = field.default if field.form == "setting" and not field.default_of else None
    default = dataclasses.MISSING if field.needed else at_first
    return dataclasses.field(default=default, metadata={"field": field})


def declared(forest: type) -> tuple[Field, ...]:
    """All fields of a class of forests, those of boxes first."""
    if forest in _DECLARED:
        return _DECLARED[forest]
    found = []
    for one in dataclasses.fields(forest):
        if (field := one.metadata.get("field")) is not None:
            name = field.name or one.name
            more = {"key": field.key or name, "join": field.join or _joins.get(field.form)}
            headings = field.headings or (name.replace("_", " "),)
            found.append(replace(field, name=name, stored=one.name, headings=headings, **more))
    return _DECLARED.setdefault(forest, tuple(found))


_DECLARED: dict[type, tuple[Field, ...]] = {}


def stored(forest: Any) -> dict[str, Any]:
    """All that a forest holds, by attribute, as the class takes it."""
    return {f.name: getattr(forest, f.name) for f in dataclasses.fields(forest) if f.init}


def said(forest: Any) -> dict[str, Any]:
    """The settings beyond the defaults, as files write them, by key."""
    here = [one for one in declared(type(forest)) if one.form == "setting"]
    return {o.key: o.plain(x) for o in here if (x := o.given(forest)) is not None}


def changeable(forest: Any) -> dict[str, Any]:
    """The same, without settings that follow from others: those are found anew."""
    loose = [f.stored for f in declared(type(forest)) if f.default_of and f.given(forest) is None]
    return stored(forest) | dict.fromkeys(loose)


def _pools(forest: type) -> dict[str, tuple[Field, ...]]:
    """The columns that point into pools, and the fields whose matrices they point to."""
    found: dict[str, list[Field]] = {}
    for field in declared(forest):
        if field.pointer:
            found.setdefault(field.pointer, []).append(field)
    return {pointer: tuple(some) for pointer, some in found.items()}


def in_trees(forest: Forest, field: Field) -> Any:
    """The values of a field that all boxes of a tree share, where the roots alone say it too."""
    given, parent = getattr(forest, field.stored), forest.parent
    if given is None:
        return None
    top = tops(parent)
    code = {field.default: 0}
    each = np.array([code.setdefault(x, len(code)) for x in given])
    if len(each) < len(parent):  # said of the roots alone
        each = each[(np.cumsum(parent < 0) - 1)[top]]
    tree = np.zeros(len(parent), np.int64)
    np.maximum.at(tree, top, each)
    odd = np.flatnonzero((each > 0) & (each != tree[top]))
    if len(odd):
        v, values = int(odd[0]), list(code)
        raise InvalidForest(
            f"all boxes of a tree must have one {field.name}, but box {forest.name(v)!r} has "
            f"{values[each[v]]!r} in a tree with {values[tree[top[v]]]!r} "
            f"({such(len(odd), 'box')}). Give the {field.name} of the root alone."
        )
    values = list(code)
    return tuple(map(values.__getitem__, tree[top].tolist()))


def tops(parent: IntArray) -> IntArray:
    """The root above each box."""
    top = np.where(parent < 0, np.arange(len(parent)), parent)
    while (top[top] != top).any():  # each box looks twice as far up as in the round before
        top = top[top]
    return top


# -- boxes of a forest ------------------------------------------------------------------------


def taken(
    forest: Forest,
    boxes: ArrayLike,
    parent: ArrayLike | None,
    after: ArrayLike | None,
    given: Collection[str],
) -> dict[str, Any]:
    """What :meth:`Forest.take` holds. Pools keep only what is needed, if boxes are left out."""
    which = whole_numbers(boxes, "boxes")
    fewer = len(which) < len(forest) or after is not None
    held = changeable(forest)
    for field in declared(type(forest)):
        if field.form in ("entry", "names") and field.stored not in given:
            held[field.stored] = field.taken(held[field.stored], which)
    for pointer, fields in _pools(type(forest)).items():
        held[pointer] = held[pointer][which]
        if not fewer or pointer in given:
            continue
        there = [f for f in fields if isinstance(held[f.stored], Pool)]
        rows = None if after is None or there[0].form == "rewards" else np.asarray(after)
        pools, held[pointer], kept = take_pools(
            [held[f.stored] for f in there], held[pointer], rows
        )
        held |= {f.stored: pool for f, pool in zip(there, pools, strict=True)}
        for f in fields:
            if f.form == "states":  # a text for each column of a matrix lies beside the pool
                held[f.stored] = f.taken(held[f.stored], kept)
    held["parent"] = places_of_parents(forest, which) if parent is None else parent
    for field in declared(type(forest)):
        if field.kept is not None and field.stored not in given:
            held[field.stored] = field.kept(held[field.stored], held)
    return held


def places_of_parents(forest: Forest, boxes: IntArray) -> IntArray:
    """The places in ``boxes`` of their own parents; -1 for those that are not there."""
    place = np.full(len(forest) + 1, -1, np.int64)
    place[boxes] = np.arange(len(boxes))
    return np.asarray(place[forest.parent[boxes]])  # -1 looks at the spare entry


def beside(given: Mapping[Field, tuple[Pool, IntArray]]) -> dict[str, Any]:
    """Pools that one column points to, and that column, from the pool of each field and its own.

    Each combination of matrices that occurs is stored once.
    """
    fields = list(given)
    if len(fields) == 1:
        pool, number = given[fields[0]]
        return {fields[0].stored: pool, fields[0].pointer: number}
    number, first = intern_keys(np.column_stack([number for _, number in given.values()]))
    held = {f.stored: pool.take(column[first]) for f, (pool, column) in given.items()}
    return {fields[0].pointer: number, **held}


def repointed(
    kind: type, held: Mapping[str, Any], field: Field, boxes: Sequence[int], matrices: Sequence[Any]
) -> dict[str, Any]:
    """The column and pools of a field with new matrices for some boxes."""
    column = held[field.pointer].copy()
    old = column[boxes]
    size = len(next(x for f in _pools(kind)[field.pointer] if (x := held[f.stored]) is not None))
    column[boxes] = size + np.arange(len(boxes))
    new: dict[str, Any] = {field.pointer: column}
    for f in _pools(kind)[field.pointer]:
        x = held[f.stored]
        if f is field:
            x = _plain_pool(size, f.default) if x is None else x
            new[f.stored] = x.with_more(matrices)
        elif f.form == "states":
            new[f.stored] = (*x, *f.taken(x, old))
        elif x is not None:
            new[f.stored] = x.with_more([x[int(i)] for i in old])
    return new


def _plain_pool(n: int, value: float) -> Pool:
    return Pool(np.full(n, value), np.arange(n + 1), np.ones((n, 2), np.int64))


# -- equality -----------------------------------------------------------------------------------


def same(one: Forest, other: Forest) -> bool:
    """Whether two forests describe the same boxes, however they are stored."""
    if len(one) != len(other):
        return False
    for field in declared(type(one)):
        a, b = getattr(one, field.stored), getattr(other, field.stored)
        if field.pointer:
            alike = _alike(one, other, field)
        elif isinstance(a, np.ndarray):
            alike = np.array_equal(a, b)
        else:
            alike = a == b
        if not alike:
            return False
    return True


def _alike(one: Forest, other: Forest, field: Field) -> bool:
    """Whether a column points at equal matrices (or equally named states) in two forests."""
    a, b = getattr(one, field.stored), getattr(other, field.stored)
    if a is None or b is None:
        return a is b
    at = np.column_stack([getattr(one, field.pointer), getattr(other, field.pointer)])
    if field.form == "states":
        return all(a[i] == b[j] for i, j in np.unique(at, axis=0).tolist())
    _, number, _ = intern_pool(concat_pools([a, b]))
    far = np.flatnonzero(number[at[:, 0]] != number[len(a) + at[:, 1]])
    if field.form != "opening":
        return len(far) == 0
    # A number says the same as a column or a matrix of equal numbers. The laws and rewards were
    # compared before, so the shapes of both fit the same states.
    pairs = np.unique(at[far], axis=0).tolist()
    return all(bool((a[i] == b[j]).all()) for i, j in pairs)


# -- forests side by side -----------------------------------------------------------------------


def joined(
    parts: Sequence[Forest], counts: Sequence[int], given: Mapping[str, Any]
) -> dict[str, Any]:
    """What a forest of all parts holds, each with so many copies; ``given`` are new settings."""
    kind = type(parts[0])
    held = {
        f.stored: given[f.name] if f.name in given else f.join(f, parts, counts)
        for f in declared(kind)
        if f.join is not None and not f.pointer
    }
    number: dict[int, int] = {}
    which = [number.setdefault(id(f), len(number)) for f in parts]  # a forest given twice: once
    distinct = list({id(f): f for f in parts}.values())
    for pointer, fields in _pools(kind).items():
        sizes = [len(getattr(f, fields[0].stored)) for f in distinct]
        stacked = {f: x for f in fields if (x := _stacked(f, distinct, sizes)) is not None}
        place, first = intern_keys(np.column_stack([_numbered(x) for x in stacked.values()]))
        at = np.cumsum([0, *sizes])
        moved = [place[getattr(f, pointer) + a] for f, a in zip(distinct, at, strict=False)]
        held[pointer] = np.concatenate([moved[i] for i in which])
        for f, x in stacked.items():
            held[f.stored] = x.take(first) if isinstance(x, Pool) else f.taken(x, first)
    return held


def _stacked(field: Field, parts: Sequence[Forest], sizes: Sequence[int]) -> Any:
    """The matrices (or names of states) of all parts; None if no part has any."""
    found = [field.given(f) for f in parts]
    if all(x is None for x in found):
        return None
    if field.form == "states":
        return tuple(chain.from_iterable(found))
    each = zip(found, sizes, strict=True)
    return concat_pools([_plain_pool(n, field.default) if x is None else x for x, n in each])


def _numbered(x: Any) -> IntArray:
    """Equal matrices, or equal names, as equal numbers."""
    if isinstance(x, Pool):
        return intern_pool(x)[1]
    known: dict[Any, int] = {}
    return np.array([known.setdefault(one, len(known)) for one in x])


def all_alike(field: Field, parts: Sequence[Forest], counts: Sequence[int]) -> Any:
    """The setting that all parts share."""
    if all(field.given(f) is None for f in parts):  # all leave it open
        return None
    each = [getattr(f, field.stored) for f in parts]
    other = [i for i, x in enumerate(each) if x != each[0]]
    if other:
        first, odd = (field.shown(x) for x in (each[0], each[other[0]]))
        advice = "Change one of them" if field.type is bool else f"Give `{field.name}`"
        raise InvalidForest(
            f"the forests must have the same {field.headings[0]}, but that of the first is {first} "
            f"and that of forest {other[0]} is {odd} ({such(len(other), 'forest')}). {advice}."
        )
    return each[0]


def default_unless_alike(field: Field, parts: Sequence[Forest], counts: Sequence[int]) -> Any:
    """The setting that all parts share, or else the default."""
    each = {getattr(f, field.stored) for f in parts}
    return each.pop() if len(each) == 1 else field.default


def summed(field: Field, parts: Sequence[Forest], counts: Sequence[int]) -> float:
    """The sum over all parts, each counted once per copy of the part."""
    return float(sum(n * getattr(f, field.stored) for n, f in zip(counts, parts, strict=True)))


def in_a_row(field: Field, parts: Sequence[Forest], counts: Sequence[int]) -> Any:
    """The values of all boxes, one part after the other."""
    found = [getattr(f, field.stored) for f in parts]
    if field.type is not str:
        return np.concatenate(found)
    if all(x is None for x in found):
        return None
    each = zip(parts, found, strict=True)
    return tuple(chain.from_iterable(x or (field.default,) * len(f) for f, x in each))


def times_copies(field: Field, parts: Sequence[Forest], counts: Sequence[int]) -> IntArray:
    """Counts, those of roots times the copies of their part."""
    count = np.concatenate([getattr(f, field.stored) for f in parts])
    times = whole_numbers(counts, "counts")
    bad = np.flatnonzero((times < 1) | (times > MAX_COUNT))
    if len(bad):
        raise InvalidForest(
            f"a count must be from 1 to {MAX_COUNT}, but that of forest {bad[0]} is "
            f"{times[bad[0]]} ({such(len(bad), 'count')}). Leave out a forest of which there are "
            f"none."
        )
    root = np.concatenate([f.parent for f in parts]) < 0
    copies = np.where(root, np.repeat(times, [len(f) for f in parts]), 1)
    if (count > MAX_COUNT // copies).any():
        most = float(np.max(count.astype(float) * copies))
        raise InvalidForest(
            f"there may be at most {MAX_COUNT} copies of a root, but `counts` makes them "
            f"{most:.3g}."
        )
    return np.asarray(count * copies)


def parents_in_a_row(field: Field, parts: Sequence[Forest], counts: Sequence[int]) -> IntArray:
    """Parents by their new numbers."""
    size = np.array([len(f) for f in parts])
    parent = np.concatenate([f.parent for f in parts])
    return np.where(parent < 0, -1, parent + np.repeat(np.cumsum(size) - size, size))


def different_names(
    field: Field, parts: Sequence[Forest], counts: Sequence[int]
) -> tuple[str, ...] | None:
    """Names as they are if they all differ; else "1/B" for box B of the second forest."""
    if all(f.names is None for f in parts):
        return None
    each = [f.names or tuple(map(str, range(len(f)))) for f in parts]
    names = tuple(chain.from_iterable(each))
    if len(set(names)) == len(names):
        return names
    return tuple(f"{i}/{name}" for i, own in enumerate(each) for name in own)


_joins: dict[str, Any] = {
    "parent": parents_in_a_row,
    "names": different_names,
    "entry": in_a_row,
    "setting": all_alike,
}  # matrices are merged: equal ones are kept once
