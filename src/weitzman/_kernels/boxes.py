"""The value of a box: max of reward and children, mixed by the law, capped by the index."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .blocks import errors_of, padded, power_error, tops_of
from .jit import lane_helper
from .lanes import (
    LANES,
    above,
    add,
    at_least,
    both,
    div,
    either,
    larger,
    leading,
    load,
    madd,
    some,
    splat,
    splat_at,
    store,
    sub,
    where,
)  # fmt: skip

GROUP = 4  # breakpoints that a matrix product takes at a time
FEW = 16  # states: it takes longer to find out which products matter than to do them all


class Listing(NamedTuple):
    """Breakpoints written down from the top, and which row of tails belongs to each."""

    points: np.ndarray
    rows: np.ndarray
    numbers: np.ndarray  # 0, 1, 2, ...


class Tails(NamedTuple):
    """P(W_s >= points[j]) = rows[j, s], for n falling breakpoints and so many padded states."""

    points: np.ndarray
    n: int
    rows: np.ndarray
    lanes: int


class Spans(NamedTuple):
    """Between which rows of a factor each of its columns is neither zero nor at its last value."""

    own: int  # how many columns
    first: np.ndarray  # zero before this row
    end: np.ndarray  # and from this row on
    last: np.ndarray  # the same number
    active: np.ndarray  # room for numbers of columns
    base: np.ndarray  # room for a row of the product


@lane_helper()
def transpose(law, k, own, out):
    """out[y, s] = P(s, y), with zeros for the padding of s."""
    lanes = padded(k)
    if lanes != k:
        for i in range(0, own * lanes, LANES):
            store(out, i, splat(0.0))
    for s in range(k):
        for y in range(own):
            out[y * lanes + s] = law[s * own + y]


@lane_helper()
def _copy_above(x, i, level, out, n):
    """Copy from falling ``x[i:]`` to the n-th of a listing on what lies above ``level``.

    Returns where both then stand. Eight at a time: what is copied too much will be written over.
    """
    more = True
    while more:
        eight = load(x, i)
        store(out.points, n, eight)
        store(out.rows, n, load(out.numbers, i))
        c = leading(above(eight, splat(level)))
        i, n, more = i + c, n + c, c == LANES
    return i, n


@lane_helper()
def box_grid(x, levels, distinct, bare, out):
    """Breakpoints of max(reward, X), from the top: the rewards, and those of X above the lowest.

    ``x`` are the breakpoints of X, ``levels[:distinct]`` the rewards in rising order. The row of a
    breakpoint is that of the lowest breakpoint of X not below. ``bare``: some state has no reward,
    so that all of X counts.
    """
    i, n = np.int64(1), np.int64(0)
    for q in range(distinct - 1, -1, -1):
        i, n = _copy_above(x, i, levels[q], out, n)
        i += x[i] == levels[q]
        out.points[n], out.rows[n] = levels[q], i - 1
        n += 1
    if bare:
        i, n = _copy_above(x, i, -np.inf, out, n)
    out.points[n] = -np.inf
    return n


@lane_helper()
def lift(rows, lanes, reward, grid, n, after):
    """after[j, y] = P(max(reward(y), X_y) >= x[j]): one up to the reward, then the tail of X."""
    for u in range(0, lanes, LANES):
        r, one = load(reward, u), splat(1.0)
        for j in range(n):
            t = load(rows, grid.rows[j] * lanes + u)
            store(after, j * lanes + u, where(at_least(r, splat_at(grid.points, j)), one, t))


@lane_helper()
def lift_error(x, own, reward, outside, out):
    """Errors of X where it can still matter: where its top lies above what is at hand."""
    lanes = padded(own)
    tops = tops_of(x.block, lanes)
    if x.copies == 1.0:
        for u in range(0, lanes, LANES):
            matters = above(load(tops, u), larger(load(reward, u), splat(outside)))
            store(out, u, where(matters, load(errors_of(x.block), u), splat(0.0)))
    else:
        for y in range(own):
            matters = tops[y] > max(reward[y], outside)
            out[y] = power_error(x, own, y) if matters else 0.0


@lane_helper()
def count_above(grid, n, x):
    """How many of n falling breakpoints lie above x."""
    lo, hi = np.int64(0), n
    while lo < hi:
        mid = (lo + hi) >> 1
        if grid[mid] > x:
            lo = mid + 1
        else:
            hi = mid
    return lo


@lane_helper()
def find_spans(tops, reward, grid, n, spans):
    """The tails of max(reward, X) are zero above the top of X, and one up to the reward."""
    for y in range(spans.own):
        spans.end[y], spans.last[y] = count_above(grid, n, reward[y]), 1.0
        spans.first[y] = count_above(grid, n, max(tops[y], reward[y]))


@lane_helper()
def mix(after, own, law, lanes, n, out):
    """out[j, s] = sum_y after[j, y] * law[y, s], for j < n rounded up to a multiple of four."""
    across = padded(own)
    for j in range(0, n, GROUP):
        i = j * across
        for u in range(0, lanes, LANES):
            a = b = c = d = splat(0.0)  # four sums at once: they wait for memory together
            for y in range(own):
                p = load(law, y * lanes + u)
                a = madd(splat_at(after, i + y), p, a)
                b = madd(splat_at(after, i + across + y), p, b)
                c = madd(splat_at(after, i + 2 * across + y), p, c)
                d = madd(splat_at(after, i + 3 * across + y), p, d)
            to = j * lanes + u
            store(out, to, a)
            store(out, to + lanes, b)
            store(out, to + 2 * lanes, c)
            store(out, to + 3 * lanes, d)


@lane_helper()
def mix_between(after, spans, law, lanes, n, out):
    """The same as `mix`, without most products of columns by zero and by their last values.

    From one row to the next, more and more rows of the law are added up for good, and only the
    columns between are multiplied. Returns how many rows are done: the last few are left.
    """
    across = padded(spans.own)
    for u in range(0, lanes, LANES):
        store(spans.base, u, splat(0.0))
    for j in range(0, n - GROUP + 1, GROUP):
        count = np.int64(0)
        for y in range(spans.own):
            spans.active[count] = y
            count += (spans.first[y] < j + GROUP) & (spans.end[y] > j)
            if j - GROUP < spans.end[y] <= j:  # from here on at its last value
                weight = splat_at(spans.last, y)
                for u in range(0, lanes, LANES):
                    p = load(law, y * lanes + u)
                    store(spans.base, u, madd(weight, p, load(spans.base, u)))
        for u in range(0, lanes, LANES):
            a = b = c = d = load(spans.base, u)
            for i in range(count):
                y = spans.active[i]
                p, at = load(law, y * lanes + u), j * across + y
                a = madd(splat_at(after, at), p, a)
                b = madd(splat_at(after, at + across), p, b)
                c = madd(splat_at(after, at + 2 * across), p, c)
                d = madd(splat_at(after, at + 3 * across), p, d)
            to = j * lanes + u
            store(out, to, a)
            store(out, to + lanes, b)
            store(out, to + 2 * lanes, c)
            store(out, to + 3 * lanes, d)
    return n & -GROUP


@lane_helper()
def indices(tails, price, sigma):
    """Root in x of E[(W_s - x)^+] = price[s].

    Areas under the tail are summed from the top, so that nothing cancels. A free box gets the
    smallest solution: the top of the support. Minus infinity when W never is a number.
    ``points[n]`` is minus infinity: down to there any area can be had.
    """
    grid, n, rows, lanes = tails
    for u in range(0, lanes, LANES):
        c, never = load(price, u), splat(-np.inf)
        area = before = height = splat(0.0)
        left = right = never
        open_ = above(splat(np.inf), c)  # not yet found: those see every breakpoint
        for j in range(n):
            t = load(rows, j * lanes + u)
            height, before = where(open_, t, height), where(open_, area, before)
            p, q = splat_at(grid, j), splat_at(grid, j + 1)
            right, left = where(open_, p, right), where(open_, q, left)
            area = madd(t, sub(p, q), area)
            open_ = both(open_, either(above(c, area), at_least(splat(0.0), t)))
            if not some(open_):
                break
        # rounding must not carry the root past the next breakpoint below
        x = larger(sub(right, div(sub(c, before), height)), left)
        store(sigma, u, where(above(height, splat(0.0)), x, never))


@lane_helper()
def sort_down(v, lanes, rank, out):
    """The distinct numbers of ``v``, the largest first, with plus infinity in the gaps between.

    Sorted by counting the larger ones, since a comparison sort guesses wrongly at every branch.
    """
    for u in range(0, lanes, LANES):
        x, larger_ones = load(v, u), splat(0.0)
        for i in range(lanes):
            one = where(above(splat_at(v, i), x), splat(1.0), splat(0.0))
            larger_ones = add(larger_ones, one)
        store(rank, u, larger_ones)
        store(out, u, splat(np.inf))
    for i in range(lanes):
        out[np.int64(rank[i])] = v[i]


@lane_helper()
def cap_grid(grid, caps, lanes, out):
    """Breakpoints of min(W, sigma), from the top: the indices, and those of W below the largest.

    The row of a breakpoint is that of the lowest breakpoint of W not below; ``grid`` are those.
    """
    if caps[0] == -np.inf:
        return np.int64(0)
    m = np.int64(0)
    i, _ = _copy_above(grid, m, caps[0], out, m)
    for q in range(lanes):
        if caps[q] == np.inf:
            continue
        if caps[q] == -np.inf:
            break
        i, m = _copy_above(grid, i, caps[q], out, m)
        i += grid[i] == caps[q]
        out.points[m], out.rows[m] = caps[q], i - 1
        m += 1
    _, m = _copy_above(grid, i, -np.inf, out, m)
    return m


@lane_helper()
def prices(cost, rows, columns, law, k, own, price):
    """Expected costs for all states of the parent; the padding can never afford it.

    ``cost`` has a row for each state of the parent or one for all, and columns alike.
    """
    for s in range(k):
        i = (s if rows > 1 else 0) * columns
        price[s] = cost[i]
        if columns > 1:
            price[s] = 0.0
            for y in range(own):
                price[s] += law[s * own + y] * cost[i + y]
    for s in range(k, padded(k)):
        price[s] = np.inf


@lane_helper()
def take_indices(sigma, tails, k, after, reward, own, clear, out):
    """Copy indices that are given; one above everything caps nothing, so the top will do.

    Also P(X_y < reward(y)) for each own state y, from the row just above the reward.
    """
    grid, n, across = tails.points, tails.n, padded(own)
    top = grid[0] if n > 0 else -np.inf
    for s in range(tails.lanes):
        out[s] = min(sigma[s], top) if s < k else -np.inf
    for y in range(own):
        lo = count_above(grid, n, reward[y])
        clear[y] = 1.0 - after[(lo - 1) * across + y] if lo > 0 else 1.0
