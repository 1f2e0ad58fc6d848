r"""Several prizes, one from each tree: the value from the trees' capped values.

With :math:`N_g(x)` the number of trees of group g whose capped value is at least x, and at most
:math:`q_g` prizes from the group, the value of K prizes is :math:`K x_0 + \int_{x_0}^\infty
E\min(K, \sum_g \min(q_g, N_g(x)))\,dx`; without quotas there is one group. On the way back, a box
of a tree is opened if and only if it would be opened in the tree alone and the other trees with a
capped value above its index leave a place for it, in its group and in all. So each tree starts with
the probability of that, at every rank of its own. See section 14 of the theory page.
"""

from __future__ import annotations

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._kernels import blocks, structure
from .._kernels.counts import walk
from ..errors import TooLarge
from .plan import Pass, Plan, PlanPass, Progress
from .weights import groups_of

_MOST_COPIES = 10_000  # of one tree whose ties are told apart


TreeValue = tuple[FloatArray, FloatArray, float]
"""Of a tree: falling breakpoints of its capped value, its tails, and its certified error."""


def run_several(
    plan: Plan, eps: float, clip: bool, threads: int | None, progress: Progress | None = None
) -> PlanPass:
    """One pass over a plan whose forest offers several prizes."""
    step = Pass.start(plan, eps, plan.outside if clip else -np.inf, progress=progress)
    value, gap, tail = best_several(plan, _trees(step, threads))
    return PlanPass(value, gap, step.sigma, step.width, tail)


def best_several(
    plan: Plan, found: list[TreeValue]
) -> tuple[float, float, tuple[FloatArray, FloatArray]]:
    """The value of several prizes from those of the trees, in the order of ``plan.top``.

    As `Plan.best`: also its error, and how it is distributed.
    """
    grids, tails, errors = zip(*found, strict=True)
    point, copies = np.concatenate(grids), plan.top_copies
    k, x0 = plan.forest.prizes, plan.outside
    if len(point) == 0:  # nothing can be found
        return k * x0, 0.0, (np.empty(0), np.empty(0))
    by = np.argsort(-point, kind="stable")
    tree = np.repeat(np.arange(len(found)), [len(grid) for grid in grids])
    values = copies, plan.top_group, groups_of(plan.forest).quota
    tail = np.minimum(np.concatenate(tails), 1.0)
    filled, unfilled, _ = walk(tree[by], tail[by], values, k, False)
    point = point[by]
    low = np.append(point[1:], -np.inf)
    width = np.maximum(point, x0) - np.maximum(low, x0)
    value = k * x0 + float(np.sum(filled * width))
    error = np.array(errors)
    top = np.array([grid[0] if len(grid) else -np.inf for grid in grids])
    there = np.array([min(tail[0], 1.0) if len(tail) else 1.0 for tail in tails])
    before = np.searchsorted(-point, -top, side="left") - 1  # the last event above a top
    chance = np.where(before >= 0, unfilled[before], 1.0) * (top > x0)
    with np.errstate(divide="ignore"):
        times = np.minimum(copies, k / there)
    gap = float(np.sum(error * chance * np.where(error > 0, times, 0.0)))
    return value, min(gap, value - k * x0), (point[::-1], filled[::-1] / k)


def tree_value(heap: FloatArray, at: int) -> TreeValue:
    """The value of a tree that lies in a heap."""
    grid, tail, error = blocks.distribution(heap, at, 1, 0)
    return grid[::-1], tail[::-1], float(error)


def _trees(step: Pass, threads: int | None) -> list[TreeValue]:
    """The values of all kinds of trees."""
    plan = step.plan
    for p in range(len(plan.part_op)):
        step.refs[plan.root_ops(p)] += 1  # so that they are kept
    common = step.common()

    def values(p: int) -> list[TreeValue]:
        tops = plan.root_ops(p)
        order = structure.schedule(plan.ops, plan.owner, p, tops)
        heap = step.work(np.asarray(order), common)
        out = []
        for op in tops.tolist():
            at = int(step.loc[op])
            out.append(tree_value(heap, at) if at >= 0 else tree_value(common, -1 - at))
        return out

    return [value for part in step.parts(values, threads) for value in part]


def openings_left(
    step: Pass, heaps: list[FloatArray], own: dict[int, FloatArray], beyond: float | None
) -> tuple[dict[int, tuple[FloatArray, FloatArray]], float]:
    """The probability that a prize is left for each root operation: points, and rows of one state.

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
    prizes, quota = plan.forest.prizes, groups_of(plan.forest).quota
    values = plan.top_copies, plan.top_group, quota
    _, unfilled, others = walk(whose[by], np.concatenate(tail)[by], values, prizes, True)
    above = 0 if beyond is None else int(np.count_nonzero(everywhere > beyond))
    left = 0.0 if beyond is None else float(unfilled[above - 1]) if above else 1.0
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
    grid, tails, _ = blocks.distribution(heap, at, 1, 0)
    x = np.unique(np.concatenate([own[own > -np.inf], grid]))
    if several:
        x = np.unique(np.concatenate([x, x + 0.5]))
    above = np.append(np.minimum(tails, 1.0), 0.0)[np.searchsorted(grid, x)]
    return x[::-1], above[::-1]


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
