"""How much of the optimum fixed plans earn: measured, since no share is guaranteed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .._common.numbers import number
from .._common.text import as_html
from .._common.text import columns as aligned
from ..engine.evaluation import evaluate
from ..engine.solution import Solution
from ..engine.solver import solve
from ..forest.model import Forest
from .fixed_sets import FixedLine, FixedSet, best_line, best_nonadaptive

_ROUNDING = 1e-12  # differences of values, as a share of them, that are only rounding
_HOW = {True: "best of all", False: "best found"}


@dataclass(frozen=True, slots=True, eq=False)
class Approximation:
    """The best line and the best set found, next to what no strategy can exceed.

    Attributes
    ----------
    forest : Forest
    bound : float
        No strategy earns more (less, when minimizing): the optimal value and its certified gap.
    promised : float
        The paper's claim about the best fixed plan: half of what the optimal policy finds above the
        outside option, less all of its costs. True for independent rewards, not in general. NaN
        where something must be taken, and with discounting, a risk tolerance or several prizes,
        which the paper does not consider.
    line : FixedLine
    chosen : FixedSet
        Its ``exact`` says whether it is proven to be the best set of all.
    """

    forest: Forest
    bound: float
    promised: float
    line: FixedLine
    chosen: FixedSet

    def ratio(self, value: float) -> float:
        """A lower bound on the share of the possible gain over the outside option in a value.

        With an outside option of 0 this is the paper's ratio. NaN where nothing can be gained, or
        where something must be taken.
        """
        nothing = self.forest.prizes * self.forest.outside
        gain = self.bound - nothing
        return (value - nothing) / gain if gain and math.isfinite(gain) else math.nan

    @property
    def reached(self) -> bool:
        """Whether the best set found earns as much as the paper promises."""
        short = (self.promised - self.chosen.value) * (self.forest.sign)
        return short <= _ROUNDING * max(1.0, abs(self.promised))

    def table(self) -> str:
        """The plans as text, each with the ratio that it achieves."""
        size = int((self.chosen.copies > 0).sum())
        rows: list[tuple[str, str, float, str]] = [
            ("no strategy exceeds", "", self.bound, ""),
            ("fixed set", f"{size}", self.chosen.value, _HOW[self.chosen.exact]),
            ("fixed line", f"{len(self.line.order)}", self.line.value, _HOW[True]),
            ("  with stopping", "", self.line.followed, ""),
        ]
        if math.isfinite(self.promised):
            note = "reached by the set" if self.reached else "not reached"
            rows.append(("promised", "", self.promised, note))
        cells = [["plan", "boxes", "value", "ratio", "how"]]
        for name, boxes, value, note in rows:
            ratio = self.ratio(value)
            cells.append(
                [name, boxes, number(value), "" if math.isnan(ratio) else f"{ratio:.4f}", note]
            )
        return "\n".join(aligned(cells, right=1))

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        line, chosen = self.ratio(self.line.value), self.ratio(self.chosen.value)
        return f"Approximation(bound={self.bound:.8g}, line={line:.4f}, set={chosen:.4f})"

    _repr_html_ = as_html


def approximate(
    forest: Forest,
    *,
    depth: int | None = None,
    limit: int | None = None,
    solution: Solution | None = None,
) -> Approximation:
    """The best line and the best set, with the ratio to the optimum that they really achieve.

    Parameters
    ----------
    forest : Forest
    depth : int, optional
        Boxes of the line, at most.
    limit : int, optional
        Sets to examine, at most; see :func:`best_nonadaptive`.
    solution : Solution, optional
        The solution of the forest, if it is already known.

    Examples
    --------
    >>> import weitzman
    >>> pair = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=2)
    >>> found = approximate(pair)
    >>> found.line.value, found.chosen.value, found.bound
    (4.0, 5.5, 6.0)
    >>> round(found.ratio(found.line.value), 4)
    0.6667
    """
    forest.must_end("a fixed plan")
    solved = solve(forest) if solution is None else solution
    sign = forest.sign
    optimum = evaluate(solved)
    promised = math.nan
    if math.isfinite(forest.outside) and forest.is_plain:
        promised = (optimum.reward + forest.outside) / 2 - sign * optimum.spend
    return Approximation(
        forest,
        solved.value + sign * solved.gap,
        promised,
        best_line(forest, depth=depth),
        best_nonadaptive(forest, limit=limit, solution=solved),
    )
