"""How well the data determine a model: the same log with its runs weighted at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._common.arrays import FloatArray
from .._common.sharing import Executor, check_executor, spread
from ..engine.indices import choose
from ..engine.plan import Progress
from ..engine.solver import solve
from ..errors import InvalidArgument
from .log_model import LearnedModel


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Models that fit the log about as well.

    Attributes
    ----------
    models : tuple of LineModel or ResemblanceModel
    """

    models: tuple[LearnedModel, ...]

    @property
    def fresh_index(self) -> FloatArray:
        """The index of starting a new run, in each draw."""
        return np.array([model.fresh_index for model in self.models])

    def value_at(self, n: int = 1) -> FloatArray:
        """The value of n new runs, in each draw."""
        return np.array([solve(model.lines(n), threads=1).value for model in self.models])

    def moves(
        self, best: float | None, runs: Sequence[Sequence[Any]] = ()
    ) -> dict[int | str, float]:
        """The share of the draws that make each move: a run by number, "new" or "stop".

        Parameters
        ----------
        best : float or None
            The best score so far, None if there is none.
        runs : sequence of (steps, scores) or (steps, scores, costs)
            The runs under way.

        Notes
        -----
        A move with a share near 1 is settled by the data. The draws vary the log, not the settings.
        """
        shares: dict[int | str, float] = {}
        for model in self.models:
            held = -np.inf if best is None else model.worth(best)
            index = [*(model.next_index(*history) for history in runs), model.fresh_index]
            place = choose(index, held)
            move: int | str = "stop" if place is None else "new" if place == len(runs) else place
            shares[move] = shares.get(move, 0.0) + 1.0 / len(self.models)
        return shares


def draws(
    model: LearnedModel,
    n: int = 50,
    *,
    seed: int | np.random.Generator = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Draws:
    """Draw models by the Bayesian bootstrap: Dirichlet weights on the runs of the log.

    Parameters
    ----------
    model : LineModel or ResemblanceModel
    n : int
    seed : int or numpy.random.Generator
    executor : optional
        Workers to share the draws, as for :func:`~weitzman.solve`. The draws do not depend on it.
    progress : callable, optional
        Called with (draws done, draws in all).

    Examples
    --------
    >>> from weitzman import learn
    >>> model = learn.fit(learn.sample().of_task("letter"), price=1000)
    >>> low, high = np.quantile(learn.draws(model).value_at(5), [0.05, 0.95])
    >>> bool(low < high)
    True
    """
    if n < 1:
        raise InvalidArgument(f"at least one draw is needed, but n is {n}.")
    random = np.random.default_rng(seed)
    ladder = model.ladder
    weights = random.dirichlet(ladder.weight, size=n) * ladder.weight.sum()
    weights = np.maximum(weights, 1e-9)  # no weight may be 0, or a row might rest on no run
    if executor is None:
        tell = progress or _no_progress
        found = []
        for i, w in enumerate(weights, 1):
            found.append(_relearned(model, w))
            tell(i, n)
        return Draws(tuple(found))
    check_executor(executor)
    return Draws(tuple(spread(executor, _relearned, model, list(weights), progress)))


def _relearned(model: LearnedModel, weight: FloatArray) -> LearnedModel:
    return model.relearned(replace(model.ladder, weight=weight))


def _no_progress(done: int, total: int) -> None:
    """Report no progress."""
