"""Pictures along steps: a search, a line of boxes, learning curves, a cut at some depth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..._common.arrays import FloatArray, IntArray
from ..._common.numbers import Amounts
from ..._common.optional import need
from ...engine.solution import Solution
from ...errors import InvalidArgument
from ...learn.run_model import RunModel
from ...policy.search import Search
from .paths_data import LineGrid, SearchPath, decision_region, line_grid, search_path
from .style import (
    BLUE,
    ORANGE,
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
    number,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    _name_steps(ax, d)
    ax.set_xlim(0.5, n + 1.5)
    ax.set_ylabel("loss" if d.minimize else "reward")
    amount_axis(ax, "y", search.policy.forest.amounts)
    key(ax)
    return ax


def _name_steps(ax: Axes, d: SearchPath) -> None:
    n = len(d.names)
    if n > _NAMED:
        ax.set_xlabel("opening" + ("; then it stops" if d.done else ""))
        return
    end = "stop" if d.done else "next"
    names = [*map(plain, d.names), end]
    short = max(map(len, names)) <= max(3, 40 // len(names))
    turn: dict[str, Any] = (
        {} if short else {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
    )
    ax.set_xticks(np.arange(n + 1) + 1, names, fontsize="small", **turn, **PLAIN)


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
    if k * t <= _NUMBERED:
        _write_cells(ax, d, (low + high) / 2, say)
    _line_ticks(ax, d)
    if shown.count():
        bar = ax.figure.colorbar(image, ax=ax, fraction=0.06, pad=0.02)
        bar.outline.set_visible(False)
        bar.set_label("index")
        amount_axis(bar.ax, "y", say)
    first = "" if np.isnan(d.first) else f"First box: index {number(d.first, say)}. "
    heading(ax, f"{first}Go on where it is colored")
    return ax


def _write_cells(ax: Axes, d: LineGrid, middle: float, say: Amounts) -> None:
    bare = Amounts("", say.spread)  # the bar beside the map has the unit
    for (s, j), index in np.ndenumerate(d.index):
        color = muted(ax) if not d.go_on[s, j] else "white" if index > middle else ink()
        ax.text(
            j + 2, s, number(index, bare), ha="center", va="center", fontsize="x-small", color=color
        )


def _line_ticks(ax: Axes, d: LineGrid) -> None:
    k, t = d.index.shape
    some = np.unique(np.linspace(0, k - 1, min(k, 14)).round().astype(int))
    ax.set_yticks(some, [plain(d.states[s]) for s in some], fontsize="small", **PLAIN)
    steps = np.unique(np.linspace(2, t + 1, min(t, 10)).round().astype(int))
    ax.set_xticks(steps, [f"{s:,}" for s in steps])
    ax.tick_params(length=0)
    ax.spines[:].set_color(mixed(ax, 0.25))
    ax.set_ylabel("state just seen" if d.named else "reward just seen")
    ax.set_xlabel("box to open next")


class CurveRows(Protocol):
    """Logged curves: run r has the rows ``start[r]`` to ``start[r + 1]``."""

    @property
    def start(self) -> IntArray:
        """Where the rows of each run begin."""
        ...

    @property
    def step(self) -> IntArray:
        """The step of each row."""
        ...

    @property
    def score(self) -> FloatArray:
        """The score of each row."""
        ...


def learning_curves(
    curves: CurveRows,
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
    model : LineModel, optional
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
        _shade(ax, model, low, high, best)
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


def _shade(ax: Axes, model: RunModel, low: float, high: float, best: float | None) -> None:
    edges = np.linspace(low, high, 121)
    steps, go_on = decision_region(model, (edges[1:] + edges[:-1]) / 2, best)
    if not len(steps):
        return
    last = float(np.asarray(model.rungs)[-1])
    only = need("matplotlib.colors", "plot").ListedColormap([SKY])
    shown = np.ma.array(np.ones(go_on.shape), mask=~go_on)
    ax.pcolormesh(np.append(steps, last), edges, shown, cmap=only, alpha=0.6, zorder=0)
    ax.fill_between([], [], color=SKY, alpha=0.6, lw=0, label="worth continuing")


def truncation(
    depth: ArrayLike, bound: ArrayLike, loss: ArrayLike | None = None, *, ax: Axes | None = None
) -> Axes:
    """What cutting lines off at some depth can lose, and what it does lose.

    ``plot.truncation(*plot.truncation_data(cuts, value))`` draws what ``weitzman.truncate`` found.

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
