"""Chain files: a transition matrix with rewards, and perhaps a cost, as strict JSON."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import FloatArray
from ..chains.chain import Chain
from ..chains.checks import as_costs, as_first
from ..errors import InvalidFile
from .parsing import array, fields, is_number, like, name, numbers, wrong
from .safely import explained, read_document, shown

FORMAT = "weitzman-chain/1"
_KEYS = ("format", "law", "rewards", "states", "cost", "start", "outside", "note")
_LARGEST = 2**28  # bytes: a dense law of 3,000 states or so


class ChainFile(NamedTuple):
    """What a file says."""

    chain: Chain
    states: tuple[str, ...]
    cost: FloatArray | None
    start: int | FloatArray | None  # the state before the first box, or the law of that box
    outside: float


def read_chain(path: str) -> ChainFile:
    """Read a chain, or say what is wrong with the file."""
    with explained(path, "read"):
        return _chain(read_document(path, _LARGEST))


def _chain(document: Any) -> ChainFile:
    if isinstance(document, dict) and document.get("format") != FORMAT:
        found = shown(document["format"]) if "format" in document else "missing"
        hint = " That is an instance; see weitzman solve." if found == "'weitzman/1'" else ""
        raise InvalidFile(f'format must be "{FORMAT}", but it is {found}.{hint}')
    top = fields(document, "the document", _KEYS)
    for key in ("law", "rewards"):
        if key not in top:
            raise InvalidFile(f"a chain needs `law` and `rewards`, but there is no `{key}`.")
    chain = Chain(array(top["law"], "law"), _rewards(top["rewards"]))
    states = _states(top, len(chain))
    cost = top.get("cost")
    if cost is not None:
        cost = as_costs(cost if is_number(cost) else array(cost, "cost"), len(chain))
    outside = top.get("outside", 0)
    if not is_number(outside):
        wrong("outside", "a number", outside)
    return ChainFile(chain, states, cost, _start(top, chain, states), float(outside))


def _rewards(x: Any) -> FloatArray:
    if not isinstance(x, list):
        wrong("rewards", "a list with a number for each state", x)
    given = [0.0 if v is None else v for v in x]
    found = numbers(given, "rewards", "a number, or null for a state without a reward")
    return np.where([v is None for v in x], -np.inf, found)


def _states(top: dict[str, Any], size: int) -> tuple[str, ...]:
    x = top.get("states")
    if x is None:
        return tuple(map(str, range(size)))
    if not isinstance(x, list) or len(x) != size:
        wrong("states", f"a list of {size} names, one for each row of the law", x)
    names = tuple(name(v, f"states[{i}]") for i, v in enumerate(x))
    twice = [v for i, v in enumerate(names) if v in names[:i]]
    if twice:
        raise InvalidFile(f"names of states must differ, but {shown(twice[0])} appears twice.")
    return names


def _start(top: dict[str, Any], chain: Chain, states: tuple[str, ...]) -> int | FloatArray | None:
    x = top.get("start")
    if x is None:
        return None
    if isinstance(x, str):
        if x not in states:
            raise InvalidFile(f"start: there is no state {shown(x)}{like(x, states)}")
        return states.index(x)
    if not isinstance(x, list):
        wrong("start", "the name of a state, or a list of probabilities", x)
    return as_first(numbers(x, "start"), chain.law)
