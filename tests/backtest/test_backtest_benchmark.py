"""The benchmark on public curves runs on tables of the same form, and its report is right."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_backtest import tiny

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.tuning import cells, speed
from benchmarks.tuning.__main__ import main
from benchmarks.tuning.report import beforehand, figure, markdown, page, task_by_task
from benchmarks.tuning.sets import SETS
from weitzman.backtest import FullRuns
from weitzman.backtest.driver import Design, Done, carry_out, jobs
from weitzman.backtest.methods import Tuned
from weitzman.learn import Curves


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
        place = folder / (each.data or each.name)
        place.mkdir(exist_ok=True)
        (place / "curves.csv").write_text("\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    import gzip

    write(tmp_path)
    monkeypatch.delenv("SYNE_TUNE_PYTHON", raising=False)  # its methods take long
    for path in tmp_path.rglob("curves.csv"):
        with gzip.open(f"{path}.gz", "wb") as file:
            file.write(path.read_bytes())
    return tmp_path


def test_all_sets_are_read_and_backtested(folder, capsys, tmp_path):
    ask = [str(folder), "--quick", "--keep", str(tmp_path / "kept"), "--methods"]
    main([*ask, "weitzman,top", "--log", "with"])
    out = capsys.readouterr().out
    for each in SETS:
        assert f"### {each.name}" in out
    assert out.count("2 tasks, 2 logs, 4 searches.") == len(SETS) - 1
    assert out.count("1 tasks, 1 logs, 2 searches.") == 1  # every second task of lcdb is left
    assert out.count("| full runs, Weitzman's rule |") == len(SETS)
    main([*ask, "index,random search,tpe + hyperbandpruner, 10", "--log", "without"])
    out = capsys.readouterr().out
    assert out.count("| index policy |") == len(SETS)
    assert out.count("| random search, 3 full runs |") == len(SETS) + 2  # and by groups of sets
    assert out.count("| random search, best in hindsight |") == 2
    assert "at most 0.8 of the best other at" in out


def test_cells_that_were_made_are_not_made_again(folder, capsys, tmp_path, monkeypatch):
    """A benchmark that was cut short goes on where it stood, to the same result."""
    ask = [str(folder), "--set", "algoperf", "--log", "with", "--methods", "weitzman,top", "--keep"]
    main([*ask, str(tmp_path / "whole")])
    whole = capsys.readouterr().out
    played, stop = Tuned.learn, [1]

    def cut(self, log, prices):
        if not stop:
            raise KeyboardInterrupt
        stop.pop()
        return played(self, log, prices)

    monkeypatch.setattr(Tuned, "learn", cut)
    with pytest.raises(KeyboardInterrupt):
        main([*ask, str(tmp_path / "kept")])
    monkeypatch.setattr(Tuned, "learn", played)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "kept").rglob("*.pickle")}
    assert len(before) == 3
    main([*ask, str(tmp_path / "kept")])
    assert capsys.readouterr().out == whole
    assert {path: path.stat().st_mtime_ns for path in before} == before
    main([*ask, str(tmp_path / "kept"), "--again", "top"])
    assert capsys.readouterr().out == whole
    changed = {path.parent.name for path, t in before.items() if path.stat().st_mtime_ns != t}
    assert changed == {"top-K after one epoch"}
    main([*ask, str(tmp_path / "kept"), "--quick"])  # other searches: made again
    assert "4 searches" in capsys.readouterr().out


def cell_design(curves, instance):
    """One cell of full runs on a small table."""
    design = Design(log_runs=None, logs=1, orders=1, seed=0)
    return design, next(jobs(curves, instance, [(10.0,)], 1))


@pytest.mark.parametrize("changed", ["score", "settings", "cost", "instance"])
def test_cells_of_other_scores_or_settings_are_made_again(changed, tmp_path):
    rows = [(r, k, r * k % 7 / 7.0) for r in range(8) for k in range(1, 4)]
    table = dict(zip(("run", "step", "score"), zip(*rows, strict=True), strict=True))
    curves = Curves.read({**table, "cost": [1.0] * len(rows)}, ended=True)
    curves = replace(curves, settings=tuple({"x": i} for i in range(8)))
    instance = ["a", "b"] * 4
    kept = cells.Cells(tmp_path, Path("full runs"), ["made"])
    design, job = cell_design(curves, instance)
    kept.make(design, FullRuns(), job)
    found, _ = kept.read(design, job)
    assert np.array_equal(found.score, carry_out(job, design, [FullRuns()]).score)
    if changed == "settings":
        curves = replace(curves, settings=tuple({"x": 2 * i} for i in range(8)))
    elif changed == "instance":
        instance = ["a", "a", "b", "b"] * 2
    else:
        curves = replace(curves, **{changed: getattr(curves, changed) + 1e-12})
    assert kept.read(*cell_design(curves, instance)) is None
    assert cells.Cells(tmp_path, Path("full runs"), ["other"]).read(design, job) is None
    assert cells.Cells(tmp_path, Path("full runs"), ["other", "made"]).read(design, job) is not None


def test_cells_of_other_code_are_left_out(folder, capsys, tmp_path, monkeypatch):
    """Cells made elsewhere count only if they are asked for; rows that lack cells are left out."""
    ask = [str(folder), "--set", "algoperf", "--log", "with", "--keep", str(tmp_path / "kept")]
    main([*ask, "--methods", "weitzman,top", "--workers", "2"])
    whole = capsys.readouterr().out
    key = cells.made_with()
    next((tmp_path / "kept").rglob("top*/*.pickle")).unlink()
    few = [*ask, "--methods", "weitzman,top", "--kept-only"]
    main(few)
    captured = capsys.readouterr()
    assert "top-K" not in captured.out
    assert "| full runs, Weitzman's rule |" in captured.out
    assert "top-K after one epoch: 1 of 2 cells, left out" in captured.err
    main([*ask, "--methods", "weitzman,top"])
    assert capsys.readouterr().out == whole
    (tmp_path / "kept" / key).rename(tmp_path / "kept" / "elsewhere")
    main(few)
    assert "|" not in capsys.readouterr().out
    main([*few, "--made", f"{key},elsewhere"])
    assert capsys.readouterr().out == whole


def test_methods_that_know_settings_are_among_them(folder, capsys, tmp_path):
    pytest.importorskip("sklearn")
    pytest.importorskip("optuna")
    words = "cost-aware,tpe + s"
    where = ["--set", "lcdb", "--log", "with", "--keep", str(tmp_path / "kept")]
    main([str(folder), "--quick", *where, "--methods", words])
    out = capsys.readouterr().out
    assert "| full runs, cost-aware BO |" in out
    assert "| Optuna TPE + SuccessiveHalvingPruner, 30 runs |" in out


def test_the_page_has_every_table(folder, tmp_path):
    best = np.random.default_rng(0).random((3, 1, 4, 2))
    best[-1] = 2.0
    found = {each.name: tiny(best, np.zeros_like(best)) for each in SETS}
    (tmp_path / "LIVE.md").write_text("# Real training, searched live\n")
    (tmp_path / "REMARKS.md").write_text("# About\n\n## lcdb, without a log\n\nFew runs.\n")
    text = page(found, found, tmp_path, "| speed |", "| promises |")
    assert text.count("### lcdb\n") == 2
    assert text.count("Few runs.") == 1
    assert text.index("Few runs.") > text.rindex("### lcdb\n")
    assert "## Real training, searched live" in text
    assert text.index("| speed |") < text.index("| promises |")
    assert text.rstrip().endswith("| promises |")


def test_the_time_of_decisions_is_measured(folder):
    curves, _ = SETS[0].read(folder)
    lines = list(speed.rows(curves.of_task(curves.tasks[0]), log=4, searched=4))
    assert len(lines) == 6
    assert all(line.count("|") == speed.HEAD.splitlines()[0].count("|") for line in lines)


def test_the_table_of_methods_to_pick_beforehand():
    """Ratios of regrets by set and price; families also with the best in hindsight in each cell."""
    best = np.zeros((4, 1, 4, 2))
    best[-1] = 1.0  # of hindsight
    best[0], best[1], best[2] = 0.8, 0.6, 0.2
    found = replace(tiny(best, np.zeros_like(best)), methods=("ours", "a, 1", "a, 2", "hindsight"))
    other = best.copy()
    other[1], other[2] = 0.2, 0.9
    both = {"x": found, "y": replace(found, best=other)}
    rows = beforehand(both).splitlines()
    assert rows[0] == "Sets: `x`, `y`."
    assert rows[4:] == [
        "| a, best in hindsight | 1.00 | 0.50 | 2.00 | 1 of 2 |",
        "| a, 2 | 1.41 | 0.50 | 4.00 | 1 of 2 |",
        "| a, 1 | 2.83 | 2.00 | 4.00 | 0 of 2 |",
    ]


def test_task_by_task_a_difference_counts_from_two_standard_errors():
    best = np.zeros((4, 1, 4, 2))
    best[-1] = 1.0
    best[0], best[1], best[2] = 0.8, 0.6, 0.9
    best[1, ..., 0] = [[1.0, 0.6, 0.6, 0.6]]  # regrets 0 and 0.4: too uncertain in the first task
    found = tiny(best, np.zeros_like(best))
    names = "ours", "b", "c", "hindsight"
    found = replace(
        found, methods=names, task=np.arange(4), tasks=tuple("abcd"), price=np.ones((1, 4))
    )
    rows = task_by_task(found).splitlines()
    assert rows[2:] == [
        "| b | 0.59 | 0.59 | 0 of 4 | 3 |",  # 1, 0.5, 0.5, 0.5
        "| c | 2.00 | 2.00 | 4 of 4 | 0 |",
    ]


def test_other_searches_are_not_joined():
    one = Done((0, 0), np.zeros((2, 1, 1)), np.zeros((2, 1, 1)), [("a",)])
    assert cells.joined([one, one]).score.shape == (3, 1, 1)
    with pytest.raises(ValueError, match="different runs"):
        cells.joined([one, one._replace(score=np.ones((2, 1, 1)))])


@pytest.mark.parametrize("option", ["--quick", "--set lcdb", "--log with", "--orders 1"])
def test_only_full_results_are_written(option):
    with pytest.raises(SystemExit):
        main(["nowhere", "--write", *option.split()])


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
