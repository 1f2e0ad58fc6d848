"""Episodes of strategies that are no index policies: fixed orders and random ones.

The forest has no copies. ``parent`` and the tables are those of `episodes`; ``shown[v]`` is the
state that box v showed last. ``tree[v]`` numbers the trees if several prizes may be taken; with one
prize all boxes count as one tree. ``hand`` holds the best reward of each tree.
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
    FACTOR_AT,
    FACTOR_ROW,
    FACTOR_STEP,
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
    TIME,
    _draw,
    _draws,
    _stream,
    _uniform,
    episode_work,
)
from .jit import helper, kernel

_NONE = np.uint64(0)


class Order(NamedTuple):
    """A fixed order, and how far ahead of it one looks."""

    parent: np.ndarray
    order: np.ndarray
    place: np.ndarray  # where each box stands in the order
    ahead: int
    outside: float
    stream: np.ndarray


class PrizePlaces(NamedTuple):
    """How many prizes may be taken, and from which tree each box has its reward."""

    prizes: int
    tree: np.ndarray


class Ready(NamedTuple):
    """Room for the state of each box, the boxes that can be opened, and rewards by tree."""

    shown: np.ndarray
    boxes: np.ndarray
    hand: np.ndarray


@helper()
def _open(tables, opened, shown, v, s, u):
    """Open box v after its parent showed s: ``u`` stands for its state. Its reward and its cost."""
    boxes, k = tables.boxes, tables.boxes[v, STATES]
    y = _draw(tables.chances, boxes[v, LAW_AT] + s * k, k, u)
    at = boxes[v, COST_AT] + s * boxes[v, COST_ROW] + y * boxes[v, COST_STEP]
    shown[v] = y
    opened[v] += 1
    return tables.rewards[boxes[v, REWARD_AT] + y], tables.costs[at]


@helper()
def _note(out, i, best, spend, n):
    """What episode i came to."""
    out[PAYOFF, i], out[REWARD, i], out[SPEND, i] = best - spend, best, spend
    out[OPENINGS, i] = out[ROUNDS, i] = n


@helper()
def _delay(tables, v, s, y):
    """Factor and duration of an opening; none if time costs nothing."""
    if tables.factors.size == 0:
        return 1.0, 0.0
    boxes = tables.boxes
    at = boxes[v, FACTOR_AT] + s * boxes[v, FACTOR_ROW] + y * boxes[v, FACTOR_STEP]
    return tables.factors[at], tables.durations[at]


@helper()
def _exceeds(index, tree, hand, prizes, outside):
    """Whether an index is above the reward in hand of its tree, and a place is left for it."""
    if not index > hand[tree] or not index > outside:
        return False
    above = 0
    for t in range(hand.size):
        above += t != tree and hand[t] >= index
    return above < prizes


@helper()
def _taken(hand, prizes, outside):
    """The sum of the best rewards in hand, one from each tree; an empty place is the outside."""
    total = 0.0
    for _ in range(prizes):
        best = 0
        for t in range(1, hand.size):
            if hand[t] > hand[best]:
                best = t
        total += hand[best]
        hand[best] = outside
    return total


@helper()
def _worth(fixed, places, tables, room, at):
    """Whether one of the next boxes whose parent is open is worth an opening by its index."""
    for i in range(at, min(at + fixed.ahead, fixed.order.size)):
        v = fixed.order[i]
        up = fixed.parent[v]
        if up >= 0 and fixed.place[up] >= at:
            continue
        index = tables.index[tables.boxes[v, INDEX_AT] + (room.shown[up] if up >= 0 else 0)]
        if _exceeds(index, places.tree[v], room.hand, places.prizes, fixed.outside):
            return True
    return False


@kernel(work=episode_work)
def play_order(tables, fixed, places, first, last, tally, room):
    """Follow an order while one of the next ``ahead`` boxes is worth opening."""
    parent, order, _, _, outside, stream_key = fixed
    draws = np.empty(parent.size, np.uint64)  # of each open box
    out, opened = tally
    shown, _, hand = room
    for episode in range(first, last):
        stream = _stream(stream_key, episode)
        spend, n, worth, time = 0.0, 0, 1.0, 0.0
        hand[:] = outside
        while n < order.size and _worth(fixed, places, tables, room, n):
            v = order[n]
            s = shown[parent[v]] if parent[v] >= 0 else 0
            draws[v] = _draws(draws[parent[v]] if parent[v] >= 0 else _NONE, v, _ZERO)
            reward, cost = _open(tables, opened, shown, v, s, _uniform(stream + draws[v]))
            factor, pause = _delay(tables, v, s, shown[v])
            spend, n = spend + worth * cost, n + 1
            worth, time = worth * factor, time + pause
            hand[places.tree[v]] = max(hand[places.tree[v]], reward)
        best = worth * _taken(hand, places.prizes, outside)
        _note(out, episode - first, best, spend, n)
        out[TIME, episode - first] = time


@kernel(work=episode_work)
def play_random(tables, game, places, parent, span, tally, room):
    """Open at random one of the boxes that can be opened, at most ``budget`` of them.

    If it ``stops``, boxes whose index is not worth an opening are left closed for good. ``span``
    are the first episode and the one after the last.
    """
    boxes, index, siblings = tables.boxes, tables.index, tables.siblings
    roots, outside, budget, stops = game.roots, game.outside, game.budget, game.stops
    draws = np.empty(parent.size, np.uint64)  # of each open box
    (first, last), (out, opened), (shown, ready, hand) = span, tally, room
    prizes, tree = places
    for episode in range(first, last):
        stream = _stream(game.stream, episode)
        choices = stream
        spend, n, size, worth, time = 0.0, 0, roots, 1.0, 0.0
        hand[:] = outside
        copy(siblings, _ZERO, roots, ready, _ZERO)
        while size > 0 and n < budget:
            choices += _GOLDEN
            i = min(np.int64(_uniform(choices) * size), size - 1)
            v = ready[i]
            size -= 1
            ready[i] = ready[size]
            s = shown[parent[v]] if parent[v] >= 0 else 0
            x = index[boxes[v, INDEX_AT] + s]
            if stops and not _exceeds(x, tree[v], hand, prizes, outside):
                continue
            draws[v] = _draws(draws[parent[v]] if parent[v] >= 0 else _NONE, v, _ZERO)
            reward, cost = _open(tables, opened, shown, v, s, _uniform(stream + draws[v]))
            factor, pause = _delay(tables, v, s, shown[v])
            spend, n = spend + worth * cost, n + 1
            worth, time = worth * factor, time + pause
            hand[tree[v]] = max(hand[tree[v]], reward)
            at, m = boxes[v, LIST_AT], boxes[v, CHILDREN]
            copy(siblings, at, m, ready, size)
            size += m
        best = worth * _taken(hand, prizes, outside)
        _note(out, episode - first, best, spend, n)
        out[TIME, episode - first] = time
