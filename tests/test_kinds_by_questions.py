"""The other half of the table of functions by kinds of forest: questions and strategies.

As in ``test_kinds_by_functions.py``, each number is compared with one other way to get it, and a
cell without a comparison has a reason: what the function says when it refuses. The last test reads
the rooms and fails for a public function that is in neither half and has no reason.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from itertools import chain, combinations, permutations, product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from small_oracles import columns_of, value_in_order
from test_kinds_by_functions import CLOSE, FUNCTIONS, KINDS, NO_NUMBER, draw

import weitzman
from weitzman import Forest, Solution, questions, strategies
from weitzman.errors import WeitzmanError

SEEDS = range(3)


def subsets(f: Forest) -> list[tuple[int, ...]]:
    """Sets of boxes that hold the parent of each of their members."""
    boxes = range(len(f))
    all_ = chain.from_iterable(combinations(boxes, k) for k in range(len(f) + 1))
    return [x for x in all_ if all(f.parent[v] < 0 or int(f.parent[v]) in x for v in x)]


def orders(f: Forest) -> list[tuple[int, ...]]:
    """All orders of sets of boxes in which each comes after its parent."""
    return [
        order for members in subsets(f) for order in permutations(members)
        if members or np.isfinite(f.outside)
        if all(f.parent[v] < 0 or int(f.parent[v]) in order[:i] for i, v in enumerate(order))
    ]  # fmt: skip


def way_to(f: Forest, v: int) -> tuple[int, ...]:
    """The boxes from a root to this one."""
    return (*way_to(f, int(f.parent[v])), v) if f.parent[v] >= 0 else (v,)


def value_of_set(f: Forest, s: Solution) -> None:
    """All boxes, opened whatever they show, earn what that policy does; each set by hand."""
    alike = strategies.everything(f)
    found = strategies.value_of_set(f, range(len(f)))
    assert found == pytest.approx(weitzman.evaluate(alike).value, abs=CLOSE)
    for members in subsets(f) if f.boxes == len(f) else []:
        if members or np.isfinite(f.outside):
            by_hand = f.sign * value_in_order(f, members, may_stop=False)
            found = strategies.value_of_set(f, members)
            assert found == pytest.approx(by_hand, abs=CLOSE)


def best_nonadaptive(f: Forest, s: Solution) -> None:
    found = strategies.best_nonadaptive(f)
    if f.boxes == len(f):
        tried = [x for x in subsets(f) if x or np.isfinite(f.outside)]
        best = max(f.sign * strategies.value_of_set(f, x) for x in tried)
        assert f.sign * found.value == pytest.approx(best, abs=CLOSE)
    assert f.sign * found.value <= f.sign * s.value + CLOSE
    if found.forest.boxes == len(found.forest):
        assert set(found.order) == set(np.flatnonzero(found.copies).tolist())
        again = value_in_order(found.forest, found.order, may_stop=False)
        assert f.sign * found.value == pytest.approx(again, abs=CLOSE)


def value_of_order(f: Forest, s: Solution) -> None:
    for order in orders(f):
        by_hand = f.sign * value_in_order(f, order, may_stop=True)
        assert strategies.value_of_order(f, order) == pytest.approx(by_hand, abs=CLOSE)


def best_partially_adaptive(f: Forest, s: Solution) -> None:
    """The best of all orders; of copies, with each written out."""
    found = strategies.best_partially_adaptive(f)
    assert found.exact
    assert f.sign * strategies.best_nonadaptive(f).value <= f.sign * found.value + CLOSE
    assert f.sign * found.value <= f.sign * s.value + CLOSE
    again = value_in_order(found.forest, found.order, may_stop=True)
    assert f.sign * found.value == pytest.approx(again, abs=CLOSE)
    if f.boxes == len(f):
        best = max(value_in_order(f, order, may_stop=True) for order in orders(f))
        assert f.sign * found.value == pytest.approx(best, abs=CLOSE)


def best_line(f: Forest, s: Solution) -> None:
    """The best of all ways from a root downward."""
    found = strategies.best_line(f)
    tried = [value_in_order(f, way_to(f, v), may_stop=False) for v in range(len(f))]
    if np.isfinite(f.outside):
        tried.append(f.sign * f.outside)
    assert f.sign * found.value == pytest.approx(max(tried), abs=CLOSE)
    followed = value_in_order(f, found.order, may_stop=True)
    assert f.sign * found.followed == pytest.approx(followed, abs=CLOSE)


def rules_of_thumb(f: Forest, s: Solution) -> None:
    """Simulated and evaluated, a rule earns the same; none earns more than the optimum."""
    made = strategies.by_expected_value(f), strategies.myopic(f), strategies.on_reward_grid(s)
    for rule in made:
        exact, played = weitzman.evaluate(rule).value, weitzman.simulate(rule, 4000, 3).payoff
        assert abs(played.mean - exact) <= 5 * played.standard_error + CLOSE
        assert f.sign * exact <= f.sign * s.value + CLOSE
    at_random = strategies.random_order(s, 4000, 1).payoff
    assert f.sign * at_random.mean <= f.sign * s.value + 5 * at_random.standard_error + CLOSE


def frontier(f: Forest, s: Solution) -> None:
    """Somewhere on it is the optimum at price 1, and nothing on it is better there."""
    curve = questions.frontier(f)
    worth = f.sign * np.array(curve.reward) - np.array(curve.spend)
    assert worth.max() == pytest.approx(f.sign * s.value, abs=1e-6)


def within_budget(f: Forest, s: Solution) -> None:
    """At no price of spending is more to be had (duality), and at the shadow price just this."""
    e, total = weitzman.evaluate(s), [c.mean() for c in columns_of(f)["cost"]]
    for budget in (e.spend, 0.5 * e.spend, 0.3 * sum(total)):
        found = questions.within_budget(f, budget)
        assert found.budget == budget
        assert found.spend <= budget + 1e-6
        for price in (0.25, 0.5, 1.0, 2.0, found.price):
            if price > 0 or not f.endless.any():
                most = priced(f, price) + price * budget
                assert f.sign * found.reward <= most + 1e-6
        if found.price > 0:
            assert f.sign * found.reward == pytest.approx(most, abs=1e-6)
        assert found.reward == pytest.approx(questions.frontier(f).at(budget).reward, abs=1e-6)


def priced(f: Forest, price: float) -> float:
    """The optimal value, higher is better, with every cost multiplied by a price."""
    columns = columns_of(f)
    columns["cost"] = [price * c for c in columns["cost"]]
    return f.sign * weitzman.solve(Forest.from_arrays(**columns)).value


def tornado(f: Forest, s: Solution) -> None:
    """Each swing, by a forest that is written anew with the number moved."""
    found = questions.tornado(f, share=0.1)
    assert found.solution.value == pytest.approx(s.value, abs=CLOSE)
    without = sum(not np.isfinite(r).any() for r in columns_of(f)["rewards"])  # signals
    outside = bool(np.isfinite(f.outside) and f.outside != 0)
    assert len(found.swings) == 3 * len(f) - without + outside
    for swing in found.swings:
        for share, value, first in (
            (-0.1, swing.low, swing.first_low), (0.1, swing.high, swing.first_high)
        ):  # fmt: skip
            again = weitzman.solve(with_moved(f, swing, share))
            assert value == pytest.approx(again.value, abs=CLOSE)
            assert first == again.first_box
        assert swing.width == abs(swing.high - swing.low)


def with_moved(f: Forest, swing: questions.Swing, share: float) -> Forest:
    columns = columns_of(f)
    if swing.number == "outside":
        columns["outside"] *= 1 + share
        return Forest.from_arrays(**columns)
    v = f.box(swing.box)
    if swing.number == "cost":
        columns["cost"][v] *= 1 + share
    elif swing.number == "reward":
        raised = [x + share * abs(x) if np.isfinite(x) else x for x in columns["rewards"][v]]
        columns["rewards"][v] = np.array(raised)
    else:
        columns["law"][v] = tilted(f, v, columns["law"][v], share)
    return Forest.from_arrays(**columns)


def tilted(f: Forest, v: int, law: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Two states: the chance of the better one moved by a share; of equal ones, none is better."""
    worth = f.sign * f.rewards[int(f.reward[v])][0]
    if (f.parent == v).any():  # what follows decides
        tree = columns_of(f.subtree(v, None if f.parent[v] < 0 else 0))
        worth, tree["cost"][0] = [], np.zeros(1)
        for sure in np.eye(2):
            tree["law"][0] = sure
            worth.append(f.sign * weitzman.solve(Forest.from_arrays(**tree)).value)
    if worth[0] == worth[1]:
        return law
    best, out = int(np.argmax(worth)), law.copy()
    out[..., best] = np.minimum((1 + share) * law[..., best], 1)
    out[..., 1 - best] = 1 - out[..., best]
    return out


