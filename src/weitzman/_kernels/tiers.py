"""Plain Python first: a kernel that is not compiled yet does small work without being compiled.

To compile everything takes a minute, to solve a small forest in plain Python a fraction of a
second. So a kernel starts as plain Python, the same source with plain helpers (its *twin*), and is
compiled once that pays: when the work at hand takes a twin about as long as it takes to compile, or
when the twin has taken that long in this process. Compiled or not, the result has the same bits.

Numba asks a kernel for compiled code (``_compile_for_args``) when there is none for the types at
hand. That is where the twin steps in; a call of compiled code takes no detour.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
from numba import config
from numba.core.dispatcher import Dispatcher

from .efforts import STEP

Work = Callable[..., float]

VARIABLE = "WEITZMAN_COMPILE"
_TO_COMPILE, _TO_LOAD = 3e-4, 5e-6  # half the seconds, for each byte of Python's own code
_CHOICES = {"always": 0.0, "never": np.inf, "": 1.0}
_scale = {"patience": 1.0}  # factor of how long a twin may take


def _read_choice() -> None:
    """Heed the environment; where Numba has functions of its own for logarithms, compile."""
    given = os.environ.get(VARIABLE, "")
    if given in _CHOICES:
        _scale["patience"] = 0.0 if config.USING_SVML else _CHOICES[given]
    else:
        warnings.warn(
            f'{VARIABLE} must be "always" or "never", but it is {given!r}: a kernel is compiled '
            "when that pays.",
            RuntimeWarning,
            stacklevel=2,
        )


_read_choice()


def compile_at_once() -> None:
    """From here on every kernel is compiled at its first call."""
    _scale["patience"] = 0.0


class Tiers:
    """Which form of a kernel a call gets, as long as nothing is compiled for its types."""

    def __init__(self, dispatcher: Any, work: Work) -> None:
        self._dispatcher, self._work, self._spent = dispatcher, work, 0.0
        self._compiled = dispatcher._compile_for_args
        self._most: float | None = None  # seconds; known when it is asked for

    def choose(self, *args: Any) -> Callable[..., Any]:
        """The compiled kernel if that pays, else its twin."""
        patience = _scale["patience"]
        if patience and not self._dispatcher.signatures:
            if self._most is None:
                wait = _TO_LOAD if self._dispatcher._cache.has_files() else _TO_COMPILE
                self._most = wait * _length(self._dispatcher, set())
            if self._spent + STEP * self._work(*args) < patience * self._most:
                return self._run
        return self._compiled(*args)  # type: ignore[no-any-return]

    def _run(self, *args: Any) -> Any:
        """Call the twin and count its time."""
        start = time.thread_time()
        try:
            with np.errstate(all="ignore"):
                return _as_returned(twin(self._dispatcher)(*args))
        finally:
            self._spent += time.thread_time() - start


def _length(dispatcher: Any, seen: set[Any]) -> int:
    """Bytes of Python's code in a function and in all that it calls."""
    code, names = dispatcher.py_func.__code__, dispatcher.py_func.__globals__
    seen.add(code)
    called = [names[name] for name in code.co_names if isinstance(names.get(name), Dispatcher)]
    return len(code.co_code) + sum(
        _length(other, seen) for other in called if other.py_func.__code__ not in seen
    )


def _as_returned(x: Any) -> Any:
    """What compiled code would return: numbers of Python rather than of NumPy."""
    if isinstance(x, np.generic):
        return x.item()
    if isinstance(x, tuple):
        parts = [_as_returned(part) for part in x]
        return x._make(parts) if hasattr(x, "_make") else tuple(parts)
    return x


_twins: dict[Any, Callable[..., Any]] = {}  # by function
_plain: dict[str, dict[str, Any]] = {}  # by module: its global names, in plain form


def twin(dispatcher: Any) -> Callable[..., Any]:
    """The source of a compiled function with the plain form of all that it calls."""
    function = dispatcher.py_func
    if function not in _twins:  # threads that come together each make one: no lock, which a fork
        twins, plain = dict(_twins), dict(_plain)  # could leave closed for ever
        _make_twin(function, twins, plain)
        _plain.update(plain)
        _twins.update(twins)
    return _twins[function]


def _make_twin(
    function: Any, twins: dict[Any, Callable[..., Any]], plain: dict[str, dict[str, Any]]
) -> Callable[..., Any]:
    """The twin of a function, and along with it those of all compiled functions of its module."""
    from . import lanes_compiled, lanes_plain

    names = plain.get(function.__module__)
    if names is None:
        names = plain[function.__module__] = dict(function.__globals__)
        for name, value in function.__globals__.items():
            value = getattr(value, "dispatcher", value)  # of a kernel
            if isinstance(value, Dispatcher):
                names[name] = _make_twin(value.py_func, twins, plain)
            elif value is vars(lanes_compiled).get(name) and name in vars(lanes_plain):
                names[name] = getattr(lanes_plain, name)
    if function not in twins:
        twins[function] = FunctionType(function.__code__, names, function.__name__)
    return twins[function]
