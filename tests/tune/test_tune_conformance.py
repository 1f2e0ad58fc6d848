"""The same model and the same curves lead every driver to the same steps in the same order."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import tuning_ray
from test_tune_race import policy_moves
from tuning_worlds import Chained, four_grades, slow_starters

from weitzman import tune


class Case(NamedTuple):
    model: Chained
    curves: list[list[tuple[int, float, float]]]


Steps = list[tuple[int, int]]


def poor() -> Case:
    """Five runs, none of them good: they are resumed again and again, to the end."""
    model = four_grades()
    curves = np.minimum(model.curves(5, np.random.default_rng(0)), 1)
    return Case(model, [list(model.shown(states)) for states in curves])


def diverging() -> Case:
    """Low scores are good; one run diverges, one is shorter than the model thinks, none is good."""
    model = Chained(
        [0.7, 0.2, 0.1, 0.0], four_grades().then, [10.0, 6.0, 3.0, 0.0], [0.25] * 5,
        [1, 3, 5, 6, 9], minimize=True,
    )  # fmt: skip
    states = np.minimum(model.curves(5, np.random.default_rng(0)), 1)
    curves = [list(model.shown(row)) for row in states]
    curves[1] = [(s, math.nan if s > 1 else x, c) for s, x, c in curves[1]]
    curves[3] = curves[3][:2]
    return Case(model, curves)


def several() -> Case:
    """Runs that are not good enough, then one that is."""
    model = four_grades()
    return Case(model, [list(model.shown(states)) for states in slow_starters(model)])


def plain(case: Case, folder: Path, **options) -> Steps:
    """The plain loop; the run may be brought back by its executor."""

    def start(run: int, past: tune.Past):
        for _, score, cost in case.curves[run][past.step :]:
            yield score, cost

    steps: Steps = []

    def note(report: tune.Report) -> None:
        if report.event == "seen":
            steps.append((report.run, report.step))

    tune.optimize(start, list(range(len(case.curves))), case.model, callback=note, **options)
    return steps


def journalled(case: Case, folder: Path) -> Steps:
    return plain(case, folder, journal=folder / "journal")


def elsewhere(case: Case, folder: Path) -> Steps:
    with ThreadPoolExecutor(1) as executor:
        return plain(case, folder, executor=executor)


def with_optuna(case: Case, folder: Path) -> Steps:
    optuna = pytest.importorskip("optuna", reason="OPTUNA IS NOT INSTALLED")
    from weitzman.tune import optuna as driver

    steps: Steps = []

    def objective(trial, past: tune.Past):
        trial.suggest_float("rate", 0, 1)
        for step, score, cost in case.curves[past.run]:
            steps.append((past.run, step))
            yield score, cost

    study = optuna.create_study(direction="minimize" if case.model.minimize else "maximize")
    driver.optimize(study, objective, case.model, n_trials=len(case.curves))
    return steps


def with_ray(case: Case, folder: Path) -> Steps:
    from weitzman.tune.ray import IndexScheduler

    scheduler = IndexScheduler(case.model, cost="paid", workers=1)
    curves = [[(s, x, c) for s, x, c in rows] for rows in case.curves]
    mode = "min" if case.model.minimize else "max"
    log = folder / "log"
    tuning_ray.tuner(log, curves, scheduler, mode=mode, made=tuning_ray.function(log)).fit()
    return tuning_ray.steps(log)


@pytest.mark.parametrize("case", [poor, diverging, several], ids=lambda f: f.__name__)
@pytest.mark.parametrize("driver", [journalled, elsewhere, with_optuna], ids=lambda f: f.__name__)
def test_drivers_agree(driver: Callable[[Case, Path], Steps], case, tmp_path: Path):
    assert driver(case(), tmp_path) == plain(case(), tmp_path)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.*")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_ray_agrees(ray_session, tmp_path: Path):
    assert with_ray(diverging(), tmp_path) == plain(diverging(), tmp_path)


def resumed(steps: Steps) -> int:
    """How often a run is resumed that has waited for others."""
    return sum(
        steps[i - 1][0] != run and run in {r for r, _ in steps[: i - 1]}
        for i, (run, _) in enumerate(steps)
        if i
    )


def test_the_cases_are_worth_testing():
    """They resume runs that waited, and are those of the policy where it can be asked."""
    steps = plain(diverging(), Path())
    assert resumed(plain(poor(), Path())) >= 7
    assert resumed(steps) >= 5
    assert [step for run, step in steps if run == 1] == [1, 2]  # it diverges before the rung
    assert [step for run, step in steps if run == 3] == [1, 2]
    for case in (poor(), several()):
        states = [
            [case.model.scores.index({s: x for s, x, _ in rows}[r]) for r in case.model.rungs]
            for rows in case.curves
        ]
        wanted, _, _ = policy_moves(case.model, np.array(states), -1e9)
        assert [x for x in plain(case, Path()) if x[1] in case.model.rungs] == wanted
