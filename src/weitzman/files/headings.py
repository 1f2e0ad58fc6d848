"""Where the boxes of a sheet begin, what its columns are called, and the settings above them.

Columns and settings have the headings that the fields of :class:`~weitzman.Forest` declare.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Container
from typing import Any, NamedTuple

from .._common.numbers import such
from ..errors import InvalidFile
from ..forest.fields import Field
from ..forest.model import FIELDS
from ..forest.rules import like
from .ranges import RANGED
from .sheets import NoValue, Sheet, SheetRow

NEEDED = ("box", "probability", "cost", "reward")
TEST = ("sensitivity", "specificity")  # of a test, in place of its chances

PER_BOX: dict[str, Field] = {f.headings[0]: f for f in FIELDS if f.form != "setting"}
"""The fields of boxes by the columns that hold them."""

NUMBERS = tuple(
    column
    for column, f in PER_BOX.items()
    if f.form in ("law", "rewards", "opening") or (f.form == "entry" and f.type in (int, float))
)

_MORE = {
    "parent_state": (
        "parent_state parentstate after_state if_parent_shows given if when shows parent_shows "
        "parent_outcome previous_outcome"
    ),
    "sensitivity": "sensitivity true_positive_rate",
    "specificity": "specificity true_negative_rate",
}
_WORDS = {
    "box_word": "a_box_is_called box_is_called boxes_are_called call_a_box",
    "open_word": "to_open_is_called open_is_called opening_is_called call_opening",
}
_ENDS = {
    "low": "low lower min minimum worst pessimistic p10",
    "high": "high upper max maximum best optimistic p90",
    "range": "range distribution low_base_high",
}
_END = {word: end for end, words in _ENDS.items() for word in words.split()}
_USUAL = ["candidate", "target", "vendor", "supplier", "site", "market", "option"]  # boxes
_YES, _NO = ("true", "yes", "y", "1", "x"), ("false", "no", "n", "0", "")
_DEEPEST = 60  # rows in which the heading must stand
_BRACKETS = re.compile(r"[(\[]([^()\[\]]{0,20})[)\]]")  # no bracket within: never tried twice
_UNIT_AT_END = re.compile(r"([^,]+?)(?:,| in ) *([^,]{1,12})")


def _plain(text: str) -> str:
    """A name without case, spaces and what stands in brackets."""
    bare = re.sub(r"[(\[][^()\[\]]*[)\]]", "", text).strip().lower()
    return re.sub(r"[\W_]+", "_", bare).strip("_")


_COLUMN = {_plain(h): column for column, f in PER_BOX.items() for h in f.headings} | {
    word: column for column, words in _MORE.items() for word in words.split()
}
_SETTING = {_plain(h): f.name for f in FIELDS if f.form == "setting" for h in f.headings} | {
    word: key for key, words in _WORDS.items() for word in words.split()
}


class Named(NamedTuple):
    """What a heading names: a column, one end of the range of its numbers, and a unit."""

    column: str
    end: str = ""
    unit: str = ""


class Said(NamedTuple):
    """A setting above the heading, as it is written."""

    key: str
    name: str
    value: Any
    where: str

    @property
    def unit(self) -> str:
        """The unit in the brackets of the name."""
        return _in_brackets(self.name)


class Heading(NamedTuple):
    """The columns of a sheet by their own names, its settings, and the rows below the heading.

    The ends of a range are columns called "cost low" and the like.
    """

    columns: dict[str, int]
    titles: dict[str, str]
    settings: list[Said]
    units: dict[str, str]
    rows: list[SheetRow]
    ignored: list[str]
    above: list[list[str]]


def heading(found: list[Sheet], name: str | None = None) -> Heading:
    """The heading of the sheet of that name, or else of the one visible sheet that has a table."""
    some = _named_sheet(found, name) if name is not None else [s for s in found if not s.hidden]
    some = some or found
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
        rows = ((sheet, i) for sheet in some for i in range(min(len(sheet.rows), _DEEPEST)))
        sheet, i = max(rows, key=lambda x: len(_columns(x[0].rows[x[1]])))
        if len(_columns(sheet.rows[i])) > 1:
            return _heading(sheet, i)  # which says what is missing
        raise InvalidFile(
            "one row must name the columns (box, parent, parent_state, state, reward, "
            "probability, cost), but none does. weitzman template writes a sheet to fill in."
        )
    return _heading(*(whole or tables)[0])


def _named_sheet(found: list[Sheet], name: str) -> list[Sheet]:
    names = [sheet.name for sheet in found]
    if names == [""]:
        raise InvalidFile("only a workbook (.xlsx) has sheets. Leave out --sheet.")
    if name not in names:
        known = ", ".join(map(repr, names))
        raise InvalidFile(f"there is no sheet {name!r}{like(name, names)}. The sheets are {known}.")
    return [found[names.index(name)]]


def _row_of_heading(sheet: Sheet) -> int | None:
    """Which of the first rows names all columns that are needed, or a box and two more."""
    known = [_columns(row) for row in sheet.rows[:_DEEPEST]]
    some = [i for i, x in enumerate(known) if "box" in x and len(x) > 2]
    return next((i for i in some if not _missing(known[i])), next(iter(some), None))


def _columns(row: SheetRow) -> set[str]:
    return {x.column for x in _names(row) if x and not x.end}


def _names(row: SheetRow) -> list[Named | None]:
    """What the headings of a row name; if none names the box, the one before all others does."""
    found = [*map(_named, row.cells)]
    known = {x.column: i for i, x in reversed([*enumerate(found)]) if x}
    unknown = [i for i in range(min(known.values(), default=0)) if isinstance(row.cells[i], str)]
    some = [i for i in unknown if _plain(row.cells[i]) in _USUAL] or unknown
    if "box" not in known and len(known) > 1 and len(some) == 1:
        found[some[0]] = Named("box")
    return found


def _place(row: SheetRow, sheet: str) -> str:
    return f"row {row.number}" + (f" of sheet {sheet!r}" if sheet else "")


def yes_or_no(x: object, where: str) -> bool:
    """A cell that says yes or no."""
    text = "" if x is None else str(x).strip().lower()
    text = text.removesuffix(".0")
    if text in _YES or text in _NO:
        return text in _YES
    raise InvalidFile(f"{where} must be yes or no, but it is {str(x)[:40]!r}.")


def _named(cell: object) -> Named | None:
    """What a heading such as "Cost", "Cost (EUR)", "Cost in EUR" or "Cost low" names."""
    if not isinstance(cell, str) or len(cell) > 200:
        return None
    text, unit = cell, _in_brackets(cell) or ("%" if "%" in cell else "")
    plain = _plain(text)
    if plain not in _COLUMN and not unit and (end := _UNIT_AT_END.fullmatch(text.strip())):
        plain, unit = _plain(end[1]), end[2].strip()
    if plain in _COLUMN:
        return Named(_COLUMN[plain], unit=unit)
    words = plain.split("_")
    for end_word, rest in ((plain, ""), (words[0], "_".join(words[1:])),
                           (words[-1], "_".join(words[:-1]))):  # fmt: skip
        if end_word in _END and (not rest or _COLUMN.get(rest) in RANGED):
            return Named(_COLUMN.get(rest, ""), _END[end_word], unit)
    return None


def _in_brackets(text: str) -> str:
    found = _BRACKETS.search(text)
    return re.sub(r"^in\s+", "", found[1].strip()) if found else ""


def _heading(sheet: Sheet, at: int) -> Heading:
    row, above = sheet.rows[at], sheet.rows[:at]
    columns: dict[str, int] = {}
    titles: dict[str, str] = {}
    units: dict[str, str] = {}
    found = _names(row)
    own = {x.column for cell, x in zip(row.cells, found, strict=True)
           if x and not x.end and _plain(cell) == x.column}  # fmt: skip
    ignored: list[str] = []
    for i, (cell, named) in enumerate(zip(row.cells, found, strict=True)):
        other = named and not named.end and named.column in own and _plain(cell) != named.column
        column = (named.column or _nearest(found, i)) if named and not other else ""
        if named is None or not column:  # one called reward comes before one called value
            ignored += [str(cell)] if cell not in (None, "") else []
            continue
        key = f"{column} {named.end}".strip()
        if key in columns:
            raise InvalidFile(
                f"a column must be there once, but {_place(row, sheet.name)} has "
                f"{titles[key]!r} and {cell!r}. Rename one of them."
            )
        columns[key], titles[key] = i, cell
        if named.unit:
            units[key] = named.unit
    if missing := _missing(columns):
        hint = like(missing[0], ignored).replace("did you mean", "is it")
        others = f" Not known: {', '.join(x[:30] for x in ignored[:8])}." if ignored else ""
        lacking = " and the column ".join(map(repr, missing))
        raise InvalidFile(
            f"a table must have the column {lacking}, but {_place(row, sheet.name)} does not "
            f"name {'it' if len(missing) == 1 else 'them'} ({such(len(missing), 'column')}{hint}). "
            f"Name the columns box, parent, parent_state, state, reward, probability, cost.{others}"
        )
    first: dict[str, Said] = {}
    unread: list[list[str]] = []
    for r in above:
        for x in (said := _settings(r)):
            if first.setdefault(x.key, x).value != x.value:
                raise InvalidFile(
                    f"{x.where} must be said once, but it is {x.value!r} here and "
                    f"{first[x.key].value!r} in {first[x.key].where}. Delete one of them."
                )
        unread += [] if said else [[str(c) for c in r.cells if c not in (None, "")]]
    rows = _unmerged(sheet, sheet.rows[at + 1 :])
    return Heading(columns, titles, list(first.values()), units, rows, ignored, unread)


def _nearest(found: list[Named | None], at: int) -> str:
    """The numbers that a bare "low" or "high" is about: to the left of it, else to the right."""
    near = (x.column for x in [*found[:at][::-1], *found[at:]] if x and not x.end)
    return next((column for column in near if column in RANGED), "")


def _unmerged(sheet: Sheet, rows: list[SheetRow]) -> list[SheetRow]:
    """Rows in which each of several merged cells holds what is shown for all of them."""
    at = {row.number: i for i, row in enumerate(rows)}
    for column, first, last in sheet.merged:
        i = at.get(first)
        if i is None or column >= len(rows[i].cells):
            continue
        for row in itertools.takewhile(lambda r: r.number <= last, rows[i + 1 :]):  # noqa: B023
            if column < len(row.cells) and row.cells[column] is None:
                row.cells[column] = rows[i].cells[column]
    return rows


def _missing(columns: Container[str]) -> list[str]:
    """The columns that a table lacks."""
    return [c for c in NEEDED if c not in columns]


def _settings(row: SheetRow) -> list[Said]:
    """What a row above the heading says: "outside option" and a number, "unit: EUR", ..."""
    cells = [c for c in row.cells if c not in (None, "")]
    halves = (c.partition(":") for c in cells if isinstance(c, str))
    pairs = [*itertools.pairwise(cells), *((a, b.strip()) for a, _, b in halves)]
    found = []
    for name, value in pairs:
        key = _setting(name.rstrip(":")) if isinstance(name, str) else None
        if key is not None and value != "":
            if isinstance(value, NoValue):
                raise InvalidFile(value.why)
            found.append(Said(key, name, value, f"row {row.number}: {name!r}"))
    return found


def _setting(name: str) -> str | None:
    """The setting that a name such as "Outside option (k€)" or "rate per year" stands for."""
    if len(name) > 200:
        return None
    plain = _plain(name)
    bare = re.sub(r"_(?:per_.*|p_?a)$", "", plain)
    for words in (plain, bare, plain.removeprefix("the_")):
        if words in _SETTING:
            return _SETTING[words]
    kind = "(?:(?:continuous|annual|yearly|quarterly|monthly|weekly|daily)_)"
    rate = rf"{kind}?(?:discount_|interest_)?rate(?:_of_discount)?|wacc"
    return "rate" if re.fullmatch(rate, bare) else None
