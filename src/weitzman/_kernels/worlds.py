"""Following an index policy on a graph of boxes, in worlds whose states are all drawn already."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .jit import helper, kernel


class Graph(NamedTuple):
    """What the policy looks up; signs are such that higher is better."""

    up: np.ndarray  # (n,) the parent that was kept, -1 for none
    index_at: np.ndarray
    index: np.ndarray  # of each box, by the state of the parent that was kept
    above_at: np.ndarray  # parents of box i: above[above_at[i]:above_at[i + 1]]
    above: np.ndarray
    step: np.ndarray  # of each parent: how far apart its states are in what follows
    known_at: np.ndarray
    known: np.ndarray  # of each box, by the states of all parents
    before_at: np.ndarray  # boxes to be opened before box i, parents first
    before: np.ndarray


@helper()
def _index(graph, states, open_, v):
    """The index of a closed box: that of all its parents if they are open; -inf if none is."""
    row = 0
    for i in range(graph.above_at[v], graph.above_at[v + 1]):
        p = graph.above[i]
        if not open_[p]:
            p = graph.up[v]
            return graph.index[graph.index_at[v] + states[p]] if open_[p] else -np.inf
        row += states[p] * graph.step[i]
    return graph.known[graph.known_at[v] + row]


@helper()
def _best_box(graph, states, open_, best):
    """The closed box of highest index above the best so far, or -1."""
    top, found = best, -1
    for v in range(graph.up.size):
        if not open_[v]:
            x = _index(graph, states, open_, v)
            if x > top:
                top, found = x, v
    return found


@kernel()
def follow(graph, states, rewards, costs, outside):
    """Best reward, spend and openings in each world (a row each).

    To open the box that the policy wants, first what must be open before it, one box at a time.
    """
    worlds, n = states.shape
    out = np.empty((3, worlds))
    open_ = np.empty(n, np.bool_)
    for w in range(worlds):
        open_[:] = False
        best, spend, openings = outside, 0.0, 0
        while True:
            v = _best_box(graph, states[w], open_, best)
            if v < 0:
                break
            for i in range(graph.before_at[v], graph.before_at[v + 1]):
                if not open_[graph.before[i]]:
                    v = graph.before[i]
                    break
            open_[v] = True
            spend += costs[w, v]
            best = max(best, rewards[w, v])
            openings += 1
        out[0, w], out[1, w], out[2, w] = best, spend, openings
    return out
