"""Several prizes, one from each tree, against an exhaustive programme."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import exact_questions
import exact_slopes
import numpy as np
import pytest
import random_problems
import reference
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from plain_forests import forest_of, random_forest

import weitzman
from weitzman import Builder, Forest, Policy, evaluate, solve
from weitzman.errors import InvalidForest


@st.composite
def several(draw):
    """A small forest of at least two trees, and a number of prizes."""
    problem = draw(random_problems.forests(min_boxes=2, max_boxes=4, outside="any"))
    trees = sum(not above for above in problem.parents)
    assume(trees > 1 and problem.outside is not None)
    return problem, draw(st.integers(2, trees))


@settings(max_examples=80)
@given(several())
def test_the_value_is_the_sum_of_the_largest_capped_values(case):
    problem, prizes = case
    roots, index = exact_slopes.solve(problem, problem.law, problem.cost)
    value = Fraction(0)
    for combination in product(*(root.items() for root in roots)):
        p, found = Fraction(1), [problem.outside] * prizes
        for x, q in combination:
            p *= q
            found.append(x)
        if p:
            value += p * sum(sorted(found)[-prizes:])
    assert value == exact_questions.prizes_value(problem, prizes)
    assert value == exact_questions.follow_prizes(problem, tuple(index), prizes).value


@settings(max_examples=120)
@given(several(), st.booleans())
def test_the_engine_finds_it(case, exact):
    problem, prizes = case
    s = solve(forest_of(problem, prizes=prizes), exact=exact)
    wanted = float(exact_questions.prizes_value(problem, prizes))
    assert s.value == pytest.approx(wanted, abs=1e-11 if exact else 1e-8)
    assert s.value - s.gap <= wanted + 1e-11
    one = solve(forest_of(problem), exact=True)
    assert s.index_columns()[1] == pytest.approx(one.index_columns()[1], abs=1e-8)


@settings(max_examples=100)
@given(st.data())
def test_evaluate_tells_the_chance_that_each_box_is_taken(data):
    problem, prizes = data.draw(several())
    forest = forest_of(problem, prizes=prizes)
    if data.draw(st.booleans()):
        policy = solve(forest, exact=True).policy()
    else:
        rows = data.draw(random_problems.arbitrary_indices(problem))
        flat = [float(row[s]) for row in rows for s in sorted(row)]
        policy = Policy.of(forest, np.cumsum([0, *map(len, rows)])[:-1].astype(int), np.array(flat))
    index = [
        policy.index[at : at + forest.laws.shape[forest.law[v], 0]].tolist()
        for v, at in enumerate(policy.index_at)
    ]
    wanted = exact_questions.follow_prizes(problem, index, prizes)
    found = evaluate(policy)
    assert found.value == pytest.approx(float(wanted.value), abs=1e-10)
    assert found.spend == pytest.approx(float(wanted.spend), abs=1e-10)
    assert found.opened == pytest.approx([float(x) for x in wanted.opened], abs=1e-10)
    for v in range(len(forest)):
        assert found.chosen[v] == pytest.approx([float(x) for x in wanted.taken[v]], abs=1e-10)
    places = float(sum(map(sum, wanted.taken)))
    assert found.outside == pytest.approx(prizes - places, abs=1e-10)


def test_copies_of_a_tree_are_trees():
    given = {"rewards": [0, 4, 10], "cost": 1}
    together = weitzman.line([[0.5, 0.3, 0.2]], count=5, prizes=3, **given)
    apart = weitzman.forest.expand(together)
    assert solve(together).value == pytest.approx(solve(apart).value, abs=1e-12)
    a, b = evaluate(solve(together)), evaluate(solve(apart))
    assert a.value == pytest.approx(b.value, abs=1e-12)
    assert a.opened.sum() == pytest.approx(b.opened.sum(), abs=1e-12)
    assert a.wins.sum() == pytest.approx(b.wins.sum(), abs=1e-12)


def test_many_copies_cost_no_more_than_their_description():
    some = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=10**6, prizes=3)
    # almost surely all three prizes are 10, after six openings on average
    assert solve(some).value == pytest.approx(30 - 6, abs=1e-9)


def test_as_many_prizes_as_trees_are_separate_searches():
    forest = random_forest(np.random.default_rng(2), 60)
    k = len(forest.roots)
    assert k > 1
    alone = sum(solve(forest.subtree(int(r))).value for r in forest.roots)
    assert solve(forest.changed(prizes=k)).value == pytest.approx(alone, abs=1e-8)


def test_a_large_forest_in_parts_agrees_with_its_evaluation():
    rng = np.random.default_rng(4)
    forest = random_forest(rng, 9000, branch=6)
    extra = weitzman.side_by_side([random_forest(rng, 40) for _ in range(30)])
    whole = weitzman.side_by_side([forest, extra]).changed(prizes=7)
    s = solve(whole)
    e = evaluate(s)
    assert abs(e.value - s.value) <= s.gap + 1e-7
    assert abs(e.residual) < 1e-9


def test_minimizing():
    b = Builder(outside=20, minimize=True, prizes=2)
    for name in "ABC":
        b.add(name, cost=1, outcomes={3: 0.5, 9: 0.5})
    up = Builder(outside=-20, prizes=2)
    for name in "ABC":
        up.add(name, cost=1, outcomes={-3: 0.5, -9: 0.5})
    assert solve(b.build()).value == pytest.approx(-solve(up.build()).value)


def test_two_prizes_from_one_tree_is_another_problem():
    """The rule of one prize a tree, used for two, loses on a tree whose box serves both."""
    problem = reference.from_nested([-1, 0], ["5", 0], [[0], [4]], [[1], [[1]]])
    assert exact_questions.prizes_value(problem, 2, several=True) == 0
    with pytest.raises(InvalidForest, match=r"2 prizes and 1 tree\. Two prizes from one tree"):
        forest_of(problem, prizes=2)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"prizes": 0}, "a whole number from 1 on"),
        ({"prizes": 1.5}, "a whole number from 1 on"),
        ({"prizes": 3}, "there are 3 prizes and 2 trees"),
        ({"prizes": 2, "factor": 0.9}, "several prizes do not go with discounting"),
        ({"prizes": 2, "risk_tolerance": 5.0}, "several prizes do not go with a risk tolerance"),
        ({"prizes": 2, "outside": -np.inf}, "cannot be taken"),
    ],
)
def test_bad_prizes_are_rejected(terms, message):
    with pytest.raises(InvalidForest, match=message):
        Forest.from_arrays(
            parent=[-1, -1], cost=[1, 1], rewards=[0, 10], law=[[0.5, 0.5]] * 2, **terms
        )


def test_copies_of_equal_reward_are_chosen_as_a_search_takes_them():
    f = Forest.from_arrays(
        parent=[-1, -1, 0], cost=[0, 0.25, 0.5], rewards=[[-np.inf], [6], [4, 4, 8]],
        law=[[1], [1], [[0.375, 0.125, 0.5]]], count=[1, 1, 2], outside=-4, prizes=2,
    )  # fmt: skip
    solution = solve(f)
    taken = np.zeros(3)
    for states in product(range(3), repeat=2):
        search, shown = weitzman.Search(solution), iter(states)
        chance = 1.0
        while (move := search.ask()) is not None:
            if move.move == "take":
                search.take(move)
            elif move.name == "2":
                state = next(shown)
                search.tell(move, state)
            else:
                search.tell(move, 0)
        seen = {x.box: x.state_number for x in search.history}
        opened = [y for box, y in seen.items() if box.name == "2"]
        if list(states[: len(opened)]) != opened or any(states[len(opened) :]):
            continue  # the same end with other states of what stays closed
        chance = np.prod([[0.375, 0.125, 0.5][y] for y in opened])
        for box, _ in search.taken:
            if box.name == "2":
                taken[seen[box]] += chance
    assert evaluate(solution).chosen[2] == pytest.approx(taken, abs=1e-15)
