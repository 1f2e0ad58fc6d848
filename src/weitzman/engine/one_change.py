"""New numbers of one box: checked as those of a forest are, and put into forests and plans."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import FloatArray, frozen
from .._common.numbers import counted
from .._kernels import structure
from .._kernels.capped import Program
from .._kernels.operations import COST, LAW, REWARD, USER
from ..errors import InvalidForest
from ..forest.model import Forest
from .plan import KnownValues, Plan, up_to_top
from .weights import Weights


class Change(NamedTuple):
    """New matrices of one box; None where the box stays as it is."""

    box: int
    cost: FloatArray | None = None
    law: FloatArray | None = None
    rewards: FloatArray | None = None

    @classmethod
    def to_equal(cls, f: Forest, box: int, rewards: bool) -> Change:
        """The same rewards, or the same cost, but no longer shared with other boxes."""
        if rewards:
            return cls(box, rewards=f.rewards[int(f.reward[box])])
        return cls(box, cost=f.costs[int(f.cost[box])])

    def made(self, f: Forest) -> Forest:
        """The forest with this change."""
        out: dict[str, Any] = {}
        for name, matrix in (("cost", self.cost), ("law", self.law), ("reward", self.rewards)):
            if matrix is not None:
                pool, which = getattr(f, name + "s"), getattr(f, name).copy()
                which[self.box] = len(pool)
                out[name], out[name + "s"] = which, pool.with_more([matrix])
        if self.cost is not None:
            for name in ("factors", "durations"):
                if (pool := getattr(f, name)) is not None:
                    out[name] = pool.with_more([pool[int(f.cost[self.box])]])
        if self.rewards is not None:
            out["state_names"] = (*f.state_names, f.state_names[int(f.reward[self.box])])
        return replace(f, **out) if out else f


class Replaced(NamedTuple):
    """A change as the recursion reads it."""

    law: FloatArray
    cost: FloatArray
    defect: FloatArray  # empty where laws are not weighed
    rewards: FloatArray | None  # to be maximized; None: as they are
    levels: FloatArray
    known: KnownValues | None  # of an endless box

    @classmethod
    def of(cls, small: Forest, change: Change, plan: Plan) -> Replaced:
        """From a box and its parent alone, with the change made: see :func:`with_parent`."""
        last, w = len(small) - 1, Weights.of(small)
        known = None
        if plan.forest.endless[change.box]:
            alone = np.zeros(len(small), bool)
            alone[last] = True
            known = Plan.of(replace(small, endless=alone)).known
        missing = w.missing(last)
        rewards = None
        levels = np.empty(0)
        if change.rewards is not None:
            rewards = plan.weights.written(small.sign * change.rewards.reshape(-1))
            ends = frozen(np.array([0, len(rewards)]))
            sorted_levels = structure.sort_levels(frozen(rewards), ends)
            levels, _ = up_to_top(plan.weights.top, *sorted_levels)
        return cls(
            w.laws[int(w.law[last])], w.costs[int(w.cost[last])],
            np.empty(0) if missing is None else missing, rewards, levels, known,
        )  # fmt: skip

    def put_into(self, program: Program, op: int) -> Program:
        """A program in which an operation, that of the box, reads the new numbers."""
        if self.known is not None:
            return _with_known(program, op, self.known)
        ops = program.ops.copy()
        parts: dict[str, Any] = _appended(program, "law", self.law.reshape(-1))
        parts |= _appended(program, "cost", self.cost.reshape(-1))
        parts["cost_shape"] = np.concatenate([program.cost_shape, [self.cost.shape]])
        if program.weighed:
            parts["defect"] = np.concatenate([program.defect, self.defect])
            parts["defect_at"] = np.append(program.defect_at, program.defect_at[-1])
            parts["defect_at"][-1] += len(self.defect)
        ops[op, LAW], ops[op, COST] = len(program.law_at) - 1, len(program.cost_at) - 1
        if self.rewards is not None:  # no other box has this row: see `Ways`
            row, new = ops[op, REWARD], len(program.reward_at) - 1
            for column in (REWARD, USER):
                ops[ops[:, column] == row, column] = new
            parts |= _appended(program, "reward", self.rewards)
            parts |= _appended(program, "level", self.levels)
        return program._replace(ops=ops, **parts)


_DATA = {"law": "laws", "cost": "costs", "reward": "reward", "level": "levels"}


def _appended(program: Program, name: str, more: FloatArray) -> dict[str, Any]:
    """A list of rows with one more at its end."""
    at, data = getattr(program, f"{name}_at"), getattr(program, _DATA[name])
    return {
        _DATA[name]: np.concatenate([data[: at[-1]], more]),
        f"{name}_at": np.append(at, at[-1] + len(more)),
    }


def _with_known(program: Program, op: int, known: KnownValues) -> Program:
    """A program with another value of an endless box."""
    at, size = program.known_at.copy(), program.known_size.copy()
    at[op], size[op] = len(program.known), known.size.max()
    return program._replace(
        known=np.concatenate([program.known, known.data]), known_at=at, known_size=size
    )


def with_parent(f: Forest, box: int) -> Forest:
    """A forest of a box and its parent alone: what is a law or a cost there is one in the whole."""
    up = int(f.parent[box])
    boxes = [box] if up < 0 else [up, box]
    return f.take(
        boxes,
        parent=[-1] if up < 0 else [-1, 0],
        after=[-1] if up < 0 else [-1 if f.parent[up] < 0 else 0, -1],
        count=np.ones(len(boxes), np.int64),
        endless=np.zeros(len(boxes), bool),
        names=None if f.names is None else tuple(f.name(v) for v in boxes),
        prizes=1,
    )


def checked(
    small: Forest, box: int, cost: ArrayLike | None, law: ArrayLike | None,
    rewards: ArrayLike | None,
) -> tuple[Change, Forest]:  # fmt: skip
    """New matrices of the last box of a small forest, as a forest would have them, and it."""
    last = len(small) - 1
    entry = matrix = row = None
    if law is not None:
        small = Change(last, law=np.atleast_2d(np.asarray(law, np.float64))).made(small)
        matrix = small.laws[int(small.law[last])]
    if cost is not None:
        small = small.changed(cost={last: cost})
        entry = small.costs[int(small.cost[last])]
    if rewards is not None:
        given = np.asarray(rewards, np.float64).reshape(1, -1)
        states = len(small.states(last))
        if given.size != states:
            raise InvalidForest(
                f"box {small.name(last)!r} has {counted(states, 'state')}, but {given.size} "
                f"rewards are given. Give a reward for each state."
            )
        small = Change(last, rewards=given).made(small)
        row = small.rewards[int(small.reward[last])]
    return Change(box, entry, matrix, row), small
