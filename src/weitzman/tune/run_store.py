"""Where a plain search keeps its runs: in memory, or in a journal that survives crashes.

The journal is an event log (see :mod:`weitzman.files.event_log`) of these events:

==========  ======================================================================================
start       ``run``, ``config``: a run was started; ``candidate``: its number among those to choose
            from, if there were any
seen        ``run``, ``step``, ``score`` (null: it had diverged), ``cost``, ``measured`` (whether
            the cost is the time that the step took; null: not known yet)
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import InvalidArgument, InvalidFile, JournalError
from ..files.event_log import Entry, EventLog
from ..files.event_log import Path as Path

if TYPE_CHECKING:
    from .loop import Loop
    from .race import Race
    from .runs import Row

KIND = "tuner"
Configs = Iterable[Any] | Callable[[int], Any] | Mapping[str, Any]
T = TypeVar("T")


class NoMore(Exception):
    """There is no further configuration."""


class TakenOver(Exception):
    """Another process has taken over a run, so what the run shows here does not count."""


class Journal:
    """The file of a search, used by one process or by several that share the search.

    The file is continued if it exists, and must agree on ``minimize``; otherwise it is created.

    Attributes
    ----------
    entries : list of Entry
        What the journal held when it was opened.
    seed : int
        The seed of configurations that are drawn from a space.
    me : str
        The name under which this process writes.
    """

    def __init__(
        self, path: Path, *, minimize: bool, share: bool = False, seed: int | None = None
    ) -> None:
        self.path, self.share = os.fspath(path), share
        self.entries: list[Entry] = []
        self.me = secrets.token_hex(8)
        self._db: sqlite3.Connection | None = None  # in the course of a turn
        self.seed = secrets.randbits(32) if seed is None else seed
        if not os.path.lexists(self.path):
            said = {"minimize": minimize, "seed": self.seed}
            try:
                self._log = EventLog.create(self.path, KIND, self.me, said, {}, owner=not share)
                return
            except JournalError:  # another process that shares it was perhaps faster
                if not (self.share and os.path.lexists(self.path)):
                    raise
        self._log = EventLog.open(self.path, KIND, self.me)
        try:
            if self._log.settings.get("minimize") != minimize:
                raise InvalidArgument(
                    f"{self.path}: the journal is of a search that "
                    f"{'maximizes' if minimize else 'minimizes'}, unlike the model."
                )
            kept = self._log.settings.get("seed", 0)
            if type(kept) is not int:
                raise self._log.damaged("its seed is not a whole number")
            self.seed = kept if seed is None else seed
            self._log.transact(self._enter)
        except BaseException:
            self._log.close()
            raise

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

    def turn(self, read: Callable[[Iterable[Entry]], object], do: Callable[[], T]) -> T:
        """Read what others have written, then do something, while nobody else writes.

        What is added meanwhile is on disk when this returns.
        """

        def transaction(db: sqlite3.Connection) -> T:
            self._db = db
            try:
                read(self._log.news(db))
                return do()
            finally:
                self._db = None

        return self._log.transact(transaction)

    def add(self, event: dict[str, Any]) -> None:
        """Write an event. It is on disk when this returns, or when the turn ends.

        If this raises, nothing was written.
        """

        if self._db is None:  # an interrupted call may have written one before
            self.turn(list, lambda: self.add(event))
        else:
            self._log.add(self._db, [event])

    def gone(self, workers: set[str]) -> set[str]:
        """Which of these processes no longer exist; to be called during a turn."""
        assert self._db is not None
        return self._log.workers.gone(self._db, workers)

    def close(self) -> None:
        """Close the file."""
        self._log.close()


class RunStore:
    """Configurations as they were used, and the journal, if there is one.

    In a shared search the journal also says which process advances a run, and this one may only
    write of runs that it advances itself.
    """

    def __init__(self, configs: Configs, journal: Journal | None) -> None:
        self.started: list[Any] = []
        self._given, self._journal = configs, journal
        self._shared = journal is not None and journal.share
        self._source: Iterator[Any] | None = None
        self._used = 0  # configurations that were taken from the source
        self._holder: dict[int, str] = {}  # run -> the process that has advanced it last
        self._gone: set[str] = set()
        self._loop: Loop | None = None

    @property
    def durable(self) -> bool:
        """Whether what was paid for survives this process."""
        return self._journal is not None

    @property
    def begun(self) -> int:
        """How many runs the journal knew when it was opened."""
        entries = [] if self._journal is None else self._journal.entries
        return sum(entry.content.get("event") == "start" for entry in entries)

    # -- reading -------------------------------------------------------------------------------

    def restore(self, loop: Loop) -> None:
        """Tell a new loop what the journal says."""
        self._loop = loop
        for entry in [] if self._journal is None else self._journal.entries:
            self._read(entry, loop, again=True)

    def _read(self, entry: Entry, loop: Loop, *, again: bool) -> None:
        try:
            self._apply(entry, loop, again)
        except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
            assert self._journal is not None
            if isinstance(error, InvalidArgument):
                raise
            raise InvalidFile(
                f"{self._journal.path}: the event {entry.content} does not fit those before: "
                f"{error}"
            ) from None

    def _apply(self, entry: Entry, loop: Loop, again: bool) -> None:
        event = entry.content
        race, run, kind = loop.race, _whole(event["run"], "run"), event["event"]
        decided = kind in ("start", "take")
        if again and (decided or (kind == "seen" and race.runs[run].until is None)):
            loop.learn()  # a decision was made here, by a model that had learned until then
        if decided:
            self._holder[run] = entry.worker
        if kind == "start":
            candidate, config = event.get("candidate"), unpacked(event["config"])
            if isinstance(self._given, Sequence):
                number = run if candidate is None else _whole(candidate, "candidate")
                if number < len(self._given):
                    self._check_same(run, self._given[number], event["config"])
                    config = self._given[number]  # with the types that it has here
                elif candidate is not None:
                    candidate = race.offer([config])  # there were more of them before
            else:
                candidate = None  # a list before, a function or an iterator now
            self._add_run(race, config, candidate)
        elif kind == "seen":
            score = math.nan if event["score"] is None else _number(event["score"], "score")
            race.observe(run, _whole(event["step"], "step"), score, _number(event["cost"], "cost"))
            if event["measured"] is not None:
                loop.measured = bool(event["measured"])
        elif kind == "take":
            race.take(run, _whole(event["until"], "until"))
        elif kind == "paid":
            race.pay(_number(event["cost"], "cost"))
        elif kind == "over":
            loop.how_over[run] = event["how"]
            (race.ended if event["how"] == "ended" else race.failed)(run)
        else:
            raise ValueError(f"unknown kind {kind!r}")

    def _check_same(self, run: int, given: Any, kept: Any) -> None:
        """Whether a list of configurations is that of the journal."""
        now = packed(given, run)
        if now != kept:
            assert self._journal is not None
            raise InvalidArgument(
                f"{self._journal.path}: the journal is of other configurations: run {run} was "
                f"started with {unpacked(kept)!r}, but now it is {given!r}. Use another journal."
            )

    # -- several processes ---------------------------------------------------------------------

    def turn(self, do: Callable[[], T]) -> T:
        """Learn what other processes did, then decide, while nobody else does."""
        if self._journal is None or not self._shared:
            return do()
        return self._journal.turn(self._catch_up, do)

    def _catch_up(self, news: Iterable[Entry]) -> None:
        """Tell the race what other processes did, and offer what those had that are gone."""
        assert self._loop is not None
        assert self._journal is not None
        for entry in news:
            self._read(entry, self._loop, again=False)
        flying = self._loop.race.in_flight
        others = {self._holder[run] for run in flying} - {self._journal.me}
        self._gone = self._journal.gone(others) if others else set()
        for run in flying:
            if self._holder[run] in self._gone:
                self._loop.race.release(run)

    def held(self, run: int) -> bool:
        """Whether another process, which is alive, is advancing a run."""
        if self._journal is None or not self._shared:
            return False
        holder = self._holder[run]
        return holder != self._journal.me and holder not in self._gone

    def take(self, run: int, until: int) -> bool:
        """Note that this process advances a run that waited; False if another one was faster."""
        if self._journal is not None and self._shared:
            self._journal.add({"event": "take", "run": run, "until": until})
            self._holder[run] = self._journal.me
        return True

    # -- writing down --------------------------------------------------------------------------

    def begin(self, candidate: int | None) -> int | None:
        """Note a new run with its configuration; NoMore if there is none.

        ``candidate`` is the number of the configuration, if the race has chosen one.
        """
        assert self._loop is not None
        race, run = self._loop.race, len(self.started)
        chosen = {} if candidate is None else {"candidate": candidate}
        config = self._next(run) if candidate is None else self._given[candidate]  # type: ignore[index]
        if self._journal is not None:
            event = {"event": "start", "run": run, "config": packed(config, run), **chosen}
            self._journal.add(event)
            self._holder[run] = self._journal.me
        self._add_run(race, config, candidate)
        return run

    def _add_run(self, race: Race, config: Any, candidate: int | None) -> None:
        self.started.append(config)
        number = race.started(candidate)
        if isinstance(config, Mapping):
            race.describe(number, config)

    def _next(self, run: int) -> Any:
        if callable(self._given):
            return self._given(run)
        if self._source is None:
            self._source = iter(self._given)
        skipped, self._used = run - self._used, run + 1  # used before, or by another process
        for config in islice(self._source, skipped, None):
            return config
        raise NoMore

    def config(self, run: int) -> Any:
        """What a run is started with."""
        return self.started[run]

    def seen(self, run: int, row: Row) -> None:
        """Note what a run has shown."""
        score = row.score if math.isfinite(row.score) else None
        self._add("seen", run, step=row.step, score=score, cost=row.cost, measured=row.measured)

    def paid(self, run: int, cost: float) -> None:
        """Note a cost that showed nothing new."""
        self._add("paid", run, cost=cost)

    def over(self, run: int, how: str, why: str) -> None:
        """Note that a run has ended, failed or was lost."""
        self._add("over", run, how=how, why=why)

    def waits(self, run: int) -> None:
        """Nothing to note: it follows from what was seen."""

    def settled(self, runs: Sequence[int]) -> None:
        """Nothing to note: it follows from what was seen."""

    def finish(self) -> None:
        """Nothing to note at the end either."""

    leave = finish

    def _add(self, event: str, run: int, **more: Any) -> None:
        if self._journal is None:
            return
        journal, content = self._journal, {"event": event, "run": run, **more}

        def write() -> None:
            if self._shared and self._holder[run] != journal.me:
                raise TakenOver
            journal.add(content)

        self.turn(write)


def _whole(x: Any, what: str) -> int:
    if type(x) is not int or (x < 0 and what in ("run", "candidate")):  # neither 1.0 nor true
        raise ValueError(f"{what} must be a whole number, but it is {x!r}.")
    return x


def _number(x: Any, what: str) -> float:
    if isinstance(x, bool) or not isinstance(x, (int, float)):
        raise ValueError(f"{what} must be a number, but it is {x!r}.")
    return x


_TUPLE, _DICT = "__tuple__", "__dict__"


def packed(config: object, number: int) -> Any:
    """A configuration as it stands in a journal, which keeps tuples and keys; or an error."""
    try:
        return json.loads(json.dumps(_pack(config), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(
            f"with a journal, configurations must be made of numbers, texts, lists and dicts, but "
            f"that of run {number} is not ({error}): {config!r}."
        ) from None


def _pack(x: Any) -> Any:
    if isinstance(x, tuple):
        return {_TUPLE: [_pack(y) for y in x]}
    if isinstance(x, list):
        return [_pack(y) for y in x]
    if isinstance(x, Mapping):
        if all(type(key) is str for key in x) and not ({_TUPLE, _DICT} & x.keys()):
            return {key: _pack(y) for key, y in x.items()}
        return {_DICT: [[_pack(key), _pack(y)] for key, y in x.items()]}
    if hasattr(x, "tolist"):  # NumPy's numbers and arrays
        return x.tolist()
    return x


def unpacked(x: Any) -> Any:
    """A configuration of a journal as it was given."""
    if isinstance(x, list):
        return [unpacked(y) for y in x]
    if not isinstance(x, dict):
        return x
    if x.keys() == {_TUPLE}:
        return tuple(unpacked(y) for y in x[_TUPLE])
    if x.keys() == {_DICT}:
        return {unpacked(key): unpacked(y) for key, y in x[_DICT]}
    return {key: unpacked(y) for key, y in x.items()}
