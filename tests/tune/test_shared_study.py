"""Several processes on one study of Optuna, through its storage."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from test_tune_optuna import CURVES, MODEL, database, journal, objective

from weitzman import learn, tune
from weitzman._common.disk import this_process
from weitzman.tune.run_store import TakenOver
from weitzman.tune.runs import Row

optuna = pytest.importorskip("optuna", reason="OPTUNA IS NOT INSTALLED: sharing is not tested")
from optuna.trial import TrialState  # noqa: E402

from weitzman.tune import optuna as driver  # noqa: E402
from weitzman.tune import optuna_store  # noqa: E402
from weitzman.tune.optuna_store import StudyStore  # noqa: E402

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
result = driver.optimize(study, objective, world.MODEL, n_trials=12, callback=told)
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
    copied = {trial.user_attrs.get("weitzman:continues") for trial in trials}
    assert all(trial.state == TrialState.FAIL for trial in trials if trial.number in copied)
    trials = [trial for trial in trials if trial.number not in copied]
    # of two processes that start the last trial, or copy a trial, at once, the later one fails
    later = [t for t in trials if t.state == TrialState.FAIL]
    assert all(not t.intermediate_values or "weitzman:continues" in t.user_attrs for t in later)
    trials = [t for t in trials if t not in later]
    assert {trial.state for trial in trials} <= {TrialState.COMPLETE, TrialState.PRUNED}
    runs = [trial.user_attrs["weitzman:run"] for trial in trials]
    assert sorted(runs) == list(range(len(runs)))
    for trial, run in zip(trials, runs, strict=True):
        rows = list(MODEL.shown(CURVES[run]))[: len(trial.intermediate_values)]
        assert trial.intermediate_values == {step: score for step, score, _ in rows}
        assert trial.user_attrs["weitzman:costs"] == [cost for *_, cost in rows]
    costs = [x for trial in trials for x in trial.user_attrs["weitzman:costs"]]
    assert max(spent for *_, spent in told) == pytest.approx(sum(costs))
    for best_score, best_run, count, _ in told:
        # a process may end while another one makes a last move that it chose knowing less
        assert best_score <= study.best_value
        assert count <= len(trials)
        if best_score == study.best_value:
            assert study.best_trial.user_attrs["weitzman:run"] == best_run


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


class Stopped:
    """A storage whose owner is stopped before or after one call, while others do something."""

    def __init__(self, storage: Any, name: str, do: Any, *, after: bool = False) -> None:
        self._storage, self._name, self._do, self._after = storage, name, do, after

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._storage, name)
        if name != self._name or self._do is None:
            return found

        def call(*args: Any, **options: Any) -> Any:
            do, self._do = self._do, None
            if not self._after and do is not None:
                do()
            result = found(*args, **options)
            if self._after and do is not None:
                do()
            return result

        return call


def stores(folder: Path, count: int, **options: Any) -> list[StudyStore]:
    """Several processes' views of one study with one waiting trial that has shown something."""
    name = f"study {len(list(folder.iterdir()))}"
    optuna.create_study(direction="maximize", storage=journal(folder), study_name=name)
    found = []
    for _ in range(count):
        study = optuna.load_study(study_name=name, storage=journal(folder))
        candidates = [{"x": float(i)} for i in range(3)]
        race = tune.Race(MODEL, candidates=candidates)
        found.append(StudyStore(study, race, optuna, candidates=candidates, **options))
    first = found[0]
    assert first.begin(0) == 0
    first.config(0).suggest_float("x", 0, 5)
    first.seen(0, Row(1, 4.0, 0.25, False))
    first.catch_up()
    return found


