r"""A forest as the recursion sees it: rows of weights, costs, and numbers to be maximized.

Without discounting and risk these are the laws, costs and signed rewards themselves. With factors
:math:`m` the weights are :math:`P\,m`, which need not sum to one; the *defect* of a row is what is
missing. A risk tolerance makes utilities of rewards, and factors of costs. See sections 11 to 13 of
the theory page.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from ..chains.chain import Chain
from ..chains.endless import solve_line
from ..errors import InvalidArgument
from ..forest.columns import Pool, runs, starts
from ..forest.model import Forest

_LOST = 0.5  # an error of this share of a utility: nothing is known of it
_NO_INTS, _NO_FLOATS = np.empty(0, np.int64), np.empty(0)


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """What a pass over a forest reads.

    Attributes
    ----------
    forest : Forest
    law, cost : (n,) arrays of int
        By box: which of ``laws`` and ``costs`` it has.
    laws, costs : Pool
        Weights, and mean costs where laws are weighed.
    defect, defect_at : arrays
        1 minus the sum of each row of ``laws``, and where the defects of each law start; empty for
        unweighed laws.
    rewards : array of float
        By entry of ``forest.rewards.data``: to be maximized.
    outside : float
        The outside option, to be maximized.
    top : float
        No index exceeds both this and all rewards at or below its box.
    tolerance, best : float
        Of risk, and the number whose utility is -1; the tolerance is 0 if utilities are payoffs.
    all_points : bool
        Drop no breakpoint: slopes need not rise if a policy is not optimal.
    """

    forest: Forest
    law: IntArray
    laws: Pool
    cost: IntArray
    costs: Pool
    defect: FloatArray
    defect_at: IntArray
    rewards: FloatArray
    outside: float
    top: float = -np.inf
    tolerance: float = 0.0
    best: float = 0.0
    all_points: bool = False

    @classmethod
    def plain(cls, forest: Forest) -> Weights:
        """The laws, costs and rewards as they are."""
        f = forest
        rewards = -f.rewards.data if f.minimize else f.rewards.data
        return cls(
            f, f.law, f.laws, f.cost, f.costs, _NO_FLOATS, _NO_INTS, rewards, f.sign * f.outside
        )

    @classmethod
    def of(cls, forest: Forest) -> Weights:
        """Weighed by time or risk, if the forest has one of them."""
        f = forest
        if f.factors is not None:
            return cls._weighed(f, f.factors, cls.plain(f), 0.0)
        if f.risk_tolerance is None:
            return cls.plain(f)
        tau = f.risk_tolerance
        signed, outside = f.sign * f.rewards.data, f.sign * f.outside
        best = float(np.max(np.append(signed, outside)))
        utility = cls.plain(f)
        utility = cls(
            f, f.law, f.laws, f.cost, f.costs, _NO_FLOATS, _NO_INTS,
            _utility(signed, best, tau), float(_utility(np.array([outside]), best, tau)[0]),
            tolerance=tau, best=best,
        )  # fmt: skip
        factors = Pool(np.exp(f.costs.data / tau), f.costs.start, f.costs.shape)
        return cls._weighed(f, factors, utility, -np.inf)

    @classmethod
    def _weighed(cls, f: Forest, factors: Pool, base: Weights, top: float) -> Weights:
        """Laws times factors, once for each pair of a law and a cost."""
        both, column = np.unique(f.law * len(f.costs) + f.cost, return_inverse=True)
        law, cost = np.divmod(both, len(f.costs))
        every = len(law) == len(f.laws) and bool((law == np.arange(len(law))).all())
        laws = f.laws if every else f.laws.take(law)
        row_at, _ = laws.rows()
        m, price = _spread(factors, cost, laws), _spread(f.costs, cost, laws)
        rows = np.column_stack([laws.shape[:, 0], np.ones(len(laws), np.int64)])
        paid = np.add.reduceat(laws.data * price, row_at) * (base.tolerance == 0)
        column = column.reshape(-1).astype(np.int64)
        return cls(
            f, column, Pool(laws.data * m, laws.start, laws.shape), column,
            Pool(paid, starts(rows), rows), np.add.reduceat(laws.data * (1.0 - m), row_at),
            starts(rows)[:-1], base.rewards, base.outside, top, base.tolerance, base.best,
        )  # fmt: skip

    def missing(self, box: int) -> FloatArray | None:
        """The defects of a box after each state of its parent; None if no box has any."""
        if len(self.defect) == 0:
            return None
        at = int(self.defect_at[self.law[box]])
        return self.defect[at : at + int(self.laws.shape[self.law[box], 0])]

    def read_back(self, x: FloatArray | float) -> FloatArray:
        """Payoffs (signed) of numbers that the recursion gives: certainty equivalents for risk."""
        if self.tolerance == 0:
            return np.asarray(x)
        loss = np.maximum(-np.asarray(x), 1.0)  # no payoff exceeds the best reward but by rounding
        return np.asarray(self.best - self.tolerance * np.log(loss))

    def written(self, x: FloatArray) -> FloatArray:
        """Numbers of the recursion from payoffs (signed): utilities for risk."""
        if self.tolerance == 0:
            return x
        with np.errstate(over="ignore"):
            return _utility(x, self.best, self.tolerance)

    def gap(self, value: float, error: float) -> float:
        """How far the payoff may be too high, if the number may be too high by ``error``."""
        if self.tolerance == 0:
            return error
        if error >= -_LOST * value:  # hardly a digit is left
            return self._most()
        return float(self.tolerance * np.log1p(error / -value))

    def _most(self) -> float:
        """The largest difference of two values: the best reward less what is in hand anyway."""
        return float(self.best - self.read_back(self.outside))

    def rounding(self, lowest: float = 0.0) -> float:
        """Roughly how far rounding may move a utility: factors above 1 magnify it on the way.

        Only for a forest with a risk tolerance: otherwise nothing is magnified. ``lowest`` is the
        point from which a value is summed without an outside option.
        """
        most = self.growth()
        lowest = min(lowest, float(self.rewards.min()))
        lowest = self.outside if np.isfinite(self.outside) else lowest
        worst = -lowest * min(float(np.exp(min(most, 700.0))), -lowest)
        return float(np.finfo(np.float64).eps * worst)

    def growth(self) -> float:
        """The logarithm of the largest product of factors on a way down."""
        f = self.forest
        rows = np.repeat(np.arange(len(self.laws)), self.laws.shape[:, 0])
        most = np.full(len(self.laws), 1.0)
        np.maximum.at(most, rows, 1.0 - self.defect)
        growth = np.append(np.log(most[self.law]), 0.0)  # the last entry stands above all roots
        above = np.append(np.where(f.parent < 0, len(f), f.parent), len(f))
        while (above < len(f)).any():  # of 1, 2, 4, ... boxes on the way
            growth, above = growth + growth[above], above[above]
        return float(growth.max())

    def unit(self) -> float:
        """Roughly how much one unit of payoff is in the numbers of the recursion."""
        if self.tolerance == 0:
            return 1.0
        return -self.outside / self.tolerance if np.isfinite(self.outside) else 1 / self.tolerance


def _spread(pool: Pool, which: IntArray, laws: Pool) -> FloatArray:
    """For each entry of each law that of its matrix of the pool; one may stand for all."""
    if (pool.shape == 1).all():
        return np.repeat(pool.data[pool.start[which]], np.diff(laws.start))
    row_at, owner = laws.rows()
    per_row = np.repeat(np.arange(len(owner)), laws.shape[owner, 1])
    state = np.arange(len(laws.data)) - row_at[per_row]
    first = np.cumsum(laws.shape[:, 0]) - laws.shape[:, 0]
    return pool.entries(which[owner[per_row]], per_row - first[owner[per_row]], state)


def _utility(x: FloatArray, best: float, tau: float) -> FloatArray:
    return np.asarray(-np.exp((best - x) / tau))


def mean_costs(forest: Forest) -> tuple[FloatArray, IntArray]:
    """Expected cost of opening each box after each state of its parent, and where each starts."""
    f = forest
    start = np.concatenate([[0], np.cumsum(f.laws.shape[f.law, 0])]).astype(np.int64)
    sizes = np.diff(start)
    rows, columns = f.costs.shape[f.cost].T
    state = np.arange(start[-1]) - np.repeat(start[:-1], sizes)
    first = f.costs.start[f.cost]
    found = f.costs.data[np.repeat(first, sizes) + state * np.repeat((rows > 1) * columns, sizes)]
    wide = np.flatnonzero(columns > 1)  # only there the mean needs the law
    if len(wide):
        both, pair = np.unique(f.law[wide] * len(f.costs) + f.cost[wide], return_inverse=True)
        law, cost = np.divmod(both, len(f.costs))
        laws = f.laws.take(law)
        means = np.add.reduceat(laws.data * _spread(f.costs, cost, laws), laws.rows()[0])
        own = laws.shape[:, 0]
        at = (np.cumsum(own) - own)[pair.reshape(-1)]
        found[runs(start[wide], sizes[wide])] = means[runs(at, sizes[wide])]
    return found, start


def mean_cost(forest: Forest, box: int) -> FloatArray:
    """Expected cost of opening one box, for each state of its parent."""
    law = forest.laws[int(forest.law[box])]
    cost = forest.costs[int(forest.cost[box])]
    return np.asarray((law * cost).sum(axis=1) if cost.shape[1] > 1 else cost[:, 0] + 0 * law[:, 0])


def mean_durations(forest: Forest) -> FloatArray:
    """Expected time that each box takes after each state of its parent, as :func:`mean_costs`."""
    f = forest
    if f.durations is not None:
        pool = f.durations
    else:
        assert f.factors is not None, "a forest with discounting"
        pool = Pool(-np.log(f.factors.data), f.factors.start, f.factors.shape)
    return mean_costs(replace(f, costs=pool, factors=None, durations=None, rate=None))[0]


def endless_value(w: Weights, v: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Of an endless box: its indices, and breakpoints and tails (m, k) of its capped value."""
    f, r = w.forest, w.forest.reward[v]
    own = w.rewards[f.rewards.start[r] : f.rewards.start[r + 1]]
    if own.max() == -np.inf:  # signals only
        return own, np.empty(0), np.empty((0, len(own)))
    if (missing := w.missing(v)) is None:
        found = solve_line(Chain(f.laws[int(f.law[v])], own), mean_cost(f, v))
        return found.index, found.breakpoints, found.tails.T
    # with discounting, a line that ends by chance in a top state
    i, k, top = int(w.law[v]), len(own), max(float(own.max()), 0.0)
    law = np.zeros((k + 1, k + 1))
    law[:k, :k], law[:k, k], law[k, k] = w.laws[i], missing, 1.0
    cost = np.append(w.costs[i][:, 0] + missing * top, 0.0)
    law /= law.sum(axis=1, keepdims=True)
    found = solve_line(Chain(law, np.append(own, top)), cost)
    return found.index[:k], found.breakpoints, found.tails[:k].T


