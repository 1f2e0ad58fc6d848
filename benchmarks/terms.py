"""What time, risk and several prizes cost: each variant against the plain solve of the same boxes.

Run ``python benchmarks/terms.py`` (about a minute), with ``--quick`` (seconds), or with ``--write``
to write ``terms.md``. Processor time on one thread; the contestants take turns, and the least of
their times counts. Answers are asserted: factors of one change nothing, a discounted value is no
higher than the plain one, a certainty equivalent neither, and K prizes are worth at most K times
one.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measure import ROOT, Table, put, race
from weitzman import Forest, Solution, evaluate, solve
from weitzman.forest import Pool

ROUNDS = 3


def boxes(n: int, seed: int = 0) -> Forest:
    """Random trees of n boxes with eight states each, no two alike."""
    rng = np.random.default_rng(seed)
    parent = np.where(np.arange(n) % 20 == 0, -1, np.arange(n) - 1)
    law = rng.dirichlet(np.ones(8), (n, 8))
    law[parent < 0] = law[parent < 0, :1]
    return Forest.from_arrays(
        parent=parent,
        cost=rng.uniform(0.01, 0.2, n),
        rewards=np.sort(rng.random((n, 8)), axis=1),
        law=law,
    )


def variants(plain: Forest) -> dict[str, Forest]:
    """The same boxes with other terms."""
    costs = plain.costs

    def factors(m: float) -> Pool:
        return Pool(np.full_like(costs.data, m), costs.start, costs.shape)

    return {
        "plain": plain,
        "factors of 1": replace(plain, factors=factors(1.0)),
        "discounted": replace(plain, factors=factors(0.97)),
        "risk tolerance": plain.changed(risk_tolerance=0.5),
        "5 prizes": plain.changed(prizes=5),
    }


def main() -> None:
    n = 2_000 if "--quick" in sys.argv else 100_000
    forests = variants(boxes(n))
    found: dict[str, Solution] = {name: solve(f, threads=1) for name, f in forests.items()}
    plain = found["plain"].value
    assert abs(found["factors of 1"].value - plain) <= 1e-9
    assert found["discounted"].value <= plain
    assert found["risk tolerance"].value <= plain
    assert plain <= found["5 prizes"].value <= 5 * plain
    for name, solution in found.items():
        e = evaluate(solution)
        assert abs(e.value - solution.value) <= solution.gap + 1e-7, name
    table = Table(["task", "terms", "time", "x plain"])
    for what, task in (
        ("solve", lambda f: solve(f, threads=1)),
        ("evaluate", lambda f: evaluate(solve(f, threads=1))),
    ):
        contest = {name: partial(task, f) for name, f in forests.items()}
        times = race(contest, ROUNDS, clock=time.process_time, free=0)
        for name, took in times.items():
            ratio = f"{took / times['plain']:.2f}"
            table.rows.append([what, name, f"{took:.3f} s", ratio])
    table.notes.append(
        f"*Measured {date.today()}; load of the machine at the end {os.getloadavg()[0]:.1f}.*"
    )
    print(table.markdown())
    if "--write" in sys.argv:
        put(ROOT / "benchmarks" / "terms.md", "table", table.markdown())


if __name__ == "__main__":
    main()
