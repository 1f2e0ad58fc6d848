"""Array types used all over the package, and the error of a mean."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
Array = TypeVar("Array", bound=NDArray[Any])


def frozen(array: Array) -> Array:
    """The same array, read-only: a kernel is then compiled for read-only arrays alone."""
    view = array.view()
    view.flags.writeable = False
    return view


def writable(array: Array) -> Array:
    """The same array, or a copy: what comes out of the object store of a cluster is read-only."""
    out: Array = np.require(array, requirements="W")
    return out


def error_of_mean(values: FloatArray) -> float:
    """The standard error of the mean of independent draws; NaN for a single one.

    >>> error_of_mean(np.array([1.0, 3.0])), error_of_mean(np.array([1e300, 3e300]))
    (1.0, 1e+300)
    """
    if len(values) < 2:
        return math.nan
    scale = float(np.abs(values).max()) or 1.0  # squares of 1e200 are beyond all floats
    return scale * (float(np.std(values / scale, ddof=1)) / math.sqrt(len(values)))
