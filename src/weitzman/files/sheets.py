"""Cells of a spreadsheet, or of a text with separators, with the row numbers that people see.

Encodings (UTF-8, UTF-16, Latin-1) and separators (comma, semicolon, tab) are detected. Small files
that unpack to huge ones are refused before memory is spent.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import unicodedata
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple, Self
from xml.etree import ElementTree

from .._common.disk import check_regular
from .._common.numbers import such
from .._common.optional import need
from ..errors import InvalidFile
from .safely import packed_limit

TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
WORKBOOK = ".xlsx"
SUFFIXES = (*TEXT, WORKBOOK)

_SEPARATORS = ",;\t"
_MOST = 2**29  # bytes of a text
_LOOKED = 20  # lines that tell the separator
_WIDEST = 2**20  # characters of a cell
_OWN_FORMATS = 164  # number formats from here on are those of the workbook itself
_MOST_MONEY = 1e300
_COLUMNS = 200  # of a sheet; further columns are not read


class SheetRow(NamedTuple):
    """A row that is not blank: its number in the sheet, from 1 on, and its cells."""

    number: int
    cells: list[Any]
    hidden: bool = False


class Merged(NamedTuple):
    """Cells of a column, numbered from 0, that were merged from one row to another."""

    column: int
    first: int
    last: int


class Sheet(NamedTuple):
    """A sheet by its name, empty for a text, its rows and its merged cells."""

    name: str
    rows: list[SheetRow]
    merged: Sequence[Merged] = ()
    hidden: bool = False


class NoValue(NamedTuple):
    """Stands in place of a value that a workbook does not hold: a sentence that says why."""

    why: str


class Money(float):
    """A number that is shown with a currency."""

    def __new__(cls, x: float, currency: str) -> Self:
        found = super().__new__(cls, x)
        found.currency = currency
        return found

    currency: str


def is_table(name: str) -> bool:
    """Whether the ending of a name is that of a table."""
    return name.lower().endswith(SUFFIXES)


def sheets(path: str) -> list[Sheet]:
    """The sheets of a file; a text has one."""
    check_regular(os.stat(path))
    if path.lower().endswith(WORKBOOK):
        return _workbook(path)
    return [Sheet("", list(_text_rows(decoded(unpacked(path)))))]


# -- text ------------------------------------------------------------------------------------------


def decoded(data: bytes) -> str:
    """Decode text: by its byte order mark, else as UTF-8, else as Windows writes it."""
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "")):
        if data.startswith(mark):
            return _strictly(data, encoding or "utf-8-sig")
    if data[1:2] == b"\0" or data[:1] == b"\0":
        return _strictly(data, "utf-16-le" if data[1:2] == b"\0" else "utf-16-be")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def _strictly(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise InvalidFile(
            f"the text begins as {encoding.upper()}, but byte {error.start} does not fit. Save the "
            f"file again."
        ) from None


def unpacked(path: str) -> bytes:
    """The bytes of a text, unpacked if its name ends in .gz."""
    if not path.lower().endswith(".gz"):
        if os.path.getsize(path) > _MOST:
            raise InvalidFile(f"a table must have at most {_MOST:,} bytes, but it has more.")
        with open(path, "rb") as file:
            return file.read()
    most = packed_limit(os.path.getsize(path))
    try:
        with gzip.open(path, "rb") as packed:
            data = packed.read(most + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InvalidFile(f"not a complete gzip file: {str(error).rstrip('.')}.") from None
    if len(data) > most:
        raise InvalidFile(
            f"a packed table of this size must have at most {most:,} bytes once unpacked, but it "
            f"has more. Unpack it."
        )
    return data


def _text_rows(text: str) -> Iterator[SheetRow]:
    """Rows of a text that are not blank, by the line in which they end."""
    if "\0" in text:
        raise InvalidFile("a table must be text, but it has null characters in it.")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator(text))
    csv.field_size_limit(_WIDEST)
    number = 0
    try:
        for cells in reader:
            number += 1  # as a spreadsheet counts: a cell of two lines is in one row
            found = [cell.strip() for cell in cells]
            if any(found):
                yield SheetRow(number, found)
    except csv.Error as error:
        raise InvalidFile(f"not a table: {error}, after row {number}.") from None


def separator(text: str) -> str:
    """The separator: the mark that occurs equally often, and most often, in most lines."""
    lines = [x for x in text[: _LOOKED * 4096].splitlines() if x.strip()][:_LOOKED]
    best, found = ",", (0, 0)
    for mark in _SEPARATORS:
        counts = [_outside_quotes(line, mark) for line in lines]
        for n in set(counts) - {0}:
            best, found = max((best, found), (mark, (counts.count(n), n)), key=lambda x: x[1])
    return best


def _outside_quotes(line: str, mark: str) -> int:
    return sum(part.count(mark) for part in line.split('"')[::2])


# -- workbooks -------------------------------------------------------------------------------------


def _workbook(path: str) -> list[Sheet]:
    openpyxl = need("openpyxl", "excel")
    _check_packed(path)
    try:
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about parts that are not read here
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            found = [_sheet(sheet, path) for sheet in book.worksheets]
            book.close()
    except (OSError, MemoryError, InvalidFile):
        raise
    except Exception as error:  # whatever a damaged file brings about in there
        text = " ".join(str(error).split())[:200]
        raise InvalidFile(f"not a workbook: {text or type(error).__name__}.") from None
    return found


def _sheet(sheet: Any, path: str) -> Sheet:
    sheet.reset_dimensions()  # what the file says about its size need not be true
    marks = _marks(path, sheet._worksheet_path)
    rows = list(_sheet_rows(sheet, marks))
    return Sheet(sheet.title, rows, marks.merged, sheet.sheet_state != "visible")


class _Marks(NamedTuple):
    """What openpyxl does not tell while it reads rows one by one.

    Cells that are merged downward, formulas without a result by row and column, hidden rows.
    """

    merged: list[Merged]
    uncalculated: dict[int, list[int]]
    hidden: set[int]


def _marks(path: str, part: str) -> _Marks:
    utils = need("openpyxl.utils", "excel")
    found = _Marks([], {}, set())
    with zipfile.ZipFile(path) as archive, archive.open(part) as xml:
        for _, element in ElementTree.iterparse(xml):
            tag = element.tag.rpartition("}")[2]
            if tag == "c" and _is_uncalculated(element):
                row, column = utils.cell.coordinate_to_tuple(element.get("r"))
                found.uncalculated.setdefault(row, []).append(column)
            elif tag == "mergeCell":
                left, top, _, bottom = utils.range_boundaries(element.get("ref"))
                found.merged.append(Merged(left - 1, top, bottom))
            elif tag == "row":
                if element.get("hidden") in ("1", "true") and element.get("r", "").isdecimal():
                    found.hidden.add(int(element.get("r", "")))
                element.clear()
    return found


def _is_uncalculated(cell: ElementTree.Element) -> bool:
    """Whether a cell has a formula and no result; an empty text is a result."""
    if cell.find("{*}f") is None or cell.findtext("{*}v"):
        return False
    return cell.get("t") != "str" and cell.get("r") is not None


def _sheet_rows(sheet: Any, marks: _Marks) -> Iterator[SheetRow]:
    unknown = sum(map(len, marks.uncalculated.values()))
    for number, cells in enumerate(sheet.iter_rows(max_col=_COLUMNS), 1):
        found = [_value(cell) for cell in cells]
        for column in marks.uncalculated.get(number, ()):
            if column <= len(found):
                found[column - 1] = _no_result(sheet, number, column, unknown)
        if any(x is not None for x in found):
            yield SheetRow(number, found, number in marks.hidden)


def _value(cell: Any) -> Any:
    value = cell.value
    if value is not None and cell.data_type == "e":
        where = f"cell {cell.coordinate} of sheet {cell.parent.title!r}"
        return NoValue(f"{where} holds the error {value}. Correct its formula.")
    if isinstance(value, int | float) and not isinstance(value, bool):
        own = cell.style_array.numFmtId >= _OWN_FORMATS  # others show the currency of the reader
        currency = _currency(cell.number_format) if own else ""
        return Money(value, currency) if currency and abs(value) <= _MOST_MONEY else value
    return (value.strip() or None) if isinstance(value, str) else value


@cache
def _currency(number_format: str) -> str:
    """The currency in a number format: `#,##0 [$€-407]`, `"$"#,##0`."""
    named = re.search(r"\[\$([^\]-]+)", number_format)
    if named:
        return named[1].strip()
    bare = re.sub(r"\[.*?\]", "", number_format)
    return next((c for c in bare if unicodedata.category(c) == "Sc"), "")


def _no_result(sheet: Any, row: int, column: int, how_many: int) -> NoValue:
    letter = need("openpyxl.utils", "excel").get_column_letter(column)
    return NoValue(
        f"a formula must have a result, but cell {letter}{row} of sheet {sheet.title!r} holds one "
        f"that was never calculated ({such(how_many, 'cell')}). Save the workbook once in Excel or "
        f"LibreOffice."
    )


def _check_packed(path: str) -> None:
    """Refuse what is no archive, or one that unpacks to far more than its size."""
    most = packed_limit(os.path.getsize(path))
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(part.file_size for part in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError, RuntimeError) as error:
        raise InvalidFile(f"not a workbook: {str(error).rstrip('.')}.") from None
    if size > most:
        raise InvalidFile(
            f"a workbook of this size must have at most {most:,} bytes once unpacked, but it has "
            f"{size:,}. Save it as .csv."
        )
