"""A start without any log: what to expect of runs before many runs, or any, were seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from ..errors import InvalidArgument
from ..forest.model import Forest
from .continuations import completed
from .curves import Curves
from .features import Config, Encoder
from .fitting import price_of
from .ladder import Ladder, choose_rungs, climb
from .resemblance import FitOptions, ResemblanceModel, as_curves, ceiling_of, check_price
from .run_model import RunModel, Shown
from .thinning_out import STARTS, Bars, OwnLevels

END = 2**53  # a step that no run reaches: the run goes to its end
_FINE = 1.05  # times as far the first runs go until they are looked at again
_MANY = 3.0  # runs to start: the root of this number of scales of scores, in costs of a full run,
_PART = 0.3  # where a scale is at least this share of the best score
_ENOUGH = 1.2  # times as many runs as were started are as good as that
_FORECAST = 16  # runs that a model by resemblance needs,
_FEWEST = 3  # of which so many must have reached its first rung
_TREES = 24
_TAIL = 1.0  # for how many runs those count that are better than all, which is fair
_LEAST = 0.3  # by how much they are better at least, in costs of a full run
UNKNOWN = 1e290  # indices from this number up mean that nothing is known
_BEYOND = 1e300  # more than any worth
NEW = _BEYOND / 2  # the index of a new run: below a run that is to go on, above one that is not


@dataclass(frozen=True, eq=False)
class FirstRuns(RunModel):
    """The model of a run about which nothing is known, made by :func:`weitzman.learn.from_nothing`.

    Eight runs are started. Fewer and fewer of them go on, always the best, and only as long as
    going on is likely to pay; see :mod:`weitzman.learn.thinning_out`. What the longest run
    has paid then shows what runs cost, and with it how many runs to start in all: the root of three
    times S / F, where F is the cost of a full run in points, and S is the scale of
    scores that is still open.
    That is the distance to the limit, if a limit is stated. Otherwise it is the size of the best
    score less its rise since the first scores, and at least 0.3 of the size. Further runs go
    through the same halving. If 16 runs or more were started, and one has ended, :meth:`updated`
    gives a model learned from the runs of this search. Runs that were cut off go on in ways that
    :mod:`weitzman.learn.continuations` states.

    Attributes
    ----------
    price : float
        What one point of score is worth, in units of cost; 1 as long as only the cost of a full run
        is stated and no run has ended.
    minimize : bool
        Lower scores are better.
    rungs : array of int
        The steps of decisions.
    """

    price: float
    minimize: bool
    rungs: IntArray
    full_run_cost: float | None = None
    limit: float | None = None
    started: int = 0
    wanted: int = STARTS
    best: float = -math.inf
    bars: Bars | None = None
    over: bool = False

    def __repr__(self) -> str:
        stated = (
            f"price {self.price:.6g}"
            if self.full_run_cost is None
            else f"a full run costs {self.full_run_cost:.3g} points"
        )
        return f"FirstRuns({stated}{', minimize' if self.minimize else ''})"

    @property
    def fresh_index(self) -> float:
        """Infinite as long as too few runs were started; the worth of the best if enough were."""
        if self.started < self.wanted:
            return math.inf
        return self.price * self.best if self.over else NEW

    def lines(self, n: int = 1) -> Forest:
        """An error: no forest is known before a run has ended."""
        raise InvalidArgument("nothing is known about runs yet, so there is no forest of runs.")

    def next_index(
        self,
        steps: Sequence[int],
        scores: Sequence[float],
        costs: Sequence[float] | None = None,
        settings: Config | None = None,
    ) -> float:
        """Larger than any worth: highest for the run that is to go on and has come the least far.

        A run that is not among the best of its level, or unlikely to pay, has a lower index than a
        new run; the worth of the best score, if no run is to go on. The index is -inf for a run
        that has diverged or ended.
        """
        return float(self.next_indices([Shown(steps, scores, costs, settings)])[0])

    def next_indices(self, runs: Sequence[Shown]) -> FloatArray:
        """The index of going on with each of several runs."""
        out = np.full(len(runs), -np.inf)
        able = [
            i
            for i, run in enumerate(runs)
            if self.next_rung(run.steps[-1]) is not None and not math.isnan(run.scores[-1])
        ]
        if able:
            ranks = self._ranks([runs[i] for i in able])
            out[able] = self.price * self.best if self.over else ranks
        return out

    def _ranks(self, runs: Sequence[Shown]) -> FloatArray:
        """Numbers above any worth: above those of new runs for runs that are to go on."""
        curves = as_curves(runs, self.minimize)
        levels = OwnLevels.of(curves)
        score = -curves.score if self.minimize else curves.score
        best = np.fmax.reduceat(score, curves.start[:-1])
        low = _BEYOND * (0.25 + 0.1 * best / (1.0 + np.abs(best)))
        good = np.ones(len(runs), bool) if self.bars is None else self.bars.go_on(levels)
        return np.asarray(np.where(good, _BEYOND * (1.0 + 1.0 / (1.0 + levels.count)), low))

    def gain(self, best: float, runs: Sequence[Shown], fresh: int) -> float:
        """Infinite, that is: not known; 0 where nothing is to go on."""
        return 0.0 if self.over and self.started >= self.wanted else math.inf

    def updated(
        self, curves: Curves, stuck: Sequence[int] = (), left: float = math.inf
    ) -> RunModel:
        """A model learned from these runs, or this one if no run with a score has ended yet.

        ``stuck`` are the places of runs that have not ended and yet cannot go on: nobody waits for
        them. ``left`` is how many further runs can be started.
        """
        if curves.minimize != self.minimize:
            raise InvalidArgument("the model and the curves must both maximize or both minimize.")
        whole = _whole(curves, int(self.rungs[-1]))
        able = ~curves.ended & ~np.isin(np.arange(len(curves)), stuck)
        price = None if self.full_run_cost else self.price
        if whole.any() and self.full_run_cost:
            price = price_of(curves.select(whole), None, self.full_run_cost)
        levels = OwnLevels.of(curves)
        best = float(levels.best.max()) if levels.best.size else -math.inf
        now = replace(self, price=price or 1.0, started=len(curves), best=best)
        bars = now._bars(levels, able, STARTS, price)
        if bars is not None or (len(curves) < STARTS and left):
            return replace(now, bars=bars)
        wanted = int(min(now._wanted(curves, levels, price), len(curves) + left))
        if wanted <= _ENOUGH * len(curves) or not left:
            few = len(curves) if price is None else math.ceil(wanted / _ENOUGH)
            bars = now._bars(levels, able, max(STARTS, few), price)
            if bars is not None:
                return replace(now, bars=bars)
            model = now._learned(curves, whole)
            if model is not None:
                return model
            wanted = 0 if price is not None and math.isfinite(now.best) else len(curves) + 1
        return replace(now, over=True, wanted=wanted)

    def _bars(self, levels: OwnLevels, able: BoolArray, n: int, price: float | None) -> Bars | None:
        """What the first n runs need to go on; None if none of them is to go on."""
        first = slice(min(n, len(able)))
        mine = OwnLevels(*(getattr(levels, x)[first] for x in OwnLevels.__slots__))
        bars = Bars.of(mine, able[first], n, price=price, best=self.best)
        return bars if (bars.go_on(mine) & able[first]).any() else None

    def _wanted(self, curves: Curves, levels: OwnLevels, price: float | None) -> int:
        """How many runs to start in all."""
        best = self.best
        if price is None or not math.isfinite(best):
            return len(curves)  # nothing is known yet
        full = self.full_run_cost or float(curves.total_cost.max()) / price
        if self.limit is not None:
            scale = ceiling_of(self.limit, self.minimize) - best
        else:
            risen = best - float(np.median(levels.best[levels.count > 0, 0]))
            scale = max(abs(best) - risen, _PART * abs(best))
        return int(min(math.sqrt(_MANY * scale / full), 1e4)) if full > 0 else 0

    def _learned(self, curves: Curves, over: BoolArray) -> RunModel | None:
        """A model of runs by resemblance, if there are enough runs, and one has ended."""
        if not over.any() or len(curves) < _FORECAST:
            return None
        rows = np.diff(curves.start)
        told = over & (2 * rows >= rows[over].max())
        price, rungs = self.price, choose_rungs(curves.select(told), FitOptions().ratio)
        encoder = Encoder.of(curves.settings)
        new = climb(curves, rungs, encoder)
        if len(new) < _FEWEST:
            return None
        paid, known = _paid(new), completed(new)
        least = _LEAST * float(paid[-1]) / price
        options = FitOptions(trees=_TREES, tail=_TAIL, least=least, limit=self.limit)
        ceiling = ceiling_of(self.limit, self.minimize)
        known = replace(known, best=np.minimum(known.best, ceiling))
        return ResemblanceModel(
            known, encoder, price=price, minimize=self.minimize, options=options
        )


def _whole(curves: Curves, last: int) -> np.ndarray:
    """Which runs have come to their end with a score, and not long before the others."""
    end = curves.start[1:] - 1
    over = (curves.ended | (curves.step[end] >= last)) & ~np.isnan(curves.score[end])
    return np.asarray(over & (2 * curves.step[end] >= curves.step[end].max()))


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
) -> FirstRuns:
    """A model for a search without any log of its task.

    Parameters
    ----------
    price : float
        What one point of score is worth, in units of cost.
    full_run_cost : float
        Instead of ``price``: how many points of score a full run costs.
    minimize : bool
        Lower scores are better.
    limit : float, optional
        The best possible score, such as 1 for an accuracy, if it is known.
    last_step : int, optional
        The last step of a full run, if runs do not end by themselves.

    Examples
    --------
    >>> from weitzman import learn
    >>> model = learn.from_nothing(full_run_cost=0.01)
    >>> model
    FirstRuns(a full run costs 0.01 points)
    >>> letter = learn.sample().of_task("letter")
    >>> model.updated(letter.select(range(0, 80, 4)))
    ResemblanceModel(20 runs, 13 rungs up to step 19, price ...: a full run costs 0.01 points)
    """
    if (price is None) == (full_run_cost is None):
        raise InvalidArgument("give either `price` or `full_run_cost`.")
    if full_run_cost is not None and not 0 < full_run_cost < np.inf:
        raise InvalidArgument(
            f"`full_run_cost` must be above 0 and finite, but it is {full_run_cost!r}."
        )
    if last_step is not None and (isinstance(last_step, bool) or not isinstance(last_step, int)):
        raise InvalidArgument(f"`last_step` must be a whole number, but it is {last_step!r}.")
    return FirstRuns(
        1.0 if price is None else check_price(price), minimize,
        _stops(END if last_step is None else max(last_step, 2)), full_run_cost, limit,
    )  # fmt: skip


def _stops(last: int) -> IntArray:
    """Steps at which the first runs are looked at: each one, and later every twentieth part."""
    out = [0]
    while out[-1] < last:
        out.append(min(max(round(_FINE * out[-1]), out[-1] + 1), last))
    return np.array(out)
