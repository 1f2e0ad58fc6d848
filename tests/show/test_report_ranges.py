"""What a sheet says besides the problem, in reports: ranges, words, a title; and slides."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import weitzman
from weitzman.cli import main
from weitzman.files import read_table
from weitzman.questions import uncertainty
from weitzman.show.explore.workbench import READ, Workbench
from weitzman.show.page import Markup, forms, worded
from weitzman.show.report import render
from weitzman.show.report.findings import content

SHEET = """\
Exploration 2026;;;;;;;;
a box is called: study;;;;;;;;
to open is called: plan;;;;;;;;
Stage;After;If;Outcome;Chance;NPV ($k);Cost low;Cost;Cost high
Seismic;;;promising;40%;;50;80;120
Seismic;;;poor;60%;;;;
Well;Seismic;promising;oil;50%;2000;400;500;700
Well;Seismic;promising;dry;50%;0;;;
Well;Seismic;poor;oil;5%;2000;;500;
Well;Seismic;poor;dry;95%;0;;;
Box canyon;;;gas to open;30%;1500;200;300;450
Box canyon;;;dry;70%;0;;;
"""


@pytest.fixture
def sheet(tmp_path):
    path = tmp_path / "stages.csv"
    path.write_text(SHEET)
    return path


def words_of(page: str) -> str:
    bare = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", bare))


def test_a_report_uses_the_title_the_words_and_the_ranges_of_a_sheet(sheet, tmp_path, capsys):
    """The title was the name of the file, boxes were boxes, and ranges were not looked at."""
    out = tmp_path / "out.html"
    assert main(["report", str(sheet), "-o", str(out)]) == 0
    page = out.read_text("utf-8")
    words = words_of(page)
    assert "<title>Exploration 2026</title>" in page
    assert "of 3 studies planned on average" in words
    assert "Plan Seismic" in words
    assert "Box canyon" in words  # names stay as they are
    assert "Study canyon" not in words
    assert "gas to open" in words
    assert "Uncertain numbers" in words
    reading = read_table(sheet)
    drawn = uncertainty(reading.forest, reading.ranges, draws=500)
    for name, share in drawn.shares().items():
        assert f"{name} {100 * share:.3g}%" in words.replace("  ", " ")
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    row = next(
        r for r in data["answers"]["swings"]["rows"] if r.get("title", "").startswith("cost of W")
    )
    assert row["title"] == "cost of Well, $400k to $700k"
    for end, cost in (("low", 400), ("high", 700)):
        changed = reading.forest.changed(cost={"Well": cost})
        assert row[end] == pytest.approx(weitzman.solve(changed).value)
    numbers = [(r["box"], r["number"]) for r in data["answers"]["swings"]["rows"]]
    assert len(set(numbers)) == len(numbers)  # a number with a range is not also moved by a tenth


def test_the_map_of_two_numbers_is_that_of_two_way(sheet):
    reading = read_table(sheet)
    c = content(reading.forest, ranges=reading.ranges)
    pair = c.uncertain[1]
    assert {pair.first.title, pair.second.title} == {"cost of Well", "cost of Box canyon"}
    page = render(c)
    colors = re.findall(r'<rect x="(\d+)" y="(\d+)" width="1.02"[^>]* fill="(#\w+)"', page)
    n = len(pair.x)
    assert len(colors) == n * n
    shade = {}
    for x, y, color in colors:
        first = str(pair.choice[int(x), n - 1 - int(y)])
        assert shade.setdefault(first, color) == color
    assert len(set(shade.values())) == len(shade) > 1
    assert content(reading.forest).uncertain is None


def test_words_by_option_and_their_forms(tmp_path, capsys):
    found = forms("study", "run")
    assert [found[x] for x in ("Boxes", "opened", "opening", "opens", "a box")] == [
        "Studies", "run", "running", "runs", "a study",
    ]  # fmt: skip
    assert forms("experiment", "make")["A box"] == "An experiment"
    assert (forms("box", "carry")["opened"], forms("box", "drill")["opened"]) == (
        "carried",
        "drilled",
    )
    assert forms("box", "open") == {}
    page = Markup('<p title="open">open a box, <bdi>open box</bdi>: boxes</p>')
    said = worded(page, found, ["open box"])
    assert said == '<p title="open">run a study, <bdi>open box</bdi>: studies</p>'
    boxes = tmp_path / "boxes.json"
    weitzman.save(weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, names=["A"]), boxes)
    out = tmp_path / "out.html"
    assert main(["report", str(boxes), "-o", str(out), "--words", "site,visit"]) == 0
    assert "1 of 1 sites visited on average" in words_of(out.read_text("utf-8"))
    assert main(["report", str(boxes), "-o", str(out), "--words", "site"]) != 0
    assert "two words, such as stage,run" in capsys.readouterr().err


def test_the_explorer_hands_out_the_words_and_reads_what_the_command_reads():
    start = Workbench(words=("stage", "run")).start()
    assert start["words"]["Boxes"] == "Stages"
    assert Workbench().start()["words"] == {}
    assert {".xlsm", ".ods"} <= set(READ)


@pytest.mark.parametrize("name", ["Well", "a\x1b[31mb\u202e<c>&"])
def test_slides_can_be_edited_and_say_what_the_report_says(tmp_path, name):
    pptx = pytest.importorskip("pptx")
    b = weitzman.Builder(outside=0)
    b.add(name, cost=20, outcomes={0: 0.7, 100: 0.3})
    b.add("other", cost=5, outcomes={0: 0.5, 12: 0.5})
    forest = b.build().changed(unit="$")
    weitzman.write_report(forest, tmp_path / "deck.pptx", title="Wells", words=("well", "drill"))
    deck = pptx.Presentation(str(tmp_path / "deck.pptx"))
    decision, tree, tornado, profile = deck.slides
    c = content(forest)
    texts = [s.text_frame.text for s in decision.shapes if s.has_text_frame]
    assert decision.shapes.title.text_frame.text.endswith("chance of ending below it.")
    assert {"Expected value", "Expected cost", "Chance of a loss"} <= set(texts)
    assert any("wells drilled on average" in text for text in texts)
    drawn = [s.text_frame.text for s in tree.shapes if s.shape_type == 1]
    assert drawn[0].startswith("Drill ")
    bars = next(s for s in tornado.shapes if s.has_chart).chart
    low, high = (list(series.values) for series in bars.plots[0].series)
    rows = c.answers["swings"]["rows"][:10][::-1]
    assert (low, high) == ([r["low"] for r in rows], [r["high"] for r in rows])
    steps = next(s for s in profile.shapes if s.has_chart).chart.plots[0].series[0]
    x, p = c.profiles[0].x, c.profiles[0].p
    stairs = np.stack([[0, *p[:-1]], p], 1).ravel().tolist()
    assert list(steps.values)[1 : len(stairs) + 1] == pytest.approx(stairs)
    assert list(steps.iter_values())[-1] == pytest.approx(1)
    lines = next(s for s in profile.shapes if s.has_chart).chart.plots[0].series
    assert len({len(list(line.values)) for line in lines}) == 1  # LibreOffice drops shorter ones
    assert len(x) == len(p)


def test_the_value_of_knowing_is_shown_with_its_unit():
    """A notebook showed Knowing(without=1157225.0000000002, ...)."""
    b = weitzman.Builder(unit="$").add("chest", cost=1000, outcomes={40000: 0.1, 0: 0.9})
    known = weitzman.questions.value_of_knowing(b.build(), "chest")
    assert str(known) == "worth $900: $3,900 instead of $3,000"
    assert known._repr_html_().startswith("<p>worth $900: $3,900 instead of $3,000</p>")
