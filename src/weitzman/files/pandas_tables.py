"""Forests as pandas tables, one row for each box, state of its parent and own state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._common.optional import need
from ..forest.model import Forest
from .json_writer import written_terms
from .table_rows import Rows, forest_of_rows
from .written_tables import written_columns

if TYPE_CHECKING:
    import pandas as pd

_TERMS = ("unit", "rate", "risk_tolerance", "prizes", "stated_error")


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
        * ``endless``: whether boxes like it follow without end; may be left out;
        * ``factor`` or ``duration``: what time the opening takes; may be left out.
    outside, minimize : optional
        As in :meth:`Forest.from_arrays`; by default taken from ``table.attrs``, if present.
        ``unit``, ``rate``, ``risk_tolerance``, ``prizes`` and ``stated_error`` always come from
        there; :meth:`Forest.changed` changes them.

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
    need("pandas", "table")
    minimize = bool(table.attrs.get("minimize", False) if minimize is None else minimize)
    outside = table.attrs.get("outside") if outside is None else outside
    columns = {str(c): _objects(table[c]) for c in table.columns}
    rows = Rows(columns, lambda i: f"row {i} of the table")
    terms = {name: table.attrs[name] for name in _TERMS if name in table.attrs}
    return forest_of_rows(rows, outside=outside, minimize=minimize, terms=terms)


def to_pandas(forest: Forest) -> pd.DataFrame:
    """The forest as a table that :func:`from_pandas` reads.

    The outside option and the direction (maximize or minimize) are in ``attrs``, which files do
    not keep.

    Examples
    --------
    >>> import weitzman
    >>> forest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> weitzman.files.to_pandas(forest)["probability"].tolist()
    [0.5, 0.5]
    """
    pandas = need("pandas", "table")
    columns: dict[str, Any] = written_columns(forest)
    for name in ("box", "parent", "parent_state", "state"):
        if all(x is None or isinstance(x, int) for x in columns[name]):
            columns[name] = pandas.array(columns[name], dtype="Int64")
    table: pd.DataFrame = pandas.DataFrame(columns)
    table.attrs.update(outside=forest.outside, minimize=forest.minimize)
    table.attrs.update(written_terms(forest))
    return table


def _objects(column: Any) -> list[Any]:
    """The values of a column, None for those that are missing."""
    missing = column.isna().to_numpy()
    return [None if gone else x for x, gone in zip(column.tolist(), missing, strict=True)]
