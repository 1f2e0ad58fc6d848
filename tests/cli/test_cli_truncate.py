"""``weitzman truncate`` as a user types it."""

from __future__ import annotations

import json

import pytest

import weitzman
from weitzman.cli import main


@pytest.fixture
def long(tmp_path) -> str:
    """A line of 1001 boxes, as one writes it."""
    step = {"cost": 0.5, "rewards": [0, 10], "law": [[0.9, 0.1], [0.2, 0.8]]}
    start = {"name": "start", "cost": 1, "rewards": [0, 10], "law": [0.5, 0.5]}
    line = {"name": "chain", "parent": "start", "kind": "step", "length": 1000}
    document = {"format": "weitzman/1", "kinds": {"step": step}, "boxes": [start, line]}
    path = tmp_path / "long.json"
    path.write_text(json.dumps(document))
    return str(path)


def test_report_and_file(long, tmp_path, capsys):
    out = str(tmp_path / "short.json")
    assert main(["truncate", long, "--gap", "0.001", "-o", out]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["depth        76", "boxes kept   76 of 1001   (0.0759 of them)"]
    assert [line.split()[0] for line in lines[2:]] == ["lower", "upper", "lost"]
    whole, kept = weitzman.load(long), weitzman.load(out)
    assert kept.names == whole.names[:76]
    lost = weitzman.solve(whole).value - weitzman.solve(kept).value
    assert 0 < lost <= 0.001
    assert main(["solve", out]) == 0


def test_json(long, capsys):
    assert main(["truncate", long, "--gap", "1e-6", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    cut = weitzman.truncate(weitzman.load(long), gap=1e-6)
    for key in ("depth", "kept", "of", "lower", "upper", "gap"):
        assert found[key] == getattr(cut, key)
    assert list(found) == ["depth", "kept", "of", "lower", "upper", "gap"]


def test_nothing_to_cut(tmp_path, capsys):
    boxes = str(tmp_path / "boxes.json")
    assert main(["demo", "--json"]) == 0
    (tmp_path / "boxes.json").write_text(capsys.readouterr().out)
    assert main(["truncate", boxes, "--gap", "1e-3"]) == 0
    assert "boxes kept   3 of 3   (all)" in capsys.readouterr().out
    assert main(["truncate", boxes, "--gap", "100"]) == 0
    assert "boxes kept   2 of 3" in capsys.readouterr().out


@pytest.mark.parametrize("gap", ["0", "-1", "x", "nan", "inf"])
def test_a_gap_is_a_number_above_zero(long, capsys, gap):
    assert main(["truncate", long, "--gap", gap]) == 2
    err = capsys.readouterr().err
    assert err.startswith("weitzman: error: Invalid value for '--gap': ")
    assert gap in err


def test_what_is_wrong_is_said_in_one_line(long, tmp_path, capsys):
    assert main(["truncate", long]) == 2
    assert "--gap" in capsys.readouterr().err
    assert main(["truncate", long, "--gap", "1", "-o", str(tmp_path / "x.txt")]) == 1
    out, error = capsys.readouterr()
    assert out == ""
    assert "must end in .json, .json.gz or .wz" in error
    assert main(["truncate", long, "--gap", "1", "-o", str(tmp_path / "no" / "x.json")]) == 3
    assert "cannot be written" in capsys.readouterr().err
