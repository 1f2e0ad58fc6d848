"""Files on disk: read with limits, and JSON without surprises."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from .._common.disk import check_regular
from ..errors import InvalidFile, InvalidForest, WeitzmanError

_SHOWN = 40  # characters of a wrong value shown in a message


def parse(data: bytes) -> Any:
    """The value written in ``data``, or `InvalidFile` with the rule that is broken and the place.

    Stricter than :func:`json.loads`: no key twice in an object, no NaN or Infinity. Text that is
    nested too deeply, or a number with thousands of digits, is refused like any other error.
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
        raise InvalidFile(
            f"not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}, at line {error.lineno}, "
            f"column {error.colno}.{cut}"
        ) from None
    except RecursionError:
        raise InvalidFile(
            "brackets are nested too deeply. An instance needs at most five levels."
        ) from None
    except ValueError as error:
        if isinstance(error, InvalidFile):
            raise
        raise InvalidFile(
            "a whole number is too long. Numbers must fit a 64-bit float; write fewer digits."
        ) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                title = f" (the one named {shown(found['name'])})" if "name" in found else ""
                raise InvalidFile(
                    f"a key must be given once, but {shown(key)} is twice in one object{title}. "
                    f"Remove one of them."
                )
            seen.add(key)
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


def read_document(path: str, most: int) -> Any:
    """The JSON document in a file of at most ``most`` bytes."""
    status = os.stat(path)
    check_regular(status)
    if status.st_size > most:
        raise InvalidFile(f"the file must have at most {most} bytes, but it has more.")
    with open(path, "rb") as file:
        return parse(file.read())
