"""What following a policy leads to, box by box, and how it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._common.numbers import about, counted, number
from .._common.text import ResultTable, as_html, cell, columns
from ..forest.model import Forest
from .weights import mean_costs


class ByBox(np.ndarray[Any, np.dtype[np.float64]]):
    """(n,) array of float; a name as the key gives the number of that box.

    Results of arithmetic and slices are plain arrays.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, names=["chest"])
    >>> opened = weitzman.evaluate(weitzman.solve(chest)).opened
    >>> float(opened["chest"]), float(opened[0]), opened + 1
    (1.0, 1.0, array([2.]))
    """

    _forest: Forest | None

    def __new__(cls, values: FloatArray, forest: Forest) -> ByBox:
        found = np.asarray(values, np.float64).view(cls)
        found._forest = forest
        return found

    def __array_finalize__(self, source: object) -> None:
        self._forest = None

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else np.asarray(array)

    def __getitem__(self, key: Any) -> Any:
        plain = self.view(np.ndarray)
        return plain[self._forest.box(key) if isinstance(key, str) and self._forest else key]

    def __reduce__(self) -> Any:
        if self._forest is None:
            return super().__reduce__()
        return ByBox, (np.array(self), self._forest)

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))

    def __str__(self) -> str:
        return str(self.view(np.ndarray))


@dataclass(frozen=True, slots=True, eq=False)
class PerBox:
    """A short array for every box, looked up by its name or number."""

    forest: Forest
    data: FloatArray
    start: IntArray

    def __getitem__(self, box: str | int) -> FloatArray:
        v = self.forest.box(box)
        return self.data[self.start[v] : self.start[v + 1]]

    def __len__(self) -> int:
        return len(self.forest)

    def __iter__(self) -> Iterator[FloatArray]:
        return (self[v] for v in range(len(self)))

    def totals(self) -> FloatArray:
        """(n,) sum of each array."""
        return np.asarray(np.add.reduceat(self.data, self.start[:-1]))


@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    """Openings and choices, each counted with the discount factor of that moment.

    Attributes
    ----------
    opened_after, chosen : PerBox
        As in :class:`Evaluation`.
    outside : float
        Of the outside option.
    """

    opened_after: PerBox
    chosen: PerBox
    outside: float


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation(ResultTable):
    """What following a policy leads to, in expectation.

    Attributes
    ----------
    forest : Forest
    opened : (n,) array of float
        Expected number of copies of each box that are opened; without copies, the probability.
        ``opened["A"]`` is that of box A.
    chosen : PerBox
        ``chosen[box][state]``: probability that the box ends as the chosen one in that state.
        Between equal rewards the box of lowest number is chosen, whichever was opened first (of
        its copies the one in the lower state), and the outside option before any: as in
        ``Search.best_box``. Ties of indices are broken as in a search, too.
    opened_after : PerBox
        ``opened_after[box][state]``: expected openings of the box after its parent showed that
        state (one entry for a root).
    value, reward, spend, openings : float
        Expected payoff, reward taken (in the user's sign), total cost, number of boxes opened. With
        discounting, payoff, reward and cost are the discounted ones. With a risk tolerance,
        ``value`` is the certainty equivalent of the payoff.
    outside : float
        Probability that the outside option is taken; with several prizes, the expected number of
        places that stay empty.
    residual : float
        1 minus the sum of all probabilities of being chosen: what rounding has lost.
    error : float
        How far rounding may have moved ``value``, estimated from above.
    time : float
        Expected time to the end; in units of the inverse of the rate if factors were given without
        durations, 0 if neither was.
    worth : Worth
        Openings and choices, each counted with the discount factor of that moment: without
        discounting, the probabilities themselves.
    """

    forest: Forest
    opened: FloatArray
    chosen: PerBox
    opened_after: PerBox
    value: float
    reward: float
    spend: float
    openings: float
    outside: float
    residual: float
    error: float
    time: float
    worth: Worth

    @property
    def wins(self) -> FloatArray:
        """(n,) probability that each box (any of its copies, any state) is the chosen one."""
        return ByBox(self.chosen.totals(), self.forest)

    def columns(self) -> dict[str, list[Any]]:
        """One entry per box: name, opened, wins, spend."""
        f, wins, spend = self.forest, self.wins, self._spend()
        return {
            "box": [f.name(v) for v in range(len(f))],
            "opened": self.opened.tolist(),
            "chosen": wins.tolist(),
            "spend": spend.tolist(),
        }

    def _spend(self) -> FloatArray:
        o = self.worth.opened_after
        return np.asarray(np.add.reduceat(o.data * mean_costs(self.forest)[0], o.start[:-1]))

    def table(self, limit: int = 40) -> str:
        """The same as text, the boxes most often opened first; ``limit`` 0: all of them."""
        by = np.argsort(-self.opened, kind="stable")[: limit or None]
        c, say = self.columns(), self.forest.amounts
        rows = [
            (cell(c["box"][v]), number(c["opened"][v]), number(c["chosen"][v]), say(c["spend"][v]))
            for v in by
        ]
        lines = [
            f"{self._headline()}   "
            f"openings {number(self.openings)}   outside option taken {about(self.outside)}",
            *columns([("box", "opened", "chosen", "spend"), *rows], right=1),
        ]
        if len(self.opened) > len(by):
            lines.append(f"... {counted(len(self.opened) - len(by), 'more box')}")
        return "\n".join(lines)

    def _headline(self) -> str:
        """The value and what it is made of."""
        f, sign = self.forest, "+" if self.forest.minimize else "-"
        say = f.amounts
        if f.risk_tolerance is not None:
            return (
                f"certainty equivalent {say(self.value)}   expected: reward "
                f"{say(self.reward)} {sign} spend {say(self.spend)}"
            )
        made = f"reward {say(self.reward)} {sign} spend {say(self.spend)}"
        line = f"value {say(self.value)} = {made}"
        return f"{line}, discounted   time {number(self.time)}" if f.factors is not None else line

    def __repr__(self) -> str:
        return (
            f"Evaluation(value={self.value:.10g}, reward={self.reward:.10g}, "
            f"spend={self.spend:.10g}, openings={self.openings:.6g})"
        )

    _repr_html_ = as_html
