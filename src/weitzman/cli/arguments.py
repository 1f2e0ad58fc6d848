"""The arguments of the command ``weitzman``, and what ``--help`` says about them."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NoReturn

from .budget_command import add_budget_commands
from .chain_command import add_chain_command
from .check_command import add_check_command
from .compare_command import add_compare_commands
from .convert_command import add_convert_command
from .demo_command import add_demo_command
from .evaluate_command import add_evaluate_command
from .explore_command import add_explore_command
from .replay_command import add_replay_command
from .report_command import add_report_command
from .run_command import add_run_command
from .schema_command import add_schema_command
from .solve_command import add_solve_command
from .template_command import add_template_command
from .truncate_command import add_truncate_command
from .warmup_command import add_warmup_command

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
  weitzman template stages.xlsx         a spreadsheet to fill in
  weitzman schema                       all that a file may say

exit codes:
  0    done
  1    the instance is invalid, or its file is damaged
  2    the command was not understood
  3    a file cannot be read or written, or memory does not suffice
  70   a bug in this program
  130  interrupted"""


class _Parser(argparse.ArgumentParser):
    """Help as it is written above, and errors in one line."""

    def __init__(self, prog: str, **options: Any) -> None:
        options["formatter_class"] = argparse.RawDescriptionHelpFormatter
        super().__init__(prog, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        end = "" if message.endswith("?") else "."
        self.exit(2, f"weitzman: error: {message}{end} See {self.prog} --help.\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Name the command that was perhaps meant."""
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            raise argparse.ArgumentError(
                None, f"there is no command {value!r}{_meant(value, action.choices)}"
            )
        super()._check_value(action, value)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Name the option that was perhaps meant."""
        found, rest = super().parse_known_args(args, namespace)
        wrong = next((x for x in rest if x.startswith("--")), None)
        if wrong is not None:
            known = [x for x in self._option_string_actions if x.startswith("--")]
            word = wrong.partition("=")[0]
            self.error(f"there is no option {word!r}{_meant(word, known)}")
        return found, rest


def parser() -> argparse.ArgumentParser:
    """The parser; ``command`` of what it returns is the name of the command, None without one."""
    top = _Parser("weitzman", description=_ABOUT, epilog=_EXAMPLES)
    top.add_argument("--version", action="version", version=f"weitzman {_version()}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", dest="command")

    add_demo_command(commands)
    add_solve_command(commands)
    add_evaluate_command(commands)
    add_budget_commands(commands)
    add_compare_commands(commands)
    add_run_command(commands)
    add_truncate_command(commands)
    add_chain_command(commands)
    add_report_command(commands)
    add_explore_command(commands)
    add_replay_command(commands)

    add_check_command(commands)
    add_convert_command(commands)
    add_template_command(commands)
    add_schema_command(commands)
    add_warmup_command(commands)
    return top


def _meant(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _version() -> str:
    try:
        return version("weitzman")
    except PackageNotFoundError:
        return "(not installed)"
