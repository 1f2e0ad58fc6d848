"""Loops where NumPy has an expression: those take seconds to compile, for their messages of errors.

Whole numbers that are written in a kernel become ``np.int64`` before a helper gets them, since it
would be compiled once more for each such number. A sum in NumPy also has an order of its own.
"""

from __future__ import annotations

import numpy as np

from .jit import helper


@helper()
def count_up(n):
    """0, 1, ..., n - 1"""
    out = np.empty(n, np.int64)
    for i in range(n):
        out[i] = i
    return out


@helper()
def add_up(x):
    """The sum of some numbers, from the first to the last."""
    total = 0.0
    for i in range(x.size):
        total += x[i]
    return total


@helper()
def copy(source, start, n, target, at):
    """target[at:at + n] = source[start:start + n]"""
    for i in range(n):
        target[at + i] = source[start + i]
