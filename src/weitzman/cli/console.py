"""What every command may use: output, progress, Ctrl-C, and messages in the words of the shell."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click

_PATIENCE = 2.0  # seconds without a sign of life before the user is told why
_SOON, _OFTEN = 1.0, 0.1  # seconds before a bar is drawn, and between two drawings

_SAID = {
    'start the search with rewards="nearest" or with edges of bins': (
        "start the search with --rewards nearest, or with edges of bins such as --rewards 0,10,20"
    ),
    "End it first, or share the search with Search.join under another name; if it is gone, use "
    "take_over=True": "End it first",
}


def print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def as_json(x: Any) -> str:
    """JSON with null in place of numbers that are not finite."""
    from ..show.page import finite

    return json.dumps(finite(x), allow_nan=False)


@contextmanager
def progress_bar(word: str = "solving") -> Iterator[Callable[[int, int], None] | None]:
    """A bar on a terminal once a second has passed, wiped at the end; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    drawn = _Drawn(word)
    try:
        yield drawn.show
    finally:
        drawn.wipe()


class _Drawn:
    """A bar of Click, drawn by hand: Click hides the cursor, and Ctrl-C would not bring it back."""

    def __init__(self, word: str) -> None:
        self._bar, self._longest = _bar(word), 0
        self._start = self._last = time.monotonic()
        self._silence = threading.Timer(_PATIENCE, self._explain_silence)
        self._silence.daemon = True
        self._silence.start()

    def _explain_silence(self) -> None:
        self._draw("compiling for this machine, the first time only ...")

    def show(self, done: int, total: int) -> None:
        self._silence.cancel()
        bar, now = self._bar, time.monotonic()
        if done < bar.pos // 2:  # solving starts again if the error was guessed too large
            bar = self._bar = _bar("refining")
        bar.length = max(total, 1)
        bar.update(max(done - bar.pos, 0))
        if now - self._start > _SOON and now - self._last > _OFTEN:
            self._last = now
            self._draw(bar.format_progress_line())

    def _draw(self, text: str) -> None:
        self._longest = max(self._longest, len(text))
        sys.stderr.write(f"\r{text:<{self._longest}}")
        sys.stderr.flush()

    def wipe(self) -> None:
        self._silence.cancel()
        if self._longest:
            sys.stderr.write("\r" + " " * self._longest + "\r")
            sys.stderr.flush()


def _bar(word: str) -> Any:
    return click.progressbar(length=1, label=word, file=sys.stderr, hidden=True, width=30)


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


def for_the_shell(message: str) -> str:
    """A message with options of the command in place of those of Python."""
    for python, shell in _SAID.items():
        message = message.replace(python, shell)
    return message
