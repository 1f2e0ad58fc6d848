"""Learn while searching: the model is fitted again to what this search has shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import InvalidArgument
from ..learn.curves import Curves
from ..learn.first_runs import NEW, FirstRuns
from ..learn.resemblance import ResemblanceModel
from .race import Race

GROWTH = 1.1  # fit again when this many times as many runs have shown something;
_SLOWLY = 1.25  # without a log, when this many times as much was seen,
_FEW = 20  # and until that much was seen after every report,
_PATIENCE = 16  # later after more reports, by one for each so many runs


def refitting(race: Race, wanted: bool | None) -> Refit | None:
    """Whether to learn during the search; by default if the model can."""
    able = hasattr(race.model, "updated")
    return Refit(race) if wanted or (wanted is None and able) else None


class Refit:
    """Changes the model of a race now and then; call it before each decision.

    Parameters
    ----------
    race : Race
        Its model must have ``updated(curves)``, as models from :func:`weitzman.learn.fit` do.
    """

    def __init__(self, race: Race) -> None:
        if not hasattr(race.model, "updated"):
            raise InvalidArgument(
                f"to fit it again, the model must have `updated`, but a "
                f"{type(race.model).__name__} does not."
            )
        self._race = race
        self._first: Any = race.model
        self._last: Any = race.model
        self._fitted = 0
        self._knows = not isinstance(race.model, FirstRuns)
        self._best = race.best

    def __call__(self) -> None:
        """Fit again if enough runs have come in since the last time."""
        seen = self._seen()
        if seen >= self._due(seen) or self._idle(seen) or self._would_stop_early():
            self._fitted, self._best = seen, self._race.best
            self._race.change_model(self._updated())

    def _due(self, seen: int) -> float:
        """How much must have been seen for the next fit."""
        next_one = self._fitted + 1
        if self._knows:
            return max(GROWTH * self._fitted, next_one)
        if seen < _FEW or isinstance(self._race.model, FirstRuns):
            return next_one + len(self._race.runs) // _PATIENCE
        return max(_SLOWLY * self._fitted, next_one)

    def _updated(self) -> Any:
        race, curves = self._race, curves_of(self._race)
        if isinstance(self._first, ResemblanceModel):
            self._last = self._first.updated(curves, self._last)
            return self._last
        if self._knows:
            return self._first.updated(curves)
        if isinstance(race.model, FirstRuns) and not race.model.full_run_cost:
            # a budget has set the price
            self._first = replace(self._first, price=race.model.price, full_run_cost=None)
        return learned_without_log(race, self._first)

    def _idle(self, seen: int) -> bool:
        """Whether none of the first runs is to go on, by what was known of fewer reports."""
        if seen <= self._fitted or not isinstance(self._race.model, FirstRuns):
            return False
        move = self._race.peek()
        return move is None or move.index <= NEW

    def _would_stop_early(self) -> bool:
        """Whether the race is about to stop at a score better than any that its model knows."""
        race = self._race
        if self._knows or race.spent >= race.budget:
            return False
        return race.best > self._best and race.done

    def _seen(self) -> int:
        """How much was seen: runs; without a log every rung that was reached, and every end."""
        runs = [run for run in self._race.runs if run.steps]
        if self._knows:
            return len(runs)
        last = np.array([run.steps[-1] for run in runs], np.int64)
        reached = np.searchsorted(self._race.model.rungs, last, "right")
        return len(runs) + int(reached.sum()) + sum(bool(run.over) for run in runs)


def learned_without_log(race: Race, first: FirstRuns) -> Any:
    """What a model without a log becomes by what a race has seen."""
    curves, shown = curves_of(race), [run for run in race.runs if run.steps]
    over = [i for i, run in enumerate(shown) if run.over and not curves.ended[i]]
    return first.updated(curves, stuck=over, left=race.left)


def curves_of(race: Race) -> Curves:
    """The runs of a race that have shown something, under their numbers, as curves.

    Only runs that have come to their end count as ended; the others were cut off.
    """
    shown = [run for run in race.runs if run.steps]
    known = any(run.settings is not None for run in shown)
    ended = [run.over == "ended" or race.model.next_rung(run.steps[-1]) is None for run in shown]
    return Curves(
        runs=tuple(str(run.number) for run in shown),
        start=np.cumsum([0, *(len(run.steps) for run in shown)]),
        step=np.array([x for run in shown for x in run.steps], np.int64),
        score=np.array([x for run in shown for x in run.scores], np.float64),
        cost=np.array([x for run in shown for x in run.costs], np.float64),
        task=("",) * len(shown),
        kind=("",) * len(shown),
        ended=np.array(ended, bool),
        minimize=race.model.minimize,
        settings=tuple(run.settings or {} for run in shown) if known else (),
    )
