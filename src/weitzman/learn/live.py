"""Runs of a search compared with the log: do they cost what the log says?"""

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
