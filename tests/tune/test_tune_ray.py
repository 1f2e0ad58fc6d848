"""Ray experiments: checkpoints, restored experiments, searchers, failures, stopping."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tuning_ray
from tuning_worlds import Chained, four_grades, slow_starters

from weitzman import tune
from weitzman._common.disk import this_process
from weitzman.errors import InvalidArgument, JournalError

pytest.importorskip("ray", reason="RAY IS NOT INSTALLED: its driver is not tested")
import ray.tune
from ray.tune.experiment import Trial
from ray.tune.search import Searcher

from weitzman.tune import ray as driver

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.*"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

EXAMPLES = Path(__file__).parents[2] / "examples"
MODEL = four_grades()
CURVES = [list(MODEL.shown(states)) for states in slow_starters(MODEL)]


def wanted(curves=CURVES) -> tune.Result:
    """What the plain loop does."""
    rows = [[row[1:] for row in curve] for curve in curves]
    return tune.optimize(lambda run: iter(rows[run]), list(range(len(rows))), MODEL)


class PowerCut(ray.tune.Callback):
    """Breaks off after some results, once."""

    def __init__(self, after: int, file: Path) -> None:
        self.after, self.file = after, file

    def on_trial_result(self, iteration, trials, trial, result, **info) -> None:
        self.after -= 1
        time.sleep(0.1)  # Ray saves its state in the background, and skips that while it is at it
        if self.after == 0 and not self.file.exists():
            self.file.write_text("it happened")
            raise RuntimeError("power cut")


def test_a_restored_experiment_continues_where_it_stood(ray_session, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("TUNE_GLOBAL_CHECKPOINT_S", "0")
    poor = [[(s, min(x, 4.0), c) for s, x, c in curve] for curve in CURVES[:5]]
    log = tmp_path / "log"
    first = driver.IndexScheduler(MODEL, cost="paid", workers=1)
    tuner = tuning_ray.tuner(
        log, poor, first, callbacks=[PowerCut(17, tmp_path / "cut")],
        checkpoint_config=ray.tune.CheckpointConfig(checkpoint_frequency=1),
    )  # fmt: skip
    with pytest.raises(Exception, match="power cut"):
        tuner.fit()
    before = tuning_ray.steps(log)
    again = ray.tune.Tuner.restore(
        str(tmp_path / "experiment"), tuning_ray.trainable(log), param_space=tuning_ray.space(poor)
    )
    results = again.fit()
    steps = tuning_ray.steps(log)
    reference = wanted(poor)
    assert {run: max(s for r, s in steps if r == run) for run in range(5)} == {
        run: record.steps[-1] for run, record in enumerate(reference.runs)
    }
    assert len(before) == 17
    # Ray writes its state when it finds the time: on a loaded machine steps before the cut are done
    # again, but never a step after it.
    assert {step for step in steps if steps.count(step) > 1} <= set(before)
    assert len(steps) <= len(set(steps)) + len(before)
    assert results.get_best_result().metrics["score"] == reference.best_score
    assert not any(result.error for result in results)


def test_the_example_runs(ray_session, tmp_path: Path, monkeypatch, capsys):
    """In the Ray that is there; a second one would take seconds to start."""
    pytest.importorskip("sklearn")
    monkeypatch.setattr(ray, "init", lambda **_: None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLES)
    runpy.run_path(str(EXAMPLES / "tune_ray.py"), run_name="__main__")
    assert "in random order until one is as good" in capsys.readouterr().out.lower()


class InOrder(Searcher):
    """Suggests the next curve; notes when it was asked and told."""

    def __init__(self, curves, limit: int) -> None:
        super().__init__(metric="score", mode="max")
        self.curves, self.limit, self.events = curves, limit, []

    def suggest(self, trial_id: str):
        run = sum(kind == "asked" for kind, _ in self.events)
        if run >= self.limit:
            return Searcher.FINISHED
        self.events.append(("asked", run))
        return {"run": run, "rows": self.curves[run % len(self.curves)]}

    def on_trial_complete(self, trial_id: str, result=None, error: bool = False) -> None:
        self.events.append(("told", error))

    def save(self, checkpoint_path: str) -> None:
        pass

    def restore(self, checkpoint_path: str) -> None:
        pass


def test_searchers_failures_and_two_at_once(ray_session, tmp_path: Path):
    """A searcher without an end is asked for as many trials as are worth it, and a few more."""
    searcher = InOrder(CURVES, 10**6)
    scheduler = driver.IndexScheduler(MODEL, cost="paid")
    tuner = ray.tune.Tuner(
        tuning_ray.trainable(tmp_path / "log", fail=2),
        tune_config=ray.tune.TuneConfig(
            metric="score", mode="max", scheduler=scheduler, search_alg=searcher, num_samples=-1,
            reuse_actors=True,
        ),
        run_config=ray.tune.RunConfig(storage_path=str(tmp_path), name="experiment", verbose=0),
    )  # fmt: skip
    results = tuner.fit()
    assert results.get_best_result().metrics["score"] == 10
    assert results.get_best_result().checkpoint is not None
    asked = sum(kind == "asked" for kind, _ in searcher.events)
    assert len(wanted().runs) <= asked < 20
    assert ("told", True) in searcher.events
    kinds = [kind for kind, _ in searcher.events]
    assert "asked" in kinds[kinds.index("told") :]  # it learns on the way
    assert [run.over for run in scheduler.race.runs].count("failed") == 1
    assert scheduler.race.done
    assert scheduler._capacity() == 2


FIRST = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[3:]
import ray, tuning_ray
from tuning_worlds import four_grades, slow_starters
from weitzman.tune import ray as driver
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
model, folder = four_grades(), Path(sys.argv[2])
curves = [list(model.shown(states)) for states in slow_starters(model)][:3]
made = tuning_ray.trainable(folder / "log", until=folder / "go")
scheduler = driver.IndexScheduler(model, cost="paid", workers=1)
found = tuning_ray.tuner(folder / "log", curves, scheduler, made=made).fit()
print("best", found.get_best_result().metrics["score"])
"""


