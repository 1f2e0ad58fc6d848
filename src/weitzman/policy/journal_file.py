"""Journal files: how they are made, opened and told from others."""

from __future__ import annotations

import io
import json
import os
import secrets
import sqlite3
import struct
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.disk import sync_folder
from ..engine.indices import Policy
from ..errors import InvalidFile
from ..files import binary as _binary

APPLICATION = 0x57545A4A  # marks our files among those of SQLite
VERSION = 1
PATIENCE = 60.0  # seconds to wait for other processes
SYNCHRONOUS = "EXTRA"

_MAGIC = b"SQLite format 3\0"
_HEADER = 100  # bytes
_PIECE = 2**24  # bytes; SQLite has a limit on one value
_SCHEMA = """
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE model (
    number INTEGER, part TEXT, piece INTEGER, data BLOB NOT NULL, crc INTEGER NOT NULL,
    PRIMARY KEY (number, part, piece));
CREATE TABLE event (
    number INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, worker TEXT NOT NULL,
    kind TEXT NOT NULL, box TEXT, state INTEGER, reward REAL, cost REAL, model INTEGER,
    crc INTEGER NOT NULL);
"""


def create(path: str, policy: Policy, settings: dict[str, Any]) -> None:
    """Write a new journal; the file appears complete or not at all, and replaces none."""
    folder, name = os.path.split(os.path.abspath(path))
    new = os.path.join(folder, f".{name}.{secrets.token_hex(8)}.tmp")
    if os.path.lexists(path):
        raise FileExistsError(path)
    try:
        _write(new, policy, settings)
        _publish(new, path)
    finally:
        for left in (new, f"{new}-journal"):
            with suppress(OSError):
                os.unlink(left)


def connect(path: str, mode: str = "rw") -> sqlite3.Connection:
    """A connection that starts no transaction by itself and commits through to the disk."""
    db = sqlite3.connect(
        f"{Path(path).absolute().as_uri()}?mode={mode}",
        uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False,
    )  # fmt: skip
    try:
        db.execute(f"PRAGMA synchronous={SYNCHRONOUS}")
        db.execute("PRAGMA fullfsync=ON")  # macOS: through to the disk, not only to its cache
    except BaseException:
        db.close()
        raise
    return db


def check_header(path: str) -> None:
    """Whether a file is a journal, before SQLite may touch it."""
    with open(path, "rb") as file:
        head = file.read(_HEADER)
    if len(head) < _HEADER or not head.startswith(_MAGIC):
        what = "empty" if not head else "not a journal, or only the start of one"
        raise InvalidFile(f"{path}: the file is {what}. It was left as it is.")
    version, application = struct.unpack(">I4xI", head[60:72])
    if application != APPLICATION:
        raise InvalidFile(
            f"{path}: the file is an SQLite database, but not a journal of a search. It was left "
            f"as it is."
        )
    if version != VERSION:
        raise InvalidFile(
            f"{path}: the version of the journal must be {VERSION}, but it is {version}. A newer "
            f"version of this program may read it. It was left as it is."
        )


def checksum(text: object, before: int = 0) -> int:
    """A number that changes with any small change of the text."""
    return zlib.crc32(str(text).encode(), before)


def fault(db: sqlite3.Connection, path: str) -> str | None:
    """What is wrong with the file as a whole, if anything."""
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    (size,) = db.execute("PRAGMA page_size").fetchone()
    found = os.stat(path).st_size
    if found != pages * size:  # SQLite would read zeros for what is missing
        return f"it must have {pages * size} bytes, but it has {found}"
    (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
    return None if verdict == "ok" else str(verdict)


def write_policy(db: sqlite3.Connection, number: int, policy: Policy) -> None:
    """Write a policy and its forest as model ``number``."""
    sign = policy.forest.sign
    forest = io.BytesIO()
    _binary.write(policy.forest, forest)
    parts = {
        "forest": forest.getvalue(),
        "index_at": _npy(policy.index_at),
        "index": _npy(sign * policy.index),
    }
    for part, data in parts.items():
        for piece, at in enumerate(range(0, len(data), _PIECE)):
            cut = data[at : at + _PIECE]
            row = (number, part, piece, cut, zlib.crc32(cut))
            db.execute("INSERT INTO model VALUES (?, ?, ?, ?, ?)", row)


def read_policy(db: sqlite3.Connection, number: int) -> Policy:
    """Read a policy; a ValueError says what is wrong."""
    at, index = (
        np.lib.format.read_array(_part(db, number, part), allow_pickle=False)
        for part in ("index_at", "index")
    )
    return Policy.of(_binary.read(_part(db, number, "forest")), at, index)


def _part(db: sqlite3.Connection, number: int, part: str) -> io.BytesIO:
    whole = io.BytesIO()
    query = "SELECT data, crc FROM model WHERE number = ? AND part = ? ORDER BY piece"
    for data, crc in db.execute(query, (number, part)):
        if zlib.crc32(data) != crc:
            raise ValueError(f"its {part} was changed")
        whole.write(data)
    whole.seek(0)
    return whole


def _npy(array: npt.NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return file.getvalue()


def _write(path: str, policy: Policy, settings: dict[str, Any]) -> None:
    db = connect(path, "rwc")
    try:
        db.executescript(
            f"BEGIN; {_SCHEMA} PRAGMA application_id={APPLICATION}; PRAGMA user_version={VERSION};"
        )
        for name, value in settings.items():
            row = (name, json.dumps(value), checksum(json.dumps(value)))
            db.execute("INSERT INTO setting VALUES (?, ?, ?)", row)
        write_policy(db, 0, policy)
        db.execute("COMMIT")
    finally:
        db.close()


def _publish(new: str, path: str) -> None:
    """Give a complete file its name, unless there is a file of that name."""
    try:
        os.link(new, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        os.rename(new, path)
    sync_folder(path)
