"""Episodes of an index policy that takes several prizes, one from each tree.

As in :mod:`.episodes`, but in the heap each list of siblings knows its tree (-1 for the roots), and
the best reward found in every tree is at hand. The higher of the two is the next move: a box is
opened, or a reward taken and its tree closed.
"""

from __future__ import annotations

import numpy as np

from .episodes import (
    _GOLDEN,
    ABOVE,
    BOX,
    CHILDREN,
    COPY,
    COST_AT,
    COST_ROW,
    COST_STEP,
    COUNT,
    END,
    INDEX_AT,
    LAW_AT,
    LIST_AT,
    LIST_STEP,
    OPENINGS,
    PAYOFF,
    POSITION,
    REWARD,
    REWARD_AT,
    ROUNDS,
    SPEND,
    STATE,
    STATES,
    TIME,
    Lists,
    _draw,
    _grown,
    _rise,
    _sink,
    _stream,
    _swap,
    _uniform,
    episode_work,
)
from .jit import helper, kernel


@helper()
def _highest(hand, trees):
    """The open tree with the best reward in hand; closed trees have none."""
    best = -1
    for t in range(trees):
        if best < 0 or hand[t] > hand[best]:
            best = t
    return best


@helper()
def _without_tree(key, heap, size, tree):
    """The heap without the lists of a closed tree; how many are left."""
    kept = 0
    for i in range(size):
        if heap[i, ABOVE] != tree:
            key[kept] = key[i]
            heap[kept] = heap[i]
            _rise(key, heap, kept)
            kept += 1
    return kept


@helper()
def _longer(hand):
    """The same rewards in hand with more room."""
    more = np.empty(2 * hand.size)
    more[: hand.size] = hand
    return more


@kernel(work=episode_work)
def collect(tables, game, prizes, first, last, tally, lists):
    """Episodes ``first`` to ``last - 1``, recorded in the columns of ``tally.out``.

    If the game never ``stops``, ``budget`` boxes are opened before anything is taken.
    """
    boxes, index, siblings, chances, rewards, costs, _, _ = tables
    key, heap = lists
    hand = np.empty(64)
    for episode in range(first, last):
        stream = _stream(game.stream, episode)
        left, total, spend, openings, trees = prizes, 0.0, 0.0, 0, 0
        u = siblings[0]
        key[0], size = index[boxes[u, INDEX_AT]], 1
        heap[0, BOX], heap[0, STATE], heap[0, ABOVE], heap[0, COPY] = u, 0, -1, 0
        heap[0, POSITION], heap[0, END] = 0, game.roots
        while left > 0:
            best = _highest(hand, trees)
            prize = hand[best] if best >= 0 else -np.inf
            bar = max(prize, game.outside) if game.stops else -np.inf
            if size == 0 or openings >= game.budget or not key[0] > bar:
                if not prize > game.outside:
                    break
                total += prize
                left -= 1
                hand[best] = -np.inf
                size = _without_tree(key, heap, size, best)
                continue
            v, s, tree = heap[0, BOX], heap[0, STATE], heap[0, ABOVE]
            heap[0, COPY] += 1
            if heap[0, COPY] == boxes[v, COUNT]:
                heap[0, POSITION] += 1
                if heap[0, POSITION] < heap[0, END]:
                    u = siblings[heap[0, POSITION]]
                    key[0], heap[0, BOX], heap[0, COPY] = index[boxes[u, INDEX_AT] + s], u, 0
                else:
                    size -= 1
                    _swap(key, heap, 0, size)
                _sink(key, heap, size)
            stream += _GOLDEN
            k = boxes[v, STATES]
            y = _draw(chances, boxes[v, LAW_AT] + s * k, k, _uniform(stream))
            spend += costs[boxes[v, COST_AT] + s * boxes[v, COST_ROW] + y * boxes[v, COST_STEP]]
            openings += 1
            tally.opened[v] += 1
            if tree < 0:
                if trees == hand.size:
                    hand = _longer(hand)
                tree, hand[trees] = trees, -np.inf
                trees += 1
            hand[tree] = max(hand[tree], rewards[boxes[v, REWARD_AT] + y])
            if boxes[v, CHILDREN] > 0:
                if size == key.size:
                    key, heap = _grown(key, heap, size + 1)
                at = boxes[v, LIST_AT] + y * boxes[v, LIST_STEP]
                u = siblings[at]
                key[size] = index[boxes[u, INDEX_AT] + y]
                heap[size, BOX], heap[size, STATE], heap[size, ABOVE] = u, y, tree
                heap[size, POSITION], heap[size, END], heap[size, COPY] = (
                    at, at + boxes[v, CHILDREN], 0
                )  # fmt: skip
                _rise(key, heap, size)
                size += 1
        total += left * game.outside
        i = episode - first
        out = tally.out
        out[PAYOFF, i], out[REWARD, i], out[SPEND, i] = total - spend, total, spend
        out[OPENINGS, i], out[ROUNDS, i], out[TIME, i] = openings, openings, 0.0
    return Lists(key, heap)
