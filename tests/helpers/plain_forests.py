"""Forests for tests: the paper's example, random ones, those of the oracle, copies written out."""

from __future__ import annotations

import numpy as np
import reference

from weitzman import Builder, Forest
from weitzman.cli import main
from weitzman.files import save

PAPER = {
    "parent": [-1, 0, -1],
    "cost": [20, 3, 5],
    "rewards": [[1, 900], [21, -9, 920, 890], [50, 10]],
    "law": [[0.9, 0.1], [[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]], [0.5, 0.5]],
}


def forest_of(problem: reference.Problem, **terms) -> Forest:
    return Forest.from_arrays(**reference.to_arrays(problem), **terms)


def entries_of(table: reference.Table) -> list:
    """A table of the oracle as `Forest.from_arrays` takes factors: a matrix for each box."""
    return [[[float(x) for x in rows[s]] for s in sorted(rows)] for rows in table]


def random_forest(
    rng: np.random.Generator, n: int, most: int = 4, spread: float = 1.0, branch: int = 3
) -> Forest:
    """A forest of n boxes with differing numbers of states; too large for the oracle."""
    parent = np.array([-1 if i == 0 else rng.integers(max(-1, i - branch), i) for i in range(n)])
    k = rng.integers(1, most + 1, n)
    rewards = [spread * rng.random(k[i]) for i in range(n)]
    law = [
        rng.dirichlet(np.full(k[i], 0.7), None if parent[i] < 0 else k[parent[i]]) for i in range(n)
    ]
    return Forest.from_arrays(
        parent=parent, cost=spread * rng.uniform(0.001, 0.2, n), rewards=rewards, law=law
    )


def written_out(parent, count):
    """Parents and origins of all copies, by plain recursion."""
    new_parent, origin = [], []

    def add(box, above):
        for _ in range(count[box]):
            me = len(origin)
            origin.append(box)
            new_parent.append(above)
            for child in (i for i, p in enumerate(parent) if p == box):
                add(child, me)

    for root in (i for i, p in enumerate(parent) if p < 0):
        add(root, -1)
    return new_parent, origin


def run_command(tmp_path, capsys, command: str, *options: str) -> str:
    """What the command prints for the paper's example."""
    path = tmp_path / "boxes.json"
    save(Forest.from_arrays(**PAPER, names=["A", "B", "C"]), path)
    assert main([command, str(path), *options]) == 0
    return capsys.readouterr().out


def paper_example() -> Forest:
    """The example of the paper: B behind A, and C."""
    boxes = Builder()
    boxes.add("A", cost=20, outcomes={900: 0.1, 1: 0.9})
    boxes.add("B", parent="A", cost=3, outcomes={1: {21: 0.5, -9: 0.5}, 900: {920: 0.5, 890: 0.5}})
    boxes.add("C", cost=5, outcomes={50: 0.5, 10: 0.5})
    return boxes.build()
