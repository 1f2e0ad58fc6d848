"""Endless lines: exact twin, long finite lines, certificates, symmetries, degenerate cases."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from exact_chain import ExactLine, as_floats
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import probabilities

from weitzman.chains.chain import Chain
from weitzman.chains.endless import fixed_point, probe_until_top, solve_line, value_together
from weitzman.engine.solver import solve
from weitzman.errors import InvalidArgument, InvalidForest, UnknownName
from weitzman.forest.model import Forest

SLOT = [[0.5, 0.5], [0.5, 0.5]]


@st.composite
def exact_lines(draw, *, free=False, signals=False, by_state=False):
    """A law, rewards with ties, and costs; all exact as floats."""
    k = draw(st.integers(1, 4))
    law = [list(draw(probabilities(k))) for _ in range(k)]
    reward = st.integers(-8, 24).map(lambda z: Fraction(z, 4))
    rewards = draw(st.lists(reward | st.none() if signals else reward, min_size=k, max_size=k))
    if all(r is None for r in rewards):
        rewards[0] = Fraction(1)
    price = st.integers(0 if free else 1, 12).map(lambda z: Fraction(z, 16))
    cost = [draw(price) for _ in range(k)] if by_state else [draw(price)] * k
    return law, rewards, cost


def line_of(law, rewards, cost):
    numbers = [-np.inf if r is None else float(r) for r in rewards]
    return solve_line(Chain(as_floats(law), numbers), [float(c) for c in cost])


def random_line(rng, k, spread=0.5, levels=None):
    law = rng.dirichlet(np.full(k, spread), k)
    rewards = rng.random(k) * 10 if levels is None else rng.integers(0, levels, k) * 1.0
    return Chain(law, rewards)


def finite_line(chain, first, cost, boxes, **options):
    """A static line of so many boxes, as an ordinary forest."""
    return Forest.from_arrays(
        parent=np.arange(boxes) - 1,
        cost=np.full(boxes, float(cost)),
        rewards=chain.rewards,
        law=[np.asarray(first), *([chain.law] * (boxes - 1))],
        **options,
    )


# -- an exact twin --------------------------------------------------------------------------------


def assert_same_as_twin(law, rewards, cost):
    line, twin = line_of(law, rewards, cost), ExactLine(law, rewards, cost)
    points = {float(b) for b in line.breakpoints} | {-3.0, 1.3, 7.0}
    for s in range(len(law)):
        index = twin.index(s)
        if index is None:
            assert line.index[s] == -np.inf
        else:
            assert line.index[s] == pytest.approx(float(index), abs=1e-13)
        for y in points:
            assert line.phi(y, s) == pytest.approx(float(twin.phi(Fraction(y), s)), abs=1e-13)


@given(exact_lines())
def test_same_as_exact_twin(case):
    assert_same_as_twin(*case)


@pytest.mark.parametrize("seed", range(20))
def test_same_as_exact_twin_on_stiff_chains(seed):
    """Probabilities and costs over many orders of magnitude: only the last digits may differ."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 7))
    weight = rng.integers(0, 100, (k, k)) * 2.0 ** rng.choice([0, 0, -10, -25, -40], (k, k))
    weight += np.eye(k) / 4
    chain = Chain(weight / weight.sum(axis=1, keepdims=True), rng.integers(0, 6, k))
    cost = 2.0 ** -rng.choice([1, 5, 20, 35, 50])
    law = [[Fraction(p) for p in row] for row in chain.law.tolist()]
    law = [[p / sum(row) for p in row] for row in law]
    twin = ExactLine(law, [Fraction(r) for r in chain.rewards.tolist()], [Fraction(cost)] * k)
    line = solve_line(chain, cost)
    assert line.index == pytest.approx([float(twin.index(s)) for s in range(k)], abs=4e-15)
    for y in [*line.breakpoints, -1.0]:
        worth = [float(twin.phi(Fraction(float(y)), s)) for s in range(k)]
        assert line.phi(y) == pytest.approx(worth, abs=4e-15)


@settings(max_examples=40)
@given(exact_lines(signals=True, by_state=True))
def test_same_as_exact_twin_with_signals_and_costs_by_state(case):
    assert_same_as_twin(*case)


