"""Damaged and hostile logs: whatever they hold, only our own errors come out, and soon."""

from __future__ import annotations

import os
import random
import sqlite3
import sys
import time
import warnings
from collections import Counter
from contextlib import closing
from types import SimpleNamespace

import pytest
from log_specimens import BOMB, LOGS, MAKERS, damaged, damaged_within, made, written

from weitzman.errors import InvalidArgument, InvalidFile, WeitzmanError
from weitzman.learn import Curves

SEED = int(os.environ.get("WEITZMAN_FUZZ_SEED", "1"))
INPUTS = int(os.environ.get("WEITZMAN_FUZZ_LOGS", "300"))  # of each kind
CHART_OF_TIME = b'"Relative Time","a - acc"\n"0.2","0.1"\n"0.7","0.2"\n'
SLOWEST = 2.0  # seconds of computing that one small log may take

pytest.importorskip("pandas")
pytest.importorskip("yaml")


@pytest.mark.parametrize("kind", LOGS)
def test_valid_logs_are_read(tmp_path, kind):
    written(tmp_path, LOGS[kind].files)
    assert len(LOGS[kind].read(tmp_path)) >= 1


@pytest.mark.parametrize("kind", LOGS)
def test_only_our_errors_come_out(tmp_path, kind):
    check_damaged(tmp_path, kind, LOGS[kind].read, lambda pick: damaged(kind, pick), INPUTS)


@pytest.mark.parametrize("kind", MAKERS)
def test_only_our_errors_come_out_of_what_a_library_wrote(tmp_path, kind):
    """The inputs of one kind are fewer: the library reads each of them, mostly from a database."""
    pytest.importorskip(MAKERS[kind][0])
    inputs = INPUTS if kind in ("TensorBoard", "W&B offline") else INPUTS // 6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = made(kind)
        written(tmp_path / "whole", log.files)
        assert len(log.read(tmp_path / "whole")) >= 1
    check_damaged(tmp_path, kind, log.read, lambda pick: damaged_within(kind, pick), inputs)


def check_damaged(folder, kind, read, damage, inputs):
    pick, ends, slowest = random.Random(f"{SEED} {kind}"), Counter(), 0.0
    for number in range(inputs):
        files, here = damage(pick), folder / (str(number) if kind == "MLflow" else "damaged")
        written(here, files)  # MLflow keeps a store open by its name
        start = time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read(here)
        except WeitzmanError as error:
            ends[type(error).__name__] += 1
        except Exception as error:
            pytest.fail(f"{type(error).__name__}: {error} from number {number} of {kind}, {here}")
        else:
            ends["read"] += 1
        slowest = max(slowest, time.process_time() - start)
        assert slowest < SLOWEST, here
    assert min(ends["read"], ends.total() - ends["read"]) > inputs // 50
    if "WEITZMAN_FUZZ_LOGS" in os.environ:
        sys.stderr.write(f"\n{kind}: {ends.total()} logs, {dict(ends)}, slowest {slowest:.3f} s\n")


def test_everyday_blanks_are_data(tmp_path):
    """A metric of null and an epoch without a number are no reason to reject a log."""
    written(tmp_path, {
        "a/result.json": b'{"acc": 0.5, "training_iteration": 1, "time_this_iter_s": null}\n'
        b'{"acc": null, "training_iteration": 2, "time_this_iter_s": 1}\n'
        b'{"acc": 0.7, "training_iteration": null}\n'
        b'{"acc": 0.7, "training_iteration": 3, "time_this_iter_s": 2}\n',
        "k.csv": b"epoch,acc\n0,0.1\n,0.2\n1,0.3\n",
    })  # fmt: skip
    curves = Curves.from_ray(tmp_path / "a", "acc")
    assert curves.step.tolist() == [1, 3]
    assert curves.cost.tolist() == [0, 3]
    assert Curves.from_keras(tmp_path / "k.csv", "acc").step.tolist() == [1, 2]


