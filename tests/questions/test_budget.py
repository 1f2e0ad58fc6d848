"""Budgets and targets against every pair of spend and reward that some strategy has."""

from __future__ import annotations

from concurrent.futures import Future
from fractions import Fraction

import exact_questions
import numpy as np
import pytest
import random_problems
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_forests import forest_of, random_forest

import weitzman
from weitzman import Forest, evaluate, questions, solve
from weitzman.errors import InvalidArgument

SMALL = {"max_boxes": 3, "outside": "any"}


@settings(max_examples=50)
@given(random_problems.forests(**SMALL), st.lists(st.integers(0, 60), min_size=1, max_size=5))
def test_the_frontier_is_that_of_all_strategies(problem, budgets):
    true = exact_questions.spend_frontier(problem)
    forest = forest_of(problem)
    curve = questions.frontier(forest)
    for sixteenths in budgets:
        budget = Fraction(sixteenths, 16)
        wanted = float(exact_questions.reward_within(true, budget))
        assert curve.at(float(budget)).reward == pytest.approx(wanted, abs=1e-9)
        best = questions.within_budget(forest, float(budget))
        assert best.reward == pytest.approx(wanted, abs=1e-9)
        assert best.spend <= float(budget) + 1e-12


def test_a_mixture_is_made_of_policies_that_do_what_it_says():
    forest = random_forest(np.random.default_rng(1), 40)
    best = questions.within_budget(forest, 0.1)
    cheap, costly = evaluate(best.cheap.policy), evaluate(best.costly.policy)
    assert best.spend == pytest.approx(0.1)
    assert (1 - best.share) * cheap.spend + best.share * costly.spend == pytest.approx(0.1)
    mixed = (1 - best.share) * cheap.reward + best.share * costly.reward
    assert best.reward == pytest.approx(mixed)
    assert best.draw(0).forest is forest
    # no policy does better at the shadow price
    costs = weitzman.forest.Pool(
        best.price * forest.costs.data, forest.costs.start, forest.costs.shape
    )
    from dataclasses import replace

    assert solve(replace(forest, costs=costs)).value == pytest.approx(
        best.reward - best.price * best.spend, abs=1e-8
    )


def test_the_curve_is_concave_and_its_slope_is_the_shadow_price():
    forest = random_forest(np.random.default_rng(7), 60)
    curve = questions.frontier(forest)
    assert curve.gap == 0
    assert (np.diff(curve.spend) > 0).all()
    assert (np.diff(curve.price) < 1e-9).all()
    middle = (curve.spend[1] + curve.spend[2]) / 2
    assert curve.at(middle).price == pytest.approx(curve.price[1])
    few = questions.frontier(forest, corners=4)
    assert len(few.corners) == 4
    grid = np.linspace(curve.spend[0], curve.spend[-1], 50)
    above = np.array([curve.at(x).reward - few.at(x).reward for x in grid])
    assert above.min() > -1e-9
    assert above.max() <= few.gap + 1e-9


def test_losses_and_prizes_and_time_have_frontiers_too():
    down = weitzman.Builder(outside=10, minimize=True).add("A", cost=1, outcomes={2: 0.5, 8: 0.5})
    best = questions.within_budget(down.build(), 0.5)
    assert (best.reward, best.price) == pytest.approx((7.5, 5.0))
    two = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=3, prizes=2)
    assert questions.within_budget(two, 3.0).reward == pytest.approx(evaluate(solve(two)).reward)
    slow = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=2, factor=0.9)
    assert questions.within_budget(slow, 9.0).price == 0.0


@settings(max_examples=30)
@given(random_problems.forests(**SMALL), st.integers(0, 24), st.integers(0, 12))
def test_a_cap_lies_between_simulation_and_bound(problem, cap, seed):
    limit = Fraction(cap, 8)
    true = float(exact_questions.capped_value(problem, limit))
    found = questions.capped(forest_of(problem), float(limit), episodes=200, rng=seed)
    assert found.bound >= true - 1e-9
    assert found.reward <= true + 6 * found.error + 1e-9


def test_a_target_with_a_given_chance():
    box = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=9)
    for chance, spend in ((0.5, 1.0), (0.75, 1.5), (0.625, 1.25), (0.875, 1.75)):
        best = questions.cheapest(box, target=10, chance=chance)
        assert best.spend == pytest.approx(spend)
        assert best.reward == pytest.approx(chance)
    with pytest.raises(InvalidArgument, match=r"with a probability of 0.998047 at most"):
        questions.cheapest(box, target=10, chance=0.999)


def test_bad_budgets_are_rejected():
    box = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    with pytest.raises(InvalidArgument, match="at least 0, the least that any policy spends"):
        questions.within_budget(box, -1.0)
    must = Forest.from_arrays(
        parent=[-1], cost=[2], rewards=[0, 10], law=[[0.5, 0.5]], outside=-np.inf
    )
    with pytest.raises(InvalidArgument, match="at least 2, the least"):
        questions.within_budget(must, 1.0)
    with pytest.raises(InvalidArgument, match="risk tolerance"):
        questions.frontier(box.changed(risk_tolerance=5.0))


