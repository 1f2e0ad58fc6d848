"""The commands ``weitzman demo``, ``solve`` and ``evaluate``: the best policy and what it does."""

from __future__ import annotations

import math
import sys
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import click

from .._common.text import cell, clean
from . import common
from .common import Options, command

if TYPE_CHECKING:
    from ..engine.evaluation import Evaluation
    from ..engine.solution import Solution
    from ..engine.what_if import BreakEven

_WHY = """\
Why: every closed box has an index, the reward in hand at which opening it
makes no difference. Open the box with the highest index as long as that is
above the best reward so far; otherwise stop."""

_TRY = """\
Try your own numbers:
  weitzman demo --json > boxes.json
  weitzman solve boxes.json --explain"""


_SOLVE_JSON = """\
\b
--json prints one object:
  {"value": 94.325, "gap": 0.0, "status": "exact", "boxes": [
    {"name": "B", "index": [15.0, 914.0]}, ...]}

The true value is within gap of value. status is exact, certified, or coarse
(gap is larger than requested). index has one entry for each state of the parent,
and one for a root. null stands for an infinite index."""


_EVALUATE_JSON = """\
\b
--json prints one object:
  {"value", "reward", "spend", "openings", "outside", "boxes": [
    {"name", "opened", "chosen": [one for each state], "spend"}, ...]}
With --break-even:
  {"cost", "opened_below", "first_below"}

first_below is null if the search would not begin there even if the box were
free, and "inf" if the search begins there at any price."""


@command(short="A small example, solved and explained.")
@click.option("--json", is_flag=True, help="Print the file of the example instead.")
def demo(options: Options) -> None:
    """Solve a small built-in example and explain the best policy in words."""
    from ..engine.solver import solve
    from ..files.documents import parse
    from ..files.json_format import forest
    from ..policy.words import describe, explain

    text = files("weitzman.files").joinpath("demo.json").read_bytes()
    if options.json:
        print(text.decode().rstrip())
        return
    problem = forest(parse(text))
    solution = solve(problem)
    print(f"{len(problem)} closed boxes:\n")
    common.print_lines(f"  {line}" for line in describe(problem).splitlines())
    print("\nStop at any time and take the best reward found, or the outside option, ", end="")
    print(f"{problem.amounts(problem.outside)}.\n")
    print(f"The best policy earns {problem.amounts(solution.value)} on average:\n")
    common.print_lines(f"  {line}" for line in explain(solution).splitlines())
    print(f"\n{_WHY}\n")
    common.print_lines(f"  {line}" for line in solution.index_lines())
    print(f"\n{_TRY}")


@command(short="The value, the first box and all indices.", epilog=_SOLVE_JSON)
@common.instance_argument
@common.json_option
@click.option("--explain", is_flag=True, help="Print the policy step by step.")
@common.limit_option("Rows of the table, or lines of the explanation")
@click.option(
    "--tolerance", type=common.POSITIVE, default=1e-9, metavar="T",
    help="Largest error of the value, relative to the range of rewards (default 1e-9).",
)  # fmt: skip
@click.option("--exact", is_flag=True, help="No error but rounding; slower on deep forests.")
@common.threads_option
def solve(options: Options) -> None:
    """Print the value of the search, the box to open first, and the index of every
    box.

    The index of a box is the reward in hand at which opening the box makes no
    difference. The best policy opens the box with the highest index among those that
    can be opened if that index is above the best reward so far, and stops otherwise.
    (When minimizing: the lowest index, below the least loss.)
    """
    from .._common.text import columns
    from ..engine.solver import solve as run
    from ..policy.words import explain

    if options.json and options.explain:
        raise click.UsageError("--json and --explain do not go together.")
    with common.progress_bar() as progress, common.killable():
        forest = common.read_instance(options)
        solution = run(
            forest, tolerance=options.tolerance, exact=options.exact, threads=options.threads,
            progress=progress,
        )  # fmt: skip
    if options.json:
        status = solution.status.name.lower()
        head = {"value": solution.value, "gap": solution.gap, "status": status}
        # one line for each box: a million boxes never stand in memory as one text
        print(common.as_json(head)[:-1] + ', "boxes": [')
        for v in range(len(forest)):
            box = {"name": forest.name(v), "index": solution.indices(v).tolist()}
            print(common.as_json(box) + "," * (v < len(forest) - 1))
        print("]}")
        return
    common.print_lines(columns(headline(solution)))
    print()
    if options.explain:
        print(explain(solution, lines=options.limit or sys.maxsize))
    else:
        hint = " (--limit 0 shows all)"
        common.print_lines(solution.index_lines(options.limit or None, hint=hint))


