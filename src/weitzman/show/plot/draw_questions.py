"""Pictures of budgets, and of which numbers matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...errors import InvalidArgument
from ...questions.budget import SpendFrontier
from ...questions.robustness import Tornado
from .style import BLUE, SKY, VERMILION, axes, calm, ink, muted, named_rows, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def frontier(curve: SpendFrontier, *, ax: Axes | None = None) -> Axes:
    """The most expected reward for every expected spend; the slope is the price of money.

    Parameters
    ----------
    curve : Frontier
        From :func:`weitzman.questions.frontier`.
    ax : Axes, optional
    """
    if not isinstance(curve, SpendFrontier):
        raise InvalidArgument(f"this picture needs a Frontier, but got a {type(curve).__name__}.")
    ax = axes(ax, 5.2, 3.4)
    calm(ax, grid="y")
    ax.plot(curve.spend, curve.reward, color=BLUE, marker="o", markersize=4)
    own = int(np.argmin([abs(np.log(max(c.price, 1e-300))) for c in curve.corners]))
    corner = curve.corners[own]
    ax.plot([corner.spend], [corner.reward], "o", color=VERMILION, markersize=7)
    ax.annotate(
        f"price {number(corner.price)}", (corner.spend, corner.reward), xytext=(8, -14),
        textcoords="offset points", color=muted(ax),
    )  # fmt: skip
    ax.set_xlabel("expected spend", color=ink())
    ax.set_ylabel("expected reward", color=ink())
    return ax


def tornado(found: Tornado, *, limit: int = 12, ax: Axes | None = None) -> Axes:
    """How the value moves with each number; marked where another box would come first.

    Parameters
    ----------
    found : Tornado
        From :func:`weitzman.questions.tornado`.
    limit : int
        Show at most so many numbers, those of widest swing.
    ax : Axes, optional
    """
    if not isinstance(found, Tornado):
        raise InvalidArgument(f"this picture needs a Tornado, but got a {type(found).__name__}.")
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
    ax.axvline(found.solution.value, color=ink(), linewidth=0.8)
    named_rows(ax, names)
    ax.set_xlabel("value", color=ink())
    if names:
        ax.legend(frameon=False, loc="best")
    return ax
