"""Partially adaptive strategies: fix the order beforehand, stop according to what is seen.

After the beginning of an order, a situation is what was seen of the boxes whose children come
later, and the best reward of each tree so far (of all boxes, if there is one prize). An array with
one axis for each of these holds the values of all situations at once, and one step backward through
the order is one product with a transition matrix.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from .._common.arrays import FloatArray, check_amounts, check_counts
from .._common.numbers import such
from ..engine.evaluation import evaluate
from ..engine.plan import Plan
from ..engine.solution import Solution, mean_cost
from ..engine.solver import solve
from ..engine.weights import Weights
from ..errors import InvalidForest, TooLarge
from ..forest.model import Forest
from .fixed_sets import FixedSet
from .parts import (
    NOTHING,
    BoundedPlan,
    children_first,
    in_turn,
    likely_first,
    likely_part,
    part,
    places,
    places_lost,
    sum_of_largest,
)

_ROUNDING = 1e-12  # differences of values, as a share of the range, that are only rounding
_ORDERS = 1000  # examined by default
_MOST = 300  # boxes of an order that is searched for
MOST_SITUATIONS = 10**6  # at one step of an order
_WORK = 10**5  # situations that count for one order
_SIZES = (6, 12, 24, 48, 96, 192)  # boxes whose order is improved, before more are added
_SHIFTS = (1, 2, 4, 8, 16)  # how many boxes are moved at a time, and how far

Order = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FixedOrder(BoundedPlan):
    """The best order found, to be followed until it is best to stop.

    Attributes
    ----------
    forest : Forest
        The forest of the problem, or a part of it, with all copies written out.
    order : tuple of int
        Numbers of the boxes in the order of opening; after the last one, stop.
    boxes : tuple of str
        Their names.
    value, bound : float
        What following it earns, and what no order exceeds (undercuts, when minimizing).
    exact : bool
        Whether this is the best order of all.
    """


def best_partially_adaptive(
    forest: Forest, *, limit: int | None = None, time_limit: float | None = None,
    solution: Solution | None = None, fixed_set: FixedSet | None = None,
) -> FixedOrder:  # fmt: skip
    """The best order for opening boxes when only stopping may depend on what is seen.

    First the boxes that the optimal policy is most likely to open are put in order, then more and
    more boxes are added, and each time runs of boxes are moved as long as that helps. Then branch
    and bound looks for a better one: no order with a given beginning earns more than that beginning
    followed by a free search.

    Parameters
    ----------
    forest : Forest
    limit : int, optional
        Orders and beginnings of orders to examine, at most; 1000 by default. One with many
        situations counts for several.
    time_limit : float, optional
        Seconds after which the search ends with what it has found. The result then depends on the
        machine.
    solution : Solution, optional
        The solution of the forest, if it is already known.
    fixed_set : FixedSet, optional
        A set to fall back on: opened as a whole, it is an order without stopping.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.Builder().add("A", cost=1, outcomes={0: 0.5, 10: 0.5})
    >>> chest = chest.add("B", cost=2, outcomes={0: 0.5, 20: 0.5}).build()
    >>> best_partially_adaptive(chest).boxes
    ('B', 'A')
    """
    forest.must_end("a fixed order")
    check_counts(limit=limit)
    if time_limit is not None:
        check_amounts(time_limit=time_limit)
    solved = solve(forest) if solution is None else solution
    sign, opened = forest.sign, evaluate(solved).opened
    full, whole = likely_part(forest, opened)
    if full is not forest:
        opened = evaluate(solve(full)).opened
    likely = likely_first(full, opened)
    kept = likely[:_MOST]
    while True:
        some = np.isin(np.arange(len(full)), kept)
        few = full if some.all() else part(full, some.astype(np.int64))
        values = OrderValues(solve(few, exact=True))
        if values.held <= MOST_SITUATIONS or len(kept) == 1:
            break
        kept = kept[: max(1, len(kept) // 2)]  # each tree has an axis: fewer trees
    numbers = np.flatnonzero(some)
    places_of = {int(v): i for i, v in enumerate(numbers.tolist())}
    start = tuple(places_of[v] for v in kept)
    search = _Search(values, start, _ORDERS if limit is None else limit, time_limit)
    search.improve()
    search.prove()
    lost = places_lost(full, some.astype(np.int64))
    more = lost * forest.outside if lost else 0.0
    value, bound = (values.payoff(x) + more for x in (search.best, search.bound))
    value = sign * min(sign * value, sign * solved.value)  # above it is only rounding
    exact = search.proven and whole and few is full
    most = solved.value + sign * solved.gap
    if exact:
        bound = value
    elif not (whole and few is full) or sign * bound > sign * most:
        bound = most
    order = tuple(int(numbers[i]) for i in search.found)
    if fixed_set is not None and sign * fixed_set.value > sign * value:
        if sign * fixed_set.value > sign * value + _ROUNDING:
            full, order, exact = fixed_set.forest, fixed_set.order, False
        value = fixed_set.value
        bound = sign * max(sign * bound, sign * value)
    return FixedOrder(full, order, value, bound, exact)


def value_of_order(forest: Forest, order: Sequence[str | int]) -> float:
    """What opening boxes in this order earns, with optimal stopping; after the last one, stop.

    The forest must be without copies. Time and memory grow exponentially with the number of boxes
    whose children come much later, and with several prizes with the number of trees.

    Examples
    --------
    >>> import weitzman
    >>> box = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> value_of_order(box, [0])
    4.0
    """
    forest.must_end("a fixed order")
    boxes = tuple(forest.box(b) for b in order)
    place = {v: i for i, v in enumerate(boxes)}
    up = [int(forest.parent[v]) for v in boxes]
    if forest.count.max() > 1:
        raise InvalidForest(
            "an order needs a forest without copies. Use weitzman.forest.expand first."
        )
    if len(place) < len(boxes):
        raise InvalidForest("an order must not name a box twice. Leave out the second.")
    lost = [v for i, v in enumerate(boxes) if up[i] >= 0 and place.get(up[i], i) >= i]
    if lost:
        raise InvalidForest(
            f"an order must name a box after its parent, but {forest.name(lost[0])!r} comes "
            f"without or before {forest.name(int(forest.parent[lost[0]]))!r} "
            f"({such(len(lost), 'box')})."
        )
    if not boxes:
        return forest.prizes * forest.outside
    empty = places_lost(forest, np.isin(np.arange(len(forest)), boxes).astype(np.int64))
    named = forest.take(np.array(boxes), prizes=forest.prizes - empty)  # the others stay closed
    values = OrderValues(solve(named, exact=True))
    found = values.stopping(tuple(range(len(boxes))))
    if found is None:
        raise TooLarge(
            f"this order of {len(boxes)} boxes leads to more than {MOST_SITUATIONS} situations at "
            f"a time. Let children follow their parents sooner, or take fewer boxes.",
            situations=float(MOST_SITUATIONS),
        )
    return values.payoff(found) + (empty * forest.outside if empty else 0.0)


class OrderValues:
    """Values of orders of a forest without copies, as numbers of the recursion: higher is better.

    With discounting, laws are weighed with the factors; with a risk tolerance all numbers are
    utilities (sections 11 to 13 of the theory page).
    """

    def __init__(self, solution: Solution) -> None:
        f = self.forest = solution.forest
        w = self.weights = Weights.of(f)
        self.outside = max(w.outside, NOTHING)
        self.parent: list[int] = f.parent.tolist()
        self.children: list[list[int]] = [[] for _ in self.parent]
        for v, up in enumerate(self.parent):
            if up >= 0:
                self.children[up].append(v)
        where = places(f)
        self.prizes, self.tree = where.prizes, where.tree.tolist()
        self.laws = [w.laws[int(i)] for i in w.law]
        additive = w.tolerance == 0  # costs are factors of utilities
        self.costs = [additive * mean_cost(f, v)[:, None] for v in range(len(f))]
        at, own = f.rewards.start[f.reward].tolist(), f.rewards.shape[f.reward, 1].tolist()
        rewards = [np.maximum(w.rewards[a : a + k], NOTHING) for a, k in zip(at, own, strict=True)]
        self.states = [len(r) for r in rewards]
        self.levels: list[FloatArray] = []  # of each tree: the rewards that can be in hand
        for t in range(max(self.tree) + 1):
            here = [r for r, tree in zip(rewards, self.tree, strict=True) if tree == t]
            found = np.unique(np.concatenate([[self.outside], *here]))
            self.levels.append(found[found >= self.outside])
        self.held = prod(map(len, self.levels))
        self.hand = []  # of each box, [state, level in hand]: the level in hand afterward
        for r, t in zip(rewards, self.tree, strict=True):
            place = np.searchsorted(self.levels[t], np.maximum(r, self.outside))
            self.hand.append(np.maximum(np.arange(len(self.levels[t])), place[:, None]))
        # an index below the outside option counts as that: no cost however large widens the range
        index = [
            w.written(np.maximum(f.sign * solution.indices(v), f.sign * f.outside))
            for v in range(len(f))
        ]
        self.rank = [-float(x.max()) for x in index]
        self.looked_at = 0  # situations, in all
        self.grid = np.unique(np.concatenate([*self.levels, *index]))
        self.grid = self.grid[self.grid >= self.outside]
        self.below: list[FloatArray] = [np.empty(0)] * len(f)
        for v in children_first(f):  # distribution functions of the capped values on the grid
            after = (self.grid >= rewards[v][:, None]).astype(np.float64)
            for u in self.children[v]:
                after = after * self.below[u]
            capped = self.grid >= index[v][:, None]
            self.below[v] = np.where(capped, 1.0, self.laws[v] @ after)

    def payoff(self, number: float) -> float:
        """A number of the recursion in the user's sign and unit."""
        if number <= NOTHING / 2:  # nothing may be found, and something must be taken
            return -self.forest.sign * np.inf
        return self.forest.sign * float(self.weights.read_back(number))

    @cached_property
    def stop(self) -> FloatArray:
        """What stopping is worth: an axis for what each tree holds."""
        grids = np.meshgrid(*self.levels, indexing="ij")
        hands = np.sort(np.stack([g.reshape(-1) for g in grids]), axis=0)
        return np.asarray(hands[-self.prizes :].sum(axis=0).reshape(grids[0].shape))

    def stopping(self, order: Order) -> float | None:
        """What following an order earns, with optimal stopping; None: too many situations."""
        place = {v: i for i, v in enumerate(order)}
        last = [max((place.get(u, -1) for u in c), default=-1) for c in self.children]
        return self._backward(order, last, self.stop)

    def going_on(self, beginning: Order) -> float | None:
        """What no order with this beginning can exceed: after it, anything may be done."""
        place, n = {v: i for i, v in enumerate(beginning)}, len(beginning)
        last = [max((place.get(u, n) for u in c), default=-1) for c in self.children]
        end = self._free(beginning)
        return None if end is None else self._backward(beginning, last, end)

    def _free(self, opened: Order) -> FloatArray | None:
        """The value of a free search after some boxes; axes as in :meth:`_backward`."""
        inside, grid = set(opened), self.grid
        needed = [v for v in opened if not inside.issuperset(self.children[v])]
        wide = 1 if self.prizes == 1 else self.held
        size = prod(self.states[v] for v in needed) * wide * len(grid)
        self.looked_at += size
        if size > MOST_SITUATIONS:
            return None
        # P(no box that is closed now brings a tree above x), by the states that matter
        none = [np.ones([1] * len(needed) + [len(grid)]) for _ in self.levels]
        for v, up in enumerate(self.parent):
            if up < 0 and v not in inside:
                none[self.tree[v]] = none[self.tree[v]] * self.below[v][0]
        for i, v in enumerate(needed):
            rest = np.ones((self.states[v], len(grid)))
            for u in self.children[v]:
                if u not in inside:
                    rest = rest * self.below[u]
            shape = [1] * len(needed) + [len(grid)]
            shape[i] = len(rest)
            none[self.tree[v]] = none[self.tree[v]] * rest.reshape(shape)
        if self.prizes == 1:  # the area above each level in hand
            area = np.zeros(none[0].shape)
            steps = (1.0 - none[0][..., :-1]) * np.diff(grid)
            area[..., :-1] = steps[..., ::-1].cumsum(axis=-1)[..., ::-1]
            found = self.levels[0] + area[..., np.searchsorted(grid, self.levels[0])]
            if self.outside == NOTHING:  # too far below the rest to be added to it
                sure = grid[1] + area[..., 1] if len(grid) > 1 else NOTHING
                found[..., 0] = np.where(none[0][..., 0] > 0, NOTHING, sure)
            return np.asarray(found)
        for t, levels in enumerate(self.levels):
            shape = [1] * len(self.levels) + [len(grid)]
            shape[t] = len(levels)
            held = (grid >= levels[:, None]).reshape(shape)
            free = none[t].reshape(*none[t].shape[:-1], *[1] * len(self.levels), len(grid))
            none[t] = free * held
        return sum_of_largest(none, grid, self.outside, self.prizes)

    def _backward(self, order: Order, last: list[int], value: FloatArray) -> float | None:
        """From the values at the end of an order to its start; None: too many situations at a step.

        ``last[v]`` is the place in the order up to which the state of box v matters. Values have
        an axis for the state of each such box, in the order of opening, then one for each tree.
        """
        place = {v: i for i, v in enumerate(order)}
        axes = [v for v in order if last[v] >= len(order)]
        for v in reversed(order):
            up, t = self.parent[v], self.tree[v]
            if axes and axes[-1] == v:  # the state selects a slice of the values
                a = len(axes) - 1
                slices = (value.take(y, axis=a) for y in range(self.states[v]))
                shown = [x.take(h, axis=a + t) for x, h in zip(slices, self.hand[v], strict=True)]
                value = np.stack(shown)
                axes.pop()
            else:
                a = len(axes) + t
                value = np.moveaxis(value.take(self.hand[v], axis=a), a, 0)
            shape, law = value.shape[1:], self.laws[v]
            if up in axes:  # further children of the parent come later
                j = axes.index(up)
                moved = np.moveaxis(value, j + 1, 1)
                flat = moved.reshape(*moved.shape[:2], -1)
                mixed = np.einsum("sy,ysr->sr", law, flat) - self.costs[v]
                value = np.moveaxis(mixed.reshape(moved.shape[1:]), 0, j)
            else:
                mixed = (law @ value.reshape(len(value), -1) - self.costs[v]).reshape(-1, *shape)
                if up >= 0:
                    j = sum(place[u] < place[up] for u in axes)
                    axes.insert(j, up)
                    value = np.moveaxis(mixed, 0, j)
                else:
                    value = mixed[0]
            self.looked_at += value.size
            if value.size > MOST_SITUATIONS:
                return None
            value = np.maximum(self.stop, value)
        return float(value.flat[0])


