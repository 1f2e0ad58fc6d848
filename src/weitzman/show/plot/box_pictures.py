"""Pictures with one row for each box or strategy, and their numbers, the most telling first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._common.arrays import FloatArray, IntArray, check_counts
from ..._common.numbers import percent, rough
from ...engine.evaluation import Evaluation, evaluate
from ...engine.indices import Policy
from ...engine.solution import Solution
from ...engine.what_if import break_even as break_even_costs
from ...errors import InvalidArgument
from ...forest.model import Forest
from ...policy.payoff_laws import state_called
from ...policy.simulation import two_sided
from ...strategies.comparison import Comparison
from .style import (
    BLUE,
    PLAIN,
    SKY,
    VERMILION,
    amount_axis,
    axes,
    calm,
    ink,
    key,
    muted,
    named_rows,
    number,
)  # fmt: skip

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def check_solution(solution: object, what: str) -> None:
    """Refuse anything but a solution with a clear message: most pictures need a solution."""
    if not isinstance(solution, Solution):
        raise InvalidArgument(
            f"{what} needs a solution, but got a {type(solution).__name__}. Call solve(forest) "
            f"first."
        )


@dataclass(frozen=True, slots=True, eq=False)
class Openings:
    """How often boxes are opened and chosen, the most often opened first.

    Attributes
    ----------
    names : list of str
    opened, chosen : (m,) arrays of float
    outside : float
        Probability that the outside option is taken.
    boxes : int
        Boxes in all, as described.
    rest_opened, rest_chosen : float
        Sums over the boxes that are left out.
    copies : bool
        Whether boxes have copies, so that ``opened`` are numbers rather than probabilities.
    """

    names: list[str]
    opened: FloatArray
    chosen: FloatArray
    outside: float
    boxes: int
    rest_opened: float
    rest_chosen: float
    copies: bool


def openings_data(source: Evaluation | Solution | Policy, limit: int = 25) -> Openings:
    """Opening and winning probabilities of the boxes that are opened most often.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> d = openings_data(weitzman.solve(chest))
    >>> d.opened.tolist(), d.chosen.tolist(), d.outside
    ([1.0], [0.5], 0.5)
    """
    check_counts(limit=limit)
    e = source if isinstance(source, Evaluation) else evaluate(source)
    f, wins = e.forest, e.wins
    top = np.argsort(-e.opened, kind="stable")[:limit]
    return Openings(
        [f.name(int(v)) for v in top], e.opened[top], wins[top], e.outside, len(f),
        _rest(e.opened, top), _rest(wins, top), bool(f.count.max() > 1),
    )  # fmt: skip


def _rest(x: FloatArray, top: IntArray) -> float:
    left = np.ones(len(x), bool)
    left[top] = False
    return float(x[left].sum())


@dataclass(frozen=True, slots=True, eq=False)
class Strategies:
    """What strategies earn, in the order of the comparison.

    Attributes
    ----------
    names, how : lists of str
    value, error, bound : (m,) arrays of float
        Expected payoff; half of its 95 % confidence interval; what no strategy of its kind can
        exceed, NaN where the value itself is the bound.
    nothing : float
        What opening nothing earns.
    """

    names: list[str]
    how: list[str]
    value: FloatArray
    error: FloatArray
    bound: FloatArray
    nothing: float


def strategies_data(comparison: Comparison) -> Strategies:
    """Values of strategies side by side."""
    if not isinstance(comparison, Comparison):
        raise InvalidArgument(
            f"the picture of strategies needs the result of compare(forest), but got a "
            f"{type(comparison).__name__}."
        )
    c = comparison.columns()
    value, bound = np.array(c["value"]), np.array(c["bound"])
    bound[np.isclose(bound, value, rtol=1e-9)] = np.nan
    return Strategies(
        c["name"], c["how"], value, two_sided(0.95) * np.array(c["error"]), bound,
        comparison.forest.outside,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class BreakEvens:
    """Costs at which decisions change, for the boxes that are opened most often.

    Attributes
    ----------
    names : list of str
        The name of a child includes the state of its parent that most often leads to the child.
    cost, opened_below : (m,) arrays of float
        What opening costs now, and the cost above which opening never pays.
    first_below : (m,) array of float
        The cost at which the first decision changes: infinity if no cost changes the decision, NaN
        where the search would not begin in this tree even if the box were free.
    boxes : int
        Boxes in all, as described.
    """

    names: list[str]
    cost: FloatArray
    opened_below: FloatArray
    first_below: FloatArray
    boxes: int


def break_even_data(solution: Solution, limit: int = 12) -> BreakEvens:
    """Break-even costs of the boxes that are opened most often.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> break_even_data(weitzman.solve(chest)).opened_below.tolist()
    [5.0]
    """
    check_solution(solution, "the picture of break-even costs")
    check_counts(limit=limit)
    f, e = solution.forest, evaluate(solution)
    top = np.argsort(-e.opened, kind="stable")[:limit].tolist()
    states = [int(np.argmax(e.opened_after[v])) for v in top]
    found = [
        break_even_costs(
            solution, v, None if f.parent[v] < 0 else state_called(f, int(f.parent[v]), s)
        )
        for v, s in zip(top, states, strict=True)
    ]
    return BreakEvens(
        [_after(f, v, s) for v, s in zip(top, states, strict=True)],
        np.array([b.cost for b in found]),
        np.array([b.opened_below for b in found]),
        np.array([np.nan if b.first_below is None else b.first_below for b in found]),
        len(f),
    )


def _after(f: Forest, box: int, state: int) -> str:
    """The name of a box, with the state of its parent."""
    up = int(f.parent[box])
    return f.name(box) if up < 0 else f"{f.name(box)} after {f.states(up)[state]}"


_TAKE_NOTHING = "(outside option)"
_FAR = 4.0  # times the gain of the optimal policy; worse strategies are not drawn to scale


def _size(names: list[str]) -> tuple[float, float]:
    """Inches for rows with names. Long names make the figure wider, not the picture smaller."""
    return 4.9 + 0.085 * min(40, max(map(len, names))), 1.3 + 0.24 * len(names)


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
    ax : Axes, optional
    """
    d = openings_data(source, limit)
    names = [*d.names, _TAKE_NOTHING] if d.outside > 0 else d.names
    chosen = np.append(d.chosen, d.outside) if d.outside > 0 else d.chosen
    ax = axes(ax, *_size(names))
    calm(ax, grid="x")
    rows = np.arange(len(names))
    ax.barh(rows[: len(d.opened)], d.opened, 0.72, color=SKY, label="opened")
    ax.barh(rows, chosen, 0.3, color=BLUE, label="chosen in the end")
    named_rows(ax, names)
    longest = max(float(d.opened.max()), float(chosen.max()))
    ax.set_xlim(0, max(longest * 1.12, 1e-12))
    for y, p in enumerate(d.opened):
        text = number(p) if d.copies else percent(p)
        ax.annotate(
            text, (p, y), (4, 0), textcoords="offset points", va="center", fontsize="small",
            color=muted(ax),
        )  # fmt: skip
    what = "copies, on average" if d.copies else "probability"
    ax.set_xlabel(what + _left_out(d.boxes, len(d.names), d.rest_opened))
    key(ax)
    return ax


