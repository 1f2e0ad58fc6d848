"""Solve against the matrix products that it cannot do without, for many shapes.

``python -m benchmarks.roofline`` prints the table of ``roofline.md``; ``--write`` writes it. All
times are processor time on one thread, so that a loaded machine disturbs them little. The
contestants take turns, and the least time of each counts. A certified gap, and values of `evaluate`
that agree with those of `solve`, are asserted.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from datetime import date

import numpy as np

import weitzman
from weitzman import Forest, learn
from weitzman._common.arrays import FloatArray, IntArray
from weitzman.engine.plan import Plan
from weitzman.forest.columns import stack_pool

from . import baselines, instances
from .measure import ROOT, Table, put, race, seconds

EPS, ROUNDS = 1e-12, 3


def shared_laws(parent: IntArray, k: int, laws: FloatArray, seed: int = 0) -> Forest:
    """Boxes that share some laws and one list of rewards, each with a cost of its own."""
    rng = np.random.default_rng(seed)
    n = len(parent)
    below, _ = stack_pool(laws)
    above, _ = stack_pool(laws[:1, :1])
    pool = below.with_more([above[0]])
    costs, cost = stack_pool(rng.uniform(0.005, 0.05, (n, 1, 1)))
    rewards, _ = stack_pool(np.sort(rng.random((1, 1, k))))
    law = np.where(parent < 0, len(below), rng.integers(0, len(below), n))
    return Forest(
        parent=parent, law=law, reward=np.zeros(n, np.int64), cost=cost, laws=pool,
        rewards=rewards, costs=costs, count=np.ones(n, np.int64),
    )  # fmt: skip


def dense(k: int, count: int) -> FloatArray:
    """Uneven laws without zeros."""
    return np.random.default_rng(k).dirichlet(np.full(k, 0.5), (count, k))


def banded(k: int, count: int, width: int = 10) -> FloatArray:
    """Laws that lead to neighboring states only."""
    away = np.abs(np.arange(k)[:, None] - np.arange(k))
    law = np.where(away < width, np.random.default_rng(k).uniform(0.5, 1.5, (count, k, k)), 0.0)
    return np.asarray(law / law.sum(axis=2, keepdims=True))


def line(boxes: int) -> IntArray:
    """The parents of one line."""
    return np.arange(boxes) - 1


def star(boxes: int) -> IntArray:
    """A root, and all others below it."""
    return np.where(np.arange(boxes) == 0, -1, 0)


def lines(count: int, length: int) -> IntArray:
    """The parents of several lines."""
    return np.where(np.arange(count * length) % length == 0, -1, np.arange(count * length) - 1)


def tuning_model() -> Forest:
    """The line of a new run of a model learned from the sample of logs."""
    return learn.fit(learn.sample().of_task("letter"), price=1000).lines()


SHAPES: dict[str, Callable[[], Forest]] = {
    "2,000 lines of 50, k = 8": lambda: instances.many_lines(2000, 50, 8).forest,
    "200 lines of 500, k = 16": lambda: shared_laws(lines(200, 500), 16, dense(16, 1000)),
    "one line of 100,000, k = 8": lambda: shared_laws(line(100_000), 8, dense(8, 1000)),
    "random trees, 100,000 boxes, k = 2 to 8": lambda: instances.random_trees(100_000),
    "a star of 100,000 leaves, k = 8": lambda: shared_laws(star(100_000), 8, dense(8, 1000)),
    "one line of 500, k = 64": lambda: shared_laws(line(500), 64, dense(64, 50)),
    "one line of 60, k = 256": lambda: shared_laws(line(60), 256, dense(256, 10)),
    "one line of 10, banded, k = 1,000": lambda: shared_laws(line(10), 1000, banded(1000, 3)),
    "tuning model": tuning_model,
}


def row(name: str, forest: Forest) -> list[str]:
    """One shape."""
    plan = Plan.of(forest)
    eps = EPS * plan.span
    width = plan.run(eps, 1).width[plan.op_of][plan.class_of]
    products = baselines.Products.of(forest, width)
    solution = weitzman.solve(forest, threads=1)
    off = abs(weitzman.evaluate(solution).value - solution.value)
    assert off <= solution.gap + 1e-9 * max(plan.span, 1.0), off
    tasks: dict[str, Callable[[], object]] = {
        "bare": products.bare,
        "pass": lambda: plan.run(eps, 1),
        "solve": lambda: weitzman.solve(forest, threads=1),
        "evaluate": lambda: weitzman.evaluate(solution),
    }
    best = race(tasks, ROUNDS, clock=time.process_time, free=0)
    speed = products.operations / best["bare"] / 1e9
    return [
        name, f"{width.mean():.0f}", seconds(best["solve"] / len(forest)), f"{speed:.0f}",
        f"{best['solve'] / best['bare']:.1f}", f"{best['pass'] / best['bare']:.1f}",
        f"{best['evaluate'] / best['solve']:.2f}",
    ]  # fmt: skip


def main() -> None:
    """All shapes."""
    head = ["shape", "columns of a product", "solve, a box", "bare GFLOP/s", "solve / bare"]
    table = Table([*head, "one pass / bare", "evaluate / solve"])
    for name, make in SHAPES.items():
        table.rows.append(row(name, make()))
        print(table.rows[-1], flush=True)
    table.notes.append(
        f"*Measured {date.today()}; load of the machine at the end {os.getloadavg()[0]:.1f}.*"
    )
    print(table.markdown())
    if "--write" in sys.argv:
        put(ROOT / "benchmarks" / "roofline.md", "table", table.markdown())


if __name__ == "__main__":
    main()
