"""A model of a run whose scores are the states of a line, and curves drawn from it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

import weitzman
from weitzman.forest.model import Forest
from weitzman.learn.run_model import RunModel


class Chained(RunModel):
    """A run as a line of boxes: at each rung it shows the score of one of its states.

    Parameters
    ----------
    first, then : array
        Law of the state at the first rung, and of the next state after each.
    scores : list of float
        Of the states, all different.
    costs : list of float
        Of going to each rung.
    rungs : list of int
    """

    def __init__(
        self,
        first: Sequence[float],
        then: Sequence[Sequence[float]],
        scores: Sequence[float],
        costs: Sequence[float],
        rungs: Sequence[int],
        *,
        price: float = 1.0,
        minimize: bool = False,
    ) -> None:
        self.price, self.minimize = price, minimize
        self.first, self.then, self.scores = first, np.asarray(then), list(scores)
        self.costs, self.rungs = list(costs), list(rungs)
        self.line = weitzman.line(
            [first, *[self.then] * (len(rungs) - 1)],
            rewards=[self.worth(score) for score in scores],
            cost=list(costs),
            states=[f"state {i}" for i in range(len(scores))],
        )
        self.solution = weitzman.solve(self.line)

    def lines(self, n: int = 1) -> Forest:
        return weitzman.lines([self.line], counts=[n])

    def gain(self, best, runs, fresh) -> float:
        begun = [run for run in runs if run.steps]
        rest = self.rest(begun, fresh + len(runs) - len(begun))
        if rest is None:
            return 0.0
        return max(weitzman.solve(rest.changed(outside=best)).value - best, 0.0)

    def worth(self, score: float) -> float:
        return (-1 if self.minimize else 1) * self.price * score

    def next_rung(self, step: int | None) -> int | None:
        return next((rung for rung in self.rungs if step is None or rung > step), None)

    @property
    def fresh_index(self) -> float:
        return self.solution.index(0)

    def _place(self, steps: Sequence[int], scores: Sequence[float]) -> tuple[int, str] | None:
        """The next box of the line and the state before it; None where it does not go on."""
        box = sum(rung <= steps[-1] for rung in self.rungs)
        if box == len(self.rungs) or math.isnan(scores[-1]):
            return None
        return box, f"state {self.scores.index(scores[-1])}"

    def next_index(
        self, steps: Sequence[int], scores: Sequence[float], costs=None, settings=None
    ) -> float:
        place = self._place(steps, scores)
        return -math.inf if place is None else self.solution.index(*place)

    def rest(self, runs: Sequence[tuple[Sequence[float], ...]], fresh: int) -> Forest | None:
        places = [place for run in runs if (place := self._place(*run[:2])) is not None]
        parts = [self.line.subtree(*place) for place in places]
        if fresh:
            parts.append(self.line)
        if not parts:
            return None
        return weitzman.side_by_side(parts, counts=[1] * len(places) + ([fresh] if fresh else []))

    def curves(self, runs: int, rng: np.random.Generator) -> np.ndarray:
        """(run, rung) states, drawn."""
        out = np.empty((runs, len(self.rungs)), int)
        for run in out:
            law = self.first
            for rung in range(len(self.rungs)):
                run[rung] = rng.choice(len(self.scores), p=law)
                law = self.then[run[rung]]
        return out

    def shown(self, states: Sequence[int]) -> Iterator[tuple[int, float, float]]:
        """(step, score, cost) of every step of a run, those between rungs like the rung after."""
        before = 0
        for rung, state, cost in zip(self.rungs, states, self.costs, strict=True):
            for step in range(before + 1, rung + 1):
                yield step, self.scores[state], cost / (rung - before)
            before = rung


def four_grades(**options: bool) -> Chained:
    """A run of five rungs that gets better slowly, on nine steps."""
    step = [
        [0.6, 0.3, 0.1, 0.0], [0.1, 0.6, 0.25, 0.05], [0.0, 0.1, 0.7, 0.2], [0.0, 0.0, 0.2, 0.8],
    ]  # fmt: skip
    scores = [0.0, 4.0, 7.0, 10.0]
    return Chained(
        [0.7, 0.2, 0.1, 0.0], step, scores, [0.25, 0.5, 0.5, 0.25, 0.75], [1, 3, 5, 6, 9], **options
    )


def slow_starters(model: Chained) -> np.ndarray:
    """Twelve curves, the first nine of which are not good enough to stop."""
    curves = model.curves(12, np.random.default_rng(2))
    curves[:9] = np.minimum(curves[:9], 1)
    return curves
