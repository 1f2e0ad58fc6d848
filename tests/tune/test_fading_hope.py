"""One lucky run in a log: hope for another one fades while the search goes on in vain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from weitzman import learn
from weitzman.backtest.bench import Bench, Table
from weitzman.backtest.peers import race
from weitzman.learn import resemblance
from weitzman.learn.curves import Curves
from weitzman.tune import Race, refit

LOG, RUNS, STEPS, NOISE = 100, 900, 12, 0.01


def family(seed, lucky):
    """Runs whose last scores depend on their settings, and on luck; one logged run has a lot."""
    random = np.random.default_rng([77, seed])
    x = random.random((RUNS, 4))
    smooth = np.cos(1.5 * x @ random.normal(size=(4, 8)) + random.uniform(0, 6.28, 8)).mean(axis=1)
    smooth = (smooth - smooth.mean()) / smooth.std()
    final = 0.8 + 0.05 * np.tanh(0.7 * smooth) + NOISE * random.standard_normal(RUNS)
    if lucky:
        chosen = np.argsort(-smooth[:LOG])[LOG // 10]
        final[chosen] = final.max() + NOISE
    step = np.arange(1, STEPS + 1)
    rise = np.exp(-np.exp(0.5 * random.normal(size=(RUNS, 1))) * step / 3)
    score = final[:, None] - 0.25 * rise + 0.003 * random.normal(size=(RUNS, STEPS))
    table = {
        "run": np.repeat(np.arange(RUNS), STEPS),
        "step": np.tile(step, RUNS),
        "score": score.ravel(),
        "cost": np.repeat(np.exp(1.2 * x[:, 2] - 0.6), STEPS),
    }
    table |= {f"x{d}": np.repeat(x[:, d], STEPS) for d in range(4)}
    return Curves.read(table, settings=[f"x{d}" for d in range(4)])


def spent(seed, *, lucky=True):
    """What a search costs, in full runs, if a full run costs 0.0003 points."""
    curves = family(seed, lucky)
    model = learn.fit(
        curves.select(np.arange(LOG)), full_run_cost=0.0003, options=learn.FitOptions()
    )
    bench = Bench(Table.of(curves), np.arange(LOG, RUNS))
    list(race(bench, model, refit=True))
    return bench.spent / float(curves.total_cost.mean())


def test_a_lucky_run_does_not_hold_a_search(monkeypatch):
    now = [spent(seed) for seed in (1, 6)]
    monkeypatch.setattr(resemblance, "_VAIN", 1e9)
    stubborn = [spent(seed) for seed in (1, 6)]
    assert np.mean(now) < 0.75 * np.mean(stubborn)


def imagined_weight(model):
    """How many runs the imagined runs count for, which come last."""
    return float(model._runs.ladder.weight[-3:].sum())


def test_half_of_the_hope_is_left_after_thirty_runs_without_a_record():
    curves = family(0, lucky=True)
    model = learn.fit(curves.select(np.arange(LOG)), price=1.0, options=learn.FitOptions())
    tail = model.options.tail
    assert imagined_weight(model) == pytest.approx(tail)
    vain = np.argsort(Table.of(curves).top[LOG:, -1])[:30] + LOG
    assert imagined_weight(model.updated(curves.select(vain), model)) == pytest.approx(tail / 2)
    lucky = np.argmax(Table.of(curves).top[:LOG, -1])  # the same score again is no record
    again = curves.select(np.append(vain[:29], lucky))
    assert imagined_weight(model.updated(again, model)) == pytest.approx(tail / 2)
    record = replace(again, score=again.score + 0.01 * (again.run_of_row == 29))
    assert imagined_weight(model.updated(record, model)) == pytest.approx(tail)


def test_a_search_learns_from_its_first_run_on():
    curves = family(0, lucky=True)
    model = learn.fit(curves.select(np.arange(LOG)), price=1.0, options=learn.FitOptions())
    moves = Race(model, available=50)
    learns = refit.Refit(moves)
    fitted = []
    for run in range(20):
        moves.started()
        moves.observe(run, int(model.rungs[0]), 0.5 + 0.001 * run, 1.0)
        before = moves.model
        learns()
        fitted.append(moves.model is not before)
    assert all(fitted[:10])
    assert fitted.count(True) < 20
