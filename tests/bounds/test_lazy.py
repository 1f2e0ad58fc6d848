"""Lazy forests: bounds that hold, decisions that are right, agreement with finite solutions."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import random_problems
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from lazy_forests import lazily

import weitzman
from weitzman import Forest, LazyForest, Node, solve
from weitzman.bounds.index_bounds import endless_tree
from weitzman.bounds.refining import Ending
from weitzman.errors import InvalidArgument, InvalidForest


def mirrored(forest: Forest) -> Forest:
    """The same problem with losses."""
    return Forest(
        parent=forest.parent, law=forest.law, reward=forest.reward, cost=forest.cost,
        laws=forest.laws, costs=forest.costs, count=forest.count, outside=-forest.outside,
        minimize=True,
        rewards=type(forest.rewards)(
            -forest.rewards.data, forest.rewards.start, forest.rewards.shape
        ),
    )  # fmt: skip


@st.composite
def static_trees(draw: st.DrawFn) -> tuple[Forest, float, int]:
    """A tree of one kind, fully written down, its least cost and its branching."""
    k, b = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    step = np.array([draw(random_problems.probabilities(k)) for _ in range(k)], float)
    level = st.one_of(st.integers(-4, 12).map(float), st.just(-math.inf))
    rewards = np.array(draw(st.lists(level, min_size=k, max_size=k)))
    parent = [-1]
    for v in range(draw(st.integers(1, 8))):
        if v < len(parent):
            parent += [v] * draw(st.integers(0, b))
    price = st.integers(0, 12).map(lambda z: z / 4)
    cost = [draw(price) for _ in parent]
    first = np.array(draw(random_problems.probabilities(k)), float)
    forest = Forest.from_arrays(
        parent=parent, cost=cost, rewards=rewards, law=[first, *[step] * (len(parent) - 1)]
    )
    return forest, min(cost[1:], default=1.0), b


# -- the bounds hold -------------------------------------------------------------------------------


def assert_brackets(lazy: LazyForest, value: float, scale: float, boxes: int) -> None:
    """With any budget the truth is inside; bounds close in, and meet when all is expanded."""
    before = (-math.inf, math.inf)
    for budget in (0, 2, boxes):
        found = solve(lazy, budget=budget)
        assert found.expanded <= budget
        assert found.lower - 1e-9 * scale <= value <= found.upper + 1e-9 * scale
        assert found.lower >= before[0] - 1e-9 * scale
        assert found.upper <= before[1] + 1e-9 * scale
        before = found.lower, found.upper
    assert found.gap <= 1e-9 * scale
    assert found.ending in (Ending.COMPLETE, Ending.GAP)
    assert found.proven


@given(random_problems.forests(max_boxes=5, outside="any"))
def test_any_small_forest_against_the_oracle(problem):
    value = float(reference.optimal_value(problem))
    forest = Forest.from_arrays(**reference.to_arrays(problem))
    assert_brackets(lazily(forest), value, 20.0, len(forest))


@given(random_problems.forests(max_boxes=4, signals=False, outside="none"))
def test_without_an_outside_option(problem):
    forest = Forest.from_arrays(**reference.to_arrays(problem))
    assert_brackets(lazily(forest), float(reference.optimal_value(problem)), 20.0, len(forest))


@given(random_problems.forests(max_boxes=5))
def test_minimizing(problem):
    forest = Forest.from_arrays(**reference.to_arrays(problem))
    assert_brackets(
        lazily(mirrored(forest)), -float(reference.optimal_value(problem)), 20.0, len(forest)
    )


@given(static_trees())
def test_trees_of_one_kind_with_the_default_bound(case):
    forest, least, branching = case
    value = solve(forest, exact=True).value
    for f, v in ((forest, value), (mirrored(forest), -value)):
        assert_brackets(lazily(f, least_cost=least, branching=branching), v, 20.0, len(f))


@given(random_problems.forests(max_boxes=6, outside="any"), st.integers(0, 6))
def test_a_decision_loses_no_more_than_it_says(problem, budget):
    """Checked by the exhaustive programme: open that box (or stop), then go on optimally."""
    forest = Forest.from_arrays(**reference.to_arrays(problem))
    found = solve(lazily(forest), budget=budget)
    programme, closed = reference._Adaptive(problem), reference._closed(problem)
    best = float(programme.value(closed)[0])
    if found.first_box is None:
        earned = float(problem.floor)
    else:
        earned = float(programme.opening(closed, int(found.first_box))[0])
    assert earned >= best - found.regret - 1e-9
    assert found.proven == (found.regret <= 1e-9 * 30) or found.regret < 1e-7
    assert found.regret <= found.gap + 1e-12


@given(static_trees())
def test_indices_are_bracketed(case):
    forest, least, branching = case
    found = solve(lazily(forest, least_cost=least, branching=branching), budget=2)
    if found.first_box is not None:
        low, high = found.index
        assert low - 1e-9 <= solve(forest, exact=True).index(found.first_box) <= high + 1e-9


@pytest.mark.parametrize("tolerance", [1e-9, 1e-2, 0.5])
def test_merging_breakpoints_is_allowed_for(tolerance):
    """However roughly the finite problems are solved, what is said holds."""
    exact = solve(written_out(hashed(depth=5)), exact=True)
    for budget in (0, 20, 100, 300):
        found = solve(hashed(depth=5), budget=budget, tolerance=tolerance)
        assert found.lower - 1e-12 <= exact.value <= found.upper + 1e-12
        assert found.first_box is not None
        low, high = found.index
        assert low - 1e-12 <= exact.index(found.first_box) <= high + 1e-12
        best = exact.index(exact.first_box)
        assert best - exact.index(found.first_box) <= found.regret + 1e-12
        assert not found.proven or best == exact.index(found.first_box)


def test_the_policy_earns_the_lower_bound():
    tree = hashed(depth=5)
    found = solve(tree, budget=20)
    earned = weitzman.evaluate(found.policy()).value
    assert earned == pytest.approx(found.lower, abs=1e-8)
    assert found.solution.forest.name(0) == "0"


# -- endless ---------------------------------------------------------------------------------------

STEP = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6]])
REWARDS = np.array([0.0, 4.0, 10.0])


def endless(branching: int, cost: float = 0.5, **options: Any) -> LazyForest:
    options = options or {"least_cost": cost, "branching": branching}
    return LazyForest(
        [Node(law=STEP[0], rewards=REWARDS, cost=cost)],
        lambda node: [Node(law=STEP, rewards=REWARDS, cost=cost)] * branching,
        **options,
    )


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 2.0))
@settings(max_examples=25)
def test_an_endless_line_is_bounded_exactly_from_above(seed, cost):
    """Branching 1: the default bound is the endless line itself, of which the answer is known."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 5))
    law, rewards = rng.dirichlet(np.full(k, 0.7), k), np.sort(rng.uniform(0, 10, k))
    line = weitzman.solve_line(weitzman.Chain(law, rewards), cost)
    box = endless_tree(law, rewards, np.asarray(cost), 1, 0.0)
    levels = np.unique(np.concatenate([box.rewards[0], [0.0, 3.0]]))
    for s in range(k):
        worth = np.maximum(levels[:, None], box.rewards[0]) @ box.law[s]
        assert worth == pytest.approx(line.phi(levels, s), abs=1e-7)
    lazy = LazyForest(
        [Node(law=law[0], rewards=rewards, cost=cost)],
        lambda node: [Node(law=law, rewards=rewards, cost=cost)],
        least_cost=cost, branching=1,
    )  # fmt: skip
    found = solve(lazy, gap=1e-6, budget=2000)
    exact = line.value_at(law[0])
    assert found.gap <= 1e-6
    assert found.lower - 1e-9 <= exact <= found.upper + 1e-9
    assert found.upper == pytest.approx(exact, abs=1e-7)


