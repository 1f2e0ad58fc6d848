"""Distributions that were made discrete: their stated error is part of the gap."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import weitzman
from weitzman import Builder, Forest, Status, line, solve
from weitzman.errors import InvalidForest
from weitzman.policy import equivalent_box

stats = pytest.importorskip("scipy.stats")


def built(n_states: int, **more) -> Forest:
    """Two kinds of continuous boxes; four, with the copies."""
    boxes = Builder()
    boxes.add("n", cost=0.3, outcomes=stats.norm(2, 1), n_states=n_states, count=3)
    boxes.add("u", cost=0.1, outcomes=stats.uniform(0, 4), n_states=n_states, **more)
    return boxes.build()


def test_the_stated_error_is_in_the_gap_and_the_status():
    boxes = Builder()
    boxes.add("n", cost=0.3, outcomes=stats.norm(2, 1), n_states=9, count=3)
    boxes.add("u", cost=0.1, outcomes=stats.uniform(0, 4), n_states=9)
    solution = solve(boxes.build())
    stated = 3 * boxes.errors["n"] + boxes.errors["u"]
    assert solution.status is Status.DISCRETIZED
    assert stated <= solution.gap <= stated + 1e-8
    assert solve(built(9), exact=True).gap == pytest.approx(stated, rel=1e-12)


@pytest.mark.parametrize("n_states", [3, 6, 12, 25])
def test_the_gap_holds_against_a_fine_discretization(n_states):
    fine = solve(built(2000))
    coarse = solve(built(n_states))
    assert abs(coarse.value - fine.value) <= coarse.gap + fine.gap
    assert fine.gap < 1e-4 < coarse.gap


def test_one_uniform_box_has_a_closed_form():
    """E max(1, U(0, 4)) - 0.1 = 1 * 1/4 + (16 - 1) / 8 - 0.1."""
    boxes = Builder(outside=1.0).add("u", cost=0.1, outcomes=stats.uniform(0, 4), n_states=5)
    solution = solve(boxes.build())
    true = 0.25 + 15 / 8 - 0.1
    assert 0 < abs(solution.value - true) <= solution.gap


def test_copies_below_copies_count():
    boxes = Builder()
    boxes.add("a", cost=1, count=3, outcomes={"go": 1.0}, rewards={"go": None})
    boxes.add("b", parent="a", cost=1, count=2, outcomes=stats.norm(2, 1), n_states=5)
    assert boxes.build().stated_error == pytest.approx(6 * boxes.errors["b"])


def test_states_that_children_look_at_are_the_problem_itself():
    law = weitzman.forest.discretize(stats.norm(2, 1), 2)
    after = {str(x): {0: 0.5, x: 0.5} for x in law.rewards.tolist()}
    boxes = Builder().add("a", cost=0.1, outcomes=law)
    states = boxes.build().states("a")
    after = dict(zip(states, after.values(), strict=True))
    assert boxes.add("b", parent="a", cost=0.1, outcomes=after).build().stated_error == 0


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".wz", ".csv", ".xlsx"])
def test_files_keep_it(tmp_path, suffix):
    if suffix == ".xlsx":
        pytest.importorskip("openpyxl")
    forest, path = built(5), tmp_path / f"x{suffix}"
    weitzman.save(forest, path)
    again = weitzman.load(path)
    assert again.stated_error == pytest.approx(forest.stated_error, rel=1e-9)
    assert solve(again).status is Status.DISCRETIZED


def test_forests_made_of_it_keep_it():
    forest = built(5)
    assert pickle.loads(pickle.dumps(forest)).stated_error == forest.stated_error
    assert forest.changed(outside=1.0).stated_error == forest.stated_error
    pair = weitzman.side_by_side([forest, forest], counts=[1, 2])
    assert pair.stated_error == pytest.approx(3 * forest.stated_error)
    assert weitzman.forest.expand(forest).stated_error == forest.stated_error


def test_truncation_bounds_the_discrete_problem():
    cut = weitzman.truncate(built(3), gap=1e-3)
    assert cut.upper - cut.lower <= 1e-3


def test_no_bound_is_claimed_for_certainty_equivalents():
    assert solve(built(9).changed(risk_tolerance=5.0)).gap == np.inf


@pytest.mark.parametrize(
    ("wrong", "message"),
    [(x, "`stated_error` must be a finite number") for x in (-1.0, np.nan, np.inf)]
    + [(x, "the stated error must be a number, but it is") for x in ("x", True, np.True_)],
)
def test_nonsense_is_rejected(wrong, message):
    with pytest.raises(InvalidForest, match=message):
        Forest.from_arrays(
            parent=[-1], cost=[1], rewards=[0, 1], law=[[0.5, 0.5]], stated_error=wrong
        )


def test_boxes_in_place_of_a_forest_keep_the_stated_error():
    f = line([[0.5, 0.5]], rewards=[0, 10], cost=1).changed(stated_error=0.045)
    s = solve(f)
    for box in (s.capped_law().box(), s.capped_law(0).box(), equivalent_box(s)):
        assert box.stated_error == 0.045
        assert solve(box).gap >= 0.045
        assert solve(box).status is Status.DISCRETIZED
