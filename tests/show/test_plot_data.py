"""The numbers behind the pictures, against the exact oracle and cases worked by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import random_problems
import reference
from followed_runs import forest_of, policy_of, ruled
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_forests import paper_example as chests

import weitzman
from weitzman import plot
from weitzman.policy import payoff_law
from weitzman.show.plot.paths import decision_region
from weitzman.show.plot.trees import tree


def tree_shape(draw: st.DataObject, most: int = 60) -> weitzman.Forest:
    n = draw.draw(st.integers(1, most))
    parent = [-1] + [draw.draw(st.integers(-1, i - 1)) for i in range(1, n)]
    law = [[0.5, 0.5] if p < 0 else [[0.7, 0.3], [0.2, 0.8]] for p in parent]
    cost = [0.25 + 0.01 * (i % 7) for i in range(n)]
    return weitzman.Forest.from_arrays(parent=parent, cost=cost, rewards=[0.0, 8.0], law=law)


# -- the tree ----------------------------------------------------------------------------------


def test_tree_of_the_paper_by_hand():
    t = tree(weitzman.solve(chests()))
    assert t.box.tolist() == [0, 2, 1]  # by depth
    assert t.above.tolist() == [-1, -1, 0]
    assert t.opened == pytest.approx([1, 0.9, 0.55])
    assert t.row.tolist() == [0, 1, 0]  # B beside A, and C below
    said = [text.get_text() for text in plot.forest(weitzman.solve(chests())).texts][4::2]
    assert said == ["cost 20, index 707", "cost 5, index 40", "cost 3, index 15 to 914"]
    assert (t.rest, t.hidden.sum(), t.rows) == (0, 0, 2)


@settings(max_examples=40)
@given(st.data())
def test_every_box_is_shown_or_counted_and_no_two_stand_in_one_place(data):
    f = tree_shape(data)
    limit, levels = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 5))
    t = tree(weitzman.solve(f), limit, levels)
    assert len(t.box) <= limit
    assert t.depth.max() < levels
    assert len(t.box) + t.hidden.sum() + t.rest == len(f)
    places = list(zip(t.depth, t.row, strict=True))
    places += [(d + 1, r) for d, r, own in zip(t.depth, t.hidden_row, t.row, strict=True)
               if r == r and r != own]  # fmt: skip
    assert len(set(places)) == len(places)
    assert t.row.max() < t.rows
    for i, up in enumerate(t.above):
        below = np.flatnonzero(t.above == i)
        if up >= 0:
            assert f.parent[t.box[i]] == t.box[up]
            assert t.depth[i] == t.depth[up] + 1
        if len(below):
            assert t.row[i] == (t.row[below].min() + t.row[below].max()) / 2


def test_boxes_that_are_shown_are_those_opened_most():
    costs = [1.0, 2.0, 3.0, 0.5]
    boxes = [weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=c) for c in costs]
    t = tree(weitzman.solve(weitzman.side_by_side(boxes)), limit=2)
    assert t.box.tolist() == [0, 3]
    assert t.row.tolist() == [1, 0]  # what is opened first is on top
    assert t.rest == 2


# -- laws --------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(random_problems.forests(max_boxes=4), st.booleans())
def test_phi_is_the_value_of_the_problem_with_x_in_hand(problem, minimize):
    law = weitzman.solve(forest_of(problem, minimize=minimize), exact=True).capped_law()
    sign = -1 if minimize else 1
    for x in (Fraction(-9), Fraction(-1, 3), Fraction(0), Fraction(7, 8), Fraction(30)):
        truth = reference.optimal_value(replace(problem, outside=sign * x))
        found = float(law.phi(np.array([float(x)]))[0])
        assert found == pytest.approx(sign * float(truth), abs=1e-9)


@settings(max_examples=30)
@given(random_problems.forests(min_boxes=2, max_boxes=4, outside="zero"))
def test_phi_of_a_box_after_a_state(problem):
    forest = forest_of(problem)
    child = next((v for v in problem.boxes if problem.parents[v]), None)
    if child is None:
        return
    states = reference.parent_states(problem, child)[-1]
    solution = weitzman.solve(forest, exact=True)
    law = solution.capped_law(child, states[0])
    part = reference.subtree(problem, child, states)
    for x in (Fraction(-9), Fraction(1, 3), Fraction(5)):
        truth = reference.optimal_value(replace(part, outside=x))
        assert float(law.phi(np.array([float(x)]))[0]) == pytest.approx(float(truth), abs=1e-9)
    if np.isfinite(law.index):
        assert law.phi(np.array([law.index]))[0] == pytest.approx(law.index, abs=1e-9)


def test_capped_law_by_hand():
    law = weitzman.solve(chests()).capped_law("C")  # min(50 or 10, 40)
    assert law.points.tolist() == [10, 40]
    assert law.tails == pytest.approx([1, 0.5])
    assert law.index == 40
    assert law.low < 0 < 40 < law.high


def test_capped_law_of_a_box_that_promises_nothing():
    b = weitzman.Builder().add("sign", cost=1, outcomes={"a": 1.0}, rewards={"a": None})
    law = weitzman.solve(b.build()).capped_law()
    assert law.low < 0 < law.high
    assert law.phi(np.array([0.0, 3.0])).tolist() == [0, 3]


@settings(max_examples=40)
@given(ruled(max_boxes=4), st.booleans())
def test_payoffs_are_those_of_the_oracle(case, minimize):
    problem, indices = case
    truth = reference.follow_indices(problem, indices)
    found = payoff_law(policy_of(forest_of(problem, minimize=minimize), indices))
    sign = -1 if minimize else 1
    wanted: dict[float, float] = {}
    for x, p in truth.payoffs.items():
        if p:
            wanted[round(sign * float(x), 9)] = wanted.get(round(sign * float(x), 9), 0) + float(p)
    got: dict[float, float] = {}
    for x, p in zip(found.values, found.chances, strict=True):
        got[round(x, 9)] = got.get(round(x, 9), 0) + p
    assert found.how == "exact"
    assert got == pytest.approx(wanted)


def test_payoffs_with_copies():
    three = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=3)
    law = payoff_law(weitzman.solve(three))
    assert law.values.tolist() == [-3, 7, 8, 9]
    assert law.chances == pytest.approx([0.125, 0.125, 0.25, 0.5])
    assert law.worse == pytest.approx(0.125)


def test_payoffs_with_copies_behind_a_box():
    b = weitzman.Builder()
    b.add("sign", cost=1, outcomes={"bad": 0.5, "good": 0.5}, rewards={"bad": None, "good": None})
    b.add("prize", parent="sign", cost=1, outcomes={"bad": {0: 1.0}, "good": {8: 1.0}}, count=2)
    law = payoff_law(weitzman.solve(b.build()))
    assert law.values.tolist() == [-1, 6]
    assert law.chances.tolist() == [0.5, 0.5]


def test_what_is_worse_when_minimizing():
    b = weitzman.Builder(minimize=True, outside=5)
    law = payoff_law(weitzman.solve(b.add("a", cost=1, outcomes={0: 0.75, 9: 0.25}).build()))
    assert law.values.tolist() == [1, 6]  # the outside option and the cost, at worst
    assert law.worse == 0.25


def test_payoffs_of_a_large_forest_are_simulated_and_said_to_be():
    step = [[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]]
    f = weitzman.line(([0.6, 0.3, 0.1], step), length=9, rewards=[0, 5, 9], cost=0.1, count=65)
    solution = weitzman.solve(f)
    law = payoff_law(solution, episodes=20_000, rng=1)
    assert law.how == "20,000 simulated searches"
    assert law.chances.sum() == pytest.approx(1)
    assert law.mean == pytest.approx(solution.value, abs=1e-8)
    assert law.values @ law.chances == pytest.approx(solution.value, abs=0.1)


# -- paths -------------------------------------------------------------------------------------


@pytest.mark.parametrize("minimize", [False, True])
def test_a_search_by_hand(minimize):
    f, sign = chests(), -1 if minimize else 1
    if minimize:
        b = weitzman.Builder(minimize=True, outside=0)
        b.add("A", cost=20, outcomes={-900: 0.1, -1: 0.9})
        after = {-1: {-21: 0.5, 9: 0.5}, -900: {-920: 0.5, -890: 0.5}}
        b.add("B", parent="A", cost=3, outcomes=after)
        b.add("C", cost=5, outcomes={-50: 0.5, -10: 0.5})
        f = b.build()
    search = weitzman.Search(weitzman.solve(f))
    search.tell("A", sign * 1)
    search.tell("C", sign * 10)
    ax, lines, band = drawn_search(search)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["A", "C", "next"]
    assert (sign * lines["best so far"][1]).tolist() == [0, 1, 10, 10]
    assert {(1.5, -19 * sign), (2.5, -15 * sign)} <= band
    assert (sign * lines["highest index"][1]) == pytest.approx([707, 40, 15])
    assert lines["other indices"][0].tolist() == [1, 1, 2, 2, 3]
    assert (sign * lines["other indices"][1]) == pytest.approx([707, 40, 40, 15, 15])


def drawn_search(search):
    """The picture of a search: its lines by name, and the corners of the band of the spend."""
    ax = plot.search(search)
    lines = {x.get_label(): tuple(map(np.asarray, x.get_data())) for x in ax.lines}
    return ax, lines, {(x, y) for x, y in ax.collections[0].get_paths()[0].vertices.tolist()}


def test_a_search_with_true_rewards_and_no_names():
    f = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=2)
    search = weitzman.Search(weitzman.solve(f), rewards="nearest")
    search.tell(search.ask(), reward=1.5, cost=4.0)
    ax, lines, band = drawn_search(search)
    assert ax.get_xticklabels()[0].get_text() == "0#1"
    assert lines["best so far"][1].tolist() == [0, 1.5, 1.5]
    assert {(1.5, -2.5), (2.5, -2.5)} <= band
    assert lines["highest index"][1].tolist() == [8, 8]


def field(ax):
    """The map of a line: its colored cells, and the texts in them."""
    shown = ~np.ma.getmaskarray(ax.images[0].get_array())
    return shown, [text.get_text() for text in ax.texts]


def test_a_line_by_hand():
    law = [[0.5, 0.5], [0.25, 0.75]]
    solution = weitzman.solve(weitzman.line(([1, 0], law), length=3, rewards=[0, 8], cost=1))
    ax = plot.line(solution)
    shown, texts = field(ax)
    assert shown.tolist() == [[True, True], [False, False]]
    assert texts[1::2] == ["6", "6.66667"]  # the last box: 8 - 1 / P(8)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["0", "8"]
    assert f"index {solution.index(0):g}." in ax.get_title(loc="left")


def test_a_line_stops_at_an_index_equal_to_the_best():
    law = [[0.5, 0.0, 0.5], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]
    line = weitzman.line(([1, 0, 0], law), length=2, rewards=[0, 6, 8], cost=1)
    shown, texts = field(plot.line(weitzman.solve(line)))
    assert texts[1] == "6"
    assert shown[:, 0].tolist() == [True, False, False]


@pytest.mark.parametrize("minimize", [False, True])
def test_a_line_is_ordered_from_bad_to_good(minimize):
    rewards, outside = ([-4, -8, 0], 0) if minimize else ([4, 8, 0], 0)
    law = np.full((3, 3), 1 / 3)
    line = weitzman.line(
        (law[0], law), length=2, rewards=rewards, cost=1, outside=outside, minimize=minimize
    )
    labels = [text.get_text() for text in plot.line(weitzman.solve(line)).get_yticklabels()]
    assert [text.lstrip("-") for text in labels] == ["0", "4", "8"]


def test_a_map_needs_a_line():
    with pytest.raises(weitzman.errors.InvalidArgument, match="needs a line"):
        plot.line(weitzman.solve(chests()), "C")


class Saturating:
    """A stand-in for a fitted model: going on is worth 1 more than now, less with every step."""

    minimize = False
    rungs = np.array([1, 3, 9])

    def worth(self, score):
        return 10 * score

    def next_index(self, steps, scores):
        return 10 * scores[-1] + 2 - steps[-1]


def test_decision_region_by_hand():
    steps, go_on = decision_region(Saturating(), [0.0, 0.1])
    assert steps.tolist() == [1, 3]
    assert go_on.tolist() == [[True, False], [True, False]]
    assert decision_region(Saturating(), [0.0, 0.1], best=0.15)[1].tolist() == [
        [False, False],
        [True, False],
    ]
    # a score that beats the best in hand counts itself
    assert not decision_region(Saturating(), [0.2], best=0.05)[1][0, 1]
