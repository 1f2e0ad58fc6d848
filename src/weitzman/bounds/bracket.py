"""A lower and an upper forest around a forest that is only partly known.

Leaving boxes out never helps: the known part alone is worth at most as much as the whole.
Replacing the rest by something worth at least as much never hurts. So the values of the two forests
enclose the value of the whole. Truncation cuts at a depth and raises the rewards at the cut; a lazy
forest has boxes that stand in for children not asked for yet.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import numpy as np

from ..engine.solution import Solution
from ..forest.model import Forest


class KnownPart(Protocol):
    """A part of a forest, and something that is worth at least as much as the rest."""

    def lower_forest(self) -> Forest:
        """The part alone."""

    def upper_forest(self) -> Forest | None:
        """The part with a stand-in for the rest; None: there is no rest."""


class Bracket:
    """Bounds on the value of a forest from a part of it, each solved when it is asked for.

    Both are signed so that higher is better. ``solver`` says how closely to solve.
    """

    def __init__(self, part: KnownPart, solver: Callable[[Forest], Solution]) -> None:
        self._part, self._solver = part, solver

    @cached_property
    def low(self) -> Solution:
        """The solution of the part alone."""
        return self._solver(self._part.lower_forest())

    @cached_property
    def high(self) -> Solution:
        """The solution of the part with a stand-in for the rest."""
        forest = self._part.upper_forest()
        return self.low if forest is None else self._solver(forest)

    @property
    def lower(self) -> float:
        """The forest is worth at least this, merged breakpoints included."""
        return float(self.low.forest.sign * self.low.value) - float(self.low.gap)

    @property
    def upper(self) -> float:
        """The forest is worth at most this."""
        return float(self.high.forest.sign * self.high.value)


def span(forest: Forest) -> float:
    """The range of the rewards, the outside option among them."""
    levels = np.append(forest.rewards.data, forest.outside)
    levels = levels[np.isfinite(levels)]
    return float(np.ptp(levels)) if len(levels) else 0.0
