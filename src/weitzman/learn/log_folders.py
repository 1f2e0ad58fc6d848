"""Logs with one file for each run: those of Keras' and of Lightning's CSVLogger."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .._common.arrays import FloatArray
from .._common.optional import need
from ..errors import InvalidFile
from .log_tables import columns_of, numbers
from .logged_runs import LoggedRun, files_below, last_of_each


def keras_runs(source: Any, metric: str) -> Iterator[LoggedRun]:
    """Files of Keras' CSVLogger; epochs are counted from 1, and a repeated epoch counts last."""
    for name, path in files_below(source, "*.csv"):
        epoch, score = _columns(path, "epoch", metric)
        order = np.arange(len(epoch)).tolist()  # after a restart epochs are logged again
        steps, scores, _ = last_of_each((epoch + 1).tolist(), score.tolist(), order)
        yield LoggedRun(name, steps, scores, None)


def lightning_runs(source: Any, metric: str, step: str) -> Iterator[LoggedRun]:
    """Files of Lightning's CSVLogger, with the hyperparameters beside them as settings."""
    for name, path in files_below(source, "metrics.csv"):
        when, score = _columns(path, step, metric)
        seen = ~np.isnan(score) & ~np.isnan(when)
        done = (when[seen] + 1).tolist()  # steps are counted from 0
        steps, scores, _ = last_of_each(done, score[seen].tolist(), range(len(done)))
        settings = _hyperparameters(path.with_name("hparams.yaml"))
        yield LoggedRun(name, steps, scores, [float(x) for x in steps], settings)


def _columns(path: Path, step: str, metric: str) -> tuple[FloatArray, FloatArray]:
    table = columns_of(path)
    for name in (step, metric):
        if name not in table.names:
            raise InvalidFile(
                f"{path}: there is no column {name!r}; the columns are {', '.join(table.names)}."
            )
    return numbers(table, step, blank=True), numbers(table, metric, blank=True)


def _hyperparameters(path: Path) -> dict[str, Any]:
    """What Lightning has saved; tagged Python objects in it are left out."""
    if not path.exists():
        return {}
    yaml = need("yaml", "learn")
    text = path.read_text("utf-8")
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        kept = [line for line in text.splitlines() if "!!python" not in line]
        try:
            found = yaml.safe_load("\n".join(kept))
        except yaml.YAMLError as error:
            raise InvalidFile(f"{path}: not YAML: {error}") from error
    plain = found if isinstance(found, dict) else {}
    return {str(k): None if isinstance(v, float) and math.isnan(v) else v for k, v in plain.items()}