def value_of_knowing(f: Forest, s: Solution) -> None:
    """The mean over the states of the roots, each solved with roots that are sure of theirs."""
    found, roots = questions.value_of_knowing(f, f.roots.tolist()), f.roots.tolist()
    columns, by_hand = columns_of(f), 0.0
    for states in product(range(2), repeat=len(roots)):
        law, chance = list(columns["law"]), 1.0
        for v, state in zip(roots, states, strict=True):
            chance *= law[v][state]
            law[v] = np.eye(2)[state]
        by_hand += chance * weitzman.solve(Forest.from_arrays(**{**columns, "law": law})).value
    assert found.value == pytest.approx(by_hand, abs=CLOSE)
    assert found.error == 0
    assert found.without == pytest.approx(s.value, abs=CLOSE)
    assert found.worth == pytest.approx(f.sign * (found.value - found.without), abs=CLOSE)


def commit(f: Forest, s: Solution) -> None:
    """Without a choice to make, it is the optimum."""
    found = questions.commit(f)
    assert found.value == pytest.approx(s.value, abs=CLOSE)
    assert f.sign * found.bound >= f.sign * found.value - CLOSE
    assert found.within == pytest.approx(0, abs=CLOSE)


def risk_sweep(f: Forest, s: Solution) -> None:
    """Each value by solving with that tolerance, which rises with it toward that without one."""
    found = questions.risk_sweep(f, steps=6)
    for tolerance, value in zip(found.tolerance.tolist(), found.value.tolist(), strict=True):
        again = weitzman.solve(f.changed(risk_tolerance=tolerance)).value
        assert value == pytest.approx(again, abs=CLOSE)
    for high, low, first in found.decisions():  # near both ends of each range
        for near in (0.9999 * high, 1.0001 * low):
            if 0 < near < np.inf:
                assert weitzman.solve(f.changed(risk_tolerance=near)).first_box == first
    worth = f.sign * np.asarray(found.value)[np.argsort(found.tolerance)]
    assert (np.diff(worth) >= -1e-7).all()
    assert worth[-1] <= f.sign * s.value + 1e-7


