"""Pictures of answers: capped values, payoffs, budgets, caution, swings, back-tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ..._common.arrays import FloatArray
from ..._common.numbers import percent
from ...backtest.backtest_result import Backtest
from ...engine.capped_laws import CappedLaw
from ...engine.indices import Policy
from ...engine.solution import Solution
from ...errors import InvalidArgument
from ...policy.simulation import PayoffLaw, payoff_law
from ...questions.budget import SpendFrontier
from ...questions.robustness import Tornado
from ...questions.sweeps import RiskSweep
from .box_pictures import check_solution
from .style import (
    BLUE,
    ORANGE,
    PLAIN,
    SKY,
    VERMILION,
    amount_axis,
    axes,
    calm,
    colors,
    heading,
    ink,
    key,
    muted,
    named_rows,
    number,
    plain,
)  # fmt: skip

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..._common.arrays import FloatArray, IntArray

_STEMS = 40  # at most so many values are drawn one by one
_BINS = 50


def capped_law(
    solution: Solution, box: str | int | None = None, state: str | int | float | None = None
) -> CappedLaw:
    """See :meth:`Solution.capped_law <weitzman.Solution.capped_law>`."""
    check_solution(solution, "the law of a capped value")
    return solution.capped_law(box, state)


def phi(
    solution: Solution,
    box: str | int | None = None,
    state: str | int | float | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """What searching is worth with x in hand, Φ(x) = E max(x, κ), and where it stops paying.

    Above the diagonal it is better to go on than to stop with x. The index is where the two meet.

    Parameters
    ----------
    solution : Solution
    box : str or int, optional
        This box and all boxes behind it; the whole forest by default.
    state : optional
        What the parent of the box showed.
    ax : Axes, optional
    """
    law = capped_law(solution, box, state)
    x = np.unique(np.concatenate([np.linspace(law.low, law.high, 257), law.points]))
    x = x[(x >= law.low) & (x <= law.high)]
    y = law.phi(x)
    ax = axes(ax, 5.2, 3.8)
    calm(ax)
    ax.fill_between(x, x, y, color=SKY, alpha=0.5, lw=0)
    ax.plot(x, x, "--", color=muted(ax), lw=1, label="stop: x")
    ax.plot(x, y, color=BLUE, lw=2, label="search on: Φ(x)")
    _mark_turn(ax, solution, law, box)
    ax.set_xlim(law.low, law.high)
    ax.set_xlabel("x, the best reward in hand" if not law.minimize else "x, the least loss in hand")
    ax.set_ylabel("expected payoff" if not law.minimize else "expected loss and cost")
    amount_axis(ax, "xy", solution.forest.amounts)
    key(ax)
    heading(ax, _title("What searching on is worth", solution, box, state))
    return ax


def _mark_turn(ax: Axes, solution: Solution, law: CappedLaw, box: str | int | None) -> None:
    f, say = solution.forest, solution.forest.amounts.typeset
    x, text = law.index, f"index {say(law.index)}"
    if box is None:
        x, text = f.outside, f"value {say(solution.value, solution.gap)} at {say(f.outside)}"
    if not law.low <= x <= law.high:
        return
    ax.plot([x], law.phi(np.array([x])), "o", color=ink(), ms=6, zorder=4, label=text)


def capped_value(
    solution: Solution,
    box: str | int | None = None,
    state: str | int | float | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """The law of the capped value κ: the probability that it is x or more.

    The shaded area above the outside option is what searching gains over it on average.

    Parameters
    ----------
    solution : Solution
    box : str or int, optional
        This box and all boxes behind it; by default the largest κ of all trees.
    state : optional
        What the parent of the box showed.
    ax : Axes, optional
    """
    law, outside = capped_law(solution, box, state), solution.forest.outside
    say = solution.forest.amounts
    ax = axes(ax, 5.2, 3.4)
    calm(ax, grid="y")
    x, y, how = _steps(law)
    ax.step(x, y, where=how, color=BLUE, lw=2)
    if np.isfinite(outside):
        x = np.minimum(x, outside) if law.minimize else np.maximum(x, outside)
        gain = abs(float(law.phi(np.array([outside]))[0]) - outside)
        ax.fill_between(
            x, y, step=how, color=SKY, alpha=0.6, lw=0, label=f"area: a gain of {number(gain, say)}"
        )
        ax.axvline(outside, color=muted(ax), lw=1, ls="--", label="outside option")
        key(ax)
    ax.set_xlabel("x")
    amount_axis(ax, "x", say)
    ax.set_xlim(law.low, law.high)
    ax.set_ylim(0, 1.04)
    ax.set_ylabel("probability that κ ≤ x" if law.minimize else "probability that κ ≥ x")
    heading(ax, _title("Capped value", solution, box, state))
    return ax


def _steps(law: CappedLaw) -> tuple[FloatArray, FloatArray, Literal["pre", "post"]]:
    """The corners of P(kappa >= x), or of P(kappa <= x) when minimizing."""
    x = np.concatenate([[law.low], law.points, [law.high]])
    if not len(law.points):
        return x, np.zeros(2), "pre"
    if law.minimize:
        return x, np.concatenate([[0.0], law.tails, law.tails[-1:]]), "post"
    return x, np.concatenate([law.tails[:1], law.tails, [0.0]]), "pre"


def payoff(
    policy: Solution | Policy,
    *,
    episodes: int = 100_000,
    rng: np.random.Generator | int = 0,
    ax: Axes | None = None,
) -> Axes:
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
    ax : Axes, optional
    """
    law = payoff_law(policy, episodes=episodes, rng=rng)
    f = policy.forest
    ax = axes(ax, 6.4, 3.4)
    calm(ax, grid="y")
    left, width, which = _bars(law)
    bad = np.bincount(which, law.chances * law.is_worse, len(left))
    good = np.bincount(which, law.chances * ~law.is_worse, len(left))
    fine = f"{percent(1 - law.worse)} no worse than opening nothing"
    ax.bar(left, good, width, bottom=bad, align="edge", color=BLUE, label=fine)
    if law.is_worse.any():
        ax.bar(
            left, bad, width, align="edge", color=ORANGE, hatch="////", edgecolor="white", lw=0,
            label=f"{percent(law.worse)} worse",
        )  # fmt: skip
    ax.set_ylim(0, 1.06 * float((good + bad).max()))
    word = "cost" if f.minimize else "payoff"
    ax.axvline(law.mean, color=ink(), lw=1.2, ls="--", label=f"mean {number(law.mean, f.amounts)}")
    ax.set_xlabel("least loss plus all costs" if f.minimize else "payoff: reward less all costs")
    amount_axis(ax, "x", f.amounts)
    ax.set_ylabel("probability")
    key(ax)
    heading(ax, f"Law of the {word} ({law.how})")
    return ax


