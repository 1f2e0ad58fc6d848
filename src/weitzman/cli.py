"""The command ``weitzman``: parse, call a public function, print."""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import TYPE_CHECKING, TextIO

from .errors import InvalidFile, WeitzmanError

if TYPE_CHECKING:
    from .model import Forest

OK, INVALID, USAGE, UNREADABLE, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130

_ABOUT = """\
Search when looking costs something.

Boxes hold rewards that nobody knows before they are opened. Opening a box costs something and may
tell about the boxes behind it; you may stop at any time with the best reward found. weitzman
computes which box to open next, when to stop, and what the whole search is worth."""

_EXAMPLES = """\
start here:
  weitzman demo                         a small example, solved and explained
  weitzman demo --json > boxes.json     its file, to change as you like
  weitzman solve boxes.json --explain   the best policy in words
  weitzman schema                       all that a file may say

exit codes:
  0    done
  1    the instance is invalid, or its file is damaged
  2    the command was not understood
  3    a file cannot be read or written, or memory does not suffice
  70   a bug in this program
  130  interrupted"""

_SOLVE = """\
Print the value of the search, the box to open first, and the index of every box.

The index of a box is the reward in hand at which opening it makes no difference. The best policy:
open the box of highest index among those that can be opened, as long as that index is above the
best reward so far; otherwise stop. (When minimising: lowest index, below the least loss.)"""

_CONVERT = """\
Read an instance from one file and write it to another; the endings of the names tell how.

  .json     for people and programs; see weitzman schema
  .json.gz  the same, compressed
  .wz       compact columns with checksums, for millions of boxes
  .csv      a table with a row for each transition (needs pandas); it does not hold the objective
            and the outside option, so give --minimise and --outside when reading one"""

_NEXT = """\
Why: every closed box has an index, the reward in hand at which opening it makes no difference. Open
the box of highest index as long as that is above the best reward so far; otherwise stop."""

_TRY = """\
Try your own numbers:
  weitzman demo --json > boxes.json
  weitzman solve boxes.json --explain"""


# -- commands ----------------------------------------------------------------------------------


def _demo(arguments: argparse.Namespace) -> None:
    from . import _report
    from ._io_json import forest
    from ._io_text import parse
    from .explain import describe, explain
    from .solve import solve

    text = files("weitzman").joinpath("demo.json").read_bytes()
    if arguments.json:
        print(text.decode().rstrip())
        return
    problem = forest(parse(text))
    solution = solve(problem)
    print(f"{len(problem)} closed boxes:\n")
    _print(f"  {line}" for line in describe(problem).splitlines())
    print("\nStop at any time and keep the best reward found, or 0 if nothing was opened.\n")
    print(f"The best policy earns {solution.value:.6g} on average:\n")
    _print(f"  {line}" for line in explain(solution).splitlines())
    print(f"\n{_NEXT}\n")
    _print(f"  {line}" for line in _report.indices(solution, 0))
    print(f"\n{_TRY}")


def _solve(arguments: argparse.Namespace) -> None:
    from . import _report
    from .explain import explain
    from .io import load
    from .solve import solve

    forest = load(arguments.file)
    with _progress(sys.stderr) as progress, _killable():
        solution = solve(
            forest,
            tolerance=arguments.tolerance,
            exact=arguments.exact,
            clip=arguments.clip,
            threads=arguments.threads,
            progress=progress,
        )
    if arguments.json:
        _print(_report.json_lines(solution))
        return
    _print(_report.columns(_report.headline(solution)))
    print()
    if arguments.explain:
        print(explain(solution, lines=arguments.limit or sys.maxsize))
    else:
        _print(_report.indices(solution, arguments.limit))


def _check(arguments: argparse.Namespace) -> None:
    from ._report import columns, summary
    from .io import load

    forest = load(arguments.file)
    print("ok")
    _print(columns(summary(forest)))


def _convert(arguments: argparse.Namespace) -> None:
    from .io import load, save

    if _is_table(arguments.source):
        forest = _load_table(arguments.source, arguments.outside, arguments.minimise)
    elif arguments.outside is not None or arguments.minimise:
        raise InvalidFile("--outside and --minimise are for .csv only: other files say it.")
    else:
        forest = load(arguments.source)
    if _is_table(arguments.target):
        _save_table(forest, arguments.target)
    else:
        save(forest, arguments.target)


def _schema(arguments: argparse.Namespace) -> None:
    print(files("weitzman").joinpath("instance.schema.json").read_text("utf-8").rstrip())
