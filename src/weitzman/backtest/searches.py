"""Which runs are the log, which are searched, in which order; and what methods make of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._common.arrays import FloatArray, IntArray
from ..errors import InvalidArgument
from ..learn.curves import Curves
from .bench import Bench, Table
from .methods import Log, Method, MethodPlan, trace

HINDSIGHT = "hindsight"
_REHEARSALS = 32  # searches made up from each log
_LOG_RUNS = 150


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Design:
    """How past runs are split and searched.

    Parameters
    ----------
    log_runs : int or None
        How many runs the log has; None: 150, or half of the runs of a small task; 0: no log.
    logs : int
        How many logs are drawn for each task.
    orders : int
        In how many random orders the other runs are searched after each.
    seed : int
    """

    log_runs: int | None
    logs: int
    orders: int
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """All searches of one task that share a log."""

    curves: Curves
    instance: tuple[str, ...] | None
    task: int
    log: int
    prices: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Done:
    """Score and spend by method (hindsight last), price and order; and what was chosen."""

    job: tuple[int, int]
    score: FloatArray
    spend: FloatArray
    told: tuple[tuple[str, ...], ...]


def jobs(
    curves: Curves,
    instance: Sequence[str] | None,
    prices: Sequence[tuple[float, ...]],
    logs: int,
) -> Iterator[Job]:
    """A job for every task and log; ``prices[t]`` are those of task t."""
    place = {name: t for t, name in enumerate(curves.tasks)}
    task = np.array([place[name] for name in curves.task])
    for t in range(len(curves.tasks)):
        mine = np.flatnonzero(task == t)
        part = curves.select(mine)
        labels = None if instance is None else tuple(instance[i] for i in mine.tolist())
        for log in range(logs):
            yield Job(part, labels, t, log, prices[t])


def split(job: Job, design: Design) -> tuple[IntArray, IntArray]:
    """The runs of the log, and those to be searched."""
    rng = np.random.default_rng([design.seed, job.task, job.log, 0])
    n = len(job.curves)
    nothing = np.arange(0)
    if design.log_runs == 0 and job.instance is None:
        return nothing, np.arange(n)
    if n < 2:
        raise InvalidArgument(
            f"a task needs two runs, one to learn from and one to search, but task "
            f"{job.curves.task[0]!r} has only {job.curves.runs[0]!r}."
        )
    if job.instance is None:
        size = min(_LOG_RUNS, n // 2) if design.log_runs is None else design.log_runs
        if not 0 < size < n:
            raise InvalidArgument(
                f"task {job.curves.task[0]!r} has {n} runs, so its log can have 0 to {n - 1} of "
                f"them, but `log_runs` is {size}."
            )
        mixed = rng.permutation(n)
        return np.sort(mixed[:size]), np.sort(mixed[size:])
    names = list(dict.fromkeys(job.instance))
    if len(names) < 2:
        raise InvalidArgument(
            f"the log of an instance is the other instances of its task, but task "
            f"{job.curves.task[0]!r} has only one, {names[0]!r}."
        )
    shuffled = np.random.default_rng([design.seed, job.task, 1]).permutation(len(names))
    chosen = names[shuffled[job.log % len(names)]]
    mine = np.array([label == chosen for label in job.instance])
    others = np.flatnonzero(~mine)
    if design.log_runs == 0:
        return nothing, np.flatnonzero(mine)
    if design.log_runs is not None and design.log_runs < len(others):
        others = np.sort(rng.choice(others, design.log_runs, replace=False))
    return others, np.flatnonzero(mine)


def carry_out(job: Job, design: Design, methods: Sequence[Method]) -> Done:
    """Learn from the log and search the rest, the same orders for all methods."""
    logged, searched = split(job, design)
    rng = np.random.default_rng([design.seed, job.task, job.log, 2])
    orders = [rng.permutation(searched) for _ in range(design.orders)]
    table = Table.of(job.curves)
    if len(logged):
        log = _log(job.curves.select(logged), len(searched), rng)
    else:
        log = Log(None, table, np.zeros((0, len(searched)), np.int64))
    shape = len(methods) + 1, len(job.prices), design.orders
    found = np.empty((*shape, 2))
    told = []
    for m, method in enumerate(methods):
        plans = method.learn(log, job.prices)
        told.append(tuple(plan.told for plan in plans))
        for k, order in enumerate(orders):
            found[m, :, k] = _play(plans, table, order)
    for p, price in enumerate(job.prices):
        found[-1, p] = table.hindsight(searched, price)
    return Done((job.task, job.log), found[..., 0], found[..., 1], tuple(told))


def _log(curves: Curves, runs: int, rng: np.random.Generator) -> Log:
    # on the bench a run ends with its rows, whatever became of it elsewhere
    curves = replace(curves, ended=np.ones(len(curves), bool))
    orders = rng.integers(len(curves), size=(_REHEARSALS, runs))
    return Log(curves, Table.of(curves), orders)


def _play(plans: Sequence[MethodPlan], table: Table, order: IntArray) -> FloatArray:
    """Score and spend at each price; a rule that serves several prices is played once."""
    found = np.empty((len(plans), 2))
    for rule in {id(plan.rule): plan.rule for plan in plans}.values():
        same = [p for p, plan in enumerate(plans) if plan.rule is rule]
        stops = [plans[p].stops for p in same]
        most = None if None in stops else max(s for s in stops if s is not None)
        path = trace(rule, Bench(table, order), most)
        for p, stop in zip(same, stops, strict=True):
            found[p] = path[-1 if stop is None else min(stop, len(path)) - 1]
    return found
