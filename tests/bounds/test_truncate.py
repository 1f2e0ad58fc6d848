"""Cutting forests: the bounds hold, the depth is the least, and length does not matter."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import random_files
import random_problems
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

import weitzman
from weitzman import Forest, evaluate, line, side_by_side, solve, truncate
from weitzman.bounds.truncation import Levels
from weitzman.chains.chain import Chain
from weitzman.chains.endless import solve_line
from weitzman.chains.hitting import exact_depth
from weitzman.errors import InvalidArgument
from weitzman.forest import Pool

ROUNDING = 1e-12
WALK = np.array([[0.7, 0.3, 0.0], [0.3, 0.5, 0.2], [0.0, 0.4, 0.6]])


def forest_of(problem: reference.Problem, **more) -> Forest:
    return Forest.from_arrays(**{**reference.to_arrays(problem), **more})


def mirrored(forest: Forest) -> Forest:
    """The same problem with losses."""
    f = forest
    return Forest.from_arrays(
        parent=f.parent,
        cost=[f.costs[c] for c in f.cost],
        rewards=[-f.rewards[r][0] for r in f.reward],
        law=[f.laws[p][0] if up < 0 else f.laws[p] for p, up in zip(f.law, f.parent, strict=True)],
        count=f.count,
        outside=-f.outside,
        minimize=True,
    )


def random_line(rng: np.random.Generator, n: int, k: int = 4, cost=None) -> Forest:
    """A static line; costs differ from box to box unless one is given."""
    law = 0.5 * np.eye(k) + 0.5 * rng.dirichlet(np.full(k, 0.5), k)
    costs = rng.uniform(0.005, 0.03, n) if cost is None else cost
    return line((rng.dirichlet(np.ones(k)), law), length=n, rewards=rng.random(k), cost=costs)


def random_tree(rng: np.random.Generator, n: int, rows: int = 5, k: int = 3) -> Forest:
    """Random parents, few kinds, costs by the parent's state or by both, some copies."""
    parent = np.array([-1, *(int(rng.integers(max(-1, i - 4), i)) for i in range(1, n))])
    rewards, laws = rng.random((rows, k)), rng.dirichlet(np.full(k, 0.5), (rows, k))
    kind = rng.integers(0, rows, n)
    shapes = [(1, 1), (k, 1), (k, k)]
    prices = [
        rng.uniform(0, 0.1, (1, 1) if up < 0 else shapes[i])
        for up, i in zip(parent, rng.integers(0, 3, n), strict=True)
    ]
    return Forest.from_arrays(
        parent=parent,
        cost=prices,
        rewards=[rewards[i] for i in kind],
        law=[laws[i][0] if up < 0 else laws[i] for i, up in zip(kind, parent, strict=True)],
        count=rng.choice([1, 1, 1, 3], n),
        outside=0.2,
    )


# -- the bounds ------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(random_problems.forests(max_boxes=6), st.sampled_from([0.01, 0.3, 2.0]), st.booleans())
def test_the_exact_value_lies_between_the_bounds(problem, gap, losses):
    value = float(reference.optimal_value(problem))
    forest = forest_of(problem)
    if losses:
        forest, value = mirrored(forest), -value
    cut = truncate(forest, gap=gap)
    assert cut.lower - ROUNDING <= value <= cut.upper + ROUNDING
    assert cut.gap <= gap
    assert 1 <= cut.depth <= Levels.of(forest).height


@settings(max_examples=60)
@given(random_problems.forests(min_boxes=2, max_boxes=6))
def test_bounds_close_in_on_the_value_from_both_sides(problem):
    value, levels = float(reference.optimal_value(problem)), Levels.of(forest_of(problem))
    depths = range(1, levels.height + 1)
    lower = [solve(levels.first(t), exact=True).value for t in depths]
    raised = [levels.raised(t) or levels.forest for t in depths]
    upper = [solve(forest, exact=True).value for forest in raised]
    for bounds in (lower, upper[::-1]):
        assert all(a <= b + ROUNDING for a, b in pairwise(bounds))
    assert upper[-1] == pytest.approx(value, abs=ROUNDING)
    assert lower[-1] == pytest.approx(value, abs=ROUNDING)


