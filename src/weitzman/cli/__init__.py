"""The command ``weitzman``: parse, call a public function, print."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.resources import files
from typing import TextIO

from ..errors import JournalError, WeitzmanError
from ._parser import parser

OK, INVALID, USAGE, UNREADABLE, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130

_LONGEST = 2000  # characters of a message
_PATIENCE = 2.0  # seconds without a sign of life before the user is told why

_WHY = """\
Why: every closed box has an index, the reward in hand at which opening it
makes no difference. Open the box of highest index as long as that is above the
best reward so far; otherwise stop."""

_TRY = """\
Try your own numbers:
  weitzman demo --json > boxes.json
  weitzman solve boxes.json --explain"""


class _Misused(WeitzmanError):
    """Options that do not go together."""


# -- commands ----------------------------------------------------------------------------------


def _demo(arguments: argparse.Namespace) -> None:
    from .. import _layout
    from ..explain import describe, explain
    from ..io._json import forest
    from ..io._text import parse
    from ..solve import solve

    text = files("weitzman").joinpath("demo.json").read_bytes()
    if arguments.json:
        print(text.decode().rstrip())
        return
    with _progress(sys.stderr) as progress:
        problem = forest(parse(text))
        solution = solve(problem, progress=progress)
    print(f"{len(problem)} closed boxes:\n")
    _print(f"  {line}" for line in describe(problem).splitlines())
    print("\nStop at any time and take the best reward found, or the outside option, ", end="")
    print(f"{problem.outside:.6g}.\n")
    print(f"The best policy earns {solution.value:.6g} on average:\n")
    _print(f"  {line}" for line in explain(solution).splitlines())
    print(f"\n{_WHY}\n")
    _print(f"  {line}" for line in _layout.indices(solution, 0))
    print(f"\n{_TRY}")


def _solve(arguments: argparse.Namespace) -> None:
    from .. import _layout
    from .._text import columns
    from ..explain import explain
    from ..io import load
    from ..solve import solve

    with _progress(sys.stderr) as progress, _killable():
        forest = load(arguments.file)
        solution = solve(
            forest,
            tolerance=arguments.tolerance,
            exact=arguments.exact,
            clip=arguments.clip,
            threads=arguments.threads,
            progress=progress,
        )
    if arguments.json:
        _print(_layout.json_lines(solution))
        return
    _print(columns(_layout.headline(solution)))
    print()
    if arguments.explain:
        print(explain(solution, lines=arguments.limit or sys.maxsize))
    else:
        _print(_layout.indices(solution, arguments.limit))


def _check(arguments: argparse.Namespace) -> None:
    from .._layout import summary
    from .._text import columns
    from ..io import load

    forest = load(arguments.file)
    print("ok")
    _print(columns(summary(forest)))


def _convert(arguments: argparse.Namespace) -> None:
    from ..io import load, save

    source, target = arguments.source, arguments.target
    if _is_table(source):
        from ..io._table import load_table

        forest = load_table(source, arguments.outside, arguments.minimize)
    elif arguments.outside is not None or arguments.minimize:
        raise _Misused("--outside and --minimize are for reading .csv; other files say it.")
    else:
        forest = load(source)
    if _is_table(target):
        from ..io._table import save_table

        save_table(forest, target)
    else:
        save(forest, target)


def _is_table(path: str) -> bool:
    return path.lower().endswith(".csv")


def _schema(arguments: argparse.Namespace) -> None:
    print(files("weitzman").joinpath("instance.schema.json").read_text("utf-8").rstrip())


# -- what the user sees while it runs ----------------------------------------------------------


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


@contextmanager
def _progress(stream: TextIO, word: str = "solving") -> Iterator[Callable[[int, int], None] | None]:
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
def _killable() -> Iterator[None]:
    """Let Ctrl-C end the process at once: compiled code would not notice it for a while."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# -- how it ends -------------------------------------------------------------------------------


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
        return USAGE
    with suppress(AttributeError):  # a name that the terminal cannot show is no reason to stop
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    _COMMANDS[arguments.command](arguments)
    return OK


def _failed(error: Exception) -> int:
    """Say what went wrong in one line."""
    if isinstance(error, _Misused):
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
    from .._text import printable

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


def _other(module: str, name: str) -> Callable[[argparse.Namespace], None]:
    """A command of a module of its own, which is imported when it is used."""

    def command(arguments: argparse.Namespace) -> None:
        getattr(import_module(f"._{module}", __name__), name)(arguments)

    return command


_COMMANDS: dict[str, Callable[[argparse.Namespace], None]] = {
    "demo": _demo,
    "solve": _solve,
    "evaluate": _other("evaluate", "evaluate"),
    "simulate": _other("compare", "simulate"),
    "compare": _other("compare", "compare"),
    "run": _other("run", "run"),
    "truncate": _other("truncate", "truncate"),
    "chain": _other("chain", "chain"),
    "report": _other("report", "report"),
    "explore": _other("explore", "explore"),
    "replay": _other("replay", "replay"),
    "check": _check,
    "convert": _convert,
    "schema": _schema,
}
