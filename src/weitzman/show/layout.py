"""What the commands print, as text."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import numpy as np

from .._common.text import cell, columns
from ..engine.solution import Solution, Status
from ..forest.model import Forest


def headline(solution: Solution) -> list[tuple[str, str]]:
    """The value, and what to open first."""
    f, gap = solution.forest, solution.gap
    error = "exact up to rounding" if gap == 0 else f"error at most {gap:.2g}"
    rows = [("value", f"{solution.value:.10g}   ({error})")]
    if solution.first is None:
        rows.append(("open first", f"nothing: take the outside option, {f.outside:.10g}"))
    else:
        index = solution.indices(solution.first)[0]
        rows.append(("open first", f"{cell(f.name(solution.first))}   (index {index:.8g})"))
    if solution.status is Status.COARSE:
        rows.append(("note", "the error is larger than asked for: --exact has none but rounding"))
    return rows


def indices(solution: Solution, limit: int) -> Iterator[str]:
    """The indices of all boxes, ``limit`` rows of them (0: all)."""
    c = solution.columns(limit or None)
    after = [
        "" if p is None else f"{cell(p)} = {cell(s)}"
        for p, s in zip(c["parent"], c["state"], strict=True)
    ]
    numbers = [[f"{x:.6g}" for x in c["cost"]], [f"{x:.8g}" for x in c["index"]]]
    rows = zip(map(cell, c["box"]), after, *numbers, strict=True)
    yield from columns([("box", "after", "cost", "index"), *rows], right=2)
    f = solution.forest
    more = int(f.laws.shape[f.law, 0].sum()) - len(after)
    if more:
        yield f"... and {more} more rows (--limit 0 shows all)"


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


def summary(forest: Forest) -> list[tuple[str, str]]:
    """The size of a problem."""
    f = forest
    states = f.rewards.shape[f.reward, 1]
    least, most = int(states.min()), int(states.max())
    must = "something must be taken"
    outside = f"outside option {f.outside:.10g}" if np.isfinite(f.outside) else must
    return [
        ("boxes", f"{len(f)}"),
        ("with copies", f"{f.boxes}"),
        ("roots", f"{f.roots.size}"),
        ("states", f"{least}" if least == most else f"{least} to {most}"),
        ("distinct laws", f"{len(np.unique(f.law))}"),
        ("depth", f"{_depth(f)}"),
        ("objective", f"{'minimize' if f.minimize else 'maximize'}, {outside}"),
    ]


def _depth(f: Forest) -> int:
    """Boxes on the longest way down, by doubling the steps up that are taken at once."""
    n = len(f)
    up = np.append(np.where(f.parent < 0, n, f.parent), n)
    depth = np.append(np.ones(n, np.int64), 0)
    while (up < n).any():
        depth += depth[up]
        up = up[up]
    return int(depth.max())


def _number(x: float) -> str:
    return repr(float(x)) if math.isfinite(x) else "null"