class _Search:
    """The best order found so far, and how many more may be examined."""

    def __init__(
        self, values: OrderValues, start: Order, room: int, time_limit: float | None
    ) -> None:
        self.values, self.start, self.room = values, start, room
        self.ends_at = None if time_limit is None else time.monotonic() + time_limit
        numbers = values.grid[values.grid > NOTHING]
        self.slack = _ROUNDING * float(np.ptp(numbers)) if len(numbers) else 0.0
        self.best, self.found = float(values.stop.flat[0]), Order()
        self.bound, self.proven = np.inf, False

    def spent(self) -> bool:
        """Whether the search must end."""
        late = self.ends_at is not None and time.monotonic() > self.ends_at
        return self.left() <= 0 or late

    def left(self) -> int:
        """How many more orders may be examined: one that takes much work counts for several."""
        return self.room - self.values.looked_at // _WORK

    def improve(self) -> None:
        """Put likely boxes in order, then more and more, moving runs of boxes as long as it helps.

        More boxes at the end never hurt, because the search may stop before them.
        """
        share, order = self.left() // 2, Order()
        sizes = [s for s in _SIZES if s < len(self.start)] + [len(self.start)]
        for size in sizes:
            # the likeliest boxes not in the order yet, each after its parent, come last
            order += tuple(v for v in self.start[:size] if v not in order)
            enough = self.left() - share // len(sizes)
            by_index = in_turn(self.values.forest, order, self.values.rank)
            value, other = self._examined(order), self._examined(by_index)
            if other is not None and (value is None or other > value):
                value, order = other, by_index
            better = value is not None
            while better and self.left() > enough and not self.spent():
                better = False
                for changed in self._neighbors(order):
                    if self.left() <= enough or self.spent():
                        break
                    earned = self._examined(changed)
                    if earned is not None and value is not None and earned > value + self.slack:
                        order, value, better = changed, earned, True
                        break
            if value is None or self.spent():  # too many situations, or too little time
                return

    def _examined(self, order: Order) -> float | None:
        self.room -= 1
        value = self.values.stopping(order)
        if value is None:
            return value
        # of equally long orders that differ by rounding alone, that with the lowest numbers first
        tied = len(order) == len(self.found) and abs(value - self.best) <= self.slack
        if order < self.found if tied else value > self.best:
            self.best, self.found = value, order
        return value

    def _neighbors(self, order: Order) -> Iterator[Order]:
        """Orders in which a run of boxes comes earlier, the first boxes first."""
        parent = self.values.parent
        for i in range(1, len(order)):
            for length in _SHIFTS:
                for shift in _SHIFTS:
                    j = i - shift
                    if j < 0 or i + length > len(order):
                        break
                    run, passed = order[i : i + length], order[j:i]
                    if not any(parent[v] in passed for v in run):
                        yield order[:j] + run + passed + order[i + length :]

    def prove(self) -> None:
        """Branch and bound, the beginning that leaves most hope first."""
        values, class_of = self.values, Plan.of(self.values.forest).class_of
        hope = values.going_on(())
        self.bound = np.inf if hope is None else hope
        heap: list[tuple[float, Order]] = [(-self.bound, ())]
        while heap:
            self.bound = -heap[0][0]
            if self.bound <= self.best + self.slack:
                break
            if self.spent():
                return
            ceiling, beginning = heapq.heappop(heap)
            opened = set(beginning)
            first: dict[tuple[int, int], int] = {}
            for v, up in enumerate(values.parent):
                if v not in opened and (up < 0 or up in opened):
                    # of equal boxes the one of lowest number comes first
                    first.setdefault((up, int(class_of[v])), v)
            for v in first.values():
                longer = (*beginning, v)
                self._examined(longer)
                hope = values.going_on(longer)
                hope = -ceiling if hope is None else min(hope, -ceiling)
                if hope > self.best + self.slack:
                    heapq.heappush(heap, (-hope, longer))
        self.bound, self.proven = self.best, True
