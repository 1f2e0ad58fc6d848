"""The journal of a tuner: an event log (see :mod:`weitzman.files.event_log`) of these events.

==========  ======================================================================================
start       ``run``, ``config``: a run was started; ``candidate``: its number among those to choose
            from, if there were any
seen        ``run``, ``step``, ``score`` (null: it had diverged), ``cost``, ``measured`` (whether
            the cost is the time that the step took)
take        ``run``, ``until``: a process advances a run that waited; in shared searches only
paid        ``run``, ``cost``: training up to a lost checkpoint, which showed nothing new
over        ``run``, ``how`` (ended, failed, lost), ``why``
==========  ======================================================================================

The kind is in ``event``. An event is on disk before it is used. One process at a time drives the
search, unless it is shared: then every process learns what the others have written, decides and
writes in one transaction, so that two processes never make the same move.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ..errors import InvalidArgument, JournalError
from ..files.event_log import Entry, EventLog
from ..files.event_log import Path as Path

KIND = "tuner"
Event = dict[str, Any]
T = TypeVar("T")


class RunJournal:
    """A journal in use, by one process or by several that share the search.

    Parameters
    ----------
    path : str or path
        The file is continued if it exists; otherwise it is created.
    minimize : bool
        Whether low scores are good; must be what the journal says.
    share : bool
        Whether other processes may use the journal at the same time.

    Attributes
    ----------
    entries : list of Entry
        What the journal held when it was opened.
    me : str
        The name under which this process writes.
    """

    def __init__(self, path: Path, *, minimize: bool, share: bool = False) -> None:
        self.path, self.share = os.fspath(path), share
        self.entries: list[Entry] = []
        self.me = secrets.token_hex(8)
        self._db: sqlite3.Connection | None = None  # in the course of a turn
        if not os.path.lexists(self.path) and self._made(minimize):
            return
        self._log = EventLog.open(self.path, KIND, self.me)
        try:
            self._check_direction(minimize)
            self._log.transact(self._enter)
        except BaseException:
            self._log.close()
            raise

    def _made(self, minimize: bool) -> bool:
        """Make the file; False if another process that shares it was faster."""
        try:
            self._log = EventLog.create(
                self.path, KIND, self.me, {"minimize": minimize}, {}, owner=not self.share
            )
        except JournalError:
            if self.share and os.path.lexists(self.path):
                return False
            raise
        return True

    def turn(self, do: Callable[[Iterable[Entry]], T]) -> T:
        """Do something with what others have written, while nobody else writes.

        ``do`` must read everything before it adds events. What it adds is on disk when this
        returns.
        """
        if not self.share:
            return do(())

        def inner(db: sqlite3.Connection) -> T:
            self._db = db
            try:
                return do(self._log.news(db))
            finally:
                self._db = None

        return self._log.transact(inner)

    def add(self, event: Event) -> None:
        """Write an event. It is on disk when this returns, or when the turn ends.

        If this raises, nothing was written.
        """
        if self._db is None:
            self._log.transact(lambda db: self._write(db, event))
        else:
            self._log.add(self._db, [event])

    def _write(self, db: sqlite3.Connection, event: Event) -> None:
        """Write an event after what is there: an interrupted call may have written one, too."""
        for _ in self._log.news(db):
            pass
        self._log.add(db, [event])

    def gone(self, workers: set[str]) -> set[str]:
        """Which of these processes no longer exist; to be called during a turn."""
        assert self._db is not None
        return self._log.workers.gone(self._db, workers)

    def close(self) -> None:
        """Close the file."""
        self._log.close()

    def _enter(self, db: sqlite3.Connection) -> None:
        self.entries = list(self._log.news(db))
        try:
            self._log.workers.enter(db, owner=not self.share, other=True)
        except JournalError as error:
            raise JournalError(
                f"{str(error).partition(' the journal.')[0]} the journal. One process drives a "
                f"search, with several `workers` if need be, unless all of its processes say "
                f"`share=True`."
            ) from None

    def _check_direction(self, minimize: bool) -> None:
        if self._log.settings.get("minimize") != minimize:
            raise InvalidArgument(
                f"{self.path}: the journal is of a search that "
                f"{'maximizes' if minimize else 'minimizes'}, unlike the model."
            )


def as_json(config: object, number: int) -> Any:
    """A configuration as it stands in a journal, or an error."""
    try:
        return json.loads(json.dumps(config, default=_plain, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidArgument(
            f"with a journal, configurations must be made of numbers, texts, lists and dicts, but "
            f"that of run {number} is not ({error}): {config!r}."
        ) from None


def as_score(score: float) -> float | None:
    """A score in the form that a journal holds."""
    return score if math.isfinite(score) else None


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON")
