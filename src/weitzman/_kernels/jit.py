"""How kernels are compiled: every option of the compiler is set here.

A function that Python calls is a *kernel*, one that only kernels call a *helper*. Sums and products
are carried out as they are written, unless a helper takes `ANY_ORDER`. Division by zero gives an
infinity, as in NumPy, and no kernel holds the interpreter's lock.

Kernels and the compiler never run on the main thread, where a signal handler could raise in the
middle of them (see :mod:`.._common.interruption`).

A kernel that is not compiled yet does small work as plain Python (see :mod:`.tiers`). With
``NUMBA_DISABLE_JIT=1`` in the environment nothing is compiled: kernels and helpers are then plain
Python, for a debugger or for coverage, and slow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np
from numba import config, njit, typeof
from numba.extending import typeof_impl

from .._common.interruption import interruptible
from .efforts import numbers
from .kernel_cache import KernelCache
from .tiers import Tiers, Work

PLAIN = bool(config.DISABLE_JIT)
STRICT: frozenset[str] = frozenset()
ANY_ORDER = frozenset({"reassoc", "contract"})

kernels: list[Any] = []  # all that are compiled, once their modules are imported

Decorator = Callable[[Callable[..., Any]], Any]


def kernel(*, twin: bool = True, work: Work = numbers) -> Decorator:
    """Compile a function that Python calls; what was compiled once is kept on disk.

    ``twin``: as plain Python it gives the same bits, and takes about as many steps as ``work``
    says, a function of the same arguments (see :mod:`.efforts`).
    """
    return _as_numpy if PLAIN else partial(_compiled, twin, work)


class Kernel:
    """A compiled function, called from any thread but run on none that handles signals."""

    __slots__ = ("dispatcher",)

    def __init__(self, dispatcher: Any) -> None:
        self.dispatcher = dispatcher

    def __call__(self, *args: Any) -> Any:
        return interruptible(partial(self.dispatcher, *args))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dispatcher, name)


@typeof_impl.register(Kernel)  # type: ignore[untyped-decorator]
def _type_of_kernel(kernel: Kernel, _: Any) -> Any:
    """Inside compiled code a kernel is called directly."""
    return typeof(kernel.dispatcher)


def helper(rounding: frozenset[str] = STRICT, *, inline: bool = False) -> Decorator:
    """Compile a function that kernels call; ``inline``: copy it into each of them."""
    if PLAIN:
        return lambda function: function
    return njit(
        inline="always" if inline else "never", no_cpython_wrapper=True, **_options(rounding)
    )


def _compiled(twin: bool, work: Work, function: Callable[..., Any]) -> Any:
    dispatcher = njit(**_options(STRICT))(function)
    dispatcher._cache = KernelCache(function)
    if twin:
        dispatcher._compile_for_args = Tiers(dispatcher, work).choose
    kernels.append(Kernel(dispatcher))
    return kernels[-1]


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
