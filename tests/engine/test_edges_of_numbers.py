"""Amounts from 1e-300 to 1e300, subnormal ones, ties, rare chances: right, and honest about it."""

from __future__ import annotations

import json
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import weitzman
from weitzman import Forest, Status, policy, strategies
from weitzman._common.arrays import error_of_mean
from weitzman.errors import InvalidFile, InvalidForest

Rows = list[list[list[Fraction]]]


def exact_value(parent: Any, cost: Any, rewards: Any, law: Any, outside: float) -> Fraction:
    """The optimum by looking at everything that can happen, in exact rationals."""
    costs = [Fraction(float(c)) for c in cost]
    prizes = [[Fraction(float(x)) for x in row] for row in rewards]
    laws: Rows = [
        [[Fraction(float(p)) for p in row] for row in np.atleast_2d(one).tolist()] for one in law
    ]

    @cache
    def worth(seen: tuple[tuple[int, int], ...], best: Fraction) -> Fraction:
        states, value = dict(seen), best
        for v, up in enumerate(parent):
            if v not in states and (up < 0 or up in states):
                row = laws[v][states[up] if up >= 0 else 0]
                value = max(value, sum(
                    (p / sum(row) * worth(tuple(sorted({**states, v: s}.items())),
                                          max(best, prizes[v][s])) for s, p in enumerate(row)),
                    -costs[v],
                ))  # fmt: skip
        return value

    return worth((), Fraction(float(outside)))


def drawn(rng: np.random.Generator, kind: str) -> dict[str, Any]:
    """Three boxes with amounts of one size, or of all sizes."""
    size = 10.0 ** {
        "large": rng.uniform(290, 299.9), "small": rng.uniform(-300, -290),
        "subnormal": rng.uniform(-323, -308), "mixed": 0.0,
    }[kind]  # fmt: skip

    def amount() -> float:
        return 10.0 ** rng.uniform(-300, 299) if kind == "mixed" else size * rng.random()

    parent = [[-1, 0, -1], [-1, 0, 1], [-1, -1, -1]][rng.integers(3)]
    cost = [amount() * (1.0 if kind == "mixed" else 10.0 ** rng.uniform(-2, 0)) for _ in parent]
    rewards = [[amount() * rng.choice([1, 1, -1]) for _ in range(2)] for _ in parent]
    if rng.random() < 0.3:
        rewards[1], cost[1] = rewards[0], cost[0]  # ties
    law = [rng.dirichlet([1, 1]) if p < 0 else rng.dirichlet([1, 1], 2) for p in parent]
    if rng.random() < 0.2:
        law[0] = np.array([1 - 1e-12, 1e-12])
    outside = float(rng.choice([0.0, amount()]))
    return {"parent": parent, "cost": cost, "rewards": rewards, "law": law, "outside": outside}


@pytest.mark.parametrize("kind", ["large", "small", "subnormal", "mixed"])
def test_values_at_the_edges_are_exact_up_to_rounding(kind: str) -> None:
    rng = np.random.default_rng(11)
    for _ in range(60):
        columns = drawn(rng, kind)
        solution = weitzman.solve(Forest.from_arrays(**columns))
        truth = exact_value(**columns)
        sizes = [*columns["cost"], *np.ravel(columns["rewards"]), columns["outside"]]
        rounding = Fraction(float(np.abs(sizes).max())) / 10**13 + 16 * Fraction(5e-324)
        assert 0 <= solution.gap < np.inf
        assert solution.status in (Status.EXACT, Status.CERTIFIED)
        assert abs(Fraction(solution.value) - truth) <= Fraction(solution.gap) + rounding
        assert abs(Fraction(weitzman.evaluate(solution).value) - truth) <= 10 * rounding


def huge(x: float) -> list[Forest]:
    two = weitzman.Builder().add("A", cost=x / 10, outcomes={x: 0.5, -x: 0.5})
    two.add("B", parent="A", cost=x / 9, outcomes={x: {x: 1.0}, -x: {x: 0.4, -x: 0.6}})
    many = weitzman.Builder().add("A", cost=x * 1e-8, outcomes={x: 1e-5, -x: 1 - 1e-5}, count=10**6)
    must = weitzman.Builder(outside=-np.inf).add("A", cost=x, outcomes={x: 0.5, -x: 0.5})
    less = weitzman.Builder(minimize=True, outside=x).add("A", cost=0, outcomes={x: 0.5, -x: 0.5})
    line = weitzman.line(
        ([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]]), length=np.inf, rewards=[-x, x], cost=x / 20
    )
    return [*(b.add("C", cost=x, outcomes={0: 1.0}).build() for b in (two, many, must, less)), line]


