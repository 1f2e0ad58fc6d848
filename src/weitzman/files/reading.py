"""Strict JSON: text that two readers could understand differently is refused."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from ..errors import InvalidFile

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
