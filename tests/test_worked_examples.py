"""The data that come with the worked examples: counted rightly, and the same in the guide."""

from __future__ import annotations

import csv
import gzip
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT / "examples" / "data"
COLUMNS = (
    "furthest_stage", "preclinical_to_1", "phase1_to_2", "phase2_to_3", "phase3_to_approval",
    "orphan",
)  # fmt: skip


def made_from(path: Path) -> str:
    return subprocess.run(
        [sys.executable, str(DATA / "make_drug_stages.py"), str(path)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_stages_are_counted_once_for_each_programme_that_reached_them(tmp_path):
    rows = [
        ("Preclinical", "", "", "", "", "FALSE"),  # still active there
        ("Preclinical", "FALSE", "", "", "", "FALSE"),
        ("Phase II", "TRUE", "TRUE", "FALSE", "", "False"),
        ("Phase III", "TRUE", "TRUE", "TRUE", "", "TRUE"),
        ("Launched", "TRUE", "TRUE", "TRUE", "TRUE", "True"),
    ]
    with gzip.open(tmp_path / "p.csv.gz", "wt", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    made = made_from(tmp_path / "p.csv.gz")
    assert "CC BY 4.0" in made
    assert [x for x in made.splitlines() if not x.startswith("#")] == [
        "group,stage,passed,ended,active",
        "common,preclinical,1,1,1",
        "common,phase 1,1,0,0",
        "common,phase 2,0,1,0",
        "common,phase 3,0,0,0",
        "orphan,preclinical,2,0,0",
        "orphan,phase 1,2,0,0",
        "orphan,phase 2,2,0,0",
        "orphan,phase 3,1,0,1",
    ]


def test_the_table_is_whole_and_the_guide_has_it():
    text = (DATA / "drug_stages.csv").read_text("utf-8")
    body = [x for x in text.splitlines() if not x.startswith("#")]
    assert "\n".join(body) in (ROOT / "docs" / "how-to" / "drug-pipeline.md").read_text("utf-8")
    rows = list(csv.DictReader(body))
    reached = [sum(int(r[x]) for x in ("passed", "ended", "active")) for r in rows]
    assert reached[0] + reached[4] == 29_476
    for before, after in zip(range(7), range(1, 8), strict=True):
        if after != 4:  # all that passed a stage, and no others, reached the next
            assert int(rows[before]["passed"]) == reached[after]
