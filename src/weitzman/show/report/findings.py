"""All that a report says, as numbers: computed once, drawn elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._common.arrays import IntArray
from ...engine.evaluation import Evaluation, evaluate
from ...engine.indices import Policy
from ...engine.plan import Progress
from ...engine.solution import Solution, mean_cost
from ...engine.solver import solve
from ...engine.what_if import BreakEven, break_even
from ...errors import InvalidArgument
from ...forest.model import Forest
from ...learn.run_model import RunModel
from ...policy.frontier import Box
from ...policy.reasons import why
from ...policy.search import Search
from ...policy.simulation import simulate
from ...policy.simulation_result import Simulation
from ...policy.walk import Opened, Walk
from ...strategies.comparison import Comparison, compare
from ..page.page_data import important
from .learnt import RUNS, forest, spread

TOP = 300
"""Boxes that a report shows unless told otherwise."""

_COMPARED = 400  # boxes up to which strategies are compared: some seconds
_EPISODES = 20_000
_LARGE = 2000  # boxes: beyond, a solve takes long enough to do fewer
_EXAMINED = 8  # boxes whose costs are looked into
_STEPS = 32  # of its cost from free to more than it is worth
_EXAMINED_LARGE = 3
_STEPS_LARGE = 8
_BEYOND = 1.25  # times the cost from which on a box is not opened: there the curve ends
_CHEAPEST_END = 2.0  # times the cost as it is now: so far the curve goes in any case


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
    first : list of str or None
        The box to begin with then.
    """

    box: int
    state: int
    break_even: BreakEven
    factor: list[float]
    value: list[float]
    first: list[str | None]


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """The root of second highest index, and what beginning with it would earn, then the best."""

    box: int
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """The numbers of a report.

    ``comparison`` and ``runner_up`` are None where they would take long, the former also where
    lines do not end, the latter where there is only one root. ``told`` is what a search has seen so
    far, ``pending`` what is handed out and not answered, ``advice`` what to do next, ``expected``
    what the search will have earned in the end. ``between`` is where the value lies for nine in
    ten of the models that the same log might have led to; None if the model was not learnt.
    """

    solution: Solution
    policy: Policy
    evaluation: Evaluation
    simulation: Simulation
    keep: IntArray
    what_if: tuple[WhatIf, ...]
    comparison: Comparison | None
    runner_up: RunnerUp | None
    told: tuple[Opened, ...]
    pending: tuple[Box, ...]
    advice: str | None
    expected: float
    between: tuple[float, float] | None

    @property
    def forest(self) -> Forest:
        """The problem."""
        return self.solution.forest


def content(
    source: Forest | Solution | Search | RunModel,
    *,
    top: int = TOP,
    runs: int = RUNS,
    progress: Progress | None = None,
) -> Content:
    """Compute all that a report on a problem, a fitted model or a search under way says."""
    between = None
    if isinstance(source, RunModel):
        between = spread(source, runs)
        source = forest(source, runs)
    if isinstance(source, Search):
        solution, policy = solve(source.policy.forest), source.policy
    elif isinstance(source, Forest | Solution):
        solution = solve(source) if isinstance(source, Forest) else source
        policy = solution.policy()
    else:
        raise InvalidArgument(
            f"a report needs a forest, a solution, a search, a fitted model or a replay, but got a "
            f"{type(source).__name__}."
        )
    solution.forest.must_be_plain("a report")
    told = tuple(source.history) if isinstance(source, Search) else ()
    walk = Walk.along(policy, told)  # nothing is out: such boxes may still be the ones to open
    found = evaluate(solution)
    what_if = []
    for i, v in enumerate(examined := _examined(found)):
        if progress is not None:
            progress(i, 2 * len(examined))
        what_if.append(_what_if(solution, found, v))
    return Content(
        solution=solution,
        policy=policy,
        evaluation=found,
        simulation=simulate(solution, _EPISODES, 0),
        keep=important(policy, found, top, told),
        what_if=tuple(what_if),
        comparison=_comparison(solution, progress),
        runner_up=_runner_up(solution),
        told=told,
        pending=tuple(source.pending) if isinstance(source, Search) else (),
        advice=why(walk) if told else None,
        expected=walk.worth() if told else solution.value,
        between=between,
    )


def _comparison(solution: Solution, progress: Progress | None) -> Comparison | None:
    if len(solution.forest) > _COMPARED or solution.forest.endless.any():
        return None
    half = None if progress is None else lambda done, total: progress(total + done, 2 * total)
    return compare(solution.forest, solution=solution, episodes=_EPISODES, progress=half)


def _runner_up(solution: Solution) -> RunnerUp | None:
    policy = solution.policy()
    f = policy.forest
    if len(f) > _LARGE or len(policy.root) < 2 or solution.first_box is None:
        return None
    second = int(policy.root[1])
    walk, value = Walk(policy), 0.0
    box = second, (1,) if f.count[second] > 1 or f.endless[second] else ()
    for y, p in enumerate(f.laws[int(f.law[second])][0].tolist()):
        if p > 0:
            with walk.supposing(box, y):
                value += p * walk.worth()
    return RunnerUp(second, value)


def _examined(e: Evaluation) -> list[int]:
    """The boxes on which most is spent."""
    spend = np.array(e.columns()["spend"])
    most = _EXAMINED if len(e.forest) <= _LARGE else _EXAMINED_LARGE
    by = np.argsort(-spend, kind="stable")[:most]
    return [int(v) for v in by if spend[v] > 0]


def _what_if(solution: Solution, e: Evaluation, v: int) -> WhatIf:
    f = solution.forest
    state = int(np.argmax(e.opened_after[v]))
    after: dict[str, Any] = {} if f.parent[v] < 0 else {"state": _state(f, int(f.parent[v]), state)}
    turns = break_even(solution, v, **after)
    factor = _factors(turns, _STEPS if len(f) <= _LARGE else _STEPS_LARGE)
    solved = [_with_cost(solution, v, x) for x in factor]
    return WhatIf(
        box=v,
        state=state,
        break_even=turns,
        factor=factor,
        value=[s.value for s in solved],
        first=[s.first_box for s in solved],
    )


def _state(f: Forest, box: int, state: int) -> str | int:
    """A state in the form in which it can be asked for."""
    names = f.state_names[int(f.reward[box])]
    return state if names is None else names[state]


def _factors(turns: BreakEven, steps: int) -> list[float]:
    """Even steps from free to somewhat dearer than pays, the cost as it is now among them."""
    pays = turns.opened_below / turns.cost if turns.cost > 0 else np.inf
    last = min(max(_CHEAPEST_END, _BEYOND * pays), float(steps))
    part = max(1, round(steps / last))  # steps up to the cost as it is now
    return [i / part for i in range(steps + 1)]


def _with_cost(solution: Solution, v: int, factor: float) -> Solution:
    f = solution.forest
    cost = f.costs[int(f.cost[v])] * factor
    return solve(f.changed(cost={v: cost}))


def cost_now(w: WhatIf, f: Forest) -> float:
    """What the box costs on average after its usual state."""
    return float(mean_cost(f, w.box)[w.state])
