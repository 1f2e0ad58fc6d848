"""The command ``weitzman demo``."""

from __future__ import annotations

import argparse
import sys
from importlib.resources import files
from typing import Any

from .console import print_lines, progress_bar

_WHY = """\
Why: every closed box has an index, the reward in hand at which opening it
makes no difference. Open the box of highest index as long as that is above the
best reward so far; otherwise stop."""

_TRY = """\
Try your own numbers:
  weitzman demo --json > boxes.json
  weitzman solve boxes.json --explain"""


def add_demo_command(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to those of the parser; :func:`demo` carries it out."""
    parser = commands.add_parser("demo", help="solve and explain a small example")
    parser.description = "Solve a small built-in example and explain the best policy in words."
    parser.add_argument("--json", action="store_true", help="print the file of the example instead")


def demo(arguments: argparse.Namespace) -> None:
    """Carry out the command."""
    from ..engine.solver import solve
    from ..files.json_reader import forest
    from ..files.reading import parse
    from ..policy.words import describe, explain

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
    print(f"{problem.amounts(problem.outside)}.\n")
    print(f"The best policy earns {problem.amounts(solution.value)} on average:\n")
    print_lines(f"  {line}" for line in explain(solution).splitlines())
    print(f"\n{_WHY}\n")
    print_lines(f"  {line}" for line in solution.index_lines())
    print(f"\n{_TRY}")
