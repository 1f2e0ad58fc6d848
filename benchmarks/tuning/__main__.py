"""Replay the sets: ``python -m benchmarks.tuning FOLDER [--quick] [--set NAME]``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

from weitzman.learn import Curves
from weitzman.replay import Method, Replay, all_methods, replay

from .sets import FULL_RUN_COSTS, SETS, Set


def main(argv: list[str] | None = None) -> None:
    """Run what the arguments say."""
    arguments = _parser().parse_args(argv)
    methods = _chosen(arguments.methods)
    for each in SETS:
        if arguments.set in (None, each.name):
            started = time.perf_counter()
            found = run(each, arguments.folder, methods, arguments.quick, arguments.workers)
            print(f"\n## {each.name} ({time.perf_counter() - started:.0f} s)\n")
            print(regrets(found))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuning", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with one folder a set")
    parser.add_argument("--set", choices=[s.name for s in SETS], help="only this one")
    parser.add_argument("--quick", action="store_true", help="few tasks, one log, few orders")
    parser.add_argument("--methods", default="", help="words in the names of methods, by commas")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    return parser


def _chosen(words: str) -> list[Method]:
    wanted = [w.strip().lower() for w in words.split(",") if w.strip()]
    return [m for m in all_methods() if not wanted or any(w in m.name.lower() for w in wanted)]


def run(each: Set, folder: Path, methods: list[Method], quick: bool, workers: int) -> Replay:
    """Replay one set."""
    curves, instance = each.read(folder)
    if quick:
        curves, instance = _first(curves, instance, each.quick_tasks)

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


def _first(
    curves: Curves, instance: tuple[str, ...] | None, tasks: int
) -> tuple[Curves, tuple[str, ...] | None]:
    names = curves.tasks[:: -(-len(curves.tasks) // tasks)]
    keep = np.flatnonzero([task in names for task in curves.task])
    return curves.select(keep), None if instance is None else tuple(instance[i] for i in keep)


def regrets(found: Replay) -> str:
    """A table of mean regrets in points, a column for each price; the lowest of each is bold."""
    regret = found.means("regret")[:-1]
    lowest = regret[..., 0].argmin(axis=0)
    head = ["method", *(f"{x:g}" for x in found.quoted)]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * len(found.quoted)]
    for m, method in enumerate(found.methods[:-1]):
        cells = [
            f"{'**' if lowest[p] == m else ''}{mean:.5f}{'**' if lowest[p] == m else ''} "
            f"[{low:.5f}, {high:.5f}]"
            for p, (mean, low, high) in enumerate(regret[m].tolist())
        ]
        lines.append("| " + " | ".join([method, *cells]) + " |")
    if len(regret) > 1:
        ratio = regret[0, :, 0] / regret[1:, :, 0].min(axis=0)
        lines.append("| first / best other | " + " | ".join(f"{x:.2f}" for x in ratio) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
