"""One plain sentence why to open a box, or why to stop."""

from __future__ import annotations

import math

from .frontier import Id
from .walk import Walk
from .words import best_text, cost_text


def why(walk: Walk) -> str:
    """Why to open the box that is next, or why to stop."""
    found = walk.next()
    return why_stop(walk) if found is None else why_open(walk, found[0])


def why_open(walk: Walk, box: Id) -> str:
    """Why a box that is out, or can be opened, is to be opened; or why not."""
    state = walk.state_above(box)
    index, best = walk.frontier.index(box[0], state), walk.sign * walk.best[0]
    above, higher = _words(walk)
    name, shown = walk.box(box), walk.amounts(walk.sign * index)
    if box in walk.told:
        return f"{name} was opened already and showed {walk.told[box].state}."
    if index <= best and box not in walk.out:
        return f"Do not open {name}: its index {shown} is not {above} {_so_far(walk)}."
    if index <= best:
        return (
            f"{name} is handed out, but its index {shown} is not {above} {_so_far(walk)} any "
            f"more: give it back if it is not being opened yet."
        )
    what = f"Open {name} (cost {cost_text(walk.forest, box[0], state, walk.amounts)})"
    top = walk.top()
    rest = ""
    if top is None or top[1] <= index:
        rest = f", and no box that can be opened has a {higher} one"
    return f"{what}: its index {shown} is {above} {_so_far(walk)}{rest}."


def why_stop(walk: Walk) -> str:
    """Why no further box is to be opened."""
    above, higher = _words(walk)
    most = higher[:-1] + "st"
    top = walk.top()
    if walk.out:
        names = [str(walk.box(box)) for box in list(walk.out)[:4]]
        more = f" and {len(walk.out) - 4} more" if len(walk.out) > 4 else ""
        what = f"Wait for {', '.join(names)}{more}"
        over = _so_far(walk)
    else:
        what, over = f"Stop and take {best_text(walk)}", "that"
    if top is None:
        return f"{what}: no other box can be opened now." if walk.out else (
            f"{what}: no box is left to open."
        )  # fmt: skip
    (box, index), other = top, "other " if walk.out else ""
    best = ""
    if math.isfinite(index):
        best = f"; the {most} is {walk.amounts(walk.sign * index)}, of {walk.box(box)}"
    return f"{what}: no {other}box that can be opened has an index {above} {over}{best}."


def _words(walk: Walk) -> tuple[str, str]:
    return ("below", "lower") if walk.forest.minimize else ("above", "higher")


def _so_far(walk: Walk) -> str:
    what = "the least loss so far" if walk.forest.minimize else "the best so far"
    return f"{what} ({best_text(walk)})"
