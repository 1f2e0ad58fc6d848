"""Workbooks (``.xlsx``): forests as sheets, a sheet to fill in, and tables of results."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

from .._common.numbers import is_currency_sign
from .._common.optional import need
from ..errors import InvalidForest
from ..forest.model import Forest
from .written_tables import settings_of, written_columns

_WIDEST = 60  # characters of a column
_MONEY = ("reward", "cost")


class Block(NamedTuple):
    """A sheet: rows above the heading, the heading, and columns below it.

    ``formats`` are number formats by column, in the words of Excel.
    """

    title: str
    above: Sequence[Sequence[Any]]
    columns: dict[str, list[Any]]
    formats: Mapping[str, str] = MappingProxyType({})


def write_forest(forest: Forest, file: BinaryIO) -> None:
    """Write a forest as a workbook that :func:`~weitzman.files.load` reads."""
    money = money_format(forest.unit)
    formats = dict.fromkeys(_MONEY, money) | {"probability": "0.######%"}
    block = Block("boxes", settings_of(forest), written_columns(forest), formats)
    write_blocks([block], file)


def write_blocks(blocks: Iterable[Block], file: BinaryIO) -> None:
    """Write sheets, each with a bold heading that stays in sight."""
    openpyxl = need("openpyxl", "excel")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for block in blocks:
        _fill(book.create_sheet(block.title), block)
    # book.save leaves its archive open if the disk is full
    writer = need("openpyxl.writer.excel", "excel").ExcelWriter
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        writer(book, archive).save()
    file.write(packed.getvalue())


def money_format(unit: str) -> str:
    """The number format of amounts in a unit."""
    plain = "#,##0.######"
    if not unit:
        return plain
    quoted = '"' + unit.replace('"', "") + '"'
    return f"{quoted}{plain}" if is_currency_sign(unit) else f'{plain}" "{quoted}'


def _fill(sheet: Any, block: Block) -> None:
    styles = need("openpyxl.styles", "excel")
    bold = styles.Font(bold=True)
    for row in block.above:
        _append(sheet, row)
    _append(sheet, list(block.columns))
    head = sheet.max_row if block.columns else 0
    for row in zip(*block.columns.values(), strict=True):
        _append(sheet, row)
    if not head:
        return
    for cell in sheet[head]:
        cell.font = bold
    sheet.freeze_panes = sheet.cell(head + 1, 1)
    for i, (name, values) in enumerate(block.columns.items(), 1):
        letter = sheet.cell(head, i).column_letter
        wide = max([len(name), *(len(str(x)) for x in values[:1000] if x is not None)])
        sheet.column_dimensions[letter].width = min(wide, _WIDEST) + 3
        if name in block.formats:
            for j in range(head + 1, sheet.max_row + 1):
                sheet.cell(j, i).number_format = block.formats[name]


def _append(sheet: Any, row: Sequence[Any]) -> None:
    """A row in which text stays text: nothing in it becomes a formula."""
    exceptions = need("openpyxl.utils.exceptions", "excel")
    number = sheet.max_row + 1 if sheet.max_row > 1 or sheet.cell(1, 1).value is not None else 1
    for i, x in enumerate(row, 1):
        if x is None or (isinstance(x, float) and not math.isfinite(x)):
            continue
        try:
            cell = sheet.cell(number, i)
            cell.value = x
        except exceptions.IllegalCharacterError:
            raise InvalidForest(
                f"a workbook cannot hold control characters, but there is {str(x)[:40]!r}. Rename "
                f"it, or write .csv."
            ) from None
        if isinstance(x, str):
            cell.data_type = "s"
