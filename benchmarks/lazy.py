"""Lazy forests: a tree of 10^19 boxes in which nothing repeats, and smaller ones written out.

Run ``python benchmarks/lazy.py > benchmarks/lazy.md`` (a minute) or with ``--quick`` (seconds).
Every box has three children, down to a depth of 40; the price of each is a hash of its number, so
there are no two equal subtrees to be found. All answers are checked before a row is printed:

* the bounds of all runs must contain each other, the closer ones inside the others;
* the policy that comes with a lower bound must earn it in simulation;
* the price of all boxes lowered to the least, and raised to the most, must enclose the bounds;
* trees of smaller depth are written out, solved as a whole, and must lie within the bounds.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import weitzman
from weitzman import Forest, LazyForest, Node
from weitzman.bounds import LazySolution
from weitzman.bounds.refining import Ending

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measure import machine

DEPTH, BRANCHING, STATES = 40, 3, 6
LEAST, MOST = 0.5, 1.5  # costs
REWARDS = 10.0 * np.arange(STATES)
MASK = 2**64 - 1
BUDGET = 100_000


def step_law() -> np.ndarray:
    """A refinement is one level better (0.35), two (0.05), as good (0.35) or one worse (0.25)."""
    law = np.zeros((STATES, STATES))
    for y in range(STATES):
        for move, chance in ((1, 0.35), (2, 0.05), (0, 0.35), (-1, 0.25)):
            law[y, min(max(y + move, 0), STATES - 1)] += chance
    return law


LAW = step_law()


def price(number: int) -> float:
    """A cost between LEAST and MOST that the number of a box hashes to (SplitMix64)."""
    z = (number + 1) * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return LEAST + (MOST - LEAST) * ((z ^ z >> 31) >> 11) * 2.0**-53


def prices(count: int) -> np.ndarray:
    """The costs of boxes 0 to count - 1."""
    z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return LEAST + (MOST - LEAST) * ((z ^ z >> np.uint64(31)) >> np.uint64(11)) * 2.0**-53


def lazy_tree(depth: int) -> LazyForest:
    """Three roots, numbers 0 to 2; the children of box n are 3 n + 3, 3 n + 4 and 3 n + 5."""

    def children(node: Node) -> list[Node]:
        number, level = node.data
        if level == depth:
            return []
        numbers = range(BRANCHING * (number + 1), BRANCHING * (number + 2))
        return [Node(law=LAW, rewards=REWARDS, cost=price(n), data=(n, level + 1)) for n in numbers]

    roots = [
        Node(law=LAW[0], rewards=REWARDS, cost=price(n), data=(n, 1)) for n in range(BRANCHING)
    ]
    return LazyForest(roots, children, least_cost=LEAST, branching=BRANCHING)


def boxes(depth: int) -> int:
    """How many boxes a tree has."""
    return BRANCHING * (BRANCHING**depth - 1) // (BRANCHING - 1)


def written_out(depth: int) -> Forest:
    """The same tree as a forest."""
    n = boxes(depth)
    law = np.empty(n, object)
    law[:], law[:BRANCHING] = [LAW] * n, [LAW[0]] * BRANCHING
    return Forest.from_arrays(
        parent=np.arange(n) // BRANCHING - 1, cost=prices(n), rewards=REWARDS, law=law.tolist()
    )


def at_one_price(cost: float) -> float:
    """The value if all boxes cost the same: copies, so 40 boxes are enough to write it down."""
    forest = Forest.from_arrays(
        parent=range(-1, DEPTH - 1), cost=cost, rewards=REWARDS, law=[LAW[0], *[LAW] * (DEPTH - 1)],
        count=[BRANCHING] * DEPTH,
    )  # fmt: skip
    return weitzman.solve(forest).value


def clock(tree: LazyForest, gap: float) -> tuple[float, LazySolution]:
    start = time.perf_counter()
    found = weitzman.solve(tree, gap=gap, budget=BUDGET)
    return time.perf_counter() - start, found


def huge(gaps: list[float]) -> None:
    """The tree of depth 40, closer and closer."""
    low, high = at_one_price(MOST), at_one_price(LEAST)
    print(
        f"{boxes(DEPTH):.3g} boxes, the cost of each hashed from its number. One level alone is "
        f"worth {weitzman.solve(written_out(1)).value:.4g}.\n"
    )
    print(
        "| gap asked for | nodes expanded | lower | upper | gap | rounds | time, s | first |\n"
        "|---:|---:|---:|---:|---:|---:|---:|---|"
    )
    for gap in gaps:
        seconds, found = clock(lazy_tree(DEPTH), gap)
        assert found.ending is Ending.GAP
        assert found.gap <= gap
        assert low <= found.lower <= found.upper <= high, "not inside what came before"
        low, high = found.lower, found.upper
        check_policy(found)
        sure = "proven" if found.proven else f"loses at most {found.regret:.2g}"
        print(
            f"| {gap:g} | {found.expanded} | {low:.5f} | {high:.5f} | {found.gap / high:.2%} "
            f"| {len(found.history)} | {seconds:.2g} | open {found.first_box}, {sure} |",
            flush=True,
        )


def check_policy(found: LazySolution) -> None:
    """What is promised is earned."""
    played = weitzman.simulate(found.policy(), 40_000, rng=1).payoff
    assert abs(played.mean - found.lower) < 5 * played.standard_error, "the policy earns otherwise"


def growth(depths: list[int], share: float) -> None:
    """Trees of growing depth: written out and solved as a whole, against expanding on demand."""
    print(
        f"\nUp to a gap of {share:.1%} of the value, against the tree written out. The bound knows "
        f"nothing of the depth, so a shallow tree is expanded to its end.\n\n"
        "| depth | boxes | value | lower | upper | nodes expanded | whole / lazy, time |\n"
        "|---:|---:|---:|---:|---:|---:|---:|"
    )
    for depth in depths:
        start = time.perf_counter()
        whole = weitzman.solve(written_out(depth))
        full = time.perf_counter() - start
        seconds, found = clock(lazy_tree(depth), share * whole.value)
        assert found.lower - 1e-6 <= whole.value <= found.upper + 1e-6, "the value is outside"
        assert found.first_box == whole.first_box, "the first decisions differ"
        print(
            f"| {depth} | {boxes(depth)} | {whole.value:.5f} | {found.lower:.5f} "
            f"| {found.upper:.5f} | {found.expanded} | {full / seconds:.2g} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller trees, wider gaps")
    quick = parser.parse_args().quick
    assert price(12345) == prices(12346)[-1]
    weitzman.solve(lazy_tree(3))  # compiles
    weitzman.simulate(weitzman.solve(written_out(2)), 10_000, rng=0)
    print("# Lazy forests\n\nWritten by `python benchmarks/lazy.py`, which says what is checked.\n")
    print("\n".join(f"- {key}: {value}" for key, value in machine().items()), "\n")
    huge([4.0, 0.4] if quick else [4.0, 0.4, 0.12, 0.04])
    growth([4, 6, 8] if quick else [4, 6, 8, 10, 12], 0.01)


if __name__ == "__main__":
    main()
