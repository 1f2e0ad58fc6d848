"""Peers that need Optuna: its pruners, with runs in the order given or as TPE proposes them.

Pruners are driven run by run through ask, report, should_prune and tell. A trial is a run of the
bench. Steps are rows of its curve, counted from 1. Scores are reported at the rows given; a run
that has diverged is pruned. A pruned trial is never resumed, as always in Optuna.

TPE proposes points of a whole space of settings. The nearest run that was not started is taken, so
that every method chooses among the same runs (:class:`PoolSpace`). The study knows the runs of the
log from the beginning: their settings, their intermediate values at the same rows, and their best
scores.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from .._common.arrays import BoolArray, FloatArray
from .._common.optional import need
from ..learn.log_tables import Config, Encoder
from .bench import Bench, Table
from .methods import Documented, Log, Method, Rule

_DECADES = 100.0  # a scale is logarithmic if the ratio of its ends is at least this

_STARTUP = 10  # trials before TPE, by Optuna's default; a study of fewer than 40 has a quarter
PRUNERS = {"SuccessiveHalvingPruner": 4, "HyperbandPruner": 3, "MedianPruner": 2}  # rates of rows


@dataclass(frozen=True, slots=True, eq=False)
class PoolSpace:
    """The space that settings lie in: numbers from 0 to 1, and categories.

    ``low`` and ``high`` are the range of each number, logarithms where ``log`` says so. ``missing``
    numbers are those that some runs lack: there the number is taken as the least one, and a
    category of its own says which runs lack it.
    """

    encoder: Encoder
    low: FloatArray
    high: FloatArray
    log: BoolArray
    missing: BoolArray

    @classmethod
    def of(cls, settings: Sequence[Config]) -> PoolSpace:
        """The space of all these settings."""
        encoder = Encoder.of(settings)
        raw = encoder.numbers(settings, len(settings))
        number = ~encoder.is_category
        low = np.where(np.isnan(raw), np.inf, raw).min(axis=0, initial=np.inf)
        high = np.where(np.isnan(raw), -np.inf, raw).max(axis=0, initial=-np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            log = number & (low > 0) & (high / low >= _DECADES)
            low, high = (np.where(log, np.log(x), x) for x in (low, high))
        return cls(encoder, low, high, log, number & np.isnan(raw).any(axis=0))

    @property
    def categories(self) -> list[int]:
        """For each column of :meth:`points` how many categories it has; 0 for a number."""
        kinds = self.encoder.categories
        return [0 if k is None else len(k) + 1 for k in kinds] + [2] * int(self.missing.sum())

    def points(self, settings: Sequence[Config]) -> FloatArray:
        """One row for each run: numbers from 0 to 1, and codes of categories."""
        raw = self.encoder.numbers(settings, len(settings))
        lack = np.isnan(raw)
        with np.errstate(divide="ignore", invalid="ignore"):
            number = np.where(self.log, np.log(raw), raw)
            unit = (number - self.low) / np.where(self.high > self.low, self.high - self.low, 1.0)
        unit = np.clip(np.where(lack, 0.0, unit), 0.0, 1.0)
        other = np.array(self.categories[: raw.shape[1]]) - 1  # missing, or not in the space
        code = np.where(lack, other, np.minimum(raw, other))
        which = self.encoder.is_category
        return np.column_stack([np.where(which, code, unit), lack[:, self.missing]])

    def nearest(self, point: FloatArray, points: FloatArray) -> int:
        """The row nearest to a point, the first of several; categories differ by 1."""
        apart, named = np.abs(points - point), np.array(self.categories) > 0
        return int(np.argmin(np.where(named, apart > 0, apart**2).sum(axis=1)))


def optuna_installed() -> bool:
    """Whether Optuna's methods can be used."""
    return find_spec("optuna") is not None


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
        for name in list(PRUNERS)[: 2 if tree else 3]
        for n in trials
    ]


def _as_it_comes(log: Log, name: str, trials: int | None) -> Rule:
    make = getattr(need("optuna", "optuna").pruners, name)
    known = None if log.given is None or trials is None else log.table
    rows = ladder(1, PRUNERS[name], log.most)
    return partial(pruned, pruner=make, rows=rows, trials=trials, known=known)


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
            sampler=optuna.samplers.RandomSampler(seed=bench.seed),
            pruner=pruner(),
            study_name=f"backtest {bench.seed}",  # Hyperband draws brackets by it
        )
        sampler = None
        if trials is not None:
            settings = bench.settings or [{}] * len(bench)
            sampler = _pool_sampler(optuna, trials, settings, known, bench.seed)
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


def _pool_sampler(
    optuna: Any, trials: int, settings: Sequence[Config], known: Any, seed: int
) -> Any:
    """TPE whose proposals are moved to the nearest runs that were not started."""
    inner = optuna.samplers.TPESampler(
        multivariate=True, seed=seed, n_startup_trials=max(min(_STARTUP, trials // 4), 1)
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
