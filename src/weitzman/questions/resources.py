r"""Several budgets at once, and a cap on the spend of every run.

With a price for each resource the optimal policy is that of a forest whose costs are the priced
uses. The best mixture of the policies met so far is a small linear program; its prices lead to the
next policy. The two sides meet at the optimum (column generation).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._common.arrays import FloatArray, error_of_mean
from .._common.numbers import such
from .._common.optional import need
from ..engine.evaluation import Evaluation, evaluate
from ..engine.indices import Policy
from ..engine.solver import solve
from ..errors import InvalidArgument
from ..forest.columns import opening_columns
from ..forest.model import Forest
from ..forest.pools import Pool
from .budget import Mixture, within_budget

_ROUNDS = 200
_CLOSE = 1e-9  # a gap between bound and mixture, as a share of the bound, that counts as none


@dataclass(frozen=True, slots=True, eq=False)
class Plans:
    """Policies and the probability of following each, within several budgets.

    Attributes
    ----------
    policies : tuple of Policy
    share : (m,) array of float
        The probability of each.
    reward : float
        Expected reward.
    bound : float
        No policy within the budgets earns more (less, when minimizing).
    use, price : dict
        By resource: its expected use, and its shadow price.
    """

    policies: tuple[Policy, ...]
    share: FloatArray
    reward: float
    bound: float
    use: dict[str, float]
    price: dict[str, float]

    def draw(self, rng: np.random.Generator | int) -> Policy:
        """The policy to follow this time."""
        i = int(np.random.default_rng(rng).choice(len(self.share), p=self.share))
        return self.policies[i]


def within_budgets(
    forest: Forest,
    uses: Mapping[str, Any],
    budgets: Mapping[str, float],
    *,
    threads: int | None = None,
) -> Plans:
    """The most expected reward if the expected use of several resources is limited.

    The costs of the forest itself do not count here: make them one of the resources.

    Parameters
    ----------
    forest : Forest
    uses : mapping
        By resource: how much of it the opening of each box takes, in the forms of ``cost`` of
        :meth:`Forest.from_arrays`. A quota on a group of boxes is a resource of which each box of
        the group uses 1.
    budgets : mapping
        By resource: how much may be used on average.
    threads : int, optional
        All cores by default.

    Examples
    --------
    >>> import weitzman
    >>> box = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=2)
    >>> plans = weitzman.questions.within_budgets(
    ...     box, {"days": 1, "looks": 1}, {"days": 9, "looks": 1.25})
    >>> round(plans.reward, 6), round(plans.price["looks"], 6), round(plans.price["days"], 6)
    (6.25, 5.0, 0.0)
    """
    _check(forest, uses, budgets)
    names = list(budgets)
    pools, columns = [], []
    for name in names:
        title = [forest.name(v) for v in range(len(forest))]
        pool, column = opening_columns(uses[name], forest.parent, len(forest), title, name)
        pools.append(pool)
        columns.append(column)
    limits = np.array([float(budgets[name]) for name in names])
    first = _policy_at(forest, _priced(forest, pools, columns, np.zeros(len(names))), threads)
    nothing = _policy_at(
        forest, _priced(forest, pools, columns, np.full(len(names), 1e7 * _span(forest))), threads
    )
    met = [_met(forest, p, pools, columns) for p in (nothing, first)]
    bound, price, share = np.inf, np.zeros(len(names)), np.ones(1)
    for _ in range(_ROUNDS):
        share, price, value = _mix(met, limits, forest.sign)
        policy = _policy_at(forest, _priced(forest, pools, columns, price), threads)
        new = _met(forest, policy, pools, columns)
        bound = min(bound, forest.sign * new.reward - price @ new.use + price @ limits)
        if bound - value <= _CLOSE * max(abs(bound), _span(forest)):
            break
        met.append(new)
    used = [i for i, w in enumerate(share) if w > 1e-12]
    weight = share[used] / share[used].sum()
    use = weight @ np.array([met[i].use for i in used])
    return Plans(
        tuple(met[i].policy for i in used),
        weight,
        float(weight @ np.array([met[i].reward for i in used])),
        forest.sign * float(bound),
        dict(zip(names, use.tolist(), strict=True)),
        dict(zip(names, price.tolist(), strict=True)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Met:
    policy: Policy
    reward: float
    use: FloatArray


def _check(f: Forest, uses: Mapping[str, Any], budgets: Mapping[str, float]) -> None:
    f.must_be_plain("a limit on several resources")
    if not budgets or set(uses) != set(budgets):
        raise InvalidArgument(
            f"every resource needs a use and a budget, but there are uses of {sorted(uses)} and "
            f"budgets of {sorted(budgets)}."
        )
    bad = [name for name, b in budgets.items() if not b >= 0]
    if bad:
        raise InvalidArgument(
            f"a budget must be 0 or more, but that of {bad[0]!r} is {budgets[bad[0]]} "
            f"({such(len(bad), 'budget')})."
        )


def _span(f: Forest) -> float:
    numbers = np.append(f.rewards.data, f.outside)
    numbers = numbers[np.isfinite(numbers)]
    return float(numbers.max() - numbers.min()) or 1.0


def _priced(f: Forest, pools: list[Pool], columns: list[Any], price: FloatArray) -> Forest:
    """The forest whose costs are the uses at some prices."""
    kinds, column = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    costs = []
    for kind in kinds:
        cost = np.zeros((1, 1))
        for p, pool, i in zip(price, pools, kind, strict=True):
            cost = cost + max(float(p), 0.0) * pool[int(i)]
        costs.append(cost)
    shape = np.array([c.shape for c in costs], np.int64)
    start = np.concatenate([[0], np.cumsum(shape.prod(axis=1))])
    return replace(
        f,
        cost=column.reshape(-1),
        costs=Pool(np.concatenate([c.reshape(-1) for c in costs]), start, shape),
    )


def _policy_at(f: Forest, priced: Forest, threads: int | None) -> Policy:
    return Policy.of(f, *solve(priced, exact=len(f) < 1000, threads=threads).index_columns())


def _met(f: Forest, policy: Policy, pools: list[Pool], columns: list[Any]) -> _Met:
    """A policy with its expected reward and uses."""
    e = evaluate(policy)
    use = [_use(f, e, pool, column) for pool, column in zip(pools, columns, strict=True)]
    return _Met(policy, e.reward, np.array(use))


def _use(f: Forest, e: Evaluation, pool: Pool, column: Any) -> float:
    total = 0.0
    for v in range(len(f)):
        mean = (f.laws[int(f.law[v])] * pool[int(column[v])]).sum(axis=1)
        total += float(e.opened_after[v] @ mean)
    return total


def _mix(met: list[_Met], limits: FloatArray, sign: float) -> tuple[FloatArray, FloatArray, float]:
    """The best mixture of policies within the limits: shares, prices of the limits, reward."""
    linprog = need("scipy.optimize", "scipy").linprog
    reward = sign * np.array([m.reward for m in met])
    found = linprog(
        -reward,
        A_ub=np.array([m.use for m in met]).T,
        b_ub=limits,
        A_eq=np.ones((1, len(met))),
        b_eq=[1.0],
        bounds=(0, None),
        method="highs",
    )
    if not found.success:
        raise InvalidArgument(
            "no policy keeps within the budgets: even opening as little as possible uses more. "
            "Raise the budgets."
        )
    return np.asarray(found.x), np.maximum(-found.ineqlin.marginals, 0.0), float(-found.fun)


# -- a cap on every run ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CappedSpend:
    """The best reward if no run may spend more than a cap.

    Attributes
    ----------
    reward, error : float
        Mean reward of a policy that keeps to the cap, by simulation, and its standard error.
    bound : float
        No policy within the cap has a higher expected reward (lower, when minimizing), not even
        one that keeps to the cap only on average.
    spend : float
        Mean spend of the simulated policy.
    policy : Policy
        Its indices. A box is left out as soon as it might exceed the cap.
    """

    reward: float
    error: float
    bound: float
    spend: float
    policy: Policy


def capped(
    forest: Forest,
    cap: float,
    *,
    episodes: int = 2000,
    rng: np.random.Generator | int = 0,
    threads: int | None = None,
) -> CappedSpend:
    """A policy that never spends more than a cap, and a bound on what any such policy can earn.

    The policy follows the indices at the shadow price that the cap has as a budget. It opens a box
    only if the rest of the cap covers its cost whatever the box shows. The policy is good, not
    optimal.

    Parameters
    ----------
    forest : Forest
    cap : float
    episodes : int
        How often to simulate the policy.
    rng : Generator or int
    threads : int, optional
        All cores by default.

    Examples
    --------
    >>> import weitzman
    >>> box = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=3)
    >>> two = weitzman.questions.capped(box, cap=2, rng=1)
    >>> abs(two.reward - 7.5) < 4 * two.error, two.reward <= two.bound
    (True, True)
    """
    forest.must_be_plain("a cap on the spend")
    forest.must_end("a cap on the spend")
    best: Mixture = within_budget(forest, cap, threads=threads)
    policy = best.costly.policy
    generator = np.random.default_rng(rng)
    played = np.array([_play(policy, cap, generator) for _ in range(episodes)])
    reward, spend = played.T
    return CappedSpend(
        forest.sign * float(reward.mean()),
        error_of_mean(reward),
        best.reward,
        float(spend.mean()),
        policy,
    )


def _play(policy: Policy, cap: float, rng: np.random.Generator) -> tuple[float, float]:
    """One run: the best signed reward, and the spend."""
    f, best, left = policy.forest, policy.outside, cap
    ready = [(v, 0) for v in policy.root.tolist() for _ in range(int(min(f.count[v], 10**4)))]
    while ready:
        payable = [
            (float(policy.index[policy.index_at[v] + s]), -v, s)
            for v, s in ready
            if float(_row(f.costs[int(f.cost[v])], s).max()) <= left + 1e-12
        ]
        top, minus, s = max(payable, default=(-np.inf, 0, 0))
        if not top > best:
            break
        v = -minus
        ready.remove((v, s))
        law = f.laws[int(f.law[v])][s]
        y = int(rng.choice(len(law), p=law / law.sum()))
        cost = _row(f.costs[int(f.cost[v])], s)
        left -= float(cost[y] if len(cost) > 1 else cost[0])
        best = max(best, float(policy.rewards[f.rewards.start[f.reward[v]] + y]))
        for u in policy.child[policy.child_at[v] : policy.child_at[v + 1]].tolist():
            ready += [(u, y)] * int(min(f.count[u], 10**4))
    return best, cap - left


def _row(cost: FloatArray, s: int) -> FloatArray:
    return np.asarray(cost[s if len(cost) > 1 else 0])
