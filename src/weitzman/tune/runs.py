"""What users give: configurations, and runs that advance a step at a time.

A run is a generator (or any iterator), or an object with ``advance()``. Each step gives the score;
or the score and what the step cost; or score, cost and the number of the step. Without a cost, the
time of the step is the cost. The end of the iterator, or None from ``advance()``, is the end of the
run.

``start(config)`` makes a run. If it takes a second parameter called ``past``, it can also bring
back a run that is no longer in memory: ``start(config, past)`` must then return a run whose next
step is the one after ``past.step``, from a checkpoint that the run has saved by itself.
"""

from __future__ import annotations

import inspect
import math
import operator
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import InvalidAnswer, InvalidArgument

Start = Callable[..., Any]
Clock = Callable[[], float]


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
        """The last step that was seen, 0 for a new run: go on with the one after it."""
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
    """A run in memory.

    Parameters
    ----------
    start : callable
    config : object
    past : Past
    clock : callable
        Gives the time, in units of cost. The clock starts here, so the first step also pays for
        the start.
    again : bool
        Whether to train a run that cannot be brought back up to where it was.
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
        return (
            float(score),
            None if cost is None else float(cost),
            None if step is None else operator.index(step),
        )
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


SECONDS: Clock = time.perf_counter
