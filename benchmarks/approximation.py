"""Plans made beforehand against the optimal policy, on static forests of growing depth and degree.

Run ``python benchmarks/approximation.py`` (minutes) or with ``--quick`` (seconds). Two trees, one
sticky transition matrix, and costs that differ from box to box, so that no two subtrees are equal.
All times of a row come from one run, the contestants taking turns; ratios of values are to what no
strategy can exceed (the optimal value and its certified gap). The best line is also found in the
paper's way, by walking all lines depth first, and both must agree; the values of sets and of the
optimal policy are computed a second time, by exact evaluation.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from datetime import date
from pathlib import Path

for _library in ("OPENBLAS", "MKL", "OMP"):  # before NumPy is loaded: one thread each
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measure import ROOT, Table, machine, race, seconds  # noqa: E402
from weitzman import Forest, Solution, evaluate, solve  # noqa: E402
from weitzman.strategies.fixed_sets import (  # noqa: E402
    FixedLine,
    best_line,
    best_nonadaptive,
    value_of_set,
)

ROOTS = 2
STATES = 5
SHAPES = ((2, 4), (2, 8), (2, 12), (2, 14), (4, 3), (4, 5), (4, 7), (8, 2), (8, 4), (8, 5))
COSTS = ((0.01, 0.05), (0.002, 0.01))
RESULTS = ROOT / "benchmarks" / "approximation.md"
HEAD = """\
# Plans fixed beforehand against the optimal policy

Written by `python benchmarks/approximation.py --write`, which says what is compared and how it is
checked. Values are shares of what no strategy can exceed; times are ratios to that of an exact
solve. "Line" is `best_line`, "walk" the paper's search for it in plain Python, "set"
`best_nonadaptive`, which is looked for on the smaller forests only.
"""
TOGETHER = 2000  # boxes up to which the best set is looked for


def static_forest(degree: int, depth: int, costs: tuple[float, float], seed: int = 0) -> Forest:
    """Full trees of one matrix: a step keeps the state with probability 0.6 and more."""
    rng = np.random.default_rng(seed)
    law = 0.6 * np.eye(STATES) + 0.4 * rng.dirichlet(np.full(STATES, 0.5), STATES)
    first = rng.dirichlet(np.full(STATES, 0.5))
    parent, level = [-1] * ROOTS, range(ROOTS)
    for _ in range(depth - 1):
        start = len(parent)
        parent += [v for v in level for _ in range(degree)]
        level = range(start, len(parent))
    return Forest.from_arrays(
        parent=parent,
        cost=rng.uniform(*costs, len(parent)),
        rewards=np.linspace(0, 1, STATES) ** 2,
        law=[first if p < 0 else law for p in parent],
    )


def walk(forest: Forest) -> float:
    """The paper's search: the cheapest line of each length, depth first; then the best length."""
    cost = [float(forest.costs[i][0, 0]) for i in forest.cost.tolist()]
    children: list[list[int]] = [[] for _ in cost]
    for v, p in enumerate(forest.parent.tolist()):
        if p >= 0:
            children[p].append(v)
    cheapest: dict[int, float] = {}
    stack = [(v, 1, cost[v]) for v in forest.roots.tolist()]
    while stack:
        v, length, spent = stack.pop()
        cheapest[length] = min(cheapest.get(length, np.inf), spent)
        stack += [(u, length + 1, spent + cost[u]) for u in children[v]]
    maxima = mean_maxima(forest, max(cheapest))
    return max(maxima[t] - spent for t, spent in cheapest.items())


def mean_maxima(forest: Forest, longest: int) -> list[float]:
    """E[max of the first t rewards] of a line, for t = 0, 1, ..."""
    root, child = int(forest.roots[0]), int(np.argmax(forest.parent >= 0))
    first, law = forest.laws[int(forest.law[root])][0], forest.laws[int(forest.law[child])]
    levels = forest.rewards[int(forest.reward[root])][0]
    below = levels[:, None] <= levels  # below[y, j]: state y does not exceed level j
    none_above = first[:, None] * below  # P(state of box t, max of the first t <= level j)
    means = [0.0]
    for _ in range(longest):
        at_most = none_above.sum(axis=0)
        means.append(float(levels @ np.diff(at_most, prepend=0.0)))
        none_above = (law.T @ none_above) * below
    return means


def compare(degree: int, depth: int, costs: tuple[float, float], repeats: int) -> list[str]:
    """One row of the table."""
    forest = static_forest(degree, depth, costs)
    solution, line = solve(forest), best_line(forest)
    check(forest, solution, line)  # also compiles
    bound = solution.value + solution.gap
    times = race(
        {
            "solve": lambda: solve(forest),
            "line": lambda: best_line(forest),
            "walk": lambda: walk(forest),
        },
        repeats,
    )
    row = [
        f"{degree}", f"{depth}", f"{costs[0]:g}-{costs[1]:g}", f"{len(forest)}",
        seconds(times["solve"]), f"{times['line'] / times['solve']:.2f}",
        f"{times['walk'] / times['solve']:.2f}", f"{line.value / bound:.3f}",
        f"{line.followed / bound:.3f}",
    ]  # fmt: skip
    if len(forest) > TOGETHER:
        return [*row, "", "", ""]
    start = time.perf_counter()
    chosen = best_nonadaptive(forest, solution=solution)
    longer = (time.perf_counter() - start) / times["solve"]
    members = np.flatnonzero(chosen.copies).tolist()
    assert np.isclose(chosen.value, value_of_set(chosen.forest, members), rtol=0, atol=1e-12)
    assert line.value - 1e-9 <= chosen.value <= bound
    proven = "yes" if chosen.exact else "no"
    return [*row, f"{chosen.value / bound:.3f}", proven, f"{longer:.0f}"]


def check(forest: Forest, solution: Solution, line: FixedLine) -> None:
    """The values, each found in another way."""
    np.testing.assert_allclose(line.value, walk(forest), rtol=0, atol=1e-12)
    np.testing.assert_allclose(line.value, value_of_set(forest, line.order), rtol=0, atol=1e-12)
    np.testing.assert_allclose(evaluate(solution).value, solution.value, rtol=0, atol=1e-8)
    assert line.value <= line.followed + 1e-9 <= solution.value + solution.gap + 2e-9


def table(*, quick: bool = False) -> Table:
    """All rows."""
    found = Table(
        [
            "degree", "depth", "costs", "boxes", "solve", "line / solve", "walk / solve",
            "value of line", "with stopping", "value of set", "proven best", "set / solve",
        ],
    )  # fmt: skip
    for costs in COSTS:
        for degree, depth in SHAPES[:2] if quick else SHAPES:
            found.rows.append(compare(degree, depth, costs, 1 if quick else 3))
            print(" | ".join(found.rows[-1]), file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few small forests")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    about = "\n".join(f"- {key}: {value}" for key, value in machine().items())
    text = f"{HEAD}\n{about}\n\n{table(quick=options.quick).markdown()}\n"
    text += (
        f"\n*Measured {date.today()}; load of the machine at the end {os.getloadavg()[0]:.1f}.*\n"
    )
    print(text)
    if options.write and not options.quick:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
