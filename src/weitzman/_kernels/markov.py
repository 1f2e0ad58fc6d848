"""Markov chains without subtractions: stationary law, absorption, the sweep of an endless line.

All three eliminate states one by one. Eliminating state j from a chain that is watched only outside
j turns the probabilities into ``N[i, l] + N[i, j] N[j, l] / pivot``, where the pivot, 1 - N[j, j],
is summed from the ways out of j instead (Grassmann, Taksar and Heyman). Only positive numbers are
added, multiplied and divided, so that each result has a small relative error, however slowly the
chain moves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._common.arrays import FloatArray
from .jit import ANY_ORDER, add_up, helper, kernel

GAIN, SLOPE, OUTLAY = 0, 1, 2


def cubic(law: np.ndarray, *_: object) -> float:
    """Steps for a law of k states: about k cubed."""
    return float(law.size**1.5)


@kernel(work=cubic)
def stationary(law: FloatArray) -> FloatArray:
    """The stationary distribution of an irreducible chain."""
    a = law.copy()
    k = len(a)
    for j in range(k - 1, 0, -1):
        out = add_up(a[j, :j])
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
    return pi / add_up(pi)


@kernel(work=cubic)
def absorb(inner: FloatArray, leave: FloatArray, right: FloatArray) -> FloatArray:
    """Solve (I - inner) X = right >= 0, where the rows of ``inner`` and ``leave`` sum to one.

    From each state the chain leaves in the end; the caller has seen to it.
    """
    a, out, x = inner.copy(), leave.copy(), right.copy()
    k = len(a)
    pivot = np.empty(k)
    for j in range(k - 1, -1, -1):
        pivot[j] = add_up(a[j, :j]) + out[j]
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


class Factors(NamedTuple):
    """The factors of I - P_DD, with N the censored probabilities.

    For i > j ``upper[j, i]`` = N[j, i] and ``lower[j, i]`` = N[i, j]; zero where i or j never was
    in D; ``pivot[j]`` = 1 - N[j, j]. Only states before ``end``, where U begins, count. So loops
    over i run through memory in order, zeros included.
    """

    upper: np.ndarray
    lower: np.ndarray
    pivot: np.ndarray


@helper(ANY_ORDER)
def _add(total, share, part):
    """total += share * part"""
    for i in range(len(total)):
        total[i] += share * part[i]


@helper(ANY_ORDER)
def _dot(a, b):
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@helper()
def _forward(active, end, factors, right):
    """Eliminate D from the right sides of (I - P_DD) X = B, in place."""
    _, lower, pivot = factors
    for j in active:
        for r in range(len(right)):
            _add(right[r, j + 1 : end], right[r, j] / pivot[j], lower[j, j + 1 : end])


@helper()
def _backward(active, end, factors, right, x, pending):
    """Solve for X from what `_forward` left; gains and outlays only if an index is pending.

    Without them the old ones continue: they jump where D changes, but their difference does not.
    """
    upper, _, pivot = factors
    for j in active[::-1]:
        for r in range(len(right)):
            if r == SLOPE or pending:
                after = _dot(upper[j, j + 1 : end], x[r, j + 1 : end])
                x[r, j] = (right[r, j] + after) / pivot[j]


@helper(ANY_ORDER)
def _leaving(s, law, active, others, into_u):
    """Probabilities of leaving D, s included, for its states; ``others`` are not in D nor in U."""
    leave = np.zeros(len(law))
    leave[s] = into_u[s] + law[s][others].sum()
    for i in active:
        total = into_u[i]
        for y in others:
            total += law[i, y]
        leave[i] = total
    return leave


@helper(ANY_ORDER)
def _update(up, low, row, col, share, more):
    """One step of Bennett's update; gives the sum of the new upper row."""
    total = 0.0
    for i in range(len(up)):
        old_up, old_low = up[i], low[i]
        up[i] = old_up + share[1] * row[i]
        low[i] = old_low + share[0] * col[i]
        total += up[i]
        row[i] += more[0] * old_up
        col[i] += more[1] * old_low
    return total


