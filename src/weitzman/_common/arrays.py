"""Array types, the error of a mean, and checks of counts and amounts with one message each."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgument

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


def depths(parent: IntArray) -> IntArray:
    """How many boxes lie above each box, counted in steps of 1, 2, 4, ... boxes.

    >>> depths(np.array([-1, 0, 1, 1, -1])).tolist()
    [0, 1, 2, 2, 0]
    """
    n = len(parent)
    up = np.append(np.where(parent < 0, n, parent), n)
    depth = (up < n).astype(np.int64)
    while (up < n).any():
        depth, up = depth + depth[up], up[up]
    return depth[:-1]


def roots_above(parent: IntArray) -> IntArray:
    """The root of the tree of each box.

    >>> roots_above(np.array([-1, 0, 1, 1, -1])).tolist()
    [0, 0, 0, 0, 4]
    """
    up = np.where(parent < 0, np.arange(len(parent)), parent)
    while (up != up[up]).any():
        up = up[up]
    return up


def error_of_mean(values: FloatArray) -> float:
    """The standard error of the mean of independent draws; NaN for a single one.

    >>> error_of_mean(np.array([1.0, 3.0])), error_of_mean(np.array([1e300, 3e300]))
    (1.0, 1e+300)
    """
    if len(values) < 2:
        return math.nan
    scale = float(np.abs(values).max()) or 1.0  # squares of 1e200 are beyond all floats
    return scale * (float(np.std(values / scale, ddof=1)) / math.sqrt(len(values)))


def check_counts(least: int = 1, **named: object) -> None:
    """Reject arguments that are not whole numbers from ``least`` on; None counts as left out.

    >>> check_counts(episodes=10, budget=None)
    """
    for name, n in named.items():
        if n is not None and (isinstance(n, bool) or not isinstance(n, Integral) or n < least):
            raise InvalidArgument(
                f"`{name}` must be a whole number from {least} on, but it is {n!r}."
            )


def check_amounts(least: float = 0.0, **named: object) -> None:
    """Reject arguments that are not numbers from ``least`` on; infinity is a number.

    >>> check_amounts(budget=2.5, cap=math.inf)
    """
    for name, x in named.items():
        if isinstance(x, bool) or not isinstance(x, Real) or math.isnan(float(x)):
            raise InvalidArgument(f"`{name}` must be a number from {least:g} on, but it is {x!r}.")
        if x < least:
            raise InvalidArgument(f"`{name}` must be at least {least:g}, but it is {x:g}.")
