"""Strategies with discounting, a risk tolerance or prizes, against looking at everything."""

from __future__ import annotations

import every_policy
import numpy as np
import pytest
from every_policy import WrittenOut, random_terms, sequences, value_of

import weitzman
from weitzman import Builder, compare, evaluate, simulate, solve
from weitzman.errors import InvalidArgument
from weitzman.policy.simulation import Sample
from weitzman.strategies import (
    Dag,
    best_line,
    best_nonadaptive,
    best_partially_adaptive,
    by_expected_value,
    everything,
    myopic,
    random_order,
    value_of_order,
    value_of_set,
)
from weitzman.strategies.fixed_sets import SetValues, _every_set, _improved
from weitzman.strategies.thumb_rules import by_situation, work_through

TERMS = ("time", "risk", "prizes")
CASES = [(term, seed) for term in TERMS for seed in range(40)]


def near_simulated(sample: Sample):
    return pytest.approx(sample.mean, abs=5 * sample.standard_error + 1e-9)


def near(x: float):
    return pytest.approx(x, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("term", "seed"), CASES)
def test_the_best_orders_sets_and_lines_are_the_best(term, seed):
    forest = random_terms(np.random.default_rng([1, seed]), term)
    w = WrittenOut(forest)
    if len(w) > 5:
        pytest.skip("too many orders")
    sign, solution, every = forest.sign, solve(forest, exact=True), sequences(w)
    assert solution.value == near(every_policy.optimum(w))

    def best(orders, *, stopping):
        return sign * max(sign * value_of(w, o, stopping=stopping) for o in orders)

    order = best_partially_adaptive(forest, solution=solution)
    assert order.exact
    assert order.value == near(best(every, stopping=True))
    chosen = best_nonadaptive(forest, solution=solution)
    assert chosen.exact
    assert chosen.value == near(best(every, stopping=False))
    lines = [o for o in every if all(w.parent[b] == a for a, b in zip((-1, *o), o, strict=False))]
    assert best_line(forest).value == near(best(lines, stopping=False))
    one = every[int(np.random.default_rng(seed).integers(len(every)))]
    if forest.count.max() == 1:
        assert value_of_order(forest, one) == near(value_of(w, one, stopping=True))
        assert value_of_set(forest, one) == near(value_of(w, one, stopping=False))


@pytest.mark.parametrize("term", TERMS)
def test_what_is_improved_box_by_box_is_nearly_the_best(term):
    """With no room to look at all sets: never above the best, and mostly the best."""
    hits = 0
    for seed in range(30):
        forest = random_terms(np.random.default_rng([2, seed]), term)
        full = weitzman.forest.expand(forest)
        values = SetValues(full)
        order = _every_set(values, 10**6)
        top = value_of_set(full, order) if order else forest.prizes * forest.outside
        assert _every_set(values, 1) is None or len(full) == 0
        everything = frozenset(range(len(full)))
        some = max(
            (_improved(values, s, 1000) for s in (frozenset(), everything)), key=values.value
        )
        order = values.sequence(some)
        found = value_of_set(full, order) if order else forest.prizes * forest.outside
        assert forest.sign * found <= forest.sign * top + 1e-9
        hits += found == near(top)
    assert hits >= 20


def shop(**terms) -> weitzman.Forest:
    b = Builder(**terms)
    rng = np.random.default_rng(5)
    timed = {"duration": {0: 1, 6: 2}} if "rate" in terms else {}
    for name in "ABCD":
        b.add(name, cost=float(rng.uniform(0.5, 1.5)), outcomes={0: 0.6, 6: 0.4}, **timed)
        after = {"duration": 3} if timed else {}
        b.add(f"{name}2", parent=name, cost={0: 1, 6: {4: 0.2, 12: 1.5}},
              outcomes={0: {4: 0.9, 12: 0.1}, 6: {4: 0.4, 12: 0.6}}, **after)  # fmt: skip
    return b.build()


FORESTS = {
    "time": shop(rate=0.1, outside=1),
    "risk": shop(risk_tolerance=4.0, outside=1),
    "prizes": shop(prizes=2, outside=1),
    "losses": shop(risk_tolerance=9.0, outside=9, minimize=True),
}


@pytest.mark.parametrize("term", FORESTS)
def test_a_comparison_has_every_strategy(term):
    forest = FORESTS[term]
    c = compare(forest, episodes=20_000, rng=1)
    keys = {"optimal", "fixed_order", "fixed_set", "priority_list", "reward_grid", "myopic",
            "expected_value", "everything", "budget", "random_order", "random_budget",
            "nothing"}  # fmt: skip
    assert {s.key for s in c.strategies} == keys
    assert all(c.lost(s.key) >= -5 * s.error - 1e-9 for s in c.strategies)
    assert c["nothing"].value == forest.prizes * forest.outside
    assert c["everything"].value == near(evaluate(everything(forest)).value)
    assert c["myopic"].value == near(evaluate(myopic(forest)).value)
    assert "adaptivity gap" in c.table()


