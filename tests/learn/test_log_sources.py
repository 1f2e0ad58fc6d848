"""Logs as other libraries write them, read back; each with the library itself where it is there."""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest

from weitzman import learn
from weitzman.errors import InvalidArgument, InvalidFile
from weitzman.learn import Curves

NAN = float("nan")


def rows_of(curves, run):
    """(step, score, cost) of one run, by its name."""
    number = curves.runs.index(run)
    part = slice(curves.start[number], curves.start[number + 1])
    return [
        (int(s), round(float(x), 6), round(float(c), 6))
        for s, x, c in zip(curves.step[part], curves.score[part], curves.cost[part], strict=True)
    ]


# -- tables -----------------------------------------------------------------------------------


def test_usual_names_are_found_as_the_command_finds_them():
    table = {
        "dataset": ["d", "d", "e"],
        "trial_id": [1, 1, 1],
        "epoch": [1, 2, 1],
        "val_loss": [0.5, 0.4, 0.9],
        "_runtime": [10.0, 25.0, 7.0],
    }
    curves = Curves.read(table)
    assert curves.tasks == ("d", "e")
    assert curves.minimize
    assert curves.cost.tolist() == [10, 15, 7]
    assert not Curves.read(table, minimize=False).minimize
    each = Curves.read(table, cumulative=False, task="dataset")
    assert each.cost.tolist() == [10, 25, 7]
    with pytest.raises(InvalidArgument, match="has no column 'cost'"):
        Curves.read({"run": [1], "step": [1], "score": [1.0]})


def test_a_column_called_by_its_role_comes_first():
    table = {"trial": ["x", "y"], "run": ["a", "a"], "epoch": [9, 9], "step": [1, 2]}
    curves = Curves.read(table | {"score": [1.0, 2.0], "loss": [0, 0], "cost": [1, 1]})
    assert curves.runs == ("a",)
    assert curves.step.tolist() == [1, 2]
    assert not curves.minimize


def test_no_task_takes_all_runs_together():
    table = {"task": ["d", "e"], "run": ["a", "b"], "step": [1, 1], "score": [1, 2], "cost": [1, 1]}
    assert Curves.read(table).tasks == ("d", "e")
    assert Curves.read(table, task=None).tasks == ("",)


def test_times_of_day_give_differences():
    table = {"run": ["a"] * 3 + ["b"], "step": [1, 2, 3, 1], "score": [1, 2, 3, 4]}
    clock = [1.7e9, 1.7e9 + 10, 1.7e9 + 30, 1.7e9 + 5]
    curves = Curves.read(table | {"_timestamp": clock})
    assert curves.cost.tolist() == [15, 10, 20, 15]  # a first row costs the median of the others
    with pytest.raises(InvalidArgument, match=r"times of day.*cumulative=True"):
        Curves.read(table | {"cost": clock})


def test_json_lines_and_lists_of_rows(tmp_path):
    rows = [
        {"run": "a", "step": 1, "eval": {"acc": 0.5}, "cost": 1},
        {"run": "a", "step": 2, "cost": 2},
        {"run": "a", "step": 3, "eval": {"acc": 0.7}, "cost": 3},
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + '\n{"run": "a", "st')  # still being written
    for source in (path, rows):
        curves = Curves.read(source, score="eval/acc")
        assert rows_of(curves, "a") == [(1, 0.5, 1), (3, 0.7, 5)]
    path.write_text('{"run": 1}\nnothing\n{"run": 1}\n')
    with pytest.raises(InvalidFile, match=r"log\.jsonl: line 2 is not JSON"):
        Curves.read(path)
    path.write_text('{"run": 1}\n[1]\n')
    with pytest.raises(InvalidFile, match="line 2 must be a JSON object"):
        Curves.read(path)


# -- joining ----------------------------------------------------------------------------------


