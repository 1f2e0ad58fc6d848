"""The same bits on any number of threads, in any process, with any cache; and no more memory."""

from __future__ import annotations

import gc
import hashlib
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weitzman
from weitzman._kernels import jit

HERE = Path(__file__)
CODE = """
import sys
sys.path[:0] = sys.argv[2:]
from test_bitwise_identical import digest
print(digest(int(sys.argv[1])))
"""


def forest(boxes: int = 40, seed: int = 7) -> Any:
    rng = np.random.default_rng(seed)
    parent = [-1 if i < 8 or rng.random() < 0.4 else int(rng.integers(i)) for i in range(boxes)]
    law = [rng.dirichlet(np.ones(3)) if p < 0 else rng.dirichlet(np.ones(3), 3) for p in parent]
    return weitzman.Forest.from_arrays(
        parent=parent, cost=rng.random(boxes), rewards=10 * rng.normal(size=(boxes, 3)), law=law,
        count=rng.integers(1, 5, boxes),
    )  # fmt: skip


def digest(threads: int) -> str:
    """What a solve, an evaluation and a simulation give, to the last bit."""
    f, known = forest(), hashlib.sha256()
    s = weitzman.solve(f, threads=threads)
    e, played = weitzman.evaluate(s), weitzman.simulate(s, 300, 3)
    indices = map(s.indices, range(len(f)))
    for x in (s.value, s.gap, e.value, e.opened, played.payoff.mean, *indices):
        known.update(np.ascontiguousarray(x, float).tobytes())
    return known.hexdigest()


def started(folder: Path, threads: int = 1, **options: Any) -> subprocess.Popen[str]:
    unset = "HOME", "PYTHONPATH", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"
    env = {k: v for k, v in os.environ.items() if k not in unset}
    env |= {"WEITZMAN_CACHE_DIR": str(folder), "NUMBA_NUM_THREADS": str(threads)}
    return subprocess.Popen(
        [sys.executable, "-B", "-c", CODE, str(threads), str(HERE.parent), *sys.path], env=env,
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
    )  # fmt: skip


def said(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (0, "")
    return out.strip()


@pytest.fixture(scope="module")
def here() -> str:
    return digest(1)


@pytest.fixture
def warm(here: str, tmp_path: Path) -> Path:
    """A folder of its own with everything that is compiled so far."""
    kept = jit.kept_in()
    if kept is None:
        pytest.skip("compiled code cannot be kept here")
    shutil.copytree(kept, tmp_path / "cache" / kept.name)
    return tmp_path / "cache"


def smallest(folder: Path, many: int = 2) -> list[Path]:
    """Files of kernels that are compiled quickly, among those that a solve needs."""
    found = [x for x in folder.rglob("*.bin") if x.name.startswith(("blocks.", "structure."))]
    return sorted(found, key=lambda path: path.stat().st_size)[:many]


def test_other_processes_and_threads(here: str, warm: Path) -> None:
    assert said(started(warm, 4)) == here  # without a home, too


def read_only() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def damaged(data: bytes) -> bytes:
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :]


def test_a_cache_that_cannot_be_written(here: str, warm: Path) -> None:
    assert said(started(warm, preexec_fn=read_only)) == here


def test_a_damaged_cache_that_two_processes_mend_at_once(here: str, warm: Path) -> None:
    one, other = smallest(warm)
    one.write_bytes(damaged(one.read_bytes()))
    other.write_bytes(b"")
    both = [started(warm), started(warm, 2)]
    assert [said(one) for one in both] == [here, here]
    assert said(started(warm)) == here


@pytest.mark.skipif("WEITZMAN_THOROUGH" not in os.environ, reason="compiles everything twice")
def test_an_empty_cache_that_two_processes_fill(here: str, tmp_path: Path) -> None:
    both = [started(tmp_path), started(tmp_path, 2)]
    assert [said(one) for one in both] == [here, here]


def resident() -> int:
    """Bytes of memory that this process has in use."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_a_thousand_solves_in_a_row_do_not_grow_memory() -> None:
    """Forests that differ, so that nothing that was kept for one serves another."""

    def solved(first: int, last: int) -> None:
        for seed in range(first, last):
            s = weitzman.solve(forest(12, seed))
            s.policy()
            if seed % 10 == 0:
                weitzman.evaluate(s)
        gc.collect()

    solved(0, 200)
    before = resident()
    solved(200, 1200)
    assert resident() - before < 2 * 2**20
