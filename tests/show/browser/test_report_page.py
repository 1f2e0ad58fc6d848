"""The report as a person uses it, in a real browser, from disk and without a network."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Visitor
from plain_forests import paper_example as paper

import weitzman
from weitzman.show.report.findings import problem


@pytest.fixture
def read(visit, tmp_path: Path) -> Callable[..., Visitor]:
    """Write a report and open it with the network off."""

    def open_report(source: Any, *, limit: int = 300, **options: Any) -> Visitor:
        weitzman.write_report(source, tmp_path / "report.html", limit=limit)
        visitor = visit(f"file://{tmp_path}/report.html", offline=True, **options)
        visitor.until("window.__state")
        return visitor

    return open_report


def test_step_through_it_with_the_network_off(read):
    visitor = read(paper())
    page = visitor.page
    assert page.inner_text("h1").startswith("Start with A: 94.3 better than doing nothing")
    assert page.locator("#profile path.law").count() >= 2
    assert "Open A (cost 20): its index 707" in visitor.text(".advice")
    assert visitor.text(".expected") == "94.3"
    page.click(".answer >> text=1 90%")
    assert "Open C (cost 5): its index 40 is above the best so far (1 from A)" in visitor.text(
        ".advice"
    )
    found = float(page.locator(".expected").get_attribute("data-value"))
    assert found == pytest.approx(6.25, abs=2.5)  # played, not solved: five standard errors
    assert "±" in visitor.text(".expected")
    page.click(".answer[data-state='0']")
    page.click(".answer >> text=21")
    assert visitor.text(".advice") == "Stop and take 21 from B: no box is left to open."
    page.get_by_role("button", name="Back").click()
    assert "Open B (cost 3): its index 15" in visitor.text(".advice")
    page.click("text=Start again")
    page.click("text=Play a future")
    assert visitor.text(".advice").startswith("Stop and take")
    assert visitor.asked == [page.url]  # nothing but the file itself was asked for


def test_with_the_keyboard_alone(read):
    visitor = read(paper())
    page = visitor.page
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") == "answer":
            break
    for _ in range(3):  # the focus goes on to the next answer, in the end to the way back
        page.keyboard.press("Enter")
    assert page.locator(".history li").all_inner_texts() == [
        "A showed 1 cost 20", "C showed 10 cost 5", "B showed \u22129 cost 3"
    ]  # fmt: skip
    page.keyboard.press("Enter")
    assert page.locator(".history li").count() == 2
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, [tabindex], svg[role]")]
          .filter((x) => !x.getAttribute("aria-label") && !x.textContent.trim())
          .filter((x) => !x.labels?.length)
          .map((x) => x.outerHTML)"""
    )
    assert unnamed == []


def test_sort_and_search_the_table(read):
    rng = np.random.default_rng(1)
    n = 60
    forest = weitzman.Forest.from_arrays(
        parent=[-1] * n, cost=rng.uniform(0.1, 1, n), rewards=rng.uniform(0, 9, (n, 2)),
        law=[[0.5, 0.5]] * n, names=[f"candidate {i}" for i in range(n)],
    )  # fmt: skip
    solution = weitzman.solve(forest)
    visitor = read(solution)
    page = visitor.page

    def column(i: int) -> list[str]:
        return page.evaluate(
            "(i) => [...document.querySelectorAll('#table tbody tr:not([hidden])')]"
            ".map((row) => row.cells[i].textContent)", i
        )  # fmt: skip

    assert len(column(0)) == 25
    page.click("#more")
    assert len(column(0)) == n
    page.click("#table thead button:text('Index')")
    by_index = sorted(range(n), key=lambda v: -solution.index(v))
    assert column(0) == [f"candidate {v}" for v in by_index]
    assert page.locator("#table th[aria-sort=descending]").inner_text().startswith("Index")
    page.click("#table thead button:text('Index')")
    assert column(0) == [f"candidate {v}" for v in reversed(by_index)]
    page.click("#table thead button:text('Box')")
    assert column(0) == [f"candidate {v}" for v in range(n)]  # 2 before 10
    page.fill("#find", "E 7")
    assert column(0) == ["candidate 7"]
    assert page.inner_text("#found") == "1 box found"


def test_what_if_a_cost_were_different(read):
    visitor = read(paper())
    page = visitor.page
    assert "If A cost 20 (the current cost), the search would be worth 94.3 and begin with A." in (
        visitor.text("#curve .reading")
    )
    page.locator("#curve input").focus()
    page.keyboard.press("End")
    cost = 20 * page.evaluate("__state.data.whatIf[0].factor.at(-1)")
    dear = weitzman.solve(paper().changed(cost={"A": cost}))
    assert f"If A cost {cost:g} (" in visitor.text("#curve .reading")
    assert f"the search would be worth {dear.value:.6g} and begin with C." in (
        visitor.text("#curve .reading")
    )


