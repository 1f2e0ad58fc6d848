"""A long table read into numbers, with all checks that need the table itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._common.numbers import such
from ..errors import InvalidForest
from ..forest.columns import default_outside, label, short
from ..forest.fields import Field, beside
from ..forest.forms import CLOSED, check_dense
from ..forest.model import FIELDS, Forest
from ..forest.pools import Pool, intern_pool, starts
from ..forest.rules import MAX_COUNT, SUM_TOLERANCE, check_time_given, like

COLUMNS = ("box", "parent", "parent_state", "state", "reward", "probability", "cost")


class Rows:
    """The rows of a table.

    Attributes
    ----------
    names : list of str
        By box, in order of appearance; boxes called 0 to n - 1 come in that order.
    parent, size : IntArray
        By box: its parent, and how many own states it has.
    box, given, own : IntArray
        By row: the box, and the numbers of its parent's state and of its own state.
    slot : IntArray
        By row: its own state among those of all boxes, which are numbered box by box in order of
        appearance. Those of box v start at ``start[v]``; ``state_name`` numbers their names.
    """

    names: list[str]
    parent: IntArray
    size: IntArray
    box: IntArray
    given: IntArray
    own: IntArray
    slot: IntArray
    start: IntArray
    state_name: IntArray

    def __init__(self, table: Mapping[str, list[Any]], place: Callable[[int], str]) -> None:
        """Columns by name, None where a cell is empty; ``place`` says where a row stands."""
        self._table, self._place = table, place
        self._check_columns()
        self._read_boxes()
        self._read_states()
        self.closed = self._close()
        self._probability = self._numbers("probability")

    @property
    def columns(self) -> Collection[str]:
        """The columns of the table."""
        return self._table.keys()

    # -- what a forest needs -------------------------------------------------------------------

    def laws(self) -> Pool:
        """One law per box; missing rows have probability 0."""
        shape = np.column_stack([self._above, self.size])
        at = starts(shape)
        check_dense(int(at[-1]) - 8 * len(self.box), "the table")
        place = at[self.box] + self.given * self.size[self.box] + self.own
        again = _first(place, int(at[-1]))[place] < np.arange(len(place))
        self._refuse(
            again, "a state of a box may have one row after each state of the parent", "repeats one"
        )
        self._check_sums()
        data = np.zeros(int(at[-1]))
        data[place] = self._probability
        return Pool(data, at, shape)

    def _close(self) -> list[tuple[str, str]]:
        """Add a state to boxes that lack rows after a state of the parent: they cannot be opened.

        In the state :data:`CLOSED` nothing was paid and nothing can be taken, also below the box.
        Returns the boxes and the states of their parents, by name.
        """
        lost = self._lost()
        if not len(lost):
            return []
        v = np.searchsorted(self._law_row, lost, side="right") - 1
        hit, up = np.zeros(len(self.names), bool), self.parent
        hit[v] = True
        for _ in range(len(self.names).bit_length() + 1):  # each round looks twice as far up
            hit, up = hit | (hit[up] & (up >= 0)), np.where(up >= 0, up[up], -1)
        closed = [(self.names[b], self.labels(int(self.parent[b]))[r - self._law_row[b]])
                  for b, r in zip(v.tolist(), lost.tolist(), strict=True)]  # fmt: skip
        below = np.flatnonzero(hit & (self.parent >= 0) & hit[self.parent])
        name = CLOSED
        while name in self._state_names:
            name = f"({name})"
        more = closed + [(self.names[b], name) for b in below.tolist()]
        first = _first(self.box, len(self.names))
        number = {box: i for i, box in enumerate(self.names)}
        rows = [int(first[number[box]]) for box, _ in more]
        said = {"parent_state": [state for _, state in more], "state": [name] * len(more)}
        zero = [0.0] * len(more)
        said |= {"reward": [None] * len(more), "probability": [1.0] * len(more), "cost": zero}
        said |= {f.headings[0]: [f.default] * len(more) for f in FIELDS if f.form == "opening"}
        self._table = {
            column: [*cells, *said.get(column, [cells[i] for i in rows])]
            for column, cells in self._table.items()
        }
        place = self._place
        self._place = lambda i: place(i) if i < len(self.box) - len(more) else "a row left out"
        self._read_boxes()
        self._read_states()
        self._lost()
        return closed

    def _lost(self) -> IntArray:
        """Rows of laws that the table does not have, counted over all boxes."""
        self._above = np.where(self.parent < 0, 1, self.size[self.parent])
        self._law_row = np.cumsum(self._above) - self._above
        seen = np.bincount(self._law_row[self.box] + self.given, minlength=int(self._above.sum()))
        return np.flatnonzero(seen == 0)

    def _check_sums(self) -> None:
        """The rows that belong together, by the numbers that the user sees."""
        law, p = self._law_row[self.box] + self.given, self._probability
        wrong = (p < 0) | (p > 1)
        first = f"{p[np.argmax(wrong)]:.12g}"
        self._refuse(wrong, "probabilities must lie between 0 and 1", f"has {first}",
                     "Write forty percent as 0.4 or 40%.")  # fmt: skip
        mass = np.bincount(law, weights=p, minlength=int(self._above.sum()))
        bad = np.flatnonzero(np.abs(mass - 1) > SUM_TOLERANCE)
        if not len(bad):
            return
        rows = np.flatnonzero(law == bad[0]).tolist()
        v = int(self.box[rows[0]])
        up = int(self.parent[v])
        after = ""
        if up >= 0:
            shown = self.labels(up)[int(self.given[rows[0]])]
            after = f" after {self.names[up]!r} shows {shown!r}"
        first, last = self._place(rows[0]), self._place(rows[-1]).removeprefix("row ")
        where = first if len(rows) == 1 else f"{first.replace('row ', 'rows ')} to {last}"
        raise InvalidForest(
            f"probabilities must sum to 1, but those of box {self.names[v]!r}{after} sum to "
            f"{mass[bad[0]]:.12g} ({where}; {such(len(bad), 'group of rows')}). Correct one of "
            f"them, or give the missing chance a state of its own."
        )

    def opening(self, field: Field) -> Pool:
        """A cost and the like of each box: a number, one per parent's state, or a matrix."""
        cost = self._numbers(field.headings[0], needed=self._probability > 0)
        real = ~np.isnan(cost)
        box, given, own, cost = self.box[real], self.given[real], self.own[real], cost[real]
        by_own = _varies(self._law_row[box] + given, cost, int(self._above.sum()))
        random = np.logical_or.reduceat(by_own, self._law_row)
        rows = np.where(_varies(box, cost, len(self.size)), self._above, 1)
        cols = np.where(random, self.size, 1)
        shape = np.column_stack([rows, cols])
        at = starts(shape)
        data = np.full(int(at[-1]), field.default)
        row, col = np.where(rows[box] > 1, given, 0), np.where(cols[box] > 1, own, 0)
        data[at[box] + row * cols[box] + col] = cost
        return Pool(data, at, shape)

    def rewards(self, no_reward: float) -> FloatArray:
        """The reward of every own state of every box."""
        reward = self._numbers("reward", needed=np.zeros(len(self.box), bool))
        reward[np.isnan(reward)] = no_reward
        out = reward[_first(self.slot, len(self.state_name))]
        self._refuse(reward != out[self.slot], "a state has one reward",
                     "gives another than a row before it", "Make two states of it.")  # fmt: skip
        return out

    def entry(self, field: Field) -> Any:
        """One value for each box, its default where the table does not say."""
        name = field.headings[0]
        said = [field.default if x is None else x for x in self._table[name]]
        if field.type is bool:
            known = np.array([x in (True, False) for x in said])
            self._refuse(~known, f"{name!r} must be True or False", "has something else")
            code, each = np.array(said).astype(np.int64), [False, True]
        elif field.type is str:
            code, found = factorized(map(label, said))
            each = found
        else:
            number = self._numbers(name, given=said)
            if field.type is int:
                self._refuse(number != np.floor(number), f"a {name} must be a whole number",
                             "has another")  # fmt: skip
                self._refuse(np.abs(number) > MAX_COUNT, f"a {name} must be at most {MAX_COUNT}",
                             "has another")  # fmt: skip
            code, each = factorized(map(field.type, number.tolist()))
        first = _first(self.box, len(self.names))
        self._refuse(code != code[first][self.box], f"a box has one {name}",
                     "has another than its first row")  # fmt: skip
        return [each[i] for i in code[first].tolist()]

    def labels(self, box: int) -> tuple[str, ...]:
        """Names of the states of a box."""
        here = self.state_name[self.start[box] : self.start[box + 1]]
        return tuple(self._state_names[i] for i in here)

    # -- reading -------------------------------------------------------------------------------

    def _check_columns(self) -> None:
        missing = [c for c in COLUMNS if c not in self._table]
        if missing:
            others = [str(c) for c in self._table if c not in COLUMNS]
            hint = like(missing[0], others).replace("did you mean", "is it")
            raise InvalidForest(
                f"the table must have the columns {', '.join(COLUMNS)}, but {missing[0]!r} is "
                f"missing ({such(len(missing), 'column')}{hint})."
            )
        if not self._table["box"]:
            raise InvalidForest("a forest needs at least one box, but the table has no rows.")

    def _read_boxes(self) -> None:
        (box, above), known = self._codes("box", "parent")
        if (box < 0).any():
            raise InvalidForest(
                f"every row must name its box, but {self._place(int(np.argmax(box < 0)))} does not "
                f"({such((box < 0).sum(), 'row')})."
            )
        n = int(box.max()) + 1  # boxes were named first
        names = known[:n]
        if set(names) == set(map(str, range(n))):
            number = np.array([*map(int, names), *range(n, len(known) + 1)])  # -1 stays out
            box, above, names = number[box], np.where(above < 0, -1, number[above]), list(digits(n))
        self.box, self.names = box, names
        if (above >= n).any():
            lost = known[above[np.argmax(above >= n)]]
            self._refuse(
                above >= n,
                "a parent must be a box of the table",
                f"has {lost!r}, which is not a box{like(lost, names)}",
                "Add its rows, or leave the parent of a root empty.",
            )
        self.parent = above[_first(box, n)]
        self._refuse(
            above != self.parent[box], "a box has one parent", "has another than the first"
        )

    def _read_states(self) -> None:
        (state, after), self._state_names = self._codes("state", "parent_state")
        self._refuse(state < 0, "every row must have a state", "has none",
                     "Name it, or take the row out if it describes no box.")  # fmt: skip
        k, box, n = len(self._state_names), self.box, len(self.names)
        code, kinds = factorized((box * k + state).tolist())
        found = np.array(kinds, np.int64)
        by = np.argsort(found // k, kind="stable")
        slot = np.empty_like(by)
        slot[by] = np.arange(len(by))
        self.size = np.bincount(found // k, minlength=n)
        self.start = np.concatenate([[0], np.cumsum(self.size)])
        self.state_name = found[by] % k
        self.slot = slot[code]
        self.own = self.slot - self.start[box]
        up = self.parent[box]
        self._refuse((up < 0) & (after >= 0), "a root has no parent_state", "has one",
                     "Leave it empty, or name the parent.")  # fmt: skip
        self._refuse((up >= 0) & (after < 0), "a box with a parent needs a parent_state",
                     "has none", "Fill in what the parent showed.")  # fmt: skip
        wanted = np.where(up < 0, found[0], up * k + after)
        rank = np.argsort(found)
        at = rank[np.minimum(np.searchsorted(found, wanted, sorter=rank), len(found) - 1)]
        lost = int(np.argmax(found[at] != wanted))
        self._refuse(
            found[at] != wanted,
            "a parent_state must be a state of the parent",
            f"has {self._state_names[after[lost]]!r}, a state that {self.names[up[lost]]!r} does "
            f"not have{self._meant(after[lost], up[lost])}",
            "Correct the name, or give the parent a row with it, of probability 0 if need be.",
        )
        self.given = np.where(up < 0, 0, slot[at] - self.start[np.maximum(up, 0)])

    def _meant(self, name: int, box: int) -> str:
        """A state of the box with a similar name."""
        return like(self._state_names[name], list(self.labels(int(box))) if box >= 0 else [])

    def _codes(self, *columns: str) -> tuple[list[IntArray], list[str]]:
        """Columns of names as numbers in order of appearance (-1: missing), and the names."""
        known: dict[str, int] = {}
        codes = []
        for column in columns:
            code, found = factorized(self._table[column])
            number = [known.setdefault(label(x), len(known)) for x in found]
            codes.append(np.array([*number, -1], np.int64)[code])
        return codes, list(known)

    def _numbers(
        self, column: str, needed: Any = True, given: list[Any] | None = None
    ) -> FloatArray:
        """A column of numbers; NaN where one is missing and not needed."""
        given = self._table[column] if given is None else given
        number = _as_numbers(given)
        bad = np.isnan(number) & (needed | np.array([x is not None for x in given]))
        first = given[int(np.argmax(bad))]
        fault = "has none" if first is None else f"has {short(first)}"
        self._refuse(bad, f"the column {column!r} must hold numbers", fault)
        return number

    def _refuse(self, bad: Any, rule: str, fault: str, advice: str = "") -> None:
        if bad.any():
            row = int(np.argmax(bad))
            raise InvalidForest(
                f"{rule}, but {self._place(row)} (box {self.names[self.box[row]]!r}) {fault} "
                f"({such(bad.sum(), 'row')}). {advice}".rstrip()
            )


def forest_of_rows(
    rows: Rows, *, outside: float | None, minimize: bool, terms: Mapping[str, Any]
) -> Forest:
    """The forest that the rows of a table describe, with the settings given beside them."""
    there = {f.headings[0]: f for f in FIELDS if f.headings[0] in rows.columns}
    check_time_given(dict.fromkeys(there, True) | dict(terms))
    laws, law, _ = intern_pool(rows.laws())
    openings = {f: intern_pool(rows.opening(f))[:2] for f in there.values() if f.form == "opening"}
    shape = np.column_stack([np.ones_like(rows.size), rows.size])
    _, tag, _ = intern_pool(Pool(rows.state_name.astype(np.float64), rows.start, shape))
    values = rows.rewards(np.inf if minimize else -np.inf)
    rewards, reward, first = intern_pool(Pool(values, rows.start, shape), tag)
    names, states = tuple(rows.names), (rows.labels(int(v)) for v in first)
    entries: dict[str, Any] = {f.stored: rows.entry(f) for f in there.values() if f.form == "entry"}
    return Forest(
        parent=rows.parent,
        law=law,
        reward=reward,
        laws=laws,
        rewards=rewards,
        outside=default_outside(outside, minimize),
        minimize=minimize,
        **entries,
        **beside(openings),
        **terms,
        names=None if names == digits(len(names)) else names,
        state_names=tuple(None if s == digits(len(s)) else s for s in states),
    )


def factorized(values: Iterable[Any]) -> tuple[IntArray, list[Any]]:
    """Numbers of values in order of appearance (-1: None), and the values."""
    known: dict[Any, int] = {}
    code = [-1 if x is None else known.setdefault(x, len(known)) for x in values]
    return np.array(code, np.int64), list(known)


def _as_numbers(column: list[Any]) -> FloatArray:
    """Floats; NaN for entries that are not numbers or do not fit a float."""
    try:
        return np.array(column, np.float64)
    except (TypeError, ValueError, OverflowError):
        return np.array([_as_number(x) for x in column])


def _as_number(x: Any) -> float:
    try:
        return math.nan if x is None else float(x)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def digits(n: int) -> tuple[str, ...]:
    """The names that boxes and states have when none are given."""
    return tuple(map(str, range(n)))


def _first(code: IntArray, n: int) -> IntArray:
    """The first row that has each code."""
    first = np.full(n, len(code), np.int64)
    first[code[::-1]] = np.arange(len(code))[::-1]
    return first


def _varies(code: IntArray, value: FloatArray, n: int) -> Any:
    """Whether the values of each code differ."""
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(low, code, value)
    np.maximum.at(high, code, value)
    return high > low
