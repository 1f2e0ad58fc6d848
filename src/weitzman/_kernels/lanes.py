"""Eight numbers at a time: compiled vectors, or the same in plain Python.

Kernels import from here. :mod:`.lanes_compiled` has the vectors of the processor,
:mod:`.lanes_plain` their plain twins, which are used when nothing is compiled (see :mod:`.jit`).
"""

from __future__ import annotations

from .jit import PLAIN

LANES = 8

if PLAIN:
    from . import lanes_plain as lanes
else:
    from . import lanes_compiled as lanes

above, add, at_least, bit_length = lanes.above, lanes.add, lanes.at_least, lanes.bit_length
both, div, either, keep = lanes.both, lanes.div, lanes.either, lanes.keep
exp, expm1, log1p = lanes.exp, lanes.expm1, lanes.log1p
larger, leading, load, madd = lanes.larger, lanes.leading, lanes.load, lanes.madd
mul, pointer, prefetch, smaller = lanes.mul, lanes.pointer, lanes.prefetch, lanes.smaller
some, splat, splat_at, store = lanes.some, lanes.splat, lanes.splat_at, lanes.store
sub, where = lanes.sub, lanes.where

__all__ = [
    "LANES", "above", "add", "at_least", "bit_length", "both", "div", "either", "exp", "expm1",
    "keep", "larger", "leading", "load", "log1p", "madd", "mul", "pointer", "prefetch", "smaller",
    "some", "splat", "splat_at", "store", "sub", "where",
]  # fmt: skip
