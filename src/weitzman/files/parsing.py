"""Checks of values in a JSON document: each returns what it was given, or says what is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from typing import Any, NoReturn

import numpy as np

from .._common.arrays import FloatArray
from ..errors import InvalidFile
from ..forest.columns import no_reward
from ..forest.fields import Field
from ..forest.model import SETTINGS
from ..forest.rules import closest
from .safely import shown as shown

_NUMBER = {int, float}  # exactly these: a bool is not a number
_SUGGESTIONS = 1000  # names that are looked through for one that was perhaps meant
MAX_DENSE = 10_000_000  # entries of a law that a file tells by its states
_LONGEST = 64  # characters of such a name: comparing takes their square


def wrong(where: str, what: str, found: Any) -> NoReturn:
    """Say what should have been there."""
    raise InvalidFile(f"{where} must be {what}, but it is {shown(found)}.")


def fields(x: Any, where: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """An object that has no other keys than these."""
    if not isinstance(x, dict):
        wrong(where, "an object", x)
    for key in x:
        if key not in keys:
            raise InvalidFile(
                f"{where}: {shown(key)} is not a key here{like(key, keys)} The keys are "
                f"{', '.join(keys)}."
            )
    for key in ("note", "$schema"):
        if key in x and not isinstance(x[key], str):
            wrong(f"{where}: {key}", "text", x[key])
    return x


def like(wanted: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the name that was perhaps meant."""
    few = [name for name in islice(known, _SUGGESTIONS) if len(name) <= _LONGEST]
    close = closest(wanted[:_LONGEST], few)
    return "." if close is None else f"; did you mean {shown(close)}?"


def choice(x: Any, known: tuple[str, ...], where: str) -> str:
    """One of a few words."""
    if not isinstance(x, str) or x not in known:
        wrong(where, " or ".join(f'"{k}"' for k in known), x)
    return x


def name(x: Any, where: str) -> str:
    """Any text that can be written again."""
    if not isinstance(x, str):
        wrong(where, "text", x)
    try:
        x.encode()
    except UnicodeEncodeError:
        raise InvalidFile(f"{where} must be valid Unicode, but it is {shown(x)}.") from None
    return x


def whole(x: Any, where: str, low: int, high: int) -> int:
    """A whole number; 1e6 counts as one."""
    if is_number(x) and x == int(x) and low <= x <= high:
        return int(x)
    wrong(where, f"a whole number from {low} to {high}", x)


def is_number(x: Any) -> bool:
    """Whether x is a number that fits a float."""
    try:
        return type(x) in _NUMBER and math.isfinite(x)
    except OverflowError:
        return False


def numbers(x: list[Any], where: str, what: str = "a number", width: int = 0) -> FloatArray:
    """A vector of finite numbers; ``width`` is that of the matrix that it is taken from."""
    try:
        if _NUMBER.issuperset(map(type, x)):
            values = np.array(x, np.float64)
            if np.isfinite(values).all():
                return values
    except OverflowError:
        pass
    i, bad = next((i, v) for i, v in enumerate(x) if not is_number(v))
    place = f"{where}[{i // width}][{i % width}]" if width else f"{where}[{i}]"
    if type(bad) in _NUMBER:
        raise InvalidFile(f"{place} must fit a 64-bit float, but it is {shown(bad)}. Rescale it.")
    wrong(place, what, bad)


def check_dense(entries: int, where: str) -> None:
    """Refuse a short text that stands for a huge matrix, before memory is spent on it."""
    if entries > MAX_DENSE:
        raise InvalidFile(
            f"{where}: the law must have at most {MAX_DENSE:,} entries, but it has {entries:,}. "
            f"Build the forest in Python and save it as .wz."
        )


def read_value(field: Field, x: Any, where: str) -> Any:
    """A value of an entry or a setting, of the type that the field declares."""
    if field.words:
        said = {word: value for value, word in field.words.items()}
        return said[choice(x, tuple(said), where)]
    if field.type is int:
        return whole(x, where, field.schema.get("minimum", 0), field.schema.get("maximum", 2**53))
    if field.type is str:
        return name(x, where)
    if field.type is float:
        if not is_number(x):
            none = "" if field.none is None else f", or null if {field.none}"
            wrong(where, f"a number that fits a 64-bit float{none}", x)
        return float(x)
    if not isinstance(x, field.type):
        wrong(where, "an object" if field.type is dict else "true or false", x)
    return x


def read_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings among some values, which have the keys of files, by their names in Python.

    Null stands for infinity where something must be taken, and elsewhere for nothing.
    """
    here = [one for one in SETTINGS if one.key in given]
    said = {
        one.name: read_value(one, given[one.key], one.key)
        for one in here
        if given[one.key] is not None
    }
    worst = no_reward(bool(said.get("minimize")))
    return said | {o.name: worst for o in here if o.none is not None and o.name not in said}


def array(x: Any, where: str) -> FloatArray:
    """A vector from a list of numbers, or a matrix from a list of equally long lists."""
    if not isinstance(x, list):
        wrong(where, "a list of numbers, or a list of such lists", x)
    if not x or not isinstance(x[0], list):
        return numbers(x, where)
    for i, row in enumerate(x):
        if not isinstance(row, list) or len(row) != len(x[0]):
            wrong(f"{where}[{i}]", f"a list of {len(x[0])} numbers like the first row", row)
    flat = numbers(list(chain.from_iterable(x)), where, width=len(x[0]))
    return flat.reshape(len(x), len(x[0]))
