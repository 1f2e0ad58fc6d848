"""The loop that carries out the moves of a race, with one worker or several.

The store (memory, a journal, an Optuna storage) is told of everything before the race is. So a
crash between any two instructions loses no decision, and telling a new race what the store says
restores its state.
"""

from __future__ import annotations

import math
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Literal

from .._common.arrays import check_counts
from ..errors import InvalidAnswer, InvalidArgument, WeitzmanError
from .outcome import Display, Report, Result, keep, result_of
from .race import Move, Race
from .refit import Allowance, refitting
from .run_store import NoMore, RunStore, TakenOver
from .runs import Clock, Live, Moved, Past, Row, Start, carry_out, takes_past

if TYPE_CHECKING:
    from .optuna_store import StudyStore

Callback = Callable[[Report], object]
Catch = type[Exception] | Sequence[type[Exception]]
Missing = Literal["abandon", "replay"]

_HOPELESS = 100  # after this many runs without a score, something else must be wrong
_PATIENCE = 20  # wait this many times as long as computing the gain took before doing it again
_SOON, _LATER = 0.02, 0.5  # seconds between two looks at what other processes do


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    """How a loop does its work; see :func:`weitzman.tune.optimize`."""

    workers: int
    executor: Any
    on_missing_checkpoint: Missing
    catch: tuple[type[Exception], ...]
    refit: bool | None
    clock: Clock
    watchers: Sequence[Callback]
    timeout: float | None = None
    max_in_memory: int | None = None
    reprice: bool = False
    share: bool = False


def checked(
    start: Start, catch: Catch, callback: Callback | None, progress: bool, **options: Any
) -> LoopSettings:
    """The settings of a loop, or an error that names the first one that makes no sense."""
    kinds = (catch,) if isinstance(catch, type) else catch
    if not isinstance(kinds, (tuple, list)) or not all(
        isinstance(x, type) and issubclass(x, Exception) for x in kinds
    ):
        raise InvalidArgument(
            f"`catch` must be a class of exceptions or several, such as ValueError, but it is "
            f"{catch!r}."
        )
    watchers = [watch for watch in (callback, Display() if progress else None) if watch]
    s = LoopSettings(catch=tuple(kinds), watchers=watchers, **options)
    check_counts(workers=s.workers)
    check_counts(0, max_in_memory=s.max_in_memory)
    if s.on_missing_checkpoint not in ("abandon", "replay"):
        raise InvalidArgument(
            f'`on_missing_checkpoint` must be "abandon" or "replay", but it is '
            f"{s.on_missing_checkpoint!r}."
        )
    if s.timeout is not None and not s.timeout > 0:
        raise InvalidArgument(f"`timeout` must be seconds above 0, but it is {s.timeout!r}.")
    if s.executor is not None and not hasattr(s.executor, "submit"):
        raise InvalidArgument(f"`executor` must have `submit`, but it is {s.executor!r}.")
    needs = None
    if s.share and s.on_missing_checkpoint != "replay":
        needs = "in a shared search, runs go from one process to another"
    elif s.executor is not None:
        needs = "with an executor, runs are brought back for every move"
    elif s.max_in_memory is not None:
        needs = "with `max_in_memory`, runs that wait are brought back from their checkpoints"
    if needs is not None and not takes_past(start):
        raise InvalidArgument(f"{needs}, so `start` must take a parameter `past`, but it does not.")
    return s


class _Inline:
    """An executor that does the work at once, in this thread."""

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args))
        except Exception as error:
            future.set_exception(error)
        return future


