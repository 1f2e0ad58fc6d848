"""Optuna's own pruners, driven run by run through ask, report, should_prune and tell.

A trial is a run of the bench. Steps are rows of its curve, counted from 1. Scores are reported at
the rows given; a run that has diverged is pruned. A pruned trial is never resumed, as always in
Optuna.

With TPE as the sampler a trial is the run whose settings are nearest to the proposal, among the
runs that were not started; the runs of the log are in the study from the beginning.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from .._common.arrays import IntArray
from .._common.optional import need
from .bench import Bench, Table
from .methods import Documented, Log, Method, MethodPlan, Rule, Tuned, best_plans, trace
from .pool_space import PoolSpace

_RATES = (2, 3, 4)
_LEAST = (1, 2, 4)  # rows of the first rung
_REHEARSALS = 8  # Optuna is about a hundred times slower per step
_LONGEST = 128  # trials
_FEW, _TREES = 3, 64  # rehearsals and trials of a study whose sampler is TPE
_WILCOXON = 2, 96  # for a pruner that is another hundred times slower


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


def documented_pruners(trials: Sequence[int], *, tree: bool = False) -> list[Method]:
    """The pruners with their default options and a given number of trials each.

    With ``tree`` TPE chooses what to start; for runs whose settings are known.
    """
    names = ("SuccessiveHalvingPruner", "HyperbandPruner", "MedianPruner")[: 2 if tree else 3]
    return [
        Documented(
            f"Optuna {'TPE + ' if tree else ''}{name}, {n} runs",
            partial(_as_it_comes, name=name, tree=tree),
            n,
        )
        for name in names
        for n in trials
    ]


def _as_it_comes(most: int, name: str, tree: bool) -> Rule:
    make = getattr(need("optuna", "optuna").pruners, name)
    rule = partial(pruned, pruner=make, rows=_ladder(1, 2, most))
    return partial(_untaught, rule=rule) if tree else rule


def _untaught(bench: Bench, rule: Callable[..., Iterator[None]]) -> Iterator[None]:
    """A study whose sampler is TPE, and which knows no runs at the beginning."""
    return rule(bench, known=KnownRuns(PoolSpace.of(bench.settings or ()), None))


@dataclass(frozen=True, slots=True, eq=False)
class TreeSampled:
    """TPE proposes, a pruner of Optuna prunes; the study knows the runs of the log.

    Its options are chosen on half of the log, by a study that knows the other half.

    Parameters
    ----------
    name : str
    rules : function
        As in :class:`Tuned`; the rules must be :func:`pruned`, which is told what is known.
    """

    name: str
    rules: Callable[[Log], dict[str, Any]] = field(repr=False)

    def learn(self, log: Log, prices: Sequence[float]) -> list[MethodPlan]:
        """The options and the number of trials with the highest mean payoff in the rehearsals."""
        runs = np.arange(len(log.curves))
        taught, searched = (runs[::2], runs[1::2]) if len(runs) > 1 else (runs, runs)
        orders = searched[log.orders[:_FEW] % len(searched)]
        half, whole = KnownRuns.of(log.table, taught), KnownRuns.of(log.table, runs)
        options = self.rules(log)
        means = []
        for rule in options.values():
            played = [
                trace(partial(rule, known=half), Bench(log.table, order), _TREES)
                for order in orders
            ]
            means.append(np.mean(played, axis=0))
        final = {told: partial(rule, known=whole) for told, rule in options.items()}
        return best_plans(final, means, prices)


@dataclass(frozen=True, slots=True, eq=False)
class KnownRuns:
    """What a study knows from the beginning: the space, and settings and best scores of full runs.

    Without a table it knows the space alone.
    """

    space: PoolSpace
    table: Table | None
    runs: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def of(cls, table: Table, runs: IntArray) -> KnownRuns:
        """Some runs of a table, in the space of all."""
        return cls(PoolSpace.of(table.settings), table, runs)

    def tell(self, study: Any, optuna: Any) -> None:
        """Add them to a study, as complete trials."""
        from .pool_sampler import distributions, parameters

        if self.table is None:
            return
        spaces = distributions(self.space)
        points = self.space.points([self.table.settings[i] for i in self.runs])
        last = self.table.top[self.runs, self.table.length[self.runs] - 1]
        for point, score in zip(points, last.tolist(), strict=True):
            study.add_trial(
                optuna.trial.create_trial(
                    params=parameters(self.space, point), distributions=spaces, value=score
                )
            )


def tree_methods() -> list[Method]:
    """Pruners with TPE as the sampler; for runs whose settings are known."""
    return [
        TreeSampled("Optuna TPE + SuccessiveHalvingPruner", partial(_successive_halving, few=True)),
        TreeSampled("Optuna TPE + HyperbandPruner", partial(_hyperband, few=True)),
    ]


def pruned(
    bench: Bench, pruner: Callable[[], Any], rows: Sequence[int], known: KnownRuns | None = None
) -> Iterator[None]:
    """Play a study with a pruner, one trial after the other; yields after each trial.

    Runs are started in the order of the bench, or, if something is known, as TPE proposes.
    """
    optuna = need("optuna", "optuna")
    with _quiet(optuna):
        sampler = _sampler(optuna, bench, known)
        study = optuna.create_study(
            direction="maximize",
            sampler=sampler,
            pruner=pruner(),
            study_name="backtest",  # Hyperband draws brackets by it
        )
        if known is not None:
            known.tell(study, optuna)
    for turn in range(len(bench)):
        with _quiet(optuna):
            spaces = {} if known is None else sampler.distributions
            trial = study.ask(spaces)
            run = sampler.chosen if spaces else turn
            best = _trained(bench, run, trial, rows)
            state = optuna.trial.TrialState
            if best is None:
                study.tell(trial, state=state.PRUNED)
            else:
                study.tell(trial, best)
        yield


def _sampler(optuna: Any, bench: Bench, known: KnownRuns | None) -> Any:
    if known is None:
        return optuna.samplers.RandomSampler(seed=0)
    from .pool_sampler import PoolSampler

    inner = optuna.samplers.TPESampler(multivariate=True, seed=0)
    return PoolSampler(inner, known.space, bench.settings or [{}] * len(bench))


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
    """Silence messages about single trials and about curves of unequal length."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)


def _ladder(least: int, rate: int, most: int) -> tuple[int, ...]:
    """Rows at which scores are reported. Successive halving ignores rows between rungs."""
    rows = []
    while least < most:
        rows.append(least)
        least *= rate
    return (*rows, most)


def _grid(few: bool) -> list[tuple[int, int]]:
    """Rates, and rows of the first rung, to choose from."""
    rates, least = (_RATES[1:], _LEAST[:2]) if few else (_RATES, _LEAST)
    return [(rate, rows) for rate in rates for rows in least]


def _successive_halving(log: Log, few: bool = False) -> dict[str, Rule]:
    make = need("optuna", "optuna").pruners.SuccessiveHalvingPruner
    return {
        f"rate {rate}, from {least} rows": partial(
            pruned,
            pruner=partial(make, min_resource=least, reduction_factor=rate),
            rows=_ladder(least, rate, log.most),
        )
        for rate, least in _grid(few)
    }


def _hyperband(log: Log, few: bool = False) -> dict[str, Rule]:
    make = need("optuna", "optuna").pruners.HyperbandPruner
    return {
        f"rate {rate}, from {least} rows": partial(
            pruned,
            pruner=partial(make, min_resource=least, max_resource=log.most, reduction_factor=rate),
            rows=_ladder(least, rate, log.most),
        )
        for rate, least in _grid(few)
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
