"""Each erratum of docs/paper.md, shown by exact arithmetic and by the package."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import reference
from reference import Number, Problem, States

import weitzman

Law = dict[Number, Fraction]  # probability of each value

# -- 1: the example for partially adaptive strategies ----------------------------------------------

EXAMPLE = reference.from_nested(
    parent=[-1, 0, -1],
    cost=[20, 3, 5],
    rewards=[[1, 900], [-9, 21, 890, 920], [10, 50]],
    law=[["0.9", "0.1"], [["0.5", "0.5", 0, 0], [0, 0, "0.5", "0.5"]], ["0.5", "0.5"]],
)


def test_values_of_the_example() -> None:
    assert reference.value_of_order(EXAMPLE, [0, 1, 2]) == Fraction("92.975")  # not 90
    assert reference.value_of_order(EXAMPLE, [0, 2, 1]) == Fraction("93.825")  # not 92.5
    assert reference.best_partially_adaptive(EXAMPLE)[0] == Fraction("93.825")
    assert reference.optimal_value(EXAMPLE) == Fraction("94.325")  # not 92.7
    assert reference.best_nonadaptive(EXAMPLE) == (Fraction("92.475"), frozenset({0, 1, 2}))
    solution = weitzman.solve(weitzman.Forest.from_arrays(**reference.to_arrays(EXAMPLE)))
    assert solution.value == pytest.approx(94.325, abs=1e-9)


def test_printed_values_come_from_not_keeping_the_better_reward() -> None:
    after_a = Fraction("0.9")
    b_alone = Fraction(1, 2) * (920 + 890) - 3  # E[v_B] - 3, though 900 is in hand
    c_alone = Fraction(1, 2) * (50 + 10) - 5
    assert -20 + after_a * (c_alone - 3) + (1 - after_a) * b_alone == 90
    assert -20 + after_a * c_alone + (1 - after_a) * 900 == Fraction("92.5")
    assert -20 + after_a * c_alone + (1 - after_a) * b_alone == Fraction("92.7")


# -- 2: how soon a chain reaches its best state ----------------------------------------------------

STICKY = np.array([[0.99, 0.01], [0.01, 0.99]])


def t_delta(delta: float, share: float, factor: float, rate: float) -> float:
    """The paper's number of boxes, with log(delta) where it prints log(1 / delta)."""
    mixed = 2 * factor / (share * (1 - rate))
    return max(mixed, math.log(delta) / math.log(1 - share / 2))


def test_printed_t_delta_does_not_depend_on_delta() -> None:
    for delta in (0.5, 1e-3, 1e-300):
        assert math.log(1 / delta) / math.log(1 - 0.5 / 2) < 0


def test_rewards_along_a_line_are_not_independent() -> None:
    power = np.eye(2)
    for n in range(1, 101):  # the law of box n is within C alpha^n of (1/2, 1/2)
        power = power @ STICKY
        assert np.abs(power[0] - 0.5).sum() / 2 <= 0.5 * 0.98**n + 1e-15
    assert t_delta(1e-6, 0.5, 0.5, 0.98) == pytest.approx(100)  # claimed to miss with <= 1e-6
    without_top = STICKY[:1, :1]  # Q: the chain before it first shows the best reward
    assert np.linalg.matrix_power(without_top, 100)[0, 0] == pytest.approx(0.366, abs=1e-3)


def test_cutting_the_line_loses_far_more_than_claimed() -> None:
    first = STICKY[0]
    value = [
        weitzman.solve(
            weitzman.line((first, STICKY), length=n, rewards=[0.0, 1.0], cost=1e-4)
        ).value
        for n in (100, 2000)
    ]
    assert value[1] - value[0] == pytest.approx(0.362, abs=1e-3)  # claimed: at most 2e-6


def test_several_lines_need_the_least_share_of_the_best_state() -> None:
    slow = np.array([[1 - 1e-4, 1e-4], [0.5, 0.5]])  # shows the best reward 1 time in 5001
    fast = np.array([[0.5, 0.5], [0.5, 0.5]])
    share = [np.linalg.matrix_power(p, 10**6)[0, 1] for p in (slow, fast)]
    t = math.ceil(math.log(1e-6) / math.log(1 - max(share) / 2))
    assert t == 49
    assert slow[0, 0] ** t > 0.99


