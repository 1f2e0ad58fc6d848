"""Tune with nothing but configurations and a function that trains."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, Literal

from ..errors import InvalidArgument, InvalidFile
from .book import Callback, Catch, LoopSettings, NoMore, check_settings, exceptions
from .loop import Loop
from .outcome import Display, Result, result_of
from .race import Race
from .run_journal import Event, Path, RunJournal, as_json, as_score
from .runs import SECONDS, Clock, Row, Start
from .stating import Stated, draw, model_of

Configs = Iterable[Any] | Callable[[int], Any] | Mapping[str, Any]


def optimize(
    start: Start,
    configs: Configs,
    model: Stated = None,
    *,
    price: float | None = None,
    full_run_cost: float | None = None,
    minimize: bool | None = None,
    journal: Path | None = None,
    outside: float | None = None,
    budget: float | None = None,
    workers: int = 1,
    executor: Any = None,
    lost: Literal["abandon", "replay"] = "abandon",
    catch: Catch = (),
    refit: bool | None = None,
    reprice: bool = False,
    clock: Clock = SECONDS,
    timeout: float | None = None,
    alive: int | None = None,
    progress: bool = False,
    callback: Callback | None = None,
) -> Result:
    """Start runs, advance the most promising one, and stop when nothing is worth its cost.

    Parameters
    ----------
    start : callable
        ``start(config)`` returns a run: a generator, or an object with ``advance()``. Each step
        gives a score, ``(score, cost)`` or ``(score, cost, step)``. With a second parameter
        ``past`` (a :class:`Past`) it must also bring back a run from its checkpoint.
    configs : iterable, or callable
        The configurations in the order in which to start them; or a function of the number of the
        run. A list of mappings from names to values is a list of candidates: a model that was
        learned from runs with settings chooses which to start. A mapping is a space, from which
        candidates are drawn: see :func:`draw`.
    model : RunModel or Curves, optional
        What to expect of a run, and the price of a score: see :func:`weitzman.learn.fit`. A log is
        fitted at ``price`` or ``full_run_cost``. Nothing: all is learned on the way, from a weak
        prior; see :func:`weitzman.learn.from_nothing`.
    price, full_run_cost : float, optional
        What a point of score is worth in units of cost; or how many points a full run costs. One of
        them, unless a model is given.
    minimize : bool, optional
        Lower scores are better; by default as the model or the log says.
    journal : str or path, optional
        A file that makes the search survive crashes. If it is there, the search goes on where it
        stood, and nothing that was paid for is repeated.
    outside : float, optional
        The worth of what is available without any run, in units of cost.
    budget : float, optional
        Begin nothing once this much is spent, even if it were worth its cost: a brake, in case the
        model promises more than these runs deliver.
    workers : int
        How many runs to advance at once. One is optimal; more save time and cost payoff.
    executor : object with ``submit``, optional
        Where to advance runs: a process pool, a cluster. By default in threads of this process.
        A run is brought back there for each move, so ``start`` must take ``past``; both must be
        picklable, and what a move shows is on disk once the whole move is over.
    lost : "abandon" or "replay"
        What becomes of a run that is not in memory (after a crash) if ``start`` takes no ``past``:
        leave it, or train it again up to where it was, and pay for that again.
    catch : exception, or several
        If a run raises one of these exceptions, the run has failed and the search goes on. Other
        exceptions end the search; when it is started again, it begins with that step.
    refit : bool, optional
        Fit the model anew now and then, to what it knew and what this search has shown. By default
        if it can (if it has ``updated``, as that of :func:`weitzman.learn.fit`).
    reprice : bool
        Find the price of a score by itself: the one at which the ``budget`` is spent on average,
        in place of that of the model; and find it again as money is spent.
    clock : callable
        What a step costs that does not say so: the difference of two readings.
    timeout : float, optional
        Begin nothing once this many seconds have passed; steps under way are finished.
    alive : int, optional
        How many waiting runs to keep in memory: those of highest index. The others are let go of,
        and brought back from their checkpoints when their turn comes, so ``start`` must take
        ``past``. By default all.
    progress : bool
        Show on standard error how it stands.
    callback : callable, optional
        Called with a :class:`Report` after each event, once it is on disk.

    Returns
    -------
    Result

    Examples
    --------
    >>> from weitzman import learn, tune
    >>> log = {"run": [0, 0, 1, 1, 2, 2], "step": [1, 2] * 3, "score": [5, 7, 4, 4, 6, 9]}
    >>> model = learn.fit(learn.Curves.read(log, cost=None), price=100)
    >>> def start(config):
    ...     for step in (1, 2):
    ...         yield config * step, 1.0                        # score and cost
    >>> result = tune.optimize(start, [1, 5, 2], model)
    >>> result.best_config
    5

    Without any log:

    >>> found = tune.optimize(start, [1, 5, 2, 6, 3], price=100)
    >>> found.best_config
    6
    """
    settings = LoopSettings(
        workers=workers, executor=executor, lost=lost, catch=exceptions(catch), refit=refit,
        reprice=reprice,
        clock=clock,
        watchers=[*([callback] if callback else []), *([Display()] if progress else [])],
        timeout=timeout, alive=alive,
    )  # fmt: skip
    check_settings(settings, start)
    if isinstance(configs, Mapping):
        configs = draw(configs)
    _check_configs(configs)
    known = model_of(model, price=price, full_run_cost=full_run_cost, minimize=minimize)
    race = Race(known, **_supply(configs), outside=outside, budget=budget)
    book = _Book(configs, None if journal is None else RunJournal(journal, minimize=known.minimize))
    try:
        loop = Loop(race, book, start, settings)
        book.tell_again(loop)
        loop.run()
    finally:
        book.close()
    return result_of(race, book.configs, loop.how_over)


def _supply(configs: Configs) -> dict[str, Any]:
    """What a race is told of the configurations: candidates, their number, or nothing."""
    if isinstance(configs, Sequence) and configs and all(isinstance(x, Mapping) for x in configs):
        return {"candidates": configs}
    return {"available": len(configs) if isinstance(configs, Sized) else None}


def _check_configs(configs: object) -> None:
    """Refuse iterables that are hardly meant as configurations, such as texts."""
    odd = isinstance(configs, str | bytes) or hasattr(configs, "columns")
    if odd or not (callable(configs) or isinstance(configs, Iterable)):
        raise InvalidArgument(
            f"configurations are a list, an iterable, a function of the number of the run or a "
            f"space, but here is a {type(configs).__name__}."
        )


class _Book:
    """Configurations as they were used, and the journal, if there is one."""

    def __init__(self, configs: Configs, journal: RunJournal | None) -> None:
        self.configs: list[Any] = []
        self._given, self._journal = configs, journal
        self._source: Iterator[Any] | None = None

    def tell_again(self, loop: Loop) -> None:
        """Tell a new loop what the journal says."""
        for event in [] if self._journal is None else self._journal.events:
            try:
                self._apply(event, loop)
            except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
                assert self._journal is not None
                if isinstance(error, InvalidArgument):
                    raise
                raise InvalidFile(
                    f"{self._journal.path}: the event {event} does not fit those before: {error}"
                ) from None

    def _apply(self, event: Event, loop: Loop) -> None:
        race, run, kind = loop.race, event["run"], event["event"]
        if kind == "start" or (kind == "seen" and race.runs[run].until is None):
            loop.learn()  # a decision was made here, by a model that had learned until then
        if kind == "start":
            candidate = event.get("candidate")
            self._check_same(run, run if candidate is None else candidate, event["config"])
            self.configs.append(event["config"])
            race.started(candidate)
            if isinstance(event["config"], Mapping):
                race.describe(run, event["config"])
        elif kind == "seen":
            score = float("nan") if event["score"] is None else event["score"]
            race.observe(run, event["step"], score, event["cost"])
            loop.measured = event["measured"]
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
        now = as_json(self._given[number], run) if number < len(self._given) else "missing"
        if now != config:
            assert self._journal is not None
            raise InvalidArgument(
                f"{self._journal.path}: the journal is of other configurations: run {run} was "
                f"started with {config!r}, but now it is {now!r}. Use another journal."
            )

    def begin(self, run: int, candidate: int | None) -> None:
        chosen = {} if candidate is None else {"candidate": candidate}
        config = self._next(run) if candidate is None else self._given[candidate]  # type: ignore[index]
        if self._journal is not None:
            config = as_json(config, run)
            self._journal.add({"event": "start", "run": run, "config": config, **chosen})
        self.configs.append(config)

    def _next(self, run: int) -> Any:
        if callable(self._given):
            return self._given(run)
        if self._source is None:
            self._source = itertools.islice(self._given, run, None)  # the first ones were used
        try:
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
        pass  # it follows from what was seen

    def _add(self, event: str, run: int, **more: Any) -> None:
        if self._journal is not None:
            self._journal.add({"event": event, "run": run, **more})

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()
