r"""What a run is worth by itself, so that the runs that it resembles say only how far off that is.

The *center* :math:`m` of a run holds its best score so far, and what the same settings led to in
other runs. Run j then says which *error* to expect: run x is worth :math:`m(x) + K_j - m(j)` with
the weight :math:`w(x, j)`, where

.. math:: m(x) = \lambda\, b(x) + g(x) + \frac{n}{n + \kappa}\, (\bar z(x) - g(x)).

Here :math:`b` is the best score so far and :math:`z = K - \lambda b`; :math:`\bar z(x)` is its mean
over the n other runs with the same settings, and :math:`g(x)` over runs with other settings that x
resembles. Where n is 0, the center is :math:`\lambda b`. The *lean* :math:`\lambda` and the *doubt*
:math:`\kappa` are those of a few choices that forecast best what logged runs were worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from .._common.law import Law

if TYPE_CHECKING:
    from .resembling_runs import ResemblingRuns

_ATOMS = 4  # capped values of a run
_LEANS = 0.0, 0.5, 1.0
DOUBTS = 0.1, 1.0
_BORROWED = 2.0  # runs that errors of other settings count for, beside those of the same
_FAINT = 1e-3  # share of all runs in a row, for a run that resembles none with other settings
_FEWEST = 8  # runs that decide
_JUDGES = 100  # at most so many


class SegmentLaw(NamedTuple):
    """What the next segment may bring to m runs."""

    row: FloatArray  # (m, n): how much each run of the stage counts
    cost: FloatArray  # the mean cost of the segment
    group: IntArray  # the number of the settings in the log, -1 for none
    place: IntArray  # the number of the run in the stage, -1 for none
    best: FloatArray  # the best score so far; 0 before the start

    def of(self, some: IntArray | BoolArray) -> SegmentLaw:
        """The law of some of the runs."""
        return SegmentLaw._make(column[some] for column in self)


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


class Forecast(NamedTuple):
    """By which runs of a stage a number of each run is expected."""

    other: FloatArray  # weights for runs with other settings that it resembles
    same: FloatArray  # 1 for each other run with the same settings

    @classmethod
    def of(cls, law: SegmentLaw, alike: BoolArray) -> Forecast:
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
    """The capped values of the n runs of a stage as errors around their centers."""

    center: Center
    peers: Peers
    price: float
    floor: float  # lower best scores so far are raised to this score
    plain: FloatArray  # (n, m): the values without the lean, m equally likely ones for each run
    middle: FloatArray  # the mean of each, raised to the median
    own: FloatArray  # what the other runs say about it, NaN where none has the same settings

    @classmethod
    def of(
        cls, center: Center, peers: Peers, price: float, value: FloatArray, law: SegmentLaw,
        *, forecast: Forecast | None = None,
    ) -> Frame:  # fmt: skip
        """From the values (n, m) of the runs and their own law, from which the forecast follows."""
        floor = float(np.median(law.best))
        lean = center.lean * price * np.maximum(law.best, floor)
        middle = upper_half(value.mean(axis=1)) - lean
        own = np.full(len(value), np.nan)
        if np.isfinite(center.doubt):
            forecast = Forecast.of(law, peers.alike(law)) if forecast is None else forecast
            own = forecast.expected(middle, center.doubt)
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
            forecast = Forecast.of(mine, self.peers.alike(mine))
            center = forecast.expected(self.middle, self.center.doubt)
            again[which] = np.isfinite(center)
        if not again.all():
            rest = np.flatnonzero(~again)
            yield rest, self.plain, law.row[rest], lean[rest]
        if again.any():
            good = np.isfinite(center)
            which, row = which[good], mine.row[good][:, known]
            row = row / row.sum(axis=1, keepdims=True)
            # how far runs with these settings spread is known from them: resembling runs with other
            # settings, whose spread may be another one, count for two runs only
            same = self.peers.alike(mine)[good][:, known]
            row = (same + _BORROWED * row) / (same.sum(axis=1, keepdims=True) + _BORROWED)
            yield which, self.plain[known] - self.own[known, None], row, lean[which] + center[good]


def chosen_center(law: SegmentLaw, peers: Peers, worth: FloatArray, start: bool) -> Center:
    """The center that forecasts best what runs were worth, each by its own law: (n, n) rows."""
    if len(worth) < _FEWEST:
        return Center()
    some = np.linspace(0, len(worth) - 1, min(len(worth), _JUDGES)).round().astype(np.int64)
    value, judged = upper_half(worth)[:, None], law.of(some)
    forecast = Forecast.of(law, peers.alike(law)) if peers.repeated else None
    best, least = Center(), np.inf
    for lean in _LEANS[:1] if start else _LEANS:
        for doubt in (np.inf, *DOUBTS) if peers.repeated else (np.inf,):
            frame = Frame.of(Center(lean, doubt), peers, 1.0, value, law, forecast=forecast)
            error = sum(
                float(shared_errors(errors[:, 0], row, value[some[which], 0] - center).sum())
                for which, errors, row, center in frame.parts(judged)
            )
            if error < least * (1.0 - 1e-9):
                best, least = frame.center, error
    return best


def upper_half(score: FloatArray) -> FloatArray:
    """Scores raised to their median: how bad a bad run is does not matter."""
    middle, top = np.median(score), score.max()
    if middle == top and (score < top).any():  # raised to the best, all would be alike
        middle = np.median(score[score < top])
    return np.maximum(score, middle)


def shared_errors(value: FloatArray, row: FloatArray, came: FloatArray) -> FloatArray:
    """The continuous ranked probability score of each row over the same values."""
    up = np.argsort(value, kind="stable")
    v, p = value[up], row[:, up]
    far = (p * np.abs(v - came[:, None])).sum(axis=1)
    return np.asarray(far - (p * (2.0 * np.cumsum(p, axis=1) - p - 1.0)) @ v)


@dataclass(frozen=True, slots=True, eq=False)
class CappedRuns:
    """What logged runs were worth from each segment on to a searcher who follows indices."""

    value: list[FloatArray]  # by stage the capped values of its runs, several equally likely each
    frame: list[Frame]  # the same values around centers
    most: float  # no run can be worth more

    @classmethod
    def of(
        cls, runs: ResemblingRuns, price: float, ceiling: float, chosen: Sequence[Center | None]
    ) -> CappedRuns:
        """Backward from the last segment to the first; no score is above the ceiling.

        ``chosen`` are the centers of the first stages, where they are known.
        """
        out, law = cls([], [], price * ceiling), None
        for r in reversed(range(len(runs.stages))):
            stage = runs.stages[r]
            worth = np.repeat(price * runs.ladder.best[stage.runs, r][:, None], _ATOMS, axis=1)
            going = runs.continues(r)
            if going.any():
                assert law is not None
                worth[going] = np.maximum(worth[going], out._ahead(law))
            law = runs.logged_law(r, runs.standing(r))
            mine = law.of(np.searchsorted(runs.standing(r), stage.runs))
            out.value.insert(0, worth)
            center = chosen[r] if r < len(chosen) else None
            center = center or runs.center(r, mine, worth.mean(axis=1) / price)
            out.frame.insert(0, Frame.of(center, stage.peers, price, worth, mine))
        return out

    def _ahead(self, law: SegmentLaw) -> FloatArray:
        """What continuing was worth to the runs that stood before a stage, at most their indices.

        The values of this stage come first, since the stages before it are not known yet.
        """
        ahead, cut = self.value[0][law.place], np.flatnonzero(law.place < 0)
        for which, value, row, center in self.frame[0].parts(law.of(cut)):
            # a run that was cut off has capped values spread like those that its row expects
            flat, size = value.ravel(), value.shape[1]
            up = np.argsort(flat, kind="stable")
            reached = np.cumsum(np.repeat(row / size, size, axis=1)[:, up], axis=1)
            levels = (np.arange(size) + 0.5) / size
            places = (reached[:, :, None] < levels).sum(axis=1)
            spread = flat[up][np.minimum(places, len(flat) - 1)]
            ahead[cut[which]] = spread + center[:, None]
        return np.minimum(self.index(0, law)[:, None], ahead)

    def index(self, r: int, law: SegmentLaw) -> FloatArray:
        """The index of going through stage r by these laws."""
        out = np.empty(len(law.row))
        for which, value, row, center in self.frame[r].parts(law):
            # no run is worth more than the most: what values exceed it by counts as cost
            cost, bar = law.cost[which], self.most - center
            for j in np.flatnonzero(value.max(axis=1) > bar.min()):
                cost += row[:, j] * np.maximum(value[j] - bar[:, None], 0.0).mean(axis=1)
            out[which] = center + Law(*_tails(value, row)).root(cost)
        return np.minimum(out, self.most)

    def tails(self, r: int, law: SegmentLaw, index: FloatArray, worth: FloatArray) -> FloatArray:
        """The chance that the capped value of each run exceeds each worth: (runs, worths)."""
        out = np.empty((len(law.row), len(worth)))
        for which, value, row, center in self.frame[r].parts(law):
            out[which] = _exceeding(value, row, worth - center[:, None])
        return np.where(worth < index[:, None], out, 0.0)


def _tails(value: FloatArray, row: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The values above -inf in order, and the chance that each row reaches each of them."""
    # a run whose values are all the same counts once, which halves the work on most logs
    several = (value != value[:, :1]).any(axis=1)
    kept = value > -np.inf
    kept[~several, 1:] = False
    up = np.argsort(value[kept], kind="stable")
    share = (row / np.where(several, value.shape[1], 1))[:, np.nonzero(kept)[0][up]]
    return value[kept][up], np.cumsum(share[:, ::-1], axis=1)[:, ::-1]


def _exceeding(value: FloatArray, row: FloatArray, bar: FloatArray) -> FloatArray:
    """The chance that the values of each row exceed each of its bars: (rows, bars)."""
    known, tails = _tails(value, row)
    above = np.column_stack([tails, np.zeros(len(row))])
    place = np.searchsorted(known, bar.ravel(), "right").reshape(bar.shape)
    return np.take_along_axis(above, place, axis=1)
