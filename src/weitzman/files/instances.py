"""Instance files.

``.json`` and ``.json.gz`` hold the format ``weitzman/1``, for people and programs: :func:`schema`
describes it. ``.wz`` holds the same as raw columns, for millions of boxes. Reading never runs code
from a file and never takes much more memory than its size implies; writing replaces a file in one
step or leaves it as it was.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable
from typing import IO, BinaryIO, cast

from .._common.disk import check_regular, replacing
from ..errors import InvalidFile
from ..forest.model import Forest
from . import binary, json_reader, json_writer
from .json_schema import schema as schema
from .ranges import Ranges
from .safely import explained, packed_limit, parse
from .sheets import is_table
from .tables import AS_WRITTEN, TableOptions, TableReading, save_table, table_reading

MAX_BYTES = 2**29
"""The longest JSON text that is read, once unpacked: its objects take ten times as much memory."""

_CHUNK = 2**20

Path = str | os.PathLike[str]


def load(path: Path, options: TableOptions = AS_WRITTEN) -> Forest:
    """Read a forest from a ``.json``, ``.json.gz`` or ``.wz`` file, or from a table.

    Tables (``.csv``, ``.tsv``, ``.xlsx``) have the columns of
    :func:`~weitzman.files.from_pandas`. The rows above the columns may give the outside option,
    the objective and the unit.

    Parameters
    ----------
    path : str or path
    options : TableOptions
        For a table: what the table does not say itself.

    Returns
    -------
    Forest

    Raises
    ------
    InvalidFile
        The file cannot be read, is damaged, or is not an instance file. The cause is the `OSError`
        if there was one.
    InvalidForest
        The file is readable but its boxes break a rule.
    """
    name = os.fspath(path)
    if is_table(name):
        return table_reading(name, options).forest
    with explained(name, "read"):
        read, _ = _FORMATS[_suffix(name)]
        check_regular(os.stat(name))
        return read(name)


def read_table(path: Path, options: TableOptions = AS_WRITTEN) -> TableReading:
    """Read a table with all that it says besides the problem.

    Parameters
    ----------
    path : str or path
        A table; any other file that :func:`load` reads has neither ranges nor lines.
    options : TableOptions
        What the table does not say itself.

    Returns
    -------
    TableReading
        ``lines`` say for people which columns were read as what, which were not read, and what
        unit, outside option and rate were understood.
    """
    name = os.fspath(path)
    return table_reading(name, options) if is_table(name) else TableReading(load(name))


def read_ranges(path: Path, options: TableOptions = AS_WRITTEN) -> Ranges:
    """The uncertain numbers of a table; none for other files."""
    return read_table(path, options).ranges


def save(forest: Forest, path: Path) -> None:
    """Write a forest to a ``.json``, ``.json.gz`` or ``.wz`` file, or as a table.

    The file appears complete or not at all: if writing fails, what was there stays.

    Parameters
    ----------
    forest : Forest
    path : str or path

    Raises
    ------
    InvalidFile
        The file cannot be written. The cause is the `OSError`.

    Examples
    --------
    >>> import tempfile, weitzman
    >>> forest = weitzman.Forest.from_arrays(
    ...     parent=[-1], cost=[1], rewards=[0, 4], law=[[0.5, 0.5]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(forest, f"{folder}/boxes.json")
    ...     load(f"{folder}/boxes.json")
    Forest(1 described box, 1 with copies, 1 root, 1 law, outside 0)
    """
    name = os.fspath(path)
    if is_table(name):
        save_table(forest, name)
        return
    with explained(name, "written"):
        _, write = _FORMATS[_suffix(name)]
        with replacing(name) as file:
            write(forest, file)


def _suffix(name: str) -> str:
    if "\0" in name:
        raise InvalidFile("the name of a file must not have a null character in it.")
    for suffix in _FORMATS:
        if name.lower().endswith(suffix):
            return suffix
    raise InvalidFile(
        "the name of an instance file must end in .json, .json.gz or .wz, or be that of a "
        "table: .csv, .tsv or .xlsx. Save a spreadsheet of another kind as .xlsx."
    )


def _read_json(name: str) -> Forest:
    with open(name, "rb") as file:
        return json_reader.forest(parse(_bounded(file, MAX_BYTES)))


def _read_gzip(name: str) -> Forest:
    try:
        with gzip.open(name, "rb") as file:
            data = _bounded(cast(IO[bytes], file), min(MAX_BYTES, packed_limit(_size(name))))
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InvalidFile(f"not a complete gzip file: {str(error).rstrip('.')}.") from None
    return json_reader.forest(parse(data))


def _read_binary(name: str) -> Forest:
    with open(name, "rb") as file:
        return binary.read(file)


def _write_json(forest: Forest, file: BinaryIO) -> None:
    for piece in json_writer.pieces(forest):
        file.write(piece.encode())


def _write_gzip(forest: Forest, file: BinaryIO) -> None:
    # no name and no date: equal forests give equal files
    with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
        for piece in json_writer.pieces(forest):
            packed.write(piece.encode())


def _size(name: str) -> int:
    return os.path.getsize(name)


def _bounded(file: IO[bytes], most: int) -> bytes:
    """All bytes of a file, unless they are too many: a small file may unpack to a huge one."""
    chunks, size = [], 0
    while chunk := file.read(_CHUNK):
        chunks.append(chunk)
        size += len(chunk)
        if size > most:
            raise InvalidFile(
                f"the text must have at most {most:,} bytes once unpacked, but it has more. "
                f"Write large instances as .wz."
            )
    return b"".join(chunks)


_FORMATS: dict[str, tuple[Callable[[str], Forest], Callable[[Forest, BinaryIO], None]]] = {
    ".json": (_read_json, _write_json),
    ".json.gz": (_read_gzip, _write_gzip),
    ".wz": (_read_binary, binary.write),
}
