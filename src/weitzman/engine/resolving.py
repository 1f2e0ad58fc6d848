"""Solving again after the cost, the law or the rewards of one box have changed.

A first pass keeps what the operations on the way from a box to its root read (:mod:`.ways_up`), and
each change carries out these operations alone. The plan of the forest, the operations and their
order are those of a new solve: so are all bits of the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import BoolArray, FloatArray, IntArray
from .._common.interruption import interruptible
from ..errors import InvalidArgument, UnknownName
from ..forest.model import Forest
from ..forest.rules import check_exponent
from .indices import choose
from .one_change import Change, Replaced, checked, with_parent
from .plan import Plan, check_threads
from .solution import Solution, Status
from .solver import first_eps, judged, solve
from .ways_up import Kept, Way


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
    _change: Change
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
        forest = self._change.made(old.forest)
        index = old._index.copy()
        index[self._place] = self._index
        index.flags.writeable = False
        return Solution(
            forest, self.value, self.gap, self.status, self._breakpoints, old._class_of, old._start,
            index,
        )  # fmt: skip


class Resolver:
    """Solves a forest again and again with another cost, law or rewards of one box.

    Each change takes time for the boxes between the changed box and its root, not for the forest;
    with several prizes, also for putting the values of all trees together. New rewards take time
    for the children of the box, too. The result has the same bits as that of
    :func:`~weitzman.solve` for the changed forest. There is one exception: new rewards outside the
    range of all others widen what a tolerance is a share of. Then the value lies within the gap
    of both. Memory: one capped value for each box, or group of siblings, that hangs beside one of
    these ways.

    Every change solves the whole forest where nothing can be kept: with a risk tolerance, for
    rewards outside the range of all others, and where rounding alone misses the tolerance.

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
    >>> resolver.change(0, rewards=[2, 8]).value
    4.0
    """

    def __init__(
        self, forest: Forest, boxes: Sequence[str | int], *, tolerance: float = 1e-9,
        threads: int | None = None,
    ) -> None:  # fmt: skip
        check_threads(threads)
        self.forest, self._tolerance, self._threads = forest, tolerance, threads
        self._allowed = dict.fromkeys(forest.box(b) for b in boxes)
        self._ways: dict[tuple[int, bool], Way] = {}  # by box, and whether its rewards change
        self._small: dict[int, Forest] = {}
        self._range = _Range.of(forest)

    def change(
        self, box: str | int, *, cost: ArrayLike | None = None, law: ArrayLike | None = None,
        rewards: ArrayLike | None = None,
    ) -> Resolved:  # fmt: skip
        """Solve with another cost of a box, another law, other rewards, or several of these.

        Parameters
        ----------
        box : str or int
            One of the boxes that were named at the start.
        cost
            In the forms of :meth:`Forest.changed`. None: as it is.
        law : (states of the parent, own states) array, or a vector for a root
            None: as it is.
        rewards : (own states,) array
            None: as they are.
        """
        v = self.forest.box(box)
        if v not in self._allowed:
            raise UnknownName(
                f"box {self.forest.name(v)!r} was not named when the Resolver was made. Name it in "
                f"`boxes`."
            )
        if cost is None and law is None and rewards is None:
            raise InvalidArgument("nothing changes. Give a `cost`, a `law` or `rewards`.")
        if v not in self._small:
            self._small[v] = with_parent(self.forest, v)
        new, small = checked(self._small[v], v, cost, law, rewards)
        if self._range.other_utilities(new):
            return self._anew(new)
        way = (v, rewards is not None)
        if way not in self._ways:
            interruptible(lambda: self._keep(*way))
        return self._along(self._ways[way], new, small)

    def _anew(self, new: Change) -> Resolved:
        """Solve the whole forest."""
        changed = new.made(self.forest)
        found = solve(changed, tolerance=self._tolerance, threads=self._threads)
        every = np.arange(len(found._index))
        return Resolved(
            found.value, found.gap, found.status, found, Change(new.box), found.breakpoints, every,
            found._index,
        )  # fmt: skip

    def _keep(self, box: int, rewards: bool) -> None:
        """A pass that keeps what the way of a box reads; ways that share no class are kept too."""
        plan = Plan.of(self.forest)
        alone = np.bincount(plan.class_of, minlength=len(plan.op_of)) == 1
        own = np.bincount(self.forest.reward)[self.forest.reward] == 1
        boxes = [
            v for v in self._allowed
            if (v, rewards) not in self._ways
            and (own[v] or not rewards)
            and self._lone(v, plan, alone)
        ]  # fmt: skip
        if box not in boxes:  # it shares its classes now, but not once it has changed
            equal = Change.to_equal(self.forest, box, rewards)
            plan, boxes = Plan.of(equal.made(self.forest)), [box]
        target = self._tolerance * plan.payoff_span()
        kept = Kept.of(plan, first_eps(plan, target), boxes, self._threads, rewards)
        self._ways.update({(v, rewards): way for v, way in kept.all_ways().items()})

    def _lone(self, box: int, plan: Plan, alone: BoolArray) -> bool:
        """Whether no box on the way up has an equal anywhere."""
        v = box
        while v >= 0:
            if not alone[plan.class_of[v]]:
                return False
            v = int(self.forest.parent[v])
        return True

    def _along(self, way: Way, new: Change, small: Forest) -> Resolved:
        """Carry out the operations on the way from a box to its root."""
        plan, weights, sign = way.plan, way.plan.weights, self.forest.sign
        replaced = Replaced.of(small, new, plan)
        run = way.walked(replaced)
        target = self._tolerance * self._range.widened(way.span, new)
        if weights.gap(run.value, run.gap) > target:  # a new solve would go on with a smaller eps
            return self._anew(new)
        if weights.tolerance > 0:  # at most so much is rounded
            more = float(np.log(np.maximum(1.0 - replaced.defect, 1.0).max()))
            rounding = weights.rounding(way.growth + more + 1e-9)
            if weights.gap(run.value, rounding) > target:
                return self._anew(new)
        found, status = judged(plan, run, target, 0.0)
        by = np.argsort(way.place, kind="stable")
        return Resolved(
            float(sign * weights.read_back(run.value) + 0.0), found, status, way.before, new,
            way.before.breakpoints + int(run.width.sum()) - way.width, way.place[by],
            sign * weights.read_back(run.sigma[by]) + 0.0,
        )  # fmt: skip


class _Range(NamedTuple):
    """Of a forest: the least and the highest number that a reward may be, and the highest cost."""

    low: float
    high: float
    dearest: float
    sign: float
    risk_tolerance: float | None

    @classmethod
    def of(cls, f: Forest) -> _Range:
        also = [f.sign * f.outside, *([] if f.factors is None else [0.0])]
        signed = np.append(f.sign * f.rewards.data, also)
        signed = signed[np.isfinite(signed)]
        low, high = (float(signed.min()), float(signed.max())) if len(signed) else (0.0, 0.0)
        return cls(low, high, float(f.costs.data.max()), f.sign, f.risk_tolerance)

    def with_rewards(self, new: Change) -> _Range:
        """With the new rewards, too."""
        if new.rewards is None:
            return self
        signed = self.sign * new.rewards[np.isfinite(new.rewards)]
        low, high = signed.min(initial=self.low), signed.max(initial=self.high)
        return self._replace(low=float(low), high=float(high))

    def widened(self, span: float, new: Change) -> float:
        """The range of the rewards after a change, ``span`` before."""
        wide = self.with_rewards(new)
        return span if wide == self else wide.high - wide.low

    def other_utilities(self, new: Change) -> bool:
        """Whether the utilities of all rewards change with those of one box."""
        if self.risk_tolerance is None:
            return False
        if new.cost is not None:
            dearest = max(self.dearest, float(new.cost.max()))
            check_exponent(self.high - self.low + dearest, self.risk_tolerance)
        return self.with_rewards(new) != self
