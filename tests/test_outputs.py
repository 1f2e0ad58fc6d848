"""Files that the package writes for a user: whole, old or new, whatever comes between."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from written_files import WRITERS, forest, held

import weitzman
from weitzman.errors import WeitzmanError
from weitzman.show.report import write_report

HELPER = Path(__file__).parent / "helpers" / "written_files.py"
ALL = {**WRITERS, "report.html": lambda path, v: write_report(small(v), path)}


def small(version: int) -> Any:
    return weitzman.Builder(outside=version).add("A", cost=1, outcomes={9: 0.5, 0: 0.5}).build()


@pytest.fixture(params=ALL)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file that is there already."""
    for module in ("matplotlib", "openpyxl"):
        pytest.importorskip(module)
    path = tmp_path / request.param
    ALL[path.name](path, 1)
    return path


def listed(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_a_full_disk_leaves_the_old_file(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file may grow beyond some bytes; or the disk is full when all is to be written down."""
    before, size = held(old), old.stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for most in (0, size // 2):
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
            with pytest.raises((WeitzmanError, OSError)) as refusal:
                ALL[old.name](old, 2)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert "too large" in str(refusal.value)
        assert (held(old), listed(old.parent)) == (before, [old.name])

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for call in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, full)
            with pytest.raises((WeitzmanError, OSError), match="No space left"):
                ALL[old.name](old, 2)
        assert (held(old), listed(old.parent)) == (before, [old.name])
    ALL[old.name](old, 2)
    assert listed(old.parent) == [old.name]


def test_no_module_writes_a_file_in_another_way() -> None:
    """What opens files for writing is known, and everything else goes through ``disk.py``."""
    source = Path(weitzman.__file__).parent
    words = re.compile(r'open\([^\n]*, "[wxa]|fdopen|\.write_(text|bytes|table)\(|savefig\(|'
                       r"\.to_(csv|excel|parquet|pickle)\(|np\.save|\.dump\(|mkstemp")  # fmt: skip
    found = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if words.search(path.read_text("utf-8"))
    }
    assert found == {
        "_common/disk.py",  # replacing
        "_kernels/jit.py",  # replaced by name, as its own tests say
        "_common/sharing.py", "cli/common.py", "show/explore/workbench.py",  # for a moment
        "show/explore/__init__.py",  # for a moment, the way to the page
        "files/event_log.py",  # complete before it has its name
        "files/binary.py",  # columns, in a folder that lasts for a moment
        "cli/backtest_command.py", "tune/callbacks.py",  # replaced
        "tune/ray.py",  # who drives an experiment: a file that must be new
    }  # fmt: skip


def run(folder: Path, what: str) -> dict[str, Any]:
    for module in ("matplotlib", "openpyxl"):
        pytest.importorskip(module)
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", str(HELPER), str(folder), what],
        env=env, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_kill_anywhere_leaves_the_old_file_or_the_new(tmp_path: Path) -> None:
    found = run(tmp_path, "kills")
    assert found["wrong"] == []
    assert found["tried"] > 120
    assert min(found["old"], found["new"]) > found["tried"] // 4


def test_two_that_write_at_once_leave_a_whole_file(tmp_path: Path) -> None:
    found = run(tmp_path, "together")
    assert (found["wrong"], found["left"]) == ([], [])
    assert found["looks"] > 100


LATER = """
import sys
sys.path[:0] = sys.argv[2:]
from written_files import forest
from weitzman.show.explore.workbench import OwnFile
import weitzman
path = sys.argv[1]
for _ in range(25):
    while True:
        own = OwnFile(path)
        own.seen()
        count = weitzman.load(path).outside
        if "taken" not in own.save(weitzman.load(path).changed(outside=count + 1)):
            break
"""


def test_two_explorers_on_one_file_lose_no_change(tmp_path: Path) -> None:
    """Each adds one to a number, fifty times in all; what another has saved is not overwritten."""
    path = tmp_path / "shared.json"
    weitzman.save(forest(0), path)
    both = [subprocess.Popen([sys.executable, "-c", LATER, str(path), *sys.path]) for _ in range(2)]
    assert [process.wait(timeout=300) for process in both] == [0, 0]
    assert weitzman.load(path).outside == 50
