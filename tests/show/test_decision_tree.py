"""The policy as a tree of decisions, and its files: SVG, a table."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import weitzman
from weitzman.show.report.decision_tree import Situated, decisions


def openings_of(found: list[Situated]) -> dict[str, float]:
    """How often boxes are opened, counted from the tree."""
    out: dict[str, float] = {}
    for d in found:
        if d.action == "open":
            out[d.box] = out.get(d.box, 0.0) + d.reached
    return out


def test_decisions_are_those_of_the_policy():
    rng = np.random.default_rng(5)
    for _ in range(20):
        forest = random_trees(rng)
        solution = weitzman.solve(forest)
        found = decisions(solution.policy(), 5000)
        assert not any(d.action == "and so on" for d in found)
        opened = weitzman.evaluate(solution).opened
        counted = openings_of(found)
        assert [counted.get(forest.name(v), 0.0) for v in range(len(forest))] == pytest.approx(
            opened
        )
        paid = sum(d.reached * d.cost for d in found if d.action == "open")
        taken = sum(d.reached * d.best for d in found if d.action == "stop")
        assert taken - paid == pytest.approx(solution.value, abs=1e-9)


def random_trees(
    rng: np.random.Generator, names: tuple[str, ...] = ("a", "b", "c", "d")
) -> weitzman.Forest:
    parent = [-1, 0, 0, -1]
    law = [rng.dirichlet([1, 1]) if p < 0 else rng.dirichlet([1, 1], 2) for p in parent]
    return weitzman.Forest.from_arrays(
        parent=parent, cost=rng.uniform(0.1, 1, 4), rewards=rng.uniform(0, 9, (4, 2)), law=law,
        names=names,
    )  # fmt: skip


def test_a_flow_chart_is_valid_svg_with_a_box_for_each_situation(tmp_path):
    forest = random_trees(np.random.default_rng(1), ("d" * 90, "&", "$x$", "<script>"))
    weitzman.write_report(forest, tmp_path / "flow.svg")
    root = ElementTree.fromstring((tmp_path / "flow.svg").read_text("utf-8"))
    found = decisions(weitzman.solve(forest).policy())
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f".//{space}rect")) == len(found)
    assert len(root.findall(f".//{space}path")) == len(found) - 1
    assert "Open <script>" in [text.text for text in root.iter(f"{space}text")]


def test_numbers_in_a_flow_chart_are_whole(tmp_path):
    """A box showed "index 153,3…"; what does not fit is left out as a whole."""
    boxes = weitzman.Builder()
    boxes.add("a program", cost=24_053, outcomes={0: 0.5, 153_342.25: 0.5})
    boxes.add("b program", cost=1_224_053.75, outcomes={0: 0.5, 99_153_342.25: 0.5})
    weitzman.write_report(boxes.build().changed(unit="$"), tmp_path / "flow.svg")
    text = (tmp_path / "flow.svg").read_text("utf-8")
    assert "cost $24,053<" in text
    assert "cost $1,224,054<" in text
    assert not re.search(r"\d…", text)


def test_a_long_policy_is_cut_and_says_so():
    many = weitzman.line([[0.9, 0.1]], rewards=[0, 10], cost=0.5, count=50, names=["chest"])
    found = decisions(weitzman.solve(many).policy(), 7)
    assert [d.action for d in found].count("open") == 7
    assert [d.action for d in found].count("and so on") == 1
    assert sum(d.reached for d in found if d.action != "open") == pytest.approx(1)


def test_a_decision_table(tmp_path):
    weitzman.write_report(random_trees(np.random.default_rng(1)), tmp_path / "plan.csv")
    lines = (tmp_path / "plan.csv").read_text().splitlines()
    assert lines[0] == "after,probability,action,box,cost,index,best so far"
    assert lines[1].startswith("start,1")


def test_control_characters_in_names_leave_a_flow_chart_readable(tmp_path):
    """The title of a frame held them as they were, which no reader of XML accepts."""
    boxes = weitzman.Builder()
    boxes.add(
        "a\x1b[2J\x00\u202eb",
        cost=1,
        outcomes={"x\x07": 0.5, "y": 0.5},
        rewards={"x\x07": 5, "y": 0},
    )
    weitzman.write_report(boxes.build(), tmp_path / "flow.svg")
    root = ElementTree.fromstring((tmp_path / "flow.svg").read_text("utf-8"))
    assert any("\\x1b[2J\\x00\\u202eb" in (text.text or "") for text in root.iter())


def test_long_names_are_shortened_in_the_middle(tmp_path):
    """Two boxes were both called "Open Vendor due dilige…"."""
    boxes = weitzman.Builder()
    for side in ("East", "West"):
        boxes.add(f"Vendor due diligence package {side}", cost=1, outcomes={0: 0.5, 9: 0.5})
    weitzman.write_report(boxes.build(), tmp_path / "flow.svg")
    text = (tmp_path / "flow.svg").read_text("utf-8")
    assert "East<" in text
    assert "West<" in text
