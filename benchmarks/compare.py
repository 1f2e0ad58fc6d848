"""Two commits side by side, as ratios of processor time, in one run.

``python -m benchmarks.compare A B`` checks out both commits into temporary folders, starts one
process for each, and lets the processes take turns on the same seeded problems. Ratios are B over
A: below 1, B is faster. Values and indices of both are compared to the last bit, and the table says
where they differ. ``--instructions`` also counts the instructions of a run with ``callgrind``, so
that noise hides nothing: Valgrind must be installed, and a case takes minutes. Valgrind knows no
AVX-512, so kernels are then compiled for a processor of 2013 with AVX2.

Only names that have never changed are used, so that old commits can take part.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[1]

WORKER = r"""
import hashlib, json, sys, time
import numpy as np
import weitzman

def lines(count, length, k, seed):
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.full(k, 0.5), size=(count, length, k))
    law[:, 0] = law[:, 0, :1]
    parent = np.arange(count * length) - 1
    parent[::length] = -1
    return weitzman.Forest.from_arrays(
        parent=parent, cost=rng.uniform(0.005, 0.05, count * length),
        rewards=np.repeat(np.sort(rng.random((count, k)), axis=1), length, axis=0),
        law=law.reshape(-1, k, k))

def tree(n, k, seed):
    rng = np.random.default_rng(seed)
    parent = np.array([-1 if i == 0 else rng.integers(0, i) for i in range(n)])
    law = rng.dirichlet(np.full(k, 0.5), size=(n, k))
    law[0] = law[0, :1]
    return weitzman.Forest.from_arrays(
        parent=parent, cost=rng.uniform(0.005, 0.05, n), rewards=np.sort(rng.random(k)), law=law)

CASES = {
    "solve, 2,000 lines of 50 boxes, 8 states": (lambda: lines(2000, 50, 8, 1), "solve"),
    "solve, 20 lines of 1,000 boxes, 16 states": (lambda: lines(20, 1000, 16, 2), "solve"),
    "solve, a random tree of 20,000 boxes, 4 states": (lambda: tree(20_000, 4, 3), "solve"),
    "evaluate, 200 lines of 50 boxes, 8 states": (lambda: lines(200, 50, 8, 4), "evaluate"),
}
made = {}
print(json.dumps(list(CASES)), flush=True)
for line in sys.stdin:
    name, repeats = json.loads(line)
    build, what = CASES[name]
    if name not in made:
        forest = build()
        made[name] = (weitzman.solve(forest, threads=1), forest)
        if what == "evaluate":
            weitzman.evaluate(made[name][0])
    solution, forest = made[name]
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        if what == "solve":
            found = weitzman.solve(forest, threads=1)
            answer = [found.value, *found.index_columns()[1].tolist()]
        else:
            found = weitzman.evaluate(solution)
            answer = [found.value, *np.asarray(found.opened).tolist()]
        best = min(best, time.process_time() - start)
    bits = hashlib.sha256(np.array(answer).tobytes()).hexdigest()
    print(json.dumps([best, bits, answer[0]]), flush=True)
