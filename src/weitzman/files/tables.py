"""Forests as spreadsheets: ``.csv``, ``.tsv`` and ``.xlsx``, as people fill them in.

There is one row for each box, state of its parent and own state. Blank cells of a box repeat the
cell above, as merged cells do. A sheet may begin with a title and with settings (outside option,
objective, unit).
"""

from __future__ import annotations

import csv
import datetime
import io
import math
from contextlib import suppress
from typing import Any, NamedTuple

from .._common.disk import replacing
from .._common.numbers import Comma, such, taken_apart, typed_number
from ..errors import InvalidFile
from ..forest.model import FIELDS, Forest
from .headings import Heading, checked_unit, heading, yes_or_no
from .safely import explained
from .sheets import WORKBOOK, Money, NoValue, sheets
from .table_rows import Rows, forest_of_rows
from .written_tables import settings_of, written_columns

_NUMBERS = ("reward", "probability", "cost", "count", "factor", "duration")
_FILLED = (
    "parent",
    "parent_state",
    "cost",
    "count",
    "endless",
    "factor",
    "duration",
)  # blank: as in the row above
TERMS = tuple(f.name for f in FIELDS if f.form == "setting" and not f.always)
_SHOWN = 40
_TOTALS = {
    "total", "totals", "sum", "subtotal", "grand total", "average", "mean", "summe", "gesamt",
    "gesamtsumme", "mittelwert",
}  # fmt: skip


class TableOptions(NamedTuple):
    """Settings given beside a table; they take precedence over those in the table.

    ``outside`` infinite: something must be taken. ``comma``: what a comma in a number means.
    ``sheet``: the sheet of a workbook that holds the table.
    """

    outside: float | None = None
    minimize: bool | None = None
    unit: str | None = None
    comma: Comma | None = None
    rate: float | None = None
    risk_tolerance: float | None = None
    prizes: int | None = None
    sheet: str | None = None

    def terms(self) -> dict[str, float | int]:
        """Rate, risk tolerance and prizes, as far as they are given."""
        said = {name: getattr(self, name) for name in ("rate", "risk_tolerance", "prizes")}
        return {name: x for name, x in said.items() if x is not None}


AS_WRITTEN = TableOptions()


def load_table(path: str, options: TableOptions = AS_WRITTEN) -> Forest:
    """Read a forest from a table."""
    with explained(path, "read"):
        return _forest(heading(sheets(path), options.sheet), options)


def save_table(forest: Forest, path: str) -> None:
    """Write a forest as a table, with settings above the heading where they are not the default."""
    with explained(path, "written"), replacing(path) as file:
        if path.lower().endswith(WORKBOOK):
            from .written_tables import write_forest

            write_forest(forest, file)
            return
        text = io.StringIO(newline="")
        mark = "\t" if path.lower().endswith(".tsv") else ","
        rows = csv.writer(text, delimiter=mark, lineterminator="\n")
        rows.writerows(settings_of(forest))
        columns = written_columns(forest)
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))
        file.write(text.getvalue().encode())


def _forest(head: Heading, options: TableOptions) -> Forest:
    table = _Table(head, options.comma)
    minimize = head.settings.get("minimize", False)
    minimize = bool(minimize if options.minimize is None else options.minimize)
    outside = head.settings.get("outside") if options.outside is None else options.outside
    if outside is not None and math.isinf(outside):
        outside = math.inf if minimize else -math.inf
    rows = Rows(table.columns, lambda i: f"row {table.numbers[i]}")
    terms = {key: x for key, x in head.settings.items() if key in TERMS}
    terms |= options.terms()
    terms["unit"] = _unit(head, table, options)
    return forest_of_rows(rows, outside=outside, minimize=minimize, terms=terms)


def _unit(head: Heading, table: _Table, options: TableOptions) -> str:
    """The unit given by an option, above the heading, in the heading, or by the cells."""
    if options.unit is not None:
        return checked_unit(options.unit, "the unit")
    if "unit" in head.settings:
        return str(head.settings["unit"])
    said = {head.units[c] for c in ("reward", "cost") if c in head.units} or table.currencies
    if len(said) > 1:
        one, other = sorted(said)[:2]
        raise InvalidFile(
            f"rewards and costs must be in one unit, but there are {one!r} and {other!r}. Convert "
            f"one of them, or say the unit above the heading."
        )
    return checked_unit(said.pop(), "the unit") if said else ""


