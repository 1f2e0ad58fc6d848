"""Array types used all over the package."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
Array = TypeVar("Array", bound=NDArray[Any])


def frozen(array: Array) -> Array:
    """The same array to be read only: a kernel is compiled once, not also for what may change."""
    view = array.view()
    view.flags.writeable = False
    return view
