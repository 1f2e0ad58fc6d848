"""Bounds on what lies below each kind of box, from one look at the columns.

Boxes are of one kind if they share a law and a row of rewards. Forests that are worth cutting have
few kinds (a static line has one), so the bounds cost next to
nothing however long the lines are. See :mod:`weitzman._kernels.ceilings` for why they are bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._common.arrays import FloatArray, IntArray, frozen
from .._kernels import ceilings, structure
from ..forest.model import Forest

_ROUNDS = 10_000  # at most: bounds are bounds whenever one stops
_WORK = 5e7  # products of all rounds together: some tenths of a second
_STEADY = 1e-9  # fall of the bounds in a round that is no longer worth a round, of the range


@dataclass(frozen=True, slots=True, eq=False)
class Ceiling:
    """No capped value below a box of kind q that shows y exceeds ``below[at[q] + y]``."""

    kind: IntArray  # of each box
    reward: IntArray  # row of rewards of each kind
    below: FloatArray  # as if maximizing
    at: IntArray

    @classmethod
    def of(cls, forest: Forest, order: IntArray) -> Ceiling:
        """For all boxes of a forest; ``order`` has children before parents."""
        f = forest
        kind, law, reward = _kinds(f, order)
        start, at = _starts(f.laws.shape[law, 0]), _starts(f.laws.shape[law, 1])
        cost = ceilings.least_costs(kind, f.law, f.cost, f.laws.matrices, f.costs.matrices, start)
        edge_at, edge = _edges(f, kind, len(law))
        rewards = -f.rewards.data if f.minimize else f.rewards.data
        finite = rewards[np.isfinite(rewards)]
        index = np.full(start[-1], finite.max(initial=-np.inf))
        below, span = np.empty(at[-1]), float(np.ptp(finite)) if len(finite) else 0.0
        work = float(f.laws.shape[law].prod(axis=1).sum() + len(edge))
        circles = (edge >= np.repeat(np.arange(len(law)), np.diff(edge_at))).any()
        rounds = max(1, int(min(_ROUNDS, _WORK / work))) if circles else 1
        ceilings.settle(
            f.laws.matrices, f.rewards.matrices._replace(data=frozen(rewards)),
            ceilings.Kinds(law, reward, cost, start, edge_at, edge),
            ceilings.Ceilings(index, below, at), rounds, _STEADY * span,
        )  # fmt: skip
        return cls(kind, reward, below, at)


def _kinds(forest: Forest, order: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The kind of each box, and law and rewards of each kind; kinds come in the order of boxes."""
    law, reward = forest.law[order], forest.reward[order]
    new = np.flatnonzero((np.diff(law) != 0) | (np.diff(reward) != 0)) + 1
    run = np.concatenate([[0], new])  # most boxes are of the kind of the one before
    number, first = _number(np.column_stack([law[run], reward[run]]))
    kind = np.empty(len(order), np.int64)
    kind[order] = np.repeat(number, np.diff(np.append(run, len(order))))
    return kind, law[run[first]], reward[run[first]]


def _number(rows: IntArray) -> tuple[IntArray, IntArray]:
    """A number for each row, the same for equal rows; and the first row of each number."""
    at = np.arange(len(rows) + 1, dtype=np.int64) * rows.shape[1]
    number, first = structure.intern_rows(
        frozen(np.ascontiguousarray(rows).reshape(-1)), frozen(at)
    )
    return number, first


def _edges(forest: Forest, kind: IntArray, kinds: int) -> tuple[IntArray, IntArray]:
    """The kinds that follow each kind: ``edge[edge_at[q]:edge_at[q + 1]]``."""
    pairs = ceilings.follow_ups(forest.parent, kind, kinds).reshape(-1, 2)
    again = np.unique(kind[forest.endless])  # an endless box follows itself
    pairs = np.concatenate([pairs, np.column_stack([again, again])])
    if len(pairs):
        pairs = pairs[_number(pairs)[1]]
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    return _starts(np.bincount(pairs[:, 0], minlength=kinds)), np.ascontiguousarray(pairs[:, 1])


def _starts(sizes: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
