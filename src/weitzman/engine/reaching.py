"""Which boxes a policy may open at all, as far as cheap bounds tell.

A box is opened only if its index exceeds what the boxes above it have shown, and only after every
sibling with a higher index has been opened and has shown less than its own index. The product of
these probabilities bounds the probability of the opening from above. Where it is next to nothing,
the box and all below it may be left out of an evaluation.
"""

from __future__ import annotations

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from .._kernels import reach
from ..forest.model import Forest
from ..forest.pools import runs
from .indices import Policy
from .weights import Weights

NEVER = 1e-18  # a probability that counts as none
_CROWD = 64  # siblings from which on they are compared with each other


def box_count(f: Forest) -> float:
    """How many boxes there are: among many, even the rarest find counts."""
    return float(min(f.boxes, 10**300))


def in_reach(policy: Policy, weights: Weights, order: IntArray) -> IntArray:
    """Of a postorder, the boxes that are opened with more than next to no probability.

    With a risk tolerance all of them: rare ends may count most.
    """
    f = policy.forest
    if weights.tolerance > 0:
        return order
    own = f.rewards.shape[f.reward, 1]
    paths = reach.Paths(
        parent=f.parent, count=f.count, laws=f.laws.data, law_at=f.laws.start[f.law],
        index=policy.index, index_at=policy.index_at, rewards=policy.rewards,
        reward_at=f.rewards.start[f.reward], own_at=np.append(0, np.cumsum(own)),
        outside=policy.outside,
    )  # fmt: skip
    kept = reach.reachable(order, paths, NEVER / box_count(f))
    crowded = _never_first(paths, kept)
    if crowded.any():
        rows = f.laws.shape[f.law, 0]
        at = np.cumsum(rows) - rows
        index = policy.index[runs(policy.index_at, rows)]
        index[np.repeat(crowded, rows)] = -np.inf
        paths = paths._replace(index=index, index_at=at)
        kept = reach.reachable(order, paths, NEVER / box_count(f))
    return np.asarray(order[kept[order]])


def _never_first(paths: reach.Paths, kept: BoolArray) -> BoolArray:
    """Boxes that practically always find something better among their many siblings."""
    out = np.zeros(len(kept), bool)
    below = np.flatnonzero(kept & (paths.parent >= 0))
    crowds = np.flatnonzero(np.bincount(paths.parent[below], minlength=len(kept)) >= _CROWD)
    by = below[np.argsort(paths.parent[below], kind="stable")]
    for v in crowds.tolist():
        first, last = np.searchsorted(paths.parent[by], [v, v + 1])
        child = by[first:last]
        states = int(paths.own_at[v + 1] - paths.own_at[v])
        most = np.max([_chances(paths, child, y) for y in range(states)], axis=0)
        out[child] = most < np.log(NEVER) - 2 * np.log(float(paths.count.sum(dtype=float)))
    return out


def _chances(paths: reach.Paths, child: IntArray, state: int) -> FloatArray:
    """Logarithms of bounds on the probability that each child is opened after a state.

    A child with a higher index must have shown less than that index, and so must all its copies.
    """
    own = paths.own_at[child + 1] - paths.own_at[child]
    sigma = paths.index[paths.index_at[child] + state]
    chance = paths.laws[runs(paths.law_at[child] + state * own, own)]
    shown = paths.rewards[runs(paths.reward_at[child], own)]
    less = np.add.reduceat(chance * (shown <= np.repeat(sigma, own)), np.cumsum(own) - own)
    with np.errstate(divide="ignore"):
        fails = np.log(np.minimum(less, 1.0)) * paths.count[child]
    by = np.argsort(-sigma, kind="stable")
    before = np.concatenate([[0.0], np.cumsum(fails[by])])
    out = np.empty(len(child))
    out[by] = before[np.searchsorted(-sigma[by], -sigma[by])]  # equal indices: before all of them
    return out
