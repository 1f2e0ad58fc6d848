r"""Keep the first levels of a forest: as few as possible without losing more than a gap.

Leaving boxes out never helps, so the value of the first t levels rises with t up to the value V of
the whole forest. V is solved once, endless lines and all; then the depth is doubled until no more
than the gap is missing, and bisection finds the least depth. A forest is solved in linear time, so
the certificate costs about as much as the answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from .._common.arrays import IntArray, depths
from .._common.text import ResultTable, as_html
from ..engine.solver import solve
from ..errors import InvalidArgument, TooLarge
from ..forest.columns import runs
from ..forest.model import Forest

_MOST_BOXES = 10**7  # of endless lines, written down
_SHARE = 1e-2  # of the gap that the solver may take for itself


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

    The certificate includes the error of the solver, rounding apart. The depth need not be the
    least: rarely, one level less would do as well.

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
    f, depth = forest, depths(forest.parent)
    height = math.inf if f.endless.any() else int(depth.max()) + 1
    low, high = _enclosed(f, gap)
    lower = {height: low}

    def enough(t: int) -> bool:
        if t not in lower:
            lower[t] = _enclosed(first_levels(f, depth, t)[0], gap)[0]
        return high - lower[t] <= gap

    t, short = 1, 0  # no depth up to `short` will do
    while t < height and not enough(t):
        t, short = 2 * t, t
    t = int(min(t, height))
    while t - short > 1:
        middle = (short + t) // 2
        t, short = (middle, short) if enough(middle) else (t, middle)
    cut, box = (f, np.arange(len(f))) if t == height else first_levels(f, depth, t, named=True)
    high = max(high, lower[t])  # which differ by rounding if nothing is cut
    ends = (-high, -lower[t]) if f.minimize else (lower[t], high)
    return Truncation(cut, box, t, *ends, len(f) if height < math.inf else math.inf)


def first_levels(
    f: Forest, depth: IntArray, t: int, *, named: bool = False
) -> tuple[Forest, IntArray]:
    """The first t levels, endless lines written out, and the old box of each new one.

    With names, numbers that change become names.
    """
    keep = np.flatnonzero(depth < t)
    lines = keep[f.endless[keep]]
    more = t - 1 - depth[lines]  # boxes added to each line
    if more.sum() > _MOST_BOXES:
        raise TooLarge(
            f"so small a gap needs more than {_MOST_BOXES:.0e} boxes of the endless lines. Ask for "
            f"a wider gap, or leave them endless: solving needs nothing else.",
            float(more.sum()),
        )
    box = np.concatenate([keep, np.repeat(lines, more)])
    parent = np.concatenate([
        np.where(f.parent[keep] < 0, -1, np.searchsorted(keep, f.parent[keep])),
        len(keep) - 1 + np.arange(int(more.sum())),
    ])  # fmt: skip
    begins = len(keep) + np.cumsum(more) - more
    parent[begins[more > 0]] = np.searchsorted(keep, lines[more > 0])
    names = None
    if named and len(lines):
        place = np.concatenate([np.ones(len(keep), np.int64), runs(np.full(len(more), 2), more)])
        names = tuple(
            f"{f.name(v)}#{i}" if f.endless[v] else f.name(v)
            for v, i in zip(box.tolist(), place.tolist(), strict=True)
        )
    elif named and (f.names is not None or keep[-1] >= len(keep)):
        names = tuple(map(f.name, keep.tolist()))
    return f.take(box, parent=parent, endless=np.zeros(len(box), bool), names=names), box


def _enclosed(forest: Forest, gap: float) -> tuple[float, float]:
    """Bounds on a value, to be maximized: less what the solver merged, and as solved."""
    wide = span(forest)
    # the bounds are those of the discrete problem
    found = solve(
        replace(forest, stated_error=0.0), tolerance=_SHARE * gap / wide if wide > 0 else 0.0
    )
    value = float(forest.sign * found.value)
    return value - float(found.gap), value


def span(forest: Forest) -> float:
    """The range of the rewards, the outside option among them."""
    levels = np.append(forest.rewards.data, forest.outside)
    levels = levels[np.isfinite(levels)]
    return float(np.ptp(levels)) if len(levels) else 0.0