"""


FEATURES = "avx avx2 bmi bmi2 cmov cx16 f16c fma fxsr lzcnt movbe popcnt sse4.1 sse4.2 ssse3"
COUNTED = {  # what Valgrind knows; given in full, so that it finds what was compiled outside
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": ",".join(f"+{name}" for name in FEATURES.split()),
}


class Worker:
    """A process that runs cases on one checkout; with a file for counts, under callgrind."""

    def __init__(
        self, folder: Path, counter: Path | None = None, settings: dict[str, str] | None = None
    ) -> None:
        env = {**os.environ, "PYTHONPATH": str(folder / "src"), "WEITZMAN_COMPILE": "always"}
        command = [sys.executable, "-c", WORKER]
        if counter is not None:
            options = ["--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={counter}"]
            command = ["valgrind", "-q", *options, *command]
        self._process = subprocess.Popen(
            command, env={**env, **(settings or {})}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        self.cases: list[str] = self._answer()

    def control(self, *order: str) -> None:
        """Tell callgrind to count (``-i on``), or to write down what was counted (``-d``)."""
        order = ("callgrind_control", *order, str(self._process.pid))
        subprocess.run(order, check=True, capture_output=True)

    def run(self, case: str, repeats: int) -> tuple[float, str, float]:
        """Least processor time, a hash of the answer, and its first number."""
        stream: IO[str] | None = self._process.stdin
        assert stream is not None
        stream.write(json.dumps([case, repeats]) + "\n")
        stream.flush()
        seconds, bits, value = self._answer()
        return seconds, bits, value

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a worker ended before its answer: see the error above.")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(600)
        self._process.stdout.close()


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A commit in a temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="weitzman-"))
    try:
        archive = subprocess.run(
            ["git", "archive", commit, "src"], cwd=ROOT, check=True, capture_output=True
        )
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compare(
    a: str, b: str, turns: int, repeats: int, part: str = ""
) -> list[tuple[str, float, float, bool]]:
    """For each case: processor times of A and B, and whether their answers agree to the bit."""
    with checkout(a) as first, checkout(b) as second:
        workers = [Worker(first), Worker(second)]
        rows = []
        for case in (name for name in workers[0].cases if part in name):
            best, bits = [float("inf")] * 2, [""] * 2
            for _ in range(turns):
                for i, worker in enumerate(workers):
                    took, bits[i], _ = worker.run(case, repeats)
                    best[i] = min(best[i], took)
            rows.append((case, best[0], best[1], bits[0] == bits[1]))
        for worker in workers:
            worker.close()
    return rows


def instructions(commit: str, case: str) -> int:
    """Instructions of one run of a case; building and compiling are not counted."""
    with checkout(commit) as folder, tempfile.TemporaryDirectory() as place:
        kept = {"WEITZMAN_CACHE_DIR": str(Path(place) / "compiled")}
        outside = Worker(folder, settings={**COUNTED, **kept})
        outside.run(case, 1)  # compiled here, faster than under Valgrind
        outside.close()
        counts = Path(place) / "counts"
        worker = Worker(folder, counts, {**COUNTED, **kept})
        worker.run(case, 1)
        worker.control("-i", "on")
        worker.run(case, 1)
        worker.control("-d")
        worker.close()  # which is counted apart
        return counted(Path(f"{counts}.1").read_text())


def counted(text: str) -> int:
    """The instructions in a file of callgrind, of all its parts."""
    found = [line.split()[1] for line in text.splitlines() if line.startswith("summary:")]
    if not found or "events: Ir" not in text:
        raise SystemExit("callgrind has counted no instructions.")
    return sum(map(int, found))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table of ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("a", metavar="A")
    parser.add_argument("b", metavar="B")
    parser.add_argument("--turns", type=int, default=5, help="how often both take turns")
    parser.add_argument("--repeats", type=int, default=3, help="runs in a turn; the least counts")
    parser.add_argument("--case", default="", help="only cases whose names contain this")
    parser.add_argument("--instructions", action="store_true", help="count them with callgrind")
    given = parser.parse_args(arguments)
    if given.instructions and shutil.which("valgrind") is None:
        parser.error("--instructions needs Valgrind, which is not installed.")
    print(f"| case | {given.a} | {given.b} | ratio | same bits |\n|---|---:|---:|---:|---|")
    for case, one, other, same in compare(given.a, given.b, given.turns, given.repeats, given.case):
        row = f"| {case} | {one:.4f} s | {other:.4f} s | {other / one:.2f} | "
        print(row + f"{'yes' if same else 'NO'} |")
        if given.instructions:
            n, m = (instructions(commit, case) for commit in (given.a, given.b))
            print(f"| its instructions | {n:,} | {m:,} | {m / n:.3f} | |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
