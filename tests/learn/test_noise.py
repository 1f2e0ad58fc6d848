"""Noise of scores: the filter against closed forms, the noise of made-up logs, honest promises."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weitzman import learn, tune
from weitzman.errors import InvalidArgument
from weitzman.learn.ladder import Belief, ScoreNoise, climb

NUMBERS = st.floats(-10, 10)


def log_of(
    random: np.random.Generator, runs: int, steps: int, noise: float, spread: float = 0.1
) -> tuple[learn.Curves, np.ndarray]:
    """Curves that rise alike to levels of their own, seen with noise; and these levels."""
    level = 0.5 + spread * random.standard_normal(runs)
    rise = 0.2 * (1.0 - 0.7 ** np.arange(steps))
    score = level[:, None] + rise + noise * random.standard_normal((runs, steps))
    table = {
        "run": np.repeat(np.arange(runs), steps),
        "step": np.tile(np.arange(1, steps + 1), runs),
        "score": score.ravel(),
        "cost": np.ones(runs * steps),
    }
    return learn.Curves.read(table, ended=True), level


@given(NUMBERS, st.floats(0.01, 5), st.floats(0.01, 5), st.lists(NUMBERS, min_size=1, max_size=6))
def test_without_drift_the_belief_is_the_mean_of_normal_laws(mean, spread, noise, scores):
    """Prior and scores are weighted by their precisions."""
    none = np.zeros(0)
    by = ScoreNoise(noise, Belief(mean, spread**2), none.astype(np.int64), none, none)
    belief = None
    for step, score in enumerate(scores):
        belief = by.updated(belief, step, score)
    precision = spread**-2 + len(scores) * noise**-2
    assert belief.mean == pytest.approx(
        (mean * spread**-2 + sum(scores) * noise**-2) / precision, abs=1e-9
    )
    assert belief.variance == pytest.approx(1 / precision)


@given(st.lists(NUMBERS, min_size=2, max_size=5), st.floats(0.1, 2), st.floats(0.1, 2), NUMBERS)
def test_with_drift_the_belief_is_the_mean_given_all_scores(scores, noise, drift, rise):
    """Against the mean of a joint normal law, by linear algebra."""
    n = len(scores)
    step = np.arange(1, n)
    by = ScoreNoise(noise, Belief(1.0, 4.0), step, np.full(n - 1, rise), np.full(n - 1, drift))
    belief = None
    for t, score in enumerate(scores):
        belief = by.updated(belief, t, score)
    times = np.minimum(np.arange(n)[:, None], np.arange(n))
    hidden = 4.0 + drift**2 * times
    centers = 1.0 + rise * np.arange(n)
    shown = hidden + noise**2 * np.eye(n)
    wanted = centers[-1] + hidden[-1] @ np.linalg.solve(shown, np.array(scores) - centers)
    assert belief.mean == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.05])
def test_the_noise_of_a_made_up_log_is_found(noise):
    curves, _ = log_of(np.random.default_rng(1), 150, 16, noise)
    found = ScoreNoise.of(curves)
    assert found.noise == pytest.approx(noise, rel=0.1, abs=1e-3)
    assert learn.diagnose(learn.fit(curves, price=100), curves).noise == found.noise
    mirrored = ScoreNoise.of(replace(curves, score=-curves.score, minimize=True))
    assert mirrored.noise == pytest.approx(found.noise)


def test_scores_without_noise_are_nearer_to_the_truth():
    curves, level = log_of(np.random.default_rng(2), 100, 12, 0.05)
    last = curves.start[1:] - 1
    truth = level + 0.2 * (1.0 - 0.7**11)
    cleaned = ScoreNoise.of(curves).without(curves)
    before, after = (np.square(x.score[last] - truth).mean() for x in (curves, cleaned))
    assert after < 0.35 * before  # a mean of about 12 scores of like precision


def test_a_diagnosis_counts_what_the_model_counts():
    """Where the prize is a re-evaluation, forecasts and payoffs are those of re-evaluations."""
    curves, _ = log_of(np.random.default_rng(6), 60, 10, 0.05)
    model = learn.fit(curves, price=100, rescored=True)
    found = learn.diagnose(model, curves)
    wanted = learn.diagnose(
        learn.fit(model.noise.without(curves), price=100), model.noise.without(curves)
    )
    assert found.realized.tolist() == wanted.realized.tolist()
    assert found.predicted.tolist() == wanted.predicted.tolist()
    assert found.noise == ScoreNoise.of(curves).noise


def search(model: learn.ResemblanceModel, seed: int) -> tuple[float, float]:
    """The best score that a race reports, and the mean of re-evaluations of that run there."""
    curves, level = log_of(np.random.default_rng(seed), 40, 8, 0.05, 0.03)
    race = tune.Race(model, available=40)
    while (move := race.next()) is not None:
        run = race.started() if move.run is None else move.run
        rows = range(curves.start[run], curves.start[run + 1])
        for i in rows:
            step = int(curves.step[i])
            if (not race.runs[run].steps or step > race.runs[run].steps[-1]) and step <= move.until:
                race.observe(run, step, float(curves.score[i]), 1.0)
        if race.runs[run].steps[-1] == 8:
            race.ended(run)
    best = race.best_run, race.best_step, race.best_score
    return best[2], float(level[best[0]] + 0.2 * (1.0 - 0.7 ** (best[1] - 1)))


def test_a_search_for_re_evaluations_promises_little_too_much_and_finds_better_runs():
    """A search for scores takes the best of many noisy ones, which is far too high."""
    curves, _ = log_of(np.random.default_rng(3), 150, 8, 0.05, 0.03)
    shown, rescored = (
        np.array([search(learn.fit(curves, full_run_cost=0.01, rescored=x), s) for s in range(40)])
        for x in (False, True)
    )
    excess = [float((x[:, 0] - x[:, 1]).mean()) for x in (shown, rescored)]
    assert excess[0] > 0.05
    assert abs(excess[1]) < excess[0] / 4
    assert rescored[:, 1].mean() > shown[:, 1].mean()


def test_live_scores_are_treated_as_logged_ones():
    curves, _ = log_of(np.random.default_rng(4), 30, 10, 0.05)
    model = learn.fit(curves, price=100, rescored=True)
    assert model.noise is not None
    race = tune.Race(model)
    for step, score in zip(curves.step[:10].tolist(), curves.score[:10].tolist(), strict=True):
        race.observe(race.started() if step == 1 else 0, step, score, 1.0)
    assert race.runs[0].scores == curves.score[:10].tolist()  # as shown
    assert race.runs[0].filtered == pytest.approx(model.noise.without(curves).score[:10].tolist())
    one = model.updated(curves.select([0]))
    logged = model.noise.without(curves.select([0]))
    assert one.ladder.last[-1] == pytest.approx(climb(logged, model.rungs).last[0])


def test_a_run_that_skips_steps_rises_as_much_as_one_that_shows_all():
    """All that usually changes in between counts, however many steps lie between two scores."""
    step = np.arange(2, 21)
    by = ScoreNoise(0.0, Belief(0.0, 1.0), step, np.ones(19), np.full(19, 0.1))
    by = replace(by, noise=1e3)  # scores say next to nothing: the belief is the usual rise
    start = Belief(0.0, 1e-6, 1)
    once = by.updated(start, 20, 0.0)
    often = start
    for t in range(2, 21):
        often = by.updated(often, t, 0.0)
    assert once.mean == pytest.approx(19.0, rel=1e-3)
    assert once == pytest.approx(often, rel=1e-3)
    assert by.updated(once, 30, 0.0).mean == pytest.approx(once.mean + 1.0, rel=1e-3)


def test_a_log_of_many_steps_is_learned_from_in_time():
    random, n = np.random.default_rng(0), 100_000
    table = {"run": np.arange(n) // 100, "step": random.integers(1, 500, n).cumsum()}
    curves = learn.Curves.read(
        {**table, "score": random.normal(size=n), "cost": np.ones(n)}, ended=True
    )
    began = time.process_time()
    ScoreNoise.of(curves)
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize("settings", [None, [{"rate": i % 7} for i in range(30)]])
def test_the_noise_is_kept_with_the_model(settings):
    curves, _ = log_of(np.random.default_rng(5), 30, 10, 0.05)
    curves = replace(curves, settings=tuple(settings or ()))
    model = learn.fit(curves, price=100, rescored=True)
    for other in (model.at_price(50.0), model.updated(curves.select([0, 1]))):
        assert repr(other.noise) == repr(model.noise)
    assert learn.fit(curves, price=100).noise is None


def test_noise_that_cannot_be_known():
    curves, _ = log_of(np.random.default_rng(5), 30, 2, 0.05)
    with pytest.raises(InvalidArgument, match=r"but the log has 0\. State the noise"):
        learn.fit(curves, price=100, rescored=True)
    assert learn.fit(curves, price=100, rescored=0.05).noise.noise == 0.05
    assert np.isnan(learn.diagnose(learn.fit(curves, price=100), curves).noise)
    with pytest.raises(InvalidArgument, match="at least 0, but it is -1"):
        learn.fit(curves, price=100, rescored=-1)
