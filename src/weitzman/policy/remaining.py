"""What is still closed after some answers, as a forest of its own."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..engine.indices import Policy
from ..forest.combining import side_by_side
from ..forest.model import Forest
from .frontier import Id

if TYPE_CHECKING:
    from .walk import Walk

Closed = tuple[int, int]
"""A box that can be opened and the state of its parent (0 for a root): what copies share."""


def rest_of(policy: Policy, tops: dict[Closed, int], best: float) -> Forest:
    """The boxes that can be opened, so many copies of each, and all that is behind them.

    They have one prize, and the best so far as the outside option.
    """
    keep, parent = _behind(policy, tops)
    f, n = policy.forest, len(tops)
    return f.take(
        keep,
        parent=parent,
        after=[s for _, s in tops] + [-1] * (len(keep) - n),
        count=np.concatenate([np.array([*tops.values()], np.int64), f.count[keep[n:]]]),
        endless=np.concatenate([np.zeros(n, bool), f.endless[keep[n:]]]),  # the next of a line
        outside=best,
        names=None,
        prizes=1,
    )


def _behind(policy: Policy, tops: dict[Closed, int]) -> tuple[list[int], list[int]]:
    """Boxes and all that is behind them, and the place of the parent of each."""
    at, keep = policy.child_at, [v for v, _ in tops]
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
    return keep, parent


def rest_by_tree(walk: Walk, left: int) -> tuple[Forest | None, int]:
    """Trees that may still give a prize, for ``left`` prizes, and for how many no tree is left.

    A tree with opened boxes becomes a free box that holds the best of its rewards; its closed boxes
    hang on that. None: no tree is left.
    """
    hands, f = walk.hands, walk.forest
    assert hands is not None, "several prizes"
    untouched, by_tree = _closed_by_tree(walk)
    held = {tree: hands.in_hand(tree) for tree in by_tree}
    live = [tree for tree in by_tree if by_tree[tree] or held[tree] is not None]
    trees = len(live) + sum(untouched.values())
    prizes = min(left, trees)
    if prizes == 0:
        return None, left
    nothing = -walk.sign * np.inf
    rows = [nothing if (x := held[tree]) is None else x for tree in live]
    tops: dict[Closed, int] = dict(untouched)
    parts = [rest_of(walk.policy, tops, f.outside)] if tops else []
    parts += [_roofed(walk, by_tree[tree], row) for tree, row in zip(live, rows, strict=True)]
    whole = parts[0] if len(parts) == 1 else side_by_side(parts)
    return replace(whole, prizes=prizes), left - prizes


def _closed_by_tree(walk: Walk) -> tuple[Counter[Closed], dict[Id, Counter[Closed]]]:
    """Trees of which nothing was opened, and what can be opened in the others, if not closed."""
    f, policy, hands = walk.forest, walk.policy, walk.hands
    assert hands is not None, "several prizes"
    roots = Counter({(v, 0): int(f.count[v]) for v in f.roots.tolist()})
    inside: dict[Id, Counter[Closed]] = {}
    for box, seen in walk.told.items():
        v, tree = box[0], hands.tree(box)
        above = walk.above(box)
        if above is None:
            roots[v, 0] -= 1
        if tree in hands.taken:
            continue
        here = inside.setdefault(tree, Counter())
        if above is not None:
            here[v, walk.told[above].state_number] -= 1
        for u in policy.child[policy.child_at[v] : policy.child_at[v + 1]].tolist():
            here[u, seen.state_number] += int(f.count[u])
    return +roots, {tree: +here for tree, here in inside.items()}


def _roofed(walk: Walk, tops: Counter[Closed], reward: float) -> Forest:
    """A free box that shows a sure reward, and below it what can be opened."""
    f = walk.forest
    roof = Forest.from_arrays(
        parent=[-1], cost=[0.0], rewards=[[reward]], law=[[1.0]], outside=f.outside,
        minimize=f.minimize,
    )  # fmt: skip
    if not tops:
        return roof
    rest = rest_of(walk.policy, dict(tops), f.outside)
    return replace(
        rest,
        parent=np.append(np.where(rest.parent < 0, len(rest), rest.parent), -1),
        law=np.append(rest.law, len(rest.laws)),
        laws=rest.laws.with_more([np.ones((1, 1))]),
        cost=np.append(rest.cost, len(rest.costs)),
        costs=rest.costs.with_more([np.zeros((1, 1))]),
        reward=np.append(rest.reward, len(rest.rewards)),
        rewards=rest.rewards.with_more([np.array([[reward]])]),
        count=np.append(rest.count, 1),
        endless=np.append(rest.endless, False),
        state_names=(*rest.state_names, None),
    )
