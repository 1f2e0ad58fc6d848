"""A forest that is larger than memory: written and solved by processes under a limit.

``python -m benchmarks.larger 10000000`` writes as many different boxes to a file and solves it,
each in a process that may hold 1 GB (its highest resident memory is measured and asserted).
``--write`` puts the figures into ``larger.md``.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import numpy as np

import weitzman
from weitzman import Forest
from weitzman.bounds import solve_file
from weitzman.files import save_many
from weitzman.forest.columns import Pool, starts

from .measure import ROOT, Table, child_json, peak_during, put, resident

GB = 10**9
TREE, K, PART = 10, 3, 100_000


def boxes(first: int, count: int) -> Forest:
    """Trees of ten boxes with three states; laws, rewards and costs all differ."""
    rng = np.random.default_rng(first)
    number = np.arange(count)
    place = number % TREE
    parent = np.where(place == 0, -1, number - 1 - (rng.random(count) * place).astype(np.int64))
    rows = np.where(parent < 0, 1, K)
    shape = np.column_stack([rows, np.full(count, K)])
    law = rng.standard_gamma(0.5, int(rows.sum()) * K).reshape(-1, K) + 1e-9
    law /= law.sum(axis=1, keepdims=True)
    row, one = np.tile([1, K], (count, 1)), np.ones((count, 2), np.int64)
    return Forest(
        parent=parent, law=number, reward=number, cost=number,
        laws=Pool(law.reshape(-1), starts(shape), shape),
        rewards=Pool(rng.random(count * K), starts(row), row),
        costs=Pool(rng.uniform(0.05, 0.5, count), starts(one), one),
        count=np.ones(count, np.int64),
    )  # fmt: skip


def stream(total: int) -> Iterator[Forest]:
    """All of them, part by part."""
    for first in range(0, total, PART):
        yield boxes(first, min(PART, total - first))


def step(what: str, total: int, path: str) -> dict[str, float]:
    """In a process of its own."""
    weitzman.solve(boxes(0, 100))
    start = time.process_time()
    found: dict[str, float] = {}
    if what == "write":
        before, more = peak_during(lambda: save_many(stream(total), path))
    else:

        def solve() -> None:
            solved = solve_file(path, part=PART)
            found.update(value=solved.value, gap=solved.gap, parts=solved.parts)

        before, more = peak_during(solve)
    return found | {
        "seconds": time.process_time() - start, "peak": before + more, "now": resident(),
        "file": Path(path).stat().st_size,
    }  # fmt: skip


def main(total: int, write: bool) -> None:
    """Write, solve, and assert the limit."""
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/forest.wz"
        for what in ("write", "solve"):
            done = child_json(["-m", "benchmarks.larger", what, str(total), path])
            assert done["peak"] < GB, done
            found[what] = done
            print(
                f"{what}: {total:,} boxes, a file of {done['file'] / 1e9:.2f} GB, at most "
                f"{done['peak'] / 1e6:.0f} MB resident, {done['seconds']:.1f} s of processor time "
                f"{ {k: v for k, v in done.items() if k in ('value', 'gap', 'parts')} }",
                flush=True,
            )
    head = ["boxes", "file", "write: highest memory, time", "solve: highest memory, time"]
    table = Table([*head, "parts", "certified gap"])
    cells = [f"{x['peak'] / 1e6:.0f} MB, {x['seconds']:.1f} s" for x in found.values()]
    last = found["solve"]
    file, parts = f"{last['file'] / 1e9:.2f} GB", f"{last['parts']:.0f}"
    table.rows.append([f"{total:,}", file, *cells, parts, f"{last['gap']:.0e}"])
    table.notes.append(f"*Measured {date.today()}; processor time.*")
    if write:
        put(ROOT / "benchmarks" / "larger.md", "table", table.markdown())


if __name__ == "__main__":
    if len(sys.argv) > 3:
        print(json.dumps(step(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
    else:
        main(int(sys.argv[1]), "--write" in sys.argv)
