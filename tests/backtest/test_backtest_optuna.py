"""Optuna's pruners on the bench do what they do in a study of Optuna's own."""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from test_backtest import curves, random_curves

from weitzman.backtest import library_peers as ours
from weitzman.backtest.bench import Bench, Table
from weitzman.backtest.methods import Log
from weitzman.backtest.peers import all_methods

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.tuning.more_peers import options

optuna = pytest.importorskip("optuna")

RUNS, ROWS = 30, 16


def in_a_study(pruner, scores, rows):
    """Rows that each trial sees in ``study.optimize`` when it reports at the rows given."""
    seen = []

    def objective(trial):
        line = scores[trial.number]
        seen.append(0)
        for k, score in enumerate(line, 1):
            seen[-1] = k
            if k in rows:
                trial.report(score, k)
                if k < len(line) and trial.should_prune():
                    raise optuna.TrialPruned
        return max(line[k - 1] for k in rows if k <= len(line))

    seed = Bench(Table.of(curves(scores)), np.arange(len(scores))).seed
    study = optuna.create_study(direction="maximize", pruner=pruner, study_name=f"backtest {seed}")
    study.optimize(objective, n_trials=len(scores))
    return seen


def on_the_bench(rule, scores):
    bench = Bench(Table.of(curves(scores)), np.arange(len(scores)))
    for _ in rule(bench):
        pass
    return bench.seen.tolist()


def some_log() -> Log:
    c = curves([[0.1] * ROWS])
    return Log(c, Table.of(c), np.zeros((1, 1), np.int64))


@pytest.fixture(autouse=True)
def _silent():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield


@pytest.mark.parametrize("rate", [2, 3])
@pytest.mark.parametrize("least", [1, 4])
def test_halving_needs_reports_at_its_rungs_only(rate, least):
    scores = np.random.default_rng(rate).random((RUNS, ROWS)).tolist()
    name = "SuccessiveHalvingPruner"
    rule = options(some_log(), name)[f"rate {rate}, from {least} rows"]
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=least, reduction_factor=rate)
    wanted = in_a_study(pruner, scores, range(1, ROWS + 1))
    assert on_the_bench(rule, scores) == wanted
    assert min(wanted) < ROWS


def test_hyperband_needs_reports_at_its_rungs_only():
    scores = np.random.default_rng(0).random((RUNS, ROWS)).tolist()
    rule = options(some_log(), "HyperbandPruner")["rate 2, from 1 rows"]
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=ROWS, reduction_factor=2)
    wanted = in_a_study(pruner, scores, range(1, ROWS + 1))
    assert on_the_bench(rule, scores) == wanted
    assert min(wanted) < ROWS


@pytest.mark.parametrize("name", ["SuccessiveHalvingPruner", "HyperbandPruner", "MedianPruner"])
def test_pruners_as_documented(name):
    """Reports at the rungs of the default rate: with others Hyperband would prune elsewhere."""
    level = np.random.default_rng(1).random((RUNS, 1))
    scores = (level + 0.05 * np.random.default_rng(2).random((RUNS, ROWS))).tolist()
    (method,) = (
        m for m in ours.documented_pruners([RUNS]) if m.name == f"Optuna {name}, {RUNS} runs"
    )
    rows = range(1, ROWS + 1) if name != "MedianPruner" else (1, 2, 4, 8, 16)
    wanted = in_a_study(getattr(optuna.pruners, name)(), scores, rows)
    assert on_the_bench(method.rule(some_log()), scores) == wanted
    assert min(wanted) < ROWS


def test_a_diverged_run_is_pruned_and_paid_up_to_there():
    scores = [[0.1, 0.2, 0.3, 0.4], [0.5, np.nan, np.nan, np.nan]]
    rule = partial(ours.pruned, pruner=optuna.pruners.NopPruner, rows=(1, 2, 4))
    assert on_the_bench(rule, scores) == [4, 2]


def test_runs_longer_than_the_log_are_told_to_the_study():
    rule = partial(ours.pruned, pruner=optuna.pruners.NopPruner, rows=(1, 2))
    assert on_the_bench(rule, [[0.1, 0.2, 0.3]] * 2) == [2, 2]


def test_they_leave_optuna_as_it_was():
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    rule = partial(ours.pruned, pruner=optuna.pruners.MedianPruner, rows=(1, 2, 4))
    bench = Bench(Table.of(random_curves(np.random.default_rng(3))), np.arange(30))
    for _ in islice(rule(bench), 5):
        assert optuna.logging.get_verbosity() == optuna.logging.WARNING
    assert (bench.seen > 0).sum() == 5


def test_a_study_knows_the_curves_of_the_log():
    """A pruner prunes the first trial by what logged runs reported, as after running them."""
    c = curves([[0.5 + 0.01 * i] * ROWS for i in range(20)])
    c = replace(c, settings=tuple({"x": float(i)} for i in range(20)))
    log = Log(c, Table.of(c), np.zeros((1, 20), np.int64))
    for method in ours.documented_pruners([10], tree=True):
        searched = Table.of(replace(c, score=np.where(c.score > 0, 0.1, 0.1)))
        bench = Bench(searched, np.arange(20))
        for _ in islice(method.rule(log)(bench), 3):
            pass
        assert bench.seen.max() < ROWS, method.name
        alone = Log(None, log.table, log.orders)
        bench = Bench(searched, np.arange(20))
        next(method.rule(alone)(bench))
        assert bench.seen.max() == ROWS


def test_few_trials_of_tpe_are_not_all_random(monkeypatch):
    said = []
    make = optuna.samplers.TPESampler
    monkeypatch.setattr(
        optuna.samplers, "TPESampler",
        lambda **options: said.append(options["n_startup_trials"]) or make(**options),
    )  # fmt: skip
    c = random_curves(np.random.default_rng(3))
    log = Log(None, Table.of(c), np.zeros((1, 30), np.int64))
    for n in (2, 10, 30, 100):
        next(ours.documented_pruners([n], tree=True)[0].rule(log)(Bench(log.table, np.arange(30))))
    assert said == [1, 2, 7, 10]


def test_without_optuna_its_methods_are_left_out(monkeypatch):
    there = [m.name for m in all_methods()]
    assert sum("Optuna" in name for name in there) == 3
    monkeypatch.setattr("weitzman.backtest.library_peers.find_spec", lambda name: None)
    assert [m.name for m in all_methods()] == [n for n in there if "Optuna" not in n]
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=r"weitzman\[optuna\]"):
        options(some_log(), "HyperbandPruner")
