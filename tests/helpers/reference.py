"""Slow, plain and exact answers for small problems: what the package is tested against.

All arithmetic is in `fractions.Fraction`, and nothing is imported from the package. No theory of
indices is used to find a value: an optimum is a maximum over every action in every situation, and
an index is found from its definition (the outside option that makes opening not worth while).

Minus infinity (a float) stands for "no reward at all". It appears only where a problem has no
outside option, or as the index of a box below which no reward can ever be found.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from numbers import Integral
from typing import Any

Number = Fraction | float  # a float only for an infinity
States = tuple[int, ...]  # one state for each parent of a box; () for a root
Table = tuple[dict[States, tuple[Fraction, ...]], ...]  # [box][states of the parents][own state]
Seen = tuple[int | None, ...]  # [box] the state seen, None while the box is closed

NOTHING = -math.inf


@dataclass(frozen=True)
class Problem:
    """Boxes with prerequisites: a forest, or any directed graph without cycles.

    Attributes
    ----------
    parents
        ``parents[i]`` are the boxes to be opened before box ``i``. Boxes may come in any order.
    rewards
        ``rewards[i][y]`` is the reward of box ``i`` in state ``y``; None for a mere signal.
    law
        ``law[i][s][y]`` is the probability of state ``y`` when the parents are in states ``s``.
    cost
        ``cost[i][s][y]`` is what opening box ``i`` then costs, should it be in state ``y``.
    outside
        What can be had without opening anything; None where nothing can.
    """

    parents: tuple[tuple[int, ...], ...]
    rewards: tuple[tuple[Fraction | None, ...], ...]
    law: Table
    cost: Table
    outside: Fraction | None = Fraction(0)

    def __post_init__(self) -> None:
        if not len(self.parents) == len(self.rewards) == len(self.law) == len(self.cost):
            raise ValueError("parents, rewards, law and cost must have one entry for each box")
        topological_order(self)
        for box, law in enumerate(self.law):
            rows = set(parent_states(self, box))
            if set(law) != rows or set(self.cost[box]) != rows:
                raise ValueError(f"box {box} needs a row for each combination of parents' states")
            for states, row in law.items():
                cost = self.cost[box][states]
                if not len(row) == len(cost) == len(self.rewards[box]) > 0:
                    raise ValueError(f"box {box} needs a law and a cost for each of its states")
                if min(row) < 0 or sum(row) != 1:
                    raise ValueError(f"law[{box}][{states}] is not a probability vector")
                if sum(p * c for p, c in zip(row, cost, strict=True)) < 0:
                    raise ValueError(f"cost[{box}][{states}] is negative on average")

    @property
    def boxes(self) -> range:
        """The numbers of the boxes."""
        return range(len(self.parents))

    @property
    def floor(self) -> Number:
        """What one holds before anything is opened."""
        return NOTHING if self.outside is None else self.outside


def topological_order(problem: Problem) -> list[int]:
    """All boxes, parents before children; ValueError if there is no such order."""
    order: list[int] = []
    while len(order) < len(problem.parents):
        ready = [
            box
            for box, parents in enumerate(problem.parents)
            if box not in order and set(parents) <= set(order)
        ]
        if not ready:
            raise ValueError("the parents contain a cycle or an unknown box")
        order += ready
    return order


def parent_states(problem: Problem, box: int) -> list[States]:
    """Every combination of states that the parents of `box` can be in; [()] for a root."""
    return list(product(*(range(len(problem.rewards[p])) for p in problem.parents[box])))


# Moves: what is available, what may be seen, what one then holds.


def _closed(problem: Problem) -> Seen:
    return (None,) * len(problem.parents)


def _available(problem: Problem, seen: Seen) -> list[int]:
    return [
        box
        for box, parents in enumerate(problem.parents)
        if seen[box] is None and all(seen[p] is not None for p in parents)
    ]


def _states_above(problem: Problem, seen: Seen, box: int) -> States:
    states = [seen[p] for p in problem.parents[box]]
    assert None not in states, f"box {box} is not available"
    return tuple(s for s in states if s is not None)


def _openings(problem: Problem, seen: Seen, box: int) -> Iterator[tuple[Fraction, Fraction, Seen]]:
    """Probability, cost and what has been seen, for each possible state of a box now opened."""
    above = _states_above(problem, seen, box)
    for y, p in enumerate(problem.law[box][above]):
        if p > 0:
            yield p, problem.cost[box][above][y], (*seen[:box], y, *seen[box + 1 :])


def _best(problem: Problem, seen: Seen) -> Number:
    """The best reward seen, or the outside option."""
    best = problem.floor
    for box, y in enumerate(seen):
        reward = None if y is None else problem.rewards[box][y]
        if reward is not None and reward > best:
            best = reward
    return best


# The fully adaptive optimum.


class _Adaptive:
    """Exhaustive dynamic programme over what has been seen.

    Each answer is a pair: the optimal value, and the probability that an optimal strategy ends
    with the outside option. The value is the maximum over strategies of functions linear in the
    outside option, so the second number is a (sub)derivative of the first with respect to it.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.memo: dict[Seen, tuple[Number, Number]] = {}

    def value(self, seen: Seen) -> tuple[Number, Number]:
        """The best of stopping now and of opening any available box."""
        if seen not in self.memo:
            best = _best(self.problem, seen)
            answer: tuple[Number, Number] = (best, Fraction(best == self.problem.floor))
            for box in _available(self.problem, seen):
                answer = max(answer, self.opening(seen, box), key=lambda pair: pair[0])
            self.memo[seen] = answer
        return self.memo[seen]

    def opening(self, seen: Seen, box: int) -> tuple[Number, Number]:
        """Opening `box` now, and going on optimally."""
        value: Number = Fraction(0)
        outside: Number = Fraction(0)
        for p, cost, now in _openings(self.problem, seen, box):
            later, later_outside = self.value(now)
            value += p * (later - cost)
            outside += p * later_outside
        return value, outside


