"""Graphs of boxes: the exhaustive optimum against the oracle, spanning forests between bounds."""

from __future__ import annotations

import numpy as np
import pytest
import random_problems
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_forests import PAPER, forest_of, random_forest
from random_problems import both_or_nothing

from weitzman import Forest, solve
from weitzman.errors import InvalidArgument, InvalidForest, TooLarge
from weitzman.strategies.dags import Dag
from weitzman.strategies.enumeration import count_situations, exhaustive
from weitzman.strategies.spanning import spanning_policy


def table(problem: reference.Problem, box: int, rows: dict) -> np.ndarray:
    shape = [len(problem.rewards[p]) for p in (*problem.parents[box], box)]
    out = np.empty(shape)
    for states, row in rows.items():
        out[states] = [float(x) for x in row]
    return out


def dag_of(problem: reference.Problem, sign: int = 1) -> Dag:
    """The problem as a graph; with sign -1, as one of losses."""
    none = -sign * np.inf
    return Dag(
        parents=problem.parents,
        cost=[table(problem, i, rows) for i, rows in enumerate(problem.cost)],
        law=[table(problem, i, rows) for i, rows in enumerate(problem.law)],
        rewards=[[none if r is None else sign * float(r) for r in row] for row in problem.rewards],
        outside=sign * float(problem.floor),
        minimize=sign < 0,
    )


def large(n: int, seed: int = 1) -> Dag:
    rng = np.random.default_rng(seed)
    parents = [
        rng.choice(i, size=min(i, rng.integers(0, 3)), replace=False).tolist() for i in range(n)
    ]
    return Dag(
        parents=parents,
        cost=rng.uniform(0.01, 0.1, n),
        rewards=np.linspace(0, 1, 3),
        law=[rng.dirichlet([0.6, 0.6, 0.2], [3] * len(p)) for p in parents],
    )


# -- the optimum -------------------------------------------------------------------------------


@given(random_problems.dags(max_boxes=5))
def test_optimum_as_by_the_oracle(problem):
    found = exhaustive(dag_of(problem))
    assert found.value == pytest.approx(float(reference.optimal_value(problem)), abs=1e-10)
    assert found.situations <= count_situations(dag_of(problem))


@settings(max_examples=40)
@given(random_problems.dags(max_boxes=4))
def test_the_first_box_begins_an_optimal_strategy(problem):
    found = exhaustive(dag_of(problem))
    oracle, start = reference._Adaptive(problem), (None,) * len(problem.parents)
    best = oracle.value(start)[0]
    if found.first_box is None:
        assert best == problem.floor
    else:
        assert oracle.opening(start, int(found.first_box))[0] == best > problem.floor


@settings(max_examples=20)
@given(random_problems.dags(max_boxes=4))
def test_losses_are_rewards_with_signs_flipped(problem):
    up, down = exhaustive(dag_of(problem)), exhaustive(dag_of(problem, -1))
    assert (up.value, up.first_box, up.situations) == (-down.value, down.first_box, down.situations)
    spans = spanning_policy(dag_of(problem)), spanning_policy(dag_of(problem, -1))
    assert spans[0].value == pytest.approx(-spans[1].value, abs=1e-10)
    assert spans[0].bound == pytest.approx(-spans[1].bound, abs=1e-10)
    assert spans[1].bound <= spans[1].value + 1e-10


@settings(max_examples=40)
@given(random_problems.forests(max_boxes=5))
def test_forests_as_by_solving(problem):
    forest = forest_of(problem)
    assert exhaustive(forest).value == pytest.approx(solve(forest, exact=True).value, abs=1e-10)


def test_cases_by_hand():
    assert exhaustive(dag_of(both_or_nothing())).value == 5.5
    found = exhaustive(Forest.from_arrays(**PAPER, names=["A", "B", "C"]))
    assert (found.value, found.first_box) == (pytest.approx(94.325), "A")
    twice = exhaustive(Forest.from_arrays(**PAPER, count=[2, 1, 1]))
    assert twice.value == pytest.approx(solve(Forest.from_arrays(**PAPER, count=[2, 1, 1])).value)


def test_what_is_too_large_is_refused_with_its_size():
    with pytest.raises(TooLarge, match=r"after 100 situations .* up to 1\.2e\+22") as caught:
        exhaustive(large(40), limit=100)
    assert caught.value.situations == pytest.approx(1.2e22, rel=0.1)
    line = Dag(
        parents=[[], *([i] for i in range(2999))], cost=np.ones(3000), rewards=[0, 1e6],
        law=[[0.5, 0.5], *[np.eye(2)] * 2999],
    )  # fmt: skip
    with pytest.raises(TooLarge):  # deeper than Python can go
        exhaustive(line)


@settings(max_examples=30)
@given(random_problems.dags(max_boxes=5), st.integers(1, 50))
def test_the_limit_is_kept(problem, limit):
    dag = dag_of(problem)
    states = exhaustive(dag).situations
    if states <= limit:
        assert exhaustive(dag, limit=limit).situations == states
    else:
        with pytest.raises(TooLarge):
            exhaustive(dag, limit=limit)


