"""All that a report says, as numbers: computed once, drawn elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._page.data import important
from .._page.remaining import expected
from .._types import IntArray
from ..errors import InvalidArgument
from ..evaluate import Evaluation, evaluate
from ..model import Forest
from ..policy import Policy
from ..search import Opened, Search
from ..sensitivity import BreakEven, break_even
from ..simulation import Simulation
from ..simulation.play import simulate
from ..solution import Solution, mean_cost
from ..solve import solve
from ..strategies import Comparison, compare

TOP = 300
"""Boxes that a report shows unless told otherwise."""

_COMPARED = 2000  # boxes up to which strategies are compared: some seconds
_EPISODES = 20_000
_EXAMINED = 8  # boxes whose costs are looked into
_POINTS = 33  # costs of each that are tried; fewer for a large forest
_FEW_POINTS = 9
_LARGE = 2000
_DEAREST = 64.0  # times the cost: nothing beyond is tried


@dataclass(frozen=True, slots=True, eq=False)
class WhatIf:
    """The value of the search if one box cost more or less, by exact solves.

    Attributes
    ----------
    box : int
    state : int
        The state of its parent after which it is opened most often (0 for a root).
    break_even : BreakEven
        After that state.
    factor : list of float
        Its cost is multiplied by these.
    value : list of float
    first : list of int or None
        The box to begin with then.
    """

    box: int
    state: int
    break_even: BreakEven
    factor: list[float]
    value: list[float]
    first: list[int | None]


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """The numbers of a report.

    ``comparison`` is None where it would take long. ``told`` is what a search has seen so far,
    ``advice`` what it would do next, ``expected`` what it will have earned in the end.
    """

    solution: Solution
    policy: Policy
    evaluation: Evaluation
    simulation: Simulation
    keep: IntArray
    what_if: tuple[WhatIf, ...]
    comparison: Comparison | None
    told: tuple[Opened, ...]
    advice: str | None
    expected: float

    @property
    def forest(self) -> Forest:
        """The problem."""
        return self.solution.forest


def content(source: Forest | Solution | Search, *, top: int = TOP) -> Content:
    """Compute all that a report on a problem, or on a search under way, says."""
    if isinstance(source, Search):
        solution, policy = solve(source.policy.forest), source.policy
    elif isinstance(source, Forest | Solution):
        solution = solve(source) if isinstance(source, Forest) else source
        policy = solution.policy()
    else:
        raise InvalidArgument(
            f"a report needs a forest, a solution or a search, but got a {type(source).__name__}."
        )
    told = tuple(source.history) if isinstance(source, Search) else ()
    found = evaluate(solution)
    return Content(
        solution=solution,
        policy=policy,
        evaluation=found,
        simulation=simulate(solution, _EPISODES, 0),
        keep=important(policy, found, top, told),
        what_if=tuple(_what_if(solution, v) for v in _examined(found)),
        comparison=_comparison(solution),
        told=told,
        advice=source.explain() if isinstance(source, Search) and told else None,
        expected=expected(source) if isinstance(source, Search) else solution.value,
    )


def _comparison(solution: Solution) -> Comparison | None:
    if len(solution.forest) > _COMPARED:
        return None
    return compare(solution.forest, solution=solution, episodes=_EPISODES)


def _examined(e: Evaluation) -> list[int]:
    """The boxes on which most is spent."""
    spend = np.array(e.columns()["spend"])
    by = np.argsort(-spend, kind="stable")[:_EXAMINED]
    return [int(v) for v in by if spend[v] > 0]


def _what_if(solution: Solution, v: int) -> WhatIf:
    f = solution.forest
    state = _usual_state(solution, v)
    after: dict[str, Any] = {} if f.parent[v] < 0 else {"state": _state(f, int(f.parent[v]), state)}
    points = _POINTS if len(f) <= _LARGE else _FEW_POINTS
    factor = np.linspace(0.0, _last_factor(solution, v), points).tolist()
    solved = [_with_cost(solution, v, x) for x in factor]
    return WhatIf(
        box=v,
        state=state,
        break_even=break_even(solution, v, **after),
        factor=factor,
        value=[s.value for s in solved],
        first=[s.first for s in solved],
    )


def _usual_state(solution: Solution, v: int) -> int:
    return int(np.argmax(evaluate(solution).opened_after[v]))


def _state(f: Forest, box: int, state: int) -> str | int:
    """A state in the form in which it can be asked for."""
    names = f.state_names[int(f.reward[box])]
    return state if names is None else names[state]


def _last_factor(solution: Solution, v: int) -> float:
    """So many times the cost and the box is not opened any more; a power of two."""
    factor = 2.0
    while factor < _DEAREST and evaluate(_with_cost(solution, v, factor)).opened[v] > 0:
        factor *= 2
    return factor


def _with_cost(solution: Solution, v: int, factor: float) -> Solution:
    f = solution.forest
    cost = f.costs[int(f.cost[v])] * factor
    return solve(f.changed(cost={v: cost}))


def cost_now(w: WhatIf, f: Forest) -> float:
    """What the box costs on average after its usual state."""
    return float(mean_cost(f, w.box)[w.state])
