"""Report and explorer for everybody: by keyboard alone, on a phone, in the dark, for a checker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from conftest import Visitor
from forests_with_terms import careful, hires, projects
from test_pages_by_hand import portfolio

import weitzman
from weitzman import Builder, Forest, Search, solve
from weitzman.show.explore.workbench import document
from weitzman.show.explore.workbench import forest as read_document

VIEWS = [(390, "dark"), (390, "light"), (1280, "light"), (1280, "dark")]


FORESTS: dict[str, Callable[[], Forest]] = {
    "plain": lambda: portfolio(8), "time": projects, "risk": careful, "prizes": hires,
}  # fmt: skip


def serious(visitor: Visitor, axe: str) -> list[str]:
    """What axe-core finds that keeps people out."""
    visitor.page.evaluate(axe + ";0")
    found = visitor.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{v['id']}: {v['nodes'][0]['html'][:120]}"
        for v in found["violations"]
        if v["impact"] in ("serious", "critical")
    ]


def test_a_key_is_there_if_and_only_if_its_bars_are(visit, explore, tmp_path):
    """On a phone the bars had given way to the numbers, and their key stayed."""
    weitzman.save(portfolio(4), tmp_path / "boxes.json")
    for width in (390, 1280):
        visitor = visit(explore(tmp_path / "boxes.json"), viewport={"width": width, "height": 800})
        visitor.solved()
        visitor.page.click(".questions summary")
        visitor.until("document.querySelector('.questions .swing')")
        seen = "document.querySelector('.questions %s').getClientRects().length > 0"
        bars, key = (visitor.page.evaluate(seen % what) for what in (".swing", ".swing-key"))
        assert bars
        assert key


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_a_checker_finds_nothing_serious(visit, explore, tmp_path, axe, width, scheme):
    view = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    for kind, forest in FORESTS.items():
        weitzman.write_report(forest(), tmp_path / f"{kind}.html")
        report = visit(f"file://{tmp_path}/{kind}.html", **view)
        report.until("window.__state")
        assert serious(report, axe) == [], kind
        weitzman.save(forest(), tmp_path / f"{kind}.json")
        visitor = visit(explore(tmp_path / f"{kind}.json"), **view)
        visitor.solved()
        visitor.until("document.querySelector('#what-if .graph')")
        visitor.page.click(".questions summary")
        visitor.until("document.querySelector('.questions table')")
        visitor.page.click("#rename")
        assert serious(visitor, axe) == [], kind


@pytest.mark.parametrize("width", [390, 1280])
def test_the_button_that_removes_a_state_is_in_sight(visit, explore, tmp_path, width):
    """Behind a parent, the columns of chances had pushed it out of the table."""
    b = Builder().add("first", cost=1, outcomes={"good": 0.5, "so so": 0.2, "bad": 0.3},
                      rewards={"good": None, "so so": None, "bad": None})  # fmt: skip
    after = {0: 0.5, 123456.75: 0.5}
    b.add("second", parent="first", cost=1, outcomes=dict.fromkeys(("good", "so so", "bad"), after))
    weitzman.save(b.build(), tmp_path / "b.json")
    view = {"viewport": {"width": width, "height": 800}}
    visitor = visit(explore(tmp_path / "b.json"), **view)
    visitor.solved()
    visitor.page.click(".row >> nth=1")
    seen = visitor.page.evaluate(
        """() => [...document.querySelectorAll(".law [aria-label^='Remove state']")].map((x) => {
          scrollBy({ top: x.getBoundingClientRect().y - 400, behavior: "instant" });
          const at = x.getBoundingClientRect();
          return document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2) === x; })"""
    )
    assert seen == [True, True]
    cut = visitor.page.evaluate(
        """() => [...document.querySelectorAll(".law input[placeholder]")].filter((x) => {
          if (!x.placeholder || x.value) return false;
          const brush = document.createElement("canvas").getContext("2d");
          brush.font = getComputedStyle(x, "::placeholder").font;
          const style = getComputedStyle(x);
          const room = x.clientWidth - 2 * parseFloat(style.paddingLeft);
          return brush.measureText(x.placeholder).width > room; }).length"""
    )
    assert cut == 0


# -- the keyboard --------------------------------------------------------------------------------


FOCUS = """() => { const x = document.activeElement;
  const named = x.getAttribute("aria-label") || x.labels?.[0]?.textContent || x.textContent;
  const place = x.closest("section, #glance, nav, .bar")?.getAttribute("aria-label") ?? "";
  const style = getComputedStyle(x.querySelector(":scope > .card") ?? x); // a drawn box by its card
  const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0
    || x.tagName === "g" && parseFloat(style.strokeWidth) >= 3;
  return { tag: x.tagName, id: x.id, text: named.trim().slice(0, 60), place, seen }; }"""


def tabbed(visitor: Visitor, most: int = 400) -> list[dict[str, Any]]:
    """Everything that Tab comes to, from the top of the page to its end."""
    page, found = visitor.page, []
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    for _ in range(most):
        page.keyboard.press("Tab")
        at = page.evaluate(FOCUS)
        if at["tag"] == "BODY":
            return found
        found.append(at)
    raise AssertionError("Tab never comes to the end of the page")


def until_focused(visitor: Visitor, text: str, key: str = "Tab", most: int = 200) -> None:
    """Press a key until something with that text has the focus."""
    for _ in range(most):
        if text in visitor.page.evaluate(FOCUS)["text"]:
            return
        visitor.page.keyboard.press(key)
    raise AssertionError(f"never came to {text!r}")


@pytest.mark.parametrize("width", [390, 1280])
def test_tab_reaches_all_of_a_report_and_shows_where_it_is(visit, tmp_path, width):
    weitzman.write_report(portfolio(8), tmp_path / "r.html")
    visitor = visit(f"file://{tmp_path}/r.html", viewport={"width": width, "height": 800})
    visitor.until("window.__state")
    found = tabbed(visitor)
    assert [x for x in found if not x["seen"]] == []
    reached = " ".join(f"{x['id']} {x['text']}" for x in found)
    for what in (
        "Print one page", "Play a future", "find", "which", "Cost of the box", "Budget",
        "Risk tolerance", "Box", "Value of knowing a box in advance",
    ):  # fmt: skip
        assert what in reached, what
    usable = visitor.page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, a[href]")]
          .filter((x) => x.offsetParent && !x.disabled).length"""
    )
    regions = [x for x in found if x["tag"] in ("DIV", "SUMMARY")]
    assert len(found) - len(regions) == usable  # each once, none left out


