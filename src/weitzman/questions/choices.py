r"""Several ways to look into a box, or to take it unseen: a policy, and a bound on all policies.

Alternatives are boxes with one parent; at most one of them may be opened. No index policy is
optimal in general and the problem is NP-hard, but no policy earns more than the bound of Theorem 4
on the theory page: for a group of alternatives, :math:`\varphi(x)` is the largest among its
members. Committing to one alternative of each group beforehand leaves a plain forest, which is
solved to optimality.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np

from .._common.arrays import FloatArray
from .._common.sharing import Executor, check_executor, spread
from .._kernels.structure import postorder
from ..engine.solution import Solution, mean_cost
from ..engine.solver import solve
from ..errors import InvalidArgument
from ..forest.model import Forest

_ALL = 512  # commitments that are all tried; beyond, one group is changed at a time
_MOST = 5000  # boxes that the bound is computed for

Group = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Commitment:
    """One alternative of each group, chosen beforehand, and a bound on how good the choice is.

    Attributes
    ----------
    forest : Forest
        The boxes that are left; those taken unseen are free and hold their mean.
    solution : Solution
        The optimal policy of that forest.
    value : float
        What it earns: at most the optimum with all alternatives.
    bound : float
        No policy earns more (less, when minimizing).
    chosen : tuple of str
        The alternative of each group, in the order of the groups; ``"<name>, unseen"`` for a box
        that is taken without looking.
    """

    forest: Forest
    solution: Solution
    value: float
    bound: float
    chosen: tuple[str, ...]

    @property
    def within(self) -> float:
        """The most by which the optimum can exceed the value, as a share of the bound."""
        loss = abs(self.bound - self.value)
        return 0.0 if loss == 0 else loss / max(abs(self.bound), 1e-300)

    @property
    def status(self) -> str:
        """How good the commitment is, in words."""
        if self.within < 1e-12:
            return "Optimal: the bound is reached."
        return f"Within {100 * self.within:.3g} % of the optimum."

    def __repr__(self) -> str:
        return f"Commitment(value={self.value:.10g}, bound={self.bound:.10g}, {self.status})"


def commit(
    forest: Forest,
    alternatives: Sequence[Sequence[str | int]] = (),
    *,
    unseen: Sequence[str | int] | bool = False,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Commitment:
    """Choose one way to look into each box, with a bound on what any policy can earn.

    Parameters
    ----------
    forest : Forest
        With all alternatives in it.
    alternatives : list of groups
        Boxes with one parent, each with all below it; at most one of a group may be opened.
    unseen : list of str or int, or True for all roots
        Roots that may also be taken without looking, at their mean reward.
    threads : int, optional
        All cores by default.
    executor : optional
        Workers to share the commitments, as in :func:`~weitzman.solve`. The result does not depend
        on it, to the last bit.
    progress : callable, optional
        Called with (commitments done, commitments in all), as far as they are known.

    Examples
    --------
    A chest can be opened for 4, or taken unseen.

    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=4, names=["chest"])
    >>> best = weitzman.questions.commit(chest, unseen=True)
    >>> best.value, best.chosen, best.status
    (5.0, ('chest, unseen',), 'Optimal: the bound is reached.')
    """
    _check(forest)
    check_executor(executor)
    blind = forest.roots.tolist() if unseen is True else [forest.box(b) for b in unseen or ()]
    groups = _groups(forest, alternatives, blind)
    bound = _bound(forest, groups, blind)
    sizes = [len(g) for g in groups]

    data = forest, groups, threads if executor is None else 1

    def values(choices: Sequence[Sequence[int]]) -> list[float]:
        return spread(executor, _value_of, data, choices, progress)

    if prod(sizes) <= _ALL:
        choices = list(product(*map(range, sizes)))
        found = values(choices)
        best = choices[found.index(max(found))]
    else:
        best = _one_at_a_time(values, sizes)
    left = _committed(forest, groups, best)
    solution = solve(left, threads=threads)
    chosen = (g[i] for g, i in zip(groups, best, strict=True))
    names = tuple(forest.name(v) if v >= 0 else f"{forest.name(-1 - v)}, unseen" for v in chosen)
    bound = forest.sign * (bound + forest.stated_error)
    return Commitment(left, solution, solution.value, bound, names)


def _value_of(data: tuple[Forest, list[Group], int | None], choice: Sequence[int]) -> float:
    """What a commitment is worth, to be maximized."""
    forest, groups, threads = data
    return forest.sign * solve(_committed(forest, groups, choice), threads=threads).value


def _check(f: Forest) -> None:
    f.must_end("a choice of alternatives")
    f.must_be_plain("a choice of alternatives")
    if len(f) > _MOST:
        raise InvalidArgument(
            f"the bound is computed for at most {_MOST} boxes, but there are {len(f)}."
        )


def _groups(
    f: Forest, alternatives: Sequence[Sequence[str | int]], blind: Sequence[int]
) -> list[Group]:
    """Groups by number; ``-1 - v`` stands for taking box v unseen."""
    groups = [tuple(f.box(b) for b in group) for group in alternatives]
    if not all(groups):
        raise InvalidArgument("a group of alternatives must name a box, but one group is empty.")
    named = [v for g in groups for v in g]
    if len(set(named)) < len(named):
        raise InvalidArgument("a box may be in one group of alternatives, but one is in two.")
    for g in groups:
        if len({int(f.parent[v]) for v in g}) > 1 or any(f.count[v] > 1 for v in g):
            raise InvalidArgument(
                f"alternatives must have one parent and no copies, but those of box "
                f"{f.name(g[0])!r} do not."
            )
    for v in blind:
        if f.parent[v] >= 0 or f.count[v] > 1:
            raise InvalidArgument(
                f"what is taken unseen must be a root without copies, but box {f.name(v)!r} is not."
            )
        if not np.isfinite(f.rewards[int(f.reward[v])][f.laws[int(f.law[v])] > 0]).all():
            raise InvalidArgument(
                f"what is taken unseen must have a mean, but box {f.name(v)!r} has a state without "
                f"a reward."
            )
        home = next((i for i, g in enumerate(groups) if v in g), None)
        if home is None:
            groups.append((v, -1 - v))
        else:
            groups[home] += (-1 - v,)
    return groups


def _one_at_a_time(
    values: Callable[[list[list[int]]], list[float]], sizes: Sequence[int]
) -> tuple[int, ...]:
    """Change one group at a time as long as that helps."""
    choice, better = [0] * len(sizes), True
    best = values([choice])[0]
    while better:
        better = False
        for i, size in enumerate(sizes):
            others = [[*choice[:i], j, *choice[i + 1 :]] for j in range(size)]
            found = values(others)
            if max(found) > best:
                best, better = max(found), True
                choice = others[found.index(best)]
    return tuple(choice)


def _committed(f: Forest, groups: Sequence[Group], choice: Sequence[int]) -> Forest:
    """The forest without the alternatives that were not chosen."""
    drop = np.zeros(len(f) + 1, bool)
    unseen: set[int] = set()
    for g, i in zip(groups, choice, strict=True):
        for v in g:
            if v >= 0 and v != g[i]:
                drop[v] = True
        if g[i] < 0:
            unseen.add(-1 - g[i])
    for v in postorder(f.parent)[0][::-1].tolist():
        drop[v] |= drop[f.parent[v]]  # the spare entry stands above all roots
    keep = np.flatnonzero(~drop[:-1])
    blind = np.array(sorted(unseen), np.int64)
    place = np.full(len(f) + 1, -1)
    place[keep] = np.arange(len(keep))
    names = [f.name(v) for v in keep.tolist()] + [f"{f.name(v)}, unseen" for v in blind.tolist()]
    each = np.concatenate([keep, blind])
    left = f.take(
        each,
        parent=np.concatenate([place[f.parent[keep]], np.full(len(blind), -1)]),
        after=np.where(np.arange(len(each)) < len(keep), -1, 0),
        names=tuple(names),
    )
    if not len(blind):
        return left
    # what is taken unseen is free, and shows its mean in its only state
    law, reward, cost = left.law.copy(), left.reward.copy(), left.cost.copy()
    law[len(keep) :], cost[len(keep) :] = len(left.laws), len(left.costs)
    reward[len(keep) :] = len(left.rewards) + np.arange(len(blind))
    means = [np.full((1, 1), _mean(f, v)) for v in blind.tolist()]
    return replace(
        left, law=law, reward=reward, cost=cost, laws=left.laws.with_more([np.ones((1, 1))]),
        rewards=left.rewards.with_more(means), costs=left.costs.with_more([np.zeros((1, 1))]),
        state_names=(*left.state_names, *([None] * len(blind))),
    )  # fmt: skip


def _mean(f: Forest, v: int) -> float:
    law, rewards = f.laws[int(f.law[v])][0], f.rewards[int(f.reward[v])][0]
    return float(np.sum(law[law > 0] * rewards[law > 0]))


# -- the bound: convex functions, each as a distribution of a capped value ------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Value:
    """A capped value: rising points and the probability of at most each of them."""

    x: FloatArray
    below: FloatArray  # P(value <= x), 1 at the end

    def function(self, at: FloatArray) -> FloatArray:
        """E max(x, value)."""
        mass = np.diff(self.below, prepend=0.0)
        missing = 1.0 - self.below[-1]
        assert abs(missing) < 1e-9, "a distribution"
        real = np.isfinite(self.x)
        shown = np.maximum(at[:, None], self.x[real]) @ mass[real]
        return np.asarray(shown + at * mass[~real].sum())


def _bound(f: Forest, groups: Sequence[Group], blind: Sequence[int]) -> float:
    """E max(outside, largest value of all roots), with the better of alternatives everywhere."""
    group_of = {v: i for i, g in enumerate(groups) for v in g if v >= 0}
    value: dict[tuple[int, int], _Value] = {}
    children: dict[int, list[int]] = {-1: f.roots.tolist()}
    for v in range(len(f)):
        if f.parent[v] >= 0:
            children.setdefault(int(f.parent[v]), []).append(v)

    def together(boxes: Sequence[int], s: int) -> list[_Value]:
        """Independent values of boxes after state s, alternatives as one."""
        out, seen = [], set()
        for v in boxes:
            i = group_of.get(v)
            if i is None:
                out.append(_power(value[v, s], int(f.count[v])))
            elif i not in seen:
                seen.add(i)
                out.append(
                    _better([value[w, s] if w >= 0 else _sure(f, -1 - w) for w in groups[i]])
                )
        return out

    for v in postorder(f.parent)[0].tolist():
        law, cost = f.laws[int(f.law[v])], mean_cost(f, v)
        rewards = f.sign * f.rewards[int(f.reward[v])][0]
        after = [
            _largest([_Value(np.array([r]), np.ones(1)), *together(children.get(v, []), y)])
            for y, r in enumerate(rewards)
        ]
        for s, row in enumerate(law):
            value[v, s] = _capped(after, row, float(cost[s]))
    x0 = f.sign * f.outside
    best = _largest([_Value(np.array([x0]), np.ones(1)), *together(children[-1], 0)])
    mass = np.diff(best.below, prepend=0.0)
    return float(np.sum(best.x[mass > 0] * mass[mass > 0]))


def _sure(f: Forest, v: int) -> _Value:
    return _Value(np.array([f.sign * _mean(f, v)]), np.ones(1))


def _power(a: _Value, m: int) -> _Value:
    return a if m == 1 else _Value(a.x, a.below**m)


def _largest(parts: Sequence[_Value]) -> _Value:
    """The largest of independent values."""
    if len(parts) == 1:
        return parts[0]
    x = np.unique(np.concatenate([p.x for p in parts]))
    below = np.ones(len(x))
    for p in parts:
        i = np.searchsorted(p.x, x, side="right")
        below *= np.concatenate([[0.0], p.below])[i]
    keep = np.flatnonzero(np.diff(below, prepend=0.0) > 0)
    return _Value(x[keep], below[keep])


def _capped(after: Sequence[_Value], row: FloatArray, cost: float) -> _Value:
    """The value of a box from those after each of its states: mixed, and capped at its index."""
    x = np.unique(np.concatenate([a.x for a, p in zip(after, row, strict=True) if p > 0]))
    below = np.zeros(len(x))
    for a, p in zip(after, row, strict=True):
        if p > 0:
            below += p * np.concatenate([[0.0], a.below])[np.searchsorted(a.x, x, side="right")]
    below[-1] = 1.0
    tail = 1.0 - np.concatenate([[0.0], below[:-1]])  # P(W >= x)
    gap = np.diff(x)  # area above x[i] is the sum of tail[j + 1] * gap[j] for j >= i
    area = np.concatenate([np.cumsum((tail[1:] * gap)[::-1])[::-1], [0.0]])
    if not np.isfinite(x[-1]):
        return _Value(np.array([-np.inf]), np.ones(1))
    i = int(np.flatnonzero(area <= cost)[0])  # the index lies at or below x[i]
    sigma = x[i] - (cost - area[i]) / tail[i] if cost > 0 else x[i]
    keep = x < sigma
    return _Value(np.append(x[keep], sigma), np.append(below[keep], 1.0))


def _better(parts: Sequence[_Value]) -> _Value:
    """The value whose E max(x, .) is the largest among the given values, for every x."""
    best = parts[0]
    for other in parts[1:]:
        best = _better_of_two(best, other)
    return best


def _better_of_two(a: _Value, b: _Value) -> _Value:
    points = np.unique(np.concatenate([a.x, b.x]))
    points = points[np.isfinite(points)]
    if len(points) == 0:
        return a
    grid = np.concatenate([[points[0] - 1.0], points])
    d = a.function(grid) - b.function(grid)
    cross = np.flatnonzero(d[:-1] * d[1:] < 0)
    met = grid[cross] + (grid[cross + 1] - grid[cross]) * d[cross] / (d[cross] - d[cross + 1])
    left = _slope_before(a, points[0]), _slope_before(b, points[0])
    far: list[float] = []
    if d[0] != 0 and (left[0] - left[1]) * d[0] > 0:  # further to the left they meet again
        far = [float(grid[0] - d[0] / (left[0] - left[1]))]
    x = np.unique(np.concatenate([far, met, points]))
    height = np.maximum(a.function(x), b.function(x))
    before = x[0] - 1.0
    start = max(float(a.function(np.array([before]))[0]), float(b.function(np.array([before]))[0]))
    slope = np.append(np.diff(height) / np.diff(x), 1.0)
    first = float(height[0] - start)  # slope left of everything: mass at minus infinity
    below = np.maximum.accumulate(np.minimum(np.maximum(slope, first), 1.0))
    if first > 0:
        return _Value(np.append(-np.inf, x), np.append(first, below))
    return _Value(x, below)


def _slope_before(a: _Value, x: float) -> float:
    """P(value < x)."""
    return float(a.below[a.x < x][-1]) if (a.x < x).any() else 0.0
