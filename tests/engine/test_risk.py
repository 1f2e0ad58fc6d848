"""Exponential utility against an exhaustive programme in rationals, and its certificate."""

from __future__ import annotations

import math
from fractions import Fraction

import exact_questions
import exact_slopes
import numpy as np
import pytest
import random_problems
from every_policy import WrittenOut, optimum, random_terms
from hypothesis import given, settings
from plain_forests import forest_of, random_forest
from reference import Problem

import weitzman
from weitzman import Builder, Forest, Policy, Status, evaluate, solve
from weitzman._kernels import jit
from weitzman.errors import InvalidArgument, InvalidForest

BASE, GRAIN = (
    Fraction(9, 8),
    8,
)  # utility is -BASE ** (-GRAIN * payoff), rational on multiples of 1/8
TAU = 1 / (GRAIN * math.log(BASE))
RISKY = {"max_boxes": 4, "signals": False}


def certainty_equivalent(problem: Problem) -> float:
    return -TAU * math.log(-exact_questions.utility_value(problem, BASE, GRAIN))


@settings(max_examples=80)
@given(random_problems.forests(**RISKY))
def test_the_recursion_of_slopes_is_optimal(problem):
    def power(x):
        return BASE ** int(x * GRAIN)

    utilities = Problem(
        problem.parents,
        tuple(tuple(-power(-r) for r in row) for row in problem.rewards),
        problem.law,
        problem.cost,
        -power(-problem.outside),
    )
    weights = tuple(
        {
            s: tuple(p * power(c) for p, c in zip(row, problem.cost[b][s], strict=True))
            for s, row in law.items()
        }
        for b, law in enumerate(problem.law)
    )
    free = tuple({s: (Fraction(0),) * len(row) for s, row in law.items()} for law in problem.law)
    roots, _ = exact_slopes.solve(utilities, weights, free)
    assert all(p >= 0 for root in roots for p in root.values())  # a distribution after all
    best = exact_slopes.larger([{utilities.outside: Fraction(1)}, *roots])
    value = sum(x * p for x, p in best.items())
    assert value == exact_questions.utility_value(problem, BASE, GRAIN)


@settings(max_examples=150)
@given(random_problems.forests(**RISKY))
def test_the_value_is_the_best_certainty_equivalent(problem):
    forest = forest_of(problem, risk_tolerance=TAU)
    s = solve(forest, exact=True)
    assert s.value == pytest.approx(certainty_equivalent(problem), abs=1e-9)
    assert evaluate(s).value == pytest.approx(s.value, abs=1e-9)


def test_a_sure_thing_is_its_own_certainty_equivalent():
    forest = Forest.from_arrays(
        parent=[-1], cost=[1.0], rewards=[[5.0]], law=[[1.0]], risk_tolerance=2.0
    )
    s = solve(forest)
    assert s.index(0) == pytest.approx(4.0)
    assert s.value == pytest.approx(4.0)


def test_a_bold_searcher_counts_expectations_and_a_careful_one_opens_other_boxes():
    def first(tau):
        b = Builder(risk_tolerance=tau)
        b.add("long shot", cost=1, outcomes={0: 0.9, 60: 0.1})
        b.add("steady", cost=1, outcomes={5: 0.5, 6: 0.5})
        s = solve(b.build())
        return s.first_box, s.value

    neutral = Builder()
    neutral.add("long shot", cost=1, outcomes={0: 0.9, 60: 0.1})
    neutral.add("steady", cost=1, outcomes={5: 0.5, 6: 0.5})
    assert first(1e4)[1] == pytest.approx(solve(neutral.build()).value, abs=0.02)
    assert first(1e4)[0] == "long shot"
    assert first(1.0)[0] == "steady"


def test_the_whole_law_of_a_cost_counts():
    def value(cost):
        b = Builder(risk_tolerance=2.0)
        b.add("A", cost=cost, outcomes={"x": 0.5, "y": 0.5}, rewards={"x": 9, "y": 9})
        return solve(b.build()).value

    assert value(2) == pytest.approx(7.0)
    spread = 2.0 * math.log((math.exp(0.5 * 0) + math.exp(0.5 * 4)) / 2)
    assert value({"x": 0, "y": 4}) == pytest.approx(9 - spread)


