r"""Keep the first levels of a forest: as few as possible without losing more than a gap.

Let :math:`L_t` be the value of the forest cut below its first t levels, and :math:`U_t` that of the
cut forest whose boxes at the cut hold, for free, the most that anything below them can come to.
Leaving boxes out never helps and giving something away never hurts, so

.. math:: L_1 \le L_2 \le \dots \le V \le \dots \le U_2 \le U_1 .

First the depth T is doubled until :math:`U_T - L_T` is within the gap. By then :math:`U_T`, or
else :math:`U_{2T}`, is nearly V; compared with :math:`L_t` it tells the least t that it
certifies. Rarely, one level less would do as well.

The same bounds hold with discounting, a risk tolerance and several prizes: see section 18 of the
theory page.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from .._common.arrays import IntArray
from .._common.text import ResultTable, as_html
from ..engine.solution import Solution
from ..engine.solver import solve
from ..errors import InvalidArgument, TooLarge
from ..forest.model import Forest
from .bracket import Bracket, span
from .cutting import Levels, unrolled

_FIRST_LEVELS = 64  # of endless lines, tried first
_MOST_BOXES = 10**7  # of endless lines, written down
_SHARE = 1e-2  # of the gap that the solver may take for itself
_CLOSE = 0.05  # of the gap: an upper bound so close to the value is close enough
_LEAST = 1e-3  # of the gap: losses below it are mostly the error of the solver


@dataclass(frozen=True, slots=True, eq=False)
class Truncation(ResultTable):
    """The first levels of a forest, and how much the others can matter.

    Attributes
    ----------
    forest : Forest
        The boxes kept. They have their old names; where boxes are numbered and the numbers change,
        the old numbers have become names.
    box : (m,) array of int
        The number of each of these boxes in the whole forest. All boxes along an endless line have
        the number of the endless box, and are called ``"<its name>#1"``, ``"...#2"`` and so on.
    depth : int
        Levels kept.
    lower, upper : float
        The value of the whole forest lies between them. Searching the boxes kept earns at least
        ``lower`` (when minimizing, it costs at most ``upper``).
    of : float
        Boxes of the whole forest, as described: copies are not counted. Infinite if a line is
        endless.
    """

    forest: Forest
    box: IntArray
    depth: int
    lower: float
    upper: float
    of: float

    def columns(self) -> dict[str, list[float]]:
        """One row: all of its numbers."""
        return {x: [getattr(self, x)] for x in ("depth", "kept", "of", "lower", "upper", "gap")}

    @property
    def gap(self) -> float:
        """The most that is lost by never looking deeper."""
        return self.upper - self.lower

    @property
    def kept(self) -> int:
        """Boxes kept, as described."""
        return len(self.forest)

    def __repr__(self) -> str:
        of = "endlessly many" if self.of == math.inf else self.of
        return (
            f"Truncation(depth {self.depth}, {self.kept} of {of} boxes, value from "
            f"{self.lower:.10g} to {self.upper:.10g})"
        )

    __str__ = __repr__
    _repr_html_ = as_html


def truncate(forest: Forest, *, gap: float) -> Truncation:
    """Cut lines and trees at a depth that is certified to lose no more than ``gap``.

    The depth is certified, but it need not be the least: rarely, one level less would do as well.

    Parameters
    ----------
    forest : Forest
        Any forest: laws, rewards and costs may change along the way, and copies, minimizing,
        discounting, a risk tolerance and several prizes are allowed. The kept boxes of endless
        lines are written out one by one.
    gap : float
        The most that may be lost, in the unit of the rewards.

    Returns
    -------
    Truncation
        The whole forest, if no smaller depth will do.

    Notes
    -----
    The certificate includes the error of the solver, rounding apart. It takes one look at the
    columns, in time proportional to the number of boxes, and some twenty solves of parts, few of
    them larger than what is kept.

    Examples
    --------
    >>> import numpy as np, weitzman
    >>> law = [[0.7, 0.3], [0.4, 0.6]]
    >>> cost = np.linspace(0.1, 0.2, 100_000)
    >>> long = weitzman.line(([0.5, 0.5], law), rewards=[0, 10], cost=cost, length=100_000)
    >>> cut = weitzman.truncate(long, gap=1e-3)
    >>> cut.depth, cut.kept, cut.of
    (25, 25, 100000)
    >>> cut.lower <= weitzman.solve(long).value <= cut.upper
    True
    """
    if not isinstance(forest, Forest):
        raise InvalidArgument(
            f"truncate needs a Forest, but got a {type(forest).__name__}. Describe one with "
            f"Forest.from_arrays, Builder or line, or read a file with load."
        )
    try:
        fits = 0 < gap < np.inf
    except TypeError:
        fits = False
    if not fits:
        raise InvalidArgument(f"`gap` must be a number above 0, but it is {gap!r}.")
    if forest.endless.any():
        return _cut_endless(forest, gap)
    return _cut(forest, gap)


def _cut_endless(forest: Forest, gap: float) -> Truncation:
    """Write endless lines down until the cut comes before their ends."""
    levels, lines = _FIRST_LEVELS, int(forest.endless.sum())
    while levels * lines <= _MOST_BOXES:
        long, box = unrolled(forest, levels)
        cut = _cut(long, gap)
        if not cut.forest.endless.any():
            return replace(cut, box=box[cut.box], of=math.inf)
        levels *= 4
    raise TooLarge(
        f"a gap of {gap:g} needs more than {_MOST_BOXES:.0e} boxes of the endless lines. Ask for a "
        f"wider gap, or leave them endless: solving needs nothing else.",
        levels * lines,
    )


def _cut(forest: Forest, gap: float) -> Truncation:
    search = _DepthSearch(Levels.of(forest), gap)
    high, best = search.around()
    depth = search.least(high, best)
    low, cut = search.lower(depth), search.levels.at(depth)
    best = max(best, low)  # which differ by rounding if nothing is cut
    ends = (-best, -low) if forest.minimize else (low, best)
    return Truncation(cut.forest(), cut.boxes(), depth, *ends, len(forest))


class _DepthSearch:
    """Bounds by depth, as if maximizing; what was computed once is kept."""

    def __init__(self, levels: Levels, gap: float) -> None:
        self.levels, self.gap = levels, gap
        self._lower: dict[int, float] = {}

    def lower(self, t: int) -> float:
        """A lower bound on the value of the first t levels."""
        if t not in self._lower:
            self._lower[t] = self._bracket(t).lower
        return self._lower[t]

    def around(self) -> tuple[int, float]:
        """A depth within the gap, and an upper bound that is close."""
        height, t, best = self.levels.height, 1, np.inf
        while t < height:
            bracket = self._bracket(t)
            best = min(best, bracket.upper)
            self._lower[t] = bracket.lower
            left = best - bracket.lower
            if left <= _CLOSE * self.gap:
                return t, best
            if left <= self.gap:
                return t, min(best, self._bracket(min(2 * t, height)).upper)
            t *= 2
        bracket = self._bracket(height)
        self._lower[height] = bracket.lower
        return height, min(best, bracket.upper)

    def least(self, high: int, best: float) -> int:
        """The least depth up to ``high`` that is within the gap of the bound.

        Losses mostly fall by a constant factor per level, so a straight line through their
        logarithms tells where to look; every other time the interval is halved, in case they do
        not.
        """
        low = max((t for t in self._lower if best - self._lower[t] > self.gap), default=0)
        high = min((t for t in self._lower if low < t <= high), default=high)
        halve = False
        while high - low > 1:  # then low is not 0: depth 1 was tried first
            middle = (low + high) // 2 if halve else self._aim(low, high, best)
            if best - self.lower(middle) <= self.gap:
                high = middle
            else:
                low = middle
            halve = not halve
        return high

    def _aim(self, low: int, high: int, best: float) -> int:
        """Where the loss should come to the gap, strictly between two depths."""
        above = math.log((best - self._lower[low]) / self.gap)
        under = math.log(self.gap / max(best - self._lower[high], _LEAST * self.gap))
        share = above / (above + under) if above + under > 0 else 0.5
        return min(max(low + math.ceil((high - low) * share), low + 1), high - 1)

    def _bracket(self, t: int) -> Bracket:
        return Bracket(self.levels.at(t), self._solve)

    def _solve(self, forest: Forest) -> Solution:
        wide = span(forest)
        forest = replace(forest, stated_error=0.0)  # the bounds are those of the discrete problem
        return solve(forest, tolerance=_SHARE * self.gap / wide if wide > 0 else 0.0)
