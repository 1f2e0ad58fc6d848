"""What every command may use: misuse, output, progress, Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

from ..errors import WeitzmanError

_PATIENCE = 2.0  # seconds without a sign of life before the user is told why


class Misused(WeitzmanError):
    """Options that do not go together."""


def print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


@contextmanager
def progress_bar(
    stream: TextIO, word: str = "solving"
) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on a terminal once a second has passed; nothing elsewhere."""
    if not stream.isatty():
        yield None
        return
    start = last = time.monotonic()
    most = 0

    def explain_silence() -> None:
        nonlocal last
        last = time.monotonic()
        stream.write("\rcompiling for this machine, the first time only ...")
        stream.flush()

    silence = threading.Timer(_PATIENCE, explain_silence)
    silence.daemon = True
    silence.start()

    def show(done: int, total: int) -> None:
        nonlocal last, word, most
        silence.cancel()
        if done < most // 2:  # solving starts again if the error was guessed too large
            word, most = "refining", 0
        most = max(most, done)
        now = time.monotonic()
        if now - start > 1 and now - last > 0.1:
            last = now
            share = done / max(total, 1)
            stream.write(f"\r{word} [{'#' * int(30 * share):<30}] {100 * share:3.0f}%")
            stream.flush()

    try:
        yield show
    finally:
        silence.cancel()
        if last > start:
            stream.write("\r" + " " * 60 + "\r")
            stream.flush()


@contextmanager
def killable() -> Iterator[None]:
    """Let Ctrl-C end the process at once: compiled code would not notice it for a while."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