@given(exact_lines(free=True, signals=True))
def test_free_line_is_worth_the_best_that_follows(case):
    law, rewards, _ = case
    line = line_of(law, rewards, [Fraction(0)] * len(law))
    reach = np.array([[p > 0 for p in row] for row in law])
    for _ in law:
        reach = reach | (reach.astype(int) @ reach.astype(int) > 0)
    numbers = np.array([-np.inf if r is None else float(r) for r in rewards])
    assert line.index.tolist() == [numbers[row].max() for row in reach]
    start = line.start(np.full(len(law), 1 / len(law)))
    assert start.index == numbers.max()
    worth = [line.phi(max(r, -9.0), s) for s, r in enumerate(numbers)]
    assert start.value_at(-9.0) == pytest.approx(np.mean(worth), abs=1e-13)


@settings(max_examples=30)
@given(exact_lines(free=True))
def test_free_line_has_the_law_of_the_maximum(case):
    law, rewards, _ = case
    line = line_of(law, rewards, [Fraction(0)] * len(law))
    points, tails = line.breakpoints, line.tails
    for j, b in enumerate(points):
        hit = np.flatnonzero(line.chain.rewards >= b)
        missed = line.chain.miss(hit, 20_000) if len(hit) else 1.0
        assert tails[:, j] == pytest.approx(1 - missed, abs=1e-12)


@settings(max_examples=40)
@given(exact_lines(free=True, by_state=True))
def test_mixed_free_and_dear_states_as_the_limit_of_finite_lines(case):
    law, rewards, cost = case
    line = line_of(law, rewards, cost)
    y = np.union1d(line.breakpoints, [-2.0, 0.9])
    rank = np.maximum(np.arange(len(y))[:, None], np.searchsorted(y, line.chain.rewards))
    table = np.repeat(y[:, None], len(law), axis=1)
    for _ in range(3000):
        went = np.take_along_axis(table, rank, axis=0) @ line.chain.law.T - line.cost
        table = np.maximum(y[:, None], went)
    assert line.phi(y) == pytest.approx(table, abs=1e-9)


# -- finite lines and the fixed point ------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_same_as_a_long_finite_line(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 7))
    chain, cost = random_line(rng, k, levels=6 if seed % 2 else None), rng.uniform(0.2, 2)
    first = rng.dirichlet(np.ones(k))
    line = solve_line(chain, cost)
    forest = finite_line(chain, first, cost, 400, outside=1.0)
    solution = solve(forest, tolerance=1e-15)
    assert line.value_at(first, outside=1.0) == pytest.approx(solution.value, abs=1e-13)
    assert line.index == pytest.approx(solution.indices(1), abs=1e-13)
    assert line.start(first).index == pytest.approx(solution.index(0), abs=1e-13)


@pytest.mark.parametrize("seed", range(8))
def test_same_as_the_fixed_point(seed):
    rng = np.random.default_rng(seed)
    chain, cost = random_line(rng, 12, spread=3.0), rng.uniform(0.05, 1)
    line = solve_line(chain, cost)
    found = fixed_point(chain, cost, 1e-15, levels=line.index)
    assert line.phi(found.levels) == pytest.approx(found.table, abs=2e-14)
    below = fixed_point(chain, cost, 1e-14, levels=line.index - 1e-6)
    for s, index in enumerate(line.index):  # going on pays below the index, and not at it
        assert found.table[np.searchsorted(found.levels, index), s] <= index + 1e-13
        y = index - 1e-6
        assert below.table[np.searchsorted(below.levels, y), s] > y


@given(st.integers(0, 2**32), st.sampled_from([1e-2, 1e-5, 1e-9]))
def test_error_of_the_fixed_point_is_bounded(seed, tolerance):
    rng = np.random.default_rng(seed)
    chain = random_line(rng, int(rng.integers(2, 6)), spread=1.0)
    found = fixed_point(chain, 0.3, tolerance)
    off = np.abs(found.table - solve_line(chain, 0.3).phi(found.levels)).max()
    assert off <= found.error + 1e-13
    assert found.error <= tolerance * np.ptp(chain.rewards)
    top = chain.law[:, chain.top].sum(axis=1)
    assert found.contraction == pytest.approx(1 - np.delete(top, chain.top).min(), abs=1e-15)


