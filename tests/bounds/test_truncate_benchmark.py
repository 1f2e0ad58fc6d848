"""The benchmark of truncation still runs and still notices wrong answers. Nothing is timed."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import truncation


def test_a_race_and_its_tables():
    row = truncation.compare(2, 60)
    assert row.loss <= row.cut.gap <= truncation.GAP
    table = truncation.race_table([row])
    assert [len(r) for r in table.rows] == [len(table.head)]
    found = {1: [(0.1, 3), (0.01, 9)]}
    assert "| 1     | 3       | 9        |" in truncation.depth_table(found).markdown()
    assert "Measured" in truncation.page(table.markdown())


def test_a_wrong_certificate_is_noticed(monkeypatch):
    true = truncation.truncate

    def hopeful(forest, *, gap):
        cut = true(forest, gap=100 * gap)
        return replace(cut, lower=cut.upper - gap / 2)

    monkeypatch.setattr(truncation, "truncate", hopeful)
    with pytest.raises(AssertionError):
        truncation.compare(2, 60)


def test_shorter_lines_begin_longer_ones():
    few, many = truncation.forest_of(2, 5), truncation.forest_of(2, 9)
    costs = [[f.costs[c].item() for c in f.cost] for f in (few, many)]
    assert costs[0] == costs[1][:5] + costs[1][9:14]
    assert np.array_equal(few.laws.data, many.laws.data)


def test_the_figure(tmp_path):
    pytest.importorskip("matplotlib")
    row = truncation.compare(1, 30)
    truncation.draw([row], {1: [(0.1, 3), (0.01, 9)]}, tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 10_000
