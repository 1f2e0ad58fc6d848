"""Non-adaptive strategies: choose a set of boxes beforehand, open them all, take the best."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._common.numbers import counted, such
from .._common.text import as_html
from ..engine.evaluation import evaluate
from ..engine.solution import Solution
from ..engine.solver import solve
from ..errors import InvalidForest
from ..forest.model import Forest
from .copies import closed, likely_part, parents_first, part, places_lost
from .gains import Gains
from .set_search import branch_and_bound, improve
from .set_values import SetValues, best_set, in_sequence
from .thumb_rules import everything

_SHARES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99)
_SETS = 2000  # examined by default, at most
_LISTED = 300  # boxes of a forest whose sets are improved where time, risk or prizes count
_WORK = 10**9  # spent on that, roughly in nanoseconds


@dataclass(frozen=True, slots=True, eq=False)
class FixedSet:
    """The best set found, to be opened whatever is seen.

    Attributes
    ----------
    forest : Forest
        The forest of the problem, or a part of it, with all copies written out.
    copies : (n,) array of int
        How many copies of each box to open, under each copy of its parent that is opened.
    value : float
        What opening them earns.
    bound : float
        No set earns more (less, when minimizing).
    exact : bool
        Whether this is the best set of all.
    sequence : tuple of int, optional
        With discounting: the order of opening, which decides when costs are paid.
    """

    forest: Forest
    copies: IntArray
    value: float
    bound: float
    exact: bool
    sequence: tuple[int, ...] | None = None

    @property
    def order(self) -> tuple[int, ...]:
        """Numbers of the boxes to open, in an order in which they can be opened."""
        if self.sequence is not None:
            return self.sequence
        return tuple(v for v in parents_first(everything(self.forest)) if self.copies[v])

    @property
    def boxes(self) -> tuple[str, ...]:
        """Names of the boxes to open; with discounting, in the order of opening."""
        some = np.flatnonzero(self.copies).tolist() if self.sequence is None else self.sequence
        return tuple(self.forest.name(v) for v in some)

    def __repr__(self) -> str:
        kind = "best of all" if self.exact else f"none earns more than {self.bound:.8g}"
        boxes = counted(int(np.count_nonzero(self.copies)), "box")
        return f"FixedSet({boxes}, value={self.value:.8g}, {kind})"

    _repr_html_ = as_html


def best_nonadaptive(
    forest: Forest, *, limit: int | None = None, solution: Solution | None = None
) -> FixedSet:
    """The best set of boxes to open as a whole, whatever is seen.

    The set contains the parent of each of its boxes. It is built greedily, line by line, and
    improved by adding lines, dropping branches and exchanging one for another. Sets that the
    optimal policy opens with at least a certain probability are improved in the same way. Then
    branch and bound looks for a better set: on small forests to the end, which proves that there is
    none; otherwise the bound says what could be missed.

    With discounting, a risk tolerance or several prizes all sets of a small forest are looked at.
    Larger forests are searched by adding and dropping boxes, and the bound is the value of the
    optimal policy.

    Parameters
    ----------
    forest : Forest
    limit : int, optional
        Most sets to examine in each of these ways. By default as many as take about a second; with
        more, larger forests are searched to the end.
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
    solved = solve(forest) if solution is None else solution
    if not forest.is_plain:
        return _with_terms(forest, _SETS if limit is None else limit, solved)
    sign = forest.sign
    ceiling = sign * solved.value + solved.gap
    optimum = evaluate(solved)
    copies, value = max(_candidates(forest, optimum.opened), key=lambda pair: sign * pair[1])
    full, whole = likely_part(forest, optimum.opened)
    gains = Gains(full)
    room = min(_SETS, _WORK // gains.work) if limit is None else limit
    if room < 1:
        return FixedSet(forest, copies, value, sign * ceiling, False)
    first = copies
    if full is not forest:
        first, _ = max(_candidates(full, evaluate(solve(full)).opened), key=lambda c: sign * c[1])
    starts: list[list[int]] = [[], np.flatnonzero(first).tolist()]
    starts = [start for start in starts if not gains.too_many(start)]
    members = max((improve(gains, start, room) for start in starts), key=gains.value_at)
    members, bound, exact = branch_and_bound(full, gains, members, room)
    found = value_of_set(full, members)
    if not (exact and whole) and sign * value > sign * found:  # of a set too large to improve
        return FixedSet(forest, copies, value, sign * ceiling, False)
    chosen = np.zeros(len(full), np.int64)
    chosen[members] = 1
    if exact and whole:
        return FixedSet(full, chosen, found, found, True)
    return FixedSet(full, chosen, found, sign * min(bound if whole else ceiling, ceiling), False)


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
        policy = in_sequence(some, list(dict.fromkeys(place[v] for v in order)))
    lost = places_lost(forest, copies)
    return evaluate(policy).value + (lost * forest.outside if lost else 0.0)


def _with_terms(forest: Forest, limit: int, solved: Solution) -> FixedSet:
    """The best set found where time, risk or several prizes count."""
    sign, bound = forest.sign, solved.value + forest.sign * solved.gap
    opened = evaluate(solved).opened
    copies, value = max(_candidates(forest, opened), key=lambda pair: sign * pair[1])
    found = FixedSet(forest, copies, value, bound, False)
    full, whole = likely_part(forest, opened)
    if len(full) <= _LISTED:
        first = copies
        if full is not forest:
            often = _candidates(full, evaluate(solve(full)).opened)
            first, _ = max(often, key=lambda pair: sign * pair[1])
        values = SetValues(full)
        starts = [frozenset[int](), frozenset(np.flatnonzero(first).tolist())]
        order, exact = best_set(values, starts, limit)
        chosen = np.zeros(len(full), np.int64)
        chosen[list(order)] = 1
        earned = value_of_copies(full, chosen, order)
        sure = exact and whole
        if sure or sign * earned >= sign * value:
            found = FixedSet(full, chosen, earned, earned if sure else bound, sure, order)
    if forest.factors is not None and found.sequence is None:
        return replace(found, sequence=_by_number(found))
    return found


def _by_number(found: FixedSet) -> tuple[int, ...]:
    """The order in which :func:`everything` opens a set: the lowest number that can be opened."""
    parent, out = found.forest.parent.tolist(), []
    below: dict[int, list[int]] = {}
    for v in np.flatnonzero(found.copies).tolist():
        below.setdefault(parent[v], []).append(v)
    ready = below.get(-1, [])
    heapify(ready)
    while ready:
        v = heappop(ready)
        out.append(v)
        for u in below.get(v, []):
            heappush(ready, u)
    return tuple(out)


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
