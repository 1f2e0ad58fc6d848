"""Pictures of budgets, and of which numbers matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...errors import InvalidArgument
from ...questions.budget import SpendFrontier
from ...questions.caution import RiskSweep
from ...questions.robustness import Tornado
from .style import (
    BLUE,
    SKY,
    VERMILION,
    amount_axis,
    axes,
    calm,
    colors,
    ink,
    key,
    muted,
    named_rows,
    plain,
)  # fmt: skip

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def frontier(curve: SpendFrontier, *, ax: Axes | None = None) -> Axes:
    """The most expected reward for each expected spend; the slope is the price of money.

    Parameters
    ----------
    curve : SpendFrontier
        From :func:`weitzman.questions.frontier`.
    ax : Axes, optional
    """
    _check(curve, SpendFrontier)
    ax = axes(ax, 5.2, 3.4)
    calm(ax, grid="y")
    ax.plot(curve.spend, curve.reward, color=BLUE, marker="o", markersize=4, label="best policies")
    corner = curve.corners[int(np.count_nonzero(curve.price > 1))]  # slopes fall
    ax.plot(
        [corner.spend], [corner.reward], "o", color=VERMILION, markersize=8,
        label="the best policy at the current costs",
    )  # fmt: skip
    ax.set_xlabel("expected spend", color=ink())
    ax.set_ylabel(f"expected {'loss' if curve.forest.minimize else 'reward'}", color=ink())
    amount_axis(ax, "xy", curve.forest.amounts)
    key(ax)
    return ax


def risk_sweep(sweep: RiskSweep, *, ax: Axes | None = None) -> Axes:
    """The certainty equivalent against the risk tolerance; colors show the first decision.

    Parameters
    ----------
    sweep : RiskSweep
        From :func:`weitzman.questions.risk_sweep`.
    ax : Axes, optional
    """
    _check(sweep, RiskSweep)
    ax = axes(ax, 5.2, 3.4)
    calm(ax, grid="y")
    ranges = sweep.decisions()
    boxes = list(dict.fromkeys(first for _, _, first in ranges))
    shade = dict(zip(boxes, colors(len(boxes)), strict=True))
    for i, (high, low, first) in enumerate(ranges):
        inside = (sweep.tolerance < high) & (sweep.tolerance > low)
        ends = [x for x in (high, low) if 0 < x < np.inf]
        x = np.sort(np.append(sweep.tolerance[inside], ends))
        value = np.interp(np.log(x), np.log(sweep.tolerance[::-1]), sweep.value[::-1])
        new = all(first != other for _, _, other in ranges[:i])
        what = "open nothing" if first is None else f"open {plain(first)} first"
        ax.plot(x, value, color=shade[first], linewidth=2.4, label=what if new else None)
    for turn in sweep.turns.tolist():
        ax.axvline(turn, color=muted(ax), linewidth=0.8, linestyle=":")
    ax.axhline(
        sweep.solution.value, color=muted(ax), linewidth=0.8, linestyle="--",
        label="expected payoff alone",
    )  # fmt: skip
    ax.set_xscale("log")
    ax.set_xlabel("risk tolerance: careful to bold", color=ink())
    ax.set_ylabel("certainty equivalent", color=ink())
    amount_axis(ax, "xy", sweep.solution.forest.amounts)
    key(ax)
    return ax


def tornado(found: Tornado, *, limit: int = 12, ax: Axes | None = None) -> Axes:
    """How the value changes with each number, with a mark where another box would come first.

    Parameters
    ----------
    found : Tornado
        From :func:`weitzman.questions.tornado`.
    limit : int
        Show at most this many numbers: the numbers with the widest swing.
    ax : Axes, optional
    """
    _check(found, Tornado)
    swings = found.swings[:limit]
    names = [f"{s.number} of {s.box}" if s.box else s.number for s in swings]
    names = [f"{n}, turns" if s.turns else n for n, s in zip(names, swings, strict=True)]
    ax = axes(ax, 5.4, 1.3 + 0.26 * max(len(names), 1))
    calm(ax, grid="x")
    rows = np.arange(len(names))
    low = np.array([s.low for s in swings]) - found.solution.value
    high = np.array([s.high for s in swings]) - found.solution.value
    ax.barh(rows, low, 0.72, left=found.solution.value, color=SKY, label="lowered")
    ax.barh(rows, high, 0.72, left=found.solution.value, color=BLUE, label="raised")
    ax.axvline(found.solution.value, color=ink(), linewidth=0.8, label="as things stand")
    named_rows(ax, names)
    ax.set_xlabel("value", color=ink())
    amount_axis(ax, "x", found.solution.forest.amounts)
    if names:
        key(ax)
    return ax


def _check(source: object, kind: type) -> None:
    if not isinstance(source, kind):
        raise InvalidArgument(
            f"this picture needs a {kind.__name__}, but got a {type(source).__name__}."
        )
