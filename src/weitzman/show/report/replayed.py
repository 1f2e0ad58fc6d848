"""A report on what ``weitzman backtest --json`` prints; this module imports no back-tests.

There is a row for each task (an empty name stands for all tasks together), price and method, with
means and the ends of their 95 % intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import InvalidFile
from ..page import Child, Markup, h, join, name, style, whole
from .sections import cells, footer, heads, number, table

_BOUND = "hindsight"  # impossible in practice; shown for comparison
_MEASURES = ("payoff", "score", "spend", "regret", "behind")
_ENDS = ("", "_low", "_high")
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PrintedBacktest:
    """The rows of a back-test, checked. ``by`` is the key of the price: price or full_run_cost."""

    rows: tuple[Row, ...]
    by: str
    cells: int
    orders: int

    def blocks(self, task: str = "") -> Iterator[tuple[float, list[Row]]]:
        """Each price with its methods, least regret first."""
        rows = [row for row in self.rows if row["task"] == task]
        for price in dict.fromkeys(row[self.by] for row in rows):
            block = [row for row in rows if row[self.by] == price]
            yield price, sorted(block, key=lambda row: float(row["regret"]))

    @property
    def first(self) -> str:
        """The method that the others are compared with."""
        return str(self.rows[0]["method"])

    @property
    def tasks(self) -> list[str]:
        """The tasks that have rows of their own."""
        return list(dict.fromkeys(row["task"] for row in self.rows if row["task"]))


def is_backtest(document: Any) -> bool:
    """Whether a JSON document looks like that of a back-test."""
    return isinstance(document, dict) and {"summary", "cells", "orders"} <= document.keys()


def read(document: Any) -> PrintedBacktest:
    """The back-test that a document holds, or an error that names the first fault."""
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
    return PrintedBacktest(tuple(rows), by, document["cells"], document["orders"])


def render(replayed: PrintedBacktest, title: str | None) -> str:
    """The whole page."""
    sure = (
        f"Every method searched the same runs, in {replayed.orders} random orders of "
        f"{replayed.cells} cells (a task with one log). Payoff and regret are in points of score; "
        f"the intervals are 95% bootstrap intervals of the means over cells. “Behind” is a paired "
        f"difference: if its interval lies above 0, the method is worse, and not by chance."
    )
    first, parts = replayed.first, list[Child]()
    for price, block in replayed.blocks():
        parts.append(h("section", h("h2", _price(replayed, price)), _table(block, first)))
    for task in replayed.tasks:
        of_task = [[h("p", _price(replayed, price), class_="hint"), _table(block, first)]
                   for price, block in replayed.blocks(task)]  # fmt: skip
        parts.append(h("section", h("h2", name(task)), of_task))
    parts.append(h("section", h("h2", "How sure this is"), h("p", sure), id="sure"))
    kicker = h("p", title or "A back-test on past runs", class_="kicker")
    body = h("main", kicker, h("header", *_decision(replayed), id="decision"), parts, footer())
    css = style(__package__, "report.css")
    return whole(title or "A back-test", join([body]), style=css, script="", data=None)


def _decision(r: PrintedBacktest) -> Iterator[Child]:
    """Which method to use: the first one, unless another is better beyond chance."""
    best = [next(row for row in block if row["method"] != _BOUND) for _, block in r.blocks()]
    winners = {r.first if _by_chance(r, row) else row["method"] for row in best}
    if len(winners) == 1:
        yield h("h1", "Use ", name(winners.pop()), ".")
    else:
        yield h("h1", "It depends on the price.")
    for row in best:
        lead = [" Its lead over ", name(r.first), " may be due to chance."]
        chance = lead if _by_chance(r, row) else None
        yield h(
            "p", f"{_price(r, row[r.by])}, ", h("b", name(row["method"])), " earns the most: ",
            f"{_short(row, 'payoff')} ({_between(row, 'payoff')}) points on average, "
            f"{_short(row, 'regret')} ({_between(row, 'regret')}) less than the best run stopped "
            f"at its best moment.", chance, class_="lead",
        )  # fmt: skip


def _by_chance(r: PrintedBacktest, row: Row) -> bool:
    """Whether a method is ahead of the first one, but not beyond the interval."""
    return bool(row["method"] != r.first and row["behind_high"] >= 0)


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


def _price(r: PrintedBacktest, price: float) -> str:
    if r.by == "full_run_cost":
        return f"If a full run costs {number(price)} points"
    return f"If a point is worth {number(price)} units of cost"


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
