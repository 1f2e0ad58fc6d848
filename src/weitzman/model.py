"""The problem: boxes on a forest, checked once and then trusted.

Words used all over the package:

* a *box* is opened at a *cost* and then shows one of its *states*; each state has a *reward*;
* the *law* of a root is a distribution over its states; the law of a child is a matrix with a row
  for each state of its *parent*, which must be opened first;
* the *outside option* is what can be taken without opening anything;
* ``count`` copies of a box, each with its own copy of everything below it, are written once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._kernels.structure import postorder
from ._pool import Pool, list_pool, stack_pool
from ._types import FloatArray, IntArray
from .errors import InvalidForest, UnknownName

SUM_TOLERANCE = 1e-9
MAX_COUNT = 10**15


def label(x: object) -> str:
    """The name that a key stands for: 900, 900.0 and "900" are one state."""
    if isinstance(x, str):
        return x
    if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        return str(int(x))
    if isinstance(x, (float, np.floating)):
        return str(int(x)) if float(x).is_integer() and abs(x) < 1e15 else repr(float(x))
    return str(x)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Forest:
    """Boxes on a rooted forest with a Markov law on every edge, as flat columns.

    Most users call :meth:`from_arrays`, :class:`~weitzman.Builder`, :func:`~weitzman.line`,
    :func:`~weitzman.lines` or :func:`~weitzman.load`; this constructor takes the columns as they
    are stored.

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
        (1, own states) each; minus infinity (plus infinity when minimising) marks a state that
        carries a signal but no reward.
    costs : Pool
        (1, 1) for a fixed cost; (states of the parent, 1) where it depends on the parent's state;
        (states of the parent, own states) where it is random, correlated with the own state.
    count : (n,) array of int
        Copies of the box, with all below it, under each copy of its parent.
    outside : float
        The outside option; minus infinity (plus, when minimising) if something must be taken.
    minimise : bool
        Rewards are losses: minimise the least loss plus all costs.
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
    outside: float = 0.0
    minimise: bool = False
    names: tuple[str, ...] | None = None
    state_names: tuple[tuple[str, ...] | None, ...] = ()
    _number: dict[str, int] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("parent", "law", "reward", "cost", "count"):
            column = _whole_numbers(getattr(self, name), name)
            column.flags.writeable = False
            object.__setattr__(self, name, column)
        object.__setattr__(self, "outside", float(self.outside))
        if not self.state_names:
            object.__setattr__(self, "state_names", (None,) * len(self.rewards))
        _check_size(self)
        _check_names(self)
        _check_parent(self)
        _check_count(self)
        _check_outside(self)
        _check_shapes(self)
        _check_laws(self)
        _check_rewards(self)
        _check_costs(self)

    def __len__(self) -> int:
        """Boxes as described, copies not counted."""
        return len(self.parent)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, ({f: getattr(self, f) for f in _FIELDS},)

    def __repr__(self) -> str:
        return (
            f"Forest({len(self)} described boxes, {self.boxes} with copies, {self.roots.size} "
            f"roots, {len(self.laws)} laws, outside {self.outside:g}"
            f"{', minimise' if self.minimise else ''})"
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
        names: Sequence[object] | None = None,
        outside: float | None = None,
        count: ArrayLike | None = None,
        minimise: bool = False,
        states: Sequence[Sequence[object] | None] | Sequence[object] | None = None,
    ) -> Forest:
        """Describe a forest with one entry a box.

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
            single array of shape (n, k, k) is also taken; a root then has equal rows.
        names : n names, optional
        outside : float, optional
            0 unless said otherwise. Minimising needs it said: 0 would beat every loss. Infinity of
            the losing sign: something must be taken.
        count : (n,) ints, optional
            Copies of each box with all below it.
        minimise : bool
        states : one shared list of names, or n lists, optional

        Examples
        --------
        >>> forest = Forest.from_arrays(
        ...     parent=[-1, 0], cost=[1.0, 0.5], rewards=[0.0, 10.0],
        ...     law=[[0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]]])
        >>> len(forest)
        2
        """
        parents = _whole_numbers(parent, "parent")
        if parents.ndim != 1 or parents.size == 0:
            raise InvalidForest(
                "a forest needs at least one box, but `parent` is empty. Give one entry a box, -1 "
                "for a root."
            )
        n = len(parents)
        title = _titles(names, n)
        reward_pool, reward, labels = _reward_columns(rewards, states, n, title)
        law_pool, laws = _law_columns(law, parents, n, title)
        cost_pool, costs = _cost_columns(cost, parents, n, title)
        return cls(
            parent=parents,
            law=laws,
            reward=reward,
            cost=costs,
            laws=law_pool,
            rewards=reward_pool,
            costs=cost_pool,
            count=np.ones(n, np.int64) if count is None else np.asarray(count),
            outside=default_outside(outside, minimise),
            minimise=minimise,
            names=None if names is None else tuple(label(x) for x in names),
            state_names=labels,
        )

    # -- other forests from this one ------------------------------------------------------------

    def changed(
        self,
        *,
        cost: Mapping[str | int, ArrayLike] | None = None,
        outside: float | None = None,
    ) -> Forest:
        """The same forest with other costs of some boxes, or another outside option.

        Examples
        --------
        >>> import weitzman
        >>> forest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
        >>> weitzman.solve(forest.changed(cost={0: 2.5})).value
        2.5
        """
        columns = {name: getattr(self, name) for name in _FIELDS}
        if outside is not None:
            columns["outside"] = outside
        if cost:
            which, boxes = self.cost.copy(), [self.box(b) for b in cost]
            rows = [_as_cost(c, self.parent[b] < 0, self.name(b)) for b, c in zip(boxes, cost.values(), strict=True)]
            which[boxes] = len(self.costs) + np.arange(len(rows))
            columns["cost"], columns["costs"] = which, self.costs.with_more(rows)
        return Forest(**columns)

    def subtree(self, box: str | int, state: str | int | float | None = None) -> Forest:
        """A box and all below it, as they stand once its parent showed ``state``.

        One copy of the box, which becomes box 0; the outside option stays.
        """
        top = self.box(box)
        s = 0 if self.parent[top] < 0 else self.state(int(self.parent[top]), state)  # type: ignore[arg-type]
        order, _, _ = postorder(self.parent)
        inside = np.zeros(len(self) + 1, bool)
        inside[top] = True
        for v in order[::-1]:
            inside[v] |= v != top and inside[self.parent[v]]  # -1 looks at the spare entry
        keep = np.flatnonzero(inside[:-1])
        keep = np.concatenate([[top], keep[keep != top]])
        place = np.full(len(self), -1, np.int64)
        place[keep] = np.arange(len(keep))
        parent = np.where(keep == top, -1, place[self.parent[keep]])
        columns = {name: getattr(self, name) for name in _FIELDS}
        for name in ("law", "reward", "cost", "count"):
            columns[name] = getattr(self, name)[keep]
        cost = self.costs[int(self.cost[top])]
        columns["parent"] = parent
        columns["names"] = None if self.names is None else tuple(self.names[v] for v in keep)
        columns["laws"] = self.laws.with_more([self.laws[int(self.law[top])][s : s + 1]])
        columns["costs"] = self.costs.with_more([cost[s : s + 1] if len(cost) > 1 else cost])
        columns["law"][0], columns["cost"][0] = len(self.laws), len(self.costs)
        columns["count"][0] = 1
        return Forest(**columns)

    # -- looking things up ---------------------------------------------------------------------

    @property
    def roots(self) -> IntArray:
        """Numbers of the roots."""
        return np.flatnonzero(self.parent < 0)

    @property
    def boxes(self) -> int:
        """Boxes with all copies counted."""
        order, _, _ = postorder(self.parent)
        total = np.ones(len(self))
        for v in order[::-1] if self.count.max() > 1 else ():
            up = self.parent[v]
            total[v] = self.count[v] * (total[up] if up >= 0 else 1.0)
        if total.sum() < 2**52:
            return int(total.sum())
        exact: dict[int, int] = {-1: 1}
        for v in order[::-1].tolist():
            exact[v] = int(self.count[v]) * exact[int(self.parent[v])]
        return sum(exact.values()) - 1

    def name(self, box: int) -> str:
        """The name of a box by its number."""
        return str(box) if self.names is None else self.names[box]

    def box(self, box: str | int) -> int:
        """The number of a box, by name (a string) or number."""
        if isinstance(box, (int, np.integer)) and not isinstance(box, bool):
            if 0 <= box < len(self):
                return int(box)
            raise UnknownName(f"there is no box number {box}: they go from 0 to {len(self) - 1}.")
        if self.names is not None and not self._number:
            self._number.update((name, i) for i, name in enumerate(self.names))
        if isinstance(box, str):
            if self.names is None and box.isdecimal() and int(box) < len(self):
                return int(box)
            if box in self._number:
                return self._number[box]
        raise UnknownName(f"there is no box {box!r}{_like(box, self.names)}.")

    def states(self, box: str | int) -> tuple[str, ...]:
        """Names of the states of a box: those given, or else their rewards or numbers."""
        row = int(self.reward[self.box(box)])
        given = self.state_names[row]
        return given if given is not None else tuple(map(str, range(self.rewards.shape[row, 1])))

    def state(self, box: str | int, state: str | int | float) -> int:
        """The number of a state of a box: by name if it has one of that name, else by number."""
        row = int(self.reward[self.box(box)])
        given, k = self.state_names[row], int(self.rewards.shape[row, 1])
        if given is not None and label(state) in given:
            return given.index(label(state))
        if isinstance(state, (int, np.integer)) and not isinstance(state, bool) and 0 <= state < k:
            return int(state)
        known = f"0 to {k - 1}" if given is None else ", ".join(given[:8])
        raise UnknownName(
            f"box {self.name(self.box(box))!r} has no state {state!r}; its states are {known}."
        )


