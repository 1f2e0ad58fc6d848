"""DyHPO and PASHA of Syne Tune, stopped once they have spent as much as some full runs cost.

DyHPO (arXiv 2202.09774) is the published method nearest to this package that needs no log: a
Gaussian process over settings and step decides, epoch by epoch, which run to continue or to start.
PASHA (arXiv 2207.06940) is asynchronous halving that trains runs for longer only while the best of
them change places. Neither has a rule for when to stop the search. Needs
``syne-tune[gpsearchers]==0.13.0`` in an environment of its own; the environment variable
``SYNE_TUNE_PYTHON`` names its Python: newer versions have no DyHPO, and this one needs NumPy below
1.27.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from weitzman.backtest.bench import Bench
from weitzman.backtest.library_peers import PoolSpace
from weitzman.backtest.methods import Documented, Log, Method, Rule

FULL_RUNS = 1, 2, 3, 5, 10
SHORT = "taskset_text", "algoperf"  # long curves: ten full runs take DyHPO minutes a search
MOST = 33  # levels of a full run: of longer curves every second row counts, or every third, ...
SCHEDULERS = "DyHPO", "PASHA"
WORKER = Path(__file__).parent / "syne_tune_worker.py"
# what a scheduler asked for, by its name, the table and the order of the runs
_asked: dict[tuple[str, bytes], list[tuple[int, int]]] = {}


def syne_tune_methods(name: str) -> list[Method]:
    """The methods for a set; none without an environment that has Syne Tune."""
    if "SYNE_TUNE_PYTHON" not in os.environ:
        return []
    ends = FULL_RUNS[: -1 if name in SHORT else None]
    return [
        Documented(
            f"Syne Tune {scheduler}, cost of {n} full run{'s' * (n > 1)}",
            partial(_rule, scheduler=scheduler, full_runs=n, last=ends[-1]),
        )
        for scheduler in SCHEDULERS
        for n in ends
    ]


def _rule(log: Log, scheduler: str, full_runs: float, last: float) -> Rule:
    return partial(scheduled, scheduler=scheduler, full_runs=full_runs, last=last)


def scheduled(bench: Bench, scheduler: str, full_runs: float, last: float) -> Iterator[None]:
    """Advance runs as it asks, until as much was spent as so many of these runs cost on average.

    What it asks for does not depend on when it is stopped, so that it is asked once, for the
    ``last`` stopping point.
    """
    table, order = bench._table, bench._order
    most = float(table.spend[order, -1].mean())
    key = scheduler, order.tobytes() + table.score.tobytes()
    if key not in _asked:
        _asked[key] = list(_play(Bench(table, order), scheduler, last * most))
    for run, row in _asked[key]:
        if bench.spent >= full_runs * most:
            break
        bench.advance(run, row)
    yield


def _play(bench: Bench, scheduler: str, budget: float) -> Iterator[tuple[int, int]]:
    """Runs and rows in the order in which the scheduler asks for them, level by level."""
    settings = bench.settings or [{}] * len(bench)
    space, each = PoolSpace.of(settings), -(-bench.longest // MOST)
    first = {
        "scheduler": scheduler, "seed": bench.seed % 2**31, "most": -(-bench.longest // each),
        "points": space.points(settings).tolist(), "sizes": space.categories,
    }  # fmt: skip
    pipe: Any = subprocess.PIPE
    python = os.environ["SYNE_TUNE_PYTHON"]
    with subprocess.Popen([python, WORKER], stdin=pipe, stdout=pipe, text=True) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        print(json.dumps(first), file=worker.stdin, flush=True)
        for line in worker.stdout:
            asked = json.loads(line)
            run, row = asked["run"], each * asked["level"]
            score = bench.advance(run, row)
            yield run, row
            if bench.spent >= budget:
                worker.kill()
                return
            known = None if score == -np.inf else score
            said = {"score": known, "over": bench.is_over(run)}
            print(json.dumps(said), file=worker.stdin, flush=True)
        if worker.wait():  # it ends well only where there is nothing left to ask for
            raise RuntimeError(f"{scheduler} of Syne Tune ended with an error.")