def test_a_report_is_walked_through_by_keyboard_alone(visit, tmp_path):
    """Open and take as a search does, go back, sort, move the sliders, with no mouse at all."""
    weitzman.write_report(hires(), tmp_path / "r.html")
    visitor = visit(f"file://{tmp_path}/r.html")
    visitor.until("window.__state")
    page, search = visitor.page, Search(solve(hires()))
    until_focused(visitor, "10 50%")
    for told in (10, None, 0, 10, None):
        move = search.ask()
        assert (move.move == "take") == (told is None)
        if told is None:
            until_focused(visitor, f"Take 10 from {move}")
            search.take(move)
        else:
            until_focused(visitor, f"{told} ")
            search.tell(move, reward=told)
        page.keyboard.press("Enter")
        said = search.explain().replace("−", "-").replace("6.6667", "6.67")  # as reports say it
        assert visitor.text(".advice") == said
    assert visitor.text(".advice").startswith("Stop, 2 of 2 prizes taken")
    assert page.evaluate("__state.stepper.walk.payoff") == search.payoff
    assert "Took 10 from Ada" in visitor.text(".history")
    until_focused(visitor, "Back")
    page.keyboard.press("Enter")
    assert visitor.text(".advice").startswith("Take 10 from")
    until_focused(visitor, "Start again")
    page.keyboard.press("Space")
    assert page.evaluate("__state.stepper.walk.log.length") == 0
    until_focused(visitor, "Play a future")
    page.keyboard.press("Enter")
    assert visitor.text(".advice").startswith("Stop, ")
    until_focused(visitor, "Index")
    page.keyboard.press("Enter")
    assert page.get_attribute("#table th:has-text('Index')", "aria-sort") == "descending"
    until_focused(visitor, "Budget")
    before = visitor.text("#answer-budget .reading")
    page.keyboard.press("Home")
    assert visitor.text("#answer-budget .reading") != before
    assert visitor.text("#answer-budget .reading").startswith("With 0 to spend on average")


