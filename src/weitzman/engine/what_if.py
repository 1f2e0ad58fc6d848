"""What if costs were different: derivatives from one evaluation, break-even costs by re-solving."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._common.arrays import FloatArray
from .._common.text import ResultTable, as_html
from ..errors import InvalidArgument
from ..forest.model import Forest
from .evaluation import Evaluation, evaluate, follow
from .evaluation_result import PerBox
from .indices import Policy
from .solution import Solution, hint, mean_cost
from .solver import solve
from .weights import Weights, barred

_TILTED = 2000  # derivatives in costs that are computed one by one, at most


@dataclass(frozen=True, slots=True, eq=False)
class Sensitivity(ResultTable):
    """How the optimal value moves with the numbers of the problem.

    Attributes
    ----------
    evaluation : Evaluation
    cost : PerBox
        ``cost[box][state]``: derivative of the value in the cost of a box after its parent showed
        that state: minus the expected number of openings (plus, when minimizing).
    reward : PerBox
        ``reward[box][state]``: derivative in the reward of a state: the probability that it is the
        one taken.
    outside : float
        Derivative in the outside option.
    """

    evaluation: Evaluation
    cost: PerBox
    reward: PerBox
    outside: float

    @property
    def cost_totals(self) -> FloatArray:
        """(n,) derivative in the cost of each box, whatever its parent showed."""
        return self.cost.totals()

    def columns(self) -> dict[str, list[Any]]:
        """One entry per box: name, derivative in its cost, in all its rewards at once."""
        f = self.evaluation.forest
        return {
            "box": [f.name(v) for v in range(len(f))],
            "per_unit_of_cost": self.cost_totals.tolist(),
            "per_unit_of_reward": self.reward.totals().tolist(),
        }

    def __repr__(self) -> str:
        return f"Sensitivity({len(self.evaluation.forest)} boxes, outside={self.outside:.6g})"


def sensitivity(solution: Solution) -> Sensitivity:
    """Derivatives of the optimal value in all costs, all rewards and the outside option.

    By the envelope theorem they are probabilities of the optimal policy, which
    :func:`~weitzman.evaluate` gives. Where the value has a kink (ties), they are one-sided. With
    discounting each event counts with its discount factor.

    With a risk tolerance, bad ends count more: derivatives are probabilities *tilted* by the
    utility of each end (section 13 of the theory page). Those in costs take one evaluation for each
    box and state of its parent.

    Returns
    -------
    Sensitivity
        Derivatives for each cost, each reward and the outside option.

    See Also
    --------
    weitzman.break_even : Where decisions change.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> float(weitzman.sensitivity(weitzman.solve(chest)).cost[0][0])
    -1.0
    """
    as_solution(solution, "sensitivity")
    e = evaluate(solution)
    if solution.forest.risk_tolerance is not None:
        return _tilted(solution.policy(), e)
    sign = 1.0 if solution.forest.minimize else -1.0
    o = e.worth.opened_after
    costs = PerBox(o.forest, sign * o.data, o.start)
    return Sensitivity(e, costs, e.worth.chosen, e.worth.outside)


def as_solution(solution: object, what: str) -> Solution:
    """The solution itself; an error for anything else."""
    if not isinstance(solution, Solution):
        raise InvalidArgument(
            f"{what} needs a solution, but got a {type(solution).__name__}. "
            f"{hint(solution, 'Call solve(forest) first.')}"
        )
    return solution


def _tilted(policy: Policy, e: Evaluation) -> Sensitivity:
    """Derivatives of a certainty equivalent: shares of the expected utility."""
    f, weights = e.forest, Weights.of(e.forest)
    if f.count.max() > 1:
        raise InvalidArgument(
            "derivatives of a certainty equivalent need a forest without copies. Write them out "
            "with weitzman.forest.expand."
        )
    if len(e.opened_after.data) > _TILTED:
        raise InvalidArgument(
            f"derivatives of a certainty equivalent take an evaluation for each box and state of "
            f"its parent, for at most {_TILTED} of them, but there are {len(e.opened_after.data)}. "
            f"Solve again with other numbers, or leave `risk_tolerance` out."
        )
    seen = follow(policy, weights)
    place = np.repeat(f.rewards.start[f.reward] - seen.chosen_at[:-1], np.diff(seen.chosen_at))
    utility = weights.rewards[place + np.arange(seen.chosen_at[-1])]
    taken = np.where(seen.chosen > 0, seen.chosen * np.where(seen.chosen > 0, utility, 0.0), 0.0)
    outside = seen.none * weights.outside if seen.none > 0 else 0.0
    whole = float(taken.sum()) + outside
    at = e.opened_after.start
    costs = [_share(policy, e, v, s) for v in range(len(f)) for s in range(int(at[v + 1] - at[v]))]
    return Sensitivity(
        e,
        PerBox(f, -f.sign * np.array(costs), at),
        PerBox(f, taken / whole, seen.chosen_at),
        outside / whole,
    )


def _share(policy: Policy, e: Evaluation, box: int, state: int) -> float:
    """The share of the expected utility at ends for which a box was opened after a state.

    The expected utility is linear in the factor of that opening, so doubling the factor adds it.
    """
    f, tau = policy.forest, policy.forest.risk_tolerance
    assert tau is not None, "a forest with a risk tolerance"
    if e.opened_after[box][state] <= 0:
        return 0.0
    cost = np.broadcast_to(f.costs[int(f.cost[box])], f.laws[int(f.law[box])].shape).copy()
    cost[state] += tau * np.log(2.0)
    costlier = replace(policy, forest=f.changed(cost={box: cost}))
    value = evaluate(costlier).value
    return float(np.expm1(f.sign * (e.value - value) / tau))


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Costs at which the decision about one box turns.

    Attributes
    ----------
    cost : float
        What opening the box costs now (its mean, after the state asked about).
    opened_below : float
        At this cost and above, the box is never worth opening: its index falls to what is in hand
        anyway, the outside option or the reward that its parent showed.
    first_below : float or None
        The cost at which the first decision changes, taken to be the same after every state of the
        parent: below it, begin with the tree of this box. None: not even if the box were free;
        infinity: at any cost.
    """

    cost: float
    opened_below: float
    first_below: float | None

    _repr_html_ = as_html


