"""Every public function of a forest on every term: the term counts, or is rejected by its name.

The functions are found by their annotations, so none can be forgotten. A function that honors a
term must give other numbers with it than without it; `SAME` says which do not, and why. The table
in docs/semantics.md has the functions that reject a term, and no others.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import weitzman
from weitzman import Forest, Policy, Solution, engine, files, policy, questions, strategies
from weitzman.errors import WeitzmanError
from weitzman.forest import expand, to_scipy

RISK, TIME, PRIZES, QUOTAS = "risk tolerance", "discounting", "several prizes", "quotas"
LOSSES, ENDLESS, COPIES, ERROR = "minimizing", "endless lines", "copies", "stated error"
PAGE = Path(__file__).parents[1] / "docs" / "semantics.md"

# What each term adds to the forest, and the word by which it is rejected.
TERMS: dict[str, tuple[dict[str, Any], str]] = {
    TIME: ({"factor": [0.6, 0.7, 0.8]}, "discount|duration|factor"),
    RISK: ({"risk_tolerance": 2.0}, "risk"),
    PRIZES: ({"prizes": 2}, "prize"),
    QUOTAS: ({"group": ["a", "a", "a"], "quotas": {"a": 0}, "prizes": 1}, "quota"),
    LOSSES: ({"minimize": True}, "minimiz"),
    ENDLESS: ({"endless": [False, True, False]}, "end|too large|finite line"),
    COPIES: ({"count": [2, 1, 1]}, "cop"),
    ERROR: ({"stated_error": 0.25}, "error"),
}
NUMBERS: dict[str, Any] = {
    "parent": [-1, 0, -1], "cost": [1.0, 0.5, 0.75], "outside": 0.5,
    "rewards": [[0.0, 4.0], [1.0, 7.0], [0.0, 9.0]],
    "law": [[0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], [0.6, 0.4]],
}  # fmt: skip


def forest_with(term: str | None) -> Forest:
    return Forest.from_arrays(**NUMBERS | ({} if term is None else TERMS[term][0]))


def value(p: Policy) -> float:
    return weitzman.evaluate(p).value


def mix(m: questions.Mixture) -> list[float]:
    return [m.spend, m.reward, m.price]


RANGES = {("0", "cost"): (0.5, 2.0), ("2", "cost"): (0.5, 2.0)}


def stored(f: Forest, write: Callable[[Any], Any]) -> float:
    with TemporaryDirectory() as folder:
        write(path := f"{folder}/forest.wz")
        return weitzman.solve(weitzman.load(path)).value


# Numbers of each function, from a forest and its solution.
PROBES: dict[str, Callable[[Forest, Solution], Any]] = {
    "break_even": lambda f, s: weitzman.break_even(s, 0),
    "compare": lambda f, s: weitzman.compare(f, episodes=200).columns()["value"],
    "describe": lambda f, s: weitzman.describe(f),
    "explain": lambda f, s: weitzman.explain(s),
    "evaluate": lambda f, s: weitzman.evaluate(s).value,
    "sensitivity": lambda f, s: weitzman.sensitivity(s).columns()["per_unit_of_cost"],
    "side_by_side": lambda f, s: weitzman.solve(weitzman.side_by_side(f)).value,
    "simulate": lambda f, s: weitzman.simulate(s, 500).value,
    "solve": lambda f, s: [s.value, s.gap],
    "truncate": lambda f, s: [
        weitzman.truncate(f, gap=1e-3).lower,
        weitzman.truncate(f, gap=1e-3).upper,
    ],
    "payoff_table": lambda f, s: engine.payoff_table(f.take([0, 1])).phi,
    "difference": lambda f, s: policy.difference(s, Policy.of(f, 1.0), 200).mean,
    "equivalent_box": lambda f, s: weitzman.solve(policy.equivalent_box(s)).value,
    "payoff_law": lambda f, s: [policy.payoff_law(s).values, policy.payoff_law(s).chances],
    "best_line": lambda f, s: [strategies.best_line(f).value, strategies.best_line(f).followed],
    "best_nonadaptive": lambda f, s: strategies.best_nonadaptive(f).value,
    "best_partially_adaptive": lambda f, s: strategies.best_partially_adaptive(f).value,
    "by_expected_value": lambda f, s: value(strategies.by_expected_value(f)),
    "everything": lambda f, s: value(strategies.everything(f)),
    "exhaustive": lambda f, s: strategies.exhaustive(f).value,
    "myopic": lambda f, s: value(strategies.myopic(f)),
    "on_reward_grid": lambda f, s: value(strategies.on_reward_grid(s)),
    "random_order": lambda f, s: strategies.random_order(s, 500, 1).value,
    "value_of_order": lambda f, s: strategies.value_of_order(f, [0, 1, 2]),
    "value_of_set": lambda f, s: strategies.value_of_set(f, [0, 1, 2]),
    "capped": lambda f, s: questions.capped(f, 2, episodes=100).reward,
    "cheapest": lambda f, s: mix(questions.cheapest(f, 4, 0.3)),
    "commit": lambda f, s: questions.commit(f, [[0, 2]]).value,
    "frontier": lambda f, s: questions.frontier(f).columns(),
    "risk_sweep": lambda f, s: questions.risk_sweep(f, steps=3).value,
    "scenarios": lambda f, s: questions.scenarios(f, RANGES).value,
    "solve_many": lambda f, s: questions.solve_many([f]).columns(),
    "tornado": lambda f, s: questions.tornado(f).columns(),
    "turning_points": lambda f, s: [t.share for t in questions.turning_points(s)],
    "two_way": lambda f, s: questions.two_way(f, RANGES, 0, 1, steps=2).value,
    "uncertainty": lambda f, s: questions.uncertainty(f, RANGES, draws=5).value,
    "value_of_knowing": lambda f, s: questions.value_of_knowing(f, [0]).value,
    "value_of_tests": lambda f, s: questions.value_of_tests(f, {0: 0.9}).value,
    "within_budget": lambda f, s: mix(questions.within_budget(f, 0.8)),
    "expand": lambda f, s: weitzman.solve(expand(f)).value,
    "as_ranges": lambda f, s: [r.base for r in questions.as_ranges(f, RANGES)],
    "save": lambda f, s: stored(f, lambda path: weitzman.save(f, path)),
    "save_many": lambda f, s: stored(f, lambda path: files.save_many([f], path)),
    "to_scipy": lambda f, s: to_scipy(f, 0).mean(),
    "to_networkx": lambda f, s: weitzman.solve(files.from_networkx(files.to_networkx(f))).value,
    "to_pandas": lambda f, s: weitzman.solve(files.from_pandas(files.to_pandas(f))).value,
}


def drawn(s: Solution) -> None:
    pytest.importorskip("matplotlib").use("agg")
    weitzman.plot.solution(s)


def reported(s: Solution) -> None:
    with TemporaryDirectory() as folder:
        weitzman.write_report(s, f"{folder}/report.html")


# What is no function of one of the packages, or another way to call one.
METHODS: dict[str, Callable[[Forest, Solution], Any]] = {
    "Search": lambda f, s: (weitzman.Search(s).ask(), weitzman.Search(s).expected),
    "capped_law": lambda f, s: s.capped_law(),
    "phi": lambda f, s: s.phi(3.0),
    "simulate(workers=2)": lambda f, s: weitzman.simulate(s, 50, rng=0, workers=2),
    "write_report": lambda f, s: reported(s),
    "plot.solution": lambda f, s: drawn(s),
}

ERRORS = {"solve", "solve_many"}  # whose numbers say how far they may be off
INDEX = "an index does not depend on it"
SAME = {
    ("break_even", PRIZES): INDEX,
    ("turning_points", PRIZES): "the first box is that of the highest index",
    ("explain", RISK): "the same policy is the best one here",
    ("difference", RISK): "of payoffs, not of their utilities",
    ("payoff_law", RISK): "of payoffs, not of their utilities",
    ("risk_sweep", RISK): "its own tolerances replace that of the forest",
    **{("as_ranges", term): "names numbers of boxes" for term in TERMS},
    **{("to_scipy", term): "the law of one reward" for term in TERMS},
}


# Functions without a forest, a solution or a policy: a new one must be probed or named here.
WITHOUT = {
    "": {"load", "paper", "drilling", "hiring"},
    "backtest": {"all_methods", "backtest"},
    "bounds": {"solve_file"},
    "chains": {
        "exact_depth", "fixed_point", "miss_bounds", "miss_bounds_together", "probe_until_top",
        "solve_line", "value_together",
    },
    "files": {"from_networkx", "from_pandas", "read_ranges", "read_table"},
    "forest": {"discretize", "line"},
    "learn": {"bootstrap", "diagnose", "fit", "from_nothing", "sample", "save"},
    "tune": {
        "draw", "full_run_index", "optimize", "paced", "price_from_past", "price_from_trade",
        "price_within",
    },
}  # fmt: skip


def public_functions() -> set[str]:
    """All that can be called and is neither a class nor draws, of all packages."""
    packages = [x for name in weitzman.__all__ if inspect.ismodule(x := getattr(weitzman, name))]
    found = set()
    for package in (weitzman, *packages):
        for name in getattr(package, "__all__", None) or dir(package):
            x = getattr(package, name)
            ours = callable(x) and getattr(x, "__module__", "").startswith("weitzman")
            if ours and not inspect.isclass(x) and name[0] != "_" and "show" not in x.__module__:
                found.add(name)
    return found


def unsupported() -> dict[str, list[str]]:
    """The terms that each function rejects, as the page says."""
    text = PAGE.read_text("utf-8").partition("## Which function supports what")[2]
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| `")]
    return {
        name: terms.strip().split(", ")
        for row, terms in rows
        for name in re.findall("`(.*?)`", row)
    }


def test_every_public_function_is_probed() -> None:
    assert public_functions() == set(PROBES).union(*WITHOUT.values())
    assert set(PROBES).isdisjoint(set().union(*WITHOUT.values()) - {"save"})
    assert set(unsupported()) <= {*PROBES, *METHODS}
    assert {term for terms in unsupported().values() for term in terms} <= set(TERMS)


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("name", PROBES | METHODS)
def test_each_function_honors_each_term_or_rejects_it_by_name(name: str, term: str) -> None:
    if term == ERROR and name not in ERRORS:
        return
    probe = (PROBES | METHODS)[name]
    plain, special = forest_with(None), forest_with(term)
    before = probe(plain, weitzman.solve(plain))
    rejected = ""
    try:
        after = probe(special, weitzman.solve(special))
    except WeitzmanError as error:
        rejected = str(error)
    assert bool(rejected) == (term in unsupported().get(name, ())), rejected
    if rejected:
        assert re.search(TERMS[term][1], rejected), f"does not name the term: {rejected}"
    elif name in PROBES and term not in (ENDLESS, COPIES):
        assert (repr(before) == repr(after)) == ((name, term) in SAME)


def test_a_group_without_a_place_is_never_opened() -> None:
    f = forest_with(QUOTAS)
    s = weitzman.solve(f)
    assert (s.value, s.first_box, weitzman.Search(s).ask()) == (0.5, None, None)
    assert questions.turning_points(s) == ()
    assert weitzman.break_even(s, 2).opened_below == 0
    other = weitzman.solve(f.changed(group={2: "b"}))
    assert other.first_box == "2" == weitzman.Search(other).ask()
    assert {t.box for t in questions.turning_points(other)} == {"2"}
    rival = weitzman.break_even(other, 2)
    assert rival.first_below == pytest.approx(rival.opened_below)  # box 0 is no rival
