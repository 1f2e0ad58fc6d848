"""Search public curves again: ``python -m benchmarks.tuning FOLDER [--quick] [--write]``.

Two tables for each set: methods that learn from a log, and methods without a log. Each cell (one
method on one task) is kept as a file; a cell that is there is read, so an interrupted run goes on
where it stood. ``--again WORDS`` runs some methods again, for example ``--again index`` after a
change of the model.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path

for _library in ("OPENBLAS", "MKL", "OMP"):  # before NumPy is loaded: processes share the cores
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402

from weitzman.backtest.backtest_result import Backtest  # noqa: E402
from weitzman.backtest.driver import backtest  # noqa: E402
from weitzman.backtest.methods import Method  # noqa: E402
from weitzman.backtest.peers import all_methods, methods_without_log  # noqa: E402
from weitzman.learn.curves import Curves  # noqa: E402

from .cells import CellKeeper  # noqa: E402
from .joining import join  # noqa: E402
from .promises import tables  # noqa: E402
from .report import BEFOREHAND, beforehand, figure, markdown, page  # noqa: E402
from .sets import CHOSE_NOTHING, FULL_RUN_COSTS, HOME_MADE, SETS, Set, Size  # noqa: E402
from .speed import table  # noqa: E402
from .syne_tune_peers import syne_tune_methods  # noqa: E402

HERE = Path(__file__).parent
LOGS = ("with", "without")


def main(argv: list[str] | None = None) -> None:
    """Run what the arguments say."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    less = "quick", "orders", "set", "log", "methods"
    if arguments.write and any(getattr(arguments, name) for name in less):
        parser.error(f"only full results are written: leave out --{', --'.join(less)}")
    found: dict[str, dict[str, Backtest]] = {log: {} for log in LOGS}
    for log in LOGS if arguments.log is None else [arguments.log]:
        for each in SETS:
            if arguments.set in (None, each.name):
                found[log][each.name] = played(each, log, arguments)
                text = markdown(each.name, found[log][each.name], every=log == "without")
                print(f"\n{text}", flush=True)
        for kind in (CHOSE_NOTHING[log], None):  # sets on which a default was chosen are kept apart
            some = {k: x for k, x in found[log].items() if (k in CHOSE_NOTHING[log]) == bool(kind)}
            if some and len(next(iter(some.values())).methods) > 2:
                print(f"\n{BEFOREHAND}\n{beforehand(some)}", flush=True)
    if arguments.write:
        measured = table(arguments.folder), tables(arguments.folder)
        text = page(found["with"], found["without"], HERE, *measured)
        (HERE / "RESULTS.md").write_text(text)
        figure(found["with"], HERE / "regret.png")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuning", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with one folder for each set")
    parser.add_argument("--set", choices=[s.name for s in SETS], help="only this set")
    parser.add_argument("--log", choices=LOGS, help="only with or only without a log")
    parser.add_argument("--orders", type=int, help="orders of each log (default: by set)")
    parser.add_argument("--quick", action="store_true", help="few tasks, few orders")
    parser.add_argument("--methods", default="", help="words in the names of methods, by commas")
    parser.add_argument("--again", default="", help="words in the names of methods to run again")
    parser.add_argument("--keep", type=Path, default=HERE / "kept", help="folder of the cells")
    parser.add_argument("--write", action="store_true", help="write RESULTS.md and the figure")
    return parser


def _named(methods: list[Method], words: str) -> list[Method]:
    wanted = [w.strip().lower() for w in words.split(",") if w.strip()]
    return [m for m in methods if any(w in m.name.lower() for w in wanted)]


def played(each: Set, log: str, arguments: argparse.Namespace) -> Backtest:
    """One set with all methods, one after the other."""
    curves, instance = each.read(found_in(each, arguments.folder, arguments.keep))
    size = each.quick if arguments.quick else each.full
    size = replace(size, orders=arguments.orders or size.orders)
    curves, instance = _some(curves, instance, size.tasks)
    there = all_methods(settings=True) if log == "with" else methods_without_log(settings=True)
    there += syne_tune_methods() if log == "without" else []
    methods = _named(there, arguments.methods) if arguments.methods else there
    again = _named(methods, arguments.again)
    keep = arguments.keep / f"{log} log" / each.name
    found = []
    for method in methods:
        folder = keep / method.name
        if method in again:
            shutil.rmtree(folder, ignore_errors=True)
        found.append(_one(curves, instance, method, size, log, folder))
    return join(found)


def found_in(each: Set, folder: Path, keep: Path) -> Path:
    """The folder that has the set; a set that is trained here is trained once, and kept."""
    if each not in HOME_MADE or (folder / each.name).exists():
        return folder
    if not (keep / each.name).exists():
        import_module(f"benchmarks.tuning.{each.name}").make(keep)
    return keep


def _one(
    curves: Curves, instance: tuple[str, ...] | None, method: Method, size: Size, log: str,
    folder: Path,
) -> Backtest:  # fmt: skip
    """All cells of a method."""
    keeper, began = CellKeeper(folder), time.process_time()
    found = backtest(
        curves, full_run_cost=FULL_RUN_COSTS, instance=instance, methods=[method],
        log_runs=0 if log == "without" else None, repeats=size.repeats, orders=size.orders,
        executor=keeper,
    )  # fmt: skip
    now = time.process_time() - began
    searches = len(keeper.seconds) * size.orders * len(FULL_RUN_COSTS)
    print(
        f"{folder.parent.name}, {log} log, {method.name}: {sum(keeper.seconds):.0f} s for "
        f"{searches} searches, {now:.0f} s of them now",
        file=sys.stderr, flush=True,
    )  # fmt: skip
    return found


def _some(
    curves: Curves, instance: tuple[str, ...] | None, tasks: int
) -> tuple[Curves, tuple[str, ...] | None]:
    """The runs of so many tasks, spread over all."""
    names = curves.tasks[:: -(-len(curves.tasks) // tasks)]
    keep = np.flatnonzero([task in names for task in curves.task])
    return curves.select(keep), None if instance is None else tuple(instance[i] for i in keep)


if __name__ == "__main__":
    main()