def log(runs, **more):
    """Runs by name, each a list of scores."""
    return Curves.read(
        {
            "run": [name for name, scores in runs.items() for _ in scores],
            "step": [k for scores in runs.values() for k in range(1, len(scores) + 1)],
            "score": [x for scores in runs.values() for x in scores],
            "cost": [1.0 for scores in runs.values() for _ in scores],
        },
        **more,
    )


def test_logs_accumulate():
    first = log({"0": [1.0, 2.0], "1": [3.0]})
    second = log({"0": [5.0], "2": [6.0, 7.0]})
    both = first + second
    assert both.runs == ("0", "1", "0 (2)", "2")
    assert both.score.tolist() == [1, 2, 3, 5, 6, 7]
    assert both.ended.tolist() == [True, False, False, True]
    assert (both + first + second).runs == both.runs  # the same runs again
    grown = log({"1": [3.0, 4.0], "0": [1.0, 2.0]})
    more = Curves.concat([first, grown])
    assert more.runs == ("0", "1")
    assert rows_of(more, "1") == [(1, 3, 1), (2, 4, 1)]
    assert Curves.concat([grown, first]).score.tolist() == [3, 4, 1, 2]


def test_settings_tell_runs_apart_when_logs_are_joined():
    table = {"run": ["0"], "step": [1], "score": [0.5], "cost": [1], "rate": [0.1]}
    one = Curves.read(table, settings=["rate"])
    other = Curves.read(table | {"rate": [0.2]}, settings=["rate"])
    bare = Curves.read(table | {"score": [0.7]})
    assert (one + one).runs == ("0",)
    assert [dict(x) for x in (one + other + bare).settings] == [{"rate": 0.1}, {"rate": 0.2}, {}]


def test_logs_that_do_not_fit_are_not_joined():
    with pytest.raises(InvalidArgument, match="all maximize or all minimize"):
        log({"a": [1.0]}) + log({"a": [1.0]}, minimize=True)
    with pytest.raises(InvalidArgument, match="at least one"):
        Curves.concat([])
    with pytest.raises(TypeError):
        log({"a": [1.0]}) + 3


def test_a_pandas_table_and_back(tmp_path):
    pytest.importorskip("pandas")
    table = {
        "task": ["d", "d", "e"], "run": ["a", "a", "b"], "step": [1, 2, 1],
        "score": [0.5, NAN, 0.7], "cost": [1, 2, 3], "rate": [0.1, 0.1, None],
    }  # fmt: skip
    curves = Curves.read(table, settings=["rate"], ended=True)
    frame = curves.to_pandas()
    assert list(frame.columns) == [
        "task", "run", "step", "score", "cost", "ended", "minimize", "rate",
    ]  # fmt: skip
    again = Curves.read(frame, ended="ended", settings=["rate"])
    assert again.runs == curves.runs
    assert again.task == curves.task
    assert again.ended.tolist() == curves.ended.tolist()
    for name in ("start", "step", "score", "cost"):
        assert np.array_equal(getattr(again, name), getattr(curves, name), equal_nan=True)
    frame.to_csv(tmp_path / "export.csv")  # with the index, as pandas writes it
    written = Curves.read(tmp_path / "export.csv")
    assert written.settings == ({"rate": 0.1}, {})
    assert (curves + written).runs == curves.runs
    loss = replace(curves, runs=("007", "1"), minimize=True)
    loss.to_pandas().to_csv(tmp_path / "loss.csv")  # texts stay as they are
    back = Curves.read(tmp_path / "loss.csv")
    assert (back.runs, back.minimize) == (loss.runs, True)
    named = Curves.read(table | {"cost": [1, 1, 1]}, settings={"run": ["a", "b"], "step": [7, 8]})
    assert named.to_pandas()["setting step"].tolist() == [7, 7, 8]


# -- libraries --------------------------------------------------------------------------------