def headline(solution: Solution) -> list[tuple[str, str]]:
    """The value, and what to open first."""
    from ..engine.solution import Status

    f, gap = solution.forest, solution.gap
    error = "exact up to rounding" if gap == 0 else f"error at most {f.amounts.margin(gap)}"
    if solution.status is Status.DISCRETIZED:
        error += ": distributions were made discrete"
    rows = [("value", f"{f.amounts(solution.value, gap)}   ({error})")]
    if f.factors is not None:
        rows.append(("meaning", "payoffs are discounted to the start"))
    if f.risk_tolerance is not None:
        tolerance = f.amounts(f.risk_tolerance)
        rows.append(("meaning", f"certainty equivalent, risk tolerance {tolerance}"))
    if f.prizes > 1:
        text = f"expected sum of {f.prizes} prizes, one from each tree, less costs; doing nothing"
        rows.append(("meaning", f"{text} gives {f.amounts(f.prizes * f.outside)}"))
    first = solution.first_box
    if first is None:
        text = f"nothing: take the outside option, {f.amounts(f.outside)}"
    else:
        text = f"{cell(first)}   (index {f.amounts(solution.indices(first)[0])})"
    rows.append(("open first", text))
    if solution.status is Status.COARSE:
        text = "the error is larger than requested: --exact leaves only rounding errors"
        rows.append(("note", text))
    return rows


@command(short="What the best policy will do, exactly.", epilog=_EVALUATE_JSON)
@common.instance_argument
@common.json_option
@common.limit_option("Rows of the table")
@click.option("--break-even", metavar="BOX", help="The costs at which the decision on BOX changes.")
@click.option("--after", metavar="STATE", help="What the box before BOX has shown.")
def evaluate(options: Options) -> None:
    """Print exactly what the best policy will do: how often each box is opened and
    chosen, what is spent, and what is taken in the end. Nothing is simulated.

    \b
      opened   how often the box is opened; with copies: how many of them. The
               value falls by this much for each unit that the box costs more.
      chosen   how often the reward of the box is taken in the end
      spend    what is spent on the box on average

    --break-even BOX answers: how much could the box cost before opening it no longer
    pays? Add --after STATE for a box behind another box.
    """
    from ..engine.evaluation import evaluate as run
    from ..engine.solver import solve
    from ..engine.what_if import break_even

    solution = solve(common.read_instance(options))
    if options.break_even is None:
        found = run(solution)
        print(common.as_json(_evaluated(found)) if options.json else found.table(options.limit))
        return
    turn = break_even(solution, options.break_even, options.after)
    if options.json:
        numbers = {key: getattr(turn, key) for key in ("cost", "opened_below", "first_below")}
        print(common.as_json({k: "inf" if v == math.inf else v for k, v in numbers.items()}))
    else:
        print(_turn(solution, options, turn))


def _turn(solution: Solution, options: Options, turn: BreakEven) -> str:
    box, f, say = options.break_even, solution.forest, solution.forest.amounts
    shown = "" if options.after is None else f" after {options.after}"
    lines = [f"{box} costs {say(turn.cost)}{shown} now."]
    if turn.opened_below == math.inf:
        lines.append("Something must be taken, so no cost rules it out by itself.")
    else:
        lines.append(f"From {say(turn.opened_below)} on it is never worth opening{shown}.")
    root = f.box(box)
    while f.parent[root] >= 0:
        root = int(f.parent[root])
    name = f.name(root)
    begin = f"The search begins with {name}"
    if turn.first_below == math.inf:
        lines.append(f"{begin}, whatever {box} costs.")
    elif turn.first_below is None:
        lines.append(f"The search would not begin with {name} even if {box} were free.")
    else:
        lines.append(f"{begin} as long as {box} costs less than {say(turn.first_below)}.")
    return clean("\n".join(lines))


def _evaluated(found: Evaluation) -> dict[str, Any]:
    c = found.columns()
    chosen = [found.chosen[v].tolist() for v in range(len(found.forest))]
    rows = zip(c["box"], c["opened"], chosen, c["spend"], strict=True)
    boxes = [dict(zip(("name", "opened", "chosen", "spend"), row, strict=True)) for row in rows]
    head = {k: getattr(found, k) for k in ("value", "reward", "spend", "openings", "outside")}
    return {**head, "boxes": boxes}
