"""The operations of :mod:`.lanes` in plain Python.

A vector is an array of eight floats, a mask one of eight booleans, a pointer the rest of an array.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

LANES = 8
Vector = NDArray[Any]
__all__ = [
    "above", "add", "at_least", "bit_length", "both", "div", "either", "exp", "expm1", "keep",
    "larger", "leading", "load", "log1p", "madd", "mul", "pointer", "prefetch", "smaller", "some",
    "splat", "splat_at", "store", "sub", "where",
]  # fmt: skip

add, sub, mul, div = operator.add, operator.sub, operator.mul, operator.truediv
above, at_least, both, either = operator.gt, operator.ge, operator.and_, operator.or_
exp, expm1, where = math.exp, math.expm1, np.where  # exp: up to 700, beyond Python has an error


def pointer(array: Vector, i: int) -> Vector:
    """Where ``array[i]`` lies, for a contiguous array or another pointer: the rest of the array."""
    if not array.flags.c_contiguous:
        raise ValueError("only a contiguous array has pointers")
    return array.reshape(-1)[int(i) :]


def load(p: Vector, i: int) -> Vector:
    """``p[i:i + 8]``; what lies beyond the end of the array is never looked at."""
    eight = p[int(i) : int(i) + LANES].copy()
    return np.resize(eight, LANES) if 0 < len(eight) < LANES else eight


def store(p: Vector, i: int, v: Vector) -> None:
    """``p[i:i + 8] = v``"""
    p[int(i) : int(i) + LANES] = v


def splat(x: float) -> Vector:
    """The same number in all lanes."""
    eight = np.empty(LANES)  # np.full takes five times as long
    eight.fill(x)
    return eight


def splat_at(p: Vector, i: int) -> Vector:
    """``p[i]`` in all lanes."""
    return splat(p[i])


def madd(a: Vector, b: Vector, c: Vector) -> Vector:
    """a * b + c"""
    return a * b + c


def log1p(x: float) -> float:
    """log(1 + x), for x from -1 on"""
    return math.log1p(x) if x > -1.0 else -math.inf


def larger(a: Vector, b: Vector) -> Vector:
    """The larger; b where one is not a number."""
    return np.where(a > b, a, b)


def smaller(a: Vector, b: Vector) -> Vector:
    """The smaller; b where one is not a number."""
    return np.where(a < b, a, b)


def some(m: Vector) -> bool:
    """Is any bit of the mask set?"""
    return any(m.tolist())


def leading(m: Vector) -> int:
    """Number of bits set before the first that is not."""
    bits = m.tolist()
    return LANES if all(bits) else bits.index(False)


def bit_length(n: int) -> int:
    """Number of binary digits of a positive integer."""
    return int(n).bit_length()


def keep(array: Vector) -> None:
    """Nothing: Python keeps what is used, and (below) does not wait for memory."""


def prefetch(p: Vector, i: int) -> None:
    """Nothing."""
