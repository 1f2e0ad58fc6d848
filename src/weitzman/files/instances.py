"""The registry of file formats: ``load`` and ``save``.

Reading never runs code from a file and never takes much more memory than its size implies; writing
replaces a file in one step or leaves it as it was.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from functools import partial
from typing import IO, BinaryIO, NamedTuple, cast

from .._common.disk import check_regular, replacing
from ..errors import InvalidFile
from ..forest.model import Forest
from . import binary, json_format
from .documents import Path, explained, parse, unpacked
from .json_format import schema as schema
from .ranges import Ranges
from .sheets import READ_ONLY, SUFFIXES, WORKBOOK, is_table
from .tables import AS_WRITTEN, TableOptions, TableReading, table_reading
from .written_tables import write_forest


def load(path: Path, options: TableOptions = AS_WRITTEN) -> Forest:
    """Read a forest from a ``.json``, ``.json.gz`` or ``.wz`` file, or from a table.

    Parameters
    ----------
    path : str or path
        A table (``.csv``, ``.tsv``, packed or not, ``.xlsx``, ``.xlsm``, ``.ods``) has the columns
        of :func:`~weitzman.files.from_pandas`, and perhaps settings in the rows above them.
    options : TableOptions
        What a table does not say itself.

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
        return table_reading(name, options).forest
    with explained(name, "read"):
        one = format_of(name)
        check_regular(os.stat(name))
        return one.read(name)


def read_table(path: Path, options: TableOptions = AS_WRITTEN) -> TableReading:
    """Read a table with all that it says besides the problem; see :class:`TableReading`.

    Any other file that :func:`load` reads has neither ranges nor lines.
    """
    name = os.fspath(path)
    return table_reading(name, options) if is_table(name) else TableReading(load(name))


def read_ranges(path: Path, options: TableOptions = AS_WRITTEN) -> Ranges:
    """The uncertain numbers of a table; none for other files."""
    return read_table(path, options).ranges


def save(forest: Forest, path: Path) -> None:
    """Write a forest to a ``.json``, ``.json.gz`` or ``.wz`` file, or as a table.

    The file appears complete or not at all: if writing fails, what was there stays.

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
    with explained(name, "written"):
        one = format_of(name)
        if one.write is None:
            raise InvalidFile("tables of this kind are only read. Write .xlsx or .csv.")
        with replacing(name) as file:
            one.write(forest, file)


class Format(NamedTuple):
    """A file format of problems."""

    suffix: str
    magic: bytes  # with which files begin; none for plain text
    read: Callable[[str], Forest]
    write: Callable[[Forest, BinaryIO], None] | None  # None: only read


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


def _read_binary(name: str) -> Forest:
    with open(name, "rb") as file:
        return binary.read(file)


def _read_json(name: str) -> Forest:
    return json_format.forest(parse(unpacked(name)))


def _write_json(forest: Forest, file: IO[bytes]) -> None:
    for piece in json_format.pieces(forest):
        file.write(piece.encode())


def _write_gzip(forest: Forest, file: BinaryIO) -> None:
    # no name and no date: equal forests give equal files
    with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
        _write_json(forest, cast(IO[bytes], packed))


def _table(suffix: str) -> Format:
    write = None if suffix in READ_ONLY else partial(write_forest, suffix=suffix)
    magic = b"PK\x03\x04" if suffix == WORKBOOK else b""
    return Format(suffix, magic, lambda name: table_reading(name).forest, write)


FORMATS = (
    Format(".json", b"", _read_json, _write_json),
    Format(".json.gz", b"\x1f\x8b", _read_json, _write_gzip),
    Format(".wz", binary.MAGIC, _read_binary, binary.write),
    *map(_table, SUFFIXES),
)
"""All file formats of problems; of those that begin alike, the first is meant."""
