"""Which numbers matter: how the value and the first decision move with each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import BoolArray, FloatArray, check_counts
from .._common.numbers import percent
from .._common.sharing import Executor, check_executor, spread
from .._common.text import ResultTable
from ..engine.evaluation import evaluate
from ..engine.solution import Solution
from ..engine.solver import solve
from ..engine.weights import barred
from ..engine.what_if import as_solution, crossing
from ..errors import InvalidArgument, InvalidForest
from ..forest.model import Forest

_FURTHEST = 1e6  # changes, as shares of a number, beyond which nothing is looked for


@dataclass(frozen=True, slots=True)
class Swing:
    """What moving one number down and up does.

    Attributes
    ----------
    box, number : str
        The box ("" for the outside option), and what was moved: "cost", "reward" (all rewards of
        the box), "chance" (of its best state, after which continuing is worth most) or "outside".
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
class Tornado(ResultTable):
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

    def headline(self) -> str:
        """The value, and how far each number was moved."""
        say = self.solution.forest.amounts
        return f"value {say(self.solution.value)}, each number moved by {percent(self.share)}"

    def cells(self) -> list[list[str]]:
        """The swings as text."""
        say = self.solution.forest.amounts
        return [["number", "low", "high", "first"]] + [
            [
                f"{s.number} of {s.box}" if s.box else s.number, say(s.low), say(s.high),
                f"{s.first_low or 'nothing'} / {s.first_high or 'nothing'}" if s.turns else "",
            ]
            for s in self.swings
        ]  # fmt: skip


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
    threads, executor, progress
        As in :func:`solve_many`, box by box.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, names=["chest"])
    >>> swings = weitzman.questions.tornado(chest, share=0.2).swings
    >>> [(s.number, round(s.low, 6), round(s.high, 6)) for s in swings[:2]]
    [('reward', 3.0, 5.0), ('chance', 3.0, 5.0)]
    """
    if isinstance(share, bool) or not 0 < share < 1:
        raise InvalidArgument(f"`share` must lie between 0 and 1, but it is {share}.")
    check_counts(boxes=boxes)
    forest.must_end("a tornado")
    check_executor(executor)
    base = solve(forest, threads=threads)
    most = np.argsort(-evaluate(base).opened, kind="stable")[:boxes].tolist()
    data = forest, share, threads if executor is None else 1
    found = spread(executor, _swings_of, data, most, progress)
    if np.isfinite(forest.outside) and forest.outside != 0:
        low, high = (
            _end(replace(forest, outside=(1 + d) * forest.outside), threads)
            for d in (-share, share)
        )
        found.append([("", "outside", low, high)])
    swings = [
        Swing(box, number, low, high, first, then, {first, then} != {base.first_box})
        for of_box in found
        for box, number, (low, first), (high, then) in of_box
    ]
    return Tornado(base, share, tuple(sorted(swings, key=lambda s: -s.width)))


End = tuple[float, str | None]  # a value, and the box to open first


def _end(forest: Forest, threads: int | None) -> End:
    solution = solve(forest, threads=threads)
    return solution.value, solution.first_box


def _swings_of(data: tuple[Forest, float, int | None], box: int) -> list[tuple[str, str, End, End]]:
    """On a worker or here: both ends of each number of a box."""
    f, share, threads = data
    best, found = best_states(f, box), []
    for number in _numbers(f, box):
        low, high = (_end(moved(f, box, number, d, best), threads) for d in (-share, share))
        found.append((f.name(box), number, low, high))
    return found


def _numbers(f: Forest, box: int) -> list[str]:
    """What can be moved: signals have no reward, and a sure state has no chance."""
    rewards, law = f.rewards[int(f.reward[box])][0], f.laws[int(f.law[box])]
    there = {
        "cost": True,
        "reward": bool(np.isfinite(rewards[law.max(axis=0) > 0]).any()),
        "chance": bool(((law > 0).sum(axis=1) > 1).any()),
    }
    return [number for number, some in there.items() if some]


def moved(f: Forest, box: int, number: str, share: float, best: BoolArray | None = None) -> Forest:
    """The forest with one number of a box raised by a share of it (lowered, if negative).

    ``best`` are the best states of the box, if they are already known.
    """
    if number == "cost":
        return f.changed(cost={box: (1 + share) * f.costs[int(f.cost[box])]})
    if number == "reward":
        row = f.rewards[int(f.reward[box])][0]
        higher = row + share * np.where(np.isfinite(row), np.abs(row), 0.0)
        return f.changed(rewards={box: higher})
    # the chance of the best state is raised by a share of it, up to 1
    law = f.laws[int(f.law[box])]
    best = best_states(f, box) if best is None else best
    p = law[:, best].sum(axis=1, keepdims=True)
    q = np.where(p < 1, np.minimum(p * (1 + share), 1.0), p)  # a sure state has no other to give to
    with np.errstate(divide="ignore", invalid="ignore"):
        up = np.where(p > 0, q / p, 1.0)
        down = np.where(p < 1, (1 - q) / (1 - p), 1.0)
    return f.changed(law={box: np.where(best, law * up, law * down)})


def best_states(f: Forest, box: int) -> BoolArray:
    """The states of a box after which continuing is worth most, with the outside option in hand."""
    rewards = f.sign * f.rewards[int(f.reward[box])][0]
    if (f.parent != box).all():
        return np.asarray(rewards == rewards.max())
    worth = f.sign * _after_each_state(f.subtree(box, None if f.parent[box] < 0 else 0))
    return np.asarray(worth == worth.max())


def _after_each_state(tree: Forest) -> FloatArray:
    """What continuing is worth after each state of box 0, which is a root: free, and at once."""
    nothing = {"cost": 0.0, "factor": 1.0, "duration": 0.0}
    there = {name: {0: x} for name, x in nothing.items() if getattr(tree, f"{name}s") is not None}
    free = tree.changed(**there)  # type: ignore[arg-type]
    sure = np.eye(tree.laws.shape[tree.law[0], 1])
    return np.array([solve(free.changed(law={0: row})).value for row in sure])


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
    threads, executor, progress
        As in :func:`solve_many`, number by number.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, names=["chest"])
    >>> turns = weitzman.questions.turning_points(weitzman.solve(chest))
    >>> sorted((turn.number, round(turn.share, 6)) for turn in turns)
    [('chance', -0.8), ('cost', 4.0), ('reward', -0.8)]
    """
    f = as_solution(solution, "a turning point").forest
    f.must_end("a turning point")
    check_counts(boxes=boxes)
    check_executor(executor)
    at, index = solution.index_columns()
    signed, outside = f.sign * index[at[f.roots]], f.sign * f.outside
    signed[barred(f)[f.roots]] = -np.inf
    order = np.argsort(-signed, kind="stable")[: np.sum(~barred(f)[f.roots])]
    if not len(order):  # no group has a place: nothing turns the decision to open nothing
        return ()
    ahead = bool(signed[order[0]] > outside)
    asked, names = list[_Asked](), list[str]()
    for place, root in enumerate(f.roots[order[:boxes]].tolist()):
        leads = place == 0 and ahead
        # what the tree must fall to, or exceed, for another first decision
        rivals = signed[order[1:2]] if leads else signed[order[:1]]
        goal = max([outside, *rivals.tolist()])
        within = f.within(root)[: boxes if leads else 1].tolist()
        for i, v in enumerate(within):
            asked += [_Asked(root, i, number, goal, leads) for number in _numbers(f, v)]
            names += [f.name(v)] * (len(asked) - len(names))
    shares = spread(executor, _turns_at, f, asked, progress)
    out = [Turning(b, a.number, x) for b, a, x in zip(names, asked, shares, strict=True)]
    return tuple(sorted(out, key=lambda t: abs(t.share)))


