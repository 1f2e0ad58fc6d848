r"""Keep the first levels of a forest: as few as possible without losing more than a gap.

Let :math:`L_t` be the value of the forest cut below its first t levels, and :math:`U_t` that of the
cut forest whose boxes at the cut hold, for free, the most that anything below them can come to.
Leaving boxes out never helps and giving something away never hurts, so

.. math:: L_1 \le L_2 \le \dots \le V \le \dots \le U_2 \le U_1 .

First the depth T is doubled until :math:`U_T - L_T` is within the gap. By then :math:`U_T`, or
else :math:`U_{2T}`, is nearly V; compared with :math:`L_t` it shows the least t that it certifies.

The ceiling on what lies below comes from one look at the columns. Boxes are of one *kind* if they
share a law and a row of rewards. Forests that are worth cutting have few kinds (a static line has
one), so the ceiling costs little, however long the lines are; :mod:`weitzman._kernels.ceilings` has
the proof. Discounting, a risk tolerance and several prizes: see section 18 of the theory page.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .._common.arrays import FloatArray, IntArray, depths, frozen
from .._common.text import ResultTable, as_html
from .._kernels import ceilings, structure
from ..engine.solver import solve
from ..engine.weights import mean_costs
from ..errors import InvalidArgument, TooLarge
from ..forest.columns import Pool, intern_keys, runs
from ..forest.model import Forest
from ..forest.rules import MAX_AMOUNT

_ROUNDS = 10_000  # of lowering the ceiling, at most: every round ends with valid bounds
_WORK = 5e7  # products of all rounds together: some tenths of a second
_STEADY = 1e-9  # stop when a round lowers the bounds by less, as a share of the range

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
    lines = int(forest.endless.sum())
    if not lines:
        return _cut(forest, gap)
    levels = _FIRST_LEVELS  # written down, and more of them until the cut comes before the ends
    while levels * lines <= _MOST_BOXES:
        long, box = _unrolled(forest, levels)
        cut = _cut(long, gap)
        if not cut.forest.endless.any():
            return replace(cut, box=box[cut.box], of=math.inf)
        levels *= 4
    raise TooLarge(
        f"a gap of {gap:g} needs more than {_MOST_BOXES:.0e} boxes of the endless lines. Ask for a "
        f"wider gap, or leave them endless: solving needs nothing else.",
        levels * lines,
    )


def _unrolled(f: Forest, levels: int) -> tuple[Forest, IntArray]:
    """Endless lines written down to a number of levels, and the old box of each new one."""
    lines = np.flatnonzero(f.endless)
    depth = depths(f.parent)
    more = np.maximum(levels - depth[lines], 0)  # boxes added to each line
    box = np.concatenate([np.arange(len(f)), np.repeat(lines, more)])
    last = len(f) + np.cumsum(more) - 1
    parent = np.concatenate([f.parent, np.arange(len(f), len(box)) - 1])
    parent[(last - more + 1)[more > 0]] = lines[more > 0]
    endless = np.zeros(len(box), bool)
    endless[np.where(more > 0, last, lines)] = True
    place = np.concatenate([np.ones(len(f), np.int64), runs(np.full(len(more), 2), more)])
    names = tuple(
        f"{f.name(v)}#{i}" if f.endless[v] else f.name(v)
        for v, i in zip(box.tolist(), place.tolist(), strict=True)
    )
    return f.take(box, parent=parent, endless=endless, names=names), box


def _cut(forest: Forest, gap: float) -> Truncation:
    levels = Levels.of(forest)
    search = _DepthSearch(levels, gap)
    high, best = search.around()
    depth = search.least(high, best)
    low = search.lower(depth)
    best = max(best, low)  # which differ by rounding if nothing is cut
    ends = (-best, -low) if forest.minimize else (low, best)
    return Truncation(levels.named(depth), levels.boxes(depth), depth, *ends, len(forest))


class _DepthSearch:
    """Bounds by depth, as if maximizing; what was computed once is kept."""

    def __init__(self, levels: Levels, gap: float) -> None:
        self.levels, self.gap = levels, gap
        self._lower: dict[int, tuple[float, float]] = {}  # the bound, and the value as solved

    def lower(self, t: int) -> float:
        """A lower bound on the value of the first t levels."""
        if t not in self._lower:
            self._lower[t] = self._solve(self.levels.first(t))
        return self._lower[t][0]

    def upper(self, t: int) -> float:
        """An upper bound on the value of the whole forest, from its first t levels."""
        if (raised := self.levels.raised(t)) is not None:
            return self._solve(raised)[1]
        self.lower(t)
        return self._lower[t][1]

    def around(self) -> tuple[int, float]:
        """A depth within the gap, and an upper bound that is close."""
        height, t, best = self.levels.height, 1, np.inf
        while True:
            best = min(best, self.upper(t))
            left, after = best - self.lower(t), min(2 * t, height)
            if t == height or left <= _CLOSE * self.gap:
                return t, best
            if left <= self.gap:
                return t, min(best, self.upper(after))
            t = after

    def least(self, high: int, best: float) -> int:
        """The least depth up to ``high`` that is within the gap of the bound."""
        # losses mostly fall by a constant factor per level, so a straight line through their
        # logarithms shows where to look; every other time the interval is halved
        low = max((t for t in self._lower if best - self.lower(t) > self.gap), default=0)
        high = min((t for t in self._lower if low < t <= high), default=high)
        halve = False
        while high - low > 1:  # then low is not 0: depth 1 was tried first
            middle = (low + high) // 2
            if not halve:  # where the loss should come to the gap
                above = math.log((best - self.lower(low)) / self.gap)
                under = math.log(self.gap / max(best - self.lower(high), _LEAST * self.gap))
                share = above / (above + under) if above + under > 0 else 0.5
                middle = min(max(low + math.ceil((high - low) * share), low + 1), high - 1)
            if best - self.lower(middle) <= self.gap:
                high = middle
            else:
                low = middle
            halve = not halve
        return high

    def _solve(self, forest: Forest) -> tuple[float, float]:
        """The value less what the solver merged, and the value, to be maximized."""
        wide = span(forest)
        forest = replace(forest, stated_error=0.0)  # the bounds are those of the discrete problem
        found = solve(forest, tolerance=_SHARE * self.gap / wide if wide > 0 else 0.0)
        value = float(forest.sign * found.value)
        return value - float(found.gap), value


def span(forest: Forest) -> float:
    """The range of the rewards, the outside option among them."""
    levels = np.append(forest.rewards.data, forest.outside)
    levels = levels[np.isfinite(levels)]
    return float(np.ptp(levels)) if len(levels) else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """A forest with what is needed to cut it at any depth.

    No capped value below a box of kind q that shows y exceeds ``below[at[q] + y]``, as if
    maximizing.
    """

    forest: Forest
    depth: IntArray  # boxes above each box
    childless: NDArray[np.bool_]  # whether nothing follows a box
    kind: IntArray  # of each box
    reward: IntArray  # row of rewards of each kind
    below: FloatArray
    at: IntArray

    @classmethod
    def of(cls, forest: Forest) -> Levels:
        f = forest
        order, child, _ = structure.postorder(f.parent)
        kind, law, reward = _kinds(f, order)
        start, at = _starts(f.laws.shape[law, 0]), _starts(f.laws.shape[law, 1])
        cost, (every, first) = np.full(start[-1], np.inf), mean_costs(f)
        sizes = np.diff(first)
        np.minimum.at(cost, runs(start[kind], sizes), every)
        # the kinds that follow kind q: edge[edge_at[q]:edge_at[q + 1]]
        some, kinds = f.parent >= 0, len(law)
        again = np.unique(kind[f.endless])  # an endless box follows itself
        keys = kind[f.parent[some]] * kinds + kind[some]
        ahead, edge = np.divmod(np.unique(np.append(keys, again * (kinds + 1))), kinds)
        edge_at = _starts(np.bincount(ahead, minlength=kinds))
        rewards = -f.rewards.data if f.minimize else f.rewards.data
        finite = rewards[np.isfinite(rewards)]
        index = np.full(start[-1], finite.max(initial=-np.inf))
        below, wide = np.empty(at[-1]), float(np.ptp(finite)) if len(finite) else 0.0
        work = float(f.laws.shape[law].prod(axis=1).sum() + len(edge))
        circles = (edge >= np.repeat(np.arange(len(law)), np.diff(edge_at))).any()
        rounds = max(1, int(min(_ROUNDS, _WORK / work))) if circles else 1
        ceilings.settle(
            f.laws.matrices, f.rewards.matrices._replace(data=frozen(rewards)),
            ceilings.Kinds(law, reward, cost, start, edge_at, edge),
            ceilings.Ceilings(index, below, at), rounds, _STEADY * wide,
        )  # fmt: skip
        depth = depths(f.parent)
        return cls(f, depth, child < 0, kind, reward, below, at)

    @property
    def height(self) -> int:
        """Boxes on the longest way down."""
        return int(self.depth.max()) + 1

    def boxes(self, t: int) -> IntArray:
        """Numbers of the boxes on the first t levels."""
        return np.flatnonzero(self.depth < t)

    def named(self, t: int) -> Forest:
        """The first t levels with their names; numbers that change become names."""
        f, keep = self.forest, self.boxes(t)
        if len(keep) == len(f):
            return f
        if f.names is None and keep[-1] >= len(keep):
            return f.take(keep, names=tuple(map(str, keep.tolist())))
        return f.take(keep)

    def first(self, t: int) -> Forest:
        """The first t levels, without names: worth at most as much as the whole forest."""
        keep = self.boxes(t)
        return self.forest if len(keep) == len(self.forest) else self.forest.take(keep, names=None)

    def raised(self, t: int) -> Forest | None:
        """The first t levels, raised to be worth at least as much as the whole; None: the whole.

        A box at the cut receives, for free, the ceiling of all that lies below it. With
        discounting the ceiling is at least 0, because waiting also shrinks losses.
        """
        f, keep = self.forest, self.boxes(t)
        if len(keep) == len(f):
            return None
        last = (self.depth[keep] == t - 1) & ~self.childless[keep]
        row = np.where(last, len(f.rewards) + self.kind[keep], f.reward[keep])
        rows, number = np.unique(row, return_inverse=True)
        plain = int(np.searchsorted(rows, len(f.rewards)))
        kinds = rows[plain:] - len(f.rewards)
        own = f.rewards.take(np.concatenate([rows[:plain], self.reward[kinds]]))
        sign, higher = f.sign, own.data.copy()
        at, size = own.start[plain], own.shape[plain:, 1]
        below = self.below[runs(self.at[kinds], size)]
        if f.factors is not None:
            below = np.maximum(below, 0.0)
        # A forest holds no amounts below this one, and a higher number is still an upper bound.
        below = np.where(np.isfinite(below), np.maximum(below, -MAX_AMOUNT), below)
        higher[at:] = sign * np.maximum(sign * higher[at:], below)
        more = Pool(higher, own.start, own.shape)
        return f.take(keep, names=None, state_names=(), reward=number, rewards=more)


def _kinds(forest: Forest, order: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The kind of each box, and law and rewards of each kind; kinds come in the order of boxes."""
    law, reward = forest.law[order], forest.reward[order]
    new = np.flatnonzero((np.diff(law) != 0) | (np.diff(reward) != 0)) + 1
    run = np.concatenate([[0], new])  # most boxes are of the kind of the one before
    number, first = intern_keys(np.column_stack([law[run], reward[run]]))
    kind = np.empty(len(order), np.int64)
    kind[order] = np.repeat(number, np.diff(np.append(run, len(order))))
    return kind, law[run[first]], reward[run[first]]


def _starts(sizes: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
