"""Means of draws, and how far off they may be."""

from __future__ import annotations

import math

import numpy as np

from .arrays import FloatArray


def error_of_mean(values: FloatArray) -> float:
    """The standard error of the mean of independent draws; NaN for a single one.

    >>> error_of_mean(np.array([1.0, 3.0])), error_of_mean(np.array([1e300, 3e300]))
    (1.0, 1e+300)
    """
    if len(values) < 2:
        return math.nan
    scale = float(np.abs(values).max()) or 1.0  # squares of 1e200 are beyond all floats
    return scale * (float(np.std(values / scale, ddof=1)) / math.sqrt(len(values)))
