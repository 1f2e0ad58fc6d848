"""Cells of a spreadsheet, or of a text with separators, with the row numbers that people see.

Encodings (UTF-8, UTF-16, Latin-1) and separators (comma, semicolon, tab) are detected. Small files
that unpack to huge ones are rejected before memory is spent, and nothing is made of rows and
columns that a file only claims to have.
"""

from __future__ import annotations

import csv
import datetime
import io
import os
import re
import unicodedata
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any, NamedTuple, Self
from xml.etree import ElementTree

from .._common.disk import check_regular
from .._common.numbers import plain_number, such
from .._common.optional import need
from ..errors import InvalidFile
from .documents import packed_limit, unpacked

TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
WORKBOOK = ".xlsx"
READ_ONLY = (".xlsm", ".ods")
SUFFIXES = (WORKBOOK, *TEXT, *READ_ONLY)

_SEPARATORS = ",;\t"
_LOOKED = 20  # rows that tell the separator
_OWN_FORMATS = 164  # number formats from here on are those of the workbook itself
_COLUMNS = 200  # of a sheet; further columns are not read
_REPEATED = 10_000  # rows that a sheet of .ods may write as one


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


class ShownNumber(float):
    """A number that is shown with a currency, or as a percentage."""

    currency: str
    percent: bool

    def __new__(cls, x: float, currency: str = "", percent: bool = False) -> Self:
        found = super().__new__(cls, x)
        found.currency, found.percent = currency, percent
        return found


def is_table(name: str) -> bool:
    """Whether the ending of a name is that of a table."""
    return name.lower().endswith(SUFFIXES)


def sheets(path: str) -> list[Sheet]:
    """The sheets of a file; a text has one."""
    if path.lower().endswith(TEXT):
        return [Sheet("", list(text_rows(decoded(unpacked(path)))))]
    check_regular(os.stat(path))
    _check_packed(path)
    read = _open_document if path.lower().endswith(".ods") else _workbook
    try:
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about parts that are not read here
            return read(file)
    except (OSError, MemoryError, InvalidFile):
        raise
    except Exception as error:  # whatever a damaged file brings about in there
        text = " ".join(str(error).split())[:200]
        raise InvalidFile(f"not a workbook: {text or type(error).__name__}.") from None


# -- text ------------------------------------------------------------------------------------------


def decoded(data: bytes) -> str:
    """Decode text: by its byte order mark, else as UTF-8, else as Windows writes it."""
    marks = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
    encoding = next((name for mark, name in marks.items() if data.startswith(mark)), "utf-8")
    if encoding == "utf-8" and b"\0" in data[:2]:
        encoding = "utf-16-le" if data[1:2] == b"\0" else "utf-16-be"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding == "utf-8":
            return data.decode("cp1252", errors="replace")
        raise InvalidFile(
            f"the text begins as {encoding.upper()}, but byte {error.start} does not fit. Save the "
            f"file again."
        ) from None


def text_rows(text: str) -> Iterator[SheetRow]:
    """Rows of a text that are not blank, by the line in which they end."""
    if "\0" in text:
        raise InvalidFile("a table must be text, but it has null characters in it.")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator(text))
    number = 0
    try:
        for cells in reader:
            number += 1  # as a spreadsheet counts: a cell of two lines is in one row
            found = [unmarked(cell.strip()) for cell in cells]
            if any(found):
                yield SheetRow(number, found)
    except csv.Error as error:
        raise InvalidFile(f"not a table: {error}, after row {number}.") from None


def marked(text: str) -> str:
    """Text that no spreadsheet takes for a formula: with an apostrophe in front if need be."""
    bare = text.lstrip("'")
    return f"'{text}" if bare[:1] in set("=+-@") and plain_number(text) is None else text


def unmarked(cell: str) -> str:
    """The text that was marked."""
    return cell[1:] if cell[:1] == "'" and cell.lstrip("'")[:1] in set("=+-@") else cell


