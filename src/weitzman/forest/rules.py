"""The rules that every forest keeps, one small function each.

Each message states the rule, names the first offender, says how many there are and what to do.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray, frozen
from .._common.numbers import counted, such
from .._kernels.structure import postorder
from ..errors import InvalidForest
from .columns import Pool, label, no_reward, short
from .fields import MAX_COUNT as MAX_COUNT
from .fields import declared, in_trees

if TYPE_CHECKING:
    from .model import Forest

SUM_TOLERANCE = 1e-9
MOST_EXPONENT = 600.0  # powers of e that leave room in a 64-bit float
MAX_AMOUNT = 1e300  # of rewards and costs: sums of many stay finite
MAX_OUTSIDE = 1e306  # of the outside option, which may be far from all rewards

ROUNDING = 2.0**-52  # of a sum, for each entry
MAX_UNIT = 12  # characters of a unit


def check(forest: Forest) -> Iterator[tuple[str, Any]]:
    """Raise :class:`InvalidForest` for the first rule that is broken.

    Yields attributes with the values that replace what was given: rescaled laws, and the like.
    """
    _check_size(forest)
    _check_names(forest)
    check_parent(forest.parent, forest.name)
    _check_shapes(forest)
    for field in declared(type(forest)):
        if field.by_tree:
            yield field.stored, in_trees(forest, field)
        new = None if field.check is None else field.check(forest)
        if new is not None:
            yield field.stored, new


def like(wanted: object, names: Sequence[str] | None) -> str:
    """The end of a message about an unknown name: the name that was perhaps meant."""
    if names is None or not isinstance(wanted, str):
        return ""
    close = closest(wanted, names)
    return "" if close is None else f"; did you mean {close!r}?"


def closest(wanted: str, names: Iterable[str]) -> str | None:
    """The name that was perhaps meant: the same but for capitals, or one that is spelled alike.

    Comparing takes the square of the length, so long names and those after the first thousands are
    left out.
    """
    few = [name for name in islice(names, 10_000) if len(name) <= 64]
    same = [name for name in few if name.casefold() == wanted.casefold()]
    found = same or difflib.get_close_matches(wanted[:64], few[:2000], 1)
    return found[0] if found else None


def _check_boxes(
    f: Forest, bad: BoolArray, rule: str, fault: Callable[[int], object], advice: str = ""
) -> None:
    """Reject boxes that break a rule; ``fault`` says what is wrong with the first of them."""
    if bad.any():
        v = int(np.argmax(bad))
        raise InvalidForest(
            f"{rule}, but box {f.name(v)!r} {fault(v)} ({such(bad.sum(), 'box')})."
            f"{f' {advice}.' if advice else ''}"
        )


def _user(f: Forest, column: IntArray, row: int) -> tuple[int, str]:
    """The first box that uses a row of a pool (-1: none), and its name for messages."""
    users = np.flatnonzero(column == row)
    return (int(users[0]), repr(f.name(users[0]))) if len(users) else (-1, "(unused)")


def _check_pool(
    f: Forest, field: str, good: BoolArray, rule: str, kind: str = "entry",
    *, advice: str = "", digits: int = 6,
) -> None:  # fmt: skip
    """Reject entries of a pool, and say where the first of them stands."""
    if not good.all():
        one = next(x for x in declared(type(f)) if x.name == field)
        pool, i = getattr(f, one.stored), int(np.argmin(good))
        m = int(np.searchsorted(pool.start, i, side="right")) - 1
        s, y = divmod(i - int(pool.start[m]), int(pool.shape[m, 1]))
        place = {"law": f" at [{s}, {y}] of its law", "rewards": f" in state {y}"}.get(field, "")
        raise InvalidForest(
            f"{rule}, but box {_user(f, getattr(f, one.pointer), m)[1]} has "
            f"{pool.data[i]:.{digits}g}{place} ({such((~good).sum(), kind)})."
            f"{f' {advice}.' if advice else ''}"
        )


# -- columns and shapes ---------------------------------------------------------------------------


def _check_size(f: Forest) -> None:
    n = len(f.parent)
    if n == 0:
        raise InvalidForest("a forest needs at least one box, but there is none. Add a root.")
    for field in declared(type(f)):
        column = getattr(f, field.pointer or field.stored)
        if field.form == "setting" or column is None:
            continue
        shape = (len(column),) if isinstance(column, tuple) else np.shape(column)
        if shape != (n,) and not (field.by_tree and shape == ((f.parent < 0).sum(),)):
            raise InvalidForest(
                f"`{field.pointer or field.name}` must have one entry per box"
                f"{' or per root' if field.by_tree else ''}, but has shape {shape} for "
                f"{counted(n, 'box')}."
            )
        pool = getattr(f, field.stored)
        if isinstance(pool, Pool):
            rule = f"`{field.pointer}` must point into its pool of {len(pool)}"
            bad = (column < 0) | (column >= len(pool))
            _check_boxes(f, bad, rule, lambda v: f"has {column[v]}")  # noqa: B023


def _check_names(f: Forest) -> None:
    _check_distinct(f.names or (), "names of boxes")
    if "" in (f.names or ()):
        raise InvalidForest("a box needs a name that can be read, but one is empty.")
    if len(f.state_names) != len(f.rewards):
        raise InvalidForest(
            f"`state_names` must have one entry per row of rewards, but there are "
            f"{len(f.state_names)} for {len(f.rewards)}."
        )
    for row, given in enumerate(f.state_names) if any(f.state_names) else ():
        if given is None:
            continue
        if len(given) != f.rewards.shape[row, 1]:
            raise InvalidForest(
                f"a box needs as many state names as rewards, but box {_user(f, f.reward, row)[1]}"
                f" has {counted(len(given), 'name')} for "
                f"{counted(f.rewards.shape[row, 1], 'reward')}."
            )
        if len(set(given)) < len(given):
            _check_distinct(given, f"names of the states of box {_user(f, f.reward, row)[1]}")


def _check_distinct(names: Sequence[str], what: str) -> None:
    if (more := len(names) - len(set(names))) > 0:
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise InvalidForest(
            f"{what} must differ, but {twice!r} appears twice ({such(more, 'name')}). Rename one "
            f"of them."
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
        v = int(np.setdiff1d(np.arange(n), order)[0])
        for _ in range(n):  # n steps up end on the cycle itself
            v = int(parent[v])
        cycle, w = [v], int(parent[v])
        while w != v and len(cycle) < 8:
            cycle.append(w)
            w = int(parent[w])
        path = " -> ".join(repr(name(u)) for u in [*cycle, w])
        raise InvalidForest(
            f"parents must lead to a root, but {path} is a cycle ({counted(n - len(order), 'box')} "
            f"on or below it). Make one of them a root."
        )


def _check_shapes(f: Forest) -> None:
    own = f.rewards.shape[f.reward, 1]
    given = np.where(f.parent < 0, 1, own[f.parent])
    for field in declared(type(f)):
        pool = getattr(f, field.stored)
        law = field.form == "law"
        if field.form not in ("law", "opening") or pool is None or (
            not law and (pool.shape == 1).all()
        ):  # fmt: skip
            continue
        rows, cols = pool.shape[getattr(f, field.pointer)].T
        good = (rows == given) | (not law and rows == 1), (cols == own) | (not law and cols == 1)
        bad = np.flatnonzero(~(good[0] & good[1]) | (own == 0))
        if not len(bad):
            continue
        v, what = int(bad[0]), f"the {field.name} of box {f.name(int(bad[0]))!r}"
        above = " (states of its parent)" if f.parent[v] >= 0 else " (a root)"
        raise InvalidForest(
            f"{what} must have {counted(given[v], 'row')}{above} and {counted(own[v], 'column')} "
            f"(its own rewards){'' if law else ', or one for all of them'}, but it has shape "
            f"({rows[v]}, {cols[v]}) ({such(len(bad), 'box')})."
        )


# -- one field each -------------------------------------------------------------------------------


def check_count(f: Forest) -> None:
    """Counts are whole numbers from 1 on."""
    rule, fault = f"a count must be from 1 to {MAX_COUNT}", "has {}".format
    _check_boxes(f, (f.count < 1) | (f.count > MAX_COUNT), rule, lambda v: fault(f.count[v]))


def check_outside(f: Forest) -> None:
    """The outside option is a number, or the worst infinity."""
    x, must_take = f.outside, no_reward(f.minimize)
    if not np.isfinite(x) and x != must_take:
        raise InvalidForest(
            f"the outside option must be a finite number, or {must_take} if something must be "
            f"taken, but it is {x}."
        )
    if np.isfinite(x) and abs(x) > MAX_OUTSIDE:
        raise InvalidForest(
            f"the outside option must be at most {MAX_OUTSIDE:g} in size, but it is {x:.6g}. "
            f"Choose a larger unit."
        )


def check_unit(f: Forest) -> None:
    """A unit is a short text."""
    if not isinstance(f.unit, str) or len(f.unit) > MAX_UNIT or not f.unit.isprintable():
        raise InvalidForest(
            f"the unit must be a text of at most {MAX_UNIT} printable characters, but it is "
            f"{str(f.unit)[:40]!r}."
        )


def check_endless(f: Forest) -> None:
    """An endless box is like its parent, has no copies and ends its line."""
    if not f.endless.any():
        return
    rows, cols = f.laws.shape[f.law].T
    known: dict[tuple[str, ...] | None, int] = {}
    title = np.array([known.setdefault(names, len(known)) for names in f.state_names])[f.reward]
    children = np.bincount(f.parent + 1, minlength=len(f.parent) + 1)[1:]
    same = "must name its states as its parent does"
    for broken, rule, fault, advice in (
        (f.parent < 0, "must have a parent", "has none", "Describe the first box by itself"),
        (rows != cols, "must have as many states as its parent", "does not", "Its law is square"),
        (title != title[f.parent], same, "does not", "Use one list"),
        (children > 0, "must have no children", "has some", "Only boxes like it follow it"),
        (f.count > 1, "must have no copies", "has some", "Give the count to the box above it"),
    ):
        _check_boxes(f, f.endless & broken, f"an endless box {rule}", fault.format, advice)


def checked_laws(f: Forest) -> Pool:
    """Laws whose rows sum to 1 up to rounding: a larger difference would change the value."""
    p, wide = f.laws, f.laws.shape[:, 1]
    if len(wide) and (wide == wide[0]).all():
        mass = np.einsum("ij->i", p.data.reshape(-1, wide[0]))
    else:
        mass = np.add.reduceat(p.data, p.rows()[0]) if len(wide) else np.empty(0)
    # a number above 1 beside others from 0 on makes a sum above 1
    if len(p.data) and not (p.data.min() >= 0 and mass.max() <= 1 + SUM_TOLERANCE):  # or NaN
        good = (p.data >= 0) & (p.data <= 1 + SUM_TOLERANCE)
        _check_pool(f, "law", good, "probabilities must lie between 0 and 1", digits=12)
    far = np.abs(mass - 1)
    bad = np.flatnonzero(far > SUM_TOLERANCE)
    if len(bad):
        owner = p.rows()[1]
        box, title = _user(f, f.law, int(owner[bad[0]]))
        up, row = int(f.parent[box]), int(bad[0] - np.searchsorted(owner, owner[bad[0]]))
        after = f" after {f.name(up)!r} shows {f.states(up)[row]!r}" if min(box, up) >= 0 else ""
        total = f"{mass[bad[0]]:.9g}"
        if total == "1":  # show what it differs by
            total = f"1 {'+' if mass[bad[0]] > 1 else '-'} {far[bad[0]]:.2g}"
        raise InvalidForest(
            f"probabilities must sum to 1, but those of box {title}{after} sum to {total} "
            f"({such(len(bad), 'row')}). Rescale the row, or give the missing mass a state of its "
            f"own."
        )
    if not len(mass) or far.max() <= 8 * ROUNDING:
        return p
    columns = p.shape[p.rows()[1], 1]
    off = far > ROUNDING * np.maximum(columns, 8)
    if not off.any():
        return p
    return Pool(p.data / np.repeat(np.where(off, mass, 1.0), columns), p.start, p.shape)


def check_rewards(f: Forest) -> None:
    """Rewards are numbers, or none at all."""
    data = f.rewards.data
    if np.abs(data).max() <= MAX_AMOUNT:  # the common case, and not NaN
        return
    none = no_reward(f.minimize)
    rule = f"rewards must be finite ({none} marks a state without one)"
    _check_pool(f, "rewards", np.isfinite(data) | (data == none), rule, "reward")
    if not np.isfinite(f.outside) and not np.isfinite(data).all():
        raise InvalidForest(
            "states without a reward need a finite outside option, since otherwise there may be "
            "nothing to take. Give `outside`."
        )
    _check_amounts(f, "rewards", data, "reward")


def check_costs(f: Forest) -> None:
    """Costs are finite and not negative."""
    x = f.costs.data
    if x.min() >= 0 and x.max() <= MAX_AMOUNT:
        return
    rule = "costs must be finite and not negative"
    _check_pool(f, "cost", (x >= 0) & np.isfinite(x), rule, "cost")
    _check_amounts(f, "cost", x, "cost")


def _check_amounts(f: Forest, field: str, x: FloatArray, kind: str) -> None:
    """Larger amounts would leave the range of a 64-bit float in sums and squares."""
    rule = f"a {kind} must be at most {MAX_AMOUNT:g} in size"
    good = ~np.isfinite(x) | (np.abs(x) <= MAX_AMOUNT)
    _check_pool(f, field, good, rule, kind, advice="Choose a larger unit")


def check_error(f: Forest) -> None:
    """A stated error is not negative."""
    if not 0 <= f.stated_error < np.inf:
        raise InvalidForest(
            f"`stated_error` must be a finite number from 0 on, but it is {f.stated_error!r}."
        )


# -- time, risk and prizes ----------------------------------------------------------------------


def check_time_given(given: Mapping[str, Any]) -> None:
    """Factors alone, or durations with a rate, or neither."""
    factor, duration, rate = (given.get(x) is not None for x in ("factor", "duration", "rate"))
    if factor and (duration or rate):
        raise InvalidForest(
            "time is given by factors, or by durations and a rate, but both are given. Give "
            "`factor` alone, or `duration` and `rate`."
        )


def checked_factors(f: Forest) -> Pool | None:
    """Factors above 0 and at most 1: those given, or exp(-rate * duration)."""
    factors, timed, rate = f.factors, f.durations, f.rate
    if timed is None and rate is not None:
        raise InvalidForest(
            "a rate discounts durations, but there are none. Give `duration`, or leave `rate` out."
        )
    if timed is not None:
        if rate is None:
            raise InvalidForest(
                "durations need a rate at which later payoffs are discounted. Give `rate`, 0 if "
                "time costs nothing."
            )
        if not 0 <= rate < np.inf:
            raise InvalidForest(
                f"a rate must be a finite number from 0 on, but it is {rate}: a negative rate "
                f"would make factors above 1, so that waiting adds value without end."
            )
        x, rule = timed.data, "durations must be finite and not negative"
        _check_pool(f, "duration", (x >= 0) & np.isfinite(x), rule)
        factors = Pool(np.exp(-rate * x), timed.start, timed.shape)
    if factors is not None:
        x = factors.data
        rule = "factors must lie above 0 and be at most 1 (a rate times a duration at most 700)"
        _check_pool(f, "factor" if timed is None else "duration", (x > 0) & (x <= 1), rule)
    return factors


def check_risk(f: Forest) -> None:
    """A risk tolerance is positive, and goes with neither discounting nor endless lines."""
    tau = f.risk_tolerance
    if tau is None:
        return
    if not 0 < tau < np.inf:
        raise InvalidForest(
            f"a risk tolerance must be a finite number above 0, but it is {tau}. Leave it out to "
            f"count the expected payoff alone."
        )
    check_clash({"factor": f.factors, "risk_tolerance": tau})
    rule, fault = "a risk tolerance needs a forest that ends", "is followed by boxes without end"
    _check_boxes(f, f.endless, rule, fault.format, "Write out as many as matter")
    numbers = np.append(f.rewards.data, f.outside)
    numbers = numbers[np.isfinite(numbers)]
    size = (float(np.ptp(numbers)) if len(numbers) else 0.0) + float(f.costs.data.max())
    if size > MOST_EXPONENT * tau:
        raise InvalidForest(
            f"the range of the rewards plus the highest cost must be at most {MOST_EXPONENT:g} "
            f"times the risk tolerance, or utilities overflow, but it is {size:.6g} for a "
            f"tolerance of {tau:.6g}. Raise the tolerance to {size / MOST_EXPONENT:.3g} at least."
        )


def default_prizes(f: Forest) -> int:
    """As many prizes as the quotas allow together; 1 without quotas."""
    return sum(most for _, most in f.quotas) if f.quotas else 1


def as_quotas(given: Any) -> tuple[tuple[str, int], ...]:
    """Quotas as pairs in the order of their groups, from a mapping or from pairs."""
    try:
        pairs = [(label(x), most) for x, most in dict(() if given is None else given).items()]
    except (TypeError, ValueError):
        raise InvalidForest(
            f"`quotas` must be a mapping {{group: number}}, but it is {short(given)}."
        ) from None
    for group, most in pairs:
        number = isinstance(most, (int, float, np.number)) and not isinstance(most, bool)
        if not (number and 0 <= most <= MAX_COUNT and most == np.floor(most)):
            raise InvalidForest(
                f"a quota must be a whole number from 0 on, but that of group {group!r} is "
                f"{short(most)}."
            )
    return tuple(sorted((group, int(most)) for group, most in pairs))


def kept_quotas(
    quotas: tuple[tuple[str, int], ...], columns: Mapping[str, Any]
) -> tuple[tuple[str, int], ...]:
    """The quotas of the groups that are still there."""
    there = set(columns["groups"] or ())
    return tuple((group, most) for group, most in quotas if group in there)


def check_quotas(f: Forest) -> None:
    """Each quota is for a group of the forest."""
    groups = [x for x in dict.fromkeys(f.groups or ()) if x]
    lost = [group for group, _ in f.quotas if group not in groups]
    if lost:
        known = f"The groups are {', '.join(map(repr, groups[:8]))}."
        raise InvalidForest(
            f"a quota must be for a group of boxes, but {lost[0]!r} is none"
            f"{like(lost[0], groups)} ({such(len(lost), 'quota')}). "
            f"{known if groups else 'Give each tree its `group`.'}"
        )


def check_prizes(f: Forest) -> None:
    """There are at least as many trees as prizes."""
    k = f.prizes
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise InvalidForest(
            f"`prizes` must be a whole number from 1 on, but it is {k!r}"
            f"{', the sum of the quotas' if f.quotas and k == default_prizes(f) else ''}."
        )
    if k == 1 and not f.quotas:
        return
    trees = int(min(f.count[f.roots].astype(float).sum(), 1e18))
    if k > trees:
        raise InvalidForest(
            f"each prize comes from a tree of its own, but there are {k} prizes and "
            f"{counted(trees, 'tree')}. Two prizes from one tree is another problem, for "
            f"which no index is known."
        )
    there = ("factors", "risk_tolerance", "prizes", "quotas", "outside")
    check_clash({x: getattr(f, x) for x in there})


def check_clash(given: Mapping[str, Any]) -> None:
    """Settings that do not go together, as far as these tell."""
    time = any(given.get(x) is not None for x in ("factor", "factors", "duration", "rate"))
    risk = given.get("risk_tolerance") is not None
    if risk and time:
        raise InvalidForest(
            "a risk tolerance does not go with discounting: the utility of a discounted sum has no "
            "index. Give one of the two."
        )
    several = (given.get("prizes") or 1) > 1
    must_take = not np.isfinite(given.get("outside", 0.0))
    wrong = {"discounting": time, "a risk tolerance": risk,
             "an outside option that cannot be taken": must_take}  # fmt: skip
    what = next((x for x, there in wrong.items() if there), None)
    if what is not None and (several or given.get("quotas")):
        raise InvalidForest(
            f"{'several prizes' if several else 'quotas'} do not go with {what}: no index is "
            f"known for both together. Leave one of them out."
        )