def test_the_oracle_knows_a_frontier_by_hand():
    problem = reference.from_nested([-1, -1], [1, 1], [[0, 10], [0, 4]], [["1/2", "1/2"]] * 2)
    assert exact_questions.spend_frontier(problem) == [(0, 0), (1, 5), (Fraction(3, 2), 6)]


class Counting:
    """An executor that runs everything at once, and says what it was given."""

    def __init__(self, dies: int = -1) -> None:
        self.scattered, self.given, self.dies = [], 0, dies

    def scatter(self, data):
        self.scattered.append(data)
        return data

    def submit(self, fn, /, *args):
        self.given += 1
        future = Future()
        if self.given == self.dies:
            future.set_exception(RuntimeError("the worker died"))
        else:
            future.set_result(fn(*args))
        return future


@pytest.mark.parametrize("corners", [1000, 7])
@pytest.mark.parametrize("dies", [-1, 3])
def test_workers_find_the_same_frontier(corners, dies):
    rng = np.random.default_rng(4)
    law = rng.dirichlet(np.ones(3), (12, 3))
    parent = np.array([-1, 0, 0, -1, 3, 4, -1, 6, 6, 7, -1, 10])
    law[parent < 0] = law[parent < 0][:, :1]
    forest = Forest.from_arrays(
        parent=parent, cost=rng.uniform(0.05, 0.5, 12), rewards=rng.random((12, 3)), law=law
    )
    alone = questions.frontier(forest, corners=corners)
    workers, told = Counting(dies), []
    shared = questions.frontier(
        forest, corners=corners, executor=workers, progress=lambda a, b: told.append((a, b))
    )
    assert [(c.price, c.spend, c.reward) for c in shared.corners] == [
        (c.price, c.spend, c.reward) for c in alone.corners
    ]
    assert shared.gap == alone.gap
    assert workers.scattered == [forest]  # once
    assert workers.given >= len(alone.corners) - 2
    assert told[-1][0] < len(alone.corners) + 1
    middle = len(alone.corners) // 2
    assert np.array_equal(shared.corners[middle].policy.index, alone.corners[middle].policy.index)


def two_boxes() -> Forest:
    boxes = weitzman.Builder().add("A", cost=1, outcomes={0: 0.5, 10: 0.5})
    return boxes.add("B", cost=1, outcomes={0: 0.5, 4: 0.5}).build()


def test_shadow_prices_at_corners():
    """At a corner the price is what one more unit of budget adds, by both ways to ask."""
    curve = questions.frontier(two_boxes())
    for budget, price in ((0.0, 5.0), (0.5, 5.0), (1.0, 2.0), (1.25, 2.0), (1.5, 0.0), (9.0, 0.0)):
        for best in (curve.at(budget), questions.within_budget(two_boxes(), budget)):
            assert best.price == pytest.approx(price), budget
            corner = budget in (0.0, 1.0, 1.5, 9.0)
            assert (best.cheap.spend == best.costly.spend) == corner
    assert curve.to_pandas().columns.tolist() == ["spend", "reward", "price"]
    assert str(curve).splitlines()[:2] == ["spend 0 to 1.5", "spend   reward   price beyond"]


def test_the_price_of_a_sure_target_is_that_of_more_spend():
    box = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=9)
    assert questions.cheapest(box, target=10, chance=0.5).price == pytest.approx(0.5)
    assert questions.cheapest(box, target=0, chance=0.5).price == 0  # the outside option


def test_a_cap_without_end_and_without_an_outside_option():
    found = questions.capped(two_boxes(), np.inf, rng=1)
    assert 1 <= found.spend <= 2
    must = Forest.from_arrays(
        parent=[-1, -1], cost=[[[1.0, 3.0]], 1.0], rewards=[[1.0, 2.0], [0.0]],
        law=[[0.5, 0.5], [1.0]], outside=-np.inf,
    )  # fmt: skip
    with pytest.raises(InvalidArgument, match="every run must find a reward"):
        questions.capped(must.take([0]), 2.5, rng=1)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda f: questions.capped(f, 1.0, episodes=0),
            "`episodes` must be a whole number from 2 on",
        ),
        (lambda f: questions.capped(f, np.nan), "`cap` must be a number"),
        (lambda f: questions.within_budget(f, "3"), "`budget` must be a number"),
        (lambda f: questions.frontier(f, corners=2.5), "`corners` must be a whole number"),
        (lambda f: questions.frontier(f, tolerance=-1), "`tolerance` must be at least 0"),
        (lambda f: questions.cheapest(f, np.nan, 0.5), "`target` must be a number"),
    ],
)
def test_bad_counts_and_amounts_are_rejected_by_name(ask, message):
    with pytest.raises(InvalidArgument, match=message):
        ask(two_boxes())
