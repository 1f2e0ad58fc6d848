"""Reports: what they say, that they need nothing else, and how their command ends."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time

import numpy as np
import pytest
from plain_forests import paper_example as paper

import weitzman
from weitzman import learn
from weitzman._common.numbers import percent
from weitzman.cli import main
from weitzman.show.report import render
from weitzman.show.report.decision_tree import write_workbook
from weitzman.show.report.findings import content

HOSTILE = "<script>alert('x')</script>"


def text_of(html: str) -> str:
    """The words of a page, without markup, style and script."""
    bare = re.sub(r"<(style|script)\b.*?</\1>", "", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", bare))


@pytest.fixture(scope="module")
def page() -> str:
    return render(content(paper()), "boxes.json")


# -- what it says ----------------------------------------------------------------------------------


def test_the_decision_comes_first(page):
    words = text_of(page)
    law = weitzman.policy.payoff_law(weitzman.solve(paper()))
    assert law.how == "exact"
    first = words.index(
        f"Start with A: 94.3 better than doing nothing, {percent(law.worse)} chance of ending "
        "below it."
    )
    assert first < words.index("What would change this: a cost of A above 86.7 (now 20)")
    assert first < words.index("Try it")
    above = words[: words.index("Try it")]
    assert "index" not in above.replace("index.html", "")
    for said in (
        "Expected value94.3doing nothing: 0",
        "Expected cost26.22.45 of 3 boxes opened on average",
        f"Chance of a loss{percent(law.worse)}nine in ten end between",
        "Once you hold a reward of 914 or more, no further box is worth opening.",
        "What is taken in the end: C (67.5%), B (27.5%), A (5%).",
    ):
        assert said in words
    assert '<span title="94.325" class="amount">94.3</span>' in page  # the digits on hover


def test_the_chance_of_a_loss_is_exact_and_the_same_everywhere(page):
    """It was 73.1% in the report, 72.9% in the simulation and 72.7% in the picture."""
    law = weitzman.policy.payoff_law(weitzman.solve(paper()))
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    best = data["profiles"][0]
    assert (best["x"], best["p"]) == (law.values.tolist(), np.cumsum(law.chances).tolist())
    below = [p for x, p in zip(best["x"], best["p"], strict=True) if x < 0]
    assert below[-1] == pytest.approx(law.worse, abs=1e-12)
    everything = next(row for row in data["profiles"] if row["name"] == "everything")
    assert everything["p"][-1] == pytest.approx(1)


def test_the_first_screen_says_what_is_taken_where_many_boxes_are_rare():
    """The list was empty: "What is taken in the end: , another box (63.2%)"."""
    chest = weitzman.line([[0.9996, 0.0004]], rewards=[0, 10], cost=0.001)
    many = weitzman.side_by_side(*[chest] * 450)
    words = text_of(render(content(many)))
    assert "What is taken in the end: one of many boxes, each of them seldom (" in words
    assert "end: ," not in words


def test_the_plan_is_that_of_explain(page):
    words = text_of(page)
    for line in weitzman.explain(weitzman.solve(paper())).splitlines():
        assert line.strip() in words


def test_break_even_costs_are_those_of_the_library(page):
    row = re.search(r"<tr><th[^>]*><bdi>A</bdi></th>(<td.*?)</tr>", page.split('id="whatif"')[1])
    cells = re.findall(r">([^<]+)</td>", row[1])
    assert cells == ["20", "97.9", "86.7", "−1"]


def test_the_value_against_a_cost_is_solved_anew():
    c = content(paper())
    for w in c.what_if:
        for factor, value in list(zip(w.factor, w.value, strict=True))[::8]:
            cost = float(c.forest.costs[int(c.forest.cost[w.box])][0, 0]) * factor
            again = weitzman.solve(c.forest.changed(cost={w.box: cost})).value
            assert value == pytest.approx(again, abs=1e-9)
        assert w.value == sorted(w.value, reverse=True)  # dearer is never better


def test_beginning_with_another_box(page):
    """C first, then the best: both of its states, by hand from the indices 707 > 50 and 10."""
    after_c = [
        0.9 * c + 0.1 * max(900, 0.5 * 920 + 0.5 * 900 - 3) - 25 for c in (50, 10)
    ]  # after A shows 1, B of index 15 is opened only if C showed 10
    after_c[1] += 0.9 * (0.5 * (21 - 10) - 3)
    lost = 94.325 - sum(after_c) / 2
    assert f"Starting with the second best box, C, instead would earn {lost:.6g} less" in (
        text_of(page)
    )


def test_strategies_are_compared(page):
    words = text_of(page)
    assert "fixed order, best stopping93.80.5exact" in words.replace(" exact", "exact")


def test_bars_begin_at_the_outside_option():
    """Opening all copies loses a hundred times what the search earns; its bar is broken."""
    chest = weitzman.line([[0.9, 0.1]], rewards=[0, 10], cost=0.5, count=10_000, names=["chest"])
    found = content(chest)
    html = render(found)
    assert "Bars start at 0, the outside option." in text_of(html)
    part = html.split('id="compare"')[1].split("</table>")[0]
    values = [s.value for s in found.comparison.strategies]
    rows = part.split("<tr>")[-len(values) :]
    for row, value in zip(rows, values, strict=True):
        start = float(re.search(r'x="([\d.-]+)" width="0.4"', row)[1]) + 0.2
        x, wide = map(float, re.search(r'<rect x="([\d.]+)" width="([\d.]+)"', row).groups())
        assert (x == pytest.approx(start, abs=0.02)) if value >= 0 else (x < start)
        assert ('class="gap"' in row) == (value < -5.0001)  # beyond minus the gain of the best
        assert wide > 0 or value == 0


def test_only_simulated_strategies_have_error_bars(page):
    found = content(paper())
    part = page.split('id="compare"')[1].split("</table>")[0]
    rows = part.split("<tr>")[-len(found.comparison.strategies) :]
    for row, strategy in zip(rows, found.comparison.strategies, strict=True):
        assert ('class="interval"' in row) == (strategy.error > 0)


def test_minimizing():
    forest = weitzman.Forest.from_arrays(
        parent=[-1, -1], cost=[1, 1], rewards=[[2, 9], [4, 5]], law=[[0.5, 0.5]] * 2, outside=20,
        minimize=True, names=["x", "y"],
    )  # fmt: skip
    words = text_of(render(content(forest)))
    solution = weitzman.solve(forest)
    assert f"Start with {solution.first_box}: " in words
    assert "cheaper than doing nothing, never above it." in words
    assert f"Expected loss and costs{solution.value:.3g}doing nothing: 20" in words
    assert "the least loss is no more than the index of every box" in words


def test_nothing_to_open():
    chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=6, names=["chest"])
    words = text_of(render(content(chest)))
    assert "Do nothing. Nothing is worth its cost." in words
    assert "Start with" not in words
    assert "begin with" not in words.lower()


def test_an_approximate_solution_says_so():
    solution = weitzman.solve(forest_of_lines(5000), tolerance=1e-2)
    assert solution.gap > 0
    assert f"its error is at most {solution.gap:.2g}" in text_of(render(content(solution)))


def test_a_search_under_way(tmp_path):
    path = tmp_path / "run.db"
    search = weitzman.Search(weitzman.solve(paper()), journal=path)
    search.tell("A", 1)
    before = path.read_bytes()
    assert main(["report", str(path), "-o", str(tmp_path / "r.html")]) == 0
    assert path.read_bytes() == before  # it is only read
    words = text_of((tmp_path / "r.html").read_text("utf-8"))
    assert "Continue." in words
    assert "Open C (cost 5): its index 40 is above the best so far (1 from A)" in words
    assert "So far 1 box was opened and 20 spent." in words
    assert "Stopping now gives a payoff of −19, continuing 6.25 on average" in words
    search.tell("C", 50)
    weitzman.write_report(search, tmp_path / "r.html")
    words = text_of((tmp_path / "r.html").read_text("utf-8"))
    assert "Stop here.Stop and take 50 from C" in words
    assert words.count("As of the start of the search") == 7


def test_a_box_that_is_handed_out_may_be_the_one_to_open(tmp_path):
    """As after weitzman search was left at a question."""
    search = weitzman.Search(weitzman.solve(paper()), journal=tmp_path / "run.db")
    search.tell(search.ask(), 1)
    assert search.ask() == "C"
    search.close()
    assert main(["report", str(tmp_path / "run.db"), "-o", str(tmp_path / "r.html")]) == 0
    words = text_of((tmp_path / "r.html").read_text("utf-8"))
    assert "Continue.Open C (cost 5)" in words
    assert "Handed out and not answered yet: C." in words


def test_true_rewards_and_costs_of_a_search_count(tmp_path):
    search = weitzman.Search(weitzman.solve(paper()), rewards="nearest")
    search.tell("A", reward=870, cost=25)
    words = text_of(render(content(search)))
    assert "is above the best so far (870 from A)" in words
    assert "1 box was opened and 25 spent. Stopping now gives a payoff of 845" in words


def test_boxes_that_only_tell():
    signs = weitzman.Builder()
    signs.add("sign", cost=0, outcomes={"a": 0.5, "b": 0.5}, rewards={"a": None, "b": None})
    signs.add("\ud800", cost=0.5, outcomes={0: 0.5, 3: 0.5})
    page = render(content(signs.build()))
    assert ">none</td>" in page
    assert b"\xef" not in page.encode("utf-8", "xmlcharrefreplace")


def test_a_search_that_has_not_begun_reads_like_its_problem(tmp_path):
    search = weitzman.Search(weitzman.solve(paper()))
    weitzman.write_report(search, tmp_path / "a.html", title="x")
    weitzman.write_report(paper(), tmp_path / "b.html", title="x")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_fitted_model(tmp_path):
    """Its lines are the problem, and draws from its log say how sure the value is."""
    model = learn.fit(learn.sample().of_task("letter"), price=100)
    weitzman.write_report(model, tmp_path / "r.html", runs=7)
    words = text_of((tmp_path / "r.html").read_text("utf-8"))
    value = weitzman.solve(model.lines(7)).value
    assert f"Start with run to step {model.rungs[0]}: " in words
    assert f"Expected value{value:.3g}" in words
    low, high = np.quantile(learn.bootstrap(model, 20).value_at(7), [0.05, 0.95])
    assert f"give a value between {low:.4g} and {high:.4g}." in words


# -- one file, and safe ----------------------------------------------------------------------------


def test_it_needs_nothing_else(page):
    outside = re.sub(r"http://www\.w3\.org/2000/svg", "", page)
    assert not re.search(r"https?:|//[a-z]|@import|url\(", re.sub(r"(?m)^\s*//.*$", "", outside))
    assert page.count("<script") == 2
    assert len(page.encode()) < 130_000


def test_its_policy_allows_its_own_script_and_style_only(page):
    rules = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    for tag, rule in (('script type="module"', "script-src"), ("style", "style-src")):
        inner = re.search(rf"<{tag}>(.*?)</{tag.split()[0]}>", page, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert f"{rule} &#x27;sha256-{digest}&#x27;;" in rules
    assert rules.startswith("default-src &#x27;none&#x27;;")
    assert "unsafe" not in rules


def test_names_are_text():
    boxes = weitzman.Builder()
    boxes.add(HOSTILE, cost=1, outcomes={"</td>": 0.5, '"&': 0.5}, rewards={"</td>": 3, '"&': 0})
    boxes.add("‮rtl", parent=HOSTILE, cost=0.1, outcomes={1: 0.5, 9: 0.5})
    html = render(content(boxes.build()), HOSTILE)
    assert HOSTILE not in html
    assert "<bdi>&lt;script&gt;" in html
    assert "</td></td>" not in html
    data = json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1])
    assert data["problem"]["names"][0] == HOSTILE


def test_equal_problems_give_equal_files(page):
    assert render(content(paper()), "boxes.json") == page


def forest_of_lines(n: int, k: int = 3) -> weitzman.Forest:
    rng = np.random.default_rng(n)
    parent = [-1 if i % 4 == 0 else i - 1 for i in range(n)]
    first = rng.dirichlet(np.ones(k), 64)
    step = rng.dirichlet(np.ones(k), (64, k))
    law = [first[i % 64] if p < 0 else step[i % 64] for i, p in enumerate(parent)]
    return weitzman.Forest.from_arrays(
        parent=parent, cost=rng.uniform(0.2, 2, n), rewards=rng.uniform(0, 20, (n, k)), law=law,
        names=[f"candidate {i}" for i in range(n)],
    )  # fmt: skip


def test_a_few_hundred_boxes_take_less_than_a_megabyte(tmp_path):
    weitzman.write_report(forest_of_lines(500, k=6), tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size < 600_000


def test_a_hundred_thousand_boxes(tmp_path):
    forest = forest_of_lines(100_000)
    start = time.monotonic()
    weitzman.write_report(forest, tmp_path / "r.html", limit=100)
    assert time.monotonic() - start < 60
    words = text_of((tmp_path / "r.html").read_text("utf-8"))
    assert (tmp_path / "r.html").stat().st_size < 400_000
    assert re.search(r"99,\d\d\d of 100,000 boxes are folded away", words)
    assert "Which numbers matter: this would take too long with 100,000 boxes." in words


def test_copies_are_numbers_and_not_chances():
    chest = weitzman.line([[0.9, 0.1]], rewards=[0, 10], cost=0.5, count=1000, names=["chest"])
    html = render(content(chest))
    assert "chest</bdi><small> ×1,000</small>" in html
    assert ">10</td>" in html.replace("9.99999", "10")


# -- the command -----------------------------------------------------------------------------------


def test_the_command(tmp_path, capsys):
    weitzman.save(paper(), tmp_path / "boxes.json")
    target = tmp_path / "r.html"
    assert main(["report", str(tmp_path / "boxes.json"), "-o", str(target)]) == 0
    assert re.fullmatch(r".*r\.html: \d+ kB\n", capsys.readouterr().out)
    assert "<title>boxes.json</title>" in target.read_text("utf-8")
    command = ["report", str(tmp_path / "boxes.json"), "-o", str(target), "--title", "Ours"]
    assert main(command) == 0
    assert "<title>Ours</title>" in target.read_text("utf-8")


def test_what_the_command_rejects(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "other.db").write_bytes(b"SQLite format 3\0" + bytes(200))
    weitzman.save(paper(), tmp_path / "boxes.json")
    out, nowhere = str(tmp_path / "r.html"), str(tmp_path / "no" / "r.html")
    cases = [
        ([str(tmp_path / "notes.txt"), "-o", out], 1, "must end in .json, .json.gz or .wz"),
        ([str(tmp_path / "none.json"), "-o", out], 3, "cannot be read: No such file"),
        ([str(tmp_path / "other.db"), "-o", out], 1, "not a journal of this program"),
        ([str(tmp_path / "boxes.json")], 2, "Missing option '-o' / '--output'"),
        ([str(tmp_path / "boxes.json"), "-o", nowhere], 3, "cannot be written"),
        ([str(tmp_path / "boxes.json"), "-o", out, "--runs", "0"], 2, "0 is not in the range x>=1"),
    ]  # fmt: skip
    for arguments, code, message in cases:
        assert main(["report", *arguments]) == code
        assert message in capsys.readouterr().err
    assert not (tmp_path / "r.html").exists()


def test_what_the_function_rejects(tmp_path):
    with pytest.raises(
        weitzman.errors.InvalidArgument, match="a search or a fitted model, but got a str"
    ):
        weitzman.write_report("boxes.json", tmp_path / "r.html")
    with pytest.raises(weitzman.errors.InvalidArgument, match="nothing is known about runs yet"):
        weitzman.write_report(learn.from_nothing(price=1), tmp_path / "r.html")
    with pytest.raises(weitzman.errors.InvalidArgument, match="`limit` must be"):
        weitzman.write_report(paper(), tmp_path / "r.html", limit=0)


def test_a_workbook_shows_amounts_as_the_report_does(tmp_path):
    """Whole numbers were shown with a bare point ("$20,000."), and the value without its unit."""
    openpyxl = pytest.importorskip("openpyxl")
    b = weitzman.Builder().add("a", cost=20_000, outcomes={0: 0.5, 400_000: 0.5})
    b.add("b", cost=0.4, outcomes={0: 2 / 3, 1: 1 / 3})
    forest = b.build().changed(unit="$")
    write_workbook(forest, str(tmp_path / "r.xlsx"))
    weitzman.save(forest, tmp_path / "f.xlsx")
    book = openpyxl.load_workbook(tmp_path / "r.xlsx")
    fact = {row[0].value: row[1].number_format for row in book["decision"].rows}
    assert fact["value"] == fact["spent on average"] == '"$"#,##0'
    box = {row[0].value: row for row in book["boxes"].rows}
    assert [x.number_format for x in box["a"][2:]] == ["0.0%", "0.0%", '"$"#,##0']
    costs = {r[0].value: r[3].number_format for r in book["indices"].rows}
    assert (costs["a"], costs["b"]) == ('"$"#,##0', '"$"#,##0.00')
    book = openpyxl.load_workbook(tmp_path / "f.xlsx")
    cells = [cell for sheet in book for row in sheet.rows for cell in row]
    assert not [
        cell.coordinate
        for cell in cells
        if "#." in cell.number_format or ".#" in cell.number_format
    ]
    chance = next(cell for cell in cells if cell.value == 2 / 3)
    assert chance.number_format == "#,##0.000000%"
    again = weitzman.load(tmp_path / "f.xlsx")
    assert weitzman.solve(again).value == weitzman.solve(forest).value


def test_a_box_that_cannot_be_opened_after_a_state_has_no_cost_there():
    """The report showed a cost of 0 and an index of minus infinity."""
    b = weitzman.Builder().add(
        "test", cost=1, outcomes={"good": 0.5, "bad": 0.5}, rewards={"good": None, "bad": None}
    )
    b.add("box", parent="test", cost=4, outcomes={"good": {10: 0.9, 0: 0.1}})
    html = render(content(b.build()))
    table = text_of(html.split('id="table"')[1].split("</table>")[0])
    assert "∞" not in html.split('type="application/json"')[0]
    assert "none after bad" in table
    assert "0 to 4" not in table


def test_a_loss_is_called_by_its_name():
    """While minimizing, a chance of a loss was said, and the reward of a box."""
    f = weitzman.Forest.from_arrays(
        parent=[-1, -1], cost=[1.0, 2.0], rewards=[[5.0, 20.0], [4.0, 30.0]],
        law=[[0.5, 0.5], [0.5, 0.5]], outside=18.0, minimize=True,
    )  # fmt: skip
    top = text_of(render(content(f)).split("<nav")[0])
    assert "Chance of costing more" in top
    assert "reward" not in top


def test_a_tie_and_an_outside_option_are_named():
    """With 9 in hand, ending at 5 was a "loss"; a tie turned at "a cost above 10 (now 10)"."""
    f = weitzman.Forest.from_arrays(
        parent=[-1, -1], cost=[10.0, 5.0], rewards=[[0.0, 50.0], [0.0, 40.0]],
        law=[[0.5, 0.5], [0.5, 0.5]], outside=9.0, names=["Ann", "Bob"],
    )  # fmt: skip
    top = text_of(render(content(f)).split("<nav")[0])
    assert "What would change this: any higher cost of Ann or any lower reward of Ann." in top
    assert "Worse than doing nothing" in top
    assert "Chance of a loss" not in top
