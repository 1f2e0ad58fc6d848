"""From bold to careful: sweeps of the risk tolerance."""

from __future__ import annotations

import math

import numpy as np
import pytest
import random_problems
from hypothesis import given, settings
from plain_forests import forest_of

import weitzman
from weitzman import Builder, questions, solve
from weitzman.errors import InvalidArgument


def two_projects(**terms):
    boxes = Builder(**terms)
    boxes.add("long shot", cost=1, outcomes={0: 0.9, 60: 0.1})
    boxes.add("steady", cost=1, outcomes={5: 0.5, 6: 0.5})
    return boxes.build()


def index(cost, law, tolerance):
    """The sure payoff at which opening one box makes no difference, by halving."""
    low, high = min(law) - cost - 1, max(law)
    for _ in range(200):
        x = (low + high) / 2
        opened = sum(p * math.exp(-(max(x, r) - cost - x) / tolerance) for r, p in law.items())
        low, high = (x, high) if opened < 1 else (low, x)
    return x


def test_at_a_turn_both_boxes_have_the_same_index():
    sweep = questions.risk_sweep(two_projects())
    (turn,) = sweep.turns
    assert index(1, {0: 0.9, 60: 0.1}, turn) == pytest.approx(
        index(1, {5: 0.5, 6: 0.5}, turn), rel=1e-6
    )
    assert sweep.decisions() == [(math.inf, turn, "long shot"), (turn, 0.0, "steady")]
    bolder, careful = (
        solve(two_projects(risk_tolerance=turn * x)).first_box for x in (1.0001, 0.9999)
    )
    assert (bolder, careful) == ("long shot", "steady")


@settings(max_examples=25)
@given(problem=random_problems.forests(max_boxes=4, max_states=3))
def test_values_are_those_of_solves_and_fall_with_the_tolerance(problem):
    forest = forest_of(problem)
    sweep = questions.risk_sweep(forest, steps=6)
    for tolerance, value, first in zip(*sweep.columns().values(), strict=True):
        careful = solve(forest.changed(risk_tolerance=tolerance), exact=True)
        assert careful.value == pytest.approx(value, abs=1e-6)
        assert first == careful.first_box
    assert (np.diff(sweep.tolerance) < 0).all()
    assert (np.diff(sweep.value) <= 1e-6).all()
    assert sweep.value[0] <= sweep.solution.value + 1e-6
    for high, low, first in sweep.decisions():
        assert high > low
        inside = [f for t, f in zip(sweep.tolerance, sweep.first, strict=True) if low < t < high]
        assert set(inside) <= {first}


def test_its_own_tolerance_plays_no_part_and_the_table_tells_the_ranges():
    sweep = questions.risk_sweep(two_projects(risk_tolerance=3.0), steps=8)
    assert np.array_equal(sweep.value, questions.risk_sweep(two_projects(), steps=8).value)
    first, second = str(sweep).splitlines()
    assert first.startswith("risk tolerance above ")
    assert first.endswith(": open long shot first")
    assert second.startswith("risk tolerance below ")
    assert str(questions.risk_sweep(weitzman.line([[1.0]], rewards=[0], cost=1))) == (
        "risk tolerance any: open nothing first"
    )


def test_what_a_sweep_refuses():
    with pytest.raises(InvalidArgument, match="does not go with discounting"):
        questions.risk_sweep(weitzman.line([[1.0]], rewards=[5], cost=1, factor=0.5))
    with pytest.raises(InvalidArgument, match="do not go with a risk tolerance"):
        questions.risk_sweep(two_projects(prizes=2))
    with pytest.raises(InvalidArgument, match="whole number from 2 on"):
        questions.risk_sweep(two_projects(), steps=1)
    with pytest.raises(InvalidArgument, match="needs a Forest"):
        questions.risk_sweep(3)


def test_utilities_that_are_thinned_beyond_all_are_solved_without_thinning():
    boxes = Builder(risk_tolerance=27.0, outside=0)
    for i in range(6):
        boxes.add(f"box {i}", cost=2, outcomes={1000: 0.5, 1010 + 3 * i: 0.5})
    forest = boxes.build()
    assert solve(forest).value == pytest.approx(solve(forest, exact=True).value, abs=1e-6)


def test_turning_points_of_a_careful_searcher_do_not_overflow():
    solution = solve(two_projects(risk_tolerance=8.0))
    nearest = questions.turning_points(solution)[0]
    moved = questions.robustness.moved
    v = solution.forest.box(nearest.box)
    for share, same in ((0.999 * nearest.share, True), (1.001 * nearest.share, False)):
        first = solve(moved(solution.forest, v, nearest.number, share)).first_box
        assert (first == solution.first_box) == same
