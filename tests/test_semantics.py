"""The table of functions by terms in the documentation is what the functions do."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weitzman
from weitzman import policy, questions, strategies

PAGE = Path(__file__).parents[1] / "docs" / "semantics.md"

OPTIONS: dict[str, dict[str, Any]] = {
    "discounting": {"rate": 0.1},
    "risk tolerance": {"risk_tolerance": 20.0},
    "several prizes": {"prizes": 2},
    "quotas": {"quotas": {"A": 1, "B": 1}},
    "minimizing": {"minimize": True, "outside": 9.0},
    "endless lines": {},
    "copies": {},
}
NAMED = {
    "discounting": "discount|rate|factor", "several prizes": "prize", "quotas": "quota|prize",
    "endless lines": "end|too large", "copies": "cop",
}  # fmt: skip


def forest_with(term: str) -> weitzman.Forest:
    """Two small trees that have one term."""
    boxes = weitzman.Builder(**OPTIONS[term])
    more: dict[str, Any] = {"duration": 1} if term == "discounting" else {}
    for name in "AB":
        group = {"group": name} if term == "quotas" else {}
        count = 2 if term == "copies" else 1
        boxes.add(name, cost=1, outcomes={0: 0.5, 10: 0.5}, count=count, **group, **more)
        endless = term == "endless lines" and name == "B"
        law = {0: {0: 0.5, 10: 0.5}, 10: {0: 0.5, 10: 0.5}}
        law = law if endless else {0: {0: 0.8, 20: 0.2}, 10: {0: 0.5, 20: 0.5}}
        boxes.add(f"{name}2", parent=name, cost=1, outcomes=law, endless=endless, **group, **more)
    return boxes.build()


FUNCTIONS: dict[str, Callable[[weitzman.Forest, weitzman.Solution], Any]] = {
    "solve": lambda f, s: weitzman.solve(f),
    "evaluate": lambda f, s: weitzman.evaluate(s),
    "simulate": lambda f, s: weitzman.simulate(s, 50, rng=0),
    "difference": lambda f, s: policy.difference(s, s, 50),
    "Search": lambda f, s: (weitzman.Search(s).ask(), weitzman.Search(s).expected),
    "explain": lambda f, s: weitzman.explain(s),
    "sensitivity": lambda f, s: weitzman.sensitivity(s),
    "break_even": lambda f, s: weitzman.break_even(s, "A"),
    "payoff_law": lambda f, s: policy.payoff_law(s),
    "truncate": lambda f, s: weitzman.truncate(f, gap=0.1),
    "solve_many": lambda f, s: questions.solve_many([f]),
    "write_report": lambda f, s: weitzman.write_report(s, "report.html"),
    "save": lambda f, s: weitzman.save(f, "forest.json"),
    "plot.solution": lambda f, s: weitzman.plot.solution(s),
    "simulate(workers=2)": lambda f, s: weitzman.simulate(s, 50, rng=0, workers=2),
    "compare": lambda f, s: weitzman.compare(f, episodes=50),
    "best_line": lambda f, s: strategies.best_line(f),
    "best_nonadaptive": lambda f, s: strategies.best_nonadaptive(f),
    "best_partially_adaptive": lambda f, s: strategies.best_partially_adaptive(f),
    "exhaustive": lambda f, s: strategies.exhaustive(f),
    "equivalent_box": lambda f, s: policy.equivalent_box(s),
    "capped_law": lambda f, s: s.capped_law(),
    "phi": lambda f, s: s.phi(3.0),
    "frontier": lambda f, s: questions.frontier(f, corners=3),
    "within_budget": lambda f, s: questions.within_budget(f, 1.5),
    "cheapest": lambda f, s: questions.cheapest(f, target=10, chance=0.3),
    "capped": lambda f, s: questions.capped(f, cap=2, episodes=50, rng=0),
    "value_of_knowing": lambda f, s: questions.value_of_knowing(f, ["A"]),
    "value_of_tests": lambda f, s: questions.value_of_tests(f, {"A": 0.8}),
    "tornado": lambda f, s: questions.tornado(f, share=0.1),
    "turning_points": lambda f, s: questions.turning_points(s),
    "index_slopes": lambda f, s: questions.index_slopes(s, "A"),
    "risk_sweep": lambda f, s: questions.risk_sweep(f),
    "commit": lambda f, s: questions.commit(f, unseen=True),
}


def table() -> dict[str, dict[str, bool]]:
    """What the page says, by function and term."""
    text = PAGE.read_text("utf-8").partition("## Which function supports what")[2]
    sentence = re.search(r"names it\. (.*?) support all", text, re.DOTALL)
    assert sentence is not None
    said = {name: dict.fromkeys(OPTIONS, True) for name in re.findall(r"`(.*?)`", sentence[1])}
    _, _, *rows = [line for line in text.splitlines() if line.startswith("|")]
    for row in rows:
        name, without = [x.strip() for x in row.strip("|").split("|")]
        missing = without.split(", ")
        assert set(missing) <= set(OPTIONS)
        said[name.strip("`")] = {term: term not in missing for term in OPTIONS}
    return said


def test_the_page_has_every_function() -> None:
    assert list(table()) == list(FUNCTIONS)


@pytest.mark.parametrize("term", OPTIONS)
def test_each_function_supports_a_term_or_rejects_it_by_name(
    term: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib").use("agg")
    monkeypatch.chdir(tmp_path)
    forest = forest_with(term)
    solution = weitzman.solve(forest)
    for name, said in table().items():
        if said[term]:
            FUNCTIONS[name](forest, solution)
        else:
            with pytest.raises(weitzman.WeitzmanError, match=NAMED.get(term, term)):
                FUNCTIONS[name](forest, solution)
