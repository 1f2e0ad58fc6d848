"""The journal of a tuner: an event log (see :mod:`weitzman.files.event_log`) of these events.

==========  ======================================================================================
start       ``run``, ``config``: a run was started; ``candidate``: its number among those to choose
            from, if there were any
seen        ``run``, ``step``, ``score`` (null: it had diverged), ``cost``, ``measured`` (whether
            the cost is the time that the step took)
paid        ``run``, ``cost``: training up to a lost checkpoint, which showed nothing new
over        ``run``, ``how`` (ended, failed, lost), ``why``
==========  ======================================================================================

The kind is in ``event``. An event is on disk before it is used. One process at a time
drives the search.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import sqlite3
from typing import Any

from ..errors import InvalidArgument, JournalError
from ..files.event_log import EventLog
from ..files.event_log import Path as Path

KIND = "tuner"
Event = dict[str, Any]


class RunJournal:
    """A journal in use, by one search only.

    Parameters
    ----------
    path : str or path
        Read and continued if it is there, otherwise made.
    minimize : bool
        Whether low scores are good; must be what the journal says.

    Attributes
    ----------
    events : list of dict
        What it held when it was opened.
    """

    def __init__(self, path: Path, *, minimize: bool) -> None:
        self.path = os.fspath(path)
        self.events: list[Event] = []
        me = secrets.token_hex(8)
        if not os.path.lexists(self.path):
            self._log = EventLog.create(self.path, KIND, me, {"minimize": minimize}, {})
            return
        self._log = EventLog.open(self.path, KIND, me)
        try:
            self._check_direction(minimize)
            self._log.transact(self._enter)
        except BaseException:
            self._log.close()
            raise

    def add(self, event: Event) -> None:
        """Write an event. It is on disk when this returns; if it raises, nothing was written."""
        self._log.transact(lambda db: self._log.add(db, [event]))
        self._log.step()

    def close(self) -> None:
        """Let go of the file."""
        self._log.close()

    def _enter(self, db: sqlite3.Connection) -> None:
        self.events = [entry.content for entry in self._log.news(db)]
        try:
            self._log.workers.enter(db, owner=True, other=True)
        except JournalError as error:
            raise JournalError(
                f"{str(error).partition(' the journal.')[0]} the journal. One process can drive a "
                f"search; it takes several workers with `workers` or `executor`."
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
    """A score as it stands in a journal."""
    return score if math.isfinite(score) else None


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON")
