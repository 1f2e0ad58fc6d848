"""One walk, and all that follow the same rule in their own way: compiled, written out, enumerated.

The search is tested against the exact oracle in test_search.py, and its steps are those of a walk.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from followed_runs import forest_of, written_out
from hypothesis import assume, given
from hypothesis import strategies as st
from random_problems import forests
from random_walks import possible, ruled_forests
from reference import _Adaptive

import weitzman
from weitzman import Forest, Policy, Search
from weitzman._kernels import episodes
from weitzman.errors import InvalidAnswer
from weitzman.policy.simulation import stream_key, tabulate
from weitzman.policy.walk import Walk

STEPS = 12  # of a walk along a line that may have no end

# -- every way that a walk can go ----------------------------------------------------------------


class Tally:
    """How likely each box is opened after each state, and each state chosen; by enumeration."""

    def __init__(self, policy: Policy) -> None:
        self.walk, f = Walk(policy), policy.forest
        self.opened = [np.zeros(len(f.laws[int(m)])) for m in f.law]
        self.chosen = [np.zeros(f.rewards[int(m)].size) for m in f.reward]
        self.outside = 0.0
        self._go_on(1.0)

    def _go_on(self, chance: float) -> None:
        walk, found = self.walk, self.walk.next()
        if found is None:
            holder = walk.best[1]
            if holder is None:
                self.outside += chance
            else:
                state = walk.answers[holder.number, holder.copy].state
                self.chosen[holder.number][state] += chance
            return
        box = found[0]
        self.opened[box[0]][walk.state_above(box)] += chance
        for y, p in possible(walk, box):
            with walk.supposing(box, y):
                self._go_on(chance * p)


@given(ruled_forests(max_boxes=3, max_states=2, copies=2, endless=False))
def test_evaluation_is_the_mean_over_all_walks(policy: Policy) -> None:
    """Also where indices tie among copies after different states, and where rewards are equal."""
    assume(policy.forest.boxes <= 8)
    found, truth = weitzman.evaluate(policy), Tally(policy)
    for v in range(len(policy.forest)):
        assert found.opened_after[v] == pytest.approx(truth.opened[v], abs=1e-12)
        if np.isfinite(policy.outside):
            assert found.chosen[v] == pytest.approx(truth.chosen[v], abs=1e-12)
    if np.isfinite(policy.outside):
        assert found.outside == pytest.approx(truth.outside, abs=1e-12)


def test_the_box_that_is_taken_is_the_one_that_evaluation_counts() -> None:
    """Both show 3. The second is opened first, and the first one is taken all the same."""
    forest = Forest.from_arrays(parent=[-1, -1], cost=[1, 1], rewards=[[3], [3]], law=[[1], [1]])
    policy = Policy.of(forest, np.arange(2), np.array([4.0, 5.0]))
    assert [w.tolist() for w in weitzman.evaluate(policy).chosen] == [[1.0], [0.0]]
    search = Search(policy)
    held = []
    while (box := search.ask()) is not None:
        search.tell(box, 0)
        held.append(search.best_box)
    assert held == ["1", "0"]
    assert [step.best_box for step in search.history] == ["1", "0"]


@given(ruled_forests(), st.data())
def test_supposing_leaves_no_trace(policy: Policy, data: st.DataObject) -> None:
    walk = Walk(policy)
    for _ in range(4):
        ranked = list(zip(range(20), walk.frontier.best_first(), strict=False))
        before = (walk.top(), walk.best, walk.closed(), dict(walk.answers), ranked)
        if not ranked:
            return
        _, (box, _) = data.draw(st.sampled_from(ranked))
        y, _ = data.draw(st.sampled_from(possible(walk, box)))
        with walk.supposing(box, y):
            assert walk.answers[box].state == y
        ranked = list(zip(range(20), walk.frontier.best_first(), strict=False))
        assert before == (walk.top(), walk.best, walk.closed(), dict(walk.answers), ranked)
        walk.show(box, y)
        for v in range(len(policy.forest)):
            alone = {key: n for key, n in walk.closed().items() if key[0] == v}
            assert walk.closed(v) == alone


def test_a_walk_checks_what_it_is_shown() -> None:
    walk = Walk(weitzman.solve(weitzman.line([[1.0]], rewards=[1], cost=0, count=2)).policy())
    with pytest.raises(InvalidAnswer, match="there is no '0#3'"):
        walk.show((0, (3,)), 0)


# -- compiled episodes ---------------------------------------------------------------------------


def played(policy: Policy, workers: int, most: int, key: Any) -> tuple[list[float], list[int]]:
    """Payoff, reward, spend and openings of one episode of so many boxes, and what was opened."""
    game = episodes.Game(len(policy.root), policy.outside, workers, most, True, key)
    out, opened = np.empty((episodes.RECORDED, 1)), np.zeros(len(policy.forest), np.int64)
    episodes.play(tabulate(policy), game, 0, 1, episodes.Tally(out, opened), episodes.room())
    return out[:4, 0].tolist(), opened.tolist()


class Stream:
    """The random numbers of episode 0, one for each box and copy, by SplitMix64."""

    def __init__(self, key: Any) -> None:
        first, second = map(int, key)
        self._at = self._scrambled(second + self._scrambled(first))

    @staticmethod
    def _scrambled(z: int) -> int:
        z %= 2**64
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    def _place(self, walk: Walk, box: Any) -> int:
        """What tells a box from all others: its number and copy, and those of all above it."""
        above = walk.above(box)
        line = bool(walk.forest.endless[box[0]])  # its places are no copies
        own = box[1][-1] - 1 if walk.forest.count[box[0]] > 1 and not line else 0
        start = 0 if above is None else self._place(walk, above)
        return self._scrambled(start + 0x9E3779B97F4A7C15 * (box[0] + 1) + own)

    def draw(self, walk: Walk, box: Any) -> int:
        """The state of a box that can be opened now."""
        chances = possible(walk, box)
        u = (self._scrambled(self._at + self._place(walk, box)) >> 11) / 2**53
        total = 0.0
        for y, p in chances:
            total += p
            if u < total:
                return y
        return chances[-1][0]


@given(ruled_forests(), st.integers(0, 2**32), st.integers(1, 3))
def test_compiled_episodes_take_the_same_steps(policy: Policy, seed: int, workers: int) -> None:
    """Cut after each number of boxes: the same box was opened, with the same state and cost."""
    key, f = stream_key(seed), policy.forest
    stream, walk = Stream(key), Walk(policy)
    opened: list[int] = [0] * len(f)
    batch: list[Any] = []
    for step in range(STEPS):
        best, _, spent = walk.best
        best *= f.sign
        wanted = [best - spent, best, spent, step]
        assert played(policy, workers, step, key) == (pytest.approx(wanted, abs=1e-12), opened)
        if not batch:
            ranked = zip(range(workers), walk.frontier.best_first(), strict=False)
            batch = [box for _, (box, index) in ranked if index > best]
        if not batch:
            assert played(policy, workers, 10**6, key)[1] == opened
            return
        box = batch.pop(0)
        walk.show(box, stream.draw(walk, box))
        opened[box[0]] += 1


# -- in words ------------------------------------------------------------------------------------


def test_of_tied_copies_the_words_name_the_one_that_is_asked_for() -> None:
    """Two copies of A, and behind each a B whose index is the same after a as after b."""
    boxes = weitzman.Builder()
    boxes.add("A", cost=0, outcomes={"a": 0.5, "b": 0.5}, rewards={"a": 0, "b": 0}, count=2)
    boxes.add("B", parent="A", cost=0, outcomes={"a": {0: 0.9, 10: 0.1}, "b": {0: 0.1, 10: 0.9}})
    solution = weitzman.solve(boxes.build())
    assert solution.index("B", "a") == solution.index("B", "b")
    search = Search(solution)
    for state in ("b", "a"):
        search.tell(search.ask(), state)
    assert search.ask() == "B#2"
    lines = weitzman.explain(solution).splitlines()
    first = lines.index(next(line for line in lines if line.startswith("  If A shows b")))
    then = next(line for line in lines[first:] if line.startswith("    If A shows a"))
    assert then.endswith("open B behind A = a, worth 0 (cost 0).")


# -- what remains --------------------------------------------------------------------------------


@given(forests(max_boxes=3), st.booleans(), st.data())
def test_what_is_expected_agrees_with_the_exact_oracle(small, minimize, data):
    """From the start and after every step of a search that opens boxes in any order."""
    count = [data.draw(st.sampled_from([1, 1, 2])) for _ in small.boxes]
    full, copies = written_out(small, count)
    if len(copies) > 5:
        return
    oracle, sign = _Adaptive(full), -1.0 if minimize else 1.0
    search = weitzman.Search(weitzman.solve(forest_of(small, count, minimize=minimize)))
    seen: list[int | None] = [None] * len(copies)
    while True:
        value = sign * float(oracle.value(tuple(seen))[0]) - sign * search.spent
        assert search.expected == pytest.approx(value, abs=1e-9)
        open_now = search.available(None)
        if not open_now or not data.draw(st.booleans()):
            return
        box, _ = data.draw(st.sampled_from(open_now))
        place = copies.index((box.number, box.copy))
        above = tuple(s for p in full.parents[place] if (s := seen[p]) is not None)
        chances = full.law[place][above]
        y = data.draw(st.sampled_from([y for y, p in enumerate(chances) if p > 0]))
        search.tell(box, y)
        seen[place] = y


def rest(search: Search) -> Forest | None:
    return Walk.along(search.policy, search.history).remaining()


def test_nothing_is_left_where_nothing_is_worth_opening():
    chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=6)
    search = weitzman.Search(weitzman.solve(chest))
    assert rest(search) is None
    assert search.expected == 0


def test_many_copies_are_not_written_out():
    chest = weitzman.line([[0.999, 0.001]], rewards=[0, 10], cost=0.001, count=10**12)
    search = weitzman.Search(weitzman.solve(chest))
    before = search.expected
    search.tell(search.ask(), 0)
    assert len(rest(search)) == 1
    assert search.expected == pytest.approx(before - 0.001, abs=1e-6)
