"""The command ``weitzman``: parse, call a public function, print. May import every room."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.resources import files

from ..errors import JournalError, WeitzmanError
from .arguments import parser
from .console import Misused, killable, print_lines, progress_bar

OK, INVALID, USAGE, UNREADABLE, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130

_LONGEST = 2000  # characters of a message

_WHY = """\
Why: every closed box has an index, the reward in hand at which opening it
makes no difference. Open the box of highest index as long as that is above the
best reward so far; otherwise stop."""

_TRY = """\
Try your own numbers:
  weitzman demo --json > boxes.json
  weitzman solve boxes.json --explain"""


# -- commands ----------------------------------------------------------------------------------


def _demo(arguments: argparse.Namespace) -> None:
    from ..engine.solver import solve
    from ..files.json_reader import forest
    from ..files.reading import parse
    from ..policy.words import describe, explain
    from ..show import layout

    text = files("weitzman.files").joinpath("demo.json").read_bytes()
    if arguments.json:
        print(text.decode().rstrip())
        return
    with progress_bar(sys.stderr) as progress:
        problem = forest(parse(text))
        solution = solve(problem, progress=progress)
    print(f"{len(problem)} closed boxes:\n")
    print_lines(f"  {line}" for line in describe(problem).splitlines())
    print("\nStop at any time and take the best reward found, or the outside option, ", end="")
    print(f"{problem.outside:.6g}.\n")
    print(f"The best policy earns {solution.value:.6g} on average:\n")
    print_lines(f"  {line}" for line in explain(solution).splitlines())
    print(f"\n{_WHY}\n")
    print_lines(f"  {line}" for line in layout.indices(solution, 0))
    print(f"\n{_TRY}")


def _solve(arguments: argparse.Namespace) -> None:
    from .._common.text import columns
    from ..engine.solver import solve
    from ..files.instances import load
    from ..policy.words import explain
    from ..show import layout

    with progress_bar(sys.stderr) as progress, killable():
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
        print_lines(layout.json_lines(solution))
        return
    print_lines(columns(layout.headline(solution)))
    print()
    if arguments.explain:
        print(explain(solution, lines=arguments.limit or sys.maxsize))
    else:
        print_lines(layout.indices(solution, arguments.limit))


def _check(arguments: argparse.Namespace) -> None:
    from .._common.text import columns
    from ..files.instances import load
    from ..show.layout import summary

    forest = load(arguments.file)
    print("ok")
    print_lines(columns(summary(forest)))


def _convert(arguments: argparse.Namespace) -> None:
    from ..files.instances import load, save

    source, target = arguments.source, arguments.target
    if _is_table(source):
        from ..files.tables import load_table

        forest = load_table(source, arguments.outside, arguments.minimize)
    elif arguments.outside is not None or arguments.minimize:
        raise Misused("--outside and --minimize are for reading .csv; other files say it.")
    else:
        forest = load(source)
    if _is_table(target):
        from ..files.tables import save_table

        save_table(forest, target)
    else:
        save(forest, target)


def _is_table(path: str) -> bool:
    return path.lower().endswith(".csv")


def _schema(arguments: argparse.Namespace) -> None:
    print(files("weitzman.files").joinpath("instance.schema.json").read_text("utf-8").rstrip())


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


def _other(module: str, name: str) -> Callable[[argparse.Namespace], None]:
    """A command of a module of its own, which is imported when it is used."""

    def command(arguments: argparse.Namespace) -> None:
        getattr(import_module(f".{module}_command", __name__), name)(arguments)

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
