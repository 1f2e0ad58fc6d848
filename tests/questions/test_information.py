"""Information, robustness and choices against enumeration and finite differences."""

from __future__ import annotations

from itertools import pairwise

import exact_questions
import numpy as np
import pytest
import random_problems
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_forests import forest_of
from reference import NOTHING

import weitzman
from weitzman import Builder, questions, solve
from weitzman.errors import InvalidArgument

SMALL = {"max_boxes": 3, "outside": "any"}


@settings(max_examples=40)
@given(st.data())
def test_knowing_beforehand_is_worth_what_enumeration_says(data):
    problem = data.draw(random_problems.forests(**SMALL))
    known = data.draw(st.sets(st.sampled_from(list(problem.boxes)), min_size=1))
    wanted = float(exact_questions.value_knowing(problem, known))
    found = questions.value_of_knowing(forest_of(problem), sorted(known))
    assert found.value == pytest.approx(wanted, abs=1e-9)
    assert found.worth >= -1e-9
    assert found.error == 0.0


@pytest.mark.parametrize("boxes", ["chest", 0, np.int64(0)])
def test_one_box_may_be_given_without_a_list(boxes):
    forest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, names=["chest"])
    assert questions.value_of_knowing(forest, boxes).worth == 0.5


def test_a_test_is_worth_less_than_the_truth_and_more_than_nothing():
    b = Builder().add("A", cost=4, outcomes={0: 0.5, 10: 0.5}).add("B", cost=1, outcomes={3: 1.0})
    forest = b.build()
    worth = [questions.value_of_tests(forest, {"A": q}).worth for q in (0.5, 0.7, 0.9, 1.0)]
    assert worth[0] == pytest.approx(0.0, abs=1e-12)
    assert all(a <= b + 1e-12 for a, b in pairwise(worth))
    assert worth[-1] == pytest.approx(questions.value_of_knowing(forest, ["A"]).worth)


def test_many_boxes_are_sampled():
    forest = weitzman.forest.expand(
        weitzman.line([[0.85, 0.15]], rewards=[0, 10], cost=1, count=14)
    )
    found = questions.value_of_knowing(forest, range(14), samples=400, rng=3)
    assert found.error > 0
    exact = (1 - 0.85**14) * 9  # some box holds 10 and is opened straight away
    assert abs(found.value - exact) < 5 * found.error + 1e-9


def test_with_a_risk_tolerance_information_is_worth_a_difference_of_certainty_equivalents():
    b = Builder(risk_tolerance=5.0, outside=1)
    b.add("A", cost=2, outcomes={0: 0.5, 10: 0.5}).add("B", cost=1, outcomes={0: 0.2, 4: 0.8})
    forest = b.build()
    found = questions.value_of_knowing(forest, "A")
    each = []
    for chance in (0.0, 1.0):  # the certainty equivalent once A is known
        known = Builder(risk_tolerance=5.0, outside=1)
        known.add("A", cost=2, outcomes={0: 1 - chance, 10: chance})
        each.append(solve(known.add("B", cost=1, outcomes={0: 0.2, 4: 0.8}).build()).value)
    wanted = -5 * np.log(np.mean(np.exp(-np.array(each) / 5)))
    assert found.value == pytest.approx(wanted)
    assert found.worth == pytest.approx(wanted - solve(forest).value)
    bold = questions.value_of_knowing(forest.changed(risk_tolerance=1e6), "A")
    plain = Builder(outside=1).add("A", cost=2, outcomes={0: 0.5, 10: 0.5})
    plain.add("B", cost=1, outcomes={0: 0.2, 4: 0.8})
    assert bold.worth == pytest.approx(
        questions.value_of_knowing(plain.build(), "A").worth, rel=1e-4
    )


def test_what_is_told_must_be_about_one_box():
    with pytest.raises(InvalidArgument, match="has copies"):
        questions.value_of_knowing(
            weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=2), [0]
        )
    with pytest.raises(InvalidArgument, match="between 0 and 1"):
        questions.value_of_tests(weitzman.line([[0.5, 0.5]], rewards=[0, 1], cost=0), {0: 2.0})


def test_a_tornado_moves_one_number_at_a_time():
    b = Builder(outside=1).add("A", cost=1, outcomes={0: 0.5, 10: 0.5})
    b.add("B", cost=1, outcomes={0: 0.5, 9.9: 0.5})
    found = questions.tornado(b.build(), share=0.1)
    by = {(s.box, s.number): s for s in found.swings}
    assert by["A", "cost"].low == pytest.approx(solve(b.build().changed(cost={"A": 0.9})).value)
    assert by["A", "cost"].turns  # at 1.1 box B comes first
    assert by["A", "cost"].first_high == "B"
    assert ("", "outside") in by
    widths = [s.width for s in found.swings]
    assert widths == sorted(widths, reverse=True)
    assert "reward of A" in found.table()


def test_turning_points_are_where_the_first_decision_turns():
    b = Builder().add("A", cost=1, outcomes={0: 0.5, 10: 0.5})
    b.add("B", cost=1, outcomes={0: 0.5, 9: 0.5})
    forest = b.build()
    for turn in questions.turning_points(solve(forest)):
        if np.isfinite(turn.share):
            v = forest.box(turn.box)
            for scale, same in ((0.999, True), (1.001, False)):
                moved = questions.robustness.moved(forest, v, turn.number, scale * turn.share)
                assert (solve(moved).first_box == "A") is same, turn


NONE = {"dull": None, "bright": None}


