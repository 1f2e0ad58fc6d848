"""One pass over a plan by the workers of an executor, each with the part of the plan it needs.

A part of a plan is a list of operations that only this part needs. Its share is the operations, the
laws, rewards and costs that they read, and the values of the operations that several parts share.
The kernels do the same arithmetic in the same order wherever they run, so the result is the same to
the last bit as on one machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._common import interruption
from .._common.arrays import FloatArray, IntArray, frozen, writable
from .._common.sharing import Executor, spread
from .._kernels import blocks, capped, structure
from .._kernels.structure import BOX, COST, KIND, LAW, LEFT, REWARD, RIGHT, STATES, USER
from ..forest.pools import runs
from .plan import Pass, Plan, PlanPass, Progress


class PartShare(NamedTuple):
    """All that a worker needs for one part."""

    program: capped.Program  # of the operations of the part alone
    loc: IntArray  # by operation: where it lies in `shared`, if another part needs it too
    refs: IntArray
    sigma_at: IntArray
    sigmas: int
    shared: FloatArray
    last: int  # the operation whose value is asked for
    order: IntArray


class PartDone(NamedTuple):
    """The value of a part, and what was found on the way."""

    block: FloatArray
    sigma: FloatArray
    width: IntArray


def run_spread(
    plan: Plan, eps: float, clip: bool, executor: Executor, progress: Progress | None = None
) -> PlanPass:
    """One pass: shared operations here, the parts by the workers, the final join here."""
    step = Pass.start(plan, eps, plan.outside if clip else -np.inf)
    common = step.common()
    away = [p for p in range(len(plan.part_op)) if plan.owner[plan.part_op[p]] != structure.SHARED]
    orders = [step.order(p) for p in away]
    laws = _laws_of_all(plan, orders)
    shares = [
        share_of(step, order, int(plan.part_op[p]), lambda op: step.block(op, common), laws is None)
        for p, order in zip(away, orders, strict=True)
    ]
    done = spread(executor, carry_out_share, laws, shares, progress)
    found: dict[int, FloatArray] = {}
    for p, order, part in zip(away, orders, done, strict=True):
        box = order[plan.ops[order, KIND] == BOX]
        step.width[order] = part.width
        step.sigma[runs(step.sigma_of[box], plan.ops[box, STATES])] = part.sigma
        found[p] = part.block
    for p in range(len(plan.part_op)):
        found.setdefault(p, step.block(int(plan.part_op[p]), common))
    values = [found[p] for p in range(len(plan.part_op))]
    result = step.block(plan.last, step.final(values)) if len(values) > 1 else values[0]
    value, gap, tail = plan.best(result)
    return PlanPass(value, gap, step.sigma, step.width, tail)


class LawsOfAll(NamedTuple):
    """The laws of a plan, for parts that share them."""

    laws: FloatArray
    law_at: IntArray
    defect: FloatArray
    defect_at: IntArray


def _laws_of_all(plan: Plan, orders: list[IntArray]) -> LawsOfAll | None:
    """All laws, if the parts would else be sent most of them several times."""
    w = plan.weights
    size = np.append(np.diff(w.laws.start), 0)  # the last entry is for "none"
    parts = sum(int(size[np.unique(plan.ops[order, LAW])].sum()) for order in orders)
    if parts <= 2 * size.sum():
        return None
    return LawsOfAll(w.laws.data, w.laws.start, w.defect, w.defect_at)


def share_of(
    step: Pass, order: IntArray, last: int, block: Callable[[int], FloatArray], own: bool = True
) -> PartShare:
    """Cut out what some operations need, of which ``last`` gives the value that is asked for.

    The operations are numbered from 0. Those that they only read come last; ``block`` gives the
    values of those. ``own``: the share has the laws that it needs; otherwise they come apart.
    """
    plan, w = step.plan, step.plan.weights
    ops = plan.ops[order]
    needed = ops[:, (LEFT, RIGHT)].reshape(-1)
    others = np.setdiff1d(needed[needed >= 0], order)
    number = np.full(len(plan.ops) + 1, -1)  # the last entry is for "none"
    number[order] = np.arange(len(order))
    number[others] = len(order) + np.arange(len(others))
    both = np.concatenate([order, others])
    ops = plan.ops[both]
    ops[:, LEFT], ops[:, RIGHT] = number[ops[:, LEFT]], number[ops[:, RIGHT]]
    ops[len(order) :, (LEFT, RIGHT)] = -1
    shared = [block(int(op)) for op in others]
    laws = np.empty(0, np.int64)
    if own:
        laws, ops[:, LAW] = _used(ops[:, LAW])
    costs, ops[:, COST] = _used(ops[:, COST])
    rows, place = _used(np.concatenate([ops[:, REWARD], ops[:, USER]]))
    ops[:, REWARD], ops[:, USER] = place[: len(ops)], place[len(ops) :]
    reward, reward_at = _cut(plan.reward, plan.reward_at, rows)
    levels, level_at = _cut(plan.levels, plan.level_at, rows)
    law_pool, cost_pool = w.laws.take(laws), w.costs.take(costs)
    weighed = len(w.defect) > 0
    ends = np.append(w.defect_at, len(w.defect))
    defect, defect_at = _cut(w.defect, ends, laws) if weighed else (w.defect, w.defect_at)
    known, known_at, known_size = _known(plan, both)
    sizes = np.where(ops[:, KIND] == BOX, ops[:, STATES], 0)
    sizes[len(order) :] = 0
    program = capped.Program(
        ops=ops, powers=plan.powers[both], laws=law_pool.data,
        law_at=law_pool.start, reward=reward, reward_at=reward_at, levels=levels,
        level_at=level_at, costs=cost_pool.data, cost_at=cost_pool.start,
        cost_shape=cost_pool.shape, defect=defect, defect_at=defect_at, known=known,
        known_at=known_at, known_size=known_size, low=step.low, outside=plan.outside,
        eps=step.eps, given=False, weighed=weighed,
    )  # fmt: skip
    ahead = np.cumsum([0, *map(len, shared)])[:-1].astype(np.int64)
    return PartShare(
        program=program,
        loc=np.concatenate([np.zeros(len(order), np.int64), -1 - ahead]),
        refs=plan.refs[both],
        sigma_at=np.cumsum(sizes) - sizes,
        sigmas=int(sizes.sum()),
        shared=np.concatenate([np.empty(0), *shared]),
        last=int(number[last]),
        order=np.arange(len(order)),
    )


def carry_out_share(laws: LawsOfAll | None, share: PartShare) -> PartDone:
    """On the worker: the operations of one part, with the laws of all parts if these come apart."""
    program = share.program if laws is None else share.program._replace(**laws._asdict())
    program = program._replace(
        **{name: frozen(x) for name, x in program._asdict().items() if _is_array(x)}
    )
    width = np.zeros(len(share.loc), np.int64)
    sigma_at, shared, order = (writable(x) for x in (share.sigma_at, share.shared, share.order))
    slate = capped.Slate(
        loc=share.loc.copy(), refs=share.refs.copy(), sigma=np.empty(share.sigmas),
        sigma_at=sigma_at, width=width, clear=np.empty(0), stop=interruption.flag(),
    )  # fmt: skip
    heap, state = blocks.new_heap(1024)
    heap = capped.sweep(order, program, slate, shared, heap, state)
    interruption.check(slate.stop)
    at = int(slate.loc[share.last])
    size = blocks.extent(heap, at, program.ops[share.last, STATES])
    return PartDone(heap[at : at + size].copy(), slate.sigma, width[: len(share.order)])


def _is_array(x: object) -> bool:
    return isinstance(x, np.ndarray)


def _used(column: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct numbers in a column, and the column with their places instead of the numbers."""
    which, place = np.unique(column[column >= 0], return_inverse=True)
    renumbered = column.copy()
    renumbered[column >= 0] = place
    return which, renumbered


def _cut(data: FloatArray, at: IntArray, rows: IntArray) -> tuple[FloatArray, IntArray]:
    """Some rows of a list of rows, and where they start now."""
    size = at[rows + 1] - at[rows]
    return data[runs(at[rows], size)], np.concatenate([[0], np.cumsum(size)]).astype(np.int64)


def _known(plan: Plan, ops: IntArray) -> tuple[FloatArray, IntArray, IntArray]:
    """The known values of some operations."""
    if len(plan.known.at) == 0:
        return np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64)
    size = plan.known.size[ops]
    floats = size * (1 + plan.ops[ops, STATES])
    return plan.known.data[runs(plan.known.at[ops], floats)], np.cumsum(floats) - floats, size
