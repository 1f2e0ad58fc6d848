"""A prior for a task about which little is known: runs of another task, or a stated default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .._common.arrays import FloatArray
from ..errors import InvalidArgument
from .curves import Curves
from .ladder import Ladder, climb
from .line_model import LineModel
from .log_model import ceiling_of

_ENOUGH = 3  # runs at a rung from which the spread of scores is learned


def transfer(
    model: LineModel,
    curves: Curves,
    *,
    price: float | None = None,
    limit: float | None = None,
    weight: float = 10.0,
    rescale: bool = True,
) -> LineModel:
    """A model for a new task: a known model fitted to the first runs of the task, plus these runs.

    The scores of the known runs are shifted and stretched so that, rung by rung, their mean and
    spread are about the same as for the new runs; costs are scaled to the new costs. Together the
    known runs count for ``weight`` runs, so the runs of the new task soon outweigh them.

    Parameters
    ----------
    model : LineModel
        Learned on another task with the same steps.
    curves : Curves
        What was seen of the new task so far; runs may be cut off anywhere.
    price : float, optional
        What a point of the new task's score is worth; by default the price of the model.
    limit : float, optional
        The best possible score of the new task. Without a limit, a prior may promise too much.
    weight : float
        How many runs of the new task the known runs count for together.
    rescale : bool
        If False, the scores of both tasks already mean the same. Fewer than three new runs at every
        rung say nothing about the spread; then scores are only shifted.

    Examples
    --------
    >>> from weitzman import learn
    >>> curves = learn.sample()
    >>> prior = learn.fit(curves.of_task("letter"), price=1000)
    >>> first = curves.of_task("pendigits").select([0, 20, 40, 60])
    >>> learn.transfer(prior, first).fresh_index > 0
    True
    """
    if not isinstance(model, LineModel):
        raise InvalidArgument(
            f"`transfer` needs a LineModel, but this is a {type(model).__name__}. Fit the known "
            f"log with `settings=learn.Settings()`, which gives a LineModel."
        )
    if curves.minimize != model.minimize:
        raise InvalidArgument("the model and the curves must both maximize or both minimize.")
    if not 0 < weight < np.inf:
        raise InvalidArgument(
            f"the weight of a prior must be positive and finite, but it is {weight!r}."
        )
    known, new = model.ladder, climb(curves, model.ladder.rungs)
    if rescale and len(new):
        known = _rescaled(known, new)
    settings = replace(model.settings, limit=limit)
    ceiling = ceiling_of(limit, model.minimize)
    known = replace(known, best=np.minimum(known.best, ceiling))
    known = replace(known, weight=known.weight * (weight / known.weight.sum()))
    return LineModel(
        known.joined(new) if len(new) else known,
        price=model.price if price is None else price,
        minimize=model.minimize,
        settings=settings,
    )


def _rescaled(known: Ladder, new: Ladder) -> Ladder:
    """The known runs with the mean and spread of the new ones at each rung.

    A rung that was not reached takes the shift of the last rung before it that was. The spread at a
    rung is drawn toward the spread of all rungs; the fewer runs a rung has, the more.
    """
    count = _seen(new).sum(axis=0)
    (mean, spread), (wanted, width) = _moments(known), _moments(new)
    told = (count >= _ENOUGH) & (spread > 0) & (width > 0)
    log = np.log(np.where(told, width, 1.0) / np.where(told, spread, 1.0))
    pooled = np.average(log, weights=count * told) if told.any() else 0.0
    stretch = np.exp((count * told * log + _ENOUGH * pooled) / (count * told + _ENOUGH))
    reached = np.maximum.accumulate(np.where(count > 0, np.arange(len(count)), 0))
    shift = (wanted - stretch * mean)[reached] + (stretch[reached] - stretch) * mean[reached]
    best = np.maximum.accumulate(shift + stretch * known.best, axis=1)
    return replace(known, best=best, cost=known.cost * _cost_ratio(known, new))


def _seen(ladder: Ladder) -> np.ndarray:
    return np.arange(ladder.best.shape[1]) < ladder.seen[:, None]


def _moments(ladder: Ladder) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the scores at each rung, 0 where nothing was seen."""
    seen = _seen(ladder)
    weight = ladder.weight[:, None] * seen
    total = np.maximum(weight.sum(axis=0), 1e-300)
    mean = (weight * ladder.best).sum(axis=0) / total
    spread = np.sqrt((weight * np.square(ladder.best - mean)).sum(axis=0) / total)
    return mean, spread


def _cost_ratio(known: Ladder, new: Ladder) -> float:
    """How many times as expensive the new task is, where both tasks have costs."""
    (paid, runs), (known_paid, known_runs) = (
        ((x.cost * _seen(x)).sum(axis=0), _seen(x).sum(axis=0)) for x in (new, known)
    )
    both = (paid > 0) & (known_paid > 0)
    if not both.any():
        return 1.0
    usual = known_paid[both] / known_runs[both]
    return float(paid[both].sum() / (usual * runs[both]).sum())


def default_curves(
    steps: Sequence[int],
    *,
    start: float,
    poor: float,
    good: float,
    cost: float = 1.0,
    runs: int = 64,
    minimize: bool = False,
) -> Curves:
    """A stated default if there are no curves: power laws that end between poor and good.

    Run i starts at ``start`` and approaches a limit as ``(1 + t) ** -a``, where t counts steps. The
    limits are spread evenly from ``poor`` to ``good`` and the exponents a from 0.3 to 2, in an
    order that makes them independent of the limits. It is a guess: give it little weight.

    Parameters
    ----------
    steps : sequence of int
    start, poor, good : float
        The score before anything was learned, and what a poor and a good run tend to.
    cost : float
        The cost of each step.
    runs : int
    minimize : bool

    Examples
    --------
    >>> from weitzman import learn
    >>> guess = learn.default_curves(range(1, 28), start=0.1, poor=0.5, good=0.98)
    >>> prior = learn.fit(guess, price=2700)
    """
    if runs < 2 or len(steps) < 1:
        raise InvalidArgument("a default needs at least two runs and one step.")
    if not np.isfinite([start, poor, good]).all():
        raise InvalidArgument(
            f"a default starts and ends with finite scores, but they are {start}, {poor}, {good}."
        )
    limit = np.linspace(poor, good, runs)
    golden = (np.arange(runs) * 0.6180339887498949) % 1.0
    t = 1.0 + np.arange(1, len(steps) + 1)
    score = limit[:, None] + (start - limit[:, None]) * t ** -(0.3 + 1.7 * golden[:, None])
    return Curves(
        runs=tuple(f"default {i}" for i in range(runs)),
        start=np.arange(runs + 1) * len(steps),
        step=np.tile(np.asarray(steps), runs),
        score=score.ravel(),
        cost=np.full(score.size, cost),
        task=("",) * runs,
        kind=("",) * runs,
        ended=np.ones(runs, bool),
        minimize=minimize,
    )
