"""What the commands print, as text."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._common.numbers import whole
from .._common.text import cell
from ..engine.solution import Solution, Status
from ..forest.model import Forest


def headline(solution: Solution) -> list[tuple[str, str]]:
    """The value, and what to open first."""
    f, gap = solution.forest, solution.gap
    error = "exact up to rounding" if gap == 0 else f"error at most {f.amounts.margin(gap)}"
    if solution.status is Status.DISCRETIZED:
        error += ": distributions were made discrete"
    rows = [("value", f"{f.amounts(solution.value, gap)}   ({error})")]
    terms = [
        (f.factors is not None, "payoffs are discounted to the start"),
        (
            f.risk_tolerance is not None,
            f"certainty equivalent, risk tolerance {f.amounts(f.risk_tolerance or 0.0)}",
        ),
        (f.prizes > 1, f"expected sum of {f.prizes} prizes, one from each tree, less costs"),
    ]
    rows += [("meaning", text) for there, text in terms if there]
    first = solution.first_box
    if first is None:
        rows.append(("open first", f"nothing: take the outside option, {f.amounts(f.outside)}"))
    else:
        index = solution.indices(first)[0]
        rows.append(("open first", f"{cell(first)}   (index {f.amounts(index)})"))
    if solution.status is Status.COARSE:
        rows.append(
            ("note", "the error is larger than requested: --exact leaves only rounding errors")
        )
    return rows


def json_lines(solution: Solution) -> Iterator[str]:
    """One JSON object, a line for each box; numbers that are not finite become null."""
    status = solution.status.name.lower()
    value, gap = _number(solution.value), _number(solution.gap)
    yield f'{{"value": {value}, "gap": {gap}, "status": "{status}", "boxes": ['
    n = len(solution.forest)
    for v in range(n):
        index = ", ".join(map(_number, solution.indices(v).tolist()))
        name = json.dumps(solution.forest.name(v))
        yield f'{{"name": {name}, "index": [{index}]}}{"," if v < n - 1 else ""}'
    yield "]}"


def sizes(forest: Forest) -> dict[str, Any]:
    """The size of a problem, for programs."""
    f = forest
    states = f.rewards.shape[f.reward, 1]
    return {
        "boxes": len(f),
        "with copies": f.boxes,
        "roots": int(f.roots.size),
        "states": [int(states.min()), int(states.max())],
        "distinct laws": len(np.unique(f.law)),
        "depth": _depth(f),
        "objective": "minimize" if f.minimize else "maximize",
        "outside": f.outside if np.isfinite(f.outside) else None,
        "unit": f.unit,
    }


def summary(forest: Forest) -> list[tuple[str, str]]:
    """The size of a problem."""
    found = sizes(forest)
    least, most = found["states"]
    must, outside = "something must be taken", found["outside"]
    rows = [(key, whole(found[key])) for key in ("boxes", "with copies", "roots")]
    rows.append(("states", f"{least}" if least == most else f"{least} to {most}"))
    rows += [(key, whole(found[key])) for key in ("distinct laws", "depth")]
    taken = must if outside is None else f"outside option {forest.amounts(outside)}"
    return [*rows, ("objective", f"{found['objective']}, {taken}")]


def _depth(f: Forest) -> int:
    """Boxes on the longest path down, found by doubling the number of steps taken at once."""
    n = len(f)
    up = np.append(np.where(f.parent < 0, n, f.parent), n)
    depth = np.append(np.ones(n, np.int64), 0)
    while (up < n).any():
        depth += depth[up]
        up = up[up]
    return int(depth.max())


def _number(x: float) -> str:
    return repr(float(x)) if math.isfinite(x) else "null"
