"""Simulated time, risk and several prizes against exact expectations."""

from __future__ import annotations

import numpy as np
import pytest
from plain_forests import random_forest

import weitzman
from weitzman import Builder, evaluate, simulate, solve
from weitzman.errors import InvalidArgument


def close(sample, expected):
    assert abs(sample.mean - expected) < 5 * sample.standard_error + 1e-12, (sample, expected)


def timed_forest():
    b = Builder(rate=0.1)
    b.add("A", cost=2, outcomes={0: 0.5, 10: 0.5}, duration={0: 3, 10: 1})
    b.add("B", parent="A", cost={0: 1, 10: 0.5}, outcomes={4: 0.5, 12: 0.5}, duration={0: 2, 10: 5})
    b.add("C", cost=1, outcomes={0: 0.7, 9: 0.3}, duration=1, count=3)
    return b.build()


def test_time():
    s = solve(timed_forest())
    e, played = evaluate(s), simulate(s, 200_000, rng=1)
    close(played.payoff, e.value)
    close(played.reward, e.reward)
    close(played.spend, e.spend)
    close(played.time, e.time)
    assert "time" in played.columns()
    assert "time" in played.table()
    assert played.time.values.max() <= 3 + 5 + 3


def test_a_round_takes_as_long_as_its_slowest_box():
    b = Builder(rate=0.0)
    b.add("A", cost=0, outcomes={0: 1.0}, duration=3)
    b.add("B", cost=0, outcomes={1: 1.0}, duration=5)
    s = solve(b.build())
    assert simulate(s, 10, rng=1, workers=2, budget=2).time.mean == 5
    assert simulate(s, 10, rng=1, budget=2).time.mean == 8


def test_without_time_nothing_is_said_of_it():
    played = simulate(solve(weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)), 100, rng=1)
    assert "time" not in played.columns()


def test_risk_is_simulated_in_payoffs():
    forest = weitzman.line([[0.5, 0.3, 0.2]], rewards=[0, 0.5, 1], cost=0.05, count=3)
    forest = forest.changed(risk_tolerance=0.4)
    s = solve(forest)
    played = simulate(s, 100_000, rng=3)
    utility = -np.exp(-played.payoff.values / 0.4)
    error = utility.std() / len(utility) ** 0.5
    assert error > 1e-4
    assert abs(utility.mean() + np.exp(-s.value / 0.4)) < 5 * error


@pytest.mark.parametrize("prizes", [2, 5])
def test_prizes(prizes):
    forest = weitzman.side_by_side(
        [random_forest(np.random.default_rng(i), 12) for i in range(4)], counts=[1, 2, 1, 2]
    ).changed(prizes=prizes)
    s = solve(forest)
    e, played = evaluate(s), simulate(s, 100_000, rng=2)
    close(played.payoff, e.value)
    close(played.spend, e.spend)
    close(played.openings, e.openings)
    assert played.opened == pytest.approx(e.opened, abs=0.02)


def test_several_prizes_are_taken_one_at_a_time():
    s = solve(weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=3, prizes=2))
    with pytest.raises(InvalidArgument, match="one at a time"):
        simulate(s, 10, rng=1, workers=2)
