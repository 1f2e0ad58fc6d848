"""What the processor does: products and sums in one rounding, or in two.

Compiled kernels and plain Python must give the same bits. So neither is left to choose: where a
kernel asks for a product and a sum in one step (`madd`), both round once if the processor has an
instruction for it, and twice if it has none.
"""

from __future__ import annotations

import ctypes
import math
import platform
import sys
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
from numba.core.codegen import get_host_cpu_features

Multiply = Callable[[float, float, float], float]

FUSES = "+fma" in get_host_cpu_features().split(",") or platform.machine() in ("arm64", "aarch64")


def _exact(a: float, b: float, c: float) -> float:
    """a * b + c in one rounding, by fractions."""
    if not math.isfinite(a) or not math.isfinite(b):
        return a * b + c
    if not math.isfinite(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact) if exact else a * b + c  # which zero it is
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _of_python(a: float, b: float, c: float) -> float:
    """a * b + c in one rounding, by a function that has errors where others have infinities."""
    try:
        return float(math.fma(a, b, c))  # type: ignore[attr-defined,unused-ignore]
    except (ValueError, OverflowError):
        return _exact(a, b, c)


def _best() -> Multiply:
    """The function of Python 3.13, else that of C, else fractions."""
    if sys.version_info >= (3, 13):
        return _of_python
    with suppress(OSError, AttributeError, TypeError):
        found = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None).fma
        found.restype, found.argtypes = ctypes.c_double, [ctypes.c_double] * 3
        return found  # type: ignore[no-any-return]
    return _exact


_fma = _best()


def fused(a: Any, b: Any, c: Any) -> Any:
    """a * b + c in one rounding, for arrays of floats."""
    return np.fromiter(map(_fma, a.tolist(), b.tolist(), c.tolist()), np.float64, len(a))
