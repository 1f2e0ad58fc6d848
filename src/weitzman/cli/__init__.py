"""The command ``weitzman``: parse, call a public function, print. May import every room."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from ..errors import JournalError, WeitzmanError
from .arguments import parser
from .console import Misused

OK, INVALID, USAGE, UNREADABLE, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130

_LONGEST = 2000  # characters of a message


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    argv : list of str, optional
        The arguments after the name of the command; those of the process by default.
    """
    try:
        code = _run(argv)
        print(end="", flush=True)
        return code
    except KeyboardInterrupt:
        return _fail(INTERRUPTED, "interrupted")
    except BrokenPipeError:  # the reader has seen enough
        _drop_output()
        return OK
    except Exception as error:
        return _failed(error)


def _run(argv: Sequence[str] | None) -> int:
    try:
        arguments = parser().parse_args(argv)
    except SystemExit as stop:  # argparse has said why
        return int(stop.code or OK)
    if arguments.command is None:
        parser().print_help()
        return OK
    with suppress(AttributeError):  # a name that the terminal cannot show is no reason to stop
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    _carry_out(arguments)
    return OK


def _failed(error: Exception) -> int:
    """Say what went wrong in one line."""
    if isinstance(error, Misused):
        return _fail(USAGE, str(error))
    if isinstance(error, WeitzmanError):
        cause = error.__cause__
        unreadable = isinstance(error, JournalError) or isinstance(cause, OSError | MemoryError)
        return _fail(UNREADABLE if unreadable else INVALID, str(error))
    if isinstance(error, OSError):
        _drop_output()
        return _fail(UNREADABLE, f"the output cannot be written: {error.strerror or error}.")
    if isinstance(error, MemoryError):
        return _fail(UNREADABLE, "memory does not suffice. Try --clip, or leave out --exact.")
    if os.environ.get("WEITZMAN_DEBUG"):
        raise error
    return _fail(
        BUG,
        f"{type(error).__name__}: {error}. This is a bug: please report it with the command and "
        f"the file. WEITZMAN_DEBUG=1 shows where it happened.",
    )


def _fail(code: int, message: str) -> int:
    from .._common.text import printable

    text = printable(message)
    if len(text) > _LONGEST:
        text = text[:_LONGEST] + "..."
    with suppress(OSError, ValueError):
        print(f"weitzman: error: {text}", file=sys.stderr)
    return code


def _drop_output() -> None:
    """Send the rest of the output nowhere, so that nothing complains at the end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _carry_out(arguments: argparse.Namespace) -> None:
    """Each command is a function of its own module, which is imported when it is used."""
    name = arguments.command
    module = {"simulate": "compare", "tornado": "budget"}.get(name, name)
    getattr(import_module(f".{module}_command", __name__), name)(arguments)
