"""Cells that are kept on disk: one method on one task with one log, all prices and orders.

A cell that is there is read, so an interrupted benchmark goes on where it stood, and one method can
be run again without the others.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import weitzman
from weitzman._common.disk import replacing
from weitzman.backtest.driver import Design, Job

CODE = "_common", "_kernels", "backtest", "engine", "learn", "policy", "tune"  # what searches run
LIBRARIES = "numpy", "numba", "scipy", "scikit-learn", "optuna"


@cache
def made_with() -> str:
    """The code that makes cells, and the versions of the libraries."""
    found = hashlib.sha256(sys.version.encode())
    for name in LIBRARIES:
        try:
            found.update(f"{name} {version(name)}".encode())
        except PackageNotFoundError:
            found.update(f"no {name}".encode())
    root = Path(weitzman.__file__).parent
    files = [Path(__file__).parent / "syne_tune_peers.py"]
    for path in files + [path for name in CODE for path in sorted((root / name).rglob("*.py"))]:
        found.update(path.read_bytes() if path.exists() else b"")
    return found.hexdigest()


def fingerprint(design: Design, job: Job) -> str:
    """What a cell depends on: its searches, with all curves and settings, and what makes it."""
    how = design.log_runs, design.orders, design.seed  # more logs leave the others as they are
    curves = job.curves
    data = curves.runs, curves.task, curves.ended.tobytes(), curves.minimize, curves.settings
    rows = (getattr(curves, name).tobytes() for name in ("start", "step", "score", "cost"))
    said = repr((how, job.prices, job.instance, job.task, job.log, data, *rows, made_with()))
    return hashlib.sha256(said.encode()).hexdigest()


class CellKeeper:
    """An executor for :func:`weitzman.backtest.backtest` that keeps the cells of one method.

    A cell is made again if anything that it depends on was different: see :func:`fingerprint`. Read
    only files of your own.

    Parameters
    ----------
    folder : path
        A file for each cell.

    Attributes
    ----------
    seconds : list of float
        The processor time of each cell, now or when it was made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.seconds: list[float] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """A future that is done; ``args`` are a function, what all cells share, and a job."""
        _, (design, _), job = args
        assert isinstance(job, Job)
        path = self._folder / f"{job.task}-{job.log}.pickle"
        searches = fingerprint(design, job)
        kept = pickle.loads(path.read_bytes()) if path.exists() else None
        if kept is None or kept[0] != searches:
            began = time.process_time()
            outcome = fn(*args)
            kept = searches, outcome, time.process_time() - began
            if outcome.error is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                with replacing(str(path)) as file:
                    file.write(pickle.dumps(kept))
        self.seconds.append(kept[2])
        future: Future[Any] = Future()
        future.set_result(kept[1])
        return future
