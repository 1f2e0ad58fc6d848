"""The book of a plain search: configurations as they were used, and a journal, if there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import InvalidArgument, InvalidFile
from ..files.event_log import Entry
from .book import NoMore, T, TakenOver
from .loop import Loop
from .run_journal import RunJournal, as_json, as_score
from .runs import Row

Configs = Iterable[Any] | Callable[[int], Any] | Mapping[str, Any]


class PlainBook:
    """Configurations as they were used, and the journal, if there is one.

    In a shared search the journal also says which process advances a run, and this one may only
    write of runs that it advances itself.
    """

    def __init__(self, configs: Configs, journal: RunJournal | None) -> None:
        self.configs: list[Any] = []
        self._given, self._journal = configs, journal
        self._shared = journal is not None and journal.share
        self._source: Iterator[Any] | None = None
        self._used = 0  # configurations that were taken from the source
        self._holder: dict[int, str] = {}  # run -> the process that has advanced it last
        self._gone: set[str] = set()
        self._loop: Loop | None = None

    @property
    def begun(self) -> int:
        """How many runs the journal knew when it was opened."""
        entries = [] if self._journal is None else self._journal.entries
        return sum(entry.content.get("event") == "start" for entry in entries)

    def tell_again(self, loop: Loop) -> None:
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
        race, run, kind = loop.race, event["run"], event["event"]
        decided = kind in ("start", "take")
        if again and (decided or (kind == "seen" and race.runs[run].until is None)):
            loop.learn()  # a decision was made here, by a model that had learned until then
        if decided:
            self._holder[run] = entry.worker
        if kind == "start":
            candidate = event.get("candidate")
            self._check_same(run, run if candidate is None else candidate, event["config"])
            self.configs.append(event["config"])
            if not isinstance(self._given, Sequence):
                candidate = None  # a list before, a function or an iterator now
            elif candidate is not None and candidate >= len(self._given):
                candidate = race.offer([event["config"]])  # there were more of them before
            race.started(candidate)
            if isinstance(event["config"], Mapping):
                race.describe(run, event["config"])
        elif kind == "seen":
            score = float("nan") if event["score"] is None else event["score"]
            race.observe(run, event["step"], score, event["cost"])
            loop.measured = event["measured"]
        elif kind == "take":
            race.take(run, event["until"])
        elif kind == "paid":
            race.pay(event["cost"])
        elif kind == "over":
            loop.how_over[run] = event["how"]
            (race.ended if event["how"] == "ended" else race.failed)(run)
        else:
            raise ValueError(f"unknown kind {kind!r}")

    def _check_same(self, run: int, number: int, config: Any) -> None:
        """Whether a list of configurations is that of the journal."""
        if not isinstance(self._given, Sequence):
            return
        if number >= len(self._given):
            return
        now = as_json(self._given[number], run)
        if now != config:
            assert self._journal is not None
            raise InvalidArgument(
                f"{self._journal.path}: the journal is of other configurations: run {run} was "
                f"started with {config!r}, but now it is {now!r}. Use another journal."
            )

    # -- several processes ---------------------------------------------------------------------

    def turn(self, do: Callable[[], T]) -> T:
        if self._journal is None or not self._shared:
            return do()

        def up_to_date(news: Iterable[Entry]) -> T:
            self._catch_up(news)
            return do()

        return self._journal.turn(up_to_date)

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
        if self._journal is None or not self._shared:
            return False
        holder = self._holder[run]
        return holder != self._journal.me and holder not in self._gone

    def take(self, run: int, until: int) -> None:
        if self._journal is not None and self._shared:
            self._journal.add({"event": "take", "run": run, "until": until})
            self._holder[run] = self._journal.me

    # -- writing down --------------------------------------------------------------------------

    def begin(self, run: int, candidate: int | None) -> None:
        chosen = {} if candidate is None else {"candidate": candidate}
        config = self._next(run) if candidate is None else self._given[candidate]  # type: ignore[index]
        if self._journal is not None:
            config = as_json(config, run)
            self._journal.add({"event": "start", "run": run, "config": config, **chosen})
            self._holder[run] = self._journal.me
        self.configs.append(config)

    def _next(self, run: int) -> Any:
        if callable(self._given):
            return self._given(run)
        if self._source is None:
            self._source = iter(self._given)
        try:
            while self._used < run:  # these were used before, or by another process
                next(self._source)
                self._used += 1
            self._used += 1
            return next(self._source)
        except StopIteration:
            raise NoMore from None

    def config(self, run: int) -> Any:
        return self.configs[run]

    def seen(self, run: int, row: Row) -> None:
        score, measured = as_score(row.score), row.measured
        self._add("seen", run, step=row.step, score=score, cost=row.cost, measured=measured)

    def paid(self, run: int, cost: float) -> None:
        self._add("paid", run, cost=cost)

    def over(self, run: int, how: str, why: str) -> None:
        self._add("over", run, how=how, why=why)

    def settled(self, runs: Sequence[int]) -> None:
        """Nothing to note: it follows from what was seen."""

    def _add(self, event: str, run: int, **more: Any) -> None:
        if self._journal is None:
            return
        journal, content = self._journal, {"event": event, "run": run, **more}
        if not self._shared:
            journal.add(content)
            return

        def write() -> None:
            if self._holder[run] != journal.me:
                raise TakenOver
            journal.add(content)

        self.turn(write)

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()
