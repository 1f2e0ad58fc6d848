r"""How many boxes of a line suffice to see its top reward: the paper's bound, and true ones.

With d(t) the distance of the law of box t to the stationary distribution, at most
:math:`C \alpha^t`, and :math:`\pi` the stationary mass of the target, the paper prints

.. math:: t_\delta = \max\Bigl\{\frac{2 C}{\pi (1 - \alpha)},\
                                \frac{\log (1/\delta)}{\log(1 - \pi/2)}\Bigr\}

boxes for a probability :math:`\delta` of missing the target. The second term is negative as
printed, and the proof takes the boxes for independent. Blocks as long as the mixing time for
:math:`\pi/2` give a bound that holds, and powers of the law without the columns of the target the
exact number. The explanation has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import FloatArray, IntArray
from .._common.numbers import counted, such
from .._common.text import as_html
from ..errors import InvalidArgument, TooLarge
from .chain import Chain, as_first, as_share, as_states

_LEAST = 1e-300  # least probability of a miss to ask for
_LEAST_MASS = 2e-12  # of the target: half of it must not be lost in rounding
_FURTHEST = 2**48  # boxes; beyond, rounding would tell how many


@dataclass(frozen=True, slots=True, eq=False)
class MissBounds:
    """Claimed numbers of boxes that miss the target with probability at most delta.

    Attributes
    ----------
    delta : float
    target : array of int
        The states that are not to be missed.
    mass : float
        Their stationary probability.
    C, alpha : float
        See :meth:`~weitzman.chains.Chain.rate`.
    block : int
        Length of a block: the mixing time for half the mass.
    boxes : dict
        The numbers of boxes: "printed" and "sign corrected" are the paper's, "blocks" the bound by
        blocks, "exact" the least number that suffices.
    misses : dict
        The true probability of missing the target with each number of boxes, from the worst start.
    """

    delta: float
    target: IntArray
    mass: float
    C: float
    alpha: float
    block: int
    boxes: dict[str, int]
    misses: dict[str, float]

    def holds(self, bound: str) -> bool:
        """Whether a bound keeps its promise on this chain."""
        return self.misses[bound] <= self.delta

    def __str__(self) -> str:
        lines = ["| bound | boxes | probability of a miss | holds |", "|---|---:|---:|---|"]
        for name, t in self.boxes.items():
            word = "yes" if self.holds(name) else "no"
            lines.append(f"| {name} | {t} | {self.misses[name]:.4g} | {word} |")
        return "\n".join(lines)

    _repr_html_ = as_html


def miss_bounds(chain: Chain, delta: float, target: ArrayLike | None = None) -> MissBounds:
    """The paper's number of boxes, the corrected ones and the exact one; `print` shows a table.

    Parameters
    ----------
    chain : Chain
        With one recurrent class, of period 1, as the paper assumes.
    delta : float
        Allowed probability of missing the target.
    target : states, optional
        Those of highest reward by default.

    Examples
    --------
    >>> sticky = Chain([[0.99, 0.01], [0.01, 0.99]], rewards=[0, 1])
    >>> print(miss_bounds(sticky, 0.001))
    | bound | boxes | probability of a miss | holds |
    |---|---:|---:|---|
    | printed | 100 | 0.366 | no |
    | sign corrected | 100 | 0.366 | no |
    | blocks | 875 | 0.0001516 | yes |
    | exact | 688 | 0.0009931 | yes |
    """
    as_share(delta, "delta", _LEAST)
    aim = chain.top if target is None else as_states(target, len(chain))
    mass = min(1.0, float(chain.stationary()[aim].sum()))
    if mass == 0:
        raise InvalidArgument(
            "the target must have stationary mass, but its states are only passed through. Use "
            "exact_depth, which needs no mixing."
        )
    if mass < _LEAST_MASS:
        raise InvalidArgument(
            f"the target must have a stationary mass of {_LEAST_MASS:g} or more, but it has "
            f"{mass:.3g}: mixing cannot be computed so finely. Use exact_depth, which needs none."
        )
    C, alpha = chain.rate()
    block = max(1, chain.mixing_time(mass / 2))
    settle, per_box = 2 * C / (mass * (1 - alpha)), math.log1p(-mass / 2)
    boxes = {
        "printed": _whole(max(settle, math.log(1 / delta) / per_box)),
        "sign corrected": _whole(max(settle, math.log(delta) / per_box)),
        "blocks": block * _whole(math.log(delta) / per_box),
        "exact": exact_depth(chain, delta, aim),
    }
    misses = {name: float(chain.miss(aim, t).max()) for name, t in boxes.items()}
    return MissBounds(delta, aim, mass, C, alpha, block, boxes, misses)


def miss_bounds_together(
    chains: Sequence[Chain], delta: float, target: Sequence[ArrayLike] | None = None
) -> tuple[dict[str, int], tuple[MissBounds, ...]]:
    """The same for several lines at once: one number of boxes that serves every line.

    The slowest line decides. The paper takes the largest stationary mass of the top over the lines;
    the smallest is needed.

    Arguments are those of :func:`miss_bounds`, with states of a target for each chain. The result
    has, for each bound, the largest number of boxes over the lines; and the bounds of each line.

    Examples
    --------
    >>> slow = Chain([[0.99, 0.01], [0.01, 0.99]], rewards=[0, 1])
    >>> quick = Chain([[0.5, 0.5], [0.5, 0.5]], rewards=[0, 1])
    >>> boxes, lines = miss_bounds_together([slow, quick], 0.001)
    >>> boxes["exact"], [bounds.boxes["exact"] for bounds in lines]
    (688, [688, 10])
    """
    if not chains:
        raise InvalidArgument("several lines need at least one chain, but there is none.")
    aims = [None] * len(chains) if target is None else list(target)
    if len(aims) != len(chains):
        raise InvalidArgument(
            f"`target` needs an entry for each chain: there are {counted(len(chains), 'chain')}, "
            f"but {len(aims)} targets."
        )
    lines = tuple(miss_bounds(chain, delta, aim) for chain, aim in zip(chains, aims, strict=True))
    return {name: max(b.boxes[name] for b in lines) for name in lines[0].boxes}, lines


def exact_depth(
    chain: Chain, delta: float, target: ArrayLike | None = None, start: ArrayLike | None = None
) -> int:
    """Least number of boxes that miss the target with probability at most delta.

    Parameters
    ----------
    chain : Chain
        Any chain that cannot avoid the target forever.
    delta : float
    target : states, optional
        Those of highest reward by default.
    start : state, or distribution of the first box, optional
        The worst state by default.

    Examples
    --------
    >>> sticky = Chain([[0.99, 0.01], [0.01, 0.99]], rewards=[0, 1])
    >>> exact_depth(sticky, 0.001), exact_depth(sticky, 0.001, start=1)
    (688, 231)
    """
    as_share(delta, "delta", _LEAST)
    aim = chain.top if target is None else as_states(target, len(chain))
    free = np.ones(len(chain))
    free[aim] = 0.0
    # of t boxes the first has the law given, the other t - 1 follow
    rows = np.eye(1) if start is None else (as_first(start, chain.law) * free)[None]

    def missed(left: FloatArray) -> float:
        return float(left.max() if start is None else (rows @ left)[0])

    never = np.isinf(chain.first_passage(aim)) & (True if start is None else rows[0] > 0)
    if never.any():
        raise InvalidArgument(
            f"the target must be met in the end, but after state {np.flatnonzero(never)[0]} the "
            f"chain can avoid it forever ({such(never.sum(), 'state')})."
        )
    late = 0 if start is None else 1
    left = np.ones(len(chain))
    if missed(left) <= delta:
        return late
    powers = [chain.law * free]
    while missed(powers[-1].sum(axis=1)) > delta:
        if 2 ** len(powers) > _FURTHEST:
            raise TooLarge(
                f"more than {_FURTHEST:.0e} boxes miss the target with a probability above "
                f"{delta:g}: more than can be computed.",
                _FURTHEST,
            )
        powers.append(powers[-1] @ powers[-1])
    t = 0  # a number that is too small, digit by digit
    for j in range(len(powers) - 2, -1, -1):
        later = powers[j] @ left
        if missed(later) > delta:
            left, t = later, t + 2**j
    return t + 1 + late


def _whole(t: float) -> int:
    return max(1, math.ceil(t * (1 - 1e-12)))  # 100 computed as 100 + 1e-13 is 100
