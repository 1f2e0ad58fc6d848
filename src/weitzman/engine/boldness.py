"""Whether a policy opens boxes where the optimal policy stops."""

from __future__ import annotations

import numpy as np

from .indices import Policy
from .solver import solve

_NEAR = 1e-12  # above an optimal index, and still as good as optimal


def opens_more(policy: Policy, threads: int | None) -> bool:
    """Whether an index of a policy lies above the optimal one.

    With a risk tolerance the slopes of such a policy may exceed one and fall.
    """
    f = policy.forest
    at, index = solve(f, threads=threads).index_columns()
    sizes = f.laws.shape[f.law, 0]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    best = f.sign * index[np.repeat(at, sizes) + within]
    own = policy.index[np.repeat(policy.index_at, sizes) + within]
    return bool((own > best + _NEAR).any())
