"""Searching a lazy forest: optimal decisions, answers that are never lost, the journal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import random_problems
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from lazy_forests import lazily
from test_lazy import REWARDS, STEP, hashed, mirrored, written_out

import weitzman
from weitzman import Forest, LazyForest, LazySearch, Node
from weitzman.errors import InvalidForest


def payoff_of(lazy: LazyForest, problem: reference.Problem, sign: float = 1.0) -> float:
    """Expected payoff of the search over everything that can happen."""

    def onward(told: list[tuple[str, int]]) -> float:
        search = LazySearch(lazy)
        for box, state in told:
            assert search.ask() == box
            search.tell(box, state)
        box = search.ask()
        assert search.proven
        if box is None:
            assert search.done
            return search.payoff
        seen: dict[str, int] = dict(told)
        v = int(box.name)
        above = tuple(seen[str(p)] for p in problem.parents[v])
        return sum(
            float(p) * onward([*told, (box, y)])
            for y, p in enumerate(problem.law[v][above])
            if p > 0
        )

    return sign * onward([])


@given(random_problems.forests(max_boxes=4, max_states=2, costs="parent"))
@settings(max_examples=15)
def test_it_earns_the_optimum(problem):
    """Played through every course of events, against the exhaustive programme."""
    forest = Forest.from_arrays(**reference.to_arrays(problem))
    best = float(reference.optimal_value(problem))
    assert payoff_of(lazily(forest), problem) == pytest.approx(best, abs=1e-9)
    assert payoff_of(lazily(mirrored(forest)), problem, -1.0) == pytest.approx(best, abs=1e-9)


def played(search: Any, world: Any, most: int = 100) -> list[str]:
    """The boxes opened, each showing the state that the world has for it."""
    names = []
    while (box := search.ask()) is not None and len(names) < most:
        names.append(str(box))
        search.tell(box, world(str(box)))
    return names


def drawn(seed: int) -> Any:
    """A world: a random state for each name, from the law of a middling parent."""
    return lambda name: int(np.random.default_rng((seed, *name.encode())).choice(3, p=STEP[0]))


@pytest.mark.parametrize("seed", [2, 5, 7])
def test_it_does_as_the_full_solution_says(seed):
    depth = 4
    everything = written_out(hashed(depth))
    assert len(everything) == 2 * (3**depth - 1) // 2
    full = weitzman.Search(weitzman.solve(everything))
    search = LazySearch(hashed(depth))
    assert played(search, drawn(seed)) == played(full, drawn(seed))
    assert search.payoff == full.payoff


def test_a_search_without_an_end():
    search = LazySearch(hashed(depth=40), budget=50)
    names = played(search, drawn(2))
    assert names
    assert max(name.count(".") for name in names) >= 2
    assert search.done
    assert search.best == max(float(REWARDS[drawn(2)(name)]) for name in names)
    low, high = search.bounds
    assert low <= search.best + 1e-9 <= high + 1e-6
    assert search.explain().startswith("Stop and take ")


def test_a_gap_saves_work():
    sure, rough = (LazySearch(hashed(depth=40), gap=gap, budget=500) for gap in (0.0, 0.5))
    assert rough.ask() is not None
    assert rough.regret <= 0.5
    assert sure.expanded >= rough.expanded
    assert sure.proven


def test_unproven_is_said():
    search = LazySearch(hashed(depth=40), budget=0)
    assert search.ask() is not None
    assert not search.proven
    assert search.regret > 0
    assert "This is not proven and may lose up to " in search.explain()


def test_one_box_at_a_time():
    search = LazySearch(hashed(depth=40), budget=100)
    box = search.ask()
    assert search.ask() == box
    assert search.pending == [box]
    search.release(box)
    assert search.pending == []
    assert search.ask() == box
    search.tell(box, 0)
    assert [seen.box for seen in search.history] == [box]
    assert repr(search) == f"LazySearch(best=0, spent={search.spent:g}, opened=1, out=0)"


def test_boxes_may_be_told_that_were_not_asked_for():
    search = LazySearch(hashed(depth=40), budget=100)
    search.tell("1", 2)
    search.tell("1.2", 1)  # a child of the box just told
    assert search.best == 10.0
    assert {name for name, _ in search.available(None)} >= {"0", "1.0", "1.1", "1.2.0"}
    with pytest.raises(weitzman.errors.UnknownName, match=r"there is no box '7\.7'"):
        search.tell("7.7", 0)
    with pytest.raises(weitzman.errors.InvalidAnswer, match="was answered before"):
        search.tell("1", 0)


def test_copies():
    """Copies that were opened are gone; each copy has children of its own."""
    lazy = LazyForest(
        [Node(law=STEP[0], rewards=REWARDS, cost=0.5, name="A", count=2)],
        lambda node: [Node(law=STEP, rewards=REWARDS, cost=0.5, count=2)],
        least_cost=0.5, branching=2,
    )  # fmt: skip
    search = LazySearch(lazy, budget=50)
    assert search.ask() == "A#1"
    search.tell("A#1", 0)
    search.tell("A#2", 1)
    assert search.ask() == "A.0#2.1"
    search.tell("A.0#2.1", 1)
    boxes = {name for name, _ in search.available(None)}
    assert boxes == {"A.0#1.1", "A.0#1.2", "A.0#2.2", "A.0.0#2.1.1", "A.0.0#2.1.2"}
    index = dict(search.available(None))
    assert index["A.0#1.1"] < index["A.0#2.2"]


@given(random_problems.forests(max_boxes=6, max_states=3, costs="any"), st.data())
@settings(max_examples=30)
def test_indices_after_what_was_seen(problem, data):
    """All roots opened: the indices of their children, after what they showed, against solve."""
    forest = Forest.from_arrays(**reference.to_arrays(problem))
    exact = weitzman.solve(forest, exact=True)
    search = LazySearch(lazily(forest))
    shown = {}
    for root in forest.roots.tolist():
        possible = np.flatnonzero(forest.laws[int(forest.law[root])][0]).tolist()
        shown[root] = data.draw(st.sampled_from(possible))
        search.tell(str(root), shown[root])
    found = {int(box.name): index for box, index in search.available(None)}
    wanted = {
        v: float(exact.indices(v)[shown[up]])
        for v, up in enumerate(forest.parent.tolist())
        if up in shown
    }
    assert found.keys() == wanted.keys()
    assert search.proven
    box, top = search.ask(), max(wanted.values(), default=-np.inf)
    if box is None:
        assert top <= search.best + 1e-9
    else:
        assert wanted[int(box.name)] == pytest.approx(top, abs=1e-9)
    for v, index in found.items():
        leaf = v not in forest.parent
        assert index == pytest.approx(wanted[v], abs=1e-9) if leaf else index <= wanted[v] + 1e-9


@pytest.mark.parametrize("below", [False, True])
def test_copies_that_are_open_are_not_worth_anything_more(below):
    box = {"rewards": [0.0, 8.0], "cost": 1.0, "count": 3}
    lazy = LazyForest([Node(law=[0.5, 0.5], **box)], lambda node: [], bound=8.0)
    if below:
        child = Node(law=[[0.5, 0.5]], **box)
        lazy = LazyForest(
            [Node(law=[1.0], rewards=[0.0], cost=0.0, name="gate")],
            lambda node: [child] if node.name == "gate" else [],
            bound=8.0,
        )
    search = LazySearch(lazy)
    if below:
        search.tell("gate", 0)
    for left in (3, 2, 1):
        value = weitzman.solve(weitzman.line([[0.5, 0.5]], rewards=[0, 8], cost=1, count=left))
        assert search.bounds[0] == pytest.approx(value.value)
        search.tell(search.ask(), 0)
    assert search.bounds == (0.0, 0.0)


def test_when_everything_is_open():
    forest = Forest.from_arrays(
        parent=[-1, 0], cost=[1, 1], rewards=[0.0, 9.0], law=[[0.5, 0.5], np.full((2, 2), 0.5)]
    )
    search = LazySearch(lazily(forest))
    assert played(search, lambda name: 0) == ["0", "1"]
    assert search.ask() is None
    assert search.proven
    assert search.bounds == (0.0, 0.0)
    assert search.explain().startswith("Stop and take 0, the outside option: no box is left")


# -- the journal -----------------------------------------------------------------------------------


WORLD = 15  # one in which several boxes are opened


def test_a_resumed_search_continues_as_it_would_have(tmp_path):
    straight = played(LazySearch(hashed(depth=40), budget=50), drawn(WORLD))
    assert len(straight) > 3
    path = tmp_path / "run.db"
    search = LazySearch(hashed(depth=40), budget=50, journal=path)
    names = []
    while (box := search.ask()) is not None:
        names.append(str(box))
        search.tell(box, drawn(WORLD)(str(box)))
        search.close()  # as good as a crash
        search = LazySearch.resume(hashed(depth=40), path, budget=50)
    assert names == straight


def test_what_was_handed_out_is_handed_out_again(tmp_path):
    path = tmp_path / "run.db"
    with LazySearch(hashed(depth=40), budget=100, journal=path) as first:
        box = first.ask()
    search = LazySearch.resume(hashed(depth=40), path, budget=100)
    assert search.pending == [box]
    assert search.ask() == box
    search.tell(box, 1)
    assert search.ask() != box


def test_a_journal_grows_by_its_events_alone(tmp_path):
    """Not by a model per answer, which would grow with the square."""
    path, size, n = tmp_path / "run.db", [], 40
    roots = [Node(law=[0.9, 0.1], rewards=[0.0, 100.0], cost=0.1 + i / 1e4) for i in range(2 * n)]
    search = LazySearch(LazyForest(roots, lambda _: [], bound=0.0, outside=0.0), journal=path)
    for _ in range(2):
        size.append(path.stat().st_size)
        for _ in range(n):
            search.tell(search.ask(), 0)
    size.append(path.stat().st_size)
    search.close()
    first, second = np.diff(size)
    assert 0 < second < 400 * 2 * n  # an event each for asking and telling
    assert second < 1.5 * first


def test_another_forest_is_rejected(tmp_path):
    path = tmp_path / "run.db"
    search = LazySearch(hashed(depth=40), budget=100, journal=path)
    search.tell("0", 1)
    search.tell("0.1", 0)
    assert search.ask() is not None
    for other in (hashed(depth=40, least=0.4), hashed(depth=1), hashed(depth=40, branching=1)):
        with pytest.raises(InvalidForest, match="must be what it was when the journal was written"):
            LazySearch.resume(other, path)
    dearer = hashed(depth=40)
    dearer.outside = 1.0
    with pytest.raises(InvalidForest, match="roots or the outside option is missing"):
        LazySearch.resume(dearer, path)
    assert len(LazySearch.resume(hashed(depth=40), path, budget=100).history) == 2


KILLED = """
import os, sys
sys.path.insert(0, sys.argv[2])
from test_lazy import hashed
from weitzman import LazySearch

