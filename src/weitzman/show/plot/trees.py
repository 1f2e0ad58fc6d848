"""Pictures of forests, graphs, endless lines and lazy forests, and where their boxes stand."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..._common.arrays import FloatArray, IntArray, check_counts
from ..._common.numbers import counted, percent, rough
from ..._common.optional import need
from ..._common.text import shortened
from ...bounds.lazy_forest import LazySolution
from ...chains.endless import EndlessLine
from ...engine.evaluation import evaluate
from ...engine.solution import Solution, mean_cost
from ...errors import InvalidArgument
from ...forest.model import Forest
from ...strategies.graphs import Dag, Exhaustive
from . import style
from .style import BLUE, PLAIN, SKY, VERMILION, finish, ink, marks, mixed, muted, plain, span

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


_GRAPH_COLUMN, _GRAPH_ROW = 1.9, 0.72  # inches
_LETTERS = 18  # the most letters of a name: names in one row must not touch
_SWEEPS = 6  # rounds of ordering rows by their neighbors; more rounds change little


def graph_places(dag: Dag) -> tuple[IntArray, FloatArray]:
    """The column of each box, one more than the highest of its parents, and a row near them."""
    depth = np.zeros(len(dag), np.int64)
    near: list[list[int]] = [[] for _ in range(len(dag))]
    for i in dag.order:
        depth[i] = max((depth[p] + 1 for p in dag.parents[i]), default=0)
        for p in dag.parents[i]:
            near[p].append(i)
            near[i].append(p)
    columns = [np.flatnonzero(depth == d).tolist() for d in range(int(depth.max()) + 1)]
    row, most = np.zeros(len(dag)), max(map(len, columns))
    for sweep in range(_SWEEPS + 1):
        if sweep:
            for column in columns:
                column.sort(key=lambda v: float(np.mean(row[near[v]])) if near[v] else row[v])
        for column in columns:  # centered
            row[column] = (most - len(column)) / 2 + np.arange(len(column))
    return depth, row


def dag(graph: Dag, best: Exhaustive | None = None, *, ax: Axes | None = None) -> Axes:
    """A graph of boxes: each box stands to the right of all the boxes that it depends on.

    Parameters
    ----------
    graph : Dag
    best : Exhaustive, optional
        What ``strategies.exhaustive(graph)`` found: the box to open first is filled, and the
        title gives the value.

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
    style.check(graph, Dag, "the picture of a graph", "a Dag")
    if not len(graph):
        raise InvalidArgument("the picture of a graph needs a Dag with boxes, but it has none.")
    depth, row = graph_places(graph)
    columns, rows = int(depth.max()) + 1, int(np.bincount(depth).max())
    width, height = _GRAPH_COLUMN * columns + 0.6, _GRAPH_ROW * rows + 0.8
    ax = style.axes(ax, max(3.6, width), max(1.8, height))
    ax.set_axis_off()
    ax.set_xlim(-0.5, columns - 0.5)
    ax.set_ylim(rows - 0.3, -0.6)
    arrow: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 9, "color": mixed(ax, 0.45)}
    arrow |= {"lw": 0.9, "shrinkA": 7, "shrinkB": 8, "zorder": 1}
    for i, above in enumerate(graph.parents):
        for p in above:
            ends = (depth[p], row[p]), (depth[i], row[i])
            ax.add_patch(need("matplotlib.patches", "plot").FancyArrowPatch(*ends, **arrow))
    first = None if best is None else best.first_box
    is_first = np.array([name == first for name in graph.names])
    look: dict[str, Any] = {"s": 150, "edgecolors": mixed(ax, 0.8), "lw": 1, "zorder": 2}
    sides = (~is_first, ax.get_facecolor(), "box"), (is_first, BLUE, "open first")
    for some, face, label in sides:
        named = None if first is None else label
        marks(ax, depth, row, some, color=face, label=named, **look)
    # captions have a background of their own: arrows pass behind the text
    ground = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 0.6}
    below: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "top", **PLAIN}
    for v, name in enumerate(graph.names):
        at, paid = (depth[v], row[v]), f"cost {span(np.asarray(graph.mean_cost(v), np.float64))}"
        lines = (shortened(plain(name), _LETTERS), ink(), 8.5, 9), (paid, muted(ax), 7.5, 19)
        for text, color, size, down in lines:
            look = {"color": color, "fontsize": size, "zorder": 3, "bbox": ground}
            ax.annotate(text, at, (0, -down), **look, **below)
    gain = "costs" if graph.minimize else "earns"
    value = None if best is None else style.BARE.typeset(best.value)
    return finish(ax, None if value is None else f"Searching well {gain} {value} on average")