def test_optuna_trials():
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        for step in range(1, 4):
            trial.report(x + step, step)
            if trial.number == 1 and step == 2:
                raise optuna.TrialPruned
        if trial.number == 2:
            raise ValueError("crash")
        return x + 3

    study = optuna.create_study(direction="minimize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=4, catch=(ValueError,))
    waiting = study.ask()
    waiting.report(0.5, 1)
    study.ask()  # nothing seen yet
    curves = Curves.from_optuna(study)
    assert curves.runs == tuple(f"trial {i}" for i in range(5))
    assert curves.ended.tolist() == [True, False, False, True, False]
    assert np.diff(curves.start).tolist() == [3, 2, 3, 3, 1]
    assert curves.minimize
    assert [x.get("x") for x in curves.settings[:4]] == [
        t.params["x"] for t in study.get_trials()[:4]
    ]
    took = [t.duration.total_seconds() for t in study.get_trials()[:4]]
    assert curves.total_cost[:4] == pytest.approx(took)
    assert learn.fit(curves, price=10.0).minimize


def test_optuna_studies_without_reports_and_several_studies():
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    studies = [optuna.create_study(study_name=name, direction="maximize") for name in ("a", "b")]
    for study in studies:
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    curves = Curves.from_optuna(studies)
    assert curves.tasks == ("a", "b")
    assert curves.step.tolist() == [1] * 6
    assert curves.score.tolist() == [t.value for s in studies for t in s.get_trials()]
    with pytest.raises(InvalidArgument, match="none does"):
        Curves.from_optuna(optuna.create_study())
    with pytest.raises(InvalidArgument, match="all maximize or all minimize"):
        Curves.from_optuna([studies[0], optuna.create_study()])
    with pytest.raises(InvalidArgument, match="got a int"):
        Curves.from_optuna(3)
    with pytest.raises(InvalidArgument, match="one objective"):
        Curves.from_optuna(optuna.create_study(directions=["minimize", "minimize"]))


def test_a_search_of_ours_in_optuna_keeps_its_costs():
    optuna = pytest.importorskip("optuna")
    from weitzman.tune.optuna import optimize

    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        for step in (1, 2):
            yield x * step, 1.5

    model = learn.fit(log({"0": [5, 7], "1": [4, 4], "2": [6, 9]}), price=100)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=1))
    result = optimize(study, objective, model, n_trials=5, refit=False)
    curves = Curves.from_optuna(study)
    assert curves.score.tolist() == result.curves.score.tolist()
    assert curves.cost.tolist() == result.curves.cost.tolist()
    assert curves.ended.sum() <= result.curves.ended.sum()


def test_ray_folders(tmp_path):
    for name, scores in (("trial_a", [0.5, 0.6]), ("trial_b", [0.4])):
        folder = tmp_path / "experiment" / name
        folder.mkdir(parents=True)
        (folder / "params.json").write_text(json.dumps({"lr": len(scores), "net": {"width": 8}}))
        rows = [
            {"eval": {"acc": x}, "training_iteration": i, "time_this_iter_s": 2.0, "timestamp": i}
            for i, x in enumerate(scores, 1)
        ]
        rows.append(rows[-1] | {"done": True})  # Ray logs the last result twice
        (folder / "result.json").write_text("\n".join(map(json.dumps, rows)))
    curves = Curves.from_ray(tmp_path / "experiment", "eval/acc")
    assert rows_of(curves, "trial_a") == [(1, 0.5, 2), (2, 0.6, 2)]
    assert curves.settings == ({"lr": 2, "net/width": 8}, {"lr": 1, "net/width": 8})
    assert curves.ended.tolist() == [True, False]
    with pytest.raises(InvalidArgument, match="must show 'loss'"):
        Curves.from_ray(tmp_path, "loss")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InvalidFile, match=r"must hold a file result\.json"):
        Curves.from_ray(empty, "x")


