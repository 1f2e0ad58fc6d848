"""The forest as a picture: boxes from left to right, the way they can be opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._common.numbers import counted, percent, rough
from ..._common.optional import need
from ...engine.solution import Solution
from .style import BLUE, PLAIN, axes, heading, ink, mixed, muted, number, plain, span
from .tree_data import TreeLayout, tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMN, _ROW = 1.9, 0.58  # inches, at full size
_FONT, _CIRCLE = 8.0, 23.0  # points, at full size
_LEAST_FONT = 5.0
_ROUNDING = 1e-9  # by which a probability may exceed 1
_LEAST_DETAIL = 0.65  # of full size; below this, there is room for names only


def forest(solution: Solution, *, limit: int = 24, ax: Axes | None = None) -> Axes:
    """The forest with costs, indices and opening probabilities.

    Every circle is a box. The more likely the optimal policy opens the box, the darker the circle;
    the number inside is that probability (for boxes with copies, the mean number of copies opened).
    A box stands to the right of its parent. Where the cost or the index depends on what the parent
    showed, the least and the largest are given.

    Parameters
    ----------
    solution : Solution
    limit : int
        Show at most this many boxes: the boxes opened most often. The others are counted.
    ax : Axes, optional

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, names=["chest"])
    >>> ax = weitzman.plot.forest(weitzman.solve(chest))
    >>> [text.get_text() for text in ax.texts]
    ['100%', 'chest', 'cost 1, index 8']
    """
    t = tree(solution, limit)
    columns = int(t.depth.max()) + 1
    ax = axes(ax, _COLUMN * columns + 1.2, max(1.6, _ROW * t.rows + 0.7))
    ax.set_axis_off()
    ax.set_xlim(-0.3, columns - 0.02)
    ax.set_ylim(t.rows - 0.2, -0.6)
    size = _scale(ax, columns, t.rows)
    _edges(ax, t)
    _circles(ax, t, size)
    _labels(ax, solution, t, size)
    _folded(ax, t, size)
    gain = "costs" if solution.forest.minimize else "earns"
    what = "copies opened on average" if (t.opened > 1 + _ROUNDING).any() else "chance to be opened"
    value = number(solution.value, solution.forest.amounts, solution.gap)
    heading(ax, f"Searching well {gain} {value} on average\nIn the circles: {what}")
    return ax


def _scale(ax: Axes, columns: int, rows: int) -> float:
    """How much smaller than full size everything has to be."""
    box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    return float(min(1.0, box.width / (_COLUMN * columns), box.height / (_ROW * rows)))


def _edges(ax: Axes, t: TreeLayout) -> None:
    for i, up in enumerate(t.above):
        if up >= 0:
            width = 0.9 + 1.6 * min(1.0, t.opened[i])
            _bend(ax, (t.depth[up], t.row[up]), (t.depth[i], t.row[i]), lw=width)


def _bend(ax: Axes, start: tuple[float, float], end: tuple[float, float], **line: Any) -> None:
    """A line that leaves to the right and turns late, so as not to cross captions."""
    path, patches = need("matplotlib.path", "plot"), need("matplotlib.patches", "plot")
    (x, y), (x1, y1) = start, end
    turns = [(x, y), (x + 0.62, y), (x + 0.5, y1), (x1, y1)]
    bend = path.Path(turns, [1, 4, 4, 4])
    ax.add_patch(patches.PathPatch(bend, fill=False, ec=mixed(ax, 0.35), zorder=1, **line))


def _circles(ax: Axes, t: TreeLayout, size: float) -> None:
    shade = np.clip(t.opened, 0, 1)
    faces = [mixed(ax, 0.06 + 0.94 * p, BLUE) for p in shade]
    ax.scatter(
        t.depth, t.row, s=(_CIRCLE * size) ** 2, c=faces, edgecolors=mixed(ax, 0.8), lw=0.8,
        zorder=2,
    )  # fmt: skip
    for x, y, p in zip(t.depth, t.row, t.opened, strict=True):
        text = percent(min(p, 1.0)) if p <= 1 + _ROUNDING else rough(p) if p < 99.5 else ">99"
        color = "white" if p > 0.5 else ink()
        ax.text(x, y, text, ha="center", va="center", color=color, fontsize=7 * size, zorder=3)


def _labels(ax: Axes, solution: Solution, t: TreeLayout, size: float) -> None:
    """A caption beside a leaf, or below a box that has others to its right."""
    f, say, inner = solution.forest, solution.forest.amounts, set(t.above.tolist())
    font = max(_LEAST_FONT, _FONT * size)
    letters = max(6, int(1.25 * _COLUMN * 72 * size / font))
    for i, v in enumerate(t.box.tolist()):
        copies = f" ×{f.count[v]}" if f.count[v] > 1 else ""
        name = _cut(plain(f.name(v)), letters - len(copies)) + copies
        more = f"; {t.hidden[i]:,} more" if t.hidden[i] and i not in inner else ""
        detail = f"cost {span(t.cost[i], say)}, index {span(t.index[i], say)}{more}"
        where = (0, -0.62 * _CIRCLE * size) if i in inner else (0.68 * _CIRCLE * size, 0)
        lines = ((name, ink(), 0.1), (detail, muted(ax), -1.15))
        for text, color, lift in lines if size > _LEAST_DETAIL else lines[:1]:
            down = (lift - 1.0) if i in inner else lift
            ax.annotate(
                text, (t.depth[i], t.row[i]), (where[0], where[1] + font * down),
                textcoords="offset points", fontsize=font if color == ink() else 0.88 * font,
                ha="center" if i in inner else "left", va="bottom", color=color, zorder=3,
                **PLAIN,
            )  # fmt: skip


def _folded(ax: Axes, t: TreeLayout, size: float) -> None:
    font = max(_LEAST_FONT, _FONT * size)
    said: dict[str, Any] = {"va": "center", "ha": "left", "color": muted(ax), "fontsize": font}
    for i in np.flatnonzero(t.hidden):
        if t.hidden_row[i] != t.row[i]:
            _bend(ax, (t.depth[i], t.row[i]), (t.depth[i] + 0.85, t.hidden_row[i]), lw=1, ls=":")
            ax.text(t.depth[i] + 0.88, t.hidden_row[i], f"{t.hidden[i]:,} more", **said)
    if t.rest:
        ax.text(-0.1, t.rest_row, f"and {counted(t.rest, 'more box')}, opened less often", **said)


def _cut(name: str, letters: int) -> str:
    return name if len(name) <= letters else name[: letters - 1] + "…"
