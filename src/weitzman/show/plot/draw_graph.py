"""Pictures of graphs of boxes, of endless lines and of lazy forests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._common.optional import need
from ...bounds.lazy_forest import LazySolution
from ...chains.endless import EndlessLine
from ...strategies.dags import Dag
from ...strategies.enumeration import Exhaustive
from .graph_data import GraphPlaces, bounds_data, endless_data, graph_places
from .style import (
    BLUE,
    PLAIN,
    SKY,
    VERMILION,
    amount_axis,
    axes,
    calm,
    heading,
    ink,
    key,
    mixed,
    muted,
    named_rows,
    number,
    plain,
    span,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMN, _ROW = 1.9, 0.72  # inches
_LETTERS = 18  # the most letters of a name: names in one row must not touch
_SMOOTH = 60  # with more indices, states are drawn as a curve


def dag(graph: Dag, best: Exhaustive | None = None, *, ax: Axes | None = None) -> Axes:
    """A graph of boxes: each box stands to the right of all the boxes that it depends on.

    Parameters
    ----------
    graph : Dag
    best : Exhaustive, optional
        What ``strategies.exhaustive(graph)`` found: the box to open first is filled, and the
        title gives the value.
    ax : Axes, optional

    Examples
    --------
    >>> import weitzman
    >>> agree = [[[0, 1], [1, 0]], [[1, 0], [0, 1]]]
    >>> coins = weitzman.strategies.Dag(
    ...     parents=[[], [], [0, 1]], cost=[1, 1, 1], rewards=[[0, 0], [0, 0], [0, 16]],
    ...     law=[[0.5, 0.5], [0.5, 0.5], agree], names=["coin", "other coin", "chest"],
    ... )
    >>> ax = weitzman.plot.dag(coins)
    >>> [text.get_text() for text in ax.texts][:2]
    ['coin', 'cost 1']
    """
    t = graph_places(graph)
    columns = int(t.depth.max()) + 1
    ax = axes(ax, max(3.6, _COLUMN * columns + 0.6), max(1.8, _ROW * t.rows + 0.8))
    ax.set_axis_off()
    ax.set_xlim(-0.5, columns - 0.5)
    ax.set_ylim(t.rows - 0.3, -0.6)
    _edges(ax, t)
    first = None if best is None else best.first_box
    for chosen, face, label in ((False, ax.get_facecolor(), "box"), (True, BLUE, "open first")):
        some = [v for v in range(len(graph)) if (graph.names[v] == first) is chosen]
        if some:
            ax.scatter(
                t.depth[some], t.row[some], s=150, color=face, edgecolors=mixed(ax, 0.8), lw=1,
                zorder=2, label=label,
            )  # fmt: skip
    _captions(ax, graph, t)
    if first is not None:
        key(ax)
    if best is not None:
        gain = "costs" if graph.minimize else "earns"
        heading(ax, f"Searching well {gain} {number(best.value)} on average")
    return ax


def _edges(ax: Axes, t: GraphPlaces) -> None:
    patches = need("matplotlib.patches", "plot")
    for p, i in t.edges:
        arrow = patches.FancyArrowPatch(
            (t.depth[p], t.row[p]), (t.depth[i], t.row[i]), arrowstyle="-|>", mutation_scale=9,
            color=mixed(ax, 0.45), lw=0.9, shrinkA=7, shrinkB=8, zorder=1,
        )  # fmt: skip
        ax.add_patch(arrow)


def _captions(ax: Axes, graph: Dag, t: GraphPlaces) -> None:
    """Name and cost below each box, on a background of their own: arrows pass behind the text."""
    ground = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 0.6}
    for v, name in enumerate(graph.names):
        title = plain(name)
        title = title if len(title) <= _LETTERS else title[: _LETTERS - 1] + "…"
        lines: Any = ((title, ink(), 8.5, 9), (f"cost {span(t.cost[v])}", muted(ax), 7.5, 19))
        for text, color, size, down in lines:
            ax.annotate(
                text, (t.depth[v], t.row[v]), (0, -down), textcoords="offset points", ha="center",
                va="top", color=color, fontsize=size, zorder=3, bbox=ground, **PLAIN,
            )  # fmt: skip


def endless(line: EndlessLine, *, ax: Axes | None = None) -> Axes:
    """An endless line: after which states the search goes on, and with how much in hand.

    The bar of a state ends at its index: go on while the best so far is lower. A dot is the reward
    of the state itself. Where the dot lies within the bar, go on although the state was seen.

    Parameters
    ----------
    line : EndlessLine
        From :func:`weitzman.chains.solve_line`.
    ax : Axes, optional
    """
    d = endless_data(line)
    known = np.concatenate([d.reward[np.isfinite(d.reward)], d.index[np.isfinite(d.index)]])
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    room = 0.05 * (high - low) or 1.0
    if len(d.states) > _SMOOTH:
        return _endless_curve(line, ax)
    ax = axes(ax, 6.0, 1.4 + 0.26 * len(d.states))
    calm(ax, grid="x")
    rows = np.arange(len(d.states))
    ends = np.where(np.isfinite(d.index), d.index, low - room)
    ax.barh(rows, ends - (low - room), 0.62, left=low - room, color=SKY, label="go on")
    for go_on, face, label in ((True, BLUE, "reward: go on"), (False, VERMILION, "reward: stop")):
        some = (d.go_on == go_on) & np.isfinite(d.reward)
        mark = "o" if go_on else "s"
        if some.any():
            ax.scatter(
                d.reward[some], rows[some], s=34, color=face, marker=mark, zorder=3, clip_on=False,
                label=label,
            )  # fmt: skip
    named_rows(ax, d.states)
    ax.set_xlim(low - room, high + room)
    ax.set_xlabel("best reward in hand")
    amount_axis(ax, "x")
    key(ax)
    heading(ax, "After each state, go on while the best in hand is within the bar")
    return ax


def _endless_curve(line: EndlessLine, ax: Axes | None) -> Axes:
    """Many states: the index against the reward, with the diagonal below which to stop."""
    d = endless_data(line)
    ax = axes(ax, 5.4, 4.0)
    calm(ax, grid="y")
    some = np.isfinite(d.reward) & np.isfinite(d.index)
    x, y = d.reward[some], d.index[some]
    ax.plot(x, x, "--", color=muted(ax), lw=1, label="stop below: the reward itself")
    for go_on, color, mark, label in ((True, BLUE, ".", "go on"), (False, VERMILION, "x", "stop")):
        here = d.go_on[some] == go_on
        ax.plot(x[here], y[here], mark, color=color, ms=5, label=label)
    ax.set_xlabel("reward just seen")
    ax.set_ylabel("index of the next box")
    amount_axis(ax, "xy")
    key(ax)
    return ax


def bounds(found: LazySolution, *, ax: Axes | None = None) -> Axes:
    """How the bounds on the value of a lazy forest closed in as boxes were looked at.

    Parameters
    ----------
    found : LazySolution
        From :func:`weitzman.solve` of a :class:`weitzman.LazyForest`.
    ax : Axes, optional
    """
    expanded, lower, upper = bounds_data(found)
    ax = axes(ax, 5.6, 3.6)
    calm(ax, grid="y")
    ax.fill_between(
        expanded, lower, upper, step="post", color=SKY, alpha=0.5, lw=0, label="value lies here"
    )
    ax.step(expanded, upper, where="post", color=VERMILION, lw=1.6, ls="--", label="upper bound")
    ax.step(expanded, lower, where="post", color=BLUE, lw=2, label="lower bound")
    if expanded[-1] > 500:
        ax.set_xscale("symlog", linthresh=10)
        plain_ticks = need("matplotlib.ticker", "plot").FuncFormatter(lambda x, _: f"{x:,.0f}")
        ax.xaxis.set_major_formatter(plain_ticks)
    ax.set_xlim(float(expanded[0]), max(float(expanded[-1]), float(expanded[0]) + 1))
    ax.set_xlabel("nodes expanded")
    f = found.solution.forest
    ax.set_ylabel("expected loss and cost" if f.minimize else "value")
    amount_axis(ax, "y", f.amounts)
    key(ax)
    first = "Open nothing" if found.first_box is None else f"Open {plain(found.first_box)} first"
    sure = "proven" if found.proven else f"may lose up to {number(found.regret, f.amounts)}"
    heading(ax, f"{first} ({sure})")
    return ax
