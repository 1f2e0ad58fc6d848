"""Prices and budgets: the price at which a budget is spent on average, and prices from answers.

At a price of p units of cost for a point of score, the race maximizes p times the score less the
cost. The shadow price of a budget (section 15 of the theory page) says what one more unit of cost
would add to the score: its inverse is the price at which exactly the budget is spent on average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..engine.evaluation import evaluate
from ..engine.indices import Policy
from ..engine.solver import solve
from ..errors import InvalidArgument
from ..forest.columns import Pool
from ..forest.model import Forest
from ..learn.curves import Curves
from ..learn.first_runs import FirstRuns
from ..learn.run_model import Shown
from .race import ENDLESS, Race, RunModel
from .refit import learned_without_log

SHARE = 0.1  # share of the budget; after spending this much, the price is found again
_GOING = 8  # runs under way that count for a price: those with the highest indices
_STEP, _HALVINGS = 4.0, 5  # accuracy of a price: within 5 %
_MOST = 4.0**6  # no price is further than this from the first one
_ALL = 0.98  # of what could be spent: at a higher price, the model has no use for the rest
_CLOSE = 1e-6  # of the range of the rewards: how well problems are solved on the way
_OPEN = 0.1  # of the scale of scores: what a search without a log may hope to gain in all


def price_from_trade(cost: float, points: float) -> float:
    """The price of a point of score for someone who would just pay a cost for some points.

    Parameters
    ----------
    cost : float
        The most that you would pay, in units of cost,
    points : float
        for a score that is better by so many points.

    Examples
    --------
    Would you pay ten more GPU-hours for 0.2 points of accuracy, but not twenty?

    >>> price_from_trade(10, 0.2)
    50.0
    """
    for name, x in (("cost", cost), ("points", points)):
        if not 0 < x < float("inf"):
            raise InvalidArgument(f"`{name}` must be above 0 and finite, but it is {x!r}.")
    return float(cost) / float(points)


def price_from_past(curves: Curves, runs: int) -> float:
    """The price of a point at which stopping after this many full runs was right.

    Whoever stopped after n full runs judged that one more would not pay. Its expected gain, with
    runs like those of the log, times the price is then the mean cost of a run.

    Parameters
    ----------
    curves : Curves
        Runs like those of the search in which you stopped.
    runs : int
        After how many full runs you stopped.

    Examples
    --------
    >>> from weitzman import learn
    >>> letter = learn.sample().of_task("letter")
    >>> few, many = (price_from_past(letter, n) for n in (5, 50))
    >>> few < many
    True
    """
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise InvalidArgument(f"`runs` must be a whole number from 1 on, but it is {runs!r}.")
    score = -curves.score if curves.minimize else curves.score
    best = np.sort(np.fmax.reduceat(score, curves.start[:-1]))
    best = best[~np.isnan(best)]
    if len(best) < 2 or best[0] == best[-1]:
        raise InvalidArgument("the log must have runs with different scores.")
    at = np.arange(1, len(best)) / len(best)  # the distribution function between neighbors
    # E max of n + 1 runs less E max of n: the integral of F^n (1 - F)
    gain = float(np.sum(np.diff(best) * at**runs * (1 - at)))
    return float(curves.total_cost.mean()) / gain


def price_within(
    model: RunModel,
    budget: float,
    *,
    runs: Sequence[Shown] = (),
    fresh: int = ENDLESS,
    best: float | None = None,
) -> float:
    """The price of a score at which going on spends a budget on average.

    If the model would not spend the budget at any price, this is the lowest price at which it
    spends nearly all that it ever would.

    Parameters
    ----------
    model : RunModel
    budget : float
        What may still be spent.
    runs : sequence of Shown
        Runs that can go on. A model without ``rest`` counts new runs only.
    fresh : int
        New runs that can be started.
    best : float, optional
        The best score so far; without a score, at least one run is started.

    Examples
    --------
    >>> from weitzman import learn, tune
    >>> log = {"run": [0, 0, 1, 1, 2, 2], "step": [1, 2] * 3, "score": [5, 7, 4, 4, 6, 9]}
    >>> model = learn.fit(learn.Curves.read(log, cost=None), price=1)
    >>> tune.price_within(model, 50) > tune.price_within(model, 5)
    True
    """
    forest = _rest(model, runs, fresh, best)
    if forest is None:
        return model.price
    slope = _slope(forest, budget, 1 / _MOST, _MOST)
    if slope >= _MOST and (least := _spend(forest, slope)) > budget:
        raise InvalidArgument(
            f"the budget must be at least {least:.6g}, the least that any policy spends, but it is "
            f"{budget:g}."
        )
    return model.price / slope


def _rest(model: RunModel, runs: Sequence[Shown], fresh: int, best: float | None) -> Forest | None:
    """What is left to open, as a forest."""
    rest = getattr(model, "rest", None)
    begun = [run[:3] for run in runs if run.steps]
    if rest is None:  # all that this model can say is about new runs
        forest: Forest | None = model.lines(fresh) if fresh > 0 else None
    else:
        forest = rest(begun, fresh)
    if forest is None or best is None:
        return forest
    return forest.changed(outside=model.worth(best))


def _slope(forest: Forest, budget: float, lowest: float, highest: float) -> float:
    """The approximate price of money, within these ends, at which the budget is spent."""
    low = high = min(max(1.0, lowest), highest)  # too much is spent at the lower, not at the higher
    while high < highest and _spend(forest, high) > budget:
        low, high = high, min(_STEP * high, highest)
    if low == high:
        tried = [(high, _spend(forest, high))]
        while tried[-1][1] <= budget and tried[-1][0] > lowest:
            x = max(tried[-1][0] / _STEP, lowest)
            tried.append((x, _spend(forest, x)))
        budget = min(budget, _ALL * tried[-1][1])  # perhaps the model has no use for it all
        fits = [x for x, spend in tried if spend <= budget]
        low, high = (tried[-1][0], fits[-1]) if fits else (high, high)
    for _ in range(_HALVINGS if low < high else 0):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if _spend(forest, middle) > budget else (low, middle)
    return high


def _spend(forest: Forest, price: float) -> float:
    """What the optimal policy spends on average if money has this price."""
    f = forest
    costly = replace(f, costs=Pool(price * f.costs.data, f.costs.start, f.costs.shape))
    indices = solve(costly, tolerance=_CLOSE).index_columns()
    return evaluate(Policy.of(f, *indices)).spend


class Allowance:
    """Changes the price of a race so that it spends its budget; call it before each decision.

    Parameters
    ----------
    race : Race
        A race with a budget. Its model must have ``at_price(price)``, as models from
        :func:`weitzman.learn.fit` do, or be one from :func:`weitzman.learn.from_nothing`.
    """

    def __init__(self, race: Race) -> None:
        if race.budget == float("inf"):
            raise InvalidArgument("to find the price by itself, the race needs a `budget`.")
        if not hasattr(race.model, "at_price") and not isinstance(race.model, FirstRuns):
            raise InvalidArgument(
                f"to find the price by itself, the model must have `at_price`, but a "
                f"{type(race.model).__name__} does not."
            )
        self._race = race
        self._model: Any = None  # with the last price that was found
        self._first = 0.0  # the first price that was found
        self._spent = 0.0

    def __call__(self) -> None:
        """Find the price again if the model changed, enough was spent, or nothing is worth a move.

        A search still ends early where its model sees nothing better at any price.
        """
        race = self._race
        left, more = race.budget - race.spent, race.spent - self._spent
        due = more >= SHARE * race.budget or (more > 0 and race.peek() is None)
        if left <= 0 or (race.model is self._model and not due):
            return
        self._spent = race.spent
        if isinstance(race.model, FirstRuns):
            self._reprice_without_log()
        else:
            price = self._price(left)
            self._first = self._first or price
            race.change_model(race.model.at_price(price))  # type: ignore[attr-defined]
        self._model = race.model

    def _price(self, left: float) -> float:
        """The price at which the rest of the budget is spent, not too far from the first one."""
        race, model = self._race, self._race.model
        going = race.going
        by = np.argsort(-model.next_indices(going), kind="stable")[:_GOING].tolist()
        best = race.best_score
        forest = _rest(model, [going[i] for i in by], race.startable, best)
        if forest is None:  # nothing new to weigh: the last price stays, also in a new model
            return model.price if self._model is None else self._model.price
        # bounds are absolute: each price is found relative to the one before, so relative bounds
        # would let the price grow without end when the model has no use for the budget
        first = self._first or model.price
        lowest, highest = model.price / (first * _MOST), model.price * _MOST / first
        return model.price / _slope(forest, left, lowest, highest)

    def _reprice_without_log(self) -> None:
        """A price at which doubling the spend by the end of the budget would just about pay.

        A share of the scale of scores is still open; it is weighed against half of the budget. If
        the search would stop at this price, the price was too low: the budget is not spent yet.
        """
        race, first = self._race, self._race.model
        assert isinstance(first, FirstRuns)
        scores = [max(x.scores) for x in race.going if not np.isnan(x.scores).any()] or [0.0]
        scale = max(scores) - min(scores) or abs(max(scores)) or 1.0
        price = 0.5 * race.budget / (_OPEN * scale)
        highest = _MOST * price
        if self._model is not None:  # it has only risen so far, or the model has changed
            price = min(max(price, first.price), highest)
        while True:
            now = replace(first, price=price, full_run_cost=None)
            race.change_model(learned_without_log(race, now) if race.history else now)
            if race.peek() is not None or price >= highest or race.in_flight:
                return
            price = min(_STEP * price, highest)
