"""Where the boxes of a sheet begin, what its columns are called, and the settings above them."""

from __future__ import annotations

import itertools
import math
import re
import shlex
from collections.abc import Set
from typing import Any, NamedTuple

from .._common.numbers import Comma, plain_number, such, taken_apart
from ..errors import InvalidFile
from ..forest.rules import MAX_UNIT, like
from .parsing import read_settings
from .sheets import NoValue, Sheet, SheetRow

NEEDED = ("box", "probability", "cost")

_NAMES = {
    "box": ("box", "stage", "name", "item", "project"),
    "parent": ("parent", "after", "behind", "follows", "previous", "previous_stage"),
    "parent_state": (
        "parent_state",
        "parentstate",
        "after_state",
        "if_parent_shows",
        "given",
        "if",
        "when",
        "shows",
        "parent_shows",
        "parent_outcome",
        "previous_outcome",
    ),
    "state": ("state", "outcome", "result", "finding"),
    "reward": ("reward", "payoff", "worth", "value", "prize", "loss"),
    "probability": ("probability", "prob", "p", "chance"),
    "cost": ("cost", "price"),
    "count": ("count", "copies"),
    "endless": ("endless",),
    "factor": ("factor",),
    "duration": ("duration",),
}
_COLUMN = {name: column for column, names in _NAMES.items() for name in names}
_SETTING = {
    "outside": "outside", "outside_option": "outside", "minimize": "minimize",
    "minimise": "minimize", "objective": "objective", "goal": "objective", "unit": "unit",
    "units": "unit", "currency": "unit", "rate": "rate", "risk_tolerance": "risk_tolerance",
    "prizes": "prizes", "stated_error": "stated_error",
}  # fmt: skip
_YES, _NO = ("true", "yes", "y", "1", "x"), ("false", "no", "n", "0", "")
_DEEPEST = 60  # rows in which the heading must stand


class Heading(NamedTuple):
    """The columns of a sheet by their own names, its settings, and the rows below the heading."""

    columns: dict[str, int]
    titles: dict[str, str]
    settings: dict[str, Any]
    units: dict[str, str]
    rows: list[SheetRow]


def heading(found: list[Sheet], name: str | None = None) -> Heading:
    """The heading of the sheet of that name, or else of the one visible sheet that has a table."""
    some = _named(found, name) if name is not None else [s for s in found if not s.hidden] or found
    if not any(sheet.rows for sheet in some):
        raise InvalidFile("a forest needs at least one box, but the table has no rows.")
    tables = [(sheet, i) for sheet in some if (i := _row_of_heading(sheet)) is not None]
    whole = [(sheet, i) for sheet, i in tables if not _missing(_columns(sheet.rows[i]))]
    if len(whole) > 1:
        raise InvalidFile(
            f"one sheet must hold the table, but {whole[0][0].name!r} and {whole[1][0].name!r} "
            f"both hold one ({such(len(whole), 'sheet')}). Say which: --sheet "
            f"{shlex.quote(whole[0][0].name)}."
        )
    if not tables:
        raise InvalidFile(_no_heading(some))
    sheet, i = (whole or tables)[0]
    return _heading(sheet, i)


def _named(found: list[Sheet], name: str) -> list[Sheet]:
    names = [sheet.name for sheet in found]
    if names == [""]:
        raise InvalidFile("only a workbook (.xlsx) has sheets. Leave out --sheet.")
    if name not in names:
        known = ", ".join(map(repr, names))
        raise InvalidFile(f"there is no sheet {name!r}{like(name, names)}. The sheets are {known}.")
    return [found[names.index(name)]]


def _row_of_heading(sheet: Sheet) -> int | None:
    """Which of the first rows names a box and two more columns."""
    for i, row in enumerate(sheet.rows[:_DEEPEST]):
        known = _columns(row)
        if "box" in known and len(known) > 2:
            return i
    return None


def _columns(row: SheetRow) -> set[str]:
    return {c for c in map(_column, row.cells) if c}


def _no_heading(found: list[Sheet]) -> str:
    rows = ((sheet, row) for sheet in found for row in sheet.rows[:_DEEPEST])
    sheet, row = max(rows, key=lambda x: len(_columns(x[1])))
    near = f" {_place(row, sheet.name).capitalize()} comes closest." if _columns(row) else ""
    return (
        f"one row must name the columns (box, parent, parent_state, state, reward, probability, "
        f"cost), but none does.{near} weitzman template writes a sheet to fill in."
    )


def _place(row: SheetRow, sheet: str) -> str:
    return f"row {row.number}" + (f" of sheet {sheet!r}" if sheet else "")


def yes_or_no(x: object, where: str) -> bool:
    """A cell that says yes or no."""
    text = "" if x is None else str(x).strip().lower()
    text = text.removesuffix(".0")
    if text in _YES or text in _NO:
        return text in _YES
    raise InvalidFile(f"{where} must be yes or no, but it is {str(x)[:40]!r}.")


