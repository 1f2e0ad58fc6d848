"""Boxes and indices as plain lists for scripts; for a large forest, the part that matters most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._common.arrays import FloatArray, IntArray
from ...engine.evaluation import Evaluation
from ...engine.indices import Policy
from ...forest.model import Forest
from ...forest.pools import Pool
from ...policy.frontier import Box
from ...policy.walk import Opened

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
