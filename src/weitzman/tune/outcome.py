"""What a tuner reports during a search and at its end."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from .._common.numbers import counted
from .._common.text import as_html, printable
from ..learn.first_runs import FirstRuns
from .race import Race, Seen
from .refit import curves_of

if TYPE_CHECKING:
    from ..learn.curves import Curves

_OFTEN, _SELDOM = 0.1, 10.0  # seconds between two looks: on a terminal, elsewhere


@dataclass(frozen=True, slots=True)
class Report:
    """The state of a search after an event.

    Attributes
    ----------
    event : str
        "start" (a run was started), "seen" (a run has shown a score), "over" (a run has ended,
        failed or was lost) or "stop" (the search has stopped).
    run, config, step, score, cost
        The data of the event; None where there is none.
    best_score, best_run, worth, spent
        The best score so far, what it is worth in units of cost, and all that was spent.
    expected_gain : float
        What continuing is expected to add to the payoff, as of a recent decision.
    started, in_flight : int
        How many runs were started, and how many are being advanced.
    reason : str
        Why the last move was made, or why to stop.
    """

    event: str
    run: int | None
    config: Any
    step: int | None
    score: float | None
    cost: float | None
    best_score: float | None
    best_run: int | None
    worth: float
    spent: float
    expected_gain: float
    started: int
    in_flight: int
    reason: str

    def __str__(self) -> str:
        best = "no score yet"
        if self.best_score is not None:
            best = f"best {self.best_score:.6g} (run {self.best_run})"
        gain = f"{self.expected_gain:.4g}" if math.isfinite(self.expected_gain) else "unknown"
        return (
            f"{best}, spent {self.spent:.4g}, expected further gain {gain}; "
            f"runs: {self.started}, going: {self.in_flight} | {self.reason}"
        )


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run: its configuration, what it has shown, and how it ended, if it did.

    ``over`` is "ended", "failed", "lost", "left" (a trial that was pruned), or "" for a run that
    waits.
    """

    config: Any
    steps: tuple[int, ...]
    scores: tuple[float, ...]
    costs: tuple[float, ...]
    over: str


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a search.

    Attributes
    ----------
    best_score, best_run, best_step, best_config
        The best score, which run showed it, when, and what its configuration was; None if there
        is no score.
    worth, spent, payoff : float
        What the best is worth, all that was paid, and the difference; in units of cost.
    reason : str
        Why the search stopped.
    price : float or None
        What one point of score is worth, in units of cost; None (and the worth NaN) if only the
        cost of a full run was stated in points and no run has ended.
    full_run_cost : float or None
        How many points of score a full run has cost on average; None if no run was trained
        to its end.
    runs : tuple of RunRecord
        The runs in the order of their numbers.
    history : tuple of Seen
        Every score in the order in which they came in: (run, step, score, all spent by then).
    curves : Curves
        The runs as logged curves, to learn from for the next search; None if nothing was seen.
    """

    best_score: float | None
    best_run: int | None
    best_step: int | None
    best_config: Any
    worth: float
    spent: float
    payoff: float
    reason: str
    price: float | None
    full_run_cost: float | None
    runs: tuple[RunRecord, ...]
    history: tuple[Seen, ...] = field(repr=False)
    curves: Curves | None = field(compare=False, repr=False)

    def __str__(self) -> str:
        if self.best_score is None:
            return f"No score; spent {self.spent:.6g}. {self.reason}"
        priced, worth = "No run has ended, so the price of a point is not known yet.", ""
        if self.price is not None:
            full, worth = self.full_run_cost, f", worth {self.worth:.6g}"
            priced = f"A point is worth {self.price:.6g}"
            priced += "." if full is None else f"; a full run costs {full:.3g} points."
        return (
            f"Best score {self.best_score:.6g} (run {self.best_run}, step {self.best_step})"
            f"{worth}; spent {self.spent:.6g} on {counted(len(self.runs), 'run')}. "
            f"{self.reason} {priced}"
        )

    _repr_html_ = as_html


def result_of(race: Race, configs: list[Any], over: dict[int, str]) -> Result:
    """The result of a race."""
    runs = tuple(
        RunRecord(config, tuple(run.steps), tuple(run.scores), tuple(run.costs),
               over.get(run.number, run.over))
        for config, run in zip(configs, race.runs, strict=True)
    )  # fmt: skip
    paid = [sum(run.costs) for run in race.runs if run.steps and race.has_ended(run)]
    # a model without a log has no price before a full run has shown what it costs
    first = isinstance(race.model, FirstRuns) and race.model.full_run_cost
    price = None if first and not paid else race.model.price
    best = race.best_run
    return Result(
        race.best_score, best, race.best_step, None if best is None else configs[best],
        math.nan if price is None else race.best, race.spent,
        math.nan if price is None else race.payoff, race.reason, price,
        sum(paid) / len(paid) / price if paid and price else None,
        runs, tuple(race.history), curves_of(race) if race.history else None,
    )  # fmt: skip


def keep(error: BaseException, result: Result, *, durable: bool) -> None:
    """Hang what was found before an error on it, and say how to continue."""
    if result.history:
        again = "Without a `journal`, the same call begins anew."
        again = "Run again to continue." if durable else again
        error.result = result  # type: ignore[attr-defined]
        error.add_note(f"Until then: {result} (`result` of this exception has it all.) {again}")


class Display:
    """Reports for people: one line that changes on a terminal, a line now and then elsewhere."""

    def __init__(self, out: TextIO | None = None, clock: Callable[[], float] = time.monotonic):
        self._out = out or sys.stderr
        self._clock, self._shown, self._width = clock, -math.inf, 0
        self._live = self._out.isatty()

    def __call__(self, report: Report) -> None:
        now, last = self._clock(), report.event == "stop"
        if not last and now - self._shown < (_OFTEN if self._live else _SELDOM):
            return
        self._shown = now
        text = printable(str(report))
        if self._live:
            import shutil

            text = text[: shutil.get_terminal_size().columns - 1]
            pad, self._width = " " * max(0, self._width - len(text)), len(text)
            self._out.write(f"\r{text}{pad}" + "\n" * last)
        else:
            self._out.write(f"{text}\n")
        self._out.flush()