# -- 3: indices read off the grid of rewards -------------------------------------------------------


def several_lines(rng: random.Random) -> tuple[Problem, list[list[int]]]:
    """Two lines of one or two boxes; the least reward is 0, the outside option."""

    def below(n: int) -> int:
        return int(n * rng.random())  # the same numbers in every version of Python

    def row() -> list[Fraction]:
        a, b = sorted([below(11), below(11)])
        return [Fraction(w, 10) for w in (a, b - a, 10 - b)]

    parent: list[int] = []
    law: list[list[object]] = []
    lines: list[list[int]] = [[], []]
    for boxes in lines:
        for _ in range(1 + below(2)):
            parent.append(boxes[-1] if boxes else -1)
            law.append([row() for _ in range(3)] if boxes else [*row()])
            boxes.append(len(parent) - 1)
    cost = [1 + below(30) for _ in parent]
    rewards = sorted({0, 1 + below(50), 51 + below(50)})
    return reference.from_nested(parent, cost, rewards, law), lines


def grid_indices(problem: Problem, boxes: list[int]) -> dict[int, dict[States, Number]]:
    """The paper's table for one line, and for each box the smallest x in it with Phi = x."""
    grid = [Fraction(r) for r in problem.rewards[0] if r is not None]
    found: dict[int, dict[States, Number]] = {}
    later: dict[tuple[Fraction, int], Fraction] = {}
    for box in reversed(boxes):
        phi: dict[tuple[Fraction, States], Fraction] = {}
        for above, law in problem.law[box].items():
            for x in grid:
                go_on = Fraction(0)
                for y, p in enumerate(law):
                    best = max(x, grid[y])
                    go_on += p * (later.get((best, y), best) - problem.cost[box][above][y])
                phi[x, above] = max(x, go_on)
        found[box] = {s: min(x for x in grid if phi[x, s] == x) for s in problem.law[box]}
        later = {(x, s[0]): value for (x, s), value in phi.items() if s}
    return found


def test_grid_indices_cannot_rank_lines() -> None:
    rng = random.Random(1979)
    worth_it = suboptimal = 0
    worst: Number = 1
    for _ in range(400):
        problem, lines = several_lines(rng)
        best = reference.optimal_value(problem)
        if best > 0:
            worth_it += 1
            index = {}
            for boxes in lines:
                index |= grid_indices(problem, boxes)
            earned = reference.follow_indices(problem, [index[b] for b in problem.boxes]).value
            suboptimal += earned < best
            worst = min(worst, earned / best)
    assert (worth_it, suboptimal) == (387, 96)
    assert float(worst) == pytest.approx(0.2697, abs=1e-4)


def test_grid_index_on_two_boxes() -> None:
    two = reference.from_nested(
        parent=[-1, -1], cost=[97, 1], rewards=[0, 100], law=[["0.01", "0.99"], [0, 1]]
    )
    grid = [grid_indices(two, [b])[b] for b in (0, 1)]
    assert grid == [{(): 100}, {(): 100}]  # a tie, though the indices are 2.02 and 99
    assert reference.index_rows(reference.exact_indices(two)) == [[200 / 99], [99.0]]
    assert reference.follow_indices(two, grid).value == Fraction("2.99")
    assert reference.optimal_value(two) == 99


def test_grid_decides_rightly_when_to_stop_on_one_line() -> None:
    rng = random.Random(3)
    for _ in range(50):
        problem, lines = several_lines(rng)
        alone = reference.subtree(problem, lines[0][0])
        index = grid_indices(alone, [*alone.boxes])
        earned = reference.follow_indices(alone, [index[b] for b in alone.boxes]).value
        assert earned == reference.optimal_value(alone)


# -- 4: where the maximum stands in the equation for forests ---------------------------------------

BRANCH = reference.from_nested(
    parent=[-1, 0, 0],
    cost=[1, 3, 3],
    rewards=[0, 10],
    law=[["0.5", "0.5"], [["0.5", "0.5"]] * 2, [["0.5", "0.5"]] * 2],
)


