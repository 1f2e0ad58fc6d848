"""Past runs to search again: every row stays hidden until it is paid for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from .._common.arrays import FloatArray, IntArray
from ..learn.curves import Curves
from ..learn.log_tables import Config


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The curves of one task with a row of a matrix for each run.

    Scores are turned so that higher is better. ``length[r]`` entries of row r are filled.

    Parameters
    ----------
    step, score, top : (n, s) arrays
        ``score`` is minus infinity where a run has diverged, and after its end; ``top`` is the best
        score of the run so far, at least the floor.
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
        shape = n, int(length.max())
        step, score, cost = np.zeros(shape, np.int64), np.full(shape, -np.inf), np.zeros(shape)
        step[run, column], cost[run, column] = curves.step, curves.cost
        score[run, column] = np.where(np.isnan(curves.score), -np.inf, sign * curves.score)
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
        return replace(
            self,
            step=np.vstack([self.step, self.step[parent]]),
            score=np.vstack([self.score, self.score[parent] + more]),
            top=np.vstack([self.top, self.top[parent] + more]),
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

    @property
    def seed(self) -> int:
        """A seed for methods that draw: it follows from the order of the runs."""
        return crc32(self._order.tobytes())

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
        end = int(table.length[r])
        rows = int(np.searchsorted(table.step[r, :end], until)) + 1
        after = min(max(rows, before + 1), end)
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