def test_it_begins_from_nothing(ray_session, tmp_path: Path):
    """No log and no model, only what a full run costs; settings of the trials are known."""
    scheduler = driver.IndexScheduler(full_run_cost=2.0, minimize=False, cost="paid", workers=1)
    log = tmp_path / "log"
    results = tuning_ray.tuner(log, CURVES, scheduler).fit()
    race = scheduler.race
    steps = tuning_ray.steps(log)
    assert len(results) >= len(race.runs)
    assert race.best_score == max(CURVES[run][step - 1][1] for run, step in steps) >= 4
    assert [run.settings["run"] for run in race.runs] == list(range(len(race.runs)))
    assert len(steps) == len(set(steps)) == sum(len(run.steps) for run in race.runs)
    assert race.spent == pytest.approx(sum(CURVES[run][step - 1][2] for run, step in steps))


def test_a_second_process_on_an_experiment_is_rejected(ray_session, tmp_path: Path):
    """Whether it restores it or begins one of the same name; the first goes on undisturbed."""
    address = ray_session.get_runtime_context().gcs_address
    first = subprocess.Popen(
        [sys.executable, "-c", FIRST, address, str(tmp_path), *sys.path], text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    log, folder = tmp_path / "log", tmp_path / "experiment"
    while not log.exists() and first.poll() is None:
        time.sleep(0.05)
    message = rf"experiment: process {first.pid} on .* is using the experiment"
    second = driver.IndexScheduler(MODEL, cost="paid", workers=1)
    with pytest.raises(JournalError, match=message):
        tuning_ray.tuner(log, CURVES[:3], second).fit()
    again = ray.tune.Tuner.restore(
        str(folder), tuning_ray.trainable(log), param_space=tuning_ray.space(CURVES[:3])
    )
    with pytest.raises(JournalError, match=message):
        again.fit()
    (tmp_path / "go").touch()
    out, err = first.communicate(timeout=300)
    reference = wanted(CURVES[:3])
    assert f"best {reference.best_score:g}\n" in out.replace(".0\n", "\n"), err[-2000:]
    steps = tuning_ray.steps(log)
    assert len(steps) == len(set(steps)) == sum(len(run.steps) for run in reference.runs)
    assert not list(folder.parent.glob(".experiment.owner.*"))  # it is free again


def owner_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.parent.glob(".experiment.owner.*"))


def test_who_owns_an_experiment(tmp_path: Path):
    """A dead owner counts for nothing; one process may come again, with the next number."""
    folder, gone = tmp_path / "experiment", this_process()._replace(born="long ago")
    (tmp_path / ".experiment.owner.3.json").write_text(json.dumps([*gone, "dead"]))
    old = driver.Owner(str(folder))
    assert owner_files(folder) == [".experiment.owner.4.json"]
    old.check()
    new = driver.Owner(str(folder))
    new.check()
    with pytest.raises(JournalError, match="another process has taken over"):
        old.check()
    old.release()
    new.check()
    new.release()
    assert not owner_files(folder)
    far = this_process()._replace(host="elsewhere")
    for text in (json.dumps([*far, "x"]), "[1, 2", ""):  # perhaps it is just being written
        (tmp_path / ".experiment.owner.9.json").write_text(text)
        with pytest.raises(JournalError, match=r"is using .* delete .*owner\.9\.json"):
            driver.Owner(str(folder))


