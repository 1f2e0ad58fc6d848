"""How kernels are compiled: every option of the compiler is set here.

A function that Python calls is a *kernel*, one that only kernels call a *helper*. Sums and products
are carried out as they are written, unless a helper takes `ANY_ORDER`. Division by zero gives an
infinity, as in NumPy, and no kernel holds the interpreter's lock.

Kernels and the compiler never run on the main thread, where a signal handler could raise in the
middle of them (see :mod:`.._common.interruption`).

Compiling takes seconds, so a kernel does small work as plain Python: the same source, not compiled.
The size of the work alone decides (`SMALL`). Kernels that work on vectors (:mod:`.lanes`) are
always compiled; small problems are solved without them. With ``NUMBA_DISABLE_JIT=1`` in the
environment nothing is compiled, for a debugger or for coverage.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba import config, njit, typeof
from numba.extending import overload, typeof_impl

from .._common.interruption import interruptible
from .kernel_cache import KernelCache, kept_in

PLAIN = bool(config.DISABLE_JIT)
STRICT: frozenset[str] = frozenset()
ANY_ORDER = frozenset({"reassoc", "contract"})
VARIABLE = "WEITZMAN_COMPILE"

# Work of at most so many numbers is done by plain Python, which takes a microsecond or so for each.
SMALL = 4_000
_limit = {"small": 0 if os.environ.get(VARIABLE) == "always" else SMALL, "patience": 1}

_large: ContextVar[bool] = ContextVar("large", default=False)

kernels: list[Any] = []  # all that are compiled, once their modules are imported

Function = TypeVar("Function", bound=Callable[..., Any])
Work = Callable[..., float]


def compile_always(always: bool = True) -> None:
    """From here on compile whatever the size, or again by size."""
    _limit["small"] = 0 if always else SMALL


class CompiledCode(NamedTuple):
    """What this process has compiled or read, and the folder that keeps it (None: no folder)."""

    folder: Path | None
    ready: tuple[str, ...]
    missing: tuple[str, ...]


def compiled_code() -> CompiledCode:
    """The state of the kernels in this process."""
    names = {f"{k.py_func.__module__}.{k.py_func.__name__}": k for k in kernels}
    ready = tuple(name for name, kernel in names.items() if kernel.signatures)
    return CompiledCode(kept_in(), ready, tuple(sorted(names.keys() - set(ready))))


def avoid_compiling(times: int) -> None:
    """From here on solve and evaluate in NumPy what is larger by this factor: pages do not wait."""
    _limit["patience"] = times


def patience() -> int:
    """How much larger than usual a problem may be before anything is compiled for it."""
    return _limit["patience"]


@contextmanager
def large_work() -> Iterator[None]:
    """Within, every kernel is compiled: a large problem has small parts, too."""
    before = _large.set(True)
    try:
        yield
    finally:
        _large.reset(before)


def compiles_always() -> bool:
    """Whether everything is compiled whatever the size: as a variable of the environment says."""
    return _limit["small"] == 0


def numbers(*args: Any) -> float:
    """How many numbers there are in arrays, tuples of arrays, and so on."""
    found = 0.0
    for x in args:
        if isinstance(x, np.ndarray):
            found += x.size
        elif isinstance(x, tuple):
            found += numbers(*x)
    return found


def kernel(*, work: Work = numbers) -> Callable[[Function], Function]:
    """Compile a function that Python calls; what was compiled once is kept on disk.

    ``work`` says of how many steps a call is, about, from the same arguments.
    """
    return partial(_compiled, work)


def lane_kernel() -> Callable[[Function], Function]:
    """The same for a function that works on vectors: never plain."""
    return partial(_compiled, None)


def helper(rounding: frozenset[str] = STRICT) -> Callable[[Function], Function]:
    """A function that kernels call: compiled in compiled kernels, plain in plain ones."""
    if PLAIN:
        return lambda function: function

    def known(function: Function) -> Function:
        overload(function, jit_options=_options(rounding), strict=False)(lambda *_: function)
        return function

    return known


def lane_helper() -> Callable[[Function], Function]:
    """A function that only compiled kernels call."""
    if PLAIN:
        return lambda function: function
    return njit(no_cpython_wrapper=True, **_options(STRICT))


class Kernel:
    """A compiled function, called from any thread but run on none that handles signals."""

    __slots__ = ("_work", "dispatcher")

    def __init__(self, dispatcher: Any, work: Work | None) -> None:
        self.dispatcher, self._work = dispatcher, work

    def __call__(self, *args: Any) -> Any:
        work = self._work
        if work is not None and not _large.get() and work(*args) <= _limit["small"]:
            with np.errstate(all="ignore"):
                return self.dispatcher.py_func(*args)
        return interruptible(partial(self.dispatcher, *args))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dispatcher, name)


@typeof_impl.register(Kernel)
def _type_of_kernel(kernel: Kernel, _: Any) -> Any:
    """Inside compiled code a kernel is called directly."""
    return typeof(kernel.dispatcher)


def _compiled(work: Work | None, function: Function) -> Function:
    if PLAIN:
        return _as_numpy(function)
    dispatcher = njit(**_options(STRICT))(function)
    dispatcher._cache = KernelCache(function)
    kernels.append(Kernel(dispatcher, work))
    return kernels[-1]


def _options(rounding: frozenset[str]) -> dict[str, Any]:
    return {
        "nogil": True, "error_model": "numpy", "fastmath": set(rounding) or False,
        "no_cfunc_wrapper": True,
    }  # fmt: skip


def _as_numpy(function: Function) -> Function:
    """Plain Python with the arithmetic of a kernel: integers wrap, division by zero is no error."""

    @wraps(function)
    def plain(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args)

    return plain  # type: ignore[return-value]


# -- loops where NumPy has an expression: those take seconds to compile, for their error messages --
#
# Whole numbers written in a kernel become ``np.int64`` before a helper gets them, since it would be
# compiled once more for each such number.


@helper()
def count_up(n: int) -> np.ndarray:
    """0, 1, ..., n - 1"""
    out = np.empty(n, np.int64)
    for i in range(n):
        out[i] = i
    return out


@helper()
def add_up(x: np.ndarray) -> float:
    """The sum of some numbers, from the first to the last: NumPy has an order of its own."""
    total = 0.0
    for i in range(x.size):
        total += x[i]
    return total


@helper()
def copy(source: np.ndarray, start: int, n: int, target: np.ndarray, at: int) -> None:
    """target[at:at + n] = source[start:start + n]"""
    for i in range(n):
        target[at + i] = source[start + i]
