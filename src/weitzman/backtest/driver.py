"""Search past runs again, with several methods and the same orders for all."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from .._common.arrays import FloatArray
from .._common.sharing import Executor, check_executor, spread
from ..errors import InvalidArgument
from ..learn.curves import Curves
from .backtest_result import Backtest
from .methods import Method
from .peers import all_methods, methods_without_log
from .searches import HINDSIGHT, Design, Done, Job, carry_out, jobs

Progress = Callable[[int, int], None]
Rules = tuple[Design, Sequence[Method]]


def backtest(
    curves: Curves,
    *,
    price: float | Sequence[float] | None = None,
    full_run_costs: float | Sequence[float] | None = None,
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
    full_run_costs : float or several
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
    repeats : int
        How many logs are drawn for each task.
    orders : int
        In how many orders the other runs are searched after each log.
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
    quoted, costs, by_full_run = _prices(curves, price, full_run_costs)
    for name, x in (("repeats", repeats), ("orders", orders), ("workers", workers)):
        if x < 1:
            raise InvalidArgument(f"`{name}` must be at least 1, but it is {x}.")
    if instance is not None and len(instance) != len(curves):
        raise InvalidArgument(
            f"`instance` must have a label for each of the {len(curves)} runs, but it has "
            f"{len(instance)}."
        )
    there = bool(curves.settings)
    usual = (methods_without_log if log_runs == 0 else all_methods)(settings=there)
    chosen = usual if methods is None else list(methods)
    if not chosen:
        raise InvalidArgument("`methods` must name at least one method.")
    design = Design(log_runs=log_runs, logs=repeats, orders=orders, seed=seed)
    work = list(jobs(curves, instance, [tuple(x) for x in costs.T.tolist()], repeats))
    done = _carried_out(work, (design, chosen), workers, executor, progress)
    return Backtest(
        methods=(*(m.name for m in chosen), HINDSIGHT),
        quoted=quoted,
        by_full_run=by_full_run,
        tasks=curves.tasks,
        price=costs,
        task=np.array([d.job[0] for d in done]),
        repeat=np.array([d.job[1] for d in done]),
        best=np.stack([d.score for d in done], axis=2),
        spend=np.stack([d.spend for d in done], axis=2),
        told=_told(done, len(chosen), len(quoted)),
        minimize=curves.minimize,
    )


def _prices(
    curves: Curves,
    price: float | Sequence[float] | None,
    full_run_costs: float | Sequence[float] | None,
) -> tuple[tuple[float, ...], FloatArray, bool]:
    """Prices as given, the price of a point by task, and whether full runs were priced."""
    if (price is None) == (full_run_costs is None):
        raise InvalidArgument("give either `price` or `full_run_costs`.")
    quoted = np.atleast_1d(np.asarray(price if full_run_costs is None else full_run_costs, float))
    bad = np.flatnonzero(~(quoted > 0) | np.isinf(quoted))
    if quoted.ndim != 1 or len(quoted) == 0 or len(bad):
        what = "price" if full_run_costs is None else "full_run_costs"
        raise InvalidArgument(f"`{what}` must be above 0 and finite, but it is {quoted.tolist()}.")
    place = {name: t for t, name in enumerate(curves.tasks)}
    tasks = np.array([place[name] for name in curves.task])
    if full_run_costs is None:
        return tuple(quoted.tolist()), np.tile(quoted[:, None], len(curves.tasks)), False
    mean = np.bincount(tasks, curves.total_cost) / np.bincount(tasks)
    if not (mean > 0).all():
        task = curves.tasks[int(np.argmin(mean))]
        raise InvalidArgument(f"the runs of task {task!r} cost nothing: state `price` instead.")
    return tuple(quoted.tolist()), mean / quoted[:, None], True


def _carried_out(
    work: Sequence[Job], how: Rules, workers: int, executor: Executor | None,
    progress: Progress | None,
) -> list[Done]:  # fmt: skip
    """All jobs, in order: here, by processes started here, or by the user's workers."""
    check_executor(executor)
    if executor is not None:
        return spread(executor, _one_job, how, work, progress)
    if workers == 1 or len(work) == 1:
        return list(_watched((_one_job(how, job) for job in work), len(work), progress))
    context = multiprocessing.get_context("spawn")  # threads of the solver do not survive a fork
    with ProcessPoolExecutor(min(workers, len(work)), context) as pool:
        return spread(pool, _one_job, how, work, progress)


def _one_job(how: Rules, job: Job) -> Done:
    design, methods = how
    return carry_out(job, design, methods)


def _watched(done: Iterable[Done], total: int, progress: Progress | None) -> Iterator[Done]:
    for i, x in enumerate(done, 1):
        if progress is not None:
            progress(i, total)
        yield x


def _told(
    done: Sequence[Done], methods: int, prices: int
) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """What was chosen, by method, price and cell; nothing for hindsight."""
    return tuple(
        tuple(tuple(d.told[m][p] if m < methods else "" for d in done) for p in range(prices))
        for m in range(methods + 1)
    )
