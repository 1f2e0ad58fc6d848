"""The settings of past runs as points, so that a sampler can choose among these runs.

A sampler proposes a point of the whole space. The nearest run that was not started is taken. So
every method chooses from the same runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from ..learn.features import Config, Encoder

_DECADES = 100.0  # a scale is logarithmic if the ratio of its ends is at least this


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
        other = self.sizes[: raw.shape[1]] - 1  # missing, or not in the space
        code = np.where(lack, other, np.minimum(raw, other))
        which = self.encoder.is_category
        return np.column_stack([np.where(which, code, unit), lack[:, self.missing]])

    @property
    def sizes(self) -> IntArray:
        """:meth:`categories` as an array."""
        return np.array(self.categories, np.int64)

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
        return int(np.argmin(np.where(self.sizes > 0, apart > 0, apart**2).sum(axis=1)))
