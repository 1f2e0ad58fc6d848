"""One plain sentence why to open a box, or why to stop."""

from __future__ import annotations

import math

from ..engine.solution import mean_cost
from .frontier import Box, Id
from .ledger import Ledger, Opened


def why_open(ledger: Ledger, box: Id) -> str:
    """Why a box that is out, or can be opened, is to be opened; or why not."""
    state = ledger.state_above(box)
    index, best = ledger.frontier.index(box[0], state), ledger.sign * ledger.best[0]
    above, higher = _words(ledger)
    name, shown = ledger.box(box), f"{ledger.sign * index + 0.0:.6g}"
    if box in ledger.told:
        return f"{name} was opened already and showed {ledger.told[box].state}."
    if index <= best and box not in ledger.out:
        return f"Do not open {name}: its index {shown} is not {above} {_so_far(ledger)}."
    if index <= best:
        return (
            f"{name} is handed out, but its index {shown} is not {above} {_so_far(ledger)} any "
            f"more: give it back if it is not being opened yet."
        )
    what = f"Open {name} (cost {_cost(ledger, box[0], state)})"
    top = ledger.frontier.top()
    rest = ""
    if top is None or top[1] <= index:
        rest = f", and no box that can be opened has a {higher} one"
    return f"{what}: its index {shown} is {above} {_so_far(ledger)}{rest}."


def why_stop(ledger: Ledger) -> str:
    """Why no further box is to be opened."""
    above, higher = _words(ledger)
    most = higher[:-1] + "st"
    top = ledger.frontier.top()
    if ledger.out:
        names = [str(ledger.box(box)) for box in list(ledger.out)[:4]]
        more = f" and {len(ledger.out) - 4} more" if len(ledger.out) > 4 else ""
        what = f"Wait for {', '.join(names)}{more}"
        over = _so_far(ledger)
    else:
        what, over = f"Stop and take {_best(ledger)}", "that"
    if top is None:
        return f"{what}: no other box can be opened now." if ledger.out else (
            f"{what}: no box is left to open."
        )  # fmt: skip
    (box, index), other = top, "other " if ledger.out else ""
    best = ""
    if math.isfinite(index):
        best = f"; the {most} is {ledger.sign * index + 0.0:.6g}, of {ledger.box(box)}"
    return f"{what}: no {other}box that can be opened has an index {above} {over}{best}."


def taken_back(
    ledger: Ledger, seen: Opened, before: tuple[float, Box | None, float], out: dict[Id, str]
) -> str:
    """What is different now that an answer was taken back; ``before`` and ``out`` as they were."""
    shown = seen.state if seen.reward is None else f"{seen.reward:.6g}"
    best, _, spent = ledger.best
    what = "The least loss so far" if ledger.forest.minimize else "The best so far"
    if best == before[0]:
        better = f"{what} stays {_best(ledger)}"
    else:
        where = "the outside option" if ledger.best[1] is None else f"from {ledger.best[1]}"
        held = f"{best:.6g} ({where})" if math.isfinite(best) else "nothing"
        better = f"{what} is {held} instead of {before[0]:.6g}"
    lost = [str(ledger.box(box)) for box in out if box not in ledger.out]
    more = f" Not handed out any more: {', '.join(lost)}." if lost else ""
    paid = f"{spent:.6g} is spent instead of {before[2]:.6g}"
    return f"Took back {shown} from {seen.box}. {better}, and {paid}.{more}"


def _words(ledger: Ledger) -> tuple[str, str]:
    return ("below", "lower") if ledger.forest.minimize else ("above", "higher")


def _so_far(ledger: Ledger) -> str:
    what = "the least loss so far" if ledger.forest.minimize else "the best so far"
    return f"{what} ({_best(ledger)})"


def _cost(ledger: Ledger, v: int, state: int) -> str:
    sure = ledger.forest.costs.shape[ledger.forest.cost[v], 1] == 1
    return f"{mean_cost(ledger.forest, v)[state]:.6g}{'' if sure else ' on average'}"


def _best(ledger: Ledger) -> str:
    best, box, _ = ledger.best
    if not math.isfinite(best):
        return "nothing"
    return f"{best:.6g}, the outside option" if box is None else f"{best:.6g} from {box}"
