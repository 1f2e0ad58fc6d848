"""What a walk will have earned: the mean of what it will have earned after its next step."""

from __future__ import annotations

import math
from typing import Any

import pytest
import random_problems
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from random_walks import possible

import weitzman
from weitzman import Forest, solve
from weitzman.policy.walk import Walk
from weitzman.policy.words import explain

TERMS = ("none", "time", "risk", "prizes")


def drawn_forest(problem: reference.Problem, data: st.DataObject, term: str) -> Forest:
    """A random forest with copies, perhaps of losses, and with one of the terms."""
    arrays = reference.to_arrays(problem)
    n = len(arrays["parent"])
    count = data.draw(st.lists(st.integers(1, 2), min_size=n, max_size=n), label="count")
    more: dict[str, Any] = {}
    if term == "time":
        factor = st.sampled_from([0.5, 0.75, 1.0])
        more["factor"] = data.draw(st.lists(factor, min_size=n, max_size=n))
    elif term == "risk":
        more["risk_tolerance"] = data.draw(st.sampled_from([0.5, 2.0, 30.0]))
    elif term == "prizes":
        trees = sum(c for c, p in zip(count, arrays["parent"], strict=True) if p < 0)
        more["prizes"] = data.draw(st.integers(1, min(trees, 4)))
    minimize = data.draw(st.booleans())
    if minimize:
        arrays["rewards"] = [[-r for r in row] for row in arrays["rewards"]]
        arrays["outside"] *= -1
    return Forest.from_arrays(**arrays, count=count, minimize=minimize, **more)


def mean(forest: Forest, weighed: list[tuple[float, float]]) -> float:
    """The mean, or the certainty equivalent, of (chance, payoff)."""
    tolerance = forest.risk_tolerance
    if tolerance is None:
        return sum(p * z for p, z in weighed)
    scale = -forest.sign / tolerance
    worst = max(scale * z for _, z in weighed)
    total = sum(p * math.exp(scale * z - worst) for p, z in weighed)
    return (math.log(total) + worst) / scale


def now(walk: Walk) -> float:
    """What stopping now earns."""
    best, _, spent = walk.best
    if walk.forest.factors is None:
        return best - walk.sign * spent
    factor, paid, _ = walk.discounted()
    return factor * best - walk.sign * paid


@pytest.mark.parametrize("term", TERMS)
@settings(max_examples=60)
@given(problem=random_problems.forests(max_boxes=4, max_states=2), data=st.data())
def test_worth_is_the_mean_of_the_worths_after_the_next_step(term, problem, data):
    forest = drawn_forest(problem, data, term)
    solution = solve(forest, exact=True)
    walk = Walk(solution.policy())
    assert walk.worth() == pytest.approx(solution.value, abs=1e-9)
    for _ in range(6):
        expected = walk.worth()
        prize, found = walk.next_prize(), walk.next()
        if prize is not None:  # taking it changes nothing but what is sure
            with walk.supposing_taken(prize):
                assert walk.worth() == pytest.approx(expected, abs=1e-9)
            walk.hands.take(prize, walk.answers[prize].reward)
            continue
        if found is None:
            assert expected == pytest.approx(now(walk), abs=1e-9)
            return
        after = []
        for y, p in possible(walk, found[0]):
            with walk.supposing(found[0], y):
                after.append((p, walk.worth()))
        assert mean(forest, after) == pytest.approx(expected, abs=1e-9)
        assert walk.worth() == expected  # supposing leaves no trace
        walk.show(found[0], data.draw(st.sampled_from(possible(walk, found[0])))[0])


def test_a_policy_for_several_prizes_in_words():
    chests = weitzman.Builder(prizes=2)
    for name in "ABC":
        chests.add(name, cost=1, outcomes={0: 0.5, 10: 0.5})
    assert explain(solve(chests.build())).splitlines()[:7] == [
        "Open A (cost 1).",
        "  If A shows 0 (50%): open B (cost 1).",
        "    If B shows 0 (50%): open C (cost 1).",
        "      If C shows 0 (50%): stop with 0 of 2 prizes.",
        "      If C shows 10 (50%): take 10 from C for good, then stop with 1 of 2 prizes.",
        "    If B shows 10 (50%): take 10 from B for good, then open C (cost 1).",
        "      If C shows 0 (50%): stop with 1 of 2 prizes.",
    ]
