"""The command ``weitzman solve``."""

from __future__ import annotations

import sys

import click

from .console import killable, print_lines, progress_bar
from .given_file import instance_argument, read_instance
from .options import POSITIVE, Options, command, json_option, limit_option, threads_option

_ABOUT = """\
Print the value of the search, the box to open first, and the index of every
box.

The index of a box is the reward in hand at which opening the box makes no
difference. The best policy takes the box of highest index among those that can
be opened. It opens that box if the index is above the best reward so far, and
stops otherwise. (When minimizing: lowest index, below the least loss.)"""

_JSON = """\
\b
--json prints one object:
  {"value": 94.325, "gap": 0.0, "status": "exact", "boxes": [
    {"name": "B", "index": [15.0, 914.0]}, ...]}

The true value is within gap of value. status is exact, certified, or coarse
(gap is larger than asked for). index has one entry for each state of the parent,
and one for a root. null stands for an infinite index."""


@command(_ABOUT, short="The value, the first box and all indices.", epilog=_JSON)
@instance_argument
@json_option
@click.option("--explain", is_flag=True, help="Print the policy step by step.")
@limit_option("Rows of the table, or lines of the explanation")
@click.option(
    "--tolerance", type=POSITIVE, default=1e-9, metavar="T",
    help="Error of the value, as a share of the range of rewards (default 1e-9).",
)  # fmt: skip
@click.option("--exact", is_flag=True, help="No error but rounding; slower on deep forests.")
@click.option("--clip", is_flag=True, help="Skip indices below the outside option; faster.")
@threads_option
def solve(options: Options) -> None:
    """Carry out the command."""
    from .._common.text import columns
    from ..engine.solver import solve as run
    from ..policy.words import explain
    from ..show import layout

    if options.json and options.explain:
        raise click.UsageError("--json and --explain do not go together.")
    with progress_bar() as progress, killable():
        forest = read_instance(options)
        solution = run(
            forest,
            tolerance=options.tolerance,
            exact=options.exact,
            clip=options.clip,
            threads=options.threads,
            progress=progress,
        )
    if options.json:
        print_lines(layout.json_lines(solution))
        return
    print_lines(columns(layout.headline(solution)))
    print()
    if options.explain:
        print(explain(solution, lines=options.limit or sys.maxsize))
    else:
        print_lines(solution.index_lines(options.limit or None, hint=" (--limit 0 shows all)"))
