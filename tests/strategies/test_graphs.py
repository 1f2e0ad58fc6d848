"""Graphs of boxes: the exhaustive optimum against the oracle."""

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
from weitzman.strategies.graphs import Dag, count_situations, exhaustive


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


def test_what_is_too_large_is_rejected_with_its_size():
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
def test_nonsense_is_rejected(change, message):
    arrays = {"parents": [[], [0]], "cost": [1, 1], "rewards": [0, 1], "law": [FAIR, [FAIR, FAIR]]}
    assert len(Dag(**arrays)) == 2
    with pytest.raises(InvalidForest, match=message):
        Dag(**arrays | change)


def test_other_rejections():
    with pytest.raises(InvalidForest, match="at least one box"):
        Dag(parents=[], cost=[], rewards=[], law=[])
    with pytest.raises(InvalidArgument, match="needs a Dag or a Forest, but got a list"):
        exhaustive([])
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
