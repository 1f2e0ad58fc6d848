"""The oracle is put to the test itself: by hand, by the paper, and by other ways to count."""

from __future__ import annotations

import ast
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_problems import (
    arbitrary_indices,
    both_or_nothing,
    dags,
    forests,
    independent_boxes,
    lines,
    several_lines,
)
from reference import (
    NOTHING,
    Number,
    Problem,
    States,
    best_nonadaptive,
    best_partially_adaptive,
    closed_sets,
    exact,
    exact_indices,
    feasible_orders,
    follow_indices,
    from_nested,
    index_rows,
    optimal_value,
    parent_states,
    subtree,
    to_arrays,
    topological_order,
    value_of_order,
    value_of_set,
)

F = Fraction


def some(examples: int) -> Callable[[Any], Any]:
    """Hypothesis settings of these tests: exact arithmetic is slow, so no deadline."""
    return settings(
        max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )


# Worked by hand


def one_box(cost: Any = 1, outside: Any = 0) -> Problem:
    """Reward 10 or 0, with equal chances."""
    return from_nested([-1], [cost], [10, 0], [["1/2", "1/2"]], outside)


def paper() -> Problem:
    """Boxes A, B (child of A) and C of the paper's lemma that fixed orders are not optimal."""
    return from_nested(
        parent=[-1, 0, -1],
        cost=[20, 3, 5],
        rewards=[[1, 900], [-9, 21, 890, 920], [10, 50]],
        law=[
            ["0.9", "0.1"],
            [["0.5", "0.5", 0, 0], [0, 0, "0.5", "0.5"]],
            ["0.5", "0.5"],
        ],
    )


@pytest.mark.parametrize(("outside", "value"), [(0, 4), (7, F(15, 2)), (8, 8), (9, 9)])
def test_one_box_by_hand(outside: int, value: Fraction) -> None:
    problem = one_box(outside=outside)
    assert exact_indices(problem) == ({(): 8},)  # (10 - 8) / 2 = 1
    assert optimal_value(problem) == value


def test_free_box_has_the_top_it_can_reach_for_index() -> None:
    assert exact_indices(one_box(cost=0)) == ({(): 10},)
    never = from_nested([-1], [0], [10, 3, 0], [[0, "1/2", "1/2"]])
    assert exact_indices(never) == ({(): 3},)


def test_index_can_lie_below_every_reward() -> None:
    assert exact_indices(from_nested([-1], [5], [2, 1], [["1/2", "1/2"]])) == ({(): F(-7, 2)},)


def test_signal_then_prize_by_hand() -> None:
    # The child is worth min(10, 10 - 2) = 8 after a good signal, so (8 - 6) / 2 = 1.
    problem = from_nested(
        [-1, 0], [1, 2], [[None, None], [10, 0]], [["1/2", "1/2"], [[1, 0], [0, 1]]]
    )
    assert exact_indices(problem) == ({(): 6}, {(0,): 8, (1,): -2})
    assert optimal_value(problem) == 3
    assert best_nonadaptive(problem) == (2, {0, 1})


def test_a_box_without_any_reward_has_no_index() -> None:
    problem = from_nested([-1, -1], [0, 1], [[None, 5], [None, None]], [[1, 0], ["1/2", "1/2"]])
    assert exact_indices(problem) == ({(): NOTHING}, {(): NOTHING})
    assert follow_indices(problem, exact_indices(problem)).openings == 0


def test_two_parents_by_hand() -> None:
    problem = both_or_nothing()
    assert optimal_value(problem) == F(11, 2)  # -1 - 1 + (16 - 1) / 2
    assert best_partially_adaptive(problem) == (F(11, 2), (0, 1, 2))
    assert best_nonadaptive(problem) == (5, {0, 1, 2})
    assert value_of_set(problem, {0, 1}) == -2
    with pytest.raises(ValueError, match="not a forest"):
        exact_indices(problem)


def test_without_outside_option_something_must_be_taken() -> None:
    costly = one_box(cost=7, outside=None)
    assert optimal_value(costly) == -2
    assert best_nonadaptive(costly) == (-2, {0})
    assert best_partially_adaptive(costly) == (-2, (0,))
    followed = follow_indices(costly, exact_indices(costly))
    assert (followed.value, followed.outside, followed.opened) == (-2, 0, (1,))


