"""What is left of a search, as a forest of its own."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from ...engine.indices import Policy
from ...engine.solver import solve
from ...forest.model import _FIELDS, Forest
from ...policy.frontier import Copy
from ...policy.search import Search

Key = tuple[int, int]  # a box and the state of its parent (0 for a root)


def expected(search: Search) -> float:
    """What a search will have earned in the end if it goes on in the best way (spent included)."""
    forest = remaining(search)
    value = search.best if forest is None else solve(forest).value
    return value + search.spent if search.policy.forest.minimize else value - search.spent


def remaining(search: Search) -> Forest | None:
    """The boxes still closed, as they stand after what was seen; None if none is worth opening.

    The outside option is the best so far. Boxes that can be opened become roots; those whose index
    does not exceed the best are left out with all behind them, since they will never be opened.
    """
    policy, best = search.policy, search.best
    f = policy.forest
    sign = f.sign
    tops = {
        key: left
        for key, left in _closed(search).items()
        if policy.index[policy.index_at[key[0]] + key[1]] > sign * best
    }
    return _forest(policy, tops, best) if tops else None


def _closed(search: Search) -> Counter[Key]:
    """How many copies of each box can be opened, by what their parents showed."""
    policy = search.policy
    f, at = policy.forest, policy.child_at
    seen = {(step.box.number, step.box.copy): step.state_number for step in search.history}
    closed = Counter({(v, 0): int(f.count[v]) for v in f.roots.tolist()})
    for (v, copy), state in seen.items():
        closed[v, seen.get(_above(f, v, copy), 0)] -= 1
        for u in policy.child[at[v] : at[v + 1]].tolist():
            closed[u, state] += int(f.count[u])
    return +closed


def _above(f: Forest, v: int, copy: Copy) -> tuple[int, Copy]:
    """The box before one that was opened, and its copy; for a root, what is none."""
    if f.endless[v]:
        last = copy[-1] - 1
        return (v, (*copy[:-1], last)) if last else (int(f.parent[v]), copy[:-1])
    return int(f.parent[v]), copy[:-1] if f.count[v] > 1 else copy


def _forest(policy: Policy, tops: dict[Key, int], best: float) -> Forest:
    f, at = policy.forest, policy.child_at
    keep: list[int] = []
    parent: list[int] = []
    for v, _ in tops:
        keep.append(v)
        parent.append(-1)
    at_end = 0
    while at_end < len(keep):  # breadth first: what is behind each box
        v = keep[at_end]
        below = policy.child[at[v] : at[v + 1]].tolist()
        if at_end >= len(tops):  # an endless box stands for all that follow it
            below = [u for u in below if u != v]
        keep += below
        parent += [at_end] * len(below)
        at_end += 1
    columns: dict[str, Any] = {name: getattr(f, name) for name in _FIELDS}
    n = len(tops)
    for name in ("law", "reward", "cost", "count", "endless"):
        columns[name] = columns[name][keep]
    columns["endless"][:n] = False  # the next of a line, and behind it all further ones
    columns |= {"parent": np.array(parent), "outside": best, "names": None}
    columns["count"][:n] = list(tops.values())
    columns["laws"] = f.laws.with_more([f.laws[int(f.law[v])][s : s + 1] for v, s in tops])
    columns["law"][:n] = len(f.laws) + np.arange(n)
    for name in ("costs", "factors", "durations"):
        if (pool := columns[name]) is not None:
            entries = [(pool[int(f.cost[v])], s) for v, s in tops]
            rows = [c[s : s + 1] if len(c) > 1 else c for c, s in entries]
            columns[name] = pool.with_more(rows)
    columns["cost"][:n] = len(f.costs) + np.arange(n)
    return Forest(**columns)
