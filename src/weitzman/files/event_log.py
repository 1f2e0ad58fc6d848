"""A durable log of events: one SQLite file that a crash cannot spoil.

Searches, lazy searches and tuners keep what happens in such a file; the state of each follows from
applying the events one after the other. Tables:

=========  =====================================================================================
setting    ``name``, ``value`` (JSON), ``crc`` of the value; ``kind`` says whose log it is
event      ``number`` (1, 2, ...), ``time`` (seconds since 1970), ``worker``, ``content`` (JSON),
           ``crc`` of all this and of the ``crc`` before. SQLite keeps the last number twice
piece      ``event``, ``part``, ``place``, ``data``, ``crc``: bytes that belong to an event, such as
           a model, cut into pieces; event 0 stands for the start
worker     Who is using the log: ``token``, ``host``, ``machine``, ``pid``, ``born``, ``since``,
           ``beats`` (how often it has written), ``owner`` (1: alone). No part of the history
=========  =====================================================================================

Durability: each change is one transaction with ``synchronous=EXTRA``. When a call returns, the
operating system has written (fsync) the data and the folder to the disk, so neither the end of the
process nor a power cut undoes it, as long as the disk keeps what it reports as written.
The rollback journal (``journal_mode=DELETE``) takes some milliseconds per event, more than a
write-ahead log would. In return the file is complete by itself between calls: it can be copied or
moved alone, and can lie on a network drive with working locks. After a crash, a file of the same
name with ``-journal`` at the end may lie beside it and belongs to it. A crash while a log is being
made leaves no log, but perhaps a hidden file that ends in ``.tmp`` and can be deleted.
"""

from __future__ import annotations

import ctypes
import json
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar

from .._common.system import lock_holders
from ..errors import InvalidFile, InvalidForest, JournalError
from . import event_file as _file
from .event_file import Workers

Path = str | os.PathLike[str]
Content = dict[str, Any]
T = TypeVar("T")

PATIENCE = 60.0  # seconds to wait for other processes
_FORK_PATIENCE = 1.0  # seconds that a fork waits for threads that are writing

# Troubles that are not in the file.
_CURABLE = tuple(
    f"SQLITE_{code}"
    for code in ("FULL", "IOERR", "BUSY", "LOCKED", "READONLY", "CANTOPEN", "PERM", "NOMEM")
)
_NO_LOCKS = "SQLITE_PROTOCOL", "SQLITE_NOLFS", "SQLITE_IOERR_LOCK", "SQLITE_IOERR_RDLOCK"

# Closing any handle of a file gives up all locks that this process has on it (POSIX), so the
# threads of a process take turns, file by file.
_TURNS: dict[str, threading.RLock] = {}
_HELD = threading.local()  # the turns that a thread holds while it forks
_OPEN: weakref.WeakSet[EventLog] = weakref.WeakSet()


class Entry(NamedTuple):
    """An event as the log has it."""

    number: int
    worker: str
    content: Content


