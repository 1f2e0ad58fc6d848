"""Who has an event log in use, and whether they are still there."""

from __future__ import annotations

import sqlite3
import time

from .._common.processes import Process, is_alive, this_process
from ..errors import JournalError

LEASE = 3600.0  # seconds without a sign of life, after which a worker on another machine is gone


class Workers:
    """The workers of a log, as one of them sees them.

    A worker on this machine is gone when its process is. A worker elsewhere is gone when it has
    written nothing for :data:`LEASE` seconds by the clock of this machine, so a wrong clock
    elsewhere does no harm.
    """

    def __init__(self, path: str, me: str) -> None:
        self._path, self.me = path, me
        self._process = this_process()
        self._watched: dict[str, tuple[int, float]] = {}
        self.entered = False

    def enter(
        self, db: sqlite3.Connection, *, owner: bool, take_over: bool = False, other: bool = False
    ) -> None:
        """Begin to use the log, alone (as its owner) or with others; an error if impossible.

        ``other``: refuse another user in this very process, too; and, unless alone, an owner.
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
        """Which of these workers are not there any more."""
        found = dict(self._others(db))
        return {x for x in tokens if x not in found or self._is_gone(db, x, found[x])}

    def _is_gone(self, db: sqlite3.Connection, token: str, process: Process) -> bool:
        alive = is_alive(process)
        if alive is not None:
            return not alive
        (beats,) = db.execute("SELECT beats FROM worker WHERE token = ?", (token,)).fetchone()
        now = time.monotonic()
        seen, since = self._watched.setdefault(token, (beats, now))
        if seen != beats:
            self._watched[token] = beats, now
            return False
        return now - since > LEASE

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
