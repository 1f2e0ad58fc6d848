"""Prices from answers and from budgets, and the worth at which further full runs stop paying.

At a price of p units of cost for a point of score, the race maximizes p times the score less the
cost. The shadow price of a budget (section 15 of the theory page) says what one more unit of cost
would add to the score: its inverse is the price at which exactly the budget is spent on average.

If runs are trained to their end, the only question is whether to start another. A full run is then
one box: its reward is the best that the run shows anywhere, its cost the total cost on average. Its
index is lower than that of a new run that may be given up early.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import check_counts
from ..engine.evaluation import evaluate
from ..engine.indices import Policy
from ..engine.solution import mean_cost
from ..engine.solver import solve
from ..errors import InvalidArgument
from ..forest.builder import line
from ..forest.columns import Pool
from ..forest.model import Forest
from ..learn.curves import Curves
from ..learn.run_model import Shown
from .race import ENDLESS, RunModel

STEP, _HALVINGS = 4.0, 5  # accuracy of a price: within 5 %
MOST = 4.0**6  # no price is further than this from the first one
_ALL = 0.98  # of what could be spent: at a higher price, the model has no use for the rest
_CLOSE = 1e-6  # of the range of the rewards: how well problems are solved on the way


def price_from_trade(cost: float, points: float) -> float:
    """The price of a point of score for someone who would pay at most a cost for some points.

    Examples
    --------
    Would you pay ten more GPU-hours for 0.2 points of accuracy, but not twenty?

    >>> price_from_trade(10, 0.2)
    50.0
    """
    for name, x in (("cost", cost), ("points", points)):
        if not 0 < x < math.inf:
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
    check_counts(runs=runs)
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
    """The price of a score at which continuing spends a budget on average.

    If the model would not spend the budget at any price, this is the lowest price at which it
    spends nearly all that it ever would.

    Parameters
    ----------
    model : RunModel
    budget : float
        What may still be spent.
    runs : sequence of Shown
        Runs that can continue. A model without ``rest`` counts new runs only.
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
    forest = rest_of(model, runs, fresh, best)
    if forest is None:
        return model.price
    slope = slope_of(forest, budget, 1 / MOST, MOST)
    if slope >= MOST and (least := _spend(forest, slope)) > budget:
        raise InvalidArgument(
            f"the budget must be at least {least:.6g}, the least that any policy spends, but it is "
            f"{budget:g}."
        )
    return model.price / slope


def rest_of(
    model: RunModel, runs: Sequence[Shown], fresh: int, best: float | None
) -> Forest | None:
    """What is left to open, as a forest."""
    forest: Forest | None
    if hasattr(model, "rest"):
        forest = model.rest([run[:3] for run in runs if run.steps], fresh)
    else:  # all that this model can say is about new runs
        forest = model.lines(fresh) if fresh > 0 else None
    return forest if forest is None or best is None else forest.changed(outside=model.worth(best))


def slope_of(forest: Forest, budget: float, lowest: float, highest: float) -> float:
    """The approximate price of money, within these ends, at which the budget is spent."""
    low = high = min(max(1.0, lowest), highest)  # too much is spent at the lower, not at the higher
    while high < highest and _spend(forest, high) > budget:
        low, high = high, min(STEP * high, highest)
    if low == high:
        tried = [(high, _spend(forest, high))]
        while tried[-1][1] <= budget and tried[-1][0] > lowest:
            x = max(tried[-1][0] / STEP, lowest)
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


def full_run_index(model: RunModel) -> float:
    """The worth at which further full runs stop paying.

    Examples
    --------
    A run has two steps, each at a cost of 1: first 0 or 8, and then the same or 4 more.

    >>> import weitzman
    >>> class Two:
    ...     def lines(self, n=1):
    ...         return weitzman.line([[0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]]], count=n,
    ...                              rewards=[[0, 8], [4, 12]], cost=1)
    >>> full_run_index(Two())                               # 0.5 * (12 - 8) = 2
    8.0
    """
    forest = model.lines(1)
    if forest.boxes != len(forest) or (forest.parent != np.arange(-1, len(forest) - 1)).any():
        raise InvalidArgument("the model of a run must be a line of boxes, but it is not.")
    levels = np.unique(forest.rewards.data[np.isfinite(forest.rewards.data)])
    mass = np.zeros((1, len(levels) + 1))  # of each state, and the highest level so far
    mass[0, 0] = 1.0
    cost = 0.0
    for box in range(len(forest)):
        cost += float(mass.sum(axis=1) @ mean_cost(forest, box))
        mass = forest.laws[int(forest.law[box])].T @ mass
        for state, found in enumerate(forest.rewards[int(forest.reward[box])][0]):
            if np.isfinite(found):  # raise what is below the reward of the state to that reward
                level = 1 + int(np.searchsorted(levels, found))
                mass[state, level] += mass[state, :level].sum()
                mass[state, :level] = 0.0
    return one_box(mass.sum(axis=0), np.concatenate([[-np.inf], levels]), cost)


def one_box(weight: ArrayLike, worth: ArrayLike, cost: float) -> float:
    """The index of a full run with these worths, their weights and its mean cost.

    Examples
    --------
    >>> one_box([1, 1], [8.0, 12.0], 2.0)
    8.0
    """
    chance = np.asarray(weight, np.float64)
    return float(solve(line([chance / chance.sum()], rewards=worth, cost=cost)).index(0))
