"""The arguments of the command ``weitzman``, and what ``--help`` says about them."""

from __future__ import annotations

import argparse
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NoReturn

from .chain_command import add_chain_command
from .compare_command import add_compare_commands
from .evaluate_command import add_evaluate_command
from .explore_command import add_explore_command
from .option_types import outside_option, positive, whole
from .replay_command import add_replay_command
from .report_command import add_report_command
from .run_command import add_run_command
from .truncate_command import add_truncate_command

_ABOUT = """\
Search when looking costs something.

Boxes hold rewards that nobody knows before they are opened. Opening a box
costs something and may tell about the boxes behind it; you may stop at any
time with the best reward found. weitzman computes which box to open next, when
to stop, and what the whole search is worth."""

_EXAMPLES = """\
start here:
  weitzman demo                         a small example, solved and explained
  weitzman demo --json > boxes.json     its file, to change as you like
  weitzman solve boxes.json --explain   the best policy in words
  weitzman evaluate boxes.json          what following it will look like
  weitzman compare boxes.json           what simpler strategies would earn
  weitzman run boxes.json --journal run.db   follow it, one box at a time
  weitzman report boxes.json -o report.html  a page to read, try out and send
  weitzman explore boxes.json           build, change and try it in the browser
  weitzman schema                       all that a file may say

exit codes:
  0    done
  1    the instance is invalid, or its file is damaged
  2    the command was not understood
  3    a file cannot be read or written, or memory does not suffice
  70   a bug in this program
  130  interrupted"""

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

_CONVERT = """\
Read an instance from one file and write it to another; the endings of the
names tell how.

  .json     for people and programs; see weitzman schema
  .json.gz  the same, compressed
  .wz       compact columns with checksums, for millions of boxes
  .csv      a table with a row for each box, state of its parent and own state
            (needs pandas). It holds neither objective nor outside option: say
            --minimize and --outside when reading one here; all other commands
            maximize, and take 0."""

_FILE = "instance: .json, .json.gz, .wz, or a table .csv"


class _Parser(argparse.ArgumentParser):
    """Help as it is written above, and errors in one line."""

    def __init__(self, prog: str, **options: Any) -> None:
        options["formatter_class"] = argparse.RawDescriptionHelpFormatter
        super().__init__(prog, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"weitzman: error: {message}. See {self.prog} --help.\n")


def parser() -> argparse.ArgumentParser:
    """The parser; ``command`` of what it returns is the name of the command, None without one."""
    top = _Parser("weitzman", description=_ABOUT, epilog=_EXAMPLES)
    top.add_argument("--version", action="version", version=f"weitzman {_version()}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", dest="command")

    demo = commands.add_parser("demo", help="solve and explain a small example")
    demo.description = "Solve a small built-in example and explain the best policy in words."
    demo.add_argument("--json", action="store_true", help="print the file of the example instead")

    solve = commands.add_parser("solve", help="value, first box and all indices")
    solve.description, solve.epilog = _SOLVE, _JSON
    _solve_options(solve)

    add_evaluate_command(commands)
    add_compare_commands(commands)
    add_run_command(commands)
    add_truncate_command(commands)
    add_chain_command(commands)
    add_report_command(commands)
    add_explore_command(commands)
    add_replay_command(commands)

    check = commands.add_parser("check", help="say whether a file is valid, and its size")
    check.description = "Print ok and the size of the instance, or what is wrong with it."
    check.add_argument("file", metavar="FILE", help=_FILE)

    convert = commands.add_parser("convert", help="from one file format to another")
    convert.description = _CONVERT
    convert.add_argument("source", metavar="FROM", help="file to read")
    convert.add_argument("target", metavar="TO", help="file to write; it is replaced if it exists")
    convert.add_argument(
        "--outside", type=outside_option, metavar="X",
        help="outside option of a .csv (default 0); none: something must be taken",
    )  # fmt: skip
    convert.add_argument("--minimize", action="store_true", help="rewards of a .csv are losses")

    schema = commands.add_parser("schema", help="print the JSON Schema of instance files")
    schema.description = "Print the JSON Schema (draft 2020-12) of the format weitzman/1."
    return top


def _solve_options(solve: argparse.ArgumentParser) -> None:
    solve.add_argument("file", metavar="FILE", help=_FILE)
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


def _version() -> str:
    try:
        return version("weitzman")
    except PackageNotFoundError:
        return "(not installed)"
