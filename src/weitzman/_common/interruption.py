"""Long work that Ctrl-C ends at once, and compiled code that a signal cannot crash.

Compiled code does not react to signals, and Numba runs Python code while it boxes what a kernel
returns: a signal handler that raises there takes the interpreter down. Signal handlers run in the
main thread only. So compiled code runs in a thread of its own while the main thread waits. When the
main thread is interrupted, it sets a flag that compiled loops check, and does not wait for them.
"""

from __future__ import annotations

import _thread
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


def interruptible(task: Callable[[], T]) -> T:
    """Do a task; if this is the main thread, in a thread of its own."""
    if _thread.get_ident() != threading.main_thread().ident:
        return task()
    stop = np.zeros(1, np.int64)
    results: list[T] = []
    errors: list[BaseException] = []
    # A bare lock and a bare thread: Event.wait and Thread.start hold locks in Python code, and an
    # interrupt there ends in "release unlocked lock" instead of KeyboardInterrupt.
    done = _thread.allocate_lock()
    done.acquire()

    def work() -> None:
        _flag.set(stop)
        try:
            results.append(task())
        except BaseException as error:
            errors.append(error)
        finally:
            done.release()

    try:
        _thread.start_new_thread(copy_context().run, (work,))
        while not done.acquire(timeout=_WAIT):
            pass
    except BaseException:
        stop[0] = 1
        raise
    if errors:
        raise errors[0]
    return results[0]
