"""The command ``weitzman replay``: what would each method have earned on past runs?"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from .._common.log_names import USUAL, usual

if TYPE_CHECKING:
    from ..learn.curves import Curves
    from ..replay.methods import Method
    from ..replay.replay_result import Replay

_ABOUT = """\
Search past runs again and print what each method would have earned: the best
score it sees, less what it pays to see it.

FILE is a table with a row for each step of each run. Part of the runs of a task
is the log that methods learn from and tune their options on; the others are
searched in random orders, the same for all. A score is seen once its cost has
been paid.

What one point of score is worth in units of cost must be said, either by --price
or by --full-run-costs, the points that a full run costs on average."""

_JSON = """\
Payoff and regret are in points of score: payoff = score - spend / price. regret
is what the payoff lacks to hindsight, the best single run stopped at its best
moment; behind is what it lacks to the first method, with a paired 95% interval.

--json prints one object:
  {"cells", "orders", "minimize", "prices": {task: [...]}, "summary": [
    {"task": "" for all, "price" or "full_run_cost", "method", "payoff",
     "payoff_low", "payoff_high", "score", ..., "spend", ..., "regret", ...,
     "behind", ...}, ...]}"""

_LONGEST = 2**20  # characters of a heading


def add_replay_command(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to those of the parser; :func:`replay` carries it out."""
    from .option_types import positive, whole

    parser = commands.add_parser("replay", help="what methods would have earned on past runs")
    parser.description, parser.epilog = _ABOUT, _JSON
    add = parser.add_argument
    add("file", metavar="FILE", help="curves: .csv, .csv.gz, .parquet or .jsonl")
    numbers = partial(_several, read=positive)
    add("--price", type=numbers, metavar="X,...", help="worth of one point in units of cost")
    add(
        "--full-run-costs", type=numbers, metavar="X,...",
        help="points that a full run costs on average; sets the price of each task",
    )  # fmt: skip
    for name, known in USUAL.items():
        what = "column of the " + name if name != "task" else "column of the task, if any"
        add(f"--{name}", metavar="COLUMN", help=f"{what} (default: {', '.join(known[:3])}, ...)")
    add(
        "--instance", metavar="COLUMN",
        help="column that tells repetitions of the same runs apart (a seed): one of them is "
        "searched, the others are its log",
    )  # fmt: skip
    add(
        "--minimize",
        action="store_true",
        help="lower scores are better (default: if the column is called a loss)",
    )
    whole = partial(whole, least=1)
    add(
        "--log-runs", type=whole, metavar="N",
        help="runs in the log (default: 150, or half of the runs of a task with less than 300)",
    )  # fmt: skip
    add("--repeats", type=whole, metavar="N", default=5, help="logs for each task (default 5)")
    add("--orders", type=whole, metavar="N", default=10, help="orders for each log (default 10)")
    add("--seed", type=partial(whole, least=0), metavar="N", default=0, help="default 0")
    add("--workers", type=whole, metavar="N", help="processes to use (default: all cores)")
    add(
        "--methods", metavar="WORD,...",
        help="only methods whose names contain one of these; the first is compared with the rest",
    )  # fmt: skip
    add("--tasks", action="store_true", help="print a table for each task, too")
    add("--plot", metavar="IMAGE", help="draw payoff and regret by price: .png, .svg or .pdf")
    add("--json", action="store_true", help="print JSON, for programs")


def replay(arguments: argparse.Namespace) -> None:
    """Carry the command out."""
    from ..errors import InvalidArgument
    from .console import Misused

    if (arguments.price is None) == (arguments.full_run_costs is None):
        raise Misused("say either --price or --full-run-costs.")
    if not (arguments.plot or ".png").endswith((".png", ".svg", ".pdf")):
        raise Misused("the name after --plot must end with .png, .svg or .pdf.")
    try:
        found = _found(arguments)
        if arguments.plot is not None:
            _draw(found, arguments.plot)
    except ImportError as error:
        raise InvalidArgument(str(error)) from error
    if arguments.json:
        print(found.to_json())
        return
    print(found.table())
    for task in found.tasks if arguments.tasks else ():
        print(f"\n== {task} ==\n{found.table(task)}")


