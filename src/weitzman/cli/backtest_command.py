"""The command ``weitzman backtest``: what would each method have earned on past runs?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from .._common.log_names import USUAL, usual
from .._common.text import printable
from ..errors import InvalidArgument, UnknownName
from . import common
from .common import COUNT, WHOLE, F, Options, command

if TYPE_CHECKING:
    from ..backtest.backtest_result import Backtest
    from ..backtest.methods import Method
    from ..learn.curves import Curves


_JSON = """\
Payoff and regret are in points of score: payoff = score - spend / price. regret
is the distance of the payoff to hindsight, the best single run stopped at its
best moment. behind is the distance to the first method, with a paired 95%
interval.

\b
--json prints one object:
  {"cells", "orders", "minimize", "prices": {task: [...]}, "summary": [
    {"task": "" for all, "price" or "full_run_cost", "method", "payoff",
     "payoff_low", "payoff_high", "score", ..., "spend", ..., "regret", ...,
     "behind", ...}, ...]}"""


def _column_options(command: F) -> F:
    for name, known in reversed(USUAL.items()):
        what = f"Column of the {name}" + (", if any" if name == "task" else "")
        text = f"{what} (default: {', '.join(known[:3])}, ...)."
        command = click.option(f"--{name}", metavar="COLUMN", help=text)(command)
    return command


@command(short="What methods would have earned on past runs.", epilog=_JSON)
@click.argument(
    "file", metavar="FILE", type=common.PATH,
    help="Curves: .csv, .csv.gz, .parquet, .jsonl; - is a .csv. Or the URL of a storage of Optuna, "
    "such as sqlite:///study.db.",
)  # fmt: skip
@click.option(
    "--price", type=common.POSITIVES, metavar="X,...", help="Worth of one point in units of cost."
)
@click.option(
    "--full-run-cost", type=common.POSITIVES, metavar="X,...",
    help="Points that a full run costs on average; sets the price of each task.",
)  # fmt: skip
@_column_options
@click.option(
    "--instance", metavar="COLUMN",
    help="Column that distinguishes repetitions of the same runs (a seed). One repetition is "
    "searched, the others are its log.",
)  # fmt: skip
@click.option(
    "--minimize", is_flag=True, help="Lower scores are better, as those called a loss always are."
)
@click.option(
    "--log-runs", type=WHOLE, metavar="N",
    help="Runs in the log (default: 150, or half of the runs of a task with fewer than 300). 0: no "
    "log; methods use their documented options.",
)  # fmt: skip
@common.number_option("--repeats", "Logs for each task", 5)
@common.number_option("--orders", "Orders for each log", 10)
@common.number_option("--seed", "Seed", 0, WHOLE)
@click.option("--workers", type=COUNT, metavar="N", help="Processes to use (default: all cores).")
@click.option(
    "--methods", metavar="WORD,...",
    help="Only methods whose names contain one of these words. The first method is compared with "
    "the rest.",
)  # fmt: skip
@click.option(
    "--settings", metavar="FILE",
    help="What runs were started with, for all methods that can use it: a file with one row for "
    "each run and the column of runs, or columns of FILE by commas (--settings lr,width).",
)  # fmt: skip
@click.option("--tasks", is_flag=True, help="Print a table for each task, too.")
@click.option("--plot", metavar="IMAGE", help="Draw payoff and regret by price: .png, .svg, .pdf.")
@common.json_option
def backtest(options: Options) -> None:
    """Search past runs again and print what each method would have earned: the best
    score it sees, less what it pays to see it.

    FILE is a table with one row for each step of each run. Part of the runs of a
    task is the log: methods learn from it and tune their options on it. The other
    runs are searched in random orders, the same for all methods. A score is seen
    once its cost has been paid.

    Say what one point of score is worth in units of cost: by --price, or by
    --full-run-cost, the points that a full run costs on average.
    """
    if (options.price is None) == (options.full_run_cost is None):
        raise click.UsageError("say either --price or --full-run-cost.")
    if not (options.plot or ".png").endswith((".png", ".svg", ".pdf")):
        raise click.UsageError("the name after --plot must end with .png, .svg or .pdf.")
    from ..backtest.driver import backtest as run

    with (
        common.given_file(options.file, ".csv") as path,
        common.progress_bar("back-testing") as progress,
    ):
        curves, instance = _curves(path, options)
        found = run(
            curves, price=options.price, full_run_cost=options.full_run_cost, instance=instance,
            methods=_methods(options, bool(curves.settings)), log_runs=options.log_runs,
            repeats=options.repeats, orders=options.orders, seed=options.seed,
            workers=options.workers or os.cpu_count() or 1, progress=progress,
        )  # fmt: skip
    if options.plot is not None:
        _draw(found, options.plot)
    if options.json:
        print(found.to_json())
        return
    print(found.table())
    for task in found.tasks if options.tasks else ():
        print(f"\n== {task} ==\n{found.table(task)}")


def _draw(found: Backtest, image: str) -> None:
    """Payoff and regret against price, side by side."""
    from .._common.disk import replaced
    from .._common.optional import need
    from ..files.documents import explained
    from ..show import plot

    subplots = need("matplotlib.pyplot", "plot").subplots
    figure, axes = subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    for measure, ax in zip(("payoff", "regret"), axes, strict=True):
        plot.backtest(found, measure, ax=ax)
    with explained(image, "written"), replaced(image) as new:
        figure.savefig(new, dpi=150)


def _curves(file: str, options: Options) -> tuple[Curves, Sequence[str] | None]:
    """The curves of the file, and the instance of each run."""
    from ..learn.curves import Curves
    from ..learn.log_tables import columns_of, read_log

    instance, settings = options.instance, options.settings
    if "://" in file:
        for name in (*USUAL, "instance", "settings"):
            if getattr(options, name):
                raise InvalidArgument(
                    f"--{name} names a column of a table, but {file} is a storage of Optuna."
                )
        minimize = {"minimize": True} if options.minimize else {}
        return Curves.from_optuna(file, ended=True, **minimize), None
    table = read_log(file)
    there = [str(name) for name in table]  # a role is what was said, or a usual name
    names = {role: getattr(options, role) or usual(role, there) or role for role in USUAL}
    if names["task"] not in there and not options.task:
        del names["task"]  # all runs belong together
    click.echo(printable("columns: " + ", ".join(map(" ".join, names.items()))), err=True)
    if settings is not None and not settings.endswith((".csv", ".csv.gz", ".parquet", ".jsonl")):
        settings = _words(settings)
    curves = Curves.read(
        table, run=names["run"] if instance is None else (instance, names["run"]),
        step=names["step"], score=names["score"], cost=names["cost"], task=names.get("task"),
        ended=True, minimize=options.minimize or None, settings=settings,
    )  # fmt: skip
    if instance is None:
        return curves, None
    of_row = columns_of(table).words
    label = {f"{x}/{run}": x for x, run in zip(of_row(instance), of_row(names["run"]), strict=True)}
    return curves, [label[name] for name in curves.runs]


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _methods(options: Options, settings: bool) -> list[Method]:
    from ..backtest.library_peers import optuna_installed
    from ..backtest.peers import all_methods, methods_without_log

    there = (methods_without_log if options.log_runs == 0 else all_methods)(settings=settings)
    if not optuna_installed():
        text = 'Optuna is not installed, its pruners are left out: pip install "weitzman[optuna]"'
        click.echo(text, err=True)
    if options.methods is None:
        return there
    chosen: dict[Method, None] = {}
    for word in _words(options.methods.lower()):
        some = [method for method in there if word in method.name.lower()]
        if not some:
            known = ", ".join(method.name for method in there)
            raise UnknownName(f"no method is called {word!r}; there are {known}.")
        chosen |= dict.fromkeys(some)
    return list(chosen)
