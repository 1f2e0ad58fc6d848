"""Further peers with a log, which only the benchmark needs.

The rule of Ax; Optuna's pruners with options that are chosen on the log; and cost-aware Bayesian
optimization, which trains full runs: a Gaussian process over the settings forecasts the best
score of a run, another one the logarithm of its cost. The index of a candidate is the g that solves
E(f(x) - g)+ = c(x) / price (Xie et al., 2024, "Cost-aware Bayesian optimization via the Pandora's
box Gittins index"). The candidate with the highest index is trained to its end; stop when no index
is above the best score so far (Xie et al., 2025, "Cost-aware stopping for Bayesian optimization").
"""

from __future__ import annotations

import warnings
from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from weitzman._common.arrays import FloatArray
from weitzman._common.optional import need
from weitzman.backtest.bench import Bench
from weitzman.backtest.library_peers import PRUNERS, PoolSpace, ladder, pruned
from weitzman.backtest.methods import Log, Method, MethodPlan, Rule, Tuned
from weitzman.backtest.peers import firsts
from weitzman.learn.log_tables import Config

_RATES = (2, 3, 4)
_LEAST = (1, 2, 4)  # rows of the first rung
_REHEARSALS = 8  # Optuna is about a hundred times slower per step
_LONGEST = 128  # trials
_BISECTIONS = 60
_WIDEST = 40.0  # the most standard deviations between an index and the mean
_RESTARTS = 2
_LENGTHS = 20  # features that get a length of their own; with more features, all share one length


def more_peers() -> list[Method]:
    """The methods of this module."""
    pruners = [
        Tuned(f"Optuna {name}", partial(options, name=name), _REHEARSALS, _LONGEST)
        for name in list(PRUNERS)[:2]
    ]
    return [Tuned("percentile rule", _percentile, 16), *pruners, FullRunBO()]


def percentile(bench: Bench, share: float, first: int, finished: int) -> Iterator[None]:
    """Percentile stopping, the rule of Ax: run after run, dropped if among the worst.

    At rows 1, 2, 4, ... from row ``first`` on, once ``finished`` runs have ended, a run continues
    only if its score is at least the ``share`` percentile of all scores at that row, its own
    included. Yields after each run.
    """
    seen: dict[int, list[float]] = {}
    whole = 0
    for run in range(len(bench)):
        row, score = 1, bench.advance(run, 1)
        while score > -np.inf:
            there = seen.setdefault(row, [])  # sorted: NumPy's percentile takes most of the time
            insort(there, score)
            if bench.is_over(run):
                whole += 1
                break
            k, part = divmod(share / 100 * (len(there) - 1), 1)
            low, high = there[int(k)], there[min(int(k) + 1, len(there) - 1)]
            if whole >= finished and row >= first and score < low + part * (high - low):
                break
            row = min(2 * row, bench.longest)
            score = bench.advance(run, row)
        yield


def _percentile(log: Log) -> dict[str, Rule]:
    return {
        f"below {share:g} % from {first} rows, after {finished} full runs": partial(
            percentile, share=share, first=first, finished=finished
        )
        for share in (25.0, 50.0, 75.0)
        for first in firsts(log.most)[:4]
        for finished in (1, 5)
    }


def options(log: Log, name: str) -> dict[str, Rule]:
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
        kernels = need("sklearn.gaussian_process.kernels", "dev")
        space = PoolSpace.of(settings)
        columns = features(space, settings)
        own = columns.shape[1] <= _LENGTHS
        shape = kernels.Matern(np.ones(columns.shape[1] if own else 1), (0.05, 100.0), nu=2.5)
        prior = kernels.ConstantKernel(1.0, (0.01, 100.0)) * shape
        prior = prior + kernels.WhiteKernel(0.1, (1e-5, 2.0))
        begin = cls(space, columns, score, cost, (prior, prior))
        return begin.fitted(columns[:0], np.zeros(0), np.zeros(0))

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
        gp = need("sklearn.gaussian_process", "dev")
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
    x = features(known.space, bench.settings or [{}] * len(bench))
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


def features(space: PoolSpace, settings: Sequence[Config]) -> FloatArray:
    """The points of settings with one column of 0 and 1 for each category."""
    points = space.points(settings)
    columns = [
        points[:, [d]] if size == 0 else (points[:, [d]] == np.arange(size)).astype(float)
        for d, size in enumerate(space.categories)
    ]
    return np.hstack([np.zeros((len(points), 1)), *columns])
