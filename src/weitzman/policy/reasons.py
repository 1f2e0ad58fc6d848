"""One plain sentence that says why to open a box, or why to stop."""

from __future__ import annotations

import math

from .frontier import Box, Id
from .walk import Opened, Walk
from .words import best_text, cost_text


def why(walk: Walk) -> str:
    """Why to open the box that is next, or why to stop."""
    found = walk.next()
    if found is None and (prize := walk.next_prize()) is not None:
        return why_take(walk, prize)
    return why_stop(walk) if found is None else why_open(walk, found[0])


def why_open(walk: Walk, box: Id) -> str:
    """Why to open, or not to open, a box that is out or can be opened."""
    state = walk.state_above(box)
    index, best = walk.frontier.index(box[0], state), walk.bar
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


def why_take(walk: Walk, box: Id) -> str:
    """Why to take the reward of a box for good."""
    above, _ = _words(walk)
    reward = walk.amounts(walk.told[box].reward or 0.0)
    return (
        f"Take {reward} from {walk.box(box)} for good and close its tree: no box that can be "
        f"opened has an index {above} that."
    )


def why_stop(walk: Walk) -> str:
    """Why to open no further box."""
    if walk.hands is not None and not walk.out:
        places = f"{len(walk.hands.taken)} of {walk.hands.places} prizes taken"
        why = "all places are filled" if walk.hands.full else (
            f"no index and no reward in hand is {_words(walk)[0]} the outside option"
        )  # fmt: skip
        return f"Stop, {places}: {why}."
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


def taken_back(
    walk: Walk, seen: Opened, before: tuple[float, Box | None, float], out: dict[Id, str]
) -> str:
    """What is different now that an answer was taken back; ``before`` and ``out`` as they were."""
    say = walk.amounts
    shown = seen.state if seen.reward is None else say(seen.reward)
    best, _, spent = walk.best
    what = "The least loss so far" if walk.forest.minimize else "The best so far"
    if best == before[0]:
        better = f"{what} stays {best_text(walk)}"
    else:
        where = "the outside option" if walk.best[1] is None else f"from {walk.best[1]}"
        held = f"{say(best)} ({where})" if math.isfinite(best) else "nothing"
        better = f"{what} is {held} instead of {say(before[0])}"
    lost = [str(walk.box(box)) for box in out if box not in walk.out]
    more = f" Not handed out any more: {', '.join(lost)}." if lost else ""
    paid = f"{say(spent)} is spent instead of {say(before[2])}"
    return f"Took back {shown} from {seen.box}. {better}, and {paid}.{more}"


def _words(walk: Walk) -> tuple[str, str]:
    return ("below", "lower") if walk.forest.minimize else ("above", "higher")


def _so_far(walk: Walk) -> str:
    if walk.hands is not None:
        return f"every reward in hand and the outside option ({walk.amounts(walk.sign * walk.bar)})"
    what = "the least loss so far" if walk.forest.minimize else "the best so far"
    return f"{what} ({best_text(walk)})"
