r"""Small problems in NumPy alone: solved by a short program on laws, and followed by ranks.

Every box is done as the equations of :mod:`.solver` say, with one :class:`Law` for each class of
equal subtrees (a row for each state of the parent) and no breakpoint dropped. So the result is
exact, and no compiler is needed. The work grows with the square of the size: `work_of` bounds it,
and the solver takes the compiled kernels where it is more than `SMALL`.

With weights in place of chances (discounting, section 11 of the theory page), what a row lacks lies
above all points. With a risk tolerance the number in hand x counts as z = exp(-x / tolerance), and
with :math:`F_s(x)` the weighed chance of ending at most at x, going on is worth
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

from typing import NamedTuple

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._common.law import Law
from .._kernels.jit import compiles_always, patience
from ..forest.model import Forest
from .indices import Policy
from .weights import Weights, endless_value, groups_of, mean_cost, takes_several

# Steps of work up to which a problem is solved here: about half a second.
SMALL = 2e7
_PER_BOX = 5_000  # what calling NumPy takes, in steps
_MOST = 700.0  # exponents that a 64-bit float holds
_BLOCK = 4_000_000  # entries of one array at a time
_NEAR = 0.7  # of a logarithm: so near to 1, it comes from the tail
_MOST_COPIES = 64  # of a tree, with several prizes


class Recursion(NamedTuple):
    """Laws and indices (``sigma``, to be maximized, in payoffs) of classes of equal subtrees."""

    class_of: IntArray
    start: IntArray  # where the indices of each class start
    sigma: FloatArray
    law: list[Law]  # of the capped value of each class
    width: int  # breakpoints, over all classes


def is_small(f: Forest) -> bool:
    """Whether a forest is solved here: its size alone decides, unless everything is compiled."""
    return not compiles_always() and work_of(f) <= SMALL * patience()


def work_of(f: Forest) -> float:
    """How many steps the recursion takes, about; from the shape of the forest alone."""
    n = len(f)
    if n * _PER_BOX > SMALL * patience():
        return np.inf
    above, own = f.laws.shape[f.law].T.astype(float)
    points = own + above  # at most so many breakpoints: rewards and indices at and below a box
    steps = float(n * _PER_BOX)
    up = np.append(f.parent, -1)
    for boxes in reversed(_levels(f)):
        into = up[boxes]
        np.add.at(points, into[into >= 0], points[boxes[into >= 0]])
    kids = np.bincount(f.parent + 1, minlength=n + 1)
    steps += float(np.sum(own * (above + kids[1:] + 1) * points))
    return steps + float(kids[0] * points[f.roots].sum())


def _levels(f: Forest) -> list[IntArray]:
    """The boxes at each depth."""
    levels, depth = [f.roots], np.zeros(len(f), np.int64)
    depth[f.parent >= 0] = 1
    up = f.parent
    while (up >= 0).any():
        up = np.where(up >= 0, f.parent[up], -1)
        depth += up >= 0
    return [np.flatnonzero(depth == d) for d in range(int(depth.max()) + 1)] if len(f) else levels


def recursion(f: Forest) -> Recursion:
    """Solve from the leaves up, one class of equal subtrees after the other."""
    w = Weights.plain(f) if f.risk_tolerance is not None else Weights.of(f)
    known: dict[object, int] = {}
    class_of, kids = [-1] * len(f), [list[tuple[int, float]]() for _ in range(len(f) + 1)]
    law, index = list[Law](), list[FloatArray]()
    parent, count, endless = f.parent.tolist(), f.count.tolist(), f.endless.tolist()
    marks = list(zip(w.law.tolist(), f.reward.tolist(), f.cost.tolist(), endless, strict=True))
    for boxes in reversed(_levels(f)):
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
        return _several(f, found, x0)
    law = best_of_roots(f, found)
    if f.risk_tolerance is not None:
        return certain(law, x0, f.risk_tolerance)
    return float(law.with_fallback(x0)[0])


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


def _several(f: Forest, found: Recursion, x0: float) -> float:
    """Several prizes, at most one from each tree: see :mod:`.prizes`."""
    k, (of, quota) = f.prizes, groups_of(f)
    laws = [found.law[c] for c in found.class_of[f.roots].tolist()]
    x = np.unique(np.concatenate([law.points for law in laws]))
    x = x[x > x0]
    if not len(x):
        return k * x0
    counts = [sure_count(0, int(q), len(x)) for q in quota]  # P(N_g = j) for j < q, at each point
    for law, m, g in zip(laws, f.count[f.roots].tolist(), of[f.roots].tolist(), strict=True):
        if q := len(counts[g]):
            counts[g] = convolved(counts[g], binomials(law.tail(x)[0], m, q), q)
    missing = (np.arange(k, 0, -1)[:, None] * filled_places(counts, k, len(x))).sum(axis=0)
    return float(k * x0 + ((k - missing) * np.diff(x, prepend=x0))[::-1].sum())


def sure_count(j: int, most: int, width: int) -> FloatArray:
    """The law of a count that is j for sure, as far as it is below ``most``."""
    out = np.zeros((most, width))
    out[j:][:1] = 1.0
    return out


def binomials(tail: FloatArray, m: float, most: int) -> FloatArray:
    """P(exactly j of m copies are there) for j < most, a row each."""
    t = np.minimum(tail, 1.0)
    with np.errstate(divide="ignore"):
        return binomials_of_logs(np.log1p(-t), np.log(t), m, most)


def binomials_of_logs(stay: FloatArray, come: FloatArray, m: float, most: int) -> FloatArray:
    """The same from the logarithms of the chances to be missing and to be there."""
    out, ways = np.zeros((most, len(stay))), 0.0
    for j in range(int(min(m, most - 1)) + 1):
        ways += np.log((m - j + 1) / j) if j else 0.0
        out[j] = np.exp(ways + (j * come if j else 0.0) + ((m - j) * stay if m > j else 0.0))
    return out


def filled_places(counts: list[FloatArray], most: int, width: int) -> FloatArray:
    """The law of the places that groups fill together, as far as it is below ``most``.

    ``counts`` are the laws of how many are there, each as far as it is below a quota: more than
    the quota fill as many places as it has.
    """
    total = sure_count(0, most, width)
    for count in counts:
        full = np.maximum(1.0 - count.sum(axis=0, keepdims=True), 0.0)
        total = convolved(total, np.concatenate([count, full]), most)
    return total


def convolved(a: FloatArray, b: FloatArray, most: int) -> FloatArray:
    """The law of the sum of two counts, as far as it is below ``most``."""
    out = np.zeros((most, a.shape[1]))
    for j, row in enumerate(b[:most]):
        out[j : j + len(a)] += a[: most - j] * row
    return out


# -- following a policy ----------------------------------------------------------------------------


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
            for first in range(c.outside, c.ranks, width):  # below, nothing is opened or taken
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
    copies = [log_tied_copies(row[:, :-1], row[:, 1:], m) for m, row in zip(count, f, strict=True)]
    return before + after + copies


def log_tied_copies(before: FloatArray, at: FloatArray, m: float) -> FloatArray:
    """log of the sum over j < m of F(x-)^j F(x)^(m-1-j): of ties the first copy wins.

    ``before`` and ``at`` are the logarithms of F(x-) and F(x).
    """
    if m == 1:
        return np.zeros(at.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        step = before - at
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