def survey() -> weitzman.Forest:
    """A signal without a reward of its own, and a well behind it."""
    b = Builder().add("survey", cost=5, outcomes={"dull": 0.7, "bright": 0.3}, rewards=NONE)
    b.add(
        "well", parent="survey", cost=40,
        outcomes={"dull": {0: 0.95, 300: 0.05}, "bright": {0: 0.4, 300: 0.6}},
    )  # fmt: skip
    return b.build()


def test_the_chances_of_a_signal_count_in_a_tornado():
    """The best state is the one after which going on is worth most; signals have no reward."""
    forest = survey()
    found = questions.tornado(forest, share=0.1)
    by = {(s.box, s.number): s for s in found.swings}
    assert ("survey", "reward") not in by
    for chance, end in ((0.27, by["survey", "chance"].low), (0.33, by["survey", "chance"].high)):
        b = Builder().add(
            "survey", cost=5, outcomes={"dull": 1 - chance, "bright": chance}, rewards=NONE
        )
        b.add(
            "well", parent="survey", cost=40,
            outcomes={"dull": {0: 0.95, 300: 0.05}, "bright": {0: 0.4, 300: 0.6}},
        )  # fmt: skip
        assert end == pytest.approx(solve(b.build()).value)
    assert by["survey", "chance"].width > 1
    assert found.to_pandas().shape == (len(found.swings), 7)
    turns = {(t.box, t.number): t.share for t in questions.turning_points(solve(forest))}
    assert ("survey", "reward") not in turns
    assert turns["survey", "chance"] == pytest.approx(5 / 140 / 0.3 - 1)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda f: questions.tornado(f, boxes=-1), "`boxes` must be a whole"),
        (
            lambda f: questions.turning_points(solve(f), boxes=0),
            "`boxes` must be a whole number from 1 on",
        ),
        (lambda f: questions.turning_points(f), "a turning point needs a solution"),
        (
            lambda f: questions.value_of_knowing(f, 0, samples=0),
            "`samples` must be a whole number from 2 on",
        ),
        (lambda f: questions.value_of_tests(f, {"survey": 0.9, 0: 0.5}), "'survey' is named twice"),
        (lambda f: questions.value_of_tests(f, {}), "at least one box"),
        (lambda f: questions.commit(f, [[]]), "a group of alternatives must name a box"),
        (lambda f: questions.risk_sweep(f, steps=1), "`steps` must be a whole"),
    ],
)
def test_bad_questions_are_rejected_by_name(ask, message):
    with pytest.raises(InvalidArgument, match=message):
        ask(survey())


# -- choices ---------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(random_problems.forests(max_boxes=3, signals=False, outside="any"))
def test_the_optimum_lies_between_commitment_and_bound(problem):
    def mean(box, seen):
        if problem.parents[box]:
            return NOTHING
        return sum(p * r for p, r in zip(problem.law[box][()], problem.rewards[box], strict=True))

    optimum = float(exact_questions.value_with_blind_taking(problem, mean))
    found = questions.commit(forest_of(problem), unseen=True)
    assert found.value <= optimum + 1e-9
    assert optimum <= found.bound + 1e-9
    assert found.value == pytest.approx(solve(found.forest).value)


def test_a_cheap_and_a_dear_way_to_look():
    b = Builder(outside=2)
    b.add(
        "glance", cost=0.2, outcomes={"dull": 0.6, "bright": 0.4}, rewards={"dull": 1, "bright": 6}
    )
    b.add("study", cost=1, outcomes={0: 0.6, 10: 0.4})
    b.add("other", cost=1, outcomes={0: 0.5, 5: 0.5})
    forest = b.build()
    best = questions.commit(forest, [["glance", "study"]])
    each = [
        solve(forest.changed(cost={name: 1e6})).value for name in ("study", "glance")
    ]  # without the other way
    assert best.value == pytest.approx(max(each))
    assert best.bound >= best.value - 1e-12
    assert best.chosen == (("glance",) if each[0] > each[1] else ("study",))


def test_with_nothing_to_choose_the_bound_is_the_value():
    rng = np.random.default_rng(0)
    from plain_forests import random_forest

    forest = random_forest(rng, 30)
    found = questions.commit(forest)
    assert found.bound == pytest.approx(solve(forest).value, abs=1e-9)
    assert found.status == "Optimal: the bound is reached."


def test_a_commitment_keeps_what_the_forest_says_of_itself():
    from dataclasses import replace

    chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=4, names=["chest"])
    found = questions.commit(replace(chest, stated_error=0.045, unit="$"), unseen=True)
    assert found.forest.stated_error == 0.045
    assert found.forest.unit == "$"
    assert found.solution.gap >= 0.045
    assert found.solution.status is weitzman.Status.DISCRETIZED
    assert found.bound == pytest.approx(5.045)


def test_bad_choices_are_rejected():
    b = Builder().add("A", cost=1, outcomes={0: 0.5, 4: 0.5})
    b.add("B", parent="A", cost=1, outcomes={0: 0.5, 4: 0.5})
    with pytest.raises(InvalidArgument, match="one parent"):
        questions.commit(b.build(), [["A", "B"]])
    with pytest.raises(InvalidArgument, match="must be a root"):
        questions.commit(b.build(), unseen=["B"])
    with pytest.raises(InvalidArgument, match="discounting"):
        questions.commit(weitzman.line([[0.5, 0.5]], rewards=[0, 1], cost=0, factor=0.5))
