"""Markov chains without subtractions: stationary law, absorption, the sweep of an endless line.

All three eliminate states one by one. Eliminating state j from a chain that is watched only outside
j turns the probabilities into ``N[i, l] + N[i, j] N[j, l] / pivot``, where the pivot, 1 - N[j, j],
is summed from the ways out of j instead (Grassmann, Taksar and Heyman). Only positive numbers are
added, multiplied and divided, so that each result has a small relative error, however slowly the
chain moves.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_JIT = {"cache": True, "nogil": True}
_SUMS = {**_JIT, "fastmath": {"reassoc", "contract"}}  # sums in any order; infinities as ever


@njit(**_JIT)
def stationary(law):
    """The stationary distribution of an irreducible chain."""
    a = law.copy()
    k = len(a)
    for j in range(k - 1, 0, -1):
        out = a[j, :j].sum()
        for i in range(j):
            a[i, j] /= out
            share = a[i, j]
            if share > 0:
                for col in range(j):
                    a[i, col] += share * a[j, col]
    pi = np.zeros(k)
    pi[0] = 1.0
    for j in range(1, k):
        for i in range(j):
            pi[j] += pi[i] * a[i, j]
    return pi / pi.sum()


@njit(**_JIT)
def absorb(inner, leave, right):
    """Solve (I - inner) X = right >= 0, where the rows of ``inner`` and ``leave`` sum to one.

    From each state the chain leaves in the end; the caller has seen to it.
    """
    a, out, x = inner.copy(), leave.copy(), right.copy()
    k = len(a)
    pivot = np.empty(k)
    for j in range(k - 1, -1, -1):
        pivot[j] = a[j, :j].sum() + out[j]
        for i in range(j):
            share = a[i, j] / pivot[j]
            if share > 0:
                for col in range(j):
                    a[i, col] += share * a[j, col]
                out[i] += share * out[j]
                x[i] += share * x[j]
    for j in range(k):
        for i in range(j):
            x[j] += a[j, i] * x[i]
        x[j] /= pivot[j]
    return x


@njit(**_SUMS)
def _solve(active, upper, lower, pivot, gain, slope, outlay):
    """(I - P_DD) X = B in place for three right sides, from the factors."""
    d = len(active)
    for a in range(d):
        j = active[a]
        g, w, e = gain[j] / pivot[j], slope[j] / pivot[j], outlay[j] / pivot[j]
        for b in range(a + 1, d):
            i = active[b]
            low = lower[j, i]
            gain[i] += g * low
            slope[i] += w * low
            outlay[i] += e * low
    for a in range(d - 1, -1, -1):
        j = active[a]
        g, w, e = gain[j], slope[j], outlay[j]
        for b in range(a + 1, d):
            i = active[b]
            up = upper[j, i]
            g += up * gain[i]
            w += up * slope[i]
            e += up * outlay[i]
        gain[j], slope[j], outlay[j] = g / pivot[j], w / pivot[j], e / pivot[j]


@njit(**_SUMS)
def _join(s, law, active, apart, upper, lower, pivot):
    """Let s join D, at its place: the factors of I - P_DD for the larger D, in O(k |D|).

    States before s were eliminated before it, so their pivots stay. What follows changes by a
    multiple of rank one, which is carried through its factors (Bennett's update).
    """
    k, d = len(law), len(active)
    row, col, leave = np.zeros(k), np.zeros(k), np.zeros(k)
    apart[s] = 0.0
    for a in range(d + 1):
        i = active[a] if a < d else s
        row[i], col[i] = law[s, i], law[i, s]
        total = 0.0
        for y in range(k):
            total += apart[y] * law[i, y]
        leave[i] = total
    here = d
    for a in range(d):
        j = active[a]
        if j > s:
            here = a
            break
        lower[j, s], upper[j, s] = row[j], col[j]
        share_row, share_col = row[j] / pivot[j], col[j] / pivot[j]
        share = leave[j] / pivot[j]
        leave[s] += row[j] * share
        for b in range(a + 1, d):
            i = active[b]
            row[i] += share_row * upper[j, i]
            col[i] += share_col * lower[j, i]
            leave[i] += share * lower[j, i]
    total = leave[s]
    for b in range(here, d):
        i = active[b]
        upper[s, i], lower[s, i] = row[i], col[i]
        total += row[i]
    pivot[s], scale = total, total
    for b in range(here, d):
        leave[active[b]] += col[active[b]] * leave[s] / total
    for a in range(here, d):
        j = active[a]
        share_row, share_col = row[j] / scale, col[j] / scale
        old, total = pivot[j], leave[j]
        more_row, more_col = row[j] / old, col[j] / old
        for b in range(a + 1, d):
            i = active[b]
            up, low = upper[j, i], lower[j, i]
            upper[j, i] = up + share_col * row[i]
            lower[j, i] = low + share_row * col[i]
            total += upper[j, i]
            row[i] += more_row * up
            col[i] += more_col * low
        pivot[j] = total
        scale *= total / old
        share = leave[j] / total
        for b in range(a + 1, d):
            leave[active[b]] += share * lower[j, active[b]]
    return np.concatenate((active[:here], np.array([s]), active[here:]))


@njit(**_SUMS)
def _distance(row, active, gain, slope, outlay, z, w, e):
    """How far down until going on pays, if nothing changes on the way."""
    for y in active:
        p = row[y]
        gain += p * z[y]
        slope += p * w[y]
        outlay += p * e[y]
    return max(outlay - gain, 0.0) / slope if slope > 0 else np.inf


@njit(**_JIT)
def sweep(law, reward, cost):
    """Indices of an endless line, and the law of what each state is worth.

    The rewards ascend. With C the states whose index exceeds x, U those whose reward does, and
    D = C - U, the gain of going on from s is

        H(x, s) = v(s) - cost(s) + sum_{y in D} P(s, y) H(x, y),
        v(s) = sum_{y in U} P(s, y) (reward(y) + H(reward(y), y) - x),

    and all of it moves in straight lines until x meets a reward or an index. Gains (z), slopes (w)
    and outlays (e) are kept apart, so that nothing cancels but in H = z - e.

    Returns
    -------
    index : (k,)
    point : (m,), descending
        Where U or D change.
    after : (m, k)
        ``after[j, y]`` = P(max(reward(y), kappa_y) >= point[j]).
    """
    k = len(law)
    columns = law.T.copy()
    index, known = np.full(k, -np.inf), np.zeros(k, np.bool_)
    upper, lower, pivot = np.zeros((k, k)), np.zeros((k, k)), np.zeros(k)
    active, apart = np.empty(0, np.int64), np.ones(k)  # the states of D; 1 for the others
    v, u, away = np.zeros(k), np.zeros(k), np.zeros(k)
    z, w, e = np.zeros(k), np.zeros(k), np.zeros(k)
    point, after = np.empty(2 * k + 1), np.zeros((2 * k + 1, k))
    m, first = 0, k  # U is first, first + 1, ...
    base, drop = reward[k - 1], 0.0  # x = base - drop, the last reward and the way from it
    while True:
        x = base - drop
        while first > 0 and reward[first - 1] == x:
            first -= 1
            worth = max(z[first] - e[first], 0.0)  # 0 for a state that was never in D
            apart[first] = 1.0
            for s in range(k):
                v[s] += columns[first, s] * worth
                u[s] += columns[first, s]
        while len(active) > 0 and active[-1] >= first:
            active = active[:-1]
        for y in active:
            z[y], w[y], e[y] = v[y], u[y], cost[y]
        _solve(active, upper, lower, pivot, z, w, e)
        if m == 0 or point[m - 1] != x:
            m += 1
        point[m - 1] = x
        after[m - 1, :first] = 0.0
        after[m - 1, first:] = 1.0
        for y in active:
            after[m - 1, y] = min(w[y], 1.0)
        level = reward[first - 1] if first > 0 else -np.inf
        step, joins = base - level - drop, -1
        for s in range(k):
            if known[s]:
                continue
            away[s] = _distance(law[s], active, v[s], u[s], cost[s], z, w, e)
            if s < first and away[s] < step:
                step, joins = away[s], s
        for s in range(k):
            if not known[s] and (s == joins or (s >= first and away[s] <= step)):
                known[s] = True
                index[s] = max(base - (drop + away[s]), level)  # -inf if no reward can follow
        if step == np.inf:
            break
        for s in range(k):
            v[s] += u[s] * step
        for y in active:
            z[y] += w[y] * step
        drop += step
        if joins < 0 or base - drop <= level:
            base, drop = level, 0.0
        if joins >= 0:
            active = _join(joins, law, active, apart, upper, lower, pivot)
        if first == 0 and known.all():
            break
    return index, point[:m], after[:m]
