"""The command ``weitzman backtest``."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from weitzman import cli

METHODS = ["--methods", "weitzman,top", "--workers", "1", "--repeats", "2", "--orders", "3"]


def write(path: Path, head: str, seeds: int = 1, runs: int = 12) -> str:
    """A table of rising curves with the columns named by ``head``: run, step, score, cost, seed."""
    rng = np.random.default_rng(0)
    lines = [head]
    for seed in range(seeds):
        for run in range(runs):
            level = rng.random()
            lines += [f"c{run},{k},{level * k / 4:.4f},{1 + seed},{seed}" for k in range(1, 5)]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def usual(tmp_path):
    return write(tmp_path / "curves.csv", "config_id,epoch,val_score,cost_seconds,seed")


def test_columns_are_found_and_told(usual, capsys):
    assert cli.main(["backtest", usual, "--full-run-cost", "0.01,0.1", *METHODS]) == 0
    out, err = capsys.readouterr()
    assert err == "columns: run config_id, step epoch, score val_score, cost cost_seconds\n"
    assert out.count("a full run costs") == 2
    for name in ("full runs, Weitzman's rule", "top-K after one epoch", "hindsight"):
        assert out.count(name) == 2


def test_a_storage_of_optuna_is_a_log(tmp_path, capsys):
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    url = f"sqlite:///{tmp_path}/study.db"
    study = optuna.create_study(study_name="s", storage=url, direction="minimize")
    rng = np.random.default_rng(0)
    for _ in range(12):
        trial, level = study.ask(), rng.random()
        for step in range(1, 4):
            trial.report(level / step, step)
        study.tell(trial, level / 3)
    said = ["backtest", url, "--full-run-cost", "0.01", "--json"]
    assert cli.main([*said, *METHODS]) == 0
    assert json.loads(capsys.readouterr().out)["minimize"] is True
    assert cli.main([*said, "--score", "loss", *METHODS]) != 0
    assert "--score names a column of a table" in capsys.readouterr().err


def test_columns_can_be_said(tmp_path, capsys):
    file = write(tmp_path / "c.csv", "a,b,c,d,e")
    said = ["--run", "a", "--step", "b", "--score", "c", "--cost", "d"]
    assert cli.main(["backtest", file, "--price", "20", *said, *METHODS]) == 0
    out, err = capsys.readouterr()
    assert "run a, step b, score c, cost d" in err
    assert "a point is worth 20 units of cost" in out


def test_json(usual, capsys):
    assert cli.main(["backtest", usual, "--price", "20,40", "--json", *METHODS]) == 0
    read = json.loads(capsys.readouterr().out)
    assert (read["cells"], read["orders"], read["prices"]) == (2, 3, {"": [20.0, 40.0]})
    assert [row["price"] for row in read["summary"]] == [20.0] * 3 + [40.0] * 3
    for row in read["summary"]:
        assert row["payoff"] == pytest.approx(row["score"] - row["spend"] / row["price"])
        assert row["regret_low"] <= row["regret"] + 1e-12
        assert row["regret"] <= row["regret_high"] + 1e-12


def test_minimize_turns_everything(tmp_path, capsys):
    file = write(tmp_path / "c.csv", "run,step,score,cost,seed")
    assert cli.main(["backtest", file, "--price", "20", "--minimize", "--json", *METHODS]) == 0
    for row in json.loads(capsys.readouterr().out)["summary"]:
        assert row["payoff"] == pytest.approx(-row["score"] - row["spend"] / 20)


def test_repetitions_are_distinguished(tmp_path, capsys):
    file = write(tmp_path / "c.csv", "run,step,score,cost,seed", seeds=3)
    assert cli.main(["backtest", file, "--price", "20", *METHODS]) == 1
    assert "the steps of a run must rise, each once" in capsys.readouterr().err
    assert cli.main(["backtest", file, "--price", "20", "--instance", "seed", *METHODS]) == 0


def test_tables_of_tasks_and_a_figure(tmp_path, capsys):
    pytest.importorskip("matplotlib").use("agg")
    file = write(tmp_path / "c.csv", "run,step,score,cost,task", seeds=2)
    image = tmp_path / "regret.png"
    argv = ["backtest", file, "--price", "20,60", "--tasks", "--plot", str(image), *METHODS]
    assert cli.main(argv) == 0
    out = capsys.readouterr().out
    assert "== 0 ==" in out
    assert "== 1 ==" in out
    assert image.read_bytes()[1:4] == b"PNG"


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        ([], 2, "say either --price or --full-run-cost"),
        (["--price", "1", "--full-run-cost", "1"], 2, "either --price or --full-run-cost"),
        (["--price", "0"], 2, "0 is not above 0"),
        (["--price", "1,x"], 2, "'x' is not a number such as"),
        (["--price", "1", "--plot", "a.xyz"], 2, "must end with .png, .svg or .pdf"),
        (["--price", "1", "--score", "gain"], 1, "no column 'gain'; its columns are config_id,"),
        (["--price", "1", "--methods", "magic"], 1, "no method is called 'magic'; there are index"),
        (["--price", "1", "--log-runs", "12"], 1, "its log can have 0 to 11 of them"),
    ],
)
def test_mistakes_are_told_in_one_line(usual, capsys, argv, code, message):
    rest = [] if "--methods" in argv else METHODS
    assert cli.main(["backtest", usual, *argv, *rest]) == code
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("weitzman: error:")
    assert message in last


def test_files_that_cannot_be_read(tmp_path, capsys):
    assert cli.main(["backtest", str(tmp_path / "none.csv"), "--price", "1"]) == 3
    (tmp_path / "log.txt").write_text("hello")
    assert cli.main(["backtest", str(tmp_path / "log.txt"), "--price", "1"]) == 1
    bad = tmp_path / "bad.csv.gz"
    bad.write_bytes(b"not compressed")
    assert cli.main(["backtest", str(bad), "--price", "1"]) in (1, 3)
    assert "Traceback" not in capsys.readouterr().err
    assert cli.main(["backtest", str(tmp_path), "--price", "1"]) in (1, 3)


def test_optuna_missing_is_said(usual, capsys, monkeypatch):
    monkeypatch.setattr("weitzman.backtest.library_peers.find_spec", lambda name: None)
    assert cli.main(["backtest", usual, "--price", "20", *METHODS]) == 0
    assert 'pip install "weitzman[optuna]"' in capsys.readouterr().err


def test_a_packed_file_that_is_damaged_at_its_beginning(usual, tmp_path, capsys):
    whole = gzip.compress(Path(usual).read_bytes())
    for at in range(len(whole)):
        (tmp_path / "x.csv.gz").write_bytes(whole[:at] + bytes([whole[at] ^ 64]) + whole[at + 1 :])
        code = cli.main(
            ["backtest", str(tmp_path / "x.csv.gz"), "--price", "20", "--methods", "none"]
        )
        assert code in (1, 2)
        said = capsys.readouterr().err
        assert said.count("weitzman: error: ") == 1
        assert "bug" not in said


def test_devices_and_endless_digits_are_rejected(tmp_path, capsys):
    assert cli.main(["backtest", "/dev/zero", "--price", "1"]) == 3
    assert "it is a pipe or a device" in capsys.readouterr().err
    path = tmp_path / "log.csv"
    path.write_text(f"run,step,score,cost\n0,1,{'9' * 400},1\n")
    assert cli.main(["backtest", str(path), "--price", "1"]) == 1
    said = capsys.readouterr().err
    by_pandas = (
        f"{path}: not a table: int too large"  # some versions of pandas refuse it by themselves
    )
    assert "column 'score' must hold numbers, but row 0 is 999" in said or by_pandas in said
    path.write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    broken = path.rename(tmp_path / "log.parquet")
    assert cli.main(["backtest", str(broken), "--price", "1"]) in (1, 3)
    assert "log.parquet: " in capsys.readouterr().err


# -- settings ---------------------------------------------------------------------

FEW = ["--workers", "1", "--repeats", "1", "--orders", "2", "--price", "20"]


def with_settings(folder: Path) -> tuple[str, str]:
    """A table whose scores follow a setting, and the settings as a table of their own."""
    rng = np.random.default_rng(1)
    rates = rng.random(24)
    curves, table = ["run,step,score,cost,lr"], ["run,lr,kind"]
    for run, rate in enumerate(rates):
        curves += [f"r{run},{k},{rate * k / 4:.4f},1,{rate:.6f}" for k in range(1, 5)]
        table.append(f"r{run},{rate:.6f},{'ab'[run % 2]}")
    (folder / "runs.csv").write_text("\n".join(curves) + "\n")
    (folder / "settings.csv").write_text("\n".join(table) + "\n")
    return str(folder / "runs.csv"), str(folder / "settings.csv")


def regrets(capsys) -> dict[str, float]:
    return {row["method"]: row["regret"] for row in json.loads(capsys.readouterr().out)["summary"]}


def test_settings_from_columns_or_a_table_are_the_same(tmp_path, capsys):
    pytest.importorskip("optuna")
    file, table = with_settings(tmp_path)
    found = []
    for said in ("lr", table):
        argv = [
            "backtest",
            file,
            "--settings",
            said,
            "--methods",
            "index,tpe + s",
            "--json",
            *FEW,
        ]
        assert cli.main(argv) == 0
        found.append(regrets(capsys))
    assert set(found[0]) == {"index policy", "hindsight"} | {
        f"Optuna TPE + SuccessiveHalvingPruner, {n} runs" for n in (10, 30, 100)
    }
    assert cli.main(["backtest", file, "--methods", "index", "--json", *FEW]) == 0
    blind = regrets(capsys)
    for known in found:
        assert known["index policy"] < blind["index policy"]


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["--settings", "none.csv"], 3, "none.csv"),
        (["--settings", "momentum"], 1, "momentum"),
    ],
)
def test_settings_that_cannot_be_used(tmp_path, capsys, argv, code, message):
    file, _ = with_settings(tmp_path)
    assert cli.main(["backtest", file, *argv, *FEW]) == code
    assert message in capsys.readouterr().err
