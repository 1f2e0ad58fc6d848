"""Episodes of strategies that are no index policies: fixed orders and random ones.

The forest has no copies. ``parent`` and the tables are those of `episodes`; ``shown[v]`` is the
state that box v showed last.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .episodes import (
    _GOLDEN,
    CHILDREN,
    COST_AT,
    COST_ROW,
    COST_STEP,
    INDEX_AT,
    LAW_AT,
    LIST_AT,
    OPENINGS,
    PAYOFF,
    REWARD,
    REWARD_AT,
    ROUNDS,
    SPEND,
    STATES,
    _draw,
    _stream,
    _uniform,
)

_JIT = {"cache": True, "nogil": True, "error_model": "numpy"}


@njit(inline="always", **_JIT)
def _open(boxes, chances, rewards, costs, v, s, u):
    """The state that ``u`` stands for of box v after its parent showed s, its reward and cost."""
    k = boxes[v, STATES]
    y = _draw(chances, boxes[v, LAW_AT] + s * k, k, u)
    at = boxes[v, COST_AT] + s * boxes[v, COST_ROW] + y * boxes[v, COST_STEP]
    return y, rewards[boxes[v, REWARD_AT] + y], costs[at]


@njit(**_JIT)
def _worth(order, place, parent, shown, boxes, index, at, ahead, best):
    """Whether one of the next boxes whose parent is open has an index above the best so far."""
    for i in range(at, min(at + ahead, order.size)):
        v = order[i]
        up = parent[v]
        if up >= 0 and place[up] >= at:
            continue
        if index[boxes[v, INDEX_AT] + (shown[up] if up >= 0 else 0)] > best:
            return True
    return False


@njit(**_JIT)
def play_order(
    tables, parent, order, place, ahead, outside, stream_key, first, last, out, opened, shown
):
    """Open boxes in a fixed order while one of the next ``ahead`` ones is worth opening.

    ``place[v]`` is where box v stands in the order.
    """
    boxes, index, _, chances, rewards, costs = tables
    for episode in range(first, last):
        stream = _stream(stream_key, episode)
        best, spend, n = outside, 0.0, 0
        while n < order.size and _worth(order, place, parent, shown, boxes, index, n, ahead, best):
            v = order[n]
            s = shown[parent[v]] if parent[v] >= 0 else 0
            stream += _GOLDEN
            y, reward, cost = _open(boxes, chances, rewards, costs, v, s, _uniform(stream))
            shown[v] = y
            spend += cost
            best = max(best, reward)
            opened[v] += 1
            n += 1
        i = episode - first
        out[PAYOFF, i], out[REWARD, i], out[SPEND, i] = best - spend, best, spend
        out[OPENINGS, i] = out[ROUNDS, i] = n


@njit(**_JIT)
def play_random(
    tables, parent, roots, budget, stops, outside, stream_key, first, last, out, opened, shown,
    ready,
):  # fmt: skip
    """Open at random one of the boxes that can be opened, at most ``budget`` of them.

    If it ``stops``, boxes whose index does not exceed the best so far are left closed for good.
    """
    boxes, index, siblings, chances, rewards, costs = tables
    for episode in range(first, last):
        stream = _stream(stream_key, episode)
        best, spend, n, size = outside, 0.0, 0, roots
        ready[:roots] = siblings[:roots]
        while size > 0 and n < budget:
            stream += _GOLDEN
            i = min(np.int64(_uniform(stream) * size), size - 1)
            v = ready[i]
            size -= 1
            ready[i] = ready[size]
            s = shown[parent[v]] if parent[v] >= 0 else 0
            if stops and not index[boxes[v, INDEX_AT] + s] > best:
                continue
            stream += _GOLDEN
            y, reward, cost = _open(boxes, chances, rewards, costs, v, s, _uniform(stream))
            shown[v] = y
            spend += cost
            best = max(best, reward)
            opened[v] += 1
            n += 1
            at, m = boxes[v, LIST_AT], boxes[v, CHILDREN]
            ready[size : size + m] = siblings[at : at + m]
            size += m
        i = episode - first
        out[PAYOFF, i], out[REWARD, i], out[SPEND, i] = best - spend, best, spend
        out[OPENINGS, i] = out[ROUNDS, i] = n
