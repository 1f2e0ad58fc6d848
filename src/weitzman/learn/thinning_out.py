"""Successive halving that knows the price: which of the first runs go on, and whether it pays.

As long as nobody knows how long runs are, each run is compared with others at its own *levels*: the
first row that costs anything, and each row at which it has paid 1.4 times what it had paid at the
level before. The end of a run is its last level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from .curves import Curves

RATE = 1.4  # times as much a run has paid at each level; of the runs there this many times fewer
STARTS = 8  # runs that are started first
_PACE = 0.8  # how fast runs are dropped where more were started, as a power
_SURE = 2  # levels that a run goes through whatever it shows
_LOOK = 4  # levels that are looked ahead,
_RISES = 0.8  # each with this much of the rise of the level before,
_RISES_BY = 0.4  # give or take this share of it,
_CHANCE = 2.0  # and this many times what the better half of runs differ by


@dataclass(frozen=True, slots=True, eq=False)
class OwnLevels:
    """Runs at their own levels.

    Attributes
    ----------
    best : (n, K) array of float
        The best score up to each level, turned so that higher is better.
    cost : (n, K) array of float
        What the segment before each level cost.
    count : (n,) array of int
        How many levels each run has reached.
    between : (n,) array of bool
        Whether a run has gone on since its last level.
    """

    best: FloatArray
    cost: FloatArray
    count: IntArray
    between: BoolArray

    @classmethod
    def of(cls, curves: Curves) -> OwnLevels:
        """The levels of these curves. If all rows are free, each row counts as one unit of cost."""
        n, length = len(curves), np.diff(curves.start)
        run = curves.run_of_row
        column = np.arange(len(run)) - curves.start[run]
        shape = n, int(length.max()) + 1
        best, cost = np.full(shape, -np.inf), np.zeros(shape)
        score = -curves.score if curves.minimize else curves.score
        best[run, column] = np.where(np.isnan(score), -np.inf, score)
        cost[run, column] = curves.cost if (curves.cost > 0).any() else 1.0
        paid = np.cumsum(cost, axis=1)
        paid[np.arange(shape[1]) >= length[:, None]] = np.inf
        end = curves.ended[:, None] & (np.arange(shape[1]) == length[:, None] - 1)
        return cls._at(np.maximum.accumulate(best, axis=1), paid, length, end)

    @classmethod
    def _at(cls, best: FloatArray, paid: FloatArray, length: IntArray, end: BoolArray) -> OwnLevels:
        every = np.arange(len(length))
        scores: list[FloatArray] = []
        costs: list[FloatArray] = []
        count, last = np.zeros(len(length), np.int64), np.full(len(length), -1)
        row, before = last, np.zeros(len(length))
        while True:
            enough = (paid > 0) & (end | (paid >= RATE * before[:, None]))
            enough &= np.arange(paid.shape[1]) > row[:, None]
            found = np.argmax(enough, axis=1)
            there = found < length
            there &= (row < length) & enough[every, found]
            if not there.any():
                break
            now = paid[every, found]
            scores.append(np.where(there, best[every, found], -np.inf))
            costs.append(np.where(there, now - before, 0.0))
            row, before = np.where(there, found, paid.shape[1]), np.where(there, now, np.inf)
            count += there
            last = np.where(there, found, last)
        if not scores:
            blank = np.zeros((len(length), 0))
            return cls(blank, blank, count, np.ones(len(length), bool))
        return cls(np.stack(scores, 1), np.stack(costs, 1), count, last < length - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """What runs need at each level to go on.

    Attributes
    ----------
    bar : (K,) array of float
        The lowest score less cost, of those that go on.
    spread : (K,) array of float
        How much the better half of the runs differ.
    price : float or None
        What a point is worth, if that is known.
    best : float
        The best score of all.
    """

    bar: FloatArray
    spread: FloatArray
    price: float | None
    best: float

    @classmethod
    def of(
        cls, runs: OwnLevels, able: BoolArray, n: int, *, price: float | None, best: float
    ) -> Bars:
        """For n runs, of which fewer and fewer go on; not quite so fast where they are many."""
        net = runs.best if price is None else runs.best - runs.cost / price
        bar, spread, width = [], [], 0.0
        pace = 1.0 if n <= STARTS else _PACE
        for k in range(runs.best.shape[1]):
            there = runs.count > k
            going = np.sort(net[there & (able | (runs.count > k + 1)), k])[::-1]
            keep = math.ceil(n / RATE ** (pace * (k + 1)) - 1e-9)
            bar.append(going[min(keep, len(going)) - 1] if len(going) else -np.inf)
            top = np.sort(runs.best[there, k])[int(there.sum()) // 2 :]
            width = float(np.std(top, ddof=1)) if len(top) > 1 and np.isfinite(top).all() else 0.0
            spread.append(width)
        return cls(np.array(bar), np.array(spread), price, best)

    def go_on(self, runs: OwnLevels) -> BoolArray:
        """Which runs are to go on: the best of their level, if that is likely to pay."""
        out = np.ones(len(runs.count), bool)
        for i in np.flatnonzero((runs.count > 0) & ~runs.between).tolist():
            k = int(runs.count[i]) - 1
            if k < len(self.bar):
                out[i] = self._passes(k, runs.best[i], runs.cost[i])
        return out

    def _passes(self, k: int, best: FloatArray, cost: FloatArray) -> bool:
        paid = 0.0 if self.price is None else float(cost[k]) / self.price
        if best[k] - paid < self.bar[k] - 1e-9 * (abs(best[k]) + paid):
            return False
        if self.price is None or k < _SURE:
            return True
        rise = float(best[k] - best[k - 1])
        return hope(float(best[k]) - self.best, rise, paid, float(self.spread[k])) > 0


def hope(lead: float, rise: float, cost: float, spread: float) -> float:
    """What going on should add to the best score, less its cost, over the best number of levels."""
    square, ahead, spent, most = 0.0, lead, 0.0, -math.inf
    for _ in range(_LOOK):
        cost, rise = RATE * cost, _RISES * rise
        spent, ahead = spent + cost, ahead + rise
        square = (math.sqrt(square) + _RISES_BY * rise) ** 2 + (_CHANCE * spread) ** 2
        most = max(most, _excess(ahead, math.sqrt(square)) - spent)
    return most


def _excess(mean: float, error: float) -> float:
    """The mean of the positive part of a normal number."""
    if not error > 0:
        return max(mean, 0.0)
    z = mean / error
    density = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return 0.5 * mean * math.erfc(-z / math.sqrt(2.0)) + error * density
