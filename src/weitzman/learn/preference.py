"""Which kind of model forecasts a log better: by resemblance, or by the best score so far alone?

Both forecast the last score of every logged run before each of its segments, always from the other
runs. Errors are continuous ranked probability scores; lower errors are better forecasts.
"""

from __future__ import annotations

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .forecasts import ranked_errors
from .ladder import Ladder
from .laws import near, usual_cost
from .resemblance import ResemblanceModel

_FEWEST = 8  # runs that went through a segment, for their forecasts to count


def resemblance_wins(model: ResemblanceModel, neighbors: float) -> bool:
    """Whether resemblance forecasts the log better than the best score so far does.

    ``neighbors`` belongs to the first-order model: see :class:`~weitzman.learn.Settings`. If errors
    are equal, resemblance wins, because it also knows the settings of runs to come.
    """
    errors = forecast_errors(model, neighbors)
    return float(errors[:, 2] @ (errors[:, 0] - errors[:, 1])) <= 0.0


def forecast_errors(model: ResemblanceModel, neighbors: float) -> FloatArray:
    """Errors by resemblance, by the best score so far, and a weight, one row for each segment.

    Errors are in units of the error of a forecast that knows nothing about the run. A good search
    spends about as much on every segment, so decisions before expensive segments are rare. A
    decision is weighted by the inverse of the cost up to the end of its segment.
    """
    ladder, found = model.ladder, []
    paid = np.cumsum(usual_cost(ladder))
    for r in range(len(model.rungs)):
        runs = np.flatnonzero(ladder.gone & (ladder.seen > r))
        if len(runs) >= _FEWEST:
            final = ladder.best[runs, ladder.seen[runs] - 1]
            rows = (
                model.resembling(r, runs),
                _nearest(ladder, r, runs, neighbors),
                _others(ladder.weight[runs]),
            )
            errors = [float(ranked_errors(row, final).mean()) for row in rows]
            if errors[2] > 0:
                rare = paid[r] / paid[-1] if paid[-1] > 0 else 1.0
                found.append((errors[0] / errors[2], errors[1] / errors[2], 1.0 / max(rare, 1e-9)))
    return np.array(found).reshape(-1, 3)


def _nearest(ladder: Ladder, r: int, runs: IntArray, neighbors: float) -> FloatArray:
    """How much each run counts for each other run, by the best score before segment r."""
    weight = (1.0 - np.eye(len(runs))) * ladder.weight[runs]
    if r:
        before = ladder.best[runs, r - 1]
        weight = weight * near(np.abs(before[:, None] - before), weight, neighbors)
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _others(weight: FloatArray) -> FloatArray:
    row = (1.0 - np.eye(len(weight))) * weight
    return np.asarray(row / row.sum(axis=1, keepdims=True))
