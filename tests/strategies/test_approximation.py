"""The best line and the best set on forests, against enumeration in exact arithmetic."""

from __future__ import annotations

import math
import sys
import tracemalloc
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import random_problems
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from plain_forests import forest_of
from test_comparison import HALF, close, flipped

from weitzman import Forest, evaluate, line, solve
from weitzman.errors import InvalidArgument
from weitzman.forest import expand
from weitzman.strategies.fixed_orders import value_of_order
from weitzman.strategies.fixed_sets import (
    SetValues,
    _improved,
    best_line,
    best_nonadaptive,
    value_of_set,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import approximation as benchmark


@st.composite
def static_forests(draw: DrawFn, max_boxes: int = 6) -> reference.Problem:
    """One transition matrix and one set of rewards for all boxes; costs differ."""
    k = draw(st.integers(2, 3))
    parents = draw(random_problems.forest_shapes(1, max_boxes))
    first, law = (
        draw(random_problems.probabilities(k)),
        [draw(random_problems.probabilities(k)) for _ in range(k)],
    )
    levels = st.integers(-4, 16).map(lambda z: Fraction(z, 4))
    rewards = tuple(draw(st.lists(levels, min_size=k, max_size=k)))
    cost = [Fraction(draw(st.integers(0, 10)), 8) for _ in parents]
    rows: list[list[reference.States]] = [
        [(s,) for s in range(k)] if up else [()] for up in parents
    ]
    return reference.Problem(
        tuple(parents),
        (rewards,) * len(parents),
        tuple({s: law[s[0]] if s else first for s in row} for row in rows),
        tuple(dict.fromkeys(row, (cost[v],) * k) for v, row in enumerate(rows)),
        Fraction(0),
    )


ANY = st.one_of(random_problems.forests(max_boxes=5), static_forests())


def path(problem: reference.Problem, box: int) -> tuple[int, ...]:
    """The boxes from a root down to this one."""
    up = problem.parents[box]
    return (*path(problem, up[0]), box) if up else (box,)


def lines_of(problem: reference.Problem, depth: int = 99) -> list[tuple[int, ...]]:
    found = [path(problem, box) for box in problem.boxes]
    return [(), *(p for p in found if len(p) <= depth)]


# -- lines ---------------------------------------------------------------------------------------


@given(ANY, st.integers(1, 4))
def test_best_line_as_by_enumeration(problem, depth):
    forest = forest_of(problem)
    for most in (99, depth):
        found = best_line(forest, depth=most)
        best = max(reference.value_of_set(problem, p) for p in lines_of(problem, most))
        assert close(found.value, best)
        assert found.order in lines_of(problem, most)
        assert close(float(reference.value_of_set(problem, found.order)), best)
        assert close(found.followed, reference.value_of_order(problem, found.order))
        assert close(found.followed, value_of_order(forest, found.order))
    assert best_line(forest).value == best_line(forest, depth=99).value


def test_memory_of_boxes_with_rewards_of_their_own_grows_with_their_number():
    """Tables over all rewards would take 2 GB here."""
    rng = np.random.default_rng(0)
    n, k = 4000, 8
    forest = Forest.from_arrays(
        parent=[-1 if i % 4 == 0 else i - 1 for i in range(n)],
        cost=rng.uniform(0.01, 0.05, n),
        rewards=rng.random((n, k)),
        law=[rng.dirichlet(np.ones(k), 1 if i % 4 == 0 else k) for i in range(n)],
    )
    solution = solve(forest)
    tracemalloc.start()
    try:
        line, chosen = best_line(forest), best_nonadaptive(forest, solution=solution)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100e6
    assert forest.outside < line.value <= chosen.value + 1e-12 <= solution.value + 2e-12


@settings(max_examples=20)
@given(random_problems.forests(max_boxes=4, signals=False))
def test_losses_are_rewards_with_signs_flipped(problem):
    up, down = forest_of(problem), flipped(problem)
    assert close(best_line(up).value, -best_line(down).value)
    assert close(best_line(up).followed, -best_line(down).followed)
    assert close(best_nonadaptive(up).value, -best_nonadaptive(down).value)


def static_line(length: int, cost: float = 0.01) -> Forest:
    sticky = np.array([[0.9, 0.1], [0.1, 0.9]])
    return line((sticky[0], sticky), length=length, rewards=[0, 1], cost=cost)


def test_a_line_is_followed_no_further_than_can_pay():
    # t boxes earn 1 - 0.9^t - 0.01 t; no more can earn the best of it unless 1 - 0.01 t exceeds it
    short, long = best_line(static_line(60)), best_line(static_line(3000))
    best = max(1 - 0.9**t - 0.01 * t for t in range(60))
    assert long.looked_at == short.looked_at == math.floor((1 - best) / 0.01)
    assert long.value == pytest.approx(short.value, abs=1e-12)
    assert long.value == pytest.approx(best, abs=1e-12)
    assert len(long.order) == 22 == round(math.log(0.1) / math.log(0.9))


def test_of_copies_a_line_takes_one():
    forest = Forest.from_arrays(
        parent=[-1, 0], cost=[1, 1], rewards=[0, 10], count=[3, 10**6],
        law=[[0.5, 0.5], [[0.5, 0.5]] * 2],
    )  # fmt: skip
    few = Forest.from_arrays(
        parent=[-1, 0], cost=[1, 1], rewards=[0, 10], count=[3, 2],
        law=[[0.5, 0.5], [[0.5, 0.5]] * 2],
    )  # fmt: skip
    found, same = best_line(forest), best_line(expand(few))
    assert (found.value, found.followed) == (same.value, same.followed) == (5.5, 6.0)


def test_a_line_may_be_empty_or_must_not():
    poor = Forest.from_arrays(parent=[-1], cost=[9], rewards=[0, 10], law=[[0.5, 0.5]])
    found = best_line(poor)
    assert (found.boxes, found.value, found.followed) == ((), 0, 0)
    must = Forest.from_arrays(
        parent=[-1, -1], cost=[9, 8], rewards=[0, 10], law=[[0.5, 0.5]] * 2, outside=-math.inf
    )
    assert (best_line(must).boxes, best_line(must).value) == (("1",), -3)


def test_a_line_needs_a_depth_from_one_on():
    for wrong in (0, -1, 1.5):
        with pytest.raises(InvalidArgument, match=f"from 1 on, but it is {wrong}"):
            best_line(static_line(3), depth=wrong)
    with pytest.raises(InvalidArgument, match="needs a Forest, but got a Solution"):
        best_line(solve(static_line(3)))


# -- sets ----------------------------------------------------------------------------------------


@given(static_forests())
def test_best_set_of_static_forests_as_by_enumeration(problem):
    found = best_nonadaptive(forest_of(problem))
    assert found.exact
    assert close(found.value, reference.best_nonadaptive(problem)[0])


@settings(max_examples=40)
@given(ANY)
def test_an_improved_set_is_a_closed_set_and_no_worse_than_a_line(problem):
    values = SetValues(forest_of(problem))
    members = _improved(values, frozenset(), 2000)
    value = reference.value_of_set(problem, members)  # refuses sets that are not closed
    assert close(values.value(members), value) or not members
    assert float(value) <= float(reference.best_nonadaptive(problem)[0]) + 1e-9


def test_a_larger_forest_is_improved_and_has_a_bound_below_the_optimum():
    rng = np.random.default_rng(3)
    n = 40
    forest = Forest.from_arrays(
        parent=[-1] * n, cost=rng.uniform(0.3, 0.6, n), rewards=rng.uniform(0, 10, (n, 3)),
        law=rng.dirichlet(np.ones(3), n),
    )  # fmt: skip
    found, solution = best_nonadaptive(forest), solve(forest)
    assert found.value <= found.bound < solution.value - 0.01
    short = best_nonadaptive(forest, limit=1)
    assert not short.exact
    assert short.value <= found.value
    assert found.value <= short.bound <= solution.value
    often = evaluate(solution).opened
    for share in (0.05, 0.2, 0.5):  # sets that the optimal policy is likely to open
        assert value_of_set(forest, np.flatnonzero(often > share)) <= found.value + 1e-12


def test_a_door_comes_and_goes_with_the_room_behind_it():
    door = {"parent": [-1, 0], "cost": [1, 1], "rewards": [[0], [0, 10]]}
    forest = Forest.from_arrays(**door, law=[[1], [[0.5, 0.5]]])
    assert _improved(SetValues(forest), frozenset(), 10) == {0, 1}
    dear = Forest.from_arrays(**door | {"cost": [1, 4.5]}, law=[[1], [[0.5, 0.5]]])
    assert _improved(SetValues(dear), frozenset([0, 1]), 10) == set()


# -- the ratio -----------------------------------------------------------------------------------


def test_the_counterexample_to_the_promised_half():
    forest = Forest.from_arrays(**HALF)
    optimum, chosen = evaluate(solve(forest)), best_nonadaptive(forest)
    assert optimum.value == pytest.approx(0.078002)
    assert chosen.exact
    assert chosen.value == best_line(forest).value == pytest.approx(0.0001)
    assert chosen.value < optimum.reward / 2 - optimum.spend == pytest.approx(0.029001)


def star(leaves: int) -> reference.Problem:
    """A root and boxes right behind it, all independent, under one matrix with equal rows."""
    row = ["0.9", "0.1"]
    return reference.from_nested(
        parent=[-1] + [0] * leaves,
        cost=["0.001"] * (leaves + 1),
        rewards=[0, 1],
        law=[row] + [[row, row]] * leaves,
    )


def test_a_line_falls_short_of_half_even_where_rewards_are_independent():
    small = star(4)
    for p in lines_of(small):
        assert reference.value_of_set(small, p) <= Fraction("0.188")  # 1 - 0.9^2 - 0.002
    forest = forest_of(star(40))
    optimum, line, missed = evaluate(solve(forest)), best_line(forest), 0.9**41
    assert line.value == pytest.approx(0.188)
    assert optimum.value == pytest.approx((1 - missed) * (1 - 0.001 / 0.1), abs=1e-8)
    promised = optimum.reward / 2 - optimum.spend
    assert promised == pytest.approx((1 - missed) * (0.5 - 0.01), abs=1e-8)
    assert line.value < 0.4 * promised
    # a set reaches it, as Boodaghians et al. prove for independent rewards
    assert best_nonadaptive(forest).value > promised


@settings(max_examples=40)
@given(ANY)
def test_plans_earn_no_more_than_the_optimum(problem):
    forest = forest_of(problem)
    line, chosen = best_line(forest), best_nonadaptive(forest)
    optimum = float(reference.optimal_value(problem))
    assert line.value <= line.followed + 1e-9 <= optimum + 2e-9
    assert line.value <= chosen.value + 1e-9 <= optimum + 2e-9
    assert close(chosen.value, reference.best_nonadaptive(problem)[0])


def test_a_set_of_a_large_static_forest_has_a_bound():
    rng = np.random.default_rng(0)
    n = 3000
    parent = [-1, -1, *((np.arange(2, n) - 2) // 3)]
    law = 0.6 * np.eye(4) + 0.4 * rng.dirichlet(np.ones(4), 4)
    forest = Forest.from_arrays(
        parent=parent, cost=rng.uniform(0.01, 0.05, n), rewards=[0, 0.1, 0.4, 1],
        law=[law[0] if p < 0 else law for p in parent],
    )  # fmt: skip
    solution = solve(forest)
    line, chosen = best_line(forest), best_nonadaptive(forest, limit=50, solution=solution)
    assert not chosen.exact
    assert 0 < line.value <= chosen.value < chosen.bound <= solution.value + solution.gap
    assert chosen.value == pytest.approx(
        value_of_set(chosen.forest, np.flatnonzero(chosen.copies).tolist())
    )


def test_the_benchmark_runs_and_notices_a_wrong_answer(monkeypatch):
    monkeypatch.setattr(benchmark, "SHAPES", ((3, 3), (2, 4)))
    found = benchmark.table(quick=True)
    assert all(len(row) == len(found.head) for row in found.rows)
    monkeypatch.setattr(benchmark, "walk", lambda forest: 0.5)
    with pytest.raises(AssertionError):
        benchmark.compare(3, 3, (0.01, 0.05), 1)