@pytest.mark.parametrize("seed", range(25))
def test_no_index_is_above_what_is_hung_below_its_parent(seed):
    """Laws and rewards are shared, so that kinds follow each other in circles."""
    rng = np.random.default_rng(seed)
    forest = random_tree(rng, int(rng.integers(2, 300)))
    ceiling, solution = Levels.of(forest), solve(forest, exact=True)
    tight = 0
    for v in np.flatnonzero(forest.parent >= 0):
        q = ceiling.kind[forest.parent[v]]
        most = ceiling.below[ceiling.at[q] : ceiling.at[q + 1]]
        assert (solution.indices(v) <= most + ROUNDING).all()
        tight += (most < forest.rewards.data.max() - 1e-3).any()
    assert tight > 0  # and it says more than that nothing beats the highest reward


def test_the_ceiling_of_a_static_tree_is_the_index_of_endless_branching():
    """On a chain without memory the endless line has the same index, whatever the branching."""
    chain = Chain([[0.75, 0.25]] * 2, rewards=[0, 8])
    forest = line(([0.5, 0.5], chain.law), length=9, rewards=chain.rewards, cost=1)
    ceiling = Levels.of(forest)
    above = ceiling.below - np.tile(solve_line(chain, 1).index, 2)
    # rounds end when one brings less than 1e-9 of the range, 8; each brings 3/4 of the one before
    assert (above >= 0).all()
    assert (above <= 4 * 8e-9).all()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("gap", [0.05, 1e-3, 1e-6])
def test_larger_trees(seed, gap):
    rng = np.random.default_rng(seed)
    forest = random_tree(rng, 400)
    for problem in (forest, mirrored(forest)):
        cut, whole = truncate(problem, gap=gap), solve(problem, exact=True)
        assert cut.lower - ROUNDING <= whole.value <= cut.upper + ROUNDING
        assert cut.gap <= gap
    assert truncate(forest, gap=gap).depth == truncate(mirrored(forest), gap=gap).depth


@settings(max_examples=80)
@given(random_files.forests(), st.sampled_from([1e-3, 1.0, 1e3]))
def test_anything_that_a_file_can_hold(forest, gap):
    """Shared laws, copies by the million, losses, and numbers that leave no digits to compare."""
    whole, cut = solve(forest, exact=True), truncate(forest, gap=gap)
    finite = np.append(forest.rewards.data, [forest.outside, whole.value])
    rounding = 1e-12 * np.abs(finite[np.isfinite(finite)]).max()
    assert cut.lower - rounding <= whole.value <= cut.upper + rounding
    assert cut.gap <= gap + rounding or cut.forest is forest


# -- the depth -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("gap", [3e-3, 1e-5])
def test_one_level_less_would_lose_more(seed, gap):
    rng = np.random.default_rng(seed)
    forest = side_by_side([random_line(rng, 200) for _ in range(seed % 3 + 1)])
    cut = truncate(forest, gap=gap)
    less, kept = (solve(Levels.of(forest).first(t)).value for t in (cut.depth - 1, cut.depth))
    true = solve(forest).value
    assert cut.depth > 1
    assert true - kept <= cut.gap + ROUNDING <= gap + ROUNDING
    assert cut.upper - less > gap * (1 - 1e-3)
    assert true - less > 0.9 * gap  # the certificate is hardly worse than knowing the answer


@pytest.mark.parametrize("gap", [1e-2, 1e-5])
def test_the_length_of_the_lines_does_not_matter(gap):
    found = []
    for n in (300, 3_000, 30_000):
        rng = np.random.default_rng(4)
        cut = truncate(side_by_side([random_line(rng, n, cost=0.01) for _ in range(3)]), gap=gap)
        found.append((cut.depth, cut.kept))
        assert cut.of == 3 * n
    assert found[0] == found[1] == found[2]


def test_what_is_kept_grows_with_the_digits_of_the_gap():
    forest = random_line(np.random.default_rng(1), 20_000)
    depth = [truncate(forest, gap=10.0**-d).depth for d in range(1, 10)]
    steps = np.diff(depth)
    assert (steps > 0).all()
    assert steps.max() <= 1.5 * steps.min() + 10  # each digit costs about the same