def test_each_step_of_the_fixed_point_is_one_more_box():
    rng = np.random.default_rng(3)
    chain, first = random_line(rng, 4, spread=1.0), rng.dirichlet(np.ones(4))
    found = fixed_point(chain, 0.5, 1e-3)
    worth = found.table[np.searchsorted(found.levels, chain.rewards), np.arange(4)]
    solution = solve(finite_line(chain, first, 0.5, found.steps + 1, outside=-5.0), exact=True)
    assert first @ worth - 0.5 == pytest.approx(solution.value, abs=1e-13)


def test_fixed_point_needs_the_top_in_reach():
    chain = Chain([[0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0, 1]], [0, 1, 2])
    with pytest.raises(InvalidArgument, match="from state 0 it is not"):
        fixed_point(chain, 0.1)
    assert solve_line(chain, 0.1).index == pytest.approx([1.4, 1.8, 1.9], abs=1e-15)
    with pytest.raises(InvalidArgument, match="`tolerance` must be 0 or more"):
        fixed_point(chain, 0.1, -1.0)


def test_fixed_point_needs_no_way_from_the_top_to_itself():
    """The paper's factor then bounds the other states only; the error must count this one too."""
    chain = Chain([[0.1, 0.9], [1.0, 0.0]], [0, 4])
    found = fixed_point(chain, 0.5, 0.1)
    off = np.abs(found.table - solve_line(chain, 0.5).phi(found.levels)).max()
    assert 0 < off <= found.error + 1e-14 <= 0.4
    assert found.contraction == pytest.approx(0.1, abs=1e-15)


# -- certificates --------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "cost"), [(40, 0.3), (40, 1e-4), (150, 0.02)])
def test_indices_balance_gain_and_cost(k, cost):
    line = solve_line(random_line(np.random.default_rng(k), k), cost)
    points, tails = line.breakpoints, line.tails
    assert (np.diff(points) > 0).all()
    assert (np.diff(tails, axis=1) <= 1e-15).all()
    reached = np.where(line.chain.rewards[:, None] >= points, 1.0, tails)
    uncapped = line.chain.law @ reached  # the tails of what the next box is worth
    for s in range(k):
        over = np.diff(np.maximum(points, line.index[s]))
        assert uncapped[s, 1:] @ over == pytest.approx(cost, abs=1e-13)
        capped = np.where(points <= line.index[s], uncapped[s], 0)
        assert tails[s] == pytest.approx(capped, abs=1e-14)


@pytest.mark.parametrize("seed", range(6))
def test_stopping_by_the_indices_earns_the_value(seed):
    """Evaluates the policy itself on pairs (best so far, state), with no use of the theory."""
    rng = np.random.default_rng(seed)
    chain, cost = random_line(rng, 6, levels=5), 0.2
    line = solve_line(chain, cost)
    levels = np.unique(np.append(chain.rewards, 0.0))
    k, m = len(chain), len(levels)
    matrix, right = np.eye(k * m), np.repeat(levels, k)
    for at, best in enumerate(levels):
        for s in range(k):
            if line.index[s] > best:
                right[at * k + s] = -cost
                for y in range(k):
                    now = np.searchsorted(levels, max(best, chain.rewards[y]))
                    matrix[at * k + s, now * k + y] -= chain.law[s, y]
    earned = np.linalg.solve(matrix, right).reshape(m, k)
    assert line.phi(levels) == pytest.approx(earned, abs=1e-12)


@pytest.mark.parametrize("rare", [1e-3, 1e-9, 1e-14])
def test_rare_jumps_and_tiny_costs_lose_no_digits(rare):
    """Closed form: from 0, jump with probability p at cost c a box, so the index is 1 - c / p."""
    line = solve_line(Chain([[1 - rare, rare], [rare, 1 - rare]], [0, 1]), rare / 4)
    p = line.chain.law[0, 1]
    assert line.index[0] == pytest.approx(1 - rare / 4 / p, abs=1e-15)
    assert line.index[1] == pytest.approx(1 - rare / 4 / line.chain.law[1, 1], abs=1e-15)
    assert line.phi(-1.0, 0) == pytest.approx(0.75, abs=1e-15)


def test_long_ladder_against_its_closed_form():
    """Up one step with probability p, or stay: the top is k - 1 - s steps away, c / p each."""
    k, p, cost = 60, 1e-6, 1e-8
    law = (1 - p) * np.eye(k) + p * np.eye(k, k=1)
    law[-1, -1] = 1
    line = solve_line(Chain(law, [0] * (k - 1) + [5]), cost)
    steps = cost / line.chain.law[0, 1] * np.arange(k - 1, 0, -1)
    assert line.index[:-1] == pytest.approx(5 - steps, abs=1e-14)
    assert line.index[-1] == pytest.approx(5 - cost, abs=1e-15)


