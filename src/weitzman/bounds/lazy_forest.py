"""Forests whose boxes come from a function: endless forests, or too large to be written down."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import check_amounts, check_counts
from .._common.numbers import about, ends
from .._common.text import as_html
from ..engine.indices import Policy
from ..engine.plan import Progress, check_threads
from ..engine.solution import Solution
from ..errors import InvalidArgument, UnknownName
from ..forest.columns import default_outside
from .index_bounds import Bound, GivenBound, StaticBound
from .lazy_tree import Expand, LazyTree, Node
from .refining import Closed, Ending, InPlay, Situation, refine


@dataclass(frozen=True, slots=True, eq=False)
class LazySolution:
    """What is known about a lazy forest once some of its nodes have been expanded.

    Attributes
    ----------
    lower, upper : float
        The optimal value lies between them.
    first_box : str or None
        The name of the box to open first; None: open nothing.
    index : (float, float)
        Bounds on its index; of the outside option itself if nothing is to be opened.
    regret : float
        Opening ``first_box`` and continuing optimally falls short of the optimum by at most this.
    proven : bool
        Whether ``regret`` is 0: no expansion can change the first decision.
    ending : Ending
        Why no more nodes were expanded.
    expanded : int
        Nodes whose children are in play.
    solution : Solution
        Of the finite forest in play. Its policy earns at least ``lower`` (when minimizing, loses
        at most ``upper``) although it ignores all other nodes.
    history : list
        (expanded, lower, upper) after each round.
    """

    hint: ClassVar[str] = (
        "Of a LazySolution, take the finite part that was looked at: `found.solution`. Its policy "
        "earns at least the lower bound."
    )

    lower: float
    upper: float
    first_box: str | None
    index: tuple[float, float]
    regret: float
    proven: bool
    ending: Ending
    expanded: int
    solution: Solution
    history: list[tuple[int, float, float]]

    @property
    def gap(self) -> float:
        """``upper - lower``."""
        return self.upper - self.lower

    def policy(self) -> Policy:
        """The optimal policy of the finite forest in play."""
        return self.solution.policy()

    def __str__(self) -> str:
        what = "open nothing" if self.first_box is None else f"open {self.first_box} first"
        sure = "proven" if self.proven else f"may lose up to {about(self.regret)}"
        low, high = ends(self.lower, self.upper)
        return (
            f"value from {low} to {high}; {what} ({sure}); "
            f"{self.expanded} nodes expanded. {self.ending.value}"
        )

    def __repr__(self) -> str:
        return (
            f"LazySolution(lower={self.lower:.9g}, upper={self.upper:.9g}, "
            f"first_box={self.first_box!r})"
        )

    _repr_html_ = as_html


class LazyForest:
    """Boxes on a forest that is not written down: children come from a function, on demand.

    The boxes below a node are needed only if they can change the answer. Until then a bound stands
    in for them, in one of two ways:

    * ``least_cost`` and ``branching``, if all nodes but the roots share one law and one vector of
      rewards; this is checked for every node that comes up.
    * ``bound``: a number that no reward below any node exceeds; or a function that is called with a
      node and gives a number, one number for each of its states, or a :class:`Node`, which is worth
      at least as much as everything below, in every situation. The best reward that can be found
      there is a valid bound; the expected payoff is not. Only contradictions are reported.

    Parameters
    ----------
    roots : nodes
    expand : callable
        Returns the children of a node, always the same ones. It is called once for a
        node, and only if the children are needed.
    bound : number or callable, optional
        See above; from below, when minimizing.
    least_cost : number, or one for each state of the parent; optional
        No node but a root costs less on average. 0 is always valid, but then the bound is the top
        reward, which is weak.
    branching : int, optional
        No node has more children, copies counted.
    outside, minimize
        As in :meth:`Forest.from_arrays <weitzman.Forest.from_arrays>`.

    Examples
    --------
    An endless binary tree: each box shows 0 or 8 with equal chances, and costs 1.

    >>> import weitzman
    >>> def box(law):
    ...     return Node(law=law, rewards=[0.0, 8.0], cost=1.0)
    >>> def children(node):
    ...     return [box([[0.5, 0.5], [0.5, 0.5]]), box([[0.5, 0.5], [0.5, 0.5]])]
    >>> tree = LazyForest([box([0.5, 0.5])], children, least_cost=1.0, branching=2)
    >>> found = weitzman.solve(tree, gap=1e-6)
    >>> found.lower <= 6.0 <= found.upper, found.first_box, found.proven
    (True, '0', True)
    """

    def __init__(
        self, roots: Iterable[Node], expand: Expand, *, bound: Bound | None = None,
        least_cost: ArrayLike | None = None, branching: int | None = None,
        outside: float | None = None, minimize: bool = False,
    ) -> None:  # fmt: skip
        self.minimize = minimize
        if not callable(expand):
            raise InvalidArgument(
                f"`expand` must be a function that gives the children of a node, not {expand!r}."
            )
        self.outside = _number(default_outside(outside, minimize), "outside")
        self._bounds = _chosen(bound, least_cost, branching, self.outside, minimize)
        self._tree = LazyTree(roots, expand, minimize)

    def __repr__(self) -> str:
        return f"LazyForest({self._tree.roots} roots, {len(self._tree)} nodes known)"

    @property
    def known(self) -> int:
        """How many nodes have come up so far, in all that was done with this object."""
        return len(self._tree)

    def node(self, name: str) -> Node:
        """A node that has come up, by its name."""
        if name not in self._tree.place:
            raise UnknownName(f"no node {name!r} has come up so far.")
        return self._tree.nodes[self._tree.place[name]]

    def solve(
        self, *, gap: float = 0.0, budget: int = 10_000, tolerance: float = 1e-9,
        threads: int | None = None, progress: Progress | None = None,
    ) -> LazySolution:  # fmt: skip
        """Bounds on the optimal value, as close as wanted or possible: ``solve(lazy, ...)``.

        The result depends on the arguments alone, not on what was done with this object before.

        Parameters
        ----------
        gap : float
            Stop once the bounds differ by at most this, in units of the payoff.
        budget : int
            Expand at most this many nodes.
        tolerance, threads
            Of the finite problems on the way, as in :func:`weitzman.solve`.
        progress : callable, optional
            Called after each round with (nodes expanded, budget).
        """
        check_amounts(gap=gap)
        check_counts(0, budget=budget)
        check_threads(threads)
        outcome = refine(
            self.in_play(None), lambda _, left: left <= gap, budget, tolerance=tolerance,
            threads=threads, progress=progress,
        )  # fmt: skip
        found, decision, play = outcome.bracket, outcome.decision, outcome.bracket.play
        flip = -1 if self.minimize else 1

        def ordered(a: float, b: float) -> tuple[float, float]:
            low, high = sorted((flip * a, flip * max(a, b)))
            return low, high

        history = [(n, *ordered(a, b)) for n, a, b in outcome.history]
        first, index = None, (self.outside, self.outside)
        if (r := decision.which) is not None:
            first = self._tree.nodes[play.node[r]].name
            index = ordered(decision.index, float(found.high_index[r]))
        return LazySolution(
            *history[-1][1:], first, index, decision.regret, decision.proven, outcome.ending,
            history[-1][0], replace(found.low, forest=play.forest(named=True)), history,
        )  # fmt: skip

    def in_play(self, situation: Situation | None) -> InPlay:
        """A situation with nothing expanded; with None the one before anything is opened."""
        if situation is None:
            roots = enumerate(self._tree.count[: self._tree.roots])
            situation = Situation([Closed(v, 0, n) for v, n in roots], self.outside)
        return InPlay(self._tree, self._bounds, situation)


def _number(x: object, name: str) -> float:
    try:
        return float(x)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidArgument(f"`{name}` must be a number, but it is {x!r}.") from None


def _chosen(
    bound: Bound | None, least_cost: ArrayLike | None, branching: int | None, outside: float,
    minimize: bool,
) -> GivenBound | StaticBound:  # fmt: skip
    """The bound that was asked for."""
    if bound is not None and least_cost is None and branching is None:
        if not callable(bound) and not math.isfinite(_number(bound, "bound")):
            raise InvalidArgument(f"`bound` must be finite, but it is {bound}.")
        return GivenBound(bound, minimize)
    if bound is not None or least_cost is None or branching is None:
        raise InvalidArgument(
            "something must be known about what is still to come: give `least_cost` and "
            "`branching` if all nodes but the roots share law and rewards, or `bound` (the best "
            "reward there can be, or a function of the node); one or the other."
        )
    try:
        least = np.asarray(least_cost, np.float64)
    except (TypeError, ValueError):
        least = np.array(np.nan)
    if not (np.isfinite(least) & (least >= 0)).all() or least.ndim > 1:
        raise InvalidArgument(f"`least_cost` must be a number from 0 on, but it is {least_cost}.")
    check_counts(branching=branching)
    return StaticBound(least, branching, outside, minimize)
