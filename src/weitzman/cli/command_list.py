"""All commands in one program, and what ``weitzman --help`` says about them."""

from __future__ import annotations

from typing import Any

import click

from .backtest_command import backtest
from .file_commands import check, completions, convert, schema, template, warmup
from .page_commands import explore, report
from .question_commands import budget, compare, simulate, tornado, truncate
from .search_command import search
from .solve_commands import demo, evaluate, solve

NAME = "weitzman"

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


def _help(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _options() -> list[click.Parameter]:
    common: dict[str, Any] = {"is_flag": True, "expose_value": False, "is_eager": True}
    return [click.Option(["--version"], callback=_version, help="Show the version.", **common)]


program = CommandList(
    NAME, help=_ABOUT, epilog=_EXAMPLES, params=_options(), invoke_without_command=True,
    callback=click.pass_context(_help), subcommand_metavar="COMMAND [ARGS]...",
)  # fmt: skip

for _command in (
    demo, solve, evaluate, compare, simulate, search, report, explore, budget, tornado,
    truncate, backtest, check, convert, template, schema, completions, warmup,
):  # fmt: skip
    program.add_command(_command)
