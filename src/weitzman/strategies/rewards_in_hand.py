r"""The rewards found so far, and what stopping with them or going on freely is worth.

With one prize the best reward is all that counts. With several, the best of each tree counts, and
going on freely is worth :math:`K x_0 + \int_{x_0}^\infty E\min(K, N(x))\,dx`, where N(x) is the
number of trees that hold or reach more than x (Theorem 3 of the theory page, which holds from every
situation).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._common.arrays import FloatArray, IntArray

Hand = tuple[float, ...]
Ready = Sequence[tuple[int, int]]  # boxes that can be opened, with the states of their parents
Lookup = Sequence[Sequence[float]]  # one number for each box and state of its parent
Functions = Sequence[FloatArray]  # distribution functions on a grid, for each box and state


class OnePrize:
    """One prize: the best reward so far."""

    def __init__(self, outside: float) -> None:
        self.start: Hand = (outside,)

    def with_reward(self, hand: Hand, box: int, reward: float) -> Hand:
        """What is in hand after a box showed a reward."""
        return (max(hand[0], reward),)

    def stop(self, hand: Hand) -> float:
        """What stopping is worth."""
        return hand[0]

    def done(self, hand: Hand, ready: Ready, index: Lookup) -> bool:
        """Whether no box is worth opening."""
        return not any(index[v][s] > hand[0] for v, s in ready)

    def going_on(self, hand: Hand, ready: Ready, below: Functions, grid: FloatArray) -> float:
        """The value of going on freely."""
        tail = (grid >= hand[0]).astype(np.float64)
        for v, s in ready:
            tail *= below[v][s]
        mass = np.diff(tail, prepend=0.0)
        some = mass != 0
        return float(grid[some] @ mass[some])


class SeveralPrizes:
    """Several prizes, one from each tree: the best reward of each tree so far."""

    def __init__(self, outside: float, prizes: int, tree: IntArray) -> None:
        self.outside, self.prizes, self.tree = outside, prizes, tree.tolist()
        self.start: Hand = (outside,) * (int(tree.max()) + 1)

    def with_reward(self, hand: Hand, box: int, reward: float) -> Hand:
        """What is in hand after a box showed a reward."""
        t = self.tree[box]
        return hand if hand[t] >= reward else (*hand[:t], reward, *hand[t + 1 :])

    def stop(self, hand: Hand) -> float:
        """What stopping is worth: an empty place is the outside option."""
        return float(sum(sorted(hand)[-self.prizes :]))

    def done(self, hand: Hand, ready: Ready, index: Lookup) -> bool:
        """Whether no box is worth opening."""
        return not any(self._pays(hand, self.tree[v], index[v][s]) for v, s in ready)

    def _pays(self, hand: Hand, tree: int, index: float) -> bool:
        if not index > max(hand[tree], self.outside):
            return False
        return sum(x >= index for t, x in enumerate(hand) if t != tree) < self.prizes

    def going_on(self, hand: Hand, ready: Ready, below: Functions, grid: FloatArray) -> float:
        """The value of going on freely."""
        none = (grid >= np.array(hand)[:, None]).astype(np.float64)  # P(tree holds at most x)
        for v, s in ready:
            none[self.tree[v]] *= below[v][s]
        return sum_of_largest(none, grid, self.outside, self.prizes)


def sum_of_largest(none: FloatArray, grid: FloatArray, outside: float, prizes: int) -> float:
    """The expected sum of the largest of independent numbers, each at least ``outside``.

    ``none[i, j]`` is the probability that number i is at most ``grid[j]``.
    """
    some = np.zeros((prizes + 1, len(grid)))  # P(exactly i exceed x); the last: i or more
    some[0] = 1.0
    for row in none:
        more = (1.0 - row) * some
        some *= row
        some[1:] += more[:-1]
        some[-1] += more[-1]
    mean = np.arange(prizes + 1) @ some
    above = grid[:-1] >= outside
    return float(prizes * outside + np.sum((mean[:-1] * np.diff(grid))[above]))