def test_steps_that_are_no_whole_numbers_are_not_cut_off(tmp_path):
    """The axis of an exported chart may be a time: rows 0.2 and 0.7 are no one step 0."""
    written(tmp_path, {"chart.csv": CHART_OF_TIME, "a/result.json": b'{"acc": 1, "t": 1.5}\n'})
    with pytest.raises(InvalidFile, match=r"whole numbers, but one is 0\.2"):
        Curves.from_wandb(tmp_path / "chart.csv", "acc")
    with pytest.raises(InvalidFile, match=r"result\.json: .*whole numbers, but one is 1\.5"):
        Curves.from_ray(tmp_path / "a", "acc", step="t")


def test_a_cell_that_is_no_number_names_its_file(tmp_path):
    written(tmp_path, {"k.csv": b"epoch,acc\n0,0.1\n1,good\n"})
    with pytest.raises(InvalidFile, match=r"k\.csv: column 'acc' must hold numbers, but row 1"):
        Curves.from_keras(tmp_path, "acc")


def test_a_few_lines_of_yaml_that_stand_for_billions(tmp_path):
    written(tmp_path, {**LOGS["Lightning"].files, "v/hparams.yaml": BOMB.encode()})
    start = time.process_time()
    with pytest.raises(InvalidFile, match=r"hparams\.yaml: a run must have at most 10,000"):
        Curves.from_lightning(tmp_path, "acc")
    assert time.process_time() - start < 1


def test_checkpoints_of_the_trainer_are_one_run(tmp_path):
    state = LOGS["Hugging Face"].files["r/checkpoint-40/trainer_state.json"]
    early = state.replace(b'"global_step": 40', b'"global_step": 20').replace(b"0.2", b"0.1")
    written(tmp_path, {
        "r/checkpoint-40/trainer_state.json": state, "r/checkpoint-20/trainer_state.json": early,
        "other/trainer_state.json": state,
    })  # fmt: skip
    curves = Curves.from_huggingface(tmp_path, "eval_acc")
    assert curves.runs == ("other", "r")
    assert curves.step.tolist() == [10, 20, 30, 40] * 2
    assert curves.score[4:].tolist() == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert curves.settings[0] == {"lr": 0.1}
    with pytest.raises(InvalidArgument, match=r"must show 'nothing'.* There are eval_acc"):
        Curves.from_huggingface(tmp_path, "nothing")
    written(tmp_path, LOGS["Ray"].files)
    with pytest.raises(InvalidArgument, match=r"must show 'x'.* There are acc, time_this_iter_s"):
        Curves.from_ray(tmp_path, "x")


def test_the_network_must_be_asked_for(tmp_path, monkeypatch):
    asked = []
    server = SimpleNamespace(
        get_tracking_uri=lambda: "https://server", MlflowClient=lambda **uri: asked.append(uri)
    )
    monkeypatch.setitem(sys.modules, "mlflow", server)
    for uri in (None, "http://localhost:5000", "databricks://x"):
        with pytest.raises(InvalidArgument, match=r"reached over the network\. Say `online=True`"):
            Curves.from_mlflow("tuning", "loss", tracking_uri=uri)
    assert not asked
    with pytest.raises(InvalidFile, match="https://server: not a store of MLflow"):
        Curves.from_mlflow("tuning", "loss", online=True)
    assert asked == [{"tracking_uri": None}]
    with pytest.raises(InvalidFile, match=r"no such file or folder.*`online=True`"):
        Curves.from_wandb("entity/project", "acc")
    with pytest.raises(InvalidFile, match="no such file"):
        Curves.from_optuna(f"sqlite:///{tmp_path}/none.db")
    assert not list(tmp_path.iterdir())  # SQLite would have made the file
    with pytest.raises(InvalidArgument, match="URL of a storage"):
        Curves.from_optuna("study.db")


