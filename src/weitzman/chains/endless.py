r"""Endless lines: every box follows the one before by the same law, at the same cost.

With :math:`\kappa_s` the capped value of the line that continues after state s, all of them solve

.. math::

   W_s = \max(r(Y), \kappa_Y),\ Y \sim P(s, \cdot), \qquad
   E\,(W_s - \sigma(s))^+ = c, \qquad \kappa_s = \min(W_s, \sigma(s)),

and :math:`\varphi(y, s) = E \max(y, \kappa_s)` is what the line is worth with y in hand.
:func:`solve_line` finds the indices :math:`\sigma` exactly by sweeping y downward: the gain
:math:`\varphi(y, s) - y` is linear in y between two rewards or indices, and there are at most 2k of
them. :func:`fixed_point` is the iteration of the paper, on a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import FloatArray
from .._common.law import Law
from .._common.text import as_html
from .._kernels.markov import sweep
from ..errors import InvalidArgument, InvalidForest
from .chain import Chain, as_costs, as_first, as_states


@dataclass(frozen=True, slots=True, eq=False)
class Capped:
    """A capped value: a random number that fully describes one way to continue.

    Attributes
    ----------
    index : float
        Continue here while no other index is higher and the best so far is lower.
    breakpoints : (m,) array, ascending
    tails : (m,) array
        ``tails[j]`` = P(kappa >= breakpoints[j]).
    """

    index: float
    breakpoints: FloatArray
    tails: FloatArray

    def value_at(self, outside: float = 0.0) -> float:
        """Expected payoff of searching here alone, with the outside option in hand."""
        return float(self.law.with_fallback(outside))

    @property
    def law(self) -> Law:
        """The same as a law."""
        return Law(self.breakpoints, self.tails)


def value_together(
    parts: Sequence[Capped], outside: float = 0.0, copies: Sequence[float] | None = None
) -> float:
    """Expected payoff of searching several independent lines at once.

    Parameters
    ----------
    parts : Capped values
        As from :meth:`EndlessLine.start`.
    outside : float
    copies : numbers, optional
        How many independent copies of each part. Infinity: endlessly many copies, which together
        are worth their index with certainty, since some copy does as well as possible.

    Examples
    --------
    >>> from weitzman.chains import Chain, solve_line
    >>> line = solve_line(Chain([[0.9, 0.1], [0.2, 0.8]], rewards=[0, 10]), cost=0.5)
    >>> value_together([line.start(0), line.start(1)])
    8.5
    >>> value_together([line.start(1)], copies=[np.inf])
    9.375
    """
    count = np.ones(len(parts)) if copies is None else np.asarray(copies, np.float64)
    if len(count) != len(parts) or not (count >= 1).all():
        raise InvalidArgument(f"`copies` must be one number from 1 on for each part, not {copies}.")
    laws = [p.law.power(n) for p, n in zip(parts, count.tolist(), strict=True)]
    return float(laws[0].largest(*laws[1:]).with_fallback(outside)) if laws else float(outside)


@dataclass(frozen=True, slots=True, eq=False)
class EndlessLine:
    """A solved endless line.

    Attributes
    ----------
    chain : Chain
    cost : (k,) array
        Cost of the next box after each state.
    index : (k,) array
        Index of the next box after each state: open it while the best so far is lower. Minus
        infinity where no reward can follow.
    breakpoints : (m,) array, ascending
        All finite rewards and indices.
    tails : (k, m) array
        The capped values kappa of all states: ``tails[s, j]`` = P(kappa_s >= breakpoints[j]).
    """

    chain: Chain
    cost: FloatArray
    index: FloatArray
    breakpoints: FloatArray
    tails: FloatArray

    def __repr__(self) -> str:
        return f"EndlessLine({len(self.chain)} states, indices up to {self.index.max():.6g})"

    def phi(self, y: ArrayLike, x: int | None = None) -> Any:
        """The value phi(y, x) of continuing optimally with y in hand after state x.

        Parameters
        ----------
        y : number or numbers
        x : state, optional
            All states by default, along the last axis.

        Examples
        --------
        >>> line = solve_line(Chain([[0.5, 0.5], [0.5, 0.5]], rewards=[0, 8]), cost=1)
        >>> line.phi([0, 7], 0).tolist()
        [6.0, 7.0]
        """
        best = np.atleast_1d(np.asarray(y, np.float64))
        states = np.arange(len(self.chain)) if x is None else as_states(x, len(self.chain))
        worth = Law(self.breakpoints, self.tails[states]).with_fallback(best).T
        worth = worth if x is None else worth[..., 0]
        return worth if np.ndim(y) else worth[0]

    def start(self, start: ArrayLike, cost: float | None = None) -> Capped:
        """The capped value of the line from a start.

        Parameters
        ----------
        start : state, or distribution of the first box
        cost : float, optional
            Cost of the first box; by default the same as for the other boxes.

        Examples
        --------
        >>> line = solve_line(Chain([[0.5, 0.5], [0.5, 0.5]], rewards=[0, 8]), cost=1)
        >>> line.start([0.75, 0.25]).index, line.start(0, cost=2).index
        (5.5, 5.0)
        """
        if np.ndim(start) == 0 and cost is None:
            s = int(as_states(start, len(self.chain))[0])
            return Capped(float(self.index[s]), self.breakpoints, self.tails[s])
        first = as_first(start, self.chain.law)
        if cost is None and np.ptp(self.cost) > 0:
            raise InvalidArgument(
                "the cost of the first box must be given, since that of the others depends on the "
                "state before. Give `cost`."
            )
        price = float(self.cost[0] if cost is None else as_costs(cost, 1)[0])
        after = Law.sure(self.chain.rewards).largest(Law(self.breakpoints, self.tails))
        found = after.mixture(first[None, :])
        # what all states reach is certain, whatever rounding has made of the chances
        found = Law(found.points, np.where((after.tails == 1).all(axis=0), 1.0, found.tails))
        index = found.root(np.array([price]))
        capped = found.cap(index)
        return Capped(float(index[0]), capped.points, capped.tails[0])

    def value_at(self, start: ArrayLike, outside: float = 0.0) -> float:
        """Expected payoff of searching this line alone, optimally, from a start.

        Parameters
        ----------
        start : state, or distribution of the first box
            The reward of a start state is not in hand unless ``outside`` includes it.
        outside : float

        Examples
        --------
        >>> line = solve_line(Chain([[0.5, 0.5], [0.5, 0.5]], rewards=[0, 8]), cost=1)
        >>> line.value_at(start=0), line.value_at(start=[0.75, 0.25], outside=2)
        (6.0, 5.5)
        """
        return self.start(start).value_at(outside)

    _repr_html_ = as_html


def solve_line(chain: Chain, cost: ArrayLike) -> EndlessLine:
    """The index of every state of an endless line, exactly.

    Parameters
    ----------
    chain : Chain
        Any: periodic, reducible, with absorbing states or equal rewards.
    cost : number, or (k,) array
        Cost of each box; an array if it depends on the state before. At cost 0 the index is the
        best reward that can still follow.

    Notes
    -----
    Time O(k^3), memory O(k^2). The indices are off by a few roundings of the largest reward, even
    if the chain hardly moves or the cost is tiny.

    Examples
    --------
    >>> solve_line(Chain([[0.9, 0.1], [0.2, 0.8]], rewards=[0, 10]), cost=0.5).index.tolist()
    [5.0, 9.375]
    """
    costs, law = _checked(chain, cost)
    order = np.argsort(chain.rewards, kind="stable")
    found, point, after = sweep(
        np.ascontiguousarray(law[np.ix_(order, order)]), chain.rewards[order], costs[order]
    )
    index, worth = np.empty_like(found), np.empty((len(chain), len(point)))
    index[order], worth[order] = found, after[::-1].T
    points = np.union1d(point, index[index > -np.inf])
    tails = (law @ worth)[:, np.searchsorted(point[::-1], points)]
    tails = np.where(points <= chain.rewards.min(), 1.0, np.minimum(tails, 1.0))
    tails[points > index[:, None]] = 0.0
    for array in (index, points, tails):
        array.flags.writeable = False
    return EndlessLine(chain, costs, index, points, tails)


@dataclass(frozen=True, slots=True, eq=False)
class FixedPoint:
    """What the iteration of the paper ends with.

    Attributes
    ----------
    levels : (m,) array, ascending
        Amounts in hand: all rewards, and the further levels that were asked for.
    table : (m, k) array
        ``table[l, s]`` = phi(levels[l], s): continue after s while this exceeds levels[l].
    contraction : float
        Each step shrinks the error at least by this factor.
    steps : int
    error : float
        Bound on the error of every entry of the table, apart from rounding.
    converged : bool
        Whether the error reached the tolerance within the limit of steps.
    """

    levels: FloatArray
    table: FloatArray
    contraction: float
    steps: int
    error: float
    converged: bool

    _repr_html_ = as_html


def fixed_point(
    chain: Chain, cost: ArrayLike, tolerance: float = 1e-12, levels: ArrayLike = (), *,
    limit: int = 100_000,
) -> FixedPoint:  # fmt: skip
    r"""The value of an endless line by repeating the Bellman equation, as in the paper.

    .. math:: \varphi(y, s) \leftarrow \max\{y, -c + \sum_j p_{sj}\,
              \varphi(\max(y, r_j), j)\}

    starts at y, so step n gives the value of a line of n boxes. From every state, the top must be
    possible in one step: the error shrinks by the probability of missing it.

    Parameters
    ----------
    chain : Chain
    cost : number, or (k,) array
    tolerance : float
        Bound on the error at which to stop, as a share of the range of the rewards.
    levels : numbers, optional
        Amounts in hand for which to compute phi, besides the rewards.
    limit : int
        Most steps to take. Where the top is hardly ever reached, the error shrinks too slowly. The
        table then holds what this many boxes earn, and ``converged`` is False.

    Examples
    --------
    >>> found = fixed_point(Chain([[0.5, 0.5], [0.5, 0.5]], rewards=[0, 8]), cost=1)
    >>> found.contraction, found.table[0].round(9).tolist()
    (0.5, [6.0, 6.0])
    """
    if not tolerance >= 0 or limit < 1:
        raise InvalidArgument(
            f"`tolerance` must be 0 or more and `limit` 1 or more, but they are {tolerance} and "
            f"{limit}."
        )
    (costs, law), rewards = _checked(chain, cost), chain.rewards
    lower = rewards < rewards.max()
    chance = law[:, chain.top].sum(axis=1)
    if not chance[lower].all():
        raise InvalidArgument(
            f"the iteration needs the top reward to be possible in one step from every state, but "
            f"from state {np.flatnonzero(lower & (chance == 0))[0]} it is not. Use solve_line, "
            f"which needs nothing."
        )
    least = float(chance[lower].min(initial=1.0))  # of reaching the top: 1 minus the contraction
    most = float(1 - chance.min(initial=1.0))
    given = np.concatenate([rewards, np.asarray(levels, np.float64).reshape(-1)])
    y = np.unique(given[given > -np.inf])
    rank = np.maximum(np.arange(len(y))[:, None], np.searchsorted(y, rewards))
    table, steps, error, span = np.repeat(y[:, None], len(chain), axis=1), 0, np.inf, np.ptp(y)
    # if the last step changed states below the top by at most d, entries before it were off by at
    # most d / (1 - q), and one step later by that times their probability of missing the top
    while error > tolerance * span and steps < limit:
        better = np.maximum(table, np.take_along_axis(table, rank, axis=0) @ law.T - costs)
        change = float((better - table)[:, lower].max(initial=0.0))
        table, steps, error = better, steps + 1, most * change / least
    return FixedPoint(y, table, 1 - least, steps, error, bool(error <= tolerance * span))


def probe_until_top(chain: Chain, cost: ArrayLike) -> bool:
    """Whether the paper's condition holds: then it is best to continue until the top reward.

    From each state below the top, the step from the second highest to the highest reward, times its
    probability, must exceed the cost of one more box. Sufficient; necessary and sufficient is that
    the index of each such state exceeds the second highest reward.

    Examples
    --------
    >>> chain = Chain([[0.9, 0.1], [0.2, 0.8]], rewards=[0, 10])
    >>> probe_until_top(chain, cost=0.5), probe_until_top(chain, cost=1.5)
    (True, False)
    """
    costs, lower = as_costs(cost, len(chain)), chain.rewards < chain.rewards.max()
    second = chain.rewards[lower].max(initial=-np.inf)
    chance = np.asarray(chain.law[:, chain.top].sum(axis=1))[lower]
    wins = np.zeros(len(chance))
    np.multiply(chance, chain.rewards.max() - second, out=wins, where=chance > 0)
    return bool((wins > costs[lower]).all())


def _checked(chain: Chain, cost: ArrayLike) -> tuple[FloatArray, FloatArray]:
    if chain.rewards.max() == -np.inf:
        raise InvalidForest("an endless line needs a state with a reward, but all are -inf.")
    return as_costs(cost, len(chain)), chain.law
