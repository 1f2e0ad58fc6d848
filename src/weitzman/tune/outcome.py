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
from .race import Race
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
    best_score, best_run : float and int, or None
        The best score so far.
    worth : float
        What the best score is worth, in units of cost.
    spent : float
    expected_gain : float
        What going on is expected to add to the payoff, as of a recent decision. The gain is
        computed again only as often as that takes little time.
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
    price : float
        What one point of score is worth, in units of cost.
    full_run_cost : float or None
        How many points of score a full run has cost on average; None if no run was trained
        to its end.
    runs : tuple of Record
        The runs in the order of their numbers.
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
    price: float
    full_run_cost: float | None
    runs: tuple[RunRecord, ...]
    curves: Curves | None = field(compare=False, repr=False)

    def __str__(self) -> str:
        if self.best_score is None:
            return f"No score; spent {self.spent:.6g}. {self.reason}"
        full = self.full_run_cost
        priced = f"A point is worth {self.price:.6g}"
        priced += "." if full is None else f"; a full run costs {full:.3g} points."
        return (
            f"Best score {self.best_score:.6g} (run {self.best_run}, step {self.best_step}), worth "
            f"{self.worth:.6g}; spent {self.spent:.6g} on {counted(len(self.runs), 'run')}. "
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
    best = race.best_run
    return Result(
        race.best_score, best, race.best_step, None if best is None else configs[best],
        race.best, race.spent, race.payoff, race.reason, race.model.price, _full_run_cost(race),
        runs, curves_of(race) if any(run.steps for run in runs) else None,
    )  # fmt: skip


def _full_run_cost(race: Race) -> float | None:
    """What runs that came to their end have cost on average, in points."""
    paid = [
        sum(run.costs)
        for run in race.runs
        if run.steps and (run.over == "ended" or race.model.next_rung(run.steps[-1]) is None)
    ]
    return sum(paid) / len(paid) / race.model.price if paid else None


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
