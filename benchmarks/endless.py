"""Endless lines: the downward sweep against the fixed point and against a long finite line.

Run ``python benchmarks/endless.py > benchmarks/endless.md`` (minutes, up to 1000 states) or with
``--quick`` (seconds). All times are processor times on one thread, the best of a few runs, compiled
before; all answers are compared before a row is printed.
The finite line is as long as the fixed point needed steps, so both are equally close to the truth.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

for _library in ("OPENBLAS", "MKL", "OMP"):  # before NumPy is loaded
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402

from weitzman.chains.chain import Chain  # noqa: E402
from weitzman.chains.endless import EndlessLine, FixedPoint, fixed_point, solve_line  # noqa: E402
from weitzman.engine.solution import Solution  # noqa: E402
from weitzman.engine.solver import solve  # noqa: E402
from weitzman.forest.model import Forest  # noqa: E402

ABOUT = """\
# Endless lines

Written by `python benchmarks/endless.py`, which says what is compared. A ratio above 1: the sweep
is faster by that factor. A dash: the finite line would take too long.
"""
TOLERANCE = 1e-12
LONGEST = 6e10  # states^3 times boxes up to which the finite line is solved


def chain_of(k: int, seed: int = 0) -> Chain:
    """Rewards in [0, 1]; half of the time any state may follow, so that the fixed point exists."""
    rng = np.random.default_rng(seed)
    return Chain(0.5 / k + 0.5 * rng.dirichlet(np.full(k, 0.2), k), rng.random(k))


def finite_line(chain: Chain, cost: float, boxes: int) -> Forest:
    """The same line, but with an end."""
    first = np.full(len(chain), 1 / len(chain))
    return Forest.from_arrays(
        parent=np.arange(boxes) - 1,
        cost=np.full(boxes, cost),
        rewards=chain.rewards,
        law=[first, *([chain.law] * (boxes - 1))],
    )


def clock(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The shortest of a few times, and the answer."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        answer = run()
        times.append(time.process_time() - start)
    return min(times), answer


def compare(k: int, cost: float, repeats: int) -> str:
    """One row of the table."""
    chain = chain_of(k)
    line: EndlessLine
    found: FixedPoint
    sweep, line = clock(lambda: solve_line(chain, cost), repeats)
    iterate, found = clock(lambda: fixed_point(chain, cost, TOLERANCE), 1 if k > 50 else repeats)
    np.testing.assert_allclose(line.phi(found.levels), found.table, rtol=0, atol=1e-11)
    finite = "-"
    boxes = found.steps + 1
    if k**3 * boxes <= LONGEST:
        forest = finite_line(chain, cost, boxes)
        solution: Solution
        long, solution = clock(lambda: solve(forest, tolerance=TOLERANCE, threads=1), 1)
        first = np.full(k, 1 / k)
        np.testing.assert_allclose(line.value_at(first), solution.value, rtol=0, atol=1e-11)
        np.testing.assert_allclose(line.index, solution.indices(1), rtol=0, atol=1e-9)
        finite = f"{long / sweep:.3g}"
    return (
        f"| {k} | {cost:g} | {sweep * 1e3:.3g} | {found.steps} | {found.contraction:.4f} "
        f"| {iterate / sweep:.3g} | {finite} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and smaller chains")
    quick = parser.parse_args().quick
    solve_line(chain_of(3), 0.1)  # compiles
    solve(finite_line(chain_of(3), 0.1, 4), tolerance=TOLERANCE)
    print(ABOUT)
    print(
        "| states | cost | sweep, ms | steps of the fixed point | contraction "
        "| fixed point / sweep | finite line / sweep |\n|---:|---:|---:|---:|---:|---:|---:|"
    )
    for k in (10, 30, 100) if quick else (10, 30, 100, 300, 1000):
        for cost in (0.1, 0.01, 0.001):
            print(compare(k, cost, 3 if k < 500 else 1), flush=True)


if __name__ == "__main__":
    main()
