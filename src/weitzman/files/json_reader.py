"""From a JSON document of the format ``weitzman/1`` to a forest.

This module checks what only a file can get wrong, and names the place: types, keys, references.
:mod:`weitzman.forest.forms` reads the boxes as it does those of a Builder, and
:class:`~weitzman.Forest` checks the rules of the problem (probabilities, shapes, cycles).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from .._common.arrays import FloatArray
from ..errors import InvalidFile
from ..forest.columns import label, no_reward
from ..forest.forms import BoxOutcomes, Source, WrittenBox, assembled, read_outcomes
from ..forest.model import BY_BOX, FIELDS, Forest
from .parsing import (
    MAX_DENSE,
    array,
    fields,
    is_number,
    like,
    name,
    numbers,
    read_settings,
    read_value,
    shown,
    whole,
    wrong,
)  # fmt: skip

FORMAT = "weitzman/1"
MAX_LENGTH = 1_000_000  # boxes that a line may stand for
LENGTH, COUNT, ENDLESS = "length", "count", "endless"
REMARKS = ("note", "$schema")

_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")

Kinds = dict[str, dict[str, Any]]


def keys_of(*forms: str) -> tuple[str, ...]:
    """The keys of the fields of some forms."""
    return tuple(one.key for form in forms for one in FIELDS if one.form == form)


KIND_KEYS = (*keys_of("opening", "rewards", "states", "law"), "outcomes", "note")
"""The keys of what boxes may share."""


class JsonBox(NamedTuple):
    """One box of the document, or of a line in it, with what its kind adds."""

    where: str
    name: str | None
    parent: str | int | None
    given: dict[str, Any]


def forest(document: Any) -> Forest:
    """The forest that a document describes."""
    keys = "format", *keys_of("setting"), "kinds", "boxes", *REMARKS
    top = fields(document, "the document", keys)
    if top.get("format") != FORMAT:
        raise InvalidFile(
            f'format must be "{FORMAT}", but it is {_found(top, "format")}. Another program, or a '
            f"newer version of this one, may have written the file."
        )
    said = read_settings(top)
    entries, place = _entries(top, _kinds(top))
    parent = [_parent(e, place, len(entries)) for e in entries]
    convert = _Convert(no_reward(bool(said.get("minimize"))), {})
    names = [e.name for e in entries if e.name is not None]
    return assembled([convert.box(e) for e in entries], parent, names or None, said)


def _found(top: dict[str, Any], key: str) -> str:
    return shown(top[key]) if key in top else "missing"


def _kinds(top: dict[str, Any]) -> Kinds:
    kinds = top.get("kinds", {})
    if not isinstance(kinds, dict):
        wrong("kinds", "an object", kinds)
    return {title: fields(x, f"kinds[{shown(title)}]", KIND_KEYS) for title, x in kinds.items()}


# -- boxes and how they hang together ----------------------------------------------------------


def _entries(top: dict[str, Any], kinds: Kinds) -> tuple[list[JsonBox], dict[str, int]]:
    """All boxes, lines written out, and the number that each name stands for."""
    boxes = top.get("boxes")
    if not isinstance(boxes, list) or not boxes:
        raise InvalidFile(
            f"boxes must be a list of at least one box, but it is {_found(top, 'boxes')}."
        )
    entries: list[JsonBox] = []
    place: dict[str, int] = {}
    spare = MAX_LENGTH
    named = isinstance(boxes[0], dict) and "name" in boxes[0]
    keys = *keys_of("names", "parent"), "kind", *keys_of("entry"), *KIND_KEYS
    for i, box in enumerate(boxes):
        one = _entry(i, box, kinds, named, keys)
        length = box.get(LENGTH, ENDLESS)
        if length == ENDLESS:
            _place(place, one, one.name, len(entries))
            entries.append(one)
            continue
        if isinstance(length, str):
            wrong(f"{one.where}: length", f'a whole number, or "{ENDLESS}"', length)
        length = whole(length, f"{one.where}: length", 1, MAX_LENGTH)
        spare -= length
        if spare < 0:
            raise InvalidFile(
                f"{one.where}: all lines together must have at most {MAX_LENGTH} boxes, but they "
                f"have more. Build the forest in Python and save it as .wz."
            )
        for entry in _line(one, length):
            _place(place, entry, entry.name, len(entries))
            entries.append(entry)
        _place(place, one, one.name, len(entries) - 1)  # children hang on the last box
    return entries, place


def _entry(i: int, box: Any, kinds: Kinds, named: bool, keys: tuple[str, ...]) -> JsonBox:
    where = f"boxes[{i}]"
    if isinstance(box, dict) and "name" in box:
        where += f" ({shown(box['name'])})"
    fields(box, where, keys)
    if ("name" in box) != named:
        raise InvalidFile(
            f"{where}: either all boxes have a name or none has, but this one has "
            f"{'none' if named else 'one'} and boxes[0] has {'one' if named else 'none'}."
        )
    title = name(box["name"], f"{where}: name") if named else None
    given = box
    if "kind" in box:
        kind = name(box["kind"], f"{where}: kind")
        if kind not in kinds:
            raise InvalidFile(f"{where}: there is no kind {shown(kind)}{like(kind, kinds)}")
        given = {**kinds[kind], **box}
    _check_complete(given, where)
    parent = box.get("parent")
    if parent is not None and named:
        name(parent, f"{where}: parent")
    return JsonBox(where, title, parent, given)


def _check_complete(given: dict[str, Any], where: str) -> None:
    needed = ("cost",) if "outcomes" in given else ("cost", "rewards", "law")
    missing = [key for key in needed if key not in given]
    if missing:
        raise InvalidFile(
            f"{where}: {missing[0]!r} is missing. A box has a cost, and either outcomes, or "
            f"rewards and a law; its kind may give them."
        )
    if isinstance(given.get("rewards"), dict) and "outcomes" not in given:
        raise InvalidFile(
            f"{where}: rewards by state belong to outcomes, but there are none. Give outcomes, or "
            f"a list of rewards and a law."
        )
    extra: list[str] = [key for key in ("states", "law") if key in given]
    extra += ["a list of rewards"] if isinstance(given.get("rewards"), list) else []
    if "outcomes" in given and extra:
        raise InvalidFile(
            f"{where}: outcomes stand for rewards, states and law, but {extra[0]!r} is given too. "
            f"Remove one of them."
        )


def _line(one: JsonBox, length: int) -> Iterator[JsonBox]:
    """The boxes of a line: B.1 hangs on the parent of B, B.2 on B.1, and so on."""
    if one.name is None or one.parent is None:
        raise InvalidFile(
            f"{one.where}: length needs a name and a parent. Write the first box by itself and "
            f"the line below it."
        )
    given = {key: x for key, x in one.given.items() if key != LENGTH}
    yield one._replace(name=f"{one.name}.1", given=given)
    given = {key: x for key, x in given.items() if key != COUNT}  # of the line as a whole
    for i in range(2, length + 1):
        yield JsonBox(one.where, f"{one.name}.{i}", f"{one.name}.{i - 1}", given)


def _place(place: dict[str, int], entry: JsonBox, title: str | None, number: int) -> None:
    if title is not None and place.setdefault(title, number) != number:
        raise InvalidFile(
            f"{entry.where}: names must differ, but {shown(title)} is taken. Rename it."
        )


def _parent(entry: JsonBox, place: dict[str, int], n: int) -> int:
    if entry.parent is None:
        return -1
    if entry.name is None:
        return whole(entry.parent, f"{entry.where}: parent", 0, n - 1)
    if entry.parent not in place:
        raise InvalidFile(
            f"{entry.where}: there is no box {shown(entry.parent)} to be its parent"
            f"{like(str(entry.parent), place)}"
        )
    return place[str(entry.parent)]


# -- numbers -----------------------------------------------------------------------------------


class _Convert(NamedTuple):
    """Boxes with arrays in place of lists; what boxes share through their kind is read once."""

    none: float  # the reward of a state that has none
    done: dict[tuple[Any, ...], Any]

    def box(self, entry: JsonBox) -> WrittenBox:
        """A box as the common reader takes it."""
        given, where = entry.given, entry.where
        source = Source(
            lambda what: f"{where}: {what}", _canonical, _amount, is_number, most=MAX_DENSE
        )
        said: dict[str, Any] = {}
        for one in BY_BOX:
            if one.key in given:
                x, at = given[one.key], f"{where}: {one.key}"
                if one.form == "entry":
                    said[one.name] = read_value(one, x, at)
                elif one.form == "opening":
                    said[one.name] = self._opening(x, at)
        return WrittenBox(source, self._outcomes(entry, source), said)

    def _opening(self, x: Any, where: str) -> Any:
        if is_number(x):
            return float(x)
        if isinstance(x, list):
            return self._once(array, x, where)
        if not isinstance(x, dict):
            wrong(where, "a number, a list, a list of lists or an object", x)
        return x

    def _outcomes(self, entry: JsonBox, source: Source) -> BoxOutcomes:
        given, where, root = entry.given, entry.where, entry.parent is None
        rewards = given.get("rewards")
        if "outcomes" in given:
            raw = given["outcomes"]
            key: tuple[Any, ...] = id(raw), id(rewards), root
            if not isinstance(raw, dict) or not raw:
                wrong(f"{where}: outcomes", "an object with at least one entry", raw)
            if key not in self.done:
                self.done[key] = read_outcomes(source, raw, rewards, root)
        else:
            states = given.get("states")
            key = id(rewards), id(states), id(given["law"])
            if key not in self.done:
                values = self._once(self._rewards, rewards, f"{where}: rewards")
                if states is not None:
                    states = _states(states, f"{where}: states", len(values))
                law = self._once(array, given["law"], f"{where}: law")
                self.done[key] = BoxOutcomes(states, values, law)
        found: BoxOutcomes = self.done[key]
        return found

    def _once(self, convert: Any, raw: Any, where: str) -> FloatArray:
        key = id(raw), where.rpartition(": ")[2]
        if key not in self.done:
            self.done[key] = convert(raw, where)
        found: FloatArray = self.done[key]
        return found

    def _rewards(self, x: Any, where: str) -> FloatArray:
        if not isinstance(x, list) or not x:
            wrong(where, "a list of numbers, with null for a state without a reward", x)
        values = numbers([0 if r is None else r for r in x], where, "a number or null")
        values[[r is None for r in x]] = self.none
        return values


def _states(x: Any, where: str, size: int) -> tuple[str, ...]:
    if not isinstance(x, list) or len(x) != size:
        wrong(where, f"a list of {size} names, one for each reward", x)
    return tuple(name(s, f"{where}[{i}]") for i, s in enumerate(x))


def _amount(key: str) -> float | None:
    """The reward that a state is named by; None for a word."""
    fits = _JSON_NUMBER.fullmatch(key) is not None and math.isfinite(float(key))
    return float(key) if fits else None


def _canonical(key: str) -> str:
    """The name that a key stands for: 900 for 900.0 and 9e2."""
    amount = _amount(name(key, "a state"))
    return key if amount is None else label(amount)
