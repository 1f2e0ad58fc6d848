"""What is left of a search: the boxes still closed as a forest of their own, and its worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .._common.arrays import IntArray
from ..engine.indices import Policy
from ..engine.solver import solve
from ..forest.model import Forest
from .frontier import Id
from .hands import Hands

if TYPE_CHECKING:
    from .walk import Walk

Top = tuple[int, int, int]
"""A box that can be opened, the state of its parent (0 for a root), and how many copies."""


def rest(policy: Policy, tops: Sequence[Top], best: float) -> Forest:
    """Boxes that can be opened, all that is behind them, and one prize with ``best`` in hand.

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
    """What a walk for several prizes will have earned in the end, if it goes on in the best way.

    A tree that is open and not taken is a tree of its own: a free box that surely holds the best
    reward found, with the boxes that can be opened behind it.
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
    """What can be opened in trees that are closed as yet, and in each that is open."""
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
    """The forest with the roots of each open tree behind a free box with what that tree holds."""
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
