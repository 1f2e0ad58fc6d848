"""How many boxes suffice: the printed bound fails, ours never does."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weitzman.chains.chain import Chain
from weitzman.chains.hitting import exact_depth, miss_bounds
from weitzman.errors import InvalidArgument, TooLarge


@pytest.fixture
def sticky():
    return Chain([[0.99, 0.01], [0.01, 0.99]], rewards=[0, 1])


@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-6])
def test_printed_bound_fails_on_the_sticky_chain(sticky, delta):
    found = miss_bounds(sticky, delta)
    for name in ("printed", "sign corrected"):
        assert found.boxes[name] == 100
        assert found.misses[name] == pytest.approx(0.99**100, rel=1e-12)  # 0.366
        assert not found.holds(name)
    assert found.holds("blocks")
    assert found.holds("exact")
    assert found.boxes["exact"] == math.ceil(math.log(delta) / math.log(0.99))


def test_sign_as_printed_makes_the_second_term_void():
    """A chain without memory: the printed number does not depend on delta at all."""
    chain = Chain(np.full((4, 4), 0.25), range(4))
    printed = [miss_bounds(chain, delta).boxes["printed"] for delta in (1e-1, 1e-9)]
    corrected = [miss_bounds(chain, delta).boxes["sign corrected"] for delta in (1e-1, 1e-9)]
    assert printed[0] == printed[1] == 6
    assert corrected[0] < corrected[1]
    assert not miss_bounds(chain, 1e-9).holds("printed")
    assert miss_bounds(chain, 1e-9).holds("sign corrected")


def test_worked_numbers(sticky):
    found = miss_bounds(sticky, 1e-3)
    assert (found.mass, found.C, found.alpha) == pytest.approx((0.5, 0.5, 0.98), abs=1e-12)
    assert found.block == 35  # 0.98^35 / 2 is the first distance of at most 1/4
    assert found.boxes["blocks"] == 35 * 25  # 0.75^25 is the first power below 1e-3
    assert "| sign corrected | 100 | 0.366 | no |" in str(found)


def random_chain(rng, k):
    law = rng.dirichlet(np.full(k, rng.choice([0.2, 1.0])), k)
    stay = rng.choice([0.0, 0.5, 0.95, 0.99])
    return Chain(stay * np.eye(k) + (1 - stay) * law, rng.permutation(k))


def test_our_bounds_hold_on_hundreds_of_chains():
    rng, failures, tried = np.random.default_rng(0), 0, 0
    for _ in range(500):
        chain = random_chain(rng, int(rng.integers(2, 5)))
        delta = 10.0 ** -rng.integers(1, 7)
        if not chain.irreducible or chain.stationary()[chain.top].sum() < 1e-6:
            continue
        found, tried = miss_bounds(chain, delta), tried + 1
        assert found.misses["blocks"] <= delta
        assert found.boxes["exact"] <= found.boxes["blocks"]
        assert found.misses["exact"] <= delta * (1 + 1e-9)
        if found.boxes["exact"] > 1:
            assert chain.miss(found.target, found.boxes["exact"] - 1).max() > delta * (1 - 1e-9)
        failures += not found.holds("sign corrected")
    assert tried > 375
    assert failures > 25  # the slip is no curiosity


@given(st.integers(0, 2**32), st.sampled_from([0.3, 1e-2, 1e-5]))
def test_exact_depth_by_counting(seed, delta):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 5))
    chain = Chain(0.2 / k + 0.8 * rng.dirichlet(np.ones(k), k), rng.permutation(k))
    first = rng.dirichlet(np.ones(k))
    from_first = from_worst = 1
    while chain.max_distribution(from_first, first)[1][:-1].sum() > delta:
        from_first += 1
    while chain.miss(chain.top, from_worst).max() > delta:
        from_worst += 1
    assert exact_depth(chain, delta, start=first) == from_first
    assert exact_depth(chain, delta) == from_worst


def test_exact_depth_needs_no_mixing():
    assert exact_depth(Chain([[0, 1], [1, 0]], [0, 1]), 0.1) == 2
    ends = Chain([[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1]], [0, 2, 1])
    with pytest.raises(InvalidArgument, match=r"after state 2 the chain can avoid it .*\(1 such"):
        exact_depth(ends, 0.1)
    assert exact_depth(ends, 0.1, start=0) == 4
    with pytest.raises(InvalidArgument, match="after state 2"):
        exact_depth(ends, 0.1, start=[0.5, 0, 0.5])


def test_several_lines_need_the_least_mass():
    """The paper takes the largest stationary mass of the lines; the bound must serve them all."""
    eager, shy = (Chain(np.tile([1 - p, p], (2, 1)), [0, 1]) for p in (0.9, 0.01))
    t = miss_bounds(eager, 1e-3).boxes["blocks"]
    assert eager.miss(1, t).max() <= 1e-3
    assert shy.miss(1, t).max() > 0.5
    assert shy.miss(1, miss_bounds(shy, 1e-3).boxes["blocks"]).max() <= 1e-3


def test_targets_and_rules(sticky):
    assert miss_bounds(sticky, 0.1, target=[0, 1]).boxes["exact"] == 1
    with pytest.raises(InvalidArgument, match="`delta` must lie"):
        miss_bounds(sticky, 1.0)
    with pytest.raises(InvalidArgument, match="must have stationary mass"):
        miss_bounds(Chain([[0.5, 0.5], [0, 1]], [1, 0]), 0.1)
    with pytest.raises(InvalidArgument, match="has period 2"):
        miss_bounds(Chain([[0, 1], [1, 0]], [0, 1]), 0.1)


@pytest.mark.parametrize("rare", [1e-15, 1e-17, 1e-300])
def test_more_boxes_than_can_be_counted_are_rejected(rare):
    """Where rounding takes all of 1 - rare for 1, the powers would never fall."""
    chain = Chain([[1 - rare, rare], [0.5, 0.5]], [0, 1])
    with pytest.raises(TooLarge, match=r"more than 3e\+14 boxes miss the target"):
        exact_depth(chain, 1e-3)
    with pytest.raises(TooLarge, match="more than 3e"):
        exact_depth(chain, 1e-3, start=[0.5, 0.5])
    with pytest.raises(InvalidArgument, match="stationary mass of 2e-12 or more, but it has"):
        miss_bounds(chain, 1e-3)
