"""What a race deals in: a model of runs, runs, and moves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..forest.model import Forest


class Model(Protocol):
    """What a race needs to know of a run; :class:`~weitzman.learn.LineModel` has it all."""

    @property
    def price(self) -> float:
        """What one point of score is worth, in units of cost."""

    @property
    def minimize(self) -> bool:
        """Whether low scores are good."""

    @property
    def fresh_index(self) -> float:
        """The index of starting a new run."""

    def worth(self, score: float) -> float:
        """What a score is worth, in units of cost; higher is better, also when minimizing."""

    def next_rung(self, step: int | None) -> int | None:
        """Up to which step the next move goes; None if the line ends at ``step``."""

    def next_index(
        self, steps: Sequence[int], scores: Sequence[float], costs: Sequence[float] | None = None
    ) -> float:
        """The index of going on with a run that has shown these scores at these costs.

        -inf at its end, and for one that has diverged, if such runs do not recover.
        """

    def rest(self, runs: Sequence[tuple[Sequence[float], ...]], fresh: int) -> Forest | None:
        """What can still be opened; None if nothing is left.

        The rest of these runs, given as (steps, scores, costs), and so many new ones.
        """


@dataclass(frozen=True, slots=True)
class Move:
    """One thing to do: advance a run until a step.

    Attributes
    ----------
    run : int or None
        The number of the run; None for a new one, whose number :meth:`Race.started` gives.
    until : int
        The step at which the next decision falls.
    index : float
        Its index, in units of cost.
    best : float
        The worth of the best score when the move was chosen.
    """

    run: int | None
    until: int
    index: float
    best: float

    @property
    def reason(self) -> str:
        """One sentence why."""
        what = "Start a run, and train it" if self.run is None else f"Advance run {self.run}"
        if not math.isfinite(self.best):
            return f"{what} to step {self.until}: nothing has been seen yet."
        return (
            f"{what} to step {self.until}: its index {self.index:.6g} is above the best so far, "
            f"worth {self.best:.6g}, and no other is higher."
        )


@dataclass(slots=True)
class Run:
    """What is known of a run.

    Attributes
    ----------
    number : int
    steps, scores, costs : lists
        What was seen, in the order of the steps; a score of nan: the run had diverged.
    until : int or None
        Until which step it is being advanced; None while it waits or once it is over.
    over : str
        "" as long as it can go on, otherwise "ended", "failed" or "left".
    """

    number: int
    steps: list[int]
    scores: list[float]
    costs: list[float]
    until: int | None
    over: str = ""
