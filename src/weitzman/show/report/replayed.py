"""A report on what ``weitzman backtest --json`` prints; this module imports no back-tests.

There is a row for each task (an empty name stands for all tasks together), price and method, with
means and the ends of their 95 % intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...errors import InvalidFile
from ..page import Child, Markup, h, join, name, style, whole
from .sections import cells, footer, heads, number, table

_BOUND = "hindsight"  # impossible in practice; shown for comparison
_MEASURES = ("payoff", "score", "spend", "regret", "behind")
_ENDS = ("", "_low", "_high")
Row = Mapping[str, Any]


def is_backtest(document: Any) -> bool:
    """Whether a JSON document looks like that of a back-test."""
    return isinstance(document, dict) and {"summary", "cells", "orders"} <= document.keys()


def _checked(document: Any) -> tuple[list[Row], str]:
    """The rows of a back-test and the key of the price, or an error that names the first fault."""
    if not is_backtest(document):
        raise InvalidFile("the summary of a back-test must have summary, cells and orders.")
    rows = document["summary"]
    if not isinstance(rows, list) or not rows:
        raise InvalidFile("summary must be a list of at least one row.")
    by = "full_run_cost" if "full_run_cost" in rows[0] else "price"
    numbers = [by, *(measure + end for measure in _MEASURES for end in _ENDS)]
    for i, row in enumerate(rows):
        for key in ("task", "method"):
            if not isinstance(row, dict) or not isinstance(row.get(key), str):
                raise InvalidFile(f"summary[{i}]: {key} must be text.")
        for key in numbers:
            if isinstance(row.get(key), bool) or not isinstance(row.get(key), int | float):
                raise InvalidFile(f"summary[{i}]: {key} must be a number.")
    for key in ("cells", "orders"):
        if not isinstance(document[key], int):
            raise InvalidFile(f"{key} must be a whole number.")
    return rows, by


def _blocks(rows: list[Row], by: str, task: str) -> Iterator[tuple[str, list[Row]]]:
    """Each price in words, with its methods, least regret first."""
    rows = [row for row in rows if row["task"] == task]
    for price in dict.fromkeys(row[by] for row in rows):
        said = f"If a point is worth {number(price)} units of cost"
        if by == "full_run_cost":
            said = f"If a full run costs {number(price)} points"
        block = [row for row in rows if row[by] == price]
        yield said, sorted(block, key=lambda row: float(row["regret"]))


def render(document: Any, title: str | None) -> str:
    """The whole page."""
    rows, by = _checked(document)
    sure = (
        f"Every method searched the same runs, in {document['orders']} random orders of "
        f"{document['cells']} cells (a task with one log). Payoff and regret are in points of "
        f"score; the intervals are 95% bootstrap intervals of the means over cells. “Behind” is a "
        f"paired difference: if its interval lies above 0, the method is worse, and not by chance."
    )
    first, blocks = str(rows[0]["method"]), list(_blocks(rows, by, ""))
    parts = [h("section", h("h2", price), _table(block, first)) for price, block in blocks]
    for task in dict.fromkeys(row["task"] for row in rows if row["task"]):
        of_task = [[h("p", price, class_="hint"), _table(block, first)]
                   for price, block in _blocks(rows, by, task)]  # fmt: skip
        parts.append(h("section", h("h2", name(task)), of_task))
    parts.append(h("section", h("h2", "How sure this is"), h("p", sure), id="sure"))
    kicker = h("p", title or "A back-test on past runs", class_="kicker")
    body = h("main", kicker, h("header", *_decision(blocks, first), id="decision"), parts, footer())
    css = style(__package__, "report.css")
    return whole(title or "A back-test", join([body]), style=css, script="", data=None)


def _decision(blocks: list[tuple[str, list[Row]]], first: str) -> Iterator[Child]:
    """Which method to use: the first one, unless another is better beyond chance."""
    best = [next(row for row in block if row["method"] != _BOUND) for _, block in blocks]
    ahead = [row["method"] != first and row["behind_high"] >= 0 for row in best]  # by chance
    winners = {first if lucky else row["method"] for row, lucky in zip(best, ahead, strict=True)}
    said = ["Use ", name(winners.pop()), "."] if len(winners) == 1 else "It depends on the price."
    yield h("h1", said)
    for (price, _), row, lucky in zip(blocks, best, ahead, strict=True):
        chance = [" Its lead over ", name(first), " may be due to chance."] if lucky else None
        yield h(
            "p", f"{price}, ", h("b", name(row["method"])), " earns the most: ",
            f"{_short(row, 'payoff')} ({_between(row, 'payoff')}) points on average, "
            f"{_short(row, 'regret')} ({_between(row, 'regret')}) less than the best run stopped "
            f"at its best moment.", chance, class_="lead",
        )  # fmt: skip


def _table(block: list[Row], first: str) -> Markup:
    top = max((float(row["regret_high"]) for row in block), default=0.0) or 1.0
    rows = [
        cells(
            name(row["method"]), *(number(float(row[m])) for m in _MEASURES[:3]),
            _cell(row, "regret"), h("td", _range(row, top), class_="bar"),
            "" if row["method"] == first else _cell(row, "behind"),
        )
        for row in block
    ]  # fmt: skip
    head = heads("Method", "Payoff|", "Score|", "Spend|", "Regret (95%)|", "")
    head.append(h("th", "Behind ", name(first), scope="col", class_="number"))
    return table("Methods, least regret first", head, rows, class_="methods")


def _cell(row: Row, measure: str) -> Child:
    """A mean above its interval, in two lines: six columns must fit on a sheet of paper."""
    return [_short(row, measure), h("small", _between(row, measure))]


def _between(row: Row, measure: str) -> str:
    return f"{_short(row, measure + '_low')} to {_short(row, measure + '_high')}"


def _short(row: Row, key: str) -> str:
    return number(float(f"{row[key]:.3g}"))


def _range(row: Row, top: float) -> Markup:
    """The regret as a bar, its interval as a thin line over it."""
    mean, low, high = (max(0.0, 100 * float(row["regret" + end]) / top) for end in _ENDS)
    return h(
        "svg", h("rect", x="0", y="2", width=f"{mean:.2f}", height="6", opacity="0.55"),
        h("rect", x=f"{low:.2f}", y="4.5", width=f"{high - low:.2f}", height="1"),
        viewBox="0 0 100 10", preserveAspectRatio="none", aria_hidden="true",
    )  # fmt: skip