def _left_out(boxes: int, shown: int, opened: float) -> str:
    if boxes == shown:
        return ""
    often = "<0.01" if 0 < opened < 0.01 else rough(opened)
    return f"\n{shown} of {boxes:,} boxes; the others are opened {often} times in all"


def strategies(comparison: Comparison, *, ax: Axes | None = None) -> Axes:
    """What strategies earn, from :func:`weitzman.compare`.

    A dot is the expected payoff, with a 95 % confidence interval where it was simulated. A triangle
    at the edge stands for a payoff far beyond the axis, and its number is written beside it. Where
    only a bound is known, a vertical mark shows the most that this kind of strategy can earn.

    Parameters
    ----------
    comparison : Comparison
    ax : Axes, optional
    """
    d = strategies_data(comparison)
    ax = axes(ax, *_size(d.names))
    calm(ax, grid="x")
    rows = np.arange(len(d.names))
    known = d.value[np.isfinite(d.value)]  # without an outside option, nothing is worth −∞
    start = d.nothing if np.isfinite(d.nothing) else float(known.min())
    colors: list[Any] = [BLUE, *[muted(ax)] * (len(rows) - 1)]
    reach = _FAR * abs(d.value[0] - start) or np.inf
    shown = np.clip(
        d.value, start - reach, start + reach
    )  # a hopeless strategy must not hide the rest
    ax.hlines(rows, start, shown, color=colors, lw=[3.0, *[1.2] * (len(rows) - 1)])
    error = np.where(shown == d.value, d.error, np.nan)
    what = "expected loss and cost" if comparison.forest.minimize else "expected payoff"
    sides = ((shown == d.value, "o", what), (shown > d.value, "<", "far lower"))
    for side, marker, label in (*sides, (shown < d.value, ">", "far higher")):
        of = [c for c, here in zip(colors, side, strict=True) if here]
        if of:
            ax.scatter(
                shown[side], rows[side], s=46, c=of, marker=marker, zorder=3, clip_on=False,
                label=label,
            )  # fmt: skip
    if (error > 0).any():
        ax.errorbar(shown, rows, xerr=error, fmt="none", ecolor=ink(), lw=1, label="95% interval")
    if np.isfinite(d.bound).any():
        ax.scatter(
            d.bound, rows, s=90, color=ink(), marker="|", label="most that this kind can earn"
            if not comparison.forest.minimize else "least that this kind can cost",
        )  # fmt: skip
    named_rows(ax, d.names)
    say, errors = comparison.forest.amounts, np.nan_to_num(d.error)
    for y, (value, wide) in enumerate(zip(d.value, errors, strict=True)):  # in a column of its own
        ax.text(
            1.01, y, number(value, say, wide), transform=ax.get_yaxis_transform(), va="center",
            fontsize="small",
        )  # fmt: skip
    ax.set_xlabel(what)
    amount_axis(ax, "x", say)
    key(ax)
    return ax