def test_stopped_while_it_becomes_the_owner(tmp_path: Path, monkeypatch):
    """Between its look and its claim another process may become the owner, and stay it."""
    folder, real, others = tmp_path / "experiment", os.open, []
    far = this_process()._replace(host="elsewhere")

    def stopped(path, *rest):
        if not others:
            others.append(path)
            Path(path).write_text(json.dumps([*far, "faster"]))
        return real(path, *rest)

    monkeypatch.setattr(driver.os, "open", stopped)
    with pytest.raises(JournalError, match=r"process .* on elsewhere is using"):
        driver.Owner(str(folder))
    assert json.loads(Path(others[0]).read_text())[-1] == "faster"


def test_a_restored_experiment_whose_state_was_lost_is_rejected(tmp_path: Path):
    """Ray then begins a new one in the same folder, without an error."""
    scheduler = driver.IndexScheduler(MODEL)
    scheduler._restored = True
    for name, text in (("old", "{}"), ("empty", ""), ("known", "{}")):
        (tmp_path / "experiment" / name).mkdir(parents=True)
        (tmp_path / "experiment" / name / "result.json").write_text(text)
    trials = [SimpleNamespace(path="somewhere/known")]
    controller = SimpleNamespace(get_trials=lambda: trials)
    with pytest.raises(JournalError, match=r"lacks trial old \(1 in all\)"):
        scheduler._check_folder(controller, str(tmp_path / "experiment"))
    trials.append(SimpleNamespace(path="somewhere/old"))
    scheduler._check_folder(controller, str(tmp_path / "experiment"))


# -- without running Ray -------------------------------------------------------------------------


class Controller:
    """As much of Ray's controller as a scheduler needs."""

    def __init__(self, trials) -> None:
        self.trials, self.finished = trials, False
        self.search_alg = SimpleNamespace(
            is_finished=lambda: True, set_finished=lambda: setattr(self, "finished", True)
        )

    def get_trials(self):
        return self.trials

    def stop_trial(self, trial) -> None:
        trial.status = Trial.TERMINATED


class Fake:
    """As much of one of Ray's trials as a scheduler needs."""

    has_reported_at_least_once = False

    def __init__(self, name: str) -> None:
        self.trial_id, self.status = name, Trial.PENDING

    def init_local_path(self) -> None:
        pass

    def is_finished(self) -> bool:
        return self.status in (Trial.TERMINATED, Trial.ERROR)


def started(scheduler, controller, trials):
    """Add trials and let the first one run."""
    for trial in trials:
        scheduler.on_trial_add(controller, trial)
    chosen = scheduler.choose_trial_to_run(controller)
    assert chosen is trials[0]
    assert scheduler.choose_trial_to_run(controller) is chosen  # asked again before it runs
    chosen.status = Trial.RUNNING
    assert scheduler.choose_trial_to_run(controller) is None
    return chosen


def result(step: int, score: float) -> dict:
    return {"training_iteration": step, "m": score, "time_this_iter_s": 0.25}


def test_a_trial_that_is_tried_again_is_not_lost():
    scheduler = driver.IndexScheduler(MODEL, metric="m", workers=1)
    trials = [Fake("a"), Fake("b")]
    controller = Controller(trials)
    first = started(scheduler, controller, trials)
    assert scheduler.on_trial_result(controller, first, result(1, 4.0)) == "CONTINUE"
    scheduler.on_trial_error(controller, first)  # as Ray does before it tries again
    first.status = Trial.PENDING
    scheduler.on_trial_add(controller, first)
    assert scheduler.choose_trial_to_run(controller) is first
    first.status = Trial.RUNNING
    assert scheduler.on_trial_result(controller, first, result(1, 4.0)) == "CONTINUE"  # repeated
    assert scheduler.race.spent == 0.5
    assert len(scheduler.race.runs[0].steps) == 1
    scheduler.on_trial_error(controller, first)
    first.status = Trial.ERROR
    assert scheduler.choose_trial_to_run(controller) is trials[1]
    assert scheduler.race.runs[0].over == "failed"


def test_the_last_result_of_a_trial_counts():
    """Ray tells the scheduler of a result with ``done`` only when the trial is complete."""
    scheduler = driver.IndexScheduler(MODEL, metric="m", workers=1)
    trials = [Fake("a")]
    controller = Controller(trials)
    first = started(scheduler, controller, trials)
    scheduler.on_trial_complete(controller, first, {**result(1, 10.0), "done": True})
    first.status = Trial.TERMINATED
    assert scheduler.race.best_score == 10
    assert scheduler.race.runs[0].over == "ended"
    assert scheduler.choose_trial_to_run(controller) is None
    assert controller.finished


