"""Schedulers of Syne Tune, driven from a table: suggest, report a row, ask whether to go on.

A suggestion is moved to the nearest run that was not started, and the scheduler is told the
settings of that run, so that its model learns from what was really trained. One worker; a trial
that is stopped is not resumed. Needs ``syne-tune>=0.16``.
"""

from __future__ import annotations

import datetime
import logging
import warnings
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from weitzman.backtest.bench import Bench, PoolSpace
from weitzman.backtest.methods import Log, Method, Rule, Tuned

_SCORE, _ROW = "score", "row"
_REHEARSALS = 4
_LONGEST = 64  # trials


def syne_tune_installed() -> bool:
    """Whether these methods can be used."""
    return find_spec("syne_tune") is not None


def syne_tune_methods() -> list[Method]:
    """BOHB, whose options are chosen on the log.

    Other schedulers of Syne Tune (such as ``ASHACQR``) work as well, but take seconds for a
    suggestion.
    """
    return [Tuned("Syne Tune BOHB", partial(_rules, name="BOHB"), _REHEARSALS, _LONGEST)]


def _rules(log: Log, name: str) -> dict[str, Rule]:
    space = PoolSpace.of(log.table.settings)
    return {
        f"rate {rate}, from {least} rows": partial(
            scheduled, space=space, name=name, rate=rate, least=least, most=log.most
        )
        for rate in (3, 4)
        for least in (1, 2)
        if least < log.most
    }


def scheduled(
    bench: Bench, space: PoolSpace, name: str, rate: int, least: int, most: int
) -> Iterator[None]:
    """Play a scheduler, one trial after the other; yields after each."""
    logging.getLogger("syne_tune").setLevel(logging.ERROR)
    make = getattr(import_module("syne_tune.optimizer.baselines"), name)
    scheduler = make(
        config_space=_config_space(space), metric=_SCORE, time_attr=_ROW, max_t=most,
        do_minimize=False, random_seed=0, grace_period=least, reduction_factor=rate,
    )  # fmt: skip
    points = space.points(bench.settings or [{}] * len(bench))
    free = list(range(len(bench)))
    for number in range(len(bench)):
        run = free.pop(_nearest(scheduler, space, points[free]))
        _follow(bench, run, scheduler, _trial(number, _config(space, points[run])), most)
        yield


def _config_space(space: PoolSpace) -> dict[str, Any]:
    spaces = import_module("syne_tune.config_space")
    return {
        f"x{d}": spaces.choice(list(range(size))) if size else spaces.uniform(0.0, 1.0)
        for d, size in enumerate(space.categories)
    }


def _config(space: PoolSpace, point: Any) -> dict[str, Any]:
    sizes = space.categories
    return {f"x{d}": int(x) if sizes[d] else float(x) for d, x in enumerate(point.tolist())}


def _nearest(scheduler: Any, space: PoolSpace, points: Any) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries beneath
        suggestion = scheduler.suggest()
    config = None if suggestion is None else suggestion.config
    if not config:
        return 0
    wanted = np.array([float(config[f"x{d}"]) for d in range(len(space.categories))])
    return space.nearest(wanted, points)


def _trial(number: int, config: dict[str, Any]) -> Any:
    trial = import_module("syne_tune.backend.trial_status").Trial
    return trial(trial_id=number, config=config, creation_time=datetime.datetime(2000, 1, 1))


def _follow(bench: Bench, run: int, scheduler: Any, trial: Any, most: int) -> None:
    """Train until the scheduler or the run comes to an end."""
    scheduler.on_trial_add(trial)
    result: dict[str, Any] = {}
    for row in range(1, most + 1):
        score = bench.advance(run, row)
        if score == -np.inf:
            scheduler.on_trial_error(trial)
            return
        result = {_SCORE: score, _ROW: row}
        if bench.is_over(run):
            break
        if scheduler.on_trial_result(trial, result) != "CONTINUE":
            scheduler.on_trial_remove(trial)
            return
    scheduler.on_trial_complete(trial, result)
