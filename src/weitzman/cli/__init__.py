"""The command ``weitzman``: parse, call a public function, print. May import every room."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

from ..errors import JournalError, WeitzmanError
from .command_list import NAME, program
from .console import for_the_shell

OK, INVALID, USAGE, UNREADABLE, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130

_COMPLETE = "_WEITZMAN_COMPLETE"  # set by the shell when it asks for completions
_LONGEST = 2000  # characters of a message


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    argv : list of str, optional
        The arguments after the name of the command; those of the process by default.
    """
    try:
        code = _run(list(sys.argv[1:] if argv is None else argv))
        print(end="", flush=True)
        return code
    except KeyboardInterrupt:
        return _fail(INTERRUPTED, "interrupted")
    except BrokenPipeError:  # the reader has seen enough
        _drop_output()
        return OK
    except Exception as error:
        return _failed(error)


def _run(arguments: list[str]) -> int:
    if instruction := os.environ.get(_COMPLETE):
        from click.shell_completion import shell_complete

        return shell_complete(program, {}, NAME, _COMPLETE, instruction)
    with suppress(AttributeError):  # a name that the terminal cannot show is no reason to stop
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        with program.make_context(NAME, arguments) as context:
            program.invoke(context)
    except click.exceptions.Exit as end:  # after --help and --version
        return end.exit_code
    return OK


def _failed(error: Exception) -> int:
    """Say what went wrong in one line."""
    if isinstance(error, click.UsageError):
        where = NAME if error.ctx is None else error.ctx.command_path
        return _fail(USAGE, f"{error.format_message()} See {where} --help.")
    if isinstance(error, WeitzmanError):
        cause = error.__cause__
        unreadable = isinstance(error, JournalError) or isinstance(cause, OSError | MemoryError)
        return _fail(UNREADABLE if unreadable else INVALID, for_the_shell(str(error)))
    if isinstance(error, OSError):
        _drop_output()
        return _fail(UNREADABLE, f"the output cannot be written: {error.strerror or error}.")
    if isinstance(error, MemoryError):
        return _fail(
            UNREADABLE, "out of memory. weitzman solve takes less with --clip and more "
            "with --exact.",
        )  # fmt: skip
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
    """Discard the rest of the output, so that no error follows at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
