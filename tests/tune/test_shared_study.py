"""Several processes on one study of Optuna, through its storage."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from test_tune_optuna import CURVES, MODEL, database, forgetful, journal, objective, shown

from weitzman import tune
from weitzman._common.system import Process, this_process
from weitzman.errors import InvalidArgument, JournalError

optuna = pytest.importorskip("optuna", reason="OPTUNA IS NOT INSTALLED: sharing is not tested")
from optuna.trial import TrialState  # noqa: E402

from weitzman.tune import optuna as driver  # noqa: E402
from weitzman.tune import storage_turns  # noqa: E402
from weitzman.tune.optuna_book import HOLDER  # noqa: E402

PROCESS = """
import json, os, sys, time
from pathlib import Path
sys.path[:0] = sys.argv[4:]
import optuna
import test_tune_optuna as world
from weitzman.tune import optuna as driver

optuna.logging.set_verbosity(optuna.logging.ERROR)
log = os.open(sys.argv[3], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def note(what, run, step):
    os.write(log, f"{what} {run} {step} {os.getpid()}\\n".encode())

def objective(trial, past):
    for step, row in enumerate(world.objective(trial, past), past.step + 1):
        note("trained", past.run, step)
        time.sleep(0.05)
        yield row

def told(report):
    if report.event == "seen":
        note("written", report.run, report.step)

study = optuna.load_study(
    study_name="one", storage=getattr(world, sys.argv[1])(Path(sys.argv[2])),
    sampler=optuna.samplers.TPESampler(seed=os.getpid()),
)
print("ready", flush=True)
sys.stdin.readline()
result = driver.optimize(study, objective, world.MODEL, n_trials=12, share=True, callback=told)
print(json.dumps([result.best_score, result.best_run, len(result.runs), result.spent]))
"""


@pytest.fixture(autouse=True)
def _quiet():
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(before)


def processes(count: int, storage: str, folder: Path) -> list[subprocess.Popen[str]]:
    """Processes that work on the same study."""
    made = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, storage, folder, folder / "log", *sys.path],
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for _ in range(count)
    ]  # fmt: skip
    for process in made:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
    for process in made:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return made


def lines(folder: Path) -> list[tuple[str, int, int, int]]:
    """What was trained and what was written, in order."""
    path = folder / "log"
    text = path.read_text() if path.exists() else ""
    split = [line.split() for line in text.splitlines()]
    return [(what, int(run), int(step), int(pid)) for what, run, step, pid in split]


def trained_again(folder: Path) -> list[tuple[int, int]]:
    """Steps that were trained although they were written down before."""
    written, again = set(), []
    for what, run, step, _ in lines(folder):
        if what == "written":
            written.add((run, step))
        elif (run, step) in written:
            again.append((run, step))
    return again


def check(study: Any, told: list[list[float]]) -> None:
    """The study is whole: every trial is over, each run is one trial, the best is complete."""
    trials = study.get_trials()
    assert {trial.state for trial in trials} <= {TrialState.COMPLETE, TrialState.PRUNED}
    runs = [trial.user_attrs["weitzman:run"] for trial in trials]
    assert sorted(runs) == list(range(len(runs)))
    for trial, run in zip(trials, runs, strict=True):
        rows = list(MODEL.shown(CURVES[run]))[: len(trial.intermediate_values)]
        assert trial.intermediate_values == {step: score for step, score, _ in rows}
        assert trial.user_attrs["weitzman:costs"] == [cost for *_, cost in rows]
    for best_score, best_run, count, spent in told:
        assert (best_score, count) == (study.best_value, len(trials))
        assert study.best_trial.user_attrs["weitzman:run"] == best_run
        costs = [x for trial in trials for x in trial.user_attrs["weitzman:costs"]]
        assert spent == pytest.approx(sum(costs))


def results(made: list[subprocess.Popen[str]]) -> list[list[float]]:
    found = []
    for process in made:
        out, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
        found.append(json.loads(out))
    return found


@pytest.mark.parametrize("storage", ["database", "journal"])
def test_three_processes_share_a_study_and_one_is_killed(storage: str, tmp_path: Path):
    """Nothing that was written is trained again; the others go on with what the dead one had."""
    make = {"database": database, "journal": journal}[storage]
    optuna.create_study(direction="maximize", storage=make(tmp_path), study_name="one")
    three = processes(3, storage, tmp_path)
    victim = three[0].pid
    end = time.monotonic() + 60
    while sum(pid == victim for *_, pid in lines(tmp_path)) < 3 and time.monotonic() < end:
        time.sleep(0.005)
    os.kill(victim, signal.SIGKILL)
    three[0].communicate()
    told = results(three[1:])
    assert trained_again(tmp_path) == []
    steps = Counter(line[1:3] for line in lines(tmp_path) if line[0] == "trained")
    assert steps.total() - len(steps) <= 1  # the step that the dead process was at
    assert len({pid for *_, pid in lines(tmp_path)}) == 3
    study = optuna.load_study(study_name="one", storage=make(tmp_path))
    check(study, told)

    def never(trial, past):
        raise AssertionError("all is known")

    again = driver.optimize(study, never, MODEL, n_trials=12)
    assert [again.best_score, again.best_run, len(again.runs)] == told[0][:3]
    later = driver.optimize(study, never, MODEL, n_trials=12, share=True)
    assert shown(later) == shown(again)


def test_all_are_killed_and_others_take_it_up(tmp_path: Path):
    optuna.create_study(direction="maximize", storage=database(tmp_path), study_name="one")
    both = processes(2, "database", tmp_path)
    end = time.monotonic() + 60
    while len(lines(tmp_path)) < 8 and time.monotonic() < end:
        time.sleep(0.005)
    for process in both:
        process.kill()
        process.communicate()
    told = results(processes(2, "database", tmp_path))
    assert trained_again(tmp_path) == []
    check(optuna.load_study(study_name="one", storage=database(tmp_path)), told)


def test_one_process_that_shares_does_what_it_does_alone(tmp_path: Path):
    sampler = optuna.samplers.RandomSampler
    found = []
    for share in (False, True):
        study = optuna.create_study(
            direction="maximize", storage=database(tmp_path), sampler=sampler(seed=1)
        )
        result = driver.optimize(study, objective, MODEL, n_trials=12, share=share)
        states = [(t.state, t.value, t.params, t.user_attrs) for t in study.get_trials()]
        found.append((result, states, study.user_attrs))
    assert found[0] == found[1] or found[0][:2] == found[1][:2]


@pytest.mark.parametrize("share", [False, True])
def test_a_study_is_shared_by_all_or_by_none(share: bool, tmp_path: Path):
    """Who comes in another way is refused, and nothing is changed."""
    study = optuna.create_study(direction="maximize", storage=database(tmp_path))

    def nested(trial, past):
        trial.suggest_float("x", 0, 1)
        before = len(study.get_trials())
        with pytest.raises(JournalError, match=rf"process {os.getpid()} on .*`share=True`"):
            driver.optimize(study, objective, MODEL, n_trials=3, share=not share)
        assert len(study.get_trials()) == before
        yield 10.0, 0.1

    found = driver.optimize(study, nested, MODEL, n_trials=1, share=share)
    assert found.best_score == 10
    again = driver.optimize(study, objective, MODEL, n_trials=1, share=not share)
    assert again.best_score == 10


def test_a_process_that_was_taken_for_gone_does_no_harm(tmp_path: Path, monkeypatch):
    """What it shows of a trial that another has taken over does not count."""
    storage = database(tmp_path)
    study = optuna.create_study(direction="maximize", storage=storage, study_name="one")
    begun, go_on, found = threading.Event(), threading.Event(), []

    def slow(trial, past):
        for row in objective(trial, past):
            begun.set()
            assert go_on.wait(60)
            yield row

    def first():
        found.append(driver.optimize(study, slow, MODEL, n_trials=12, share=True))

    thread = threading.Thread(target=first)
    thread.start()
    assert begun.wait(60)
    (key,) = (k for k in storage.get_study_system_attrs(study._study_id) if ":worker:" in k)
    storage.set_study_system_attr(study._study_id, key, None)
    other = optuna.load_study(study_name="one", storage=database(tmp_path))
    whole = driver.optimize(other, objective, MODEL, n_trials=12, share=True)
    go_on.set()
    thread.join(60)
    assert shown(found[0]) == shown(whole)
    check(study, [[whole.best_score, whole.best_run, len(whole.runs), whole.spent]])


def test_processes_elsewhere_are_known_by_their_heartbeat(tmp_path: Path, monkeypatch):
    """One that is silent for too long is gone; one that beats is not."""
    study = optuna.create_study(storage=database(tmp_path))
    storage, number = study._storage, study._study_id
    far = [list(this_process()._replace(host="elsewhere")), 1, False]
    storage.set_study_system_attr(number, "weitzman:worker:far", far)
    storage.set_study_system_attr(number, "weitzman:beat:far", 3)
    turns = storage_turns.StorageTurns(study)
    assert turns.others() == {"far": Process(*far[0])}
    monkeypatch.setattr(storage_turns, "LEASE", 0.05)
    time.sleep(0.1)
    storage.set_study_system_attr(number, "weitzman:beat:far", 4)
    assert turns.others()
    time.sleep(0.1)
    assert not turns.others()
    assert turns.take(lambda: 5, last=True) == 5  # the number of the one that is gone is skipped
    assert storage_turns.living(study) == [Process(*far[0])]


def test_turns_exclude_each_other(tmp_path: Path):
    study = optuna.create_study(storage=journal(tmp_path))
    inside, most, count = [], [], 20

    def visit():
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.001)
        inside.pop()

    def work():
        turns = storage_turns.StorageTurns(study)
        for _ in range(count):
            turns.take(visit)
        turns.leave()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * (4 * count)
    assert not storage_turns.living(study)


def test_what_sharing_needs(tmp_path: Path):
    study = optuna.create_study(direction="maximize")
    with pytest.raises(InvalidArgument, match="through its storage, but this study is in memory"):
        driver.optimize(study, objective, MODEL, share=True)
    study = optuna.create_study(direction="maximize", storage=database(tmp_path))
    with pytest.raises(InvalidArgument, match=r"must take a parameter `past`"):
        driver.optimize(study, forgetful, MODEL, share=True)
    assert not study.get_trials()
    found = driver.optimize(study, forgetful, MODEL, n_trials=3, share=True, lost="replay")
    assert found.best_score is not None
    assert all(HOLDER in trial.system_attrs for trial in study.get_trials())


def test_candidates_are_started_once(tmp_path: Path):
    candidates = [{"rate": 0.1 / (i + 1), "kind": "deep"} for i in range(5)]
    study = optuna.create_study(direction="maximize", storage=database(tmp_path))
    found = driver.optimize(study, objective, MODEL, candidates=candidates, share=True)
    assert found.runs
    numbers = [trial.user_attrs["weitzman:candidate"] for trial in study.get_trials()]
    assert len(set(numbers)) == len(numbers)
    assert [run.config for run in found.runs] == [candidates[i] for i in numbers]
    assert isinstance(found, tune.Result)