lazy = hashed(depth=40)
search = LazySearch(lazy, budget=0, journal=sys.argv[1])
search.tell("0", 1)
search.tell("0.1", 0)
lazy._tree._expand = lambda node: os._exit(9)  # the machine stops in the middle of an expansion
search.ask()
"""


def test_an_answer_survives_the_end_of_the_process(tmp_path):
    path, here = tmp_path / "run.db", str(Path(__file__).parent)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), here], check=False, env=env, capture_output=True
    )
    assert done.returncode == 9, done.stderr.decode()
    search = LazySearch.resume(hashed(depth=40), path, budget=100)
    assert [seen.state_number for seen in search.history] == [1, 0]
    assert search.ask() is not None


def test_the_decision_is_about_the_box_that_is_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two copies with a child behind each; its index is the same whatever its parent showed."""
    child = Node(law=[[0.9, 0.1], [0.1, 0.9]], rewards=[0.0, 10.0], cost=0.0)
    lazy = LazyForest(
        [Node(law=[0.5, 0.5], rewards=[0.0, 0.0], cost=0.0, count=2)],
        lambda node: [] if "." in node.name else [child],
        bound=lambda node: 10.0,
    )  # fmt: skip
    situations: list[Any] = []
    in_play = LazyForest.in_play
    monkeypatch.setattr(
        LazyForest, "in_play", lambda self, now: (situations.append(now), in_play(self, now))[1]
    )
    search = LazySearch(lazy)
    for box, state in (("0#1", 1), ("0#2", 0)):
        search.tell(box, state)
    assert search.ask() == "0.0#2"
    which = search._now().decision.which
    assert which is not None
    assert situations[-1].closed[which].state == 0  # behind the second copy, not the first