# -- symmetries ----------------------------------------------------------------------------------


@given(st.integers(0, 2**32), st.floats(-50, 50), st.sampled_from([0.25, 4.0]))
def test_shift_scale_and_relabel(seed, shift, scale):
    rng = np.random.default_rng(seed)
    chain = random_line(rng, int(rng.integers(1, 8)), levels=4 if seed % 2 else None)
    index = solve_line(chain, 0.3).index
    moved = solve_line(Chain(chain.law, scale * chain.rewards + shift), scale * 0.3).index
    assert moved == pytest.approx(scale * index + shift, abs=1e-12)
    new = rng.permutation(len(chain))
    named = solve_line(Chain(chain.law[np.ix_(new, new)], chain.rewards[new]), 0.3).index
    assert named == pytest.approx(index[new], abs=1e-13)


@given(st.integers(0, 2**32))
def test_splitting_a_state_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    chain = random_line(rng, 4, levels=5)
    law = np.column_stack([chain.law[:, :3], 0.25 * chain.law[:, 3], 0.75 * chain.law[:, 3]])
    twins = solve_line(Chain(law[[0, 1, 2, 3, 3]], chain.rewards[[0, 1, 2, 3, 3]]), 0.3)
    assert twins.index == pytest.approx(solve_line(chain, 0.3).index[[0, 1, 2, 3, 3]], abs=1e-13)


def test_dearer_is_lower():
    chain = random_line(np.random.default_rng(1), 8)
    by_cost = [solve_line(chain, c).index for c in (0, 0.01, 0.1, 1.0, 10.0, 100.0)]
    assert (np.diff(by_cost, axis=0) <= 0).all()


# -- degenerate cases ----------------------------------------------------------------------------


def test_one_state():
    line = solve_line(Chain([[1.0]], [3.0]), 0.5)
    assert line.index.tolist() == [2.5]
    assert (line.value_at(0), line.value_at(0, outside=4), line.value_at(0, -math.inf)) == (
        2.5,
        4.0,
        2.5,
    )
    assert solve_line(Chain([[1.0]], [3.0]), 0).index.tolist() == [3.0]


def test_equal_rewards():
    line = solve_line(Chain(SLOT, [7, 7]), 2.0)
    assert line.index.tolist() == [5.0, 5.0]
    assert probe_until_top(line.chain, 2.0)


def test_absorbing_states():
    """0 ends in 1 (poor) or 2 (rich); once there, nothing new comes."""
    line = solve_line(Chain([[0.5, 0.25, 0.25], [0, 1, 0], [0, 0, 1]], [0, 1, 9]), 0.5)
    assert line.index == pytest.approx([7.0, 0.5, 8.5], abs=1e-14)
    assert line.value_at(0, outside=0) == pytest.approx(
        4.0, abs=1e-14
    )  # (1 + 9) / 2 less two boxes


def test_periodic():
    line = solve_line(Chain([[0, 1], [1, 0]], [0, 10]), 3.0)
    assert line.index.tolist() == [7.0, 4.0]
    assert line.value_at(1) == 4.0


def test_reducible():
    law = np.zeros((4, 4))
    law[:2, :2] = law[2:, 2:] = SLOT
    line = solve_line(Chain(law, [0, 8, 0, 80]), 1.0)
    assert line.index.tolist() == [6.0, 6.0, 78.0, 78.0]


def test_signals_only_point_the_way():
    law = [[0, 0.5, 0.5], [0, 1, 0], [0, 0, 1]]
    line = solve_line(Chain(law, [-np.inf, -np.inf, 4]), 1.0)
    assert line.index.tolist() == [2.0, -np.inf, 3.0]
    assert line.value_at(0) == 1.0
    assert line.value_at(1, outside=0.5) == 0.5
    with pytest.raises(InvalidForest, match="needs a state with a reward"):
        solve_line(Chain([[1.0]], [-np.inf]), 1.0)


def test_cost_so_high_that_nothing_pays():
    line = solve_line(Chain(SLOT, [0, 8]), 100.0)
    assert line.index.tolist() == [-96.0, -96.0]
    assert line.value_at([0.5, 0.5]) == 0.0


