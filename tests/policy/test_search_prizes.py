"""A search for several prizes: open or take, with a journal; and the clock of a discounted one."""

from __future__ import annotations

import pickle

import exact_questions
import numpy as np
import pytest
import random_problems
from every_policy import random_terms
from hypothesis import assume, given, settings
from plain_forests import forest_of

import weitzman
from weitzman import Builder, Search, solve
from weitzman.errors import InvalidAnswer, InvalidArgument, InvalidForest
from weitzman.policy import equivalent_box, payoff_law


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


def test_what_cannot_be_taken_is_rejected():
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


# -- what is expected from here, payoff laws, and words --------------------------------------------


def ends_of(policy, told=(), chance=1.0):
    """Every end of following a search: payoff and probability; what it expects is asserted."""
    search, box = followed(policy, told)
    f, tau = policy.forest, policy.forest.risk_tolerance
    if box is None:
        assert search.expected == pytest.approx(search.payoff, abs=1e-9)
        return [(search.payoff, chance)]
    above = search._ledger.above((box.number, box.copy))
    seen = {(o.box.number, o.box.copy): o.state_number for o in search.history}
    law = f.laws[int(f.law[box.number])][0 if above is None else seen[above]]
    ends = [
        end for y, p in enumerate(law) if p > 0 for end in ends_of(policy, (*told, y), chance * p)
    ]
    payoffs, weights = np.array(ends).T
    if tau is None:
        wanted = weights @ payoffs / chance
    else:
        wanted = -f.sign * tau * np.log(weights @ np.exp(-f.sign * payoffs / tau) / chance)
    assert search.expected == pytest.approx(wanted, abs=1e-8)
    return ends


@pytest.mark.parametrize("term", ["time", "risk", "prizes"])
@pytest.mark.parametrize("seed", range(15))
def test_what_is_expected_from_here_is_what_comes(term, seed):
    forest = random_terms(np.random.default_rng([6, seed]), term)
    solution = solve(forest, exact=True)
    ends = ends_of(solution.policy())
    law = payoff_law(solution)
    assert law.how == "exact"
    assert law.mean == pytest.approx(sum(z * p for z, p in ends), abs=1e-9)
    for z, _ in ends:
        chance = sum(p for x, p in ends if abs(x - z) < 1e-9)
        assert law.chances[np.abs(law.values - z) < 1e-9].sum() == pytest.approx(chance, abs=1e-9)
    assert law.outside == forest.prizes * forest.outside
    text = weitzman.explain(solution, lines=1000)
    assert "op" in text  # open or stop


def test_equivalent_boxes_are_for_one_prize_without_time():
    forest = random_terms(np.random.default_rng(1), "risk")
    solution = solve(forest, exact=True)
    box = equivalent_box(solution)
    assert solve(box).value == pytest.approx(solution.value)
    with pytest.raises(InvalidArgument, match="the equivalent box is for"):
        equivalent_box(solve(staff()))
    with pytest.raises(InvalidArgument, match="several prizes"):
        solve(staff()).capped_law()
    assert solve(staff()).phi(0.0, "Ada") > 0
