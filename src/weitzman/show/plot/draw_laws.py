"""Pictures of what can come out: capped values, what a search is worth, payoffs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from ..._common.numbers import percent
from ...engine.capped_laws import CappedLaw
from ...engine.indices import Policy
from ...engine.solution import Solution
from ...policy.payoff_laws import PayoffLaw, payoff_law
from .boxes_data import check_solution
from .style import (
    BLUE,
    ORANGE,
    SKY,
    amount_axis,
    axes,
    calm,
    heading,
    ink,
    key,
    muted,
    number,
    plain,
)

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