_FIELDS = [f for f in Forest.__dataclass_fields__ if not f.startswith("_")]


def _rebuild(columns: dict[str, Any]) -> Forest:
    return Forest(**columns)


def default_outside(outside: float | None, minimise: bool) -> float:
    """0 when maximising; when minimising it must be said, since 0 would beat every loss."""
    if outside is not None:
        return outside
    if minimise:
        raise InvalidForest(
            "minimising needs an outside option, since the default 0 would beat every loss. Give "
            "the loss of opening nothing, or outside=inf if something must be taken."
        )
    return 0.0


# -- turning what users give into columns ------------------------------------------------------


def _whole_numbers(x: ArrayLike, name: str) -> IntArray:
    try:
        return np.array(np.asarray(x, dtype=None)).astype(np.int64, casting="same_kind")
    except (TypeError, ValueError) as error:
        if np.asarray(x).size == 0:
            return np.empty(0, np.int64)
        raise InvalidForest(
            f"`{name}` must hold whole numbers, but got {_short(x)}. Give one integer a box."
        ) from error


def _short(x: object) -> str:
    text = repr(x)
    return text if len(text) <= 60 else text[:57] + "..."


def _titles(names: Sequence[object] | None, n: int) -> Sequence[object]:
    """What to call the boxes in messages, before the names themselves are checked."""
    return names if names is not None and len(names) == n else range(n)


