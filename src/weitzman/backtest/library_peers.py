"""Peers that need other libraries: Optuna's pruners and TPE, and cost-aware Bayesian optimization.

Optuna's own pruners are driven run by run through ask, report, should_prune and tell. A trial is a
run of the bench. Steps are rows of its curve, counted from 1. Scores are reported at the rows
given; a run that has diverged is pruned. A pruned trial is never resumed, as always in Optuna.

Samplers propose points of a whole space of settings. The nearest run that was not started is taken,
so that every method chooses among the same runs (:class:`PoolSpace`). With TPE, the study knows the
runs of the log from the beginning: their settings, their intermediate values at the same rows, and
their best scores.

Bayesian optimization trains full runs: a Gaussian process over the settings forecasts the best
score of a run, another one the logarithm of its cost. The index of a candidate is the g that solves
E(f(x) - g)+ = c(x) / price (Xie et al., 2024, "Cost-aware Bayesian optimization via the Pandora's
box Gittins index"). The candidate with the highest index is trained to its end; stop when no index
is above the best score so far (Xie et al., 2025, "Cost-aware stopping for Bayesian optimization").
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from .._common.arrays import BoolArray, FloatArray
from .._common.optional import need
from ..learn.log_tables import Config, Encoder
from .bench import Bench, Table
from .methods import Documented, Log, Method, MethodPlan, Rule, Tuned

_DECADES = 100.0  # a scale is logarithmic if the ratio of its ends is at least this

_RATES = (2, 3, 4)
_LEAST = (1, 2, 4)  # rows of the first rung
_REHEARSALS = 8  # Optuna is about a hundred times slower per step
_LONGEST = 128  # trials
_STARTUP = 10  # trials before TPE, by Optuna's default; a study of fewer than 40 has a quarter
_REPORTS = {"SuccessiveHalvingPruner": 4, "HyperbandPruner": 3, "MedianPruner": 2}  # rates of rows

_BISECTIONS = 60
_WIDEST = 40.0  # the most standard deviations between an index and the mean
_RESTARTS = 2
_LENGTHS = 20  # features that get a length of their own; with more features, all share one length


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

    def features(self, settings: Sequence[Config]) -> FloatArray:
        """The points with one column of 0 and 1 for each category."""
        points = self.points(settings)
        columns = [
            points[:, [d]] if size == 0 else (points[:, [d]] == np.arange(size)).astype(float)
            for d, size in enumerate(self.categories)
        ]
        return np.hstack([np.zeros((len(points), 1)), *columns])

    def nearest(self, point: FloatArray, points: FloatArray) -> int:
        """The row nearest to a point, the first of several; categories differ by 1."""
        apart, named = np.abs(points - point), np.array(self.categories) > 0
        return int(np.argmin(np.where(named, apart > 0, apart**2).sum(axis=1)))


# -- Optuna ----------------------------------------------------------------------------------------


def optuna_installed() -> bool:
    """Whether Optuna's methods can be used."""
    return find_spec("optuna") is not None


