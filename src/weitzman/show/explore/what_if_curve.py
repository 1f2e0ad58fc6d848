"""The value of the search if one number of the document were different, by exact solves."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from ..._common.arrays import FloatArray
from ...engine.solver import solve
from ...engine.what_if import break_even
from ...errors import InvalidFile, WeitzmanError
from ...files.json_format import forest
from ...forest.model import Forest
from ...questions.caution import tolerances

_STEPS = 32  # points of the curve in a small problem
_LARGE, _LARGE_STEPS = 600, 8  # larger problems get fewer points
_WIDER = 20.0  # the curve goes up and down by this factor of the risk tolerance
_ROOM = 1.25  # the curve ends at this many times the highest cost that pays

PRICED = ("cost", "duration", "factor")
TERMS = ("rate", "risk_tolerance")
WHAT = (*PRICED, "chance", "reward", *TERMS)


def curve(document: Any, box: Any, what: Any, row: Any, state: Any) -> dict[str, Any]:
    """The value against a cost, a chance or a reward, a duration, or a term of the whole search.

    Parameters
    ----------
    document : dict
        As the page sends it.
    box : int
        The box.
    what : one of ``WHAT``
    row, state : int
        The state of the parent (0 for a root), and the state of the box itself.

    Returns
    -------
    dict
        ``x``, the numbers tried, evenly spaced; ``value``, what the search is worth then;
        ``first``, the name of the box to open first or None; ``now``, the place of the
        current number in ``x``.
    """
    f = forest(document)
    _check(f, box, what, row, state)
    now = _number(document, box, what, row, state)
    grid, at = _grid(f, (box, what, row, state), now)
    x = [float(f"{number:.12g}") for number in grid.tolist()]  # 0.35, not 0.35000000000000003
    x[at] = now
    value, first = [], []
    for i, number in enumerate(x):
        changed = document if i == at else _changed(document, (box, what, row, state), number)
        solution = solve(forest(changed))
        value.append(solution.value)
        first.append(solution.first_box)
    return {"x": x, "value": value, "first": first, "now": at}


def _check(f: Forest, box: Any, what: Any, row: Any, state: Any) -> None:
    whole = all(type(i) is int and i >= 0 for i in (box, row, state))
    if not whole or what not in WHAT or box >= len(f):
        raise InvalidFile(
            "what to change must be a cost, a chance, a reward, a duration or a factor of a box, "
            "the rate, or the risk tolerance."
        )
    rows, states = f.laws[int(f.law[box])].shape
    if row >= rows or state >= states:
        raise InvalidFile(f"box {f.name(box)!r} has no such state.")


def _place(document: Any, box: int, what: str, row: int, state: int) -> tuple[Any, Any]:
    """The list or object that holds a number of the document, and its key there."""
    if what in TERMS:
        return document, what
    entry = document["boxes"][box]
    if what == "reward":
        return entry["rewards"], state
    if what == "chance":
        return (entry["law"][row] if entry.get("parent") is not None else entry["law"]), state
    cost = entry[what]
    if not isinstance(cost, list):
        return entry, what
    if entry.get("parent") is None:
        return cost, min(state, len(cost) - 1)
    inner = cost[min(row, len(cost) - 1)]
    if isinstance(inner, list):
        return inner, min(state, len(inner) - 1)
    return cost, min(row, len(cost) - 1)


def _number(document: Any, *place: Any) -> float:
    try:
        holder, key = _place(document, *place)
        number = holder[key]
    except (KeyError, TypeError):
        raise InvalidFile(f"there is no {place[1].replace('_', ' ')} to change.") from None
    if number is None:
        raise InvalidFile("this state has no reward to change.")
    return float(number)


def _grid(f: Forest, place: tuple[Any, ...], now: float) -> tuple[FloatArray, int]:
    """Numbers evenly spaced, the current number among them."""
    box, what, row, _ = place
    steps = _STEPS if len(f) <= _LARGE else _LARGE_STEPS
    low, high = 0.0, 1.0
    if what == "risk_tolerance":
        return _tolerances(f, now, steps), steps // 2
    if what == "factor":
        x = np.linspace(now / (steps + 1), 1.0, steps + 1, dtype=np.float64)
        at = int(np.argmin(np.abs(x - now)))
        x[at] = now
        return x, at
    if what == "cost":
        high = max(_ROOM * _worth(f, box, row), 2 * now) or 1.0
    elif what in ("duration", "rate"):
        high = 2 * now or (1.0 if what == "duration" else 0.2)
    elif what == "reward":
        rewards = f.rewards.data[np.isfinite(f.rewards.data)]
        span = float(np.ptp(rewards)) or abs(now) or 1.0
        low, high = now - span / 2, now + span / 2
    elif f.laws[int(f.law[box])].shape[1] == 1:
        raise InvalidFile("a box with one state has no chance to change.")
    step = (high - low) / steps
    before = round((now - low) / step)
    if before == 0 and now > low:
        before = 1
    if what == "chance":  # ends are 0 and 1: the current number replaces the nearest one
        x = np.linspace(low, high, steps + 1, dtype=np.float64)
        at = min(max(before, 1 if now > 0 else 0), steps - 1 if now < 1 else steps)
        x[at] = now
        return x, at
    step = (now - low) / before if before else step
    return np.asarray(low + step * np.arange(steps + 1), np.float64), before


def _tolerances(f: Forest, now: float, steps: int) -> FloatArray:
    """Risk tolerances around the current one, evenly spaced on a logarithmic scale."""
    low = max(now / _WIDER, float(tolerances(f, 2)[-1]))
    down = np.geomspace(min(low, now), now, steps // 2 + 1)
    return np.asarray(np.concatenate([down, np.geomspace(now, now * _WIDER, steps // 2 + 1)[1:]]))


def _worth(f: Forest, box: int, row: int) -> float:
    """The cost above which opening never pays; 0 if there is none."""
    up = int(f.parent[box])
    names = None if up < 0 else f.state_names[int(f.reward[up])]
    state = None if up < 0 else row if names is None else names[row]
    try:
        worth = break_even(solve(f), box, state).opened_below
    except WeitzmanError:
        return 0.0
    return worth if np.isfinite(worth) else 0.0


def _changed(document: Any, place: tuple[Any, ...], number: float) -> Any:
    """The document with another number; the other chances of a row share what is left."""
    if place[1] in TERMS:
        return {**document, place[1]: number}
    boxes = list(document["boxes"])
    boxes[place[0]] = deepcopy(boxes[place[0]])
    changed = {**document, "boxes": boxes}
    holder, key = _place(changed, *place)
    if place[1] == "chance":
        chances = np.array(holder, np.float64)
        others = np.delete(np.arange(len(chances)), key)
        rest = chances[others].sum()
        share = chances[others] / rest if rest > 0 else np.full(len(others), 1 / len(others))
        chances[others] = (1 - number) * share
        holder[:] = chances.tolist()
    holder[key] = number
    return changed
