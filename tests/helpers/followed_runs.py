"""Searches for the tests: forests with copies written out, and a policy run to every end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from random_problems import arbitrary_indices, forests
from reference import Followed, Number, Problem, to_arrays

from weitzman.engine.indices import Policy
from weitzman.forest.model import Forest
from weitzman.policy.search import Search

Instance = tuple[int, tuple[int, ...]]  # a box and its copy, as in the package


def forest_of(
    problem: Problem,
    count: Sequence[int] | None = None,
    *,
    minimize: bool = False,
    names: Sequence[str] | None = None,
) -> Forest:
    """The forest of a problem; minimizing, with all rewards turned into losses."""
    arrays = to_arrays(problem)
    sign = -1.0 if minimize else 1.0
    arrays["rewards"] = [[sign * r for r in row] for row in arrays["rewards"]]
    arrays["outside"] *= sign
    return Forest.from_arrays(**arrays, count=count, minimize=minimize, names=names)


def policy_of(forest: Forest, indices: Sequence[dict[Any, Number]]) -> Policy:
    """The policy of given indices (higher is better)."""
    sign = -1.0 if forest.minimize else 1.0
    rows = [[sign * float(row[s]) for s in sorted(row)] for row in indices]
    at = np.cumsum([0, *map(len, rows[:-1])])
    return Policy.of(forest, at, np.array([x for row in rows for x in row]))


@st.composite
def ruled(draw: DrawFn, **flags: Any) -> tuple[Problem, Any]:
    """A forest and indices out of thin air."""
    problem = draw(forests(**flags))
    return problem, draw(arbitrary_indices(problem))


def instances(parent: Sequence[int], count: Sequence[int]) -> list[Instance]:
    """All copies of all boxes, by box and then by copy."""

    def copies(v: int) -> list[tuple[int, ...]]:
        above = copies(parent[v]) if parent[v] >= 0 else [()]
        return [(*c, i + 1) for c in above for i in range(count[v])] if count[v] > 1 else above

    return [(v, copy) for v in range(len(parent)) for copy in copies(v)]


def parent_of(box: Instance, parent: Sequence[int], count: Sequence[int]) -> Instance | None:
    """The copy of the parent above a copy."""
    v, copy = box
    return None if parent[v] < 0 else (parent[v], copy[:-1] if count[v] > 1 else copy)


def written_out(problem: Problem, count: Sequence[int]) -> tuple[Problem, list[Instance]]:
    """The problem with a box for each copy."""
    parent = [p[0] if p else -1 for p in problem.parents]
    boxes = instances(parent, count)
    number = {box: i for i, box in enumerate(boxes)}
    above = [parent_of(box, parent, count) for box in boxes]
    full = Problem(
        parents=tuple(() if up is None else (number[up],) for up in above),
        rewards=tuple(problem.rewards[v] for v, _ in boxes),
        law=tuple(problem.law[v] for v, _ in boxes),
        cost=tuple(problem.cost[v] for v, _ in boxes),
        outside=problem.outside,
    )
    return full, boxes


def drive(
    problem: Problem, start: Callable[[], Search], number: Callable[[Any], int], sign: int = 1
) -> Followed:
    """Run a search through everything that can happen; ``number`` finds a box in the problem."""
    opened = [Fraction(0) for _ in problem.boxes]
    chosen = [[Fraction(0) for _ in rewards] for rewards in problem.rewards]
    payoffs: defaultdict[Number, Fraction] = defaultdict(Fraction)
    totals = {"reward": Fraction(0), "spend": Fraction(0), "outside": Fraction(0)}

    def go_on(prob: Fraction, path: list[int]) -> None:
        search, seen = start(), {}
        for state in path:
            box = search.ask()
            assert box is not None
            assert not search.done
            seen[number(box)] = state
            search.tell(box, state)
        box = search.ask()
        if box is None:
            finish(prob, search, seen)
            return
        v = number(box)
        opened[v] += prob
        for y, p in enumerate(problem.law[v][tuple(seen[u] for u in problem.parents[v])]):
            if p > 0:
                go_on(prob * p, [*path, y])

    def finish(prob: Fraction, search: Search, seen: dict[int, int]) -> None:
        assert search.done
        best, spent = exactly(sign * search.best), Fraction(search.spent)
        assert exactly(sign * search.payoff) == best - spent
        totals["reward"] += prob * best
        totals["spend"] += prob * spent
        payoffs[best - spent] += prob
        if search.best_box is None:
            totals["outside"] += prob
        else:
            holder = number(search.best_box)
            chosen[holder][seen[holder]] += prob

    go_on(Fraction(1), [])
    return Followed(
        value=totals["reward"] - totals["spend"],
        openings=sum(opened, Fraction(0)),
        opened=tuple(opened),
        chosen=tuple(map(tuple, chosen)),
        payoffs=dict(payoffs),
        tied=False,
        **totals,
    )


def exactly(x: float) -> Number:
    """A float as a fraction; infinities stay."""
    return x if np.isinf(x) else Fraction(x)
