"""How far to trust a model: what its forecasts miss, what it promises, what the log leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._common.sharing import Executor, check_executor, spread
from .._common.text import as_html, columns
from ..engine.indices import choose
from ..engine.plan import Progress
from ..engine.solver import solve
from ..errors import InvalidArgument
from ..policy.frontier import Offers
from .capped_runs import shared_errors
from .curves import Curves
from .ladder import CURVE, Ladder, ScoreNoise, climb_all, features, is_category, usual_cost
from .log_tables import Encoder
from .resemblance import FitOptions, ResemblanceModel
from .resembling_runs import Trees, levels_of

_FEWEST = 8  # runs in a log that can be split
_SEED = 20160  # of the trees, so that the same log gives the same forecasts
_TAILS = 0.05, 0.95  # of an interval of 90 %


@dataclass(frozen=True, slots=True, eq=False)
class Diagnosis:
    """What a log says about the model learned from it.

    Attributes
    ----------
    rungs : (m,) array of int
        The rungs before which the last scores of runs are forecast.
    error : dict from str to (m,) array
        The mean error of these forecasts in points of score (the continuous ranked probability
        score; lower is better), each run forecast from the others by what is known about it:
        "nothing", its "best so far", its "curve", its best score so far and its "settings", or
        "both".
    coverage : (m,) array of float
        The share of last scores in the interval that should hold 90 %, if everything is known.
    runs : (m,) array of float
        The number of runs that the law of a logged run rests on, where it is smallest.
    noise : float
        The standard deviation of a score about the mean of re-evaluations, in points of score; NaN
        if the curves are too short to tell.
    predicted, realized : arrays of float
        The payoff of searching one half of the log with a model of the other half, as the model
        predicts it and as it came out, in units of cost.
    """

    rungs: IntArray
    error: dict[str, FloatArray]
    coverage: FloatArray
    runs: FloatArray
    noise: float
    predicted: FloatArray
    realized: FloatArray

    def __str__(self) -> str:
        rows = [["before step", *self.error, "fewest runs", "in 90 %"]]
        for i, rung in enumerate(self.rungs.tolist()):
            errors = [f"{error[i]:.5f}" for error in self.error.values()]
            share = f"{100 * self.coverage[i]:.0f} %"
            rows.append([str(rung), *errors, f"{self.runs[i]:.1f}", share])
        said, came = float(self.predicted.mean()), float(self.realized.mean())
        spread = float(np.std(self.realized - self.predicted))  # splits overlap: no error of a mean
        lines = [
            "Error of forecasts of last scores, by what is known about a run (lower is better):",
            *columns(rows, right=0),
            f"Payoff of a search: predicted {said:.6g}, realized {came:.6g} "
            f"(standard deviation of the difference between splits: {spread:.2g}).",
        ]
        if self.noise > 0:
            lines.append(f"Noise of a score: standard deviation {self.noise:.2g} points.")
        return "\n".join(lines)

    _repr_html_ = as_html


def diagnose(
    model: ResemblanceModel, curves: Curves, *, splits: int = 10, seed: int = 0
) -> Diagnosis:
    """Test a model on the log that it was learned from, always on runs that were left out.

    ``curves`` is the log. It is halved ``splits`` times to compare what the model predicts with
    what it earns.

    Examples
    --------
    >>> from weitzman import learn
    >>> log = learn.sample().of_task("letter")
    >>> found = learn.diagnose(learn.fit(log, price=1000), log, splits=2)
    >>> bool(found.error["curve"].mean() < found.error["nothing"].mean())
    True
    """
    if not isinstance(model, ResemblanceModel):
        raise InvalidArgument(
            f"a diagnosis needs a model from `learn.fit`, but got a {type(model).__name__}."
        )
    if curves.minimize != model.minimize:
        raise InvalidArgument("the model and the curves must both maximize or both minimize.")
    noise = np.nan
    with suppress(InvalidArgument):
        noise = ScoreNoise.of(curves).noise
    if model.noise is not None:  # the prize is a re-evaluation, here as in the search
        curves = model.noise.without(curves)
    every = climb_all(curves, model.rungs, model.encoder)
    ladder = every.select(every.seen > 0)
    if len(ladder) < _FEWEST:
        raise InvalidArgument(f"a diagnosis needs {_FEWEST} runs, but there are {len(ladder)}.")
    random = np.random.default_rng(seed)
    said, came = [], []
    for _ in range(splits):
        order = random.permutation(len(ladder))
        known, unknown = order[: len(order) // 2], order[len(order) // 2 :]
        half = model.relearned(ladder.select(known))
        said.append(half.promised(ladder.select(unknown)))
        came.append(searched(half, ladder.select(unknown)))
    enough = [(ladder.gone & (ladder.seen > r)).sum() >= _FEWEST for r in range(len(model.rungs))]
    tested = np.flatnonzero(enough).tolist()
    found = [knowledge(ladder, model.encoder, model.options, r) for r in tested]
    return Diagnosis(
        rungs=model.rungs[tested], coverage=np.array([x[1] for x in found]),
        error={name: np.array([x[0][name] for x in found]) for name in _KINDS},
        runs=np.array([model.rows(r).min() for r in tested]), noise=noise,
        predicted=np.array(said), realized=np.array(came),
    )  # fmt: skip


def searched(model: ResemblanceModel, runs: Ladder) -> float:
    """What following the model's indices earns on these runs; ties go to the first run."""
    index = model.indices_of(runs)
    size = index.shape[1]
    worth = model.price * runs.best
    best, spent = -np.inf, 0.0
    offers = Offers[tuple[bool, int, int]](lambda key: True)  # is it new, run, segment to come
    for run, x in enumerate(index[:, 0].tolist()):
        offers.put((True, run, 0), x)
    while (move := offers.next(best)) is not None:
        offers.take()
        _, run, r = move[0]
        spent += float(runs.cost[run, r])
        best = max(best, float(worth[run, r]))
        if r + 1 < min(int(runs.seen[run]), size):
            offers.put((False, run, r + 1), float(index[run, r + 1]))
    return best - spent


