"""Pictures of answers: openings, strategies, values, payoffs, budgets, risk, back-tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._common.arrays import IntArray, check_counts
from ..._common.numbers import percent, rough
from ..._common.text import shortened
from ...backtest.backtest_result import Backtest
from ...engine.evaluation import Evaluation, evaluate
from ...engine.indices import Policy
from ...engine.solution import Solution
from ...engine.what_if import break_even as break_even_costs
from ...policy.payoff_laws import state_called
from ...policy.simulation import payoff_law, two_sided
from ...questions.budget import SpendFrontier
from ...questions.robustness import Tornado
from ...questions.sweeps import RiskSweep
from ...strategies.comparison import Comparison
from . import style
from .style import BLUE, ORANGE, SKY, VERMILION, finish, ink, marks, muted, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FAR = 4.0  # times the gain of the optimal policy; worse strategies are not drawn to scale
_STEMS = 40  # at most so many values are drawn one by one
_BINS = 50
_TITLE = 48  # letters of a row
_MARKERS = "osD^vP*X<>hp"


def _rows(ax: Axes | None, names: list[str]) -> tuple[Axes, IntArray]:
    """Axes with a named row for each thing. Long names make the figure wider."""
    wide = 4.9 + 0.085 * min(40, max(map(len, names), default=0))
    ax = style.axes(ax, wide, 1.3 + 0.24 * len(names), grid="x")
    return ax, style.named_rows(ax, names)


def openings(
    source: Evaluation | Solution | Policy, *, limit: int = 25, ax: Axes | None = None
) -> Axes:
    """How likely each box is to be opened, and how likely its reward is to be taken.

    Parameters
    ----------
    source : Evaluation, Solution or Policy
        What to draw; for a solution, its optimal policy is evaluated.
    limit : int
        Show at most this many boxes: the boxes opened most often.
    """
    check_counts(limit=limit)
    e = source if isinstance(source, Evaluation) else evaluate(source)
    f, copies = e.forest, bool(e.forest.count.max() > 1)
    top = np.argsort(-e.opened, kind="stable")[:limit]
    opened, chosen, names = e.opened[top], e.wins[top], [f.name(int(v)) for v in top]
    if e.outside > 0:
        chosen, names = np.append(chosen, e.outside), [*names, "(outside option)"]
    ax, rows = _rows(ax, names)
    ax.barh(rows[: len(top)], opened, 0.72, color=SKY, label="opened")
    ax.barh(rows, chosen, 0.3, color=BLUE, label="chosen in the end")
    ax.set_xlim(0, max(1.12 * float(max(opened.max(), chosen.max())), 1e-12))
    look: dict[str, Any] = {"va": "center", "fontsize": "small"}
    for y, p in enumerate(opened):
        text = style.BARE.typeset(p) if copies else percent(p)
        ax.annotate(text, (p, y), (4, 0), textcoords="offset points", color=muted(ax), **look)
    what = "copies, on average" if copies else "probability"
    if len(top) < len(f):
        rest = float(e.opened.sum() - opened.sum())
        often = "<0.01" if 0 < rest < 0.01 else rough(max(rest, 0.0))
        what += f"\n{len(top)} of {len(f):,} boxes; the others are opened {often} times in all"
    return finish(ax, x=what)


def strategies(comparison: Comparison, *, ax: Axes | None = None) -> Axes:
    """What strategies earn, from :func:`weitzman.compare`.

    A dot is the expected payoff, with a 95 % confidence interval where it was simulated. A triangle
    at the edge stands for a payoff far beyond the axis, and its number is written beside it. Where
    only a bound is known, a vertical mark shows the most that this kind of strategy can earn.

    Parameters
    ----------
    comparison : Comparison
    """
    what = "the picture of strategies"
    style.check(comparison, Comparison, what, "the result of compare(forest)")
    c, f = comparison.columns(), comparison.forest
    value, bound = np.array(c["value"]), np.array(c["bound"])
    bound[np.isclose(bound, value, rtol=1e-9)] = np.nan
    half = two_sided(0.95) * np.array(c["error"])  # of the interval
    ax, rows = _rows(ax, c["name"])
    nothing = f.prizes * f.outside  # without an outside option, nothing is worth −∞
    start = nothing if np.isfinite(nothing) else float(value[np.isfinite(value)].min())
    shades: list[Any] = [BLUE, *[muted(ax)] * (len(rows) - 1)]
    # a hopeless strategy must not hide the rest
    reach = _FAR * abs(value[0] - start) or np.inf
    shown = np.clip(value, start - reach, start + reach)
    ax.hlines(rows, start, shown, color=shades, lw=[3.0, *[1.2] * (len(rows) - 1)])
    what = "expected loss and cost" if f.minimize else "expected payoff"
    sides = ((shown == value, "o", what), (shown > value, "<", "far lower"))
    for side, marker, label in (*sides, (shown < value, ">", "far higher")):
        color = [shades[i] for i in np.flatnonzero(side)]
        marks(ax, shown, rows, side, s=46, c=color, marker=marker, label=label)
    error = np.where(shown == value, half, np.nan)
    if (error > 0).any():
        ax.errorbar(shown, rows, xerr=error, fmt="none", ecolor=ink(), lw=1, label="95% interval")
    if np.isfinite(bound).any():
        most = "least that this kind can cost" if f.minimize else "most that this kind can earn"
        ax.scatter(bound, rows, s=90, color=ink(), marker="|", label=most)
    for y, (x, wide) in enumerate(zip(value, np.nan_to_num(half), strict=True)):  # in a column
        beside: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "va": "center"}
        ax.text(1.01, y, f.amounts.typeset(x, wide), fontsize="small", **beside)
    return finish(ax, x=what, amounts="x", say=f.amounts)


def break_even(solution: Solution, *, limit: int = 12, ax: Axes | None = None) -> Axes:
    """What boxes cost, and at which costs decisions would change.

    A dot is the cost now. The bar ends where the box would never be worth opening; a triangle
    marks the cost at which the search would begin elsewhere.

    Parameters
    ----------
    solution : Solution
    limit : int
        Show at most this many boxes: the boxes opened most often.
    """
    style.check_solution(solution, "the picture of break-even costs")
    check_counts(limit=limit)
    f, e = solution.forest, evaluate(solution)
    top, names, found = np.argsort(-e.opened, kind="stable")[:limit].tolist(), [], []
    for v in top:  # a child is looked at after the state that most often leads to it
        up, state = int(f.parent[v]), int(np.argmax(e.opened_after[v]))
        names.append(f.name(v) if up < 0 else f"{f.name(v)} after {f.states(up)[state]}")
        after = None if up < 0 else state_called(f, up, state)
        found.append(break_even_costs(solution, v, after))
    cost = np.array([b.cost for b in found])
    below = np.array([b.opened_below for b in found])
    first = np.array([np.nan if b.first_below is None else b.first_below for b in found])
    ax, rows = _rows(ax, names)
    known = np.concatenate([cost, below, first])
    right = 1.08 * float(known[np.isfinite(known)].max()) or 1.0
    ax.barh(rows, np.minimum(below, right), 0.5, color=SKY, label="worth opening")
    pays, turns = cost < below, np.isfinite(first)
    marks(ax, cost, rows, pays, s=36, color=BLUE, label="cost now")
    marks(ax, cost, rows, ~pays, s=42, color=VERMILION, marker="X", label="too expensive")
    hollow = {"marker": "v", "facecolors": "none", "edgecolors": ink()}
    marks(ax, first, rows, turns, s=40, label="begin elsewhere from here on", **hollow)
    ax.set_xlim(0, right)
    what = "cost of opening"
    if len(top) < len(f):
        what += f", of the {len(top)} most often opened of {len(f):,}"
    return finish(ax, x=what, amounts="x", say=f.amounts)


def phi(
    solution: Solution, box: str | int | None = None, state: str | int | float | None = None, *,
    ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """What searching is worth with x in hand, Φ(x) = E max(x, κ), and where it stops paying.

    Above the diagonal it is better to continue than to stop with x. Both meet at the index.

    Parameters
    ----------
    solution : Solution
    box : str or int, optional
        This box and all boxes behind it; the whole forest by default.
    state : optional
        What the parent of the box showed.
    """
    style.check_solution(solution, "the picture of Φ")
    law, f = solution.capped_law(box, state), solution.forest
    x = np.unique(np.concatenate([np.linspace(law.low, law.high, 257), law.points]))
    x = x[(x >= law.low) & (x <= law.high)]
    y = law.phi(x)
    ax = style.axes(ax, 5.2, 3.8)
    ax.fill_between(x, x, y, color=SKY, alpha=0.5, lw=0)
    ax.plot(x, x, "--", color=muted(ax), lw=1, label="stop: x")
    ax.plot(x, y, color=BLUE, lw=2, label="search on: Φ(x)")
    here, text = law.index, f"index {f.amounts.typeset(law.index)}"
    if box is None:
        value = f.amounts.typeset(solution.value, solution.gap)
        here, text = f.outside, f"value {value} at {f.amounts.typeset(f.outside)}"
    if law.low <= here <= law.high:
        ax.plot([here], law.phi(np.array([here])), "o", color=ink(), ms=6, zorder=4, label=text)
    ax.set_xlim(law.low, law.high)
    held = "the least loss" if law.minimize else "the best reward"
    payoff = "expected loss and cost" if law.minimize else "expected payoff"
    title = _title("What searching on is worth", solution, box, state)
    return finish(ax, title, x=f"x, {held} in hand", y=payoff, amounts="xy", say=f.amounts)


def capped_value(
    solution: Solution, box: str | int | None = None, state: str | int | float | None = None, *,
    ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """The law of the capped value κ: the probability that it is x or more.

    The shaded area above the outside option is what searching gains over it on average.

    Parameters
    ----------
    solution : Solution
    box : str or int, optional
        This box and all boxes behind it; by default the largest κ of all trees.
    state : optional
        What the parent of the box showed.
    """
    style.check_solution(solution, "the law of a capped value")
    law, outside = solution.capped_law(box, state), solution.forest.outside
    say = solution.forest.amounts
    ax = style.axes(ax, 5.2, 3.4, grid="y")
    # the corners of P(κ >= x), or of P(κ <= x) when minimizing
    x, tails = np.concatenate([[law.low], law.points, [law.high]]), law.tails
    how: Any = "post" if law.minimize and len(tails) else "pre"
    ends = ([0.0], tails[-1:]) if law.minimize else (tails[:1], [0.0])
    y = np.concatenate([ends[0], tails, ends[1]]) if len(tails) else np.zeros(2)
    ax.step(x, y, where=how, color=BLUE, lw=2)
    if np.isfinite(outside):
        x = np.minimum(x, outside) if law.minimize else np.maximum(x, outside)
        gain = abs(float(law.phi(np.array([outside]))[0]) - outside)
        area = f"area: a gain of {say.typeset(gain)}"
        ax.fill_between(x, y, step=how, color=SKY, alpha=0.6, lw=0, label=area)
        ax.axvline(outside, color=muted(ax), lw=1, ls="--", label="outside option")
    ax.set_xlim(law.low, law.high)
    ax.set_ylim(0, 1.04)
    title = _title("Capped value", solution, box, state)
    chance = f"probability that κ {'≤' if law.minimize else '≥'} x"
    return finish(ax, title, x="x", y=chance, amounts="x", say=say)


def payoff(
    policy: Solution | Policy, *, episodes: int = 100_000, rng: np.random.Generator | int = 0,
    ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """The law of what a search earns in the end, best reward less all costs.

    It is exact where the policy can end in a few thousand ways, and simulated otherwise; the title
    says which. Payoffs worse than opening nothing are hatched.

    Parameters
    ----------
    policy : Solution or Policy
    episodes : int
        Searches to simulate if the law is not computed exactly.
    rng : Generator or int
        For the simulation.
    """
    law, f = payoff_law(policy, episodes=episodes, rng=rng), policy.forest
    ax = style.axes(ax, 6.4, 3.4, grid="y")
    low, high = float(law.values[0]), float(law.values[-1])
    if len(law.values) <= _STEMS:
        width, which = (high - low) / 80 or max(abs(low), 1.0) / 40, np.arange(len(law.values))
        left = law.values - width / 2
    else:  # values share bars, one of which begins at the outside option
        width, start = (high - low) / _BINS, low
        if low < law.outside < high:
            start = law.outside - width * np.ceil((law.outside - low) / width)
        which = np.maximum(np.floor((law.values - start) / width), 0).astype(np.int64)
        left = np.asarray(start + width * np.arange(int(which.max()) + 1), np.float64)
    bad = np.bincount(which, law.chances * law.is_worse, len(left))
    good = np.bincount(which, law.chances * ~law.is_worse, len(left))
    fine = f"{percent(1 - law.worse)} no worse than opening nothing"
    ax.bar(left, good, width, bottom=bad, align="edge", color=BLUE, label=fine)
    if law.is_worse.any():
        look: dict[str, Any] = {"color": ORANGE, "hatch": "////", "edgecolor": "white", "lw": 0}
        ax.bar(left, bad, width, align="edge", label=f"{percent(law.worse)} worse", **look)
    ax.set_ylim(0, 1.06 * float((good + bad).max()))
    ax.axvline(law.mean, color=ink(), lw=1.2, ls="--", label=f"mean {f.amounts.typeset(law.mean)}")
    what = "least loss plus all costs" if f.minimize else "payoff: reward less all costs"
    title = f"Law of the {'cost' if f.minimize else 'payoff'} ({law.how})"
    return finish(ax, title, x=what, y="probability", amounts="x", say=f.amounts)


def _title(what: str, solution: Solution, box: str | int | None, state: object) -> str:
    if box is None:
        return what
    name = plain(solution.forest.name(solution.forest.box(box)))
    return f"{what}: {name}" + ("" if state is None else f" after {plain(str(state))}")


def frontier(curve: SpendFrontier, *, ax: Axes | None = None) -> Axes:
    """The most expected reward for each expected spend; the slope is the price of money.

    Parameters
    ----------
    curve : SpendFrontier
        From :func:`weitzman.questions.frontier`.
    """
    style.check(curve, SpendFrontier)
    ax = style.axes(ax, 5.2, 3.4, grid="y")
    ax.plot(curve.spend, curve.reward, color=BLUE, marker="o", markersize=4, label="best policies")
    corner = curve.corners[int(np.count_nonzero(curve.price > 1))]  # slopes fall
    look: dict[str, Any] = {"label": "the best policy at the current costs", "color": VERMILION}
    ax.plot([corner.spend], [corner.reward], "o", markersize=8, **look)
    kind, say = "loss" if curve.forest.minimize else "reward", curve.forest.amounts
    return finish(ax, x="expected spend", y=f"expected {kind}", amounts="xy", say=say)


def risk_sweep(sweep: RiskSweep, *, ax: Axes | None = None) -> Axes:
    """The certainty equivalent against the risk tolerance; colors show the first decision.

    Parameters
    ----------
    sweep : RiskSweep
        From :func:`weitzman.questions.risk_sweep`.
    """
    style.check(sweep, RiskSweep)
    ax = style.axes(ax, 5.2, 3.4, grid="y")
    ranges = sweep.decisions()
    boxes = list(dict.fromkeys(first for _, _, first in ranges))
    shade = dict(zip(boxes, style.colors(len(boxes)), strict=True))
    for i, (high, low, first) in enumerate(ranges):
        inside = (sweep.tolerance < high) & (sweep.tolerance > low)
        ends = [x for x in (high, low) if 0 < x < np.inf]
        x = np.sort(np.append(sweep.tolerance[inside], ends))
        value = np.interp(np.log(x), np.log(sweep.tolerance[::-1]), sweep.value[::-1])
        new = all(first != other for _, _, other in ranges[:i])
        what = "open nothing" if first is None else f"open {plain(first)} first"
        ax.plot(x, value, color=shade[first], linewidth=2.4, label=what if new else None)
    for turn in sweep.turns.tolist():
        ax.axvline(turn, color=muted(ax), linewidth=0.8, linestyle=":")
    look: dict[str, Any] = {"color": muted(ax), "linewidth": 0.8, "linestyle": "--"}
    ax.axhline(sweep.solution.value, label="expected payoff alone", **look)
    ax.set_xscale("log")
    tolerance, say = "risk tolerance: careful to bold", sweep.solution.forest.amounts
    return finish(ax, x=tolerance, y="certainty equivalent", amounts="xy", say=say)


def tornado(found: Tornado, *, limit: int = 12, ax: Axes | None = None) -> Axes:
    """How the value changes with each number, with a mark where another box would come first.

    Parameters
    ----------
    found : Tornado
        From :func:`weitzman.questions.tornado`.
    limit : int
        Show at most this many numbers: the numbers with the widest swing.
    """
    style.check(found, Tornado)
    swings, value = found.swings[:limit], found.solution.value
    names = [f"{s.number} of {s.box}" if s.box else s.number for s in swings]
    names = [f"{n}, turns" if s.turns else n for n, s in zip(names, swings, strict=True)]
    ax, rows = _rows(ax, [shortened(name, _TITLE) for name in names])
    for side, color, label in (("low", SKY, "lowered"), ("high", BLUE, "raised")):
        moved = np.array([getattr(s, side) - value for s in swings])
        ax.barh(rows, moved, 0.72, left=value, color=color, label=label)
    ax.axvline(value, color=ink(), linewidth=0.8, label="as things stand")
    return finish(ax, x="value", amounts="x", say=found.solution.forest.amounts)


_WORDS = {
    "payoff": "payoff (points)", "score": "best score", "spend": "spend (units of cost)",
    "regret": "regret to hindsight (points)", "behind": "points behind the first method",
}  # fmt: skip


def backtest(
    found: Backtest, measure: str = "regret", *, task: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw a measure of a back-test against the price, with one line for each method.

    Parameters
    ----------
    found : Backtest
    measure : "payoff", "score", "spend", "regret" or "behind"
    task : str, optional
        Draw this task only.
    """
    means, order = found.means(measure, task), np.argsort(found.quoted)
    x = np.array(found.quoted)[order]
    drawn = found.methods[: -1 if measure == "regret" else None]  # that of hindsight is 0
    ax = style.axes(ax, 7, 4.5, grid="y")
    for i, (method, color) in enumerate(zip(drawn, style.colors(len(drawn)), strict=True)):
        mean, low, high = means[i][order].T
        color = ink() if method == found.methods[-1] else color
        look: dict[str, Any] = {"marker": _MARKERS[i % len(_MARKERS)], "markersize": 5}
        width, over = (2.4, 3) if i == 0 else (1.2, 2)
        ax.plot(x, mean, color=color, linewidth=width, zorder=over, label=method, **look)
        if i == 0:
            text = f"95% interval of {method}"
            ax.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0, label=text)
    ax.set_xscale("log")
    if measure in ("regret", "spend"):
        ax.set_yscale("log")
    full, point = "points that a full run costs", "worth of a point, units of cost"
    title = None if task is None else plain(task)
    return finish(ax, title, x=full if found.by_full_run else point, y=_WORDS[measure])
