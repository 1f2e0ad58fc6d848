"""What deciding costs: ``python -m benchmarks.tuning.speed FOLDER``.

A search in vain: the 200 worst runs of a task of ``taskset_text``, of which most are started, with
a log of 150 other runs and from nothing. Processor time of the fit, of all decisions (refits
included) and of one decision. Training itself takes no time here.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

for _library in ("OPENBLAS", "MKL", "OMP"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402

from weitzman.backtest.bench import Bench, Table  # noqa: E402
from weitzman.learn.curves import Curves  # noqa: E402
from weitzman.learn.first_runs import from_nothing  # noqa: E402
from weitzman.learn.resemblance import fit  # noqa: E402
from weitzman.tune.race import Race, RunModel  # noqa: E402
from weitzman.tune.refit import Refit  # noqa: E402

from .sets import SETS  # noqa: E402

LOG, SEARCHED = 150, 200
FULL_RUN_COSTS = (0.0001, 0.001, 0.01)
HEAD = (
    "| begins with | a full run costs | runs started | decisions | fit, s | all, s | "
    "a decision: median, ms | 95 %, ms | most, ms |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|"
)


def play(bench: Bench, model: RunModel) -> tuple[int, list[float]]:
    """Search to the end: runs that were started, and the processor time of each decision.

    A decision takes from the reports of the last move to the next move.
    """
    moves = Race(model, candidates=bench.settings or [{}] * len(bench))
    learn = Refit(moves)
    begun: list[int] = []
    taken: list[float] = []
    run, rows = -1, []
    while True:
        began = time.process_time()
        for row in rows:
            moves.observe(run, *row)
        if rows and bench.is_over(begun[run]):
            moves.ended(run)
        learn()
        move = moves.next()
        taken.append(time.process_time() - began)
        if move is None:
            return len(begun), taken
        run = moves.started(move.candidate) if move.run is None else move.run
        if move.candidate is not None:
            begun.append(move.candidate)
        rows = bench.follow(begun[run], move.until)


def rows(curves: Curves, *, log: int = LOG, searched: int = SEARCHED) -> Iterator[str]:
    """A row of the table for each kind of start and each price."""
    mixed = np.random.default_rng(0).permutation(len(curves))
    logged = curves.select(np.sort(mixed[:log]))
    table, others = Table.of(curves), mixed[log:]
    order = others[np.argsort(table.top[others, -1])[:searched]]
    cost = float(logged.total_cost.mean())
    for name in (f"a log of {log} runs", "nothing"):
        for each in FULL_RUN_COSTS:
            began = time.process_time()
            price = cost / each
            model = from_nothing(price=price) if name == "nothing" else fit(logged, price=price)
            fitted = time.process_time() - began
            started, taken = play(Bench(table, order), model)
            whole, ms = time.process_time() - began, 1000 * np.array(taken)
            yield (
                f"| {name} | {each:g} | {started} | {len(taken)} | {fitted:.2f} | {whole:.2f} | "
                f"{np.median(ms):.1f} | {np.quantile(ms, 0.95):.1f} | {ms.max():.0f} |"
            )


def table(folder: Path) -> str:
    """The whole table."""
    curves, _ = SETS[0].read(folder)
    curves = curves.of_task(curves.tasks[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # costs that differ from the log
        list(rows(curves))  # kernels are compiled
        return "\n".join([HEAD, *rows(curves)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with one folder for each set")
    print(table(parser.parse_args().folder))
