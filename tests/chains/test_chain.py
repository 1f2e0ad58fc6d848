"""Chains: brute force on small ones, closed forms on large ones, exact fractions throughout."""

from __future__ import annotations

import pickle
from fractions import Fraction
from math import gcd

import numpy as np
import pytest
from exact_chain import as_floats, paths, solve, stationary
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import probabilities

from weitzman._kernels import jit, markov
from weitzman.chains import long_run
from weitzman.chains.chain import Chain
from weitzman.errors import InvalidArgument, InvalidForest, UnknownName


@st.composite
def laws(draw, max_states=4):
    k = draw(st.integers(1, max_states))
    return [list(draw(probabilities(k))) for _ in range(k)]


def chain_of(law, rewards=None):
    return Chain(as_floats(law), range(len(law)) if rewards is None else rewards)


def random_law(rng, k, style):
    """Laws of many kinds, none reversible but by chance."""
    if style == 0:
        return rng.dirichlet(np.full(k, 0.3), k)
    if style == 1:  # nearly periodic
        return 0.03 * rng.dirichlet(np.ones(k), k) + 0.97 * np.roll(np.eye(k), 1, axis=1)
    if style == 2:  # nearly falls apart
        law = 0.02 * rng.dirichlet(np.ones(k), k)
        half = k // 2
        law[:half, :half] += 0.98 / half
        law[half:, half:] += 0.98 / (k - half)
        return law
    law = np.triu(rng.random((k, k)), -1)  # down one step at a time, up at will
    return law / law.sum(axis=1, keepdims=True)


def streak(k):
    """Length of a run of heads, up to k - 1: forgets all in k - 1 steps, and is defective."""
    law = np.zeros((k, k))
    law[:, 0] = 0.5
    law[np.arange(k), np.minimum(np.arange(k) + 1, k - 1)] += 0.5
    return law


# -- structure -----------------------------------------------------------------------------------


@given(laws())
def test_classes_and_periods_by_brute_force(law):
    k, chain = len(law), chain_of(law)
    step = np.array([[p > 0 for p in row] for row in law])
    ways = [np.eye(k, dtype=bool)]
    for _ in range(40):
        ways.append((ways[-1].astype(int) @ step.astype(int)) > 0)
    reach = np.any(ways, axis=0)
    seen = []
    for c in chain.classes:
        s = int(c.states[0])
        assert c.states.tolist() == np.flatnonzero(reach[s] & reach[:, s]).tolist()
        assert c.recurrent == bool(np.isin(np.flatnonzero(reach[s]), c.states).all())
        assert c.period == gcd(*(n for n in range(1, 41) if ways[n][s, s]))
        seen += c.states.tolist()
    assert sorted(seen) == list(range(k))
    assert [c.states[0] for c in chain.classes] == sorted(c.states[0] for c in chain.classes)
    assert chain.irreducible == bool(reach.all())
    limits = np.linalg.matrix_power(chain.law, 2**30)
    assert chain.aperiodic == (np.abs(limits @ chain.law - limits).max() < 1e-6)


def test_period_of_cycles():
    assert Chain(np.roll(np.eye(6), 1, axis=1), range(6)).period == 6
    both = np.zeros((5, 5))
    both[:2, :2], both[2:, 2:] = np.roll(np.eye(2), 1, axis=1), np.roll(np.eye(3), 1, axis=1)
    chain = Chain(both, range(5))
    assert (chain.period, chain.irreducible, len(chain.classes)) == (6, False, 2)
    passing = Chain([[0.0, 1.0], [0.0, 1.0]], [0, 1])
    assert [(c.recurrent, c.period) for c in passing.classes] == [(False, 0), (True, 1)]
    assert passing.aperiodic


# -- stationary distribution ---------------------------------------------------------------------


@given(laws())
def test_stationary_by_fractions(law):
    chain = chain_of(law)
    closed = [c for c in chain.classes if c.recurrent]
    if len(closed) > 1:
        with pytest.raises(InvalidArgument, match="never meet"):
            chain.stationary()
        return
    inside = closed[0].states
    truth = np.zeros(len(law))
    truth[inside] = [float(p) for p in stationary([[law[i][j] for j in inside] for i in inside])]
    assert chain.stationary() == pytest.approx(truth, rel=1e-14, abs=0)


