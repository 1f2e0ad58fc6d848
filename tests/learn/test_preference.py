"""Resemblance or best scores so far: whichever forecasts the log better."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from weitzman import learn
from weitzman.learn import Curves, LineModel, Resemblance, ResemblanceModel
from weitzman.learn.preference import forecast_errors, resemblance_wins


def log(seed, told, n=60, steps=6):
    """Runs that keep a level; ``told`` is the share of the level that the settings tell."""
    random = np.random.default_rng(seed)
    level, other = random.uniform(size=(2, n))
    noise = 0.1 * random.normal(size=(n, steps))
    score = level[:, None] * np.linspace(0.2, 1.0, steps) + noise
    rate = told * level + (1.0 - told) * other
    table = {
        "run": np.repeat(np.arange(n), steps),
        "step": np.tile(np.arange(1, steps + 1), n),
        "score": score.ravel(),
        "cost": np.ones(n * steps),
        "rate": np.repeat(rate, steps),
    }
    return Curves.read(table, settings=["rate"])


def plain_errors(model: ResemblanceModel, r: int):
    """The definition, run by run: the ranked probability score on a fine grid."""
    ladder = model.ladder
    n, final = len(ladder), ladder.best[:, -1]
    grid = np.linspace(final.min() - 0.1, final.max() + 0.1, 20001)
    step = grid[1] - grid[0]
    below = final <= grid[:, None]
    errors = np.zeros((n, 3))
    like = model.resembling(r, np.arange(n))
    for i in range(n):
        others = np.arange(n) != i
        rows = [like[i], others / others.sum(), others / others.sum()]
        if r:
            gap = np.abs(ladder.best[:, r - 1] - ladder.best[i, r - 1])
            reach = 1.001 * np.sort(gap[others])[int(np.ceil(np.sqrt(n))) - 1]
            near = np.maximum(1.0 - (gap / reach) ** 2, 0.0) * others
            rows[1] = near / near.sum()
        for k, row in enumerate(rows):
            errors[i, k] = np.square(below @ row - (final[i] <= grid)).sum() * step
    return errors.mean(axis=0)


def test_errors_are_those_of_the_definition():
    model = learn.fit(log(1, told=0.5, n=49), price=10, settings=Resemblance(tail=0.0))
    assert isinstance(model, ResemblanceModel)
    found = forecast_errors(model, 1.0)
    assert len(found) == len(model.rungs)
    for r in (0, 2, len(model.rungs) - 1):
        by, first, nothing = plain_errors(model, r)
        assert found[r, 0] == pytest.approx(by / nothing, rel=0.01)
        assert found[r, 1] == pytest.approx(first / nothing, rel=0.01)
        assert found[r, 2] == pytest.approx(6.0 / model.rungs[r])


def test_no_run_resembles_itself():
    curves = log(2, told=0.5)
    model = learn.fit(curves, price=10, settings=Resemblance())
    assert isinstance(model, ResemblanceModel)
    row = model.resembling(1, np.arange(60))
    assert (np.diag(row) == 0).all()
    assert row.sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(3))
def test_the_model_that_forecasts_better_is_taken(seed):
    """Settings that tell all are used; of settings that tell nothing, the errors decide."""
    assert isinstance(learn.fit(log(seed, told=1.0), price=10), ResemblanceModel)
    curves = log(seed, told=0.0, n=30)
    stated = learn.fit(curves, price=10, settings=Resemblance())
    assert isinstance(stated, ResemblanceModel)
    by, first, weight = forecast_errors(stated, 1.0).T
    wins = np.average(by, weights=weight) <= np.average(first, weights=weight)
    assert isinstance(learn.fit(curves, price=10), ResemblanceModel if wins else LineModel)


def test_settings_that_only_mislead_are_left_alone():
    """Runs come in pairs whose settings are nearly the same and whose last scores differ most."""
    curves = log(0, told=0.0, n=20)
    odd = [{"rate": i // 2 + 0.1 * (i % 2)} for i in range(20)]
    order = np.argsort(curves.score[curves.start[1:] - 1])
    pairs = np.column_stack([order[:10], order[10:]]).ravel()
    model = learn.fit(replace(curves.select(pairs), settings=tuple(odd)), price=10)
    assert isinstance(model, LineModel)


def test_a_log_of_few_runs_keeps_resemblance():
    curves = log(0, told=0.0, n=5)
    assert isinstance(learn.fit(curves, price=10), ResemblanceModel)
    cut = replace(log(0, told=0.0), ended=np.zeros(60, bool))
    model = learn.fit(cut.select(np.arange(20)), price=10, settings=Resemblance())
    assert isinstance(model, ResemblanceModel)
    assert resemblance_wins(model, 1.0) in (True, False)