def _column(cell: object) -> str | None:
    return _COLUMN.get(_plain(cell)) if isinstance(cell, str) else None


def _plain(text: str) -> str:
    """A name without case, spaces and what stands in brackets."""
    bare = re.sub(r"[(\[].*?[)\]]", "", text).strip().lower()
    return re.sub(r"[\W_]+", "_", bare).strip("_")


def _heading(sheet: Sheet, at: int) -> Heading:
    settings = {key: x for row in sheet.rows[:at] for key, x in _settings(row).items()}
    row, rows = sheet.rows[at], _unmerged(sheet, sheet.rows[at + 1 :])
    columns: dict[str, int] = {}
    titles: dict[str, str] = {}
    units: dict[str, str] = {}
    for i, cell in enumerate(row.cells):
        column = _column(cell)
        if column is None:
            continue
        if column in columns:
            raise InvalidFile(
                f"a column must be there once, but {_place(row, sheet.name)} has "
                f"{titles[column]!r} and {cell!r}. Rename one of them."
            )
        columns[column], titles[column] = i, cell
        unit = re.search(r"[(\[](.{1,12}?)[)\]]", cell)
        if unit:
            units[column] = unit[1].strip()
    missing = _missing(set(columns))
    if missing:
        others = [str(c) for c in row.cells if c and _column(c) is None]
        hint = like(missing[0], others).replace("did you mean", "is it")
        raise InvalidFile(
            f"a table must have the column {missing[0]!r}, but {_place(row, sheet.name)} does not "
            f"name it ({such(len(missing), 'column')}{hint}). Name the columns box, parent, "
            f"parent_state, state, reward, probability, cost."
        )
    return Heading(columns, titles, settings, units, rows)


def _unmerged(sheet: Sheet, rows: list[SheetRow]) -> list[SheetRow]:
    """Rows in which each of several merged cells holds what is shown for all of them."""
    at = {row.number: row.cells for row in rows}
    for column, first, last in sheet.merged:
        if first in at and column < len(at[first]):
            for number in range(first + 1, last + 1):
                if number in at and column < len(at[number]) and at[number][column] is None:
                    at[number][column] = at[first][column]
    return rows


def _missing(columns: Set[str]) -> list[str]:
    """The columns that a table lacks."""
    missing = [c for c in NEEDED if c not in columns]
    return missing if {"reward", "state"} & columns else [*missing, "reward"]


def _settings(row: SheetRow) -> dict[str, Any]:
    """What a row above the heading says: "outside option" and a number, "unit: EUR", ..."""
    cells = [c for c in row.cells if c not in (None, "")]
    pairs = [*itertools.pairwise(cells), *(_halves(c) for c in cells)]
    found: dict[str, Any] = {}
    for name, value in pairs:
        key = _SETTING.get(_plain(name.rstrip(":"))) if isinstance(name, str) else None
        if key is not None and value != "":
            found |= _setting(key, value, f"row {row.number}: {name!r}")
    return found


def _halves(cell: object) -> tuple[object, str]:
    """A cell such as "unit: EUR"."""
    name, _, value = cell.partition(":") if isinstance(cell, str) else ("", "", "")
    return name, value.strip()


def _setting(key: str, value: Any, where: str) -> dict[str, Any]:
    if isinstance(value, NoValue):
        raise InvalidFile(value.why)
    if key == "unit":
        return {"unit": checked_unit(str(value), where)}
    if key == "minimize":
        return {"minimize": yes_or_no(value, where)}
    if key == "objective":
        word = str(value).strip().lower().replace("ise", "ize")
        if word not in ("minimize", "maximize", "min", "max"):
            raise InvalidFile(f"{where} must be minimize or maximize, but it is {value!r}.")
        return {"minimize": word.startswith("min")}
    if key == "outside":
        return {"outside": _outside(value, where)}
    return read_settings({key: _amount(value, where)})


def checked_unit(unit: str, where: str) -> str:
    """A unit in a few printable characters."""
    unit = unit.strip()
    if len(unit) > MAX_UNIT or not unit.isprintable():
        raise InvalidFile(
            f"{where} must be a unit of at most {MAX_UNIT} characters, but it is {unit[:40]!r}."
        )
    return unit


def _outside(value: object, where: str) -> float:
    if isinstance(value, str) and value.strip().lower() == "none":
        return math.inf
    return _amount(value, where, ", or none if something must be taken,")


def _amount(value: object, where: str, other: str = ",") -> float:
    """The number of a setting."""
    x: float | None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        x = None
    elif isinstance(value, str):
        cell = taken_apart(value)
        x = plain_number(value)
        if x is None and cell is not None and (cell.comma or "," not in value):
            x = cell.value(cell.comma or Comma.THOUSANDS)
    else:
        x = plain_number(str(value))
    if x is None or not math.isfinite(x):
        raise InvalidFile(f"{where} must be a number{other} but it is {value!r}.")
    return x
