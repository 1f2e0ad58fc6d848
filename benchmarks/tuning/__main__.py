"""Replay the sets: ``python -m benchmarks.tuning FOLDER [--quick] [--set NAME] [--write]``.

``--part`` takes the part of each set that ``sets.py`` names, with methods that know settings; with
``--keep FOLDER`` each method of each set is kept as a file, and is not run again if its file is
there. So methods can be run one after the other, or one of them again.
"""

from __future__ import annotations

import argparse
import os
import pickle
import sys
import time
from collections.abc import Callable
from pathlib import Path

for _library in ("OPENBLAS", "MKL", "OMP"):  # before NumPy is loaded: processes share the cores
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402

from weitzman.learn.curves import Curves  # noqa: E402
from weitzman.replay.backtest import replay  # noqa: E402
from weitzman.replay.methods import Method  # noqa: E402
from weitzman.replay.peers import all_methods  # noqa: E402
from weitzman.replay.replay_result import Replay  # noqa: E402

from .joining import join  # noqa: E402
from .report import ABOUT, figure, markdown  # noqa: E402
from .sets import FULL_RUN_COSTS, REMARKS, SETS, Set, Size  # noqa: E402

HERE = Path(__file__).parent


def main(argv: list[str] | None = None) -> None:
    """Run what the arguments say."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    some = arguments.quick or arguments.part or arguments.set or arguments.methods
    if arguments.write and some:
        parser.error("only full results are written: leave out --quick, --part, --set, --methods")
    methods = _chosen(arguments.methods)
    found, text = {}, [ABOUT]
    for each in SETS:
        if arguments.set in (None, each.name):
            started = time.perf_counter()
            size = each.quick if arguments.quick else each.part if arguments.part else each.full
            result = run(each, arguments.folder, methods, size, arguments.workers, arguments.keep)
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
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="few tasks, one log, few orders")
    size.add_argument("--part", action="store_true", help="some tasks, one log, some orders")
    parser.add_argument("--keep", type=Path, help="folder for the result of each method")
    parser.add_argument("--methods", default="", help="words in the names of methods, by commas")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--write", action="store_true", help="write RESULTS.md and the figure")
    return parser


def _chosen(words: str) -> list[Method]:
    wanted = [w.strip().lower() for w in words.split(",") if w.strip()]
    there = all_methods(settings=True)
    return [m for m in there if not wanted or any(w in m.name.lower() for w in wanted)]


def run(
    each: Set, folder: Path, methods: list[Method], size: Size, workers: int,
    keep: Path | None = None,
) -> Replay:  # fmt: skip
    """Replay one set, with one method after the other if results are kept."""
    curves, instance = each.read(folder)
    curves, instance = _some(curves, instance, size.tasks)

    def show(done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{each.name} {done}/{total}  ", end="", file=sys.stderr, flush=True)

    def played(some: list[Method]) -> Replay:
        return replay(
            curves, full_run_costs=FULL_RUN_COSTS, instance=instance, methods=some,
            repeats=size.repeats, orders=size.orders, workers=workers, progress=show,
        )  # fmt: skip

    if keep is None:
        return played(methods)
    return join([_kept(keep / f"{each.name}, {m.name}.pickle", m, played) for m in methods])


def _kept(path: Path, method: Method, played: Callable[[list[Method]], Replay]) -> Replay:
    """The result of a method: read if it is there, otherwise made. Read only files of your own."""
    if not path.exists():
        started = time.process_time()
        found = played([method])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(found))
        print(f"{path.stem}: {time.process_time() - started:.0f} s", file=sys.stderr, flush=True)
    result = pickle.loads(path.read_bytes())
    assert isinstance(result, Replay)
    return result


def _some(
    curves: Curves, instance: tuple[str, ...] | None, tasks: int
) -> tuple[Curves, tuple[str, ...] | None]:
    """The runs of so many tasks, spread over all."""
    names = curves.tasks[:: -(-len(curves.tasks) // tasks)]
    keep = np.flatnonzero([task in names for task in curves.task])
    return curves.select(keep), None if instance is None else tuple(instance[i] for i in keep)


if __name__ == "__main__":
    main()
