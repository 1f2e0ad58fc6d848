"""What a policy will do, exactly: openings, choices, spending, before anything is opened.

One pass forward and one back through the operations of the plan, for any index policy (see
:mod:`weitzman._kernels.reach`); no simulation, no enumeration.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._common.arrays import FloatArray, IntArray, frozen
from .._common.interruption import check, interruptible
from .._kernels import operations, reach, step_functions, structure
from .._kernels.blocks import new_heap
from .._kernels.structure import schedule
from ..chains.following import Following
from ..forest.model import Forest
from .boldness import opens_more
from .by_box import ByBox, PerBox
from .evaluation_result import Evaluation as Evaluation
from .evaluation_result import Worth
from .indices import Policy
from .plan import Pass, Plan, check_threads, in_trees
from .prizes import openings_left, ranks_by_tree
from .reaching import NEVER, box_count, in_reach
from .solution import Solution, as_policy, mean_costs, mean_durations
from .weights import Weights

_Steps = tuple[FloatArray, FloatArray]  # points, and rows of states (n, k)

# masses below this (in units of one rank over all ranks) are merged in the forward pass
_EPS = 1e-20
_LEAST = 1e-17  # steps of a probability not worth keeping on the way back
_FIRST_ROOTS = 64  # trees looked at before more are
_KEEP = 2**30  # bytes of values kept from the way forward; beyond, they are computed again


def evaluate(policy: Policy | Solution, *, threads: int | None = None) -> Evaluation:
    """Exactly what following a policy leads to.

    Parameters
    ----------
    policy : Policy or Solution
        The optimal policy of a solution, or any index policy.
    threads : int, optional
        All cores by default.

    Returns
    -------
    Evaluation

    Notes
    -----
    For the optimal policy ``opened`` is also minus the derivative of the value in the cost of each
    box, and ``chosen`` its derivative in each reward (where these exist).
    """
    check_threads(threads)
    rule = as_policy(policy, "evaluate")
    optimal = isinstance(policy, Solution)
    return interruptible(lambda: _evaluate(rule, optimal, threads))


def _evaluate(policy: Policy, optimal: bool, threads: int | None) -> Evaluation:
    """Follow a policy, and once more with weights in place of probabilities where they differ."""
    plain = Weights.plain(policy.forest)
    truly = follow(policy, plain, threads)
    weights = Weights.of(policy.forest)
    if len(weights.defect) == 0:
        return _summary(policy.forest, truly, truly, weights)
    if weights.tolerance > 0 and not optimal and opens_more(policy, threads):
        weights = replace(weights, all_points=True)
    return _summary(policy.forest, truly, follow(policy, weights, threads), weights)


class _Followed(NamedTuple):
    """Openings after each state of the parent, choices of each state, and of the outside option."""

    opened: FloatArray
    opened_at: IntArray
    chosen: FloatArray
    chosen_at: IntArray
    none: float


def follow(policy: Policy, weights: Weights, threads: int | None) -> _Followed:
    """Follow a policy, with the weights in place of probabilities."""
    f = policy.forest
    own = f.rewards.shape[f.reward, 1]
    given = f.laws.shape[f.law, 0]
    opened_at, chosen_at = _starts(given), _starts(own)
    order, _, _ = structure.postorder(f.parent)
    first = policy.index[policy.index_at[policy.root]]
    useful = max(int(np.searchsorted(-first, -policy.outside)), 1)  # roots that may be opened
    found, tried = None, _FIRST_ROOTS
    while found is None:  # the best trees alone, until the next is practically never reached
        roots = policy.root[: min(tried, useful)]
        beyond = float(first[tried]) if tried < useful else None
        boxes = np.sort(in_reach(policy, weights, order[in_trees(f.parent, order, roots)]))
        ranks = _ranks(policy, opened_at, chosen_at, boxes, beyond)
        keys = np.arange(len(f))
        lines = _lines(weights, ranks, opened_at, chosen_at, boxes)
        if len(weights.defect):  # what is missing from a row lies above all ranks
            weights = replace(weights, top=ranks.above_all)
        plan = Plan.lay_out(
            weights, keys, keys, ranks.rewards, chosen_at, ranks.outside,
            {v: line.capped() for v, line in lines.items()}.__getitem__, (roots, boxes),
        )  # fmt: skip
        member = np.empty(len(boxes), np.int64)
        member[plan.class_of[boxes]] = boxes
        shift = np.repeat(opened_at[:-1][member] - plan.sigma_at[:-1], given[member])
        take = shift + np.arange(plan.sigma_at[-1])
        trees = {}
        if f.prizes > 1:
            trees = ranks_by_tree(plan, roots, ranks.indices, opened_at, ranks.rewards, chosen_at)
        found = _both_ways(plan, ranks.indices[take], ranks, lines, trees, threads)
        tried *= 8
    opened, chosen, none = found
    back = np.zeros(opened_at[-1])
    back[take] = opened
    return _Followed(back, opened_at, chosen, chosen_at, none)


def _starts(sizes: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


class _Ranks(NamedTuple):
    """Places in one total order: of indices and rewards, and of what bounds them."""

    indices: FloatArray
    rewards: FloatArray
    outside: float
    beyond: float | None  # all that is not above the next root's index lies below this
    above_all: float


def _ranks(
    policy: Policy, index_at: IntArray, reward_at: IntArray, boxes: IntArray, beyond: float | None
) -> _Ranks:
    """Places of the indices and rewards of some boxes in one total order.

    From low to high at equal numbers: indices, then rewards (an index must exceed a reward), each
    with the lowest box number last; the outside option above all. Other boxes get minus infinity.
    """
    f = policy.forest
    at_index, index = _gather(policy.index, policy.index_at, index_at, boxes)
    at_reward, rewards = _gather(policy.rewards, f.rewards.start[f.reward], reward_at, boxes)
    values = np.concatenate([index[::-1], rewards[::-1], [policy.outside]])
    by = np.argsort(values)  # and then the ties: much faster than a stable sort
    structure.order_ties(by, values)
    rank = np.empty(len(values))
    rank[by] = np.arange(len(values))
    i, r = np.full(index_at[-1], -np.inf), np.full(reward_at[-1], -np.inf)
    i[at_index] = np.where(index > -np.inf, rank[: len(index)][::-1], -np.inf)
    r[at_reward] = np.where(rewards > -np.inf, rank[len(index) : -1][::-1], -np.inf)
    outside = float(rank[-1]) if np.isfinite(policy.outside) else -np.inf
    limit = None if beyond is None else float(np.count_nonzero(values <= beyond)) - 0.5
    return _Ranks(i, r, outside, limit, float(len(values)))


def _gather(
    data: FloatArray, source: IntArray, target: IntArray, boxes: IntArray
) -> tuple[IntArray, FloatArray]:
    """Where the entries of some boxes go, and the entries themselves."""
    sizes = np.diff(target)[boxes]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return (
        np.repeat(target[boxes], sizes) + within,
        np.asarray(data[np.repeat(source[boxes], sizes) + within]),
    )


def _lines(
    w: Weights, ranks: _Ranks, index_at: IntArray, reward_at: IntArray, boxes: IntArray
) -> dict[int, Following]:
    """The endless lines among some boxes, followed by their ranks."""
    f = w.forest
    return {
        v: Following(
            w.laws[int(w.law[v])], ranks.rewards[reward_at[v] : reward_at[v + 1]],
            ranks.indices[index_at[v] : index_at[v + 1]], ranks.outside, f.name(v), w.missing(v),
        )
        for v in boxes[f.endless[boxes]].tolist()
    }  # fmt: skip


def _both_ways(
    plan: Plan, sigma: FloatArray, ranks: _Ranks, lines: dict[int, Following],
    trees: dict[int, FloatArray], threads: int | None,
) -> tuple[FloatArray, FloatArray, float] | None:  # fmt: skip
    """Forward for the values of the parts, back through what joins them, then part by part.

    With several prizes nothing is joined: ``trees`` are then the ranks of each tree. None if what
    lies beyond the plan may still be reached.
    """
    rewards, beyond = ranks.rewards, ranks.beyond
    opened, chosen = np.zeros(len(sigma)), np.zeros(len(rewards))
    copies = box_count(plan.forest)
    eps, least = _EPS * max(plan.span, 1.0) / copies, _LEAST / copies
    eps = -np.inf if plan.weights.all_points else eps  # masses may be negative
    step = Pass.start(plan, eps, -np.inf, sigma)
    _hold_operands(step)
    line_at = {int(plan.op_of[plan.class_of[v]]): (v, line) for v, line in lines.items()}
    for v, line in lines.items():
        step.clear[plan.reward_at[v] : plan.reward_at[v + 1]] = line.clear()
    parts = len(plan.part_op)
    seen, seen_n = np.zeros(len(plan.ops), np.int64), np.zeros(len(plan.ops), np.int64)
    route = reach.Route(
        ops=plan.ops, powers=plan.powers, laws=frozen(plan.weights.laws.data),
        law_at=frozen(plan.weights.laws.start), ranks=rewards, rank_at=plan.reward_at,
        levels=plan.levels, level_at=plan.level_at, clear=step.clear, sigma=sigma,
        sigma_at=step.sigma_of, loc=step.loc, asks=reach.count_ranks(plan.ops, plan.reward_at),
        least=least, stop=step.stop,
    )  # fmt: skip
    found = reach.Found(opened, chosen, seen, seen_n)

    def back(
        order: IntArray, values: FloatArray, shared: FloatArray, start: dict[int, _Steps]
    ) -> FloatArray:
        """Retrace from operations whose G is given; the heap with what is left."""
        heap, state = new_heap(1024)
        for op, (x, rows) in start.items():
            heap, seen[op] = step_functions.pack(heap, state, x, rows)
            seen_n[op] = len(x)
        out: FloatArray = reach.retrace(
            order, route, found, reach.Operands(values, shared), heap, state
        )
        check(step.stop)
        for op in line_at.keys() & set(order.tolist()) if line_at else ():
            v, line = line_at[op]
            if (n := int(seen_n[op])) > 0:
                x, rows = step_functions.unpack(out, seen[op], n, len(line.index))
                at = int(step.sigma_of[op])
                visits, best = line.retrace(x, rows.T)
                opened[at : at + len(visits)] = visits
                there = slice(plan.reward_at[v], plan.reward_at[v + 1])
                chosen[there] = best * step.clear[there]
        return out

    def reached(values: FloatArray) -> bool:
        at = int(step.loc[plan.last])
        left = 0.0 if beyond is None else reach.none_above(values, at, beyond, plan.last_power)
        return bool(left > NEVER / copies)

    outside = plan.outside if np.isfinite(plan.outside) else -1.0
    start = np.array([outside]), np.ones((1, 1))
    nothing = np.empty(0)
    if plan.forest.prizes > 1:
        orders = [schedule(plan.ops, plan.owner, p, plan.root_ops(p)) for p in range(parts)]
        for p in range(parts):
            step.refs[plan.root_ops(p)] += 1
        heaps = step.parts(lambda p: step.work(orders[p], nothing), threads)
        left, more = openings_left(step, heaps, trees, beyond)
        if more > NEVER / copies:
            return None
        step.parts(
            lambda p: back(
                orders[p], heaps[p], nothing, {op: left[op] for op in plan.root_ops(p).tolist()}
            ),
            threads,
        )
        return opened, chosen, plan.forest.prizes - float(chosen.sum())
    if parts == 1:
        order = step.order(0)
        values = step.work(order, nothing)
        if reached(values):
            return None
        none, g = _at_the_roots(step, plan.last, values, start)
        back(order, values, nothing, {int(order[-1]): g})
        return opened, chosen, none
    uses = step.refs.copy()
    kept: list[FloatArray | None] = [None] * parts

    def forward(p: int) -> FloatArray:
        heap = step.part(p, nothing)
        if heap.nbytes * parts <= _KEEP:
            kept[p] = heap
        return step.block(int(plan.part_op[p]), heap)

    blocks = step.parts(forward, threads)
    at = step.loc[plan.part_op].copy()
    values = step.final(blocks)
    if reached(values):
        return None
    none, g = _at_the_roots(step, plan.last, values, start)
    order = structure.schedule(plan.ops, plan.owner, structure.FINAL, np.array([plan.last]))
    heap = back(order, values, np.concatenate(blocks), {int(order[-1]): g})
    towards = [step_functions.unpack(heap, seen[op], seen_n[op], 1) for op in plan.part_op]
    step.loc[plan.part_op] = at

    def backward(p: int) -> None:
        if len(towards[p][0]) == 0:  # never reached
            return
        order, values = step.order(p), kept[p]
        if values is None:
            step.refs[order] = uses[order]
            values = step.work(order, nothing)
        back(order, values, nothing, {int(order[-1]): towards[p]})

    step.parts(backward, threads)
    return opened, chosen, none


def _hold_operands(step: Pass) -> None:
    """Keep the values that the way back needs: operands of joins and of several copies."""
    ops, powers = step.plan.ops, step.plan.powers
    join = ops[:, operations.KIND] == operations.JOIN
    several = (powers[:, 0] != 1.0) & (ops[:, operations.LEFT] >= 0)
    step.refs[ops[join | several, operations.LEFT]] += 1
    step.refs[ops[join, operations.RIGHT]] += 1


def _at_the_roots(step: Pass, op: int, values: FloatArray, start: _Steps) -> tuple[float, _Steps]:
    """Probability that nothing beats the outside option, and the G of the root operation."""
    plan = step.plan
    at = int(step.loc[op])
    none = float(reach.none_above(values, at, start[0][0], plan.last_power))
    if not np.isfinite(plan.outside):  # then something is always taken
        none = 0.0
    if plan.last_power == 1.0:
        return none, start
    return none, step_functions.root_copies(*start, values, at, plan.last_power)


def _summary(f: Forest, truly: _Followed, worth: _Followed, weights: Weights) -> Evaluation:
    """The result from probabilities, plain and counted with discount factors."""
    per_state = np.repeat(
        f.rewards.start[f.reward] - truly.chosen_at[:-1], np.diff(truly.chosen_at)
    )
    place = per_state + np.arange(truly.chosen_at[-1])
    costs = mean_costs(f)[0]
    risky = weights.tolerance > 0
    counted = truly if risky else worth  # utilities are no discount factors
    reward = _taken(counted, f.rewards.data[place], f.outside)
    spend = float(np.sum(counted.opened * costs))
    value = reward + spend if f.minimize else reward - spend
    if risky:
        utility = _taken(worth, weights.rewards[place], weights.outside)
        value = float(f.sign * weights.read_back(utility))
    after = PerBox(f, truly.opened, truly.opened_at)
    chosen = PerBox(f, truly.chosen, truly.chosen_at)
    per_box = after.totals()
    return Evaluation(
        forest=f,
        opened=ByBox(per_box, f),
        chosen=chosen,
        opened_after=after,
        value=value,
        reward=reward,
        spend=spend,
        openings=float(per_box.sum()),
        outside=truly.none,
        residual=f.prizes - truly.none - float(truly.chosen.sum()),
        time=float(np.sum(truly.opened * mean_durations(f))) if f.factors is not None else 0.0,
        worth=Worth(
            PerBox(f, counted.opened, counted.opened_at),
            PerBox(f, counted.chosen, counted.chosen_at),
            counted.none,
        ),
    )


def _taken(found: _Followed, rewards: FloatArray, outside: float) -> float:
    """Expected reward from what is chosen."""
    taken = found.chosen > 0
    reward = float(np.sum(found.chosen[taken] * rewards[taken]))
    return reward + (found.none * outside if found.none > 0 else 0.0)
