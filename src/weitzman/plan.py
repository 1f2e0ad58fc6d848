"""A forest laid out as operations on capped values, and one pass over them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from ._kernels import capped, structure
from ._types import FloatArray, IntArray
from .model import Forest

Progress = Callable[[int, int], None]

_PARTS = 64  # fixed, so that the result does not depend on the number of threads
_PART_LEAST = 2048  # operations below which splitting is not worth it
_CHUNK = 20_000  # operations between two calls of the progress function


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What one pass over the plan gives; ``width`` counts columns of each matrix product."""

    value: float
    gap: float
    sigma: FloatArray
    width: IntArray
    tail: tuple[FloatArray, FloatArray]  # breakpoints and tails of the best capped value


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A forest as operations on capped values: one for each class of equal subtrees, and joins."""

    forest: Forest
    class_of: IntArray
    sigma_at: IntArray  # where the indices of each class start
    op_of: IntArray
    ops: IntArray
    powers: FloatArray
    owner: IntArray
    refs: IntArray
    part_op: IntArray
    last: int
    last_power: float
    levels: FloatArray  # sorted rewards of each pool row, and the rank of each state among them
    level_at: IntArray
    rank: IntArray
    rank_at: IntArray
    outside: float
    span: float

    @classmethod
    def of(cls, forest: Forest) -> Plan:
        """Find equal subtrees and lay out the work."""
        f = forest
        sign = -1.0 if f.minimise else 1.0
        outside = sign * f.outside
        order, first, after = structure.postorder(f.parent)
        class_of, member, at, child, copies = structure.classify(
            order, first, after, f.law, f.reward, f.cost, f.count
        )
        levels, level_at, rank = _rank_rewards(sign * f.rewards.data, f.rewards.start)
        states = f.laws.shape[f.law[member], 0]
        top, inverse = np.unique(class_of[f.roots], return_inverse=True)
        top_copies = np.zeros(len(top), np.int64)
        np.add.at(top_copies, inverse, f.count[f.roots])
        cuts = _cut(top, len(member) + len(child))
        ops, powers, op_of, part_op, last, last_power = structure.build_operations(
            member, at, child, copies, f.law, f.reward, f.cost, states, top, top_copies, cuts
        )
        owner, refs = structure.assign_owners(ops, part_op, last)
        finite = levels[np.isfinite(levels)]
        ends = [finite.max(), finite.min()] if len(finite) else []
        ends += [outside] if np.isfinite(outside) else []
        return cls(
            f, class_of, np.concatenate([[0], np.cumsum(states)]), op_of, ops, powers, owner,
            refs, part_op, int(last), float(last_power), levels, level_at, rank,
            f.rewards.start, outside, float(max(ends) - min(ends)) if ends else 0.0,
        )  # fmt: skip

    def run(
        self, eps: float, clip: bool, threads: int | None = None, progress: Progress | None = None
    ) -> Run:
        """One pass: shared operations, then the parts in parallel, then what joins them."""
        f, n = self.forest, len(self.ops)
        sigma_of = np.full(n, -1, np.int64)
        sigma_of[self.op_of] = self.sigma_at[:-1]
        loc, size, room = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
        refs = self.refs.copy()
        sigma, width = np.empty(self.sigma_at[-1]), np.zeros(n, np.int64)
        low = self.outside if clip else -np.inf
        done = [0]

        def work(order: IntArray, shared: FloatArray) -> FloatArray:
            heap, state = capped.new_heap(1024)
            for i in range(0, len(order), _CHUNK):
                heap = capped.sweep(
                    order[i : i + _CHUNK], self.ops, self.powers, f.laws.data,
                    f.laws.start, self.levels, self.rank, self.rank_at, self.level_at,
                    f.costs.data, f.costs.start, f.costs.shape, low, self.outside, eps, loc, size,
                    room, refs, shared, sigma, sigma_of, width, heap, state,
                )  # fmt: skip
                done[0] += len(order[i : i + _CHUNK])
                if progress is not None:
                    progress(done[0], n)
            return heap

        def block(op: int, heap: FloatArray) -> FloatArray:
            k, w = self.ops[op, capped.STATES], room[op]
            at = loc[op] if loc[op] >= 0 else -1 - loc[op]
            return heap[at : at + capped.block_size(w, k)].copy()

        def part(p: int) -> FloatArray:
            op = int(self.part_op[p])
            if self.owner[op] == structure.SHARED:
                return block(op, common)
            order = structure.schedule(self.ops, self.owner, p, self.part_op[p : p + 1])
            return block(op, work(order, common))

        together = np.flatnonzero(self.owner == structure.SHARED)
        common = work(together, np.empty(0))
        loc[together] = -1 - loc[together]
        if len(self.part_op) == 1:
            result = part(0)
        else:
            with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
                blocks = list(pool.map(part, range(len(self.part_op))))
            at = np.cumsum([0, *map(len, blocks)])
            loc[self.part_op] = -1 - at[:-1]
            order = structure.schedule(
                self.ops, self.owner, structure.FINAL, np.array([self.last])
            )
            result = block(self.last, work(order, np.concatenate(blocks)))
        value, gap, tail = self._best(result, int(size[self.last]), int(room[self.last]))
        return Run(value, gap, sigma, width, tail)

    def _best(
        self, block: FloatArray, m: int, w: int
    ) -> tuple[float, float, tuple[FloatArray, FloatArray]]:
        """E max(outside, best of the roots), its error, and the distribution itself."""
        grid, err = block[w : w + m], block[3 * w]
        tail = block[block[2 * w : 2 * w + m].astype(np.int64)]
        if self.last_power != 1.0:
            with np.errstate(divide="ignore"):
                many = -np.expm1(self.last_power * np.log1p(-tail))
            if m:
                err = err * many[-1] / tail[-1]
            tail = many
        over = grid > self.outside
        if not over.any():
            return self.outside if m == 0 else max(self.outside, float(grid[-1])), 0.0, (grid, tail)
        start = self.outside if np.isfinite(self.outside) else grid[0]
        edges = np.concatenate([[start], np.maximum(grid[over], start)])
        value = start + float(np.sum((tail[over] * np.diff(edges))[::-1]))
        return value, float(err), (grid, tail)


def _cut(top: IntArray, work: int) -> IntArray:
    """Boundaries of the parts of the roots, about equal in work (class numbers follow the trees)."""
    parts = max(1, min(_PARTS, work // _PART_LEAST, len(top)))
    want = np.linspace(0, top[-1] + 1, parts + 1)[1:-1]
    inner = np.searchsorted(top, want)
    return np.unique(np.concatenate([[0], inner, [len(top)]])).astype(np.int64)


def _rank_rewards(
    data: FloatArray, start: IntArray
) -> tuple[FloatArray, IntArray, IntArray]:
    """Sorted distinct rewards of each row, and the rank of each state among them (-1: none)."""
    row = np.repeat(np.arange(len(start) - 1), np.diff(start))
    by = np.lexsort((data, row))
    value, owner = data[by], row[by]
    real = value != -np.inf
    new = real.copy()
    new[1:] &= (value[1:] != value[:-1]) | (owner[1:] != owner[:-1])
    levels = value[new]
    level_at = np.zeros(len(start), np.int64)
    np.add.at(level_at, owner[new] + 1, 1)
    level_at = np.cumsum(level_at)
    rank = np.full(len(data), -1, np.int64)
    rank[by[real]] = (np.cumsum(new) - 1)[real] - level_at[owner[real]]
    return levels, level_at, rank
