"""Several prizes by group: against every policy and every choice, played out to the end."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
import pytest

from weitzman import Forest, evaluate, simulate, solve
from weitzman._kernels import jit
from weitzman.forest import expand


def random_forest(rng: np.random.Generator) -> Forest:
    n = int(rng.integers(2, 6))
    parent = [-1, -1] + [int(rng.integers(-1, i)) for i in range(2, n)]
    law = [rng.dirichlet(np.ones(2)) if up < 0 else rng.dirichlet(np.ones(2), 2) for up in parent]
    label: list[str] = []
    for up in parent:
        label.append(label[up] if up >= 0 else "abc"[int(rng.integers(3))])
    quotas = {g: int(rng.integers(0, 3)) for g in sorted(set(label)) if rng.random() < 0.7}
    sign = -1 if rng.random() < 0.3 else 1
    return Forest.from_arrays(
        parent=parent, cost=rng.uniform(0.1, 1, n).round(2), law=law, group=label,
        rewards=sign * rng.integers(-2, 8, (n, 2)).astype(float), quotas=quotas or None,
        prizes=int(rng.integers(1, parent.count(-1) + 1)),
        outside=float(sign * rng.integers(-1, 2)), minimize=sign < 0,
    )  # fmt: skip


def truth(f: Forest) -> float:
    """The best of all policies and of all choices in the end."""
    n, roots, quotas = len(f), f.roots.tolist(), dict(f.quotas)
    top = list(range(n))
    for v in range(n):
        while f.parent[top[v]] >= 0:
            top[v] = int(f.parent[top[v]])
    rewards = [(f.sign * f.rewards[int(r)][0]).tolist() for r in f.reward]
    x0, groups = f.sign * f.outside, f.groups or ("",) * n

    def stop(shown: tuple[int, ...]) -> float:
        best = dict.fromkeys(roots, -np.inf)
        for v in range(n):
            if shown[v] >= 0:
                best[top[v]] = max(best[top[v]], rewards[v][shown[v]])
        choices = (c for k in range(f.prizes + 1) for c in combinations(roots, k))
        return max(
            sum(best[r] for r in c) + (f.prizes - len(c)) * x0
            for c in choices
            if all(sum(groups[r] == g for r in c) <= q for g, q in quotas.items())
        )

    @cache
    def value(shown: tuple[int, ...]) -> float:
        out = stop(shown)
        for v in range(n):
            up = int(f.parent[v])
            if shown[v] >= 0 or (up >= 0 and shown[up] < 0):
                continue
            law = f.laws[int(f.law[v])][shown[up] if up >= 0 else 0]
            after = sum(p * value((*shown[:v], y, *shown[v + 1 :])) for y, p in enumerate(law))
            out = max(out, after - f.costs[int(f.cost[v])].item())
        return out

    return f.sign * value((-1,) * n)


@pytest.mark.parametrize("seed", range(60))
def test_value_and_evaluation(seed):
    f = random_forest(np.random.default_rng([30, seed]))
    s = solve(f)
    true = pytest.approx(truth(f), abs=1e-11)
    assert s.value == true
    found = evaluate(s)
    assert found.value == true
    assert float(found.chosen.totals().sum()) + found.outside == pytest.approx(f.prizes)


def test_compiled_as_in_numpy():
    for seed in range(12):
        f = random_forest(np.random.default_rng([31, seed]))
        s = solve(f)
        found = evaluate(s)
        jit.compile_always()
        try:
            other = solve(f)
            followed = evaluate(other)
        finally:
            jit.compile_always(False)
        assert other.value == pytest.approx(s.value, abs=1e-12)
        assert followed.opened.tolist() == pytest.approx(found.opened.tolist(), abs=1e-12)
        assert followed.chosen.data.tolist() == pytest.approx(found.chosen.data.tolist(), abs=1e-12)


def test_copies_count_one_by_one():
    f = Forest.from_arrays(
        parent=[-1, 0, -1], cost=[1, 0.5, 0.7], rewards=[[0, 4], [3, 9], [2, 7]],
        law=[[0.5, 0.5], [[0.4, 0.6], [0.1, 0.9]], [0.6, 0.4]], count=[3, 2, 2],
        group=["a", "a", "b"], quotas={"a": 1, "b": 2}, prizes=3,
    )  # fmt: skip
    copies, apart = solve(f), solve(expand(f))
    assert copies.value == pytest.approx(apart.value)
    assert evaluate(copies).value == pytest.approx(apart.value)
    assert simulate(copies, 4000, rng=2).payoff.interval(0.9999)[0] < apart.value


def test_episodes_earn_the_value():
    for seed in (3, 8, 11):
        f = random_forest(np.random.default_rng([30, seed]))
        s = solve(f)
        payoff = simulate(s, 4000, rng=1).payoff
        assert abs(payoff.mean - s.value) <= 5 * payoff.standard_error + 1e-12


def test_engineers_and_a_designer():
    """Without a second designer the third place goes to an engineer, if nobody forbids it."""
    people = {"law": [[0.5, 0.5]] * 5, "cost": [0.0] * 5, "rewards": [[0.0, 1.0]] * 5}
    role = ["engineer"] * 3 + ["designer"] * 2
    f = Forest.from_arrays(
        parent=[-1] * 5, **people, group=role, quotas={"engineer": 2, "designer": 1}
    )
    assert f.prizes == 3
    # E min(2, Bin(3, 1/2)) + E min(1, Bin(2, 1/2))
    assert solve(f).value == pytest.approx(1.375 + 0.75)
