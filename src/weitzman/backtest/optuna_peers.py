"""Optuna's own pruners, driven run by run through ask, report, should_prune and tell.

A trial is a run of the bench. Steps are rows of its curve, counted from 1. Scores are reported at
the rows given; a run that has diverged is pruned. A pruned trial is never resumed, as always in
Optuna.

With TPE as the sampler a trial is the run whose settings are nearest to the proposal, among the
runs that were not started. The study then knows the runs of the log from the beginning: their
settings, their intermediate values at the same rows, and their best scores.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from .._common.arrays import FloatArray
from .._common.optional import need
from ..learn.log_tables import Config
from .bench import Bench, PoolSpace, Table
from .methods import Documented, Log, Method, Rule, Tuned

_RATES = (2, 3, 4)
_LEAST = (1, 2, 4)  # rows of the first rung
_REHEARSALS = 8  # Optuna is about a hundred times slower per step
_LONGEST = 128  # trials
_STARTUP = 10  # trials before TPE, by Optuna's default; a study of fewer than 40 has a quarter
_REPORTS = {"SuccessiveHalvingPruner": 4, "HyperbandPruner": 3, "MedianPruner": 2}  # rates of rows


def optuna_installed() -> bool:
    """Whether these methods can be used."""
    return find_spec("optuna") is not None


def tuned_pruners() -> list[Method]:
    """Pruners whose options and number of trials are chosen on the log."""
    names = list(_REPORTS)[:2]
    return [
        Tuned(f"Optuna {name}", partial(_options, name=name), _REHEARSALS, _LONGEST)
        for name in names
    ]


def documented_pruners(trials: Sequence[int], *, tree: bool = False) -> list[Method]:
    """The pruners with their default options and a given number of trials each.

    With ``tree`` TPE chooses what to start; for runs whose settings are known.
    """
    return [
        Documented(
            f"Optuna {'TPE + ' if tree else ''}{name}, {n} runs",
            partial(_as_it_comes, name=name, trials=n if tree else None),
            n,
        )
        for name in list(_REPORTS)[: 2 if tree else 3]
        for n in trials
    ]


def _as_it_comes(log: Log, name: str, trials: int | None) -> Rule:
    make = getattr(need("optuna", "optuna").pruners, name)
    rule = partial(pruned, pruner=make, rows=ladder(1, _REPORTS[name], log.most))
    known = None if log.given is None else log.table
    return rule if trials is None else partial(rule, trials=trials, known=known)


def _options(log: Log, name: str) -> dict[str, Rule]:
    make = getattr(need("optuna", "optuna").pruners, name)
    most = {"max_resource": log.most} if name == "HyperbandPruner" else {}
    return {
        f"rate {rate}, from {least} rows": partial(
            pruned,
            pruner=partial(make, min_resource=least, reduction_factor=rate, **most),
            rows=ladder(least, rate, log.most),
        )
        for rate in _RATES
        for least in _LEAST
        if least <= log.most
    }


def ladder(least: int, rate: int, most: int) -> tuple[int, ...]:
    """Rows at which scores are reported. Halving ignores rows between its rungs."""
    rows = []
    while least < most:
        rows.append(least)
        least *= rate
    return (*rows, most)


def pruned(
    bench: Bench, pruner: Callable[[], Any], rows: Sequence[int], trials: int | None = None,
    known: Table | None = None,
) -> Iterator[None]:  # fmt: skip
    """Play a study with a pruner, one trial after the other; yields after each trial.

    Runs are started in the order of the bench, or, in a study of a given number of ``trials``, as
    TPE proposes. ``known`` are runs that the study has from the beginning.
    """
    optuna = need("optuna", "optuna")
    with _quiet(optuna):
        study = optuna.create_study(
            direction="maximize",
            sampler=optuna.samplers.RandomSampler(seed=0),
            pruner=pruner(),
            study_name="backtest",  # Hyperband draws brackets by it
        )
        sampler = None
        if trials is not None:
            settings = bench.settings or [{}] * len(bench)
            sampler = _pool_sampler(optuna, trials, settings, known)
            if known is not None:
                _tell(study, sampler, known, rows)
            study.sampler = sampler
    for turn in range(len(bench)):
        with _quiet(optuna):
            trial = study.ask(None if sampler is None else sampler.distributions)
            run = turn if sampler is None else sampler.chosen
            best = -np.inf
            for row in rows:
                score = bench.advance(run, row)
                if score > -np.inf:
                    trial.report(score, row)
                    best = max(best, score)
                    if bench.is_over(run):
                        study.tell(trial, best)
                        break
                if score == -np.inf or trial.should_prune():
                    study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                    break
            else:  # longer than any run of the log
                study.tell(trial, best)
        yield


def _tell(study: Any, sampler: Any, known: Table, rows: Sequence[int]) -> None:
    """Make each known run a trial that was never pruned, with its reports."""
    for run, point in enumerate(sampler.space.points(known.settings)):
        study.enqueue_trial(sampler.parameters(point))
        trial = study.ask(sampler.distributions)
        length = known.length[run]
        for row in sorted({min(row, length) for row in rows}):
            if known.score[run, row - 1] == -np.inf:
                break
            trial.report(float(known.score[run, row - 1]), int(row))
            trial.should_prune()  # halving notes here which rungs a trial has reached
        study.tell(trial, float(known.top[run, length - 1]))


def _pool_sampler(optuna: Any, trials: int, settings: Sequence[Config], known: Any) -> Any:
    """TPE whose proposals are moved to the nearest runs that were not started."""
    inner = optuna.samplers.TPESampler(
        multivariate=True, seed=0, n_startup_trials=max(min(_STARTUP, trials // 4), 1)
    )
    space = PoolSpace.of(settings if known is None else known.settings)
    points, free = space.points(settings), list(range(len(settings)))
    make = optuna.distributions

    class PoolSampler(optuna.samplers.BaseSampler):  # type: ignore[misc]
        def __init__(self) -> None:
            self.chosen = -1  # the run of the last trial
            self.space = space
            self.distributions = {
                f"x{d}": make.CategoricalDistribution(list(range(size))) if size
                else make.FloatDistribution(0.0, 1.0)
                for d, size in enumerate(space.categories)
            }  # fmt: skip

        def parameters(self, point: FloatArray) -> dict[str, Any]:
            pairs = zip(point.tolist(), space.categories, strict=True)
            return {f"x{d}": int(x) if size else float(x) for d, (x, size) in enumerate(pairs)}

        def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
            return self.distributions

        def sample_relative(self, study: Any, trial: Any, search_space: Any) -> dict[str, Any]:
            proposed = inner.sample_relative(study, trial, search_space)
            place = 0  # without a proposal the next run in order
            if proposed:
                point = np.array([float(proposed[name]) for name in self.distributions])
                place = space.nearest(point, points[free])
            self.chosen = free.pop(place)
            return self.parameters(points[self.chosen])

        def sample_independent(self, study: Any, trial: Any, name: str, distribution: Any) -> Any:
            return inner.sample_independent(study, trial, name, distribution)  # abstract above

    return PoolSampler()


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Silence messages about single trials and about curves of unequal length."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)
