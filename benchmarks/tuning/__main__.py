"""Search public curves again: ``python -m benchmarks.tuning FOLDER [--quick] [--write]``.

Two tables for each set: methods that learn from a log, and methods without a log. Each cell (one
method on one task with one log) is kept as a file; a cell that is there is read, so an interrupted
run goes on where it stood, and cells that were made on another machine can be copied into the
folder. ``--workers 16`` makes cells in 16 processes, those of the sets that chose no default first.
``--again WORDS`` makes the cells of some methods again.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

for _library in ("OPENBLAS", "MKL", "OMP", "NUMBA"):  # before NumPy is loaded: one thread each
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402

from weitzman.backtest.backtest_result import Backtest  # noqa: E402
from weitzman.backtest.driver import Design, collected, jobs, prices  # noqa: E402
from weitzman.backtest.methods import Method  # noqa: E402
from weitzman.backtest.peers import all_methods, methods_without_log  # noqa: E402
from weitzman.learn.curves import Curves  # noqa: E402

from .cells import Cells, Piece, joined, made_with, make_all  # noqa: E402
from .more_peers import more_peers  # noqa: E402
from .promises import tables  # noqa: E402
from .report import figure, markdown, page, to_pick  # noqa: E402
from .sets import FULL_RUN_COSTS, HOME_MADE, SETS, Set  # noqa: E402
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
    chosen = [each for each in SETS if arguments.set in (None, each.name)]
    data = {each.name: _read(each, arguments) for each in chosen}
    found: dict[str, dict[str, Backtest]] = {}
    searches = [
        Searches(each, log, *data[each.name], arguments)
        for log in (LOGS if arguments.log is None else [arguments.log])
        for each in chosen
    ]
    if not arguments.kept_only:
        # the most telling tables first, in case that time runs out
        first = sorted(searches, key=lambda x: x.each not in HOME_MADE)
        pieces = [piece for one in first for piece in one.missing()]
        _make(sorted(pieces, key=lambda piece: piece[-1].log), arguments.workers)
    for one in searches:
        if (result := one.result()) is not None:
            found.setdefault(one.log, {})[one.each.name] = result
            print(f"\n{markdown(one.each.name, result, every=one.log == 'without')}", flush=True)
    for log, some in found.items():
        print(f"\n{to_pick(some, log)}", flush=True)
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
    parser.add_argument("--workers", type=int, default=1, help="processes that make cells")
    parser.add_argument("--keep", type=Path, default=HERE / "kept", help="folder of the cells")
    parser.add_argument(
        "--kept-only", action="store_true",
        help="make no cells, and leave out methods whose cells are not all there",
    )  # fmt: skip
    parser.add_argument(
        "--made", default=made_with(),
        help="names of folders in the folder of the cells, by commas: also read cells that other "
        f"code or versions made (default: {made_with()}, of this code and these versions)",
    )  # fmt: skip
    parser.add_argument("--write", action="store_true", help="write RESULTS.md and the figure")
    return parser


def _read(each: Set, arguments: argparse.Namespace) -> tuple[Curves, tuple[str, ...] | None]:
    """The runs of a set, or of a part of its tasks; a set that is trained here is trained once."""
    folder = arguments.folder
    if each in HOME_MADE and not (folder / each.name).exists():
        folder = arguments.keep
        if not (folder / each.name).exists():
            import_module(f"benchmarks.tuning.{each.name}").make(folder)
    curves, instance = each.read(folder)
    names = each.tasks(curves, (each.quick if arguments.quick else each.full).tasks)
    keep = np.flatnonzero([task in names for task in curves.task])
    return curves.select(keep), None if instance is None else tuple(instance[i] for i in keep)


def _named(methods: list[Method], words: str) -> list[Method]:
    wanted = [w.strip().lower() for w in words.split(",") if w.strip()]
    return [m for m in methods if any(w in m.name.lower() for w in wanted)]


class Searches:
    """All cells of a set, with or without a log: a row of cells for each method."""

    def __init__(
        self, each: Set, log: str, curves: Curves, instance: tuple[str, ...] | None,
        arguments: argparse.Namespace,
    ) -> None:  # fmt: skip
        size = each.quick if arguments.quick else each.full
        self.each, self.log, self.curves = each, log, curves
        self.quoted, self.costs = prices(curves, None, FULL_RUN_COSTS)
        logs, orders = size.with_log if log == "with" else size.without
        self.design = Design(
            log_runs=None if log == "with" else 0, logs=logs, orders=arguments.orders or orders,
            seed=0,
        )  # fmt: skip
        priced = [tuple(x) for x in self.costs.T.tolist()]
        self.jobs = list(jobs(curves, instance, priced, logs))
        there = all_methods(settings=True) if log == "with" else methods_without_log(settings=True)
        there += syne_tune_methods(each.name) if log == "without" else more_peers()
        methods = _named(there, arguments.methods) if arguments.methods else there
        again = _named(methods, arguments.again)
        self.rows: list[tuple[Method, Cells]] = []
        for method in methods:
            place = Path(f"{log} log") / each.name / method.name
            cells = Cells(arguments.keep, place, arguments.made.split(","))
            if method in again:
                cells.forget()
            self.rows.append((method, cells))

    def missing(self) -> Iterator[Piece]:
        """The cells that are not kept."""
        for method, cells in self.rows:
            for job in self.jobs:
                if cells.read(self.design, job) is None:
                    yield cells, self.design, method, job

    def result(self) -> Backtest | None:
        """All methods whose cells are all there, or nothing if there is none."""
        names, kept = [], []
        for method, cells in self.rows:
            row = [cells.read(self.design, job) for job in self.jobs]
            there = [cell for cell in row if cell is not None]
            if len(there) < len(row):
                print(f"{self.each.name}, {self.log} log, {method.name}: {len(there)} of "
                      f"{len(row)} cells, left out", file=sys.stderr)  # fmt: skip
                continue
            names.append(method.name)
            kept.append([done for done, _ in there])
            searches = len(row) * self.design.orders * len(FULL_RUN_COSTS)
            seconds = sum(seconds for _, seconds in there)
            print(f"{self.each.name}, {self.log} log, {method.name}: {seconds:.0f} s for "
                  f"{searches} searches", file=sys.stderr)  # fmt: skip
        if not names:
            return None
        done = [joined(one) for one in zip(*kept, strict=True)]
        return collected(self.curves, tuple(names), self.quoted, self.costs, done, by_full_run=True)


def _make(pieces: list[Piece], workers: int) -> None:
    """Make cells, and report progress."""
    began, spent = time.monotonic(), 0.0
    for n, seconds in enumerate(make_all(pieces, workers), 1):
        spent += seconds
        now = time.monotonic() - began
        print(f"{n} of {len(pieces)} cells, {spent:.0f} s of processor time in {now:.0f} s",
              file=sys.stderr, flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
