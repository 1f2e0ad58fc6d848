"""Small forests with all that makes a walk intricate: copies, ties, endless lines, losses."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from random_problems import probabilities

from weitzman import Forest, Policy
from weitzman.policy.walk import Walk


@st.composite
def ruled_forests(
    draw: DrawFn,
    *,
    max_boxes: int = 4,
    max_states: int = 3,
    copies: int = 3,
    endless: bool = True,
    terms: bool = False,
) -> Policy:
    """Indices, rewards and the outside option are small whole numbers, so that many are equal.

    With ``terms`` there may be factors, durations or several prizes.
    """
    n, k = draw(st.integers(1, max_boxes)), draw(st.integers(1, max_states))
    sign = draw(st.sampled_from([1.0, -1.0]))
    parent: list[int] = []
    lines: list[bool] = []
    for v in range(n):
        parent.append(draw(st.sampled_from([-1, *(u for u in range(v) if not lines[u])])))
        lines.append(endless and parent[v] >= 0 and draw(st.integers(0, 2)) == 0)
    rows = [1 if p < 0 else k for p in parent]

    def matrix(v: int) -> Any:
        law = np.array([draw(probabilities(k)) for _ in range(rows[v])], float)
        return law if parent[v] >= 0 else law[0]

    def cost(v: int) -> Any:
        shape = draw(st.sampled_from([(1, 1), (rows[v], 1), (1, k), (rows[v], k)]))
        size = shape[0] * shape[1]
        halves = draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
        return np.array(halves).reshape(shape) / 2  # six digits say all of any mean

    level = st.sampled_from([0, 1, 1, 2, 3, -np.inf])
    rewards = [[draw(level) for _ in range(k)] for _ in range(n)]
    outside = st.sampled_from([0.0, 1.0, -1.0, -np.inf])
    if not np.isfinite(rewards).all():  # then something must be there to be taken
        outside = outside.filter(np.isfinite)
    count = [1 if lines[v] else draw(st.integers(1, copies)) for v in range(n)]
    more: dict[str, Any] = {}
    kind = draw(st.sampled_from(["none", "factor", "duration", "prizes"])) if terms else "none"
    if kind in ("factor", "duration"):
        more[kind] = [cost(v) / 4 + (kind == "factor") / 4 for v in range(n)]
        more |= {"rate": 0.5} if kind == "duration" else {}
    elif kind == "prizes":
        outside = outside.filter(np.isfinite)
        trees = sum(c for c, p in zip(count, parent, strict=True) if p < 0)
        more["prizes"] = draw(st.integers(1, min(trees, 3)))
    forest = Forest.from_arrays(
        parent=parent,
        cost=[cost(v) for v in range(n)],
        rewards=[[sign * r for r in row] for row in rewards],
        law=[matrix(v) for v in range(n)],
        count=count,
        endless=lines,
        outside=sign * draw(outside),
        minimize=sign < 0,
        names=[f"b{v}" for v in range(n)],
        **more,
    )
    index = [sign * draw(st.sampled_from([1, 2, 2, 3, 4, -np.inf])) for _ in range(sum(rows))]
    return Policy.of(forest, np.cumsum(rows) - rows, np.array(index, float))


def possible(walk: Walk, box: Any) -> list[tuple[int, float]]:
    """What a box may show now, and how likely."""
    law = walk.forest.laws[int(walk.forest.law[box[0]])][walk.state_above(box)]
    return [(y, p) for y, p in enumerate(law.tolist()) if p > 0]
