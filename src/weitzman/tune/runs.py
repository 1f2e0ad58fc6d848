"""Runs that advance a step at a time, and training loops that report turned into such runs.

A run is a generator (or any iterator), or an object with ``advance()``. Each step gives the score;
or the score and what the step cost; or score, cost and the number of the step. Without a cost, the
time of the step is the cost. The end of the iterator, or None from ``advance()``, is the end of the
run.

``start(config)`` makes a run. If it takes a second parameter called ``past``, it can also bring
back a run that is no longer in memory: ``start(config, past)`` must then return a run whose next
step is the one after ``past.step``, from a checkpoint that the run has saved by itself.

A function ``train(config, report)`` becomes a run by running in a thread of its own. Each
``report(score)`` hands the score over and waits there until the run is advanced again. So any
training loop with a callback can be paused and resumed, and ended: then ``report`` raises
:class:`Ended`.
"""

from __future__ import annotations

import inspect
import math
import operator
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, NamedTuple

from ..errors import InvalidAnswer, InvalidArgument

Start = Callable[..., Any]
Train = Callable[..., Any]
Clock = Callable[[], float]
SECONDS: Clock = time.perf_counter


@dataclass(frozen=True, slots=True)
class Past:
    """What is known about a run when it is started or brought back.

    Attributes
    ----------
    run : int
        The number of the run: a good name for the folder of its checkpoints.
    steps, scores : tuples
        What the run has shown, all paid for and recorded; empty for a new run.
    """

    run: int
    steps: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()

    @property
    def step(self) -> int:
        """The last step that was seen, 0 for a new run: continue with the one after it."""
        return self.steps[-1] if self.steps else 0


class Row(NamedTuple):
    """One step: its number, the score, the cost, and whether the cost is the time it took.

    ``measured`` is None for a run that failed before any step had said how costs are given.
    """

    step: int
    score: float
    cost: float
    measured: bool | None

    def ends_move(self, until: int) -> bool:
        """Whether the next decision falls here: the rung is reached, or the run has diverged."""
        return self.step >= until or not math.isfinite(self.score)


def takes_past(start: Start) -> bool:
    """Whether runs can be brought back."""
    try:
        return "past" in inspect.signature(start).parameters
    except (TypeError, ValueError):  # some builtins have no signature
        return False


class Live:
    """A run in memory; ``again``: train one that cannot be brought back up to where it was.

    The clock starts here, so the first step also pays for the start.
    """

    def __init__(
        self, start: Start, config: object, past: Past, clock: Clock, *, again: bool = False
    ) -> None:
        self._clock, self._since, self.step = clock, clock(), past.step
        self.repaid = 0.0  # what training again has cost
        able = takes_past(start)
        if past.steps and not (able or again):
            raise InvalidArgument(
                f"`start` must be able to bring back run {past.run} at step {past.step}, but it "
                f"takes no parameter `past`. Give it one, and save checkpoints."
            )
        self._run = start(config, past=past) if able else start(config)
        advance = getattr(self._run, "advance", None)
        if advance is None and not isinstance(self._run, Iterator):
            raise InvalidArgument(
                f"`start` must return a generator or an object with `advance()`, but it returned "
                f"{self._run!r}."
            )
        self._advance: Callable[[], Any] = advance or (lambda: next(self._run))
        if past.steps and not able:
            self.step = 0
            for _ in past.steps:
                row = self.advance()
                self.repaid += 0.0 if row is None else row.cost

    def advance(self) -> Row | None:
        """One step; None at the end of the run."""
        try:
            given = self._advance()
        except StopIteration:
            given = None
        now = self._clock()
        took, self._since = max(0.0, now - self._since), now  # a clock may be set back
        if given is None:
            return None
        score, cost, step = _parts(given)
        self.step = self.step + 1 if step is None else step
        return Row(self.step, score, took if cost is None else cost, cost is None)

    @property
    def took(self) -> float:
        """The time since the last step."""
        return max(0.0, self._clock() - self._since)

    def wake(self) -> None:
        """Restart the clock: the time of a pause is not a cost."""
        self._since = self._clock()

    def close(self) -> None:
        """Release the resources of the run."""
        close = getattr(self._run, "close", None)
        if close is not None:
            close()


def _parts(given: Any) -> tuple[float, float | None, int | None]:
    """Score, cost and step of what a run gave."""
    parts = given if isinstance(given, tuple | list) else (given,)
    try:
        if not 1 <= len(parts) <= 3 or any(isinstance(x, str | bytes) for x in parts):
            raise TypeError
        score, cost, step = (*parts, None, None)[:3]
        number = None if step is None else operator.index(step)
        return float(score), None if cost is None else float(cost), number
    except (TypeError, ValueError):
        raise InvalidAnswer(
            f"a step must give a score, (score, cost) or (score, cost, step), all numbers, but it "
            f"gave {given!r}."
        ) from None


class Moved(NamedTuple):
    """The result of a move that was carried out elsewhere."""

    rows: list[Row]
    ended: bool = False
    error: Exception | None = None
    took: float = 0.0  # until the error, since the last row


