"""Small files that stand for huge ones are refused beforehand; sums that are nearly 1."""

from __future__ import annotations

import gc
import gzip
import json
import os
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import weitzman
from weitzman.errors import InvalidFile, InvalidForest
from weitzman.files import load, written_tables
from weitzman.learn.log_tables import columns_of

SOURCE = str(Path(weitzman.__file__).parents[1])
MEASURE = """
import resource, sys, weitzman
from weitzman.errors import WeitzmanError
from weitzman.learn.log_tables import columns_of
reader = {"instance": weitzman.load, "curves": columns_of}[sys.argv[2]]
if sys.argv[2] == "curves":  # libraries are no part of what a file takes
    import pandas, pyarrow.parquet
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    reader(sys.argv[1])
except WeitzmanError as error:
    print(str(error)[:300])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def measured(path, kind="instance"):
    """What loading a file says, and the bytes of memory that it took."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path), kind], env={**os.environ, "PYTHONPATH": SOURCE},
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    *said, memory = done.stdout.splitlines()
    return "\n".join(said), int(memory)


def lists(path):
    with gzip.open(path, "wb") as file:
        file.write(b'{"format":"weitzman/1","boxes":[')
        for _ in range(60):
            file.write(b"[]," * 300_000)
    return path


def outcomes(path):
    n = 12_000
    root = {"name": "a", "cost": 1, "rewards": list(range(n)), "law": [1] + [0] * (n - 1)}
    inner = {str(i): {str(i): 1} for i in range(n)}
    child = {"name": "b", "parent": "a", "cost": 1, "outcomes": inner}
    path.write_text(json.dumps({"format": "weitzman/1", "boxes": [root, child]}))
    return path


def table(path):
    n = 15_000
    rows = ["box,parent,parent_state,state,reward,probability,cost"]
    rows += [f"a,,,{i},1,{int(i == 0)},1" for i in range(n)]
    rows += [f"b,a,{i},{i},1,1,1" for i in range(n)]
    path.write_text("\n".join(rows))
    return path


@pytest.mark.parametrize(
    ("make", "name", "message"),
    [
        (lists, "a.json.gz", "once unpacked"),
        (outcomes, "a.json", "the law must have at most"),
        (table, "a.csv", "the law must have at most"),
    ],
)
def test_less_than_a_megabyte_takes_less_than_a_gigabyte(tmp_path, make, name, message):
    path = make(tmp_path / name)
    assert path.stat().st_size < 1_000_000
    said, memory = measured(path)
    assert message in said
    assert memory < 1_000_000_000


def constant_columns(path):
    """A value that is repeated a hundred million times takes a few bytes."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    zeros = arrow.table({name: np.zeros(2**20) for name in ("run", "step", "score")})
    with parquet.ParquetWriter(path, zeros.schema, compression="zstd") as file:
        for _ in range(30):
            file.write_table(zeros)
    return path


def long_texts(path):
    """A text of a megabyte that every row has: read as its number, it takes nothing."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = arrow.DictionaryArray.from_arrays(np.zeros(20_000, np.int32), ["x" * 900_000])
    parquet.write_table(arrow.table({"run": rows}), path, compression="zstd")
    return path


def short_rows(path):
    path.write_text(",".join(f"c{i}" for i in range(5000)) + "\n" + ",\n" * 400_000)
    return path


def many_columns(path):
    path.write_text(",".join(f"c{i}" for i in range(100_000)) + "\n")
    return path


@pytest.mark.parametrize(
    ("make", "name", "kind", "message"),
    [
        (constant_columns, "a.parquet", "curves", "must have at most"),
        (long_texts, "b.parquet", "curves", ""),
        (short_rows, "a.csv", "curves", "cells, but it has 400,002 rows and 5,000 columns"),
        (many_columns, "a.csv", "curves", "at most 10,000 columns, but it has 100,000"),
    ],
)
def test_so_do_curves(tmp_path, make, name, kind, message):
    pytest.importorskip("pandas")
    path = make(tmp_path / name)
    assert path.stat().st_size < 1_000_000
    said, memory = measured(path, kind)
    assert message in said
    assert memory < 500_000_000


