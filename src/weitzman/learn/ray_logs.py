"""The trials of Ray Tune experiments as logged runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import InvalidArgument
from .known import flat
from .log_lines import json_lines
from .logged_runs import LoggedRun, files_below


def ray_runs(source: Any, metric: str, step: str, cost: str) -> Iterator[LoggedRun]:
    """The trials of a ResultGrid, or those in the folder of an experiment."""
    names = metric, step, cost
    if isinstance(source, (str, os.PathLike)):
        for name, path in files_below(source, "result.json"):
            params = path.with_name("params.json")
            settings = json.loads(params.read_text("utf-8")) if params.exists() else {}
            yield _run(name, json_lines(path.read_bytes()), settings, names)
        return
    if not (hasattr(source, "__iter__") or hasattr(source, "__getitem__")):
        raise InvalidArgument(
            f"trials are read from a ResultGrid or the folder of an experiment, but here is a "
            f"{type(source).__name__}."
        )
    for i in range(len(source)):
        result = source[i]
        frame = result.metrics_dataframe
        rows = [] if frame is None else frame.to_dict("records")
        name = Path(result.path).name if result.path else f"trial {i}"
        yield _run(name, rows, result.config or {}, names)


def _run(
    name: str, results: Iterable[Mapping[str, Any]], settings: Any, names: tuple[str, str, str]
) -> LoggedRun:
    rows = list(rising_results(results, *names))
    return LoggedRun(
        name, [x[0] for x in rows], [x[1] for x in rows], [x[2] for x in rows], settings
    )


def rising_results(
    results: Iterable[Mapping[str, Any]], metric: str, step: str, cost: str
) -> Iterator[tuple[int, float, float]]:
    """(step, score, cost) of results; rising steps only.

    Results that repeat a step (trained again since a checkpoint) count with their cost. The last
    result of a trial is logged once more when it is done, which costs nothing.
    """
    last, extra = -1, 0.0
    told: dict[int, Mapping[str, Any]] = {}
    for result in map(flat, results):
        if metric not in result or step not in result:
            continue
        paid = float(result.get(cost, 0.0))
        if int(result[step]) <= last:
            extra += 0.0 if _same_moment(result, told.get(int(result[step]), {})) else paid
            continue
        last = int(result[step])
        told[last] = result
        yield last, float(result[metric]), paid + extra
        extra = 0.0


def _same_moment(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether two results are the same one, logged twice."""
    names = "timestamp", "time_total_s"
    return any(name in a for name in names) and all(a.get(x) == b.get(x) for x in names)