def carry_out(start: Start, config: object, past: Past, until: int, clock: Clock) -> Moved:
    """Bring a run back, advance it until a step, and let it go: one call for a worker process.

    What was paid for before an error is not lost with it.
    """
    rows: list[Row] = []
    since, live = clock(), None
    try:
        live = Live(start, config, past, clock)
        while not (rows and rows[-1].ends_move(until)):
            row = live.advance()
            since = clock()
            if row is None:
                return Moved(rows, ended=True)
            rows.append(row)
        return Moved(rows)
    except Exception as error:
        return Moved(rows, error=error, took=max(0.0, clock() - since))
    finally:
        if live is not None:
            live.close()


# -- functions that train and report ---------------------------------------------------------------


class Ended(Exception):
    """The run should not be trained any further; raised in ``report``, and expected there."""


class Reporter:
    """What a function that trains calls to show a score.

    Attributes
    ----------
    past : Past
        What the run has shown so far; ``past.step`` is 0 for a new run.
    """

    def __init__(self, past: Past) -> None:
        self.past, self.closed = past, False
        self.shown: SimpleQueue[Any] = SimpleQueue()  # what was reported, or how it ended
        self.turns: SimpleQueue[bool] = SimpleQueue()  # True: continue; False: end

    def __call__(self, score: float, cost: float | None = None, step: int | None = None) -> None:
        """Show a score, and wait until the run is advanced.

        Parameters
        ----------
        score : float
        cost : float, optional
            What the step cost; by default the time that it took.
        step : int, optional
            The number of the step; by default one more than before.

        Raises
        ------
        Ended
            When the run should not be trained any further. Do not catch it, or end training.
        """
        steps = self.past.steps
        if step is not None and steps and step <= steps[-1]:
            return  # it has been seen: `train` went back to its last checkpoint
        self.shown.put((score, cost, step))
        if self.closed or not self.turns.get():
            self.closed = True
            raise Ended

    def offer(self, score: float, cost: float | None = None, step: int | None = None) -> bool:
        """Show a score without raising, for callbacks: returns whether to continue."""
        try:
            self(score, cost, step)
        except Ended:
            return False
        return True


class Paced:
    """A run made of ``train(config, report)``: an object with ``advance`` and ``close``.

    Examples
    --------
    >>> def train(config, report):
    ...     for epoch in range(3):
    ...         report(config * epoch, cost=1.0)
    >>> run = Paced(train, 5)
    >>> run.advance(), run.advance()
    ((0, 1.0, None), (5, 1.0, None))
    >>> run.close()
    """

    def __init__(self, train: Train, config: Any, past: Past | None = None) -> None:
        self._report = Reporter(past or Past(0))
        given = train, config, self._report
        self._thread = threading.Thread(
            target=_follow, args=given, daemon=True, name="weitzman run"
        )
        self._over = False

    def advance(self) -> tuple[float, float | None, int | None] | None:
        """Train until the next report; None at the end."""
        if self._over:
            return None
        if self._thread.ident is None:
            self._thread.start()
        else:
            self._report.turns.put(True)
        shown = self._report.shown.get()
        if isinstance(shown, tuple):
            return shown
        self._over = True
        self._thread.join()
        if isinstance(shown, BaseException):
            raise shown
        return None

    def close(self) -> None:
        """End training where it waits."""
        if self._over or self._thread.ident is None:
            return
        self._over = True
        self._report.turns.put(False)
        self._report.turns.put(False)  # a second report after the first refusal does not wait
        self._thread.join()


def _follow(train: Train, config: Any, report: Reporter) -> None:
    """Train in this thread; at the end say how it ended."""
    how: BaseException | None = None
    try:
        train(config, report)
    except BaseException as error:
        how = None if isinstance(error, Ended) else error
    report.shown.put(how)


def paced(train: Train, *, resumes: bool = False) -> Callable[..., Paced]:
    """Make a ``start`` for :func:`weitzman.tune.optimize` of a function that trains and reports.

    Parameters
    ----------
    train : callable
        ``train(config, report)``: trains, and calls ``report(score)`` after each step. Anything
        that trains can be called within; see the callbacks in :mod:`weitzman.tune.callbacks`.
    resumes : bool
        ``train`` can continue from a checkpoint: if ``report.past.step`` is not 0, it must continue
        with the step after that one.

    Examples
    --------
    >>> from weitzman import tune
    >>> def train(config, report):
    ...     for epoch in (1, 2):
    ...         report(config * epoch, cost=1.0)
    >>> tune.optimize(tune.paced(train), [1, 5, 2], price=100).best_config
    5
    """
    if not callable(train):
        raise InvalidAnswer(f"`train` must be a function, but it is {train!r}.")

    def fresh(config: Any) -> Paced:
        return Paced(train, config)

    def back(config: Any, past: Past) -> Paced:
        return Paced(train, config, past)

    return back if resumes else fresh