@pytest.mark.slow
def test_ray_results(tmp_path, ray_session):
    from ray import tune as ray_tune

    def train(config):
        for step in range(1, 4):
            ray_tune.report({"acc": config["x"] * step})

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grid = ray_tune.Tuner(
            train,
            param_space={"x": ray_tune.grid_search([1.0, 2.0])},
            run_config=ray_tune.RunConfig(storage_path=str(tmp_path), verbose=0, name="e"),
        ).fit()
        curves = Curves.from_ray(grid, "acc")
    assert sorted(curves.score.tolist()) == [1, 2, 2, 3, 4, 6]
    assert sorted(x["x"] for x in curves.settings) == [1.0, 2.0]
    assert (curves.cost > 0).all()
    folder = Curves.from_ray(tmp_path / "e", "acc")
    assert sorted(folder.score.tolist()) == sorted(curves.score.tolist())
    assert sorted(folder.total_cost) == pytest.approx(sorted(curves.total_cost))


def test_mlflow_runs(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    uri = f"sqlite:///{tmp_path}/mlflow.db" if _has_sqlalchemy() else tmp_path.as_uri()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = mlflow.MlflowClient(tracking_uri=uri)
        experiment = client.create_experiment("tuning", artifact_location=str(tmp_path))
        for number in range(2):
            run = client.create_run(experiment, start_time=1_700_000_000_000, run_name=f"r{number}")
            client.log_param(run.info.run_id, "lr", 0.1 * (number + 1))
            client.log_param(run.info.run_id, "net", "deep")
            for step in range(1, 4):
                at = 1_700_000_000_000 + 2000 * step
                client.log_metric(run.info.run_id, "val_loss", 1 / step, timestamp=at, step=step)
        bare = client.create_run(experiment, start_time=1_700_000_000_000, run_name="nosteps")
        for k in range(1, 4):  # logged without a step
            at = 1_700_000_000_000 + 1000 * k
            client.log_metric(bare.info.run_id, "val_loss", 1 / k, timestamp=at)
        curves = Curves.from_mlflow("tuning", "val_loss", tracking_uri=uri)
        with pytest.raises(InvalidArgument, match=r"no experiment 'none'; there are .*'tuning'"):
            Curves.from_mlflow("none", "val_loss", tracking_uri=uri)
    assert curves.minimize
    assert rows_of(curves, "r0") == [(1, 1, 2), (2, 0.5, 2), (3, round(1 / 3, 6), 2)]
    assert rows_of(curves, "nosteps") == [(1, 1, 1), (2, 0.5, 1), (3, round(1 / 3, 6), 1)]
    settings = dict(zip(curves.runs, curves.settings, strict=True))
    assert settings["r1"] == {"lr": 0.2, "net": "deep"}


def _has_sqlalchemy():
    from importlib.util import find_spec

    return find_spec("sqlalchemy") is not None


def test_wandb_histories_and_charts(tmp_path):
    class Run:  # what wandb.Api().runs gives
        def __init__(self, name, config, rows):
            self.name, self.id, self.config, self._rows = name, name, config, rows

        def scan_history(self, keys):
            return (row for row in self._rows if all(row.get(k) is not None for k in keys))

    history = [
        {"_step": 0, "_runtime": 1.5, "train_loss": 3.0},
        {"_step": 1, "_runtime": 3.0, "train_loss": 2.0, "val_acc": 0.5},
        {"_step": 2, "_runtime": 4.0, "train_loss": 1.0, "val_acc": None},
        {"_step": 3, "_runtime": 7.0, "train_loss": 1.0, "val_acc": 0.7},
    ]
    runs = [Run("sweep-1", {"lr": 0.1, "_wandb": {}}, history), Run("empty", {}, [])]
    curves = Curves.from_wandb(runs, "val_acc")
    assert rows_of(curves, "sweep-1") == [(1, 0.5, 3), (3, 0.7, 4)]
    assert curves.settings == ({"lr": 0.1},)
    assert rows_of(Curves.from_wandb({"x": history}, "val_acc"), "x") == [(1, 0.5, 3), (3, 0.7, 4)]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(history)
    assert rows_of(Curves.from_wandb({"x": frame}, "val_acc"), "x") == [(1, 0.5, 3), (3, 0.7, 4)]
    (tmp_path / "chart.csv").write_text(
        '"Step","a - val_acc","a - val_acc__MIN","a - val_acc__MAX","b - val_acc"\n'
        '"0","0.1","0.1","0.1",""\n"5","0.2","0.2","0.2","0.4"\n'
    )
    chart = Curves.from_wandb(tmp_path / "chart.csv", "val_acc")
    assert chart.runs == ("a", "b")
    assert rows_of(chart, "a") == [(0, 0.1, 1), (5, 0.2, 5)]
    assert rows_of(chart, "b") == [(5, 0.4, 6)]
    with pytest.raises(InvalidArgument, match="RUN - loss"):
        Curves.from_wandb(tmp_path / "chart.csv", "loss")


def test_wandb_runs_that_were_logged_offline(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(2):
            run = wandb.init(
                project="p", mode="offline", dir=str(tmp_path), name=f"w{number}",
                config={"lr": 0.1 * (number + 1), "net": "deep"},
            )  # fmt: skip
            for step in range(300):  # more than one block of the file
                run.log({"train/loss": 1 / (step + 1), "note": "x" * 200})
                if step % 100 == 99:
                    run.log({"val_acc": step / 1000})
            run.finish()
    curves = Curves.from_wandb(tmp_path / "wandb", "val_acc")
    assert sorted(curves.runs) == ["w0", "w1"]
    assert [row[:2] for row in rows_of(curves, "w0")] == [(100, 0.099), (201, 0.199), (302, 0.299)]
    assert dict(zip(curves.runs, curves.settings, strict=True))["w1"] == {"lr": 0.2, "net": "deep"}
    assert (curves.cost >= 0).all()
    (path, *_) = sorted((tmp_path / "wandb").glob("offline-*/*.wandb"))
    assert len(Curves.from_wandb(path, "train/loss").step) == 300
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])  # as after a crash
    assert 0 < len(Curves.from_wandb(path, "train/loss").step) < 300
    path.write_bytes(b"no log")
    with pytest.raises(InvalidFile, match="no log of Weights & Biases"):
        Curves.from_wandb(path, "val_acc")


