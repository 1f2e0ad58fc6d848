"""The policy as a tree of decisions: what to open, what may be seen, and what to do then."""

from __future__ import annotations

import csv
import io
from collections import deque
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._common.arrays import FloatArray
from ...engine.indices import Policy
from ...engine.solution import mean_cost
from ...forest.columns import label
from ...forest.model import Forest
from ...policy.frontier import Box
from ...policy.search import Search

LIMIT = 40
"""Decisions that are written out unless told otherwise."""

OPEN, STOP, MORE = "open", "stop", "and so on"

_STATES = 8  # states of a box that are listed one by one; the others are combined

Step = tuple[Box, int]


@dataclass(frozen=True, slots=True)
class Situated:
    """One situation, and what to do in it.

    Attributes
    ----------
    up : int
        The situation before, as a place in the list; -1 for the start.
    level : int
        Boxes opened before.
    seen : str
        What the box opened last showed; "" at the start.
    chance : float
        How likely that finding is once the box is opened.
    reached : float
        How likely the situation is to come up at all.
    action : "open", "stop" or "and so on"
        "and so on" marks a place where the tree is cut off.
    box : str
        The box to open; for "stop", the box with the best reward ("" for the outside option).
    cost, index : float
        Of the box to open; NaN if there is none.
    best : float
        The best reward so far; with several prizes, their sum if the search stopped here.
    taken : tuple of str
        Boxes whose rewards are taken for good now, before the action, where there are several
        prizes.
    """

    up: int
    level: int
    seen: str
    chance: float
    reached: float
    action: str
    box: str
    cost: float
    index: float
    best: float
    taken: tuple[str, ...] = ()


def decisions(policy: Policy, limit: int = LIMIT) -> list[Situated]:
    """The likeliest situations of a policy. Each situation comes after the one that it follows.

    Parameters
    ----------
    policy : Policy
    limit : int
        The most boxes opened in the whole tree. Later situations are cut off and marked.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, names=["chest"])
    >>> [(d.seen, d.action, d.best) for d in decisions(weitzman.solve(chest).policy())]
    [('', 'open', 0.0), ('0', 'stop', 0.0), ('10', 'stop', 10.0)]
    """
    f, found = policy.forest, []
    waiting: deque[tuple[int, str, float, float, tuple[Step, ...]]] = deque([(-1, "", 1, 1, ())])
    opened = 0
    while waiting:
        up, seen, chance, reached, steps = waiting.popleft()
        search, taken = _search(policy, steps)
        top = next(iter(search.available(1)), None)
        box = search.ask()
        action = STOP if box is None else OPEN if opened < limit else MORE
        name = str(box or search.best_box or "")
        cost = np.nan if box is None else float(mean_cost(f, box.number)[_row(f, box, steps)])
        index = np.nan if box is None or top is None else top[1]
        if box is None and search.taken:
            name = ", ".join(won for won, _ in search.taken)
        found.append(
            Situated(
                up, len(steps), seen, chance, reached, action, name, cost, index, search.best, taken
            )
        )  # fmt: skip
        if box is None or action == MORE:
            continue
        opened += 1
        here = len(found) - 1
        law = _law(f, box, steps)
        for y in _likeliest(law):
            seen = shown(f, box.number, y)
            more = (*steps, (box, y))
            waiting.append((here, seen, float(law[y]), reached * float(law[y]), more))
    return _deep_first(found)


def _deep_first(found: list[Situated]) -> list[Situated]:
    """The decisions in reading order: what follows a situation comes right after it."""
    below: list[list[int]] = [[] for _ in found]
    for i, d in enumerate(found):
        if d.up >= 0:
            below[d.up].append(i)
    order, waiting = [], [0]
    while waiting:
        order.append(waiting.pop())
        waiting += reversed(below[order[-1]])
    place = {i: at for at, i in enumerate(order)} | {-1: -1}
    return [replace(found[i], up=place[found[i].up]) for i in order]


def columns(found: list[Situated]) -> dict[str, list[Any]]:
    """The decisions as a table: one row for each situation, with the way to it in words."""
    ways = [_way(found, i) for i in range(len(found))]
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
    text = io.StringIO()
    by = columns(found)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(by)
    writer.writerows(zip(*by.values(), strict=True))
    return text.getvalue()


def _way(found: list[Situated], i: int) -> str:
    parts: list[str] = []
    while found[i].up >= 0:
        up = found[found[i].up]
        parts.append(f"{up.box} = {found[i].seen}")
        i = found[i].up
    return ", ".join(reversed(parts)) or "start"


def shown(f: Forest, v: int, y: int) -> str:
    """A state by its name; by its reward if the name is that number, or if there is no name.

    Examples
    --------
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
    search, f = Search(policy), policy.forest
    taken = 0
    for box, y in steps:
        names = f.state_names[int(f.reward[box.number])]
        search.tell(box, y if names is None else names[y])
        taken = len(search.taken)
        while (move := search.ask()) is not None and move.move == "take":
            search.take(move)
        if move is not None:
            search.release(move)
    return search, tuple(str(box) for box, _ in search.taken[taken:])


def _law(f: Forest, box: Box, steps: tuple[Step, ...]) -> FloatArray:
    """The chances of the states of the box, given what its parent showed."""
    law = f.laws[int(f.law[box.number])]
    return np.asarray(law[_row(f, box, steps)], np.float64)


def _row(f: Forest, box: Box, steps: tuple[Step, ...]) -> int:
    """The state of the parent (of the copy that this box is behind); 0 for a root."""
    v, up = box.number, int(f.parent[box.number])
    if f.endless[v] and box.copy[-1] > 1:
        before = (*box.copy[:-1], box.copy[-1] - 1)
        return next(y for b, y in steps if b.number == v and b.copy == before)
    above = (y for b, y in steps if b.number == up and b.copy == box.copy[: len(b.copy)])
    return next(above, 0)


def _likeliest(law: FloatArray) -> list[int]:
    """The possible states, or the likeliest of many, in their own order."""
    some = np.flatnonzero(law)
    if len(some) > _STATES:
        some = np.sort(some[np.argsort(-law[some], kind="stable")[:_STATES]])
    return [int(y) for y in some]