def test_an_endless_line_with_the_top_reward_as_its_bound():
    found = solve(endless(1, bound=10.0), gap=1e-6)
    exact = weitzman.solve_line(weitzman.Chain(STEP, REWARDS), 0.5).value_at(STEP[0])
    assert found.gap <= 1e-6
    assert found.lower <= exact <= found.upper


def test_an_endless_tree_against_deep_ones_by_counts():
    deep = weitzman.solve(
        Forest.from_arrays(
            parent=range(-1, 59), cost=0.5, rewards=REWARDS, law=[STEP[0], *[STEP] * 59],
            count=[1, *[3] * 59],
        )
    )  # fmt: skip
    found = solve(endless(3), gap=1e-3)
    assert found.lower <= deep.value + 1e-9
    assert found.upper == pytest.approx(deep.value, abs=1e-7)
    assert found.gap <= 1e-3


@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
@settings(max_examples=15)
def test_costs_by_the_state_of_the_parent(seed, branching):
    """The endless tree dominates all finite ones and is met by them, whatever reward is in hand."""
    rng = np.random.default_rng(seed)
    law, rewards = rng.dirichlet(np.ones(3), 3), rng.uniform(-5, 10, 3)
    cost = rng.uniform(0.2, 2.0, 3)
    box = endless_tree(law, rewards, cost, branching, -20.0)
    for depth in (1, 3, 40):
        for s in range(3):
            forest = Forest.from_arrays(
                parent=range(-1, depth - 1), cost=[cost[s], *[cost] * (depth - 1)], rewards=rewards,
                law=[law[s], *[law] * (depth - 1)], count=[branching] * depth,
            )  # fmt: skip
            held = np.array([-20.0, -5.0, 0.0, 4.0, 8.0])
            values = [solve(forest.changed(outside=x)).value for x in held]
            worth = np.maximum(held[:, None], box.rewards[0]) @ box.law[s]
            assert (worth >= np.array(values) - 1e-7).all()
    lazy = LazyForest(
        [Node(law=law[0], rewards=rewards, cost=0.1)],
        lambda node: [Node(law=law, rewards=rewards, cost=cost, count=branching)],
        least_cost=cost, branching=branching, outside=-20.0,
    )  # fmt: skip
    found = solve(lazy, gap=1e-6, budget=500)
    assert found.gap <= 1e-6


