r"""Following an index policy by ranks, in NumPy alone: every probability at every rank.

With :math:`F_s(x)` the distribution function of the capped value of a box after state s of its
parent, :math:`X_y` the largest capped value of its children and G, H as in
:mod:`weitzman._kernels.reach`,

.. math:: F_s(x) = \sum_{y:\ r(y) \le x} P(s, y)\,P(X_y \le x) \quad (x < \sigma(s)),
          \qquad F_s(x) = 1 \quad (x \ge \sigma(s)).

All numbers are positive and none is subtracted from another, so each keeps its digits, also where
weights stand for probabilities and span hundreds of orders of magnitude (a small risk tolerance).
They are kept as logarithms. Near 1, the logarithm of a distribution function comes from its tail:
rare rewards among very many copies count. The work grows with boxes times ranks; the ranks are
taken in blocks, from the lowest on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._common.arrays import FloatArray, IntArray
from ..forest.model import Forest
from .indices import Policy
from .small import binomials_of_logs, convolved, filled_places, sure_count
from .weights import Weights, groups_of, takes_several

_BLOCK = 1_000_000  # entries of one array at a time
_NEAR = 0.7  # of a logarithm: so near to 1, it comes from the tail
_MOST_COPIES = 64  # of a tree, with several prizes


class LogFollowed(NamedTuple):
    """Logarithms of openings after each state of the parent, of choices, of the outside option."""

    opened: FloatArray
    chosen: FloatArray
    none: float


class Columns(NamedTuple):
    """Where the numbers of each box start, and all ranks; 0 stands for minus infinity."""

    opened_at: IntArray
    chosen_at: IntArray
    sigma: IntArray
    reward: IntArray
    outside: int

    @property
    def ranks(self) -> int:
        """How many places there are."""
        return int(max(self.sigma.max(), self.reward.max(), self.outside)) + 1

    @property
    def size(self) -> float:
        """How much work there is."""
        return float(self.ranks) * (len(self.sigma) + len(self.reward))


def dense_size(policy: Policy) -> float:
    """An upper bound on the work, without any."""
    f = policy.forest
    rows = float(f.laws.shape[f.law, 0].sum() + f.rewards.shape[f.reward, 1].sum())
    if f.endless.any() or (takes_several(f) and f.count[f.parent < 0].max() > _MOST_COPIES):
        return np.inf
    return rows * rows


def rank(policy: Policy) -> Columns:
    """All indices and rewards in one total order.

    From low to high at equal numbers: indices, then rewards (an index must exceed a reward), each
    with the lowest box number last; the outside option above all.
    """
    f = policy.forest
    rows, own = f.laws.shape[f.law, 0], f.rewards.shape[f.reward, 1]
    opened_at, chosen_at = (np.append(0, np.cumsum(sizes)) for sizes in (rows, own))
    index = policy.index[
        np.arange(opened_at[-1]) + np.repeat(policy.index_at - opened_at[:-1], rows)
    ]
    start = f.rewards.start[f.reward]
    rewards = policy.rewards[np.arange(chosen_at[-1]) + np.repeat(start - chosen_at[:-1], own)]
    values = np.concatenate([index[::-1], rewards[::-1], [policy.outside]])
    place = np.empty(len(values), np.int64)
    place[np.argsort(values, kind="stable")] = np.arange(1, len(values) + 1)
    place[values == -np.inf] = 0
    n = len(index)
    return Columns(opened_at, chosen_at, place[:n][::-1], place[n:-1][::-1], int(place[-1]))


def follow_densely(policy: Policy, weights: Weights, columns: Columns) -> LogFollowed:
    """Follow a policy, with the weights in place of probabilities."""
    return _Following(policy, weights, columns).run()


class _Following:
    def __init__(self, policy: Policy, weights: Weights, columns: Columns) -> None:
        f = self.forest = policy.forest
        self.columns = columns
        depth, above = np.zeros(len(f), np.int64), f.parent
        while (above >= 0).any():
            depth += above >= 0
            above = np.where(above >= 0, f.parent[above], -1)
        self.order = np.argsort(depth, kind="stable").tolist()  # parents first
        self.roots = np.flatnonzero(f.parent < 0).tolist()
        self.children: list[list[int]] = [[] for _ in range(len(f))]
        for v in np.flatnonzero(f.parent >= 0).tolist():
            self.children[f.parent[v]].append(v)
        self.weight = [weights.laws[i] for i in range(len(weights.laws))]
        with np.errstate(divide="ignore"):
            self.log_weight = [np.log(w) for w in self.weight]
        self.law = weights.law.tolist()
        self.defect = [weights.missing(v) for v in range(len(f))]
        self.opened = np.full(columns.opened_at[-1], -np.inf)
        self.chosen = np.full(columns.chosen_at[-1], -np.inf)
        self.clear = np.zeros(columns.chosen_at[-1])  # of children as good as a reward
        self.none = -np.inf

    def run(self) -> LogFollowed:
        c = self.columns
        width = max(int(_BLOCK / (len(c.sigma) + len(c.reward))), 16)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            for first in range(0, c.ranks, width):
                # and the rank before, which tells ties of copies apart
                x = np.arange(first - 1, min(first + width, c.ranks))
                self._back(x, self._forward(x))
        if c.outside == 0:  # then something is always taken
            self.none = -np.inf
        return LogFollowed(self.opened, self.chosen, self.none)

    def _of(self, v: int) -> tuple[slice, slice]:
        c = self.columns
        return slice(c.opened_at[v], c.opened_at[v + 1]), slice(c.chosen_at[v], c.chosen_at[v + 1])

    def _forward(self, x: IntArray) -> list[FloatArray]:
        """Logarithms of the distribution functions of all boxes, a row for each state above."""
        found: list[FloatArray] = [np.empty(0)] * len(self.law)
        for v in reversed(self.order):
            states, own = self._of(v)
            sigma, reward = self.columns.sigma[states], self.columns.reward[own]
            best = np.zeros((len(reward), len(x)))
            for u in self.children[v]:
                best += self.forest.count[u] * found[u]
            here = np.flatnonzero((reward >= x[1]) & (reward <= x[-1]))
            self.clear[own][here] = best[here, reward[here] - x[0]]
            best[reward[:, None] > x] = -np.inf
            mixed = _mixed(
                self.log_weight[self.law[v]], self.weight[self.law[v]], self.defect[v], best
            )
            mixed[:, x < 0] = -np.inf
            found[v] = np.where(x < sigma[:, None], mixed, 0.0)
        return found

    def _back(self, x: IntArray, f: list[FloatArray]) -> None:
        """Openings and choices whose ranks lie in the block."""
        c, forest = self.columns, self.forest
        count, here = forest.count, x[1:]
        reached: dict[int, FloatArray] = {}  # logarithms of G, without the rank before
        if takes_several(forest):
            left, filled = _left(forest, [f[v][0] for v in self.roots])
        else:
            left = _others([f[v] for v in self.roots], count[self.roots])[:, 0]
            filled = sum(count[v] * f[v][0, 1:] for v in self.roots)
        start = np.where(here >= c.outside, left, -np.inf)
        if here[0] <= c.outside <= here[-1]:
            self.none = float(filled[c.outside - here[0]])
        for i, v in enumerate(self.roots):
            reached[v] = start[i : i + 1]
        for v in self.order:
            g, (states, own) = reached.pop(v), self._of(v)
            sigma, reward = c.sigma[states], c.reward[own]
            opened = self.opened[states]
            at = np.flatnonzero((sigma >= max(here[0], 1)) & (sigma <= here[-1]))
            opened[at] = g[at, sigma[at] - here[0]]
            # once opened, everything below its index stays closed for good
            g = np.where(here < sigma[:, None], g, opened[:, None])
            h = _mixed(self.log_weight[self.law[v]].T, None, None, g)
            at = np.flatnonzero((reward >= max(here[0], 1)) & (reward <= here[-1]))
            self.chosen[own][at] = h[at, reward[at] - here[0]] + self.clear[own][at]
            h[reward[:, None] > here] = -np.inf
            if kids := self.children[v]:
                for u, other in zip(kids, _others([f[u] for u in kids], count[kids]), strict=True):
                    reached[u] = h + other


def _mixed(
    log_weight: FloatArray, weight: FloatArray | None, defect: FloatArray | None, logs: FloatArray
) -> FloatArray:
    """log of the sum over y of weight(s, y) exp(logs(y, x)); near 1 from the tail, if wanted."""
    top = logs.max(axis=0)
    top[~np.isfinite(top)] = 0.0
    most = log_weight.max(axis=1, keepdims=True)
    most[~np.isfinite(most)] = 0.0
    out = np.asarray(np.log(np.exp(log_weight - most) @ np.exp(logs - top)) + top + most)
    if weight is not None:
        tail = weight @ -np.expm1(logs)
        if defect is not None:
            tail += defect[:, None]
        near = np.abs(out) < _NEAR
        out[near] = np.log1p(-tail[near])
    return out


def _others(f: list[FloatArray], count: IntArray) -> FloatArray:
    """For each of some boxes, log P(all others, and all other copies, do not come before it)."""
    all_copies = np.array([m * row[:, 1:] for m, row in zip(count, f, strict=True)])
    before, after = np.zeros(all_copies.shape), np.zeros(all_copies.shape)
    np.cumsum(all_copies[:-1], axis=0, out=before[1:])
    after[:-1] = np.cumsum(all_copies[:0:-1], axis=0)[::-1]
    return before + after + [_copies(row, int(m)) for m, row in zip(count, f, strict=True)]


def _copies(f: FloatArray, m: int) -> FloatArray:
    """log of the sum over j < m of F(x-)^j F(x)^(m-1-j): of ties the first copy wins."""
    at = f[:, 1:]
    if m == 1:
        return np.zeros(at.shape)
    step = f[:, :-1] - at
    down = -np.abs(step)  # with weights, F may fall: then the sum is read from its other end
    ratio = np.where(down == 0, np.log(m), np.log(np.expm1(m * down) / np.expm1(down)))
    total = (m - 1) * (at + np.maximum(step, 0.0)) + ratio
    return np.where(at == -np.inf, -np.inf, total)


def _left(forest: Forest, f: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """For each tree, log of the sum over its copies of P(a place is left for it).

    Also the logarithm of the expected number of places that nothing fills. A copy comes before
    another of equal rank if its number is lower.
    """
    most, (of, quota) = forest.prizes, groups_of(forest)
    count, group = forest.count[forest.roots].tolist(), of[forest.roots]
    width = f[0].shape[-1] - 1
    laws = [_counted(row[1:], m, int(quota[g])) for row, m, g in zip(f, count, group, strict=True)]
    out, counts = np.empty((len(f), width)), [np.zeros((int(q), width)) for q in quota]
    beside = {}  # of each tree: the count of all others of its group
    for g, q in enumerate(quota.tolist()):
        mine = np.flatnonzero(group == g).tolist()
        before = after = sure_count(0, q, width)
        for i in mine:
            beside[i] = before
            before = convolved(before, laws[i], q)
        for i in reversed(mine):
            beside[i] = convolved(beside[i], after, q)
            after = convolved(after, laws[i], q)
        counts[g] = after
    for g, q in enumerate(quota.tolist()):
        rest = filled_places([c for h, c in enumerate(counts) if h != g], most, width)
        fewer = rest.cumsum(axis=0)[::-1][:q]  # P(the other groups leave more than j places)
        for i in np.flatnonzero(group == g).tolist():
            m, total = count[i], np.zeros(width)
            for j in range(m):
                own = convolved(_counted(f[i][:-1], j, q), _counted(f[i][1:], m - 1 - j, q), q)
                total += (convolved(beside[i], own, q) * fewer).sum(axis=0)
            out[i] = np.log(total)
    missing = np.arange(most, 0, -1)[:, None] * filled_places(counts, most, width)
    return out, np.log(missing.sum(axis=0))


def _counted(log_f: FloatArray, m: int, most: int) -> FloatArray:
    """P(exactly j of m copies lie above), for j < most, a row each."""
    return binomials_of_logs(log_f, np.log(-np.expm1(log_f)), m, most)