def test_more_lines_need_no_deeper_cut():
    """Each is cut at about the depth that one alone needs: kept boxes grow with their number."""
    alone = truncate(random_line(np.random.default_rng(0), 2_000, cost=0.01), gap=1e-4).depth
    for q in (2, 8, 32):
        many = side_by_side([random_line(np.random.default_rng(0), 2_000, cost=0.01)] * q)
        cut = truncate(many, gap=1e-4)
        assert cut.depth <= alone + 1
        assert cut.kept == q * cut.depth


@pytest.mark.parametrize("seed", range(20))
def test_the_time_to_a_reward_above_all_indices_bounds_the_depth(seed):
    """Nobody goes on after such a reward, so missing it costs the range of the rewards at most."""
    rng = np.random.default_rng(seed)
    k, gap, cost = int(rng.integers(2, 6)), 1e-3, 0.02
    chain = Chain(0.5 * np.eye(k) + 0.5 * rng.dirichlet(np.ones(k), k), rng.random(k))
    first = rng.dirichlet(np.ones(k))
    enough = np.flatnonzero(chain.rewards >= solve_line(chain, cost).index.max())
    boxes = exact_depth(chain, 0.99 * gap / chain.rewards.max(), enough, start=first)
    line_ = line((first, chain.law), length=2_000, rewards=chain.rewards, cost=cost)
    assert truncate(line_, gap=gap).depth <= boxes < 2_000


@pytest.mark.parametrize("seed", range(8))
def test_losses_of_trees_cut_one_by_one_at_most_add_up(seed):
    rng = np.random.default_rng(seed)
    parts = [random_line(rng, 300, k=3) for _ in range(3)]
    gaps = [0.03, 0.003, 0.02]
    apart = side_by_side([truncate(f, gap=gap).forest for f, gap in zip(parts, gaps, strict=True)])
    lost = solve(side_by_side(parts)).value - solve(apart).value
    assert lost >= -ROUNDING
    assert lost <= sum(gaps)
    assert len(apart) < 900


def test_free_line_is_cut_where_the_top_is_hardly_missed():
    chain = Chain(WALK, rewards=[0, 1, 2])
    cut = truncate(line((WALK[0], WALK), length=5_000, rewards=chain.rewards, cost=0), gap=1e-6)
    missed = [float(chain.miss(2, t)[0]) for t in (cut.depth - 2, cut.depth)]
    assert missed[1] <= 1e-6  # a miss costs at least 1
    assert 2 * missed[0] > 1e-6  # and at most 2


def test_states_from_which_nothing_can_come_do_not_keep_the_search_going():
    """A free line that gets stuck in a bad state half of the time: the state tells, not the line.

    A bound that ignores the state would promise the top at the cut, and no depth would do.
    """
    law = np.array([[1.0, 0, 0], [0.2, 0.6, 0.2], [0, 0, 1.0]])
    forest = line(([0, 1, 0], law), length=3_000, rewards=[0, 1, 9], cost=0)
    cut = truncate(forest, gap=1e-6)
    assert cut.depth < 50
    assert cut.upper == pytest.approx(5.0, abs=1e-6)


def test_a_dear_line_is_not_opened_at_all():
    cut = truncate(line((WALK[0], WALK), length=50, rewards=[0, 1, 2], cost=3), gap=1e-9)
    assert (cut.depth, cut.lower, cut.upper) == (1, 0, 0)


def test_the_whole_forest_if_nothing_less_will_do():
    """The only reward lies in the last box."""
    n = 40
    forest = Forest.from_arrays(
        parent=np.arange(n) - 1,
        cost=np.full(n, 0.1),
        rewards=[[0.0]] * (n - 1) + [[100.0]],
        law=[[1.0]] + [[[1.0]]] * (n - 1),
    )
    cut = truncate(forest, gap=1e-3)
    assert (cut.depth, cut.kept, cut.of) == (n, n, n)
    assert cut.forest is forest
    assert cut.lower == pytest.approx(96) == cut.upper
    assert truncate(forest, gap=97).depth == 1


