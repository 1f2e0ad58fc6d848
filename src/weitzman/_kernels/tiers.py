"""Plain Python first: a kernel that is not compiled yet does small work without being compiled.

To compile everything takes a minute, to solve a small forest in plain Python a fraction of a
second. So a kernel starts as plain Python, the same source with plain helpers (its *twin*), and is
compiled once that pays: when the work at hand is large, or when this process has spent enough time
in twins. Compiled or not, the result has the same bits.

Numba asks a kernel for compiled code (``_compile_for_args``) when there is none for the types at
hand yet. That is where the twin steps in; a call of compiled code takes no detour.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from threading import RLock
from types import FunctionType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

Work = Callable[..., float]

VARIABLE = "WEITZMAN_PLAIN_SECONDS"
_SECONDS = 1.0  # of plain Python, rather than compile
_KEPT_SECONDS = 0.1  # the same where compiled code lies on disk
_STEP = 1e-5  # seconds for a step of work


def numbers(*args: Any) -> float:
    """How many numbers there are in arrays, tuples of arrays, and so on."""
    found = 0.0
    for x in args:
        found += x.size if isinstance(x, np.ndarray) else numbers(*x) if isinstance(x, tuple) else 1
    return found


class _Budget:
    """How many seconds a kernel may spend in plain Python rather than be compiled."""

    def __init__(self) -> None:
        given = os.environ.get(VARIABLE)
        self.seconds = float(given) if given else _SECONDS
        self.kept_seconds = float(given) if given else _KEPT_SECONDS


_budget = _Budget()


def compile_at_once() -> None:
    """From here on every kernel is compiled at its first call."""
    _budget.seconds = _budget.kept_seconds = 0.0


class Tiers:
    """Which form of a kernel a call gets, as long as nothing is compiled for its types."""

    def __init__(self, dispatcher: Any, work: Work) -> None:
        self._dispatcher, self._work, self._spent = dispatcher, work, 0.0
        self._compiled = dispatcher._compile_for_args

    def choose(self, *args: Any) -> Callable[..., Any]:
        """The compiled kernel if that pays, else its twin."""
        kept = self._dispatcher._cache.has_files()
        least = _budget.kept_seconds if kept else _budget.seconds
        if self._dispatcher.signatures or self._spent + _STEP * self._work(*args) >= least:
            return self._compiled(*args)  # type: ignore[no-any-return]
        return self._run

    def _run(self, *args: Any) -> Any:
        """Call the twin and count its time."""
        start = time.thread_time()
        try:
            with np.errstate(all="ignore"):
                return _as_returned(twin(self._dispatcher)(*args))
        finally:
            self._spent += time.thread_time() - start


def _as_returned(x: Any) -> Any:
    """What compiled code would return: numbers of Python rather than of NumPy."""
    if isinstance(x, np.generic):
        return x.item()
    if isinstance(x, tuple):
        parts = [_as_returned(part) for part in x]
        return x._make(parts) if hasattr(x, "_make") else tuple(parts)
    return x


_lock = RLock()
_twins: dict[Any, Callable[..., Any]] = {}  # by function
_plain: dict[str, dict[str, Any]] = {}  # by module: its global names, in plain form


def twin(dispatcher: Any) -> Callable[..., Any]:
    """The source of a compiled function with the plain form of all that it calls."""
    function = dispatcher.py_func
    with _lock:
        if function not in _twins:
            names = _plain_names(function)
            _twins[function] = FunctionType(function.__code__, names, function.__name__)
        return _twins[function]


def _plain_names(function: Any) -> dict[str, Any]:
    """The global names of a function, with twins of what is compiled."""
    from . import lanes_compiled, lanes_plain

    names = _plain.get(function.__module__)
    if names is None:
        names = _plain[function.__module__] = dict(function.__globals__)
        for name, value in function.__globals__.items():
            if isinstance(value, Dispatcher):
                names[name] = twin(value)
            elif value is vars(lanes_compiled).get(name) and name in vars(lanes_plain):
                names[name] = getattr(lanes_plain, name)
    return names
