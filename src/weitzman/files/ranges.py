"""Numbers of a problem that are not known for sure: low, base and high, or a distribution."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from .._common.arrays import FloatArray
from .._common.numbers import typed_number
from .._common.optional import need
from ..errors import InvalidArgument, InvalidFile, InvalidForest
from ..forest.columns import label
from ..forest.model import FIELDS, Forest

_CALLED = {"probability": "chance"}
_BY_COLUMN = {f.headings[0]: f for f in FIELDS}
RANGED = tuple(f.headings[0] for f in reversed(FIELDS) if f.ranged)
"""The columns whose numbers may have a range."""
_MOST = 1e100  # of a distribution in a cell: its tails must not overflow
_DECILE = 1.2815515655446004  # of the normal distribution
_SPREAD = re.compile(r"([A-Za-z][A-Za-z0-9/ _-]{0,30})\(([^()]{1,200})\)")


class Spread(NamedTuple):
    """What one number may be: triangular, or of a family of distributions with its numbers."""

    low: float
    base: float
    high: float
    family: str = ""
    numbers: tuple[float, ...] = ()

    @property
    def distribution(self) -> Any:
        """The frozen distribution, None for a triangular one."""
        return _made(self.family, *self.numbers) if self.family else None

    @property
    def text(self) -> str:
        """As it is written in one cell."""
        if self.family:
            return f"{self.family}({'; '.join(map(label, self.numbers))})"
        return "/".join(map(label, self[:3]))

    def times(self, factor: float) -> Spread:
        """The same in another unit, by which all numbers of all families are multiplied."""
        three = self.low * factor, self.base * factor, self.high * factor
        return Spread(*three, self.family, tuple(x * factor for x in self.numbers))


class Range(NamedTuple):
    """A number of a problem that is not known for sure.

    Attributes
    ----------
    box : str
    field : str
        The column of a table that holds such numbers: ``"cost"``, ``"reward"`` and so on.
    base, low, high : float
        The number in the problem, and its ends; of a distribution its tenth and ninetieth
        percentile.
    given, state : str or None
        The state of the parent and the own state that the number is for; None: all of them.
    distribution : frozen distribution, or None
        None: triangular from ``low`` over ``base`` to ``high``.
    written : str
        A distribution as a file says it: ``"normal(100; 20)"``.
    """

    box: str
    field: str
    base: float
    low: float
    high: float
    given: str | None = None
    state: str | None = None
    distribution: Any = None
    written: str = ""

    @property
    def title(self) -> str:
        """A name for people: "chance of oil (Drill after promising)"."""
        what = _CALLED.get(self.field, self.field)
        after = "" if self.given is None else f" after {self.given}"
        if self.state is None:
            return f"{what} of {self.box}{after}"
        return f"{what} of {self.state} ({self.box}{after})"

    @property
    def cell(self) -> str:
        """The range as a file says it: ``"80/100/130"``."""
        if self.distribution is not None and not self.written:
            raise InvalidForest(
                f"the {self.title} has a distribution that no file holds. Give low, base and high."
            )
        return self.written or Spread(self.low, self.base, self.high).text

    def rows(self, forest: Forest) -> tuple[int | None, int | None]:
        """The numbers of the state of the parent and of the own state; None: all of them."""
        box = forest.box(self.box)
        if self.given is not None and forest.parent[box] < 0:
            raise InvalidArgument(
                f"{self.box!r} has no parent, but a range is about a state of it."
            )
        given = None if self.given is None else forest.state(int(forest.parent[box]), self.given)
        return given, None if self.state is None else forest.state(box, self.state)

    def quantile(self, u: Any) -> FloatArray:
        """Its quantiles."""
        law = self.distribution or _made("triangular", self.low, self.base, self.high)
        x = np.asarray(law.ppf(u), float)
        if self.field == "probability":
            return np.asarray(np.clip(x, 0.0, 1.0))
        return x if self.field == "reward" else np.asarray(np.maximum(x, 0.0))


class Ranges(tuple[Range, ...]):
    """The uncertain numbers of a problem.

    Examples
    --------
    >>> import weitzman
    >>> from weitzman.files import Range, Ranges
    >>> b = weitzman.Builder().add("A", cost=1, outcomes={0: 0.5, 10: 0.5})
    >>> ranges = Ranges([Range("A", "cost", 1, 0.5, 3),
    ...                  Range("A", "reward", 10, 8, 12, state="10")])
    >>> weitzman.solve(ranges.changed(b.build(), {0: 3, 1: 12})).value
    3.0
    """

    __slots__ = ()

    def __new__(cls, ranges: Iterable[Range] = ()) -> Self:
        found = super().__new__(cls, ranges)
        for r in found:
            if r.field not in RANGED:
                raise InvalidArgument(
                    f"a range is one of a {', '.join(RANGED[:-1])} or {RANGED[-1]}, but that of "
                    f"{r.box!r} is one of {r.field!r}."
                )
            if not (-math.inf < r.low <= r.base <= r.high < math.inf):
                raise InvalidArgument(
                    f"a range must rise from low to base to high, but the {r.title} has {r.low:g}, "
                    f"{r.base:g}, {r.high:g}."
                )
            if _BY_COLUMN[r.field].form == "law" and r.state is None:
                raise InvalidArgument(f"the {r.title} needs a state, but none is given.")
        return found

    def __repr__(self) -> str:
        return f"Ranges([{', '.join(r.title for r in self)}])"

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """n independent draws of all numbers, one row for each.

        Chances are kept between 0 and 1, costs and durations from 0 on.
        """
        u = rng.random((n, len(self)))
        columns = [r.quantile(u[:, i]) for i, r in enumerate(self)]
        return np.column_stack(columns) if columns else u

    def changed(self, forest: Forest, values: Mapping[int, float]) -> Forest:
        """The forest with range number i at ``values[i]``, all others as they are.

        What a chance gains or loses, the other chances of its row lose or gain in proportion.
        """
        return with_numbers(forest, [(self[i], x) for i, x in values.items()])


def with_numbers(forest: Forest, numbers: Iterable[tuple[Range, float]]) -> Forest:
    """The forest with other values of some numbers; see :meth:`Ranges.changed`."""
    new: dict[str, dict[str, Any]] = {}
    for r, x in numbers:
        box, field = forest.box(r.box), _BY_COLUMN[r.field]
        pool = field.given(forest)
        if pool is None:
            raise InvalidArgument(f"box {r.box!r} has no {r.field}, but a range is about it.")
        given = new.setdefault(field.name, {})
        if r.box not in given:
            given[r.box] = pool[int(getattr(forest, field.pointer)[box])].copy()
        if field.form == "opening" and (r.given is not None or r.state is not None):
            shape = forest.laws[int(forest.law[box])].shape
            given[r.box] = np.broadcast_to(given[r.box], shape).copy()
        row, col = (slice(None) if x is None else x for x in r.rows(forest))
        if field.form == "law":
            rows = np.atleast_2d(given[r.box][row])
            rest = 1 - rows[:, col][:, None]
            even = np.full_like(rows, 1 / max(rows.shape[1] - 1, 1))  # nothing to go by
            rows = (1 - x) * np.divide(rows, rest, out=even, where=rest > 0)
            rows[:, col] = x if rows.shape[1] > 1 else 1.0
            given[r.box][row] = rows if r.given is None else rows[0]
        else:
            given[r.box][row if field.form == "opening" else 0, col] = x
    if "rewards" in new:
        new["rewards"] = {name: matrix[0] for name, matrix in new["rewards"].items()}
    return forest.changed(**new)  # type: ignore[arg-type]


def number_of(forest: Forest, box: str, field: str, given: Any, state: Any) -> float:
    """The one number that a range is about."""
    found = _BY_COLUMN.get(field)
    pool = None if found is None else found.given(forest)
    if found is None or pool is None:
        raise InvalidArgument(f"box {box!r} has no {field}, but a range is about it.")
    v = forest.box(box)
    numbers = pool[int(getattr(forest, found.pointer)[v])]
    row, col = Range(box, field, 0, 0, 0, given, state).rows(forest)
    if row is not None and len(numbers) > 1:
        numbers = numbers[[row]]
    if col is not None and numbers.shape[1] > 1:
        numbers = numbers[:, [col]]
    some = np.unique(numbers[np.isfinite(numbers)])
    if len(some) != 1:
        raise InvalidArgument(
            f"the {field} of box {box!r} is not one number. Give (low, base, high), or the state."
        )
    return float(some[0])


def read_range(forest: Forest, box: Any, field: Any, given: Any, state: Any, text: Any) -> Range:
    """A range as a file says it, about a number of a forest."""
    spread = typed_spread(text, lambda part: typed_number(part).value, False)
    if spread is None:
        raise InvalidFile(
            f"a range must be such as 80/100/130 or normal(100; 20), but there is {text[:60]!r}."
        )
    name = forest.name(forest.box(box))
    asked = Range(name, field, 0, 0, 0, given, state)
    up, rows = int(forest.parent[forest.box(box)]), asked.rows(forest)
    holders = zip((up, forest.box(box)), rows, strict=True)
    states = [None if y is None else forest.states(holder)[y] for holder, y in holders]
    base = number_of(forest, name, field, given, state)
    ends, law = (spread.low, spread.high), spread.distribution
    if law is not None:
        base = min(max(base, ends[0]), ends[1])
    written = spread.text if law is not None else ""
    return Ranges([Range(name, field, base, *ends, states[0], states[1], law, written)])[0]


# -- what people write in one cell ---------------------------------------------------------------


def typed_spread(text: str, number: Callable[[str], float], decimal: bool) -> Spread | None:
    """``80/100/130``, ``normal(100; 20)`` and the like; None if the text is neither.

    ``number`` reads one number; ``decimal``: commas are decimal, so that semicolons divide.

    >>> typed_spread("80/100/130", float, False)
    Spread(low=80.0, base=100.0, high=130.0, family='', numbers=())
    """
    parts = [part.strip() for part in text.split("/")]
    found = _SPREAD.fullmatch(text.strip())
    if found is None:
        if len(parts) != 3 or not all(parts):
            return None
        try:
            low, base, high = map(number, parts)
        except ValueError:
            return None
        if not low <= base <= high:
            raise InvalidFile(f"a range must rise from low to base to high, but there is {text!r}.")
        return Spread(low, base, high)
    name = re.sub(r"[^a-z0-9]", "", found[1].lower())
    if name not in _FORMS:
        raise InvalidFile(
            f"a distribution must be one of {', '.join(_FORMS)}, but there is {text[:40]!r}."
        )
    mark = ";" if ";" in found[2] or decimal else ","
    try:
        numbers = tuple(number(part.strip()) for part in found[2].split(mark))
        law = _made(name, *numbers)
        low, base, high = (float(x) for x in (law.ppf(0.1), law.mean(), law.ppf(0.9)))
        if not all(abs(x) < _MOST for x in (low, base, high)):  # nor NaN
            raise ValueError
    except (ValueError, TypeError):
        raise InvalidFile(f"{text[:60]!r} must be {_FORMS[name]}.") from None
    return Spread(min(low, base), base, max(high, base), name, numbers)


def typed_parts(text: str) -> list[str]:
    """The numbers of a cell that may hold a range or a distribution."""
    found = _SPREAD.fullmatch(text.strip())
    if found is not None:
        return found[2].split(";" if ";" in found[2] else ",")
    return text.split("/") if text.count("/") == 2 else [text]


_FORMS = {
    "normal": "normal(mean; standard deviation)",
    "lognormal": "lognormal(mean; standard deviation), both above 0",
    "triangular": "triangular(low; most likely; high)",
    "pert": "pert(low; most likely; high)",
    "uniform": "uniform(low; high)",
    "p10p50p90": "P10/P50/P90(low; middle; high)",
}


def _made(family: str, *numbers: float) -> Any:
    """The distribution of a family; a ValueError or TypeError for wrong numbers."""
    stats = need("scipy.stats", "scipy")

    def two(a: float, b: float) -> Any:
        if family == "uniform":
            return stats.uniform(a, b - a) if a < b else None
        if b <= 0 or (family == "lognormal" and a <= 0):
            return None
        s2 = math.log1p((b / a) ** 2) if family == "lognormal" else 0.0
        scale = a * math.exp(-s2 / 2)
        return stats.lognorm(math.sqrt(s2), scale=scale) if s2 else stats.norm(a, b)

    def three(low: float, mode: float, high: float) -> Any:
        if not low <= mode <= high:
            return None
        if low == high:
            return stats.uniform(low, 0) if family == "triangular" else None
        at, wide = (mode - low) / (high - low), high - low
        if family == "triangular":
            return stats.triang(at, low, wide)
        if family == "pert":
            return stats.beta(1 + 4 * at, 5 - 4 * at, low, wide)
        return Deciles(low, mode, high) if low < mode < high else None

    law = (two if family in ("normal", "lognormal", "uniform") else three)(*numbers)
    if law is None:
        raise ValueError
    return law


class Deciles:
    """A normal distribution of two halves, by its 10th, 50th and 90th percentile."""

    def __init__(self, p10: float, p50: float, p90: float) -> None:
        self._middle, self._norm = p50, need("scipy.stats", "scipy").norm
        self._below, self._above = (p50 - p10) / _DECILE, (p90 - p50) / _DECILE

    def cdf(self, x: Any) -> Any:
        """The chance of at most x."""
        x = np.asarray(x, float) - self._middle
        return self._norm.cdf(x / np.where(x < 0, self._below, self._above))

    def ppf(self, q: Any) -> Any:
        """The quantiles."""
        z = self._norm.ppf(q)
        return self._middle + z * np.where(z < 0, self._below, self._above)

    def mean(self) -> float:
        """The mean."""
        return self._middle + (self._above - self._below) / math.sqrt(2 * math.pi)
