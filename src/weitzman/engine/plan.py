"""A forest laid out as operations on capped values, and one pass over them.

The threads of this machine take the parts of a plan one after the other, or the workers of an
executor do, each of which gets the plan once, with the values of the operations that several parts
share. The kernels do the same arithmetic in the same order wherever they run, so the result is
bitwise identical.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from .._common import interruption
from .._common.arrays import FloatArray, IntArray, frozen, writable
from .._common.sharing import Executor, spread
from .._kernels import blocks, capped, structure
from .._kernels.structure import BOX, KIND, STATES
from ..errors import InvalidArgument
from ..forest.columns import runs
from ..forest.model import Forest
from .weights import Weights, endless_value, groups_of

Progress = Callable[[int, int], None]
Line = Callable[[int], tuple[FloatArray, FloatArray, FloatArray]]
"""Of an endless box: its indices, and breakpoints and tails (m, k) of its capped value."""
T = TypeVar("T")

_PARTS = 64  # fixed, so that the result does not depend on the number of threads
_PART_LEAST = 2048  # operations below which splitting is not worth it
_CHUNK = 20_000  # operations between two calls of the progress function
_CERTAIN = 1.0 - 2e-14  # chances that sum to 1 but for rounding


@dataclass(frozen=True, slots=True, eq=False)
class PlanPass:
    """What one pass over the plan gives; ``width`` counts columns of each matrix product."""

    value: float
    gap: float
    sigma: FloatArray
    width: IntArray
    tail: tuple[FloatArray, FloatArray]  # breakpoints and tails of the best capped value


class KnownValues(NamedTuple):
    """Values of endless lines, one for each class of lines; they are not built from others."""

    data: FloatArray  # falling breakpoints of a value, then its tails; one value after the other
    at: IntArray  # by operation, where its value starts; empty if there is none at all
    size: IntArray  # by operation, its number of breakpoints
    place: IntArray  # where among all indices those of the lines belong
    sigma: FloatArray


def _known_values(
    member: IntArray, op_of: IntArray, sigma_at: IntArray, ops: int, line: Line
) -> KnownValues:
    """The values of ``line`` for the classes whose boxes are ``member``, -1 for all others."""
    which = np.flatnonzero(member >= 0)
    data, index = [np.empty(0)], [np.empty(0)]
    at, size = np.zeros((2, ops if len(which) else 0), np.int64)
    used = 0
    for c in which.tolist():
        sigma, points, tails = line(int(member[c]))
        at[op_of[c]], size[op_of[c]] = used, len(points)
        used += len(points) * (1 + len(sigma))
        data += [points[::-1], tails[::-1].reshape(-1)]
        index.append(sigma)
    place = runs(sigma_at[which], np.diff(sigma_at)[which])
    return KnownValues(np.concatenate(data), at, size, place, np.concatenate(index))


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A forest as operations on capped values: one for each class of equal subtrees, and joins."""

    weights: Weights
    class_of: IntArray
    sigma_at: IntArray  # where the indices of each class start
    op_of: IntArray
    ops: IntArray
    powers: FloatArray
    owner: IntArray
    refs: IntArray
    part_op: IntArray
    last: int
    last_power: float
    reward: FloatArray  # of each state, to be maximized; those of row r from reward_at[r] on
    reward_at: IntArray
    levels: FloatArray  # the same sorted, without doubles and what is none
    level_at: IntArray
    known: KnownValues
    outside: float
    span: float
    top: IntArray  # the classes of the roots
    top_copies: FloatArray
    top_group: IntArray
    cuts: IntArray  # the roots of part p are top[cuts[p]:cuts[p + 1]]

    @property
    def forest(self) -> Forest:
        """The forest itself."""
        return self.weights.forest

    @classmethod
    def of(cls, forest: Forest) -> Plan:
        """Find equal subtrees and lay out the work."""
        f, w = forest, Weights.of(forest)

        key = 2 * w.law + f.endless
        if f.quotas:  # equal trees of different groups are not one class
            key = key + 2 * len(w.laws) * np.where(f.parent < 0, groups_of(f).of, 0)
        return cls.lay_out(
            w, key, f.reward, w.rewards, f.rewards.start, w.outside, partial(endless_value, w)
        )

    @classmethod
    def lay_out(
        cls, weights: Weights, key: IntArray, reward: IntArray, rewards: FloatArray,
        reward_at: IntArray, outside: float, line: Line,
        most_parts: int = _PARTS,
    ) -> Plan:  # fmt: skip
        """Lay out with rewards other than the forest's; boxes of different keys are never equal.

        ``line`` tells the values of endless boxes.
        """
        f, w = weights.forest, weights
        roots, tree = f.roots, structure.postorder(f.parent)
        marks = structure.Marks(frozen(key), frozen(reward), frozen(w.cost))
        classes = structure.classify(tree, marks, f.count)
        class_of, member = classes.of, classes.member
        levels, level_at = structure.sort_levels(rewards, reward_at)
        if w.top > -np.inf:  # a level in every row that does not reach it
            ends = np.where(np.diff(level_at) > 0, level_at[1:] - 1, -1)
            short = np.append(levels, -np.inf)[ends] < w.top
            levels = np.insert(levels, level_at[1:][short], w.top)
            level_at = level_at + np.concatenate([[0], np.cumsum(short)])
        states = f.laws.shape[f.law[member], 0]
        top, some, inverse = np.unique(class_of[roots], return_index=True, return_inverse=True)
        top_copies = np.zeros(len(top))
        np.add.at(top_copies, inverse, f.count[roots])
        cuts = _cut(top, len(member) + len(classes.child), most_parts)
        # an operation for each class, and as many joins as there are values, less one
        room = len(member) + int(np.maximum(np.diff(classes.at) - 1, 0).sum()) + len(top) - 1
        ops = np.full((room, structure.COLUMNS), -1, np.int64)
        powers = np.ones((room, 2))
        op_of, part_op, last, last_power = structure.build_operations(
            classes, marks._replace(law=frozen(w.law)), f.endless, states,
            structure.Tops(top, top_copies, cuts), ops, powers,
        )  # fmt: skip
        sigma_at = np.concatenate([[0], np.cumsum(states)])
        known = _known_values(
            np.where(f.endless[member], member, -1), op_of, sigma_at, len(ops), line
        )
        owner, refs = structure.assign_users(ops, part_op, last)
        seen = [levels.max(), levels.min()] if len(levels) else []
        seen += [outside] if np.isfinite(outside) else []
        return cls(
            weights=w, class_of=class_of, sigma_at=sigma_at, op_of=op_of, ops=ops,
            powers=powers, owner=owner, refs=refs, part_op=part_op, last=int(last),
            last_power=float(last_power), reward=rewards, reward_at=reward_at, levels=levels,
            level_at=level_at, known=known,
            outside=outside, span=float(max(seen)) - float(min(seen)) if seen else 0.0,
            top=top, top_copies=top_copies, top_group=groups_of(f).of[roots[some]], cuts=cuts,
        )  # fmt: skip

    def root_ops(self, part: int) -> IntArray:
        """The operations of the roots of a part."""
        return self.op_of[self.top[self.cuts[part] : self.cuts[part + 1]]]

    def payoff_span(self) -> float:
        """The range of the rewards, in payoffs."""
        if self.weights.tolerance == 0:
            return self.span
        ends = self.weights.read_back(np.append(self.levels, self.outside))
        ends = ends[np.isfinite(ends)]
        return float(ends.max() - ends.min()) if len(ends) else 0.0

    def run(
        self, eps: float, threads: int | None = None, progress: Progress | None = None
    ) -> PlanPass:
        """One pass: shared operations, then the parts in parallel, then what joins them."""
        step = Pass(self, eps, progress=progress)
        common = step.common()
        blocks = step.parts(
            lambda p: step.block(int(self.part_op[p]), step.part(p, common)), threads
        )
        result = step.block(self.last, step.final(blocks)) if len(blocks) > 1 else blocks[0]
        value, gap, tail = self.best(result)
        return PlanPass(value, gap, step.sigma, step.width, tail)

    def best(self, block: FloatArray) -> tuple[float, float, tuple[FloatArray, FloatArray]]:
        """E max(outside, best of the roots), its error, and the distribution itself."""
        _, grid, tail, (err,) = blocks.distributions(block, np.zeros(1, np.int64))
        m = len(grid)
        if self.last_power != 1.0:
            with np.errstate(divide="ignore"):
                many = -np.expm1(self.last_power * np.log1p(-np.minimum(tail, 1.0)))
            if m:
                err = err * many[-1] / tail[-1]
            tail = many
        over = grid > self.outside
        if not over.any():
            return self.outside, 0.0, (grid, tail)
        # what is had for certain, if anything is: beginning at far lower points would cost digits.
        # Of utilities the lowest ends count most, although the slopes there round to 1
        start = self.outside if np.isfinite(self.outside) else float(grid[0])
        if self.weights.tolerance == 0 and (sure := int((tail >= _CERTAIN).sum())) > 0:
            start = max(start, float(grid[sure - 1]))
        edges = np.concatenate([[start], np.maximum(grid[over], start)])
        value = start + float(np.sum((tail[over] * np.diff(edges))[::-1]))
        if np.isfinite(self.outside):  # opening nothing earns this much for sure
            err = min(err, value - self.outside)
        return value, float(err), (grid, tail)


