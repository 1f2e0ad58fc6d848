"""Pictures along steps: a search, a line of boxes, learning curves, a tuned model."""

from __future__ import annotations

from itertools import pairwise
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._common import numbers
from ..._common.arrays import IntArray
from ..._common.numbers import Amounts, about, counted
from ..._common.optional import need
from ..._common.text import printable
from ...engine.solution import Solution
from ...errors import InvalidArgument
from ...forest.model import Forest
from ...policy.payoff_laws import state_called
from ...policy.search import Search
from . import style
from .style import BLUE, ORANGE, PLAIN, SKY, VERMILION, finish, ink, mixed, muted, plain
from .trees import children

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ...learn.curves import Curves
    from ...learn.run_model import RunModel
    from ...tune.outcome import Result

_NAMED = 16  # steps up to which names are written
_NUMBERED = 150  # cells up to which numbers are written
_LARGE = 60  # steps from which on marks are small
_DRAWN = 12  # indices before each step


def search(search: Search, *, ax: Axes | None = None) -> Axes:
    """A search step by step: it continues while the highest index is above the best so far.

    The line is the best reward so far. The band below it (above it, when minimizing) is the spend
    so far, so the other edge of the band is the payoff of stopping there. Dots are findings. Ticks
    are the indices of the boxes that could be opened next (the twelve highest), and the dashed line
    is the highest index.

    Parameters
    ----------
    search : Search
        Under way or done.
    """
    f, history, again = search.policy.forest, search.history, Search(search.policy)
    step, index, highest, n = list[int](), list[float](), list[float](), len(history)
    for t in range(n + 1):  # follow it again, to see what could be opened before each step
        if t:
            o = history[t - 1]
            state = state_called(f, o.box.number, o.state_number)
            again.tell(o.box, state, reward=o.reward, cost=o.cost)
        seen = [x for _, x in again.available(_DRAWN) if np.isfinite(x)]
        step += [t + 1] * len(seen)
        index += seen
        highest.append(seen[0] if seen else np.nan)
    ax = style.axes(ax, float(np.clip(3.6 + 0.42 * n, 6.0, 10.5)), 3.9)
    x = np.arange(n + 2) + 0.5
    ends = [f.outside, *(o.best for o in history)], [0.0, *(o.spent for o in history)]
    best, spent = (np.array([*end, end[-1]]) for end in ends)
    dots, small, big = (".", 3, 3) if n > _LARGE else ("_", 9, 6)
    gray: dict[str, Any] = {"color": mixed(ax, 0.4), "ms": small, "zorder": 1}
    ax.plot(step, index, dots, label="other indices", **gray)
    ax.plot(np.arange(n + 1) + 1, highest, "--", color=BLUE, lw=1.3, label="highest index")
    if np.isfinite(best).any():
        look: dict[str, Any] = {"step": "post", "color": ORANGE, "alpha": 0.3, "lw": 0}
        ax.fill_between(x, best, best - f.sign * spent, label="spent", **look)
        ax.step(x, best, where="post", color=ink(), lw=2, label="best so far")
    found = [np.nan if o.reward is None else o.reward for o in history]
    ax.plot(np.arange(n) + 1, found, "o", color=VERMILION, ms=big, label="found", zorder=3)
    if n <= _NAMED:
        names = [*(plain(str(o.box)) for o in history), "stop" if search.done else "next"]
        short = max(map(len, names)) <= max(3, 40 // len(names))
        turn = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
        look = {**({} if short else turn), **PLAIN}
        ax.set_xticks(np.arange(n + 1) + 1, names, fontsize="small", **look)
    ax.set_xlim(0.5, n + 1.5)
    steps = "" if n <= _NAMED else "opening" + ("; then it stops" if search.done else "")
    y = "loss" if f.minimize else "reward"
    return finish(ax, x=steps, y=y, amounts="y", say=f.amounts)


def follow_line(f: Forest, top: int) -> list[int] | None:
    """The boxes of the line that starts here; None if the subtree is no line with equal states."""
    below, way = children(f), [top]
    while next_boxes := below(way[-1]):
        v = next_boxes[0]
        a, b = int(f.reward[v]), int(f.reward[top])
        same = np.array_equal(f.rewards[a], f.rewards[b]) and f.states(v) == f.states(top)
        if len(next_boxes) > 1 or not (a == b or same):
            return None
        way.append(v)
    return way if len(way) > 1 else None


def line(solution: Solution, box: str | int | None = None, *, ax: Axes | None = None) -> Axes:
    """A line of boxes as a map: the index of the next box for every state and step.

    Where the state just seen is the best reward so far, colored fields mean continue and empty
    fields mean stop. With more in hand, continue only where the index is above what is in hand.

    Parameters
    ----------
    solution : Solution
    box : str or int, optional
        The first box of the line; by default the root with the highest index.
    """
    style.check_solution(solution, "the picture of a line")
    f, sign, say = solution.forest, solution.forest.sign, solution.forest.amounts
    top = int(solution.policy().root[0]) if box is None else f.box(box)
    way = follow_line(f, top)
    if way is None:
        raise InvalidArgument(
            f"a heat map needs a line: boxes with the same states, each behind the one before, "
            f"but the tree of box {f.name(top)!r} is not a line. Use plot.forest."
        )
    reward = f.rewards[int(f.reward[top])][0]
    by = np.argsort(sign * reward, kind="stable")  # from bad to good
    index = np.stack([solution.indices(v)[by] for v in way[1:]], axis=1)
    go_on = sign * index > np.maximum(sign * reward[by], sign * f.outside)[:, None]
    named = f.state_names[int(f.reward[top])] is not None
    states = [f.states(top)[s] if named else numbers.number(reward[s]) for s in by]
    k, t = index.shape
    wide, high = np.clip(2.6 + 0.5 * t, 5.0, 9.0), np.clip(1.6 + 0.3 * k, 2.6, 6.5)
    ax = style.axes(ax, float(wide), float(high))
    shown = np.ma.array(index, mask=~(go_on & np.isfinite(index)))
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
    for (s, j), here in np.ndenumerate(index) if k * t <= _NUMBERED else ():
        dark = here > (low + high) / 2
        color: Any = muted(ax) if not go_on[s, j] else "white" if dark else ink()
        look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": "x-small"}
        ax.text(j + 2, s, bare.typeset(here), color=color, **look)
    some = np.unique(np.linspace(0, k - 1, min(k, 14)).round().astype(int))
    ax.set_yticks(some, [plain(states[s]) for s in some], fontsize="small", **PLAIN)
    steps = np.unique(np.linspace(2, t + 1, min(t, 10)).round().astype(int))
    ax.set_xticks(steps, [f"{s:,}" for s in steps])
    ax.tick_params(length=0)
    ax.spines[:].set_color(mixed(ax, 0.25))
    if shown.count():
        bar = ax.figure.colorbar(image, ax=ax, fraction=0.06, pad=0.02)
        bar.outline.set_visible(False)
        finish(bar.ax, y="index", amounts="y", say=say)
    start = say.typeset(float(solution.indices(top)[0]))
    first = f"First box: index {start}. " if f.parent[top] < 0 else ""
    seen = "state just seen" if named else "reward just seen"
    return finish(ax, f"{first}Continue where it is colored", x="box to open next", y=seen)


def decision_region(
    model: RunModel, scores: ArrayLike, best: float | None = None
) -> tuple[IntArray, NDArray[np.bool_]]:
    """Steps of decisions, and whether a run with this score at that step is worth continuing."""
    y = np.asarray(scores, np.float64)
    steps = np.asarray(model.rungs)[:-1]  # after the last there is nothing to decide
    better = min if model.minimize else max
    go_on = np.zeros((len(y), len(steps)), bool)
    for i, score in enumerate(y.tolist()):
        in_hand = model.worth(score if best is None else better(score, best))
        for j, step in enumerate(steps.tolist()):
            go_on[i, j] = model.next_index([step], [score]) > in_hand
    return steps, go_on


def learning_curves(
    curves: Curves, model: RunModel | None = None, *, best: float | None = None, limit: int = 150,
    ax: Axes | None = None,
) -> Axes:  # fmt: skip
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
    """
    runs, seen = len(curves.start) - 1, curves.score[np.isfinite(curves.score)]
    if not seen.size:
        raise InvalidArgument("learning curves need a score that is a number, but there is none.")
    ax = style.axes(ax, 6.4, 3.9)
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
        mark, label = "." if rows.stop - rows.start == 1 else "", "run" if r == 0 else None
        look: dict[str, Any] = {"color": ink(), "lw": 0.7, "alpha": thin, "label": label}
        ax.plot(curves.step[rows], curves.score[rows], mark + "-", **look)
    ax.set_ylim(low, high)
    ax.xaxis.set_major_locator(need("matplotlib.ticker", "plot").MaxNLocator(integer=True))
    if best is not None:
        look = {"color": VERMILION, "lw": 1.2, "ls": "--"}
        ax.axhline(best, label=f"best so far {style.BARE.typeset(best)}", **look)
    some = "step" if runs <= limit else f"step    ({limit} of {runs:,} runs are drawn)"
    return finish(ax, x=some, y="score")


_ENDS = {  # of runs: as they are called in a result, their mark, and what the key says
    "ended": ("o", "trained to the end"), "": ("|", "paused"), "left": ("|", "paused"),
    "failed": ("x", "failed or lost"), "lost": ("x", "failed or lost"),
}  # fmt: skip


def tuning(result: Result, *, ax: Axes | None = None) -> Axes:
    """A search for a configuration: what was tried, paused and resumed, and why it stopped.

    A thin line is a run, from score to score; it is dashed where the run was paused while others
    were trained. The mark at its end says what became of the run. The thick line is the best so
    far.

    Parameters
    ----------
    result : weitzman.tune.Result
    """
    history = result.history
    if not history:
        raise InvalidArgument("the picture of a search needs a score, but there is none.")
    run, _, score, spent = (np.array(x) for x in zip(*history, strict=True))
    minimize = result.curves is not None and result.curves.minimize
    best = (np.fmin if minimize else np.fmax).accumulate(score)
    ax = style.axes(ax, 6.4, 3.9, grid="y")
    gray = mixed(ax, 0.5)
    ends: dict[str, tuple[str, list[tuple[float, float]]]] = {}
    for number in np.unique(run):
        at = np.flatnonzero(run == number)
        for i, j in pairwise(at.tolist()):
            how = "-" if j == i + 1 else ":"
            ax.plot(spent[[i, j]], score[[i, j]], how, color=gray, lw=0.9, zorder=1)
        mark, label = _ENDS[result.runs[int(number)].over]
        ends.setdefault(label, (mark, []))[1].append((spent[at[-1]], score[at[-1]]))
    for label, (mark, points) in ends.items():
        x, y = zip(*points, strict=True)
        color = BLUE if mark == "o" else VERMILION if mark == "x" else gray
        ax.scatter(x, y, s=26, marker=mark, color=color, label=label, zorder=2)
    ax.step(spent, best, where="post", color=ink(), lw=2, label="best so far", zorder=3)
    tried = counted(len(result.runs), "run")
    title = f"{tried}, {about(result.spent)} spent. {printable(result.reason)}"
    return finish(ax, fill(title, 80), x="spent", y="score")
