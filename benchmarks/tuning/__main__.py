"""Replay the sets: ``python -m benchmarks.tuning FOLDER [--quick] [--set NAME] [--write]``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

for _library in ("OPENBLAS", "MKL", "OMP"):  # before NumPy is loaded: processes share the cores
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402

from weitzman.learn.curves import Curves  # noqa: E402
from weitzman.replay.backtest import replay  # noqa: E402
from weitzman.replay.methods import Method  # noqa: E402
from weitzman.replay.peers import all_methods  # noqa: E402
from weitzman.replay.replay_result import Replay  # noqa: E402

from .report import ABOUT, figure, markdown  # noqa: E402
from .sets import FULL_RUN_COSTS, REMARKS, SETS, Set  # noqa: E402

HERE = Path(__file__).parent


def main(argv: list[str] | None = None) -> None:
    """Run what the arguments say."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.write and (arguments.quick or arguments.set or arguments.methods):
        parser.error("only full results are written: leave out --quick, --set and --methods")
    methods = _chosen(arguments.methods)
    found, text = {}, [ABOUT]
    for each in SETS:
        if arguments.set in (None, each.name):
            started = time.perf_counter()
            result = run(each, arguments.folder, methods, arguments.quick, arguments.workers)
            found[each.name] = result
            text.append(markdown(each.name, result) + REMARKS[each.name])
            print(f"\n{text[-1]}\n({time.perf_counter() - started:.0f} s)", flush=True)
    if arguments.write:
        (HERE / "RESULTS.md").write_text("\n".join(text))
        figure(found, HERE / "regret.png")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuning", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with one folder a set")
    parser.add_argument("--set", choices=[s.name for s in SETS], help="only this one")
    parser.add_argument("--quick", action="store_true", help="few tasks, one log, few orders")
    parser.add_argument("--methods", default="", help="words in the names of methods, by commas")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--write", action="store_true", help="write RESULTS.md and the figure")
    return parser


def _chosen(words: str) -> list[Method]:
    wanted = [w.strip().lower() for w in words.split(",") if w.strip()]
    return [m for m in all_methods() if not wanted or any(w in m.name.lower() for w in wanted)]


def run(each: Set, folder: Path, methods: list[Method], quick: bool, workers: int) -> Replay:
    """Replay one set."""
    curves, instance = each.read(folder)
    curves, instance = _some(curves, instance, each.quick_tasks if quick else each.tasks)

    def show(done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{each.name} {done}/{total}  ", end="", file=sys.stderr, flush=True)

    return replay(
        curves,
        full_run_costs=FULL_RUN_COSTS,
        instance=instance,
        methods=methods,
        repeats=1 if quick else each.repeats,
        orders=5 if quick else each.orders,
        workers=workers,
        progress=show,
    )


def _some(
    curves: Curves, instance: tuple[str, ...] | None, tasks: int
) -> tuple[Curves, tuple[str, ...] | None]:
    """The runs of so many tasks, spread over all."""
    names = curves.tasks[:: -(-len(curves.tasks) // tasks)]
    keep = np.flatnonzero([task in names for task in curves.task])
    return curves.select(keep), None if instance is None else tuple(instance[i] for i in keep)


if __name__ == "__main__":
    main()
