"""Lookups in a forest: numbers and names of boxes and states, and whether it is plain."""

from __future__ import annotations

import numpy as np

from .._common.arrays import BoolArray, IntArray
from .._common.numbers import Amounts, such
from .._kernels.structure import postorder
from ..errors import InvalidArgument, UnknownName
from .columns import label
from .pools import Pool
from .rules import like


class Lookups:
    """The questions that the columns of a :class:`~weitzman.Forest` answer."""

    __slots__ = ()

    parent: IntArray
    reward: IntArray
    count: IntArray
    endless: BoolArray
    rewards: Pool
    costs: Pool
    factors: Pool | None
    outside: float
    minimize: bool
    unit: str
    risk_tolerance: float | None
    prizes: int
    names: tuple[str, ...] | None
    state_names: tuple[tuple[str, ...] | None, ...]
    _number: dict[str, int]

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
        order, _, _ = postorder(self.parent)
        total = np.ones(len(self))
        for v in order[::-1] if self.count.max() > 1 else ():
            up = self.parent[v]
            total[v] = self.count[v] * (total[up] if up >= 0 else 1.0)
        if total.sum() < 2**52:
            return int(total.sum())
        exact: dict[int, int] = {-1: 1}
        for v in order[::-1].tolist():
            exact[v] = int(self.count[v]) * exact[int(self.parent[v])]
        return sum(exact.values()) - 1

    def must_end(self, what: str) -> None:
        """Refuse endless lines: ``what`` needs a finite list of boxes."""
        if self.endless.any():
            v = int(np.argmax(self.endless))
            raise InvalidArgument(
                f"{what} needs a forest that ends, but box {self.name(v)!r} is followed by boxes "
                f"like itself without end ({such(self.endless.sum(), 'box')}). Cut it with "
                f"truncate."
            )

    @property
    def is_plain(self) -> bool:
        """Whether the expected payoff counts, with one prize and without discounting."""
        return not any(there for there, _ in self._has())

    def must_be_plain(self, what: str) -> None:
        """Refuse discounting, risk tolerance and several prizes: ``what`` cannot handle them."""
        for there, term in self._has():
            if there:
                raise InvalidArgument(
                    f"{what} is for an expected payoff with one prize and no discounting, but this "
                    f"forest has {term}."
                )

    def _has(self) -> list[tuple[bool, str]]:
        return [
            (self.factors is not None, "discounting"),
            (self.risk_tolerance is not None, "a risk tolerance"),
            (self.prizes > 1, "several prizes"),
        ]

    def _terms(self) -> str:
        terms = [
            (self.factors is not None, "discounted"),
            (self.risk_tolerance is not None, f"risk tolerance {self.risk_tolerance}"),
            (self.prizes > 1, f"{self.prizes} prizes"),
        ]
        return "".join(f", {term}" for there, term in terms if there)

    def _with_copies(self) -> str:
        lines = int(self.endless.sum())
        return f"{self.boxes} with copies" + (f", {lines} endless" if lines else "")

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

    def state(self, box: str | int, state: str | int | float) -> int:
        """The number of a state of a box: by its name, or by number unless names are numbers.

        Where states are named by numbers (their rewards, say), a number is always a name: 1 means
        the state "1", never the second state.
        """
        row = int(self.reward[self.box(box)])
        given, k = self.state_names[row], int(self.rewards.shape[row, 1])
        if given is not None and label(state) in given:
            return given.index(label(state))
        whole = isinstance(state, (int, np.integer)) and not isinstance(state, bool)
        if whole and 0 <= state < k and (given is None or not any(map(_is_number, given))):  # type: ignore[operator]
            return int(state)
        known = f"0 to {k - 1}" if given is None else ", ".join(given[:8])
        raise UnknownName(
            f"box {self.name(self.box(box))!r} has no state {state!r}; its states are {known}."
        )


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True