class Pass:
    """The working arrays of one pass over a plan.

    ``loc`` says where the value of each operation lies. Given indices ``sigma`` are not looked for;
    ``clear`` then becomes the probability that no child reaches the reward of each state.
    """

    def __init__(
        self, plan: Plan, eps: float, sigma: FloatArray | None = None,
        progress: Progress | None = None,
    ) -> None:  # fmt: skip
        self.plan, self.eps, self.given = plan, eps, sigma is not None
        self.progress, self.done = progress, 0
        self.turn = Lock()  # threads tell their progress one at a time
        self.stop = interruption.flag()  # the pass is given up
        n, known = len(plan.ops), plan.known
        if sigma is None:
            sigma = np.empty(plan.sigma_at[-1])
            sigma[known.place] = known.sigma
        self.sigma, self.clear = sigma, np.empty(plan.reward_at[-1] if self.given else 0)
        self.sigma_of = np.full(n, -1, np.int64)
        self.sigma_of[plan.op_of] = plan.sigma_at[:-1]
        self.loc, self.width = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.refs = plan.refs.copy()

    def work(self, order: IntArray, shared: FloatArray) -> FloatArray:
        """Carry out operations in a heap of their own and return it."""
        p, w = self.plan, self.plan.weights
        heap, state = blocks.new_heap(1024)
        read: dict[str, FloatArray | IntArray] = {
            "ops": p.ops, "powers": p.powers, "laws": w.laws.data, "law_at": w.laws.start,
            "reward": p.reward, "reward_at": p.reward_at, "levels": p.levels,
            "level_at": p.level_at, "costs": w.costs.data, "cost_at": w.costs.start,
            "cost_shape": w.costs.shape, "defect": w.defect, "defect_at": w.defect_at,
            "known": p.known.data, "known_at": p.known.at, "known_size": p.known.size,
        }  # fmt: skip
        program = capped.Program(
            **{name: frozen(column) for name, column in read.items()},
            outside=p.outside, eps=self.eps, given=self.given, weighed=len(w.defect) > 0,
        )  # fmt: skip
        out = capped.Outputs(
            loc=self.loc, refs=self.refs, sigma=self.sigma, sigma_at=self.sigma_of,
            width=self.width, clear=self.clear, stop=self.stop,
        )  # fmt: skip
        for i in range(0, len(order), _CHUNK):
            heap = capped.sweep(order[i : i + _CHUNK], program, out, shared, heap, state)
            interruption.check(self.stop)
            if self.progress is not None:
                with self.turn:
                    self.done += len(order[i : i + _CHUNK])
                    self.progress(self.done, len(p.ops))
        return heap

    def common(self) -> FloatArray:
        """What several parts need, computed first."""
        together = np.flatnonzero(self.plan.owner == structure.SHARED)
        heap = self.work(together, np.empty(0))
        self.loc[together] = -1 - self.loc[together]
        return heap

    def order(self, part: int, tops: IntArray | None = None) -> IntArray:
        """The operations that one part needs alone: for its value, or for some of its own."""
        p = self.plan
        tops = p.part_op[part : part + 1] if tops is None else tops
        ops, owner, tops = frozen(p.ops), frozen(p.owner), frozen(tops)
        return np.asarray(structure.schedule(ops, owner, part, tops))

    def last(self) -> IntArray:
        """The operations that join the parts."""
        return self.order(structure.FINAL, np.array([self.plan.last]))

    def indices(self, order: IntArray) -> IntArray:
        """Where the indices lie that some operations find."""
        box = order[self.plan.ops[order, KIND] == BOX]
        return runs(self.sigma_of[box], self.plan.ops[box, STATES])

    def part(self, part: int, common: FloatArray) -> FloatArray:
        """The heap that holds the value of a part."""
        if self.plan.owner[self.plan.part_op[part]] == structure.SHARED:
            return common
        return self.work(self.order(part), common)

    def trees(self, part: int, common: FloatArray) -> FloatArray:
        """The heap that holds the values of the roots of a part, which are not joined."""
        return self.work(self.order(part, self.plan.root_ops(part)), common)

    def parts(self, task: Callable[[int], T], threads: int | None) -> list[T]:
        """A task for every part, on all cores."""
        count = len(self.plan.part_op)
        if count == 1:
            return [task(0)]
        with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
            return list(pool.map(task, range(count)))

    def final(self, blocks: list[FloatArray]) -> FloatArray:
        """Join the values of the parts."""
        p = self.plan
        self.loc[p.part_op] = -1 - np.cumsum([0, *map(len, blocks[:-1])])
        return self.work(self.last(), np.concatenate(blocks))

    def block(self, op: int, heap: FloatArray) -> FloatArray:
        """A copy of the value of an operation."""
        at = self.loc[op] if self.loc[op] >= 0 else -1 - self.loc[op]
        return heap[at : at + blocks.extent(heap, at, self.plan.ops[op, structure.STATES])].copy()


