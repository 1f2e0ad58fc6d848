"""The rules that every forest keeps, one small function each.

Each message states the rule, names the first offender, says how many there are and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray, frozen
from .._common.numbers import counted, such
from .._kernels.structure import postorder
from ..errors import InvalidForest
from .pools import Pool

if TYPE_CHECKING:
    from .model import Forest

SUM_TOLERANCE = 1e-9
MAX_COUNT = 2**53 - 1  # the last number up to which floats are exact
MAX_AMOUNT = 1e300  # of rewards and costs: sums of many stay finite
MAX_OUTSIDE = 1e306  # of the outside option, which may be far from all rewards

ROUNDING = 2.0**-52  # of a sum, for each entry
MAX_UNIT = 12  # characters of a unit


def check(forest: Forest) -> FloatArray:
    """Raise :class:`InvalidForest` for the first rule that is broken; the sums of rows of laws."""
    _check_size(forest)
    _check_names(forest)
    check_parent(forest.parent, forest.name)
    _check_count(forest)
    _check_outside(forest)
    _check_unit(forest)
    _check_shapes(forest)
    _check_endless(forest)
    mass = _check_laws(forest)
    _check_rewards(forest)
    _check_costs(forest)
    _check_amounts(forest)
    return mass


def like(wanted: object, names: Sequence[str] | None) -> str:
    if names is None or not isinstance(wanted, str):
        return ""
    close = closest(wanted, names[:10_000])
    return "" if close is None else f"; did you mean {close!r}?"


def closest(wanted: str, names: Sequence[str]) -> str | None:
    """The name that was perhaps meant: the same but for capitals, or one that is spelled alike."""
    same = [name for name in names if name.casefold() == wanted.casefold()]
    found = same or difflib.get_close_matches(wanted, names, 1)
    return found[0] if found else None


def _first(forest: Forest, column: IntArray, row: int) -> tuple[int, str]:
    """The first box that uses a row of a pool, for messages."""
    box = int(np.flatnonzero(column == row)[0]) if (column == row).any() else -1
    return box, repr(forest.name(box)) if box >= 0 else "(unused)"


def _place(f: Forest, pool: Pool, column: IntArray, wrong: BoolArray) -> tuple[int, int, str]:
    """The first wrong entry of a pool, its matrix, and the first box that uses that."""
    i = int(np.flatnonzero(wrong)[0])
    m = int(np.searchsorted(pool.start, i, side="right")) - 1
    return i, m, _first(f, column, m)[1]


def _check_size(f: Forest) -> None:
    n = len(f.parent)
    if n == 0:
        raise InvalidForest("a forest needs at least one box, but there is none. Add a root.")
    for name in ("law", "reward", "cost", "count", "endless"):
        if getattr(f, name).shape != (n,):
            raise InvalidForest(
                f"`{name}` must have one entry per box, but has shape {getattr(f, name).shape} for "
                f"{counted(n, 'box')}."
            )
    for name, pool in (("law", f.laws), ("reward", f.rewards), ("cost", f.costs)):
        column = getattr(f, name)
        bad = np.flatnonzero((column < 0) | (column >= len(pool)))
        if len(bad):
            raise InvalidForest(
                f"`{name}` must point into its pool of {len(pool)}, but box {f.name(bad[0])!r} has "
                f"{column[bad[0]]} ({such(len(bad), 'box')})."
            )


def _check_names(f: Forest) -> None:
    if f.names is not None:
        if len(f.names) != len(f.parent):
            raise InvalidForest(
                f"`names` must have one entry per box, but there are {len(f.names)} for "
                f"{counted(len(f.parent), 'box')}."
            )
        _check_distinct(f.names, "names of boxes")
        if "" in f.names:
            raise InvalidForest("a box needs a name that can be read, but one is empty.")
    if len(f.state_names) != len(f.rewards):
        raise InvalidForest(
            f"`state_names` must have one entry per row of rewards, but there are "
            f"{len(f.state_names)} for {len(f.rewards)}."
        )
    for row, given in enumerate(f.state_names):
        if given is None:
            continue
        if len(given) != f.rewards.shape[row, 1]:
            raise InvalidForest(
                f"a box needs as many state names as rewards, but box {_first(f, f.reward, row)[1]}"
                f" has {counted(len(given), 'name')} for "
                f"{counted(f.rewards.shape[row, 1], 'reward')}."
            )
        if len(set(given)) < len(given):
            _check_distinct(given, f"names of the states of box {_first(f, f.reward, row)[1]}")


def _check_distinct(names: Sequence[str], what: str) -> None:
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = [x for x in names if x in seen or seen.add(x)]  # type: ignore[func-returns-value]
        raise InvalidForest(
            f"{what} must differ, but {twice[0]!r} appears twice ({such(len(twice), 'name')}). "
            f"Rename one of them."
        )


def check_parent(parent: IntArray, name: Callable[[int], object]) -> None:
    """Parents exist and lead to a root; ``name`` tells what to call a box."""
    n = len(parent)
    bad = np.flatnonzero((parent < -1) | (parent >= n))
    if len(bad):
        raise InvalidForest(
            f"a parent must be the number of a box (0 to {n - 1}) or -1 for a root, but that of "
            f"box {name(bad[0])!r} is {parent[bad[0]]} ({such(len(bad), 'box')})."
        )
    order, _, _ = postorder(frozen(parent))
    if len(order) < n:
        lost = np.setdiff1d(np.arange(n), order)
        v = int(lost[0])
        for _ in range(n):  # n steps up end on the cycle itself
            v = int(parent[v])
        cycle, w = [v], int(parent[v])
        while w != v and len(cycle) < 8:
            cycle.append(w)
            w = int(parent[w])
        path = " -> ".join(repr(name(u)) for u in [*cycle, v if w == v else w])
        raise InvalidForest(
            f"parents must lead to a root, but {path} is a cycle ({counted(len(lost), 'box')} on "
            f"or below it). Make one of them a root."
        )


def _check_count(f: Forest) -> None:
    bad = np.flatnonzero((f.count < 1) | (f.count > MAX_COUNT))
    if len(bad):
        raise InvalidForest(
            f"a count must be from 1 to {MAX_COUNT}, but that of box {f.name(bad[0])!r} is "
            f"{f.count[bad[0]]} ({such(len(bad), 'box')})."
        )


def _check_outside(f: Forest) -> None:
    must_take = np.inf if f.minimize else -np.inf
    if not np.isfinite(f.outside) and f.outside != must_take:
        raise InvalidForest(
            f"the outside option must be a finite number, or {must_take} if something must be "
            f"taken, but it is {f.outside}."
        )


def _check_unit(f: Forest) -> None:
    if not isinstance(f.unit, str) or len(f.unit) > MAX_UNIT or not f.unit.isprintable():
        raise InvalidForest(
            f"the unit must be a text of at most {MAX_UNIT} printable characters, but it is "
            f"{str(f.unit)[:40]!r}."
        )


def _check_shapes(f: Forest) -> None:
    own = f.rewards.shape[f.reward, 1]
    given = np.where(f.parent < 0, 1, own[f.parent])
    rows, cols = f.laws.shape[f.law].T
    bad = np.flatnonzero((rows != given) | (cols != own) | (own == 0))
    if len(bad):
        v = int(bad[0])
        kind = (
            "one row (a root)"
            if f.parent[v] < 0
            else f"{counted(given[v], 'row')} (states of its parent)"
        )
        raise InvalidForest(
            f"the law of box {f.name(v)!r} must have {kind} and {counted(own[v], 'column')} (its "
            f"own rewards), but it has shape ({rows[v]}, {cols[v]}) ({such(len(bad), 'box')})."
        )
    check_opening_shapes(f, f.costs, "a cost")


def check_opening_shapes(f: Forest, pool: Pool, what: str) -> None:
    """Costs, factors and durations are numbers, columns or matrices that fit the states."""
    own = f.rewards.shape[f.reward, 1]
    given = np.where(f.parent < 0, 1, own[f.parent])
    rows, cols = pool.shape[f.cost].T
    bad = np.flatnonzero(((rows != 1) & (rows != given)) | ((cols != 1) & (cols != own)))
    if len(bad):
        v = int(bad[0])
        raise InvalidForest(
            f"{what} is one number, one per state of the parent, or a matrix (states of the parent"
            f", own states), but box {f.name(v)!r} has {given[v]} and {own[v]} of them and {what} "
            f"of shape ({rows[v]}, {cols[v]}) ({such(len(bad), 'box')})."
        )


def _check_endless(f: Forest) -> None:
    if not f.endless.any():
        return
    rows, cols = f.laws.shape[f.law].T
    known: dict[tuple[str, ...] | None, int] = {}
    title = np.array([known.setdefault(names, len(known)) for names in f.state_names])[f.reward]
    children = np.bincount(f.parent + 1, minlength=len(f.parent) + 1)[1:]
    for broken, rule, fault, remedy in (
        (f.parent < 0, "must have a parent", "has none", "Describe the first box by itself"),
        (rows != cols, "must have as many states as its parent", "does not", "Its law is square"),
        (
            title != title[f.parent],
            "must name its states as its parent does",
            "does not",
            "Use one list",
        ),
        (children > 0, "must have no children", "has some", "Only boxes like it follow it"),
        (f.count > 1, "must have no copies", "has some", "Give the count to the box above it"),
    ):
        bad = np.flatnonzero(f.endless & broken)
        if len(bad):
            raise InvalidForest(
                f"an endless box {rule}, but {f.name(bad[0])!r} {fault} ({such(len(bad), 'box')}). "
                f"{remedy}."
            )


def _check_laws(f: Forest) -> FloatArray:
    p = f.laws
    if len(p.data) and not (p.data.min() >= 0 and p.data.max() <= 1 + SUM_TOLERANCE):  # or NaN
        wrong = ~((p.data >= 0) & (p.data <= 1 + SUM_TOLERANCE))
        i, m, title = _place(f, p, f.law, wrong)
        s, y = divmod(i - int(p.start[m]), int(p.shape[m, 1]))
        raise InvalidForest(
            f"probabilities must lie between 0 and 1, but in the law of box {title} the entry "
            f"[{s}, {y}] is {p.data[i]:.12g} ({such(wrong.sum(), 'entry')})."
        )
    start, owner = p.rows()
    mass = np.add.reduceat(p.data, start) if len(start) else np.empty(0)
    bad = np.flatnonzero(np.abs(mass - 1) > SUM_TOLERANCE)
    if len(bad):
        m = int(owner[bad[0]])
        row = int(bad[0] - np.flatnonzero(owner == m)[0])
        box, title = _first(f, f.law, m)
        after = ""
        if box >= 0 and f.parent[box] >= 0:
            up = int(f.parent[box])
            after = f" after {f.name(up)!r} shows {f.states(up)[row]!r}"
        raise InvalidForest(
            f"probabilities must sum to 1, but those of box {title}{after} sum to "
            f"{_sum(mass[bad[0]])} ({such(len(bad), 'row')}). Rescale the row, or give the missing "
            f"mass a state of its own."
        )
    return np.asarray(mass)


def rescaled(laws: Pool, mass: FloatArray) -> Pool:
    """Laws whose rows sum to 1 up to rounding; a larger difference would change the value.

    ``mass`` are the sums of the rows.
    """
    far = np.abs(mass - 1)
    if not len(mass) or far.max() <= 8 * ROUNDING:
        return laws
    columns = np.repeat(laws.shape[:, 1], laws.shape[:, 0])
    off = far > ROUNDING * np.maximum(columns, 8)
    if not off.any():
        return laws
    share = np.repeat(np.where(off, mass, 1.0), columns)
    return Pool(laws.data / share, laws.start, laws.shape)


def _sum(mass: float) -> str:
    """A sum that is not 1, with the digits that show it."""
    text = f"{mass:.9g}"
    return text if text != "1" else f"1 {'+' if mass > 1 else '-'} {abs(mass - 1):.2g}"


def _check_rewards(f: Forest) -> None:
    none = np.inf if f.minimize else -np.inf
    wrong = ~(np.isfinite(f.rewards.data) | (f.rewards.data == none))
    if wrong.any():
        i, m, title = _place(f, f.rewards, f.reward, wrong)
        raise InvalidForest(
            f"rewards must be finite ({none} marks a state without one), but box {title} has "
            f"{f.rewards.data[i]} in state {i - int(f.rewards.start[m])} "
            f"({such(wrong.sum(), 'reward')})."
        )
    if not np.isfinite(f.outside) and not np.isfinite(f.rewards.data).all():
        raise InvalidForest(
            "states without a reward need a finite outside option, since otherwise there may be "
            "nothing to take. Give `outside`."
        )


def _check_costs(f: Forest) -> None:
    wrong = ~((f.costs.data >= 0) & np.isfinite(f.costs.data))
    if wrong.any():
        i, _, title = _place(f, f.costs, f.cost, wrong)
        raise InvalidForest(
            f"costs must be finite and not negative, but box {title} has {f.costs.data[i]:.6g} "
            f"({such(wrong.sum(), 'cost')})."
        )


def _check_amounts(f: Forest) -> None:
    """Larger amounts would leave the range of a 64-bit float in sums and squares."""
    for pool, column, kind in ((f.rewards, f.reward, "reward"), (f.costs, f.cost, "cost")):
        wrong = np.isfinite(pool.data) & (np.abs(pool.data) > MAX_AMOUNT)
        if wrong.any():
            i, _, title = _place(f, pool, column, wrong)
            raise InvalidForest(
                f"a {kind} must be at most {MAX_AMOUNT:g} in size, but box {title} has "
                f"{pool.data[i]:.6g} ({such(wrong.sum(), kind)}). Choose a larger unit."
            )
    if np.isfinite(f.outside) and abs(f.outside) > MAX_OUTSIDE:
        raise InvalidForest(
            f"the outside option must be at most {MAX_OUTSIDE:g} in size, but it is "
            f"{f.outside:.6g}. Choose a larger unit."
        )
