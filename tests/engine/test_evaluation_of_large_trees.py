"""Evaluation of trees too large to enumerate, against the same equations on a dense grid."""

import numpy as np
import pytest

from weitzman import Forest, evaluate, solve
from weitzman.engine import evaluation
from weitzman.engine.indices import Policy


def _forest(rng, boxes, k, back):
    """One tree, or several: a box hangs on one of the last ``back``; rewards are all different."""
    number = np.arange(boxes)
    parent = number - 1 - rng.integers(0, np.minimum(np.maximum(number, 1), back))
    parent[0] = -1
    parent[boxes // 2] = -1
    law = rng.dirichlet(np.full(k, 0.5), (boxes, k))
    law[parent < 0] = law[parent < 0][:, :1]
    return Forest.from_arrays(
        parent=parent, cost=rng.uniform(0.001, 0.02, boxes), rewards=rng.random((boxes, k)),
        law=law, outside=0.1,
    )  # fmt: skip


def _dense(forest, sigma):
    """Chances to be opened and chosen, by the equations of the way back at every point."""
    f, n = forest, len(forest)
    reward = [f.rewards[int(f.reward[v])][0] for v in range(n)]
    law = [f.laws[int(f.law[v])][: len(sigma[v])] for v in range(n)]
    x = np.unique(np.concatenate([*reward, *sigma, [f.outside]]))
    child = [np.flatnonzero(f.parent == v) for v in range(n)]
    below = [None] * n  # P(capped value <= x), (states of the parent, points)
    under = [None] * n  # the same of all children together, (own states, points)
    for v in reversed(range(n)):
        under[v] = np.ones((len(reward[v]), len(x)))
        for u in child[v]:
            under[v] = under[v] * below[u]
        after = under[v] * (x >= reward[v][:, None])
        below[v] = np.where(x >= sigma[v][:, None], 1.0, law[v] @ after)
    opened, chosen = [None] * n, [None] * n
    against = {}
    for r in f.roots:
        against[r] = (x >= f.outside)[None] * np.prod([below[q] for q in f.roots if q != r], axis=0)
    for v in range(n):
        at = np.searchsorted(x, sigma[v])
        opened[v] = against[v][np.arange(len(at)), at]
        capped = np.where(x >= sigma[v][:, None], opened[v][:, None], against[v])
        h = law[v].T @ capped
        place = np.searchsorted(x, reward[v])
        each = np.arange(len(place))
        chosen[v] = h[each, place] * under[v][each, place]
        for u in child[v]:
            others = np.prod([below[q] for q in child[v] if q != u], axis=0)
            against[u] = h * (x >= reward[v][:, None]) * others
    return opened, chosen


def _errors(forest, index_at, index):
    """Largest differences from the dense equations: of being opened, and of being chosen."""
    rows = [1 if p < 0 else forest.rewards.shape[forest.reward[p], 1] for p in forest.parent]
    sigma = [index[a : a + k] for a, k in zip(index_at, rows, strict=True)]
    opened, chosen = _dense(forest, sigma)
    found = evaluate(Policy.of(forest, index_at, index))
    boxes = range(len(forest))
    return [
        max(np.abs(found.opened_after[v][: rows[v]] - opened[v]).max() for v in boxes),
        max(np.abs(found.chosen[v] - chosen[v]).max() for v in boxes),
    ]


@pytest.mark.parametrize(("boxes", "k", "back"), [(60, 20, 3), (150, 5, 20), (60, 30, 1)])
def test_optimal_and_other_policies_on_large_trees(boxes, k, back):
    rng = np.random.default_rng([boxes, k])
    forest = _forest(rng, boxes, k, back)
    index_at, index = solve(forest).index_columns()
    other = index + rng.normal(0, 0.1, len(index))
    bold = rng.random(len(index)) + 0.3  # opens far more
    for policy in (index, other, bold):
        opened, chosen = _errors(forest, index_at, policy)
        assert opened <= 1e-12
        assert chosen <= 1e-12


def test_boxes_out_of_reach_change_nothing(monkeypatch):
    rng = np.random.default_rng(5)
    solution = solve(_forest(rng, 3000, 3, 2))
    in_reach, kept = evaluation.in_reach, []
    monkeypatch.setattr(
        evaluation, "in_reach", lambda *given: kept.append(in_reach(*given)) or kept[-1]
    )
    some = evaluate(solution)
    assert 0 < len(kept[0]) < 1500
    monkeypatch.setattr(evaluation, "in_reach", lambda policy, weights, order: order)
    every = evaluate(solution)
    assert np.allclose(some.opened_after.data, every.opened_after.data, rtol=0, atol=1e-15)
    assert np.allclose(some.chosen.data, every.chosen.data, rtol=0, atol=1e-15)
    assert some.value == pytest.approx(every.value, rel=1e-14)


@pytest.mark.parametrize("terms", [{}, {"prizes": 2}, {"duration": 1.0, "rate": 0.05}])
def test_many_siblings_of_which_few_are_opened(terms, monkeypatch):
    rng = np.random.default_rng(6)
    n, k = 800, 3
    parent = np.where(np.arange(n) < 2, -1, rng.integers(0, 2, n))
    parent[700:] = rng.integers(2, 700, 100)
    law = rng.dirichlet(np.ones(k), (n, k))
    law[parent < 0] = law[parent < 0][:, :1]
    solution = solve(
        Forest.from_arrays(
            parent=parent, cost=rng.uniform(0.01, 0.1, n), rewards=rng.random((n, k)), law=law,
            count=rng.integers(1, 3, n), **terms,
        )
    )  # fmt: skip
    in_reach, kept = evaluation.in_reach, []
    monkeypatch.setattr(
        evaluation, "in_reach", lambda *given: kept.append(in_reach(*given)) or kept[-1]
    )
    some = evaluate(solution)
    assert len(kept[0]) < n / 2
    monkeypatch.setattr(evaluation, "in_reach", lambda policy, weights, order: order)
    every = evaluate(solution)
    assert np.allclose(some.opened_after.data, every.opened_after.data, rtol=0, atol=1e-14)
    assert np.allclose(some.chosen.data, every.chosen.data, rtol=0, atol=1e-14)
