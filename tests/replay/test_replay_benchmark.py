"""The benchmark on public curves runs on tables of the same form, and its report is right."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from test_replay import tiny

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.tuning.__main__ import main
from benchmarks.tuning.joining import join
from benchmarks.tuning.report import figure, markdown
from benchmarks.tuning.sets import SETS


def write(folder: Path) -> None:
    """A small table for each set, with its columns."""
    rng = np.random.default_rng(0)
    for each in SETS:
        lines = [f"task,{each.instance or 'unused'},config_id,step,{each.cost},val_score"]
        for task in range(2):
            for seed in range(3 if each.instance else 1):
                for run in range(8):
                    level = rng.random()
                    for k in range(4):
                        lines.append(f"t{task},{seed},c{run},{k},1,{level * (k + 1) / 4:.4f}")
        (folder / each.name).mkdir()
        (folder / each.name / "curves.csv").write_text("\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    import gzip

    write(tmp_path)
    for path in tmp_path.rglob("curves.csv"):
        with gzip.open(f"{path}.gz", "wb") as file:
            file.write(path.read_bytes())
    return tmp_path


def test_all_sets_are_read_and_replayed(folder, capsys):
    main([str(folder), "--quick", "--methods", "weitzman,top", "--workers", "1"])
    out = capsys.readouterr().out
    for each in SETS:
        assert f"## {each.name}" in out
    assert out.count("2 tasks, 2 logs, 10 searches.") == 3
    assert out.count("| full runs, Weitzman's rule |") == 3


def test_methods_run_one_after_the_other_face_the_same_searches(folder, capsys, tmp_path):
    """Kept results are read, not made again, and together they are what one run gives."""
    ask = [str(folder), "--part", "--set", "lcdb", "--workers", "1", "--methods"]
    kept = [*ask, "weitzman,top", "--keep", str(tmp_path / "kept")]
    main([*ask, "weitzman,top"])
    whole = capsys.readouterr().out
    main([*ask, "top", "--keep", str(tmp_path / "kept")])
    main(kept)
    files = sorted((tmp_path / "kept").iterdir())
    assert len(files) == 2
    before = [file.stat().st_mtime_ns for file in files]
    capsys.readouterr()
    main(kept)
    again = capsys.readouterr().out
    assert [file.stat().st_mtime_ns for file in files] == before
    assert again.rpartition("(")[0] == whole.rpartition("(")[0]


def test_methods_that_know_settings_are_among_them(folder, capsys):
    pytest.importorskip("sklearn")
    main(
        [
            str(folder),
            "--quick",
            "--set",
            "lcdb",
            "--methods",
            "cost-aware,tpe + s",
            "--workers",
            "1",
        ]
    )
    out = capsys.readouterr().out
    assert "| full runs, cost-aware BO |" in out
    assert "| Optuna TPE + SuccessiveHalvingPruner |" in out


def test_other_searches_are_not_joined():
    best = np.zeros((3, 1, 4, 2))
    other = best.copy()
    other[-1, 0, 1, 1] = 0.5
    one, two = (tiny(x, np.zeros_like(x)) for x in (best, other))
    assert join([one, one]).methods == ("a", "b", "a", "b", "hindsight")
    with pytest.raises(ValueError, match="the searches of a and a differ"):
        join([one, two])


@pytest.mark.parametrize("option", [["--quick"], ["--set", "lcdb"], ["--methods", "top"]])
def test_only_full_results_are_written(option):
    with pytest.raises(SystemExit):
        main(["nowhere", "--write", *option])


def test_the_report_compares_with_the_best_other():
    best = np.array([[[[0.8]]], [[[0.6]]], [[[1.0]]]]) + np.zeros((3, 1, 4, 2))
    text = markdown("a set", tiny(best, np.zeros_like(best)))
    assert "1 tasks, 4 logs, 8 searches." in text
    assert "| a | **0.2000** [0.2000, 0.2000] |" in text
    assert "| b | 0.4000 [0.4000, 0.4000] |" in text
    assert "| index policy / best other | 0.50 |" in text
    assert "| best other behind, paired | 0.2000 [0.2000, 0.2000] |" in text


def test_the_figure_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    best = np.random.default_rng(0).random((3, 1, 4, 2))
    best[-1] = 2.0
    found = tiny(best, np.zeros_like(best))
    figure({"x": found, "y": found}, tmp_path / "regret.png")
    assert (tmp_path / "regret.png").read_bytes()[1:4] == b"PNG"