def break_even(
    solution: Solution, box: str | int, state: str | int | float | None = None
) -> BreakEven:
    """The costs of a box at which decisions change: how much could the box cost?

    Parameters
    ----------
    solution : Solution
    box : str or int
    state : str or int, optional
        What its parent showed; left out for a root.

    Returns
    -------
    BreakEven
        The cost now, and the costs below which the box is opened at all and opened first.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> weitzman.break_even(weitzman.solve(chest), 0).opened_below
    5.0
    """
    f = as_solution(solution, "break_even").forest
    v = f.box(box)
    solution.index(v, state)  # the same rules, and messages, for box and state
    up = int(f.parent[v])
    s = 0 if up < 0 else f.state(up, state)  # type: ignore[arg-type]
    in_hand = f.outside
    if up >= 0:
        shown = float(f.rewards[int(f.reward[up])][0, s])
        in_hand = min(in_hand, shown) if f.minimize else max(in_hand, shown)
    if barred(f)[v]:  # its group has no place: it is opened at no cost
        return BreakEven(float(mean_cost(f, v)[s]), 0.0, None)
    return BreakEven(
        cost=float(mean_cost(f, v)[s]),
        opened_below=_gain(f.subtree(v, state), in_hand),
        first_below=_first_turns(solution, v),
    )


def _gain(tree: Forest, x: float) -> float:
    """E[(W - x)^+] of the root of a tree: its cost at which its index would be x."""
    if not np.isfinite(x):
        return np.inf
    free = solve(tree.changed(cost={0: 0.0}, outside=x))
    return max(0.0, x - free.value if tree.minimize else free.value - x)


def _first_turns(solution: Solution, box: int) -> float | None:
    """The cost of a box at which the search no longer begins with its tree."""
    f = solution.forest
    sign = f.sign
    root = box
    while f.parent[root] >= 0:
        root = int(f.parent[root])
    at, index = solution.index_columns()
    others = sign * index[at[f.roots[(f.roots != root) & ~barred(f)[f.roots]]]]
    rival = max([sign * f.outside, *others.tolist()])
    tree = f.subtree(root)
    if box == root:
        return _gain(tree, sign * rival) or None

    place = int(np.flatnonzero(f.within(root) == box)[0])

    def lead(cost: float) -> float:
        return float(sign * solve(tree.changed(cost={place: cost})).index(0) - rival)

    high = _highest(tree, rival)
    if not lead(0.0) > 0:
        return None
    return np.inf if lead(high) > 0 else crossing(lead, 0.0, high)


def crossing(lead: Callable[[float], float], low: float, high: float) -> float:
    """Where a monotone function turns from positive to not positive, or back, on an interval.

    The ITP method: interpolation that takes at most one step more than halving does. The result
    lies on the side of ``high``.
    """
    at_low, at_high = lead(low), lead(high)
    width, close = high - low, 4e-16 * max(abs(low), abs(high))
    room = close * math.ldexp(1.0, 1 + math.ceil(math.log2(max((high - low) / close, 2.0))))
    while high - low > 2 * close:
        half, x = (high - low) / 2, (low + high) / 2
        if math.isfinite(at_low - at_high) and at_low != at_high:
            guess = (at_high * low - at_low * high) / (at_high - at_low)
            toward = math.copysign(1.0, x - guess)
            step = 0.2 * (high - low) ** 2 / width
            guess = guess + toward * step if step <= abs(x - guess) else x
            most = max(room - half, 0.0)  # how far from the middle halving has left to spare
            x = guess if abs(guess - x) <= most else x - toward * most
        room /= 2
        if not low < x < high:
            x = low + half
            if not low < x < high:
                break
        y = lead(x)
        if (y > 0) == (at_high > 0):
            high, at_high = x, y
        else:
            low, at_low = x, y
    return high


def _highest(tree: Forest, rival: float) -> float:
    """A cost at which no box of the tree is worth opening with the rival (signed) in hand.

    With discounting, waiting is worth at most as much as the loss in hand.
    """
    signed = tree.sign * tree.rewards.data
    low, high = (x(signed[np.isfinite(signed)], initial=0.0) for x in (np.min, np.max))
    rest = min(low, tree.sign * tree.outside) if np.isfinite(tree.outside) else low
    return float(high - (rival if np.isfinite(rival) else rest)) or 1.0