class EventLog:
    """A log in use by one worker.

    Attributes
    ----------
    path : str
    settings : dict
    workers : Workers
        Who is using the log.
    """

    def __init__(self, path: Path, kind: str, me: str) -> None:
        self._process = os.getpid()
        self._db: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._closed = False
        self.path, self.kind = os.fspath(path), kind
        self.settings: Content = {}
        self.workers = Workers(self.path, me)
        self._last = 0, 0  # number and checksum, in one step: an interrupt may come between two
        self._added: list[tuple[int, int]] = []
        self._before_adding: tuple[int, int] | None = None

    @property
    def seen(self) -> int:
        """The last event that was read or written, and applied."""
        return self._last[0]

    @classmethod
    def create(
        cls, path: Path, kind: str, me: str, settings: Content, parts: Mapping[str, bytes],
        *, owner: bool = True,
    ) -> EventLog:  # fmt: skip
        """Write a new log, in use by this worker; the file appears complete or not at all."""
        self = cls(path, kind, me)
        with self._explained():
            _file.create(
                self.path, {"kind": kind, **settings}, parts,
                lambda db: self.workers.enter(db, owner=owner),
            )  # fmt: skip
        self.settings = settings
        return self

    @classmethod
    def open(cls, path: Path, kind: str, me: str) -> EventLog:
        """Open an existing log of the given kind."""
        self = cls(path, kind, me)
        try:
            self.transact(self._read_settings)
            if self.settings.pop("kind", None) != kind:
                raise InvalidFile(
                    f"{self.path}: the file is a journal, but not that of a {kind}. It was left as "
                    f"it is."
                )
        except BaseException:
            self._drop()
            raise
        return self

    def close(self, patience: float = 0.5) -> None:
        """Let go of the file."""
        if not self._closed and self._process == os.getpid():
            with suppress(JournalError, InvalidFile):
                if self.workers.entered:
                    self.transact(self.workers.leave, patience)
            self._closed = True
            self._drop()

    def __del__(self) -> None:
        with suppress(Exception):
            self.close(0.0)

    # -- using it ------------------------------------------------------------------------------

    def transact(self, do: Callable[[sqlite3.Connection], T], patience: float | None = None) -> T:
        """Do something while no other process writes; what it adds is on disk at the end."""
        if self._closed:
            raise JournalError(f"{self.path}: the search was closed. Resume it.")
        if self._process != os.getpid():
            raise JournalError(
                f"{self.path}: was opened in another process. Use Search.join in each process."
            )
        turn, wait = self._own_turn(), PATIENCE if patience is None else patience
        first = not turn._is_owned()
        try:
            return self._transact(do, time.monotonic() + wait)
        finally:  # an interrupt may have come where the turn was to be given back
            _give_back(turn, first)

    def _transact(self, do: Callable[[sqlite3.Connection], T], until: float) -> T:
        with self._explained(), self._turn(until):
            try:
                db = self._begin(until)
                result = do(db)
                _file.patiently(db, "COMMIT", until)
            except BaseException:
                self._undo()  # the next turn may open the file again
                raise
            return result

    def news(self, db: sqlite3.Connection) -> Iterator[Entry]:
        """Events since the last one seen; each counts as seen once the next is asked for."""
        (last,) = db.execute("SELECT coalesce(max(number), 0) FROM event").fetchone()
        once = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'event'").fetchone()
        before = max(self.seen, 0 if once is None else once[0])
        if last < before:
            raise self.damaged(f"it had {before} events before and has {last} now")
        # all at once: a statement left half read would keep its lock as long as an error lives
        sql = "SELECT * FROM event WHERE number > ? ORDER BY number"
        for number, when, worker, content, crc in db.execute(sql, (self.seen,)).fetchall():
            if crc != _checksum(self._last[1], number, when, worker, content):
                raise self.damaged(f"event {self.seen + 1} is missing or was changed")
            yield Entry(number, worker, json.loads(content))
            self._last = number, crc

    def add(
        self,
        db: sqlite3.Connection,
        contents: Sequence[Content],
        parts: Mapping[str, bytes] | None = None,
    ) -> list[Entry]:
        """Write events, and bytes that belong to the last of them."""
        crc, entries = self._last[1], []
        if self._before_adding is None:
            self._before_adding = self._last
        self._added = []
        for number, content in enumerate(contents, self.seen + 1):
            row = number, time.time(), self.workers.me, json.dumps(content)
            crc = _checksum(crc, *row)
            db.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?)", (*row, crc))
            self._added.append((number, crc))
            entries.append(Entry(number, self.workers.me, content))
        for part, data in (parts or {}).items():
            _file.write_part(db, entries[-1].number, part, data)
        if entries:
            self.workers.beat(db)
        return entries

    def step(self) -> None:
        """Count the next of the added events as applied."""
        self._last = self._added.pop(0)

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Events that are added within count as written only if there is no error.

        Events of others stay seen: whoever read them has acted on them.
        """
        self._before_adding = None
        try:
            yield
        except BaseException:
            self._last = self._before_adding or self._last
            raise

    def rewind(self) -> None:
        """Forget which events were seen."""
        self._last = 0, 0
        self._added = []

    def part(self, db: sqlite3.Connection, event: int, part: str) -> bytes:
        """Bytes that belong to an event; a ValueError says what is wrong."""
        return _file.read_part(db, event, part)

    def damaged(self, why: str) -> InvalidFile:
        """The error for a file that does not hold what was written."""
        return InvalidFile(f"{self.path}: the journal is damaged: {why}. Use a copy of it.")

    # -- details -------------------------------------------------------------------------------

    def _read_settings(self, db: sqlite3.Connection) -> None:
        for name, value, crc in db.execute("SELECT name, value, crc FROM setting").fetchall():
            if crc != _file.checksum(value):
                raise self.damaged(f"the setting {name!r} was changed")
            self.settings[name] = json.loads(value)

    def _own_turn(self) -> Any:
        return _TURNS.setdefault(os.path.realpath(self.path), threading.RLock())

    @contextmanager
    def _turn(self, until: float) -> Iterator[None]:
        turn = self._own_turn()
        first = not turn._is_owned()  # else this thread has it further up, as when it collects
        try:
            if first and not turn.acquire(timeout=max(0.0, until - time.monotonic())):
                raise self._unwritten(f"another thread has held it for {PATIENCE:g} seconds")
            yield
        finally:
            _give_back(turn, first)

    def _begin(self, until: float) -> sqlite3.Connection:
        found = os.stat(self.path)
        here = found.st_dev, found.st_ino
        if self._file is not None and self._file != here:
            raise JournalError(
                f"{self.path}: another file has taken the place of the journal while it was in "
                f"use. Put it back, or resume the search from where it is."
            )
        if self._db is not None:
            if self._db.in_transaction:  # an interrupt came between
                self._db.execute("ROLLBACK")
            _file.patiently(self._db, "BEGIN IMMEDIATE", until)
            return self._db
        _file.check_header(self.path)
        _file.check_locks(self.path)
        self._db, self._file = _file.connect(self.path, until=until), here
        _OPEN.add(self)
        _file.patiently(self._db, "BEGIN IMMEDIATE", until)
        wrong = _file.fault(self._db, self.path)
        if wrong is not None:
            self._drop()
            raise self.damaged(wrong)
        return self._db

    def _undo(self) -> None:
        """Undo what was begun; with a new connection if the old one may be broken."""
        try:
            if self._db is not None and self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error:
            self._drop()

    def _drop(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            with suppress(sqlite3.Error):
                db.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of SQLite and of the system into errors of this package."""
        try:
            yield
        except sqlite3.Error as error:
            self._drop()
            raise self._explanation(error) from error
        except FileExistsError as error:
            raise JournalError(
                f"{self.path}: a new journal must not replace a file, but there is one. Continue "
                f"it with Search.resume, or choose another name."
            ) from error
        except _file.NoLocks as error:
            raise self._no_locks(error.strerror or str(error)) from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise JournalError(f"{self.path}: cannot be used as a journal: {reason}.") from error
        except UnicodeDecodeError as error:
            raise self.damaged(f"a text in it is not UTF-8 ({error.reason})") from None
        except UnicodeEncodeError as error:
            raise InvalidForest(
                f"names must be valid Unicode, but there is {error.object[:40]!r}. Rename it."
            ) from None

    def _explanation(self, error: sqlite3.Error) -> Exception:
        code = getattr(error, "sqlite_errorname", "")
        if code.startswith(_NO_LOCKS):
            return self._no_locks(str(error))
        if not code.startswith(_CURABLE):
            return self.damaged(str(error))
        if code.startswith("SQLITE_BUSY"):
            who = " and ".join(lock_holders(self.path)) or "another process"
            return self._unwritten(
                f"{who} kept it locked for {PATIENCE:g} seconds",
                "end that process, or wait until it is done,",
            )
        return self._unwritten(str(error))

    def _no_locks(self, why: str) -> JournalError:
        return JournalError(
            f"{self.path}: cannot be used as a journal: the file system does not lock files "
            f"({why}). Use a folder on a local disk."
        )

    def _unwritten(self, why: str, cure: str = "remove the cause") -> JournalError:
        return JournalError(
            f"{self.path}: cannot be written: {why}. This call changed nothing and all before it "
            f"is safe: {cure} and repeat the call."
        )


def _checksum(before: int, number: int, when: float, worker: str, content: str) -> int:
    return _file.checksum(json.dumps([number, when, worker, content], default=repr), before)


def _give_back(turn: Any, first: bool) -> None:
    if first and turn._is_owned():
        turn.release()


def _before_fork() -> None:
    """Let the turns of all threads end: SQLite locks held at a fork stay locked in the child.

    This does not wait for a journal that another process keeps locked.
    """
    _HELD.turns, until = [], time.monotonic() + _FORK_PATIENCE
    for turn in list(_TURNS.values()):
        if turn.acquire(timeout=max(0.0, until - time.monotonic())):
            _HELD.turns.append(turn)


def _after_fork() -> None:
    """In the process that was forked: go on."""
    while _HELD.turns:
        _HELD.turns.pop().release()


def _forked() -> None:
    """Start over in a forked process, and leave the connection of the parent untouched.

    Closing an inherited connection could undo what the parent is about to write.
    """
    _HELD.turns = []
    _TURNS.clear()
    for log in list(_OPEN):
        if log._db is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(log._db))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_forked)
