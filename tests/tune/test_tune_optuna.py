"""Optuna studies as a race sees them: any storage and sampler, and crashes on the way."""

from __future__ import annotations

import importlib.util
import math
import runpy
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tuning_worlds import Chained, four_grades, slow_starters

import weitzman
from weitzman import tune
from weitzman.errors import InvalidArgument

optuna = pytest.importorskip("optuna", reason="OPTUNA IS NOT INSTALLED: its driver is not tested")
from optuna.trial import TrialState  # noqa: E402

from weitzman.tune import optuna as driver  # noqa: E402

MODEL = four_grades()
pytestmark = pytest.mark.usefixtures("quiet_optuna")
CURVES = slow_starters(MODEL)


def objective(trial, past: tune.Past) -> Iterator[tuple[float, float]]:
    """A trial that can be brought back."""
    rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
    trial.suggest_categorical("kind", ["wide", "deep"])
    assert past.step == 0 or rate == trial.params["rate"]
    for step, score, cost in MODEL.shown(CURVES[past.run]):
        if step > past.step:
            yield score, cost


def forgetful(trial) -> Iterator[tuple[float, float]]:
    """A trial that cannot."""
    yield from objective(trial, tune.Past(trial.user_attrs["weitzman:run"]))


def wanted(**options) -> tune.Result:
    """What the plain loop does with the same curves."""
    return tune.optimize(
        lambda run: iter([row[1:] for row in MODEL.shown(CURVES[run])]), list(range(12)), MODEL,
        **options,
    )  # fmt: skip


def shown(result: tune.Result) -> list[tuple]:
    return [(run.steps, run.scores, run.costs) for run in result.runs]


def memory(_: Path):
    return optuna.storages.InMemoryStorage()


def journal(folder: Path):
    backend = optuna.storages.journal.JournalFileBackend(str(folder / "optuna.log"))
    return optuna.storages.JournalStorage(backend)


def database(folder: Path):
    return optuna.storages.RDBStorage(f"sqlite:///{folder / 'optuna.db'}")


@pytest.mark.parametrize(
    ("storage", "sampler"),
    [(memory, "TPESampler"), (journal, "TPESampler"), (database, "RandomSampler")],
)
def test_any_storage_and_sampler(storage, sampler: str, tmp_path: Path):
    study = optuna.create_study(
        direction="maximize", storage=storage(tmp_path),
        sampler=getattr(optuna.samplers, sampler)(seed=1),
    )  # fmt: skip
    result = driver.optimize(study, objective, MODEL, n_trials=12)
    assert shown(result) == shown(wanted())
    trials = study.get_trials()
    assert len(trials) == len(result.runs)
    for trial, run in zip(trials, result.runs, strict=True):
        assert trial.intermediate_values == dict(zip(run.steps, run.scores, strict=True))
        assert trial.params == run.config
        assert trial.user_attrs["weitzman:costs"] == list(run.costs)
    assert study.best_trial.number == result.best_run
    assert study.best_value == result.best_score
    assert study.best_params == result.best_config
    assert study.user_attrs["weitzman:reason"] == result.reason


def test_a_budget_is_a_brake():
    study = optuna.create_study(direction="maximize")
    result = driver.optimize(study, objective, MODEL, n_trials=12, budget=1.0)
    assert result.reason == "Stop: the budget of 1 is spent."
    whole = wanted()
    assert 1.0 <= result.spent < whole.spent
    assert study.best_value == result.best_score
    waiting = [optuna.trial.TrialState.WAITING]
    assert study.get_trials(states=waiting)  # these were worth going on with
    more = driver.optimize(study, objective, MODEL, n_trials=12)
    assert more.spent > result.spent
    assert not study.get_trials(states=waiting)


def test_the_best_and_whole_runs_are_complete_and_the_others_pruned():
    study = optuna.create_study(direction="maximize")
    result = driver.optimize(study, objective, MODEL, n_trials=12)
    whole = {i for i, run in enumerate(result.runs) if run.steps[-1] == MODEL.rungs[-1]}
    for number, trial in enumerate(study.get_trials()):
        complete = number in whole | {result.best_run}
        assert trial.state == (TrialState.COMPLETE if complete else TrialState.PRUNED)
        if complete:
            assert trial.value == max(result.runs[number].scores)
    assert Counter(trial.state for trial in study.get_trials())[TrialState.PRUNED] > 3


def test_the_sampler_hears_of_trials_that_are_out_of_the_race():
    study = optuna.create_study(direction="maximize")
    finished = []

    def count(report: tune.Report) -> None:
        if report.event == "seen":
            states = (TrialState.PRUNED, TrialState.COMPLETE)
            finished.append(len(study.get_trials(deepcopy=False, states=states)))

    driver.optimize(study, objective, MODEL, n_trials=12, callback=count)
    assert finished[-1] > 0


