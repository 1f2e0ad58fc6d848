"""A durable log of events: one SQLite file that a crash cannot spoil.

Searches, lazy searches and tuners keep what happens in such a file; the state of each follows from
applying the events one after the other. Tables:

=========  =====================================================================================
setting    ``name``, ``value`` (JSON), ``crc`` of the value; ``kind`` says whose log it is
event      ``number`` (1, 2, ...), ``time`` (seconds since 1970, for people), ``worker``,
           ``content`` (JSON), ``crc`` of the workers and contents of all events up to this
           one. SQLite keeps the last number twice
piece      ``event``, ``part``, ``place``, ``data``, ``crc``: bytes that belong to an event, such as
           a model, cut into pieces; event 0 stands for the start
worker     Who is using the log: ``token``, ``host``, ``machine``, ``pid``, ``born``, ``since``,
           ``beats`` (how often it has written), ``owner`` (1: alone). No part of the history
=========  =====================================================================================

Durability: each change is one transaction with ``synchronous=EXTRA``: when a call returns, the data
and the folder are on the disk (fsync). The rollback journal (``journal_mode=DELETE``) takes some
milliseconds per event, more than a write-ahead log would; in return the file is complete by itself
between calls: it can be copied or moved alone, and can lie on a network drive with working locks.
After a crash, a file ending in ``-journal`` may lie beside it and belongs to it; a hidden file
that ends in ``.tmp`` can be deleted.
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import json
import os
import pathlib
import secrets
import sqlite3
import struct
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, NamedTuple, TypeVar

from .._common.disk import (
    Heartbeats,
    Process,
    check_regular,
    is_alive,
    lock_holders,
    open_folder,
    this_process,
)
from ..errors import InvalidFile, InvalidForest, JournalError

Path = str | os.PathLike[str]
T = TypeVar("T")

APPLICATION = 0x57545A4A  # marks our files among those of SQLite
VERSION = 3
PATIENCE = 60.0  # seconds to wait for other processes
LEASE = 3600.0  # seconds without a sign of life, after which a worker on another machine is gone
SYNCHRONOUS = "EXTRA"

_FORK_PATIENCE = 1.0  # seconds that a fork waits for threads that are writing
_SOON = 0.001, 0.05  # seconds between two tries, at first and at most
_MAGIC = b"SQLite format 3\0"
_HEADER = 100  # bytes
_PIECE = 2**24  # bytes; SQLite has a limit on one value
_GONE = "is missing or was changed"
_BATCH = 5000  # events read at a time: a long log need not fit into memory
_TABLES = (
    "CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL)",
    "CREATE TABLE event (number INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, "
    "worker TEXT NOT NULL, content TEXT NOT NULL, crc INTEGER NOT NULL)",
    "CREATE TABLE piece (event INTEGER, part TEXT, place INTEGER, data BLOB NOT NULL, "
    "crc INTEGER NOT NULL, PRIMARY KEY (event, part, place))",
    "CREATE TABLE worker (token TEXT PRIMARY KEY, host TEXT NOT NULL, machine TEXT NOT NULL, "
    "pid INTEGER NOT NULL, born TEXT NOT NULL, since REAL NOT NULL, beats INTEGER NOT NULL, "
    "owner INTEGER NOT NULL)",
)
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
    content: Any


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
        self.path, self.kind = os.fsdecode(path), kind
        if "\0" in self.path:
            raise JournalError(f"{self.path!r}: no file can have the character NUL in its name.")
        self.settings: dict[str, Any] = {}
        self.workers = Workers(self.path, me)
        self._last = 0, 0  # number and checksum of the last event that was read or written
        self._before: tuple[int, int] | None = None  # the same before this transaction wrote

    @classmethod
    def create(
        cls, path: Path, kind: str, me: str, settings: Mapping[str, Any],
        parts: Mapping[str, bytes], *, owner: bool = True,
    ) -> EventLog:  # fmt: skip
        """Write a new log, in use by this worker; the file appears complete or not at all."""
        self = cls(path, kind, me)
        folder, name = os.path.split(os.path.abspath(self.path))
        new = os.path.join(folder, f".{name}.{secrets.token_hex(8)}.tmp")
        with self._explained():
            if os.path.lexists(self.path):
                raise FileExistsError(self.path)
            try:
                with open(new, "xb"):
                    pass
                _check_locks(new)
                with closing(connect(new, "rwc")) as db:
                    db.executescript(
                        f"BEGIN; {'; '.join(_TABLES)}; PRAGMA application_id={APPLICATION}; "
                        f"PRAGMA user_version={VERSION};"
                    )
                    for key, value in {"kind": kind, **settings}.items():
                        row = key, json.dumps(value), checksum(json.dumps(value))
                        db.execute("INSERT INTO setting VALUES (?, ?, ?)", row)
                    for part, data in parts.items():
                        _write_part(db, 0, part, data)
                    self.workers.enter(db, owner=owner)
                    db.execute("COMMIT")
                _publish(new, self.path)
            finally:
                for left in (new, f"{new}-journal"):
                    with suppress(OSError):
                        os.unlink(left)
        self.settings = dict(settings)
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
        """Do something while no other process writes; what it adds is on disk at the end.

        If it fails, what it added is neither in the file nor seen. Events of others stay seen:
        whoever read them has acted on them.
        """
        if self._closed:
            raise JournalError(f"{self.path}: the search was closed. Resume it.")
        if self._process != os.getpid():
            raise JournalError(
                f"{self.path}: was opened in another process. Use Search.join in each process."
            )
        until = time.monotonic() + (PATIENCE if patience is None else patience)
        turn: Any = _TURNS.setdefault(os.path.realpath(self.path), threading.RLock())
        first = not turn._is_owned()  # else this thread has it further up, as when it collects
        try:
            try:
                with self._explained():
                    if first and not turn.acquire(timeout=max(0.0, until - time.monotonic())):
                        why = f"another thread has held it for {PATIENCE:g} seconds"
                        raise self._unwritten(why)
                    self._before = None
                    try:
                        db = self._begin(until)
                        result = do(db)
                        _patiently(db, "COMMIT", until)
                    except BaseException:
                        self._last = self._before or self._last
                        self._roll_back()  # the next turn may open the file again
                        raise
                    return result
            finally:
                _give_back(turn, first)
        finally:  # an interrupt may have come where the turn was to be released
            _give_back(turn, first)

    def news(self, db: sqlite3.Connection) -> Iterator[Entry]:
        """Events since the last one seen; each counts as seen once the next is asked for."""
        (last,) = db.execute("SELECT coalesce(max(number), 0) FROM event").fetchone()
        once = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'event'").fetchone()
        before = max(self._last[0], 0 if once is None else once[0])
        if last < before:
            raise self.damaged(f"it had {before} events before and has {last} now")
        sql = (
            "SELECT number, worker, content, crc FROM event WHERE number > ? ORDER BY number "
            f"LIMIT {_BATCH}"
        )
        while self._last[0] < last:
            # a batch at once: a statement left half read would keep its lock while an error lives
            (before, crc), rows = self._last, db.execute(sql, (self._last[0],)).fetchall()
            said = "".join([f"{worker} {content}" for _, worker, content, _ in rows])
            if rows[-1][0] != before + len(rows) or rows[-1][3] != checksum(said, crc):
                raise self.damaged(f"event {_first_wrong(rows, before, crc)} {_GONE}")
            try:  # one text for the whole batch is parsed faster
                contents = json.loads(f"[{','.join([row[2] for row in rows])}]")
            except (ValueError, TypeError, RecursionError) as error:
                raise self.damaged(f"what its events hold is not JSON: {error}") from None
            if len(contents) != len(rows):
                raise self.damaged("what its events hold is not JSON")
            for (number, worker, _, crc), content in zip(rows, contents, strict=True):
                yield Entry(number, worker, content)
                self._last = number, crc

    def add(
        self, db: sqlite3.Connection, contents: Sequence[Any],
        parts: Mapping[str, bytes] | None = None,
    ) -> int:  # fmt: skip
        """Write events, and bytes that belong to the last of them; returns the number of that."""
        self._before = self._before or self._last
        number, crc = self._last
        for content in contents:
            number, text = number + 1, json.dumps(content)
            crc = checksum(f"{self.workers.me} {text}", crc)
            row = number, time.time(), self.workers.me, text, crc
            db.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?)", row)
        for part, data in (parts or {}).items():
            _write_part(db, number, part, data)
        if contents:
            self.workers.beat(db)
        self._last = number, crc
        return number

    def rewind(self) -> None:
        """Forget which events were seen."""
        self._last = 0, 0

    def part(self, db: sqlite3.Connection, event: int, part: str) -> bytes:
        """Bytes that belong to an event; a ValueError says what is wrong."""
        pieces = []
        query = "SELECT data, crc FROM piece WHERE event = ? AND part = ? ORDER BY place"
        for data, crc in db.execute(query, (event, part)).fetchall():
            if zlib.crc32(data) != crc:
                raise ValueError(f"its {part} was changed")
            pieces.append(data)
        return b"".join(pieces)

    def damaged(self, why: str) -> InvalidFile:
        """The error for a file that does not hold what was written."""
        return InvalidFile(f"{self.path}: the journal is damaged: {why}. Use a copy of it.")

    # -- details -------------------------------------------------------------------------------

    def _read_settings(self, db: sqlite3.Connection) -> None:
        for name, value, crc in db.execute("SELECT name, value, crc FROM setting").fetchall():
            if crc != checksum(value):
                raise self.damaged(f"the setting {name!r} was changed")
            self.settings[name] = json.loads(value)

    def _begin(self, until: float) -> sqlite3.Connection:
        found = os.stat(self.path)
        check_regular(found)  # opening a pipe would wait for ever
        here = found.st_dev, found.st_ino
        if self._file is not None and self._file != here:
            raise JournalError(
                f"{self.path}: another file has taken the place of the journal while it was in "
                f"use. Put it back, or resume the search from where it is."
            )
        if self._db is not None:
            if self._db.in_transaction:  # an interrupt came between
                self._db.execute("ROLLBACK")
            _patiently(self._db, "BEGIN IMMEDIATE", until)
            return self._db
        _check_header(self.path)
        _check_locks(self.path)
        self._db, self._file = connect(self.path, until=until), here
        _OPEN.add(self)
        _patiently(self._db, "BEGIN IMMEDIATE", until)
        wrong = _fault(self._db, self.path)
        if wrong is not None:
            self._drop()
            raise self.damaged(wrong)
        return self._db

    def _roll_back(self) -> None:
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
        except _NoLocks as error:
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


class Workers:
    """The workers of a log, as one of them sees them.

    A worker on this machine is gone when its process is. A worker elsewhere is gone when it has
    written nothing for :data:`LEASE` seconds by the clock of this machine, so a wrong clock
    elsewhere does no harm.
    """

    def __init__(self, path: str, me: str) -> None:
        self._path, self.me = path, me
        self._process = this_process()
        self._beats = Heartbeats()
        self.entered = False

    def enter(
        self, db: sqlite3.Connection, *, owner: bool, take_over: bool = False, other: bool = False
    ) -> None:
        """Begin to use the log, alone (as its owner) or with others; an error if impossible.

        ``other``: also reject another user in this process and, unless alone, an owner.
        """
        owners = {x for (x,) in db.execute("SELECT token FROM worker WHERE owner = 1")}
        for token, process in self._others(db):
            here = process == self._process and not other and token != self.me
            clash = owner or token == self.me or (other and token in owners)
            if not here and not take_over and clash:
                self._check_gone(token, process)
        if owner:
            db.execute("DELETE FROM worker WHERE token != ?", (self.me,))
        self.entered = True  # before: an interrupt must not leave a worker that never leaves
        self._insert(db, owner)

    def leave(self, db: sqlite3.Connection) -> None:
        """Stop using the log."""
        mine = self.me, self._process.pid, self._process.born
        db.execute("DELETE FROM worker WHERE token = ? AND pid = ? AND born = ?", mine)

    def beat(self, db: sqlite3.Connection) -> None:
        """Give a sign of life."""
        sql = "UPDATE worker SET beats = beats + 1 WHERE token = ?"
        if self.entered and db.execute(sql, (self.me,)).rowcount == 0:
            self._insert(db, owner=False)

    def gone(self, db: sqlite3.Connection, tokens: set[str]) -> set[str]:
        """Which of these workers are gone."""
        found = dict(self._others(db))
        sql = "SELECT beats FROM worker WHERE token = ?"

        def is_gone(token: str) -> bool:
            def beats() -> int:
                return int(db.execute(sql, (token,)).fetchone()[0])

            return self._beats.is_gone(token, found[token], beats, LEASE)

        return {x for x in tokens if x not in found or is_gone(x)}

    def _others(self, db: sqlite3.Connection) -> list[tuple[str, Process]]:
        rows = db.execute("SELECT token, host, machine, pid, born FROM worker")
        return [(token, Process(*rest)) for token, *rest in rows]

    def _insert(self, db: sqlite3.Connection, owner: bool) -> None:
        row = self.me, *self._process, time.time(), 0, int(owner)
        db.execute("INSERT OR REPLACE INTO worker VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def _check_gone(self, token: str, process: Process) -> None:
        alive = is_alive(process)
        if alive is False:
            return
        sure = "is using" if alive else "was using, as far as is known,"
        name = f"worker {token!r}, " if token == self.me else ""
        raise JournalError(
            f"{self._path}: {name}{process} {sure} the journal. End it first, or share the search "
            f"with Search.join under another name; if it is gone, use take_over=True."
        )


def _give_back(turn: Any, first: bool) -> None:
    if first and turn._is_owned():
        turn.release()


def checksum(text: object, before: int = 0) -> int:
    """A number that changes with any small change of the text."""
    return zlib.crc32(str(text).encode("utf-8", "surrogatepass"), before)


def _first_wrong(rows: Sequence[Sequence[Any]], before: int, crc: int) -> int:
    """The number of the first event that is missing or has another checksum."""
    for number, worker, content, found in rows:
        crc = checksum(f"{worker} {content}", crc)
        if number != before + 1 or crc != found:
            break
        before = number
    return before + 1


# -- the file --------------------------------------------------------------------------------------


def connect(path: str, mode: str = "rw", until: float = 0.0) -> sqlite3.Connection:
    """A connection that starts no transaction, never waits, and runs no code from the file."""
    db = sqlite3.connect(
        f"{pathlib.Path(path).absolute().as_uri()}?mode={mode}",
        uri=True, timeout=0, isolation_level=None, check_same_thread=False,
    )  # fmt: skip
    try:
        for pragma in ("trusted_schema=OFF", f"synchronous={SYNCHRONOUS}", "fullfsync=ON"):
            _patiently(db, f"PRAGMA {pragma}", until)  # fullfsync: for macOS
    except BaseException:
        db.close()
        raise
    return db


def _patiently(db: sqlite3.Connection, sql: str, until: float) -> None:
    """Carry out a command; while others hold the file, try again, and stay interruptible."""
    pause, longest = _SOON
    while True:
        try:
            db.execute(sql)
            return
        except sqlite3.OperationalError as error:
            busy = getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY")
            if not busy or time.monotonic() > until:
                raise
        time.sleep(pause)
        pause = min(2 * pause, longest)


class _NoLocks(OSError):
    """The file system does not lock files."""


def _check_locks(path: str) -> None:
    """Reject a file system without locks: SQLite would take it for one where others hold them.

    Closing a file gives up all locks that this process has on it, so nothing may be under way.
    """
    try:
        locks: Any = importlib.import_module("fcntl")
    except ImportError:  # Windows, where all files can be locked
        return
    with open(path, "rb") as file:
        try:
            locks.lockf(file, locks.LOCK_SH | locks.LOCK_NB, 1)  # a byte that SQLite does not lock
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):  # another process has it locked
                raise _NoLocks(error.errno, error.strerror) from None


def _check_header(path: str) -> None:
    """Whether a file is an event log, before SQLite may touch it."""
    with open(path, "rb") as file:
        head = file.read(_HEADER)
    if len(head) < _HEADER or not head.startswith(_MAGIC):
        what = "empty" if not head else "not a journal, or only the start of one"
        raise InvalidFile(f"{path}: the file is {what}. It was left as it is.")
    version, application = struct.unpack(">I4xI", head[60:72])
    if application != APPLICATION:
        raise InvalidFile(
            f"{path}: the file is an SQLite database, but not a journal of this program. It was "
            f"left as it is."
        )
    if version != VERSION:
        raise InvalidFile(
            f"{path}: the version of the journal must be {VERSION}, but it is {version}. Another "
            f"version of this program may read it. It was left as it is."
        )


def _fault(db: sqlite3.Connection, path: str) -> str | None:
    """What is wrong with the file as a whole, if anything."""
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    (size,) = db.execute("PRAGMA page_size").fetchone()
    found = os.stat(path).st_size
    if found != pages * size:  # SQLite would read zeros for what is missing
        return f"it must have {pages * size} bytes, but it has {found}"
    kept = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
    for name, sql in db.execute(kept).fetchall():
        if name != "sqlite_sequence" and sql not in _TABLES:
            return f"it must hold tables of this program alone, but there is {name!r}"
    (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
    return None if verdict == "ok" else str(verdict)


def _write_part(db: sqlite3.Connection, event: int, part: str, data: bytes) -> None:
    """Write bytes that belong to an event, in pieces."""
    for place, at in enumerate(range(0, len(data), _PIECE)):
        cut = data[at : at + _PIECE]
        row = (event, part, place, cut, zlib.crc32(cut))
        db.execute("INSERT INTO piece VALUES (?, ?, ?, ?, ?)", row)


def _publish(new: str, path: str) -> None:
    """Give a complete file its name, unless another file has it; durably, or not at all."""
    with open_folder(path) as folder:  # first: without it the name could not be made to last
        try:
            os.link(new, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            if os.path.lexists(path):
                raise FileExistsError(path) from None
            os.rename(new, path)
        try:
            folder.sync()
        except BaseException:
            with suppress(OSError):
                os.unlink(path)
            raise


# -- forks -----------------------------------------------------------------------------------------


def _before_fork() -> None:
    """Let the turns of all threads end: SQLite locks held at a fork stay locked in the child.

    This does not wait for a journal that another process keeps locked.
    """
    _HELD.turns, until = [], time.monotonic() + _FORK_PATIENCE
    for turn in list(_TURNS.values()):
        if turn.acquire(timeout=max(0.0, until - time.monotonic())):
            _HELD.turns.append(turn)


def _after_fork() -> None:
    """In the process that was forked: continue."""
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
