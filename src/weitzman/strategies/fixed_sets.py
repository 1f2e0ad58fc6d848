r"""Non-adaptive strategies: choose a set of boxes beforehand, open them all, take the best.

Opening a set S, whatever is seen, earns :math:`E[\prod_{u \in S} m_u \max r]` less the spend. Both
come from one pass up the forest with the weights :math:`P\,m` (sections 11 to 13 of the theory
page). What opening v after S costs depends on the set S and not on its order, so the best order of
every set follows from the best orders of the sets with one box less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np

from .._common.arrays import FloatArray, IntArray, check_counts
from .._common.numbers import such
from ..engine.evaluation import evaluate
from ..engine.indices import Policy
from ..engine.solution import Solution, mean_cost
from ..engine.solver import solve
from ..engine.weights import Weights, reject_quotas
from ..errors import InvalidArgument, InvalidForest
from ..forest.model import Forest
from .parts import (
    BoundedPlan,
    FixedPlan,
    children_first,
    closed,
    in_turn,
    likely_first,
    likely_part,
    part,
    places,
    places_lost,
    sum_of_largest,
)
from .thumb_rules import everything

_SHARES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99)
_SETS = 5000  # examined by default in each way: all sets of 12 boxes
_IMPROVED = 200  # boxes of a forest whose sets are improved box by box
_ROUNDING = 1e-12  # differences of values, as a share of the range, that are only rounding

Members = frozenset[int]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FixedSet(BoundedPlan):
    """The best set found, to be opened whatever is seen.

    Attributes
    ----------
    forest : Forest
        The forest of the problem, or a part of it, with all copies written out.
    order : tuple of int
        Numbers of the boxes in the order of opening, which decides when discounted costs are paid.
    boxes : tuple of str
        Their names.
    value, bound : float
        What opening them earns, and what no set exceeds (undercuts, when minimizing).
    exact : bool
        Whether this is the best set of all.
    copies : (n,) array of int
        How many copies of each box to open, under each copy of its parent that is opened.
    """

    copies: IntArray

    def columns(self) -> dict[str, list[Any]]:
        """The boxes in the order of opening, and how many copies of each to open."""
        copies = self.copies[list(self.order)].tolist()
        return {"number": list(self.order), "box": list(self.boxes), "copies": copies}


def best_nonadaptive(
    forest: Forest, *, limit: int | None = None, solution: Solution | None = None
) -> FixedSet:
    """The best set of boxes to open as a whole, whatever is seen.

    The set contains the parent of each of its boxes. All sets of a small forest are examined. On a
    larger one, the sets that the optimal policy opens with at least a certain probability are
    candidates. Among the 200 likeliest boxes, the best of them is improved by adding a box with all
    boxes above it, and by dropping a box with all boxes below it. Branch and bound follows, because
    the expected maximum is a submodular function of the set. With discounting or a risk tolerance,
    the bound is the value of the optimal policy.

    Parameters
    ----------
    forest : Forest
    limit : int, optional
        Most sets to examine in each of these ways, 5000 by default: all sets of 12 boxes.
    solution : Solution, optional
        The solution of the forest, if it is already known.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.Builder().add("A", cost=1, outcomes={0: 0.5, 10: 0.5})
    >>> chest = chest.add("B", cost=9, outcomes={0: 0.5, 10: 0.5}).build()
    >>> best_nonadaptive(chest).boxes
    ('A',)
    """
    forest.must_end("a fixed set")
    check_counts(limit=limit)
    solved = solve(forest) if solution is None else solution
    sign, room = forest.sign, _SETS if limit is None else limit
    bound = solved.value + sign * solved.gap
    opened = evaluate(solved).opened
    copies, value = max(_candidates(forest, opened), key=lambda pair: sign * pair[1])
    line = best_line(forest)
    if sign * line.value > sign * value:
        copies, value = np.bincount(line.order, minlength=len(forest)), line.value
    value = sign * min(sign * value, sign * solved.value)  # above it is only rounding
    full, whole = likely_part(forest, opened)
    if len(full) > _IMPROVED:
        likely = likely_first(full, opened if full is forest else evaluate(solve(full)).opened)
        kept = np.isin(np.arange(len(full)), likely[:_IMPROVED])
        full, whole = part(full, 1 * kept), False
    values = SetValues(full)
    order = _every_set(values, room)
    exact, ceiling = order is not None, np.inf
    if order is None:
        first = copies
        if full is not forest:
            most = evaluate(solve(full)).opened
            first, _ = max(_candidates(full, most), key=lambda pair: sign * pair[1])
        starts = [frozenset[int](), frozenset(np.flatnonzero(first).tolist())]
        best = max((_improved(values, s, room) for s in starts), key=values.value)
        if values.submodular:
            best, ceiling, exact = _bounded(values, best, room)
        order = values.sequence(best)
    chosen = np.zeros(len(full), np.int64)
    chosen[list(order)] = 1
    earned = value_of_copies(full, chosen, order)
    if full.prizes < forest.prizes:  # trees were left out
        earned += (forest.prizes - full.prizes) * forest.outside
    earned = sign * min(sign * earned, sign * solved.value)
    exact = exact and whole
    if whole:
        ceiling = sign * earned if exact else min(ceiling, sign * bound)
        bound = sign * max(ceiling, sign * earned, -np.inf if exact else sign * value)
    is_better = exact or sign * earned >= sign * value
    if is_better:
        forest, copies, value = full, chosen, earned
    if forest.factors is None or not is_better:
        order = in_turn(forest, np.flatnonzero(copies).tolist())
    return FixedSet(forest, order, value, bound, exact, copies)


def value_of_set(forest: Forest, boxes: Iterable[str | int]) -> float:
    """What opening these boxes earns, whatever they show; all copies of each.

    With discounting the boxes are opened in the order in which they are named; a box named before
    its parent is opened right after its parent.

    Examples
    --------
    >>> import weitzman
    >>> pair = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=2)
    >>> value_of_set(pair, [0])
    5.5
    """
    forest.must_end("a fixed set")
    copies = np.zeros(len(forest), np.int64)
    order = [forest.box(b) for b in boxes]
    copies[order] = forest.count[order]
    lost = np.flatnonzero((copies > 0) & (forest.parent >= 0) & (copies[forest.parent] == 0))
    if len(lost):
        v = int(lost[0])
        raise InvalidForest(
            f"a set must hold the parent of each of its boxes, but {forest.name(v)!r} is there and "
            f"{forest.name(int(forest.parent[v]))!r} is not ({such(len(lost), 'box')})."
        )
    return value_of_copies(forest, copies, order)


def value_of_copies(forest: Forest, copies: IntArray, order: Sequence[int] | None = None) -> float:
    """What opening these numbers of copies earns; the parent of each box must be opened, too.

    The order matters with discounting only.
    """
    if not copies.any():
        return forest.prizes * forest.outside
    some = part(forest, copies)
    policy = everything(some)
    if order is not None and forest.factors is not None:
        place = {v: i for i, v in enumerate(np.flatnonzero(copies).tolist())}
        policy = _in_sequence(some, list(dict.fromkeys(place[v] for v in order)))
    lost = places_lost(forest, copies)
    return evaluate(policy).value + (lost * forest.outside if lost else 0.0)


def _in_sequence(forest: Forest, order: Sequence[int]) -> Policy:
    """Open all boxes in this order; a box named before its parent is opened right after it."""
    f = forest
    numbers = f.sign * np.append(f.rewards.data, f.outside)
    top = float(np.max(numbers[np.isfinite(numbers)], initial=0.0))
    step = max(1.0, 1e-9 * abs(top))
    sizes = f.laws.shape[f.law, 0]
    index = np.full(len(f), -np.inf)
    index[list(order)] = top + step * np.arange(len(order), 0, -1)
    return Policy.of(f, np.cumsum(sizes) - sizes, f.sign * np.repeat(index, sizes))


def _candidates(forest: Forest, opened: FloatArray) -> Iterator[tuple[IntArray, float]]:
    """Nothing, everything, and the boxes that the optimal policy opens often enough."""
    yield np.zeros(len(forest), np.int64), forest.prizes * forest.outside
    yield forest.count.copy(), value_of_copies(forest, forest.count)
    up = forest.parent
    wanted = opened / np.maximum(1.0, np.where(up < 0, 1.0, opened[up]))
    seen: set[bytes] = set()
    for times in (1.0, 0.5, 2.0) if forest.count.max() > 1 else (1.0,):
        some = np.clip(np.rint(times * wanted), 1, forest.count).astype(np.int64)
        for share in _SHARES:
            copies = closed(forest, np.where(opened >= share, some, 0))
            if copies.any() and copies.tobytes() not in seen:
                seen.add(copies.tobytes())
                yield copies, value_of_copies(forest, copies)


def ready(parent: Sequence[int], members: Members) -> list[int]:
    """Boxes that can be opened once the members are."""
    return [v for v, up in enumerate(parent) if v not in members and (up < 0 or up in members)]


class SetValues:
    """Values of sets of a forest without copies, as numbers of the recursion: higher is better."""

    def __init__(self, forest: Forest) -> None:
        f, self.forest, self.weights = forest, forest, Weights.of(forest)
        w = self.weights
        self.order = children_first(f)
        self.parent: list[int] = f.parent.tolist()
        self.laws = [w.laws[int(i)] for i in w.law]
        self.costs = [mean_cost(f, v) for v in range(len(f))] if w.tolerance == 0 else None
        self.submodular = w.tolerance == 0 and f.factors is None
        finite = w.rewards[np.isfinite(w.rewards) & (w.rewards > w.outside)]
        self.grid = np.unique(np.append(finite, w.outside))
        at, own = f.rewards.start[f.reward].tolist(), f.rewards.shape[f.reward, 1].tolist()
        self.not_above = [
            (self.grid >= w.rewards[a : a + k, None]).astype(np.float64)
            for a, k in zip(at, own, strict=True)
        ]
        self.blank = [np.ones((k, 1)) for k in own]
        self.places = places(f)
        self.slack = _ROUNDING * float(np.ptp(finite)) if len(finite) else 0.0
        self._fixed: dict[int, float] = {}  # expected costs, where nothing is discounted
        self._worth: dict[tuple[Members, Members], float] = {}
        self._patience = [self._cost_of_delay(v) for v in range(len(f))]

    def reward(self, members: Members, silent: Members = frozenset()) -> float:
        """The expected reward, discounted or as a utility, of opening all members.

        Silent boxes are opened too, but their rewards do not count.
        """
        if (members, silent) not in self._worth:
            found = self._passed(
                members | silent, lambda v: self.blank[v] if v in silent else self.not_above[v]
            )
            w, one = self.weights, np.ones(len(self.grid))
            if self.places.prizes > 1:
                trees = list(found.values())  # all others stay at the outside option
                worth = float(sum_of_largest(trees, self.grid, w.outside, self.places.prizes))
            else:
                mass = np.diff(found.get(0, one), prepend=0.0)
                some = mass > 0
                worth = float(self.grid[some] @ mass[some])
            self._worth[members, silent] = worth
        return self._worth[members, silent]

    def step(self, members: Members, box: int) -> float:
        """What opening a box costs on average once the members are open, discounted."""
        if self.costs is None:
            return 0.0
        if self.forest.factors is None:  # then all that matters is what the boxes above show
            if box not in self._fixed:
                found = self._passed(self.above(box), lambda v: self.blank[v], box)
                self._fixed[box] = float(found[int(self.places.tree[box])][0])
            return self._fixed[box]
        found = self._passed(members, lambda v: self.blank[v], box)
        return float(np.prod([x[0] for x in found.values()]))

    def above(self, box: int) -> Members:
        """All boxes above a box."""
        found = set()
        while (box := self.parent[box]) >= 0:
            found.add(box)
        return frozenset(found)

    def _passed(
        self, members: Members, own: Callable[[int], FloatArray], priced: int = -1
    ) -> dict[int, FloatArray]:
        """For each tree the weighed mean of the product of what its members show.

        The box ``priced`` counts with its cost instead.
        """
        below: dict[int, Any] = {}
        out: dict[int, FloatArray] = {}
        for v in self.order:
            if v == priced:
                assert self.costs is not None, "costs that add up"
                up = self.costs[v][:, None]
            elif v in members:
                up = self.laws[v] @ (own(v) * below.pop(v, 1.0))
            else:
                continue
            above, tree = self.parent[v], int(self.places.tree[v])
            if above >= 0:
                below[above] = below[above] * up if above in below else up
            else:
                out[tree] = out[tree] * up[0] if tree in out else up[0]
        return out

    def sequence(self, members: Members) -> tuple[int, ...]:
        """An order with cheap and slow boxes early, parents before children."""
        return in_turn(self.forest, members, self._patience)

    def _cost_of_delay(self, v: int) -> float:
        if self.costs is None or len(self.weights.defect) == 0:
            return 0.0
        missing = self.weights.missing(v)
        assert missing is not None, "a forest with discounting"
        delay = float(np.mean(missing))
        return float(np.mean(self.costs[v])) / delay if delay > 0 else np.inf

    def value(self, members: Members) -> float:
        """Of opening the members in the order of :meth:`sequence`."""
        spend, open_now = 0.0, frozenset[int]()
        for v in self.sequence(members) if self.costs is not None else ():
            spend += self.step(open_now, v)
            if self.forest.factors is not None:
                open_now |= {v}
        return self.reward(members) - spend

    def hopes(self, members: Members, out: Members) -> dict[int, float]:
        """What adding each box that can be opened, and any below it, can earn at most.

        The expected maximum is submodular: E[M(T)] <= E[M(S)] + the sum over v in T of
        E[M(S + v)] - E[M(S)]. The best T without the boxes left ``out`` is found box by box,
        upward.
        """
        now, net = self.reward(members), [0.0] * (len(self.parent) + 1)
        for v in self.order:
            if v not in members:
                silent = self.above(v) - members
                if not out.isdisjoint(silent | {v}):
                    continue
                gain = self.reward(members | {v}, silent) - now
                net[v] = max(0.0, gain - self.step(frozenset(), v) + net[v])
                if self.parent[v] not in members:  # the spare entry stands above all roots
                    net[self.parent[v]] += net[v]
        return {v: net[v] for v in ready(self.parent, members) if net[v] > 0}


def _bounded(values: SetValues, found: Members, room: int) -> tuple[Members, float, bool]:
    """The best set, a bound on all sets, and whether it is reached: branch and bound.

    A branch has some boxes in and some out; the one with the most hope is split first.
    """
    best, size, number = values.value(found), len(values.parent), 0
    heap: list[tuple[float, int, Members, Members]] = [(-np.inf, 0, frozenset(), frozenset())]
    while heap and -heap[0][0] > best + values.slack:
        if room <= 0 or not np.isfinite(values.reward(heap[0][2])):
            return found, -heap[0][0], False
        ceiling, _, inside, out = heappop(heap)
        value, hope = values.value(inside), values.hopes(inside, out)
        room -= 1 + size // 10
        if value > best:
            best, found = value, inside
        ceiling = max(ceiling, -value - sum(hope.values()))
        if hope and -ceiling > best + values.slack:
            v = max(hope, key=hope.__getitem__)
            heappush(heap, (ceiling, number + 1, inside | {v}, out))
            heappush(heap, (ceiling, number + 2, inside, out | {v}))
            number += 2
    return found, best, True


def _every_set(values: SetValues, room: int) -> tuple[int, ...] | None:
    """The best of all sets, the smaller ones first; None if there are more than ``room``."""
    layer: dict[Members, tuple[float, tuple[int, ...]]] = {frozenset(): (0.0, ())}
    found: tuple[int, ...] = ()
    best, seen = values.reward(frozenset()), 1
    while layer:
        larger: dict[Members, tuple[float, tuple[int, ...]]] = {}
        for members, (spend, order) in layer.items():
            for v in ready(values.parent, members):
                more, cost = members | {v}, spend + values.step(members, v)
                if more not in larger or cost < larger[more][0]:
                    larger[more] = cost, (*order, v)
            if seen + len(larger) > room:
                return None
        seen += len(larger)
        for members, (spend, order) in larger.items():
            value = values.reward(members) - spend
            if value > best + values.slack:
                best, found = value, order
        layer = larger
    return found


def _improved(values: SetValues, members: Members, room: int) -> Members:
    """Add a box with all above it, or drop one with all below it, as long as that helps.

    Whole lines are added: a box that only tells about others is worth nothing by itself.
    """
    value = values.value(members)
    while room > 0:
        moves = [
            members | {v} | values.above(v) for v in range(len(values.parent)) if v not in members
        ]
        moves += [frozenset(u for u in members if v not in values.above(u) | {u}) for v in members]
        room -= len(moves)
        best = max(moves, key=values.value, default=members)
        if values.value(best) <= value + values.slack:
            break
        members, value = best, values.value(best)
    return members


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FixedLine(FixedPlan):
    """A line of boxes from a root downward, chosen in advance.

    Attributes
    ----------
    forest : Forest
    order : tuple of int
        Numbers of the boxes from the root on; one copy of each.
    boxes : tuple of str
        Their names.
    value : float
        What opening all of them earns, whatever they show: the paper's fixed line. No other line
        within the allowed depth earns more in this way.
    followed : float
        What opening them one by one earns, stopping when that is best.
    looked_at : int
        Boxes that the search looked at.
    """

    followed: float
    looked_at: int

    def __repr__(self) -> str:
        return self._said(f"followed={self.followed:.8g}")


def best_line(forest: Forest, *, depth: int | None = None) -> FixedLine:
    """The line from a root that is best opened as a whole, whatever is seen.

    This is the paper's approximation for forests, for any laws and costs: the search looks at all
    lines from the roots and drops a line once even the top reward in its next box would not make up
    for the costs. With several prizes a line fills one place; all other places are worth the
    outside option.

    Parameters
    ----------
    forest : Forest
    depth : int, optional
        Most boxes of the line: the paper's bound. By default there is no bound.

    Examples
    --------
    >>> import weitzman
    >>> tree = weitzman.Builder().add("A", cost=1, outcomes={0: 0.5, 10: 0.5})
    >>> tree = tree.add("B", parent="A", cost=2, outcomes={0: {0: 0.2, 10: 0.8}, 10: {10: 1}})
    >>> line = best_line(tree.build())
    >>> line.boxes, line.value, line.followed  # B is opened in vain after 10, unless one may stop
    (('A', 'B'), 6.0, 7.0)
    """
    if not isinstance(forest, Forest):
        raise InvalidArgument(
            f"best_line needs a Forest, but got a {type(forest).__name__}. A solution has one: "
            f"solution.forest."
        )
    forest.must_end("a fixed line")
    reject_quotas(forest, "a strategy of another kind")
    check_counts(depth=depth)
    line, looked_at = _line(forest, len(forest) if depth is None else depth)
    if not line:  # nothing is better than any line
        nothing = forest.prizes * forest.outside
        return FixedLine(forest, (), nothing, nothing, looked_at)
    copies = np.zeros(len(forest), np.int64)
    copies[line] = 1
    value = value_of_copies(forest, copies)
    lost = places_lost(forest, copies)
    followed = solve(part(forest, copies)).value + (lost * forest.outside if lost else 0.0)
    return FixedLine(forest, tuple(line), value, followed, looked_at)


def _line(forest: Forest, depth: int) -> tuple[list[int], int]:
    """The best line to open as a whole, and how many boxes were looked at.

    Lines are followed down each tree with the weighed law of the last state and the best reward,
    a step function that jumps only at the rewards on the line.
    """
    f, w, policy = forest, Weights.of(forest), everything(forest)
    timed = w.tolerance == 0
    top = float(np.max(w.rewards[np.isfinite(w.rewards)], initial=w.outside))
    top = max(top, 0.0) if f.factors is not None else top
    floor = w.outside
    if not np.isfinite(floor):  # below all rewards: what stands there must never be taken
        floor = float(np.min(w.rewards[np.isfinite(w.rewards)], initial=0.0)) - 1.0
    best, end, looked_at = w.outside, -1, 0
    start = np.array([floor]), np.ones((1, 1))
    stack = [(v, *start, 0.0, 1) for v in policy.root[::-1].tolist()]
    while stack:
        v, points, joint, spent, length = stack.pop()
        paid = spent + (float(mean_cost(f, v) @ joint[:, -1]) if timed else 0.0)
        if top * float(joint[:, -1].sum()) - paid <= best:
            continue
        looked_at += 1
        a, k = int(f.rewards.start[f.reward[v]]), int(f.rewards.shape[f.reward[v], 1])
        own = w.rewards[a : a + k]
        some = np.union1d(points, own[own > floor])
        before = joint[:, np.searchsorted(points, some, side="right") - 1]
        here = (w.laws[int(w.law[v])].T @ before) * (some >= own[:, None])
        mass = np.diff(here.sum(axis=0), prepend=0.0)
        level = np.append(w.outside, some[1:])
        value = float(level[mass > 0] @ mass[mass > 0]) - paid
        if value > best:
            best, end = value, v
        if length < depth:
            below = policy.child[policy.child_at[v] : policy.child_at[v + 1]].tolist()
            stack += [(u, some, here, paid, length + 1) for u in below]
    line: list[int] = []
    while end >= 0:
        line.append(end)
        end = int(f.parent[end])
    return line[::-1], looked_at
