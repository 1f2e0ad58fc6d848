"""What all models learned from a log share: its runs, a price, and learning from more runs."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Self

import numpy as np

from .._common.arrays import FloatArray, IntArray
from ..errors import InvalidArgument
from .curves import Curves
from .known import NOTHING, Config, Encoder
from .ladder import Ladder, climb
from .live import at_live_costs, check_scores_alike, compared_costs, say_costs_differ
from .run_model import RunModel, Shown

if TYPE_CHECKING:
    from .laws import Recipe
    from .noise import ScoreNoise


class LearnedModel(RunModel):
    """The law of a run, learned from a log, with the index of any run.

    Attributes
    ----------
    price : float
        What one point of score is worth, in units of cost.
    minimize : bool
        Lower scores are better.
    settings : Recipe
        How the law was learned.
    rungs : (R,) array of int
        The steps at which to decide whether a run goes on.
    ladder : Ladder
        The runs that the law was learned from, as seen from the rungs.
    encoder : Encoder
        How the settings of runs become numbers.
    noise : ScoreNoise or None
        How scores become the means of their re-evaluations, where these are the prize.
    """

    settings: Recipe
    rungs: IntArray
    ladder: Ladder
    encoder: Encoder = NOTHING
    noise: ScoreNoise | None = None
    told: float = 1.0  # how many times the costs of the log a warning has named

    def __repr__(self) -> str:
        count = len(self.encoder.names)
        known = f", {count} setting{'s' * (count > 1)}" if count else ""
        return (
            f"{type(self).__name__}({len(self.ladder)} runs{known}, {len(self.rungs)} rungs up to "
            f"step {self.rungs[-1]}, {self.priced}{', minimize' if self.minimize else ''})"
        )

    @property
    def full_run_cost(self) -> float:
        """What a run that goes to its end costs on average, in points of score."""
        ladder = self.ladder
        over = ladder.gone if ladder.gone.any() else np.ones(len(ladder), bool)
        seen = np.arange(ladder.cost.shape[1]) < ladder.seen[:, None]
        paid = (ladder.cost * seen).sum(axis=1)[over]
        return float(np.average(paid, weights=ladder.weight[over])) / self.price

    @property
    def priced(self) -> str:
        """The price in words: of a point in units of cost, and of a full run in points."""
        return f"price {self.price:.6g}: a full run costs {self.full_run_cost:.3g} points"

    def next_index(
        self,
        steps: Sequence[int],
        scores: Sequence[float],
        costs: Sequence[float] | None = None,
        settings: Config | None = None,
    ) -> float:
        """The index of going on with a run that has shown these scores, in units of cost.

        Minus infinity at the end of a run, and if its last score is NaN: such a run has diverged.

        Parameters
        ----------
        steps, scores : sequences of equal length
            All that was seen of the run, by ascending step.
        costs : sequence, optional
            What each row cost. Where runs differ in cost, the costs so far tell what the next steps
            will cost; without costs, the usual cost is taken.
        settings : mapping, optional
            What the run was started with, for a model that was learned from runs with settings.

        Examples
        --------
        >>> from weitzman import learn
        >>> model = learn.fit(learn.sample().of_task("letter"), price=1000)
        >>> good, bad = model.next_index([0, 1], [0.3, 0.4]), model.next_index([0, 1], [0.1, 0.1])
        >>> good > bad
        True
        """
        return float(self.next_indices([Shown(steps, scores, costs, settings)])[0])

    def indices_of(self, runs: Ladder) -> FloatArray:
        """The index of each segment of these runs, given what they had shown before."""
        raise NotImplementedError

    def updated(self, curves: Curves, last: LearnedModel | None = None) -> Self:
        """The model learned from these curves too, with the same rungs and settings.

        This is for the runs of a search under way: a run is cut off where it stands unless it has
        ended. If the runs clearly cost more or less than the log says, the costs of the log are
        scaled, with a warning. If their first scores are far from all scores of the log, a warning
        says so. ``last`` is this model, or what came of it when it was updated from the first of
        these curves: trees that it has grown serve again as long as they are good enough, which
        takes a fraction of the time. Without ``last``, these runs count as further runs of the log.
        """
        if curves.minimize != self.minimize:
            raise InvalidArgument("the model and the curves must both maximize or both minimize.")
        new = climb(curves, self.ladder.rungs, self.encoder)
        check_scores_alike(self.ladder, new, self.minimize)
        found = compared_costs(self.ladder, new, self._relative_cost(new))
        model = self.relearned(at_live_costs(self.ladder, found).joined(new), last)
        model.noise = self.noise
        model.told = say_costs_differ(found, 1.0 if last is None else last.told)
        return model

    def relearned(self, ladder: Ladder, last: LearnedModel | None = None) -> Self:
        """A model of the same kind, learned from other runs.

        ``last`` was learned from the first of these runs, and may serve again.
        """
        raise NotImplementedError

    def _relative_cost(self, runs: Ladder) -> FloatArray | float:
        """How many times the usual cost each of these runs should cost, by its settings."""
        return 1.0


def check_price(price: object) -> float:
    """A price as a number; an InvalidArgument unless it is positive and finite."""
    if not isinstance(price, Real) or not 0 < float(price) < np.inf:
        raise InvalidArgument(f"the price must be positive and finite, but it is {price!r}.")
    return float(price)


def ceiling_of(limit: float | None, minimize: bool) -> float:
    """The limit of scores, turned so that higher is better."""
    if limit is None:
        return np.inf
    return -limit if minimize else limit


def check_limit(ladder: Ladder, limit: float | None, minimize: bool) -> None:
    """Raise InvalidArgument if a run is better than the limit."""
    if limit is None:
        return
    if not np.isfinite(limit):
        raise InvalidArgument(f"the limit must be finite, or None, but it is {limit!r}.")
    best = float(ladder.best.max())
    if best > ceiling_of(limit, minimize):
        raise InvalidArgument(
            f"no score may be better than the limit of {limit:g}, but a run showed "
            f"{-best if minimize else best:g}. Give the best possible score, or none."
        )
