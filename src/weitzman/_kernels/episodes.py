"""Episodes of an index policy, drawn at random.

Boxes that can be opened are held as *lists of siblings*, best first: the roots are one list, the
children of an opened box another. A heap holds the first closed box of each list, so an episode
costs O(openings * log openings) however many boxes or copies there are.

Every episode draws from a stream of its own, SplitMix64 started at a hash of key and episode
number. So nothing depends on how episodes are shared out among threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

_JIT = {"cache": True, "nogil": True, "error_model": "numpy"}

PAYOFF, REWARD, SPEND, OPENINGS, ROUNDS = range(5)  # rows of what is recorded
RECORDED = 5
BOX, STATE, POSITION, END, ABOVE, COPY = range(6)  # columns of a list in the heap
_FEW = 16  # states among which counting is faster than bisection
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Tables(NamedTuple):
    """All that an episode looks up; signs are such that higher is better."""

    index_at: np.ndarray  # (n,) where the indices of each box start
    index: np.ndarray
    siblings: np.ndarray  # lists of siblings, best first; the roots come first
    list_at: np.ndarray  # (n,) where the children of each box are listed
    list_step: np.ndarray  # (n,) how much further on they are listed for the next state
    children: np.ndarray  # (n,) how many they are
    count: np.ndarray
    law: np.ndarray
    reward: np.ndarray
    cost: np.ndarray
    states: np.ndarray  # (n,) how many each box has
    chances: np.ndarray  # cumulative laws, row by row
    chance_at: np.ndarray
    rewards: np.ndarray
    reward_at: np.ndarray
    costs: np.ndarray
    cost_at: np.ndarray
    cost_shape: np.ndarray


@njit(**_JIT)
def cumulate(data, row, size):
    """Cumulative distributions; from the last state that can occur on, they are above 1.

    ``data[row[i]:row[i] + size[i]]`` is a distribution. With ``u`` uniform on [0, 1), the number
    of entries not above ``u`` is a state drawn from it, never one of probability zero.
    """
    out = np.empty(data.size)
    for i in range(row.size):
        total, last = 0.0, row[i]
        for j in range(row[i], row[i] + size[i]):
            total += data[j]
            out[j] = total
            if data[j] > 0.0:
                last = j
        for j in range(row[i], last):
            out[j] /= total
        out[last : row[i] + size[i]] = 2.0
    return out


@njit(**_JIT)
def list_siblings(roots, child_at, child, index_at, index, states):
    """Lists of siblings, best first and equal ones by number: the columns of `Tables`.

    One child needs one list for all states of its parent; more need one for each.
    """
    n = child_at.size - 1
    list_at, step, size = np.empty(n, np.int64), np.zeros(n, np.int64), np.empty(n, np.int64)
    end = roots.size
    for v in range(n):
        m = child_at[v + 1] - child_at[v]
        list_at[v], size[v] = end, m
        if m > 1:
            step[v] = m
        end += m * states[v] if m > 1 else m
    out = np.empty(end, np.int64)
    out[: roots.size] = roots
    for v in range(n):
        m = size[v]
        if m == 1:
            out[list_at[v]] = child[child_at[v]]
        elif m > 1:
            own = child[child_at[v] : child_at[v + 1]]
            for y in range(states[v]):
                key = np.empty(m)
                for i in range(m):
                    key[i] = -index[index_at[own[i]] + y]
                by = np.argsort(key, kind="mergesort")
                for i in range(m):
                    out[list_at[v] + y * m + i] = own[by[i]]
    return out, list_at, step, size


@njit(inline="always", **_JIT)
def _scramble(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(inline="always", **_JIT)
def _stream(key, episode):
    """Where the stream of an episode starts."""
    return _scramble(key[1] + _scramble(key[0] ^ np.uint64(episode)))


@njit(inline="always", **_JIT)
def _uniform(stream):
    """A number from [0, 1) that the stream holds at this place."""
    return np.float64(_scramble(stream) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(inline="always", **_JIT)
def _draw(chances, at, k, u):
    """The state that ``u`` stands for."""
    y = 0
    if k <= _FEW:
        for j in range(k):
            y += chances[at + j] <= u
        return y
    while k > 0:
        half = (k + 1) >> 1
        y += half * (chances[at + y + half - 1] <= u)
        k -= half
    return y


@njit(inline="always", **_JIT)
def _before(key, heap, i, j):
    """Whether list i is to be served before j: higher index, lower box, earlier copy."""
    if key[i] != key[j]:
        return key[i] > key[j]
    if heap[i, BOX] != heap[j, BOX]:
        return heap[i, BOX] < heap[j, BOX]
    return heap[i, COPY] < heap[j, COPY]


@njit(inline="always", **_JIT)
def _swap(key, heap, i, j):
    key[i], key[j] = key[j], key[i]
    for c in range(6):
        heap[i, c], heap[j, c] = heap[j, c], heap[i, c]


@njit(inline="always", **_JIT)
def _sink(key, heap, size):
    """Restore the order of the heap after its top was replaced."""
    i = 0
    while True:
        j = 2 * i + 1
        if j + 1 < size and _before(key, heap, j + 1, j):
            j += 1
        if j >= size or not _before(key, heap, j, i):
            return
        _swap(key, heap, i, j)
        i = j


@njit(inline="always", **_JIT)
def _add(t, key, heap, size, position, end, state, above, best):
    """Add a list of siblings if its first box is worth opening; returns the size and the heap."""
    box = t.siblings[position]
    x = t.index[t.index_at[box] + state]
    if not x > best:
        return size, key, heap
    if size == key.size:
        more_key, more = np.empty(2 * size), np.empty((2 * size, 6), np.int64)
        more_key[:size], more[:size] = key, heap
        key, heap = more_key, more
    i, key[size] = size, x
    heap[i, BOX], heap[i, STATE], heap[i, POSITION], heap[i, END] = box, state, position, end
    heap[i, ABOVE], heap[i, COPY] = above, above * t.count[box]
    while i > 0 and _before(key, heap, i, (i - 1) >> 1):
        _swap(key, heap, i, (i - 1) >> 1)
        i = (i - 1) >> 1
    return size + 1, key, heap


@njit(inline="always", **_JIT)
def _advance(t, key, heap, size, best):
    """Let the list on top go on to its next copy or box; returns the size of the heap.

    Copies are numbered as if all were written out: those under copy a of the parent are
    ``a * count`` and up (modulo 2**64, which matters to ties among more copies than that only).
    """
    copies = t.count[heap[0, BOX]]
    heap[0, COPY] += 1
    if heap[0, COPY] - heap[0, ABOVE] * copies < copies:
        return size
    heap[0, POSITION] += 1
    if heap[0, POSITION] < heap[0, END]:
        box = t.siblings[heap[0, POSITION]]
        x = t.index[t.index_at[box] + heap[0, STATE]]
        if x > best:
            heap[0, BOX], heap[0, COPY], key[0] = box, heap[0, ABOVE] * t.count[box], x
            _sink(key, heap, size)
            return size
    size -= 1
    _swap(key, heap, 0, size)
    _sink(key, heap, size)
    return size


@njit(inline="always", **_JIT)
def _open(t, v, s, u):
    """The state that ``u`` stands for of box v after its parent showed s, its reward and cost."""
    k, c = t.states[v], t.cost[v]
    y = _draw(t.chances, t.chance_at[t.law[v]] + s * k, k, u)
    at, rows, cols = t.cost_at[c], t.cost_shape[c, 0], t.cost_shape[c, 1]
    at += (s * cols if rows > 1 else 0) + (y if cols > 1 else 0)
    return y, t.rewards[t.reward_at[t.reward[v]] + y], t.costs[at]


@njit(**_JIT)
def play(t, roots, outside, workers, stream_key, first, last, out, opened, key, heap):
    """Episodes ``first`` to ``last - 1``, recorded in the columns of ``out``.

    In each round the policy opens up to ``workers`` boxes whose indices exceed the best reward
    found before. ``opened`` counts openings of each box. Returns the heap, which may have grown.
    """
    batch = np.empty((workers, 3), np.int64)  # box, state, copy
    for episode in range(first, last):
        stream = _stream(stream_key, episode)
        best, spend, openings, rounds = outside, 0.0, 0, 0
        size, key, heap = _add(t, key, heap, 0, 0, roots, 0, 0, best)
        while size > 0 and key[0] > best:
            n = 0
            while n < workers and size > 0 and key[0] > best:
                batch[n, 0], batch[n, 1], batch[n, 2] = heap[0, BOX], heap[0, STATE], heap[0, COPY]
                size = _advance(t, key, heap, size, best)
                n += 1
            for i in range(n):
                stream += _GOLDEN
                y, reward, cost = _open(t, batch[i, 0], batch[i, 1], _uniform(stream))
                spend += cost
                best = max(best, reward)
                opened[batch[i, 0]] += 1
                batch[i, 1] = y
            for i in range(n):
                v, y = batch[i, 0], batch[i, 1]
                if t.children[v] > 0:
                    at = t.list_at[v] + y * t.list_step[v]
                    end = at + t.children[v]
                    size, key, heap = _add(t, key, heap, size, at, end, y, batch[i, 2], best)
            rounds += 1
            openings += n
        i = episode - first
        out[PAYOFF, i], out[REWARD, i], out[SPEND, i] = best - spend, best, spend
        out[OPENINGS, i], out[ROUNDS, i] = openings, rounds
    return key, heap


@njit(**_JIT)
def moments(out, n, mean, square):
    """Mean of the first ``n`` entries of each row, and the sum of squares around it."""
    for r in range(out.shape[0]):
        total = 0.0
        for i in range(n):
            total += out[r, i]
        centre, spread = total / n, 0.0
        for i in range(n):
            spread += (out[r, i] - centre) ** 2
        mean[r], square[r] = centre, spread


@njit(**_JIT)
def count_below(row, n, level):
    """How many of the first ``n`` entries are below ``level``."""
    found = 0
    for i in range(n):
        found += row[i] < level
    return found