@pytest.mark.parametrize("x", [1e300, 1e-300])
def test_no_function_leaves_the_range_of_numbers(x: float) -> None:
    """Warnings are errors in these tests, and every number that comes out is finite."""
    for f in huge(x):
        s = weitzman.solve(f)
        e = weitzman.evaluate(s)
        assert e.value == pytest.approx(s.value, abs=1e-9 * x)
        played = weitzman.simulate(s, 200, 1)
        assert np.isfinite(played.payoff.mean)
        assert str(played) != str(e) != str(s)
        found = [s.value, s.gap, s.phi(0.0), s.phi(x), policy.payoff_law(s, episodes=50).mean]
        found += [*weitzman.sensitivity(s).cost[0], weitzman.truncate(f, gap=x / 100).upper]
        assert np.isfinite(found).all()
        weitzman.Search(s).explain()
        if not f.endless.any():
            chosen = weitzman.compare(s, episodes=50)
            assert chosen["optimal"].value == s.value
            assert str(chosen)
        if len(f) < 4 and not f.endless.any() and f.boxes < 10:
            truth = strategies.exhaustive(f).value
            assert s.value == pytest.approx(truth, abs=1e-12 * x)


def test_amounts_whose_sums_would_overflow_are_rejected(tmp_path: Any) -> None:
    one: dict[str, Any] = {
        "parent": [-1],
        "cost": [1.0],
        "rewards": [[0.0, 1.0]],
        "law": [[0.5] * 2],
    }
    for change, message in (
        (
            {"rewards": [[0.0, 1.1e300]]},
            r"a reward must be at most 1e\+300 .* has 1.1e\+300 in state 1 \(1 ",
        ),
        ({"cost": [1.7e308]}, r"a cost must be at most 1e\+300 in size, but box '0' has 1.7e\+308"),
        ({"outside": -1.7e308}, r"the outside option must be at most 1e\+306 in size"),
    ):
        with pytest.raises(InvalidForest, match=message):
            Forest.from_arrays(**{**one, **change})
    for change in ({"rewards": [0, 1e301]}, {"cost": 1e301}):
        with pytest.raises(InvalidForest, match=r"1e\+300"):
            weitzman.solve_line(weitzman.Chain([[0.5, 0.5]] * 2, change.get("rewards", [0, 1])),
                                cost=change.get("cost", 1))  # fmt: skip
    box = {"name": "A", "cost": 1, "rewards": [0, 1.7e308], "law": [0.5, 0.5]}
    (tmp_path / "x.json").write_text(json.dumps({"format": "weitzman/1", "boxes": [box]}))
    with pytest.raises((InvalidForest, InvalidFile), match="Choose a larger unit"):
        weitzman.load(tmp_path / "x.json")


@pytest.mark.parametrize("count", [10**15, 2**52 + 1, 2**53 - 1])
@pytest.mark.parametrize("chance", [2.0**-60, 1e-16, 2.0**-53, 1e-15, 1e-12, 0.25])
def test_counts_up_to_the_most_and_rare_prizes(count: int, chance: float) -> None:
    """The chance that one of many boxes holds the prize, against sixty decimal digits.

    A box that costs a tenth of what it gives on average is worth nine tenths of that chance.
    """
    rare = {1: chance, 0: 1 - chance}
    with localcontext() as context:
        context.prec = 60
        found = 1 - (1 - Decimal(chance)) ** count
    for cost, share in (
        (0.0, Decimal(1)),
        (chance / 10, 1 - Decimal(chance / 10) / Decimal(chance)),
    ):
        f = weitzman.Builder().add("A", cost=cost, outcomes=rare, count=count).build()
        s = weitzman.solve(f)
        assert f.boxes == count
        assert s.status in (Status.EXACT, Status.CERTIFIED)
        followed = weitzman.evaluate(s)
        # followed in logarithms, which have as many digits as the logarithm of the count leaves
        assert followed.error <= 5e-14 * float(found)
        for value, error in ((s.value, s.gap), (followed.value, followed.error)):
            assert abs(Decimal(value) - found * share) <= Decimal(error) + Decimal("4e-16") * found


