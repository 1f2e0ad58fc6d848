"""Running a policy: against the exact oracle, by hand, and against a naive model."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from followed_runs import drive, forest_of, policy_of, ruled, written_out
from hypothesis import assume, given
from hypothesis import strategies as st
from random_problems import forests
from reference import Problem, follow_indices, optimal_value

import weitzman.policy.frontier
from weitzman.engine.indices import Policy
from weitzman.engine.solver import solve
from weitzman.errors import InvalidAnswer, InvalidForest, UnknownName, WeitzmanError
from weitzman.forest.builder import Builder
from weitzman.forest.model import Forest
from weitzman.policy.frontier import Box
from weitzman.policy.search import Search
from weitzman.policy.words import why_stop

# -- against the exact oracle ------------------------------------------------------------------


@given(ruled(max_boxes=4), st.booleans())
def test_every_outcome_as_the_oracle_says(case: tuple[Problem, Any], minimize: bool) -> None:
    problem, indices = case
    policy = policy_of(forest_of(problem, minimize=minimize), indices)
    found = drive(problem, lambda: Search(policy), lambda box: box.number, -1 if minimize else 1)
    assert found == replace(follow_indices(problem, indices), tied=False)


@given(ruled(max_boxes=3, max_states=2), st.lists(st.integers(1, 3), min_size=3, max_size=3))
def test_copies_counted_are_copies_written_out(case: tuple[Problem, Any], counts: Any) -> None:
    problem, indices = case
    count = counts[: len(problem.parents)]
    full, boxes = written_out(problem, count)
    assume(len(boxes) <= 7)
    policy = policy_of(forest_of(problem, count), indices)
    number = {box: i for i, box in enumerate(boxes)}
    found = drive(full, lambda: Search(policy), lambda box: number[box.number, box.copy])
    wanted = follow_indices(full, [indices[v] for v, _ in boxes], [v for v, _ in boxes])
    assert found == replace(wanted, tied=False)


@given(forests(max_boxes=4, max_states=2, outside="zero"))
def test_a_solution_run_earns_its_value(problem: Problem) -> None:
    solution = solve(forest_of(problem))
    found = drive(problem, lambda: Search(solution), lambda box: box.number)
    assert float(found.value) == pytest.approx(float(optimal_value(problem)), abs=1e-9)
    assert float(found.value) == pytest.approx(solution.value, abs=1e-9)


# -- by hand -----------------------------------------------------------------------------------


def paper(minimize: bool = False) -> Policy:
    """Boxes A, B below A, and C; indices 707, 914 or 15, and 40."""
    sign = -1 if minimize else 1
    chests = Builder(outside=0.0, minimize=minimize)
    chests.add("A", cost=20, outcomes={sign * 900: 0.1, sign * 1: 0.9})
    chests.add(
        "B",
        parent="A",
        cost=3,
        outcomes={
            sign * 1: {sign * 21: 0.5, sign * -9: 0.5},
            sign * 900: {sign * 920: 0.5, sign * 890: 0.5},
        },
    )
    chests.add("C", cost=5, outcomes={sign * 50: 0.5, sign * 10: 0.5})
    return solve(chests.build()).policy()


def roots(n: int = 4, **options: Any) -> Policy:
    """Boxes b0, b1, ... of states 0 and 10 and of indices n, n - 1, ..., 1."""
    forest = Forest.from_arrays(
        parent=[-1] * n, cost=[1.0] * n, rewards=[0.0, 10.0], law=[[0.5, 0.5]] * n,
        names=[f"b{i}" for i in range(n)], **options,
    )  # fmt: skip
    return Policy.of(forest, np.arange(n), np.arange(n, 0, -1.0))


def test_the_example_of_the_paper() -> None:
    search = Search(paper())
    assert search.ask() == "A"
    search.tell("A", 1)
    assert search.available() == [("C", 40.0), ("B", 15.0)]
    assert search.ask() == "C"
    search.tell("C", 10)
    assert search.ask() == "B"
    search.tell("B", 21)
    assert search.ask() is None
    assert (search.best, search.best_box, search.spent, search.payoff) == (21, "B", 28, -7)
    assert [(x.box, x.state, x.reward, x.cost) for x in search.history] == [
        ("A", "1", 1.0, 20.0), ("C", "10", 10.0, 5.0), ("B", "21", 21.0, 3.0),
    ]  # fmt: skip
    assert search.done
    assert search.available() == []
    assert search.pending == []


def test_minimizing_keeps_the_signs_of_the_user() -> None:
    search = Search(paper(minimize=True))
    assert search.available() == [("A", -707.0), ("C", -40.0)]
    search.tell(search.ask(), -900)
    assert (search.best, search.spent, search.payoff) == (-900, 20, -880)
    assert search.ask() == "B"


def test_a_handle_is_a_string_and_a_row() -> None:
    box = Box("drill", 2, (3, 1))
    assert box == "drill#3.1"
    assert {box: 1}["drill#3.1"] == 1
    assert ["a", "b", "c"][box] == "c"
    assert np.arange(5)[box] == 2
    for twin in (pickle.loads(pickle.dumps(box)), copy.deepcopy(box), copy.copy(box)):
        assert (twin, twin.name, twin.number, twin.copy) == (box, "drill", 2, (3, 1))


def test_boxes_are_told_by_handle_text_or_number() -> None:
    for box in ("A", 0, np.int64(0), Box("A", 0)):
        search = Search(paper())
        search.tell(box, 1)
        assert search.history[0].box == "A"
    with pytest.raises(UnknownName, match="no box 'Z'"):
        search.tell("Z", 1)


def test_states_are_told_by_name_or_number() -> None:
    search = Search(paper())
    search.tell("A", "900")
    assert search.history[0].state_number == 1
    with pytest.raises(UnknownName, match="no state 7; its states are -9, 21"):
        search.tell("B", 7)
    nameless = Search(roots())
    nameless.tell("b0", 1)
    assert (nameless.best, nameless.history[0].state) == (10.0, "1")


# -- rewards and costs as they are -------------------------------------------------------------


def test_a_reward_of_the_box_tells_the_state() -> None:
    search = Search(paper())
    search.tell("A", reward=900)
    assert search.history[0].state == "900"


def test_a_reward_that_is_not_there_is_rejected() -> None:
    search = Search(paper())
    with pytest.raises(InvalidAnswer, match=r"899 is not among the rewards of box 'A', which are"):
        search.tell("A", reward=899)
    assert search.history == []
    assert issubclass(InvalidAnswer, ValueError)
    assert issubclass(InvalidAnswer, WeitzmanError)


@pytest.mark.parametrize(
    ("reward", "state"), [(899.0, "900"), (-5.0, "1"), (450.5, "1"), (450.6, "900"), (1e9, "900")]
)
def test_the_nearest_reward(reward: float, state: str) -> None:
    search = Search(paper(), rewards="nearest")
    search.tell("A", reward=reward)
    assert search.history[0].state == state
    assert search.best == max(reward, 0.0)  # the true number


@pytest.mark.parametrize(
    ("reward", "state"), [(-3.0, "1"), (99.9, "1"), (100.0, "900"), (5000.0, "900")]
)
def test_bins(reward: float, state: str) -> None:
    search = Search(paper(), rewards=[100])
    search.tell("A", reward=reward)
    assert search.history[0].state == state
    assert search.best == max(reward, 0.0)


def test_bins_that_do_not_tell_the_state() -> None:
    search = Search(paper(), rewards=[10, 20, 1000])
    with pytest.raises(InvalidAnswer, match="no reward in the bin from 10 to 20, where 15 lies"):
        search.tell("A", reward=15)
    search.tell("A", 900)
    with pytest.raises(InvalidAnswer, match="891 fits 2 states of box 'B': 890, 920"):
        search.tell("B", reward=891)
    search.tell("B", 890, reward=891)
    assert search.best == 900


def test_impossible_states_count_only_for_their_very_reward() -> None:
    search = Search(paper(), rewards="nearest")
    search.tell("A", 900)
    search.tell("B", reward=30)  # 21 would be nearer, but not after 900
    assert search.history[1].state == "890"
    search = Search(paper(), rewards="nearest")
    search.tell("A", 900)
    search.tell("B", reward=21)
    assert search.history[1].state == "21"


def test_states_that_share_a_reward_must_be_distinguished() -> None:
    forest = Forest.from_arrays(
        parent=[-1], cost=[0], rewards=[3.0, 3.0], law=[[0.5, 0.5]], states=["wet", "dry"]
    )
    search = Search(Policy.of(forest, np.array([0]), np.array([5.0])))
    with pytest.raises(InvalidAnswer, match="3 fits 2 states of box '0': wet, dry"):
        search.tell(0, reward=3)
    search.tell(0, "dry", reward=3)
    assert search.history[0].state_number == 1


def test_a_state_without_reward() -> None:
    forest = Forest.from_arrays(
        parent=[-1, -1], cost=[0, 0], rewards=[-np.inf, -2.0], law=[[0.5, 0.5]] * 2, outside=-5
    )
    search = Search(Policy.of(forest, np.array([0, 1]), np.array([5.0, 4.0])), rewards="nearest")
    search.tell(0, 0)
    assert (search.best, search.best_box, search.history[0].reward) == (-5, None, None)
    search.tell(1, reward=-3)
    assert (search.best, search.best_box, search.history[1].state_number) == (-3, "1", 1)


@pytest.mark.parametrize("reward", [np.nan, np.inf, "12", True, None, 10**400])
def test_a_reward_is_a_finite_number(reward: Any) -> None:
    with pytest.raises(InvalidAnswer, match=r"finite number|say what box 'A' showed"):
        Search(paper(), rewards="nearest").tell("A", reward=reward)


@pytest.mark.parametrize("rule", ["furthest", [], [2, 1], [1, 1], [np.inf], ["x"], 3, None])
def test_a_rule_is_checked(rule: Any) -> None:
    with pytest.raises(InvalidAnswer, match='`rewards` must be "refuse", "nearest" or a rising'):
        Search(paper(), rewards=rule)


def test_costs_of_the_model_and_of_the_user() -> None:
    forest = Forest.from_arrays(
        parent=[-1, 0, 1],
        cost=[[[1.0, 2.0]], [3.0, 4.0], [[5.0, 6.0], [7.0, 8.0]]],
        rewards=[0.0, 10.0],
        law=[[0.5, 0.5], [[0.5, 0.5]] * 2, [[0.5, 0.5]] * 2],
    )
    search = Search(Policy.of(forest, np.zeros(3, int), np.full(2, 50.0)))
    for state in (1, 0, 1):
        search.tell(search.ask(), state)
    assert [x.cost for x in search.history] == [2.0, 4.0, 6.0]
    again = Search(Policy.of(forest, np.zeros(3, int), np.full(2, 50.0)))
    again.tell(0, 1, cost=0.25)
    assert again.spent == 0.25
    with pytest.raises(InvalidAnswer, match="must not be negative"):
        again.tell(1, 1, cost=-1)
    with pytest.raises(InvalidAnswer, match="a cost must be a finite number"):
        again.tell(1, 1, cost=np.nan)


# -- what cannot be ----------------------------------------------------------------------------


def test_the_same_answer_twice_is_no_harm_and_another_is_rejected() -> None:
    search = Search(paper(), rewards="nearest")
    search.tell("A", reward=899, cost=19)
    before = search.history
    search.tell("A", reward=899, cost=19)
    search.tell("A", "900")
    search.tell("A", cost=19)
    assert search.history == before
    for other in ({"state": 1}, {"reward": 900}, {"cost": 20}):
        with pytest.raises(InvalidAnswer, match=r"'A' was answered before, with .* undo it first"):
            search.tell("A", **other)
    assert search.history == before


def test_state_number_0_told_twice() -> None:
    search = Search(roots())
    search.tell(0, 1)
    with pytest.raises(InvalidAnswer, match="was answered before"):
        search.tell(0, 0)


def test_a_box_opened_on_ones_own() -> None:
    search = Search(paper())
    search.tell("C", 50)
    assert (search.best, search.spent) == (50, 5)
    assert search.ask() == "A"
    with pytest.raises(InvalidAnswer, match="after its parent, but 'A', the parent of 'B', was no"):
        search.tell("B", 21)


def test_copies_that_are_not_there() -> None:
    search = Search(paper_with_copies())
    with pytest.raises(InvalidAnswer, match=r"'A' needs 1 numbers of copies, such as 'A#1', but"):
        search.tell("A", 1)
    with pytest.raises(InvalidAnswer, match=r"there is no 'A#4': copies go up to 'A#3'"):
        search.tell("A#4", 1)
    with pytest.raises(InvalidAnswer, match=r"'B' needs 2 numbers of copies, such as 'B#1.1'"):
        search.tell("B#1", 21)
    with pytest.raises(InvalidAnswer, match=r"but 'A#1', the parent of 'B#1.2', was not opened"):
        search.tell("B#1.2", 21)
    with pytest.raises(InvalidAnswer, match=r"there is no 'B#1.3': copies go up to 'B#3.2'"):
        search.tell("B#1.3", 21)


def paper_with_copies() -> Policy:
    chests = Builder()
    chests.add("A", cost=20, outcomes={900: 0.1, 1: 0.9}, count=3)
    below = {1: {21: 0.5, -9: 0.5}, 900: {920: 0.5, 890: 0.5}}
    chests.add("B", parent="A", cost=3, outcomes=below, count=2)
    chests.add("B2", parent="B", cost=1, outcomes={0: 0.5, 30: 0.5})
    return solve(chests.build()).policy()


def test_copies_of_copies_and_a_copy_opened_ahead() -> None:
    search = Search(paper_with_copies())
    search.tell("A#2", 1)
    search.tell("B#2.2", -9)
    assert [b for b, _ in search.available(None)] == ["A#1", "A#3", "B2#2.2", "B#2.1"]
    first, second, third = search.ask(3)
    assert (first, second, third) == ("A#1", "A#3", "B2#2.2")
    assert (third.name, third.number, third.copy) == ("B2", 2, (2, 2))
    search.release("A#1")
    assert search.ask(3) == ["A#3", "B2#2.2", "A#1"]


def test_no_box_may_be_called_like_a_copy() -> None:
    forest = Forest.from_arrays(
        parent=[-1, -1], cost=[1, 1], rewards=[0, 1], law=[[0.5, 0.5]] * 2,
        names=["A", "A#2"], count=[3, 1],
    )  # fmt: skip
    with pytest.raises(InvalidForest, match="look like a copy of another box, but 'A#2' does"):
        Search(solve(forest))
    alone = Forest.from_arrays(
        parent=[-1, -1], cost=[1, 1], rewards=[0, 9], law=[[0.5, 0.5]] * 2,
        names=["C", "A#2"], count=[3, 1],
    )  # fmt: skip
    search = Search(solve(alone))
    search.tell("A#2", 1)
    search.tell("C#2", 0)
    assert [x.box.number for x in search.history] == [1, 0]


def test_numbers_without_names() -> None:
    forest = Forest.from_arrays(
        parent=[-1, -1], cost=[1, 1], rewards=[0, 9], law=[[0.5, 0.5]] * 2, count=[3, 1]
    )
    search = Search(solve(forest))
    assert search.ask(9) == ["0#1", "0#2", "0#3", "1"]
    search.tell("0#2", 0)
    search.tell(1, 0)
    assert search.pending == ["0#1", "0#3"]


# -- several workers ---------------------------------------------------------------------------


def test_several_boxes_at_once_and_answers_in_any_order() -> None:
    search = Search(roots(4, outside=1.5))
    assert search.ask(9) == ["b0", "b1", "b2"]  # the index of b3 does not exceed 1.5
    assert search.ask() == "b0"
    assert search.ask(9) == ["b0", "b1", "b2"]
    assert not search.done
    assert why_stop(search._record.ledger) == (
        "Wait for b0, b1, b2: no other box that can be opened has an index above the best so far "
        "(1.5, the outside option); the highest is 1, of b3."
    )
    search.tell("b2", 0)
    search.tell("b0", 1)
    assert search.pending == ["b1"]
    search.tell("b1", 0)
    assert search.done
    assert [x.box for x in search.history] == ["b2", "b0", "b1"]


def test_a_released_box_is_handed_out_again() -> None:
    search = Search(roots())
    assert search.ask(2) == ["b0", "b1"]
    search.release("b0")
    assert search.pending == ["b1"]
    assert search.available(2) == [("b0", 4.0), ("b2", 2.0)]
    assert search.ask(2) == ["b1", "b0"]
    with pytest.raises(InvalidAnswer, match="'b3' cannot be released: it is not handed out"):
        search.release("b3")
    search.tell("b1", 0)
    with pytest.raises(InvalidAnswer, match="'b1' cannot be released: its answer is known"):
        search.release("b1")


def test_handing_out_and_giving_back_for_ever_needs_no_memory() -> None:
    search = Search(roots())
    for _ in range(50):
        search.release(search.ask())
    assert len(search._record.ledger.frontier._heap) < 5


@pytest.mark.parametrize("boxes", [0, -1, 1.5, True])
def test_asking_for_too_few(boxes: Any) -> None:
    with pytest.raises(InvalidAnswer, match="ask for at least 1 box"):
        Search(roots()).ask(boxes)


def test_threads_share_a_search() -> None:
    search = Search(roots(200, outside=-1))
    taken: list[str] = []

    def work() -> None:
        while (box := search.ask()) is not None:
            taken.append(box)
            search.tell(box, 0)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(f"b{i}" for i in range(200))
    assert search.spent == 200


def test_a_thread_that_is_just_being_started_holds_no_box(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a thread is listed and has no ident yet."""
    threads = [*threading.enumerate(), threading.Thread()]
    monkeypatch.setattr(threading, "enumerate", lambda: threads)
    box = Builder().add("A", cost=1, outcomes={0: 0.5, 10: 0.5}).build()
    assert Search(solve(box)).ask() == "A"


