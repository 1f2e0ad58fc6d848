"""How many ends a search can have: a bound that is found before any of them is written out."""

from __future__ import annotations

import numpy as np

from .._common.arrays import FloatArray
from .._kernels.structure import postorder
from ..engine.indices import Policy


def most_ends(policy: Policy) -> float:
    """No search by the policy ends in more ways than this; infinite for an endless line.

    A box that shows a state leads to as many ends as its children have together; a child whose
    index is not above what is in hand stays closed. Trees are counted as if none stopped another.
    """
    f = policy.forest
    if f.endless.any():
        return np.inf
    below: dict[int, FloatArray] = {}  # ends of all children so far, for each own state
    total, opened = 1.0, False
    with np.errstate(over="ignore"):
        for v in postorder(f.parent)[0].tolist():
            up, law = int(f.parent[v]), f.laws[int(f.law[v])]
            after = below.pop(v, np.ones(law.shape[1]))
            ends = 1.0 + np.where(law > 0, after, 0.0).sum(axis=1)
            start = int(policy.index_at[v])
            opens = policy.index[start : start + len(law)] > _in_hand(policy, up)
            ways = np.where(opens, ends, 1.0) ** float(f.count[v])
            if up >= 0:
                below[up] = below.get(up, np.ones(len(ways))) * ways
            elif ways[0] > 1:
                total, opened = total * float(ways[0]), True
    return max(total - opened, 1.0)  # the first box is opened for sure


def _in_hand(policy: Policy, above: int) -> FloatArray:
    """What is in hand at least when a box shows each of its states, higher is better."""
    f = policy.forest
    if above < 0:
        return np.array([policy.outside])
    rewards = f.sign * f.rewards[int(f.reward[above])][0]
    return np.asarray(np.maximum(rewards, policy.outside), np.float64)
