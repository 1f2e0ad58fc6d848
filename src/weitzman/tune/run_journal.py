"""The journal of a tuner: a text file that is only ever added to.

Each line is one event as a JSON object, so that any tool can read it:

==========  ======================================================================================
journal     ``version``, ``minimize``: the first line
start       ``run``, ``config``: a run was started; ``candidate``: its number among those to choose
            from, if there were any
seen        ``run``, ``step``, ``score`` (null: it had diverged), ``cost``, ``measured`` (whether
            the cost is the time that the step took)
paid        ``run``, ``cost``: training up to a lost checkpoint, which showed nothing new
over        ``run``, ``how`` (ended, failed, lost), ``why``
==========  ======================================================================================

All have a ``time`` (seconds since 1970) and a ``crc`` of the line and of the ``crc`` before. A line
has been forced to the disk (fsync) before anything is made of it. A crash can only leave an
unfinished last line, of which nobody was told; it is cut off when the journal is opened again.
Whatever else does not fit is damage, and is refused.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
import zlib
from typing import Any, BinaryIO

from .._common.disk import sync_folder
from ..errors import InvalidArgument, InvalidFile, JournalError

Path = str | os.PathLike[str]
Event = dict[str, Any]

VERSION = 1


class Journal:
    """A journal in use, by this process only.

    Parameters
    ----------
    path : str or path
        Read and continued if it is there, otherwise made.
    minimize : bool
        Whether low scores are good; must be what the journal says.

    Attributes
    ----------
    events : list of dict
        What it held when it was opened, without the first line.
    """

    def __init__(self, path: Path, *, minimize: bool) -> None:
        self.path = os.fspath(path)
        self._crc = 0
        try:
            self._file: BinaryIO = open(self.path, "a+b", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise JournalError(
                f"{self.path}: cannot be used as a journal: {error.strerror}."
            ) from error
        try:
            _lock(self._file, self.path)
            self.events = self._read()
            if not self.events:
                self.add({"event": "journal", "version": VERSION, "minimize": minimize})
                sync_folder(self.path)
                return
            _check_head(self.events.pop(0), self.path, minimize)
        except BaseException:
            self._file.close()
            raise

    def add(self, event: Event) -> None:
        """Write an event. It is on disk when this returns; if it raises, nothing was written."""
        event = {**event, "time": round(time.time(), 3)}
        crc = _checksum(event, self._crc)
        line = json.dumps({**event, "crc": crc}).encode() + b"\n"
        size = os.fstat(self._file.fileno()).st_size
        try:
            if self._file.write(line) != len(line):
                raise OSError(0, "the disk is full")
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(size)
            raise JournalError(
                f"{self.path}: cannot be written: {error.strerror}. All before is safe: remove the "
                f"cause and start again."
            ) from error
        self._crc = crc

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _read(self) -> list[Event]:
        self._file.seek(0)
        lines = self._file.read().split(b"\n")
        torn = lines.pop()  # what follows the last end of a line
        events, size = [], 0
        for number, line in enumerate(lines, 1):
            try:
                event = json.loads(line)
                crc = event.pop("crc")
            except (ValueError, KeyError, TypeError, AttributeError):
                raise self._damaged(number, "is not an event") from None
            if crc != _checksum(event, self._crc):
                raise self._damaged(number, "was changed, or the one before it is missing")
            self._crc = crc
            events.append(event)
            size += len(line) + 1
        if torn:
            if not events and not torn.startswith(b'{"event": "journal"'):
                raise self._damaged(1, "is not an event")
            self._file.truncate(size)
        return events

    def _damaged(self, line: int, why: str) -> InvalidFile:
        return InvalidFile(
            f"{self.path}: not the journal of a tuner, or damaged: line {line} {why}. "
            f"It was left as it is; use a copy of it, or another name."
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


def _check_head(head: Event, path: str, minimize: bool) -> None:
    if head.get("event") != "journal" or head.get("version") != VERSION:
        raise InvalidFile(
            f"{path}: the version of the journal must be {VERSION}, but it is "
            f"{head.get('version')!r}. It was left as it is."
        )
    if head["minimize"] != minimize:
        raise InvalidArgument(
            f"{path}: the journal is of a search that "
            f"{'minimizes' if head['minimize'] else 'maximizes'}, unlike the model."
        )


def _checksum(event: Event, before: int) -> int:
    return zlib.crc32(json.dumps(event).encode(), before)


def _lock(file: BinaryIO, path: str) -> None:
    """Keep other processes out; the lock goes with the process."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise JournalError(
            f"{path}: another process is using the journal. One process can drive a search; it "
            f"takes several workers with `workers` or `executor`."
        ) from None