def test_without_outside_option_and_reward_the_value_is_minus_infinity() -> None:
    risky = from_nested([-1], [1], [10, None], [["1/2", "1/2"]], None)
    assert optimal_value(risky) == NOTHING
    assert best_nonadaptive(risky)[0] == best_partially_adaptive(risky)[0] == NOTHING
    followed = follow_indices(risky, exact_indices(risky))
    assert followed.payoffs == {9: F(1, 2), NOTHING: F(1, 2)}
    assert (followed.value, followed.outside, followed.spend) == (NOTHING, F(1, 2), 1)


def test_payoffs_have_the_cost_that_came_with_the_state() -> None:
    problem = from_nested([-1], [[3, 1]], [10, 0], [["1/4", "3/4"]])  # 10 costs 3, 0 costs 1
    assert exact_indices(problem) == ({(): 4},)  # mean cost 3/2 = (10 - 4) / 4
    followed = follow_indices(problem, exact_indices(problem))
    assert followed.payoffs == {7: F(1, 4), -1: F(3, 4)}
    assert (followed.value, followed.reward, followed.spend) == (1, F(5, 2), F(3, 2))


# The paper


def test_paper_fixed_orders_are_not_optimal() -> None:
    problem = paper()
    assert optimal_value(problem) == exact("94.325")
    assert value_of_order(problem, (0, 1, 2)) == exact("92.975")
    assert value_of_order(problem, (0, 2, 1)) == exact("93.825")
    assert best_partially_adaptive(problem) == (exact("93.825"), (0, 2, 1))
    assert best_nonadaptive(problem) == (exact("92.475"), {0, 1, 2})


def test_paper_indices() -> None:
    indices = exact_indices(paper())
    assert indices == ({(): 707}, {(0,): 15, (1,): 914}, {(): 40})
    assert index_rows(indices) == [[707.0], [15.0, 914.0], [40.0]]


def test_paper_policy_step_by_step() -> None:
    followed = follow_indices(paper(), exact_indices(paper()))
    # A; then B after 900; or else C after 1, and B after A = 1 and C = 10.
    assert followed.value == exact("94.325")
    assert followed.opened == (1, exact("0.1") + exact("0.45"), exact("0.9"))
    assert followed.openings == exact("2.45")
    assert followed.spend == 20 + exact("0.55") * 3 + exact("0.9") * 5
    assert followed.chosen == (
        (0, exact("0.05")),
        (0, exact("0.225"), 0, exact("0.05")),
        (exact("0.225"), exact("0.45")),
    )
    assert followed.payoffs == {
        877: exact("0.05"),  # 900 - 20 - 3, B being 890
        897: exact("0.05"),
        25: exact("0.45"),  # 50 - 20 - 5
        -7: exact("0.225"),  # 21 - 20 - 5 - 3
        -18: exact("0.225"),
    }
    assert followed.outside == 0
    assert not followed.tied


def test_paper_half_of_the_optimum_is_beyond_any_fixed_set() -> None:
    problem = from_nested(
        parent=[-1, 0],
        cost=[0, "0.2"],
        rewards=[0, "0.001", 1],
        law=[
            ["0.9", "0.1", 0],
            [["0.98", "0.01", "0.01"], ["0.01", "0.01", "0.98"], ["0.98", "0.01", "0.01"]],
        ],
    )
    followed = follow_indices(problem, exact_indices(problem))
    assert followed.value == optimal_value(problem)
    assert followed.reward / 2 - followed.spend == exact("0.029001")
    assert best_nonadaptive(problem) == (exact("0.0001"), {0})


# Conventions of the policy


def test_ties_of_indices_open_the_lowest_number() -> None:
    problem = from_nested([-1, -1], [1, 1], [[10, 0], [11, 1]], [["1/2", "1/2"]] * 2, -1)
    followed = follow_indices(problem, [8, 8])
    assert followed.opened == (1, F(1, 2))
    assert followed.tied
    assert not follow_indices(problem, [8, 9]).tied


def test_of_equal_rewards_the_outside_option_is_taken_and_then_the_lowest_number() -> None:
    problem = from_nested([-1, -1], [0, 0], [[3], [3]], [[1], [1]], outside=2)
    for order in ([4, 5], [5, 4]):
        assert follow_indices(problem, order).chosen == ((1,), (0,))
    at_three = follow_indices(replace(problem, outside=F(3)), [4, 5])
    assert (at_three.outside, at_three.openings, at_three.tied) == (1, 2, True)


