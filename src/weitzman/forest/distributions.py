r"""From SciPy's distributions to finitely many states, with a certified error, and back.

A law R matters to a search only through :math:`\varphi(x) = E\max(x, R)`. Two ways to replace it by
a law R~ on few states keep the mean and move :math:`\varphi` to one side only:

* *mean*: cut the line into bins and put the mass of each on its conditional mean. The new
  :math:`\varphi` consists of tangents of the old one, so it lies below (Jensen's inequality);
* *spread*: choose nodes and split each mass between the two nodes around it. The new
  :math:`\varphi` consists of chords of the old one, so it lies above.

Both work on a fine table of the distribution and choose bins or nodes so that the largest error is
the least possible. The stated error includes the error of the fine table: a bin [a, b] of mass p
and mean m is off by at most p (b - m)(m - a) / (b - a), whatever the density.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from .._common.arrays import FloatArray
from .._common.optional import need
from ..errors import InvalidForest
from .discretizing import gather, largest_gap, nodes_of, split, sum_equal, table
from .model import Forest

Method = Literal["mean", "spread"]

_COMMON = 4000  # values from which common states are chosen


class Distribution(Protocol):
    """What is needed of a distribution: its distribution function and quantiles."""

    def cdf(self, x: Any, /) -> Any: ...
    def ppf(self, q: Any, /) -> Any: ...


@dataclass(frozen=True, slots=True, eq=False)
class Discretized:
    """A law on finitely many rewards in place of a continuous one.

    Attributes
    ----------
    rewards : (k,) array, ascending
    probabilities : (k,) array
    error : float
        For every x, E max(x, R) and E min(x, R) change by at most this much. So does the value of
        a search, for each box without children that is replaced in this way. Where quadrature was
        used, its estimated error is included.
    """

    rewards: FloatArray
    probabilities: FloatArray
    error: float

    def __post_init__(self) -> None:
        self.rewards.flags.writeable = False
        self.probabilities.flags.writeable = False

    def __len__(self) -> int:
        return len(self.rewards)


def discretize(
    distribution: Distribution, n_states: int = 50, *, method: Method = "mean"
) -> Discretized:
    """Replace a distribution by a law on at most ``n_states`` rewards.

    Parameters
    ----------
    distribution : frozen SciPy distribution
        Continuous or discrete, with a finite mean. Any object with ``cdf`` and ``ppf`` that take
        arrays will do. A discrete law with few enough values is kept as it is.
    n_states : int
    method : "mean" or "spread"
        ``"mean"`` puts each bin on its mean and never overestimates the value of a search;
        ``"spread"`` splits each mass between two nodes and never underestimates it, apart from
        tails of probability 1e-20 (1e-11 for a discrete law without end). Solving with both
        brackets the value.

    Returns
    -------
    Discretized

    Examples
    --------
    >>> import weitzman
    >>> from scipy.stats import norm
    >>> law = weitzman.forest.discretize(norm(10, 2), 20)
    >>> len(law), round(float(law.probabilities @ law.rewards), 9), law.error < 0.004
    (20, 10.0, True)
    """
    if not is_distribution(distribution):
        raise InvalidForest(
            f"a distribution must have `cdf` and `ppf`, but {type(distribution).__name__} lacks "
            f"one of them. Give a frozen SciPy distribution such as scipy.stats.norm(0, 1)."
        )
    if method not in ("mean", "spread"):
        raise InvalidForest(f'`method` must be "mean" or "spread", but is {method!r}.')
    least = 1 if method == "mean" else 2
    if n_states < least:
        raise InvalidForest(f"`n_states` must be at least {least}, but is {n_states}.")
    values, mass, error = table(distribution, n_states, method == "spread")
    if len(values) <= n_states:
        return Discretized(values, mass, float(error))
    if method == "mean":
        rewards, weight = gather(values, mass, n_states)
    else:
        rewards = nodes_of(values, mass, n_states)
        weight = split(values, mass, rewards)
    error += largest_gap(values, mass, rewards, weight)
    return Discretized(rewards, weight, float(error))


def discretize_rows(
    distributions: Sequence[Distribution], n_states: int
) -> tuple[FloatArray, FloatArray, float]:
    """Laws on common states, one row per distribution; also the largest error of a row."""
    tables = [table(d, n_states) for d in distributions]
    nodes = np.unique(np.concatenate([values for values, _, _ in tables]))
    if len(nodes) > n_states:
        fine = nodes[np.unique(np.linspace(0, len(nodes) - 1, _COMMON).astype(np.int64))]
        most = np.max([split(v, p, fine) for v, p, _ in tables], axis=0)
        nodes = nodes_of(fine, most / most.sum(), max(n_states, 2))  # as fine as any row needs
    rows = [split(v, p, nodes) for v, p, _ in tables]
    errors = [
        error + largest_gap(v, p, nodes, row)
        for (v, p, error), row in zip(tables, rows, strict=True)
    ]
    return nodes, np.array(rows), max(errors)


def to_scipy(forest: Forest, box: str | int, state: str | int | float | None = None) -> Any:
    """The law of a box's reward as a frozen SciPy distribution.

    Parameters
    ----------
    forest : Forest
    box : str or int
    state : str or int, optional
        State of its parent; left out for a root.

    Examples
    --------
    >>> import weitzman
    >>> forest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> float(weitzman.forest.to_scipy(forest, 0).mean())
    5.0
    """
    stats = need("scipy.stats", "scipy")
    v = forest.box(box)
    up = int(forest.parent[v])
    if (up < 0) != (state is None):
        must = "depends on no state" if up < 0 else f"depends on the state of {forest.name(up)!r}"
        raise InvalidForest(
            f"the law of box {forest.name(v)!r} {must}, but `state` is {state!r}. "
            f"{'Leave it out' if up < 0 else 'Give one'}."
        )
    row = 0 if state is None else forest.state(up, state)
    law, reward = forest.laws[int(forest.law[v])][row], forest.rewards[int(forest.reward[v])][0]
    possible = law > 0
    if not np.isfinite(reward[possible]).all():
        raise InvalidForest(
            f"SciPy's distributions hold numbers only, but box {forest.name(v)!r} has states "
            f"without a reward."
        )
    return stats.rv_discrete(values=sum_equal(reward[possible], law[possible]))()


def is_distribution(x: object) -> bool:
    """Whether x looks like a frozen SciPy distribution."""
    return callable(getattr(x, "cdf", None)) and callable(getattr(x, "ppf", None))
