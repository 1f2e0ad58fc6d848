"""The command ``weitzman solve``."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from .._common.text import cell
from .console import killable, print_lines, progress_bar
from .given_file import instance_argument, read_instance
from .options import POSITIVE, Options, command, json_option, limit_option, threads_option

if TYPE_CHECKING:
    from ..engine.solution import Solution

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
        print_lines(json_lines(solution))
        return
    print_lines(columns(headline(solution)))
    print()
    if options.explain:
        print(explain(solution, lines=options.limit or sys.maxsize))
    else:
        print_lines(solution.index_lines(options.limit or None, hint=" (--limit 0 shows all)"))


def headline(solution: Solution) -> list[tuple[str, str]]:
    """The value, and what to open first."""
    from ..engine.solution import Status

    f, gap = solution.forest, solution.gap
    error = "exact up to rounding" if gap == 0 else f"error at most {f.amounts.margin(gap)}"
    if solution.status is Status.DISCRETIZED:
        error += ": distributions were made discrete"
    rows = [("value", f"{f.amounts(solution.value, gap)}   ({error})")]
    terms = [
        (f.factors is not None, "payoffs are discounted to the start"),
        (
            f.risk_tolerance is not None,
            f"certainty equivalent, risk tolerance {f.amounts(f.risk_tolerance or 0.0)}",
        ),
        (f.prizes > 1, f"expected sum of {f.prizes} prizes, one from each tree, less costs"),
    ]
    rows += [("meaning", text) for there, text in terms if there]
    first = solution.first_box
    if first is None:
        rows.append(("open first", f"nothing: take the outside option, {f.amounts(f.outside)}"))
    else:
        index = solution.indices(first)[0]
        rows.append(("open first", f"{cell(first)}   (index {f.amounts(index)})"))
    if solution.status is Status.COARSE:
        rows.append(
            ("note", "the error is larger than requested: --exact leaves only rounding errors")
        )
    return rows


def json_lines(solution: Solution) -> Iterator[str]:
    """One JSON object, a line for each box; numbers that are not finite become null."""
    status = solution.status.name.lower()
    value, gap = _number(solution.value), _number(solution.gap)
    yield f'{{"value": {value}, "gap": {gap}, "status": "{status}", "boxes": ['
    n = len(solution.forest)
    for v in range(n):
        index = ", ".join(map(_number, solution.indices(v).tolist()))
        name = json.dumps(solution.forest.name(v))
        yield f'{{"name": {name}, "index": [{index}]}}{"," if v < n - 1 else ""}'
    yield "]}"


def _number(x: float) -> str:
    return repr(float(x)) if math.isfinite(x) else "null"
