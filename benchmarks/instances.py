"""Seeded problems for the benchmarks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weitzman import Forest
from weitzman._common.arrays import FloatArray, IntArray
from weitzman.forest.columns import Pool, starts

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
    rewards : (lines, k) array
        In rising order, shared by the boxes of a line.
    forest : Forest
        Box ``i`` of line ``l`` has the number ``l * length + i``.
    """

    laws: FloatArray
    cost: FloatArray
    rewards: FloatArray
    forest: Forest

    def describe(self) -> Forest:
        """The forest from the arrays, as a user would get it."""
        return _line_forest(self.laws, self.cost, self.rewards)

    def one(self, line: int) -> Forest:
        """One of the lines as a forest of its own."""
        only = slice(line, line + 1)
        return _line_forest(self.laws[only], self.cost[only], self.rewards[only])


def many_lines(
    lines: int, length: int, k: int, seed: int = 0, *, shared_rewards: bool = False
) -> Lines:
    """Lines that all differ in laws, costs and rewards; fewer of them are the first of more."""
    laws, cost, rewards = (np.random.default_rng([seed, k, i]) for i in range(3))
    law = laws.dirichlet(np.full(k, CONCENTRATION), size=(lines, length, k))
    law[:, 0] = law[:, 0, :1]
    price = cost.uniform(CHEAP, DEAR, (lines, length))
    level = np.sort(rewards.random((lines, k)))
    if shared_rewards:
        level[:] = level[0]
    return Lines(law, price, level, _line_forest(law, price, level))


def _line_forest(laws: FloatArray, cost: FloatArray, rewards: FloatArray) -> Forest:
    lines, length, k, _ = laws.shape
    parent = np.arange(lines * length) - 1
    parent[::length] = -1
    return Forest.from_arrays(
        parent=parent,
        cost=cost.reshape(-1),
        rewards=np.repeat(rewards, length, axis=0),
        law=laws.reshape(-1, k, k),
    )


def random_trees(boxes: int, seed: int = 0, count: int = 1) -> Forest:
    """Random trees of 1 to 199 boxes with 2 to 8 states, no two of them alike.

    Every other tree is bushy (a box hangs on any earlier one), the others are deep (on one of the
    last four). Each box has rewards of its own. With ``count`` above 1 each box stands for 1 to
    ``count`` copies. Fewer boxes are the first of more.
    """
    trees, states, laws, rewards, costs, copies = (
        np.random.default_rng([seed, i]) for i in range(6)
    )
    parent = _random_parents(boxes, trees)
    k = states.integers(2, 9, boxes)
    row = np.column_stack([np.ones(boxes, np.int64), k])
    single = np.ones((boxes, 2), np.int64)
    own = np.arange(boxes)
    return Forest(
        parent=parent,
        law=own,
        reward=own,
        cost=own,
        laws=_random_laws(np.column_stack([np.where(parent < 0, 1, k[parent]), k]), laws),
        rewards=Pool(rewards.random(k.sum()), starts(row), row),
        costs=Pool(costs.uniform(CHEAP, DEAR, boxes), starts(single), single),
        count=copies.integers(1, count + 1, boxes),
    )


def one_tree(boxes: int, k: int = 4, seed: int = 0) -> Forest:
    """One tree, of which every part can be reached: a box hangs on one of the last twenty."""
    rng = np.random.default_rng(seed)
    number = np.arange(boxes)
    parent = number - 1 - rng.integers(0, np.minimum(np.maximum(number, 1), 20))
    parent[0] = -1
    law = rng.dirichlet(np.ones(k), (boxes, k))
    law[0] = law[0, :1]
    return Forest.from_arrays(
        parent=parent, cost=rng.uniform(CHEAP, DEAR, boxes), rewards=np.linspace(0.1, 1, k), law=law
    )


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
    sizes, hangs = rng.spawn(2)
    first = np.concatenate([[0], np.cumsum(sizes.integers(1, 200, boxes))])  # more than enough
    first = first[first < boxes]
    tree = np.searchsorted(first, np.arange(boxes), side="right") - 1
    place = np.arange(boxes) - first[tree]
    back = np.where(tree % 2 == 0, place, np.minimum(place, 4))
    parent = np.arange(boxes) - 1 - (hangs.random(boxes) * back).astype(np.int64)
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