def test_what_parquet_holds_is_read_as_before(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    runs = [f"run {i % 7}" for i in range(20_000)]
    table = pandas.DataFrame(
        {"run": runs, "step": range(20_000), "score": np.arange(20_000.0), "x": [[1]] * 20_000}
    )
    table.loc[5, "score"] = np.nan
    table.to_parquet(tmp_path / "a.parquet", row_group_size=3000)
    found = columns_of(tmp_path / "a.parquet")
    assert found.names == ["run", "step", "score"]  # a list in each row is no number
    assert found["run"].tolist() == runs
    assert found["step"].tolist() == list(range(20_000))
    np.testing.assert_array_equal(found["score"], table["score"])
    table[:0].to_parquet(tmp_path / "none.parquet")
    assert len(columns_of(tmp_path / "none.parquet")["run"]) == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("name", ["p.json", "p.json.gz", "p.wz", "p.csv", "p.xlsx", "p.tsv"])
def test_pipes_and_devices_are_rejected(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(InvalidFile, match="it is a pipe or a device"):
        load(tmp_path / name)
    zero = tmp_path / f"zero{name[1:]}"
    zero.symlink_to("/dev/zero")
    with pytest.raises(InvalidFile, match="it is a pipe or a device"):
        load(zero)


def test_damaged_and_packed_curves_give_one_message(tmp_path):
    path = tmp_path / "curves.csv.gz"
    path.write_bytes(gzip.compress(b"run,step,score\n1,1,2\n")[:-6])
    with pytest.raises(InvalidFile, match=r"curves.csv.gz: not a complete gzip file"):
        columns_of(path)
    path.write_bytes(gzip.compress(b"a,b\n" * 12_000_000))
    with pytest.raises(InvalidFile, match="once unpacked"):
        columns_of(path)
    os.remove(path)
    os.mkfifo(path)
    with pytest.raises(InvalidFile, match="it is a pipe or a device"):
        columns_of(path)


def test_sums_that_are_nearly_one_are_made_one():
    n, miss = 1000, 9e-10
    law = np.full(n, (1 + miss) / n)
    forest = weitzman.Forest.from_arrays(
        parent=[-1, 0], cost=[0, 0], rewards=[[-np.inf] * n, [0.0, 1.0]],
        law=[law, np.full((n, 2), 0.5)],
    )  # fmt: skip
    assert abs(forest.laws[int(forest.law[0])].sum() - 1) < 1e-13
    assert weitzman.solve(forest).value == pytest.approx(0.5, abs=1e-13)


def test_a_sum_that_is_not_one_never_reads_one():
    with pytest.raises(InvalidForest, match=r"sum to 1 \+ 1.2e-09 \(1 such row\)"):
        weitzman.Forest.from_arrays(
            parent=[-1], cost=[0], rewards=[0, 1], law=[[0.5, 0.5 + 1.2e-9]]
        )


def test_a_workbook_that_would_take_too_much_memory_is_rejected_beforehand(tmp_path, monkeypatch):
    chest = weitzman.line([[0.5, 0.5], [[1, 0], [0.2, 0.8]]], rewards=[0, 10], cost=1)
    monkeypatch.setattr(written_tables, "_MOST_ROWS", 6)
    weitzman.save(chest, tmp_path / "a.xlsx")
    monkeypatch.setattr(written_tables, "_MOST_ROWS", 5)
    monkeypatch.setattr(written_tables, "written_columns", None)  # nothing is laid out before
    with pytest.raises(
        InvalidForest, match=r"at most 5 rows, but here are 6.* GB of memory. Write .csv"
    ):
        weitzman.save(chest, tmp_path / "b.xlsx")
    assert not (tmp_path / "b.xlsx").exists()


def test_a_workbook_is_written_row_by_row(tmp_path, monkeypatch):
    """Each row must not look at all rows before it."""
    sheet = pytest.importorskip("openpyxl.worksheet.worksheet").Worksheet
    asked, highest = [], sheet.max_row.fget
    monkeypatch.setattr(sheet, "max_row", property(lambda self: asked.append(1) or highest(self)))
    line = weitzman.line([[0.5, 0.5]] + 30 * [np.eye(2)], rewards=[0, 10], cost=1)
    weitzman.save(line, tmp_path / "a.xlsx")
    assert load(tmp_path / "a.xlsx") == line
    assert len(asked) < 20


def test_a_workbook_that_breaks_leaves_no_file_open(tmp_path):
    """Nor a word of the library about parts that nobody asked for."""
    pytest.importorskip("openpyxl")
    path, broken = tmp_path / "a.xlsx", tmp_path / "b.xlsx"
    weitzman.save(weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1), path)
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(broken, "w") as copy:
        for name in whole.namelist():
            data = whole.read(name)
            copy.writestr(name, data[: len(data) // 2] if "sheet1" in name else data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidFile, match="not a workbook"):
            load(broken)
        gc.collect()
    if os.path.isdir("/proc/self/fd"):
        held = [os.path.realpath(f"/proc/self/fd/{x}") for x in os.listdir("/proc/self/fd")]
        assert str(broken) not in held


def test_texts_that_are_no_texts_in_parquet_are_rejected(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.table({"run": ["rabbit", "rabbit"], "step": [1, 2]}), path,
                        compression="none")  # fmt: skip
    path.write_bytes(path.read_bytes().replace(b"rabbit", b"r\xffbbit"))
    with pytest.raises(InvalidFile, match=r"a.parquet: not a table: "):
        columns_of(path)
