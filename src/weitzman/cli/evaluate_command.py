"""The command ``weitzman evaluate``: what the best policy will do, and what would change it."""

from __future__ import annotations

import argparse
import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..engine.evaluation import Evaluation
    from ..engine.solution import Solution
    from ..engine.what_if import BreakEven

from .._common.numbers import number
from .instance_file import add_instance, read_instance

_ABOUT = """\
Say exactly what following the best policy will look like: how often each box
is opened and chosen, what is spent, and what is taken in the end. Nothing is
simulated.

  opened   how often the box is opened (with copies: how many of them). It is
           also what the value loses for each unit that the box costs more.
  chosen   how often its reward is the one taken in the end
  spend    what is spent on it on average

--break-even BOX answers: what would it have to cost before I would not open
it? Say --after STATE for a box behind another one."""

_JSON = """\
--json prints one object:
  {"value", "reward", "spend", "openings", "outside", "boxes": [
    {"name", "opened", "chosen": [one for each state], "spend"}, ...]}
with --break-even: {"cost", "opened_below", "first_below"}, where first_below is
null if the search would not begin there even if it were free, and "inf" if at
any price."""


def add_evaluate_command(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``evaluate`` to the commands of the parser."""
    parser = commands.add_parser("evaluate", help="what the best policy will do, exactly")
    parser.description, parser.epilog = _ABOUT, _JSON
    add_instance(parser)
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.add_argument(
        "--limit", type=int, default=40, metavar="ROWS", help="rows of the table (default 40)"
    )
    parser.add_argument("--break-even", metavar="BOX", help="the costs at which BOX turns")
    parser.add_argument("--after", metavar="STATE", help="what the box before it has shown")


def evaluate(arguments: argparse.Namespace) -> None:
    """Carry the command out."""
    from ..engine.evaluation import evaluate as run
    from ..engine.solver import solve
    from ..engine.what_if import break_even

    solution = solve(read_instance(arguments))
    if arguments.break_even is not None:
        turn = break_even(solution, arguments.break_even, arguments.after)
        print(_turn_json(turn) if arguments.json else _turn(solution, arguments, turn))
        return
    found = run(solution)
    print(_as_json(found) if arguments.json else found.table(arguments.limit))


def _turn(solution: Solution, arguments: argparse.Namespace, turn: BreakEven) -> str:
    box, after = arguments.break_even, arguments.after
    shown = "" if after is None else f" after {after}"
    lines = [f"{box} costs {number(turn.cost)}{shown} now."]
    if turn.opened_below == math.inf:
        lines.append("Something must be taken, so no cost rules it out by itself.")
    else:
        lines.append(f"From {number(turn.opened_below)} on it is never worth opening{shown}.")
    f = solution.forest
    root = f.box(box)
    while f.parent[root] >= 0:
        root = int(f.parent[root])
    begin = f"The search begins with {f.name(root)}"
    if turn.first_below == math.inf:
        lines.append(f"{begin}, whatever {box} costs.")
    elif turn.first_below is None:
        lines.append(f"The search would not begin with {f.name(root)} even if {box} were free.")
    else:
        lines.append(f"{begin} as long as {box} costs less than {number(turn.first_below)}.")
    return "\n".join(lines)


def _turn_json(turn: BreakEven) -> str:
    pairs = {"cost": turn.cost, "opened_below": turn.opened_below, "first_below": turn.first_below}
    return json.dumps({k: "inf" if v == math.inf else v for k, v in pairs.items()})


def _as_json(found: Evaluation) -> str:
    c = found.columns()
    boxes = [
        {"name": name, "opened": opened, "chosen": found.chosen[v].tolist(), "spend": spend}
        for v, (name, opened, spend) in enumerate(
            zip(c["box"], c["opened"], c["spend"], strict=True)
        )
    ]
    head = {k: getattr(found, k) for k in ("value", "reward", "spend", "openings", "outside")}
    return json.dumps({**head, "boxes": boxes})