def _numbers(x: object, what: str) -> FloatArray:
    try:
        array = np.asarray(x)
        if array.dtype.kind not in "iuf":
            array = np.asarray([[v for v in row] if np.ndim(row) else row for row in array])  # type: ignore[union-attr]
        return array.astype(np.float64, casting="same_kind")
    except (TypeError, ValueError) as error:
        raise InvalidForest(f"{what} must be numbers, but got {_short(x)}.") from error


def _is_stack(x: object, ndim: int, n: int) -> bool:
    return isinstance(x, np.ndarray) and x.ndim == ndim and len(x) == n and x.dtype.kind in "iuf"


def _reward_columns(
    rewards: Any, states: Any, n: int, title: Sequence[object]
) -> tuple[Pool, IntArray, tuple[tuple[str, ...] | None, ...]]:
    shared_states = states is not None and (len(states) == 0 or not _nested(states[0]))
    if len(rewards) and not isinstance(rewards, np.ndarray) and not _nested(rewards[0]):
        rewards = np.asarray(_numbers(rewards, "`rewards`"))
    if isinstance(rewards, np.ndarray) and rewards.ndim == 1 and rewards.dtype.kind in "iuf":
        pool, place = stack_pool(rewards.astype(np.float64).reshape(1, 1, -1))
        number = np.zeros(n, np.int64)
    elif _is_stack(rewards, 2, n):
        pool, number = stack_pool(rewards.astype(np.float64)[:, None, :])
    else:
        _check_length(rewards, n, "rewards")
        pool, number = list_pool(
            rewards, [False] * n, lambda i: _vector(rewards[i], "rewards", title[i])
        )
    if states is None:
        return pool, number, (None,) * len(pool)
    if shared_states:
        given = tuple(label(x) for x in states)
        return pool, number, (given,) * len(pool)
    _check_length(states, n, "states")
    lists = [None if s is None else tuple(label(x) for x in s) for s in states]
    rows: dict[tuple[int, tuple[str, ...] | None], int] = {}
    place = np.array(
        [rows.setdefault((int(r), s), len(rows)) for r, s in zip(number, lists, strict=True)]
    )
    stacked = [pool[r] for r, _ in rows]
    shape = np.array([m.shape for m in stacked], np.int64)
    start = np.concatenate([[0], np.cumsum(shape[:, 1])])
    data = np.concatenate([m.reshape(-1) for m in stacked])
    return Pool(data, start, shape), place, tuple(s for _, s in rows)


