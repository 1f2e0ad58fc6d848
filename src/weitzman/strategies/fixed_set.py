"""Non-adaptive strategies: choose a set of boxes beforehand, open them all, take the best."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from .._types import FloatArray, IntArray
from ..errors import InvalidForest
from ..evaluate import evaluate
from ..model import Forest
from ..plan import Plan
from ..solution import Solution
from ..solve import solve
from ._gains import Gains
from .copies import closed, likely_part, part
from .rules import everything

_SHARES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99)
_ROUNDING = 1e-12  # differences of values, as a share of the range, that are only rounding
_WORK = 10**9  # spent on examining sets, roughly in nanoseconds


@dataclass(frozen=True, slots=True, eq=False)
class FixedSet:
    """The best set found, to be opened whatever is seen.

    Attributes
    ----------
    forest : Forest
        That of the problem, or a part of it with all copies written out.
    copies : (n,) array of int
        How many copies of each box to open, under each copy of its parent that is opened.
    value : float
        What opening them earns.
    bound : float
        No set earns more (less, when minimising).
    exact : bool
        Whether this is the best set of all.
    """

    forest: Forest
    copies: IntArray
    value: float
    bound: float
    exact: bool

    @property
    def boxes(self) -> tuple[str, ...]:
        """Names of the boxes to open."""
        return tuple(self.forest.name(v) for v in np.flatnonzero(self.copies).tolist())

    def __repr__(self) -> str:
        kind = "best of all" if self.exact else f"none earns more than {self.bound:.8g}"
        return f"FixedSet({np.count_nonzero(self.copies)} boxes, value={self.value:.8g}, {kind})"


def best_nonadaptive(
    forest: Forest, *, limit: int = 2000, solution: Solution | None = None
) -> FixedSet:
    """The set of boxes that is best opened as a whole, whatever is seen.

    The set holds with a box its parent. It is built greedily, line by line, and improved by adding
    lines, dropping branches and changing one for the other; so are the sets that the optimal policy
    opens with at least a certain probability. Then branch and bound looks for a better one: on
    small forests to the end, which proves that there is none; otherwise the bound says what could
    be missed.

    Parameters
    ----------
    forest : Forest
    limit : int
        Sets to examine, at most. Fewer where examining one is costly.
    solution : Solution, optional
        That of the forest, if it is at hand.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.Builder().add("A", cost=1, rewards={0: 0.5, 10: 0.5})
    >>> chest = chest.add("B", cost=9, rewards={0: 0.5, 10: 0.5}).build()
    >>> best_nonadaptive(chest).boxes
    ('A',)
    """
    solved = solve(forest) if solution is None else solution
    sign = -1.0 if forest.minimise else 1.0
    ceiling = sign * solved.value + solved.gap
    optimum = evaluate(solved)
    copies, value = max(_candidates(forest, optimum.opened), key=lambda pair: sign * pair[1])
    full, whole = likely_part(forest, optimum.opened)
    gains = Gains(full)
    room = min(limit, _WORK // gains.work)
    if room == 0:
        return FixedSet(forest, copies, value, sign * ceiling, False)
    first = copies
    if full is not forest:
        first, _ = max(_candidates(full, evaluate(solve(full)).opened), key=lambda c: sign * c[1])
    starts: list[list[int]] = [[], np.flatnonzero(first).tolist()]
    members = max((_improve(gains, start, room) for start in starts), key=gains.value)
    members, bound, exact = _branch(full, gains, members, room)
    found = value_of_set(full, members)
    if not whole and sign * value > sign * found:  # what was left out may be worth opening
        return FixedSet(forest, copies, value, sign * ceiling, False)
    chosen = np.zeros(len(full), np.int64)
    chosen[members] = 1
    if exact and whole:
        return FixedSet(full, chosen, found, found, True)
    return FixedSet(full, chosen, found, sign * min(bound if whole else ceiling, ceiling), False)


def value_of_set(forest: Forest, boxes: Iterable[str | int]) -> float:
    """What opening these boxes earns, whatever they show; all copies of each.

    Examples
    --------
    >>> import weitzman
    >>> pair = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=2)
    >>> value_of_set(pair, [0])
    5.5
    """
    copies = np.zeros(len(forest), np.int64)
    for v in (forest.box(b) for b in boxes):
        copies[v] = forest.count[v]
    lost = np.flatnonzero((copies > 0) & (forest.parent >= 0) & (copies[forest.parent] == 0))
    if len(lost):
        v = int(lost[0])
        raise InvalidForest(
            f"a set must hold with a box its parent, but {forest.name(v)!r} is there and "
            f"{forest.name(int(forest.parent[v]))!r} is not ({len(lost)} such boxes)."
        )
    return value_of_copies(forest, copies)


def value_of_copies(forest: Forest, copies: IntArray) -> float:
    """What opening so many copies of each box earns; with a box its parent must be there."""
    if not copies.any():
        return forest.outside
    return evaluate(everything(part(forest, copies))).value


def _candidates(forest: Forest, opened: FloatArray) -> Iterator[tuple[IntArray, float]]:
    """Nothing, everything, and the boxes that the optimal policy opens often enough."""
    yield np.zeros(len(forest), np.int64), forest.outside
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


# -- sets without copies, examined one by one ----------------------------------------------------


def _improve(gains: Gains, members: list[int], room: int) -> list[int]:
    """Add a line, drop a branch, or else change one for the other, as long as that helps.

    Lines, not single boxes: a box that only tells about others, or only leads to them, is worth
    nothing by itself. Up to ``room`` sets are examined.
    """
    slack = _ROUNDING * float(np.ptp(gains.grid))
    value = gains.value(members)
    while room > 0:
        moves = [_with_line(gains, members)]
        branches = _branches(gains, members)
        room -= 1 + len(branches) * gains.share_of_work(members)
        rests = [[v for v in members if v not in b] for b in branches] if room > 0 else []
        moves += [(gains.value(rest), rest) for rest in rests]
        if max(moves)[0] <= value + slack and room > len(rests):
            moves += [_with_line(gains, rest) for rest in rests]
            room -= len(rests)
        best, changed = max(moves)
        if best <= value + slack:
            break
        members, value = changed, best
    return members


def _with_line(gains: Gains, members: list[int]) -> tuple[float, list[int]]:
    """The set with the best line added to it, and what that earns."""
    net = gains.lines(members).net
    end = int(net.argmax())
    if net[end] <= 0:
        return gains.value(members), members
    return gains.value(members) + float(net[end]), members + missing(gains, end, members)


def missing(gains: Gains, end: int, members: Iterable[int]) -> list[int]:
    """The boxes from the set down to this one, the last first."""
    inside, line = {-1, *members}, []
    while end not in inside:
        line.append(end)
        end = int(gains.parent[end])
    return line


def _branches(gains: Gains, members: list[int]) -> list[set[int]]:
    """What can be dropped: each leaf of the set, with more and more of the line above it."""
    children = np.bincount(gains.parent[members] + 1, minlength=len(gains.cost) + 1)[1:]
    found = []
    for v in members:
        branch: set[int] = set()
        while v >= 0 and children[v] == (1 if branch else 0):
            branch = branch | {v}
            found.append(branch)
            v = int(gains.parent[v])
    return found


def _branch(
    forest: Forest, gains: Gains, members: list[int], room: int
) -> tuple[list[int], float, bool]:
    """Best set, a bound on all sets, and whether the bound is reached: depth-first search."""
    class_of = Plan.of(forest).class_of
    best, found = gains.value(members), members
    slack = _ROUNDING * float(np.ptp(gains.grid))
    stack: list[tuple[frozenset[int], frozenset[int], float]] = [
        (frozenset(), frozenset(), np.inf)
    ]  # members, boxes left out, bound
    while stack and room > 0:
        inside, out, ceiling = stack.pop()
        if ceiling <= best + slack:
            continue
        room -= 1
        value, gain = gains.of(inside)
        if value > best:
            best, found = value, sorted(inside)
        hope, ready = _hope(gains, inside, out, gain - gains.cost)
        ceiling = min(ceiling, value + float(hope[ready].sum()))
        if len(ready) == 0 or ceiling <= best + slack:
            continue
        v = int(ready[hope[ready].argmax()])
        if gains.cost[v] > 0:  # a free box is in some best set
            stack.append((inside, out | _alike(gains, class_of, v), ceiling))
        stack.append((inside | {v}, out, ceiling))
    bound = max([best, *(ceiling for _, _, ceiling in stack)])
    return found, bound, bound <= best + slack


def _hope(
    gains: Gains, inside: frozenset[int], out: frozenset[int], net: FloatArray
) -> tuple[FloatArray, IntArray]:
    """The most that adding each box, with any boxes below it, can earn; those that can be added."""
    member = np.zeros(len(net) + 1, np.bool_)
    member[[*inside, -1]] = True  # the last entry stands above all roots
    barred = member.copy()
    barred[[*out]] = True
    hope = np.zeros(len(net) + 1)
    for boxes in reversed(gains.levels):
        hope[boxes] = np.where(barred[boxes], 0.0, np.maximum(0.0, net[boxes] + hope[boxes]))
        np.add.at(hope, gains.parent[boxes], hope[boxes])
    return hope[:-1], np.flatnonzero((hope[:-1] > 0) & member[gains.parent])


def _alike(gains: Gains, class_of: IntArray, v: int) -> set[int]:
    """The box and all siblings just like it: those that are no members yet are left out with it."""
    same = (gains.parent == gains.parent[v]) & (class_of == class_of[v])
    return set(np.flatnonzero(same).tolist())
