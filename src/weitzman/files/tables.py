"""Forests as spreadsheets, as people fill them in: ``.csv``, ``.tsv``, ``.xlsx``, ``.ods``.

There is one row for each box, state of its parent and own state. Blank cells of a box repeat the
cell above, as merged cells do. A sheet may begin with a title and with settings (outside option,
objective, unit). Columns and settings are read by the declarations of the fields, whatever they
mean; only units, rates and tests are known by name here.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any, NamedTuple

from .._common.numbers import (
    PER_YEAR,
    PERIODS,
    SCALES,
    Comma,
    Typed,
    TypedRate,
    is_currency_sign,
    number,
    percent,
    such,
    taken_apart,
    typed_number,
    typed_rate,
)
from ..errors import InvalidFile
from ..forest.columns import label
from ..forest.distributions import discretize
from ..forest.model import FIELDS, Forest
from ..forest.rules import MAX_UNIT
from .documents import explained
from .headings import NUMBERS, PER_BOX, TEST, Heading, Said, heading, yes_or_no
from .ranges import RANGED, Range, Ranges, Spread, typed_parts, typed_spread
from .sheets import NoValue, ShownNumber, sheets
from .table_rows import forest_of_rows
from .written_tables import TOTALS

_MONEY = ("reward", "cost")  # and the settings outside and risk_tolerance
_ENDS = ("low", "high", "range")
_FILLED = tuple(  # blank: as in the row above
    [c for c, f in PER_BOX.items() if f.form in ("parent", "opening", "entry")]
    + ["parent_state", *TEST]
    + [f"{c} {end}" for c in RANGED if PER_BOX[c].form == "opening" for end in _ENDS]
)
_SHOWN = 40
_FRACTION = re.compile(r"\s*\d+\s*/\s*\d+\s*")
_TOLD = ("outside option", "objective", "unit", "rate")  # in a line of their own
_STATES = 25  # that a distribution in a cell is made into
_SETTING = {f.name: f for f in FIELDS if f.form == "setting"}
_CODES = {"$": "USD", "US$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY"}
_SCALES = {**SCALES, "thousand": 3, "thousands": 3, "000": 3, "000s": 3, "tsd": 3, "million": 6,
           "millions": 6, "billion": 9, "billions": 9}  # fmt: skip


class TableOptions(NamedTuple):
    """Settings given beside a table, which take precedence over those in the table.

    ``outside`` infinite: something must be taken. ``comma``: what a comma in a number means.
    ``rate``: a number, or a text such as "10%". ``sheet``: the sheet that holds the table.
    """

    outside: float | None = None
    minimize: bool | None = None
    unit: str | None = None
    comma: Comma | None = None
    rate: float | str | None = None
    risk_tolerance: float | None = None
    prizes: int | None = None
    sheet: str | None = None

    def terms(self) -> dict[str, float | int]:
        """Rate, risk tolerance and prizes, as far as they are given."""
        rate = typed_rate(self.rate).continuous if isinstance(self.rate, str) else self.rate
        said = {"rate": rate, "risk_tolerance": self.risk_tolerance, "prizes": self.prizes}
        return {name: x for name, x in said.items() if x is not None}


_TITLE = 100  # letters of a title above the heading
_SETTING_LIKE = re.compile(r".*[:=] *\W?[\d.,]+ *\S{0,3}")  # perhaps mistyped: no title


class Words(NamedTuple):
    """What the user calls a box, and what is done with it."""

    box: str = "box"
    open: str = "open"


class TableReading(NamedTuple):
    """What a table says: the problem, its uncertain numbers, how it was read, words, title."""

    forest: Forest
    ranges: Ranges = Ranges()
    lines: tuple[str, ...] = ()
    words: Words = Words()
    title: str | None = None
    time: str = "units of time"


AS_WRITTEN = TableOptions()


def table_reading(path: str, options: TableOptions = AS_WRITTEN) -> TableReading:
    """Read a table with all that it says."""
    with explained(path, "read"):
        return _Table(heading(sheets(path), options.sheet), options).reading()


class _Table:
    """The cells below a heading as columns of names and numbers, one entry for each row."""

    def __init__(self, head: Heading, options: TableOptions) -> None:
        self.head, self.options = head, options
        self.currencies: dict[str, dict[str, bool]] = {c: {} for c in _MONEY}
        self.numbers: list[int] = []  # of the rows
        self.columns: dict[str, list[Any]] = {c: [] for c in head.columns}
        self.spreads: dict[str, list[Spread | None]] = {}
        self.lines: list[str] = []
        self.title = next((x for x, *more in head.above if not more and len(x) <= _TITLE
                           and not _SETTING_LIKE.fullmatch(x)), None)  # fmt: skip
        self.time = "units of time"
        self.stated_error = 0.0
        self.revealed: set[tuple[str, str]] = set()  # boxes and states whose reward was a law
        self._read()
        if not self.numbers:
            raise InvalidFile("a forest needs at least one box, but the table has no rows.")
        self.said = {said.key: said for said in head.settings}
        self.comma = self._commas(options.comma)
        for column in (*NUMBERS, *TEST):
            if column in self.columns:
                self._to_numbers(column)
        for column in RANGED:
            self._join_ends(column)

    def reading(self) -> TableReading:
        """All that the table says."""
        settings, unit = self._settings()
        minimize, outside = settings.pop("minimize", False), settings.pop("outside", None)
        if outside is not None and math.isinf(outside):
            outside = math.inf if minimize else -math.inf
        self._tests()
        self._complete()
        ranges = self._ranges()
        self._reveal()
        if self.stated_error:
            settings["stated_error"] = settings.get("stated_error", 0.0) + self.stated_error
        if not any(x is not None for x in self.columns["reward"]):
            raise InvalidFile(
                f"a table must have a reward, but the column {self.head.titles['reward']!r} is "
                f"blank. Fill it in."
            )
        settings |= {"outside": outside, "minimize": minimize, "unit": unit}
        forest, closed = forest_of_rows(
            self.columns, lambda i: f"row {self.numbers[i]}", **settings
        )
        for r in ranges:
            above = "" if r.given is None else forest.name(forest.parent[forest.box(r.box)])
            if {(r.box, r.state), (above, r.given)} & self.revealed:
                raise InvalidFile(
                    f"the {r.title} cannot have a range, since a reward there is a distribution."
                )
        lines = [*self._told(forest), *self.lines]
        for box, state in closed:
            lines.append(f"{box} cannot be opened after {state}: the table has no rows for it")
        called = {key: str(x.value).strip() for key in Words._fields
                  if (x := self.said.get(f"{key}_word"))}  # fmt: skip
        words = Words(**called)
        return TableReading(forest, ranges, tuple(lines), words, self.title, self.time)

    # -- cells ------------------------------------------------------------------------------------

    def _read(self) -> None:
        """All rows, with blanks filled from above."""
        above: dict[str, Any] = {}
        for row in self.head.rows:
            here = {c: _at(row.cells, i) for c, i in self.head.columns.items()}
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
        last = self.columns["box"][-1:]  # it may add up those above: a box is hardly called so
        if last and str(last[0]).strip(" :").lower() in TOTALS:
            raise InvalidFile(
                f"a row below the heading must describe a box, but row {self.numbers[-1]} "
                f"({last[0]!r}) seems to add up those above. Take the row out, or rename the box."
            )

    def _commas(self, given: Comma | None) -> Comma:
        """What commas mean in this sheet, according to the unambiguous numbers."""
        if given is not None:
            return given
        cells = [(row, x) for column, xs in self.columns.items() for row, x in
                 zip(self.numbers, xs, strict=True) if column.split()[0] in NUMBERS]  # fmt: skip
        cells += [(int(s.where.split()[1].strip(":")), s.value) for s in self.head.settings
                  if s.key in _SETTING and _SETTING[s.key].type in (float, int)]  # fmt: skip
        seen: dict[Comma | str, tuple[int, str]] = {}
        for row, x in cells:
            if not (isinstance(x, str) and ("," in x or "." in x)):
                continue
            for part in typed_parts(x):
                cell = taken_apart(part) if "," in part or "." in part else None
                if cell is not None:
                    mark = "comma" if "," in part else "point"
                    seen.setdefault(cell.comma or mark, (row, x))
        both = [seen.get(Comma.DECIMAL), seen.get(Comma.THOUSANDS)]
        if both[0] and both[1]:
            raise InvalidFile(_TWO_WAYS.format(both[0], both[1]))
        for mark in ("comma", "point"):
            if mark in seen and not both[1] and (mark == "comma" or not both[0]):
                raise InvalidFile(_OPEN.format(*seen[mark], mark))
        return Comma.DECIMAL if both[0] else Comma.THOUSANDS

    def _to_numbers(self, column: str) -> None:
        ends = [f"{column} {end}" for end in _ENDS if f"{column} {end}" in self.columns]
        for name in (column, *ends):
            found = [None if x is None else self._number(x, name, i)
                     for i, x in enumerate(self.columns[name])]  # fmt: skip
            self.columns[name] = found
        if self.head.units.get(column) == "%" or column in TEST:
            every = [x for name in (column, *ends) for x in self.columns[name] if x is not None]
            if any((x.high if isinstance(x, Spread) else x) > 1 for x in every):
                self._multiply(column, 0.01)  # else % is in the cells

    def _multiply(self, column: str, factor: float) -> None:
        """Bring a column into another unit; a hundredth is 1/100, rounded once."""

        def times(x: float | Spread | None) -> float | Spread | None:
            if x is None or factor == 1:
                return x
            if isinstance(x, Spread):
                return x.times(factor)
            return x * factor if factor > 1 else x / (1 / factor)

        for name in (column, *(f"{column} {end}" for end in _ENDS)):
            if name in self.columns:
                self.columns[name] = [times(x) for x in self.columns[name]]
        if column in self.spreads:
            self.spreads[column] = [times(x) for x in self.spreads[column]]  # type: ignore[misc]

    def _number(self, x: Any, column: str, i: int) -> float | Spread:
        def one(text: str) -> float:
            found = typed_number(text, self.comma)
            if found.currency:
                self._currency(column, found.currency, found.scale > 0)
            return found.value

        if isinstance(x, ShownNumber) and x.currency:
            self._currency(column, x.currency, False)
        if isinstance(x, int | float) and not isinstance(x, bool):
            return _as_float(x)
        field = column.partition(" ")[0]
        if isinstance(x, str):
            if field in _MONEY and _FRACTION.fullmatch(x):
                raise InvalidFile(
                    f"row {self.numbers[i]}: {x!r} may be a fraction or a range. Write a number "
                    f"with decimals, or low/base/high."
                )
            with suppress(ValueError):
                return one(x)
            try:
                spread = typed_spread(x, one, self.comma is Comma.DECIMAL)
            except InvalidFile as error:
                raise InvalidFile(f"row {self.numbers[i]}: {error}") from None
            if spread is not None and field in RANGED:
                return spread
        date = " Spreadsheets turn 1/2 into a date: format the cell as text."
        is_date = isinstance(x, datetime.date | datetime.time)
        raise InvalidFile(
            f"the column {self.head.titles[column]!r} must hold numbers, but row "
            f"{self.numbers[i]} (box {self.columns['box'][i]!r}) has {str(x)[:_SHOWN]!r}."
            f"{date if is_date else ''}"
        )

    def _currency(self, column: str, currency: str, scaled: bool) -> None:
        seen = self.currencies.get(column.partition(" ")[0])
        if seen is not None:
            seen[currency] = seen.get(currency, True) and scaled

    def _join_ends(self, column: str) -> None:
        """The columns low and high, and ranges in one cell, as spreads beside the base numbers."""
        if column not in self.columns:
            return
        cells, spreads = self.columns[column], list[Spread | None]()
        ends = [self.columns.pop(f"{column} {end}", [None] * len(cells)) for end in _ENDS]
        for i, (x, low, high, given) in enumerate(zip(cells, *ends, strict=True)):
            if isinstance(x, Spread) and not (column == "reward" and x.family):
                spreads.append(x if x.low < x.high else None)
                cells[i] = x.base
                continue
            base = x.base if isinstance(x, Spread) else x
            if isinstance(given, Spread):
                base = given.base if base is None else base
                if given.family:
                    given = given._replace(base=min(max(base, given.low), given.high))
                else:
                    given = self._spread(column, i, given.low, base, given.high)
            elif given is not None:
                raise InvalidFile(
                    f"a {column} range must be a range such as 80/100/130, but row "
                    f"{self.numbers[i]} has {given:g}."
                )
            elif low is not None or high is not None:
                given = self._spread(column, i, low, base, high)
            # without width, it says that the range of the row above ends
            spreads.append(None if given is not None and given.low == given.high else given)
            if x is None and given is not None:
                cells[i] = given.base
        self.spreads[column] = spreads

    def _spread(self, column: str, i: int, low: Any, base: Any, high: Any) -> Spread:
        if base is None and low is not None and high is not None:
            base = (low + high) / 2
        low, high = (base if x is None else x for x in (low, high))
        three = low, base, high
        if any(isinstance(x, Spread) for x in three) or None in three or not low <= base <= high:
            said = ", ".join(f"{x:g}" if isinstance(x, float) else "no number" for x in three)
            raise InvalidFile(
                f"a range must rise from low to high with the {column} between them, but row "
                f"{self.numbers[i]} has {said}."
            )
        return Spread(low, base, high)

    # -- settings, units and rates -----------------------------------------------------------------

    def _settings(self) -> tuple[dict[str, Any], str]:
        """The settings of the sheet and those given beside it, by name, and the unit."""
        found: dict[str, Any] = {}
        amounts: dict[str, Typed] = {}
        for said in self.said.values():
            field = _SETTING.get(said.key)
            if field is None or said.key in ("unit", "rate"):
                continue
            if field.type not in (float, int):
                found[said.key] = _worded(said, field.type, field.words)
                continue
            amounts[said.key] = self._amount(said)
            x = amounts[said.key].value
            if not math.isfinite(x) and said.key != "outside":
                raise InvalidFile(f"{said.where} must be a finite number.")
            if field.type is int and (x != math.floor(x) or abs(x) > 2**53):
                raise InvalidFile(f"{said.where} must be a whole number, but it is {said.value!r}.")
            found[said.key] = field.type(x)
        unit = self._unit(amounts, found)
        for name in ("outside", "minimize"):
            if (given := getattr(self.options, name)) is not None:
                found[name] = bool(given) if name == "minimize" else given
        if "loss" in self.head.titles["reward"].lower().partition("(")[0]:
            found.setdefault("minimize", True)
        found |= self.options.terms()
        if (rate := self._rate()) is not None:
            found["rate"] = rate
        return found, unit

    def _amount(self, said: Said) -> Typed:
        value = said.value
        if said.key == "outside" and str(value).strip().lower() == "none":
            return Typed(math.inf)
        if isinstance(value, str):
            with suppress(ValueError):
                return typed_number(value, self.comma)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            return Typed(_as_float(value), getattr(value, "currency", ""))
        none = ", or none if something must be taken," if said.key == "outside" else ","
        raise InvalidFile(f"{said.where} must be a number{none} but it is {value!r}.")

    def _unit(self, amounts: Mapping[str, Typed], found: dict[str, Any]) -> str:
        """The unit of the problem; columns and settings in others of its multiples are converted.

        A unit is given by an option, above the heading, in the heading, or by the cells.
        """
        here = self.said.get("unit")
        where = "the unit" if here is None else here.where
        given = self.options.unit
        given = (str(here.value) if here else None) if given is None else given
        given = None if given is None else checked_unit(given, where)
        own = {c: checked_unit(self.head.units[c], "the unit") for c in _MONEY
               if c in self.head.units}  # fmt: skip
        cells = dict.fromkeys(x for seen in self.currencies.values() for x in seen)
        cells |= dict.fromkeys(x.currency for k, x in amounts.items() if x.currency)
        bare = [said.unit for k, said in self.said.items() if k in amounts and said.unit]
        units = dict.fromkeys(own.values() or ([given] if given else cells or bare))
        target = given or (next(iter(units)) if len(units) == 1 else
                           min(units, key=lambda x: _scaled(x)[0], default=""))  # fmt: skip
        wanted = _scaled(target)
        for one in (*units, *cells):
            if _scaled(one)[1] != wanted[1]:
                first, other = sorted((target, one))
                raise InvalidFile(
                    f"rewards and costs must be in one unit, but there are {first!r} and "
                    f"{other!r}. Convert the amounts of one of them."
                )
        for column in _MONEY:
            power, _ = _scaled(own.get(column, target))
            for currency, scaled in self.currencies[column].items():
                size = _scaled(currency)[0]
                if size == power and not (power and scaled):
                    continue
                if power or (size and not scaled):
                    raise InvalidFile(
                        f"the column {self.head.titles[column]!r} is in {own.get(column, target)}, "
                        f"but some of its cells are in {currency}. Write its cells without a "
                        f"currency."
                    )
            self._multiply(column, 10.0 ** (power - wanted[0]))
        several = len({_scaled(x)[0] for x in (*own.values(), target)}) > 1
        for key in ("outside", "risk_tolerance"):
            if key not in amounts or not math.isfinite(amounts[key].value) or not found[key]:
                continue
            bracket = self.said[key].unit
            currency = amounts[key].currency or bracket
            if currency and _scaled(currency)[1] != wanted[1]:
                raise InvalidFile(
                    f"{self.said[key].where} must be in {target}, but it is in {currency}."
                )
            if not currency and several:
                raise InvalidFile(
                    f"{self.said[key].where} must say its unit, since the table has several: "
                    f"write {number(amounts[key].value)} {wanted[1]} or the like."
                )
            power = _scaled(currency)[0] if currency else wanted[0]
            found[key] = amounts[key].value * 10.0 ** (power - wanted[0])
        return target

    def _rate(self) -> float | None:
        """The rate for the unit of time of the durations."""
        said, given = self.said.get("rate"), self.options.rate
        if given is None and said is None:
            return None
        rate, name = self._typed_rate(said if given is None else None, given)
        unit = self.head.units.get("duration", "")
        if not unit and self.head.titles.get("duration", "").strip().lower() in PERIODS:
            unit = self.head.titles["duration"].strip()
        period = PERIODS.get(unit.lower().rstrip("."), "")
        if unit and not period and unit.lower() not in ("time", "periods", "period"):
            raise InvalidFile(
                f"durations must be in years, quarters, months, weeks, days or hours, but those "
                f"of the column {self.head.titles['duration']!r} are in {unit!r}."
            )
        per = rate.per or ("year" if rate.compounded is not None else "")
        if period and not per and rate.continuous:
            sure = name if rate.continuous < 1 else f"{name}%"  # 8 is meant to be 8%
            ways = " or ".join(f"{sure} per {x}" for x in dict.fromkeys(("year", period)))
            raise InvalidFile(
                f"the rate must say its unit of time, since durations are in {period}s, but it is "
                f"{name}. Write {ways}."
            )
        found = rate.continuous
        if period and per:
            found *= PER_YEAR[per] / PER_YEAR[period]
        self.time = f"{period or per}s" if period or per else self.time
        how = "continuous: a factor of exp(-rate · time)"
        if rate.compounded is not None:
            how = f'compounded once a {per}; "continuous rate" is the other convention'
        name += f" per {rate.per}" if rate.per and not re.search("[a-z]", name) else ""
        self.lines.append(
            f"rate: {name}, {how}; "
            f"durations in {self.time if period or per else 'the same unit of time'}"
        )
        return found

    def _typed_rate(self, said: Said | None, given: float | str | None) -> tuple[TypedRate, str]:
        """The rate as it is meant, and as it is written."""
        if said is None:
            shown = given if isinstance(given, str) else f"{given:g}"
            return typed_rate(given if isinstance(given, str) else repr(given)), shown
        value, name = said.value, said.name.lower()
        words = sorted(set(re.split(r"[\W_]+", name)))
        more = [w for w in words if w.startswith("contin") or (w in PERIODS and len(w) > 2)]
        more += ["year"] if re.search(r"\bp\.? ?a\b", name) else []
        compounds = not {"discount", "interest", "annual", "wacc"}.isdisjoint(words)
        text, comma = str(value), self.comma
        shown = text
        if isinstance(value, int | float):  # all digits count, and six are shown
            percent = getattr(value, "percent", False)
            x, comma = float(Decimal(str(float(value))).scaleb(2 * percent)), Comma.THOUSANDS
            text, shown = f"{x!r}{'%' * percent}", f"{number(x)}{'%' * percent}"
        if said.unit == "%" and "%" not in text:
            text, shown = f"{text}%", f"{shown}%"
        try:
            rate = typed_rate(" ".join([text, *more]), comma, compounds)
            mistyped = (rate.compounded or 0) >= 1 and "%" not in text  # 10 is meant to be 10%
            if mistyped or isinstance(value, bool) or not math.isfinite(rate.continuous):
                raise ValueError
        except (ValueError, OverflowError):
            raise InvalidFile(
                f"{said.where} must be a number such as 10% or 0.1, but it is {value!r}."
            ) from None
        return rate, shown

    # -- boxes ------------------------------------------------------------------------------------

    def _complete(self) -> None:
        """The columns that may be left out: all boxes are roots, states are called by reward."""
        n = len(self.numbers)
        for column in ("parent", "parent_state", "reward"):
            self.columns.setdefault(column, [None] * n)
        by_reward = [x.base if isinstance(x, Spread) else x for x in self.columns["reward"]]
        self.columns.setdefault("state", by_reward)
        for column, field in PER_BOX.items():
            if field.type is bool and column in self.columns:
                rows = zip(self.numbers, self.columns[column], strict=True)
                said = [yes_or_no(x, f"row {row}: {column}") for row, x in rows]
                self.columns[column] = said
        for column in TEST:
            self.columns.pop(column, None)

    def _rows_of(self, column: str) -> dict[str, list[int]]:
        """The rows by the name in a column."""
        found: dict[str, list[int]] = {}
        for i, x in enumerate(self.columns.get(column, ())):
            if x is not None:
                found.setdefault(label(x), []).append(i)
        return found

    def _tests(self) -> None:
        """Boxes with a sensitivity and a specificity: the chances of the test and of what it tests.

        The box behind it has two states with their prior chances; the test is positive with the
        chance "sensitivity" if the first of them is true.
        """
        if not any(c in self.columns for c in TEST):
            return
        for column in (*TEST, "parent", "parent_state", "state", "reward"):
            self.columns.setdefault(column, [None] * len(self.numbers))
        for column in TEST:
            if any(isinstance(x, Spread) for x in self.columns[column]):
                raise InvalidFile(f"a {column} must be one number, but there is a range.")
        for box in self._rows_of("box"):
            rows = self._rows_of("box")[box]  # found anew: each test makes more of them
            accuracy = [{self.columns[c][i] for i in rows} for c in TEST]
            if any(x != {None} for x in accuracy):
                self._test(box, rows, *accuracy)

    def _test(self, box: str, rows: list[int], *accuracy: set[Any]) -> None:
        behind: dict[str, list[int]] = {}
        for i in self._rows_of("parent").get(box, ()):
            behind.setdefault(label(self.columns["box"][i]), []).append(i)
        place = f"row {self.numbers[rows[0]]}: the test {box!r}"
        if any(len(x) != 1 or None in x or not 0 <= min(x) <= 1 for x in accuracy):
            raise InvalidFile(
                f"{place} must have one sensitivity and one specificity between 0 and 1."
            )
        if any(self.columns[c][i] is not None for c in ("probability", "state") for i in rows):
            raise InvalidFile(
                f"{place} must have neither states nor chances: they follow from its accuracy."
            )
        tested = next(iter(behind.values()), [])
        if any(self.spreads["probability"][i] for i in tested):
            raise InvalidFile(f"{place} needs chances behind it that are numbers, not ranges.")
        prior = [self.columns["probability"][i] for i in tested]
        given = any(self.columns["parent_state"][i] is not None for i in tested)
        if len(behind) != 1 or len(tested) != 2 or given or None in prior:
            raise InvalidFile(
                f"{place} must have one box behind it, with two states and their chances before "
                f"the test, and without a parent_state."
            )
        (hit,), (true_negative,) = accuracy
        shown = []  # what the test shows, its chance, and that of the first state behind it then
        for state, if_first, if_second in (
            ("positive", hit, 1 - true_negative), ("negative", 1 - hit, true_negative)
        ):  # fmt: skip
            p = if_first * prior[0] + if_second * prior[1]
            shown.append((state, p, if_first * prior[0] / p if p > 0 else prior[0]))
        new = {i: [{"state": s, "probability": p} for s, p, _ in shown] for i in rows}
        for i in tested:
            new[i] = [
                {"parent_state": s, "probability": q if i == tested[0] else 1 - q}
                for s, _, q in shown
            ]
        name, first = self.columns["box"][tested[0]], self.columns["state"][tested[0]]
        self._replace(new)
        self.lines.append(
            f"{box} is positive with chance {percent(shown[0][1])}; {label(first)} of {name} then "
            f"has {percent(shown[0][2])}, and {percent(shown[1][2])} if it is negative (before: "
            f"{percent(prior[0])})"
        )

    def _replace(self, rows: Mapping[int, list[dict[str, Any]]]) -> None:
        """Put several rows in place of some, each with other entries in a few columns."""
        new = [(i, change) for i in range(len(self.numbers)) for change in rows.get(i, [{}])]
        self.columns = {
            column: [change.get(column, cells[i]) for i, change in new]
            for column, cells in self.columns.items()
        }
        self.spreads = {
            column: [None if column in change else cells[i] for i, change in new]
            for column, cells in self.spreads.items()
        }
        self.numbers = [self.numbers[i] for i, _ in new]

    # -- what is not known for sure ----------------------------------------------------------------

    def _ranges(self) -> Ranges:
        """The uncertain numbers, each once."""
        found: list[Range] = []
        for column, spreads in self.spreads.items():
            if not any(spreads):
                continue
            field = PER_BOX[column]
            for box, rows in self._rows_of("box").items():
                after = (self.columns["parent_state"][i] for i in rows)
                given = [None if x is None else label(x) for x in after]
                state: list[str | None] = [label(self.columns["state"][i]) for i in rows]
                here = [spreads[i] for i in rows]
                if field.form == "rewards":
                    given = [None] * len(rows)
                elif field.form == "opening" and len(set(zip(given, here, strict=True))) == len(
                    set(given)
                ):  # alike for all own states, and perhaps for all of the parent
                    state = [None] * len(rows)
                    given = given if len(set(here)) > 1 else state
                keys = zip(given, state, strict=True)
                each = {key: x for key, x in zip(keys, here, strict=True) if x is not None}
                found += [
                    Range(
                        box,
                        column,
                        x.base,
                        x.low,
                        x.high,
                        *key,
                        x.distribution,
                        x.text if x.family else "",
                    )
                    for key, x in each.items()
                ]
        return Ranges(found)

    def _reveal(self) -> None:
        """Make distributions of rewards, which a box reveals, discrete."""
        while True:
            cells = self.columns["reward"]
            at = next((i for i, x in enumerate(cells) if isinstance(x, Spread)), None)
            if at is None:
                return
            box, state, spread = (self.columns[c][at] for c in ("box", "state", "reward"))
            own = [i for i in self._rows_of("box")[label(box)]
                   if label(self.columns["state"][i]) == label(state)]  # fmt: skip
            if any(cells[i] != spread for i in own):
                raise InvalidFile(
                    f"a state has one reward, but row {self.numbers[own[-1]]} gives {box!r} "
                    f"another than row {self.numbers[own[0]]}."
                )
            law = discretize(spread.distribution, _STATES)
            head = f"{label(state)} " if "state" in self.head.columns else ""
            names = [f"{head}{number(x, digits=4)}" for x in law.rewards.tolist()]
            if len(set(names)) < len(names):
                names = [f"{head}{x!r}" for x in law.rewards.tolist()]
            parts = list(zip(names, law.rewards.tolist(), law.probabilities.tolist(), strict=True))
            chance = {i: self.columns["probability"][i] for i in own}
            most = max(p or 0.0 for p in chance.values())
            self.stated_error += law.error * most * self._copies(label(box))
            new: dict[int, list[dict[str, Any]]] = {
                i: [{"state": name, "reward": x, "probability": None if p is None else p * q}
                    for name, x, q in parts]
                for i, p in chance.items()
            }  # fmt: skip
            follow = self._rows_of("parent").get(label(box), ())  # what follows is the same
            new |= {i: [{"parent_state": name} for name in names] for i in follow
                    if label(self.columns["parent_state"][i]) == label(state)}  # fmt: skip
            self._replace(new)
            self.revealed.add((label(box), label(state)))
            self.lines.append(
                f"the reward of {box}{f' ({label(state)})' if head else ''} is a distribution, "
                f"made into {len(parts)} states; the value is off by at most {law.error:.2g} for it"
            )

    def _copies(self, box: str) -> float:
        """How many copies of a box there are, those of the boxes above it counted."""
        rows, copies, counts = self._rows_of("box"), 1.0, self.columns.get("count")
        for _ in range(len(rows)):  # cycles are reported later
            if box not in rows:
                break
            first = rows[box][0]
            copies *= (counts[first] if counts else None) or 1
            up = self.columns["parent"][first]
            if up is None:
                break
            box = label(up)
        return copies

    # -- for people --------------------------------------------------------------------------------

    def _told(self, forest: Forest) -> Iterator[str]:
        """How the sheet was read."""
        head = self.head
        read = [title if title.strip().lower() == key else f"{title} ({key})"
                for key, title in head.titles.items()]  # fmt: skip
        above = [" ".join(x)[:60] for x in head.above if x != [self.title]]
        for what, some in (("title", [self.title] if self.title else []), ("columns", read),
                           ("columns not read", head.ignored),
                           ("rows above the heading not read", above)):  # fmt: skip
            if some:
                yield f"{what}: {', '.join(some)}"
        yield f"unit: {forest.unit or 'none is given'}"
        outside = "none, something must be taken"
        if math.isfinite(forest.outside):
            given = "outside" in self.said or self.options.outside is not None
            each = f" for each of the {forest.prizes} prizes" if forest.prizes > 1 else ""
            outside = f"{forest.amounts(forest.outside)}{each}{'' if given else ' (not given)'}"
        yield f"outside option: {outside}"
        if forest.minimize:
            yield "objective: minimize, rewards are losses"
        for one in _SETTING.values():
            if one.headings[0] not in _TOLD and (x := one.given(forest)) is not None:
                yield f"{one.headings[0]}: {one.shown(x)}"
        free = set(forest.groups or ()) - {group for group, _ in forest.quotas} - {""}
        if forest.quotas and free:
            yield f"groups without a quota: {', '.join(sorted(free))}"
        if self.said.get("rate") and "duration" not in head.columns:
            yield "the rate is not used: there is no column of durations"


def _at(cells: list[Any], i: int) -> Any:
    x = cells[i] if i < len(cells) else None
    if isinstance(x, NoValue):
        raise InvalidFile(x.why)
    return None if x == "" else x


def _as_float(x: float) -> float:
    return math.inf if abs(x) >= 1e308 else float(x)  # perhaps a whole number of 400 digits


def _worded(said: Said, kind: type, words: Mapping[Any, str]) -> Any:
    """A setting that is no number: one of a few words, yes or no, names with numbers, a text."""
    text = str(said.value).strip()
    if kind is dict:
        return _pairs(said, text)
    if not words:
        return yes_or_no(said.value, said.where) if kind is bool else text
    word = text.lower().replace("ise", "ize")
    for value, name in words.items():
        if len(word) > 2 and name.startswith(word):
            return value
    if said.name.strip(" :").lower() in (*words.values(), "minimise", "maximise"):
        return yes_or_no(said.value, said.where)
    raise InvalidFile(
        f"{said.where} must be {' or '.join(sorted(words.values()))}, but it is {text!r}."
    )


def _pairs(said: Said, text: str) -> dict[str, int]:
    """ "engineer 2, designer 1", or the same as a JSON object."""
    try:
        found = json.loads(text)
        if not isinstance(found, dict):
            raise ValueError
    except (ValueError, RecursionError):
        parts = [re.fullmatch(r"\s*(.*?)[\s:=]+(\d{1,9})\s*", x) for x in re.split("[;,]", text)]
        if not all(parts):
            raise InvalidFile(
                f"{said.where} must be names with numbers such as engineer 2, designer 1, but it "
                f"is {text[:_SHOWN]!r}."
            ) from None
        found = {x[1]: int(x[2]) for x in parts if x is not None}
    return found


def checked_unit(unit: str, where: str) -> str:
    """A unit in a few printable characters."""
    unit = unit.strip()
    if len(unit) > MAX_UNIT or not unit.isprintable():
        raise InvalidFile(
            f"{where} must be a unit of at most {MAX_UNIT} characters, but it is {unit[:40]!r}."
        )
    return unit


def _scaled(unit: str) -> tuple[int, str]:
    """A unit of money as a power of ten and a currency: "k€" is (3, "EUR")."""
    money = re.search(r"(?<![A-Za-z])[A-Z]{3}(?![A-Za-z])|US\$", unit)
    signs = [c for c in unit if is_currency_sign(c)]
    if money is None and len(signs) != 1:
        return 0, unit
    currency = money[0] if money else signs[0]
    rest = re.sub(r"\bin\b|[\s.']", "", unit.replace(currency, "", 1).lower())
    if rest and rest not in _SCALES:
        return 0, unit
    return _SCALES.get(rest, 0), _CODES.get(currency, currency)


_TWO_WAYS = (
    "all numbers must be written in one way, but row {0[0]} has {0[1]!r}, with a decimal comma, "
    "and row {1[0]} has {1[1]!r}, with a decimal point. Write them in one way."
)
_OPEN = (
    "row {0} has {1!r}, which may be a number of four or more digits or one with a decimal {2}, "
    "and the other numbers of the sheet leave that open. Write it without the {2}, or say "
    "--decimal point or --decimal comma."
)