def _law_columns(
    law: Any, parent: IntArray, n: int, title: Sequence[object]
) -> tuple[Pool, IntArray]:
    if _is_stack(law, 3, n):
        roots = np.flatnonzero(parent < 0)
        uneven = roots[(law[roots] != law[roots, :1]).any(axis=(1, 2))]
        if len(uneven):
            raise InvalidForest(
                f"a root's law must have equal rows in an array (n, k, k), but law[{uneven[0]}] "
                f"(box {title[uneven[0]]!r}) has not ({len(uneven)} such boxes). Give a list with "
                f"a vector for each root."
            )
        if len(roots) == 0 or law.shape[1] == 1:
            return stack_pool(law)
        stems, root_number = stack_pool(law[roots, :1])
        branches, child_number = stack_pool(law[parent >= 0])
        number = np.empty(n, np.int64)
        number[roots] = root_number
        number[parent >= 0] = len(stems) + child_number
        data = np.concatenate([stems.data, branches.data])
        start = np.concatenate([stems.start, stems.start[-1] + branches.start[1:]])
        return Pool(data, start, np.concatenate([stems.shape, branches.shape])), number
    _check_length(law, n, "law")

    def convert(i: int) -> FloatArray:
        m = _numbers(law[i], f"the law of box {title[i]!r}")
        if m.ndim == 1 and parent[i] < 0:
            return m.reshape(1, -1)
        if m.ndim == 2:
            return m
        raise InvalidForest(
            f"a root's law is a vector and a child's a matrix with a row for each state of the "
            f"parent, but box {title[i]!r} (a {'root' if parent[i] < 0 else 'child'}) has a law "
            f"of {m.ndim} dimensions."
        )

    return list_pool(law, (parent < 0).tolist(), convert)


def _cost_columns(
    cost: Any, parent: IntArray, n: int, title: Sequence[object]
) -> tuple[Pool, IntArray]:
    if isinstance(cost, (int, float, np.number)):
        cost = np.full(n, float(cost))
    try:
        plain = np.asarray(cost)
        is_plain = plain.shape == (n,) and plain.dtype.kind in "iuf"
    except ValueError:  # ragged
        is_plain = False
    if is_plain:
        return stack_pool(plain.astype(np.float64).reshape(n, 1, 1))
    _check_length(cost, n, "cost")

    def convert(i: int) -> FloatArray:
        return _as_cost(cost[i], parent[i] < 0, title[i])

    return list_pool(cost, (parent < 0).tolist(), convert)


def _as_cost(cost: object, root: bool, title: object) -> FloatArray:
    c = _numbers(cost, f"the cost of box {title!r}")
    if c.ndim == 0:
        return c.reshape(1, 1)
    if c.ndim == 1:
        return c.reshape(1, -1) if root else c.reshape(-1, 1)
    if c.ndim == 2:
        return c
    raise InvalidForest(
        f"a cost is a number, a vector or a matrix, but that of box {title!r} has {c.ndim} "
        f"dimensions."
    )


def _nested(x: object) -> bool:
    return x is None or (not isinstance(x, str) and np.ndim(x) > 0)  # type: ignore[arg-type]


def _vector(x: object, what: str, title: object) -> FloatArray:
    v = _numbers(x, f"the {what} of box {title!r}")
    if v.ndim != 1:
        raise InvalidForest(
            f"the {what} of a box must be one vector, but box {title!r} has {v.ndim} dimensions."
        )
    return v.reshape(1, -1)


