"""The problem: boxes on a forest, checked once and then trusted.

Words used all over the package:

* a *box* is opened at a *cost* and then shows one of its *states*; each state has a *reward*;
* the *law* of a root is a distribution over its states; the law of a child is a matrix with a row
  for each state of its *parent*, which must be opened first;
* the *outside option* is what can be taken without opening anything;
* ``count`` copies of a box, each with its own copy of everything below it, are written once;
* an *endless* box is followed by another one like it, whose law looks at the box before, and so
  on without end.

Each field is declared once, in the body of :class:`Forest`; see :mod:`weitzman.forest.fields`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypedDict, TypeVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import BoolArray, IntArray
from .._common.numbers import Amounts, counted, plain_number, such
from .._common.text import ROWS, columns_html
from .._kernels.structure import postorder
from ..errors import InvalidArgument, InvalidForest, UnknownName
from . import rules
from .columns import (
    Pool,
    default_outside,
    label,
    matrix_columns,
    matrix_of,
    reward_columns,
    whole_numbers,
)
from .fields import (
    beside,
    changeable,
    declared,
    default_unless_alike,
    per_box,
    places_of_parents,
    repointed,
    same,
    setting,
    stored,
    summed,
    taken,
    times_copies,
)
from .rules import like


class GivenTerms(TypedDict, total=False):
    """The settings of a problem besides its outside option and its direction."""

    unit: str
    rate: float | None
    risk_tolerance: float | None
    prizes: int | None
    quotas: Mapping[str, int] | None
    stated_error: float


class GivenSettings(GivenTerms, total=False):
    """All settings of a problem."""

    outside: float | None
    minimize: bool


class GivenColumns(GivenSettings, total=False):
    """What :meth:`Forest.from_arrays` may be given besides the boxes themselves."""

    count: ArrayLike | None
    endless: ArrayLike | None
    group: Sequence[object] | None
    factor: ArrayLike | Sequence[ArrayLike] | None
    duration: ArrayLike | Sequence[ArrayLike] | None


class GivenChanges(GivenSettings, total=False):
    """What :meth:`Forest.changed` may be given: entries by box, and settings."""

    law: Mapping[str | int, ArrayLike]
    rewards: Mapping[str | int, ArrayLike]
    cost: Mapping[str | int, ArrayLike]
    factor: Mapping[str | int, ArrayLike]
    duration: Mapping[str | int, ArrayLike]
    count: Mapping[str | int, int]
    endless: Mapping[str | int, bool]
    group: Mapping[str | int, str]


F = TypeVar("F", bound=Callable[..., Any])


def spelled_out(fields: type) -> Callable[[F], F]:
    """Show the keys of a typed dictionary as parameters of a function that takes them by name."""

    def change(function: F) -> F:
        plain, by_name = inspect.signature(function), inspect.Parameter.KEYWORD_ONLY
        given = [p for p in plain.parameters.values() if p.kind is not p.VAR_KEYWORD]
        for name, a in inspect.get_annotations(fields).items():
            given.append(inspect.Parameter(name, by_name, default=None, annotation=a))
        function.__signature__ = plain.replace(parameters=given)  # type: ignore[attr-defined]
        return function

    return change


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Forest:
    """Boxes on a rooted forest with a Markov law on every edge, as flat columns.

    Most users call :meth:`from_arrays`, which explains each field, :class:`~weitzman.Builder`,
    :func:`~weitzman.line`, :func:`~weitzman.side_by_side` or :func:`~weitzman.load`; this
    constructor takes the columns as they are stored.

    Parameters
    ----------
    parent : (n,) array of int
        -1 marks a root. Boxes may come in any order.
    law, reward, cost : (n,) arrays of int
        Which matrix of ``laws``, ``rewards`` and ``costs`` belongs to each box.
    laws : Pool
        (states of the parent, own states) each; one row for a root.
    rewards : Pool
        (1, own states) each; minus infinity (plus infinity when minimizing) marks a state that
        carries a signal but no reward.
    costs, factors, durations : Pool
        (1 or states of the parent, 1 or own states) each. ``cost`` points into all of them. With
        durations, ``factors`` are exp(-rate * duration); None: time costs nothing.
    count : (n,) array of int
    endless : (n,) array of bool, or None
        An endless box has a parent with as many states as itself, no children and no copies.
    groups, names : tuple of str, or None
        By box. The group is the same for all boxes of a tree; empty for a tree of no group.
    state_names : tuple
        For each row of ``rewards``, the names of the states, or None.
    outside, minimize, unit, rate, risk_tolerance, prizes, quotas, stated_error
        The settings. ``quotas`` are pairs of a group and a number.
    """

    parent: IntArray = per_box(
        "parent", "The box that must be opened first; none for a root.",
        form="parent", type=int, needed=True, default=-1,
        headings=("parent", "after", "behind", "follows", "previous", "previous_stage"),
    )  # fmt: skip
    law: IntArray
    reward: IntArray
    cost: IntArray
    laws: Pool = per_box(
        "law", "The chances of its states, after each state of the parent unless it is a root.",
        form="law", pointer="law", needed=True, ranged=True, check=rules.checked_laws,
        headings=("probability", "prob", "p", "chance"),
    )  # fmt: skip
    rewards: Pool = per_box(
        "rewards", "What can be taken once the box has shown a state; none for a mere signal.",
        form="rewards", pointer="reward", needed=True, ranged=True, check=rules.check_rewards,
        headings=(
            "reward", "payoff", "payout", "worth", "value", "prize", "loss", "NPV", "eNPV",
            "net present value", "benefit", "net benefit", "profit", "net profit", "revenue",
            "return", "gain", "income", "proceeds", "earnings", "savings", "utility",
        ),
    )  # fmt: skip
    costs: Pool = per_box(
        "cost", "What opening the box costs, in the unit of the rewards.",
        form="opening", pointer="cost", needed=True, default=0.0, check=rules.check_costs,
        headings=("cost", "price"), ranged=True, schema={"type": "number", "minimum": 0},
    )  # fmt: skip
    factors: Pool | None = per_box(
        "factor", "What everything after the opening is multiplied by, above 0 and at most 1.",
        form="opening", pointer="cost", default=1.0, check=rules.checked_factors,
        implied_by="durations", term="discounting",
        schema={"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    )  # fmt: skip
    durations: Pool | None = per_box(
        "duration", "How long the opening takes, which the rate discounts.",
        form="opening", pointer="cost", default=0.0, ranged=True,
        headings=("duration", "dur", "time", "length of time", "months", "years", "weeks", "days"),
        term="discounting",
        schema={"type": "number", "minimum": 0},
    )  # fmt: skip
    count: IntArray = per_box(
        "count", "Copies of the box, each with its own copy of all below it.",
        type=int, default=1, join=times_copies, check=rules.check_count,
        headings=("count", "copies", "number of copies", "quantity", "qty"),
        schema={"type": "integer", "minimum": 1, "maximum": rules.MAX_COUNT},
    )  # fmt: skip
    endless: BoolArray = per_box(
        "endless", "Whether the box is followed by boxes like itself without end.",
        type=bool, default=False, key="length", words={True: "endless"},
        check=rules.check_endless,
    )  # fmt: skip
    groups: tuple[str, ...] | None = per_box(
        "group", "The group of the tree, whose quota limits how many rewards are taken from it.",
        type=str, default="", by_tree=True, schema={"type": "string"},
    )  # fmt: skip
    names: tuple[str, ...] | None = per_box(
        "names", "What can be opened: a stage, a test, a candidate. Names differ.",
        form="names", type=str, key="name", headings=("box", "stage", "name", "item", "project"),
    )  # fmt: skip
    state_names: tuple[tuple[str, ...] | None, ...] = per_box(
        "states", "What the box may show: a name for each reward.",
        form="states", pointer="reward", headings=("state", "outcome", "result", "finding"),
    )  # fmt: skip
    minimize: bool = setting(
        "maximize (the default): best reward less all costs. minimize: rewards are losses, least "
        "loss plus all costs.", False,
        type=bool, always=True, key="objective", words={False: "maximize", True: "minimize"},
        headings=("objective", "goal", "minimize", "minimise"),
    )  # fmt: skip
    outside: float = setting(
        "What can be taken without opening anything; none if something must be taken.", 0.0,
        always=True, none="something must be taken", check=rules.check_outside,
        headings=(
            "outside option", "outside", "outside value", "outside option value", "status quo",
            "do nothing", "doing nothing", "value of doing nothing",
        ),
        schema={"type": ["number", "null"]},
    )  # fmt: skip
    unit: str = setting(
        "The unit of rewards and costs, for people: $, EUR, hours.", "",
        type=str, join=default_unless_alike, check=rules.check_unit,
        headings=("unit", "units", "currency"),
        schema={"type": "string", "maxLength": rules.MAX_UNIT},
    )  # fmt: skip
    rate: float | None = setting(
        "The rate per unit of time at which durations discount what comes later.", None,
        schema={"type": "number", "minimum": 0},
    )  # fmt: skip
    risk_tolerance: float | None = setting(
        "Payoffs z count by the utility -exp(-z / risk_tolerance). Left out: the expected payoff "
        "counts.", None,
        term="a risk tolerance", check=rules.check_risk,
        schema={"type": "number", "exclusiveMinimum": 0},
    )  # fmt: skip
    prizes: int = setting(
        "How many rewards may be taken, at most one from each tree. If left out, the sum of the "
        "quotas, or 1 without quotas.", 1,
        type=int, default_of=rules.default_prizes, term="several prizes",
        check=rules.check_prizes, headings=("prizes", "number of prizes"),
        schema={"type": "integer", "minimum": 1},
    )  # fmt: skip
    quotas: tuple[tuple[str, int], ...] = setting(
        "At most how many rewards may be taken from the trees of a group, by group.", (),
        type=dict, term="quotas", convert=rules.as_quotas, kept=rules.kept_quotas,
        check=rules.check_quotas,
        schema={"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
    )  # fmt: skip
    stated_error: float = setting(
        "How far the value may be off because distributions were made discrete. 0 if left out.",
        0.0, join=summed, check=rules.check_error, schema={"type": "number", "minimum": 0},
    )  # fmt: skip
    _number: dict[str, int] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        n = np.size(self.parent)
        for pointer in ("law", "reward", "cost"):
            column = whole_numbers(getattr(self, pointer), pointer)
            column.flags.writeable = False
            object.__setattr__(self, pointer, column)
        for one in declared(type(self)):
            if not one.pointer:
                object.__setattr__(self, one.stored, one.normal(getattr(self, one.stored), n))
        if not self.state_names:
            object.__setattr__(self, "state_names", (None,) * len(self.rewards))
        for one in declared(type(self)):
            if one.default_of is not None and getattr(self, one.stored) is None:
                object.__setattr__(self, one.stored, one.default_of(self))
        for name, value in rules.check(self):
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        """Whether both describe the same boxes in the same order, however they are stored."""
        return same(self, other) if isinstance(other, Forest) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.outside, self.minimize, self.parent.tobytes(), self.count.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **stored(self)), ()

    def __repr__(self) -> str:
        lines, tau = int(self.endless.sum()), self.risk_tolerance
        quotas = " and ".join(f"{most} of {group}" for group, most in self.quotas)
        parts = {
            counted(len(self), "described box"): True,
            f"{self.boxes} with copies": True,
            f"{lines} endless": lines,
            counted(self.roots.size, "root"): True,
            counted(len(self.laws), "law"): True,
            f"outside {self.outside:g}": True,
            "minimize": self.minimize,
            "discounted": self.factors is not None,
            f"risk tolerance {tau}": tau is not None,
            f"{self.prizes} prizes": self.prizes > 1,
            f"at most {quotas}": quotas,
        }
        return f"Forest({', '.join(text for text, here in parts.items() if here)})"

    def _repr_html_(self) -> str:
        some, say = range(min(len(self), ROWS)), self.amounts

        def reach(x: Any) -> str:
            known = x[np.isfinite(x)]
            if not known.size:
                return "none"
            low, high = say(float(known.min())), say(float(known.max()))
            return low if low == high else f"{low} to {high}"

        columns: dict[str, list[Any]] = {
            "box": [self.name(v) for v in some],
            "parent": ["" if self.parent[v] < 0 else self.name(int(self.parent[v])) for v in some],
            "copies": ["∞" if self.endless[v] else f"{self.count[v]:,}" for v in some],
            "cost": [reach(self.costs[int(self.cost[v])]) for v in some],
            "rewards": [reach(self.rewards[int(self.reward[v])]) for v in some],
            "states": [len(self.states(v)) for v in some],
        }
        return columns_html(repr(self), columns, len(self))

    # -- lookups ---------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Boxes as described, copies not counted."""
        return len(self.parent)

    @property
    def roots(self) -> IntArray:
        """Numbers of the roots."""
        return np.flatnonzero(self.parent < 0)

    @property
    def sign(self) -> float:
        """1 when maximizing, -1 when minimizing: a higher reward times the sign is better."""
        return -1.0 if self.minimize else 1.0

    @property
    def amounts(self) -> Amounts:
        """How rewards, costs, indices and values are written for people, all in one way.

        A cost above all rewards, of a box that is never worth opening, does not hide the digits of
        the other numbers.
        """
        gains, costs = np.append(self.rewards.data, self.outside), self.costs.data
        gains, costs = gains[np.isfinite(gains)], costs[np.isfinite(costs)]
        top = float(np.max(np.abs(gains), initial=0.0))
        known = np.append(gains, np.minimum(costs, top) if top else costs)
        return Amounts(self.unit, float(np.ptp(known)) if len(known) else 0.0)

    @property
    def boxes(self) -> int:
        """Number of boxes, copies included; an endless line counts as its first box."""
        if self.count.max() == 1:
            return len(self)
        copies, count, parent = {-1: 1}, self.count.tolist(), self.parent.tolist()
        for v in postorder(self.parent)[0][::-1].tolist():
            copies[v] = count[v] * copies[parent[v]]
        return sum(copies.values()) - 1

    def must_end(self, what: str) -> None:
        """Refuse endless lines: ``what`` needs a finite list of boxes."""
        if self.endless.any():
            v = int(np.argmax(self.endless))
            raise InvalidArgument(
                f"{what} needs a forest that ends, but box {self.name(v)!r} is followed by boxes "
                f"like itself without end ({such(self.endless.sum(), 'box')}). Cut it with "
                f"truncate."
            )

    def must_be_plain(self, what: str) -> None:
        """Raise if there is discounting, risk, several prizes or quotas, for ``what``."""
        if (term := self._term()) is not None:
            raise InvalidArgument(
                f"{what} is for an expected payoff with one prize and no discounting, but this "
                f"forest has {term}."
            )

    def _term(self) -> str | None:
        """The first special term that the forest has, in words."""
        said = [one for one in declared(type(self)) if one.term and one.given(self) is not None]
        if self.prizes == 1 and self.quotas:  # what is given besides is only how many there are
            said = [one for one in said if one.term != "several prizes"]
        return said[0].term if said else None

    def name(self, box: int) -> str:
        """The name of a box by its number."""
        return str(box) if self.names is None else self.names[box]

    def box(self, box: str | int) -> int:
        """The number of a box, by name (a string) or number."""
        if isinstance(box, (int, np.integer)) and not isinstance(box, bool):
            if 0 <= box < len(self):
                return int(box)
            raise UnknownName(f"there is no box number {box}: they go from 0 to {len(self) - 1}.")
        if self.names is not None and not self._number:  # whole at once: threads may be looking
            object.__setattr__(self, "_number", {name: i for i, name in enumerate(self.names)})
        if isinstance(box, str):
            if self.names is None and box.isdecimal() and int(box) < len(self):
                return int(box)
            if box in self._number:
                return self._number[box]
        raise UnknownName(f"there is no box {box!r}{like(box, self.names) or '.'}")

    def states(self, box: str | int) -> tuple[str, ...]:
        """Names of the states of a box: those given, or else their numbers."""
        row = int(self.reward[self.box(box)])
        given = self.state_names[row]
        return given if given is not None else tuple(map(str, range(self.rewards.shape[row, 1])))

    def children(self, box: str | int) -> IntArray:
        """Numbers of the boxes that can be opened once a box is open.

        Examples
        --------
        >>> import weitzman
        >>> pair = weitzman.line([[1.0], [[1.0]]], rewards=[1], cost=0, names=["A", "B"])
        >>> pair.children("A").tolist(), pair.children("B").tolist()
        ([1], [])
        """
        return np.flatnonzero(self.parent == self.box(box))

    def state(self, box: str | int, state: str | int | float) -> int:
        """The number of a state of a box: by its name, or by number unless names are numbers.

        Where states are named by numbers (their rewards, say), a number is always a name: 1 means
        the state "1", never the second state.
        """
        row = int(self.reward[self.box(box)])
        given, k = self.state_names[row], int(self.rewards.shape[row, 1])
        if label(state) in (titles := self.states(box)) and (given or isinstance(state, str)):
            return titles.index(label(state))
        whole = isinstance(state, (int, np.integer)) and not isinstance(state, bool)
        words = given is None or all(plain_number(x) is None for x in given)
        if whole and words and 0 <= state < k:  # type: ignore[operator]
            return int(state)
        known = f"0 to {k - 1}" if given is None else ", ".join(given[:8])
        raise UnknownName(
            f"box {self.name(self.box(box))!r} has no state {state!r}; its states are {known}."
        )

    # -- ways in -------------------------------------------------------------------------------

    @classmethod
    @spelled_out(GivenColumns)
    def from_arrays(
        cls,
        *,
        parent: ArrayLike,
        cost: ArrayLike | Sequence[ArrayLike],
        rewards: ArrayLike | Sequence[ArrayLike],
        law: ArrayLike | Sequence[ArrayLike],
        names: Sequence[object] | None = None,
        states: Sequence[Sequence[object] | None] | Sequence[object] | None = None,
        **fields: Unpack[GivenColumns],
    ) -> Forest:
        """Describe a forest with one entry per box.

        Parameters
        ----------
        parent : (n,) ints
            -1 marks a root; any order.
        cost : n entries
            A number; or for a child one number per state of its parent; or a matrix (states of the
            parent, own states; one row for a root) where the cost depends on what is found. For a
            root, one number per own state says the same.
        rewards : one shared vector, or n vectors
            The reward of each state. Minus infinity: a signal that cannot be taken.
        law : n entries
            A vector for a root, a matrix (states of the parent, own states) for a child. A
            single array of shape (n, k, k) also works; the matrix of a root then has equal rows.
        names : n names, optional
        states : one shared list of names, or n lists, optional
        outside : float, optional
            0 by default. Minimizing has no default: 0 would beat every loss. Infinity of the losing
            sign: something must be taken.
        minimize : bool
            Rewards are losses: minimize the least loss plus all costs.
        count : (n,) ints, optional
            Copies of each box with all below it.
        endless : (n,) bools, optional
            Boxes that are followed by boxes like themselves without end: each further one follows
            the law and has the costs of this box, given the state of the one before.
        unit : str
            Of rewards and costs, for people: "$", "EUR", "hours".
        factor : number, or n entries, optional
            What everything after the opening of a box is multiplied by: above 0 and at most 1, in
            the forms of ``cost``.
        duration, rate : optional
            The same in other words: how long a box takes to open, in the forms of ``cost``, and
            the rate per unit of time. The factor is then exp(-rate * duration).
        risk_tolerance : float, optional
            Count payoffs z by the utility -exp(-z / risk_tolerance): the value and all indices are
            then certainty equivalents, and random costs count with their whole law.
        prizes : int, optional
            Take up to this many rewards, at most one from each tree; a place that stays empty is
            worth the outside option. By default the sum of the quotas, 1 without quotas.
        group : n labels, or one for each root, optional
            The group of each tree.
        quotas : mapping, optional
            At most how many rewards may be taken from each group. A group without a quota is
            limited by ``prizes`` alone.
        stated_error : float
            How far the value may be off because distributions were made discrete; the gap of a
            solution includes it. Parts of a forest keep the error of the whole.

        Examples
        --------
        >>> forest = Forest.from_arrays(
        ...     parent=[-1, 0], cost=[1.0, 0.5], rewards=[0.0, 10.0],
        ...     law=[[0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]]])
        >>> len(forest)
        2
        """
        parents = whole_numbers(parent, "parent")
        if parents.ndim != 1 or parents.size == 0:
            raise InvalidForest(
                "a forest needs at least one box, but `parent` is empty. Give one entry per box, "
                "-1 for a root."
            )
        n = len(parents)
        # what to call the boxes in messages, before the names themselves are checked
        title = names if names is not None and len(names) == n else range(n)
        rules.check_parent(parents, title.__getitem__)
        given = {"cost": cost} | known_fields(fields, "from_arrays", cls)
        rules.check_time_given(given)
        reward_pool, reward, labels = reward_columns(rewards, states, parents, title)
        law_pool, laws = matrix_columns("law", law, parents, title, "law")
        there = {one: given[one.name] for one in declared(cls) if one.name in given}
        openings = {
            one: matrix_columns("opening", x, parents, title, one.name)
            for one, x in there.items()
            if one.form == "opening"
        }
        held = {one.stored: x for one, x in there.items() if one not in openings}
        held["outside"] = default_outside(held.get("outside"), bool(held.get("minimize")))
        held["names"] = None if names is None else tuple(map(label, names))
        return cls(
            parent=parents, law=laws, reward=reward, laws=law_pool, rewards=reward_pool,
            state_names=labels, **beside(openings), **held,
        )  # fmt: skip

    # -- other forests from this one ------------------------------------------------------------

    @spelled_out(GivenChanges)
    def changed(self, **fields: Unpack[GivenChanges]) -> Forest:
        """The same forest with other numbers for some boxes, or with other settings.

        Parameters
        ----------
        law, rewards, cost, factor, duration, count, endless, group : mapping, optional
            New entries by box (name or number), in the forms of :meth:`from_arrays`.
        outside, minimize, unit, rate, risk_tolerance, prizes, quotas, stated_error : optional
            New settings. A setting that is None stays as it is.

        Examples
        --------
        >>> import weitzman
        >>> forest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
        >>> weitzman.solve(forest.changed(cost={0: 2.5})).value
        2.5
        >>> weitzman.solve(forest.changed(law={0: [0.8, 0.2]}, outside=1)).value
        1.8
        """
        given, held = known_fields(fields, "changed", type(self)), changeable(self)
        for one in (f for f in declared(type(self)) if f.name in given):
            new = given[one.name]
            if one.form == "setting":
                held[one.stored] = new
                continue
            if not isinstance(new, Mapping):
                raise InvalidForest(
                    f"the new `{one.name}` must be a mapping {{box: entry}}, not {new!r:.60}."
                )
            each = {self.box(b): x for b, x in new.items()}
            if len(each) < len(new):
                raise InvalidForest(
                    f"each box can have one new {one.name}, but one is named twice."
                )
            if one.form == "entry":
                held[one.stored] = one.replaced(self, each)
                continue
            matrices = [
                matrix_of(one.form, x, bool(self.parent[b] < 0), self.name(b), one.name)
                for b, x in each.items()
            ]
            held |= repointed(type(self), held, one, list(each), matrices)
        return type(self)(**held)

    def take(
        self,
        boxes: ArrayLike,
        *,
        parent: ArrayLike | None = None,
        after: ArrayLike | None = None,
        **columns: Any,
    ) -> Forest:
        """A forest made of boxes of this one, each repeated as often as it is named.

        Parameters
        ----------
        boxes : (m,) ints
            The box that each new box is like, by number.
        parent : (m,) ints, optional
            The parents among the new boxes. By default each box hangs on its own parent, which
            must be named, once.
        after : (m,) ints, optional
            For a box that becomes a root: the state that its parent has shown. -1 for all others.
        **columns
            What is not copied but given: ``count``, ``endless``, ``names``, ...

        Examples
        --------
        >>> import weitzman
        >>> pair = weitzman.line([[0.5, 0.5], [[1, 0], [0, 1]]], rewards=[0, 10], cost=1)
        >>> weitzman.solve(pair.take([1], parent=[-1], after=[1])).value
        9.0
        """
        return type(self)(**(taken(self, boxes, parent, after, columns) | columns))

    def subtree(self, box: str | int, state: str | int | float | None = None) -> Forest:
        """A box and all below it, once its parent has shown ``state``.

        One copy of the box becomes box 0; the outside option stays. On an endless line, the next
        box becomes box 0, and the boxes after it are box 1, ``"<name>, further"``.
        """
        top = self.box(box)
        s = 0 if self.parent[top] < 0 else self.state(int(self.parent[top]), state)  # type: ignore[arg-type]
        keep = self.within(top)
        parent = places_of_parents(self, keep)
        names = None if self.names is None else [self.name(v) for v in keep.tolist()]
        if self.endless[top]:
            keep, parent = np.array([top, top]), np.array([-1, 0])
            names = None if names is None else [names[0], f"{names[0]}, further"]
        first = np.arange(len(keep)) == 0
        return self.take(
            keep, parent=np.where(first, -1, parent), after=np.where(first, s, -1),
            count=np.where(first, 1, self.count[keep]), endless=~first & self.endless[keep],
            names=None if names is None else tuple(names), prizes=1, quotas=(),  # one tree is left
        )  # fmt: skip

    def within(self, box: str | int) -> IntArray:
        """Numbers of a box and of all below it, the box first and the others in order."""
        top = self.box(box)
        order, _, _ = postorder(self.parent)
        inside = np.zeros(len(self) + 1, bool)
        inside[top] = True
        for v in order[::-1]:
            inside[v] |= v != top and inside[self.parent[v]]  # -1 looks at the spare entry
        keep = np.flatnonzero(inside[:-1])
        return np.concatenate([[top], keep[keep != top]])


FIELDS = declared(Forest)
"""All fields of a problem."""
SETTINGS = tuple(one for one in FIELDS if one.form == "setting")
BY_BOX = tuple(one for one in FIELDS if one.form != "setting")


def known_fields(
    fields: Mapping[str, Any], function: str, kind: type[Forest] = Forest
) -> dict[str, Any]:
    """The fields that are given (None: not given), if they are all declared."""
    names = [one.name for one in declared(kind)] if fields else []
    for name in fields:
        if name not in names:
            raise TypeError(f"{function}() has no argument {name!r}{like(name, names) or '.'}")
    return {name: x for name, x in fields.items() if x is not None}
