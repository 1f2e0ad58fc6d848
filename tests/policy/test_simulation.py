"""Simulation against exact distributions, and its promises: seeds, threads, copies, signs."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import random_problems
import reference
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from numba import njit
from plain_forests import PAPER, random_forest, run_command

from weitzman import Builder, Forest, Policy, evaluate, solve
from weitzman._kernels import episodes as kernel
from weitzman.errors import InvalidArgument, UnknownName
from weitzman.forest import expand
from weitzman.policy.simulation import difference, payoff_law, simulate

NAMES = ("payoff", "reward", "spend", "openings", "rounds")

# A sample mean is 6 standard errors off with probability 2e-9; rare values need some room.
SIGMAS, ROOM = 6.0, 20


def near(share: float, p: float, n: int) -> bool:
    return abs(share - p) <= SIGMAS * math.sqrt(p * (1 - p) / n) + ROOM / n


def policy_of(problem: reference.Problem, rows: list[list[float]]) -> Policy:
    forest = Forest.from_arrays(**reference.to_arrays(problem))
    return Policy.of(forest, np.cumsum([0, *map(len, rows)])[:-1], np.concatenate(rows))


@st.composite
def few_indices(draw: DrawFn, problem: reference.Problem) -> list[list[float]]:
    """Indices among few numbers, so that there are ties."""
    level = st.sampled_from([-np.inf, 0.0, 1.0, 2.0, 4.0, np.inf])
    return [[draw(level) for _ in table] for table in problem.law]


def same_law(values: np.ndarray, exact: dict[reference.Number, Fraction]) -> bool:
    """Whether only possible values occur, each as often as it should."""
    seen, count = np.unique(values, return_counts=True)
    share = defaultdict(float, zip(seen.tolist(), count / len(values), strict=True))
    law = {float(x): float(p) for x, p in exact.items()}
    return set(share) <= set(law) and all(near(share[x], p, len(values)) for x, p in law.items())


# -- the right distribution --------------------------------------------------------------------


def test_the_papers_example():
    solution = solve(Forest.from_arrays(**PAPER))
    exact, played = evaluate(solution), simulate(solution, 200_000, rng=1)
    for name, mean in (
        ("payoff", 94.325), ("reward", exact.reward), ("spend", 26.15), ("openings", 2.45)
    ):  # fmt: skip
        sample = getattr(played, name)
        assert abs(sample.mean - mean) < 4 * sample.standard_error
    assert played.opened == pytest.approx(exact.opened, abs=0.005)
    assert played.loss == pytest.approx(0.45, abs=0.005)  # -7 or -18
    assert played.payoff.quantile([0.2, 0.4, 0.6, 0.93]).tolist() == [-18, -7, 25, 877]


@settings(max_examples=100)
@given(random_problems.forests(max_boxes=5), st.data())
def test_any_policy_earns_what_enumeration_says(problem, data):
    rows = data.draw(few_indices(problem))
    played = simulate(policy_of(problem, rows), 4000, rng=5)
    truth = reference.follow_indices(problem, rows)  # ties included
    assert same_law(played.payoff.values, truth.payoffs)
    assert all(near(x, float(p), 4000) for x, p in zip(played.opened, truth.opened, strict=True))
    assert near(
        played.loss, float(sum(p for x, p in truth.payoffs.items() if x < problem.floor)), 4000
    )


def in_batches(
    problem: reference.Problem, rows: list[list[float]], workers: int
) -> dict[reference.Number, Fraction]:
    """Payoffs of opening the `workers` best boxes above the best so far at once, by enumeration."""
    payoffs: defaultdict[reference.Number, Fraction] = defaultdict(Fraction)

    def go_on(prob: Fraction, seen: reference.Seen, paid: Fraction) -> None:
        best = reference._best(problem, seen)
        ranked = []
        for box in reference._available(problem, seen):
            above = reference._states_above(problem, seen, box)
            ranked.append((-rows[box][above[0] if above else 0], box))
        batch = [box for x, box in sorted(ranked)[:workers] if -x > best]
        if not batch:
            payoffs[best - paid] += prob
        for outcome in product(*(reference._openings(problem, seen, box) for box in batch)):
            now = list(seen)
            for box, (_, _, after) in zip(batch, outcome, strict=True):
                now[box] = after[box]
            if batch:
                p = math.prod((p for p, _, _ in outcome), start=prob)
                go_on(p, tuple(now), paid + sum(cost for _, cost, _ in outcome))

    go_on(Fraction(1), (None,) * len(problem.parents), Fraction(0))
    return dict(payoffs)


@settings(max_examples=60)
@given(random_problems.forests(max_boxes=4), st.integers(1, 3), st.data())
def test_several_workers_open_the_best_boxes_at_once(problem, workers, data):
    rows = data.draw(few_indices(problem))
    played = simulate(policy_of(problem, rows), 4000, rng=6, workers=workers)
    assert same_law(played.payoff.values, in_batches(problem, rows, workers))
    rounds, openings = played.rounds.values, played.openings.values
    assert (rounds <= openings).all()
    assert (openings <= workers * rounds).all()


def test_a_worker_is_idle_rather_than_open_what_is_not_worth_it():
    # boxes 0 and 1 come first; 0 shows 5, so its child (index 7) is worth opening, box 2 (4) not
    forest = Forest.from_arrays(
        parent=[-1, -1, -1, 0], cost=[1] * 4, rewards=[[5.0], [0.0], [0.0], [0.0]],
        law=[[1], [1], [1], [[1]]],
    )  # fmt: skip
    policy = Policy.of(forest, np.arange(4), np.array([8.0, 8.0, 4.0, 7.0]))
    assert simulate(policy, 10, 1, workers=2).opened.tolist() == [1, 1, 0, 1]


def test_of_tied_copies_the_one_after_the_lowest_state_comes_first():
    # A shows 0 or 1, B and C the same; B is opened after 1 before it is opened after 0, but then
    # the C after 0 comes first, and after either C it is best to stop
    same = np.eye(2)
    forest = Forest.from_arrays(
        parent=[-1, 0, 1], cost=[1, 1, 1], rewards=[[0, 0], [0, 0], [6.0, 7.0]],
        law=[[0.5, 0.5], same, same], count=[2, 1, 1],
    )  # fmt: skip
    policy = Policy.of(forest, np.array([0, 1, 3]), np.array([5.0, 3.0, 4.0, 2.0, 2.0]))
    played = simulate(policy, 1000, 1)
    assert near((played.reward.values == 6).mean(), 0.75, 1000)


def test_parallelism_saves_rounds_and_costs_payoff():
    rng = np.random.default_rng(3)
    solution = solve(random_forest(rng, 60, branch=30))
    alone, four = (simulate(solution, 50_000, 1, workers=w) for w in (1, 4))
    assert np.array_equal(alone.rounds.values, alone.openings.values)
    assert four.rounds.mean < alone.rounds.mean
    assert four.payoff.mean < alone.payoff.mean - 4 * four.payoff.standard_error


def test_a_budget_is_spent_whatever_is_found():
    played = simulate(solve(Forest.from_arrays(**PAPER)), 20_000, 1, budget=2)
    assert (played.openings.values == 2).all()
    # A then B after 900 (value 877 or 897), A then C after 1
    exact = {877: 0.05, 897: 0.05, -15: 0.45, 25: 0.45}
    assert same_law(played.payoff.values, {x: Fraction(p) for x, p in exact.items()})


# -- promises ----------------------------------------------------------------------------------


def test_threads_do_not_matter():
    solution = solve(random_forest(np.random.default_rng(1), 200, branch=100))
    one, *others = (simulate(solution, 10_001, 7, threads=n) for n in (1, 2, 5))
    for other in others:
        for name in NAMES:
            assert np.array_equal(getattr(one, name).values, getattr(other, name).values)
            assert getattr(one, name).mean == getattr(other, name).mean
            assert getattr(one, name).deviation == getattr(other, name).deviation
        assert np.array_equal(one.opened, other.opened)
        assert one.loss == other.loss


def test_a_seed_is_a_generator_and_more_episodes_continue_where_fewer_end():
    solution = solve(Forest.from_arrays(**PAPER))
    few = simulate(solution, 1000, 3).payoff.values
    assert np.array_equal(
        few, simulate(solution, 5000, np.random.default_rng(3)).payoff.values[:1000]
    )
    assert not np.array_equal(few, simulate(solution, 1000, 4).payoff.values)
    generator = np.random.default_rng(3)
    simulate(solution, 10, generator)
    assert not np.array_equal(few, simulate(solution, 1000, generator).payoff.values)


@settings(max_examples=100)
@given(random_problems.forests(min_boxes=2, max_boxes=4), st.integers(1, 2), st.data())
def test_copies_are_played_as_if_written_out(problem, workers, data):
    arrays = reference.to_arrays(problem)
    n = len(arrays["parent"])
    count = data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    rows = data.draw(few_indices(problem))
    # copies that tie after different states go by the state, boxes written out by their number
    assume(all(len({x for x in r if x > -np.inf}) == sum(x > -np.inf for x in r) for r in rows))
    at, index = np.cumsum([0, *map(len, rows)])[:-1], np.concatenate(rows)
    forest = Forest.from_arrays(**arrays, count=count, names=range(n))
    full = expand(forest)
    box = np.array([int(full.name(v).partition("#")[0]) for v in range(len(full))])
    counted = simulate(Policy.of(forest, at, index), 2000, 2, workers=workers)
    written = simulate(Policy.of(full, at[box], index), 2000, 3, workers=workers)
    for name in NAMES:
        one, other = getattr(counted, name), getattr(written, name)
        error = np.hypot(one.standard_error, other.standard_error)
        assert abs(one.mean - other.mean) <= 5 * error + 1e-9


@settings(max_examples=20)
@given(random_problems.forests(max_boxes=4))
def test_minimizing_is_maximising_with_signs_flipped(problem):
    arrays = reference.to_arrays(problem)
    losses = arrays | {
        "rewards": [[-r for r in row] for row in arrays["rewards"]],
        "outside": -arrays["outside"],
    }
    up = simulate(solve(Forest.from_arrays(**arrays)), 200, 1)
    down = simulate(solve(Forest.from_arrays(**losses, minimize=True)), 200, 1)
    for name, sign in zip(NAMES, (-1, -1, 1, 1, 1), strict=True):
        assert np.array_equal(getattr(up, name).values, sign * getattr(down, name).values)
    assert up.loss == down.loss


def test_a_billion_copies_take_no_time():
    forest = Forest.from_arrays(
        parent=[-1, 0], cost=[1, 1], rewards=[0.0, 50.0], law=[[0.9, 0.1], [[0.9, 0.1]] * 2],
        count=[10**15, 10**9],
    )  # fmt: skip
    played = simulate(solve(forest), 20_000, 1)
    assert abs(played.openings.mean - 10) < 4 * played.openings.standard_error
    assert (played.reward.values == 50).all()


def test_wide_boxes_do_not_slow_an_episode_down():
    # a root with 300,000 children, of which one is opened: pushing all would take minutes
    n = 300_000
    cost = np.concatenate([[0.0], np.linspace(0.1, 0.2, n)])
    one = [[1.0]] * n
    forest = Forest.from_arrays(
        parent=np.concatenate([[-1], np.zeros(n, int)]), cost=cost,
        rewards=[[0.0]] + [[1.0]] * n, law=[[1.0]] + [one[0:1]] * n,
    )  # fmt: skip
    played = simulate(solve(forest), 50_000, 1)
    assert (played.openings.values == 2).all()
    assert played.payoff.mean == pytest.approx(0.9)


def test_something_must_be_taken_without_an_outside_option():
    forest = Forest.from_arrays(
        parent=[-1], cost=[7], rewards=[10.0, 0.0], law=[[0.5, 0.5]], outside=-np.inf
    )
    played = simulate(solve(forest), 1000, 1)
    assert set(played.payoff.values) == {3.0, -7.0}
    assert played.loss == 0


def test_means_are_over_all_episodes():
    solution = solve(Forest.from_arrays(**PAPER))
    whole = simulate(solution, 30_000, 1)
    assert whole.payoff.mean == pytest.approx(whole.payoff.values.mean(), rel=1e-12)
    assert whole.payoff.deviation == pytest.approx(whole.payoff.values.std(ddof=1), rel=1e-12)
    assert whole.loss_share == (whole.payoff.values < 0).mean()
    assert whole.loss == payoff_law(solution).worse
    with pytest.raises(ValueError, match="read-only"):
        whole.payoff.values[0] = 1


@njit
def draw(chances, at, k, u):
    return kernel._draw(chances, at, k, u)


def test_a_state_of_no_probability_is_never_drawn():
    law = np.array([0.0, 0.3, 0.0, 0.7, 0.0])
    chances = kernel.cumulate(law, np.array([0]), np.array([5]))
    for u in (0.0, 0.3 - 1e-16, 0.3, 0.5, np.nextafter(1.0, 0.0)):
        assert draw(chances, 0, 5, u) == (1 if u < 0.3 else 3)
    short = np.array([0.3, 0.7 - 5e-10, 0.0])  # the sum may be off by 1e-9
    chances = kernel.cumulate(short, np.array([0]), np.array([3]))
    assert draw(chances, 0, 3, np.nextafter(1.0, 0.0)) == 1
    many = np.random.default_rng(0).dirichlet(np.ones(40))
    chances = kernel.cumulate(many, np.array([0]), np.array([40]))
    for u in np.random.default_rng(1).random(200):  # bisection as counting
        assert draw(chances, 0, 40, u) == (np.cumsum(many) / many.sum() <= u).sum()


def test_progress_ends_at_the_end():
    seen: list[tuple[int, int]] = []
    simulate(solve(Forest.from_arrays(**PAPER)), 5000, 1, progress=lambda *x: seen.append(x))
    assert seen[-1] == (5000, 5000)
    assert seen == sorted(seen)


def test_an_error_in_the_progress_function_ends_it():
    def fail(done: int, total: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        simulate(solve(Forest.from_arrays(**PAPER)), 10**9, 1, progress=fail)


@pytest.mark.parametrize("name", ["episodes", "workers", "budget"])
def test_nonsense_is_rejected(name):
    with pytest.raises(InvalidArgument, match=f"`{name}` must be a whole number from 1 on"):
        simulate(solve(Forest.from_arrays(**PAPER)), **({"episodes": 10, "rng": 1} | {name: 0}))


# -- what is shown -----------------------------------------------------------------------------


def test_intervals_hold_what_they_should():
    hits = 0
    solution = solve(Forest.from_arrays(**PAPER))
    for seed in range(200):
        low, high = simulate(solution, 2000, seed).payoff.interval(0.9)
        hits += low <= 94.325 <= high
    assert 180 - 4 * 4.3 < hits < 180 + 4 * 4.3  # 200 * 0.9, with 4 standard deviations
    played = simulate(solution, 10)
    none = replace(played, loss_share=0.0, policy=None)  # Wilson: 10 episodes without a loss
    assert none.loss_interval() == (0.0, pytest.approx(0.2775, abs=1e-3))


def test_tables_and_frames():
    played = simulate(solve(Forest.from_arrays(**PAPER)), 1000, 1)
    text = str(played)
    assert "1,000 episodes, one box at a time" in text
    assert "worse than opening nothing" in text
    assert "payoff" in repr(played)
    assert "<table>" in played._repr_html_()
    frame = played.to_pandas()
    assert frame.shape == (1000, 5)
    assert (frame.payoff == frame.reward - frame.spend).all()


def test_the_command(tmp_path, capsys):
    out = run_command(tmp_path, capsys, "simulate", "--episodes", "2000", "--workers", "2")
    assert "value 94.325, computed" in out
    assert "2,000 episodes, 2 boxes at once" in out
    assert "one box at a time: payoff" in out
    out = run_command(tmp_path, capsys, "simulate", "--json", "--seed", "3", "--episodes", "2000")
    found = json.loads(out)
    assert found["value"] == pytest.approx(94.325)
    assert found["payoff"]["quantiles"]["50%"] == 25
    assert [box["name"] for box in found["boxes"]] == ["A", "B", "C"]


# -- common random numbers -----------------------------------------------------------------------


@given(random_problems.forests(max_boxes=4, max_states=3), st.data())
def test_a_box_shows_the_same_to_every_policy(problem, data):
    """In an episode a policy that opens everything sees all that another one sees."""
    f = Forest.from_arrays(**reference.to_arrays(problem))
    rows = data.draw(few_indices(problem))
    everything, few = Policy.of(f, 1e6), policy_of(problem, rows)
    most, some = (simulate(p, 50, 7) for p in (everything, few))
    assert (some.reward.values <= most.reward.values).all()
    assert (some.spend.values <= most.spend.values + 1e-9).all()  # costs are not negative


def test_the_difference_of_two_policies_is_paired():
    boxes = Forest.from_arrays(**PAPER)
    best = solve(boxes)
    index = best.policy().index.copy()
    other = Policy.of(boxes, best.policy().index_at, np.nextafter(index, np.inf))
    same = difference(best, other, 2000)
    assert (same.mean, same.standard_error) == (0.0, 0.0)
    never = Policy.of(boxes, -1e6)
    gain, alone = difference(best, never, 2000, 5), simulate(best, 2000, 5).payoff
    assert gain.standard_error == pytest.approx(alone.standard_error, rel=0.2)
    low, high = gain.interval(1 - 1e-6)
    assert low < best.value < high
    with pytest.raises(InvalidArgument, match="policies on the same forest"):
        difference(best, solve(boxes.changed(outside=0.5)))


@given(random_problems.forests(max_boxes=4), st.integers(1, 3))
def test_the_probability_of_a_loss_is_that_of_the_law(problem, seed):
    solution = solve(Forest.from_arrays(**reference.to_arrays(problem)))
    played, law = simulate(solution, 100, seed), payoff_law(solution)
    assert played.loss == pytest.approx(law.worse, abs=1e-15)
    assert played.loss_interval() == (played.loss, played.loss)


def test_small_problems_need_no_kernel(monkeypatch):
    def never(*_):
        raise AssertionError("a kernel was called")

    for name in ("play", "cumulate", "list_siblings"):
        monkeypatch.setattr(kernel, name, never)
    for policy in (solve(Forest.from_arrays(**PAPER)), solve(Forest.from_arrays(**PAPER)).policy()):
        assert simulate(policy, 5000, workers=2, budget=2).openings.mean == 2
        assert simulate(policy, 5000).value == pytest.approx(evaluate(policy).value, abs=20)


# -- indices in the forms in which people have them ----------------------------------------------


def two_boxes():
    own = {"good": 0.5, "bad": 0.5}
    boxes = Builder().add("A", cost=1, outcomes=own, rewards={"good": 5, "bad": 0})
    return boxes.add("B", parent="A", cost=1, outcomes={0: 0.5, 9: 0.5}).build()


@pytest.mark.parametrize(
    "indices",
    [
        {"A": 3, "B": {"good": 2, "bad": 6.0}},
        {0: 3.0, 1: {0: 2.0, 1: 6.0}},
        lambda box, state: 3.0 if state is None else {"good": 2.0, "bad": 6.0}[state],
    ],
)
def test_indices_by_box_and_state(indices):
    policy = Policy.of(two_boxes(), indices)
    assert policy.index_at.tolist() == [0, 1]
    assert policy.index.tolist() == [3.0, 2.0, 6.0]
    assert Policy.of(two_boxes(), {"A": 1, "B": 4}).index.tolist() == [1, 4, 4]
    assert Policy.of(two_boxes(), 2).index.tolist() == [2, 2, 2]
    assert Policy.of(two_boxes(), [0, 1], [3, 2, 6]).index.tolist() == [3, 2, 6]


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        (({"A": 3.0},), "'B' lacks one .1 such box"),
        (({"A": 3.0, "B": {"good": 2.0}},), "'B' lacks one"),
        (({"A": 3.0, "B": {"god": 2.0}},), "has no state 'god'"),
        (({"A": {"good": 1.0}, "B": 1.0},), "'A' has no parent: give it one number"),
        (([1.0, 2.0],), r"mapping by box or a function, but it is a list.*dict.enumerate"),
        ((np.ones(2),), "mapping by box or a function, but it is a ndarray"),
        (({"A": "x", "B": 1.0},), "those of box 'A' are not"),
        (({"C": 1.0},), "there is no box 'C'"),
        ((lambda box, state: np.nan,), "the function gives nan"),
        (([0, 1], [3.0, 2.0]), "a number for each state of the parent of each box: 2 of box 'B'"),
        (([0], [3.0, 2.0, 1.0]), "a whole number for each of 2 boxes"),
        (([0.0, 1.0], [3.0, 2.0, 1.0]), "a whole number for each of 2 boxes"),
        (([-1, 1], [3.0, 2.0, 1.0]), "1 of box 'A' from place -1 on"),
        (([0, 1], [3.0, np.nan, 1.0]), "`index` gives nan"),
        (([0, 1], [[3.0, 1.0, 1.0]]), "one dimension"),
        (([0, 1], "abc"), "must be numbers"),
    ],
)
def test_indices_that_are_none(indices, message):
    with pytest.raises((InvalidArgument, UnknownName), match=message):
        Policy.of(two_boxes(), *indices)
