"""Durable files, old files that stay whole until the new ones are complete, and other processes.

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
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, BinaryIO, NamedTuple

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
            try:
                folder.sync()
            except OSError as error:
                why = f"it is written, but its name may be lost in a power cut ({error.strerror})"
                raise OSError(error.errno, f"{why}; write it again") from error
    except BaseException:
        with suppress(OSError):
            os.unlink(new)
        raise


@contextmanager
def one_at_a_time(path: str) -> Iterator[None]:
    """Wait until no other process does this with a file of the same folder.

    Where there are no such locks, or another process has stopped with one, nobody waits for long.
    """
    with ExitStack() as stack:
        with suppress(OSError, ImportError):  # there is no fcntl on Windows
            folder, until = stack.enter_context(open_folder(path)), time.monotonic() + _PATIENCE
            locks: Any = importlib.import_module("fcntl")
            while time.monotonic() <= until:
                try:
                    locks.flock(folder.handle, locks.LOCK_EX | locks.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(_SOON)
        yield  # closing the folder gives up the lock


# -- processes -------------------------------------------------------------------------------------


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


class Heartbeats:
    """Which other processes are gone, told by the system or by the signs of life that they give."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, float]] = {}  # how many by name, and since when

    def is_gone(self, name: str, process: Process, beats: Callable[[], int], lease: float) -> bool:
        """Whether a process has ended, or has given no sign for so many seconds of this clock.

        ``beats`` counts the signs; it is called only for a process on another machine.
        """
        alive = is_alive(process)
        if alive is not None:
            return not alive
        count, now = beats(), time.monotonic()
        seen, since = self._seen.setdefault(name, (count, now))
        if seen != count:
            self._seen[name] = count, now
            return False
        return now - since > lease


def lock_holders(path: str) -> list[str]:
    """Other processes that keep a file locked, as far as the system tells (on Linux)."""
    found: dict[int, str] = {}
    with suppress(OSError, ValueError):
        status = os.stat(path)
        device = os.major(status.st_dev), os.minor(status.st_dev)
        with open("/proc/locks", encoding="ascii") as file:
            for line in file:
                kind, _, _, pid, place = line.partition(": ")[2].split()[:5]
                major, minor, inode = place.split(":")
                here = (int(major, 16), int(minor, 16)) == device and int(inode) == status.st_ino
                if kind == "POSIX" and here and int(pid) not in (os.getpid(), 0, -1):
                    found[int(pid)] = f"process {pid} on {socket.gethostname()}"
    return list(found.values())


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
