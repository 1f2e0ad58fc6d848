"""Forests cut out of forests by one function, and when two forests are equal."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from weitzman import Builder, Forest, line, side_by_side, solve
from weitzman.forest import Pool, expand


def random_forest(seed: int, **more: Any) -> Forest:
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(2, 12)), int(rng.integers(1, 4))
    parent = [int(rng.integers(-1, i)) for i in range(n)]
    law = [rng.dirichlet(np.ones(k), None if p < 0 else k) for p in parent]
    cost = [
        [0.25, rng.random((1 if p < 0 else k, k)), 0.5 + rng.random((1 if p < 0 else k, 1))][
            int(rng.integers(3))
        ]
        for p in parent
    ]
    return Forest.from_arrays(
        parent=parent, cost=cost, rewards=rng.integers(0, 9, (n, k)) / 1.0, law=law,
        count=rng.integers(1, 3, n), names=[f"b{v}" for v in range(n)],
        states=[[f"s{y}" for y in range(k)]] * n, **more,
    )  # fmt: skip


def boxes_of(f: Forest) -> list[Any]:
    """All that is said of each box, written out by hand."""
    return [
        (
            f.parent[v],
            f.count[v],
            f.endless[v],
            f.laws[int(f.law[v])].tolist(),
            f.rewards[int(f.reward[v])].tolist(),
            f.costs[int(f.cost[v])].tolist(),
            f.name(v),
            f.states(v),
        )
        for v in range(len(f))
    ]


@pytest.mark.parametrize("seed", range(20))
def test_taking_keeps_what_is_said_of_each_box(seed: int) -> None:
    f = random_forest(seed)
    top = int(f.roots[-1])
    keep = np.sort(f.within(top))
    taken = f.take(keep)
    old, new = boxes_of(f), boxes_of(taken)
    place = {int(v): i for i, v in enumerate(keep)}
    for i, v in enumerate(keep.tolist()):
        assert new[i][0] == place.get(int(f.parent[v]), -1)
        assert new[i][1:] == old[v][1:]
    assert len(taken.laws) == len(np.unique(f.law[keep]))  # and no matrix that is not needed


@pytest.mark.parametrize("seed", range(20))
def test_a_box_after_a_state_has_that_row(seed: int) -> None:
    f = random_forest(seed)
    for v in np.flatnonzero(f.parent >= 0).tolist():
        size = f.laws.shape[f.law[v], 0]
        for s in range(size):
            alone = f.take([v], parent=[-1], after=[s])
            law, cost = f.laws[int(f.law[v])], f.costs[int(f.cost[v])]
            assert alone.laws[0].tolist() == law[s : s + 1].tolist()
            assert alone.costs[0].tolist() == cost[s if len(cost) > 1 else 0 :][:1].tolist()
            assert alone.subtree(0) == alone.take([0], count=[1])


def test_pools_give_matrices_and_rows() -> None:
    pool = Pool(np.arange(10.0), np.array([0, 6, 10]), np.array([[2, 3], [1, 4]]))
    some = pool.take(np.array([1, 0, 0]), np.array([1, 1, -1]))
    assert [m.tolist() for m in some] == [
        [[6.0, 7.0, 8.0, 9.0]],
        [[3.0, 4.0, 5.0]],
        [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]],
    ]


@pytest.mark.parametrize("seed", range(20))
def test_equal_forests_are_equal_however_they_are_stored(seed: int) -> None:
    f = random_forest(seed)
    again = random_forest(seed)
    # the matrices of another forest come first in these pools
    mixed = side_by_side(random_forest(seed + 100), f).take(
        np.arange(len(f)) + len(random_forest(seed + 100)), names=f.names
    )
    for other in (again, mixed, pickle.loads(pickle.dumps(f))):
        assert f == other
        assert hash(f) == hash(other)
    assert len({f, again}) == 1


def test_every_change_makes_another_forest() -> None:
    def chest(**change: Any) -> Forest:
        box = {"cost": 1, "outcomes": {"a": 0.5, "b": 0.5}, "rewards": {"a": 1, "b": 2}}
        return (
            Builder(outside=change.pop("outside", 0)).add(**({"name": "A"} | box | change)).build()
        )

    changes: list[dict[str, Any]] = [
        {"cost": 2}, {"outcomes": {"a": 0.25, "b": 0.75}}, {"rewards": {"a": 1, "b": 3}},
        {"outcomes": {"a": 0.5, "c": 0.5}, "rewards": {"a": 1, "c": 2}}, {"name": "B"},
        {"count": 2}, {"outside": 1},
    ]  # fmt: skip
    assert chest() == chest()
    for change in changes:
        assert chest() != chest(**change), change
    assert chest() != "chest"


def test_copies_written_out_are_the_same_search() -> None:
    f = random_forest(3)
    assert solve(expand(f)).value == pytest.approx(solve(f).value, abs=1e-12)
    assert expand(expand(f)) == expand(f)


def test_an_endless_line_is_cut_after_its_next_box() -> None:
    endless = line(([0.5, 0.5], [[0.5, 0.5], [0.1, 0.9]]), length=np.inf, rewards=[0, 9], cost=1)
    tail = endless.subtree(1, 1)
    assert tail.endless.tolist() == [False, True]
    assert tail.laws[int(tail.law[0])].tolist() == [[0.1, 0.9]]
    assert solve(tail).index(0) == solve(endless).index(1, 1)
