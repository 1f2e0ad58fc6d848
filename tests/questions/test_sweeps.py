"""Studies, sweeps of the risk tolerance, ranges of numbers: two-way charts, scenarios, draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
import random_problems
from hypothesis import given, settings
from plain_forests import forest_of

import weitzman
from weitzman import Builder, Forest, questions, solve
from weitzman.errors import InvalidArgument, UnknownName
from weitzman.files import Range, Ranges
from weitzman.questions import as_ranges, scenarios, solve_many, two_way, uncertainty

# -- studies ---------------------------------------------------------------------------------------


def study(cases=6):
    """Random numbers for one shape: a line of two boxes beside a box."""
    rng = np.random.default_rng(5)
    cost, rewards = rng.uniform(0, 2, (cases, 3)), rng.uniform(0, 9, (cases, 3, 2))
    return cost, rewards, rng.dirichlet(np.ones(2), (cases, 3, 2))


def test_a_study_is_one_solve_for_each_case():
    cost, rewards, law = study()
    parent = [-1, 0, -1]
    forests = [
        Forest.from_arrays(
            parent=parent, cost=c, rewards=r, law=[p[0, 0], p[1], p[2, 0]], outside=1.0
        )
        for c, r, p in zip(cost, rewards, law, strict=True)
    ]
    told = []
    one_by_one = solve_many(forests, progress=lambda *done: told.append(done))
    assert told[-1] == (6, 6)
    arrays = solve_many(forests[0], cost=cost, rewards=rewards, law=law)
    for i, forest in enumerate(forests):
        alone = solve(forest)
        for found in (one_by_one, arrays):
            assert found.value[i] == pytest.approx(alone.value, abs=1e-12)
            assert (found.gap[i], found.first[i]) == (alone.gap, alone.first_box)
    dear = solve_many(forests[0], cost=2 * cost)
    assert dear.value[3] == pytest.approx(
        solve(forests[0].changed(cost=dict(enumerate(2 * cost[3])))).value, abs=1e-12
    )
    frame = arrays.to_pandas()
    assert frame["value"].tolist() == arrays.value.tolist()
    assert frame["first"].tolist() == list(arrays.first)


def test_what_a_study_rejects():
    box = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    for call, message in (
        (lambda: solve_many(box), "a list of forests, or one forest with arrays"),
        (lambda: solve_many([box], cost=[[1.0]]), "a list of forests, or one forest with arrays"),
        (lambda: solve_many([]), "at least one forest"),
        (lambda: solve_many([box, 3]), "case 1 must be a Forest, but it is a int"),
        (lambda: solve_many(box, cost=[1.0]), "`cost` must have 2 dimensions"),
        (lambda: solve_many(box, cost=[[1.0, 2.0]]), "the second of them for the 1 boxes"),
        (lambda: solve_many(box, cost=[[1.0]], rewards=np.zeros((2, 1, 2))), "the same number"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            call()


# -- from bold to careful --------------------------------------------------------------------------


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


def test_what_a_sweep_rejects():
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


# -- ranges of numbers ----------------------------------------------------------------------------


def pair():
    b = Builder().add("A", cost=1, outcomes={0: 0.5, 10: 0.5})
    return b.add("B", cost=2, outcomes={0: 0.6, 14: 0.4}).build()


GIVEN = {
    ("A", "cost"): (0.5, 3),
    ("B", "reward", 14): (8, 20),
    ("B", "probability", 14): (0.2, 0.7),
}


def test_ranges_of_a_mapping_take_their_base_from_the_forest():
    found = as_ranges(pair(), GIVEN)
    assert [(r.low, r.base, r.high) for r in found] == [
        (0.5, 1, 3),
        (8, 14, 20),
        (0.2, 0.4, 0.7),
    ]
    assert as_ranges(pair(), found) is found


def test_each_cell_of_a_chart_and_each_scenario_is_a_solve():
    forest, ranges = pair(), as_ranges(pair(), GIVEN)
    chart = two_way(forest, ranges, "cost of A", 1, steps=4)
    for i, x in enumerate(chart.x):
        for j, y in enumerate(chart.y):
            b = Builder().add("A", cost=x, outcomes={0: 0.5, 10: 0.5})
            alone = solve(b.add("B", cost=2, outcomes={0: 0.6, y: 0.4}).build())
            assert chart.value[i, j] == pytest.approx(alone.value)
            assert chart.choice[i, j] == alone.first_box
    assert len(set(chart.choice.ravel())) == 2
    cases = {
        "cheap": {"cost of A": "low"},
        "dear": {"cost of A": 20, ranges[1].title: "low"},
    }
    told = scenarios(forest, ranges, cases)
    assert told.value[0] == pytest.approx(solve(forest.changed(cost={"A": 0.5})).value)
    assert told.first == ("A", "B")
    assert len(chart.to_pandas()) == 16
    rows = list(zip(*chart.columns().values(), strict=True))
    assert rows[6] == (chart.x[1], chart.y[2], chart.value[1, 2], chart.choice[1, 2])
    assert told.to_pandas().scenario.tolist() == ["cheap", "dear"]
    assert told.columns()["value"] == told.value.tolist()


def test_what_knowing_one_number_is_worth_by_hand():
    """A box of mean 5 at a cost that is evenly 2 or more up to 8: it is opened if it costs < 5."""
    from scipy.stats import uniform

    box = Builder().add("A", cost=5, outcomes={0: 0.5, 10: 0.5}).build()
    found = uncertainty(box, {("A", "cost"): uniform(2, 6)}, draws=4000, rng=1)
    assert found.expected == 0  # at a cost of 5, opening does not pay
    wanted = 0.5 * 1.5  # half of the time it pays, by 1.5 on average
    assert found.knowing == pytest.approx(wanted, abs=5 * found.error)
    assert found.partial[0] == pytest.approx(wanted, abs=0.01)
    assert found.shares()["A"] == pytest.approx(0.5, abs=0.04)
    assert found.value == pytest.approx(np.maximum(5 - found.draws[:, 0], 0))
    assert found.columns()["evppi"] == found.partial.tolist()


def test_knowing_all_numbers_is_worth_as_much_as_knowing_one():
    found = uncertainty(pair(), GIVEN, draws=400, rng=3)
    assert found.knowing >= 0
    assert (found.partial >= 0).all()
    assert found.partial.max() <= found.knowing + 5 * found.error
    assert sum(found.shares().values()) == pytest.approx(1)
    again = uncertainty(pair(), GIVEN, draws=400, rng=3)
    assert np.array_equal(again.value, found.value)


def test_losses_are_rewards_with_signs_flipped():
    up = Builder().add("A", cost=4, outcomes={0: 0.5, 10: 0.5}).build()
    down = Builder(minimize=True, outside=0).add("A", cost=4, outcomes={0: 0.5, -10: 0.5}).build()
    a, b = (uncertainty(f, {("A", "cost"): (1, 4, 8)}, draws=50) for f in (up, down))
    assert b.knowing == pytest.approx(a.knowing)
    assert b.value == pytest.approx(-a.value)
    assert b.partial == pytest.approx(a.partial)


def test_bad_ranges_have_messages():
    forest = pair()
    for wrong, message in (
        ([1], "must be Ranges or a mapping"),
        ({"A": (1, 2)}, "named"),
        ({("A", "cost"): (1, 2, 3, 4)}, "a range is"),
        ({("A", "reward"): (1, 2)}, "is not one number"),
        ({("A", "duration"): (1, 2)}, "has no duration"),
        ({("A", "cost"): 3}, "or a distribution"),
        ({}, "at least one range"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            uncertainty(forest, wrong, draws=2)
    with pytest.raises(UnknownName, match="no range is called 'x'"):
        two_way(forest, GIVEN, "x", 1)
    with pytest.raises(InvalidArgument, match="two different numbers"):
        two_way(forest, GIVEN, 1, 1)
    careful = Builder(risk_tolerance=5).add("A", cost=1, outcomes={0: 0.5, 9: 0.5}).build()
    with pytest.raises(InvalidArgument, match="risk tolerance"):
        uncertainty(careful, {("A", "cost"): (1, 2)})
    assert isinstance(Ranges([Range("A", "cost", 1, 0, 2)])[0], Range)


def test_results_of_information_laws_and_truncation_are_data_frames():
    pytest.importorskip("pandas")
    box = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    known = questions.value_of_knowing(box, [0])
    assert known.to_pandas().iloc[0].to_dict() == {
        name: x[0] for name, x in known.columns().items()
    }
    law = weitzman.policy.payoff_law(weitzman.solve(box))
    assert law.to_pandas()["chance"].tolist() == law.chances.tolist()
    assert weitzman.truncate(box, gap=1e-3).to_pandas()["upper"].tolist() == [4.0]
    assert "\n" not in str(law) + str(weitzman.truncate(box, gap=1e-3))
