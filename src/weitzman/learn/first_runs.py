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
from .fitting import price_of
from .known import Config, Encoder
from .ladder import Ladder, choose_rungs, climb, climb_all
from .laws import Recipe
from .log_model import ceiling_of, check_price
from .resemblance import Resemblance, ResemblanceModel
from .run_model import RunModel, Shown
from .shapes import Shape, mixture

END = 2**53  # a step that no run reaches: the run goes to its end
STARTS = 8  # runs that are started first,
_RATE = 1.4  # and of which this many times fewer go on at each rung, that many times as far
_FEWEST = 3  # runs that a model is learned from
_KNOWING = 8  # runs needed before settings count
_WEIGHT = 2.0  # runs of other tasks together count for this many runs
_TREES = 24
_TAIL = 1.0  # for how many runs those count that are better than all, which is fair
_LEAST = 0.3  # by how much they are better at least, in costs of a full run
UNKNOWN = 1e290  # indices from this number up mean that nothing is known
_BEYOND = 1e300  # more than any worth
NEW = _BEYOND / 2  # the index of a new run: below a run that is to go on, above one that is not
_ROUNDED = 1e-9


@dataclass(frozen=True, eq=False)
class FirstRuns(RunModel):
    """The model of a run about which nothing is known, made by :func:`weitzman.learn.from_nothing`.

    Eight runs are started. Fewer and fewer of them go on, always the best, until one has come to
    its end. That run shows how long runs are, what they cost and how scores rise. From then on
    :meth:`updated` gives a model learned from the runs of this search. Runs that were cut off go
    on in ways that :mod:`weitzman.learn.continuations` states.

    Attributes
    ----------
    price : float
        What one point of score is worth, in units of cost; 1 as long as only the cost of a full run
        is stated and no run has ended.
    minimize : bool
        Lower scores are better.
    rungs : array of int
        The steps of decisions. Until a run has ended, a single step that no run reaches.
    """

    price: float
    minimize: bool
    rungs: IntArray
    full_run_cost: float | None = None
    limit: float | None = None
    shapes: tuple[Shape, ...] = ()
    started: int = 0
    bars: tuple[float, ...] = ()

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
        return math.inf if self.started < STARTS else NEW

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

        A run that is not among the best of its rung has a lower index than a new run. The index is
        -inf for a run that has diverged or ended.
        """
        if self.next_rung(steps[-1]) is None or math.isnan(scores[-1]):
            return -math.inf
        best = max(-x if self.minimize else x for x in scores if not math.isnan(x))
        level = int(np.searchsorted(self.rungs, steps[-1], "right"))
        if 0 < level <= len(self.bars) and self._below(best, level, steps, costs):
            return _BEYOND * (0.25 + 0.1 * best / (1.0 + abs(best)))
        return _BEYOND * (1.0 + 1.0 / (1.0 + level))

    def _below(
        self, best: float, level: int, steps: Sequence[int], costs: Sequence[float] | None
    ) -> bool:
        """Whether a run is not among the best, less what the next segment may cost.

        The next segment is taken to cost what the last one did, if the price is known.
        """
        before, paid = (self.rungs[level - 2] if level > 1 else -END), 0.0
        if costs is not None and self.full_run_cost is None:
            paid = sum(c for s, c in zip(steps, costs, strict=True) if s > before) / self.price
        return best - paid < self.bars[level - 1] - _ROUNDED * (abs(best) + paid)

    def gain(self, best: float, runs: Sequence[Shown], fresh: int) -> float:
        """Infinite, that is: not known."""
        return math.inf

    def updated(self, curves: Curves, stuck: Sequence[int] = ()) -> RunModel:
        """A model learned from these runs, or this one if no run with a score has ended yet.

        ``stuck`` are the places of runs that have not ended and yet cannot go on: nobody waits for
        them.
        """
        if curves.minimize != self.minimize:
            raise InvalidArgument("the model and the curves must both maximize or both minimize.")
        whole = _whole(curves, int(self.rungs[-1]))
        first = curves.select(np.arange(min(len(curves), STARTS)))
        able = ~np.isin(np.arange(len(first)), stuck)
        now = replace(self, started=len(curves), bars=self._bars(first, able))
        waits = now._waits(first, able)
        if not whole.any() or (waits and not _far(curves.select(whole), self.rungs)):
            return now
        return self._learned(curves, curves.select(whole))

    def _waits(self, curves: Curves, able: BoolArray) -> bool:
        """Whether one of these runs is to go on before a model is learned."""
        shown = curves.step, curves.score, curves.cost
        for i in np.flatnonzero(able & ~curves.ended).tolist():
            rows = slice(curves.start[i], curves.start[i + 1])
            if self.next_index(*(x[rows].tolist() for x in shown)) > _BEYOND:
                return True
        return False

    def _bars(self, curves: Curves, able: BoolArray) -> tuple[float, ...]:
        """What the first runs need at each rung to go on: successive halving."""
        ladder, bars = climb_all(curves, self.rungs), []
        ladder = replace(ladder, gone=ladder.gone | ~able).select(ladder.seen > 0)
        net = ladder.best if self.full_run_cost else ladder.best - ladder.cost / self.price
        for r in range(int(ladder.seen.max()) if len(ladder) else 0):
            going = (ladder.seen > r) & ~(ladder.gone & (ladder.seen == r + 1))
            there = np.sort(net[going, r])
            keep = math.ceil(STARTS / _RATE ** (r + 1))
            bars.append(float(there[::-1][min(keep, len(there)) - 1]) if len(there) else -math.inf)
        return tuple(bars)

    def _learned(self, curves: Curves, whole: Curves) -> RunModel:
        price = price_of(whole, None, self.full_run_cost) if self.full_run_cost else self.price
        rungs = choose_rungs(whole, Recipe().ratio)
        encoder = Encoder.of(curves.settings)
        if (np.diff(curves.start) > 0).sum() < _KNOWING:
            encoder = Encoder((), ())
        new = climb(curves, rungs, encoder)
        if len(new) < _FEWEST:
            return replace(self, price=price, rungs=rungs, started=len(new))
        paid, known = _paid(new), completed(new)
        if self.shapes:
            known = known.joined(mixture(self.shapes, new, paid, _WEIGHT))
        least = _LEAST * float(paid[-1]) / price
        recipe = Resemblance(trees=_TREES, tail=_TAIL, least=least, limit=self.limit)
        ceiling = ceiling_of(self.limit, self.minimize)
        known = replace(known, best=np.minimum(known.best, ceiling))
        return ResemblanceModel(
            known, encoder, price=price, minimize=self.minimize, settings=recipe
        )


def _far(whole: Curves, rungs: IntArray) -> bool:
    """Whether one of these runs went so far that only one of the first runs was to go on."""
    level = min(math.ceil(math.log(STARTS) / math.log(_RATE)), len(rungs) - 1)
    return bool((whole.step[whole.start[1:] - 1] >= rungs[level]).any())


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
    others: Curves | None = None,
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
    others : Curves, optional
        Logs of other tasks, on any scale. Their rises are added to what the runs of the search
        show, weighted by how well they fit the first runs.

    Examples
    --------
    >>> from weitzman import learn
    >>> model = learn.from_nothing(full_run_cost=0.01)
    >>> model
    FirstRuns(a full run costs 0.01 points)
    >>> letter = learn.sample().of_task("letter")
    >>> model.updated(letter.select([0, 20, 40, 60]))
    ResemblanceModel(4 runs, 8 rungs up to step 19, price ...: a full run costs 0.01 points)
    """
    if (price is None) == (full_run_cost is None):
        raise InvalidArgument("give either `price` or `full_run_cost`.")
    if full_run_cost is not None and not 0 < full_run_cost < np.inf:
        raise InvalidArgument(
            f"`full_run_cost` must be above 0 and finite, but it is {full_run_cost!r}."
        )
    if last_step is not None and (isinstance(last_step, bool) or not isinstance(last_step, int)):
        raise InvalidArgument(f"`last_step` must be a whole number, but it is {last_step!r}.")
    shapes: list[Shape] = []
    if others is not None:
        shapes = [Shape.of(others.of_task(task)) for task in others.tasks]
    return FirstRuns(
        1.0 if price is None else check_price(price), minimize,
        _levels(END if last_step is None else max(last_step, 2)), full_run_cost,
        limit, tuple(shapes),
    )  # fmt: skip


def _levels(last: int) -> IntArray:
    """Steps at which the first runs are compared."""
    out = [1]
    while out[-1] < last:
        out.append(min(max(round(_RATE * out[-1]), out[-1] + 1), last))
    return np.array(out)
