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

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from .._common.arrays import FloatArray
from .._common.optional import need
from ..errors import InvalidForest
from .model import Forest

Method = Literal["mean", "spread"]

_COMMON = 4000  # values from which common states are chosen
_FINER, _FINE_LEAST, _FINE_MOST = 20, 1000, 20_000  # cells of the fine table, for each state
_FAR = 1e-20  # probability beyond the last node of the fine table
_MOST_ATOMS, _FIRST_REACH = 1_000_000, 1000
_MASS_ERROR, _ROUNDING = 1e-6, 1e-11
_CLOSE = 1.001  # the largest error of a bin is within this factor of the least possible


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
    least = {"mean": 1, "spread": 2}.get(method)
    if least is None:
        raise InvalidForest(f'`method` must be "mean" or "spread", but is {method!r}.')
    if n_states < least:
        raise InvalidForest(f"`n_states` must be at least {least}, but is {n_states}.")
    values, mass, error = _table(distribution, n_states, method == "spread")
    if len(values) <= n_states:
        return Discretized(values, mass, error)
    if method == "mean":
        rewards, weight = _gather(values, mass, n_states)
    else:
        rewards = _nodes_of(values, mass, n_states)
        weight = _split(values, mass, rewards)
    return Discretized(rewards, weight, error + _largest_gap(values, mass, rewards, weight))


def discretize_rows(
    distributions: Sequence[Distribution], n_states: int
) -> tuple[FloatArray, FloatArray, float]:
    """Laws on common states, one row per distribution; also the largest error of a row."""
    tables = [_table(d, n_states) for d in distributions]
    nodes = np.unique(np.concatenate([values for values, _, _ in tables]))
    if len(nodes) > n_states:
        fine = nodes[np.unique(np.linspace(0, len(nodes) - 1, _COMMON).astype(np.int64))]
        most = np.max([_split(v, p, fine) for v, p, _ in tables], axis=0)
        nodes = _nodes_of(fine, most / most.sum(), max(n_states, 2))  # as fine as any row needs
    rows = [_split(v, p, nodes) for v, p, _ in tables]
    each = zip(tables, rows, strict=True)
    errors = [error + _largest_gap(v, p, nodes, row) for (v, p, error), row in each]
    return nodes, np.array(rows), max(errors)


def to_scipy(forest: Forest, box: str | int, state: str | int | float | None = None) -> Any:
    """The law of a box's reward as a frozen SciPy distribution.

    ``state`` is that of its parent, left out for a root.

    Examples
    --------
    >>> import weitzman
    >>> forest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> float(weitzman.forest.to_scipy(forest, 0).mean())
    5.0
    """
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
    return need("scipy.stats", "scipy").rv_discrete(
        values=_sum_equal(reward[possible], law[possible])
    )()


def is_distribution(x: object) -> bool:
    """Whether x looks like a frozen SciPy distribution."""
    plain = isinstance(x, (float, dict))  # no need to ask
    return not plain and callable(getattr(x, "cdf", None)) and callable(getattr(x, "ppf", None))


# -- the fine table ----------------------------------------------------------------------------


def _table(
    distribution: Any, n_states: int, spread: bool = False
) -> tuple[FloatArray, FloatArray, float]:
    """Many values with their masses, and how far E max(x, .) of these is off.

    With ``spread``, E max(x, .) is not below that of the distribution, but for its far tails.
    """
    mean = float(distribution.mean()) if hasattr(distribution, "mean") else None
    if mean is not None and not np.isfinite(mean):
        raise InvalidForest(
            f"a distribution must have a finite mean, but that of {_called(distribution)} is "
            f"{mean}. Cut off its tail."
        )
    if hasattr(distribution, "pmf"):
        values, mass, error = _atoms(distribution)
    else:
        cells = min(max(_FINER * n_states, _FINE_LEAST), _FINE_MOST)
        values, mass, error = _cells(distribution, cells, spread)
        if mean is not None:
            error += 2 * abs(float(mass @ values) - mean)  # once for max, once for min
    values, mass = values[mass > 0], mass[mass > 0]
    if not (np.isfinite(values).all() and abs(mass.sum() - 1) < _MASS_ERROR):
        raise InvalidForest(
            f"the distribution {_called(distribution)} must have mass 1 and a finite mean, but "
            f"these come out as {mass.sum():.6g} and {mass @ values:.6g}. Cut off its tails."
        )
    return values, mass / mass.sum(), float(error)


def _called(distribution: Any) -> str:
    kind = getattr(distribution, "dist", distribution)
    return str(getattr(kind, "name", None) or type(kind).__name__)


