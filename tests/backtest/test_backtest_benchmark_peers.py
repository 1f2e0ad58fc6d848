"""The peers that only the benchmark needs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from test_backtest_samplers import made_up

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.tuning.more_peers import (
    FullRunBO,
    Surrogate,
    bayes,
    features,
    gittins,
    more_peers,
    percentile,
)
from weitzman.backtest import backtest
from weitzman.backtest.bench import Bench, Table
from weitzman.learn import Curves

# -- cost-aware Bayesian optimization ------------------------------------------------------------


def test_the_index_of_a_normal_box_solves_its_equation():
    scipy = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    mean, spread, cost = rng.normal(size=20), rng.uniform(0.1, 3, 20), rng.uniform(0.001, 3, 20)
    g = gittins(mean, spread, cost)
    for m, s, c, x in zip(mean, spread, cost, g, strict=True):
        law = scipy.norm(m, s)
        gain = law.expect(lambda f, x=x: f - x, lb=x, ub=m + 40 * s)
        assert gain == pytest.approx(c, rel=1e-5)


def test_bayesian_optimization_takes_the_most_promising_run_and_stops():
    pytest.importorskip("sklearn")
    log, pool = made_up(60, seed=1), made_up(60, seed=2)
    table = Table.of(pool)
    ends = np.arange(60), np.diff(log.start) - 1
    known = Surrogate.of(log.settings, Table.of(log).top[ends], log.total_cost)
    bench = Bench(table, np.arange(60))
    list(bayes(bench, known, price=1000.0))
    started = int((bench.seen > 0).sum())
    assert bench.best == pytest.approx(table.top.max(), abs=0.01)
    assert started < 20
    assert all(bench.seen[bench.seen > 0] == 4)  # full runs only
    dear = Bench(table, np.arange(60))
    list(bayes(dear, known, price=0.001))
    assert (dear.seen > 0).sum() == 1


def test_the_price_of_a_candidate_is_its_mean_cost():
    """Costs of the log are lognormal, with a mean far above the median."""
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    cost, score = np.exp(2.0 * rng.standard_normal(300)), rng.standard_normal(300)
    known = Surrogate.of([{}] * 300, score, cost)
    nothing = np.zeros(0)
    (index,) = known.indices(known.features[:0], nothing, nothing, known.features[:1], price=20.0)
    mean = np.exp(np.log(cost).mean() + 0.5 * np.log(cost).var())
    (wanted,) = gittins(np.full(1, score.mean()), np.full(1, score.std()), np.full(1, mean / 20))
    assert index == pytest.approx(wanted, abs=0.1)
    (median,) = gittins(np.full(1, score.mean()), np.full(1, score.std()), np.full(1, 1 / 20))
    assert median > index + 0.5


def test_kernels_are_fitted_again_to_what_was_seen():
    """In the log scores are noise; in the search they follow from the settings."""
    pytest.importorskip("sklearn")
    log, pool = made_up(30, seed=1), made_up(60, seed=2)
    noise = 0.1 * np.random.default_rng(3).standard_normal(30)
    known = Surrogate.of(log.settings, noise, log.total_cost)
    last = Table.of(pool).top[:, -1]
    seen = features(known.space, pool.settings), last, pool.total_cost
    before, after = (
        x._process(0, *seen).log_marginal_likelihood_value_ for x in (known, known.fitted(*seen))
    )
    assert after > before + 1.0
    fits = []
    fitted = Surrogate.fitted

    def counted(self, x, *rest, **options):
        fits.append(len(x))
        return fitted(self, x, *rest, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Surrogate, "fitted", counted)
        bench = Bench(Table.of(pool), np.arange(60))
        list(bayes(bench, known, price=1e6))
    assert fits == [2**k for k in range(len(fits))]
    assert len(fits) >= 3


def test_without_settings_all_candidates_are_alike():
    pytest.importorskip("sklearn")
    log = made_up(20, known=False)
    known = Surrogate.of([{}] * 20, Table.of(log).top[:, -1], log.total_cost)
    bench = Bench(Table.of(log), np.arange(20))
    list(bayes(bench, known, price=0.001))
    assert np.flatnonzero(bench.seen).tolist() == [0]


# -- percentile stopping -------------------------------------------------------------------------


def naive_percentile(scores, share, first, finished):
    """Rows seen of each run, written as a person would."""
    seen, whole, rows = {}, 0, []
    for curve in scores:
        row = 1
        while True:
            seen.setdefault(row, []).append(curve[row - 1])
            if row == len(curve):
                whole += 1
                break
            worse = curve[row - 1] < np.percentile(seen[row], share)
            if whole >= finished and row >= first and worse:
                break
            row = min(2 * row, len(curve))
        rows.append(row)
    return rows


@pytest.mark.parametrize("share", [25.0, 50.0, 75.0])
def test_percentile_stopping_as_a_person_would(share):
    rng = np.random.default_rng(3)
    for _ in range(20):
        scores = np.cumsum(rng.random((8, 6)), axis=1)
        table = {
            "run": np.repeat(np.arange(8), 6), "step": np.tile(np.arange(1, 7), 8),
            "score": scores.ravel(), "cost": np.ones(48),
        }  # fmt: skip
        bench = Bench(Table.of(Curves.read(table)), np.arange(8))
        list(percentile(bench, share, first=2, finished=2))
        assert bench.seen.tolist() == naive_percentile(scores, share, 2, 2)


# -- all of them ---------------------------------------------------------------------------------


def test_the_methods_by_name():
    assert [m.name for m in more_peers()] == [
        "percentile rule", "Optuna SuccessiveHalvingPruner", "Optuna HyperbandPruner",
        "full runs, cost-aware BO",
    ]  # fmt: skip
    pytest.importorskip("sklearn")
    few = {"methods": [FullRunBO()], "repeats": 1, "orders": 2}
    found = backtest(made_up(40, seed=6), price=[5.0, 50.0], **few)
    assert (found.regret >= -1e-12).all()


@pytest.mark.skipif("SYNE_TUNE_PYTHON" not in os.environ, reason="needs an older Syne Tune")
@pytest.mark.parametrize("scheduler", ["DyHPO", "PASHA"])
def test_schedulers_of_syne_tune_are_driven_through_a_pipe(scheduler):
    from benchmarks.tuning.syne_tune_peers import scheduled, syne_tune_methods

    curves = made_up(12, seed=7, steps=20)
    spent = []
    for full_runs in (1, 2, 10):
        bench = Bench(Table.of(curves), np.arange(12))
        list(scheduled(bench, scheduler, full_runs, 10))
        spent.append(bench.spent)
    assert bench.seen.max() > 1  # some run was resumed
    assert spent[0] == 20.0
    if scheduler == "DyHPO":  # it continues when there is no new run to start
        assert spent[1:] == [40.0, 200.0]
        assert bench.seen.min() > 0
    names = [method.name for method in syne_tune_methods("held_out")]
    assert f"Syne Tune {scheduler}, cost of 1 full run" in names
    assert len(names) == 10
    assert len(syne_tune_methods("algoperf")) == 8
