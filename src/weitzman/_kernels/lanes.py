"""Eight numbers at a time: compiled vectors, or the same in plain Python.

Kernels import from here. :mod:`.lanes_compiled` has the vectors of the processor,
:mod:`.lanes_plain` their plain twins, which are used when nothing is compiled (see :mod:`.jit`).
"""

from __future__ import annotations

from .jit import PLAIN

LANES = 8

if PLAIN:
    from .lanes_plain import (
        above,
        add,
        at_least,
        bit_length,
        both,
        div,
        either,
        keep,
        larger,
        leading,
        load,
        madd,
        mul,
        pointer,
        prefetch,
        smaller,
        some,
        splat,
        splat_at,
        store,
        sub,
        where,
    )  # fmt: skip
else:
    from .lanes_compiled import (
        above,
        add,
        at_least,
        bit_length,
        both,
        div,
        either,
        keep,
        larger,
        leading,
        load,
        madd,
        mul,
        pointer,
        prefetch,
        smaller,
        some,
        splat,
        splat_at,
        store,
        sub,
        where,
    )  # fmt: skip

__all__ = [
    "LANES", "above", "add", "at_least", "bit_length", "both", "div", "either", "keep", "larger",
    "leading", "load", "madd", "mul", "pointer", "prefetch", "smaller", "some", "splat", "splat_at",
    "store", "sub", "where",
]  # fmt: skip
