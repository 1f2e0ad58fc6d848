"""Endless lines as boxes of a forest, against long finite lines that bracket them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import weitzman
from weitzman import Forest, Policy, strategies
from weitzman.chains.chain import Chain
from weitzman.chains.endless import solve_line
from weitzman.errors import InvalidArgument, InvalidForest

STICKY = [[0.9, 0.1], [0.2, 0.8]]


def endless_line(**more):
    given = {"rewards": [0, 10], "cost": 0.5, "length": np.inf, **more}
    return weitzman.line(([0.5, 0.5], STICKY), **given)


def written_out(f: Forest, depth: int, free_top: bool = False) -> tuple[Forest, list[int]]:
    """Endless boxes as lines of ``depth`` boxes, and the box that each box of the new forest was.

    With ``free_top`` each line ends in a free box that shows the best reward for sure.
    """
    parent, origin = list(f.parent), list(range(len(f)))
    laws = [f.laws[i] for i in f.law]
    rewards = [f.rewards[i][0] for i in f.reward]
    costs = [f.costs[i] for i in f.cost]
    for v in np.flatnonzero(f.endless):
        last = int(v)
        for step in range(1, depth + free_top):
            end = step == depth
            parent.append(last)
            last = len(parent) - 1
            origin.append(int(v))
            laws.append(np.ones((len(laws[v]), 1)) if end else laws[v])
            best = rewards[v].min() if f.minimize else rewards[v].max()
            rewards.append([best] if end else rewards[v])
            costs.append([[0.0]] if end else costs[v])
    new = Forest.from_arrays(
        parent=parent, cost=costs, rewards=rewards,
        law=[p[0] if a < 0 else p for p, a in zip(laws, parent, strict=True)],
        count=[*f.count, *[1] * (len(parent) - len(f))], outside=f.outside, minimize=f.minimize,
    )  # fmt: skip
    return new, origin


@st.composite
def forests_with_lines(draw, *, free: bool = False, ties: bool = True):
    """A small tree of random boxes with a few states, some followed by endless lines."""
    seed, n = draw(st.integers(0, 2**32 - 1)), draw(st.integers(1, 4))
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 4))
    parent = [-1, *(int(rng.integers(-1, i)) for i in range(1, n))]
    lines = [v for v in range(n) if rng.random() < 0.6] or [0]
    parent += lines + [lines[0]] * bool(rng.random() < 0.3)  # two lines under one box
    endless = np.arange(len(parent)) >= n

    def law(rows: int):
        p = rng.integers(0, 4, (rows, k)).astype(float)
        p[np.arange(rows), rng.integers(0, k, rows)] += 1
        return p / p.sum(axis=1, keepdims=True)

    def numbers(low: int, high: int, size):
        return rng.integers(4 * low, 4 * high, size) / 4 if ties else rng.uniform(low, high, size)

    rewards = [numbers(0, 10, k) for _ in parent]
    if rng.random() < 0.2:
        rewards[-1][0] = -np.inf

    def cost(v):
        c = numbers(0, 4, (k if parent[v] >= 0 else 1, k)) / 8 + (0 if free else 1 / 16)
        return c[:1, :1] if rng.random() < 0.5 else c

    sign = -1 if rng.random() < 0.3 else 1
    return Forest.from_arrays(
        parent=parent, cost=[cost(v) for v in range(len(parent))],
        rewards=[sign * r for r in rewards],
        law=[law(1)[0] if p < 0 else law(k) for p in parent],
        count=np.where(endless, 1, rng.integers(1, 3, len(parent)) if ties else 1), endless=endless,
        outside=sign * float(rng.integers(-2, 6)), minimize=sign < 0,
    )  # fmt: skip


@settings(max_examples=60)
@given(forests_with_lines())
def test_solution_lies_between_those_of_cut_lines(forest):
    solution, sign = weitzman.solve(forest, exact=True), -1 if forest.minimize else 1
    for depth in (1, 5, 60):
        low, _ = written_out(forest, depth)
        high, _ = written_out(forest, depth, free_top=True)
        below, above = weitzman.solve(low, exact=True), weitzman.solve(high, exact=True)
        assert sign * below.value <= sign * solution.value + 1e-9
        assert sign * solution.value <= sign * above.value + 1e-9
        for v in range(len(forest)):
            assert (sign * below.indices(v) <= sign * solution.indices(v) + 1e-9).all()
            assert (sign * solution.indices(v) <= sign * above.indices(v) + 1e-9).all()
    if abs(above.value - below.value) < 1e-9:
        assert solution.value == pytest.approx(below.value, abs=1e-8)


@settings(max_examples=60)
@given(forests_with_lines(ties=False))  # they are broken by number, other ones when written out
def test_evaluation_adds_up_along_the_line(forest):
    long, origin = written_out(forest, 120)
    solution = weitzman.solve(forest, exact=True)
    at, index = solution.index_columns()
    cut = Policy.of(long, at[np.array(origin)], index)  # the same indices all along the line
    ours, theirs = weitzman.evaluate(solution), weitzman.evaluate(cut)
    assert ours.residual == pytest.approx(0, abs=1e-9)
    assert ours.value == pytest.approx(solution.value, abs=1e-8)
    ends = np.diff(origin[len(forest) :], append=-1) != 0
    assume(theirs.opened[len(forest) :][ends].max() < 1e-9)  # none is reached
    for v in range(len(forest)):
        along = [u for u, w in enumerate(origin) if w == v]
        assert_allclose(ours.opened[v], theirs.opened[along].sum(), atol=1e-6)
        assert_allclose(ours.opened_after[v], sum(theirs.opened_after[u] for u in along), atol=1e-6)
        assert_allclose(ours.chosen[v], sum(theirs.chosen[u] for u in along), atol=1e-6)
    assert ours.spend == pytest.approx(theirs.spend, abs=1e-6)


@settings(max_examples=30)
@given(forests_with_lines(free=True), st.integers(0, 2**32 - 1))
def test_any_indices_are_evaluated_as_they_are_simulated(forest, seed):
    rng = np.random.default_rng(seed)
    solution = weitzman.solve(forest)
    at, index = solution.index_columns()
    sign = -1 if forest.minimize else 1
    policy = Policy.of(forest, at, index - sign * rng.integers(0, 8, len(index)) / 4)
    found = weitzman.evaluate(policy)
    played = weitzman.simulate(policy, 20_000, rng)
    for name in ("payoff", "openings", "spend"):
        sample = getattr(played, name)
        truth = getattr(found, {"payoff": "value"}.get(name, name))
        assert abs(sample.mean - truth) < 6 * sample.standard_error + 1e-9


@settings(max_examples=40)
@given(forests_with_lines(free=True))
def test_the_value_is_what_the_indices_earn(forest):
    """Also where boxes cost nothing."""
    solution = weitzman.solve(forest, exact=True)
    assert weitzman.evaluate(solution).value == pytest.approx(solution.value, abs=1e-8)


@settings(max_examples=20)
@given(forests_with_lines())
def test_losses_are_rewards_with_the_sign_changed(forest):
    mirror = Forest(
        **{
            **{
                name: getattr(forest, name)
                for name in ("parent", "law", "reward", "cost", "laws", "costs", "count", "endless")
            },
            "rewards": type(forest.rewards)(
                -forest.rewards.data, forest.rewards.start, forest.rewards.shape
            ),
            "outside": -forest.outside,
            "minimize": not forest.minimize,
        }
    )
    a, b = weitzman.solve(forest), weitzman.solve(mirror)
    assert a.value == -b.value
    assert_allclose(a.index_columns()[1], -b.index_columns()[1])


def test_a_line_alone_is_what_solve_line_says():
    line = solve_line(Chain(STICKY, [0, 10]), 0.5)
    solution = weitzman.solve(endless_line())
    assert_allclose(solution.indices(1), line.index)
    assert solution.value == pytest.approx(line.value_at([0.5, 0.5]))


def test_a_box_is_not_taken_for_the_endless_one_of_its_kind():
    climb = [[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1]]
    both = Forest.from_arrays(
        parent=[-1, 0, 0], cost=0.5, rewards=[0, 1, 9], law=[[1, 0, 0], climb, climb],
        endless=[False, False, True],
    )  # fmt: skip
    solution = weitzman.solve(both)
    assert solution.index(1, 0) == 0.0  # one step up is worth its cost, no more
    assert solution.index(2, 0) == pytest.approx(7.0)  # two steps: twice two tries, 0.5 each
    opened = weitzman.evaluate(solution).opened
    assert (opened[1], opened[2]) == (0, pytest.approx(4))


def test_a_state_that_comes_again_is_chosen_once():
    forest = Forest.from_arrays(
        parent=[-1, 0], cost=0.1, rewards=[[0, 0, 0], [0, 5, 10]], endless=[False, True],
        law=[[0, 1, 0], [[1, 0, 0], [0.3, 0.4, 0.3], [0, 0, 1]]],
    )  # fmt: skip
    found = weitzman.evaluate(weitzman.solve(forest))
    assert_allclose(found.chosen[1], [0, 0.2, 0.5])  # 5 only if some came before the line sank
    assert found.outside == pytest.approx(0.3)
    assert_allclose(found.opened_after[1], [0, 1 / 0.6, 0])


def test_many_copies_are_worth_their_index():
    one = weitzman.solve(endless_line(outside=-5))
    many = weitzman.solve(endless_line(outside=-5, count=10**12))
    assert many.value == pytest.approx(one.index(0))
    assert one.value < many.value


def test_a_line_without_rewards_is_never_opened():
    forest = Forest.from_arrays(
        parent=[-1, 0], cost=1.0, rewards=[[0.0, 5.0], [-np.inf, -np.inf]],
        law=[[0.5, 0.5], STICKY], endless=[False, True],
    )  # fmt: skip
    solution = weitzman.solve(forest)
    assert (solution.indices(1) == -np.inf).all()
    assert weitzman.evaluate(solution).opened[1] == 0


# -- acting ------------------------------------------------------------------------------------


def test_a_search_goes_along_the_line_and_survives_in_its_journal(tmp_path):
    path = tmp_path / "search.db"
    forest = weitzman.side_by_side(
        endless_line(names=["a", "b"]), endless_line(names=["c", "d"], cost=0.6)
    )
    search = weitzman.Search(weitzman.solve(forest), journal=path)
    asked = []
    for state in (0, 0, 0, 0, 0):
        asked.append(box := search.ask())
        search.tell(box, state)
    assert asked == ["a", "c", "b#1", "b#2", "b#3"]
    assert asked[-1].copy == (3,)
    again = weitzman.Search.resume(path)
    assert [x.box for x in again.history] == asked
    assert again.ask() == "b#4"
    again.tell("b#4", reward=10)
    assert again.ask() is None
    assert (again.best, again.best_box, again.spent) == (10, "b#4", pytest.approx(3.1))


def test_boxes_further_along_wait_for_those_before():
    search = weitzman.Search(weitzman.solve(endless_line(names=["a", "b"])))
    with pytest.raises(
        weitzman.errors.InvalidAnswer, match="'b#1', the parent of 'b#2', was not opened"
    ):
        search.tell("b#2", 0)
    with pytest.raises(
        weitzman.errors.InvalidAnswer, match="'a', the parent of 'b#1', was not opened"
    ):
        search.tell("b#1", 0)
    with pytest.raises(weitzman.errors.InvalidAnswer, match="needs 1 numbers of copies"):
        search.tell("b", 0)


def test_copies_of_lines_are_numbered_too():
    search = weitzman.Search(weitzman.solve(endless_line(names=["a", "b"], count=3)))
    for expected in ("a#1", "a#2", "a#3", "b#1.1", "b#1.2"):
        box = search.ask()
        assert box == expected
        search.tell(box, 0)
    search.release(search.ask())
    assert search.ask() == "b#1.3"


def test_a_new_model_keeps_the_place_along_the_line():
    search = weitzman.Search(weitzman.solve(endless_line(names=["a", "b"])))
    for _ in range(3):
        search.tell(search.ask(), 0)
    search.replace(weitzman.solve(endless_line(names=["a", "b"], cost=0.25)))
    assert search.ask() == "b#3"
    assert search.spent == 1.5
    with pytest.raises(InvalidForest, match="is endless in one of the models only"):
        search.replace(
            weitzman.solve(
                weitzman.line([[0.5, 0.5], STICKY], rewards=[0, 10], cost=1, names=["a", "b"])
            )
        )


def test_a_policy_that_never_stops_is_rejected():
    policy = Policy.of(endless_line(), np.array([0, 1]), np.full(3, 11.0))
    for follow in (weitzman.evaluate, lambda p: weitzman.simulate(p, 10, 1)):
        with pytest.raises(
            InvalidArgument, match="may continue forever along the endless line '1'"
        ):
            follow(policy)
    assert weitzman.simulate(policy, 10, 1, budget=25).openings.mean == 25


# -- describing --------------------------------------------------------------------------------


@settings(max_examples=30)
@given(forests_with_lines())
def test_files_and_tables_keep_endless_boxes(tmp_path_factory, forest):
    folder = tmp_path_factory.mktemp("files")
    value = weitzman.solve(forest).value
    ways = [pickle.loads(pickle.dumps(forest)), copy.deepcopy(forest)]
    for name in ("f.json", "f.json.gz", "f.wz"):
        weitzman.save(forest, folder / name)
        ways.append(weitzman.load(folder / name))
    ways.append(weitzman.files.from_pandas(weitzman.files.to_pandas(forest)))
    ways.append(weitzman.files.from_networkx(weitzman.files.to_networkx(forest)))
    for other in ways:
        assert other.endless.tolist() == forest.endless.tolist()
        assert weitzman.solve(other).value == pytest.approx(value, abs=1e-12)


def test_a_builder_puts_the_states_in_order():
    search = weitzman.Builder().add("first", cost=1, outcomes={0: 0.5, 3: 0.25, 10: 0.25})
    law = {0: {10: 0.1, 0: 0.9}, 3: {10: 0.5, 0: 0.5}, 10: {0: 0.2, 10: 0.8}}
    search.add("more", parent="first", cost=0.5, endless=True, outcomes=law)
    forest = search.build()
    assert forest.states("more") == ("0", "3", "10")
    assert weitzman.solve(forest).index("more", 0) == pytest.approx(5.0)
    search.add("odd", parent="first", cost=1, endless=True, outcomes={0: 0.5, 7: 0.5})
    with pytest.raises(InvalidForest, match="box 'odd' name '7', a state that the parent lacks"):
        search.build()


def test_the_rest_of_a_line_is_a_line():
    forest = endless_line(names=["a", "b"])
    rest = forest.subtree("b", 0)
    assert rest.names == ("b", "b, further")
    assert weitzman.solve(rest).index("b") == weitzman.solve(forest).index("b", 0)
    assert weitzman.solve(rest).index("b, further", 1) == weitzman.solve(forest).index("b", 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"endless": [True, False]}, "must have a parent, but box '0' has none"),
        ({"law": [[0.5, 0.5], [[1], [1]]], "rewards": [[0, 10], [1]]}, "as many states as its par"),
        ({"count": [1, 2]}, "must have no copies, but box '1' has some"),
        (
            {"parent": [-1, 0, 1], "law": [[1, 0], *[STICKY] * 2], "endless": [False, True, False]},
            "must have no children, but box '1' has some",
        ),
        ({"endless": [0, 1]}, "must hold True or False"),
        ({"endless": [True]}, "must have one entry per box"),
        ({"states": [["a", "b"], ["b", "a"]]}, "must name its states as its parent does"),
    ],
)  # fmt: skip
def test_rules_of_endless_boxes(change, message):
    given = {
        "parent": [-1, 0],
        "cost": 1.0,
        "rewards": [0, 10],
        "law": [[0.5, 0.5], STICKY],
        "endless": [False, True],
    }
    with pytest.raises(InvalidForest, match=message):
        Forest.from_arrays(**{**given, **change})


def test_what_needs_an_end_says_so():
    forest = endless_line(names=["a", "b"])
    for use in (
        weitzman.compare, weitzman.forest.expand, strategies.best_nonadaptive,
        strategies.best_partially_adaptive,
    ):  # fmt: skip
        with pytest.raises(InvalidArgument, match="'b' is followed by boxes like itself"):
            use(forest)


def test_words_and_repr_tell_of_the_line():
    forest = endless_line(names=["a", "b"])
    assert "1 endless" in repr(forest)
    assert "b (and so on, without end)" in weitzman.describe(forest)


def test_what_hardly_ever_happens_keeps_its_digits():
    """State 1 comes up some 10^11 times before the line ends at the top or at nothing."""
    rare = 1e-11
    law = [[0.99, 0.01, 0, 0], [1 - 2 * rare, 0, rare, rare], [0, 0, 1, 0], [0, 0, 0, 1]]
    forest = weitzman.line(([1, 0, 0, 0], law), length=np.inf, rewards=[0, 0.7, 1, 0], cost=1e-16)
    solution = weitzman.solve(forest)
    found = weitzman.evaluate(solution)
    assert found.residual == pytest.approx(0, abs=1e-13)
    assert found.value == pytest.approx(solution.value, abs=1e-13)
    assert_allclose(found.chosen[1], [0, 0.5, 0.5, 0], atol=1e-9)
