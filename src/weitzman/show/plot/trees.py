"""The picture of a forest, and where its boxes stand."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..._common.arrays import FloatArray, IntArray, check_counts
from ..._common.numbers import counted, percent, rough
from ..._common.optional import need
from ..._common.text import shortened
from ...engine.evaluation import evaluate
from ...engine.solution import Solution, mean_cost
from ...forest.model import Forest
from . import style
from .style import BLUE, PLAIN, finish, ink, mixed, muted, plain, span

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class TreeLayout(NamedTuple):
    """The boxes that are shown, a parent always before its children."""

    box: IntArray
    above: IntArray  # place of the parent in ``box``; -1 for a root
    depth: FloatArray
    row: FloatArray  # a leaf has a row of its own, a parent stands in the middle of its children
    opened: FloatArray  # expected openings
    hidden: IntArray  # boxes folded below each box
    hidden_row: FloatArray  # of the note about these; NaN where nothing is folded
    rest: int  # boxes in trees that are folded whole
    rows: int  # the note about the rest stands in the last


def tree(solution: Solution, limit: int = 30, levels: int = 7) -> TreeLayout:
    """The boxes that the optimal policy opens most often, those above them, and their places."""
    style.check_solution(solution, "the picture of a forest")
    check_counts(limit=limit, levels=levels)
    f, below = solution.forest, children(solution.forest)
    opened = evaluate(solution).opened
    heap = sorted((-opened[v], 0, int(v), -1) for v in f.roots)
    chosen: list[tuple[int, int, int]] = []
    while heap and len(chosen) < limit:  # by falling number of openings, each after its parent
        _, level, v, up = heappop(heap)
        if level + 1 < levels:
            for u in below(v):
                heappush(heap, (-opened[u], level + 1, u, v))
        chosen.append((level, v, up))
    chosen.sort()  # by depth, then number: parents come first
    place = {v: i for i, (_, v, _) in enumerate(chosen)}
    box = np.array([v for _, v, _ in chosen], np.int64)
    above = np.array([place.get(up, -1) for _, _, up in chosen], np.int64)
    # a box that is not shown is folded below the nearest shown box above it, if there is one
    holder = np.full(len(f) + 1, -1, np.int64)  # the last entry is that of no parent
    order = f.roots.tolist()
    for v in order:  # grows as it goes: parents before children
        order.extend(below(v))
        holder[v] = place.get(v, holder[f.parent[v]])
    held = np.bincount(holder[:-1] + 1, minlength=len(box) + 1)
    hidden = np.asarray(held[1:] - 1, np.int64)
    # a row for each leaf, and one for the note about what is folded beside others
    row, note = np.full(len(box), np.nan), np.full(len(box), np.nan)
    rows = 0
    roots = [place[v] for v in solution.policy().root.tolist() if v in place]
    waiting = [(i, False) for i in reversed(roots)]  # the tree to open first is on top
    while waiting:
        i, children_done = waiting.pop()
        shown = [place[u] for u in below(int(box[i])) if u in place]
        if not children_done:
            waiting += [(i, True), *((j, False) for j in reversed(shown))]
        elif shown:
            row[i] = (row[shown[0]] + row[shown[-1]]) / 2
            if hidden[i]:
                note[i], rows = rows, rows + 1
        else:
            row[i], rows = rows, rows + 1
            note[i] = row[i] if hidden[i] else np.nan
    depth, rest = np.array([float(level) for level, _, _ in chosen]), int(held[0])
    return TreeLayout(box, above, depth, row, opened[box], hidden, note, rest, rows + (rest > 0))


def children(forest: Forest) -> Callable[[int], list[int]]:
    """The children as they are written down, so that an endless box is not its own child."""
    order = np.argsort(forest.parent, kind="stable")
    start = np.searchsorted(forest.parent[order], np.arange(len(forest) + 1))
    return lambda box: order[start[box] : start[box + 1]].tolist()


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
    ax = style.axes(ax, _COLUMN * columns + 1.2, max(1.6, _ROW * t.rows + 0.7))
    ax.set_axis_off()
    ax.set_xlim(-0.3, columns - 0.02)
    ax.set_ylim(t.rows - 0.2, -0.6)
    room = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    # how much smaller than full size everything has to be
    size = float(min(1.0, room.width / (_COLUMN * columns), room.height / (_ROW * t.rows)))
    for i, up in enumerate(t.above.tolist()):
        if up >= 0:
            width = 0.9 + 1.6 * min(1.0, t.opened[i])
            _bend(ax, (t.depth[up], t.row[up]), (t.depth[i], t.row[i]), lw=width)
    faces = [mixed(ax, 0.06 + 0.94 * p, BLUE) for p in np.clip(t.opened, 0, 1)]
    edge: dict[str, Any] = {"edgecolors": mixed(ax, 0.8), "lw": 0.8}
    ax.scatter(t.depth, t.row, s=(_CIRCLE * size) ** 2, c=faces, zorder=2, **edge)
    for x, y, p in zip(t.depth, t.row, t.opened, strict=True):
        text = percent(min(p, 1.0)) if p <= 1 + _ROUNDING else rough(p) if p < 99.5 else ">99"
        color = "white" if p > 0.5 else ink()
        ax.text(x, y, text, ha="center", va="center", color=color, fontsize=7 * size, zorder=3)
    font = max(_LEAST_FONT, _FONT * size)
    _captions(ax, solution, t, size, font)
    folded: dict[str, Any] = {"va": "center", "ha": "left", "color": muted(ax), "fontsize": font}
    for i in np.flatnonzero(t.hidden).tolist():
        if t.hidden_row[i] != t.row[i]:
            _bend(ax, (t.depth[i], t.row[i]), (t.depth[i] + 0.85, t.hidden_row[i]), lw=1, ls=":")
            ax.text(t.depth[i] + 0.88, t.hidden_row[i], f"{t.hidden[i]:,} more", **folded)
    if t.rest:
        said = f"and {counted(t.rest, 'more box')}, opened less often"
        ax.text(-0.1, t.rows - 1, said, **folded)
    gain = "costs" if solution.forest.minimize else "earns"
    what = "copies opened on average" if (t.opened > 1 + _ROUNDING).any() else "chance to be opened"
    value = solution.forest.amounts.typeset(solution.value, solution.gap)
    return finish(ax, f"Searching well {gain} {value} on average\nIn the circles: {what}")


def _bend(ax: Axes, start: tuple[float, float], end: tuple[float, float], **line: Any) -> None:
    """A line that leaves to the right and turns late, so as not to cross captions."""
    path, patches = need("matplotlib.path", "plot"), need("matplotlib.patches", "plot")
    (x, y), (x1, y1) = start, end
    turns = [(x, y), (x + 0.62, y), (x + 0.5, y1), (x1, y1)]
    bend = path.Path(turns, [1, 4, 4, 4])
    ax.add_patch(patches.PathPatch(bend, fill=False, ec=mixed(ax, 0.35), zorder=1, **line))


def _captions(ax: Axes, solution: Solution, t: TreeLayout, size: float, font: float) -> None:
    """A caption beside a leaf, or below a box that has others to its right."""
    f, say, inner = solution.forest, solution.forest.amounts, set(t.above.tolist())
    letters = max(6, int(1.25 * _COLUMN * 72 * size / font))
    for i, v in enumerate(t.box.tolist()):
        copies = f" ×{f.count[v]}" if f.count[v] > 1 else ""
        name = shortened(plain(f.name(v)), letters - len(copies)) + copies
        more = f"; {t.hidden[i]:,} more" if t.hidden[i] and i not in inner else ""
        cost, index = span(mean_cost(f, v), say), span(solution.indices(v), say)
        detail = f"cost {cost}, index {index}{more}"
        where = (0, -0.62 * _CIRCLE * size) if i in inner else (0.68 * _CIRCLE * size, 0)
        lines = ((name, ink(), 0.1), (detail, muted(ax), -1.15))
        for text, color, lift in lines if size > _LEAST_DETAIL else lines[:1]:
            down = (lift - 1.0) if i in inner else lift
            ax.annotate(
                text, (t.depth[i], t.row[i]), (where[0], where[1] + font * down), zorder=3,
                textcoords="offset points", fontsize=font if color == ink() else 0.88 * font,
                ha="center" if i in inner else "left", va="bottom", color=color, **PLAIN,
            )  # fmt: skip
