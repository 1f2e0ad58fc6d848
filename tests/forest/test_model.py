"""Forests from arrays: what is accepted, and one clear message for what is not."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest

import weitzman
from weitzman import Forest, WeitzmanError, solve
from weitzman.errors import InvalidForest, UnknownName
from weitzman.forest.columns import Pool

GOOD = {
    "parent": [-1, 0, 0],
    "cost": [1.0, 2.0, 3.0],
    "rewards": [[0.0, 1.0], [5.0], [2.0, 3.0, 4.0]],
    "law": [[0.5, 0.5], [[1.0], [1.0]], [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]],
    "names": ["a", "b", "c"],
}


def but(**changes):
    return {**GOOD, **changes}


BROKEN = {
    "empty": (but(parent=[], cost=[], rewards=[], law=[], names=[]), "at least one box"),
    "fractional parent": (but(parent=[-1, 0.5, 0]), "`parent` must hold whole numbers"),
    "text parent": (but(parent=["x", 0, 0]), "`parent` must hold whole numbers"),
    "missing parent": (but(parent=[-1, 7, 0]), r"that of box 'b' is 7 \(1 such box\)"),
    "parent below -1": (but(parent=[-1, -2, 0]), "that of box 'b' is -2"),
    "cycle": (but(parent=[1, 0, 0]), "is a cycle"),
    "own parent": (but(parent=[0, 0, 0]), "'a' -> 'a' is a cycle"),
    "duplicate names": (but(names=["a", "b", "a"]), "names of boxes must differ, but 'a'"),
    "too few names": (but(names=["a", "b"]), r"has shape \(2,\) for 3 boxes"),
    "wrong sum": (
        but(law=[[0.5, 0.5], [[1], [1]], [[0.2, 0.3, 0.5], [0.9, 0, 0]]]),
        r"those of box 'c' after 'a' shows '1' sum to 0\.9 \(1 such row\). Rescale the row",
    ),
    "root sum": (but(law=[[0.5, 0.4], [[1], [1]], GOOD["law"][2]]), "those of box 'a' sum to 0.9"),
    "negative probability": (
        but(law=[[1.5, -0.5], [[1], [1]], GOOD["law"][2]]),
        r"between 0 and 1, but box 'a' has 1.5 at \[0, 0\] of its law \(2 such",
    ),
    "nan probability": (but(law=[[np.nan, 1], [[1], [1]], GOOD["law"][2]]), "has nan at"),
    "nan reward": (but(rewards=[[0, np.nan], [5], [2, 3, 4]]), "box 'a' has nan in state 1"),
    "infinite reward": (but(rewards=[[0, np.inf], [5], [2, 3, 4]]), "box 'a' has inf"),
    "negative cost": (but(cost=[1, -2, 3]), r"box 'b' has -2 \(1 such cost\)"),
    "infinite cost": (but(cost=[1, np.inf, 3]), "box 'b' has inf"),
    "text cost": (but(cost=[1, "two", 3]), "cost of box 'b' must be numbers"),
    "too few costs": (but(cost=[1, 2]), "one entry per box, but there are 2 for 3"),
    "too few laws": (but(law=GOOD["law"][:2]), "`law` must have one entry per box"),
    "wrong columns": (but(rewards=[[0, 1], [5, 6], [2, 3, 4]]), "law of box 'b' must have 2 rows"),
    "wrong rows": (but(law=[[0.5, 0.5], [[1]], GOOD["law"][2]]), "2 rows .states of its parent."),
    "vector for a child": (but(law=[[0.5, 0.5], [1], GOOD["law"][2]]), "box 'b' .a child. has a"),
    "ragged law": (but(law=[[0.5, 0.5], [[1], [1, 2]], GOOD["law"][2]]), "rows differ in length"),
    "cost of wrong shape": (
        but(cost=[1, [1, 2, 3], 3]),
        "the cost of box 'b' must have 2 rows .*or one for all of them, but it has shape .3, 1.",
    ),
    "zero count": (but(count=[1, 0, 1]), "but box 'b' has 0 .1 such box."),
    "huge count": (but(count=[1, 10**17, 1]), "a count must be from 1 to 9007199254740991"),
    "nan outside": (but(outside=np.nan), "outside option must be a finite number"),
    "outside on the wrong side": (but(outside=np.inf), "or -inf if something must be taken"),
    "minimize without outside": (but(minimize=True), "minimizing needs an outside option"),
    "state names": (but(states=[["x"], None, None]), "box 'a' has 1 name for 2 rewards"),
    "one state twice": (but(states=[["x", "x"], None, None]), "names of the states of box 'a'"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_each_rule_has_its_message(case):
    arguments, message = BROKEN[case]
    with pytest.raises(InvalidForest, match=message) as caught:
        Forest.from_arrays(**arguments)
    assert isinstance(caught.value, WeitzmanError)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)


def test_signals_need_a_finite_outside_option():
    with pytest.raises(InvalidForest, match="need a finite outside option"):
        Forest.from_arrays(
            parent=[-1], cost=[1], rewards=[-np.inf, 1], law=[[0.5, 0.5]], outside=-np.inf
        )


def test_the_good_one_is_good():
    f = Forest.from_arrays(**GOOD)
    assert len(f) == f.boxes == 3
    assert f.roots.tolist() == [0]
    assert f.box("c") == f.box(2) == 2
    assert f.states("c") == ("0", "1", "2")
    with pytest.raises(UnknownName, match="no box number 3"):
        f.box(3)


def test_columns_are_ours_and_read_only():
    parent = np.array([-1, 0, 0])
    f = Forest.from_arrays(**but(parent=parent))
    parent[:] = 5
    assert f.parent.tolist() == [-1, 0, 0]
    for column in (f.parent, f.law, f.laws.data, f.rewards.data, f.costs.data):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


def test_copies_stay_checked_and_read_only():
    f = Forest.from_arrays(**GOOD)
    for g in (copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        assert g.names == f.names
        assert solve(g).value == solve(f).value
        with pytest.raises(ValueError, match="read-only"):
            g.parent[0] = 1


def test_boxes_of_one_kind_share_their_numbers():
    matrix = np.full((4, 4), 0.25)
    n = 1000
    f = Forest.from_arrays(
        parent=np.arange(n) - 1, cost=np.full(n, 0.5), rewards=range(4),
        law=[np.full(4, 0.25), *[matrix.copy() for _ in range(n - 1)]],
    )  # fmt: skip
    assert len(f.laws) == 2
    assert f.laws.data.size == 4 + 16
    assert len(f.costs) == len(f.rewards) == 1


def test_a_stack_of_laws_is_the_same_as_a_list():
    rng = np.random.default_rng(0)
    n, k = 12, 3
    parent = np.arange(n) // 3 - 1
    stack = rng.dirichlet(np.ones(k), (n, k))
    stack[parent < 0] = stack[parent < 0, :1]
    common = {"parent": parent, "cost": rng.random(n) * 0.1, "rewards": rng.random(k)}
    one = solve(Forest.from_arrays(law=stack, **common))
    two = solve(
        Forest.from_arrays(
            law=[m[0] if p < 0 else m for p, m in zip(parent, stack, strict=True)], **common
        )
    )
    assert one.value == two.value
    uneven = stack.copy()
    uneven[0] = rng.dirichlet(np.ones(k), k)
    with pytest.raises(InvalidForest, match="equal rows"):
        Forest.from_arrays(law=uneven, **common)


def test_any_order_of_boxes():
    f = Forest.from_arrays(
        parent=[2, 0, -1], cost=[2, 3, 1], rewards=[0, 10],
        law=[[[0.5, 0.5], [0.9, 0.1]], [[0.5, 0.5], [0.1, 0.9]], [0.3, 0.7]],
    )  # fmt: skip
    g = Forest.from_arrays(
        parent=[-1, 0, 1], cost=[1, 2, 3], rewards=[0, 10],
        law=[[0.3, 0.7], [[0.5, 0.5], [0.9, 0.1]], [[0.5, 0.5], [0.1, 0.9]]],
    )  # fmt: skip
    assert solve(f).value == solve(g).value
    assert solve(f).index(1, 1) == solve(g).index(2, 1)


def test_exact_numbers_are_taken():
    f = Forest.from_arrays(
        parent=[-1], cost=[Fraction(1, 4)], rewards=[Fraction(1, 2), 2], law=[[Fraction(1, 2)] * 2]
    )
    assert solve(f).value == 1.0


def test_names_come_before_numbers():
    f = Forest.from_arrays(
        parent=[-1, 0], cost=[1, 1], rewards=[[1, 0], [5, 6]], law=[[0.5, 0.5], [[1, 0], [0, 1]]],
        states=[["1", "0"], None], names=[7, 8],
    )  # fmt: skip
    assert f.names == ("7", "8")
    assert f.state(0, 1) == 0  # the state named "1", which is number 0
    assert f.state(0, "0") == 1
    assert f.state(1, 1) == 1
    assert f.state(0, 1.0) == 0


def test_changed_and_subtree():
    f = Forest.from_arrays(**GOOD)
    dearer = f.changed(cost={"b": [2, 9]}, outside=1.5)
    assert dearer.costs[dearer.cost[1]].tolist() == [[2], [9]]
    assert dearer.outside == 1.5
    assert f.outside == 0
    tree = f.subtree("c", 1)
    assert len(tree) == 1
    assert tree.names == ("c",)
    assert tree.laws[tree.law[0]].tolist() == [[1.0, 0.0, 0.0]]
    whole = f.subtree("a")
    assert solve(whole).value == solve(f).value
    assert solve(tree).index(0) == solve(f).index("c", 1)


def test_counts_beyond_machine_integers():
    n = 5
    f = Forest.from_arrays(
        parent=np.arange(n) - 1, cost=[1] * n, rewards=[0, 1],
        law=[[0.5, 0.5], *[[[0.5, 0.5]] * 2] * (n - 1)], count=[10**5] * n,
    )  # fmt: skip
    assert f.boxes == sum(10 ** (5 * d) for d in range(1, n + 1))


def test_pools_stay_read_only_and_their_own():
    f = Forest.from_arrays(**GOOD)
    for g in (copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        assert not g.laws.data.flags.writeable
    mine = np.array([0.5, 0.5])
    pool = Pool(mine, np.array([0, 2]), np.array([[1, 2]]))
    mine[0] = 9
    assert pool[0].tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rewards": 5.0}, "`rewards` must be one vector"),
        ({"cost": None}, "`cost` must have one entry per box"),
        ({"outside": "a"}, "outside option must be a number"),
    ],
)
def test_odd_types_get_the_same_kind_of_message(change, message):
    with pytest.raises(InvalidForest, match=message):
        Forest.from_arrays(**but(**change))


def test_one_new_cost_a_box():
    with pytest.raises(InvalidForest, match="one is named twice"):
        Forest.from_arrays(**GOOD).changed(cost={"a": 2.0, 0: 3.0})


def test_positions_are_rejected_where_states_are_named_by_numbers():
    # 1 could be a position or a reward: a wrong guess would be recorded as an observation
    f = Forest.from_arrays(
        parent=[-1], cost=[1], rewards=[50, 10], law=[[0.5, 0.5]], states=[["50", "10"]]
    )
    assert f.state(0, 10) == 1
    with pytest.raises(UnknownName, match="has no state 1; its states are 50, 10"):
        f.state(0, 1)
    words = Forest.from_arrays(
        parent=[-1], cost=[1], rewards=[50, 10], law=[[0.5, 0.5]], states=[["good", "bad"]]
    )
    assert words.state(0, 1) == words.state(0, "bad") == 1


def test_an_empty_name_is_rejected():
    with pytest.raises(InvalidForest, match="one is empty"):
        Forest.from_arrays(**but(names=["a", "", "c"]))


def test_mix_ups_are_detected():
    f = Forest.from_arrays(**GOOD)
    with pytest.raises(WeitzmanError, match=r"solve needs a Forest, but got a str.*load"):
        solve("boxes.json")
    for function in (weitzman.evaluate, weitzman.sensitivity):
        with pytest.raises(WeitzmanError, match=r"but got a Forest. Call solve\(forest\) first"):
            function(f)
    with pytest.raises(WeitzmanError, match="compare needs a forest or its solution"):
        weitzman.compare("boxes.json")
    assert (
        weitzman.compare(solve(f), episodes=10).table() == weitzman.compare(f, episodes=10).table()
    )


def test_rows_that_miss_one_by_rounding_are_rescaled():
    """Otherwise the miss would grow with every box, unseen by the certified gap."""
    forest = Forest.from_arrays(parent=[-1], cost=[0], rewards=[0.0, 1.0], law=[[0.5, 0.5 + 8e-10]])
    assert forest.laws[0].sum() == pytest.approx(1.0, abs=1e-15)


def test_one_array_object_for_many_boxes_is_kept_once():
    matrix, vector = np.full((2, 2), 0.5), np.array([0.5, 0.5])
    other = np.array([[0.25, 0.75], [0.5, 0.5]])
    forest = Forest.from_arrays(
        parent=[-1, 0, 1, 2, -1], cost=1.0, rewards=[0.0, 1.0],
        law=[vector, matrix, other, matrix, vector],
    )  # fmt: skip
    assert [forest.laws[int(i)].tolist() for i in forest.law] == [
        [vector.tolist()], matrix.tolist(), other.tolist(), matrix.tolist(), [vector.tolist()]
    ]  # fmt: skip
    assert len(forest.laws) == 3


def test_states_without_names_are_told_as_states_says() -> None:
    forest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    assert [forest.state(0, s) for s in forest.states(0)] == [0, 1]
    with pytest.raises(UnknownName, match="has no state '2'; its states are 0 to 1"):
        forest.state(0, "2")
    search = weitzman.Search(weitzman.solve(forest))
    search.tell(0, forest.states(0)[1])
    assert search.best == 10


def test_matrices_are_stored_in_the_order_of_the_boxes() -> None:
    """Whatever their places in memory: equal forests give equal files."""
    some = [np.array([p, 1 - p]) for p in (0.1, 0.2, 0.3)]
    for order in ([2, 0, 2, 1], [0, 1, 2, 2], [1, 0, 0, 2]):
        law = [some[i] for i in order]
        forest = Forest.from_arrays(parent=[-1] * 4, cost=1, rewards=[0, 1], law=law)
        first = list(dict.fromkeys(order))
        assert [forest.laws[i].tolist() for i in range(3)] == [[some[i].tolist()] for i in first]
        assert forest.law.tolist() == [first.index(i) for i in order]