@pytest.mark.parametrize("tau", [0.05, 0.3, 5.0])
def test_the_certificate_holds_where_errors_are_magnified(tau):
    forest = random_forest(np.random.default_rng(5), 300)
    from dataclasses import replace

    risky = replace(forest, risk_tolerance=tau)
    exact, coarse = solve(risky, exact=True), solve(risky, tolerance=1e-3)
    assert exact.status is Status.EXACT or tau == 0.05
    assert -1e-10 <= coarse.value - exact.value <= coarse.gap + 1e-10
    if coarse.status is not Status.COARSE:
        assert coarse.gap <= 1e-3


def test_minimizing_and_maximizing_are_mirror_images():
    up = Builder(outside=-9, risk_tolerance=3.0).add("A", cost=1, outcomes={-2: 0.5, -8: 0.5})
    down = Builder(outside=9, minimize=True, risk_tolerance=3.0)
    down.add("A", cost=1, outcomes={2: 0.5, 8: 0.5})
    a, b = solve(up.build()), solve(down.build())
    assert a.value == pytest.approx(-b.value)
    assert a.index("A") == pytest.approx(-b.index("A"))


@pytest.mark.parametrize(
    ("tau", "message"),
    [
        (0.0, "a risk tolerance must be a finite number above 0"),
        (-1.0, "above 0"),
        (np.inf, "finite"),
        (1e-3, "utilities overflow, but it is 11 for a tolerance of 0.001"),
    ],
)
def test_bad_tolerances_are_rejected(tau, message):
    with pytest.raises(InvalidForest, match=message):
        Forest.from_arrays(
            parent=[-1], cost=[1.0], rewards=[0.0, 10.0], law=[[0.5, 0.5]], risk_tolerance=tau
        )


def test_endless_lines_and_too_many_derivatives_are_rejected_by_name():
    sticky = [[0.9, 0.1], [0.2, 0.8]]
    with pytest.raises(InvalidForest, match="needs a forest that ends"):
        weitzman.line(
            ([0.5, 0.5], sticky), length=np.inf, rewards=[0, 10], cost=0.5, risk_tolerance=4.0
        )
    many = weitzman.side_by_side([weitzman.line([[1.0]], rewards=[5], cost=1)] * 2001)
    with pytest.raises(InvalidArgument, match="without copies"):
        weitzman.sensitivity(
            solve(weitzman.line([[1.0]], rewards=[5], cost=1, count=2, risk_tolerance=4.0))
        )
    with pytest.raises(InvalidArgument, match="for at most 2000 of them, but there are 2001"):
        weitzman.sensitivity(solve(many.changed(risk_tolerance=4.0)))


@pytest.mark.parametrize("seed", range(30))
def test_derivatives_of_a_certainty_equivalent(seed):
    """Against differences of solves; those in rewards and the outside option sum to one."""
    forest = f = weitzman.forest.expand(random_terms(np.random.default_rng([4, seed]), "risk"))
    found = weitzman.sensitivity(solve(forest, exact=True))
    assert found.reward.totals().sum() + found.outside == pytest.approx(1, abs=1e-9)
    step = 1e-6
    kinks = 0

    def slope(up, down):
        """Left and right; at a kink they differ."""
        here = solve(forest, exact=True).value
        right = (solve(up, exact=True).value - here) / step
        left = (here - solve(down, exact=True).value) / step
        return left, right

    for v in range(len(f)):
        base = np.broadcast_to(f.costs[int(f.cost[v])], f.laws[int(f.law[v])].shape)
        for s in range(len(base)):
            if base[s].min() < step:
                continue
            move = np.zeros_like(base)
            move[s] = step
            left, right = slope(f.changed(cost={v: base + move}), f.changed(cost={v: base - move}))
            if abs(left - right) > 1e-4:
                kinks += 1
                assert min(left, right) - 1e-4 <= found.cost[v][s] <= max(left, right) + 1e-4
            else:
                assert found.cost[v][s] == pytest.approx(right, abs=2e-4)
    left, right = slope(f.changed(outside=f.outside + step), f.changed(outside=f.outside - step))
    assert min(left, right) - 1e-4 <= found.outside <= max(left, right) + 1e-4


