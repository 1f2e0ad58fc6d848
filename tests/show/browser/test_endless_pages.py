"""Lines without an end on the pages: the stepper walks along them, the explorer makes them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from test_report_page import _embedded, read  # noqa: F401

import weitzman
from weitzman.show.report.findings import problem

STEP = {0: {0: 0.6, 5: 0.3, 10: 0.1}, 5: {0: 0.3, 5: 0.4, 10: 0.3}, 10: {0: 0.1, 5: 0.3, 10: 0.6}}


def drafts(count: int = 3) -> weitzman.Forest:
    boxes = weitzman.Builder()
    boxes.add("draft", cost=1, outcomes={0: 0.5, 5: 0.3, 10: 0.2}, count=count)
    boxes.add("revise", parent="draft", cost=0.6, endless=True, outcomes=STEP)
    boxes.add("buy", cost=4, outcomes={6: 0.5, 12: 0.5})
    return boxes.build()


def walk(forest: weitzman.Forest, rng: np.random.Generator) -> weitzman.Search:
    """A search with some answers, drawn at random from what can occur."""
    search = weitzman.Search(weitzman.solve(forest))
    for _ in range(int(rng.integers(0, 7))):
        box = search.ask()
        if box is None:
            break
        search.tell(box, str(rng.choice(["6", "12"] if box.name == "buy" else ["0", "5", "10"])))
    return search


def test_what_is_expected_is_a_fair_game():
    """The mean over what the next box may show is what was expected before it."""
    rng = np.random.default_rng(0)
    checked = 0
    for _ in range(60):
        search = walk(drafts(), rng)
        box = search.ask()
        if box is None:
            assert search.expected == pytest.approx(search.payoff)
            continue
        forest, mean = search.policy.forest, 0.0
        above = {(s.box.number, s.box.copy): s.state_number for s in search.history}
        v, copy = box.number, box.copy
        row = 0
        if box.name == "revise":
            row = above[(v, (*copy[:-1], copy[-1] - 1)) if copy[-1] > 1 else (0, copy[:-1])]
        for y, p in enumerate(forest.laws[int(forest.law[v])][row].tolist()):
            after = weitzman.Search(weitzman.solve(forest))
            for s in search.history:
                after.tell(s.box, s.state)
            after.tell(box, forest.states(v)[y])
            mean += p * after.expected
            checked += 1
        assert mean == pytest.approx(search.expected, abs=1e-9)
    assert checked > 40


def test_the_stepper_walks_along_a_line(read):  # noqa: F811
    visitor = read(drafts())
    rng = np.random.default_rng(4)
    for _ in range(30):
        search = walk(drafts(), rng)
        data = problem(search.policy, np.arange(3))
        data["amounts"]["digits"] = search.policy.forest.amounts.digits  # in a report fewer
        told = [s.state_number for s in search.history]
        found = visitor.page.evaluate(
            """([text, states]) => {
              const { Walk, unpack } = window.__state;
              const walk = new Walk(unpack(JSON.parse(text)));
              for (const y of states) walk.tell(walk.next(), y);
              walk.futures(50, Math.random);
              return [walk.why().map((x) => x.name ?? x).join(""), walk.payoff];
            }""",
            [_embedded(data), told],
        )
        assert found[0].replace("\u2212", "-") == search.explain()
        assert found[1] == pytest.approx(search.payoff)
    assert re.search(r"[\d.]+ boxes opened on average", visitor.page.inner_text("#decision"))
    assert "and on without end" in visitor.page.inner_text("#table")
    assert "fixed orders and sets need lines that end" in visitor.page.inner_text("#left-out")


def test_the_explorer_makes_a_line_endless(visit, explore, tmp_path):
    boxes = weitzman.Builder()
    boxes.add("draft", cost=1, outcomes={0: 0.5, 5: 0.3, 10: 0.2}, count=3)
    boxes.add("revise", parent="draft", cost=0.6, outcomes=STEP)
    boxes.add("buy", cost=4, outcomes={6: 0.5, 12: 0.5})
    weitzman.save(boxes.build(), tmp_path / "drafts.json")
    visitor = visit(explore(tmp_path / "drafts.json"))
    page = visitor.page
    visitor.solved()
    page.locator(".row", has_text="revise").click()
    page.get_by_label("Continues without end").check()
    visitor.solved()
    assert float(visitor.text("#value")) == pytest.approx(weitzman.solve(drafts()).value, abs=1e-6)
    assert re.search(r"^[\d.]+ boxes opened on average", visitor.text("#headline"), re.MULTILINE)
    for answer in ("5", "0"):
        page.locator(".answer", has_text=re.compile(rf"^{answer} ")).click()
    visitor.until("document.querySelector('.expected').dataset.value")
    page.click("#save")
    visitor.until("document.getElementById('saved').textContent === 'saved'")
    assert weitzman.load(tmp_path / "drafts.json").endless.tolist() == [False, True, False]