@helper()
def _join(s, end, law, active, leave, factors):
    """Let s join D, at its place: the factors for the larger D.

    States before s were eliminated before it, so their pivots stay. What follows changes by a
    multiple of rank one, which is carried through its factors (Bennett's update).
    """
    upper, lower, pivot = factors
    row, col = np.zeros(end), np.zeros(end)
    for i in active:
        row[i], col[i] = law[s, i], law[i, s]
    here = np.searchsorted(active, s)
    for j in active[:here]:
        up, low = upper[j, j + 1 : end], lower[j, j + 1 : end]
        leave[s] += leave[j] / pivot[j] * row[j]
        _add(row[j + 1 :], row[j] / pivot[j], up)
        _add(col[j + 1 :], col[j] / pivot[j], low)
        _add(leave[j + 1 : end], leave[j] / pivot[j], low)
        lower[j, s], upper[j, s] = row[j], col[j]
    scale = leave[s] + add_up(row[s + 1 :])
    pivot[s] = scale
    upper[s, s + 1 : end], lower[s, s + 1 : end] = row[s + 1 :], col[s + 1 :]
    _add(leave[s + 1 : end], leave[s] / scale, col[s + 1 :])
    for j in active[here:]:
        old = pivot[j]
        share, more = (row[j] / scale, col[j] / scale), (row[j] / old, col[j] / old)
        low = lower[j, j + 1 : end]
        total = _update(upper[j, j + 1 : end], low, row[j + 1 :], col[j + 1 :], share, more)
        pivot[j] = leave[j] + total
        scale *= pivot[j] / old
        _add(leave[j + 1 : end], leave[j] / pivot[j], low)
    return np.concatenate((active[:here], np.array([s]), active[here:]))


@kernel(work=cubic)
def sweep(
    law: FloatArray, reward: FloatArray, cost: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Indices of an endless line, and the law of what each state is worth.

    The rewards ascend. With C the states whose index exceeds x, U those whose reward does, and
    D = C - U, the gain of continuing from s is

        H(x, s) = v(s) - cost(s) + sum_{y in D} P(s, y) H(x, y),
        v(s) = sum_{y in U} P(s, y) (reward(y) + H(reward(y), y) - x),

    and all of it moves in straight lines until x meets a reward or an index. Gains, slopes and
    outlays are kept apart, so that nothing cancels but in H = gain - outlay. D is eliminated from
    the lowest reward up, so that the next state to leave it is the last one and costs nothing.

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
    index, known, inside = np.full(k, -np.inf), np.zeros(k, np.bool_), np.zeros(k, np.bool_)
    factors = Factors(np.zeros((k, k)), np.zeros((k, k)), np.zeros(k))
    active = np.empty(0, np.int64)  # the states of D
    v, u, away = np.zeros(k), np.zeros(k), np.zeros(k)
    right, x = np.zeros((3, k)), np.zeros((3, k))  # gains, slopes, outlays: forward, and solved
    point, after = np.empty(2 * k + 1), np.zeros((2 * k + 1, k))
    m, first, stale = 0, k, False  # U is first, first + 1, ...
    base, drop = reward[k - 1], 0.0  # the last reward passed, and the way down from it
    while True:
        while first > 0 and reward[first - 1] == base - drop:
            first -= 1
            y, worth = first, max(x[GAIN, first] - x[OUTLAY, first], 0.0)  # 0 if it was never in D
            for s in range(k):
                v[s] += columns[y, s] * worth
                u[s] += columns[y, s]
            stale = stale or not inside[y]
            inside[y] = False
            for j in active:
                right[GAIN, j] += factors.upper[j, y] * worth
                right[SLOPE, j] += factors.upper[j, y]
        while len(active) > 0 and active[-1] >= first:
            active = active[:-1]
        if stale:
            right[GAIN], right[SLOPE], right[OUTLAY] = v, u, cost
            _forward(active, first, factors, right)
            stale = False
        _backward(active, first, factors, right, x, not known.all())
        if m == 0 or point[m - 1] != base - drop:
            m += 1
        point[m - 1] = base - drop
        after[m - 1, :first] = 0.0
        after[m - 1, first:] = 1.0
        for y in active:
            after[m - 1, y] = min(x[SLOPE, y], 1.0)
        level = reward[first - 1] if first > 0 else -np.inf
        step, joins = base - level - drop, -1
        for s in range(k):
            if not known[s]:
                lead = law[s, :first]
                lacks = cost[s] + _dot(lead, x[OUTLAY, :first]) - v[s] - _dot(lead, x[GAIN, :first])
                slope = u[s] + _dot(lead, x[SLOPE, :first])
                away[s] = max(lacks, 0.0) / slope if slope > 0 else np.inf
                if s < first and away[s] < step:
                    step, joins = away[s], s
        for s in range(k):
            if not known[s] and (s == joins or (s >= first and away[s] <= step)):
                known[s] = True
                index[s] = max(base - (drop + away[s]), level)  # -inf if no reward can follow
        if step == np.inf:
            break
        v += u * step
        for y in active:
            right[GAIN, y] += right[SLOPE, y] * step
            x[GAIN, y] += x[SLOPE, y] * step
        drop += step
        if joins < 0 or base - drop <= level:
            base, drop = level, 0.0
        if joins >= 0:
            inside[joins], stale = True, True
            leave = _leaving(joins, law, active, np.flatnonzero(~inside[:first]), u)
            active = _join(joins, first, law, active, leave, factors)
        if first == 0 and known.all():
            break
    return index, point[:m], after[:m]
