"""Episodes of an index policy, drawn at random.

Boxes that can be opened are held as *lists of siblings*, best first: the roots are one list, the
children of an opened box another. A heap holds the first closed box of each list, so an episode
costs O(openings * log openings) however many boxes or copies there are.

Every draw is a hash of the seed, the episode, and the box: its number, which copy it is below its
parent, and which copies the boxes above it are (SplitMix64 as a counter-based generator). So
nothing depends on how episodes are shared out among threads, and two policies see the same state
whenever they open the same box in the same episode: common random numbers.

If several rewards may be taken, at most one from each tree, each list knows its tree, and the best
reward found in every tree is at hand. The higher of the two is the next move: a box is opened, or a
reward taken and its tree closed. A group of trees closes when as many as its quota are taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .jit import copy, helper, kernel

PAYOFF, REWARD, SPEND, OPENINGS, ROUNDS, TIME = range(6)  # rows of what is recorded
RECORDED = 6
# columns of the table of boxes: where its numbers start, and how far apart they are
INDEX_AT, LAW_AT, REWARD_AT, COST_AT, LIST_AT, COST_ROW, COST_STEP, LIST_STEP = range(8)
STATES, CHILDREN, COUNT, FACTOR_AT, FACTOR_ROW, FACTOR_STEP = range(8, 14)
COLUMNS = 14
# columns of a list in the heap: its first closed box, the state of the parent, where the list goes
# on and ends, the copy of the parent, that of the box, their tree (-1 for the roots), and the draws
# of the parent
BOX, STATE, POSITION, END, ABOVE, COPY, TREE, DRAWS = range(8)
HEAP_COLUMNS = 8
_FEW = 16  # states among which counting is faster than bisection
_ZERO = np.int64(0)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Tables(NamedTuple):
    """All that an episode looks up; signs are such that higher is better."""

    boxes: np.ndarray  # (n, COLUMNS)
    index: np.ndarray
    siblings: np.ndarray  # lists of siblings, best first; the roots come first
    chances: np.ndarray  # cumulative laws
    rewards: np.ndarray
    costs: np.ndarray
    factors: np.ndarray  # empty if time costs nothing
    durations: np.ndarray  # beside the factors


class Game(NamedTuple):
    """How episodes are played: see `play`."""

    roots: int  # how many there are
    outside: float
    workers: int
    budget: int
    stops: bool
    stream: np.ndarray  # two words, from which the draws of all episodes follow
    prizes: int = 1  # rewards that may be taken, one from each tree
    group: np.ndarray = np.empty(0, np.int64)  # by box, that of its tree; empty without quotas
    quota: np.ndarray = np.empty(0, np.int64)  # by group


class Tally(NamedTuple):
    """What is recorded: a column for each episode, and how often each box was opened."""

    out: np.ndarray
    opened: np.ndarray


class Lists(NamedTuple):
    """Lists of siblings by the index of their first closed box."""

    key: np.ndarray
    lists: np.ndarray


def room() -> Lists:
    """Room for some lists of siblings, which grows."""
    return Lists(np.empty(64), np.empty((64, HEAP_COLUMNS), np.int64))


def episode_work(tables: Tables, *rest: object) -> float:
    """Episodes, as many as are recorded, with a guess of how many boxes are opened in each.

    Of different boxes few are opened, but of copies often all.
    """
    tally, n = next(x for x in rest if isinstance(x, Tally)), len(tables.boxes)
    copies = float(tables.boxes[:, COUNT].sum(dtype=np.float64)) - n
    return tally.out.shape[1] * 10 * (1 + min(n, 10) + copies)


@kernel()
def cumulate(data: FloatArray, row: IntArray, size: IntArray) -> FloatArray:
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
        for j in range(last, row[i] + size[i]):
            out[j] = 2.0
    return out


@kernel()
def list_siblings(
    roots: IntArray, child_at: IntArray, child: IntArray, index: FloatArray, boxes: IntArray
) -> IntArray:
    """Lists of siblings, best first and equal ones by number; fills in where they are.

    One child needs one list for all states of its parent; more need one for each.
    """
    end = roots.size
    for v in range(boxes.shape[0]):
        m = child_at[v + 1] - child_at[v]
        step = m if m > 1 else 0
        boxes[v, LIST_AT], boxes[v, CHILDREN], boxes[v, LIST_STEP] = end, m, step
        end += m + step * (boxes[v, STATES] - 1)
    out = np.empty(end, np.int64)
    copy(roots, _ZERO, roots.size, out, _ZERO)
    for v in range(boxes.shape[0]):
        at, m = boxes[v, LIST_AT], boxes[v, CHILDREN]
        if m == 1:
            out[at] = child[child_at[v]]
        elif m > 1:
            own, key = child[child_at[v] : child_at[v + 1]], np.empty(m)
            for y in range(boxes[v, STATES]):
                for i in range(m):
                    key[i] = -index[boxes[own[i], INDEX_AT] + y]
                by = np.argsort(key, kind="mergesort")
                for i in range(m):
                    out[at + y * m + i] = own[by[i]]
    return out


@helper()
def _scramble(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@helper()
def _stream(key, episode):
    """Where the stream of an episode starts."""
    return _scramble(key[1] + _scramble(key[0] ^ np.uint64(episode)))


@helper()
def _draws(above, box, copy_):
    """What distinguishes a copy of a box from all others, given that of its parent (0 for none)."""
    return _scramble(above + _GOLDEN * np.uint64(box + 1) + np.uint64(copy_))


@helper()
def _uniform(place):
    """A number from [0, 1): the stream of the episode plus what distinguishes the box."""
    return np.float64(_scramble(place) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@helper()
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


@helper()
def _before(key, heap, i, j):
    """Whether list i is to be served before j: index, box, state, copy decide."""
    if key[i] != key[j]:
        return key[i] > key[j]
    if heap[i, BOX] != heap[j, BOX]:
        return heap[i, BOX] < heap[j, BOX]
    if heap[i, STATE] != heap[j, STATE]:  # as when evaluating, where copies have no numbers
        return heap[i, STATE] < heap[j, STATE]
    return heap[i, COPY] < heap[j, COPY]


@helper()
def _swap(key, heap, i, j):
    key[i], key[j] = key[j], key[i]
    for c in range(HEAP_COLUMNS):
        heap[i, c], heap[j, c] = heap[j, c], heap[i, c]


@helper()
def _sink(key, heap, size):
    """Restore the order of the heap after its top was replaced."""
    i = 0
    while True:
        j = 2 * i + 1
        if j + 1 < size and _before(key, heap, j + 1, j):
            j += 1
        if j >= size or not _before(key, heap, j, i):
            break
        _swap(key, heap, i, j)
        i = j


@helper()
def _rise(key, heap, i):
    """Restore the order of the heap after entry i was added at its end."""
    while i > 0 and _before(key, heap, i, (i - 1) >> 1):
        _swap(key, heap, i, (i - 1) >> 1)
        i = (i - 1) >> 1


@helper()
def _grown(key, heap, least):
    """The same heap with more room."""
    room = max(2 * key.size, least)
    more_key, more = np.empty(room), np.empty((room, HEAP_COLUMNS), np.int64)
    copy(key, _ZERO, key.size, more_key, _ZERO)
    for i in range(key.size):
        copy(heap[i], _ZERO, heap.shape[1], more[i], _ZERO)
    return more_key, more


@helper()
def _longer(hand, owner):
    """The same trees with more room."""
    more, groups = np.empty(2 * hand.size), np.empty(2 * hand.size, np.int64)
    copy(hand, _ZERO, hand.size, more, _ZERO)
    copy(owner, _ZERO, owner.size, groups, _ZERO)
    return more, groups


@helper()
def _highest(hand, trees):
    """The open tree with the best reward in hand, the first of equals; closed trees have none."""
    best = -1
    for t in range(trees):
        if best < 0 or hand[t] > hand[best]:
            best = t
    return best


@helper()
def _close(tables, game, left, owner, key, heap, size):
    """The heap without the lists of closed trees (``owner`` -1), and how many lists are left.

    Roots whose group has no place left go, too.
    """
    kept = 0
    for i in range(size):
        tree = heap[i, TREE]
        if tree >= 0 and owner[tree] < 0:
            continue
        _swap(key, heap, kept, i)
        if tree < 0 and game.group.size > 0 and left[game.group[heap[kept, BOX]]] <= 0:
            at = heap[kept, POSITION]
            while at < heap[kept, END] and left[game.group[tables.siblings[at]]] <= 0:
                at += 1
            if at == heap[kept, END]:
                continue
            v = tables.siblings[at]
            key[kept] = tables.index[tables.boxes[v, INDEX_AT]]
            heap[kept, POSITION], heap[kept, BOX], heap[kept, COPY] = at, v, 0
        kept += 1
    for i in range(1, kept):
        _rise(key, heap, i)
    return kept


@kernel(work=episode_work)
def play(tables: Tables, game: Game, first: int, last: int, tally: Tally, lists: Lists) -> Lists:
    """Episodes ``first`` to ``last - 1``, recorded in the columns of ``tally.out``.

    In each round the policy opens up to ``workers`` boxes whose indices exceed the best reward
    found before (any boxes if it never ``stops``), ``budget`` boxes in all at most. A round takes
    as long as its slowest box; costs are paid when it begins. With several prizes, one box is
    opened at a time, and a reward is taken where nothing exceeds it. Returns the heap, which may
    have grown.

    Copies are numbered as if all were written out: those under copy a of the parent are
    ``a * count`` and up (modulo 2**64, which matters to ties among more copies than that only).
    """
    # a tuple costs reference counts
    boxes, index, siblings, chances, rewards, costs, factors, durations = tables
    timed, several = factors.size > 0, game.prizes > 1 or game.quota.size > 0
    roots, outside, workers, budget, stops = (
        game.roots, game.outside, game.workers, game.budget, game.stops
    )  # fmt: skip
    out, opened = tally
    key, heap = lists
    batch = np.empty((workers, 5), np.int64)  # box, state, copy, tree, draws
    hand, owner = np.empty(64), np.empty(64, np.int64)  # of each tree: best reward, group
    left = np.empty(game.quota.size, np.int64)
    for episode in range(first, last):
        stream = _stream(game.stream, episode)
        best, spend, openings, rounds = outside, 0.0, 0, 0
        worth, time = 1.0, 0.0
        total, places, trees, top = 0.0, game.prizes, 0, -1
        copy(game.quota, _ZERO, game.quota.size, left, _ZERO)
        bar = best if stops else -np.inf
        u = siblings[0]
        key[0], size = index[boxes[u, INDEX_AT]], 1
        heap[0, BOX], heap[0, STATE], heap[0, ABOVE], heap[0, COPY] = u, 0, 0, 0
        heap[0, POSITION], heap[0, END], heap[0, TREE], heap[0, DRAWS] = 0, roots, -1, 0
        if several:  # a group may have no place at all
            size = _close(tables, game, left, owner, key, heap, size)
        hole = False  # the list on top is exhausted, and another one may soon take its place
        while True:
            if several:
                top = _highest(hand, trees)
                best = max(outside, hand[top]) if top >= 0 else outside
                bar = best if stops else -np.inf
            # later on, what lies below the bar now may count again if a reward is taken
            floor = -np.inf if several else bar
            n, most = 0, min(workers, budget - openings)
            while n < most:
                if hole:
                    size, hole = size - 1, False
                    _swap(key, heap, 0, size)
                    _sink(key, heap, size)
                if size == 0 or not key[0] > bar:
                    break
                v, s = heap[0, BOX], heap[0, STATE]
                batch[n, 0], batch[n, 1], batch[n, 2] = v, s, heap[0, COPY]
                batch[n, 3] = heap[0, TREE]
                own = heap[0, COPY] - heap[0, ABOVE] * boxes[v, COUNT]
                batch[n, 4] = np.int64(_draws(np.uint64(heap[0, DRAWS]), v, own))
                n += 1
                heap[0, COPY] += 1
                if own + 1 < boxes[v, COUNT]:
                    continue
                heap[0, POSITION] += 1
                if heap[0, TREE] < 0 and game.group.size > 0:
                    while heap[0, POSITION] < heap[0, END]:  # past groups without a place left
                        if left[game.group[siblings[heap[0, POSITION]]]] > 0:
                            break
                        heap[0, POSITION] += 1
                x = -np.inf
                if heap[0, POSITION] < heap[0, END]:
                    v = siblings[heap[0, POSITION]]
                    x = index[boxes[v, INDEX_AT] + s]
                if x > floor:
                    key[0], heap[0, BOX], heap[0, COPY] = x, v, heap[0, ABOVE] * boxes[v, COUNT]
                    _sink(key, heap, size)
                else:
                    hole = True
            if n == 0:
                if not several or top < 0 or not hand[top] > outside:
                    break
                total += hand[top]
                places -= 1
                if places == 0:
                    break
                if hole:
                    size, hole = size - 1, False
                    _swap(key, heap, 0, size)
                    _sink(key, heap, size)
                group = owner[top]
                hand[top], owner[top] = -np.inf, -1
                if game.group.size > 0:
                    left[group] -= 1
                    if left[group] == 0:  # with the last place of a group all its trees close
                        for t in range(owner.size):
                            if owner[t] == group:
                                hand[t], owner[t] = -np.inf, -1
                size = _close(tables, game, left, owner, key, heap, size)
                continue
            factor, pause = 1.0, 0.0
            for i in range(n):
                v, s = batch[i, 0], batch[i, 1]
                k = boxes[v, STATES]
                u01 = _uniform(stream + np.uint64(batch[i, 4]))
                y = _draw(chances, boxes[v, LAW_AT] + s * k, k, u01)
                paid = costs[boxes[v, COST_AT] + s * boxes[v, COST_ROW] + y * boxes[v, COST_STEP]]
                if timed:
                    at = boxes[v, FACTOR_AT] + s * boxes[v, FACTOR_ROW] + y * boxes[v, FACTOR_STEP]
                    factor, pause = min(factor, factors[at]), max(pause, durations[at])
                    paid *= worth
                spend += paid
                reward = rewards[boxes[v, REWARD_AT] + y]
                opened[v] += 1
                batch[i, 1] = y
                if not several:
                    best = max(best, reward)
                    continue
                if batch[i, 3] < 0:  # a root opens a tree
                    if trees == hand.size:
                        hand, owner = _longer(hand, owner)
                    batch[i, 3], hand[trees] = trees, -np.inf
                    owner[trees] = game.group[v] if game.group.size > 0 else 0
                    trees += 1
                hand[batch[i, 3]] = max(hand[batch[i, 3]], reward)
            worth *= factor
            time += pause
            if not several:
                bar = best if stops else bar
                floor = bar
            if size + n > key.size:
                key, heap = _grown(key, heap, size + n)
            for i in range(n):
                v, y = batch[i, 0], batch[i, 1]
                if boxes[v, CHILDREN] == 0:
                    continue
                at = boxes[v, LIST_AT] + y * boxes[v, LIST_STEP]
                u = siblings[at]
                x = index[boxes[u, INDEX_AT] + y]
                if x > floor:
                    j, above = 0 if hole else size, batch[i, 2]
                    key[j], heap[j, BOX], heap[j, STATE] = x, u, y
                    heap[j, POSITION], heap[j, END] = at, at + boxes[v, CHILDREN]
                    heap[j, ABOVE], heap[j, COPY] = above, above * boxes[u, COUNT]
                    heap[j, TREE], heap[j, DRAWS] = batch[i, 3], batch[i, 4]
                    if hole:
                        _sink(key, heap, size)
                        hole = False
                    else:
                        _rise(key, heap, size)
                        size += 1
            rounds += 1
            openings += n
        i = episode - first
        best = total + places * outside if several else best
        if timed:
            best *= worth
        out[PAYOFF, i], out[REWARD, i], out[SPEND, i] = best - spend, best, spend
        out[OPENINGS, i], out[ROUNDS, i], out[TIME, i] = openings, rounds, time
    return Lists(key, heap)
