"""One changed cost, law or list of rewards: the same bits as solving anew, on the way alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from plain_forests import forest_of
from random_problems import forests

import weitzman
from weitzman import Forest
from weitzman.engine import Resolver, resolving, ways_up
from weitzman.errors import InvalidForest, UnknownName


def same(a, b) -> bool:
    """To the last bit, with the same work."""
    return (
        (a.value, a.gap, a.status, a.breakpoints) == (b.value, b.gap, b.status, b.breakpoints)
        and all(map(np.array_equal, a.index_columns(), b.index_columns()))
        and a.forest == b.forest
        and a.first_box == b.first_box
    )


def with_law(f: Forest, box: int, law) -> Forest:
    """The forest with another law of one box."""
    columns = {name: getattr(f, name) for name in f.__dataclass_fields__ if name[0] != "_"}
    which = f.law.copy()
    which[box] = len(f.laws)
    return Forest(**columns | {"law": which, "laws": f.laws.with_more([np.atleast_2d(law)])})


def trees(boxes: int, seed: int = 0, **terms) -> Forest:
    """Trees of seven boxes; leaves and some whole trees are equal."""
    rng = np.random.default_rng(seed)
    parent = np.array([i - 1 - int(rng.integers(max(i % 7, 1))) for i in range(boxes)])
    parent[::7] = -1
    law = rng.dirichlet(np.ones(3), (boxes, 3))
    cost = rng.uniform(0.01, 0.1, boxes)
    leaf = np.bincount(parent + 1, minlength=boxes + 1)[1:] == 0
    law[leaf], cost[leaf] = law[1], 0.05
    for start in range(21, boxes - 7, 35):  # equal to the first tree
        parent[start : start + 7] = np.where(parent[:7] < 0, -1, parent[:7] + start)
        law[start : start + 7], cost[start : start + 7] = law[:7], cost[:7]
    law[parent < 0] = law[parent < 0][:, :1]
    return Forest.from_arrays(
        parent=parent, cost=cost, rewards=np.linspace(0, 1, 3), law=law, **terms
    )


def with_rewards(f: Forest, box: int, rewards) -> Forest:
    """The forest with other rewards of one box."""
    columns = {name: getattr(f, name) for name in f.__dataclass_fields__ if name[0] != "_"}
    which = f.reward.copy()
    which[box] = len(f.rewards)
    names = (*f.state_names, f.state_names[int(f.reward[box])])
    pool = f.rewards.with_more([np.reshape(rewards, (1, -1))])
    return Forest(**columns | {"reward": which, "rewards": pool, "state_names": names})


KINDS = {
    "plain": {},
    "minimize": {"minimize": True, "outside": 0.9},
    "copies": {"count": np.arange(140) % 3 + 1},
    "time": {"duration": 0.5, "rate": 0.1},
    "risk": {"risk_tolerance": 2.0},
    "prizes": {"prizes": 2},
    "prizes and copies": {"prizes": 3, "count": np.arange(140) % 3 + 1},
    "must take": {"outside": -np.inf},
    "risk, minimize": {"risk_tolerance": 2.0, "minimize": True, "outside": 0.9},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_box_may_change_its_cost_and_its_law(kind):
    forest = trees(140, **KINDS[kind])
    rng = np.random.default_rng(1)
    resolver = Resolver(forest, range(len(forest)))
    for box in rng.permutation(len(forest))[:40].tolist():
        cost = float(rng.uniform(0, 0.2))
        rows = 1 if forest.parent[box] < 0 else 3
        law = rng.dirichlet(np.ones(3), rows)
        dearer = forest.changed(cost={box: cost})
        assert same(resolver.change(box, cost=cost).solution(), weitzman.solve(dearer))
        found = resolver.change(box, cost=cost, law=law)
        anew = weitzman.solve(with_law(dearer, box, law))
        assert same(found.solution(), anew)
        assert (found.value, found.first_box) == (anew.value, anew.first_box)
        assert found.first_index == anew.forest.sign * max(
            anew.forest.sign * anew.index(int(r)) for r in forest.roots
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shared", [True, False])
def test_every_box_may_change_its_rewards(kind, shared, monkeypatch):
    forest = trees(140, **KINDS[kind])
    rng = np.random.default_rng(2)
    if not shared:
        for box in range(0, 140, 2):
            forest = with_rewards(forest, box, rng.random(3))
    resolver = Resolver(forest, range(len(forest)))
    monkeypatch.setattr(resolving, "solve", None)  # nothing is solved anew
    for box in rng.permutation(len(forest))[:25].tolist():
        rewards, cost = rng.random(3), float(rng.uniform(0, 0.2))
        changed = with_rewards(forest, box, rewards)
        assert same(resolver.change(box, rewards=rewards).solution(), weitzman.solve(changed))
        found = resolver.change(box, rewards=rewards, cost=cost).solution()
        assert same(found, weitzman.solve(changed.changed(cost={box: cost})))


@pytest.mark.parametrize("kind", KINDS)
def test_rewards_beyond_all_others(kind):
    forest = trees(140, **KINDS[kind])
    for box in (0, 1, 30, 139):
        for rewards in ([0.0, 0.5, 3.0], [-2.0, 0.5, 1.0]):
            found = Resolver(forest, [box]).change(box, rewards=rewards)
            anew = weitzman.solve(with_rewards(forest, box, rewards))
            assert found.gap <= 1e-9 * 5
            assert abs(found.value - anew.value) <= found.gap + anew.gap + 1e-15
            ends = found.solution().index_columns()[1], anew.index_columns()[1]
            assert np.allclose(*ends, rtol=0, atol=1e-6)
            assert found.status == anew.status


def test_many_parts_and_threads():
    for terms in ({}, {"prizes": 5}, {"risk_tolerance": 1.5}, {"duration": 1.0, "rate": 0.02}):
        forest = trees(6001, **terms)
        resolver = Resolver(forest, [0, 21, 3000, 6000], threads=2)
        for box in (0, 21, 3000, 6000):
            found = resolver.change(box, cost=0.001).solution()
            assert same(found, weitzman.solve(forest.changed(cost={box: 0.001}), threads=1))
            found = resolver.change(box, rewards=[0.0, 0.3, 0.9]).solution()
            assert same(found, weitzman.solve(with_rewards(forest, box, [0.0, 0.3, 0.9])))


def test_the_floor_of_children_follows_the_rewards():
    """Values of children are thinned where their parent looks: its rewards decide where."""
    rng = np.random.default_rng(5)
    n = 301
    law = rng.dirichlet(np.ones(4), (n, 4))
    law[0] = law[0, :1]
    parent = np.where(np.arange(n) < 40, np.arange(n) - 1, rng.integers(0, 39, n))
    rewards = rng.random((n, 4))
    rewards[:2] = [[0.0, 0.1, 0.2, 1.0], [0.8, 0.85, 0.9, 0.95]]
    forest = Forest.from_arrays(
        parent=parent, cost=rng.uniform(0.001, 0.01, n), rewards=rewards, law=law
    )
    resolver = Resolver(forest, [0, 1, 20], tolerance=1e-3)
    for box in (0, 1, 20):
        for low in (0.0, 0.3, 0.7):
            new = [low, low + 0.1, low + 0.2, 0.99]
            found = resolver.change(box, rewards=new).solution()
            assert same(found, weitzman.solve(with_rewards(forest, box, new), tolerance=1e-3))


@settings(deadline=None, max_examples=60)
@given(forests(max_boxes=5, signals=True), st.data())
def test_small_problems_of_every_kind(problem, data):
    forest = forest_of(problem)
    box = data.draw(st.integers(0, len(forest) - 1))
    resolver = Resolver(forest, [box])
    shape = forest.laws[int(forest.law[box])].shape
    price = st.integers(0, 12).map(lambda z: z / 8)
    numbers = st.lists(price, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])
    for cost in (data.draw(price), np.reshape(data.draw(numbers), shape)):
        changed = forest.changed(cost={box: cost})
        assert same(resolver.change(box, cost=cost).solution(), weitzman.solve(changed))
    finite = np.append(forest.rewards.data, forest.outside)
    finite = finite[np.isfinite(finite)]
    within = st.sampled_from(sorted({*finite.tolist(), *((finite + finite.min()) / 2).tolist()}))
    rewards = data.draw(st.lists(within, min_size=shape[1], max_size=shape[1]))
    changed = with_rewards(forest, box, rewards)
    assert same(resolver.change(box, rewards=rewards).solution(), weitzman.solve(changed))


TERMS = st.sampled_from(
    [
        lambda f: {"risk_tolerance": 3.0},
        lambda f: {"factors": replace(f.costs, data=0.9 ** (1 + f.costs.data))},
        lambda f: {"prizes": min(2, int(f.count[f.roots].sum()))},
    ]
)


@settings(deadline=None, max_examples=80)
@given(forests(max_boxes=6), TERMS, st.data())
def test_small_problems_with_terms(problem, terms, data):
    forest = forest_of(problem)
    assume(np.isfinite(forest.outside))
    forest = replace(forest, **terms(forest))
    box = data.draw(st.integers(0, len(forest) - 1))
    resolver = Resolver(forest, [box])
    cost = data.draw(st.integers(0, 12)) / 8
    states = len(forest.states(box))
    within = st.sampled_from(sorted(set(forest.rewards.data.tolist())))
    rewards = data.draw(st.lists(within, min_size=states, max_size=states))
    found = resolver.change(box, cost=cost).solution()
    assert same(found, weitzman.solve(forest.changed(cost={box: cost})))
    changed = with_rewards(forest, box, rewards)
    assert same(resolver.change(box, rewards=rewards).solution(), weitzman.solve(changed))


@pytest.mark.parametrize("terms", [{}, {"duration": 1.0, "rate": 0.1}, {"minimize": True}])
def test_endless_lines_beside_and_on_the_way(terms, monkeypatch):
    forest = Forest.from_arrays(
        parent=[-1, 0, 0, 2], cost=[0.1, 0.2, 0.1, 0.3], rewards=[0.0, 1.0, 2.0],
        law=[[0.5, 0.3, 0.2], *np.random.default_rng(3).dirichlet(np.ones(3), (3, 3))],
        endless=[False, True, False, False], outside=1.5 if terms.get("minimize") else 0.0, **terms,
    )  # fmt: skip
    resolver = Resolver(forest, range(4))
    monkeypatch.setattr(resolving, "solve", None)
    for box in range(4):
        found = resolver.change(box, cost=0.15).solution()
        assert same(found, weitzman.solve(forest.changed(cost={box: 0.15})))
        law = np.eye(3)[[1]] if box == 0 else np.full((3, 3), 1 / 3)
        found = resolver.change(box, law=law).solution()
        assert same(found, weitzman.solve(with_law(forest, box, law)))
        found = resolver.change(box, rewards=[0.5, 1.0, 1.75]).solution()
        assert same(found, weitzman.solve(with_rewards(forest, box, [0.5, 1.0, 1.75])))


@pytest.mark.parametrize("kind", ["plain", "time", "risk", "prizes"])
def test_only_the_way_to_the_root_is_done(kind, monkeypatch):
    forest, done = trees(6001, **KINDS[kind]), []
    carry_out = ways_up.carry_out_share
    monkeypatch.setattr(
        ways_up, "carry_out_share",
        lambda data, share: done.append(len(share.order)) or carry_out(data, share),
    )  # fmt: skip
    monkeypatch.setattr(resolving, "solve", None)
    resolver = Resolver(forest, [5999])
    resolver.change(5999, cost=0.01)
    resolver.change(5999, rewards=[0.1, 0.2, 0.3])
    assert len(done) == 2
    assert max(done) < 40  # of thousands


def test_a_tolerance_that_one_pass_misses_is_met():
    rng = np.random.default_rng(2)
    law = rng.dirichlet(np.ones(4), (400, 4))
    law[0] = law[0, :1]
    line = Forest.from_arrays(
        parent=np.arange(400) - 1, cost=np.full(400, 1e-4), rewards=rng.random((400, 4)), law=law
    )
    resolver = Resolver(line, [200], tolerance=1e-4)
    changed = line.changed(cost={200: 2e-4})
    found = resolver.change(200, cost=2e-4).solution()
    assert same(found, weitzman.solve(changed, tolerance=1e-4))


def test_what_is_refused():
    forest = trees(14)
    resolver = Resolver(forest, [3])
    with pytest.raises(UnknownName, match="was not named"):
        resolver.change(4, cost=1.0)
    with pytest.raises(InvalidForest):
        resolver.change(3, law=[[0.5, 0.6, 0.0]] * 3)
    with pytest.raises(InvalidForest):
        resolver.change(3, cost=np.nan)
    with pytest.raises(ValueError, match="nothing changes"):
        resolver.change(3)
    with pytest.raises(InvalidForest, match="has 3 states, but 2 rewards are given"):
        resolver.change(3, rewards=[0.0, 1.0])
    with pytest.raises(InvalidForest, match="finite"):
        resolver.change(3, rewards=[0.0, 1.0, np.inf])
    with pytest.raises(InvalidForest, match="utilities overflow"):
        Resolver(trees(14, risk_tolerance=0.01), [3]).change(3, cost=50.0)
    with pytest.raises(InvalidForest, match="utilities overflow"):
        Resolver(trees(14, risk_tolerance=0.01), [3]).change(3, rewards=[0.0, 1.0, 50.0])
