"""Every example runs, says something, and its own assertions hold."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if path.stem == "tune_ray":  # starts a Ray of its own
        command = [sys.executable, str(path)]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()
        return
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(path.parent)
    monkeypatch.setattr("sys.argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_there_are_examples() -> None:
    assert EXAMPLES