def test_tensorboard_scalars(tmp_path):
    pytest.importorskip("tensorboard")
    writers = pytest.importorskip("tensorboardX")
    for name in ("run_a", "run_b"):
        with writers.SummaryWriter(str(tmp_path / name)) as writer:
            for step in range(1, 4):
                writer.add_scalar("val/acc", step / 10, step, walltime=time.time() + 2 * step)
                writer.add_scalar("train/loss", 1.0, step)
            writer.add_hparams({"lr": 0.1, "net": "deep", "flag": True}, {"final": 0.3}, name="hp")
    curves = Curves.from_tensorboard(tmp_path, "val/acc")
    assert sorted(curves.runs) == ["run_a", "run_b"]
    assert [row[:2] for row in rows_of(curves, "run_a")] == [(1, 0.1), (2, 0.2), (3, 0.3)]
    assert rows_of(curves, "run_a")[1][2] == pytest.approx(2, abs=0.5)
    assert curves.settings[0] == {"lr": 0.1, "net": "deep", "flag": True}
    assert len(Curves.from_tensorboard(tmp_path / "run_a", "val/acc")) == 1
    with pytest.raises(
        InvalidArgument, match=r"must show 'none', but none does. There are .*val/acc"
    ):
        Curves.from_tensorboard(tmp_path, "none")


