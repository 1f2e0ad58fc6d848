"""The settings of runs, found in the log itself or in a table of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._common.arrays import IntArray
from .._common.numbers import such
from ..errors import InvalidArgument
from .known import Config
from .log_tables import LogColumns, columns_of, words


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
        columns = {name: log[name][first].tolist() for name in source}
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
