"""Random forests with all that a file can hold, and ways to compare them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from weitzman.forest.model import Forest

NAMES = st.text(min_size=1, max_size=5)
NUMBERS = st.one_of(st.integers(-99, 99).map(float), st.floats(-1e300, 1e300))
PRICES = st.one_of(st.integers(0, 99).map(float), st.floats(0, 1e300))


@st.composite
def distributions(draw: DrawFn, rows: int, size: int) -> np.ndarray:
    """A law: rows of numbers that sum to 1 up to rounding."""
    weight = st.lists(st.integers(0, 20), min_size=size, max_size=size).filter(any)
    w = np.array([draw(weight) for _ in range(rows)], float)
    return w / w.sum(axis=1, keepdims=True)


@st.composite
def forests(draw: DrawFn) -> Forest:
    """A forest of 1 to 6 boxes: copies, signals, names or none, shared laws and rewards."""
    n, minimize = draw(st.integers(1, 6)), draw(st.booleans())
    none = np.inf if minimize else -np.inf
    order = draw(st.permutations(range(n)))
    parent = [-1] * n
    for i in range(1, n):
        above = draw(st.integers(-1, i - 1))
        parent[order[i]] = -1 if above < 0 else order[above]
    must_take = draw(st.booleans())
    reward = NUMBERS if must_take else st.one_of(NUMBERS, st.just(none))
    pool = draw(st.lists(st.lists(reward, min_size=1, max_size=3), min_size=1, max_size=3))
    tags = [draw(st.none() | st.permutations(["a", "b", "é"])) for _ in pool]
    kind = [draw(st.integers(0, len(pool) - 1)) for _ in range(n)]
    laws: dict[tuple[int, int], Any] = {}
    law, cost = [], []
    for v in range(n):
        rows, size = 0 if parent[v] < 0 else len(pool[kind[parent[v]]]), len(pool[kind[v]])
        if (rows, size) not in laws or draw(st.booleans()):
            p = draw(distributions(max(rows, 1), size))
            laws[rows, size] = p if rows else p[0]
        law.append(laws[rows, size])
        shape = draw(st.sampled_from([(1, 1), (max(rows, 1), 1), (1, size), (max(rows, 1), size)]))
        prices = st.lists(PRICES, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])
        cost.append(np.reshape(draw(prices), shape))
    names = st.lists(NAMES, min_size=n, max_size=n, unique=True)
    return Forest.from_arrays(
        parent=parent,
        cost=cost,
        rewards=[pool[k] for k in kind],
        law=law,
        names=draw(st.none() | names),
        outside=none if must_take else draw(NUMBERS),
        count=[draw(st.sampled_from([1, 1, 2, 10**15])) for _ in range(n)],
        minimize=minimize,
        states=[None if tags[k] is None else tags[k][: len(pool[k])] for k in kind],
    )


def content(forest: Forest) -> list[Any]:
    """All that a forest says, box by box, whatever is shared in memory."""
    f = forest
    boxes = [
        (
            f.name(v),
            int(f.parent[v]),
            int(f.count[v]),
            f.laws[int(f.law[v])].tolist(),
            f.rewards[int(f.reward[v])].tolist(),
            f.costs[int(f.cost[v])].tolist(),
            f.state_names[int(f.reward[v])],
        )
        for v in range(len(f))
    ]
    return [f.minimize, f.outside, f.names is None, boxes]


def columns(forest: Forest) -> list[Any]:
    """All that a forest holds, bit for bit."""
    f = forest
    whole = [getattr(f, name).tolist() for name in ("parent", "law", "reward", "cost", "count")]
    pools = [
        (p.data.tobytes(), p.start.tolist(), p.shape.tolist()) for p in (f.laws, f.rewards, f.costs)
    ]
    return [whole, pools, f.outside, f.minimize, f.names, f.state_names]
