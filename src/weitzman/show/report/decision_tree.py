"""The policy as a tree of decisions, written as a table, a workbook or a flow chart.

A decision says what to open; its branches, what may be seen and what to do then.
"""

from __future__ import annotations

import csv
import io
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from ..._common.disk import replacing
from ..._common.numbers import Amounts, percent
from ..._common.text import printable, shortened
from ...engine.evaluation import Evaluation, evaluate
from ...engine.indices import Policy
from ...engine.plan import Progress
from ...engine.solution import Solution, mean_cost
from ...engine.solver import solve
from ...files.documents import explained
from ...files.written_tables import Block, money_formats, write_blocks
from ...forest.columns import label
from ...forest.model import Forest
from ...policy.frontier import Box
from ...policy.search import Search
from ..page import Child, Markup, h
from .findings import alone

LIMIT = 40
"""Decisions that are written out unless told otherwise."""

OPEN, STOP, MORE = "open", "stop", "and so on"

_STATES = 8  # states of a box that are listed one by one; the others are combined

Step = tuple[Box, int]


@dataclass(frozen=True, slots=True)
class Situated:
    """One situation, and what to do in it."""

    up: int  # the situation before, as a place in the list; -1 for the start
    level: int  # boxes opened before
    seen: str  # what the box opened last showed; "" at the start
    chance: float  # of that finding, once the box is opened
    reached: float  # how likely the situation is to come up at all
    action: str  # OPEN, STOP, or MORE where the tree is cut off
    box: str  # to open; for STOP, the box with the best reward ("" for the outside option)
    cost: float  # of the box to open; NaN if there is none, and so is its index
    index: float
    best: float  # the best reward so far; with several prizes, their sum if the search stopped here
    taken: tuple[str, ...] = ()  # boxes whose rewards are taken for good now, of several prizes


def decisions(policy: Policy, limit: int = LIMIT, levels: int | None = None) -> list[Situated]:
    """The likeliest situations of a policy. Each situation comes after the one that it follows.

    At most ``limit`` boxes are opened in the whole tree, and ``levels`` one after the other.

    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, names=["chest"])
    >>> [(d.seen, d.action, d.best) for d in decisions(weitzman.solve(chest).policy())]
    [('', 'open', 0.0), ('0', 'stop', 0.0), ('10', 'stop', 10.0)]
    """
    f, found = policy.forest, list[Situated]()
    waiting: deque[tuple[int, str, float, float, tuple[Step, ...]]] = deque([(-1, "", 1, 1, ())])
    opened = 0
    while waiting:
        up, seen, chance, reached, steps = waiting.popleft()
        search, taken = _search(policy, steps)
        top = next(iter(search.available(1)), None)
        box = search.ask()
        cut = opened >= limit or (levels is not None and len(steps) >= levels)
        action = STOP if box is None else MORE if cut else OPEN
        name = str(box or search.best_box or "")
        row = 0 if box is None else _row(f, box, steps)
        cost = np.nan if box is None else float(mean_cost(f, box.number)[row])
        index = np.nan if box is None or top is None else top[1]
        if box is None and search.taken:
            name = ", ".join(won for won, _ in search.taken)
        numbers, here = (cost, index, search.best), len(found)
        found.append(Situated(up, len(steps), seen, chance, reached, action, name, *numbers, taken))
        if box is None or action == MORE:
            continue
        opened += 1
        law = np.asarray(f.laws[int(f.law[box.number])][row], np.float64)
        some = np.flatnonzero(law)
        if len(some) > _STATES:  # the likeliest of many, in their own order
            some = np.sort(some[np.argsort(-law[some], kind="stable")[:_STATES]])
        for y in some.tolist():
            seen, p = shown(f, box.number, y), float(law[y])
            waiting.append((here, seen, p, reached * p, (*steps, (box, y))))
    below, order, next_ones = _below(found), list[int](), [0]
    while next_ones:  # reading order: what follows a situation comes right after it
        order.append(next_ones.pop())
        next_ones += below[order[-1]][::-1]
    place = {i: at for at, i in enumerate(order)} | {-1: -1}
    return [replace(found[i], up=place[found[i].up]) for i in order]


