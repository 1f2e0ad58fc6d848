"""The short forms of a box, as in :class:`Builder`: objects whose keys are names of states.

``outcomes`` are ``{state: probability}``, for a child also ``{state of the parent: {state:
probability}}``. A state is named by its reward, or by a word whose reward is in ``rewards``. A
``cost`` may be an object in the same way.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._common.arrays import FloatArray
from ..errors import InvalidFile, InvalidForest
from ..forest.columns import label
from ..forest.forms import ANY, ShortOutcomes, check_keys, opening_matrix
from .parsing import check_dense, is_number, name, wrong
from .safely import shown

_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")

Names = tuple[str, ...]


@contextmanager
def _at(where: str) -> Iterator[None]:
    """Say where in the file something is wrong."""
    try:
        yield
    except InvalidForest as error:
        raise InvalidFile(f"{where}: {error}") from None


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
    rows = {key: _row(row, where) for key, row in (x if deep else {ANY: x}).items()}
    states = tuple(dict.fromkeys(state for row in rows.values() for state in row))
    check_dense(len(rows) * len(states), where)
    with _at(where):
        return ShortOutcomes.of(rows, _rewards(rewards, where, states), _amount)


def read_law(outcomes: ShortOutcomes, where: str, above: Names | None) -> FloatArray:
    """The law of the outcomes, a row for each state of the parent (one for a root)."""
    check_dense(len(above or ()) * len(outcomes.states), where)
    rows: dict[Any, FloatArray] = outcomes.rows
    if above is not None and ANY not in rows:
        rows = _resolved(rows, above, f"{where}: outcomes", "state of the parent")
    with _at(where):
        return outcomes._replace(rows=rows).law(above, "outcomes", "state of the parent")


def read_opening(
    x: dict[str, Any], where: str, above: Names | None, own: Names, law: FloatArray,
    none: float = 0.0,
) -> FloatArray:  # fmt: skip
    """A cost, factor or duration that is an object: by own state for a root, else by the parent's.

    ``none`` stands for own states that cannot occur.
    """
    shape = (1 if above is None else len(above), len(own))
    fits = law.shape in (shape, shape[1:])  # if not, that is told later
    chances = np.broadcast_to(law, shape) if fits else np.zeros(shape)
    given = _by_state(x, where, own if above is None else above, None if above is None else own)
    place, _, what = where.rpartition(": ")
    with _at(place):
        return opening_matrix(given, own, above, chances, (what, "state of the parent"), none)


def _by_state(x: dict[str, Any], where: str, states: Names, own: Names | None) -> dict[str, Any]:
    """Numbers by state; with ``own``, also objects in their place, by own state."""
    found = _resolved(x, states, where, "state")
    for state, entry in found.items():
        if own is not None and isinstance(entry, dict):
            found[state] = _by_state(entry, f"{where} of {shown(state)}", own, None)
        elif not is_number(entry):
            other = "" if own is None else ", or an object {own state: number}"
            wrong(f"{where} of {shown(state)}", f"a number{other}", entry)
    return found


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
    found = _resolved(x or {}, states, f"{where}: rewards", "state")
    with _at(where):
        check_keys(found, states, (), "rewards", "state that occurs in outcomes")
    for state, reward in found.items():
        if reward is not None and not is_number(reward):
            wrong(f"{where}: the reward of {shown(state)}", "a number or null", reward)
    return {state: None if reward is None else float(reward) for state, reward in found.items()}


# -- names of states ---------------------------------------------------------------------------


def _amount(key: str) -> float | None:
    """The reward that a state is named by; None for a word."""
    fits = _JSON_NUMBER.fullmatch(key) is not None and math.isfinite(float(key))
    return float(key) if fits else None


def _canonical(key: str) -> str:
    """The name that a key stands for: 900 for 900.0 and 9e2."""
    amount = _amount(key)
    return key if amount is None else label(amount)


def _resolved(x: Mapping[Any, Any], states: Names, where: str, what: str) -> dict[str, Any]:
    """The entries by state; an entry that belongs to no state keeps its key."""
    known = set(states)
    found: dict[str, Any] = {}
    for key, entry in x.items():
        state = key if key in known or _canonical(key) not in known else _canonical(key)
        if state in found:
            raise InvalidFile(f"{where} must have one entry for each {what}: {shown(key)} has two.")
        found[state] = entry
    return found
