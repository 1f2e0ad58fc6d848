"""Prizes by group: the rule against every strategy, in exact fractions, and a search that hires."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import exact_questions
import numpy as np
import pytest
import random_problems
from followed_runs import forest_of, written_out
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Problem

import weitzman
from weitzman import Builder, Forest, Policy, Search, solve
from weitzman.errors import InvalidAnswer, InvalidArgument, InvalidForest
from weitzman.policy import payoff_law, simulate
from weitzman.policy.walk import Walk


def ruled(forest: Forest) -> Policy:
    """The indices do not know of quotas."""
    alone = solve(forest.changed(quotas={}, prizes=1), exact=True)
    return Policy.of(forest, *alone.index_columns())


def earned(walk: Walk) -> float:
    """Expected payoff of following the rule from where a walk stands, over all that may come."""
    found, prize = walk.next(), walk.next_prize()
    if found is None and prize is not None:
        with walk.supposing_taken(prize):
            return earned(walk)
    best, _, spent = walk.totals()
    if found is None:
        return best - walk.sign * spent
    box, total = found[0], 0.0
    law = walk.forest.laws[int(walk.forest.law[box[0]])][walk.state_above(box)]
    for y in np.flatnonzero(law).tolist():
        with walk.supposing(box, y):
            total += float(law[y]) * earned(walk)
    return total


@st.composite
def grouped(draw: st.DrawFn) -> tuple[Problem, list[int], list[str], dict[str, int], int]:
    """A forest with copies of roots, two groups and perhaps trees without one."""
    flags: dict[str, Any] = {"min_boxes": 2, "max_boxes": 4, "max_states": 2, "outside": "any"}
    problem = draw(random_problems.forests(**flags))
    count = [1 if above else draw(st.sampled_from([1, 1, 2])) for above in problem.parents]
    if sum(count) > 5:
        count = [1] * len(count)
    group = [""] * len(count)
    for box, above in enumerate(problem.parents):
        if not above:
            group[box] = draw(st.sampled_from(["a", "b", ""]))
    group = [group[exact_questions.tree_of(problem, v)] for v in problem.boxes]
    quotas = {g: draw(st.integers(0, 2)) for g in sorted(set(group) - {""})}
    return problem, count, group, quotas, draw(st.integers(1, 3))


@settings(max_examples=60)
@given(grouped(), st.booleans())
def test_no_strategy_earns_more_than_the_rule(given_: Any, minimize: bool) -> None:
    problem, count, group, quotas, prizes = given_
    trees = sum(n for n, above in zip(count, problem.parents, strict=True) if not above)
    prizes = min(prizes, trees)
    forest = forest_of(problem, count, minimize=minimize).changed(group=dict(enumerate(group)))
    forest = forest.changed(quotas=quotas, prizes=prizes)
    full, box = written_out(problem, count)
    wanted = exact_questions.prizes_value(
        full, prizes, group=[group[v] for v, _ in box], quotas=quotas
    )
    sign = -1 if minimize else 1
    assert sign * earned(Walk(ruled(forest))) == pytest.approx(float(wanted), abs=1e-9)


def staff(**terms: Any) -> Forest:
    """Three engineers and two designers, of whom two and one are wanted."""
    b = Builder(quotas={"engineer": 2, "designer": 1}, **terms)
    for name, role in zip("ABCDE", ["engineer"] * 3 + ["designer"] * 2, strict=True):
        b.add(name, cost=1, outcomes={0: 0.5, 8: 0.3, 10: 0.2}, group=role)
    return b.build()


def test_a_search_fills_the_places_of_each_group(tmp_path: Any) -> None:
    search = Search(ruled(staff()), journal=tmp_path / "run.db")
    moves = []
    while (move := search.ask()) is not None:
        moves.append((move.move, str(move)))
        if move.move == "take":
            search.take(move)
        else:
            search.tell(move, reward=10)
    assert moves == [(m, box) for box in "ABD" for m in ("open", "take")]
    assert search.filled == {"designer": 1, "engineer": 2}
    assert search.payoff == 27
    assert "3 of 3 prizes (1 of 1 designer, 2 of 2 engineer) taken" in search.explain()
    search.close()
    with Search.resume(tmp_path / "run.db") as again:
        assert (again.filled, again.taken, again.done) == (search.filled, search.taken, True)


def test_a_group_without_room_is_closed() -> None:
    search = Search(ruled(staff()))
    for box in "DE":
        search.tell(box, reward=10)
    search.take("D")
    with pytest.raises(InvalidAnswer, match="at most 1 prizes come from group 'designer'"):
        search.take("E")
    assert [str(box) for box, _ in search.available()] == ["A", "B", "C"]
    assert search.best == 10  # the second designer counts for nothing
    with pytest.raises(InvalidForest, match="prizes or quotas a search keeps its model"):
        search.replace(ruled(staff()))


def test_words_name_the_quotas() -> None:
    policy = ruled(staff())
    assert "At most 1 of designer and 2 of engineer." in weitzman.describe(policy.forest)
    with pytest.raises(InvalidArgument, match="one at a time"):
        simulate(policy, 10, workers=2)


def test_simulations_and_laws_follow_the_rule() -> None:
    policy = ruled(staff(outside=1.0))
    value = earned(Walk(policy))
    law = payoff_law(policy, episodes=2000)
    assert law.outside == 3.0
    assert law.how == "exact"
    assert law.mean == pytest.approx(value, abs=1e-9)
    played = simulate(policy, 2000)
    assert abs(played.payoff.mean - value) < 5 * played.payoff.standard_error
    assert played.loss == law.worse


def test_copies_in_one_tree_that_tie_are_distinguished_by_their_states() -> None:
    """The prize of a tree comes from the copy in the lowest state, in every function."""
    forest = Forest.from_arrays(
        parent=[-1, -1, 0], cost=[0, 0.25, 0.5], rewards=[[-np.inf], [6], [4, 4, 8]],
        law=[[1], [1], [[0.375, 0.125, 0.5]]], count=[1, 1, 2], outside=-4, prizes=2,
    )  # fmt: skip
    solution, taken = solve(forest), [Fraction(0)] * 3
    for first in range(3):
        for second in range(3):
            search, shown = Search(solution), iter([first, second])
            while (move := search.ask()) is not None:
                if move.move == "take":
                    search.take(move)
                else:
                    search.tell(move, next(shown, 0) if move.number == 2 else 0)
            (state,) = (
                x.state_number for x in search.history
                if x.box in dict(search.taken) and x.box.number == 2
            )  # fmt: skip
            chance = [Fraction(3, 8), Fraction(1, 8), Fraction(1, 2)]
            taken[state] += chance[first] * chance[second]
    found = weitzman.evaluate(solution).chosen[2]
    assert np.asarray(found) == pytest.approx([float(x) for x in taken], abs=1e-12)


@settings(max_examples=40)
@given(grouped(), st.booleans())
def test_what_is_expected_from_here_is_what_comes(given_: Any, minimize: bool) -> None:
    """At every stage of a search: the boxes that remain, solved with the room that is left."""
    problem, count, group, quotas, prizes = given_
    trees = sum(n for n, above in zip(count, problem.parents, strict=True) if not above)
    forest = forest_of(problem, count, minimize=minimize).changed(group=dict(enumerate(group)))
    forest = forest.changed(quotas=quotas, prizes=min(prizes, trees))
    walk = Walk(solve(forest, exact=True).policy())
    assert walk.worth() == pytest.approx(earned(walk), abs=1e-8)
    for state in (0, 1, 0):
        while walk.next() is None and (prize := walk.next_prize()) is not None:
            assert walk.hands is not None
            walk.hands.take(prize, walk.answers[prize].reward or 0.0)
            assert walk.worth() == pytest.approx(earned(walk), abs=1e-8)
        if (found := walk.next()) is None:
            break
        law = forest.laws[int(forest.law[found[0][0]])][walk.state_above(found[0])]
        walk.show(found[0], state if state < len(law) and law[state] > 0 else int(np.argmax(law)))
        assert walk.worth() == pytest.approx(earned(walk), abs=1e-8)


def test_what_is_in_hand_counts_by_group_even_if_no_group_can_be_opened_any_more() -> None:
    """Two rewards of one place in hand: the better one counts, and the free box fills another."""
    forest = Forest.from_arrays(
        parent=[-1, -1], cost=[0.25, 0.125], rewards=[[3, 1], [0, 2]],
        law=[[0.75, 0.25], [0.5, 0.5]], count=[2, 2], group=["a", ""], quotas={"a": 1}, prizes=2,
    )  # fmt: skip
    search = Search(solve(forest))
    for box, reward in (("0#1", 1), ("0#2", 1), ("1#1", 0)):
        search.tell(box, reward=reward)
    paid = 0.25 + 0.25 + 0.125
    assert search.expected == pytest.approx(1 + 0.5 * 2 - 0.125 - paid, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_large_and_small_problems_are_played_with_the_same_numbers(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel, and all episodes together: draw for draw, with copies, prizes and quotas."""
    for forest in (
        staff(outside=1.0),
        staff().changed(quotas={}, prizes=1, count={"A": 3, "D": 2}),
        staff().changed(quotas={}, prizes=3, count={"B": 2}),
        weitzman.line([[0.5, 0.5], [[0.9, 0.1], [0.4, 0.6]]], rewards=[0, 9], cost=1, count=3),
    ):
        policy = solve(forest)
        together = simulate(policy, 200, seed)
        with monkeypatch.context() as patch:
            patch.setattr("weitzman.policy.simulation._NODES", 0)
            one_by_one = simulate(policy, 200, seed)
        for name in ("payoff", "reward", "spend", "openings"):
            a, b = getattr(together, name), getattr(one_by_one, name)
            assert a.values == pytest.approx(b.values, abs=1e-12)
        assert together.opened.tolist() == one_by_one.opened.tolist()
