"""Peers that know settings: every one of them chooses among the same runs."""

from __future__ import annotations

import os
from itertools import islice

import numpy as np
import pytest

from weitzman.backtest import all_methods, backtest
from weitzman.backtest import methods as halving
from weitzman.backtest.bench import Bench, Table
from weitzman.backtest.library_peers import FullRunBO, PoolSpace, Surrogate, bayes, gittins
from weitzman.backtest.methods import Log
from weitzman.errors import UnknownName
from weitzman.learn import Curves


def made_up(runs=40, seed=0, steps=4, known=True):
    """Curves whose end follows from two settings: a number on a logarithmic scale, a category."""
    rng = np.random.default_rng(seed)
    rate, kind = 10 ** rng.uniform(-4, 0, runs), rng.integers(0, 2, runs)
    top = 1 - 0.1 * (np.log10(rate) + 2) ** 2 - 0.3 * kind
    table = {
        "run": np.repeat(np.arange(runs), steps),
        "step": np.tile(np.arange(1, steps + 1), runs),
        "score": (top[:, None] * (1 - 0.5 ** np.arange(1, steps + 1))).ravel(),
        "cost": np.ones(runs * steps),
    }
    settings = {"run": np.arange(runs), "rate": rate, "kind": np.array(["a", "b"])[kind]}
    return Curves.read(table, settings=settings if known else None, ended=True)


# -- the space --------------------------------------------------------------------------------


def test_points_of_settings():
    settings = [
        {"rate": 1e-4, "kind": "a", "depth": 3},
        {"rate": 1e-2, "kind": "b"},
        {"rate": 1.0, "kind": "a", "depth": 5, "unknown": None},
    ]
    space = PoolSpace.of(settings)
    assert space.encoder.names == ("rate", "kind", "depth")
    assert space.log.tolist() == [True, False, False]
    assert space.categories == [0, 3, 0, 2]  # the last: who lacks a depth
    assert space.points(settings).tolist() == [[0, 0, 0, 0], [0.5, 1, 0, 1], [1, 0, 1, 0]]
    beyond = space.points([{"rate": 100.0, "kind": "new", "depth": 4}])
    assert beyond.tolist() == [[1.0, 2.0, 0.5, 0.0]]
    assert space.features(settings).shape == (3, 1 + 1 + 3 + 1 + 2)


def test_the_nearest_point():
    space = PoolSpace.of([{"x": 0.0, "k": "a"}, {"x": 1.0, "k": "b"}])
    points = np.array([[0.0, 0], [0.9, 0], [0.5, 1]])
    assert space.nearest(np.array([1.0, 0]), points) == 1
    assert space.nearest(np.array([0.0, 1]), points) == 2
    assert space.nearest(np.array([0.0, 0]), points) == 0


def test_settings_that_are_all_alike_leave_no_space():
    space = PoolSpace.of([{"x": 1}, {"x": 1}])
    assert space.points([{"x": 1}]).shape == (1, 0)
    assert space.nearest(np.zeros(0), np.zeros((2, 0))) == 0


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
    seen = known.space.features(pool.settings), last, pool.total_cost
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
        list(halving.percentile(bench, share, first=2, finished=2))
        assert bench.seen.tolist() == naive_percentile(scores, share, 2, 2)


# -- Optuna's TPE --------------------------------------------------------------------------------


def test_tpe_chooses_each_run_once_and_learns():
    pytest.importorskip("optuna")
    from weitzman.backtest.library_peers import documented_pruners

    log, pool = made_up(40, seed=4), made_up(40, seed=5)
    told, whole = Log.of(log, 40, np.random.default_rng(0)), Table.of(pool)
    rule = documented_pruners([10], tree=True)[0].rule(told)
    bench = Bench(whole, np.arange(40))
    began = []
    for _ in rule(bench):
        began.append(int((bench.seen > 0).sum()))
    assert began == list(range(1, 41))  # a new run each time, until all were started
    few = Bench(whole, np.arange(40))
    list(islice(rule(few), 5))
    random = np.mean([whole.top[np.random.default_rng(s).permutation(40)[:5], -1].max()
                      for s in range(200)])  # fmt: skip
    assert few.best > random  # five proposals after a log of 40 are better than five at random


def test_the_methods_by_sampler():
    names = [m.name for m in all_methods()]
    assert names[0] == "index policy"
    assert not any("TPE" in name or "BO" in name for name in names)
    tpe = [m.name for m in all_methods(settings=True, samplers=["tpe"])]
    assert tpe[1:] == [
        f"Optuna TPE + {pruner}Pruner, {n} runs"
        for pruner in ("SuccessiveHalving", "Hyperband") for n in (10, 30, 100)
    ]  # fmt: skip
    assert "full runs, cost-aware BO" in [m.name for m in all_methods(settings=True)]
    with pytest.raises(UnknownName, match="samplers must be some of random, tpe, bo"):
        all_methods(samplers=["grid"])
    with pytest.raises(UnknownName, match="got none"):
        all_methods(samplers=[])


@pytest.mark.slow
def test_all_peers_face_the_same_searches():
    curves = made_up(40, seed=6)
    methods = all_methods(settings=True, samplers=["tpe", "bo"])
    found = backtest(curves, price=[5.0, 50.0], methods=methods, repeats=1, orders=2)
    alone = backtest(curves, price=[5.0, 50.0], methods=[FullRunBO()], repeats=1, orders=2)
    place = found.methods.index("full runs, cost-aware BO")
    assert np.array_equal(found.payoff[place], alone.payoff[0])
    assert np.array_equal(found.payoff[-1], alone.payoff[-1])
    assert (found.regret >= -1e-12).all()


@pytest.mark.skipif("SYNE_TUNE_PYTHON" not in os.environ, reason="needs an older Syne Tune")
@pytest.mark.parametrize("scheduler", ["DyHPO", "PASHA"])
def test_schedulers_of_syne_tune_are_driven_through_a_pipe(scheduler):
    from benchmarks.tuning.syne_tune_peers import scheduled, syne_tune_methods

    curves = made_up(30, seed=7)
    spent = []
    for full_runs in (1, 2):
        bench = Bench(Table.of(curves), np.arange(30))
        list(scheduled(bench, scheduler, full_runs))
        spent.append(bench.spent)
        assert bench.seen.max() > 1  # some run was resumed
    assert spent == [4.0, 8.0]
    names = [method.name for method in syne_tune_methods()]
    assert f"Syne Tune {scheduler}, cost of 1 full run" in names
    assert len(names) == 10


def test_studies_with_tpe_draw_by_the_order():
    """Two orders of the same runs are two searches, with a log too, and each is reproducible."""
    pytest.importorskip("optuna")
    curves = made_up(60, seed=8)
    table = Table.of(curves)
    log = Log.of(curves.select(np.arange(30)), 30, np.random.default_rng(0))
    method = next(m for m in all_methods(settings=True) if m.name.startswith("Optuna TPE + Succ"))
    rule = method.learn(log, [1.0])[0].rule

    def started(order):
        bench = Bench(table, order)
        list(islice(rule(bench), 3))
        return set(order[bench.seen > 0].tolist())

    orders = [np.random.default_rng(k).permutation(np.arange(30, 60)) for k in range(6)]
    first = [started(order) for order in orders]
    assert first == [started(order) for order in orders]
    assert len({frozenset(some) for some in first}) > 1
