"""Optuna's own pruners, driven run by run through ask, report, should_prune and tell.

A trial is a run of the bench. Steps are rows of its curve, counted from 1. Scores are reported at
the rows given; a run that has diverged is pruned. A pruned trial is never resumed, as always in
Optuna.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from .._common.optional import need
from .bench import Bench
from .methods import Fixed, Log, Method, Rule, Tuned

_RATES = (2, 3, 4)
_LEAST = (1, 2, 4)  # rows of the first rung
_REHEARSALS = 8  # a step in Optuna takes as long as a hundred elsewhere
_LONGEST = 128  # trials
_WILCOXON = 2, 96  # the same for a pruner that is a hundred times slower still


def installed() -> bool:
    """Whether these methods can be used."""
    return find_spec("optuna") is not None


def optuna_methods() -> list[Method]:
    """The pruners, as methods whose options are chosen on the log."""
    return [
        Tuned("Optuna SuccessiveHalvingPruner", _successive_halving, _REHEARSALS, _LONGEST),
        Tuned("Optuna HyperbandPruner", _hyperband, _REHEARSALS, _LONGEST),
        Tuned("Optuna MedianPruner", _median, _REHEARSALS, _LONGEST),
        Tuned("Optuna WilcoxonPruner", _wilcoxon, *_WILCOXON),
    ]


def documented_pruners(trials: Sequence[int]) -> list[Method]:
    """The pruners as they come, with so many trials each."""
    return [
        Fixed(f"Optuna {name}, {n} runs", partial(_as_it_comes, name=name), n)
        for name in ("SuccessiveHalvingPruner", "HyperbandPruner", "MedianPruner")
        for n in trials
    ]


def _as_it_comes(most: int, name: str) -> Rule:
    make = getattr(need("optuna", "optuna").pruners, name)
    return partial(pruned, pruner=make, rows=_ladder(1, 2, most))


def pruned(bench: Bench, pruner: Callable[[], Any], rows: Sequence[int]) -> Iterator[None]:
    """Play a study with a pruner, one trial after the other; yields after each."""
    optuna = need("optuna", "optuna")
    with _quiet(optuna):
        study = optuna.create_study(
            direction="maximize",
            sampler=optuna.samplers.RandomSampler(seed=0),
            pruner=pruner(),
            study_name="replay",  # Hyperband draws brackets by it
        )
    for run in range(len(bench)):
        with _quiet(optuna):
            trial = study.ask()
            best = _trained(bench, run, trial, rows)
            state = optuna.trial.TrialState
            if best is None:
                study.tell(trial, state=state.PRUNED)
            else:
                study.tell(trial, best)
        yield


def _trained(bench: Bench, run: int, trial: Any, rows: Sequence[int]) -> float | None:
    """Train a run until it ends or is pruned: the best score reported, None if pruned."""
    best = -np.inf
    for row in rows:
        score = bench.advance(run, row)
        if score == -np.inf:
            return None
        trial.report(score, row)
        best = max(best, score)
        if bench.is_over(run):
            break
        if trial.should_prune():
            return None
    return best


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """No word on every trial, nor on curves of unequal length."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)


def _ladder(least: int, rate: int, most: int) -> tuple[int, ...]:
    """Rows at which scores are reported. Between its rungs successive halving takes no notice."""
    rows = []
    while least < most:
        rows.append(least)
        least *= rate
    return (*rows, most)


def _successive_halving(log: Log) -> dict[str, Rule]:
    make = need("optuna", "optuna").pruners.SuccessiveHalvingPruner
    return {
        f"rate {rate}, from {least} rows": partial(
            pruned,
            pruner=partial(make, min_resource=least, reduction_factor=rate),
            rows=_ladder(least, rate, log.most),
        )
        for rate in _RATES
        for least in _LEAST
    }


def _hyperband(log: Log) -> dict[str, Rule]:
    make = need("optuna", "optuna").pruners.HyperbandPruner
    return {
        f"rate {rate}, from {least} rows": partial(
            pruned,
            pruner=partial(make, min_resource=least, max_resource=log.most, reduction_factor=rate),
            rows=_ladder(least, rate, log.most),
        )
        for rate in _RATES
        for least in _LEAST
        if least <= log.most
    }


def _median(log: Log) -> dict[str, Rule]:
    make = need("optuna", "optuna").pruners.MedianPruner
    return {
        f"{startup} full runs first, then from {warm + 1} rows": partial(
            pruned,
            pruner=partial(make, n_startup_trials=startup, n_warmup_steps=warm + 1),
            rows=_ladder(1, 2, log.most),
        )
        for startup in (1, 3, 5)
        for warm in sorted({0, log.most // 8, log.most // 3})
    }


def _wilcoxon(log: Log) -> dict[str, Rule]:
    make = need("optuna", "optuna").pruners.WilcoxonPruner
    return {
        f"p = {p:g}": partial(
            pruned, pruner=partial(make, p_threshold=p), rows=_ladder(1, 2, log.most)
        )
        for p in (0.05, 0.1, 0.3)
    }
