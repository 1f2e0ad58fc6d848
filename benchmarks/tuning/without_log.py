"""Searches without a log: ``python -m benchmarks.tuning.without_log FOLDER [--set NAME]``.

The index policy starts from nothing but the price; peers have documented options and start 3, 10,
30 or 100 runs. All face the same searches. For each set and price the table names the peer that is
best in hindsight, and gives the ratio of mean regrets and the paired difference, with a 95 %
interval (bootstrap over tasks). Also the processor time of a search, all fits included.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

for _library in ("OPENBLAS", "MKL", "OMP"):  # before NumPy is loaded: processes share the cores
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402

from weitzman.learn.first_runs import from_nothing  # noqa: E402
from weitzman.replay import halving  # noqa: E402
from weitzman.replay.bench import Bench, Table  # noqa: E402
from weitzman.replay.index_methods import race  # noqa: E402
from weitzman.replay.methods import Rule, trace  # noqa: E402

from .sets import FULL_RUN_COSTS, SETS, Set  # noqa: E402

ORDERS = {"taskset_text": 2, "algoperf": 3, "lcdb": 2}
EVERY = {"lcdb": 8}  # of the tasks that are taken
OURS = "index policy"


class SearchCase(NamedTuple):
    """One search: the runs of a task in an order, and the mean cost of a full run there."""

    task: str
    table: Table
    order: np.ndarray
    full_run: float


def cases(each: Set, folder: Path) -> Iterator[SearchCase]:
    """The searches of a set; of repeated runs one repetition is searched."""
    curves, instance = each.read(folder)
    for t, task in enumerate(curves.tasks[:: EVERY.get(each.name, 1)]):
        mine = np.flatnonzero([x == task for x in curves.task])
        part = curves.select(mine)
        labels = None if instance is None else [instance[i] for i in mine.tolist()]
        for k in range(ORDERS[each.name]):
            runs = np.arange(len(part))
            if labels is not None:
                names = sorted(set(labels))
                runs = np.flatnonzero([x == names[(k + t) % len(names)] for x in labels])
            order = np.random.default_rng([7, t, k]).permutation(runs)
            yield SearchCase(task, Table.of(part), order, float(part.total_cost.mean()))


def peers(most: int) -> dict[str, Rule]:
    """Random search, successive halving and Hyperband as documented."""
    halved = {"successive halving": halving.successive_halving, "Hyperband": halving.hyperband}
    full = {f"{n} full runs": partial(halving.top_k, runs=n, keep=n) for n in (3, 10)}
    return full | {
        f"{name}, {n} runs": partial(rule, runs=n, rate=3, least=1, most=most)
        for name, rule in halved.items()
        for n in (10, 30, 100)
    }


def regrets(case: SearchCase, full_run_cost: float) -> tuple[dict[str, float], float]:
    """The regret of each method in points of score, and the processor time of the index policy."""
    price = case.full_run / full_run_cost
    best, paid = case.table.hindsight(case.order, price)
    found = {}
    for name, rule in peers(int(case.table.length.max())).items():
        score, spend = trace(rule, Bench(case.table, case.order), None)[-1]
        found[name] = best - paid / price - (score - spend / price)
    bench, start = Bench(case.table, case.order), time.process_time()
    model = from_nothing(price=price, minimize=case.table.sign < 0)
    for _ in race(bench, model, refit=True):
        pass
    taken = time.process_time() - start
    found[OURS] = best - paid / price - (bench.best - bench.spent / price)
    return found, taken


def interval(tasks: list[str], x: np.ndarray) -> tuple[float, float]:
    """A 95 % interval of the mean of means by task."""
    names = sorted(set(tasks))
    means = np.array([x[[t == name for t in tasks]].mean() for name in names])
    draws = np.random.default_rng(0).choice(means, (4000, len(means))).mean(axis=1)
    return float(np.quantile(draws, 0.025)), float(np.quantile(draws, 0.975))


def lines(name: str, rows: list[tuple[str, float, dict[str, float], float]]) -> Iterator[str]:
    """A row of the table for each price; ``rows`` are task, price, regrets and time."""
    for cost in FULL_RUN_COSTS:
        some = [row for row in rows if row[1] == cost]
        regret = {m: np.array([row[2][m] for row in some]) for m in some[0][2]}
        ours = regret.pop(OURS)
        best = min(regret, key=lambda m: float(regret[m].mean()))
        low, high = interval([row[0] for row in some], regret[best] - ours)
        seconds = [row[3] for row in some]
        yield (
            f"| `{name}` | {cost:g} | {len(some)} | {ours.mean():.4f} | {best} | "
            f"{regret[best].mean():.4f} | {ours.mean() / regret[best].mean():.2f} | "
            f"{(regret[best] - ours).mean():.4f} [{low:.4f}, {high:.4f}] | "
            f"{np.mean(seconds):.2f}, {max(seconds):.2f} |"
        )


def main() -> None:
    """Run what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with one folder a set")
    parser.add_argument("--set", choices=[s.name for s in SETS], help="only this one")
    arguments = parser.parse_args()
    print(
        "| set | full run costs | searches | index policy | best peer in hindsight | its regret | "
        "ratio | peer behind, paired | seconds a search: mean, most |\n"
        "|---|--:|--:|--:|---|--:|--:|--:|--:|"
    )
    for each in SETS:
        if arguments.set in (None, each.name):
            rows = []
            for case in cases(each, arguments.folder):
                for cost in FULL_RUN_COSTS:
                    rows.append((case.task, cost, *regrets(case, cost)))
            print("\n".join(lines(each.name, rows)), flush=True)


if __name__ == "__main__":
    main()