def test_the_explorer_is_used_by_keyboard_alone(visit, explore, tmp_path):
    """From an empty page to a solved and saved problem with two prizes and durations."""
    visitor = visit(explore(tmp_path / "new.json"))
    visitor.until("window.__state")
    page = visitor.page

    def fill(label: str, text: str) -> None:
        until_focused(visitor, label)
        page.keyboard.press("Control+a")
        page.keyboard.type(text)

    until_focused(visitor, "Add a box")
    page.keyboard.press("Enter")
    visitor.solved()
    fill("Name of the box", "first")
    fill("Cost", "2")
    fill("Reward of state 2", "20")
    until_focused(visitor, "Add a box", key="Shift+Tab")
    page.keyboard.press("Enter")
    fill("Name of the box", "second")
    until_focused(visitor, "Time, risk, several prizes, unit", key="Shift+Tab")
    page.keyboard.press("Enter")
    fill("Prizes", "2")
    visitor.solved()
    b = Builder(prizes=2).add("first", cost=2, outcomes={0: 0.5, 20: 0.5})
    wanted = b.add("second", cost=1, outcomes={0: 0.5, 10: 0.5}).build()
    visitor.until("(v) => Math.abs(__state.solved.value - v) < 1e-9", solve(wanted).value)
    until_focused(visitor, "20 50%")
    page.keyboard.press("Enter")
    until_focused(visitor, "Take 20 from first")
    page.keyboard.press("Enter")
    assert "Open second" in visitor.text(".advice")
    page.keyboard.press("Control+s")
    visitor.until("document.getElementById('live').textContent.startsWith('Saved to')")
    assert weitzman.load(tmp_path / "new.json") == wanted
    until_focused(visitor, "Prizes", key="Shift+Tab")
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    until_focused(visitor, "Time", key="Shift+Tab")
    page.keyboard.press("ArrowDown")  # durations and a rate
    visitor.solved()
    fill("Rate of discounting", "0.2")
    fill("Duration", "3")
    until_focused(visitor, "More questions", key="Tab")
    page.keyboard.press("Enter")
    visitor.until("document.querySelector('.questions table')")
    page.keyboard.press("Control+s")
    visitor.until("document.getElementById('saved').textContent === 'saved'")
    found = weitzman.load(tmp_path / "new.json")
    assert (found.prizes, found.rate) == (1, 0.2)
    assert sorted(found.durations.data.tolist()) == [0.0, 3.0]
    assert page.evaluate("__state.solved.value") == pytest.approx(solve(found).value)


@pytest.mark.parametrize("width", [390, 1280])
def test_tab_shows_where_it_is_in_the_explorer(visit, explore, tmp_path, width):
    weitzman.save(projects(), tmp_path / "p.json")
    visitor = visit(explore(tmp_path / "p.json"), viewport={"width": width, "height": 800})
    visitor.solved()
    visitor.until("document.querySelector('#what-if .graph')")
    assert [x for x in tabbed(visitor) if not x["seen"]] == []


# -- what the pages say of the terms -------------------------------------------------------------


