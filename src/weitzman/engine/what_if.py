"""What if costs were different: exact derivatives for free, break-even costs by re-solving."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common.arrays import FloatArray
from .._common.notebook import as_html
from ..errors import InvalidArgument
from ..forest.model import Forest
from .by_box import PerBox
from .evaluation import Evaluation, evaluate
from .solution import Solution, as_policy, mean_cost
from .solver import solve

if TYPE_CHECKING:
    import pandas as pd

_HALVINGS = 60  # of an interval of costs: down to its last bit


@dataclass(frozen=True, slots=True, eq=False)
class Sensitivity:
    """How the optimal value moves with the numbers of the problem.

    Attributes
    ----------
    evaluation : Evaluation
    cost : PerBox
        ``cost[box][state]``: derivative of the value in the cost of a box after its parent showed
        that state: minus the expected number of openings (plus, when minimizing).
    reward : PerBox
        ``reward[box][state]``: derivative in the reward of a state: the probability that it is the
        one taken.
    outside : float
        Derivative in the outside option.
    """

    evaluation: Evaluation
    cost: PerBox
    reward: PerBox
    outside: float

    @property
    def cost_totals(self) -> FloatArray:
        """(n,) derivative in the cost of each box, whatever its parent showed."""
        return self.cost.totals()

    def columns(self) -> dict[str, list[Any]]:
        """One entry per box: name, derivative in its cost, in all its rewards at once."""
        f = self.evaluation.forest
        return {
            "box": [f.name(v) for v in range(len(f))],
            "per_unit_of_cost": self.cost_totals.tolist(),
            "per_unit_of_reward": self.reward.totals().tolist(),
        }

    def to_pandas(self) -> pd.DataFrame:
        """The columns as a data frame."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def __repr__(self) -> str:
        return f"Sensitivity({len(self.evaluation.forest)} boxes, outside={self.outside:.6g})"

    _repr_html_ = as_html


def sensitivity(solution: Solution, *, threads: int | None = None) -> Sensitivity:
    """Derivatives of the optimal value in all costs, all rewards and the outside option.

    By the envelope theorem they are probabilities of the optimal policy, which
    :func:`~weitzman.evaluate` gives. Where the value has a kink (ties), they are one-sided.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> float(weitzman.sensitivity(weitzman.solve(chest)).cost[0][0])
    -1.0
    """
    as_policy(solution, "sensitivity")
    if solution.forest.risk_tolerance is not None:
        raise InvalidArgument(
            "derivatives of a certainty equivalent are no probabilities. Solve again with other "
            "numbers, or leave `risk_tolerance` out."
        )
    e = evaluate(solution, threads=threads)
    sign = 1.0 if solution.forest.minimize else -1.0
    o = e.worth.opened_after
    costs = PerBox(o.forest, sign * o.data, o.start)
    return Sensitivity(e, costs, e.worth.chosen, e.worth.outside)


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Costs at which the decision about one box turns.

    Attributes
    ----------
    cost : float
        What opening the box costs now (its mean, after the state asked about).
    opened_below : float
        From this cost on the box is never worth opening: its index falls to what is in hand
        anyway, the outside option or the reward that its parent showed.
    first_below : float or None
        The first decision, whether to begin with the tree of this box, turns at this cost (the
        same after every state of its parent): begin there while it costs less. None: not even if
        it were free; infinity: at any price.
    """

    cost: float
    opened_below: float
    first_below: float | None

    _repr_html_ = as_html


def break_even(
    solution: Solution, box: str | int, state: str | int | float | None = None
) -> BreakEven:
    """What would a box have to cost before I would not open it?

    Parameters
    ----------
    solution : Solution
    box : str or int
    state : str or int, optional
        What its parent showed; left out for a root.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> weitzman.break_even(weitzman.solve(chest), 0).opened_below
    5.0
    """
    f = solution.forest
    v = f.box(box)
    solution.index(v, state)  # the same rules, and messages, for box and state
    up = int(f.parent[v])
    s = 0 if up < 0 else f.state(up, state)  # type: ignore[arg-type]
    in_hand = f.outside
    if up >= 0:
        shown = float(f.rewards[int(f.reward[up])][0, s])
        in_hand = min(in_hand, shown) if f.minimize else max(in_hand, shown)
    return BreakEven(
        cost=float(mean_cost(f, v)[s]),
        opened_below=_gain(f.subtree(v, state), in_hand),
        first_below=_first_turns(solution, v),
    )


def _gain(tree: Forest, x: float) -> float:
    """E[(W - x)^+] of the root of a tree: its cost at which its index would be x."""
    if not np.isfinite(x):
        return np.inf
    free = solve(tree.changed(cost={0: 0.0}, outside=x))
    return max(0.0, x - free.value if tree.minimize else free.value - x)


def _first_turns(solution: Solution, box: int) -> float | None:
    """The cost of a box at which its tree stops being the one to begin with."""
    f = solution.forest
    sign = f.sign
    root = box
    while f.parent[root] >= 0:
        root = int(f.parent[root])
    at, index = solution.index_columns()
    others = sign * index[at[f.roots[f.roots != root]]]
    rival = max([sign * f.outside, *others.tolist()])
    tree = f.subtree(root)
    if box == root:
        return _gain(tree, sign * rival) or None

    place = int(np.flatnonzero(f.within(root) == box)[0])

    def leads(cost: float) -> bool:
        return bool(sign * solve(tree.changed(cost={place: cost})).index(0) > rival)

    if not leads(0.0):
        return None
    high = max(1.0, 2 * _size(tree))
    if leads(high):
        return np.inf
    low = 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if leads(middle) else (low, middle)
    return (low + high) / 2


def _size(tree: Forest) -> float:
    """A cost at which no box of the tree is worth opening."""
    finite = tree.rewards.data[np.isfinite(tree.rewards.data)]
    return float(np.abs(finite).max() * 2 + abs(tree.outside if np.isfinite(tree.outside) else 0))
