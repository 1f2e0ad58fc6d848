"""What is left of a search: the closed boxes as a forest of their own, its worth, the prizes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .._common.arrays import IntArray
from ..engine.indices import Policy
from ..engine.solver import solve
from ..errors import InvalidAnswer
from ..forest.model import Forest
from .frontier import Id

if TYPE_CHECKING:
    from .walk import Walk

Top = tuple[int, int, int]
"""A box that can be opened, the state of its parent (0 for a root), and how many copies."""


class Hands:
    """The best reward found in each tree that is not closed, and the rewards taken.

    ``taken`` is by tree, in the order of taking. Rewards are the true ones; comparisons use the
    sign of the walk.
    """

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self.places = int(walk.forest.prizes)
        self.taken: dict[Id, tuple[Id, float]] = {}
        self._best: dict[Id, tuple[Id, float]] = {}

    def tree(self, box: Id) -> Id:
        """The root above a box: its tree."""
        while (above := self._walk.above(box)) is not None:
            box = above
        return box

    def __contains__(self, box: object) -> bool:
        """Whether a box is out of reach: handed out, or its tree closed, or all places filled."""
        return self.full or box in self._walk.out or self.tree(box) in self.taken  # type: ignore[arg-type]

    @property
    def full(self) -> bool:
        """Whether all prizes were taken."""
        return len(self.taken) == self.places

    def found(self, box: Id, state: int, reward: float | None) -> None:
        """A box was opened and showed a state."""
        tree = self.tree(box)
        if reward is None or tree in self.taken:
            return
        before = self._best.get(tree)
        if before is None or self._order(box, reward, state) > self._order(*before):
            self._best[tree] = box, reward

    def _order(
        self, box: Id, reward: float, state: int | None = None
    ) -> tuple[float, int, int, tuple[int, ...]]:
        """Which of two rewards comes first: among equal ones by box, state and copy."""
        state = self._walk.told[box].state_number if state is None else state
        return self._walk.sign * reward, -box[0], -state, tuple(-i for i in box[1])

    @property
    def held(self) -> Mapping[Id, tuple[Id, float]]:
        """The best reward found in each tree that is not closed, and the box that has it."""
        return self._best

    def mark(self) -> tuple[dict[Id, tuple[Id, float]], dict[Id, tuple[Id, float]]]:
        """What is held and taken now, for :meth:`go_back`."""
        return self._best.copy(), self.taken.copy()

    def go_back(self, mark: tuple[dict[Id, tuple[Id, float]], dict[Id, tuple[Id, float]]]) -> None:
        """Return to what was held and taken at a mark."""
        self._best, self.taken = mark

    def take(self, box: Id, reward: float) -> None:
        """A reward was taken, and its tree closed."""
        self.taken[self.tree(box)] = box, reward
        self._best.pop(self.tree(box), None)

    def bar(self) -> float:
        """What an index must exceed, signed: the outside option and every reward in hand."""
        sign = self._walk.sign
        if self.full:
            return math.inf
        outside = sign * self._walk.forest.outside
        return max([outside, *(sign * r for _, r in self._best.values())])

    def worth_taking(self) -> tuple[Id, float] | None:
        """The reward to take now: the highest of all in hand and of all indices, if it pays."""
        walk, sign = self._walk, self._walk.sign
        if self.full or not self._best:
            return None
        box, reward = max(self._best.values(), key=lambda held: self._order(*held))
        top = walk.top()
        awaited = (walk.frontier.index(b[0], walk.state_above(b)) for b in walk.out)
        rivals = max([-math.inf if top is None else top[1], *awaited], default=-math.inf)
        pays = sign * reward > sign * walk.forest.outside
        return (box, reward) if pays and rivals <= sign * reward else None

    def total(self) -> float:
        """The sum of all prizes if one stopped now: taken, in hand, and empty places."""
        sign, outside = self._walk.sign, self._walk.forest.outside
        hand = sorted((sign * r for _, r in self._best.values()), reverse=True)
        left = self.places - len(self.taken)
        kept = [max(x, sign * outside) for x in hand[:left]]
        kept += [sign * outside] * (left - len(kept))
        return sum(r for _, r in self.taken.values()) + sign * sum(kept)

    def check(self, box: Id) -> bool:
        """Whether a reward can be taken; False if it was taken before, an error if it never can."""
        walk = self._walk
        here = walk.box(box)
        if box not in walk.told or walk.told[box].reward is None:
            why = "it has no reward" if box in walk.told else "it was not opened"
            raise InvalidAnswer(f"the reward of box {here!r} cannot be taken: {why}.")
        before = self.taken.get(self.tree(box))
        if before is not None and before[0] == box:
            return False
        if before is not None:
            raise InvalidAnswer(
                f"one prize comes from each tree, but {walk.box(before[0])!r} was taken from the "
                f"tree of {here!r} before."
            )
        if self.full:
            raise InvalidAnswer(f"there are {self.places} prizes, and all of them were taken.")
        return True


def rest(policy: Policy, tops: Sequence[Top], best: float) -> Forest:
    """The boxes that can be opened and all boxes below them, for one prize with ``best`` in hand.

    ``tops`` has the box, the state of its parent and the number of copies. These boxes become the
    first of the new forest, in order.
    """
    f, at = policy.forest, policy.child_at
    keep = [v for v, _, _ in tops]
    parent = [-1] * len(keep)
    at_end = 0
    while at_end < len(keep):  # breadth first: what is behind each box
        v = keep[at_end]
        below = policy.child[at[v] : at[v + 1]].tolist()
        if at_end >= len(tops):  # an endless box stands for all that follow it
            below = [u for u in below if u != v]
        keep += below
        parent += [at_end] * len(below)
        at_end += 1
    n, behind = len(tops), len(keep) - len(tops)
    return f.take(
        keep,
        parent=parent,
        after=[s for _, s, _ in tops] + [-1] * behind,
        count=np.concatenate([np.array([k for _, _, k in tops], np.int64), f.count[keep[n:]]]),
        endless=np.concatenate([np.zeros(n, bool), f.endless[keep[n:]]]),  # the next of a line
        outside=best,
        names=None,
        prizes=1,
    )


def prizes_worth(walk: Walk, hands: Hands) -> float:
    """What a walk for several prizes will earn in total if it goes on optimally.

    An open tree without a taken prize is a tree of its own: a free box that holds the best reward
    found, with the boxes that can be opened below it.
    """
    spent, sign, outside = walk.best[2], walk.sign, walk.forest.outside
    taken = sum(reward for _, reward in hands.taken.values())
    left = hands.places - len(hands.taken)
    fresh, trees = _closed(walk, hands)
    tops = [*fresh, *(top for tree in trees.values() for top in tree)]
    if left == 0 or not tops:
        return hands.total() - sign * spent
    owner = [-1] * len(fresh) + [i for i, tree in enumerate(trees.values()) for _ in tree]
    held = [hands.held[tree][1] if tree in hands.held else -sign * np.inf for tree in trees]
    forest = _under(rest(walk.policy, tops, outside), np.array(owner), held)
    places = min(left, int(forest.count[forest.roots].sum()))
    value = solve(replace(forest, prizes=places)).value
    return taken + value + (left - places) * outside - sign * spent


def _closed(walk: Walk, hands: Hands) -> tuple[list[Top], dict[Id, list[Top]]]:
    """What can be opened in trees without an open box, and in each tree with one."""
    f, policy, at = walk.forest, walk.policy, walk.policy.child_at
    fresh = Counter({(v, 0): int(f.count[v]) for v in f.roots.tolist()})
    trees: dict[Id, Counter[tuple[int, int]]] = {}
    for (v, copy), seen in walk.told.items():
        tree, above = hands.tree((v, copy)), walk.above((v, copy))
        closed = trees.setdefault(tree, Counter())
        (fresh if above is None else closed)[v, walk.state_above((v, copy))] -= 1
        for u in policy.child[at[v] : at[v + 1]].tolist():
            closed[u, seen.state_number] += int(f.count[u])

    def worth_it(closed: Counter[tuple[int, int]]) -> list[Top]:
        index, bar = walk.frontier.index, walk.sign * f.outside
        return [(v, s, n) for (v, s), n in closed.items() if n > 0 and index(v, s) > bar]

    return worth_it(fresh), {
        tree: worth_it(closed) for tree, closed in trees.items() if tree not in hands.taken
    }


def _under(forest: Forest, owner: IntArray, held: Sequence[float]) -> Forest:
    """The forest with the roots of each open tree below a free box that holds its best reward."""
    n, trees = len(forest), len(held)
    if trees == 0:
        return forest
    parent = forest.parent.copy()
    parent[: len(owner)] = np.where(owner >= 0, n + owner, -1)
    more = np.zeros(trees, np.int64)
    return replace(
        forest,
        parent=np.append(parent, more - 1),
        law=np.append(forest.law, more + len(forest.laws)),
        laws=forest.laws.with_more([np.ones((1, 1))]),
        reward=np.append(forest.reward, len(forest.rewards) + np.arange(trees)),
        rewards=forest.rewards.with_more([np.array([[x]]) for x in held]),
        cost=np.append(forest.cost, more + len(forest.costs)),
        costs=forest.costs.with_more([np.zeros((1, 1))]),
        count=np.append(forest.count, more + 1),
        endless=np.append(forest.endless, more.astype(bool)),
        state_names=(*forest.state_names, *[None] * trees),
    )
