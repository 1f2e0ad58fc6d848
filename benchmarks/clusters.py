"""Two workers of a real Dask cluster and of a real Ray cluster on this machine.

``python -m benchmarks.clusters dask`` and ``... ray``: the same bits as without, the speed-up on
two workers, what travels, and a worker that is killed in the middle. Needs ``distributed`` or
``ray``.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import weitzman
from weitzman import Forest, Solution
from weitzman.engine.plan import Pass, Plan
from weitzman.engine.spreading import carry_out_share, share_of

from . import instances
from .measure import Table, seconds

Kill = Callable[[], None]


@contextlib.contextmanager
def dask_cluster(workers: int) -> Iterator[tuple[Any, Kill]]:
    """An executor, and what kills one of its workers; the cluster starts another one."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):

        def kill() -> None:
            pids = client.run(os.getpid)
            os.kill(next(iter(pids.values())), signal.SIGKILL)

        client.run(_warm)
        yield client.get_executor(), kill


@contextlib.contextmanager
def ray_cluster(workers: int) -> Iterator[tuple[Any, Kill]]:
    """The same with Ray."""
    import ray

    env = {"env_vars": {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}}
    ray.init(
        num_cpus=workers, include_dashboard=False, runtime_env=env, log_to_driver=False,
        object_store_memory=2 * 10**9,
    )  # fmt: skip
    pids: set[int] = set()

    def kill() -> None:
        os.kill(pids.pop(), signal.SIGKILL)

    try:
        warm = ray.remote(_warm)
        while len(pids) < workers:
            pids |= set(ray.get([warm.remote() for _ in range(4 * workers)]))
        yield weitzman.engine.RayExecutor(num_cpus=1), kill
    finally:
        ray.shutdown()


def _warm() -> int:
    """On a worker: load what is compiled."""
    forest = instances.random_trees(200)
    weitzman.simulate(weitzman.solve(forest), 1000, 0)
    time.sleep(0.2)
    return os.getpid()


CLUSTERS = {"dask": dask_cluster, "ray": ray_cluster}


def check(a: Solution, b: Solution) -> None:
    """The same value and indices, to the last bit."""
    assert (a.value, a.gap) == (b.value, b.gap)
    pairs = zip(a.index_columns(), b.index_columns(), strict=True)
    assert all(np.array_equal(x, y) for x, y in pairs)


def solving(forest: Forest, executor: Any, kill: Kill | None = None) -> tuple[float, Solution, int]:
    """Seconds, the solution, and how often progress was told; perhaps with a worker killed."""
    told: list[int] = []
    if kill is not None:
        threading.Timer(1.0, kill).start()
    start = time.perf_counter()
    found = weitzman.solve(forest, executor=executor, progress=lambda a, b: told.append(a))
    return time.perf_counter() - start, found, len(told)


def simulating(solution: Solution, episodes: int, kill: Kill | None = None, **how: Any) -> Any:
    """Seconds and the simulation."""
    if kill is not None:
        threading.Timer(1.0, kill).start()
    start = time.perf_counter()
    found = weitzman.simulate(solution, episodes, 0, **how)
    return time.perf_counter() - start, found


def travels(forest: Forest) -> tuple[int, float, int, float, int]:
    """Parts, bytes sent, bytes back, seconds of work in the parts, and seconds that stay here."""
    plan = Plan.of(forest)
    start = time.perf_counter()
    step = Pass.start(plan, 1e-12, -np.inf)
    common = step.common()
    orders = [step.order(p) for p in range(len(plan.part_op))]
    shares = [
        share_of(step, order, int(plan.part_op[p]), lambda op: step.block(op, common))
        for p, order in enumerate(orders)
    ]
    packed = [pickle.dumps(share, 5) for share in shares]
    here = time.perf_counter() - start
    start = time.perf_counter()
    done = [carry_out_share(None, share) for share in shares]
    work = time.perf_counter() - start
    back = sum(len(pickle.dumps(x, 5)) for x in done)
    return len(packed), here, sum(map(len, packed)), work, back


def main() -> None:
    """One cluster, as a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cluster", choices=list(CLUSTERS))
    parser.add_argument("--lines", type=int, default=8000, help="of 50 boxes with 16 states")
    parser.add_argument("--episodes", type=int, default=4_000_000)
    options = parser.parse_args()
    forest = instances.many_lines(options.lines, 50, 16).forest
    few = instances.many_lines(100, 100, 8).forest
    solution = weitzman.solve(few)
    table = Table(["", "one process, one thread", "two workers", "speed-up", "one of them killed"])
    start = time.perf_counter()
    alone = weitzman.solve(forest, threads=1)
    one = time.perf_counter() - start
    alone_s, played = simulating(solution, options.episodes, threads=1)
    with CLUSTERS[options.cluster](2) as (executor, kill):
        two, found, told = solving(forest, executor)
        check(alone, found)
        two_s, shared = simulating(solution, options.episodes, executor=executor)
        assert played.payoff.mean == shared.payoff.mean
        assert np.array_equal(played.opened, shared.opened)
        wounded_s, shared = simulating(solution, options.episodes, kill, executor=executor)
        assert played.payoff.mean == shared.payoff.mean
        assert np.array_equal(played.payoff.values, shared.payoff.values)
        wounded, found, _ = solving(forest, executor, kill)
        check(alone, found)
    table.rows += [
        [
            f"solve, {len(forest):,} boxes, k = 16", seconds(one), seconds(two),
            f"{one / two:.2f}", seconds(wounded),
        ],
        [
            f"simulate, {options.episodes:,} episodes", seconds(alone_s), seconds(two_s),
            f"{alone_s / two_s:.2f}", seconds(wounded_s),
        ],
    ]  # fmt: skip
    parts, here, sent, work, back = travels(forest)
    table.notes.append(
        f"The solve has {parts} parts: {sent / 1e6:.0f} MB sent, {back / 1e6:.1f} MB back, "
        f"{seconds(work)} of work in them, {seconds(here)} to cut and pack them. Progress was told "
        f"{told} times. All bits as without an executor, with and without a killed worker."
    )
    print(table.markdown())


if __name__ == "__main__":
    main()
