"""The rivals that people use: a list with skipping, and ranking by expected net value."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from random_problems import forests
from reference import to_arrays

import weitzman
from weitzman.strategies.thumb_rules import (
    by_expected_value,
    by_situation,
    priority_list,
    work_through,
)


def exact_value(solution, order):
    """The value of going through a list once, by summing over all that can happen."""
    f = solution.forest

    def rest(k, best, shown):
        if k == len(order):
            return f.sign * best
        v = order[k]
        up = int(f.parent[v])
        if up >= 0 and up not in shown:
            return rest(k + 1, best, shown)
        s = 0 if up < 0 else shown[up]
        if f.sign * solution.indices(v)[s] <= best:
            return rest(k + 1, best, shown)
        law, cost = f.laws[int(f.law[v])][s], f.costs[int(f.cost[v])]
        total = 0
        for y in np.flatnonzero(law).tolist():
            price = Fraction(cost[s if len(cost) > 1 else 0, y if cost.shape[1] > 1 else 0])
            reward = f.sign * f.rewards[int(f.reward[v])][0][y]
            then = rest(k + 1, max(best, reward), {**shown, v: y})
            total += Fraction(law[y]) * (Fraction(then) - f.sign * price)
        return total

    return rest(0, f.sign * f.outside, {})


@given(forests())
@settings(max_examples=25)
def test_a_list_with_skipping_is_played_as_it_is_defined(problem):
    full = weitzman.forest.expand(weitzman.Forest.from_arrays(**to_arrays(problem)))
    if len(full) > 7 or not np.isfinite(full.outside):
        return
    solution = weitzman.solve(full)
    order = priority_list(solution)
    place = {v: i for i, v in enumerate(order.tolist())}
    parents = solution.forest.parent.tolist()
    assert all(up < 0 or place[up] < place[v] for v, up in enumerate(parents))
    wanted = float(exact_value(solution, order.tolist()))
    assert wanted <= solution.value + 1e-9 * (1 + abs(solution.value))
    found = by_situation(solution, "priority_list", 1)
    assert found is None or found.value == pytest.approx(wanted, abs=1e-9)
    payoff = work_through(solution, order, 20_000, 1).payoff
    assert abs(payoff.mean - wanted) <= 6 * payoff.standard_error + 1e-9


def stages(chances=(0.3, 0.3, 0.3)):
    """Programs of two stages; the second pays if the first went well."""
    n = len(chances)
    return weitzman.Forest.from_arrays(
        parent=[-1 if i % 2 == 0 else i - 1 for i in range(2 * n)],
        cost=[10, 200] * n,
        rewards=[[-np.inf, -np.inf], [0, 1000]] * n,
        law=[x for p in chances for x in ([p, 1 - p], [[0.4, 0.6], [1, 0]])],
    )


def test_a_list_with_skipping_beats_an_order_without_it_where_stages_fail():
    found = weitzman.compare(stages(), episodes=20_000)
    worked, order = found["priority_list"], found["fixed_order"]
    solution = weitzman.solve(stages())
    exact = float(exact_value(solution, priority_list(solution).tolist()))
    assert exact == pytest.approx(solution.value)  # all programs are alike: the list loses nothing
    assert exact > 1.2 * order.bound  # an order that never skips pays for what has failed
    assert (worked.value, worked.error) == (pytest.approx(exact), 0.0)


def test_expected_net_value_by_hand():
    policy = by_expected_value(stages((0.5,)))
    launch = 0.6 * 1000 - 200
    assert policy.index.tolist() == pytest.approx([0.5 * launch - 10, launch, -200])


def test_expected_net_value_is_measured_from_the_outside_option():
    losses = weitzman.Forest.from_arrays(
        parent=[-1, -1], cost=[1, 0.5], rewards=[[2, 8], [9]], law=[[0.5, 0.5], [1]],
        minimize=True, outside=10,
    )  # fmt: skip
    # the index of a policy is to be maximized: spending 6 or 9.5 in all
    assert by_expected_value(losses).index.tolist() == pytest.approx([-6, -9.5])
    gains = weitzman.Forest.from_arrays(
        parent=[-1, -1], cost=[1, 0.5], rewards=[[10, 4], [3]], law=[[0.5, 0.5], [1]], outside=2
    )
    assert by_expected_value(gains).index.tolist() == pytest.approx([6, 2.5])


@given(forests(outside="any"))
@settings(max_examples=25)
def test_expected_net_values_move_with_all_rewards(problem):
    arrays = to_arrays(problem)
    if not np.isfinite(arrays["outside"]):
        return
    here = weitzman.Forest.from_arrays(**arrays)
    moved = arrays | {
        "rewards": [[r + 3.0 for r in row] for row in arrays["rewards"]],
        "outside": arrays["outside"] + 3.0,
    }
    there = weitzman.Forest.from_arrays(**moved)
    a, b = by_expected_value(here).index, by_expected_value(there).index
    assert b == pytest.approx(a + 3.0)
