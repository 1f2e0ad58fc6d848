"""Forests as JSON documents of the format ``weitzman/1``: reader, writer and schema.

The reader checks what only a file can get wrong, and names the place: types, keys, references.
:mod:`weitzman.forest.forms` reads the boxes as it does those of a Builder. Keys and types of all
fields come from their declarations.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files as data_of
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from .._common.arrays import FloatArray, IntArray
from ..errors import InvalidArgument, InvalidFile, UnknownName
from ..forest.columns import label, no_reward
from ..forest.fields import Field, said
from ..forest.forms import MAX_DENSE, BoxOutcomes, Source, WrittenBox, assembled, read_outcomes
from ..forest.model import BY_BOX, FIELDS, SETTINGS, Forest
from . import documents as check
from .ranges import Range, Ranges, read_range

FORMAT = "weitzman/1"
MAX_LENGTH = 1_000_000  # boxes that a line may stand for
LENGTH, COUNT, ENDLESS = "length", "count", "endless"

_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"\.0(?=[],])")  # 21.0 is written 21
_NO_REWARD = re.compile(r"-?Infinity")
_BOXES_AT_ONCE = 1000
_SHAPES = (
    " A number; or a list with one number for each state of the parent (for a root: for each own "
    "state); or a matrix with a row for each state of the parent and a column for each own state. "
    "Instead of lists, objects whose keys are names of states."
)

T = TypeVar("T")


def keys_of(*forms: str) -> tuple[str, ...]:
    """The keys of the fields of some forms."""
    return tuple(one.key for form in forms for one in FIELDS if one.form == form)


_KIND_KEYS = (*keys_of("opening", "rewards", "states", "law"), "outcomes", "note")
_BOX_KEYS = (*keys_of("names", "parent"), "kind", *keys_of("entry"), *_KIND_KEYS)
_TOP_KEYS = ("format", *keys_of("setting"), "kinds", "boxes", "ranges", "note", "$schema")
_RANGE_KEYS = ("box", "field", "given", "state", "range")


# -- reading -----------------------------------------------------------------------------------


class JsonBox(NamedTuple):
    """One box of the document, or of a line in it, with what its kind adds."""

    where: str
    name: str | None
    parent: str | int | None
    given: dict[str, Any]


def forest(document: Any) -> Forest:
    """The forest that a document describes."""
    top = check.fields(document, "the document", _TOP_KEYS)
    if top.get("format") != FORMAT:
        raise InvalidFile(
            f'format must be "{FORMAT}", but it is {_found(top, "format")}. Another program, or a '
            f"newer version of this one, may have written the file."
        )
    settings = check.read_settings(top)
    entries, place = _entries(top)
    parent = []
    for where, title, up, _ in entries:
        if up is None or title is None:
            last = len(entries) - 1
            parent.append(-1 if up is None else check.whole(up, f"{where}: parent", 0, last))
        elif up in place:
            parent.append(place[str(up)])
        else:
            raise InvalidFile(
                f"{where}: there is no box {check.shown(up)} to be its parent"
                f"{check.like(str(up), place)}"
            )
    reader = _Reader(no_reward(bool(settings.get("minimize"))))
    names = [e.name for e in entries if e.name is not None]
    found = assembled([reader.box(e) for e in entries], parent, names or None, settings)
    ranges(top, found)  # their faults are those of the file
    return found


def ranges(document: dict[str, Any], forest: Forest) -> Ranges:
    """The numbers of a document that are not known for sure."""
    found, listed = [], document.get("ranges", [])
    if not isinstance(listed, list):
        check.wrong("ranges", "a list", listed)
    for i, x in enumerate(listed):
        where = f"ranges[{i}]"
        one = check.fields(x, where, (*_RANGE_KEYS, "note"))
        for key in ("field", "range"):
            check.name(one.get(key), f"{where}: {key}")
        try:
            found.append(read_range(forest, *(one.get(key) for key in _RANGE_KEYS)))
        except (InvalidArgument, InvalidFile, UnknownName) as error:
            raise InvalidFile(f"{where}: {error}") from None
    return Ranges(found)


def _found(top: dict[str, Any], key: str) -> str:
    return check.shown(top[key]) if key in top else "missing"


def _entries(top: dict[str, Any]) -> tuple[list[JsonBox], dict[str, int]]:
    """All boxes, lines written out, and the number that each name stands for."""
    kinds, boxes = top.get("kinds", {}), top.get("boxes")
    if not isinstance(kinds, dict):
        check.wrong("kinds", "an object", kinds)
    for title, x in kinds.items():
        check.fields(x, f"kinds[{check.shown(title)}]", _KIND_KEYS)
    if not isinstance(boxes, list) or not boxes:
        raise InvalidFile(
            f"boxes must be a list of at least one box, but it is {_found(top, 'boxes')}."
        )
    entries: list[JsonBox] = []
    place: dict[str, int] = {}
    spare = MAX_LENGTH
    named = isinstance(boxes[0], dict) and "name" in boxes[0]
    for i, box in enumerate(boxes):
        one = _entry(i, box, kinds, named)
        here, length = [one], box.get(LENGTH, ENDLESS)
        if length != ENDLESS:
            if isinstance(length, str):
                check.wrong(f"{one.where}: length", f'a whole number, or "{ENDLESS}"', length)
            length = check.whole(length, f"{one.where}: length", 1, MAX_LENGTH)
            spare -= length
            if spare < 0:
                raise InvalidFile(
                    f"{one.where}: all lines together must have at most {MAX_LENGTH} boxes, but "
                    f"they have more. Build the forest in Python and save it as .wz."
                )
            here = _line(one, length)
        entries += here
        first = len(entries) - len(here)
        titles = [e.name for e in here] + [one.name] * (length != ENDLESS)
        for j, title in enumerate(titles, first):  # children of a line hang on its last box
            number = min(j, len(entries) - 1)
            if title is not None and place.setdefault(title, number) != number:
                raise InvalidFile(
                    f"{one.where}: names must differ, but {check.shown(title)} is taken. Rename it."
                )
    return entries, place


def _entry(i: int, box: Any, kinds: dict[str, Any], named: bool) -> JsonBox:
    where = f"boxes[{i}]"
    if isinstance(box, dict) and "name" in box:
        where += f" ({check.shown(box['name'])})"
    given = check.fields(box, where, _BOX_KEYS)
    if ("name" in box) != named:
        has = ("none", "one")
        raise InvalidFile(
            f"{where}: either all boxes have a name or none has, but this one has "
            f"{has[not named]} and boxes[0] has {has[named]}."
        )
    title = check.name(box["name"], f"{where}: name") if named else None
    if "kind" in box:
        kind = check.name(box["kind"], f"{where}: kind")
        if kind not in kinds:
            raise InvalidFile(
                f"{where}: there is no kind {check.shown(kind)}{check.like(kind, kinds)}"
            )
        given = {**kinds[kind], **box}
    short = "outcomes" in given
    missing = [k for k in (("cost",) if short else ("cost", "rewards", "law")) if k not in given]
    if missing:
        raise InvalidFile(
            f"{where}: {missing[0]!r} is missing. A box has a cost, and either outcomes, or "
            f"rewards and a law; its kind may give them."
        )
    if isinstance(given.get("rewards"), dict) and not short:
        raise InvalidFile(
            f"{where}: rewards by state belong to outcomes, but there are none. Give outcomes, or "
            f"a list of rewards and a law."
        )
    extra: list[str] = [key for key in ("states", "law") if key in given]
    extra += ["a list of rewards"] if isinstance(given.get("rewards"), list) else []
    if short and extra:
        raise InvalidFile(
            f"{where}: outcomes stand for rewards, states and law, but {extra[0]!r} is given too. "
            f"Remove one of them."
        )
    parent = box.get("parent")
    if parent is not None and named:
        check.name(parent, f"{where}: parent")
    return JsonBox(where, title, parent, given)


def _line(one: JsonBox, length: int) -> list[JsonBox]:
    """The boxes of a line: B.1 hangs on the parent of B, B.2 on B.1, and so on."""
    if one.name is None or one.parent is None:
        raise InvalidFile(
            f"{one.where}: length needs a name and a parent. Write the first box by itself and "
            f"the line below it."
        )
    given = {key: x for key, x in one.given.items() if key != LENGTH}
    boxes = [JsonBox(one.where, f"{one.name}.1", one.parent, given)]
    given = {key: x for key, x in given.items() if key != COUNT}  # of the line as a whole
    for i in range(2, length + 1):
        boxes.append(JsonBox(one.where, f"{one.name}.{i}", boxes[-1].name, given))
    return boxes


class _Reader:
    """Boxes with arrays in place of lists; what boxes share through their kind is read once."""

    def __init__(self, none: float) -> None:
        self.none = none  # the reward of a state that has none
        self.done: dict[tuple[Any, ...], Any] = {}

    def once(self, convert: Callable[..., T], *raw: Any, where: str) -> T:
        """What some values of the document are read as; ``where`` ends with their key."""
        key = (*map(id, raw), where.rpartition(": ")[2])
        if key not in self.done:
            self.done[key] = convert(*raw, where)
        found: T = self.done[key]
        return found

    def box(self, entry: JsonBox) -> WrittenBox:
        """A box as the common reader takes it."""
        given, where, root = entry.given, entry.where, entry.parent is None
        source = Source(
            lambda what: f"{where}: {what}", _canonical, _amount, check.is_number, most=MAX_DENSE
        )
        values: dict[str, Any] = {}
        for one in BY_BOX:
            if one.key not in given or one.form not in ("entry", "opening"):
                continue
            x, at = given[one.key], f"{where}: {one.key}"
            if one.form == "entry":
                x = check.read_value(one, x, at)
            elif check.is_number(x):
                x = float(x)
            elif isinstance(x, list):
                x = self.once(check.array, x, where=at)
            elif not isinstance(x, dict):
                check.wrong(at, "a number, a list, a list of lists or an object", x)
            values[one.name] = x
        if "outcomes" in given:
            raw, rewards, at = given["outcomes"], given.get("rewards"), f"{where}: outcomes"
            if not isinstance(raw, dict) or not raw:
                check.wrong(at, "an object with at least one entry", raw)
            own = self.once(
                lambda *_: read_outcomes(source, raw, rewards, root), raw, rewards, root, where=at
            )
        else:
            listed = given["rewards"], given.get("states"), given["law"]
            own = self.once(
                lambda *_: self._listed(*listed, where), *listed, where=f"{where}: states"
            )
        return WrittenBox(source, own, values)

    def _listed(self, rewards: Any, states: Any, law: Any, where: str) -> BoxOutcomes:
        values = self.once(self._rewards, rewards, where=f"{where}: rewards")
        if states is not None:
            if not isinstance(states, list) or len(states) != len(values):
                what = f"a list of {len(values)} names, one for each reward"
                check.wrong(f"{where}: states", what, states)
            states = tuple(check.name(s, f"{where}: states[{i}]") for i, s in enumerate(states))
        return BoxOutcomes(states, values, self.once(check.array, law, where=f"{where}: law"))

    def _rewards(self, x: Any, where: str) -> FloatArray:
        if not isinstance(x, list) or not x:
            check.wrong(where, "a list of numbers, with null for a state without a reward", x)
        values = check.numbers([0 if r is None else r for r in x], where, "a number or null")
        values[[r is None for r in x]] = self.none
        return values


def _amount(key: str) -> float | None:
    """The reward that a state is named by; None for a word."""
    fits = _JSON_NUMBER.fullmatch(key) is not None and math.isfinite(float(key))
    return float(key) if fits else None


def _canonical(key: str) -> str:
    """The name that a key stands for: 900 for 900.0 and 9e2."""
    amount = _amount(check.name(key, "a state"))
    return key if amount is None else label(amount)


# -- writing -----------------------------------------------------------------------------------


def pieces(forest: Forest, ranges: Sequence[Range] = ()) -> Iterator[str]:
    """The text, in pieces of some thousand lines: one box per line, shared parts once."""
    writer = _Writer(forest)
    yield f'{{\n  "format": "{FORMAT}",\n'
    yield "".join(f'  "{key}": {_value(x)},\n' for key, x in said(forest).items())
    if len(writer.leader):
        yield '  "kinds": {\n'
        yield ",\n".join(f'    "k{i}": {writer.kind(i)}' for i in range(len(writer.leader)))
        yield "\n  },\n"
    yield '  "boxes": ['
    for i in range(0, len(forest), _BOXES_AT_ONCE):
        some = range(i, min(i + _BOXES_AT_ONCE, len(forest)))
        yield ",\n" if i else "\n"
        yield ",\n".join(f"    {writer.box(v)}" for v in some)
    if ranges:
        yield '\n  ],\n  "ranges": [\n'
        yield ",\n".join(f"    {_text(_said_range(r))}" for r in ranges)
    yield "\n  ]\n}\n"


def _said_range(r: Range) -> dict[str, str]:
    states = {"given": r.given, "state": r.state}
    there = {key: x for key, x in states.items() if x is not None}
    return {"box": r.box, "field": r.field, **there, "range": r.cell}


class _Writer:
    """Text of kinds and boxes. A kind says what the first box of it says; the others differ.

    Boxes with the same law are of one kind; of the others, those with the same rewards.
    """

    def __init__(self, f: Forest) -> None:
        self.forest = f
        there = [(one, x) for one in BY_BOX if (x := one.given(f)) is not None]
        self.openings = [(one.key, x) for one, x in there if one.form == "opening"]
        self.entries = [(one, x) for one, x in there if one.form == "entry"]
        by_law = f.law * 2 + (f.parent < 0)  # a root's law is written in its own way
        same_law = _shared(by_law)
        key = np.where(same_law, by_law, -1 - f.reward)
        shared = np.flatnonzero(same_law | _shared(key))
        _, first, number = np.unique(key[shared], return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))  # kinds are numbered as they appear
        self.kind_of = np.full(len(f), -1, np.int64)  # -1: none
        self.kind_of[shared] = rank[number]
        self.leader = shared[np.sort(first)]  # the first box of each kind
        self.gives_law = same_law[self.leader]

    def kind(self, i: int) -> str:
        """What the boxes of a kind share."""
        v = int(self.leader[i])
        fields = [*self._opening(v), *self._rewards(v)]
        return _braced(fields + [self._law(v)] * bool(self.gives_law[i]))

    def box(self, v: int) -> str:
        """A box: what its kind does not say."""
        f, kind, up = self.forest, int(self.kind_of[v]), int(self.forest.parent[v])
        fields = [] if f.names is None else [f'"name": {_text(f.names[v])}']
        if up >= 0:
            fields.append(f'"parent": {up if f.names is None else _text(f.names[up])}')
        if kind < 0:
            fields += [*self._opening(v), *self._rewards(v), self._law(v)]
        else:
            fields.append(f'"kind": "k{kind}"')
            first = int(self.leader[kind])
            if f.cost[v] != f.cost[first]:
                fields += self._opening(v)
            if f.reward[v] != f.reward[first]:
                fields += self._rewards(v, unlike=first)
            fields += [] if self.gives_law[kind] else [self._law(v)]
        for one, column in self.entries:
            if (x := column[v]) != one.default:
                fields.append(f'"{one.key}": {_value(one.plain(x))}')
        return _braced(fields)

    def _opening(self, v: int) -> Iterator[str]:
        """The cost, and what else comes with the opening."""
        for key, pool in self.openings:
            entry = pool[int(self.forest.cost[v])]
            text = _numbers(entry[:, 0] if entry.shape[1] == 1 else entry)
            yield f'"{key}": {text[1:-1] if entry.size == 1 else text}'

    def _rewards(self, v: int, unlike: int = -1) -> Iterator[str]:
        """Rewards and names of the states; ``unlike`` is a box whose names must not be taken."""
        f, row = self.forest, int(self.forest.reward[v])
        yield f'"rewards": {_numbers(f.rewards[row][0])}'
        names = f.state_names[row]
        if names is not None:
            yield f'"states": [{", ".join(map(_text, names))}]'
        elif unlike >= 0 and f.state_names[int(f.reward[unlike])] is not None:
            yield '"states": null'

    def _law(self, v: int) -> str:
        law = self.forest.laws[int(self.forest.law[v])]
        return f'"law": {_numbers(law[0] if self.forest.parent[v] < 0 else law)}'


def _shared(key: IntArray) -> npt.NDArray[np.bool_]:
    _, number, copies = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(copies[number] > 1)


def _braced(fields: list[str]) -> str:
    return "{" + ", ".join(fields) + "}"


def _text(x: Any) -> str:
    return json.dumps(x, ensure_ascii=False)


def _value(x: Any) -> str:
    return _numbers(np.array([x]))[1:-1] if isinstance(x, float) else _text(x)


def _numbers(x: FloatArray) -> str:
    """Numbers that read back bitwise identical; null for a reward that does not exist."""
    return _NO_REWARD.sub("null", _WHOLE.sub("", json.dumps(x.tolist())))


# -- the schema --------------------------------------------------------------------------------


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the format ``weitzman/1``.

    ``schema.json`` holds what is said of documents and boxes; all that a field declares is added.
    """
    found: dict[str, Any] = json.loads(
        data_of(__package__).joinpath("schema.json").read_text("utf-8")
    )
    parts, listed = found["$defs"], found["properties"]
    openings = [one for one in BY_BOX if one.form == "opening"]
    entries = {one.key: _described(one) for one in BY_BOX if one.form == "entry"}
    shared = {key: {"$ref": f"#/$defs/{key}"} for key in _KIND_KEYS}
    listed |= {one.key: _described(one) for one in SETTINGS}
    listed["kinds"]["additionalProperties"]["properties"] = shared
    for box in (parts["named"], parts["numbered"]):
        box["properties"] = {**entries, **shared, **box["properties"]}
    for way in parts["complete"]["anyOf"][1:]:
        way["required"] += [one.key for one in openings if one.needed]
    for one in openings:
        number, row = dict(one.schema), {"type": "array", "items": dict(one.schema)}
        by_own = {"type": "object", "additionalProperties": number}
        parts[one.key] = {
            "description": one.meaning + _SHAPES,
            "oneOf": [
                number,
                row,
                {"type": "array", "minItems": 1, "items": row},
                {"type": "object", "additionalProperties": {"oneOf": [number, by_own]}},
            ],
        }
    return found


def _described(one: Field) -> dict[str, Any]:
    words = {"enum": list(one.words.values())} if one.words else {}
    return {"description": one.meaning, **one.schema, **words}
