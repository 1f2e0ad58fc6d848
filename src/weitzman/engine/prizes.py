r"""Which trees find enough: the value of several prizes, and the chance that a place is left.

With :math:`N_g(x)` the number of trees of group g whose capped value is at least x, and at most
:math:`q_g` prizes from the group, the value of K prizes is :math:`K x_0 + \int_{x_0}^\infty
E\min(K, \sum_g \min(q_g, N_g(x)))\,dx`; without quotas there is one group. On the way back, a box
of a tree is opened if and only if it would be opened in the tree alone and the other trees with a
capped value above its index leave a place for it, in its group and in all. So each tree starts with
the probability of that, at every rank of its own. See section 14 of the theory page.

All points at which the chances of the trees change are *events*, from the top down. The law of a
count is a row for each number; it is kept for the events of a few trees, then of pairs of those,
and so on, so that nothing is ever divided and the work grows with :math:`E K^2 \log n`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._kernels import blocks
from ..errors import TooLarge
from ..forest.model import Forest
from .plan import Pass, Plan, PlanPass, Progress
from .weights import groups_of

_NEVER = -100.0  # the logarithm of a chance that makes no difference to any sum
_MOST_COPIES = 10_000  # of one tree whose ties are told apart
_SHARES = (0.5, 0.05, 0.001)  # at which the bound on that chance is tried


class TreeValues(NamedTuple):
    """The capped values of trees: the tree, breakpoint and tail of each point; errors by tree."""

    tree: IntArray
    point: FloatArray
    tail: FloatArray
    error: FloatArray

    @classmethod
    def of(cls, parts: list[blocks.Distributions]) -> TreeValues:
        """From the values of the trees of each part."""
        size, point, tail, error = map(np.concatenate, zip(*parts, strict=True))
        return cls(np.repeat(np.arange(len(size)), size), point, np.minimum(tail, 1.0), error)


class PrizeLimits(NamedTuple):
    """How many prizes there are, and by tree: how many copies, and which group with its quota."""

    most: int
    copies: FloatArray
    group: IntArray
    quota: IntArray

    @classmethod
    def of(cls, f: Forest, copies: IntArray | FloatArray, group: IntArray) -> PrizeLimits:
        """For some trees of a forest."""
        return cls(f.prizes, copies.astype(np.float64), group, groups_of(f).quota)


def run_several(
    plan: Plan, eps: float, threads: int | None, progress: Progress | None = None
) -> PlanPass:
    """One pass over a plan whose forest offers several prizes."""
    step = Pass(plan, eps, progress=progress)
    common = step.common()

    def values(p: int) -> blocks.Distributions:
        heap, at = step.trees(p, common), step.loc[plan.root_ops(p)]
        # those that several parts share lie with what these share
        both = np.concatenate([heap, common]) if (at < 0).any() else heap
        return blocks.distributions(both, np.where(at < 0, len(heap) - 1 - at, at))

    found = TreeValues.of(step.parts(values, threads))
    places = PrizeLimits.of(plan.forest, plan.top_copies, plan.top_group)
    value, gap, tail = best_several(found, places, plan.outside)
    return PlanPass(value, gap, step.sigma, step.width, tail)


def best_several(
    found: TreeValues, places: PrizeLimits, outside: float
) -> tuple[float, float, tuple[FloatArray, FloatArray]]:
    """The value of several prizes from those of the trees.

    As `Plan.best`: also its error, and how it is distributed.
    """
    by = np.argsort(-found.point, kind="stable")
    tree, point, tail = found.tree[by], found.point[by], found.tail[by]
    k, nothing = places.most, places.most * outside
    if len(point) == 0:
        return nothing, 0.0, (np.empty(0), np.empty(0))
    law, _ = taken_places(tree, tail, places, ask=False)
    filled = k - np.arange(k, 0, -1) @ law
    width = np.maximum(point, outside) - np.maximum(np.append(point[1:], -np.inf), outside)
    value = nothing + float(np.sum(filled * width))
    # an error matters only while a place is left for the highest find of its tree
    trees, first = np.unique(tree, return_index=True)
    top, there = point[first], tail[first]
    before = np.searchsorted(-point, -top, side="left") - 1  # the last event above a top
    chance = np.where(before >= 0, np.minimum(law.sum(axis=0), 1.0)[before], 1.0) * (top > outside)
    with np.errstate(divide="ignore"):
        times = np.minimum(places.copies[trees], k / there)
    error = found.error[trees]
    gap = float(np.sum(error * chance * np.where(error > 0, times, 0.0)))
    return value, min(gap, value - nothing), (point[::-1], filled[::-1] / k)


def places_left(
    found: TreeValues, places: PrizeLimits, tree: IntArray, rank: FloatArray, bars: list[float]
) -> tuple[TreeValues, list[float]]:
    """The chance that a place is left for each tree at its own ranks.

    Of ``found`` the points are ranks too; in the result the tails are those chances, summed over
    the copies of a tree, in rising order for each tree. Also how many places are expected to be
    left for what is not above each of some bars. Ranks below the first one are left out.
    """
    if places.most > 1 and places.copies.max() > _MOST_COPIES:
        raise TooLarge(
            f"with several prizes, a tree may have at most {_MOST_COPIES} copies to be evaluated, "
            f"but there are {places.copies.max():.6g}. Simulate instead.",
            float(places.copies.max()),
        )
    by = np.argsort(-found.point, kind="stable")
    n = _until_taken(found.tree[by], found.tail[by], places)
    low = max(bars[0], float(found.point[by[n]]) if n < len(by) else -np.inf)
    # by tree, from the lowest on: the chance to reach each rank is that of the next breakpoint
    points, ranks = found.point[found.point > low], rank[rank > low]
    span = int(max(points.max(initial=0.0), ranks.max(initial=0.0))) + 1
    known = found.tree[found.point > low] * span + points.astype(np.int64)
    both = np.unique(np.append(known, tree[rank > low] * span + ranks.astype(np.int64)))
    whose, at = np.divmod(both, span)
    near = np.searchsorted(known, both)
    same = np.append(known // span, -1)[near] == whose
    reach = np.where(same, np.append(found.tail[found.point > low], 0.0)[near], 0.0)
    down = np.argsort(-at)
    law, others = taken_places(whose[down], reach[down], places, ask=True)
    left = np.arange(places.most, 0, -1) @ law
    above = [int(np.searchsorted(-at[down], -bar)) for bar in bars]
    chance = np.empty(len(at))
    chance[down] = others
    return TreeValues(whose, at.astype(np.float64), chance, found.error), [
        float(left[n - 1]) if n else float(places.most) for n in above
    ]


class _Counts(NamedTuple):
    """Laws of counts, (numbers, rows): rows by node and event; a node begins with event -1."""

    node: IntArray
    event: IntArray
    law: FloatArray


class _Pairing(NamedTuple):
    """How the laws of nodes became those of pairs: for each new row the old ones of both nodes."""

    law: FloatArray
    own: IntArray  # of the node whose event it is
    other: IntArray


def taken_places(
    tree: IntArray, tail: FloatArray, places: PrizeLimits, *, ask: bool
) -> tuple[FloatArray, FloatArray]:
    """Go down events: at event e the chance of tree ``tree[e]`` rises to ``tail[e]``.

    Returns P(exactly j places are taken) after each event, a row for each j below the number of
    prizes; and if one asks, the sum over the copies of that tree of the chance that all others
    leave a place for it before the event.
    """
    most, copies, group, quota = places
    law, others = np.zeros((most, len(tree))), np.zeros(len(tree))
    law[0] = 1.0
    end = _until_taken(tree, tail, places)
    events = np.flatnonzero(quota[group[tree[:end]]] > 0)
    law[:, end:] = 0.0
    by = events[np.lexsort((tree[events], group[tree[events]]))]
    if not len(by):
        return law, others
    tops, groups = [], []
    for i, g in enumerate(np.unique(group[tree[by]]).tolist()):
        mine, q = by[group[tree[by]] == g], int(quota[g])
        which, first, node = np.unique(tree[mine], return_index=True, return_inverse=True)
        node = np.insert(node.reshape(-1), first, np.arange(len(which)))
        chance, m = np.insert(tail[mine], first, 0.0), copies[which[node]]
        leaves = _Counts(node, np.insert(mine, first, -1), _binomials(chance, m, q))
        root, pairings = _joined(leaves, q)
        full = np.maximum(1.0 - root.law.sum(axis=0, keepdims=True), 0.0)
        taken = np.zeros((most, len(root.event)))
        taken[: q + 1] = np.concatenate([root.law, full])[:most]  # more than the quota take it
        tops.append(_Counts(np.full(len(root.event), i), root.event, taken))
        groups.append((leaves, pairings, chance, m))
    top = _Counts(*(np.concatenate(column, axis=-1) for column in zip(*tops, strict=True)))
    everything, pairings = _joined(top, most)
    law[:, everything.event[1:]] = everything.law[:, 1:]
    for e in np.flatnonzero(quota[group[tree]] <= 0).tolist():
        law[:, e] = law[:, e - 1] if e else law[:, e]
    if ask:
        beside = _beside(pairings, _surely_none(most, len(top.event)), most)
        for i, (leaves, pairings, chance, m) in enumerate(groups):
            q = len(leaves.law)
            mine = np.flatnonzero(top.node == i)
            fewer = beside[:, mine].cumsum(axis=0)[::-1][:q]  # places that other groups take
            rest = _beside(pairings, _surely_none(q, fewer.shape[1]), q)
            rows = np.flatnonzero(leaves.event >= 0)
            at = np.searchsorted(top.event[mine], leaves.event[rows])
            others[leaves.event[rows]] = _chances(
                rest[:, rows], chance[rows - 1], chance[rows], m[rows], fewer[:, at]
            )
    return law, others


def _before(tree: IntArray, tail: FloatArray) -> FloatArray:
    """The chance of the tree of each event before the event."""
    by = np.argsort(tree, kind="stable")
    before = np.zeros(len(by))
    before[by[1:]] = np.where(tree[by[1:]] == tree[by[:-1]], tail[by[:-1]], 0.0)
    return before


def _until_taken(tree: IntArray, tail: FloatArray, places: PrizeLimits) -> int:
    """After how many events all places are taken, but for a negligible chance.

    P(N < K) is at most s^(1 - K) E s^N, for any share s below one.
    """
    if (places.quota < places.most).any():
        return len(tree)
    before, out = _before(tree, tail), len(tree)
    for s in _SHARES:
        steps = np.log1p((s - 1.0) * tail) - np.log1p((s - 1.0) * before)
        bound = np.cumsum(places.copies[tree] * steps) + (1 - places.most) * np.log(s)
        out = min(out, int(np.searchsorted(-np.minimum.accumulate(bound), -_NEVER)) + 1)
    return out


def _joined(c: _Counts, most: int) -> tuple[_Counts, list[_Pairing]]:
    """The law of the sum of all nodes, in pairs of nodes and pairs of pairs."""
    pairings = []
    while c.node[-1] > 0:
        if c.node[-1] % 2 == 0:  # the last one has no partner: one that never counts
            none = _surely_none(most, 1)
            c = _Counts(
                np.append(c.node, c.node[-1] + 1), np.append(c.event, -1), np.hstack([c.law, none])
            )
        side = c.node & 1
        span = 2 * (int(c.event.max()) + 2)
        by = np.argsort((c.node >> 1) * span + 2 * (c.event + 1) + side)
        place, side = np.arange(len(by)), side[by]
        both = [by[np.maximum.accumulate(np.where(side == s, place, 0))] for s in (0, 1)]
        rows = np.flatnonzero((c.event[by] >= 0) | (side == 1))  # two beginnings become one
        a, b = both[0][rows], both[1][rows]
        pairings.append(_Pairing(c.law, by[rows], np.where(side[rows] == 0, b, a)))
        law = _sum(c.law[:, a], c.law[:, b], most)
        c = _Counts(c.node[by[rows]] >> 1, c.event[by[rows]], law)
    return c, pairings


def _beside(pairings: list[_Pairing], top: FloatArray, most: int) -> FloatArray:
    """For each row of the first nodes, the law of the sum of all other nodes."""
    for law, own, other in reversed(pairings):
        below = np.zeros_like(law)
        below[:, own] = _sum(top[:, : len(own)], law[:, other], most)  # without the padding
        top = below
    return top


def _chances(
    rest: FloatArray, above: FloatArray, least: FloatArray, m: FloatArray, fewer: FloatArray
) -> FloatArray:
    """The sum over m copies that may tie of P(a place is left when their turn comes).

    Copies before the one looked at count if they are at least as large, those after it if they are
    larger. ``rest`` is the law of the others in the group, ``fewer[j]`` the chance that other
    groups leave more than j places.
    """
    q = len(rest)
    if q == 1:
        with np.errstate(divide="ignore"):
            power, factor = tied_copies(np.log1p(-least), np.log1p(-above), m)
        return np.asarray(rest[0] * fewer[0] * np.exp(power) * factor)
    out = m * (_sum(rest, _binomials(above, m - 1, q), q) * fewer).sum(axis=0)
    tied = np.flatnonzero((m > 1) & (above != least))
    out[tied] = 0.0
    for i in range(int(m[tied].max(initial=0))):
        one = tied[m[tied] > i]
        own = _sum(
            _binomials(least[one], np.full(len(one), i), q),
            _binomials(above[one], m[one] - 1 - i, q),
            q,
        )
        out[one] += (_sum(rest[:, one], own, q) * fewer[:, one]).sum(axis=0)
    return np.asarray(out)


def tied_copies(
    before: FloatArray, at: FloatArray, m: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """The sum over j < m of F(x-)^j F(x)^(m-1-j): of ties the first copy wins.

    ``before`` and ``at`` are the logarithms of F(x-) and F(x). Returns the logarithm of a power and
    a factor, which may be far from 1, so that its logarithm would lose digits.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        step = before - at
        down = -np.abs(step)  # with weights, F may fall: then the sum is read from its other end
        factor = np.where(down == 0, m, np.expm1(m * down) / np.expm1(down))
        power = (m - 1) * (at + np.maximum(step, 0.0))
    one, none = np.equal(m, 1), at == -np.inf
    return (
        np.where(one, 0.0, np.where(none, -np.inf, power)), np.where(one | none, 1.0, factor)
    )  # fmt: skip


def _surely_none(most: int, width: int) -> FloatArray:
    """The law of a count that is 0 for sure."""
    out = np.zeros((most, width))
    out[0] = 1.0
    return out


def _binomials(t: FloatArray, m: FloatArray, most: int) -> FloatArray:
    """P(exactly j of m values with chance t are there) for j < most, in logarithms."""
    out, ways = np.zeros((most, len(t))), np.zeros(len(t))
    with np.errstate(divide="ignore", invalid="ignore"):
        stay, come = np.log1p(-t), np.log(t) if most > 1 else t
        for j in range(most):
            ways += np.log((m - j + 1) / j) if j else 0.0
            chance = ways + (j * come if j else 0.0) + np.where(m > j, (m - j) * stay, 0.0)
            out[j] = np.where(m >= j, np.exp(chance), 0.0)
    return out


def _sum(a: FloatArray, b: FloatArray, most: int) -> FloatArray:
    """The law of the sum of two counts, as far as it is below ``most``."""
    out: FloatArray = a * b[0]
    for j in range(1, min(len(b), most)):
        out[j:] += a[: most - j] * b[j]
    return out