def test_copies_are_one_node():
    """Three children as one node with a count are the same problem, and far fewer nodes."""
    lazy = LazyForest(
        [Node(law=STEP[0], rewards=REWARDS, cost=0.5)],
        lambda node: [Node(law=STEP, rewards=REWARDS, cost=0.5, count=3)],
        least_cost=0.5, branching=3,
    )  # fmt: skip
    found, plain = solve(lazy, gap=1e-6), solve(endless(3), gap=1e-3)
    assert found.gap <= 1e-6
    assert found.expanded < 100
    assert plain.lower <= found.upper
    assert found.lower <= plain.upper


def test_free_boxes_without_an_end_are_worth_the_top_reward():
    found = solve(endless(2, cost=0.0), budget=0)
    assert found.upper == pytest.approx(10.0)


# -- costs that differ at every node ---------------------------------------------------------------


def hashed(depth: int, branching: int = 3, least: float = 0.5, most: float = 1.0) -> LazyForest:
    """A tree in which no two costs are equal: they are drawn from the way to the node."""

    def cost(way: tuple[int, ...]) -> float:
        return float(np.random.default_rng((7, *way)).uniform(least, most))

    def children(node: Node) -> list[Node]:
        ways = [(*node.data, i) for i in range(branching if len(node.data) < depth else 0)]
        return [Node(law=STEP, rewards=REWARDS, cost=cost(way), data=way) for way in ways]

    roots = [Node(law=STEP[0], rewards=REWARDS, cost=cost((i,)), data=(i,)) for i in range(2)]
    return LazyForest(roots, children, least_cost=least, branching=branching)


