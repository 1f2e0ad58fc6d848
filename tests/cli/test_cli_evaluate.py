"""``weitzman evaluate`` as a user types it."""

from __future__ import annotations

import json

import pytest

from weitzman.cli import main


@pytest.fixture
def boxes(tmp_path, capsys):
    assert main(["demo", "--json"]) == 0
    path = tmp_path / "boxes.json"
    path.write_text(capsys.readouterr().out, "utf-8")
    return str(path)


def test_table(boxes, capsys):
    assert main(["evaluate", boxes]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("value 94.325 = reward 120.475 - spend 26.15")
    assert [line.split()[:2] for line in out[2:]] == [["A", "1"], ["C", "0.9"], ["B", "0.55"]]


def test_json(boxes, capsys):
    assert main(["evaluate", boxes, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["value"] == pytest.approx(94.325)
    assert found["value"] == pytest.approx(found["reward"] - found["spend"])
    assert sum(sum(box["chosen"]) for box in found["boxes"]) == pytest.approx(1)
    assert [box["name"] for box in found["boxes"]] == ["A", "B", "C"]


def test_break_even(boxes, capsys):
    assert main(["evaluate", boxes, "--break-even", "B", "--after", "1"]) == 0
    out = capsys.readouterr().out
    assert "B costs 3 after 1 now." in out
    assert "From 10 on it is never worth opening after 1." in out
    assert "begins with A, whatever B costs" in out
    assert main(["evaluate", boxes, "--break-even", "A", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["cost"] == 20
    assert found["first_below"] == pytest.approx(86.7)
    assert main(["evaluate", boxes, "--break-even", "C"]) == 0
    assert "would not begin with C even if C were free" in capsys.readouterr().out


def test_what_is_wrong_is_said_in_one_line(boxes, capsys):
    assert main(["evaluate", boxes, "--break-even", "B"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("weitzman: error: the index of box 'B' depends on the state of its")
    assert error.count("\n") == 1
    assert main(["evaluate", boxes, "--break-even", "D"]) == 1
    assert "there is no box 'D'" in capsys.readouterr().err
