"""Solving again after the cost or the law of one box has changed.

The capped values beside the way from a box to its root do not change. So a first pass keeps the
values that the operations on this way read, and each change carries out these operations alone. The
plan of the forest, the operations and their order are those of a new solve: so are all bits of the
result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import BoolArray, FloatArray, IntArray
from .._common.interruption import interruptible
from .._kernels.operations import BOX, COST, KIND, LAW, LEFT, RIGHT, STATES
from ..errors import InvalidArgument, UnknownName
from ..forest.model import Forest
from ..forest.pools import runs
from .indices import choose
from .plan import Pass, Plan, PlanPass, check_threads, is_long
from .solution import Solution, Status
from .solver import first_eps, judged, solve
from .spreading import PartShare, carry_out_share, share_of


@dataclass(frozen=True, slots=True, eq=False)
class Resolved:
    """The solution of a forest in which one box has changed.

    Attributes
    ----------
    value, gap, status
        As in :class:`~weitzman.Solution`, to the last bit.
    """

    value: float
    gap: float
    status: Status
    _before: Solution
    _changes: _Changes
    _breakpoints: int
    _place: IntArray  # of the indices that differ
    _index: FloatArray

    @property
    def first_box(self) -> str | None:
        """The name of the box to open first, or None if it is best to open nothing."""
        f = self._before.forest
        place = choose(f.sign * self._root_indices(), f.sign * f.outside)
        return None if place is None else f.name(int(f.roots[place]))

    @property
    def first_index(self) -> float:
        """The best index of a root."""
        index, sign = self._root_indices(), self._before.forest.sign
        return float(sign * np.max(sign * index))

    def _root_indices(self) -> FloatArray:
        at, old = self._before.index_columns()
        roots = at[self._before.forest.roots]
        where = np.minimum(np.searchsorted(self._place, roots), len(self._place) - 1)
        return np.where(self._place[where] == roots, self._index[where], old[roots])

    def solution(self) -> Solution:
        """The whole solution, with the index of every box."""
        old = self._before
        forest = self._changes.made(old.forest)
        index = old._index.copy()
        index[self._place] = self._index
        index.flags.writeable = False
        return Solution(
            forest, self.value, self.gap, self.status, self._breakpoints, old._class_of, old._start,
            index,
        )  # fmt: skip


class _Way(NamedTuple):
    """What changes with a box: the plan, the solution before, and the operations to be done."""

    plan: Plan
    before: Solution
    share: PartShare
    op: int  # of the box, among the operations of the share
    place: IntArray  # of the indices on the way, among all
    width: int  # breakpoints of the operations on the way, before


class Resolver:
    """Solves a forest again and again with another cost or law of one box.

    Each change takes time for the boxes between the changed box and its root, not for the forest.
    The result has the same bits as that of :func:`~weitzman.solve` for the changed forest. Memory:
    one capped value for each box, or group of siblings, that hangs beside one of these ways.

    With time, a risk tolerance, or several prizes, and for an endless box, every change solves the
    whole forest.

    Parameters
    ----------
    forest : Forest
    boxes : sequence of str or int
        The boxes that may change, one at a time.
    tolerance : float
        As in :func:`~weitzman.solve`.
    threads : int, optional
        All cores by default.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> resolver = weitzman.engine.Resolver(chest, [0])
    >>> [resolver.change(0, cost=c).value for c in (1, 2.5, 6)]
    [4.0, 2.5, 0.0]
    """

    def __init__(
        self, forest: Forest, boxes: Sequence[str | int], *, tolerance: float = 1e-9,
        threads: int | None = None,
    ) -> None:  # fmt: skip
        check_threads(threads)
        self.forest, self._tolerance, self._threads = forest, tolerance, threads
        self._allowed = dict.fromkeys(forest.box(b) for b in boxes)
        self._ways: dict[int, _Way] = {}
        self._small: dict[int, Forest] = {}
        plain = forest.factors is None and forest.risk_tolerance is None and forest.prizes == 1
        self._cut = [v for v in self._allowed if plain and not forest.endless[v]]

    def change(
        self, box: str | int, *, cost: ArrayLike | None = None, law: ArrayLike | None = None
    ) -> Resolved:
        """Solve with another cost of a box, another law of it, or both.

        Parameters
        ----------
        box : str or int
            One of the boxes that were named at the start.
        cost
            In the forms of :meth:`Forest.changed`. None: as it is.
        law : (states of the parent, own states) array, or a vector for a root
            None: as it is.
        """
        v = self.forest.box(box)
        if v not in self._allowed:
            raise UnknownName(
                f"box {self.forest.name(v)!r} was not named when the Resolver was made. Name it in "
                f"`boxes`."
            )
        if cost is None and law is None:
            raise InvalidArgument("nothing changes. Give a `cost` or a `law`.")
        if v not in self._small:
            self._small[v] = _with_parent(self.forest, v)
        new = _checked(self._small[v], v, cost, law)
        if v not in self._cut:
            return self._anew(new)
        if v not in self._ways:
            long = is_long(self.forest)
            interruptible(lambda: self._keep(v), long=long)
        return self._along(v, new)

    def _anew(self, new: _Changes) -> Resolved:
        """Solve the whole forest."""
        changed = new.made(self.forest)
        found = solve(changed, tolerance=self._tolerance, threads=self._threads)
        every, nothing = np.arange(len(found._index)), _Changes(new.box, None, None)
        return Resolved(
            found.value, found.gap, found.status, found, nothing, found.breakpoints, every,
            found._index,
        )  # fmt: skip

    def _keep(self, box: int) -> None:
        """A pass that keeps what the way of a box reads; ways that share no class are kept too."""
        plan = Plan.of(self.forest)
        alone = np.bincount(plan.class_of, minlength=len(plan.op_of)) == 1
        boxes = [v for v in self._cut if v not in self._ways and self._lone(v, plan, alone)]
        if box not in boxes:  # it shares its classes now, but not once it has changed
            same = self.forest.costs[int(self.forest.cost[box])]
            plan, boxes = Plan.of(_Changes(box, same, None).made(self.forest)), [box]
        target = self._tolerance * plan.payoff_span()
        kept = _Kept.of(plan, first_eps(plan, target), boxes, self._threads)
        before = kept.solution()
        for v in boxes:
            self._ways[v] = kept.way(v, before)

    def _lone(self, box: int, plan: Plan, alone: BoolArray) -> bool:
        """Whether no box on the way up has an equal anywhere."""
        v = box
        while v >= 0:
            if not alone[plan.class_of[v]]:
                return False
            v = int(self.forest.parent[v])
        return True

    def _along(self, box: int, new: _Changes) -> Resolved:
        """Carry out the operations on the way from a box to its root."""
        way = self._ways[box]
        plan = way.plan
        done = carry_out_share(None, _with(way, new))
        value, gap, tail = plan.best(done.block)
        run = PlanPass(value, gap, done.sigma, done.width, tail)
        target = self._tolerance * plan.payoff_span()
        if gap > target:  # a new solve would go on with a smaller tolerance for each box
            return self._anew(new)
        found, status = judged(plan, run, target)
        sign = self.forest.sign
        by = np.argsort(way.place, kind="stable")
        return Resolved(
            float(sign * value + 0.0), found, status, way.before, new,
            way.before.breakpoints + int(done.width.sum()) - way.width, way.place[by],
            sign * done.sigma[by] + 0.0,
        )  # fmt: skip


class _Changes(NamedTuple):
    """New matrices of one box; None where it stays as it is."""

    box: int
    cost: FloatArray | None
    law: FloatArray | None

    def made(self, f: Forest) -> Forest:
        """The forest with these changes."""
        out: dict[str, Any] = {}
        for name, matrix in (("cost", self.cost), ("law", self.law)):
            if matrix is not None:
                pool, which = getattr(f, name + "s"), getattr(f, name).copy()
                which[self.box] = len(pool)
                out[name], out[name + "s"] = which, pool.with_more([matrix])
        if self.cost is not None:
            for name in ("factors", "durations"):
                if (pool := getattr(f, name)) is not None:
                    out[name] = pool.with_more([pool[int(f.cost[self.box])]])
        return replace(f, **out) if out else f


def _with_parent(f: Forest, box: int) -> Forest:
    """A forest of a box and its parent alone: what is a law or a cost there is one in the whole."""
    up = int(f.parent[box])
    boxes = [box] if up < 0 else [up, box]
    return f.take(
        boxes,
        parent=[-1] if up < 0 else [-1, 0],
        after=[-1] if up < 0 else [-1 if f.parent[up] < 0 else 0, -1],
        count=np.ones(len(boxes), np.int64),
        endless=np.zeros(len(boxes), bool),
        names=None if f.names is None else tuple(f.name(v) for v in boxes),
        prizes=1,
    )


def _checked(small: Forest, box: int, cost: ArrayLike | None, law: ArrayLike | None) -> _Changes:
    """New matrices of the last box of a small forest, as a forest would have them."""
    last = len(small) - 1
    entry = matrix = None
    if law is not None:
        given = np.atleast_2d(np.asarray(law, np.float64))
        small = _Changes(last, None, given).made(small)
        matrix = small.laws[int(small.law[last])]
    if cost is not None:
        small = small.changed(cost={last: cost})
        entry = small.costs[int(small.cost[last])]
    return _Changes(box, entry, matrix)


class _Kept(NamedTuple):
    """A pass over a plan, with the values that the ways from some boxes up to their roots read."""

    step: Pass
    ways: dict[int, IntArray]
    values: dict[int, FloatArray]

    @classmethod
    def of(cls, plan: Plan, eps: float, boxes: Sequence[int], threads: int | None) -> _Kept:
        """One pass."""
        step = Pass.start(plan, eps, -np.inf)
        ways = _upward(plan, boxes)
        beside = [np.setdiff1d(plan.ops[way][:, (LEFT, RIGHT)], way) for way in ways.values()]
        held = np.unique(np.concatenate([np.empty(0, np.int64), *beside]))
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
        index = plan.forest.sign * self.step.sigma + 0.0
        work = int(self.step.width.sum())
        return Solution(
            plan.forest, np.nan, np.inf, Status.COARSE, work, plan.class_of, plan.sigma_at, index
        )

    def way(self, box: int, before: Solution) -> _Way:
        """What a change of a box needs."""
        plan, order = self.step.plan, self.ways[box]
        share = share_of(self.step, order, plan.last, self.values.__getitem__)
        boxes = order[plan.ops[order, KIND] == BOX]
        place = runs(self.step.sigma_of[boxes], plan.ops[boxes, STATES])
        op = int(np.flatnonzero(order == plan.op_of[plan.class_of[box]])[0])
        return _Way(plan, before, share, op, place, int(self.step.width[order].sum()))


def _upward(plan: Plan, boxes: Sequence[int]) -> dict[int, IntArray]:
    """The operations from each box up to the last one."""
    user = np.full(len(plan.ops) + 1, -1)
    for side in (LEFT, RIGHT):
        user[plan.ops[:, side]] = np.arange(len(plan.ops))
    user[-1] = -1
    out = {}
    for v in boxes:
        op, way = int(plan.op_of[plan.class_of[v]]), []
        while op >= 0:
            way.append(op)
            op = int(user[op])
        out[v] = np.array(way)
    return out


def _with(way: _Way, new: _Changes) -> PartShare:
    """The operations on a way, with other matrices of the box that they start with."""
    program = way.share.program
    ops = program.ops.copy()
    if new.cost is not None:
        ops[way.op, COST] = len(program.cost_at) - 1
        program = program._replace(
            costs=np.concatenate([program.costs, new.cost.reshape(-1)]),
            cost_at=np.append(program.cost_at, program.cost_at[-1] + new.cost.size),
            cost_shape=np.concatenate([program.cost_shape, [new.cost.shape]]),
        )
    if new.law is not None:
        ops[way.op, LAW] = len(program.law_at) - 1
        program = program._replace(
            laws=np.concatenate([program.laws, new.law.reshape(-1)]),
            law_at=np.append(program.law_at, program.law_at[-1] + new.law.size),
        )
    return way.share._replace(program=program._replace(ops=ops))