def _check_length(x: Sequence[object], n: int, what: str) -> None:
    if len(x) != n:
        raise InvalidForest(
            f"`{what}` must have one entry a box, but there are {len(x)} for {n} boxes."
        )


# -- the rules, one small function each --------------------------------------------------------


def _like(wanted: object, names: Sequence[str] | None) -> str:
    import difflib

    if names is None or not isinstance(wanted, str):
        return ""
    close = difflib.get_close_matches(wanted, names[:10_000], 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _first(forest: Forest, column: IntArray, row: int) -> tuple[int, str]:
    """The first box that uses a row of a pool, for messages."""
    box = int(np.flatnonzero(column == row)[0]) if (column == row).any() else -1
    return box, repr(forest.name(box)) if box >= 0 else "(unused)"


def _check_size(f: Forest) -> None:
    n = len(f.parent)
    if n == 0:
        raise InvalidForest("a forest needs at least one box, but there is none. Add a root.")
    for name in ("law", "reward", "cost", "count"):
        if getattr(f, name).shape != (n,):
            raise InvalidForest(
                f"`{name}` must have one entry a box, but has shape {getattr(f, name).shape} for "
                f"{n} boxes."
            )
    for name, pool in (("law", f.laws), ("reward", f.rewards), ("cost", f.costs)):
        column = getattr(f, name)
        bad = np.flatnonzero((column < 0) | (column >= len(pool)))
        if len(bad):
            raise InvalidForest(
                f"`{name}` must point into its pool of {len(pool)}, but box {f.name(bad[0])!r} has "
                f"{column[bad[0]]} ({len(bad)} such boxes)."
            )


def _check_names(f: Forest) -> None:
    if f.names is not None:
        if len(f.names) != len(f.parent):
            raise InvalidForest(
                f"`names` must have one entry a box, but there are {len(f.names)} for "
                f"{len(f.parent)} boxes."
            )
        _check_distinct(f.names, "names of boxes")
    if len(f.state_names) != len(f.rewards):
        raise InvalidForest(
            f"`state_names` must have one entry a row of rewards, but there are "
            f"{len(f.state_names)} for {len(f.rewards)}."
        )
    for row, given in enumerate(f.state_names):
        if given is None:
            continue
        if len(given) != f.rewards.shape[row, 1]:
            raise InvalidForest(
                f"a box needs as many state names as rewards, but box {_first(f, f.reward, row)[1]}"
                f" has {len(given)} names for {f.rewards.shape[row, 1]} rewards."
            )
        if len(set(given)) < len(given):
            _check_distinct(given, f"names of the states of box {_first(f, f.reward, row)[1]}")


def _check_distinct(names: Sequence[str], what: str) -> None:
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = [x for x in names if x in seen or seen.add(x)]  # type: ignore[func-returns-value]
        raise InvalidForest(
            f"{what} must differ, but {twice[0]!r} is there twice ({len(twice)} such names). "
            f"Rename one of them."
        )


def _check_parent(f: Forest) -> None:
    n = len(f.parent)
    bad = np.flatnonzero((f.parent < -1) | (f.parent >= n))
    if len(bad):
        raise InvalidForest(
            f"a parent must be the number of a box (0 to {n - 1}) or -1 for a root, but that of "
            f"box {f.name(bad[0])!r} is {f.parent[bad[0]]} ({len(bad)} such boxes)."
        )
    order, _, _ = postorder(f.parent)
    if len(order) < n:
        lost = np.setdiff1d(np.arange(n), order)
        v = int(lost[0])
        for _ in range(n):  # n steps up end on the cycle itself
            v = int(f.parent[v])
        cycle, w = [v], int(f.parent[v])
        while w != v and len(cycle) < 8:
            cycle.append(w)
            w = int(f.parent[w])
        path = " -> ".join(repr(f.name(u)) for u in [*cycle, v if w == v else w])
        raise InvalidForest(
            f"parents must lead to a root, but {path} goes round in a circle ({len(lost)} boxes "
            f"hang on one). Make one of them a root."
        )


def _check_count(f: Forest) -> None:
    bad = np.flatnonzero((f.count < 1) | (f.count > MAX_COUNT))
    if len(bad):
        raise InvalidForest(
            f"a count must be from 1 to {MAX_COUNT:.0e}, but that of box {f.name(bad[0])!r} is "
            f"{f.count[bad[0]]} ({len(bad)} such boxes). Leave out a box of which there are none."
        )


def _check_outside(f: Forest) -> None:
    must_take = np.inf if f.minimise else -np.inf
    if not np.isfinite(f.outside) and f.outside != must_take:
        raise InvalidForest(
            f"the outside option must be a finite number, or {must_take} if something must be "
            f"taken, but it is {f.outside}."
        )


def _check_shapes(f: Forest) -> None:
    own = f.rewards.shape[f.reward, 1]
    given = np.where(f.parent < 0, 1, own[f.parent])
    rows, cols = f.laws.shape[f.law].T
    bad = np.flatnonzero((rows != given) | (cols != own) | (own == 0))
    if len(bad):
        v = int(bad[0])
        kind = "one row (a root)" if f.parent[v] < 0 else f"{given[v]} rows (states of its parent)"
        raise InvalidForest(
            f"the law of box {f.name(v)!r} must have {kind} and {own[v]} columns (its own rewards)"
            f", but it has shape ({rows[v]}, {cols[v]}) ({len(bad)} such boxes)."
        )
    rows, cols = f.costs.shape[f.cost].T
    bad = np.flatnonzero(((rows != 1) & (rows != given)) | ((cols != 1) & (cols != own)))
    if len(bad):
        v = int(bad[0])
        raise InvalidForest(
            f"a cost is one number, one per state of the parent, or a matrix (states of the parent"
            f", own states), but box {f.name(v)!r} has {given[v]} and {own[v]} of them and a cost "
            f"of shape ({rows[v]}, {cols[v]}) ({len(bad)} such boxes)."
        )


def _check_laws(f: Forest) -> None:
    p = f.laws
    wrong = ~((p.data >= 0) & (p.data <= 1 + SUM_TOLERANCE))  # also finds NaN
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        m = int(np.searchsorted(p.start, i, side="right")) - 1
        s, y = divmod(i - int(p.start[m]), int(p.shape[m, 1]))
        _, title = _first(f, f.law, m)
        raise InvalidForest(
            f"probabilities must lie between 0 and 1, but in the law of box {title} the entry "
            f"[{s}, {y}] is {p.data[i]:.6g} ({int(wrong.sum())} such entries)."
        )
    start, owner = p.rows()
    mass = np.add.reduceat(p.data, start) if len(start) else np.empty(0)
    bad = np.flatnonzero(np.abs(mass - 1) > SUM_TOLERANCE)
    if len(bad):
        m = int(owner[bad[0]])
        row = int(bad[0] - np.flatnonzero(owner == m)[0])
        box, title = _first(f, f.law, m)
        after = ""
        if box >= 0 and f.parent[box] >= 0:
            up = int(f.parent[box])
            after = f" after {f.name(up)!r} shows {f.states(up)[row]!r}"
        raise InvalidForest(
            f"probabilities must sum to 1, but those of box {title}{after} sum to "
            f"{mass[bad[0]]:.9g} ({len(bad)} such rows). Rescale the row, or give the missing mass "
            f"a state of its own."
        )


def _check_rewards(f: Forest) -> None:
    none = np.inf if f.minimise else -np.inf
    wrong = ~(np.isfinite(f.rewards.data) | (f.rewards.data == none))
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        m = int(np.searchsorted(f.rewards.start, i, side="right")) - 1
        _, title = _first(f, f.reward, m)
        raise InvalidForest(
            f"rewards must be finite ({none} marks a state without one), but box {title} has "
            f"{f.rewards.data[i]} in state {i - int(f.rewards.start[m])} ({int(wrong.sum())} such "
            f"rewards)."
        )
    if not np.isfinite(f.outside) and not np.isfinite(f.rewards.data).all():
        raise InvalidForest(
            "states without a reward need a finite outside option, since otherwise there may be "
            "nothing to take. Give `outside`."
        )


def _check_costs(f: Forest) -> None:
    wrong = ~((f.costs.data >= 0) & np.isfinite(f.costs.data))
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        m = int(np.searchsorted(f.costs.start, i, side="right")) - 1
        _, title = _first(f, f.cost, m)
        raise InvalidForest(
            f"costs must be finite and not negative, but box {title} has {f.costs.data[i]:.6g} "
            f"({int(wrong.sum())} such costs)."
        )
