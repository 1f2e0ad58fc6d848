"""The command ``weitzman``: parse, call a public function, print. May import every package."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

from ..errors import JournalError, WeitzmanError
from .backtest_command import backtest
from .common import for_the_shell
from .file_commands import check, completions, convert, schema, template, warmup
from .page_commands import explore, report
from .question_commands import budget, compare, simulate, tornado, truncate
from .search_command import search
from .solve_commands import demo, evaluate, solve

NAME = "weitzman"
OK, INVALID, USAGE, UNREADABLE, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130

_COMPLETE = "_WEITZMAN_COMPLETE"  # set by the shell when it asks for completions
_LONGEST = 2000  # characters of a message

_ABOUT = """\
Search when looking costs something.

Boxes hold rewards that stay hidden until you pay to open the box. What a box
shows may reveal something about the boxes behind it. You may stop at any time
and keep the best reward found. weitzman computes which box to open next, when to
stop, and the expected value of the whole search."""

_EXAMPLES = """\
\b
Start here:
  weitzman demo                          a small example, solved and explained
  weitzman demo --json > boxes.json      the file of the example, to change
  weitzman template -o stages.xlsx       a spreadsheet to fill in
  weitzman solve boxes.json --explain    the best policy in words
  weitzman evaluate boxes.json           what the best policy will do
  weitzman compare boxes.json            how much better it is than simpler strategies
  weitzman search boxes.json --journal run.db    follow the policy box by box
  weitzman report boxes.json -o report.html   a page to read, try out and send
  weitzman explore boxes.json            build and change boxes in the browser
  weitzman demo --json | weitzman solve -     - stands for standard input

\b
Exit codes:
  0    done
  1    the problem is invalid, or its file is damaged
  2    the command was not understood
  3    a file cannot be read or written, or memory runs out
  70   a bug in this program
  130  interrupted"""

_ELSEWHERE = {"explain": "weitzman solve FILE --explain", "run": "weitzman search"}


class CommandList(click.Group):
    """The commands in the order in which they are listed below."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in _ELSEWHERE:
            raise click.UsageError(
                f"No such command {args[0]!r}. Did you mean {_ELSEWHERE[args[0]]}?", ctx
            )
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def _version(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted:
        from .. import __version__

        click.echo(f"{NAME} {__version__}")
        context.exit()


@click.group(
    NAME, cls=CommandList, help=_ABOUT, epilog=_EXAMPLES, invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
)  # fmt: skip
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version,
    help="Show the version.",
)  # fmt: skip
@click.pass_context
def program(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for _command in (
    demo, solve, evaluate, compare, simulate, search, report, explore, budget, tornado,
    truncate, backtest, check, convert, template, schema, completions, warmup,
):  # fmt: skip
    program.add_command(_command)


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
        return _fail(UNREADABLE, "out of memory. weitzman solve takes more with --exact.")
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
    with suppress(OSError, ValueError):
        text = text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
        print(f"weitzman: error: {text}", file=sys.stderr)
    return code


def _drop_output() -> None:
    """Discard the rest of the output, so that no error follows at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
