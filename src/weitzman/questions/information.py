r"""What information is worth, and which way to get it.

Knowing states, or the outcome of tests, beforehand: given what is told, the other boxes still form
a forest with a Markov law on every edge; each law is weighed with the likelihood of what is told
below. See the theory page, section 16.

Several ways to look into a box, or to take it unseen: alternatives are boxes with one parent, at
most one of which may be opened. The problem is NP-hard, but no policy earns more than the bound of
Theorem 4: for a group of alternatives, :math:`\varphi(x)` is the largest among its members.
Committing to one of each group beforehand leaves a plain forest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import FloatArray, check_counts, error_of_mean
from .._common.law import Law
from .._common.numbers import Amounts
from .._common.sharing import Executor, check_executor, spread
from .._common.text import ResultTable
from .._kernels.structure import postorder
from ..engine.solution import Solution, mean_cost
from ..engine.solver import solve
from ..errors import InvalidArgument
from ..forest.model import Forest
from .sweeps import solve_each

_ENUMERATED = 4096  # combinations of outcomes that are all looked at; beyond, they are sampled
_ALL = 512  # commitments that are all tried; beyond, one group is changed at a time
_MOST = 5000  # boxes that the bound is computed for

Group = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Knowing(ResultTable):
    """What information is worth.

    Attributes
    ----------
    without, value : float
        The value without the information, and the expected value with it (in the user's sign);
        with a risk tolerance, certainty equivalents.
    worth : float
        What the information adds: the most to pay for it.
    error : float
        Standard error of ``value``; 0 if all outcomes were looked at.
    """

    without: float
    value: float
    worth: float
    error: float
    amounts: Amounts = field(default=Amounts(), repr=False, compare=False)

    def __str__(self) -> str:
        say, exactly = self.amounts, "" if self.error == 0 else ", simulated"
        return f"worth {say(self.worth)}: {say(self.value)} instead of {say(self.without)}{exactly}"

    headline = __str__


def value_of_knowing(
    forest: Forest, boxes: str | int | Sequence[str | int], *, samples: int = 1000,
    rng: np.random.Generator | int = 0, threads: int | None = None,
    executor: Executor | None = None, progress: Callable[[int, int], None] | None = None,
) -> Knowing:  # fmt: skip
    """What it is worth to be told the states of some boxes before anything is opened.

    Costs do not change, and a box must still be opened after its parent: only its state is known.

    Parameters
    ----------
    forest : Forest
    boxes : name or number, or list of them
    samples : int
        If the boxes have more than some thousand combinations of states, draw this many of them.
    rng : Generator or int
        For the draws.
    threads, executor, progress
        As in :func:`solve_many`, combination by combination.

    Returns
    -------
    Knowing
        The value with and without the information, and the difference, ``worth``.

    See Also
    --------
    weitzman.questions.value_of_tests : Imperfect information.

    Examples
    --------
    >>> import weitzman
    >>> box = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, names=["chest"])
    >>> weitzman.questions.value_of_knowing(box, ["chest"]).worth  # saves the cost of a nought
    0.5
    """
    listed: Any = [boxes] if isinstance(boxes, str | int | np.integer) else boxes
    tests = [(v, np.eye(len(forest.states(v)))) for v in map(forest.box, listed)]
    return _value_told(forest, tests, samples, rng, threads, executor, progress)


def value_of_tests(
    forest: Forest, tests: Mapping[Any, float | ArrayLike], *, samples: int = 1000,
    rng: np.random.Generator | int = 0, threads: int | None = None,
    executor: Executor | None = None, progress: Callable[[int, int], None] | None = None,
) -> Knowing:  # fmt: skip
    """What it is worth to see the outcomes of tests of some boxes before anything is opened.

    Parameters
    ----------
    forest : Forest
    tests : mapping
        For each box a matrix (own states, outcomes) with the probability of each outcome in each
        state, or the accuracy of its test: the probability that it reports the true state;
        otherwise it reports one of the other states, each with the same probability.
    samples, rng, threads, executor, progress
        As in :func:`value_of_knowing`.

    Returns
    -------
    Knowing
        The value with and without the tests, and the difference, ``worth``.

    See Also
    --------
    weitzman.questions.value_of_knowing : Perfect information.

    Examples
    --------
    >>> import weitzman
    >>> box = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=4, names=["chest"])
    >>> round(weitzman.questions.value_of_tests(box, {"chest": 0.9}).worth, 9)
    1.5
    """
    given = [(forest.box(b), _matrix(forest, forest.box(b), q)) for b, q in tests.items()]
    return _value_told(forest, given, samples, rng, threads, executor, progress)


def _value_told(
    forest: Forest, tests: Sequence[tuple[int, FloatArray]], samples: int,
    rng: np.random.Generator | int, threads: int | None, executor: Executor | None,
    progress: Callable[[int, int], None] | None,
) -> Knowing:  # fmt: skip
    """The value once the outcomes of tests are told."""
    forest.must_end("the value of information")
    check_counts(2, samples=samples)
    check_executor(executor)
    outcomes = dict(tests)
    if len(outcomes) < max(1, len(tests)):
        twice = [v for v in outcomes if sum(v == w for w, _ in tests) > 1]
        named = f", but box {forest.name(twice[0])!r} is named twice" if twice else ""
        raise InvalidArgument(f"give at least one box, and each one once{named}.")
    for v in outcomes:
        up = v
        while up >= 0:
            if forest.count[up] > 1:
                raise InvalidArgument(
                    f"what is told must be about one box, but box {forest.name(v)!r} has copies. "
                    f"Write them out with expand."
                )
            up = int(forest.parent[up])
    without = solve(forest, threads=threads).value
    sizes = [q.shape[1] for q in outcomes.values()]
    every = float(np.prod(np.array(sizes, float))) <= _ENUMERATED
    told = (
        list(product(*map(range, sizes)))
        if every
        else list(_drawn(forest, outcomes, samples, np.random.default_rng(rng)))
    )
    data = forest, outcomes, threads if executor is None else 1
    found = np.array(spread(executor, _mass_and_value, data, told, progress))
    found = found[found[:, 0] > 0]
    mass, values = found[:, 0] if every else np.full(len(found), 1 / len(found)), found[:, 1]
    tau = forest.risk_tolerance
    if tau is None:
        total, error = float(mass @ values), error_of_mean(values)
    else:  # the certainty equivalent of all certainty equivalents, measured from the worst one
        worst = float((forest.sign * values).min())
        lost = np.exp(-(forest.sign * values - worst) / tau)
        mean = float(mass @ lost)
        total = forest.sign * (worst - tau * math.log(mean))
        error = tau * error_of_mean(lost) / mean
    worth = forest.sign * (total - without)
    return Knowing(without, total, worth, 0.0 if every else error, forest.amounts)


def _mass_and_value(
    data: tuple[Forest, dict[int, FloatArray], int | None], told: tuple[int, ...]
) -> tuple[float, float]:
    """The probability of some outcomes, and the value once they are told."""
    f, tests, threads = data
    outcome, mass = dict(zip(tests, told, strict=True)), 1.0
    column, laws = f.law.copy(), list[FloatArray]()
    likelihood: dict[int, FloatArray] = {}  # of what is told at or below a box, by its own state
    for v in postorder(f.parent)[0].tolist():
        if v in outcome:
            likelihood[v] = likelihood.get(v, 1.0) * tests[v][:, outcome[v]]
        if v not in likelihood:
            continue
        law, up = f.laws[int(f.law[v])], int(f.parent[v])
        weighed = law * likelihood[v]
        total = weighed.sum(axis=1, keepdims=True)
        if up >= 0:
            likelihood[up] = likelihood.get(up, np.ones(len(total))) * total[:, 0]
        else:
            mass *= float(total[0, 0])
        column[v] = len(f.laws) + len(laws)
        # after an impossible state any law will do
        laws.append(np.where(total > 0, weighed / np.where(total > 0, total, 1.0), law))
    if mass <= 0:
        return 0.0, 0.0
    given = replace(f, law=column, laws=f.laws.with_more(laws))
    return mass, solve(given, threads=threads).value


def _matrix(f: Forest, box: int, given: float | ArrayLike) -> FloatArray:
    k = len(f.states(box))
    q = np.asarray(given, np.float64)
    if q.ndim == 0:
        if not 0 <= q <= 1:
            raise InvalidArgument(f"an accuracy must lie between 0 and 1, but it is {q:g}.")
        other = (1 - float(q)) / max(k - 1, 1)
        q = np.full((k, k), other)
        np.fill_diagonal(q, float(given) if k > 1 else 1.0)  # type: ignore[arg-type]
    if q.ndim != 2 or len(q) != k or (q < 0).any() or (np.abs(q.sum(axis=1) - 1) > 1e-9).any():
        raise InvalidArgument(
            f"a test is an accuracy, or a matrix with a row of probabilities for each of the {k} "
            f"states of its box, but that of box {f.name(box)!r} is not."
        )
    return q


def _drawn(
    f: Forest, tests: Mapping[int, FloatArray], samples: int, rng: np.random.Generator
) -> Iterator[tuple[int, ...]]:
    """Outcomes of the tests, drawn with their probabilities."""
    order = postorder(f.parent)[0][::-1].tolist()
    for _ in range(samples):
        state: dict[int, int] = {-1: 0}
        for v in order:
            law = f.laws[int(f.law[v])][state[int(f.parent[v])]]
            state[v] = int(rng.choice(len(law), p=law / law.sum()))
        yield tuple(
            int(rng.choice(q.shape[1], p=q[state[v]] / q[state[v]].sum())) for v, q in tests.items()
        )


@dataclass(frozen=True, slots=True, eq=False)
class Commitment(ResultTable):
    """One alternative of each group, chosen in advance, and a bound on how good the choice is.

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

    def columns(self) -> dict[str, list[Any]]:
        """The alternative of each group."""
        return {"chosen": list(self.chosen)}

    def headline(self) -> str:
        """The value and the bound."""
        return repr(self)

    def __repr__(self) -> str:
        return f"Commitment(value={self.value:.10g}, bound={self.bound:.10g}, {self.status})"


