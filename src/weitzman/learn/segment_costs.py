"""What the next segment of a run costs, by the runs that it resembles and those like it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._common.arrays import BoolArray, FloatArray
from .centers import DOUBTS, Kinship, Peers, SegmentLaw


@dataclass(frozen=True, slots=True, eq=False)
class SegmentCosts:
    """What a segment cost each run of a stage.

    The cost is that of the segment before, times the usual growth. The growth is a geometric mean,
    so that a few short segments with inexact times do not decide. Before the first segment, and
    where runs cost about the same, costs are averaged. Where other runs with the same settings tell
    more, the growth is shrunken to theirs, and other runs say only how far off that is.

    Attributes
    ----------
    cost, level : (n,) arrays of float
        What the segment cost, and the cost level of the segment before it.
    doubt : float
        How little a run with the same settings counts; infinite for not at all.
    own : (n,) array of float
        The growth of each run that is expected by the other runs, NaN for none.
    """

    cost: FloatArray
    level: FloatArray
    doubt: float
    own: FloatArray

    @classmethod
    def of(cls, cost: FloatArray, level: FloatArray) -> SegmentCosts:
        """Costs by the runs that a run resembles alone."""
        return cls(cost, level, np.inf, np.full(len(cost), np.nan))

    def mean(self, law: SegmentLaw, peers: Peers, level: FloatArray) -> FloatArray:
        """The mean cost for runs by their law, and by the cost level of the segment before."""
        cost = self._mean(law.row, level, 0.0, np.zeros(len(self.cost)))
        if np.isfinite(self.doubt):
            growth = self._expected(law, peers, self.doubt)
            known = np.isfinite(self.own)
            some = np.isfinite(growth) & (law.row @ known > 0)
            row = np.where(known, law.row[some], 0.0)
            row = row / row.sum(axis=1, keepdims=True)
            own = np.where(known, self.own, 0.0)
            cost[some] = self._mean(row, level[some], growth[some], own)
        return cost

    def by_settings(self, law: SegmentLaw, peers: Peers) -> SegmentCosts:
        """With costs by settings if they forecast better, by the law of the runs themselves."""
        known = peers.alike(law).any(axis=1) & peers.real
        if not known.any() or not self._paid.all():
            return self
        growth = self._growth
        best, least = self, float(np.square(law.row @ growth - growth)[known].sum())
        for doubt in DOUBTS:
            own = self._expected(law, peers, doubt)
            error = float(np.square(own - growth)[known].sum())
            if error < least:
                best, least = replace(self, doubt=doubt, own=own), error
        return best

    @property
    def _paid(self) -> BoolArray:
        return np.asarray(self.cost > 0)

    @property
    def _growth(self) -> FloatArray:
        """The logarithm of the cost over that of the segment before; 0 for a free segment."""
        paid = np.where(self._paid, self.cost, 1.0)
        return np.where(self._paid, np.log(paid) - self.level, 0.0)

    def _expected(self, law: SegmentLaw, peers: Peers, doubt: float) -> FloatArray:
        return Kinship.of(law, peers.alike(law)).expected(self._growth, doubt)

    def _mean(
        self, row: FloatArray, level: FloatArray, growth: FloatArray | float, own: FloatArray
    ) -> FloatArray:
        """Costs around a growth, with errors by the runs around their own growth."""
        if not self.level.any():
            return np.asarray(np.exp(growth) * (row @ (self.cost * np.exp(-own))))
        share = row @ self._paid
        error = row @ np.where(self._paid, self._growth - own, 0.0) / np.maximum(share, 1e-300)
        return np.asarray(share * np.exp(level + growth + error))
