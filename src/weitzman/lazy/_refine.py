"""Bring nodes into play, those first that have to do with the gap, until it is small enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from .._types import FloatArray, IntArray
from ..errors import InvalidArgument
from ..plan import Progress
from ..simulation import simulate
from ..solve import solve
from ._bracket import Bracket, InPlay

_FEWEST = 16  # tips expanded in a round, at least
_EPISODES, _MOST_EPISODES = 2**10, 2**18  # played to find out which tips matter
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
        No policy is worth more than this decision, followed by the best there is, plus this.
    proven : bool
        Whether the regret is nil.
    """

    which: int | None
    regret: float
    proven: bool


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What refinement has come to; ``history`` has (expanded, lower, upper) for each round."""

    bracket: Bracket
    decision: Decision
    ending: Ending
    history: list[tuple[int, float, float]]


def refine(
    play: InPlay,
    enough: Callable[[Decision, float], bool],
    budget: int,
    *,
    minimise: bool,
    tolerance: float,
    threads: int | None,
    progress: Progress | None = None,
) -> Outcome:
    """Expand tips until a decision and a gap are good ``enough``."""
    expanded, episodes = 0, _EPISODES
    history: list[tuple[int, float, float]] = []
    low, high = -np.inf, np.inf
    while True:
        bracket = Bracket.around(play, minimise, tolerance, threads)
        low, high = max(low, bracket.lower), min(high, bracket.upper)
        _check_order(bracket, low, high)
        history.append((expanded, low, high))
        if progress is not None:
            progress(expanded, budget)
        decision = decide(bracket, max(high - low, 0.0))
        if enough(decision, high - low):
            ending = Ending.GAP
            break
        wanted = min(max(_FEWEST, expanded // 2), budget - expanded)
        if wanted <= 0:
            ending = Ending.BUDGET
            break
        tips, episodes = _promising(bracket, wanted, episodes, expanded, threads)
        if len(tips) == 0:
            ending = Ending.COMPLETE
            break
        for tip in tips.tolist():
            play.expand(tip)
        expanded += len(tips)
    return Outcome(bracket, decision, ending, history)


def decide(bracket: Bracket, gap: float) -> Decision:
    """The decision of what is known, and what it may lose.

    Opening a box whose index is within d of the highest loses at most d: were it cheaper by d, its
    index would be the highest. Following what is known loses at most the gap.
    """
    slack = _PROVEN * bracket.span
    best, which = bracket.best, int(np.argmax(bracket.low_index))
    if not bracket.low_index[which] > best:
        regret = min(max(bracket.upper - best, 0.0), gap)
        return Decision(None, regret, regret <= slack)
    others = float(np.delete(bracket.high_index, which).max(initial=-np.inf))
    regret = max(others - float(bracket.low_index[which]), 0.0)
    if regret <= slack:
        regret = max(others - _sure_index(bracket, which), 0.0)
        if not _sure_index(bracket, which) > best:
            regret = np.inf
    regret = min(regret, gap)
    return Decision(which, regret, regret <= slack)


def _sure_index(bracket: Bracket, which: int) -> float:
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
    bracket: Bracket, wanted: int, episodes: int, seed: int, threads: int | None
) -> tuple[IntArray, int]:
    """The tips to expand, and how many episodes to play the next time.

    Where the search leads if the stand-ins were real, there the gap comes from: those are taken
    that it reaches most often. What it never reaches is only looked at when nothing else is left.
    """
    opened: FloatArray = np.empty(0)
    while len(bracket.tips):
        played = simulate(bracket.high, episodes, seed, keep=1, threads=threads)
        opened = played.opened[len(bracket.play) :]
        if opened.any() or episodes >= _MOST_EPISODES:
            break
        episodes = min(4 * episodes, _MOST_EPISODES)
    hit = np.flatnonzero(opened > 0)
    if len(hit) == 0:
        return bracket.relevant(wanted), episodes
    if len(hit) < wanted:
        episodes = min(2 * episodes, _MOST_EPISODES)
    by = hit[np.argsort(-opened[hit], kind="stable")[:wanted]]
    return bracket.tips[by], episodes


def _check_order(bracket: Bracket, low: float, high: float) -> None:
    if low - high > _PROVEN * bracket.span + bracket.low.gap:
        raise InvalidArgument(
            f"`bound` must not be exceeded, but what is known already is worth "
            f"{bracket.sign * low:.9g}, and with the bound it could be worth at most "
            f"{bracket.sign * high:.9g}. Give a bound on the indices of all boxes below a node."
        )