def commit(
    forest: Forest, alternatives: Sequence[Sequence[str | int]] = (), *,
    unseen: Sequence[str | int] | bool = False, threads: int | None = None,
    executor: Executor | None = None, progress: Callable[[int, int], None] | None = None,
) -> Commitment:  # fmt: skip
    """Choose one way to look into each box, with a bound on what any policy can earn.

    Parameters
    ----------
    forest : Forest
        With all alternatives in it.
    alternatives : list of groups
        Boxes with one parent, each with all below it; at most one of a group may be opened.
    unseen : list of str or int, or True for all roots
        Roots that may also be taken without looking, at their mean reward.
    threads, executor, progress
        As in :func:`solve_many`, commitment by commitment.

    Examples
    --------
    A chest can be opened for 4, or taken unseen.

    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=4, names=["chest"])
    >>> best = weitzman.questions.commit(chest, unseen=True)
    >>> best.value, best.chosen, best.status
    (5.0, ('chest, unseen',), 'Optimal: the bound is reached.')
    """
    forest.must_end("a choice of alternatives")
    forest.must_be_plain("a choice of alternatives")
    if len(forest) > _MOST:
        raise InvalidArgument(
            f"the bound is computed for at most {_MOST} boxes, but there are {len(forest)}."
        )
    check_executor(executor)
    blind = forest.roots.tolist() if unseen is True else [forest.box(b) for b in unseen or ()]
    groups = _groups(forest, alternatives, blind)
    bound = _bound(forest, groups)
    sizes = [len(g) for g in groups]

    change = partial(_committed, groups)

    def values(choices: Sequence[Sequence[int]]) -> list[float]:
        """What commitments are worth, to be maximized."""
        found = solve_each(
            forest, change, choices, threads=threads, executor=executor, progress=progress
        )
        return [forest.sign * value for value, *_ in found]

    if math.prod(sizes) <= _ALL:
        choices = list(product(*map(range, sizes)))
        found = values(choices)
        best = choices[found.index(max(found))]
    else:
        best, most, better = (0,) * len(sizes), values([[0] * len(sizes)])[0], True
        while better:  # change one group at a time as long as that helps
            better = False
            for i, size in enumerate(sizes):
                others = [(*best[:i], j, *best[i + 1 :]) for j in range(size)]
                found = values(others)
                if max(found) > most:
                    best, most, better = others[found.index(max(found))], max(found), True
    left = change(forest, best)
    solution = solve(left, threads=threads)
    chosen = (g[i] for g, i in zip(groups, best, strict=True))
    names = tuple(forest.name(v) if v >= 0 else f"{forest.name(-1 - v)}, unseen" for v in chosen)
    bound = forest.sign * (bound + forest.stated_error)
    return Commitment(left, solution, solution.value, bound, names)


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


