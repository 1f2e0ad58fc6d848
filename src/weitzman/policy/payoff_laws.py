"""What a search earns in the end, as a law: written out where it is small, else simulated.

Rewards and accumulated costs depend on each other, so unlike expectations their joint law can have
exponentially many values; see the errata of the paper.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .._common.arrays import FloatArray
from .._common.text import as_html
from .._kernels.structure import postorder
from ..engine.evaluation import evaluate
from ..engine.indices import Policy
from ..engine.solution import Solution, as_policy
from ..errors import TooLarge
from ..forest.model import Forest
from .simulation import simulate
from .walk import Walk

_ANSWERS = 20_000  # supposed in writing out a policy, at most: about a second
_LONGEST = 300  # boxes that one search opens, at most


@dataclass(frozen=True, slots=True, eq=False)
class PayoffLaw:
    """What a search earns in the end.

    Attributes
    ----------
    values : (m,) array, ascending
        Discounted, where there is discounting.
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

    def __repr__(self) -> str:
        return f"PayoffLaw({len(self.values)} values, mean={self.mean:.6g}, {self.how})"

    _repr_html_ = as_html


def payoff_law(
    policy: Solution | Policy, *, episodes: int = 100_000, rng: np.random.Generator | int = 0
) -> PayoffLaw:
    """The law of the payoff: written out where the policy has few ends, else simulated.

    The paper's *payoff distribution*, of any index policy on any forest. With discounting, payoffs
    are discounted to the start; with several prizes, a payoff is their sum less all costs.

    Parameters
    ----------
    policy : Solution or Policy
    episodes : int
        Number of searches to simulate, if the law is simulated; ``how`` of the result tells.
    rng : Generator or int
        For the simulation; seed 0 by default.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=2)
    >>> law = payoff_law(weitzman.solve(chest))
    >>> law.values.tolist(), law.chances.tolist(), law.how
    ([-2.0, 8.0, 9.0], [0.25, 0.25, 0.5], 'exact')
    """
    rule = as_policy(policy, "payoff_law")
    f = rule.forest
    ends = _ends(rule)
    if ends is None:
        played, exactly = simulate(rule, episodes, rng), evaluate(rule)
        values, chances = played.payoff.values, np.full(len(played.payoff.values), 1.0)
        how, mean = f"{episodes:,} simulated searches", exactly.reward - f.sign * exactly.spend
    else:
        values, chances = ends.payoff, ends.chance
        how, mean = "exact", float(values @ chances)
    values, place = np.unique(values, return_inverse=True)
    chances = np.bincount(place, weights=chances) / chances.sum()
    nothing = f.prizes * f.outside
    worse = values > nothing if f.minimize else values < nothing
    return PayoffLaw(values, chances, mean, nothing, worse, float(chances[worse].sum()), how)


