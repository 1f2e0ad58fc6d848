"""Long work that Ctrl-C ends at once.

Compiled code does not react to signals. So it runs in a thread of its own while the main thread
waits. When the main thread is interrupted, it sets a flag that compiled loops check, and does not
wait for them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import TypeVar

import numpy as np

from .arrays import IntArray

T = TypeVar("T")
_flag: ContextVar[IntArray] = ContextVar("flag")
_WAIT = 0.1  # seconds; on some systems a thread that waits for longer does not hear of signals


class Stopped(Exception):
    """Work was given up because nobody waits for it."""


def flag() -> IntArray:
    """One integer, nonzero when the work under way should end."""
    return _flag.get(np.zeros(1, np.int64))


def check(stop: IntArray) -> None:
    """End the work if it should end."""
    if stop[0]:
        raise Stopped


def interruptible(task: Callable[[], T], *, long: bool = True) -> T:
    """Do a task, in a thread of its own if it may be ``long`` and this is the main thread."""
    if not long or threading.current_thread() is not threading.main_thread():
        return task()
    stop, done = np.zeros(1, np.int64), threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        _flag.set(stop)
        try:
            results.append(task())
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    # a daemon: the interpreter does not wait for it when it ends
    threading.Thread(target=copy_context().run, args=(work,), daemon=True).start()
    try:
        while not done.wait(_WAIT):
            pass
    except BaseException:
        stop[0] = 1
        raise
    if errors:
        raise errors[0]
    return results[0]
