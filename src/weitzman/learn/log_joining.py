"""Curves as one table, and several logs as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InvalidArgument
from .features import flat

if TYPE_CHECKING:
    from .curves import Curves

_OWN = ("task", "run", "kind", "step", "score", "cost", "ended")


def frame_columns(curves: Curves) -> dict[str, Any]:
    """One entry for each row of the curves; a setting is under its name.

    A setting whose name is taken is stored under ``setting NAME``.
    """
    run = curves.run_of_row
    by_run = {"task": curves.task, "run": curves.runs, "kind": curves.kind}
    out: dict[str, Any] = {name: np.array(of, object)[run] for name, of in by_run.items()}
    out |= {"step": curves.step, "score": curves.score, "cost": curves.cost}
    out["ended"] = curves.ended[run]
    rows = [flat(config) for config in curves.settings]
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        out[f"setting {name}" if name in _OWN else name] = [values[i] for i in run.tolist()]
    return out


class _Place(NamedTuple):
    """Where a run is: the number of its log, and its number there."""

    log: int
    run: int


def joined_columns(logs: Sequence[Curves]) -> dict[str, Any]:
    """The columns of all logs together, each run once."""
    if not logs:
        raise InvalidArgument("joining needs at least one log, but there is none.")
    if len({log.minimize for log in logs}) > 1:
        raise InvalidArgument("logs to be joined must all maximize or all minimize.")
    kept = _named(logs)
    rows = [_rows(logs[at.log], at.run) for at in kept.values()]
    known = any(log.settings for log in logs)
    return {
        "runs": tuple(name for _, name in kept),
        "start": np.cumsum([0, *(x.stop - x.start for x in rows)]),
        **{
            name: np.concatenate(
                [getattr(logs[at.log], name)[x] for at, x in zip(kept.values(), rows, strict=True)]
            )
            for name in ("step", "score", "cost")
        },
        "task": tuple(task for task, _ in kept),
        "kind": tuple(logs[at.log].kind[at.run] for at in kept.values()),
        "ended": np.array([logs[at.log].ended[at.run] for at in kept.values()]),
        "minimize": logs[0].minimize,
        "settings": tuple(_settings(logs[at.log], at.run) for at in kept.values()) if known else (),
    }


def _rows(log: Curves, run: int) -> slice:
    return slice(int(log.start[run]), int(log.start[run + 1]))


def _settings(log: Curves, run: int) -> Any:
    return log.settings[run] if log.settings else {}


def _named(logs: Sequence[Curves]) -> dict[tuple[str, str], _Place]:
    """A place for each task and name: the longest curve, where one curve continues another."""
    kept: dict[tuple[str, str], _Place] = {}
    for number, log in enumerate(logs):
        for run, (task, name) in enumerate(zip(log.task, log.runs, strict=True)):
            here, copy, called = _Place(number, run), 1, name
            while (task, called) in kept and not _same(logs, kept[task, called], here):
                copy += 1
                called = f"{name} ({copy})"
            before = kept.get((task, called), here)
            kept[task, called] = max(here, before, key=lambda at: _length(logs, at))
    return kept


def _length(logs: Sequence[Curves], at: _Place) -> tuple[int, bool]:
    rows = _rows(logs[at.log], at.run)
    return rows.stop - rows.start, bool(logs[at.log].ended[at.run])


def _same(logs: Sequence[Curves], a: _Place, b: _Place) -> bool:
    """Whether one curve is the other one, or its beginning, with the same settings."""
    if _settings(logs[a.log], a.run) != _settings(logs[b.log], b.run):
        return False
    (one, other), n = (logs[a.log], logs[b.log]), min(_length(logs, a)[0], _length(logs, b)[0])
    i, j = int(one.start[a.run]), int(other.start[b.run])
    return all(
        np.array_equal(
            getattr(one, name)[i : i + n], getattr(other, name)[j : j + n], equal_nan=True
        )
        for name in ("step", "score", "cost")
    )
