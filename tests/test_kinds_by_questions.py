"""The other half of the table of functions by kinds of forest: questions and strategies.

As in ``test_kinds_by_functions.py``, each number is compared with one other way to get it, and a
cell without a comparison has a reason: what the function says when it refuses. The last test reads
the rooms and fails for a public function that is in neither half and has no reason.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pytest
from test_kinds_by_functions import CLOSE, FUNCTIONS, KINDS, NO_NUMBER, draw

import weitzman
from weitzman import Forest, Solution, policy, questions, strategies
from weitzman.errors import WeitzmanError

SEEDS = range(3)


def subsets(f: Forest) -> list[tuple[int, ...]]:
    """Sets of boxes that hold the parent of each of their members."""
    boxes = range(len(f))
    all_ = chain.from_iterable(combinations(boxes, k) for k in range(len(f) + 1))
    return [x for x in all_ if all(f.parent[v] < 0 or int(f.parent[v]) in x for v in x)]


def equivalent_box_size(f: Forest, s: Solution) -> None:
    most = policy.equivalent_box_size(s)
    if f.endless.any():
        assert most == np.inf
    else:
        assert most >= len(policy.equivalent_box(s).chance)


def value_of_set(f: Forest, s: Solution) -> None:
    """All boxes, opened whatever they show, earn what that policy does."""
    alike = strategies.everything(f)
    found = strategies.value_of_set(f, range(len(f)))
    assert found == pytest.approx(weitzman.evaluate(alike).value, abs=CLOSE)


def best_nonadaptive(f: Forest, s: Solution) -> None:
    found = strategies.best_nonadaptive(f)
    if f.boxes == len(f):
        tried = [x for x in subsets(f) if x or np.isfinite(f.outside)]
        best = max(f.sign * strategies.value_of_set(f, x) for x in tried)
        assert f.sign * found.value == pytest.approx(best, abs=CLOSE)
    assert f.sign * found.value <= f.sign * s.value + CLOSE


def value_of_order(f: Forest, s: Solution) -> None:
    """Orders can stop, so they earn no less than the set of their boxes, and no more than all."""
    order = sorted(range(len(f)), key=lambda v: (f.parent[v] >= 0, v))
    found = f.sign * strategies.value_of_order(f, order)
    assert f.sign * strategies.value_of_set(f, order) <= found + CLOSE
    assert found <= f.sign * s.value + CLOSE


def best_partially_adaptive(f: Forest, s: Solution) -> None:
    found = strategies.best_partially_adaptive(f)
    assert found.exact
    assert f.sign * strategies.best_nonadaptive(f).value <= f.sign * found.value + CLOSE
    assert f.sign * found.value <= f.sign * s.value + CLOSE
    if f.boxes == len(f):
        again = strategies.value_of_order(f, list(found.order))
        assert found.value == pytest.approx(again, abs=CLOSE)


def best_line(f: Forest, s: Solution) -> None:
    found = strategies.best_line(f)
    assert f.sign * found.value <= f.sign * s.value + CLOSE
    assert found.value == pytest.approx(strategies.approximate(f).line.value, abs=CLOSE)


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
    """With what the optimum spends, no less is found; with nothing, what is there without."""
    e = weitzman.evaluate(s)
    found = questions.within_budget(f, e.spend)
    assert found.spend <= e.spend + 1e-6
    assert f.sign * found.reward >= f.sign * e.reward - 1e-6
    assert found.reward == pytest.approx(questions.frontier(f).at(e.spend).reward, abs=1e-6)


def tornado(f: Forest, s: Solution) -> None:
    found = questions.tornado(f, share=0.1)
    assert found.solution.value == pytest.approx(s.value, abs=CLOSE)


def index_slopes(f: Forest, s: Solution) -> None:
    """The index of a root as its cost changes; at a kink, between the slopes of both sides."""
    for v in f.roots.tolist():
        if np.isfinite(s.index(v)):
            slope = float(np.sum(questions.index_slopes(s, v).cost[0]))
            cost, h = f.costs[int(f.cost[v])], 1e-4
            less, more = (
                weitzman.solve(f.changed(cost={v: (cost + x).reshape(-1)})).index(v)
                for x in (-h, h)
            )
            low, high = sorted([(s.index(v) - less) / h, (more - s.index(v)) / h])
            assert low - 1e-3 <= slope <= high + 1e-3


def value_of_knowing(f: Forest, s: Solution) -> None:
    found = questions.value_of_knowing(f, f.roots.tolist(), samples=200)
    assert found.without == pytest.approx(s.value, abs=CLOSE)
    assert found.worth >= -5 * (found.error if np.isfinite(found.error) else 0) - CLOSE
    assert found.worth == pytest.approx(f.sign * (found.value - found.without), abs=CLOSE)


def commit(f: Forest, s: Solution) -> None:
    """Without a choice to make, it is the optimum."""
    found = questions.commit(f)
    assert found.value == pytest.approx(s.value, abs=CLOSE)
    assert f.sign * found.bound >= f.sign * found.value - CLOSE


def risk_sweep(f: Forest, s: Solution) -> None:
    """The more tolerant, the nearer to the value of whoever does not mind risk."""
    found = questions.risk_sweep(f, steps=6)
    order = np.argsort(found.tolerance)
    worth = f.sign * np.asarray(found.value)[order]
    assert (np.diff(worth) >= -1e-7).all()
    assert worth[-1] <= f.sign * s.value + 1e-7


CELLS: dict[str, Callable[[Forest, Solution], None]] = {
    "policy.equivalent_box_size": equivalent_box_size,
    "strategies.value_of_set, everything": value_of_set,
    "strategies.best_nonadaptive": best_nonadaptive,
    "strategies.value_of_order": value_of_order,
    "strategies.best_partially_adaptive": best_partially_adaptive,
    "strategies.best_line, approximate": best_line,
    "strategies.by_expected_value, myopic, on_reward_grid, random_order": rules_of_thumb,
    "questions.frontier": frontier,
    "questions.within_budget": within_budget,
    "questions.tornado": tornado,
    "questions.index_slopes": index_slopes,
    "questions.value_of_knowing": value_of_knowing,
    "questions.commit": commit,
    "questions.risk_sweep": risk_sweep,
}
# Cells without a comparison, by what a caller is told.
_ENDS = dict.fromkeys(CELLS, "needs a forest that ends")
for _name in ("policy.equivalent_box_size", "questions.frontier", "questions.within_budget"):
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
    "strategies.spanning_policy": "strategies/test_enumeration.py",  # a graph
    "questions.capped": "questions/test_budget.py",  # a cap
    "questions.cheapest": "questions/test_budget.py",  # a target
    "questions.within_budgets": "questions/test_budget.py",  # uses of several budgets
    "questions.value_of_tests": "questions/test_information.py",  # tests
    "questions.turning_points": "questions/test_information.py",
    "plot.bounds_data": "show/test_plot.py",  # a lazy forest
    "plot.break_even_data": "show/test_plot_data.py",  # what break_even gives
    "plot.capped_law": "show/test_plot_data.py",  # Solution.capped_law
    "plot.decision_region": "show/test_plot_data.py",  # a model of runs
    "plot.endless_data": "show/test_plot_data.py",
    "plot.graph_places": "show/test_plot.py",
    "plot.line_grid": "show/test_plot_data.py",
    "plot.openings_data": "show/test_plot_data.py",
    "plot.payoff_law": "test_paper_objects.py",  # policy.payoff_law
    "plot.search_path": "show/test_plot_data.py",
    "plot.strategies_data": "show/test_plot_data.py",
    "plot.tree": "show/test_plot_data.py",
    "plot.truncation_data": "show/test_plot_data.py",
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
