"""Cells that are kept on disk: one method on one task with one log, all prices and orders.

A cell that is there is read, so an interrupted benchmark goes on where it stood, and one method can
be run again without the others.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from weitzman._common.disk import replacing
from weitzman.backtest.driver import Job


class CellKeeper:
    """An executor for :func:`weitzman.backtest.backtest` that keeps the cells of one method.

    A cell is made again if its searches were other ones: another design, or other prices. Read
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
        how = design.log_runs, design.orders, design.seed  # more logs leave the others as they are
        searches = how, job.prices, job.curves.runs
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