def test_cut_short_anywhere_it_continues_where_it_stood(tmp_path: Path):
    reference = wanted()
    rows = sum(len(run.steps) for run in reference.runs)
    assert rows == 30
    for cut in range(1, rows + 1):
        store = memory(tmp_path) if cut != 15 else journal(tmp_path)
        study = optuna.create_study(study_name="s", direction="maximize", storage=store)
        count = [0]

        def die(report: tune.Report, cut=cut, count=count) -> None:
            count[0] += report.event == "seen"
            if count[0] == cut:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            driver.optimize(study, objective, MODEL, n_trials=12, callback=die)
        params = [trial.params for trial in study.get_trials()]
        store = store if cut != 15 else journal(tmp_path)
        again = optuna.load_study(study_name="s", storage=store)
        reports: list[tune.Report] = []
        result = driver.optimize(again, objective, MODEL, n_trials=12, callback=reports.append)
        assert shown(result) == shown(reference)
        assert sum(report.event == "seen" for report in reports) == rows - cut
        assert [trial.params for trial in again.get_trials()][: len(params)] == params
        assert again.best_trial.number == reference.best_run
        assert not again.get_trials(states=(TrialState.RUNNING,))
        once_more = driver.optimize(again, objective, MODEL, n_trials=12)
        assert (shown(once_more), once_more.spent) == (shown(result), result.spent)


def cut_short(study, start) -> None:
    """Stop in the middle of a move."""

    def die(report: tune.Report) -> None:
        if report.event == "seen" and report.step not in MODEL.rungs:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        driver.optimize(study, start, MODEL, n_trials=12, callback=die)


def test_trials_that_cannot_be_brought_back_are_pruned_or_trained_again():
    for lost in ("abandon", "replay"):
        study = optuna.create_study(direction="maximize")
        cut_short(study, forgetful)
        options = {"n_trials": 12, "on_missing_checkpoint": lost}
        if lost == "replay":
            result = driver.optimize(study, forgetful, MODEL, **options)
        else:
            with pytest.warns(UserWarning, match="was under way"):
                result = driver.optimize(study, forgetful, MODEL, **options)
        if lost == "replay":
            assert shown(result) == shown(wanted())
            repaid = [t.user_attrs.get("weitzman:repaid", 0.0) for t in study.get_trials()]
            assert sum(repaid) > 0
            assert result.spent == pytest.approx(wanted().spent + sum(repaid))
            again = driver.optimize(study, forgetful, MODEL, n_trials=12)
            assert again.spent == pytest.approx(result.spent)
        else:
            gone = [i for i, run in enumerate(result.runs) if run.over == "lost"]
            assert gone
            for i in gone:
                assert study.get_trials()[i].state == TrialState.PRUNED


def test_after_an_error_trials_that_cannot_be_brought_back_are_lost():
    """An error leaves the trials WAITING, unlike a kill."""
    study = optuna.create_study(direction="maximize")
    begun = 0

    def breaks(trial) -> Iterator[tuple[float, float]]:
        nonlocal begun
        begun += 1
        for step, row in enumerate(forgetful(trial)):
            if begun >= 3 and step:
                raise KeyError("in training")
            yield row

    with pytest.raises(KeyError):
        driver.optimize(study, breaks, MODEL, n_trials=5)
    assert any(trial.state.name == "WAITING" for trial in study.trials)
    with pytest.warns(UserWarning, match="takes no `past` to bring it back"):
        found = driver.optimize(study, forgetful, MODEL, n_trials=5)
    assert "lost" in [run.over for run in found.runs]
    assert study.best_value == found.best_score
    assert {trial.state.name for trial in study.trials} <= {"COMPLETE", "PRUNED", "FAIL"}


def test_failures():
    def failing(trial):
        yield 4.0, 0.25
        if trial.user_attrs["weitzman:run"] == 0:
            raise ValueError("nan in the gradients")
        yield math.nan, 0.25

    study = optuna.create_study(direction="maximize")
    with pytest.raises(ValueError, match="nan in the gradients"):
        driver.optimize(study, failing, MODEL, n_trials=2)
    study = optuna.create_study(direction="maximize")
    result = driver.optimize(study, failing, MODEL, n_trials=2, catch=(ValueError,))
    assert [run.over for run in result.runs] == ["failed", "left"]
    # the first of the two best has won, though it failed later
    assert [t.state for t in study.get_trials()] == [TrialState.COMPLETE, TrialState.PRUNED]
    failure = study.get_trials()[0].user_attrs["weitzman:failure"]
    assert failure == "ValueError: nan in the gradients"


def breaking(scores: list[float]):
    """The first score of each trial; the first two break off when they are resumed."""

    def objective(trial):
        run = trial.user_attrs["weitzman:run"]
        yield scores[run], 0.25
        if run < 2:
            raise ValueError
        yield from [(scores[run], 0.25)] * 8

    return objective