def written_out(lazy: LazyForest) -> Forest:
    """All boxes of a finite lazy forest."""
    tree = lazy._tree
    for v, _ in enumerate(tree.nodes):  # which grow
        tree.expand(v)
    nodes = tree.nodes
    return Forest.from_arrays(
        parent=list(tree.parent),
        cost=[node.cost for node in nodes],
        rewards=[node.rewards for node in nodes],
        law=[node.law for node in nodes],
        names=[node.name for node in nodes],
    )


def test_a_tree_that_can_be_written_down():
    forest = written_out(hashed(depth=5))
    assert len(forest) == 2 * (3**5 - 1) // 2
    value = solve(forest).value
    for gap in (1.0, 0.1, 0.01, 1e-5):
        found = solve(hashed(depth=5), gap=gap)
        assert found.gap <= gap
        assert found.lower - 1e-7 <= value <= found.upper + 1e-7
    exact = solve(forest)
    assert exact.first_box is not None
    assert found.proven
    assert found.first_box == exact.first_box


def test_ten_to_the_nineteen_boxes():
    found = solve(hashed(depth=40), gap=0.05)
    assert found.gap <= 0.05 < 0.01 * found.lower
    assert found.proven
    assert found.expanded < 5000
    counts = [n for n, _, _ in found.history]
    assert len(counts) < 40
    assert counts == sorted(counts)


def test_only_what_is_needed_is_asked_for_and_only_once():
    asked: list[str] = []

    def children(node: Node) -> list[Node]:
        asked.append(node.name)
        return [Node(law=STEP, rewards=REWARDS, cost=0.5)] * 2

    roots = [
        Node(law=STEP[2], rewards=REWARDS, cost=0.5, name="good"),
        Node(law=[1.0, 0.0, 0.0], rewards=[0.0, 0.0, 0.0], cost=50.0, name="hopeless"),
    ]
    lazy = LazyForest(roots, children, least_cost=0.5, branching=2)
    for budget in (10, 50, 50):
        solve(lazy, budget=budget)
    assert len(asked) == len(set(asked)) <= 50
    assert not any(name.startswith("hopeless") for name in asked)


def test_the_result_does_not_depend_on_what_was_done_before():
    used = hashed(depth=40)
    solve(used, budget=300)
    weitzman.LazySearch(used, budget=50).ask()
    again, fresh = solve(used, budget=100), solve(hashed(depth=40), budget=100)
    assert again.history == fresh.history
    assert again.solution.forest.names == fresh.solution.forest.names


def test_a_bound_for_each_node_and_state_does_better():
    line = weitzman.solve_line(weitzman.Chain(STEP, REWARDS), 0.5)
    exact = line.value_at(STEP[0])
    rough, fine = endless(1, bound=10.0), endless(1, bound=lambda node: line.index)
    spread = [solve(lazy, budget=5).upper - exact for lazy in (rough, fine)]
    assert -1e-9 <= spread[1] < spread[0]
    points, tails = line.breakpoints, line.tails
    chance = -np.diff(tails, append=0.0, axis=1)
    chance[:, 0] += 1 - chance.sum(axis=1)
    box = Node(law=chance, rewards=points, cost=0.0)
    assert solve(endless(1, bound=lambda node: box), budget=1).upper == pytest.approx(exact)


def test_progress_is_told():
    told: list[tuple[int, int]] = []
    solve(hashed(depth=40), budget=30, progress=lambda *now: told.append(now))
    assert told[0] == (0, 30)
    assert told[-1] == (30, 30)


def test_in_words():
    found = solve(hashed(depth=40), budget=200)
    assert "open 0 first (proven)" in str(found)
    assert "200 nodes expanded. As many nodes" in str(found)
    assert repr(found).startswith("LazySolution(lower=")


