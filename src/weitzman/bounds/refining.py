"""The known part of a lazy forest, and expanding it where the gap comes from.

A *situation* is what can be opened now and the best reward so far. Some of the nodes below it are
*in play*; *tips* are nodes in play whose children are not in play. Without the children, the nodes
are worth at most the true value; with stand-ins for the children, at least the true value. So the
values of the two forests enclose the value of the whole.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import IntArray
from ..engine.indices import choose
from ..engine.plan import Progress
from ..engine.solution import Solution
from ..engine.solver import solve
from ..errors import InvalidArgument, InvalidForest
from ..forest.columns import stack_pool, take_pools
from ..forest.model import Forest
from ..policy.simulation import simulate
from .index_bounds import GivenBound, StaticBound
from .lazy_tree import LazyTree
from .truncation import span

_FEWEST = 16  # nodes expanded in a round, at least, if there are as many
_FEW = 4  # tips are very few if this many times as many were wanted
_EPISODES, _MANY_EPISODES = 2**10, 2**13  # played to find out which tips matter
_PER_NODE = 8  # episodes for each node in play, at most
_PROVEN = 1e-9  # what may be lost by a proven decision: rounding, as a share of the rewards' range


class Closed(NamedTuple):
    """A node that can be opened: what its parent showed, and how many copies are closed."""

    node: int
    state: int
    copies: int


class Situation(NamedTuple):
    """What can be opened now, and the best reward so far."""

    closed: Sequence[Closed]
    best: float


class InPlay:
    """The nodes in play, those of the situation first, numbered in the order of arrival."""

    def __init__(
        self, tree: LazyTree, bounds: GivenBound | StaticBound, situation: Situation
    ) -> None:
        self.tree, self.bounds, self.situation = tree, bounds, situation
        self.node = array("q", [c.node for c in situation.closed])
        self.parent = array("q", [-1] * len(self.node))
        self.tip = array("b", [1] * len(self.node))

    def __len__(self) -> int:
        return len(self.node)

    def expand(self, i: int) -> None:
        """Bring the children of a tip into play."""
        children = self.tree.expand(self.node[i])
        self.bounds.added(self.tree, children)
        self.node.extend(children)
        self.parent.extend([i] * len(children))
        self.tip.extend([1] * len(children))
        self.tip[i] = 0

    def tips(self) -> IntArray:
        """The places of the tips."""
        return np.flatnonzero(np.array(self.tip))

    def forest(self, *, stand_ins: bool = False, named: bool = False) -> Forest:
        """The nodes in play alone, or with a stand-in below each tip; errors need names."""
        t, roots = self.tree, self.situation.closed
        node = np.array(self.node, np.int64)
        after = np.full(len(node), -1)
        after[: len(roots)] = [c.state for c in roots]
        count = np.array(t.count)[node]
        count[: len(roots)] = [c.copies for c in roots]
        (laws,), law, _ = take_pools([t.laws.pool()], np.array(t.law)[node], after)
        amount = np.array(t.cost)[node]
        matrices = np.flatnonzero(np.isnan(amount))
        costs, cost = stack_pool(np.where(np.isnan(amount), 0.0, amount).reshape(-1, 1, 1))
        cost = cost.copy()
        cost[matrices] = len(costs) + np.arange(len(matrices))
        none = np.array([[np.nan]])
        costs = costs.with_more([t.costs.get(v, none) for v in node[matrices].tolist()])
        (costs,), cost, _ = take_pools([costs], cost, after)
        given: dict[str, Any] = {
            "parent": np.array(self.parent, np.int64), "count": count, "law": law, "laws": laws,
            "reward": np.array(t.reward)[node], "rewards": t.rewards.pool(), "cost": cost,
            "costs": costs, "outside": self.situation.best, "minimize": t.minimize,
        }  # fmt: skip
        if stand_ins:
            self._hang(given)
        unnamed = [None] * (len(given["rewards"]) - len(t.state_names))
        given["state_names"] = (*t.state_names, *unnamed)
        try:
            if not named:
                return Forest(**given)
        except InvalidForest:
            pass
        titles = [t.nodes[v].name for v in self.node]
        titles += [f"(bound below {titles[i]})" for i in given["parent"][len(titles) :]]
        return Forest(**given, names=tuple(titles))

    def _hang(self, given: dict[str, Any]) -> None:
        """Add a stand-in below each tip to the columns and pools of a forest."""
        tips = self.tips()
        boxes = [self.bounds.below(self.tree, self.node[i]) for i in tips.tolist()]
        kinds = list({id(b): b for b in boxes}.values())
        place = {id(b): i for i, b in enumerate(kinds)}
        kind = np.array([place[id(b)] for b in boxes], np.int64)
        count = np.array([b.count for b in kinds], np.int64)[kind]
        more = {"parent": tips, "count": count}
        for one, pool, matrices in (
            ("law", "laws", [b.law for b in kinds]),
            ("reward", "rewards", [b.rewards for b in kinds]),
            ("cost", "costs", [b.cost for b in kinds]),
        ):
            more[one] = len(given[pool]) + kind
            given[pool] = given[pool].with_more(matrices)
        given |= {name: np.concatenate([given[name], column]) for name, column in more.items()}


class PlayBracket:
    """Bounds on the value and the indices of a situation, signed so that higher is better."""

    def __init__(self, play: InPlay, tolerance: float, threads: int | None) -> None:
        self.play, self.tolerance, self.tips = play, tolerance, play.tips()
        self.sign = -1.0 if play.tree.minimize else 1.0
        self.best = self.sign * play.situation.best
        self.low: Solution = solve(play.forest(), tolerance=tolerance, threads=threads)
        self.high = self.low
        if len(self.tips) > 0:
            raised = play.forest(stand_ins=True)
            self.high = solve(raised, tolerance=tolerance, threads=threads)
        self.lower = self.sign * self.low.value - self.low.gap  # merged breakpoints included
        self.upper = self.sign * self.high.value
        self.span = span(self.high.forest)  # those of the stand-ins and the best so far among them
        columns = (x.index_columns() for x in (self.low, self.high))
        n = len(play.situation.closed)  # no index of the situation is lower, or higher
        self.low_index, self.high_index = (self.sign * index[at[:n]] for at, index in columns)

    def relevant(self, wanted: int) -> IntArray:
        """The first tips below which something could be worth opening, up to a number of them."""
        at, index = self.high.index_columns()
        found: list[int] = []
        for j, tip in enumerate(self.tips.tolist()):
            own = self.sign * self.play.tree.own_rewards(self.play.node[tip])
            ahead = self.sign * index[at[len(self.play) + j] :][: len(own)]
            if len(found) < wanted and (ahead > np.maximum(own, self.best)).any():
                found.append(tip)
        return np.array(found, np.int64)


class Ending(Enum):
    """Why no more nodes were expanded."""

    GAP = "The bounds are as close as was asked for."
    BUDGET = "As many nodes were expanded as was allowed."
    COMPLETE = "Nothing that could change the answer is left to expand."


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now."""

    which: int | None  # the place of the box to open among those that can be opened; None: stop
    regret: float  # the most that this decision, followed by the best policy, may lose
    proven: bool  # whether the regret is 0
    index: float  # a lower bound on the index of the box; when stopping, the reward in hand


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What refinement has come to; ``history`` has (expanded, lower, upper) for each round."""

    bracket: PlayBracket
    decision: Decision
    ending: Ending
    history: list[tuple[int, float, float]]


def refine(
    play: InPlay, enough: Callable[[Decision, float], bool], budget: int, *,
    tolerance: float = 1e-9, threads: int | None = None, progress: Progress | None = None,
) -> Outcome:  # fmt: skip
    """Expand tips until a decision and a gap are good ``enough``."""
    expanded, episodes = 0, _EPISODES
    history: list[tuple[int, float, float]] = []
    low, high = -np.inf, np.inf
    while True:
        bracket = PlayBracket(play, tolerance, threads)
        low, high = max(low, bracket.lower), min(high, bracket.upper)
        if low - high > _PROVEN * bracket.span + bracket.low.gap:
            raise InvalidArgument(
                f"`bound` must not be exceeded, but what is known already is worth "
                f"{bracket.sign * low:.9g}, and with the bound it could be worth at most "
                f"{bracket.sign * high:.9g}. Give a bound on the indices of all boxes below a node."
            )
        history.append((expanded, low, high))
        if progress is not None:
            progress(expanded, budget)
        ending, left = Ending.COMPLETE, max(high - low, 0.0)
        if enough(decide(bracket, left), left) and enough(decide(bracket, left, sure=True), left):
            ending = Ending.GAP
        elif len(bracket.tips) > 0 and expanded >= budget:
            ending = Ending.BUDGET
        elif len(bracket.tips) > 0:
            wanted = min(max(_FEWEST, expanded // 2), budget - expanded)
            tips, episodes = _promising(bracket, wanted, episodes, expanded, threads)
            if len(tips) > 0:
                expanded += _expand(play, tips, wanted)
                continue
        return Outcome(bracket, decide(bracket, left, sure=True), ending, history)


def _expand(play: InPlay, tips: IntArray, wanted: int) -> int:
    """Expand tips; if they are very few also what comes up below: a line is not solved often."""
    waiting, few = deque(tips.tolist()), _FEW * len(tips) < wanted
    done = 0
    while waiting and done < wanted:
        here = len(play)
        play.expand(waiting.popleft())
        done += 1
        if few:
            waiting.extend(range(here, len(play)))
    return done


def decide(bracket: PlayBracket, gap: float, *, sure: bool = False) -> Decision:
    """The decision of what is known, and what it may lose; without ``sure``, up to merging.

    Opening a box whose index is within d of the highest loses at most d: were it cheaper by d, its
    index would be the highest. Following what is known loses at most the gap.
    """
    best, which = bracket.best, choose(bracket.low_index, bracket.best)
    if which is not None:
        low = _sure_index(bracket, which) if sure else float(bracket.low_index[which])
        others = float(np.delete(bracket.high_index, which).max(initial=-np.inf))
        regret = min(max(others - low, 0.0) if low > best else np.inf, gap)
        return Decision(which, regret, regret <= _PROVEN * bracket.span, low)
    regret = min(max(bracket.upper - best, 0.0), gap)
    return Decision(None, regret, regret <= _PROVEN * bracket.span, best)


def _sure_index(bracket: PlayBracket, which: int) -> float:
    """A lower bound on an index, also if breakpoints were merged."""
    low = bracket.low
    if low.gap == 0.0:
        return float(bracket.low_index[which])
    # merging raises E max(x, kappa) by at most the certified error: so does the cost, then
    alone = low.forest.subtree(which)
    raised = 2 * solve(alone, tolerance=bracket.tolerance).gap
    cost = alone.costs[int(alone.cost[0])] + raised
    again = solve(alone.changed(cost={0: cost}), tolerance=bracket.tolerance)
    clear = abs(again.value - alone.outside) > again.gap  # else the error may be larger than said
    if again.gap > raised or not (clear or again.gap == 0.0):
        return -np.inf
    return bracket.sign * float(again.indices(0)[0])


def _promising(
    bracket: PlayBracket, wanted: int, episodes: int, seed: int, threads: int | None
) -> tuple[IntArray, int]:
    """The tips to expand, and how many episodes to play the next time.

    First come those that the search would reach most often if the stand-ins were real.
    """
    most = max(_MANY_EPISODES, _PER_NODE * len(bracket.play))
    while True:
        crew = 1 if episodes < _MANY_EPISODES else threads
        played = simulate(bracket.high, episodes, seed, threads=crew)
        opened = played.opened[len(bracket.play) :]
        hit = np.flatnonzero(opened)
        if len(hit) > 0 or episodes >= most:
            break
        episodes = min(4 * episodes, most)
    if len(hit) == 0:
        return bracket.relevant(wanted), episodes
    if len(hit) < wanted:
        episodes = min(2 * episodes, most)
    by = hit[np.argsort(-opened[hit], kind="stable")[:wanted]]
    return bracket.tips[by], episodes
