"""Tables that are written: forests as columns, workbooks (``.xlsx``), and a sheet to fill in."""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files as data_of
from itertools import chain
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from .._common.arrays import IntArray
from .._common.disk import replacing
from .._common.numbers import is_currency_sign, plain_number
from .._common.optional import need
from ..errors import InvalidForest
from ..forest.model import FIELDS, SETTINGS, Forest
from .documents import explained
from .ranges import Range
from .sheets import TEXT, WORKBOOK, marked

_WIDEST = 60  # characters of a column
_DECIMALS = 6  # of a number in a cell, at most; the cell holds all of them
_MOST_ROWS = 250_000  # of a workbook
_MONEY = ("reward", "cost")
LONGEST = {False: 100_000, True: 32_767}  # characters of a name in a text and in a workbook
TOTALS = {
    "total", "totals", "sum", "subtotal", "grand total", "average", "mean", "summe", "gesamt",
    "gesamtsumme", "mittelwert",
}  # fmt: skip
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|_x[0-9A-Fa-f]{4}_")

_HEAD = ("box", "parent", "parent_state", "state", "reward", "probability", "cost")


def written_columns(forest: Forest) -> dict[str, list[Any]]:
    """One row for each box, state of its parent and own state; numbers where names are missing."""
    f = forest
    shape = f.laws.shape[f.law]
    size = shape[:, 0] * shape[:, 1]
    box = np.repeat(np.arange(len(f)), size)
    within = np.arange(len(box)) - np.repeat(np.cumsum(size) - size, size)
    given, own = np.divmod(within, shape[box, 1])
    up = f.parent[box]
    columns: dict[str, list[Any]] = {
        "box": _box_names(f, box),
        "parent": _box_names(f, up),
        "parent_state": _state_names(f, np.where(up < 0, -1, f.reward[up]), given),
        "state": _state_names(f, f.reward[box], own),
    }
    for one in FIELDS:
        held = one.given(f)
        if held is None or one.headings[0] in columns:
            continue
        if one.form == "law":
            values = held.data[held.start[f.law[box]] + within].tolist()
        elif one.form == "rewards":
            reward = held.data[held.start[f.reward[box]] + own].tolist()
            values = [x if math.isfinite(x) else None for x in reward]
        elif one.form == "opening":
            values = held.entries(getattr(f, one.pointer)[box], given, own).tolist()
        elif one.form == "entry":
            each = held if isinstance(held, tuple) else held.tolist()
            values = [each[v] for v in box.tolist()]
        else:
            continue
        columns[one.headings[0]] = values
    return {c: columns[c] for c in (*_HEAD, *columns)}


