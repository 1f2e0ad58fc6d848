"""The loop that carries out the moves of a race, with one worker or several.

The book (a journal file, an Optuna storage) is told of everything before the race is. So a crash
between any two instructions loses no decision, and telling a new race what the book says restores
its state.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from ..errors import InvalidAnswer, WeitzmanError
from .allowance import Allowance
from .book import Book, Inline, LoopSettings, NoMore, TakenOver
from .outcome import Report
from .race import Move, Race
from .refit import refitting
from .runs import Live, Moved, Past, Row, Start, carry_out, takes_past

_HOPELESS = 100  # after this many runs without a score, something else must be wrong
_PATIENCE = 20  # wait this many times as long as computing the gain took before doing it again
_SOON, _LATER = 0.02, 0.5  # seconds between two looks at what other processes do


class Loop:
    """Carries out the moves of a race until nothing is worth its cost.

    Parameters
    ----------
    race : Race
        In the state that the book records.
    book : Book
    start : callable
        As in :mod:`weitzman.tune.runs`.
    settings : Settings
    """

    def __init__(self, race: Race, book: Book, start: Start, settings: LoopSettings) -> None:
        self.race, self.book, self.start, self.settings = race, book, start, settings
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

    def run(self) -> None:
        """Go on until it is best to stop."""
        self._before, self._began = len(self.race.runs), time.monotonic()
        self.book.turn(self._give_back)
        pool = Inline() if self.settings.workers == 1 else ThreadPoolExecutor(self.settings.workers)
        flying = 0
        try:
            while True:
                while flying < self.settings.workers and self._send(pool):
                    flying += 1
                if not flying and self._wait_for_others():
                    continue
                if not flying:
                    break
                done = self._done.get()
                flying -= 1
                self._collect(*done)
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

    def _give_back(self) -> None:
        """Offer runs again that were begun before a crash, here or in a process that is gone."""
        for run in self.race.in_flight:
            if not self.book.held(run):
                self.race.release(run)

    def _wait_for_others(self) -> bool:
        """Wait while other processes advance runs; False if none do. Nothing is left to do here."""
        if self._is_late() or not any(self.book.held(run) for run in self.race.in_flight):
            return False
        time.sleep(self._pace)
        self._pace = min(2 * self._pace, _LATER)
        return True

    # -- deciding ------------------------------------------------------------------------------

    def _send(self, pool: Inline | ThreadPoolExecutor) -> bool:
        """Hand out the next move; False if there is none."""
        with self._lock:
            if self._is_late():
                return False
            if self.settings.share:
                self.book.turn(lambda: None)  # to learn from it before others have to wait
            self.learn()
            move = self.book.turn(self._decide)
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
                carry_out, self.start, self.book.config(run), self._past(run), until,
                self.settings.clock,
            )  # fmt: skip
        future.add_done_callback(lambda future: self._done.put((run, future)))
        return True

    def _decide(self) -> tuple[int, int, bool] | None:
        self._let_go()
        self._pause()
        return self._choose()

    def _choose(self) -> tuple[int, int, bool] | None:
        """A run, the step to go to, and whether the run is new."""
        while (move := self.race.next()) is not None:
            self._note(move)
            if move.run is None:
                self._check_hope()
                try:
                    self.book.begin(len(self.race.runs), move.candidate)
                except NoMore:
                    self.race.exhausted()
                    continue
                run = self.race.started(move.candidate)
                config = self.book.config(run)
                if isinstance(config, Mapping):
                    self.race.describe(run, config)
                return run, move.until, True
            if self._can_go_on(move.run):
                self.book.take(move.run, move.until)
                return move.run, move.until, False
            why = "it was not in memory and `start` cannot bring it back"
            self._over(move.run, "lost", why)
        return None

    def _check_hope(self) -> None:
        """Whether new runs lead anywhere: without a score, no number of them would be enough."""
        if self.race.best_score is not None:
            return
        vain = sum(run.until is None for run in self.race.runs[self._before :])
        if vain >= _HOPELESS:
            raise InvalidAnswer(
                f"some run must show a score, but {vain} have ended or diverged without one. See "
                f"whether training works; everything is written down, so it can be started again."
            )

    def _can_go_on(self, run: int) -> bool:
        known = run in self._live or not self.race.runs[run].steps
        return known or takes_past(self.start) or self.settings.lost == "replay"

    def learn(self) -> None:
        """Fit the model again, and its price, if it is time; to be called before each decision."""
        if self._refit is not None:
            self._refit()
        if self._allowance is not None:
            self._allowance()

    def _let_go(self) -> None:
        """Free the resources of runs that will no longer be advanced."""
        runs = self.race.settled()
        self.book.settled(runs)
        for run in runs:
            if self._refit is None or self.race.runs[run].over:
                self._drop(run)

    def _pause(self) -> None:
        """Release waiting runs beyond the cap, lowest index first; checkpoints remain."""
        if self.settings.alive is None:
            return
        waiting = self.race.waiting
        kept = sorted(self._live.keys() & waiting.keys(), key=lambda run: (-waiting[run], run))
        for run in kept[self.settings.alive :]:
            self._drop(run)

    def _is_late(self) -> bool:
        """Whether the time is up; then nothing more is begun."""
        limit = self.settings.timeout
        if limit is None or time.monotonic() - self._began < limit:
            return False
        self.race.halt(f"the time of {limit:g} seconds is up")
        return True

    # -- doing ---------------------------------------------------------------------------------

    def _past(self, run: int) -> Past:
        it = self.race.runs[run]
        return Past(run, tuple(it.steps), tuple(it.scores))

    def _carry_out(self, run: int, until: int) -> None:
        """A move, here or in a thread; each row is written down as soon as it is seen."""
        with suppress(TakenOver):  # others took this process for dead, and another one has the run
            self._advance(run, until)

    def _advance(self, run: int, until: int) -> None:
        try:
            live = self._alive(run)
        except self.settings.catch as error:
            self._failed(run, error, 0.0)
            return
        while not self._halt:  # one step at least: the first rung may be step 0
            try:
                row = live.advance()
            except self.settings.catch as error:
                self._failed(run, error, live.took)
                return
            if row is None:
                self._over(run, "ended", "")
                return
            self._seen(run, row)
            if row.ends_move(until):
                return

    def _alive(self, run: int) -> Live:
        """A run in memory."""
        live = self._live.get(run)
        if live is not None and live.step == self._past(run).step:
            live.wake()
            return live
        self._drop(run)  # another process has advanced the run since
        again = self.settings.lost == "replay"
        live = Live(
            self.start, self.book.config(run), self._past(run), self.settings.clock, again=again
        )
        with self._lock:
            if live.repaid:
                self.book.paid(run, live.repaid)
                self.race.pay(live.repaid)
            self._live[run] = live
        return live

    def _collect(self, run: int, future: Any) -> None:
        """A move is over; write down what a worker elsewhere has sent."""
        moved = future.result()
        if not isinstance(moved, Moved):  # it was done here
            return
        with suppress(TakenOver):
            self._note_moved(run, moved)

    def _note_moved(self, run: int, moved: Moved) -> None:
        for row in moved.rows:
            self._seen(run, row)
        if moved.ended:
            self._over(run, "ended", "")
        elif moved.error is not None:
            if not isinstance(moved.error, self.settings.catch):
                raise moved.error
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
            self.book.seen(run, row)
            self.race.observe(run, row.step, row.score, row.cost)
            self._tell("seen", run, row)

    def _failed(self, run: int, error: Exception, took: float) -> None:
        """A run has crashed. It counts as diverged, at the cost of the time that it took."""
        if isinstance(error, WeitzmanError):
            raise error  # an error of this package, not of the run
        with self._lock:
            steps = self.race.runs[run].steps
            cost = took if self.measured else 0.0
            row = Row((steps[-1] if steps else 0) + 1, math.nan, cost, bool(self.measured))
            self.book.seen(run, row)
            self.race.observe(run, row.step, row.score, row.cost)
            self._over(run, "failed", f"{type(error).__name__}: {error}")

    def _over(self, run: int, how: str, why: str) -> None:
        with self._lock:
            self.book.over(run, how, why)
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
        report = Report(
            event, run, None if run is None else self.book.config(run),
            None if row is None else row.step,
            None if row is None else row.score,
            None if row is None else row.cost,
            race.best_score, race.best_run, race.best, race.spent, self._gain,
            len(race.runs), len(race.in_flight), self._reason,
        )  # fmt: skip
        for watch in self.settings.watchers:
            watch(report)