def test_costs_begin_as_they_are_now(read):
    """Also where the curve goes so far that its steps are wider than the cost."""
    lottery = weitzman.Builder()
    lottery.add("ticket", cost=1, outcomes={0: 0.5, 1000: 0.5})
    visitor = read(lottery.build())
    assert "If ticket cost 1 (the current cost)" in visitor.text("#curve .reading")
    words = visitor.page.locator("#curve text").all_text_contents()
    assert {"cost of opening", "expected value", "0", "10", "30"} <= set(words)  # axes


def test_a_search_under_way_continues_from_where_it_stands(read):
    search = weitzman.Search(weitzman.solve(paper()))
    search.tell("A", 1)
    visitor = read(search)
    page = visitor.page
    assert page.inner_text("h1") == "Continue."
    assert page.locator(".history li.given").count() == 1
    assert page.get_by_role("button", name="Back").is_disabled()
    page.click(".answer[data-state='1']")
    assert "Stop and take 50 from C" in visitor.text(".advice")
    page.get_by_role("button", name="Back").click()
    assert "Open C" in visitor.text(".advice")


def test_what_is_folded_is_said(read):
    rng = np.random.default_rng(5)
    n = 2500
    parent = [-1 if i % 5 == 0 else i - 1 for i in range(n)]
    law = [rng.dirichlet([1, 1]) if p < 0 else rng.dirichlet([1, 1], 2) for p in parent]
    forest = weitzman.Forest.from_arrays(
        parent=parent, cost=rng.uniform(0.1, 1, n), rewards=rng.uniform(0, 9, (n, 2)), law=law
    )
    solution = weitzman.solve(forest)
    visitor = read(solution, limit=6)
    page = visitor.page
    search = weitzman.Search(solution)
    for _ in range(200):  # the worst of all states, again and again
        box = search.ask()
        assert box is not None
        if "folded away here" in visitor.text(".advice"):
            assert f"Open {box} (index" in visitor.text(".advice")
            break
        assert f"Open {box} (cost" in visitor.text(".advice")
        rewards = forest.rewards[int(forest.reward[box.number])][0]
        state = int(np.argmin(rewards))
        page.click(f".answer[data-state='{state}']")
        search.tell(box, state)
    else:
        pytest.fail("all boxes that came up were shown")
    assert page.locator(".answer").count() == 0


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1366, "light")])
def test_nothing_sticks_out_sideways(read, width, scheme):
    visitor = read(paper(), viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= width


def test_long_names_stay_on_the_page(read):
    boxes = weitzman.Builder()
    for i in range(3):
        boxes.add(f"{i}nospaces" * 40, cost=1, outcomes={0: 0.5, 10 + i: 0.5})
    visitor = read(boxes.build(), viewport={"width": 390, "height": 800})
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_index_and_cost_do_not_overlap_in_the_drawing(read):
    boxes = weitzman.Builder()
    boxes.add(
        "a", cost=0.1, outcomes={"low": 0.5, "high": 0.5}, rewards={"low": 0.01, "high": 12.3}
    )
    boxes.add(
        "b", parent="a", cost={"low": 0.0001234, "high": 0.0123456},
        outcomes={"low": {1.2345: 0.5, 23.456: 0.5}, "high": {12.123: 0.5, 99.123: 0.5}},
    )  # fmt: skip
    page = read(boxes.build()).page
    gaps = page.evaluate(
        """() => [...document.querySelectorAll("#drawing .box")].map((box) => {
          const [left, right] = box.querySelectorAll(".index");
          return right.getBoundingClientRect().left - left.getBoundingClientRect().right;
        })"""
    )
    assert len(gaps) == 2
    assert min(gaps) > 0


def test_a_drawing_too_wide_for_paper_is_left_out_of_the_print(read):
    law = ([0.5, 0.5], [[0.8, 0.2], [0.2, 0.8]])
    for length, wanted in ((3, True), (12, False)):
        page = read(weitzman.line(law, length=length, rewards=[0, 10], cost=1)).page
        page.emulate_media(media="print")
        assert page.locator("#drawing").is_visible() is wanted


def test_it_prints(read, tmp_path):
    visitor = read(paper())
    visitor.page.emulate_media(media="print")
    assert visitor.page.locator("nav").is_hidden()
    assert visitor.page.locator("#try").is_hidden()
    assert visitor.page.locator("#drawing svg").is_visible()
    visitor.page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert len(re.findall(rb"/Type\s*/Page\b", (tmp_path / "report.pdf").read_bytes())) in (3, 4)


# -- the stepper says what Python says -----------------------------------------------------------


def random_forest(rng: np.random.Generator) -> weitzman.Forest:
    """Ties, signals, copies, all kinds of costs, either direction."""
    n, minimize = int(rng.integers(1, 8)), bool(rng.integers(2))
    none = np.inf if minimize else -np.inf
    parent = [int(rng.integers(-1, i)) if i else -1 for i in range(n)]
    sizes = rng.integers(1, 4, n)
    rewards = [np.where(rng.random(k) < 0.15, none, rng.integers(-4, 12, k) / 2) for k in sizes]
    law, cost = [], []
    for i, p in enumerate(parent):
        rows, k = 1 if p < 0 else int(sizes[p]), int(sizes[i])
        weights = rng.integers(0, 4, (rows, k)) + np.eye(k)[rng.integers(0, k, rows)]
        matrix = weights / weights.sum(axis=1, keepdims=True)
        law.append(matrix[0] if p < 0 else matrix)
        cost.append(rng.integers(0, 6, (rng.choice([1, rows]), rng.choice([1, k]))) / 15)
    return weitzman.Forest.from_arrays(
        parent=parent, cost=cost, rewards=rewards, law=law, outside=float(rng.integers(-4, 8)) / 2,
        minimize=minimize, count=rng.choice([1, 1, 1, 2, 3], n), names=[f"b{i}" for i in range(n)],
        states=[[f"s{y}" for y in range(k)] for k in sizes],
    )  # fmt: skip


def follow(solution: weitzman.Solution, rng: np.random.Generator) -> tuple[list[int], list[Any]]:
    """States drawn along the policy, and all that a search says on the way."""
    search, forest = weitzman.Search(solution), solution.forest
    states, said = [], []
    while True:
        box = search.ask()
        payoff = search.payoff if np.isfinite(search.payoff) else None
        said.append([search.explain(), payoff, search.spent])
        if box is None:
            return states, said
        above = 0
        for seen in search.history:
            if (
                seen.box.number == forest.parent[box.number]
                and seen.box.copy == (box.copy[: len(seen.box.copy)])
            ):
                above = seen.state_number
        law = forest.laws[int(forest.law[box.number])][above]
        states.append(int(rng.choice(len(law), p=law)))
        search.tell(box, f"s{states[-1]}")


def test_the_stepper_says_what_a_search_says(read):
    """Word for word, on random forests; going back and forth changes nothing."""
    visitor = read(paper())
    rng = np.random.default_rng(0)
    steps = 0
    for _ in range(150):
        forest = random_forest(rng)
        solution = weitzman.solve(forest)
        states, wanted = follow(solution, rng)
        data = problem(solution.policy(), np.arange(len(forest)))
        data["amounts"]["digits"] = forest.amounts.digits  # in a report fewer, for people
        found = visitor.page.evaluate(
            """([text, states]) => {
              const { Walk, unpack } = window.__state;
              const walk = new Walk(unpack(JSON.parse(text)));
              const why = () => walk.why().map((x) => x.name ?? x).join("");
              const say = () => [why(), walk.payoff, walk.spent];
              const said = [say()];
              for (const y of states) {
                walk.tell(walk.next(), y);
                said.push(say());
                walk.undo();
                walk.tell(walk.next(), y);
                if (JSON.stringify(say()) !== JSON.stringify(said.at(-1))) throw "undo";
              }
              return said;
            }""",
            [_embedded(data), states],
        )
        steps += len(states)
        for (text, payoff, spent), (text_, payoff_, spent_) in zip(found, wanted, strict=True):
            assert text.replace("\u2212", "-") == text_
            assert spent == pytest.approx(spent_, abs=1e-12)
            assert payoff == (None if payoff_ is None else pytest.approx(payoff_, abs=1e-12))
    assert steps > 200


def _embedded(data: dict[str, Any]) -> str:
    from weitzman.show.page import embedded

    return embedded(data)


def test_played_futures_earn_the_value(read):
    """Means of many played futures against the exact value, with errors of their own."""
    visitor = read(paper())
    rng = np.random.default_rng(3)
    for _ in range(12):
        forest = random_forest(rng)
        solution = weitzman.solve(forest)
        data = problem(solution.policy(), np.arange(len(forest)))
        payoffs = visitor.page.evaluate(
            """(text) => {
              const { Walk, unpack } = window.__state;
              let a = 1;
              const random = () => (a = (a * 16807) % 2147483647) / 2147483647;
              return new Walk(unpack(JSON.parse(text))).futures(4000, random);
            }""",
            _embedded(data),
        )
        error = np.std(payoffs) / np.sqrt(len(payoffs))
        assert np.mean(payoffs) == pytest.approx(solution.value, abs=5 * error + 1e-6)
