"""A model whose states are the logged runs themselves: a run goes on as those that it resembles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import FloatArray, IntArray
from ..errors import InvalidArgument
from ._kin import Solved, Stage, solve_stages, stages
from ._known import Config, Encoder, features
from ._ladder import Ladder, climb, climb_all
from ._laws import cost_levels, imagined, usual_cost
from .curves import Curves

History = tuple[Sequence[Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resemblance:
    """How logged runs become the states of a :class:`ResemblanceModel`.

    Attributes
    ----------
    ratio : float
        A rung is set where a run has paid this many times what it had paid at the one before.
    trees : int
        Trees grown for each segment.
    leaf : int
        Runs that a leaf keeps at least.
    states : int
        States at a rung at most; where more runs were seen, those in between stand for others.
    tail : float
        For how many runs of the log the imagined ones count that are better than all.
    limit : float or None
        The best score that there can be, if known.
    """

    ratio: float = 1.4
    trees: int = 64
    leaf: int = 4
    states: int = 320
    tail: float = 0.3
    limit: float | None = None


class ResemblanceModel:
    def __init__(
        self, ladder: Ladder, encoder: Encoder, *, price: float, minimize: bool, settings: Resemblance
    ) -> None:
        self.price, self.minimize, self.settings = float(price), minimize, settings
        self.ladder, self.encoder = ladder, encoder
        self._all = ladder
        if settings.tail > 0:
            ceiling = np.inf if settings.limit is None else (-settings.limit if minimize else settings.limit)
            self._all = ladder.joined(imagined(ladder, settings.tail, ceiling))
        self._stages, self._levels = stages(
            self._all, encoder, trees=settings.trees, least=settings.leaf, states=settings.states, seed=20160
        )
        self._usual = usual_cost(self._all)
        self.rungs = ladder.rungs[: len(self._stages)]
        self._solved = solve_stages(self._stages, self._all, encoder, self._levels, self.price)
        weight = self._all.weight[self._stages[0].runs]
        first = (weight / weight.sum())[None]
        self._fresh = self._solved.index(0, self._stages[0].folded(first), first @ self._stages[0].cost)[0]

    def at_price(self, price: float) -> ResemblanceModel:
        import copy
        out = copy.copy(self)
        out.price = float(price)
        out._solved = solve_stages(self._stages, self._all, self.encoder, self._levels, out.price)
        weight = self._all.weight[self._stages[0].runs]
        first = (weight / weight.sum())[None]
        out._fresh = out._solved.index(0, self._stages[0].folded(first), first @ self._stages[0].cost)[0]
        return out

    @property
    def fresh_index(self) -> float:
        return float(self._fresh)

    def worth(self, score: float) -> float:
        """What a score is worth, in units of cost."""
        return -self.price * score if self.minimize else self.price * score

    def next_rung(self, step: int | None) -> int | None:
        """The step at which the next decision falls; None where the line ends."""
        place = 0 if step is None else int(np.searchsorted(self.rungs, step, "right"))
        return int(self.rungs[place]) if place < len(self.rungs) else None

    def start_indices(self, settings: Sequence[Config]) -> FloatArray:
        known = self.encoder.numbers(settings, len(settings))
        row, cost = self._stages[0].law(known, np.zeros(len(known)))
        return self._solved.index(0, row, cost)

    def indices_of(self, runs: Ladder) -> FloatArray:
        """The index of each segment of these runs, given what they had shown before."""
        size = len(self._stages)
        level = self._level(runs)
        out = np.full((len(runs), size), -np.inf)
        for r in range(size):
            some = np.flatnonzero(runs.seen >= r)
            if len(some):
                mine = runs.select(some)
                before = level[some, r - 1] if r else np.zeros(len(some))
                out[some, r] = self._solved.index(
                    r, *self._stages[r].law(features(mine, r, level[some]), before)
                )
        return out

    def next_indices(self, runs: Ladder) -> FloatArray:
        size = len(self._stages)
        level = self._level(runs)
        out = np.full(len(runs), -np.inf)
        for r in range(size):
            some = np.flatnonzero((runs.seen == r) & ~runs.gone)
            if len(some):
                mine = runs.select(some)
                before = level[some, r - 1] if r else np.zeros(len(some))
                out[some] = self._solved.index(
                    r, *self._stages[r].law(features(mine, r, level[some]), before)
                )
        return out

    def _level(self, runs: Ladder) -> FloatArray:
        if not self._levels.any():
            return np.zeros_like(runs.cost)
        return cost_levels(runs.cost, self._usual)
