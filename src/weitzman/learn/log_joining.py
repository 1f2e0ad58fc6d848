"""Curves as one table, and several logs as one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InvalidArgument
from .features import flat

if TYPE_CHECKING:
    from .curves import Curves

OWN = ("task", "run", "kind", "step", "score", "cost", "ended", "minimize")
"""The columns of an export; all others are settings."""
_COPY = re.compile(r" \(\d+\)$")


def frame_columns(curves: Curves) -> dict[str, Any]:
    """One entry for each row of the curves; a setting is under its name.

    A setting whose name is taken is stored under ``setting NAME``. :meth:`Curves.read` knows such a
    table by its columns.
    """
    run = curves.run_of_row
    by_run = {"task": curves.task, "run": curves.runs, "kind": curves.kind}
    out: dict[str, Any] = {name: np.array(of, object)[run] for name, of in by_run.items()}
    out |= {"step": curves.step, "score": curves.score, "cost": curves.cost}
    out |= {"ended": curves.ended[run], "minimize": np.full(len(run), curves.minimize)}
    rows = [flat(config) for config in curves.settings]
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        out[f"setting {name}" if name in OWN else name] = [values[i] for i in run.tolist()]
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
    alike: dict[Any, list[tuple[str, str]]] = {}  # curves that begin alike, under one name
    copies: dict[tuple[str, str], int] = {}
    for number, log in enumerate(logs):
        for run, key in enumerate(zip(log.task, log.runs, strict=True)):
            here, row = _Place(number, run), int(log.start[run])
            begin = [repr(float(column[row])) for column in (log.step, log.score, log.cost)]
            name = _COPY.sub("", key[1])
            known = alike.setdefault((key[0], name, *begin), [])
            copied = (x for x in known if x == key or _COPY.sub("", x[1]) == key[1])
            called = next((x for x in copied if _same(logs, kept[x], here)), None)
            if called is None:
                called = key
                while called in kept:  # the names of copies may be taken as well
                    copies[key] = copies.get(key, 1) + 1
                    called = (key[0], f"{key[1]} ({copies[key]})")
                known.append(called)
            before = kept.get(called, here)
            kept[called] = max(here, before, key=lambda at: _length(logs, at))
    return kept


def _known(config: Any) -> dict[str, Any]:
    """Settings that are not blank, by name; NaN would differ from itself."""
    return {name: x for name, x in flat(config).items() if x is not None and x == x}


def _length(logs: Sequence[Curves], at: _Place) -> tuple[int, bool]:
    rows = _rows(logs[at.log], at.run)
    return rows.stop - rows.start, bool(logs[at.log].ended[at.run])


def _same(logs: Sequence[Curves], a: _Place, b: _Place) -> bool:
    """Whether one curve is the other one, or its beginning, with the same settings."""
    if _known(_settings(logs[a.log], a.run)) != _known(_settings(logs[b.log], b.run)):
        return False
    (one, other), n = (logs[a.log], logs[b.log]), min(_length(logs, a)[0], _length(logs, b)[0])
    i, j = int(one.start[a.run]), int(other.start[b.run])
    return all(
        np.array_equal(
            getattr(one, name)[i : i + n], getattr(other, name)[j : j + n], equal_nan=True
        )
        for name in ("step", "score", "cost")
    )