def separator(text: str) -> str:
    """The separator: the mark by which most rows, and into most cells, are divided alike."""

    def alike(mark: str) -> tuple[int, int]:
        counts: dict[int, int] = {}
        try:  # reads as many lines as the rows have, whatever stands in quotes
            for row in islice(csv.reader(io.StringIO(text, newline=""), delimiter=mark), _LOOKED):
                counts[len(row)] = counts.get(len(row), 0) + any(row)
        except csv.Error:
            return 0, 0
        return max(((n, cells) for cells, n in counts.items() if cells > 1), default=(0, 0))

    return max(_SEPARATORS, key=alike)


# -- workbooks of Excel ----------------------------------------------------------------------------


def _workbook(file: Any) -> list[Sheet]:
    openpyxl = need("openpyxl", "excel")
    parser: Any = need("openpyxl.worksheet._reader", "excel").WorkSheetParser

    class Parser(parser):  # type: ignore[misc]
        """Notes formulas that have no result; an empty text is a result."""

        def parse_cell(self, element: Any) -> dict[str, Any]:
            cell: dict[str, Any] = super().parse_cell(element)
            if element.find("{*}f") is not None and not element.findtext("{*}v"):
                cell["unknown"] = element.get("t") != "str"
            return cell

    book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    try:
        return [_sheet(book, sheet, Parser) for sheet in book.worksheets]
    finally:
        book.close()


def _sheet(book: Any, sheet: Any, parser: Any) -> Sheet:
    letter = need("openpyxl.utils", "excel").get_column_letter
    with book._archive.open(sheet._worksheet_path) as source:
        # rows one by one as they are there: openpyxl's own loop makes those between them as well
        parse = parser(
            source, sheet._shared_strings, data_only=True, epoch=book.epoch,
            date_formats=book._date_formats, timedelta_formats=book._timedelta_formats,
        )  # fmt: skip
        rows, lost = list[SheetRow](), list[tuple[list[Any], int, int]]()
        for number, cells in parse.parse():
            found: list[Any] = [None] * min(max((c["column"] for c in cells), default=0), _COLUMNS)
            for cell in cells:
                i = cell["column"] - 1
                if i < _COLUMNS:
                    found[i] = _value(cell, book, f"cell {letter(i + 1)}{number} of sheet "
                                                  f"{sheet.title!r}")  # fmt: skip
                    if cell.get("unknown"):
                        lost.append((found, i, number))
                        found[i] = NoValue("")
            if any(x is not None for x in found):
                about = parse.row_dimensions.get(str(number)) or {}
                rows.append(SheetRow(number, found, about.get("hidden") in ("1", "true")))
    for cells, i, number in lost:
        cells[i] = NoValue(
            f"a formula must have a result, but cell {letter(i + 1)}{number} of sheet "
            f"{sheet.title!r} holds one that was never calculated ({such(len(lost), 'cell')}). "
            f"Save the workbook once in Excel or LibreOffice."
        )
    ranges = parse.merged_cells.mergeCell if parse.merged_cells else ()
    merged = [Merged(x.min_col - 1, x.min_row, x.max_row) for x in ranges]
    return Sheet(sheet.title, rows, merged, sheet.sheet_state != "visible")


def _value(cell: dict[str, Any], book: Any, where: str) -> Any:
    value = cell["value"]
    if value is None:
        return None
    if cell["data_type"] == "e":
        return NoValue(f"{where} holds the error {value}. Correct its formula.")
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    style = book._cell_styles[cell["style_id"]].numFmtId
    if style < _OWN_FORMATS:  # of Excel itself: two percentages, and currencies of the reader
        return _shown(value, "", style in (9, 10))
    form = book._number_formats[style - _OWN_FORMATS]
    return _shown(value, _currency(form), "%" in re.sub(r'"[^"]*"', "", form))


def _shown(value: float, currency: str, percent: bool) -> float:
    plain = not (currency or percent) or abs(value) > 1e300  # whole numbers may be any size
    return value if plain else ShownNumber(value, currency, percent)