_MOST_BARS = 60  # with more states, indices are dots against the rewards


def endless(line: EndlessLine, *, ax: Axes | None = None) -> Axes:
    """An endless line: after which states the search continues, and with how much in hand.

    The bar of a state ends at its index: continue while the best so far is lower. A dot is the
    reward of the state itself. Where it lies within the bar, continue although the state was seen.

    Parameters
    ----------
    line : EndlessLine
        From :func:`weitzman.chains.solve_line`.
    """
    style.check(line, EndlessLine, "the picture of an endless line", "the result of solve_line")
    reward = np.asarray(line.chain.rewards, np.float64)
    by = np.argsort(reward, kind="stable")
    reward, index = reward[by], line.index[by]
    few, seen, known = len(by) <= _MOST_BARS, np.isfinite(reward), np.append(reward, index)
    ends = known[np.isfinite(known)] if np.isfinite(known).any() else np.array([0.0, 1.0])
    room = 0.05 * float(np.ptp(ends)) or 1.0
    left, right = float(ends.min()) - room, float(ends.max()) + room
    rows = np.arange(len(by))
    ax = style.axes(ax, 6.0, 1.4 + 0.26 * len(by) if few else 4.0, grid="x" if few else "y")
    if few:
        width = np.where(np.isfinite(index), index, left) - left
        ax.barh(rows, width, 0.62, left=left, color=SKY, label="continue")
        style.named_rows(ax, [f"state {s}" for s in by])
        ax.set_xlim(left, right)
    size, y = (34, rows) if few else (9, index)
    seen &= few | np.isfinite(index)
    on = index > reward
    marks(ax, reward, y, seen & on, s=size, color=BLUE, marker="o", label="reward: continue")
    marks(ax, reward, y, seen & ~on, s=size, color=VERMILION, marker="s", label="reward: stop")
    if few:
        title = "After each state, continue while the best in hand is within the bar"
        return finish(ax, title, x="best reward in hand", amounts="x")
    title = "Continue where the index is above the reward"
    return finish(ax, title, x="reward just seen", y="index of the next box", amounts="xy")


def bounds(found: LazySolution, *, ax: Axes | None = None) -> Axes:
    """How the bounds on the value of a lazy forest closed in as boxes were looked at.

    Parameters
    ----------
    found : LazySolution
        From :func:`weitzman.solve` of a :class:`weitzman.LazyForest`.
    """
    style.check(found, LazySolution, "the picture of bounds", "the result of solve(lazy_forest)")
    rounds = np.array([*found.history, (found.expanded, found.lower, found.upper)], np.float64)
    expanded, lower, upper = rounds.T
    ax = style.axes(ax, 5.6, 3.6, grid="y")
    look: dict[str, Any] = {"color": SKY, "alpha": 0.5, "lw": 0, "label": "value lies here"}
    ax.fill_between(expanded, lower, upper, step="post", **look)
    ax.step(expanded, upper, where="post", color=VERMILION, lw=1.6, ls="--", label="upper bound")
    ax.step(expanded, lower, where="post", color=BLUE, lw=2, label="lower bound")
    if expanded[-1] > 500:
        ax.set_xscale("symlog", linthresh=10)
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    ax.set_xlim(float(expanded[0]), max(float(expanded[-1]), float(expanded[0]) + 1))
    f = found.solution.forest
    first = "Open nothing" if found.first_box is None else f"Open {plain(found.first_box)} first"
    sure = "proven" if found.proven else f"may lose up to {f.amounts.typeset(found.regret)}"
    value = "expected loss and cost" if f.minimize else "value"
    return finish(ax, f"{first} ({sure})", x="nodes expanded", y=value, amounts="y", say=f.amounts)