# -- what is refused -------------------------------------------------------------------------------

BOX: dict[str, Any] = {"law": STEP, "rewards": REWARDS, "cost": 0.5}
ROOT = Node(law=STEP[0], rewards=REWARDS, cost=0.5)


def assert_refused(
    match: str, children: Any, error: type[Exception] = InvalidForest, **options: Any
):
    options = options or {"least_cost": 0.5, "branching": 2}
    with pytest.raises(error, match=match):
        solve(LazyForest([ROOT], lambda node: children, **options), budget=5)


def test_nodes_that_break_a_rule():
    assert_refused("children of '0' must be a list of Nodes, but there is a str", ["x"])
    assert_refused("children of '0' must be a list of Nodes, but there is a NoneType", None)
    assert_refused(
        "costs must be finite and not negative, but box '0.0'",
        [Node(**BOX | {"cost": -1.0})],
        bound=10.0,
    )
    assert_refused("names of nodes must differ, but 'a' appears twice", [Node(**BOX, name="a")] * 2)
    assert_refused(
        "a count must be a whole number, but that of '0.0' is 1.5", [Node(**BOX, count=1.5)]
    )
    broken = [Node(**BOX | {"rewards": [0.0, 1.0, np.nan]})]
    lazy = LazyForest([ROOT], lambda node: broken, bound=9.0)
    for _ in range(2):  # what was refused is not taken the second time
        with pytest.raises(InvalidForest, match=r"rewards must be finite .* but box '0.0'"):
            solve(lazy, budget=5)
    assert_refused("must be numbers", [Node(**BOX | {"law": "abc"})])
    with pytest.raises(InvalidForest, match="there are no roots"):
        LazyForest([], lambda node: [], bound=1.0)


def test_what_would_make_the_default_bound_wrong():
    assert_refused(
        "`branching` must be the most children that a node has, but it is 2 and '0' has 3",
        [Node(**BOX, count=3)],
    )
    assert_refused(
        "no node may cost less than `least_cost`, but '0.0' costs 0.25",
        [Node(**BOX | {"cost": 0.25})],
    )
    assert_refused(
        "no node may cost less than `least_cost`, but '0.0' costs 0.4",
        [Node(**BOX | {"cost": [0.5, 0.4, 0.6]})],
    )
    assert_refused(
        "'0.0' costs 0.5 on average where the least cost is 0.75",
        [Node(**BOX)],
        least_cost=[0.25, 0.75, 0.5],
        branching=2,
    )
    other = Node(**BOX | {"rewards": [0.0, 4.0, 11.0]})
    assert_refused("share law and rewards, but those of '0.1' are different", [Node(**BOX), other])
    assert_refused(
        "the law of the children has shape", [Node(law=np.ones((3, 1)), rewards=[1], cost=1.0)]
    )


def test_a_bound_must_be_declared_and_be_one():
    for options in ({}, {"least_cost": 1.0}, {"bound": 1.0, "least_cost": 1.0, "branching": 2}):
        with pytest.raises(InvalidArgument, match="something must be known about what is still"):
            LazyForest([ROOT], lambda node: [], **options)
    for options, match in (
        ({"bound": math.inf}, "`bound` must be finite"),
        ({"bound": "ten"}, "`bound` must be a number, but it is 'ten'"),
        ({"bound": 1.0, "outside": "x"}, "`outside` must be a number"),
        ({"least_cost": "a", "branching": 2}, "`least_cost` must be a number from 0 on"),
        ({"least_cost": -1.0, "branching": 2}, "`least_cost` must be a number from 0 on"),
        ({"least_cost": 1.0, "branching": 0}, "`branching` must be a whole number from 1 on"),
    ):
        with pytest.raises(InvalidArgument, match=match):
            LazyForest([ROOT], lambda node: [], **options)
    with pytest.raises(InvalidArgument, match="`expand` must be a function"):
        LazyForest([ROOT], 3, bound=1.0)
    assert_refused(
        "one for each state of the node, or a Node, but for '0', which has 3 states, it is",
        [],
        InvalidArgument,
        bound=lambda node: [1.0, 2.0],
    )
    assert_refused("a bound must be", [], InvalidArgument, bound=lambda node: None)
    assert_refused(
        r"\(bound below 0\)", [], bound=lambda node: Node(law=[0.5, 0.5], rewards=[1, 2], cost=0)
    )
    assert_refused(
        "one for each of the 3 states of the parent, but there are 2",
        [Node(**BOX)],
        InvalidArgument,
        least_cost=[0.1, 0.2],
        branching=1,
    )