def tuned_pruners() -> list[Method]:
    """Pruners whose options and number of trials are chosen on the log."""
    return [
        Tuned(f"Optuna {name}", partial(_options, name=name), _REHEARSALS, _LONGEST)
        for name in list(_REPORTS)[:2]
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
    known = None if log.given is None or trials is None else log.table
    rows = ladder(1, _REPORTS[name], log.most)
    return partial(pruned, pruner=make, rows=rows, trials=trials, known=known)


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


# -- Bayesian optimization -------------------------------------------------------------------------


def sklearn_installed() -> bool:
    """Whether Bayesian optimization can be used."""
    return find_spec("sklearn") is not None


@dataclass(frozen=True, slots=True)
class FullRunBO:
    """Bayesian optimization with full runs that stops when no candidate is worth its cost."""

    name: str = "full runs, cost-aware BO"

    def learn(self, log: Log, prices: Sequence[float]) -> list[MethodPlan]:
        """One process for all prices, fitted to the runs of the log."""
        table = log.table
        rows, last = np.arange(len(table.length)), table.length - 1
        settings: Sequence[Config] = table.settings or [{}] * len(last)
        known = Surrogate.of(settings, table.top[rows, last], table.spend[rows, last + 1])
        return [MethodPlan(partial(bayes, known=known, price=price)) for price in prices]


@dataclass(frozen=True, slots=True, eq=False)
class Surrogate:
    """Two Gaussian processes, of the best score and of the logarithm of the cost of full runs.

    Very low scores, as of runs that diverged, are raised to the lower fence of their box plot.
    """

    space: PoolSpace
    features: FloatArray
    score: FloatArray
    cost: FloatArray
    kernels: tuple[Any, Any]

    @classmethod
    def of(cls, settings: Any, score: FloatArray, cost: FloatArray) -> Surrogate:
        """Fit the hyperparameters to the runs of a log."""
        kernels = need("sklearn.gaussian_process.kernels", "sklearn")
        space = PoolSpace.of(settings)
        features = space.features(settings)
        own = features.shape[1] <= _LENGTHS
        shape = kernels.Matern(np.ones(features.shape[1] if own else 1), (0.05, 100.0), nu=2.5)
        prior = kernels.ConstantKernel(1.0, (0.01, 100.0)) * shape
        prior = prior + kernels.WhiteKernel(0.1, (1e-5, 2.0))
        begin = cls(space, features, score, cost, (prior, prior))
        return begin.fitted(features[:0], np.zeros(0), np.zeros(0))

    def fitted(self, x: FloatArray, y: FloatArray, cost: FloatArray) -> Surrogate:
        """With hyperparameters fitted to the runs of the log and these."""
        found = [self._process(i, x, y, cost, fit=True).kernel_ for i in range(2)]
        return replace(self, kernels=(found[0], found[1]))

    def indices(self, x: FloatArray, y: FloatArray, cost: FloatArray, new: FloatArray,
                price: float) -> FloatArray:  # fmt: skip
        """The index of each new candidate, when these full runs were seen besides the log."""
        forecasts = (self._process(i, x, y, cost).predict(new, return_std=True) for i in range(2))
        (mean, spread), (log_mean, log_spread) = forecasts
        # the mean of a lognormal cost, not its median
        expected = np.exp(log_mean + 0.5 * log_spread**2)
        return gittins(np.asarray(mean), np.maximum(spread, 1e-12), expected / price)

    def _process(
        self, which: int, x: FloatArray, y: FloatArray, cost: FloatArray, *, fit: bool = False
    ) -> Any:
        """The process of scores or of costs, with its kernel as it is or fitted."""
        gp = need("sklearn.gaussian_process", "sklearn")
        process = gp.GaussianProcessRegressor(
            self.kernels[which], optimizer="fmin_l_bfgs_b" if fit else None,
            n_restarts_optimizer=_RESTARTS, normalize_y=True, random_state=0,
        )  # fmt: skip
        if which:
            target = np.log(np.maximum(np.concatenate([self.cost, cost]), 1e-12))
        else:
            target = np.concatenate([self.score, y])
            low, high = np.quantile(target, (0.25, 0.75))
            target = np.maximum(target, low - 1.5 * (high - low))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # lengths at their bounds
            return process.fit(np.vstack([self.features, x]), target)


def gittins(mean: FloatArray, spread: FloatArray, cost: FloatArray) -> FloatArray:
    """The g with E(f - g)+ = cost for normal f, by bisection.

    Examples
    --------
    >>> bool(abs(gittins(np.zeros(1), np.ones(1), np.full(1, 0.3989422804)))[0] < 1e-6)
    True
    """
    below = need("scipy.special", "scipy").ndtr
    low, high = np.full(len(mean), -_WIDEST), np.maximum(cost / spread, 0.0) + 1.0
    for _ in range(_BISECTIONS):
        u = (low + high) / 2
        gain = np.exp(-0.5 * u**2) / np.sqrt(2.0 * np.pi) + u * below(u)  # E(Z + u)+
        short = gain < cost / spread
        low, high = np.where(short, u, low), np.where(short, high, u)
    return np.asarray(mean - spread * (low + high) / 2)


def bayes(bench: Bench, known: Surrogate, price: float) -> Iterator[None]:
    """Full runs by falling index until no index is above the best score; at least one run.

    Kernels are fitted again after 1, 2, 4, 8, ... runs.
    """
    x = known.space.features(bench.settings or [{}] * len(bench))
    free = np.ones(len(bench), bool)
    begun: list[int] = []
    score: list[float] = []
    cost: list[float] = []
    while free.any():
        left = np.flatnonzero(free)
        seen = x[begun], np.array(score), np.array(cost)
        if len(begun) & (len(begun) - 1) == 0 and begun:
            known = known.fitted(*seen)
        index = known.indices(*seen, x[left], price)
        if begun and not index.max() > bench.best:
            break
        run, before = int(left[index.argmax()]), bench.spent
        bench.advance(run, bench.longest)
        free[run] = False
        begun.append(run)
        score.append(bench.best_of(run))
        cost.append(bench.spent - before)
    yield
