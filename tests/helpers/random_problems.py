"""Hypothesis strategies for small random problems, in the form of `reference.Problem`.

Probabilities are multiples of 1/16, rewards and costs of 1/8 or 1/4, so that nothing is lost when
they become floats. `lines`, `several_lines`, `independent_boxes`, `forests` and `dags` differ in
the shape of the graph; each passes its keywords on to `problems`, whose flags say what may occur.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from reference import Number, Problem, States, Table, parent_states

Parents = list[tuple[int, ...]]

GRAIN = 16  # probabilities are multiples of 1/GRAIN


@st.composite
def probabilities(draw: DrawFn, size: int, *, zeros: bool = True) -> tuple[Fraction, ...]:
    """A probability vector: the gaps between sorted cuts of the unit interval."""
    low = 0 if zeros else 1
    cut = st.integers(low, GRAIN - low)
    cuts = sorted(draw(st.lists(cut, min_size=size - 1, max_size=size - 1, unique=not zeros)))
    ends = zip([0, *cuts], [*cuts, GRAIN], strict=True)
    return tuple(Fraction(right - left, GRAIN) for left, right in ends)


@st.composite
def _rewards(
    draw: DrawFn, sizes: list[int], *, ties: bool, signals: bool
) -> tuple[tuple[Fraction | None, ...], ...]:
    total = sum(sizes)
    if ties:
        level = st.integers(-8, 32).map(lambda z: Fraction(z, 4))
        pool = draw(st.lists(level, min_size=total, max_size=total))
    else:
        level = st.integers(-16, 64).map(lambda z: Fraction(z, 8))
        pool = draw(st.lists(level, min_size=total, max_size=total, unique=True))
    signal = st.sampled_from([False] * 4 + [True]) if signals else st.just(False)
    return tuple(tuple(None if draw(signal) else pool.pop() for _ in range(size)) for size in sizes)


CostKind = Literal["fixed", "parent", "random", "any"]


@st.composite
def _costs(
    draw: DrawFn, rows: list[States], size: int, *, kind: CostKind, free: bool
) -> dict[States, tuple[Fraction, ...]]:
    if kind == "any":
        kind = draw(st.sampled_from(["fixed", "parent", "random"]))
    price = st.integers(0 if free else 1, 10).map(lambda z: Fraction(z, 8))
    if kind == "random":
        return {states: draw(st.tuples(*[price] * size)) for states in rows}
    if kind == "parent":
        return {states: (draw(price),) * size for states in rows}
    return dict.fromkeys(rows, (draw(price),) * size)


def _relabel(parents: Parents, label: list[int]) -> Parents:
    """Call box ``i`` by its new number, ``label[i]``."""
    renamed: Parents = [()] * len(parents)
    for box, above in enumerate(parents):
        renamed[label[box]] = tuple(label[p] for p in above)
    return renamed


@st.composite
def problems(
    draw: DrawFn,
    shapes: SearchStrategy[Parents],
    *,
    max_states: int = 3,
    zeros: bool = True,
    ties: bool = True,
    signals: bool = True,
    costs: CostKind = "any",
    free: bool = True,
    outside: Literal["any", "zero", "none"] = "any",
    shuffle: bool = True,
) -> Problem:
    """A problem on a graph drawn from `shapes`, its boxes having 1 to `max_states` states each.

    Parameters
    ----------
    shapes
        Gives the parents of each box, parents first.
    zeros
        Probabilities may be zero.
    ties
        Rewards may be equal; otherwise all rewards of the problem differ.
    signals
        States may have no reward, even all states of a box.
    costs
        ``"fixed"``: one number for a box; ``"parent"``: one for each state of its parents;
        ``"random"``: one for each of those and each own state; ``"any"``: any of these, by box.
    free
        Costs may be zero.
    outside
        ``"any"``: a number, also negative; ``"zero"``; ``"none"``: there is no outside option.
    shuffle
        Boxes are numbered at random, so that parents can come after children.
    """
    parents = draw(shapes)
    if shuffle:
        parents = _relabel(parents, draw(st.permutations(range(len(parents)))))
    sizes = [draw(st.integers(1, max_states)) for _ in parents]
    rewards = draw(_rewards(sizes, ties=ties, signals=signals))
    law, cost = [], []
    for above, size in zip(parents, sizes, strict=True):
        rows: list[States] = [()]
        for p in above:
            rows = [(*row, s) for row in rows for s in range(sizes[p])]
        law.append({states: draw(probabilities(size, zeros=zeros)) for states in rows})
        cost.append(draw(_costs(rows, size, kind=costs, free=free)))
    level = {
        "any": st.integers(-16, 14).map(lambda z: Fraction(z, 4)),
        "zero": st.just(Fraction(0)),
        "none": st.none(),
    }
    return Problem(tuple(parents), rewards, tuple(law), tuple(cost), draw(level[outside]))


@st.composite
def forest_shapes(draw: DrawFn, min_boxes: int, max_boxes: int) -> Parents:
    """Each box is a root or the child of an earlier one."""
    size = draw(st.integers(min_boxes, max_boxes))
    choices = [draw(st.integers(-1, box - 1)) for box in range(size)]
    return [() if p < 0 else (p,) for p in choices]


def line_shape(size: int) -> Parents:
    """Each box is the child of the one before."""
    return [(box - 1,) if box else () for box in range(size)]


@st.composite
def several_line_shapes(draw: DrawFn, min_boxes: int, max_boxes: int) -> Parents:
    """A root or a child of the box just before: lines, one after the other."""
    size = draw(st.integers(min_boxes, max_boxes))
    roots = [draw(st.booleans()) for _ in range(size)]
    return [() if root or box == 0 else (box - 1,) for box, root in enumerate(roots)]


@st.composite
def dag_shapes(draw: DrawFn, min_boxes: int, max_boxes: int) -> Parents:
    """Each box has any of the earlier ones for parents, but no more than two."""
    size = draw(st.integers(min_boxes, max_boxes))
    return [
        tuple(sorted(draw(st.sets(st.integers(0, box - 1), max_size=2)))) if box else ()
        for box in range(size)
    ]


def lines(*, min_boxes: int = 1, max_boxes: int = 4, **flags: Any) -> SearchStrategy[Problem]:
    """One line; flags as for `problems`."""
    shapes = st.integers(min_boxes, max_boxes).map(line_shape)
    return problems(shapes, **flags)


def several_lines(
    *, min_boxes: int = 1, max_boxes: int = 4, **flags: Any
) -> SearchStrategy[Problem]:
    """Lines side by side; flags as for `problems`."""
    return problems(several_line_shapes(min_boxes, max_boxes), **flags)


def independent_boxes(
    *, min_boxes: int = 1, max_boxes: int = 4, **flags: Any
) -> SearchStrategy[Problem]:
    """Roots only; flags as for `problems`."""
    return problems(st.integers(min_boxes, max_boxes).map(lambda size: [()] * size), **flags)


def forests(*, min_boxes: int = 1, max_boxes: int = 4, **flags: Any) -> SearchStrategy[Problem]:
    """Any forest; flags as for `problems`."""
    return problems(forest_shapes(min_boxes, max_boxes), **flags)


def dags(*, min_boxes: int = 1, max_boxes: int = 4, **flags: Any) -> SearchStrategy[Problem]:
    """Any graph without cycles, at most two parents a box; flags as for `problems`."""
    return problems(dag_shapes(min_boxes, max_boxes), **flags)


@st.composite
def tables(draw: DrawFn, problem: Problem, *, low: int, high: int, grain: int) -> Table:
    """A number for each box, states of its parents and own state: multiples of 1/grain."""
    entry = st.integers(low, high).map(lambda z: Fraction(z, grain))
    return tuple(
        {s: tuple(draw(entry) for _ in row) for s, row in law.items()} for law in problem.law
    )


@st.composite
def arbitrary_indices(draw: DrawFn, problem: Problem) -> tuple[dict[States, Number], ...]:
    """Indices out of thin air, for any problem: any such policy is a legal strategy."""
    level = st.integers(-16, 40).map(lambda z: Fraction(z, 4))
    return tuple(
        {states: draw(level) for states in parent_states(problem, box)} for box in problem.boxes
    )


def both_or_nothing() -> Problem:
    """Two coins, seen at cost 1 each, then a box of 16 at cost 1 that is full if they agree."""
    full, empty = (Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))
    coins = {(0, 0): full, (0, 1): empty, (1, 0): empty, (1, 1): full}
    fair = {(): (Fraction(1, 2), Fraction(1, 2))}
    return Problem(
        parents=((), (), (0, 1)),
        rewards=((None, None), (None, None), (Fraction(16), Fraction(0))),
        law=(fair, fair, coins),
        cost=(
            {(): (Fraction(1), Fraction(1))},
            {(): (Fraction(1), Fraction(1))},
            {states: (Fraction(1), Fraction(1)) for states in coins},
        ),
    )
