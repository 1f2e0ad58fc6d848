"""Boxes of more than 16 states, for which only the products that matter are done.

The oracle takes few states. So each state of a small problem is split into several with the same
reward and the same future: the value, the indices and what a policy does must stay the same.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import random_problems
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from weitzman import Forest, evaluate, solve
from weitzman.engine.indices import Policy

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import baselines

PIECES = 19  # of every state: with the padding, other numbers than those of the states


def close(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= 1e-10 * max(1.0, abs(b))


def split(problem: reference.Problem, seed: int) -> tuple[Forest, list[np.ndarray]]:
    """A forest with every state in shuffled pieces, and the state that each piece belongs to."""
    a, rng = reference.to_arrays(problem), np.random.default_rng(seed)
    of = [rng.permutation(np.repeat(np.arange(len(r)), PIECES)) for r in a["rewards"]]
    law = []
    for i, p in enumerate(a["parent"]):
        whole = np.atleast_2d(np.array(a["law"][i], float))
        share = rng.dirichlet(np.ones(PIECES), whole.shape[1])
        mine = np.empty(len(of[i]))
        for y in range(whole.shape[1]):
            mine[of[i] == y] = share[y]
        above = of[p] if p >= 0 else np.zeros(1, np.int64)
        rows = whole[above][:, of[i]] * mine
        law.append(rows if p >= 0 else rows[0])
    rewards = [np.array(r, float)[s] for r, s in zip(a["rewards"], of, strict=True)]
    pieces = Forest.from_arrays(
        parent=a["parent"], cost=a["cost"], rewards=rewards, law=law, outside=a["outside"]
    )
    return pieces, of


PROBLEMS = random_problems.forests(max_boxes=5, costs="fixed")


@settings(max_examples=40)
@given(PROBLEMS, st.integers(0, 10**6))
def test_value_and_indices_are_those_of_the_oracle(problem, seed):
    f, of = split(problem, seed)
    s = solve(f, exact=True)
    value = float(reference.optimal_value(problem))
    assert close(s.value, value)
    truth = reference.index_rows(reference.exact_indices(problem))
    for i, p in enumerate(f.parent):
        want = np.array(truth[i])[of[p]] if p >= 0 else np.array(truth[i])
        assert all(map(close, s.indices(i), want))


@settings(max_examples=40)
@given(PROBLEMS, st.integers(0, 10**6), st.data())
def test_any_index_policy_is_evaluated_as_by_enumeration(problem, seed, data):
    f, of = split(problem, seed)
    rows = reference.index_rows(data.draw(random_problems.arbitrary_indices(problem)))
    truth = reference.follow_indices(problem, rows)
    pieces = [
        np.array(r)[of[p]] if p >= 0 else np.array(r) for r, p in zip(rows, f.parent, strict=True)
    ]
    start = np.cumsum([0, *map(len, pieces)])[:-1]
    e = evaluate(Policy.of(f, start, np.concatenate(pieces)))
    assert close(e.value, float(truth.value))
    assert all(map(close, e.opened, map(float, truth.opened)))
    assert close(e.outside, float(truth.outside))
    for box, row in enumerate(truth.chosen):
        assert all(map(close, np.bincount(of[box], e.chosen[box], len(row)), map(float, row)))


@pytest.mark.parametrize("k", [17, 24, 33])
@pytest.mark.parametrize("shape", ["line", "tree"])
def test_large_boxes_agree_with_the_plain_recursion(k, shape):
    rng, n = np.random.default_rng(k), 12
    parent = np.arange(n) - 1 if shape == "line" else (np.arange(n) - 1) // 2
    law = rng.dirichlet(np.full(k, 0.3), (n, k))
    f = Forest.from_arrays(
        parent=parent, cost=rng.uniform(0.001, 0.05, n), rewards=rng.random((n, k)),
        law=[m[0] if p < 0 else m for m, p in zip(law, parent, strict=True)],
    )  # fmt: skip
    value, index = baselines.plain_solve(f)
    s = solve(f, exact=True)
    assert close(s.value, value)
    for i in range(n):
        assert np.allclose(s.indices(i), index[i], rtol=1e-11, atol=0)
    e = evaluate(s)
    assert close(e.value, s.value)
    assert abs(e.residual) < 1e-12