def optimal_value(problem: Problem) -> Number:
    """Expected best reward less costs of the best strategy whatsoever."""
    return _Adaptive(problem).value(_closed(problem))[0]


# Following given indices.


@dataclass(frozen=True)
class Followed:
    """What a policy earns, exactly.

    Attributes
    ----------
    value
        ``reward - spend``.
    reward
        Expected reward taken at the end (or outside option).
    spend
        Expected sum of the costs paid.
    openings
        Expected number of boxes opened.
    opened
        ``opened[i]`` is the probability that box ``i`` is opened.
    chosen
        ``chosen[i][y]`` is the probability that box ``i``, in state ``y``, is taken at the end.
        Among equal rewards that of the box of lowest number is taken, whichever was seen first
        (of copies that of lowest state, then the first); the outside option comes before all.
    outside
        Probability that no box is taken, but the outside option (or nothing, where there is none).
    payoffs
        Probability of each possible reward less costs paid.
    tied
        Whether some decision on the way was between equals, so that `opened` and `chosen` depend
        on how ties are broken: two highest indices, an index and the best reward so far, or two
        best rewards.
    """

    value: Number
    reward: Number
    spend: Fraction
    openings: Fraction
    opened: tuple[Fraction, ...]
    chosen: tuple[tuple[Fraction, ...], ...]
    outside: Fraction
    payoffs: dict[Number, Fraction]
    tied: bool


Indices = Callable[[int, States], Any] | Sequence[Any]


def _lookup(index: Indices, box: int, states: States) -> Number:
    """The index of a box given its parents' states, in any of the accepted layouts."""
    if callable(index):
        return _extended(index(box, states))
    row = index[box]
    if isinstance(row, Mapping):
        return _extended(row[states])
    if len(states) > 1:
        raise ValueError("a box with several parents needs a mapping or a callable")
    return _extended(row[states[0] if states else 0] if hasattr(row, "__len__") else row)