_KINDS = "nothing", "best so far", "curve", "settings", "both"


def knowledge(
    ladder: Ladder, encoder: Encoder, options: FitOptions, r: int
) -> tuple[dict[str, float], float]:
    """Errors of forecasts made before segment r, by what is known, and the coverage of the last.

    Every run is forecast by trees that it did not help to grow; see :class:`Diagnosis`.
    """
    runs = ladder.select(np.flatnonzero(ladder.gone & (ladder.seen > r)))
    final = runs.final
    level = levels_of(runs, usual_cost(runs))
    known, category = features(runs, r, level), is_category(encoder, r)
    curve = np.arange(known.shape[1]) < (CURVE if r else 0)
    first = np.arange(known.shape[1]) < (1 if r else 0)
    nothing, both = np.zeros_like(curve), np.ones_like(curve)
    errors = {}
    for name, used in zip(_KINDS, (nothing, first, curve, first | ~curve, both), strict=True):
        if used.any():
            grown = Trees.grown(
                known[:, used], category[used], final[:, None], runs.weight, trees=options.trees,
                leaf=options.leaf, random=np.random.default_rng(_SEED),
            )  # fmt: skip
            row = grown.rows(known[:, used], np.arange(len(final)))
        else:  # all other runs alike
            row = (1.0 - np.eye(len(final))) * runs.weight
            row /= row.sum(axis=1, keepdims=True)
        errors[name] = float(np.mean(shared_errors(final, row, final)))
    up = np.argsort(final, kind="stable")
    reached = np.cumsum(row[:, up], axis=1)
    places = (np.minimum((reached < end).sum(axis=1), len(final) - 1) for end in _TAILS)
    low, high = (final[up][place] for place in places)
    return errors, float(np.mean((low <= final) & (final <= high)))


@dataclass(frozen=True, slots=True, eq=False)
class Bootstrap:
    """Models that fit the log about as well."""

    models: tuple[ResemblanceModel, ...]

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

        ``best`` is the best score so far, None if there is none; ``runs`` under way are (steps,
        scores) or (steps, scores, costs). A move with a share near 1 is settled by the data. The
        draws vary the log, not the options.
        """
        shares: dict[int | str, float] = {}
        for model in self.models:
            held = -np.inf if best is None else model.worth(best)
            index = [*(model.next_index(*history) for history in runs), model.fresh_index]
            place = choose(index, held)
            move: int | str = "stop" if place is None else "new" if place == len(runs) else place
            shares[move] = shares.get(move, 0.0) + 1.0 / len(self.models)
        return shares


def bootstrap(
    model: ResemblanceModel, n: int = 50, *, seed: int | np.random.Generator = 0,
    executor: Executor | None = None, progress: Progress | None = None,
) -> Bootstrap:  # fmt: skip
    """How well the log determines a model: the Bayesian bootstrap, with random weights on its runs.

    Parameters
    ----------
    executor : optional
        Workers to share the draws, as for :func:`~weitzman.solve`. The draws do not depend on it.
    progress : callable, optional
        Called with (draws done, draws in all).

    Examples
    --------
    >>> from weitzman import learn
    >>> model = learn.fit(learn.sample().of_task("letter"), price=1000)
    >>> low, high = np.quantile(learn.bootstrap(model, 5).value_at(5), [0.05, 0.95])
    >>> bool(low < high)
    True
    """
    if n < 1:
        raise InvalidArgument(f"at least one draw is needed, but n is {n}.")
    random = np.random.default_rng(seed)
    ladder = model.ladder
    weights = random.dirichlet(ladder.weight, size=n) * ladder.weight.sum()
    weights = np.maximum(weights, 1e-9)  # no weight may be 0, or a row might rest on no run
    if executor is not None:
        check_executor(executor)
    return Bootstrap(tuple(spread(executor, _relearned, model, list(weights), progress)))


def _relearned(model: ResemblanceModel, weight: FloatArray) -> ResemblanceModel:
    return model.relearned(replace(model.ladder, weight=weight))
