"""Past runs to search again: every row stays hidden until it is paid for.

Samplers propose points of a whole space of settings. The nearest run that was not started is taken,
so that every method chooses among the same runs (:class:`PoolSpace`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from ..learn.curves import Curves
from ..learn.log_tables import Config, Encoder

_DECADES = 100.0  # a scale is logarithmic if the ratio of its ends is at least this


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The curves of one task with a row of a matrix for each run.

    Scores are turned so that higher is better. ``length[r]`` entries of row r are filled.

    Parameters
    ----------
    step : (n, s) array of int
    score : (n, s) array of float
        Minus infinity where a run has diverged, and after its end.
    top : (n, s) array of float
        The best score of the run so far, at least the floor.
    spend : (n, s + 1) array of float
        ``spend[r, k]`` is what the first k steps of run r cost together.
    length : (n,) array of int
    floor : float
        The worst score of the table: the score of a search that saw only diverged runs.
    sign : float
        1.0, or -1.0 when lower scores are better.
    settings : tuple of mappings
        What each run was started with; empty if that is not known.
    """

    step: IntArray
    score: FloatArray
    top: FloatArray
    spend: FloatArray
    length: IntArray
    floor: float
    sign: float
    settings: tuple[Config, ...] = ()

    @classmethod
    def of(cls, curves: Curves) -> Table:
        """The runs of a set of curves, which should belong to one task."""
        n, length = len(curves), np.diff(curves.start)
        run = curves.run_of_row
        column = np.arange(len(curves.step)) - curves.start[run]
        sign = -1.0 if curves.minimize else 1.0
        step = np.zeros((n, int(length.max())), np.int64)
        score = np.full(step.shape, -np.inf)
        cost = np.zeros(step.shape)
        step[run, column] = curves.step
        score[run, column] = np.where(np.isnan(curves.score), -np.inf, sign * curves.score)
        cost[run, column] = curves.cost
        spend = np.concatenate([np.zeros((n, 1)), np.cumsum(cost, axis=1)], axis=1)
        seen = score[np.isfinite(score)]
        floor = float(seen.min()) if len(seen) else 0.0
        top = np.maximum(np.maximum.accumulate(score, axis=1), floor)
        return cls(step, score, top, spend, length, floor, sign, curves.settings)

    def extended(self, parent: IntArray, height: FloatArray) -> Table:
        """This table with further runs, each learning like its parent, but to this best score.

        The nearer a parent is to its best score, the more of the difference has its child gained.
        """
        first, last = self.top[parent, :1], self.top[parent, -1:]
        rise = last - first
        share = np.where(rise > 0, (self.top[parent] - first) / np.where(rise > 0, rise, 1.0), 1.0)
        more = share * (height[:, None] - last)
        score, top = self.score[parent] + more, self.top[parent] + more
        return replace(
            self,
            step=np.vstack([self.step, self.step[parent]]),
            score=np.vstack([self.score, score]),
            top=np.vstack([self.top, top]),
            spend=np.vstack([self.spend, self.spend[parent]]),
            length=np.append(self.length, self.length[parent]),
            settings=(*self.settings, *(self.settings[i] for i in parent if self.settings)),
        )

    def hindsight(self, runs: IntArray, price: float) -> tuple[float, float]:
        """Score and spend with hindsight: the best run, stopped at its best moment."""
        payoff = price * self.top[runs] - self.spend[runs, 1:]
        payoff[np.arange(payoff.shape[1]) >= self.length[runs, None]] = -np.inf
        run, row = np.unravel_index(np.argmax(payoff), payoff.shape)
        return float(self.top[runs[run], row]), float(self.spend[runs[run], row + 1])


