"""Pictures that answer questions, drawn with matplotlib (``pip install "weitzman[plot]"``).

Every function takes ``ax``, draws there or in a new figure, and returns the axes. None changes
global settings. Names are drawn as they are: ``$`` does not start a formula. The numbers behind
each picture come from functions that do not draw: ``Solution.capped_law``,
``policy.payoff_law``, ``evaluate``, ``compare``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...engine.solution import Solution
from .answers import (
    backtest,
    break_even,
    capped_value,
    frontier,
    openings,
    payoff,
    phi,
    risk_sweep,
    strategies,
    tornado,
)  # fmt: skip
from .paths import follow_line, learning_curves, line, search, tuning
from .style import check_solution
from .trees import forest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "backtest", "break_even", "capped_value", "forest", "frontier", "learning_curves", "line",
    "openings", "payoff", "phi", "risk_sweep", "search", "solution", "strategies", "tornado",
    "tuning",
]  # fmt: skip

_SMALL = 30  # boxes that can be drawn one by one
_LONG = 4  # a line of this many boxes is a map rather than a tree


def solution(solution: Solution, *, ax: Axes | None = None) -> Axes:
    """The picture that says the most about a solution.

    A single line is drawn as a map of where to continue, a small forest as a tree, a large forest
    by the boxes opened most often.

    Parameters
    ----------
    solution : Solution
    """
    check_solution(solution, "a picture")
    f = solution.forest
    alone = len(f.roots) == 1 and len(f) >= _LONG and f.count.max() == 1
    if alone and follow_line(f, int(f.roots[0])) is not None:
        return line(solution, ax=ax)
    return forest(solution, ax=ax) if len(f) <= _SMALL else openings(solution, ax=ax)
