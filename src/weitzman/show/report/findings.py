"""All numbers of a report: computed once, drawn elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..._common.arrays import FloatArray, IntArray
from ..._common.numbers import Amounts
from ...engine.evaluation import Evaluation, evaluate
from ...engine.indices import Policy
from ...engine.plan import Progress
from ...engine.solution import Solution, mean_cost
from ...engine.solver import solve
from ...engine.what_if import BreakEven, break_even
from ...errors import InvalidArgument
from ...forest.model import Forest
from ...policy.frontier import Box
from ...policy.payoff_laws import exact_payoffs
from ...policy.search import Search
from ...policy.simulation import PayoffLaw, payoff_law
from ...policy.walk import Opened, Walk
from ...policy.words import why
from ...strategies.comparison import Comparison, compare
from ...strategies.thumb_rules import by_expected_value, everything
from ..page.data import answers, important, too_large

if TYPE_CHECKING:
    from ...learn.run_model import RunModel

TOP = 300
"""Boxes that a report shows unless told otherwise."""

RUNS = 20
"""Runs of a fitted model that may be started unless told otherwise."""

_EPISODES = 20_000  # where exact evaluation is too large
_PLAYED = 2_000_000  # openings in all these episodes, about: seconds in plain Python
_POINTS = 400  # of a risk profile
_SETS = 300  # and orders to examine in a comparison
_DRAWS = 20  # models that the log might have led to
_LARGE = 2000  # boxes; in larger problems the second best start is left out
_EXAMINED = 8  # boxes whose costs are varied
_STEPS = 32  # steps from no cost to a cost at which the box is not opened
_EXAMINED_LARGE = 3
_STEPS_LARGE = 8
_BEYOND = 1.25  # the curve ends at this many times the highest cost that pays
_CHEAPEST_END = 2.0  # or at this many times the current cost, if that is more


@dataclass(frozen=True, slots=True, eq=False)
class WhatIf:
    """The value of the search if one box cost more or less, by exact solves.

    Attributes
    ----------
    box : int
    state : int
        The state of the parent after which the box is opened most often (0 for a root).
    break_even : BreakEven
        After that state.
    factor : list of float
        Factors by which the cost of the box is multiplied.
    value : list of float
    first : list of str or None
        The box to open first at each of these costs.
    """

    box: int
    state: int
    break_even: BreakEven
    factor: list[float]
    value: list[float]
    first: list[str | None]


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """The root with the second highest index, and the value of opening it first."""

    box: int
    value: float


class Profile(NamedTuple):
    """A risk profile: the chance of each payoff or less."""

    title: str
    x: FloatArray
    p: FloatArray
    mean: float


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """The numbers of a report.

    ``comparison`` is a text with the reason if strategies cannot be compared. ``runner_up`` is None
    where it would take too long or there is only one root. ``told`` is what a search has seen so
    far, ``taken`` which prizes it has taken, ``pending`` which boxes are handed out but not
    answered, ``advice`` what to do next, ``now`` what stopping would give, ``expected`` what the
    search will have earned in the end. ``between`` is where the value lies for nine in ten of the
    models that the same log might have led to; None if the model was not learned. ``answers`` is
    for the script of the page.
    """

    solution: Solution
    policy: Policy
    evaluation: Evaluation
    law: PayoffLaw
    profiles: tuple[Profile, ...]
    keep: IntArray
    what_if: tuple[WhatIf, ...]
    comparison: Comparison | str
    runner_up: RunnerUp | None
    told: tuple[Opened, ...]
    taken: tuple[tuple[Box, float], ...]
    pending: tuple[Box, ...]
    advice: str | None
    now: float
    expected: float
    between: tuple[float, float] | None
    answers: dict[str, Any]
    amounts: Amounts

    @property
    def exact(self) -> bool:
        """Whether the law of the payoff was computed and not simulated."""
        return self.law.how == "exact"

    @property
    def quantiles(self) -> tuple[float, float]:
        """Nine in ten payoffs lie between these."""
        up_to = np.cumsum(self.law.chances)
        low, high = np.searchsorted(up_to, [0.05, 0.95 - 1e-12])
        last = len(up_to) - 1
        return float(self.law.values[min(low, last)]), float(self.law.values[min(high, last)])

    @property
    def forest(self) -> Forest:
        """The problem."""
        return self.solution.forest

    def say(self, x: float, error: float = 0.0) -> str:
        """An amount of the problem as people read it, with its unit."""
        return self.amounts.typeset(x, error)


def content(
    source: Forest | Solution | Search | RunModel,
    *,
    limit: int = TOP,
    runs: int = RUNS,
    progress: Progress | None = None,
) -> Content:
    """Compute all numbers of a report on a problem, a fitted model or a search under way."""
    between = None
    if not isinstance(source, Forest | Solution | Search):
        source, between = _searched_runs(source, runs)
    if isinstance(source, Search):
        solution, policy = solve(source.policy.forest), source.policy
    else:
        solution = solve(source) if isinstance(source, Forest) else source
        policy = solution.policy()
    search = source if isinstance(source, Search) else None
    told = () if search is None else tuple(search.history)
    taken = () if search is None else tuple(search.taken)
    walk = Walk.along(
        policy, told
    )  # no box counts as handed out: such a box may still be the one to open
    if walk.hands is not None:
        for box, reward in taken:
            walk.hands.take((box.number, box.copy), reward)
    found = evaluate(solution)
    episodes = int(min(_EPISODES, max(_PLAYED / max(found.openings, 1.0), 200.0)))
    law = payoff_law(policy, episodes=episodes)
    what_if = []
    for i, v in enumerate(examined := _examined(found)):
        if progress is not None:
            progress(i, 2 * len(examined))
        what_if.append(_what_if(solution, found, v))
    return Content(
        solution=solution,
        policy=policy,
        evaluation=found,
        law=law,
        profiles=_profiles(solution, law),
        keep=important(policy, found, limit, told),
        what_if=tuple(what_if),
        comparison=_comparison(solution, progress),
        runner_up=_runner_up(solution),
        told=told,
        taken=taken,
        pending=() if search is None else tuple(search.pending),
        advice=why(walk) if told else None,
        now=solution.forest.outside if search is None else search.payoff,
        expected=walk.worth() if told else solution.value,
        between=between,
        answers=answers(solution, found),
        amounts=solution.forest.amounts,
    )


def _searched_runs(model: object, runs: int) -> tuple[Forest, tuple[float, float] | None]:
    """New runs of a fitted model, and where nine in ten models from the same log put their value.

    Other reports do not need what learns from logs, so it is imported here.
    """
    from ...learn.diagnosis import bootstrap
    from ...learn.resemblance import ResemblanceModel
    from ...learn.run_model import RunModel

    if not isinstance(model, RunModel):
        raise InvalidArgument(
            f"a report needs a forest, a solution, a search, a fitted model or a back-test, but "
            f"got a {type(model).__name__}."
        )
    steps = tuple(f"run to step {step}" for step in model.rungs)
    forest = replace(model.lines(runs), names=steps)
    if not isinstance(model, ResemblanceModel):
        return forest, None
    low, high = np.quantile(bootstrap(model, _DRAWS).value_at(runs), [0.05, 0.95])
    return forest, (float(low), float(high))


def _profiles(solution: Solution, law: PayoffLaw) -> tuple[Profile, ...]:
    """The risk profiles of the best policy and of simpler ones, where these are exact."""
    found = [_profile("best policy", law.values, law.chances)]
    rivals = (("highest net value first", by_expected_value), ("everything", everything))
    for title, rival in rivals if law.how == "exact" and too_large(solution.forest) is None else ():
        try:
            exact = exact_payoffs(rival(solution.forest))
        except InvalidArgument:  # no rule for this kind of problem
            continue
        if exact is not None:
            other = _profile(title, *exact)
            if abs(other.mean - law.mean) > 1e-9 * max(1.0, abs(law.mean)):  # else the same policy
                found.append(other)
    return tuple(found)


def _profile(title: str, values: FloatArray, chances: FloatArray) -> Profile:
    """The steps of a distribution function, at most some hundred of them."""
    p, mean = np.cumsum(chances), float(values @ chances)
    some = np.arange(len(values))
    if len(values) > _POINTS:  # even steps upward; both ends stay
        some = np.unique(np.append(np.searchsorted(p, np.linspace(0, 1, _POINTS))[:-1], some[-1]))
    return Profile(title, values[some], p[some], mean)


def _comparison(solution: Solution, progress: Progress | None) -> Comparison | str:
    if (size := too_large(solution.forest)) is not None:
        return f"this would take too long with {size}. Run weitzman compare instead."
    if solution.forest.endless.any():
        return "fixed orders and sets need lines that end."
    half = None if progress is None else lambda done, total: progress(total + done, 2 * total)
    try:
        return compare(
            solution.forest, solution=solution, episodes=_EPISODES, limit=_SETS, progress=half
        )
    except InvalidArgument as error:
        return str(error)


def _runner_up(solution: Solution) -> RunnerUp | None:
    policy = solution.policy()
    f = policy.forest
    if len(f) > _LARGE or len(policy.root) < 2 or solution.first_box is None:
        return None
    second = int(policy.root[1])
    walk, worths = Walk(policy), []
    box = second, (1,) if f.count[second] > 1 or f.endless[second] else ()
    law = f.laws[int(f.law[second])][0]
    for y in np.flatnonzero(law).tolist():
        with walk.supposing(box, y):
            worths.append(walk.worth())
    return RunnerUp(second, _mean(f, law[law > 0], np.array(worths)))


def _mean(f: Forest, chances: FloatArray, payoffs: FloatArray) -> float:
    """The mean of payoffs; with a risk tolerance, their certainty equivalent."""
    if f.risk_tolerance is None:
        return float(chances @ payoffs)
    scale = -f.sign / f.risk_tolerance
    worst = float((scale * payoffs).max())
    return float((np.log(chances @ np.exp(scale * payoffs - worst)) + worst) / scale)


def _examined(e: Evaluation) -> list[int]:
    """The boxes on which the most is spent."""
    spend = np.array(e.columns()["spend"])
    most = _EXAMINED if too_large(e.forest) is None else _EXAMINED_LARGE
    by = np.argsort(-spend, kind="stable")[:most]
    return [int(v) for v in by if spend[v] > 0]


def _what_if(solution: Solution, e: Evaluation, v: int) -> WhatIf:
    f = solution.forest
    state = int(np.argmax(e.opened_after[v]))
    after: dict[str, Any] = {} if f.parent[v] < 0 else {"state": _state(f, int(f.parent[v]), state)}
    turns = break_even(solution, v, **after)
    factor = _factors(turns, _STEPS if too_large(f) is None else _STEPS_LARGE)
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
    """A state in the form that queries take."""
    names = f.state_names[int(f.reward[box])]
    return state if names is None else names[state]


def _factors(turns: BreakEven, steps: int) -> list[float]:
    """Even steps from zero to somewhat above the highest cost that pays, through the cost now."""
    pays = turns.opened_below / turns.cost if turns.cost > 0 else np.inf
    last = min(max(_CHEAPEST_END, _BEYOND * pays), float(steps))
    part = max(1, round(steps / last))  # steps up to the current cost
    return [i / part for i in range(steps + 1)]


def _with_cost(solution: Solution, v: int, factor: float) -> Solution:
    f = solution.forest
    cost = f.costs[int(f.cost[v])] * factor
    return solve(f.changed(cost={v: cost}))


def cost_now(w: WhatIf, f: Forest) -> float:
    """What the box costs on average after its usual state."""
    return float(mean_cost(f, w.box)[w.state])