def test_smallest_probabilities_keep_their_digits():
    """Up with 1e-5, down with 0.5: each state is 5e4 times rarer than the one below."""
    k = 40
    law = np.diag(np.full(k - 1, 1e-5), 1) + np.diag(np.full(k - 1, 0.5), -1)
    np.fill_diagonal(law, 1 - law.sum(axis=1))
    pi = Chain(law, range(k)).stationary()
    up, down = law[0, 1], law[1, 0]
    assert pi[1:] / pi[:-1] == pytest.approx(np.full(k - 1, up / down), rel=1e-13, abs=0)
    assert 0 < pi[-1] < 1e-180


# -- distance, mixing, rate ----------------------------------------------------------------------


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(0, 3), st.sampled_from([0.5, 0.25, 1e-3, 1e-9]))
def test_distance_and_mixing_time_by_brute_force(seed, style, eps):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 6))
    chain = Chain(random_law(rng, k, style), range(k))
    pi, rows, far = chain.stationary(), np.eye(k), []
    for _ in range(60):
        far.append(max(np.abs(row - pi)[row > pi].sum() for row in rows))
        rows = rows @ chain.law
    assert chain.distance(range(60)) == pytest.approx(far, abs=1e-14)
    t = chain.mixing_time(eps)
    assert chain.distance(t) <= eps + 1e-14
    assert t == 0 or chain.distance(t - 1) > eps - 1e-14
    assert chain.distance([7, 2]) == pytest.approx([far[7], far[2]], abs=1e-14)


def test_mixing_time_in_closed_form():
    """Two states that switch with probability p: d(t) = (1 - 2p)^t / 2."""
    for p in (0.01, 1e-6):
        chain = Chain([[1 - p, p], [p, 1 - p]], [0, 1])
        assert chain.mixing_time() == np.ceil(np.log(0.5) / np.log1p(-2 * p))
        assert chain.distance(10**6) == pytest.approx((1 - 2 * p) ** 10**6 / 2, abs=1e-10)


def assert_valid(chain):
    C, alpha = chain.rate()
    assert 0 < alpha < 1
    times = np.unique(np.r_[0:80, (1.25 ** np.arange(20, 55)).astype(int)])
    far = chain.distance(times.tolist())
    assert (far <= C * alpha**times + 1e-13).all()
    return C, alpha


def test_rate_holds_for_all_kinds_of_chains():
    rng = np.random.default_rng(7)
    for i in range(300):
        k = int(rng.integers(2, 9))
        assert_valid(Chain(random_law(rng, k, i % 4), range(k)))


def test_rate_of_defective_chains():
    """No basis of eigenvectors: a bound by the condition of one would be infinite or wrong."""
    for k in (3, 6, 12):
        assert_valid(Chain(streak(k), range(k)))
    jordan = np.array([[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1]])  # double eigenvalue 1/2
    C, alpha = assert_valid(Chain(jordan, range(3)))
    assert alpha > 0.5  # d(t) = (1 + t) / 2^t: no C would do for alpha = 1/2
    assert C / (1 - alpha) >= Chain(jordan, range(3)).distance(range(100)).sum()


def test_rate_is_sharp_where_it_can_be():
    C, alpha = Chain([[0.99, 0.01], [0.01, 0.99]], [0, 1]).rate()
    assert (C, alpha) == pytest.approx((0.5, 0.98), abs=1e-12)
    C, alpha = Chain(np.full((4, 4), 0.25), range(4)).rate()
    assert (C, alpha) == pytest.approx((0.75, 0), abs=1e-13)


def test_rate_without_pairs_of_rows(monkeypatch):
    monkeypatch.setattr(long_run, "_PAIRS", 1)
    rng = np.random.default_rng(8)
    for i in range(40):
        assert_valid(Chain(random_law(rng, 5, i % 4), range(5)))


