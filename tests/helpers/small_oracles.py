"""Small forests by brute force: orders and sets by Bellman, a search by all that it can be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from weitzman import Forest, Search, Solution

_STOP = 1e-6  # paths of endless lines that are rarer than this are not followed


def columns_of(f: Forest) -> dict[str, Any]:
    """The arguments of ``Forest.from_arrays`` that make this forest again, to be changed."""
    n = range(len(f))
    return {
        "parent": f.parent.tolist(), "endless": f.endless, "count": f.count,
        "cost": [f.costs[int(f.cost[v])].copy() for v in n],
        "rewards": [f.rewards[int(f.reward[v])][0].copy() for v in n],
        "law": [f.laws[int(f.law[v])][slice(None) if f.parent[v] >= 0 else 0].copy() for v in n],
        "outside": f.outside, "minimize": f.minimize,
    }  # fmt: skip


def row_of(f: Forest, box: int, above: int) -> Any:
    """The law of a box after a state of its parent (or of the box before it)."""
    law = f.laws[int(f.law[box])]
    return law[above if len(law) > 1 else 0]


def cost_of(f: Forest, box: int, above: int, state: int) -> float:
    """What a box costs in a state, after a state of its parent."""
    cost = f.costs[int(f.cost[box])]
    row = cost[above if len(cost) > 1 else 0]
    return float(row[state if len(row) > 1 else 0])


def value_in_order(f: Forest, order: Sequence[int], *, may_stop: bool) -> float:
    """What opening boxes in an order earns, higher is better: Bellman over all states."""

    @cache
    def worth(i: int, best: float, seen: tuple[tuple[int, int], ...]) -> float:
        if i == len(order):
            return best
        v, total = order[i], 0.0
        above = dict(seen).get(int(f.parent[v]), 0)
        for state, p in enumerate(row_of(f, v, above).tolist()):
            if p > 0:
                reward = f.sign * float(f.rewards[int(f.reward[v])][0][state])
                after = worth(i + 1, max(best, reward), (*seen, (v, state)))
                total += p * (after - cost_of(f, v, above, state))
        return max(best, total) if may_stop else total

    return worth(0, f.sign * f.outside, ())


@dataclass
class Followed:
    """A search that was told everything it can be told, each with its probability."""

    opened_after: list[Any]
    chosen: list[Any]
    outside: float = 0.0
    reward: float = 0.0
    spend: float = 0.0
    openings: float = 0.0
    loss: float = 0.0
    left: float = 0.0  # probability of what was not followed to its end
    expected: list[tuple[float, float]] = field(default_factory=list)  # said, and what came


def follow_all(s: Solution) -> Followed:
    """Every path of a search, with what it ends in; and the promises made on the way."""
    f = s.forest
    found = Followed(
        [np.zeros(len(f.laws[int(law)])) for law in f.law],
        [np.zeros(len(f.rewards[int(r)][0])) for r in f.reward],
    )

    rarest = _STOP if f.endless.any() else 0.0

    def go(told: list[tuple[Any, int]], chance: float) -> float:
        search = Search(s)
        for box, state in told:
            search.tell(box, state)
        seen = {(box.number, box.copy): state for box, state in told}
        said, box = search.expected, search.ask()
        if box is None:
            _end(found, f, search, chance, seen)
            return search.payoff
        if chance < rarest:
            found.left += chance
            return said
        above = state_above(f, box, seen)
        found.opened_after[box.number][above] += chance
        row = row_of(f, box.number, above)
        came = sum(
            p * go([*told, (box, y)], chance * p) for y, p in enumerate(row.tolist()) if p > 0
        )
        found.expected.append((said, came))
        return float(came)

    go([], 1.0)
    return found


def _end(found: Followed, f: Forest, search: Search, chance: float, seen: dict[Any, int]) -> None:
    best = search.best_box
    if best is None:
        found.outside += chance
    else:
        found.chosen[best.number][seen[best.number, best.copy]] += chance
    found.reward += chance * search.best
    found.spend += chance * search.spent
    found.openings += chance * len(search.history)
    found.loss += chance * bool(f.sign * search.payoff < f.sign * f.outside - 1e-12)


def state_above(f: Forest, box: Any, seen: dict[Any, int]) -> int:
    """The state of the parent of a box, or of the box before it along an endless line."""
    v, copy, up = box.number, box.copy, int(f.parent[box.number])
    if up < 0 and not f.endless[v]:
        return 0
    if f.endless[v]:
        before = (v, (*copy[:-1], copy[-1] - 1)) if copy[-1] > 1 else (up, copy[:-1])
        return seen[before]
    return seen[up, copy[:-1] if f.count[v] > 1 else copy]
