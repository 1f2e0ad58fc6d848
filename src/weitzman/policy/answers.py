"""Which state a reward stands for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from .._common.arrays import FloatArray, IntArray
from ..errors import InvalidAnswer
from ..forest.model import Forest

Rule = Literal["refuse", "nearest"] | Sequence[float]
"""What to make of a reward that is not among those of the box."""

_SHOWN = 8  # rewards told in a message


def checked_rule(rule: Rule) -> Literal["refuse", "nearest"] | tuple[float, ...]:
    """The rule as it is kept, once it is known to be one."""
    if isinstance(rule, str):
        if rule in ("refuse", "nearest"):
            return rule
        edges: tuple[float, ...] = ()
    else:
        try:
            edges = tuple(float(x) for x in rule)
        except (TypeError, ValueError):
            edges = ()
    rising = all(a < b for a, b in pairwise(edges))
    if not edges or not rising or not all(map(math.isfinite, edges)):
        raise InvalidAnswer(
            f'`rewards` must be "refuse", "nearest" or a rising list of finite edges of bins, but '
            f"got {rule!r}."
        )
    return edges


def number(x: object, what: str) -> float:
    """A finite number, or an error."""
    try:
        if isinstance(x, str | bytes | bool):
            raise TypeError
        value = float(x)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise InvalidAnswer(f"{what} must be a finite number, but got {x!r}.")
    return value + 0.0  # -0.0 and 0.0 are one number


def state_of(forest: Forest, box: int, above: int, reward: float, rule: Rule) -> int:
    """The state that a reward stands for: the one that has it, else by the rule.

    States that are impossible after ``above``, the state of the parent, only count if no possible
    one has that very reward.
    """
    rewards = forest.rewards[int(forest.reward[box])][0]
    likely = np.where(forest.laws[int(forest.law[box])][above] > 0, rewards, np.nan)
    found = np.flatnonzero(likely == reward)
    if len(found) == 0:
        found = np.flatnonzero(rewards == reward)
    if len(found) == 0:
        found = _by_rule(likely, reward, rule, forest.name(box))
    if len(found) > 1:
        shared = ", ".join(forest.states(box)[y] for y in found[:_SHOWN].tolist())
        raise InvalidAnswer(
            f"a reward must tell the state, but {reward:g} fits {len(found)} states of box "
            f"{forest.name(box)!r}: {shared}. Give the state as well."
        )
    return int(found[0])


def _by_rule(rewards: FloatArray, reward: float, rule: Rule, name: str) -> IntArray:
    finite = np.unique(rewards[np.isfinite(rewards)])
    if rule == "refuse" or finite.size == 0:
        known = ", ".join(f"{x:.12g}" for x in finite[:_SHOWN]) or "none"
        more = f" and {len(finite) - _SHOWN} more" if len(finite) > _SHOWN else ""
        raise InvalidAnswer(
            f"{reward:.12g} is not among the rewards of box {name!r}, which are {known}{more}. "
            f'Give the state, or start the search with rewards="nearest" or with edges of bins.'
        )
    if rule == "nearest":
        return np.flatnonzero(rewards == finite[np.argmin(np.abs(finite - reward))])
    edges = np.asarray(rule, np.float64)
    bins, own = np.searchsorted(edges, rewards, side="right"), int(np.sum(edges <= reward))
    found = np.flatnonzero((bins == own) & np.isfinite(rewards))
    if len(found) == 0:
        ends = [-math.inf, *map(float, edges), math.inf]
        raise InvalidAnswer(
            f"box {name!r} has no reward in the bin from {ends[own]:g} to {ends[own + 1]:g}, where "
            f"{reward:g} lies. Give the state."
        )
    return found