@pytest.mark.parametrize("kind", ["time", "risk", "prizes"])
def test_the_stepper_stands_where_a_search_stands(visit, tmp_path, kind):
    """Payoff, time and what going on is worth, after each of some steps."""
    forest = FORESTS[kind]()
    weitzman.write_report(forest, tmp_path / "r.html")
    visitor = visit(f"file://{tmp_path}/r.html", offline=True)
    visitor.until("window.__state")
    page, search = visitor.page, Search(solve(forest))
    while (move := search.ask()) is not None:
        if move.move == "take":
            search.take(move)
            page.click(".answer")
        else:
            search.tell(move, forest.states(move.number)[0])
            page.click(".answer[data-state='0']")
        walk = page.evaluate("(({payoff, time}) => ({payoff, time}))(__state.stepper.walk)")
        assert walk["payoff"] == pytest.approx(search.payoff)
        assert walk["time"] == pytest.approx(search.time)
        if page.evaluate("__state.stepper.walk.next() !== null"):
            visitor.until("document.querySelector('.expected').dataset.value !== undefined")
            found = float(page.get_attribute(".expected", "data-value"))
            assert found == pytest.approx(search.expected, abs=0.2 * abs(search.expected) + 3)
    assert visitor.text(".advice").startswith("Stop")


def test_the_explorer_expects_exactly_what_a_search_expects(visit, explore, tmp_path):
    for kind in ("time", "risk", "prizes"):
        forest = FORESTS[kind]()
        weitzman.save(forest, tmp_path / f"{kind}.json")
        visitor = visit(explore(tmp_path / f"{kind}.json"))
        visitor.solved()
        search = Search(solve(forest))
        move = search.ask()
        state = {"time": 1, "risk": 0, "prizes": 1}[kind]
        search.tell(move, forest.states(move.number)[state])
        visitor.page.click(f".answer[data-state='{state}']")
        if search.ask() is not None and search.ask().move == "take":
            search.take(search.ask())
            visitor.page.click(".answer")
        if visitor.page.evaluate("__state.stepper.walk.next() !== null"):
            visitor.until(
                "(x) => Math.abs(document.querySelector('.expected')?.dataset.value - x) < 1e-6",
                search.expected,
            )
        assert visitor.page.evaluate("__state.stepper.walk.payoff") == pytest.approx(search.payoff)


def test_terms_come_back_as_they_went_and_follow_changes_of_structure(visit, explore):
    """Durations and factors of every shape stay beside their boxes while states come and go."""
    law = [[0.5, 0.5], [[0.2, 0.8], [0.9, 0.1]]]
    columns = {"parent": [-1, 0], "cost": [1, 2], "rewards": [0, 10], "law": law, "unit": "$"}
    forests = [careful(), hires(), projects()]
    for below in (0.5, [0.5, 0.75], [[0.5, 0.75], [1, 0.25]], [[1, 0.5]]):
        forests.append(Forest.from_arrays(**columns, factor=[0.5, below]))
        forests.append(Forest.from_arrays(**columns, duration=[0.5, below], rate=0.5))
    visitor = visit(explore())
    visitor.until("window.__state")
    for forest in forests:
        text = document(forest)
        again, grown = visitor.page.evaluate(
            """(text) => { const { addState, fromFile, removeState, toFile } = __state.edits;
              const doc = fromFile(text), { key } = doc.boxes[0];
              const more = addState(doc, key);
              const last = more.boxes[0].rewards.length - 1;
              const less = toFile(removeState(more, key, last));
              if (JSON.stringify(less) !== JSON.stringify(toFile(doc))) throw "not the same";
              return [toFile(doc), toFile(more)]; }""",
            text,
        )
        assert read_document(again) == read_document(text)
        assert len(read_document(grown).states(0)) == len(forest.states(0)) + 1


@pytest.mark.parametrize("width", [390, 1280])
def test_answers_of_the_explorer_can_be_read_on_a_phone(visit, explore, tmp_path, width):
    """No column is so narrow that its words are broken letter by letter."""
    weitzman.save(careful(), tmp_path / "c.json")
    view = {"viewport": {"width": width, "height": 800}}
    visitor = visit(explore(tmp_path / "c.json"), **view)
    visitor.solved()
    visitor.page.click(".questions summary")
    visitor.until("document.querySelector('.questions table')")
    narrow = visitor.page.evaluate(
        """() => [...document.querySelectorAll(".questions :is(td, th)")]
          .filter((x) => x.offsetParent && x.textContent.length > 12 && x.clientWidth < 75)
          .map((x) => x.textContent)"""
    )
    assert narrow == []
    assert visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