def test_an_index_equal_to_the_best_so_far_is_not_opened() -> None:
    followed = follow_indices(one_box(outside=8), [8])
    assert (followed.openings, followed.outside, followed.tied) == (0, 1, True)
    assert follow_indices(one_box(outside=8), [math.nextafter(8, 9)]).openings == 1


def test_indices_may_come_in_any_layout() -> None:
    indices = exact_indices(paper())
    followed = follow_indices(paper(), indices)
    assert follow_indices(paper(), index_rows(indices)) == followed
    assert follow_indices(paper(), lambda box, states: indices[box][states]) == followed
    assert follow_indices(paper(), [707, [15, 914], 40]) == followed
    assert follow_indices(paper(), [707, [40, 914], 15]) != followed


# Converters


def test_costs_in_every_layout() -> None:
    law = [["1/2", "1/2"], [["1/4", "3/4"], [1, 0]]]
    fixed = from_nested([-1, 0], [1, 2], [0, 4], law)
    assert fixed.cost == ({(): (1, 1)}, {(0,): (2, 2), (1,): (2, 2)})
    assert fixed == from_nested([-1, 0], [[1, 1], [2, 2]], [[0, 4], [0, 4]], law, outside=0)
    assert fixed == from_nested([-1, 0], [1, [[2, 2], [2, 2]]], [0, 4], law)
    by_state = from_nested([-1, 0], [[1, 3], [2, 5]], [0, 4], law)
    assert by_state.cost == ({(): (1, 3)}, {(0,): (2, 2), (1,): (5, 5)})
    assert to_arrays(by_state)["cost"] == [[1.0, 3.0], [2.0, 5.0]]
    matrix = from_nested([-1, 0], [1, [[2, 5], [7, 8]]], [0, 4], law)
    assert matrix.cost[1] == {(0,): (2, 5), (1,): (7, 8)}
    assert to_arrays(matrix)["cost"] == [1.0, [[2.0, 5.0], [7.0, 8.0]]]


def test_numbers_become_exactly_what_they_are() -> None:
    assert exact("0.1") == exact("1/10") == F(1, 10) != exact(0.1)
    tenths = from_nested([-1], [0], [0, 1, 2], [[0.1, 0.2, 0.7]])
    assert sum(tenths.law[0][()]) == 1
    assert from_nested([-1], [0], [-math.inf, 1], [[0, 1]], -math.inf) == from_nested(
        [-1], [0], [None, 1], [[0, 1]], None
    )


