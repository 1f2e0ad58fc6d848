"""Learn while searching: models and prices that follow what this search has shown and spent."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import InvalidArgument
from ..learn.curves import Curves
from ..learn.first_runs import NEW, FirstRuns
from ..learn.resemblance import ResemblanceModel
from .prices import MOST, STEP, rest_of, slope_of
from .race import ENDLESS, Race

GROWTH = 1.1  # fit again when this many times as many runs have shown something;
_SLOWLY = 1.25  # without a log, when this many times as much was seen,
_FEW = 20  # and until that much was seen after every report,
_PATIENCE = 16  # later after more reports, by one for each so many runs
_SHARE = 0.1  # of a budget: after spending this much, the price is found again
_GOING = 8  # runs under way that count for a price: those with the highest indices
_OPEN = 0.1  # of the scale of scores: what a search without a log may hope to gain in all


def _lacks(race: Race, what: str, needs: str) -> InvalidArgument:
    kind = type(race.model).__name__
    return InvalidArgument(f"{what}, the model must have `{needs}`, but a {kind} does not.")


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
            raise _lacks(race, "to fit it again", "updated")
        self._race = race
        self._first: Any = race.model
        self._last: Any = race.model
        self._fitted = 0
        self._knows = not isinstance(race.model, FirstRuns)
        self._best = race.best

    def __call__(self) -> None:
        """Fit again if enough runs have come in since the last time."""
        seen = self._seen()
        early = self._idle(seen) or self._all_started() or self._would_stop_early()
        if seen >= self._due(seen) or early:
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
        race = self._race
        if isinstance(self._first, ResemblanceModel):
            self._last = self._first.updated(curves_of(race), self._last)
            return self._last
        if self._knows:
            return self._first.updated(curves_of(race))
        if isinstance(race.model, FirstRuns) and not race.model.full_run_cost:
            # a budget has set the price
            self._first = replace(self._first, price=race.model.price, full_run_cost=None)
        return _learned_without_log(race, self._first)

    def _idle(self, seen: int) -> bool:
        """Whether none of the first runs is to continue, by what was known of fewer reports."""
        if seen <= self._fitted or not isinstance(self._race.model, FirstRuns):
            return False
        move = self._race.peek()
        return move is None or move.index <= NEW

    def _all_started(self) -> bool:
        """Whether as many first runs as are wanted were started since the last fit."""
        model = self._race.model
        return isinstance(model, FirstRuns) and model.started < model.wanted <= self._race.begun

    def _would_stop_early(self) -> bool:
        """Whether the race is about to stop at a score better than any that its model knows."""
        race = self._race
        return not self._knows and race.spent < race.budget and race.best > self._best and race.done

    def _seen(self) -> int:
        """How much was seen: runs; without a log every rung that was reached, and every end."""
        runs = [run for run in self._race.runs if run.steps]
        if self._knows:
            return len(runs)
        last = np.array([run.steps[-1] for run in runs], np.int64)
        reached = np.searchsorted(self._race.model.rungs, last, "right")
        return len(runs) + int(reached.sum()) + sum(bool(run.over) for run in runs)


class Allowance:
    """Changes the price of a race so that it spends its budget; call it before each decision.

    Parameters
    ----------
    race : Race
        A race with a budget. Its model must have ``at_price(price)``, as models from
        :func:`weitzman.learn.fit` do, or be one from :func:`weitzman.learn.from_nothing`.
    """

    def __init__(self, race: Race) -> None:
        if race.budget == math.inf:
            raise InvalidArgument("to find the price by itself, the race needs a `budget`.")
        if not hasattr(race.model, "at_price") and not isinstance(race.model, FirstRuns):
            raise _lacks(race, "to find the price by itself", "at_price")
        self._race = race
        self._model: Any = None  # with the last price that was found
        self._first = 0.0  # the first price that was found
        self._spent = 0.0

    def __call__(self) -> None:
        """Find the price again if a share of the budget was spent, or the model has changed.

        Also if nothing would be worth its cost although something was spent since: a search that
        has much left stops early where its model sees nothing better at any price.
        """
        race = self._race
        left, more = race.budget - race.spent, race.spent - self._spent
        due = more >= _SHARE * race.budget or (more > 0 and race.peek() is None)
        if left <= 0 or (race.model is self._model and not due):
            return
        self._spent = race.spent
        if isinstance(race.model, FirstRuns):
            self._reprice_without_log(race.model)
        else:
            price = self._price(left)
            self._first = self._first or price
            race.change_model(race.model.at_price(price))  # type: ignore[attr-defined]
        self._model = race.model

    def _price(self, left: float) -> float:
        """The price at which the rest of the budget is spent, not too far from the first one."""
        race, model, going = self._race, self._race.model, self._race.going
        by = np.argsort(-model.next_indices(going), kind="stable")[:_GOING].tolist()
        fresh = int(min(race.left, ENDLESS))
        forest = rest_of(model, [going[i] for i in by], fresh, race.best_score)
        if forest is None:  # nothing new to weigh: the last price stays, also in a new model
            return model.price if self._model is None else self._model.price
        # bounds are absolute: each price is found relative to the one before, so relative bounds
        # would let the price grow without end when the model has no use for the budget
        first = self._first or model.price
        lowest, highest = model.price / (first * MOST), model.price * MOST / first
        return model.price / slope_of(forest, left, lowest, highest)

    def _reprice_without_log(self, first: FirstRuns) -> None:
        """A price at which doubling the spend by the end of the budget would just about pay.

        A share of the scale of scores is still open; it is weighed against half of the budget. If
        the search would stop at this price, the price was too low: the budget is not spent yet.
        """
        race = self._race
        scores = [max(x.scores) for x in race.going if not np.isnan(x.scores).any()] or [0.0]
        scale = max(scores) - min(scores) or abs(max(scores)) or 1.0
        price = 0.5 * race.budget / (_OPEN * scale)
        highest = MOST * price
        if self._model is not None:  # it has only risen so far, or the model has changed
            price = min(max(price, first.price), highest)
        while True:
            now = replace(first, price=price, full_run_cost=None)
            race.change_model(_learned_without_log(race, now) if race.history else now)
            if race.peek() is not None or price >= highest or race.in_flight:
                return
            price = min(STEP * price, highest)


def _learned_without_log(race: Race, first: FirstRuns) -> Any:
    """What a model without a log becomes by what a race has seen."""
    shown = [run for run in race.runs if run.steps]
    if not shown:
        return replace(first, started=race.begun)
    curves = curves_of(race)
    over = [i for i, run in enumerate(shown) if run.over and not curves.ended[i]]
    busy = set(race.in_flight)
    flying = [i for i, run in enumerate(shown) if run.number in busy]
    unseen = race.begun - sum(bool(run.steps or run.over) for run in race.runs)
    return first.updated(curves, over, race.left, flying, unseen)


def curves_of(race: Race) -> Curves:
    """The runs of a race that have shown something, under their numbers, as curves.

    Only runs that have come to their end count as ended; the others were cut off.
    """
    shown = [run for run in race.runs if run.steps]
    known = any(run.settings is not None for run in shown)
    ended = [race.has_ended(run) for run in shown]
    return Curves(
        runs=tuple(str(run.number) for run in shown),
        start=np.cumsum([0, *(len(run.steps) for run in shown)]),
        step=np.array([x for run in shown for x in run.steps], np.int64),
        score=np.array([x for run in shown for x in run.scores], np.float64),
        cost=np.array([x for run in shown for x in run.costs], np.float64),
        task=("",) * len(shown),
        ended=np.array(ended, bool),
        minimize=race.model.minimize,
        settings=tuple(run.settings or {} for run in shown) if known else (),
    )
