"""The problem: boxes on a forest, checked once and then trusted.

Words used all over the package:

* a *box* is opened at a *cost* and then shows one of its *states*; each state has a *reward*;
* the *law* of a root is a distribution over its states; the law of a child is a matrix with a row
  for each state of its *parent*, which must be opened first;
* the *outside option* is what can be taken without opening anything;
* ``count`` copies of a box, each with its own copy of everything below it, are written once;
* an *endless* box is followed by another one like it, whose law looks at the box before, and so
  on without end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import BoolArray, IntArray
from .._common.numbers import counted
from .._kernels.structure import postorder
from ..errors import InvalidForest
from .columns import (
    as_entry,
    default_outside,
    flags,
    label,
    law_columns,
    opening_columns,
    reward_columns,
    titles,
    whole_numbers,
)
from .lookups import Lookups
from .pools import Pool
from .rules import check, check_parent, rescaled
from .taking import BY_BOX, fields_of, places_of_parents, same, taken
from .terms import check_terms, number_or_none, pair, time_pools, with_time


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Forest(Lookups):
    """Boxes on a rooted forest with a Markov law on every edge, as flat columns.

    Most users call :meth:`from_arrays`, :class:`~weitzman.Builder`, :func:`~weitzman.line`,
    :func:`~weitzman.side_by_side` or :func:`~weitzman.load`; this constructor takes the columns as
    they are stored.

    Parameters
    ----------
    parent : (n,) array of int
        The parent of each box; -1 marks a root. Boxes may come in any order.
    law, reward, cost : (n,) arrays of int
        Which matrix of ``laws``, ``rewards`` and ``costs`` belongs to each box. Boxes of one kind
        share them.
    laws : Pool
        (states of the parent, own states) each; one row for a root.
    rewards : Pool
        (1, own states) each; minus infinity (plus infinity when minimizing) marks a state that
        carries a signal but no reward.
    costs : Pool
        (1, 1) for a fixed cost; (states of the parent, 1) where it depends on the parent's state;
        (states of the parent, own states) where it is random, correlated with the own state.
    count : (n,) array of int
        Copies of the box, with all below it, under each copy of its parent.
    endless : (n,) array of bool, or None
        Which boxes are followed by boxes like themselves without end. Such a box has a parent with
        as many states as itself, no children and no copies. None: no box is.
    outside : float
        The outside option; minus infinity (plus, when minimizing) if something must be taken.
    minimize : bool
        Rewards are losses: minimize the least loss plus all costs.
    unit : str
        The unit of rewards and costs, for people: "$", "EUR", "hours".
    factors : Pool, or None
        What everything after the opening is multiplied by, above 0 and at most 1: one for each of
        ``costs``, in the same shapes. None: time costs nothing.
    durations : Pool, or None
        Durations in the same shapes, one for each of ``costs``; then ``factors`` are
        exp(-rate * duration).
    rate : float, or None
        The rate at which durations discount, from 0 on.
    risk_tolerance : float, or None
        The payoff z has the utility -exp(-z / risk_tolerance). None: the expected payoff counts.
    prizes : int
        How many rewards may be taken, at most one from each tree.
    stated_error : float
        How far the value may be off because distributions were made discrete; the gap of a solution
        includes it. Parts of a forest keep the error of the whole.
    names : tuple of str, or None
        Names of the boxes; None numbers them.
    state_names : tuple
        For each row of ``rewards``, the names of the states, or None.
    """

    parent: IntArray
    law: IntArray
    reward: IntArray
    cost: IntArray
    laws: Pool
    rewards: Pool
    costs: Pool
    count: IntArray
    endless: BoolArray = field(default_factory=lambda: np.empty(0, bool))
    outside: float = 0.0
    minimize: bool = False
    unit: str = ""
    factors: Pool | None = None
    durations: Pool | None = None
    rate: float | None = None
    risk_tolerance: float | None = None
    prizes: int = 1
    stated_error: float = 0.0
    names: tuple[str, ...] | None = None
    state_names: tuple[tuple[str, ...] | None, ...] = ()
    _number: dict[str, int] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("parent", *BY_BOX[:-1]):
            column = whole_numbers(getattr(self, name), name)
            column.flags.writeable = False
            object.__setattr__(self, name, column)
        endless = flags(self.endless, len(self.parent), "endless")
        endless.flags.writeable = False
        object.__setattr__(self, "endless", endless)
        try:
            object.__setattr__(self, "outside", float(self.outside))
        except (TypeError, ValueError) as error:
            raise InvalidForest(
                f"the outside option must be a number, but it is {self.outside!r}."
            ) from error
        if not self.state_names:
            object.__setattr__(self, "state_names", (None,) * len(self.rewards))
        for name in ("rate", "risk_tolerance"):
            object.__setattr__(self, name, number_or_none(getattr(self, name), name))
        factors = with_time(self.durations, self.rate, self.factors)
        object.__setattr__(self, "factors", factors)
        mass = check(self)
        object.__setattr__(self, "laws", rescaled(self.laws, mass))
        check_terms(self)

    def __eq__(self, other: object) -> bool:
        """Whether both describe the same boxes in the same order, however they are stored."""
        if not isinstance(other, Forest):
            return NotImplemented
        return same(self, other)

    def __hash__(self) -> int:
        return hash((self.outside, self.minimize, self.parent.tobytes(), self.count.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, ({f: getattr(self, f) for f in _FIELDS},)

    def __repr__(self) -> str:
        return (
            f"Forest({counted(len(self), 'described box')}, {self._with_copies()}, "
            f"{counted(self.roots.size, 'root')}, {counted(len(self.laws), 'law')}, "
            f"outside {self.outside:g}{', minimize' if self.minimize else ''}{self._terms()})"
        )

    # -- ways in -------------------------------------------------------------------------------

    @classmethod
    def from_arrays(
        cls,
        *,
        parent: ArrayLike,
        cost: ArrayLike | Sequence[ArrayLike],
        rewards: ArrayLike | Sequence[ArrayLike],
        law: ArrayLike | Sequence[ArrayLike],
        initial: ArrayLike | None = None,
        names: Sequence[object] | None = None,
        outside: float | None = None,
        count: ArrayLike | None = None,
        endless: ArrayLike | None = None,
        minimize: bool = False,
        states: Sequence[Sequence[object] | None] | Sequence[object] | None = None,
        unit: str = "",
        factor: ArrayLike | Sequence[ArrayLike] | None = None,
        duration: ArrayLike | Sequence[ArrayLike] | None = None,
        rate: float | None = None,
        risk_tolerance: float | None = None,
        prizes: int = 1,
        stated_error: float = 0.0,
    ) -> Forest:
        """Describe a forest with one entry per box.

        Parameters
        ----------
        parent : (n,) ints
            -1 marks a root; any order.
        cost : n entries
            A number; or for a child one number per state of its parent; or a matrix (states of the
            parent, own states; one row for a root) where the cost depends on what is found. For a
            root, one number per own state says the same.
        rewards : one shared vector, or n vectors
            The reward of each state. Minus infinity: a signal that cannot be taken.
        law : n entries
            A vector for a root, a matrix (states of the parent, own states) for a child. A
            single array of shape (n, k, k) also works; the matrix of a root then has equal rows,
            unless ``initial`` is given.
        initial : one vector, or one for each root, optional
            The laws of the roots. ``law`` is then one matrix for all other boxes, or an array of
            shape (n, k, k), in which the entries of roots are ignored.
        names : n names, optional
        outside : float, optional
            0 by default. Minimizing has no default: 0 would beat every loss. Infinity of the losing
            sign: something must be taken.
        count : (n,) ints, optional
            Copies of each box with all below it.
        endless : (n,) bools, optional
            Boxes that are followed by boxes like themselves without end: each further one follows
            the law and has the costs of this box, given the state of the one before.
        minimize : bool
        states : one shared list of names, or n lists, optional
        unit : str
            Of rewards and costs, for people.
        factor : number, or n entries, optional
            What everything after the opening of a box is multiplied by: above 0 and at most 1, in
            the forms of ``cost``.
        duration, rate : optional
            The same in other words: how long a box takes to open, in the forms of ``cost``, and
            the rate per unit of time. The factor is then exp(-rate * duration).
        risk_tolerance : float, optional
            Count payoffs z by the utility -exp(-z / risk_tolerance): the value and all indices are
            then certainty equivalents, and random costs count with their whole law.
        prizes : int
            Take up to this many rewards, at most one from each tree; a place that stays empty is
            worth the outside option.
        stated_error : float
            How far the value may be off because distributions were made discrete.

        Examples
        --------
        >>> forest = Forest.from_arrays(
        ...     parent=[-1, 0], cost=[1.0, 0.5], rewards=[0.0, 10.0],
        ...     law=[[0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]]])
        >>> len(forest)
        2
        """
        parents = whole_numbers(parent, "parent")
        if parents.ndim != 1 or parents.size == 0:
            raise InvalidForest(
                "a forest needs at least one box, but `parent` is empty. Give one entry per box, "
                "-1 for a root."
            )
        n = len(parents)
        title = titles(names, n)
        check_parent(parents, title.__getitem__)
        reward_pool, reward, labels = reward_columns(rewards, states, n, title)
        law_pool, laws = law_columns(law, parents, n, title, initial)
        cost_pool, costs = opening_columns(cost, parents, n, title)
        factors, durations, time = time_pools(factor, duration, rate, parents, title)
        costs, cost_pool, beside = pair(costs, cost_pool, time, factors or durations)
        return cls(
            parent=parents,
            law=laws,
            reward=reward,
            cost=costs,
            laws=law_pool,
            rewards=reward_pool,
            costs=cost_pool,
            count=np.ones(n, np.int64) if count is None else np.asarray(count),
            endless=flags(endless, n, "endless"),
            outside=default_outside(outside, minimize),
            minimize=minimize,
            unit=unit,
            factors=beside if durations is None else None,
            durations=None if durations is None else beside,
            rate=rate,
            risk_tolerance=risk_tolerance,
            prizes=prizes,
            stated_error=stated_error,
            names=None if names is None else tuple(label(x) for x in names),
            state_names=labels,
        )

    # -- other forests from this one ------------------------------------------------------------

    def changed(
        self,
        *,
        cost: Mapping[str | int, ArrayLike] | None = None,
        outside: float | None = None,
        unit: str | None = None,
        rate: float | None = None,
        risk_tolerance: float | None = None,
        prizes: int | None = None,
    ) -> Forest:
        """The same forest with other costs of some boxes, another outside option or other terms.

        What is None stays as it is.

        Examples
        --------
        >>> import weitzman
        >>> forest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
        >>> weitzman.solve(forest.changed(cost={0: 2.5})).value
        2.5
        """
        columns = {name: getattr(self, name) for name in _FIELDS}
        terms: dict[str, Any] = {
            "outside": outside,
            "unit": unit,
            "rate": rate,
            "risk_tolerance": risk_tolerance,
        }
        terms["prizes"] = prizes
        columns |= {name: x for name, x in terms.items() if x is not None}
        if cost:
            which, boxes = self.cost.copy(), [self.box(b) for b in cost]
            if len(set(boxes)) < len(boxes):
                raise InvalidForest("each box can have one new cost, but one is named twice.")
            rows = [
                as_entry(c, self.parent[b] < 0, self.name(b))
                for b, c in zip(boxes, cost.values(), strict=True)
            ]
            which[boxes] = len(self.costs) + np.arange(len(rows))
            columns["cost"], columns["costs"] = which, self.costs.with_more(rows)
            for name in ("factors", "durations"):
                if (pool := columns[name]) is not None:
                    columns[name] = pool.with_more([pool[int(self.cost[b])] for b in boxes])
        return Forest(**columns)

    def take(
        self,
        boxes: ArrayLike,
        *,
        parent: ArrayLike | None = None,
        after: ArrayLike | None = None,
        **columns: Any,
    ) -> Forest:
        """A forest made of boxes of this one, each repeated as often as it is named.

        Parameters
        ----------
        boxes : (m,) ints
            The box that each new box is like, by number.
        parent : (m,) ints, optional
            The parents among the new boxes. By default each box hangs on its own parent, which
            must be named, once.
        after : (m,) ints, optional
            The state that the parent of a box has shown, by number, where the box becomes a root;
            -1 for all others.
        **columns
            Columns that are not copied but given: ``count``, ``endless``, ``names``, ...

        Examples
        --------
        >>> import weitzman
        >>> pair = weitzman.line([[0.5, 0.5], [[1, 0], [0, 1]]], rewards=[0, 10], cost=1)
        >>> weitzman.solve(pair.take([1], parent=[-1], after=[1])).value
        9.0
        """
        return Forest(**(taken(self, boxes, parent, after, columns) | columns))

    def subtree(self, box: str | int, state: str | int | float | None = None) -> Forest:
        """A box and all below it, once its parent has shown ``state``.

        One copy of the box becomes box 0; the outside option stays. On an endless line, the next
        box becomes box 0, and the boxes after it are box 1, ``"<name>, further"``.
        """
        top = self.box(box)
        s = 0 if self.parent[top] < 0 else self.state(int(self.parent[top]), state)  # type: ignore[arg-type]
        keep = self.within(top)
        parent = places_of_parents(self, keep)
        if self.endless[top]:
            keep, parent = np.array([top, top]), np.array([-1, 0])
        first = np.arange(len(keep)) == 0
        names = None if self.names is None else [self.name(v) for v in keep.tolist()]
        if names is not None and self.endless[top]:
            names[1] += ", further"
        return self.take(
            keep,
            parent=np.where(first, -1, parent),
            after=np.where(first, s, -1),
            count=np.where(first, 1, self.count[keep]),
            endless=~first & self.endless[keep],
            names=None if names is None else tuple(names),
            prizes=1,  # there is but one tree
        )

    def within(self, box: str | int) -> IntArray:
        """Numbers of a box and of all below it, the box first and the others in order."""
        top = self.box(box)
        order, _, _ = postorder(self.parent)
        inside = np.zeros(len(self) + 1, bool)
        inside[top] = True
        for v in order[::-1]:
            inside[v] |= v != top and inside[self.parent[v]]  # -1 looks at the spare entry
        keep = np.flatnonzero(inside[:-1])
        return np.concatenate([[top], keep[keep != top]])


_FIELDS = fields_of(Forest)


def _rebuild(columns: dict[str, Any]) -> Forest:
    return Forest(**columns)
