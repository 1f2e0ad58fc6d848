"""Evaluation of policies against enumeration, finite differences and identities."""

from __future__ import annotations

import math
import sys
from contextlib import contextmanager

import numpy as np
import pytest
import random_problems
import reference
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from plain_forests import PAPER, forest_of, random_forest, written_out

from weitzman import Forest, Policy, Search, break_even, evaluate, simulate, solve
from weitzman.engine.what_if import sensitivity
from weitzman.policy import payoff_law


def close(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-10 * max(1.0, abs(b))


def test_the_papers_example():
    e = evaluate(solve(Forest.from_arrays(**PAPER, names=["A", "B", "C"])))
    assert e.value == pytest.approx(94.325, abs=1e-12)
    assert e.opened == pytest.approx([1, 0.1 + 0.9 * 0.5, 0.9])
    assert e.openings == pytest.approx(2.45)
    assert e.spend == pytest.approx(20 + 3 * 0.55 + 5 * 0.9)
    assert e.reward == pytest.approx(94.325 + e.spend)
    assert e.chosen["C"] == pytest.approx([0.45, 0.225])
    assert e.chosen["B"][2] == pytest.approx(0.05)
    assert e.opened_after["B"] == pytest.approx([0.45, 0.1])
    assert e.outside == 0
    assert "94.325" in str(e)
    assert e.to_pandas()["spend"].sum() == pytest.approx(e.spend)


@contextmanager
def method(dense: bool):
    """Follow small problems in NumPy, or compiled like large ones."""
    with pytest.MonkeyPatch.context() as patch:
        if not dense:
            for name in ("_DENSE", "_DENSE_RISK"):
                patch.setattr(sys.modules["weitzman.engine.evaluation"], name, -1.0)
        yield


@pytest.mark.parametrize("dense", [True, False])
@given(random_problems.forests(max_boxes=5), st.data())
def test_any_index_policy_is_evaluated_as_by_enumeration(dense, problem, data):
    f = Forest.from_arrays(**reference.to_arrays(problem))
    if data.draw(st.booleans(), label="optimal"):
        s = solve(f, exact=True)
        rows = [s.indices(i).tolist() for i in range(len(f))]
    else:
        rows = reference.index_rows(data.draw(random_problems.arbitrary_indices(problem)))
    start = np.cumsum([0, *map(len, rows)])[:-1]
    with method(dense):
        e = evaluate(Policy.of(f, start, np.concatenate(rows)))
    truth = reference.follow_indices(problem, rows)
    assert close(e.value, float(truth.value))
    assert close(e.spend, float(truth.spend))
    assert all(map(close, e.opened, map(float, truth.opened)))  # ties included
    assert abs(e.residual) < 1e-12
    for box, row in enumerate(truth.chosen):
        assert all(map(close, e.chosen[box], map(float, row)))
    assert close(e.outside, float(truth.outside))


@pytest.mark.parametrize("dense", [True, False])
@settings(max_examples=30)
@given(random_problems.forests(max_boxes=4, signals=False, free=False), st.data())
def test_copies_count_as_if_written_out(dense, problem, data):
    arrays = reference.to_arrays(problem)
    n = len(arrays["parent"])
    # no ties but those between copies: written out, other ties would be broken by other numbers
    arrays["rewards"] = [
        [r + 1e-3 * math.sqrt(3 * i + y + 2) for y, r in enumerate(row)]
        for i, row in enumerate(arrays["rewards"])
    ]
    count = data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    with method(dense):
        counted = evaluate(solve(Forest.from_arrays(**arrays, count=count), exact=True))
    parent, origin = written_out(arrays["parent"], count)
    full = evaluate(solve(Forest.from_arrays(
        parent=parent,
        **{key: [arrays[key][i] for i in origin] for key in ("cost", "rewards", "law")},
        outside=arrays["outside"],
    ), exact=True))  # fmt: skip
    assert close(counted.value, full.value)
    assert close(counted.openings, full.openings)
    assert abs(counted.residual) < 1e-12
    for box in range(n):
        copies = [i for i, o in enumerate(origin) if o == box]
        assert close(counted.opened[box], full.opened[copies].sum())
        assert close(counted.wins[box], full.wins[copies].sum())


def test_copies_tied_after_different_states_are_opened_alike_by_all():
    """The tied copy after state 0 comes first, though it is the worse try."""
    both = Forest.from_arrays(
        parent=[-1, 0], cost=0.0, rewards=[[0, 0], [0, 10]], count=[2, 1],
        law=[[0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]]],
    )  # fmt: skip
    solution = solve(both)
    assert solution.indices(1).tolist() == [10, 10]
    found, played = evaluate(solution), simulate(solution, 40_000, rng=1)
    assert found.opened == pytest.approx([2, 0.25 * 1.9 + 0.25 * 1.1 + 0.5 * 1.9])
    assert abs(played.openings.mean - found.openings) < 5 * played.openings.standard_error
    search = Search(solution)
    for state in (1, 0):
        search.tell(search.ask(), state)
    assert search.ask() == "1#2"
    search.release("1#2")
    assert [box for box, _ in search.available()] == ["1#2", "1#1"]