def break_even(solution: Solution, *, limit: int = 12, ax: Axes | None = None) -> Axes:
    """What boxes cost, and at which costs decisions would change.

    A dot is the cost now. The bar ends where the box would never be worth opening; a triangle
    marks the cost at which the search would begin elsewhere.

    Parameters
    ----------
    solution : Solution
    limit : int
        Show at most this many boxes: the boxes opened most often.
    ax : Axes, optional
    """
    d = break_even_data(solution, limit)
    ax = axes(ax, *_size(d.names))
    calm(ax, grid="x")
    rows = np.arange(len(d.names))
    known = np.concatenate([d.cost, d.opened_below, d.first_below])
    known = known[np.isfinite(known)]
    right = 1.08 * float(known.max()) or 1.0
    pays = d.cost < d.opened_below
    ax.barh(rows, np.minimum(d.opened_below, right), 0.5, color=SKY, label="worth opening")
    if pays.any():
        now: dict[str, Any] = {"color": BLUE, "label": "cost now", "clip_on": False}
        ax.scatter(d.cost[pays], rows[pays], s=36, zorder=3, **now)
    if not pays.all():
        late: dict[str, Any] = {"marker": "X", "color": VERMILION, "label": "too expensive"}
        ax.scatter(d.cost[~pays], rows[~pays], s=42, zorder=3, clip_on=False, **late)
    if np.isfinite(d.first_below).any():
        turn: dict[str, Any] = {
            "marker": "v",
            "facecolors": "none",
            "label": "begin elsewhere from here on",
        }
        ax.scatter(d.first_below, rows, s=40, edgecolors=ink(), zorder=3, clip_on=False, **turn)
    named_rows(ax, d.names)
    ax.set_xlim(0, right)
    some = "" if d.boxes == len(rows) else f"\nthe {len(rows)} most often opened of {d.boxes:,}"
    ax.set_xlabel("cost of opening")
    amount_axis(ax, "x", solution.forest.amounts)
    ax.set_xlabel(ax.get_xlabel() + some, **PLAIN)
    key(ax)
    return ax
