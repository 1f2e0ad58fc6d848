"""What the campaign of damaged files found once, kept as small cases."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from specimens import CURVES, TABLE, read_curves, specimens

from weitzman import cli
from weitzman.chains.chain import Chain
from weitzman.errors import InvalidAnswer, InvalidFile, InvalidForest, WeitzmanError
from weitzman.files import event_log

pytest.importorskip("pandas")
pytest.importorskip("openpyxl")


@pytest.fixture
def kinds(tmp_path: Path) -> dict[str, Any]:
    return {x.name: x for x in specimens(tmp_path)}


def test_counts_beyond_all_integers(tmp_path: Path, kinds: dict[str, Any]) -> None:
    (tmp_path / "x.csv").write_text(TABLE.replace("3,2\n", "3,1e300\n"))
    with pytest.raises((InvalidForest, InvalidFile), match="whole number of at most 9007199"):
        kinds["CSV"].read(tmp_path / "x.csv")


def test_a_chance_of_almost_nothing_takes_forever() -> None:
    chain = Chain([[0.5, 0.5, 0], [1, 0, 1e-320], [0, 0, 1]], [0.5, float("-inf"), 10])
    assert chain.first_passage(2).tolist() == [float("inf"), float("inf"), 1.0]


def changed(path: Path, number: int, values: dict[Any, Any]) -> None:
    """Change places or keys of an event and make all checksums right again."""
    with closing(sqlite3.connect(path)) as db:
        crc = 0
        rows = db.execute("SELECT number, worker, content FROM event ORDER BY number").fetchall()
        for at, who, text in rows:
            if at == number:
                content = json.loads(text)
                for key, value in values.items():
                    content[key] = value
                text = json.dumps(content)
            crc = event_log.checksum(f"{who} {text}", crc)
            db.execute("UPDATE event SET content = ?, crc = ? WHERE number = ?", (text, crc, at))
        db.commit()


@pytest.mark.parametrize("values", [{4: 10**400}, {2: 2**70}])  # cost, state
def test_events_of_a_search_that_cannot_be(
    tmp_path: Path, kinds: dict[str, Any], capsys: pytest.CaptureFixture[str], values: Any
) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(kinds["journal"].valid[0])
    changed(path, 1, values)
    with pytest.raises(InvalidFile, match="the journal is damaged"):
        kinds["journal"].read(path)
    assert cli.main(["search", "--journal", str(path)]) in (1, 3)
    assert "bug" not in capsys.readouterr().err


@pytest.mark.parametrize("values", [{"step": 10**400}, {"cost": 10**400}, {"score": 10**400}])
def test_events_of_a_tuner_that_cannot_be(
    tmp_path: Path, kinds: dict[str, Any], values: Any
) -> None:
    path = tmp_path / "x.tuner"
    path.write_bytes(kinds["tuner's journal"].valid[0])
    changed(path, 2, values)
    with pytest.raises((InvalidFile, InvalidAnswer), match=r"does not fit those before|at most"):
        kinds["tuner's journal"].read(path)


def test_valid_files_are_read(tmp_path: Path, kinds: dict[str, Any]) -> None:
    """A campaign that starts from files that nobody can read would find nothing."""
    for kind in kinds.values():
        for data in kind.valid:
            path = tmp_path / f"x{kind.suffix}"
            path.write_bytes(data)
            kind.read(path)
    (tmp_path / "y.csv").write_text(CURVES + "r9,<NA>,1,1\n")
    with pytest.raises(WeitzmanError, match="column 'step'"):
        kinds["curves"].read(tmp_path / "y.csv")


def test_an_endless_cost_twice_in_a_run_is_rejected_without_a_warning(tmp_path: Path) -> None:
    rows = CURVES.splitlines()
    text = "\n".join([rows[0], "r3,3,0.6,inf", *rows[1:]]).replace("r3,3,0.600,2", "r3,3,0.600,inf")
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(WeitzmanError, match="cost"):
        read_curves(tmp_path / "x.csv")
