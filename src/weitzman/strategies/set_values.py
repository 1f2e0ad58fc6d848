r"""What a fixed set earns with discounting, a risk tolerance or several prizes, and a good set.

Opening a set S, whatever is seen, earns :math:`E[\prod_{u \in S} m_u \max r]` less the spend. Both
come from one pass up the forest with the weights :math:`P\,m` (sections 11 to 13 of the theory
page). What opening v after S costs, :math:`E[\prod_{u \in S} m_u\, c_v]`, depends on the set S and
not on its order. So the best order of every set follows from the best orders of the sets with one
box less, and all sets of a small forest can be tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush

import numpy as np

from .._common.arrays import FloatArray
from ..engine.indices import Policy
from ..engine.solution import mean_cost
from ..engine.weights import Weights
from ..forest.model import Forest
from .copies import parents_first, places
from .rewards_in_hand import sum_of_largest
from .thumb_rules import everything

Members = frozenset[int]
Order = tuple[int, ...]
_FEW = 64  # boxes of a forest whose sets are improved box by box
_ROUNDING = 1e-12  # gains, as a share of the range of the rewards, that are only rounding


class SetValues:
    """Values of sets of a forest without copies, as numbers of the recursion: higher is better."""

    def __init__(self, forest: Forest) -> None:
        f, self.weights = forest, Weights.of(forest)
        w = self.weights
        self.order = parents_first(everything(f))
        self.parent: list[int] = f.parent.tolist()
        self.laws = [w.laws[int(i)] for i in w.law]
        self.costs = [mean_cost(f, v) for v in range(len(f))] if w.tolerance == 0 else None
        finite = w.rewards[np.isfinite(w.rewards) & (w.rewards > w.outside)]
        self.grid = np.unique(np.append(finite, w.outside))
        at, own = f.rewards.start[f.reward].tolist(), f.rewards.shape[f.reward, 1].tolist()
        self.not_above = [
            (self.grid >= w.rewards[a : a + k, None]).astype(np.float64)
            for a, k in zip(at, own, strict=True)
        ]
        self.places = places(f)
        self.slack = _ROUNDING * float(np.ptp(finite)) if len(finite) else 0.0
        self._ratio = [self._patience(v) for v in range(len(f))]
        self._worth: dict[Members, float] = {}

    def ready(self, members: Members) -> list[int]:
        """Boxes that can be opened once the members are."""
        return [
            v for v, up in enumerate(self.parent) if v not in members and (up < 0 or up in members)
        ]

    def reward(self, members: Members) -> float:
        """The expected reward, discounted or as a utility, of opening all members."""
        if members not in self._worth:
            found = self._passed(members, lambda v: self.not_above[v])
            one = np.ones(len(self.grid))
            if self.places.prizes > 1:
                trees = int(self.places.tree.max()) + 1
                none = [found.get(t, one) for t in range(trees)]
                outside = self.weights.outside
                self._worth[members] = sum_of_largest(
                    np.array(none), self.grid, outside, self.places.prizes
                )
            else:
                mass = np.diff(found.get(0, one), prepend=0.0)
                some = mass > 0
                self._worth[members] = float(self.grid[some] @ mass[some])
        return self._worth[members]

    def step(self, members: Members, box: int) -> float:
        """What opening a box costs on average once the members are open, discounted."""
        if self.costs is None:
            return 0.0
        found = self._passed(members, lambda v: np.ones((self.laws[v].shape[1], 1)), box)
        return float(np.prod([x[0] for x in found.values()]))

    def _passed(
        self, members: Members, own: Callable[[int], FloatArray], priced: int = -1
    ) -> dict[int, FloatArray]:
        """For each tree the weighed mean of the product of what its members show.

        The box ``priced`` counts with its cost instead.
        """
        below: dict[int, FloatArray] = {}
        out: dict[int, FloatArray] = {}
        for v in reversed(self.order):
            if v == priced:
                assert self.costs is not None, "costs that add up"
                up = self.costs[v][:, None]
            elif v in members:
                up = self.laws[v] @ (own(v) * below.pop(v, np.ones((1, 1))))
            else:
                continue
            above, tree = self.parent[v], int(self.places.tree[v])
            if above >= 0:
                below[above] = below[above] * up if above in below else up
            else:
                out[tree] = out[tree] * up[0] if tree in out else up[0]
        return out

    def sequence(self, members: Members) -> Order:
        """An order with cheap and slow boxes early, parents before children."""
        inside: dict[int, list[int]] = {}
        for v in members:
            inside.setdefault(self.parent[v], []).append(v)
        ready = [(self._ratio[v], v) for v in inside.get(-1, [])]
        heapify(ready)
        out: list[int] = []
        while ready:
            _, v = heappop(ready)
            out.append(v)
            for u in inside.get(v, []):
                heappush(ready, (self._ratio[u], u))
        return tuple(out)

    def _patience(self, v: int) -> float:
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
            open_now |= {v}
        return self.reward(members) - spend


def best_set(values: SetValues, starts: Sequence[Members], room: int) -> tuple[Order, bool]:
    """The best set in its order, and whether it is the best of all."""
    found = _every_set(values, room)
    if found is not None:
        return found, True
    if len(values.parent) > _FEW:
        return values.sequence(max(starts, key=values.value)), False
    best = max((_improved(values, start, room) for start in starts), key=values.value)
    return values.sequence(best), False


def _every_set(values: SetValues, room: int) -> Order | None:
    """All sets, the smaller ones first; None if there are more than ``room``."""
    layer: dict[Members, tuple[float, Order]] = {frozenset(): (0.0, ())}
    found: Order = ()
    best, seen = values.reward(frozenset()), 1
    while layer:
        larger: dict[Members, tuple[float, Order]] = {}
        for members, (spend, order) in layer.items():
            for v in values.ready(members):
                more, cost = members | {v}, spend + values.step(members, v)
                if more not in larger or cost < larger[more][0]:
                    larger[more] = cost, (*order, v)
        seen += len(larger)
        if seen > room:
            return None
        for members, (spend, order) in larger.items():
            value = values.reward(members) - spend
            if value > best + values.slack:
                best, found = value, order
        layer = larger
    return found


def _improved(values: SetValues, members: Members, room: int) -> Members:
    """Add a box with all above it, or drop one with all below it, as long as that helps."""
    value = values.value(members)
    while room > 0:
        moves = [_with(values, members, v) for v in range(len(values.parent)) if v not in members]
        moves += [_without(values, members, v) for v in members]
        room -= len(moves)
        best = max(moves, key=values.value, default=members)
        if values.value(best) <= value + values.slack:
            break
        members, value = best, values.value(best)
    return members


def _with(values: SetValues, members: Members, v: int) -> Members:
    more = {v}
    while (v := values.parent[v]) >= 0:
        more.add(v)
    return members | more


def _without(values: SetValues, members: Members, v: int) -> Members:
    gone = {v}
    for u in values.order:
        if values.parent[u] in gone:
            gone.add(u)
    return members - gone


def in_sequence(forest: Forest, order: Sequence[int]) -> Policy:
    """Open these boxes in this order; a box named before its parent is opened right after it."""
    f = forest
    numbers = f.sign * np.append(f.rewards.data, f.outside)
    top = float(np.max(numbers[np.isfinite(numbers)], initial=0.0))
    step = max(1.0, 1e-9 * abs(top))
    sizes = f.laws.shape[f.law, 0]
    index = np.full(len(f), -np.inf)
    index[list(order)] = top + step * np.arange(len(order), 0, -1)
    return Policy.of(f, np.cumsum(sizes) - sizes, f.sign * np.repeat(index, sizes))
