r"""Several prizes, one from each tree: the value from the trees' capped values.

With :math:`N(x)` the number of trees whose capped value is at least x, the value of K prizes is
:math:`K x_0 + \int_{x_0}^\infty E\min(K, N(x))\,dx`. See section 14 of the theory page.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._kernels import blocks, structure
from .._kernels.counts import walk
from .plan import Pass, Plan, PlanPass, Progress


class PrizeTrees(NamedTuple):
    """The capped values of trees: breakpoints and tails one after the other."""

    point: FloatArray
    tail: FloatArray
    tree: IntArray  # by breakpoint
    copies: FloatArray  # by tree
    error: FloatArray
    top: FloatArray  # its highest breakpoint
    top_tail: FloatArray  # and the chance to be there


def run_several(
    plan: Plan, eps: float, clip: bool, threads: int | None, progress: Progress | None = None
) -> PlanPass:
    """One pass over a plan whose forest offers several prizes."""
    step = Pass.start(plan, eps, plan.outside if clip else -np.inf, progress=progress)
    trees = _trees(step, threads)
    k, x0 = plan.forest.prizes, plan.outside
    if len(trees.point) == 0:  # nothing can be found
        return PlanPass(k * x0, 0.0, step.sigma, step.width, (np.empty(0), np.empty(0)))
    by = np.argsort(-trees.point, kind="stable")
    point = trees.point[by]
    filled, unfilled, _ = walk(trees.tree[by], trees.tail[by], trees.copies, k, False)
    low = np.append(point[1:], -np.inf)
    width = np.maximum(point, x0) - np.maximum(low, x0)
    value = k * x0 + float(np.sum(filled * width))
    before = np.searchsorted(-point, -trees.top, side="left") - 1  # the last event above a top
    chance = np.where(before >= 0, unfilled[before], 1.0) * (trees.top > x0)
    with np.errstate(divide="ignore"):
        times = np.minimum(trees.copies, k / trees.top_tail)
    gap = float(np.sum(trees.error * chance * np.where(trees.error > 0, times, 0.0)))
    rising = (point[::-1], filled[::-1] / k)
    return PlanPass(value, min(gap, value - k * x0), step.sigma, step.width, rising)


def _trees(step: Pass, threads: int | None) -> PrizeTrees:
    """The values of all kinds of trees."""
    plan = step.plan
    for p in range(len(plan.part_op)):
        step.refs[plan.root_ops(p)] += 1  # so that they are kept
    common = step.common()

    def values(p: int) -> list[tuple[FloatArray, FloatArray, float]]:
        tops = plan.root_ops(p)
        order = structure.schedule(plan.ops, plan.owner, p, tops)
        heap = step.work(np.asarray(order), common)
        out = []
        for op in tops.tolist():
            at = int(step.loc[op])
            here, place = (heap, at) if at >= 0 else (common, -1 - at)
            grid, tail = blocks.distribution(here, place, 1, 0)
            out.append((grid[::-1], tail[::-1], float(blocks.error(here, place, 1, 0))))
        return out

    found = [value for part in step.parts(values, threads) for value in part]
    sizes = [len(grid) for grid, _, _ in found]
    empty = np.empty(0)
    return PrizeTrees(
        np.concatenate([empty, *(grid for grid, _, _ in found)]),
        np.concatenate([empty, *(np.minimum(tail, 1.0) for _, tail, _ in found)]),
        np.repeat(np.arange(len(found)), sizes),
        plan.top_copies,
        np.array([error for _, _, error in found]),
        np.array([grid[0] if len(grid) else -np.inf for grid, _, _ in found]),
        np.array([tail[0] if len(tail) else 1.0 for _, tail, _ in found]),
    )
