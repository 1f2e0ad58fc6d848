"""Tables of logs: files, data frames and rows as columns, and rows that can be misread.

A small file can stand for a huge table: packed rows, rows shorter than the heading, one value that
a Parquet file repeats a billion times. Such files are rejected before memory is spent on them.
"""

from __future__ import annotations

import io
import json
import math
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal
from zlib import crc32

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from .._common.disk import check_regular
from .._common.log_names import usual
from .._common.numbers import such
from .._common.optional import need
from .._common.text import shortened
from ..errors import InvalidArgument, InvalidFile, WeitzmanError
from ..files.documents import unpacked

Config = Mapping[str, Any]
Blank = Literal["diverged", "skipped"]

_CELLS = 10_000_000  # of a table, beyond one for each byte of its file
_COLUMNS = 10_000
_BYTES = 2**27  # of a Parquet file once unpacked, beyond 24 for each byte of the file
_BATCH = 2**13  # rows that are read between checks of memory
_TIME_OF_DAY = 1e8  # seconds: three years; no step takes that long
_LARGEST = 1e100  # of settings; only their order counts
_MOST = 100_000  # settings whose numbers are kept
_EVEN = 0.3  # spread of the rises of costs over their mean below which they rise evenly
_ROWS = 4  # rows of a run from which a pattern can be seen

OWN = ("task", "run", "step", "score", "cost", "ended", "minimize")
"""The columns of an export of curves; all others are settings."""


# -- files ----------------------------------------------------------------------------------------