def test_the_best_is_complete_though_it_failed():
    study = optuna.create_study(direction="maximize")
    objective = breaking([4.0, 7.0, 4.0])
    result = driver.optimize(study, objective, MODEL, n_trials=3, catch=(ValueError,))
    assert [run.over for run in result.runs][:2] == ["failed", "failed"]
    states = [t.state for t in study.get_trials()]
    assert states[:2] == [TrialState.FAIL, TrialState.COMPLETE]
    assert study.best_value == result.best_score == 7.0


def test_the_best_is_complete_though_it_was_lost():
    study = optuna.create_study(direction="maximize")
    objective = breaking([4.0, 0.0, 0.0])
    with pytest.raises(ValueError):
        driver.optimize(study, objective, MODEL, n_trials=3)
    with pytest.warns(UserWarning, match="was under way"):
        result = driver.optimize(study, objective, MODEL, n_trials=3, catch=(ValueError,))
    assert result.runs[0].over == "lost"
    assert study.best_value == result.best_score == 4.0
    assert not study.get_trials(states=(TrialState.RUNNING,))


def test_a_winner_that_was_left_has_not_ended():
    """A later call learns from it as from a run that was cut off."""
    study = optuna.create_study(direction="maximize")
    first = driver.optimize(study, objective, MODEL, n_trials=12)
    assert first.best_step < MODEL.rungs[-1]
    again = driver.optimize(study, objective, MODEL, n_trials=12)
    assert study.get_trials()[first.best_run].state == TrialState.COMPLETE
    assert again.runs[first.best_run].over == "left"
    assert not again.curves.ended[first.best_run]

    def short(trial):
        yield 4.0, 0.25

    study = optuna.create_study(direction="maximize")
    for _ in range(2):
        result = driver.optimize(study, short, MODEL, n_trials=2)
        assert [run.over for run in result.runs] == ["ended", "ended"]


def test_threads():
    study = optuna.create_study(direction="maximize")
    result = driver.optimize(study, objective, MODEL, n_trials=12, workers=3)
    assert not study.get_trials(states=(TrialState.RUNNING,))
    assert study.best_value == result.best_score


def test_minimizing():
    model = Chained(
        MODEL.first, MODEL.then, [10 - x for x in MODEL.scores], MODEL.costs, MODEL.rungs,
        minimize=True,
    )  # fmt: skip

    def upside_down(trial, past):
        for score, cost in objective(trial, past):
            yield 10 - score, cost

    study = optuna.create_study(direction="minimize")
    result = driver.optimize(study, upside_down, model, n_trials=12)
    assert [run.steps for run in result.runs] == [run.steps for run in wanted().runs]
    assert study.best_value == 10 - wanted().best_score


def test_what_must_agree():
    with pytest.raises(InvalidArgument, match="the study minimizes and the model does not"):
        driver.optimize(optuna.create_study(), objective, MODEL)
    with pytest.raises(InvalidArgument, match="must have one objective, but it has 2"):
        driver.optimize(optuna.create_study(directions=["maximize"] * 2), objective, MODEL)


# -- stopping only -----------------------------------------------------------------------------


class Twice(Chained):
    """A run of two steps: 0 or 8, then 4 or 12; each costs 1."""

    def __init__(self) -> None:
        half = [0.5, 0.5]
        super().__init__(half, [half, half], [0.0, 8.0], [1.0, 1.0], [1, 2])

    def lines(self, n: int = 1):
        law = [[0.5, 0.5], [0.5, 0.5]]
        return weitzman.line([[0.5, 0.5], law], count=n, rewards=[[0, 8], [4, 12]], cost=1)

    def worth(self, score: float) -> float:
        return score


def test_the_index_of_a_whole_run_is_its_reservation_value():
    """4, 8 or 12 with 1/4, 1/4, 1/2, at a cost of 2: from 8 on another one does not pay."""
    assert driver.StopWhenNotWorthIt(Twice()).index == 8


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_index_of_a_whole_run_by_enumeration(n: int):
    model = Chained(
        [0.5, 0.25, 0.25], [[0.5, 0.25, 0.25], [0, 0.5, 0.5], [0.25, 0, 0.75]], [1.0, 0.0, 2.5],
        [0.1, 0.2, 0.05][:n], [1, 2, 4][:n],
    )  # fmt: skip
    model.lines = lambda n=1: model.line
    law: dict[float, float] = {}
    for path in np.ndindex(*[3] * n):
        chance, row = 1.0, model.first
        for state in path:
            chance, row = chance * row[state], model.then[state]
        top = max(model.scores[state] for state in path)
        law[top] = law.get(top, 0.0) + chance
    index = driver.StopWhenNotWorthIt(model).index
    gain = sum(p * max(x - index, 0) for x, p in law.items())
    assert gain == pytest.approx(sum(model.costs))


