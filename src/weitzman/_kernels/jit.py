"""How kernels are compiled: every option of the compiler is set here.

A function that Python calls is a *kernel*, one that only kernels call a *helper*. Both take the
rounding that they allow: `STRICT` as written, `FUSED` with a product and a sum in one rounding
where the processor can, `ANY_ORDER` with sums in any order as well. Division by zero gives an
infinity, as in NumPy, and no kernel holds the interpreter's lock.

With ``NUMBA_DISABLE_JIT=1`` in the environment nothing is compiled: kernels and helpers are then
plain Python, for a debugger or for coverage, and slow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np
from numba import config, njit

from .kernel_cache import KernelCache

PLAIN = bool(config.DISABLE_JIT)
STRICT: frozenset[str] = frozenset()
FUSED = frozenset({"contract"})
ANY_ORDER = frozenset({"reassoc", "contract"})

kernels: list[Any] = []  # all that are compiled, once their modules are imported

Decorator = Callable[[Callable[..., Any]], Any]


def kernel(rounding: frozenset[str] = STRICT) -> Decorator:
    """Compile a function that Python calls; what was compiled once is kept on disk."""
    return _as_numpy if PLAIN else partial(_compiled, rounding)


def helper(rounding: frozenset[str] = STRICT, *, inline: bool = False) -> Decorator:
    """Compile a function that kernels call; ``inline``: copy it into each of them."""
    if PLAIN:
        return lambda function: function
    return njit(
        inline="always" if inline else "never", no_cpython_wrapper=True, **_options(rounding)
    )


def _compiled(rounding: frozenset[str], function: Callable[..., Any]) -> Any:
    dispatcher = njit(**_options(rounding))(function)
    dispatcher._cache = KernelCache(function)
    kernels.append(dispatcher)
    return dispatcher


def _options(rounding: frozenset[str]) -> dict[str, Any]:
    return {
        "nogil": True, "error_model": "numpy", "fastmath": set(rounding) or False,
        "no_cfunc_wrapper": True,
    }  # fmt: skip


def _as_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """Plain Python with the arithmetic of a kernel: integers wrap, division by zero is no error."""

    @wraps(function)
    def plain(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args)

    return plain