def test_keras_csv_logs(tmp_path):
    (tmp_path / "a.csv").write_text("epoch,accuracy,val_accuracy\n0,0.1,0.2\n1,0.3,0.4\n")
    (tmp_path / "b.csv").write_text("epoch,accuracy,val_accuracy\n0,0.1,0.3\n0,0.1,0.25\n1,0.3,\n")
    curves = Curves.from_keras(tmp_path, "val_accuracy")
    assert curves.runs == ("a", "b")
    assert rows_of(curves, "a") == [(1, 0.2, 1), (2, 0.4, 1)]
    assert rows_of(curves, "b")[0] == (1, 0.25, 1)
    assert np.isnan(curves.score[-1])  # it has diverged
    with pytest.raises(InvalidFile, match=r"a\.csv: the table has no column 'loss'"):
        Curves.from_keras(tmp_path, "loss")
    with pytest.raises(InvalidFile, match="no such file"):
        Curves.from_keras(tmp_path / "none", "loss")


def test_lightning_csv_logs(tmp_path):
    pytest.importorskip("yaml")
    for version in (0, 1):
        folder = tmp_path / "lightning_logs" / f"version_{version}"
        folder.mkdir(parents=True)
        (folder / "metrics.csv").write_text(
            "epoch,step,train_loss,val_loss\n"
            "0,49,0.9,\n0,99,,0.8\n0,99,0.7,\n1,149,0.6,\n1,199,,0.5\n1,199,0.4,\n"
        )
        (folder / "hparams.yaml").write_text(f"lr: 0.{version + 1}\nnet: deep\n")
    curves = Curves.from_lightning(tmp_path / "lightning_logs", "val_loss")
    assert curves.runs == ("version_0", "version_1")
    assert rows_of(curves, "version_0") == [(100, 0.8, 100), (200, 0.5, 100)]
    assert curves.minimize
    assert curves.settings == ({"lr": 0.1, "net": "deep"}, {"lr": 0.2, "net": "deep"})
    epochs = Curves.from_lightning(tmp_path, "val_loss", step="epoch")
    assert rows_of(epochs, "lightning_logs/version_1") == [(1, 0.8, 1), (2, 0.5, 1)]
    (tmp_path / "lightning_logs" / "version_0" / "hparams.yaml").write_text(
        "lr: 0.1\nobject: !!python/object:x.Y {}\n"
    )
    assert Curves.from_lightning(tmp_path, "val_loss").settings[0] == {"lr": 0.1}


@pytest.mark.parametrize(
    ("names", "minimize"),
    [
        (("Name", "Step", "val/acc", "_runtime"), False),
        (("Trial ID", "training_iteration", "eval/accuracy", "time_total_s"), False),
        (("config_id", "budget", "mean_test_score", "elapsed"), False),
        (("experiment", "epochs", "Val-Loss", "Wall Time"), True),
    ],
)
def test_usual_names_are_found_however_they_are_written(names, minimize):
    run, step, score, cost = names
    columns = {
        run: ["a", "a", "b"],
        step: [1, 2, 1],
        score: [0.1, 0.2, 0.3],
        cost: [5.0, 12.0, 6.0],
    }
    curves = Curves.read(columns)
    assert (curves.runs, curves.step.tolist()) == (("a", "b"), [1, 2, 1])
    assert curves.score.tolist() == [0.1, 0.2, 0.3]
    assert curves.cost.tolist() == [5.0, 7.0, 6.0]  # counted from the start of the run
    assert curves.minimize is minimize


def test_settings_within_settings_are_named_together(tmp_path):
    rows = [
        {"run": r, "step": s, "score": 0.1 * s, "cost": 1, "config": {"lr": r, "opt": {"m": 0.9}}}
        for r in range(2)
        for s in (1, 2)
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for source in (tmp_path / "log.jsonl", rows):
        curves = Curves.read(source, settings=["config"])
        assert curves.settings == (
            {"config/lr": 0, "config/opt/m": 0.9}, {"config/lr": 1, "config/opt/m": 0.9},
        )  # fmt: skip
