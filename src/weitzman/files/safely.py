"""Reading and writing files: one message for an error."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._common.disk import check_regular
from ..errors import InvalidFile, InvalidForest, WeitzmanError
from . import reading


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
    """The JSON document in a file of at most so many bytes."""
    status = os.stat(path)
    check_regular(status)
    if status.st_size > most:
        raise InvalidFile(f"the file must have at most {most} bytes, but it has more.")
    with open(path, "rb") as file:
        return reading.parse(file.read())
