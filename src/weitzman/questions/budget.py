r"""A budget instead of a price: the most expected reward for an expected spend, or below a cap.

For every price :math:`\lambda` of money the policy that maximizes reward less :math:`\lambda` times
spend is the optimal one of the forest with all costs multiplied by :math:`\lambda`. The pairs
(spend, reward) of these policies are the corners of a concave curve, and every budget between two
corners is used up by a mixture of their policies. See the theory page, section 15.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np

from .._common.arrays import FloatArray, check_amounts, check_counts, error_of_mean
from .._common.numbers import number
from .._common.sharing import Executor, check_executor, team
from .._common.text import ResultTable
from ..engine.evaluation import Evaluation, evaluate
from ..engine.indices import Policy
from ..engine.solver import solve
from ..errors import InvalidArgument
from ..forest.columns import Pool
from ..forest.model import Forest
from ..policy.walk import Walk

_ROUNDING = 1e-11  # gains, as a share of the range of rewards, that are only rounding
_DEAR = 1e7  # a price of money, in units of the range of rewards, at which nothing is bought
_CHEAP = 1e-10  # and a price at which everything helpful is bought


@dataclass(frozen=True, slots=True, eq=False)
class Corner:
    """A policy on the frontier.

    Attributes
    ----------
    price : float
        A price of money at which the policy is optimal.
    spend, reward : float
        Expected spend and reward (in the user's sign).

    The policy and its evaluation are computed on request: a frontier has many corners.
    """

    price: float
    spend: float
    reward: float
    _market: _Market = field(repr=False)

    @property
    def policy(self) -> Policy:
        """The policy itself."""
        return self._market.follow(self.price)[0]

    @property
    def evaluation(self) -> Evaluation:
        """What the policy leads to."""
        return self._market.follow(self.price)[1]


@dataclass(frozen=True, slots=True, eq=False)
class Mixture(ResultTable):
    """The optimal use of a budget: one of two policies, by the toss of a coin.

    Attributes
    ----------
    budget, spend, reward : float
        What may be spent on average, what is spent on average, and the expected reward.
    price : float
        The shadow price: what one more unit of budget would add to the reward.
    cheap, costly : Corner
        The two policies, neighbors on the frontier; the same one twice if the budget is that of a
        corner or more than enough.
    share : float
        The probability of following ``costly``.
    """

    budget: float
    spend: float
    reward: float
    price: float
    cheap: Corner
    costly: Corner
    share: float

    def draw(self, rng: np.random.Generator | int) -> Policy:
        """The policy to follow this time, by a toss of the coin."""
        toss = np.random.default_rng(rng).random()
        return (self.costly if toss < self.share else self.cheap).policy

    def __repr__(self) -> str:
        return (
            f"Mixture(reward={self.reward:.6g}, spend={self.spend:.6g}, price={self.price:.6g}, "
            f"share={self.share:.4g})"
        )


@dataclass(frozen=True, slots=True, eq=False)
class SpendFrontier(ResultTable):
    """The most expected reward for each expected spend: concave, piecewise linear.

    Attributes
    ----------
    forest : Forest
    corners : tuple of Corner
        From the least spend to the most.
    gap : float
        How far the true curve may lie above the corners; 0 if all corners were found.
    """

    forest: Forest
    corners: tuple[Corner, ...]
    gap: float

    @property
    def spend(self) -> FloatArray:
        """Expected spend of each corner."""
        return np.array([c.spend for c in self.corners])

    @property
    def reward(self) -> FloatArray:
        """Expected reward of each corner."""
        return np.array([c.reward for c in self.corners])

    @property
    def price(self) -> FloatArray:
        """Slope of the curve between each two corners: the shadow price of a budget there."""
        run = np.diff(self.spend)
        return np.asarray(self.forest.sign * np.diff(self.reward) / run)

    def at(self, budget: float) -> Mixture:
        """The best use of a budget, from the corners found."""
        _check_budget(budget, self.corners[0])
        right = max(1, int(np.searchsorted(self.spend, budget, side="right")))
        costly = self.corners[right] if right < len(self.corners) else None
        return _mixture(budget, self.corners[right - 1], costly, self.forest.sign)

    def columns(self) -> dict[str, list[float]]:
        """One entry per corner: spend, reward, and the price of money beyond it (0 at the end)."""
        return {
            "spend": self.spend.tolist(),
            "reward": self.reward.tolist(),
            "price": [*self.price.tolist(), 0.0],
        }

    def headline(self) -> str:
        """The ends of the curve."""
        say, a, b = self.forest.amounts, self.corners[0], self.corners[-1]
        more = f", between corners higher by {say.margin(self.gap)} at most" if self.gap else ""
        return f"spend {say(a.spend)} to {say(b.spend)}{more}"

    def cells(self) -> list[list[str]]:
        """The corners as text."""
        say, rows = self.forest.amounts, zip(*self.columns().values(), strict=True)
        head = ["spend", "reward", "price beyond"]
        return [head, *([say(x), say(y), number(price)] for x, y, price in rows)]

    def __repr__(self) -> str:
        a, b = self.corners[0], self.corners[-1]
        return (
            f"SpendFrontier({len(self.corners)} corners, spend {a.spend:.6g} to {b.spend:.6g}, "
            f"reward {a.reward:.6g} to {b.reward:.6g}, gap {self.gap:.2g})"
        )


def frontier(
    forest: Forest, *, corners: int = 1000, tolerance: float = 0.0, threads: int | None = None,
    executor: Executor | None = None, progress: Callable[[int, int], None] | None = None,
) -> SpendFrontier:  # fmt: skip
    """The most expected reward for every expected spend.

    Parameters
    ----------
    forest : Forest
        With discounting, spend and reward are the discounted ones.
    corners : int
        Look for at most this many corners, the largest gaps first.
    tolerance : float
        Ignore corners that raise the curve by less than this share of the range of the rewards.
    threads, executor
        As in :func:`solve_many`. The corners do not depend on them.
    progress : callable, optional
        Called with the corners found and the gaps still open.

    Returns
    -------
    SpendFrontier
        The corners of the concave curve, and a bound on the error between them.

    See Also
    --------
    weitzman.questions.within_budget : The best policy for one budget.

    Examples
    --------
    >>> import weitzman
    >>> boxes = weitzman.Builder().add("A", cost=1, outcomes={0: 0.5, 10: 0.5})
    >>> boxes = boxes.add("B", cost=1, outcomes={0: 0.5, 4: 0.5}).build()
    >>> curve = weitzman.questions.frontier(boxes)
    >>> curve.spend.tolist(), curve.reward.tolist(), curve.price.tolist()
    ([0.0, 1.0, 1.5], [0.0, 5.0, 6.0], [5.0, 2.0])
    """
    check_executor(executor)
    check_counts(corners=corners)
    check_amounts(tolerance=tolerance)
    market = _Market.of(forest, threads)
    ends = market.ends()
    found = {c.spend: c for c in ends}
    number = count()  # equal gaps: first come, first served
    open_edges: list[tuple[float, int, Corner, Corner]] = []

    def add(left: Corner, right: Corner) -> None:
        rise = market.most_above(left, right)
        if rise > max(tolerance * market.span, market.rounding):
            heapq.heappush(open_edges, (-rise, next(number), left, right))

    if len(ends) == 2:
        add(*ends)
    with nullcontext() if executor is None else team(executor, forest) as workers:
        while open_edges and len(found) < corners:
            if progress is not None:
                progress(len(found), len(open_edges))
            if workers is not None and market.price(*open_edges[0][2:]) not in market.ahead:
                # the workers find the corners of all open gaps, as the next one is not known yet
                every = {market.price(*edge[2:]) for edge in open_edges[: corners - len(found)]}
                prices = sorted(p for p in every - market.ahead.keys() if p > 0)
                ahead = workers.do(_spend_and_reward, prices)
                market.ahead.update(zip(prices, ahead, strict=True))
            _, _, left, right = heapq.heappop(open_edges)
            middle = market.between(left, right)
            if middle is not None:
                found[middle.spend] = middle
                add(left, middle)
                add(middle, right)
    gap = max((-rise for rise, *_ in open_edges), default=0.0)
    return SpendFrontier(forest, tuple(found[x] for x in sorted(found)), gap)


def within_budget(forest: Forest, budget: float, *, threads: int | None = None) -> Mixture:
    """The most expected reward if the expected spend must not exceed a budget.

    Returns
    -------
    Mixture
        One or two policies and the share of each; ``draw`` chooses one.

    See Also
    --------
    weitzman.questions.capped : A limit for every single search.

    Examples
    --------
    >>> import weitzman
    >>> boxes = weitzman.Builder().add("A", cost=1, outcomes={0: 0.5, 10: 0.5})
    >>> boxes = boxes.add("B", cost=1, outcomes={0: 0.5, 4: 0.5}).build()
    >>> best = weitzman.questions.within_budget(boxes, 1.25)
    >>> round(best.reward, 9), round(best.price, 9), round(best.share, 9)
    (5.5, 2.0, 0.5)
    """
    market = _Market.of(forest, threads)
    ends = market.ends()
    _check_budget(budget, ends[0])
    return _mixture(budget, *market.edge(ends, lambda c: c.spend > budget), forest.sign)


def cheapest(
    forest: Forest, target: float, chance: float, *, threads: int | None = None
) -> Mixture:
    """The least expected spend that reaches a target with a given probability.

    Parameters
    ----------
    forest : Forest
    target : float
        A reward at least as good as this counts as success.
    chance : float
        The wanted probability of success.
    threads : int, optional

    Returns
    -------
    Mixture
        ``reward`` is the probability of success, ``price`` what one more unit of spend adds to it.

    Examples
    --------
    >>> import weitzman
    >>> box = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=4)
    >>> weitzman.questions.cheapest(box, target=10, chance=0.875).spend
    1.75
    """
    check_amounts(-np.inf, target=target)
    if not 0 < chance <= 1:
        raise InvalidArgument(f"`chance` must lie above 0 and be at most 1, but it is {chance}.")
    forest.must_be_plain("a target")
    signed, goal = forest.sign * forest.rewards.data, forest.sign * target
    hit = np.where(np.isfinite(signed), (signed >= goal).astype(float), 0.0)
    success = replace(  # the reward is 1 for what reaches the target, and 0 otherwise
        forest,
        rewards=Pool(hit, forest.rewards.start, forest.rewards.shape),
        outside=float(np.isfinite(forest.outside) and forest.sign * forest.outside >= goal),
        minimize=False,
    )
    market = _Market.of(success, threads)
    ends = market.ends()
    if ends[-1].reward < chance - market.rounding:
        raise InvalidArgument(
            f"a reward of {target:g} can be reached with a probability of {ends[-1].reward:.6g} at "
            f"most, but {chance:g} is asked for. Ask for less, or for a lower target."
        )
    left, right = market.edge(ends, lambda c: c.reward > chance)
    spend = left.spend
    if right is not None and left.reward < chance:
        share = (chance - left.reward) / (right.reward - left.reward)
        spend += share * (right.spend - left.spend)
    return _mixture(spend, left, right, 1.0)


def _mixture(budget: float, cheap: Corner, costly: Corner | None, sign: float) -> Mixture:
    """The mixture of two neighbors that spends the budget; no second one: all that helps."""
    if costly is None:
        return Mixture(budget, cheap.spend, cheap.reward, 0.0, cheap, cheap, 1.0)
    run, rise = costly.spend - cheap.spend, costly.reward - cheap.reward
    share = max(0.0, (budget - cheap.spend) / run)
    if share == 0.0:  # one more unit of budget would be spent beyond this corner
        return Mixture(budget, cheap.spend, cheap.reward, sign * rise / run, cheap, cheap, 1.0)
    return Mixture(
        budget, budget, cheap.reward + share * rise, sign * rise / run, cheap, costly, share
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Market:
    """Policies by the price of money."""

    forest: Forest
    span: float
    rounding: float
    threads: int | None
    ahead: dict[float, tuple[float, float]] = field(default_factory=dict)  # by price, from them

    @classmethod
    def of(cls, forest: Forest, threads: int | None) -> _Market:
        if not isinstance(forest, Forest):
            raise InvalidArgument(
                f"a budget needs a Forest, but got a {type(forest).__name__}. Describe one first."
            )
        if forest.risk_tolerance is not None:
            raise InvalidArgument(
                "a budget on the expected spend does not go with a risk tolerance: the utility is "
                "not a sum of reward and spend. Leave `risk_tolerance` out."
            )
        numbers = np.append(forest.rewards.data, forest.outside)
        numbers = numbers[np.isfinite(numbers)]
        span = forest.prizes * float(numbers.max() - numbers.min())
        return cls(forest, span, _ROUNDING * max(span, 1e-300), threads)

    def at(self, price: float) -> Corner:
        """The optimal policy at a price of money, and what it comes to."""
        if price not in self.ahead:
            _, e = self.follow(price)
            return Corner(price, e.spend, e.reward, self)
        return Corner(price, *self.ahead[price], self)

    def price(self, left: Corner, right: Corner) -> float:
        """The price of money at which two corners are worth the same."""
        return self.gain(left, right) / (right.spend - left.spend)

    def follow(self, price: float) -> tuple[Policy, Evaluation]:
        """The optimal policy at a price of money, and its evaluation."""
        f = self.forest
        costs = Pool(price * f.costs.data, f.costs.start, f.costs.shape)
        solution = solve(replace(f, costs=costs), exact=len(f) < 1000, threads=self.threads)
        policy = Policy.of(f, *solution.index_columns())
        return policy, evaluate(policy)

    def ends(self) -> list[Corner]:
        """The policy of least spend and that of most reward; one only if they are the same."""
        costs = self.forest.costs.data
        paid = costs[costs > 0]
        if len(paid) == 0 or self.span == 0:
            return [self.at(1.0)]
        first = self.at(_DEAR * self.span / float(paid.min()))
        last = self.at(_CHEAP * self.span / float(paid.max()))
        same = last.spend <= first.spend or self.gain(first, last) <= self.rounding
        return [first] if same else [first, last]

    def edge(
        self, ends: list[Corner], beyond: Callable[[Corner], bool]
    ) -> tuple[Corner, Corner | None]:
        """The last corner that is not beyond a limit, and the next one; None if there is none."""
        left, right = ends[0], ends[-1]
        if not beyond(right):
            return right, None
        if len(ends) == 1:
            return left, None
        while (middle := self.between(left, right)) is not None:
            left, right = (left, middle) if beyond(middle) else (middle, right)
        return left, right

    def gain(self, a: Corner, b: Corner) -> float:
        """How much more reward b has; higher is better."""
        return self.forest.sign * (b.reward - a.reward)

    def between(self, left: Corner, right: Corner) -> Corner | None:
        """The corner furthest above the line through two others; None: no corner lies above it."""
        price = self.price(left, right)
        if not price > 0:
            return None
        middle = self.at(price)
        if not left.spend < middle.spend < right.spend:
            return None
        above = self.gain(left, middle) - price * (middle.spend - left.spend)
        return middle if above > self.rounding else None

    def most_above(self, left: Corner, right: Corner) -> float:
        """How far the curve can lie above the line between two corners: the height of a triangle.

        Left of its peak the slope is at most the price of the left corner, right of it at least
        that of the right corner.
        """
        run, rise = right.spend - left.spend, self.gain(left, right)
        high, low = left.price, right.price
        if not high > low or run <= 0:
            return 0.0
        x = (rise - low * run) / (high - low)  # where the two tangents meet
        return float(max(high * x - rise * x / run, 0.0))


def _spend_and_reward(forest: Forest, price: float) -> tuple[float, float]:
    """On a worker: what the optimal policy at a price of money comes to."""
    _, e = _Market.of(forest, 1).follow(price)
    return e.spend, e.reward


def _check_budget(budget: float, least: Corner) -> None:
    check_amounts(-np.inf, budget=budget)
    if not budget >= least.spend * (1 - 1e-12) or budget < 0:
        raise InvalidArgument(
            f"the budget must be at least {least.spend:.6g}, the least that any policy spends, but "
            f"it is {budget:g}."
        )


@dataclass(frozen=True, slots=True)
class CappedSpend(ResultTable):
    """The best reward if no run may spend more than a cap.

    Attributes
    ----------
    reward, error, spend : float
        Of a policy that keeps to the cap, by simulation: its mean reward, the standard error of
        that, and its mean spend.
    bound : float
        No policy within the cap has a higher expected reward (lower, when minimizing), not even
        one that keeps to the cap only on average.
    policy : Policy
        Its indices. A box is left out as soon as it might exceed the cap.
    """

    reward: float
    error: float
    bound: float
    spend: float
    policy: Policy


def capped(
    forest: Forest, cap: float, *, episodes: int = 2000, rng: np.random.Generator | int = 0,
    threads: int | None = None,
) -> CappedSpend:  # fmt: skip
    """A policy that never spends more than a cap, and a bound on what any such policy can earn.

    The policy follows the indices at the shadow price that the cap has as a budget. It opens a box
    only if the rest of the cap covers its cost whatever the box shows. The policy is good, not
    optimal.

    Parameters
    ----------
    forest : Forest
        With an outside option, unless every run finds a reward within the cap.
    cap : float
    episodes, rng
        For the simulation of the policy.
    threads : int, optional

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
    check_amounts(cap=cap)
    check_counts(2, episodes=episodes)
    best = within_budget(forest, cap, threads=threads)
    policy = best.costly.policy
    generator = np.random.default_rng(rng)
    reward, spend = np.array([_play(policy, cap, generator) for _ in range(episodes)]).T
    if not np.isfinite(reward).all():
        raise InvalidArgument(
            f"without an outside option every run must find a reward, but within a cap of {cap:g} "
            f"{(reward == -np.inf).sum()} of {episodes} runs found none. Raise the cap, or give "
            f"the forest an outside option."
        )
    return CappedSpend(
        forest.sign * float(reward.mean()), error_of_mean(reward), best.reward,
        float(spend.mean()), policy,
    )  # fmt: skip


def _play(policy: Policy, cap: float, rng: np.random.Generator) -> tuple[float, float]:
    """One run: the best signed reward, and the spend."""
    walk, f = Walk(policy), policy.forest
    while True:
        best, _, spent = walk.totals()
        for (v, copy), index in walk.frontier.best_first():
            state, costs = walk.state_above((v, copy)), f.costs[int(f.cost[v])]
            if index <= walk.bar:
                return walk.sign * best, spent
            if spent + float(costs[state if len(costs) > 1 else 0].max()) <= cap + 1e-12:
                break
        else:
            return walk.sign * best, spent
        law = f.laws[int(f.law[v])][state]
        walk.show((v, copy), int(rng.choice(len(law), p=law / law.sum())))
