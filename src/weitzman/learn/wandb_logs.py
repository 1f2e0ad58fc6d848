"""Runs of Weights & Biases as logged runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .._common.optional import need
from ..errors import InvalidArgument
from .log_tables import LogColumns, columns_of, numbers
from .logged_runs import LoggedRun, last_of_each

_STEP, _TIME = "_step", "_runtime"


def wandb_runs(source: Any, metric: str) -> Iterator[LoggedRun]:
    """Runs of a project, of the exported table of a chart, of histories, or of run objects."""
    if isinstance(source, (str, os.PathLike)) and not _is_file(source):
        source = need("wandb", "wandb").Api().runs(os.fspath(source))
    if isinstance(source, (str, os.PathLike)) or hasattr(source, "columns"):
        yield from _charted(columns_of(source), metric)
    elif isinstance(source, Mapping):
        for name, history in source.items():
            yield _history(str(name), columns_of(history), metric, {})
    else:
        for run in source:
            rows = list(run.scan_history(keys=[_STEP, _TIME, metric]))
            settings = {k: v for k, v in dict(run.config).items() if not k.startswith("_")}
            if rows:
                yield _history(run.name or run.id, columns_of(rows), metric, settings)


def _is_file(source: str | os.PathLike[str]) -> bool:
    path = os.fspath(source)
    return os.path.exists(path) or path.endswith((".csv", ".csv.gz", ".parquet", ".jsonl"))


def _history(name: str, table: LogColumns, metric: str, settings: Any) -> LoggedRun:
    """One run; rows without the metric were not evaluated."""
    score = numbers(table, metric, blank=True)
    seen = ~np.isnan(score)
    step = table.role("step", "step")
    steps = numbers(table, step)[seen]
    times = numbers(table, _TIME)[seen] if _TIME in table.names else steps + 1
    return LoggedRun(
        name, *last_of_each(steps.tolist(), score[seen].tolist(), times.tolist()), settings
    )


def _charted(table: LogColumns, metric: str) -> Iterator[LoggedRun]:
    """The table of a chart: a column for the step, and one called "RUN - METRIC" for each run."""
    end = f" - {metric}"
    columns = [name for name in table.names if name.endswith(end)]
    if not columns:
        raise InvalidArgument(
            f"the export of a chart must have a column 'RUN{end}' for each run, but its columns "
            f"are {', '.join(table.names[:6])}. Read a table with a column that names the run by "
            f"`Curves.read`."
        )
    when = next((x for x in table.names if " - " not in x), "Step")
    for name in columns:
        score = numbers(table, name, blank=True)
        seen = ~np.isnan(score)
        steps = numbers(table, when)[seen]
        rows = last_of_each(steps.tolist(), score[seen].tolist(), (steps + 1).tolist())
        yield LoggedRun(name.removesuffix(end), *rows)
