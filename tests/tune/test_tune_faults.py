"""Budgets without a price, crashes, and silent mistakes of users."""

from __future__ import annotations

import json
import math
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from journal_events import events_in, journal_of
from tuning_worlds import four_grades

from weitzman import learn, tune
from weitzman.errors import InvalidAnswer, InvalidArgument, WeitzmanError
from weitzman.tune.run_store import packed, unpacked

MODEL = four_grades()
LETTER = learn.sample().of_task("letter")


def rising(config, past=None):
    """Twenty steps at a cost of 1 each towards a top that the configuration sets."""
    first = 0 if past is None else past.step
    for step in range(first + 1, 21):
        yield (1 - (config["x"] - 0.3) ** 2) * (1 - 0.7**step), 1.0, step


def pool(n: int, seed: int = 0) -> list[dict[str, float]]:
    return [{"x": float(x)} for x in np.random.default_rng(seed).random(n)]


# -- budgets -----------------------------------------------------------------------------------


def test_a_budget_alone_is_enough_without_a_log():
    spent = []
    for budget in (30.0, 120.0):
        found = tune.optimize(rising, pool(400), budget=budget)
        assert found.spent <= budget + 20  # the last move may have several steps
        assert found.best_score is not None
        spent.append(found.spent)
    assert spent[1] > 2 * spent[0]


def test_a_budget_alone_is_enough_with_a_log():
    log = tune.optimize(rising, pool(40, 1), full_run_cost=0.01).curves
    found = tune.optimize(rising, pool(60), log, budget=60.0)
    assert 20 < found.spent <= 61


def test_a_budget_alone_is_enough_for_optuna():
    optuna = pytest.importorskip("optuna")
    from weitzman.tune.optuna import optimize

    def objective(trial):
        yield from rising({"x": trial.suggest_float("x", 0, 1)})

    study = optuna.create_study(direction="maximize")
    found = optimize(study, objective, budget=40.0)
    assert found.spent <= 41


def test_without_price_and_budget_the_message_names_both():
    with pytest.raises(InvalidArgument, match=r"`full_run_cost` .* or a `budget`"):
        tune.optimize(rising, pool(3))


