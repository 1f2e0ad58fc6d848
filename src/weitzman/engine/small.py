r"""Small problems in NumPy alone: solved by a short program on laws, and followed by ranks.

Every box is done as the equations of :mod:`.solver` say, with one :class:`Law` for each class of
equal subtrees (a row for each state of the parent) and no breakpoint dropped. So the result is
exact, and no compiler is needed. The work grows with the square of the size: `work_of` bounds it,
and the solver takes the compiled kernels where it is more than `SMALL`.

With weights in place of chances (discounting, section 11 of the theory page), what a row lacks lies
above all points. With a risk tolerance the number in hand x counts as z = exp(-x / tolerance), and
with :math:`F_s(x)` the weighed chance of ending at most at x, continuing is worth
:math:`G(z) = \int_0^z F_s\,dz`; the index is where G(z) = z. This sum of positive terms keeps its
digits where the range is many tolerances wide. Where it is a small part of one tolerance, the
difference :math:`z - G(z)` keeps its digits if it is summed from the tails 1 - F. Both are
computed, and each number is taken from the one that rounding moves less.

A policy is followed by ranks: every probability at every rank. With :math:`F_s(x)` the distribution
function of the capped value of a box after state s of its parent, :math:`X_y` the largest capped
value of its children and G, H as in :mod:`weitzman._kernels.reach`,

.. math:: F_s(x) = \sum_{y:\ r(y) \le x} P(s, y)\,P(X_y \le x) \quad (x < \sigma(s)),
          \qquad F_s(x) = 1 \quad (x \ge \sigma(s)).

All numbers are positive and none is subtracted from another, so each keeps its digits, also where
weights stand for probabilities and span hundreds of orders of magnitude (a small risk tolerance).
They are kept as logarithms. Near 1, the logarithm of a distribution function comes from its tail:
rare rewards among very many copies count. The work grows with boxes times ranks; the ranks are
taken in blocks, from the lowest on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import FloatArray, IntArray, depths, roots_above
from .._common.law import Law
from .._kernels.jit import compiles_always, patience
from ..forest.columns import runs
from ..forest.model import Forest
from .indices import Policy
from .prizes import PrizeLimits, TreeValues, best_several, places_left, tied_copies
from .weights import Weights, endless_value, groups_of, mean_cost, takes_several

# Steps of work up to which a problem is solved here: about half a second.
SMALL = 2e7
_PER_BOX = 5_000  # what calling NumPy takes, in steps
_MOST = 700.0  # exponents that a 64-bit float holds
_BLOCK = 4_000_000  # entries of one array at a time
_NEAR = 0.7  # of a logarithm: so near to 1, it comes from the tail


class Recursion(NamedTuple):
    """Laws and indices (``sigma``, to be maximized, in payoffs) of classes of equal subtrees."""

    class_of: IntArray
    start: IntArray  # where the indices of each class start
    sigma: FloatArray
    law: list[Law]  # of the capped value of each class
    width: int  # breakpoints, over all classes


def is_small(f: Forest) -> bool:
    """Whether a forest is solved here: its size alone decides, unless everything is compiled."""
    most = SMALL * patience()
    return not compiles_always() and work_of(f, most) <= most


def work_of(f: Forest, most: float = SMALL) -> float:
    """How many steps the recursion takes, about, if that is at most ``most``; else infinity.

    From the shape of the forest alone.
    """
    n = len(f)
    if n * _PER_BOX > most:
        return np.inf
    above, own = f.laws.shape[f.law].T.astype(float)
    points = own + above  # at most so many breakpoints: rewards and indices at and below a box
    steps = float(n * _PER_BOX)
    up = np.append(f.parent, -1)
    for boxes in reversed(levels_of(f)):
        into = up[boxes]
        np.add.at(points, into[into >= 0], points[boxes[into >= 0]])
    kids = np.bincount(f.parent + 1, minlength=n + 1)
    steps += float(np.sum(own * (above + kids[1:] + 1) * points))
    return steps + float(kids[0] * points[f.roots].sum())


def levels_of(f: Forest) -> list[IntArray]:
    """The boxes at each depth."""
    depth = depths(f.parent)
    by = np.argsort(depth, kind="stable")
    return np.split(by, np.flatnonzero(np.diff(depth[by])) + 1)


def recursion(f: Forest) -> Recursion:
    """Solve from the leaves up, one class of equal subtrees after the other."""
    w = Weights.plain(f) if f.risk_tolerance is not None else Weights.of(f)
    known: dict[object, int] = {}
    class_of, kids = [-1] * len(f), [list[tuple[int, float]]() for _ in range(len(f) + 1)]
    law, index = list[Law](), list[FloatArray]()
    parent, count, endless = f.parent.tolist(), f.count.tolist(), f.endless.tolist()
    marks = list(zip(w.law.tolist(), f.reward.tolist(), f.cost.tolist(), endless, strict=True))
    for boxes in reversed(levels_of(f)):
        for v in boxes.tolist():
            key = marks[v], tuple(sorted(kids[v]))
            if key not in known:
                known[key] = len(law)
                found, sigma = _box(f, w, v, [law[c].power(m) for c, m in kids[v]])
                law.append(found)
                index.append(sigma)
            class_of[v] = known[key]
            kids[parent[v]].append((class_of[v], count[v]))
    start = np.cumsum([0, *map(len, index)])
    width = sum(len(x.points) for x in law)
    return Recursion(np.array(class_of), start, np.concatenate(index), law, width)


def best_of_roots(f: Forest, found: Recursion) -> Law:
    """The law of the largest capped value of all roots."""
    laws = [
        found.law[c].power(m)
        for c, m in zip(found.class_of[f.roots].tolist(), f.count[f.roots].tolist(), strict=True)
    ]
    best: Law = laws[0].largest(*laws[1:])
    return best


def value_of(f: Forest, found: Recursion) -> float:
    """The value in hand before anything is opened, to be maximized."""
    x0 = f.sign * f.outside
    if takes_several(f):
        laws = [found.law[c] for c in found.class_of[f.roots].tolist()]
        point, tail = np.hstack([(law.points, law.tails[0]) for law in laws])
        tree = np.repeat(np.arange(len(laws)), [len(law.points) for law in laws])
        values = TreeValues(tree, point, np.minimum(tail, 1.0), np.zeros(len(laws)))
        return best_several(values, _places(f), x0)[0]
    law = best_of_roots(f, found)
    if f.risk_tolerance is not None:
        return certain(law, x0, f.risk_tolerance)
    return float(law.with_fallback(x0)[0])


def _places(f: Forest) -> PrizeLimits:
    return PrizeLimits.of(f, f.count[f.roots], groups_of(f).of[f.roots])


def _box(f: Forest, w: Weights, v: int, children: list[Law]) -> tuple[Law, FloatArray]:
    """The capped value of a box, and its indices."""
    if f.endless[v]:
        index, points, tails = endless_value(w, v)
        return Law(points, np.ascontiguousarray(tails.T)), index
    r, tau = f.reward[v], f.risk_tolerance
    own = f.sign * f.rewards.data[f.rewards.start[r] : f.rewards.start[r + 1]]
    after = Law.sure(own, exact_below=tau is not None).largest(*children)
    if tau is not None:
        cost = f.costs[int(f.cost[v])]
        mixed, sigma = _risky(after, f.laws[int(f.law[v])], cost / tau, tau)
        return mixed.cap(sigma), sigma
    law = w.laws[int(w.law[v])]
    if (lack := w.missing(v)) is None:
        mixed = after.mixture(law)
        sigma = mixed.root(mean_cost(f, v))
    else:
        # no index exceeds both zero and all that can be found, so there the sums begin
        if not len(after.points) or after.points[-1] < w.top:
            zero = np.zeros((len(own), 1))
            after = Law(np.append(after.points, w.top), np.hstack([after.tails, zero]))
        mixed = Law(after.points, law @ after.tails + lack[:, None])
        sigma = mixed.root(w.costs[int(w.cost[v])][:, 0] + lack * after.points[-1])
    return mixed.cap(sigma), sigma


def _risky(
    after: Law, chance: FloatArray, log_factor: FloatArray, tau: float
) -> tuple[Law, FloatArray]:
    """The mixture of rows weighed with factors, and its indices."""
    weight = chance * np.exp(log_factor)
    extra = (chance * np.expm1(log_factor)).sum(axis=1)[:, None]  # by which a row exceeds one
    x = after.points
    if not len(x):
        return Law(x, weight @ after.tails, weight @ after.tails), np.full(len(chance), -np.inf)
    assert after.below is not None
    f, t = weight @ after.below, weight @ after.tails
    t = np.where(extra + t < f, t - extra, 1.0 - f)
    # steps of z between points, in units of z at the highest one
    z = np.exp(np.minimum((x[-1] - x) / tau, _MOST))
    dz = z[1:] * np.expm1(np.minimum(np.diff(x) / tau, _MOST))

    def summed(start: FloatArray, steps: FloatArray) -> FloatArray:
        total: FloatArray = start + np.hstack(
            [np.cumsum((steps[:, 1:] * dz)[:, ::-1], axis=1)[:, ::-1], np.zeros((len(steps), 1))]
        )
        return total

    worth = summed(1.0 + extra, f)
    from_tails, rounding = summed(extra, -t), summed(extra, np.abs(t))
    d = np.where(rounding < worth + z, from_tails, worth - z)  # > 0: stopping is better
    i = np.minimum((d < 0).sum(axis=1), len(x) - 1)
    row = np.arange(len(d))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        sigma = x[i] - tau * np.log1p(np.maximum(d[row, i], 0.0) / (t[row, i] * z[i]))
    sigma = np.where(i > 0, np.maximum(sigma, x[i - 1]), sigma)
    sigma = np.where((t[row, i] > 0) & ((x[-1] - sigma) / tau < _MOST), sigma, -np.inf)
    return Law(x, np.clip(t, 0.0, 1.0), np.minimum(f, 1.0)), sigma


def certain(law: Law, x0: float, tau: float) -> float:
    """The certainty equivalent of the larger of x0 and a number with this law (one row)."""
    x, below = law.points, law.below
    assert below is not None
    if x0 == -np.inf:
        if not len(x) or below[0, 0] > 0:
            return x0
        x0 = float(x[0])
    over = x > x0
    x, f, t = x[over], below[0, over], law.tails[0, over]
    if not len(x):
        return x0
    low = np.append(x0, x[:-1])
    dz = -np.exp((x0 - low) / tau) * np.expm1((low - x) / tau)  # in units of z at x0
    gain = float((t * dz)[::-1].sum())
    if gain < 0.5:
        return float(x0 - tau * np.log1p(-gain))
    # measured from the best, so that nothing is lost where x0 is far below
    best = x[-1]
    dz = np.exp((best - x) / tau) * np.expm1((x - low) / tau)
    return float(best - tau * np.log1p((f * dz)[::-1].sum()))


# -- following a policy ----------------------------------------------------------------------------


class Followed(NamedTuple):
    """Openings after each state of the parent, choices of each state, and of the outside option."""

    opened: FloatArray
    opened_at: IntArray
    chosen: FloatArray
    chosen_at: IntArray
    none: float


class Columns(NamedTuple):
    """Where the numbers of each box start, and all ranks; 0 stands for minus infinity."""

    opened_at: IntArray
    chosen_at: IntArray
    sigma: IntArray
    reward: IntArray
    outside: int
    values: FloatArray  # that have been ranked

    @property
    def ranks(self) -> int:
        """How many places there are."""
        return int(max(self.sigma.max(), self.reward.max(), self.outside)) + 1


def dense_size(policy: Policy) -> float:
    """An upper bound on the work, without any."""
    f = policy.forest
    rows = float(f.laws.shape[f.law, 0].sum() + f.rewards.shape[f.reward, 1].sum())
    return np.inf if f.endless.any() else rows * rows


def rank(policy: Policy) -> Columns:
    """Indices and rewards in one total order.

    From low to high at equal numbers: indices, then rewards (an index must exceed a reward), each
    with the lowest box number last; the outside option above all.
    """
    f = policy.forest
    sizes = f.laws.shape[f.law, 0], f.rewards.shape[f.reward, 1]
    starts = [np.append(0, np.cumsum(size)) for size in sizes]
    data = (policy.index, policy.index_at), (policy.rewards, f.rewards.start[f.reward])
    index, rewards = (x[runs(at, size)] for (x, at), size in zip(data, sizes, strict=True))
    values = np.concatenate([index[::-1], rewards[::-1], [policy.outside]])
    by = np.argsort(values)  # and then the ties: much faster than a stable sort
    place, tied = values[by], np.zeros(len(by), bool)
    tied[1:] = place[1:] == place[:-1]
    tied[:-1] |= tied[1:]
    by[tied] = by[tied][np.lexsort((by[tied], place[tied]))]
    rank = np.empty(len(values), np.int64)
    rank[by] = np.arange(1, len(values) + 1)
    rank[values == -np.inf] = 0
    sigma, reward = rank[: len(index)][::-1], rank[len(index) : -1][::-1]
    return Columns(starts[0], starts[1], sigma, reward, int(rank[-1]), values)


def follow_densely(
    policy: Policy, weights: Weights, columns: Columns, *, logs: bool = False
) -> Followed:
    """Follow a policy, with the weights in place of probabilities; in the end, their logarithms."""
    return _Following(policy, weights, columns, logs).run()


class _Following:
    def __init__(self, policy: Policy, weights: Weights, columns: Columns, logs: bool) -> None:
        f = self.forest = policy.forest
        self.columns, self.logs = columns, logs
        # on the way back, products are sums of logarithms if those are asked for
        self.nothing, self.times = -np.inf if logs else 0.0, np.add if logs else np.multiply
        self.order = np.concatenate(levels_of(f)).tolist()  # parents first
        self.roots = f.roots.tolist()
        self.children: list[list[int]] = [[] for _ in range(len(f))]
        for v in np.flatnonzero(f.parent >= 0).tolist():
            self.children[f.parent[v]].append(v)
        self.weight = [weights.laws[i] for i in range(len(weights.laws))]
        with np.errstate(divide="ignore"):
            self.log_weight = [np.log(w) for w in self.weight]
        self.law = weights.law.tolist()
        self.defect = [weights.missing(v) for v in range(len(f))]
        self.opened = np.full(columns.opened_at[-1], self.nothing)
        self.chosen = np.full(columns.chosen_at[-1], self.nothing)
        self.clear = np.zeros(columns.chosen_at[-1])  # log: of children as good as a reward
        self.none = self.nothing

    def run(self) -> Followed:
        c = self.columns
        width = max(int(_BLOCK / (len(c.sigma) + len(c.reward))), 16)
        start = c.outside  # below, nothing is opened or taken
        if takes_several(self.forest):  # all ranks at once: places are counted from the top
            start, width = 0, c.ranks
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            for first in range(start, c.ranks, width):
                # and the rank before, which tells ties of copies apart
                x = np.arange(first - 1, min(first + width, c.ranks))
                self._back(x, self._forward(x))
        if c.outside == 0:  # then something is always taken
            self.none = self.nothing
        return Followed(self.opened, c.opened_at, self.chosen, c.chosen_at, float(self.none))

    def _of(self, v: int) -> tuple[slice, slice]:
        c = self.columns
        return slice(c.opened_at[v], c.opened_at[v + 1]), slice(c.chosen_at[v], c.chosen_at[v + 1])

    def _given(self, logs: FloatArray, factor: FloatArray | float = 1.0) -> Any:
        """A product from the logarithm of one part, in the form in which this goes back."""
        return logs + np.log(factor) if self.logs else np.exp(logs) * factor

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
        c, here = self.columns, x[1:]
        reached: dict[int, FloatArray] = {}  # G, without the rank before
        if takes_several(self.forest):
            left = self._places([f[v][0] for v in self.roots])
        else:
            left = self._others(self.roots, f)[:, 0]
            if here[0] <= c.outside <= here[-1]:
                at = c.outside - here[0] + 1
                count = self.forest.count
                self.none = self._given(sum(count[v] * f[v][0, at] for v in self.roots))
        start = np.where(here >= c.outside, left, self.nothing)
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
            w = self.law[v]
            h = _mixed(self.log_weight[w].T, None, None, g) if self.logs else self.weight[w].T @ g
            at = np.flatnonzero((reward >= max(here[0], 1)) & (reward <= here[-1]))
            clear = self._given(self.clear[own][at])
            self.chosen[own][at] = self.times(h[at, reward[at] - here[0]], clear)
            h[reward[:, None] > here] = self.nothing
            if kids := self.children[v]:
                for u, other in zip(kids, self._others(kids, f), strict=True):
                    reached[u] = self.times(h, other)

    def _others(self, boxes: list[int], f: list[FloatArray]) -> FloatArray:
        """For each of some boxes, P(all others, and all other copies, do not come before it)."""
        count = self.forest.count[boxes].tolist()
        all_copies = np.array([m * f[v][:, 1:] for m, v in zip(count, boxes, strict=True)])
        others = np.zeros(all_copies.shape)
        np.cumsum(all_copies[:-1], axis=0, out=others[1:])
        others[:-1] += np.cumsum(all_copies[:0:-1], axis=0)[::-1]
        ties = [
            tied_copies(f[v][:, :-1], f[v][:, 1:], m) for m, v in zip(count, boxes, strict=True)
        ]
        power, factor = map(np.array, zip(*ties, strict=True))
        return np.asarray(self._given(others + power, factor))

    def _places(self, log_f: list[FloatArray]) -> FloatArray:
        """For each tree, at its own ranks, the chance that a place is left for it."""
        c, f = self.columns, self.forest
        tree = np.searchsorted(f.roots, roots_above(f.parent))
        whose = np.concatenate([np.repeat(tree, np.diff(at)) for at in (c.opened_at, c.chosen_at)])
        ranks = np.concatenate([c.sigma, c.reward])
        whose, ranks = whose[ranks > c.outside], ranks[ranks > c.outside]
        by = np.lexsort((ranks, whose))
        tail = -np.expm1(np.array(log_f)[whose[by], ranks[by]])
        values = TreeValues(whose[by], ranks[by].astype(float), tail, np.zeros(len(log_f)))
        found, (self.none,) = places_left(values, _places(f), whose, ranks, [c.outside])
        out = np.zeros((len(log_f), c.ranks))
        out[found.tree, found.point.astype(np.int64)] = found.tail
        return out


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
