"""The methods to compare with, and the settings each may choose from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial

from ..errors import UnknownName
from . import halving as _halving
from .full_run_bo import FullRunBO, sklearn_installed
from .index_methods import FullRuns, IndexPolicy, fit
from .methods import Documented, Log, Method, Rule, Tuned
from .optuna_peers import documented_pruners, installed, optuna_methods, tree_methods

SAMPLERS = ("random", "tpe", "bo")
_RATES = (2, 3, 4)
RUNS = (10, 30, 100)  # without a log
_MOST = 256  # runs that Hyperband starts


def all_methods(*, settings: bool = False, samplers: Collection[str] = SAMPLERS) -> list[Method]:
    """The index policy, then its peers, including those of other libraries that are installed.

    Parameters
    ----------
    settings : bool
        Whether the settings of runs are known, which some methods need.
    samplers : collection of str
        How peers choose what to start: "random", in the order given; "tpe", as Optuna's sampler
        proposes; "bo", by Bayesian optimization with full runs.
    """
    odd = set(samplers) - set(SAMPLERS)
    if odd or not samplers:
        raise UnknownName(
            f"samplers must be some of {', '.join(SAMPLERS)}, but got "
            f"{', '.join(sorted(odd)) or 'none'}."
        )
    return [
        IndexPolicy(fit, refit=True),
        *(_in_order() if "random" in samplers else []),
        *(tree_methods() if settings and "tpe" in samplers and installed() else []),
        *([FullRunBO()] if settings and "bo" in samplers and sklearn_installed() else []),
    ]


def _in_order() -> list[Method]:
    return [
        FullRuns(),
        Tuned("top-K after one epoch", _top_k),
        Tuned("successive halving", _successive_halving),
        Tuned("Hyperband", _hyperband, rehearsals=16),
        Tuned("ASHA", _asha, rehearsals=16),
        Tuned("percentile rule", _percentile, rehearsals=16),
        *(optuna_methods() if installed() else []),
    ]


def methods_without_log(*, settings: bool = False) -> list[Method]:
    """Methods without a log: documented options, and 10, 30 or 100 runs.

    Successive halving and Hyperband have a rate of 3 from one row, as in the Hyperband paper;
    pruners of Optuna have their defaults. If the ``settings`` of runs are known, TPE with these
    pruners is among the methods.
    """
    halved = {"successive halving": _halving.successive_halving, "Hyperband": _halving.hyperband}
    return [
        IndexPolicy(fit, refit=True),
        *(
            Documented(f"random search, {n} full runs", partial(_full_runs, runs=n))
            for n in (3, 10)
        ),
        *(
            Documented(f"{name}, {n} runs", partial(_documented, rule=rule, runs=n))
            for name, rule in halved.items()
            for n in RUNS
        ),
        *(documented_pruners(RUNS) if installed() else []),
        *(documented_pruners(RUNS, tree=True) if settings and installed() else []),
    ]


def _full_runs(most: int, runs: int) -> Rule:
    return partial(_halving.top_k, runs=runs, keep=runs)


def _documented(most: int, rule: Callable[..., Iterator[None]], runs: int) -> Rule:
    return partial(rule, runs=runs, rate=3, least=1, most=most)


def sizes(most: int) -> list[int]:
    """Numbers of runs to choose from: 1, 2, 3, 4, 6, 8, 12, 16, ... and all."""
    steps = [1] + [x for k in range(20) for x in (2 * 2**k, 3 * 2**k)]
    return [*(x for x in steps if x < most), most]


def _few(most: int) -> list[int]:
    return [x for x in sizes(most) if x <= _MOST]


def firsts(most: int) -> list[int]:
    """Rows of the first rung to choose from: 1, 2, 4, ... below half a full run."""
    return [2**k for k in range(20) if 2**k * 2 <= max(most, 2)]


def _top_k(log: Log) -> dict[str, Rule]:
    runs = log.orders.shape[1]
    return {
        f"{n} runs, K = {k}": partial(_halving.top_k, runs=n, keep=k)
        for n in sizes(runs)
        for k in sizes(min(n, 32))
    }


def _successive_halving(log: Log) -> dict[str, Rule]:
    return _halved(log, _halving.successive_halving, sizes(log.orders.shape[1]))


def _hyperband(log: Log) -> dict[str, Rule]:
    return _halved(log, _halving.hyperband, _few(log.orders.shape[1]))


def _halved(log: Log, rule: Callable[..., Iterator[None]], counts: list[int]) -> dict[str, Rule]:
    return {
        f"{n} runs, rate {rate}, from {least} rows": partial(
            rule, runs=n, rate=rate, least=least, most=log.most
        )
        for n in counts
        for rate in _RATES
        for least in firsts(log.most)
    }


def _asha(log: Log) -> dict[str, Rule]:
    return {
        f"rate {rate}, from {least} rows": partial(
            _halving.asha, rate=rate, least=least, most=log.most
        )
        for rate in _RATES
        for least in firsts(log.most)
    }


def _percentile(log: Log) -> dict[str, Rule]:
    return {
        f"below {share:g} % from {first} rows, after {finished} full runs": partial(
            _halving.percentile, share=share, first=first, finished=finished
        )
        for share in (25.0, 50.0, 75.0)
        for first in firsts(log.most)[:4]
        for finished in (1, 5)
    }
