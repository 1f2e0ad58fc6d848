"""From a ladder to the laws of a line: states chosen by the data, rows smoothed over neighbours.

The state of a run at a rung is its best score so far, on a grid of that rung: every score near the
top, fewer further down, and a few above the best one seen. The law of the next state given ``x``
rests on the runs whose score at that rung was nearest to ``x``, weighted by how near: each says
that the score will rise as its own did. What falls between two grid points is split between them
so that the mean is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._types import FloatArray, IntArray
from ._ladder import Ladder

BEYOND = np.array([0.33, 0.67, 1.0, 1.5, 2.0, 3.0, 4.5])  # grid above the best, in mean excesses


@dataclass(frozen=True, slots=True)
class Settings:
    """How curves become laws.

    Attributes
    ----------
    ratio : float
        Each rung is reached when a run has paid this many times what it had paid at the one before.
    neighbours : float
        The share of the runs at a rung that a row of the law rests on.
    tail : float
        How many runs better than all in the log are imagined at the first rung.
    """

    ratio: float = 1.4
    neighbours: float = 0.08
    tail: float = 0.0
    least: int = 4
    top: int = 12
    points: int = 36


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """The law of one segment.

    ``grid`` holds the scores of its states; ``alive`` and ``gone`` the probabilities of going on
    and of ending there, a row for each state at the rung before; ``cost`` the mean cost of each row
    and ``weight`` the number of runs that it rests on.
    """

    grid: FloatArray
    alive: FloatArray
    gone: FloatArray
    cost: FloatArray
    weight: FloatArray


def segments(ladder: Ladder, settings: Settings) -> list[Segment]:
    """The laws of all segments."""
    out: list[Segment] = []
    for r in range(len(ladder.rungs)):
        runs = np.flatnonzero(ladder.seen > r)
        if not len(runs):
            break
        out.append(_segment(ladder, settings, r, runs, out[-1].grid if r else None))
    return out


def _segment(
    ladder: Ladder, settings: Settings, r: int, runs: IntArray, above: FloatArray | None
) -> Segment:
    after = ladder.best[runs, r]
    grid, excess = grid_of(after, settings)
    if above is None:
        weight, landing = np.ones((1, len(runs))), after[None]
    else:
        before = ladder.best[runs, r - 1]
        weight = nearness(above, before, settings)
        landing = above[:, None] + (after - before)[None]
    weight /= weight.sum(axis=1, keepdims=True)
    last = ladder.gone[runs] & (ladder.seen[runs] == r + 1)
    alive = spread(grid, landing[:, ~last], weight[:, ~last])
    gone = spread(grid, landing[:, last], weight[:, last])
    if above is None and settings.tail > 0 and excess > 0:
        alive, gone = _with_tail(alive, gone, grid, excess, settings.tail, len(runs))
    return Segment(
        grid, alive, gone, weight @ ladder.cost[runs, r], 1.0 / np.square(weight).sum(axis=1)
    )


def grid_of(score: FloatArray, settings: Settings) -> tuple[FloatArray, float]:
    """Scores that serve as states, ascending, and the mean excess of the best few."""
    down = np.unique(score)[::-1]
    n, top = len(down), settings.top
    spaced = np.geomspace(top, max(n, top), settings.points - top).round().astype(int) - 1
    places = np.unique(np.concatenate([np.arange(top), spaced]))
    grid = down[places[places < n]][::-1]
    few = min(max(3, int(np.sqrt(n))), n - 1)
    excess = float(np.mean(down[:few] - down[few])) if few else 0.0
    return np.concatenate([grid, down[0] + excess * BEYOND[: len(BEYOND) * (excess > 0)]]), excess


def nearness(points: FloatArray, score: FloatArray, settings: Settings) -> FloatArray:
    """The weight of each run for each point: falls to nothing at the k-th nearest run."""
    k = min(max(settings.least, int(settings.neighbours * len(score))), len(score))
    gap = np.abs(points[:, None] - score[None])
    reach = np.partition(gap, k - 1, axis=1)[:, k - 1 : k]
    reach = np.where(reach > 0, 1.001 * reach, 1.0)  # the k-th one counts a little
    return np.asarray(np.maximum(1.0 - np.square(gap / reach), 0.0))


def spread(grid: FloatArray, landing: FloatArray, weight: FloatArray) -> FloatArray:
    """Weights of each row put on the grid; what falls between two points is split."""
    rows, size = len(landing), len(grid)
    if size == 1:
        return np.asarray(weight.sum(axis=1, keepdims=True))
    clipped = np.clip(landing, grid[0], grid[-1])
    left = np.clip(np.searchsorted(grid, clipped, "right") - 1, 0, size - 2)
    part = (clipped - grid[left]) / (grid[left + 1] - grid[left])
    share = weight * np.minimum(part, 1.0)
    cell = left + size * np.arange(rows)[:, None]
    stays = np.bincount(cell.ravel(), (weight - share).ravel(), rows * size)
    moves = np.bincount(cell.ravel() + 1, share.ravel(), rows * size)
    return np.asarray(stays + moves, np.float64).reshape(rows, size)


def _with_tail(
    alive: FloatArray, gone: FloatArray, grid: FloatArray, excess: float, tail: float, runs: int
) -> tuple[FloatArray, FloatArray]:
    """The first law with mass above the best score seen: an exponential tail of mean ``excess``."""
    odds = np.exp(-BEYOND)
    best = grid[-len(BEYOND) - 1]
    add = spread(grid, best + excess * BEYOND[None], (odds / odds.sum())[None])
    mass, going = tail / (runs + tail), alive.sum()
    return (1 - mass) * alive + mass * going * add, (1 - mass) * gone + mass * (1 - going) * add
