"""Tables of logs in any form, and tables of the settings of runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._common.log_names import usual
from .._common.numbers import such
from ..errors import InvalidArgument
from .features import Config
from .log_files import read_log
from .logged_runs import by_column

_BLANK = ("None", "nan", "NaT", "<NA>")  # what tables have where an entry is missing


class LogColumns:
    """Named columns of equal length. The error for a missing column lists the columns."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._names = [str(name) for name in source]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return self._names

    def role(self, role: str, name: Any) -> Any:
        """The column of a role: the one named, or else the first that has a usual name."""
        if name != role or name in self._names:
            return name
        return usual(role, self._names) or name

    def optional(self, role: str, name: Any) -> Any:
        """The column of a role; None if the default name is given and no column has the role."""
        found = self.role(role, name)
        return None if found == role and role not in self._names else found

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise InvalidArgument(
                f"the table has no column {name!r}; its columns are {', '.join(self._names)}. Say "
                f"which one is meant."
            )
        column = np.asarray(self._source[name])
        size = len(np.asarray(self._source[self._names[0]]))
        if column.ndim != 1 or len(column) != size:
            raise InvalidArgument(f"column {name!r} must have {size} entries like the first one.")
        return column


def columns_of(source: Any) -> LogColumns:
    """The columns of a mapping, a data frame, or a file."""
    if isinstance(source, (str, os.PathLike)):
        return LogColumns(read_log(os.fspath(source)))
    if isinstance(source, Mapping) or hasattr(source, "columns"):
        return LogColumns(source)
    if isinstance(source, Sequence) and source and all(isinstance(x, Mapping) for x in source):
        return LogColumns(by_column(source))
    raise InvalidArgument(
        f"curves are read from a path, a pandas table, a list of rows or a mapping of columns, not "
        f"from {type(source).__name__}."
    )


def words(table: LogColumns, names: str | Sequence[str]) -> list[str]:
    """A column as text; several are joined by slashes."""
    columns = [_filled(table, name) for name in ([names] if isinstance(names, str) else names)]
    return columns[0] if len(columns) == 1 else ["/".join(x) for x in zip(*columns, strict=True)]


def _filled(table: LogColumns, name: str) -> list[str]:
    """A column as text, in which nothing may be missing."""
    entries = table[name].tolist()
    blank = [i for i, x in enumerate(entries) if not isinstance(x, str) and str(x) in _BLANK]
    if blank:
        raise InvalidArgument(
            f"column {name!r} must be filled, but row {blank[0]} is blank "
            f"({such(len(blank), 'row')})."
        )
    return [str(x) for x in entries]


def numbers(table: LogColumns, name: str, *, blank: bool = False) -> FloatArray:
    """A column of numbers; blank entries only where they have a meaning."""
    column = table[name]
    try:
        values = column.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.array([_number(x, name, i, blank) for i, x in enumerate(column.tolist())])
    missing = np.flatnonzero(np.isnan(values))
    if len(missing) and not blank:
        raise InvalidArgument(
            f"column {name!r} must be filled, but row {missing[0]} is blank "
            f"({such(len(missing), 'row')})."
        )
    return np.asarray(values)


def _number(x: Any, name: str, row: int, blank: bool) -> float:
    if blank and (x is None or x == ""):
        return np.nan
    try:
        return float(x)
    except (TypeError, ValueError, OverflowError):
        shown = repr(x) if len(repr(x)) <= 40 else f"{repr(x)[:40]}..."
        raise InvalidArgument(
            f"column {name!r} must hold numbers, but row {row} is {shown}."
        ) from None


def steps(table: LogColumns, name: str) -> IntArray:
    """A column of whole numbers."""
    values = numbers(table, name)
    odd = np.flatnonzero((values != np.round(values)) | (np.abs(values) > 2**53))
    if len(odd):
        raise InvalidArgument(
            f"column {name!r} must hold whole numbers, but row {odd[0]} is {values[odd[0]]:g} "
            f"({such(len(odd), 'row')})."
        )
    return values.astype(np.int64)


def settings_of(
    log: LogColumns, source: Any, first: IntArray, names: Sequence[str]
) -> list[Config]:
    """The settings of each run: from columns of the log, or from another table.

    Parameters
    ----------
    log : Columns
    source : list of str, or anything that is a table
        Columns of the log that are settings, or a table with one row for each run. It is joined by
        the columns that it shares with ``names``.
    first : (n,) array of int
        The first row of each run in the log.
    names : sequence of str
        The columns that name a run.
    """
    if isinstance(source, (list, tuple)):
        chosen = [inner for name in source for inner in _within(log, name)]
        columns = {name: log[name][first].tolist() for name in chosen}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    table = columns_of(source)
    shared = [name for name in names if name in table.names]
    if not shared:
        raise InvalidArgument(
            f"a table of settings must share a column that names a run ({', '.join(names)}), but "
            f"its columns are {', '.join(table.names)}."
        )
    rows = _rows(table, shared)
    keys = list(zip(*(words(log, name) for name in shared), strict=True))
    wanted = [keys[i] for i in first.tolist()]
    lost = [key for key in wanted if key not in rows]
    if lost:
        raise InvalidArgument(
            f"every run must have a row in the table of settings, but {_said(shared, lost[0])} has "
            f"none ({such(len(lost), 'run')})."
        )
    return [rows[key] for key in wanted]


def _within(log: LogColumns, name: str) -> list[str]:
    """A column, or all columns that a mapping of this name was laid out in."""
    inner = [x for x in log.names if x.startswith(f"{name}/")]
    return inner if inner and name not in log.names else [name]


def _rows(table: LogColumns, shared: Sequence[str]) -> dict[tuple[str, ...], Config]:
    """The settings by what names them."""
    keys = list(zip(*(words(table, name) for name in shared), strict=True))
    columns = {name: table[name].tolist() for name in table.names if name not in shared}
    rows: dict[tuple[str, ...], Config] = {}
    for i, key in enumerate(keys):
        row = {name: column[i] for name, column in columns.items()}
        if rows.setdefault(key, row) is not row:
            raise InvalidArgument(
                f"a table of settings must have one row for each run, but it has several for "
                f"{_said(shared, key)}."
            )
    return rows


def _said(names: Sequence[str], key: Sequence[str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(names, key, strict=True))
