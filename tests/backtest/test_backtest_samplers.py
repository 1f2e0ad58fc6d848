"""Peers that know settings: every one of them chooses among the same runs."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from weitzman.backtest import all_methods, backtest
from weitzman.backtest.bench import Bench, Table
from weitzman.backtest.library_peers import PoolSpace
from weitzman.backtest.methods import Log
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


def test_tpe_is_there_if_settings_are_known():
    pytest.importorskip("optuna")
    names = [m.name for m in all_methods()]
    assert names[0] == "index policy"
    assert [m.name for m in all_methods(settings=True)] == names + [
        f"Optuna TPE + {pruner}Pruner, {n} runs"
        for pruner in ("SuccessiveHalving", "Hyperband") for n in (10, 30, 100)
    ]  # fmt: skip


@pytest.mark.slow
def test_all_peers_face_the_same_searches():
    pytest.importorskip("optuna")
    curves = made_up(40, seed=6)
    methods = [m for m in all_methods(settings=True) if "TPE" in m.name]
    found = backtest(curves, price=[5.0, 50.0], methods=methods, repeats=1, orders=2)
    alone = backtest(curves, price=[5.0, 50.0], methods=methods[-1:], repeats=1, orders=2)
    assert np.array_equal(found.payoff[-2:], alone.payoff)
    assert (found.regret >= -1e-12).all()


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
