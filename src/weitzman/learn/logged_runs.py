"""A run as any library has logged it, rows as mappings, and what such logs share."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InvalidArgument, InvalidFile
from .features import Config, flat


class LoggedRun(NamedTuple):
    """One run as a library has logged it.

    Attributes
    ----------
    name : str
    steps, scores : sequences of equal length
        In the order of the log. A score of NaN means that nothing was seen in that step.
    costs : sequence, or None
        What each row cost, or the time since the run started; None if not known.
    settings : mapping
    task : str
    ended : bool or None
        Whether the run came to its own end; None if not known.
    """

    name: str
    steps: Sequence[int]
    scores: Sequence[float]
    costs: Sequence[float] | None
    settings: Config = {}  # noqa: RUF012  a tuple's default is never changed
    task: str = ""
    ended: bool | None = None


def as_table(runs: Iterable[LoggedRun], what: str, cost: str) -> tuple[dict[str, Any], Any]:
    """The columns of a log, and a table of settings if any are known.

    ``what`` says what runs had to show; ``cost`` is the name of the costs: cumulative or not.
    """
    shown = [run for run in runs if len(run.steps)]
    if not shown:
        raise InvalidArgument(f"at least one run must show {what}, but none does.")
    table: dict[str, list[Any]] = {x: [] for x in ("task", "run", "step", "score", cost, "ended")}
    timed = any(run.costs is not None for run in shown)
    for number, run in enumerate(shown):
        size = len(run.steps)
        table["task"] += [run.task] * size
        table["run"] += [number] * size
        table["step"] += [int(x) for x in run.steps]
        table["score"] += [math.nan if x is None else float(x) for x in run.scores]
        table[cost] += _paid(run) if timed else [1.0] * size
        table["ended"] += [run.ended] * size
    return table, _settings(shown)


def _paid(run: LoggedRun) -> list[float]:
    if run.costs is None:
        raise InvalidArgument(
            f"either all runs or none must give their costs, but run {run.name!r} does not."
        )
    return [float(x) for x in run.costs]


def _settings(runs: Sequence[LoggedRun]) -> tuple[dict[str, Any], ...]:
    rows = tuple(flat(run.settings) for run in runs)
    return rows if any(rows) else ()


def names_of(runs: Iterable[LoggedRun]) -> tuple[str, ...]:
    """A name for each run that shows something, unique within its task."""
    taken: set[tuple[str, str]] = set()
    out = []
    for run in runs:
        if len(run.steps):
            name, copy = run.name, 1
            while (run.task, name) in taken:
                copy += 1
                name = f"{run.name} ({copy})"
            taken.add((run.task, name))
            out.append(name)
    return tuple(out)


def number_or_text(x: Any) -> Any:
    """A setting that was logged as text, as a number if it is one."""
    if not isinstance(x, str):
        return x
    try:
        return int(x)
    except ValueError:
        pass
    try:
        return float(x)
    except ValueError:
        return {"True": True, "False": False, "None": None, "": None}.get(x, x)


def last_of_each(
    steps: Sequence[int], scores: Sequence[float], times: Sequence[float]
) -> tuple[list[int], list[float], list[float]]:
    """Rows by rising step; of a step logged twice, the last row.

    If all rows have the same step, they are counted from 1 in the order of time.
    """
    rows = sorted(zip(times, steps, scores, strict=True), key=lambda row: row[0])
    if len(rows) > 1 and len({step for _, step, _ in rows}) == 1:
        rows = [(time, number, score) for number, (time, _, score) in enumerate(rows, 1)]
    last = {int(step): (float(score), float(time)) for time, step, score in rows}
    steps = sorted(last)
    return steps, [last[x][0] for x in steps], [last[x][1] for x in steps]


def files_below(source: Any, name: str) -> list[tuple[str, Path]]:
    """Files of a name in a folder and its subfolders, each with a name for its run.

    ``source`` is a folder, a file, or several of them.
    """
    if not isinstance(source, (str, os.PathLike)):
        return [found for each in source for found in files_below(each, name)]
    path = Path(source)
    if not path.exists():
        raise InvalidFile(f"{path}: there is no such file or folder.")
    if path.is_file():
        return [(path.stem if "*" in name else path.parent.name or path.stem, path)]
    found = sorted(path.rglob(name))
    if not found:
        raise InvalidFile(f"{path}: the folder must hold a file {name}, but it holds none.")
    return [(_called(x, path, name), x) for x in found]


def _called(path: Path, folder: Path, name: str) -> str:
    part = path.relative_to(folder)
    part = part.with_suffix("") if "*" in name else part.parent
    return part.as_posix() if str(part) != "." else folder.resolve().name


def by_column(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns. Missing entries are None, and nested mappings are flattened."""
    even = [flat(row) for row in rows]
    names = dict.fromkeys(name for row in even for name in row)
    return {name: [row.get(name) for row in even] for name in names}


def json_lines(data: bytes) -> list[dict[str, Any]]:
    """The objects of a file, one in each line; a last line that was cut short is left out."""
    lines = data.decode("utf-8").splitlines()
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            if number == len(lines):  # still being written
                break
            raise InvalidFile(f"line {number} is not JSON: {error}.") from error
        if not isinstance(row, dict):
            raise InvalidFile(f"line {number} must be a JSON object, but it is {line[:40]!r}.")
        rows.append(row)
    return rows