# -- between bounds ----------------------------------------------------------------------------


@given(random_problems.dags(max_boxes=5))
def test_the_optimum_lies_between_the_bounds(problem):
    found, best = spanning_policy(dag_of(problem)), float(reference.optimal_value(problem))
    assert found.exact
    assert (found.error, found.bound_error) == (0, 0)
    assert found.value <= best + 1e-10
    assert best <= found.bound + 1e-10


@settings(max_examples=40)
@given(random_problems.forests(max_boxes=5))
def test_on_a_forest_the_spanning_policy_is_optimal(problem):
    forest = forest_of(problem)
    found = spanning_policy(Dag.of(forest))
    assert found.value == pytest.approx(solve(forest, exact=True).value, abs=1e-10)
    assert found.parent == tuple(forest.parent.tolist())


def test_the_spanning_policy_opens_what_a_box_needs():
    found = spanning_policy(dag_of(both_or_nothing()))
    assert (found.value, found.bound) == (
        5.5,
        6.5,
    )  # knowing all, the coins are left when they differ
    assert found.parent == (-1, -1, 0)


def test_what_the_other_parents_cost_counts():
    sure = [[[0, 1]] * 2] * 2
    dag = Dag(
        parents=[[], [], [0, 1]], cost=[1, 100, 1], rewards=[0, 10], law=[[1, 0], [1, 0], sure]
    )  # fmt: skip
    assert spanning_policy(dag).value == 0


def test_the_most_informative_parent_is_kept():
    noise, copy = np.full((2, 2, 2), 0.5), np.zeros((2, 2, 2))
    copy[:, 0, 0] = copy[:, 1, 1] = 1  # as the second parent
    dag = Dag(
        parents=[[], [], [0, 1]], cost=[1, 1, 1], rewards=[0, 10],
        law=[[0.5, 0.5], [0.5, 0.5], 0.5 * noise + 0.5 * copy],
    )  # fmt: skip
    assert spanning_policy(dag).parent == (-1, -1, 1)


def test_drawn_worlds_agree_with_all_worlds():
    dag = large(9)
    every, some = spanning_policy(dag), spanning_policy(dag, worlds=15_000, rng=1)
    assert every.exact
    assert not some.exact
    assert abs(some.bound - every.bound) < 4 * some.bound_error
    assert abs(some.value - every.value) < 4 * some.error
    low, high = some.interval(0.999)
    assert low < exhaustive(dag).value < high
    assert "bound_error=" in repr(some)


def test_larger_graphs_have_bounds():
    found = spanning_policy(large(40), worlds=5000)
    low, high = found.interval()
    assert 0 < low < high < 1


# -- what is refused ---------------------------------------------------------------------------

FAIR = [0.5, 0.5]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parents": [[], [5]]}, r"number of a box \(0 to 1\), but box '1' has \(5,\)"),
        ({"parents": [[1], [0]]}, "not form a cycle, but '0'"),
        ({"parents": [[], [0, 0]]}, r"parents must differ, but box '1' has \(0, 0\)"),
        ({"parents": [[], []]}, r"law of box '1' must have shape \(2,\)"),
        ({"cost": [1]}, "`cost` must have one entry per box, but there are 1 for 2"),
        ({"cost": [1, [1, 2, 3]]}, r"cost .* that of box '1' has shape \(3,\)"),
        ({"cost": [1, -1]}, "not negative, but box '1' has -1"),
        ({"cost": [1, "x"]}, "must be numbers, but got 'x'"),
        ({"law": [FAIR, [FAIR, [0.5, 0.4]]]}, "law of box '1' has 0.4, and a sum .* by 0.1"),
        ({"rewards": [[0, 1], [0, np.nan]]}, "finite numbers .* those of '1'"),
        ({"minimize": True}, "minimizing needs an outside option"),
    ],
)
def test_nonsense_is_refused(change, message):
    arrays = {"parents": [[], [0]], "cost": [1, 1], "rewards": [0, 1], "law": [FAIR, [FAIR, FAIR]]}
    assert len(Dag(**arrays)) == 2
    with pytest.raises(InvalidForest, match=message):
        Dag(**arrays | change)


def test_other_refusals():
    with pytest.raises(InvalidForest, match="at least one box"):
        Dag(parents=[], cost=[], rewards=[], law=[])
    with pytest.raises(InvalidArgument, match="`worlds` must be at least 2"):
        spanning_policy(large(3), worlds=1)
    assert "3 boxes" in repr(large(3))


def test_costs_may_depend_on_parents_and_on_what_is_found():
    forest = random_forest(np.random.default_rng(3), 6)
    dag = Dag.of(forest)
    assert exhaustive(dag).value == pytest.approx(solve(forest).value)
    by_state = Dag(
        parents=[[], [0]], cost=[[1, 3], [[0, 2], [4, 4]]], rewards=[0, 10],
        law=[FAIR, [FAIR, FAIR]],
    )  # fmt: skip
    assert by_state.mean_cost(0) == 2
    assert by_state.mean_cost(1).tolist() == [1, 4]