def follow_indices(problem: Problem, index: Indices, kind: Sequence[int] | None = None) -> Followed:
    """Evaluate the policy that opens the available box of highest index.

    The policy goes on while that index is (strictly) greater than the best reward so far, and
    stops otherwise. Of equal indices the lowest box number is opened first; of copies that whose
    parent showed the lowest state, and then the lowest number.

    Parameters
    ----------
    problem
        Any problem, a forest or not.
    index
        Either a callable, ``index(box, states_of_parents)``; or for each box a mapping from the
        states of its parents (a tuple, () for a root), as `exact_indices` returns; or, for
        forests, for each box a sequence over the states of its parent (a root has one entry, or
        a plain number). Fractions, integers and floats will do, infinities too.
    kind
        Which box each box is a copy of; by default each is its own.
    """
    kinds = list(problem.boxes) if kind is None else kind
    opened = [Fraction(0) for _ in problem.boxes]
    chosen = [[Fraction(0) for _ in rewards] for rewards in problem.rewards]
    payoffs: defaultdict[Number, Fraction] = defaultdict(Fraction)
    reward: Number = Fraction(0)
    spend = outside = Fraction(0)
    tied = False

    def earlier(equal: bool, seen: Seen, box: int, holder: int | None) -> bool:
        if not equal or holder is None:
            return False
        return (kinds[box], seen[box], box) < (kinds[holder], seen[holder], holder)

    def go_on(prob: Fraction, seen: Seen, paid: Fraction, best: Number, holder: int | None) -> None:
        nonlocal reward, spend, outside, tied
        ranked = [
            (_lookup(index, box, above), kinds[box], above, box)
            for box in _available(problem, seen)
            for above in [_states_above(problem, seen, box)]
        ]
        top = max((entry[0] for entry in ranked), default=NOTHING)
        tied |= bool(ranked) and top == best
        if top <= best:
            reward += prob * best
            spend += prob * paid
            payoffs[best - paid] += prob
            state = None if holder is None else seen[holder]
            if holder is None or state is None:
                outside += prob
            else:
                chosen[holder][state] += prob
            return
        highest = [entry[1:] for entry in ranked if entry[0] == top]
        tied |= len(highest) > 1
        box = min(highest)[-1]
        opened[box] += prob
        for p, cost, now in _openings(problem, seen, box):
            state = now[box]
            found = None if state is None else problem.rewards[box][state]
            tied |= found is not None and found == best
            if found is not None and (found > best or earlier(found == best, now, box, holder)):
                go_on(prob * p, now, paid + cost, found, box)
            else:
                go_on(prob * p, now, paid + cost, best, holder)

    go_on(Fraction(1), _closed(problem), Fraction(0), problem.floor, None)
    return Followed(
        value=reward - spend,
        reward=reward,
        spend=spend,
        openings=sum(opened, Fraction(0)),
        opened=tuple(opened),
        chosen=tuple(map(tuple, chosen)),
        outside=outside,
        payoffs=dict(payoffs),
        tied=tied,
    )


# Indices, from their definition.


def subtree(problem: Problem, box: int, states: States = ()) -> Problem:
    """The part of a forest at and below `box`, which becomes box 0, given its parent's state."""
    _require_forest(problem)
    members = [box]
    for member in members:  # grows while it is read
        members += [child for child in problem.boxes if problem.parents[child] == (member,)]
    place = {member: i for i, member in enumerate(members)}
    below = members[1:]
    return Problem(
        parents=((), *((place[problem.parents[b][0]],) for b in below)),
        rewards=tuple(problem.rewards[b] for b in members),
        law=({(): problem.law[box][states]}, *(problem.law[b] for b in below)),
        cost=({(): problem.cost[box][states]}, *(problem.cost[b] for b in below)),
        outside=problem.outside,
    )


def _root_index(problem: Problem) -> Number:
    """Smallest outside option with which opening box 0, the root of all others, gains nothing.

    The gain of opening, as a function of the outside option x, is convex, piecewise linear and
    falls until it is nil or negative. Newton's method, started on the left, never passes the
    smallest root; each step leaves a linear piece for good, so it gets there in finitely many.
    """
    rewards = [reward for row in problem.rewards for reward in row if reward is not None]
    all_open = list(_all_opened(replace(problem, outside=None), problem.boxes))
    some_reward = sum((p for p, _, best in all_open if best != NOTHING), Fraction(0))
    if some_reward == 0:
        return NOTHING
    all_costs = sum((p * cost for p, cost, _ in all_open), Fraction(0))
    x = min(rewards) - all_costs / some_reward - 1  # here even opening everything is a gain
    while True:
        value, outside = _Adaptive(replace(problem, outside=x)).opening(_closed(problem), 0)
        assert isinstance(value, Fraction)
        assert isinstance(outside, Fraction)
        if value == x:
            return x
        assert value > x, "Newton's method passed the root"
        x += (value - x) / (1 - outside)