def test_openings_are_minus_the_derivative_in_costs_and_choices_that_in_rewards():
    rng = np.random.default_rng(4)
    f = random_forest(rng, 25, branch=6)
    s = solve(f, exact=True)
    slope = sensitivity(s)
    h = 1e-6
    for box in range(len(f)):
        c = float(f.costs[int(f.cost[box])][0, 0])
        up = solve(f.changed(cost={box: c + h}), exact=True).value
        down = solve(f.changed(cost={box: c - h}), exact=True).value
        assert slope.cost_totals[box] == pytest.approx((up - down) / (2 * h), abs=1e-6)
    up, down = (solve(f.changed(outside=x), exact=True).value for x in (h, -h))
    assert slope.outside == pytest.approx((up - down) / (2 * h), abs=1e-6)
    one = f.rewards.with_more(
        [f.rewards[int(f.reward[3])] + [[h] + [0] * (f.rewards.shape[f.reward[3], 1] - 1)]]
    )
    which = f.reward.copy()
    which[3] = len(f.rewards)
    raised = Forest(
        parent=f.parent, law=f.law, reward=which, cost=f.cost, laws=f.laws, rewards=one,
        costs=f.costs, count=f.count,
    )  # fmt: skip
    gain = (solve(raised, exact=True).value - s.value) / h
    assert slope.reward[3][0] == pytest.approx(gain, abs=1e-6)


