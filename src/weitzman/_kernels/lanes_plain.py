"""The operations of :mod:`.lanes_compiled` in plain Python, one function each.

A vector is an array of eight floats, a mask one of eight booleans, a pointer an array and a place
in it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

LANES = 8
Vector = NDArray[Any]
Mask = NDArray[np.bool_]


class Pointer:
    """A place in an array, from which on it is read and written."""

    __slots__ = ("at", "data")

    def __init__(self, data: Vector, at: int) -> None:
        self.data, self.at = data, at

    def __getitem__(self, i: int) -> Any:
        return self.data[self._place(i)]

    def __setitem__(self, i: int, x: Any) -> None:
        self.data[self._place(i)] = x

    def _place(self, i: int) -> int:
        at = self.at + int(i)
        if at < 0:  # an array would count from its end
            raise IndexError(f"{at} lies before the array")
        return at


def pointer(array: Vector | Pointer, i: int) -> Pointer:
    """Where ``array[i]`` lies, for a contiguous array or another pointer."""
    if isinstance(array, Pointer):
        return Pointer(array.data, array.at + int(i))
    if not array.flags.c_contiguous:
        raise ValueError("only a contiguous array has pointers")
    return Pointer(array.reshape(-1), int(i))


def load(p: Pointer, i: int) -> Vector:
    """``p[i:i + 8]``; what lies beyond the end of the array is never looked at."""
    at = p.at + int(i)
    eight = p.data[at : at + LANES].copy()
    return np.resize(eight, LANES) if 0 < len(eight) < LANES else eight


def store(p: Pointer, i: int, v: Vector) -> None:
    """``p[i:i + 8] = v``"""
    at = p.at + int(i)
    p.data[at : at + LANES] = v


def splat(x: float) -> Vector:
    """The same number in all lanes."""
    eight = np.empty(LANES)  # np.full takes five times as long
    eight.fill(x)
    return eight


def splat_at(p: Pointer, i: int) -> Vector:
    """``p[i]`` in all lanes."""
    return splat(p[i])


def add(a: Vector, b: Vector) -> Vector:
    """a + b"""
    return a + b


def sub(a: Vector, b: Vector) -> Vector:
    """a - b"""
    return a - b


def mul(a: Vector, b: Vector) -> Vector:
    """a * b"""
    return a * b


def div(a: Vector, b: Vector) -> Vector:
    """a / b"""
    return np.asarray(a / b)


def madd(a: Vector, b: Vector, c: Vector) -> Vector:
    """a * b + c"""
    return a * b + c


def exp(x: float) -> float:
    """e to the power x, for x up to 700: for more than that Python has an error"""
    return math.exp(x)


def expm1(x: float) -> float:
    """exp(x) - 1"""
    return math.expm1(x)


def log1p(x: float) -> float:
    """log(1 + x), for x from -1 on"""
    return math.log1p(x) if x > -1.0 else -math.inf


def larger(a: Vector, b: Vector) -> Vector:
    """The larger; b where one is not a number."""
    return np.where(a > b, a, b)


def smaller(a: Vector, b: Vector) -> Vector:
    """The smaller; b where one is not a number."""
    return np.where(a < b, a, b)


def above(a: Vector, b: Vector) -> Mask:
    """a > b"""
    return np.asarray(a > b)


def at_least(a: Vector, b: Vector) -> Mask:
    """a >= b"""
    return np.asarray(a >= b)


def both(a: Mask, b: Mask) -> Mask:
    """Both bits."""
    return a & b


def either(a: Mask, b: Mask) -> Mask:
    """One bit or the other."""
    return a | b


def where(m: Mask, a: Vector, b: Vector) -> Vector:
    """a where the bit is set, else b."""
    return np.where(m, a, b)


def some(m: Mask) -> bool:
    """Is any bit of the mask set?"""
    return any(m.tolist())


def leading(m: Mask) -> int:
    """Number of bits set before the first that is not."""
    bits = m.tolist()
    return LANES if all(bits) else bits.index(False)


def bit_length(n: int) -> int:
    """Number of binary digits of a positive integer."""
    return int(n).bit_length()


def keep(array: Vector) -> None:
    """Nothing: Python keeps what is used."""


def prefetch(p: Pointer, i: int) -> None:
    """Nothing: plain Python does not wait for memory."""
