"""Discounting against an exhaustive programme, Weitzman's equation, and what is refused."""

from __future__ import annotations

import exact_questions
import exact_slopes
import numpy as np
import pytest
import random_problems
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_forests import entries_of, forest_of, random_forest

import weitzman
from weitzman import Builder, Forest, Policy, evaluate, sensitivity, solve
from weitzman.errors import InvalidArgument, InvalidForest


@st.composite
def timed(draw, **flags):
    """A small problem, and factors that are multiples of 1/8."""
    flags = {"max_boxes": 4, "outside": "any"} | flags
    problem = draw(random_problems.forests(**flags))
    return problem, draw(random_problems.tables(problem, low=1, high=8, grain=8))


# -- the theory, in rationals ----------------------------------------------------------------------


@settings(max_examples=80)
@given(timed())
def test_the_recursion_of_slopes_is_optimal(case):
    problem, factor = case
    weights = tuple(
        {s: tuple(p * m for p, m in zip(row, factor[b][s], strict=True)) for s, row in law.items()}
        for b, law in enumerate(problem.law)
    )
    roots, index = exact_slopes.solve(problem, weights, problem.cost)
    best = exact_slopes.larger([{problem.outside: 1}, *roots])
    value = sum(x * p for x, p in best.items() if p)
    assert value == exact_questions.discounted_value(problem, factor)
    followed = exact_questions.follow_timed(problem, tuple(index), factor, factor)
    assert followed.value == value


# -- the engine ------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(timed(), st.booleans())
def test_the_value_is_optimal(case, exact):
    problem, factor = case
    s = solve(forest_of(problem, factor=entries_of(factor)), exact=exact)
    wanted = float(exact_questions.discounted_value(problem, factor))
    assert s.value == pytest.approx(wanted, abs=1e-8 if not exact else 1e-11)
    assert s.value - s.gap <= wanted + 1e-11


@settings(max_examples=80)
@given(st.data())
def test_evaluate_counts_with_the_discount_of_the_moment(data):
    problem, factor = data.draw(timed())
    duration = data.draw(random_problems.tables(problem, low=0, high=20, grain=4))
    forest = forest_of(problem, factor=entries_of(factor))
    if data.draw(st.booleans()):
        policy = solve(forest, exact=True).policy()
    else:
        rows = data.draw(random_problems.arbitrary_indices(problem))
        flat = [float(row[s]) for row in rows for s in sorted(row)]
        sizes = [len(row) for row in rows]
        policy = Policy.of(forest, np.cumsum([0, *sizes[:-1]]), np.array(flat))
    index = [
        policy.index[at : at + forest.laws.shape[forest.law[v], 0]].tolist()
        for v, at in enumerate(policy.index_at)
    ]
    wanted = exact_questions.follow_timed(problem, index, factor, duration)
    found = evaluate(policy)
    assert found.value == pytest.approx(float(wanted.value), abs=1e-10)
    assert found.reward == pytest.approx(float(wanted.reward), abs=1e-10)
    assert found.spend == pytest.approx(float(wanted.spend), abs=1e-10)
    assert found.opened == pytest.approx([float(x) for x in wanted.opened], abs=1e-10)
    timed_forest = forest_of(problem, duration=entries_of(duration), rate=0.0)
    again = evaluate(Policy.of(timed_forest, policy.index_at, policy.index))
    assert again.time == pytest.approx(float(wanted.time), abs=1e-9)


def test_losses_make_waiting_a_gain():
    """All rewards are negative: a box may be opened only because that takes time."""
    forest = Forest.from_arrays(
        parent=[-1], cost=[0.1], rewards=[[-5.0]], law=[[1.0]], outside=-2.0, factor=0.5
    )
    s = solve(forest)
    assert s.value == pytest.approx(-0.1 - 0.5 * 2.0)
    assert s.index(0) == pytest.approx(-0.1 / 0.5)


def test_weitzmans_equation_for_single_boxes():
    """Weitzman (1979), equation (6): c = b E max(z, x) - z, the two projects of his section 2.

    Omega costs 20 and pays 240 with probability 0.2, else 0; alpha costs 15 and pays 100 or 55 with
    even chances. Omega takes two periods and alpha one, at 10 % interest.
    """
    b = Builder()
    b.add("alpha", cost=15, outcomes={100: 0.5, 55: 0.5}, factor=1 / 1.1)
    b.add("omega", cost=20, outcomes={240: 0.2, 0: 0.8}, factor=1 / 1.1**2)
    s = solve(b.build())
    for name, cost, factor, law in (
        ("alpha", 15, 1 / 1.1, {100: 0.5, 55: 0.5}),
        ("omega", 20, 1 / 1.1**2, {240: 0.2, 0: 0.8}),
    ):
        z = s.index(name)
        assert cost == pytest.approx(factor * sum(p * max(z, x) for x, p in law.items()) - z)