class Groups(NamedTuple):
    """The group of each box, as a number, and how many prizes may come from each group."""

    of: IntArray
    quota: IntArray


def groups_of(f: Forest) -> Groups:
    """The groups of a forest; without quotas all trees are one group."""
    if not f.quotas or f.groups is None:
        return Groups(np.zeros(len(f), np.int64), np.array([f.prizes], np.int64))
    most, names = dict(f.quotas), dict.fromkeys(f.groups)
    number = {name: i for i, name in enumerate(names)}
    quota = [min(most.get(name, f.prizes), f.prizes) for name in names]
    return Groups(np.array([number[x] for x in f.groups]), np.array(quota))


def barred(f: Forest) -> BoolArray:
    """Which boxes lie in a tree from which nothing may be taken: the quota of its group is 0."""
    groups = groups_of(f)
    return np.asarray(groups.quota[groups.of] == 0)


def reject_quotas(f: Forest, what: str) -> None:
    """Raise if the forest has quotas, which ``what`` cannot handle."""
    if f.quotas:
        raise InvalidArgument(
            f"{what} does not take quotas yet; solve, evaluate and simulate do. Leave `quotas` out."
        )


def takes_several(f: Forest) -> bool:
    """Whether rewards are taken one by one: of several prizes, or of one that quotas limit."""
    return f.prizes > 1 or bool(f.quotas)
