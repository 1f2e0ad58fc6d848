"""Journals on a disk that fails below SQLite: errors, short writes, failed syncs, power cuts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HELPERS = Path(__file__).parents[1] / "helpers"


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The disk that fails, compiled here."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler, on Linux")
    target = tmp_path_factory.mktemp("shim") / "faulty_disk.so"
    source = str(HELPERS / "faulty_disk.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", target, source, "-ldl"], check=True)
    return target


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: the failing disk is made up."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield Path(name)


def run(shim: Path, folder: Path, what: str) -> dict[str, Any]:
    env = {**os.environ, "LD_PRELOAD": str(shim)}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, str(HELPERS / "faulty_disk.py"), str(folder), what],
        env=env, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_each_write_and_each_sync_fails_once(shim: Path, folder: Path) -> None:
    """What a call promised is there; what was not promised can be told again."""
    found = run(shim, folder, "faults")
    assert found["wrong"] == []
    assert found["tried"] > 150


def test_power_cuts_with_any_of_the_unsynced_writes(shim: Path, folder: Path) -> None:
    found = run(shim, folder, "cuts")
    assert found["wrong"] == []
    assert found["tried"] > 500


def test_a_file_system_without_locks_is_rejected_at_once(shim: Path, folder: Path) -> None:
    found = run(shim, folder, "locks")
    assert found["wrong"] == []
    assert found["tried"] == 16
