"""What a search earns in the end, as a law: written out where it is small, else simulated.

Rewards and accumulated costs depend on each other, so unlike expectations their joint law can have
exponentially many values; see the errata of the paper. Often it has few. Discounting and several
prizes depend on the order of openings: then every search is followed to its end.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cache, reduce
from typing import NamedTuple

import numpy as np

from .._common.arrays import FloatArray, IntArray
from ..engine.indices import Policy
from ..engine.small import rank
from ..engine.solution import Solution, as_policy
from ..engine.solver import solve
from ..engine.weights import mean_cost, takes_several
from ..errors import InvalidArgument, TooLarge
from ..forest.builder import side_by_side
from ..forest.model import Forest
from .walk import Walk


def equivalent_box(policy: Solution | Policy, *, held: float | None = None) -> Forest:
    """A search contracted into one box with a random cost: the paper's *equivalent single box*.

    Opening this box means to carry out the search. Its reward is the best reward of the boxes that
    were opened (infinitely bad where there was none), its cost the sum of their costs. The joint
    law of both depends on the amount in hand. The free box of :meth:`CappedLaw.box
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
            f"the joint law of reward and cost is too large: {ANSWERS:,} answers were not enough "
            f"to write it out. Use solution.capped_law().box(), which is small, or payoff_law, "
            f"which simulates.",
            ANSWERS,
        )
    pairs, place = np.unique(np.column_stack([ends.reward, ends.cost]), axis=0, return_inverse=True)
    return Forest.from_arrays(
        parent=[-1], cost=[pairs[:, 1]], rewards=[pairs[:, 0]],
        law=[np.bincount(place.reshape(-1), weights=ends.chance)], outside=f.outside,
        minimize=f.minimize, risk_tolerance=f.risk_tolerance, stated_error=f.stated_error,
    )  # fmt: skip


def printed_phi(forest: Forest) -> float:
    """The paper's equation for the root of a tree, as printed; too low where the decision counts.

    Of three ways the best is taken before anything is seen: to keep the outside option, to open the
    root alone, or the root and then the rest, contracted into one box. ``Solution.phi`` is right.

    Parameters
    ----------
    forest : Forest
        One tree without endless lines.

    Examples
    --------
    >>> import weitzman
    >>> tree = weitzman.Forest.from_arrays(
    ...     parent=[-1, 0, 0], cost=[1, 3, 3], rewards=[0, 10],
    ...     law=[[0.5, 0.5], [[0.5, 0.5]] * 2, [[0.5, 0.5]] * 2])
    >>> printed_phi(tree), weitzman.solve(tree).value
    (4.0, 5.5)
    """
    f = forest
    f.must_be_plain("the printed equation")
    f.must_end("the printed equation")
    if len(f.roots) != 1 or f.count[f.roots[0]] > 1:
        raise InvalidArgument(
            "the printed equation is for one tree, without copies of it. Use forest.subtree."
        )
    root, x = int(f.roots[0]), f.sign * f.outside
    own, kids = f.sign * f.rewards[int(f.reward[root])][0], f.children(root).tolist()
    alone, both = -mean_cost(f, root)[0], -mean_cost(f, root)[0]
    for y, p in enumerate(f.laws[int(f.law[root])][0].tolist()):
        if p == 0:
            continue
        held = max(x, own[y])
        alone += p * held
        if kids:
            trees = [f.subtree(kid, y) for kid in kids]
            rest = side_by_side(trees, counts=f.count[kids].tolist(), outside=f.outside)
            box = equivalent_box(solve(rest))
            later = np.maximum(held, f.sign * box.rewards[0][0]) - box.costs[0][0]
            both += p * float(box.laws[0][0] @ later)
    return float(f.sign * max(x, alone, both if kids else alone))


def state_called(forest: Forest, box: int, state: int) -> str | int:
    """A state as a search takes it: by name, where there are names."""
    names = forest.state_names[int(forest.reward[box])]
    return state if names is None else names[state]


Situation = tuple[int, int]  # a box, and what its parent showed
PointLaw = tuple[FloatArray, FloatArray]
"""Rising values and their chances, which may sum to less than 1."""

_PRODUCTS = 3_000_000  # of values in all convolutions: some tenths of a second
_CALL = 60  # what a sum takes beside its values, in values
_PIECES = 30_000  # laws of boxes
_COPIES = 64  # of one box
_SAME = 1e-12  # of the largest amount: sums in another order are one value
ANSWERS = 20_000  # supposed in following every search, at most: about a second
_LONGEST = 300  # boxes that one search opens, at most


class _TooMany(Exception):
    """The law is too large to be written out."""


def exact_payoffs(policy: Policy) -> PointLaw | None:
    """All payoffs of a search and their chances, in the user's sign; None if there are too many."""
    f = policy.forest
    if f.factors is None and not takes_several(f) and not f.endless.any():
        with suppress(_TooMany, RecursionError):
            values, chances = _Payoffs(policy).law()
            values = f.sign * values + 0.0
            return (values[::-1], chances[::-1]) if f.minimize else (values, chances)
    ends = all_ends(policy)
    return None if ends is None else _merged(ends.payoff, ends.chance, _scale(policy))


def _scale(policy: Policy) -> float:
    """The size below which two payoffs count as one."""
    f = policy.forest
    rewards = np.abs(f.rewards.data[np.isfinite(f.rewards.data)])
    outside = abs(f.outside) if np.isfinite(f.outside) else 0.0
    return _SAME * max(float(rewards.max(initial=0.0)), float(f.costs.data.max()), outside, 1e-300)


def _merged(values: FloatArray, chances: FloatArray, same: float) -> PointLaw:
    """A law with each value once."""
    by = np.argsort(values, kind="stable")
    values, chances = values[by], chances[by]
    with np.errstate(invalid="ignore"):
        new = np.flatnonzero(np.diff(values, prepend=-np.inf) > same)
    new = new if len(new) and new[0] == 0 else np.append(0, new)  # minus infinity may come first
    return values[new], np.add.reduceat(chances, new)


class _Payoffs:
    """Laws of the boxes of a policy, where payoffs are plain sums; higher is better.

    A search that ends at rank z (the largest capped value of all) has opened every box whose index
    lies above z and nothing else. So given z, the costs of all trees but the winning one are
    independent:

    * ``lost(v, s, at)``: what it costs to find out that box v after state s, and all below, stay
      at most at z. This changes only at the ranks of these boxes, of which ``at`` are up to z;
    * ``won(v, s)[z]``: the payoff where the capped value is z.

    Equal sums are one value, so costs that are multiples of each other keep the laws small.
    """

    def __init__(self, policy: Policy) -> None:
        f = self.forest = policy.forest
        if f.count.max() > _COPIES or len(f) > _PIECES:
            raise _TooMany
        c = self.columns = rank(policy)
        self.policy, self.same = policy, _scale(policy)
        self.products, self.pieces = 0, 0
        self.children: list[list[int]] = [[] for _ in range(len(f))]
        for v in np.flatnonzero(f.parent >= 0).tolist():
            self.children[f.parent[v]].append(v)
        self.ranks: dict[int, FloatArray] = {}  # of each box and all below it
        order = np.flatnonzero(f.parent < 0).tolist()
        for v in order:
            order += self.children[v]
        for v in reversed(order):
            own = [c.sigma[c.opened_at[v] : c.opened_at[v + 1]]]
            own.append(c.reward[c.chosen_at[v] : c.chosen_at[v + 1]])
            self.ranks[v] = np.sort(
                np.concatenate([*own, *(self.ranks[u] for u in self.children[v])])
            )
        self.lost, self.won = cache(self._lost), cache(self._won)
        self.ranked: dict[tuple[Situation, Situation], IntArray] = {}  # of neighbors together
        self.joined: dict[tuple[Situation, Situation, int], PointLaw] = {}

    def law(self) -> PointLaw:
        """Of the payoff."""
        roots = np.flatnonzero(self.forest.parent < 0).tolist()
        outside = self.columns.outside
        parts = [law for _, law in self._largest([(v, 0) for v in roots], outside)]
        nothing = [self._none(v, 0, outside) for v in roots]
        parts.append(self._join(nothing, shift=self.policy.outside))
        values, chances = (np.concatenate(x) for x in zip(*parts, strict=True))
        some = chances > 0
        values, chances = _merged(values[some], chances[some], self.same)
        return values, chances / chances.sum()

    def _at(self, v: int, z: int) -> int:
        """How many ranks of a box and all below it do not lie above z."""
        return int(np.searchsorted(self.ranks[v], z, side="right"))

    def _none(self, v: int, s: int, z: int) -> PointLaw:
        """All copies of a box stay at most at z."""
        one = self.lost(v, s, self._at(v, z))
        return self._join([one] * int(self.forest.count[v]))

    def _lost(self, v: int, s: int, at: int) -> PointLaw:
        """Minus what is paid while one copy stays at most at the rank before ``at`` of its own."""
        self._spend(0, pieces=1)
        z = int(self.ranks[v][at - 1]) if at else -1
        c, parts = self.columns, []
        if c.sigma[c.opened_at[v] + s] <= z:
            return np.zeros(1), np.ones(1)
        for y, chance, cost, reward in self._states(v, s):
            if reward <= z:
                below = [self._none(u, y, z) for u in self.children[v]]
                values, chances = self._join(below, shift=-cost)
                parts.append((values, chance * chances))
        return self._mixed(parts)

    def _won(self, v: int, s: int) -> dict[int, PointLaw]:
        """The payoff of one copy by the rank of its capped value, if that is above outside."""
        self._spend(0, pieces=1)
        c, found = self.columns, dict[int, list[PointLaw]]()
        sigma = int(c.sigma[c.opened_at[v] + s])
        if sigma <= c.outside:
            return {}
        f = self.forest
        for y, chance, cost, reward in self._states(v, s):
            kids = [(u, y) for u in self.children[v]]
            if reward > c.outside:
                gain = float(self.policy.rewards[f.rewards.start[f.reward[v]] + y]) - cost
                law = self._join([self._none(u, y, reward) for u, _ in kids], shift=gain)
                found.setdefault(min(reward, sigma), []).append((law[0], chance * law[1]))
            for z, (values, chances) in self._largest(kids, max(reward, c.outside)):
                found.setdefault(min(z, sigma), []).append((values - cost, chance * chances))
        return {z: self._mixed(parts) for z, parts in found.items()}

    def _states(self, v: int, s: int) -> list[tuple[int, float, float, int]]:
        """States that can follow: number, chance, cost, rank of the reward."""
        f, c = self.forest, self.columns
        law, cost = f.laws[int(f.law[v])][s], f.costs[int(f.cost[v])]
        cost = np.broadcast_to(cost[s if len(cost) > 1 else 0], law.shape)
        return [
            (y, float(law[y]), float(cost[y]), int(c.reward[c.chosen_at[v] + y]))
            for y in np.flatnonzero(law).tolist()
        ]

    def _largest(self, boxes: list[Situation], above: int) -> list[tuple[int, PointLaw]]:
        """Payoffs where one of some alternatives has the largest capped value, by its rank."""
        won = [
            (z, i, law)
            for i, box in enumerate(boxes)
            for z, law in self.won(*box).items()
            if z > above
        ]
        out = []
        for z, i, law in sorted(won, key=lambda entry: entry[0]):
            (u, s), m = boxes[i], int(self.forest.count[boxes[i][0]])
            before, after = self.lost(u, s, self._at(u, z - 1)), self.lost(u, s, self._at(u, z))
            own = [self._join([before] * j + [law] + [after] * (m - 1 - j)) for j in range(m)]
            found, lo, hi = self._mixed(own), 0, len(boxes)
            while hi - lo > 1:  # and what the others cost, by halves
                half = (lo + hi) // 2
                other = (half, hi) if i < half else (lo, half)
                found = self.add(found, self._all(boxes, *other, z))
                lo, hi = (lo, half) if i < half else (half, hi)
            out.append((z, found))
        return out

    def _all(self, boxes: list[Situation], lo: int, hi: int, z: int) -> PointLaw:
        """Some alternatives stay at most at z: of these laws one changes at a time."""
        if hi - lo == 1:
            return self._none(*boxes[lo], z)
        ends = boxes[lo], boxes[hi - 1]
        if ends not in self.ranked:
            self.ranked[ends] = np.sort(np.concatenate([self.ranks[v] for v, _ in boxes[lo:hi]]))
        key = *ends, int(np.searchsorted(self.ranked[ends], z, side="right"))
        if key not in self.joined:
            half = (lo + hi) // 2
            halves = self._all(boxes, lo, half, z), self._all(boxes, half, hi, z)
            self.joined[key] = self.add(*halves)
        return self.joined[key]

    def _spend(self, values: int, pieces: int = 0) -> None:
        """Count the work, before it is done and takes memory."""
        self.products += values + _CALL
        self.pieces += pieces
        if self.products > _PRODUCTS or self.pieces > _PIECES:
            raise _TooMany

    def _join(self, laws: list[PointLaw], shift: float = 0.0) -> PointLaw:
        """The law of a sum of independent numbers."""
        values, chances = reduce(self.add, laws, (np.zeros(1), np.ones(1)))
        return values + shift, chances

    def add(self, a: PointLaw, b: PointLaw) -> PointLaw:
        """The law of the sum of two independent numbers."""
        if len(a[0]) > len(b[0]):
            a, b = b, a
        self._spend(len(a[0]) * len(b[0]))
        if len(a[0]) == 1:
            return b[0] + a[0], b[1] * a[1]
        sums, chances = np.add.outer(a[0], b[0]).ravel(), np.multiply.outer(a[1], b[1]).ravel()
        return _merged(sums, chances, self.same)

    def _mixed(self, parts: list[PointLaw]) -> PointLaw:
        """One of several laws."""
        self._spend(sum(len(part[0]) for part in parts))
        if len(parts) == 1:
            return parts[0]
        values = np.concatenate([np.empty(0), *(part[0] for part in parts)])
        chances = np.concatenate([np.empty(0), *(part[1] for part in parts)])
        return _merged(values, chances, self.same) if len(values) else (np.zeros(1), np.zeros(1))


class Ends(NamedTuple):
    """All ends of a search."""

    reward: FloatArray  # the best of the boxes opened, in the user's sign
    cost: FloatArray  # discounted, where there is discounting
    chance: FloatArray
    payoff: FloatArray


def all_ends(policy: Policy) -> Ends | None:
    """All ends of a search, followed one by one; None if there are too many."""
    walk, found, answers = Walk(policy), list[tuple[float, float, float, float]](), 0
    f = walk.forest

    def follow(chance: float) -> bool:
        """Continue from where the walk stands, in all ways; False: there are too many."""
        nonlocal answers
        answers += 1
        if answers > ANSWERS or len(walk.answers) > _LONGEST:
            return False
        top, prize = walk.next(), walk.next_prize()
        if top is None and prize is not None:
            with walk.supposing_taken(prize):
                return follow(chance)
        if top is None:
            rewards = (f.sign * o.reward for o in walk.answers.values() if o.reward is not None)
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

    return Ends(*np.array(found).T) if follow(1.0) else None
