"""The root in x of E (W - x)^+ = cost: the index of a box whose payoff is W.

One root at a time. :func:`.boxes.indices` finds the roots of eight rows at once, in the same way.
"""

from __future__ import annotations

import numpy as np

from .jit import helper, kernel

NEVER = -np.inf  # W is never a number, so that no x will do


@helper()
def root(value, weight, owner, at, cost, tails):
    """The root for a W that takes the values ``value[k]``, which fall.

    ``weight[at + owner[k]]`` is the chance P(W = value[k]), or with ``tails`` P(W >= value[k]).

    The area under the tail of W is summed from the top, where nothing cancels, down to the value
    at which it exceeds the cost. A free box gets the smallest solution: the highest value of W.
    Values of minus infinity do not count.
    """
    mass, area, top = 0.0, 0.0, NEVER
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
        mass, top = (p if tails else mass + p), x
    return top - (cost - area) / mass if mass > 0.0 else NEVER


# a model of learned runs is computed by many calls, which are small only if they are so together
@kernel(work=lambda value, owner, rows, cost, tails: 100.0 * len(rows) * value.size)
def roots(value, owner, rows, cost, tails):
    """The root for each row of weights: that of ``value[k]`` in row i is ``rows[i, owner[k]]``."""
    out, weight = np.empty(len(rows)), rows.reshape(-1)
    for i in range(len(rows)):
        out[i] = root(value, weight, owner, i * rows.shape[1], cost[i], tails)
    return out