def _atoms(distribution: Any) -> tuple[FloatArray, FloatArray, float]:
    """Values and masses of a discrete law; what lies beyond them goes to its mean."""
    low, high = (float(x) for x in distribution.support())
    listed = getattr(getattr(distribution, "dist", distribution), "xk", None)
    if listed is not None:  # made from values, which need not be whole numbers
        values = np.sort(np.asarray(listed, float).reshape(-1))
        values = values + (low - values[0])
        return values, np.asarray(distribution.pmf(values), float), 0.0
    values = mass = np.empty(0)
    reach, left = _FIRST_REACH, 1.0
    middle = np.clip(np.floor(distribution.mean()), low, high)
    while left > _ROUNDING and len(values) < min(high - low + 1, _MOST_ATOMS):
        values = np.arange(max(low, middle - reach), min(high, middle + reach) + 1)
        mass = np.asarray(distribution.pmf(values), float)
        reach, left = 4 * reach, 1.0 - mass.sum()
    if values[0] == low and values[-1] == high:
        return values, mass, 0.0
    if left > _MASS_ERROR or (left > _ROUNDING and values[0] > low):
        raise InvalidForest(
            f"a discrete distribution must have nearly all its mass on {_MOST_ATOMS} values, but "
            f"{_called(distribution)} leaves {left:.3g}. Use a continuous one in its place."
        )
    beyond = float(distribution.mean() - mass @ values)  # what is missing of the mean
    error = beyond - left * values[-1]  # E (R - last value)^+
    if left <= 0 or error <= 0 or values[0] > low:  # nothing but rounding
        return values, mass, abs(beyond) + abs(left) * np.abs(values).max()
    return np.append(values, beyond / left), np.append(mass, left), float(error)


