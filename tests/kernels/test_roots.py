"""The root of E (W - x)^+ = cost: the compiled forms give what exact arithmetic gives."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weitzman import line, solve
from weitzman._common.law import Law
from weitzman.bounds.truncation import Levels

EIGHTHS = st.integers(-80, 80).map(lambda n: n / 8)


@st.composite
def payoffs(draw):
    """Values that fall, chances that sum to 1 in exact arithmetic, and a cost."""
    values = sorted(draw(st.lists(EIGHTHS, min_size=1, max_size=7)), reverse=True)
    shares = [draw(st.integers(0, 9)) for _ in values]
    shares[draw(st.integers(0, len(values) - 1))] += 64 - sum(shares)
    chances = [Fraction(share, 64) for share in shares]
    return values, chances, draw(st.integers(0, 64)) / 16


def exact_root(values, chances, cost):
    """The smallest x with E (W - x)^+ <= cost, the lines between the values tried one by one."""
    tops = sorted({v for v, p in zip(values, chances, strict=True) if p}, reverse=True)

    def gain(x):
        return sum(p * max(Fraction(v) - x, 0) for v, p in zip(values, chances, strict=True))

    below = [v for v in tops if gain(Fraction(v)) <= Fraction(cost)]
    low = Fraction(min(below))
    mass = sum(p for v, p in zip(values, chances, strict=True) if v >= low)
    return low - (Fraction(cost) - gain(low)) / mass


@given(payoffs())
def test_every_form_finds_the_exact_root(payoff):
    values, chances, cost = payoff
    true = float(exact_root(values, chances, cost))
    v, p = np.array(values), np.array([float(x) for x in chances])
    by_law = float(Law(v[::-1], np.cumsum(p)[::-1]).root(cost))
    assert by_law == pytest.approx(true, abs=1e-12)
    box = line([p.tolist()], rewards=values, cost=cost, outside=-100)
    assert solve(box, exact=True).index(0) == pytest.approx(true, abs=1e-12)  # in lanes


def test_a_ceiling_is_the_root_of_what_follows():
    """Nothing follows the last box, so its ceiling is its index."""
    rows = [[0.7, 0.3], [0.4, 0.6]]
    pair = line([[0.5, 0.5], rows], rewards=[0.1, 9.7], cost=0.37)
    ceiling = Levels.of(pair)
    found = Law.of([0.1, 9.7], rows).root(0.37)
    first = int(ceiling.at[ceiling.kind[0]])
    assert ceiling.below[first : first + 2].tolist() == pytest.approx(found.tolist(), rel=1e-14)


def test_a_box_without_rewards_has_no_root():
    assert Law.of([-np.inf], [1.0]).root(1.0) == -np.inf
    assert Law.of([1.0], [0.0]).root(1.0) == -np.inf
