"""A long table read into boxes, with all checks that need the table itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from .._common.arrays import FloatArray
from .._common.numbers import such
from ..errors import InvalidForest
from ..forest.columns import label, short
from ..forest.fields import MAX_COUNT, Field
from ..forest.forms import ANY, BoxOutcomes, Source, WrittenBox, assembled, check_dense
from ..forest.model import BY_BOX, Forest
from ..forest.rules import SUM_TOLERANCE, like

COLUMNS = ("box", "parent", "parent_state", "state", "reward", "probability", "cost")


def forest_of_rows(
    table: Mapping[str, list[Any]], place: Callable[[int], str], /, **settings: Any
) -> tuple[Forest, list[tuple[str, str]]]:
    """The forest that the rows of a table describe, and what is closed in it.

    ``table`` has columns by name, None where a cell is empty; ``place`` says where a row stands.
    Boxes come in order of appearance, those called 0 to n - 1 in that order. Rows of probability 0
    may be left out. The pairs that are returned are boxes and states of their parent, by name,
    after which they cannot be opened, since the table has no rows for it.
    """
    missing = [c for c in COLUMNS if c not in table]
    if missing:
        others = [str(c) for c in table if c not in COLUMNS]
        hint = like(missing[0], others).replace("did you mean", "is it")
        raise InvalidForest(
            f"the table must have the columns {', '.join(COLUMNS)}, but {missing[0]!r} is missing "
            f"({such(len(missing), 'column')}{hint})."
        )
    return _Rows(table, place).forest(settings)


class _Rows:
    """The rows of a table, by box and by state."""

    box: list[Any]  # names by row, None where there is none
    above: list[Any]
    given: list[Any]
    own: list[Any]

    def __init__(self, table: Mapping[str, list[Any]], place: Callable[[int], str]) -> None:
        self.table, self.place = table, place
        names = ("box", "parent", "parent_state", "state")
        self.box, self.above, self.given, self.own = (
            [x if x is None or type(x) is str else label(x) for x in table[c]] for c in names
        )
        if not self.box:
            raise InvalidForest("a forest needs at least one box, but the table has no rows.")
        bare = [i for i, x in enumerate(self.box) if x is None]
        self._refuse(bare, "every row must name its box", lambda _: "has no name")
        found: dict[Any, list[int]] = {}
        for i, name in enumerate(self.box):
            found.setdefault(name, []).append(i)
        plain = found.keys() == set(digits(len(found)))
        self.rows_of = {name: found[name] for name in digits(len(found))} if plain else found
        self.parent = {name: self.above[rows[0]] for name, rows in found.items()}
        self.states: dict[str, dict[Any, None]] = {
            name: dict.fromkeys([self.own[i] for i in rows]) for name, rows in found.items()
        }
        self._check_names()

    def forest(self, settings: Mapping[str, Any]) -> tuple[Forest, list[tuple[str, str]]]:
        """The forest, and what is closed."""
        p = self._numbers("probability")
        self._check_laws(p)
        reward = self._rewards()
        there = {f: f.headings[0] for f in BY_BOX if f.headings[0] in self.table}
        openings = {f: self._numbers(column, needed=p > 0).tolist()
                    for f, column in there.items() if f.form == "opening"}  # fmt: skip
        entries = {f.name: self._entry(f) for f in there if f.form == "entry"}
        number: dict[str | None, int] = {name: v for v, name in enumerate(self.rows_of)}
        chance, boxes, closed = p.tolist(), list[WrittenBox](), list[tuple[str, str]]()
        for name, rows in self.rows_of.items():
            place = {state: j for j, state in enumerate(self.states[name])}
            up = self.parent[name]
            laws: dict[str | None, FloatArray] = {}
            for i in rows:
                after = ANY if up is None else self.given[i]
                laws.setdefault(after, np.zeros(len(place)))[place[self.own[i]]] = chance[i]
            closed += [(name, s) for s in self.states[up] if s not in laws] if up else []
            rewards = [reward[name, state] for state in place]
            titles = None if tuple(place) == digits(len(place)) else tuple(place)
            said = {f.name: self._opening(f, rows, up, cost) for f, cost in openings.items()}
            said |= {x: each[rows[0]] for x, each in entries.items()}
            source = Source(lambda what, name=name: f"the {what} of box {name!r}")  # type: ignore[misc]
            boxes.append(WrittenBox(source, BoxOutcomes(titles, rewards, rows=laws), said))
        parent = [number.get(self.parent[name], -1) for name in self.rows_of]
        names = None if tuple(number) == digits(len(number)) else list(self.rows_of)
        return assembled(boxes, parent, names, settings), closed

    def _opening(self, field: Field, rows: list[int], up: str | None, each: list[float]) -> Any:
        """A cost and the like in the shortest form: a number, or by states."""
        if len({each[i] for i in rows}) == 1 and each[rows[0]] == each[rows[0]]:
            return each[rows[0]]
        by: dict[str | None, dict[str, float]] = {}
        for i in rows:
            if not math.isnan(each[i]):
                by.setdefault(self.given[i] if up else ANY, {})[self.own[i]] = each[i]
        values = {after: set(row.values()) for after, row in by.items()}
        if any(len(found) > 1 for found in values.values()):
            return by if up else by[ANY]
        if len(set().union(*values.values())) > 1:
            return {after: x for after, (x,) in values.items()}
        return next((x for (x,) in values.values()), field.default)

    def _rewards(self) -> dict[tuple[str, str], float | None]:
        """The reward of every state of every box."""
        found: dict[tuple[str, str], float | None] = {}
        each = self._numbers("reward", needed=False).tolist()
        amounts = [None if math.isnan(x) else x for x in each]
        odd = [i for i, key in enumerate(zip(self.box, self.own, strict=True))
               if found.setdefault(key, amounts[i]) != amounts[i]]  # fmt: skip
        self._refuse(odd, "a state has one reward", lambda _: "gives another than a row before it",
                     "Make two states of it.")  # fmt: skip
        return found

    def _entry(self, field: Field) -> list[Any]:
        """One value for each row, its default where the table does not say."""
        name = field.headings[0]
        said = [field.default if x is None else x for x in self.table[name]]
        if field.type is bool:
            odd = [i for i, x in enumerate(said) if x not in (True, False)]
            self._refuse(odd, f"{name!r} must be True or False", lambda _: "has something else")
        elif field.type is str:
            said = [label(x) for x in said]
        else:
            each = self._numbers(name, given=said)
            if field.type is int:
                wrong = np.flatnonzero((each != np.floor(each)) | (np.abs(each) > MAX_COUNT))
                rule = f"a {name} must be a whole number of at most {MAX_COUNT}"
                self._refuse(wrong, rule, lambda i: f"has {each[i]:.17g}")
            said = [field.type(x) for x in each.tolist()]
        first = {name: said[rows[0]] for name, rows in self.rows_of.items()}
        odd = [i for i, x in enumerate(said) if x != first[self.box[i]]]
        self._refuse(odd, f"a box has one {name}", lambda _: "has another than its first row")
        return said

    # -- checks ---------------------------------------------------------------------------------

    def _check_names(self) -> None:
        up, each = self.parent, list(zip(self.above, self.given, strict=True))
        self._refuse(
            [i for i, (a, _) in enumerate(each) if a is not None and a not in up],
            "a parent must be a box of the table",
            lambda i: f"has {self.above[i]!r}, which is not a box{like(self.above[i], list(up))}",
            "Add its rows, or leave the parent of a root empty.",
        )
        for odd, rule, fault, advice in (
            ([i for i, (a, _) in enumerate(each) if a != up[self.box[i]]],
             "a box has one parent", "has another than the first", ""),
            ([i for i, x in enumerate(self.own) if x is None], "every row must have a state",
             "has none", "Name it, or take the row out if it describes no box."),
            ([i for i, (a, s) in enumerate(each) if a is None and s is not None],
             "a root has no parent_state", "has one", "Leave it empty, or name the parent."),
            ([i for i, (a, s) in enumerate(each) if a is not None and s is None],
             "a box with a parent needs a parent_state", "has none",
             "Fill in what the parent showed."),
        ):  # fmt: skip
            self._refuse(odd, rule, lambda _, fault=fault: fault, advice)  # type: ignore[misc]
        self._refuse(
            [i for i, (a, s) in enumerate(each) if a is not None and s not in self.states[a]],
            "a parent_state must be a state of the parent",
            lambda i: f"has {self.given[i]!r}, a state that {self.above[i]!r} does not have"
                      f"{like(self.given[i], list(self.states[self.above[i]]))}",
            "Correct the name, or give the parent a row with it, of probability 0 if need be.",
        )  # fmt: skip

    def _check_laws(self, p: FloatArray) -> None:
        """The rows that belong together, by the numbers that the user sees."""
        size = {name: len(states) for name, states in self.states.items()}
        entries = sum(
            k * (1 if (up := self.parent[x]) is None else size[up]) for x, k in size.items()
        )
        check_dense(entries - 8 * len(self.box), "the table")
        seen, groups, again = set(), dict[tuple[str, str | None], list[int]](), []
        for i, name in enumerate(self.box):
            key = name, self.given[i]
            if (one := (*key, self.own[i])) in seen:
                again.append(i)
            seen.add(one)
            groups.setdefault(key, []).append(i)
        rule = "a state of a box may have one row after each state of the parent"
        self._refuse(again, rule, lambda _: "repeats one")
        self._refuse(
            np.flatnonzero((p < 0) | (p > 1)),
            "probabilities must lie between 0 and 1",
            lambda i: f"has {p[i]:.12g}",
            "Write forty percent as 0.4 or 40%.",
        )
        chance = p.tolist()
        mass = {key: sum([chance[i] for i in rows]) for key, rows in groups.items()}
        bad = [key for key, x in mass.items() if abs(x - 1) > SUM_TOLERANCE]
        if bad:
            (name, shown), rows = bad[0], groups[bad[0]]
            after = "" if shown is None else f" after {self.parent[name]!r} shows {shown!r}"
            where, last = self.place(rows[0]), self.place(rows[-1]).removeprefix("row ")
            if len(rows) > 1:
                where = f"{where.replace('row ', 'rows ')} to {last}"
            raise InvalidForest(
                f"probabilities must sum to 1, but those of box {name!r}{after} sum to "
                f"{mass[bad[0]]:.12g} ({where}; {such(len(bad), 'group of rows')}). Correct one "
                f"of them, or give the missing chance a state of its own."
            )

    def _numbers(
        self, column: str, needed: Any = True, given: list[Any] | None = None
    ) -> FloatArray:
        """A column of numbers; NaN where one is missing and not needed."""
        cells = self.table[column] if given is None else given
        try:
            found = np.array(cells, np.float64)
        except (TypeError, ValueError, OverflowError):
            found = np.array([_as_number(x) for x in cells])
        bad = np.isnan(found)
        if bad.any():
            bad &= needed | np.array([x is not None for x in cells])
        self._refuse(
            np.flatnonzero(bad), f"the column {column!r} must hold numbers",
            lambda i: "has none" if cells[i] is None else f"has {short(cells[i])}",
        )  # fmt: skip
        return found

    def _refuse(
        self, rows: Iterable[int], rule: str, fault: Callable[[int], str], advice: str = ""
    ) -> None:
        odd = list(rows)
        if odd:
            i = int(odd[0])
            box = "" if self.box[i] is None else f" (box {self.box[i]!r})"
            raise InvalidForest(
                f"{rule}, but {self.place(i)}{box} {fault(i)} "
                f"({such(len(odd), 'row')}). {advice}".rstrip()
            )


def _as_number(x: Any) -> float:
    try:
        return math.nan if x is None else float(x)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def digits(n: int) -> tuple[str, ...]:
    """The names that boxes and states have when none are given."""
    return tuple(map(str, range(n)))
