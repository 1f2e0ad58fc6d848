r"""Laws of capped values and of payoffs, as plain arrays.

The capped value :math:`\kappa` of a box says all about searching its subtree: with x in hand that
is worth :math:`\Phi(x) = E \max(x, \kappa)`, and the index is where :math:`\Phi(x)` comes down
to x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._common.arrays import FloatArray
from ...chains.capped_values import above
from ...engine.evaluation import evaluate
from ...engine.indices import Policy
from ...engine.plan import Plan
from ...engine.solution import Solution, as_policy
from ...errors import InvalidArgument
from ...forest.model import Forest
from ...policy.frontier import Box
from ...policy.search import Search
from ...policy.simulation import simulate

_EPS = 1e-12  # breakpoints that move an expectation by less, in units of the range, are merged
_TELLS = 20_000  # answers given in writing out a policy, at most: well below a second


@dataclass(frozen=True, slots=True, eq=False)
class CappedLaw:
    """The law of a capped value, in the user's sign.

    Attributes
    ----------
    points : (m,) array, ascending
    tails : (m,) array
        P(kappa >= point); when minimizing P(kappa <= point).
    low, high : float
        A range of x that shows all of it.
    index : float
        NaN for several trees at once.
    minimize : bool
    """

    points: FloatArray
    tails: FloatArray
    low: float
    high: float
    index: float
    minimize: bool

    def phi(self, x: FloatArray) -> FloatArray:
        """E max(x, kappa); when minimizing, E min(x, kappa)."""
        y = np.asarray(x, np.float64)
        if not len(self.points):  # no reward can be found
            return y
        if self.minimize:
            return -above(-self.points[::-1], self.tails[::-1], -y)
        return above(self.points, self.tails, y)


def check_solution(solution: object, what: str) -> None:
    """Most pictures need a solution; a clear word for anything else."""
    if not isinstance(solution, Solution):
        raise InvalidArgument(
            f"{what} needs a solution, but got a {type(solution).__name__}. Call solve(forest) "
            f"first."
        )


def capped_law(
    solution: Solution, box: str | int | None = None, state: str | int | float | None = None
) -> CappedLaw:
    """The law of the capped value of a box after a state of its parent; by default of all trees.

    Parameters
    ----------
    solution : Solution
    box : str or int, optional
        Without it, the largest capped value of all roots.
    state : optional
        What the parent of the box showed.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> law = capped_law(weitzman.solve(chest), 0)
    >>> law.points.tolist(), law.tails.tolist(), law.index
    ([0.0, 8.0], [1.0, 0.5], 8.0)
    """
    check_solution(solution, "the law of a capped value")
    f = solution.forest
    if f.risk_tolerance is not None or f.prizes > 1:
        f.must_be_plain("the law of a capped value")
    index = np.nan if box is None else solution.index(box, state)
    part = f if box is None else f.subtree(box, state)
    sign = f.sign
    seen = sign * np.array([*_rewards(part), f.outside, index])
    seen = seen[np.isfinite(seen)]
    below = sign * solution.index_columns()[1]  # no capped value is lower than all of these
    marks = np.concatenate([seen, below[np.isfinite(below)]])
    wide = float(np.ptp(marks)) or abs(float(marks[0])) or 1.0
    plan = Plan.of(part.changed(outside=sign * (float(marks.min()) - wide)))
    points, tails = plan.run(_EPS * plan.span, clip=False).tail
    ends = np.concatenate([np.maximum(points, seen.min()), seen[seen == sign * f.outside]])
    ends = ends if len(ends) else seen
    room = 0.06 * float(np.ptp(ends)) or 0.06 * wide
    low, high = float(ends.min()) - room, float(ends.max()) + room
    if f.minimize:
        return CappedLaw(-points[::-1], tails[::-1], -high, -low, index, True)
    return CappedLaw(points, tails, low, high, index, False)


def _rewards(forest: Forest) -> FloatArray:
    """All finite ones."""
    used = np.unique(forest.reward)
    rewards = np.concatenate([forest.rewards[int(r)][0] for r in used])
    return np.asarray(rewards[np.isfinite(rewards)])


@dataclass(frozen=True, slots=True, eq=False)
class PayoffLaw:
    """What a search earns in the end.

    Attributes
    ----------
    values : (m,) array, ascending
    chances : (m,) array
        Sum to 1.
    mean : float
        Exact, also if the law is simulated.
    outside : float
        What opening nothing earns.
    is_worse : (m,) array of bool
        Which values are worse than that.
    worse : float
        Their probability.
    how : str
        "exact", or how many searches were simulated.
    """

    values: FloatArray
    chances: FloatArray
    mean: float
    outside: float
    is_worse: NDArray[np.bool_]
    worse: float
    how: str


def payoff_law(
    policy: Solution | Policy, *, episodes: int = 100_000, rng: np.random.Generator | int = 0
) -> PayoffLaw:
    """The law of the payoff: written out where the policy has few ends, else simulated.

    Rewards and accumulated costs depend on each other, so unlike expectations their joint law can
    have exponentially many values.

    Parameters
    ----------
    policy : Solution or Policy
    episodes : int
        Searches to simulate, if it comes to that.
    rng : Generator or int
        For the simulation.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=2)
    >>> law = payoff_law(weitzman.solve(chest))
    >>> law.values.tolist(), law.chances.tolist(), law.how
    ([-2.0, 8.0, 9.0], [0.25, 0.25, 0.5], 'exact')
    """
    rule = as_policy(policy, "payoff_law")
    ends = _ends(rule)
    if ends is None:
        played = simulate(rule, episodes, rng)
        values, chances = played.payoff.values, np.full(len(played.payoff.values), 1.0)
        how, mean = f"{episodes:,} simulated searches", evaluate(rule).value
    else:
        values, chances = ends
        how, mean = "exact", float(values @ chances)
    values, place = np.unique(values, return_inverse=True)
    chances = np.bincount(place, weights=chances) / chances.sum()
    f = rule.forest
    worse = values > f.outside if f.minimize else values < f.outside
    return PayoffLaw(values, chances, mean, f.outside, worse, float(chances[worse].sum()), how)


def _ends(policy: Policy) -> tuple[FloatArray, FloatArray] | None:
    """All ends of a search with their probabilities; None if there are too many.

    Each way is told to a search from the start, so that it alone decides what is opened.
    """
    f, tells = policy.forest, 0
    waiting: list[tuple[list[tuple[Box, int]], float]] = [([], 1.0)]
    values: list[float] = []
    chances: list[float] = []
    while waiting:
        way, chance = waiting.pop()
        tells += len(way) + 1
        if tells > _TELLS:
            return None
        search = Search(policy)
        for told, state in way:
            search.tell(told, state_called(f, told.number, state))
        box = search.ask()
        if box is None:
            values.append(search.payoff)
            chances.append(chance)
            continue
        law = f.laws[int(f.law[box.number])][_state_above(f, box, way)]
        for state in np.flatnonzero(law).tolist():
            waiting.append(([*way, (box, state)], chance * float(law[state])))
    return np.array(values), np.array(chances)


def _state_above(forest: Forest, box: Box, way: list[tuple[Box, int]]) -> int:
    up = int(forest.parent[box.number])
    copy = box.copy[:-1] if forest.count[box.number] > 1 else box.copy
    return next((s for b, s in way if (b.number, b.copy) == (up, copy)), 0)


def state_called(forest: Forest, box: int, state: int) -> str | int:
    """A state as a search takes it: by name, where there are names."""
    names = forest.state_names[int(forest.reward[box])]
    return state if names is None else names[state]