def test_going_on_is_decided_after_the_reward_is_seen() -> None:
    half, x = Fraction(1, 2), 0
    root = [(half, 0), (half, 10)]
    below = [(half, 10, 3), (half * half, 10, 6), (half * half, 0, 6)]  # best probing of the rest
    only_root = sum(p * max(r, x) for p, r in root) - 1
    all_of_it = sum(p * q * (max(r, x, b) - c) for p, r in root for q, b, c in below) - 1
    outside = max(x, only_root, all_of_it)
    inside = -1 + sum(
        p * max(max(r, x), sum(q * (max(r, x, b) - c) for q, b, c in below)) for p, r in root
    )
    assert (outside, inside) == (4, Fraction("5.5"))
    assert reference.optimal_value(BRANCH) == inside
    solution = weitzman.solve(weitzman.Forest.from_arrays(**reference.to_arrays(BRANCH)))
    assert solution.value == pytest.approx(5.5, abs=1e-9)


# -- 5: what has exponentially many values, and what has not ---------------------------------------


def scouts(m: int) -> Problem:
    """A root with m scouts below it; behind each a box that is worth opening after good news."""
    parent, cost, rewards, law = [-1], [Fraction(0)], [[0]], [[1]]
    for i in range(m):
        parent += [0, len(parent)]
        cost += [Fraction(1, 1000), Fraction(2**i, 100)]
        rewards += [[0, 0], [0, 1000]]
        law += [[["1/2", "1/2"]], [[1, 0], ["9/10", "1/10"]]]
    return reference.from_nested(parent, cost, rewards, law)


def larger(laws: list[Law]) -> Law:
    """The law of the largest of independent values."""
    out: Law = {}
    before = Fraction(0)
    for x in sorted({x for law in laws for x in law}):
        now = Fraction(1)
        for law in laws:
            now *= sum((p for v, p in law.items() if v <= x), Fraction(0))
        if now > before:
            out[x] = now - before
        before = now
    return out


def capped_values(problem: Problem) -> list[dict[States, Law]]:
    """The recursion of docs/theory.md in exact arithmetic."""
    out: list[dict[States, Law]] = [{} for _ in problem.boxes]
    for box in reversed(reference.topological_order(problem)):
        children = [u for u in problem.boxes if problem.parents[u] == (box,)]
        for above, row in problem.law[box].items():
            cost = sum(p * c for p, c in zip(row, problem.cost[box][above], strict=True))
            found: Law = {}
            for y, p in enumerate(row):
                reward = problem.rewards[box][y]
                assert reward is not None
                for x, q in larger(
                    [{reward: Fraction(1)}, *(out[u][y,] for u in children)]
                ).items():
                    if p > 0:
                        found[x] = found.get(x, Fraction(0)) + p * q
            mass, gain, index = Fraction(0), -cost, -math.inf
            for x in sorted(found, reverse=True):  # highest root of the lines through the tail
                mass += found[x]
                gain += found[x] * x
                index = max(index, gain / mass)
            law = out[box].setdefault(above, {})
            for x, p in found.items():
                law[min(x, index)] = law.get(min(x, index), Fraction(0)) + p
    return out


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 6, 7])
def test_accumulated_costs_are_exponentially_many_but_breakpoints_are_not(m: int) -> None:
    problem = scouts(m)
    values = capped_values(problem)
    index = [{above: max(law) for above, law in box.items()} for box in values]
    followed = reference.follow_indices(problem, index)
    assert followed.value == sum(x * p for x, p in values[0][()].items())
    assert len(followed.payoffs) == 2 ** (m + 1) - 1  # at most as many as pairs (reward, cost)
    assert len(values[0][()]) == m + 1
    solution = weitzman.solve(
        weitzman.Forest.from_arrays(**reference.to_arrays(problem)), exact=True
    )
    assert solution.value == pytest.approx(float(followed.value), rel=1e-12)


# -- 6: half of the adaptive reward without adapting -----------------------------------------------

HALF = reference.from_nested(
    parent=[-1, 0],
    cost=[0, "0.2"],
    rewards=[0, "0.001", 1],
    law=[
        ["0.9", "0.1", 0],
        [["0.98", "0.01", "0.01"], ["0.01", "0.01", "0.98"], ["0.98", "0.01", "0.01"]],
    ],
)


def test_no_fixed_set_earns_half() -> None:
    adaptive = reference.follow_indices(HALF, reference.exact_indices(HALF))
    assert adaptive.value == reference.optimal_value(HALF) == Fraction("0.078002")
    assert adaptive.reward / 2 - adaptive.spend == Fraction("0.029001")
    assert reference.best_nonadaptive(HALF) == (Fraction("0.0001"), frozenset({0}))


