"""What a search earns in the end, as a law: written out where it is small, else simulated.

Rewards and accumulated costs depend on each other, so unlike expectations their joint law can have
exponentially many values; see the errata of the paper. Often it has few.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._common.arrays import FloatArray
from ..engine.indices import Policy
from ..engine.solution import Solution, as_policy
from ..engine.weights import takes_several
from ..errors import TooLarge
from ..forest.model import Forest
from .frontier import Id
from .walk import Walk


def equivalent_box(policy: Solution | Policy, *, held: float | None = None) -> Forest:
    """A search contracted into one box with a random cost: the paper's *equivalent single box*.

    Opening this box means to carry out the search. Its reward is the best reward that was found, or
    the amount in hand if that is better; its cost the sum of the costs of all boxes opened. The
    joint law of both depends on the amount in hand. The free box of :meth:`CappedLaw.box
    <weitzman.engine.CappedLaw.box>` is always small, and correct for every amount in hand.

    Parameters
    ----------
    policy : Solution or Policy
    held : float, optional
        The amount in hand; by default the outside option.

    Returns
    -------
    Forest
        The box alone, with one state for each pair of reward and cost, and the amount in hand as
        the outside option.

    Raises
    ------
    TooLarge
        If there are too many ends to write out. The number of pairs can be exponential.

    Examples
    --------
    The index of the box is not the highest index of the boxes inside, which is 8.

    >>> import weitzman
    >>> two = weitzman.Builder().add("A", cost=1, outcomes={0: 0.5, 10: 0.5})
    >>> two = weitzman.solve(two.add("B", cost=1, outcomes={0: 0.5, 4: 0.5}).build())
    >>> box = equivalent_box(two)
    >>> [pool[0].tolist() for pool in (box.rewards, box.costs, box.laws)]
    [[[0.0, 4.0, 10.0]], [[2.0, 2.0, 1.0]], [[0.25, 0.25, 0.5]]]
    >>> two.index("A"), weitzman.solve(box).index(0)
    (8.0, 7.0)
    """
    rule = as_policy(policy, "equivalent_box")
    f = rule.forest
    if f.factors is not None or takes_several(f):
        f.must_be_plain("the equivalent box")
    if held is not None:
        f = f.changed(outside=held)
        rule = replace(rule, forest=f, outside=f.sign * f.outside)
    ends = all_ends(rule)
    if ends is None:
        raise TooLarge(
            f"the joint law of reward and cost is too large: {SITUATIONS:,} situations were not "
            f"enough to write it out. Use solution.capped_law().box(), which is small, or "
            f"payoff_law, which simulates.",
            SITUATIONS,
        )
    pairs, place = np.unique(np.column_stack([ends.reward, ends.cost]), axis=0, return_inverse=True)
    return Forest.from_arrays(
        parent=[-1], cost=[pairs[:, 1]], rewards=[pairs[:, 0]],
        law=[np.bincount(place.reshape(-1), weights=ends.chance)], outside=f.outside,
        minimize=f.minimize, risk_tolerance=f.risk_tolerance, stated_error=f.stated_error,
    )  # fmt: skip


PointLaw = tuple[FloatArray, FloatArray]
"""Rising values and their chances."""

_SAME = 1e-12  # of the largest amount: sums in another order are one value
_PAIRS = 3_000_000  # of reward and cost, in all situations: about a second
_LONGEST = 300  # boxes that one search opens, at most
SITUATIONS = 20_000  # looked at, at most: about a second


def exact_payoffs(policy: Policy) -> PointLaw | None:
    """All payoffs of a search and their chances, in the user's sign; None if there are too many."""
    found = all_ends(policy)
    if found is None:
        return None
    payoff = found.reward - policy.forest.sign * found.cost
    by = np.argsort(payoff, kind="stable")
    payoff, chance = payoff[by], found.chance[by]
    with np.errstate(invalid="ignore"):  # minus infinity may come first
        new = np.append(0, np.flatnonzero(np.diff(payoff) > _scale(policy)) + 1)
    return payoff[new], np.add.reduceat(chance, new)


