"""Two workers of a real Dask cluster and of a real Ray cluster, and 100 machines on paper.

``python -m benchmarks.clusters dask`` (or ``ray``, ``paper``) prints a table; ``--write`` puts it
into ``clusters.md``. About two minutes each. Needs
``distributed``, or ``ray`` and ``psutil``.

All workers are warm: each has loaded the compiled code before the clock starts, and has one thread.
The base of a speed-up is one worker of the same cluster, which takes turns with both workers; the
least wall time counts. A caller without a cluster, on one thread, is there for comparison. Every
result is asserted to have the same bits as without a cluster, also when a worker is killed in the
middle. What all pieces share is asserted to be sent as a reference.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pickle
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import weitzman
from weitzman import bounds, files, learn, questions
from weitzman._kernels.jit import compile_always

from . import instances, larger, roofline
from .measure import ROOT, Table, machine, put, seconds

PAGE = ROOT / "benchmarks" / "clusters.md"
LINK = 1.25e9  # bytes a second: 10 Gbit/s
HOUR, MACHINES = 3600.0, 100

Task = Callable[..., Any]  # of ``executor``, ``threads`` and ``progress``
Tell = Callable[[int, int], None]


class Work(NamedTuple):
    """Something to be shared: how it is done, what must be the same, and whether to kill."""

    what: str
    task: Task
    bits: Callable[[Any], list[Any]]
    kill: bool = False
    most: float = np.inf  # pieces that there can be


def solving(size: float) -> Work:
    """Lines of boxes with 32 states, whose laws are shared."""
    lines = int(2000 * size)
    forest = roofline.shared_laws(roofline.lines(lines, 50), 32, roofline.dense(32, 50))
    return Work(
        f"`solve`, {len(forest):,} boxes, k = 32, 50 laws",
        lambda **how: weitzman.solve(forest, **how),
        lambda s: [s.value, s.gap, *(column.tobytes() for column in s.index_columns())],
        kill=True, most=64,
    )  # fmt: skip


def reading(size: float) -> Work:
    """Trees in a file that the workers read themselves."""
    path, boxes = Path(tempfile.mkdtemp()) / "forest.wz", int(2_000_000 * size)
    files.save_many(larger.stream(boxes), path)
    return Work(
        f"`bounds.solve_file`, {boxes:,} boxes, k = 3",
        lambda **how: bounds.solve_file(path, part=40_000, **how),
        lambda s: [s.value, s.gap, s.first_box], kill=True,
    )  # fmt: skip


def playing(size: float) -> Work:
    """Episodes of one policy."""
    solution = weitzman.solve(instances.many_lines(100, 100, 8).forest)
    episodes = int(16_000_000 * size)
    return Work(
        f"`simulate`, {episodes:,} episodes, 10,000 boxes",
        lambda **how: weitzman.simulate(solution, episodes, 0, **how),
        lambda s: [s.payoff.mean, s.payoff.values.tobytes(), s.opened.tobytes()], kill=True,
    )  # fmt: skip


def pricing(size: float) -> Work:
    """Many prices of money."""
    forest, corners = instances.random_trees(6000), int(60 * size)
    return Work(
        f"`questions.frontier`, {corners} corners, 6,000 boxes",
        lambda **how: questions.frontier(forest, corners=corners, **how),
        lambda s: [s.spend.tobytes(), s.reward.tobytes(), s.gap],
    )  # fmt: skip


def drawing(size: float) -> Work:
    """Models drawn by the bootstrap."""
    model, n = learn.fit(learn.sample().of_task("letter"), price=1000), int(100 * size)
    return Work(
        f"`learn.bootstrap`, {n} draws",
        lambda threads=None, **how: learn.bootstrap(model, n, **how),
        lambda s: [s.value_at(1).tobytes()],
    )  # fmt: skip


WORKS: list[Callable[[float], Work]] = [solving, reading, playing, pricing, drawing]


# -- clusters --------------------------------------------------------------------------------------


class Cluster(NamedTuple):
    """Executors of one worker and of two, and what kills a worker that is at work."""

    one: Any
    two: Any
    kill: Callable[[], int]
    reference: type  # what a piece is sent in place of the data that all share


@contextlib.contextmanager
def dask_cluster() -> Iterator[Cluster]:
    """Two processes with one thread each."""
    from distributed import Client, LocalCluster
    from distributed import Future as Reference

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):

        def kill() -> int:
            pid = next(iter(client.run(os.getpid).values()))
            os.kill(pid, signal.SIGKILL)
            return pid

        client.run(_warm)
        first = next(iter(client.scheduler_info()["workers"]))
        yield Cluster(client.get_executor(workers=[first]), client.get_executor(), kill, Reference)


@contextlib.contextmanager
def ray_cluster() -> Iterator[Cluster]:
    """The same with Ray; a piece that asks for both cores is alone."""
    import psutil
    import ray

    names = ("PYTHONPATH", "WEITZMAN_CACHE_DIR", "WEITZMAN_COMPILE")
    env = {name: os.environ[name] for name in names if name in os.environ}
    ray.init(
        num_cpus=2, include_dashboard=False, runtime_env={"env_vars": env}, log_to_driver=False,
        object_store_memory=2 * 10**9,
        _system_config={"idle_worker_killing_time_threshold_ms": 10**7},  # both stay warm
    )  # fmt: skip

    def kill() -> int:
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if process.name().startswith("ray::_work"):
                    process.kill()
                    return int(process.pid)
        raise RuntimeError("no worker of Ray is at work")

    try:
        warm, pids = ray.remote(_warm), set[int]()
        while len(pids) < 2:
            pids |= set(ray.get([warm.remote() for _ in range(4)]))
        of_two = weitzman.engine.RayExecutor(num_cpus=1)
        yield Cluster(weitzman.engine.RayExecutor(num_cpus=2), of_two, kill, ray.ObjectRef)
    finally:
        ray.shutdown()


def _warm() -> int:
    """On a worker: load what is compiled."""
    weitzman.simulate(weitzman.solve(instances.random_trees(200)), 1000, 0)
    questions.frontier(instances.random_trees(50), corners=3, threads=1)
    learn.bootstrap(learn.fit(learn.sample().of_task("letter"), price=1000), 1)
    time.sleep(0.2)
    return os.getpid()


CLUSTERS = {"dask": dask_cluster, "ray": ray_cluster}


class Watched:
    """An executor that looks at what is sent: the shared data, if any, must be a reference."""

    def __init__(self, executor: Any, reference: type) -> None:
        self._executor, self._reference, self.pieces, self.sent = executor, reference, 0, 0

    def submit(self, fn: Any, /, *args: Any) -> Any:
        """Pass a piece on."""
        _, common, piece = args
        assert common is None or isinstance(common, self._reference), type(common)
        self.pieces, self.sent = self.pieces + 1, self.sent + len(pickle.dumps(piece, 5))
        return self._executor.submit(fn, *args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)


def cluster_table(name: str, rounds: int, size: float) -> Table:
    """One cluster."""
    head = ["", "no cluster", "one worker", "two workers", "speed-up", "one of two killed"]
    table, told = Table(head), list[int]()
    rows: list[list[str]] = []
    works = [make(size) for make in WORKS]
    before = [_timed(work, threads=1) for work in works]
    with CLUSTERS[name]() as cluster:
        for work, (alone, expected) in zip(works, before, strict=True):
            one, two = _both(work, cluster, rounds, expected, told)
            ratio = f"{one / two:.2f}"
            rows.append([work.what, seconds(alone), seconds(one), seconds(two), ratio])
            print(rows[-1], flush=True)
        for work, row, (_, expected) in zip(works, rows, before, strict=True):
            row.append(_killed(work, cluster, expected) if work.kill else "")
            print(row, flush=True)
            table.rows.append(row)
    table.notes.append(
        f"The least of {rounds} turns. All bits as without a cluster, also after the kill, for "
        f"which the wall time includes that the cluster notices and starts a new worker. Progress "
        f"was told {len(told)} times."
    )
    return table


def _both(
    work: Work, cluster: Cluster, rounds: int, expected: list[Any], told: list[int]
) -> tuple[float, float]:
    """Least wall times of one worker and of two, which take turns."""
    watched, best = Watched(cluster.two, cluster.reference), [np.inf, np.inf]
    for _ in range(rounds):
        for i, executor in enumerate((cluster.one, watched)):
            took, found = _timed(work, executor=executor, progress=_note(told))
            assert found == expected, work.what
            best[i] = min(best[i], took)
    return best[0], best[1]


def _timed(work: Work, **how: Any) -> tuple[float, list[Any]]:
    start = time.perf_counter()
    found = work.task(**how)
    return time.perf_counter() - start, work.bits(found)


def _note(told: list[int]) -> Tell:
    return lambda done, _: told.append(done)


def _killed(work: Work, cluster: Cluster, expected: list[Any]) -> str:
    """With a worker killed once some pieces are done."""
    pids: list[int] = []

    def progress(done: int, total: int) -> None:
        if not pids and 0 < done < total - 2:
            pids.append(cluster.kill())

    took, found = _timed(work, executor=cluster.two, progress=progress)
    assert pids, "nobody was killed"
    assert found == expected, work.what
    return seconds(took)


# -- on paper --------------------------------------------------------------------------------------


class Counting:
    """An executor that does the work at once, and counts what would travel."""

    def __init__(self) -> None:
        self.pieces, self.inside, self.once, self.sent, self.back = 0, 0.0, 0, 0, 0

    def submit(self, fn: Any, /, *args: Any) -> Future[Any]:
        """Do a piece, as it would be unpacked on a worker."""
        task, common, piece = args
        packed = pickle.dumps(piece, 5)
        start = time.process_time()
        result = fn(task, common, pickle.loads(packed))
        answer = pickle.dumps(result, 5)
        self.inside += time.process_time() - start
        future: Future[Any] = Future()
        future.set_result(pickle.loads(answer))
        self.pieces, self.sent = self.pieces + 1, self.sent + len(packed)
        self.back += len(answer)
        return future

    def scatter(self, data: Any) -> Any:
        """What would go to every machine once."""
        self.once += len(pickle.dumps(data, 5))
        return data


class Cost(NamedTuple):
    """Seconds of one core and bytes, for one size of a work."""

    alone: float
    pieces: float
    inside: float
    caller: float
    once: float
    travels: float

    @classmethod
    def of(cls, work: Work) -> Cost:
        """Measured by processor time."""
        start = time.process_time()
        expected = work.bits(work.task(threads=1))
        alone, counting = time.process_time() - start, Counting()
        start = time.process_time()
        found = work.bits(work.task(executor=counting))
        caller = time.process_time() - start - counting.inside
        assert found == expected, work.what
        c = counting
        return cls(alone, c.pieces, c.inside, caller, c.once, c.sent + c.back)

    def at(self, half: Cost, factor: float) -> Cost:
        """A work so many times as large, along the line through this one and half of it."""
        pairs = zip(self, half, strict=True)
        return Cost(*(max(b, 0.0) + max(a - b, 0.0) * (2 * factor - 1) for a, b in pairs))


def paper_table(size: float) -> Table:
    """What an hour of one core takes on 100 machines."""
    head = ["", "one core", "in pieces", "the caller's own", "sent once", "pieces and results"]
    table = Table([*head, f"an hour of it on {MACHINES} machines", "speed-up"])
    for make in WORKS:
        if make is pricing:  # prices come in rounds, each as large as there are gaps
            continue
        work = make(size)
        full, half = Cost.of(work), Cost.of(make(size / 2))
        hour = full.at(half, HOUR / full.alone)
        workers = min(MACHINES, work.most)
        sending = (hour.once * MACHINES + hour.travels) / LINK
        whole = hour.caller + hour.inside / workers + sending
        pieces = f"{full.pieces:.0f}, {seconds(full.inside / full.pieces)} each"
        table.rows.append(
            [
                work.what, seconds(full.alone), pieces, seconds(full.caller),
                f"{full.once / 1e6:.1f} MB", f"{full.travels / 1e6:.1f} MB",
                f"{whole:.0f} s: {hour.inside / workers:.0f} working, {hour.caller:.0f} in the "
                f"caller, {sending:.0f} on the link", f"{min(HOUR / whole, workers):.0f}",
            ]
        )  # fmt: skip
        print(table.rows[-1], flush=True)
    table.notes.append(
        "Processor times of one core, bytes as they are pickled. The last two columns: a work that "
        "takes one core an hour, on machines with one core each behind one link of 10 Gbit/s. "
        "Times and bytes are carried on along the line through this size and half of it; a line "
        "that promises more than the machines is cut off there."
    )
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Print, and write if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=[*CLUSTERS, "paper"])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--size", type=float, default=1.0, help="of the work; small: does it run?")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args(arguments)
    if given.write and given.size != 1:
        parser.error("works of another size are not written")
    os.environ["WEITZMAN_COMPILE"] = "always"  # for the workers
    compile_always()
    _warm()
    before = os.getloadavg()[0]
    paper = given.what == "paper"
    table = (
        paper_table(given.size) if paper else cluster_table(given.what, given.rounds, given.size)
    )
    table.notes.append(
        f"*Measured {date.today()} on {machine()['CPU']}; load of the machine before {before:.1f}.*"
    )
    text = table.markdown()
    print(text)
    if given.write:
        put(PAGE, given.what, text)


if __name__ == "__main__":
    main()
