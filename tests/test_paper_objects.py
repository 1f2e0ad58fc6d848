"""Objects of the paper by their own names, each against another way to get it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from weitzman import Chain, Forest, evaluate, line, simulate, solve
from weitzman.chains import fixed_point, miss_bounds, miss_bounds_together, probe_until_top
from weitzman.engine import payoff_table
from weitzman.errors import InvalidArgument, TooLarge
from weitzman.forest.columns import Pool
from weitzman.policy import equivalent_box, payoff_law


def random_line(
    seed: int, *, minimize: bool = False, random_costs: bool = True, signals: bool = True
) -> Forest:
    """A line whose numbers are multiples of 1/16, so that fractions are exact."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    law = []
    for i in range(n):
        rows = rng.multinomial(16, np.ones(k) / k, size=k) / 16
        law.append(rows[0] if i == 0 else rows)
    rewards = rng.integers(0, 40, (n, k)) / 4
    if signals:
        rewards[rng.random((n, k)) < 0.15] = -np.inf
    cost = [
        rng.integers(0, 20, (1 if i == 0 else k, k if random_costs else 1)) / 8 for i in range(n)
    ]
    return Forest.from_arrays(
        parent=np.arange(-1, n - 1), law=law, cost=cost, minimize=minimize,
        rewards=-rewards if minimize else rewards, outside=float(rng.integers(-4, 4)),
    )  # fmt: skip


def bellman(f: Forest, x: Fraction, box: int, state: int, *, printed: bool = False) -> Fraction:
    """Phi(x, s, i) in exact arithmetic; ``printed``: with the paper's look-up of x."""
    if box == len(f):
        return x
    law, rewards = f.laws[int(f.law[box])][state], f.rewards[int(f.reward[box])][0]
    cost = f.costs[int(f.cost[box])]
    price = np.broadcast_to(cost[state if len(cost) > 1 else 0], len(rewards))
    total = Fraction(0)
    for y, p in enumerate(law.tolist()):
        if p == 0:
            continue
        found = x if np.isinf(rewards[y]) else Fraction(f.sign * rewards[y])
        if printed:
            later, spent = printed_future(f, x, box + 1, y)
            total += Fraction(p) * (
                sum(q * max(x, found, *((r,) if r is not None else ())) for r, q in later.items())
                - spent
            )
        else:
            total += Fraction(p) * bellman(f, max(x, found), box + 1, y)
        total -= Fraction(p) * Fraction(float(price[y]))
    return max(x, total)


def printed_future(
    f: Forest, x: Fraction, box: int, state: int
) -> tuple[dict[Fraction | None, Fraction], Fraction]:
    """The law of R_FRM(x, s, i) and the mean of c_FR(x, s, i) as the paper's algorithm has them."""
    if box == len(f) or bellman(f, x, box, state, printed=True) == x:
        return {None: Fraction(1)}, Fraction(0)
    law, rewards = f.laws[int(f.law[box])][state], f.rewards[int(f.reward[box])][0]
    cost = f.costs[int(f.cost[box])]
    price = np.broadcast_to(cost[state if len(cost) > 1 else 0], len(rewards))
    found: dict[Fraction | None, Fraction] = {}
    spent = Fraction(0)
    for y, p in enumerate(law.tolist()):
        later, more = printed_future(f, x, box + 1, y)
        own = Fraction(float(rewards[y]))
        spent += Fraction(p) * (Fraction(float(price[y])) + more)
        for r, q in later.items():
            best = own if r is None else max(own, r)
            found[best] = found.get(best, Fraction(0)) + Fraction(p) * q
    return found, spent


# -- the payoff table ----------------------------------------------------------------------------


