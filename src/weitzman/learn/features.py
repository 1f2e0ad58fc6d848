"""What is known about a run at a rung, as a row of numbers for trees to split by.

Settings come as one mapping for each run, from names to numbers, texts or anything else. A name
whose values are all numbers is a number; trees look only at the order of values, so a logarithmic
scale makes no difference. Any other name is a category. A setting that a run does not have, because
it was not logged or depends on another setting, is missing, and trees can split by that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from .ladder import Ladder

Config = Mapping[str, Any]
CURVE = 8  # features of a curve
_LARGEST = 1e100  # of numbers; only their order counts
_MOST = 100_000  # settings whose numbers are kept


@dataclass(frozen=True, slots=True)
class Encoder:
    """How settings become numbers: for each name None, or the categories that it may take."""

    names: tuple[str, ...]
    categories: tuple[dict[str, int] | None, ...]
    _kept: dict[Any, tuple[float, ...]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, settings: Sequence[Config]) -> Encoder:
        """An encoder for settings like these; a name that says nothing is left out."""
        rows = [flat(config) for config in settings]
        names, kinds = [], []
        for name in dict.fromkeys(name for row in rows for name in row):
            values = [row.get(name) for row in rows]
            kind = None if all(map(_is_number, values)) else _codes(values)
            if len({None if y != y else y for y in (_number(x, kind) for x in values)}) > 1:
                names.append(name)
                kinds.append(kind)
        return cls(tuple(names), tuple(kinds))

    def numbers(self, settings: Sequence[Config], n: int) -> FloatArray:
        """Settings of n runs as numbers, one row per run; all missing where there are none."""
        if not self.names or not len(settings):
            return np.full((n, len(self.names)), np.nan)
        return np.array([self._row(config) for config in settings])

    def _row(self, config: Config) -> tuple[float, ...]:
        """The numbers of one run, which are kept: a search asks for the same ones again."""
        try:
            key = *config.items(), *map(type, config.values())
            found = self._kept.get(key)
        except TypeError:  # settings within settings, or a list
            return self._numbers(config)
        if found is None:
            if len(self._kept) >= _MOST:
                self._kept.clear()
            found = self._kept[key] = self._numbers(config)
        return found

    def _numbers(self, config: Config) -> tuple[float, ...]:
        row = flat(config)
        kinds = zip(self.names, self.categories, strict=True)
        return tuple(_number(row.get(name), kind) for name, kind in kinds)

    @property
    def is_category(self) -> BoolArray:
        """Which columns are categories."""
        return np.array([kind is not None for kind in self.categories], bool)


NO_SETTINGS = Encoder((), ())


def flat(config: Config, prefix: str = "") -> dict[str, Any]:
    """Settings within settings, under names such as ``optimizer/momentum``."""
    out: dict[str, Any] = {}
    for name, value in config.items():
        inner = isinstance(value, Mapping)
        out.update(flat(value, f"{prefix}{name}/") if inner else {f"{prefix}{name}": value})
    return out


def _missing(x: object) -> bool:
    if x is None or (isinstance(x, str) and not x):
        return True
    blank = type(x).__name__ in ("NAType", "NaTType")  # of pandas, where `!=` may be neither
    return blank or (isinstance(x, (float, np.floating)) and bool(x != x))


def _is_number(x: object) -> bool:
    return _missing(x) or isinstance(x, (Real, np.bool_))


def _codes(values: Iterable[object]) -> dict[str, int]:
    words = dict.fromkeys(str(x) for x in values if not _missing(x))
    return {word: code for code, word in enumerate(words)}


def _number(x: Any, kind: dict[str, int] | None) -> float:
    """A setting as a number; NaN if it is missing, or a text in place of a number.

    A category that the log does not have gets a code of its own, so that runs can teach it.
    """
    if _missing(x):
        return math.nan
    if kind is not None:
        word = str(x)
        return kind[word] if word in kind else float(len(kind) + crc32(word.encode()))
    if not _is_number(x):
        return math.nan
    return float(min(max(x, -_LARGEST), _LARGEST))


def features(ladder: Ladder, r: int, level: FloatArray) -> FloatArray:
    """What is known about each run before segment r: its curve so far, then its settings.

    ``level`` is the cost level of its segments. Before anything was seen (r is 0) there are only
    settings.
    """
    if r == 0:
        return ladder.config
    best, last, mean = ladder.best[:, r - 1], ladder.last[:, r - 1], ladder.mean[:, r - 1]
    nothing = np.full(len(best), np.nan)
    before = [x[:, r - 2] if r > 1 else nothing for x in (ladder.best, ladder.last, ladder.mean)]
    columns = [
        best, last, mean, best - before[0], last - before[1], mean - before[2], best - last,
        level[:, r - 1],
    ]  # fmt: skip
    return np.column_stack([*columns, ladder.config])


def is_category(encoder: Encoder, r: int) -> BoolArray:
    """Which columns of :func:`features` are categories."""
    return np.concatenate([np.zeros(CURVE if r else 0, bool), encoder.is_category])


@dataclass(frozen=True, slots=True)
class Repeats:
    """The different settings of a log, by number."""

    numbers: dict[bytes, int]

    @classmethod
    def of(cls, config: FloatArray) -> Repeats:
        """From settings as numbers, one row for each run."""
        return cls({key: k for k, key in enumerate(dict.fromkeys(_keys(config)))})

    def find(self, config: FloatArray) -> IntArray:
        """The number of each row; -1 if it is new, or if every setting is missing."""
        found = np.array([self.numbers.get(key, -1) for key in _keys(config)], np.int64)
        return np.where(np.isnan(config).all(axis=1), -1, found)


def _keys(config: FloatArray) -> list[bytes]:
    """Rows as keys; all missing values are the same, and so are both zeros."""
    plain = np.where(np.isnan(config), np.nan, config + 0.0)
    return [row.tobytes() for row in plain]
