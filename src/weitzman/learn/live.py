"""Runs of a search compared with the log: do they cost, and score, what the log says?"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from .._common.arrays import FloatArray
from .ladder import Ladder
from .laws import usual_cost

_FEWEST = 5  # runs from which a difference is believed,
_FACTOR = 2.0  # if it is larger than this,
_SURE = 2.0  # by so many standard errors
_AWAY = 3.0  # from how many widths of the log's scores on others are of another kind


def at_live_costs(known: Ladder, new: Ladder, level: FloatArray | float = 1.0) -> Ladder:
    """Known runs with their costs scaled to those of new runs, if these clearly differ.

    Each new run is compared with the usual cost of the segments that it was seen to finish, times
    ``level``: how dear runs with its settings are. A warning says by how much costs were scaled.
    """
    seen = np.arange(new.cost.shape[1]) < new.seen[:, None]
    paid = (new.cost * seen).sum(axis=1)
    expected = (usual_cost(known) * seen).sum(axis=1) * level
    both = (paid > 0) & (expected > 0)
    if both.sum() < _FEWEST:
        return known
    apart = np.log(paid[both] / expected[both])
    error = float(apart.std()) / np.sqrt(len(apart))
    if abs(float(apart.mean())) < np.log(_FACTOR) + _SURE * error:
        return known
    ratio = float(np.exp(apart.mean()))
    warnings.warn(
        f"the runs of this search cost {ratio:.3g} times what the log says (mean of {len(apart)} "
        f"runs), so the costs of the log were scaled. Are both in the same unit?",
        UserWarning,
        stacklevel=4,
    )
    return replace(known, cost=known.cost * ratio)


def check_scores_alike(known: Ladder, new: Ladder, minimize: bool) -> None:
    """Warn if the first scores of a search lie far from all that the log has shown there.

    Looked at are the scores at the first rung of the first few runs; a log and a search in
    different units (percent and shares, say) are told by this.
    """
    first = new.best[new.seen > 0, 0]
    there = known.best[known.seen > 0, 0]
    if len(first) < _FEWEST or not len(there):
        return
    low, high = float(there.min()), float(there.max())
    ends = np.quantile(known.best[np.arange(len(known)), known.seen - 1], (0.05, 0.95))
    room = _AWAY * max(high - low, float(ends[1]) - low)
    if float(first.min()) <= high + room and float(first.max()) >= low - room:
        return
    sign = -1.0 if minimize else 1.0
    found, told = (sorted(sign * x for x in pair) for pair in (_ends(first), (low, high)))
    warnings.warn(
        f"the first scores of this search, at step {new.rungs[0]}, go from {found[0]:.4g} to "
        f"{found[1]:.4g} ({len(first)} runs), but those of the log from {told[0]:.4g} to "
        f"{told[1]:.4g}. Are both in the same unit?",
        UserWarning,
        stacklevel=4,
    )


def _ends(x: FloatArray) -> tuple[float, float]:
    return float(x.min()), float(x.max())