@pytest.mark.parametrize("refit", [True, False])
def test_prices_that_follow_a_budget_stay_finite(refit):
    """Each price used to be a multiple of the one before, up to 1e39."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(LETTER))
    model = learn.fit(LETTER.select(order[:15]), price=1000.0)
    rows = [LETTER.select([int(i)]) for i in order[15:21]]

    def start(i):
        for row in range(len(rows[i].step)):
            yield float(rows[i].score[row]), float(rows[i].cost[row]), int(rows[i].step[row])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = tune.optimize(start, list(range(6)), model, budget=400.0, reprice=True, refit=refit)
    assert found.spent <= 440
    assert found.price is not None
    assert 1000 < found.price < 1e10  # also once no run can be started any more


def test_runs_that_all_diverge_end_cleanly_under_a_budget():
    def lost(config):
        yield math.nan, 1.0

    model = learn.fit(LETTER.select(range(12)), price=1000.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = tune.optimize(lost, pool(6), model, budget=3.0, reprice=True)
    assert found.spent <= 4


def test_before_a_run_has_ended_there_is_no_price():
    found = tune.optimize(rising, pool(30), full_run_cost=0.01, budget=5.0)
    assert found.price is None
    assert math.isnan(found.payoff)
    assert "the price of a point is not known yet" in str(found)
    assert "A point is worth" not in str(found)


def test_prices_from_answers():
    assert tune.price_from_trade(10, 0.2) == 50
    few, many = (tune.price_from_past(LETTER, n) for n in (3, 30))
    assert 0 < few < many
    # the gain of one more run, drawn from the log itself
    best = np.maximum.reduceat(LETTER.score, LETTER.start[:-1])
    draws = np.random.default_rng(1).choice(best, (200_000, 4))
    gain = (draws.max(axis=1) - draws[:, :3].max(axis=1)).mean()
    assert few == pytest.approx(LETTER.total_cost.mean() / gain, rel=0.03)
    for cost, points in ((0, 1), (1, -1), (1, math.inf)):
        with pytest.raises(InvalidArgument, match="above 0 and finite"):
            tune.price_from_trade(cost, points)
    with pytest.raises(InvalidArgument, match="`runs` must be a whole number"):
        tune.price_from_past(LETTER, 0)


# -- arguments ---------------------------------------------------------------------------------


def test_no_more_runs_are_started_than_asked_for():
    for configs in (pool(30), {"x": (0.0, 1.0)}, lambda run: {"x": run / 10}):
        found = tune.optimize(rising, configs, full_run_cost=0.001, max_runs=5)
        assert len(found.runs) == 5
    with pytest.raises(InvalidArgument, match="`max_runs` must be a whole number from 1 on"):
        tune.optimize(rising, pool(3), full_run_cost=0.1, max_runs=0)


def test_a_space_is_drawn_anew_but_not_in_the_middle_of_a_search(tmp_path: Path):
    space, options = {"x": (0.0, 1.0)}, {"full_run_cost": 0.01, "max_runs": 3}
    one, two = (tune.optimize(rising, space, **options).runs[0].config for _ in range(2))
    assert one != two
    one, two = (tune.optimize(rising, space, seed=4, **options).runs[0].config for _ in range(2))
    assert one == two
    path = tmp_path / "journal"
    first = tune.optimize(rising, space, journal=path, **options)
    again = tune.optimize(rising, space, journal=path, **options)
    assert [run.config for run in first.runs] == [run.config for run in again.runs]


def test_a_limit_is_passed_on():
    first = tune.optimize(rising, pool(60), full_run_cost=0.02, limit=1.0)
    second = tune.optimize(rising, pool(60), full_run_cost=0.02, limit=9.0)
    assert first.spent < second.spent
    with pytest.raises(InvalidArgument, match="a model has its own limit"):
        tune.optimize(rising, pool(3), MODEL, limit=1.0)


@pytest.mark.parametrize("catch", [KeyError("x"), "ValueError", (ValueError, 3), KeyboardInterrupt])
def test_what_is_no_class_of_exceptions(catch):
    with pytest.raises(InvalidArgument, match="`catch` must be a class of exceptions"):
        tune.optimize(rising, pool(3), full_run_cost=0.1, catch=catch)


# -- crashes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("durable", [False, True])
def test_what_was_found_is_not_lost_with_an_exception(durable: bool, tmp_path: Path):
    def breaks(config):
        for step, row in enumerate(rising(config)):
            if step == 3:
                raise RuntimeError("out of memory")
            yield row

    journal = tmp_path / "journal" if durable else None
    with pytest.raises(RuntimeError, match="out of memory") as caught:
        tune.optimize(breaks, pool(20), full_run_cost=0.01, journal=journal)
    notes = " ".join(caught.value.__notes__)
    run = int(notes.partition("This was in run ")[2].partition(",")[0])
    result = caught.value.result
    assert repr(result.runs[run].config) in notes
    assert result.best_score is not None
    assert ("Run again to continue." in notes) == durable


def test_a_journal_continues_after_an_early_failure_with_timed_costs(tmp_path: Path):
    """The first run fails before any step has said that costs are times."""
    now = [0.0]

    def start(config):
        now[0] += 2.0
        if config == 0:
            raise ValueError("bad settings")
        for _ in range(3):
            now[0] += 1.0
            yield 4.0

    options = {"catch": ValueError, "clock": lambda: now[0], "outside": 0.0}
    one = tune.optimize(start, [0, 1], MODEL, journal=tmp_path / "journal", **options)
    assert one.runs[0].over == "failed"
    again = tune.optimize(start, [0, 1, 2], MODEL, journal=tmp_path / "journal", **options)
    assert again.runs[:2] == one.runs[:2]
    first = next(e for e in events_in(tmp_path / "journal") if e["event"] == "seen")
    assert first["measured"] is None


def test_runs_elsewhere_are_closed_at_their_end_and_after_errors():
    opened, closed = [], []

    class Run:
        def __init__(self, config):
            self.left = [4.0] * 2
            opened.append(config)

        def advance(self):
            if not self.left:
                if opened[-1] == 1:
                    raise ValueError("broken")
                return None
            return self.left.pop(), 0.1

        def close(self):
            closed.append(1)

    def start(config, past):
        return Run(config)

    with ThreadPoolExecutor(1) as executor:
        tune.optimize(start, [0, 1, 2], MODEL, executor=executor, catch=ValueError, outside=0.0)
    assert opened
    assert len(closed) == len(opened)


def test_configurations_keep_their_types_in_a_journal(tmp_path: Path):
    odd = {"shape": (1, 2), "by": {1: 2, "a": [(3,)]}, "__tuple__": [1], "n": None}
    assert unpacked(json.loads(json.dumps(packed(odd, 0)))) == odd
    path, made = tmp_path / "journal", []

    def start(config):
        made.append(config)
        yield 4.0, 0.1

    options = {"outside": 0.0, "max_runs": 1}
    tune.optimize(start, lambda run: odd, MODEL, journal=path, **options)
    again = tune.optimize(start, lambda run: odd, MODEL, journal=path, **options)
    assert again.runs[0].config == odd
    assert made == [odd]


@pytest.mark.parametrize(
    ("name", "value"), [("step", 0.5), ("step", -1), ("step", False), ("run", -1), ("cost", True)]
)
def test_journals_with_odd_numbers_are_rejected(name: str, value, tmp_path: Path):
    path = tmp_path / "journal"
    event = {"event": "seen", "run": 0, "step": 1, "score": 5.0, "cost": 0.1, "measured": False}
    journal_of(path, [{"event": "start", "run": 0, "config": 3}, {**event, name: value}])
    with pytest.raises(WeitzmanError):
        tune.optimize(lambda config: iter([(5.0, 0.1)]), [3], MODEL, journal=path)


def test_a_run_that_resumes_does_not_report_step_0_twice():
    def train(config, report):
        for epoch in range(3):  # from its beginning, since `past.step` is 0
            report(0.1 * epoch, cost=0.1, step=epoch)

    run = tune.paced(train, resumes=True)(1, tune.Past(0, (0,), (0.0,)))
    assert run.advance() == (0.1, 0.1, 1)
    run.close()


# -- silent mistakes ---------------------------------------------------------------------------


def test_settings_that_the_log_lacks_are_named():
    log = tune.optimize(rising, pool(20), full_run_cost=0.01).curves
    space = {"x": (0.0, 1.0), "depth": (1, 3), "fixed": 7}
    with pytest.warns(UserWarning, match=r"does not say what 'depth' was .*\(1 of"):
        tune.optimize(rising, space, log, full_run_cost=0.1, max_runs=1)
    model = learn.fit(log, full_run_cost=0.1)
    with pytest.warns(UserWarning, match=r"does not say what 'depth' was .*\(1 of"):
        tune.optimize(rising, space, model, max_runs=1)


def test_scores_far_outside_the_log_are_named_at_once():
    """In percent instead of fractions, one score is enough to stop."""
    model = learn.fit(LETTER.select(range(12)), price=1000.0)
    with pytest.warns(UserWarning, match=r"75, but those of the log .* same unit"):
        tune.optimize(lambda config: iter([(75.0, 20.0, 0)]), [1], model)


@pytest.mark.parametrize(("logged", "searched"), [(1.0, 100.0), (100.0, 1.0)])
@pytest.mark.parametrize("first", [math.nan, 0.3])
def test_fractions_beside_percent_are_named(logged, searched, first):
    """Scores that would fit the log if they were percent, or fractions; after a diverged run."""
    curves = LETTER.select(range(12))
    model = learn.fit(replace(curves, score=logged * curves.score), price=1000.0)

    def start(config):
        yield searched * (first if config == 0 else 0.3), 1.0, 0

    with pytest.warns(UserWarning, match="those of the log .* same unit"):
        tune.optimize(start, [0, 1], model, refit=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        race = tune.Race(model)
        race.observe(race.started(), 1, logged * 0.5, 1.0)


@pytest.mark.parametrize(("limit", "minimize"), [(1.0, False), (10.0, True)])
def test_a_score_beyond_the_stated_limit_is_an_error_at_once(limit, minimize):
    """Percent beside a limit in fractions: the search would stop early and say nothing."""
    seen = []
    with pytest.raises(InvalidArgument, match=r"the limit of 10?, but a run showed .* same unit"):
        tune.optimize(
            lambda config: iter([(5.0, 1.0)] * 3), range(9), full_run_cost=0.1, limit=limit,
            minimize=minimize, callback=seen.append,
        )  # fmt: skip
    assert sum(report.event == "seen" for report in seen) == 1


@pytest.mark.parametrize("odd", ["100", [1], math.nan])
def test_budgets_that_are_no_numbers(odd):
    for name in ("budget", "outside"):
        with pytest.raises(InvalidArgument, match=f"`{name}` must be a number"):
            tune.optimize(rising, pool(2), **{"full_run_cost": 0.01, name: odd})


def test_hopeless_searches_promise_only_what_is_true(tmp_path: Path):
    def nothing(config):
        yield math.nan, 1.0

    for journal in (None, tmp_path / "journal"):
        with pytest.raises(InvalidAnswer, match="Check whether training works") as caught:
            tune.optimize(nothing, range(300), full_run_cost=0.01, journal=journal)
        assert ("on disk" in str(caught.value)) == (journal is not None)


def test_one_warning_for_steps_in_another_unit():
    model = learn.fit(LETTER.select(range(12)), price=1000.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tune.optimize(lambda config: iter([(0.3, 0.1, 1000)]), range(6), model, refit=False)
    assert sum("same unit" in str(w.message) and "begins" in str(w.message) for w in caught) == 1


def test_the_history_says_what_was_paused_and_resumed():
    found = tune.optimize(rising, pool(20), full_run_cost=0.01)
    assert [x.spent for x in found.history] == pytest.approx(
        np.cumsum([1.0] * len(found.history)).tolist()
    )
    for number, run in enumerate(found.runs):
        rows = [x for x in found.history if x.run == number]
        assert tuple(x.step for x in rows) == run.steps
        assert tuple(x.score for x in rows) == run.scores
