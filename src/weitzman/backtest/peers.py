"""The methods to compare: the index policy, its peers, and what these choose their options from."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..learn.curves import Curves
from ..learn.first_runs import from_nothing
from ..learn.ladder import top_excess
from ..tune.prices import one_box
from ..tune.race import Race, RunModel
from ..tune.refit import Refit
from . import methods as rules
from .bench import Bench
from .library_peers import documented_pruners, optuna_installed
from .methods import Documented, Log, Method, MethodPlan, Rule, Tuned

RUNS = (10, 30, 100)  # of methods whose number of runs is fixed
_RATES = (2, 3, 4)
_TAIL = -np.log1p(-(np.arange(8) + 0.5) / 8)  # quantiles of an exponential excess


def all_methods(*, settings: bool = False) -> list[Method]:
    """The index policy, then its peers, including those of Optuna if it is installed.

    If the ``settings`` of runs are known, Optuna's TPE chooses runs as well.
    """
    found: list[Method] = [IndexPolicy(fit, refit=True)]
    found += [FullRuns(), Tuned("top-K after one epoch", _top_k)]
    found += [Tuned("successive halving", _halved), Tuned("Hyperband", _hyperband)]
    found += [Tuned("ASHA", partial(_rates, rule=rules.asha), 16), *_fixed("successive halving")]
    if optuna_installed():
        found += documented_pruners(RUNS)[: len(RUNS)]
        found += documented_pruners(RUNS, tree=True) if settings else []
    return found


def methods_without_log(*, settings: bool = False) -> list[Method]:
    """Methods without a log: documented options, and 10, 30 or 100 runs.

    Successive halving and Hyperband have a rate of 3 from one row, as in the Hyperband paper;
    pruners of Optuna have their defaults. If the ``settings`` of runs are known, TPE with these
    pruners is among the methods.
    """
    found: list[Method] = [IndexPolicy(fit, refit=True)]
    for n in (3, 10):
        rule = partial(rules.top_k, runs=n, keep=n)
        found.append(Documented(f"random search, {n} full runs", partial(_always, rule=rule)))
    found += [*_fixed("successive halving"), *_fixed("Hyperband")]
    if optuna_installed():
        found += documented_pruners(RUNS)
        found += documented_pruners(RUNS, tree=True) if settings else []
    return found


# -- the index policy, and Weitzman's rule for full runs -------------------------------------------


def fit(curves: Curves, price: float) -> RunModel:
    """The model of :func:`weitzman.learn.fit` with its defaults."""
    from ..learn.resemblance import fit as learn

    return learn(curves, price=price)


@dataclass(frozen=True, slots=True, eq=False)
class IndexPolicy:
    """Advance the run with the highest index, start a new run or stop; indices come from the log.

    ``fit(curves, price)`` gives the model of a log. With ``refit`` it also learns from the runs of
    the search.
    """

    fit: Callable[[Curves, float], RunModel]
    name: str = "index policy"
    refit: bool = False

    def learn(self, log: Log, prices: Sequence[float]) -> list[MethodPlan]:
        """A model for each price."""
        given, lower = log.given, log.table.sign < 0
        models = [
            from_nothing(price=x, minimize=lower) if given is None else self.fit(given, x)
            for x in prices
        ]
        refit = self.refit or given is None
        return [MethodPlan(partial(race, model=model, refit=refit)) for model in models]


def race(bench: Bench, model: RunModel, refit: bool) -> Iterator[None]:
    """Make the moves that :class:`~weitzman.tune.Race` asks for until it stops."""
    settings = bench.settings
    some = {"available": len(bench)} if settings is None else {"candidates": settings}
    moves = Race(model, **some)
    learn = Refit(moves) if refit else None
    begun: list[int] = []  # the run of the bench that each run of the race is
    while True:
        if learn is not None:
            with warnings.catch_warnings():  # costs that differ from the log are part of the game
                warnings.simplefilter("ignore", UserWarning)
                learn()
        if (move := moves.next()) is None:
            break
        run = move.run
        if run is None:
            run = moves.started(move.candidate)
            begun.append(run if move.candidate is None else move.candidate)
        for step, score, cost in bench.follow(begun[run], move.until):
            moves.observe(run, step, score, cost)
        if bench.is_over(begun[run]):
            moves.ended(run)
    yield


@dataclass(frozen=True, slots=True)
class FullRuns:
    """Random search with full runs, stopped by Weitzman's rule.

    A run is one box: its reward is its best score and its cost the mean cost of a full run. Start
    another run while its reservation value, learned from the log, is above the best so far. With
    probability 1 / (n + 1) the next run exceeds the n runs of the log, as in rehearsals.
    """

    name: str = "full runs, Weitzman's rule"

    def learn(self, log: Log, prices: Sequence[float]) -> list[MethodPlan]:
        """The reservation value at each price."""
        runs = len(log.curves)
        last = log.table.top[:, -1]
        best, excess = top_excess(last, np.ones(runs))
        score = np.append(last, best + excess * _TAIL)
        weight = np.append(np.ones(runs), np.full(len(_TAIL), 1 / len(_TAIL)))
        cost = float(log.table.spend[:, -1].mean())
        plans = []
        for price in prices:
            value = one_box(weight, price * score, cost) / price
            plans.append(MethodPlan(partial(until, value=value), told=f"until {value:.4g}"))
        return plans


def until(bench: Bench, value: float) -> Iterator[None]:
    """Full runs until the best score reaches a value; at least one."""
    for run in range(len(bench)):
        bench.advance(run, bench.longest)
        if bench.best >= value:
            break
    yield


# -- what tuned methods choose from ----------------------------------------------------------------


def sizes(most: int) -> list[int]:
    """Numbers of runs to choose from: 1, 2, 3, 4, 6, 8, 12, 16, ... and all."""
    steps = [1] + [x for k in range(20) for x in (2 * 2**k, 3 * 2**k)]
    return [*(x for x in steps if x < most), most]


def firsts(most: int) -> list[int]:
    """Rows of the first rung to choose from: 1, 2, 4, ... below half a full run."""
    return [2**k for k in range(20) if 2**k * 2 <= max(most, 2)]


def _always(log: Log, rule: Rule) -> Rule:
    return rule


def _fixed(name: str) -> list[Method]:
    rule = rules.hyperband if name == "Hyperband" else rules.successive_halving
    return [
        Documented(f"{name}, {n} runs", partial(_as_documented, rule=rule, runs=n)) for n in RUNS
    ]


def _as_documented(log: Log, rule: Callable[..., Iterator[None]], runs: int) -> Rule:
    return partial(rule, runs=runs, rate=3, least=1, most=log.most)


def _top_k(log: Log) -> dict[str, Rule]:
    return {
        f"{n} runs, K = {k}": partial(rules.top_k, runs=n, keep=k)
        for n in sizes(log.orders.shape[1])
        for k in sizes(min(n, 32))
    }


def _halved(log: Log) -> dict[str, Rule]:
    return {
        f"{n} runs, {told}": rule
        for n in sizes(log.orders.shape[1])
        for told, rule in _rates(log, rules.successive_halving, runs=n).items()
    }


def _hyperband(log: Log) -> dict[str, Rule]:
    return _rates(log, rules.hyperband, runs=log.orders.shape[1])


def _rates(log: Log, rule: Callable[..., Iterator[None]], **runs: int) -> dict[str, Rule]:
    return {
        f"rate {rate}, from {least} rows": partial(
            rule, **runs, rate=rate, least=least, most=log.most
        )
        for rate in _RATES
        for least in firsts(log.most)
    }
