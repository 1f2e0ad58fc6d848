"""Reports on back-tests: which method to use, as far as chance allows to tell."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import weitzman
from weitzman.cli import main

MEASURES = ("payoff", "score", "spend", "regret")


def row(
    method: str, regret: float, behind: tuple[float, float, float], price: float
) -> dict[str, Any]:
    out: dict[str, Any] = {"task": "", "price": price, "method": method}
    for measure in MEASURES:
        x = regret if measure == "regret" else 1 - regret
        out |= {measure: x, f"{measure}_low": x - 0.01, f"{measure}_high": x + 0.01}
    return out | dict(zip(("behind", "behind_low", "behind_high"), behind, strict=True))


def backtest(*rivals: tuple[float, tuple[float, float, float]]) -> dict[str, Any]:
    """One price a rival; ours has a regret of 0.1 everywhere."""
    rows = []
    for i, (regret, behind) in enumerate(rivals):
        rows += [
            row("ours", 0.1, (0, 0, 0), 10.0**i),
            row("<b>rival", regret, behind, 10.0**i),
            row("hindsight", 0.0, (-0.1, -0.1, -0.1), 10.0**i),
        ]
    return {"cells": 7, "orders": 10, "minimize": False, "prices": {}, "summary": rows}


def report(document: dict[str, Any], tmp_path: Any) -> str:
    (tmp_path / "backtest.json").write_text(json.dumps(document))
    command = ["report", str(tmp_path / "backtest.json"), "-o", str(tmp_path / "r.html")]
    assert main(command) == 0
    return (tmp_path / "r.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("rivals", "said"),
    [
        ([(0.2, (0.1, 0.05, 0.15))], "Use ours."),
        ([(0.05, (-0.05, -0.09, -0.01))], "Use <b>rival."),
        ([(0.09, (-0.01, -0.03, 0.01))], "Use ours."),
        ([(0.2, (0.1, 0.05, 0.15)), (0.05, (-0.05, -0.09, -0.01))], "It depends on the price."),
    ],
)
def test_which_method_to_use(rivals, said, tmp_path):
    page = report(backtest(*rivals), tmp_path)
    heading = re.search(r"<h1>(.*?)</h1>", page)[1]
    assert re.sub(r"</?bdi>", "", heading).replace("&lt;", "<").replace("&gt;", ">") == said
    assert "<b>rival" not in page
    assert ("may be due to chance" in page) == (rivals[0][0] == 0.09)


def test_the_least_regret_comes_first(tmp_path):
    page = report(backtest((0.05, (-0.05, -0.09, -0.01))), tmp_path)
    methods = re.findall(r'<th scope="row"><bdi>(.*?)</bdi>', page)
    assert methods == ["hindsight", "&lt;b&gt;rival", "ours"]
    assert "10 random orders of 7 cells" in page
    assert "If a point is worth 1 units of cost" in page


def test_from_python(tmp_path):
    class Backtest:
        def document(self) -> dict[str, object]:
            return backtest((0.2, (0.1, 0.05, 0.15)))

    weitzman.write_report(Backtest(), tmp_path / "r.html", title="Past runs")
    assert "<title>Past runs</title>" in (tmp_path / "r.html").read_text("utf-8")


def test_other_documents_are_refused(tmp_path):
    class Table:
        def document(self) -> dict[str, object]:
            return {}

    with pytest.raises(weitzman.errors.InvalidFile, match="must have summary, cells and orders"):
        weitzman.write_report(Table(), tmp_path / "r.html")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"summary": []}, "summary must be a list of at least one row"),
        ({"summary": [{"task": "", "method": 3}]}, r"summary\[0\]: method must be text"),
        ({"summary": [{"task": "", "method": "x", "price": "1"}]}, "price must be a number"),
        ({"cells": "7"}, "cells must be a whole number"),
    ],
)
def test_documents_that_are_damaged(change, message, tmp_path, capsys):
    document = backtest((0.2, (0.1, 0.05, 0.15))) | change
    (tmp_path / "backtest.json").write_text(json.dumps(document))
    command = ["report", str(tmp_path / "backtest.json"), "-o", str(tmp_path / "r.html")]
    assert main(command) == 1
    assert re.search(message, capsys.readouterr().err)