class _Asked(NamedTuple):
    """Where a number lies, and what the index of its tree must come to."""

    root: int
    box: int  # among those of the tree
    number: str
    goal: float
    ahead: bool  # the tree comes first now


def _turns_at(forest: Forest, asked: _Asked) -> float:
    """On a worker or here: the share of a number at which its tree comes to the goal."""
    _, box, number, goal, ahead = asked
    tree = forest.subtree(asked.root)
    best = best_states(tree, box) if number == "chance" else None

    def lead(share: float) -> float:
        found = solve(moved(tree, box, number, share, best)).index(0)
        return float(tree.sign * found) - goal

    worse = number == "cost" or (number == "reward" and tree.minimize)
    way = -1.0 if worse != ahead else 1.0
    furthest = 1.0 if way < 0 else _FURTHEST
    while way > 0 and tree.risk_tolerance is not None and furthest > 1e-3:
        try:  # utilities must not overflow
            moved(tree, box, number, furthest)
            break
        except InvalidForest:
            furthest /= 2
    if (lead(way * furthest) > 0) == ahead:
        return np.inf
    low, high = 0.0, min(1.0, furthest)
    while (lead(way * high) > 0) == ahead:  # small changes are found to more digits
        low, high = high, min(16.0 * high, furthest)
    return way * crossing(lambda share: lead(way * share), low, high)