CELLS: dict[str, Callable[[Forest, Solution], None]] = {
    "strategies.value_of_set, everything": value_of_set,
    "strategies.best_nonadaptive": best_nonadaptive,
    "strategies.value_of_order": value_of_order,
    "strategies.best_partially_adaptive": best_partially_adaptive,
    "strategies.best_line": best_line,
    "strategies.by_expected_value, myopic, on_reward_grid, random_order": rules_of_thumb,
    "questions.frontier": frontier,
    "questions.within_budget": within_budget,
    "questions.tornado": tornado,
    "questions.value_of_knowing": value_of_knowing,
    "questions.commit": commit,
    "questions.risk_sweep": risk_sweep,
}
# Cells without a comparison, by what a caller is told.
_ENDS = dict.fromkeys(CELLS, "needs a forest that ends")
for _name in ("questions.frontier", "questions.within_budget"):
    del _ENDS[_name]  # these know endless lines
REASONS: dict[tuple[str, str], str] = {
    **{(name, "endless"): said for name, said in _ENDS.items()},
    ("strategies.value_of_order", "copies"): "an order needs a forest without copies",
    ("questions.value_of_knowing", "copies"): "must be about one box, but box '0' has copies",
}

# Functions whose input is no forest of these kinds, or that need more than a forest: where they
# are compared with another way.
ELSEWHERE = {
    "forest.discretize": "forest/test_distributions.py",  # a distribution
    "forest.to_scipy": "forest/test_distributions.py",
    "forest.side_by_side": "bounds/test_truncate.py",  # gives a forest
    "chains.exact_depth": "chains/test_hitting.py",  # a chain
    "chains.miss_bounds": "chains/test_hitting.py",
    "chains.miss_bounds_together": "test_paper_objects.py",
    "chains.fixed_point": "chains/test_endless.py",
    "chains.probe_until_top": "chains/test_endless.py",
    "chains.value_together": "chains/test_endless.py",
    "chains.solve_line": "chains/test_endless.py",
    "policy.difference": "policy/test_simulation.py",  # two policies
    "questions.as_ranges": "questions/test_sweeps.py",  # ranges
    "questions.solve_many": "questions/test_sweeps.py",  # many forests
    "questions.two_way": "questions/test_sweeps.py",
    "questions.scenarios": "questions/test_sweeps.py",
    "questions.uncertainty": "questions/test_sweeps.py",
    "questions.capped": "questions/test_budget.py",  # a cap
    "questions.cheapest": "questions/test_budget.py",  # a target
    "questions.value_of_tests": "questions/test_information.py",  # tests
    "questions.turning_points": "questions/test_information.py",
}
WORDS = {"policy.describe", "policy.explain", "plot.check_solution", "plot.follow_line"}
ROOMS = ("forest", "chains", "engine", "policy", "bounds", "strategies", "questions", "plot")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CELLS)
def test_each_question_on_each_kind(name: str, kind: str) -> None:
    for seed in SEEDS:
        f = draw(seed, **KINDS[kind])
        solution = weitzman.solve(f)
        if (name, kind) in REASONS and (kind != "endless" or f.endless.any()):
            with pytest.raises(WeitzmanError, match=REASONS[name, kind]):
                CELLS[name](f, solution)
        else:
            CELLS[name](f, solution)


def functions() -> set[str]:
    """Every public function of a room that does not draw."""
    found = set()
    for room in ROOMS:
        for name, thing in vars(getattr(weitzman, room)).items():
            if inspect.isfunction(thing) and not name.startswith("_"):
                draws = "Axes" in str(inspect.signature(thing).return_annotation)
                found |= set() if draws else {f"{room}.{name}"}
    return found


def test_both_halves_of_the_table_hold_every_function() -> None:
    told = {word for name in (*FUNCTIONS, *CELLS) for word in re.findall(r"\w+", name)}
    known = set(ELSEWHERE) | WORDS
    missing = {
        name for name in functions() - known
        if name.partition(".")[2] not in told and name.partition(".")[2] not in NO_NUMBER
    }  # fmt: skip
    assert missing == set()
    assert known <= functions()
    for name, place in ELSEWHERE.items():
        text = (Path(__file__).parent / place).read_text("utf-8")
        assert re.search(rf"\b{name.partition('.')[2]}\b", text), f"{place} does not test {name}"
