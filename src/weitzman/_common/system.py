"""Calls to the operating system: which process this is, which others live, what they lock."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple


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
