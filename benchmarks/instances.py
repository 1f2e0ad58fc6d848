"""Seeded problems for the benchmarks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weitzman import Forest
from weitzman._pool import Pool, starts
from weitzman._types import FloatArray, IntArray

CHEAP, DEAR = 0.005, 0.05  # costs; rewards lie between 0 and 1
CONCENTRATION = 0.5  # of the Dirichlet distribution of every row of a law: uneven, but no zeros


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Lines of equal length, as plain arrays and as a forest.

    Attributes
    ----------
    laws : (lines, length, k, k) array
        The rows of the first box of a line are equal.
    cost : (lines, length) array
    rewards : (k,) array
        In rising order, shared by all boxes.
    forest : Forest
        Box ``i`` of line ``l`` has the number ``l * length + i``.
    """

    laws: FloatArray
    cost: FloatArray
    rewards: FloatArray
    forest: Forest

    def one(self, line: int) -> Forest:
        """One of the lines as a forest of its own."""
        return _line_forest(self.laws[line : line + 1], self.cost[line : line + 1], self.rewards)


def many_lines(lines: int, length: int, k: int, seed: int = 0) -> Lines:
    """Lines that all differ in laws and costs."""
    rng = np.random.default_rng([seed, lines, length, k])
    laws = rng.dirichlet(np.full(k, CONCENTRATION), size=(lines, length, k))
    laws[:, 0] = laws[:, 0, :1]
    cost = rng.uniform(CHEAP, DEAR, (lines, length))
    rewards = np.sort(rng.random(k))
    return Lines(laws, cost, rewards, _line_forest(laws, cost, rewards))


def _line_forest(laws: FloatArray, cost: FloatArray, rewards: FloatArray) -> Forest:
    lines, length, k, _ = laws.shape
    parent = np.arange(lines * length) - 1
    parent[::length] = -1
    return Forest.from_arrays(
        parent=parent, cost=cost.reshape(-1), rewards=rewards, law=laws.reshape(-1, k, k)
    )


def random_trees(boxes: int, seed: int = 0, count: int = 1) -> Forest:
    """Random trees of 1 to 199 boxes with 2 to 8 states, no two of them alike.

    Every other tree is bushy (a box hangs on any earlier one), the others are deep (on one of the
    last four). Each box has rewards of its own. With ``count`` above 1 each box stands for 1 to
    ``count`` copies.
    """
    rng = np.random.default_rng([seed, boxes, count])
    parent = _random_parents(boxes, rng)
    k = rng.integers(2, 9, boxes)
    given = np.where(parent < 0, 1, k[parent])
    shape = np.column_stack([given, k])
    laws = _random_laws(shape, rng)
    row = np.column_stack([np.ones(boxes, np.int64), k])
    rewards = Pool(rng.random(k.sum()), starts(row), row)
    costs = Pool(
        rng.uniform(CHEAP, DEAR, boxes), np.arange(boxes + 1), np.ones((boxes, 2), np.int64)
    )
    own = np.arange(boxes)
    return Forest(
        parent=parent, law=own, reward=own, cost=own, laws=laws, rewards=rewards, costs=costs,
        count=rng.integers(1, count + 1, boxes),
    )  # fmt: skip


def first_trees(forest: Forest, boxes: int) -> Forest:
    """The whole trees among the first boxes of such a forest, as a forest of their own."""
    f = forest
    root = np.append(f.roots, len(f))
    n = int(root[max(1, np.searchsorted(root, boxes, side="right") - 1)])

    def head(pool: Pool) -> Pool:
        return Pool(pool.data[: pool.start[n]], pool.start[: n + 1], pool.shape[:n])

    return Forest(
        parent=f.parent[:n], law=f.law[:n], reward=f.reward[:n], cost=f.cost[:n],
        laws=head(f.laws), rewards=head(f.rewards), costs=head(f.costs), count=f.count[:n],
    )  # fmt: skip


def _random_parents(boxes: int, rng: np.random.Generator) -> IntArray:
    sizes = rng.integers(1, 200, boxes // 100 + 200)
    first = np.concatenate([[0], np.cumsum(sizes)])
    while first[-1] < boxes:
        first = np.concatenate([first, first[-1] + np.cumsum(rng.integers(1, 200, 200))])
    first = first[first < boxes]
    tree = np.searchsorted(first, np.arange(boxes), side="right") - 1
    place = np.arange(boxes) - first[tree]
    back = np.where(tree % 2 == 0, place, np.minimum(place, 4))
    parent = np.arange(boxes) - 1 - (rng.random(boxes) * back).astype(np.int64)
    return np.where(place == 0, -1, parent)


def _random_laws(shape: IntArray, rng: np.random.Generator) -> Pool:
    start = starts(shape)
    weight = rng.standard_gamma(CONCENTRATION, start[-1]) + 1e-12
    row_size = np.repeat(shape[:, 1], shape[:, 0])
    row_start = np.cumsum(row_size) - row_size
    total = np.add.reduceat(weight, row_start)
    return Pool(weight / np.repeat(total, row_size), start, shape)


def copies(depth: int, count: int, seed: int = 0) -> Forest:
    """A box with ``count`` copies, under each of which hang ``count`` copies of the next, ...

    Great prizes are rare, so that it is worth opening many of the ``count ** depth`` boxes.
    """
    rng = np.random.default_rng([seed, depth, count])
    rewards = np.array([0.0, 1.0, 100.0, 1e4, 1e6])
    odds = np.array([1.0, 1e-1, 1e-3, 1e-5, 1e-7])
    law = odds * rng.uniform(0.5, 1.5, (depth, 5, 5))
    law /= law.sum(axis=2, keepdims=True)
    law[0] = law[0, :1]
    return Forest.from_arrays(
        parent=np.arange(depth) - 1, cost=rng.uniform(0.1, 0.2, depth), rewards=rewards, law=law,
        count=np.full(depth, count),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Signals:
    """A line whose boxes show signals only, but for the last, which holds a reward."""

    laws: FloatArray  # (length, k, k)
    cost: FloatArray  # (length,)
    rewards: FloatArray  # (k,) of the last box
    forest: Forest


def signals(length: int, k: int, seed: int = 0) -> Signals:
    """A line of signals with a prize at its end."""
    rng = np.random.default_rng([seed, length, k])
    laws = rng.dirichlet(np.full(k, CONCENTRATION), size=(length, k))
    laws[0] = laws[0, :1]
    cost = rng.uniform(CHEAP, DEAR, length) / length
    prizes = np.sort(rng.random(k))
    rewards = np.full((length, k), -np.inf)
    rewards[-1] = prizes
    forest = Forest.from_arrays(
        parent=np.arange(length) - 1, cost=cost, rewards=rewards, law=laws, outside=0.0
    )
    return Signals(laws, cost, prizes, forest)
