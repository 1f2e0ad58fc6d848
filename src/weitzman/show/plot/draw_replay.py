"""A figure of a replay; needs matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..._common.arrays import FloatArray
from ...replay.replay_result import Replay
from . import style as look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = "osD^vP*X<>hp"
_WORDS = {
    "payoff": "payoff (points)",
    "score": "best score",
    "spend": "spend (units of cost)",
    "regret": "regret to hindsight (points)",
    "behind": "points behind the first method",
}


class Curve(NamedTuple):
    """One line of the figure: prices ascending, means and ends of the intervals."""

    method: str
    x: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray


def curves_of(found: Replay, measure: str, task: str | None = None) -> list[Curve]:
    """What is drawn: a line for each method, hindsight left out where it is 0 by definition."""
    means = found.means(measure, task)
    order = np.argsort(found.quoted)
    x = np.array(found.quoted)[order]
    drawn = slice(None, -1) if measure == "regret" else slice(None)
    return [
        Curve(method, x, *values[order].T)
        for method, values in zip(found.methods[drawn], means[drawn], strict=True)
    ]


def replay(
    found: Replay, measure: str = "regret", *, task: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw a measure of a back-test against the price, with one line for each method.

    Parameters
    ----------
    found : Replay
    measure : "payoff", "score", "spend", "regret" or "behind"
    task : str, optional
        Draw this task only.
    ax : Axes, optional
    """
    lines = curves_of(found, measure, task)
    ax = look.axes(ax, 7, 4.5)
    look.calm(ax, "y")
    palette = look.colors(len(lines))
    for i, line in enumerate(lines):
        hindsight = line.method == found.methods[-1]
        color = look.ink() if hindsight else palette[i]
        ax.plot(
            line.x, line.mean, marker=_MARKERS[i % len(_MARKERS)], color=color, markersize=5,
            linewidth=2.4 if i == 0 else 1.2, zorder=3 if i == 0 else 2, label=line.method,
        )  # fmt: skip
        if i == 0:
            ax.fill_between(
                line.x, line.low, line.high, color=color, alpha=0.2, linewidth=0,
                label=f"95% interval of {line.method}",
            )  # fmt: skip
    ax.set_xscale("log")
    if measure in ("regret", "spend"):
        ax.set_yscale("log")
    ax.set_xlabel(
        "points that a full run costs" if found.by_full_run else "worth of a point, units of cost"
    )
    ax.set_ylabel(_WORDS[measure])
    for text in ax.legend(fontsize="small", frameon=False).get_texts():
        text.set_parse_math(False)
    if task is not None:
        ax.set_title(look.plain(task), loc="left", fontsize="medium", **look.PLAIN)
    return ax