def _add_ranges(columns: dict[str, list[Any]], forest: Forest, ranges: Sequence[Range]) -> None:
    """The ends of ranges as columns of their own; with a distribution, whole ranges in one."""
    size = forest.laws.shape[forest.law].prod(axis=1)
    start = np.cumsum(size) - size
    whole = {r.field for r in ranges if r.distribution is not None}
    filled = {one.headings[0] for one in FIELDS if one.form == "opening"}
    for r in ranges:
        box, (given, state) = forest.box(r.box), r.rows(forest)
        k, first = int(forest.laws.shape[forest.law[box], 1]), int(start[box])
        for end in ("range",) if r.field in whole else ("low", "high"):
            column = columns.setdefault(f"{r.field} {end}", [None] * int(size.sum()))
            x: Any = r.cell if end == "range" else getattr(r, end)
            for i in range(int(size[box])):
                if given in (None, i // k) and state in (None, i % k):
                    column[first + i] = x
                elif r.field in filled and column[first + i] is None:  # else: as in the row above
                    now = columns[r.field][first + i]
                    column[first + i] = "/".join([repr(now)] * 3) if end == "range" else now


def settings_of(forest: Forest) -> list[list[Any]]:
    """What a table says above its heading: settings other than the defaults."""
    rows = list[list[Any]]()
    for one in SETTINGS:
        x = one.given(forest)
        if x is not None and (forest.minimize or not one.always or x != one.default):
            cell = one.shown(x) if one.type is dict else one.plain(x)
            rows.append([one.headings[0], "none" if cell is None else cell])
    return rows


def _box_names(f: Forest, box: IntArray) -> list[Any]:
    """Names of boxes (-1: none), or numbers where they have no names."""
    names = [*(f.names or range(len(f))), None]
    return [names[v] for v in box.tolist()]


def _state_names(f: Forest, row: IntArray, state: IntArray) -> list[Any]:
    """Names of states by rows of rewards (-1: none); numbers where no box has names."""
    kind: type = str if any(f.state_names) else int
    each = zip(f.state_names, f.rewards.shape[:, 1].tolist(), strict=True)
    names: list[Any] = [x for given, k in each for x in given or map(kind, range(k))]
    at = np.where(row < 0, len(names), f.rewards.start[row] + state)
    names.append(None)
    return [names[i] for i in at.tolist()]


def check_writable(forest: Forest, workbook: bool) -> None:
    """Reject what a table of this kind could not give back as it was."""
    names = forest.names or ()
    states = [name for each in forest.state_names for name in each or ()]
    optional = filter(None, dict.fromkeys((forest.unit, *(forest.groups or ()))))
    for name in (*names, *states, *optional):
        if why := _unwritable(name, workbook):
            raise InvalidForest(
                f"a name in a table {why}, but there is {name[:40]!r}. Rename it, or write .json."
            )
    pairs = (getattr(forest, one.stored) for one in FIELDS if one.type is dict)
    for group, _ in chain.from_iterable(pairs):
        if re.search(r"[,;]|[\s:=]$|^\W*$", group):
            raise InvalidForest(
                f"a group with a quota must have no comma or semicolon in a table, but there is "
                f"{group[:40]!r}. Rename it, or write .json."
            )
    if names and names[-1].strip(" :").lower() in TOTALS:
        raise InvalidForest(
            f"the last box of a table must not be called {names[-1]!r}, which would be read as a "
            f"row of totals. Rename it, or write .json."
        )
    if not np.isfinite(forest.rewards.data).any():
        raise InvalidForest("a table must have a reward, but no box has one. Write .json.")


def _unwritable(name: str, workbook: bool) -> str:
    """What is wrong with a name."""
    if name != name.strip() or not name:
        return "must neither be blank nor begin or end with blanks"
    if len(name) > LONGEST[workbook]:
        return f"must have at most {LONGEST[workbook]:,} characters"
    if "\0" in name or "\r" in name or any("\ud800" <= c <= "\udfff" for c in name):
        return "must be text without null characters, carriage returns and halves of characters"
    if workbook and _NO_XML.search(name):
        return "of a workbook must have no control characters"
    return ""


class Block(NamedTuple):
    """A sheet: rows above the heading, the heading, and columns below it.

    ``formats`` are number formats by column, one for each row, in the words of Excel.
    """

    title: str
    above: Sequence[Sequence[Any]]
    columns: dict[str, list[Any]]
    formats: Mapping[str, Sequence[str]] = MappingProxyType({})


def write_blocks(blocks: Iterable[Block], file: BinaryIO) -> None:
    """Write sheets, each with a bold heading that stays in sight."""
    openpyxl = need("openpyxl", "excel")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for block in blocks:
        _check_rows(max(map(len, block.columns.values()), default=0))
        _fill(book.create_sheet(block.title), block)
    excel = need("openpyxl.writer.excel", "excel")
    writing: Any = excel.ExcelWriter

    class Writer(writing):  # type: ignore[misc]
        """Makes sheets in memory: a full disk would give errors of an XML library."""

        def write_worksheet(self, sheet: Any) -> None:
            made = excel.WorksheetWriter(sheet, out=io.BytesIO())
            made.write()
            sheet._rels = made._rels
            self._archive.writestr(sheet.path[1:], made.out.getvalue())
            self.manifest.append(sheet)

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        Writer(book, archive).save()
    file.write(packed.getvalue())


def money_formats(
    values: Iterable[float | None], unit: str, written: Callable[[float], str] | None = None
) -> list[str]:
    """The number formats of amounts in a unit, with the decimals that each amount is written with.

    One format with optional decimals would not do: Excel shows a bare point after whole numbers.
    """
    texts = [None if x is None else (written or _exact)(x) for x in values]
    if not unit:
        return [_format(text) for text in texts]
    quoted = '"' + unit.replace('"', "") + '"'
    if not is_currency_sign(unit):
        return [f'{_format(text)}" "{quoted}' for text in texts]
    tenths = (f"{text}0" if text and text[-2:-1] == "." else text for text in texts)
    return [f"{quoted}{_format(text)}" for text in tenths]


def _exact(x: float) -> str:
    """A number with the decimals that it has, six at most."""
    return f"{x:.{_DECIMALS}f}".rstrip("0").rstrip(".")


def _format(text: str | None) -> str:
    """The number format that shows a number as the text does."""
    decimals = (text or "").partition("e")[0].partition(".")[2]
    return "#,##0" + (f".{'0' * len(decimals)}" if decimals else "")


def _check_rows(rows: int) -> None:
    if rows > _MOST_ROWS:
        raise InvalidForest(
            f"a workbook is written with at most {_MOST_ROWS} rows, but here are {rows}, which "
            f"would take about {rows * 3300 / 1e9:.2g} GB of memory. Write .csv or .wz."
        )


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
        texts = (f"{x:,.4f}" if isinstance(x, float) else str(x) for x in values[:1000] if x)
        sheet.column_dimensions[letter].width = (
            min(max(len(name), *map(len, texts), 1), _WIDEST) + 3
        )
        if name in block.formats:
            for j in range(head + 1, sheet.max_row + 1):
                sheet.cell(j, i).number_format = block.formats[name][j - head - 1]


def _append(sheet: Any, row: Sequence[Any]) -> None:
    """A row in which text stays text (nothing becomes a formula) and numbers keep all digits."""
    exceptions = need("openpyxl.utils.exceptions", "excel")
    number = sheet._current_row + 1  # ``max_row`` looks at every cell
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
        elif isinstance(x, float):
            cell._value = repr(x)  # openpyxl would write 16 digits; data_type stays that of numbers


def write_forest(forest: Forest, ranges: Sequence[Range], file: BinaryIO, suffix: str) -> None:
    """Write a forest as a table, with settings above the heading where they are not the default."""
    workbook = suffix not in TEXT
    check_writable(forest, workbook)
    if workbook:
        _check_rows(int(np.diff(forest.laws.start)[forest.law].sum()))
    columns = written_columns(forest)
    _add_ranges(columns, forest, ranges)
    if not workbook:
        rows = chain(settings_of(forest), [list(columns)], zip(*columns.values(), strict=True))
        _write_text(rows, file, suffix)
        return
    formats = {key: money_formats(column, forest.unit) for key, column in columns.items()
               if key.partition(" ")[0] in _MONEY and not key.endswith("range")}  # fmt: skip
    for key in ("probability", "probability low", "probability high"):
        if key in columns:
            some = (None if p is None else _exact(100 * p) for p in columns[key])
            formats[key] = [f"{_format(text)}%" for text in some]
    write_blocks([Block("boxes", settings_of(forest), columns, formats)], file)


def _write_text(rows: Iterable[Sequence[Any]], file: BinaryIO, suffix: str) -> None:
    """Rows of a text; spreadsheets take nothing in it for a formula."""
    text, mark = io.StringIO(newline=""), "\t" if ".tsv" in suffix else ","
    csv.writer(text, delimiter=mark, lineterminator="\n").writerows(
        [marked(x) if isinstance(x, str) and x else x for x in row] for row in rows
    )
    data = text.getvalue().encode()  # no date: equal forests give equal files
    file.write(gzip.compress(data, mtime=0) if suffix.endswith(".gz") else data)


def write_template(path: str) -> None:
    """Write a sheet to fill in, ``.xlsx``, ``.csv`` or ``.tsv``."""
    rows, notes = (_template_rows(name) for name in ("template.csv", "template_notes.csv"))
    with explained(path, "written"), replacing(path) as file:
        if path.lower().endswith(TEXT):
            _write_text(rows, file, path.lower()[-4:])
            return
        head = rows.index(list(_HEAD))
        boxes, about = ({str(c[0]): list(c[1:]) for c in zip(*rows_, strict=True)}
                        for rows_ in (rows[head:], notes))  # fmt: skip
        formats = {key: money_formats(boxes[key], "$") for key in _MONEY}
        formats["probability"] = ["0%"] * len(boxes["probability"])
        blocks = [Block("boxes", rows[:head], boxes, formats), Block("notes", (), about)]
        write_blocks(blocks, file)


def _template_rows(name: str) -> list[list[Any]]:
    """The rows of a sheet that comes with the package."""
    text = data_of(__package__).joinpath(name).read_text("utf-8")
    return [
        [(text or None) if (x := plain_number(text)) is None else int(x) if x % 1 == 0 else x
         for text in row] for row in csv.reader(io.StringIO(text))
    ]  # fmt: skip


def is_template(path: str) -> bool:
    """Whether a sheet to fill in can be written under a name."""
    return path.lower().endswith((*(s for s in TEXT if not s.endswith(".gz")), WORKBOOK))