def exact_indices(problem: Problem) -> tuple[dict[States, Number], ...]:
    """Index of each box of a forest: ``[box][states]``, `states` being () or (state of parent,).

    The index is the smallest outside option x with which, if box and parent's state were all
    there is, being made to open the box would not earn more than x. It is the largest reward or
    index that can be reached where opening is free, and minus infinity where no reward can ever
    be found. Rows that have probability zero get their index too.
    """
    return tuple(
        {
            states: _root_index(subtree(problem, box, states))
            for states in parent_states(problem, box)
        }
        for box in problem.boxes
    )


def index_rows(indices: Iterable[Mapping[States, Number]]) -> list[list[float]]:
    """Indices of a forest as floats: ``[box][state of parent]``, one entry for a root."""
    return [[float(row[states]) for states in sorted(row)] for row in indices]


# Strategies that adapt less.


def _all_opened(
    problem: Problem, boxes: Iterable[int]
) -> Iterator[tuple[Fraction, Fraction, Number]]:
    """Probability, total cost and best reward of each way that opening all `boxes` may end."""
    boxes = set(boxes)
    order = [box for box in topological_order(problem) if box in boxes]
    if any(not set(problem.parents[box]) <= boxes for box in order) or len(order) < len(boxes):
        raise ValueError("the set must contain known boxes, and with a box all its parents")

    def go_on(
        depth: int, prob: Fraction, paid: Fraction, seen: Seen
    ) -> Iterator[tuple[Fraction, Fraction, Number]]:
        if depth == len(order):
            yield prob, paid, _best(problem, seen)
            return
        for p, cost, now in _openings(problem, seen, order[depth]):
            yield from go_on(depth + 1, prob * p, paid + cost, now)

    yield from go_on(0, Fraction(1), Fraction(0), _closed(problem))


def value_of_set(problem: Problem, boxes: Iterable[int]) -> Number:
    """Open all `boxes`, whatever is seen, and take the best reward or the outside option."""
    value: Number = Fraction(0)
    for p, paid, best in _all_opened(problem, boxes):
        value += p * (best - paid)
    return value


def closed_sets(problem: Problem) -> list[frozenset[int]]:
    """Every set of boxes that contains the parents of its members; the empty set comes first."""
    sets = [frozenset[int]()]
    for box in topological_order(problem):
        sets += [s | {box} for s in sets if s.issuperset(problem.parents[box])]
    return sets


def best_nonadaptive(problem: Problem) -> tuple[Number, frozenset[int]]:
    """Value of the best fixed set, and the set."""
    values = [(value_of_set(problem, boxes), boxes) for boxes in closed_sets(problem)]
    return max(values, key=lambda pair: pair[0])


def value_of_order(problem: Problem, order: Sequence[int]) -> Number:
    """Open boxes in this order; stop, at the best moment given all that was seen, or at its end."""
    if len(set(order)) < len(order) or any(
        not set(problem.parents[box]) <= set(order[:i]) for i, box in enumerate(order)
    ):
        raise ValueError("the order must not repeat a box, and must name parents before children")

    def go_on(depth: int, seen: Seen) -> Number:
        best = _best(problem, seen)
        if depth == len(order):
            return best
        later: Number = Fraction(0)
        for p, cost, now in _openings(problem, seen, order[depth]):
            later += p * (go_on(depth + 1, now) - cost)
        return max(best, later)

    return go_on(0, _closed(problem))


