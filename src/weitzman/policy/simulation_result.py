"""What came of many episodes: a sample of each number, with its mean, error and quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._common.numbers import Amounts, counted, percent
from .._common.text import cells_html
from .._common.text import columns as aligned
from ..forest.model import Forest

if TYPE_CHECKING:
    import pandas as pd

_AMOUNTS = ("payoff", "reward", "spend")
_SAMPLES = ("payoff", "reward", "spend", "openings", "rounds", "time")
_QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One number per episode.

    Attributes
    ----------
    values : array of float
        The value in each episode, or in the first episodes if only those were kept.
    episodes : int
        How many episodes there were; the mean is over all of them.
    mean : float
    deviation : float
        The standard deviation; NaN with one episode.
    """

    values: FloatArray
    episodes: int
    mean: float
    deviation: float

    @property
    def standard_error(self) -> float:
        """The standard error of the mean."""
        return self.deviation / math.sqrt(self.episodes)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval for the expectation, by the normal approximation."""
        half = two_sided(level) * self.standard_error
        return self.mean - half, self.mean + half

    def quantile(self, q: float | Sequence[float]) -> FloatArray:
        """The least value that a share ``q`` of the kept episodes, or more, does not exceed."""
        shares = np.asarray(q, np.float64)
        return np.asarray(np.quantile(self.values, shares, method="inverted_cdf"), np.float64)

    def certainty(self, tolerance: float, sign: float) -> tuple[float, float]:
        """The certainty equivalent of the kept episodes, and its standard error.

        For the utility -exp(-z / tolerance) of a payoff z, the value times ``sign``.
        """
        z = sign * self.values
        low = float(z.min())
        utility = np.exp((low - z) / tolerance)
        mean, n = float(utility.mean()), len(z)
        error = float(utility.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
        return sign * (low - tolerance * math.log(mean)), tolerance * error / mean

    def __repr__(self) -> str:
        return f"Sample(mean={self.mean:.6g}, standard_error={self.standard_error:.2g})"


def two_sided(level: float) -> float:
    """How many standard errors to either side hold a share ``level`` of a normal law."""
    return NormalDist().inv_cdf((1 + level) / 2)


def share_interval(share: float, n: int, level: float) -> tuple[float, float]:
    """Wilson's confidence interval for a probability, if a ``share`` of n trials succeeded."""
    z2 = two_sided(level) ** 2 / n
    center = share + z2 / 2
    half = math.sqrt(z2 * share * (1 - share) + z2 * z2 / 4)
    return max(0.0, (center - half) / (1 + z2)), min(1.0, (center + half) / (1 + z2))


def merge(size: IntArray, mean: FloatArray, square: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the whole from those of its parts.

    Parameters
    ----------
    size : (m,) array of int
        How many numbers each part has.
    mean, square : (m, r) arrays of float
        Mean of each part, and its sum of squares around that mean.
    """
    total = int(size.sum())
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # squares of 1e200: inf
        center = size @ mean / total
        spread = square.sum(axis=0) + size @ (mean - center) ** 2
        return center, np.sqrt(spread / (total - 1) if total > 1 else np.full_like(spread, np.nan))


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """What a policy came to in many episodes, in the user's sign.

    Attributes
    ----------
    forest : Forest
    workers : int
        Boxes opened at once.
    payoff : Sample
        Reward less spend (plus, when minimizing).
    reward : Sample
        The best reward found (least loss), or the outside option.
    spend : Sample
        Sum of the costs paid.
    openings : Sample
        Boxes opened.
    rounds : Sample
        Rounds in which boxes were opened, all of one round at once.
    time : Sample
        Time to the end, as in :class:`~weitzman.engine.Evaluation`; 0 without discounting. With it,
        payoff, reward and spend are discounted.
    loss : float
        Share of the episodes that ended worse than with the outside option and nothing opened.
    opened : (n,) array of float
        Average number of copies of each box that were opened.
    """

    forest: Forest
    workers: int
    payoff: Sample
    reward: Sample
    spend: Sample
    openings: Sample
    rounds: Sample
    time: Sample
    loss: float
    opened: FloatArray

    @property
    def episodes(self) -> int:
        """How many episodes were played."""
        return self.payoff.episodes

    @property
    def value(self) -> float:
        """What the episodes were worth: the mean payoff, or its certainty equivalent."""
        return self._value()[0]

    @property
    def value_error(self) -> float:
        """The standard error of :attr:`value`."""
        return self._value()[1]

    def _value(self) -> tuple[float, float]:
        tolerance = self.forest.risk_tolerance
        if tolerance is None:
            return self.payoff.mean, self.payoff.standard_error
        return self.payoff.certainty(tolerance, self.forest.sign)

    def loss_interval(self, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval for the probability of a loss (Wilson's)."""
        return share_interval(self.loss, self.episodes, level)

    def columns(self) -> dict[str, FloatArray]:
        """Payoff, reward, spend, openings, rounds (and time, if it counts) of the episodes kept."""
        return {name: getattr(self, name).values for name in self._samples()}

    def _samples(self) -> tuple[str, ...]:
        return _SAMPLES if self.forest.factors is not None else _SAMPLES[:-1]

    def to_pandas(self) -> pd.DataFrame:
        """A data frame with a row for every episode that was kept."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def summary(self, level: float = 0.95) -> list[dict[str, Any]]:
        """For each quantity its mean, standard error, confidence interval and quantiles."""
        out = []
        for name in self._samples():
            sample: Sample = getattr(self, name)
            low, high = sample.interval(level)
            row = {"name": name, "mean": sample.mean, "standard_error": sample.standard_error}
            quantiles = zip(_QUANTILES, sample.quantile(_QUANTILES).tolist(), strict=True)
            out.append(
                row | {"low": low, "high": high} | {f"{100 * q:g}%": x for q, x in quantiles}
            )
        return out

    def table(self, level: float = 0.95) -> str:
        """Means with confidence intervals, and quantiles, as text."""
        at_once = "one box at a time" if self.workers == 1 else f"{self.workers} boxes at once"
        low, high = self.loss_interval(level)
        return "\n".join(
            [
                f"{counted(self.episodes, 'episode')}, {at_once}",
                *aligned(self._cells(level), right=1),
                f"worse than opening nothing: {percent(self.loss)} of the episodes "
                f"({percent(low)} to {percent(high)})",
            ]
        )

    def _cells(self, level: float) -> list[list[str]]:
        z = two_sided(level)
        cells = [["", "mean", f"± ({100 * level:g}%)", *(f"{100 * q:g}%" for q in _QUANTILES)]]
        for row in self.summary(level):
            name, mean, error, _, _, *quantiles = row.values()
            say = self.forest.amounts if name in _AMOUNTS else Amounts()
            numbers = [
                say(mean, z * error),
                say.margin(z * error),
                *(say(x) for x in quantiles),
            ]
            cells.append([name, *numbers])
        return cells

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return (
            f"Simulation({self.episodes} episodes, workers={self.workers}, "
            f"payoff={self.payoff.mean:.6g}, standard_error={self.payoff.standard_error:.2g})"
        )

    def _repr_html_(self) -> str:
        played, worse = counted(self.episodes, "episode"), percent(self.loss)
        head = f"{played}, {worse} of them worse than opening nothing"
        return cells_html([head], self._cells(0.95))
