"""The tables of a report: boxes, break-even costs, strategies, what was opened."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from ..._common.arrays import FloatArray
from ..._common.numbers import about, percent
from ...engine.solution import mean_cost
from ...policy.simulation import two_sided
from ..page import Child, Markup, h, join, name
from ..page.data import alone
from .decision_tree import shown
from .findings import Content, WhatIf, cost_now
from .phrases import often

_STUB = 3.0  # percent of the width: the piece beyond the break of a bar
_CLOSE = 0.9  # of the gain of the best strategy: strategies that reach it are drawn to scale
_VISIBLE = 0.5  # of the length of a bar: such differences show on a scale that begins at zero
_STATES = 3  # indices listed one by one; with more, only their range


def boxes(c: Content) -> Markup:
    """A row for each box that is shown. The boxes opened most often come first."""
    e, spend = c.evaluation, c.evaluation.columns()["spend"]
    wins, deep = e.wins, bool((c.forest.parent[c.keep] >= 0).any())
    order = sorted(c.keep.tolist(), key=lambda v: (-e.opened[v], v))
    rows = [
        h(
            "tr",
            _text(_title(c, v), c.forest.name(v), head=True),
            _text(*_behind(c, v)) if deep else None,
            _range(c, mean_cost(c.forest, v)),
            _indices(c, v),
            _number(float(e.opened[v]), percent if alone(c.forest, v) else about),
            _number(float(wins[v]), partial(often, c, v)),
            _number(float(spend[v]), c.say),
        )
        for v in order
    ]
    head = [
        _column("Box", "text"), *([_column("Behind", "text")] if deep else []), _column("Cost"),
        _column("Index"), _column("Opened", down=True), _column("Taken in the end"),
        _column("Spent on it"),
    ]  # fmt: skip
    return _table("Boxes, with their indices and how often they are opened", head, rows, id="table")


def break_even_costs(c: Content) -> Markup:
    """How expensive boxes may become before decisions change, for the largest costs."""
    f = c.forest
    slopes = f.risk_tolerance is None  # derivatives of a certainty equivalent are not chances
    opened = c.evaluation.worth.opened_after.totals()
    rows = [
        h(
            "tr",
            _text(_after(c, w), f.name(w.box), head=True),
            _number(cost_now(w, f), c.say),
            _number(w.break_even.opened_below, c.say),
            _turns(c, w),
            _number(-f.sign * float(opened[w.box]), about) if slopes else None,
        )
        for w in c.what_if
    ]
    head = _heads(
        "Box", "Costs now|", "Worth opening up to|", "Its tree begins the search up to|",
        *(["Value, per unit of cost|"] if slopes else []),
    )  # fmt: skip
    return _table("Costs at which decisions change", head, rows)


def strategies(c: Content) -> Markup | None:
    """The optimal policy and what simpler strategies earn."""
    found = c.comparison
    if isinstance(found, str):
        return None
    scale = _scale(c, [s.value for s in found.strategies])
    z = two_sided(0.95)
    rows = [
        h(
            "tr",
            h("th", s.name, scope="row"),
            h("td", estimate(c, s.value, z * s.error), class_="number"),
            h("td", _bar(s.value, scale), class_="bar"),
            h("td", estimate(c, found.lost(s.key), z * s.error), class_="number"),
            h("td", "" if math.isnan(s.openings) else about(s.openings), class_="number"),
            h("td", s.how),
        )
        for s in found.strategies
    ]
    earns = "Loss and costs|" if c.forest.minimize else "Earns|"
    earns = "Certainty equivalent|" if c.forest.risk_tolerance is not None else earns
    head = _heads("Strategy", earns, "", "Worse by|", "Boxes opened|", "Computed")
    return join([_table("Strategies compared", head, rows), h("p", scale.said, class_="hint")])


def history(c: Content) -> Markup:
    """What a search has opened so far."""
    rows = [
        h(
            "tr",
            h("td", str(i + 1), class_="number"),
            h("th", name(str(step.box)), scope="row"),
            h("td", name(step.state)),
            h("td", c.say(step.cost), class_="number"),
            h("td", c.say(step.best), class_="number"),
            h("td", c.say(step.spent), class_="number"),
        )
        for i, step in enumerate(c.told)
    ]
    best = "Least loss so far|" if c.forest.minimize else "Best so far|"
    best = "All prizes, if stopped then|" if c.forest.prizes > 1 else best
    head = _heads("|", "Box", "Showed", "Cost|", best, "Spent|")
    return _table("Opened so far", head, rows)


# -- cells -------------------------------------------------------------------------------------


def _table(caption: str, head: Sequence[Markup], rows: Iterable[Markup], **more: str) -> Markup:
    return h(
        "div",
        h("table", h("caption", caption), h("thead", h("tr", head)), h("tbody", rows), **more),
        class_="wide", tabindex=0, role="region", aria_label=caption,
    )  # fmt: skip


def _heads(*titles: str) -> list[Markup]:
    """Heads of columns; a bar at the end marks a column of numbers."""
    return [
        h("th", x.rstrip("|"), scope="col", class_="number" if x.endswith("|") else None)
        if x.strip("|")
        else h("td")
        for x in titles
    ]


def _column(title: str, kind: str = "number", down: bool = False) -> Markup:
    """The head of a column that can be sorted."""
    sort = "descending" if down else "none"
    return h(
        "th", h("button", title, type="button", data_kind=kind), scope="col", aria_sort=sort,
        class_="number" if kind == "number" else None,
    )  # fmt: skip


def _text(shown: Child, key: str, head: bool = False) -> Markup:
    return h("th" if head else "td", shown, data_key=key, scope="row" if head else None)


def _number(x: float, text: Callable[[float], str]) -> Markup:
    key = x if math.isfinite(x) else math.copysign(1e308, x)
    return h("td", text(x).replace("-", "−"), data_key=repr(float(key)), class_="number")


def _range(c: Content, values: FloatArray) -> Markup:
    low, high = float(values.min()), float(values.max())
    text = c.say(low) if low == high else f"{c.say(low)} to {c.say(high)}"
    return h("td", text, data_key=repr(high), class_="number")


def _indices(c: Content, v: int) -> Markup:
    """The index, or one for each state of the parent."""
    f, index = c.forest, c.solution.indices(v)
    up = int(f.parent[v])
    if up < 0 or len(index) > _STATES or np.ptp(index) == 0:
        finite = index[np.isfinite(index)]
        return (
            _range(c, finite)
            if len(finite)
            else h("td", "none", data_key="-1e308", class_="number")
        )
    parts = [
        h("div", c.say(float(x)), h("small", " after ", name(shown(f, up, y))))
        for y, x in enumerate(index)
    ]
    return h("td", h("div", parts), data_key=repr(float(index.max())), class_="number")


def _title(c: Content, v: int) -> Child:
    count = int(c.forest.count[v])
    copies = h("small", f" ×{count:,}") if count > 1 else None
    on = h("small", " and on without end") if c.forest.endless[v] else None
    return [name(c.forest.name(v)), copies, on]


def _behind(c: Content, v: int) -> tuple[Child, str]:
    up = int(c.forest.parent[v])
    return ("", "") if up < 0 else (name(c.forest.name(up)), c.forest.name(up))


def _after(c: Content, w: WhatIf) -> Child:
    f, up = c.forest, int(c.forest.parent[w.box])
    if up < 0:
        return name(f.name(w.box))
    after = h("small", " after ", name(f.name(up)), " shows ", name(shown(f, up, w.state)))
    return [name(f.name(w.box)), after]


def _turns(c: Content, w: WhatIf) -> Markup:
    first = w.break_even.first_below
    if first is None:
        return h("td", "never", class_="number")
    return h("td", c.say(first) if math.isfinite(first) else "any cost", class_="number")


def estimate(c: Content, x: float, error: float) -> str:
    """A number and its error, without digits that the error makes meaningless."""
    return f"{c.say(x, error)} ± {c.amounts.margin(error)}" if error else c.say(x)


class _Scale(NamedTuple):
    """Where bars begin and end, and what a reader must know about that."""

    start: float
    end: float
    said: str


def _scale(c: Content, values: Sequence[float]) -> _Scale:
    """A scale on which strategies that come close to the best one can be told apart.

    A bar begins at zero only where that shows the differences. Otherwise it begins below the worst
    of the strategies that reach most of the best gain over opening nothing.
    """
    best, outside = c.solution.value, c.forest.outside
    known = [x for x in values if math.isfinite(x)]
    gain = abs(best - outside) if math.isfinite(outside) else abs(best)
    close = [x for x in known if abs(x - best) <= (1 - _CLOSE) * gain]
    spread = max((abs(x - best) for x in close), default=0.0)
    if spread == 0 or spread > _VISIBLE * max(abs(best), *map(abs, close)):
        reach = 2 * max(abs(best), abs(outside) if math.isfinite(outside) else 0.0) or 1.0
        end = max((min(max(x, -reach), reach) for x in known), key=abs, default=1.0) or 1.0
        return _Scale(0.0, end, "Bars begin at 0.")
    if c.forest.minimize:  # losses: the shorter the better
        start, end = best - spread / 2, best + 1.1 * spread
    else:
        start, end = best - 1.3 * spread, max(best, *close)  # by chance, a mean may be above
    said = f"Bars begin at {c.say(start)}, so that small differences show."
    beyond = any(not min(start, end) <= x <= max(start, end) for x in known)
    return _Scale(start, end, said + (" A broken bar lies beyond the scale." if beyond else ""))


def _bar(x: float, scale: _Scale) -> Markup:
    """A bar from the start of the scale to a value; broken if the value lies beyond."""
    start, end, _ = scale
    if not math.isfinite(x) or start == end:
        return Markup("")
    share = 100 * (x - start) / (end - start)
    pieces = [(0.0, share)]
    if share < 0:
        pieces = [(0.0, _STUB / 3), (_STUB / 2, _STUB)]
    elif share > 100 + 1e-6:
        pieces = [(0.0, 99 - _STUB), (100 - _STUB, 100.0)]
    rects = [
        h("rect", x=f"{a:.2f}", width=f"{b - a:.2f}", height="8", y="1") for a, b in pieces
    ]  # fmt: skip
    return h(
        "svg", rects, viewBox="0 0 100 10", preserveAspectRatio="none", aria_hidden="true",
    )  # fmt: skip
