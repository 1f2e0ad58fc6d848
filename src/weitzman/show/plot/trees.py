"""Pictures of forests, graphs, endless lines and lazy forests, and where their boxes stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._common.arrays import FloatArray, IntArray, check_counts
from ..._common.numbers import counted, percent, rough
from ..._common.optional import need
from ..._common.text import shortened
from ...bounds.lazy_forest import LazySolution
from ...chains.endless import EndlessLine
from ...engine.evaluation import evaluate
from ...engine.indices import Policy
from ...engine.solution import Solution, mean_cost
from ...errors import InvalidArgument
from ...forest.model import Forest
from ...strategies.graphs import Dag, Exhaustive
from .style import (
    BLUE,
    PLAIN,
    SKY,
    VERMILION,
    amount_axis,
    axes,
    calm,
    check,
    check_solution,
    heading,
    ink,
    key,
    mixed,
    muted,
    named_rows,
    number,
    plain,
    span,
)  # fmt: skip

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, eq=False)
class TreeLayout:
    """The boxes that are shown, a parent always before its children.

    Attributes
    ----------
    box : (m,) array of int
    above : (m,) array of int
        Place of the parent in ``box``; -1 for a root.
    depth, row : (m,) arrays of float
        Columns count from the roots; every leaf has a row of its own and a parent stands in the
        middle of its children.
    opened : (m,) array of float
        Expected openings; without copies, the probability.
    cost, index : (m, 2) arrays of float
        Least and largest over the states of the parent.
    hidden : (m,) array of int
        How many boxes are folded below each box.
    hidden_row : (m,) array of float
        The row of the note about the folded boxes; NaN where nothing is folded.
    rest, rest_row
        Boxes in trees that are folded whole, and the row of the note about them.
    rows : int
    """

    box: IntArray
    above: IntArray
    depth: FloatArray
    row: FloatArray
    opened: FloatArray
    cost: FloatArray
    index: FloatArray
    hidden: IntArray
    hidden_row: FloatArray
    rest: int
    rest_row: float
    rows: int


def tree(solution: Solution, limit: int = 30, levels: int = 7) -> TreeLayout:
    """The boxes that the optimal policy opens most often, those above them, and their places.

    Parameters
    ----------
    solution : Solution
    limit : int
        Show at most this many boxes.
    levels : int
        Show at most this many levels, from the root on.

    Examples
    --------
    >>> import weitzman
    >>> boxes = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, names=["A"])
    >>> more = weitzman.line([[1.0]], rewards=[1], cost=2)
    >>> t = tree(weitzman.solve(weitzman.side_by_side(boxes, more)))
    >>> t.row.tolist(), t.opened.tolist()
    ([0.0, 1.0], [1.0, 0.0])
    """
    check_solution(solution, "the picture of a forest")
    check_counts(limit=limit, levels=levels)
    f, policy, below = solution.forest, solution.policy(), children(solution.forest)
    opened = evaluate(policy).opened
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
    depth = np.array([float(level) for level, _, _ in chosen])
    order, sizes = f.roots.tolist(), np.ones(len(f), np.int64)
    for v in order:  # grows as it goes: parents before children
        order.extend(below(v))
    for v in reversed(order):  # boxes, as described, of each subtree
        if f.parent[v] >= 0:
            sizes[f.parent[v]] += sizes[v]
    hidden = np.array([sizes[v] - 1 for v in box], np.int64)
    for i, up in enumerate(above):
        if up >= 0:
            hidden[up] -= sizes[box[i]]
    rest = len(f) - int(sum(sizes[v] for v in box[above < 0]))
    row, hidden_row, rows = _rows(policy, below, box, place, hidden)
    ends = [(mean_cost(f, int(v)), solution.indices(int(v))) for v in box]
    cost, index = (
        np.array([(x.min(), x.max()) for x in column]) for column in zip(*ends, strict=True)
    )
    return TreeLayout(
        box, above, depth, row, opened[box], cost, index, hidden, hidden_row, rest,
        float(rows) if rest else np.nan, rows + (rest > 0),
    )  # fmt: skip


Below = Callable[[int], list[int]]
"""The children of a box, lowest number first."""


def children(forest: Forest) -> Below:
    """The children as they are written down, so that an endless box is not its own child."""
    order = np.argsort(forest.parent, kind="stable")
    start = np.searchsorted(forest.parent[order], np.arange(len(forest) + 1))
    return lambda box: order[start[box] : start[box + 1]].tolist()


def _rows(
    policy: Policy, below: Below, box: IntArray, place: dict[int, int], hidden: IntArray
) -> tuple[FloatArray, FloatArray, int]:
    """A row for each leaf in the order of the forest, and for what is folded beside others."""
    row, note = np.full(len(box), np.nan), np.full(len(box), np.nan)
    rows = 0
    roots = [
        place[v] for v in policy.root.tolist() if v in place
    ]  # the tree to open first is on top
    waiting = [(i, False) for i in reversed(roots)]
    while waiting:
        i, children_done = waiting.pop()
        shown = [place[u] for u in below(int(box[i])) if u in place]
        if not children_done:
            waiting += [(i, True), *((j, False) for j in reversed(shown))]
            continue
        if shown and hidden[i]:
            note[i], rows = rows, rows + 1
        if not shown:
            row[i], rows = rows, rows + 1
            note[i] = row[i] if hidden[i] else np.nan
        else:
            row[i] = (row[shown[0]] + row[shown[-1]]) / 2
    return row, note, rows


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
    room = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    # how much smaller than full size everything has to be
    size = float(min(1.0, room.width / (_COLUMN * columns), room.height / (_ROW * t.rows)))
    for i, up in enumerate(t.above):
        if up >= 0:
            width = 0.9 + 1.6 * min(1.0, t.opened[i])
            _bend(ax, (t.depth[up], t.row[up]), (t.depth[i], t.row[i]), lw=width)
    faces = [mixed(ax, 0.06 + 0.94 * p, BLUE) for p in np.clip(t.opened, 0, 1)]
    ax.scatter(
        t.depth, t.row, s=(_CIRCLE * size) ** 2, c=faces, edgecolors=mixed(ax, 0.8), lw=0.8,
        zorder=2,
    )  # fmt: skip
    for x, y, p in zip(t.depth, t.row, t.opened, strict=True):
        text = percent(min(p, 1.0)) if p <= 1 + _ROUNDING else rough(p) if p < 99.5 else ">99"
        color = "white" if p > 0.5 else ink()
        ax.text(x, y, text, ha="center", va="center", color=color, fontsize=7 * size, zorder=3)
    _labels(ax, solution, t, size)
    _folded(ax, t, size)
    gain = "costs" if solution.forest.minimize else "earns"
    what = "copies opened on average" if (t.opened > 1 + _ROUNDING).any() else "chance to be opened"
    value = number(solution.value, solution.forest.amounts, solution.gap)
    heading(ax, f"Searching well {gain} {value} on average\nIn the circles: {what}")
    return ax


def _bend(ax: Axes, start: tuple[float, float], end: tuple[float, float], **line: Any) -> None:
    """A line that leaves to the right and turns late, so as not to cross captions."""
    path, patches = need("matplotlib.path", "plot"), need("matplotlib.patches", "plot")
    (x, y), (x1, y1) = start, end
    turns = [(x, y), (x + 0.62, y), (x + 0.5, y1), (x1, y1)]
    bend = path.Path(turns, [1, 4, 4, 4])
    ax.add_patch(patches.PathPatch(bend, fill=False, ec=mixed(ax, 0.35), zorder=1, **line))


def _labels(ax: Axes, solution: Solution, t: TreeLayout, size: float) -> None:
    """A caption beside a leaf, or below a box that has others to its right."""
    f, say, inner = solution.forest, solution.forest.amounts, set(t.above.tolist())
    font = max(_LEAST_FONT, _FONT * size)
    letters = max(6, int(1.25 * _COLUMN * 72 * size / font))
    for i, v in enumerate(t.box.tolist()):
        copies = f" ×{f.count[v]}" if f.count[v] > 1 else ""
        name = shortened(plain(f.name(v)), letters - len(copies)) + copies
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


_SWEEPS = 6  # rounds of ordering rows by their neighbors; more rounds change little


@dataclass(frozen=True, slots=True, eq=False)
class GraphPlaces:
    """The boxes of a graph in columns and rows.

    Attributes
    ----------
    depth : (n,) array of int
        The column of each box: one more than the highest column of its parents.
    row : (n,) array of float
        The row of each box. Boxes of one column have different rows.
    cost : (n, 2) array of float
        Least and largest mean cost over the states of the parents.
    edges : list of (int, int)
        From a parent to a child.
    rows : int
        Boxes in the fullest column.
    """

    depth: IntArray
    row: FloatArray
    cost: FloatArray
    edges: list[tuple[int, int]]
    rows: int


def graph_places(dag: Dag) -> GraphPlaces:
    """Put the boxes of a graph in columns, and near their neighbors.

    Examples
    --------
    >>> agree = [[[0, 1], [1, 0]], [[1, 0], [0, 1]]]
    >>> coins = Dag(parents=[[], [], [0, 1]], cost=[1, 1, 1], law=[[0.5, 0.5], [0.5, 0.5], agree],
    ...             rewards=[[0, 0], [0, 0], [0, 16]])
    >>> places = graph_places(coins)
    >>> places.depth.tolist(), places.row.tolist()
    ([0, 0, 1], [0.0, 1.0, 0.5])
    """
    check(dag, Dag, "the picture of a graph", "a Dag")
    if not len(dag):
        raise InvalidArgument("the picture of a graph needs a Dag with boxes, but it has none.")
    depth = np.zeros(len(dag), np.int64)
    for i in dag.order:
        depth[i] = max((depth[p] + 1 for p in dag.parents[i]), default=0)
    edges = [(p, i) for i in range(len(dag)) for p in dag.parents[i]]
    means = [dag.mean_cost(i) for i in range(len(dag))]
    cost = np.array([(float(np.min(m)), float(np.max(m))) for m in means])
    row = _graph_rows(depth, edges)
    return GraphPlaces(depth, row, cost, edges, int(np.bincount(depth).max()))


def _graph_rows(depth: IntArray, edges: list[tuple[int, int]]) -> FloatArray:
    """Rows of centered columns. A column is sorted by the mean row of the neighbors."""
    columns = [np.flatnonzero(depth == d).tolist() for d in range(int(depth.max()) + 1)]
    most = max(map(len, columns))
    near: list[list[int]] = [[] for _ in depth]
    for p, i in edges:
        near[p].append(i)
        near[i].append(p)
    row = np.zeros(len(depth))

    def settle() -> None:
        for column in columns:
            row[column] = (most - len(column)) / 2 + np.arange(len(column))

    settle()
    for _ in range(_SWEEPS):
        for column in columns:
            column.sort(key=lambda v: float(np.mean(row[near[v]])) if near[v] else row[v])
        settle()
    return row


_GRAPH_COLUMN, _GRAPH_ROW = 1.9, 0.72  # inches
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
    ax = axes(ax, max(3.6, _GRAPH_COLUMN * columns + 0.6), max(1.8, _GRAPH_ROW * t.rows + 0.8))
    ax.set_axis_off()
    ax.set_xlim(-0.5, columns - 0.5)
    ax.set_ylim(t.rows - 0.3, -0.6)
    patches = need("matplotlib.patches", "plot")
    for p, i in t.edges:
        ax.add_patch(
            patches.FancyArrowPatch(
                (t.depth[p], t.row[p]), (t.depth[i], t.row[i]), arrowstyle="-|>",
                mutation_scale=9, color=mixed(ax, 0.45), lw=0.9, shrinkA=7, shrinkB=8, zorder=1,
            )
        )  # fmt: skip
    first = None if best is None else best.first_box
    for chosen, face, label in ((False, ax.get_facecolor(), "box"), (True, BLUE, "open first")):
        some = [v for v in range(len(graph)) if (graph.names[v] == first) is chosen]
        if some:
            ax.scatter(
                t.depth[some], t.row[some], s=150, color=face, edgecolors=mixed(ax, 0.8), lw=1,
                zorder=2, label=label,
            )  # fmt: skip
    # captions have a background of their own: arrows pass behind the text
    ground = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 0.6}
    for v, name in enumerate(graph.names):
        lines: Any = (
            (shortened(plain(name), _LETTERS), ink(), 8.5, 9),
            (f"cost {span(t.cost[v])}", muted(ax), 7.5, 19),
        )
        for text, color, size, down in lines:
            ax.annotate(
                text, (t.depth[v], t.row[v]), (0, -down), textcoords="offset points", ha="center",
                va="top", color=color, fontsize=size, zorder=3, bbox=ground, **PLAIN,
            )  # fmt: skip
    if first is not None:
        key(ax)
    if best is not None:
        gain = "costs" if graph.minimize else "earns"
        heading(ax, f"Searching well {gain} {number(best.value)} on average")
    return ax


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
    check(line, EndlessLine, "the picture of an endless line", "the result of solve_line")
    reward = np.asarray(line.chain.rewards, np.float64)
    by = np.argsort(reward, kind="stable")
    reward, index = reward[by], line.index[by]
    seen, known = np.isfinite(reward), np.concatenate([reward, index])
    marks = ((True, BLUE, "o", "reward: go on"), (False, VERMILION, "s", "reward: stop"))
    if len(by) > _SMOOTH:  # the index against the reward, with the diagonal below which to stop
        ax = axes(ax, 5.4, 4.0)
        calm(ax, grid="y")
        some = seen & np.isfinite(index)
        ax.plot(
            reward[some], reward[some], "--", color=muted(ax), lw=1,
            label="stop below: the reward itself",
        )  # fmt: skip
        for go_on, color, mark, label in marks:
            here = some & ((index > reward) == go_on)
            ax.plot(reward[here], index[here], mark, color=color, ms=3, label=label)
        ax.set_xlabel("reward just seen")
        ax.set_ylabel("index of the next box")
        amount_axis(ax, "xy")
        key(ax)
        return ax
    ends = known[np.isfinite(known)]
    low, high = (float(ends.min()), float(ends.max())) if ends.size else (0.0, 1.0)
    room = 0.05 * (high - low) or 1.0
    ax = axes(ax, 6.0, 1.4 + 0.26 * len(by))
    calm(ax, grid="x")
    rows, left = np.arange(len(by)), low - room
    width = np.where(np.isfinite(index), index, left) - left
    ax.barh(rows, width, 0.62, left=left, color=SKY, label="go on")
    for go_on, color, mark, label in marks:
        some = seen & ((index > reward) == go_on)
        if some.any():
            ax.scatter(
                reward[some], rows[some], s=34, color=color, marker=mark, zorder=3, clip_on=False,
                label=label,
            )  # fmt: skip
    named_rows(ax, [f"state {s}" for s in by])
    ax.set_xlim(left, high + room)
    ax.set_xlabel("best reward in hand")
    amount_axis(ax, "x")
    key(ax)
    heading(ax, "After each state, go on while the best in hand is within the bar")
    return ax


def bounds(found: LazySolution, *, ax: Axes | None = None) -> Axes:
    """How the bounds on the value of a lazy forest closed in as boxes were looked at.

    Parameters
    ----------
    found : LazySolution
        From :func:`weitzman.solve` of a :class:`weitzman.LazyForest`.
    ax : Axes, optional
    """
    check(found, LazySolution, "the picture of bounds", "the result of solve(lazy_forest)")
    rounds = np.array([*found.history, (found.expanded, found.lower, found.upper)], np.float64)
    expanded, lower, upper = rounds.T
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
