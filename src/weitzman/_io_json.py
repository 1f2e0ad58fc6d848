"""From a JSON document of the format ``weitzman/1`` to a forest.

Only what the file itself can get wrong is checked here, with the place: types, keys, references.
The rules of the problem (probabilities, shapes, circles) are those of :class:`Forest`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ._io_outcomes import outcome_law, outcome_rewards
from ._io_text import shown
from ._types import FloatArray
from .errors import InvalidFile
from .model import MAX_COUNT, Forest

FORMAT = "weitzman/1"
MAX_LENGTH = 1_000_000  # boxes that all lines of a file may stand for together

_TOP = ("format", "objective", "outside", "kinds", "boxes", "note", "$schema")
_KIND = ("cost", "rewards", "states", "law", "outcomes", "note")
_BOX = ("name", "parent", "kind", "count", "length", *_KIND)
_OBJECTIVES = ("maximise", "minimise")
_NUMBER = {int, float}
_SUGGESTIONS = 1000  # names that are looked through for one that was perhaps meant


class Entry(NamedTuple):
    """One box of the document, or of a line in it, with what its kind adds."""

    where: str
    name: str | None
    parent: str | int | None
    count: int
    given: dict[str, Any]


def forest(document: Any) -> Forest:
    """The forest that a document describes."""
    top = _object(document, "the document", _TOP)
    _check_format(top)
    minimise = _choice(top.get("objective", "maximise"), _OBJECTIVES, "objective") == "minimise"
    kinds = _kinds(top.get("kinds", {}))
    entries, place = _entries(top, kinds)
    numbers = _Numbers(np.inf if minimise else -np.inf)
    parent = [-1 if e.parent is None else _parent(e, place, len(entries)) for e in entries]
    rewards, states = zip(*(numbers.rewards(e) for e in entries), strict=True)
    law = [
        numbers.law(e, *(() if p < 0 else (states[p], len(rewards[p]))))
        for e, p in zip(entries, parent, strict=True)
    ]
    names = [e.name for e in entries]
    return Forest.from_arrays(
        parent=parent,
        cost=[numbers.cost(e) for e in entries],
        rewards=list(rewards),
        law=law,
        names=None if names[0] is None else names,
        outside=_outside(top, minimise),
        count=[e.count for e in entries],
        minimise=minimise,
        states=None if all(s is None for s in states) else list(states),
    )


# -- the top of the document -------------------------------------------------------------------


def _check_format(top: dict[str, Any]) -> None:
    if top.get("format") != FORMAT:
        found = shown(top["format"]) if "format" in top else "missing"
        raise InvalidFile(
            f'format must be "{FORMAT}", but it is {found}. Another program, or a newer version '
            f"of this one, may have written the file."
        )


def _outside(top: dict[str, Any], minimise: bool) -> float | None:
    if "outside" not in top:
        return None  # the default, or the reason why there is none
    if top["outside"] is None:
        return np.inf if minimise else -np.inf
    return float(_numbers([top["outside"]], "outside", "a number or null")[0])


def _kinds(x: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(x, dict):
        _wrong("kinds", "an object", x)
    return {name: _object(kind, f"kinds[{shown(name)}]", _KIND) for name, kind in x.items()}


# -- boxes -------------------------------------------------------------------------------------


def _entries(
    top: dict[str, Any], kinds: dict[str, dict[str, Any]]
) -> tuple[list[Entry], dict[str, int]]:
    """All boxes, lines written out, and the number of each name."""
    boxes = top.get("boxes")
    if not isinstance(boxes, list) or not boxes:
        raise InvalidFile(
            f"boxes must be a list of at least one box, but it is "
            f"{shown(boxes) if 'boxes' in top else 'missing'}."
        )
    entries: list[Entry] = []
    place: dict[str, int] = {}
    named = isinstance(boxes[0], dict) and "name" in boxes[0]
    for i, box in enumerate(boxes):
        where = f"boxes[{i}]"
        if isinstance(box, dict) and "name" in box:
            where += f" ({shown(box['name'])})"
        one = _entry(_object(box, where, _BOX), where, kinds, named)
        line = _line(box, one, MAX_LENGTH - len(entries)) if "length" in box else [one]
        for entry in line:
            _place(place, entry.name, len(entries), where)
            entries.append(entry)
        if "length" in box:  # children of the line hang on its last box
            _place(place, one.name, len(entries) - 1, where)
    return entries, place


def _entry(
    box: dict[str, Any], where: str, kinds: dict[str, dict[str, Any]], named: bool
) -> Entry:
    if ("name" in box) != named:
        raise InvalidFile(
            f"{where}: either all boxes have a name or none has, but this one has "
            f"{'none' if named else 'one'} and boxes[0] has {'one' if named else 'none'}."
        )
    name = _name(box["name"], f"{where}: name") if named else None
    given = box
    if "kind" in box:
        kind = _name(box["kind"], f"{where}: kind")
        if kind not in kinds:
            raise InvalidFile(f"{where}: there is no kind {shown(kind)}{_like(kind, kinds)}.")
        given = {**kinds[kind], **box}
    _check_complete(given, where)
    parent = box.get("parent")
    if parent is not None:
        parent = _name(parent, f"{where}: parent") if named else _whole(parent, f"{where}: parent", 0)
    count = _whole(box.get("count", 1), f"{where}: count", 1, MAX_COUNT)
    return Entry(where, name, parent, count, given)


def _check_complete(given: dict[str, Any], where: str) -> None:
    needed = ("cost",) if "outcomes" in given else ("cost", "rewards", "law")
    missing = [key for key in needed if key not in given]
    if missing:
        raise InvalidFile(
            f"{where}: needs {missing[0]!r}. A box has a cost, and either outcomes, or rewards "
            f"and a law; its kind may give them."
        )
    if "outcomes" in given and (extra := [k for k in ("rewards", "states", "law") if k in given]):
        raise InvalidFile(
            f"{where}: outcomes stand for rewards, states and law, but {extra[0]!r} is given too. "
            f"Remove one of them."
        )


def _line(box: dict[str, Any], one: Entry, room: int) -> Iterable[Entry]:
    """The boxes of a line: "B.1" hangs on the parent of "B", "B.2" on "B.1", and so on."""
    if one.name is None or one.parent is None:
        raise InvalidFile(
            f"{one.where}: length needs a name and a parent. Write the first box by itself and the "
            f"line below it."
        )
    length = _whole(box["length"], f"{one.where}: length", 1, room)
    yield one._replace(name=f"{one.name}.1")
    for i in range(2, length + 1):
        yield one._replace(name=f"{one.name}.{i}", parent=f"{one.name}.{i - 1}", count=1)


def _place(place: dict[str, int], name: str | None, number: int, where: str) -> None:
    if name is not None and place.setdefault(name, number) != number:
        raise InvalidFile(f"{where}: names must differ, but {shown(name)} is taken. Rename it.")


def _parent(entry: Entry, place: dict[str, int], n: int) -> int:
    if isinstance(entry.parent, str):
        if entry.parent in place:
            return place[entry.parent]
        raise InvalidFile(
            f"{entry.where}: there is no box {shown(entry.parent)} to be its parent"
            f"{_like(entry.parent, place)}."
        )
    assert entry.parent is not None
    if entry.parent < n:
        return entry.parent
    raise InvalidFile(
        f"{entry.where}: parent must be the number of a box, from 0 to {n - 1}, but it is "
        f"{entry.parent}."
    )


# -- numbers -----------------------------------------------------------------------------------


@dataclass
class _Numbers:
    """Lists of numbers as arrays; a list that boxes share through their kind is converted once."""

    none: float  # the reward of a state that has none
    done: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def rewards(self, entry: Entry) -> tuple[FloatArray, list[str] | None]:
        """Rewards and names of the states."""
        given, where = entry.given, entry.where
        if "outcomes" in given:
            return self._once(outcome_rewards, given["outcomes"], where, entry.parent is None)
        rewards = self._once(self._rewards, given["rewards"], f"{where}: rewards")
        return rewards, self._once(_states, given.get("states"), f"{where}: states", len(rewards))

    def law(self, entry: Entry, above: list[str] | None = None, size: int = 0) -> FloatArray:
        """The law, given the names and number of the states of the parent."""
        if "outcomes" not in entry.given:
            return self._once(_array, entry.given["law"], f"{entry.where}: law", False)
        names = tuple(map(str, range(size))) if above is None else tuple(above)
        return self._once(outcome_law, entry.given["outcomes"], entry.where, names)

    def cost(self, entry: Entry) -> FloatArray | float:
        """The cost: a number, a vector or a matrix."""
        cost = entry.given["cost"]
        if type(cost) is float and cost - cost == 0:
            return cost
        return self._once(_array, cost, f"{entry.where}: cost", True)

    def _once(self, convert: Callable[..., Any], raw: Any, where: str, *more: Any) -> Any:
        key = (convert, id(raw), *more)
        if key not in self.done:
            self.done[key] = convert(raw, where, *more)
        return self.done[key]

    def _rewards(self, x: Any, where: str) -> FloatArray:
        if not isinstance(x, list):
            _wrong(where, "a list of numbers, null for none", x)
        if None not in x:
            return _numbers(x, where, "a number or null")
        values = _numbers([0 if r is None else r for r in x], where, "a number or null")
        values[[r is None for r in x]] = self.none
        return values


def _states(x: Any, where: str, size: int) -> list[str] | None:
    if x is None:
        return None
    if not isinstance(x, list):
        _wrong(where, "a list of names", x)
    if len(x) != size:
        raise InvalidFile(f"{where}: there must be a name for each of {size} rewards, not {len(x)}.")
    return [_name(s, f"{where}[{i}]") for i, s in enumerate(x)]


def _array(x: Any, where: str, scalar: bool) -> FloatArray:
    """A list or a list of lists of numbers; a single number too where one may stand."""
    if scalar and type(x) in _NUMBER:
        return _numbers([x], where, "a number").reshape(())
    if not isinstance(x, list):
        _wrong(where, f"{'a number, ' if scalar else ''}a list or a list of lists", x)
    if not x or not isinstance(x[0], list):
        return _numbers(x, where, "a number")
    for i, row in enumerate(x):
        if not isinstance(row, list) or len(row) != len(x[0]):
            raise InvalidFile(
                f"{where}[{i}] must be a list of {len(x[0])} numbers like the first row, but it is "
                f"{shown(row)}."
            )
    flat = list(chain.from_iterable(x))
    return _numbers(flat, where, "a number", len(x[0])).reshape(len(x), -1)


def _numbers(x: list[Any], where: str, what: str, width: int = 0) -> FloatArray:
    try:
        if _NUMBER.issuperset(map(type, x)):
            values = np.array(x, np.float64)
            if np.isfinite(values).all():
                return values
    except OverflowError:
        pass
    i, bad = next((i, v) for i, v in enumerate(x) if not _is_number(v))
    place = f"[{i // width}][{i % width}]" if width else f"[{i}]"
    if type(bad) in _NUMBER:
        raise InvalidFile(f"{where}{place} does not fit a 64-bit float: {shown(bad)}. Rescale it.")
    _wrong(where + place, what, bad)


def _is_number(x: Any) -> bool:
    try:
        return type(x) in _NUMBER and bool(np.isfinite(float(x)))
    except OverflowError:
        return False


def _whole(x: Any, where: str, low: int, high: int = 2**53) -> int:
    if type(x) in _NUMBER and x == x // 1 and low <= x <= high:
        return int(x)
    _wrong(where, f"a whole number from {low} to {high:_}", x)


# -- small checks ------------------------------------------------------------------------------


def _wrong(where: str, what: str, found: Any) -> NoReturn:
    raise InvalidFile(f"{where} must be {what}, but it is {shown(found)}.")


def _object(x: Any, where: str, keys: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(x, dict):
        _wrong(where, "an object", x)
    for key in x:
        if key not in keys:
            raise InvalidFile(
                f"{where}: {shown(key)} is not a key here{_like(key, keys)}. The keys are "
                f"{', '.join(keys)}."
            )
    for key in ("note", "$schema"):
        if key in x and not isinstance(x[key], str):
            _wrong(f"{where}: {key}", "text", x[key])
    return x


def _choice(x: Any, known: tuple[str, ...], where: str) -> str:
    if x not in known:
        _wrong(where, " or ".join(f'"{k}"' for k in known), x)
    return str(x)


def _name(x: Any, where: str) -> str:
    if not isinstance(x, str):
        _wrong(where, "text", x)
    try:
        x.encode()
    except UnicodeEncodeError:
        raise InvalidFile(f"{where} must be valid Unicode, but it is {shown(x)}.") from None
    return x


def _like(wanted: str, known: Iterable[str]) -> str:
    few = [name for name, _ in zip(known, range(_SUGGESTIONS), strict=False) if len(name) < 64]
    close = difflib.get_close_matches(wanted[:64], few, 1)
    return f"; did you mean {shown(close[0])}?" if close else ""
