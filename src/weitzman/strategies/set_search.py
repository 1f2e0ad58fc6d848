"""The search for the best fixed set on a forest without copies: by improvement, then by bounds."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .._common.arrays import FloatArray, IntArray
from ..engine.plan import Plan
from ..forest.model import Forest
from .gains import Gains

_ROUNDING = 1e-12  # differences of values, as a share of the range, that are only rounding


def improve(gains: Gains, members: list[int], room: int) -> list[int]:
    """Add a line, drop a branch, or else change one for the other, as long as that helps.

    Lines, not single boxes: a box that only tells about others, or only leads to them, is worth
    nothing by itself. Up to ``room`` sets are examined, and none whose tables take too much memory.
    """
    slack = _ROUNDING * float(np.ptp(gains.grid))
    value = gains.value_at(members)
    while room > 0 and not gains.too_many(members):
        moves = [_with_line(gains, members)]
        branches = _branches(gains, members)
        room -= 1 + len(branches) * gains.share_of_work(members)
        rests = [[v for v in members if v not in b] for b in branches] if room > 0 else []
        moves += [(gains.value_at(rest), rest) for rest in rests]
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
        return gains.value_at(members), members
    return gains.value_at(members) + float(net[end]), members + missing(gains, end, members)


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


def branch_and_bound(
    forest: Forest, gains: Gains, members: list[int], room: int
) -> tuple[list[int], float, bool]:
    """Best set, a bound on all sets, and whether the bound is reached: depth-first search."""
    class_of = Plan.of(forest).class_of
    best, found = gains.value_at(members), members
    slack = _ROUNDING * float(np.ptp(gains.grid))
    stack: list[tuple[frozenset[int], frozenset[int], float]] = [
        (frozenset(), frozenset(), np.inf)
    ]  # members, boxes left out, bound
    while stack and room > 0:
        inside, out, ceiling = stack.pop()
        if ceiling <= best + slack:
            continue
        if gains.too_many(inside):  # as if there was no time left
            stack.append((inside, out, ceiling))
            break
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
    """The box and its identical siblings: siblings outside the set are left out with the box."""
    same = (gains.parent == gains.parent[v]) & (class_of == class_of[v])
    return set(np.flatnonzero(same).tolist())
