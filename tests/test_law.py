"""The law type against exact fractions, and digits that must not be lost."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb, fsum, inf, log1p

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_problems import probabilities

from weitzman._common.law import Law

Atoms = list[tuple[Fraction | None, Fraction]]  # None: nothing is found


@st.composite
def atoms(draw: st.DrawFn) -> Atoms:
    size = draw(st.integers(1, 4))
    value = st.one_of(st.none(), st.integers(-8, 24).map(lambda z: Fraction(z, 8)))
    values = draw(st.lists(value, min_size=size, max_size=size))
    return list(zip(values, draw(probabilities(size)), strict=True))


def law_of(given: Atoms, *, exact_below: bool = False) -> Law:
    values = [-inf if x is None else float(x) for x, _ in given]
    return Law.of(values, [float(p) for _, p in given], exact_below=exact_below)


def mean_of(given: Atoms, function) -> Fraction:
    return sum((p * function(x) for x, p in given), Fraction(0))


def exact_excess(given: Atoms, at: Fraction) -> Fraction:
    return mean_of(given, lambda x: Fraction(0) if x is None else max(x - at, Fraction(0)))


def tails_of(given: Atoms, at: Fraction) -> Fraction:
    return mean_of(given, lambda x: Fraction(x is not None and x >= at))


GRID = [Fraction(z, 4) for z in range(-9, 14)]
BOTH = pytest.mark.parametrize("exact_below", [False, True])


def check_same(law: Law, exact: Atoms) -> None:
    grid = [float(x) for x in GRID]
    assert law.tail(grid) == pytest.approx([float(tails_of(exact, x)) for x in GRID], abs=1e-15)
    assert law.head(grid) == pytest.approx([1 - float(tails_of(exact, x)) for x in GRID], abs=1e-15)
    assert law.excess(grid) == pytest.approx([float(exact_excess(exact, x)) for x in GRID])
    assert float(law.nothing()) == pytest.approx(float(mean_of(exact, lambda x: x is None)))


@BOTH
@given(atoms())
def test_tails_excess_and_fallback(exact_below, exact):
    law = law_of(exact, exact_below=exact_below)
    check_same(law, exact)
    grid = [float(x) for x in GRID]
    best = [mean_of(exact, lambda w, x=x: x if w is None else max(x, w)) for x in GRID]
    assert law.with_fallback(grid) == pytest.approx([float(x) for x in best], abs=1e-15)
    nothing = any(x is None and p > 0 for x, p in exact)
    mean = -inf if nothing else float(sum(x * p for x, p in exact if p))
    assert float(law.mean()) == pytest.approx(mean)
    assert law.chances().sum() == pytest.approx(1 - float(law.nothing()))


@BOTH
@given(atoms(), atoms(), atoms())
def test_maximum_of_independent_laws(exact_below, a, b, c):
    def larger(x, y):
        return y if x is None else x if y is None else max(x, y)

    exact = [
        (larger(larger(x, y), z), p * q * r) for (x, p), (y, q), (z, r) in product(a, b, c)
    ]  # fmt: skip
    first, *rest = (law_of(x, exact_below=exact_below) for x in (a, b, c))
    check_same(first.largest(*rest), exact)


@BOTH
@given(atoms(), st.integers(1, 5))
def test_power_is_the_maximum_of_copies(exact_below, exact, copies):
    law = law_of(exact, exact_below=exact_below)
    grid = [float(x) for x in GRID]
    want = [float(1 - (1 - tails_of(exact, x)) ** copies) for x in GRID]
    assert law.power(copies).tail(grid) == pytest.approx(want, abs=1e-15)
    assert law.power(inf).tail(grid).tolist() == [float(tails_of(exact, x) > 0) for x in GRID]


@BOTH
@given(
    st.lists(atoms(), min_size=3, max_size=3), st.lists(probabilities(3), min_size=2, max_size=2)
)
def test_mixture_root_and_cap_row_by_row(exact_below, parts, weights):
    laws = [law_of(x, exact_below=exact_below) for x in parts]
    points = np.unique(np.concatenate([law.points for law in laws]))
    below = np.array([law.head(points) for law in laws]) if exact_below else None
    together = Law(points, np.array([law.tail(points) for law in laws]), below)
    mixed = together.mixture(np.array(weights, np.float64))
    costs = [Fraction(1, 8), Fraction(0)]
    roots = mixed.root(np.array(costs, np.float64))
    capped = mixed.cap(roots)
    for s, row in enumerate(weights):
        exact = [(x, p * w) for part, w in zip(parts, row, strict=True) for x, p in part]
        found = [x for x, p in exact if x is not None and p > 0]
        if not found:
            assert roots[s] == -inf
            assert (capped.tails[s] == 0).all()
            continue
        if costs[s] == 0:
            assert roots[s] == float(max(found))
        else:
            assert float(exact_excess(exact, Fraction(float(roots[s])))) == pytest.approx(1 / 8)
        at = Fraction(float(roots[s]))
        held = [(None if x is None else min(x, at), p) for x, p in exact]
        check_same(Law(capped.points, capped.tails[s]), held)
        assert capped.head(2.0)[s] == pytest.approx(1 - capped.tail(2.0)[s], abs=1e-15)


@given(atoms(), st.integers(1, 16))
def test_quantiles(exact, sixteenth):
    share = Fraction(sixteenth, 16)
    numbers = sorted((-inf if x is None else float(x), p) for x, p in exact)
    total, want = Fraction(0), -inf
    for x, p in numbers:
        total += p
        if p and total >= share:
            want = x
            break
    assert float(law_of(exact).quantile(float(share))) == want


def test_one_row_is_a_law_and_no_point_is_nothing():
    none = Law(np.empty(0), np.empty(0))
    assert none.root(1.0) == -inf
    assert none.with_fallback(3.0) == 3.0
    assert none.with_fallback([1.0, 2.0]).tolist() == [1.0, 2.0]
    assert none.mean() == -inf
    assert none.largest(Law.of([2.0], [1.0])).mean() == 2.0
    sure = Law.sure(np.array([3.0, -inf, 1.0]))
    assert sure.tail(1.5).tolist() == [1.0, 0.0, 0.0]
    assert sure.mean().tolist() == [3.0, -inf, 1.0]


def test_rare_prizes_keep_their_digits():
    """A chance of 1e-18 is lost in any distribution function, which is 1 there."""
    rare = Law.of([0.0, 1e18], [1.0 - 1e-18, 1e-18])
    assert float(rare.root(0.25)) == pytest.approx(0.75e18, rel=1e-15)
    many = rare.power(1e6)
    assert many.tails[-1] == pytest.approx(-np.expm1(1e6 * log1p(-1e-18)), rel=1e-15)
    assert rare.largest(rare).tails[-1] == pytest.approx(2e-18, rel=1e-15)


def test_rare_failures_keep_their_digits():
    """All of fifty copies fail with a chance of 1e-35, which is no complement of a tail."""
    box = Law.of([0.0, 1.0], [0.2, 0.8], exact_below=True)
    assert box.power(50).chances()[0] == pytest.approx(0.2**50, rel=1e-13)
    assert box.largest(*[box] * 49).chances()[0] == pytest.approx(0.2**50, rel=1e-13)
    law = Law.of([0.0, 1.0, 2.0], [0.2, 0.3, 0.5], exact_below=True)
    want = fsum(comb(50, k) * 0.2**k * 0.3 ** (50 - k) for k in range(50))
    assert law.power(50).chances()[1] == pytest.approx(want, rel=1e-13)
