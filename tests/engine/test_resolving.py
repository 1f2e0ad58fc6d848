"""One changed cost or law: the same bits as solving anew, for the boxes on the way alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_forests import forest_of
from random_problems import forests

import weitzman
from weitzman import Forest
from weitzman.engine import Resolver, resolving
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


KINDS = {
    "plain": {},
    "minimize": {"minimize": True, "outside": 0.9},
    "copies": {"count": np.arange(140) % 3 + 1},
    "time": {"duration": 0.5, "rate": 0.1},
    "risk": {"risk_tolerance": 2.0},
    "prizes": {"prizes": 2},
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


def test_many_parts_and_threads():
    forest = trees(6001)
    resolver = Resolver(forest, [0, 21, 3000, 6000], threads=2)
    for box in (0, 21, 3000, 6000):
        found = resolver.change(box, cost=0.001).solution()
        assert same(found, weitzman.solve(forest.changed(cost={box: 0.001}), threads=1))


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


def test_endless_lines_beside_and_on_the_way():
    forest = Forest.from_arrays(
        parent=[-1, 0, 0, 2], cost=[0.1, 0.2, 0.1, 0.3], rewards=[0.0, 1.0, 2.0],
        law=[[0.5, 0.3, 0.2], *np.random.default_rng(3).dirichlet(np.ones(3), (3, 3))],
        endless=[False, True, False, False],
    )  # fmt: skip
    resolver = Resolver(forest, range(4))
    for box in range(4):
        found = resolver.change(box, cost=0.15).solution()
        assert same(found, weitzman.solve(forest.changed(cost={box: 0.15})))


def test_only_the_way_to_the_root_is_done(monkeypatch):
    forest, done = trees(6001), []
    carry_out = resolving.carry_out_share
    monkeypatch.setattr(
        resolving, "carry_out_share",
        lambda data, share: done.append(len(share.order)) or carry_out(data, share),
    )  # fmt: skip
    monkeypatch.setattr(resolving, "solve", None)
    Resolver(forest, [5999]).change(5999, cost=0.01)
    assert len(done) == 1
    assert done[0] < 40  # of thousands


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
