"""Sampler, pruner and terminator in one, and searches of a study among candidates."""

from __future__ import annotations

import pickle
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tuning_worlds import four_grades

from weitzman import learn, tune
from weitzman.errors import InvalidArgument

optuna = pytest.importorskip("optuna", reason="OPTUNA IS NOT INSTALLED: its sampler is not tested")
from optuna.trial import TrialState  # noqa: E402

from weitzman.tune import optuna as driver  # noqa: E402
from weitzman.tune.optuna_sampler import IndexSampler  # noqa: E402

HUB = Path(__file__).parents[2] / "optunahub" / "package"
STEPS = 9
MODEL = four_grades()
pytestmark = pytest.mark.usefixtures("quiet_optuna")


def curve(rate: float) -> list[float]:
    """The best rate is 0.1; what a run will be shows early."""
    top = 0.9 - 0.2 * abs(np.log10(rate) + 1)
    return [top * (1 - 0.5**step) for step in range(1, STEPS + 1)]


def logged(runs: int = 40, *, minimize: bool = False) -> learn.Curves:
    rates = 10 ** np.random.default_rng(3).uniform(-4, 0, runs)
    sign = -1 if minimize else 1
    rows = [
        {"run": run, "step": step, "score": sign * score, "cost": 1.0, "rate": rate}
        for run, rate in enumerate(rates)
        for step, score in enumerate(curve(rate), 1)
    ]
    return learn.Curves.read(rows, settings=["rate"], ended=True, minimize=minimize)


