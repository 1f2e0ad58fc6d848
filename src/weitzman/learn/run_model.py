"""What every model of a run offers to races, back-tests, pictures and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from .._common.arrays import FloatArray, IntArray
from ..errors import InvalidArgument
from ..forest.model import Forest
from .features import Config


class Shown(NamedTuple):
    """What a run has shown so far, and what it was started with.

    Attributes
    ----------
    steps, scores : sequences of equal length
        All that was seen, by ascending step; NaN where the run had diverged.
    costs : sequence, optional
        What each row cost. Without costs, the usual cost is taken.
    settings : mapping, optional
    """

    steps: Sequence[int]
    scores: Sequence[float]
    costs: Sequence[float] | None = None
    settings: Config | None = None


@runtime_checkable
class RunModel(Protocol):
    """The law of a run, with a price on its scores.

    :func:`weitzman.learn.fit` makes one. To write another model, derive from this class: methods
    that are not overridden suit runs that are alike until they start.

    Attributes
    ----------
    price : float
        What one point of score is worth, in units of cost.
    minimize : bool
        Lower scores are better.
    rungs : (R,) array of int
        The steps at which to decide whether a run continues; ``lines`` has one box for each.
    """

    price: float
    minimize: bool
    rungs: IntArray

    @property
    def fresh_index(self) -> float:
        """The index of starting a run about which nothing is known."""
        ...

    def lines(self, n: int = 1) -> Forest:
        """A forest of n new runs."""
        ...

    def worth(self, score: float) -> float:
        """What a score is worth, in units of cost; higher is better, also when minimizing."""
        return -self.price * score if self.minimize else self.price * score

    def next_rung(self, step: int | None) -> int | None:
        """The step of the next decision; None where the line ends."""
        place = 0 if step is None else int(np.searchsorted(self.rungs, step, "right"))
        return int(self.rungs[place]) if place < len(self.rungs) else None

    def next_index(
        self,
        steps: Sequence[int],
        scores: Sequence[float],
        costs: Sequence[float] | None = None,
        settings: Config | None = None,
    ) -> float:
        """The index of continuing a run that has shown this; see :class:`Shown`.

        -inf at the end of a run, and for a run that has diverged, if such runs do not recover.
        """
        ...

    def gain(self, best: float, runs: Sequence[Shown], fresh: int) -> float:
        """What continuing adds to a worth in hand, after costs, with these runs and new ones."""
        ...

    def next_indices(self, runs: Sequence[Shown]) -> FloatArray:
        """The index of continuing each of several runs."""
        return np.array([self.next_index(*run) for run in runs])

    def start_indices(self, settings: Sequence[Config]) -> FloatArray:
        """The index of starting a run with each of these settings."""
        return np.full(len(settings), self.fresh_index)


def check_model(model: object) -> None:
    """Raise InvalidArgument if an object is not a model of a run."""
    if isinstance(model, RunModel):
        return
    what = type(model).__name__
    lacking = [name for name in _MEMBERS if not hasattr(model, name)]
    raise InvalidArgument(
        f"the model of a run must be one that `learn.fit(curves, price=...)` returns, or have all "
        f"that `learn.RunModel` has, but it is a {what} without {', '.join(lacking[:3])}"
        f"{' and more' if len(lacking) > 3 else ''}."
    )


_MEMBERS: tuple[str, ...] = tuple(
    sorted(name for name in (*vars(RunModel), *RunModel.__annotations__) if name[0] != "_")
)
