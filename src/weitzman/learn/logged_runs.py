"""A run as any library has logged it, rows as mappings, and what such logs share."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InvalidArgument, InvalidFile, WeitzmanError
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
    names : collection of str
        What the log of the run has scores of, for messages.
    """

    name: str
    steps: Sequence[int]
    scores: Sequence[float]
    costs: Sequence[float] | None
    settings: Config = {}  # noqa: RUF012  a tuple's default is never changed
    task: str = ""
    ended: bool | None = None
    names: Collection[str] = ()


_MOST_SETTINGS = 10_000  # of a run, laid out: a few lines of YAML can stand for billions


@contextmanager
def reading(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Whatever a damaged log brings about becomes one message that names the file."""
    try:
        yield
    except InvalidFile as error:
        text = str(error)
        raise InvalidFile(text if text.startswith(str(path)) else f"{path}: {text}") from None
    except (WeitzmanError, MemoryError):
        raise
    except OSError as error:
        raise InvalidFile(f"{path}: cannot be read: {error.strerror or error}.") from error
    except Exception as error:
        text = " ".join(str(error).split())[:200].rstrip(".")
        raise InvalidFile(f"{path}: not {what}: {text or type(error).__name__}.") from None


def a_number(x: Any) -> float:
    """A number of a log; NaN where it is blank."""
    return math.nan if x is None or x == "" else float(x)


def plain_settings(x: Any) -> dict[str, Any]:
    """Settings as a file holds them: a mapping that is not endless once it is laid out."""
    sizes: dict[int, int] = {}

    def size(part: Any, depth: int) -> int:
        if not isinstance(part, (dict, list, tuple)):
            return 1
        if id(part) not in sizes:
            if depth > 100:  # or it holds itself
                raise InvalidFile("settings are nested too deeply.")
            inner = part.values() if isinstance(part, dict) else part
            sizes[id(part)] = 1 + sum(size(one, depth + 1) for one in inner)
        return sizes[id(part)]

    if size(x, 0) > _MOST_SETTINGS:
        raise InvalidFile(f"a run must have at most {_MOST_SETTINGS:,} settings.")
    if not isinstance(x, dict):
        return {}
    blank = (None if isinstance(v, float) and math.isnan(v) else v for v in x.values())
    return dict(zip(map(str, x), blank, strict=True))


def as_table(runs: Iterable[LoggedRun], what: str, cost: str) -> tuple[dict[str, Any], Any]:
    """The columns of a log, and a table of settings if any are known.

    ``what`` says what runs had to show; ``cost`` is the name of the costs: cumulative or not.
    """
    runs = list(runs)
    shown = [run for run in runs if len(run.steps)]
    if not shown:
        there = ", ".join(sorted({str(x) for run in runs for x in run.names})[:20])
        raise InvalidArgument(
            f"at least one run must show {what}, but none does."
            f"{f' There are {there}.' if there else ''}"
        )
    table: dict[str, list[Any]] = {x: [] for x in ("task", "run", "step", "score", cost, "ended")}
    timed = any(run.costs is not None for run in shown)
    for number, run in enumerate(shown):
        size = len(run.steps)
        table["task"] += [run.task] * size
        table["run"] += [number] * size
        odd = [x for x in run.steps if not math.isfinite(x) or x != int(x)]
        if odd:
            raise InvalidArgument(
                f"steps must be whole numbers, but run {run.name!r} has {odd[0]}."
            )
        table["step"] += [int(x) for x in run.steps]
        table["score"] += [a_number(x) for x in run.scores]
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
    steps: Sequence[float], scores: Sequence[float], times: Sequence[float]
) -> tuple[list[int], list[float], list[float]]:
    """Rows by rising step; of a step logged twice, the last row.

    If all rows have the same step, they are counted from 1 in the order of time.
    """
    rows = [row for row in zip(times, steps, scores, strict=True) if not math.isnan(row[1])]
    if any(math.isinf(step) for _, step, _ in rows):
        raise InvalidFile("steps must be finite, but one is not.")
    rows.sort(key=lambda row: row[0])
    if len(rows) > 1 and len({step for _, step, _ in rows}) == 1:
        rows = [(time, number, score) for number, (time, _, score) in enumerate(rows, 1)]
    last = {int(step): (float(score), float(time)) for time, step, score in rows}
    order = sorted(last)
    return order, [last[x][0] for x in order], [last[x][1] for x in order]


def files_below(source: Any, name: str, other: str = "") -> list[tuple[str, Path]]:
    """Files of a name (or another one) in a folder and below, each with a name for its run.

    ``source`` is a folder, a file, or several of them.
    """
    if not isinstance(source, (str, os.PathLike)):
        return [found for each in source for found in files_below(each, name, other)]
    path = Path(source)
    if not path.exists():
        raise InvalidFile(f"{path}: there is no such file or folder.")
    if path.is_file():
        return [(path.stem if "*" in name else path.parent.name or path.stem, path)]
    found = sorted([*path.rglob(name), *(path.rglob(other) if other else ())])
    if not found:
        raise InvalidFile(f"{path}: the folder must hold a file {name}, but it holds none.")
    names = [name if x.name != other else "" for x in found]
    return [(_called(x, path, one), x) for x, one in zip(found, names, strict=True)]


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
