"""Curves: what is read, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weitzman.errors import InvalidArgument, InvalidFile
from weitzman.learn.curves import Curves, sample

TABLE = {
    "run": ["a", "b", "a", "b", "a"],
    "step": [1, 1, 2, 2, 3],
    "score": [0.5, 0.4, 0.6, np.nan, 0.55],
    "cost": [1.0, 2.0, 1.5, 0.0, 1.0],
}


def test_rows_are_sorted_into_runs():
    curves = Curves.read(TABLE)
    assert curves.runs == ("a", "b")
    assert curves.start.tolist() == [0, 3, 5]
    assert curves.step.tolist() == [1, 2, 3, 1, 2]
    assert curves.cost.tolist() == [1.0, 1.5, 1.0, 2.0, 0.0]
    assert curves.total_cost.tolist() == [3.5, 2.0]
    assert len(curves) == 2
    assert repr(curves) == "Curves(2 runs, 5 rows, 1 task, 1 cut off)"


def test_runs_are_selected_by_number_or_mask():
    curves = Curves.read(TABLE)
    assert curves.select([1, 0]).runs == ("b", "a")
    assert curves.select(np.array([False, True])).runs == ("b",)
    for wrong in ([2], [-1], [0.5], [True], [[0]]):
        with pytest.raises(InvalidArgument, match="numbers from 0 to 1, or by a mask of 2"):
            curves.select(wrong)


@pytest.mark.parametrize("missing", [None, np.nan])
@pytest.mark.parametrize("column", ["run", "task"])
def test_names_must_be_filled(column, missing):
    table = TABLE | {"task": ["x"] * 5}
    table[column] = [*table[column][:3], missing, table[column][4]]
    with pytest.raises(InvalidArgument, match=f"'{column}' must be filled, but row 3"):
        Curves.read(pytest.importorskip("pandas").DataFrame(table), task="task")


@given(st.permutations(range(5)))
def test_the_order_of_rows_does_not_matter(order):
    mixed = Curves.read({name: [column[i] for i in order] for name, column in TABLE.items()})
    plain = Curves.read(TABLE)
    for run in plain.runs:
        i, j = plain.runs.index(run), mixed.runs.index(run)
        one, other = plain.select([i]), mixed.select([j])
        np.testing.assert_array_equal(one.score, other.score)
        np.testing.assert_array_equal(one.cost, other.cost)
        assert one.ended.tolist() == other.ended.tolist()


@pytest.mark.parametrize(
    ("ended", "wanted"), [(None, [True, False]), (True, [True, True]), ("end", [False, True])]
)
def test_who_came_to_an_end(ended, wanted):
    table = TABLE | {"end": [True, True, True, True, False]}
    assert Curves.read(table, ended=ended).ended.tolist() == wanted


def test_tasks_are_kept_apart():
    table = {name: column * 2 for name, column in TABLE.items()}
    table["task"] = ["x"] * 5 + ["y"] * 5
    curves = Curves.read(table, task="task", run=["run"])
    assert curves.tasks == ("x", "y")
    assert curves.runs == ("a", "b", "a", "b")
    assert curves.of_task("y").task == ("y", "y")
    with pytest.raises(InvalidArgument, match="no run belongs to a task 'z'"):
        curves.of_task("z")


def test_several_columns_name_a_run():
    table = TABLE | {"seed": [0, 0, 0, 0, 0]}
    assert Curves.read(table, run=["run", "seed"]).runs == ("a/0", "b/0")


def test_no_cost_counts_one_a_row():
    assert Curves.read(TABLE, cost=None).total_cost.tolist() == [3.0, 2.0]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_files_say_what_tables_say(tmp_path, suffix):
    pandas = pytest.importorskip("pandas")
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(TABLE)
    path = tmp_path / f"curves{suffix}"
    frame.to_parquet(path) if suffix == ".parquet" else frame.to_csv(path, index=False)
    for source in (path, frame):
        curves, wanted = Curves.read(source), Curves.read(TABLE)
        np.testing.assert_array_equal(curves.score, wanted.score)
        np.testing.assert_array_equal(curves.step, wanted.step)
        assert curves.runs == wanted.runs


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cost": [1, -2, 1, 1, 1]}, "a cost must be at least 0 .* 'b' has -2.0 at step 1"),
        ({"cost": [1, None, 1, 1, 1]}, "'cost' must be filled, but row 1 is blank"),
        ({"step": [1, 1, 1, 2, 3]}, "the steps of a run must rise.*'a' has 1 at step 1"),
        ({"step": [1, 1, 2.5, 2, 3]}, "'step' must hold whole numbers, but row 2 is 2.5"),
        ({"score": [1, "x", 1, 1, 1]}, "'score' must hold numbers, but row 1 is 'x'"),
        ({"score": [1, np.inf, 1, 1, 1]}, "a score must be finite"),
        ({"score": [1, 2]}, "'score' must have 5 entries"),
        ({k: [] for k in TABLE}, "the table is empty"),
    ],
)
def test_bad_tables_are_rejected(change, message):
    with pytest.raises(InvalidArgument, match=message):
        Curves.read(TABLE | change)


def test_a_missing_column_is_named():
    with pytest.raises(InvalidArgument, match="no column 'loss'; its columns are run, step, score"):
        Curves.read(TABLE, score="loss")
    with pytest.raises(InvalidArgument, match="not from int"):
        Curves.read(3)


def test_bad_files_are_rejected(tmp_path):
    pytest.importorskip("pandas")
    with pytest.raises(InvalidFile, match="No such file"):
        Curves.read(tmp_path / "none.csv")
    (tmp_path / "log.xls").write_bytes(b"")
    with pytest.raises(InvalidFile, match=r"must end with \.csv"):
        Curves.read(tmp_path / "log.xls")


def test_columns_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        sample().score[0] = 1.0
