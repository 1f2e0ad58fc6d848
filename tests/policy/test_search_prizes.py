"""A search for several prizes: open or take, with a journal; and the clock of a discounted one."""

from __future__ import annotations

import pickle

import exact_questions
import numpy as np
import pytest
import random_problems
from hypothesis import assume, given, settings
from plain_forests import forest_of

import weitzman
from weitzman import Builder, Search, solve
from weitzman.errors import InvalidAnswer, InvalidForest


def followed(policy, told):
    """A search after some answers, all prizes taken as it says; and its next box, if any."""
    search = Search(policy)
    answers = iter(told)
    while (move := search.ask()) is not None:
        if move.move == "take":
            search.take(move)
        elif (state := next(answers, None)) is not None:
            search.tell(move, int(state))
        else:
            return search, move
    return search, None


def expected(policy, told=()):
    """Expected payoff of following a search through all that boxes may show."""
    search, box = followed(policy, told)
    if box is None:
        return search.payoff
    f = policy.forest
    up = int(f.parent[box.number])
    seen = {o.box.number: o.state_number for o in search.history}
    law = f.laws[int(f.law[box.number])][0 if up < 0 else seen[up]]
    return sum(p * expected(policy, (*told, y)) for y, p in enumerate(law) if p > 0)


@settings(max_examples=25)
@given(random_problems.forests(min_boxes=2, max_boxes=3, max_states=2, outside="any"))
def test_following_a_search_earns_the_value(problem):
    assume(sum(not above for above in problem.parents) > 1)
    forest = forest_of(problem, prizes=2)
    wanted = float(exact_questions.prizes_value(problem, 2))
    assert expected(solve(forest, exact=True).policy()) == pytest.approx(wanted, abs=1e-9)


def staff():
    b = Builder(prizes=2)
    for name in ("Ada", "Bob", "Cy"):
        b.add(name, cost=1, outcomes={0: 0.5, 6: 0.3, 10: 0.2})
        b.add(f"{name} again", parent=name, cost=1, outcomes={0: {0: 1.0}, 6: {4: 0.5, 9: 0.5},
                                                             10: {10: 1.0}})  # fmt: skip
    return b.build()


def test_a_journal_keeps_what_was_taken(tmp_path):
    search = Search(solve(staff()).policy(), journal=tmp_path / "run.db")
    search.tell(search.ask(), 10)
    move = search.ask()
    assert (move, move.move) == ("Ada", "take")
    assert "Take 10 from Ada for good" in search.explain()
    assert pickle.loads(pickle.dumps(move)).move == "take"
    search.take(move)
    search.take(move)  # once is enough
    assert search.taken == [("Ada", 10.0)]
    again = Search.resume(tmp_path / "run.db")
    assert again.taken == [("Ada", 10.0)]
    box = again.ask()
    assert box.move == "open"
    assert box in ("Bob", "Cy")  # the tree of Ada is closed
    again.tell(box, 0)
    again.tell(again.ask(), 0)
    assert again.ask() is None
    assert again.done
    assert again.best == 10.0
    assert "1 of 2 prizes taken" in again.explain()


def test_nothing_is_taken_while_a_better_box_is_out():
    b = Builder(prizes=2).add("A", cost=1, outcomes={0: 0.5, 20: 0.5})
    search = Search(solve(b.add("B", cost=1, outcomes={0: 0.5, 6: 0.5}).build()).policy())
    assert search.ask(2) == ["A", "B"]
    search.tell("B", 6)
    assert (search.ask(), search.ask().move) == ("A", "open")  # it may still hold more
    assert not search.done
    search.tell("A", 20)
    assert (search.ask(), search.ask().move) == ("A", "take")


def test_what_cannot_be_taken_is_refused():
    search = Search(solve(staff()).policy())
    with pytest.raises(InvalidAnswer, match="it was not opened"):
        search.take("Ada")
    search.tell("Ada", 6)
    search.tell("Ada again", 9)
    search.take("Ada again")
    with pytest.raises(InvalidAnswer, match="'Ada again' was taken from the tree"):
        search.take("Ada")
    one = Search(solve(weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)).policy())
    with pytest.raises(InvalidAnswer, match="only one"):
        one.take(0)
    with pytest.raises(InvalidForest, match="keeps its model"):
        search.replace(solve(staff()))


def test_copies_are_trees():
    three = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=3, prizes=2)
    search = Search(solve(three).policy())
    taken = []
    while (move := search.ask()) is not None:
        if move.move == "take":
            search.take(move)
            taken.append(move)
        else:
            search.tell(move, reward=10)
    assert taken == ["0#1", "0#2"]
    assert search.payoff == 18.0


def test_a_discounted_search_keeps_time():
    b = Builder(rate=0.1)
    b.add("A", cost=2, outcomes={0: 0.5, 10: 0.5}, duration={0: 3, 10: 1})
    b.add("B", cost=1, outcomes={0: 0.5, 9: 0.5}, duration=2)
    search = Search(solve(b.build()).policy())
    assert search.ask() == "B"
    search.tell("B", 0)
    search.tell(search.ask(), 10)
    assert search.time == 3.0
    assert search.payoff == pytest.approx(10 * np.exp(-0.3) - 1 - 2 * np.exp(-0.2))
    assert search.spent == 3.0