def _scale(policy: Policy) -> float:
    """The size below which two amounts count as one."""
    f = policy.forest
    rewards = np.abs(f.rewards.data[np.isfinite(f.rewards.data)])
    outside = abs(f.outside) if np.isfinite(f.outside) else 0.0
    return _SAME * max(float(rewards.max(initial=0.0)), float(f.costs.data.max()), outside, 1e-300)


class Ends(NamedTuple):
    """How a search may end: one entry for each pair of reward and cost."""

    reward: FloatArray  # what is taken in the end, in the user's sign
    cost: FloatArray  # all that was paid; both discounted, where there is discounting
    chance: FloatArray


class _TooMany(Exception):
    """The ends are too many to be written out."""


def all_ends(policy: Policy) -> Ends | None:
    """All ends of a search; None if there are too many.

    What can still happen depends on the boxes that can be opened, on what is in hand, and on
    nothing else. So situations that differ only in what was paid are followed once.
    """
    try:
        (reward, cost), chance = _Course(policy).follow()
    except _TooMany:
        return None
    return Ends(reward, cost, chance)


class _Course:
    """Follows a search through all situations."""

    def __init__(self, policy: Policy) -> None:
        self.walk, self.same = Walk(policy), _scale(policy)
        # what comes from a situation on: rewards and costs, and their chances
        self.known: dict[Hashable, tuple[FloatArray, FloatArray]] = {}
        self.pairs = 0

    def situation(self) -> Hashable:
        """All that the rest of the search depends on."""
        walk, hands = self.walk, self.walk.hands
        roots, offers = walk.frontier.offered()
        if hands is None:  # of copies only the number counts
            tops = [(v, s, last and last - x[-1]) for (v, s, x, last), i in offers if i > walk.bar]
            return roots, walk.bar, tuple(sorted(tops))
        outside = walk.sign * walk.forest.outside
        held, taken = hands.mark()
        groups = frozenset(group for group, index in offers if index > outside)
        return roots, groups, frozenset(held.items()), frozenset(taken.items())

    def follow(self) -> tuple[FloatArray, FloatArray]:
        """What comes from here on, in all ways."""
        walk, key = self.walk, self.situation()
        if key in self.known:
            return self.known[key]
        if len(self.known) > SITUATIONS or len(walk.answers) > _LONGEST:
            raise _TooMany
        top, prize = walk.next(), walk.next_prize()
        if top is None and prize is not None:
            with walk.supposing_taken(prize):
                found = self.follow()
        elif top is None:
            found = np.array([[walk.totals()[0]], [0.0]]), np.ones(1)
        else:
            found = self.opened(top[0])
        self.known[key] = found
        return found

    def opened(self, box: Id) -> tuple[FloatArray, FloatArray]:
        """What comes of opening a box."""
        walk, f, above = self.walk, self.walk.forest, self.walk.state_above(box)
        law, ends, chances = f.laws[int(f.law[box[0]])][above], [], []
        for state in np.flatnonzero(law).tolist():
            factor = 1.0 if f.factors is None else walk.passes(box, state)[0]
            with walk.supposing(box, state):
                end, chance = self.follow()
            ends.append(factor * end + [[0.0], [walk.cost(box[0], above, state)]])
            chances.append(law[state] * chance)
        end, chance = np.concatenate(ends, axis=1), np.concatenate(chances)
        self.pairs += len(chance)
        if self.pairs > _PAIRS:
            raise _TooMany
        rounded = np.round(end / self.same)  # in another order the same sum may differ by rounding
        _, at, which = np.unique(
            rounded[0] + 1j * rounded[1], return_index=True, return_inverse=True
        )
        return end[:, at], np.bincount(which, chance).astype(np.float64)


def state_called(forest: Forest, box: int, state: int) -> str | int:
    """A state as a search takes it: by name, where there are names."""
    names = forest.state_names[int(forest.reward[box])]
    return state if names is None else names[state]
