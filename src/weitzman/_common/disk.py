"""Durable files, and old files that stay whole until the new ones are complete.

Every file that a user asks for is written by `replacing` or `replaced`: a full disk, an error or a
kill in the middle leaves the old file as it was, and of two processes that write at once the last
one to finish wins with a whole file. A kill may leave a hidden file with ``.tmp`` in its name
beside it, which can be deleted.
"""

from __future__ import annotations

import errno
import importlib
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, BinaryIO

_PATIENCE, _SOON = 5.0, 0.002  # seconds to wait for another process in all, and at a time
_NO_SUCH_THING = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF)


class Folder:
    """An open folder, whose entries can be made durable."""

    def __init__(self, handle: int | None) -> None:
        self.handle = handle

    def sync(self) -> None:
        """Wait until the names in the folder are on disk, where the system supports it."""
        if self.handle is None:
            return
        try:
            os.fsync(self.handle)
        except OSError as error:
            if error.errno not in _NO_SUCH_THING:  # some file systems keep names at once
                raise


@contextmanager
def open_folder(path: str) -> Iterator[Folder]:
    """The folder of a file; an error if it cannot be opened, before anything is written there."""
    if os.name != "posix":
        yield Folder(None)
        return
    where = os.path.dirname(os.path.abspath(path))
    try:
        handle = os.open(where, os.O_RDONLY)
    except PermissionError as error:
        why = "the folder cannot be read, so that a new name in it could be lost in a power cut"
        raise PermissionError(error.errno, why, where) from None
    try:
        yield Folder(handle)
    finally:
        os.close(handle)


def check_regular(status: os.stat_result) -> None:
    """Refuse folders, and pipes and devices, from which reading may never end."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is a pipe or a device")


@contextmanager
def replacing(name: str) -> Iterator[BinaryIO]:
    """A new file beside ``name`` that takes its place once it is complete and on disk."""
    with _beside(name, ".tmp") as new, open(new, "xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def replaced(name: str) -> Iterator[str]:
    """The same for those who write by name: what they write there takes the place of ``name``.

    The new name ends as ``name`` does, for it may tell the format.
    """
    with _beside(name, f".tmp{os.path.splitext(name)[1]}") as new:
        yield new
        handle = os.open(new, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _beside(name: str, ending: str) -> Iterator[str]:
    """A hidden name in the same folder; in the end the file of that name becomes ``name``."""
    target = os.path.realpath(name)
    exists = os.path.lexists(target)
    if exists:
        check_regular(os.stat(target))
    new = os.path.join(os.path.dirname(target), f".{secrets.token_hex(8)}{ending}")
    try:
        yield new
        if exists:
            shutil.copymode(target, new)
        with open_folder(target) as folder:
            os.replace(new, target)
            _sync_name(folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(new)
        raise


def _sync_name(folder: Folder) -> None:
    try:
        folder.sync()
    except OSError as error:
        why = f"it is written, but its name may be lost in a power cut ({error.strerror})"
        raise OSError(error.errno, f"{why}; write it again") from error


@contextmanager
def one_at_a_time(path: str) -> Iterator[None]:
    """Wait until no other process does this with a file of the same folder.

    Where there are no such locks, or another process has stopped with one, nobody waits for long.
    """
    with ExitStack() as stack:
        with suppress(OSError, ImportError):  # there is no fcntl on Windows
            folder = stack.enter_context(open_folder(path))
            _lock(folder, time.monotonic() + _PATIENCE)
        yield  # closing the folder gives up the lock


def _lock(folder: Folder, until: float) -> None:
    locks: Any = importlib.import_module("fcntl")
    while True:
        try:
            locks.flock(folder.handle, locks.LOCK_EX | locks.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                return
        time.sleep(_SOON)
