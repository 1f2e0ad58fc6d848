"""Runs of a search compared with the log: do they cost, and score, what the log says?"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._common.arrays import FloatArray
from .ladder import Ladder, usual_cost

_FACTOR = 2.0  # a difference in costs is believed if it is larger than this,
_SURE = 2.0  # by so many standard errors
_NEWS = 1.5  # a ratio of costs that differs from the one in the last warning by this is news
_FEWEST = 3  # runs whose first scores are compared
_AWAY = 3.0  # scores this many widths of the log's scores away are in other units


class CostRatio(NamedTuple):
    """How the costs of a search compare with the costs in the log.

    Attributes
    ----------
    ratio : float
        The geometric mean of what runs cost over what the log says; 1 if the evidence is weak.
    runs : int
        How many runs were compared.
    paid, expected : float
        What these runs cost together, and what the log says about the same segments.
    """

    ratio: float
    runs: int
    paid: float
    expected: float


def compared_costs(known: Ladder, new: Ladder, level: FloatArray | float = 1.0) -> CostRatio:
    """Compare the costs of new runs with the costs of known runs, from the first segment on.

    Each new run is compared with the usual cost of the segments that it was seen to finish, times
    ``level``, the relative cost of runs with these settings. The log shows how much evidence a
    single run is: where costs vary a lot in the log, they must differ a lot here.
    """
    usual = usual_cost(known)
    apart, paid, expected = _apart(new, usual, level)
    if not len(apart):
        return CostRatio(1.0, 0, 0.0, 0.0)
    varies = max(float(_apart(known, usual, 1.0)[0].std()), float(apart.std()))
    sure = math.log(_FACTOR) + _SURE * varies / math.sqrt(len(apart))
    mean = float(apart.mean())
    return CostRatio(math.exp(mean) if abs(mean) >= sure else 1.0, len(apart), paid, expected)


def _apart(
    runs: Ladder, usual: FloatArray, level: FloatArray | float
) -> tuple[FloatArray, float, float]:
    """The logarithm of what each run cost over the usual cost, and both sums."""
    seen = np.arange(runs.cost.shape[1]) < runs.seen[:, None]
    paid = (runs.cost * seen).sum(axis=1)
    expected = (usual * seen).sum(axis=1) * level
    both = (paid > 0) & (expected > 0)
    paid, expected = paid[both], expected[both]
    return np.log(paid / expected), float(paid.sum()), float(expected.sum())


def at_live_costs(known: Ladder, found: CostRatio) -> Ladder:
    """Known runs with their costs scaled to the costs of new runs, if the costs clearly differ."""
    return known if found.ratio == 1.0 else replace(known, cost=known.cost * found.ratio)


def say_costs_differ(found: CostRatio, named: float) -> float:
    """Warn that costs were scaled, unless the last warning named about the same ratio.

    Returns the ratio named last.
    """
    ratio, runs, paid, expected = found
    if ratio == 1.0 or abs(math.log(ratio / named)) < math.log(_NEWS):
        return named
    warnings.warn(
        f"the runs of this search cost {ratio:.3g} times what the log says (mean of {runs} "
        f"run{'s' * (runs > 1)}: {paid:.4g} instead of {expected:.4g} for the same steps), so the "
        f"costs of the log were scaled. Are costs and steps in the same units?",
        UserWarning,
        stacklevel=4,
    )
    return ratio


def check_scores_alike(known: Ladder, new: Ladder, minimize: bool) -> None:
    """Warn if the first scores of a search lie far from all that the log has shown there.

    The check compares the scores of the first few runs at the first rung. It detects a log and a
    search in different units (percent and shares, for example).
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
