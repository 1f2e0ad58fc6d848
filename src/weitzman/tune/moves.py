"""Runs and moves, the terms of a race."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..learn.features import Config
from ..learn.first_runs import END, UNKNOWN
from ..learn.run_model import RunModel as RunModel
from ..learn.run_model import Shown

__all__ = ["Move", "Run", "RunModel"]


@dataclass(frozen=True, slots=True)
class Move:
    """One thing to do: advance a run until a step.

    Attributes
    ----------
    run : int or None
        The number of the run; None for a new run, whose number :meth:`Race.started` gives.
    until : int
        The step at which the next decision falls.
    index : float
        The index of the move, in units of cost.
    best : float
        The worth of the best score when the move was chosen.
    candidate : int or None
        For a new run the number of its candidate, if the race was given any.
    """

    run: int | None
    until: int
    index: float
    best: float
    candidate: int | None = None

    @property
    def reason(self) -> str:
        """One sentence that says why."""
        new = "a run" if self.candidate is None else f"candidate {self.candidate}"
        what = f"Start {new}, and train it" if self.run is None else f"Advance run {self.run}"
        goal = "its end" if self.until >= END else f"step {self.until}"
        if self.until == 0 and self.index >= UNKNOWN:
            goal = "its first score"
        if not math.isfinite(self.best):
            return f"{what} to {goal}: nothing has been seen yet."
        if self.index >= UNKNOWN:
            return f"{what} to {goal}: too little is known about runs to judge any."
        return (
            f"{what} to {goal}: its index {self.index:.6g} is above the best so far, "
            f"worth {self.best:.6g}, and no other is higher."
        )


@dataclass(slots=True)
class Run:
    """What is known about a run.

    Attributes
    ----------
    number : int
    steps, scores, costs : lists
        What was seen, in the order of the steps; a score of nan means that the run had diverged.
    until : int or None
        The step to which the run is being advanced; None while it waits or once it is over.
    over : str
        "" as long as the run can go on, otherwise "ended", "failed" or "left".
    settings : mapping or None
        What the run was started with, if that is known.
    filtered : list
        The scores as the means of their re-evaluations, where these are the prize.
    """

    number: int
    steps: list[int]
    scores: list[float]
    costs: list[float]
    until: int | None
    over: str = ""
    settings: Config | None = None
    filtered: list[float] = field(default_factory=list)

    @property
    def shown(self) -> Shown:
        """What a model is told about the run."""
        return Shown(self.steps, self.filtered, self.costs, self.settings)
