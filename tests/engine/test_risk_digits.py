"""Risk tolerances from a hundredth to hundreds of times the range of rewards, with many digits.

The oracle plays out every policy in decimals of 400 digits: it shares nothing with the engine but
the statement of the problem.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache

import numpy as np
import pytest

from weitzman import Forest, Search, Status, evaluate, solve

DIGITS = 400


def truth(f: Forest) -> float:
    """The certainty equivalent of the best policy, by exhaustive search."""
    with localcontext() as here:
        here.prec, here.Emax, here.Emin = DIGITS, 10**9, -(10**9)
        tau, sign = Decimal(f.risk_tolerance), int(f.sign)

        def loss(payoff: Decimal) -> Decimal:
            return (-payoff / tau).exp()

        laws = [f.laws[int(i)].tolist() for i in f.law]
        costs = [np.broadcast_to(f.costs[int(c)], f.laws[int(i)].shape).tolist()
                 for c, i in zip(f.cost, f.law, strict=True)]  # fmt: skip
        rewards = [[sign * x for x in f.rewards[int(r)][0].tolist()] for r in f.reward]

        @cache
        def least(shown: tuple[int, ...], best: float) -> Decimal:
            """Expected loss of the best policy from here on; -1 stands for a closed box."""
            out = loss(Decimal(best)) if best > -np.inf else Decimal("Infinity")
            for v in range(len(f)):
                up = int(f.parent[v])
                if shown[v] >= 0 or (up >= 0 and shown[up] < 0):
                    continue
                s, total = (shown[up] if up >= 0 else 0), Decimal(0)
                for y, p in enumerate(laws[v][s]):
                    if p > 0:
                        after = least((*shown[:v], y, *shown[v + 1 :]), max(best, rewards[v][y]))
                        total += Decimal(p) * (Decimal(costs[v][s][y]) / tau).exp() * after
                out = min(out, total)
            return out

        found = least((-1,) * len(f), sign * f.outside)
        return sign * float(-tau * found.ln())


def span(f: Forest) -> float:
    x = np.append(f.rewards.data, f.outside)
    x = x[np.isfinite(x)]
    return float(x.max() - x.min())


def exponents(rng: np.random.Generator) -> float:
    """A ratio of range and tolerance, from 0.01 to 590."""
    return float(np.exp(rng.uniform(np.log(0.01), np.log(590))))


def one_box(rng: np.random.Generator) -> Forest:
    k = int(rng.integers(2, 5))
    law = rng.dirichlet(np.full(k, 0.5))
    rewards = rng.integers(-10, 10, k).astype(float) * rng.choice([0.5, 1, 7])
    outside, cost = float(rng.integers(-20, 10)), float(rng.choice([0, 0.1, 0.5, 2, 5]))
    return with_tolerance(rng, [-1], [cost], [rewards], [law], outside)


def small_forest(rng: np.random.Generator) -> Forest:
    n = int(rng.integers(2, 5))
    parent = [-1] + [int(rng.integers(-1, i)) for i in range(1, n)]
    rewards = [np.sort(rng.integers(-6, 12, 2).astype(float)) for _ in range(n)]
    law = [
        rng.dirichlet(np.ones(2)) if up < 0 else rng.dirichlet(np.ones(2), size=2) for up in parent
    ]
    cost = [float(rng.choice([0, 0.25, 1, 3])) for _ in range(n)]
    return with_tolerance(rng, parent, cost, rewards, law, float(rng.integers(-10, 6)))


def with_tolerance(rng, parent, cost, rewards, law, outside):
    values = np.append(np.concatenate(rewards), outside)
    width = float(np.ptp(values)) + max(cost) or 1.0
    minimize = bool(rng.random() < 0.2)
    sign = -1 if minimize else 1
    return Forest.from_arrays(
        parent=parent, cost=cost, rewards=[sign * r for r in rewards], law=law,
        outside=sign * outside, minimize=minimize, risk_tolerance=width / exponents(rng),
    )  # fmt: skip


def check(f: Forest) -> None:
    s, true = solve(f), truth(f)
    near = 1e-12 * (span(f) + 1)
    assert abs(s.value - true) <= near
    assert s.status is Status.EXACT
    assert s.gap == 0
    found = evaluate(s)
    assert abs(found.value - true) <= near + found.error
    assert found.error <= 1e-9 * (span(f) + 1)
    assert abs(Search(s).expected - true) <= near


@pytest.mark.parametrize("seed", range(300))
def test_one_box(seed):
    check(one_box(np.random.default_rng([1, seed])))


@pytest.mark.parametrize("seed", range(150))
def test_small_forest(seed):
    check(small_forest(np.random.default_rng([2, seed])))


@pytest.mark.parametrize(("tolerance", "value"), [(1.0, 45.69310178166073), (1e7, 49.9999987500)])
def test_the_value_is_that_of_the_only_box(tolerance, value):
    box = Forest.from_arrays(
        parent=[-1], cost=[5.0], rewards=[[50.0, 60.0]], law=[[0.5, 0.5]], outside=0.0,
        risk_tolerance=tolerance,
    )  # fmt: skip
    assert solve(box).value == pytest.approx(value, rel=1e-11)


def test_an_index_far_below_all_rewards():
    """A free fall of utility: the index is where opening and stopping are equal, in decimals."""
    box = Forest.from_arrays(
        parent=[-1], cost=[500.0], rewards=[[50.0, 60.0]], law=[[0.5, 0.5]], outside=0.0,
        risk_tolerance=1.0,
    )  # fmt: skip
    with localcontext() as here:
        here.prec = DIGITS
        half = Decimal("0.5")
        true = -float(Decimal(500) + (half * Decimal(-50).exp() + half * Decimal(-60).exp()).ln())
    assert solve(box).index(0) == pytest.approx(true, rel=1e-14)
