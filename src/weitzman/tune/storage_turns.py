"""Turns of several processes by means of the attributes of an Optuna study.

A storage of Optuna has no lock, but attributes that are written as a whole and read as they stand.
That is enough for Lamport's bakery (1974): a process takes a number above all numbers that are
taken, and waits until no other process has a lower one. A process that dies is skipped: at once on
the same machine, and elsewhere once its heart has not beaten for :data:`LEASE` seconds by the clock
of the process that waits.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .._common.system import Heartbeats, Process, is_alive, this_process

if TYPE_CHECKING:
    from optuna import Study

T = TypeVar("T")
_WORKER, _BEAT = "weitzman:worker:", "weitzman:beat:"  # of the study, one for each process
HEARTBEAT = 10.0  # seconds
LEASE = 120.0  # seconds without a heartbeat, after which a process on another machine is gone
_SOON, _LATER = 0.002, 0.1  # seconds between two looks at the numbers of others


class Place(NamedTuple):
    """What a process says about itself: its number, 0 without one; and whether it takes one now."""

    process: Process
    number: int
    choosing: bool

    def turn(self, name: str) -> tuple[int, str]:
        """Who comes first: the lowest number, then the name; without a number nobody."""
        return (self.number, name) if self.number else (0, "")


def living(study: Study) -> list[Process]:
    """The processes that share a study, as far as they are not known to be gone."""
    said: dict[str, Any] = study._storage.get_study_system_attrs(study._study_id)
    found = _said(said)
    return [place.process for place in found.values() if is_alive(place.process) is not False]


def _said(said: Mapping[str, Any]) -> dict[str, Place]:
    return {
        key.removeprefix(_WORKER): Place(Process(*value[0]), *value[1:])
        for key, value in said.items()
        if key.startswith(_WORKER) and value is not None
    }


class StorageTurns:
    """One process among those that share a study; it is one of them from the beginning.

    Parameters
    ----------
    study : optuna.Study

    Attributes
    ----------
    me : str
        The name of this process in the study.
    inside : bool
        Whether it is the turn of this process.
    """

    def __init__(self, study: Study) -> None:
        self._storage: Any = study._storage
        self._study: Any = study._study_id
        self.me = secrets.token_hex(8)
        self.inside = False
        self._process = this_process()
        self._beats = Heartbeats()
        self._over = threading.Event()
        self._say(0, choosing=False)
        self._heart = threading.Thread(target=self._beat, daemon=True, name="weitzman heartbeat")
        self._heart.start()

    def take(self, do: Callable[[], T], *, last: bool = False) -> T:
        """Do something while no other process does; within a turn, do it at once.

        After its ``last`` turn this process is no longer one of those that share the study.
        """
        if self.inside:
            return do()
        self._wait()
        self.inside = True
        try:
            return do()
        finally:
            self.inside = False
            if last:
                self.leave()
            else:
                self._say(0, choosing=False)

    def leave(self) -> None:
        """Take no further turns."""
        if not self._over.is_set():
            self._over.set()
            self._set(_WORKER, None)

    def others(self) -> dict[str, Process]:
        """The other processes that share the study and are alive."""
        return {name: place.process for name, place in self._places().items()}

    def _wait(self) -> None:
        """Take a number, and wait until it is the lowest."""
        self._say(0, choosing=True)
        number = 1 + max((place.number for place in self._places().values()), default=0)
        self._say(number, choosing=False)
        first, pause = set(self._places()), _SOON
        while first := {
            name
            for name, place in self._places().items()
            if name in first and (place.choosing or (0, "") < place.turn(name) < (number, self.me))
        }:
            time.sleep(pause)
            pause = min(1.5 * pause, _LATER)

    def _places(self) -> dict[str, Place]:
        """What the other processes say that are alive."""
        said = self._storage.get_study_system_attrs(self._study)
        found = _said(said)
        found.pop(self.me, None)
        return {
            name: place
            for name, place in found.items()
            if not self._beats.is_gone(
                name, place.process, partial(said.get, f"{_BEAT}{name}", 0), LEASE
            )
        }

    def _beat(self) -> None:
        beats = 0
        while not self._over.wait(HEARTBEAT):
            beats += 1
            with suppress(Exception):  # a storage that is busy: the next one may come through
                self._set(_BEAT, beats)

    def _say(self, number: int, *, choosing: bool) -> None:
        self._set(_WORKER, [list(self._process), number, choosing])

    def _set(self, key: str, value: Any) -> None:
        self._storage.set_study_system_attr(self._study, f"{key}{self.me}", value)
