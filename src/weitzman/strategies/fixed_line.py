"""The paper's strategy for forests of one transition matrix: the best line from a root."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._common.notebook import as_html
from .._common.numbers import counted
from ..engine.solver import solve
from ..errors import InvalidArgument
from ..forest.model import Forest
from .copies import part, places_lost
from .fixed_set import value_of_copies
from .gains import Gains
from .set_search import missing
from .weighed_lines import best_weighed_line


@dataclass(frozen=True, slots=True, eq=False)
class FixedLine:
    """A line of boxes from a root downward, chosen beforehand.

    Attributes
    ----------
    forest : Forest
    order : tuple of int
        Numbers of the boxes from the root on. Of copies, one is meant.
    value : float
        What opening all of them earns, whatever they show: the paper's fixed line. No other line
        (no longer than the depth allowed) earns more in this way.
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

    This is the paper's approximation for forests, done for any laws and costs: all lines from the
    roots are looked at, level by level, and none is followed further once even finding the top
    reward in its next box would not make up for the costs. So the search needs no bound on the
    depth to end early, and what it finds is the best line of all. Discounting and a risk tolerance
    count as they do for the optimal policy. Of several prizes a line fills one place; all others
    are worth the outside option.

    Parameters
    ----------
    forest : Forest
    depth : int, optional
        Boxes of the line, at most; the paper's bound. None is needed.

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
