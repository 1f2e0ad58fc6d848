"""Learn a line from a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..errors import InvalidArgument
from .curves import Curves
from .ladder import choose_rungs, climb
from .laws import Settings
from .line_model import LineModel
from .rehearsal import choices, choose


def fit(
    curves: Curves,
    *,
    price: float,
    limit: float | None = None,
    settings: Settings | Sequence[Settings] | None = None,
) -> LineModel:
    """Learn the law of a run from curves.

    Parameters
    ----------
    curves : Curves
        The log, of one task: scores must mean the same in all runs.
    price : float
        What one point of score is worth, in units of cost.
    limit : float, optional
        The best score that there can be, such as 1 for an accuracy, if that is known.
    settings : Settings, or several, optional
        How curves become laws. Of several, those are taken that earn most when each half of the log
        is searched with what the other half teaches; by default two are tried, with and without
        imagined runs that are better than all.

    Returns
    -------
    LineModel

    Examples
    --------
    >>> import weitzman
    >>> from weitzman import learn
    >>> curves = learn.Curves.read({
    ...     "run": ["a", "a", "b", "b", "c", "c"], "step": [1, 2, 1, 2, 1, 2],
    ...     "score": [0.5, 0.7, 0.4, 0.5, 0.6, 0.9], "cost": [1, 1, 1, 1, 1, 1]})
    >>> model = learn.fit(curves, price=40)
    >>> model
    LineModel(3 runs, 2 rungs up to step 2, price 40)
    >>> bool(weitzman.solve(model.lines(10)).value > model.worth(0.7))
    True
    """
    if len(curves.tasks) > 1:
        raise InvalidArgument(
            f"a model is of one task, but the curves are of {len(curves.tasks)}. Choose one with "
            f"`of_task`, or read them without `task` if their scores mean the same."
        )
    tried = [settings] if isinstance(settings, Settings) else list(settings or choices())
    if limit is not None:
        tried = [replace(s, limit=float(limit)) for s in tried]
    ratios = {s.ratio for s in tried}
    if len(ratios) > 1:
        raise InvalidArgument(
            f"settings to choose from must share the ratio of rungs, but there are {len(ratios)}."
        )
    ladder = climb(curves, choose_rungs(curves, tried[0].ratio))
    if not len(ladder):
        raise InvalidArgument(
            "no run was seen as far as the first rung: nothing can be learnt from this log."
        )
    chosen = choose(ladder, price=price, minimize=curves.minimize, candidates=tried)
    return LineModel(ladder, price=price, minimize=curves.minimize, settings=chosen)
