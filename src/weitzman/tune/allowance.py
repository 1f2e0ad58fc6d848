"""A budget instead of a price: the price of a score at which the budget is spent on average.

At a price of p units of cost for a point of score, the race maximizes p times the score less the
cost. The shadow price of a budget (section 15 of the theory page) tells what one more unit of cost
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
from ..forest.model import Forest
from ..forest.pools import Pool
from ..learn.run_model import Shown
from .race import ENDLESS, Race, RunModel

SHARE = 0.1  # share of the budget; after spending this much, the price is found again
_GOING = 8  # runs under way that count for a price: those with the highest indices
_STEP, _HALVINGS = 4.0, 5  # accuracy of a price: within 5 %
_MOST = 4.0**10  # no price is changed by more at once: then the model has no use for the budget
_CLOSE = 1e-6  # of the range of the rewards: how well problems are solved on the way


def price_within(
    model: RunModel,
    budget: float,
    *,
    runs: Sequence[Shown] = (),
    fresh: int = ENDLESS,
    best: float | None = None,
) -> float:
    """The price of a score at which going on spends a budget on average.

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
    rest = getattr(model, "rest", None)
    begun = [run[:3] for run in runs if run.steps]
    forest = model.lines(fresh) if rest is None else rest(begun, fresh)
    if forest is None:
        return model.price
    if best is not None:
        forest = forest.changed(outside=model.worth(best))
    return model.price / _slope(forest, budget)


def _slope(forest: Forest, budget: float) -> float:
    """The approximate price of money at which the optimal policy spends the budget."""
    low = high = 1.0  # too much is spent at the lower one, and not at the higher
    while high < _MOST and _spend(forest, high) > budget:
        low, high = high, _STEP * high
    if high >= _MOST and (least := _spend(forest, high)) > budget:
        raise InvalidArgument(
            f"the budget must be at least {least:.6g}, the least that any policy spends, but it is "
            f"{budget:g}."
        )
    while low == high and low > 1 / _MOST:
        low = low / _STEP
        high = high if _spend(forest, low) > budget else low
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
        :func:`weitzman.learn.fit` do.
    """

    def __init__(self, race: Race) -> None:
        if race.budget == float("inf"):
            raise InvalidArgument("to find the price by itself, the race needs a `budget`.")
        if not hasattr(race.model, "at_price"):
            raise InvalidArgument(
                f"to find the price by itself, the model must have `at_price`, but a "
                f"{type(race.model).__name__} does not."
            )
        self._race = race
        self._model: Any = None  # the spend at the last price
        self._spent = 0.0

    def __call__(self) -> None:
        """Find the price again if the model changed, enough was spent, or nothing is worth a move.

        A search still ends early where its model sees nothing better at any price.
        """
        race = self._race
        left = race.budget - race.spent
        more = race.spent - self._spent
        due = more >= SHARE * race.budget or (more > 0 and race.peek() is None)
        if left <= 0 or (race.model is self._model and not due):
            return
        model: Any = race.model
        going = race.going
        by = np.argsort(-model.next_indices(going), kind="stable")[:_GOING].tolist()
        runs = [going[i] for i in by]
        best, fresh = race.best_score, race.startable
        price = price_within(model, left, runs=runs, fresh=fresh, best=best)
        self._spent, self._model = race.spent, model.at_price(price)
        race.change_model(self._model)