def _below(found: list[Situated]) -> list[list[int]]:
    """The situations that follow each situation."""
    below: list[list[int]] = [[] for _ in found]
    for i, d in enumerate(found):
        if d.up >= 0:
            below[d.up].append(i)
    return below


def columns(found: list[Situated]) -> dict[str, list[Any]]:
    """The decisions as a table: one row for each situation, with the way to it in words."""
    ways: list[str] = []
    for d in found:
        step = f"{found[d.up].box} = {d.seen}"
        ways.append("start" if d.up < 0 else step if d.up == 0 else f"{ways[d.up]}, {step}")
    takes = {"take": [", ".join(d.taken) for d in found]} if any(d.taken for d in found) else {}
    return {
        "after": ways,
        "probability": [float(f"{d.reached:.12g}") for d in found],
        **takes,
        "action": [d.action for d in found],
        "box": [d.box for d in found],
        "cost": [None if np.isnan(d.cost) else d.cost for d in found],
        "index": [None if np.isnan(d.index) else d.index for d in found],
        "best so far": [d.best if np.isfinite(d.best) else None for d in found],
    }


def table(found: list[Situated]) -> str:
    """The columns as comma separated values."""
    text, by = io.StringIO(), columns(found)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(by)
    writer.writerows(zip(*by.values(), strict=True))
    return text.getvalue()


def shown(f: Forest, v: int, y: int) -> str:
    """A state by its name; by its reward if the name is that number, or if there is no name.

    >>> import weitzman
    >>> well = weitzman.Builder()
    >>> well.add("well", cost=1, outcomes={60000: 0.5, "dry": 0.5}, rewards={"dry": 0}) and None
    >>> [shown(well.build(), 0, y) for y in (0, 1)]
    ['dry', '60,000']
    """
    rewards, names = f.rewards[int(f.reward[v])][0], f.state_names[int(f.reward[v])]
    alone = np.isfinite(rewards[y]) and np.count_nonzero(rewards == rewards[y]) == 1
    own = alone if names is None else names[y] == label(rewards[y])
    return f.amounts.typeset(float(rewards[y])) if own else f.states(v)[y]


def _search(policy: Policy, steps: tuple[Step, ...]) -> tuple[Search, tuple[str, ...]]:
    """The search after some steps, with prizes taken on the way; and those taken after the last."""
    search, f, taken = Search(policy), policy.forest, 0
    for box, y in steps:
        names = f.state_names[int(f.reward[box.number])]
        search.tell(box, y if names is None else names[y])
        taken = len(search.taken)
        while (move := search.ask()) is not None and move.move == "take":
            search.take(move)
        if move is not None:
            search.release(move)
    return search, tuple(str(box) for box, _ in search.taken[taken:])


def _row(f: Forest, box: Box, steps: tuple[Step, ...]) -> int:
    """The state of the parent (of the copy that this box is behind); 0 for a root."""
    v, up = box.number, int(f.parent[box.number])
    if f.endless[v] and box.copy[-1] > 1:
        before = (*box.copy[:-1], box.copy[-1] - 1)
        return next(y for b, y in steps if b.number == v and b.copy == before)
    above = (y for b, y in steps if b.number == up and b.copy == box.copy[: len(b.copy)])
    return next(above, 0)


class _Size(NamedTuple):
    """Lengths in a flow chart, and how many letters there is room for."""

    wide: int
    high: int
    across: int  # between columns, for what was seen
    down: int
    letters: int  # of the first line in a box
    small: int  # of the second line
    seen: int


_FILE, PAGE = _Size(190, 40, 118, 14, 23, 31, 16), _Size(142, 38, 118, 9, 16, 20, 11)
_MARGIN = 4
_LEAVES = 9  # of a tree that fits a screen

