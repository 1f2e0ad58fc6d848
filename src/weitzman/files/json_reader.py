"""From a JSON document of the format ``weitzman/1`` to a forest.

This module checks what only a file can get wrong, and names the place: types, keys, references.
:class:`Forest` checks the rules of the problem (probabilities, shapes, cycles).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from .._common.arrays import FloatArray
from ..errors import InvalidFile
from ..forest.forms import ShortOutcomes
from ..forest.model import Forest
from ..forest.rules import MAX_COUNT
from .outcomes import Names, read_law, read_opening, read_outcomes
from .parsing import array, choice, fields, is_number, like, name, numbers, whole, wrong
from .safely import shown

FORMAT = "weitzman/1"
MAX_LENGTH = 1_000_000  # boxes that a line may stand for
ENDLESS = "endless"  # as a length

TERMS = ("unit", "rate", "risk_tolerance", "prizes", "stated_error")
_TOP = ("format", "objective", "outside", *TERMS, "kinds", "boxes", "note", "$schema")
_TIME = {"factor": 1.0, "duration": 0.0}  # and what stands for a box that does not say
_KIND = ("cost", *_TIME, "rewards", "states", "law", "outcomes", "note")
_BOX = ("name", "parent", "kind", "count", "length", *_KIND)
_OBJECTIVES = ("maximize", "minimize")

T = TypeVar("T")
Kinds = dict[str, dict[str, Any]]


class JsonBox(NamedTuple):
    """One box of the document, or of a line in it, with what its kind adds."""

    where: str
    name: str | None
    parent: str | int | None
    copies: int
    given: dict[str, Any]
    endless: bool = False


def forest(document: Any) -> Forest:
    """The forest that a document describes."""
    top = fields(document, "the document", _TOP)
    if top.get("format") != FORMAT:
        raise InvalidFile(
            f'format must be "{FORMAT}", but it is {_found(top, "format")}. Another program, or a '
            f"newer version of this one, may have written the file."
        )
    minimize = choice(top.get("objective", "maximize"), _OBJECTIVES, "objective") == "minimize"
    outside = _outside(top, minimize)
    entries, place = _entries(top, _kinds(top))
    parent = [_parent(e, place, len(entries)) for e in entries]
    convert = _Convert(np.inf if minimize else -np.inf)
    rewards = [convert.rewards(e) for e in entries]
    states = [convert.states(e, len(r)) for e, r in zip(entries, rewards, strict=True)]
    law, cost = [], []
    time: dict[str, Any] = {what: [] for what in _TIME if any(what in e.given for e in entries)}
    for i, (e, p) in enumerate(zip(entries, parent, strict=True)):
        above = None if p < 0 else convert.titles(states[p], len(rewards[p]))
        law.append(convert.law(e, above))
        own = convert.titles(states[i], len(rewards[i]))
        cost.append(convert.opening("cost", e, above, own, law[-1]))
        for what, column in time.items():
            column.append(convert.opening(what, e, above, own, law[-1]))
    names = [e.name for e in entries if e.name is not None]
    return Forest.from_arrays(
        parent=parent,
        cost=cost,
        rewards=rewards,
        law=law,
        names=names or None,
        outside=outside,
        count=[e.copies for e in entries],
        endless=[e.endless for e in entries],
        minimize=minimize,
        states=None if all(s is None for s in states) else states,
        **time,
        **read_terms(top),
    )


# -- the top of the document -------------------------------------------------------------------


def _found(top: dict[str, Any], key: str) -> str:
    return shown(top[key]) if key in top else "missing"


def _outside(top: dict[str, Any], minimize: bool) -> float | None:
    if "outside" not in top:
        return None  # the default, or an error that says why there is none
    x = top["outside"]
    if x is None:
        return np.inf if minimize else -np.inf
    if not is_number(x):
        wrong("outside", "a number that fits a 64-bit float, or null if something must be taken", x)
    return float(x)


def read_terms(top: dict[str, Any]) -> dict[str, Any]:
    """Unit, rate, risk tolerance, prizes and stated error, where they are given."""
    terms: dict[str, Any] = {}
    if "unit" in top:
        terms["unit"] = name(top["unit"], "unit")
    for key in ("rate", "risk_tolerance", "stated_error"):
        if top.get(key) is not None:
            if not is_number(top[key]):
                wrong(key, "a number", top[key])
            terms[key] = float(top[key])
    if "prizes" in top:
        terms["prizes"] = whole(top["prizes"], "prizes", 1, MAX_COUNT)
    return terms


def _kinds(top: dict[str, Any]) -> Kinds:
    kinds = top.get("kinds", {})
    if not isinstance(kinds, dict):
        wrong("kinds", "an object", kinds)
    return {title: fields(kind, f"kinds[{shown(title)}]", _KIND) for title, kind in kinds.items()}


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
    for i, box in enumerate(boxes):
        one = _entry(i, box, kinds, named)
        if one.endless or "length" not in box:
            _place(place, one, one.name, len(entries))
            entries.append(one)
            continue
        if isinstance(box["length"], str):
            wrong(f"{one.where}: length", f'a whole number, or "{ENDLESS}"', box["length"])
        length = whole(box["length"], f"{one.where}: length", 1, MAX_LENGTH)
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


def _entry(i: int, box: Any, kinds: Kinds, named: bool) -> JsonBox:
    where = f"boxes[{i}]"
    if isinstance(box, dict) and "name" in box:
        where += f" ({shown(box['name'])})"
    fields(box, where, _BOX)
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
    count = 1 if "count" not in box else whole(box["count"], f"{where}: count", 1, MAX_COUNT)
    return JsonBox(where, title, parent, count, given, box.get("length") == ENDLESS)


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
    yield one._replace(name=f"{one.name}.1")
    for i in range(2, length + 1):
        yield one._replace(name=f"{one.name}.{i}", parent=f"{one.name}.{i - 1}", copies=1)


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


@dataclass
class _Convert:
    """Lists as arrays; a list that boxes share through their kind is converted once."""

    none: float  # the reward of a state that has none
    done: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def rewards(self, entry: JsonBox) -> FloatArray:
        if "outcomes" in entry.given:
            return self._once(self._rewards_of, self._outcomes(entry), entry.where)
        return self._once(self._rewards, entry.given["rewards"], f"{entry.where}: rewards")

    def states(self, entry: JsonBox, size: int) -> Sequence[str] | None:
        """Names of the states, if they have any."""
        if "outcomes" in entry.given:
            return self._outcomes(entry).states
        if entry.given.get("states") is None:
            return None
        return self._once(_states, entry.given["states"], f"{entry.where}: states", size)

    def titles(self, states: Sequence[str] | None, size: int) -> Names:
        """Names of the states, or their numbers."""
        return self._once(_titles, states, "", size)

    def law(self, entry: JsonBox, above: Names | None) -> FloatArray:
        """The law; ``above`` names the states of the parent."""
        if "outcomes" not in entry.given:
            return self._once(array, entry.given["law"], f"{entry.where}: law")
        return self._once(read_law, self._outcomes(entry), entry.where, above)

    def opening(
        self, what: str, entry: JsonBox, above: Names | None, own: Names, law: FloatArray
    ) -> FloatArray | float:
        """The cost, factor or duration of a box."""
        none = _TIME.get(what, 0.0)
        cost, where = entry.given.get(what, none), f"{entry.where}: {what}"
        if is_number(cost):
            return float(cost)
        if isinstance(cost, list):
            return self._once(array, cost, where)
        if not isinstance(cost, dict):
            wrong(where, "a number, a list, a list of lists or an object", cost)
        return read_opening(cost, where, above, own, law, none)

    def _outcomes(self, entry: JsonBox) -> ShortOutcomes:
        given, root = entry.given, entry.parent is None
        rewards = given.get("rewards")
        key = (id(given["outcomes"]), id(rewards), root)
        if key not in self.done:
            self.done[key] = read_outcomes(given["outcomes"], entry.where, rewards, root)
        return cast(ShortOutcomes, self.done[key])

    def _once(self, convert: Callable[..., T], raw: Any, where: str, *more: Any) -> T:
        key = (convert, id(raw), *more)
        if key not in self.done:
            self.done[key] = convert(raw, where, *more)
        return cast(T, self.done[key])

    def _rewards_of(self, outcomes: ShortOutcomes, where: str) -> FloatArray:
        return self._rewards(list(outcomes.rewards), where)

    def _rewards(self, x: Any, where: str) -> FloatArray:
        if not isinstance(x, list) or not x:
            wrong(where, "a list of numbers, with null for a state without a reward", x)
        if None not in x:
            return numbers(x, where, "a number or null")
        values = numbers([0 if r is None else r for r in x], where, "a number or null")
        values[[r is None for r in x]] = self.none
        return values


def _states(x: Any, where: str, size: int) -> list[str]:
    if not isinstance(x, list) or len(x) != size:
        wrong(where, f"a list of {size} names, one for each reward", x)
    return [name(s, f"{where}[{i}]") for i, s in enumerate(x)]


def _titles(states: Sequence[str] | None, where: str, size: int) -> Names:
    return tuple(map(str, range(size))) if states is None else tuple(states)
