"""The paper's strategy for forests of one transition matrix: the best line from a root."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._common.numbers import counted
from .._common.text import as_html
from ..engine.indices import Policy
from ..engine.solution import mean_cost
from ..engine.solver import solve
from ..engine.weights import Weights
from ..errors import InvalidArgument
from ..forest.model import Forest
from .copies import part, places_lost
from .fixed_set import value_of_copies
from .gains import Gains
from .set_search import missing
from .thumb_rules import everything


@dataclass(frozen=True, slots=True, eq=False)
class FixedLine:
    """A line of boxes from a root downward, chosen beforehand.

    Attributes
    ----------
    forest : Forest
    order : tuple of int
        Numbers of the boxes from the root on; one copy of each.
    value : float
        What opening all of them earns, whatever they show: the paper's fixed line. No other line
        within the allowed depth earns more in this way.
    followed : float
        What opening them one by one earns, stopping when that is best. Another line may earn more
        in this way.
    looked_at : int
        Boxes that the search looked at.
    """

    forest: Forest
    order: tuple[int, ...]
    value: float
    followed: float
    looked_at: int

    @property
    def boxes(self) -> tuple[str, ...]:
        """Names of the boxes from the root on."""
        return tuple(self.forest.name(v) for v in self.order)

    def __repr__(self) -> str:
        return (
            f"FixedLine({counted(len(self.order), 'box')}, value={self.value:.8g}, "
            f"followed={self.followed:.8g})"
        )

    _repr_html_ = as_html


def best_line(forest: Forest, *, depth: int | None = None) -> FixedLine:
    """The line from a root that is best opened as a whole, whatever is seen.

    This is the paper's approximation for forests, for any laws and costs: the search looks at all
    lines from the roots, level by level, and drops a line once even the top reward in its next box
    would not make up for the costs. So the search ends early without a bound on the depth, and
    finds the best line of all. Discounting and a risk tolerance count as they do for the optimal
    policy. With several prizes a line fills one place; all other places are worth the outside
    option.

    Parameters
    ----------
    forest : Forest
    depth : int, optional
        Most boxes of the line: the paper's bound. By default there is no bound.

    Examples
    --------
    >>> import weitzman
    >>> tree = weitzman.Builder().add("A", cost=1, outcomes={0: 0.5, 10: 0.5})
    >>> tree = tree.add("B", parent="A", cost=2, outcomes={0: {0: 0.2, 10: 0.8}, 10: {10: 1}})
    >>> line = best_line(tree.build())
    >>> line.boxes, line.value, line.followed  # B is opened in vain after 10, unless one may stop
    (('A', 'B'), 6.0, 7.0)
    """
    if not isinstance(forest, Forest):
        raise InvalidArgument(
            f"best_line needs a Forest, but got a {type(forest).__name__}. A solution has one: "
            f"solution.forest."
        )
    forest.must_end("a fixed line")
    if depth is not None and (depth < 1 or depth != int(depth)):
        raise InvalidArgument(
            f"`depth` must be a whole number from 1 on, but it is {depth}. Leave it out to look at "
            f"all lines."
        )
    most = None if depth is None else int(depth)
    weighed = forest.factors is not None or forest.risk_tolerance is not None
    line, looked_at = best_weighed_line(forest, most) if weighed else _best(forest, most)
    if not line:  # nothing is better than any line
        nothing = forest.prizes * forest.outside
        return FixedLine(forest, (), nothing, nothing, looked_at)
    copies = np.zeros(len(forest), np.int64)
    copies[line] = 1
    value = value_of_copies(forest, copies)
    lost = places_lost(forest, copies)
    followed = solve(part(forest, copies)).value + (lost * forest.outside if lost else 0.0)
    return FixedLine(forest, tuple(line), value, followed, looked_at)


def _best(forest: Forest, depth: int | None) -> tuple[list[int], int]:
    """The best line for an expected payoff, and how many boxes were looked at."""
    gains = Gains(forest)
    net, looked_at = gains.lines([], depth=depth)
    end = int(net.argmax())
    return (missing(gains, end, [])[::-1] if net[end] > 0 else []), looked_at


def best_weighed_line(forest: Forest, depth: int | None) -> tuple[list[int], int]:
    """The best line to open as a whole, and how many boxes were looked at.

    Lines are followed down each tree with the weighed law of the last state and the best reward. A
    line is dropped once even the top reward, at no cost and without delay, would not make it the
    best.
    """
    f, w = forest, Weights.of(forest)
    policy: Policy = everything(f)
    finite = w.rewards[np.isfinite(w.rewards) & (w.rewards > w.outside)]
    grid = np.unique(np.append(finite, w.outside))
    timed = w.tolerance == 0
    top = max(float(grid[-1]), 0.0) if timed else float(grid[-1])
    best, end, looked_at = w.outside, -1, 0
    stack = [(v, np.ones((1, len(grid))), 0.0, 1) for v in policy.root.tolist()]
    while stack:
        v, joint, spent, length = stack.pop()
        paid = spent + (float(mean_cost(f, v) @ joint[:, -1]) if timed else 0.0)
        if top * float(joint[:, -1].sum()) - paid <= best:
            continue
        looked_at += 1
        a, k = int(f.rewards.start[f.reward[v]]), int(f.rewards.shape[f.reward[v], 1])
        here = (w.laws[int(w.law[v])].T @ joint) * (grid >= w.rewards[a : a + k, None])
        mass = np.diff(here.sum(axis=0), prepend=0.0)
        value = float(grid[mass > 0] @ mass[mass > 0]) - paid
        if value > best:
            best, end = value, v
        if length < (math.inf if depth is None else depth):
            below = policy.child[policy.child_at[v] : policy.child_at[v + 1]].tolist()
            stack += [(u, here, paid, length + 1) for u in below]
    line: list[int] = []
    while end >= 0:
        line.append(end)
        end = int(f.parent[end])
    return line[::-1], looked_at
