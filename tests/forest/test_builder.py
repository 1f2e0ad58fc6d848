"""Ways to write down a forest: box by box, as lines, out of forests, and copies written out."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_problems import forests
from reference import Problem, to_arrays
from same_forests import assert_paper, assert_same

from weitzman import Search
from weitzman.engine.solver import solve
from weitzman.errors import InvalidForest
from weitzman.forest.builder import Builder, expand, line, side_by_side
from weitzman.forest.forms import CLOSED
from weitzman.forest.model import Forest

B_OUTCOMES = {1: {21: 0.5, -9: 0.5}, 900: {920: 0.5, 890: 0.5}}
STICKY = [[0.9, 0.1], [0.2, 0.8]]


def paper() -> Builder:
    return (
        Builder()
        .add("A", cost=20, outcomes={900: 0.1, 1: 0.9})
        .add("B", parent="A", cost=3, outcomes=B_OUTCOMES)
        .add("C", cost=5, outcomes={50: 0.5, 10: 0.5})
    )


def coin(prize: float = 10.0, **more: Any) -> Forest:
    return line([[0.5, 0.5]], rewards=[0.0, prize], cost=1, **more)


# Box by box


def test_paper() -> None:
    forest = paper().build()
    assert_paper(forest)
    assert forest.names == ("A", "B", "C")
    assert forest.states("A") == ("1", "900")
    assert forest.states("B") == ("-9", "21", "890", "920")


def test_children_may_come_first_and_keep_their_place() -> None:
    search = Builder().add("B", parent="A", cost=3, outcomes=B_OUTCOMES)
    search.add("C", cost=5, outcomes={50: 0.5, 10: 0.5})
    forest = search.add("A", cost=20, outcomes={900: 0.1, 1: 0.9}).build()
    assert forest.names == ("B", "C", "A")
    assert_paper(forest)


def test_a_builder_can_continue_after_building() -> None:
    search = Builder().add("A", cost=20, outcomes={900: 0.1, 1: 0.9})
    before = search.build()
    search.add("B", parent="A", cost=3, outcomes=B_OUTCOMES)
    search.add("C", cost=5, outcomes={50: 0.5, 10: 0.5})
    assert (len(before), len(search), repr(search)) == (1, 3, "Builder(3 boxes)")
    assert_paper(search.build())


def test_keys_are_known_by_their_label() -> None:
    search = Builder().add("A", cost=20, outcomes={900.0: Fraction(1, 10), np.int64(1): 0.9})
    search.add(
        "B", parent="A", cost=3, outcomes={"1": B_OUTCOMES[1], np.float64(900): B_OUTCOMES[900]}
    )
    search.add("C", cost=5, outcomes={50: 0.5, 10: 0.5})
    assert_paper(search.build())


def test_named_states_have_the_rewards_given() -> None:
    search = Builder(outside=-1).add(
        "A",
        cost=1,
        outcomes={"good": 0.25, "bad": 0.25, 7: 0.5},
        rewards={"bad": None, "good": 10},
    )
    search.add("B", parent="A", cost=0, outcomes={"good": {1: 1}, "bad": {2: 1}, 7: {3: 1}})
    forest = search.build()
    assert forest.states("A") == ("bad", "good", "7")
    assert forest.rewards[forest.reward[0]].tolist() == [[-np.inf, 10, 7]]
    assert forest.laws[forest.law[0]].tolist() == [[0.25, 0.25, 0.5]]
    assert forest.laws[forest.law[1]].tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]


def test_a_number_may_be_worth_something_else() -> None:
    forest = Builder().add("A", cost=0, outcomes={1: 0.5, 2: 0.5}, rewards={2: 20}).build()
    assert forest.states("A") == ("2", "1")
    assert forest.rewards[0].tolist() == [[20, 1]]


def test_minimizing_turns_no_reward_into_plus_infinity() -> None:
    search = Builder(outside=9, minimize=True)
    search.add("A", cost=1, outcomes={"sign": 0.5, 3: 0.5}, rewards={"sign": None})
    forest = search.build()
    assert forest.rewards[0].tolist() == [[np.inf, 3]]
    assert (forest.outside, forest.minimize) == (9, True)


def test_a_child_may_be_independent_of_its_parent() -> None:
    search = Builder().add("A", cost=0, outcomes={0: 0.5, 1: 0.25, 2: 0.25})
    forest = search.add("B", parent="A", cost=1, outcomes={0: 0.5, 10: 0.5}).build()
    assert forest.laws[forest.law[1]].tolist() == [[0.5, 0.5]] * 3
    assert solve(forest).indices("B").tolist() == [8.0, 8.0, 8.0]


def test_costs_in_every_form() -> None:
    search = Builder().add("A", cost={0: 1, 5: 2}, outcomes={0: 0.5, 5: 0.5})
    rows = {0: {1: 0.5, 2: 0.5}, 5: {1: 1}}
    search.add("fixed", parent="A", cost=3, outcomes=rows)
    search.add("after", parent="A", cost={5: 2, 0: 1}, outcomes=rows)
    search.add("found", parent="A", cost={0: {1: 1, 2: 2}, 5: {1: 3}}, outcomes=rows)
    search.add("mixed", parent="A", cost={0: {1: 1, 2: 2}, 5: 7}, outcomes=rows)
    forest = search.build()
    costs = [forest.costs[c].tolist() for c in forest.cost]
    assert costs == [
        [[1, 2]],
        [[3]],
        [[1], [2]],
        [[1, 2], [3, 0]],  # a state that cannot occur costs nothing
        [[1, 2], [7, 7]],
    ]


def test_counts_are_copies() -> None:
    forest = paper().add("D", cost=1, outcomes={0: 0.5, 10: 0.5}, count=7).build()
    assert forest.count.tolist() == [1, 1, 1, 7]
    assert forest.boxes == 10


@st.composite
def written(draw: st.DrawFn) -> tuple[Problem, list[int]]:
    problem = draw(forests())
    return problem, draw(st.permutations(range(len(problem.parents))))


def named(states: list[str], values: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(states, values, strict=True))


def label(states: tuple[int, ...]) -> str:
    return f"s{states[0]}" if states else "root"


@given(written())
def test_builder_agrees_with_arrays(case: tuple[Problem, list[int]]) -> None:
    problem, order = case
    plain = to_arrays(problem)
    search = Builder(outside=plain["outside"])
    for v in order:
        own = [f"s{y}" for y in range(len(problem.rewards[v]))]
        worth = [None if r is None else float(r) for r in problem.rewards[v]]
        rows = {label(s): named(own, p) for s, p in problem.law[v].items()}
        costs = {label(s): named(own, c) for s, c in problem.cost[v].items()}
        up = next(iter(problem.parents[v]), None)
        search.add(
            v, parent=up, rewards=named(own, worth),
            cost=costs if up is not None else costs["root"],
            outcomes=rows if up is not None else rows["root"],
        )  # fmt: skip
    found = search.build()
    names = [[f"s{y}" for y in range(len(r))] for r in problem.rewards]
    wanted = Forest.from_arrays(**plain, names=range(len(names)), states=names)
    for place, v in enumerate(order):
        up = wanted.parent[v]
        assert found.parent[place] == (-1 if up < 0 else order.index(up))
    back = np.argsort(order)
    assert_same(
        Forest(
            parent=wanted.parent, law=found.law[back], reward=found.reward[back],
            cost=found.cost[back], laws=found.laws, rewards=found.rewards, costs=found.costs,
            count=found.count, outside=found.outside, names=wanted.names,
            state_names=found.state_names,
        ),
        wanted,
    )  # fmt: skip


def broken(**change: Any) -> Builder:
    """B below A, with some arguments changed."""
    arguments = {"parent": "A", "cost": 3, "outcomes": B_OUTCOMES} | change
    return Builder().add("A", cost=20, outcomes={900: 0.1, 1: 0.9}).add("B", **arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parent": "a"}, r"a parent must be a box, but 'a', parent of 'B', was never added \(1 "),
        ({"parent": "AA"}, r"never added \(1 such box; did you mean 'A'\?\)"),
        ({"outcomes": {1: {2: 1}}, "endless": True}, r"must have the states of its parent"),
        ({"outcomes": {1: {1: 1}}, "endless": True}, r"outcomes of box 'B' must have an entry for "
            r"each state of its parent 'A', but '900' has none \(1 such state\)\. Add it"),
        ({"outcomes": {1: {2: 1}, 901: {2: 1}}}, r"but '901' is none; did you mean '900'\? "
            r"\(1 such entry\)\. They are '1', '900'"),
        ({"outcomes": {1: {2: 1}, 900: 0.5}}, r"box 'B' must be .* but they mix both"),
        ({"outcomes": B_OUTCOMES, "parent": None}, r"box 'B' must .* go two levels deep though"),
        ({"outcomes": [0.5, 0.5]}, r"box 'B' must be a mapping .*, but there is \[0"),
        ({"outcomes": {}}, r"box 'B' must be a mapping .*, but there is \{\}"),
        ({"outcomes": {1: {}, 900: {}}}, r"the outcomes of box 'B' after 1 must name a state"),
        ({"outcomes": {1: {"x": 1}, 900: {"y": 1}}}, r"rewards of box 'B' give 'x' none "
            r"\(2 such states\)\. Name it in `rewards`"),
        ({"outcomes": {1: {True: 1}, 900: {2: 1}}}, r"of box 'B' give 'True' none"),
        ({"outcomes": {1: {"good": 1}, 900: {2: 1}}, "rewards": {"god": 1}}, r"rewards of box "
            r"'B' must have .* that occurs in outcomes, but 'god' is none; did you mean 'good'\?"),
        ({"rewards": {21: "much"}}, r"rewards of box 'B': that of '21' must be a number, "
            r"but it is 'much'"),
        ({"outcomes": {1: {2: "1"}, 900: {2: 1}}}, r"box 'B' after 1: that of '2' must be"),
        ({"outcomes": {1: {2: 0.5, "2": 0.5}, 900: {2: 1}}}, r"the outcomes of box 'B' after "
            r"1 name '2' twice: 900, 900.0 and '900' are one state"),
        ({"outcomes": {1: {2: 1}, "1": {2: 1}}}, r"states must differ, but the outcomes of box"),
        ({"outcomes": {1: {2: 0.6}, 900: {2: 1}}}, r"box 'B' after 'A' shows '1' sum to 0.6"),
        ({"cost": "dear"}, r"cost of box 'B' must be numbers, but got 'dear'"),
        ({"cost": -1}, r"costs must be finite and not negative, but box 'B'"),
        ({"cost": {1: 2}}, r"cost of box 'B' must have .* parent 'A', but '900' has none"),
        ({"cost": {21: 2, -9: 3}}, r"cost of box 'B' must have .* parent 'A', but '21' is none"),
        ({"cost": {1: {21: 1}, 900: 2}}, r"cost of box 'B' after '1' must have an entry for each "
            r"own state that can occur, but '-9' has none"),
        ({"cost": {1: {21: 1, -9: 1, 5: 1}, 900: 2}}, r"each own state, but '5' is none"),
        ({"cost": {1: None, 900: 2}}, r"cost of box 'B' of '1' must be a number, but it is None"),
        ({"count": 0}, r"a count must be from 1 to .*'B' has 0"),
        ({"count": 1.5}, r"`count` must hold whole numbers"),
    ],
)  # fmt: skip
def test_builder_errors(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidForest, match=message):
        broken(**change).build()


def test_names_must_differ() -> None:
    with pytest.raises(InvalidForest, match=r"but '1' is taken. Rename this one, or give"):
        Builder().add(1, cost=1, outcomes={0: 1}).add("1", cost=1, outcomes={0: 1})


def test_parents_in_a_circle_are_named() -> None:
    search = Builder().add("A", parent="B", cost=1, outcomes={0: 1})
    with pytest.raises(InvalidForest, match=r"'A' -> 'B' -> 'A' is a cycle"):
        search.add("B", parent="A", cost=1, outcomes={0: 1}).build()


def test_an_empty_builder_is_rejected() -> None:
    with pytest.raises(InvalidForest, match=r"but none was added\. Add a root"):
        Builder().build()


def test_minimizing_needs_an_outside_option() -> None:
    with pytest.raises(InvalidForest, match="minimizing needs an outside option"):
        Builder(minimize=True)


# Lines


def test_one_box() -> None:
    assert solve(coin()).index(0) == 8.0


def test_a_line_is_what_its_arrays_say() -> None:
    laws = [[0.25, 0.75], [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]], [[1.0], [1.0], [1.0]]]
    rewards, cost = [[0, 1], [0, 1, 2], [5]], [1, [2, 3], [[1], [2], [3]]]
    states = [["a", "b"], None, ["c"]]
    found = line(
        laws, rewards=rewards, cost=cost, names="xyz", outside=2, count=4, states=states
    )  # fmt: skip
    wanted = Forest.from_arrays(
        parent=[-1, 0, 1], law=laws, rewards=rewards, cost=cost, names="xyz", outside=2,
        count=[4, 1, 1], states=states,
    )  # fmt: skip
    assert_same(found, wanted)


def test_a_static_line_keeps_one_matrix() -> None:
    found = line(([0.5, 0.5], STICKY), length=50, rewards=[0, 10], cost=0.5)
    assert (len(found), len(found.laws), found.laws.data.size) == (50, 2, 6)
    assert_same(found, line([[0.5, 0.5], *[STICKY] * 49], rewards=[0, 10], cost=[0.5] * 50))


def test_a_static_line_of_one_box() -> None:
    assert_same(line(([0.5, 0.5], STICKY), length=1, rewards=[0, 10], cost=1), coin())


def test_an_array_of_laws() -> None:
    stack = np.array([[[0.5, 0.5]] * 2, STICKY, STICKY])
    wanted = line([[0.5, 0.5], STICKY, STICKY], rewards=[0, 10], cost=1)
    assert_same(line(stack, rewards=[0, 10], cost=1), wanted)


def test_losses_on_a_line() -> None:
    found = coin(minimize=True, outside=3)
    assert solve(found).index(0) == 2.0
    with pytest.raises(InvalidForest, match="minimizing needs an outside option"):
        coin(minimize=True)


@pytest.mark.parametrize(
    ("law", "more", "message"),
    [
        ([], {}, r"law of a line must be a list.*but it is empty"),
        ([0.5, 0.5], {}, r"law of a line must be a list.*but it is one vector"),
        ([[0.5, 0.5]], {"length": 3}, r"one distribution and one matrix, but there are 1 entries"),
        (([0.5, 0.5], STICKY), {"length": "endless"}, r"at least 1 or infinity.*length 'endless'"),
        (([0.5, 0.5], STICKY), {"length": 0}, r"at least 1.* there are 2 entries for length 0"),
        (([0.5, 0.5], [0.5, 0.5]), {}, r"a child's a matrix .* box 1 \(a child\) has a law of 1"),
        ([[0.5, 0.6]], {}, r"must sum to 1, but those of box '0' sum to 1.1"),
        (
            [[0.5, 0.5]],
            {"cost": [1, 2]},
            r"`cost` must have one entry per box, but there are 2 for 1",
        ),
        ([[0.5, 0.5]], {"count": 0}, r"a count must be from 1"),
    ],
)
def test_line_errors(law: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidForest, match=message):
        line(law, **({"rewards": [0, 10], "cost": 1} | more))


# Side by side


def test_paper_from_two_parts() -> None:
    states = [[1, 900], [-9, 21, 890, 920]]
    first = line(
        [[0.9, 0.1], [[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]]],
        rewards=states, cost=[20, 3], names="AB", states=states,
    )  # fmt: skip
    second = line([[0.5, 0.5]], rewards=[10, 50], cost=5, names="C", states=[10, 50])
    forest = side_by_side(first, second)
    assert forest.names == ("A", "B", "C")
    assert_same(forest, paper().build())
    assert_paper(forest)
    assert_paper(side_by_side([first, second]))
    assert_paper(side_by_side(second, [first]))


def test_equal_parts_are_stored_once() -> None:
    forest = side_by_side([coin() for _ in range(100)], coin(20.0))
    assert len(forest) == 101
    assert (len(forest.laws), len(forest.rewards), len(forest.costs)) == (1, 2, 1)
    assert forest.names is None
    again = side_by_side([coin()] * 100, coin(20.0))
    assert_same(again, forest)


def test_state_names_tell_equal_rewards_apart() -> None:
    plain, named = coin(), coin(states=["tails", "heads"])
    forest = side_by_side(plain, named, named)
    assert [forest.states(v) for v in range(3)] == [("0", "1"), *[("tails", "heads")] * 2]
    assert len(forest.rewards) == 2


def test_names_get_a_prefix_only_if_they_clash() -> None:
    a, b, c = coin(names=["a"]), coin(names=["b"]), coin()
    assert side_by_side(a, b).names == ("a", "b")
    assert side_by_side(a, b, c).names == ("a", "b", "0")
    assert side_by_side(a, b, a).names == ("0/a", "1/b", "2/a")
    assert side_by_side(coin(names=["0"]), c).names == ("0/0", "1/0")


def test_counts_multiply_those_of_the_roots() -> None:
    two = line([[0.5, 0.5], STICKY], rewards=[0, 10], cost=1, count=5)
    forest = side_by_side(two, coin(), counts=[3, 4])
    assert forest.count.tolist() == [15, 1, 4]
    assert forest.boxes == 34


def test_outside_options() -> None:
    assert side_by_side(coin(outside=2), coin(outside=2)).outside == 2
    assert side_by_side(coin(outside=2), coin(outside=3), outside=4).outside == 4
    with pytest.raises(
        InvalidForest, match=r"first is 2 and that of forest 1 is 3 \(1 such forest"
    ):
        side_by_side(coin(outside=2), coin(outside=3))


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([1], r"`counts` must have one entry per forest, but has 1 for 2"),
        (
            [1, 0],
            r"from 1 to 9007199254740991, but that of forest 1 is 0 \(1 such count\)",
        ),
        ([1, 0.5], r"`counts` must hold whole numbers"),
        ([2**53 - 1, 1], r"at most 9007199254740991 copies of a root, but .* makes them 1.8e\+16"),
    ],
)
def test_counts_errors(counts: list[Any], message: str) -> None:
    with pytest.raises(InvalidForest, match=message):
        side_by_side(coin(count=2), coin(), counts=counts)


def test_forests_must_agree_and_exist() -> None:
    with pytest.raises(InvalidForest, match=r"first is maximize and that of forest 1 is minimize"):
        side_by_side(coin(outside=3), coin(outside=3, minimize=True))
    with pytest.raises(InvalidForest, match="no forests were given"):
        side_by_side([])


@given(st.lists(forests(max_boxes=3, outside="zero"), min_size=1, max_size=4))
def test_side_by_side_keeps_every_box(problems: list[Problem]) -> None:
    parts = [Forest.from_arrays(**to_arrays(p)) for p in problems]
    whole = side_by_side(parts)
    keys = ("parent", "cost", "rewards", "law")
    joined: dict[str, list[Any]] = {key: [] for key in keys}
    for p in map(to_arrays, problems):
        shift = len(joined["parent"])
        for key in keys[1:]:
            joined[key] += p[key]
        joined["parent"] += [-1 if up < 0 else up + shift for up in p["parent"]]
    assert_same(whole, Forest.from_arrays(**joined))


# Copies written out


def test_expanded_copies_hang_on_copies() -> None:
    forest = Forest.from_arrays(
        parent=[1, -1, 1, 0], cost=[1, 2, 3, 4], rewards=[0, 10], names="abcd",
        law=[STICKY, [0.5, 0.5], STICKY, STICKY], count=[2, 3, 1, 2], outside=1,
    )  # fmt: skip
    whole = expand(forest)
    assert len(whole) == forest.boxes == 6 + 3 + 3 + 12
    assert whole.count.max() == 1
    kind = [name[0] for name in whole.names or ()]
    assert [kind.count(x) for x in "abcd"] == [6, 3, 3, 12]
    above = {(kind[v], kind[up]) for v, up in enumerate(whole.parent) if up >= 0}
    assert above == {("a", "b"), ("c", "b"), ("d", "a")}
    children = np.bincount(whole.parent[whole.parent >= 0], minlength=len(whole))
    assert [set(children[[k == x for k in kind]]) for x in "abcd"] == [{2}, {3}, {0}, {0}]
    cost = {x: whole.costs[whole.cost[v]].item() for v, x in enumerate(kind)}
    assert cost == {"a": 1, "b": 2, "c": 3, "d": 4}
    assert solve(whole, exact=True).value == pytest.approx(solve(forest).value, abs=1e-9)


def test_nothing_to_expand() -> None:
    forest = paper().build()
    assert expand(forest) is forest


def test_names_of_copies() -> None:
    three = side_by_side(coin(count=2, names=["a"]), coin(names=["b"]))
    assert expand(three).names == ("a#1", "a#2", "b")
    clash = side_by_side(coin(count=2, names=["a"]), coin(names=["a#2"]))
    assert expand(clash).names == ("a##1", "a##2", "a#2")
    assert expand(coin(count=2)).names is None


def test_too_many_copies_are_rejected_with_their_number() -> None:
    many = line(([0.5, 0.5], STICKY), length=2, rewards=[0, 10], cost=1, count=10**12)
    with pytest.raises(
        InvalidForest, match=r"has 2000000000000 boxes, more than the limit of 1000"
    ):
        expand(many)
    with pytest.raises(InvalidForest, match=r"has 3 boxes, more than the limit of 2\."):
        expand(coin(count=3), limit=2)
    assert len(expand(coin(count=3), limit=3)) == 3


# -- states of the parent that are left out -------------------------------------------------------


def trial() -> Builder:
    """A drug that is tested further only if it passes the first phase."""
    b = Builder().add("I", cost=1, outcomes={"pass": 0.5, "fail": 0.5}, rewards=dict.fromkeys(
        ["pass", "fail"]))  # fmt: skip
    b.add("II", parent="I", cost={"pass": 2}, outcomes={"pass": {"good": 0.5, "bad": 0.5}},
          rewards={"good": None, "bad": None})  # fmt: skip
    b.add("III", parent="II", cost=3, outcomes={"good": {40: 0.5, 0: 0.5}, "bad": {1: 1}})
    return b.add("sale", parent="III", cost=0, outcomes={5: 1})


def test_a_box_is_closed_after_states_that_are_left_out() -> None:
    forest = trial().build()
    solution = solve(forest)
    # pass: II good (0.5): III pays 20 + 2.5 - 3 with the sale, at least 5 without; bad: 5 - 3
    assert solution.value == pytest.approx(0.5 * (0.5 * (22.5 - 3) + 0.5 * (5 - 3) - 2) - 1)
    assert solution.index("II", "fail") == -np.inf
    assert solution.index("III", CLOSED) == solution.index("sale", CLOSED) == -np.inf
    assert forest.states("II") == ("good", "bad", CLOSED)
    assert forest.costs[int(forest.cost[1])].tolist() == [[2], [0]]
    assert forest.laws[int(forest.law[3])].tolist()[-1] == [0, 1]  # the sale after no third phase


def test_closed_boxes_are_worth_what_a_search_without_them_is() -> None:
    """Against the exact oracle, where the box after the state is simply not there."""
    with_box = trial().build()
    without = with_box.take([0])
    assert solve(with_box).index(0) > solve(without).index(0)
    search = Search(solve(with_box))
    search.tell(search.ask(), "fail")
    assert search.ask() is None


def test_a_state_that_is_called_closed_is_not_the_one_of_a_closed_box() -> None:
    """After "off", B was in its own state "closed", and its reward could be taken for nothing."""
    b = Builder().add("A", cost=0, outcomes={"on": 0.5, "off": 0.5}, rewards=dict.fromkeys(
        ["on", "off"]))  # fmt: skip
    b.add("B", parent="A", cost=1, outcomes={"on": {"closed": 1}}, rewards={"closed": 9})
    forest = b.build()
    assert forest.states("B") == ("closed", "(closed)")
    assert solve(forest).value == 4.0


def test_a_cycle_is_named_before_laws_are_read() -> None:
    half = {"x": {1: 1}}
    b = Builder().add("A", parent="B", cost=0, outcomes=half).add(
        "B", parent="A", cost=0, outcomes=half)  # fmt: skip
    with pytest.raises(InvalidForest, match=r"'A' -> 'B' -> 'A'|'B' -> 'A' -> 'B'"):
        b.build()


def test_boxes_without_a_row_cannot_be_endless() -> None:
    b = Builder().add("A", cost=1, outcomes={0: 0.5, 1: 0.5})
    b.add("B", parent="A", cost=1, endless=True, outcomes={1: {0: 0.5, 1: 0.5}})
    with pytest.raises(InvalidForest, match="each state of its parent 'A', but '0' has none"):
        b.build()
