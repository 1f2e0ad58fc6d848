"""Learn what to expect of a run from a log."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import InvalidArgument
from .curves import Curves
from .features import Encoder
from .ladder import choose_rungs, climb
from .noise import ScoreNoise
from .resemblance import FitOptions, ResemblanceModel


def fit(
    curves: Curves,
    *,
    price: float | None = None,
    full_run_cost: float | None = None,
    limit: float | None = None,
    options: FitOptions | None = None,
    rescored: bool | float = False,
) -> ResemblanceModel:
    """Learn the law of a run from curves.

    Parameters
    ----------
    curves : Curves
        The log, of one task: scores must mean the same in all runs. If the curves have settings,
        the model says which settings to start.
    price : float
        What one point of score is worth, in units of cost.
    full_run_cost : float
        Instead of ``price``: how many points of score a full run costs, on average.
    limit : float, optional
        The best possible score, such as 1 for an accuracy, if it is known.
    options : FitOptions, optional
        How curves become a model.
    rescored : bool or float
        The prize is what a re-evaluation of the chosen run shows, not the score that it has shown:
        the best of many noisy scores is too high. With True the noise of scores is learned from the
        log; a number states its standard deviation. Then every score counts as the mean of its
        re-evaluations, in the log and in the search. See :mod:`weitzman.learn.noise`.

    Returns
    -------
    ResemblanceModel

    Examples
    --------
    >>> from weitzman import learn
    >>> curves = learn.Curves.read({
    ...     "run": ["a", "a", "b", "b", "c", "c"], "step": [1, 2, 1, 2, 1, 2],
    ...     "score": [0.5, 0.7, 0.4, 0.5, 0.6, 0.9], "cost": [1, 1, 1, 1, 1, 1]})
    >>> model = learn.fit(curves, price=40)
    >>> model
    ResemblanceModel(3 runs, 2 rungs up to step 2, price 40: a full run costs 0.05 points)
    >>> bool(model.fresh_index > model.worth(0.7))
    True
    """
    if len(curves.tasks) > 1:
        raise InvalidArgument(
            f"a model needs curves of one task, but these are of {len(curves.tasks)}. Choose one "
            f"with `of_task`, or read them without `task` if their scores mean the same."
        )
    if options is not None and not isinstance(options, FitOptions):
        raise InvalidArgument(
            f"`options` must be a `learn.FitOptions`, but it is {options!r}. The settings of runs "
            f"belong to the curves."
        )
    worth = price_of(curves, price, full_run_cost)
    if rescored is not False:
        noise = ScoreNoise.of(curves, None if rescored is True else rescored)
        model = fit(noise.without(curves), price=worth, limit=limit, options=options)
        model.noise = noise
        return model
    options = options or FitOptions()
    if limit is not None:
        options = replace(options, limit=float(limit))
    encoder = Encoder.of(curves.settings)
    ladder = climb(curves, choose_rungs(curves, options.ratio), encoder)
    if not len(ladder):
        raise InvalidArgument(
            "no run was seen as far as the first rung: nothing can be learned from this log."
        )
    return ResemblanceModel(ladder, encoder, price=worth, minimize=curves.minimize, options=options)


def price_of(curves: Curves, price: float | None, full_run_cost: float | None) -> float:
    """What a point of score is worth, given directly or by the points that a full run costs."""
    if (price is None) == (full_run_cost is None):
        raise InvalidArgument("give either `price` or `full_run_cost`.")
    if full_run_cost is None:
        assert price is not None
        return price
    if not 0 < full_run_cost < np.inf:
        raise InvalidArgument(
            f"`full_run_cost` must be above 0 and finite, but it is {full_run_cost!r}."
        )
    whole = curves.ended if curves.ended.any() else np.ones(len(curves), bool)
    mean = float(curves.total_cost[whole].mean())
    if not mean > 0:
        raise InvalidArgument("the runs of the log cost nothing: state `price` instead.")
    return mean / full_run_cost
