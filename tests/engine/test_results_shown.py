"""How results look, and arrays that are looked up by the names of boxes."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import weitzman
from weitzman import Builder, questions, strategies
from weitzman.errors import UnknownName

CHEST = (
    Builder()
    .add("A", cost=20, outcomes={900: 0.1, 1: 0.9})
    .add("<b>", parent="A", cost=3, outcomes={1: {21: 0.5, -9: 0.5}, 900: {920: 0.5, 890: 0.5}})
    .add("C", cost=5, outcomes={50: 0.5, 10: 0.5})
    .build()
)


def test_numbers_of_boxes_are_found_by_name() -> None:
    opened = weitzman.evaluate(weitzman.solve(CHEST)).opened
    assert [opened[name] for name in ("A", "<b>", "C")] == opened.tolist()
    assert [opened[v] for v in range(3)] == opened.tolist()
    with pytest.raises(UnknownName, match="no box 'D'"):
        opened["D"]


def test_what_is_cut_out_of_them_or_computed_is_a_plain_array() -> None:
    opened = weitzman.evaluate(weitzman.solve(CHEST)).opened
    for plain in (opened[1:], opened[::-1], opened + 1, opened[opened > 0], np.sort(opened[:])):
        assert type(plain) is np.ndarray
    assert isinstance(opened.sum(), float)
    assert repr(opened).startswith("array([")
    with pytest.raises(IndexError):
        opened.copy()["A"]  # its boxes may have been moved about


def test_they_keep_their_names_in_files() -> None:
    opened = weitzman.evaluate(weitzman.solve(CHEST)).opened
    assert pickle.loads(pickle.dumps(opened))["C"] == opened["C"]
    assert np.array_equal(copy.copy(opened), opened)


def test_every_result_has_a_short_text_and_a_view_for_notebooks() -> None:
    solution = weitzman.solve(CHEST)
    chain = weitzman.Chain([[0.5, 0.5], [0.2, 0.8]], [0, 9])
    results = [
        solution,
        weitzman.evaluate(solution),
        weitzman.simulate(solution, 100),
        weitzman.sensitivity(solution),
        weitzman.break_even(solution, "A"),
        weitzman.compare(solution, episodes=100),
        weitzman.truncate(CHEST, gap=1.0),
        weitzman.solve_line(chain, 1.0),
        strategies.best_nonadaptive(CHEST),
        strategies.best_partially_adaptive(CHEST),
        strategies.exhaustive(CHEST),
        CHEST,
    ]
    for result in results:
        assert repr(result).startswith(type(result).__name__ + "(")
        assert len(repr(result)) < 500
        page = result._repr_html_()
        assert page.startswith("<p>")
        assert "<b>" not in page
    assert "&lt;b&gt;" in solution._repr_html_()


def test_views_for_notebooks_have_units_and_hold_names_that_disturb_nothing() -> None:
    """Forests, policies and what knowing is worth had none; a risk sweep printed its arrays."""
    name = "a\x1b[31mb\u202e<b>"
    b = weitzman.Builder().add("A", cost=20_000, outcomes={0: 0.7, 1_000_000: 0.3})
    b.add(name, cost=5, outcomes={0: 0.5, 12_345.678: 0.5})
    forest = b.build().changed(unit="$")
    solution, ranges = weitzman.solve(forest), {("A", "cost"): (1, 900_000), (name, "cost"): (1, 9)}
    shown = [
        forest, solution, solution.policy(), questions.tornado(forest),
        questions.risk_sweep(forest), weitzman.compare(forest), questions.frontier(forest),
        questions.value_of_knowing(forest, name), questions.scenarios(forest, ranges),
        questions.two_way(forest, ranges, 0, 1, steps=3),
        questions.uncertainty(forest, ranges, draws=9),
    ]  # fmt: skip
    for result in shown:
        for text in (result._repr_html_(), str(result)):
            assert "\x1b" not in text
            assert "\u202e" not in text
            assert "array(" not in result._repr_html_()
    for result in shown[:6]:
        assert "$" in result._repr_html_()
    assert "<td>$933,333</td>" in solution._repr_html_()
    assert "<td>$933,333</td>" in solution.policy()._repr_html_()
    assert "<td>$0 to $1,000,000</td>" in forest._repr_html_()


def test_random_numbers_are_the_same_in_two_calls() -> None:
    solution = weitzman.solve(CHEST)
    once, twice = (weitzman.simulate(solution, 200) for _ in range(2))
    assert once.payoff.mean == twice.payoff.mean == weitzman.simulate(solution, 200, 0).payoff.mean
