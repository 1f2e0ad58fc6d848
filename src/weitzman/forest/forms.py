"""What people write for a box (mappings, numbers, distributions), made into arrays."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import FloatArray
from .._common.numbers import such
from ..errors import InvalidForest
from .columns import label, short
from .distributions import Discretized, discretize, discretize_rows, is_distribution
from .fields import Field
from .rules import like

ANY = None  # key of the only row where the law does not depend on the parent's state


class ShortOutcomes(NamedTuple):
    """States of a box, their rewards (None: no reward), and a row for each state of the parent.

    Builders and files turn what people write into this form, each in their own way.
    """

    states: tuple[str, ...]
    rewards: tuple[float | None, ...]
    rows: dict[str | None, FloatArray]

    @classmethod
    def of(
        cls,
        rows: Mapping[str | None, Mapping[str, float]],
        priced: Mapping[str, float | None],
        amount: Callable[[str], float | None],
        of: str = "",
    ) -> ShortOutcomes:
        """Order the states: those with a reward of their own first, then the others by amount.

        ``amount`` gives the number that the name of a state is, None for a word; ``of`` names the
        box in messages.
        """
        names = dict.fromkeys(state for row in rows.values() for state in row)
        rest = {s: amount(s) for s in names if s not in priced}
        words = [s for s, number in rest.items() if number is None]
        if words:
            raise InvalidForest(
                f"a state whose name is not a number needs a reward, but "
                f"{short(words[0])}{of} has none ({such(len(words), 'state')}). Name it in "
                f"`rewards`, with None (null in a file) for a state without a reward."
            )
        numbers = sorted((x, s) for s, x in rest.items() if x is not None)
        states = (*priced, *(s for _, s in numbers))
        return cls(
            states,
            (*priced.values(), *(x for x, _ in numbers)),
            {key: np.array([row.get(s, 0.0) for s in states]) for key, row in rows.items()},
        )

    def law(self, above: Sequence[str] | None, what: str, kind: str) -> FloatArray:
        """The matrix of the law, a row for each state of the parent (one for a root)."""
        if above is None or ANY in self.rows:
            return np.tile(self.rows[ANY], (1 if above is None else len(above), 1))
        check_keys(self.rows, above, above, what, kind)
        return np.array([self.rows[s] for s in above])


def opening_matrix(
    x: Mapping[str, Any], own: Sequence[str], above: Sequence[str] | None, law: FloatArray,
    names: tuple[str, str], none: float,
) -> FloatArray:  # fmt: skip
    """A cost, factor or duration by states: (1 or states of the parent, 1 or own states).

    ``x`` has numbers by own state for a root; for a child by the parent's state, where mappings by
    own state may stand for numbers. ``names`` are its own and that of the parent's states in
    messages; ``none`` stands for own states that cannot occur.
    """
    what, kind = names

    def row(given: Any, chances: FloatArray, what: str) -> FloatArray:
        if not isinstance(given, Mapping):
            return np.full(len(own), given)
        possible = [s for s, p in zip(own, chances, strict=True) if p > 0]
        check_keys(given, own, (), what, "own state")
        check_keys(given, own, possible, what, "own state that can occur")
        return np.array([given.get(s, none) for s in own])

    if above is None:
        return row(x, law[0], what).reshape(1, -1)
    check_keys(x, above, above, what, kind)
    if not any(isinstance(c, Mapping) for c in x.values()):
        return np.array([[x[s]] for s in above])
    pairs = zip(above, law, strict=True)
    return np.array([row(x[s], p, f"{what} after {short(s)}") for s, p in pairs])


@dataclass(frozen=True, slots=True, eq=False)
class BuiltBox:
    """One box as it was added: its own states, and a law for each state of its parent."""

    name: str
    parent: str | None
    states: tuple[str, ...]
    rewards: tuple[float | None, ...]  # None: no reward
    rows: dict[str | None, FloatArray]
    error: float  # of the discretized law; 0 when it was given state by state
    fields: dict[str, Any]  # what else was given, by name

    def in_states_of(self, above: BuiltBox) -> BuiltBox:
        """An endless box with its states as those of its parent, which its law looks at next."""
        own = dict(zip(self.states, self.rewards, strict=True))
        odd = [s for s in self.states if s not in above.states]
        if odd:
            raise InvalidForest(
                f"an endless box must have the states of its parent, but {self.name!r} may show "
                f"{odd[0]!r}, a state that {above.name!r} lacks ({such(len(odd), 'state')}). Give "
                f"it to {above.name!r} too, with probability 0."
            )
        place = [self.states.index(s) if s in own else len(self.states) for s in above.states]
        return replace(
            self,
            states=above.states,
            rewards=tuple(own.get(s, r) for s, r in zip(above.states, above.rewards, strict=True)),
            rows={key: np.append(row, 0.0)[place] for key, row in self.rows.items()},
        )

    def law(self, above: BuiltBox | None) -> FloatArray:
        """The matrix of the law, a row for each state of the parent (one for a root)."""
        form = ShortOutcomes(self.states, self.rewards, self.rows)
        states = None if above is None else above.states
        return form.law(states, f"the law of box {self.name!r}", _state_of(above))

    def opening(self, field: Field, above: BuiltBox | None, law: FloatArray) -> FloatArray:
        """The cost, factor or duration as a matrix: (1 or parent's states, 1 or own states)."""
        entry, title = self.fields[field.name], f"the {field.name} of box {self.name!r}"
        if not isinstance(entry, Mapping):
            return np.array([[number(entry, title)]])
        given = {
            s: {y: number(c, f"{title} after {s!r}") for y, c in by_label(x, title).items()}
            if isinstance(x, Mapping) and above is not None
            else number(x, title)
            for s, x in by_label(entry, title).items()
        }
        states = None if above is None else above.states
        names = (title, _state_of(above))
        return opening_matrix(given, self.states, states, law, names, field.default)


def _state_of(above: BuiltBox | None) -> str:
    return "" if above is None else f"state of its parent {above.name!r}"


def read_box(
    name: str, parent: str | None, outcomes: Any, rewards: Mapping[Any, Any] | None, n_states: int
) -> tuple[tuple[str, ...], tuple[float | None, ...], dict[str | None, FloatArray], float]:
    """Own states, their rewards, the law after each state of the parent, and its error."""
    if isinstance(outcomes, Discretized) or is_distribution(outcomes):
        law = outcomes if isinstance(outcomes, Discretized) else discretize(outcomes, n_states)
        _no_rewards(name, rewards)
        return *_states_of(law.rewards), {ANY: law.probabilities}, law.error
    if not isinstance(outcomes, Mapping) or len(outcomes) == 0:
        raise InvalidForest(
            f"the outcomes of a box must be a mapping such as {{10: 0.5, 0: 0.5}} (for a child one "
            f"for each state of its parent) or a distribution, but those of box {name!r} are "
            f"{short(outcomes)}."
        )
    deep = [isinstance(x, Mapping) or is_distribution(x) for x in outcomes.values()]
    if any(deep) and (not all(deep) or parent is None):
        fault = "mix both" if parent is not None else "go two levels deep though it is a root"
        raise InvalidForest(
            f"outcomes are {{state: probability}}, or for a child {{parent's state: {{state: "
            f"probability}}}}, but those of box {name!r} {fault}."
        )
    what = f"the outcomes of box {name!r}"
    given: dict[Any, Any] = by_label(outcomes, what) if all(deep) else {ANY: outcomes}
    if all(deep) and any(map(is_distribution, given.values())):
        if not all(map(is_distribution, given.values())):
            raise InvalidForest(f"{what} must be all distributions or all mappings, but are mixed.")
        _no_rewards(name, rewards)
        nodes, laws, error = discretize_rows(list(given.values()), n_states)
        return *_states_of(nodes), dict(zip(given, laws, strict=True)), error
    return *_read_mappings(name, given, rewards), 0.0


def _read_mappings(
    name: str, given: Mapping[Any, Mapping[Any, Any]], rewards: Mapping[Any, Any] | None
) -> ShortOutcomes:
    what = f"the outcomes of box {name!r}"
    keys = {label(key): key for row in given.values() for key in row}
    if not keys:
        raise InvalidForest(f"a box must have a state, but {what} name none.")
    priced = {} if rewards is None else by_label(rewards, f"`rewards` of box {name!r}")
    unknown = [s for s in priced if s not in keys]
    if unknown:
        raise InvalidForest(
            f"`rewards` must name states of the box, but box {name!r} has no state {unknown[0]!r} "
            f"({such(len(unknown), 'name')}{like(unknown[0], list(keys))})."
        )
    values = {
        s: None if r is None else number(r, f"`rewards` of box {name!r}") for s, r in priced.items()
    }
    rows = {
        s: {
            y: number(p, f"the probabilities of box {name!r}")
            for y, p in by_label(row, what if s is ANY else f"{what} after {s!r}").items()
        }
        for s, row in given.items()
    }

    def amount(state: str) -> float | None:
        return float(keys[state]) if _is_number(keys[state]) else None

    return ShortOutcomes.of(rows, values, amount, f" of box {name!r}")


def _states_of(rewards: FloatArray) -> tuple[tuple[str, ...], tuple[float, ...]]:
    return tuple(label(x) for x in rewards), tuple(float(x) for x in rewards)


def _no_rewards(name: str, rewards: object) -> None:
    if rewards is not None:
        raise InvalidForest(
            f"the states of a distribution are its rewards, but box {name!r} also has `rewards`. "
            f"Leave it out."
        )


def by_label(mapping: Mapping[Any, Any], what: str) -> dict[str, Any]:
    """The mapping with the names of the states as keys."""
    out = {label(key): value for key, value in mapping.items()}
    if len(out) < len(mapping):
        names = [label(key) for key in mapping]
        twice = next(s for s in names if names.count(s) > 1)
        raise InvalidForest(
            f"states must differ, but {what} name {twice!r} twice "
            f"({such(len(mapping) - len(out), 'state')}): 900, 900.0 and '900' are one state."
        )
    return out


def number(x: Any, what: str) -> float:
    """x as a float, or an error that shows x."""
    if not _is_number(x):
        raise InvalidForest(f"{what} must be numbers, but there is {short(x)}.")
    return float(x)


def _is_number(x: object) -> bool:
    return isinstance(x, numbers.Real) and not isinstance(x, bool)


def check_keys(
    given: Iterable[str | None], known: Sequence[str], wanted: Iterable[str], what: str, kind: str
) -> None:
    """Every key is known, and every wanted one is there."""
    given, there = list(given), set(known)
    unknown = [s for s in given if s not in there]
    if unknown:
        raise InvalidForest(
            f"{what} must have an entry for each {kind}, but {short(unknown[0])} is none"
            f"{like(unknown[0], known)} ({such(len(unknown), 'entry')}). They are "
            f"{', '.join(map(short, known[:8]))}{', ...' if len(known) > 8 else ''}."
        )
    have = set(given)
    missing = [s for s in wanted if s not in have]
    if missing:
        raise InvalidForest(
            f"{what} must have an entry for each {kind}, but {short(missing[0])} has none "
            f"({such(len(missing), 'state')}). Add it."
        )