@cache
def _currency(number_format: str) -> str:
    """The currency in a number format: `#,##0 [$€-407]`, `"$"#,##0`."""
    if named := re.search(r"\[\$([^\]\[-]+)", number_format):
        return named[1].strip()
    quoted = re.findall(r'"([^"]*)"', number_format)  # perhaps a unit such as k€
    bare = re.sub(r"\[[^\]\[]*\]", "", number_format)
    money = (x for x in [*quoted, *bare] if any(unicodedata.category(c) == "Sc" for c in x))
    return next(money, "").strip()


def _check_packed(path: str) -> None:
    """Reject what is no archive, or one that unpacks to far more than its size."""
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


# -- workbooks of LibreOffice ----------------------------------------------------------------------


def _open_document(file: Any) -> list[Sheet]:
    """The sheets of an OpenDocument spreadsheet."""
    with zipfile.ZipFile(file) as archive:
        data = archive.read("content.xml")
    if b"<!" in data[:1000].replace(b"<!--", b""):  # such files declare no entities
        raise InvalidFile("not a workbook: it declares a document type.")
    root = ElementTree.fromstring(data)
    hidden = {
        style.get(_ods("style:name"))
        for style in root.iter(_ods("style:style"))
        for about in style.iter(_ods("style:table-properties"))
        if about.get(_ods("table:display")) == "false"
    }
    tables = root.iter(_ods("table:table"))
    return [_ods_sheet(table, table.get(_ods("table:style-name")) in hidden) for table in tables]


def _ods(name: str) -> str:
    space, _, name = name.partition(":")
    return f"{{urn:oasis:names:tc:opendocument:xmlns:{space}:1.0}}{name}"


def _ods_sheet(table: Any, hidden: bool) -> Sheet:
    name = table.get(_ods("table:name"), "")
    rows, merged, number = list[SheetRow](), list[Merged](), 1
    for row in table.iter(_ods("table:table-row")):
        times = max(1, int(row.get(_ods("table:number-rows-repeated"), 1)))
        cells: list[Any] = []
        for cell in row:
            wide = max(1, int(cell.get(_ods("table:number-columns-repeated"), 1)))
            tall = int(cell.get(_ods("table:number-rows-spanned"), 1))
            if tall > 1 and len(cells) < _COLUMNS:
                merged.append(Merged(len(cells), number, number + tall - 1))
            covered = cell.tag == _ods("table:covered-table-cell")
            x = None if covered else _ods_value(cell, f"row {number} of sheet {name!r}")
            cells += [x] * min(wide, _COLUMNS - len(cells))
        if any(x is not None for x in cells):
            if times > _REPEATED:
                raise InvalidFile(
                    f"sheet {name!r} must have at most {_REPEATED:,} equal rows below each other, "
                    f"but row {number} is there {times:,} times. Delete those that mean nothing."
                )
            away = row.get(_ods("table:visibility")) in ("collapse", "filter")
            rows += [SheetRow(number + i, list(cells), away) for i in range(times)]
        number += times
    return Sheet(name, rows, merged, hidden)


def _ods_value(cell: Any, where: str) -> Any:
    kind = cell.get(_ods("office:value-type"))
    text = "\n".join("".join(p.itertext()) for p in cell.iter(_ods("text:p"))).strip()
    if kind in ("float", "percentage", "currency"):
        x = float(cell.get(_ods("office:value")))
        currency = cell.get(_ods("office:currency"), "") if kind == "currency" else ""
        return _shown(x, currency, kind == "percentage")
    if kind == "boolean":
        return cell.get(_ods("office:boolean-value")) == "true"
    if kind == "date":
        return datetime.date.fromisoformat(cell.get(_ods("office:date-value"))[:10])
    if cell.get(_ods("table:formula")) is not None and re.match(r"#\w|Err:\d", text):
        return NoValue(f"{where} holds the error {text[:20]}. Correct its formula.")
    return text or None
