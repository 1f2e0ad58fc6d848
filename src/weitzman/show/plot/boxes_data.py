"""Numbers for each box or strategy as plain columns, the most telling first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._common.arrays import FloatArray, IntArray
from ...engine.evaluation import Evaluation, evaluate
from ...engine.indices import Policy
from ...engine.solution import Solution
from ...engine.what_if import break_even
from ...errors import InvalidArgument
from ...forest.model import Forest
from ...policy.payoff_laws import state_called
from ...policy.simulation import at_least_one
from ...policy.simulation_result import two_sided
from ...strategies.comparison import Comparison


def check_solution(solution: object, what: str) -> None:
    """Refuse anything but a solution with a clear message: most pictures need a solution."""
    if not isinstance(solution, Solution):
        raise InvalidArgument(
            f"{what} needs a solution, but got a {type(solution).__name__}. Call solve(forest) "
            f"first."
        )


@dataclass(frozen=True, slots=True, eq=False)
class Openings:
    """How often boxes are opened and chosen, the most often opened first.

    Attributes
    ----------
    names : list of str
    opened, chosen : (m,) arrays of float
    outside : float
        Probability that the outside option is taken.
    boxes : int
        Boxes in all, as described.
    rest_opened, rest_chosen : float
        Sums over the boxes that are left out.
    copies : bool
        Whether boxes have copies, so that ``opened`` are numbers rather than probabilities.
    """

    names: list[str]
    opened: FloatArray
    chosen: FloatArray
    outside: float
    boxes: int
    rest_opened: float
    rest_chosen: float
    copies: bool


def openings_data(source: Evaluation | Solution | Policy, limit: int = 25) -> Openings:
    """Opening and winning probabilities of the boxes that are opened most often.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> d = openings_data(weitzman.solve(chest))
    >>> d.opened.tolist(), d.chosen.tolist(), d.outside
    ([1.0], [0.5], 0.5)
    """
    at_least_one(limit=limit)
    e = source if isinstance(source, Evaluation) else evaluate(source)
    f, wins = e.forest, e.wins
    top = np.argsort(-e.opened, kind="stable")[:limit]
    return Openings(
        [f.name(int(v)) for v in top], e.opened[top], wins[top], e.outside, len(f),
        _rest(e.opened, top), _rest(wins, top), bool(f.count.max() > 1),
    )  # fmt: skip


def _rest(x: FloatArray, top: IntArray) -> float:
    left = np.ones(len(x), bool)
    left[top] = False
    return float(x[left].sum())


@dataclass(frozen=True, slots=True, eq=False)
class Strategies:
    """What strategies earn, in the order of the comparison.

    Attributes
    ----------
    names, how : lists of str
    value, error, bound : (m,) arrays of float
        Expected payoff; half of its 95 % confidence interval; what no strategy of its kind can
        exceed, NaN where the value itself is the bound.
    nothing : float
        What opening nothing earns.
    """

    names: list[str]
    how: list[str]
    value: FloatArray
    error: FloatArray
    bound: FloatArray
    nothing: float


def strategies_data(comparison: Comparison) -> Strategies:
    """Values of strategies side by side."""
    if not isinstance(comparison, Comparison):
        raise InvalidArgument(
            f"the picture of strategies needs the result of compare(forest), but got a "
            f"{type(comparison).__name__}."
        )
    c = comparison.columns()
    value, bound = np.array(c["value"]), np.array(c["bound"])
    bound[np.isclose(bound, value, rtol=1e-9)] = np.nan
    return Strategies(
        c["name"], c["how"], value, two_sided(0.95) * np.array(c["error"]), bound,
        comparison.forest.outside,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class BreakEvens:
    """Costs at which decisions change, for the boxes that are opened most often.

    Attributes
    ----------
    names : list of str
        The name of a child includes the state of its parent that most often leads to the child.
    cost, opened_below : (m,) arrays of float
        What opening costs now, and the cost above which opening never pays.
    first_below : (m,) array of float
        The cost at which the first decision changes: infinity if no cost changes the decision, NaN
        where the search would not begin in this tree even if the box were free.
    boxes : int
        Boxes in all, as described.
    """

    names: list[str]
    cost: FloatArray
    opened_below: FloatArray
    first_below: FloatArray
    boxes: int


def break_even_data(solution: Solution, limit: int = 12) -> BreakEvens:
    """Break-even costs of the boxes that are opened most often.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> break_even_data(weitzman.solve(chest)).opened_below.tolist()
    [5.0]
    """
    check_solution(solution, "the picture of break-even costs")
    at_least_one(limit=limit)
    f, e = solution.forest, evaluate(solution)
    top = np.argsort(-e.opened, kind="stable")[:limit].tolist()
    states = [int(np.argmax(e.opened_after[v])) for v in top]
    found = [
        break_even(solution, v, None if f.parent[v] < 0 else state_called(f, int(f.parent[v]), s))
        for v, s in zip(top, states, strict=True)
    ]
    return BreakEvens(
        [_after(f, v, s) for v, s in zip(top, states, strict=True)],
        np.array([b.cost for b in found]),
        np.array([b.opened_below for b in found]),
        np.array([np.nan if b.first_below is None else b.first_below for b in found]),
        len(f),
    )


def _after(f: Forest, box: int, state: int) -> str:
    """The name of a box, with the state of its parent."""
    up = int(f.parent[box])
    return f.name(box) if up < 0 else f"{f.name(box)} after {f.states(up)[state]}"
