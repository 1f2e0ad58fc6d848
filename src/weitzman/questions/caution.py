"""From bold to careful: how the value and the first decision change with the risk tolerance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from .._common.arguments import check_counts
from .._common.arrays import FloatArray
from .._common.numbers import Amounts
from .._common.sharing import Executor, check_executor, spread
from .._common.text import ResultTable, clean
from ..engine.solution import Solution
from ..engine.solver import solve
from ..errors import InvalidArgument, InvalidForest
from ..forest.model import Forest

_BOLD, _CAREFUL = 20.0, 0.04  # tolerances, in units of the range of all payoffs
_HALVINGS = 40  # of an interval between two tolerances


@dataclass(frozen=True, slots=True, eq=False)
class RiskSweep(ResultTable):
    """The value and the first decision for many risk tolerances, the boldest first.

    Attributes
    ----------
    solution : Solution
        Without a risk tolerance: the expected payoff counts.
    tolerance : array of float
        Falling.
    value : array of float
        The certainty equivalent for each tolerance.
    first : tuple of str or None
        The box to open first for each tolerance; None for none.
    turns : array of float
        The tolerances at which the first decision changes, falling.
    """

    solution: Solution
    tolerance: FloatArray
    value: FloatArray
    first: tuple[str | None, ...]
    turns: FloatArray

    def columns(self) -> dict[str, list[Any]]:
        """One entry for each tolerance."""
        return {
            "tolerance": self.tolerance.tolist(),
            "value": self.value.tolist(),
            "first": list(self.first),
        }

    def decisions(self) -> list[tuple[float, float, str | None]]:
        """Each range of tolerances with one first decision: its upper end, its lower end, the box.

        The first range has no upper end (infinity), the last ends at 0.
        """
        ends = [np.inf, *self.turns.tolist(), 0.0]
        return [(high, low, self._first_within(high, low)) for high, low in pairwise(ends)]

    def _first_within(self, high: float, low: float) -> str | None:
        if high == np.inf:
            return self.solution.first_box
        inside = np.flatnonzero((self.tolerance < high) & (self.tolerance > low))
        return self.first[int(inside[0])]

    def headline(self) -> str:
        """The value for a searcher who ignores risk."""
        return f"expected payoff alone: {self.solution.forest.amounts(self.solution.value)}"

    def cells(self) -> list[list[str]]:
        """The first decision in each range of tolerances."""
        say = self.solution.forest.amounts
        rows = [
            [_reach(high, low, say), first or "nothing"] for high, low, first in self.decisions()
        ]
        return [["risk tolerance", "open first"], *rows]

    def table(self) -> str:
        """The decisions as text."""
        return "\n".join(
            clean(f"risk tolerance {reach}: open {first} first")
            for reach, first in self.cells()[1:]
        )


def risk_sweep(
    forest: Forest, *, steps: int = 32, threads: int | None = None,
    executor: Executor | None = None, progress: Callable[[int, int], None] | None = None,
) -> RiskSweep:  # fmt: skip
    """Solve for many risk tolerances, from bold to careful.

    Tolerances lie evenly on a logarithmic scale, from 20 times the range of all payoffs to a
    25th of it; below that, utilities leave few digits to 64-bit numbers. Where the first decision
    differs between two neighbors, the tolerance at which it changes is found by halving.

    Parameters
    ----------
    forest : Forest
        The forest's own risk tolerance, if any, is ignored.
    steps : int
        Tolerances to solve for.
    threads : int, optional
        All cores by default.
    executor : optional
        Workers to share the tolerances, as in :func:`~weitzman.solve`. The result does not depend
        on it.
    progress : callable, optional
        Called with (tolerances done, tolerances in all).

    Examples
    --------
    >>> import weitzman
    >>> boxes = weitzman.Builder().add("long shot", cost=1, outcomes={0: 0.9, 60: 0.1})
    >>> boxes = boxes.add("steady", cost=1, outcomes={5: 0.5, 6: 0.5})
    >>> sweep = weitzman.questions.risk_sweep(boxes.build())
    >>> [first for _, _, first in sweep.decisions()]
    ['long shot', 'steady']
    """
    check_counts(2, steps=steps)
    if not isinstance(forest, Forest):
        raise InvalidArgument(f"a risk sweep needs a Forest, but got a {type(forest).__name__}.")
    check_executor(executor)
    bold = replace(forest, risk_tolerance=None)
    tolerance = tolerances(bold, steps)
    data = bold, threads if executor is None else 1
    solved = spread(executor, _value_and_first, data, tolerance.tolist(), progress)
    base = solve(bold, threads=threads)
    first = [box for _, box in solved]
    changes = [
        (float(tolerance[i - 1] if i else 2 * tolerance[0]), float(tolerance[i]), before)
        for i, (before, after) in enumerate(zip([base.first_box, *first], first, strict=False))
        if before != after
    ]
    turns = spread(executor, _turning, data, changes)
    values = np.array([value for value, _ in solved])
    return RiskSweep(base, tolerance, values, tuple(first), np.array(turns))


Bold = tuple[Forest, int | None]  # and how many threads may work on it


def _value_and_first(data: Bold, tolerance: float) -> tuple[float, str | None]:
    """The value and the first box with a risk tolerance."""
    forest, threads = data
    try:
        careful = replace(forest, risk_tolerance=tolerance)
    except InvalidForest as error:
        raise InvalidArgument(f"a risk sweep solves with a risk tolerance. But {error}") from error
    solution = solve(careful, threads=threads)
    return solution.value, solution.first_box


def _reach(high: float, low: float, say: Amounts) -> str:
    """A range of tolerances in words."""
    if high == np.inf:
        return "any" if low == 0 else f"above {say(low)}"
    return f"below {say(high)}" if low == 0 else f"{say(high)} to {say(low)}"


def tolerances(f: Forest, steps: int) -> FloatArray:
    """Risk tolerances from bold to careful, by the range of all payoffs."""
    numbers = np.append(f.rewards.data, f.outside)
    numbers = numbers[np.isfinite(numbers)]
    span = float(np.ptp(numbers)) + float(f.costs.data.max()) if len(numbers) else 0.0
    return np.asarray(np.geomspace(_BOLD, _CAREFUL, steps) * (span or 1.0))


def _turning(data: Bold, change: tuple[float, float, str | None]) -> float:
    """Between two tolerances, the one at which the first box is no longer the one before."""
    high, low, before = change
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(high * low))
        if _value_and_first(data, middle)[1] == before:
            high = middle
        else:
            low = middle
    return float(np.sqrt(high * low))