Say = Callable[[float], str]
"""How an amount is written."""

_PLAIN = Amounts().typeset


class Places(NamedTuple):
    """Where the boxes of a flow chart stand, by their upper left corners."""

    x: list[float]
    y: list[float]
    wide: float
    high: float


def fitting(policy: Policy) -> tuple[list[Situated], bool]:
    """The first decisions, as many as fit a screen, and whether more follow."""
    limit = 6
    found = decisions(policy, limit, levels=2)
    while limit > 1 and len(found) - len({d.up for d in found} - {-1}) > _LEAVES:
        limit -= 1
        found = decisions(policy, limit, levels=2)
    return found, any(d.action == MORE for d in found)


def places(found: list[Situated], size: _Size = _FILE) -> Places:
    """Columns by level. Ends are stacked; other boxes are centered on what follows them."""
    below, y = _below(found), [0.0] * len(found)
    rows = sum(not after for after in below)
    last = rows
    for i in reversed(range(len(found))):  # what follows a situation comes after it
        if below[i]:
            y[i] = (y[below[i][0]] + y[below[i][-1]]) / 2
        else:
            y[i] = last = last - 1
    level = [d.level for d in found]
    return Places(
        [_MARGIN + d * (size.wide + size.across) for d in level],
        [_MARGIN + row * (size.high + size.down) for row in y],
        2 * _MARGIN + max(level) * (size.wide + size.across) + size.wide,
        2 * _MARGIN + rows * (size.high + size.down) - size.down,
    )


def lines_of(d: Situated, say: Say = _PLAIN, verb: str = "Open") -> tuple[str, str]:
    """The text in a box: what to do, and the numbers."""
    if d.taken:
        then = f"stop, {say(d.best)} in all" if d.action == STOP else f"{verb.lower()} {d.box}"
        return f"Take {', '.join(d.taken)}", f"then {then}"
    if d.action == STOP:
        return f"Take {say(d.best)}", f"from {d.box}" if d.box else "the outside option"
    so_on = " …" if d.action == MORE else ""
    return f"{verb} {d.box}", f"cost {say(d.cost)}{so_on}"


def chart(
    found: list[Situated], say: Say = _PLAIN, *, standalone: bool = True, verb: str = "Open"
) -> Markup:
    """The flow chart as SVG. Its text takes the color of the text around it."""
    size = _FILE if standalone else PAGE
    p, line = places(found, size), {"fill": "none", "stroke": "currentColor"}
    parts: list[Child] = [h("title", "What to do, step by step")]
    for i, d in enumerate(found):
        if d.up >= 0:
            x, y = p.x[d.up] + size.wide, p.y[d.up] + size.high / 2
            x1, y1 = p.x[i], p.y[i] + size.high / 2
            bend = f"C{x + 22:g} {y:g} {x + 6:g} {y1:g} {x + 30:g} {y1:g}"
            way = h("path", d=f"M{x:g} {y:g} {bend} L{x1:g} {y1:g}", stroke_opacity="0.45", **line)
            text = f"{shortened(d.seen, size.seen)} ({percent(d.chance)})"
            parts.append(h("g", way, _text(text, x1 - 5, y1 - 5, text_anchor="end", font_size=11)))
    fits = all(len(f"{verb} {d.box}") <= size.letters for d in found if d.action != STOP)
    for i, d in enumerate(found):
        (first, second), stop = lines_of(d, say, verb), d.action == STOP
        # where verbs and names do not fit, names alone
        head = first if stop or d.taken or fits else d.box
        middle: dict[str, Any] = {"x": p.x[i] + size.wide / 2, "text_anchor": "middle"}
        about = printable(f"{first}; {second}; reached with chance {percent(d.reached)}")
        frame = h(
            "rect", x=p.x[i], y=f"{p.y[i]:g}", width=size.wide, height=size.high,
            rx=size.high // 2 if stop else 4, fill="currentColor",
            fill_opacity=0.04 if stop else 0.1, stroke="currentColor", stroke_opacity="0.7",
            stroke_dasharray="4 3" if d.action == MORE else None,
        )  # fmt: skip
        upper = _text(shortened(head, size.letters), y=p.y[i] + 17, font_weight=600, **middle)
        lower = _text(shortened(second, size.small), y=p.y[i] + 32, font_size=11, **middle)
        parts.append(h("g", h("title", about), frame, upper, lower))
    alone = {"xmlns": "http://www.w3.org/2000/svg"} if standalone else {}
    return h(
        "svg", parts, viewBox=f"0 0 {p.wide:g} {p.high:g}", width=f"{p.wide:g}",
        height=f"{p.high:g}", role="img", class_="flow", fill="currentColor",
        font_family="system-ui, sans-serif", font_size="12",
        aria_label=f"Flow chart of {len(found)} situations", **alone,
    )  # fmt: skip