def test_what_a_thread_has_released_goes_to_the_others() -> None:
    search = Search(roots(6, outside=-1))
    first, given_back, over = search.ask(), threading.Event(), threading.Event()

    def work() -> None:
        for box in search.ask(2):
            search.release(box)
        given_back.set()
        over.wait()  # the thread lives on

    other = threading.Thread(target=work)
    other.start()
    given_back.wait()
    found = search.ask(3)
    over.set()
    other.join()
    assert (found[0], len(found)) == (first, 3)


# -- any number of boxes -----------------------------------------------------------------------


def heap_operations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that grows with each operation on the heap, which costs O(log n)."""
    done: list[str] = []
    for name in ("heappush", "heappop", "heapreplace"):
        plain = getattr(weitzman.policy.frontier, name)

        def counted(*args: Any, plain: Any = plain, name: str = name) -> Any:
            done.append(name)
            return plain(*args)

        monkeypatch.setattr(weitzman.policy.frontier, name, counted)
    return done


def test_few_heap_operations_whatever_the_number_of_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 100_000
    forest = Forest.from_arrays(
        parent=np.full(n, -1), cost=np.ones(n), rewards=[0.0, 1.0], law=[np.full(2, 0.5)] * n
    )
    policy = Policy.of(forest, np.arange(n), np.arange(n, 0, -1.0))
    done = heap_operations(monkeypatch)
    search = Search(policy)
    assert len(done) == 1
    for i in range(100):
        box = search.ask()
        assert box is not None
        assert box.number == i
        search.tell(box, 0)
    assert len(done) < 600
    assert len(search._record.ledger.frontier._heap) < 5


def test_a_billion_boxes_are_not_written_out() -> None:
    forest = Forest.from_arrays(
        parent=[-1, 0, 1], cost=[1.0, 0.5, 0.5], rewards=[0.0, 10.0], count=[1000, 1000, 1000],
        law=[[0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [[0.9, 0.1], [0.2, 0.8]]],
    )  # fmt: skip
    assert forest.boxes == 1_001_001_000
    search = Search(solve(forest))
    for state in (0, 0, 0):
        search.tell(search.ask(), state)
    assert [x.box for x in search.history] == ["0#1", "0#2", "0#3"]
    search.tell("1#2.1000", 0)
    assert len(search.available(50)) == 50
    assert len(search._record.ledger.frontier._heap) < 10


# -- why ---------------------------------------------------------------------------------------


def test_why_this_box_and_why_stop() -> None:
    search = Search(paper())
    first = (
        "Open A (cost 20): its index 707 is above the best so far (0, the outside option), and no "
        "box that can be opened has a higher one."
    )
    assert search.explain() == first
    box = search.ask()
    assert search.explain() == first
    search.tell(box, 900)
    search.tell(search.ask(), 890)
    assert search.explain() == (
        "Stop and take 900 from A: no box that can be opened has an index above that; the highest "
        "is 40, of C."
    )
    search.tell("C", 10)
    assert search.explain() == "Stop and take 900 from A: no box is left to open."


def test_why_when_minimizing() -> None:
    search = Search(paper(minimize=True))
    assert search.explain() == (
        "Open A (cost 20): its index -707 is below the least loss so far (0, the outside option), "
        "and no box that can be opened has a lower one."
    )
    search.tell("A", -900)
    search.tell("B", -890)
    assert search.explain() == (
        "Stop and take -900 from A: no box that can be opened has an index below that; the lowest "
        "is -40, of C."
    )


def test_no_negative_zero_when_minimizing() -> None:
    boxes = Builder(outside=3, minimize=True)
    boxes.add("A", cost=1, outcomes={-2: 0.5, 7: 0.5})
    solution = solve(boxes.build())
    search = Search(solution)
    assert str(search.available()) == "[('A', 0.0)]"
    assert str(solution.index("A")) == "0.0"
    assert search.explain().startswith("Open A (cost 1): its index 0 is below")
    boxes.add("B", cost=5, outcomes={-10: 0.5, 3: 0.5})
    other = Search(solve(boxes.build()))
    other.tell("A", -2)
    assert "the lowest is 0, of B" in other.explain()


def test_why_of_a_box_that_is_not_the_best_any_more() -> None:
    search = Search(roots())
    search.ask(2)
    assert search.explain("b1").startswith("Open b1 (cost 1): its index 3 is above the best so far")
    search.tell("b0", 1)
    assert search.explain() == (
        "b1 is handed out, but its index 3 is not above the best so far (10 from b0) any more: "
        "give it back if it is not being opened yet."
    )
    assert search.ask() == "b1"  # until it is told or given back
    said = why_stop(search._record.ledger)
    assert said.startswith("Wait for b1: no other box that can be opened has an index")
    search.release("b1")
    assert search.ask() is None


def test_why_of_any_box() -> None:
    search = Search(paper())
    search.tell("A", 900)
    assert search.explain("A") == "A was opened already and showed 900."
    assert search.explain("C") == (
        "Do not open C: its index 40 is not above the best so far (900 from A)."
    )
    with pytest.raises(InvalidAnswer, match="was not opened"):
        Search(paper()).explain("B")


def test_the_mean_of_a_random_cost_is_said_to_be_one() -> None:
    forest = Forest.from_arrays(
        parent=[-1], cost=[[[1.0, 2.0]]], rewards=[0.0, 9.0], law=[[0.5, 0.5]], names=["x"]
    )
    assert Search(solve(forest)).explain().startswith("Open x (cost 1.5 on average): its")


def test_why_if_something_must_be_taken() -> None:
    search = Search(roots(2, outside=-np.inf))
    assert "above the best so far (nothing)" in search.explain()
    assert search.payoff == -np.inf


# -- another model -----------------------------------------------------------------------------


def chests(cost: float = 5.0, *, top: int = 50, extra: bool = True, **a: Any) -> Builder:
    built = Builder()
    if extra:
        built.add("D", cost=1, outcomes={0: 0.5, 8: 0.5})
    built.add("C", cost=cost, outcomes={top: 0.5, 10: 0.5})
    return built.add("A", **({"cost": 20, "outcomes": {900: 0.1, 1: 0.9}} | a))


def test_another_model_keeps_what_was_seen() -> None:
    search = Search(paper(), rewards="nearest")
    search.tell("A", reward=0.5, cost=19)
    assert search.ask() == "C"
    search.replace(solve(chests(cost=5.5).build()))
    assert (search.best, search.spent, search.pending) == (0.5, 19, ["C"])
    assert search.history[0].box.number == 2  # where A is now
    assert search.available() == [("D", 6.0)]
    search.tell("C", 10)
    assert search.spent == 24.5
    assert search.policy.forest.names == ("D", "C", "A")


def test_a_handle_from_before_still_works() -> None:
    search = Search(paper())
    box = search.ask()
    search.replace(solve(chests().build()))
    search.tell(box, 900)
    assert search.history[0].box.number == 2
    search.tell(box, 900)
    assert len(search.history) == 1


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (Builder().add("C", cost=5, outcomes={50: 0.5, 10: 0.5}), "'A' is missing"),
        (chests(top=60), "state that was seen must stay .* 'C' has no state '50'"),
        (chests(parent="D", outcomes={0: {1: 1.0}, 8: {900: 1.0}}), "'A' has another parent"),
        (Builder(outside=0.0, minimize=True).add("A", cost=1, outcomes={1: 1.0}), "must minimize"),
    ],
)
def test_a_model_that_does_not_fit(new: Builder, message: str) -> None:
    search = Search(paper())
    search.tell("C", 50)
    assert search.ask() == "A"
    before = (search.history, search.pending, search.available())
    with pytest.raises(InvalidForest, match=message):
        search.replace(solve(new.build()))
    assert (search.history, search.pending, search.available()) == before


def test_other_numbers_of_copies() -> None:
    def model(count: int) -> Any:
        built = Builder().add("A", cost=1, outcomes={0: 0.5, 90: 0.5}, count=count)
        return solve(built.add("B", parent="A", cost=1, outcomes={0: 0.5, 99: 0.5}).build())

    search = Search(model(1))
    search.tell("A", 0)
    assert search.ask() == "B"
    search.replace(model(3))
    assert search.pending == ["B#1"]
    search.tell("A#3", 0)
    assert [x.box for x in search.history] == ["A#1", "A#3"]
    with pytest.raises(InvalidForest, match="of 'A#3' the new problem has only 2 copies"):
        search.replace(model(2))
    search.replace(model(4))
    assert [b for b, _ in search.available()] == ["B#3", "A#2", "A#4"]


def test_another_outside_option() -> None:
    search = Search(roots(4))
    search.tell("b0", reward=10)
    search.replace(roots(4, outside=20))
    assert (search.best, search.best_box) == (20, None)
    assert search.done
    search.replace(roots(4, outside=5))
    assert (search.best, search.best_box) == (10, "b0")


def test_solution_policy_is_the_optimal_one() -> None:
    solution = solve(chests().build())
    assert solution.policy().index.tolist() == solution.index_columns()[1].tolist()
    assert isinstance(Search(solution), Search)
    assert repr(Search(solution)) == "Search(best=0, spent=0, opened=0, out=0)"


# -- taking back ---------------------------------------------------------------------------------


def test_what_was_handed_out_because_of_an_answer_is_not_out_without_it() -> None:
    """After a bad answer another box pays; without the answer the first one is asked again."""
    forest = Forest.from_arrays(
        parent=[-1, -1], cost=[1, 1], rewards=[[0, 100], [0, 10]], law=[[0.5, 0.5]] * 2,
        names=["A", "B"],
    )  # fmt: skip
    search = Search(solve(forest))
    search.tell(search.ask(), reward=0)
    assert search.ask() == "B"
    assert search.undo().endswith("Not handed out any more: B.")
    assert search.pending == ["A"]
    search.tell("A", reward=100)
    assert search.ask() is None
    assert search.done


def test_a_box_that_was_out_before_an_answer_stays_out_without_it() -> None:
    search = Search(roots())
    assert search.ask(2) == ["b0", "b1"]
    search.tell("b0", 0)
    assert search.ask(2) == ["b1", "b2"]
    search.undo()
    assert search.pending == ["b0", "b1"]


@pytest.mark.parametrize("copies", [True, False])
def test_undo_takes_no_longer_in_a_long_search(copies: bool, tmp_path: Path) -> None:
    """Nothing is read again, and nothing is computed anew that came before."""
    n = 3000
    boxes: dict[str, Any] = {"parent": [-1], "cost": [1.0], "law": [[0.5, 0.5]], "count": [n]}
    if not copies:
        boxes = {"parent": [-1] * n, "cost": [1.0] * n, "law": [[0.5, 0.5]] * n}
    search = Search(Policy.of(Forest.from_arrays(**boxes, rewards=[0.0, 5.0]), 9.0))
    lines: list[int] = []
    for steps in (10, 1000):
        for _ in range(steps):
            search.tell(search.ask(), 1)

        def count(frame: Any, event: str, arg: object) -> Any:
            lines[-1] += event == "line"
            return count

        lines.append(0)
        sys.settrace(count)
        try:
            search.undo()
        finally:
            sys.settrace(None)
    assert lines[1] < 1.2 * lines[0] + 50


def test_states_without_names_may_be_given_by_their_text() -> None:
    forest = roots().forest
    assert forest.states("b0") == ("0", "1")
    search = Search(roots())
    search.tell("b0", forest.states("b0")[1])
    assert search.history[0].state_number == 1
