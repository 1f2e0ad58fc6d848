"""What solving a lazy forest gives: bounds, a decision, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .._common.notebook import as_html
from .._common.numbers import about, ends
from ..engine.indices import Policy
from ..engine.solution import Solution
from .refining import Ending


@dataclass(frozen=True, slots=True, eq=False)
class LazySolution:
    """What is known about a lazy forest once some of its nodes have been expanded.

    Attributes
    ----------
    lower, upper : float
        The optimal value lies between them.
    first_box : str or None
        The name of the box to open first; None: open nothing.
    index : (float, float)
        Bounds on its index; of the outside option itself if nothing is to be opened.
    regret : float
        Opening ``first_box`` and going on optimally falls short of the optimum by at most this.
    proven : bool
        Whether ``regret`` is 0: no expansion can change the first decision.
    ending : Ending
        Why no more nodes were expanded.
    expanded : int
        Nodes whose children are in play.
    solution : Solution
        Of the finite forest in play. Its policy earns at least ``lower`` (when minimizing, loses
        at most ``upper``) although it ignores all other nodes.
    history : list
        (expanded, lower, upper) after each round.
    """

    hint: ClassVar[str] = (
        "Of a LazySolution, take the finite part that was looked at: `found.solution`. Its policy "
        "earns at least the lower bound."
    )

    lower: float
    upper: float
    first_box: str | None
    index: tuple[float, float]
    regret: float
    proven: bool
    ending: Ending
    expanded: int
    solution: Solution
    history: list[tuple[int, float, float]]

    @property
    def gap(self) -> float:
        """``upper - lower``."""
        return self.upper - self.lower

    def policy(self) -> Policy:
        """The optimal policy of the finite forest in play."""
        return self.solution.policy()

    def __str__(self) -> str:
        what = "open nothing" if self.first_box is None else f"open {self.first_box} first"
        sure = "proven" if self.proven else f"may lose up to {about(self.regret)}"
        low, high = ends(self.lower, self.upper)
        return (
            f"value from {low} to {high}; {what} ({sure}); "
            f"{self.expanded} nodes expanded. {self.ending.value}"
        )

    def __repr__(self) -> str:
        return (
            f"LazySolution(lower={self.lower:.9g}, upper={self.upper:.9g}, "
            f"first_box={self.first_box!r})"
        )

    _repr_html_ = as_html
