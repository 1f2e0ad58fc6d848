"""The terms of a search: what time costs, how risk counts, how many prizes may be taken.

Entry i of ``forest.factors`` or ``forest.durations`` belongs to entry i of ``forest.costs``, so one
column points to both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import IntArray
from .._common.numbers import counted, such
from ..errors import InvalidForest
from .columns import opening_columns
from .pools import Pool
from .rules import check_opening_shapes

if TYPE_CHECKING:
    from .model import Forest

MOST_EXPONENT = 600.0  # powers of e that leave room in a 64-bit float


def time_pools(
    factor: Any, duration: Any, rate: float | None, parent: IntArray, title: Any
) -> tuple[Pool | None, Pool | None, IntArray]:
    """Factors, durations (one of the two, or neither) and which of them each box has."""
    n = len(parent)
    if factor is None and duration is None:
        if rate is not None:
            raise InvalidForest(
                "a rate discounts durations, but there are none. Give `duration`, or leave `rate` "
                "out."
            )
        return None, None, np.zeros(n, np.int64)
    if factor is not None:
        if duration is not None or rate is not None:
            raise InvalidForest(
                "time is told by factors, or by durations and a rate, but both are given. Give "
                "`factor` alone, or `duration` and `rate`."
            )
        pool, number = opening_columns(factor, parent, n, title, "factor")
        return pool, None, number
    if rate is None:
        raise InvalidForest(
            "durations need a rate at which later payoffs are discounted. Give `rate`, 0 if time "
            "costs nothing."
        )
    pool, number = opening_columns(duration, parent, n, title, "duration")
    return None, pool, number


def pair(
    cost: IntArray, costs: Pool, time: IntArray, pool: Pool | None
) -> tuple[IntArray, Pool, Pool | None]:
    """One column for costs and factors: each pair that occurs, once."""
    if pool is None:
        return cost, costs, None
    both, column = np.unique(cost * len(pool) + time, return_inverse=True)
    return (
        column.astype(np.int64),
        costs.take(both // len(pool)),
        pool.take(both % len(pool)),
    )


def discount(durations: Pool, rate: float) -> Pool:
    """The factors exp(-rate * duration)."""
    return Pool(np.exp(-rate * durations.data), durations.start, durations.shape)


def check_terms(f: Forest) -> None:
    """Raise :class:`InvalidForest` for terms that break a rule, alone or together."""
    _check_error(f)
    _check_time(f)
    _check_risk(f)
    _check_prizes(f)


def _check_time(f: Forest) -> None:
    if f.durations is not None:
        rate = f.rate
        if rate is None or not 0 <= rate < np.inf:
            raise InvalidForest(
                f"a rate must be a finite number from 0 on, but it is {rate}: a negative rate "
                f"would make factors above 1, so that waiting adds value without end."
            )
        _check_entries(
            f, f.durations, (f.durations.data >= 0) & np.isfinite(f.durations.data),
            "durations must be finite and not negative",
        )  # fmt: skip
    elif f.rate is not None:
        raise InvalidForest("a rate discounts durations, but there are none. Give durations.")
    if f.factors is None:
        return
    _check_entries(
        f, f.factors, (f.factors.data > 0) & (f.factors.data <= 1),
        "factors must lie above 0 and be at most 1 (a rate times a duration at most 700)",
    )  # fmt: skip


def _check_entries(f: Forest, pool: Pool, good: Any, rule: str) -> None:
    if len(pool) != len(f.costs):
        raise InvalidForest(
            f"factors and durations stand beside the costs, one for each, but there are "
            f"{len(pool)} for {len(f.costs)} costs."
        )
    if not good.all():
        i = int(np.argmin(good))
        m = int(np.searchsorted(pool.start, i, side="right")) - 1
        used = np.flatnonzero(f.cost == m)
        title = repr(f.name(int(used[0]))) if len(used) else "(unused)"
        raise InvalidForest(
            f"{rule}, but box {title} has {pool.data[i]:.6g} ({such((~good).sum(), 'entry')})."
        )
    check_opening_shapes(f, pool, "a factor or duration")


def _check_error(f: Forest) -> None:
    x = f.stated_error
    if isinstance(x, bool) or not isinstance(x, (int, float, np.number)) or not 0 <= x < np.inf:
        raise InvalidForest(f"`stated_error` must be a finite number from 0 on, but it is {x!r}.")


def _check_risk(f: Forest) -> None:
    tau = f.risk_tolerance
    if tau is None:
        return
    if not 0 < tau < np.inf:
        raise InvalidForest(
            f"a risk tolerance must be a finite number above 0, but it is {tau}. Leave it out to "
            f"count the expected payoff alone."
        )
    if f.factors is not None:
        raise InvalidForest(
            "a risk tolerance does not go with discounting: the utility of a discounted sum has no "
            "index. Give one of the two."
        )
    if f.endless.any():
        v = int(np.argmax(f.endless))
        raise InvalidForest(
            f"a risk tolerance needs a forest that ends, but box {f.name(v)!r} is followed by "
            f"boxes like itself without end ({such(f.endless.sum(), 'box')}). Write out as "
            f"many as matter."
        )
    numbers = np.append(f.rewards.data, f.outside)
    numbers = numbers[np.isfinite(numbers)]
    size = float(numbers.max() - numbers.min()) if len(numbers) else 0.0
    check_exponent(size + float(f.costs.data.max()), tau)


def check_exponent(size: float, tau: float) -> None:
    """Refuse a range of rewards, plus the highest cost, whose utilities would overflow."""
    if size > MOST_EXPONENT * tau:
        raise InvalidForest(
            f"the range of the rewards plus the highest cost must be at most {MOST_EXPONENT:g} "
            f"times the risk tolerance, or utilities overflow, but it is {size:.6g} for a "
            f"tolerance of {tau:.6g}. Raise the tolerance to {size / MOST_EXPONENT:.3g} at least."
        )


def _check_prizes(f: Forest) -> None:
    k = f.prizes
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise InvalidForest(f"`prizes` must be a whole number from 1 on, but it is {k!r}.")
    if k == 1:
        return
    trees = int(min(f.count[f.roots].astype(float).sum(), 1e18))
    if k > trees:
        raise InvalidForest(
            f"each prize comes from a tree of its own, but there are {k} prizes and "
            f"{counted(trees, 'tree')}. Two prizes from one tree is another problem, for "
            f"which no index is known."
        )
    for wrong, what in (
        (f.factors is not None, "discounting"),
        (f.risk_tolerance is not None, "a risk tolerance"),
        (not np.isfinite(f.outside), "an outside option that cannot be taken"),
    ):
        if wrong:
            raise InvalidForest(
                f"several prizes do not go with {what}: no index is known for both together. Leave "
                f"one of them out."
            )


def with_time(durations: Pool | None, rate: float | None, factors: Pool | None) -> Pool | None:
    """The factors of a forest: those given, or those of its durations."""
    if durations is None:
        return factors
    if rate is None or not np.isfinite(rate):
        raise InvalidForest(f"durations need a finite rate, but it is {rate}.")
    return discount(durations, float(rate))


def number_or_none(x: ArrayLike | None, name: str) -> float | None:
    """A number as a float; None stays."""
    if x is None:
        return None
    try:
        return float(x)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise InvalidForest(f"`{name}` must be a number, but it is {x!r}.") from error
