"""Which numbers matter: how the value and the first decision move with each of them.

``tornado`` moves costs, rewards and chances by a share and solves again; ``turning_points`` finds
how far each may move before another tree comes first; ``index_slopes`` gives exact derivatives of
an index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import FloatArray
from .._common.numbers import percent
from .._common.sharing import Executor, check_executor, spread
from ..engine.by_box import PerBox
from ..engine.evaluation import evaluate
from ..engine.resolving import Resolved, Resolver
from ..engine.solution import Solution
from ..engine.solver import solve
from ..errors import InvalidArgument, InvalidForest
from ..forest.model import Forest

_HALVINGS = 48  # of an interval of changes
_FURTHEST = 1e6  # changes, as shares of a number, beyond which nothing is looked for
NUMBERS = ("cost", "reward", "chance")


@dataclass(frozen=True, slots=True)
class Swing:
    """What moving one number down and up does.

    Attributes
    ----------
    box : str
        The box; "" for the outside option.
    number : str
        "cost", "reward" (all rewards of the box), "chance" (of its best state) or "outside".
    low, high : float
        The value with the number lowered, and with it raised.
    first_low, first_high : str or None
        The box to open first in each case; None for none.
    turns : bool
        Whether one of these differs from the first box with the numbers as given.
    """

    box: str
    number: str
    low: float
    high: float
    first_low: str | None
    first_high: str | None
    turns: bool

    @property
    def width(self) -> float:
        """How much the value moves from one end to the other."""
        return abs(self.high - self.low)


@dataclass(frozen=True, slots=True, eq=False)
class Tornado:
    """How the value and the first decision move with each number, the widest swing first.

    Attributes
    ----------
    solution : Solution
        The solution with the numbers as given.
    share : float
        How far each number was moved, as a share of it.
    swings : tuple of Swing
    """

    solution: Solution
    share: float
    swings: tuple[Swing, ...]

    def columns(self) -> dict[str, list[Any]]:
        """One entry per swing."""
        names = ("box", "number", "low", "high", "first_low", "first_high", "turns")
        return {name: [getattr(s, name) for s in self.swings] for name in names}

    def table(self) -> str:
        """The swings as text."""
        say = self.solution.forest.amounts
        lines = [f"value {say(self.solution.value)}, each number moved by {percent(self.share)}"]
        for s in self.swings:
            who = f"{s.number} of {s.box}" if s.box else s.number
            turn = f"   first: {s.first_low} / {s.first_high}" if s.turns else ""
            lines.append(f"{who:30}  {say(s.low)} to {say(s.high)}{turn}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()


def tornado(
    forest: Forest, *, share: float = 0.1, boxes: int = 20, threads: int | None = None,
    executor: Executor | None = None, progress: Callable[[int, int], None] | None = None,
) -> Tornado:  # fmt: skip
    """Move every cost, reward and chance by a share, one at a time, and solve again.

    Parameters
    ----------
    forest : Forest
    share : float
        How far to move each number, as a share of it. A chance is that of the best state of a box,
        after every state of its parent; the other chances are scaled so that all sum to 1.
    boxes : int
        Look at this many boxes, those opened most often first.
    threads : int, optional
        All cores by default.
    executor : optional
        Workers to share the boxes, as in :func:`~weitzman.solve`. The result does not depend
        on it, to the last bit.
    progress : callable, optional
        Called with (boxes done, boxes in all).

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, names=["chest"])
    >>> swings = weitzman.questions.tornado(chest, share=0.2).swings
    >>> [(s.number, round(s.low, 6), round(s.high, 6)) for s in swings[:2]]
    [('reward', 3.0, 5.0), ('chance', 3.0, 5.0)]
    """
    if not 0 < share < 1:
        raise InvalidArgument(f"`share` must lie between 0 and 1, but it is {share}.")
    forest.must_end("a tornado")
    check_executor(executor)
    base = solve(forest, threads=threads)
    most = np.argsort(-evaluate(base, threads=threads).opened, kind="stable")[:boxes].tolist()
    if executor is None:
        resolver = Resolver(forest, most, threads=threads)
        ends = spread(None, _all_ends, (resolver, share), most, progress)
    else:
        ends = spread(executor, _ends_elsewhere, (forest, share), most, progress)
    found = [
        (forest.name(v), number, two)
        for v, of_box in zip(most, ends, strict=True)
        for number, two in zip(NUMBERS, of_box, strict=True)
    ]
    if np.isfinite(forest.outside) and forest.outside != 0:
        moved_by = [solve(_with_outside(forest, d * share), threads=threads) for d in (-1, 1)]
        found.append(("", "outside", [(s.value, s.first_box) for s in moved_by]))
    swings = [_swing(base.first_box, *one) for one in found]
    return Tornado(base, share, tuple(sorted(swings, key=lambda s: -s.width)))


End = tuple[float, str | None]  # a value, and the box to open first


def _all_ends(how: tuple[Resolver, float], box: int) -> list[list[End]]:
    """The value and the first box with each number of a box lowered, and raised."""
    resolver, share = how
    solved = [[_solved(resolver, box, n, d * share) for d in (-1, 1)] for n in NUMBERS]
    return [[(s.value, s.first_box) for s in two] for two in solved]


def _ends_elsewhere(how: tuple[Forest, float], box: int) -> list[list[End]]:
    """On a worker: the same."""
    forest, share = how
    return _all_ends((Resolver(forest, [box], threads=1), share), box)


def _swing(now: str | None, box: str, number: str, ends: list[End]) -> Swing:
    (low, first_low), (high, first_high) = ends
    turns = now not in (first_low, first_high) or first_low != first_high
    return Swing(box, number, low, high, first_low, first_high, turns)


def _with_outside(f: Forest, share: float) -> Forest:
    return replace(f, outside=(1 + share) * f.outside)


def _solved(resolver: Resolver, box: int, number: str, share: float) -> Resolved:
    """The solution with one number of a box raised by a share of it."""
    f = resolver.forest
    if number == "cost":
        return resolver.change(box, cost=_dearer(f, box, share))
    if number == "chance":
        return resolver.change(box, law=_tilted(f, box, share))
    return resolver.change(box, rewards=_raised(f, box, share))


def _dearer(f: Forest, box: int, share: float) -> FloatArray:
    return np.asarray((1 + share) * f.costs[int(f.cost[box])])


def _raised(f: Forest, box: int, share: float) -> FloatArray:
    row = f.rewards[int(f.reward[box])]
    return np.asarray(row + share * np.where(np.isfinite(row), np.abs(row), 0.0))


def moved(f: Forest, box: int, number: str, share: float) -> Forest:
    """The forest with one number of a box raised by a share of it (lowered, if negative)."""
    if number == "cost":
        return f.changed(cost={box: _dearer(f, box, share)})
    if number == "reward":
        reward = f.reward.copy()
        reward[box] = len(f.rewards)
        names = (*f.state_names, f.state_names[int(f.reward[box])])
        higher = f.rewards.with_more([_raised(f, box, share)])
        return replace(f, reward=reward, rewards=higher, state_names=names)
    law = f.law.copy()
    law[box] = len(f.laws)
    return replace(f, law=law, laws=f.laws.with_more([_tilted(f, box, share)]))


def _tilted(f: Forest, box: int, share: float) -> FloatArray:
    """The law with the chance of the best state raised by a share of it, up to 1."""
    law = f.laws[int(f.law[box])]
    rewards = f.sign * f.rewards[int(f.reward[box])][0]
    best = rewards == rewards.max()
    p = law[:, best].sum(axis=1, keepdims=True)
    q = np.where(p < 1, np.minimum(p * (1 + share), 1.0), p)  # a sure state has no other to give to
    with np.errstate(divide="ignore", invalid="ignore"):
        up = np.where(p > 0, q / p, 1.0)
        down = np.where(p < 1, (1 - q) / (1 - p), 1.0)
    return np.asarray(np.where(best, law * up, law * down))


# -- turning points --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Turning:
    """How far one number may move before another box comes first.

    Attributes
    ----------
    box, number : str
        As in :class:`Swing`.
    share : float
        The change at which the first decision turns, as a share of the number: raised if positive,
        lowered if negative; infinity if no change turns it.
    """

    box: str
    number: str
    share: float


def turning_points(
    solution: Solution, *, boxes: int = 20, threads: int | None = None,
    executor: Executor | None = None, progress: Callable[[int, int], None] | None = None,
) -> tuple[Turning, ...]:  # fmt: skip
    """How far each number may move, alone, before the first decision turns; the nearest first.

    Parameters
    ----------
    solution : Solution
    boxes : int
        Look at this many boxes: those of the tree that comes first, then the roots next in line.
    threads : int, optional
        All cores by default.
    executor : optional
        Workers to share the numbers, as in :func:`~weitzman.solve`. The result does not depend
        on it, to the last bit.
    progress : callable, optional
        Called with (numbers done, numbers in all).

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, names=["chest"])
    >>> nearest = weitzman.questions.turning_points(weitzman.solve(chest))[0]
    >>> nearest.number, round(nearest.share, 6)
    ('reward', -0.8)
    """
    f = solution.forest
    f.must_end("a turning point")
    check_executor(executor)
    roots = f.roots
    at, index = solution.index_columns()
    signed = f.sign * index[at[roots]]
    order = roots[np.argsort(-signed, kind="stable")].tolist()
    lead = order[0]
    rival = max([f.sign * f.outside, *(np.sort(signed)[::-1][1:2]).tolist()])
    ahead = bool(signed.max() > f.sign * f.outside)
    mark = rival if ahead else f.sign * f.outside  # what the tree that comes first must exceed
    asked, names = list[_Asked](), list[str]()
    for root in order[:boxes]:
        first = root == lead and ahead
        goal = mark if first else max(f.sign * f.outside, float(signed.max()))
        within = f.within(root)[: boxes if first else 1].tolist()
        asked += [_Asked(root, i, n, goal, first) for i in range(len(within)) for n in NUMBERS]
        names += [f.name(v) for v in within for _ in NUMBERS]
    shares = spread(executor, _turns_there, f, asked, progress)
    out = [Turning(b, a.number, x) for b, a, x in zip(names, asked, shares, strict=True)]
    return tuple(sorted(out, key=lambda t: abs(t.share)))


class _Asked(NamedTuple):
    """Where a number lies, and what the index of its tree must come to."""

    root: int
    box: int  # among those of the tree
    number: str
    goal: float
    ahead: bool  # the tree comes first now


def _turns_there(forest: Forest, asked: _Asked) -> float:
    """On a worker or here: the share of a number at which its tree comes to the goal."""
    return _turns_at(forest.subtree(asked.root), *asked[1:])


def _turns_at(tree: Forest, box: int, number: str, goal: float, ahead: bool) -> float:
    """The share of a number at which the index of the tree comes to a goal."""

    resolver = Resolver(tree, [box])

    def leads(share: float) -> bool:
        return bool(tree.sign * _solved(resolver, box, number, share).first_index > goal)

    better = -1.0 if number == "cost" else 1.0
    if number == "reward" and tree.minimize:
        better = -1.0
    way = -better if ahead else better
    furthest = 1.0 if way < 0 else _furthest(tree, box, number)
    if leads(way * furthest) == ahead:
        return np.inf
    low, high = 0.0, furthest
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if leads(way * middle) == ahead else (low, middle)
    return way * high


def _furthest(tree: Forest, box: int, number: str) -> float:
    """How far a number can be raised: with a risk tolerance, utilities must not overflow."""
    share = _FURTHEST
    while tree.risk_tolerance is not None and share > 1e-3:
        try:
            moved(tree, box, number, share)
            break
        except InvalidForest:
            share /= 2
    return share


# -- derivatives of an index -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class IndexSlopes:
    """Exact derivatives of an index.

    Attributes
    ----------
    index : float
    cost : PerBox
        ``cost[i][state]``: in the cost of box i of ``forest`` after that state of its parent.
    reward : PerBox
        ``reward[i][state]``: in the reward of a state of box i.
    chance : array of float
        In the probability of each state of the box itself, the other probabilities fixed.
    forest : Forest
        The box, as number 0, and all below it.
    """

    index: float
    cost: PerBox
    reward: PerBox
    chance: FloatArray
    forest: Forest


def index_slopes(
    solution: Solution, box: str | int, state: str | int | float | None = None
) -> IndexSlopes:
    """Derivatives of an index in all costs, rewards and probabilities that it depends on.

    At the index, opening the box and leaving it closed are worth the same. So if a change of a
    number adds g to the value of opening, the index rises by g divided by the probability that
    opening ends above the index.
    Where an index has a kink (ties), derivatives are one-sided.

    Parameters
    ----------
    solution : Solution
    box : str or int
    state : str or int, optional
        What the parent of the box showed; left out for a root.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> slopes = weitzman.questions.index_slopes(weitzman.solve(chest), 0)
    >>> float(slopes.cost[0][0]), slopes.reward[0].tolist(), slopes.chance.tolist()
    (-2.0, [0.0, 1.0], [0.0, 4.0])
    """
    f = solution.forest
    f.must_end("a derivative of an index")
    if f.factors is not None or f.risk_tolerance is not None:
        raise InvalidArgument(
            "derivatives of an index are for expected payoffs without discounting. Use a tornado."
        )
    sigma = solution.index(box, state)
    tree = f.subtree(box, state)
    if not np.isfinite(sigma):
        raise InvalidArgument("the index of this box is infinite: nothing can be found in it.")
    free = tree.changed(cost={0: 0.0}, outside=sigma)
    e = evaluate(solve(free, exact=len(free) < 1000))
    above = 1.0 - e.outside
    if above <= 0:
        raise InvalidArgument(
            "the index of a free box is the best that it can hold: it has no derivatives."
        )
    opened = e.opened_after
    return IndexSlopes(
        sigma,
        PerBox(tree, -tree.sign * opened.data / above, opened.start),
        PerBox(tree, e.chosen.data / above, e.chosen.start),
        _gains(free, sigma) / above,
        tree,
    )


def _gains(free: Forest, sigma: float) -> FloatArray:
    """For each state of box 0: what opening then gains over the index."""
    k, resolver = len(free.states(0)), Resolver(free, [0])
    sure = np.eye(k)
    return np.array([resolver.change(0, law=sure[y]).value - sigma for y in range(k)])
