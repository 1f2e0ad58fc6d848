"""Several prizes in a search: what each tree holds, what was taken, what is worth taking now."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import InvalidAnswer
from .frontier import Id

if TYPE_CHECKING:
    from .walk import Walk


class Hands:
    """The best reward found in each tree that is not closed, and the rewards taken.

    ``taken`` is by tree, in the order of taking. Rewards are the true ones; all comparisons are by
    the sign of the walk.
    """

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self.places = int(walk.forest.prizes)
        self.taken: dict[Id, tuple[Id, float]] = {}
        self._best: dict[Id, tuple[Id, float]] = {}

    def tree(self, box: Id) -> Id:
        """The root above a box: its tree."""
        while (above := self._walk.above(box)) is not None:
            box = above
        return box

    def __contains__(self, box: object) -> bool:
        """Whether a box is out of reach: handed out, or its tree closed, or all places filled."""
        return self.full or box in self._walk.out or self.tree(box) in self.taken  # type: ignore[arg-type]

    @property
    def full(self) -> bool:
        """Whether all prizes were taken."""
        return len(self.taken) == self.places

    def found(self, box: Id, reward: float | None) -> None:
        """A box was opened."""
        tree, sign = self.tree(box), self._walk.sign
        if reward is None or tree in self.taken:
            return
        if tree not in self._best or sign * reward > sign * self._best[tree][1]:
            self._best[tree] = box, reward

    @property
    def held(self) -> Mapping[Id, tuple[Id, float]]:
        """The best reward found in each tree that is not closed, and the box that has it."""
        return self._best

    def mark(self) -> tuple[dict[Id, tuple[Id, float]], dict[Id, tuple[Id, float]]]:
        """What is held and taken now, for :meth:`go_back`."""
        return self._best.copy(), self.taken.copy()

    def go_back(self, mark: tuple[dict[Id, tuple[Id, float]], dict[Id, tuple[Id, float]]]) -> None:
        """Hold and have taken what was marked."""
        self._best, self.taken = mark

    def take(self, box: Id, reward: float) -> None:
        """A reward was taken, and its tree closed."""
        self.taken[self.tree(box)] = box, reward
        self._best.pop(self.tree(box), None)

    def bar(self) -> float:
        """What an index must exceed, signed: the outside option and every reward in hand."""
        sign = self._walk.sign
        if self.full:
            return math.inf
        outside = sign * self._walk.forest.outside
        return max([outside, *(sign * r for _, r in self._best.values())])

    def worth_taking(self) -> tuple[Id, float] | None:
        """The reward to take now: the highest of all in hand and of all indices, if it pays."""
        walk, sign = self._walk, self._walk.sign
        if self.full or not self._best:
            return None
        box, reward = max(self._best.values(), key=lambda pair: (sign * pair[1], -pair[0][0]))
        top = walk.top()
        awaited = (walk.frontier.index(b[0], walk.state_above(b)) for b in walk.out)
        rivals = max([-math.inf if top is None else top[1], *awaited], default=-math.inf)
        pays = sign * reward > sign * walk.forest.outside
        return (box, reward) if pays and rivals <= sign * reward else None

    def total(self) -> float:
        """The sum of all prizes if one stopped now: taken, in hand, and empty places."""
        sign, outside = self._walk.sign, self._walk.forest.outside
        hand = sorted((sign * r for _, r in self._best.values()), reverse=True)
        left = self.places - len(self.taken)
        kept = [max(x, sign * outside) for x in hand[:left]]
        kept += [sign * outside] * (left - len(kept))
        return sum(r for _, r in self.taken.values()) + sign * sum(kept)

    def check(self, box: Id) -> bool:
        """Whether a reward can be taken; False if it was before, an error if it never can."""
        walk = self._walk
        here = walk.box(box)
        if box not in walk.told or walk.told[box].reward is None:
            why = "it has no reward" if box in walk.told else "it was not opened"
            raise InvalidAnswer(f"the reward of box {here!r} cannot be taken: {why}.")
        before = self.taken.get(self.tree(box))
        if before is not None and before[0] == box:
            return False
        if before is not None:
            raise InvalidAnswer(
                f"one prize comes from each tree, but {walk.box(before[0])!r} was taken from the "
                f"tree of {here!r} before."
            )
        if self.full:
            raise InvalidAnswer(f"there are {self.places} prizes, and all of them were taken.")
        return True