def _bars(law: PayoffLaw) -> tuple[FloatArray, float, IntArray]:
    """Left edges and width of bars, and the bar of each value.

    There is one bar for each of a few values. Many values get bars of equal width, one of which
    begins at the outside option.
    """
    low, high = float(law.values[0]), float(law.values[-1])
    if len(law.values) <= _STEMS:
        width = (high - low) / 80 or max(abs(low), 1.0) / 40
        return law.values - width / 2, width, np.arange(len(law.values))
    width = (high - low) / _BINS
    start = low
    if low < law.outside < high:
        start = law.outside - width * np.ceil((law.outside - low) / width)
    which = np.maximum(np.floor((law.values - start) / width), 0).astype(np.int64)
    left = np.asarray(start + width * np.arange(int(which.max()) + 1), np.float64)
    return left, width, which


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
    ax : Axes, optional
    """
    _check(curve, SpendFrontier)
    ax = axes(ax, 5.2, 3.4)
    calm(ax, grid="y")
    ax.plot(curve.spend, curve.reward, color=BLUE, marker="o", markersize=4, label="best policies")
    corner = curve.corners[int(np.count_nonzero(curve.price > 1))]  # slopes fall
    ax.plot(
        [corner.spend], [corner.reward], "o", color=VERMILION, markersize=8,
        label="the best policy at the current costs",
    )  # fmt: skip
    ax.set_xlabel("expected spend", color=ink())
    ax.set_ylabel(f"expected {'loss' if curve.forest.minimize else 'reward'}", color=ink())
    amount_axis(ax, "xy", curve.forest.amounts)
    key(ax)
    return ax


def risk_sweep(sweep: RiskSweep, *, ax: Axes | None = None) -> Axes:
    """The certainty equivalent against the risk tolerance; colors show the first decision.

    Parameters
    ----------
    sweep : RiskSweep
        From :func:`weitzman.questions.risk_sweep`.
    ax : Axes, optional
    """
    _check(sweep, RiskSweep)
    ax = axes(ax, 5.2, 3.4)
    calm(ax, grid="y")
    ranges = sweep.decisions()
    boxes = list(dict.fromkeys(first for _, _, first in ranges))
    shade = dict(zip(boxes, colors(len(boxes)), strict=True))
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
    ax.axhline(
        sweep.solution.value, color=muted(ax), linewidth=0.8, linestyle="--",
        label="expected payoff alone",
    )  # fmt: skip
    ax.set_xscale("log")
    ax.set_xlabel("risk tolerance: careful to bold", color=ink())
    ax.set_ylabel("certainty equivalent", color=ink())
    amount_axis(ax, "xy", sweep.solution.forest.amounts)
    key(ax)
    return ax


def tornado(found: Tornado, *, limit: int = 12, ax: Axes | None = None) -> Axes:
    """How the value changes with each number, with a mark where another box would come first.

    Parameters
    ----------
    found : Tornado
        From :func:`weitzman.questions.tornado`.
    limit : int
        Show at most this many numbers: the numbers with the widest swing.
    ax : Axes, optional
    """
    _check(found, Tornado)
    swings = found.swings[:limit]
    names = [f"{s.number} of {s.box}" if s.box else s.number for s in swings]
    names = [f"{n}, turns" if s.turns else n for n, s in zip(names, swings, strict=True)]
    ax = axes(ax, 5.4, 1.3 + 0.26 * max(len(names), 1))
    calm(ax, grid="x")
    rows = np.arange(len(names))
    low = np.array([s.low for s in swings]) - found.solution.value
    high = np.array([s.high for s in swings]) - found.solution.value
    ax.barh(rows, low, 0.72, left=found.solution.value, color=SKY, label="lowered")
    ax.barh(rows, high, 0.72, left=found.solution.value, color=BLUE, label="raised")
    ax.axvline(found.solution.value, color=ink(), linewidth=0.8, label="as things stand")
    named_rows(ax, names)
    ax.set_xlabel("value", color=ink())
    amount_axis(ax, "x", found.solution.forest.amounts)
    if names:
        key(ax)
    return ax


def _check(source: object, kind: type) -> None:
    if not isinstance(source, kind):
        raise InvalidArgument(
            f"this picture needs a {kind.__name__}, but got a {type(source).__name__}."
        )


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


def curves_of(found: Backtest, measure: str, task: str | None = None) -> list[Curve]:
    """What is drawn: a line for each method, hindsight left out where it is 0 by definition."""
    means = found.means(measure, task)
    order = np.argsort(found.quoted)
    x = np.array(found.quoted)[order]
    drawn = slice(None, -1) if measure == "regret" else slice(None)
    return [
        Curve(method, x, *values[order].T)
        for method, values in zip(found.methods[drawn], means[drawn], strict=True)
    ]


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
    ax : Axes, optional
    """
    lines = curves_of(found, measure, task)
    ax = axes(ax, 7, 4.5)
    calm(ax, "y")
    palette = colors(len(lines))
    for i, line in enumerate(lines):
        hindsight = line.method == found.methods[-1]
        color = ink() if hindsight else palette[i]
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
        ax.set_title(plain(task), loc="left", fontsize="medium", **PLAIN)
    return ax