def owners(one: list[StudyStore]) -> list[int]:
    """How many of the stores may write about run 0."""
    able = []
    for number, store in enumerate(one):
        if 0 in store._mine:
            try:
                store.seen(0, Row(5, 4.0, 0.25, False))
                able.append(number)
            except TakenOver:
                pass
    return able


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("what", ["set_trial_system_attr", "set_trial_state_values"])
def test_stopped_while_it_takes_a_trial(what: str, after: bool, tmp_path: Path):
    """Of two processes that want a waiting trial, one gets it, wherever the other is stopped."""
    first, one, two = made = stores(tmp_path, 3)
    first.waits(0)
    first.turn(lambda: None)
    one.catch_up()
    two.catch_up()
    took = []
    one._storage = Stopped(one._storage, what, lambda: took.append(two.take(0, 3)), after=after)
    took.append(one.take(0, 3))
    assert sorted(took) == [False, True]
    assert len(owners(made[1:])) == 1


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("what", ["create_new_trial", "set_trial_state_values"])
def test_stopped_while_it_takes_over_from_one_that_is_gone(
    what: str, after: bool, tmp_path: Path, monkeypatch
):
    """The one that was taken for gone, and all but one of those that take over, cannot write."""
    first, one, two = made = stores(tmp_path, 3)
    gone = first.me
    for store in (one, two):
        monkeypatch.setattr(store._beats, "is_gone", lambda name, *rest: name == gone)
        store.catch_up()
    took = []
    one._storage = Stopped(one._storage, what, lambda: took.append(two.take(0, 3)), after=after)
    took.append(one.take(0, 3))
    two.catch_up()
    one.catch_up()
    assert owners(made) in ([1], [2])
    with pytest.raises(TakenOver):
        first.seen(0, Row(2, 4.0, 0.25, False))
    for store in (one, two):
        assert len(store._race.runs) == 1
        assert store._race.runs[0].steps[0] == 1
    trials = one._study.get_trials()
    assert sum(trial.state == TrialState.RUNNING for trial in trials) == 1
    assert len(list(learn.Curves.from_optuna(one._study).runs)) == 1


@pytest.mark.parametrize("after", [False, True])
def test_stopped_while_it_starts_a_candidate(after: bool, tmp_path: Path):
    """Of two trials that start the same candidate, the later one fails."""
    _, one, two = stores(tmp_path, 3)
    one.catch_up()
    two.catch_up()
    begun = []
    one._storage = Stopped(
        one._storage, "create_new_trial", lambda: begun.append(two.begin(1)), after=after
    )
    begun.append(one.begin(1))
    assert begun == ([None, 1] if after else [1, None])
    for store in (one, two):
        store.catch_up()
        assert len(store._race.runs) == 2
    numbers = [t.user_attrs["weitzman:candidate"] for t in one._study.get_trials()]
    assert sorted(numbers) == [0, 1, 1]


def test_processes_elsewhere_are_known_by_their_heartbeat(tmp_path: Path, monkeypatch):
    """One that is silent for too long is gone; one that beats is not."""
    first, other = stores(tmp_path, 2)
    first._process = this_process()._replace(host="elsewhere")
    first._say_holder(first._id(0), 3)
    trial = other._study.get_trials()[0]
    monkeypatch.setattr(optuna_store, "LEASE", 0.05)
    assert other._holders(trial) == {first.me: 3}
    time.sleep(0.1)
    number = first._study._study_id
    first._storage.set_study_system_attr(number, f"{optuna_store.BEAT}{first.me}", 4)
    assert other._holders(trial)
    time.sleep(0.1)
    assert not other._holders(trial)


def test_without_checkpoints_each_process_continues_with_its_own_trials(tmp_path: Path):
    first, other = stores(tmp_path, 2, movable=False)
    first.waits(0)
    first.turn(lambda: None)
    other.catch_up()
    assert not other.take(0, 3)
    assert not other.held(0)  # so that nobody waits for it
    assert first.take(0, 3)
    first.leave()
    other.catch_up()
    assert other.take(0, 3)


def test_candidates_are_started_once(tmp_path: Path):
    candidates = [{"rate": 0.1 / (i + 1), "kind": "deep"} for i in range(5)]
    study = optuna.create_study(direction="maximize", storage=database(tmp_path))
    found = driver.optimize(study, objective, MODEL, candidates=candidates)
    assert found.runs
    numbers = [trial.user_attrs["weitzman:candidate"] for trial in study.get_trials()]
    assert len(set(numbers)) == len(numbers)
    assert [run.config for run in found.runs] == [candidates[i] for i in numbers]
    assert isinstance(found, tune.Result)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs POSIX signals")
@pytest.mark.parametrize("kind", ["journal", "optuna"])
def test_a_suspended_process_loses_nothing_and_trains_nothing_twice(kind: str, tmp_path: Path):
    """A few of the pauses of tests/campaigns/pause_tuners.py."""
    script = Path(__file__).parents[1] / "campaigns" / "pause_tuners.py"
    done = subprocess.run(
        [sys.executable, script, tmp_path, kind, "3", "5"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["wrong"], found["pauses"]) == ([], 3)