def followed(w, rule):
    """What a rule earns: it names boxes, one of which is opened at random; none: stop."""

    def go(seen, hand):
        boxes = rule(seen, hand)
        if not boxes:
            return w.stop(hand)
        return sum(w.opening(i, seen, hand, go) for i in boxes) / len(boxes)

    return w.payoff(go({}, {}))


def pays(w, policy, i, seen, hand):
    """Whether a box is worth opening by its index, given what each tree holds."""
    index = float(policy.index[policy.index_at[w.box[i]] + w.state_above(i, seen)])
    prizes = w.forest.prizes
    own = w.tree[i] if prizes > 1 else 0
    above = sum(x >= index for tree, x in hand.items() if tree != own)
    return index > max(w.outside, hand.get(own, -np.inf)) and above < prizes


@pytest.mark.parametrize(("term", "seed"), [(term, seed) for term in TERMS for seed in range(3)])
def test_simulated_strategies_agree_with_looking_at_everything(term, seed):
    forest = random_terms(np.random.default_rng([3, seed]), term, boxes=4)
    full = weitzman.forest.expand(forest)
    w, solution = WrittenOut(full), solve(full)
    policy, order = solution.policy(), np.arange(len(full))

    def in_list(seen, hand):
        return [i for i in w.ready(seen) if pays(w, policy, i, seen, hand)][:1]

    def at_random(seen, hand):
        return [i for i in w.ready(seen) if pays(w, policy, i, seen, hand)]

    n = 40_000
    loose = random_order(solution, n, 3)
    assert abs(loose.value - followed(w, at_random)) <= 5 * loose.value_error + 1e-9
    some = random_order(solution, n, 3, budget=2)
    chosen = followed(w, lambda seen, _: w.ready(seen) if len(seen) < 2 else [])
    assert abs(some.value - chosen) <= 5 * some.value_error + 1e-9
    listed = work_through(solution, order, n, 3).payoff
    found, error = listed.mean, listed.standard_error
    if full.risk_tolerance is not None:
        found, error = listed.certainty(full.risk_tolerance, full.sign)
    assert abs(found - followed(w, in_list)) <= 5 * error + 1e-9
    by_index = simulate(solution, n, 3, budget=2)

    def two(seen, hand):
        ready = w.ready(seen) if len(seen) < 2 else []
        at = {i: policy.index[policy.index_at[i] + w.state_above(i, seen)] for i in ready}
        return [max(ready, key=lambda i: (at[i], -i))] if ready else []

    assert abs(by_index.value - followed(w, two)) <= 5 * by_index.value_error + 1e-9
    for rule, wanted in (
        ("random_order", at_random),
        ("random_budget", lambda seen, _: w.ready(seen) if len(seen) < 2 else []),
        ("budget", two),
    ):
        assert by_situation(solution, rule, 2).value == near(followed(w, wanted))
    assert by_situation(solution, "budget", 2).openings == near_simulated(by_index.openings)
    assert by_situation(solution, "budget", 2).spend == near_simulated(by_index.spend)


def test_rnpv_discounts():
    b = Builder(rate=0.1).add("A", cost=2, outcomes={0: 0.5, 10: 0.5}, duration=3)
    assert by_expected_value(b.build()).index.tolist() == near([5 * np.exp(-0.3) - 2])


def test_with_discounting_the_order_of_a_set_counts():
    b = Builder(rate=0.02)
    b.add("slow", cost=1, outcomes={0: 0.5, 10: 0.5}, duration=5)
    b.add("dear", cost=4, outcomes={0: 0.5, 20: 0.5}, duration=1)
    forest = b.build()
    one, other = value_of_set(forest, ["slow", "dear"]), value_of_set(forest, ["dear", "slow"])
    assert one - other == near(3 + np.exp(-0.02) - 4 * np.exp(-0.1))
    assert best_nonadaptive(forest).boxes == ("slow", "dear")


def test_large_forests_fall_back_on_simulation_and_likely_orders_and_sets():
    rng = np.random.default_rng(2)
    n = 400
    columns = {
        "parent": np.where(np.arange(n) % 2 == 0, -1, np.arange(n) - 1),
        "cost": rng.uniform(0.1, 0.3, n),
        "rewards": rng.random((n, 3)),
        "law": [rng.dirichlet(np.ones(3), 1 if i % 2 == 0 else 3) for i in range(n)],
    }
    for terms in ({"factor": 0.95}, {"risk_tolerance": 0.5}, {"prizes": 3}):
        c = compare(weitzman.Forest.from_arrays(**columns, **terms), episodes=400)
        assert c["optimal"].value >= c["fixed_order"].value >= c["fixed_set"].value
        simulated = [x for x in c.strategies if x.how == "simulated"]
        assert simulated
        assert all(c.lost(x.key) >= 0 for x in simulated)
        # without an error: it met the payoffs of the optimal policy in all episodes
        assert all(x.error > 0 or x.value == c["optimal"].value for x in simulated)


def test_what_makes_no_sense_is_rejected_by_name():
    with pytest.raises(InvalidArgument, match="a graph of boxes is for an expected payoff"):
        Dag.of(FORESTS["time"])
    with pytest.raises(InvalidArgument, match="several prizes boxes are opened one at a time"):
        simulate(solve(FORESTS["prizes"]), 10, workers=2)