class Bench:
    """One search among runs of a table, in a given order. The only way to see a score is to pay.

    Runs are called 0, 1, ... in the order in which a method may start them.

    Examples
    --------
    >>> curves = Curves.read({"run": ["a", "a", "b"], "step": [1, 2, 1],
    ...                       "score": [0.5, 0.7, 0.4], "cost": [1, 2, 1]})
    >>> bench = Bench(Table.of(curves), np.array([1, 0]))
    >>> bench.advance(1, 2), bench.best, bench.spent
    (0.7, 0.7, 3.0)
    >>> bench.advance(1, 2), bench.spent
    (0.7, 3.0)
    """

    def __init__(self, table: Table, order: IntArray) -> None:
        self.seen = np.zeros(len(order), np.int64)  # rows revealed of each run
        self.best = table.floor
        self.spent = 0.0
        self.longest = table.score.shape[1]  # rows of the longest run
        self._table, self._order = table, order

    @property
    def settings(self) -> list[Config] | None:
        """What each run would be started with, which is known beforehand; None if it is not."""
        known = self._table.settings
        return [known[i] for i in self._order.tolist()] if known else None

    def __len__(self) -> int:
        """How many runs there are to start."""
        return len(self._order)

    def advance(self, run: int, rows: int) -> float:
        """Reveal a run up to this many rows, or to its end, and return the last score seen.

        What was revealed before is not paid for again. The score is turned so that higher is
        better; it is minus infinity where the run has diverged.
        """
        table, r, before = self._table, self._order[run], self.seen[run]
        after = min(rows, table.length[r])
        if after > before:
            self.seen[run] = after
            self.spent += float(table.spend[r, after] - table.spend[r, before])
            self.best = max(self.best, float(table.top[r, after - 1]))
        return float(table.score[r, self.seen[run] - 1])

    def advance_all(self, runs: IntArray, rows: int | IntArray) -> FloatArray:
        """:meth:`advance` for one or more runs at once."""
        table, r, before = self._table, self._order[runs], self.seen[runs]
        after = np.maximum(np.minimum(rows, table.length[r]), before)
        self.seen[runs] = after
        self.spent += float((table.spend[r, after] - table.spend[r, before]).sum())
        self.best = max(self.best, float(table.top[r, after - 1].max()))
        return np.asarray(table.score[r, after - 1])

    def first_epoch(self, runs: IntArray) -> FloatArray:
        """Reveal runs up to the first step that costs something; returns the scores there."""
        paid = self._table.spend[self._order[runs], 1:] > 0
        return self.advance_all(runs, np.argmax(paid, axis=1) + 1)

    def follow(self, run: int, until: int) -> list[tuple[int, float, float]]:
        """Reveal a run until a step, or to its end: the new steps, scores and costs.

        Scores are the scores of the curves, NaN where the run has diverged.
        """
        table, r, before = self._table, self._order[run], int(self.seen[run])
        length = int(table.length[r])
        after = before
        while after < length and (after == before or table.step[r, after - 1] < until):
            after += 1
        self.advance(run, after)
        score = table.sign * table.score[r, before:after]
        score[np.isinf(score)] = np.nan
        step, cost = table.step[r, before:after], np.diff(table.spend[r, before : after + 1])
        return list(zip(step.tolist(), score.tolist(), cost.tolist(), strict=True))

    def best_of(self, run: int) -> float:
        """The best score that a run has shown, at least the floor."""
        table, rows = self._table, int(self.seen[run])
        return float(table.top[self._order[run], rows - 1]) if rows else table.floor

    def is_over(self, run: int) -> bool:
        """Whether all rows of a run have been revealed, so that it cannot be advanced."""
        return bool(self.seen[run] == self._table.length[self._order[run]])


@dataclass(frozen=True, slots=True, eq=False)
class PoolSpace:
    """The space that settings lie in: numbers from 0 to 1, and categories.

    Parameters
    ----------
    encoder : Encoder
    low, high : (d,) arrays of float
        The range of each number, logarithms where ``log`` says so.
    log : (d,) array of bool
    missing : (d,) array of bool
        Which numbers some runs lack: such a number is taken as the least one, and a category of its
        own says which runs lack it.
    """

    encoder: Encoder
    low: FloatArray
    high: FloatArray
    log: BoolArray
    missing: BoolArray

    @classmethod
    def of(cls, settings: Sequence[Config]) -> PoolSpace:
        """The space of all these settings."""
        encoder = Encoder.of(settings)
        raw = encoder.numbers(settings, len(settings))
        number = ~encoder.is_category
        seen = np.where(np.isnan(raw), np.inf, raw)
        low = seen.min(axis=0, initial=np.inf)
        high = np.where(np.isnan(raw), -np.inf, raw).max(axis=0, initial=-np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            log = number & (low > 0) & (high / low >= _DECADES)
            low, high = (np.where(log, np.log(x), x) for x in (low, high))
        return cls(encoder, low, high, log, number & np.isnan(raw).any(axis=0))

    @property
    def categories(self) -> list[int]:
        """For each column of :meth:`points` how many categories it has; 0 for a number."""
        kinds = self.encoder.categories
        return [0 if k is None else len(k) + 1 for k in kinds] + [2] * int(self.missing.sum())

    def points(self, settings: Sequence[Config]) -> FloatArray:
        """One row for each run: numbers from 0 to 1, and codes of categories."""
        raw = self.encoder.numbers(settings, len(settings))
        lack = np.isnan(raw)
        with np.errstate(divide="ignore", invalid="ignore"):
            number = np.where(self.log, np.log(raw), raw)
            unit = (number - self.low) / np.where(self.high > self.low, self.high - self.low, 1.0)
        unit = np.clip(np.where(lack, 0.0, unit), 0.0, 1.0)
        other = np.array(self.categories[: raw.shape[1]]) - 1  # missing, or not in the space
        code = np.where(lack, other, np.minimum(raw, other))
        which = self.encoder.is_category
        return np.column_stack([np.where(which, code, unit), lack[:, self.missing]])

    def features(self, settings: Sequence[Config]) -> FloatArray:
        """The points with one column of 0 and 1 for each category."""
        points = self.points(settings)
        columns = [
            points[:, [d]] if size == 0 else (points[:, [d]] == np.arange(size)).astype(float)
            for d, size in enumerate(self.categories)
        ]
        return np.hstack([np.zeros((len(points), 1)), *columns])

    def nearest(self, point: FloatArray, points: FloatArray) -> int:
        """The row nearest to a point, the first of several; categories differ by 1."""
        apart = np.abs(points - point)
        return int(
            np.argmin(np.where(np.array(self.categories) > 0, apart > 0, apart**2).sum(axis=1))
        )
