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
from typing import IO, BinaryIO, NamedTuple, cast

from .._common.disk import check_regular, replacing
from ..errors import InvalidFile
from ..forest.model import Forest
from . import binary, json_format
from .documents import Path, explained, packed_limit, parse
from .json_format import schema as schema
from .ranges import Ranges
from .sheets import SUFFIXES, WORKBOOK, is_table
from .tables import AS_WRITTEN, TableOptions, TableReading, save_table, table_reading

MAX_BYTES = 2**29
"""The longest JSON text that is read, once unpacked: its objects take ten times as much memory."""

_CHUNK = 2**20


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
    if is_table(name):  # which explains its errors itself
        return format_of(name).read(name, options)
    with explained(name, "read"):
        one = format_of(name)
        check_regular(os.stat(name))
        return one.read(name, options)


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
    if is_table(name):  # which explains its errors itself
        format_of(name).write(forest, name)
        return
    with explained(name, "written"):
        format_of(name).write(forest, name)


class Format(NamedTuple):
    """A file format of problems."""

    suffix: str
    magic: bytes  # with which files begin; none for plain text
    read: Callable[[str, TableOptions], Forest]
    write: Callable[[Forest, str], None]


def format_of(path: Path) -> Format:
    """The format that the name of a file says."""
    name = os.fspath(path)
    if "\0" in name:
        raise InvalidFile("the name of a file must not have a null character in it.")
    found = next((one for one in FORMATS if name.lower().endswith(one.suffix)), None)
    if found is None:
        raise InvalidFile(
            "the name of an instance file must end in .json, .json.gz or .wz, or be that of a "
            "table: .csv, .tsv or .xlsx. Save a spreadsheet of another kind as .xlsx."
        )
    return found


def suffix_of(data: bytes) -> str:
    """The ending of a file with these contents: by its first bytes, else JSON or a table."""
    found = (one.suffix for one in FORMATS if one.magic and data.startswith(one.magic))
    text = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    return next(found, ".json" if text in (b"{", b"[", b"") else ".csv")


def _written(write: Callable[[Forest, BinaryIO], None]) -> Callable[[Forest, str], None]:
    def whole(forest: Forest, name: str) -> None:
        with replacing(name) as file:
            write(forest, file)

    return whole


def _opened(read: Callable[[BinaryIO], Forest]) -> Callable[[str, TableOptions], Forest]:
    def whole(name: str, _: TableOptions) -> Forest:
        with open(name, "rb") as file:
            return read(file)

    return whole


def _read_json(file: IO[bytes]) -> Forest:
    return json_format.forest(parse(_bounded(file, MAX_BYTES)))


def _read_gzip(file: IO[bytes]) -> Forest:
    most = min(MAX_BYTES, packed_limit(os.fstat(file.fileno()).st_size))
    try:
        with gzip.GzipFile(fileobj=file) as packed:
            data = _bounded(cast(IO[bytes], packed), most)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InvalidFile(f"not a complete gzip file: {str(error).rstrip('.')}.") from None
    return json_format.forest(parse(data))


def _write_json(forest: Forest, file: BinaryIO) -> None:
    for piece in json_format.pieces(forest):
        file.write(piece.encode())


def _write_gzip(forest: Forest, file: BinaryIO) -> None:
    # no name and no date: equal forests give equal files
    with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
        for piece in json_format.pieces(forest):
            packed.write(piece.encode())


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


def _table(suffix: str, magic: bytes = b"") -> Format:
    def read(name: str, options: TableOptions) -> Forest:
        return table_reading(name, options).forest

    return Format(suffix, magic, read, save_table)


FORMATS = (
    Format(".json", b"", _opened(_read_json), _written(_write_json)),
    Format(".json.gz", b"\x1f\x8b", _opened(_read_gzip), _written(_write_gzip)),
    Format(".wz", binary.MAGIC, _opened(binary.read), _written(binary.write)),
    _table(WORKBOOK, b"PK\x03\x04"),
    *(_table(suffix) for suffix in SUFFIXES if suffix != WORKBOOK),
)
"""All file formats of problems; of those that begin alike, the first is meant."""
