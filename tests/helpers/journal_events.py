"""The events in the journal of a tuner, and journals that hold given events."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from weitzman.tune.run_store import Journal


def events_in(path: Path) -> list[dict[str, Any]]:
    """What a journal holds."""
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT content FROM event ORDER BY number").fetchall()
    return [json.loads(content) for (content,) in rows]


def journal_of(path: Path, events: list[dict[str, Any]], *, minimize: bool = False) -> None:
    """Write a journal."""
    journal = Journal(path, minimize=minimize)
    for event in events:
        journal.add(event)
    journal.close()