def test_a_plain_study_stops():
    values = iter([4.0, 4.0, 8.0, 12.0])
    study = optuna.create_study(direction="maximize")
    study.optimize(lambda trial: next(values), callbacks=[driver.StopWhenNotWorthIt(Twice())])
    assert [trial.value for trial in study.get_trials()] == [4, 4, 8]
    assert study.user_attrs["weitzman:reason"] == (
        "Stop: the index of a further trial, 8, is not above the best so far, worth 8."
    )


def test_without_optuna_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=r'pip install "weitzman\[optuna\]"'):
        driver.optimize(None, objective, MODEL)


# -- OptunaHub ---------------------------------------------------------------------------------

PACKAGE = Path(__file__).parents[2] / "optunahub" / "package" / "callbacks" / "weitzman"


def loaded(path: Path, name: str):
    """A module from a file, as OptunaHub loads it."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_package_for_optunahub_loads_by_its_path(monkeypatch, capsys):
    module = loaded(PACKAGE / "__init__.py", "hub")
    assert module.optimize is driver.optimize
    assert module.StopWhenNotWorthIt is driver.StopWhenNotWorthIt
    load = {"load_module": lambda package: module if package == "callbacks/weitzman" else None}
    monkeypatch.setitem(sys.modules, "optunahub", SimpleNamespace(**load))
    runpy.run_path(str(PACKAGE / "example.py"), run_name="__main__")
    assert capsys.readouterr().out.startswith("Best score 0.9")


def test_a_grid_that_is_used_up():
    """The sampler then calls ``study.stop``, which Optuna refuses outside its own loop."""
    grid = {"kind": ["wide", "deep"], "depth": [1, 2, 3]}

    def on_the_grid(trial, past):
        trial.suggest_categorical("kind", grid["kind"])
        trial.suggest_categorical("depth", grid["depth"])
        yield from [(0.0, 0.25), (0.0, 0.25)]

    sampler = optuna.samplers.GridSampler(grid, seed=0)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    driver.optimize(study, on_the_grid, MODEL, n_trials=6)
    assert len({tuple(trial.params.items()) for trial in study.get_trials()}) == 6
    assert not study.get_trials(states=(TrialState.RUNNING,))
    assert sampler.is_exhausted(study)


HOLD = """
import sys, optuna
sys.path[:0] = sys.argv[2:]
from tuning_worlds import four_grades
from weitzman.tune import optuna as driver

def objective(trial):
    trial.suggest_float("x", 0, 1)
    print("begun", flush=True)
    sys.stdin.readline()
    yield 1.0, 0.1

study = optuna.load_study(study_name="shared", storage=sys.argv[1])
driver.optimize(study, objective, four_grades(), n_trials=3)
"""


def test_a_second_process_takes_part_though_the_first_is_stopped(tmp_path: Path):
    """A stopped process keeps its trial; once it is killed, a copy takes the place of the trial."""
    url = f"sqlite:///{tmp_path / 'optuna.db'}"
    study = optuna.create_study(direction="maximize", storage=url, study_name="shared")
    first = subprocess.Popen(
        [sys.executable, "-c", HOLD, url, *sys.path], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert first.stdout is not None
    assert first.stdout.readline() == "begun\n"
    first.send_signal(signal.SIGSTOP)
    states = []

    def kill(report: tune.Report) -> None:
        if report.started == 4 and first.returncode is None:
            states.append(study.get_trials()[0].state)
            first.kill()
            first.communicate()

    result = driver.optimize(study, objective, MODEL, n_trials=12, callback=kill)
    assert states == [TrialState.RUNNING]
    trials = study.get_trials()
    assert trials[0].state == TrialState.FAIL
    assert [t.user_attrs.get("weitzman:continues") for t in trials].count(0) == 1
    runs = [trial.user_attrs["weitzman:run"] for trial in trials[1:]]
    assert sorted(runs) == list(range(len(result.runs)))


def test_a_study_is_resumed_with_fewer_trials_than_were_started():
    study = optuna.create_study(direction="maximize")
    whole = driver.optimize(study, objective, MODEL, n_trials=12)
    again = driver.optimize(study, objective, MODEL, n_trials=1)
    assert len(study.get_trials()) == len(whole.runs) > 1
    assert again.best_score == whole.best_score


def test_a_wrong_object_as_model():
    study = optuna.create_study(direction="maximize")
    for make in (driver.StopWhenNotWorthIt, lambda model: driver.optimize(study, objective, model)):
        with pytest.raises(InvalidArgument, match=r"the model of a run must be .* it is a dict"):
            make({"price": 3})
    assert not study.trials