def in_trees(parent: IntArray, order: IntArray, roots: IntArray) -> NDArray[np.bool_]:
    """Which boxes of a postorder belong to the trees of some roots; a tree ends with its root."""
    ends = np.flatnonzero(parent[order] < 0)
    wanted = np.zeros(len(parent), bool)
    wanted[roots] = True
    return np.repeat(wanted[order[ends]], np.diff(ends, prepend=-1))


def check_threads(threads: int | None) -> None:
    """Threads are counted from 1; None means all cores."""
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise InvalidArgument(
            f"`threads` must be a whole number from 1 on, or None for all cores, not {threads!r}."
        )


def _cut(top: IntArray, work: int, most: int) -> IntArray:
    """Boundaries of the parts of the roots, about equal in work: classes follow the trees."""
    parts = max(1, min(most, work // _PART_LEAST, len(top)))
    want = np.linspace(0, top[-1] + 1, parts + 1)[1:-1]
    inner = np.searchsorted(top, want)
    return np.unique(np.concatenate([[0], inner, [len(top)]])).astype(np.int64)


# -- by the workers of an executor -----------------------------------------------------------------


class Share(NamedTuple):
    """What every worker needs, whichever part it gets: a pass that has done what parts share."""

    plan: Plan
    eps: float
    loc: IntArray
    common: FloatArray


class PartDone(NamedTuple):
    """The value of a part, and what was found on the way."""

    block: FloatArray
    sigma: FloatArray
    width: IntArray


def run_spread(
    plan: Plan, eps: float, executor: Executor, progress: Progress | None = None
) -> PlanPass:
    """One pass: shared operations here, the parts by the workers, the final join here."""
    step = Pass(plan, eps)
    common = step.common()
    # a pass reads all but the forest itself, whose names may be long
    bare = replace(plan, weights=replace(plan.weights, forest=cast(Any, None)))
    share = Share(bare, eps, step.loc, common)
    away = [p for p in range(len(plan.part_op)) if plan.owner[plan.part_op[p]] != structure.SHARED]
    done = dict(zip(away, spread(executor, do_part, share, away, progress), strict=True))
    for p, part in done.items():
        order = step.order(p)
        step.width[order] = part.width
        step.sigma[step.indices(order)] = part.sigma
    values = [
        done[p].block if p in done else step.block(op, common)
        for p, op in enumerate(plan.part_op.tolist())
    ]
    result = step.block(plan.last, step.final(values)) if len(values) > 1 else values[0]
    value, gap, tail = plan.best(result)
    return PlanPass(value, gap, step.sigma, step.width, tail)


def do_part(share: Share, part: int) -> PartDone:
    """On the worker: the operations of one part."""
    step = Pass(share.plan, share.eps)
    step.loc[:] = share.loc
    heap, order = step.part(part, writable(share.common)), step.order(part)
    block = step.block(int(share.plan.part_op[part]), heap)
    return PartDone(block, step.sigma[step.indices(order)], step.width[order])