def test_a_storage_of_optuna(tmp_path):
    optuna = pytest.importorskip("optuna")
    pytest.importorskip("sqlalchemy")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    url = f"sqlite:///{tmp_path}/study.db"
    study = optuna.create_study(study_name="s", storage=url, direction="maximize")
    trial = study.ask({"kind": optuna.distributions.CategoricalDistribution(["a", "b"])})
    trial.report(0.4, 1)
    study.tell(trial, 0.5)
    curves = Curves.from_optuna(url)
    assert (curves.runs, curves.tasks) == (("trial 0",), ("",))
    del study
    whole = (tmp_path / "study.db").read_bytes()
    (tmp_path / "text.db").write_bytes(whole)
    with closing(sqlite3.connect(tmp_path / "text.db")) as base:
        base.execute("update trial_intermediate_values set intermediate_value = 'x'")
        base.commit()
    with pytest.raises(InvalidFile, match="study 's': not a study of Optuna: could not convert"):
        Curves.from_optuna(f"sqlite:///{tmp_path}/text.db")
    (tmp_path / "study.db").write_bytes(b"SQLite format 3\0" + b"x" * 500)
    with pytest.raises(InvalidFile, match="not a storage of Optuna"):
        Curves.from_optuna(url)
    damages = [b"CategoricalDist", b"CategoqicalDist"], [b"FINITE", b"FINITk"], [b"choic", b"chouc"]
    for number, damage in enumerate(damages):
        path = tmp_path / f"damaged{number}.db"
        path.write_bytes(whole.replace(*damage))
        with pytest.raises(InvalidFile, match="study 's': not a study of Optuna"):
            Curves.from_optuna(f"sqlite:///{path}")


def test_times_that_are_no_costs():
    from weitzman.learn.log_readers import odd_times

    assert odd_times([0, 10, 20, 31, 40, 51]) == ""
    assert "a pause" in odd_times([0, 10, 20, 31, 4000, 4010, 4020])
    assert "at about the same time" in odd_times([0, 0, 0, 1e-4, 1e-4])
    assert odd_times([0, 1]) == ""


def test_times_logged_all_at_once_are_named_and_steps_serve_instead():
    """A history imported from elsewhere seemed to cost nothing, without a word."""
    rows = [{"_step": 10 * i, "_runtime": 0.0, "acc": 0.1 * i} for i in range(1, 8)]
    with pytest.warns(UserWarning, match=r"run 'x': .* at about the same time"):
        assert Curves.from_wandb({"x": rows}, "acc").total_cost.tolist() == [0]
    steps = Curves.from_wandb({"x": rows}, "acc", cost="steps")  # without a warning
    assert steps.cost.tolist() == [10] * 7
    chart = [{"_step": i, "acc": 0.1} for i in (1, 2, 3, 4, 5, 900)]  # no times, so no pause
    assert len(Curves.from_wandb({"x": chart}, "acc").step) == 6
    with pytest.raises(InvalidArgument, match=r'`cost` must be "time" or "steps"'):
        Curves.from_wandb({"x": rows}, "acc", cost="hours")


def test_times_of_mlflow_that_are_no_costs(monkeypatch):
    """A stand-in for a store whose runs were imported: they start after all that they logged."""
    logged = [SimpleNamespace(timestamp=1000, step=10 * i, value=0.1) for i in range(1, 8)]
    run = SimpleNamespace(
        info=SimpleNamespace(start_time=5000, run_name="r", run_id="r"),
        data=SimpleNamespace(params={}, metrics={}),
    )
    page = type("Page", (list,), {"token": None})([run])
    client = SimpleNamespace(
        get_experiment_by_name=lambda name: SimpleNamespace(experiment_id="1", name=name),
        search_runs=lambda *args, **options: page,
        get_metric_history=lambda run, metric: logged,
    )
    store = SimpleNamespace(get_tracking_uri=lambda: "x", MlflowClient=lambda **uri: client)
    monkeypatch.setitem(sys.modules, "mlflow", store)
    with pytest.warns(UserWarning, match="at about the same time"):
        assert Curves.from_mlflow("e", "acc").total_cost.tolist() == [0]
    assert Curves.from_mlflow("e", "acc", cost="steps").total_cost.tolist() == [70]
