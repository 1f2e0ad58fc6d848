r"""The paper's payoff table of a single finite line, with its look-up corrected.

The table holds, for each amount x in hand, each state s of the box before and each box i,

.. math:: \Phi(x, s, i) = \max\{x,\ -c_i(s) + \sum_y p_i(s, y)\,
          \Phi(\max\{x, r_y\}, y, i + 1)\},

whether the best policy opens the box there, and what it then finds and pays. The paper's algorithm
("Expected Equivalent Reward Computation, Single Hyperbox") looks up (x, y, i + 1) where
:math:`(\max\{x, r_y\}, y, i + 1)` is needed; see the errata.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._common.arrays import BoolArray, FloatArray
from ..errors import InvalidArgument
from ..forest.model import Forest
from .weights import mean_cost

End = tuple[float, float]  # the best reward of the boxes opened from here on, and what they cost


@dataclass(frozen=True, slots=True, eq=False)
class PayoffTable:
    """The table of a line of n boxes; amounts and rewards in the user's sign.

    Attributes
    ----------
    forest : Forest
    levels : (m,) array
        The amounts in hand: all rewards and the outside option, the worst first.
    phi : tuple of n arrays, (m, states of the box before) each
        ``phi[i][l, s]``: the equivalent reward with ``levels[l]`` in hand when box i is next and
        the box before showed s. One column for the first box.
    opens : tuple of n arrays of bool
        Whether the best policy opens box i there (1) or stops (0); it stops at equality.
    printed : bool
        Whether this is the table with the paper's look-up, whose numbers are no policy's.
    """

    forest: Forest
    levels: FloatArray
    phi: tuple[FloatArray, ...]
    opens: tuple[BoolArray, ...]
    printed: bool = False

    def future(self, box: int, level: int, state: int = 0) -> dict[End, float]:
        """The joint law of the paper's future max reward and future cost from one entry on.

        Parameters
        ----------
        box : int
        level : int
            Which of ``levels`` is in hand.
        state : int
            What the box before showed.

        Returns
        -------
        dict
            The probability of each (best reward of the boxes opened from here on, what they
            cost). Nothing opened: minus infinity (plus, when minimizing) and 0.
        """
        f = self.forest
        none = -f.sign * np.inf
        if box == len(f) or not self.opens[box][level, state]:
            return {(none, 0.0): 1.0}
        law, rewards = f.laws[int(f.law[box])], f.rewards[int(f.reward[box])][0]
        cost = f.costs[int(f.cost[box])]
        prices = np.broadcast_to(cost[state if len(cost) > 1 else 0], len(rewards))
        found: dict[End, float] = {}
        for y in np.flatnonzero(law[state]).tolist():
            held = level if self.printed else self._raised(level, rewards[y])
            after = self.future(box + 1, held, y)
            for (best, spent), chance in after.items():
                end = (
                    float(f.sign * max(f.sign * best, f.sign * rewards[y])),
                    float(prices[y]) + spent,
                )
                found[end] = found.get(end, 0.0) + float(law[state, y]) * chance
        return found

    def _raised(self, level: int, reward: float) -> int:
        sign = self.forest.sign
        return max(level, int(np.searchsorted(sign * self.levels, sign * reward)))

    def __repr__(self) -> str:
        return f"PayoffTable({len(self.phi)} boxes, {len(self.levels)} levels)"


def payoff_table(forest: Forest, *, printed: bool = False) -> PayoffTable:
    """Equivalent rewards and decisions of a line of boxes, tabulated as in the paper.

    ``solve`` needs no table and gives the same values for any amount in hand; the table shows the
    paper's algorithm at work.

    Parameters
    ----------
    forest : Forest
        One finite line without copies, as :func:`~weitzman.line` makes it.
    printed : bool
        Fill in the table as the paper prints it: with x still in hand once a box has shown more.

    Examples
    --------
    Two boxes that surely hold 7, at 5.25 and 2.5: the second is not opened once 7 is in hand.

    >>> import weitzman
    >>> two = weitzman.line([[1.0], [[1.0]]], rewards=[7.0], cost=[5.25, 2.5])
    >>> table = payoff_table(two)
    >>> table.levels.tolist(), table.phi[0][:, 0].tolist()
    ([0.0, 7.0], [1.75, 7.0])
    >>> table.future(0, 0)
    {(7.0, 5.25): 1.0}

    The printed look-up pays for both boxes, so that opening the first seems not to pay.

    >>> payoff_table(two, printed=True).phi[0][:, 0].tolist()
    [0.0, 7.0]
    """
    f = forest
    if f.endless.any() or (f.count > 1).any() or (f.parent != np.arange(-1, len(f) - 1)).any():
        raise InvalidArgument(
            "the payoff table is that of one finite line without copies, each box the child of the "
            "one before. For other forests use solve and Solution.phi."
        )
    f.must_be_plain("the payoff table")
    used = np.concatenate([f.rewards[int(r)][0] for r in np.unique(f.reward)])
    levels = np.unique(f.sign * np.append(used[np.isfinite(used)], f.outside))
    phi: list[FloatArray] = []
    opens: list[BoolArray] = []
    after = np.repeat(levels[:, None], f.rewards.shape[f.reward[-1], 1], axis=1)
    for v in range(len(f) - 1, -1, -1):
        rewards, law = f.sign * f.rewards[int(f.reward[v])][0], f.laws[int(f.law[v])]
        if printed:  # only the decisions after box v are read
            so_far = PayoffTable(f, f.sign * levels, (), (*[after > 0] * (v + 1), *opens), True)
            then = _printed(so_far, v, levels, rewards)
        else:
            rank = np.maximum(np.arange(len(levels))[:, None], np.searchsorted(levels, rewards))
            then = np.take_along_axis(after, rank, axis=0)
        with np.errstate(invalid="ignore"):  # no chance of minus infinity is nothing
            on = np.where(law > 0, law * then[:, None, :], 0.0).sum(axis=2) - mean_cost(f, v)
        opens.insert(0, on > levels[:, None])
        after = np.maximum(levels[:, None], on)
        phi.insert(0, f.sign * after)
    return PayoffTable(f, f.sign * levels, tuple(phi), tuple(opens), printed)


def _printed(table: PayoffTable, v: int, levels: FloatArray, rewards: FloatArray) -> FloatArray:
    """E max(x, r_y, later) less what later costs, for each level x and state y of a box."""
    sign = table.forest.sign
    return np.array([[
        sum(p * (max(x, r, sign * best) - spent)
            for (best, spent), p in table.future(v + 1, i, y).items())
        for y, r in enumerate(rewards.tolist())
    ] for i, x in enumerate(levels.tolist())])  # fmt: skip