@dataclass(frozen=True, slots=True, eq=False)
class EquivalentBox:
    """One box with a random cost that stands for a whole search.

    Opening this box means to carry out the search. Its reward is the best reward of the boxes that
    were opened, its cost the sum of their costs. Each entry is one pair of reward and cost.

    Attributes
    ----------
    reward : (m,) array
        Minus infinity (plus, when minimizing) where nothing with a reward was opened.
    cost : (m,) array
    chance : (m,) array
        Sum to 1.
    held : float
        The amount in hand with which the policy was followed.
    minimize : bool
    risk_tolerance : float, optional
    """

    reward: FloatArray
    cost: FloatArray
    chance: FloatArray
    held: float
    minimize: bool
    risk_tolerance: float | None = None

    def forest(self) -> Forest:
        """This box alone, with the held amount as the outside option."""
        return Forest.from_arrays(
            parent=[-1], cost=[self.cost], rewards=[self.reward], law=[self.chance],
            outside=self.held, minimize=self.minimize, risk_tolerance=self.risk_tolerance,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"EquivalentBox({len(self.chance)} pairs of reward and cost, held={self.held:.6g})"

    _repr_html_ = as_html


def equivalent_box(policy: Solution | Policy, *, held: float | None = None) -> EquivalentBox:
    """The search of a line, of lines or of any forest contracted into one box with a random cost.

    The paper's *equivalent single box*. The joint law of reward and cost depends on the amount in
    hand. With that amount the box earns what the policy earns; with another amount it may earn
    less than a search. The box can have exponentially many entries and is refused if there are too
    many: :func:`equivalent_box_size` bounds their number before any work. The free box of
    :meth:`CappedLaw.box <weitzman.engine.CappedLaw.box>` is always small, and correct for every
    amount in hand.

    Parameters
    ----------
    policy : Solution or Policy
    held : float, optional
        The amount in hand; by default the outside option.

    Raises
    ------
    TooLarge
        If there are too many ends to write out; ``situations`` of the error is the result of
        :func:`equivalent_box_size`.

    Examples
    --------
    The index of the box is not the highest index of the boxes inside, which is 8.

    >>> import weitzman
    >>> two = weitzman.Builder().add("A", cost=1, outcomes={0: 0.5, 10: 0.5})
    >>> two = weitzman.solve(two.add("B", cost=1, outcomes={0: 0.5, 4: 0.5}).build())
    >>> box = equivalent_box(two)
    >>> box.reward.tolist(), box.cost.tolist(), box.chance.tolist()
    ([0.0, 4.0, 10.0], [2.0, 2.0, 1.0], [0.25, 0.25, 0.5])
    >>> two.index("A"), weitzman.solve(box.forest()).index(0)
    (8.0, 7.0)
    """
    rule = _held(policy, held, "equivalent_box")
    f = rule.forest
    ends = _ends(rule)
    if ends is None:
        size = most_ends(rule)
        raise TooLarge(
            f"the joint law of reward and cost is too large: the search ends in up to {size:.2g} "
            f"ways, and {_ANSWERS:,} answers were not enough to write them out. Use "
            f"solution.capped_law().box(), which is small, or payoff_law, which simulates.",
            size,
        )
    pairs, place = np.unique(np.column_stack([ends.reward, ends.cost]), axis=0, return_inverse=True)
    chance = np.asarray(np.bincount(place.reshape(-1), weights=ends.chance), np.float64)
    return EquivalentBox(pairs[:, 0], pairs[:, 1], chance, f.outside, f.minimize, f.risk_tolerance)


def equivalent_box_size(policy: Solution | Policy, *, held: float | None = None) -> float:
    """A bound on the number of pairs of reward and cost in the equivalent box, before any work.

    The bound takes one pass over the boxes; where searches stop early there are far fewer pairs.

    Parameters
    ----------
    policy, held
        As for :func:`equivalent_box`.

    Examples
    --------
    >>> import weitzman
    >>> coins = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=2)
    >>> equivalent_box_size(weitzman.solve(coins)), len(equivalent_box(weitzman.solve(coins)).cost)
    (8.0, 3)
    """
    return most_ends(_held(policy, held, "equivalent_box_size"))


def _held(policy: Solution | Policy, held: float | None, name: str) -> Policy:
    """The policy with an amount in hand."""
    rule = as_policy(policy, name)
    f = rule.forest
    if f.factors is not None or f.prizes > 1:
        f.must_be_plain("the equivalent box")
    if held is None:
        return rule
    f = f.changed(outside=held)
    return replace(rule, forest=f, outside=f.sign * f.outside)


@dataclass(frozen=True, slots=True, eq=False)
class _Ends:
    reward: FloatArray  # the best of the boxes opened, in the user's sign
    cost: FloatArray  # discounted, where there is discounting
    chance: FloatArray
    payoff: FloatArray


def _ends(policy: Policy) -> _Ends | None:
    """All ends of a search with their probabilities; None if there are too many."""
    walk, found, answers = Walk(policy), list[tuple[float, float, float, float]](), 0
    f = walk.forest

    def follow(chance: float) -> bool:
        """Go on from where the walk stands, in all ways; False: there are too many."""
        nonlocal answers
        answers += 1
        if answers > _ANSWERS or len(walk.told) > _LONGEST:
            return False
        top, prize = walk.next(), walk.next_prize()
        if top is None and prize is not None:
            with walk.supposing_taken(prize):
                return follow(chance)
        if top is None:
            rewards = (f.sign * o.reward for o in walk.told.values() if o.reward is not None)
            best = f.sign * max(rewards, default=-np.inf)
            factor, spent = walk.discounted()[:2] if f.factors is not None else (1.0, walk.best[2])
            payoff = factor * walk.best[0] - f.sign * spent
            found.append((best, spent, chance, payoff))
            return True
        (v, copy), _ = top
        law = f.laws[int(f.law[v])][walk.state_above((v, copy))]
        for state in np.flatnonzero(law)[::-1].tolist():
            with walk.supposing((v, copy), state):
                if not follow(chance * float(law[state])):
                    return False
        return True

    return _Ends(*np.array(found).T) if follow(1.0) else None


def state_called(forest: Forest, box: int, state: int) -> str | int:
    """A state as a search takes it: by name, where there are names."""
    names = forest.state_names[int(forest.reward[box])]
    return state if names is None else names[state]


def most_ends(policy: Policy) -> float:
    """A bound on the number of ways in which a search can end; infinite for an endless line.

    A box that shows a state leads to as many ends as its children have together; a child whose
    index is not above what is in hand stays closed. Trees count as if none stopped another.
    """
    f = policy.forest
    if f.endless.any():
        return np.inf
    below: dict[int, FloatArray] = {}  # ends of all children so far, for each own state
    total, opened = 1.0, False
    with np.errstate(over="ignore"):
        for v in postorder(f.parent)[0].tolist():
            up, law = int(f.parent[v]), f.laws[int(f.law[v])]
            after = below.pop(v, np.ones(law.shape[1]))
            ends = 1.0 + np.where(law > 0, after, 0.0).sum(axis=1)
            start = int(policy.index_at[v])
            opens = policy.index[start : start + len(law)] > _in_hand(policy, up)
            ways = np.where(opens, ends, 1.0) ** float(f.count[v])
            if up >= 0:
                below[up] = below.get(up, np.ones(len(ways))) * ways
            elif ways[0] > 1:
                total, opened = total * float(ways[0]), True
    return max(total - opened, 1.0)  # the first box is opened for sure


def _in_hand(policy: Policy, above: int) -> FloatArray:
    """The least that is in hand when a box shows each of its states; higher is better."""
    f = policy.forest
    if above < 0:
        return np.array([policy.outside])
    rewards = f.sign * f.rewards[int(f.reward[above])][0]
    return np.asarray(np.maximum(rewards, policy.outside), np.float64)
