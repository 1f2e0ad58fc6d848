"""A budget instead of a price: what is spent on average is the budget."""

from __future__ import annotations

import numpy as np
import pytest

from weitzman import evaluate, learn, solve, tune
from weitzman.errors import InvalidArgument
from weitzman.questions import within_budget


def model_of(price: float) -> learn.ResemblanceModel:
    rng = np.random.default_rng(3)
    rows = {"run": [], "step": [], "score": [], "cost": []}
    for run in range(30):
        score = rng.normal(0.5, 0.2)
        for step in (1, 2, 3):
            score += float(rng.exponential(0.1))
            for name, x in zip(rows, (run, step, score, 1.0), strict=True):
                rows[name].append(x)
    return learn.fit(learn.Curves.read(rows), price=price)


@pytest.mark.parametrize("price", [1.0, 300.0])
@pytest.mark.parametrize("budget", [3.0, 8.0])
def test_at_the_price_found_the_budget_is_spent_on_average(price, budget):
    """Whatever price the model had; next to the exact shadow price."""
    model = model_of(price)
    found = tune.price_within(model, budget, fresh=50)
    exact = model.price / within_budget(model.lines(50), budget).price
    assert found == pytest.approx(exact, rel=0.1)
    spend = evaluate(solve(model.at_price(found).lines(50))).spend
    assert spend <= budget * 1.001
    dearer = evaluate(solve(model.at_price(1.1 * found).lines(50))).spend
    assert dearer >= budget * 0.999


def test_a_budget_below_every_spend_is_rejected():
    with pytest.raises(InvalidArgument, match="the budget must be at least 1, the least that any"):
        tune.price_within(model_of(10.0), 0.5, fresh=50)


def test_more_than_can_be_used_gives_the_price_at_which_nearly_all_is_spent():
    """No higher one: a price without any effect would grow without end."""
    price = tune.price_within(model_of(10.0), 1e6, fresh=5)
    spends = []
    for x in (0.5 * price, price, 1e3 * price):
        model = model_of(x)
        spends.append(evaluate(solve(model.lines(5)).policy()).spend)
    assert spends[0] < spends[1] <= spends[2]
    assert spends[1] >= 0.95 * spends[2]  # the aim is 0.98, the accuracy of a price 5 %


def start(seed):
    rng = np.random.default_rng(seed)
    score = rng.normal(0.5, 0.2)
    for step in (1, 2, 3):
        score += float(rng.exponential(0.1))
        yield score, 1.0, step


def test_a_search_keeps_to_its_budget():
    model, spent = model_of(1.0), []
    for first in range(0, 500, 100):
        configs = list(range(first, first + 60))
        result = tune.optimize(start, configs, model, budget=12, reprice=True, refit=False)
        spent.append(result.spent)
    assert max(spent) <= 12
    assert np.mean(spent) > 6  # it ends early only where the model has seen nothing better
    free = tune.optimize(start, list(range(60)), model, refit=False)
    assert free.spent < 4


def test_a_price_needs_a_budget():
    with pytest.raises(InvalidArgument, match="needs a `budget`"):
        tune.Allowance(tune.Race(model_of(1.0)))


def test_a_study_of_optuna_keeps_to_its_budget_as_the_plain_loop_does():
    optuna = pytest.importorskip("optuna")
    from weitzman.tune import optuna as driver

    model, how = model_of(1.0), {"budget": 12.0, "reprice": True, "refit": False}
    study = optuna.create_study(direction="maximize")
    found = driver.optimize(study, lambda trial: start(trial.number), model, n_trials=60, **how)
    wanted = tune.optimize(start, list(range(60)), model, **how)
    assert [run.steps for run in found.runs] == [run.steps for run in wanted.runs]
    assert found.spent == wanted.spent > 4
    with pytest.raises(InvalidArgument, match="needs a `budget`"):
        driver.optimize(study, lambda trial: start(trial.number), model, reprice=True)


def test_a_scheduler_of_ray_finds_the_same_price_as_the_plain_loop():
    pytest.importorskip("ray")
    import pickle

    from weitzman.tune.ray import IndexScheduler

    race = tune.Race(model_of(1.0), budget=12.0)
    tune.Allowance(race)()
    assert race.model.price != 1.0
    scheduler = IndexScheduler(model_of(1.0), budget=12.0, reprice=True, refit=False)
    again = pickle.loads(pickle.dumps(scheduler))
    for one in (scheduler, again):
        one._next()
        assert one.race.model.price == race.model.price
    with pytest.raises(InvalidArgument, match="needs a `budget`"):
        IndexScheduler(model_of(1.0), reprice=True)
