"""The command ``weitzman evaluate``: what the best policy will do, and what would change it."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..engine.evaluation import Evaluation
    from ..engine.solution import Solution
    from ..engine.what_if import BreakEven

import click

from .given_file import instance_argument, read_instance
from .options import Options, command, json_option, limit_option

_ABOUT = """\
Print exactly what the best policy will do: how often each box is opened and
chosen, what is spent, and what is taken in the end. Nothing is simulated.

\b
  opened   how often the box is opened; with copies: how many of them. The
           value falls by this much for each unit that the box costs more.
  chosen   how often the reward of the box is taken in the end
  spend    what is spent on the box on average

--break-even BOX answers: how much could the box cost before opening it no longer
pays? Add --after STATE for a box behind another box."""

_JSON = """\
\b
--json prints one object:
  {"value", "reward", "spend", "openings", "outside", "boxes": [
    {"name", "opened", "chosen": [one for each state], "spend"}, ...]}
With --break-even:
  {"cost", "opened_below", "first_below"}

first_below is null if the search would not begin there even if the box were
free, and "inf" if the search begins there at any price."""


@command(_ABOUT, short="What the best policy will do, exactly.", epilog=_JSON)
@instance_argument
@json_option
@limit_option("Rows of the table")
@click.option("--break-even", metavar="BOX", help="The costs at which the decision on BOX changes.")
@click.option("--after", metavar="STATE", help="What the box before BOX has shown.")
def evaluate(options: Options) -> None:
    """Carry out the command."""
    from ..engine.evaluation import evaluate as run
    from ..engine.solver import solve
    from ..engine.what_if import break_even

    solution = solve(read_instance(options))
    if options.break_even is not None:
        turn = break_even(solution, options.break_even, options.after)
        print(_turn_json(turn) if options.json else _turn(solution, options, turn))
        return
    found = run(solution)
    print(_as_json(found) if options.json else found.table(options.limit))


def _turn(solution: Solution, options: Options, turn: BreakEven) -> str:
    box, after = options.break_even, options.after
    shown = "" if after is None else f" after {after}"
    say = solution.forest.amounts
    lines = [f"{box} costs {say(turn.cost)}{shown} now."]
    if turn.opened_below == math.inf:
        lines.append("Something must be taken, so no cost rules it out by itself.")
    else:
        lines.append(f"From {say(turn.opened_below)} on it is never worth opening{shown}.")
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
        lines.append(f"{begin} as long as {box} costs less than {say(turn.first_below)}.")
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
