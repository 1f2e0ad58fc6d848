"""Exact answers to other questions about small forests: time, risk, several prizes, budgets.

As in `reference`, all arithmetic is in `fractions.Fraction`, nothing is imported from the package,
and no theory of indices is used: a value is a maximum over every action in every situation. A
forest is a `reference.Problem`; what the question adds comes beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

from reference import (
    NOTHING,
    Indices,
    Number,
    Problem,
    Seen,
    Table,
    _available,
    _best,
    _closed,
    _lookup,
    _states_above,
)

Outcome = tuple[Fraction, Fraction, Fraction, Seen]


def _ways(problem: Problem, seen: Seen, box: int, beside: Table) -> Iterable[Outcome]:
    """Probability, cost, entry of ``beside`` and what has been seen, for each state of a box."""
    above = _states_above(problem, seen, box)
    for y, p in enumerate(problem.law[box][above]):
        if p > 0:
            now = (*seen[:box], y, *seen[box + 1 :])
            yield p, problem.cost[box][above][y], beside[box][above][y], now


# Time: everything that comes after an opening is multiplied by a factor.


def discounted_value(problem: Problem, factor: Table) -> Number:
    """Expected discounted payoff of the best strategy: costs when paid, the reward at the end."""

    @cache
    def value(seen: Seen) -> Number:
        best = _best(problem, seen)
        for box in _available(problem, seen):
            found: Number = Fraction(0)
            for p, cost, m, now in _ways(problem, seen, box, factor):
                found += p * (m * value(now) - cost)
            best = max(best, found)
        return best

    return value(_closed(problem))


@dataclass(frozen=True)
class Timed:
    """What following indices comes to under discounting, and the true probabilities."""

    value: Fraction
    reward: Fraction
    spend: Fraction
    opened: tuple[Fraction, ...]
    time: Fraction


def follow_timed(problem: Problem, index: Indices, factor: Table, duration: Table) -> Timed:
    """Follow the index rule; ``duration`` is added up, ``factor`` multiplied."""
    opened = [Fraction(0) for _ in problem.boxes]
    total = [Fraction(0)] * 3  # discounted reward, discounted spend, time

    def go_on(prob: Fraction, worth: Fraction, seen: Seen, time: Fraction) -> None:
        best = _best(problem, seen)
        ranked = [
            (_lookup(index, box, _states_above(problem, seen, box)), -box)
            for box in _available(problem, seen)
        ]
        top, minus_box = max(ranked, default=(NOTHING, 0))
        if top <= best:
            total[0] += prob * worth * Fraction(best)
            total[2] += prob * time
            return
        box = -minus_box
        opened[box] += prob
        above = _states_above(problem, seen, box)
        for p, cost, m, now in _ways(problem, seen, box, factor):
            total[1] += prob * p * worth * cost
            state = now[box]
            assert state is not None
            go_on(prob * p, worth * m, now, time + duration[box][above][state])

    go_on(Fraction(1), Fraction(1), _closed(problem), Fraction(0))
    reward, spend, time = total
    return Timed(reward - spend, reward, spend, tuple(opened), time)


# Risk: exponential utility. With ``base`` = exp(gamma / grain) rational and all numbers multiples
# of 1 / grain, utilities are rational too.


def utility_value(problem: Problem, base: Fraction, grain: int) -> Fraction:
    """Largest E[-base ** (-grain * payoff)]: the expected utility of the best strategy."""

    def power(x: Number) -> Fraction:
        scaled = Fraction(x) * grain
        assert scaled.denominator == 1, "numbers must be multiples of 1 / grain"
        return base ** int(scaled)

    @cache
    def value(seen: Seen) -> Fraction:
        best = _best(problem, seen)
        options = [] if best == NOTHING else [-power(-best)]
        for box in _available(problem, seen):
            ways = _ways(problem, seen, box, problem.cost)
            options.append(sum((p * power(c) * value(now) for p, c, _, now in ways), Fraction(0)))
        return max(options)

    return value(_closed(problem))


# Several prizes, at most one from each tree.


def tree_of(problem: Problem, box: int) -> int:
    """The root of the tree of a box."""
    while problem.parents[box]:
        (box,) = problem.parents[box]
    return box


def room_left(
    taken: Iterable[int], box: int, group: Sequence[str], quotas: Mapping[str, int]
) -> bool:
    """Whether the group of a box, which is that of its tree, may get another prize."""
    own = group[box] if group else ""
    return sum(group[root] == own for root in taken) < quotas[own] if own in quotas else True


def prizes_value(
    problem: Problem, prizes: int, *, several: bool = False, group: Sequence[str] = (),
    quotas: Mapping[str, int] | None = None,
) -> Fraction:  # fmt: skip
    """Expected sum of up to ``prizes`` rewards less costs; a place not filled is worth the outside.

    ``group`` has the label of each box, ``quotas`` how many prizes may come from a group.
    At most one prize from each tree, which is closed once its prize is taken; any number if
    ``several``, where a box is gone when its reward is taken, and its tree stays.
    """
    assert problem.outside is not None
    outside = problem.outside

    @cache
    def value(seen: Seen, taken: frozenset[int]) -> Fraction:
        best = (prizes - len(taken)) * outside
        if len(taken) == prizes:
            return best
        for box in _available(problem, seen):
            if several or tree_of(problem, box) not in taken:
                found = Fraction(0)
                for p, cost, _, now in _ways(problem, seen, box, problem.cost):
                    found += p * (value(now, taken) - cost)
                best = max(best, found)
        for box, state in enumerate(seen):
            reward = None if state is None else problem.rewards[box][state]
            mark = box if several else tree_of(problem, box)
            room = room_left(taken, box, group, quotas or {})
            if reward is not None and mark not in taken and room:
                best = max(best, reward + value(seen, taken | {mark}))
        return best

    return value(_closed(problem), frozenset())


@dataclass(frozen=True)
class Collected:
    """What following the rule for several prizes comes to."""

    value: Fraction
    spend: Fraction
    opened: tuple[Fraction, ...]
    taken: tuple[tuple[Fraction, ...], ...]


def follow_prizes(problem: Problem, index: Indices, prizes: int) -> Collected:
    """Follow the rule: the highest of indices and prizes in hand; open the one, take the other.

    An index equal to a prize: take. Equal indices, or equal prizes: the lowest number first. An
    index or a prize that is not above the outside option: stop.
    """
    assert problem.outside is not None
    outside = problem.outside
    opened = [Fraction(0) for _ in problem.boxes]
    taken = [[Fraction(0) for _ in rewards] for rewards in problem.rewards]
    total = [Fraction(0), Fraction(0)]

    def go_on(prob: Fraction, seen: Seen, closed: frozenset[int], left: int) -> None:
        moves: list[tuple[Number, int, int]] = []  # worth, 1 for a prize, minus the box
        for box in _available(problem, seen):
            if tree_of(problem, box) not in closed:
                moves.append((_lookup(index, box, _states_above(problem, seen, box)), 0, -box))
        for box, state in enumerate(seen):
            reward = None if state is None else problem.rewards[box][state]
            if reward is not None and tree_of(problem, box) not in closed:
                moves.append((reward, 1, -box))
        worth, prize, minus_box = max(moves, default=(outside, 0, 0))
        if left == 0 or worth <= outside:
            total[0] += prob * left * outside
            return
        box = -minus_box
        if prize:
            state = seen[box]
            assert state is not None
            taken[box][state] += prob
            total[0] += prob * Fraction(worth)
            go_on(prob, seen, closed | {tree_of(problem, box)}, left - 1)
            return
        opened[box] += prob
        for p, cost, _, now in _ways(problem, seen, box, problem.cost):
            total[1] += prob * p * cost
            go_on(prob * p, now, closed, left)

    go_on(Fraction(1), _closed(problem), frozenset(), prizes)
    return Collected(total[0] - total[1], total[1], tuple(opened), tuple(map(tuple, taken)))


# A budget: every pair of expected spend and expected reward that some strategy has.

Point = tuple[Fraction, Fraction]


def _concave(points: Iterable[Point]) -> list[Point]:
    """The upper left border of the convex hull, spend rising, reward rising."""
    hull: list[Point] = []
    for x, y in sorted(set(points), key=lambda point: (point[0], -point[1])):
        if hull and y <= hull[-1][1]:
            continue
        while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (x - hull[-2][0]) <= (
            y - hull[-2][1]
        ) * (hull[-1][0] - hull[-2][0]):
            hull.pop()
        hull.append((x, y))
    return hull


def _sum(left: list[Point], right: list[Point]) -> list[Point]:
    return _concave((a + c, b + d) for a, b in left for c, d in right)


def spend_frontier(problem: Problem) -> list[Point]:
    """Corners of the largest expected reward as a function of the expected spend.

    The set of what can be had from here on is convex, since strategies may be mixed; it is built
    from the sets after each opening, without any price.
    """

    @cache
    def border(seen: Seen) -> tuple[Point, ...]:
        best = _best(problem, seen)
        points: list[Point] = [(Fraction(0), Fraction(best))]
        for box in _available(problem, seen):
            sums: list[Point] = [(Fraction(0), Fraction(0))]
            for p, cost, _, now in _ways(problem, seen, box, problem.cost):
                sums = _sum(sums, [(p * (cost + x), p * y) for x, y in border(now)])
            points += sums
        return tuple(_concave(points))

    return list(border(_closed(problem)))


def reward_within(frontier: list[Point], budget: Fraction) -> Fraction:
    """The largest expected reward with an expected spend of at most ``budget``."""
    assert budget >= frontier[0][0]
    for (a, b), (c, d) in pairwise(frontier):
        if budget <= c:
            return b + (d - b) * (budget - a) / (c - a)
    return frontier[-1][1]


def capped_value(problem: Problem, cap: Fraction) -> Fraction:
    """Largest expected reward if the costs paid may never exceed ``cap``."""

    @cache
    def value(seen: Seen, left: Fraction) -> Fraction:
        best = Fraction(_best(problem, seen))
        for box in _available(problem, seen):
            above = _states_above(problem, seen, box)
            if max(problem.cost[box][above]) <= left:
                ways = _ways(problem, seen, box, problem.cost)
                found = sum((p * value(now, left - c) for p, c, _, now in ways), Fraction(0))
                best = max(best, found)
        return best

    return value(_closed(problem), cap)


# Information: what is known beforehand.


def value_knowing(problem: Problem, known: Iterable[int]) -> Fraction:
    """Expected value if the states of some boxes are told before anything is opened.

    Opening a box costs what it does, told or not, and still comes after its parent. The states
    told are drawn from their joint law; the others follow given these, by enumeration.
    """
    boxes = sorted(known)
    joint = _joint(problem)
    total = Fraction(0)
    for told in product(*(range(len(problem.rewards[b])) for b in boxes)):
        fits = {
            states: p
            for states, p in joint.items()
            if all(states[b] == s for b, s in zip(boxes, told, strict=True))
        }
        if fits:
            total += _value_of_joint(problem, fits)
    return total


def _joint(problem: Problem) -> dict[tuple[int, ...], Fraction]:
    """Probability of every combination of states of all boxes."""
    out: dict[tuple[int, ...], Fraction] = {}
    for states in product(*(range(len(rewards)) for rewards in problem.rewards)):
        p = Fraction(1)
        for box, state in enumerate(states):
            p *= problem.law[box][tuple(states[b] for b in problem.parents[box])][state]
        if p > 0:
            out[states] = p
    return out


def _value_of_joint(problem: Problem, joint: dict[tuple[int, ...], Fraction]) -> Fraction:
    """Optimal value times the mass of any joint law of the states, by conditioning on it."""

    def value(seen: Seen, fits: dict[tuple[int, ...], Fraction]) -> Fraction:
        mass = sum(fits.values(), Fraction(0))
        best = mass * Fraction(_best(problem, seen))
        for box in _available(problem, seen):
            above = _states_above(problem, seen, box)
            found = Fraction(0)
            for y in range(len(problem.rewards[box])):
                part = {states: p for states, p in fits.items() if states[box] == y}
                if part:
                    now = (*seen[:box], y, *seen[box + 1 :])
                    paid = problem.cost[box][above][y] * sum(part.values(), Fraction(0))
                    found += value(now, part) - paid
            best = max(best, found)
        return best

    return value(_closed(problem), joint)


# Choices inside a box.


def value_with_blind_taking(problem: Problem, means: Callable[[int, Seen], Number]) -> Number:
    """The optimum if any box that can be opened may also be taken unseen, at its mean."""

    @cache
    def value(seen: Seen) -> Number:
        best = _best(problem, seen)
        for box in _available(problem, seen):
            best = max(best, means(box, seen))
            found: Number = Fraction(0)
            for p, cost, _, now in _ways(problem, seen, box, problem.cost):
                found += p * (value(now) - cost)
            best = max(best, found)
        return best

    return value(_closed(problem))
