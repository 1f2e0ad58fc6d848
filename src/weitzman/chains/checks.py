"""The rules for chains and for the arguments of their methods, one small function each."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._common.numbers import counted, such
from .._common.optional import need
from ..errors import InvalidArgument, InvalidForest, UnknownName
from ..forest.columns import short
from ..forest.rules import MAX_AMOUNT, SUM_TOLERANCE


def as_law(law: Any) -> Any:
    """An own copy, dense or in SciPy's CSR form, each row scaled to sum to one."""
    if hasattr(law, "tocsr"):
        own = need("scipy.sparse", "scipy").csr_array(law, dtype=np.float64, copy=True)
        own.sum_duplicates()
        own.eliminate_zeros()
        _check_law(own.shape, own.data, own.nonzero(), own.sum(axis=1))
        own.data /= np.repeat(own.sum(axis=1), np.diff(own.indptr))
        for part in (own.data, own.indices, own.indptr):
            part.flags.writeable = False
        return own
    try:
        dense = np.array(law, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidForest(f"a law must be a table of numbers, but got {short(law)}.") from error
    where = np.unravel_index(np.arange(dense.size), dense.shape) if dense.ndim == 2 else ()
    _check_law(dense.shape, dense.reshape(-1), where, dense.sum(axis=1) if dense.ndim == 2 else ())
    dense /= dense.sum(axis=1, keepdims=True)
    dense.flags.writeable = False
    return dense


def _check_law(shape: Any, data: FloatArray, where: Any, mass: Any) -> None:
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
        raise InvalidForest(
            f"the law of a chain must be a square matrix with a row for each state, but its shape "
            f"is {shape}."
        )
    wrong = np.flatnonzero(~((data >= 0) & (data <= 1 + SUM_TOLERANCE)))  # also finds NaN
    if len(wrong):
        i = wrong[0]
        raise InvalidForest(
            f"probabilities must lie between 0 and 1, but in the law of the chain the entry "
            f"[{where[0][i]}, {where[1][i]}] is {data[i]:.6g} ({such(len(wrong), 'entry')})."
        )
    bad = np.flatnonzero(np.abs(mass - 1) > SUM_TOLERANCE)
    if len(bad):
        raise InvalidForest(
            f"probabilities must sum to 1, but those after state {bad[0]} sum to "
            f"{mass[bad[0]]:.9g} ({such(len(bad), 'row')}). Rescale the row, or give the missing "
            f"mass a state of its own."
        )


def as_rewards(rewards: Any, size: int) -> FloatArray:
    """One reward per state: finite, or minus infinity for a signal that cannot be taken."""
    try:
        own = np.array(rewards, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidForest(f"rewards must be numbers, but got {short(rewards)}.") from error
    if own.shape != (size,):
        raise InvalidForest(
            f"a chain needs one reward per state, but there are "
            f"{counted(size, 'state')} and rewards of shape {own.shape}."
        )
    wrong = np.flatnonzero(~((np.abs(own) <= MAX_AMOUNT) | (own == -np.inf)))
    if len(wrong):
        raise InvalidForest(
            f"rewards must be finite (-inf marks a state without one) and at most {MAX_AMOUNT:g} "
            f"in size, but state {wrong[0]} has {own[wrong[0]]} ({such(len(wrong), 'reward')})."
        )
    own.flags.writeable = False
    return own


def as_states(states: Any, size: int) -> IntArray:
    """Numbers of states, as a set."""
    given = np.atleast_1d(np.asarray(states))
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
        raise InvalidArgument(f"states are given by their numbers, but got {short(states)}.")
    bad = np.flatnonzero((given < 0) | (given >= size))
    if len(bad):
        raise UnknownName(f"there is no state {given[bad[0]]}: they go from 0 to {size - 1}.")
    return np.unique(given).astype(np.int64)


def as_first(start: Any, law: Any) -> FloatArray:
    """The law of the first box: given itself, or as the state that the box before it showed."""
    size = law.shape[0]
    if np.ndim(start) == 0:
        row = law[[int(as_states(start, size)[0])]]
        return np.array(row.toarray() if hasattr(row, "toarray") else row, np.float64).reshape(-1)
    first = np.array(start, np.float64)
    if first.shape != (size,):
        raise InvalidArgument(
            f"a start is a state, or a distribution over the {size} states, but its shape is "
            f"{first.shape}."
        )
    if not ((first >= 0).all() and abs(first.sum() - 1) <= SUM_TOLERANCE):
        raise InvalidArgument(
            f"the distribution of the first box must be of numbers from 0 to 1 that sum to 1, but "
            f"it is {short(first.tolist())}."
        )
    return np.asarray(first / first.sum())


def as_costs(cost: Any, size: int) -> FloatArray:
    """The cost of the next box after each state; one number stands for all."""
    try:
        own = np.array(cost, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidForest(f"costs must be numbers, but got {short(cost)}.") from error
    if own.shape not in ((), (size,)):
        raise InvalidForest(
            f"the cost is one number, or one for each of the {size} states before it, but has "
            f"shape {own.shape}."
        )
    own = np.array(np.broadcast_to(own, size))
    wrong = np.flatnonzero(~((own >= 0) & (own <= MAX_AMOUNT)))
    if len(wrong):
        raise InvalidForest(
            f"costs must be from 0 to {MAX_AMOUNT:g}, but after state {wrong[0]} it is "
            f"{own[wrong[0]]:.6g} ({such(len(wrong), 'cost')})."
        )
    own.flags.writeable = False
    return own


def as_steps(t: Any, least: int = 0) -> int:
    """A number of boxes."""
    if isinstance(t, (int, np.integer)) and not isinstance(t, bool) and t >= least:
        return int(t)
    raise InvalidArgument(
        f"a number of boxes is a whole number from {least} on, but got {short(t)}."
    )


def as_share(x: Any, name: str, least: float) -> float:
    """A probability that is neither certain nor below what rounding allows."""
    if least <= x < 1:
        return float(x)
    raise InvalidArgument(f"`{name}` must lie from {least:g} to below 1, but is {x}.")