def test_counts_that_floats_cannot_hold_are_rejected(tmp_path: Any) -> None:
    for count in (2**53, 2**53 + 1, 2**63 - 1):
        with pytest.raises(InvalidForest, match="a count must be from 1 to 9007199254740991"):
            weitzman.Builder().add("A", cost=0, outcomes={1: 1.0}, count=count).build()
    message = "a count must be a whole number of at most 9007199254740991"
    for cell in ("9007199254740992", "9007199254740993", "1e16"):
        text = f"box,state,reward,probability,cost,count\nA,a,1,1,0,{cell}\n"
        (tmp_path / "x.csv").write_text(text)
        with pytest.raises((InvalidForest, InvalidFile), match=message):
            weitzman.load(tmp_path / "x.csv")
    (tmp_path / "x.csv").write_text(text.replace("1e16", "9007199254740991"))
    assert weitzman.load(tmp_path / "x.csv").boxes == 2**53 - 1


def tied(rng: np.random.Generator, kind: str) -> dict[str, Any]:
    """Boxes whose rewards, costs and indices are equal again and again; sums that are nearly 1."""
    parent = [[-1, 0, 0, -1], [-1, 0, 1, -1], [-1] * 4][rng.integers(3)]
    cost = rng.choice([0.0, 0.25, 0.5], 4) if kind == "ties" else rng.random(4)
    rewards = rng.choice([0.0, 1.0, 2.0], (4, 2)) if kind == "ties" else rng.random((4, 2))
    law: list[Any] = []
    for p in parent:
        rows = rng.choice([0.25, 0.5, 0.75], 1 if p < 0 else 2)
        one = np.column_stack([rows, 1 - rows])
        if kind == "sums":
            one *= 1 + rng.uniform(-9.9e-10, 9.9e-10, (len(one), 1))
        law.append(one[0] if p < 0 else one)
    return {"parent": parent, "cost": cost, "rewards": rewards, "law": law, "outside": 0.0}


@pytest.mark.parametrize("kind", ["ties", "sums"])
def test_ties_everywhere_and_sums_that_are_nearly_one(kind: str) -> None:
    """Against the same laws with sums of one, in exact rationals."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        columns = tied(rng, kind)
        solution = weitzman.solve(Forest.from_arrays(**columns))
        truth = exact_value(**columns)
        assert solution.status in (Status.EXACT, Status.CERTIFIED)
        allowed = Fraction(solution.gap) + Fraction(1, 10**14)
        assert abs(Fraction(solution.value) - truth) <= allowed
        assert abs(Fraction(weitzman.evaluate(solution).value) - truth) <= allowed


def test_errors_of_means_of_any_size() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=200)
    for scale in (1.0, 1e300 / np.abs(x).max(), 1e-300):
        assert error_of_mean(scale * x) / scale == pytest.approx(np.std(x, ddof=1) / np.sqrt(200))
    assert np.isnan(error_of_mean(np.ones(1)))


@pytest.mark.parametrize("outside", [-np.inf, -1e15])
def test_a_hopeless_box_costs_no_digits_of_what_is_certain(outside):
    """Its index of about -1e15 was where the sum began, so 22.55 came out as 22.5, EXACT."""
    forest = Forest.from_arrays(
        parent=[-1, -1], cost=[0.0, 1.2e15], rewards=[[22.0, 23.1], [0.0, 0.0]],
        law=[[0.5, 0.5], [1.0, 0.0]], outside=outside,
    )  # fmt: skip
    assert weitzman.solve(forest).value == pytest.approx(22.55, abs=1e-13)
    assert weitzman.solve(forest, exact=True).value == pytest.approx(22.55, abs=1e-13)


def test_a_hopeless_outside_option_costs_no_digits_of_chances_that_nearly_sum_to_one():
    """Six sixths are 1 - 1e-16, which is not a chance of ending with -1e15."""
    forest = Forest.from_arrays(
        parent=[-1], cost=[0.0], rewards=[[1.0, 2.0, 7.0, 9.0, 10.0, 19.0]], law=[[1 / 6] * 6],
        outside=-1e15,
    )  # fmt: skip
    assert weitzman.solve(forest).value == pytest.approx(8.0, abs=1e-12)
    assert weitzman.solve(forest, exact=True).value == pytest.approx(8.0, abs=1e-12)
