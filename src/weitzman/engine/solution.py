"""What solving gives: the value, every index, and how far they can be trusted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._common.numbers import number, rough
from .._common.text import cell, columns
from .._kernels import boxes
from ..errors import InvalidArgument, UnknownName
from ..forest.model import Forest
from ..forest.pools import Pool
from .indices import Policy

if TYPE_CHECKING:
    import pandas as pd


class Status(Enum):
    """How exact a solution is. The value of each member says it in words."""

    EXACT = "Solved exactly, up to rounding."
    CERTIFIED = "Negligible breakpoints were merged; `gap` bounds the error of the value."
    COARSE = "`gap` is larger than asked for. Use exact=True."


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The optimal value and the index of every box.

    The optimal policy: open the available box of highest index while that index exceeds the best
    reward so far (the outside option at first); otherwise stop and take it. When minimizing, read
    lowest for highest and below for exceeds.

    Attributes
    ----------
    forest : Forest
    value : float
        Expected payoff of the optimal policy.
    gap : float
        The true value differs from ``value`` by at most this, and never to the better: the truth
        lies in [value - gap, value] (when minimizing: [value, value + gap]). 0 when the status is
        EXACT.
    status : Status
    breakpoints : int
        The work done: total number of breakpoints that were carried through the recursion.
    """

    forest: Forest
    value: float
    gap: float
    status: Status
    breakpoints: int
    _class_of: IntArray
    _start: IntArray
    _index: FloatArray

    def index(self, box: str | int, state: str | int | float | None = None) -> float:
        """The index of a box after its parent showed ``state`` (omitted for a root).

        Parameters
        ----------
        box : str or int
            Name or number of the box.
        state : str or int, optional
            Name or number of the state of its parent.

        Examples
        --------
        >>> import weitzman
        >>> weitzman.solve(weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)).index(0)
        8.0
        """
        v = self.forest.box(box)
        up = int(self.forest.parent[v])
        if up < 0:
            if state is not None:
                raise UnknownName(
                    f"box {self.forest.name(v)!r} is a root: its index depends on no state. Leave "
                    f"the state out."
                )
            return float(self.indices(v)[0])
        if state is None:
            known = ", ".join(self.forest.states(up)[:8])
            raise UnknownName(
                f"the index of box {self.forest.name(v)!r} depends on the state of its parent "
                f"{self.forest.name(up)!r}. Give one of {known}."
            )
        return float(self.indices(v)[self.forest.state(up, state)])

    def indices(self, box: str | int) -> FloatArray:
        """The indices of a box for all states of its parent (one entry for a root)."""
        c = self._class_of[self.forest.box(box)]
        return self._index[self._start[c] : self._start[c + 1]]

    def index_columns(self) -> tuple[IntArray, FloatArray]:
        """All indices as two arrays: where those of each box start, and the indices."""
        return self._start[self._class_of], self._index

    def policy(self) -> Policy:
        """The optimal policy: what to open next, whatever has been seen.

        Examples
        --------
        >>> import weitzman
        >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, names=["chest"])
        >>> search = weitzman.Search(weitzman.solve(chest))
        >>> search.ask()
        'chest'
        """
        return Policy.of(self.forest, *self.index_columns())

    @property
    def first(self) -> int | None:
        """The box to open first, or None if it is best to open nothing."""
        f = self.forest
        sign = f.sign
        index = sign * self._index[self._start[self._class_of[f.roots]]]
        best = int(np.argmax(index))
        return int(f.roots[best]) if index[best] > sign * f.outside else None

    def columns(self, limit: int | None = None) -> dict[str, list[Any]]:
        """One entry for each box and state of its parent: box, parent, state, cost, index."""
        f = self.forest
        out: dict[str, list[Any]] = {k: [] for k in ("box", "parent", "state", "cost", "index")}
        costs, start = mean_costs(f)
        for v in range(len(f)):
            up = int(f.parent[v])
            states: tuple[str | None, ...] = (None,) if up < 0 else f.states(up)
            for s, (name, index) in enumerate(zip(states, self.indices(v), strict=True)):
                if limit is not None and len(out["box"]) == limit:
                    return out
                out["box"].append(f.name(v))
                out["parent"].append(None if up < 0 else f.name(up))
                out["state"].append(name)
                out["cost"].append(float(costs[start[v] + s]))
                out["index"].append(float(index))
        return out

    def to_pandas(self) -> pd.DataFrame:
        """The indices as a data frame with the columns box, parent, state, cost, index."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def table(self, limit: int = 40) -> str:
        """The indices as text, at most ``limit`` lines."""
        c = self.columns(limit)
        after = [
            "" if p is None else f"{cell(p)} = {cell(s)}"
            for p, s in zip(c["parent"], c["state"], strict=True)
        ]
        numbers = [[number(x) for x in c["cost"]], [number(x) for x in c["index"]]]
        rows = zip(map(cell, c["box"]), after, *numbers, strict=True)
        lines = [f"value {number(self.value)}   gap {rough(self.gap)}   {self.status.value}"]
        lines += columns([("box", "after", "cost", "index"), *rows], right=2)
        if self._rows() > len(after):
            lines.append(f"... {self._rows() - len(after)} more rows")
        return "\n".join(lines)

    def _rows(self) -> int:
        return int(np.diff(self._start)[self._class_of].sum())

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"Solution(value={self.value:.10g}, gap={self.gap:.2g}, {self.status.name})"

    def _repr_html_(self) -> str:
        c = self.columns(200)
        head = "".join(f"<th>{escape(k)}</th>" for k in c)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape('' if x is None else _cell(x))}</td>" for x in row)
            + "</tr>"
            for row in zip(*c.values(), strict=True)
        )  # fmt: skip
        more = self._rows() - len(c["box"])
        foot = f"<p>… and {more} more rows</p>" if more > 0 else ""
        return (
            f"<p><b>value {number(self.value)}</b>, gap {rough(self.gap)}. "
            f"{escape(self.status.value)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{foot}"
        )


def _cell(x: object) -> str:
    return number(x) if isinstance(x, float) else str(x)


def mean_costs(forest: Forest) -> tuple[FloatArray, IntArray]:
    """Expected cost of opening each box after each state of its parent, and where each starts."""
    f = forest
    start = np.concatenate([[0], np.cumsum(f.laws.shape[f.law, 0])]).astype(np.int64)
    return boxes.mean_costs(f.law, f.cost, f.laws.matrices, f.costs.matrices, start), start


def mean_durations(forest: Forest) -> FloatArray:
    """Expected time that each box takes after each state of its parent, as :func:`mean_costs`."""
    f = forest
    if f.durations is not None:
        pool = f.durations
    else:
        assert f.factors is not None, "a forest with discounting"
        pool = Pool(-np.log(f.factors.data), f.factors.start, f.factors.shape)
    return mean_costs(replace(f, costs=pool, factors=None, durations=None, rate=None))[0]


def mean_cost(forest: Forest, box: int) -> FloatArray:
    """Expected cost of opening one box, for each state of its parent."""
    law = forest.laws[int(forest.law[box])]
    cost = forest.costs[int(forest.cost[box])]
    return np.asarray((law * cost).sum(axis=1) if cost.shape[1] > 1 else cost[:, 0] + 0 * law[:, 0])


def as_policy(policy: object, what: str) -> Policy:
    """The policy meant by a policy or a solution; a clear word for anything else."""
    if isinstance(policy, Solution):
        return policy.policy()
    if isinstance(policy, Policy):
        return policy
    raise InvalidArgument(
        f"{what} needs a solution or a policy, but got a {type(policy).__name__}. Call "
        f"solve(forest) first."
    )
