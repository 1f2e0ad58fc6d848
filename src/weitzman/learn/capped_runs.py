"""What logged runs were worth to a searcher who follows indices: capped values; see :mod:`.kin`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._common.arrays import FloatArray
from .._kernels.roots import roots
from .centers import Center, Frame, SegmentLaw
from .kin import Kin

_ATOMS = 4  # capped values of a run


@dataclass(frozen=True, slots=True, eq=False)
class KinCapped:
    """What logged runs were worth from each segment on to a searcher who follows indices.

    Attributes
    ----------
    value : list of (n, m) arrays
        For each stage the capped values of its runs, m equally likely ones each.
    frame : list of Frame
        The same values around centers.
    most : float
        No run can be worth more.
    """

    value: list[FloatArray]
    frame: list[Frame]
    most: float

    @classmethod
    def of(
        cls, kin: Kin, price: float, ceiling: float = np.inf, chosen: Sequence[Center | None] = ()
    ) -> KinCapped:
        """Backward from the last segment to the first; no score is above the ceiling.

        ``chosen`` are the centers of the first stages, where they are known.
        """
        out, law = cls([], [], price * ceiling), None
        for r in reversed(range(len(kin.stages))):
            stage = kin.stages[r]
            worth = np.repeat(price * kin.ladder.best[stage.runs, r][:, None], _ATOMS, axis=1)
            going = kin.goes_on(r)
            if going.any():
                assert law is not None
                worth[going] = np.maximum(worth[going], out._ahead(law))
            law = kin.logged_law(r, kin.standing(r))
            mine = law.of(np.searchsorted(kin.standing(r), stage.runs))
            out.value.insert(0, worth)
            center = chosen[r] if r < len(chosen) else None
            center = center or kin.center(r, mine, worth.mean(axis=1) / price)
            out.frame.insert(0, Frame.of(center, stage.peers, price, worth, mine))
        return out

    def _ahead(self, law: SegmentLaw) -> FloatArray:
        """What going on was worth to the runs that stood before a stage, at most their indices.

        The values of this stage come first, since the stages before it are not known yet.
        """
        ahead, cut = self.value[0][law.place], np.flatnonzero(law.place < 0)
        for which, value, row, center in self.frame[0].parts(law.of(cut)):
            ahead[cut[which]] = _quantiles(value, row) + center[:, None]
        return np.minimum(self.index(0, law)[:, None], ahead)

    def index(self, r: int, law: SegmentLaw) -> FloatArray:
        """The index of going through stage r by these laws."""
        out = np.empty(len(law.row))
        for which, value, row, center in self.frame[r].parts(law):
            lost = _excess(value, row, self.most - center)  # no run is worth more than the most
            out[which] = center + _roots(value, row, law.cost[which] + lost)
        return np.minimum(out, self.most)

    def tails(self, r: int, law: SegmentLaw, index: FloatArray, worth: FloatArray) -> FloatArray:
        """The chance that the capped value of each run exceeds each worth: (runs, worths)."""
        out = np.empty((len(law.row), len(worth)))
        for which, value, row, center in self.frame[r].parts(law):
            out[which] = _exceeding(value, row, worth - center[:, None])
        return np.where(worth < index[:, None], out, 0.0)


def _exceeding(value: FloatArray, row: FloatArray, bar: FloatArray) -> FloatArray:
    """The chance that the values of each row exceed each of its bars: (rows, bars)."""
    flat = value.ravel()
    up = np.argsort(flat, kind="stable")
    share = row[:, up // value.shape[1]] / value.shape[1]
    above = np.zeros((len(row), len(flat) + 1))
    above[:, :-1] = np.cumsum(share[:, ::-1], axis=1)[:, ::-1]
    place = np.searchsorted(flat[up], bar.ravel(), "right").reshape(bar.shape)
    return np.take_along_axis(above, place, axis=1)


def _excess(value: FloatArray, row: FloatArray, bar: FloatArray) -> FloatArray:
    """By how much the values of each row exceed its bar in the mean."""
    out = np.zeros(len(row))
    for j in np.flatnonzero(value.max(axis=1) > bar.min()):
        out += row[:, j] * np.maximum(value[j] - bar[:, None], 0.0).mean(axis=1)
    return out


def _roots(value: FloatArray, row: FloatArray, cost: FloatArray) -> FloatArray:
    """The index of every row over runs with these capped values."""
    flat = value.ravel()
    down = np.argsort(-flat, kind="stable")
    chances = np.ascontiguousarray(row) / value.shape[1]
    return np.asarray(roots(flat[down], down // value.shape[1], chances, cost, False))


def _quantiles(value: FloatArray, row: FloatArray) -> FloatArray:
    """Capped values spread like the capped values of the runs that each row resembles."""
    flat = value.ravel()
    up = np.argsort(flat, kind="stable")
    reached = np.cumsum(np.repeat(row / value.shape[1], value.shape[1], axis=1)[:, up], axis=1)
    levels = (np.arange(value.shape[1]) + 0.5) / value.shape[1]
    places = (reached[:, :, None] < levels).sum(axis=1)
    return np.asarray(flat[up][np.minimum(places, len(flat) - 1)])
