"""Searches without any log: a price is all that is stated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from weitzman import learn, tune
from weitzman.errors import InvalidArgument
from weitzman.tune.race import Race

LENGTH = 20


def train(config):
    """A run that rises to a level of its own: the higher, the nearer the rate is to 0.3."""
    level = 1.0 - abs(config["rate"] - 0.3)
    for step in range(1, LENGTH + 1):
        yield level * (1.0 - math.exp(-step / 5.0)), 1.0


def pool(n: int, seed: int = 0) -> list[dict[str, float]]:
    return tune.draw({"rate": (0.0, 1.0)}, n, seed=seed)


def test_a_price_is_enough_to_begin():
    result = tune.optimize(train, pool(60), full_run_cost=0.01)
    assert result.best_score > 0.93
    assert result.spent < 20 * LENGTH  # of 60 full runs
    assert len(result.runs) > 3


def test_with_a_price_no_run_needs_to_come_to_its_end():
    """A full run costs 20, so a point worth 2000 is the same as a full run for 0.01 points.

    Where only the cost of a full run is stated, one run must end before anything can be weighed.
    """
    one = tune.optimize(train, pool(40), full_run_cost=0.01)
    other = tune.optimize(train, pool(40), price=LENGTH / 0.01)
    assert max(run.steps[-1] for run in one.runs) == LENGTH
    assert other.spent <= one.spent
    assert min(one.best_score, other.best_score) > 0.9


def test_the_dearer_a_run_the_less_is_spent():
    spent = [tune.optimize(train, pool(60), full_run_cost=x).spent for x in (0.001, 0.02, 0.5)]
    assert spent[0] > spent[1] >= spent[2]  # the first runs are trained at any price
    assert spent[2] < 3 * LENGTH


def test_minimizing_mirrors_maximizing():
    def upside_down(config):
        for score, cost in train(config):
            yield -score, cost

    up = tune.optimize(train, pool(40), full_run_cost=0.01)
    down = tune.optimize(upside_down, pool(40), full_run_cost=0.01, minimize=True)
    assert down.best_score == -up.best_score
    assert down.spent == up.spent


def test_the_unit_of_scores_does_not_matter():
    def in_small_units(config):  # by a power of two, so that no number is rounded
        for score, cost in train(config):
            yield 128.0 * score, cost

    one = tune.optimize(train, pool(40), full_run_cost=0.01)
    other = tune.optimize(in_small_units, pool(40), full_run_cost=1.28)
    assert other.best_score == 128 * one.best_score
    assert other.spent == one.spent


def reached(score, over, length):
    """The last step of each of 16 runs with constant scores and costs of 1, by a plain twin.

    Of the first runs, 16 / 3 ** k, rounded up, go on from level k, until one has ended.
    """
    levels, last = [1, 3, 9, length], np.ones(16, int)
    for k, step in enumerate(levels[1:], 1):
        there = [i for i in range(16) if last[i] == levels[k - 1] and i not in over]
        going = sorted(there, key=lambda i: -score[i])[: math.ceil(16 / 3**k)]
        last[going] = step
    return last.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_sixteen_runs_are_started_and_ever_fewer_continue(seed):
    race = Race(learn.from_nothing(full_run_cost=0.01), available=20)
    learner = tune.Refit(race)
    score = np.random.default_rng(seed).uniform(size=16).round(3)
    for number in range(16):
        learner()
        move = race.next()
        assert (move.run, move.until) == (None, 0)
        assert number == 0 or "train it to its first score: too little is" in move.reason
        race.observe(race.started(), 1, score[number], 1.0)
    race.ended(0)  # a run that ends this early says nothing of how long runs are
    while max(run.steps[-1] for run in race.runs) < 20:
        learner()
        move = race.next()
        assert move.reason.endswith("too little is known about runs to judge any.")
        for step in range(race.runs[move.run].steps[-1] + 1, min(move.until, 20) + 1):
            race.observe(move.run, step, score[move.run], 1.0)
    assert [run.steps[-1] for run in race.runs] == reached(score, {0}, 20)
    race.ended(move.run)
    learner()
    assert race.model.price == pytest.approx(20 / 0.01)


def test_a_worker_waits_for_the_first_runs():
    race = Race(learn.from_nothing(full_run_cost=0.01), available=20)
    learner = tune.Refit(race)
    for number in range(16):
        race.next()
        race.observe(race.started(), 1, number / 10, 1.0)
        learner()
    flying = [race.next().run for _ in range(6)]
    assert flying == [10, 11, 12, 13, 14, 15]
    assert race.next() is None  # another run would bring on a further round, and so on
    assert not race.done


def test_runs_that_never_end_by_themselves_need_a_last_step():
    def endless(config):
        while True:
            yield config["rate"], 1.0

    model = learn.from_nothing(full_run_cost=0.01, last_step=6)
    result = tune.optimize(endless, pool(20), model)
    assert max(run.steps[-1] for run in result.runs) == 6


def test_runs_that_diverge_teach_nothing_and_the_next_is_trained():
    def mostly_lost(config):
        for step in range(1, 9):
            yield (math.nan if config["rate"] < 0.6 and step > 2 else config["rate"] * step), 1.0

    result = tune.optimize(mostly_lost, pool(30), full_run_cost=0.05)
    assert result.best_score > 4


def test_a_search_is_taken_up_where_it_stood(tmp_path):
    whole = tune.optimize(train, pool(30), full_run_cost=0.01, journal=tmp_path / "whole")

    class Cut(Exception):
        pass

    def cut_off(report):
        if report.spent > whole.spent / 2:
            raise Cut

    for _ in range(2):
        try:
            tune.optimize(
                train, pool(30), full_run_cost=0.01, journal=tmp_path / "cut",
                on_missing_checkpoint="replay", callback=cut_off,
            )  # fmt: skip
        except Cut:
            continue
    again = tune.optimize(
        train,
        pool(30),
        full_run_cost=0.01,
        journal=tmp_path / "cut",
        on_missing_checkpoint="replay",
    )
    assert again.best_score == whole.best_score
    assert len(again.runs) == len(whole.runs)


@pytest.mark.parametrize("events", [8, 18, 22])
def test_nobody_waits_for_first_runs_that_were_lost(tmp_path, events):
    """Else a search that cannot bring back its first runs would start others forever."""

    def start(config):
        for step in range(1, 10):
            yield (1 - (config - 0.3) ** 2) * (1 - 0.5**step), 1.0

    left = [events]

    def cut(report):
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    options = {"full_run_cost": 0.02, "journal": tmp_path / "journal"}
    configs = [0.37 * i % 1 for i in range(60)]
    with pytest.raises(KeyboardInterrupt):
        tune.optimize(start, configs, callback=cut, **options)
    with pytest.warns(UserWarning, match="was under way when an earlier call ended"):
        found = tune.optimize(start, configs, **options)
    assert len(found.runs) < 40
    assert "should add" in found.reason


def test_a_log_can_be_given_instead_of_a_model():
    first = tune.optimize(train, pool(40), full_run_cost=0.001)
    second = tune.optimize(train, pool(40, seed=1), first.curves, full_run_cost=0.01)
    assert second.best_score > 0.93
    assert second.spent < first.spent


def test_what_cannot_be():
    with pytest.raises(InvalidArgument, match="the price of a score must be stated"):
        tune.optimize(train, pool(3))
    with pytest.raises(InvalidArgument, match="give either `price` or `full_run_cost`"):
        tune.optimize(train, pool(3), price=1.0, full_run_cost=1.0)
    model = learn.fit(learn.sample().of_task("letter"), price=10.0)
    with pytest.raises(InvalidArgument, match="a model has a price"):
        tune.optimize(train, pool(3), model, price=1.0)
    with pytest.raises(InvalidArgument, match="the model maximizes, but `minimize` is True"):
        tune.optimize(train, pool(3), model, minimize=True)
    with pytest.raises(InvalidArgument, match="`full_run_cost` must be above 0 and finite"):
        learn.from_nothing(full_run_cost=0.0)
    with pytest.raises(InvalidArgument, match="`last_step` must be a whole number"):
        learn.from_nothing(price=1.0, last_step=2.5)
    with pytest.raises(InvalidArgument, match="nothing is known about runs yet"):
        learn.from_nothing(price=1.0).lines()


def test_configurations_are_drawn_from_a_space():
    space = {"rate": (1e-4, 1e-1, "log"), "layers": (1, 4), "kind": ["a", "b"], "fixed": 7}
    drawn = tune.draw(space, 400, seed=3)
    assert drawn == tune.draw(space, 400, seed=3)
    assert drawn != tune.draw(space, 400, seed=4)
    rates = np.array([x["rate"] for x in drawn])
    assert rates.min() >= 1e-4
    assert rates.max() <= 1e-1
    assert np.median(np.log10(rates)) == pytest.approx(-2.5, abs=0.25)
    assert {x["layers"] for x in drawn} == {1, 2, 3, 4}
    assert {x["kind"] for x in drawn} == {"a", "b"}
    assert {x["fixed"] for x in drawn} == {7}
    result = tune.optimize(train, {"rate": (0.0, 1.0)}, full_run_cost=0.02, seed=0)
    assert result.best_score > 0.9
    for wrong in ((2, 1), (0.0, 1.0, "log"), (1,), ("a", "b"), (0, math.inf)):
        with pytest.raises(InvalidArgument, match="'rate' is"):
            tune.draw({"rate": wrong})
    with pytest.raises(InvalidArgument, match="it is empty"):
        tune.draw({"rate": []})


def test_runs_of_nothing_of_one_step_and_for_nothing():
    assert tune.optimize(lambda _: iter([]), [1, 2, 3], price=1.0).best_score is None
    assert tune.optimize(lambda x: iter([(x, 1.0)]), [1], full_run_cost=0.1).worth == 10
    free = tune.optimize(lambda _: iter([(1.0, 0.0)] * 3), range(5), price=1.0)
    assert (free.best_score, free.spent) == (1.0, 0.0)
    with pytest.raises(InvalidArgument, match="cost nothing: state `price` instead"):
        tune.optimize(lambda x: iter([(x, 0.0)] * 2), range(5), full_run_cost=0.1)


def test_a_study_of_optuna_needs_nothing_but_a_price():
    optuna = pytest.importorskip("optuna")
    from weitzman.tune.optuna import optimize

    def objective(trial):
        for score, cost in train({"rate": trial.suggest_float("rate", 0, 1)}):
            yield -score, cost

    sampler = optuna.samplers.RandomSampler(seed=1)
    study = optuna.create_study(direction="minimize", sampler=sampler)
    result = optimize(study, objective, full_run_cost=0.02, n_trials=30)
    assert result.best_score == study.best_value < -0.9
    assert result.full_run_cost == pytest.approx(0.02)


@pytest.mark.parametrize("seed", range(25))
def test_any_search_ends_with_several_workers_failures_and_lost_scores(seed):
    random = np.random.default_rng(seed)
    n, workers = int(random.integers(1, 40)), int(random.integers(1, 6))
    scores = [random.normal(size=random.integers(1, 30)).cumsum() for _ in range(n)]
    if seed % 3 == 0:
        scores = [np.where(random.random(len(x)) < 0.1, math.nan, x) for x in scores]
    elif seed % 3 == 1:
        scores = [np.full(len(x), 0.5) for x in scores]
    stated = {"price": 10 ** random.uniform(-2, 4)}
    if seed % 2:
        stated = {"full_run_cost": 10 ** random.uniform(-4, 0)}
    race = Race(learn.from_nothing(minimize=seed % 5 == 0, **stated), available=n)
    learner, flying, moves = tune.Refit(race), [], 0
    while True:
        learner()
        while len(flying) < workers and (move := race.next()) is not None:
            flying.append((race.started() if move.run is None else move.run, move.until))
        if not flying:
            break
        run, until = flying.pop(random.integers(len(flying)))
        moves += 1
        if random.random() < 0.02:
            race.failed(run)
            continue
        for step in range(len(race.runs[run].steps) + 1, len(scores[run]) + 1):
            race.observe(run, step, float(scores[run][step - 1]), random.uniform(0.1, 2))
            if step >= until or math.isnan(scores[run][step - 1]):
                break
        if len(race.runs[run].steps) == len(scores[run]):
            race.ended(run)
    assert 1 <= len(race.runs) <= moves <= sum(map(len, scores)) + n
