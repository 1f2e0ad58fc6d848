"""The command ``weitzman solve``."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import Any

from .console import killable, print_lines, progress_bar
from .instance_file import add_instance, read_instance
from .option_types import positive, whole

_SOLVE = """\
Print the value of the search, the box to open first, and the index of every
box.

The index of a box is the reward in hand at which opening it makes no
difference. The best policy: among the boxes that can be opened take the one of
highest index, and open it if that index is above the best reward so far;
otherwise stop. (When minimizing: lowest index, below the least loss.)"""

_JSON = """\
--json prints one object:
  {"value": 94.325, "gap": 0.0, "status": "exact", "boxes": [
    {"name": "B", "index": [15.0, 914.0]}, ...]}
The true value is within gap of value; status is exact, certified, or coarse
(gap is larger than asked for). index has an entry for each state of the
parent, one for a root; null stands for an infinite one."""


def add_solve_command(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to those of the parser; :func:`solve` carries it out."""
    parser = commands.add_parser("solve", help="value, first box and all indices")
    parser.description, parser.epilog = _SOLVE, _JSON
    _options(parser)


def _options(solve: argparse.ArgumentParser) -> None:
    add_instance(solve)
    form = solve.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, for programs")
    form.add_argument("--explain", action="store_true", help="print the policy step by step")
    solve.add_argument(
        "--limit", type=partial(whole, least=0), default=40, metavar="ROWS",
        help="rows of the table, or lines of the explanation (default 40; 0: all)",
    )  # fmt: skip
    solve.add_argument(
        "--tolerance", type=positive, default=1e-9, metavar="T",
        help="error of the value, as a share of the range of rewards (default 1e-9)",
    )  # fmt: skip
    solve.add_argument(
        "--exact", action="store_true", help="no error but rounding; slower on deep forests"
    )
    solve.add_argument(
        "--clip", action="store_true",
        help="do not compute indices below the outside option (faster)",
    )  # fmt: skip
    solve.add_argument(
        "--threads",
        type=partial(whole, least=1),
        metavar="N",
        help="threads to use (default: all cores)",
    )


def solve(arguments: argparse.Namespace) -> None:
    """Carry out the command."""
    from .._common.text import columns
    from ..engine.solver import solve as run
    from ..policy.words import explain
    from ..show import layout

    with progress_bar(sys.stderr) as progress, killable():
        forest = read_instance(arguments)
        solution = run(
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
        print_lines(solution.index_lines(arguments.limit or None, hint=" (--limit 0 shows all)"))
