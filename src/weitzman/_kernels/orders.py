"""Episodes of strategies that are no index policies: fixed orders and random ones.

The forest has no copies. ``parent`` and the tables are those of `episodes`; ``shown[v]`` is the
state that box v showed last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .copying import copy
from .episodes import (
    _GOLDEN,
    _ZERO,
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
from .jit import helper, kernel


class Order(NamedTuple):
    """A fixed order, and how far ahead of it one looks."""

    parent: np.ndarray
    order: np.ndarray
    place: np.ndarray  # where each box stands in the order
    ahead: int
    outside: float
    stream: np.ndarray


class Ready(NamedTuple):
    """Room for the state of each box, and for the boxes that can be opened."""

    shown: np.ndarray
    boxes: np.ndarray


@helper(inline=True)
def _open(tables, opened, shown, v, s, u):
    """Open box v after its parent showed s: ``u`` stands for its state. Its reward and its cost."""
    boxes, k = tables.boxes, tables.boxes[v, STATES]
    y = _draw(tables.chances, boxes[v, LAW_AT] + s * k, k, u)
    at = boxes[v, COST_AT] + s * boxes[v, COST_ROW] + y * boxes[v, COST_STEP]
    shown[v] = y
    opened[v] += 1
    return tables.rewards[boxes[v, REWARD_AT] + y], tables.costs[at]


@helper(inline=True)
def _note(out, i, best, spend, n):
    """What episode i came to."""
    out[PAYOFF, i], out[REWARD, i], out[SPEND, i] = best - spend, best, spend
    out[OPENINGS, i] = out[ROUNDS, i] = n


@helper()
def _worth(fixed, tables, shown, at, best):
    """Whether one of the next boxes whose parent is open has an index above the best so far."""
    for i in range(at, min(at + fixed.ahead, fixed.order.size)):
        v = fixed.order[i]
        up = fixed.parent[v]
        if up >= 0 and fixed.place[up] >= at:
            continue
        if tables.index[tables.boxes[v, INDEX_AT] + (shown[up] if up >= 0 else 0)] > best:
            return True
    return False


@kernel()
def play_order(tables, fixed, first, last, tally, shown):
    """Open boxes in a fixed order while one of the next ``ahead`` ones is worth opening."""
    parent, order, _, _, outside, stream_key = fixed
    out, opened = tally
    for episode in range(first, last):
        stream = _stream(stream_key, episode)
        best, spend, n = outside, 0.0, 0
        while n < order.size and _worth(fixed, tables, shown, n, best):
            v = order[n]
            s = shown[parent[v]] if parent[v] >= 0 else 0
            stream += _GOLDEN
            reward, cost = _open(tables, opened, shown, v, s, _uniform(stream))
            spend, best, n = spend + cost, max(best, reward), n + 1
        _note(out, episode - first, best, spend, n)


@kernel()
def play_random(tables, game, parent, span, tally, room):
    """Open at random one of the boxes that can be opened, at most ``budget`` of them.

    If it ``stops``, boxes whose index does not exceed the best so far are left closed for good.
    ``span`` are the first episode and the one after the last.
    """
    boxes, index, siblings = tables.boxes, tables.index, tables.siblings
    roots, outside, _, budget, stops, stream_key = game
    (first, last), (out, opened), (shown, ready) = span, tally, room
    for episode in range(first, last):
        stream = _stream(stream_key, episode)
        best, spend, n, size = outside, 0.0, 0, roots
        copy(siblings, _ZERO, roots, ready, _ZERO)
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
            reward, cost = _open(tables, opened, shown, v, s, _uniform(stream))
            spend, best, n = spend + cost, max(best, reward), n + 1
            at, m = boxes[v, LIST_AT], boxes[v, CHILDREN]
            copy(siblings, at, m, ready, size)
            size += m
        _note(out, episode - first, best, spend, n)
