"""Ranges of numbers: two-way charts, scenarios, draws, and what knowing a number is worth."""

from __future__ import annotations

import numpy as np
import pytest

from weitzman import Builder, solve
from weitzman.errors import InvalidArgument, UnknownName
from weitzman.files import Range, Ranges
from weitzman.questions import as_ranges, scenarios, two_way, uncertainty


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
    for given, message in (
        ([1], "must be Ranges or a mapping"),
        ({"A": (1, 2)}, "named"),
        ({("A", "cost"): (1, 2, 3, 4)}, "a range is"),
        ({("A", "reward"): (1, 2)}, "is not one number"),
        ({("A", "duration"): (1, 2)}, "has no duration"),
        ({("A", "cost"): 3}, "or a distribution"),
        ({}, "at least one range"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            uncertainty(forest, given, draws=2)
    with pytest.raises(UnknownName, match="no range is called 'x'"):
        two_way(forest, GIVEN, "x", 1)
    with pytest.raises(InvalidArgument, match="two different numbers"):
        two_way(forest, GIVEN, 1, 1)
    careful = Builder(risk_tolerance=5).add("A", cost=1, outcomes={0: 0.5, 9: 0.5}).build()
    with pytest.raises(InvalidArgument, match="risk tolerance"):
        uncertainty(careful, {("A", "cost"): (1, 2)})
    assert isinstance(Ranges([Range("A", "cost", 1, 0, 2)])[0], Range)
