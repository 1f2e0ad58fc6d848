"""What solving gives: the value, every index, and how far they can be trusted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import FloatArray, IntArray
from .._common.interruption import interruptible
from .._common.law import Law
from .._common.numbers import counted, number, rough
from .._common.text import ROWS, ResultTable, cell, columns, columns_html
from ..errors import InvalidArgument, InvalidForest, UnknownName
from ..forest.model import Forest
from ..forest.rules import MAX_OUTSIDE
from .indices import Policy, choose
from .plan import Plan
from .small import best_of_roots, is_small, recursion
from .weights import barred, takes_several
from .weights import mean_cost as mean_cost
from .weights import mean_costs as mean_costs
from .weights import mean_durations as mean_durations

_EPS = 1e-12  # breakpoints that move an expectation by less, in units of the range, are merged


class Status(Enum):
    """How exact a solution is. The value of each member is a sentence."""

    EXACT = "Solved exactly, up to rounding."
    CERTIFIED = "Negligible breakpoints were merged; `gap` bounds the error of the value."
    DISCRETIZED = "Distributions were made discrete; `gap` bounds the error of the value."
    COARSE = "`gap` is larger than asked for. Use exact=True."


@dataclass(frozen=True, slots=True, eq=False)
class CappedLaw:
    r"""The law of a capped value: all that matters about searching a box and the boxes below it.

    With x in hand, searching them is worth :math:`\Phi(x) = E \max(x, \kappa)`, the paper's
    *equivalent reward*; the index, its *generalized reservation value*, is the least x with
    :math:`\Phi(x) = x`. In the user's sign.

    Attributes
    ----------
    points : (m,) array, ascending
    tails : (m,) array
        P(kappa >= point); when minimizing P(kappa <= point).
    low, high : float
        A range of x to draw. It contains the outside option and all points, except points that are
        worse than every reward, the outside option and the index.
    index : float
        NaN for several trees at once.
    minimize : bool
    stated_error : float
        That of the forest, which a box in its place has, too.
    """

    points: FloatArray
    tails: FloatArray
    low: float
    high: float
    index: float
    minimize: bool
    stated_error: float = 0.0

    def phi(self, x: ArrayLike) -> Any:
        """E max(x, kappa); when minimizing, E min(x, kappa)."""
        sign = -1.0 if self.minimize else 1.0
        points, tails = self._upward()
        found = sign * Law(points, tails).with_fallback(sign * np.asarray(x, np.float64))
        return found if np.ndim(x) else float(found)

    def _upward(self) -> tuple[FloatArray, FloatArray]:
        """Points and tails to be maximized."""
        if self.minimize:
            return -self.points[::-1], self.tails[::-1]
        return self.points, self.tails

    def box(self, outside: float = 0.0) -> Forest:
        """A free box in place of all boxes: it costs nothing and shows the capped value.

        With any amount x in hand, the free box is worth the same as the boxes that it replaces.
        The missing probability is the chance that nothing can be found.
        """
        if not len(self.points):
            raise InvalidForest("a box needs a state with a reward, but nothing can be found here.")
        sign = -1.0 if self.minimize else 1.0
        points, tails = self._upward()
        chances = np.append(1.0 - tails[0], -np.diff(tails, append=0.0))
        rewards = sign * np.append(-np.inf, points)
        some = chances > 0
        return Forest.from_arrays(
            parent=[-1], cost=[0.0], rewards=[rewards[some]], law=[chances[some]],
            outside=outside, minimize=self.minimize, stated_error=self.stated_error,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Solution(ResultTable):
    """The optimal value and the index of every box.

    The optimal policy: open the available box with the highest index while that index exceeds the
    best reward so far (the outside option at first); otherwise stop and take it. When minimizing,
    read lowest for highest and below for exceeds.

    Attributes
    ----------
    forest : Forest
    value : float
        Expected payoff of the optimal policy.
    gap : float
        Bound on the error of ``value``. The true value is never better: it lies in
        [value - gap, value] (when minimizing: [value, value + gap]). 0 when the status is EXACT.
        When distributions were made discrete, the gap includes their stated error, and the true
        value may lie on either side.
    status : Status
    breakpoints : int
        The work done: total number of breakpoints that were carried through the recursion.
    """

    forest: Forest
    value: float
    gap: float
    status: Status
    breakpoints: int
    _class_of: IntArray
    _start: IntArray
    _index: FloatArray

    def index(self, box: str | int, state: str | int | float | None = None) -> float:
        """The index of a box after its parent showed ``state`` (omitted for a root).

        The paper calls it the *generalized reservation value* (GRV), Weitzman the reservation
        price.

        Parameters
        ----------
        box : str or int
            Name or number of the box.
        state : str or int, optional
            Name or number of the state of its parent.

        Examples
        --------
        >>> import weitzman
        >>> weitzman.solve(weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)).index(0)
        8.0
        """
        v = self.forest.box(box)
        up = int(self.forest.parent[v])
        if up < 0:
            if state is not None:
                raise UnknownName(
                    f"box {self.forest.name(v)!r} is a root: its index depends on no state. Leave "
                    f"the state out."
                )
            return float(self.indices(v)[0])
        if state is None:
            known = ", ".join(self.forest.states(up)[:8])
            raise UnknownName(
                f"the index of box {self.forest.name(v)!r} depends on the state of its parent "
                f"{self.forest.name(up)!r}. Give one of {known}."
            )
        return float(self.indices(v)[self.forest.state(up, state)])

    def indices(self, box: str | int) -> FloatArray:
        """The indices of a box for all states of its parent (one entry for a root)."""
        c = self._class_of[self.forest.box(box)]
        return self._index[self._start[c] : self._start[c + 1]]

    def capped_law(
        self, box: str | int | None = None, state: str | int | float | None = None
    ) -> CappedLaw:
        """The law of the capped value of a box after a state of its parent.

        Parameters
        ----------
        box : str or int, optional
            Without it, the largest capped value of all roots.
        state : str or int, optional
            What the parent of the box showed; left out for a root.

        Examples
        --------
        >>> import weitzman
        >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
        >>> law = weitzman.solve(chest).capped_law(0)
        >>> law.points.tolist(), law.tails.tolist(), law.index
        ([0.0, 8.0], [1.0, 0.5], 8.0)
        """
        f = self.forest
        if f.risk_tolerance is not None or (takes_several(f) and box is None):
            f.must_be_plain("the law of a capped value")
        index = np.nan if box is None else self.index(box, state)
        part = f if box is None else f.subtree(box, state)
        return _capped_law(part, f, index, self._index)

    def phi(
        self, x: ArrayLike, box: str | int | None = None, state: str | int | float | None = None
    ) -> Any:
        r"""The value of holding x and searching a box and all below it optimally.

        The paper's *equivalent reward* :math:`\Phi(x, s, i)`: it exceeds x if and only if x is
        below the index. One copy of the box counts.

        Parameters
        ----------
        x : number or array
            Amounts in hand.
        box, state
            As in :meth:`capped_law`. Without a box, all trees of the forest are searched.

        Examples
        --------
        >>> import weitzman
        >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
        >>> solution = weitzman.solve(chest)
        >>> solution.phi(2, 0), solution.phi([0, 8, 9], 0).tolist()
        (5.0, [4.0, 8.0, 9.0])
        """
        return self.capped_law(box, state).phi(x)

    def index_columns(self) -> tuple[IntArray, FloatArray]:
        """All indices as two arrays: where those of each box start, and the indices."""
        return self._start[self._class_of], self._index

    def policy(self) -> Policy:
        """The optimal policy: what to open next, whatever has been seen.

        Examples
        --------
        >>> import weitzman
        >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, names=["chest"])
        >>> search = weitzman.Search(weitzman.solve(chest))
        >>> search.ask()
        'chest'
        """
        return Policy.of(self.forest, *self.index_columns())

    @property
    def first_box(self) -> str | None:
        """The name of the box to open first, or None if it is best to open nothing."""
        f = self.forest
        sign = f.sign
        index = sign * self._index[self._start[self._class_of[f.roots]]]
        index = np.where(barred(f)[f.roots], -np.inf, index)
        place = choose(index, sign * f.outside)
        return None if place is None else f.name(int(f.roots[place]))

    def columns(self, limit: int | None = None) -> dict[str, list[Any]]:
        """One entry for each box and state of its parent: box, parent, state, cost, index."""
        f = self.forest
        out: dict[str, list[Any]] = {k: [] for k in ("box", "parent", "state", "cost", "index")}
        costs, start = mean_costs(f)
        for v in range(len(f)):
            up = int(f.parent[v])
            states: tuple[str | None, ...] = (None,) if up < 0 else f.states(up)
            for s, (name, index) in enumerate(zip(states, self.indices(v), strict=True)):
                if limit is not None and len(out["box"]) == limit:
                    return out
                out["box"].append(f.name(v))
                out["parent"].append(None if up < 0 else f.name(up))
                out["state"].append(name)
                out["cost"].append(float(costs[start[v] + s]))
                out["index"].append(float(index))
        return out

    def table(self, limit: int = 40) -> str:
        """The indices as text, at most ``limit`` lines."""
        head = f"value {number(self.value)}   gap {rough(self.gap)}   {self.status.value}"
        return "\n".join([head, *self.index_lines(limit)])

    def index_lines(self, limit: int | None = None, *, hint: str = "") -> Iterator[str]:
        """The indices as lines of text, ``limit`` of them; where some are left out, a hint."""
        c, amounts = self.columns(limit), self.forest.amounts
        after = [
            "" if p is None else f"{cell(p)} = {cell(s)}"
            for p, s in zip(c["parent"], c["state"], strict=True)
        ]
        numbers = [[amounts(x) for x in c[key]] for key in ("cost", "index")]
        rows = zip(map(cell, c["box"]), after, *numbers, strict=True)
        yield from columns([("box", "after", "cost", "index"), *rows], right=2)
        if more := self._rows() - len(after):
            yield f"... and {counted(more, 'more row')}{hint}"

    def _rows(self) -> int:
        return int(np.diff(self._start)[self._class_of].sum())

    def __repr__(self) -> str:
        return f"Solution(value={self.value:.10g}, gap={self.gap:.2g}, {self.status.name})"

    def _repr_html_(self) -> str:
        say, c = self.forest.amounts, self.columns(ROWS)
        c |= {key: [say(x) for x in c[key]] for key in ("cost", "index")}
        value = f"value {say(self.value, self.gap)}, open first {self.first_box or 'nothing'}"
        return columns_html(f"{value}. {self.status.value}", c, self._rows())


def as_policy(policy: object, what: str) -> Policy:
    """The policy itself, or the policy of a solution; an error for anything else."""
    if isinstance(policy, Solution):
        return policy.policy()
    if isinstance(policy, Policy):
        return policy
    raise InvalidArgument(
        f"{what} needs a solution or a policy, but got a {type(policy).__name__}. "
        f"{hint(policy, 'Call solve(forest) first.')}"
    )


def hint(thing: object, usual: str) -> str:
    """What to do with an object of another type: its own ``hint``, or the default."""
    own = getattr(type(thing), "hint", None)
    return own if isinstance(own, str) else usual


def _capped_law(part: Forest, whole: Forest, index: float, indices: FloatArray) -> CappedLaw:
    """The law for all roots of ``part``, which was cut out of ``whole`` with these indices."""
    sign = whole.sign
    rewards = [part.rewards[int(r)][0] for r in np.unique(part.reward)]
    seen = sign * np.concatenate([*rewards, [whole.outside, index]])
    seen = seen[np.isfinite(seen)]
    below = sign * indices  # no capped value is lower than all of these
    marks = np.concatenate([seen, below[np.abs(below) < MAX_OUTSIDE / 4]])
    wide = float(np.ptp(marks)) or abs(float(marks[0])) or 1.0
    if is_small(part):
        law = best_of_roots(part, recursion(part))
        points, tails = law.points, law.tails[0]
    else:
        plan = Plan.of(part.changed(outside=sign * (float(marks.min()) - wide)))
        points, tails = interruptible(lambda: plan.run(_EPS * plan.span).tail)
    ends = np.concatenate([np.maximum(points, seen.min()), seen[seen == sign * whole.outside]])
    ends = ends if len(ends) else seen
    room = 0.06 * float(np.ptp(ends)) or 0.06 * wide
    low, high = float(ends.min()) - room, float(ends.max()) + room
    if whole.minimize:
        return CappedLaw(-points[::-1], tails[::-1], -high, -low, index, True, whole.stated_error)
    return CappedLaw(points, tails, low, high, index, False, whole.stated_error)
