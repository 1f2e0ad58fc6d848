r"""How many of many independent values are large: the law of a count, from the top down.

For independent values :math:`\kappa_i` let :math:`N(x)` be the number of those that are at least
:math:`x`. Walking down all breakpoints, one value at a time becomes more likely to be counted. The
law of :math:`N`, up to a number K of prizes, is kept in a balanced tree whose leaves are the values
and whose inner nodes are sums. So a step costs :math:`K^2 \log n`, and nothing is ever divided.
"""

from __future__ import annotations

import math

import numpy as np

from .jit import helper, kernel


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
def _without(tree, leaf, prizes, out, spare):
    """The law of the count of all leaves but one: the sum of all that stands beside its path."""
    node = leaf + tree.shape[0] // 2
    for j in range(prizes):
        out[j] = 0.0
    out[0] = 1.0
    while node > 1:
        _add(out, tree[node ^ 1], prizes, spare)
        for j in range(prizes):
            out[j] = spare[j]
        node >>= 1


@helper()
def _fewer(law, prizes):
    """P(count < prizes)."""
    total = 0.0
    for j in range(prizes):
        total += law[j]
    return min(total, 1.0)


@helper()
def _chances(others, above, least, m, prizes, own, more, spare):
    """For m copies that may tie: the sum over them of P(fewer than ``prizes`` come before).

    Copies before the one looked at count if they are at least as large, those after it if they are
    larger.
    """
    if m == 1.0:
        return _fewer(others, prizes)
    if above == least:
        binomial(above, m - 1.0, prizes, own)
        _add(others, own, prizes, more)
        return m * _fewer(more, prizes)
    total = 0.0
    for i in range(int(m)):
        binomial(least, float(i), prizes, own)
        _add(others, own, prizes, more)
        binomial(above, m - 1.0 - i, prizes, own)
        _add(more, own, prizes, spare)
        total += _fewer(spare, prizes)
    return total


@kernel()
def walk(leaf, tail, copies, prizes, ask):
    """Go down events: at event e the chance of leaf ``leaf[e]`` rises to ``tail[e]``.

    Returns for each event, after it, E min(prizes, N) and P(N < prizes); and before it, if one
    asks, the sum over the copies of that leaf of P(fewer than ``prizes`` of all others are there).
    """
    size = 1
    while size < copies.size:
        size *= 2
    tree = np.zeros((2 * size, prizes))
    tree[:, 0] = 1.0
    now = np.zeros(copies.size)
    filled, open_, others = np.empty(leaf.size), np.empty(leaf.size), np.empty(leaf.size)
    law, own = np.empty(prizes), np.empty(prizes)
    more, spare = np.empty(prizes), np.empty(prizes)
    for e in range(leaf.size):
        i, t = leaf[e], tail[e]
        if ask:
            _without(tree, i, prizes, law, spare)
            others[e] = _chances(law, now[i], t, copies[i], prizes, own, more, spare)
        if t != now[i]:
            now[i] = t
            node = i + size
            binomial(t, copies[i], prizes, tree[node])
            while node > 1:
                node >>= 1
                _add(tree[2 * node], tree[2 * node + 1], prizes, tree[node])
        missing, none = 0.0, 0.0
        for j in range(prizes):
            missing += (prizes - j) * tree[1, j]
            none += tree[1, j]
        filled[e], open_[e] = prizes - missing, min(none, 1.0)
        if none < 1e-300 and not ask:  # all further events find every place filled
            filled[e:], open_[e:] = prizes, 0.0
            break
    return filled, open_, others
