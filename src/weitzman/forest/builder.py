"""Ways to write down a forest: box by box, as a line, side by side, with copies written out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import FloatArray, IntArray
from .._common.numbers import counted, such
from .._kernels.structure import postorder
from ..errors import InvalidForest
from .columns import default_outside, label
from .distributions import Discretized, Distribution
from .fields import joined
from .forms import ANY, Source, WrittenBox, assembled, read_outcomes
from .model import Forest, GivenColumns, GivenTerms, known_fields, spelled_out
from .rules import check_clash, like

Number = int | float
State = str | int | float
Opening = Number | Mapping[State, Number | Mapping[State, Number]]


class GivenBox(TypedDict, total=False):
    """What :meth:`Builder.add` may be given besides the box itself."""

    count: int
    endless: bool
    group: str | None
    duration: Opening | None
    factor: Opening | None


class Builder:
    """A forest written down box by box, in words and numbers.

    Parameters
    ----------
    outside : float, optional
        What can be taken without opening anything: 0 by default. Minimizing has no default.
    minimize : bool
        Rewards are losses.
    unit, rate, risk_tolerance, prizes, quotas, stated_error : optional
        As in :meth:`Forest.from_arrays`.

    Examples
    --------
    A costs 20 and holds 900 or 1; what B below it holds depends on that; C is a box of its own.

    >>> import weitzman
    >>> search = weitzman.Builder()
    >>> _ = search.add("A", cost=20, outcomes={900: 0.1, 1: 0.9})
    >>> _ = search.add("B", parent="A", cost=3,
    ...                outcomes={1: {21: 0.5, -9: 0.5}, 900: {920: 0.5, 890: 0.5}})
    >>> _ = search.add("C", cost=5, outcomes={50: 0.5, 10: 0.5})
    >>> solution = weitzman.solve(search.build())
    >>> round(solution.value, 9), solution.index("B", 900)
    (94.325, 914.0)
    """

    @spelled_out(GivenTerms)
    def __init__(
        self, outside: float | None = None, minimize: bool = False, **terms: Unpack[GivenTerms]
    ) -> None:
        self._settings = known_fields(terms, "Builder")
        check_clash(self._settings)
        self._settings |= {"outside": default_outside(outside, minimize), "minimize": minimize}
        self._boxes: dict[str, WrittenBox] = {}

    def __len__(self) -> int:
        return len(self._boxes)

    def __repr__(self) -> str:
        return f"Builder({counted(len(self), 'box')})"

    @property
    def errors(self) -> dict[str, float]:
        """The certified error of each box whose law was discretized.

        The value of the search moves by at most the sum of these errors, each times the copies of
        its box, boxes whose children depend on their states left out. The forest keeps the sum as
        its ``stated_error``.
        """
        return {name: e for name, b in self._boxes.items() if (e := b.outcomes.error) > 0}

    @spelled_out(GivenBox)
    def add(
        self,
        name: str | int,
        *,
        parent: str | int | None = None,
        cost: Opening,
        outcomes: Mapping[Any, Any] | Distribution | Discretized,
        rewards: Mapping[State, Number | None] | None = None,
        n_states: int = 50,
        **fields: Unpack[GivenBox],
    ) -> Builder:
        """Add a box; boxes may be added before their parents.

        Parameters
        ----------
        name : str or int
        parent : str or int, optional
        cost : number or mapping
            A number; for a child also ``{parent's state: cost}``; and where it depends on what is
            found, ``{own state: cost}`` for a root and ``{parent's state: {own state: cost}}`` for
            a child.
        outcomes : mapping or distribution
            ``{state: probability}`` for a root, and ``{parent's state: {state: probability}}`` for
            a child; a child with ``{state: probability}`` does not depend on its parent's state.
            States are named by their rewards, or by words with ``rewards``. A frozen SciPy
            distribution may stand for ``{state: probability}``.
        rewards : mapping, optional
            The reward of each state that is not named by its reward; None: no reward.
        n_states : int
            How many states to make of a distribution.
        count, endless, group : optional
            As in :meth:`Forest.from_arrays`, for this box. An endless box has the states of its
            parent. The group is said of a root.
        duration, factor : number or mapping, optional
            In the forms of ``cost``. 0 and 1 if left out.

        Returns
        -------
        Builder
            This one, so that calls can be chained.

        Examples
        --------
        >>> import weitzman
        >>> search = weitzman.Builder().add(
        ...     "survey", cost=1, outcomes={"good": 0.3, "bad": 0.7},
        ...     rewards={"good": None, "bad": None},
        ... ).add(
        ...     "drill", parent="survey", cost=5, count=3,
        ...     outcomes={"good": {0: 0.5, 40: 0.5}, "bad": {0: 0.9, 40: 0.1}},
        ... )
        >>> weitzman.solve(search.build()).index("drill", "good")
        30.0
        """
        called, above = label(name), None if parent is None else label(parent)
        if called in self._boxes:
            raise InvalidForest(
                f"names of boxes must differ, but {called!r} is taken. Rename this one, or "
                f"give `count` for copies."
            )
        source = Source(
            lambda what: f"the {what} of box {called!r}", above=f"state of its parent {above!r}"
        )
        own = read_outcomes(source, outcomes, rewards, above is None, n_states)
        self._boxes[called] = WrittenBox(
            source, own, {"cost": cost} | known_fields(fields, "add"), above
        )
        return self

    def build(self) -> Forest:
        """The forest of all boxes added so far."""
        if not self._boxes:
            raise InvalidForest("a forest needs at least one box, but none was added. Add a root.")
        keys: list[str | None] = [None, *self._boxes]
        number = {name: i for i, name in enumerate(keys, -1)}
        lost = {name: b.parent for name, b in self._boxes.items() if b.parent not in number}
        if lost:
            name, up = next(iter(lost.items()))
            raise InvalidForest(
                f"a parent must be a box, but {up!r}, parent of {name!r}, was never added "
                f"({such(len(lost), 'box')}{like(up, list(self._boxes))})."
            )
        settings = {"stated_error": self._stated_error(), **self._settings}
        boxes = list(self._boxes.values())
        if "rate" in settings and not any({"factor", "duration"} & b.fields.keys() for b in boxes):
            boxes[0] = replace(boxes[0], fields={**boxes[0].fields, "duration": 0.0})
        parent = [number[b.parent] for b in boxes]
        return assembled(boxes, parent, list(self._boxes), settings)

    def _stated_error(self) -> float:
        """How far the value may be off because laws were discretized.

        Opening a box is worth the mean of a convex function of its reward with slopes from 0 to 1,
        even if other boxes follow. So every discretized copy adds at most its own error. The states
        of a box whose children depend on them are the problem that was described.
        """
        shaping = {b.parent for b in self._boxes.values() if ANY not in b.outcomes.rows}
        total = 0.0
        for name, error in self.errors.items():
            up, seen = self._boxes[name], set[int]()
            while name not in shaping and id(up) not in seen:  # a cycle is reported later
                error *= up.fields.get("count", 1)
                seen.add(id(up))
                up = self._boxes.get(up.parent or "", up)
            total += 0.0 if name in shaping else error
        return total


@spelled_out(GivenColumns)
def line(
    law: Sequence[Any] | FloatArray,
    *,
    rewards: ArrayLike | Sequence[ArrayLike] | None = None,
    cost: ArrayLike | Sequence[ArrayLike],
    length: float | None = None,
    names: Sequence[object] | None = None,
    states: Sequence[Any] | None = None,
    **fields: Unpack[GivenColumns],
) -> Forest:
    """Boxes in a line, each the child of the one before: a *hyperbox* in the words of the paper.

    Parameters
    ----------
    law : list
        The distribution of the first box, then for each further box a matrix (states of the box
        before, own states). With ``length``: one distribution and one matrix, used for all boxes
        but the first and kept in memory once. A :class:`weitzman.Chain` may stand for this matrix.
    rewards : one shared vector, or one per box
        By default those of the chain.
    length : int or inf, optional
        Number of boxes of a line whose matrices are all the same. Infinity: the line continues
        without end, and two boxes describe it: the first one and the endless one.
    count : int
        Copies of the whole line.
    cost, names, states, **fields
        As in :meth:`Forest.from_arrays`.

    Examples
    --------
    >>> import weitzman
    >>> sticky = [[0.9, 0.1], [0.2, 0.8]]
    >>> long = weitzman.line(([0.5, 0.5], sticky), length=1000, rewards=[0, 10], cost=0.5)
    >>> len(long), len(long.laws)
    (1000, 2)
    >>> endless = weitzman.line(([0.5, 0.5], sticky), length=np.inf, rewards=[0, 10], cost=0.5)
    >>> weitzman.solve(endless).index(1, 0), weitzman.solve(endless).value
    (5.0, 7.0)
    >>> chain = weitzman.Chain(sticky, rewards=[0, 10])
    >>> weitzman.line(([0.5, 0.5], chain), length=1000, cost=0.5) == long
    True
    """
    laws: Any = law if isinstance(law, np.ndarray) else list(law)
    if len(laws) == 2 and hasattr(laws[1], "rewards"):  # a chain
        rewards = laws[1].rewards if rewards is None else rewards
        laws[1] = laws[1].law
    if rewards is None:
        raise InvalidForest("a line needs rewards: one vector, or one per box. Give `rewards`.")
    if len(laws) == 0 or np.ndim(laws[0]) == 0:
        raise InvalidForest(
            "the law of a line must be a list: the distribution of the first box, then a matrix "
            f"for each further box, but it is {'empty' if len(laws) == 0 else 'one vector'}. Write "
            "[distribution, matrix, ...]."
        )
    endless = length == np.inf
    if length is not None:
        whole = isinstance(length, (int, np.integer)) and not isinstance(length, bool)
        if len(laws) != 2 or not (endless or (whole and length >= 1)):
            raise InvalidForest(
                f"with `length`, at least 1 or infinity, the law of a line is one distribution and "
                f"one matrix, but there are {len(laws)} entries for length {length!r}."
            )
        laws = [laws[0], *[laws[1]] * (1 if endless else int(length) - 1)]
    n = len(laws)
    copies = fields.get("count")
    if copies is not None and np.ndim(copies) == 0:
        fields["count"] = np.where(np.arange(n) == 0, copies, 1)
    if endless:
        fields["endless"] = np.arange(n) == 1
    return Forest.from_arrays(
        parent=np.arange(-1, n - 1), cost=cost, rewards=rewards, law=laws, names=names,
        states=states, **fields,
    )  # fmt: skip


@spelled_out(GivenTerms)
def side_by_side(
    *forests: Forest | Iterable[Forest],
    counts: Sequence[int] | None = None,
    outside: float | None = None,
    **terms: Unpack[GivenTerms],
) -> Forest:
    """Several lines, or any forests, side by side in one.

    Parameters
    ----------
    *forests : Forest or iterable of Forest
    counts : optional
        How many copies of each.
    outside, unit, rate, risk_tolerance, prizes, quotas, stated_error : optional
        Settings, needed where those of the forests differ.

    Returns
    -------
    Forest
        The boxes keep their order. Names stay if they all differ; otherwise each name begins with
        the number of its forest: ``"1/B"`` is box B of the second forest.

    Examples
    --------
    >>> import weitzman
    >>> one = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> two = weitzman.line([[0.5, 0.5]], rewards=[0, 20], cost=1)
    >>> weitzman.solve(weitzman.side_by_side(one, two)).value
    11.0
    """
    parts = list(chain.from_iterable([f] if isinstance(f, Forest) else f for f in forests))
    if not parts:
        raise InvalidForest("a forest needs at least one box, but no forests were given.")
    copies = [1] * len(parts) if counts is None else list(counts)
    if len(copies) != len(parts):
        raise InvalidForest(
            f"`counts` must have one entry per forest, but has {len(copies)} for {len(parts)}."
        )
    new = {name: x for name, x in terms.items() if x is not None}
    if outside is not None:
        new["outside"] = outside
    return type(parts[0])(**joined(parts, copies, new))


def expand(forest: Forest, limit: int = 100_000) -> Forest:
    """The same forest with every copy written out as a box of its own.

    Copies of box B are called ``"B#1"``, ``"B#2"`` and so on. More boxes than ``limit`` are an
    error.

    Examples
    --------
    >>> import weitzman
    >>> three = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=3)
    >>> len(three), len(weitzman.forest.expand(three))
    (1, 3)
    """
    forest.must_end("writing out copies")
    boxes = forest.boxes
    if boxes > limit:
        raise InvalidForest(
            f"with all copies written out this forest has {boxes} boxes, more than the limit of "
            f"{limit}. Raise `limit`, or leave the copies as counts: solving needs nothing else."
        )
    if boxes == len(forest):
        return forest
    copies = np.ones(len(forest), np.int64)
    for v in postorder(forest.parent)[0][::-1]:
        up = forest.parent[v]
        copies[v] = forest.count[v] * (copies[up] if up >= 0 else 1)
    start = np.cumsum(copies) - copies
    box = np.repeat(np.arange(len(forest)), copies)
    copy = np.arange(boxes) - start[box]
    up = forest.parent[box]
    return forest.take(
        box,
        parent=np.where(up < 0, -1, start[up] + copy // forest.count[box]),
        count=np.ones(boxes, np.int64),
        names=None if forest.names is None else _copy_names(forest.names, copies, box, copy),
    )


def _copy_names(
    names: tuple[str, ...], copies: IntArray, box: IntArray, copy: IntArray
) -> tuple[str, ...]:
    several, mark = (copies > 1).tolist(), "#"
    pairs = list(zip(box.tolist(), copy.tolist(), strict=True))
    while True:  # until no box was called so before
        new = tuple(f"{names[v]}{mark}{c + 1}" if several[v] else names[v] for v, c in pairs)
        if len(set(new)) == len(new):
            return new
        mark += "#"