def test_the_cost_of_a_box_as_a_bound_may_depend_on_what_is_found():
    """It counts on average, as any cost."""
    law, rewards = np.tile([0.5, 0.5], (3, 1)), [50.0, 90.0]
    upper = [
        LazyForest(
            [ROOT], lambda node: [],
            bound=lambda node, cost=cost: Node(law=law, rewards=rewards, cost=cost),
        ).solve(budget=0).upper
        for cost in (0.5, np.tile([0.25, 0.75], (3, 1)))
    ]  # fmt: skip
    assert upper[0] == pytest.approx(upper[1])
    assert upper[0] > 60


def test_a_bound_that_is_exceeded_is_noticed():
    assert_refused(
        "`bound` must not be exceeded, but what is known already is worth",
        [Node(**BOX)] * 2,
        InvalidArgument,
        bound=1.0,
    )


def test_limits_make_sense():
    lazy = endless(1)
    for options in ({"gap": -1.0}, {"gap": math.nan}, {"budget": -1}, {"budget": 1.5}):
        with pytest.raises(InvalidArgument, match=r"from 0 on|at least 0"):
            solve(lazy, **options)
    with pytest.raises(
        InvalidArgument, match="`gap` must be a number from 0 on, but it is 'small'"
    ):
        solve(lazy, gap="small")
    with pytest.raises(InvalidArgument, match="`exact` and `executor` are for a Forest"):
        solve(lazy, exact=True)
    with pytest.raises(InvalidArgument, match="`gap` and `budget` are for a LazyForest"):
        solve(Forest.from_arrays(parent=[-1], cost=1, rewards=[1.0], law=[[1.0]]), gap=1.0)


def test_what_fails_can_be_tried_again():
    wrong = [True]

    def children(node: Node) -> list[Node]:
        return [Node(**BOX), Node(**BOX, count=0.5 if wrong[0] else 1)]

    lazy = LazyForest([ROOT], children, bound=10.0)
    with pytest.raises(InvalidForest):
        solve(lazy, budget=3)
    wrong[0] = False
    assert solve(lazy, budget=3).expanded == 3


def test_the_benchmark_runs_and_notices_wrong_answers(monkeypatch, capsys):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from benchmarks import lazy as benchmark

    assert benchmark.price(10**4) == benchmark.prices(10**4 + 1)[-1]
    benchmark.huge([8.0])
    benchmark.growth([3], 0.01)
    assert capsys.readouterr().out.count("| open ") == 1
    dearer = benchmark.prices(39) * 1.1
    monkeypatch.setattr(benchmark, "prices", lambda count: dearer[:count])
    with pytest.raises(AssertionError, match="the value is outside"):
        benchmark.growth([3], 0.01)


def test_a_root_whose_rewards_differ_from_its_childrens_is_solved_at_once():
    def kids(node):
        return [Node(law=[[1.0]], rewards=[16.0], cost=1.0)] if node.name == "0" else []

    root = Node(law=[1.0], rewards=[5.0], cost=0.5)
    found = weitzman.solve(LazyForest([root], kids, least_cost=1.0, branching=1))
    assert found.lower <= 14.5 <= found.upper