def _cells(distribution: Any, cells: int, spread: bool) -> tuple[FloatArray, FloatArray, float]:
    """Bins between many quantiles, dense in the tails too, with their conditional means.

    With ``spread``, the mass of each bin lies on its two ends instead, so that the mean stays:
    E max(x, .) is then a chord of the true one, which is convex, and so lies above it.

    The mean of a bin [a, b] of mass p is b - (integral of F - F(a)) / p, or a + (integral of
    S - S(b)) / p with S = 1 - F: the first on the left side, the second on the right, so that small
    masses keep their digits.
    """
    cdf, ppf = distribution.cdf, distribution.ppf
    sf = getattr(distribution, "sf", None) or (lambda x: 1.0 - cdf(x))
    isf = getattr(distribution, "isf", None) or (lambda q: ppf(1.0 - q))
    far = np.geomspace(_FAR, 0.5, cells // 4)
    even = np.linspace(0.0, 1.0, cells // 2)
    x = np.concatenate([ppf(far), isf(far), ppf(even)]).astype(float)
    x = np.unique(x[np.isfinite(x)])
    below, above = np.asarray(cdf(x), float), np.asarray(sf(x), float)
    left = below[1:] <= 0.5
    mass = np.maximum(np.where(left, np.diff(below), -np.diff(above)), 0.0)
    width = np.diff(x)

    def areas(points: int) -> FloatArray:
        at, weight = np.polynomial.legendre.leggauss(points)
        t = x[:-1, None] + width[:, None] * (at + 1) / 2
        area = np.empty(t.shape)
        area[left] = cdf(t[left]) - below[:-1][left, None]
        area[~left] = sf(t[~left]) - above[1:][~left, None]
        return np.asarray(width * (area @ weight) / 2)

    area, rough = areas(4), areas(2)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(left, x[1:] - area / mass, x[:-1] + area / mass)
        mean = np.clip(np.where(mass > 0, mean, x[1:]), x[:-1], x[1:])
        off = np.nan_to_num(mass * (x[1:] - mean) * (mean - x[:-1]) / width)
        shift = np.nan_to_num(np.abs(area - rough) / mass)
    if spread:  # a mean that quadrature has put too low would put the chord too low
        to_upper = mass * (np.minimum(mean + shift, x[1:]) - x[:-1]) / width
        nodes, masses = x, np.append(mass - to_upper, 0.0) + np.append(0.0, to_upper)
    else:
        nodes, masses = mean, mass
    low, low_error = _beyond(cdf, x[0], x[0] - np.median(x), float(ppf(0.0)))
    high, high_error = _beyond(sf, x[-1], x[-1] - np.median(x), float(ppf(1.0)))
    ends = [
        x[0] - low / below[0] if low > 0 else x[0],
        x[-1] + high / above[-1] if high > 0 else x[-1],
    ]
    error = max(off.max(initial=0.0), low, high) + np.abs(area - rough).sum()
    return (
        np.concatenate([ends[:1], nodes, ends[1:]]),
        np.concatenate([below[:1], masses, above[-1:]]),
        float(error + low_error + high_error),
    )


def _beyond(
    tail: Callable[[Any], Any], start: float, scale: float, end: float
) -> tuple[float, float]:
    """The integral of a tail from ``start`` to ``end``, and its estimated error."""
    if tail(start) <= 0 or start == end or scale == 0:
        return 0.0, 0.0
    quad = need("scipy.integrate", "scipy").quad
    area, error, *_ = quad(
        lambda z: tail(start + scale * z), 0, (end - start) / scale, full_output=1
    )
    return float(area * abs(scale)), float(error * abs(scale))


# -- from many values to few ---------------------------------------------------------------------


def _gather(values: FloatArray, mass: FloatArray, n_states: int) -> tuple[FloatArray, FloatArray]:
    """Neighboring values merged into their means so that the largest error is least."""
    v = values.tolist()
    p = np.concatenate([[0.0], np.cumsum(mass)]).tolist()
    s = np.concatenate([[0.0], np.cumsum(mass * values)]).tolist()

    def error(i: int, j: int) -> float:  # E (R - mean)^+ over the values i to j - 1
        mean = (s[j] - s[i]) / (p[j] - p[i]) if p[j] > p[i] else v[i]
        k = bisect_right(v, mean, i, j)
        return float(s[j] - s[k] - mean * (p[j] - p[k]))

    at = np.array(_cuts(error, len(v), n_states)[:-1])
    weight = np.add.reduceat(mass, at)
    return np.add.reduceat(mass * values, at) / weight, weight


def _nodes_of(values: FloatArray, mass: FloatArray, n_states: int) -> FloatArray:
    """The values to keep, both ends among them, so that chords between them err least.

    Chords of E (x - R)^+ and of E (R - x)^+ err alike; the one that is small at both ends keeps
    its digits. Slopes are those just after each value.
    """
    v, step = values.tolist(), np.diff(values)
    slope_left = np.cumsum(mass)
    slope_right = -np.concatenate([np.cumsum(mass[:0:-1])[::-1], [0.0]])
    f_left = np.concatenate([[0.0], np.cumsum(slope_left[:-1] * step)])
    f_right = np.concatenate([-np.cumsum((slope_right[:-1] * step)[::-1])[::-1], [0.0]])
    middle = v[int(np.searchsorted(slope_left, 0.5))]
    left, right = (f_left.tolist(), slope_left.tolist()), (f_right.tolist(), slope_right.tolist())

    def error(i: int, j: int) -> float:  # largest distance of the chord from i to j
        f, slope = left if v[j] - middle <= middle - v[i] else right
        chord = (f[j] - f[i]) / (v[j] - v[i])
        k = bisect_left(slope, chord, i, j)
        return float(f[i] + chord * (v[k] - v[i]) - f[k])

    return values[_cuts(error, len(v) - 1, n_states - 1)]


def _cuts(error: Callable[[int, int], float], end: int, pieces: int) -> list[int]:
    """Cut 0..end into at most ``pieces`` pieces; bisection on the largest error of one."""

    def greedy(bound: float) -> list[int] | None:
        cuts = [0]
        while cuts[-1] < end:
            if len(cuts) > pieces:
                return None
            low, high = cuts[-1] + 1, end
            while low < high:
                middle = (low + high + 1) // 2
                if error(cuts[-1], middle) <= bound:
                    low = middle
                else:
                    high = middle - 1
            cuts.append(low)
        return cuts

    best, high = [0, end], error(0, end)
    low = high * 1e-40  # two far ends make the first error huge
    while high > low * _CLOSE:
        middle = (low * high) ** 0.5
        cuts = greedy(middle)
        if cuts is None:
            low = middle
        else:
            best, high = cuts, middle
    return best


def _split(values: FloatArray, mass: FloatArray, nodes: FloatArray) -> FloatArray:
    """Each mass split between the two nodes around it so that the mean stays."""
    if len(nodes) == 1:
        return np.array([mass.sum()])
    j = np.clip(np.searchsorted(nodes, values, side="right") - 1, 0, len(nodes) - 2)
    share = (values - nodes[j]) / (nodes[j + 1] - nodes[j])
    both = np.concatenate([mass * (1 - share), mass * share])
    return np.asarray(np.bincount(np.concatenate([j, j + 1]), both, len(nodes)), float)


def _sum_equal(values: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Equal values made one, in rising order."""
    distinct, place = np.unique(values, return_inverse=True)
    return distinct, np.asarray(np.bincount(place, mass), float)


def _largest_gap(v: FloatArray, p: FloatArray, w: FloatArray, q: FloatArray) -> float:
    """Largest |E max(x, R) - E max(x, R~)| of two finite laws with one mean.

    The difference is linear between values. It is summed from the nearer end, where it is small.
    """
    values, mass = _sum_equal(np.concatenate([v, w]), np.concatenate([p, -q]))
    step = np.diff(values)
    below = np.concatenate([[0.0], np.cumsum(np.cumsum(mass)[:-1] * step)])
    above = np.concatenate([np.cumsum(np.cumsum(mass[::-1])[:-1] * step[::-1])[::-1], [0.0]])
    middle = v[np.searchsorted(np.cumsum(p), 0.5)]
    return float(np.abs(np.where(values < middle, below, above)).max())
