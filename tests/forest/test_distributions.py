"""Distributions made finite: the stated error against numeric integration, and the way back."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from weitzman._common.arrays import FloatArray
from weitzman.engine.solver import solve
from weitzman.errors import InvalidForest
from weitzman.forest.builder import Builder, line
from weitzman.forest.distributions import Discretized, discretize, discretize_rows, to_scipy
from weitzman.forest.model import Forest

CONTINUOUS = [
    stats.norm(0, 1),
    stats.norm(1e6, 3),
    stats.uniform(-1, 4),
    stats.expon(2, 5),
    stats.beta(0.5, 0.5),
    stats.lognorm(1.0),
    stats.gamma(0.3),
    stats.t(3),
    stats.pareto(2.5),
    stats.triang(0.3),
    stats.truncnorm(-1, 3),
]
METHODS = ["mean", "spread"]


def gain(distribution: Any, x: float) -> float:
    """E (R - x)^+ = integral of 1 - F from x on, in pieces between quantiles."""
    cuts = distribution.isf([0.5, 0.1, 1e-2, 1e-4, 1e-8, 0.0])
    pieces = pairwise([x, *(c for c in cuts if c > x)])
    return sum(quad(distribution.sf, a, b, epsabs=1e-10, full_output=1)[0] for a, b in pieces)


def finite_gain(law: Discretized, x: float) -> float:
    return float(law.probabilities @ np.maximum(law.rewards - x, 0.0))


def called(distribution: Any) -> str:
    return str(distribution.dist.name)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("distribution", CONTINUOUS, ids=called)
def test_the_error_is_a_bound_and_nearly_reached(distribution: Any, method: Any) -> None:
    law = discretize(distribution, 12, method=method)
    assert 2 <= len(law) <= 12
    assert np.all(np.diff(law.rewards) > 0)
    assert np.all(law.probabilities > 0)
    assert law.probabilities.sum() == pytest.approx(1, abs=1e-12)
    scale = law.rewards[-1] - law.rewards[0]
    mean = float(law.probabilities @ law.rewards)
    assert mean == pytest.approx(float(distribution.mean()), abs=1e-9 * scale)
    quantiles = distribution.ppf(np.linspace(1e-4, 1 - 1e-4, 25))
    inside = (law.rewards > quantiles[0]) & (law.rewards < quantiles[-1])
    points = np.concatenate([law.rewards[inside], quantiles])
    off = np.array([finite_gain(law, x) - gain(distribution, x) for x in points])
    rounding = 1e-9 + 1e-11 * abs(mean)
    assert np.abs(off).max() <= law.error + rounding
    assert np.abs(off).max() >= 0.8 * law.error
    wrong_side = off if method == "mean" else -off  # the mean lies below, the spread above
    assert wrong_side.max() <= 0.01 * law.error + rounding


@pytest.mark.parametrize("method", METHODS)
def test_errors_fall_with_the_square_of_the_states(method: Any) -> None:
    error = [discretize(stats.norm(), k, method=method).error for k in (25, 50, 100)]
    assert 3.5 < error[0] / error[1] < 4.5
    assert 3.5 < error[1] / error[2] < 4.5


def test_bins_are_better_than_equally_likely_ones() -> None:
    cut = stats.norm.ppf(np.linspace(0, 1, 51))
    mean = np.diff(-stats.norm.pdf(cut)) * 50
    equal = Discretized(mean, np.full(50, 0.02), 0.0)
    off = max(gain(stats.norm(), x) - finite_gain(equal, x) for x in mean)
    assert discretize(stats.norm(), 50).error < off / 5


def test_one_state_is_the_mean() -> None:
    law = discretize(stats.expon(), 1)
    assert law.rewards == pytest.approx([1.0])
    assert law.error == pytest.approx(np.exp(-1), rel=1e-3)  # E (R - 1)^+


@pytest.mark.parametrize(
    "distribution",
    [
        stats.binom(10, 0.3),
        stats.randint(-3, 4),
        stats.binom(10, 0.3, loc=5),
        stats.rv_discrete(values=([0.5, 2.25, 7], [0.25, 0.5, 0.25]))(),
        stats.rv_discrete(values=([1, 3], [0.5, 0.5])),
        stats.rv_discrete(values=([1, 3], [0.5, 0.5]))(loc=10),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_few_values_are_kept(distribution: Any, method: Any) -> None:
    law = discretize(distribution, 20, method=method)
    assert law.error == 0.0
    assert law.probabilities == pytest.approx(distribution.pmf(law.rewards), abs=1e-15)
    assert law.probabilities @ law.rewards == pytest.approx(distribution.mean(), abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "distribution",
    [stats.poisson(3), stats.poisson(1000), stats.geom(0.001), stats.zipf(4), stats.dlaplace(0.01)],
    ids=called,
)
def test_many_whole_numbers(distribution: Any, method: Any) -> None:
    law = discretize(distribution, 15, method=method)
    assert len(law) <= 15
    values = np.arange(max(distribution.support()[0], -10_000), 60_000)
    above = np.cumsum(distribution.pmf(values)[::-1])[::-1]  # P(R >= value)
    gains = np.append(np.cumsum(above[:0:-1])[::-1], 0.0)  # linear between whole numbers
    points = np.concatenate([values[values < 15_000], law.rewards[law.rewards < 15_000]])
    finite = np.array([finite_gain(law, x) for x in points])
    off = finite - np.interp(points, values, gains)
    assert np.abs(off).max() <= law.error + 1e-9
    assert np.abs(off).max() >= 0.9 * law.error
    wrong_side = off if method == "mean" else -off
    assert wrong_side.max() <= 1e-8


def test_anything_with_quantiles_will_do() -> None:
    class Half:
        """Uniform on [0, 1] with probability 1/2, else exactly 2."""

        def cdf(self, x: Any) -> Any:
            x = np.asarray(x)
            return np.where(x >= 2, 1.0, np.clip(x, 0, 1) / 2)

        def ppf(self, q: Any) -> Any:
            q = np.asarray(q)
            return np.where(q > 0.5, 2.0, 2 * q)

    law = discretize(Half(), 10)
    assert law.rewards[-1] == 2.0
    assert law.probabilities[-1] == pytest.approx(0.5, abs=1e-12)
    assert law.probabilities @ law.rewards == pytest.approx(1.25, abs=1e-9)
    assert law.error < 0.002


def test_a_heavy_tail_of_whole_numbers_goes_to_its_mean() -> None:
    heavy = stats.zipf(2.2)
    law = discretize(heavy, 20)
    beyond = heavy.sf(10**6) * 10**6 / 0.2  # about E (R - 10^6)^+, by an integral
    assert law.rewards[-1] > 10**6
    assert law.probabilities @ law.rewards == pytest.approx(heavy.mean(), rel=1e-9)
    assert law.error > 0.9 * beyond


def test_a_mean_that_differs_counts_as_error() -> None:
    class Doubtful:
        cdf, ppf = stats.norm().cdf, stats.norm().ppf

        def mean(self) -> float:
            return 0.5

    assert discretize(Doubtful(), 50).error > 0.5
    assert discretize(stats.norm(), 50).error < 0.001


@pytest.mark.parametrize(
    ("distribution", "more", "message"),
    [
        (stats.cauchy(), {}, r"a finite mean, but that of cauchy is nan"),
        (stats.pareto(1), {}, r"a finite mean, but that of pareto is inf. Cut off its tail"),
        (stats.norm(0, -1), {}, r"a finite mean, but that of norm is nan"),
        (stats.poisson(1e14), {}, r"nearly all its mass on 1000000 values, but poisson leaves"),
        ([0.5, 0.5], {}, r"must have `cdf` and `ppf`, but list lacks one of them"),
        (stats.norm(), {"n_states": 0}, r"`n_states` must be at least 1, but is 0"),
        (
            stats.norm(),
            {"n_states": 1, "method": "spread"},
            r"`n_states` must be at least 2, but is 1",
        ),
        (stats.norm(), {"method": "median"}, r'must be "mean" or "spread", but is \'median\''),
    ],
)
def test_discretize_errors(distribution: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidForest, match=message):
        discretize(distribution, **more)


@given(
    st.lists(st.tuples(st.floats(-5, 5), st.floats(0.1, 3)), min_size=1, max_size=4),
    st.integers(2, 20),
)
def test_rows_on_common_states(kinds: list[tuple[float, float]], states: int) -> None:
    rows = [stats.norm(*kind) for kind in kinds]
    nodes, law, error = discretize_rows(rows, states)
    assert len(nodes) <= states
    assert law.shape == (len(rows), len(nodes))
    assert law.sum(axis=1) == pytest.approx(1, abs=1e-12)
    assert law @ nodes == pytest.approx([m for m, _ in kinds], abs=1e-9)
    for (m, s), p in zip(kinds, law, strict=True):
        x = np.concatenate([m + s * np.linspace(-3, 3, 31), nodes])
        z = (x - m) / s
        true = s * (stats.norm.pdf(z) - z * stats.norm.sf(z))
        off = np.maximum(nodes - x[:, None], 0) @ p - true
        assert -0.01 * error - 1e-9 <= off.min()  # from the fine table
        assert off.max() <= error + 1e-9


def test_common_states_serve_the_rarest_row_too() -> None:
    rows = [stats.norm(0, 1)] * 49 + [stats.norm(20, 1)]
    fair = discretize_rows([stats.norm(0, 1), stats.norm(20, 1)], 30)[2]
    assert discretize_rows(rows, 30)[2] == pytest.approx(fair, rel=0.2)


def test_common_states_of_discrete_rows_are_exact() -> None:
    nodes, law, error = discretize_rows([stats.binom(2, 0.5), stats.randint(1, 5)], 10)
    assert nodes.tolist() == [0, 1, 2, 3, 4]
    assert law == pytest.approx(np.array([[0.25, 0.5, 0.25, 0, 0], [0, 0.25, 0.25, 0.25, 0.25]]))
    assert error == 0.0


# Inside a forest


def normal_index(m: float, s: float, cost: float) -> float:
    """Root in x of E (R - x)^+ = cost for a normal R, by bisection."""
    low, high = m - 50 * s, m + 50 * s
    for _ in range(200):
        x = (low + high) / 2
        z = (x - m) / s
        low, high = (x, high) if s * (stats.norm.pdf(z) - z * stats.norm.sf(z)) > cost else (low, x)
    return low


def test_a_box_may_hold_a_distribution() -> None:
    search = Builder(outside=0.3).add("A", cost=0.1, outcomes=stats.norm(1, 2), n_states=200)
    forest, error = search.build(), search.errors["A"]
    assert forest.laws.shape[0].tolist() == [1, 200]
    solution = solve(forest)
    assert solution.index("A") == pytest.approx(normal_index(1, 2, 0.1), abs=0.01)
    true = 0.3 - 0.1 + gain(stats.norm(1, 2), 0.3)
    assert 0 <= true - solution.value <= error
    assert forest.state("A", float(forest.rewards.data[7])) == 7


def test_both_methods_bracket_the_value() -> None:
    values = []
    for method in METHODS:
        law = discretize(stats.norm(1, 2), 30, method=method)  # type: ignore[arg-type]
        search = Builder(outside=0.3)
        values.append(solve(search.add("A", cost=0.1, outcomes=law).build()).value)
        assert search.errors == {"A": law.error}
    true = 0.2 + gain(stats.norm(1, 2), 0.3)
    assert values[0] <= true <= values[1]
    assert values[1] - values[0] < 0.01


def test_children_may_hold_distributions() -> None:
    after = {"good": stats.norm(5, 1), "bad": stats.norm(1, 3)}
    search = Builder().add(
        "A", cost=0, outcomes={"good": 0.5, "bad": 0.5}, rewards={"good": None, "bad": None}
    )
    search.add("B", parent="A", cost=0.2, outcomes=after, n_states=150)
    search.add("C", parent="A", cost=0.2, outcomes=stats.norm(0, 1), n_states=150)
    solution = solve(search.build())
    assert solution.index("B", "good") == pytest.approx(normal_index(5, 1, 0.2), abs=0.01)
    assert solution.index("B", "bad") == pytest.approx(normal_index(1, 3, 0.2), abs=0.01)
    assert solution.index("C", "bad") == solution.index("C", "good")
    assert set(search.errors) == {"B", "C"}
    assert 0 < search.errors["C"] < search.errors["B"] < 0.002


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {"outcomes": stats.norm(), "rewards": {1: 2}},
            r"there is also the rewards of box 'B'. Leave them out",
        ),
        ({"outcomes": {1: stats.norm(), 2: {0: 1}}}, r"all distributions or all mappings"),
        ({"outcomes": {1: stats.norm(), 2: 0.5}}, r"box 'B' must be .* but they mix both"),
        ({"outcomes": {1: stats.norm()}, "parent": None}, r"two levels deep though it is a root"),
        ({"outcomes": stats.cauchy()}, r"must have a finite mean"),
    ],
)
def test_builder_errors(more: dict[str, Any], message: str) -> None:
    search = Builder().add("A", cost=0, outcomes={1: 0.5, 2: 0.5})
    with pytest.raises(InvalidForest, match=message):
        search.add("B", **({"parent": "A", "cost": 1} | more)).build()


# The way out


def laws() -> Forest:
    return Forest.from_arrays(
        parent=[-1, 0, 0], cost=[1, 1, 1], rewards=[[0.5, 3, 3], [1, 2, 4], [-np.inf, 2, 4]],
        law=[[0.25, 0.25, 0.5], [[1, 0, 0], [0, 0.5, 0.5], [0, 1, 0]], np.eye(3)],
        states=[["a", "b", "c"], None, None],
    )  # fmt: skip


def masses(distribution: Any) -> dict[float, float]:
    law = discretize(distribution, 10)
    pairs: tuple[FloatArray, FloatArray] = law.rewards, law.probabilities
    return dict(zip(pairs[0].tolist(), pairs[1].tolist(), strict=True))


def test_to_scipy() -> None:
    root = to_scipy(laws(), 0)
    assert root.pmf([0.5, 3]).tolist() == [0.25, 0.75]
    assert root.cdf([0, 0.5, 1, 3]).tolist() == [0, 0.25, 0.25, 1]
    assert root.mean() == 2.375
    assert masses(root) == {0.5: 0.25, 3: 0.75}
    assert masses(to_scipy(laws(), 1, "a")) == {1: 1}
    assert masses(to_scipy(laws(), 1, "b")) == {2: 0.5, 4: 0.5}
    assert masses(to_scipy(laws(), 2, "c")) == {4: 1}


def test_to_scipy_errors() -> None:
    with pytest.raises(InvalidForest, match=r"box '0' depends on no state, but .* is 'a'. Leave"):
        to_scipy(laws(), 0, "a")
    with pytest.raises(InvalidForest, match=r"box '1' depends on the state of '0', .* Give one"):
        to_scipy(laws(), 1)
    with pytest.raises(InvalidForest, match=r"box '2' has states without a reward"):
        to_scipy(laws(), 2, "a")


def test_scipy_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(ImportError, match=r'needs scipy, which .*pip install "weitzman\[scipy\]"'):
        to_scipy(line([[1.0]], rewards=[1], cost=1), 0)


SPREAD = {
    "lognorm": stats.lognorm(1.2), "norm": stats.norm(10, 2), "gamma": stats.gamma(0.5),
    "beta": stats.beta(0.5, 0.5), "t": stats.t(3), "pareto": stats.pareto(2.5),
}  # fmt: skip


@given(name=st.sampled_from(sorted(SPREAD)), n=st.integers(2, 80), q=st.floats(0.001, 0.9999))
@example(name="lognorm", n=40, q=0.99145)  # x = 17.5: too low where cells were put on their means
def test_spread_never_underestimates(name: str, n: int, q: float) -> None:
    law, x = SPREAD[name], float(SPREAD[name].ppf(q))
    above, off, *_ = quad(law.sf, x, law.support()[1], limit=500, epsabs=0, epsrel=1e-11)
    found = discretize(law, n, method="spread")
    worth = float(found.probabilities @ np.maximum(found.rewards, x))
    rounding = off + 1e-12 * (abs(x) + found.rewards.max())
    assert x + above - rounding <= worth <= x + above + found.error + rounding