def test_a_trial_that_ray_has_started_unasked_counts():
    scheduler = driver.IndexScheduler(MODEL, metric="m", workers=1)
    trials = [Fake("a"), Fake("b")]
    controller = Controller(trials)
    started(scheduler, controller, trials)
    trials[1].status = Trial.RUNNING
    scheduler.on_trial_result(controller, trials[1], result(1, 7.0))
    assert scheduler.race.best_score == 7
    assert scheduler._fresh == []


def test_it_waits_for_the_last_checkpoint_before_it_ends():
    scheduler = driver.IndexScheduler(MODEL, metric="m", workers=1)
    trials = [Fake("a"), Fake("b")]
    controller = Controller(trials)
    first = started(scheduler, controller, trials)
    for step in range(1, 9):
        scheduler.on_trial_result(controller, first, result(step, 10.0))
    while scheduler.on_trial_result(controller, first, result(step := step + 1, 10.0)) != "PAUSE":
        pass
    assert scheduler.choose_trial_to_run(controller) is None
    assert not controller.finished  # it is being saved
    first.status = Trial.PAUSED
    assert scheduler.choose_trial_to_run(controller) is None
    assert controller.finished
    assert [trial.status for trial in trials] == [Trial.TERMINATED] * 2
    assert scheduler.debug_string().startswith("best 10, spent ")


def test_what_must_agree():
    scheduler = driver.IndexScheduler(MODEL)
    with pytest.raises(InvalidArgument, match="the mode is 'min' and the model maximizes"):
        scheduler.set_search_properties("m", "min")
    assert scheduler.set_search_properties("m", "max")
    assert scheduler.metric == "m"
    assert not scheduler.set_search_properties("another", "max")
    with pytest.raises(InvalidArgument, match="`workers` must be a whole number from 1 on"):
        driver.IndexScheduler(MODEL, workers=0)


def test_results_must_have_what_is_asked_for():
    scheduler = driver.IndexScheduler(MODEL, metric="m", cost="hours", workers=1)
    trials = [Fake("a")]
    controller = Controller(trials)
    first = started(scheduler, controller, trials)
    with pytest.raises(InvalidArgument, match="one has no 'hours'; it has training_iteration, m"):
        scheduler.on_trial_result(controller, first, {"training_iteration": 1, "m": 4.0})


def test_history_counts_what_was_trained_again(tmp_path: Path):
    rows = [(1, 4.0, 1.0), (2, 5.0, 1.0), (2, 5.0, 0.5), (3, float("nan"), 2.0)]
    text = "".join(
        f'{{"training_iteration": {s}, "m": {"NaN" if np.isnan(x) else x}, "c": {c}}}\n'
        for s, x, c in rows
    )
    (tmp_path / "result.json").write_text(text)
    trial = SimpleNamespace(
        has_reported_at_least_once=True, local_path=str(tmp_path), path="nowhere",
        storage=SimpleNamespace(storage_filesystem=__import__("pyarrow.fs").fs.LocalFileSystem()),
    )  # fmt: skip
    found = list(driver.history(trial, "m", "training_iteration", "c"))
    assert [(s, c) for s, _, c in found] == [(1, 1.0), (2, 1.0), (3, 2.5)]


def test_the_trial_of_highest_index_is_started_first():
    class Knowing(Chained):
        def start_indices(self, settings):
            return np.array([known["lr"] for known in settings])

    model = Knowing([0.5, 0.5], [[1, 0], [0, 1]], [4.0, 12.0], [1.0], [1])
    scheduler = driver.IndexScheduler(model, metric="m", workers=1)
    trials = [Fake("a"), Fake("b"), Fake("c")]
    for trial, rate in zip(trials, (0.1, 0.3, 0.2), strict=True):
        trial.config = {"lr": rate, "data": object()}
    controller = Controller(trials)
    for trial in trials:
        scheduler.on_trial_add(controller, trial)
    assert scheduler.choose_trial_to_run(controller) is trials[1]
    assert scheduler.race.runs[0].settings == {"lr": 0.3}


def test_a_wrong_object_as_model():
    with pytest.raises(InvalidArgument, match=r"the model of a run must be .* it is a dict"):
        driver.IndexScheduler({"price": 3})


def test_without_ray_it_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "weitzman.tune.ray")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r'pip install "weitzman\[ray\]"'):
        import weitzman.tune.ray  # noqa: F401
