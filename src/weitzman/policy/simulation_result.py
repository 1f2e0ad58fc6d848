"""What a policy came to in many episodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._common.arrays import FloatArray
from .._common.notebook import cells_html
from .._common.numbers import Amounts, percent, rough, with_unit
from .._common.text import columns as aligned
from ..forest.model import Forest
from .sampling import Sample, share_interval, two_sided

if TYPE_CHECKING:
    import pandas as pd

_AMOUNTS = ("payoff", "reward", "spend")
_SAMPLES = ("payoff", "reward", "spend", "openings", "rounds", "time")
_QUANTILES = (0.05, 0.5, 0.95)


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
                f"{self.episodes} episodes, {at_once}",
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
                with_unit(rough(z * error), say.unit),
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
        head = f"{self.episodes} episodes, {percent(self.loss)} of them worse than opening nothing"
        return cells_html([head], self._cells(0.95))
