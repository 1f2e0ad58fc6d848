"""What the engine is measured against: simpler work, done as well as it can be."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit

from weitzman import Forest
from weitzman._common.arrays import FloatArray, IntArray
from weitzman._kernels.blocks import aligned, padded
from weitzman._kernels.boxes import mix, transpose
from weitzman._kernels.lanes import keep, pointer

_JIT = {"cache": True, "nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}
_BATCH = 64  # matrix products of one shape in one call of NumPy: their results stay in the cache


# -- the Bellman table of a line, on the rewards only --------------------------------------------
#
# table[y, x]: value of going on after the last box showed y, when the best of the others is the
# x-th reward. It gives the value of a line and when to stop on it, but no index: lines cannot be
# ranked by it.


def numpy_loop(laws: FloatArray, cost: FloatArray, rewards: FloatArray) -> float:
    """The value of one line, as a user would write it in NumPy."""
    level = np.arange(len(rewards))
    best = np.maximum.outer(level, level)
    table = rewards[best]
    for law, c in zip(laws[:0:-1], cost[:0:-1], strict=True):
        go_on = np.maximum(law @ table - c, rewards)
        table = go_on[level[:, None], best]
    return max(0.0, float(laws[0, 0] @ table[:, 0] - cost[0]))


@njit(**_JIT)
def bellman_textbook(laws, cost, rewards, root):
    """Values of opening the first box of each line, ``root[line, x]``: three nested loops."""
    lines, length, k, _ = laws.shape
    table, new = np.empty((k, k)), np.empty((k, k))
    for line in range(lines):
        for y in range(k):
            for x in range(k):
                table[y, x] = rewards[line, max(x, y)]
        for i in range(length - 1, -1, -1):
            for s in range(k if i > 0 else 1):
                for x in range(k):
                    new[s, x] = -cost[line, i]
                for y in range(k):
                    p = laws[line, i, s, y]
                    for x in range(k):
                        new[s, x] += p * table[y, x]
                if i > 0:
                    for x in range(k):
                        new[s, x] = max(new[s, x], rewards[line, x])
                    for x in range(s):
                        new[s, x] = new[s, s]
            table, new = new, table
        root[line] = table[0]


@njit(**_JIT)
def bellman(laws, cost, rewards, root):
    """The same with four terms of the sum at a time, which halves the loads and stores."""
    lines, length, k, _ = laws.shape
    table, new = np.empty((k, k)), np.empty((k, k))
    for line in range(lines):
        for y in range(k):
            for x in range(k):
                table[y, x] = rewards[line, max(x, y)]
        for i in range(length - 1, -1, -1):
            for s in range(k if i > 0 else 1):
                for x in range(k):
                    new[s, x] = -cost[line, i]
                y = 0
                while y + 4 <= k:
                    p0, p1 = laws[line, i, s, y], laws[line, i, s, y + 1]
                    p2, p3 = laws[line, i, s, y + 2], laws[line, i, s, y + 3]
                    for x in range(k):
                        new[s, x] += (
                            p0 * table[y, x] + p1 * table[y + 1, x]
                            + p2 * table[y + 2, x] + p3 * table[y + 3, x]
                        )  # fmt: skip
                    y += 4
                while y < k:
                    p0 = laws[line, i, s, y]
                    for x in range(k):
                        new[s, x] += p0 * table[y, x]
                    y += 1
                if i > 0:
                    for x in range(k):
                        new[s, x] = max(new[s, x], rewards[line, x])
                    for x in range(s):
                        new[s, x] = new[s, s]
            table, new = new, table
        root[line] = table[0]


# -- the matrix products that a solve needs, and nothing else ------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """The products of a solve: (states of the parent x own states) by (own states x width).

    The other factor is all ones, in the cache, and the same for every box: no engine has it better.
    """

    laws: FloatArray
    start: IntArray  # where the law of each box starts
    shape: IntArray  # (boxes, 2)
    width: IntArray  # (boxes,) columns of the other factor
    laid: FloatArray  # the laws once more, as the engine's product reads them
    laid_at: IntArray
    groups: list[tuple[FloatArray, int]]  # and once more, those of one shape and width together

    @classmethod
    def of(cls, forest: Forest, width: IntArray) -> Products:
        """Those of a forest, from the number of columns for each box."""
        f = forest
        start, shape = f.laws.start[f.law], f.laws.shape[f.law]
        laid, laid_at = _lay_out(f.laws.data, start, shape)
        key = np.column_stack([shape, width])
        by = np.lexsort(key.T)
        cuts = np.flatnonzero((np.diff(key[by], axis=0) != 0).any(axis=1)) + 1
        groups = []
        for boxes in np.split(by, cuts):
            rows, cols, w = key[boxes[0]]
            take = start[boxes][:, None] + np.arange(rows * cols)
            groups.append((f.laws.data[take].reshape(-1, rows, cols), int(w)))
        return cls(f.laws.data, start, shape, width, laid, laid_at, groups)

    @property
    def operations(self) -> float:
        """Multiplications and additions in all."""
        return 2.0 * float((self.shape.prod(axis=1) * self.width).sum())

    def bare(self) -> float:
        """By the inner product of the engine. Returns an entry of the last product: 1."""
        return float(_bare(self.laid, self.laid_at, self.shape, self.width))

    def with_layout(self) -> float:
        """The same from the laws as a forest stores them, laid out one by one on the way."""
        return float(_with_layout(self.laws, self.start, self.shape, self.width))

    def with_numpy(self) -> float:
        """The same by NumPy, 64 products of one shape and width in one call."""
        last = 0.0
        for laws, w in self.groups:
            _, rows, cols = laws.shape
            ones, out = np.ones((cols, w)), np.empty((_BATCH, rows, w))
            for i in range(0, len(laws), _BATCH):
                some = laws[i : i + _BATCH]
                last = np.matmul(some, ones, out=out[: len(some)])[-1, -1, -1]
        return float(last)


@njit(**_JIT)
def _lay_out(laws, start, shape):
    at = np.zeros(start.size + 1, np.int64)
    for i in range(start.size):
        at[i + 1] = at[i] + shape[i, 1] * padded(shape[i, 0])
    out = aligned(at[-1])
    for i in range(start.size):
        law = pointer(laws, start[i])
        transpose(law, shape[i, 0], shape[i, 1], pointer(out, at[i]))
    keep(out)
    return out, at


@njit(**_JIT)
def _bare(laid, at, shape, width):
    ones, out, _ = _room(shape, width)
    for i in range(width.size):
        lanes, law = padded(shape[i, 0]), pointer(laid, at[i])
        mix(pointer(ones, 0), shape[i, 1], law, lanes, width[i], pointer(out, 0))
    keep(ones)
    return out[0]


@njit(**_JIT)
def _with_layout(laws, start, shape, width):
    ones, out, law = _room(shape, width)
    for i in range(width.size):
        rows, cols, lanes = shape[i, 0], shape[i, 1], padded(shape[i, 0])
        transpose(pointer(laws, start[i]), rows, cols, pointer(law, 0))
        factor, product = pointer(ones, 0), pointer(out, 0)
        mix(factor, cols, pointer(law, 0), lanes, width[i], product)
    keep(ones)
    keep(law)
    return out[0]


@njit(**_JIT)
def _room(shape, width):
    """A factor of ones, a place for the largest product, and one for the largest law."""
    most = padded(shape.max())
    size = most * (width.max() + 8)  # the engine rounds the width up
    ones = aligned(size)
    ones[:] = 1.0
    return ones, aligned(size), aligned(most * most)


# -- the recursion itself, without any art -------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """P(X > x | s) as steps at rising breakpoints, one row for each s; 1 below the first."""

    at: FloatArray
    above: FloatArray

    def on(self, grid: FloatArray) -> FloatArray:
        i = np.searchsorted(self.at, grid, side="right")
        return np.column_stack([np.ones(len(self.above)), self.above])[:, i]


def plain_solve(forest: Forest) -> tuple[float, list[FloatArray]]:
    """Value and indices of a forest with fixed costs above 0 and a reward in every state.

    The recursion on the union of all breakpoints, nothing dropped and no care for speed: to check
    answers.
    """
    f = forest
    children: list[list[int]] = [[] for _ in range(len(f) + 1)]
    for v, up in enumerate(f.parent.tolist()):
        children[up].append(v)  # those of -1, the roots, end up last
    value: dict[int, _Steps] = {}
    index: list[FloatArray] = [np.empty(0)] * len(f)
    for v in _from_the_leaves(children):
        law, reward = f.laws[int(f.law[v])], f.rewards[int(f.reward[v])][0]
        cost = float(f.costs[int(f.cost[v])][0, 0])
        grid = np.unique(np.concatenate([reward, *(value[u].at for u in children[v])]))
        after = np.where(grid < reward[:, None], 1.0, _best_of(f, value, children[v], grid))
        index[v], value[v] = _cap(grid, law @ after, cost)
    roots = children[-1]
    grid = np.unique(np.concatenate([[f.outside], *(value[r].at for r in roots)]))
    best = np.reshape(_best_of(f, value, roots, grid), -1)[:-1]
    area = (best * np.diff(grid))[grid[:-1] >= f.outside]
    return f.outside + math.fsum(area), index


def _best_of(
    forest: Forest, value: dict[int, _Steps], boxes: list[int], grid: FloatArray
) -> FloatArray | float:
    """P(the best of the boxes and their copies > x), by logarithms so that no digit is lost."""
    with np.errstate(divide="ignore"):
        logs = [int(forest.count[u]) * np.log1p(-np.minimum(value[u].on(grid), 1)) for u in boxes]
    return -np.expm1(sum(logs)) if logs else 0.0


def _cap(grid: FloatArray, above: FloatArray, cost: float) -> tuple[FloatArray, _Steps]:
    """Indices and the capped value of W with P(W > grid[j] | s) = above[s, j]."""
    area = np.zeros_like(above)  # E (W - grid[j])^+
    area[:, :-1] = np.cumsum((above[:, :-1] * np.diff(grid))[:, ::-1], axis=1)[:, ::-1]
    first = (area > cost).sum(axis=1)  # the index lies in the interval below this breakpoint
    rows = np.arange(len(above))
    height = np.where(first > 0, above[rows, first - 1], 1.0)
    index = grid[first] - (cost - area[rows, first]) / height
    points = np.unique(np.concatenate([grid[grid < index.max()], index]))
    steps = _Steps(grid, above).on(points)
    return index, _Steps(points, np.where(points >= index[:, None], 0.0, steps))


def _from_the_leaves(children: list[list[int]]) -> list[int]:
    order, stack = [], list(children[-1])
    while stack:
        order.append(stack.pop())
        stack.extend(children[order[-1]])
    return order[::-1]
