r"""An endless line under any indices, optimal or not: its value, and where the search stops.

To a searcher who continues after state s while the best so far is below :math:`\sigma(s)`, the line
is worth the capped values :math:`\kappa_s = \min(W_s, \sigma(s))`,
:math:`W_s = \max(r(Y), \kappa_Y)`. For a level x let S be the states with
:math:`r < x \le \sigma`: a searcher who holds a little less than x continues from these states with
nothing better. Every question about level x is then a linear equation on S,

.. math:: P(\kappa_s \ge x)
          = \sum_{y:\ r(y) \ge x} P(s, y) + \sum_{y \in S} P(s, y)\,P(\kappa_y \ge x),

and, with the law transposed, the same holds for how often the search continues from each state.
There are at most 2k different sets S. Levels are only compared, so ranks can replace them.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from .._common.numbers import such
from .._kernels.markov import absorb
from ..errors import InvalidArgument


def must_stop(
    law: FloatArray, rewards: FloatArray, index: FloatArray, outside: float, name: str
) -> None:
    """Reject indices with which a search may never leave the line ``name``."""
    for held in np.unique(np.append(rewards[rewards > outside], outside)):
        _must_leave(law, (rewards <= held) & (index > held), name)


def _must_leave(law: FloatArray, inside: BoolArray, name: str) -> None:
    """Reject a set of states from which the policy would never stop."""
    inner, leave = law[np.ix_(inside, inside)], law[np.ix_(inside, ~inside)]
    ends, more = leave.any(axis=1), True
    while more:
        found = ends | inner[:, ends].any(axis=1)
        ends, more = found, bool((found & ~ends).any())
    if not ends.all():
        s = int(np.flatnonzero(inside)[np.argmin(ends)])
        raise InvalidArgument(
            f"a policy must stop at some time, but this one may continue forever along the endless "
            f"line {name!r}: after its state {s}, no reward can follow that its indices would stop "
            f"at ({such((~ends).sum(), 'state')}). Lower its indices."
        )


class Following:
    """An endless line followed by given indices: ``tails[j, s]`` = P(kappa_s >= levels[j]).

    ``levels`` are the rewards and indices above ``outside``, the least that can be in hand; no
    reward equals an index. ``missing`` is one minus the sum of each row of the law: the chance to
    end above all levels. Errors call the line by its name.
    """

    def __init__(
        self, law: FloatArray, rewards: FloatArray, index: FloatArray, outside: float, name: str,
        missing: FloatArray | None = None,
    ) -> None:  # fmt: skip
        self.law, self.rewards, self.index = law, rewards, index
        self._missing = np.zeros(len(law)) if missing is None else missing
        every = np.unique(np.concatenate([rewards, index]))
        self.levels = every[(every > outside) & (every > -np.inf)]
        self._visits = []  # by level, expected numbers of visits (I - P)^-1 within S
        self.tails = np.empty((len(self.levels), len(law)))
        for j, x in enumerate(self.levels):
            inside = (rewards < x) & (index >= x)
            inner = law[np.ix_(inside, inside)]
            leave = law[np.ix_(inside, ~inside)].sum(axis=1) + self._missing[inside]
            if not self._missing.any():
                _must_leave(law, inside, name)
            self._visits.append(np.asarray(absorb(inner, leave, np.eye(len(inner)))))
            tail = self._ends_in(j, rewards >= x, self._missing)
            self.tails[j] = np.where(self._goes_on(j), np.minimum(tail, 1.0), 0.0)

    def clear(self) -> FloatArray:
        """P(kappa_y < r(y)) for each state y: nothing as good as its reward follows."""
        out = np.ones(len(self.rewards))
        for s in np.flatnonzero(np.isin(self.rewards, self.levels)).tolist():
            j = int(np.searchsorted(self.levels, self.rewards[s]))
            going = self._goes_on(j)
            if going[s]:  # not 1 - tail: what is rare must keep its digits
                out[s] = self._ends_in(j, (self.rewards < self.levels[j]) & ~going)[s]
        return np.minimum(out, 1.0)

    def retrace(self, x: FloatArray, reached: FloatArray) -> tuple[FloatArray, FloatArray]:
        """How often a search continues from each state, and how often each ends as the best.

        ``reached[s, j]`` is the probability that the line begins after state s, and that all else
        is at most x[j], up to the next entry of x. The result counts the boxes expected to be
        opened after each state, and those that show each state when all before and beside is at
        most its reward.
        """
        k = len(self.law)
        marks = np.unique(np.concatenate([x, self.levels]))
        start = np.hstack([np.zeros((k, 1)), reached])[:, np.searchsorted(x, marks, side="right")]
        left = np.zeros(k)  # from each state, once its index was reached
        best = np.zeros(k)
        for j, lo, hi in self._groups(marks):
            going = self._goes_on(j)
            low = self.rewards < self.levels[j] if j < len(self.levels) else np.ones(k, bool)
            inside, total = going & low, start[:, lo:hi].copy()
            given = self.law[~going].T @ left[~going]
            flow = given[:, None] + self.law[going & ~low].T @ total[going & ~low]
            if inside.any():
                total[inside] = self._visits[j].T @ (total[inside] + flow[inside])
                flow += self.law[inside].T @ total[inside]
            total[low & ~inside] += flow[low & ~inside]
            for s in np.flatnonzero(np.isin(self.rewards, marks[lo:hi])):
                best[s] = flow[s, np.searchsorted(marks[lo:hi], self.rewards[s])]
            for s in np.flatnonzero(np.isin(self.index, marks[lo:hi])):
                left[s] = total[s, np.searchsorted(marks[lo:hi], self.index[s])]
        return left, best

    def _goes_on(self, j: int) -> BoolArray:
        """States in which the policy continues with a little less than level j in hand."""
        if j == len(self.levels):
            return np.zeros(len(self.index), bool)
        return np.asarray(self.index >= self.levels[j])

    def _groups(self, marks: FloatArray) -> list[tuple[int, int, int]]:
        """For each level, the marks at which holding that much is holding a little less than it."""
        level: IntArray = np.searchsorted(self.levels, marks)  # an index is still continued at
        level += np.isin(marks, self.rewards)  # a reward is held already
        cuts = np.flatnonzero(np.diff(level, prepend=-1, append=-1))
        return [(int(level[lo]), int(lo), int(hi)) for lo, hi in pairwise(cuts)]

    def _ends_in(self, j: int, where: BoolArray, also: FloatArray | float = 0.0) -> FloatArray:
        """Probability, after each s, that the first state outside S for level j is in ``where``.

        ``also`` is the probability of ending elsewhere in one step, which counts as well.
        """
        inside = (self.rewards < self.levels[j]) & self._goes_on(j)
        once = self.law[:, where].sum(axis=1) + also
        return np.asarray(once + self.law[:, inside] @ (self._visits[j] @ once[inside]))
