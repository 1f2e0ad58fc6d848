"""Promise against fact: ``python -m benchmarks.tuning.promises FOLDER``.

Two tables, both on runs that the model was not learned from. The first one: the share of runs whose
last score lies in the interval that should hold 90 % of them. The second one: what a search was
expected to earn before it began, and what it earned, in points.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

for _library in ("OPENBLAS", "MKL", "OMP"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402

from weitzman.backtest.bench import Bench, Table  # noqa: E402
from weitzman.backtest.driver import Design, jobs, split  # noqa: E402
from weitzman.backtest.peers import race  # noqa: E402
from weitzman.learn.curves import Curves  # noqa: E402
from weitzman.learn.ladder import Ladder, climb  # noqa: E402
from weitzman.learn.resemblance import (  # noqa: E402
    FitOptions,
    ResemblanceModel,
    fit,
)

from .sets import CHOOSING, Set  # noqa: E402

TASKS = {"taskset_text": 8, "algoperf": 10, "lcdb": 28}
FULL_RUN_COSTS = 0.0003, 0.003, 0.03
ENDS = 0.05, 0.95  # of the interval
WHERE = "before the start", "middle rung", "three quarters"
_NOTHING = 1e-9  # points that a full run costs where cost is to play no part


class Divided(NamedTuple):
    """A log, and the runs that are forecast and searched."""

    log: Curves
    rest: Curves


def divided(each: Set, folder: Path) -> Iterator[Divided]:
    """The log and the rest of some tasks of a set, as in the back-test."""
    curves, instance = each.read(folder)
    some = curves.tasks[:: -(-len(curves.tasks) // TASKS[each.name])]
    keep = np.flatnonzero([task in some for task in curves.task])
    labels = None if instance is None else [instance[i] for i in keep.tolist()]
    design = Design(log_runs=None, logs=1, orders=1, seed=0)
    for job in jobs(curves.select(keep), labels, [(1.0,)] * len(some), 1):
        parts = [job.curves.select(x) for x in split(job, design)]
        yield Divided(*(replace(x, ended=np.ones(len(x), bool)) for x in parts))


def intervals(model: ResemblanceModel, runs: Ladder, r: int) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the forecast of what each run is worth, made before segment r."""
    law = model._runs.law(r, runs, model._levels(runs))
    low, high = np.empty(len(runs)), np.empty(len(runs))
    for which, value, row, center in model._capped.frame[r].parts(law):
        flat, k = value.ravel(), value.shape[1]
        up = np.argsort(flat, kind="stable")
        reached = np.cumsum(np.repeat(row / k, k, axis=1)[:, up], axis=1)
        for out, end in zip((low, high), ENDS, strict=True):
            place = np.minimum((reached < end - 1e-12).sum(axis=1), len(flat) - 1)
            out[which] = flat[up][place] + center
    return low, high


def covered(part: Divided) -> list[float]:
    """The share of runs whose last score lies in its interval, early, in the middle and late."""
    options = FitOptions(tail=0.0)
    model = fit(part.log, full_run_cost=_NOTHING, options=options)
    assert isinstance(model, ResemblanceModel)
    runs = climb(part.rest, model.rungs, model.encoder)
    final = model.price * runs.best[np.arange(len(runs)), runs.seen - 1]
    shares, size = [], len(model.rungs)
    for r in (0, size // 2, 3 * size // 4):
        some = np.flatnonzero(runs.seen > r)
        low, high = intervals(model, runs.select(some), r)
        slack = 1e-9 * np.abs(final[some])
        inside = (low <= final[some] + slack) & (final[some] <= high + slack)
        shares.append(float(inside.mean()) if len(some) else np.nan)
    return shares


def earned(part: Divided, full_run_cost: float) -> tuple[float, float]:
    """What a search was expected to earn, and what it earned, in points above the best of the log.

    The log's best score is a zero that all tasks share.
    """
    model = fit(part.log, full_run_cost=full_run_cost)
    table = Table.of(part.rest)
    bench = Bench(table, np.arange(len(part.rest)))
    runs = climb(part.rest, model.rungs, model.encoder)
    promised = model.promised(runs) / model.price
    list(race(bench, model, refit=True))
    zero = float(Table.of(part.log).top.max())
    return promised - zero, bench.best - bench.spent / model.price - zero


def tables(folder: Path) -> str:
    """Both tables."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # costs that differ from the log
        return "\n".join(_lines(folder))


def _lines(folder: Path) -> list[str]:
    parts = {each.name: list(divided(each, folder)) for each in CHOOSING}
    lines = [f"| set | tasks | {' | '.join(WHERE)} |", "|---|--:|--:|--:|--:|"]
    for name, some in parts.items():
        found = np.nanmean([covered(part) for part in some], axis=0)
        cells = " | ".join(f"{100 * x:.0f} %" for x in found)
        lines.append(f"| `{name}` | {len(some)} | {cells} |")
    head = " | ".join(f"{x:g}: promised | earned | standard error" for x in FULL_RUN_COSTS)
    lines += ["", f"| set | {head} |", "|---|" + "--:|" * 3 * len(FULL_RUN_COSTS)]
    for name, some in parts.items():
        cells = []
        for cost in FULL_RUN_COSTS:
            pairs = np.array([earned(part, cost) for part in some])
            apart = float(np.std(pairs[:, 1] - pairs[:, 0], ddof=1)) / len(some) ** 0.5
            cells += [f"{pairs[:, 0].mean():.4f}", f"{pairs[:, 1].mean():.4f}", f"{apart:.4f}"]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with one folder for each set")
    print(tables(parser.parse_args().folder))
