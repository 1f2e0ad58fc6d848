"""Files of event logs: how to make, open and recognize them, and which workers use them."""

from __future__ import annotations

import errno
import importlib
import json
import os
import secrets
import sqlite3
import struct
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from .._common.disk import open_folder
from .._common.system import Heartbeats, Process, is_alive, this_process
from ..errors import InvalidFile, JournalError

APPLICATION = 0x57545A4A  # marks our files among those of SQLite
VERSION = 2
_SOON = 0.001, 0.05  # seconds between two tries, at first and at most
SYNCHRONOUS = "EXTRA"

_MAGIC = b"SQLite format 3\0"
_HEADER = 100  # bytes
_PIECE = 2**24  # bytes; SQLite has a limit on one value
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


Begin = Callable[[sqlite3.Connection], None]

LEASE = 3600.0  # seconds without a sign of life, after which a worker on another machine is gone


def create(
    path: str, settings: Mapping[str, Any], parts: Mapping[str, bytes], begin: Begin
) -> None:
    """Write a new file, completely and durably or not at all; never replace another file."""
    folder, name = os.path.split(os.path.abspath(path))
    new = os.path.join(folder, f".{name}.{secrets.token_hex(8)}.tmp")
    if os.path.lexists(path):
        raise FileExistsError(path)
    try:
        _write(new, settings, parts, begin)
        _publish(new, path)
    finally:
        for left in (new, f"{new}-journal"):
            with suppress(OSError):
                os.unlink(left)


def connect(path: str, mode: str = "rw", until: float = 0.0) -> sqlite3.Connection:
    """A connection that starts no transaction, never waits, and runs no code from the file."""
    db = sqlite3.connect(
        f"{Path(path).absolute().as_uri()}?mode={mode}",
        uri=True, timeout=0, isolation_level=None, check_same_thread=False,
    )  # fmt: skip
    try:
        for pragma in ("trusted_schema=OFF", f"synchronous={SYNCHRONOUS}", "fullfsync=ON"):
            patiently(db, f"PRAGMA {pragma}", until)  # fullfsync: for macOS
    except BaseException:
        db.close()
        raise
    return db


def patiently(db: sqlite3.Connection, sql: str, until: float) -> None:
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


class NoLocks(OSError):
    """The file system does not lock files."""


def check_locks(path: str) -> None:
    """Refuse a file system without locks: SQLite would take it for one where others hold them.

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
                raise NoLocks(error.errno, error.strerror) from None


def check_header(path: str) -> None:
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


def fault(db: sqlite3.Connection, path: str) -> str | None:
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


def checksum(text: object, before: int = 0) -> int:
    """A number that changes with any small change of the text."""
    return zlib.crc32(str(text).encode("utf-8", "surrogatepass"), before)


def write_part(db: sqlite3.Connection, event: int, part: str, data: bytes) -> None:
    """Write bytes that belong to an event, in pieces."""
    for place, at in enumerate(range(0, len(data), _PIECE)):
        cut = data[at : at + _PIECE]
        row = (event, part, place, cut, zlib.crc32(cut))
        db.execute("INSERT INTO piece VALUES (?, ?, ?, ?, ?)", row)


def read_part(db: sqlite3.Connection, event: int, part: str) -> bytes:
    """Bytes that belong to an event; a ValueError says what is wrong."""
    pieces = []
    query = "SELECT data, crc FROM piece WHERE event = ? AND part = ? ORDER BY place"
    for data, crc in db.execute(query, (event, part)).fetchall():
        if zlib.crc32(data) != crc:
            raise ValueError(f"its {part} was changed")
        pieces.append(data)
    return b"".join(pieces)


def _write(
    path: str, settings: Mapping[str, Any], parts: Mapping[str, bytes], begin: Begin
) -> None:
    open(path, "xb").close()
    check_locks(path)
    db = connect(path, "rwc")
    try:
        db.executescript(
            f"BEGIN; {'; '.join(_TABLES)}; PRAGMA application_id={APPLICATION}; "
            f"PRAGMA user_version={VERSION};"
        )
        for name, value in settings.items():
            row = (name, json.dumps(value), checksum(json.dumps(value)))
            db.execute("INSERT INTO setting VALUES (?, ?, ?)", row)
        for part, data in parts.items():
            write_part(db, 0, part, data)
        begin(db)
        db.execute("COMMIT")
    finally:
        db.close()


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

        ``other``: also refuse another user in this process and, unless alone, an owner.
        """
        owners = {x for (x,) in db.execute("SELECT token FROM worker WHERE owner = 1")}
        for token, process in self._others(db):
            here = process == self._process and not other
            clash = owner or token == self.me or (other and token in owners)
            if not here and not take_over and clash:
                self._check_gone(token, process)
        if owner:
            db.execute("DELETE FROM worker WHERE token != ?", (self.me,))
        self._insert(db, owner)
        self.entered = True

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
        return {x for x in tokens if x not in found or self._is_gone(db, x, found[x])}

    def _is_gone(self, db: sqlite3.Connection, token: str, process: Process) -> bool:
        def beats() -> int:
            sql = "SELECT beats FROM worker WHERE token = ?"
            return int(db.execute(sql, (token,)).fetchone()[0])

        return self._beats.is_gone(token, process, beats, LEASE)

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
