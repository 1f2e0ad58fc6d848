"""Search past runs again: which runs are the log, which are searched, in which order."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._common.arrays import FloatArray, IntArray, check_counts
from .._common.sharing import Executor, check_executor, spread
from ..errors import InvalidArgument
from ..learn.curves import Curves
from .backtest_result import Backtest
from .bench import Bench, Table
from .methods import Log, Method, MethodPlan, trace
from .peers import all_methods, methods_without_log

Progress = Callable[[int, int], None]
HINDSIGHT = "hindsight"
_LOG_RUNS = 150


def backtest(
    curves: Curves,
    *,
    price: float | Sequence[float] | None = None,
    full_run_cost: float | Sequence[float] | None = None,
    instance: Sequence[str] | None = None,
    methods: Sequence[Method] | None = None,
    log_runs: int | None = None,
    repeats: int = 5,
    orders: int = 10,
    seed: int = 0,
    workers: int = 1,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Backtest:
    """What would each method have earned on past runs?

    For each task, part of the runs are the log that methods learn from. The other runs are searched
    in random orders, the same orders for all methods. A row of a curve is seen once its cost has
    been paid. A run ends with its last row.

    Parameters
    ----------
    curves : Curves
    price : float or several
        What one point of score is worth, in units of cost.
    full_run_cost : float or several
        Instead of ``price``: how many points a full run costs on average. This sets the price for
        each task.
    instance : sequence of str, optional
        A label for each run, such as a seed. Then the runs of a task that share a label are
        searched together, and its other runs are the log.
    methods : sequence of Method, optional
        By default :func:`all_methods`. The others are compared with the first method.
    log_runs : int, optional
        Runs in a log: by default 150, or half of the runs of a smaller task; with instances all
        runs of the others. With 0 there is no log; then the index policy learns during the search,
        and the other methods have their documented options.
    repeats, orders : int
        How many logs are drawn for each task, and in how many orders the other runs are searched
        after each.
    seed : int
    workers : int
        Processes to share the work. The result does not depend on their number.
    executor : optional
        Instead of ``workers``: workers of a pool or a cluster, as for :func:`~weitzman.solve`.
    progress : function, optional
        Called with (cells done, cells in all).

    Returns
    -------
    Backtest
    """
    check_counts(repeats=repeats, orders=orders, workers=workers)
    if instance is not None and len(instance) != len(curves):
        raise InvalidArgument(
            f"`instance` must have a label for each of the {len(curves)} runs, but it has "
            f"{len(instance)}."
        )
    quoted, costs = prices(curves, price, full_run_cost)
    usual = (methods_without_log if log_runs == 0 else all_methods)(settings=bool(curves.settings))
    chosen = usual if methods is None else list(methods)
    if not chosen:
        raise InvalidArgument("`methods` must name at least one method.")
    how = Design(log_runs=log_runs, logs=repeats, orders=orders, seed=seed), chosen
    work = list(jobs(curves, instance, [tuple(x) for x in costs.T.tolist()], repeats))
    check_executor(executor)
    with ExitStack() as stack:
        if executor is None and workers > 1 and len(work) > 1:
            context = multiprocessing.get_context("spawn")  # the solver's threads survive no fork
            pool = ProcessPoolExecutor(min(workers, len(work)), context)
            executor = stack.enter_context(pool)
        done = spread(executor, _one_job, how, work, progress)
    names = tuple(m.name for m in chosen)
    return collected(curves, names, quoted, costs, done, by_full_run=full_run_cost is not None)


def collected(
    curves: Curves, methods: tuple[str, ...], quoted: FloatArray, costs: FloatArray,
    done: Sequence[Done], *, by_full_run: bool,
) -> Backtest:  # fmt: skip
    """The result of all jobs; ``quoted`` and ``costs`` are those of :func:`prices`."""
    told = tuple(
        tuple(tuple(d.told[m][p] for d in done) for p in range(len(quoted)))
        for m in range(len(methods))
    )
    return Backtest(
        methods=(*methods, HINDSIGHT),
        quoted=tuple(quoted.tolist()),
        by_full_run=by_full_run,
        tasks=curves.tasks,
        price=costs,
        task=np.array([d.job[0] for d in done]),
        repeat=np.array([d.job[1] for d in done]),
        best=np.stack([d.score for d in done], axis=2),
        spend=np.stack([d.spend for d in done], axis=2),
        told=(*told, (("",) * len(done),) * len(quoted)),
        minimize=curves.minimize,
    )


def prices(
    curves: Curves,
    price: float | Sequence[float] | None,
    full_run_cost: float | Sequence[float] | None,
) -> tuple[FloatArray, FloatArray]:
    """Prices as given, and the price of a point by task."""
    if (price is None) == (full_run_cost is None):
        raise InvalidArgument("give either `price` or `full_run_cost`.")
    quoted = np.atleast_1d(np.asarray(price if full_run_cost is None else full_run_cost, float))
    if quoted.ndim != 1 or not len(quoted) or not ((quoted > 0) & np.isfinite(quoted)).all():
        what = "price" if full_run_cost is None else "full_run_cost"
        raise InvalidArgument(f"`{what}` must be above 0 and finite, but it is {quoted.tolist()}.")
    if full_run_cost is None:
        return quoted, np.tile(quoted[:, None], len(curves.tasks))
    mean = np.array([curves.of_task(task).total_cost.mean() for task in curves.tasks])
    if not (mean > 0).all():
        task = curves.tasks[int(np.argmin(mean))]
        raise InvalidArgument(f"the runs of task {task!r} cost nothing: state `price` instead.")
    return quoted, mean / quoted[:, None]


def _one_job(how: tuple[Design, Sequence[Method]], job: Job) -> Done:
    return carry_out(job, *how)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Design:
    """How past runs are split and searched; see :func:`backtest`. ``logs`` are its repeats."""

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


class Done(NamedTuple):
    """Score and spend by method (hindsight last), price and order; and what was chosen."""

    job: tuple[int, int]
    score: FloatArray
    spend: FloatArray
    told: list[tuple[str, ...]]


def jobs(
    curves: Curves, instance: Sequence[str] | None, prices: Sequence[tuple[float, ...]], logs: int
) -> Iterator[Job]:
    """A job for every task and log; ``prices[t]`` are those of task t."""
    for t, name in enumerate(curves.tasks):
        mine = np.flatnonzero(np.array(curves.task) == name)
        part = curves.select(mine)
        labels = None if instance is None else tuple(instance[i] for i in mine.tolist())
        for log in range(logs):
            yield Job(part, labels, t, log, prices[t])


def split(job: Job, design: Design) -> tuple[IntArray, IntArray]:
    """The runs of the log, and those to be searched."""
    rng = np.random.default_rng([design.seed, job.task, job.log, 0])
    n, task = len(job.curves), job.curves.task[0]
    if design.log_runs == 0 and job.instance is None:
        return np.arange(0), np.arange(n)
    if n < 2:
        raise InvalidArgument(
            f"a task needs two runs, one to learn from and one to search, but task {task!r} has "
            f"only {job.curves.runs[0]!r}."
        )
    if job.instance is None:
        size = min(_LOG_RUNS, n // 2) if design.log_runs is None else design.log_runs
        if not 0 < size < n:
            raise InvalidArgument(
                f"task {task!r} has {n} runs, so its log can have 0 to {n - 1} of them, but "
                f"`log_runs` is {size}."
            )
        mixed = rng.permutation(n)
        return np.sort(mixed[:size]), np.sort(mixed[size:])
    names = list(dict.fromkeys(job.instance))
    if len(names) < 2:
        raise InvalidArgument(
            f"the log of an instance is the other instances of its task, but task {task!r} has "
            f"only one, {names[0]!r}."
        )
    shuffled = np.random.default_rng([design.seed, job.task, 1]).permutation(len(names))
    chosen = names[shuffled[job.log % len(names)]]
    is_mine = np.array([label == chosen for label in job.instance])
    mine, others = np.flatnonzero(is_mine), np.flatnonzero(~is_mine)
    if design.log_runs is not None and design.log_runs < len(others):
        others = np.sort(rng.choice(others, design.log_runs, replace=False))
    return others, mine


def carry_out(job: Job, design: Design, methods: Sequence[Method]) -> Done:
    """Learn from the log and search the rest, the same orders for all methods."""
    logged, searched = split(job, design)
    rng = np.random.default_rng([design.seed, job.task, job.log, 2])
    orders = [rng.permutation(searched) for _ in range(design.orders)]
    table = Table.of(job.curves)
    if len(logged):
        log = Log.of(job.curves.select(logged), len(searched), rng)
    else:
        log = Log(None, table, np.zeros((0, len(searched)), np.int64))
    found = np.empty((len(methods) + 1, len(job.prices), design.orders, 2))
    told = []
    for m, method in enumerate(methods):
        plans = method.learn(log, job.prices)
        told.append(tuple(plan.told for plan in plans))
        for k, order in enumerate(orders):
            found[m, :, k] = _play(plans, table, order)
    for p, price in enumerate(job.prices):
        found[-1, p] = table.hindsight(searched, price)
    return Done((job.task, job.log), found[..., 0], found[..., 1], told)


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
