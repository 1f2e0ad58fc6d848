"""Forests as pandas tables, one row for each box, state of its parent and own state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._common.arrays import IntArray
from .._common.optional import need
from ..errors import InvalidForest
from ..forest.columns import default_outside
from ..forest.model import Forest
from ..forest.pools import Pool, intern_pool
from ..forest.terms import pair
from .table_rows import Rows, digits

if TYPE_CHECKING:
    import pandas as pd

_TERMS = ("rate", "risk_tolerance", "prizes")


def from_pandas(
    table: pd.DataFrame, *, outside: float | None = None, minimize: bool | None = None
) -> Forest:
    """A forest from a long table: a row for each box, state of its parent, and own state.

    Parameters
    ----------
    table : pandas.DataFrame
        The columns are

        * ``box``: name or number of the box; numbers 0 to n - 1 are kept as they are;
        * ``parent``, ``parent_state``: missing for a root;
        * ``state``: own state; its order of appearance is kept;
        * ``reward``: of the own state, missing where it has none;
        * ``probability``: rows of probability 0 may be left out;
        * ``cost``: may differ between the rows of a box;
        * ``count``: copies of the box; may be left out;
        * ``endless``: whether the box is followed by its like without end; may be left out;
        * ``factor`` or ``duration``: what time the opening takes; may be left out.
    outside, minimize : optional
        As in :meth:`Forest.from_arrays`; by default those in ``table.attrs``, if any. So are
        ``rate``, ``risk_tolerance`` and ``prizes``; :meth:`Forest.changed` gives others.

    Examples
    --------
    >>> import pandas as pd
    >>> import weitzman
    >>> table = pd.DataFrame({
    ...     "box": ["A", "A"], "parent": [None, None], "parent_state": [None, None],
    ...     "state": [0, 10], "reward": [0, 10], "probability": [0.5, 0.5], "cost": [1, 1]})
    >>> weitzman.solve(weitzman.files.from_pandas(table)).index("A")
    8.0
    """
    pandas = need("pandas", "table")
    minimize = bool(table.attrs.get("minimize", False) if minimize is None else minimize)
    outside = table.attrs.get("outside") if outside is None else outside
    rows = Rows(pandas, table)
    laws, law, _ = intern_pool(rows.laws())
    there = [c for c in ("factor", "duration") if c in table]
    costs, cost, _ = intern_pool(rows.opening("cost"))
    terms = _terms(table, there)
    if there:
        time, which, _ = intern_pool(rows.opening(there[0]))
        cost, costs, terms[f"{there[0]}s"] = pair(cost, costs, which, time)
    shape = np.column_stack([np.ones_like(rows.size), rows.size])
    _, tag, _ = intern_pool(Pool(rows.state_name.astype(np.float64), rows.start, shape))
    values = rows.rewards(np.inf if minimize else -np.inf)
    rewards, reward, first = intern_pool(Pool(values, rows.start, shape), tag)
    names, states = tuple(rows.names), (rows.labels(int(v)) for v in first)
    return Forest(
        parent=rows.parent,
        law=law,
        reward=reward,
        cost=cost,
        laws=laws,
        rewards=rewards,
        costs=costs,
        count=rows.counts(),
        endless=rows.endless(),
        outside=default_outside(outside, minimize),
        minimize=minimize,
        **terms,
        names=None if names == digits(len(names)) else names,
        state_names=tuple(None if s == digits(len(s)) else s for s in states),
    )


def to_pandas(forest: Forest) -> pd.DataFrame:
    """The forest as a table that :func:`from_pandas` reads.

    The outside option and the sense travel in ``attrs``, which files do not keep.

    Examples
    --------
    >>> import weitzman
    >>> forest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> weitzman.files.to_pandas(forest)["probability"].tolist()
    [0.5, 0.5]
    """
    pandas = need("pandas", "table")
    f = forest
    shape = f.laws.shape[f.law]
    size = shape[:, 0] * shape[:, 1]
    box = np.repeat(np.arange(len(f)), size)
    within = np.arange(len(box)) - np.repeat(np.cumsum(size) - size, size)
    given, own = np.divmod(within, shape[box, 1])
    up = f.parent[box]
    reward = f.rewards.data[f.rewards.start[f.reward[box]] + own]
    above = np.where(up < 0, -1, f.reward[up])
    table: pd.DataFrame = pandas.DataFrame(
        {
            "box": _box_names(pandas, f, box),
            "parent": _box_names(pandas, f, up),
            "parent_state": _state_names(pandas, f, above, given),
            "state": _state_names(pandas, f, f.reward[box], own),
            "reward": np.where(np.isfinite(reward), reward, np.nan),
            "probability": f.laws.data[f.laws.start[f.law[box]] + within],
            "cost": f.costs.entries(f.cost[box], given, own),
            "count": f.count[box],
        }
    )
    if f.endless.any():
        table["endless"] = f.endless[box]
    if f.durations is not None:
        table["duration"] = f.durations.entries(f.cost[box], given, own)
    elif f.factors is not None:
        table["factor"] = f.factors.entries(f.cost[box], given, own)
    table.attrs.update(outside=f.outside, minimize=f.minimize)
    table.attrs.update({name: x for name in _TERMS if (x := getattr(f, name)) is not None})
    return table


def _terms(table: pd.DataFrame, there: list[str]) -> dict[str, Any]:
    """Rate, risk tolerance and prizes that travel with a table."""
    if len(there) == 2:
        raise InvalidForest(
            "time is told by factors, or by durations and a rate, but the table has columns for "
            "both. Leave out one."
        )
    terms = {name: table.attrs[name] for name in _TERMS if name in table.attrs}
    if there == ["duration"] and "rate" not in terms:
        raise InvalidForest(
            "a table with durations needs a rate at which later payoffs are discounted. Set "
            "`table.attrs['rate']`, 0 if time costs nothing."
        )
    return terms


def _box_names(pandas: Any, f: Forest, box: IntArray) -> Any:
    """Names of boxes (-1: none), or numbers where they have no names."""
    return _missing(pandas, box) if f.names is None else np.array([*f.names, None], object)[box]


def _missing(pandas: Any, number: IntArray) -> Any:
    return pandas.arrays.IntegerArray(np.maximum(number, 0), number < 0)


def _state_names(pandas: Any, f: Forest, row: IntArray, state: IntArray) -> Any:
    """Names of states by rows of rewards (-1: none); numbers where no box has names."""
    if all(names is None for names in f.state_names):
        return _missing(pandas, np.where(row < 0, -1, state))
    sizes = f.rewards.shape[:, 1].tolist()
    flat = [
        name
        for names, k in zip(f.state_names, sizes, strict=True)
        for name in (map(str, range(k)) if names is None else names)
    ]
    return np.array([*flat, None], object)[
        np.where(row < 0, len(flat), f.rewards.start[row] + state)
    ]
