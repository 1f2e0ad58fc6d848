"""The journal of a search: one SQLite file that a crash cannot spoil.

It holds the model with its indices, the settings, and every event in order; a search is what
comes of applying them one after the other. Tables:

=========  =====================================================================================
setting    ``name``, ``value`` (JSON), ``crc`` of the value
model      ``number`` (0, then one more for each replacement), ``part``, ``piece``, ``data``,
           ``crc`` of the data. The parts, cut into pieces: ``forest`` (format .wz), ``index_at``
           and ``index`` (format .npy, without pickle)
event      ``number`` (1, 2, ...), ``time`` (seconds since 1970), ``worker``, ``kind`` (ask, tell,
           take, release, resume, replace), ``box``, ``state``, ``reward``, ``cost``, ``model``,
           ``crc`` of all this and of the ``crc`` before. SQLite keeps the last number elsewhere
=========  =====================================================================================

How durable it is: each event is one transaction with ``synchronous=EXTRA``. When a call returns,
SQLite has had the operating system write (fsync) the data and the folder to the disk, so neither
the end of the process nor a power cut undoes it, if the disk keeps what it says it has written.
The rollback journal (``journal_mode=DELETE``) takes some milliseconds an event, more than a
write-ahead log would, but between calls the file is complete by itself: it can be copied or moved
alone, and lie on a network drive with working locks. After a crash, a file of the same name with
``-journal`` at the end may lie beside it and belongs to it. A crash while a search is being started
leaves no journal, but perhaps a hidden file that ends in ``.tmp`` and can be deleted.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ..engine.indices import Policy
from ..errors import InvalidFile, InvalidForest, JournalError
from . import journal_file as _file
from .ledger import Event

Path = str | os.PathLike[str]

# Troubles that are not in the file.
_CURABLE = tuple(
    f"SQLITE_{code}"
    for code in ("FULL", "IOERR", "BUSY", "LOCKED", "READONLY", "CANTOPEN", "PERM", "NOMEM")
)

# Closing any handle of a file gives up all locks that this process has on it (POSIX), so the
# threads of a process take turns.
_TURNS = threading.RLock()


class Journal:
    """A journal file in use.

    Attributes
    ----------
    path : str
    settings : dict
    seen : int
        The last event that this process has applied.
    """

    def __init__(self, path: Path) -> None:
        self._process = os.getpid()
        self._db: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._closed = False
        self.path = os.fspath(path)
        self.settings: dict[str, Any] = {}
        self.seen = 0
        self._crc = 0
        self._added: list[int] = []

    @classmethod
    def create(cls, path: Path, policy: Policy, settings: dict[str, Any]) -> Journal:
        """Write a new journal; the file appears complete or not at all."""
        self = cls(path)
        with self._explained():
            _file.create(self.path, policy, settings)
        self.settings = settings
        return self

    @classmethod
    def open(cls, path: Path) -> Journal:
        """Open a journal that is there."""
        self = cls(path)
        with self.turn() as db:
            for name, value, crc in db.execute("SELECT name, value, crc FROM setting"):
                if crc != _file.checksum(value):
                    raise self._damaged(f"the setting {name!r} was changed")
                self.settings[name] = json.loads(value)
        return self

    def close(self) -> None:
        """Let go of the file."""
        self._closed = True
        self._drop()

    def __del__(self) -> None:
        if self._process == os.getpid():
            self.close()

    @contextmanager
    def turn(self) -> Iterator[sqlite3.Connection]:
        """A while in which no other process writes; what is added is on disk at its end."""
        if self._closed:
            raise JournalError(f"{self.path}: the search was closed. Resume it.")
        if self._process != os.getpid():
            raise JournalError(
                f"{self.path}: was opened in another process. Use Search.join in each process."
            )
        with _TURNS, self._explained():
            self._added.clear()
            try:
                db = self._begin()
                yield db
                db.execute("COMMIT")
            except sqlite3.Error:
                self._drop()  # undoes what was begun; the next turn opens the file afresh
                raise
            except BaseException:
                if self._db is not None and self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def news(self, db: sqlite3.Connection) -> Iterator[Event]:
        """Events since the last one seen; each counts as seen once the next is asked for."""
        (last,) = db.execute("SELECT coalesce(max(number), 0) FROM event").fetchone()
        once = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'event'").fetchone()
        before = max(self.seen, 0 if once is None else once[0])
        if last < before:
            raise self._damaged(f"it had {before} events before and has {last} now")
        rows = db.execute("SELECT * FROM event WHERE number > ? ORDER BY number", (self.seen,))
        for number, *content, crc in rows:
            if crc != _checksum(self._crc, number, content):
                raise self._damaged(f"event {self.seen + 1} is missing or was changed")
            _, worker, kind, *rest = content
            yield Event(kind, worker, *rest)
            self.seen, self._crc = number, crc

    def add(self, db: sqlite3.Connection, events: Sequence[Event], policy: Policy | None) -> None:
        """Write events, and the policy that goes with a replacement."""
        crc = self._crc
        for number, e in enumerate(events, self.seen + 1):
            box = None if e.box is None else str(e.box)
            content = [time.time(), e.worker, e.kind, box, e.state, e.reward, e.cost, e.model]
            crc = _checksum(crc, number, content)
            db.execute(
                "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (number, *content, crc)
            )
            self._added.append(crc)
            if policy is not None and e.model is not None:
                _file.write_policy(db, e.model, policy)

    def step(self) -> None:
        """The next of the events added has been applied."""
        self._crc = self._added.pop(0)
        self.seen += 1

    def policy(self, db: sqlite3.Connection, number: int) -> Policy:
        """A policy that was written."""
        try:
            return _file.read_policy(db, number)
        except (ValueError, EOFError) as error:
            raise self._damaged(f"model {number} cannot be read: {error}") from error

    def _begin(self) -> sqlite3.Connection:
        found = os.stat(self.path)
        here = found.st_dev, found.st_ino
        if self._file is not None and self._file != here:
            raise JournalError(
                f"{self.path}: another file has taken the place of the journal while it was in "
                f"use. Put it back, or resume the search from where it is."
            )
        if self._db is not None:
            self._db.execute("BEGIN IMMEDIATE")
            return self._db
        _file.check_header(self.path)
        self._db, self._file = _file.connect(self.path), here
        self._db.execute("BEGIN IMMEDIATE")
        wrong = _file.fault(self._db, self.path)
        if wrong is not None:
            self._drop()
            raise self._damaged(wrong)
        return self._db

    def _drop(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            with suppress(sqlite3.Error):
                db.close()

    def _damaged(self, why: str) -> InvalidFile:
        return InvalidFile(f"{self.path}: the journal is damaged: {why}. Use a copy of it.")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors of SQLite and of the system become ours."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._explanation(error) from error
        except FileExistsError as error:
            raise JournalError(
                f"{self.path}: a new journal must not replace a file, but there is one. Continue "
                f"it with Search.resume, or choose another name."
            ) from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise JournalError(f"{self.path}: cannot be used as a journal: {reason}.") from error
        except UnicodeDecodeError as error:
            raise self._damaged(f"a text in it is not UTF-8 ({error.reason})") from None
        except UnicodeEncodeError as error:
            raise InvalidForest(
                f"names must be valid Unicode, but there is {error.object[:40]!r}. Rename it."
            ) from None

    def _explanation(self, error: sqlite3.Error) -> Exception:
        code = getattr(error, "sqlite_errorname", "")
        if not code.startswith(_CURABLE):
            return self._damaged(str(error))
        if code.startswith("SQLITE_BUSY"):
            why = f"another process has held it for {_file.PATIENCE:g} seconds"
        else:
            why = str(error)
        return JournalError(
            f"{self.path}: cannot be written: {why}. This call changed nothing and all before it "
            f"is safe: remove the cause and repeat the call."
        )


def _checksum(before: int, number: int, content: Sequence[object]) -> int:
    return _file.checksum(json.dumps([number, *content], default=repr), before)
