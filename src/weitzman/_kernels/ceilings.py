r"""What lies below a box can never be worth more than this.

Boxes of one law and one row of rewards are of one *kind*. If no capped value below a box that shows
y exceeds a number U(y), then the index of the box is at most the root in x of

.. math:: E\,\bigl(\max(r(Y), U(Y)) - x\bigr)^+ = c(s), \qquad Y \sim P(s, \cdot),

with the least cost of its kind for c; and U(y) may be taken as the largest of these roots after y
over the kinds that follow. Started at the highest reward of all, both can be computed from each
other again and again: they only fall, and at any moment they are bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .jit import helper, kernel
from .structure import Matrices


class Kinds(NamedTuple):
    """What is known of each kind: its law, rewards and least costs, and the kinds that follow."""

    law: np.ndarray
    reward: np.ndarray
    cost: np.ndarray  # of kind q, after state s, at start[q] + s
    start: np.ndarray
    edge_at: np.ndarray  # the kinds edge[edge_at[q]:edge_at[q + 1]] follow kind q
    edge: np.ndarray


class Ceilings(NamedTuple):
    """Bounds: no index and nothing that follows is worth more."""

    index: np.ndarray  # of kind q, after state s, at start[q] + s
    below: np.ndarray  # what follows kind q when it shows y, at below_at[q] + y
    below_at: np.ndarray


@helper()
def root(value, weight, owner, at, cost):
    """The root in x of E (W - x)^+ = cost for a W that takes the values ``value[k]``, which fall.

    ``weight[at + owner[k]]`` is the chance P(W = value[k]).

    The area under the tail of W is summed from the top, where nothing cancels, down to the value
    at which it exceeds the cost. A free box gets the smallest solution: the highest value of W.
    Values of minus infinity do not count.
    """
    mass, area, top = 0.0, 0.0, -np.inf
    for k in range(value.size):
        x, p = value[k], weight[at + owner[k]]
        if x == -np.inf:
            break
        if p == 0.0:
            continue
        if mass > 0.0:
            more = area + mass * (top - x)
            if more > cost:
                break
            area = more
        mass, top = mass + p, x
    return top - (cost - area) / mass if mass > 0.0 else -np.inf


@kernel()
def settle(
    laws: Matrices, rewards: Matrices, kinds: Kinds, bounds: Ceilings, rounds: int, steady: float
) -> None:
    """Lower the bounds in rounds over all kinds, those that follow first.

    They are bounds after every round. It ends after so many rounds, or when no index falls by more
    than ``steady``.
    """
    law, reward, cost, start, edge_at, edge = kinds
    index, below, below_at = bounds
    widest = 0
    for q in range(law.size):
        widest = max(widest, laws.shape[law[q], 1])
    worth, by = np.empty(widest), np.empty(widest, np.int64)  # by falling worth: worths, states
    for _ in range(rounds):
        fell = 0.0
        for q in range(law.size):
            rows, own = laws.shape[law[q], 0], laws.shape[law[q], 1]
            for y in range(own):
                most = -np.inf
                for e in range(edge_at[q], edge_at[q + 1]):
                    most = max(most, index[start[edge[e]] + y])
                below[below_at[q] + y] = most
                here = max(rewards.data[rewards.start[reward[q]] + y], most)
                i = y  # sorted by insertion
                while i > 0 and worth[i - 1] < here:
                    worth[i], by[i] = worth[i - 1], by[i - 1]
                    i -= 1
                worth[i], by[i] = here, y
            for s in range(rows):
                at = laws.start[law[q]] + s * own
                x = root(worth[:own], laws.data, by, at, cost[start[q] + s])
                if x < index[start[q] + s]:
                    fell = max(fell, index[start[q] + s] - x)
                    index[start[q] + s] = x
        if fell <= steady:
            break
