"""The way back with several prizes: what the other trees leave open for each.

A box of a tree is opened if and only if it would be in the tree alone, and fewer than K other trees
have a capped value above its index. So each tree starts with the chance of that, at every rank of
its own. See section 14 of the theory page.
"""

from __future__ import annotations

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._kernels import blocks
from .._kernels.counts import walk
from ..errors import TooLarge
from .plan import Pass, Plan

_MOST_COPIES = 10_000  # of one tree whose ties are told apart


def openings_left(
    step: Pass, heaps: list[FloatArray], own: dict[int, FloatArray], beyond: float | None
) -> tuple[dict[int, tuple[FloatArray, FloatArray]], float]:
    """For each root operation the chance that a prize is left for it: points and rows of one state.

    ``heaps`` hold the values of the parts, ``own`` the ranks of each tree that may be asked for.
    Also returns the chance that a prize is left for what is not above ``beyond``.
    """
    plan = step.plan
    if plan.top_copies.max() > _MOST_COPIES:
        raise TooLarge(
            f"with several prizes, a tree may have at most {_MOST_COPIES} copies to be evaluated, "
            f"but there are {plan.top_copies.max():.6g}. Simulate instead.",
            float(plan.top_copies.max()),
        )
    point, tail, tree = [], [], []
    ops: list[int] = []
    for p, heap in enumerate(heaps):
        for op in plan.root_ops(p).tolist():
            x, t = _questions(heap, int(step.loc[op]), own[op], plan.top_copies[len(ops)] > 1)
            point.append(x)
            tail.append(t)
            tree.append(np.full(len(x), len(ops)))
            ops.append(op)
    everywhere, whose = np.concatenate(point), np.concatenate(tree)
    by = np.argsort(-everywhere, kind="stable")
    prizes = plan.forest.prizes
    _, unfilled, others = walk(whose[by], np.concatenate(tail)[by], plan.top_copies, prizes, True)
    left = _last(everywhere[by], unfilled, beyond)
    chance = np.empty(len(by))
    chance[by] = others
    out = {}
    start = np.concatenate([[0], np.cumsum([len(x) for x in point])])
    for i, op in enumerate(ops):
        here = slice(start[i], start[i + 1])
        keep = everywhere[here] >= plan.outside
        x, g = everywhere[here][keep][::-1], chance[here][keep][::-1]
        out[op] = np.ascontiguousarray(x), g.reshape(-1, 1).copy()
    return out, left


def _questions(
    heap: FloatArray, at: int, own: FloatArray, several: bool
) -> tuple[FloatArray, FloatArray]:
    """Ranks of a tree, falling, and the chance that its value is at least each of them.

    Where copies may tie at a rank, half a rank above it none of them counts.
    """
    grid, tails = blocks.distribution(heap, at, 1, 0)
    x = np.unique(np.concatenate([own[own > -np.inf], grid]))
    if several:
        x = np.unique(np.concatenate([x, x + 0.5]))
    above = np.append(np.minimum(tails, 1.0), 0.0)[np.searchsorted(grid, x)]
    return x[::-1], above[::-1]


def _last(point: FloatArray, unfilled: FloatArray, beyond: float | None) -> float:
    """The chance that a prize is left once all above ``beyond`` is gone through."""
    if beyond is None:
        return 0.0
    above = int(np.count_nonzero(point > beyond))
    return float(unfilled[above - 1]) if above else 1.0


def ranks_by_tree(
    plan: Plan, roots: IntArray, indices: FloatArray, index_at: IntArray,
    rewards: FloatArray, reward_at: IntArray,
) -> dict[int, FloatArray]:  # fmt: skip
    """All ranks of the boxes of each tree, by the operation of its root."""
    f = plan.forest
    top = np.arange(len(f))
    while (f.parent[top] >= 0).any():
        top = np.where(f.parent[top] >= 0, f.parent[top], top)
    out: dict[int, FloatArray] = {}
    per_index = np.repeat(top, np.diff(index_at))
    per_reward = np.repeat(top, np.diff(reward_at))
    everyone = np.concatenate([per_index, per_reward])
    ranks = np.concatenate([indices, rewards])
    by = np.argsort(everyone, kind="stable")
    cuts = (
        np.searchsorted(everyone[by], roots, side="left"),
        np.searchsorted(everyone[by], roots, side="right"),
    )
    for root, a, b in zip(roots.tolist(), *cuts, strict=True):
        out[int(plan.op_of[plan.class_of[root]])] = ranks[by[a:b]]
    return out