@pytest.mark.parametrize("minimize", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_the_payoff_table_is_bellmans(seed: int, minimize: bool) -> None:
    f = random_line(seed, minimize=minimize)
    table, solution = payoff_table(f), solve(f, exact=True)
    for v, (phi, opens) in enumerate(zip(table.phi, table.opens, strict=True)):
        for i, x in enumerate(table.levels.tolist()):
            for s in range(phi.shape[1]):
                exact = f.sign * float(bellman(f, Fraction(f.sign * x), v, s))
                assert phi[i, s] == pytest.approx(exact, abs=1e-12)
                if v and abs(solution.index(v, s) - x) > 1e-9:
                    assert opens[i, s] == (f.sign * solution.index(v, s) > f.sign * x)
    at = int(np.flatnonzero(table.levels == f.outside)[0])
    assert table.phi[0][at, 0] == pytest.approx(solution.value, abs=1e-12)


@pytest.mark.parametrize("seed", range(25))
def test_what_is_found_and_paid_from_an_entry_on(seed: int) -> None:
    f = random_line(seed)
    table = payoff_table(f)
    for v, phi in enumerate(table.phi):
        for i, x in enumerate(table.levels.tolist()):
            for s in range(phi.shape[1]):
                future = table.future(v, i, s)
                assert sum(future.values()) == pytest.approx(1)
                worth = sum(p * (max(x, r) - c) for (r, c), p in future.items())
                assert worth == pytest.approx(phi[i, s], abs=1e-12)


def test_the_printed_look_up_is_wrong() -> None:
    """Erratum 8: two sure boxes of 7."""
    two = line([[1.0], [[1.0]]], rewards=[7.0], cost=[5.25, 2.5])
    assert bellman(two, Fraction(0), 0, 0, printed=True) == 0
    assert bellman(two, Fraction(0), 0, 0) == Fraction(7, 4)
    assert payoff_table(two).phi[0][0, 0] == solve(two).value == 1.75
    wrong = 0
    for seed in range(60):
        f = random_line(seed, random_costs=False, signals=False)
        levels = [Fraction(x) for x in payoff_table(f).levels.tolist()]
        wrong += any(bellman(f, x, 0, 0, printed=True) != bellman(f, x, 0, 0) for x in levels)
        table = payoff_table(f, printed=True)
        for v, phi in enumerate(table.phi):
            exact = [
                [float(bellman(f, x, v, s, printed=True)) for s in range(phi.shape[1])]
                for x in levels
            ]
            assert phi == pytest.approx(np.array(exact), abs=1e-12)
    assert wrong > 20


def test_the_table_is_that_of_a_line() -> None:
    forked = Forest.from_arrays(
        parent=[-1, 0, 0], cost=[1, 1, 1], rewards=[0, 1], law=[[0.5, 0.5], np.eye(2), np.eye(2)]
    )
    for f in (forked, line([[0.5, 0.5]], rewards=[0, 1], cost=1, count=2)):
        with pytest.raises(InvalidArgument, match="one finite line without copies"):
            payoff_table(f)


# -- the equivalent reward -----------------------------------------------------------------------


@pytest.mark.parametrize("minimize", [False, True])
@pytest.mark.parametrize("seed", range(15))
def test_phi_of_any_box(seed: int, minimize: bool) -> None:
    f = random_line(seed, minimize=minimize)
    solution = solve(f, exact=True)
    x = np.linspace(-6, 12, 7) * f.sign
    for v in range(len(f)):
        for s in range(f.laws.shape[f.law[v], 0]):
            exact = [f.sign * float(bellman(f, Fraction(f.sign * y), v, s)) for y in x.tolist()]
            found = solution.phi(x, v, None if v == 0 else s)
            assert found == pytest.approx(exact, abs=1e-9)
            assert solution.phi(float(x[2]), v, None if v == 0 else s) == found[2]
    assert solution.phi(f.outside) == pytest.approx(solution.value, abs=1e-9)


# -- equivalent boxes ----------------------------------------------------------------------------


def forked(seed: int, minimize: bool = False) -> Forest:
    rng = np.random.default_rng(seed)
    sign = -1 if minimize else 1
    return Forest.from_arrays(
        parent=[-1, 0, -1, 2], cost=[*(rng.integers(1, 9, 4) / 4)], minimize=minimize,
        rewards=sign * rng.integers(0, 12, (4, 2)) * 1.0, outside=sign * -1.0,
        law=[rng.dirichlet([1, 1], None if i % 2 == 0 else 2) for i in range(4)],
    )  # fmt: skip


@pytest.mark.parametrize("minimize", [False, True])
@pytest.mark.parametrize("seed", range(15))
def test_the_equivalent_box_earns_what_the_search_earns(seed: int, minimize: bool) -> None:
    f = forked(seed, minimize)
    solution = solve(f)
    for held in (f.outside, f.sign * 2.0):
        box = equivalent_box(solution, held=held)
        taken = f.sign * np.maximum(f.sign * box.rewards[0][0], f.sign * held)
        earned = float(box.laws[0][0] @ (taken - f.sign * box.costs[0][0]))
        assert earned == pytest.approx(solve(f.changed(outside=held)).value, abs=1e-12)
    free = solution.capped_law().box(f.outside)
    assert solve(free).value == pytest.approx(solution.value, abs=1e-9)
    for held in (-3.0, 1.5, 4.0):
        one, other = (solve(g.changed(outside=f.sign * held)).value for g in (free, f))
        assert one == pytest.approx(other, abs=1e-9)


def test_the_index_of_the_contracted_box_is_not_the_highest_index() -> None:
    """Erratum 9."""
    two = Forest.from_arrays(
        parent=[-1, -1], cost=[1, 1], rewards=[[0, 10], [0, 4]], law=[[0.5, 0.5]] * 2
    )
    solution = solve(two)
    box = equivalent_box(solution)
    ends = {(0.0, 2.0): 0.25, (4.0, 2.0): 0.25, (10.0, 1.0): 0.5}
    pairs = zip(box.rewards[0][0].tolist(), box.costs[0][0].tolist(), strict=True)
    assert dict(zip(pairs, box.laws[0][0].tolist(), strict=True)) == ends
    # E (R - x)^+ = E c = 3/2 at x = 7: one half of 3, and nothing from the others
    root = next(x for x in range(20) if sum(p * max(r - x, 0) for (r, _), p in ends.items()) == 1.5)
    assert root == solve(box).index(0) == 7
    assert max(solution.index(0), solution.index(1)) == 8


def test_a_large_joint_law_is_rejected_with_a_reason() -> None:
    many = line([[0.5, 0.5]], rewards=[0, 1], cost=np.full(1, 1e-6), count=400)
    with pytest.raises(TooLarge, match="capped_law"):
        equivalent_box(evaluate(solve(many)) and solve(many))


# -- payoffs -------------------------------------------------------------------------------------


def test_the_payoff_law_of_an_endless_line() -> None:
    law = [[1, 0, 0], [0, 0, 1], [0, 0, 1]]
    f = line(([0.5, 0.5, 0], law), length=np.inf, rewards=[0, 5, 10], cost=1)
    found = payoff_law(solve(f))
    assert found.how == "exact"
    assert found.mean == pytest.approx(3.5)
    assert found.mean == pytest.approx(evaluate(solve(f)).value)


@pytest.mark.parametrize("minimize", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_the_payoff_law_is_discounted_like_the_value(seed: int, minimize: bool) -> None:
    plain, rng = forked(seed, minimize), np.random.default_rng(seed)
    f = replace(plain, factors=Pool(
        rng.uniform(0.5, 1, len(plain.costs.data)), plain.costs.start, plain.costs.shape
    ))  # fmt: skip
    exactly, found = evaluate(solve(f)), payoff_law(solve(f))
    assert found.how == "exact"
    assert found.mean == pytest.approx(exactly.value, abs=1e-12)
    played = simulate(solve(f), 2_000, seed).payoff.values
    assert all(np.isclose(found.values, x, atol=1e-9).any() for x in np.unique(played))


def test_the_payoff_law_with_a_risk_tolerance_is_one_of_payoffs() -> None:
    """Its mean is what is earned on average, not the certainty equivalent; simulated or not."""
    for count in (3, 400):
        f = line([[0.5, 0.5]], rewards=[0, 10], cost=1e-3, count=count, risk_tolerance=4.0)
        exactly, found = evaluate(solve(f)), payoff_law(solve(f), episodes=2_000)
        assert found.mean == pytest.approx(exactly.reward - exactly.spend)
        assert found.mean > exactly.value


def test_the_payoff_law_of_several_prizes_is_written_out() -> None:
    f = line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=3, prizes=2)
    found = payoff_law(solve(f), episodes=2_000)
    assert found.how == "exact"
    assert found.values.tolist() == [-3, 7, 17, 18]
    assert found.chances.tolist() == [0.125, 0.375, 0.25, 0.25]
    assert found.mean == pytest.approx(solve(f).value)
    with pytest.raises(InvalidArgument, match="several prizes"):
        equivalent_box(solve(f))


# -- chains --------------------------------------------------------------------------------------


@pytest.mark.parametrize("t", [1, 2, 3, 40])
def test_the_law_of_a_box_is_a_power(t: int) -> None:
    law = np.array([[0.75, 0.25, 0], [0.125, 0.5, 0.375], [0, 0.5, 0.5]])
    chain, first = Chain(law, [0, 1, 2]), np.array([0.25, 0.5, 0.25])
    expected: NDArray[np.float64] = first @ np.linalg.matrix_power(law, t - 1)
    assert chain.law_at(t, first) == pytest.approx(expected)
    assert chain.law_at(t, 1) == pytest.approx(np.linalg.matrix_power(law, t)[1])


def test_one_number_of_boxes_serves_all_lines() -> None:
    slow = Chain([[0.99, 0.01], [0.01, 0.99]], rewards=[0, 1])
    quick = Chain([[0.2, 0.8], [0.1, 0.9]], rewards=[0, 1])
    boxes, lines = miss_bounds_together([quick, slow, quick], 0.01)
    assert boxes == miss_bounds(slow, 0.01).boxes  # the slowest decides, though its mass is less
    assert [b.boxes for b in lines] == [miss_bounds(c, 0.01).boxes for c in (quick, slow, quick)]
    assert max(slow.miss(1, boxes["exact"]).max(), quick.miss(1, boxes["exact"]).max()) <= 0.01
    with pytest.raises(InvalidArgument, match="at least one chain"):
        miss_bounds_together([], 0.1)


def test_the_iteration_ends_where_the_top_is_hardly_reached() -> None:
    p = 1e-17
    chain = Chain([[1 - p, p], [0.5, 0.5]], rewards=[0, 1])
    found = fixed_point(chain, 1e-20, limit=50)
    assert found.steps == 50
    assert not found.converged
    assert found.error > 0.01
    assert fixed_point(Chain([[0.5, 0.5], [0.5, 0.5]], [0, 8]), 1).converged


def test_a_signal_makes_no_warning() -> None:
    chain = Chain([[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1]], rewards=[0, 10, -np.inf])
    assert not probe_until_top(chain, 0.5)
    only = Chain([[0.5, 0.5], [0.0, 1.0]], rewards=[-np.inf, 10])
    assert probe_until_top(only, 0.5)


@pytest.mark.parametrize("term", [{"factor": 0.9}, {"risk_tolerance": 3.0}])
def test_the_table_rejects_what_the_paper_does_not_have(term):
    with pytest.raises(InvalidArgument, match="the payoff table"):
        payoff_table(line([[0.5, 0.5]], rewards=[0, 10], cost=1, **term))


def test_bounds_for_several_lines_take_a_target_for_each():
    chain = Chain([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], rewards=[0, 1, 2])
    both, lines = miss_bounds_together([chain, chain], 0.01, [[1, 2], 0])
    assert lines[0].boxes == miss_bounds(chain, 0.01, [1, 2]).boxes
    assert lines[1].boxes == miss_bounds(chain, 0.01, 0).boxes
    assert both["exact"] == max(b.boxes["exact"] for b in lines)
    with pytest.raises(InvalidArgument, match="an entry for each chain"):
        miss_bounds_together([chain, chain], 0.01, [0])
