"""Cost-aware Bayesian optimization with full runs, stopped by its own index.

A Gaussian process over the settings forecasts the best score of a run, another one the logarithm of
its cost. The index of a candidate is the g that solves E(f(x) - g)+ = c(x) / price (Xie et al.,
2024, "Cost-aware Bayesian optimization via the Pandora's box Gittins index"). The candidate with
the highest index is trained to its end; stop when no index is above the best score so far (Xie et
al., 2025, "Cost-aware stopping for Bayesian optimization").
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from .._common.arrays import FloatArray
from .._common.optional import need
from .bench import Bench, PoolSpace
from .methods import Log, MethodPlan

_BISECTIONS = 60
_WIDEST = 40.0  # the most standard deviations between an index and the mean
_RESTARTS = 2
_LENGTHS = 20  # features that get a length of their own; with more features, all share one length


def sklearn_installed() -> bool:
    """Whether the method can be used."""
    return find_spec("sklearn") is not None


@dataclass(frozen=True, slots=True)
class FullRunBO:
    """Bayesian optimization with full runs that stops when no candidate is worth its cost."""

    name: str = "full runs, cost-aware BO"

    def learn(self, log: Log, prices: Sequence[float]) -> list[MethodPlan]:
        """One process for all prices, fitted to the runs of the log."""
        last = log.table.length - 1
        rows = np.arange(len(last))
        known = Surrogate.of(
            log.table.settings or [{}] * len(last),
            log.table.top[rows, last],
            log.table.spend[rows, last + 1],
        )
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
        nothing = np.zeros(0)
        return begin.fitted(features[:0], nothing, nothing)

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
        target = np.concatenate([self.score, y] if which == 0 else [self.cost, cost])
        target = np.log(np.maximum(target, 1e-12)) if which else _fenced(target)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # lengths at their bounds
            return process.fit(np.vstack([self.features, x]), target)


def _fenced(score: FloatArray) -> FloatArray:
    low, high = np.quantile(score, (0.25, 0.75))
    return np.asarray(np.maximum(score, low - 1.5 * (high - low)))


def gittins(mean: FloatArray, spread: FloatArray, cost: FloatArray) -> FloatArray:
    """The g with E(f - g)+ = cost for normal f, by bisection.

    Examples
    --------
    >>> bool(abs(gittins(np.zeros(1), np.ones(1), np.full(1, 0.3989422804)))[0] < 1e-6)
    True
    """
    below = need("scipy.special", "scipy").ndtr

    def gain(u: FloatArray) -> FloatArray:
        """E(Z + u)+ for a standard normal Z."""
        return np.asarray(np.exp(-0.5 * u**2) / np.sqrt(2.0 * np.pi) + u * below(u))

    low, high = np.full(len(mean), -_WIDEST), np.maximum(cost / spread, 0.0) + 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        short = gain(middle) < cost / spread
        low, high = np.where(short, middle, low), np.where(short, high, middle)
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