def lines_with_an_end_and_without(rng: np.random.Generator, n: int) -> Forest:
    """A finite line and one that ends in an endless box, under one root each."""
    k = 3
    law = 0.5 * np.eye(k) + 0.5 * rng.dirichlet(np.ones(k), (2, k))
    parent = np.arange(2 * n) - 1
    parent[n] = -1
    return Forest.from_arrays(
        parent=parent,
        cost=rng.uniform(0.01, 0.05, 2 * n),
        rewards=[r for r in rng.random((2, k)) for _ in range(n)],
        law=[p for i in range(2) for p in [law[i][0], *([law[i]] * (n - 1))]],
        endless=np.arange(2 * n) == n - 1,
    )


@pytest.mark.parametrize("n", [2, 3, 90])
@pytest.mark.parametrize("seed", range(5))
def test_endless_lines_are_written_down_as_far_as_they_matter(seed, n):
    forest = lines_with_an_end_and_without(np.random.default_rng(seed), n)
    value, levels = solve(forest, exact=True).value, Levels.of(forest)
    for t in range(1, n + 1, 7):
        lower, upper = (solve(f, exact=True).value for f in (levels.first(t), levels.raised(t)))
        assert lower - ROUNDING <= value <= upper + ROUNDING
    for gap in (0.1, 1e-3, 1e-6):
        cut = truncate(forest, gap=gap)
        assert not cut.forest.endless.any()
        assert cut.lower - ROUNDING <= value <= cut.upper + ROUNDING
        assert cut.lower - ROUNDING <= solve(cut.forest).value
        assert cut.gap <= gap
        assert set(cut.box[n:]) <= set(range(n - 1, 2 * n))


def test_boxes_along_an_endless_line_have_places():
    line = weitzman.line(
        ([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]]), length=np.inf, rewards=[0, 10], cost=0.5,
        names=["first", "more"],
    )  # fmt: skip
    cut = truncate(line, gap=0.5)
    assert cut.forest.names == ("first", *(f"more#{i}" for i in range(1, cut.depth)))
    assert cut.box.tolist() == [0] + [1] * (cut.depth - 1)
    shorter = weitzman.solve(weitzman.line(
        ([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]]), length=cut.depth - 1, rewards=[0, 10], cost=0.5
    ))  # fmt: skip
    assert 7.0 - shorter.value > 0.5 >= 7.0 - solve(cut.forest).value  # 7 is the value of the line


# -- what is kept ----------------------------------------------------------------------------------


def test_the_policy_of_what_is_kept_earns_the_lower_bound_in_the_whole():
    forest = random_tree(np.random.default_rng(3), 500)
    cut = truncate(forest, gap=0.01)
    assert cut.kept < cut.of
    assert evaluate(solve(cut.forest)).value >= cut.lower - ROUNDING
    assert evaluate(solve(cut.forest)).value >= solve(forest).value - 0.01


def test_names_copies_and_states_are_kept():
    builder = weitzman.Builder(outside=1)
    builder.add("a", cost=0.1, outcomes={"low": 0.5, "high": 0.5}, rewards={"low": 0, "high": 3})
    builder.add("b", parent="a", cost=1, outcomes={0: 0.9, 4: 0.1}, count=3)
    builder.add("c", parent="b", cost=9, outcomes={0: 0.9, 4: 0.1})
    builder.add("d", cost=0.1, outcomes={2: 0.5, 3: 0.5})
    forest = builder.build()
    cut = truncate(forest, gap=1e-6)
    kept = cut.forest
    assert kept.names == ("a", "d")
    assert cut.box.tolist() == [forest.box(name) for name in kept.names]
    assert kept.states(0) == ("low", "high")
    assert kept.outside == 1
    deeper = Levels.of(forest).named(2)
    assert deeper.names == ("a", "b", "d")
    assert deeper.count.tolist() == [1, 3, 1]


def test_numbered_boxes_keep_their_numbers_as_names():
    rng = np.random.default_rng(0)
    two = side_by_side([random_line(rng, 500, cost=0.01), random_line(rng, 500, cost=0.01)])
    cut = truncate(two, gap=0.1)
    assert cut.forest.names == tuple(map(str, cut.box))
    assert cut.box.tolist() == [*range(cut.depth), *range(500, 500 + cut.depth)]
    one = truncate(random_line(rng, 500), gap=0.1)
    assert one.forest.names is None


