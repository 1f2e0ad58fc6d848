"""A start without any log: what to expect of runs before any, or many, were seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._common.arrays import FloatArray, IntArray
from ..errors import InvalidArgument
from ..forest.model import Forest
from .curves import Curves
from .fitting import price_of
from .known import Config, Encoder
from .ladder import Ladder, choose_rungs, climb
from .laws import Recipe
from .log_model import check_price
from .resemblance import Resemblance, ResemblanceModel
from .run_model import RunModel, Shown
from .shapes import Shape, continued, mixture

END = 2**53  # a step that no run reaches: until its end
_STARTS = 3  # runs that must have shown something before any of them is judged
_KNOWING = 8  # runs from which on settings are looked at
_WEIGHT = 2.0  # for how many runs the prior counts
_RISING = 0.5  # for how much a run that was cut off counts, as it may go on
_TAIL = 0.5  # for how many runs those count that are better than all: half of what is fair
_LEAST = 2.0  # by how much they are better at least, in costs of a full run
UNKNOWN = 1e290  # indices from here on say that nothing is known
_BEYOND = 1e300  # more than any worth


@dataclass(frozen=True, eq=False)
class FirstRuns(RunModel):
    """The model of a run of which nothing is known, made by :func:`weitzman.learn.from_nothing`.

    Three runs are started, and the best of them is trained to its end: it shows how long runs are,
    what they cost and how scores rise. From then on :meth:`updated` gives a model learned from the
    runs of this search and a weak prior.

    Attributes
    ----------
    price : float
        What one point of score is worth, in units of cost; 1 as long as only the cost of a full run
        is stated and no run has ended.
    minimize : bool
        Lower scores are better.
    rungs : array of int
        The steps of decisions; one that no run reaches as long as no run has ended.
    """

    price: float
    minimize: bool
    rungs: IntArray
    full_run_cost: float | None = None
    limit: float | None = None
    shapes: tuple[Shape, ...] = ()
    started: int = 0

    def __repr__(self) -> str:
        stated = (
            f"price {self.price:.6g}"
            if self.full_run_cost is None
            else f"a full run costs {self.full_run_cost:.3g} points"
        )
        return f"FirstRuns({stated}{', minimize' if self.minimize else ''})"

    @property
    def fresh_index(self) -> float:
        """Infinite as long as too few runs were started to judge any."""
        return math.inf if self.started < _STARTS else _BEYOND / 2

    def lines(self, n: int = 1) -> Forest:
        """An error: no forest is known before a run has ended."""
        raise InvalidArgument("nothing is known of a run yet, so there is no forest of runs.")

    def next_index(
        self,
        steps: Sequence[int],
        scores: Sequence[float],
        costs: Sequence[float] | None = None,
        settings: Config | None = None,
    ) -> float:
        """Beyond all worths, the higher the better the score; -inf for a run that has diverged."""
        if self.next_rung(steps[-1]) is None or math.isnan(scores[-1]):
            return -math.inf
        best = max(-x if self.minimize else x for x in scores if not math.isnan(x))
        return _BEYOND * (2.0 + best / (1.0 + abs(best)))

    def gain(self, best: float, runs: Sequence[Shown], fresh: int) -> float:
        """Infinite, that is: not known."""
        return math.inf

    def updated(self, curves: Curves) -> RunModel:
        """What these runs teach: a model, or this one if no run with a score has ended yet."""
        if curves.minimize != self.minimize:
            raise InvalidArgument("the model and the curves must both maximize or both minimize.")
        whole = _whole(curves, int(self.rungs[-1]))
        if not whole.any():
            return replace(self, started=len(curves))
        return self._learnt(curves, curves.select(whole))

    def _learnt(self, curves: Curves, whole: Curves) -> RunModel:
        price = price_of(whole, None, self.full_run_cost) if self.full_run_cost else self.price
        rungs = choose_rungs(whole, Recipe().ratio)
        encoder = Encoder.of(curves.settings)
        if (np.diff(curves.start) > 0).sum() < _KNOWING:
            encoder = Encoder((), ())
        new = climb(curves, rungs, encoder)
        if len(new) < _STARTS:
            return replace(self, price=price, rungs=rungs, started=len(new))
        paid = _paid(new)
        known = mixture(self.shapes, new, paid, _WEIGHT).joined(continued(new, _RISING))
        recipe = Resemblance(tail=_TAIL, least=_LEAST * float(paid[-1]) / price, limit=self.limit)
        return ResemblanceModel(
            known.joined(new), encoder, price=price, minimize=self.minimize, settings=recipe
        )


def _whole(curves: Curves, last: int) -> np.ndarray:
    """Which runs have come to their end with a score."""
    end = curves.start[1:] - 1
    return (curves.ended | (curves.step[end] >= last)) & ~np.isnan(curves.score[end])


def _paid(new: Ladder) -> FloatArray:
    """What runs cost on average up to each rung."""
    seen = np.arange(new.cost.shape[1]) < new.seen[:, None]
    each = (new.cost * seen).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    return np.asarray(np.maximum(np.cumsum(each), 1e-300))


def from_nothing(
    *,
    price: float | None = None,
    full_run_cost: float | None = None,
    minimize: bool = False,
    limit: float | None = None,
    last_step: int | None = None,
    others: Curves | None = None,
) -> FirstRuns:
    """A model for a search without any log of its task.

    Parameters
    ----------
    price : float
        What one point of score is worth, in units of cost.
    full_run_cost : float
        Instead: how many points of score a full run costs.
    minimize : bool
        Lower scores are better.
    limit : float, optional
        The best score that there can be, such as 1 for an accuracy, if that is known.
    last_step : int, optional
        The last step of a full run, if runs do not end by themselves.
    others : Curves, optional
        Logs of other tasks, on whatever scales: how their runs rise becomes the prior, weighted by
        how well it fits the first runs. By default a stated guess; see
        :mod:`weitzman.learn.shapes`.

    Examples
    --------
    >>> from weitzman import learn
    >>> model = learn.from_nothing(full_run_cost=0.01)
    >>> model
    FirstRuns(a full run costs 0.01 points)
    >>> letter = learn.sample().of_task("letter")
    >>> model.updated(letter.select([0, 20, 40, 60]))
    ResemblanceModel(52 runs, 8 rungs up to step 19, price ...: a full run costs 0.01 points)
    """
    if (price is None) == (full_run_cost is None):
        raise InvalidArgument("give either `price` or `full_run_cost`.")
    if full_run_cost is not None and not 0 < full_run_cost < np.inf:
        raise InvalidArgument(
            f"`full_run_cost` must be above 0 and finite, but it is {full_run_cost!r}."
        )
    if last_step is not None and (isinstance(last_step, bool) or not isinstance(last_step, int)):
        raise InvalidArgument(f"`last_step` must be a whole number, but it is {last_step!r}.")
    shapes = [Shape.default()]
    if others is not None:
        shapes = [Shape.of(others.of_task(task)) for task in others.tasks]
    return FirstRuns(
        1.0 if price is None else check_price(price), minimize,
        np.array([1, END if last_step is None else max(last_step, 2)]), full_run_cost,
        limit, tuple(shapes),
    )  # fmt: skip