def objective(trial) -> float:
    score = 0.0
    for step, score in enumerate(curve(trial.suggest_float("rate", 1e-4, 1.0, log=True)), 1):
        trial.report(score, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return score


def study_of(policy: IndexSampler, direction: str = "maximize"):
    return optuna.create_study(direction=direction, sampler=policy, pruner=policy)


def test_it_proposes_prunes_and_stops():
    policy = IndexSampler(logged(), full_run_cost=0.01, seed=0)
    study = study_of(policy)
    study.optimize(objective, n_trials=60)
    assert len(study.trials) < 60
    assert study.user_attrs["weitzman:reason"].startswith("Stop: the index of a further trial")
    assert study.best_value > 0.85
    later = [abs(np.log10(trial.params["rate"]) + 1) for trial in study.trials[1:]]
    assert np.mean(later) < 0.5  # at random it is 1.25
    assert policy.race is not None
    assert policy.race.spent == sum(len(t.intermediate_values) for t in study.trials)
    assert policy.race.best_score == max(max(t.intermediate_values.values()) for t in study.trials)


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_from_nothing_it_learns_and_stops_also_with_threads(n_jobs: int):
    """The first trials are compared with each other; then a model is learned, and it stops."""

    def objective(trial):
        x, score = trial.suggest_float("x", 0, 1), 0.0
        for step in range(1, 10):
            score = (1 - (x - 0.3) ** 2) * (1 - 0.5**step)
            trial.report(score, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return score

    policy = IndexSampler(full_run_cost=0.02, seed=0)
    study = optuna.create_study(direction="maximize", sampler=policy, pruner=policy)
    study.optimize(objective, n_trials=100, n_jobs=n_jobs)
    assert 8 <= len(study.trials) < 60
    assert study.user_attrs["weitzman:reason"].startswith("Stop: the index of a further trial")
    states = {trial.state for trial in study.trials}
    assert states == {optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED}
    assert len(policy.race.runs) == len(study.trials)
    again = pickle.loads(pickle.dumps(policy))
    assert again.race.best_score == policy.race.best_score


def test_the_proposal_is_the_candidate_of_highest_index():
    """Against all candidates that are drawn, one index at a time."""
    policy = IndexSampler(logged(), full_run_cost=0.01, seed=5)
    study = study_of(policy)
    space = {"rate": optuna.distributions.FloatDistribution(1e-4, 1.0, log=True)}
    found = policy.sample_relative(study, None, space)
    again = optuna.samplers.RandomSampler(seed=5)
    drawn = [again.sample_independent(study, None, "rate", space["rate"]) for _ in range(200)]
    model = learn.fit(logged(), full_run_cost=0.01)
    index = [model.start_indices([{"rate": x}])[0] for x in drawn]
    assert max(index) > min(index)
    assert found == {"rate": drawn[int(np.argmax(index))]}


def test_a_trial_is_pruned_when_a_new_one_or_none_is_better():
    policy = IndexSampler(MODEL, seed=0, cost=0.25)
    study = study_of(policy)
    trial = study.ask()
    rung = MODEL.rungs[0]
    pruned = {}
    for score in sorted(MODEL.scores, reverse=True):
        trial = study.ask()
        trial.report(score, rung)
        pruned[score] = trial.should_prune()
        index = MODEL.next_index([rung], [score])
        best = max(MODEL.worth(x) for x in pruned)
        leads = next(iter(pruned)) == score or MODEL.worth(score) > max(
            MODEL.worth(x) for x in pruned if x != score
        )
        out = index < MODEL.fresh_index or index <= best
        assert pruned[score] == (out and not leads)
    assert set(pruned.values()) == {False, True}
    study.tell(trial, state=TrialState.PRUNED)  # outside of `study.optimize`: nothing to stop


def test_objectives_that_report_nothing_and_studies_that_minimize():
    policy = IndexSampler(price=5.0, seed=0)
    study = study_of(policy, "minimize")
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=30)
    assert len(study.trials) < 30
    assert policy.race is not None
    assert policy.race.best_score == study.best_value
    assert policy.race.spent == len(study.trials)


def test_costs_may_depend_on_the_parameters_or_be_noted():
    policy = IndexSampler(price=1.0, seed=0, cost=lambda params: 10 * params["rate"])
    study = study_of(policy)

    def two(trial):
        rate = trial.suggest_float("rate", 0.1, 1.0)
        if trial.number:
            trial.set_user_attr("weitzman:costs", [0.5, 0.25])
        trial.report(rate, 1)
        trial.report(rate, 2)
        return rate

    study.optimize(two, n_trials=2)
    assert policy.race is not None
    assert policy.race.spent == pytest.approx(20 * study.trials[0].params["rate"] + 0.75)


def test_what_a_sampler_cannot_be_made_of():
    with pytest.raises(InvalidArgument, match="the model of a run must be"):
        IndexSampler(object())
    with pytest.raises(InvalidArgument, match="the price of a score must be stated"):
        IndexSampler()
    study = study_of(IndexSampler(logged(), full_run_cost=0.01), "minimize")
    with pytest.raises(InvalidArgument, match="the model maximizes"):
        study.optimize(objective, n_trials=1)


# -- candidates --------------------------------------------------------------------------------


def stepwise(trial):
    for score in curve(trial.suggest_float("rate", 1e-4, 1.0, log=True)):
        yield score, 1.0


SPACE = {"rate": (1e-4, 1.0, "log")}


def test_the_search_chooses_among_candidates_as_the_plain_loop_does():
    model = learn.fit(logged(), full_run_cost=0.01)
    study = optuna.create_study(direction="maximize")
    result = driver.optimize(study, stepwise, model, candidates=SPACE)
    wanted = tune.optimize(
        lambda config: iter([(x, 1.0) for x in curve(config["rate"])]), SPACE, model
    )
    assert [run.steps for run in result.runs] == [run.steps for run in wanted.runs]
    assert [run.config for run in result.runs] == [run.config for run in wanted.runs]
    assert not study.get_trials(states=(TrialState.RUNNING, TrialState.WAITING))


def test_a_search_among_candidates_goes_on_where_it_stood():
    model = learn.fit(logged(), full_run_cost=0.01)
    whole = driver.optimize(
        optuna.create_study(direction="maximize"), stepwise, model, candidates=SPACE
    )
    study = optuna.create_study(direction="maximize")
    first = driver.optimize(study, stepwise, model, candidates=SPACE, budget=1.0)
    assert len(first.runs) < len(whole.runs) or first.spent < whole.spent
    study.enqueue_trial({"rate": 0.5}, user_attrs={"weitzman:candidate": 3})  # as after a crash
    again = driver.optimize(study, stepwise, model, candidates=SPACE, lost="replay")
    assert again.best_score == pytest.approx(whole.best_score, abs=0.001)
    assert again.runs[0].config == first.runs[0].config == whole.runs[0].config
    assert not study.get_trials(states=(TrialState.RUNNING, TrialState.WAITING))
    with pytest.raises(InvalidArgument, match="which is not candidate"):
        driver.optimize(study, stepwise, model, candidates=tune.draw(SPACE, seed=1))
    with pytest.raises(InvalidArgument, match="which is no candidate"):
        driver.optimize(study, stepwise, model, candidates=[])


def test_candidates_stand_in_nobodys_queue():
    model = learn.fit(logged(), full_run_cost=0.01)
    study = optuna.create_study(direction="maximize")
    study.enqueue_trial({"rate": 0.5})
    with pytest.raises(InvalidArgument, match="trial 0 is WAITING"):
        driver.optimize(study, stepwise, model, candidates=SPACE)
    assert len(study.trials) == 1


def test_no_more_trials_than_asked_for():
    study = optuna.create_study(direction="maximize")
    model = learn.fit(logged(), full_run_cost=1e-5)
    driver.optimize(study, stepwise, model, candidates=SPACE, n_trials=2)
    assert len(study.trials) == 2


# -- OptunaHub ---------------------------------------------------------------------------------


def test_optunahub_loads_the_package():
    optunahub = pytest.importorskip("optunahub")
    if not hasattr(optunahub, "load_local_module"):  # the folder of the packages, not the library
        pytest.skip("optunahub is not installed")
    module = optunahub.load_local_module("samplers/weitzman", registry_root=str(HUB))
    assert module.IndexSampler is IndexSampler
    assert optunahub.load_local_module("callbacks/weitzman", registry_root=str(HUB))


def test_the_example_of_the_package_runs(monkeypatch, capsys):
    hub = {"load_module": lambda package: SimpleNamespace(IndexSampler=IndexSampler)}
    monkeypatch.setitem(sys.modules, "optunahub", SimpleNamespace(**hub))
    runpy.run_path(str(HUB / "samplers" / "weitzman" / "example.py"), run_name="__main__")
    assert capsys.readouterr().out.startswith("Best score 0.")


@pytest.mark.parametrize("package", ["samplers", "callbacks"])
def test_the_packages_are_laid_out_as_optunahub_asks(package: str):
    folder = HUB / package / "weitzman"
    assert {"__init__.py", "README.md", "LICENSE", "example.py"} <= {
        path.name for path in folder.iterdir()
    }
    text = (folder / "README.md").read_text("utf-8")
    head = text.split("---")[1].strip().splitlines()
    assert [line.partition(":")[0] for line in head] == [
        "author", "title", "description", "tags", "optuna_versions", "license",
    ]  # fmt: skip
    for title in ("Abstract", "Class or Function Names", "Installation", "Example"):
        assert f"\n## {title}\n" in text
