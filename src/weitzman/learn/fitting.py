"""Learn a line from a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from ..errors import InvalidArgument
from .curves import Curves
from .known import Encoder
from .ladder import choose_rungs, climb
from .laws import Recipe, Settings
from .line_model import LineModel
from .noise import ScoreNoise
from .preference import resemblance_wins
from .rehearsal import choices, choose, make
from .resemblance import ResemblanceModel


def fit(
    curves: Curves,
    *,
    price: float | None = None,
    full_run_cost: float | None = None,
    limit: float | None = None,
    settings: Recipe | Sequence[Recipe] | None = None,
    rescored: bool | float = False,
) -> LineModel | ResemblanceModel:
    """Learn the law of a run from curves.

    Parameters
    ----------
    curves : Curves
        The log, of one task: scores must mean the same in all runs.
    price : float
        What one point of score is worth, in units of cost.
    full_run_cost : float
        Instead of ``price``: how many points of score a full run costs, on average.
    limit : float, optional
        The best possible score, such as 1 for an accuracy, if it is known.
    settings : Settings or Resemblance, or several, optional
        How curves become laws. Among several, the settings are taken that earn the most when each
        half of the log is searched with what the other half teaches. The default is
        :class:`Resemblance` if the curves have settings and if resemblance forecasts the last
        scores of logged runs, each from the others, better than the best scores so far do.
        Otherwise two :class:`Settings` are tried: with and without imagined runs that are better
        than all.
    rescored : bool or float
        The prize is what a re-evaluation of the chosen run shows, not the score that it has shown:
        the best of many noisy scores is too high. With True the noise of scores is learned from the
        log; a number states its standard deviation. Then every score counts as the mean of its
        re-evaluations, in the log and in the search. See :mod:`weitzman.learn.noise`.

    Returns
    -------
    LineModel or ResemblanceModel

    Examples
    --------
    >>> import weitzman
    >>> from weitzman import learn
    >>> curves = learn.Curves.read({
    ...     "run": ["a", "a", "b", "b", "c", "c"], "step": [1, 2, 1, 2, 1, 2],
    ...     "score": [0.5, 0.7, 0.4, 0.5, 0.6, 0.9], "cost": [1, 1, 1, 1, 1, 1]})
    >>> model = learn.fit(curves, price=40)
    >>> model
    LineModel(3 runs, 2 rungs up to step 2, price 40: a full run costs 0.05 points)
    >>> bool(weitzman.solve(model.lines(10)).value > model.worth(0.7))
    True
    """
    if len(curves.tasks) > 1:
        raise InvalidArgument(
            f"a model needs curves of one task, but these are of {len(curves.tasks)}. Choose one "
            f"with `of_task`, or read them without `task` if their scores mean the same."
        )
    worth = price_of(curves, price, full_run_cost)
    if rescored is not False:
        noise = ScoreNoise.of(curves, None if rescored is True else rescored)
        model = fit(noise.without(curves), price=worth, limit=limit, settings=settings)
        model.noise = noise
        return model
    encoder = Encoder.of(curves.settings)
    tried = _tried(settings) or choices(encoder)
    if limit is not None:
        tried = [replace(s, limit=float(limit)) for s in tried]
    ratios = {s.ratio for s in tried}
    if len(ratios) > 1:
        raise InvalidArgument(
            f"settings to choose from must share the ratio of rungs, but there are {len(ratios)}."
        )
    ladder = climb(curves, choose_rungs(curves, tried[0].ratio), encoder)
    if not len(ladder):
        raise InvalidArgument(
            "no run was seen as far as the first rung: nothing can be learned from this log."
        )
    minimize = curves.minimize
    if settings is None and encoder.names:
        model = make(ladder, encoder, price=worth, minimize=minimize, settings=tried[0])
        assert isinstance(model, ResemblanceModel)
        if len(ladder) > model.settings.states or resemblance_wins(model, Settings().neighbors):
            return model
        tried = [replace(s, limit=tried[0].limit) for s in choices()]
    chosen = choose(ladder, encoder, price=worth, minimize=minimize, candidates=tried)
    return make(ladder, encoder, price=worth, minimize=minimize, settings=chosen)


def _tried(settings: Recipe | Sequence[Recipe] | None) -> list[Recipe]:
    """The settings of a model that the user has given, if any."""
    if settings is None or isinstance(settings, Recipe):
        return [] if settings is None else [settings]
    tried = list(settings) if isinstance(settings, Iterable) else [settings]
    wrong = [x for x in tried if not isinstance(x, Recipe)]
    if wrong:
        raise InvalidArgument(
            f"`settings` must be a `learn.Settings` or a `learn.Resemblance`, or several of them, "
            f"but one is {wrong[0]!r}. The settings of runs belong to the curves."
        )
    return tried


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