def test_best_set_need_not_be_a_line() -> None:
    two = reference.from_nested(
        parent=[-1, -1], cost=[1, 1], rewards=[0, 10], law=[["0.5", "0.5"]] * 2
    )
    assert reference.best_nonadaptive(two) == (Fraction("5.5"), frozenset({0, 1}))
    assert reference.value_of_set(two, {0}) == 4


def test_no_line_of_a_star_earns_half_though_a_set_does() -> None:
    row, n = ["0.9", "0.1"], 41
    star = reference.from_nested(
        parent=[-1] + [0] * (n - 1),
        cost=["0.001"] * n,
        rewards=[0, 1],
        law=[row] + [[row, row]] * (n - 1),
    )
    missed = Fraction("0.9") ** n
    optimum = sum(x * p for x, p in capped_values(star)[0][()].items())
    assert optimum == (1 - missed) * (1 - Fraction("0.001") / Fraction("0.1"))  # until one is found
    promised = (1 - missed) / 2 - (1 - missed) * Fraction("0.01")
    lines = [reference.value_of_set(star, boxes) for boxes in ([0], [0, 1])]
    assert max(lines) == Fraction("0.188") < promised * Fraction("0.4")
    all_of_them = 1 - missed - n * Fraction("0.001")
    assert promised < all_of_them
    assert [round(float(x), 4) for x in (optimum, promised, all_of_them)] == [
        0.9768,
        0.4835,
        0.9457,
    ]


# -- 7. the factor of the fixed-point iteration ---------------------------------------------------


def test_the_stated_factor_does_not_bound_entries_after_the_best_state() -> None:
    law, cost, half = (
        [[Fraction(1, 2)] * 2, [Fraction(1), Fraction(0)]],
        Fraction(1, 10),
        Fraction(1, 2),
    )

    def step(phi: list[Fraction]) -> list[Fraction]:
        return [max(Fraction(0), -cost + row[0] * phi[0] + row[1]) for row in law]

    true = [Fraction(4, 5), Fraction(7, 10)]
    assert step(true) == true  # the fixed point, nothing in hand
    error = Fraction(1, 100)
    after = [a - b for a, b in zip(step([true[0] + error, true[1]]), true, strict=True)]
    assert after == [half * error, error]
    assert max(after) > half * error  # half = max (1 - p_ik) over i < k


# -- 2, 10, 11: proofs and lemmas ------------------------------------------------------------------


def test_costs_above_the_best_reward_do_not_stop_a_search() -> None:
    """After 688 boxes 6.19 is paid for a reward of 1, and the search continues; little is lost."""
    chance, cost = Fraction("0.01"), Fraction("0.009")
    index = 1 - cost / chance
    assert index == Fraction("0.1")
    assert 688 * cost > 6
    missed = (1 - chance) ** 688
    assert 0 < missed <= Fraction("0.001") < (1 - chance) ** 687
    lost = index - (1 - missed) * (1 - cost / chance)  # with a box more each time the same gain
    assert 0 < lost < Fraction("0.001")
    rare = weitzman.Chain([[0.99, 0.01]] * 2, rewards=[0, 1])
    assert weitzman.chains.exact_depth(rare, 0.001) == 688
    cut = weitzman.line((rare.law[0], rare.law), length=688, rewards=[0, 1], cost=0.009)
    loss = weitzman.solve_line(rare, 0.009).value_at(0) - weitzman.solve(cut, exact=True).value
    assert loss == pytest.approx(float(lost), abs=1e-12)


@pytest.mark.parametrize("level", [1, 2])
def test_the_printed_length_fails_at_every_level(level: int) -> None:
    law = [[0.99, 0.01, 0], [0.005, 0.985, 0.01], [0, 0.01, 0.99]]
    chain = weitzman.Chain(law, rewards=[0, 1, 2])
    bounds = weitzman.chains.miss_bounds(chain, 0.001, target=range(level, 3))
    inner = [[Fraction(str(p)) for p in row[:level]] for row in law[:level]]
    left = [Fraction(1)] * level
    for _ in range(bounds.boxes["sign corrected"]):
        left = [sum((p * x for p, x in zip(row, left, strict=True)), Fraction(0)) for row in inner]
    assert max(left) > Fraction("0.001")
    assert float(max(left)) == pytest.approx(bounds.misses["sign corrected"])
    assert bounds.holds("blocks")
    assert bounds.holds("exact")


