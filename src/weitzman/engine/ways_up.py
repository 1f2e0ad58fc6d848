"""What a change of one box needs: the operations above the box, and the values that they read.

The capped values beside the way from a box to its root do not change. So a pass keeps the values
that the operations on this way read. A change of rewards also touches how the values of the
children are thinned, so the way then begins with the operations of the children.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._kernels.operations import BOX, JOIN, KIND, LEFT, REWARD, RIGHT, STATES, USER
from ..forest.pools import runs
from .one_change import Replaced
from .plan import Pass, Plan, PlanPass
from .prizes import TreeValue, best_several, tree_value
from .solution import Solution, Status
from .spreading import PartDone, PartShare, carry_out_share, share_of


class TreesBeside(NamedTuple):
    """Of a forest with several prizes: the values of its trees, and which one is on the way."""

    values: list[TreeValue]
    which: int


class Way(NamedTuple):
    """The plan, the solution before, and the operations to be done."""

    plan: Plan
    before: Solution
    share: PartShare
    op: int  # of the box, among the operations of the share
    place: IntArray  # of the indices on the way, among all
    width: int  # breakpoints of the operations on the way, before
    span: float  # the range of the rewards, in payoffs
    growth: float  # of utilities on a way down, where risk counts
    trees: TreesBeside | None

    def walked(self, new: Replaced) -> PlanPass:
        """The pass that a new solve would make; its indices are those on the way, by place."""
        program = new.put_into(self.share.program, self.op)
        done = carry_out_share(None, self.share._replace(program=program))
        value, gap, tail = self._best(done)
        known = np.empty(0) if new.known is None else new.known.index
        return PlanPass(value, gap, np.concatenate([done.sigma, known]), done.width, tail)

    def _best(self, done: PartDone) -> tuple[float, float, tuple[FloatArray, FloatArray]]:
        if self.trees is None:
            return self.plan.best(done.block)
        values = self.trees.values.copy()
        values[self.trees.which] = tree_value(done.block, 0)
        return best_several(self.plan, values)


class Kept(NamedTuple):
    """A pass over a plan, with the values that some ways read."""

    step: Pass
    ways: dict[int, IntArray]
    values: dict[int, FloatArray]

    @classmethod
    def of(
        cls, plan: Plan, eps: float, boxes: Sequence[int], threads: int | None, rewards: bool
    ) -> Kept:
        """One pass; ``rewards``: the ways are for changes of rewards."""
        step = Pass.start(plan, eps, -np.inf)
        ways = _upward(plan, boxes, rewards)
        beside = [np.setdiff1d(plan.ops[way][:, (LEFT, RIGHT)], way) for way in ways.values()]
        tops = plan.op_of[plan.top] if plan.forest.prizes > 1 else np.empty(0, np.int64)
        held = np.unique(np.concatenate([tops, *beside]))
        held = held[held >= 0]
        step.refs[held] += 1
        values: dict[int, FloatArray] = {}
        common = step.common()

        def part(p: int) -> FloatArray:
            heap = step.part(p, common)
            for op in held[plan.owner[held] == p].tolist():
                values[op] = step.block(op, heap)
            return step.block(int(plan.part_op[p]), heap)

        parts = step.parts(part, threads)
        values |= dict(zip(plan.part_op.tolist(), parts, strict=True))
        heap = step.final(parts) if len(parts) > 1 else np.empty(0)
        for op in held.tolist():
            if op not in values:
                values[op] = step.block(op, common if step.loc[op] < 0 else heap)
        return cls(step, ways, values)

    def solution(self) -> Solution:
        """The indices of the pass. The value is not asked for."""
        plan = self.step.plan
        index = plan.forest.sign * plan.weights.read_back(self.step.sigma) + 0.0
        work = int(self.step.width.sum())
        return Solution(
            plan.forest, np.nan, np.inf, Status.COARSE, work, plan.class_of, plan.sigma_at, index
        )

    def all_ways(self) -> dict[int, Way]:
        """What a change of each box needs."""
        plan, before, trees = self.step.plan, self.solution(), list[TreeValue]()
        growth = plan.weights.growth() if plan.weights.tolerance > 0 else 0.0
        if plan.forest.prizes > 1:
            trees = [tree_value(self.values[op], 0) for op in plan.op_of[plan.top].tolist()]
        return {v: self._way(v, before, growth, trees) for v in self.ways}

    def _way(self, box: int, before: Solution, growth: float, trees: list[TreeValue]) -> Way:
        plan, order = self.step.plan, self.ways[box]
        last = int(order[-1])
        share = share_of(self.step, order, last, self.values.__getitem__)
        boxes = order[plan.ops[order, KIND] == BOX]
        op = int(plan.op_of[plan.class_of[box]])
        if plan.forest.endless[box]:  # its indices come with its value
            boxes = np.append(boxes, op)
        place = runs(self.step.sigma_of[boxes], plan.ops[boxes, STATES])
        on_the_way = None
        if trees:
            on_the_way = TreesBeside(trees, int(np.flatnonzero(plan.op_of[plan.top] == last)[0]))
        return Way(
            plan, before, share, int(np.flatnonzero(order == op)[0]), place,
            int(self.step.width[order].sum()), plan.payoff_span(), growth, on_the_way,
        )  # fmt: skip


def _upward(plan: Plan, boxes: Sequence[int], rewards: bool) -> dict[int, IntArray]:
    """The operations from each box up to the last one, or to its root where trees stay apart."""
    user = np.full(len(plan.ops) + 1, -1)
    for side in (LEFT, RIGHT):
        user[plan.ops[:, side]] = np.arange(len(plan.ops))
    user[-1] = -1
    if plan.forest.prizes > 1:
        user[plan.op_of[plan.top]] = -1
    out = {}
    for v in boxes:
        op = int(plan.op_of[plan.class_of[v]])
        way = _thinned_for(plan, op) if rewards else []
        while op >= 0:
            way.append(op)
            op = int(user[op])
        out[v] = np.array(way)
    return out


def _thinned_for(plan: Plan, op: int) -> list[int]:
    """The operations below a box whose values are thinned with its rewards in mind."""
    row, out = plan.ops[op, REWARD], list[int]()
    ahead = [int(plan.ops[op, LEFT])]
    while ahead:
        below = ahead.pop()
        if below >= 0 and plan.ops[below, USER] == row and below not in out:
            out.append(below)
            if plan.ops[below, KIND] == JOIN:
                ahead += plan.ops[below, (LEFT, RIGHT)].tolist()
    return sorted(out)
