"""Report and explorer as people use them, on a phone and among two hundred boxes."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Visitor

import weitzman


def portfolio(n: int) -> weitzman.Forest:
    """Lines of four boxes with long numbers and long names."""
    rng = np.random.default_rng(0)
    parent = [-1 if i % 4 == 0 else i - 1 for i in range(n)]
    law = [rng.dirichlet([1, 1, 1]) if p < 0 else rng.dirichlet([1, 1, 1], 3) for p in parent]
    return weitzman.Forest.from_arrays(
        parent=parent, cost=rng.uniform(2000, 40000, n), law=law,
        rewards=rng.uniform(0, 200000, (n, 3)),
        names=[f"program {i} of the portfolio" for i in range(n)],
    )  # fmt: skip


@pytest.fixture
def many(tmp_path) -> Path:
    path = tmp_path / "many.json"
    weitzman.save(portfolio(200), path)
    return path


# -- the explorer --------------------------------------------------------------------------------


def test_opening_another_file_and_saving_replaces_nothing(visit, explore, many, tmp_path):
    """A file of three boxes was replaced by one of two hundred: never again without a question."""
    three = tmp_path / "three.json"
    weitzman.save(weitzman.line([[0.5, 0.5]], rewards=[0, 9], cost=1, names=["only"]), three)
    before = three.read_bytes()
    visitor = visit(explore(three))
    page = visitor.page
    visitor.solved()
    page.set_input_files("#pick", many)
    visitor.until("__state.doc.boxes.length === 200")
    assert "Save asks for a name" in visitor.text("#live")
    assert visitor.text("#file") == "many.json"
    page.keyboard.press("Control+s")
    visitor.until("document.activeElement.id === 'save-name'")
    page.fill("#save-name", "three.json")
    page.keyboard.press("Enter")
    visitor.until("document.querySelector('.save-as').textContent.includes('already exists')")
    assert three.read_bytes() == before
    page.fill("#save-name", "other.json")
    page.keyboard.press("Enter")
    visitor.until("document.getElementById('live').textContent === 'Saved to other.json.'")
    assert len(weitzman.load(tmp_path / "other.json")) == 200
    assert three.read_bytes() == before
    page.click("#undo")  # the boxes from before, and the file that they came from
    visitor.until("__state.doc.boxes.length === 1")
    assert visitor.text("#file") == "three.json"
    assert visitor.text("#live") == "Undone: opening many.json."


def test_messages_say_what_happened_and_cover_nothing(visit, explore):
    visitor = visit(explore(), viewport={"width": 390, "height": 800})
    page = visitor.page
    page.click("#example")
    visitor.solved()
    page.click(".row >> nth=2")
    page.click("#remove")
    assert visitor.text("#live") == "C removed. Undo brings it back."
    page.click("#undo")
    assert visitor.text("#live") == "Undone: removing C."
    page.click("#redo")
    assert visitor.text("#live") == "Redone: removing C."
    hidden = page.evaluate(
        """() => { const m = document.getElementById("live").getBoundingClientRect();
          return [...document.querySelectorAll("button:not([disabled])")].filter((b) => {
            const r = b.getBoundingClientRect();
            const meet = (a, b) => r[a] < m[b] && m[a] < r[b];
            return r.width && meet("left", "right") && meet("top", "bottom");
          }).map((b) => b.textContent); }"""
    )
    assert hidden == []


def test_a_box_is_found_among_two_hundred_by_keyboard_alone(visit, explore, many):
    visitor = visit(explore(many))
    page = visitor.page
    visitor.solved()
    page.focus("#find")
    page.keyboard.type("am 137 ")
    assert page.locator(".row:visible").count() == 1
    assert "1 of 200" in visitor.text(".find")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    name = page.get_by_label("Name of the box")
    assert name.input_value() == "program 137 of the portfolio"
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Name of the box"
    page.focus("#find")
    page.keyboard.press("Escape")
    assert page.locator(".row:not([hidden])").count() == 200


def test_fields_stay_where_they_are_and_long_numbers_fit(visit, explore, many):
    visitor = visit(explore(many), viewport={"width": 1280, "height": 900})
    page = visitor.page
    visitor.solved()
    places = set()
    for row in (0, 4, 8, 120):
        page.evaluate("(i) => document.querySelectorAll('.row')[i].click()", row)
        box = page.get_by_label("Name of the box").bounding_box()
        cost = page.get_by_label("Cost", exact=True).bounding_box()
        places.add(tuple(round(x) for x in (box["x"], box["y"], cost["x"], cost["y"])))
    assert len(places) == 1
    cut = page.evaluate(
        """() => [...document.querySelectorAll(".editor input.figure")]
          .filter((x) => x.scrollWidth > x.clientWidth + 1).map((x) => x.value)"""
    )
    assert cut == []
    field = page.get_by_label("Cost", exact=True)
    field.focus()
    exact = page.evaluate("__state.doc.boxes[120].cost[0][0]")
    assert float(field.input_value()) == exact  # all digits, once the field is used
    page.keyboard.press("Tab")
    assert page.evaluate("__state.doc.boxes[120].cost[0][0]") == exact


def test_the_slider_runs_below_the_curve_and_a_number_can_be_used(visit, explore):
    visitor = visit(explore())
    page = visitor.page
    page.click("#example")
    visitor.solved()
    visitor.until("document.querySelector('#what-if .here')")
    slider = page.locator("#what-if .along")
    slider.focus()
    for keys in ("Home", "End", "ArrowLeft"):
        page.keyboard.press(keys)
        apart = page.evaluate(
            """() => { const s = document.querySelector("#what-if .along"), t = 18;
              const r = s.getBoundingClientRect();
              const thumb = r.left + t / 2 + ((r.width - t) * s.value) / s.max;
              const c = document.querySelector("#what-if .here").getBoundingClientRect();
              return Math.abs(thumb - c.left - c.width / 2); }"""
        )
        assert apart < 1.5
    page.keyboard.press("Home")
    assert "At 0 the search would be worth 114.325" in visitor.text("#what-if .reading")
    page.click("#use")
    visitor.solved()
    assert visitor.text("#value").replace(",", "") == "114.325"
    assert page.evaluate("__state.doc.boxes[0].cost[0][0]") == 0
    page.click("#undo")
    visitor.solved()
    assert visitor.text("#live") == "Undone: setting the cost of A to 0."
    page.locator("#what-if-which").select_option("chance-0-1")
    visitor.until("document.querySelector('#what-if .graph').ariaLabel.includes('against chance')")


def test_a_report_is_written_from_the_page(visit, explore, tmp_path):
    visitor = visit(explore())
    page = visitor.page
    page.click("#example")
    visitor.solved()
    with page.expect_download(timeout=120_000) as download:
        page.click("#report")
    path = download.value.path().rename(tmp_path / "report.html")
    assert "Start with <bdi>A</bdi>: " in path.read_text("utf-8")
    report = visit(f"file://{path}")
    report.until("window.__state")


def test_the_door_opens_the_page(visit, explore):
    from weitzman.show.explore import Server
    from weitzman.show.explore.workbench import Workbench

    with Server(Workbench()) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        with server.door() as door:
            visitor = visit(door)
            visitor.page.wait_for_url(server.address)
            visitor.until("window.__state")
            assert visitor.page.url == server.address
        visitor.page.close()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("width", [390, 1280])
def test_numbers_on_the_axes_of_curves_are_whole(visit, explore, tmp_path, width):
    """The last number of an axis, 400,000, read 400,00."""
    path = tmp_path / "well.json"
    weitzman.save(
        weitzman.line([[0.5, 0.5]], rewards=[0, 400_000], cost=12_500, names=["well"]), path
    )
    visitor = visit(explore(path), viewport={"width": width, "height": 800})
    visitor.solved()
    visitor.until("document.querySelector('#what-if .here')")
    outside = visitor.page.evaluate(
        """() => { const g = document.querySelector("#what-if .graph");
          const { left, right } = g.getBoundingClientRect();
          const cut = (r) => r.left < left || r.right > right;
          return [...g.querySelectorAll("text")].filter((t) => cut(t.getBoundingClientRect()))
            .map((t) => t.textContent); }"""
    )
    assert outside == []


@pytest.mark.parametrize("width", [390, 1280])
def test_what_is_asked_of_a_box_is_read_whole(visit, explore, many, width):
    """The words above the chances went on beyond the edge of a phone."""
    visitor = visit(explore(many), viewport={"width": width, "height": 800})
    visitor.solved()
    visitor.page.click(".row >> nth=1")
    words = "document.querySelector('.law caption span')"
    visitor.until(words)
    right = visitor.page.evaluate(f"{words}.getBoundingClientRect().right")
    field = visitor.page.evaluate(
        "document.querySelector('.law').parentNode.getBoundingClientRect().right"
    )
    assert right <= field + 1


# -- the report ----------------------------------------------------------------------------------


def read(visit: Any, forest: weitzman.Forest, folder: Path, **options: Any) -> Visitor:
    weitzman.write_report(forest, folder / "report.html")
    visitor = visit(f"file://{folder}/report.html", **options)
    visitor.until("window.__state")
    return visitor


def test_numbers_are_whole_on_a_phone(visit, tmp_path):
    visitor = read(visit, portfolio(8), tmp_path, viewport={"width": 390, "height": 800})
    cut = visitor.page.evaluate(
        """() => [...document.querySelectorAll(".folds tbody :is(td, th)")]
          .filter((x) => x.offsetParent && (x.getBoundingClientRect().right > innerWidth + 1
            || x.getBoundingClientRect().left < -1)).map((x) => x.textContent)"""
    )
    assert cut == []
    title = visitor.page.evaluate(
        "getComputedStyle(document.querySelector('#table td.number'), '::before').content"
    )
    assert title == '"Cost"'


def test_after_stopping_nothing_is_said_of_going_on(visit, tmp_path):
    visitor = read(visit, portfolio(8), tmp_path)
    page = visitor.page
    assert "If you continue" in visitor.text(".standing")
    page.click("text=Play a future")
    assert visitor.text(".advice").startswith("Stop and take")
    assert "If you continue" not in visitor.text(".standing")


def test_one_page_is_one_page(visit, tmp_path):
    visitor = read(visit, portfolio(200), tmp_path)
    page = visitor.page
    page.evaluate("window.print = () => { window.printed = document.body.className; }")
    page.click("#print")
    assert page.evaluate("window.printed") == "one-page"
    page.evaluate("document.body.classList.add('one-page')")
    pages = page.pdf(format="A4", margin=dict.fromkeys(("top", "bottom", "left", "right"), "12mm"))
    assert pages.count(b"/Type /Page\n") + pages.count(b"/Type /Page ") == 1


def test_every_slider_stands_below_its_dot_and_is_moved_by_keys(visit, tmp_path):
    """The present spend lies between the even steps of a curve: the thumb stood beside its dot."""
    visitor = read(visit, portfolio(12), tmp_path)
    page = visitor.page
    sliders = page.locator(".along")
    assert sliders.count() == 3  # cost, budget, risk
    for slider in sliders.all():
        slider.focus()
        seen = [slider.input_value()]
        for key in ("", "ArrowLeft", "ArrowLeft", "ArrowRight", "End", "Home", "ArrowRight"):
            if key:
                page.keyboard.press(key)
                assert slider.input_value() != seen[-1]
                seen.append(slider.input_value())
            apart = slider.evaluate(
                """(s) => { const r = s.getBoundingClientRect(), t = 18;
                  const thumb = r.left + t / 2 + ((r.width - t) * s.value) / s.max;
                  const c = s.parentNode.querySelector(".here").getBoundingClientRect();
                  return Math.abs(thumb - c.left - c.width / 2); }"""
            )
            assert apart < 1.5
        assert seen[1] == seen[3] != seen[2]


def test_a_state_that_is_a_number_reads_the_same_everywhere(visit, tmp_path):
    """Words said $60,000, and the drawing and the table beside them 60000."""
    boxes = weitzman.Builder()
    boxes.add("well", cost=100, outcomes={60000: 0.5, 0: 0.5})
    boxes.add(
        "rig", parent="well", cost=9000, outcomes={60000: {90000: 1}, 0: {0: 0.5, 90000: 0.5}}
    )
    visitor = read(visit, boxes.build().changed(unit="$"), tmp_path)
    text = visitor.page.evaluate(
        """[...document.querySelectorAll("body > :not(script)")].map((e) => e.textContent).join()"""
    )
    assert "$60,000 (50%)" in text
    assert "after $60,000" in text
    assert "60000" not in text