def index_of(law: Law, cost: Fraction) -> Fraction:
    """The root of E(W - x)^+ = cost."""
    mass, gain, best = Fraction(0), -cost, Fraction(-(10**9))
    for x in sorted(law, reverse=True):
        mass, gain = mass + law[x], gain + law[x] * x
        best = max(best, gain / mass if mass else best)
    return best


def random_laws(rng: random.Random, rows: int, values: int) -> list[list[Fraction]]:
    weights = [[rng.randint(1, 9) for _ in range(values)] for _ in range(rows)]
    return [[Fraction(w, sum(row)) for w in row] for row in weights]


def test_indices_of_falling_boxes_are_those_of_the_boxes_alone() -> None:
    """Errata 10 and 11: what has lower indices further down plays no part."""
    rng, seen = random.Random(5), 0
    while seen < 40:
        rewards = [Fraction(rng.randint(0, 30)) for _ in range(3)]
        costs = [Fraction(c) for c in (rng.randint(1, 3), rng.randint(3, 7), rng.randint(6, 12))]
        laws = [random_laws(rng, 1, 3), random_laws(rng, 3, 3), random_laws(rng, 3, 3)]
        alone = [
            [index_of({r: sum(p for p, x in zip(row, rewards, strict=True) if x == r)
                       for r in rewards}, c) for row in law]
            for law, c in zip(laws, costs, strict=True)
        ]  # fmt: skip
        falls = all(min(a) >= max(b) for a, b in pairwise(alone))
        seen += falls
        if falls:
            line = weitzman.line(
                [np.array(law[0] if i == 0 else law, float) for i, law in enumerate(laws)],
                rewards=[float(r) for r in rewards], cost=[float(c) for c in costs],
            )  # fmt: skip
            solution = weitzman.solve(line, exact=True)
            for v, one in enumerate(alone):
                assert solution.indices(v) == pytest.approx([float(x) for x in one], abs=1e-12)


def start_with(
    first: int, outside: Fraction, rewards: list[list[int]], costs: list[Fraction],
    laws: tuple[list[Fraction], list[Fraction]], last: list[list[list[Fraction]]],
) -> Fraction:  # fmt: skip
    """Opening A (0) or B (1) now, and the best afterward; C can be opened once both are."""
    other, found = 1 - first, -costs[first]
    for y, p in enumerate(laws[first]):
        held = max(outside, Fraction(rewards[first][y]))
        both = -costs[other]
        for z, q in enumerate(laws[other]):
            now = max(held, Fraction(rewards[other][z]))
            shown = (y, z) if first == 0 else (z, y)
            chances = last[shown[0]][shown[1]]
            gain = sum(r * max(now, Fraction(x)) for r, x in zip(chances, rewards[2], strict=True))
            both += q * max(now, gain - costs[2])
        found += p * max(held, both)
    return found


def test_boxes_that_need_two_are_opened_by_falling_index() -> None:
    """Probing Equivalent Boxes, against all policies, in exact fractions."""
    rng, seen = random.Random(11), 0
    while seen < 60:
        rewards = [sorted(rng.sample(range(40), 2)) for _ in range(3)]
        costs = [Fraction(c) for c in (rng.randint(1, 4), rng.randint(2, 6), rng.randint(3, 9))]
        a, b = random_laws(rng, 2, 2)
        c = [random_laws(rng, 2, 2) for _ in range(2)]
        top = [index_of(dict(zip(map(Fraction, r), p, strict=True)), k)
               for r, p, k in ((rewards[0], a, costs[0]), (rewards[1], b, costs[1]))]  # fmt: skip
        last = [
            index_of(dict(zip(map(Fraction, rewards[2]), row, strict=True)), costs[2])
            for rows in c for row in rows
        ]  # fmt: skip
        if not top[0] >= top[1] >= max(last):
            continue
        seen += 1

        for outside in (Fraction(0), Fraction(9), Fraction(20)):
            starts = [start_with(first, outside, rewards, costs, (a, b), c) for first in (0, 1)]
            assert max(outside, starts[0]) >= max(outside, starts[1])