def test_chains_that_do_not_converge_are_rejected():
    swap = Chain([[0, 1], [1, 0]], [0, 1])
    assert swap.distance([0, 1, 2]).tolist() == [0.5, 0.5, 0.5]
    for ask in (swap.rate, swap.mixing_time):
        with pytest.raises(InvalidArgument, match="has period 2"):
            ask()
    with pytest.raises(InvalidArgument, match="states 0 and 1 never meet"):
        Chain(np.eye(2), [0, 1]).mixing_time()
    with pytest.raises(InvalidArgument, match="mixes so slowly"):
        Chain([[1 - 1e-15, 1e-15], [1e-15, 1 - 1e-15]], [0, 1]).mixing_time(1e-9)
    with pytest.raises(InvalidArgument, match="mixes so slowly"):
        Chain([[1 - 1e-17, 1e-17], [1e-17, 1 - 1e-17]], [0, 1]).rate()
    assert_valid(Chain([[1 - 1e-15, 1e-15], [1e-15, 1 - 1e-15]], [0, 1]))


# -- first passage, misses, maxima ---------------------------------------------------------------


@given(laws(), st.data())
def test_first_passage_by_fractions(law, data):
    k, chain = len(law), chain_of(law)
    target = data.draw(st.sets(st.integers(0, k - 1), min_size=1))
    missed = chain.miss(sorted(target), 10**6)
    sure = missed < 0.5  # otherwise some state without a way in is met
    rest = [s for s in range(k) if s not in target and sure[s]]
    matrix = [[(s == y) - law[s][y] for y in rest] for s in rest]
    hours = dict(zip(rest, solve(matrix, [Fraction(1)] * len(rest)), strict=True))
    found = chain.first_passage(sorted(target))
    for s in range(k):
        if any(law[s][y] > 0 and y not in target and y not in rest for y in range(k)):
            assert found[s] == np.inf
        else:
            truth = 1 + sum((law[s][y] * hours[y] for y in rest), Fraction(0))
            assert found[s] == pytest.approx(float(truth), rel=1e-13)


def test_first_passage_of_rare_states_keeps_its_digits():
    k, p = 30, 1e-8
    law = np.diag(np.full(k - 1, p), 1)
    np.fill_diagonal(law, 1 - p)
    law[-1, -1] = 1
    hours = Chain(law, range(k)).first_passage(k - 1)
    up = Chain(law, range(k)).law[0, 1]
    assert hours[:-1] == pytest.approx(np.arange(k - 1, 0, -1) / up, rel=1e-13)


@settings(max_examples=30)
@given(laws(3), st.integers(1, 4), st.data())
def test_misses_and_maxima_over_all_paths(law, t, data):
    k = len(law)
    s = data.draw(st.integers(0, k - 1))
    rewards = data.draw(st.lists(st.integers(0, 2), min_size=k, max_size=k))
    chain = chain_of(law, rewards)
    truth = paths(law, s, t, lambda path: max(rewards[y] for y in path))
    levels, chance = chain.max_distribution(t, s)
    assert levels.tolist() == sorted(set(rewards))
    for level, p in zip(levels, chance, strict=True):
        assert p == pytest.approx(float(truth.get(int(level), 0)), abs=1e-15)
    assert chain.max_distribution(t, chain.law[s])[1] == pytest.approx(chance, abs=1e-15)
    missed = chain.miss(chain.top, t)[s]
    assert missed == pytest.approx(1 - chance[-1], abs=1e-15)
    coarse, part = chain.max_distribution(t, s, levels=[1])
    assert coarse.tolist() == [1]
    assert part[0] == pytest.approx(chance[levels >= 1].sum(), abs=1e-15)


def test_rewards_on_a_line_are_not_independent():
    chain = Chain([[0.99, 0.01], [0.01, 0.99]], [0, 1])
    _, chance = chain.max_distribution(100, start=[0.5, 0.5])
    assert chance[0] == pytest.approx(0.5 * 0.99**99, rel=1e-13)  # not 0.5^100