@contextmanager
def reading(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Whatever a damaged log brings about becomes one message that names the file."""
    try:
        yield
    except InvalidFile as error:
        text = str(error)
        raise InvalidFile(text if text.startswith(str(path)) else f"{path}: {text}") from None
    except (WeitzmanError, Warning):
        raise
    except MemoryError:
        raise InvalidFile(f"{path}: cannot be read: it does not fit into memory.") from None
    except OSError as error:
        raise InvalidFile(f"{path}: cannot be read: {error.strerror or error}.") from error
    except Exception as error:
        text = " ".join(str(error).split())[:200].rstrip(".")
        raise InvalidFile(f"{path}: not {what}: {text or type(error).__name__}.") from None


def read_log(path: str, *, text: bool = False) -> Any:
    """The table in a file, as a pandas table; the ending of the name gives the kind of file.

    With ``text`` it is a table like .csv, whatever its name.
    """
    pandas = need("pandas", "learn")
    with reading(path, "a table"):
        check_regular(os.stat(path))
        if path.endswith(".parquet"):
            return _parquet(path)
        if text or path.endswith((".csv", ".csv.gz")):
            data = unpacked(path)
            # each cell takes a byte, a comma or the end of a line, unless rows are cut short
            heading = data.lstrip()[: 2**20].splitlines()[:1]
            columns = 1 + (heading[0].count(b",") if heading else 0)
            rows = 1 + max(data.count(b"\n"), data.count(b"\r"))
            _check_cells(columns, rows, _CELLS + len(data))
            own = heading and heading[0].lstrip(b",").startswith(",".join(OWN).encode())
            texts: Any = dict.fromkeys(OWN[:2], str) if own else None  # "007" stays as it is
            return pandas.read_csv(io.BytesIO(data), low_memory=False, converters=texts)
        if path.endswith((".jsonl", ".ndjson")):
            data = unpacked(path)
            lines = json_lines(data)
            names = {name for row in lines for name in flat(row)}
            _check_cells(len(names), len(lines), _CELLS + len(data))
            return by_column(lines)
        raise InvalidFile("the name must end with .csv, .csv.gz, .parquet or .jsonl.")


def json_lines(data: bytes) -> list[dict[str, Any]]:
    """The objects of a file, one in each line; a last line that was cut short is left out."""
    lines = data.decode("utf-8").splitlines()
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            if number == len(lines):  # still being written
                break
            raise InvalidFile(f"line {number} is not JSON: {error}.") from error
        if not isinstance(row, dict):
            raise InvalidFile(f"line {number} must be a JSON object, but it is {line[:40]!r}.")
        rows.append(row)
    return rows


def flat(config: Config, prefix: str = "") -> dict[str, Any]:
    """Settings within settings, under names such as ``optimizer/momentum``."""
    out: dict[str, Any] = {}
    for name, value in config.items():
        inner = isinstance(value, Mapping)
        out.update(flat(value, f"{prefix}{name}/") if inner else {f"{prefix}{name}": value})
    return out


def by_column(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns. Missing entries are None, and nested mappings are flattened."""
    even = [flat(row) for row in rows]
    names = dict.fromkeys(name for row in even for name in row)
    return {name: [row.get(name) for row in even] for name in names}


def by_row(columns: Mapping[str, Sequence[Any]]) -> list[Config]:
    """Columns as rows."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _check_cells(columns: int, rows: int, most: int) -> None:
    if columns > _COLUMNS:
        raise InvalidFile(
            f"a table must have at most {_COLUMNS:,} columns, but it has {columns:,}. Keep those "
            f"that are needed."
        )
    if columns * rows > most:
        raise InvalidFile(
            f"a table in a file of this size must have at most {most:,} cells, but it has "
            f"{rows:,} rows and {columns:,} columns. Keep the columns that are needed."
        )


def _parquet(path: str) -> Any:
    """The flat columns of a Parquet file; texts stay numbers of a list of texts."""
    arrow, parquet = need("pyarrow", "learn"), need("pyarrow.parquet", "learn")
    most = _BYTES + 24 * os.path.getsize(path)

    def check(size: int) -> None:
        if size > most:
            raise InvalidFile(
                f"a Parquet file of this size must have at most {most:,} bytes once unpacked, but "
                f"it has more. Keep the columns that are needed."
            )

    with parquet.ParquetFile(path) as file:
        plain = [x for x in file.schema_arrow if not arrow.types.is_nested(x.type)]
        _check_cells(len(plain), file.metadata.num_rows, most // 8)
        groups = range(file.metadata.num_row_groups)
        check(sum(file.metadata.row_group(i).total_byte_size for i in groups))
    kinds = arrow.types.is_string, arrow.types.is_large_string, arrow.types.is_binary
    texts = [x.name for x in plain if any(is_kind(x.type) for is_kind in kinds)]
    with parquet.ParquetFile(path, read_dictionary=texts, pre_buffer=False) as file:
        found, size, names = [], 0, [x.name for x in plain]
        for batch in file.iter_batches(_BATCH, columns=names, use_threads=False):
            found.append(batch)
            size += batch.nbytes
            check(size)
        schema = found[0].schema if found else arrow.schema(plain)
        return arrow.Table.from_batches(found, schema).to_pandas()


# -- columns --------------------------------------------------------------------------------------


class LogColumns:
    """Named columns of equal length. The error for a missing column lists the columns."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.names = [str(name) for name in source]
        if self.names[:1] == ["Unnamed: 0"] and tuple(self.names[1 : len(OWN) + 1]) == OWN:
            del self.names[0]  # the index of a table that pandas wrote
        self.is_export = tuple(self.names[: len(OWN)]) == OWN
        """Whether this is a table of :meth:`Curves.to_pandas`, in which texts may be blank."""

    def role(self, role: str, name: Any) -> Any:
        """The column of a role: the one named, or else the first that has a usual name."""
        if name != role or name in self.names:
            return name
        return usual(role, self.names) or name

    def __getitem__(self, name: str) -> Any:
        if name not in self.names:
            raise InvalidArgument(
                f"the table has no column {name!r}; its columns are {', '.join(self.names)}. Say "
                f"which one is meant."
            )
        given = self._source[name]
        try:
            column = np.asarray(given)
        except ValueError:  # lists among other values
            column = np.empty(len(given), object)
            column[:] = given
        size = len(self._source[self.names[0]])
        if column.ndim != 1 or len(column) != size:
            raise InvalidArgument(f"column {name!r} must have {size} entries like the first one.")
        return column

    def words(self, names: str | Sequence[str]) -> list[str]:
        """A column as text, in which nothing may be missing; several are joined by slashes."""
        columns = []
        for name in [names] if isinstance(names, str) else names:
            entries = self[name].tolist()
            blank = [i for i, x in enumerate(entries) if _is_blank(x)]
            if self.is_export and name == "task":
                for i in blank:
                    entries[i] = ""
            else:
                _check_filled(name, blank)
            columns.append([str(x) for x in entries])
        return columns[0] if len(columns) == 1 else list(map("/".join, zip(*columns, strict=True)))

    def numbers(self, name: str, *, blank: bool = False) -> FloatArray:
        """A column of numbers; blank entries only where they have a meaning."""
        column = self[name]
        try:
            values = column.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            values = np.array([_number(x, name, i, blank) for i, x in enumerate(column.tolist())])
        if not blank:
            _check_filled(name, np.flatnonzero(np.isnan(values)))
        return np.asarray(values)

    def steps(self, name: str) -> IntArray:
        """A column of whole numbers."""
        values = self.numbers(name)
        odd = np.flatnonzero((values != np.round(values)) | (np.abs(values) > 2**53))
        if len(odd):
            raise InvalidArgument(
                f"column {name!r} must hold whole numbers, but row {odd[0]} is {values[odd[0]]:g} "
                f"({such(len(odd), 'row')})."
            )
        return values.astype(np.int64)

    def settings(self, names: Sequence[str], rows: IntArray) -> list[Config]:
        """The settings in these rows; a name stands for all columns that it was flattened to."""
        columns = {}
        for name in names:
            inner = [x for x in self.names if x.startswith(f"{name}/")]
            for x in (inner if name not in self.names else []) or [name]:
                called = x.removeprefix("setting ") if self.is_export else x
                columns[called] = self[x][rows].tolist()
        rows_ = by_row(columns)
        if self.is_export:  # a cell is blank where a run has no such setting
            rows_ = [{k: x for k, x in row.items() if not _is_blank(x)} for row in rows_]
        return rows_


def columns_of(source: Any) -> LogColumns:
    """The columns of a mapping, a data frame, a list of rows, or a file."""
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


def _is_blank(x: object) -> bool:
    """Whether a table has no entry here; a text is one, whatever it says."""
    return not isinstance(x, str) and str(x) in ("None", "nan", "NaT", "<NA>")


def _check_filled(name: str, blank: Any) -> None:
    if len(blank):
        raise InvalidArgument(
            f"column {name!r} must be filled, but row {blank[0]} is blank "
            f"({such(len(blank), 'row')})."
        )


def _number(x: Any, name: str, row: int, blank: bool) -> float:
    if blank and (x is None or x == ""):
        return np.nan
    try:
        return float(x)
    except (TypeError, ValueError, OverflowError):
        text = f"column {name!r} must hold numbers, but row {row} is {shortened(repr(x), 40)}."
        raise InvalidArgument(text) from None


def settings_of(
    log: LogColumns, source: Any, first: IntArray, names: Sequence[str]
) -> list[Config]:
    """The settings of each run: from columns of the log, or from a table with a row for each run.

    Such a table is joined by the columns that it shares with ``names``, which name a run; ``first``
    is the first row of each run in the log.
    """
    if isinstance(source, (list, tuple)):
        return log.settings(source, first)
    table = columns_of(source)
    shared = [name for name in names if name in table.names]
    if not shared:
        raise InvalidArgument(
            f"a table of settings must share a column that names a run ({', '.join(names)}), but "
            f"its columns are {', '.join(table.names)}."
        )

    def said(key: Sequence[str]) -> str:
        return ", ".join(f"{name} {value}" for name, value in zip(shared, key, strict=True))

    keys = list(zip(*map(table.words, shared), strict=True))
    own = [name for name in table.names if name not in shared]
    each = by_row({name: table[name].tolist() for name in own}) if own else [{}] * len(keys)
    rows = dict(zip(keys, each, strict=True))
    if len(rows) < len(keys):
        ((twice, _),) = Counter(keys).most_common(1)
        raise InvalidArgument(
            f"a table of settings must have one row for each run, but it has several for "
            f"{said(twice)}."
        )
    every = list(zip(*map(log.words, shared), strict=True))
    wanted = [every[i] for i in first.tolist()]
    if lost := [key for key in wanted if key not in rows]:
        raise InvalidArgument(
            f"every run must have a row in the table of settings, but {said(lost[0])} has "
            f"none ({such(len(lost), 'run')})."
        )
    return [rows[key] for key in wanted]


# -- settings as numbers --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Encoder:
    """How settings become numbers: for each name None, or the categories that it may take.

    A name whose values are all numbers is a number; trees look only at the order of values, so a
    logarithmic scale makes no difference. Any other name is a category. A setting that a run does
    not have, because it was not logged or depends on another setting, is missing.
    """

    names: tuple[str, ...]
    categories: tuple[dict[str, int] | None, ...]
    _kept: dict[Any, tuple[float, ...]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, settings: Sequence[Config]) -> Encoder:
        """An encoder for settings like these; a name that says nothing is left out."""
        rows = [flat(config) for config in settings]
        names, kinds = [], []
        for name in dict.fromkeys(name for row in rows for name in row):
            values = [row.get(name) for row in rows]
            words = dict.fromkeys(str(x) for x in values if not _missing(x))
            numeric = all(map(_is_number, values))
            kind = None if numeric else {word: code for code, word in enumerate(words)}
            if len({None if y != y else y for y in (_code(x, kind) for x in values)}) > 1:
                names.append(name)
                kinds.append(kind)
        return cls(tuple(names), tuple(kinds))

    def numbers(self, settings: Sequence[Config], n: int) -> FloatArray:
        """Settings of n runs as numbers, one row per run; all missing where there are none."""
        if not self.names or not len(settings):
            return np.full((n, len(self.names)), np.nan)
        return np.array([self._row(config) for config in settings])

    def _row(self, config: Config) -> tuple[float, ...]:
        """The numbers of one run, which are kept: a search asks for the same ones again."""
        try:
            key = *config.items(), *map(type, config.values())
            found = self._kept.get(key)
        except TypeError:  # settings within settings, or a list
            key, found = (), None
        if found is None:
            row = flat(config)
            kinds = zip(self.names, self.categories, strict=True)
            found = tuple(_code(row.get(name), kind) for name, kind in kinds)
            if len(self._kept) >= _MOST:
                self._kept.clear()
            if key:
                self._kept[key] = found
        return found

    @property
    def is_category(self) -> BoolArray:
        """Which columns are categories."""
        return np.array([kind is not None for kind in self.categories], bool)


NO_SETTINGS = Encoder((), ())


def _missing(x: object) -> bool:
    return not x if isinstance(x, str) else _is_blank(x)


def _is_number(x: object) -> bool:
    return _missing(x) or isinstance(x, (Real, np.bool_))


def _code(x: Any, kind: dict[str, int] | None) -> float:
    """A setting as a number; NaN if it is missing, or a text in place of a number."""
    if _missing(x):
        return math.nan
    if kind is not None:
        word = str(x)
        if word in kind:
            return kind[word]
        # a category that the log does not have gets a code of its own, so that runs can teach it
        return float(len(kind) + crc32(word.encode("utf-8", "surrogatepass")))
    if not _is_number(x):
        return math.nan
    return float(min(max(x, -_LARGEST), _LARGEST))


# -- blanks, cumulative costs, times of day -------------------------------------------------------


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
    first = np.diff(run, prepend=-1) != 0  # rows of a run lie together
    starts = np.flatnonzero(first)
    clock = len(cost) and cost.min() > _TIME_OF_DAY
    if cumulative:
        each = np.asarray(cost - np.where(first, 0.0, np.roll(cost, 1)))
        if clock:
            # when a run started is unknown: its first row costs the median of its other rows, or
            # the median of all rows if it has no other
            usual = float(np.median(each[~first])) if not first.all() else 1.0
            parts = np.split(each.copy(), starts[1:])
            each[starts] = [np.median(x[1:]) if len(x) > 1 else usual for x in parts]
        return each
    if clock:
        raise InvalidArgument(
            f"a cost counts from the row before, but the lowest one is {cost.min():.10g}: these "
            f"look like times of day. Say `cumulative=True`, so that the differences count."
        )
    runs = [x for x in np.split(cost, starts[1:]) if len(x) >= _ROWS and np.isfinite(x).all()]
    if len(runs) > 1 and all(map(_rises_evenly, runs)):
        warnings.warn(
            "the costs of every run rise evenly from row to row, as if they were counted from the "
            "start of the run; they are taken as counted from the row before. If they are not, say "
            "`cumulative=True`.",
            UserWarning,
            stacklevel=4,
        )
    return cost


def _rises_evenly(cost: FloatArray) -> bool:
    rise = np.diff(cost)
    even = rise.min() > 0 and rise.std() < _EVEN * rise.mean()
    return bool(even and cost[-1] > 2 * cost[0])