class Loop:
    """Carries out the moves of a race until nothing is worth its cost.

    The race is in the state that the store records. ``turn`` of the store brings it up to date with
    other processes; a run may only be advanced once ``begin`` or ``take`` has given it.
    """

    def __init__(
        self, race: Race, store: RunStore | StudyStore, start: Start, settings: LoopSettings
    ) -> None:
        self.race, self.store, self.start, self.settings = race, store, start, settings
        self.how_over: dict[int, str] = {}
        self.measured: bool | None = None  # whether costs are times; None if not known yet
        self._refit = refitting(race, settings.refit)
        self._allowance = Allowance(race) if settings.reprice else None
        self._live: dict[int, Live] = {}
        self._lock = threading.RLock()
        self._done: SimpleQueue[tuple[int, Any]] = SimpleQueue()
        self._halt, self._reason, self._pace = False, "", _SOON
        self._before, self._began = 0, 0.0  # runs that an earlier call has started; when this began
        self._gain, self._gained, self._took = math.nan, -math.inf, 0.0  # when, how long it took
        self._lost = False
        self._brings_back = takes_past(start) or settings.on_missing_checkpoint == "replay"

    def run(self) -> Result:
        """Go on from what the store says until it is best to stop."""
        try:
            self.store.restore(self)
            try:
                self._work()
            except BaseException as error:
                keep(error, self._result, durable=self.store.durable)
                raise
            self.store.finish()
        finally:
            self.store.leave()
        return self._result

    @property
    def _result(self) -> Result:
        return result_of(self.race, self.store.started, self.how_over)

    def _work(self) -> None:
        self._before, self._began = len(self.race.runs), time.monotonic()
        self.store.turn(self._release)
        workers = self.settings.workers
        pool = _Inline() if workers == 1 else ThreadPoolExecutor(workers)
        flying = 0
        try:
            while True:
                while flying < workers and self._send(pool):
                    flying += 1
                if flying:
                    done = self._done.get()
                    flying -= 1
                    self._collect(*done)
                elif not self._wait_for_others():
                    break
            self._tell("stop")
        except BaseException:
            self._halt = True  # others finish the step they are at
            for _ in range(flying):
                with suppress(Exception):
                    self._collect(*self._done.get())
            raise
        finally:
            if isinstance(pool, ThreadPoolExecutor):
                pool.shutdown()
            for live in self._live.values():
                live.close()

    def _release(self) -> None:
        """Offer runs again that were begun before a crash, here or in a process that is gone."""
        for run in self.race.in_flight:
            if not self.store.held(run):
                self.race.release(run)

    def _wait_for_others(self) -> bool:
        """Wait while other processes advance runs; False if none do. Nothing is left to do here."""
        if self._is_late() or not any(self.store.held(run) for run in self.race.in_flight):
            return False
        time.sleep(self._pace)
        self._pace = min(2 * self._pace, _LATER)
        return True

    # -- deciding ------------------------------------------------------------------------------

    def _send(self, pool: _Inline | ThreadPoolExecutor) -> bool:
        """Hand out the next move; False if there is none."""
        with self._lock:
            if self._is_late():
                return False
            if self.settings.share:
                self.store.turn(lambda: None)  # to learn from it before others have to wait
            self.learn()
            move = self.store.turn(self._choose)
            if move is None:
                return False
            run, until, new = move
            self._pace = _SOON
            if new:
                self._tell("start", run)
        if self.settings.executor is None:
            future = pool.submit(self._carry_out, run, until)
        else:
            future = self.settings.executor.submit(
                carry_out, self.start, self.store.config(run), self._past(run), until,
                self.settings.clock,
            )  # fmt: skip
        future.add_done_callback(lambda future: self._done.put((run, future)))
        return True

    def _choose(self) -> tuple[int, int, bool] | None:
        """A run, the step to go to, and whether the run is new; None if there is no move."""
        self._free_memory()
        while (move := self.race.next()) is not None:
            self._note(move)
            if move.run is None:
                self._check_hope()
                try:
                    run = self.store.begin(move.candidate)
                except NoMore:
                    self.race.exhausted()
                    continue
                if run is not None:  # None: another process has started this candidate
                    return run, move.until, True
            elif self.store.take(move.run, move.until):  # also to say that it is lost
                in_memory = move.run in self._live or not self.race.runs[move.run].steps
                if in_memory or self._brings_back:
                    return move.run, move.until, False
                self._lose(move.run)
        return None

    def _free_memory(self) -> None:
        """Let go of runs that will not be advanced, and of waiting runs beyond the limit."""
        runs = self.race.settled()
        self.store.settled(runs)
        for run in runs:
            if self._refit is None or self.race.runs[run].over:
                self._drop(run)
        if self.settings.max_in_memory is not None:
            waiting = self.race.waiting
            kept = sorted(self._live.keys() & waiting.keys(), key=lambda run: (-waiting[run], run))
            for run in kept[self.settings.max_in_memory :]:
                self._drop(run)

    def _check_hope(self) -> None:
        """Whether new runs lead anywhere: without a score, no number of them would be enough."""
        if self.race.best_score is not None:
            return
        vain = sum(run.until is None for run in self.race.runs[self._before :])
        if vain >= _HOPELESS:
            kept = " All runs are on disk, so it can be started again."
            raise InvalidAnswer(
                f"some run must show a score, but {vain} have ended or diverged without one. Check "
                f"whether training works.{kept if self.store.durable else ''}"
            )

    def _lose(self, run: int) -> None:
        if not self._lost:  # one warning stands for all
            self._lost = True
            warnings.warn(
                f"run {run} was under way when an earlier call ended, and `start` takes no "
                f"`past` to bring it back, so it is given up, with others like it. Let `start` "
                f'take `past`, or say on_missing_checkpoint="replay" to train such runs again.',
                UserWarning,
                stacklevel=8,
            )
        self._over(run, "lost", "it was not in memory and `start` cannot bring it back")

    def learn(self) -> None:
        """Fit the model again, and its price, if it is time; to be called before each decision."""
        if self._refit is not None:
            self._refit()
        if self._allowance is not None:
            self._allowance()

    def _is_late(self) -> bool:
        """Whether the time is up; then nothing more is begun."""
        limit = self.settings.timeout
        late = limit is not None and time.monotonic() - self._began >= limit
        if late:
            self.race.halt(f"the time of {limit:g} seconds is up")
        return late

    # -- doing ---------------------------------------------------------------------------------

    def _past(self, run: int) -> Past:
        it = self.race.runs[run]
        return Past(run, tuple(it.steps), tuple(it.scores))

    def _carry_out(self, run: int, until: int) -> None:
        """A move, here or in a thread; each row is on disk as soon as it is seen."""
        live = None
        with suppress(TakenOver):  # others took this process for dead, and another one has the run
            while not self._halt:  # one step at least: the first rung may be step 0
                try:
                    live = live or self._alive(run)
                    row = live.advance()
                except (TakenOver, WeitzmanError):
                    raise
                except BaseException as error:
                    self._failed(run, error, 0.0 if live is None else live.took)
                    return
                if row is None:
                    self._over(run, "ended", "")
                    return
                self._seen(run, row)
                if row.ends_move(until):
                    break
            self._paused(run)

    def _alive(self, run: int) -> Live:
        """A run in memory."""
        live = self._live.get(run)
        if live is not None and live.step == self._past(run).step:
            live.wake()
            return live
        self._drop(run)  # another process has advanced the run since
        again = self.settings.on_missing_checkpoint == "replay"
        live = Live(
            self.start, self.store.config(run), self._past(run), self.settings.clock, again=again
        )
        with self._lock:
            if live.repaid:
                self.store.paid(run, live.repaid)
                self.race.pay(live.repaid)
            self._live[run] = live
        return live

    def _collect(self, run: int, future: Any) -> None:
        """A move is over; write down what a worker elsewhere has sent."""
        moved = future.result()
        if not isinstance(moved, Moved):  # it was done here
            return
        with suppress(TakenOver):
            for row in moved.rows:
                self._seen(run, row)
            if moved.ended:
                self._over(run, "ended", "")
            elif moved.error is None:
                self._paused(run)
            elif isinstance(moved.error, WeitzmanError):
                raise moved.error
            else:
                self._failed(run, moved.error, moved.took)

    # -- writing down --------------------------------------------------------------------------

    def _seen(self, run: int, row: Row) -> None:
        with self._lock:
            self.race.check(run, row.step, row.cost)
            if self.measured is not None and self.measured != row.measured:
                raise InvalidAnswer(
                    f"either all steps or none must give their cost, but run {run}, step "
                    f"{row.step} {'does not, unlike' if row.measured else 'does, unlike'} those "
                    f"before."
                )
            self.measured = row.measured
            self.store.seen(run, row)
            self.race.observe(run, row.step, row.score, row.cost)
            self._tell("seen", run, row)

    def _failed(self, run: int, error: BaseException, took: float) -> None:
        """A run has crashed. It counts as diverged, at the cost of the time that it took."""
        if not isinstance(error, self.settings.catch):
            config = self.store.config(run)
            words = repr(getattr(config, "params", config))  # of an Optuna trial, or as given
            error.add_note(f"This was in run {run}, started with {words}.")
            raise error
        with self._lock:
            steps = self.race.runs[run].steps
            cost = 0.0 if self.measured is False else took
            row = Row((steps[-1] if steps else 0) + 1, math.nan, cost, self.measured)
            self.store.seen(run, row)
            self.race.observe(run, row.step, row.score, row.cost)
            self._over(run, "failed", f"{type(error).__name__}: {error}")

    def _paused(self, run: int) -> None:
        with self._lock:
            if self.race.runs[run].until is None:
                self.store.waits(run)

    def _over(self, run: int, how: str, why: str) -> None:
        with self._lock:
            self.store.over(run, how, why)
            self.how_over[run] = how
            (self.race.ended if how == "ended" else self.race.failed)(run)
            self._drop(run)
            self._tell("over", run)

    def _drop(self, run: int) -> None:
        live = self._live.pop(run, None)
        if live is not None:
            live.close()

    # -- telling -------------------------------------------------------------------------------

    def _note(self, move: Move) -> None:
        if not self.settings.watchers:
            return
        self._reason = move.reason
        began = time.monotonic()
        if began - self._gained > _PATIENCE * self._took:  # limits the time that this takes
            self._gain, self._gained = self.race.expected_gain, time.monotonic()
            self._took = self._gained - began

    def _tell(self, event: str, run: int | None = None, row: Row | None = None) -> None:
        if not self.settings.watchers:
            return
        race = self.race
        if event == "stop":
            self._gain, self._reason = race.expected_gain, race.reason
        seen: tuple[Any, Any, Any] = (None, None, None) if row is None else row[:3]
        report = Report(
            event, run, None if run is None else self.store.config(run), *seen, race.best_score,
            race.best_run, race.best, race.spent, self._gain, len(race.runs), len(race.in_flight),
            self._reason,
        )  # fmt: skip
        for watch in self.settings.watchers:
            watch(report)