# -- several lines -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_several_lines_of_different_kinds(seed):
    rng = np.random.default_rng(seed)
    chains, costs = [random_line(rng, k) for k in (2, 3)], [0.6, 0.9]
    firsts = [rng.dirichlet(np.ones(len(c))) for c in chains]
    n = 200
    both = Forest.from_arrays(
        parent=[*range(-1, n - 1), -1, *range(n, 2 * n - 1)],
        cost=np.repeat(costs, n),
        rewards=[c.rewards for c in chains for _ in range(n)],
        law=[x for c, f in zip(chains, firsts, strict=True) for x in [f] + [c.law] * (n - 1)],
        outside=2.0,
    )
    lines = [solve_line(c, price) for c, price in zip(chains, costs, strict=True)]
    starts = [line.start(f) for line, f in zip(lines, firsts, strict=True)]
    truth = solve(both, tolerance=1e-15).value
    assert value_together(starts, outside=2.0) == pytest.approx(truth, abs=1e-13)
    assert value_together(starts[:1], outside=2.0) == lines[0].value_at(firsts[0], outside=2.0)


def test_copies_go_up_to_the_index():
    rng = np.random.default_rng(9)
    chain, first = random_line(rng, 4), rng.dirichlet(np.ones(4))
    start = solve_line(chain, 0.7).start(first)
    values = [value_together([start], copies=[n]) for n in (1, 2, 10, 1e3, 1e15, math.inf)]
    assert (np.diff(values) > -1e-13).all()
    assert values[-1] == pytest.approx(start.index, abs=1e-14)
    count = np.ones(300, int)
    for i, n in ((1, 10), (4, 10**15)):
        count[0] = n
        forest = finite_line(chain, first, 0.7, 300, count=count)
        assert values[2 if i == 1 else 4] == pytest.approx(
            solve(forest, tolerance=1e-15).value, abs=1e-12
        )
    assert value_together([start], outside=start.index + 1, copies=[math.inf]) == start.index + 1


def test_no_line_at_all_and_wrong_copies():
    assert value_together([], outside=2.5) == 2.5
    start = solve_line(Chain(SLOT, [0, 8]), 1.0).start(0)
    with pytest.raises(InvalidArgument, match="one number from 1 on"):
        value_together([start], copies=[0.5])
    with pytest.raises(InvalidArgument, match="one number from 1 on"):
        value_together([start], copies=[1, 2])


# -- the paper's condition -----------------------------------------------------------------------


@given(st.integers(0, 2**32), st.sampled_from([0.05, 0.2, 0.5, 1.0]))
def test_probing_until_the_top_is_best_where_the_condition_holds(seed, cost):
    rng = np.random.default_rng(seed)
    chain = random_line(rng, int(rng.integers(2, 6)), spread=2.0, levels=4)
    lower = chain.rewards < chain.rewards.max()
    second = chain.rewards[lower].max(initial=-np.inf)
    if probe_until_top(chain, cost):
        assert (solve_line(chain, cost).index[lower] > second).all()


def test_condition_is_not_necessary():
    chain = Chain([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0, 0, 1]], [0, 1, 9])
    assert not probe_until_top(chain, 0.1)  # the top is two steps away from 0
    assert (solve_line(chain, 0.1).index[:2] > 1).all()


# -- rules ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (-1, r"costs must be from 0 to 1e\+300, but after state 0 it is -1"),
        ([1, np.nan], "after state 1 it is nan"),
        ([1, 2, 3], "one for each of the 2 states"),
        ("dear", "costs must be numbers"),
    ],
)
def test_costs_are_checked(cost, message):
    with pytest.raises(InvalidForest, match=message):
        solve_line(Chain(SLOT, [0, 8]), cost)


def test_starts_are_checked():
    line = solve_line(Chain(SLOT, [0, 8]), [1.0, 2.0])
    with pytest.raises(UnknownName, match="no state 2"):
        line.value_at(2)
    with pytest.raises(UnknownName, match="no state -1"):
        line.phi(0.0, -1)
    with pytest.raises(InvalidArgument, match="the cost of the first box must be given"):
        line.start([0.5, 0.5])
    assert line.start([0.5, 0.5], cost=1.0).index == line.index[0]
    with pytest.raises(InvalidArgument, match="sum to 1"):
        line.start([0.5, 0.6], cost=1.0)
    with pytest.raises(ValueError, match="read-only"):
        line.tails[0, 0] = 2
