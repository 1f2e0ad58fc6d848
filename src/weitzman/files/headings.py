"""Where the boxes of a sheet begin, what its columns are called, and the settings above them."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from ..errors import InvalidFile
from ..forest.rules import MAX_UNIT, like
from .cells import Comma, plain_number, taken_apart
from .json_reader import read_terms
from .sheets import Sheet, SheetRow

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


def heading(found: list[Sheet]) -> Heading:
    """The heading of the first sheet that has one."""
    closest: tuple[int, SheetRow | None] = (0, None)
    for sheet in found:
        settings: dict[str, Any] = {}
        for i, row in enumerate(sheet.rows[:_DEEPEST]):
            known = [c for c in map(_column, row.cells) if c]
            if "box" in known and len(set(known)) > 2:
                return _heading(row, settings, sheet.rows[i + 1 :])
            closest = max(closest, (len(set(known)), row), key=lambda x: x[0])
            settings |= _setting(row)
    if not any(sheet.rows for sheet in found):
        raise InvalidFile("a forest needs at least one box, but the table has no rows.")
    near = "" if closest[1] is None else f" Row {closest[1].number} comes closest."
    raise InvalidFile(
        f"one row must name the columns (box, parent, parent_state, state, reward, probability, "
        f"cost), but none does.{near} weitzman template writes a sheet to fill in."
    )


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


def _heading(row: SheetRow, settings: dict[str, Any], rows: list[SheetRow]) -> Heading:
    columns: dict[str, int] = {}
    titles: dict[str, str] = {}
    units: dict[str, str] = {}
    for i, cell in enumerate(row.cells):
        column = _column(cell)
        if column is None:
            continue
        if column in columns:
            raise InvalidFile(
                f"a column must be there once, but row {row.number} has {titles[column]!r} and "
                f"{cell!r}. Rename one of them."
            )
        columns[column], titles[column] = i, cell
        unit = re.search(r"[(\[](.{1,12}?)[)\]]", cell)
        if unit:
            units[column] = unit[1].strip()
    _check(columns, row)
    return Heading(columns, titles, settings, units, rows)


def _check(columns: dict[str, int], row: SheetRow) -> None:
    missing = [c for c in NEEDED if c not in columns]
    if "reward" not in columns and "state" not in columns:
        missing.append("reward")
    if missing:
        others = [str(c) for c in row.cells if c and _column(c) is None]
        hint = like(missing[0], others).replace("did you mean", "is it")
        raise InvalidFile(
            f"a table must have the column {missing[0]!r}, but row {row.number} does not name it "
            f"({len(missing)} such columns{hint}). Name the columns box, parent, parent_state, "
            f"state, reward, probability, cost."
        )


def _setting(row: SheetRow) -> dict[str, Any]:
    """What a row above the heading says: "outside option" and a number, "unit" and a sign, ..."""
    cells = [c for c in row.cells if c not in (None, "")]
    if len(cells) < 2 or not isinstance(cells[0], str):
        return {}
    key, value = _SETTING.get(_plain(cells[0].rstrip(":"))), cells[1]
    where = f"row {row.number}: {cells[0]!r}"
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
    if key is not None and key != "outside":
        return read_terms({key: _amount(value, where)})
    return {}


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
