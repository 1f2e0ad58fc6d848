"""A real Dask cluster of two processes: the same bits, also when a worker is killed."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import weitzman
from weitzman import Forest, questions

distributed = pytest.importorskip("distributed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # those of Dask


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def lines(count: int) -> Forest:
    """Lines of ten boxes, no two alike."""
    rng, n = np.random.default_rng(0), 10 * count
    parent = np.where(np.arange(n) % 10 == 0, -1, np.arange(n) - 1)
    law = rng.dirichlet(np.ones(3), (n, 3))
    law[parent < 0] = law[parent < 0, :1]
    return Forest.from_arrays(
        parent=parent, cost=rng.uniform(0.01, 0.1, n), rewards=np.linspace(0, 1, 3), law=law
    )


def test_the_cluster_is_bitwise_identical(client: Any) -> None:
    forest, told = lines(500), []
    workers = client.get_executor()
    alone = weitzman.solve(forest)
    found = weitzman.solve(forest, executor=workers, progress=lambda a, b: told.append((a, b)))
    assert (found.value, found.gap) == (alone.value, alone.gap)
    assert np.array_equal(found.index_columns()[1], alone.index_columns()[1])
    assert told[-1][0] == told[-1][1] > 1
    few = lines(3)
    curve, shared = questions.frontier(few), questions.frontier(few, executor=workers)
    assert np.array_equal(shared.spend, curve.spend)


def test_a_worker_that_is_killed_changes_nothing(client: Any) -> None:
    solution = weitzman.solve(lines(20))
    before = set(client.run(os.getpid).values())
    killed = threading.Event()

    def progress(done: int, _: int) -> None:
        if done >= 2 and not killed.is_set():  # in the middle of the work
            killed.set()
            os.kill(min(before), signal.SIGKILL)

    there = weitzman.simulate(
        solution, 2_000_000, 0, executor=client.get_executor(), progress=progress
    )
    here = weitzman.simulate(solution, 2_000_000, 0, threads=1)
    assert killed.is_set()
    assert there.payoff.mean == here.payoff.mean
    assert np.array_equal(there.opened, here.opened)
    client.wait_for_workers(2, timeout=60)
    assert min(before) not in set(client.run(os.getpid).values())
