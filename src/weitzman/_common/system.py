"""Calls to the operating system: make the names in a folder durable, check for live processes."""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

_NO_SUCH_THING = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF)


class Folder:
    """An open folder, whose entries can be made durable."""

    def __init__(self, handle: int | None) -> None:
        self._handle = handle

    def sync(self) -> None:
        """Wait until the names in the folder are on disk, where the system supports it."""
        if self._handle is None:
            return
        try:
            os.fsync(self._handle)
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


class Process(NamedTuple):
    """A process, distinct from all others on all machines.

    ``machine`` changes with every boot and differs between containers. ``born`` distinguishes a
    process from a later one with the same number.
    """

    host: str
    machine: str
    pid: int
    born: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def this_process() -> Process:
    """The process that calls."""
    pid = os.getpid()
    return Process(socket.gethostname(), _machine(), pid, _born(pid) or "")


def is_alive(other: Process) -> bool | None:
    """Whether a process is alive; None if that cannot be known from here."""
    if other.machine != _machine() or other.host != socket.gethostname():
        return None
    if _machine():  # Linux
        return _born(other.pid) == other.born
    if sys.platform == "win32":
        return True if other.pid == os.getpid() else None
    with suppress(PermissionError):  # it is there, and someone else's
        try:
            os.kill(other.pid, 0)
        except ProcessLookupError:
            return False
    return True


def _machine() -> str:
    parts = []
    with suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            parts.append(file.read().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def _born(pid: int) -> str | None:
    """When a process began, in ticks since the boot; None if it is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, *fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if state in (b"Z", b"X") else fields[18].decode()
