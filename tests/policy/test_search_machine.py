"""Any sequence of calls, in memory and through a journal, against a naive model of a search."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from followed_runs import Instance, forest_of, instances, parent_of, policy_of
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from random_problems import arbitrary_indices, forests
from reference import Problem

from weitzman.engine.indices import Policy
from weitzman.errors import InvalidAnswer
from weitzman.files import event_log as _file
from weitzman.policy.search import Search


class Naive:
    """The rules of a search, written down as plainly as can be."""

    def __init__(self, problem: Problem, count: list[int], indices: Any) -> None:
        self.problem, self.count, self.indices = problem, count, indices
        self.parent = [p[0] if p else -1 for p in problem.parents]
        self.boxes = instances(self.parent, count)
        self.told: dict[Instance, tuple[int, float, float | None]] = {}
        self.out: list[Instance] = []  # in the order in which they were handed out
        self.asked: dict[Instance, int] = {}  # when, of boxes that are out or were told so
        self.when: dict[Instance, int] = {}  # they were told
        self.clock = 0

    def above(self, box: Instance) -> tuple[int, ...]:
        above = parent_of(box, self.parent, self.count)
        return () if above is None else (self.told[above][0],)

    def index(self, box: Instance) -> float:
        return float(self.indices[box[0]][self.above(box)])

    def available(self) -> list[Instance]:
        found = []
        for box in self.boxes:
            above = parent_of(box, self.parent, self.count)
            if (
                box not in self.told
                and box not in self.out
                and (above is None or above in self.told)
            ):
                found.append(box)
        return sorted(found, key=lambda box: (-self.index(box), box[0], self.above(box), box[1]))

    def best(self) -> tuple[float, Instance | None]:
        best = float(self.problem.floor)
        found = [(-r, v, y, copy) for (v, copy), (y, _, r) in self.told.items() if r is not None]
        minus, v, _, copy = min(found, default=(-best, 0, 0, ()))
        return (-minus, (v, copy)) if -minus > best else (best, None)

    def worth(self) -> list[Instance]:
        return [box for box in self.available() if self.index(box) > self.best()[0]]

    def tell(self, box: Instance, state: int, cost: float | None, reward: float | None) -> None:
        above = parent_of(box, self.parent, self.count)
        row = () if above is None else (self.told[above][0],)
        known = self.problem.rewards[box[0]][state]
        if reward is None and known is not None:
            reward = float(known)
        price = float(self.problem.cost[box[0]][row][state])
        self.told[box] = state, price if cost is None else cost, reward
        self.clock += 1
        self.when[box] = self.clock
        if box in self.out:
            self.out.remove(box)
        else:
            self.asked.pop(box, None)

    def leaves(self) -> list[Instance]:
        above = {parent_of(box, self.parent, self.count) for box in self.told}
        return [box for box in self.told if box not in above]

    def undo(self, box: Instance) -> None:
        del self.told[box]
        closed = [x for x in self.out if parent_of(x, self.parent, self.count) == box]
        late = [x for x in self.out if self.asked[x] > self.when[box]]
        self.out = [x for x in self.out if x not in closed + late]
        if box in self.asked:
            self.out.insert(0, box)
            self.asked[box] = self.when[box]


class Machine(RuleBasedStateMachine):
    """Rewards are turned into losses in half of the runs; the naive model does not know."""

    journal = False

    @initialize(problem=forests(max_boxes=4, max_states=2), data=st.data(), minimize=st.booleans())
    def begin(self, problem: Problem, data: st.DataObject, minimize: bool) -> None:
        count = [data.draw(st.sampled_from([1, 1, 2, 3])) for _ in problem.parents]
        self.minimize, self.sign = minimize, -1.0 if minimize else 1.0
        self.names = [f"b{v}" for v in range(len(problem.parents))]
        self.naive = Naive(problem, count, data.draw(arbitrary_indices(problem)))
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "run.db"
        kept = {"journal": self.path} if self.journal else {}
        self.search = Search(self.policy(), **kept)

    def policy(self) -> Policy:
        n = self.naive
        forest = forest_of(n.problem, n.count, minimize=self.minimize, names=self.names)
        return policy_of(forest, n.indices)

    def text(self, box: Instance) -> str:
        name, copy = self.names[box[0]], ".".join(map(str, box[1]))
        return f"{name}#{copy}" if copy else name

    # -- calls -------------------------------------------------------------------------------

    @rule()
    def ask(self) -> None:
        found = self.search.ask()
        assert ([] if found is None else [found]) == self.expected(1)

    @rule(boxes=st.integers(1, 4))
    def ask_several(self, boxes: int) -> None:
        assert self.search.ask(boxes) == self.expected(boxes)

    def expected(self, boxes: int) -> list[str]:
        n = self.naive
        new = n.worth()[: max(0, boxes - len(n.out))]
        for box in new:
            n.clock += 1
            n.asked[box] = n.clock
        n.out += new
        return [self.text(box) for box in n.out[:boxes]]

    @rule(
        data=st.data(), cost=st.none() | st.integers(0, 9), reward=st.none() | st.integers(-9, 40)
    )
    def tell(self, data: st.DataObject, cost: int | None, reward: int | None) -> None:
        boxes = [*self.naive.out, *self.naive.available()]
        if not boxes:
            return
        box = data.draw(st.sampled_from(boxes))
        state = data.draw(st.integers(0, len(self.naive.problem.rewards[box[0]]) - 1))
        true = None if reward is None else self.sign * reward
        self.search.tell(self.text(box), state, reward=true, cost=cost)
        self.naive.tell(box, state, cost, reward)

    @rule(data=st.data())
    def tell_again(self, data: st.DataObject) -> None:
        if not self.naive.told:
            return
        box = data.draw(st.sampled_from(sorted(self.naive.told)))
        state, cost, _ = self.naive.told[box]
        self.search.tell(self.text(box), state, cost=cost)
        with pytest.raises(InvalidAnswer, match="answered before"):
            self.search.tell(self.text(box), state, cost=cost + 1)

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        if not self.naive.out:
            return
        box = data.draw(st.sampled_from(self.naive.out))
        self.search.release(self.text(box))
        self.naive.out.remove(box)

    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        n = self.naive
        if not n.told:
            return
        box = data.draw(st.sampled_from(sorted(n.told)))
        if box not in n.leaves():
            with pytest.raises(InvalidAnswer, match="while no box below it is open"):
                self.search.undo(self.text(box))
            return
        last = box == list(n.told)[-1]
        said = self.search.undo(None if last else self.text(box))
        assert said.startswith("Took back ")
        n.undo(box)

    @rule(data=st.data())
    def refuse(self, data: st.DataObject) -> None:
        n = self.naive
        closed = [b for b in n.boxes if b not in [*n.told, *n.out, *n.available()]]
        if closed:
            box = self.text(data.draw(st.sampled_from(closed)))
            with pytest.raises(InvalidAnswer, match="was not opened"):
                self.search.tell(box, 0)
            with pytest.raises(InvalidAnswer, match="it is not handed out"):
                self.search.release(box)

    @rule(data=st.data())
    def replace(self, data: st.DataObject) -> None:
        """Other indices, and the boxes in another order."""
        old = self.naive
        place = data.draw(st.permutations(range(len(self.names))))  # new number of each box
        order = sorted(range(len(place)), key=place.__getitem__)
        p = old.problem
        problem = Problem(
            parents=tuple(tuple(place[u] for u in p.parents[v]) for v in order),
            rewards=tuple(p.rewards[v] for v in order),
            law=tuple(p.law[v] for v in order),
            cost=tuple(p.cost[v] for v in order),
            outside=p.outside,
        )
        count = [old.count[v] for v in order]
        self.naive = Naive(problem, count, data.draw(arbitrary_indices(problem)))
        self.naive.told = {(place[v], copy): seen for (v, copy), seen in old.told.items()}
        self.naive.out = [(place[v], copy) for v, copy in old.out]
        self.naive.clock = old.clock
        self.naive.when = {(place[v], copy): when for (v, copy), when in old.when.items()}
        self.naive.asked = {(place[v], copy): when for (v, copy), when in old.asked.items()}
        self.names = [self.names[v] for v in order]
        self.search.replace(self.policy())

    @precondition(lambda self: self.journal)
    @rule()
    def die_and_resume(self) -> None:
        self.search.close()
        self.search = Search.resume(self.path)

    # -- always ------------------------------------------------------------------------------

    @invariant()
    def agrees(self) -> None:
        n, search = self.naive, self.search
        best, holder = n.best()
        assert search.best == self.sign * best
        assert search.best_box == (None if holder is None else self.text(holder))
        assert search.spent == sum(cost for _, cost, _ in n.told.values())
        assert search.pending == [self.text(box) for box in n.out]
        assert search.available(None) == [
            (self.text(box), self.sign * n.index(box)) for box in n.available()
        ]
        assert search.done == (not n.out and not n.worth())
        seen = [
            (self.text(box), state, cost, None if reward is None else self.sign * reward)
            for box, (state, cost, reward) in n.told.items()
        ]
        assert seen == [(x.box, x.state_number, x.cost, x.reward) for x in search.history]
        said = search.explain()
        assert said.startswith(("Open ", "Stop ", "Wait ")) or " is handed out, but " in said

    def teardown(self) -> None:
        if hasattr(self, "search"):
            self.search.close()
            shutil.rmtree(self.folder)


class JournalMachine(Machine):
    journal = True


TestInMemory = Machine.TestCase
TestInMemory.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


class TestThroughAJournal(JournalMachine.TestCase):
    settings = settings(max_examples=25, stateful_step_count=30, deadline=None)

    @pytest.fixture(autouse=True)
    def without_waiting_for_the_disk(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_file, "SYNCHRONOUS", "OFF")