@pytest.mark.parametrize("seed", range(20))
def test_break_even_costs_are_where_the_decision_turns(seed):
    """With any term: dearer and the box is not opened, cheaper and it is; also near the limit."""
    rng = np.random.default_rng([5, seed])
    forest = random_terms(rng, ("risk", "time", "prizes")[seed % 3])
    if seed % 3 == 0:
        forest = forest.changed(risk_tolerance=float(rng.choice([1.5, 5])))
    f = forest
    solution = solve(f, exact=True)
    for v in f.roots.tolist():
        turn = weitzman.break_even(solution, v).opened_below
        for cost, opened in ((turn - 1e-6, True), (turn + 1e-6, False)):
            if cost >= 0:
                index = f.sign * solve(f.changed(cost={v: cost}), exact=True).index(v)
                assert (index > f.sign * f.outside) == opened
    for v in np.flatnonzero(f.parent >= 0).tolist():
        first = weitzman.break_even(solution, v, 0).first_below
        assert first is None or first > 0


@pytest.mark.parametrize("seed", range(40))
def test_any_policy_is_evaluated_however_dear_its_boxes(seed):
    """Policies that open what no careful searcher would: slopes of utilities exceed one."""
    rng = np.random.default_rng([8, seed])
    forest = weitzman.forest.expand(random_terms(rng, "risk"))
    w = WrittenOut(forest)
    sizes = forest.laws.shape[forest.law, 0]
    policy = Policy.of(forest, np.cumsum(sizes) - sizes, rng.normal(3, 5, sizes.sum()))

    def go(seen, hand):
        best = max([w.outside, *hand.values()])
        found = [
            (float(policy.index[policy.index_at[i] + w.state_above(i, seen)]), -i)
            for i in w.ready(seen)
        ]
        top = max(found, default=(-np.inf, 0))
        return w.opening(-top[1], seen, hand, go) if top[0] > best else w.stop(hand)

    assert evaluate(policy).value == pytest.approx(w.payoff(go({}, {})), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("exponent", [3, 12, 20, 30, 60, 200])
def test_the_gap_covers_what_rounding_loses(exponent):
    """Where utilities span many powers of e, factors magnify rounding: the gap says so."""
    coarse = 0
    for seed in range(40):
        forest = weitzman.forest.expand(random_terms(np.random.default_rng([9, seed]), "risk"))
        numbers = np.append(forest.rewards.data, forest.outside)
        span = float(np.ptp(numbers[np.isfinite(numbers)]) + forest.costs.data.max())
        if span == 0:
            continue
        risky = forest.changed(risk_tolerance=span / exponent)
        s = solve(risky)
        best = optimum(WrittenOut(risky))
        assert abs(s.value - best) <= s.gap + 1e-9 * span
        assert np.isfinite(s.value)
        coarse += s.status is Status.COARSE
    assert coarse <= 1 or exponent >= 12


WIDE = [  # (parent, cost, rewards, law, outside, tolerance); minimized where there is none
    ([-1, 0, -1], [2, 0.125, 2], [[6.82, 6.04, 0.91], [2.5], [8.62]],
     [[0.5625, 0.125, 0.3125], [[1]] * 3, [1]], np.inf, 0.1),
    ([-1, 0], [2, 0.5], [[0.68, 0.87, 0.72], [0.21]],
     [[0.25, 0.5, 0.25], [[1]] * 3], -np.inf, 0.05),
    ([-1, -1, 0], [0, 0.125, 0.5], [[53.97, 52.73], [6.03], [20.58]],
     [[0.625, 0.375], [1], [[1], [1]]], -20, 0.15),
]  # fmt: skip


@pytest.mark.parametrize("terms", WIDE)
def test_where_kernels_lack_digits_a_forest_is_solved_in_numpy(terms):
    """Compiled, the first was 8.956 with gap 0 (true: 4.5875), the others had no digit left."""
    parent, cost, rewards, law, outside, tolerance = terms
    forest = Forest.from_arrays(
        parent=parent, cost=cost, rewards=rewards, law=law, outside=outside,
        minimize=outside == np.inf, risk_tolerance=tolerance,
    )  # fmt: skip
    by_size = weitzman.solve(forest)
    jit.compile_always()
    try:
        found = weitzman.solve(forest)
    finally:
        jit.compile_always(False)
    assert found.status is not Status.COARSE
    assert found.value == pytest.approx(by_size.value, abs=1e-8)
    assert weitzman.evaluate(found).value == pytest.approx(by_size.value, abs=1e-8)


def test_a_policy_that_takes_nothing_is_worth_nothing():
    forest = Forest.from_arrays(parent=[-1], cost=[1], rewards=[[2, 3]], law=[[0.5, 0.5]],
                                outside=-np.inf, risk_tolerance=1)  # fmt: skip
    assert weitzman.evaluate(Policy.of(forest, -np.inf)).value == -np.inf
