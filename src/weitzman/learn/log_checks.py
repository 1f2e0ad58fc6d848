"""Rows of a log that can be misread: blanks, cumulative costs, times of day."""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from ..errors import InvalidArgument

Blank = Literal["diverged", "skipped"]

_TIME_OF_DAY = 1e8  # seconds: three years; no step takes that long
_EVEN = 0.3  # spread of the rises of costs over their mean below which they rise evenly
_ROWS = 4  # rows of a run from which a pattern can be seen


def check_scores(score: FloatArray, name: str) -> None:
    """Raise InvalidArgument if there is no score at all."""
    if np.isnan(score).all():
        raise InvalidArgument(
            f"column {name!r} must hold scores, but all {len(score)} of its rows are blank. Say "
            f"which column is meant."
        )


def kept_rows(score: FloatArray, run: IntArray, blank: Blank | None) -> BoolArray:
    """Which rows of a log count, by run and step: all, or those that were evaluated.

    By default, blanks mean "not evaluated" if a score follows a blank in most runs with blanks.
    """
    if blank not in (None, "diverged", "skipped"):
        raise InvalidArgument(f'`blank` must be "diverged" or "skipped", but it is {blank!r}.')
    missing = np.isnan(score)
    if blank is None:
        followed = missing[:-1] & ~missing[1:] & (run[:-1] == run[1:])
        some, back = len(np.unique(run[missing])), len(np.unique(run[:-1][followed]))
        blank = "skipped" if 2 * back > some else "diverged"
    if blank == "diverged":
        return np.ones(len(score), bool)
    never = ~np.isin(run, run[~missing])  # runs without any score stay, as diverged
    return ~missing | never


def with_skipped(cost: FloatArray, run: IntArray, kept: BoolArray) -> FloatArray:
    """The costs of the rows that count, plus the costs of the rows skipped before them."""
    rows = np.flatnonzero(kept)
    ahead = np.minimum(np.cumsum(kept) - kept, len(rows) - 1)  # the row that counts next
    same = run[rows[ahead]] == run
    return np.bincount(ahead[same], cost[same], len(rows)).astype(np.float64)


def step_costs(cost: FloatArray, run: IntArray, cumulative: bool) -> FloatArray:
    """What each row cost; for cumulative costs, the differences within a run."""
    if cumulative:
        first = np.diff(run, prepend=-1) != 0
        each = cost - np.where(first, 0.0, np.roll(cost, 1))
        clock = len(cost) and cost.min() > _TIME_OF_DAY
        return _without_start(each, first, run) if clock else np.asarray(each)
    if len(cost) and cost.min() > _TIME_OF_DAY:
        raise InvalidArgument(
            f"a cost counts from the row before, but the lowest one is {cost.min():.10g}: these "
            f"look like times of day. Say `cumulative=True`, so that the differences count."
        )
    if _rises_evenly(cost, run):
        warnings.warn(
            "the costs of every run rise evenly from row to row, as if they were counted from the "
            "start of the run; they are taken as counted from the row before. If they are not, say "
            "`cumulative=True`.",
            UserWarning,
            stacklevel=4,
        )
    return cost


def _without_start(each: FloatArray, first: BoolArray, run: IntArray) -> FloatArray:
    """Costs by the clock. The start of a run is unknown, so its first row costs what its rows do.

    A run of one row costs the median of all rows.
    """
    usual = float(np.median(each[~first])) if not first.all() else 1.0
    out = each.copy()
    for row in np.flatnonzero(first):
        mine = each[(run == run[row]) & ~first]
        out[row] = np.median(mine) if len(mine) else usual
    return out


def _rises_evenly(cost: FloatArray, run: IntArray) -> bool:
    """Whether the costs of all runs of some length rise by about the same from row to row."""
    if not np.isfinite(cost).all():  # refused elsewhere
        return False
    starts = np.flatnonzero(np.diff(run, prepend=-1))
    parts = [x for x in np.split(cost, starts[1:]) if len(x) >= _ROWS]
    rises = [np.diff(x) for x in parts]
    return len(rises) > 1 and all(
        x.min() > 0 and x.std() < _EVEN * x.mean() and part[-1] > 2 * part[0]
        for x, part in zip(rises, parts, strict=True)
    )
