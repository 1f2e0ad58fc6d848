"""What report and explorer share: text stays text, what is left of a search, what is shown."""

from __future__ import annotations

import json
import re
from collections import Counter

import numpy as np
import pytest

import weitzman
from weitzman.show.explore import _SCRIPTS
from weitzman.show.page import STEPPER, embedded, finite, h, join, name, script, style, whole
from weitzman.show.report.findings import important, problem, steps

HOSTILE = "</script><script>alert(1)</script>&lt;'\"\u2028\0"


# -- text ----------------------------------------------------------------------------------------


def test_text_is_escaped_and_markup_is_not():
    assert (
        h("p", "<b>", h("b", "&"), title='"<') == '<p title="&quot;&lt;">&lt;b&gt;<b>&amp;</b></p>'
    )
    assert join(["a", None, ["<", name("<i>")]]) == "a&lt;<bdi>&lt;i&gt;</bdi>"
    assert h("input", hidden=True, class_=None, data_x=0) == '<input hidden data-x="0">'


def test_embedded_data_cannot_end_its_element():
    text = embedded({"name": HOSTILE, "x": [float("inf"), 1.5]})
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"name": HOSTILE, "x": [None, 1.5]}


def test_numbers_that_are_not_finite_become_null():
    assert finite({"a": (np.nan, [-np.inf, 2.0])}) == {"a": [None, [None, 2.0]]}


def test_the_title_of_a_page_is_text():
    text = whole(HOSTILE, join([]), style="", script="", data=None)
    assert "<script>alert" not in text


@pytest.mark.parametrize(
    ("package", "names"),
    [("weitzman.show.report", ("report.js",)), ("weitzman.show.explore", _SCRIPTS)],
)
def test_modules_are_joined_without_clashes(package, names):
    text = script(package, *names)
    assert not re.search(r"^(import|export)\b", text, re.MULTILINE)
    defined = re.findall(r"^(?:async )?(?:function|class|const|let) (\w+)", text, re.MULTILINE)
    twice = [x for x, n in Counter(defined).items() if n > 1]
    assert len(defined) > 20
    assert twice == []


def test_modules_come_after_what_they_import():
    from importlib.resources import files

    for i, module in enumerate(STEPPER):
        text = files("weitzman.show.page").joinpath(module).read_text("utf-8")
        wanted = re.findall(r'from "\./(\w+\.js)"', text)
        assert set(wanted) <= set(STEPPER[:i])


def test_no_script_writes_markup():
    """Names reach the page as text only: nothing in the scripts parses HTML."""
    for package, names in (
        ("weitzman.show.report", ("report.js",)),
        ("weitzman.show.explore", _SCRIPTS),
    ):
        text = script(package, *names)
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in text


def luminance(color: str) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    full = color if len(color) == 7 else "#" + "".join(2 * c for c in color[1:])
    parts = [int(full[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_stands_out(theme):
    """Contrast of text at least 4.5 to 1, of the edges of fields 3 to 1 (WCAG 2, level AA)."""
    css = style("weitzman.show.report", "report.css")
    colors = dict(re.findall(r"--([\w-]+): (#\w+);", css.split(":root {")[1 + theme]))
    pairs = [
        (text, ground, 4.5)
        for text in ("ink", "soft", "accent", "warm")
        for ground in ("paper", "card", "wash", "warm-wash")
    ]
    pairs += [("on-accent", "accent", 4.5), ("bad", "bad-wash", 4.5), ("field", "card", 3.0)]
    for text, ground, least in pairs:
        low, high = sorted(luminance(colors[x]) for x in (text, ground))
        assert (high + 0.05) / (low + 0.05) >= least, (text, ground)


# -- what is shown -------------------------------------------------------------------------------


def many(n: int) -> weitzman.Forest:
    rng = np.random.default_rng(n)
    parent = [-1 if i % 3 == 0 else i - 1 for i in range(n)]
    law = [rng.dirichlet([1, 1]) if p < 0 else rng.dirichlet([1, 1], 2) for p in parent]
    return weitzman.Forest.from_arrays(
        parent=parent, cost=rng.uniform(0.1, 2, n), rewards=rng.uniform(0, 9, (n, 2)), law=law
    )


def test_the_boxes_shown_are_the_likely_ones_and_closed_upward():
    solution = weitzman.solve(many(90))
    e = weitzman.evaluate(solution)
    keep = important(solution.policy(), e, 20, []).tolist()
    assert 20 <= len(keep) < 25
    parent = solution.forest.parent
    assert all(parent[v] < 0 or parent[v] in keep for v in keep)
    assert min(e.opened[keep]) >= sorted(e.opened)[-25]


def test_what_was_told_is_always_shown():
    solution = weitzman.solve(many(90))
    search = weitzman.Search(solution)
    seen = [box for box, _ in search.available(None)[-5:]]
    for box in seen:
        search.tell(box, 0)
    keep = important(solution.policy(), weitzman.evaluate(solution), 3, search.history)
    assert {box.number for box in seen} <= set(keep.tolist())
    assert [keep[row[0]] for row in steps(search.history, keep)] == [b.number for b in seen]


def test_what_is_folded_is_told_by_its_best():
    forest = many(90)
    solution = weitzman.solve(forest)
    policy = solution.policy()
    keep = np.array([0, 3, 4])
    folded = problem(policy, keep)["folded"]
    roots = [v for v in forest.roots.tolist() if v not in keep]
    best = max(roots, key=lambda v: solution.index(v))
    assert folded["boxes"] == 87
    assert folded["root"] == [solution.index(best), str(best)]
    assert folded["below"][0] == [[x, "1"] for x in solution.indices(1).tolist()]
    assert folded["below"][2] == [[x, "5"] for x in solution.indices(5).tolist()]


def test_columns_say_what_the_forest_says():
    forest = many(9)
    solution = weitzman.solve(forest)
    data = problem(solution.policy(), np.arange(9))
    assert data["folded"] is None
    assert data["parent"] == forest.parent.tolist()
    for v in range(9):
        assert data["indices"][v] == solution.indices(v).tolist()
        law = np.array(data["laws"][data["law"][v]])
        assert law == pytest.approx(forest.laws[int(forest.law[v])], rel=1e-6)
        assert data["costs"][data["cost"][v]] == forest.costs[int(forest.cost[v])].tolist()
        assert (
            data["rewards"][data["reward"][v]] == forest.rewards[int(forest.reward[v])][0].tolist()
        )