def test_an_endless_line_is_the_limit_of_long_ones():
    sticky = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]]
    given = {"rewards": [0, 5, 9], "cost": 0.05, "factor": 0.97}
    endless = weitzman.line(([1, 0, 0], sticky), length=np.inf, **given)
    long = weitzman.line(([1, 0, 0], sticky), length=1500, **given)
    a, b = solve(endless), solve(long, exact=True)
    assert a.value == pytest.approx(b.value, abs=1e-9)
    assert a.indices(1) == pytest.approx(b.indices(1), abs=1e-9)
    e, far = evaluate(a), evaluate(b)
    assert (e.value, e.spend, e.time) == pytest.approx((far.value, far.spend, far.time), abs=1e-9)
    assert e.value == pytest.approx(a.value, abs=1e-9)


def test_factors_of_one_change_no_bit():
    forest = random_forest(np.random.default_rng(3), 400)
    one = solve(forest)
    from dataclasses import replace

    ones = weitzman.forest.Pool(
        np.ones_like(forest.costs.data), forest.costs.start, forest.costs.shape
    )
    two = solve(replace(forest, factors=ones))
    assert two.value == pytest.approx(one.value, abs=1e-12)
    assert two.index_columns()[1] == pytest.approx(one.index_columns()[1], abs=1e-12)


def test_thinning_is_certified_with_discounting():
    forest = random_forest(np.random.default_rng(8), 300)
    from dataclasses import replace

    m = weitzman.forest.Pool(
        np.full_like(forest.costs.data, 0.98), forest.costs.start, forest.costs.shape
    )
    timed_forest = replace(forest, factors=m)
    exact, coarse = solve(timed_forest, exact=True), solve(timed_forest, tolerance=1e-4)
    assert coarse.value - exact.value + 1e-12 >= 0
    assert coarse.value - exact.value <= coarse.gap + 1e-12
    assert evaluate(exact).value == pytest.approx(exact.value, abs=1e-9)


def test_derivatives_are_discounted_probabilities():
    b = Builder(rate=0.1)
    b.add("A", cost=2, outcomes={0: 0.5, 10: 0.5}, duration=3)
    b.add("B", cost=1, outcomes={0: 0.5, 8: 0.5}, duration=1)
    forest = b.build()
    slope = sensitivity(solve(forest)).cost["A"][0]
    up, down = (solve(forest.changed(cost={"A": 2 + h})).value for h in (1e-4, -1e-4))
    assert slope == pytest.approx((up - down) / 2e-4, abs=1e-6)
    assert weitzman.break_even(solve(forest), "A").opened_below == pytest.approx(
        0.5 * 10 * np.exp(-0.3), abs=1e-9
    )


def test_rate_zero_costs_nothing_and_still_tells_the_time():
    b = Builder(rate=0.0)
    b.add("A", cost=2, outcomes={0: 0.5, 10: 0.5}, duration={0: 3, 10: 5})
    e = evaluate(solve(b.build()))
    assert e.value == 3.0
    assert e.time == 4.0
    assert evaluate(solve(b.build().changed(rate=0.2))).value < 3.0


# -- bad input -------------------------------------------------------------------------------------

ONE = {"parent": [-1], "cost": [1.0], "rewards": [0.0, 10.0], "law": [[0.5, 0.5]]}


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"duration": -1.0, "rate": 0.1}, "durations must be finite and not negative, but box '0'"),
        ({"duration": 1.0, "rate": -0.1}, "a negative rate would make factors above 1"),
        ({"duration": 1.0, "rate": np.inf}, "rate must be a finite number"),
        ({"duration": 1.0, "rate": 1e4}, "at most 1"),
        ({"factor": 1.5}, "factors must lie above 0 and be at most 1"),
        ({"factor": 0.0}, "factors must lie above 0"),
        ({"factor": [[0.5, 0.5, 0.5]]}, r"the factor of box .* shape \(1, 3\)"),
        ({"duration": 1.0}, "durations need a rate"),
        ({"rate": 0.1}, "a rate discounts durations, but there are none"),
        ({"factor": 0.9, "duration": 1.0}, "both are given"),
        ({"factor": 0.9, "risk_tolerance": 3.0}, "does not go with discounting"),
    ],
)
def test_bad_terms_are_rejected(terms, message):
    with pytest.raises(InvalidForest, match=message):
        Forest.from_arrays(**ONE, **terms)


def test_what_cannot_take_time_in_says_so():
    forest = Forest.from_arrays(**ONE, factor=0.9)
    with pytest.raises(InvalidArgument, match=r"a graph of boxes is for .* this forest has disco"):
        weitzman.strategies.Dag.of(forest)
