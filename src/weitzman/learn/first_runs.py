"""A search without any log: halving that knows the price, and how many runs are worth starting.

Nobody knows yet how long runs are, what they cost, or how much better one can be than another. So
the rule rests on what was seen, and on no scale or zero of scores. "How learning works" in the
documentation states it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from ..errors import InvalidArgument
from ..forest.model import Forest
from .curves import Curves
from .log_tables import NO_SETTINGS, Config, Encoder
from .resembling_runs import Trees
from .run_model import RunModel, Shown, as_curves, ceiling_of, check_price, check_stated, price_of

RATE = 3.0  # times as much a run has paid at each level; of the runs there this many times fewer
FEW, STARTS = 6, 16  # runs that are started first at any price, and if the price allows
_GROWTH = 1.5  # times as many runs are started if that should pay
_TOP = 3  # spacings between the best scores that say by how much a record leads
_SURE = 2  # levels that say too little about rises
_TIMES = 2.0  # times its cost that a further round of runs must promise
_OPEN = 0.05  # prior share of the distance to the limit that a record takes,
_OPEN_RUNS = 10.0  # which counts for so many runs
_RANDOM_EVERY = 3  # of so many new runs one is started whatever its settings
_TREES, _LEAF = 16, 3  # that rank settings

END = 2**53  # a step that no run reaches: the run goes to its end
_FINE = 1.05  # times as far runs go until they are looked at again
UNKNOWN = 1e290  # indices from this number up follow from ranks, and are no worths
BEYOND = 1e300  # more than any worth; runs that are to go on have indices of one to two times that
_START = 3.0 * BEYOND  # the index of a new run as long as more are wanted,
NEW = BEYOND / 2  # and after that: below a run that is to go on, above one that is not


@dataclass(frozen=True, slots=True, eq=False)
class OwnLevels:
    """Runs at their own levels."""

    best: FloatArray  # (n, K): the best score up to each level, turned so that higher is better
    paid: FloatArray  # (n, K): what a run has paid up to each level
    count: IntArray  # (n,): how many levels each run has reached
    between: BoolArray  # (n,): whether a run has continued since its last level

    @classmethod
    def of(cls, curves: Curves, rungs: IntArray | None = None) -> OwnLevels:
        """The levels of these curves. If all rows are free, each row counts as one unit of cost.

        A level is a row at which a run stopped: the first row at or after one of the ``rungs``.
        """
        n, length = len(curves), np.diff(curves.start)
        run = curves.run_of_row
        column = np.arange(len(run)) - curves.start[run]
        shape = n, int(length.max(initial=0)) + 1
        best, cost = np.full(shape, -np.inf), np.zeros(shape)
        score = -curves.score if curves.minimize else curves.score
        best[run, column] = np.where(np.isnan(score), -np.inf, score)
        cost[run, column] = curves.cost if (curves.cost > 0).any() else 1.0
        best, paid = np.maximum.accumulate(best, axis=1), np.cumsum(cost, axis=1)
        columns = np.arange(shape[1])
        seen = columns < length[:, None]
        end = curves.ended[:, None] & (columns == length[:, None] - 1)
        stop = np.ones(shape, bool)
        if rungs is not None:
            passed = np.searchsorted(rungs, curves.step, "right")
            stop[run, column] = np.diff(passed, prepend=-1) > 0
            stop[:, 0] = True
        every = np.arange(n)
        scores, costs = [], []
        count, row, before = np.zeros(n, np.int64), np.full(n, -1), np.zeros(n)
        while True:
            # the first row after the last level at which enough was paid, or the run ended
            enough = seen & (paid > 0) & (end | (stop & (paid >= RATE * before[:, None])))
            enough &= columns > row[:, None]
            found = enough.argmax(axis=1)
            there = enough[every, found]
            if not there.any():
                break
            scores.append(np.where(there, best[every, found], -np.inf))
            costs.append(np.where(there, paid[every, found], 0.0))
            row, before = np.where(there, found, row), np.where(there, costs[-1], np.inf)
            count += there
        best, paid = (np.stack(x, 1) if x else np.zeros((n, 0)) for x in (scores, costs))
        return cls(best, paid, count, row < length - 1)


def open_scale(runs: OwnLevels, ceiling: float) -> float:
    """The scale t of what is still open above the best score."""
    seen = runs.count > 0
    first = runs.best[seen, 0] if runs.best.shape[1] else np.zeros(0)
    first = first[np.isfinite(first)]
    if not len(first):
        return 0.0
    best = float(runs.best.max())
    room = ceiling - best if math.isfinite(ceiling) else best - float(np.median(first))
    # the highest level that enough runs have reached
    enough = [k for k in range(runs.best.shape[1]) if (runs.count > k).sum() > _TOP]
    k = enough[-1] if enough else 0
    top = np.sort(runs.best[runs.count > k, k])[::-1][: _TOP + 1]
    top = top[np.isfinite(top)]
    steps = np.arange(1, len(top)) * -np.diff(top)
    theta = float(steps.mean()) if len(steps) else 0.0
    n = len(runs.count)
    return (_OPEN_RUNS * _OPEN * room + n * theta) / (_OPEN_RUNS + n)


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """What runs need at each level to go on."""

    bar: FloatArray  # (K,): the lowest score less cost, of those that go on
    rise: FloatArray  # (K,): the largest rise seen to the next level; -inf if none went there
    price: float | None  # what a point is worth, if that is known
    best: float  # of all scores,
    scale: float  # and the scale of what is still open above it

    @classmethod
    def of(
        cls, runs: OwnLevels, able: BoolArray, n: int, *, price: float | None, ceiling: float
    ) -> Bars:
        """For n runs, of which fewer and fewer go on. Those that are not able to count for none."""
        net = runs.best if price is None else runs.best - runs.paid / price
        levels = runs.best.shape[1]
        bar, rise = np.full(levels, -np.inf), np.full(levels, -np.inf)
        for k in range(levels):
            further = runs.count > k + 1
            going = np.sort(net[(runs.count > k) & (able | further), k])[::-1]
            if len(going):
                bar[k] = going[min(math.ceil(n / RATE ** (k + 1) - 1e-9), len(going)) - 1]
            if k + 1 < levels and further.any():
                rise[k] = np.max(_rise(runs.best[further, k], runs.best[further, k + 1]))
        best = float(runs.best.max(initial=-np.inf))
        return cls(bar, rise, price, best, open_scale(runs, ceiling))

    def go_on(self, runs: OwnLevels) -> BoolArray:
        """Which runs are to go on: those between levels, and the best of their level if it pays."""
        out = np.ones(len(runs.count), bool)
        for i in np.flatnonzero((runs.count > 0) & ~runs.between).tolist():
            k = int(runs.count[i]) - 1
            if k < len(self.bar):
                out[i] = self._passes(k, runs.best[i], float(runs.paid[i, k]))
        return out

    def _passes(self, k: int, best: FloatArray, paid: float) -> bool:
        spent = 0.0 if self.price is None else paid / self.price
        score = float(best[k])
        if score - spent < self.bar[k] - 1e-9 * (abs(score) + spent):
            return False
        if self.price is None or k < _SURE:
            return True
        rise = max(float(self.rise[k]), float(_rise(best[k - 1], best[k])))
        return rise + self.scale + score - self.best > (RATE - 1.0) * spent


def _rise(before: FloatArray, after: FloatArray) -> FloatArray:
    """How much scores rose; without end from a run that had no score."""
    known = np.isfinite(before)
    return np.where(known, after - np.where(known, before, 0.0), np.inf)


@dataclass(frozen=True, eq=False)
class FirstRuns(RunModel):
    """The model of a run about which nothing is known, made by :func:`weitzman.learn.from_nothing`.

    It learns from the runs of the search, by a rule that "How learning works" states.

    Attributes
    ----------
    price : float
        What one point of score is worth, in units of cost; 1 as long as only the cost of a full run
        is stated and no run has ended.
    minimize, rungs
        As in :class:`RunModel`.
    scale : float
        What is still open above the best score, in points: see the rule.
    spent : float
        What the runs have cost so far.
    """

    price: float
    minimize: bool
    rungs: IntArray
    full_run_cost: float | None = None
    limit: float | None = None
    started: int = 0
    wanted: int = STARTS
    best: float = -math.inf
    scale: float = 0.0
    spent: float = 0.0
    bars: Bars | None = None
    over: bool = False
    rank: FloatArray | None = None
    encoder: Encoder = NO_SETTINGS
    config: FloatArray | None = None

    def __repr__(self) -> str:
        stated = f"price {self.price:.6g}"
        if self.full_run_cost is not None:
            stated = f"a full run costs {self.full_run_cost:.3g} points"
        return f"FirstRuns({stated}{', minimize' if self.minimize else ''})"

    @property
    def reason(self) -> str:
        """What further runs promise, in points: the reason to start more, or to stop."""
        more, cost = self._round
        return (
            f"half as many further runs should add {more:.3g} points to the best score, and cost "
            f"{cost:.3g} points"
        )

    @property
    def fresh_index(self) -> float:
        """Above all others as long as more runs are wanted; the worth of the best at the end."""
        if self.started < self.wanted:
            return _START
        return self.price * self.best if self.over else NEW

    def start_indices(self, settings: Sequence[Config]) -> FloatArray:
        """The index of starting a run with each of these settings, by their forecast rank."""
        index, settled = np.full(len(settings), self.fresh_index), self.fresh_index < UNKNOWN
        alike = settled or self.started % _RANDOM_EVERY == 0 or not len(settings)
        if alike or self._trees is None or self.rank is None:
            return index
        config = self.encoder.numbers(settings, len(settings))
        row = self._trees.rows(config, np.full(len(settings), -1))
        return np.asarray(index * (1.0 + 0.1 * (row @ self.rank)))

    @cached_property
    def _trees(self) -> Trees | None:
        """Trees that tell runs with different ranks apart by their settings."""
        if self.config is None or self.rank is None or not self.encoder.names:
            return None
        random = np.random.default_rng(self.started)  # the same runs, the same proposals
        return Trees.grown(
            self.config, self.encoder.is_category, self.rank[:, None], np.ones(len(self.rank)),
            trees=_TREES, leaf=_LEAF, random=random,
        )  # fmt: skip

    def lines(self, n: int = 1) -> Forest:
        """An error: no forest is known."""
        raise InvalidArgument("nothing is known about runs yet, so there is no forest of runs.")

    def next_indices(self, runs: Sequence[Shown]) -> FloatArray:
        """Larger than any worth, lowest for runs that should not continue.

        The highest is that of the run to continue that came the least far.
        """
        out = np.full(len(runs), -np.inf)
        ends = ((run.steps[-1], run.scores[-1]) for run in runs)
        able = [
            i for i, (step, score) in enumerate(ends)
            if self.next_rung(step) is not None and not math.isnan(score)
        ]  # fmt: skip
        if not able:
            return out
        curves = as_curves([runs[i] for i in able], self.minimize)
        levels = OwnLevels.of(curves, self.rungs)
        score = -curves.score if self.minimize else curves.score
        best = np.fmax.reduceat(score, curves.start[:-1])
        low = BEYOND * (0.25 + 0.1 * best / (1.0 + np.abs(best)))
        good = np.ones(len(able), bool) if self.bars is None else self.bars.go_on(levels)
        ranks = np.where(good, BEYOND * (1.0 + 1.0 / (1.0 + levels.count)), low)
        out[able] = self.price * self.best if self.over else ranks
        return out

    @property
    def _round(self) -> tuple[float, float]:
        """What half as many further runs should add, and what they should cost, in points."""
        more, cost = self.scale * math.log(_GROWTH), (_GROWTH - 1.0) * self.spent / self.price
        return more, cost

    @property
    def promises(self) -> bool:
        """Whether half as many further runs promise enough."""
        more, cost = self._round
        return more > _TIMES * cost

    def gain(self, best: float, runs: Sequence[Shown], fresh: int) -> float:
        """What half as many further runs should add, after their cost."""
        more, cost = self._round
        return self.price * max(more - cost, 0.0) if fresh else 0.0

    def updated(
        self, curves: Curves, stuck: Sequence[int] = (), left: float = math.inf,
        flying: Sequence[int] = (), unseen: int = 0,
    ) -> FirstRuns:  # fmt: skip
        """The same rule, by what these runs have shown.

        ``stuck`` are the places of runs that have not ended and yet cannot go on: nobody waits for
        them; ``flying`` those of runs that are being advanced. ``left`` is how many further runs
        can be started, and ``unseen`` how many were started and have shown nothing yet.
        """
        if curves.minimize != self.minimize:
            raise InvalidArgument("the model and the curves must both maximize or both minimize.")
        n, ceiling = len(curves), ceiling_of(self.limit, self.minimize)
        end = curves.start[1:] - 1
        over = curves.ended | (curves.step[end] >= self.rungs[-1])
        # runs that came to their end with a score, and not long before the others
        long = 2 * curves.step[end] >= curves.step[end].max()
        whole = over & ~np.isnan(curves.score[end]) & long
        able = ~curves.ended & ~np.isin(np.arange(n), stuck)
        price = None if self.full_run_cost else self.price
        if whole.any() and self.full_run_cost:
            price = price_of(curves.select(whole), None, self.full_run_cost)
        levels = OwnLevels.of(curves, self.rungs)
        bars = Bars.of(levels, able, n, price=price, ceiling=ceiling)
        if bars.best > ceiling:
            best = -bars.best if self.minimize else bars.best
            raise InvalidArgument(
                f"no score may be better than the limit of {self.limit:g}, but a run showed "
                f"{best:.6g}. Are both in the same unit?"
            )
        encoder = Encoder.of(curves.settings)
        now = replace(
            self, price=price or 1.0, started=n + unseen, best=bars.best, scale=bars.scale,
            spent=float(curves.total_cost.sum()), encoder=encoder,
            rank=_ranked(levels, price) if n >= STARTS else None,
            config=encoder.numbers(curves.settings, n) if encoder.names else None,
        )  # fmt: skip
        n += unseen
        # the number of runs grows by the same factor each time, whoever started them
        size = STARTS if price is None else FEW
        while size < STARTS and (size < n or (size == n and now.promises)):
            size = min(math.ceil(_GROWTH * size), STARTS)
        while size < n:
            size = math.ceil(_GROWTH * size)
        size = int(min(size, n + left))
        bars = Bars.of(levels, able, size, price=price, ceiling=ceiling)
        going = bars.go_on(levels) & able
        idle = np.ones(len(going), bool)
        idle[list(flying)] = False
        if n < size or (going & idle).any():
            return replace(now, wanted=size, bars=bars)
        alone = not (going.any() or unseen)  # else some are on their way, and may be waited for
        if not math.isfinite(now.best) or (price is None and not whole.any()):
            more_runs = alone and bool(left)
            return replace(now, wanted=n + more_runs, bars=bars, over=alone and not left)
        # without a price nobody can tell that more would pay
        if price is not None and now.promises and left:
            return replace(now, wanted=int(min(math.ceil(_GROWTH * size), n + left)), bars=bars)
        return replace(now, wanted=n, bars=bars, over=alone)


def _ranked(levels: OwnLevels, price: float | None) -> FloatArray:
    """Ranks of runs between 0 and 1: by how many levels they reached, then by score less cost."""
    last = np.maximum(levels.count - 1, 0)
    every = np.arange(len(last))
    if not levels.best.shape[1]:
        return np.full(len(last), 0.5)
    net = levels.best[every, last]
    if price is not None:
        net = net - levels.paid[every, last] / price
    rank = np.empty(len(last))
    rank[np.lexsort((net, levels.count))] = (every + 0.5) / len(last)
    return rank


def from_nothing(
    *, price: float | None = None, full_run_cost: float | None = None, minimize: bool = False,
    limit: float | None = None, last_step: int | None = None,
) -> FirstRuns:  # fmt: skip
    """A model for a search without any log of its task.

    Parameters
    ----------
    price, full_run_cost, limit : float
        As in :func:`fit`; one of the first two.
    minimize : bool
        Lower scores are better.
    last_step : int, optional
        The last step of a full run, if runs do not end by themselves.

    Examples
    --------
    >>> from weitzman import learn
    >>> model = learn.from_nothing(full_run_cost=0.01)
    >>> model
    FirstRuns(a full run costs 0.01 points)
    >>> letter = learn.sample().of_task("letter")
    >>> model.updated(letter.select(range(0, 80, 4))).reason
    'half as many further runs should add ... points to the best score, and cost ... points'
    """
    check_stated(price, full_run_cost)
    ceiling_of(limit, minimize)
    if last_step is not None and (isinstance(last_step, bool) or not isinstance(last_step, int)):
        raise InvalidArgument(f"`last_step` must be a whole number, but it is {last_step!r}.")
    last = END if last_step is None else max(last_step, 2)
    stops = [0]  # each step, and later every twentieth part
    while stops[-1] < last:
        stops.append(min(max(round(_FINE * stops[-1]), stops[-1] + 1), last))
    worth = 1.0 if price is None else check_price(price)
    return FirstRuns(worth, minimize, np.array(stops), full_run_cost, limit)
