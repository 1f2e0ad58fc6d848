"""Tables of logs in any form, tables of settings, and rows of a log that can be misread."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from .._common.log_names import usual
from .._common.numbers import such
from ..errors import InvalidArgument
from .features import Config
from .log_files import read_log
from .logged_runs import by_column

Blank = Literal["diverged", "skipped"]

_TIME_OF_DAY = 1e8  # seconds: three years; no step takes that long
_EVEN = 0.3  # spread of the rises of costs over their mean below which they rise evenly
_ROWS = 4  # rows of a run from which a pattern can be seen
_BLANK = ("None", "nan", "NaT", "<NA>")  # what tables have where an entry is missing


class LogColumns:
    """Named columns of equal length. The error for a missing column lists the columns."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._texts: set[str] = set()  # columns of texts in which blanks are empty texts
        self._names = [str(name) for name in source]

    @property
    def texts(self) -> Collection[str]:
        """The columns of texts in which a blank is an empty text."""
        return self._texts

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return self._names

    def is_export(self, own: Sequence[str]) -> bool:
        """Whether this is a table of :meth:`Curves.to_pandas`, in which texts may be blank."""
        found = tuple(self._names[: len(own)]) == tuple(own)
        if found:
            self._texts |= {"task", "kind"}
        return found

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
        given = self._source[name]
        try:
            column = np.asarray(given)
        except ValueError:  # lists among other values
            column = np.empty(len(given), object)
            column[:] = given
        size = len(self._source[self._names[0]])
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
    if name in table.texts:
        entries = [x if isinstance(x, str) or str(x) not in _BLANK else "" for x in entries]
        blank = []
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
        if log.texts:  # our own export: blank where a run has no such setting
            columns = {k.removeprefix("setting "): v for k, v in columns.items()}
            return [
                {k: x for k, x in zip(columns, row, strict=True) if str(x) not in _BLANK}
                for row in zip(*columns.values(), strict=True)
            ]
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


# -- blanks, cumulative costs, times of day -------------------------------------------------------


def check_scores(score: FloatArray, name: str) -> None:
    """Raise InvalidArgument if there is no score at all."""
    if np.isnan(score).all():
        raise InvalidArgument(
            f"column {name!r} must hold scores, but all {len(score)} of its rows are blank. Say "
            f"which column is meant."
        )


def kept_rows(score: FloatArray, run: IntArray, blank: Blank | None) -> BoolArray:
    """Which rows of a log count, by run and step: all, or those that were evaluated.

    By default, blanks mean "not evaluated" if a score follows a blank in most runs with blanks.
    """
    if blank not in (None, "diverged", "skipped"):
        raise InvalidArgument(f'`blank` must be "diverged" or "skipped", but it is {blank!r}.')
    missing = np.isnan(score)
    if blank is None:
        followed = missing[:-1] & ~missing[1:] & (run[:-1] == run[1:])
        some, back = len(np.unique(run[missing])), len(np.unique(run[:-1][followed]))
        blank = "skipped" if 2 * back > some else "diverged"
    if blank == "diverged":
        return np.ones(len(score), bool)
    never = ~np.isin(run, run[~missing])  # runs without any score stay, as diverged
    return ~missing | never


def with_skipped(cost: FloatArray, run: IntArray, kept: BoolArray) -> FloatArray:
    """The costs of the rows that count, plus the costs of the rows skipped before them."""
    rows = np.flatnonzero(kept)
    ahead = np.minimum(np.cumsum(kept) - kept, len(rows) - 1)  # the row that counts next
    same = run[rows[ahead]] == run
    return np.bincount(ahead[same], cost[same], len(rows)).astype(np.float64)


def step_costs(cost: FloatArray, run: IntArray, cumulative: bool) -> FloatArray:
    """What each row cost; for cumulative costs, the differences within a run."""
    if cumulative:
        first = np.diff(run, prepend=-1) != 0
        each = cost - np.where(first, 0.0, np.roll(cost, 1))
        clock = len(cost) and cost.min() > _TIME_OF_DAY
        return _without_start(each, first) if clock else np.asarray(each)
    if len(cost) and cost.min() > _TIME_OF_DAY:
        raise InvalidArgument(
            f"a cost counts from the row before, but the lowest one is {cost.min():.10g}: these "
            f"look like times of day. Say `cumulative=True`, so that the differences count."
        )
    if _rises_evenly(cost, run):
        warnings.warn(
            "the costs of every run rise evenly from row to row, as if they were counted from the "
            "start of the run; they are taken as counted from the row before. If they are not, say "
            "`cumulative=True`.",
            UserWarning,
            stacklevel=4,
        )
    return cost


def _without_start(each: FloatArray, first: BoolArray) -> FloatArray:
    """Costs by the clock. The start of a run is unknown, so its first row costs what its rows do.

    A run of one row costs the median of all rows.
    """
    usual = float(np.median(each[~first])) if not first.all() else 1.0
    out, start = each.copy(), np.flatnonzero(first)  # rows of a run lie together
    for row, mine in zip(start, np.split(each, start[1:]), strict=True):
        out[row] = np.median(mine[1:]) if len(mine) > 1 else usual
    return out


def _rises_evenly(cost: FloatArray, run: IntArray) -> bool:
    """Whether the costs of all runs of some length rise by about the same from row to row."""
    if not np.isfinite(cost).all():  # rejected elsewhere
        return False
    starts = np.flatnonzero(np.diff(run, prepend=-1))
    parts = [x for x in np.split(cost, starts[1:]) if len(x) >= _ROWS]
    rises = [np.diff(x) for x in parts]
    return len(rises) > 1 and all(
        x.min() > 0 and x.std() < _EVEN * x.mean() and part[-1] > 2 * part[0]
        for x, part in zip(rises, parts, strict=True)
    )
