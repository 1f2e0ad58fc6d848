"""Logs as files: .csv, .csv.gz, .parquet and .jsonl, read with a bound on the memory.

A small file can stand for a huge table: packed rows, rows shorter than the heading, one value that
a Parquet file repeats a billion times. Such files are refused before memory is spent on them.
"""

from __future__ import annotations

import io
import os
from typing import Any

from .._common.disk import check_regular
from .._common.optional import need
from ..errors import InvalidFile
from ..files.sheets import unpacked
from .features import flat
from .logged_runs import by_column, json_lines

_CELLS = 10_000_000  # of a table, beyond one for each byte of its file
_COLUMNS = 10_000
_BYTES = 2**27  # of a Parquet file once unpacked, beyond 24 for each byte of the file
_BATCH = 2**13  # rows that are read between checks of memory


def read_log(path: str, *, text: bool = False) -> Any:
    """The table in a file, as a pandas table; the ending of the name gives the kind of file.

    With ``text`` it is a table like .csv, whatever its name.
    """
    pandas = need("pandas", "learn")
    try:
        check_regular(os.stat(path))
        if path.endswith(".parquet"):
            return _parquet(path)
        if text or path.endswith((".csv", ".csv.gz")):
            data = unpacked(path)
            _check_text(data)
            return pandas.read_csv(io.BytesIO(data), low_memory=False)
        if path.endswith((".jsonl", ".ndjson")):
            return _json_columns(unpacked(path))
    except InvalidFile as error:
        raise InvalidFile(f"{path}: {error}") from error.__cause__
    except OSError as error:
        raise InvalidFile(f"{path}: cannot be read: {error.strerror or error}.") from error
    except (ValueError, OverflowError, ArithmeticError) as error:
        raise InvalidFile(f"{path}: not a table: {str(error).strip().rstrip('.')}.") from error
    except MemoryError as error:
        raise InvalidFile(f"{path}: cannot be read: it does not fit into memory.") from error
    raise InvalidFile(f"{path}: the name must end with .csv, .csv.gz, .parquet or .jsonl.")


def _json_columns(data: bytes) -> dict[str, list[Any]]:
    rows = json_lines(data)
    names = {name for row in rows for name in flat(row)}
    _check_cells(len(names), len(rows), _CELLS + len(data))
    return by_column(rows)


def _check_text(data: bytes) -> None:
    """Each cell takes a byte, a comma or the end of a line, unless rows are cut short."""
    ends = max(data.count(b"\n"), data.count(b"\r"))
    heading = data.lstrip()[: 2**20].splitlines()[:1]
    columns = 1 + (heading[0].count(b",") if heading else 0)
    _check_cells(columns, ends + 1, _CELLS + len(data))


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
    arrow = need("pyarrow", "learn")
    try:
        return _flat_columns(path, arrow, need("pyarrow.parquet", "learn"))
    except arrow.ArrowException as error:
        text = " ".join(str(error).split())[:200]
        raise InvalidFile(f"not a table: {text.rstrip('.')}.") from None


def _flat_columns(path: str, arrow: Any, parquet: Any) -> Any:
    most = _BYTES + 24 * os.path.getsize(path)
    with parquet.ParquetFile(path) as file:
        plain = [x for x in file.schema_arrow if not arrow.types.is_nested(x.type)]
        _check_cells(len(plain), file.metadata.num_rows, most // 8)
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        _check_bytes(sum(group.total_byte_size for group in groups), most)
    texts = [x.name for x in plain if _is_text(arrow, x.type)]
    with parquet.ParquetFile(path, read_dictionary=texts, pre_buffer=False) as file:
        found, size = [], 0
        for batch in file.iter_batches(_BATCH, columns=[x.name for x in plain], use_threads=False):
            found.append(batch)
            size += batch.nbytes
            _check_bytes(size, most)
        table = arrow.Table.from_batches(found, found[0].schema if found else arrow.schema(plain))
        return table.to_pandas()


def _is_text(arrow: Any, kind: Any) -> bool:
    is_text = arrow.types.is_string, arrow.types.is_large_string, arrow.types.is_binary
    return any(test(kind) for test in is_text)


def _check_bytes(size: int, most: int) -> None:
    if size > most:
        raise InvalidFile(
            f"a Parquet file of this size must have at most {most:,} bytes once unpacked, but it "
            f"has more. Keep the columns that are needed."
        )