def feasible_orders(problem: Problem) -> Iterator[tuple[int, ...]]:
    """Every order of all boxes in which parents come before children."""

    def extend(order: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(order) == len(problem.parents):
            yield order
        for box in problem.boxes:
            if box not in order and set(problem.parents[box]) <= set(order):
                yield from extend((*order, box))

    return extend(())


def best_partially_adaptive(problem: Problem) -> tuple[Number, tuple[int, ...]]:
    """Value of the best fixed order with optimal stopping, and the order."""
    values = [(value_of_order(problem, order), order) for order in feasible_orders(problem)]
    return max(values, key=lambda pair: pair[0])


# Converters.


def exact(number: Any) -> Fraction:
    """A number, or a string such as "1/3" or "0.1", as the Fraction exactly equal to it."""
    if isinstance(number, Fraction | str):
        return Fraction(number)
    return Fraction(int(number) if isinstance(number, Integral) else float(number))


def _extended(number: Any) -> Number:
    """The same, but infinities stay what they are."""
    if isinstance(number, Fraction | str):
        return Fraction(number)
    return float(number) if math.isinf(number) else exact(number)


def _finite(number: Any) -> Fraction | None:
    """The same, but None for minus infinity."""
    return None if number is None or number == NOTHING else exact(number)


def _is_list(x: Any) -> bool:
    return hasattr(x, "__len__") and not isinstance(x, str)


def _require_forest(problem: Problem) -> None:
    if any(len(parents) > 1 for parents in problem.parents):
        raise ValueError("a box has several parents: this is not a forest")


def _probabilities(row: Sequence[Any]) -> tuple[Fraction, ...]:
    probs = [exact(p) for p in row]
    mass = sum(probs, Fraction(0))
    if abs(mass - 1) > Fraction(1, 10**9):
        raise ValueError(f"probabilities sum to {float(mass)}")
    return tuple(p / mass for p in probs)


def from_nested(
    parent: Sequence[int],
    cost: Sequence[Any],
    rewards: Sequence[Any],
    law: Sequence[Any],
    outside: Any = 0,
) -> Problem:
    """A forest from plain lists of numbers, or strings such as "1/3".

    Parameters
    ----------
    parent
        ``parent[i]`` is -1 for a root.
    cost
        ``cost[i]`` is a number; or a list with one entry for each state of the parent (of a
        child) or for each own state (of a root); or a matrix (parent's states x own states).
    rewards
        One list for all boxes, or one for each; None or -inf for a state without reward.
    law
        ``law[i]`` is a vector for a root, a matrix (parent's states x own states) for a child.
        A row of floats whose sum is 1 up to rounding is divided by its sum.
    outside
        None or -inf where there is no outside option.
    """
    if len(rewards) == 0 or not _is_list(rewards[0]):
        rewards = [rewards] * len(parent)
    if not len(parent) == len(cost) == len(rewards) == len(law):
        raise ValueError("cost, rewards and law must have one entry for each box")
    laws, costs = [], []
    for i, p in enumerate(parent):
        rows = [_probabilities(row) for row in (law[i] if p >= 0 else [law[i]])]
        price = cost[i]
        if p < 0 and _is_list(price):
            price = [price]
        elif not _is_list(price):
            price = [price] * len(rows)
        table = [
            tuple(map(exact, c)) if _is_list(c) else (exact(c),) * len(row)
            for c, row in zip(price, rows, strict=True)
        ]
        keys: list[States] = [(s,) for s in range(len(rows))] if p >= 0 else [()]
        laws.append(dict(zip(keys, rows, strict=True)))
        costs.append(dict(zip(keys, table, strict=True)))
    return Problem(
        parents=tuple((int(p),) if p >= 0 else () for p in parent),
        rewards=tuple(tuple(map(_finite, row)) for row in rewards),
        law=tuple(laws),
        cost=tuple(costs),
        outside=_finite(outside),
    )


def _shortest_cost(table: Mapping[States, tuple[Fraction, ...]]) -> Any:
    """A number, a list or a matrix: the shortest of the layouts that says it all."""
    if len({c for row in table.values() for c in row}) == 1:
        return float(next(iter(table.values()))[0])
    if () in table:
        return [float(c) for c in table[()]]
    rows = [table[states] for states in sorted(table)]
    if all(len(set(row)) == 1 for row in rows):
        return [float(row[0]) for row in rows]
    return [[float(c) for c in row] for row in rows]


def to_arrays(problem: Problem) -> dict[str, Any]:
    """The arguments of `from_nested`, as plain lists of floats; rewards are one list for each box.

    Nothing is lost if all numbers are dyadic. Costs take the shortest layout that fits.
    """
    _require_forest(problem)
    return {
        "parent": [parents[0] if parents else -1 for parents in problem.parents],
        "cost": [_shortest_cost(table) for table in problem.cost],
        "rewards": [[NOTHING if r is None else float(r) for r in row] for row in problem.rewards],
        "law": [
            [float(p) for p in table[()]]
            if () in table
            else [[float(p) for p in table[states]] for states in sorted(table)]
            for table in problem.law
        ],
        "outside": float(problem.floor),
    }
