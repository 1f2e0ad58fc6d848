"""Pictures along steps: a search, a line of boxes, learning curves, a cut at some depth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._common import numbers
from ..._common.arrays import FloatArray, IntArray
from ..._common.numbers import Amounts
from ..._common.optional import need
from ...engine.solution import Solution
from ...errors import InvalidArgument
from ...forest.model import Forest
from ...policy.payoff_laws import state_called
from ...policy.search import Search
from .style import (
    BLUE,
    ORANGE,
    PLAIN,
    SKY,
    VERMILION,
    amount_axis,
    axes,
    calm,
    check_solution,
    heading,
    ink,
    key,
    mixed,
    muted,
    number,
    plain,
)  # fmt: skip
from .trees import children

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ...learn.curves import Curves
    from ...learn.run_model import RunModel


@dataclass(frozen=True, slots=True, eq=False)
class SearchPath:
    """A search, decision by decision. Entry 0 stands before the first opening.

    Attributes
    ----------
    names : list of str
        What was opened, in order.
    reward : (t,) array of float
        What each box showed; NaN for a signal without a reward.
    best, spent : (t + 1,) arrays of float
        Best reward so far and all costs so far.
    step, index : arrays
        Indices of the boxes that could be opened, and the opening (from 0) that came next.
    highest : (t + 1,) array of float
        The best of these indices; NaN if there was none.
    minimize, done : bool
    """

    names: list[str]
    reward: FloatArray
    best: FloatArray
    spent: FloatArray
    step: IntArray
    index: FloatArray
    highest: FloatArray
    minimize: bool
    done: bool


def search_path(search: Search, available: int = 12) -> SearchPath:
    """Backtest a search and note which boxes could be opened before each step.

    The indices are those of the policy that is followed now.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=2)
    >>> search = weitzman.Search(weitzman.solve(chest))
    >>> search.tell(search.ask(), 0)
    >>> path = search_path(search)
    >>> path.best.tolist(), path.spent.tolist(), path.highest.tolist()
    ([0.0, 0.0], [0.0, 1.0], [8.0, 8.0])
    """
    policy, history = search.policy, search.history
    f = policy.forest
    again = Search(policy)
    step: list[int] = []
    index: list[float] = []
    highest = np.full(len(history) + 1, np.nan)
    for t in range(len(history) + 1):
        if t:
            o = history[t - 1]
            state = state_called(f, o.box.number, o.state_number)
            again.tell(o.box, state, reward=o.reward, cost=o.cost)
        seen = [x for _, x in again.available(available) if np.isfinite(x)]
        step += [t] * len(seen)
        index += seen
        highest[t] = seen[0] if seen else np.nan
    return SearchPath(
        names=[str(o.box) for o in history],
        reward=np.array([np.nan if o.reward is None else o.reward for o in history]),
        best=np.array([f.outside, *(o.best for o in history)]),
        spent=np.array([0.0, *(o.spent for o in history)]),
        step=np.array(step, np.int64),
        index=np.array(index, np.float64),
        highest=highest,
        minimize=f.minimize,
        done=search.done,
    )


@dataclass(frozen=True, slots=True, eq=False)
class LineGrid:
    """The indices of a line of boxes with the same states.

    Attributes
    ----------
    boxes : list of str
        The boxes after the first.
    states : list of str
        By rising reward; the rewards themselves where states have no names.
    named : bool
    index : (k, t) array
        ``index[s, j]`` of ``boxes[j]`` after the box before it showed ``states[s]``.
    go_on : (k, t) array of bool
        Whether it is worth opening when that state is the best reward seen so far.
    reward : (k,) array
    first : float
        Index of the first box.
    """

    boxes: list[str]
    states: list[str]
    named: bool
    index: FloatArray
    go_on: NDArray[np.bool_]
    reward: FloatArray
    first: float


def line_grid(solution: Solution, box: str | int | None = None) -> LineGrid:
    """The indices of the line that starts with a root, as a table of states and steps.

    Parameters
    ----------
    solution : Solution
    box : str or int, optional
        The first box of the line; by default the root of highest index.

    Examples
    --------
    >>> import weitzman
    >>> law = [[0.5, 0.5], [0.25, 0.75]]
    >>> line = weitzman.line(([1, 0], law), length=2, rewards=[0, 8], cost=1)
    >>> grid = line_grid(weitzman.solve(line))
    >>> grid.index[0].tolist(), grid.go_on.tolist()
    ([6.0], [[True], [False]])
    """
    check_solution(solution, "the picture of a line")
    f, policy = solution.forest, solution.policy()
    top = int(policy.root[0]) if box is None else f.box(box)
    way = follow_line(f, top)
    if way is None:
        raise InvalidArgument(
            f"a heat map needs a line: boxes with the same states, each behind the one before, "
            f"but the tree of box {f.name(top)!r} is not a line. Use plot.forest."
        )
    reward = f.rewards[int(f.reward[top])][0]
    sign = f.sign
    by = np.argsort(sign * reward, kind="stable")
    named = f.state_names[int(f.reward[top])] is not None
    index = np.stack([solution.indices(v)[by] for v in way[1:]], axis=1)
    in_hand = np.maximum(sign * reward[by], sign * f.outside)
    return LineGrid(
        boxes=[f.name(v) for v in way[1:]],
        states=[f.states(top)[s] for s in by] if named else [numbers.number(x) for x in reward[by]],
        named=named,
        index=index,
        go_on=sign * index > in_hand[:, None],
        reward=reward[by],
        first=float(solution.indices(top)[0]) if f.parent[top] < 0 else np.nan,
    )


def follow_line(f: Forest, top: int) -> list[int] | None:
    """The boxes of the line that starts here; None if the subtree is no line with equal states."""
    below, way = children(f), [top]
    while next_boxes := below(way[-1]):
        v = next_boxes[0]
        a, b = int(f.reward[v]), int(f.reward[top])
        same = a == b or (
            np.array_equal(f.rewards[a], f.rewards[b]) and f.states(v) == f.states(top)
        )
        if len(next_boxes) > 1 or not (a == b or same):
            return None
        way.append(v)
    return way if len(way) > 1 else None


def decision_region(
    model: RunModel, scores: ArrayLike, best: float | None = None
) -> tuple[IntArray, NDArray[np.bool_]]:
    """Where a run is worth continuing.

    Parameters
    ----------
    model : ResemblanceModel
    scores : (m,) numbers
    best : float, optional
        The best score in hand; by default that of the run itself.

    Returns
    -------
    steps : (t,) array
        The steps at which there is something to decide.
    go_on : (m, t) array of bool
        Whether a run with ``scores[i]`` at ``steps[j]`` should go on.
    """
    y = np.asarray(scores, np.float64)
    steps = np.asarray(model.rungs)[:-1]  # after the last there is nothing to decide
    better = min if model.minimize else max
    go_on = np.zeros((len(y), len(steps)), bool)
    for i, score in enumerate(y.tolist()):
        in_hand = model.worth(score if best is None else better(score, best))
        for j, step in enumerate(steps.tolist()):
            go_on[i, j] = model.next_index([step], [score]) > in_hand
    return steps, go_on


_NAMED = 16  # steps up to which names are written
_NUMBERED = 150  # cells up to which numbers are written


def search(search: Search, *, ax: Axes | None = None) -> Axes:
    """A search step by step: it goes on while the highest index is above the best so far.

    The line is the best reward so far. The band below it (above it, when minimizing) is the spend
    so far, so the other edge of the band is the payoff of stopping there. Dots are findings. Ticks
    are the indices of the boxes that could be opened next (the twelve highest), and the dashed line
    is the highest index.

    Parameters
    ----------
    search : Search
        Under way or done.
    ax : Axes, optional
    """
    d = search_path(search)
    n = len(d.names)
    ax = axes(ax, float(np.clip(3.6 + 0.42 * n, 6.0, 10.5)), 3.9)
    calm(ax)
    sign = -1.0 if d.minimize else 1.0
    x = np.arange(n + 2) + 0.5
    best, stop = np.append(d.best, d.best[-1]), np.append(d.best - sign * d.spent, 0)
    stop[-1] = stop[-2]
    dots = "." if n > 60 else "_"
    ax.plot(
        d.step + 1, d.index, dots, color=mixed(ax, 0.4), ms=3 if n > 60 else 9, zorder=1,
        label="other indices",
    )  # fmt: skip
    ax.plot(np.arange(n + 1) + 1, d.highest, "--", color=BLUE, lw=1.3, label="highest index")
    if np.isfinite(best).any():
        ax.fill_between(x, best, stop, step="post", color=ORANGE, alpha=0.3, lw=0, label="spent")
        ax.step(x, best, where="post", color=ink(), lw=2, label="best so far")
    small = 3 if n > 60 else 6
    ax.plot(np.arange(n) + 1, d.reward, "o", color=VERMILION, ms=small, label="found", zorder=3)
    if n > _NAMED:
        ax.set_xlabel("opening" + ("; then it stops" if d.done else ""))
    else:
        names = [*map(plain, d.names), "stop" if d.done else "next"]
        short = max(map(len, names)) <= max(3, 40 // len(names))
        turn = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
        look: dict[str, Any] = {**({} if short else turn), **PLAIN}
        ax.set_xticks(np.arange(n + 1) + 1, names, fontsize="small", **look)
    ax.set_xlim(0.5, n + 1.5)
    ax.set_ylabel("loss" if d.minimize else "reward")
    amount_axis(ax, "y", search.policy.forest.amounts)
    key(ax)
    return ax


def line(solution: Solution, box: str | int | None = None, *, ax: Axes | None = None) -> Axes:
    """A line of boxes as a map: the index of the next box for every state and step.

    Where the state just seen is the best reward so far, colored fields mean go on and empty
    fields mean stop. With more in hand, go on only where the index is above what is in hand.

    Parameters
    ----------
    solution : Solution
    box : str or int, optional
        The first box of the line; by default the root of highest index.
    ax : Axes, optional
    """
    d, say = line_grid(solution, box), solution.forest.amounts
    k, t = d.index.shape
    ax = axes(ax, float(np.clip(2.6 + 0.5 * t, 5.0, 9.0)), float(np.clip(1.6 + 0.3 * k, 2.6, 6.5)))
    shown = np.ma.array(d.index, mask=~(d.go_on & np.isfinite(d.index)))
    colors = need("matplotlib.colors", "plot").LinearSegmentedColormap.from_list(
        "index", [mixed(ax, 0.15, BLUE), mixed(ax, 1.0, BLUE)]
    )
    low, high = (float(shown.min()), float(shown.max())) if shown.count() else (0.0, 1.0)
    if low == high:
        low, high = low - 1.0, high + 1.0
    image = ax.imshow(
        shown, origin="lower", aspect="auto", cmap=colors, vmin=low, vmax=high,
        interpolation="nearest", extent=(1.5, t + 1.5, -0.5, k - 0.5),
    )  # fmt: skip
    bare = Amounts("", say.spread)  # the bar beside the map has the unit
    for (s, j), index in np.ndenumerate(d.index) if k * t <= _NUMBERED else ():
        dark = index > (low + high) / 2
        color: Any = muted(ax) if not d.go_on[s, j] else "white" if dark else ink()
        look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": "x-small"}
        ax.text(j + 2, s, number(index, bare), color=color, **look)
    some = np.unique(np.linspace(0, k - 1, min(k, 14)).round().astype(int))
    ax.set_yticks(some, [plain(d.states[s]) for s in some], fontsize="small", **PLAIN)
    steps = np.unique(np.linspace(2, t + 1, min(t, 10)).round().astype(int))
    ax.set_xticks(steps, [f"{s:,}" for s in steps])
    ax.tick_params(length=0)
    ax.spines[:].set_color(mixed(ax, 0.25))
    ax.set_ylabel("state just seen" if d.named else "reward just seen")
    ax.set_xlabel("box to open next")
    if shown.count():
        bar = ax.figure.colorbar(image, ax=ax, fraction=0.06, pad=0.02)
        bar.outline.set_visible(False)
        bar.set_label("index")
        amount_axis(bar.ax, "y", say)
    first = "" if np.isnan(d.first) else f"First box: index {number(d.first, say)}. "
    heading(ax, f"{first}Go on where it is colored")
    return ax


def learning_curves(
    curves: Curves,
    model: RunModel | None = None,
    *,
    best: float | None = None,
    limit: int = 150,
    ax: Axes | None = None,
) -> Axes:
    """Learning curves over the decisions of a fitted model.

    The area where a run is worth continuing is blue. Outside, the run is paused or dropped.

    Parameters
    ----------
    curves : Curves
    model : ResemblanceModel, optional
        Without a model, only the curves are drawn.
    best : float, optional
        The best score in hand; by default that of the run itself.
    limit : int
        Draw at most this many runs, evenly sampled.
    ax : Axes, optional
    """
    runs = len(curves.start) - 1
    ax = axes(ax, 6.4, 3.9)
    calm(ax)
    seen = curves.score[np.isfinite(curves.score)]
    if not seen.size:
        raise InvalidArgument("learning curves need a score that is a number, but there is none.")
    low, high = np.quantile(seen, [0.005, 0.995])
    room = 0.04 * (high - low) or 1.0
    low, high = float(low - room), float(high + room)
    if model is not None:
        edges = np.linspace(low, high, 121)
        steps, go_on = decision_region(model, (edges[1:] + edges[:-1]) / 2, best)
        if len(steps):
            only = need("matplotlib.colors", "plot").ListedColormap([SKY])
            shown = np.ma.array(np.ones(go_on.shape), mask=~go_on)
            ends = np.append(steps, float(np.asarray(model.rungs)[-1]))
            ax.pcolormesh(ends, edges, shown, cmap=only, alpha=0.6, zorder=0)
            ax.fill_between([], [], color=SKY, alpha=0.6, lw=0, label="worth continuing")
    thin = 0.15 + min(0.5, 4 / runs)  # a few curves are lines, many curves are a cloud
    for r in np.unique(np.linspace(0, runs - 1, min(runs, limit)).round().astype(int)):
        rows = slice(int(curves.start[r]), int(curves.start[r + 1]))
        look: dict[str, Any] = {"color": ink(), "lw": 0.7, "alpha": thin}
        look["label"] = "run" if r == 0 else None  # all look the same
        mark = "." if rows.stop - rows.start == 1 else ""
        ax.plot(curves.step[rows], curves.score[rows], mark + "-", **look)
    ax.set_ylim(low, high)
    ax.xaxis.set_major_locator(need("matplotlib.ticker", "plot").MaxNLocator(integer=True))
    ax.set_xlabel("step" if runs <= limit else f"step    ({limit} of {runs:,} runs are drawn)")
    ax.set_ylabel("score")
    if best is not None:
        ax.axhline(best, color=VERMILION, lw=1.2, ls="--", label=f"best so far {number(best)}")
    key(ax)
    return ax


def truncation(
    depth: ArrayLike, bound: ArrayLike, loss: ArrayLike | None = None, *, ax: Axes | None = None
) -> Axes:
    """What cutting lines off at some depth can lose, and what it does lose.

    Parameters
    ----------
    depth : (m,) numbers
        How many boxes of each line are kept.
    bound : (m,) numbers
        Certified bounds on the loss.
    loss : (m,) numbers, optional
        True losses. Zeros cannot be shown on a logarithmic axis: the line ends there.
    ax : Axes, optional
    """
    t, upper = np.asarray(depth, np.float64), np.asarray(bound, np.float64)
    true = np.full(t.shape, np.nan) if loss is None else np.asarray(loss, np.float64)
    if not t.ndim == 1 or not t.shape == upper.shape == true.shape:
        raise InvalidArgument("`depth`, `bound` and `loss` must be lists of the same length.")
    ax = axes(ax, 5.4, 3.5)
    calm(ax, grid="y")
    by = np.argsort(t)
    for y, style, color, size, label in (
        (upper, "s--", ORANGE, 9, "certified bound"),
        (true, "o-", BLUE, 4, "true loss"),
    ):
        some = np.where(y[by] > 0, y[by], np.nan)
        if np.isfinite(some).any():  # open squares: the two may lie on each other
            face = "none" if style[0] == "s" else color
            ax.plot(t[by], some, style, color=color, ms=size, mfc=face, lw=1.5, label=label)
    ax.set_yscale("log")
    ax.set_xlabel("depth: boxes kept of each line")
    ax.set_ylabel("loss of value")
    amount_axis(ax, "y")
    if ax.get_legend_handles_labels()[1]:
        key(ax)
    return ax