@pytest.mark.parametrize("trees", [1, 900])
def test_identities_on_larger_forests(trees):
    rng = np.random.default_rng(trees)
    n = 4500
    parent = np.array([
        -1 if i % (n // trees) == 0 else i - 1 - rng.integers(0, min(3, i % (n // trees)))
        for i in range(n)
    ])  # fmt: skip
    f = Forest.from_arrays(
        parent=parent, cost=rng.uniform(0.0005, 0.05, n), rewards=[0.1, 0.4, 0.8, 1.0],
        law=[rng.dirichlet(np.ones(4), None if p < 0 else 4) for p in parent],
    )  # fmt: skip
    s = solve(f)
    e = evaluate(s)
    assert e.value == pytest.approx(s.value, abs=s.gap + 1e-12)
    assert e.wins.sum() + e.outside == pytest.approx(1, abs=1e-12)
    assert (e.opened <= 1 + 1e-12).all()
    child = f.parent >= 0
    assert (e.opened[child] <= e.opened[f.parent[child]] + 1e-12).all()
    same = evaluate(s)
    assert (same.opened == e.opened).all()


@pytest.mark.parametrize("dense", [True, False])
def test_a_billion_boxes_by_counts(dense):
    levels = 20
    f = Forest.from_arrays(
        parent=np.arange(levels) - 1, cost=[0.05] * levels, rewards=[0, 1],
        law=[[0.5, 0.5], *[[[0.9, 0.1], [0.3, 0.7]]] * (levels - 1)],
        count=[1] + [3] * (levels - 1),
    )  # fmt: skip
    s = solve(f)
    with method(dense):
        e = evaluate(s)
    assert e.value == pytest.approx(s.value, abs=1e-9)
    assert abs(e.residual) < 1e-10


def test_minimizing():
    losses = [[-r for r in row] for row in PAPER["rewards"]]
    e = evaluate(
        solve(Forest.from_arrays(**{**PAPER, "rewards": losses}, minimize=True, outside=0))
    )
    assert e.value == pytest.approx(-94.325)
    assert e.value == pytest.approx(e.reward + e.spend)
    assert e.opened == pytest.approx([1, 0.55, 0.9])


# -- break-even costs --------------------------------------------------------------------------


@settings(max_examples=30)
@given(
    random_problems.forests(max_boxes=4, costs="fixed", signals=False, outside="zero"), st.data()
)
def test_the_index_meets_what_is_in_hand_at_the_break_even_cost(problem, data):
    f = Forest.from_arrays(**reference.to_arrays(problem))
    s = solve(f, exact=True)
    box = data.draw(st.integers(0, len(f) - 1))
    up = int(f.parent[box])
    state = None if up < 0 else data.draw(st.integers(0, len(f.states(up)) - 1))
    in_hand = 0.0 if up < 0 else max(0.0, f.rewards[int(f.reward[up])][0, state])
    turn = break_even(s, box, state).opened_below
    assume(turn > 1e-6)
    at = solve(f.changed(cost={box: turn}), exact=True).index(box, state)
    assert at == pytest.approx(in_hand, abs=1e-9)


def test_break_even_on_the_papers_example():
    s = solve(Forest.from_arrays(**PAPER, names=["A", "B", "C"]))
    # A must beat C's index 40: 0.1 * (902 + ... ) by re-solving at the stated cost
    turn = break_even(s, "A").first_below
    f = s.forest
    assert solve(f.changed(cost={"A": turn - 1e-6})).first_box == "A"
    assert solve(f.changed(cost={"A": turn + 1e-6})).first_box == "C"
    # B after 1 competes with the 1 in hand: 0.5 * (21 - 1)
    b = break_even(s, "B", 0)
    assert b.opened_below == pytest.approx(10)
    assert b.cost == 3
    assert b.first_below == np.inf  # A leads however dear B is
    c = break_even(s, "C")
    assert c.first_below is None  # not even a free C comes before A
    assert c.opened_below == pytest.approx(30)


# -- what once went wrong ----------------------------------------------------------------------


@settings(max_examples=40)
@given(random_problems.forests(max_boxes=5, signals=False, outside="none"))
def test_evaluation_equals_the_solution_when_something_must_be_taken(problem):
    # rounding must not leave a hair of probability on an infinite outside option
    s = solve(Forest.from_arrays(**reference.to_arrays(problem)))
    e = evaluate(s)
    assert close(e.value, s.value)
    assert e.outside == 0


def test_laws_that_sum_to_a_hair_less_than_one():
    f = Forest.from_arrays(
        parent=[-1], cost=[0.1], rewards=[1, 2, 3], law=[[0.6, 0.3, 0.1]], outside=-np.inf
    )
    assert evaluate(solve(f)).value == pytest.approx(1.4)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize(("count", "p"), [(10**12, 1e-12), (10**15, 1e-16), (10**15, 3e-17)])
def test_rare_prizes_in_very_many_copies(count, p, dense):
    f = Forest.from_arrays(
        parent=[-1], cost=[p / 2], rewards=[0, 1], law=[[1 - p, p]], count=[count]
    )
    s = solve(f)
    with method(dense):
        e = evaluate(s)
    found = -math.expm1(count * math.log1p(-p))  # one of them wins
    assert s.value == pytest.approx(0.5 * found, rel=1e-9)  # capped at the index 1/2
    assert e.value == pytest.approx(s.value, rel=1e-9)
    assert e.openings == pytest.approx(found / p, rel=1e-9)
    assert abs(e.residual) < 1e-9


@pytest.mark.parametrize("dense", [True, False])
def test_nested_copies_beyond_integers(dense):
    n = 3
    f = Forest.from_arrays(
        parent=np.arange(n) - 1, cost=[1e-9] * n, rewards=[0, 1],
        law=[[0.5, 0.5], *[[[1 - 1e-9, 1e-9], [0, 1]]] * (n - 1)], count=[10**15] * n,
    )  # fmt: skip
    s = solve(f)
    with method(dense):
        assert evaluate(s).value == pytest.approx(s.value, rel=1e-6)


@pytest.mark.parametrize("kinds", [3, 400])
def test_trees_that_are_never_reached_change_nothing(kinds, monkeypatch):
    # only the best trees are looked at; few kinds make many ties between them
    rng = np.random.default_rng(kinds)
    n, k = 1500, 3
    which = rng.integers(0, kinds, n)
    laws = rng.dirichlet(np.ones(k), kinds)
    steps = rng.dirichlet(np.ones(k), (kinds, k))
    cost = rng.uniform(0.001, 0.05, kinds)
    f = Forest.from_arrays(
        parent=np.concatenate([[-1] * n, np.arange(n)]),
        cost=np.concatenate([cost[which], cost[which] / 2]),
        rewards=[0.1, 0.5, 0.9],
        law=[*laws[which], *steps[which]],
    )
    s = solve(f)
    few = evaluate(s)
    monkeypatch.setattr(sys.modules["weitzman.engine.evaluation"], "_FIRST_ROOTS", n)
    full = evaluate(s)
    assert few.value == pytest.approx(full.value, abs=1e-13)
    assert few.opened == pytest.approx(full.opened, abs=1e-14)
    assert few.chosen.data == pytest.approx(full.chosen.data, abs=1e-14)
    assert few.value == pytest.approx(s.value, abs=s.gap + 1e-12)


@pytest.mark.parametrize(
    ("cost", "rewards", "law", "outside", "tolerance", "value"),
    [
        (0.5, [7, 6], [0.2, 0.8], -20, 0.15, 5.533423816519830),
        (5.0, [50, 60], [0.5, 0.5], 0, 1.0, 45.693101781660735),
        (0.1, [3, 5], [0.75, 0.25], -6, 0.5, 3.040797710396351),
    ],
)
def test_risk_averse_evaluation_keeps_its_digits(cost, rewards, law, outside, tolerance, value):
    f = Forest.from_arrays(
        parent=[-1], cost=[cost], rewards=[rewards], law=[law], outside=outside,
        risk_tolerance=tolerance,
    )  # fmt: skip
    e = evaluate(Policy.of(f, np.array([0]), np.array([max(rewards) + 1.0])))
    exact = -tolerance * math.log(
        math.fsum(p * math.exp((cost - r) / tolerance) for p, r in zip(law, rewards, strict=True))
    )
    assert exact == pytest.approx(value, abs=1e-12)
    assert e.value == pytest.approx(exact, abs=1e-12)
    assert abs(e.value - exact) <= e.error < 1e-12


@settings(max_examples=40)
@given(random_problems.forests(max_boxes=4, outside="zero"), st.integers(-5, 4), st.data())
def test_the_certainty_equivalent_is_that_of_all_ends(problem, power, data):
    f = forest_of(problem, risk_tolerance=2.0**power)
    rows = reference.index_rows(data.draw(random_problems.arbitrary_indices(problem)))
    policy = Policy.of(f, np.cumsum([0, *map(len, rows)])[:-1], np.concatenate(rows))
    e = evaluate(policy)
    law = payoff_law(policy)
    worst = law.values.min()
    mean = math.fsum(law.chances * np.exp((worst - law.values) / f.risk_tolerance))
    assert e.value == pytest.approx(worst - f.risk_tolerance * math.log(mean), abs=1e-11)
