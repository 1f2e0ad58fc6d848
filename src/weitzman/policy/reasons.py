"""One plain sentence why to open a box, or why to stop."""

from __future__ import annotations

import math

from ..engine.solution import mean_cost
from .frontier import Id
from .ledger import Ledger


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