@some(50)
@given(forests(max_boxes=5))
def test_to_arrays_loses_nothing(problem: Problem) -> None:
    assert from_nested(**to_arrays(problem)) == problem


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 0], [0, 0], [0], [[[1]], [[1]]]), "cycle"),
        (([3], [0], [0], [[[1]]]), "unknown box"),
        (([-1], [0], [0, 1], [["1/2", "1/3"]]), "sum to 0.83"),
        (([-1], [0], [0, 1], [[2, -1]]), "not a probability"),
        (([-1], [-1], [0], [[1]]), "negative on average"),
        (([-1], [0], [0, 1], [[1]]), "for each of its states"),
        (([-1, 0], [0, 0], [0], [[1], [[1], [1]]]), "combination of parents' states"),
        (([-1], [0], [[0], [1]], [[1]]), "one entry for each box"),
        (([-1], [0, 0], [0], [[1]]), "one entry for each box"),
        (([-1], [0], [0], [[1], [1]]), "one entry for each box"),
    ],
)
def test_nonsense_is_rejected(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_nested(*arguments)


def test_infeasible_sets_and_orders_are_rejected() -> None:
    with pytest.raises(ValueError, match="all its parents"):
        value_of_set(paper(), {1})
    with pytest.raises(ValueError, match="known boxes"):
        value_of_set(paper(), {7})
    with pytest.raises(ValueError, match="parents before children"):
        value_of_order(paper(), (1, 0))
    with pytest.raises(ValueError, match="repeat"):
        value_of_order(paper(), (0, 0))


def test_sets_and_orders_are_all_there() -> None:
    assert set(closed_sets(paper())) == {
        frozenset(s) for s in [(), (0,), (2,), (0, 1), (0, 2), (0, 1, 2)]
    }
    assert list(feasible_orders(paper())) == [(0, 1, 2), (0, 2, 1), (2, 0, 1)]
    assert topological_order(from_nested([1, -1], [0, 0], [0], [[[1]], [1]])) == [1, 0]


# Other ways to count: every outcome of all boxes, whether opened or not


def outcomes(problem: Problem) -> Iterator[tuple[Fraction, tuple[int, ...]]]:
    """Probability and states of all boxes."""
    for states in product(*(range(len(rewards)) for rewards in problem.rewards)):
        prob = F(1)
        for box in problem.boxes:
            prob *= problem.law[box][tuple(states[p] for p in problem.parents[box])][states[box]]
        if prob > 0:
            yield prob, states


def payoff(problem: Problem, states: tuple[int, ...], opened: list[int]) -> Number:
    """Best reward less costs, if these boxes are opened."""
    best = problem.floor
    paid = F(0)
    for box in opened:
        reward = problem.rewards[box][states[box]]
        best = best if reward is None else max(best, reward)
        paid += problem.cost[box][tuple(states[p] for p in problem.parents[box])][states[box]]
    return best - paid


def run(
    problem: Problem, states: tuple[int, ...], decide: Callable[[list[int]], int | None]
) -> list[int]:
    """The boxes opened, in order, when `decide` says from those opened what comes next."""
    opened: list[int] = []
    while (box := decide(opened)) is not None:
        opened.append(box)
    return opened


@some(60)
@given(st.data())
def test_policy_outcome_by_outcome(data: st.DataObject) -> None:
    problem = data.draw(st.one_of(forests(), dags(), forests(outside="none")))
    index = data.draw(arbitrary_indices(problem))
    payoffs: defaultdict[Number, Fraction] = defaultdict(Fraction)
    opened = [F(0) for _ in problem.boxes]
    for prob, states in outcomes(problem):

        def decide(done: list[int], states: tuple[int, ...] = states) -> int | None:
            found = [problem.rewards[box][states[box]] for box in done]
            best = max([problem.floor, *(r for r in found if r is not None)])
            candidates = {
                box: index[box][tuple(states[p] for p in problem.parents[box])]
                for box in problem.boxes
                if box not in done and set(problem.parents[box]) <= set(done)
            }
            better = [box for box, sigma in candidates.items() if sigma > best]
            return max(better, key=lambda box: candidates[box], default=None)

        done = run(problem, states, decide)
        payoffs[payoff(problem, states, done)] += prob
        for box in done:
            opened[box] += prob
    followed = follow_indices(problem, index)
    assert followed.payoffs == payoffs
    assert followed.opened == tuple(opened)


@some(60)
@given(st.one_of(forests(max_boxes=2, max_states=2), dags(max_boxes=2, max_states=2)))
def test_optimum_is_the_best_of_all_strategies(problem: Problem) -> None:
    """A strategy says what to do at first, and after each state of the first box: try them all."""
    roots = [box for box in problem.boxes if not problem.parents[box]]
    values: list[Number] = [problem.floor]
    for first in roots:
        others = [box for box in problem.boxes if box != first]
        seconds: list[int | None] = [None, *others]
        for after in product(seconds, repeat=len(problem.rewards[first])):
            plans = [
                (prob, states, [first] if (then := after[states[first]]) is None else [first, then])
                for prob, states in outcomes(problem)
            ]
            values.append(sum(prob * payoff(problem, states, plan) for prob, states, plan in plans))
    assert optimal_value(problem) == max(values)


@some(40)
@given(st.one_of(forests(), dags()))
def test_sets_outcome_by_outcome(problem: Problem) -> None:
    for boxes in closed_sets(problem):
        assert value_of_set(problem, boxes) == sum(
            prob * payoff(problem, states, list(boxes)) for prob, states in outcomes(problem)
        )


@some(40)
@given(forests(max_boxes=3, max_states=2))
def test_orders_with_every_stopping_rule(problem: Problem) -> None:
    """A stopping rule is a yes or no for each sequence of states that can have been seen."""
    order = next(iter(feasible_orders(problem)))[:2]
    sizes = [len(problem.rewards[box]) for box in order]
    histories = [h for depth in range(len(order)) for h in product(*map(range, sizes[:depth]))]
    values = []
    for answers in product([False, True], repeat=len(histories)):
        rule = dict(zip(histories, answers, strict=True))
        value: Number = F(0)
        for prob, states in outcomes(problem):

            def decide(
                done: list[int],
                rule: dict[States, bool] = rule,
                states: tuple[int, ...] = states,
            ) -> int | None:
                more = len(done) < len(order) and rule[tuple(states[box] for box in done)]
                return order[len(done)] if more else None

            value += prob * payoff(problem, states, run(problem, states, decide))
        values.append(value)
    assert value_of_order(problem, order) == max(values)


# Indices


@some(60)
@given(forests(), st.data())
def test_index_is_where_opening_stops_to_pay(problem: Problem, data: st.DataObject) -> None:
    box = data.draw(st.sampled_from(problem.boxes))
    states = data.draw(st.sampled_from(parent_states(problem, box)))
    sigma = exact_indices(problem)[box][states]
    part = subtree(problem, box, states)
    if sigma == NOTHING:
        assert optimal_value(replace(part, outside=F(-1000))) == -1000
    else:
        assert isinstance(sigma, Fraction)
        below = sigma - F(1, 1000)
        assert optimal_value(replace(part, outside=sigma)) == sigma
        assert optimal_value(replace(part, outside=below)) > below


@some(100)
@given(independent_boxes(max_boxes=1, signals=False))
def test_index_of_one_box_balances_gain_and_cost(problem: Problem) -> None:
    sigma = exact_indices(problem)[0][()]
    law, cost = problem.law[0][()], problem.cost[0][()]
    rewards = [r for r in problem.rewards[0] if r is not None]
    gains = [p * max(r - sigma, F(0)) for p, r in zip(law, rewards, strict=True)]
    mean_cost = sum(p * c for p, c in zip(law, cost, strict=True))
    assert sum(gains) == mean_cost
    if mean_cost == 0:
        assert sigma == max(r for p, r in zip(law, rewards, strict=True) if p > 0)


@some(80)
@given(
    st.one_of(
        forests(max_boxes=5, max_states=2),
        several_lines(),
        forests(outside="none"),
        independent_boxes(),
    )
)
def test_following_the_indices_is_optimal(problem: Problem) -> None:
    assert follow_indices(problem, exact_indices(problem)).value == optimal_value(problem)


Atoms = dict[Number, Fraction]  # a random variable: probability of each value


def maximum(a: Atoms, b: Atoms) -> Atoms:
    """Law of the larger of two independent random variables."""
    law: defaultdict[Number, Fraction] = defaultdict(Fraction)
    for (x, p), (y, q) in product(a.items(), b.items()):
        law[max(x, y)] += p * q
    return dict(law)


def capped_value(
    problem: Problem, box: int, states: States, found: dict[tuple[int, States], Number]
) -> Atoms:
    """The recursion of the theory: cap what comes after the box at the box's own index."""
    after: defaultdict[Number, Fraction] = defaultdict(Fraction)
    for y, p in enumerate(problem.law[box][states]):
        reward = problem.rewards[box][y]
        best: Atoms = {NOTHING if reward is None else reward: F(1)}
        for child in problem.boxes:
            if problem.parents[child] == (box,):
                best = maximum(best, capped_value(problem, child, (y,), found))
        for x, q in best.items():
            if p * q > 0:
                after[x] += p * q
    law, cost = problem.law[box][states], problem.cost[box][states]
    gain = -sum((p * c for p, c in zip(law, cost, strict=True)), F(0))
    mass, sigma = F(0), NOTHING
    for x in sorted((x for x in after if x != NOTHING), reverse=True):
        gain += after[x] * x
        mass += after[x]
        sigma = max(sigma, gain / mass)
    found[box, states] = sigma
    capped: defaultdict[Number, Fraction] = defaultdict(Fraction)
    for x, p in after.items():
        capped[min(x, sigma)] += p
    return dict(capped)


@some(80)
@given(forests())
def test_capped_values_agree(problem: Problem) -> None:
    found: dict[tuple[int, States], Number] = {}
    best: Atoms = {problem.floor: F(1)}
    for box in problem.boxes:
        if not problem.parents[box]:
            best = maximum(best, capped_value(problem, box, (), found))
    indices = exact_indices(problem)
    assert found == {(box, s): indices[box][s] for box in problem.boxes for s in indices[box]}
    assert optimal_value(problem) == sum(p * x for x, p in best.items())


# Facts that hold for every problem


@some(60)
@given(st.one_of(forests(), dags(), dags(max_states=2, outside="none")))
def test_adapting_more_never_earns_less(problem: Problem) -> None:
    fixed_set, _ = best_nonadaptive(problem)
    fixed_order, _ = best_partially_adaptive(problem)
    assert optimal_value(problem) >= fixed_order >= fixed_set >= problem.floor


@some(60)
@given(st.one_of(forests(), dags()), st.data())
def test_no_policy_beats_the_optimum(problem: Problem, data: st.DataObject) -> None:
    index = data.draw(arbitrary_indices(problem))
    assert follow_indices(problem, index).value <= optimal_value(problem)


@some(40)
@given(lines(max_boxes=5, max_states=2))
def test_a_line_has_one_order(problem: Problem) -> None:
    (order,) = feasible_orders(problem)
    assert value_of_order(problem, order) == optimal_value(problem)


@some(40)
@given(st.one_of(forests(), dags()))
def test_endless_indices_open_everything(problem: Problem) -> None:
    followed = follow_indices(problem, lambda box, states: math.inf)
    assert followed.value == value_of_set(problem, problem.boxes)
    assert followed.openings == len(problem.boxes)
    assert best_nonadaptive(problem)[0] >= followed.value


@some(60)
@given(st.one_of(forests(), dags()), st.data())
def test_probabilities_add_up(problem: Problem, data: st.DataObject) -> None:
    followed = follow_indices(problem, data.draw(arbitrary_indices(problem)))
    assert followed.outside + sum(map(sum, followed.chosen)) == 1
    assert sum(followed.payoffs.values()) == 1
    assert sum(x * p for x, p in followed.payoffs.items()) == followed.value
    assert followed.reward - followed.spend == followed.value
    taken = followed.outside * problem.floor
    for rewards, chosen in zip(problem.rewards, followed.chosen, strict=True):
        for reward, p in zip(rewards, chosen, strict=True):
            assert p == 0 or reward is not None
            taken += p * (reward or 0)
    assert taken == followed.reward
    for opened, chosen, parents in zip(
        followed.opened, followed.chosen, problem.parents, strict=True
    ):
        assert sum(chosen) <= opened <= min([F(1), *(followed.opened[p] for p in parents)])


steps = st.sampled_from([F(-1), F(-1, 4), F(-1, 16), F(1, 16), F(1, 4), F(1)])


@some(60)
@given(forests(), steps)
def test_outside_option_is_worth_its_chance_to_be_taken(problem: Problem, step: Fraction) -> None:
    """The value is convex in the outside option; the chance that it is taken is a subgradient."""
    followed = follow_indices(problem, exact_indices(problem))
    moved = optimal_value(replace(problem, outside=problem.floor + step))
    assert moved >= followed.value + step * followed.outside
    assert min(step, 0) <= moved - followed.value <= max(step, 0)


@some(60)
@given(forests(), steps, st.data())
def test_cost_is_paid_with_the_chance_to_open(
    problem: Problem, step: Fraction, data: st.DataObject
) -> None:
    """The value is convex in each cost; minus the chance that it is paid is a subgradient."""
    box = data.draw(st.sampled_from(problem.boxes))
    step = max([step, *(-c for row in problem.cost[box].values() for c in row)])  # costs stay >= 0
    dearer = {states: tuple(c + step for c in row) for states, row in problem.cost[box].items()}
    cost = (*problem.cost[:box], dearer, *problem.cost[box + 1 :])
    followed = follow_indices(problem, exact_indices(problem))
    moved = optimal_value(replace(problem, cost=cost))
    assert moved >= followed.value - step * followed.opened[box]


@some(60)
@given(forests(), steps, st.data())
def test_reward_counts_with_the_chance_to_be_chosen(
    problem: Problem, step: Fraction, data: st.DataObject
) -> None:
    """The value is convex in each reward; the chance that it is taken is a subgradient."""
    box = data.draw(st.sampled_from(problem.boxes))
    y = data.draw(st.sampled_from(range(len(problem.rewards[box]))))
    reward = problem.rewards[box][y]
    raised = F(0) if reward is None else reward + step
    row = (*problem.rewards[box][:y], raised, *problem.rewards[box][y + 1 :])
    rewards = (*problem.rewards[:box], row, *problem.rewards[box + 1 :])
    followed = follow_indices(problem, exact_indices(problem))
    moved = optimal_value(replace(problem, rewards=rewards))
    assert moved >= followed.value + step * followed.chosen[box][y]


def test_the_oracle_imports_nothing_but_the_standard_library() -> None:
    tree = ast.parse(
        Path(__file__).parent.joinpath("helpers", "reference.py").read_text(encoding="utf-8")
    )
    names = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names == {
        *("__future__", "collections", "collections.abc", "dataclasses", "fractions"),
        *("itertools", "math", "numbers", "typing"),
    }