def test_only_the_matrices_in_use_are_kept():
    cut = truncate(random_line(np.random.default_rng(0), 5_000), gap=1e-3)
    assert len(cut.forest.costs) == cut.kept
    assert (len(cut.forest.laws), len(cut.forest.rewards)) == (2, 1)


def test_something_must_be_taken():
    rng = np.random.default_rng(2)
    law = rng.dirichlet(np.ones(3), 3)
    forest = line((law[0], law), length=400, rewards=[-5, -3, -1], cost=0.01, outside=-math.inf)
    cut = truncate(forest, gap=1e-4)
    assert cut.kept < 60
    assert cut.lower <= solve(forest).value <= cut.upper


def test_signals_are_no_rewards():
    """Nothing but the last state has a reward; nothing at all is an answer too."""
    law = np.array([[0.5, 0.5, 0], [0.5, 0.25, 0.25], [1, 0, 0]])
    rewards = [-math.inf, -math.inf, 5]
    forest = line((law[0], law), length=900, rewards=rewards, cost=0.1, outside=0)
    cut = truncate(forest, gap=1e-4)
    assert cut.kept < 100
    assert cut.lower <= solve(forest).value <= cut.upper
    none = line((law[0], law), length=9, rewards=[-math.inf] * 3, cost=0.1, outside=2)
    assert (truncate(none, gap=1).depth, truncate(none, gap=1).upper) == (1, 2)


@pytest.mark.parametrize("gap", [0, -1, math.nan, math.inf, "1", None])
def test_a_gap_is_a_number_above_zero(gap):
    with pytest.raises(InvalidArgument, match="`gap` must be a number above 0"):
        truncate(random_line(np.random.default_rng(0), 3), gap=gap)


def test_only_forests_can_be_cut():
    with pytest.raises(InvalidArgument, match=r"needs a Forest, but got a list"):
        truncate([1, 2], gap=1)


def test_repr():
    cut = truncate(line((WALK[0], WALK), length=99, rewards=[0, 1, 2], cost=0.1), gap=0.5)
    assert repr(cut).startswith(f"Truncation(depth {cut.depth}, {cut.kept} of 99 boxes, value from")


# -- time, risk, several prizes --------------------------------------------------------------------


def with_term(rng: np.random.Generator, forest: Forest, term: str) -> Forest:
    f = forest
    if term == "time":
        shape = f.costs.data.shape
        return replace(f, factors=Pool(rng.uniform(0.6, 1, shape), f.costs.start, f.costs.shape))
    if term == "risk":
        return f.changed(risk_tolerance=0.3)
    return f.changed(prizes=int(min(3, f.count[f.roots].sum())))


@pytest.mark.parametrize("term", ["time", "risk", "prizes"])
@pytest.mark.parametrize("seed", range(25))
def test_the_bounds_hold_with_time_risk_and_prizes(term, seed):
    rng = np.random.default_rng([7, seed])
    plain = random_tree(rng, 40)
    if seed % 3 == 1:
        plain = mirrored(plain)
    if seed % 3 == 2:  # losses only: waiting is a gain
        plain = replace(
            plain,
            rewards=Pool(plain.rewards.data - 2, plain.rewards.start, plain.rewards.shape),
            outside=-1.5,
        )
    forest = with_term(rng, plain, term)
    value = solve(forest, exact=True).value
    levels = Levels.of(forest)
    for t in range(1, levels.height):
        low = forest.sign * solve(levels.first(t), exact=True).value
        assert low <= forest.sign * value + 1e-9
        if (upper := levels.raised(t)) is not None:
            high = forest.sign * solve(upper, exact=True).value
            assert high >= forest.sign * value - 1e-9
    found = truncate(forest, gap=0.02)
    assert found.lower <= value + 1e-9
    assert found.upper >= value - 1e-9
    assert found.gap <= 0.02
    kept = solve(found.forest, exact=True).value
    assert abs(kept - value) <= 0.02 + 1e-9


def test_endless_discounted_lines_are_cut():
    endless = line(
        ([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]]), rewards=[0, 10], cost=0.1, factor=0.9, length=np.inf
    )
    value = solve(endless).value
    cut = truncate(endless, gap=1e-3)
    assert cut.lower - 1e-9 <= value <= cut.upper + 1e-9
    assert not cut.forest.endless.any()
    assert abs(solve(cut.forest).value - value) <= 1e-3
