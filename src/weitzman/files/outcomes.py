"""The short forms of a box, as in :class:`Builder`: objects whose keys are names of states.

``outcomes`` are ``{state: probability}``, for a child also ``{state of the parent: {state:
probability}}``. A state is named by its reward, or by a word whose reward is in ``rewards``. A
``cost`` may be an object in the same way.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import FloatArray
from ..errors import InvalidFile
from ..forest.columns import label
from .parsing import check_dense, is_number, like, name, wrong
from .reading import shown

_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_ANY = None  # key of the only row of a box that does not depend on its parent's state
_SHOWN = 8  # names in a message

Names = tuple[str, ...]


class ShortOutcomes(NamedTuple):
    """States of a box, their rewards (None: no reward), and a row for each state of the parent."""

    states: list[str]
    rewards: list[float | None]
    rows: Mapping[str | None, dict[str, float]]

    def law(self, where: str, above: Names | None) -> FloatArray:
        """A vector for a root, else a matrix with a row for each state of the parent."""
        if _ANY in self.rows:
            law = np.array([self.rows[_ANY].get(s, 0.0) for s in self.states])
            check_dense(len(above or ()) * len(law), where)
            return law if above is None else np.tile(law, (len(above), 1))
        check_dense(len(above or ()) * len(self.states), where)
        rows = _entries(self.rows, above or (), f"{where}: outcomes", "state of the parent")
        return np.array([[row.get(s, 0.0) for s in self.states] for row in rows])


def read_outcomes(x: Any, where: str, rewards: Any, root: bool) -> ShortOutcomes:
    """Outcomes and rewards of a box, checked; states in the order in which `Builder` puts them."""
    if not isinstance(x, dict) or not x:
        wrong(f"{where}: outcomes", "an object with at least one entry", x)
    deep = isinstance(next(iter(x.values())), dict)
    if deep and root:
        raise InvalidFile(
            f"{where}: the outcomes of a root must be {{state: probability}}, but they are nested. "
            f"Give it a parent, or only one level."
        )
    rows = {key: _row(row, where) for key, row in (x if deep else {_ANY: x}).items()}
    states = dict.fromkeys(state for row in rows.values() for state in row)
    priced = _rewards(rewards, where, tuple(states))
    rest = [s for s in states if s not in priced]
    if words := [s for s in rest if not _is_reward(s)]:
        raise InvalidFile(
            f"{where}: a state whose name is not a number needs a reward, but {shown(words[0])} "
            f'has none ({len(words)} such states). Give "rewards": {{{shown(words[0])}: ...}}, '
            f"null for a state without a reward."
        )
    rest.sort(key=float)
    return ShortOutcomes([*priced, *rest], [*priced.values(), *map(float, rest)], rows)


def read_opening(
    x: dict[str, Any], where: str, above: Names | None, own: Names, law: FloatArray,
    none: float = 0.0,
) -> FloatArray:  # fmt: skip
    """A cost, factor or duration that is an object: by own state for a root, else by the parent's.

    ``none`` stands for own states that cannot occur.
    """
    if above is None:
        return _opening_row(x, where, own, law, none)
    rows = _entries(x, above, where, "state of the parent")
    if all(map(is_number, rows)):
        return np.array(rows, np.float64)
    chances = law if len(law) == len(rows) else [law] * len(rows)  # its shape is checked later
    return np.array(
        [_opening_row(row, where, own, p, none) for row, p in zip(rows, chances, strict=True)]
    )


def _opening_row(x: Any, where: str, own: Names, law: FloatArray, none: float) -> FloatArray:
    if is_number(x):
        return np.full(len(own), float(x))
    if not isinstance(x, dict):
        wrong(where, "numbers, or objects {own state: number}", x)
    found = _resolved(x, own, where, "own state")
    for state, cost in found.items():
        if not is_number(cost):
            wrong(f"{where} of {shown(state)}", "a number", cost)
    possible = [s for s, p in zip(own, law.reshape(-1), strict=False) if p > 0]
    _check_all(found, possible, where, "own state that can occur")
    return np.array([found.get(s, none) for s in own], np.float64)


def _row(x: Any, where: str) -> dict[str, float]:
    if not isinstance(x, dict) or not x:
        wrong(f"{where}: outcomes after a state of the parent", "{state: probability}", x)
    row: dict[str, float] = {}
    for key, p in x.items():
        if not is_number(p):
            wrong(f"{where}: the probability of outcome {shown(key)}", "a number", p)
        state = _canonical(name(key, f"{where}: a state"))
        if state in row:
            raise InvalidFile(
                f"{where}: states must differ, but {shown(key)} is twice in one row of outcomes. "
                f"Add up their probabilities."
            )
        row[state] = float(p)
    return row


def _rewards(x: Any, where: str, states: Names) -> dict[str, float | None]:
    if not isinstance(x, dict | None):
        wrong(f"{where}: rewards of outcomes", "an object", x)
    found = _resolved(x or {}, states, f"{where}: rewards", "state that occurs in outcomes")
    for state, reward in found.items():
        if reward is not None and not is_number(reward):
            wrong(f"{where}: the reward of {shown(state)}", "a number or null", reward)
    return {state: None if reward is None else float(reward) for state, reward in found.items()}


# -- names of states ---------------------------------------------------------------------------


def _is_reward(key: str) -> bool:
    return _JSON_NUMBER.fullmatch(key) is not None and math.isfinite(float(key))


def _canonical(key: str) -> str:
    """The name that a key stands for: 900 for 900.0 and 9e2."""
    return label(float(key)) if _is_reward(key) else key


def _resolved(x: Mapping[Any, Any], states: Names, where: str, what: str) -> dict[str, Any]:
    """The entries by the states that they are for."""
    known = set(states)
    found: dict[str, Any] = {}
    for key, entry in x.items():
        state = key if key in known else _canonical(key)
        if state not in known:
            raise InvalidFile(
                f"{where} must have an entry for each {what}, but {shown(key)} is none"
                f"{like(state, states)} They are {', '.join(map(shown, states[:_SHOWN]))}"
                f"{', ...' if len(states) > _SHOWN else ''}."
            )
        if state in found:
            raise InvalidFile(f"{where} must have one entry for each {what}: {shown(key)} has two.")
        found[state] = entry
    return found


def _check_all(found: dict[str, Any], states: list[str] | Names, where: str, what: str) -> None:
    missing = [state for state in states if state not in found]
    if missing:
        raise InvalidFile(
            f"{where} must have an entry for each {what}, but {shown(missing[0])} has none "
            f"({len(missing)} such states). Add it."
        )


def _entries(x: Mapping[Any, Any], states: Names, where: str, what: str) -> list[Any]:
    """The entries for all states, in their order."""
    found = _resolved(x, states, where, what)
    _check_all(found, states, where, what)
    return [found[state] for state in states]
