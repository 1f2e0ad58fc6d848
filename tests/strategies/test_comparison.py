"""Strategies that adapt less, and simple rules, against enumeration and by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
import random_problems
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_forests import PAPER, forest_of, random_forest, run_command

from weitzman import Forest, Policy, evaluate, line, questions, side_by_side, simulate, solve
from weitzman.errors import InvalidArgument, InvalidForest, TooLarge, UnknownName
from weitzman.forest import expand
from weitzman.strategies.comparison import compare
from weitzman.strategies.fixed_orders import best_partially_adaptive, value_of_order
from weitzman.strategies.fixed_sets import (
    SetValues,
    _bounded,
    best_line,
    best_nonadaptive,
    value_of_set,
)
from weitzman.strategies.graphs import exhaustive
from weitzman.strategies.thumb_rules import everything, myopic, on_reward_grid, random_order

HALF = {  # the paper's half-approximation by a fixed set does not hold here
    "parent": [-1, 0],
    "cost": [0, 0.2],
    "rewards": [0, 0.001, 1],
    "law": [[0.9, 0.1, 0], [[0.98, 0.01, 0.01], [0.01, 0.01, 0.98], [0.98, 0.01, 0.01]]],
}


def close(a: float, b: reference.Number) -> bool:
    return a == b or abs(a - float(b)) <= 1e-10 * max(1.0, abs(float(b)))


def flipped(problem: reference.Problem) -> Forest:
    """The same problem as one of losses."""
    arrays = reference.to_arrays(problem)
    losses = [[-r for r in row] for row in arrays["rewards"]]
    return Forest.from_arrays(
        **arrays | {"rewards": losses, "outside": -arrays["outside"]}, minimize=True
    )


# -- published and hand-worked cases -----------------------------------------------------------


def test_the_papers_example():
    forest = Forest.from_arrays(**PAPER, names=["A", "B", "C"])
    chosen, order = best_nonadaptive(forest), best_partially_adaptive(forest)
    assert (chosen.value, order.value) == (pytest.approx(92.475), pytest.approx(93.825))
    assert (chosen.boxes, order.boxes) == (("A", "B", "C"), ("A", "C", "B"))
    assert (chosen.exact, order.exact) == (True, True)
    assert value_of_order(forest, ["A", "B", "C"]) == pytest.approx(92.975)
    found = compare(forest, episodes=1000)
    assert found["optimal"].value == pytest.approx(94.325)
    assert found.gap("fixed_order") == (pytest.approx(0.5), pytest.approx(0.5))
    assert found.gap("fixed_set") == (pytest.approx(1.85), pytest.approx(1.85))


def test_half_of_the_optimum_is_beyond_any_fixed_set():
    forest = Forest.from_arrays(**HALF)
    optimum, chosen = evaluate(solve(forest)), best_nonadaptive(forest)
    assert chosen.value == pytest.approx(0.0001)
    assert chosen.boxes == ("0",)
    assert optimum.reward / 2 - optimum.spend == pytest.approx(0.029001)
    assert compare(forest, episodes=100).share("fixed_set") < 0.002


def test_the_index_read_off_the_rewards_ranks_boxes_wrongly():
    # both indices, 1 and 9, are read off as 10: the first box comes first, and should not
    forest = Forest.from_arrays(
        parent=[-1, -1], cost=[0.9, 0.9], rewards=[0, 10], law=[[0.9, 0.1], [0.1, 0.9]]
    )
    solution = solve(forest)
    assert [solution.index(0), solution.index(1)] == [pytest.approx(1), pytest.approx(9)]
    grid = on_reward_grid(solution)
    assert grid.index.tolist() == [10, 10]
    assert solution.value == pytest.approx(8.11)
    assert evaluate(grid).value == pytest.approx(7.39)  # -0.9 + 0.1 * 10 + 0.9 * 8.1


@settings(max_examples=40)
@given(random_problems.lines(max_boxes=5))
def test_the_index_read_off_the_rewards_stops_a_line_rightly(problem):
    solution = solve(forest_of(problem), exact=True)
    assert close(evaluate(on_reward_grid(solution)).value, solution.value)


def test_myopic_values_do_not_see_what_a_box_unlocks():
    door = {
        "parent": [-1, 0],
        "cost": [1, 1],
        "rewards": [[0], [0, 10]],
        "law": [[1], [[0.5, 0.5]]],
    }
    forest = Forest.from_arrays(**door)
    assert myopic(forest).index.tolist() == [-1, 8]
    assert evaluate(myopic(forest)).value == 0
    assert solve(forest).value == 3


# -- against enumeration -----------------------------------------------------------------------


@given(random_problems.forests(max_boxes=5))
def test_best_set_as_by_enumeration(problem):
    found, (value, _) = best_nonadaptive(forest_of(problem)), reference.best_nonadaptive(problem)
    assert found.exact
    assert found.bound == found.value
    assert close(found.value, value)
    members = np.flatnonzero(found.copies).tolist()
    assert close(float(reference.value_of_set(problem, members)), value)


@settings(max_examples=40)
@given(random_problems.forests(max_boxes=4))
def test_best_order_as_by_enumeration(problem):
    found = best_partially_adaptive(forest_of(problem))
    value, order = reference.best_partially_adaptive(problem)
    assert found.exact
    assert found.bound == found.value
    assert close(found.value, value)
    assert close(float(reference.value_of_order(problem, found.order)), value)
    assert close(value_of_order(forest_of(problem), order), value)


@settings(max_examples=20)
@given(random_problems.forests(max_boxes=4, signals=False))
def test_losses_are_rewards_with_signs_flipped(problem):
    up, down = forest_of(problem), flipped(problem)
    for best in (best_nonadaptive, best_partially_adaptive):
        assert close(best(up).value, -best(down).value)
    assert close(evaluate(myopic(up)).value, -evaluate(myopic(down)).value)
    grids = [evaluate(on_reward_grid(solve(f, exact=True))).value for f in (up, down)]
    assert close(grids[0], -grids[1])
    assert close(evaluate(everything(up)).value, -evaluate(everything(down)).value)


@settings(max_examples=40)
@given(random_problems.forests(max_boxes=5))
def test_a_set_and_everything_as_by_enumeration(problem):
    forest = forest_of(problem)
    for boxes in reference.closed_sets(problem):
        assert close(value_of_set(forest, boxes), reference.value_of_set(problem, boxes))
    assert close(evaluate(everything(forest)).value, reference.value_of_set(problem, problem.boxes))


@settings(max_examples=40)
@given(random_problems.forests(max_boxes=4))
def test_the_myopic_index_is_that_of_a_box_alone(problem):
    policy = myopic(forest_of(problem))
    for box in problem.boxes:
        for s, states in enumerate(sorted(problem.law[box])):
            alone = reference.Problem(
                parents=((),),
                rewards=(problem.rewards[box],),
                law=({(): problem.law[box][states]},),
                cost=({(): problem.cost[box][states]},),
                outside=problem.outside,
            )
            index = policy.index[policy.index_at[box] + s]
            assert close(index, reference.exact_indices(alone)[0][()])


@settings(max_examples=30)
@given(random_problems.forests(max_boxes=4, signals=False))
def test_adapting_more_never_earns_less(problem):
    found = compare(forest_of(problem), episodes=50)
    values = [found[key].value for key in ("fixed_set", "fixed_order", "optimal")]
    assert values[0] <= values[1] + 1e-9
    assert values[1] <= values[2] + 1e-9
    assert close(values[2], reference.optimal_value(problem))
    exact = [s for s in found.strategies if s.how == "exact"]
    assert all(s.value <= values[2] + 1e-9 for s in exact)


def random_walk(problem: reference.Problem, index: list[list[float]] | None, budget: int) -> float:
    """What opening boxes at random earns, by enumeration; with indices, only those worth it."""

    def go_on(seen: reference.Seen, left: int) -> Fraction | float:
        best = reference._best(problem, seen)
        ready = []
        for box in reference._available(problem, seen) if left else []:
            above = reference._states_above(problem, seen, box)
            if index is None or index[box][above[0] if above else 0] > best:
                ready.append(box)
        total: Fraction | float = Fraction(0) if ready else best
        for box in ready:
            for p, cost, now in reference._openings(problem, seen, box):
                total += p * (go_on(now, left - 1) - cost) / len(ready)
        return total

    return float(go_on((None,) * len(problem.parents), budget))


@settings(max_examples=30)
@given(random_problems.forests(max_boxes=4, outside="zero"), st.sampled_from([None, 1, 2, 3]))
def test_random_order_as_by_enumeration(problem, budget):
    solution = solve(forest_of(problem), exact=True)
    rows = [solution.indices(i).tolist() for i in problem.boxes]
    played = random_order(solution, 20_000, 1, budget=budget).payoff
    exact = random_walk(problem, rows if budget is None else None, budget or 9)
    # 6 standard errors, and room for payoffs up to 13 apart that are too rare to be seen
    assert abs(played.mean - exact) <= 6 * played.standard_error + 13 * 20 / 20_000


def test_random_order_says_what_has_no_limit_instead():
    many = solve(
        Forest.from_arrays(parent=[-1], cost=[1], rewards=[0, 9], law=[[0.5, 0.5]], count=[5001])
    )
    with pytest.raises(InvalidForest, match=r"at most 5000 boxes.*has 5001.*budget=") as told:
        random_order(many, 10, 1)
    assert "limit`" not in str(told.value)
    assert simulate(many, 10, 1, budget=3).openings.mean == 3


# -- parts that the search rests on ------------------------------------------------------------


@settings(max_examples=40)
@given(random_problems.forests(max_boxes=5))
def test_the_gains_over_a_set_bound_all_larger_sets(problem):
    values, sets = SetValues(forest_of(problem)), reference.closed_sets(problem)
    worth = {s: float(reference.value_of_set(problem, s)) for s in sets}
    for boxes in sets:
        if boxes or problem.outside is not None:
            assert close(values.value(boxes), worth[boxes])
            for out in (frozenset(), *(frozenset([v]) for v in problem.boxes)):
                most = worth[boxes] + sum(values.hopes(boxes, out).values())
                larger = (x for s, x in worth.items() if s >= boxes and not s & (out - boxes))
                assert max(larger) <= most + 1e-10


@settings(max_examples=40)
@given(random_problems.forests(max_boxes=5, outside="zero"))
def test_branch_and_bound_needs_no_good_start(problem):
    values, best = SetValues(forest_of(problem)), reference.best_nonadaptive(problem)[0]
    found, bound, exact = _bounded(values, frozenset(), 10**6)
    assert exact
    assert close(bound, best)
    assert close(float(reference.value_of_set(problem, found)), best)
    _, bound, exact = _bounded(values, frozenset(), 1)
    assert bound >= float(best) - 1e-10


# -- copies, sizes, limits ---------------------------------------------------------------------


def test_copies_are_as_good_as_boxes_written_out():
    forest = Forest.from_arrays(**PAPER, count=[2, 1, 2])
    for best in (best_nonadaptive, best_partially_adaptive):
        assert best(forest).value == pytest.approx(best(expand(forest)).value)
    assert best_nonadaptive(forest).exact


def test_what_is_too_large_for_certainty_has_honest_bounds():
    rng = np.random.default_rng(2)
    forest = side_by_side(*[random_forest(rng, 3, branch=2) for _ in range(5)])
    optimum = solve(forest).value
    sure, unsure = best_nonadaptive(forest, limit=10**6), best_nonadaptive(forest, limit=3)
    assert sure.exact
    assert not unsure.exact
    assert unsure.value <= sure.value <= unsure.bound + 1e-12
    assert unsure.bound <= optimum + 1e-8
    forest = Forest.from_arrays(**PAPER, count=[3, 1, 3])
    best, order = best_partially_adaptive(forest), best_partially_adaptive(forest, limit=5)
    assert best.exact
    assert not order.exact
    assert order.value <= best.value <= order.bound + 1e-9
    assert order.bound <= solve(forest).value + 1e-9
    assert order.value == pytest.approx(value_of_order(order.forest, order.order))


def test_a_large_forest_is_compared_too():
    rng = np.random.default_rng(0)
    n = 400
    parent = np.where(np.arange(n) < 100, -1, rng.integers(0, np.maximum(np.arange(n), 1)))
    forest = Forest.from_arrays(
        parent=parent, cost=rng.uniform(0.002, 0.02, n), rewards=np.sort(rng.random(4)),
        law=[rng.dirichlet(np.full(4, 0.5), None if p < 0 else 4) for p in parent],
    )  # fmt: skip
    found = compare(forest, episodes=20_000)
    order, chosen = found["fixed_order"], found["fixed_set"]
    assert order.how == "best found"
    assert chosen.value <= order.value <= order.bound
    assert found["random_order"].value < found["optimal"].value
    assert found.lost("everything") > 0


def test_billions_of_copies_are_compared_too():
    forest = Forest.from_arrays(**PAPER, count=[10**6, 10**3, 3])
    found = compare(forest, episodes=2000)
    assert {s.key for s in found.strategies}.isdisjoint({"random_order", "random_budget"})
    assert found["fixed_set"].value <= found["fixed_order"].value <= found["optimal"].value
    assert found["everything"].openings == pytest.approx(1e6 + 1e9 + 3)
    assert sum(found.fixed_set.copies) > 1


def test_a_set_and_an_order_must_hold_parents():
    forest = Forest.from_arrays(**PAPER, names=["A", "B", "C"])
    with pytest.raises(InvalidForest, match=r"'B' is there and 'A' is not \(1 such"):
        value_of_set(forest, ["B"])
    with pytest.raises(InvalidForest, match="'B' comes without or before 'A'"):
        value_of_order(forest, ["B", "A"])
    with pytest.raises(InvalidForest, match="must not name a box twice"):
        value_of_order(forest, ["A", "A"])
    with pytest.raises(InvalidForest, match="without copies"):
        value_of_order(Forest.from_arrays(**PAPER, count=[2, 1, 1]), [0])
    assert value_of_set(forest, []) == value_of_order(forest, []) == 0


def test_bad_arguments_have_messages():
    forest = Forest.from_arrays(**PAPER)
    assert compare(forest, rng=np.int64(3)).table() == compare(forest, rng=3).table()
    with pytest.raises(UnknownName, match="no strategy has the key 'nosuch'"):
        compare(forest)["nosuch"]
    for wrong in ({"rng": None}, {"rng": -1}, {"episodes": 0}, {"budget": 0}, {"limit": 0}):
        name = next(iter(wrong))
        with pytest.raises(InvalidArgument, match=f"`{name}` must be a whole number"):
            compare(forest, **wrong)
    with pytest.raises(InvalidArgument, match="`time_limit` must be at least 0"):
        compare(forest, time_limit=-1)


def test_simulated_strategies_never_beat_the_optimum():
    """Rare states and few episodes: each estimate was above the optimum in some seed before."""
    rng = np.random.default_rng(4)
    n = 30
    forest = Forest.from_arrays(
        parent=[-1] * n, cost=rng.uniform(0.05, 0.2, n), rewards=rng.uniform(0, 5, (n, 3)),
        law=rng.dirichlet([5, 1, 0.1], n),
    )  # fmt: skip
    best, simulated = solve(forest).value, 0
    for seed in range(10):
        found = compare(forest, episodes=20, rng=seed, limit=20)
        for row in found.strategies:
            assert row.value <= best + 1e-12
            simulated += row.how == "simulated"
    assert simulated == 40


def test_nothing_to_gain_has_no_share():
    forest = Forest.from_arrays(parent=[-1], cost=[9], rewards=[0, 10], law=[[0.5, 0.5]])
    found = compare(forest, episodes=10)
    assert found["optimal"].value == found["fixed_set"].value == 0
    assert math.isnan(found.share("everything"))
    assert found.lost("everything") == 4


# -- what is shown -----------------------------------------------------------------------------


def test_tables_and_frames():
    found = compare(Forest.from_arrays(**PAPER), episodes=1000, budget=2)
    text = str(found)
    assert "the best 2 by index" in text
    assert "adaptivity gap over the best fixed order: 0.5" in text
    assert "94.325" in repr(found)
    assert "<table>" in found._repr_html_()
    frame = found.to_pandas().set_index("key")
    assert frame.lost["fixed_set"] == pytest.approx(1.85)
    assert frame.openings["budget"] == 2
    assert "best of all" in repr(found.fixed_set) + repr(found.fixed_order)


def test_progress_ends_at_the_end():
    seen: list[tuple[int, int]] = []
    compare(Forest.from_arrays(**PAPER), episodes=10, progress=lambda *x: seen.append(x))
    # The optimum comes first and is not told; the fixed set and the fixed order are one step.
    assert seen == [(i, 9) for i in range(1, 10)]


def test_the_command(tmp_path, capsys):
    out = run_command(tmp_path, capsys, "compare", "--episodes", "1000", "--budget", "2")
    assert "fully adaptive (optimal)" in out
    out = run_command(tmp_path, capsys, "compare", "--episodes", "1000", "--json")
    found = json.loads(out)
    assert found["fixed_order"] == ["A", "C", "B"]
    row = {s["key"]: s for s in found["strategies"]}
    assert row["fixed_order"]["value"] == pytest.approx(93.825)
    assert row["optimal"]["bound"] is None


def test_policies_are_policies():
    forest = Forest.from_arrays(**PAPER)
    assert all(isinstance(p, Policy) for p in (myopic(forest), everything(forest)))


@pytest.mark.parametrize("cost", [1e12, 1e15])
def test_a_box_beyond_all_means_hides_no_order(cost):
    boxes = {"rewards": [0.0, 1.0], "outside": 0.0}
    two = Forest.from_arrays(
        parent=[-1, -1], cost=[0.2, 0.25], law=[[0.5, 0.5], [0.4, 0.6]], **boxes
    )
    three = Forest.from_arrays(
        parent=[-1] * 3, cost=[0.2, 0.25, cost], law=[[0.5, 0.5], [0.4, 0.6], [0.5, 0.5]], **boxes
    )
    found = best_partially_adaptive(three)
    assert found.exact
    assert found.value == pytest.approx(best_partially_adaptive(two).value, abs=1e-12)
    assert found.value > 0.4
    rows = compare(three, rng=1, episodes=100).table().splitlines()
    assert rows[1].split()[3] == f"{compare(two, rng=1, episodes=100).strategies[0].value:.6g}"


def test_an_order_takes_memory_by_its_own_boxes_and_a_wide_one_is_rejected():
    rng = np.random.default_rng(3)
    n = 3000
    forest = Forest.from_arrays(
        parent=[-1] * n,
        cost=np.full(n, 0.01),
        rewards=rng.random((n, 4)),
        law=np.full((n, 4), 0.25),
    )
    alone = forest.take(np.arange(3))
    assert value_of_order(forest, [0, 1, 2]) == pytest.approx(value_of_order(alone, [0, 1, 2]))
    assert value_of_order(forest, []) == forest.outside
    assert value_of_order(forest, range(n)) == pytest.approx(solve(forest).value, abs=0.2)
    wide = Forest.from_arrays(
        parent=[*[-1] * 20, *range(20)], cost=1, rewards=[0, 1],
        law=[[0.5, 0.5]] * 20 + [[[0.5, 0.5]] * 2] * 20,
    )  # fmt: skip
    with pytest.raises(TooLarge, match="leads to more than 1000000 situations at a time"):
        value_of_order(wide, range(40))


# -- orders of larger forests ------------------------------------------------------------------


def all_orders(parent: list[int], begun: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """All orders of all boxes, each box after its parent."""
    if len(begun) == len(parent):
        yield begun
    for v, up in enumerate(parent):
        if v not in begun and (up < 0 or up in begun):
            yield from all_orders(parent, (*begun, v))


@pytest.mark.parametrize("seed", range(6))
def test_best_order_of_up_to_eight_boxes_as_by_enumeration(seed):
    rng = np.random.default_rng(seed)
    parent = [[-1, 0, 0, 1, 1, 3, 2, 6], [-1, 0, 1, -1, 3, 4, 3], [-1, 0, 1, 2, -1, 4, 5, 6]][
        seed % 3
    ]
    forest = Forest.from_arrays(
        parent=parent, cost=rng.uniform(0.05, 1, len(parent)), outside=1,
        rewards=rng.uniform(0, 8, (len(parent), 2)),
        law=[rng.dirichlet([1, 1], None if up < 0 else 2) for up in parent],
    )  # fmt: skip
    best = max(value_of_order(forest, order) for order in all_orders(parent))
    found = best_partially_adaptive(forest, limit=4000)
    assert close(found.value, best)
    assert close(value_of_order(forest, found.order), best)


def test_the_best_order_is_never_worse_than_on_shorter_lines():
    rng, values = np.random.default_rng(5), []
    first, step = rng.dirichlet(np.ones(4)), rng.dirichlet(np.full(4, 0.6), 4)
    for length in (4, 12, 30):
        steps, costs = [first] + [step] * (length - 1), (0.1, 0.12, 0.15)
        lines = [line(steps, rewards=[0, 1, 3, 9], cost=cost) for cost in costs]
        values.append(best_partially_adaptive(side_by_side(lines), limit=400).value)
    assert values == sorted(values)


def test_every_result_goes_to_pandas():
    pytest.importorskip("pandas")
    forest = Forest.from_arrays(**PAPER)
    chosen = best_nonadaptive(forest).to_pandas()
    assert chosen.to_dict("list") == {
        "number": [0, 1, 2], "box": ["0", "1", "2"], "copies": [1, 1, 1],
    }  # fmt: skip
    assert best_partially_adaptive(forest).to_pandas()["box"].tolist() == ["0", "2", "1"]
    assert best_line(forest).to_pandas()["number"].tolist() == [0, 1]
    mixture = questions.within_budget(forest, 20).to_pandas()
    assert list(mixture) == ["budget", "spend", "reward", "price", "share"]
    assert mixture["spend"].tolist() == pytest.approx([20])
    committed = questions.commit(forest, unseen=True).to_pandas()
    assert committed["chosen"].tolist() == ["0", "2, unseen"]
    assert exhaustive(forest).to_pandas()["value"].tolist() == pytest.approx([94.325])
    assert list(questions.capped(forest, 30, episodes=9).to_pandas()) == [
        "reward", "error", "bound", "spend",
    ]  # fmt: skip
