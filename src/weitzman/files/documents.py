"""Files on disk, read with limits; JSON parsed without surprises and checked value by value.

Each check returns what it was given, or says what is wrong and where.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any, NoReturn

import numpy as np

from .._common.arrays import FloatArray
from .._common.disk import check_regular
from ..errors import InvalidFile, InvalidForest, WeitzmanError
from ..forest.columns import no_reward
from ..forest.fields import Field
from ..forest.model import SETTINGS
from ..forest.rules import closest

Path = str | os.PathLike[str]

MAX_BYTES = 2**29  # of a text, once unpacked: its objects take ten times as much memory
_CHUNK = 2**20
_SHOWN = 40  # characters of a wrong value shown in a message
_NUMBER = {int, float}  # exactly these: a bool is not a number


@contextmanager
def explained(name: str, done: str) -> Iterator[None]:
    """Errors within become one message that names the file."""
    try:
        yield
    except WeitzmanError as error:
        raise type(error)(f"{name}: {error}") from error.__cause__
    except OSError as error:
        reason = error.strerror or str(error)
        raise InvalidFile(f"{name}: cannot be {done}: {reason}.") from error
    except UnicodeEncodeError as error:
        raise InvalidForest(
            f"{name}: names must be valid Unicode, but there is {error.object[:40]!r}. Rename it."
        ) from None
    except MemoryError as error:
        raise InvalidFile(f"{name}: cannot be {done}: it does not fit into memory.") from error


def packed_limit(size: int) -> int:
    """Bytes that a packed file of a size may unpack to; what is read takes twenty times as much."""
    return 2**24 + 24 * size


def unpacked(path: str) -> bytes:
    """The bytes of a text, unpacked if its name ends in .gz; a small file may unpack to much."""
    check_regular(status := os.stat(path))
    packed, most = path.lower().endswith(".gz"), MAX_BYTES
    most = min(most, packed_limit(status.st_size)) if packed else most
    chunks, size = list[bytes](), 0
    try:
        with gzip.open(path) if packed else open(path, "rb") as file:
            while size <= most and (chunk := file.read(_CHUNK)):
                chunks.append(chunk)
                size += len(chunk)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InvalidFile(f"not a complete gzip file: {str(error).rstrip('.')}.") from None
    if size > most:
        raise InvalidFile(
            f"the text must have at most {most:,} bytes once unpacked, but it has more. Write "
            f"large instances as .wz."
        )
    return b"".join(chunks)


# -- text --------------------------------------------------------------------------------------


def parse(data: bytes) -> Any:
    """The value written in ``data``, or `InvalidFile` with the rule that is broken and the place.

    Stricter than :func:`json.loads`: no key twice in an object, no NaN or Infinity. Text that is
    nested too deeply, or a number with thousands of digits, raises like any other error.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidFile(
            f"the text must be UTF-8, but byte {error.start} ({data[error.start]:#04x}) is not. "
            f"Save the file with that encoding."
        ) from None
    if not text or text.isspace():
        raise InvalidFile("there must be a JSON object, but there is nothing.")
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        cut = " The text seems to be cut off." if error.pos >= len(text.rstrip()) else ""
        why = f"not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}, at line {error.lineno}, "
        why += f"column {error.colno}.{cut}"
    except RecursionError:
        why = "brackets are nested too deeply. An instance needs at most five levels."
    except InvalidFile:
        raise
    except ValueError:
        why = "a whole number is too long. Numbers must fit a 64-bit float; write fewer digits."
    raise InvalidFile(why)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        title = f" (the one named {shown(found['name'])})" if "name" in found else ""
        raise InvalidFile(
            f"a key must be given once, but {shown(twice)} is twice in one object{title}. "
            f"Remove one of them."
        )
    return found


def _constant(word: str) -> NoReturn:
    raise InvalidFile(
        f"numbers must be finite, but there is {word}. Write null for a reward or an outside "
        f"option that does not exist."
    )


def shown(x: object) -> str:
    """A value of a JSON document in a few characters, for messages."""
    if isinstance(x, (list, dict)):
        return f"{'a list' if isinstance(x, list) else 'an object'} of {len(x)}"
    if x is None or isinstance(x, bool):
        return "null" if x is None else str(x).lower()
    text = repr(x)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


# -- values ------------------------------------------------------------------------------------


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
    close = closest(wanted, known)
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
    if not x.isascii() and any("\ud800" <= c <= "\udfff" for c in x):  # half a character
        wrong(where, "valid Unicode", x)
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
    wrong(place, "a number that fits a 64-bit float" if type(bad) in _NUMBER else what, bad)


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


# -- fields of a problem -----------------------------------------------------------------------


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
    there = ((one, x) for one in here if (x := given[one.key]) is not None)
    said = {one.name: read_value(one, x, one.key) for one, x in there}
    worst = no_reward(bool(said.get("minimize")))
    return said | {o.name: worst for o in here if o.none is not None and o.name not in said}
