"""Methods that weigh worth against cost: the index policy; Weitzman's rule for full runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..errors import InvalidArgument
from ..learn.curves import Curves
from ..learn.first_runs import from_nothing
from ..tune.full_runs import one_box
from ..tune.race import Move, Race, RunModel
from ..tune.refit import Refit
from .bench import Bench
from .methods import Log, MethodPlan

Fit = Callable[[Curves, float], RunModel]


def fit(curves: Curves, price: float) -> RunModel:
    """The model of :func:`weitzman.learn.fit` with its defaults."""
    from ..learn.resemblance import fit as learn

    return learn(curves, price=price)


@dataclass(frozen=True, slots=True, eq=False)
class IndexPolicy:
    """Advance the run with the highest index, start a new run or stop; indices come from the log.

    Parameters
    ----------
    fit : function
        The model of the curves of a log at a price.
    name : str
    refit : bool
        Also learn from the runs of the search while it goes on.
    """

    fit: Fit
    name: str = "index policy"
    refit: bool = False

    def learn(self, log: Log, prices: Sequence[float]) -> list[MethodPlan]:
        """A model for each price."""
        if log.given is None:
            lower = log.table.sign < 0
            begin = [from_nothing(price=price, minimize=lower) for price in prices]
            return [MethodPlan(partial(race, model=model, refit=True)) for model in begin]
        models = [self.fit(log.curves, price) for price in prices]
        return [MethodPlan(partial(race, model=model, refit=self.refit)) for model in models]


def race(bench: Bench, model: RunModel, refit: bool) -> Iterator[None]:
    """Make the moves that :class:`~weitzman.tune.Race` asks for until it stops."""
    settings = bench.settings
    some = {"available": len(bench)} if settings is None else {"candidates": settings}
    moves = Race(model, **some)
    learn = Refit(moves) if refit else None
    begun: list[int] = []  # the run of the bench that each run of the race is
    while (move := _next(moves, learn)) is not None:
        run = move.run
        if run is None:
            run = moves.started(move.candidate)
            begun.append(run if move.candidate is None else move.candidate)
        for step, score, cost in bench.follow(begun[run], move.until):
            moves.observe(run, step, score, cost)
        if bench.is_over(begun[run]):
            moves.ended(run)
    yield


def _next(moves: Race, learn: Refit | None) -> Move | None:
    if learn is not None:
        with warnings.catch_warnings():  # costs that differ from the log are part of the game
            warnings.simplefilter("ignore", UserWarning)
            learn()
    return moves.next()


@dataclass(frozen=True, slots=True)
class FullRuns:
    """Random search with full runs, stopped by Weitzman's rule.

    A run is one box: its reward is its best score and its cost the mean cost of a full run. Start
    another run while its reservation value, learned from the log, is above the best so far.
    """

    name: str = "full runs, Weitzman's rule"

    def learn(self, log: Log, prices: Sequence[float]) -> list[MethodPlan]:
        """The reservation value at each price."""
        if log.given is None:
            raise InvalidArgument(
                "a reservation value is learned from a log, but the log has no runs."
            )
        best = np.unique(log.table.top[:, -1], return_counts=True)
        cost = float(log.table.spend[:, -1].mean())
        plans = []
        for price in prices:
            value = one_box(best[1], price * best[0], cost) / price
            plans.append(MethodPlan(partial(until, value=value), told=f"until {value:.4g}"))
        return plans


def until(bench: Bench, value: float) -> Iterator[None]:
    """Full runs until the best score reaches a value; at least one."""
    for run in range(len(bench)):
        bench.advance(run, bench.longest)
        if bench.best >= value:
            break
    yield
