r"""Laws of capped values: all that matters about searching a box and the boxes below it.

With x in hand, searching the subtree of a box with capped value :math:`\kappa` is worth
:math:`\Phi(x) = E \max(x, \kappa)`, the paper's *equivalent reward*. The index, the paper's
*generalized reservation value*, is the least x with :math:`\Phi(x) = x`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import FloatArray
from .._common.interruption import interruptible
from .._common.law import Law
from ..errors import InvalidForest
from ..forest.model import Forest
from ..forest.rules import MAX_OUTSIDE
from .plan import Plan
from .small import best_of_roots, is_small, recursion

_EPS = 1e-12  # breakpoints that move an expectation by less, in units of the range, are merged


@dataclass(frozen=True, slots=True, eq=False)
class CappedLaw:
    """The law of a capped value, in the user's sign.

    Attributes
    ----------
    points : (m,) array, ascending
    tails : (m,) array
        P(kappa >= point); when minimizing P(kappa <= point).
    low, high : float
        A range of x to draw. It contains the outside option and all points, except points that are
        worse than every reward, the outside option and the index.
    index : float
        NaN for several trees at once.
    minimize : bool
    stated_error : float
        That of the forest, which a box in its place has, too.
    """

    points: FloatArray
    tails: FloatArray
    low: float
    high: float
    index: float
    minimize: bool
    stated_error: float = 0.0

    def phi(self, x: ArrayLike) -> Any:
        """E max(x, kappa); when minimizing, E min(x, kappa)."""
        sign = -1.0 if self.minimize else 1.0
        points, tails = self._upward()
        found = sign * Law(points, tails).with_fallback(sign * np.asarray(x, np.float64))
        return found if np.ndim(x) else float(found)

    def _upward(self) -> tuple[FloatArray, FloatArray]:
        """Points and tails to be maximized."""
        if self.minimize:
            return -self.points[::-1], self.tails[::-1]
        return self.points, self.tails

    def box(self, outside: float = 0.0) -> Forest:
        """A free box in place of all boxes: it costs nothing and shows the capped value.

        With any amount x in hand, the free box is worth the same as the boxes that it replaces.
        The missing probability is the chance that nothing can be found.
        """
        if not len(self.points):
            raise InvalidForest("a box needs a state with a reward, but nothing can be found here.")
        sign = -1.0 if self.minimize else 1.0
        points, tails = self._upward()
        chances = np.append(1.0 - tails[0], -np.diff(tails, append=0.0))
        rewards = sign * np.append(-np.inf, points)
        some = chances > 0
        return Forest.from_arrays(
            parent=[-1], cost=[0.0], rewards=[rewards[some]], law=[chances[some]],
            outside=outside, minimize=self.minimize, stated_error=self.stated_error,
        )  # fmt: skip


def capped_law_of(part: Forest, whole: Forest, index: float, indices: FloatArray) -> CappedLaw:
    """The law for all roots of ``part``, which was cut out of ``whole`` with these indices."""
    sign = whole.sign
    seen = sign * np.array([*_rewards(part), whole.outside, index])
    seen = seen[np.isfinite(seen)]
    below = sign * indices  # no capped value is lower than all of these
    marks = np.concatenate([seen, below[np.abs(below) < MAX_OUTSIDE / 4]])
    wide = float(np.ptp(marks)) or abs(float(marks[0])) or 1.0
    if is_small(part):
        law = best_of_roots(part, recursion(part))
        points, tails = law.points, law.tails[0]
    else:
        plan = Plan.of(part.changed(outside=sign * (float(marks.min()) - wide)))
        points, tails = interruptible(lambda: plan.run(_EPS * plan.span, clip=False).tail)
    ends = np.concatenate([np.maximum(points, seen.min()), seen[seen == sign * whole.outside]])
    ends = ends if len(ends) else seen
    room = 0.06 * float(np.ptp(ends)) or 0.06 * wide
    low, high = float(ends.min()) - room, float(ends.max()) + room
    if whole.minimize:
        return CappedLaw(-points[::-1], tails[::-1], -high, -low, index, True, whole.stated_error)
    return CappedLaw(points, tails, low, high, index, False, whole.stated_error)


def _rewards(forest: Forest) -> FloatArray:
    """All finite rewards of the boxes."""
    used = np.unique(forest.reward)
    rewards = np.concatenate([forest.rewards[int(r)][0] for r in used])
    return np.asarray(rewards[np.isfinite(rewards)])