def _draw(found: Replay, image: str) -> None:
    """Payoff and regret against price, side by side."""
    from .._common.optional import need
    from ..show import plot

    subplots = need("matplotlib.pyplot", "plot").subplots
    figure, axes = subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    for measure, ax in zip(("payoff", "regret"), axes, strict=True):
        plot.replay(found, measure, ax=ax)
    figure.savefig(image, dpi=150)


def _found(arguments: argparse.Namespace) -> Replay:
    from ..replay.backtest import replay as run
    from .console import progress_bar

    curves, instance = _curves(arguments)
    with progress_bar(sys.stderr, "replaying") as progress:
        return run(
            curves,
            price=arguments.price,
            full_run_costs=arguments.full_run_costs,
            instance=instance,
            methods=_methods(arguments),
            log_runs=arguments.log_runs,
            repeats=arguments.repeats,
            orders=arguments.orders,
            seed=arguments.seed,
            workers=arguments.workers or os.cpu_count() or 1,
            progress=progress,
        )


def _curves(arguments: argparse.Namespace) -> tuple[Curves, Sequence[str] | None]:
    """The curves of the file, and the instance of each run."""
    from ..learn.curves import Curves

    names = _columns(arguments)
    _say("columns: " + ", ".join(f"{role} {name}" for role, name in names.items()))
    instance = arguments.instance
    curves = Curves.read(
        arguments.file,
        run=names["run"] if instance is None else (instance, names["run"]),
        step=names["step"],
        score=names["score"],
        cost=names["cost"],
        task=names.get("task"),
        kind=instance,
        ended=True,
        minimize=arguments.minimize or None,
    )
    if instance is None:
        return curves, None
    return replace(curves, kind=("",) * len(curves)), curves.kind


def _columns(arguments: argparse.Namespace) -> dict[str, str]:
    """The column of each role: what was said, or the first known name that the table has."""
    there = _header(arguments.file)
    found: dict[str, str] = {}
    for role in USUAL:
        said: str | None = getattr(arguments, role)
        known = usual(role, there)
        if said or known or role != "task":  # without tasks all runs belong together
            found[role] = said or known or role
    return found


def _header(path: str) -> list[str]:
    """The columns of a table; none if it cannot be read, which reading it all will explain."""
    from ..files.safely import check_regular

    try:
        check_regular(os.stat(path))
        if path.endswith(".parquet"):
            from .._common.optional import need

            return list(need("pyarrow.parquet", "learn").read_schema(path).names)
        if path.endswith((".jsonl", ".ndjson")):
            from ..learn.log_tables import columns_of

            return columns_of(path).names
        opened = gzip.open if path.endswith(".gz") else open
        with opened(path, "rt", encoding="utf-8", newline="") as file:
            return next(csv.reader([file.readline(_LONGEST)]), [])
    except (OSError, ValueError, EOFError):
        return []


def _methods(arguments: argparse.Namespace) -> list[Method]:
    from ..errors import UnknownName
    from ..replay.optuna_peers import installed
    from ..replay.peers import all_methods

    there = all_methods()
    if not installed():
        _say('Optuna is not installed, its pruners are left out: pip install "weitzman[optuna]"')
    if arguments.methods is None:
        return there
    words = [word.strip().lower() for word in arguments.methods.split(",") if word.strip()]
    chosen = [m for word in words for m in there if word in m.name.lower()]
    for word in words:
        if not any(word in m.name.lower() for m in there):
            raise UnknownName(
                f"no method is called {word!r}; there are {', '.join(m.name for m in there)}."
            )
    return list(dict.fromkeys(chosen))


def _several(text: str, read: Any) -> list[float]:
    return [read(part.strip()) for part in text.split(",")]


def _say(text: str) -> None:
    from .._common.text import printable

    print(printable(text), file=sys.stderr)
