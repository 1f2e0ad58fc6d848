r"""How many of many independent values are large: the law of a count, from the top down.

For independent values :math:`\kappa_i` let :math:`N_g(x)` be the number of those of group g that
are at least :math:`x`. Walking down all breakpoints, one value at a time becomes more likely to be
counted. The law of :math:`N_g`, up to the quota of the group, is kept in a balanced tree whose
leaves are the values of the group and whose inner nodes are sums. The groups together fill
:math:`\sum_g \min(q_g, N_g)` places, at most K. So a step costs :math:`K^2 (\log n + G)`, and
nothing is ever divided.
"""

from __future__ import annotations

import math

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .jit import helper, kernel

_NO_GROUP = np.int64(-1)


@helper()
def binomial(t, m, prizes, out):
    """P(of m values with chance t, exactly j are there) for j < prizes, in logarithms."""
    for j in range(prizes):
        out[j] = 0.0
    if t <= 0.0:
        out[0] = 1.0
        return
    if t >= 1.0:
        if m < prizes:
            out[int(m)] = 1.0
        return
    log_p, odds = m * math.log1p(-t), math.log(t) - math.log1p(-t)
    for j in range(prizes):
        if j > m:
            break
        if j > 0:
            log_p += math.log((m - j + 1.0) / j) + odds
        out[j] = math.exp(log_p)


@helper()
def _add(a, b, prizes, out):
    """The law of the sum of two counts, up to ``prizes``."""
    for j in range(prizes):
        total = 0.0
        for i in range(j + 1):
            total += a[i] * b[j - i]
        out[j] = total


@helper()
def _together(tree, at, quota, skip, prizes, out, spare, group):
    """The law of the places that all groups but ``skip`` fill, as far as it is below ``prizes``."""
    for j in range(prizes):
        out[j] = 0.0
    out[0] = 1.0
    for g in range(quota.size):
        if g == skip:
            continue
        rest = 1.0
        for j in range(prizes):
            group[j] = tree[at[g] + 1, j] if j < quota[g] else 0.0
            rest -= group[j]
        if quota[g] < prizes:  # a full group fills as many places as its quota
            group[quota[g]] = max(rest, 0.0)
        _add(out, group, prizes, spare)
        for j in range(prizes):
            out[j] = spare[j]


@helper()
def _place(law, quota, fewer, prizes):
    """P(count < quota, and with the other groups fewer than ``prizes``).

    ``fewer[j]`` is the chance that the other groups fill fewer than j + 1 places.
    """
    total = 0.0
    for j in range(quota):
        total += law[j] * fewer[prizes - 1 - j]
    return min(total, 1.0)


@helper()
def _chances(others, above, least, m, limits, own, more, spare):
    """For m copies that may tie: the sum over them of P(a place is left when their turn comes).

    Copies before the one looked at count if they are at least as large, those after it if they are
    larger.
    """
    quota, fewer, prizes = limits
    if m == 1.0:
        return _place(others, quota, fewer, prizes)
    if above == least:
        binomial(above, m - 1.0, prizes, own)
        _add(others, own, prizes, more)
        return m * _place(more, quota, fewer, prizes)
    total = 0.0
    for i in range(int(m)):
        binomial(least, float(i), prizes, own)
        _add(others, own, prizes, more)
        binomial(above, m - 1.0 - i, prizes, own)
        _add(more, own, prizes, spare)
        total += _place(spare, quota, fewer, prizes)
    return total


@kernel()
def walk(
    leaf: IntArray,
    tail: FloatArray,
    values: tuple[FloatArray, IntArray, IntArray],
    prizes: int,
    ask: bool,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Go down events: at event e the chance of leaf ``leaf[e]`` rises to ``tail[e]``.

    Returns for each event, after it, E min(prizes, places filled) and P(fewer than ``prizes``); and
    before it, if one asks, the sum over the copies of that leaf of the chance that a place is left
    for it by all others.
    """
    copies, group, quota = values
    groups = quota.size
    size, at = np.zeros(groups, np.int64), np.empty(groups, np.int64)  # of the tree of each group
    place = np.empty(copies.size, np.int64)  # of each leaf in its tree
    for i in range(copies.size):
        place[i] = size[group[i]]
        size[group[i]] += 1
    rows = 0
    for g in range(groups):
        width = 1
        while width < size[g]:
            width *= 2
        size[g], at[g] = width, rows
        rows += 2 * width
    tree = np.zeros((rows, prizes))
    for i in range(rows):
        tree[i, 0] = 1.0
    now = np.zeros(copies.size)
    filled, open_, others = np.empty(leaf.size), np.empty(leaf.size), np.empty(leaf.size)
    law, own, sums = np.empty(prizes), np.empty(prizes), np.empty(prizes)
    more, spare, fewer = np.empty(prizes), np.empty(prizes), np.ones(prizes)
    for e in range(leaf.size):
        i, t = leaf[e], tail[e]
        g = group[i]
        if ask:
            if groups > 1:
                _together(tree, at, quota, g, prizes, sums, spare, own)
                chance = 0.0
                for j in range(prizes):
                    chance += sums[j]
                    fewer[j] = chance
            node = place[i] + size[g]
            for j in range(prizes):
                law[j] = 1.0 if j == 0 else 0.0
            while node > 1:  # all leaves but one: the sum of what is beside its path
                _add(law, tree[at[g] + (node ^ 1)], prizes, spare)
                node >>= 1
                for j in range(prizes):
                    law[j] = spare[j]
            limits = quota[g], fewer, prizes
            others[e] = _chances(law, now[i], t, copies[i], limits, own, more, spare)
        if t != now[i]:
            now[i] = t
            node = place[i] + size[g]
            binomial(t, copies[i], prizes, tree[at[g] + node])
            while node > 1:
                node >>= 1
                left = at[g] + 2 * node
                _add(tree[left], tree[left + 1], prizes, tree[at[g] + node])
        _together(tree, at, quota, _NO_GROUP, prizes, sums, spare, own)
        missing, none = 0.0, 0.0
        for j in range(prizes):
            missing += (prizes - j) * sums[j]
            none += sums[j]
        filled[e], open_[e] = prizes - missing, min(none, 1.0)
        if none < 1e-300 and not ask:  # all further events find every place filled
            filled[e:], open_[e:] = prizes, 0.0
            break
    return filled, open_, others