def _text(text: str, x: float, y: float, **how: str | float) -> Markup:
    return h("text", text, x=f"{x:g}", y=f"{y:g}", **how)


_AMOUNTS = {"cost", "index", "best so far", "spent"}  # columns


def write_workbook(source: Forest | Solution, path: str, progress: Progress | None = None) -> None:
    """Write what to do and what to expect: a row for each situation, box and index."""
    solution = source if isinstance(source, Solution) else solve(source, progress=progress)
    f, found = solution.forest, evaluate(solution)
    c, indices = found.columns(), solution.columns()
    parent = [None if p < 0 else f.name(int(p)) for p in f.parent]
    boxes = {"box": c["box"], "parent": parent, "opened": c["opened"],
             "taken in the end": found.wins.tolist(), "spent": c["spend"]}  # fmt: skip
    often = ["0.0%" if alone(f, v) else "0.00" for v in range(len(f))]
    chances = {"opened": often, "taken in the end": often}
    situations = columns(decisions(solution.policy()))
    reached = {"probability": ["0.0%"] * len(situations["probability"])}
    rows = {key: list(indices[key]) for key in ("box", "parent", "state", "cost", "index")}
    blocks = [
        _facts(solution, found),
        Block("decision table", (), situations, reached | _money(f, situations)),
        Block("boxes", (), boxes, chances | _money(f, boxes)),
        Block("indices", (), rows, _money(f, rows)),
    ]
    with explained(path, "written"), replacing(path) as file:
        write_blocks(blocks, file)


def _money(f: Forest, table: dict[str, list[Any]]) -> dict[str, list[str]]:
    """The number formats of all columns that hold amounts."""
    return {key: money_formats(table[key], f.unit, f.amounts.bare) for key in _AMOUNTS & set(table)}


def _facts(solution: Solution, found: Evaluation) -> Block:
    """What to do first and what to expect, one fact in each row."""
    f = solution.forest
    amounts = {"value": solution.value, "reward on average": found.reward,
               "spent on average": found.spend, "risk tolerance": f.risk_tolerance,
               "outside option": f.outside}  # fmt: skip
    time = None if f.durations is None else found.time
    counts = {"boxes opened on average": found.openings, "time to the end on average": time}
    others = {"error of the value at most": solution.gap,
              "prizes": int(f.prizes) if f.prizes > 1 else None,
              "objective": "minimize" if f.minimize else "maximize", "unit": f.unit}  # fmt: skip
    rows: list[tuple[str, Any, str]] = [("open first", solution.first_box or "nothing", "General")]
    money = money_formats([x for x in amounts.values() if x is not None], f.unit, f.amounts.bare)
    ways = (amounts, iter(money)), (counts, repeat("0.00")), (others, repeat("General"))
    for facts, formats in ways:
        rows += [(key, x, next(formats)) for key, x in facts.items() if x is not None]
    what, result, how = (list(column) for column in zip(*rows, strict=True))
    return Block("decision", (), {"what": what, "result": result}, {"result": how})
