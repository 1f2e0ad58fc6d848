"""Bring nodes into play until the gap is small enough, beginning where the gap comes from."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from .._common.arrays import IntArray
from ..engine.indices import choose
from ..engine.plan import Progress
from ..engine.solver import solve
from ..errors import InvalidArgument
from ..policy.simulation import simulate
from .in_play import InPlay, PlayBracket

_FEWEST = 16  # nodes expanded in a round, at least, if there are as many
_FEW = 4  # tips are very few if this many times as many were wanted
_EPISODES, _MANY_EPISODES = 2**10, 2**13  # played to find out which tips matter
_PER_NODE = 8  # episodes for each node in play, at most
_PROVEN = 1e-9  # what may be lost by a proven decision: rounding, as a share of the rewards' range


class Ending(Enum):
    """Why no more nodes were expanded."""

    GAP = "The bounds are as close as was asked for."
    BUDGET = "As many nodes were expanded as was allowed."
    COMPLETE = "Nothing that could change the answer is left to expand."


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now.

    Attributes
    ----------
    which : int or None
        The place of the box to open among those that can be opened; None: stop.
    regret : float
        No policy earns more than this decision, followed by the best policy, plus the regret.
    proven : bool
        Whether the regret is 0.
    index : float
        A lower bound on the index of the box; when stopping, the reward in hand.
    """

    which: int | None
    regret: float
    proven: bool
    index: float


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What refinement has come to; ``history`` has (expanded, lower, upper) for each round."""

    bracket: PlayBracket
    decision: Decision
    ending: Ending
    history: list[tuple[int, float, float]]


def refine(
    play: InPlay,
    enough: Callable[[Decision, float], bool],
    budget: int,
    *,
    tolerance: float,
    threads: int | None,
    progress: Progress | None = None,
) -> Outcome:
    """Expand tips until a decision and a gap are good ``enough``."""
    expanded, episodes = 0, _EPISODES
    history: list[tuple[int, float, float]] = []
    low, high = -np.inf, np.inf
    while True:
        bracket = PlayBracket(play, tolerance, threads)
        low, high = max(low, bracket.lower), min(high, bracket.upper)
        _check_order(bracket, low, high)
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
    """Expand tips, and if they are very few also what comes up below them, level by level.

    So a line is not solved again for each of its boxes.
    """
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
    """A lower bound on an index, also if breakpoints were merged.

    Merging raises E max(x, kappa), by at most the certified error e; so with the cost raised by e,
    the index is not above the true one.
    """
    low = bracket.low
    if low.gap == 0.0:
        return float(bracket.low_index[which])
    alone = low.forest.subtree(which)
    first = solve(alone, tolerance=bracket.tolerance)
    raised = 2 * first.gap
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

    The gap comes from the tips that the search would reach if the stand-ins were real, so the tips
    that it reaches most often come first. Other tips are expanded only when none of these is left.
    """
    most = max(_MANY_EPISODES, _PER_NODE * len(bracket.play))
    while True:
        crew = 1 if episodes < _MANY_EPISODES else threads
        played = simulate(bracket.high, episodes, seed, keep=1, threads=crew)
        hit = np.flatnonzero(played.opened[len(bracket.play) :])
        if len(hit) > 0 or episodes >= most:
            break
        episodes = min(4 * episodes, most)
    if len(hit) == 0:
        return bracket.relevant(wanted), episodes
    if len(hit) < wanted:
        episodes = min(2 * episodes, most)
    opened = played.opened[len(bracket.play) + hit]
    by = hit[np.argsort(-opened, kind="stable")[:wanted]]
    return bracket.tips[by], episodes


def _check_order(bracket: PlayBracket, low: float, high: float) -> None:
    if low - high > _PROVEN * bracket.span + bracket.low.gap:
        raise InvalidArgument(
            f"`bound` must not be exceeded, but what is known already is worth "
            f"{bracket.sign * low:.9g}, and with the bound it could be worth at most "
            f"{bracket.sign * high:.9g}. Give a bound on the indices of all boxes below a node."
        )
