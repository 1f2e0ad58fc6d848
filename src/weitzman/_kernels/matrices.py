"""Many matrices in one array, as kernels read them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Matrices(NamedTuple):
    """Matrix i has the shape ``shape[i]`` and starts at ``data[start[i]]``."""

    data: np.ndarray
    start: np.ndarray
    shape: np.ndarray