def test_misses_of_very_many_boxes():
    chain = Chain([[0.99, 0.01], [0.01, 0.99]], [0, 1])
    t = 50_000
    assert chain.miss(1, t)[0] == pytest.approx(0.99**t, rel=1e-9, abs=0)
    assert chain.miss(1, 0).tolist() == [1, 1]


def test_passage_is_the_sum_of_all_misses():
    chain = Chain(random_law(np.random.default_rng(4), 6, 0), range(6))
    total = sum(chain.miss([2, 4], t) for t in range(2000))
    assert chain.first_passage([2, 4]) == pytest.approx(total, rel=1e-12)


def test_compiled_chains_are_those_of_plain_python():
    law = random_law(np.random.default_rng(6), 7, 0)
    args = law[1:, 1:].copy(), law[1:, 0].copy(), np.ones(6)
    plain = markov.stationary(law).tolist(), markov.absorb(*args).tolist()
    jit.compile_always()
    try:
        compiled = markov.stationary(law).tolist(), markov.absorb(*args).tolist()
    finally:
        jit.compile_always(False)
    assert plain[0] == pytest.approx(compiled[0], rel=1e-14)
    assert plain[1] == pytest.approx(compiled[1], rel=1e-14)


# -- rules ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("law", "rewards", "message"),
    [
        ([[0.5, 0.6], [0, 1]], [0, 1], r"after state 0 sum to 1.1 \(1 such row\)"),
        ([[1.5, -0.5], [0, 1]], [0, 1], r"the entry \[0, 0\] is 1.5 \(2 such entries\)"),
        ([[np.nan, 1], [0, 1]], [0, 1], r"the entry \[0, 0\] is nan"),
        ([[0.5, 0.5]], [0, 1], r"square matrix with a row for each state"),
        ([0.5, 0.5], [0, 1], r"square matrix"),
        ([], [], r"square matrix"),
        ([["a"]], [0], r"a table of numbers"),
        ([[1]], [0, 1], r"one reward per state, but there are 1 state "),
        ([[1]], [np.inf], r"state 0 has inf"),
        ([[1]], ["x"], r"rewards must be numbers"),
        ([[0.5, 0.5], [0, 2]], [0, 1], r"the entry \[1, 1\] is 2"),
        ([[0.5, 0.5], [0, 0.5]], [0, 1], r"after state 1 sum to 0.5"),
    ],
)
def test_rules_of_a_chain(law, rewards, message):
    with pytest.raises(InvalidForest, match=message):
        Chain(law, rewards)


def test_rules_of_questions():
    chain = Chain([[0.5, 0.5], [0.5, 0.5]], [0, 1])
    with pytest.raises(UnknownName, match="no state 7"):
        chain.miss([0, 7], 3)
    for wrong in (-1, 1.5, True):
        with pytest.raises(InvalidArgument, match="a number of boxes"):
            chain.miss(0, wrong)
    with pytest.raises(InvalidArgument, match="from 1 on"):
        chain.max_distribution(0, 0)
    with pytest.raises(InvalidArgument, match="by their numbers"):
        chain.first_passage([])
    with pytest.raises(InvalidArgument, match="`eps` must lie from"):
        chain.mixing_time(1.0)
    with pytest.raises(InvalidArgument, match="over the 2 states"):
        chain.max_distribution(3, [1.0])
    with pytest.raises(InvalidArgument, match="sum to 1"):
        chain.max_distribution(3, [1.0, 1.0])


def test_own_read_only_copies():
    given_law = np.full((2, 2), 0.5)
    chain = Chain(given_law, [0, 1])
    given_law[0] = 9
    again = pickle.loads(pickle.dumps(chain))
    for c in (chain, again):
        assert c.law.tolist() == [[0.5, 0.5], [0.5, 0.5]]
        with pytest.raises(ValueError, match="read-only"):
            c.law[0, 0] = 1


def test_a_sparse_law_becomes_an_array():
    sparse = pytest.importorskip("scipy.sparse")
    chain = Chain(sparse.coo_array([[0.5, 0.5], [1, 0]]), [0, 1])
    assert chain.law.tolist() == [[0.5, 0.5], [1, 0]]