class _Table:
    """The cells below a heading as columns of names and numbers."""

    def __init__(self, head: Heading, comma: Comma | None) -> None:
        self.head = head
        self.currencies: set[str] = set()
        self.numbers: list[int] = []
        self.columns: dict[str, list[Any]] = {c: [] for c in head.columns}
        self._read()
        if not self.numbers:
            raise InvalidFile("a forest needs at least one box, but the table has no rows.")
        marks = self._commas(comma)
        for column in _NUMBERS:
            if column in self.columns:
                self._to_numbers(column, marks)
        self._complete()

    def _read(self) -> None:
        """All rows, with blanks filled from above."""
        above: dict[str, Any] = {}
        for row in self.head.rows:
            here = {c: self._at(row.cells, i) for c, i in self.head.columns.items()}
            if all(x is None for x in here.values()):
                continue
            if row.hidden:
                hidden = sum(r.hidden for r in self.head.rows)
                raise InvalidFile(
                    f"all rows of the table must be in sight, but row {row.number} is hidden "
                    f"({such(hidden, 'row')}). Show the hidden rows, or delete them."
                )
            if here["box"] is None:
                here["box"] = above.get("box")
            if above and here["box"] == above["box"]:
                for column in _FILLED:
                    if here.get(column, "") is None:
                        here[column] = above[column]
            for column, x in here.items():
                self.columns[column].append(x)
            self.numbers.append(row.number)
            above = here
        self._refuse_total()

    def _refuse_total(self) -> None:
        """The last row may add up those above: a box of that name is hardly meant."""
        last = self.columns["box"][-1:]
        if last and str(last[0]).strip(" :").lower() in _TOTALS:
            raise InvalidFile(
                f"a row below the heading must describe a box, but row {self.numbers[-1]} "
                f"({last[0]!r}) seems to add up those above. Take the row out, or rename the box."
            )

    @staticmethod
    def _at(cells: list[Any], i: int) -> Any:
        x = cells[i] if i < len(cells) else None
        if isinstance(x, NoValue):
            raise InvalidFile(x.why)
        return None if x == "" else x

    def _commas(self, given: Comma | None) -> Comma:
        """What commas mean in this sheet, according to the unambiguous numbers."""
        if given is not None:
            return given
        seen: dict[Comma | str, tuple[int, str]] = {}
        for column in _NUMBERS:
            for row, x in zip(self.numbers, self.columns.get(column, ()), strict=False):
                if isinstance(x, str) and ("," in x or "." in x):
                    cell = taken_apart(x)
                    if cell is not None:
                        mark = "comma" if "," in x else "point"
                        seen.setdefault(cell.comma or mark, (row, x))
        both = [seen.get(Comma.DECIMAL), seen.get(Comma.THOUSANDS)]
        if both[0] and both[1]:
            raise InvalidFile(_TWO_WAYS.format(both[0], both[1]))
        for mark in ("comma", "point"):
            if mark in seen and not both[1] and (mark == "comma" or not both[0]):
                raise InvalidFile(_OPEN.format(*seen[mark], mark))
        return Comma.DECIMAL if both[0] else Comma.THOUSANDS

    def _to_numbers(self, column: str, comma: Comma) -> None:
        found = [
            None if x is None else self._number(x, column, i, comma)
            for i, x in enumerate(self.columns[column])
        ]
        percent = self.head.units.get(column) == "%"
        if percent and any(x > 1 for x in found if x is not None):  # else % is in the cells
            found = [None if x is None else x / 100 for x in found]
        self.columns[column] = found

    def _number(self, x: Any, column: str, i: int, comma: Comma) -> float:
        if isinstance(x, Money):
            self.currencies.add(x.currency)
        if isinstance(x, int | float) and not isinstance(x, bool):
            return _as_float(x)
        if isinstance(x, str):
            with suppress(ValueError):
                found = typed_number(x, comma)
                self.currencies |= {found.currency} - {""}
                return found.value
        date = " Spreadsheets turn 1/2 into a date: format the cell as text."
        is_date = isinstance(x, datetime.date | datetime.time)
        raise InvalidFile(
            f"the column {self.head.titles[column]!r} must hold numbers, but row "
            f"{self.numbers[i]} (box {self.columns['box'][i]!r}) has {str(x)[:_SHOWN]!r}."
            f"{date if is_date else ''}"
        )

    def _complete(self) -> None:
        """The columns that may be left out: all boxes are roots, states are called by reward."""
        n = len(self.numbers)
        for column in ("parent", "parent_state", "reward"):
            self.columns.setdefault(column, [None] * n)
        if "state" not in self.columns:
            self.columns["state"] = list(self.columns["reward"])
        if "endless" in self.columns:
            self.columns["endless"] = [
                yes_or_no(x, f"row {row}: endless")
                for row, x in zip(self.numbers, self.columns["endless"], strict=True)
            ]


def _as_float(x: float) -> float:
    try:
        return float(x)
    except OverflowError:  # a whole number of 400 digits
        return math.inf


_TWO_WAYS = (
    "all numbers must be written in one way, but row {0[0]} has {0[1]!r}, with a decimal comma, "
    "and row {1[0]} has {1[1]!r}, with a decimal point. Write them in one way."
)
_OPEN = (
    "row {0} has {1!r}, which may be a number of four or more digits or one with a decimal {2}, "
    "and the other numbers of the sheet leave that open. Write it without the {2}, or say "
    "--decimal point or --decimal comma."
)
