"""What both pages show, as plain lists: boxes and indices, and answers to further questions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._common.arrays import FloatArray, IntArray
from ...engine.evaluation import Evaluation
from ...engine.indices import Policy
from ...engine.solution import Solution
from ...errors import InvalidArgument, InvalidForest
from ...forest.model import Forest
from ...forest.pools import Pool
from ...policy.frontier import Box
from ...policy.walk import Opened
from ...questions.budget import SpendFrontier, frontier
from ...questions.information import value_of_knowing
from ...questions.robustness import tornado, turning_points
from ...questions.sweeps import risk_sweep

BoolArray = npt.NDArray[np.bool_]

_BYTES = 700_000  # the most bytes of laws in a page
_DIGITS = 7  # of a probability; indices, rewards and costs keep all digits


def important(
    policy: Policy, evaluation: Evaluation, most: int, told: Sequence[Opened]
) -> IntArray:
    """The numbers of about ``most`` boxes: the boxes opened most often, and all above them."""
    f = policy.forest
    rows = f.laws.shape[f.law, 0]
    highest = [policy.index[a : a + r].max() for a, r in zip(policy.index_at, rows, strict=True)]
    ranked = np.lexsort((-np.array(highest), -evaluation.opened))
    kept: set[int] = set()
    laws: set[int] = set()
    room = _BYTES
    seen = [step.box.number for step in told]
    for i, v in enumerate([*seen, *ranked.tolist()]):
        if i >= len(seen) and (len(kept) >= most or room < 0):
            break
        while v >= 0 and v not in kept:
            kept.add(v)
            law = int(f.law[v])
            if law not in laws:
                laws.add(law)
                room -= _size(f.laws[law])
            v = int(f.parent[v])
    return np.array(sorted(kept), np.int64)


def problem(policy: Policy, keep: IntArray) -> dict[str, Any]:
    """Some boxes of a forest, closed upward, with their indices in the user's sign."""
    f = policy.forest
    place = np.full(len(f) + 1, -1, np.int64)  # the last entry is that of no parent
    place[keep] = np.arange(len(keep))
    law, laws = _used(f.law[keep], f.laws)
    cost, costs = _used(f.cost[keep], f.costs)
    reward, rewards = _used(f.reward[keep], f.rewards)
    rows = np.unique(f.reward[keep])
    return {
        "minimize": f.minimize,
        "outside": f.outside,
        "amounts": f.amounts._asdict(),
        "names": [f.name(v) for v in keep.tolist()],
        "parent": place[f.parent[keep]].tolist(),
        "count": f.count[keep].tolist(),
        "endless": f.endless[keep].tolist(),
        "law": law,
        "laws": [[_rounded(row) for row in matrix] for matrix in laws],
        "cost": cost,
        "costs": [matrix.tolist() for matrix in costs],
        **terms(f, keep),
        "reward": reward,
        "rewards": [matrix[0].tolist() for matrix in rewards],
        "states": [f.state_names[int(row)] for row in rows],
        "indices": [_index(policy, v).tolist() for v in keep.tolist()],
        "folded": _folded(policy, place) if len(keep) < len(f) else None,
    }


def terms(f: Forest, keep: IntArray) -> dict[str, Any]:
    """Time beside the costs, risk tolerance and prizes, where a forest has them."""
    time = {"factors": f.factors, "durations": f.durations}
    found = {
        name: [matrix.tolist() for matrix in _used(f.cost[keep], pool)[1]]
        for name, pool in time.items()
        if pool is not None
    }
    return {**found, "risk": f.risk_tolerance, "prizes": int(f.prizes)}


def alone(forest: Forest, box: int) -> bool:
    """Whether a box exists only once: neither the box nor a box before it has copies."""
    if forest.endless[box]:
        return False
    while box >= 0:
        if forest.count[box] > 1:
            return False
        box = int(forest.parent[box])
    return True


def steps(told: Sequence[Opened], keep: IntArray, taken: Iterable[Box] = ()) -> list[list[Any]]:
    """What was opened, for a stepper: box, copy, state, reward, cost; then what was taken."""
    place = {v: i for i, v in enumerate(keep.tolist())}
    opened = [
        [place[s.box.number], list(s.box.copy), s.state_number, s.reward, s.cost] for s in told
    ]
    return opened + [[place[box.number], list(box.copy)] for box in taken]


def _index(policy: Policy, v: int) -> FloatArray:
    """The indices of a box in the user's sign."""
    f, at = policy.forest, int(policy.index_at[v])
    sign = f.sign
    return np.asarray(sign * policy.index[at : at + int(f.laws.shape[f.law[v], 0])] + 0.0)


def _used(column: IntArray, pool: Pool) -> tuple[list[int], list[FloatArray]]:
    """The matrices that a column points to, and a column that points to these matrices."""
    which, place = np.unique(column, return_inverse=True)
    return place.tolist(), [pool[int(i)] for i in which]


def _rounded(row: FloatArray) -> list[float]:
    return [float(f"{p:.{_DIGITS}g}") if p else 0 for p in row.tolist()]


def _size(law: FloatArray) -> int:
    """About how many bytes a matrix takes in a page."""
    some = int(np.count_nonzero(law))
    return (_DIGITS + 4) * some + 2 * (law.size - some)


def _folded(policy: Policy, place: IntArray) -> dict[str, Any]:
    """The best box left out: among the roots, and behind each box after each state."""
    f = policy.forest
    hidden = np.flatnonzero(place[:-1] < 0)
    below: dict[int, list[Any]] = {}
    for v in hidden[place[f.parent[hidden]] >= 0].tolist():
        up, index = int(f.parent[v]), _index(policy, v)
        best = below.setdefault(int(place[up]), [None] * len(index))
        for s, x in enumerate(index.tolist()):
            best[s] = _better(f, best[s], [x, f.name(v)])
    roots = policy.root[place[policy.root] < 0]  # the highest index comes first
    root = [float(_index(policy, int(roots[0]))[0]), f.name(int(roots[0]))] if len(roots) else None
    return {"boxes": len(hidden), "root": root, "below": below}


def _better(f: Forest, a: list[Any] | None, b: list[Any]) -> list[Any]:
    sign = f.sign
    return b if a is None or sign * b[0] > sign * a[0] else a


LARGEST = 400
"""Boxes up to which these questions are answered within seconds."""

MOST_CHANCES = 20_000
"""Chances, likewise: a box of a fitted model may have thousands."""


def too_large(f: Forest) -> str | None:
    """What makes a forest too large for many solves: its boxes or its chances."""
    if len(f) > LARGEST:
        return f"{len(f):,} boxes"
    entries = int(f.laws.shape[f.law].prod(axis=1).sum())
    return f"{entries:,} chances" if entries > MOST_CHANCES else None


_SHARE = 0.1  # each number is changed by this share
_MOVED = 6  # boxes whose numbers are changed
_TURNED = 3  # boxes for which to look for the change that alters the decision
_KNOWN = 8  # boxes that might be known beforehand
_ROWS = 12  # rows of a tornado
_STEPS = 32  # points of a curve

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
            if (size := too_large(f)) is not None:
                raise InvalidArgument(f"this would take too long with {size}.")
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