def _committed(groups: Sequence[Group], f: Forest, choice: Sequence[int]) -> Forest:
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


def _bound(f: Forest, groups: Sequence[Group]) -> float:
    """E max(outside, largest value of all roots), with the better of alternatives everywhere."""
    home = {v: g for g in groups for v in g if v >= 0}
    children: dict[int, list[int]] = {}
    for v, up in enumerate(f.parent.tolist()):
        children.setdefault(up, []).append(v)
    value: dict[int, Law] = {}  # of the boxes so far: one row for each state of the parent

    def together(boxes: Sequence[int]) -> list[Law]:
        """Independent values of boxes with one parent, alternatives as one."""
        out = [value[v].power(int(f.count[v])) for v in boxes if v not in home]
        for g in dict.fromkeys(home[v] for v in boxes if v in home):
            each = [
                value[v] if v >= 0 else Law.sure(np.array([f.sign * _mean(f, -1 - v)])) for v in g
            ]
            out.append(reduce(_better, each))
        return out

    for v in postorder(f.parent)[0].tolist():
        shown = Law.sure(f.sign * f.rewards[int(f.reward[v])][0])
        after = shown.largest(*together(children.get(v, []))).mixture(f.laws[int(f.law[v])])
        value[v] = after.cap(after.root(mean_cost(f, v)))
    best = Law.sure(np.array([f.sign * f.outside])).largest(*together(children[-1]))
    return float(best.mean()[0])


def _better(a: Law, b: Law) -> Law:
    """Row by row, the law whose E max(x, .) is the larger of two, for every x."""
    x = np.union1d(a.points, b.points)
    if not len(x):
        return a
    d = a.excess(x) - b.excess(x)
    row, j = np.nonzero(d[:, :-1] * d[:, 1:] < 0)  # between these points they change places
    met = x[j] + (x[j + 1] - x[j]) * d[row, j] / (d[row, j] - d[row, j + 1])
    slope = a.tail(x[:1])[:, 0] - b.tail(x[:1])[:, 0]
    left = np.flatnonzero(slope * d[:, 0] < 0)  # and once more to the left of all points
    x = np.union1d(x, np.concatenate([met, x[0] + d[left, 0] / slope[left]]))
    high = np.maximum(a.excess(x), b.excess(x))
    tails = np.empty_like(high)
    tails[:, 0] = np.maximum(a.tail(x[0]), b.tail(x[0]))
    tails[:, 1:] = -np.diff(high) / np.diff(x)
    # rounding must not let a tail rise
    return Law(x, np.maximum.accumulate(tails[:, ::-1], axis=1)[:, ::-1])
