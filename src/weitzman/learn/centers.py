r"""What a run is worth by itself, so that the runs that it resembles say only how far off that is.

Two things say more about a run than the runs that it resembles: its best score so far, and what the
same settings led to in other runs of the log, which differ from it by chance alone. Both enter as
the *center* :math:`m` of a run. Run j then says which *error* to expect: run x is worth
:math:`m(x) + K_j - m(j)` with the weight :math:`w(x, j)`. The center is

.. math:: m(x) = \lambda\, b(x) + g(x) + \frac{n}{n + \kappa}\, (\bar z(x) - g(x)),

where :math:`b` is the best score so far and :math:`z = K - \lambda b` is what is left of a capped
value without it. The mean of :math:`z` is :math:`\bar z(x)` over the n other runs with the same
settings, and :math:`g(x)` over the runs with other settings that x resembles. Where no other run
has the same settings, the center is :math:`\lambda b` alone. The *lean* :math:`\lambda` and the
*doubt* :math:`\kappa` are those of a few choices that forecast best what logged runs were worth,
each run from the other runs. No lean and infinite doubt are among the choices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray

_LEANS = 0.0, 0.5, 1.0
DOUBTS = 0.1, 1.0
_FAINT = 1e-3  # share of all runs in a row, for a run that resembles none with other settings
_FEWEST = 8  # runs that decide
_JUDGES = 100  # at most so many


class SegmentLaw(NamedTuple):
    """What the next segment may bring to some runs.

    Attributes
    ----------
    row : (m, n) array of float
        How much each run of the stage counts.
    cost : (m,) array of float
        The mean cost of the segment.
    group, place : (m,) arrays of int
        The number of the settings in the log, and of the run in the stage; -1 for none.
    best : (m,) array of float
        The best score so far; 0 before the start.
    """

    row: FloatArray
    cost: FloatArray
    group: IntArray
    place: IntArray
    best: FloatArray

    def of(self, some: IntArray | BoolArray) -> SegmentLaw:
        """The law of some of the runs."""
        row, cost, group, place, best = self
        return SegmentLaw(row[some], cost[some], group[some], place[some], best[some])


class Center(NamedTuple):
    """How much the best score so far counts, and how little a run with the same settings does."""

    lean: float = 0.0
    doubt: float = np.inf


class Peers(NamedTuple):
    """The settings of the runs of a stage by number, -1 for none, and which runs are real."""

    group: IntArray
    real: BoolArray

    def alike(self, law: SegmentLaw) -> BoolArray:
        """Which runs of the stage have the settings of each run, never the run itself: (m, n)."""
        found = (law.group[:, None] == self.group) & (law.group >= 0)[:, None] & self.real
        mine = np.flatnonzero(law.place >= 0)
        found[mine, law.place[mine]] = False
        return np.asarray(found)

    @property
    def repeated(self) -> bool:
        """Whether any settings occur twice."""
        known = self.group[self.real & (self.group >= 0)]
        return len(np.unique(known)) < len(known)


class Kinship(NamedTuple):
    """By which runs of a stage a number of each run is expected.

    ``other`` has weights for runs with other settings that it resembles, and ``same`` is 1 for each
    other run with the same settings.
    """

    other: FloatArray
    same: FloatArray

    @classmethod
    def of(cls, law: SegmentLaw, alike: BoolArray) -> Kinship:
        """From a law, and from which runs have the same settings."""
        other = np.where(alike, 0.0, law.row) + _FAINT / law.row.shape[1]
        return cls(other / other.sum(axis=1, keepdims=True), alike.astype(np.float64))

    def expected(self, number: FloatArray, doubt: float) -> FloatArray:
        """The shrunken mean; NaN where no other run has the same settings."""
        usual, n = self.other @ number, self.same.sum(axis=1)
        found = usual + (self.same @ number - n * usual) / (n + doubt)
        return np.asarray(np.where(n > 0, found, np.nan))


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """The capped values of the runs of a stage as errors around their centers.

    Attributes
    ----------
    center : Center
    peers : Peers
    price, floor : float
        What a point is worth; lower best scores so far are raised to the floor, which is a score.
    plain : (n, m) array
        The values without the lean, m equally likely ones for each run.
    middle, own : (n,) arrays
        The mean of each, raised to the median; and what is expected of it by the other runs, NaN
        where no other run has the same settings.
    """

    center: Center
    peers: Peers
    price: float
    floor: float
    plain: FloatArray
    middle: FloatArray
    own: FloatArray

    @classmethod
    def of(
        cls, center: Center, peers: Peers, price: float, value: FloatArray, law: SegmentLaw,
        *, kinship: Kinship | None = None,
    ) -> Frame:  # fmt: skip
        """From the values (n, m) of the runs of a stage and their own law, which gives the kinship.

        Who tries several centers may give the kinship too.
        """
        floor = float(np.median(law.best))
        lean = center.lean * price * np.maximum(law.best, floor)
        middle = upper_half(value.mean(axis=1)) - lean
        own = np.full(len(value), np.nan)
        if np.isfinite(center.doubt):
            kinship = Kinship.of(law, peers.alike(law)) if kinship is None else kinship
            own = kinship.expected(middle, center.doubt)
        return cls(center, peers, price, floor, value - lean[:, None], middle, own)

    def parts(
        self, law: SegmentLaw
    ) -> Iterator[tuple[IntArray, FloatArray, FloatArray, FloatArray]]:
        """Runs whose values have the same errors: which, these errors, their weights, and centers.

        The values of run i are the errors plus its center.
        """
        lean = self.center.lean * self.price * np.maximum(law.best, self.floor)
        known = np.isfinite(self.own)
        again = (law.group >= 0) & (law.row @ known > 0)
        if again.any():
            which = np.flatnonzero(again)
            mine = law.of(which)
            kinship = Kinship.of(mine, self.peers.alike(mine))
            center = kinship.expected(self.middle, self.center.doubt)
            again[which] = np.isfinite(center)
        if not again.all():
            rest = np.flatnonzero(~again)
            yield rest, self.plain, law.row[rest], lean[rest]
        if again.any():
            good = np.isfinite(center)
            which, row = which[good], mine.row[good][:, known]
            row = row / row.sum(axis=1, keepdims=True)
            yield which, self.plain[known] - self.own[known, None], row, lean[which] + center[good]


def chosen_center(law: SegmentLaw, peers: Peers, worth: FloatArray, start: bool) -> Center:
    """The center that forecasts best what runs were worth, each by its own law: (n, n) rows."""
    if len(worth) < _FEWEST:
        return Center()
    some = np.linspace(0, len(worth) - 1, min(len(worth), _JUDGES)).round().astype(np.int64)
    value, judged = upper_half(worth)[:, None], law.of(some)
    kinship = Kinship.of(law, peers.alike(law)) if peers.repeated else None
    best, least = Center(), np.inf
    for lean in _LEANS[:1] if start else _LEANS:
        for doubt in (np.inf, *DOUBTS) if peers.repeated else (np.inf,):
            frame = Frame.of(Center(lean, doubt), peers, 1.0, value, law, kinship=kinship)
            error = sum(
                float(shared_errors(errors[:, 0], row, value[some[which], 0] - center).sum())
                for which, errors, row, center in frame.parts(judged)
            )
            if error < least * (1.0 - 1e-9):
                best, least = frame.center, error
    return best


def upper_half(score: FloatArray) -> FloatArray:
    """Scores raised to their median: how bad a bad run is does not matter."""
    return np.maximum(score, np.median(score))


def shared_errors(value: FloatArray, row: FloatArray, came: FloatArray) -> FloatArray:
    """The continuous ranked probability score of each row over the same values."""
    up = np.argsort(value, kind="stable")
    v, p = value[up], row[:, up]
    far = (p * np.abs(v - came[:, None])).sum(axis=1)
    return np.asarray(far - (p * (2.0 * np.cumsum(p, axis=1) - p - 1.0)) @ v)
