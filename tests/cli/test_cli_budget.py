"""``weitzman budget`` and ``weitzman tornado``."""

from __future__ import annotations

import json

import pytest

from weitzman import Builder, save
from weitzman.cli import main


@pytest.fixture
def path(tmp_path):
    boxes = Builder().add("A", cost=1, outcomes={0: 0.5, 10: 0.5})
    boxes.add("B", cost=1, outcomes={0: 0.5, 4: 0.5})
    save(boxes.build(), tmp_path / "boxes.json")
    return str(tmp_path / "boxes.json")


def test_the_frontier(path, capsys):
    assert main(["budget", path]) == 0
    head, _, *lines = capsys.readouterr().out.splitlines()
    assert head == "spend 0 to 1.5"
    rows = [line.split() for line in lines]
    assert [list(map(float, row)) for row in rows] == [[0, 0, 5], [1, 5, 2], [1.5, 6, 0]]
    assert main(["budget", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["gap"] == 0


def test_a_budget(path, capsys):
    assert main(["budget", path, "--budget", "1.25"]) == 0
    out = capsys.readouterr().out
    assert "expected reward 5.5, expected spend 1.25" in out
    assert "one more unit of spend adds 2" in out
    assert main(["budget", path, "--budget", "1.25", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sum(p["share"] for p in found["policies"]) == 1


def test_a_target(path, capsys):
    assert main(["budget", path, "--target", "4", "--chance", "0.75"]) == 0
    assert "expected spend 1.5" in capsys.readouterr().out
    assert main(["budget", path, "--target", "4"]) == 2
    assert "go together" in capsys.readouterr().err
    assert main(["budget", path, "--budget", "-1"]) == 1
    assert "the least that any policy spends" in capsys.readouterr().err


def test_a_tornado(path, capsys):
    assert main(["tornado", path, "--by", "0.2"]) == 0
    assert "reward of A" in capsys.readouterr().out
    assert main(["tornado", path, "--json"]) == 0
    assert "swings" not in json.loads(capsys.readouterr().out)


def test_the_meaning_of_the_value_is_said(tmp_path, capsys):
    for terms, words in (
        ({"risk_tolerance": 5.0}, "certainty equivalent, risk tolerance 5"),
        ({"prizes": 2}, "expected sum of 2 prizes"),
        ({"prizes": 2, "outside": 3.5}, "doing nothing gives 7"),
        ({"rate": 0.1}, "discounted to the start"),
    ):
        boxes = Builder(**terms).add("A", cost=1, outcomes={0: 0.5, 10: 0.5})
        boxes.add("B", cost=1, outcomes={0: 0.5, 4: 0.5})
        save(boxes.build(), tmp_path / "boxes.json")
        assert main(["solve", str(tmp_path / "boxes.json")]) == 0
        assert words in capsys.readouterr().out


def test_a_run_takes_prizes(tmp_path, capsys, monkeypatch):
    import io

    boxes = Builder(prizes=2)
    for name in "ABC":
        boxes.add(name, cost=1, outcomes={0: 0.5, 10: 0.5})
    save(boxes.build(), tmp_path / "boxes.json")
    monkeypatch.setattr("sys.stdin", io.StringIO("10\n0\n10\n"))
    assert main(["search", str(tmp_path / "boxes.json")]) == 0
    out = capsys.readouterr().out
    assert "Take 10 from A for good" in out
    assert "prizes taken: 10 from A, 10 from C; spent 3, payoff 17" in out


def test_a_wrong_number_of_prizes_is_told_as_an_option(path, capsys):
    """The message quoted the keyword of Python."""
    assert main(["solve", str(path), "--prizes", "0"]) == 2
    error = capsys.readouterr().err
    assert "'--prizes'" in error
    assert "`" not in error
