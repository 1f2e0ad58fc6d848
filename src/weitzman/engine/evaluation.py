"""What a policy will do, exactly: openings, choices, spending, before anything is opened.

One pass forward and one back, for any index policy; no simulation, no enumeration. Small problems
are followed in NumPy (:mod:`.small`), others through the operations of the plan by
compiled code (:mod:`weitzman._kernels.reach`). There, boxes are left out that are practically never
opened: a box is opened only if its index exceeds what the boxes above it have shown, and only after
every sibling with a higher index was opened and has shown less than its own index. The product of
these probabilities bounds that of the opening.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray, frozen, roots_above
from .._common.interruption import check, interruptible
from .._kernels import blocks, reach, structure
from .._kernels.jit import compiles_always, large_work, patience
from ..chains.following import Following
from ..forest.columns import runs
from ..forest.model import Forest
from .evaluation_result import ByBox, PerBox, Worth
from .evaluation_result import Evaluation as Evaluation
from .indices import Policy
from .plan import Pass, Plan, in_trees
from .prizes import PrizeLimits, TreeValues, places_left, tied_copies
from .small import Followed, dense_size, follow_densely, rank
from .solution import Solution, as_policy, mean_costs, mean_durations
from .solver import solve
from .weights import Weights, takes_several

_Steps = tuple[FloatArray, FloatArray]  # points, and rows of states (n, k)

# masses below this (in units of one rank over all ranks) are merged in the forward pass
_EPS = 1e-20
_LEAST = 1e-17  # steps of a probability not worth keeping on the way back
_FIRST_ROOTS = 64  # trees looked at before more are
_DENSE = 4e6  # rows times ranks up to which no kernel is needed
_DENSE_RISK = 4e8  # utilities span many orders of magnitude: logarithms keep their digits
_EPSILON = float(np.finfo(np.float64).eps)
_STEPS = 8  # roundings beside those of the boxes
_NOTHING = np.empty(0)
_NEAR = 1e-12  # above an optimal index, and still as good as optimal
NEVER = 1e-18  # a probability that counts as none
_CROWD = 64  # siblings from which on they are compared with each other


def evaluate(policy: Policy | Solution) -> Evaluation:
    """Exactly what following a policy leads to.

    Parameters
    ----------
    policy : Policy or Solution
        The optimal policy of a solution, or any index policy.

    Returns
    -------
    Evaluation

    Notes
    -----
    For the optimal policy ``opened`` is also minus the derivative of the value in the cost of each
    box, and ``chosen`` its derivative in each reward (where these exist).

    See Also
    --------
    weitzman.simulate : The distribution of payoffs.
    weitzman.sensitivity : Derivatives of the value.
    """
    rule = as_policy(policy, "evaluate")
    return interruptible(lambda: _evaluate(rule, isinstance(policy, Solution)))


def _evaluate(policy: Policy, optimal: bool) -> Evaluation:
    """Follow a policy, and once more with weights in place of probabilities where they differ."""
    f = policy.forest
    plain, weights = Weights.plain(f), Weights.of(f)
    weighed, risky = len(weights.defect) > 0, weights.tolerance > 0
    limit = _DENSE_RISK if risky else 0.0 if compiles_always() else _DENSE * patience()
    if dense_size(policy) <= limit:
        columns = rank(policy)
        truly = follow_densely(policy, plain, columns)
        if not weighed:
            return _summary(f, truly, truly)
        worth = follow_densely(policy, weights, columns, logs=risky)
        return _summary(f, truly, truly, worth) if risky else _summary(f, truly, worth)
    with large_work():
        return _evaluate_compiled(policy, plain, weights, optimal)


def _evaluate_compiled(
    policy: Policy, plain: Weights, weights: Weights, optimal: bool
) -> Evaluation:
    """The same by compiled kernels."""
    f, risky = policy.forest, weights.tolerance > 0
    truly = follow(policy, plain)
    if len(weights.defect) == 0:
        return _summary(f, truly, truly)
    if risky and not optimal and _opens_more(policy):
        weights = replace(weights, all_points=True)
    worth_too = follow(policy, weights)
    if not risky:
        return _summary(f, truly, worth_too)
    with np.errstate(divide="ignore"):
        logs = worth_too._replace(
            opened=np.log(worth_too.opened), chosen=np.log(worth_too.chosen),
            none=float(np.log(worth_too.none)),
        )  # fmt: skip
    found = _summary(f, truly, truly, logs)
    utility = -np.exp((weights.best - f.sign * found.value) / weights.tolerance)
    return replace(found, error=weights.gap(utility, weights.rounding()))


def _opens_more(policy: Policy) -> bool:
    """Whether a policy opens boxes where the optimal policy stops.

    With a risk tolerance the slopes of such a policy may exceed one and fall.
    """
    f = policy.forest
    at, index = solve(f).index_columns()
    sizes = f.laws.shape[f.law, 0]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    best = f.sign * index[np.repeat(at, sizes) + within]
    own = policy.index[np.repeat(policy.index_at, sizes) + within]
    return bool((own > best + _NEAR).any())


def follow(policy: Policy, weights: Weights) -> Followed:
    """Follow a policy, with the weights in place of probabilities."""
    f = policy.forest
    if not compiles_always() and dense_size(policy) <= _DENSE * patience():
        return follow_densely(policy, weights, rank(policy))
    rows, states = f.laws.shape[f.law, 0], f.rewards.shape[f.reward, 1]
    opened_at, chosen_at = (np.append(0, np.cumsum(x)) for x in (rows, states))
    order = structure.postorder(f.parent).order
    first = policy.index[policy.index_at[policy.root]]
    useful = int(np.searchsorted(-first, -policy.outside))  # roots that may be opened
    useful = min(max(useful, f.prizes), len(first))
    found, tried = None, _FIRST_ROOTS
    while found is None:  # the best trees alone, until the next is practically never reached
        roots = policy.root[: min(max(tried, f.prizes), useful)]
        boxes = np.sort(in_reach(policy, weights, order[in_trees(f.parent, order, roots)]))
        part, own = _parts(policy, weights, boxes)
        found = _follow_part(part, own, first[len(roots)] if len(roots) < useful else None)
        tried *= 8
    opened, chosen = np.zeros(opened_at[-1]), np.zeros(chosen_at[-1])
    opened[runs(opened_at[boxes], rows[boxes])] = found.opened
    chosen[runs(chosen_at[boxes], states[boxes])] = found.chosen
    return Followed(opened, opened_at, chosen, chosen_at, found.none)


def _parts(policy: Policy, weights: Weights, boxes: IntArray) -> tuple[Policy, Weights]:
    """The policy and the weights for some boxes alone, with all boxes above them."""
    f = policy.forest
    if len(boxes) == len(f):
        return policy, weights
    names = tuple(map(f.name, boxes.tolist())) if f.endless[boxes].any() else None
    few = f.take(boxes, names=names)
    rewards, at = few.sign * few.rewards.data, policy.index_at[boxes]
    part = replace(policy, forest=few, index_at=at, rewards=rewards)
    return part, replace(weights, forest=few, law=weights.law[boxes], cost=weights.cost[boxes])


def _follow_part(policy: Policy, weights: Weights, beyond: float | None) -> Followed | None:
    """Follow a policy by compiled kernels; None if a root of index ``beyond`` may be reached."""
    f, columns = policy.forest, rank(policy)
    opened_at, chosen_at = columns[:2]
    indices, rewards, outside = (_below_all(x) for x in columns[2:5])
    lines = {
        v: Following(
            weights.laws[int(weights.law[v])], rewards[chosen_at[v] : chosen_at[v + 1]],
            indices[opened_at[v] : opened_at[v + 1]], float(outside), f.name(v), weights.missing(v),
        )
        for v in np.flatnonzero(f.endless).tolist()
    }  # fmt: skip
    if len(weights.defect):  # what is missing from a row lies above all ranks
        weights = replace(weights, top=len(columns.values) + 1.0)
    keys = np.arange(len(f))
    plan = Plan.lay_out(
        weights, keys, keys, rewards, chosen_at, float(outside),
        {v: (x.index, x.levels, x.tails) for v, x in lines.items()}.__getitem__, most_parts=1,
    )  # fmt: skip
    member = np.empty(len(f), np.int64)
    member[plan.class_of] = keys
    take = runs(opened_at[member], np.diff(opened_at)[member])
    if beyond is not None:
        beyond = float(np.count_nonzero(columns.values <= beyond)) + 0.5
    ways = _Retrace(plan, indices[take], rewards, beyond, lines)
    whose = None
    if takes_several(f):  # trees of the plan by box, and their ranks
        place = np.zeros(len(f), np.int64)
        place[plan.top] = np.arange(len(plan.top))
        tree = place[plan.class_of[roots_above(f.parent)]]
        both = (opened_at, indices), (chosen_at, rewards)
        trees, own = zip(*((np.repeat(tree, np.diff(at)), x) for at, x in both), strict=True)
        whose = np.concatenate(trees), np.concatenate(own)
    if (none := ways.run(whose)) is None:
        return None
    opened = np.empty(opened_at[-1])
    opened[take] = ways.found.opened
    return Followed(opened, opened_at, ways.found.chosen, chosen_at, none)


def _below_all(ranks: IntArray | int) -> FloatArray:
    """Ranks of which 0 is minus infinity."""
    return np.where(np.asarray(ranks) > 0, ranks, -np.inf)


class _Retrace:
    """The two ways through a plan: forward for the values, back for what competes with them."""

    def __init__(
        self, plan: Plan, sigma: FloatArray, rewards: FloatArray, beyond: float | None,
        lines: dict[int, Following],
    ) -> None:  # fmt: skip
        self.plan, self.lines, self.beyond = plan, lines, beyond
        self.copies = box_count(plan.forest)
        eps = _EPS * max(plan.span, 1.0) / self.copies
        # masses may be negative
        step = Pass(plan, -np.inf if plan.weights.all_points else eps, sigma)
        self.step = step
        ops, powers = plan.ops, plan.powers
        join = ops[:, structure.KIND] == structure.JOIN
        several = (powers[:, 0] != 1.0) & (ops[:, structure.LEFT] >= 0)
        # the way back needs the operands of joins and of several copies
        step.refs[ops[join | several, structure.LEFT]] += 1
        step.refs[ops[join, structure.RIGHT]] += 1
        for v, line in lines.items():
            step.clear[plan.reward_at[v] : plan.reward_at[v + 1]] = line.clear()
        self.line_at = {int(plan.op_of[plan.class_of[v]]): v for v in lines}
        self.route = reach.Route(
            ops=ops, powers=powers, laws=frozen(plan.weights.laws.data),
            law_at=frozen(plan.weights.laws.start), ranks=rewards, rank_at=plan.reward_at,
            levels=plan.levels, level_at=plan.level_at, clear=step.clear, sigma=sigma,
            sigma_at=step.sigma_of, loc=step.loc, asks=reach.count_ranks(ops, plan.reward_at),
            least=_LEAST / self.copies, stop=step.stop,
        )  # fmt: skip
        self.found = reach.Found(
            np.zeros(len(sigma)), np.zeros(len(rewards)), np.zeros(len(ops), np.int64),
            np.zeros(len(ops), np.int64),
        )  # fmt: skip

    def back(self, order: IntArray, values: FloatArray, start: dict[int, _Steps]) -> None:
        """Retrace from operations whose G is given."""
        found = self.found
        # blocks of at least the sizes in which they will be freed
        room = {op: 64 + 16 * len(x) for op, (x, _) in start.items()}
        heap, state = blocks.new_heap(1024 + sum(room.values()))
        for op, (x, rows) in start.items():
            at = int(state[blocks.TOP])
            _steps(heap, at, len(x), 1)[1][:] = rows
            heap[at + 8 * len(x) : at + 9 * len(x)] = x
            found.seen[op], found.seen_n[op] = at, len(x)
            state[blocks.TOP] += room[op]
        out = reach.retrace(order, self.route, found, values, heap, state)
        check(self.step.stop)
        for op in self.line_at.keys() & set(order.tolist()) if self.line_at else ():
            if (n := int(found.seen_n[op])) > 0:
                v, at = self.line_at[op], int(self.step.sigma_of[op])
                x, rows = _steps(out, int(found.seen[op]), n, len(self.lines[v].index))
                visits, best = self.lines[v].retrace(x, rows.T)
                found.opened[at : at + len(visits)] = visits
                there = slice(self.plan.reward_at[v], self.plan.reward_at[v + 1])
                found.chosen[there] = best * self.step.clear[there]

    def run(self, ranks: tuple[IntArray, FloatArray] | None) -> float | None:
        """Both ways; the expected number of places that nothing fills.

        ``ranks`` are trees and their ranks, for several prizes. None if what lies beyond the plan
        may still be reached.
        """
        step = self.step
        order = step.order(0, None if ranks is None else self.plan.root_ops(0))
        values = step.work(order, _NOTHING)
        top = self.one_prize(values) if ranks is None else self.several_prizes(values, *ranks)
        if top is None:
            return None
        none, start = top
        start = {op: steps for op, steps in start.items() if len(steps[0])}
        if start:  # else never reached
            self.back(order, values, start)
        return none

    def several_prizes(
        self, values: FloatArray, tree: IntArray, rank: FloatArray
    ) -> tuple[float, dict[int, _Steps]] | None:
        """Nothing is joined: each tree starts with the chance that a prize is left for it."""
        plan = self.plan
        found = [blocks.distributions(values, self.step.loc[plan.root_ops(0)])]
        places = PrizeLimits.of(plan.forest, plan.top_copies, plan.top_group)
        bars = [plan.outside, -np.inf if self.beyond is None else self.beyond]
        left, (none, more) = places_left(TreeValues.of(found), places, tree, rank, bars)
        if self.beyond is not None and more > NEVER / self.copies:
            return None
        ends = np.searchsorted(left.tree, np.arange(len(plan.top) + 1))
        start = {
            op: (left.point[a:b], left.tail[a:b, None].copy())
            for op, (a, b) in zip(plan.op_of[plan.top].tolist(), pairwise(ends), strict=True)
        }
        return none if np.isfinite(plan.outside) else 0.0, start

    def one_prize(self, values: FloatArray) -> tuple[float, dict[int, _Steps]] | None:
        """Probability that nothing beats the outside option, and the G of the root operation.

        None if what lies beyond the plan may still be reached.
        """
        plan, m = self.plan, self.plan.last_power
        _, grid, tails, _ = blocks.distributions(values, self.step.loc[[plan.last]])
        with np.errstate(divide="ignore"):  # P(at most x), from the tail just above each point
            log_below = np.log1p(-np.minimum(np.append(tails, 0.0), 1.0))
        if self.beyond is not None:
            left = np.exp(m * log_below[np.searchsorted(grid, self.beyond + 0.25)])
            if left > NEVER / self.copies:
                return None
        finite = np.isfinite(plan.outside)
        x = np.array([plan.outside if finite else -1.0])
        after = log_below[np.searchsorted(grid, x + 0.25)]
        none = float(np.exp(m * after[0])) if finite else 0.0
        if m == 1.0:
            return none, {plan.last: (x, np.ones((1, 1)))}
        # at a breakpoint the copies before must be below; half a rank above, all may be there
        own = np.concatenate([grid, grid + 0.5])
        x = np.unique(np.append(x, own[own > x[0]]))
        before, at = (log_below[np.searchsorted(grid, x + d)] for d in (-0.25, 0.25))
        power, factor = tied_copies(before, at, m)
        return none, {plan.last: (x, (np.exp(power) * factor)[:, None])}


def _steps(heap: FloatArray, at: int, n: int, k: int) -> _Steps:
    """Points and rows of states of step functions that lie in a heap."""
    lanes = -(-k // 8) * 8
    rows = heap[at : at + n * lanes].reshape(n, lanes)
    return heap[at + n * lanes : at + n * (lanes + 1)], rows[:, :k]


def _summary(
    f: Forest, truly: Followed, counted: Followed, risky: Followed | None = None
) -> Evaluation:
    """The result from probabilities: plain, counted with discount factors, and with utilities.

    Those with utilities (``risky``) are logarithms.
    """
    per_state = np.repeat(
        f.rewards.start[f.reward] - truly.chosen_at[:-1], np.diff(truly.chosen_at)
    )
    rewards = f.rewards.data[per_state + np.arange(truly.chosen_at[-1])]
    costs = mean_costs(f)[0]
    taken = counted.chosen > 0
    reward = float(np.sum(counted.chosen[taken] * rewards[taken]))
    reward += counted.none * f.outside if counted.none > 0 else 0.0
    spend = float(np.sum(counted.opened * costs))
    value = reward - f.sign * spend
    residual = f.prizes - truly.none - float(truly.chosen.sum())
    scale = float(np.sum(counted.chosen[taken] * np.abs(rewards[taken]))) + spend + abs(value)
    error = _EPSILON * (len(f) + _STEPS) * scale + abs(residual) * float(
        np.max(np.abs(rewards[np.isfinite(rewards)]), initial=0.0)
    )
    if f.risk_tolerance is not None and risky is not None:
        tau, sign = f.risk_tolerance, f.sign
        some = risky.chosen > -np.inf
        logs = risky.chosen[some] - sign * rewards[some] / tau
        if risky.none > -np.inf:
            logs = np.append(logs, risky.none - sign * f.outside / tau)
        most = float(logs.max()) if len(logs) else np.inf  # the worst: nothing at all is taken
        total = float(np.log(np.sum(np.exp(logs - most)))) if len(logs) else 0.0
        value = -sign * tau * (most + total)
        size = float(np.abs(logs).max(initial=0.0))
        error = _EPSILON * (tau * (len(f) + _STEPS + size) + abs(value))
    after = PerBox(f, truly.opened, truly.opened_at)
    per_box = after.totals()
    return Evaluation(
        forest=f,
        opened=ByBox(per_box, f),
        chosen=PerBox(f, truly.chosen, truly.chosen_at),
        opened_after=after,
        value=value,
        reward=reward,
        spend=spend,
        openings=float(per_box.sum()),
        outside=truly.none,
        residual=residual,
        error=error,
        time=float(np.sum(truly.opened * mean_durations(f))) if f.factors is not None else 0.0,
        worth=Worth(
            PerBox(f, counted.opened, counted.opened_at),
            PerBox(f, counted.chosen, counted.chosen_at),
            counted.none,
        ),
    )


def box_count(f: Forest) -> float:
    """How many boxes there are: among many, even the rarest find counts."""
    return float(min(f.boxes, 10**300))


def in_reach(policy: Policy, weights: Weights, order: IntArray) -> IntArray:
    """Of a postorder, the boxes that are opened with more than next to no probability.

    With a risk tolerance all of them: rare ends may count most.
    """
    f = policy.forest
    if weights.tolerance > 0:
        return order
    own = f.rewards.shape[f.reward, 1]
    paths = reach.Paths(
        parent=f.parent, count=f.count, laws=f.laws.data, law_at=f.laws.start[f.law],
        index=policy.index, index_at=policy.index_at, rewards=policy.rewards,
        reward_at=f.rewards.start[f.reward], own_at=np.append(0, np.cumsum(own)),
        outside=policy.outside,
    )  # fmt: skip
    kept = reach.reachable(order, paths, NEVER / box_count(f))
    crowded = _never_first(paths, kept)
    if crowded.any():
        rows = f.laws.shape[f.law, 0]
        at = np.cumsum(rows) - rows
        index = policy.index[runs(policy.index_at, rows)]
        index[np.repeat(crowded, rows)] = -np.inf
        paths = paths._replace(index=index, index_at=at)
        kept = reach.reachable(order, paths, NEVER / box_count(f))
    return np.asarray(order[kept[order]])


def _never_first(paths: reach.Paths, kept: BoolArray) -> BoolArray:
    """Boxes that practically always find something better among their many siblings."""
    out = np.zeros(len(kept), bool)
    below = np.flatnonzero(kept & (paths.parent >= 0))
    crowds = np.flatnonzero(np.bincount(paths.parent[below], minlength=len(kept)) >= _CROWD)
    by = below[np.argsort(paths.parent[below], kind="stable")]
    for v in crowds.tolist():
        first, last = np.searchsorted(paths.parent[by], [v, v + 1])
        child = by[first:last]
        states = int(paths.own_at[v + 1] - paths.own_at[v])
        most = np.max([_chances(paths, child, y) for y in range(states)], axis=0)
        out[child] = most < np.log(NEVER) - 2 * np.log(float(paths.count.sum(dtype=float)))
    return out


def _chances(paths: reach.Paths, child: IntArray, state: int) -> FloatArray:
    """Logarithms of bounds on the probability that each child is opened after a state.

    A child with a higher index must have shown less than that index, and so must all its copies.
    """
    own = paths.own_at[child + 1] - paths.own_at[child]
    sigma = paths.index[paths.index_at[child] + state]
    chance = paths.laws[runs(paths.law_at[child] + state * own, own)]
    shown = paths.rewards[runs(paths.reward_at[child], own)]
    less = np.add.reduceat(chance * (shown <= np.repeat(sigma, own)), np.cumsum(own) - own)
    with np.errstate(divide="ignore"):
        fails = np.log(np.minimum(less, 1.0)) * paths.count[child]
    by = np.argsort(-sigma, kind="stable")
    before = np.concatenate([[0.0], np.cumsum(fails[by])])
    out = np.empty(len(child))
    out[by] = before[np.searchsorted(-sigma[by], -sigma[by])]  # equal indices: before all of them
    return out
