"""Cells that are kept on disk: one method on one task with one log, all prices and orders.

A cell that is there is read, so an interrupted benchmark goes on where it stood, and cells may be
made on another machine. A cell is made again if anything that its searches depend on was different.
The folder of a cell is named by the code and the libraries that made it, so that cells of different
code never meet in a table unless somebody asks for that.
"""

from __future__ import annotations

import hashlib
import pickle
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import weitzman
from weitzman._common.disk import replacing
from weitzman.backtest.driver import Design, Done, Job, carry_out
from weitzman.backtest.methods import Method

CODE = "_common", "_kernels", "backtest", "engine", "learn", "policy", "tune"  # what searches run
PEERS = "more_peers", "syne_tune_peers", "syne_tune_worker"
LIBRARIES = "numpy", "numba", "scipy", "scikit-learn", "optuna"


@cache
def made_with() -> str:
    """The code that makes cells, and the versions of the libraries, in twelve characters."""
    found = hashlib.sha256(f"{sys.version_info[:2]}".encode())
    for name in LIBRARIES:
        try:
            found.update(f"{name} {version(name)}".encode())
        except PackageNotFoundError:
            found.update(f"no {name}".encode())
    root = Path(weitzman.__file__).parent
    files = [Path(__file__).parent / f"{name}.py" for name in PEERS]
    for path in files + [path for name in CODE for path in sorted((root / name).rglob("*.py"))]:
        found.update(path.read_bytes() if path.exists() else b"")
    return found.hexdigest()[:12]


def fingerprint(design: Design, job: Job) -> str:
    """The searches of a cell, with all curves and settings."""
    how = design.log_runs, design.orders, design.seed  # more logs leave the others as they are
    curves = job.curves
    data = curves.runs, curves.task, curves.ended.tobytes(), curves.minimize, curves.settings
    rows = (getattr(curves, name).tobytes() for name in ("start", "step", "score", "cost"))
    said = repr((how, job.prices, job.instance, job.task, job.log, data, *rows))
    return hashlib.sha256(said.encode()).hexdigest()


class Cells:
    """The cells of one method on one set.

    Parameters
    ----------
    keep : path
        The folder of all cells. Read only files of your own.
    name : path
        The folder of these cells within the folder of their code.
    made : sequence of str
        The code and libraries whose cells count (see :func:`made_with`); new ones are of the first.
    """

    def __init__(self, keep: Path, name: Path, made: Sequence[str]) -> None:
        self.folders = [keep / each / name for each in made]

    def read(self, design: Design, job: Job) -> tuple[Done, float] | None:
        """A cell and the processor time that it took, if it is there."""
        for folder in self.folders:
            path = folder / f"{job.task}-{job.log}.pickle"
            if path.exists():
                searches, done, seconds = pickle.loads(path.read_bytes())
                if searches == fingerprint(design, job):
                    return done, seconds
        return None

    def make(self, design: Design, method: Method, job: Job) -> float:
        """Make a cell and keep it; returns its processor time."""
        began = time.process_time()
        done = carry_out(job, design, [method])
        seconds = time.process_time() - began
        self.folders[0].mkdir(parents=True, exist_ok=True)
        with replacing(str(self.folders[0] / f"{job.task}-{job.log}.pickle")) as file:
            file.write(pickle.dumps((fingerprint(design, job), done, seconds)))
        return seconds

    def forget(self) -> None:
        """Delete these cells."""
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)


Piece = tuple[Cells, Design, Method, Job]


def make_all(pieces: Sequence[Piece], workers: int) -> Iterator[float]:
    """Make cells, in this order, with so many processes; yields the processor time of each."""
    if workers == 1:
        yield from (cells.make(*rest) for cells, *rest in pieces)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        some = [pool.submit(cells.make, *rest) for cells, *rest in pieces]
        yield from (future.result() for future in as_completed(some))


def joined(found: Sequence[Done]) -> Done:
    """What several methods found in the same searches, as one; hindsight comes with each, last."""
    first = found[0]
    for other in found:
        if not all(
            np.array_equal(x[-1], y[-1]) for x, y in zip(other[1:3], first[1:3], strict=True)
        ):
            raise ValueError("methods that searched different runs cannot be compared.")
    score, spend = (np.concatenate([*(x[i][:-1] for x in found), first[i][-1:]]) for i in (1, 2))
    return Done(first.job, score, spend, [told for x in found for told in x.told])
