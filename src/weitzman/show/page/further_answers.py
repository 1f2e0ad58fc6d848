"""What both pages say beyond the decision: which numbers matter, what knowing is worth, budgets.

The answers come from :mod:`weitzman.questions`. If a question has no answer, the page gives the
reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ...engine.evaluation import Evaluation
from ...engine.solution import Solution
from ...errors import InvalidArgument, InvalidForest
from ...forest.model import Forest
from ...questions.budget import SpendFrontier, frontier
from ...questions.caution import risk_sweep
from ...questions.information import value_of_knowing
from ...questions.robustness import tornado, turning_points
from .page_data import alone

LARGEST = 400
"""Boxes up to which these questions are answered within seconds."""

_SHARE = 0.1  # each number is changed by this share
_MOVED = 6  # boxes whose numbers are changed
_TURNED = 3  # boxes for which to look for the change that alters the decision
_KNOWN = 8  # boxes that might be known beforehand
_ROWS = 12  # rows of a tornado
_STEPS = 32  # points of a curve
_ENTRIES = 20_000  # chances, at most: a frontier then takes seconds

_OPTION = re.compile(r"`(\w+)`")  # pages do not quote options of Python

Found = dict[str, Any]


def answers(solution: Solution, evaluation: Evaluation) -> Found:
    """All answers as plain lists; ``leftOut`` has the reason for each answer that is None."""
    f = solution.forest
    parts: dict[str, Callable[[], Any]] = {
        "swings": lambda: _swings(solution),
        "knowing": lambda: _knowing(f, evaluation),
        "budget": lambda: _budget(f, evaluation),
        "careful": lambda: _careful(solution),
    }
    found: Found = {"leftOut": {}}
    for key, part in parts.items():
        try:
            if len(f) > LARGEST:
                raise InvalidArgument(f"this would take too long with {len(f):,} boxes.")
            found[key] = part()
        except (InvalidArgument, InvalidForest) as error:
            reason = _OPTION.sub(lambda m: f"the {m[1].replace('_', ' ')}", str(error))
            found[key], found["leftOut"][key] = None, reason
    return found


def _swings(solution: Solution) -> Found:
    """How far the value moves with each number, and what changes the first decision."""
    found = tornado(solution.forest, share=_SHARE, boxes=_MOVED)
    turns = {(t.box, t.number): t.share for t in turning_points(solution, boxes=_TURNED)}
    rows = [
        {
            "box": s.box,
            "number": s.number,
            "low": s.low,
            "high": s.high,
            "firstLow": s.first_low,
            "firstHigh": s.first_high,
            "turns": s.turns,
            "turnsAt": turns.get((s.box, s.number)),
            "lookedAt": (s.box, s.number) in turns,
        }
        for s in found.swings[:_ROWS]
    ]
    return {"share": _SHARE, "value": solution.value, "rows": rows}


def _knowing(f: Forest, e: Evaluation) -> list[Found]:
    """What it is worth to know a box before anything is opened, for the boxes opened most often."""
    boxes = [v for v in np.argsort(-e.opened, kind="stable").tolist() if alone(f, v)][:_KNOWN]
    if not boxes:
        raise InvalidArgument(
            "only a single box can be known beforehand, but all boxes have copies."
        )
    found = [(v, value_of_knowing(f, [v])) for v in boxes]
    rows = [{"box": f.name(v), "worth": max(k.worth, 0.0), "error": k.error} for v, k in found]
    return sorted(rows, key=lambda row: -float(row["worth"]))


def _budget(f: Forest, e: Evaluation) -> Found:
    """The most reward for each spend on average, the present spend among them."""
    entries = int(f.laws.shape[f.law].prod(axis=1).sum())
    if entries > _ENTRIES:
        raise InvalidArgument(
            f"this would take too long with {entries:,} chances. Run weitzman budget instead."
        )
    curve = frontier(f, corners=_STEPS)
    if len(curve.corners) < 2:
        raise InvalidArgument("one policy is the best for every budget.")
    least, most = float(curve.spend[0]), float(curve.spend[-1])
    x = np.linspace(least, most, _STEPS + 1)
    now = int(np.argmin(np.abs(x - e.spend)))
    if least <= e.spend <= most:
        x[now] = e.spend
    found = [curve.at(float(b)) for b in x]
    reward = [m.reward for m in found]
    if x[now] == e.spend:  # no policy gets more for this spend; a curve with few corners says less
        reward[now] = e.reward
    return {
        "x": x.tolist(),
        "value": reward,
        "price": [_price(curve, m.spend) for m in found],
        "now": now,
        "gap": curve.gap,
    }


def _price(curve: SpendFrontier, spend: float) -> float:
    """What one more unit of budget would add: the slope to the right."""
    at = int(np.searchsorted(curve.spend, spend, side="right")) - 1
    return float(curve.price[at]) if at < len(curve.price) else 0.0


def _careful(solution: Solution) -> Found:
    """The value and the first decision for each risk tolerance, the most careful first."""
    sweep, own = risk_sweep(solution.forest, steps=_STEPS), solution.forest.risk_tolerance
    x, value = sweep.tolerance[::-1].tolist(), sweep.value[::-1].tolist()
    first = [*sweep.first[::-1]]
    now = len(x) - 1
    if own is not None:
        near = int(np.argmin(np.abs(np.log(np.array(x) / own))))
        now = near if x[0] < own < x[-1] else 0 if own <= x[0] else now
        x[now], value[now], first[now] = own, solution.value, solution.first_box
    ranges = [
        {"high": None if high == np.inf else high, "low": low, "first": first_box}
        for high, low, first_box in sweep.decisions()
    ]
    bold = sweep.solution.value
    return {"x": x, "value": value, "first": first, "now": now, "ranges": ranges, "bold": bold}
