r"""Markov chains of rewards: what a line of boxes shows if every box has the same law.

The *start* of a line is either a state, namely the one shown by the box before its first box, or
the distribution of the first box itself. So after the start s, box t shows a state of law
:math:`P^t(s, \cdot)`. Distances are in total variation, half the sum of absolute differences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import FloatArray, IntArray, frozen
from .._common.numbers import counted, such
from .._kernels import markov
from ..errors import InvalidArgument, InvalidForest, UnknownName
from ..forest.columns import short
from ..forest.rules import MAX_AMOUNT, SUM_TOLERANCE
from . import long_run as _long_run
from .long_run import CommunicatingClass, Rate, later, leading_to, must_converge, variation

_LEAST = 1e-12  # distances below are lost in rounding


@dataclass(frozen=True, eq=False, repr=False)
class Chain:
    """A Markov chain on finitely many states, each with a reward: the paper's *static transition*.

    Parameters
    ----------
    law : (k, k) array
        ``law[s, y]``: the probability that y follows s. Rows must sum to 1 up to 1e-9, and are
        rescaled to sum to 1.
    rewards : (k,) array
        Minus infinity: a signal that cannot be taken.

    Examples
    --------
    >>> sticky = Chain([[0.99, 0.01], [0.01, 0.99]], rewards=[0, 1])
    >>> sticky.irreducible, sticky.period, sticky.mixing_time()
    (True, 1, 35)
    >>> round(float(sticky.miss(sticky.top, 100)[0]), 3)
    0.366
    """

    law: FloatArray
    rewards: FloatArray

    def __init__(self, law: Any, rewards: ArrayLike) -> None:
        object.__setattr__(self, "law", as_law(law))
        object.__setattr__(self, "rewards", as_rewards(rewards, len(self)))

    def __len__(self) -> int:
        return len(self.law)

    def __repr__(self) -> str:
        return f"Chain({counted(len(self), 'state')})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Chain, (self.law, self.rewards)

    @property
    def top(self) -> IntArray:
        """The states of highest reward."""
        return np.flatnonzero(self.rewards == self.rewards.max())

    # -- structure -----------------------------------------------------------------------------

    @cached_property
    def classes(self) -> tuple[CommunicatingClass, ...]:
        """The communicating classes, by their first state."""
        return _long_run.classes(self.law)

    @property
    def irreducible(self) -> bool:
        """Whether every state leads to every other."""
        return len(self.classes) == 1

    @property
    def period(self) -> int:
        """Least common multiple of the periods of the recurrent classes."""
        return math.lcm(*(c.period for c in self.classes if c.recurrent))

    @property
    def aperiodic(self) -> bool:
        """Whether all recurrent classes have period 1, so that the law of box t converges."""
        return self.period == 1

    def stationary(self) -> FloatArray:
        """The stationary distribution, zero on transient states.

        It is found without subtractions (Grassmann, Taksar and Heyman), so even the smallest entry
        is accurate.

        Examples
        --------
        >>> Chain([[0.5, 0.5], [1.0, 0.0]], rewards=[0, 1]).stationary().round(6).tolist()
        [0.666667, 0.333333]
        """
        return self._stationary

    # -- how fast the start is forgotten -------------------------------------------------------

    def distance(self, t: int | Sequence[int]) -> Any:
        """Largest distance of the law of box t to the stationary distribution, over all starts.

        Parameters
        ----------
        t : int or ints
            One number gives one distance, several an array.

        Examples
        --------
        >>> Chain([[0.5, 0.5], [1.0, 0.0]], rewards=[0, 1]).distance([0, 1, 2]).round(4).tolist()
        [0.6667, 0.3333, 0.1667]
        """
        times = np.array([as_steps(x) for x in np.atleast_1d(np.asarray(t))])
        pi, rows, now = self.stationary(), np.eye(len(self)), 0
        far = np.empty(len(times))
        for i in np.argsort(times, kind="stable"):
            rows, now = later(rows, self.law, int(times[i]) - now), int(times[i])
            far[i] = variation(rows, pi)
        return far if np.ndim(t) else float(far[0])

    def mixing_time(self, eps: float = 0.25) -> int:
        """Least t from which on the distance stays at most eps."""
        as_share(eps, "eps", _LEAST)
        pi = self.stationary()
        must_converge(self.period)
        return _long_run.mixing_time(self.law, pi, eps)

    def rate(self) -> Rate:
        """Constants C and alpha with distance(t) <= C alpha**t for every t.

        With m a power of two, alpha is the m-th root of the largest distance between two rows of
        P^m. No eigenvalue is used, so a basis of eigenvectors need not exist. The result is the
        pair with the least C / (1 - alpha), which bounds the sum of all distances. Rounding errors
        are included. The explanation has the proof.

        Examples
        --------
        >>> C, alpha = Chain([[0.99, 0.01], [0.01, 0.99]], rewards=[0, 1]).rate()
        >>> round(C, 9), round(alpha, 9)
        (0.5, 0.98)
        """
        pi = self.stationary()
        must_converge(self.period)
        return _long_run.rate(self.law, pi)

    # -- when a reward is met ------------------------------------------------------------------

    def first_passage(self, target: ArrayLike) -> FloatArray:
        """Expected number of boxes until one shows a state of ``target``, after each state.

        Infinite where the target may never be shown. A state of the target counts the boxes until
        the target is shown again.

        Examples
        --------
        >>> Chain([[0.75, 0.25], [0.5, 0.5]], rewards=[0, 1]).first_passage(1).tolist()
        [4.0, 3.0]
        """
        aim = np.zeros(len(self), bool)
        aim[as_states(target, len(self))] = True
        lost = ~leading_to(self.law, aim)
        never = leading_to(self.law, lost, avoid=aim)
        hours = np.full(len(self), np.inf)
        rest, again = np.flatnonzero(~never & ~aim), np.flatnonzero(~never & aim)
        inner, leave = self.law[np.ix_(rest, rest)], self.law[rest][:, aim].sum(axis=1)
        hours[rest] = markov.absorb(inner, leave, np.ones((len(rest), 1)))[:, 0]
        step = self.law[np.ix_(again, rest)]
        # chances of 1e-320 take forever, and what has no chance takes no time
        hours[again] = 1 + np.multiply(step, hours[rest], where=step > 0, out=0 * step).sum(axis=1)
        return hours

    def miss(self, target: ArrayLike, t: int) -> FloatArray:
        """Probability that none of t boxes shows a state of ``target``, after each state.

        The probability is Q^t 1, where Q is the law without the columns of the target.

        Examples
        --------
        >>> Chain([[0.75, 0.25], [0.5, 0.5]], rewards=[0, 1]).miss(1, 2).tolist()
        [0.5625, 0.375]
        """
        aim, t = as_states(target, len(self)), as_steps(t)
        free = np.ones(len(self))
        free[aim] = 0.0
        if t > 2 * len(self) * t.bit_length():
            return np.asarray(np.linalg.matrix_power(self.law * free, t).sum(axis=1))
        left = np.ones(len(self))
        for _ in range(t):
            left = self.law @ (free * left)
        return left

    def law_at(self, t: int, start: ArrayLike) -> FloatArray:
        """The law of the t-th box of a line, whatever was seen before: pi_0 P^(t - 1).

        Parameters
        ----------
        t : int, at least 1
        start : state, or distribution of the first box
            A state is that of the box before the first.

        Examples
        --------
        >>> Chain([[0.75, 0.25], [0.5, 0.5]], rewards=[0, 1]).law_at(2, [1.0, 0.0]).tolist()
        [0.75, 0.25]
        """
        first = as_first(start, self.law)[None, :]
        return np.asarray(later(first, self.law, as_steps(t, 1) - 1)[0])

    def max_distribution(
        self, t: int, start: ArrayLike, levels: ArrayLike | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """The distribution of the highest of the first t rewards, exactly.

        Parameters
        ----------
        t : int, at least 1
        start : state, or distribution of the first box
        levels : ascending numbers, optional
            All rewards by default. Fewer levels save time: each maximum counts for the highest
            level that it reaches, and a maximum below all levels is left out.

        Returns
        -------
        levels, probabilities

        Examples
        --------
        >>> chain = Chain([[0.75, 0.25], [0.5, 0.5]], rewards=[0, 1])
        >>> [x.tolist() for x in chain.max_distribution(2, start=0)]
        [[0.0, 1.0], [0.5625, 0.4375]]
        """
        t, first = as_steps(t, 1), as_first(start, self.law)
        steps = np.unique(self.rewards if levels is None else np.asarray(levels, np.float64))
        rank = np.searchsorted(steps, self.rewards, side="right")  # 0: below all levels
        states, row = np.arange(len(self)), np.arange(len(steps) + 1)[:, None]
        joint = np.zeros((len(steps) + 1, len(self)))  # of the highest level and the state
        joint[rank, states] = first
        for _ in range(t - 1):
            joint = np.asarray(joint @ self.law)
            higher = np.where(rank > row, joint, 0.0).sum(axis=0)
            joint[rank > row] = 0.0
            joint[rank, states] += higher
        return steps, joint.sum(axis=1)[1:]

    @cached_property
    def _stationary(self) -> FloatArray:
        closed = [c.states for c in self.classes if c.recurrent]
        if len(closed) > 1:
            raise InvalidArgument(
                f"a stationary distribution is unique if there is one recurrent class, but states "
                f"{closed[0][0]} and {closed[1][0]} never meet ({such(len(closed), 'class')}). "
                f"Make a chain of each class."
            )
        pi = np.zeros(len(self))
        pi[closed[0]] = markov.stationary(self.law[np.ix_(closed[0], closed[0])])
        return frozen(pi)


# -- the rules for chains and for the arguments of their methods -----------------------------------


def _floats(x: Any, rule: str) -> FloatArray:
    try:
        return np.array(x, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidForest(f"{rule}, but got {short(x)}.") from error


def as_law(law: Any) -> FloatArray:
    """An own copy, each row scaled to sum to one."""
    if hasattr(law, "toarray"):  # a sparse matrix
        law = law.toarray()
    own = _floats(law, "a law must be a table of numbers")
    if own.ndim != 2 or own.shape[0] != own.shape[1] or own.size == 0:
        raise InvalidForest(
            f"the law of a chain must be a square matrix with a row for each state, but its shape "
            f"is {own.shape}."
        )
    wrong = np.argwhere(~((own >= 0) & (own <= 1 + SUM_TOLERANCE)))  # also finds NaN
    if len(wrong):
        s, y = wrong[0].tolist()
        raise InvalidForest(
            f"probabilities must lie between 0 and 1, but in the law of the chain the entry "
            f"[{s}, {y}] is {own[s, y]:.6g} ({such(len(wrong), 'entry')})."
        )
    mass = own.sum(axis=1)
    bad = np.flatnonzero(np.abs(mass - 1) > SUM_TOLERANCE)
    if len(bad):
        raise InvalidForest(
            f"probabilities must sum to 1, but those after state {bad[0]} sum to "
            f"{mass[bad[0]]:.9g} ({such(len(bad), 'row')}). Rescale the row, or give the missing "
            f"mass a state of its own."
        )
    return frozen(own / mass[:, None])


def as_rewards(rewards: Any, size: int) -> FloatArray:
    """One reward per state: finite, or minus infinity for a signal that cannot be taken."""
    own = _floats(rewards, "rewards must be numbers")
    if own.shape != (size,):
        raise InvalidForest(
            f"a chain needs one reward per state, but there are "
            f"{counted(size, 'state')} and rewards of shape {own.shape}."
        )
    wrong = np.flatnonzero(~((np.abs(own) <= MAX_AMOUNT) | (own == -np.inf)))
    if len(wrong):
        raise InvalidForest(
            f"rewards must be finite (-inf marks a state without one) and at most {MAX_AMOUNT:g} "
            f"in size, but state {wrong[0]} has {own[wrong[0]]} ({such(len(wrong), 'reward')})."
        )
    return frozen(own)


def as_costs(cost: Any, size: int) -> FloatArray:
    """The cost of the next box after each state; one number stands for all."""
    own = _floats(cost, "costs must be numbers")
    if own.shape not in ((), (size,)):
        raise InvalidForest(
            f"the cost is one number, or one for each of the {size} states before it, but has "
            f"shape {own.shape}."
        )
    own = np.array(np.broadcast_to(own, size))
    wrong = np.flatnonzero(~((own >= 0) & (own <= MAX_AMOUNT)))
    if len(wrong):
        raise InvalidForest(
            f"costs must be from 0 to {MAX_AMOUNT:g}, but after state {wrong[0]} it is "
            f"{own[wrong[0]]:.6g} ({such(len(wrong), 'cost')})."
        )
    return frozen(own)


def as_states(states: Any, size: int) -> IntArray:
    """Numbers of states, as a set."""
    given = np.atleast_1d(np.asarray(states))
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
        raise InvalidArgument(f"states are given by their numbers, but got {short(states)}.")
    bad = np.flatnonzero((given < 0) | (given >= size))
    if len(bad):
        raise UnknownName(f"there is no state {given[bad[0]]}: they go from 0 to {size - 1}.")
    return np.unique(given).astype(np.int64)


def as_first(start: Any, law: FloatArray) -> FloatArray:
    """The law of the first box: given itself, or as the state that the box before it showed."""
    size = len(law)
    if np.ndim(start) == 0:
        return np.array(law[int(as_states(start, size)[0])])
    first = np.array(start, np.float64)
    if first.shape != (size,):
        raise InvalidArgument(
            f"a start is a state, or a distribution over the {size} states, but its shape is "
            f"{first.shape}."
        )
    if not ((first >= 0).all() and abs(first.sum() - 1) <= SUM_TOLERANCE):
        raise InvalidArgument(
            f"the distribution of the first box must be of numbers from 0 to 1 that sum to 1, but "
            f"it is {short(first.tolist())}."
        )
    return np.asarray(first / first.sum())


def as_steps(t: Any, least: int = 0) -> int:
    """A number of boxes."""
    if isinstance(t, (int, np.integer)) and not isinstance(t, bool) and t >= least:
        return int(t)
    raise InvalidArgument(
        f"a number of boxes is a whole number from {least} on, but got {short(t)}."
    )


def as_share(x: Any, name: str, least: float) -> float:
    """A probability that is neither certain nor below what rounding allows."""
    if least <= x < 1:
        return float(x)
    raise InvalidArgument(f"`{name}` must lie from {least:g} to below 1, but is {x}.")
