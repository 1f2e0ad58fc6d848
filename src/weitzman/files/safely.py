"""Reading and writing files: one message for an error, and whole files or none."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

from .._common.disk import Folder, open_folder
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


def check_regular(status: os.stat_result) -> None:
    """Refuse folders, and pipes and devices, from which reading may never end."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is a pipe or a device")


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


@contextmanager
def replacing(name: str) -> Iterator[BinaryIO]:
    """A new file beside ``name`` that takes its place once it is complete and on disk."""
    target = os.path.realpath(name)
    exists = os.path.lexists(target)
    if exists:
        check_regular(os.stat(target))
    new = os.path.join(os.path.dirname(target), f".{secrets.token_hex(8)}.tmp")
    try:
        with open(new, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if exists:
            shutil.copymode(target, new)
        with open_folder(target) as folder:
            os.replace(new, target)
            _sync(folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(new)
        raise


def _sync(folder: Folder) -> None:
    try:
        folder.sync()
    except OSError as error:
        why = f"it is written, but its name may be lost in a power cut ({error.strerror})"
        raise OSError(error.errno, f"{why}; write it again") from error
