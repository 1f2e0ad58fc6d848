"""The law of the payoff against every search followed to its end."""

from __future__ import annotations

import numpy as np
import pytest
import random_problems
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_forests import forest_of

import weitzman
from weitzman import Forest, Policy, evaluate, solve
from weitzman.policy.simulation import payoff_law
from weitzman.policy.walk import Walk


def by_value(values: np.ndarray, chances: np.ndarray) -> dict[float, float]:
    out: dict[float, float] = {}
    for x, p in zip(values.tolist(), chances.tolist(), strict=True):
        out[round(x, 9)] = out.get(round(x, 9), 0.0) + p
    return out


def every_end(walk: Walk, chance: float = 1.0) -> list[tuple[float, float]]:
    """All payoffs of a search and their chances: every search is followed to its end."""
    f, found = walk.forest, walk.next()
    if found is None:
        return [(walk.best[0] - f.sign * walk.best[2], chance)]
    law, ends = f.laws[int(f.law[found[0][0]])][walk.state_above(found[0])], []
    for state in np.flatnonzero(law).tolist():
        with walk.supposing(found[0], state):
            ends += every_end(walk, chance * float(law[state]))
    return ends


@settings(max_examples=60)
@given(random_problems.forests(max_boxes=4), st.data())
def test_the_law_is_that_of_all_ends(problem, data):
    n = len(problem.parents)
    count = data.draw(st.lists(st.integers(1, 2), min_size=n, max_size=n))
    f = forest_of(problem, count=count)
    if data.draw(st.booleans(), label="optimal"):
        policy = solve(f).policy()
    else:
        rows = reference.index_rows(data.draw(random_problems.arbitrary_indices(problem)))
        policy = Policy.of(f, np.cumsum([0, *map(len, rows)])[:-1], np.concatenate(rows))
    law, ends = payoff_law(policy), np.array(every_end(Walk(policy)))
    found, wanted = by_value(law.values, law.chances), by_value(*ends.T)
    assert law.how == "exact"
    assert found == pytest.approx(wanted, abs=1e-12)
    assert (np.diff(law.values) > 0).all()


def test_a_law_of_many_boxes_is_exact_where_costs_add_up():
    rng = np.random.default_rng(1)
    f = Forest.from_arrays(
        parent=[i - 1 if i % 4 else -1 for i in range(60)],
        cost=0.05 * rng.integers(1, 20, 60), rewards=rng.integers(0, 10, (60, 3)),
        law=[rng.dirichlet(np.ones(3), None if i % 4 == 0 else 3) for i in range(60)],
    )  # fmt: skip
    solution = solve(f)
    law = payoff_law(solution)
    assert law.how == "exact"
    assert law.mean == pytest.approx(evaluate(solution).value, abs=1e-12)
    assert law.chances.sum() == pytest.approx(1, abs=1e-14)


def test_rounding_makes_no_end_worse_than_opening_nothing():
    # 0.3 - 0.1 - 0.1 - 0.1 is a little below 0 in floating point, and is not a loss
    f = weitzman.line([[0.5, 0.5]], rewards=[0, 0.3], cost=0.1, count=3)
    policy = Policy.of(f, np.array([0]), np.array([0.2]))
    assert payoff_law(policy).worse == pytest.approx(0.125)


def test_no_outside_option_and_minimization():
    f = Forest.from_arrays(
        parent=[-1, -1], cost=[1, 1], rewards=[[3, 9], [4, 5]], law=[[0.5, 0.5], [0.5, 0.5]],
        outside=np.inf, minimize=True,
    )  # fmt: skip
    law = payoff_law(solve(f))
    assert law.values.tolist() == sorted(law.values.tolist())
    assert law.mean == pytest.approx(evaluate(solve(f)).value)
    assert law.worse == 0
